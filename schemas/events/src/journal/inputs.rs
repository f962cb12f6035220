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
    /// Number of the group in the partition of the input, from 0.
    pub group: GroupIndex,
    /// Number of rows added to the group's queue.
    pub rows: i64,
    /// Number of bytes that those rows take on their way to a device.
    pub bytes: i64,
}

/// A recorded input of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub enum Input {
    /// A process began, or began again after a crash: the scheduler's state is reset to this configuration.
    Started(Box<Started>),
    /// The process owns a partition and has restored its stage state. The groups of the partition can be placed.
    PartitionAssigned(PartitionAssigned),
    /// The process no longer owns a partition, and the scheduler drops everything about it.
    PartitionRevoked(PartitionRevoked),
    /// Source records were decoded into rows, which wait in the queues of their groups.
    Arrived(Arrived),
    /// A lane finished a batch, and its credit returns.
    Completed(Completed),
    /// A lane stopped working.
    LaneLost(LaneLost),
    /// A lane works, for the first time or again.
    LaneReady(LaneReady),
    /// The time asked for with `WakeAt` was reached.
    Woke(Woke),
    /// The pipeline drains: waiting rows are released as credit allows, whatever their deadlines.
    Draining(Draining),
    /// Service times of batches of some sizes, measured when the lane began.
    Measured(Measured),
    /// A lane has finished a group's work, as `Release` asked, and has given the group's state back.
    Released(Released),
    /// A risk request arrived, or the next round of one: units of work for any lane.
    TaskArrived(TaskArrived),
    /// A lane finished a slice of a task.
    SliceDone(SliceDone),
    /// The engine withdraws a task; results of its running slices are discarded.
    TaskDropped(TaskDropped),
    /// Outputs of complete records go to the log, in the transaction of this entry. A partition that is revoked before
    /// the commit is left out of the transaction; a later `PartitionRevoked` shows it.
    Sealed(Sealed),
    /// The capacity problem of `AskPrices` is solved.
    Priced(Priced),
    /// A report on a lane's device, about once a second, also while the lane is idle. Lanes on the processor have no
    /// reports.
    Sampled(Box<Sampled>),
    /// An operator's command, as read from its topic. `Controlled` answers it.
    Control(Control),
    /// State of the scheduler before this entry, from which a replay may begin. A large state is split over consecutive
    /// entries, and is the state before the first of them.
    Checkpoint(Checkpoint),
    /// Outcome of an attempt to commit a transaction of this process. It is in a later transaction, so the last outcome
    /// of a process life is missing.
    CommitEnded(CommitEnded),
    /// A neural network that policies may name by its hash.
    Trained(Trained),
    /// Progress of this journal in each partition of the source, before this entry. A reader needs no earlier entries
    /// to know it.
    Positions(Positions),
}

/// A process began, or began again after a crash: the scheduler's state is reset to this configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Started {
    /// Name of the process in its group.
    pub node: String,
    /// Version of the software that wrote the entry.
    pub software: String,
    /// Configuration of the stages, as JSON: all that outputs depend on besides the log.
    pub stage_config: String,
    /// Configuration of the scheduler.
    pub scheduler: SchedulerConfig,
    /// All lanes, by number.
    pub lanes: Vec<LaneSpec>,
    /// Configuration of autoscaling; null if autoscaling is off.
    #[wire(default = "null")]
    pub autoscale: Option<AutoscaleConfig>,
    /// Task policies in the shadow; null if there are none.
    #[wire(default = "null")]
    pub shadow: Option<ShadowConfig>,
    /// Number of the rules by which the scheduler decides. A journal is replayed by the rules that wrote it.
    #[wire(default = "1")]
    pub rules: i32,
}

/// The process owns a partition and has restored its stage state. The groups of the partition can be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct PartitionAssigned {
    /// Number of the partition.
    pub partition: PartitionId,
    /// Number of symbol groups in the partition.
    pub groups: i32,
    /// Next offset to read as of the last commit: outputs of earlier records exist already.
    pub committed_offset: i64,
    /// Offset of the snapshot from which the state was restored; 0: from the beginning.
    pub snapshot_offset: i64,
    /// True if the state is empty, as before any record: records before `snapshot_offset` were removed, and no snapshot
    /// covers them.
    #[wire(default = "false")]
    pub is_emptied: bool,
    /// First of the records before `committed_offset` that no transaction accounts for; null if there are none. They
    /// were removed before they were processed, or their entries are lost, and an operator accepted the loss.
    #[wire(default = "null")]
    pub lost_from: Option<i64>,
}

/// The process no longer owns a partition, and the scheduler drops everything about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct PartitionRevoked {
    /// Number of the partition.
    pub partition: PartitionId,
}

/// Source records were decoded into rows, which wait in the queues of their groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Arrived {
    /// Number of the partition.
    pub partition: PartitionId,
    /// Next offset to read after these records.
    pub next_offset: i64,
    /// Rows of each group that got some, by ascending group.
    pub groups: Vec<GroupArrival>,
}

/// A lane finished a batch, and its credit returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Completed {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Number of the batch, as in `Dispatch`.
    pub batch: i64,
    /// Time that the lane worked on the batch, in nanoseconds.
    pub service_ns: i64,
    /// Always null: `Sampled` reports on devices.
    #[wire(default = "null")]
    pub sample: Option<Box<DeviceSample>>,
}

/// A report on a lane's device, about once a second, also while the lane is idle. Lanes on the processor have no
/// reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Sampled {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Figures of the device.
    pub sample: DeviceSample,
}

/// An operator's command, as read from its topic. `Controlled` answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Control {
    /// Offset of the command in the process's partition of the topic.
    pub offset: i64,
    /// Id of the command.
    pub id: String,
    /// Sender of the command.
    pub by: String,
    /// Time until which the command may be executed, in nanoseconds since the Unix epoch.
    pub deadline_ns: i64,
    /// The command.
    pub command: ControlCommand,
}

/// State of the scheduler before this entry, from which a replay may begin. A large state is split over consecutive
/// entries, and is the state before the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Checkpoint {
    /// Configuration with which the process began; null in all parts but the first.
    pub started: Option<Box<Started>>,
    /// Number of the part, from 0.
    pub part: i32,
    /// Number of parts.
    pub parts: i32,
    /// Bytes of this part of the state, which only the scheduler reads. The first byte of the state is its version.
    pub state: StateBytes,
}

/// Bytes of a scheduler's state or of a network; in JSON, hex digits.
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

/// Progress of this journal in each partition of the source, by its entries before this one. So a reader needs no
/// earlier entries for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Positions {
    /// Consumer group of the process.
    pub group: String,
    /// True if the writer knew all entries of the journal: none was removed before its positions were recorded.
    pub is_whole: bool,
    /// Partitions that transactions of this journal have moved, ascending.
    pub partitions: Vec<Position>,
}

/// Progress of a journal in one partition of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Position {
    /// Number of the partition.
    pub partition: PartitionId,
    /// Offset of the next tick record to read.
    pub next_offset: i64,
    /// Offset of the next tick record to read if the transaction in flight at the partition's revocation has committed;
    /// null if there was none.
    pub unsettled_offset: Option<i64>,
    /// Offset of the first risk request without a result; null if no transaction has moved requests.
    pub next_request: Option<i64>,
}

/// A neural network that policies may name by its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Trained {
    /// BLAKE3 of the network's bytes, as 64 lower-case hex digits.
    pub hash: String,
    /// Bytes of the network, which the crate `warptape-network` reads.
    pub network: StateBytes,
}

/// Figures of a lane's device. A figure is null if the device does not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct DeviceSample {
    /// Memory of the lane for slots, which hold the state of symbols, in bytes.
    pub slots_bytes: i64,
    /// Memory of the lane for uploads, in bytes.
    pub staging_bytes: i64,
    /// Memory of the lane for data that kernels pass on, in bytes.
    pub work_bytes: i64,
    /// Memory of the device in use by anybody, in bytes.
    #[wire(default = "null")]
    pub memory_used_bytes: Option<i64>,
    /// Free memory of the device, in bytes.
    #[wire(default = "null")]
    pub memory_free_bytes: Option<i64>,
    /// Share of the last moments in which a kernel ran, in percent.
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
    /// Reasons why the clocks are not higher, as a bit mask of NVML.
    #[wire(default = "null")]
    pub throttle_bits: Option<i64>,
    /// Number of uncorrectable memory errors since the driver was loaded.
    #[wire(default = "null")]
    pub ecc_errors_uncorrected: Option<i64>,
    /// Number of the last critical Xid error since the previous sample. After such an error, nothing on the device can
    /// be trusted.
    #[wire(default = "null")]
    pub xid: Option<i64>,
    /// Temperature at which the device lowers its clocks, in degrees Celsius.
    #[wire(default = "null")]
    pub slowdown_c: Option<i64>,
}

/// A lane stopped working.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneLost {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Reason of the loss, in words.
    pub reason: String,
    /// True if the rows since the last states of the lane's groups are still available. Then only the groups are placed
    /// again, and rows in flight arrive again. False: the partitions of the groups are restored.
    #[wire(default = "false")]
    pub kept: bool,
}

/// A lane works, for the first time or again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneReady {
    /// Number of the lane, from 0.
    pub lane: LaneId,
}

/// The time asked for with `WakeAt` was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Woke {}

/// The pipeline drains: waiting rows are released as credit allows, whatever their deadlines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Draining {}

/// Service times of batches of some sizes, measured when the lane began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Measured {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Measured batches.
    pub points: Vec<ServicePoint>,
}

/// Service time of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct ServicePoint {
    /// Number of rows in the batch.
    pub rows: i64,
    /// Time that the lane worked on the batch, in nanoseconds.
    pub service_ns: i64,
}

/// A lane has finished a group's work, as `Release` asked, and has given the group's state back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Released {
    /// Partition of the group.
    pub partition: PartitionId,
    /// Number of the group in its partition, from 0.
    pub group: GroupIndex,
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Fencing epoch of the group on that lane.
    pub epoch: i64,
}

/// Outputs of complete records go to the log, in the transaction of this entry. A partition that is revoked before the
/// commit is left out of the transaction; a later `PartitionRevoked` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Sealed {
    /// Partitions with something in the transaction, ascending.
    pub partitions: Vec<SealedPartition>,
}

/// Content of a transaction for one partition of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SealedPartition {
    /// Number of the partition.
    pub partition: PartitionId,
    /// Offset of the next tick record to read, as of the previous commit.
    pub first_offset: i64,
    /// Offset of the next tick record to read, as of this commit. The transaction commits it for the consumer group.
    pub next_offset: i64,
    /// Digest of the tick records from `first_offset` to `next_offset`, as stored in the log. It is the sum, modulo
    /// 2^64, of XXH3-64 of each record's value. The seed is XXH3-64 of the record's key (0 without a key) plus its
    /// offset. The digest finds damage, but no forgery.
    pub ticks_digest: i64,
    /// Number of signals in the transaction.
    pub signals: i64,
    /// Number of late ticks in the transaction.
    pub late: i64,
    /// Number of dead letters in the transaction.
    pub dead_letters: i64,
    /// Number of risk results in the transaction.
    pub risk_results: i64,
    /// Offset of the first risk request without a result, as of this commit; null if the transaction commits no offset
    /// of requests.
    #[wire(default = "null")]
    pub next_request: Option<i64>,
}

/// Outcome of an attempt to commit a transaction of this process. It is in a later transaction, so the last outcome of
/// a process life is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct CommitEnded {
    /// Sequence number of the last entry in the transaction, which names it: its `Sealed` if it moves offsets.
    pub sealed: i64,
    /// Number of the attempt, from 1. An aborted transaction is sent again.
    pub attempt: i32,
    /// Time at which the attempt began to write, in nanoseconds since the Unix epoch.
    pub sent_ns: i64,
    /// Time at which the writer knew the outcome, in nanoseconds since the Unix epoch. The engine learnt it at the
    /// entry's own time.
    pub ended_ns: i64,
    /// Outcome of the attempt.
    pub outcome: CommitOutcome,
    /// True if the log did not report the outcome, so that it was looked up there.
    pub looked_up: bool,
}

/// Outcome of an attempt to commit a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CommitOutcome {
    /// The transaction is durable and visible.
    Committed,
    /// Nothing of the transaction was written.
    Aborted,
}
