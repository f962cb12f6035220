//! A log whose records are in the registry's frame, for callers that only know single-object encoding.

use std::sync::Arc;
use std::time::Duration;

use warptape_eventlog::{
    ClientFigures, Consumer, EventLog, LogError, NewRecord, OffsetRange, PartitionEnd, Producer, RecordClock,
    TopicInfo, TopicPartition, TopicSpec,
};
use warptape_schemas::{SetEventTime, fingerprint_of, to_registry_frame};

use super::SchemaIds;
use super::framed_consumer::FramedConsumer;

/// Wraps a log whose records are in the registry's frame.
pub struct FramedLog {
    log: Arc<dyn EventLog>,
    ids: Arc<SchemaIds>,
    /// Topic whose records stay unchanged; `None` for no topic.
    untouched: Option<Arc<str>>,
    /// True if a partition waits for an unreachable registry; false if reading it is an error.
    waits: bool,
}

impl FramedLog {
    /// Creates the wrapper: records written to `log` get a frame, and records read from it lose theirs, except in the
    /// topic `untouched`.
    pub fn new(log: Arc<dyn EventLog>, ids: Arc<SchemaIds>, untouched: Option<&str>) -> Self {
        Self { log, ids, untouched: untouched.map(Arc::from), waits: false }
    }

    /// Makes each partition wait by itself for an unreachable registry.
    pub fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    fn framed(&self, consumer: Box<dyn Consumer>) -> Box<dyn Consumer> {
        Box::new(FramedConsumer::new(consumer, self.ids.clone(), self.untouched.clone(), self.waits))
    }
}

impl EventLog for FramedLog {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        self.log.create_topics(topics)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        self.log.topics()
    }

    fn topics_named(&self, names: &[&str]) -> Result<Vec<TopicInfo>, LogError> {
        self.log.topics_named(names)
    }

    fn topic_names(&self) -> Result<Vec<String>, LogError> {
        self.log.topic_names()
    }

    fn client_figures(&self) -> Vec<ClientFigures> {
        self.log.client_figures()
    }

    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError> {
        Ok(self.framed(self.log.subscribe(group, topics)?))
    }

    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError> {
        Ok(self.framed(self.log.reader(partitions)?))
    }

    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError> {
        let producer = self.log.producer(transactional_id)?;
        Ok(Box::new(FramedProducer { producer, ids: self.ids.clone(), recent: None, framed: Vec::new() }))
    }

    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.log.committed(group, partition)
    }

    fn partitions(&self, topic: &str) -> Result<i32, LogError> {
        self.log.partitions(topic)
    }

    fn reach(&self, topic: &str, timeout: Duration) -> Result<(), LogError> {
        self.log.reach(topic, timeout)
    }

    fn offsets(&self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.log.offsets(partition)
    }

    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError> {
        self.log.written_end(partition)
    }

    fn ends(&self, partitions: &[TopicPartition]) -> Result<Vec<PartitionEnd>, LogError> {
        self.log.ends(partitions)
    }

    /// The registry's frame is shorter than the header of single-object encoding, so the log's limits apply.
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

struct FramedProducer {
    producer: Box<dyn Producer>,
    ids: Arc<SchemaIds>,
    /// Topic, schema and id of the last record, because the next one probably has the same.
    recent: Option<(String, u64, u32)>,
    /// Buffer for a framed record.
    framed: Vec<u8>,
}

impl FramedProducer {
    fn id_of(&mut self, topic: &str, fingerprint: u64) -> u32 {
        match &self.recent {
            Some((recent, schema, id)) if recent == topic && *schema == fingerprint => *id,
            _ => {
                // A command registers its schemas before it opens a producer.
                let id = self.ids.id_of(topic, fingerprint).expect("the topic's schemas are registered");
                self.recent = Some((topic.to_owned(), fingerprint, id));
                id
            }
        }
    }
}

impl Producer for FramedProducer {
    fn begin(&mut self) -> Result<(), LogError> {
        self.producer.begin()
    }

    fn send(&mut self, record: NewRecord<'_>) -> Result<(), LogError> {
        let fingerprint = fingerprint_of(&record.value).expect("our encoders write single-object headers");
        // `SetEventTime` records keep their encoding, because ticks are read as they were published.
        if SetEventTime::version_of(fingerprint).is_some() {
            return self.producer.send(record);
        }
        let id = self.id_of(&record.topic, fingerprint);
        self.framed.clear();
        to_registry_frame(&record.value, id, &mut self.framed);
        self.producer.send(NewRecord { value: self.framed.as_slice().into(), ..record })
    }

    fn send_offsets(&mut self, group: &str, offsets: &[(TopicPartition, i64)]) -> Result<(), LogError> {
        self.producer.send_offsets(group, offsets)
    }

    fn send_position(&mut self, group: &str, partition: &TopicPartition, next: i64) -> Result<(), LogError> {
        self.producer.send_position(group, partition, next)
    }

    fn commit_as_owner(&mut self, is_owner: &dyn Fn() -> bool) -> Result<(), LogError> {
        self.producer.commit_as_owner(is_owner)
    }

    fn abort(&mut self) -> Result<(), LogError> {
        self.producer.abort()
    }
}
