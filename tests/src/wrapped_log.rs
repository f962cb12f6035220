//! An embedded log in which a test can replace parts: group consumers, readers and producers.

use warptape_eventlog::{
    Consumer, EventLog, LogError, Producer, RecordClock, SqliteLog, TopicInfo, TopicPartition, TopicSpec,
};

/// A function by which a test wraps a group consumer.
pub type WrapConsumer = Box<dyn Fn(Box<dyn Consumer>) -> Box<dyn Consumer> + Send + Sync>;
/// A function by which a test wraps a reader outside of groups, given the partitions that it reads.
pub type WrapReader = Box<dyn Fn(&[TopicPartition], Box<dyn Consumer>) -> Box<dyn Consumer> + Send + Sync>;
/// A function by which a test wraps a producer, given its transactional id.
pub type WrapProducer = Box<dyn Fn(&str, Box<dyn Producer>) -> Box<dyn Producer> + Send + Sync>;

/// An embedded log with replaceable parts.
pub struct WrappedLog {
    log: SqliteLog,
    consumer: WrapConsumer,
    reader: WrapReader,
    producer: WrapProducer,
}

impl WrappedLog {
    /// Creates a log that does not change anything yet.
    pub fn new(log: SqliteLog) -> Self {
        Self {
            log,
            consumer: Box::new(|consumer| consumer),
            reader: Box::new(|_, reader| reader),
            producer: Box::new(|_, producer| producer),
        }
    }

    /// Wraps the group consumers.
    pub fn with_consumers(self, consumer: WrapConsumer) -> Self {
        Self { consumer, ..self }
    }

    /// Wraps the readers.
    pub fn with_readers(self, reader: WrapReader) -> Self {
        Self { reader, ..self }
    }

    /// Wraps the producers.
    pub fn with_producers(self, producer: WrapProducer) -> Self {
        Self { producer, ..self }
    }
}

impl EventLog for WrappedLog {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        self.log.create_topics(topics)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        self.log.topics()
    }

    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError> {
        self.log.subscribe(group, topics).map(&self.consumer)
    }

    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError> {
        self.log.reader(partitions).map(|reader| (self.reader)(partitions, reader))
    }

    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError> {
        self.log.producer(transactional_id).map(|producer| (self.producer)(transactional_id, producer))
    }

    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.log.committed(group, partition)
    }

    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError> {
        self.log.written_end(partition)
    }

    fn record_bytes_max(&self, topics: &[&str]) -> Result<Vec<usize>, LogError> {
        self.log.record_bytes_max(topics)
    }

    fn record_clock(&self, topic: &str) -> Result<Option<RecordClock>, LogError> {
        self.log.record_clock(topic)
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
