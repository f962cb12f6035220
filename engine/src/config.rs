//! Configuration of an engine.

use std::collections::BTreeMap;

use warptape_events::journal::{
    AutoscaleConfig, LaneId, LaneKind, LaneSpec, SchedulerConfig, ShadowConfig, Trained,
};
use warptape_stages::StageConfig;

use crate::topics::Topics;

/// Configuration of an engine, checked by its reader.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the process, for people.
    pub node: String,
    /// Consumer group, also the prefix of the transactional id.
    pub group: String,
    /// Names of topics.
    pub topics: Topics,
    /// Stage configuration, on which outputs depend.
    pub stages: StageConfig,
    /// Scheduler configuration.
    pub scheduler: SchedulerConfig,
    /// Rules for the number of wanted lanes; `None` turns autoscaling off.
    pub autoscale: Option<AutoscaleConfig>,
    /// Task policies to run in the shadow; `None` if there are none.
    pub shadow: Option<ShadowConfig>,
    /// Trained networks that task policies may name.
    pub networks: Vec<Trained>,
    /// Lanes, by index.
    pub lanes: Vec<LaneSpec>,
    /// Sizes.
    pub limits: Limits,
    /// Intervals and deadlines.
    pub times: Times,
    /// True if partitions that were processed under another stage configuration may continue under `stages`, as a new
    /// segment of the log.
    pub new_segment: bool,
    /// Records that may be given up if the log has removed them.
    pub accepted_loss: AcceptedLoss,
    /// True if all time bars are closed before a stop at offsets, by a `SetEventTime` record among the ticks.
    pub closes_bars: bool,
}

/// Tick records that no process has processed and that may be given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AcceptedLoss {
    /// None.
    #[default]
    None,
    /// All records that the log has removed, in any partition.
    Removed,
    /// Records before an offset, by partition.
    Before(BTreeMap<i32, i64>),
}

impl AcceptedLoss {
    /// True if the partition's records before `first`, which the log has removed, may be given up.
    pub(crate) fn covers(&self, partition: i32, first: i64) -> bool {
        match self {
            Self::None => false,
            Self::Removed => true,
            Self::Before(_) => self.before(partition).is_some_and(|before| first <= before),
        }
    }

    /// Offset at which a partition continues; `None` if the operator gave none.
    pub fn before(&self, partition: i32) -> Option<i64> {
        match self {
            Self::None | Self::Removed => None,
            Self::Before(offsets) => offsets.get(&partition).copied(),
        }
    }
}

/// Sizes that limit the engine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Approximate limit of the rows that a partition keeps for its groups on devices, in bytes. Rows are kept since a
    /// group's last snapshot, because a lost device is rebuilt from both.
    pub kept_bytes_max: usize,
    /// Approximate bytes of signals, late ticks, dead letters and risk results in one transaction. The outputs of one
    /// record are never split.
    pub commit_bytes_max: usize,
    /// Largest risk result in bytes, including its key; a larger one becomes an error.
    pub risk_result_bytes_max: i64,
    /// Longest estimated time of a risk request on one core, in nanoseconds; a larger request is refused.
    pub risk_cost_max_ns: i64,
    /// Source records of a partition between snapshots.
    pub snapshot_interval_records: i64,
}

/// Intervals and deadlines, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Time between commits.
    pub commit_interval_ns: i64,
    /// Time between entries of the journal that hold the scheduler's state.
    pub checkpoint_interval_ns: i64,
    /// Time between commits while risk results wait.
    pub risk_commit_interval_ns: i64,
    /// Longest time that a lane on a device may take for a batch.
    pub device_deadline_ns: i64,
    /// Longest time for any other work of such a lane: opening its device, installing a group, or a slice.
    pub device_open_deadline_ns: i64,
    /// Event time without a tick after which a symbol's state is evicted from memory, at a snapshot; `None`: never.
    pub evict_idle_ns: Option<i64>,
    /// Wall-clock time without a record after which a partition closes the bars that have ended by the wall clock;
    /// `None`: never.
    pub idle_close_ns: Option<i64>,
}

impl Config {
    /// True if a lane's state lies outside the host's memory.
    pub fn is_on_device(&self, lane: LaneId) -> bool {
        self.lanes[lane as usize].kind() == LaneKind::Device
    }

    /// True if any lane is on a device.
    pub fn has_devices(&self) -> bool {
        (0..self.lanes.len() as LaneId).any(|lane| self.is_on_device(lane))
    }

    /// Name of a lane's device; several lanes may share a device.
    pub fn device_of(&self, lane: LaneId) -> &str {
        device_name(&self.lanes[lane as usize])
    }
}

/// Name of a lane's device, without the lane's number on it.
fn device_name(lane: &LaneSpec) -> &str {
    lane.device.split_once('#').map_or(&lane.device, |(device, _)| device)
}
