//! Orders in which the tasks of a class wait.

use serde::{Deserialize, Serialize};

/// What goes first within a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The tenant with the least service by its weight; of a tenant the task with the fewest turns, the earliest deadline, the first to arrive.
    Fair,
    /// The earliest deadline, whoever's it is; tasks without a deadline come last.
    EarliestDeadline,
    /// The least time that is left until the deadline once the rest of the task is done, predicted on the class of lanes that is fastest.
    LeastLaxity,
    /// The first to arrive.
    FirstCome,
    /// The tenant with the least service by its weight; of a tenant the task that is done soonest, in favour of those that wait: a task lets
    /// shorter ones that come later go before it for so many times what its rest takes, and not beyond its deadline.
    ShortestFirst,
}

/// How many times what its rest takes a task may be passed by shorter ones that come later.
const AGEING: i64 = 16;

/// What orders go by.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Due {
    /// Turns that it has had.
    pub(crate) quanta: i64,
    pub(crate) arrived_ns: i64,
    pub(crate) deadline_ns: Option<i64>,
    /// What its rest is predicted to take on the class of lanes that is fastest, in nanoseconds.
    pub(crate) rest_ns: i64,
}

impl Order {
    /// Whether tenants take turns.
    pub(crate) fn is_fair(self) -> bool {
        matches!(self, Self::Fair | Self::ShortestFirst)
    }

    /// Whether it goes by what the rest of a task takes.
    pub(crate) fn predicts(self) -> bool {
        matches!(self, Self::LeastLaxity | Self::ShortestFirst)
    }

    /// Whether it goes by what the rest of a task takes at most, as far as nineteen of twenty tell, and not by the mean: a deadline is met or
    /// missed.
    pub(crate) fn is_cautious(self) -> bool {
        self == Self::LeastLaxity
    }

    /// What the order goes by within a tenant's tasks, or within all of a class: (quanta, time).
    pub(crate) fn key(self, due: Due) -> (i64, i64) {
        let Due { quanta, arrived_ns, deadline_ns, rest_ns } = due;
        let deadline_ns = deadline_ns.unwrap_or(i64::MAX);
        match self {
            Self::ShortestFirst => {
                let passed_until_ns = arrived_ns.saturating_add(rest_ns.saturating_mul(AGEING));
                (0, passed_until_ns.min(deadline_ns))
            }
            Self::Fair => (quanta, deadline_ns),
            Self::EarliestDeadline => (0, deadline_ns),
            Self::LeastLaxity if deadline_ns == i64::MAX => (0, i64::MAX),
            Self::LeastLaxity => (0, deadline_ns.saturating_sub(rest_ns)),
            Self::FirstCome => (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_go_by_what_they_are_called() {
        let due = |quanta, deadline_ns| Due { quanta, arrived_ns: 5, deadline_ns, rest_ns: 30 };
        let keys = |order: Order| [order.key(due(3, Some(100))), order.key(due(4, None))];
        assert_eq!(keys(Order::ShortestFirst), [(0, 100), (0, 485)]);
        assert_eq!(keys(Order::Fair), [(3, 100), (4, i64::MAX)]);
        assert_eq!(keys(Order::EarliestDeadline), [(0, 100), (0, i64::MAX)]);
        assert_eq!(keys(Order::LeastLaxity), [(0, 70), (0, i64::MAX)]);
        assert_eq!(keys(Order::FirstCome), [(0, 0), (0, 0)]);
    }
}
