//! Opens the log that the settings name. All commands open their log here.

use std::sync::Arc;
use std::time::Duration;

use warptape_eventlog::kafka::GroupProtocol;
use warptape_eventlog::{
    EventLog, KafkaLog, KafkaOptions, LogError, OpenMode, SqliteLog, open_url, sqlite_path,
};
use warptape_schemas::SchemaSource;

use crate::exported::recorded_schemas;
use crate::registry::{FramedLog, RegistryClient, SchemaIds, subjects};
use crate::settings::{self, Settings};

/// Purposes for which a command opens the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Show the log's records.
    Show,
    /// Process recorded ticks again.
    Replay,
    /// Send records again unchanged.
    Resend,
    /// Publish ticks.
    Feed,
    /// Publish risk requests and read the results.
    Ask,
    /// Send commands to processes and read the answers.
    Control,
    /// Run the pipeline.
    Run,
}

/// A log, opened for a command.
pub struct OpenLog {
    /// The log with records in single-object encoding, even if the log itself uses a registry.
    pub log: Arc<dyn EventLog>,
    /// The log with every record unchanged.
    pub bare: Arc<dyn EventLog>,
    /// The log again, if it is an embedded one that was opened for writing.
    pub embedded: Option<SqliteLog>,
    /// Writer schemas of ticks; `None` if neither a registry nor an exported file supplies them.
    pub schemas: Option<Arc<dyn SchemaSource>>,
}

/// Opens the log of the settings. With a schema registry, registers the schemas that the command will write.
pub fn open_log(settings: &Settings, purpose: Purpose) -> Result<OpenLog, LogError> {
    let mode = match purpose {
        Purpose::Show | Purpose::Replay => OpenMode::Read,
        Purpose::Resend | Purpose::Feed | Purpose::Ask | Purpose::Control | Purpose::Run => {
            OpenMode::Write(settings.log.durability)
        }
    };
    let (bare, embedded): (Arc<dyn EventLog>, _) = match settings.log.url.strip_prefix("kafka:") {
        Some(brokers) => (Arc::new(KafkaLog::open(kafka_options(settings, brokers, purpose))?), None),
        None => match mode {
            OpenMode::Read => (open_url(&settings.log.url, mode)?, None),
            OpenMode::Write(durability) => {
                let log = SqliteLog::open(sqlite_path(&settings.log.url)?, durability)?;
                (Arc::new(log.clone()), Some(log))
            }
        },
    };
    let registry = &settings.registry;
    if !registry.is_used() {
        // An exported file contains the schemas of its ticks, so replaying it needs no registry.
        let may_bring_them = purpose == Purpose::Replay && !settings.is_on_kafka();
        let schemas = if may_bring_them { recorded_schemas(&*bare)? } else { None };
        return Ok(OpenLog { log: bare.clone(), bare, embedded, schemas });
    }
    let ids = Arc::new(SchemaIds::new(RegistryClient::new(registry), registry.retry));
    let topics = &settings.topics.names;
    let mut written = subjects(topics);
    match purpose {
        Purpose::Show | Purpose::Replay | Purpose::Resend => written.clear(),
        Purpose::Feed => written.retain(|subject| [&topics.ticks, &topics.feeds].contains(&&subject.topic)),
        Purpose::Ask => written.retain(|subject| subject.topic == topics.risk_requests),
        Purpose::Control => written.retain(|subject| subject.topic == topics.control),
        Purpose::Run => {}
    }
    ids.register(&written)?;
    // `Show` decodes ticks for people; other purposes need ticks as they were published.
    let untouched = (purpose != Purpose::Show).then_some(&*topics.ticks);
    let log = FramedLog::new(bare.clone(), ids.clone(), untouched);
    let log = Arc::new(if purpose == Purpose::Run { log.waiting() } else { log });
    Ok(OpenLog { log, bare, embedded, schemas: Some(ids) })
}

/// Opens another log for anchors. On a cluster, the settings for clusters apply.
pub fn open_anchors(settings: &Settings, url: &str, purpose: Purpose) -> Result<Arc<dyn EventLog>, LogError> {
    let mode = match purpose {
        Purpose::Run => OpenMode::Write(settings.log.durability),
        _ => OpenMode::Read,
    };
    match url.strip_prefix("kafka:") {
        Some(brokers) => Ok(Arc::new(KafkaLog::open(kafka_options(settings, brokers, Purpose::Replay))?)),
        None => open_url(url, mode),
    }
}

/// Time between two reports of the Kafka clients' figures in a running pipeline.
const CLIENT_FIGURES_INTERVAL: Duration = Duration::from_secs(5);
/// Default interval at which brokers end transactions that were open for too long
/// (transaction.abort.timed.out.transaction.cleanup.interval.ms).
const CLEANUP_INTERVAL: Duration = Duration::from_secs(10);
/// Greatest time beyond the session timeout by which a killed process may delay its partitions.
const FAILOVER_BEYOND_SESSION: Duration = Duration::from_secs(5);

/// Returns a note if a killed process delays its partitions longer than the session timeout, because of the brokers'
/// own interval; `None` otherwise.
pub fn failover_note(settings: &Settings) -> Option<String> {
    let session = settings.kafka.session_timeout;
    // The transaction gets half of the session. The rest, and the time beyond the session, is left for the brokers'
    // check.
    let enough = session - transaction_timeout(session) + FAILOVER_BEYOND_SESSION;
    let is_short = settings.is_on_kafka() && enough < CLEANUP_INTERVAL;
    is_short.then(|| {
        format!(
            "kafka.session_timeout_ms = {}: brokers end the open transaction of a killed process up to {} s \
             after its timeout, and its partitions wait meanwhile. To get outputs within the session timeout \
             + {} s, set transaction.abort.timed.out.transaction.cleanup.interval.ms = {} on the brokers",
            session.as_millis(),
            CLEANUP_INTERVAL.as_secs(),
            FAILOVER_BEYOND_SESSION.as_secs(),
            enough.as_millis()
        )
    })
}

/// Returns the greatest duration of an open transaction. A transaction that a killed process left open hides the
/// records of the process's successor from readers.
fn transaction_timeout(session: Duration) -> Duration {
    session / 2
}

/// Returns the options of a cluster, taken from the settings.
fn kafka_options(settings: &Settings, brokers: &str, purpose: Purpose) -> KafkaOptions {
    let kafka = &settings.kafka;
    let properties = kafka.properties.iter();
    KafkaOptions {
        instance_id: Some(settings.engine.node.clone()),
        group_protocol: match kafka.group_protocol {
            settings::GroupProtocol::Classic => GroupProtocol::Classic,
            settings::GroupProtocol::Consumer => GroupProtocol::Consumer,
        },
        session_timeout: kafka.session_timeout,
        transaction_timeout: transaction_timeout(kafka.session_timeout),
        request_timeout: kafka.request_timeout,
        stall_timeout: kafka.request_timeout,
        unpacked_bytes_max: kafka.unpacked_bytes_max,
        figures_interval: (purpose == Purpose::Run).then_some(CLIENT_FIGURES_INTERVAL),
        extra: properties.map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect(),
        ..KafkaOptions::new(brokers)
    }
}
