//! Orders in which the tasks of a class wait.

use serde::{Deserialize, Serialize};

/// The order of tasks within a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// First the tenant with the least service for its weight. Among its tasks: the fewest quanta, then the earliest
    /// deadline, then the first arrival.
    Fair,
    /// The earliest deadline, whatever the tenant; tasks without a deadline come last.
    EarliestDeadline,
    /// The least laxity: the time to the deadline, less the predicted rest of the task on the fastest class of lanes.
    LeastLaxity,
    /// The first to arrive.
    FirstCome,
    /// First the tenant with the least service for its weight. Among its tasks: the shortest rest, with a bonus for
    /// waiting. Later, shorter tasks may pass a task for a multiple of the time of its rest, but not beyond its
    /// deadline.
    ShortestFirst,
}

/// Time for which later, shorter tasks may pass a task, as a multiple of the time of its rest.
const AGEING: i64 = 16;

/// Figures of a task that orders use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Due {
    /// Service quanta consumed so far.
    pub(crate) quanta: i64,
    pub(crate) arrived_ns: i64,
    pub(crate) deadline_ns: Option<i64>,
    /// Predicted time of its rest on the fastest class of lanes, in nanoseconds.
    pub(crate) rest_ns: i64,
}

impl Order {
    /// True if tenants take turns by service.
    pub(crate) fn is_fair(self) -> bool {
        matches!(self, Self::Fair | Self::ShortestFirst)
    }

    /// True if the order uses the predicted time of a task's rest.
    pub(crate) fn predicts(self) -> bool {
        matches!(self, Self::LeastLaxity | Self::ShortestFirst)
    }

    /// True if the order uses the upper bound of a predicted time, because deadlines must be met. 19 of 20 slices keep
    /// the bound.
    pub(crate) fn is_cautious(self) -> bool {
        self == Self::LeastLaxity
    }

    /// Sort key within a tenant's tasks, or within a whole class: (quanta, time).
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
