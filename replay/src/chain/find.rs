//! Finds the signal that a symbol and an optional time identify.

use std::collections::BTreeSet;

use warptape_eventlog::{EventLog, OffsetRange, Record, Selection, TopicPartition};
use warptape_schemas::decode_signal;
use warptape_schemas::signal::Signal;

use super::slowest::first_signal;
use crate::partition_reader::PartitionReader;
use crate::{Phase, ReplayError, ReplayProgress, VerifyOptions, utc};

/// Greatest number of symbols that are searched for similar names.
const KNOWN_MAX: usize = 10_000;
/// Distance before the time at which the search begins, in ns. Bars are signalled in the order of their ends, except
/// for bars that close within the allowed lateness of each other.
const LATENESS_NS: i64 = 60_000_000_000;
/// Number of signals in the first piece that is read from the end of a partition.
const PIECE_SIGNALS: i64 = 4_096;
/// Signals between two progress reports.
const PROGRESS_SIGNALS: u64 = 4_096;

/// A signal identified by its symbol.
#[derive(Clone, Copy, Debug)]
pub struct SignalOfSymbol<'a> {
    /// The symbol, `VENUE:TICKER`.
    pub symbol: &'a str,
    /// Bar of the signal, as signals name it; `None` for any.
    pub bar: Option<&'a str>,
    /// Time at or after which the bar ends, ns since the epoch; `None` for the newest signal.
    pub at_ns: Option<i64>,
}

impl SignalOfSymbol<'_> {
    /// Returns the records with the symbol's key.
    fn selection(self) -> Selection {
        let key = Some(self.symbol.as_bytes().to_vec());
        Selection { key, by_own_key: true, ..Selection::default() }
    }

    /// Returns the record's signal if it is of the symbol and the bar.
    fn of(self, record: &Record) -> Option<Signal<'_>> {
        if record.key.as_deref() != Some(self.symbol.as_bytes()) {
            return None;
        }
        let signal = decode_signal(&record.value).ok()?;
        self.bar.is_none_or(|bar| signal.bar_spec == bar).then_some(signal)
    }
}

/// Returns partition and offset of the first signal whose bar ends at or after the time; of the newest signal if no
/// time is given.
///
/// # Errors
/// If the log cannot be read, or has no such signal.
pub fn find_signal(
    log: &dyn EventLog,
    options: &VerifyOptions,
    wanted: SignalOfSymbol<'_>,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<(i32, i64), ReplayError> {
    let topic = &options.sources.signals;
    let ranges = log.topic(topic)?.map(|info| info.offsets).unwrap_or_default();
    let Some(at_ns) = wanted.at_ns else {
        return match newest(log, topic, &ranges, wanted, progress)? {
            Some(found) => Ok(found),
            None => Err(not_found(log, topic, &ranges, wanted, progress)?),
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
        reader.select(&wanted.selection());
        while let Some(record) = reader.next()? {
            let Some(signal) = wanted.of(&record) else { continue };
            if signal.bar_end_ns < at_ns {
                continue;
            }
            let candidate = (signal.bar_end_ns, partition, record.offset);
            best = best.filter(|best| *best <= candidate).or(Some(candidate));
            // Later signals end later, except for lateness, and each symbol is in one partition.
            break;
        }
        done += (range.next - first) as u64;
        progress(ReplayProgress { phase: Phase::Outputs, done, total });
    }
    match best {
        Some((_, partition, offset)) => Ok((partition, offset)),
        None => Err(not_found(log, topic, &ranges, wanted, progress)?),
    }
}

/// Returns partition and offset of the last matching signal; `None` if there is none. Reads partitions backwards from
/// their ends, in pieces of increasing length.
fn newest(
    log: &dyn EventLog,
    topic: &str,
    ranges: &[OffsetRange],
    wanted: SignalOfSymbol<'_>,
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
            reader.select(&wanted.selection());
            while let Some(record) = reader.next()? {
                if let Some(signal) = wanted.of(&record) {
                    last = Some((signal.bar_end_ns, partition, record.offset));
                }
            }
            done += (next - first) as u64;
            progress(ReplayProgress { phase: Phase::Outputs, done, total });
            (next, length) = (first, length.saturating_mul(2));
        }
        // A symbol may be in several partitions only if partitions were added.
        best = best.max(last);
    }
    Ok(best.map(|(_, partition, offset)| (partition, offset)))
}

/// Explains why no signal was found: when the symbol's bars end, which bars it has, or which symbols have signals.
fn not_found(
    log: &dyn EventLog,
    topic: &str,
    ranges: &[OffsetRange],
    wanted: SignalOfSymbol<'_>,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<ReplayError, ReplayError> {
    let mut done = 0;
    let total = ranges.iter().map(|range| (range.next - range.first) as u64).sum();
    let (mut ends, mut bars): (Option<(i64, i64)>, BTreeSet<String>) = (None, BTreeSet::new());
    let mut known: BTreeSet<String> = BTreeSet::new();
    for (partition, &range) in (0..).zip(ranges) {
        let source = TopicPartition { topic: topic.to_owned(), partition };
        let mut reader = PartitionReader::open(log, source, range)?;
        while let Some(record) = reader.next()? {
            done += 1;
            if done % PROGRESS_SIGNALS == 0 {
                progress(ReplayProgress { phase: Phase::Outputs, done, total });
            }
            let key = record.key.as_deref().unwrap_or_default();
            if let Some(signal) = (SignalOfSymbol { bar: None, ..wanted }).of(&record) {
                if !bars.contains(&*signal.bar_spec) {
                    bars.insert(signal.bar_spec.to_string());
                }
                if wanted.bar.is_none_or(|bar| signal.bar_spec == bar) {
                    let (first, last) = ends.unwrap_or((signal.bar_end_ns, signal.bar_end_ns));
                    ends = Some((first.min(signal.bar_end_ns), last.max(signal.bar_end_ns)));
                }
            } else if key != wanted.symbol.as_bytes()
                && let Ok(other) = std::str::from_utf8(key)
                && known.len() < KNOWN_MAX
                && !known.contains(other)
            {
                known.insert(other.to_owned());
            }
        }
    }
    let (url, topic, symbol) = (log.url(), topic.to_owned(), wanted.symbol.to_owned());
    Ok(match (ends, wanted.bar) {
        (Some((first, last)), _) => {
            ReplayError::NoSignal { url, topic, symbol, first: utc(first), last: utc(last) }
        }
        (None, Some(bar)) if !bars.is_empty() => {
            let known = bars.into_iter().collect::<Vec<_>>().join(", ");
            ReplayError::NoBar { url: format!("{url} ({topic})"), symbol, bar: bar.to_owned(), known }
        }
        (None, _) => ReplayError::NoSymbol { url, topic, symbol, known },
    })
}
