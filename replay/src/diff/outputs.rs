//! Compares the signals of two runs.

use serde::Serialize;
use warptape_eventlog::{EventLog, OffsetRange, TopicPartition};
use warptape_schemas::{Describer, decode_signal, encode_signal};

use super::{DiffSide, Unlike, unlike};
use crate::partition_reader::PartitionReader;
use crate::{Phase, ReplayError, ReplayProgress};

/// Signals between two progress reports.
const PROGRESS_SIGNALS: u64 = 4_096;

/// The comparison of the signals of two runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OutputsCompared {
    /// Number of signals that are the same in both runs, bit for bit except the offset of their tick record.
    pub same: u64,
    /// Number of those signals whose tick records have different offsets.
    pub at_other_offsets: u64,
    /// Number of signals of each run after the first difference in their partition, or after the end of the other run's
    /// partition.
    pub rest: [u64; 2],
    /// The first difference of each partition that has one.
    pub first: Vec<SignalUnlike>,
}

/// The first signal of a partition that differs.
#[derive(Clone, Debug, Serialize)]
pub struct SignalUnlike {
    /// Partition of the signals.
    pub partition: i32,
    /// Offset of the signal in each run.
    pub offsets: [i64; 2],
    /// The fields that differ.
    pub fields: Vec<Unlike>,
}

impl OutputsCompared {
    /// True if each signal of one run is also in the other.
    pub fn is_same(&self) -> bool {
        self.rest == [0, 0]
    }
}

/// Compares all signals, in order within each partition.
pub(super) fn compare(
    sides: [DiffSide<'_>; 2],
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<OutputsCompared, ReplayError> {
    let [a, b] = sides;
    let ranges = [ranges(a)?, ranges(b)?];
    let [first, second] = &ranges;
    let total = first.iter().map(|range| (range.next - range.first).max(0) as u64).sum();
    let (mut compared, mut done, describer) = (OutputsCompared::default(), 0, Describer::new());
    for partition in 0..first.len().max(second.len()) {
        let mut readers = [open(a, first, partition)?, open(b, second, partition)?];
        loop {
            let [one, other] = &mut readers;
            let pair = (next(one)?, next(other)?);
            done += 1;
            if done % PROGRESS_SIGNALS == 0 {
                progress(ReplayProgress { phase: Phase::Outputs, done: done.min(total), total });
            }
            let (one, other) = match pair {
                (None, None) => break,
                (Some(one), Some(other)) => (one, other),
                (one, other) => {
                    let rest = [one.is_some(), other.is_some()].map(u64::from);
                    add_rest(&mut compared, rest, &mut readers)?;
                    break;
                }
            };
            match alike(&one.value, &other.value) {
                Some(is_elsewhere) => {
                    compared.same += 1;
                    compared.at_other_offsets += u64::from(is_elsewhere);
                }
                None => {
                    let shown =
                        |value: &[u8]| describer.describe(value).map(|(_, value)| value).unwrap_or_default();
                    compared.first.push(SignalUnlike {
                        partition: partition as i32,
                        offsets: [one.offset, other.offset],
                        fields: unlike("signal", &shown(&one.value), &shown(&other.value)),
                    });
                    add_rest(&mut compared, [1, 1], &mut readers)?;
                    break;
                }
            }
        }
    }
    Ok(compared)
}

/// Compares two signals. Returns `Some(true)` if only the offsets of their tick records differ, `Some(false)` if they
/// are identical, and `None` if they differ otherwise.
fn alike(a: &[u8], b: &[u8]) -> Option<bool> {
    if a == b {
        return Some(false);
    }
    let (Ok(one), Ok(mut other)) = (decode_signal(a), decode_signal(b)) else { return None };
    other.source_offset = one.source_offset;
    let encoded = |signal| {
        let mut bytes = Vec::new();
        encode_signal(signal, &mut bytes);
        bytes
    };
    (encoded(&one) == encoded(&other)).then_some(true)
}

fn add_rest(
    compared: &mut OutputsCompared,
    begun: [u64; 2],
    readers: &mut [Option<PartitionReader>; 2],
) -> Result<(), ReplayError> {
    for ((rest, begun), reader) in compared.rest.iter_mut().zip(begun).zip(readers) {
        *rest += begun;
        while next(reader)?.is_some() {
            *rest += 1;
        }
    }
    Ok(())
}

fn next(reader: &mut Option<PartitionReader>) -> Result<Option<warptape_eventlog::Record>, ReplayError> {
    match reader {
        Some(reader) => Ok(reader.next()?),
        None => Ok(None),
    }
}

/// Returns the offsets of the partitions of the signals; empty if the topic does not exist.
fn ranges(side: DiffSide<'_>) -> Result<Vec<OffsetRange>, ReplayError> {
    let found = side.log.topic(&side.options.sources.signals)?;
    Ok(found.map(|topic| topic.offsets).unwrap_or_default())
}

fn open(
    side: DiffSide<'_>,
    ranges: &[OffsetRange],
    partition: usize,
) -> Result<Option<PartitionReader>, ReplayError> {
    let Some(&range) = ranges.get(partition) else { return Ok(None) };
    let source = TopicPartition { topic: side.options.sources.signals.clone(), partition: partition as i32 };
    let log: &dyn EventLog = side.log;
    Ok(Some(PartitionReader::open(log, source, range)?))
}
