//! What a history is made of: the finished items, each with the entries that it began and ended with.

use std::sync::Arc;

use serde::Serialize;
use warptape_schemas::journal::{
    Breaker, CommitOutcome, Dispatch, GroupIndex, Headroom, Imbalance, LaneId, PartitionId, Pause, Place,
    RejectReason, ReleaseCause, RunSlice, Scale, SealedPartition, Started, TaskArrived,
};

use crate::moment::Moment;

/// Something that is over, or that the history ends within.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A process life began.
    Life(Arc<Life>),
    /// A partition came to the process, or its state was restored.
    Assigned(Assigned),
    /// A partition left the process, or its state was lost.
    Unassigned(Unassigned),
    /// Reading of a partition was stopped and went on.
    Pause(Paused),
    /// A batch came back, or will not.
    Batch(Arc<Batch>),
    /// A group was on a lane and left it.
    Stay(Stay),
    /// A lane was lost, or is ready again.
    Lane(LaneChange),
    /// A breaker changed its state.
    Breaker(BreakerChange),
    /// The process was told to end: it reads no more, and finishes what it has.
    Draining(Moment),
    /// A device came near to the temperature at which it throttles, or is cool again.
    Headroom(HeadroomChange),
    /// Another number of lanes is wanted, or so many were when the life or the history began.
    Wanted(Wanted),
    /// A round of a risk task ended.
    Round(Round),
    /// A slice of a task came back, or will not.
    Slice(Slice),
    /// What became of a transaction is known, or will not be.
    Transaction(Arc<Transaction>),
    /// More or fewer rows wait, or are in flight.
    Level(Level),
    /// Nothing was recorded for a while.
    Hole(Hole),
}

/// A time within a life in which nothing was recorded, a quarter of a second at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hole {
    /// The last entry before it.
    pub from: Moment,
    /// The first entry behind it.
    pub until: Moment,
    /// What the journal tells of its cause.
    pub cause: HoleCause,
}

/// Why nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoleCause {
    /// Something was due and was not done: the process stood still.
    StoodStill,
    /// A transaction was with the log all the time, which did not take it.
    Log,
    /// Nothing was due, as far as the journal tells. Who waited to be read meanwhile knows better.
    Silence,
}

/// A process life.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// Partition of the journal that it writes: the ordinal of the process.
    pub journal: i32,
    /// Its `Started`; `None` where the history begins at a checkpoint within the life.
    pub began: Option<Moment>,
    /// Where its history begins: at its start or the checkpoint.
    pub since: Moment,
    /// How it began.
    pub started: Started,
}

/// A partition came to a process, or was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Assigned {
    /// When.
    pub at: Moment,
    /// The partition.
    pub partition: PartitionId,
    /// Outputs of records before this offset existed.
    pub committed_offset: i64,
    /// Records are read again from this offset on.
    pub snapshot_offset: i64,
}

/// A partition left a process, or what was known of it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Unassigned {
    /// When.
    pub at: Moment,
    /// The partition.
    pub partition: PartitionId,
    /// Whether a lost lane had a part of its state, so that it is restored and comes again; otherwise it was revoked.
    pub is_restored: bool,
}

/// How many rows are somewhere behind an entry that changed their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// The entry.
    pub at: Moment,
    /// Where the rows are.
    pub of: LevelOf,
    /// Their number.
    pub rows: i64,
}

/// Where rows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelOf {
    /// They wait on the host for a batch, in the queues of a partition's groups.
    Waiting(PartitionId),
    /// They are in batches that a lane has not given back.
    InFlight(LaneId),
}

/// A partition was not read.
#[derive(Clone, Debug, PartialEq)]
pub struct Paused {
    /// When it began; where the entry that tells was removed, or is more than a million entries back, the checkpoint that had it, before
    /// which it began.
    pub from: Moment,
    /// Why it began; `None` likewise.
    pub pause: Option<Pause>,
    /// The partition.
    pub partition: PartitionId,
    /// When it was read again; `None` where the pause was forgotten with the partition or the life, or the history ends.
    pub until: Option<Moment>,
}

/// Rows of a partition that came to the scheduler in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The partition.
    pub partition: PartitionId,
    /// When they came, ns since the epoch.
    pub at_ns: i64,
    /// Sequence of the entry; `None` of rows that waited at the checkpoint that the history begins at.
    pub sequence: Option<i64>,
    /// Offsets of the records that they came from, `first..next`; `None` likewise. Without records, as of barriers of a snapshot, both
    /// are the same.
    pub offsets: Option<(i64, i64)>,
    /// Rows by group, ascending.
    pub groups: Vec<(GroupIndex, i64)>,
}

impl Arrival {
    /// Whether it has the record at an offset.
    pub fn has(&self, offset: i64) -> bool {
        self.offsets.is_some_and(|(first, next)| first <= offset && offset < next)
    }

    /// Its rows of a group.
    pub fn rows_of(&self, group: GroupIndex) -> i64 {
        let found = self.groups.binary_search_by_key(&group, |(group, _)| *group);
        found.map_or(0, |index| self.groups[index].1)
    }
}

/// Rows of a group that came together and are in one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What they came with.
    pub arrival: Arc<Arrival>,
    /// The first of them among the arrival's rows of the group.
    pub from: i64,
    /// Their number.
    pub rows: i64,
}

/// Rows of one group in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// Its epoch.
    pub epoch: i64,
    /// When it was placed on the lane; `None` where the history began after that.
    pub placed: Option<Moment>,
    /// Number of rows.
    pub rows: i64,
    /// The rows, oldest first. They are fewer than `rows` only where the history began after some had come.
    pub pieces: Vec<Piece>,
}

/// A batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// When it was dispatched.
    pub at: Moment,
    /// What the step was taken for in which it was.
    pub trigger: Trigger,
    /// The decision: number, lane, reason, telemetry, prediction. Its takes are the parts.
    pub dispatch: Dispatch,
    /// Its rows by group.
    pub parts: Vec<Part>,
    /// The batch of the lane that was dispatched before it and had not come back.
    pub behind: Option<i64>,
    /// How it ended.
    pub end: BatchEnd,
}

/// What a step was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Rows of a partition came.
    Arrived(PartitionId),
    /// A batch came back.
    Completed(i64),
    /// A time came that the scheduler had asked for.
    Woke,
    /// A partition came, a lane gave a group back, a lane was lost or ready: groups were placed.
    Placing,
    /// Anything else.
    Other,
}

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchEnd {
    /// It came back.
    Completed {
        /// When the engine heard of it.
        at: Moment,
        /// Time that the lane worked on it, in nanoseconds.
        service_ns: i64,
        /// When the lane's batch before it came back, if one did in this history, ns since the epoch.
        lane_free_ns: Option<i64>,
    },
    /// Its lane was lost.
    Lost(Moment),
    /// The life or the history ended before.
    Open,
}

/// A group on a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    /// When it was placed; `None` where the history began after that.
    pub placed: Option<Moment>,
    /// The decision, with its candidates; `None` likewise.
    pub place: Option<Arc<Place>>,
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane.
    pub lane: LaneId,
    /// The group's epoch.
    pub epoch: i64,
    /// When the lane was told to let go of it, and why; `None` if it was not.
    pub release: Option<(Moment, ReleaseCause)>,
    /// What the move was to gain and cost, where it was told to for [`ReleaseCause::Balance`].
    pub imbalance: Option<Imbalance>,
    /// When it had left.
    pub left: Option<Moment>,
    /// How it left.
    pub end: StayEnd,
}

/// How a group left a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StayEnd {
    /// The lane gave it back.
    Released,
    /// The lane was lost.
    LaneLost,
    /// Its partition is restored, or comes again.
    Restored,
    /// Its partition was revoked.
    Revoked,
    /// The life or the history ended before.
    Open,
}

/// A lane was lost, or is ready again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneChange {
    /// When.
    pub at: Moment,
    /// The lane.
    pub lane: LaneId,
    /// Why it was lost; `None`: it is ready.
    pub lost: Option<String>,
}

/// A breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerChange {
    /// When.
    pub at: Moment,
    /// Its state now, and why.
    pub breaker: Breaker,
}

/// The share of a lane's weight changed with the temperature of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeadroomChange {
    /// When.
    pub at: Moment,
    /// Its share now, and the temperature.
    pub headroom: Headroom,
}

/// How many lanes a process wants, from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// When that was decided, or when the life or what is known of it began.
    pub at: Moment,
    /// Lanes.
    pub lanes: i32,
    /// The decision, with what it was judged on; `None` where there was none: so many were wanted before.
    pub scale: Option<Scale>,
}

/// A round of a risk task.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// When it came.
    pub at: Moment,
    /// What the scheduler was told.
    pub arrived: TaskArrived,
    /// When its first slice began.
    pub first_slice: Option<Moment>,
    /// Its slices, those included that came to nothing.
    pub slices: i64,
    /// Time that lanes worked on the slices that they finished, in nanoseconds.
    pub service_ns: i64,
    /// When and how it ended; `None` where the life or the history ended before.
    pub end: Option<(Moment, RoundEnd)>,
    /// Why it was refused, where it was.
    pub refused: Option<RejectReason>,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundEnd {
    /// All of its units were done.
    Finished,
    /// The task was refused.
    Rejected,
    /// Its deadline had passed.
    Expired,
    /// Tasks had waited for too long.
    Shed,
    /// It was withdrawn, or its partition was revoked.
    Dropped,
}

/// Units of a task on a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// When it began.
    pub at: Moment,
    /// The decision.
    pub run: RunSlice,
    /// When it was done, with the time that the lane worked on it in nanoseconds; `None` where the lane was lost, or the life or the
    /// history ended before.
    pub done: Option<(Moment, i64)>,
}

/// A transaction of a process. It was committed: entries of a journal are in the log only if their transaction was. When, its attempts tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Sequence of its first entry; `None` where the history began within it.
    pub first_sequence: Option<i64>,
    /// Sequence of its last entry when it was sealed, which names it.
    pub sealed_sequence: i64,
    /// When it was sealed; `None` of one that moves no offsets.
    pub sealed_ns: Option<i64>,
    /// Time of its last entry when it was sealed, ns since the epoch; `None` where the history knows of it by its attempts alone.
    pub last_ns: Option<i64>,
    /// What it has of partitions.
    pub partitions: Vec<SealedPart>,
    /// The attempts to commit it that the journal tells of, in order. The last one is missing of the last transaction of a life or a window.
    pub attempts: Vec<Attempt>,
}

impl Transaction {
    /// When the process knew that it was committed, ns since the epoch; `None` where the journal does not say.
    pub fn committed_ns(&self) -> Option<i64> {
        let last = self.attempts.last().filter(|attempt| attempt.outcome == CommitOutcome::Committed);
        last.map(|attempt| attempt.ended_ns)
    }
}

/// An attempt to commit a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// When it began to write, ns since the epoch.
    pub sent_ns: i64,
    /// When its outcome was known to who wrote it, ns since the epoch.
    pub ended_ns: i64,
    /// When the engine heard of that, ns since the epoch.
    pub known_ns: i64,
    /// What became of it.
    pub outcome: CommitOutcome,
    /// Whether the outcome was looked up in the log.
    pub looked_up: bool,
}

/// What a transaction has of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct SealedPart {
    /// Offsets and numbers of outputs.
    pub account: SealedPartition,
    /// What came of its records, in order; the last one may have records of the next transaction as well.
    pub arrivals: Vec<Arc<Arrival>>,
    /// The batches with rows of these, in the order in which they came back.
    pub batches: Vec<Arc<Batch>>,
    /// Whether all of its arrivals and batches are here: the history began before them, and had room.
    pub is_whole: bool,
    /// Whether the partition was revoked before the transaction was sent again: then what it had of it was not committed.
    pub may_be_void: bool,
}
