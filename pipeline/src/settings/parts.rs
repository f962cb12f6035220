//! The typed settings of each part of the pipeline, built from checked values, and the configurations made from them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use warptape_cuda::{CudaDevices, Inventory, cache_folder};
use warptape_engine::{AcceptedLoss, Config, Limits, Times};
use warptape_hot::HotConfig;
use warptape_kernels::Isa;
use warptape_scheduler::current_task_policy;
use warptape_schemas::SchemaSource;
use warptape_schemas::journal::{AutoscaleConfig, LaneSpec, SchedulerConfig, ShadowConfig, Trained};
use warptape_stages::{Lateness, StageConfig};

use super::declaration::{FromKeys as _, Values};
use super::sections::{
    AutoscaleSettings, EndpointSettings, EngineSettings, HotStateSettings, JournalSettings, KafkaSettings,
    LogSettings, OtlpSettings, RegistrySettings, RiskSettings, TopicSettings,
};
use super::syntax;
use crate::runtime::{COMMIT_BYTES_MAX, ConfiguredLanes, EngineConfig, TopicPlan, faulty};

/// Default number of processes that a group on Kafka may have.
const JOURNAL_PARTITIONS_KAFKA: i32 = 16;
/// Least deadline for opening a GPU, because its kernels may have to be compiled.
const DEVICE_OPEN_DEADLINE_MIN: Duration = Duration::from_secs(60);
/// Bytes of rows kept for a partition's groups on GPUs; enough for a million rows or more, in batches of moderate size.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Time between two samples of the GPUs' state. A change on a GPU takes about as long.
const DEVICE_SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Everything that can be configured, parsed and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Section `log`.
    pub log: LogSettings,
    /// Section `topics`.
    pub topics: TopicSettings,
    /// Section `journal`.
    pub journal: JournalSettings,
    /// Section `hot_state`.
    pub hot_state: HotStateSettings,
    /// Section `kafka`.
    pub kafka: KafkaSettings,
    /// Section `schema_registry`.
    pub registry: RegistrySettings,
    /// Section `otlp`.
    pub otlp: OtlpSettings,
    /// Section `engine`. The node's default name is made from the ordinal.
    pub engine: EngineSettings,
    /// Section `scheduler`, with the scheduler's part of section `risk`.
    pub scheduler: SchedulerConfig,
    /// Section `autoscale`; `None` if its policy is `off`.
    pub autoscale: Option<AutoscaleConfig>,
    /// Section `risk`.
    pub risk: RiskSettings,
    /// Section `stages`.
    pub stages: StageConfig,
    /// Section `endpoint`.
    pub endpoint: EndpointSettings,
    /// The lanes on `engine.devices`.
    pub lanes: LaneSettings,
    /// Inputs of task policies, from section `risk`.
    pub task_policies: TaskPolicySettings,
}

/// The lanes, and the reason if none of them is on a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneSettings {
    /// Lanes by index.
    pub specs: Vec<LaneSpec>,
    /// Missing part because of which no lane is on a GPU although the devices allow one; `None` otherwise.
    pub gpus_missing: Option<String>,
}

/// Inputs of task policies.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPolicySettings {
    /// Networks that task policies may name.
    pub networks: Vec<Trained>,
    /// Policies that run in the shadow of the deciding one; `None` if there are none.
    pub shadow: Option<ShadowConfig>,
}

/// Builds the settings from checked values, for a machine with `cores` cores and the GPUs of `inventory`.
pub(super) fn build(values: &Values<'_>, cores: usize, inventory: Option<&Inventory>) -> Settings {
    let mut engine = EngineSettings::read(values);
    if engine.node.is_empty() {
        engine.node = format!("node-{}", engine.ordinal);
    }
    let risk = RiskSettings::read(values);
    let policies = risk.shadow.iter().map(|name| current_task_policy(name)).collect();
    let shadow = ShadowConfig { policies, every: risk.shadow_every };
    Settings {
        log: LogSettings::read(values),
        topics: TopicSettings::read(values),
        journal: JournalSettings::read(values),
        hot_state: HotStateSettings::read(values),
        kafka: KafkaSettings::read(values),
        registry: RegistrySettings::read(values),
        otlp: OtlpSettings::read(values),
        scheduler: SchedulerConfig::read(values),
        autoscale: AutoscaleSettings::read(values).config(),
        risk,
        stages: StageConfig::read(values),
        endpoint: EndpointSettings::read(values),
        lanes: LaneSettings {
            specs: syntax::lanes(&engine.devices, cores, inventory.map_or(0, |found| found.usable().len())),
            gpus_missing: inventory.and_then(|found| found.missing.clone()),
        },
        task_policies: TaskPolicySettings {
            networks: Vec::new(),
            shadow: (!shadow.policies.is_empty()).then_some(shadow),
        },
        engine,
    }
}

impl Settings {
    /// Returns the engine's configuration, made from these settings, the writer schemas of a registry, and the fastest
    /// instruction set of this processor.
    pub fn engine_config(&self, schemas: Option<Arc<dyn SchemaSource>>) -> EngineConfig {
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let engine = &self.engine;
        let core = Config {
            node: engine.node.clone(),
            group: engine.group.clone(),
            topics: self.topics.names.clone(),
            stages: self.stages.clone(),
            scheduler: self.scheduler.clone(),
            autoscale: self.autoscale,
            shadow: self.task_policies.shadow.clone(),
            networks: self.task_policies.networks.clone(),
            lanes: self.lanes.specs.clone(),
            limits: Limits {
                kept_bytes_max: KEPT_BYTES_MAX,
                commit_bytes_max: COMMIT_BYTES_MAX,
                risk_result_bytes_max: i64::MAX,
                risk_cost_max_ns: self.risk.cost_max_ns,
                snapshot_interval_records: engine.snapshot_interval_records,
            },
            times: Times {
                commit_interval_ns: ns(engine.commit_interval),
                checkpoint_interval_ns: self.engine.checkpoint_interval_ns,
                risk_commit_interval_ns: ns(self.risk.commit_interval),
                device_deadline_ns: ns(engine.device_deadline),
                device_open_deadline_ns: ns(engine.device_deadline.max(DEVICE_OPEN_DEADLINE_MIN)),
                evict_idle_ns: engine.evict_idle_ns,
                idle_close_ns: engine.idle_close_ns,
            },
            new_segment: false,
            accepted_loss: AcceptedLoss::None,
            closes_bars: false,
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
            lanes: Arc::new(ConfiguredLanes),
            anchoring: None,
            traces: None,
        }
    }

    /// True if the log is a Kafka cluster.
    pub fn is_on_kafka(&self) -> bool {
        self.log.url.starts_with("kafka:")
    }

    /// Returns the folder of an embedded log; `None` on Kafka.
    pub fn log_folder(&self) -> Option<PathBuf> {
        let path = Path::new(self.log.url.strip_prefix("sqlite:")?);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(folder.unwrap_or(Path::new(".")).to_owned())
    }

    /// Returns the plan for creating topics.
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

    /// Returns the configuration of hot state.
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
            lateness: Lateness::of(&self.stages),
        }
    }
}
