//! The event log seam: topics of partitions of records, consumers with groups and committed offsets, and producers
//! whose transactions cover records of many topics and source offsets alike.
//!
//! Start at [`open_url`], [`SqliteLog`] or [`KafkaLog`]. This crate alone knows how a log is stored. It must not know what the bytes mean.

use std::borrow::Cow;
use std::time::Duration;

pub mod background;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod kafka;
mod sigbus;
pub mod sqlite;
mod topic;
mod url;

pub use error::LogError;
pub use kafka::{KafkaLog, KafkaOptions};
pub use sigbus::say_before_sigbus;
pub use sqlite::{Durability, SqliteLog};
pub use topic::{PARTITIONS_MAX, TOPIC_NAME_BYTES_MAX};
pub use url::{OpenMode, open_url};
pub use warptape_record::{Record, TopicPartition, UNREADABLE_BATCH_HEADER, UnreadableBatch};

/// A topic with its storage rules. What is `None` is left to the log; a log that keeps everything once ignores it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicSpec {
    /// Name, unique in the log.
    pub name: String,
    /// Number of partitions. On Kafka some may be added later.
    pub partitions: i32,
    /// Keep only the newest record of each key (older ones may stay readable for a while).
    pub compacted: bool,
    /// Number of brokers that keep a copy of each partition.
    pub replication: Option<i16>,
    /// Number of copies that must have a record before it counts as written.
    pub min_insync_replicas: Option<i16>,
    /// Records of a topic that is not compacted may be removed when they are older than this.
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

/// Offsets of a partition: `first..next`. Not every offset in between has a record: one may have been compacted away,
/// was aborted, or belongs to the log itself (Kafka ends each transaction with a marker in each partition). Who reads to
/// the end reads until [`Consumer::position`] has reached it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// Oldest offset that can be read.
    pub first: i64,
    /// End of what can be read: the next record that becomes readable has at least this offset.
    pub next: i64,
}

/// A record to be written. A producer copies it, so that it may borrow from whoever made it.
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
    /// Create time, nanoseconds since the epoch. Kafka keeps milliseconds, and takes 0 for the present.
    pub timestamp_ns: i64,
    /// Payload.
    pub value: Cow<'a, [u8]>,
}

/// What a poll gave.
#[derive(Debug)]
pub enum Fetched {
    /// These partitions are the consumer's from now on; it starts at their committed offsets unless told to seek, and where the log
    /// does not have such an offset any more, at the nearest that it has.
    Assigned(Vec<TopicPartition>),
    /// These partitions are taken away; what they caused must be committed or dropped before the next poll, which hands
    /// them over.
    Revoked(Vec<TopicPartition>),
    /// These partitions are someone else's already, because this member was silent for too long: what they caused can
    /// no longer be committed and must be dropped.
    Lost(Vec<TopicPartition>),
    /// Records of one partition, by ascending offset.
    Records {
        /// Where they came from.
        source: TopicPartition,
        /// The records; never empty.
        records: Vec<Record>,
    },
    /// Nothing came within the time given.
    Idle,
}

/// An event log. Handles are cheap; consumers and producers each own what they need and may move to other threads.
pub trait EventLog: Send + Sync {
    /// Creates missing topics. One that exists with other partitions or another rule is an error.
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError>;
    /// All topics, by name. On a cluster of others' topics that is a question for each of them: for those who list topics.
    fn topics(&self) -> Result<Vec<TopicInfo>, LogError>;
    /// The topics of these names, by name; those that do not exist are left out, and nothing is asked about any other.
    fn topics_named(&self, names: &[&str]) -> Result<Vec<TopicInfo>, LogError> {
        let mut topics = self.topics()?;
        topics.retain(|topic| names.contains(&topic.spec.name.as_str()));
        Ok(topics)
    }
    /// The topic of this name, if it exists.
    fn topic(&self, name: &str) -> Result<Option<TopicInfo>, LogError> {
        Ok(self.topics_named(&[name])?.pop())
    }
    /// The names of all topics, for whoever is told that there is none of another name.
    fn topic_names(&self) -> Result<Vec<String>, LogError> {
        Ok(self.topics()?.into_iter().map(|topic| topic.spec.name).collect())
    }
    /// Number of partitions of a topic as it is now: some may have been added. 0 where there is no such topic.
    fn partitions(&self, topic: &str) -> Result<i32, LogError> {
        Ok(self.topic(topic)?.map_or(0, |info| info.spec.partitions))
    }
    /// Whether all partitions of a topic can be reached now, with a wait of about `timeout` for each answer: the error names who
    /// does not answer. A log in a file is there.
    fn reach(&self, _topic: &str, _timeout: Duration) -> Result<(), LogError> {
        Ok(())
    }
    /// What clients of the log say of themselves, the newest of each kind; nothing where there are none, or before they have said it.
    fn client_figures(&self) -> Vec<ClientFigures> {
        Vec::new()
    }
    /// A member of a consumer group; its first news is [`Fetched::Assigned`]. The embedded log allows one live member per
    /// group and refuses a second one. On Kafka the members share the partitions, and one that gets none hears nothing.
    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError>;
    /// A reader outside any group, positioned by [`Consumer::seek`] (default: the beginning of each partition). It has
    /// no assignments and no committed offsets.
    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError>;
    /// A producer; one at a time per transactional id (a newer one fences the older).
    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError>;
    /// First and next offset of a partition.
    fn offsets(&self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.reader(std::slice::from_ref(partition))?.offsets(partition)
    }
    /// Committed next-to-read offset of a partition for a group, without joining it; `None` before the first commit.
    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError>;
    /// Next offset of a partition, behind what transactions wrote that have not ended yet, or whose end this partition has not
    /// heard of: another one may have. Until they have it hides all that was committed behind them; [`OffsetRange::next`] and
    /// [`Consumer::position`] reach this offset then.
    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError>;
    /// Where partitions end, in their order: asked all at once where the log can be.
    fn ends(&self, partitions: &[TopicPartition]) -> Result<Vec<PartitionEnd>, LogError> {
        let mut reader = self.reader(partitions)?;
        let end = |partition: &TopicPartition| {
            let readable = reader.offsets(partition)?.next;
            Ok(PartitionEnd { readable, written: self.written_end(partition)? })
        };
        partitions.iter().map(end).collect()
    }
    /// The largest record that each of these topics takes of this client: bytes of key, value and headers together, before any
    /// compression. On Kafka it is what the cluster and the client's settings say now; producers that are started later keep
    /// to the limits of all topics that were asked about.
    fn record_bytes_max(&self, topics: &[&str]) -> Result<Vec<usize>, LogError>;
    /// Whose clock the times of a topic's records are of; `None` where the log does not tell, or has no such topic. A file that
    /// records were copied into has the clock of where they were copied from.
    fn record_clock(&self, topic: &str) -> Result<Option<RecordClock>, LogError>;
    /// Makes sure that this process alone acts under a name, until what is returned is dropped or the process ends. On
    /// Kafka there is nothing to hold, because a producer's transactional id fences.
    fn claim(&self, name: &str) -> Result<Box<dyn Send>, LogError>;
    /// Whether a consumer group has a live member. On Kafka one that was killed counts until its session ends, and
    /// with the newer protocol the answer is always yes.
    fn has_member(&self, group: &str) -> Result<bool, LogError>;
    /// How the log is named to users: `sqlite:PATH` or `kafka:HOST:PORT[,HOST:PORT…]`.
    fn url(&self) -> String;
}

/// Whose clock the time of a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordClock {
    /// That of who wrote it.
    Writer,
    /// That of the log, which gives each record the time at which it takes it: `message.timestamp.type=LogAppendTime` of a Kafka topic.
    Log,
}

/// Where a partition ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionEnd {
    /// As far as it can be read: [`OffsetRange::next`].
    pub readable: i64,
    /// Behind all that was written to it: [`EventLog::written_end`].
    pub written: i64,
}

/// What a client of a log says of itself. What it counts begins at 0 with the client, which may be replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFigures {
    /// What it is: `consumer` or `producer`.
    pub client: &'static str,
    /// Brokers that it knows.
    pub brokers: u64,
    /// Those of them that it is connected to; it connects where it has something to ask.
    pub brokers_connected: u64,
    /// Requests sent.
    pub requests: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Requests that could not be sent, failed or had no answer in time.
    pub errors: u64,
    /// Records that wait to be sent, or to be acknowledged.
    pub queued_records: u64,
    /// 99 % of the last requests had their answer within this time, in microseconds, by the slowest broker; `None` where there were none.
    pub round_trip_us: Option<u64>,
}

/// Reads committed records.
pub trait Consumer: Send {
    /// Waits up to `timeout` for up to `records_max` records of one partition, taking the partitions in turn. The first
    /// record that reaches `bytes_max` is the last of a poll, and one record always comes.
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError>;
    /// Says that nobody looks at headers: records may come without theirs from now on, which is faster on Kafka.
    fn leave_headers(&mut self) {}
    /// Gives no more records of these partitions until they are resumed. A member may name partitions that were taken
    /// away from it here, in `resume` and in `seek`: nothing happens.
    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError>;
    /// Ends a pause.
    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError>;
    /// The next record read of the partition is the first at or after `offset`. On Kafka an offset behind the end is an
    /// error, and so is, for a member of a group, one whose records were removed.
    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError>;
    /// Committed next-to-read offset of a partition for this consumer's group, whether it reads it or not; `None` before the first commit.
    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError>;
    /// Where reading of a partition stands: everything before this offset was polled or will never come. It reaches
    /// [`OffsetRange::next`] by polling, also where the last offsets have no records.
    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError>;
    /// First and next offset of a partition.
    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError>;
}

/// Writes transactions. Dropping a producer aborts an open one.
///
/// Errors say what became of the open transaction:
/// - [`LogError::Full`], [`LogError::Busy`]: it is still open and wholly buffered; commit again or abort.
/// - [`LogError::Aborted`]: it was aborted; call [`Producer::abort`], roll back and begin another.
/// - [`LogError::Fenced`]: it was aborted, and this producer is at its end.
/// - [`LogError::OutcomeUnknown`]: it committed or it will be aborted. This producer is at its end: drop it and make a
///   new one with the same transactional id, which settles it; then the committed offsets tell.
/// - anything else, from `send` and `send_offsets`: it is open, without what was refused; from `commit` and `abort`: as
///   for [`LogError::OutcomeUnknown`].
pub trait Producer: Send {
    /// Opens a transaction.
    fn begin(&mut self) -> Result<(), LogError>;
    /// Adds a record to the open transaction.
    fn send(&mut self, record: NewRecord<'_>) -> Result<(), LogError>;
    /// Adds next-to-read offsets of a consumer group to the open transaction. If this log has a live member of the group,
    /// they commit only while the group sees it as one; [`Producer::commit_as_owner`] sees to single partitions.
    fn send_offsets(&mut self, group: &str, offsets: &[(TopicPartition, i64)]) -> Result<(), LogError>;
    /// Adds an offset of a partition that no member of the group reads: it commits whoever the group's members are.
    fn send_position(&mut self, group: &str, partition: &TopicPartition, next: i64) -> Result<(), LogError>;
    /// Makes the transaction visible and durable, all or nothing.
    fn commit(&mut self) -> Result<(), LogError> {
        self.commit_as_owner(&|| true)
    }
    /// Likewise, if `is_owner` says so; otherwise the transaction is aborted. It is asked when the membership is fixed in
    /// whose name offsets commit: a caller that says no before it lets go of a partition cannot commit what that
    /// partition caused once it is someone else's.
    fn commit_as_owner(&mut self, is_owner: &dyn Fn() -> bool) -> Result<(), LogError>;
    /// Drops the open transaction.
    fn abort(&mut self) -> Result<(), LogError>;
}
