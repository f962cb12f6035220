//! Configuration of an engine.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use warptape_engine::{Config, Topics};
use warptape_eventlog::TopicSpec;
use warptape_eventlog::sqlite::TRANSACTION_BYTES_MAX;
use warptape_kernels::Isa;
use warptape_kernels::device::{DeviceError, Devices};
use warptape_schemas::SchemaSource;
use warptape_schemas::journal::{LaneId, LaneKind};

use super::{Anchoring, LaneStages, OpenLanes};
use crate::traces::TraceSender;

/// Value of the core's `commit_bytes_max`, far below the limits of logs.
pub const COMMIT_BYTES_MAX: usize = 16 << 20;
const _: () = assert!(COMMIT_BYTES_MAX * 8 <= TRANSACTION_BYTES_MAX);

/// Configuration of a running engine, already checked.
#[derive(Clone)]
pub struct EngineConfig {
    /// Configuration of the core.
    pub core: Config,
    /// Ordinal of the process in its group, from 0. It is the process's partition of the journal, and part of its
    /// transactional id.
    pub ordinal: i32,
    /// Instruction set of the CPU lanes.
    pub isa: Isa,
    /// Devices of the other lanes.
    pub devices: Arc<dyn Devices>,
    /// Opens lanes on these devices.
    pub lanes: Arc<dyn OpenLanes>,
    /// Time between samples of the devices' state.
    pub device_sample_interval: Duration,
    /// Greatest number of records in one fetch.
    pub poll_records_max: usize,
    /// Approximate greatest number of bytes in one fetch.
    pub poll_bytes_max: usize,
    /// Writer schemas of ticks in a registry's frame; `None` without a registry.
    pub schemas: Option<Arc<dyn SchemaSource>>,
    /// Anchoring of the journal; `None` if it is not anchored.
    pub anchoring: Option<Anchoring>,
    /// Receiver of traces of sampled records and requests; `None` if nothing is traced.
    pub traces: Option<TraceSender>,
}

impl EngineConfig {
    /// Returns the transactional id. It is the same in every life of the process, so that a new life fences the
    /// previous one.
    pub fn transactional_id(&self) -> String {
        format!("{}-{}", self.core.group, self.ordinal)
    }

    /// True if the scheduler moves groups between lanes on the processor and lanes on devices.
    pub fn routes(&self) -> bool {
        warptape_scheduler::routes(&self.core.scheduler, &self.core.lanes)
    }

    /// Returns all devices of lanes, except the processor.
    pub fn device_names(&self) -> Vec<String> {
        let lanes = (0..self.core.lanes.len() as LaneId).filter(|lane| self.core.is_on_device(*lane));
        let names: BTreeSet<String> = lanes.map(|lane| self.core.device_of(lane).to_owned()).collect();
        names.into_iter().collect()
    }

    /// True if a lane is measured when it starts: the first lane of each device, if measurements are used.
    pub(super) fn is_measured(&self, lane: LaneId) -> bool {
        let of = |lane: LaneId| match self.core.lanes[lane as usize].kind() {
            LaneKind::Host => "cpu",
            LaneKind::Device => self.core.device_of(lane),
        };
        let matters = self.routes() || warptape_scheduler::measures(&self.core.scheduler);
        matters && (0..lane).all(|other| of(other) != of(lane))
    }

    /// Returns the stages of a lane, without groups, on the lane's device.
    pub fn lane_stages(&self, lane: LaneId) -> Result<LaneStages, DeviceError> {
        if !self.core.is_on_device(lane) {
            return Ok(LaneStages::on_host(&self.core.stages, self.isa));
        }
        let device = self.devices.open(self.core.device_of(lane))?;
        LaneStages::on_device(&self.core.lanes[lane as usize].device, device, &self.core.stages, self.isa)
    }
}

/// Returns the topics to create. Output topics have as many partitions as the source; the journal and control topics
/// have one for each process.
pub fn topic_specs(topics: &Topics, plan: &TopicPlan) -> Vec<TopicSpec> {
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
        spec(&topics.ticks, partitions, retention.ticks),
        spec(&topics.signals, partitions, retention.signals),
        spec(&topics.journal, journal_partitions, retention.journal),
        TopicSpec { compacted: true, ..spec(&topics.snapshots, partitions, None) },
        spec(&topics.late, partitions, retention.late),
        spec(&topics.dead_letter, partitions, retention.dead_letter),
        spec(&topics.lifecycle, 1, retention.lifecycle),
        spec(&topics.risk_requests, partitions, retention.risk_requests),
        spec(&topics.risk_results, partitions, retention.risk_results),
        TopicSpec { compacted: true, ..spec(&topics.feeds, 1, None) },
        spec(&topics.control, journal_partitions, retention.lifecycle),
        spec(&topics.control_results, journal_partitions, retention.lifecycle),
    ]
}

/// Plan for creating topics. `None` leaves a value to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicPlan {
    /// Number of partitions of the source and of outputs.
    pub partitions: i32,
    /// Number of partitions of the journal, which is the greatest number of processes in a group.
    pub journal_partitions: i32,
    /// Number of brokers that keep a copy.
    pub replication: Option<i16>,
    /// Number of copies that must have a record before it counts as written.
    pub min_insync_replicas: Option<i16>,
    /// Retention of records.
    pub retention: Retention,
}

impl TopicPlan {
    /// Returns a plan for one process that leaves everything else to the log.
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

/// Retention of records by topic; `None` leaves it to the log.
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
    /// Lifecycle, and operators' commands with their answers.
    pub lifecycle: Option<Duration>,
    /// Risk requests.
    pub risk_requests: Option<Duration>,
    /// Risk results. A request's id is known for as long as its result is kept.
    pub risk_results: Option<Duration>,
}
