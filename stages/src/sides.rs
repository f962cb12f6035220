//! The sides of a quote, and which of them have orders.

use warptape_kernels::ABSENT;

/// A quote's sides, bid first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sides {
    /// Price of each side; 0 if the side has no orders.
    pub prices: [i64; 2],
    /// Size of each side; 0 if the quote has no sizes, [`ABSENT`] if the side has no orders.
    pub sizes: [i64; 2],
    /// True if both sides have orders.
    pub are_both_there: bool,
}

impl Sides {
    /// Reads prices and sizes of a tick. A side of size 0 has no orders, whatever its price. If both sizes are 0, the
    /// quote has none, and a side without a price has no orders.
    #[inline(always)]
    pub fn new(prices: [i64; 2], sizes: [i64; 2]) -> Self {
        let are_sizes_told = sizes[0] | sizes[1] != 0;
        let is_there = |side: usize| if are_sizes_told { sizes[side] != 0 } else { prices[side] != 0 };
        let of_side = |side: usize| if is_there(side) { (prices[side], sizes[side]) } else { (0, ABSENT) };
        let [(bid, bid_size), (ask, ask_size)] = [of_side(0), of_side(1)];
        Self { prices: [bid, ask], sizes: [bid_size, ask_size], are_both_there: is_there(0) && is_there(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(prices: [i64; 2], sizes: [i64; 2], expected: [(i64, i64); 2]) {
        let Sides { prices, sizes, are_both_there } = Sides::new(prices, sizes);
        assert_eq!([(prices[0], sizes[0]), (prices[1], sizes[1])], expected);
        assert_eq!(are_both_there, sizes[0] != ABSENT && sizes[1] != ABSENT);
    }

    #[test]
    fn a_side_is_absent_by_its_size() {
        check([0, 5], [3, 4], [(0, 3), (5, 4)]);
        check([7, 5], [0, 4], [(0, ABSENT), (5, 4)]);
        check([-7, 5], [2, 0], [(-7, 2), (0, ABSENT)]);
        // Quotes without sizes.
        check([7, 5], [0, 0], [(7, 0), (5, 0)]);
        check([0, 5], [0, 0], [(0, ABSENT), (5, 0)]);
        check([0, 0], [0, 0], [(0, ABSENT), (0, ABSENT)]);
    }
}
