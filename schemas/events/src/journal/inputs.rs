//! The scheduler's inputs.

use std::fmt;
use std::num::ParseIntError;

use serde::{Deserialize, Serialize};

use super::*;
use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::hex;
use crate::shape::{Shape, Shaped};
use crate::wire::{Wire, put_bytes};

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

/// A recorded input of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub enum Input {
    /// A process began, or began again after a crash: the state is reset to this configuration.
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
    /// A report on a lane's device, about once a second, whether the lane is busy or not.
    Sampled(Box<Sampled>),
    /// An operator's command, as read from its topic; [`Decision::Controlled`] answers it.
    Control(Control),
    /// The state before this entry, so that a replay may begin here.
    Checkpoint(Checkpoint),
    /// What became of an attempt to commit a transaction of this process. It lies in a later transaction, and that of the last one of
    /// a process life is missing.
    CommitEnded(CommitEnded),
    /// A network that policies may name by its hash.
    Trained(Trained),
    /// This journal's progress in each partition of the source, so that nobody has to read further back for it.
    Positions(Positions),
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
    /// How many lanes are wanted, and when that is judged; null: it is not.
    #[wire(default = "null")]
    pub autoscale: Option<AutoscaleConfig>,
    /// Task policies that are asked beside the one that decides; null: none.
    #[wire(default = "null")]
    pub shadow: Option<ShadowConfig>,
    /// Number of the rules by which the scheduler decides: a journal is replayed by those that it was written by.
    #[wire(default = "1")]
    pub rules: i32,
}

/// A partition is owned and its stage state is restored; its groups can be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct PartitionAssigned {
    /// The partition.
    pub partition: PartitionId,
    /// Number of symbol groups in the partition.
    pub groups: i32,
    /// Next offset to read according to the last commit: outputs caused by earlier records exist already.
    pub committed_offset: i64,
    /// Offset of the snapshot the state was restored from (0: from the beginning).
    pub snapshot_offset: i64,
    /// Whether the state is that before any record: those before snapshot_offset were removed, and no snapshot stands for them.
    #[wire(default = "false")]
    pub is_emptied: bool,
    /// First of the records before committed_offset that no transaction accounts for: they were removed before they were processed, or their
    /// entries are lost, and the process was told to go on behind them; null: there are none.
    #[wire(default = "null")]
    pub lost_from: Option<i64>,
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
    /// Always null: how the lane's device fares is an input of its own.
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

impl Wire<'_> for StateBytes {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(&self.0, out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.bytes().map(|bytes| Self(bytes.to_vec()))
    }
}

/// How far this journal has come in each partition of the source, as its entries before this one say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Positions {
    /// The consumer group of the process.
    pub group: String,
    /// Whether all entries of the journal were known to who wrote this: none were removed before one like this was written.
    pub is_whole: bool,
    /// The partitions that transactions of this journal have moved, ascending.
    pub partitions: Vec<Position>,
}

/// How far a journal has come in one partition of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Position {
    /// The partition.
    pub partition: PartitionId,
    /// Next tick record to read.
    pub next_offset: i64,
    /// Next tick record to read where the last transaction of the partition was committed whole, which was under way when the partition was
    /// revoked; null: none was.
    pub unsettled_offset: Option<i64>,
    /// First risk request without a result; null: no transaction has moved requests.
    pub next_request: Option<i64>,
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
