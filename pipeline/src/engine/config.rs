//! What an engine needs to be told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use warptape_engine::{Config, Limits, Times};
use warptape_eventlog::TopicSpec;
use warptape_eventlog::sqlite::TRANSACTION_BYTES_MAX;
use warptape_kernels::Isa;
use warptape_kernels::device::{DeviceError, Devices};
use warptape_schemas::SchemaSource;
use warptape_schemas::journal::{LaneId, LaneKind, LaneSpec, SchedulerConfig};
use warptape_stages::StageConfig;

use super::{LaneFault, LaneStages};

/// A good limit of [`EngineConfig::commit_bytes_max`], far below what a log takes at once.
pub const COMMIT_BYTES_MAX: usize = 16 << 20;
const _: () = assert!(COMMIT_BYTES_MAX * 8 <= TRANSACTION_BYTES_MAX);

/// Configuration of an engine, checked where it was read.
#[derive(Clone)]
pub struct EngineConfig {
    /// Name of the process, for people.
    pub node: String,
    /// Number of the process in its group, from 0: its partition of the journal, and part of its transactional id.
    pub ordinal: i32,
    /// Consumer group, also the prefix of the transactional id.
    pub group: String,
    /// Topic names.
    pub topics: Topics,
    /// What outputs depend on.
    pub stages: StageConfig,
    /// What the scheduler goes by.
    pub scheduler: SchedulerConfig,
    /// Lanes, by index.
    pub lanes: Vec<LaneSpec>,
    /// Instruction set of the CPU lanes.
    pub isa: Isa,
    /// Where the devices of the other lanes come from.
    pub devices: Arc<dyn Devices>,
    /// How long a lane on a device may take for a batch.
    pub device_deadline: Duration,
    /// How long it may take for anything else: to open its device, or to make up for what a group has missed.
    pub device_open_deadline: Duration,
    /// Bytes of rows that are kept of a partition's groups on devices, about, since their states were written last.
    pub kept_bytes_max: usize,
    /// Time between looks at how devices fare.
    pub device_sample_interval: Duration,
    /// Time between commits.
    pub commit_interval: Duration,
    /// Time between commits while risk results wait.
    pub risk_commit_interval: Duration,
    /// Time of one core that a risk request may be estimated to take, in nanoseconds; a larger one is refused.
    pub risk_cost_max_ns: i64,
    /// Bytes of signals, late ticks and dead letters in one transaction, and of risk results, about: what a record causes is never
    /// torn apart.
    pub commit_bytes_max: usize,
    /// Bytes of the largest risk result, its key among them; a larger one becomes an error. The engine lowers it to what the topic
    /// takes.
    pub risk_result_bytes_max: i64,
    /// Source records of a partition between snapshots.
    pub snapshot_interval_records: i64,
    /// Records of one fetch.
    pub poll_records_max: usize,
    /// Bytes of one fetch, about.
    pub poll_bytes_max: usize,
    /// Writer schemas of ticks in a registry's frame.
    pub schemas: Option<Arc<dyn SchemaSource>>,
    /// Whether partitions that were processed under other `stages` may go on under these, as a new segment of the log.
    pub new_segment: bool,
    /// Faults to inject, for tests.
    pub lane_faults: Vec<LaneFault>,
}

impl EngineConfig {
    /// What of it decides.
    pub fn core(&self) -> Config {
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Config {
            node: self.node.clone(),
            group: self.group.clone(),
            ticks: self.topics.ticks.clone(),
            risk_requests: self.topics.risk_requests.clone(),
            stages: self.stages.clone(),
            scheduler: self.scheduler.clone(),
            lanes: self.lanes.clone(),
            limits: Limits {
                kept_bytes_max: self.kept_bytes_max,
                commit_bytes_max: self.commit_bytes_max,
                risk_result_bytes_max: self.risk_result_bytes_max,
                risk_cost_max_ns: self.risk_cost_max_ns,
                snapshot_interval_records: self.snapshot_interval_records,
            },
            times: Times {
                commit_interval_ns: ns(self.commit_interval),
                risk_commit_interval_ns: ns(self.risk_commit_interval),
                device_deadline_ns: ns(self.device_deadline),
                device_open_deadline_ns: ns(self.device_open_deadline),
            },
            new_segment: self.new_segment,
        }
    }

    /// The same in every life of the process, so that a new one fences the one before.
    pub fn transactional_id(&self) -> String {
        format!("{}-{}", self.group, self.ordinal)
    }

    /// Whether a lane's state is elsewhere than in the host's memory.
    pub fn is_on_device(&self, lane: LaneId) -> bool {
        self.lanes[lane as usize].kind() == LaneKind::Device
    }

    /// Whether groups are moved between lanes on the processor and lanes on devices.
    pub fn routes(&self) -> bool {
        warptape_scheduler::routes(&self.scheduler, &self.lanes)
    }

    /// The device of a lane, by the name it is opened with: several lanes of a device have names of their own.
    pub fn device_of(&self, lane: LaneId) -> &str {
        let name = self.lanes[lane as usize].device.as_str();
        name.split_once('#').map_or(name, |(device, _)| device)
    }

    /// All devices that lanes are on, the processor left out.
    pub fn device_names(&self) -> Vec<String> {
        let lanes = (0..self.lanes.len() as LaneId).filter(|lane| self.is_on_device(*lane));
        let names: BTreeSet<String> = lanes.map(|lane| self.device_of(lane).to_owned()).collect();
        names.into_iter().collect()
    }

    /// Whether a lane is measured when it begins: the first one of each device, where it matters.
    pub(super) fn is_measured(&self, lane: LaneId) -> bool {
        let of = |lane: LaneId| match self.lanes[lane as usize].kind() {
            LaneKind::Host => "cpu",
            LaneKind::Device => self.device_of(lane),
        };
        self.routes() && (0..lane).all(|other| of(other) != of(lane))
    }

    /// A lane without groups, on its device.
    pub fn lane_stages(&self, lane: LaneId) -> Result<LaneStages, DeviceError> {
        if !self.is_on_device(lane) {
            return Ok(LaneStages::on_host(&self.stages, self.isa));
        }
        let device = self.devices.open(self.device_of(lane))?;
        LaneStages::on_device(&self.lanes[lane as usize].device, device, &self.stages, self.isa)
    }
}

/// Names of the topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// Ticks in.
    pub ticks: String,
    /// Signals out.
    pub signals: String,
    /// Scheduler inputs and decisions.
    pub journal: String,
    /// Stage state.
    pub snapshots: String,
    /// Ticks behind the watermark.
    pub late: String,
    /// Records that cannot be processed.
    pub dead_letter: String,
    /// Starts, losses, stops; not transactional.
    pub lifecycle: String,
    /// Risk requests in.
    pub risk_requests: String,
    /// Their results out.
    pub risk_results: String,
    /// How far sources of ticks are in the log.
    pub feeds: String,
}

impl Topics {
    /// All names with a prefix.
    pub fn new(prefix: &str) -> Self {
        let name = |topic: &str| format!("{prefix}{topic}");
        Self {
            ticks: name("ticks"),
            signals: name("signals"),
            journal: name("journal"),
            snapshots: name("snapshots"),
            late: name("late"),
            dead_letter: name("dead-letter"),
            lifecycle: name("lifecycle"),
            risk_requests: name("risk.requests"),
            risk_results: name("risk.results"),
            feeds: name("feeds"),
        }
    }

    /// Those that need a partition for each of the ticks'.
    pub fn beside_ticks(&self) -> [&str; 6] {
        [
            &self.signals,
            &self.snapshots,
            &self.late,
            &self.dead_letter,
            &self.risk_requests,
            &self.risk_results,
        ]
    }

    /// The topics as they are created: outputs have the partitions of the source, the journal one for each process.
    pub fn specs(&self, plan: &TopicPlan) -> Vec<TopicSpec> {
        let TopicPlan { partitions, journal_partitions, retention, .. } = *plan;
        let spec = |name: &str, partitions: i32, retention: Option<Duration>| TopicSpec {
            name: name.to_owned(),
            partitions,
            compacted: false,
            replication: plan.replication,
            min_insync_replicas: plan.min_insync_replicas,
            retention,
        };
        vec![
            spec(&self.ticks, partitions, retention.ticks),
            spec(&self.signals, partitions, retention.signals),
            spec(&self.journal, journal_partitions, retention.journal),
            TopicSpec { compacted: true, ..spec(&self.snapshots, partitions, None) },
            spec(&self.late, partitions, retention.late),
            spec(&self.dead_letter, partitions, retention.dead_letter),
            spec(&self.lifecycle, 1, retention.lifecycle),
            spec(&self.risk_requests, partitions, retention.risk_requests),
            spec(&self.risk_results, partitions, retention.risk_results),
            TopicSpec { compacted: true, ..spec(&self.feeds, 1, None) },
        ]
    }
}

/// How topics are created. What is `None` is left to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicPlan {
    /// Partitions of the source and of what is made of it.
    pub partitions: i32,
    /// Partitions of the journal: as many processes can be in a group.
    pub journal_partitions: i32,
    /// Brokers that keep a copy.
    pub replication: Option<i16>,
    /// Copies that must have a record before it counts as written.
    pub min_insync_replicas: Option<i16>,
    /// How long records are kept.
    pub retention: Retention,
}

impl TopicPlan {
    /// For one process, with everything else left to the log.
    pub fn new(partitions: i32) -> Self {
        Self {
            partitions,
            journal_partitions: 1,
            replication: None,
            min_insync_replicas: None,
            retention: Retention::default(),
        }
    }
}

/// How long records are kept, by topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Ticks.
    pub ticks: Option<Duration>,
    /// Signals.
    pub signals: Option<Duration>,
    /// Journal.
    pub journal: Option<Duration>,
    /// Late ticks.
    pub late: Option<Duration>,
    /// Dead letters.
    pub dead_letter: Option<Duration>,
    /// Lifecycle.
    pub lifecycle: Option<Duration>,
    /// Risk requests.
    pub risk_requests: Option<Duration>,
    /// Risk results: a request's id is known as long as its result is.
    pub risk_results: Option<Duration>,
}
