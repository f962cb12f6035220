//! A log with changed contents, for tests.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use warptape_eventlog::{
    Consumer, EventLog, Fetched, LogError, OffsetRange, Producer, Record, RecordClock, TopicInfo,
    TopicPartition, TopicSpec,
};

/// Returns other records of one partition than the log has.
pub struct Tampered<'a> {
    log: &'a dyn EventLog,
    source: TopicPartition,
    records: Vec<Record>,
    /// Offsets of the partition; `None` for the log's own.
    range: Option<OffsetRange>,
    /// Number of requests for a group's offset so far; `None` if all of them succeed.
    asked: Option<AtomicU32>,
    /// Committed offset of the partition, for all groups; `None` for the log's own.
    committed: Option<i64>,
    /// Clock of the topic's records; `None` for the log's own.
    clock: Option<Option<RecordClock>>,
}

impl<'a> Tampered<'a> {
    /// Replaces the records of the partition with `records`.
    pub fn new(log: &'a dyn EventLog, topic: &str, partition: i32, records: Vec<Record>) -> Self {
        let source = TopicPartition { topic: topic.to_owned(), partition };
        Self { log, source, records, range: None, asked: None, committed: None, clock: None }
    }

    /// Makes the first request for a group's offset fail, and every second one after it.
    pub fn failing(self) -> Self {
        Self { asked: Some(AtomicU32::new(0)), ..self }
    }

    /// Sets the committed offset of the partition, for all groups.
    #[allow(dead_code, reason = "the tests of forged journals use it")]
    pub fn with_committed(self, offset: i64) -> Self {
        Self { committed: Some(offset), ..self }
    }

    /// Sets the clock of the topic's records.
    pub fn with_clock(self, clock: Option<RecordClock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Creates a log as `new` does, whose partition begins and ends with the records, like a trimmed log.
    pub fn trimmed(log: &'a dyn EventLog, topic: &str, partition: i32, records: Vec<Record>) -> Self {
        let range = records.first().zip(records.last());
        let range = range.map(|(first, last)| OffsetRange { first: first.offset, next: last.offset + 1 });
        Self { range, ..Self::new(log, topic, partition, records) }
    }
}

impl EventLog for Tampered<'_> {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        self.log.create_topics(topics)
    }

    /// Records appended after the end move the end; removed records do not, as in a damaged log.
    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        let mut topics = self.log.topics()?;
        let topic = topics.iter_mut().find(|topic| topic.spec.name == self.source.topic).unwrap();
        let range = &mut topic.offsets[self.source.partition as usize];
        if let Some(trimmed) = self.range {
            *range = trimmed;
            return Ok(topics);
        }
        range.next = self.records.last().map_or(range.next, |last| range.next.max(last.offset + 1));
        Ok(topics)
    }

    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError> {
        self.log.subscribe(group, topics)
    }

    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError> {
        match partitions {
            [source] if *source == self.source => {
                Ok(Box::new(Shown { source: source.clone(), records: self.records.clone(), position: 0 }))
            }
            _ => self.log.reader(partitions),
        }
    }

    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError> {
        self.log.producer(transactional_id)
    }

    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        if self.asked.as_ref().is_some_and(|asked| asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)) {
            let [found, action] = ["no answer", "try again"].map(str::to_owned);
            return Err(LogError::Unreadable { url: self.log.url(), found, action });
        }
        match self.committed.filter(|_| *partition == self.source) {
            Some(committed) => Ok(Some(committed)),
            None => self.log.committed(group, partition),
        }
    }

    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError> {
        match self.range.filter(|_| *partition == self.source) {
            Some(range) => Ok(range.next),
            None => self.log.written_end(partition),
        }
    }

    fn record_bytes_max(&self, topics: &[&str]) -> Result<Vec<usize>, LogError> {
        self.log.record_bytes_max(topics)
    }

    fn record_clock(&self, topic: &str) -> Result<Option<RecordClock>, LogError> {
        match self.clock.filter(|_| topic == self.source.topic) {
            Some(clock) => Ok(clock),
            None => self.log.record_clock(topic),
        }
    }

    fn claim(&self, name: &str) -> Result<Box<dyn Send>, LogError> {
        self.log.claim(name)
    }

    fn has_member(&self, group: &str) -> Result<bool, LogError> {
        self.log.has_member(group)
    }

    fn url(&self) -> String {
        self.log.url()
    }
}

/// Reads a partition in memory.
struct Shown {
    source: TopicPartition,
    records: Vec<Record>,
    position: i64,
}

impl Consumer for Shown {
    fn poll(&mut self, _: Duration, records_max: usize, _: usize) -> Result<Fetched, LogError> {
        let rest = self.records.iter().filter(|record| record.offset >= self.position);
        let records: Vec<Record> = rest.take(records_max).cloned().collect();
        let Some(last) = records.last() else { return Ok(Fetched::Idle) };
        self.position = last.offset + 1;
        Ok(Fetched::Records { source: self.source.clone(), records })
    }

    fn pause(&mut self, _: &[TopicPartition]) -> Result<(), LogError> {
        Ok(())
    }

    fn resume(&mut self, _: &[TopicPartition]) -> Result<(), LogError> {
        Ok(())
    }

    fn seek(&mut self, _: &TopicPartition, offset: i64) -> Result<(), LogError> {
        self.position = offset;
        Ok(())
    }

    fn committed(&mut self, _: &TopicPartition) -> Result<Option<i64>, LogError> {
        Ok(None)
    }

    fn position(&mut self, _: &TopicPartition) -> Result<i64, LogError> {
        let is_at_end = self.records.iter().all(|record| record.offset < self.position);
        Ok(if is_at_end { i64::MAX } else { self.position })
    }

    fn offsets(&mut self, _: &TopicPartition) -> Result<OffsetRange, LogError> {
        let first = self.records.first().map_or(0, |record| record.offset);
        Ok(OffsetRange { first, next: self.records.last().map_or(first, |record| record.offset + 1) })
    }
}
