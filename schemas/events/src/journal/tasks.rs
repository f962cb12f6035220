//! Risk tasks in the journal: their limits, inputs and decisions.

use serde::{Deserialize, Serialize};

use crate::wire::Wire;

use super::{LaneId, PartitionId};

/// Number of a risk task within one process life, counted by the shell.
pub type TaskId = i64;

/// Limits and weights of risk tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct RiskConfig {
    /// Target time of a lane for one slice of a task, in nanoseconds. Batches of ticks that arrive meanwhile share the
    /// processor with the slice.
    #[wire(default = "500000")]
    pub slice_ns: i64,
    /// Maximum number of known tasks; further ones are rejected.
    #[wire(default = "10000")]
    pub tasks_max: i32,
    /// Distribution of a task's units among lanes.
    #[wire(default = r#""DYNAMIC""#)]
    pub split: SplitPolicy,
    /// Tenants with a weight of their own, by name; all others have weight 1.
    #[wire(default = "[]")]
    pub tenant_weights: Vec<TenantWeight>,
    /// Maximum bytes of the known tasks' requests. A task beyond it is rejected, unless no other task is known.
    #[wire(default = "268435456")]
    pub bytes_max: i64,
    /// Service of a task, in nanoseconds, after which its tenant's tasks with less service go first. A share of slices
    /// also goes to less urgent classes. 0: tasks of a tenant run one after the other, and classes strictly by urgency.
    #[wire(default = "0")]
    pub quantum_ns: i64,
    /// Task policy: `NAME` or `NAME@VERSION`. Empty: `fair`.
    #[wire(default = r#""""#)]
    pub policy: String,
    /// Time between checks whether kinds of tasks need new prices, in nanoseconds; 0: never.
    #[wire(default = "0")]
    pub price_interval_ns: i64,
    /// Share of a lane's time that slices of critical tasks may take beside batches of ticks, in percent. 0: a lane
    /// with ticks begins no slice.
    #[wire(default = "0")]
    pub critical_percent: i32,
    /// Time without a slice after which a task is aged, in nanoseconds; 0: never. One of sixteen slices is for the aged
    /// task that has waited longest, whatever its class.
    #[wire(default = "0")]
    pub ageing_ns: i64,
    /// Version of the predictor of slice times by size; 0: time is in proportion to cost.
    #[wire(default = "0")]
    pub predictor: i32,
    /// Quotas of tenants, and the limits on waiting.
    #[wire(default = r#"{"quotas": [], "delay_target_ns": 0, "delay_interval_ns": 0, "in_flight_min": 0}"#)]
    pub queues: QueueConfig,
    /// Share of choices of a task or a lane that are drawn at random among all possible ones, in parts per million; 0:
    /// none.
    #[wire(default = "0")]
    pub explore_ppm: i32,
    /// True if idle lanes take units from the fixed shares of other lanes.
    #[wire(default = "false")]
    pub steals: bool,
}

impl Default for RiskConfig {
    /// The defaults of the schema's fields.
    fn default() -> Self {
        Self {
            slice_ns: 500_000,
            tasks_max: 10_000,
            split: SplitPolicy::Dynamic,
            tenant_weights: Vec::new(),
            bytes_max: 256 << 20,
            quantum_ns: 0,
            policy: String::new(),
            price_interval_ns: 0,
            critical_percent: 0,
            ageing_ns: 0,
            predictor: 0,
            queues: QueueConfig::default(),
            explore_ppm: 0,
            steals: false,
        }
    }
}

/// Quotas of tenants, and the limits on waiting. Without any, only `tasks_max` and `bytes_max` refuse tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct QueueConfig {
    /// Quotas of tenants; a parent comes before the quotas that name it.
    #[wire(default = "[]")]
    pub quotas: Vec<Quota>,
    /// Time that a task may wait to begin, in nanoseconds; 0: no limit. Tasks are shed while the most urgent ones have
    /// waited longer for `delay_interval_ns`.
    #[wire(default = "0")]
    pub delay_target_ns: i64,
    /// Time for which tasks must have waited too long before some are shed, in nanoseconds.
    #[wire(default = "0")]
    pub delay_interval_ns: i64,
    /// Minimum of the limit on known tasks, which falls from `tasks_max` while tasks wait too long; 0: the limit does
    /// not fall.
    #[wire(default = "0")]
    pub in_flight_min: i32,
}

/// Limits on the known tasks and the requests of a tenant, or of a group of tenants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Quota {
    /// Name of the tenant, or of a group that others name as their parent.
    pub name: String,
    /// Name of the quota above this one; empty if there is none.
    pub parent: String,
    /// Number of tasks that always fit, whatever others have.
    pub guaranteed: i32,
    /// Number of guaranteed tasks that others may use meanwhile. They come back when those tasks are done.
    pub lendable: i32,
    /// Maximum number of tasks, borrowed ones included; 0: as many as there is room for.
    pub limit: i32,
    /// Maximum number of requests per second in the long run; 0: no limit.
    pub rate_per_s: i32,
    /// Maximum number of requests at once.
    pub burst: i32,
}

/// Distribution of a task's units among lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SplitPolicy {
    /// Each free lane takes the next units. Gangs are split by score.
    Dynamic,
    /// Each lane gets the same number of units.
    Equal,
    /// Each lane gets units in proportion to its weight.
    Score,
}

/// Weight of a tenant: tenants share the lanes in proportion to their weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct TenantWeight {
    /// Name of the tenant.
    pub tenant: String,
    /// Weight of the tenant, 1 to 1,000.
    pub weight: i32,
}

/// A risk request arrived, or the next round of one: units of work for any lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct TaskArrived {
    /// Number of the task. It rises with every request of a process life; later rounds keep the number of the first.
    pub task: TaskId,
    /// Partition of the request. The task is dropped if the partition is revoked.
    pub partition: PartitionId,
    /// Offset of the request.
    pub offset: i64,
    /// Id of the request, chosen by its sender.
    pub request_id: String,
    /// Tenant that asked.
    pub tenant: String,
    /// Urgency of the task.
    pub class: TaskClass,
    /// Time at which the task expires unless it is done, in nanoseconds since the Unix epoch; null: never.
    #[wire(default = "null")]
    pub deadline_ns: Option<i64>,
    /// Key under which the speed of its units is learnt, such as `asian/f64`. Tasks with the same key take the same
    /// time for a unit of cost.
    pub rate_key: String,
    /// First unit of this round; 0 in the first round. A later round follows `Finish`, has a greater first unit, and is
    /// never rejected for too many tasks.
    pub first_unit: i64,
    /// Number of units in this round.
    pub units: i64,
    /// Cost of one unit, relative to other tasks with the same rate key.
    pub unit_cost: i64,
    /// Maximum number of units in a slice.
    pub slice_units_max: i64,
    /// True if all of its lanes begin at the same time.
    pub gang: bool,
    /// Market state that the task reads, by partition; empty if the request has all its numbers.
    pub as_of: Vec<AsOf>,
    /// Bytes of the request, plus an estimate of the memory that its work takes.
    #[wire(default = "0")]
    pub bytes: i64,
    /// Number of blocks of a kernel that a unit takes on a device. 0: a device works on one unit after the other.
    #[wire(default = "0")]
    pub unit_width: u16,
}

/// Urgency of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskClass {
    /// Before all other classes.
    #[serde(alias = "critical")]
    Critical,
    /// Before `BATCH`.
    #[default]
    #[serde(alias = "interactive")]
    Interactive,
    /// After all other classes.
    #[serde(alias = "batch")]
    Batch,
}

/// Position in the log whose state a task reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct AsOf {
    /// Number of the partition.
    pub partition: PartitionId,
    /// Next offset to read: the state contains all records before it.
    pub next_offset: i64,
}

/// A lane finished a slice of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SliceDone {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Number of the slice, as in `RunSlice`.
    pub slice: i64,
    /// Time that the lane worked on the slice, in nanoseconds.
    pub service_ns: i64,
}

/// The engine withdraws a task; results of its running slices are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct TaskDropped {
    /// Number of the task.
    pub task: TaskId,
}

/// The capacity problem of `AskPrices` is solved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Priced {
    /// Number of the question, as in `AskPrices`.
    pub question: i64,
    /// Price of a unit of cost for each kind of tasks, in the order of the question; empty if the problem could not be
    /// solved.
    pub prices: Vec<i64>,
}

/// The mix of tasks, their rates or the lanes have changed. The engine solves the capacity problem, and reports its
/// prices as `Priced`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct AskPrices {
    /// Number of the question. It rises by one from 0 in each process life.
    pub question: i64,
    /// Number of ready lanes of each class that has some.
    pub lanes: Vec<i32>,
    /// Kinds of tasks that arrived lately.
    pub kinds: Vec<KindDemand>,
}

/// Demand for one kind of tasks in the capacity problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct KindDemand {
    /// Key under which the speed of its units is learnt.
    pub rate_key: String,
    /// Cost that arrived lately; earlier arrivals count less.
    pub cost: i64,
    /// Time for a unit of cost on lanes of each class in the question, in femtoseconds; 0 if unknown.
    pub fs_per_cost: Vec<i64>,
}

/// A whole task joins the queue of one lane. If the lane is lost, its unfinished units go to other lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Assign {
    /// Number of the task.
    pub task: TaskId,
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// Number of tasks that waited for the lane alone, plus the one that it worked on.
    pub tasks: i64,
    /// Predicted time of the lane for those tasks, in nanoseconds.
    pub backlog_ns: i64,
    /// Predicted time of the lane for this task, in nanoseconds; 0 if unknown.
    pub task_ns: i64,
    /// Reason for the lane: `ORDER`, `EXPLORED` or `STOOD_IN`.
    #[wire(default = r#""ORDER""#)]
    pub reason: SliceReason,
    /// Probability of the choice, in parts per million, without the policy's own draws. The draws are those of the
    /// random stream `lane/explore` at the number of the task.
    #[wire(default = "1000000")]
    pub propensity_ppm: i32,
}

/// A task is accepted: it will run, or expire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Admit {
    /// Number of the task.
    pub task: TaskId,
    /// Urgency of the task.
    pub class: TaskClass,
    /// Tenant of the task.
    pub tenant: String,
    /// Number of known tasks, with this one.
    pub tasks: i32,
}

/// Reason why a task was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RejectReason {
    /// The maximum number of known tasks, or of their bytes, is reached.
    Overloaded,
    /// The deadline of the task is not in the future.
    Expired,
    /// A quota of the tenant has its maximum number of tasks, or the free room is guaranteed to others.
    Quota,
    /// Requests of a quota of the tenant come too fast.
    Rate,
    /// Tasks have waited too long, so that the limit on known tasks is below its maximum.
    Congested,
}

/// A task is refused and forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Reject {
    /// Number of the task.
    pub task: TaskId,
    /// Reason of the refusal.
    pub reason: RejectReason,
    /// Number of known tasks. For `QUOTA`: tasks of the quota, or all claimed tasks if the room is guaranteed to
    /// others. For `RATE`: 0.
    pub tasks: i32,
    /// Maximum of `tasks`. For `RATE`: number of requests per second that the quota may make.
    pub tasks_max: i32,
    /// Deadline of the task, in nanoseconds since the Unix epoch; null: none.
    #[wire(default = "null")]
    pub deadline_ns: Option<i64>,
    /// Bytes of the known tasks' requests and of this one.
    #[wire(default = "0")]
    pub bytes: i64,
    /// Maximum of those bytes.
    #[wire(default = "268435456")]
    pub bytes_max: i64,
    /// Name of the quota that refused the task; empty if none did.
    #[wire(default = r#""""#)]
    pub quota: String,
}

/// A task that has not begun is given up, because tasks wait too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Shed {
    /// Number of the task.
    pub task: TaskId,
    /// Reason for shedding.
    pub reason: ShedReason,
    /// Urgency of the task.
    pub class: TaskClass,
    /// Time that the task has waited, in nanoseconds.
    pub waited_ns: i64,
    /// Time that tasks may wait, in nanoseconds.
    pub target_ns: i64,
    /// Number of the task among those shed since tasks began to wait too long, from 1.
    pub number: i64,
}

/// Reason why a task is shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ShedReason {
    /// Tasks have waited longer than allowed for a whole interval.
    StandingDelay,
}

/// Units of a task that a lane gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Share {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// First unit of the share.
    pub from: i64,
    /// Unit after the last one of the share.
    pub to: i64,
    /// Score of the lane; numbers of units are in proportion to scores.
    pub score: i64,
}

/// The units of a task are divided among lanes in fixed shares. If a lane is lost, its unfinished units go to other
/// lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Split {
    /// Number of the task.
    pub task: TaskId,
    /// Rule of the division: `EQUAL` or `SCORE`.
    pub policy: SplitPolicy,
    /// True if all lanes with a share begin in this step.
    pub gang: bool,
    /// Consecutive shares by lane; lanes without a unit are left out.
    pub shares: Vec<Share>,
}

/// A gang is next, but some of its lanes are busy. Its free lanes take no slices until all of its lanes are free, or
/// until `until_ns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Reserve {
    /// Number of the task.
    pub task: TaskId,
    /// Numbers of the gang's lanes.
    pub lanes: Vec<LaneId>,
    /// Numbers of those lanes that are busy.
    pub busy: Vec<LaneId>,
    /// Time until which free lanes wait, in nanoseconds since the Unix epoch. After it, other tasks go before the gang
    /// for as long.
    pub until_ns: i64,
}

/// A lane works on units of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct RunSlice {
    /// Number of the slice. It rises by one from 0 in each process life.
    pub slice: i64,
    /// Number of the task.
    pub task: TaskId,
    /// Number of the lane, from 0. For the reason `ORDER`, the lane was free and nothing waited for it; otherwise it
    /// may have batches in flight.
    pub lane: LaneId,
    /// First unit of the slice.
    pub from: i64,
    /// Unit after the last one of the slice.
    pub to: i64,
    /// Urgency of the task.
    pub class: TaskClass,
    /// Tenant of the task.
    pub tenant: String,
    /// Number of tasks with units that no lane had begun, before this slice.
    pub tasks_waiting: i32,
    /// Service of the tenant in this class, divided by its weight, in nanoseconds: the least of all tenants with units
    /// for this lane.
    pub tenant_service_ns: i64,
    /// Smoothed service time of a unit of cost on lanes of this class, in femtoseconds; 0 if unknown.
    pub service_fs_per_cost: i64,
    /// Predicted end of the slice, in nanoseconds since the Unix epoch.
    pub predicted_finish_ns: i64,
    /// Reason why it is the task's turn.
    #[wire(default = r#""ORDER""#)]
    pub reason: SliceReason,
    /// Time that 19 of 20 such slices are predicted not to exceed, in nanoseconds. 0 if unknown, or if slices are not
    /// predicted by their size. The predicted mean is the time until `predicted_finish_ns`; the actual time is in
    /// `SliceDone`.
    #[wire(default = "0")]
    pub upper_ns: i64,
    /// Probability of the choice, in parts per million; below 1,000,000 if choices are drawn. The draws are those of
    /// the random stream `task/explore` at the number of the slice.
    #[wire(default = "1000000")]
    pub propensity_ppm: i32,
    /// Number of the lane whose share had the units, for the reason `STOLEN`; null otherwise.
    #[wire(default = "null")]
    pub stolen_from: Option<LaneId>,
}

/// Reason for the choice of a task or a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SliceReason {
    /// The choice is the first in the order of the policy.
    #[default]
    Order,
    /// The task is critical, and the lane has time in reserve for critical tasks beside its ticks.
    Reserved,
    /// The task has waited longest of all, and longer than `ageing_ns`.
    Aged,
    /// The choice was drawn at random among all possible ones.
    Explored,
    /// The lane has nothing else to do, and the lane whose share had the units would reach them later.
    Stolen,
    /// The network that the policy names is missing, so that a rule decided in its place.
    StoodIn,
}

/// The deadline of a task has passed: the task is forgotten, and results of its running slices are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Expire {
    /// Number of the task.
    pub task: TaskId,
    /// Deadline of the task, in nanoseconds since the Unix epoch.
    pub deadline_ns: i64,
    /// Number of its slices that lanes work on.
    pub slices_running: i32,
}

/// All units of a task's round are done: the task is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Finish {
    /// Number of the task.
    pub task: TaskId,
    /// Number of slices that did the units.
    pub slices: i64,
    /// Time that lanes worked on these slices, in nanoseconds.
    pub service_ns: i64,
    /// Predicted time for the slices, in nanoseconds; 0 if slices are not predicted by their size.
    #[wire(default = "0")]
    pub predicted_ns: i64,
}

/// Slices of a kind of tasks repeatedly take other times than predicted: what was learnt of the kind on a class of
/// lanes is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Drift {
    /// Number of the slice that showed the drift.
    pub slice: i64,
    /// Number of the slice's lane; the drift concerns the lane's class.
    pub lane: LaneId,
    /// Key under which the speed of the task's units is learnt.
    pub rate_key: String,
    /// Predicted time of the slice, in nanoseconds.
    pub predicted_ns: i64,
    /// Actual time of the slice, in nanoseconds.
    pub service_ns: i64,
    /// Number of slices that were forgotten.
    pub slices: i64,
}

/// The errors of a learned policy have drifted, so that its rule decides instead; or the policy decides again. Errors
/// are absolute binary logarithms, in thousandths, of the ratio of actual to predicted completion time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct FellBack {
    /// Name of the learned policy.
    pub policy: String,
    /// True if the learned policy decides again.
    pub has_returned: bool,
    /// Number of the task whose completion caused the change.
    pub task: TaskId,
    /// Error of the policy at this completion. On a return: its mean error in the last window.
    pub error_milli: i64,
    /// Error for comparison: the policy's mean error before. On a return: the rule's mean error in the last window.
    pub expected_milli: i64,
    /// Number of completions from which the policy had learnt. On a return: completions since it fell back.
    pub completions: i64,
}
