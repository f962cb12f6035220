//! Finds the signal that is meant by a symbol and a time.

use warptape_eventlog::{EventLog, OffsetRange, TopicPartition};
use warptape_schemas::decode_signal;

use super::slowest::first_signal;
use crate::partition_reader::PartitionReader;
use crate::{Phase, Progress, ReplayError, VerifyOptions};

/// Bars are signalled in the order of their ends, but for those that fill up within the allowed lateness of each other: the search begins
/// so much before.
const LATENESS_NS: i64 = 60_000_000_000;
/// Signals between two words on how far the search is.
const PROGRESS_SIGNALS: u64 = 4_096;

/// Partition and offset of the first signal of a symbol whose bar ends at or after a time.
///
/// # Errors
/// If the log cannot be read, or has no such signal.
pub fn find_signal_of_symbol(
    log: &dyn EventLog,
    options: &VerifyOptions,
    symbol: &str,
    at_ns: i64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(i32, i64), ReplayError> {
    let topic = &options.sources.signals;
    let topics = log.topics()?;
    let found = topics.iter().find(|info| info.spec.name == *topic);
    let ranges = found.map(|info| info.offsets.clone()).unwrap_or_default();
    let mut best: Option<(i64, i32, i64)> = None;
    let mut done = 0;
    let total = ranges.iter().map(|range| (range.next - range.first) as u64).sum();
    for (partition, range) in (0..).zip(ranges) {
        let source = TopicPartition { topic: topic.clone(), partition };
        let early_ns = at_ns.saturating_sub(LATENESS_NS);
        let first = first_signal(log, &source, range, |_, bar_end_ns| bar_end_ns < early_ns)?;
        done += (first - range.first) as u64;
        let mut reader = PartitionReader::open(log, source, OffsetRange { first, next: range.next })?;
        while let Some(record) = reader.next()? {
            done += 1;
            if done % PROGRESS_SIGNALS == 0 {
                progress(Progress { phase: Phase::Outputs, done, total });
            }
            if record.key.as_deref() != Some(symbol.as_bytes()) {
                continue;
            }
            let Ok(signal) = decode_signal(&record.value) else { continue };
            if signal.bar_end_ns < at_ns {
                continue;
            }
            let candidate = (signal.bar_end_ns, partition, record.offset);
            best = best.filter(|best| *best <= candidate).or(Some(candidate));
            // Those that follow end later, but for lateness, and a symbol is in one partition.
            break;
        }
    }
    best.map(|(_, partition, offset)| (partition, offset)).ok_or_else(|| ReplayError::NoSignal {
        url: log.url(),
        topic: topic.clone(),
        symbol: symbol.to_owned(),
    })
}
