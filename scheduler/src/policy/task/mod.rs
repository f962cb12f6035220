//! Task policies: which lanes work on a task.
//!
//! ```text
//!   pull    a lane is free ──► which of the waiting tasks does it take?     fair, lp-price, earliest-deadline, least-laxity, first-come
//!   push    a task arrives ──► whose queue does it join, as a whole?        round-robin, weighted-round-robin, score-utilization,
//!                                                                            shortest-queue, two-choices, earliest-completion, linucb, dqn:HASH
//! ```
//!
//! Under each policy, a more urgent class goes first. Gangs, and tasks that `risk.split` divides among lanes, are split
//! in the same way under each policy.

pub mod dqn;
mod draw;
mod earliest_completion;
mod exploration;
pub(crate) mod linucb;
mod lp_price;
mod order;
mod round_robin;
mod score_utilization;
mod shortest_queue;
mod two_choices;
mod weighted_round_robin;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, SchedulerConfig, TaskId};

use super::named;
#[cfg(test)]
pub(crate) use draw::draw;
pub(crate) use exploration::{CERTAIN_PPM, Choice, EXPLORE_PPM_MAX, choose, is_explored, preferred_ppm};
pub(crate) use lp_price::Offer;
pub(crate) use order::{Due, Order};

/// Names of all task policies, in the order of their introduction: a recorded refusal lists the first of them. In
/// addition, `dqn:HASH` is the policy of a network ([`dqn`]).
pub const TASK_POLICIES: [&str; 12] = [
    "fair",
    "lp-price",
    "earliest-deadline",
    "least-laxity",
    "first-come",
    "round-robin",
    "weighted-round-robin",
    "score-utilization",
    "shortest-queue",
    "two-choices",
    "earliest-completion",
    "linucb",
];

/// Adds this software's version to the name of a task policy: `NAME@VERSION`. Any other text stays as it is. A name
/// without a version in a journal means the first version.
pub fn current_task_policy(name: &str) -> String {
    let policy = TaskPolicy::of_name(name).filter(|_| TASK_POLICIES.contains(&name));
    policy.map_or_else(|| name.to_owned(), |policy| format!("{name}@{}", policy.version()))
}

/// All task policies with their versions, as a text for messages.
pub(crate) fn task_policies_listed() -> String {
    TASK_POLICIES.map(current_task_policy).join(", ")
}

/// The rule by which lanes get tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TaskPolicy {
    /// A free lane takes units of the first task in an order.
    First(Order),
    /// A free lane takes units of the task whose kind it serves best at the prices of the capacity problem.
    LpPrice,
    /// An arriving task joins the queue of one lane.
    Push(Push),
}

/// The rule that assigns a lane to an arriving task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Push {
    /// The next lane in turn.
    RoundRobin,
    /// The next lane in turn; turns are in proportion to speed.
    WeightedRoundRobin,
    /// The lane with the highest speed × (1 − utilisation).
    ScoreUtilization,
    /// The lane with the fewest tasks.
    ShortestQueue,
    /// The lane with the shorter queue of two drawn ones.
    TwoChoices,
    /// The lane with the earliest predicted completion.
    EarliestCompletion,
    /// Earliest completion at the prices of the capacity problem, corrected by the learnt residual.
    LinUcb,
    /// The lane that the named network scores highest; earliest completion while the network is missing.
    Dqn,
}

impl TaskPolicy {
    /// Reads `NAME` or `NAME@VERSION`; an empty text is the default. `None` if this software does not have the policy
    /// or the version.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, version) = named(text)?;
        Self::of_name(name).filter(|policy| policy.version() == version)
    }

    fn of_name(name: &str) -> Option<Self> {
        let policy = match name {
            "" | "fair" => Self::First(Order::Fair),
            "lp-price" => Self::LpPrice,
            "earliest-deadline" => Self::First(Order::EarliestDeadline),
            "least-laxity" => Self::First(Order::LeastLaxity),
            "first-come" => Self::First(Order::FirstCome),
            "round-robin" => Self::Push(Push::RoundRobin),
            "weighted-round-robin" => Self::Push(Push::WeightedRoundRobin),
            "score-utilization" => Self::Push(Push::ScoreUtilization),
            "shortest-queue" => Self::Push(Push::ShortestQueue),
            "two-choices" => Self::Push(Push::TwoChoices),
            "earliest-completion" => Self::Push(Push::EarliestCompletion),
            "linucb" => Self::Push(Push::LinUcb),
            _ => Self::Push(dqn::hash_of(name).map(|_| Push::Dqn)?),
        };
        Some(policy)
    }

    /// Version of the rule, which rises whenever the same inputs could give another decision.
    fn version(self) -> i32 {
        match self {
            Self::Push(Push::LinUcb) => linucb::VERSION,
            Self::First(_) | Self::LpPrice | Self::Push(_) => 1,
        }
    }

    /// True if the policy uses the utilisation of lanes in the last seconds.
    pub(crate) fn sees_utilization(self) -> bool {
        matches!(self, Self::Push(Push::ScoreUtilization | Push::Dqn))
    }

    /// True if the policy uses the prices of the capacity problem.
    pub(crate) fn sees_prices(self) -> bool {
        matches!(self, Self::LpPrice | Self::Push(Push::LinUcb))
    }

    /// The order in which the tasks of a class wait.
    pub(crate) fn order(self) -> Order {
        match self {
            Self::First(order) => order,
            Self::LpPrice => Order::ShortestFirst,
            Self::Push(_) => Order::Fair,
        }
    }
}

/// A candidate lane for a task, as a push policy sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneView {
    pub(crate) lane: LaneId,
    /// Number of tasks that wait for this lane alone, plus the one in progress.
    pub(crate) tasks: i64,
    /// Predicted time for these tasks, in nanoseconds.
    pub(crate) backlog_ns: i64,
    /// Expected time for the task, in nanoseconds; 0 if it is unknown, under rules without priors.
    pub(crate) task_ns: i64,
    /// True if `task_ns` was learnt from tasks of the kind on lanes of the class.
    pub(crate) is_known: bool,
    /// Speed: units of cost of the task's kind in a second, or the weight if that is unknown.
    pub(crate) speed: i64,
    /// Share of the last second in which it worked, in parts per million.
    pub(crate) utilization_ppm: i64,
    /// Powers of two by which the lane's time is worth more on another kind of tasks, with 16 bits after the point; 0
    /// if unknown. `None` if the policy does not use prices.
    pub(crate) forgone: Option<i64>,
}

/// State of push policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turns {
    /// The lane that had the last turn.
    pub(crate) last: LaneId,
    /// Credit of each lane in weighted turns, by lane.
    pub(crate) behind: Vec<i64>,
    /// Contribution to the state hash.
    pub(crate) contribution: u64,
}

impl Push {
    /// The lane for a task; `lanes` must not be empty.
    pub(crate) fn choose(
        self,
        lanes: &[LaneView],
        task: TaskId,
        turns: &mut Turns,
        config: &SchedulerConfig,
    ) -> LaneId {
        match self {
            Self::RoundRobin => round_robin::choose(lanes, turns),
            Self::WeightedRoundRobin => weighted_round_robin::choose(lanes, turns),
            Self::ScoreUtilization => score_utilization::choose(lanes),
            Self::ShortestQueue => shortest_queue::choose(lanes),
            Self::TwoChoices => two_choices::choose(lanes, task, config.placement_seed),
            // The policies that learn choose elsewhere; this is their fallback.
            Self::EarliestCompletion | Self::LinUcb | Self::Dqn => earliest_completion::choose(lanes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes of (tasks, backlog, time for the task, speed, utilisation).
    pub(super) fn views(lanes: &[(i64, i64, i64, i64, i64)]) -> Vec<LaneView> {
        let view = |(lane, &(tasks, backlog_ns, task_ns, speed, utilization_ppm))| LaneView {
            lane,
            tasks,
            backlog_ns,
            task_ns,
            is_known: task_ns > 0,
            speed,
            utilization_ppm,
            forgone: None,
        };
        (0..).zip(lanes).map(view).collect()
    }

    #[test]
    fn every_name_is_a_policy_and_a_version_that_is_not_there_is_none() {
        for name in TASK_POLICIES {
            let current = current_task_policy(name);
            let policy = TaskPolicy::parse(&current).expect("it is known");
            assert_eq!(
                (&current, current_task_policy(&current)),
                (&format!("{name}@{}", policy.version()), current.clone())
            );
            assert_eq!(TaskPolicy::parse(name), TaskPolicy::parse(&format!("{name}@1")), "{name}");
            assert_eq!(TaskPolicy::parse(name), (policy.version() == 1).then_some(policy), "{name}");
            assert_eq!(TaskPolicy::parse(&format!("{name}@{}", policy.version() + 1)), None);
        }
        assert_eq!(["", "dice", "dqn:01234567"].map(current_task_policy), ["", "dice", "dqn:01234567"]);
        assert_eq!(TaskPolicy::parse(""), TaskPolicy::parse("fair"));
        assert_eq!(["dice", "fair@0", "fair@x", "@"].map(TaskPolicy::parse), [None; 4]);
    }
}
