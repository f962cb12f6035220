//! LP price: a free lane takes the task whose kind it serves best at the prices of the capacity problem.
//!
//! The capacity problem asks for the greatest multiple of the present mix of work that all lanes together can do. Each
//! class of lanes divides its time among kinds of tasks. The dual prices are the worth of a unit of cost of each kind.
//! A lane's time is best spent on the kind with the greatest ratio of price to the lane's time for a unit. So each
//! class works on the kinds at which it is comparatively fast, and on other kinds when there are no such tasks. A kind
//! without a price, or one that lanes of the class have never worked on, goes first, so that it becomes known.
//!
//! Among tasks of a kind and tenant, the shortest rest goes first, with a bonus for waiting
//! ([`super::Order::ShortestFirst`]). Shorter tasks may pass a task for a multiple of its time, but not beyond its
//! deadline. The end of that time is the task's turn.
//!
//! The kinds that are worth about as much as the best one determine the next tenant. The lane then takes that tenant's
//! kind with the greatest worth divided by the fourth root of the time until its first task's turn. So short tasks
//! count a little more. With little work, the mean time is near that of shortest-task-first; with much work, worth
//! decides. The exponent of 1/4 was found with schedules that know all sizes (docs/scheduling-results.md).

use std::cmp::Ordering;

/// Share by which the worths of two kinds may differ and still count as equal: 1/16.
const NEAR: i128 = 16;
/// Greatest time that turns distinguish: 52 days.
const TURN_NS_MAX: i64 = 1 << 52;

/// A kind of tasks as an offer to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Price of a unit of cost of the kind; 0 if there is none.
    pub(crate) price: i64,
    /// Time for a unit of cost on lanes of the class, in femtoseconds; 0 while unknown.
    pub(crate) fs_per_cost: i64,
    /// Time from now until the turn of the kind's first task: no other task passes it after that. In nanoseconds.
    pub(crate) turn_ns: i64,
}

impl Offer {
    /// True if the worths of two kinds are about equal, given that `best` is worth no less. Measurements differ a
    /// little even if lanes are equally fast at both kinds.
    pub(crate) fn is_about(self, best: Self) -> bool {
        match (self.is_known(), best.is_known()) {
            (true, true) => {
                let own = i128::from(self.price) * i128::from(best.fs_per_cost);
                let others = i128::from(best.price) * i128::from(self.fs_per_cost);
                own >= others - others / NEAR
            }
            (own, best) => own == best,
        }
    }

    /// Compares the worths of the lane's time on both kinds, each divided by the fourth root of the time until the
    /// first task's turn. An unknown kind is worth most.
    pub(crate) fn urgency(self, other: Self) -> Ordering {
        if !self.is_known() || !other.is_known() {
            return self.worth(other);
        }
        let by_time = |one: Self, other: Self| {
            let worth = i128::from(one.price) * i128::from(other.fs_per_cost);
            worth.saturating_mul(i128::from(fourth_root(other.turn_ns)))
        };
        by_time(self, other).cmp(&by_time(other, self))
    }

    /// True if it has a price and a rate.
    pub(crate) fn is_known(self) -> bool {
        self.price > 0 && self.fs_per_cost > 0
    }

    /// Compares the worths of the lane's time on both kinds; an unknown kind is worth most.
    pub(crate) fn worth(self, other: Self) -> Ordering {
        match (self.is_known(), other.is_known()) {
            (true, true) => {
                let (own, others) = (
                    i128::from(self.price) * i128::from(other.fs_per_cost),
                    i128::from(other.price) * i128::from(self.fs_per_cost),
                );
                own.cmp(&others)
            }
            (own, others) => others.cmp(&own),
        }
    }
}

/// Fourth root of a time in nanoseconds, times a constant that gives it nine digits for a second.
fn fourth_root(time_ns: i64) -> u64 {
    let square_root = ((time_ns.clamp(1, TURN_NS_MAX) as u64) << 11).isqrt();
    (square_root << 31).isqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_most_is_compared_exactly() {
        let offer = |price, fs_per_cost| Offer { price, fs_per_cost, turn_ns: 1 };
        let check = |one, other, expected: Ordering| {
            assert_eq!((one as Offer).worth(other), expected, "{one:?} {other:?}");
            assert_eq!(other.worth(one), expected.reverse());
        };
        check(offer(3, 2), offer(1, 1), Ordering::Greater);
        check(offer(2, 2), offer(1, 1), Ordering::Equal);
        check(offer(i64::MAX, i64::MAX), offer(i64::MAX - 1, i64::MAX - 1), Ordering::Equal);
        check(offer(i64::MAX, 1), offer(1, i64::MAX), Ordering::Greater);
        check(offer(0, 5), offer(i64::MAX, 1), Ordering::Greater);
        check(offer(5, 0), offer(0, 0), Ordering::Equal);
        let turn = |price, turn_ns| Offer { turn_ns, ..offer(price, 1) };
        assert_eq!(turn(10, 1_000_000).urgency(turn(5, 16_000_000)), Ordering::Greater);
        assert_eq!(turn(5, 1_000_000).urgency(turn(10, 15_000_000)), Ordering::Less);
        assert_eq!(turn(5, 1_000_000).urgency(turn(10, 17_000_000)), Ordering::Greater);
        // A task whose turn has come goes before one of a hundred times the worth; an unknown kind goes first.
        assert_eq!(turn(1, -5).urgency(turn(100, 1_000_000_000)), Ordering::Greater);
        assert_eq!(turn(1, i64::MIN).urgency(turn(1, 1)), Ordering::Equal);
        assert_eq!(turn(i64::MAX, i64::MAX).urgency(turn(0, 1)), Ordering::Less);
        assert!(offer(15, 1).is_about(offer(16, 1)) && !offer(14, 1).is_about(offer(16, 1)));
        assert!(!offer(i64::MAX, 1).is_about(offer(0, 1)) && offer(0, 1).is_about(offer(1, 0)));
    }
}
