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
    /// The source stops reading a partition.
    Pause(Pause),
    /// The source reads a paused partition again.
    Resume(Resume),
    /// A lane is cut off: results that it still sends are ignored.
    Fence(Fence),
    /// A part of a partition's stage state is lost. The engine discards uncommitted work, restores the state from a
    /// snapshot and later records, and then reports `PartitionAssigned`.
    Restore(Restore),
    /// The engine sends `Woke` at this time, unless an input at or after it comes first.
    WakeAt(WakeAt),
    /// A lane gives a group back once it has finished the group's work. Rows of the group wait until `Released`.
    Release(Release),
    /// A task is accepted: it will run, or expire.
    Admit(Admit),
    /// A task is refused and forgotten.
    Reject(Reject),
    /// The units of a task are divided among lanes in fixed shares. If a lane is lost, its unfinished units go to other
    /// lanes.
    Split(Split),
    /// A gang is next, but some of its lanes are busy. Its free lanes take no slices until all of its lanes are free,
    /// or until `until_ns`.
    Reserve(Reserve),
    /// A lane works on units of a task.
    RunSlice(RunSlice),
    /// The deadline of a task has passed: the task is forgotten, and results of its running slices are discarded.
    Expire(Expire),
    /// All units of a task's round are done: the task is forgotten.
    Finish(Finish),
    /// A whole task joins the queue of one lane. If the lane is lost, its unfinished units go to other lanes.
    Assign(Assign),
    /// The mix of tasks, their rates or the lanes have changed. The engine solves the capacity problem, and reports its
    /// prices as `Priced`.
    AskPrices(AskPrices),
    /// Outcome of an operator's command. Its effects are decisions of their own, in this step and later ones.
    Controlled(Controlled),
    /// A lane's breaker changed its state.
    Breaker(Breaker),
    /// The temperature of a lane's device changes how much of the lane's weight counts.
    Headroom(Headroom),
    /// Slices of a kind of tasks repeatedly take other times than predicted: what was learnt of the kind on a class of
    /// lanes is forgotten.
    Drift(Drift),
    /// A task that has not begun is given up, because tasks wait too long.
    Shed(Shed),
    /// The errors of a learned policy have drifted, so that its rule decides instead; or the policy decides again.
    /// Errors are absolute binary logarithms, in thousandths, of the ratio of actual to predicted completion time.
    FellBack(FellBack),
    /// The number of lanes wanted has changed, with the figures behind it. A load is a number of lanes that work
    /// without pause.
    Scale(Scale),
    /// Choice of a shadow policy, recorded with the choice that was made. It has no effect.
    Shadow(Shadow),
}

/// A lane that could take a group, with the figures for the choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Candidate {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Score of the policy. The highest score wins; ties go to the lower lane number.
    pub score: i64,
    /// Number of the lane's groups before this decision.
    pub groups_placed: i32,
    /// Maximum number of the lane's groups.
    pub groups_max: i32,
}

/// Reason why a lane was no candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ExclusionReason {
    /// The lane is lost.
    Lost,
    /// The lane has its maximum number of groups, which is 0 for a lane of weight 0 while another lane is ready.
    Full,
    /// The lane is not of the kind that the route names.
    Slower,
    /// An operator drains the lane, and another lane is in service.
    Drained,
    /// The lane's breaker is open, and another lane is in service.
    Broken,
    /// The lane's device has little free memory, and another lane can take the group.
    Memory,
}

/// A lane that was no candidate, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Exclusion {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Reason of the exclusion.
    pub reason: ExclusionReason,
}

/// Policy that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct PolicyRef {
    /// Name of the policy.
    pub id: String,
    /// Version of the policy. It rises whenever the same inputs could give another decision.
    pub version: i32,
}

/// State of a lane before a decision, as the scheduler knew it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct LaneTelemetry {
    /// Number of rows in flight.
    pub in_flight_rows: i64,
    /// Number of bytes in flight.
    pub in_flight_bytes: i64,
    /// Number of batches in flight.
    pub in_flight_batches: i32,
    /// Smoothed service time of a row, in picoseconds; 0 before the first completion.
    pub service_ps_per_row: i64,
}

/// A group now belongs to a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Place {
    /// Partition of the group.
    pub partition: PartitionId,
    /// Number of the group in its partition, from 0.
    pub group: GroupIndex,
    /// Number of the chosen lane.
    pub lane: LaneId,
    /// Fencing epoch of the group from now on; it never falls.
    pub epoch: i64,
    /// Policy that decided.
    pub policy: PolicyRef,
    /// Lanes that could be chosen, by number.
    pub candidates: Vec<Candidate>,
    /// Lanes that could not be chosen, with the reasons.
    pub excluded: Vec<Exclusion>,
    /// Random stream from which the scores were drawn.
    pub random_stream: i64,
    /// Counter in that stream.
    pub random_counter: i64,
    /// Probability that the policy chooses this lane, in parts per million; 1,000,000 for a deterministic policy.
    pub propensity_ppm: i32,
    /// Reason for a lane of this kind; null if all lanes are of one kind, or nothing is known yet.
    #[wire(default = "null")]
    pub route: Option<Route>,
}

/// Kind of a lane, by the place of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LaneKind {
    /// State is in the memory of the host; the lane works on the processor.
    Host,
    /// State is in the memory of a GPU.
    Device,
}

/// Comparison of processor lanes and GPU lanes for a group: predicted times for the group's rows and the rows
/// dispatched together with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Route {
    /// Kind of lane that is predicted to be faster, or was when the group was released.
    pub kind: LaneKind,
    /// Smoothed number of rows that all lanes of the group's kind got at the same time, including the group's own.
    pub rows: i64,
    /// Least number of such rows at which GPU lanes are predicted to be faster; null if there is none.
    #[wire(default = "null")]
    pub break_even_rows: Option<i64>,
    /// Predicted time in which all ready processor lanes together would take these rows, in nanoseconds.
    pub host_ns: i64,
    /// Predicted time in which all ready GPU lanes together would take these rows, in nanoseconds.
    pub device_ns: i64,
}

/// Rows of one group in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Take {
    /// Partition of the group.
    pub partition: PartitionId,
    /// Number of the group in its partition, from 0.
    pub group: GroupIndex,
    /// Fencing epoch of the group.
    pub epoch: i64,
    /// Number of rows, taken from the head of the group's queue.
    pub rows: i64,
}

/// Reason why a batch goes to its lane now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReleaseReason {
    /// The lane was idle.
    Idle,
    /// As many rows wait as a batch may have.
    Full,
    /// The deadline of the oldest row allows no further waiting.
    Deadline,
    /// The pipeline drains.
    Drain,
}

/// Rows go to a lane as one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Dispatch {
    /// Number of the batch. It rises by one from 0 in each process life.
    pub batch: i64,
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Rows of each group, the group with the oldest row first.
    pub takes: Vec<Take>,
    /// Number of rows in the batch.
    pub rows: i64,
    /// Number of bytes in the batch.
    pub bytes: i64,
    /// Reason for the dispatch.
    pub reason: ReleaseReason,
    /// State of the lane before the dispatch.
    pub telemetry: LaneTelemetry,
    /// Arrival of the oldest row, in nanoseconds since the Unix epoch.
    pub oldest_arrival_ns: i64,
    /// Predicted end of the batch, in nanoseconds since the Unix epoch.
    pub predicted_finish_ns: i64,
}

/// The source stops reading a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Pause {
    /// Number of the partition.
    pub partition: PartitionId,
    /// Number of the partition's rows that wait on the host.
    pub waiting_rows: i64,
    /// Limit that was reached, in rows.
    pub high_water_rows: i64,
}

/// The source reads a paused partition again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Resume {
    /// Number of the partition.
    pub partition: PartitionId,
    /// Number of the partition's rows that wait on the host.
    pub waiting_rows: i64,
    /// Limit down to which the rows had to fall.
    pub low_water_rows: i64,
}

/// A lane is cut off: results that it still sends are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Fence {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Number of groups that lose their lane.
    pub groups: i32,
    /// Reason of the loss, in words.
    pub reason: String,
}

/// A part of a partition's stage state is lost. The engine discards uncommitted work, restores the state from a
/// snapshot and later records, and then reports `PartitionAssigned`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Restore {
    /// Number of the partition.
    pub partition: PartitionId,
    /// Number of the lost lane.
    pub lost_lane: LaneId,
}

/// The engine sends `Woke` at this time, unless an input at or after it comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct WakeAt {
    /// Time of the wake-up, in nanoseconds since the Unix epoch.
    pub at_ns: i64,
}

/// A lane gives a group back once it has finished the group's work. Rows of the group wait until `Released`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Release {
    /// Partition of the group.
    pub partition: PartitionId,
    /// Number of the group in its partition, from 0.
    pub group: GroupIndex,
    /// Number of the lane that gives the group back.
    pub lane: LaneId,
    /// Fencing epoch of the group on that lane.
    pub epoch: i64,
    /// Comparison of both kinds of lanes, for the cause `ROUTE`; null otherwise.
    #[wire(default = "null")]
    pub route: Option<Route>,
    /// Cause of the release.
    #[wire(default = r#""ROUTE""#)]
    pub cause: ReleaseCause,
    /// Gain and cost of the move, for the cause `BALANCE`; null otherwise.
    #[wire(default = "null")]
    pub imbalance: Option<Imbalance>,
}

/// Gain and cost of a group's move from a busy lane to a less busy one. A load is the lane time that the rows of one
/// second take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Imbalance {
    /// Number of the lane that was best for the group at the decision. The placement policy chooses again once the
    /// group is released.
    pub to: LaneId,
    /// Predicted load of the group on that lane.
    pub group_load_ns: i64,
    /// Load of the lane that gives the group back, with the group.
    pub from_load_ns: i64,
    /// Load of the other lane, without the group.
    pub to_load_ns: i64,
    /// Decrease of the load of the busier of the two lanes, over one window, in nanoseconds.
    pub gain_ns: i64,
    /// Smoothed time of moves between lanes of the same closeness, in nanoseconds.
    pub cost_ns: i64,
    /// Number of windows in a row in which a move of the group gained more than twice its cost.
    pub windows: i64,
}

/// Cause for which a lane gives a group back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReleaseCause {
    /// Lanes of the other kind are better for the group.
    Route,
    /// An operator drains the lane.
    Drained,
    /// The lane's breaker is open.
    Breaker,
    /// The placement policy would choose another lane now.
    Rebalance,
    /// Another lane has less load.
    Balance,
}

/// A lane's breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Breaker {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// New state of the breaker.
    pub state: BreakerState,
    /// Reason of the change.
    pub reason: BreakerReason,
    /// Measured value, in the unit of the reason.
    pub measured: i64,
    /// Limit for the measured value, in the same unit.
    pub limit: i64,
}

/// State of a lane's breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerState {
    /// The lane gets work.
    #[default]
    Closed,
    /// The lane gets no work while another lane is in service.
    Open,
    /// The lane gets a part of its work, as probes.
    HalfOpen,
}

/// Reason why a breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerReason {
    /// The lane was lost too often. Unit: losses within the window.
    Losses,
    /// The lane was slow for too long, relative to other lanes. Unit: percent of the predicted time.
    Slow,
    /// The device met further memory errors that cannot be corrected. Unit: new errors.
    Memory,
    /// The time to probe has come. Unit: nanoseconds since the opening.
    Probe,
    /// A probe failed: the lane was slow or lost. Unit: percent of the predicted time; 0 if the lane was lost.
    ProbeFailed,
    /// Enough probes succeeded. Unit: probes.
    Recovered,
}

/// The temperature of a lane's device changes how much of the lane's weight counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Headroom {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Part of the lane's weight that counts now, in percent.
    pub weight_percent: i32,
    /// Temperature of the device, in degrees Celsius.
    pub temperature_c: i64,
    /// Temperature at which the device throttles, in degrees Celsius.
    pub limit_c: i64,
}

/// Outcome of an operator's command. Its effects are decisions of their own, in this step and later ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Controlled {
    /// Id of the command.
    pub id: String,
    /// Outcome of the command.
    pub outcome: ControlOutcome,
    /// Effect of the command, or reason of the refusal, in words.
    pub detail: String,
}
