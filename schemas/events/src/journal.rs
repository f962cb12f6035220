//! What goes into and comes out of the scheduler, and the journal entry that records both.
//!
//! These types are the journal's interface: `schemas/avro/journal_entry.avsc` is written of them, comments included. They carry no behaviour beyond encoding and what a device's name says; the rules that
//! produce decisions are in the `scheduler` crate.

mod autoscale;
mod shadow;
mod tasks;

use std::fmt;
use std::num::ParseIntError;

use serde::{Deserialize, Serialize};

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::hex::{self, Digits};
use crate::shape::{Shape, Shaped};
use crate::wire::{Wire, put_bytes};

pub use crate::control::{
    BreakerMode, ChoosePolicy, ControlCommand, ControlOutcome, DrainLane, Rebalance, SetBreaker, UndrainLane,
    WeighLane, WeighTenant,
};
pub use autoscale::*;
pub use shadow::*;
pub use tasks::*;

/// Index of a lane within one process, dense from 0 in configuration order.
pub type LaneId = i32;

/// Partition number of the source topic.
pub type PartitionId = i32;

/// Index of a symbol group within its partition, dense from 0.
pub type GroupIndex = i32;

/// Limits and weights of the scheduler. Recorded in [`Input::Started`], so that a journal explains itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SchedulerConfig {
    /// The placement policy: `NAME` or `NAME@VERSION`, and behind a slash the bytes that a step decides at most.
    pub placement_policy: String,
    /// Seed of the policy's counter-addressed hash streams.
    pub placement_seed: i64,
    /// A lane takes at most `ceil(load_factor_percent / 100 × its weighted share)` groups. At least 100.
    pub load_factor_percent: i32,
    /// Rows a lane may have in flight.
    pub lane_credit_rows: i64,
    /// Bytes a lane may have in flight.
    pub lane_credit_bytes: i64,
    /// Batches a lane may have in flight (2 = one running, one queued).
    pub lane_batches_max: i32,
    /// Rows of the largest batch.
    pub batch_rows_max: i64,
    /// A busy lane is given a further batch early enough that its oldest row is predicted to finish within this time
    /// from its arrival, in nanoseconds.
    pub row_deadline_ns: i64,
    /// A partition is paused at the source when this many of its rows wait on the host.
    pub high_water_rows: i64,
    /// A paused partition is resumed when no more than this many of its rows wait on the host.
    pub low_water_rows: i64,
    /// Time between looks at which groups are better off on lanes of the other kind, in nanoseconds; 0: never.
    #[wire(default = "0")]
    pub route_interval_ns: i64,
    /// Limits and weights of risk tasks.
    #[wire(
        default = r#"{"slice_ns": 500000, "tasks_max": 10000, "split": "DYNAMIC", "tenant_weights": [], "bytes_max": 268435456, "quantum_ns": 0, "policy": "", "price_interval_ns": 0, "critical_percent": 0, "ageing_ns": 0, "predictor": 0, "queues": {"quotas": [], "delay_target_ns": 0, "delay_interval_ns": 0, "in_flight_min": 0}, "explore_ppm": 0, "steals": false}"#
    )]
    pub risk: RiskConfig,
    /// When lanes are taken out of service; `None`: never, as before version 7 of the journal.
    #[wire(default = "null")]
    pub breakers: Option<BreakerConfig>,
    /// Length of a window in which the placement policy `balanced` measures what lanes have to do, and after which it moves groups, in
    /// nanoseconds; 0: it measures nothing and moves none.
    #[wire(default = "0")]
    pub balance_interval_ns: i64,
}

/// When a lane's breaker opens, and how it closes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct BreakerConfig {
    /// Losses of a lane within `window_ns` that open its breaker; 0: none do.
    pub losses_max: i32,
    /// Time in which losses are counted, in nanoseconds.
    pub window_ns: i64,
    /// A lane that takes so many percent of what its batches are predicted to take, relative to the other lanes, is slow; 0: none is.
    pub slow_percent: i32,
    /// How long it has to be slow without a break, in nanoseconds.
    pub slow_ns: i64,
    /// Time between the opening and the first probes, in nanoseconds. It doubles with each opening that follows failed probes.
    pub probe_ns: i64,
    /// The longest such time, in nanoseconds.
    pub probe_ns_max: i64,
    /// Batches and slices that have to succeed before the breaker closes.
    pub probes: i32,
    /// A lane whose device has less than this left before it throttles gets a part of its weight alone, in degrees Celsius; 0: all
    /// have all of it.
    pub headroom_c: i32,
    /// A lane whose device has less than so many percent of its memory free gets no further groups while another lane can take them,
    /// until it has twice as many; 0: memory does not count.
    pub memory_free_percent: i32,
}

/// One lane as configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneSpec {
    /// The lane's index.
    pub lane: LaneId,
    /// Device name, such as `cpu:0`.
    pub device: String,
    /// Relative speed, for weighted placement; equal lanes have equal weights. 0: the lane stands by, and gets groups only
    /// when no lane with a weight is ready, or when their route names its kind.
    pub weight: i32,
    /// Lanes of one class are alike: GPUs of one model and MIG profile, or the processor with one instruction set. Speeds are
    /// learnt by class. Empty, as before version 7 of the journal: the class is the lane's kind.
    #[wire(default = r#""""#)]
    pub class: String,
    /// Memory of the lane's device, in bytes; 0: not known.
    #[wire(default = "0")]
    pub memory_bytes: i64,
    /// NUMA node of the host that the device is attached to; null: not known.
    #[wire(default = "null")]
    pub numa_node: Option<i32>,
    /// Lanes whose device memory can be copied to without the host, by index.
    #[wire(default = "[]")]
    pub peers: Vec<Peer>,
}

/// A lane whose device memory can be copied to without the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Peer {
    /// Its index.
    pub lane: LaneId,
    /// The connection.
    pub link: Link,
}

/// How two lanes' devices are connected, the fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Link {
    /// Both lanes are on one device.
    SameDevice,
    /// NVLink connects the devices.
    Nvlink,
    /// The devices copy over PCI Express.
    Pcie,
}

impl LaneSpec {
    /// A lane of which nothing is known but its device and weight.
    pub fn new(lane: LaneId, device: impl Into<String>, weight: i32) -> Self {
        let device = device.into();
        Self {
            lane,
            device,
            weight,
            class: String::new(),
            memory_bytes: 0,
            numa_node: None,
            peers: Vec::new(),
        }
    }

    /// Where the lane's state is, by its device's name.
    pub fn kind(&self) -> LaneKind {
        match self.device.split(':').next() {
            Some("cpu") => LaneKind::Host,
            _ => LaneKind::Device,
        }
    }
}

/// Rows of one group that reached the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct GroupArrival {
    /// The group within the partition of the input.
    pub group: GroupIndex,
    /// Rows added to the group's queue.
    pub rows: i64,
    /// Bytes those rows take on their way to a device.
    pub bytes: i64,
}

/// One recorded input of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub enum Input {
    /// A process began (or began again after a crash): the state is reset to this configuration.
    Started(Box<Started>),
    /// A partition is owned and its stage state is restored; its groups can be placed.
    PartitionAssigned(PartitionAssigned),
    /// A partition is no longer owned; everything known about it is dropped.
    PartitionRevoked(PartitionRevoked),
    /// Source records were decoded into rows that wait in group queues.
    Arrived(Arrived),
    /// A lane finished a batch; its credit returns.
    Completed(Completed),
    /// A lane stopped working.
    LaneLost(LaneLost),
    /// A lane works (again).
    LaneReady(LaneReady),
    /// The time asked for with [`Decision::WakeAt`] was reached.
    Woke(Woke),
    /// The shell drains: whatever waits is released as credit allows, deadlines notwithstanding.
    Draining(Draining),
    /// What a lane takes for batches of some sizes, measured when it began.
    Measured(Measured),
    /// A lane has finished what it had of a group, as [`Decision::Release`] asked, and has given its state back.
    Released(Released),
    /// A risk request came in, or the next round of one: units of work for any lane.
    TaskArrived(TaskArrived),
    /// A lane finished a slice of a task.
    SliceDone(SliceDone),
    /// The shell withdraws a task; slices of it that run are finished for nothing.
    TaskDropped(TaskDropped),
    /// What complete records caused is handed to the log, in the transaction of this entry.
    Sealed(Sealed),
    /// The capacity problem of [`Decision::AskPrices`] is solved.
    Priced(Priced),
    /// How a lane's device fares, about once a second, whether the lane has something to do or not.
    Sampled(Box<Sampled>),
    /// An operator's command, as it was read from its topic; answered by [`Decision::Controlled`].
    Control(Control),
    /// The state before this entry, so that a replay may begin here.
    Checkpoint(Checkpoint),
    /// What became of an attempt to commit a transaction of this process. It lies in a later transaction, and that of the last one of
    /// a process life is missing.
    CommitEnded(CommitEnded),
    /// A network that policies may name by its hash.
    Trained(Trained),
}

/// A process began, or began again after a crash: the state is reset to this configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Started {
    /// Name of the process in its group.
    pub node: String,
    /// Software version that wrote the entry.
    pub software: String,
    /// Configuration of the stages as JSON: what the outputs depend on besides the log.
    pub stage_config: String,
    /// Configuration of the scheduler.
    pub scheduler: SchedulerConfig,
    /// All lanes, in order of their index.
    pub lanes: Vec<LaneSpec>,
    /// How many lanes are wanted, and when that is judged; null: it is not, as before version 9 of the journal.
    #[wire(default = "null")]
    pub autoscale: Option<AutoscaleConfig>,
    /// Task policies that are asked beside the one that decides; null: none, as before version 9.
    #[wire(default = "null")]
    pub shadow: Option<ShadowConfig>,
    /// By which rules the scheduler decides, where they were changed since: a journal is replayed by those that it was written by. 1, as
    /// before version 10.
    #[wire(default = "1")]
    pub rules: i32,
}

/// A partition is owned and its stage state is restored; its groups can be placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct PartitionAssigned {
    /// The partition.
    pub partition: PartitionId,
    /// Number of symbol groups in the partition.
    pub groups: i32,
    /// Next offset to read according to the last commit: outputs caused by earlier records exist already.
    pub committed_offset: i64,
    /// Offset of the snapshot the state was restored from (0: from the beginning).
    pub snapshot_offset: i64,
}

/// A partition is no longer owned; everything known about it is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct PartitionRevoked {
    /// The partition.
    pub partition: PartitionId,
}

/// Source records were decoded into rows that wait in group queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Arrived {
    /// The partition.
    pub partition: PartitionId,
    /// Next offset to read after the records of this arrival.
    pub next_offset: i64,
    /// Rows per group; only groups that got rows, by ascending group.
    pub groups: Vec<GroupArrival>,
}

/// A lane finished a batch; its credit returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Completed {
    /// The lane.
    pub lane: LaneId,
    /// The batch, as numbered by [`Decision::Dispatch`].
    pub batch: i64,
    /// Time the lane worked on it, in nanoseconds.
    pub service_ns: i64,
    /// How the lane's device fared, before version 7, which has Sampled for that; null since.
    #[wire(default = "null")]
    pub sample: Option<Box<DeviceSample>>,
}

/// How a lane's device fares, about once a second, whether the lane has something to do or not; nothing is told of lanes on the processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Sampled {
    /// The lane.
    pub lane: LaneId,
    /// The figures.
    pub sample: DeviceSample,
}

/// An operator's command, as it was read from its topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Control {
    /// Its offset in the process's partition of the topic.
    pub offset: i64,
    /// Its id.
    pub id: String,
    /// Who sent it.
    pub by: String,
    /// Until when it may be obeyed, in nanoseconds since the epoch.
    pub deadline_ns: i64,
    /// What is to be done.
    pub command: ControlCommand,
}

/// The scheduler's state before this entry, so that a replay may begin here. A large state is in several entries, which follow each other;
/// it is that before the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Checkpoint {
    /// How the process began; in the first part alone.
    pub started: Option<Box<Started>>,
    /// Number of the part, from 0.
    pub part: i32,
    /// Number of parts.
    pub parts: i32,
    /// The part of the state's bytes, which the scheduler alone reads; the first of them is their version.
    pub state: StateBytes,
}

/// Bytes of a scheduler's state.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StateBytes(pub Vec<u8>);

impl fmt::Debug for StateBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl From<StateBytes> for String {
    fn from(bytes: StateBytes) -> Self {
        hex::text(&bytes.0)
    }
}

impl TryFrom<String> for StateBytes {
    type Error = ParseIntError;

    fn try_from(text: String) -> Result<Self, ParseIntError> {
        let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).unwrap_or_default());
        pairs.map(|pair| u8::from_str_radix(pair, 16)).collect::<Result<_, _>>().map(Self)
    }
}

impl Shaped for StateBytes {
    const SHAPE: Shape = Shape::Bytes;
}

impl Wire for StateBytes {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(&self.0, out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.bytes().map(|bytes| Self(bytes.to_vec()))
    }
}

/// A network that policies may name by its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Trained {
    /// BLAKE3 of the network's bytes, as 64 lower-case hex digits.
    pub hash: String,
    /// The network's bytes, which crate `warptape-network` reads.
    pub network: StateBytes,
}

/// How a lane's device fares. What the device does not say is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct DeviceSample {
    /// Memory of the lane's slots, in bytes.
    pub slots_bytes: i64,
    /// Its memory for what is uploaded, in bytes.
    pub staging_bytes: i64,
    /// Its memory for what kernels hand on, in bytes.
    pub work_bytes: i64,
    /// Memory of the device in use by anybody, in bytes.
    #[wire(default = "null")]
    pub memory_used_bytes: Option<i64>,
    /// Memory of the device that nobody uses, in bytes.
    #[wire(default = "null")]
    pub memory_free_bytes: Option<i64>,
    /// Share of the last moments in which a kernel ran.
    #[wire(default = "null")]
    pub utilization_percent: Option<i64>,
    /// Temperature of the chip, in degrees Celsius.
    #[wire(default = "null")]
    pub temperature_c: Option<i64>,
    /// Power drawn, in milliwatts.
    #[wire(default = "null")]
    pub power_mw: Option<i64>,
    /// Clock of the multiprocessors, in MHz.
    #[wire(default = "null")]
    pub sm_clock_mhz: Option<i64>,
    /// Clock of the memory, in MHz.
    #[wire(default = "null")]
    pub memory_clock_mhz: Option<i64>,
    /// Why the clocks are not higher, as NVML's bits.
    #[wire(default = "null")]
    pub throttle_bits: Option<i64>,
    /// Memory errors since the driver was loaded that could not be corrected.
    #[wire(default = "null")]
    pub ecc_errors_uncorrected: Option<i64>,
    /// The last critical Xid error since the sample before; after it nothing of the device can be trusted.
    #[wire(default = "null")]
    pub xid: Option<i64>,
    /// Temperature at which the device lowers its clocks.
    #[wire(default = "null")]
    pub slowdown_c: Option<i64>,
}

/// A lane stopped working.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneLost {
    /// The lane.
    pub lane: LaneId,
    /// What happened, in words.
    pub reason: String,
    /// Whether the rows that its groups have had since their last states are still there: then the groups alone are
    /// placed again, and rows that were in flight arrive again; otherwise their partitions are restored.
    #[wire(default = "false")]
    pub kept: bool,
}

/// A lane works, or works again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneReady {
    /// The lane.
    pub lane: LaneId,
}

/// The time asked for with WakeAt was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Woke {}

/// The shell drains: whatever waits is released as credit allows, deadlines notwithstanding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Draining {}

/// What a lane takes for batches of some sizes, measured when it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Measured {
    /// The lane.
    pub lane: LaneId,
    /// A batch each.
    pub points: Vec<ServicePoint>,
}

/// Service time of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct ServicePoint {
    /// Rows of the batch.
    pub rows: i64,
    /// Time the lane worked on it, in nanoseconds.
    pub service_ns: i64,
}

/// A lane has finished what it had of a group, as Release asked, and has given its state back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Released {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane.
    pub lane: LaneId,
    /// The group's epoch on that lane.
    pub epoch: i64,
}

/// What complete records caused is handed to the log, in the transaction of this entry. A partition that is revoked before it commits is
/// left out of the transaction, which its PartitionRevoked says that follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Sealed {
    /// The partitions that have something in the transaction, ascending.
    pub partitions: Vec<SealedPartition>,
}

/// What one partition of the source has in the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SealedPartition {
    /// The partition.
    pub partition: PartitionId,
    /// Next tick record to read as of the commit before.
    pub first_offset: i64,
    /// Next tick record to read as of this commit: the group's offset that it commits.
    pub next_offset: i64,
    /// Digest of the tick records in between as they lie in the log: the sum, modulo 2^64, of XXH3-64 of each record's value,
    /// seeded with XXH3-64 of its key (nothing: 0) plus its offset. It finds damage; who forges ticks can forge it as well.
    pub ticks_digest: i64,
    /// Signals in the transaction.
    pub signals: i64,
    /// Late ticks in the transaction.
    pub late: i64,
    /// Dead letters in the transaction.
    pub dead_letters: i64,
    /// Risk results in the transaction.
    pub risk_results: i64,
    /// First risk request without a result as of this commit; null where the transaction commits no offset of requests.
    #[wire(default = "null")]
    pub next_request: Option<i64>,
}

/// What became of an attempt to commit a transaction of this process. It lies in a later transaction, and that of the last one of a process
/// life is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct CommitEnded {
    /// Sequence of the last entry that the transaction was sealed with, which names it: its [`Input::Sealed`], where it moves offsets.
    pub sealed: i64,
    /// Number of the attempt, from 1. A transaction that was aborted is sent again.
    pub attempt: i32,
    /// When the attempt began to write, ns since the epoch.
    pub sent_ns: i64,
    /// When its outcome was known to who wrote it, ns since the epoch. The entry's own time is when the engine learnt it.
    pub ended_ns: i64,
    /// COMMITTED: it is durable and visible. ABORTED: nothing of it was written.
    pub outcome: CommitOutcome,
    /// Whether the log did not tell the outcome, so that it was looked up there.
    pub looked_up: bool,
}

/// What became of an attempt to commit a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CommitOutcome {
    /// It is durable and visible.
    Committed,
    /// Nothing of it was written.
    Aborted,
}

/// One recorded decision of the scheduler. The engine executes each kind in one exhaustive match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub enum Decision {
    /// A group now belongs to a lane.
    Place(Place),
    /// Rows go to a lane as one batch.
    Dispatch(Dispatch),
    /// Stop reading a partition.
    Pause(Pause),
    /// Read a paused partition again.
    Resume(Resume),
    /// A lane is cut off: results it still sends are ignored.
    Fence(Fence),
    /// Stage state of a partition is lost in part: discard what is uncommitted, restore it from snapshot plus tail,
    /// then report it with [`Input::PartitionAssigned`].
    Restore(Restore),
    /// Send [`Input::Woke`] at this time unless an input at or past it comes first.
    WakeAt(WakeAt),
    /// A lane is to let go of a group once it has finished what it has of it. Its rows wait until [`Input::Released`].
    Release(Release),
    /// A task is accepted: it will run, or expire.
    Admit(Admit),
    /// A task is refused and forgotten.
    Reject(Reject),
    /// The units of a task are shared out among lanes for good; what a lost lane does not do goes to the others.
    Split(Split),
    /// A gang is next and not all of its lanes are free: those that are take no slices until the others are free too, or
    /// for so long.
    Reserve(Reserve),
    /// A lane works on units of a task.
    RunSlice(RunSlice),
    /// The deadline of a task has passed: it is forgotten, and what still runs of it is finished for nothing.
    Expire(Expire),
    /// All units of a task's round are done: it is forgotten.
    Finish(Finish),
    /// A task joins the queue of one lane, as a whole; what a lost lane does not do goes to the others.
    Assign(Assign),
    /// Kinds of tasks, their rates or lanes have changed: solve the capacity problem and report its prices with [`Input::Priced`].
    AskPrices(AskPrices),
    /// What becomes of an operator's command. Its effects are decisions of their own, in this step and those that follow.
    Controlled(Controlled),
    /// A lane's breaker changed its state.
    Breaker(Breaker),
    /// The temperature of a lane's device changes how much of its weight counts.
    Headroom(Headroom),
    /// Slices of a kind of tasks take other times than predicted, again and again: what was known of them on a class of lanes is forgotten.
    Drift(Drift),
    /// A task that has not begun is given up because tasks wait for too long.
    Shed(Shed),
    /// A learned policy's errors have drifted, so that its rule decides instead of it; or it decides again.
    FellBack(FellBack),
    /// Another number of lanes is wanted than before: who starts processes or devices may go by it. Nothing else follows from it.
    Scale(Scale),
    /// What a policy in the shadow would have done where another one has just decided. Nothing follows from it.
    Shadow(Shadow),
}

/// A lane that could take a group, with what spoke for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Candidate {
    /// The lane.
    pub lane: LaneId,
    /// The policy's score; the highest wins, the lower lane index breaks ties.
    pub score: i64,
    /// Groups the lane had before this decision.
    pub groups_placed: i32,
    /// Groups it may have at most.
    pub groups_max: i32,
}

/// Why a lane was no candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ExclusionReason {
    /// The lane is lost.
    Lost,
    /// The lane has as many groups as the bounded load allows: none, if it stands by while another is ready.
    Full,
    /// The lane is not of the kind that the route names.
    Slower,
    /// An operator drains the lane, and another is in service.
    Drained,
    /// The lane's breaker is open, and another is in service.
    Broken,
    /// The lane's device has little memory left, and another lane can take the group.
    Memory,
}

/// A lane that was no candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Exclusion {
    /// The lane.
    pub lane: LaneId,
    /// The reason.
    pub reason: ExclusionReason,
}

/// Which rule decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct PolicyRef {
    /// Policy name.
    pub id: String,
    /// Version of the rule; it rises whenever the same inputs could give another decision.
    pub version: i32,
}

/// What the scheduler knew of a lane when it decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneTelemetry {
    /// Rows in flight before the decision.
    pub in_flight_rows: i64,
    /// Bytes in flight before the decision.
    pub in_flight_bytes: i64,
    /// Batches in flight before the decision.
    pub in_flight_batches: i32,
    /// Smoothed service time of a row in picoseconds; 0 before the first completion.
    pub service_ps_per_row: i64,
}

/// A group now belongs to a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Place {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane chosen.
    pub lane: LaneId,
    /// Fencing epoch of the group from now on; it never falls.
    pub epoch: i64,
    /// The rule.
    pub policy: PolicyRef,
    /// Every lane that could have been chosen, by lane index.
    pub candidates: Vec<Candidate>,
    /// Every lane that could not, with the reason.
    pub excluded: Vec<Exclusion>,
    /// Random stream the scores were drawn from.
    pub random_stream: i64,
    /// Counter in that stream.
    pub random_counter: i64,
    /// Probability that the policy chooses this lane, in parts per million: 1,000,000 for a deterministic policy.
    pub propensity_ppm: i32,
    /// Why on a lane of this kind; null where that was not asked, because all lanes are of one kind or nothing is known yet.
    #[wire(default = "null")]
    pub route: Option<Route>,
}

/// Where a lane's state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LaneKind {
    /// On the processor.
    Host,
    /// On a GPU.
    Device,
}

/// Why a group is on lanes of one kind: what both kinds are predicted to take for the rows that go to lanes together with its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Route {
    /// The kind that is predicted to be faster, or was when the group was released.
    pub kind: LaneKind,
    /// Rows that all lanes of the group's kind got together with it, smoothed.
    pub rows: i64,
    /// The fewest rows together at which devices are predicted to be faster; null if they never are.
    #[wire(default = "null")]
    pub break_even_rows: Option<i64>,
    /// What the ready lanes on the processor are predicted to take for them, each for its share, in nanoseconds.
    pub host_ns: i64,
    /// What the ready lanes on devices are predicted to take, likewise.
    pub device_ns: i64,
}

/// Rows of one group in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Take {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The group's epoch.
    pub epoch: i64,
    /// Rows taken from the head of its queue.
    pub rows: i64,
}

/// Why a batch was released now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReleaseReason {
    /// The lane had nothing to do.
    Idle,
    /// As many rows wait as a batch may have.
    Full,
    /// The oldest row's deadline allows no further waiting.
    Deadline,
    /// The pipeline drains.
    Drain,
}

/// Rows go to a lane as one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Dispatch {
    /// Number of the batch, rising by one from 0 in each process life.
    pub batch: i64,
    /// The lane.
    pub lane: LaneId,
    /// The rows, oldest group first.
    pub takes: Vec<Take>,
    /// Sum of the rows.
    pub rows: i64,
    /// Sum of the bytes.
    pub bytes: i64,
    /// Why now.
    pub reason: ReleaseReason,
    /// What was known of the lane.
    pub telemetry: LaneTelemetry,
    /// Arrival of the oldest row, in nanoseconds since the epoch.
    pub oldest_arrival_ns: i64,
    /// Predicted end of the batch, in nanoseconds since the epoch.
    pub predicted_finish_ns: i64,
}

/// Stop reading a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Pause {
    /// The partition.
    pub partition: PartitionId,
    /// Rows of it that wait on the host.
    pub waiting_rows: i64,
    /// The mark that was passed.
    pub high_water_rows: i64,
}

/// Read a paused partition again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Resume {
    /// The partition.
    pub partition: PartitionId,
    /// Rows of it that wait on the host.
    pub waiting_rows: i64,
    /// The mark that was reached.
    pub low_water_rows: i64,
}

/// A lane is cut off: results it still sends are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Fence {
    /// The lane.
    pub lane: LaneId,
    /// Groups that lose their lane.
    pub groups: i32,
    /// The reason given with the loss.
    pub reason: String,
}

/// Stage state of a partition is lost in part: discard what is uncommitted, restore it from snapshot plus tail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Restore {
    /// The partition.
    pub partition: PartitionId,
    /// The lane whose loss made it necessary.
    pub lost_lane: LaneId,
}

/// Send Woke at this time unless another input comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct WakeAt {
    /// The time, in nanoseconds since the epoch.
    pub at_ns: i64,
}

/// A lane is to let go of a group once it has finished what it has of it. Its rows wait until Released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Release {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane that lets go of it.
    pub lane: LaneId,
    /// The group's epoch on that lane.
    pub epoch: i64,
    /// Of the cause ROUTE: what both kinds of lanes are predicted to take.
    #[wire(default = "null")]
    pub route: Option<Route>,
    /// Why.
    #[wire(default = r#""ROUTE""#)]
    pub cause: ReleaseCause,
    /// Of the cause BALANCE: what the move gains and costs.
    #[wire(default = "null")]
    pub imbalance: Option<Imbalance>,
}

/// Why a group moves from a lane that has much to do to one that has little. A load is the time that a lane takes for its groups' rows of a
/// second, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Imbalance {
    /// The lane that was best for it then. The placement policy chooses again when the group was released.
    pub to: LaneId,
    /// Load that the group is predicted to be there.
    pub group_load_ns: i64,
    /// Load of the lane that lets go of it, with the group.
    pub from_load_ns: i64,
    /// Load of the other lane, without it.
    pub to_load_ns: i64,
    /// By how much the load of the busier of the two falls, over a window, in nanoseconds.
    pub gain_ns: i64,
    /// What moves between such lanes have taken, in nanoseconds, smoothed.
    pub cost_ns: i64,
    /// Windows in succession in which a move of the group gained more than twice what it costs.
    pub windows: i64,
}

/// Why a lane lets go of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReleaseCause {
    /// Lanes of the other kind are better for it.
    Route,
    /// An operator drains the lane.
    Drained,
    /// The lane's breaker is open.
    Breaker,
    /// The placement policy would choose another lane now.
    Rebalance,
    /// Another lane has less to do.
    Balance,
}

/// A lane's breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Breaker {
    /// The lane.
    pub lane: LaneId,
    /// The state that the breaker has now.
    pub state: BreakerState,
    /// Why.
    pub reason: BreakerReason,
    /// What was measured, in the unit of the reason.
    pub measured: i64,
    /// What it was held against.
    pub limit: i64,
}

/// Whether a lane gets work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerState {
    /// It does.
    #[default]
    Closed,
    /// It gets none while another lane is in service.
    Open,
    /// It gets a little, to show what it does with it.
    HalfOpen,
}

/// Why a breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerReason {
    /// The lane was lost too often: losses within the window.
    Losses,
    /// It was slow for too long, relative to other lanes: percent of the time predicted.
    Slow,
    /// Its device has met memory errors that could not be corrected: errors since the lane began.
    Memory,
    /// The time to probe has come: nanoseconds since it opened.
    Probe,
    /// A probe failed: the lane was lost, or as slow as before, in percent of the time predicted.
    ProbeFailed,
    /// Probes succeeded: their number.
    Recovered,
}

/// The temperature of a lane's device changes how much of its weight counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Headroom {
    /// The lane.
    pub lane: LaneId,
    /// The part of its weight that counts now, in percent.
    pub weight_percent: i32,
    /// Temperature of its device.
    pub temperature_c: i64,
    /// Temperature at which the device throttles.
    pub limit_c: i64,
}

/// What becomes of an operator's command. Its effects are decisions of their own, in this step and those that follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Controlled {
    /// Id of the command.
    pub id: String,
    /// What became of it.
    pub outcome: ControlOutcome,
    /// What was done, or why not, in words.
    pub detail: String,
}

// A replay decodes and moves millions of entries, and each is as large as the largest input: a large and rare one is in a `Box`.
const _: () = assert!(size_of::<JournalEntry>() <= 296);

/// One step of the scheduler as recorded: what it was told, what it decided, and the hashes that prove both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct JournalEntry {
    /// Rises by one from 0 over the life of the journal, restarts included.
    pub sequence: i64,
    /// Time the shell gave to the step, in nanoseconds since the epoch; never falls within a process life.
    pub at_ns: i64,
    /// What the scheduler was told.
    pub input: Input,
    /// What it decided, in order.
    pub decisions: Vec<Decision>,
    /// Hash of the scheduler's state before the step, as 16 lower-case hex digits.
    pub state_hash: Digits<16>,
    /// BLAKE3 of the previous entry's hash (64 zeros for the first entry) followed by the Avro encoding of this entry up to here, without
    /// the 10 bytes of the single-object header; 64 lower-case hex digits. The chain shows that an entry was changed, removed or added.
    /// This field stays the last one in every version.
    pub hash: Digits<64>,
}
