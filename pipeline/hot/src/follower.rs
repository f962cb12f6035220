//! Reads the committed log beside the engine: the journal, and the signals and results of the given partitions.

use std::time::Duration;

use warptape_eventlog::{
    Consumer, EventLog, Fetched, LogError, OffsetRange, Record, Selection, TopicPartition,
};
use warptape_schemas::journal::PartitionId;
use xxhash_rust::xxh3::xxh3_64;

use crate::HotConfig;
use crate::keys::PositionValue;

/// Greatest number of records in one fetch.
const RECORDS_MAX: usize = 4_096;
/// Approximate greatest size of one fetch, in bytes.
const BYTES_MAX: usize = 4 << 20;
/// Longest wait for a record that should exist.
const RECORD_WAIT: Duration = Duration::from_secs(1);
/// Longest wait of one poll during a read to the end.
const END_WAIT: Duration = Duration::from_millis(100);

/// A topic followed partition by partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// Signals.
    Signals,
    /// Results of risk requests.
    Results,
}

/// Result of a poll.
pub(super) enum Read {
    /// Records of a partition of a followed topic.
    Followed(Followed, PartitionId, Vec<Record>),
    /// Entries of a partition of the journal.
    Journal(usize, Vec<Record>),
    /// No record within the timeout.
    Nothing,
}

/// A reader of signals, results and the journal, outside of any consumer group.
pub(super) struct Follower {
    reader: Box<dyn Consumer>,
    signals: String,
    results: String,
    journal: String,
}

impl Follower {
    /// Begins at these offsets of the journal's partitions. Signals and results are read only after [`Self::follow`].
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

    /// Waits for records, at most `timeout`.
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

    /// Starts reading a partition from an offset on.
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

    /// Stops reading a partition.
    pub(super) fn leave(&mut self, partition: PartitionId) -> Result<(), LogError> {
        let both = [Followed::Signals, Followed::Results].map(|topic| self.source(topic, partition));
        self.reader.pause(&both)
    }

    /// Returns the first and next offset of a partition.
    pub(super) fn range(&mut self, topic: Followed, partition: PartitionId) -> Result<OffsetRange, LogError> {
        let source = self.source(topic, partition);
        self.reader.offsets(&source)
    }

    /// Returns true if everything before this offset was polled. There may be no records at the last offsets.
    pub(super) fn has_reached(
        &mut self,
        topic: Followed,
        partition: PartitionId,
        offset: i64,
    ) -> Result<bool, LogError> {
        let source = self.source(topic, partition);
        Ok(self.reader.position(&source)? >= offset)
    }

    /// Returns the end of a partition of the journal.
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

/// Returns the number of partitions of a topic; 0 if it does not exist.
pub(super) fn partitions(log: &dyn EventLog, topic: &str) -> Result<i32, LogError> {
    log.partitions(topic)
}

/// Reads a partition from an offset to its current end.
pub(super) fn read_to_end(
    log: &dyn EventLog,
    source: &TopicPartition,
    from: i64,
    mut take: impl FnMut(Record),
) -> Result<(), LogError> {
    read_selected_to_end(log, source, from, &Selection::default(), &mut take)
}

/// Reads a partition as [`read_to_end`] does. Records that are not selected may be left out.
pub(super) fn read_selected_to_end(
    log: &dyn EventLog,
    source: &TopicPartition,
    from: i64,
    selection: &Selection,
    mut take: impl FnMut(Record),
) -> Result<(), LogError> {
    let mut reader = log.reader(std::slice::from_ref(source))?;
    reader.select(selection);
    let range = reader.offsets(source)?;
    reader.seek(source, from.max(range.first))?;
    // The end of a log may be after its last record.
    while reader.position(source)? < range.next {
        if let Fetched::Records { records, .. } = reader.poll(END_WAIT, RECORDS_MAX, BYTES_MAX)? {
            records.into_iter().filter(|record| record.offset < range.next).for_each(&mut take);
        }
    }
    Ok(())
}

/// Returns true if a position was written from this log: the record before the position must have the same hash.
pub(super) fn is_of_log(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
    position: &PositionValue,
) -> Result<bool, LogError> {
    let last = position.next_offset - 1;
    if last < range.first || last >= range.next {
        // A record that was removed from the log's beginning cannot be compared, and all remaining records are newer.
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

/// Returns a hash that identifies a record, as hex digits.
pub(super) fn record_hash(record: &Record) -> String {
    format!("{:016x}", xxh3_64(&record.value))
}
