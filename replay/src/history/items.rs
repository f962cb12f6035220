//! The items of a history: each with the entries at its beginning and end.

use std::sync::Arc;

use serde::Serialize;
use warptape_schemas::journal::{
    Breaker, CommitOutcome, Dispatch, GroupIndex, Headroom, Imbalance, LaneId, PartitionId, Pause, Place,
    RejectReason, ReleaseCause, RunSlice, Scale, SealedPartition, Started, TaskArrived,
};

use crate::moment::Moment;

/// An item that has ended, or that is open at the history's end.
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
    /// A batch came back, or was lost.
    Batch(Arc<Batch>),
    /// A group was on a lane, and left it.
    Stay(Stay),
    /// A lane was lost, or is ready again.
    Lane(LaneChange),
    /// A breaker changed its state.
    Breaker(BreakerChange),
    /// The process was asked to drain: it stops reading, and finishes its work.
    Draining(Moment),
    /// A device came near its throttling temperature, or cooled down again.
    Headroom(HeadroomChange),
    /// The wanted number of lanes changed, or was already known when the life or the history began.
    Wanted(Wanted),
    /// A round of a risk task ended.
    Round(Round),
    /// A slice of a task was completed or lost.
    Slice(Slice),
    /// The outcome of a transaction is known, or will never be known.
    Transaction(Arc<Transaction>),
    /// The number of waiting rows, or of rows in flight, changed.
    Level(Level),
    /// Nothing was recorded for a while.
    Hole(Hole),
}

/// An interval of a life in which nothing was recorded, at least a quarter of a second long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hole {
    /// The last entry before the hole.
    pub from: Moment,
    /// The first entry after the hole.
    pub until: Moment,
    /// The cause, as far as the journal shows it.
    pub cause: HoleCause,
}

/// The cause of a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoleCause {
    /// Something was due but was not done: the process was stuck.
    StoodStill,
    /// The log had a transaction all the time, and did not complete it.
    Log,
    /// Nothing was due, as far as the journal shows. Unread records may prove otherwise.
    Silence,
}

/// A process life.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// Partition of the life's journal: the ordinal of the process.
    pub journal: i32,
    /// The `Started` entry of the life; `None` if the history begins at a checkpoint within the life.
    pub began: Option<Moment>,
    /// Beginning of the life's history: its start or the checkpoint.
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
    /// Committed offset: the outputs of all earlier records existed already.
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
    /// True if a lost lane had a part of the partition's state, so that it is restored and assigned again; false if it
    /// was revoked.
    pub is_restored: bool,
}

/// The number of rows at a place, after an entry that changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// The entry.
    pub at: Moment,
    /// The place of the rows.
    pub of: LevelOf,
    /// Number of rows.
    pub rows: i64,
}

/// A place at which rows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelOf {
    /// Rows on the host that wait for a batch, in the queues of a partition's groups.
    Waiting(PartitionId),
    /// Rows in batches that a lane has not returned.
    InFlight(LaneId),
}

/// An interval in which a partition was not read.
#[derive(Clone, Debug, PartialEq)]
pub struct Paused {
    /// Beginning of the pause. If its entry was removed or is more than a million entries back, it is the later
    /// checkpoint that shows the pause.
    pub from: Moment,
    /// The decision that began the pause; `None` if its entry was removed or is too far back.
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
    /// Sequence of the entry; `None` for rows that were already waiting at the checkpoint at which the history begins.
    pub sequence: Option<i64>,
    /// Offsets of the rows' records, `first..next`; `None` for rows that were already waiting at the history's
    /// checkpoint. For rows without records, such as barriers of a snapshot, both offsets are equal.
    pub offsets: Option<(i64, i64)>,
    /// Number of rows by group, in ascending order of groups.
    pub groups: Vec<(GroupIndex, i64)>,
}

impl Arrival {
    /// True if the arrival contains the record at an offset.
    pub fn has(&self, offset: i64) -> bool {
        self.offsets.is_some_and(|(first, next)| first <= offset && offset < next)
    }

    /// Returns the number of the group's rows in the arrival.
    pub fn rows_of(&self, group: GroupIndex) -> i64 {
        let found = self.groups.binary_search_by_key(&group, |(group, _)| *group);
        found.map_or(0, |index| self.groups[index].1)
    }
}

/// Rows of a group that arrived together and are in one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Arrival of the rows.
    pub arrival: Arc<Arrival>,
    /// Index of the first row among the group's rows in the arrival.
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
    /// The entry that dispatched the batch.
    pub at: Moment,
    /// The cause of the step that dispatched the batch.
    pub trigger: Trigger,
    /// The decision: number, lane, reason, telemetry, prediction. `parts` has its takes.
    pub dispatch: Dispatch,
    /// Rows of the batch by group.
    pub parts: Vec<Part>,
    /// The lane's previous batch, if it was still in flight; `None` otherwise.
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
    /// A time at which the scheduler had asked to be woken.
    Woke,
    /// Groups were placed, because a partition was assigned, a lane released a group, or a lane was lost or became
    /// ready.
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
        /// The entry by which the engine reported the completion.
        at: Moment,
        /// Time for which the lane worked on the batch, ns.
        service_ns: i64,
        /// Time at which the lane's previous batch came back, ns since the epoch; `None` if this history has none.
        lane_free_ns: Option<i64>,
    },
    /// The lane was lost.
    Lost(Moment),
    /// The life or the history ended first.
    Open,
}

/// The stay of a group on a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    /// The placement; `None` if the history began later.
    pub placed: Option<Moment>,
    /// The placement decision with its candidates; `None` if the history began later.
    pub place: Option<Arc<Place>>,
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane.
    pub lane: LaneId,
    /// Epoch of the group.
    pub epoch: i64,
    /// Time and cause of the order to release the group; `None` if there was no such order.
    pub release: Option<(Moment, ReleaseCause)>,
    /// Predicted gain and cost of the move, if the cause of the release is [`ReleaseCause::Balance`].
    pub imbalance: Option<Imbalance>,
    /// Time at which the group had left; `None` if it did not leave.
    pub left: Option<Moment>,
    /// Reason why the stay ended.
    pub end: StayEnd,
}

/// The reason why a group left a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StayEnd {
    /// The lane released the group.
    Released,
    /// The lane was lost.
    LaneLost,
    /// The group's partition was restored, or is assigned again.
    Restored,
    /// The group's partition was revoked.
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
    /// Reason of the loss; `None` if the lane is ready again.
    pub lost: Option<String>,
}

/// A breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerChange {
    /// The entry.
    pub at: Moment,
    /// New state of the breaker, and the reason.
    pub breaker: Breaker,
}

/// The share of a lane's weight changed with its device's temperature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeadroomChange {
    /// The entry.
    pub at: Moment,
    /// New share of the weight, and the temperature.
    pub headroom: Headroom,
}

/// The number of lanes that a process wants, starting with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wanted {
    /// Entry of the decision, or the beginning of the life or of its known part.
    pub at: Moment,
    /// Number of lanes.
    pub lanes: i32,
    /// The decision with its inputs; `None` if the number was already wanted before.
    pub scale: Option<Scale>,
}

/// A round of a risk task.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The arrival of the round.
    pub at: Moment,
    /// The input of the scheduler.
    pub arrived: TaskArrived,
    /// Start of the round's first slice; `None` if there was none.
    pub first_slice: Option<Moment>,
    /// Number of the round's slices, including those without a result.
    pub slices: i64,
    /// Time for which lanes worked on the round's finished slices, ns.
    pub service_ns: i64,
    /// End and outcome; `None` if the life or the history ended first.
    pub end: Option<(Moment, RoundEnd)>,
    /// Reason of the refusal; `None` if the round was not refused.
    pub refused: Option<RejectReason>,
}

/// The outcome of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundEnd {
    /// All units of the round are done.
    Finished,
    /// The task was refused.
    Rejected,
    /// The task's deadline passed.
    Expired,
    /// The scheduler shed the task, because tasks had waited for too long.
    Shed,
    /// The task's request was withdrawn, or its partition was revoked.
    Dropped,
}

/// Units of a task on a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Start of the slice.
    pub at: Moment,
    /// The decision.
    pub run: RunSlice,
    /// End of the slice, and the time for which the lane worked on it, ns. `None` if the lane was lost, or the life or
    /// the history ended first.
    pub done: Option<(Moment, i64)>,
}

/// A committed transaction of a process. A journal only has entries of committed transactions; the attempts show the
/// commit time.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Sequence of the first entry; `None` if the history began within the transaction.
    pub first_sequence: Option<i64>,
    /// Sequence of the last entry at the seal, which identifies the transaction.
    pub sealed_sequence: i64,
    /// Time of the seal; `None` if the transaction moves no offsets.
    pub sealed_ns: Option<i64>,
    /// Time of the last entry at the seal, ns since the epoch; `None` if the history has only the transaction's
    /// attempts.
    pub last_ns: Option<i64>,
    /// The parts of the transaction, by partition.
    pub partitions: Vec<SealedPart>,
    /// Attempts to commit the transaction that are in the journal, in order. The last transaction of a life or a window
    /// lacks its last attempt.
    pub attempts: Vec<Attempt>,
}

impl Transaction {
    /// Returns the time at which the commit ended, ns since the epoch; `None` if it is not in the journal.
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
    /// Time at which the commit thread knew the outcome, ns since the epoch.
    pub ended_ns: i64,
    /// Time at which the engine knew the outcome, ns since the epoch.
    pub known_ns: i64,
    /// The outcome.
    pub outcome: CommitOutcome,
    /// True if the outcome had to be looked up in the log.
    pub looked_up: bool,
}

/// One partition's part of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct SealedPart {
    /// Offsets and output counts.
    pub account: SealedPartition,
    /// Arrivals of the part's records, in order. The last one may also contain records of the next transaction.
    pub arrivals: Vec<Arc<Arrival>>,
    /// The batches with rows of these arrivals, in the order in which they came back.
    pub batches: Vec<Arc<Batch>>,
    /// True if all arrivals and batches of the part are listed: the history began before them, and no limit dropped
    /// any.
    pub is_whole: bool,
    /// True if the partition was revoked before the transaction was sent again, so that this part was not committed.
    pub may_be_void: bool,
}
