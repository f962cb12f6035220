//! Reads one partition up to an end that is fixed before, in bounded pieces.

use std::collections::VecDeque;
use std::time::Duration;

use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, OffsetRange, Record, TopicPartition};

/// Records of one fetch.
const FETCH_RECORDS_MAX: usize = 256;
/// Bytes of one fetch, about.
const FETCH_BYTES_MAX: usize = 2 << 20;
/// Longest wait for records that should be there. Only a log that lost some lets it pass.
const FETCH_WAIT_MAX: Duration = Duration::from_secs(1);

/// Records of a partition in order.
pub struct PartitionReader {
    pub(crate) source: TopicPartition,
    consumer: Box<dyn Consumer>,
    fetched: VecDeque<Record>,
    /// The next record to be fetched is at or after this offset.
    next: i64,
    end: i64,
}

impl PartitionReader {
    /// Reads the records of `range`.
    pub fn open(log: &dyn EventLog, source: TopicPartition, range: OffsetRange) -> Result<Self, LogError> {
        let mut consumer = log.reader(std::slice::from_ref(&source))?;
        consumer.seek(&source, range.first)?;
        Ok(Self { source, consumer, fetched: VecDeque::new(), next: range.first, end: range.next })
    }

    /// The next record; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<Record>, LogError> {
        if self.fetched.is_empty() {
            self.fetched = self.fetch()?.into();
        }
        Ok(self.fetched.pop_front())
    }

    /// The next records; none at the end.
    pub(crate) fn next_fetch(&mut self) -> Result<Vec<Record>, LogError> {
        if self.fetched.is_empty() { self.fetch() } else { Ok(std::mem::take(&mut self.fetched).into()) }
    }

    fn fetch(&mut self) -> Result<Vec<Record>, LogError> {
        while self.next < self.end {
            match self.consumer.poll(FETCH_WAIT_MAX, FETCH_RECORDS_MAX, FETCH_BYTES_MAX)? {
                Fetched::Records { mut records, .. } => {
                    records.truncate(records.partition_point(|record| record.offset < self.end));
                    self.next = records.last().map_or(self.end, |last| last.offset + 1);
                    return Ok(records);
                }
                // The rest of the partition was removed.
                Fetched::Idle => self.next = self.end,
                Fetched::Assigned(_) | Fetched::Revoked(_) => {}
            }
        }
        Ok(Vec::new())
    }
}
