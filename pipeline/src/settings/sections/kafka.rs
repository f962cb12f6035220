//! Clients of Kafka and of a schema registry.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::declaration::{choice, integer, secret, section, table, text};
use super::super::secret::Secret;
use super::super::syntax;
use super::milliseconds;
use crate::runtime::Retention;

/// Retention of records that are never removed: the longest that a cluster accepts.
const FOR_EVER: Duration = Duration::from_millis(i64::MAX as u64);

/// Protocol of the consumer group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupProtocol {
    /// Cooperative-sticky assignment by the members.
    Classic,
    /// Assignment by the broker (KIP-848).
    Consumer,
}

section! {
    "kafka": "The Kafka client, for logs of the form kafka:HOST:PORT.";
    /// The Kafka client, and the creation of topics on Kafka. The process's name in its group is
    /// [`EngineSettings::node`](super::EngineSettings::node).
    pub struct KafkaSettings {
        /// Protocol of the consumer group: `consumer` is the one of KIP-848, for brokers from 4.0 on.
        group_protocol: GroupProtocol = choice(&["classic", "consumer"], |word| match word {
            "consumer" => GroupProtocol::Consumer,
            _ => GroupProtocol::Classic,
        });
        /// Time of silence after which a process loses its partitions to others, in milliseconds. With group_protocol
        /// `consumer` the broker decides. A transaction may be open for half of this time.
        session_timeout as session_timeout_ms: Duration = integer(10_000, 6_000..=1_800_000, milliseconds);
        /// Longest wait for an answer of the cluster, in milliseconds. After a third of it a question is repeated on a
        /// new connection. After all of it the outcome of a commit is unknown, and is settled before anything else is
        /// written. The same holds for unacknowledged records. A process that cannot read existing records for so long
        /// ends.
        request_timeout as request_timeout_ms: Duration = integer(30_000, 1_000..=600_000, milliseconds);
        /// Replicas of topics that are created; 0 leaves it to the broker (default.replication.factor).
        replication_factor: Option<i16> = integer(0, 0..=15, replicas);
        /// Replicas that must have a record before it counts as written, for topics that are created; 0 leaves it to the
        /// broker (min.insync.replicas). 2 of 3 replicas survive the loss of one broker.
        min_insync_replicas: Option<i16> = integer(0, 0..=15, replicas);
        /// Greatest memory of one unpacked batch of records, in bytes, including what is kept for each record. A larger
        /// batch becomes one dead letter, and reading goes on after it. All processes that read or verify a log need
        /// the same value.
        unpacked_bytes_max: usize = integer(268_435_456, 16_777_216..=1_000_000_000, |bytes| bytes as usize);
        /// Properties for librdkafka, passed on unchanged: `"security.protocol" = "SASL_SSL"`. Passwords and private
        /// keys come from the environment: WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD, or
        /// WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD_FILE for the path of a file that holds it.
        properties: BTreeMap<String, Secret> = table(
            "librdkafka properties by name, except those that Warptape sets itself",
            syntax::is_librdkafka_property,
            syntax::is_secret_name,
        );
    }
    and {
        /// Retention of records, for topics that are created.
        retention: Retention = |values| Retention::read(values);
    }
}

fn replicas(number: i64) -> Option<i16> {
    Some(number as i16).filter(|&replicas| replicas > 0)
}

section! {
    "kafka.retention_hours": "Retention of topics that Warptape creates on Kafka, in hours; 0 keeps records \
                              for ever.";
    into Retention {
        /// Ticks. A state with lost snapshots is rebuilt from them.
        ticks: Option<Duration> = integer(168, 0..=1_000_000, hours);
        /// Signals.
        signals: Option<Duration> = integer(168, 0..=1_000_000, hours);
        /// Journal. `replay` begins at the first remaining start or checkpoint; checkpoints are written every
        /// `engine.checkpoint_interval_s`.
        journal: Option<Duration> = integer(168, 0..=1_000_000, hours);
        /// Late ticks.
        late: Option<Duration> = integer(168, 0..=1_000_000, hours);
        /// Dead letters.
        dead_letter: Option<Duration> = integer(720, 0..=1_000_000, hours);
        /// Lifecycle.
        lifecycle: Option<Duration> = integer(720, 0..=1_000_000, hours);
        /// Risk requests.
        risk_requests: Option<Duration> = integer(168, 0..=1_000_000, hours);
        /// Risk results. A request's id is refused a second time while its result is kept.
        risk_results: Option<Duration> = integer(168, 0..=1_000_000, hours);
    }
}

fn hours(number: i64) -> Option<Duration> {
    Some(match number as u64 {
        0 => FOR_EVER,
        hours => Duration::from_secs(hours * 3600),
    })
}

section! {
    "schema_registry": "The schema registry of the records' schemas.";
    /// The schema registry.
    pub struct RegistrySettings {
        /// Schema registry with the REST interface of Confluent's. With a registry, schemas are registered at start,
        /// and records are written in its frame (a zero byte, four bytes of schema id). If the address is empty,
        /// records are in Avro's single-object encoding. Both forms are read.
        url: String = text(
            "",
            "a string of the form http://HOST:PORT or https://HOST:PORT without user and password, or an \
             empty string",
            syntax::is_registry_url,
            |url| url.trim_end_matches('/').to_owned(),
        );
        /// User name for the registry, if it requires one.
        username: String = text("", "a string without a colon", syntax::is_username, str::to_owned);
        /// Password for the registry.
        password: Option<Secret> = secret();
        /// Time for which an unanswered question for a record's schema is repeated, in milliseconds. After it, the
        /// record is a dead letter if the registry answers for other schemas. If it answers for none, `run` holds the
        /// record's partition, and other commands end, because the record may be good.
        retry as retry_ms: Duration = integer(10_000, 0..=600_000, milliseconds);
    }
}

impl RegistrySettings {
    /// True if a registry is configured.
    pub fn is_used(&self) -> bool {
        !self.url.is_empty()
    }
}
