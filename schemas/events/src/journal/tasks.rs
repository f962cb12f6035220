//! Risk tasks in the journal: their limits, inputs and decisions.

use serde::{Deserialize, Serialize};

use crate::wire::Wire;

use super::{LaneId, PartitionId};

/// Number of a risk task within one process life, counted by the shell.
pub type TaskId = i64;

/// Limits and weights of risk tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct RiskConfig {
    /// Time that a lane is to work on one slice of a task, in nanoseconds: batches of ticks that come share the processor with it so long.
    #[wire(default = "500000")]
    pub slice_ns: i64,
    /// Tasks known at a time; a further one is rejected.
    #[wire(default = "10000")]
    pub tasks_max: i32,
    /// How units of tasks are shared out.
    #[wire(default = r#""DYNAMIC""#)]
    pub split: SplitPolicy,
    /// Tenants with a weight of their own, by name; all others have a weight of 1.
    #[wire(default = "[]")]
    pub tenant_weights: Vec<TenantWeight>,
    /// Bytes of the requests of tasks known at a time; a further one is rejected, unless there is no other.
    #[wire(default = "268435456")]
    pub bytes_max: i64,
    /// Service of a task, in nanoseconds, after which tasks of its tenant that had less go before it, and a share of slices goes
    /// to less urgent classes; 0: tasks of a tenant one after the other, and classes strictly.
    #[wire(default = "0")]
    pub quantum_ns: i64,
    /// The task policy: `NAME` or `NAME@VERSION`. Empty: `fair`.
    #[wire(default = r#""""#)]
    pub policy: String,
    /// Time between looks at whether prices of kinds of tasks are to be found anew, in nanoseconds; 0: never.
    #[wire(default = "0")]
    pub price_interval_ns: i64,
    /// Share of a lane's time, in percent, that slices of critical tasks may take beside batches of ticks; 0: a lane that has
    /// ticks begins no slice.
    #[wire(default = "0")]
    pub critical_percent: i32,
    /// Time without a slice, in nanoseconds, after which a task is aged: of every sixteen slices one is for the task that has waited
    /// longest, whatever its class. 0: never.
    #[wire(default = "0")]
    pub ageing_ns: i64,
    /// Version of what predicts the time of slices by their size; 0: time is in proportion to cost.
    #[wire(default = "0")]
    pub predictor: i32,
    /// Who may have how many tasks, and what follows when tasks wait for too long.
    #[wire(default = r#"{"quotas": [], "delay_target_ns": 0, "delay_interval_ns": 0, "in_flight_min": 0}"#)]
    pub queues: QueueConfig,
    /// Share of choices of a task by a lane, or of a lane for a task, that are drawn at random among all that could be made, in parts per
    /// million; 0: none.
    #[wire(default = "0")]
    pub explore_ppm: i32,
    /// Whether lanes that have nothing to do take units of shares that were fixed for others.
    #[wire(default = "false")]
    pub steals: bool,
}

impl Default for RiskConfig {
    /// The schema's default of each field.
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

/// Who may have how many tasks, and what follows when tasks wait for too long. Without anything here, tasks are
/// refused for `tasks_max` and `bytes_max` alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct QueueConfig {
    /// Quotas of tenants; a parent comes before those that name it.
    #[wire(default = "[]")]
    pub quotas: Vec<Quota>,
    /// Time that a task may wait to begin, in nanoseconds: when the most urgent ones wait longer for an interval, tasks are shed; 0: never.
    #[wire(default = "0")]
    pub delay_target_ns: i64,
    /// That interval, in nanoseconds.
    #[wire(default = "0")]
    pub delay_interval_ns: i64,
    /// Tasks that may be known at least, however long they wait: in between and `tasks_max` the limit follows the delay; 0: it is `tasks_max`.
    #[wire(default = "0")]
    pub in_flight_min: i32,
}

/// Tasks that a tenant, or a cohort of them, may have known at a time, and how often it may ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Quota {
    /// The tenant, or a name that others have as their parent.
    pub name: String,
    /// The quota above this one; empty: none.
    pub parent: String,
    /// Tasks that it may have whatever others have.
    pub guaranteed: i32,
    /// Of those, how many others may use while it does not; they come back when they are done.
    pub lendable: i32,
    /// Tasks that it may have with what it borrows; 0: as many as there is room for.
    pub limit: i32,
    /// Requests that it may make in a second in the long run; 0: as many as it likes.
    pub rate_per_s: i32,
    /// Requests that it may make at once.
    pub burst: i32,
}

/// How the units of a task are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SplitPolicy {
    /// Every free lane takes the next ones. Gangs are split by score.
    Dynamic,
    /// Each lane gets as many.
    Equal,
    /// Each lane gets units in proportion to its weight.
    Score,
}

/// What a tenant's share of the lanes is in proportion to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct TenantWeight {
    /// The tenant.
    pub tenant: String,
    /// Its weight.
    pub weight: i32,
}

/// A risk request came in, or the next round of one: units of work for any lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct TaskArrived {
    /// Number of the task: rises with every request of a process life; a later round has the number of the first.
    pub task: TaskId,
    /// Partition of its request record; the task is dropped when the partition is revoked.
    pub partition: PartitionId,
    /// Offset of its request record.
    pub offset: i64,
    /// What the request calls itself.
    pub request_id: String,
    /// On whose account it runs.
    pub tenant: String,
    /// How urgent it is.
    pub class: TaskClass,
    /// Time at which it expires unless all units are done before, in nanoseconds since the epoch; null: never.
    #[wire(default = "null")]
    pub deadline_ns: Option<i64>,
    /// What the speed of its units is known by, such as `asian/f64`: tasks with the same key take as long for a unit's cost.
    pub rate_key: String,
    /// First unit of this round. 0 in the first round; a later round comes after [`Decision::Finish`](super::Decision::Finish), has a greater one,
    /// and is not rejected for too many tasks.
    pub first_unit: i64,
    /// Number of units of this round.
    pub units: i64,
    /// Work of one unit, relative to other tasks of the same rate key.
    pub unit_cost: i64,
    /// Units of its largest slice.
    pub slice_units_max: i64,
    /// Whether all of its lanes are to begin at the same time.
    pub gang: bool,
    /// The market state that it reads, by partition; empty if it brings its own.
    pub as_of: Vec<AsOf>,
    /// Bytes of its request record, and about as many as its work may come to take.
    #[wire(default = "0")]
    pub bytes: i64,
}

/// How urgent a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskClass {
    /// Before all others.
    #[serde(alias = "critical")]
    Critical,
    /// Before [`TaskClass::Batch`].
    #[default]
    #[serde(alias = "interactive")]
    Interactive,
    /// When nothing else is to be done.
    #[serde(alias = "batch")]
    Batch,
}

/// A position in the log whose state a task reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct AsOf {
    /// The partition.
    pub partition: PartitionId,
    /// Next offset to read: the state is that of all records before it.
    pub next_offset: i64,
}

/// A lane finished a slice of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SliceDone {
    /// The lane.
    pub lane: LaneId,
    /// The slice, as numbered by [`Decision::RunSlice`](super::Decision::RunSlice).
    pub slice: i64,
    /// Time the lane worked on it, in nanoseconds.
    pub service_ns: i64,
}

/// The shell withdraws a task; slices of it that run are finished for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct TaskDropped {
    /// The task.
    pub task: TaskId,
}

/// The capacity problem of AskPrices is solved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Priced {
    /// The question that is answered, as numbered by [`Decision::AskPrices`](super::Decision::AskPrices).
    pub question: i64,
    /// Price of each kind of tasks in the question, in its order; none where the problem could not be solved.
    pub prices: Vec<i64>,
}

/// Kinds of tasks, their rates or lanes have changed: solve the capacity problem and report its prices as Priced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct AskPrices {
    /// Number of the question, rising by one from 0 in each process life.
    pub question: i64,
    /// Ready lanes of each class that has some.
    pub lanes: Vec<i32>,
    /// Kinds of tasks that came lately.
    pub kinds: Vec<KindDemand>,
}

/// A kind of tasks in the capacity problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct KindDemand {
    /// What the speed of its units is known by.
    pub rate_key: String,
    /// Cost that came lately, what came earlier counting less.
    pub cost: i64,
    /// Time for a unit of cost on lanes of each class in the question, in femtoseconds; 0 where that is not known.
    pub fs_per_cost: Vec<i64>,
}

/// A task joins the queue of one lane, as a whole; what a lost lane does not do goes to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Assign {
    /// The task.
    pub task: TaskId,
    /// The lane.
    pub lane: LaneId,
    /// Tasks that waited for the lane alone, and the one that it worked on.
    pub tasks: i64,
    /// What the lane was predicted to take for them, in nanoseconds.
    pub backlog_ns: i64,
    /// What it is predicted to take for this one, in nanoseconds; 0 while unknown.
    pub task_ns: i64,
    /// Why this lane: `ORDER`, `EXPLORED`, or `STOOD_IN` where the network is not there that the policy names.
    #[wire(default = r#""ORDER""#)]
    pub reason: SliceReason,
    /// How likely the choice was, in parts per million, besides what the policy itself draws: by the draws of `lane/explore` that the number of
    /// the task addresses.
    #[wire(default = "1000000")]
    pub propensity_ppm: i32,
}

/// A task is accepted: it will run, or expire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Admit {
    /// The task.
    pub task: TaskId,
    /// Its class.
    pub class: TaskClass,
    /// Its tenant.
    pub tenant: String,
    /// Tasks known, this one among them.
    pub tasks: i32,
}

/// Why a task was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RejectReason {
    /// As many tasks are known as may be.
    Overloaded,
    /// Its deadline was not in the future.
    Expired,
    /// A quota of its tenant has as many tasks as it may have, or what there is room for is guaranteed to others.
    Quota,
    /// Requests of a quota of its tenant come faster than they may.
    Rate,
    /// Tasks have waited for too long, so that fewer may be known than otherwise.
    Congested,
}

/// A task is refused and forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Reject {
    /// The task.
    pub task: TaskId,
    /// Why.
    pub reason: RejectReason,
    /// Tasks known; of the quota, where that is the reason.
    pub tasks: i32,
    /// Tasks that may be known; where the rate is the reason, requests that the quota may make in a second.
    pub tasks_max: i32,
    /// Its deadline, in nanoseconds since the epoch; null: none.
    #[wire(default = "null")]
    pub deadline_ns: Option<i64>,
    /// Bytes of the requests of the tasks known, and of this one.
    #[wire(default = "0")]
    pub bytes: i64,
    /// Bytes of requests that may be known.
    #[wire(default = "268435456")]
    pub bytes_max: i64,
    /// The quota that is the reason; empty where none is.
    #[wire(default = r#""""#)]
    pub quota: String,
}

/// A task that has not begun is given up because tasks wait for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Shed {
    /// The task.
    pub task: TaskId,
    /// Why.
    pub reason: ShedReason,
    /// Its class.
    pub class: TaskClass,
    /// How long it has waited, in nanoseconds.
    pub waited_ns: i64,
    /// How long tasks may wait, in nanoseconds.
    pub target_ns: i64,
    /// The how many-th task it is since the delay became a standing one.
    pub number: i64,
}

/// Why a task is shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ShedReason {
    /// Tasks have waited longer than they may for an interval.
    StandingDelay,
}

/// Units of a task that a lane gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Share {
    /// The lane.
    pub lane: LaneId,
    /// Its first unit.
    pub from: i64,
    /// The unit after its last.
    pub to: i64,
    /// What its number of units is in proportion to.
    pub score: i64,
}

/// The units of a task are shared out among lanes for good; what a lost lane does not do goes to the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Split {
    /// The task.
    pub task: TaskId,
    /// How: by [`SplitPolicy::Equal`] or [`SplitPolicy::Score`].
    pub policy: SplitPolicy,
    /// Whether all of these lanes begin in this step.
    pub gang: bool,
    /// Consecutive shares by lane; lanes without a unit are left out.
    pub shares: Vec<Share>,
}

/// A gang is next and not all of its lanes are free: those that are take no slices until the others are free too, or for so long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Reserve {
    /// The task.
    pub task: TaskId,
    /// Its lanes.
    pub lanes: Vec<LaneId>,
    /// Those among them that are not free.
    pub busy: Vec<LaneId>,
    /// When the gang lets others go first for as long, in nanoseconds since the epoch.
    pub until_ns: i64,
}

/// A lane works on units of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct RunSlice {
    /// Number of the slice, rising by one from 0 in each process life.
    pub slice: i64,
    /// The task.
    pub task: TaskId,
    /// The lane. With the reason `ORDER` it was free, and nothing waited for it; otherwise it may have batches in flight.
    pub lane: LaneId,
    /// First unit.
    pub from: i64,
    /// The unit after the last.
    pub to: i64,
    /// Class of the task.
    pub class: TaskClass,
    /// Its tenant.
    pub tenant: String,
    /// Tasks with units that no lane had begun, before this slice.
    pub tasks_waiting: i32,
    /// Service that the tenant has had in this class by its weight, in nanoseconds: the least of all tenants with units for
    /// this lane.
    pub tenant_service_ns: i64,
    /// Smoothed service time of a unit of cost on lanes of this kind, in femtoseconds; 0 while unknown.
    pub service_fs_per_cost: i64,
    /// Predicted end of the slice, in nanoseconds since the epoch.
    pub predicted_finish_ns: i64,
    /// Why it is the turn of this task.
    #[wire(default = r#""ORDER""#)]
    pub reason: SliceReason,
    /// Time that nineteen of twenty such slices are predicted to keep, in nanoseconds; 0 where nothing is known, or slices are not predicted
    /// by their size. The mean is that until the predicted end; what it took is in `SliceDone`.
    #[wire(default = "0")]
    pub upper_ns: i64,
    /// How likely the choice was, in parts per million: below a million where choices are drawn, by the draws of `task/explore` that the
    /// number of the slice addresses.
    #[wire(default = "1000000")]
    pub propensity_ppm: i32,
    /// The lane whose share the units were of, where the reason is `STOLEN`.
    #[wire(default = "null")]
    pub stolen_from: Option<LaneId>,
}

/// Why it is the turn of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SliceReason {
    /// It is first in the order of the policy.
    #[default]
    Order,
    /// It is critical, and the lane, which has ticks to work on, has time in reserve for such tasks.
    Reserved,
    /// It has waited longest of all, and longer than `ageing_ns`.
    Aged,
    /// It was drawn at random among those that it could have been.
    Explored,
    /// The lane has nothing else to do, and the one that the units were split to would come to them later.
    Stolen,
    /// The network is not there that the policy names, so that the rule decided that stands in for it.
    StoodIn,
}

/// The deadline of a task has passed: it is forgotten, and what still runs of it is finished for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Expire {
    /// The task.
    pub task: TaskId,
    /// Its deadline, in nanoseconds since the epoch.
    pub deadline_ns: i64,
    /// Slices of it that lanes are working on.
    pub slices_running: i32,
}

/// All units of a task's round are done: it is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Finish {
    /// The task.
    pub task: TaskId,
    /// Slices that did them.
    pub slices: i64,
    /// Time that lanes worked on them, in nanoseconds.
    pub service_ns: i64,
    /// Time that they were predicted to take, in nanoseconds; 0 where slices are not predicted by their size.
    #[wire(default = "0")]
    pub predicted_ns: i64,
}

/// Slices of a kind of tasks take other times than predicted, again and again: what was known of them on a class of lanes is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Drift {
    /// The slice that showed it.
    pub slice: i64,
    /// Its lane, which stands for its class.
    pub lane: LaneId,
    /// What the speed of the task's units is known by.
    pub rate_key: String,
    /// What the slice was predicted to take, in nanoseconds.
    pub predicted_ns: i64,
    /// What it took, in nanoseconds.
    pub service_ns: i64,
    /// Slices that were forgotten.
    pub slices: i64,
}

/// A learned policy's errors have drifted, so that its rule decides instead of it; or it decides again. Errors are sizes, in thousandths of a power
/// of two, of what completions took by what was predicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct FellBack {
    /// The learned policy.
    pub policy: String,
    /// Whether it decides again.
    pub has_returned: bool,
    /// The task whose completion showed it.
    pub task: TaskId,
    /// The policy's error: at this completion; where it decides again, in the mean of the last window.
    pub error_milli: i64,
    /// What that is compared with: its mean error before; where it decides again, the rule's mean error in the last window.
    pub expected_milli: i64,
    /// Completions that it was learnt from; where it decides again, those since it fell back.
    pub completions: i64,
}
