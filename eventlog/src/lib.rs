//! The event log's interface: topics of partitioned records, consumers with groups and committed offsets, and
//! transactional producers. One transaction covers records of many topics and source offsets.
//!
//! Start at [`open_url`], [`SqliteLog`] or [`KafkaLog`]. Only this crate knows how a log is stored. It does not
//! interpret the records' bytes.

use std::borrow::Cow;
use std::time::Duration;

pub mod background;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod kafka;
mod selection;
mod sigbus;
pub mod sqlite;
mod topic;
mod url;

pub use error::LogError;
pub use kafka::{KafkaLog, KafkaOptions};
pub use selection::{About, Selection};
pub use sigbus::say_before_sigbus;
pub use sqlite::{Durability, SqliteLog};
pub use topic::{PARTITIONS_MAX, TOPIC_NAME_BYTES_MAX};
pub use url::{OpenMode, open_url, sqlite_path};
pub use warptape_record::{Record, TopicPartition, UNREADABLE_BATCH_HEADER, UnreadableBatch};

/// A topic with its storage rules. Fields that are `None` are left to the log. The embedded log ignores replication and
/// retention; [`sqlite::Trimmer`] removes its old records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicSpec {
    /// Name, unique in the log.
    pub name: String,
    /// Number of partitions. On Kafka it may grow later.
    pub partitions: i32,
    /// Keep only the newest record of each key (older ones may stay readable for a while).
    pub compacted: bool,
    /// Number of brokers that keep a copy of each partition.
    pub replication: Option<i16>,
    /// Number of copies that must have a record before it counts as written.
    pub min_insync_replicas: Option<i16>,
    /// Age from which records may be removed, if the topic is not compacted.
    pub retention: Option<Duration>,
}

/// A topic as found in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicInfo {
    /// The topic.
    pub spec: TopicSpec,
    /// First and next offset of each partition.
    pub offsets: Vec<OffsetRange>,
}

/// Offsets of a partition: `first..next`. Some offsets in between have no record: it was compacted away or aborted, or
/// is a marker of the log (Kafka ends transactions with one). A reader has reached the end when [`Consumer::position`]
/// has reached `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// Oldest offset that can be read.
    pub first: i64,
    /// End of the readable records: the next record that becomes readable has at least this offset.
    pub next: i64,
}

/// A record to be written. A producer copies it, so it may borrow its data.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NewRecord<'a> {
    /// Topic name.
    pub topic: Cow<'a, str>,
    /// Partition number.
    pub partition: i32,
    /// Key, if any.
    pub key: Option<Cow<'a, [u8]>>,
    /// Headers in order.
    pub headers: Cow<'a, [(String, Vec<u8>)]>,
    /// Create time, nanoseconds since the epoch. Kafka keeps milliseconds, and treats 0 as the current time.
    pub timestamp_ns: i64,
    /// Payload.
    pub value: Cow<'a, [u8]>,
    /// Subject, for readers that look for some records; `None` if the record may be about anything.
    pub about: Option<About<'a>>,
}

/// Result of a poll.
#[derive(Debug)]
pub enum Fetched {
    /// These partitions are assigned to the consumer from now on. It starts at their committed offsets unless told to
    /// seek. If the log no longer has such an offset, it starts at the nearest one.
    Assigned(Vec<TopicPartition>),
    /// These partitions are revoked. Their effects must be committed or dropped before the next poll, which hands the
    /// partitions over.
    Revoked(Vec<TopicPartition>),
    /// These partitions already belong to another member, because this one was silent for too long. Their effects can
    /// no longer be committed and must be dropped.
    Lost(Vec<TopicPartition>),
    /// Records of one partition, by ascending offset.
    Records {
        /// Partition of the records.
        source: TopicPartition,
        /// The records; never empty.
        records: Vec<Record>,
    },
    /// No record came within the timeout.
    Idle,
}

/// An event log. Handles are cheap; consumers and producers own their state and may move to other threads.
pub trait EventLog: Send + Sync {
    /// Creates missing topics. An existing topic with another number of partitions or another storage rule is an error.
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError>;
    /// Returns all topics, sorted by name. On Kafka this queries every topic of the cluster, so it is meant for
    /// listings.
    fn topics(&self) -> Result<Vec<TopicInfo>, LogError>;
    /// Returns the topics with these names, sorted by name. Missing ones are left out, and no other topic is queried.
    fn topics_named(&self, names: &[&str]) -> Result<Vec<TopicInfo>, LogError> {
        let mut topics = self.topics()?;
        topics.retain(|topic| names.contains(&topic.spec.name.as_str()));
        Ok(topics)
    }
    /// Returns the topic with this name; `None` if it does not exist.
    fn topic(&self, name: &str) -> Result<Option<TopicInfo>, LogError> {
        Ok(self.topics_named(&[name])?.pop())
    }
    /// Returns the names of all topics, for messages about an unknown topic.
    fn topic_names(&self) -> Result<Vec<String>, LogError> {
        Ok(self.topics()?.into_iter().map(|topic| topic.spec.name).collect())
    }
    /// Returns the current number of partitions of a topic; partitions may have been added. 0 if the topic does not
    /// exist.
    fn partitions(&self, topic: &str) -> Result<i32, LogError> {
        Ok(self.topic(topic)?.map_or(0, |info| info.spec.partitions))
    }
    /// Checks that all partitions of a topic can be reached now, waiting about `timeout` for each answer. The error
    /// names the brokers that do not answer. A log in a file is always reachable.
    fn reach(&self, _topic: &str, _timeout: Duration) -> Result<(), LogError> {
        Ok(())
    }
    /// Returns the latest statistics of the log's clients by kind; empty if there are no clients or none has reported
    /// yet.
    fn client_figures(&self) -> Vec<ClientFigures> {
        Vec::new()
    }
    /// Joins a consumer group; the first result of a poll is [`Fetched::Assigned`]. The embedded log allows one live
    /// member per group and refuses a second one. On Kafka the members share the partitions; one without partitions
    /// gets no such result.
    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError>;
    /// Opens a reader outside any group, positioned by [`Consumer::seek`] (default: the beginning of each partition).
    /// It has no assignments and no committed offsets.
    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError>;
    /// Opens a producer. Each transactional id has one live producer: a newer one fences the older.
    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError>;
    /// Returns the first and next offset of a partition.
    fn offsets(&self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.reader(std::slice::from_ref(partition))?.offsets(partition)
    }
    /// Returns a group's committed next-to-read offset of a partition, without joining the group; `None` before the
    /// first commit.
    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError>;
    /// Returns the end of all written records of a partition, including those of transactions without a known end in
    /// it. Such a transaction hides all later commits in the partition until its end arrives. Then
    /// [`OffsetRange::next`] and [`Consumer::position`] reach this offset.
    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError>;
    /// Returns the ends of partitions, in the order given; one request covers all of them if the log supports that.
    fn ends(&self, partitions: &[TopicPartition]) -> Result<Vec<PartitionEnd>, LogError> {
        let mut reader = self.reader(partitions)?;
        let end = |partition: &TopicPartition| {
            let readable = reader.offsets(partition)?.next;
            Ok(PartitionEnd { readable, written: self.written_end(partition)? })
        };
        partitions.iter().map(end).collect()
    }
    /// Returns the size of the largest record that each of these topics accepts from this client: bytes of key, value
    /// and headers together, uncompressed. On Kafka, the current settings of the cluster and the client determine it.
    /// Producers that start later respect the limits of all topics queried here.
    fn record_bytes_max(&self, topics: &[&str]) -> Result<Vec<usize>, LogError>;
    /// Returns the clock that a topic's record times come from; `None` if the log does not know it, or if the topic
    /// does not exist. A log file with copied records reports the clock of their original log.
    fn record_clock(&self, topic: &str) -> Result<Option<RecordClock>, LogError>;
    /// Claims a name for this process, until the returned value is dropped or the process ends. On Kafka the claim has
    /// no effect, because the transactional id of a producer fences other processes.
    fn claim(&self, name: &str) -> Result<Box<dyn Send>, LogError>;
    /// Returns true if a consumer group has a live member. On Kafka a killed member counts until its session ends, and
    /// with the newer group protocol the answer is always true.
    fn has_member(&self, group: &str) -> Result<bool, LogError>;
    /// Returns the log's name for users: `sqlite:PATH` or `kafka:HOST:PORT[,HOST:PORT…]`.
    fn url(&self) -> String;
}

/// The clock behind a record's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordClock {
    /// The clock of the writer of the record.
    Writer,
    /// The clock of the log, which stamps each record on arrival: `message.timestamp.type=LogAppendTime` of a Kafka
    /// topic.
    Log,
}

/// The end of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionEnd {
    /// End of the readable records: [`OffsetRange::next`].
    pub readable: i64,
    /// End of all written records: [`EventLog::written_end`].
    pub written: i64,
}

/// Statistics of one client of a log. Its counters start at 0 with the client, which may be replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFigures {
    /// Kind of client: `consumer` or `producer`.
    pub client: &'static str,
    /// Number of known brokers.
    pub brokers: u64,
    /// Number of known brokers with a connection; the client connects when it has a request.
    pub brokers_connected: u64,
    /// Requests sent.
    pub requests: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Requests that could not be sent, failed or had no answer in time.
    pub errors: u64,
    /// Records that wait to be sent or acknowledged.
    pub queued_records: u64,
    /// 99th percentile of the latest requests' round trips at the slowest broker, in microseconds; `None` without
    /// requests.
    pub round_trip_us: Option<u64>,
}

/// Reads committed records.
pub trait Consumer: Send {
    /// Waits up to `timeout` for up to `records_max` records of one partition; partitions take turns. A poll ends with
    /// the first record that reaches `bytes_max`, and always returns at least one if there is any.
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError>;
    /// Declares that the caller ignores headers: from now on, records may come without them, which is faster on Kafka.
    fn leave_headers(&mut self) {}
    /// Sets the least time between two checks for new commits, so that records of many small commits are read together.
    /// After a longer silence, a commit is found at once. Kafka has `fetch.min.bytes` instead.
    fn gather(&mut self, _interval: Duration) {}
    /// Tells which records the caller looks for from now on. The log may leave out others, which moves the position past
    /// them. A poll that leaves out records may end without any, before its timeout. Returns false if the log delivers
    /// all records nevertheless, as Kafka does.
    fn select(&mut self, _selection: &Selection) -> bool {
        false
    }
    /// Delivers no more records of these partitions until they are resumed. In this call, in `resume` and in `seek`,
    /// revoked partitions are allowed and have no effect.
    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError>;
    /// Ends a pause.
    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError>;
    /// Sets the position: the next record read is the first at or after `offset`. On Kafka an offset after the end is
    /// an error. For a member of a group, an offset whose records were removed is an error as well.
    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError>;
    /// Returns the group's committed next-to-read offset of any partition; `None` before the first commit.
    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError>;
    /// Returns the reading position of a partition: every earlier record was polled or will never exist. Polling moves
    /// it up to [`OffsetRange::next`], even if the last offsets have no records.
    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError>;
    /// Returns the first and next offset of a partition.
    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError>;
}

/// Writes transactions. Dropping a producer aborts an open one.
///
/// Errors tell the state of the open transaction:
/// - [`LogError::Full`], [`LogError::Busy`]: it is still open and fully buffered; commit again or abort.
/// - [`LogError::Aborted`]: it was aborted; call [`Producer::abort`], roll back and begin another.
/// - [`LogError::Fenced`]: it was aborted; this producer accepts no further calls.
/// - [`LogError::OutcomeUnknown`]: it committed or it will be aborted. This producer accepts no further calls: drop it
///   and make a new one with the same transactional id, which settles it. Then the committed offsets tell the outcome.
/// - any other error, from `send` and `send_offsets`: it is open, without the refused data; from `commit` and `abort`:
///   as for [`LogError::OutcomeUnknown`].
pub trait Producer: Send {
    /// Opens a transaction.
    fn begin(&mut self) -> Result<(), LogError>;
    /// Adds a record to the open transaction.
    fn send(&mut self, record: NewRecord<'_>) -> Result<(), LogError>;
    /// Adds next-to-read offsets of a consumer group to the open transaction. If this log object has a live member of
    /// the group, they commit only while the group still accepts that member. [`Producer::commit_as_owner`] checks
    /// single partitions.
    fn send_offsets(&mut self, group: &str, offsets: &[(TopicPartition, i64)]) -> Result<(), LogError>;
    /// Adds an offset of a partition that no member of the group reads. It is committed regardless of the group's
    /// members.
    fn send_position(&mut self, group: &str, partition: &TopicPartition, next: i64) -> Result<(), LogError>;
    /// Makes the transaction visible and durable, all or nothing.
    fn commit(&mut self) -> Result<(), LogError> {
        self.commit_as_owner(&|| true)
    }
    /// Commits as [`Producer::commit`] does if `is_owner` returns true; otherwise aborts the transaction. `is_owner` is
    /// called once the membership for the commit of the offsets is fixed. So a caller that returns false before it
    /// releases a partition cannot commit the partition's effects after another member owns it.
    fn commit_as_owner(&mut self, is_owner: &dyn Fn() -> bool) -> Result<(), LogError>;
    /// Drops the open transaction.
    fn abort(&mut self) -> Result<(), LogError>;
}
