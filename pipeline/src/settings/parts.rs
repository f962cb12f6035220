//! The typed settings of each part, built from checked values, and the relations between keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use warptape_cuda::{CudaDevices, Inventory, cache_folder};
use warptape_engine::{Config, Limits, Times};
use warptape_eventlog::Durability;
use warptape_kernels::{BarSpec, IndicatorParams, Isa, Parameter, SignalParams};
use warptape_scheduler::{GROUPS_TOTAL_MAX, STEP_BYTES_MAX, check_config, in_steps};
use warptape_schemas::SchemaSource;
use warptape_schemas::journal::{LaneSpec, RiskConfig, SchedulerConfig, SplitPolicy};
use warptape_stages::{MarketConfig, Numbers, QuoteOrder, StageConfig};

use super::lanes::{self, GpuProbe};
use super::mistake::Mistake;
use super::secret::Secret;
use super::show::Effective;
use super::sources::Origin;
use super::syntax::{self, LANES_MAX};
use super::value::Setting;
use crate::engine::{COMMIT_BYTES_MAX, EngineConfig, Retention, TopicPlan, Topics, faulty};

/// Retention of records that are never removed: the longest that a cluster takes, ms.
const FOR_EVER: Duration = Duration::from_millis(i64::MAX as u64);
/// Processes that a group on Kafka has room for.
const JOURNAL_PARTITIONS_KAFKA: i32 = 16;
use warptape_hot::{HotConfig, HotUrl};

/// Everything that can be configured, parsed and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Section `log`.
    pub log: LogSettings,
    /// Section `topics`.
    pub topics: TopicSettings,
    /// Section `hot_state`.
    pub hot_state: HotStateSettings,
    /// Section `kafka`.
    pub kafka: KafkaSettings,
    /// Section `schema_registry`; `None` without an address.
    pub registry: Option<RegistrySettings>,
    /// Section `engine`.
    pub engine: EngineSettings,
    /// Section `scheduler`.
    pub scheduler: SchedulerConfig,
    /// Section `stages`.
    pub stages: StageConfig,
}

/// Where events are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// `sqlite:PATH` or `kafka:HOST:PORT[,HOST:PORT…]`.
    pub url: String,
    /// What a commit survives.
    pub durability: Durability,
}

/// Names of topics, and how missing ones are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// Names, prefix included.
    pub names: Topics,
    /// Put before every name.
    pub prefix: String,
    /// Partitions of a topic that is created.
    pub partitions: i32,
    /// Those of the journal; 0 for what fits the log.
    pub journal_partitions: i32,
}

/// The latest of each symbol, and results of risk requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotStateSettings {
    /// Where it is kept.
    pub url: HotUrl,
    /// Put before every key, followed by the prefix of topics.
    pub prefix: String,
    /// How long a result is kept.
    pub result_ttl: Duration,
}

/// How to be a client of Kafka, and how topics are created there. The name of the process in its group is
/// [`EngineSettings::node`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaSettings {
    /// Protocol of the consumer group.
    pub group_protocol: GroupProtocol,
    /// Silence after which a member is taken for dead.
    pub session_timeout: Duration,
    /// Longest wait for an answer of the cluster.
    pub request_timeout: Duration,
    /// Replicas of a topic that is created; `None` leaves it to the broker.
    pub replication_factor: Option<i16>,
    /// Copies that must have a record before it counts as written; `None` leaves it to the broker.
    pub min_insync_replicas: Option<i16>,
    /// How long topics that are created keep records.
    pub retention: Retention,
    /// Properties of librdkafka by name. They may be secrets: they are not printed.
    pub properties: BTreeMap<String, Secret>,
}

/// Protocol of a consumer group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupProtocol {
    /// Cooperative-sticky assignment by the members.
    Classic,
    /// Assignment by the broker (KIP-848).
    Consumer,
}

/// Where schemas are registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySettings {
    /// `http://HOST:PORT`, without a slash at its end.
    pub url: String,
    /// How long it is asked again when it does not answer.
    pub retry: Duration,
    /// Name and password, where a name was given.
    pub user: Option<(String, Secret)>,
}

/// The loop that reads, feeds lanes and commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// Consumer group.
    pub group: String,
    /// Name of this process within the group.
    pub node: String,
    /// Its number.
    pub ordinal: i32,
    /// One entry for each lane, by index.
    pub lanes: Vec<LaneSpec>,
    /// Why none of them is on a GPU, though it might be: what was not found.
    pub gpus_missing: Option<String>,
    /// Time that a GPU may take for a batch.
    pub device_deadline: Duration,
    /// Time between transactions.
    pub commit_interval: Duration,
    /// Time between transactions while risk results wait.
    pub risk_commit_interval: Duration,
    /// Time of one core that a risk request may be estimated to take, in nanoseconds.
    pub risk_cost_max_ns: i64,
    /// Source records of a partition between two snapshots.
    pub snapshot_interval_records: i64,
    /// Records taken from the log at once.
    pub poll_records_max: usize,
    /// Bytes taken from the log at once, about.
    pub poll_bytes_max: usize,
}

const NS_PER_S: i64 = 1_000_000_000;
/// Service after which a risk task lets others of its tenant go first: some dozens of slices.
const RISK_QUANTUM_NS: i64 = 20_000_000;
/// How long a GPU may take to be opened, at least: its kernels may have to be compiled.
const DEVICE_OPEN_DEADLINE_MIN: Duration = Duration::from_secs(60);
/// Bytes of rows that are kept of a partition's groups on GPUs: of a million rows and more in batches of some size.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Time between looks at how GPUs fare: what changes on them takes as long.
const DEVICE_SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

impl Settings {
    /// What the engine is told: these settings and the writer schemas of a registry, with the fastest instructions that this processor has.
    pub fn engine_config(&self, schemas: Option<Arc<dyn SchemaSource>>) -> EngineConfig {
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let engine = &self.engine;
        let core = Config {
            node: engine.node.clone(),
            group: engine.group.clone(),
            topics: self.topics.names.clone(),
            stages: self.stages.clone(),
            scheduler: self.scheduler.clone(),
            lanes: engine.lanes.clone(),
            limits: Limits {
                kept_bytes_max: KEPT_BYTES_MAX,
                commit_bytes_max: COMMIT_BYTES_MAX,
                risk_result_bytes_max: i64::MAX,
                risk_cost_max_ns: engine.risk_cost_max_ns,
                snapshot_interval_records: engine.snapshot_interval_records,
            },
            times: Times {
                commit_interval_ns: ns(engine.commit_interval),
                risk_commit_interval_ns: ns(engine.risk_commit_interval),
                device_deadline_ns: ns(engine.device_deadline),
                device_open_deadline_ns: ns(engine.device_deadline.max(DEVICE_OPEN_DEADLINE_MIN)),
            },
            new_segment: false,
        };
        EngineConfig {
            core,
            schemas,
            ordinal: engine.ordinal,
            isa: Isa::detect(),
            poll_records_max: engine.poll_records_max,
            poll_bytes_max: engine.poll_bytes_max,
            devices: faulty(Arc::new(CudaDevices::new(cache_folder(|name| std::env::var_os(name))))),
            device_sample_interval: DEVICE_SAMPLE_INTERVAL,
            lane_faults: Vec::new(),
        }
    }

    /// Whether the log is a Kafka cluster.
    pub fn is_on_kafka(&self) -> bool {
        self.log.url.starts_with("kafka:")
    }

    /// How topics are created.
    pub fn topic_plan(&self) -> TopicPlan {
        let journal_partitions = match self.topics.journal_partitions {
            0 if self.is_on_kafka() => JOURNAL_PARTITIONS_KAFKA,
            0 => 1,
            partitions => partitions,
        };
        TopicPlan {
            partitions: self.topics.partitions,
            journal_partitions,
            replication: self.kafka.replication_factor,
            min_insync_replicas: self.kafka.min_insync_replicas,
            retention: self.kafka.retention,
        }
    }

    /// What the keeper of hot state is told.
    pub fn hot_config(&self) -> HotConfig {
        HotConfig {
            prefix: format!("{}{}", self.hot_state.prefix, self.topics.prefix),
            node: self.engine.node.clone(),
            signals: self.topics.names.signals.clone(),
            requests: self.topics.names.risk_requests.clone(),
            results: self.topics.names.risk_results.clone(),
            result_ttl: self.hot_state.result_ttl,
            journal: self.topics.names.journal.clone(),
            groups_per_partition: self.stages.groups_per_partition,
        }
    }
}

/// The GPUs that there are, if the devices may be some and anybody wants to know.
pub(super) fn inventory(effective: &[Effective], probe: Option<&GpuProbe>) -> Option<Inventory> {
    lanes::inventory_for(&Values(effective).list("engine.devices"), probe)
}

/// The settings that checked values amount to.
pub(super) fn build(effective: &[Effective], cores: usize, inventory: Option<&Inventory>) -> Settings {
    let values = Values(effective);
    let ordinal = values.integer("engine.ordinal") as i32;
    let replicas = |key: &str| Some(values.integer(key) as i16).filter(|&replicas| replicas > 0);
    let hours = |topic: &str| {
        Some(match values.integer(&format!("kafka.retention_hours.{topic}")) as u64 {
            0 => FOR_EVER,
            hours => Duration::from_secs(hours * 3600),
        })
    };
    Settings {
        log: LogSettings {
            url: values.text("log.url"),
            durability: match values.text("log.durability").as_str() {
                "full" => Durability::Full,
                _ => Durability::Process,
            },
        },
        topics: TopicSettings {
            names: Topics::new(&values.text("topics.prefix")),
            prefix: values.text("topics.prefix"),
            partitions: values.integer("topics.partitions") as i32,
            journal_partitions: values.integer("topics.journal_partitions") as i32,
        },
        hot_state: HotStateSettings {
            // A value that was refused stands at its default here, and is reported as a mistake.
            url: HotUrl::parse(&values.text("hot_state.url")).expect("the table of keys checked the URL"),
            prefix: values.text("hot_state.prefix"),
            result_ttl: Duration::from_secs(values.integer("hot_state.result_ttl_s") as u64),
        },
        kafka: KafkaSettings {
            group_protocol: match values.text("kafka.group_protocol").as_str() {
                "consumer" => GroupProtocol::Consumer,
                _ => GroupProtocol::Classic,
            },
            session_timeout: Duration::from_millis(values.integer("kafka.session_timeout_ms") as u64),
            request_timeout: Duration::from_millis(values.integer("kafka.request_timeout_ms") as u64),
            replication_factor: replicas("kafka.replication_factor"),
            min_insync_replicas: replicas("kafka.min_insync_replicas"),
            retention: Retention {
                ticks: hours("ticks"),
                signals: hours("signals"),
                journal: hours("journal"),
                late: hours("late"),
                dead_letter: hours("dead_letter"),
                lifecycle: hours("lifecycle"),
                risk_requests: hours("risk_requests"),
                risk_results: hours("risk_results"),
            },
            properties: values.table("kafka.properties"),
        },
        registry: registry(&values),
        engine: EngineSettings {
            group: values.text("engine.group"),
            node: match values.text("engine.node") {
                name if name.is_empty() => format!("node-{ordinal}"),
                name => name,
            },
            ordinal,
            lanes: syntax::lanes(
                &values.list("engine.devices"),
                cores,
                inventory.map_or(0, |found| found.usable().len()),
            ),
            gpus_missing: inventory.and_then(|found| found.missing.clone()),
            device_deadline: Duration::from_millis(values.integer("engine.device_deadline_ms") as u64),
            commit_interval: Duration::from_millis(values.integer("engine.commit_interval_ms") as u64),
            risk_commit_interval: Duration::from_millis(values.integer("risk.commit_interval_ms") as u64),
            risk_cost_max_ns: values.integer("risk.cost_max_s") * NS_PER_S,
            snapshot_interval_records: values.integer("engine.snapshot_interval_records"),
            poll_records_max: values.integer("engine.poll_records_max") as usize,
            poll_bytes_max: values.integer("engine.poll_bytes_max") as usize,
        },
        scheduler: scheduler(&values),
        stages: stages(&values),
    }
}

fn scheduler(values: &Values) -> SchedulerConfig {
    SchedulerConfig {
        placement_policy: in_steps(&values.text("scheduler.placement_policy"), STEP_BYTES_MAX),
        placement_seed: values.integer("scheduler.placement_seed"),
        load_factor_percent: values.integer("scheduler.load_factor_percent") as i32,
        lane_credit_rows: values.integer("scheduler.lane_credit_rows"),
        lane_credit_bytes: values.integer("scheduler.lane_credit_bytes"),
        lane_batches_max: values.integer("scheduler.lane_batches_max") as i32,
        batch_rows_max: values.integer("scheduler.batch_rows_max"),
        row_deadline_ns: values.integer("scheduler.row_deadline_us") * 1_000,
        high_water_rows: values.integer("scheduler.high_water_rows"),
        low_water_rows: values.integer("scheduler.low_water_rows"),
        route_interval_ns: values.integer("scheduler.route_interval_ms") * 1_000_000,
        risk: risk(values),
    }
}

fn risk(values: &Values) -> RiskConfig {
    let tenants = values.list("risk.tenant_weights");
    let weight = |text: &String| {
        syntax::tenant_weight(text).unwrap_or_else(|| unreachable!("{text} was checked when it was read"))
    };
    RiskConfig {
        slice_ns: values.integer("risk.slice_us") * 1_000,
        tasks_max: values.integer("risk.tasks_max") as i32,
        bytes_max: values.integer("risk.bytes_max"),
        quantum_ns: RISK_QUANTUM_NS,
        split: match values.text("risk.split").as_str() {
            "equal" => SplitPolicy::Equal,
            "score" => SplitPolicy::Score,
            _ => SplitPolicy::Dynamic,
        },
        tenant_weights: tenants.iter().map(weight).collect(),
    }
}

fn stages(values: &Values) -> StageConfig {
    let parameter = |parameter: &Parameter| match parameter.is_window {
        true => values.integer(parameter.path) as f64,
        false => values.number(parameter.path),
    };
    let bar =
        |text: String| text.parse::<BarSpec>().expect("the table of keys checked every bar specification");
    StageConfig {
        bars: values.list("stages.bars").into_iter().map(bar).collect(),
        allowed_lateness_ns: values.integer("stages.allowed_lateness_ms") * 1_000_000,
        groups_per_partition: values.integer("stages.groups_per_partition") as u32,
        indicators: IndicatorParams::from_values(parameter),
        signals: SignalParams {
            rsi_upper: values.number("stages.signals.rsi_upper"),
            rsi_lower: values.number("stages.signals.rsi_lower"),
            zscore_threshold: values.number("stages.signals.zscore_threshold"),
        },
        market: MarketConfig {
            sample_interval_ns: values.integer("stages.market.sample_interval_ms") * 1_000_000,
            window: values.integer("stages.market.window") as u32,
            decay: values.number("stages.market.decay"),
            trading_hours_a_year: values.number("stages.market.trading_hours_a_year"),
        },
        quotes: QuoteOrder::EventTime,
        numbers: Numbers::Exact,
        future_max_ns: Some(values.integer("stages.future_max_ms") * 1_000_000),
        clock_skew_max_ns: Some(values.integer("stages.clock_skew_max_ms") * 1_000_000),
    }
}

fn registry(values: &Values<'_>) -> Option<RegistrySettings> {
    let url = values.text("schema_registry.url").trim_end_matches('/').to_owned();
    let name = values.text("schema_registry.username");
    let password = values.secret("schema_registry.password");
    let user = (!name.is_empty()).then(|| (name, password.unwrap_or_else(|| Secret::new(""))));
    let retry = Duration::from_millis(values.integer("schema_registry.retry_ms") as u64);
    (!url.is_empty()).then_some(RegistrySettings { url, retry, user })
}

/// A mistake that shows only when keys are seen together.
pub(super) struct Relation {
    pub(super) mistake: Mistake,
    /// The other key.
    against: Option<String>,
}

impl Relation {
    /// Whether the value of a key is a part of it.
    pub(super) fn involves(&self, path: &str) -> bool {
        self.mistake.key == path || self.against.as_deref() == Some(path)
    }
}

/// Mistakes that show only when keys are seen together. The crates that live by a relation say what it is.
pub(super) fn relations(
    settings: &Settings,
    effective: &[Effective],
    inventory: Option<&Inventory>,
) -> Vec<Relation> {
    let mut mistakes = Vec::new();
    let devices = Values(effective).list("engine.devices");
    if let Some(allowed) = inventory.and_then(|found| lanes::absent(&devices, found)) {
        mistakes.push(relation(effective, "engine.devices", None, &allowed));
    }
    let lanes = settings.engine.lanes.len();
    // Who does not know the GPUs does not know what `auto` comes to.
    let counted = inventory.is_some() || !devices.iter().any(|device| device == "auto");
    if counted && lanes > LANES_MAX {
        mistakes.push(relation(
            effective,
            "engine.devices",
            None,
            &format!("at most {LANES_MAX} lanes, these are {lanes}"),
        ));
    }
    if settings.registry.as_ref().is_some_and(|registry| registry.user.is_none())
        && Values(effective).secret("schema_registry.password").is_some()
    {
        mistakes.push(relation(
            effective,
            "schema_registry.username",
            Some("schema_registry.password"),
            "a name for the password that is given",
        ));
    }
    let groups = i64::from(settings.topics.partitions) * i64::from(settings.stages.groups_per_partition);
    if groups > GROUPS_TOTAL_MAX {
        let allowed =
            format!("topics.partitions times this is {groups}, at most {GROUPS_TOTAL_MAX} are allowed");
        mistakes.push(relation(
            effective,
            "stages.groups_per_partition",
            Some("topics.partitions"),
            &allowed,
        ));
    }
    for mistake in check_config(&settings.scheduler) {
        // What a key's own limits leave of risk's mistakes is a tenant that is named twice.
        let path = match mistake.field.starts_with("risk.tenant_weights") {
            true => "risk.tenant_weights".to_owned(),
            false => format!("scheduler.{}", mistake.field),
        };
        let against = mistake.against.map(|field| format!("scheduler.{field}"));
        mistakes.push(relation(effective, &path, against.as_deref(), &mistake.allowed));
    }
    for mistake in settings.stages.check() {
        let path = format!("stages.{}", mistake.field);
        let section = path.rsplit_once('.').map_or("stages", |(section, _)| section);
        let against = mistake.against.map(|field| format!("{section}.{field}"));
        mistakes.push(relation(effective, &path, against.as_deref(), &mistake.allowed));
    }
    mistakes
}

/// The relation of a key to another one, if there is another one; either may be named by its field.
fn relation(effective: &[Effective], path: &str, against: Option<&str>, allowed: &str) -> Relation {
    let (path, against) = (key_of_field(path), against.map(|path| key_of_field(path).to_owned()));
    let allowed = allowed.to_owned();
    let mistake = match effective.iter().find(|entry| entry.key.path == path) {
        Some(entry) => Mistake {
            key: entry.key.path.to_owned(),
            origin: entry.origin.clone(),
            found: entry.value.to_toml(),
            allowed,
        },
        None => {
            Mistake { key: path.to_owned(), origin: Origin::Default, found: "a conflict".to_owned(), allowed }
        }
    };
    Relation { mistake, against }
}

/// The key of a field: some have friendlier units.
fn key_of_field(path: &str) -> &str {
    KEYS_OF_FIELDS.iter().find(|(field, _)| *field == path).map_or(path, |(_, key)| *key)
}

/// Fields whose keys have friendlier units.
const KEYS_OF_FIELDS: &[(&str, &str)] = &[
    ("scheduler.row_deadline_ns", "scheduler.row_deadline_us"),
    ("stages.allowed_lateness_ns", "stages.allowed_lateness_ms"),
    ("stages.future_max_ns", "stages.future_max_ms"),
    ("stages.clock_skew_max_ns", "stages.clock_skew_max_ms"),
    ("stages.market.sample_interval_ns", "stages.market.sample_interval_ms"),
];

struct Values<'a>(&'a [Effective]);

impl Values<'_> {
    fn get(&self, path: &str) -> &Setting {
        let entry = self.0.iter().find(|entry| entry.key.path == path);
        &entry.unwrap_or_else(|| unreachable!("{path} is not in the table of keys")).value
    }

    fn text(&self, path: &str) -> String {
        match self.get(path) {
            Setting::Text(text) => text.clone(),
            other => unreachable!("{path} is a text in the table of keys, not {other:?}"),
        }
    }

    fn secret(&self, path: &str) -> Option<Secret> {
        match self.get(path) {
            Setting::Secret(secret) => secret.clone(),
            other => unreachable!("{path} is a secret in the table of keys, not {other:?}"),
        }
    }

    fn table(&self, path: &str) -> BTreeMap<String, Secret> {
        match self.get(path) {
            Setting::Table(names) => {
                names.iter().map(|(name, entry)| (name.clone(), Secret::new(entry.text.reveal()))).collect()
            }
            other => unreachable!("{path} is a table in the table of keys, not {other:?}"),
        }
    }

    fn integer(&self, path: &str) -> i64 {
        match self.get(path) {
            Setting::Integer(number) => *number,
            other => unreachable!("{path} is a whole number in the table of keys, not {other:?}"),
        }
    }

    fn number(&self, path: &str) -> f64 {
        match self.get(path) {
            Setting::Number(number) => *number,
            other => unreachable!("{path} is a number in the table of keys, not {other:?}"),
        }
    }

    fn list(&self, path: &str) -> Vec<String> {
        match self.get(path) {
            Setting::List(items) => items.clone(),
            other => unreachable!("{path} is a list in the table of keys, not {other:?}"),
        }
    }
}
