//! What an engine needs to be told.

use std::collections::BTreeMap;

use warptape_events::journal::{
    AutoscaleConfig, LaneId, LaneKind, LaneSpec, SchedulerConfig, ShadowConfig, Trained,
};
use warptape_stages::StageConfig;

use crate::topics::Topics;

/// Configuration of an engine, checked where it was read.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the process, for people.
    pub node: String,
    /// Consumer group, also the prefix of the transactional id.
    pub group: String,
    /// Names of topics.
    pub topics: Topics,
    /// What outputs depend on.
    pub stages: StageConfig,
    /// What the scheduler goes by.
    pub scheduler: SchedulerConfig,
    /// How many lanes are wanted; none: that is not judged.
    pub autoscale: Option<AutoscaleConfig>,
    /// Task policies that are asked beside the one that decides.
    pub shadow: Option<ShadowConfig>,
    /// Networks that policies of tasks may name.
    pub networks: Vec<Trained>,
    /// Lanes, by index.
    pub lanes: Vec<LaneSpec>,
    /// Sizes.
    pub limits: Limits,
    /// Intervals and deadlines.
    pub times: Times,
    /// Whether partitions that were processed under other `stages` may go on under these, as a new segment of the log.
    pub new_segment: bool,
    /// Records that may be given up.
    pub accepted_loss: AcceptedLoss,
    /// True if time bars are closed before a stop at offsets, with a word among the ticks.
    pub closes_bars: bool,
}

/// Tick records that nobody has processed and that may be given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AcceptedLoss {
    /// None.
    #[default]
    None,
    /// Records that the log has removed, of any partition.
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

    /// Where a partition is to go on, if that was said.
    pub fn before(&self, partition: i32) -> Option<i64> {
        match self {
            Self::None | Self::Removed => None,
            Self::Before(offsets) => offsets.get(&partition).copied(),
        }
    }
}

/// Sizes that the engine keeps to.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of rows that are kept of a partition's groups on devices, about, since their states were written last.
    pub kept_bytes_max: usize,
    /// Bytes of signals, late ticks and dead letters in one transaction, and of risk results, about: what a record causes is never
    /// torn apart.
    pub commit_bytes_max: usize,
    /// Bytes of the largest risk result, its key among them; a larger one becomes an error.
    pub risk_result_bytes_max: i64,
    /// Time of one core that a risk request may be estimated to take, in nanoseconds; a larger one is refused.
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
    /// How long a lane on a device may take for a batch.
    pub device_deadline_ns: i64,
    /// How long it may take for anything else: to open its device, to make up for what a group has missed, or for a slice.
    pub device_open_deadline_ns: i64,
    /// Event time without a tick after which a symbol's state leaves memory, at a snapshot; `None`: never.
    pub evict_idle_ns: Option<i64>,
    /// Time by the wall clock after which bars close that are over by it, where a partition has had no record for as long; `None`: never.
    pub idle_close_ns: Option<i64>,
}

impl Config {
    /// Whether a lane's state is elsewhere than in the host's memory.
    pub fn is_on_device(&self, lane: LaneId) -> bool {
        self.lanes[lane as usize].kind() == LaneKind::Device
    }

    /// Whether any lane is on a device.
    pub fn has_devices(&self) -> bool {
        (0..self.lanes.len() as LaneId).any(|lane| self.is_on_device(lane))
    }

    /// The device of a lane, by the name it is opened with: several lanes of a device have names of their own.
    pub fn device_of(&self, lane: LaneId) -> &str {
        device_name(&self.lanes[lane as usize])
    }
}

/// The device of a lane, without the number of the lane on it.
fn device_name(lane: &LaneSpec) -> &str {
    lane.device.split_once('#').map_or(&lane.device, |(device, _)| device)
}
