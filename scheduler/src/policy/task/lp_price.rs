//! LP price: a free lane takes the task whose kind it serves best at the prices of the capacity problem.
//!
//! The capacity problem asks for the greatest multiple of the present mix of work that all lanes together can do, each class of lanes dividing its
//! time among kinds of tasks. Its dual prices say what a unit of cost of each kind is worth: a lane's time is best spent on the kind
//! whose price by what the unit takes there is the greatest. So each class works on what it is comparatively fast at, and helps with the
//! rest when there is none of that. A kind without a price, or one that lanes of the class have never worked on, goes first, so that
//! it becomes known. Of the tasks of a kind and tenant the one that is done soonest goes first, in favour of those that wait
//! ([`super::Order::ShortestFirst`]): a task that takes long is passed by shorter ones for so many times what it takes, and then no more.

use std::cmp::Ordering;

/// Kinds whose worth differs by less than this share are as good as each other: 1/16.
const NEAR: i128 = 16;

/// What a kind of tasks offers to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Price of a unit of cost of the kind; 0 while there is none.
    pub(crate) price: i64,
    /// Time for a unit of cost on lanes of the class, in femtoseconds; 0 while unknown.
    pub(crate) fs_per_cost: i64,
}

impl Offer {
    /// Whether it is worth about as much as another one that is worth as much or more: what is measured differs by a little where lanes are as
    /// fast at both kinds.
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

    fn is_known(self) -> bool {
        self.price > 0 && self.fs_per_cost > 0
    }

    /// Compares what a moment of the lane is worth on both kinds; what is not known is worth most.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_most_is_compared_exactly() {
        let offer = |price, fs_per_cost| Offer { price, fs_per_cost };
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
        assert!(offer(15, 1).is_about(offer(16, 1)) && !offer(14, 1).is_about(offer(16, 1)));
        assert!(!offer(i64::MAX, 1).is_about(offer(0, 1)) && offer(0, 1).is_about(offer(1, 0)));
    }
}
