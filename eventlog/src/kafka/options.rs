//! Options for a cluster's address and the behaviour of its clients.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;

use super::TRANSACTION_BYTES_MAX;
use crate::LogError;

/// How members of a consumer group divide the partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupProtocol {
    /// The members agree among themselves (cooperative-sticky). All brokers support this.
    #[default]
    Classic,
    /// The broker decides (KIP-848). Brokers support this from version 4.0.
    Consumer,
}

/// Options of a [`KafkaLog`](super::KafkaLog). `Debug` hides the values of `extra`, which holds the secrets.
#[derive(Clone)]
pub struct KafkaOptions {
    /// `HOST:PORT[,HOST:PORT…]` of one or more brokers; the client learns the others from them.
    pub brokers: String,
    /// Static membership: a member that returns under this name within the session timeout gets its partitions back
    /// without a rebalance. Unique in its group; `None` for a new membership at each start.
    pub instance_id: Option<String>,
    /// See [`GroupProtocol`].
    pub group_protocol: GroupProtocol,
    /// Time without a heartbeat after which a member is removed and its partitions go to others. The broker sets it
    /// with [`GroupProtocol::Consumer`].
    pub session_timeout: Duration,
    /// Time after which the broker aborts an open transaction. It also limits how long a crashed process's transaction
    /// blocks readers of its partitions.
    pub transaction_timeout: Duration,
    /// Longest wait of one call for the cluster's answer. A commit that takes longer has an unknown outcome.
    pub request_timeout: Duration,
    /// Time after which a call fails if expected progress is missing: an acknowledgement, or the reading of an existing
    /// record.
    pub stall_timeout: Duration,
    /// Memory that one unpacked batch may take, including librdkafka's overhead for each record, in bytes; in
    /// [`Self::UNPACKED_BYTES_ALLOWED`]. A larger batch is replaced by one record ([`crate::UnreadableBatch`]).
    pub unpacked_bytes_max: usize,
    /// Interval at which members of groups and producers report statistics; `None` disables it.
    pub figures_interval: Option<Duration>,
    /// Further options for librdkafka, by its names: `security.protocol`, `sasl.*`, `ssl.*`, `compression.type`…
    pub extra: BTreeMap<String, String>,
}

impl KafkaOptions {
    /// Allowed values of [`Self::unpacked_bytes_max`]: at least any record that Warptape writes, at most librdkafka's
    /// limit.
    pub const UNPACKED_BYTES_ALLOWED: RangeInclusive<usize> = 16 << 20..=1_000_000_000;

    /// Returns the defaults for a cluster.
    pub fn new(brokers: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            instance_id: None,
            group_protocol: GroupProtocol::Classic,
            session_timeout: Duration::from_secs(10),
            transaction_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(30),
            unpacked_bytes_max: 256 << 20,
            figures_interval: None,
            extra: BTreeMap::new(),
        }
    }

    /// Returns true if this crate sets the property of librdkafka itself, so that [`Self::extra`] must not contain it.
    pub fn is_reserved(property: &str) -> bool {
        RESERVED.iter().any(|(reserved, _)| *reserved == property)
    }

    pub(super) fn url(&self) -> String {
        format!("kafka:{}", self.brokers)
    }

    /// Rejects options that break the guarantees of the log's interface.
    pub(super) fn check(&self) -> Result<(), LogError> {
        let wrong = |argument, value: &str, allowed: &str| LogError::Argument {
            url: self.url(),
            argument,
            value: value.to_owned(),
            allowed: allowed.to_owned(),
        };
        if !is_broker_list(&self.brokers) {
            return Err(wrong("broker list", &self.brokers, "use HOST:PORT[,HOST:PORT…]"));
        }
        if !Self::UNPACKED_BYTES_ALLOWED.contains(&self.unpacked_bytes_max) {
            let (value, allowed) =
                (self.unpacked_bytes_max.to_string(), format!("{:?}", Self::UNPACKED_BYTES_ALLOWED));
            return Err(wrong("bytes of an unpacked batch", &value, &allowed));
        }
        for key in self.extra.keys() {
            if let Some((_, instead)) = RESERVED.iter().find(|(reserved, _)| reserved == key) {
                return Err(wrong("librdkafka option", key, instead));
            }
        }
        Ok(())
    }

    /// Returns the options common to all clients.
    pub(super) fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set_log_level(RDKafkaLogLevel::Info);
        config
            .set("client.id", "warptape")
            .set("bootstrap.servers", &self.brokers)
            .set("socket.keepalive.enable", "true")
            // A broker that comes back is found within a second instead of ten.
            .set("reconnect.backoff.max.ms", "1000")
            // Added partitions are found within half a minute instead of five minutes.
            .set("topic.metadata.refresh.interval.ms", "20000");
        for (key, value) in &self.extra {
            config.set(key, value);
        }
        config
    }

    /// Returns the options of a consumer without a group.
    pub(super) fn asker(&self) -> ClientConfig {
        let mut config = self.client();
        config
            // librdkafka compares it with other settings, even without a group.
            .set("session.timeout.ms", self.session_timeout.as_millis().to_string())
            .set("isolation.level", "read_committed")
            .set("allow.auto.create.topics", "false");
        // A missing answer reveals a connection that is dead at the other end. The timeout leaves time to ask again on
        // a new connection, even several times in a row. Producers differ: rd_kafka_coord_req (2.12.1) waits forever
        // once the connection to a hanging coordinator is closed.
        for key in
            ["socket.timeout.ms", "socket.connection.setup.timeout.ms", "api.version.request.timeout.ms"]
        {
            self.set_default(&mut config, key, &self.answer_timeout_ms());
        }
        config
    }

    /// Returns the options of a reader of `partitions` partitions, outside any group with members.
    pub(super) fn reader(&self, group: &str, partitions: usize) -> ClientConfig {
        let mut config = self.consumer(group);
        // Each broker serves one fetch at a time for all partitions. With the default of 1 MiB per partition, a reader
        // of one partition spends more time waiting for the next fetch than reading.
        const OTHER_NAME: &str = "max.partition.fetch.bytes";
        if !self.extra.contains_key(OTHER_NAME) {
            let share = (FETCH_BYTES / partitions.max(1)).clamp(PARTITION_FETCH_BYTES_MIN, FETCH_BYTES);
            self.set_default(&mut config, "fetch.message.max.bytes", &share.to_string());
        }
        // With the defaults, a fast reader of small records empties a full queue before librdkafka checks it again.
        // More messages cost memory beyond their bytes, which have a limit of their own.
        self.set_default(&mut config, "queued.min.messages", "200000");
        self.set_default(&mut config, "fetch.queue.backoff.ms", "5");
        config
    }

    /// Returns the options of a consumer of committed records.
    pub(super) fn consumer(&self, group: &str) -> ClientConfig {
        let mut config = self.asker();
        config
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            // An end of partition inside a batch moves librdkafka's own position beyond it (2.12.1,
            // rd_kafka_q_serve_rkmessages).
            .set("enable.partition.eof", "false")
            // The caller handles an offset that does not exist; reading never starts elsewhere.
            .set("auto.offset.reset", "error")
            // librdkafka's own consumers ignore this option; `native/batch_reader.c` takes its bound from it.
            .set("message.copy.max.bytes", self.unpacked_bytes_max.to_string());
        self.set_default(&mut config, ANSWER_LIMIT, &ANSWER_BYTES_MAX.to_string());
        // A seek or a new partition waits for the current fetch, which at an end of partition takes this long.
        self.set_default(&mut config, "fetch.wait.max.ms", "50");
        config
    }

    /// Returns the options of a member of a group.
    pub(super) fn member(&self, group: &str) -> ClientConfig {
        let mut config = self.consumer(group);
        // Without this, librdkafka would check a full queue again only after the stages have emptied it.
        self.set_default(&mut config, "fetch.queue.backoff.ms", "20");
        match self.group_protocol {
            GroupProtocol::Classic => {
                config
                    .set("partition.assignment.strategy", "cooperative-sticky")
                    .set("heartbeat.interval.ms", (self.session_timeout.as_millis() / 4).to_string());
            }
            GroupProtocol::Consumer => {
                // The broker sets the timeouts.
                config.set("group.protocol", "consumer").remove("session.timeout.ms");
            }
        }
        if let Some(instance_id) = &self.instance_id {
            config.set("group.instance.id", instance_id);
        }
        self.tell_figures(&mut config);
        config
    }

    /// Returns the options of a producer of transactions.
    pub(super) fn producer(&self, transactional_id: &str, topics: BatchBytes) -> ClientConfig {
        let mut config = self.client();
        config
            .set("transactional.id", transactional_id)
            .set("transaction.timeout.ms", self.transaction_timeout.as_millis().to_string())
            // The transaction's outcome covers all records, so single deliveries need no report.
            .set("delivery.report.only.error", "true");
        self.set_default(
            &mut config,
            "queue.buffering.max.kbytes",
            &(TRANSACTION_BYTES_MAX >> 10).to_string(),
        );
        // Records of one topic, with their frames, share its limit, and so do requests of several records.
        self.set_default(&mut config, RECORD_LIMIT, &topics.largest.to_string());
        let batch = self.extra.get(BATCH_LIMIT).and_then(|bytes| bytes.parse().ok()).unwrap_or(BATCH_BYTES);
        config.set(BATCH_LIMIT, batch.min(topics.smallest).to_string());
        // Records need not be sent before the commit, except full requests; the commit does not wait for the linger
        // time. The default of 5 ms splits a large transaction into many small requests. While five records of a
        // partition are unacknowledged and others wait, librdkafka (2.12.1) moreover polls in a busy loop; within a
        // commit it still does. A user's setting of either, by any name, is kept, because librdkafka compares the two.
        const USERS: [&str; 4] =
            ["linger.ms", "queue.buffering.max.ms", "message.timeout.ms", "delivery.timeout.ms"];
        if !USERS.iter().any(|key| self.extra.contains_key(*key)) {
            config.set("linger.ms", "500");
        }
        self.tell_figures(&mut config);
        config
    }

    fn tell_figures(&self, config: &mut ClientConfig) {
        if let Some(interval) = self.figures_interval {
            config.set("statistics.interval.ms", interval.as_millis().to_string());
        }
    }

    /// Returns the largest record, in bytes, that this client sends to a topic with this batch limit.
    pub(super) fn record_bytes_max(&self, batch_bytes: usize) -> usize {
        let of_client = self.extra.get(RECORD_LIMIT).and_then(|bytes| bytes.parse().ok());
        // A reader must be able to unpack every written record, whatever its compression.
        let of_reader = self.unpacked_bytes_max - UNPACKED_RECORD_BYTES;
        batch_bytes.min(of_client.unwrap_or(RECORD_LIMIT_MAX)).min(of_reader).saturating_sub(FRAME_BYTES)
    }

    /// Returns the time that a request waits before its connection is replaced, in milliseconds.
    fn answer_timeout_ms(&self) -> String {
        let timeout = (self.request_timeout / 3).clamp(ANSWER_TIMEOUT_MIN, ANSWER_TIMEOUT_MAX);
        timeout.as_millis().to_string()
    }

    fn set_default(&self, config: &mut ClientConfig, key: &str, value: &str) {
        if !self.extra.contains_key(key) {
            config.set(key, value);
        }
    }
}

impl fmt::Debug for KafkaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaOptions")
            .field("brokers", &self.brokers)
            .field("instance_id", &self.instance_id)
            .field("group_protocol", &self.group_protocol)
            .field("session_timeout", &self.session_timeout)
            .field("transaction_timeout", &self.transaction_timeout)
            .field("request_timeout", &self.request_timeout)
            .field("stall_timeout", &self.stall_timeout)
            .field("unpacked_bytes_max", &self.unpacked_bytes_max)
            .field("extra", &self.extra.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// Batch size limits of topics, in bytes: the smallest and the largest of the topics queried so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchBytes {
    smallest: usize,
    /// The largest limit; at least librdkafka's default, until a topic is queried.
    largest: usize,
}

impl Default for BatchBytes {
    fn default() -> Self {
        Self { smallest: BATCH_BYTES, largest: BATCH_BYTES }
    }
}

impl BatchBytes {
    /// Adds another topic's batch size limit.
    pub(super) fn add(&mut self, bytes: usize) {
        self.smallest = self.smallest.min(bytes);
        self.largest = self.largest.max(bytes).min(RECORD_LIMIT_MAX);
    }
}

/// librdkafka's property for the largest record and for the largest request of several records, and the property's
/// maximum in bytes.
const RECORD_LIMIT: &str = "message.max.bytes";
const RECORD_LIMIT_MAX: usize = 1_000_000_000;
const BATCH_LIMIT: &str = "batch.size";
/// The default of that property, in bytes.
const BATCH_BYTES: usize = 1_000_000;
/// Room for a record's frame, in bytes: a batch has 61 of its own, a record about 40, and each header 10.
const FRAME_BYTES: usize = 512;

/// Room for librdkafka's data about one unpacked record, in bytes.
const UNPACKED_RECORD_BYTES: usize = 1024;

/// Largest answer of a broker that librdkafka accepts: the largest record that it sends (`RECORD_LIMIT_MAX`), and its
/// frame.
const ANSWER_LIMIT: &str = "receive.message.max.bytes";
const ANSWER_BYTES_MAX: usize = RECORD_LIMIT_MAX + (1 << 20);

/// Least timeout of a request in librdkafka. Below: the greatest.
const ANSWER_TIMEOUT_MIN: Duration = Duration::from_secs(1);
const ANSWER_TIMEOUT_MAX: Duration = Duration::from_secs(300);
/// Bytes that a reader fetches at once, shared by its partitions. Below: the least for each partition.
const FETCH_BYTES: usize = 4 << 20;
const PARTITION_FETCH_BYTES_MIN: usize = 1 << 20;

/// Options that users must not set, with the alternative.
const RESERVED: &[(&str, &str)] = &[
    ("bootstrap.servers", "name the brokers in the log's URL"),
    ("metadata.broker.list", "name the brokers in the log's URL"),
    ("group.id", "the group is set where the log is used"),
    ("group.instance.id", "set the instance id"),
    ("group.protocol", "set the group protocol"),
    ("session.timeout.ms", "set the session timeout"),
    ("partition.assignment.strategy", "it is always cooperative-sticky"),
    ("transactional.id", "the transactional id is set where the log is used"),
    ("transaction.timeout.ms", "set the transaction timeout"),
    ("enable.idempotence", "it is always true"),
    ("enable.auto.commit", "it is always false: offsets commit together with their outputs"),
    ("enable.auto.offset.store", "it is always false: offsets commit together with their outputs"),
    ("isolation.level", "it is always read_committed"),
    ("auto.offset.reset", "it is always error"),
    ("enable.partition.eof", "it is always false"),
];

/// Returns true if a text is `HOST:PORT[,HOST:PORT…]`.
pub fn is_broker_list(text: &str) -> bool {
    text.split(',').all(is_host_and_port)
}

fn is_host_and_port(broker: &str) -> bool {
    match broker.rsplit_once(':') {
        Some((host, port)) => {
            !host.is_empty()
                && !host.contains(['/', '?', ' ', '@'])
                && port.parse::<u16>().is_ok_and(|port| port > 0)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let mut options = KafkaOptions::new("localhost:9092");
        options.extra.insert("sasl.password".to_owned(), "correct-horse".to_owned());
        let shown = format!("{options:?}");
        assert!(shown.contains("sasl.password") && !shown.contains("correct-horse"), "{shown}");
    }

    #[test]
    fn a_user_s_word_on_lingering_holds() {
        let mut options = KafkaOptions::new("localhost:9092");
        assert_eq!(options.producer("x", BatchBytes::default()).get("linger.ms"), Some("500"));
        options.extra.insert("linger.ms".to_owned(), "7".to_owned());
        assert_eq!(options.producer("x", BatchBytes::default()).get("linger.ms"), Some("7"));
        for other in ["queue.buffering.max.ms", "message.timeout.ms", "delivery.timeout.ms"] {
            options.extra = [(other.to_owned(), "400".to_owned())].into();
            assert_eq!(options.producer("x", BatchBytes::default()).get("linger.ms"), None, "{other}");
        }
    }

    #[test]
    fn producers_keep_to_what_the_topics_take() {
        let mut options = KafkaOptions::new("localhost:9092");
        let limits = |options: &KafkaOptions, topics: &[usize]| {
            let mut batch_bytes = BatchBytes::default();
            topics.iter().for_each(|bytes| batch_bytes.add(*bytes));
            let config = options.producer("x", batch_bytes);
            [RECORD_LIMIT, BATCH_LIMIT]
                .map(|key| config.get(key).expect("it is set").parse::<usize>().unwrap())
        };
        assert_eq!(limits(&options, &[]), [1_000_000, 1_000_000], "nobody asked");
        assert_eq!(limits(&options, &[1_048_588]), [1_048_588, 1_000_000]);
        assert_eq!(limits(&options, &[70_000, 10 << 20]), [10 << 20, 70_000]);
        assert_eq!(limits(&options, &[usize::MAX]), [RECORD_LIMIT_MAX, 1_000_000]);
        assert_eq!(options.record_bytes_max(1_048_588), 1_048_588 - FRAME_BYTES);
        assert_eq!(options.record_bytes_max(7), 0);
        options.extra = [("message.max.bytes", "60000"), ("batch.size", "80000")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        assert_eq!(limits(&options, &[70_000]), [60_000, 70_000], "a user's word, as far as it can hold");
        assert_eq!(options.record_bytes_max(70_000), 60_000 - FRAME_BYTES);
    }

    #[test]
    fn readers_of_few_partitions_fetch_more_of_each() {
        const KEY: &str = "fetch.message.max.bytes";
        let mut options = KafkaOptions::new("localhost:9092");
        for (partitions, bytes) in [(0, "4194304"), (1, "4194304"), (3, "1398101"), (16, "1048576")] {
            assert_eq!(options.reader("x", partitions).get(KEY), Some(bytes), "{partitions} partitions");
        }
        options.extra.insert(KEY.to_owned(), "70000".to_owned());
        assert_eq!(options.reader("x", 1).get(KEY), Some("70000"));
        options.extra = [("max.partition.fetch.bytes".to_owned(), "70000".to_owned())].into();
        assert_eq!(options.reader("x", 1).get(KEY), None, "a user's word by the other name");
    }

    #[test]
    fn broker_lists() {
        let check = |brokers: &str, right: bool| {
            assert_eq!(KafkaOptions::new(brokers).check().is_ok(), right, "{brokers:?}");
        };
        check("localhost:9092", true);
        check("a:1,b:2", true);
        check("[::1]:9092", true);
        for wrong in
            ["", "localhost", "localhost:", ":9092", "a:0", "a:70000", "a:1,", "//a:1", "a:1?x=y", "u:pw@a:1"]
        {
            check(wrong, false);
        }
    }

    #[test]
    fn promises_cannot_be_configured_away() {
        let mut options = KafkaOptions::new("localhost:9092");
        options.extra.insert("isolation.level".to_owned(), "read_uncommitted".to_owned());
        let message = options.check().unwrap_err().to_string();
        assert!(message.contains("isolation.level") && message.contains("read_committed"), "{message}");
    }
}
