//! Reads the committed log beside the engine: the journal, and the signals of the partitions it is told.

use std::time::Duration;

use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::journal::PartitionId;
use xxhash_rust::xxh3::xxh3_64;

use super::keys::PositionValue;

/// Records of one fetch.
const RECORDS_MAX: usize = 4_096;
/// Bytes of one fetch, about.
const BYTES_MAX: usize = 4 << 20;
/// Longest wait for a record that should be there.
const RECORD_WAIT: Duration = Duration::from_secs(1);

/// What a poll gave.
pub(super) enum Read {
    /// Signals of a partition.
    Signals(PartitionId, Vec<Record>),
    /// Entries of a partition of the journal.
    Journal(usize, Vec<Record>),
    /// Nothing in the time given.
    Nothing,
}

/// A reader of signals and journal, outside any group.
pub(super) struct Follower {
    reader: Box<dyn Consumer>,
    signals: String,
    journal: String,
}

impl Follower {
    /// Begins at these offsets of the journal's partitions. Signals are read from [`Self::follow`] on.
    pub(super) fn open(
        log: &dyn EventLog,
        signals: &str,
        journal: &str,
        journal_next: impl Iterator<Item = i64>,
    ) -> Result<Self, LogError> {
        let partition = |topic: &str, partition| TopicPartition { topic: topic.to_owned(), partition };
        let signal_partitions: Vec<_> =
            (0..partitions(log, signals)?).map(|number| partition(signals, number)).collect();
        let journal_partitions: Vec<_> =
            (0..).zip(journal_next).map(|(number, next)| (partition(journal, number), next)).collect();
        let all: Vec<_> = signal_partitions
            .iter()
            .chain(journal_partitions.iter().map(|(source, _)| source))
            .cloned()
            .collect();
        let mut reader = log.reader(&all)?;
        reader.pause(&signal_partitions)?;
        for (source, next) in &journal_partitions {
            reader.seek(source, *next)?;
        }
        Ok(Self { reader, signals: signals.to_owned(), journal: journal.to_owned() })
    }

    /// Waits for records for so long at most.
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<Read, LogError> {
        Ok(match self.reader.poll(timeout, RECORDS_MAX, BYTES_MAX)? {
            Fetched::Records { source, records } if source.topic == self.journal => {
                Read::Journal(source.partition as usize, records)
            }
            Fetched::Records { source, records } => Read::Signals(source.partition, records),
            Fetched::Idle | Fetched::Assigned(_) | Fetched::Revoked(_) | Fetched::Lost(_) => Read::Nothing,
        })
    }

    /// Reads the signals of a partition from an offset on.
    pub(super) fn follow(&mut self, partition: PartitionId, offset: i64) -> Result<(), LogError> {
        let source = self.source(partition);
        self.reader.seek(&source, offset)?;
        self.reader.resume(&[source])
    }

    /// Reads the signals of a partition no more.
    pub(super) fn leave(&mut self, partition: PartitionId) -> Result<(), LogError> {
        self.reader.pause(&[self.source(partition)])
    }

    /// Where the signals of a partition begin and end.
    pub(super) fn range(&mut self, partition: PartitionId) -> Result<OffsetRange, LogError> {
        let source = self.source(partition);
        self.reader.offsets(&source)
    }

    /// Were all signals polled that lie before this offset? The last offsets may have none.
    pub(super) fn has_reached(&mut self, partition: PartitionId, offset: i64) -> Result<bool, LogError> {
        let source = self.source(partition);
        Ok(self.reader.position(&source)? >= offset)
    }

    /// Where a partition of the journal ends.
    pub(super) fn journal_end(&mut self, partition: usize) -> Result<i64, LogError> {
        let source = TopicPartition { topic: self.journal.clone(), partition: partition as i32 };
        Ok(self.reader.offsets(&source)?.next)
    }

    fn source(&self, partition: PartitionId) -> TopicPartition {
        TopicPartition { topic: self.signals.clone(), partition }
    }
}

/// Number of partitions of a topic; 0 where there is none.
pub(super) fn partitions(log: &dyn EventLog, topic: &str) -> Result<i32, LogError> {
    let topics = log.topics()?;
    Ok(topics.iter().find(|info| info.spec.name == topic).map_or(0, |info| info.spec.partitions))
}

/// Is this the log that a position was written from? It is if the record before the position is the same.
pub(super) fn is_of_log(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
    position: &PositionValue,
) -> Result<bool, LogError> {
    let last = position.next_offset - 1;
    if last < range.first || last >= range.next {
        // Before the log's beginning there is nothing to compare, and all that follows is newer.
        return Ok(last < range.first);
    }
    let mut reader = log.reader(std::slice::from_ref(source))?;
    reader.seek(source, last)?;
    match reader.poll(RECORD_WAIT, 1, BYTES_MAX)? {
        Fetched::Records { records, .. } => Ok(records
            .first()
            .is_some_and(|record| record.offset == last && record_hash(record) == position.record_hash)),
        Fetched::Idle | Fetched::Assigned(_) | Fetched::Revoked(_) | Fetched::Lost(_) => Ok(false),
    }
}

/// What tells one record from another, as hex digits.
pub(super) fn record_hash(record: &Record) -> String {
    format!("{:016x}", xxh3_64(&record.value))
}
