//! The scheduler's decisions, with their reasons.

use serde::{Deserialize, Serialize};

use super::*;
use crate::wire::Wire;

/// A recorded decision of the scheduler. The engine executes each kind in one exhaustive match.
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
    /// Part of a partition's stage state is lost. Discard uncommitted work, restore the state from snapshot and tail,
    /// then report it with [`Input::PartitionAssigned`].
    Restore(Restore),
    /// Send [`Input::Woke`] at this time, unless an input at or past it comes first.
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
    /// Kinds of tasks, their rates or lanes have changed: solve the capacity problem, and report its prices with
    /// [`Input::Priced`].
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
    /// The number of lanes wanted has changed. A supervisor of processes or devices may follow it; nothing else depends
    /// on it.
    Scale(Scale),
    /// The choice of a shadow policy, where another policy has just decided. It has no effect.
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
