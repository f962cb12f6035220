//! The items of a history: each with the entries at its beginning and end.

use std::sync::Arc;

use serde::Serialize;
use warptape_schemas::journal::{
    Breaker, CommitOutcome, Dispatch, GroupIndex, Headroom, Imbalance, LaneId, PartitionId, Pause, Place,
    RejectReason, ReleaseCause, RunSlice, Scale, SealedPartition, Started, TaskArrived,
};

use crate::moment::Moment;

/// Something that has ended, or that is still open at the history's end.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A process life began.
    Life(Arc<Life>),
    /// A partition was assigned to the process, or its state was restored.
    Assigned(Assigned),
    /// A partition was revoked from the process, or its state was lost.
    Unassigned(Unassigned),
    /// A partition was paused, and reading resumed.
    Pause(Paused),
    /// A batch came back, or will not come back.
    Batch(Arc<Batch>),
    /// A group was on a lane, and left it.
    Stay(Stay),
    /// A lane was lost, or is ready again.
    Lane(LaneChange),
    /// A breaker changed its state.
    Breaker(BreakerChange),
    /// The process was told to drain: it reads no more, and finishes its work.
    Draining(Moment),
    /// A device came near its throttling temperature, or cooled down again.
    Headroom(HeadroomChange),
    /// The wanted number of lanes changed, or was known when the life or the history began.
    Wanted(Wanted),
    /// A round of a risk task ended.
    Round(Round),
    /// A slice of a task came back, or will not come back.
    Slice(Slice),
    /// The outcome of a transaction is known, or will not become known.
    Transaction(Arc<Transaction>),
    /// The number of waiting rows, or of rows in flight, changed.
    Level(Level),
    /// Nothing was recorded for a while.
    Hole(Hole),
}

/// A time within a life in which nothing was recorded, a quarter of a second at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hole {
    /// The last entry before the hole.
    pub from: Moment,
    /// The first entry after the hole.
    pub until: Moment,
    /// The cause, as far as the journal tells.
    pub cause: HoleCause,
}

/// The cause of a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoleCause {
    /// Something was due but was not done: the process stood still.
    StoodStill,
    /// A transaction was at the log all the time, and the log did not take it.
    Log,
    /// Nothing was due, as far as the journal tells. Unread records may show otherwise.
    Silence,
}

/// A process life.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// Partition of its journal: the ordinal of the process.
    pub journal: i32,
    /// Its `Started` entry; `None` if the history begins at a checkpoint within the life.
    pub began: Option<Moment>,
    /// Beginning of its history: its start or the checkpoint.
    pub since: Moment,
    /// The recorded start of the process.
    pub started: Started,
}

/// A partition was assigned to a process, or restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Assigned {
    /// The entry.
    pub at: Moment,
    /// The partition.
    pub partition: PartitionId,
    /// Committed offset: the outputs of all earlier records existed.
    pub committed_offset: i64,
    /// Offset from which records are read again.
    pub snapshot_offset: i64,
}

/// A partition was revoked from a process, or its state was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Unassigned {
    /// The entry.
    pub at: Moment,
    /// The partition.
    pub partition: PartitionId,
    /// True if a lost lane had a part of its state, so that it is restored and assigned again; false if it was revoked.
    pub is_restored: bool,
}

/// The number of rows at a place, after an entry that changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// The entry.
    pub at: Moment,
    /// The place of the rows.
    pub of: LevelOf,
    /// Their number.
    pub rows: i64,
}

/// A place at which rows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelOf {
    /// Rows on the host that wait for a batch, in the queues of a partition's groups.
    Waiting(PartitionId),
    /// Rows in batches that a lane has not given back.
    InFlight(LaneId),
}

/// An interval in which a partition was not read.
#[derive(Clone, Debug, PartialEq)]
pub struct Paused {
    /// Beginning of the pause. If its entry was removed or is more than a million entries back, it is the later
    /// checkpoint that shows the pause.
    pub from: Moment,
    /// The decision that began it; `None` if its entry was removed or is too far back.
    pub pause: Option<Pause>,
    /// The partition.
    pub partition: PartitionId,
    /// End of the pause; `None` if the pause ended with the assignment or the life, or the history ends first.
    pub until: Option<Moment>,
}

/// Rows of a partition that arrived at the scheduler in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The partition.
    pub partition: PartitionId,
    /// Time of the arrival, ns since the epoch.
    pub at_ns: i64,
    /// Sequence of the entry; `None` for rows that waited at the checkpoint at which the history begins.
    pub sequence: Option<i64>,
    /// Offsets of their records, `first..next`; `None` as for `sequence`. For rows without records, such as barriers of
    /// a snapshot, both are the same.
    pub offsets: Option<(i64, i64)>,
    /// Rows by group, ascending.
    pub groups: Vec<(GroupIndex, i64)>,
}

impl Arrival {
    /// True if it contains the record at an offset.
    pub fn has(&self, offset: i64) -> bool {
        self.offsets.is_some_and(|(first, next)| first <= offset && offset < next)
    }

    /// Number of its rows of a group.
    pub fn rows_of(&self, group: GroupIndex) -> i64 {
        let found = self.groups.binary_search_by_key(&group, |(group, _)| *group);
        found.map_or(0, |index| self.groups[index].1)
    }
}

/// Rows of a group that arrived together and are in one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Their arrival.
    pub arrival: Arc<Arrival>,
    /// Index of the first row among the arrival's rows of the group.
    pub from: i64,
    /// Number of rows.
    pub rows: i64,
}

/// Rows of one group in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// Epoch of the group's placement.
    pub epoch: i64,
    /// Time of the group's placement on the lane; `None` if the history began later.
    pub placed: Option<Moment>,
    /// Number of rows.
    pub rows: i64,
    /// The rows, oldest first. They are fewer than `rows` only if the history began after some had arrived.
    pub pieces: Vec<Piece>,
}

/// A batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The entry that dispatched it.
    pub at: Moment,
    /// The cause of the step that dispatched it.
    pub trigger: Trigger,
    /// The decision: number, lane, reason, telemetry, prediction. Its takes are in `parts`.
    pub dispatch: Dispatch,
    /// Its rows by group.
    pub parts: Vec<Part>,
    /// The previous batch of the lane that was still in flight; `None` if there was none.
    pub behind: Option<i64>,
    /// The outcome.
    pub end: BatchEnd,
}

/// The cause of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Rows of a partition arrived.
    Arrived(PartitionId),
    /// A batch came back.
    Completed(i64),
    /// A time that the scheduler had asked for was reached.
    Woke,
    /// A partition was assigned, a lane gave a group back, or a lane was lost or became ready, so that groups were
    /// placed.
    Placing,
    /// Any other cause.
    Other,
}

/// The outcome of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchEnd {
    /// The lane has done the batch.
    Completed {
        /// The entry with which the engine learned of it.
        at: Moment,
        /// Time that the lane worked on it, ns.
        service_ns: i64,
        /// Return of the lane's previous batch, ns since the epoch; `None` if there was none in this history.
        lane_free_ns: Option<i64>,
    },
    /// The lane was lost.
    Lost(Moment),
    /// The life or the history ended first.
    Open,
}

/// A group on a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    /// The placement; `None` if the history began later.
    pub placed: Option<Moment>,
    /// The decision with its candidates; `None` if the history began later.
    pub place: Option<Arc<Place>>,
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane.
    pub lane: LaneId,
    /// The group's epoch.
    pub epoch: i64,
    /// The time and cause of the order to release the group; `None` if there was no such order.
    pub release: Option<(Moment, ReleaseCause)>,
    /// Predicted gain and cost of the move, if the cause of the release is [`ReleaseCause::Balance`].
    pub imbalance: Option<Imbalance>,
    /// Time at which it had left; `None` if it did not.
    pub left: Option<Moment>,
    /// The reason why it left.
    pub end: StayEnd,
}

/// The reason why a group left a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StayEnd {
    /// The lane gave it back.
    Released,
    /// The lane was lost.
    LaneLost,
    /// Its partition was restored, or is assigned again.
    Restored,
    /// Its partition was revoked.
    Revoked,
    /// The life or the history ended first.
    Open,
}

/// A lane was lost, or became ready again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneChange {
    /// The entry.
    pub at: Moment,
    /// The lane.
    pub lane: LaneId,
    /// The reason of the loss; `None` if the lane is ready.
    pub lost: Option<String>,
}

/// A breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerChange {
    /// The entry.
    pub at: Moment,
    /// Its new state, and the reason.
    pub breaker: Breaker,
}

/// The share of a lane's weight changed with the temperature of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeadroomChange {
    /// The entry.
    pub at: Moment,
    /// Its new share, and the temperature.
    pub headroom: Headroom,
}

/// The number of lanes that a process wants from an entry on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// The decision's entry, or the beginning of the life or of its known part.
    pub at: Moment,
    /// Number of lanes.
    pub lanes: i32,
    /// The decision with its inputs; `None` if the number was wanted before.
    pub scale: Option<Scale>,
}

/// A round of a risk task.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The arrival of the round.
    pub at: Moment,
    /// The input of the scheduler.
    pub arrived: TaskArrived,
    /// Start of its first slice; `None` if there was none.
    pub first_slice: Option<Moment>,
    /// Number of its slices, including those without a result.
    pub slices: i64,
    /// Time that lanes worked on its finished slices, ns.
    pub service_ns: i64,
    /// End and outcome; `None` if the life or the history ended first.
    pub end: Option<(Moment, RoundEnd)>,
    /// The reason of its refusal; `None` if it was not refused.
    pub refused: Option<RejectReason>,
}

/// The outcome of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundEnd {
    /// All of its units are done.
    Finished,
    /// The task was refused.
    Rejected,
    /// Its deadline passed.
    Expired,
    /// The scheduler shed the task, because tasks had waited for too long.
    Shed,
    /// Its request was withdrawn, or its partition was revoked.
    Dropped,
}

/// Units of a task on a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Start of the slice.
    pub at: Moment,
    /// The decision.
    pub run: RunSlice,
    /// End of the slice, with the time that the lane worked on it, ns. `None` if the lane was lost, or the life or the
    /// history ended first.
    pub done: Option<(Moment, i64)>,
}

/// A committed transaction of a process: a journal only has entries of committed transactions. Its attempts give the
/// time of the commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Sequence of its first entry; `None` if the history began within it.
    pub first_sequence: Option<i64>,
    /// Sequence of its last entry when it was sealed; it identifies the transaction.
    pub sealed_sequence: i64,
    /// Time of its seal; `None` if it moves no offsets.
    pub sealed_ns: Option<i64>,
    /// Time of its last entry when it was sealed, ns since the epoch; `None` if the history knows only its attempts.
    pub last_ns: Option<i64>,
    /// The part of each of its partitions.
    pub partitions: Vec<SealedPart>,
    /// The attempts to commit it that are in the journal, in order. The last transaction of a life or a window lacks
    /// its last attempt.
    pub attempts: Vec<Attempt>,
}

impl Transaction {
    /// Time at which the commit ended, ns since the epoch; `None` if the journal does not say.
    pub fn committed_ns(&self) -> Option<i64> {
        let last = self.attempts.last().filter(|attempt| attempt.outcome == CommitOutcome::Committed);
        last.map(|attempt| attempt.ended_ns)
    }
}

/// An attempt to commit a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Start of writing, ns since the epoch.
    pub sent_ns: i64,
    /// Time at which the writer knew the outcome, ns since the epoch.
    pub ended_ns: i64,
    /// Time at which the engine knew the outcome, ns since the epoch.
    pub known_ns: i64,
    /// The outcome.
    pub outcome: CommitOutcome,
    /// True if the outcome was looked up in the log.
    pub looked_up: bool,
}

/// The contents of a transaction from one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct SealedPart {
    /// Offsets and output counts.
    pub account: SealedPartition,
    /// Arrivals of its records, in order; the last one may also contain records of the next transaction.
    pub arrivals: Vec<Arc<Arrival>>,
    /// The batches with rows of these arrivals, in the order in which they came back.
    pub batches: Vec<Arc<Batch>>,
    /// True if all its arrivals and batches are listed: the history began before them, and its limits dropped none.
    pub is_whole: bool,
    /// True if the partition was revoked before the transaction was sent again, so that this part was not committed.
    pub may_be_void: bool,
}
