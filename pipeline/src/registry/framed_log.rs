//! A log whose records are in the registry's frame, for those who know only single-object encoding.

use std::sync::Arc;
use std::time::Duration;

use warptape_eventlog::{
    ClientFigures, Consumer, EventLog, Fetched, LogError, NewRecord, OffsetRange, PartitionEnd, Producer,
    Record, RecordClock, TopicInfo, TopicPartition, TopicSpec,
};
use warptape_schemas::{fingerprint_of, registry_id_of, to_registry_frame, to_single_object};

use super::SchemaIds;

/// A log behind a registry.
pub struct FramedLog {
    log: Arc<dyn EventLog>,
    ids: Arc<SchemaIds>,
    /// Topic whose records are left as they are.
    untouched: Option<Arc<str>>,
}

impl FramedLog {
    /// Frames what is written to `log`; unframes what is read, but for the topic `untouched`.
    pub fn new(log: Arc<dyn EventLog>, ids: Arc<SchemaIds>, untouched: Option<&str>) -> Self {
        Self { log, ids, untouched: untouched.map(Arc::from) }
    }

    fn framed(&self, consumer: Box<dyn Consumer>) -> Box<dyn Consumer> {
        let (ids, untouched) = (self.ids.clone(), self.untouched.clone());
        Box::new(FramedConsumer { consumer, ids, untouched, ensured: None })
    }
}

impl EventLog for FramedLog {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        self.log.create_topics(topics)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        self.log.topics()
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

    /// A registry's frame is the shorter one.
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

struct FramedConsumer {
    consumer: Box<dyn Consumer>,
    ids: Arc<SchemaIds>,
    untouched: Option<Arc<str>>,
    /// The id that was asked for last: the next record's is likely the same.
    ensured: Option<u32>,
}

impl FramedConsumer {
    /// Asks for the ids of all records, and puts them into single-object encoding unless they are left as they are.
    fn unframe(&mut self, topic: &str, records: &mut [Record]) -> Result<(), LogError> {
        let touched = self.untouched.as_deref() != Some(topic);
        for record in records {
            let Some(id) = registry_id_of(&record.value) else { continue };
            if self.ensured != Some(id) {
                self.ids.ensure(id)?;
                self.ensured = Some(id);
            }
            // What is not known stays as it is, and whoever decodes it names the id.
            if touched && let Some(fingerprint) = self.ids.fingerprint_of(id) {
                to_single_object(&mut record.value, fingerprint);
            }
        }
        Ok(())
    }
}

impl Consumer for FramedConsumer {
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        let mut fetched = self.consumer.poll(timeout, records_max, bytes_max)?;
        if let Fetched::Records { source, records } = &mut fetched {
            self.unframe(&source.topic, records)?;
        }
        Ok(fetched)
    }

    fn leave_headers(&mut self) {
        self.consumer.leave_headers();
    }

    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.consumer.pause(partitions)
    }

    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        self.consumer.resume(partitions)
    }

    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError> {
        self.consumer.seek(partition, offset)
    }

    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.consumer.committed(partition)
    }

    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError> {
        self.consumer.position(partition)
    }

    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.consumer.offsets(partition)
    }
}

struct FramedProducer {
    producer: Box<dyn Producer>,
    ids: Arc<SchemaIds>,
    /// Topic, schema and id of the last record: the next one's are likely the same.
    recent: Option<(String, u64, u32)>,
    /// A record in its frame; kept for its memory.
    framed: Vec<u8>,
}

impl FramedProducer {
    fn id_of(&mut self, topic: &str, fingerprint: u64) -> u32 {
        match &self.recent {
            Some((recent, schema, id)) if recent == topic && *schema == fingerprint => *id,
            _ => {
                // A command registers what it writes before it opens a producer.
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
