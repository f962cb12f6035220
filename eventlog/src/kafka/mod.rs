//! The log on Apache Kafka, through librdkafka.
//!
//! ```text
//!  KafkaLog ── Cluster ── queries: topics, offsets, settings
//!     │
//!     ├── KafkaConsumer ── NativeConsumer   own client; batches off its queue, held until they are polled
//!     │                          ▲
//!     │                     Members         who reads for which group, for the offsets in transactions
//!     │                          ▼
//!     └── KafkaProducer                     own client; one transaction at a time, and the meaning of its errors
//! ```
//!
//! Offsets are not dense: a transaction ends with a marker in each partition; the marker takes an offset but is no
//! record. Records are visible once their transaction and all older ones of the partition have ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::{
    ClientFigures, Consumer, EventLog, LogError, OffsetRange, PartitionEnd, Producer, RecordClock, TopicInfo,
    TopicPartition, TopicSpec,
};

mod caller;
mod cluster;
mod consumer;
mod context;
mod failure;
mod figures;
mod limits;
mod native;
mod options;
mod producer;
mod watchdog;

pub use options::{GroupProtocol, KafkaOptions, is_broker_list};

use cluster::Cluster;
use consumer::KafkaConsumer;
use context::Context;
use failure::refused;
use native::NativeConsumer;
use producer::KafkaProducer;

/// Largest size of unacknowledged records, in bytes; a send beyond it waits.
pub const TRANSACTION_BYTES_MAX: usize = 512 << 20;

/// The group name that librdkafka requires of readers. They never join it and commit nothing.
const READER_GROUP: &str = "warptape.reader";

/// A log on a Kafka cluster. Clones share it.
#[derive(Clone)]
pub struct KafkaLog {
    cluster: Arc<Cluster>,
    members: Arc<Members>,
}

/// The consumers of this process that are members of a group, by group.
#[derive(Default)]
struct Members(Mutex<HashMap<String, Weak<NativeConsumer>>>);

impl Members {
    fn add(&self, group: &str, member: &Arc<NativeConsumer>) {
        let mut members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        members.insert(group.to_owned(), Arc::downgrade(member));
    }

    fn find(&self, group: &str) -> Option<Arc<NativeConsumer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(group)?.upgrade()
    }
}

impl KafkaLog {
    /// Connects to a cluster. An unreachable broker, a rejected password and an unknown option are errors here.
    pub fn open(options: KafkaOptions) -> Result<Self, LogError> {
        limits::check(&options)?;
        let cluster = Arc::new(Cluster::connect(options)?);
        Ok(Self { cluster, members: Arc::default() })
    }

    fn refuse_empty(&self, argument: &'static str, name: &str) -> Result<(), LogError> {
        if !name.is_empty() && !name.contains('\0') {
            return Ok(());
        }
        Err(LogError::Argument {
            url: self.url(),
            argument,
            value: name.to_owned(),
            allowed: "use a name without zero bytes".to_owned(),
        })
    }
}

impl EventLog for KafkaLog {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        self.cluster.create_topics(topics)
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        self.cluster.topics()
    }

    fn topics_named(&self, names: &[&str]) -> Result<Vec<TopicInfo>, LogError> {
        self.cluster.topics_named(names)
    }

    fn topic_names(&self) -> Result<Vec<String>, LogError> {
        self.cluster.topic_names()
    }

    fn partitions(&self, topic: &str) -> Result<i32, LogError> {
        Ok(self.cluster.partitions_if_any(topic)?.unwrap_or(0))
    }

    fn reach(&self, topic: &str, timeout: Duration) -> Result<(), LogError> {
        self.cluster.reach(topic, timeout)
    }

    fn client_figures(&self) -> Vec<ClientFigures> {
        self.cluster.board.read()
    }

    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError> {
        self.refuse_empty("consumer group", group)?;
        let (cluster, members) = (Arc::clone(&self.cluster), Arc::clone(&self.members));
        Ok(Box::new(KafkaConsumer::member(cluster, members, group, topics)?))
    }

    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError> {
        Ok(Box::new(KafkaConsumer::reader(Arc::clone(&self.cluster), partitions)?))
    }

    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError> {
        self.refuse_empty("transactional id", transactional_id)?;
        let (cluster, members) = (Arc::clone(&self.cluster), Arc::clone(&self.members));
        Ok(Box::new(KafkaProducer::new(cluster, members, transactional_id)?))
    }

    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.refuse_empty("consumer group", group)?;
        self.cluster.check_partition(partition)?;
        let config = self.cluster.options.consumer(group);
        let consumer = NativeConsumer::new(&config, Context::default())
            .map_err(|error| refused(&self.cluster.url, error))?;
        let committed = self.cluster.committed(&consumer, group, std::slice::from_ref(partition))?;
        Ok(committed[0])
    }

    fn offsets(&self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.cluster.check_partition(partition)?;
        self.cluster.offsets(partition)
    }

    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError> {
        self.cluster.check_partition(partition)?;
        self.cluster.written_end(partition)
    }

    fn ends(&self, partitions: &[TopicPartition]) -> Result<Vec<PartitionEnd>, LogError> {
        self.cluster.ends(partitions)
    }

    fn record_bytes_max(&self, topics: &[&str]) -> Result<Vec<usize>, LogError> {
        self.cluster.record_bytes_max(topics)
    }

    fn record_clock(&self, topic: &str) -> Result<Option<RecordClock>, LogError> {
        self.cluster.record_clock(topic)
    }

    /// Claims nothing: if two processes write under one transactional id, the newer one fences the older.
    fn claim(&self, _name: &str) -> Result<Box<dyn Send>, LogError> {
        Ok(Box::new(()))
    }

    fn has_member(&self, group: &str) -> Result<bool, LogError> {
        self.refuse_empty("consumer group", group)?;
        self.cluster.has_member(group)
    }

    fn url(&self) -> String {
        self.cluster.url.clone()
    }
}
