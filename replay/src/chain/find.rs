//! Finds the signal meant by a symbol and an optional time.

use std::collections::BTreeSet;

use warptape_eventlog::{EventLog, OffsetRange, TopicPartition};
use warptape_schemas::decode_signal;

use super::slowest::first_signal;
use crate::partition_reader::PartitionReader;
use crate::{Phase, ReplayError, ReplayProgress, VerifyOptions, utc};

/// Most symbols among which similar names are looked for.
const KNOWN_MAX: usize = 10_000;
/// Distance before the time at which the search begins. Bars are signalled in the order of their ends, except those
/// that fill up within the allowed lateness of each other.
const LATENESS_NS: i64 = 60_000_000_000;
/// Signals in the first piece read from the end of a partition.
const PIECE_SIGNALS: i64 = 4_096;
/// Signals between two progress reports.
const PROGRESS_SIGNALS: u64 = 4_096;

/// Partition and offset of a symbol's first signal whose bar ends at or after a time; of its newest signal if no time
/// is given.
///
/// # Errors
/// If the log cannot be read, or has no such signal.
pub fn find_signal_of_symbol(
    log: &dyn EventLog,
    options: &VerifyOptions,
    symbol: &str,
    at_ns: Option<i64>,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<(i32, i64), ReplayError> {
    let topic = &options.sources.signals;
    let ranges = log.topic(topic)?.map(|info| info.offsets).unwrap_or_default();
    let Some(at_ns) = at_ns else {
        return match newest(log, topic, &ranges, symbol, progress)? {
            Some(found) => Ok(found),
            None => Err(not_found(log, topic, &ranges, symbol, progress)?),
        };
    };
    let mut best: Option<(i64, i32, i64)> = None;
    let mut done = 0;
    let total = ranges.iter().map(|range| (range.next - range.first) as u64).sum();
    for (partition, &range) in (0..).zip(&ranges) {
        let source = TopicPartition { topic: topic.clone(), partition };
        let early_ns = at_ns.saturating_sub(LATENESS_NS);
        let first = first_signal(log, &source, range, |_, bar_end_ns| bar_end_ns < early_ns)?;
        done += (first - range.first) as u64;
        let mut reader = PartitionReader::open(log, source, OffsetRange { first, next: range.next })?;
        while let Some(record) = reader.next()? {
            done += 1;
            if done % PROGRESS_SIGNALS == 0 {
                progress(ReplayProgress { phase: Phase::Outputs, done, total });
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
            // Later signals end later, apart from lateness, and each symbol is in one partition.
            break;
        }
    }
    match best {
        Some((_, partition, offset)) => Ok((partition, offset)),
        None => Err(not_found(log, topic, &ranges, symbol, progress)?),
    }
}

/// Partition and offset of a symbol's last signal; `None` if it has none. Partitions are read from their ends in ever
/// longer pieces.
fn newest(
    log: &dyn EventLog,
    topic: &str,
    ranges: &[OffsetRange],
    symbol: &str,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Option<(i32, i64)>, ReplayError> {
    let mut best: Option<(i64, i32, i64)> = None;
    let mut done = 0;
    let total = ranges.iter().map(|range| (range.next - range.first) as u64).sum();
    for (partition, &range) in (0..).zip(ranges) {
        let source = TopicPartition { topic: topic.to_owned(), partition };
        let (mut next, mut length) = (range.next, PIECE_SIGNALS);
        let mut last = None;
        while last.is_none() && next > range.first {
            let first = range.first.max(next - length);
            let mut reader = PartitionReader::open(log, source.clone(), OffsetRange { first, next })?;
            while let Some(record) = reader.next()? {
                if record.key.as_deref() == Some(symbol.as_bytes())
                    && let Ok(signal) = decode_signal(&record.value)
                {
                    last = Some((signal.bar_end_ns, partition, record.offset));
                }
            }
            done += (next - first) as u64;
            progress(ReplayProgress { phase: Phase::Outputs, done, total });
            (next, length) = (first, length.saturating_mul(2));
        }
        // A symbol is in one partition, unless partitions were added.
        best = best.max(last);
    }
    Ok(best.map(|(_, partition, offset)| (partition, offset)))
}

/// Explains that a symbol has no signal at a time: says when its bars end or, if it has none, which symbols have
/// signals.
fn not_found(
    log: &dyn EventLog,
    topic: &str,
    ranges: &[OffsetRange],
    symbol: &str,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<ReplayError, ReplayError> {
    let mut done = 0;
    let total = ranges.iter().map(|range| (range.next - range.first) as u64).sum();
    let (mut ends, mut known): (Option<(i64, i64)>, BTreeSet<String>) = (None, BTreeSet::new());
    for (partition, &range) in (0..).zip(ranges) {
        let source = TopicPartition { topic: topic.to_owned(), partition };
        let mut reader = PartitionReader::open(log, source, range)?;
        while let Some(record) = reader.next()? {
            done += 1;
            if done % PROGRESS_SIGNALS == 0 {
                progress(ReplayProgress { phase: Phase::Outputs, done, total });
            }
            let key = record.key.as_deref().unwrap_or_default();
            if key == symbol.as_bytes() {
                let Ok(signal) = decode_signal(&record.value) else { continue };
                let (first, last) = ends.unwrap_or((signal.bar_end_ns, signal.bar_end_ns));
                ends = Some((first.min(signal.bar_end_ns), last.max(signal.bar_end_ns)));
            } else if let Ok(other) = std::str::from_utf8(key)
                && known.len() < KNOWN_MAX
                && !known.contains(other)
            {
                known.insert(other.to_owned());
            }
        }
    }
    let (url, topic, symbol) = (log.url(), topic.to_owned(), symbol.to_owned());
    Ok(match ends {
        Some((first, last)) => {
            ReplayError::NoSignal { url, topic, symbol, first: utc(first), last: utc(last) }
        }
        None => ReplayError::NoSymbol { url, topic, symbol, known },
    })
}
