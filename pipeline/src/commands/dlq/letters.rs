//! The records of the dead-letter topic, partition by partition.

use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_replay::PartitionReader;
use warptape_schemas::{DeadLetter, DecodeError, decode_dead_letter};

use crate::usage_error::UsageError;

/// The dead-letter topic, up to its end when the command begins.
pub struct Letters<'a> {
    log: &'a dyn EventLog,
    topic: String,
    ranges: Vec<OffsetRange>,
}

/// A record of the topic.
pub struct Letter {
    pub partition: i32,
    pub record: Record,
    /// The dead letter; an error if the record cannot be decoded as one, because other programs may write to the topic.
    pub content: Result<DeadLetter, DecodeError>,
}

/// Offsets, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from: Option<i64>,
    pub to: Option<i64>,
}

impl Range {
    /// All offsets.
    pub const ALL: Range = Range { from: None, to: None };
}

impl<'a> Letters<'a> {
    pub fn new(log: &'a dyn EventLog, topic: &str) -> anyhow::Result<Self> {
        let found = log.topic(topic)?.ok_or_else(|| {
            UsageError(format!("{} has no topic {topic}: `warptape run` creates it", log.url()))
        })?;
        Ok(Self { log, topic: topic.to_owned(), ranges: found.offsets })
    }

    pub fn partitions(&self) -> impl Iterator<Item = i32> + use<> {
        0..self.ranges.len() as i32
    }

    pub fn check_partition(&self, partition: i32) -> Result<(), UsageError> {
        if self.partitions().any(|known| known == partition) {
            return Ok(());
        }
        let last = self.ranges.len() as i32 - 1;
        Err(UsageError(format!("{} has no partition {partition}: give one from 0 to {last}", self.topic)))
    }

    pub fn source(&self, partition: i32) -> TopicPartition {
        TopicPartition { topic: self.topic.clone(), partition }
    }

    /// Returns the first and the next offset of a partition.
    pub fn offsets(&self, partition: i32) -> OffsetRange {
        self.ranges[partition as usize]
    }

    /// Passes on the records of a partition with offsets in `range`, in order.
    pub fn read(
        &self,
        partition: i32,
        range: Range,
        each: &mut dyn FnMut(Letter) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let whole = self.offsets(partition);
        let first = range.from.map_or(whole.first, |from| from.max(whole.first));
        let next = range.to.map_or(whole.next, |to| to.saturating_add(1).min(whole.next));
        if first >= next {
            return Ok(());
        }
        let mut reader =
            PartitionReader::open(self.log, self.source(partition), OffsetRange { first, next })?;
        while let Some(record) = reader.next()? {
            let content = decode_dead_letter(&record.value);
            each(Letter { partition, record, content })?;
        }
        Ok(())
    }
}
