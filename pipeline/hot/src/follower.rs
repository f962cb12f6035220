//! Reads the committed log beside the engine: the journal, and signals and results of the partitions it is told.

use std::time::Duration;

use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::journal::PartitionId;
use xxhash_rust::xxh3::xxh3_64;

use crate::HotConfig;
use crate::keys::PositionValue;

/// Records of one fetch.
const RECORDS_MAX: usize = 4_096;
/// Bytes of one fetch, about.
const BYTES_MAX: usize = 4 << 20;
/// Longest wait for a record that should be there.
const RECORD_WAIT: Duration = Duration::from_secs(1);
/// Wait between two looks whether the end is reached.
const END_WAIT: Duration = Duration::from_millis(100);

/// A topic that is followed partition by partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// Signals.
    Signals,
    /// Results of risk requests.
    Results,
}

/// What a poll gave.
pub(super) enum Read {
    /// Records of a partition of a topic that is followed.
    Followed(Followed, PartitionId, Vec<Record>),
    /// Entries of a partition of the journal.
    Journal(usize, Vec<Record>),
    /// Nothing in the time given.
    Nothing,
}

/// A reader of signals, results and journal, outside any group.
pub(super) struct Follower {
    reader: Box<dyn Consumer>,
    signals: String,
    results: String,
    journal: String,
}

impl Follower {
    /// Begins at these offsets of the journal's partitions. Signals and results are read from [`Self::follow`] on.
    pub(super) fn open(
        log: &dyn EventLog,
        config: &HotConfig,
        journal_next: impl Iterator<Item = i64>,
    ) -> Result<Self, LogError> {
        let HotConfig { signals, results, journal, .. } = config;
        let partition = |topic: &str, partition| TopicPartition { topic: topic.to_owned(), partition };
        let mut followed = Vec::new();
        for topic in [signals, results] {
            followed.extend((0..partitions(log, topic)?).map(|number| partition(topic, number)));
        }
        let journal_partitions: Vec<_> =
            (0..).zip(journal_next).map(|(number, next)| (partition(journal, number), next)).collect();
        let all: Vec<_> =
            followed.iter().chain(journal_partitions.iter().map(|(source, _)| source)).cloned().collect();
        let mut reader = log.reader(&all)?;
        reader.pause(&followed)?;
        for (source, next) in &journal_partitions {
            reader.seek(source, *next)?;
        }
        let (signals, results, journal) = (signals.clone(), results.clone(), journal.clone());
        Ok(Self { reader, signals, results, journal })
    }

    /// Waits for records for so long at most.
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<Read, LogError> {
        let Fetched::Records { source, records } = self.reader.poll(timeout, RECORDS_MAX, BYTES_MAX)? else {
            return Ok(Read::Nothing);
        };
        Ok(if source.topic == self.journal {
            Read::Journal(source.partition as usize, records)
        } else if source.topic == self.results {
            Read::Followed(Followed::Results, source.partition, records)
        } else {
            Read::Followed(Followed::Signals, source.partition, records)
        })
    }

    /// Reads a partition from an offset on.
    pub(super) fn follow(
        &mut self,
        topic: Followed,
        partition: PartitionId,
        offset: i64,
    ) -> Result<(), LogError> {
        let source = self.source(topic, partition);
        self.reader.seek(&source, offset)?;
        self.reader.resume(&[source])
    }

    /// Reads nothing of a partition any more.
    pub(super) fn leave(&mut self, partition: PartitionId) -> Result<(), LogError> {
        let both = [Followed::Signals, Followed::Results].map(|topic| self.source(topic, partition));
        self.reader.pause(&both)
    }

    /// Where a partition begins and ends.
    pub(super) fn range(&mut self, topic: Followed, partition: PartitionId) -> Result<OffsetRange, LogError> {
        let source = self.source(topic, partition);
        self.reader.offsets(&source)
    }

    /// Was everything polled that lies before this offset? The last offsets may have no records.
    pub(super) fn has_reached(
        &mut self,
        topic: Followed,
        partition: PartitionId,
        offset: i64,
    ) -> Result<bool, LogError> {
        let source = self.source(topic, partition);
        Ok(self.reader.position(&source)? >= offset)
    }

    /// Where a partition of the journal ends.
    pub(super) fn journal_end(&mut self, partition: usize) -> Result<i64, LogError> {
        let source = TopicPartition { topic: self.journal.clone(), partition: partition as i32 };
        Ok(self.reader.offsets(&source)?.next)
    }

    fn source(&self, topic: Followed, partition: PartitionId) -> TopicPartition {
        let topic = match topic {
            Followed::Signals => &self.signals,
            Followed::Results => &self.results,
        };
        TopicPartition { topic: topic.clone(), partition }
    }
}

/// Number of partitions of a topic; 0 where there is none.
pub(super) fn partitions(log: &dyn EventLog, topic: &str) -> Result<i32, LogError> {
    log.partitions(topic)
}

/// Reads a partition from an offset to its present end.
pub(super) fn read_to_end(
    log: &dyn EventLog,
    source: &TopicPartition,
    from: i64,
    mut take: impl FnMut(Record),
) -> Result<(), LogError> {
    let mut reader = log.reader(std::slice::from_ref(source))?;
    let range = reader.offsets(source)?;
    reader.seek(source, from.max(range.first))?;
    // A log's end may lie behind its last record.
    while reader.position(source)? < range.next {
        if let Fetched::Records { records, .. } = reader.poll(END_WAIT, RECORDS_MAX, BYTES_MAX)? {
            records.into_iter().filter(|record| record.offset < range.next).for_each(&mut take);
        }
    }
    Ok(())
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
