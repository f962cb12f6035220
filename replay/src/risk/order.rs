//! The order in which requests are answered again: no market has to go back, so every tick is read once.
//!
//! A process takes the market for one request after the other. The scheduler may get them in another order, if smaller
//! requests overtake a large one that takes long to prepare. The offsets themselves show which market is older.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use warptape_schemas::journal::AsOf;

/// Returns the order of all markets: each comes after those with an earlier offset of one of its partitions, and
/// otherwise in the given order. There is no such order, for example, if several processes took markets of the same
/// partitions. Then the one with the least sum of offsets goes first, and the rest is ordered after it.
pub(super) fn by_market<'a>(markets: impl Iterator<Item = &'a [AsOf]>) -> Vec<usize> {
    // Among markets of one process with the same offset of one partition, an older one is no further in any other
    // partition.
    let mut partitions: BTreeMap<i32, Vec<(i64, i64, usize)>> = BTreeMap::new();
    let mut sums = Vec::new();
    for (place, market) in markets.enumerate() {
        let sum = market.iter().fold(0_i64, |sum, as_of| sum.saturating_add(as_of.next_offset));
        sums.push((sum, place));
        for AsOf { partition, next_offset } in market {
            partitions.entry(*partition).or_default().push((*next_offset, sum, place));
        }
    }
    let count = sums.len();
    sums.sort_unstable();
    let mut before = vec![0_usize; count];
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); count];
    for of_partition in partitions.values_mut() {
        of_partition.sort_unstable();
        for pair in of_partition.windows(2) {
            let (one, next) = (pair[0].2, pair[1].2);
            behind[one].push(next);
            before[next] += 1;
        }
    }
    let mut free: BinaryHeap<Reverse<usize>> =
        (0..count).filter(|place| before[*place] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    let mut is_placed = vec![false; count];
    let mut oldest = sums.into_iter().map(|(_, place)| place);
    while order.len() < count {
        let place = match free.pop() {
            Some(Reverse(place)) => place,
            None => oldest.find(|place| !is_placed[*place]).expect("some are left"),
        };
        order.push(place);
        is_placed[place] = true;
        for next in &behind[place] {
            before[*next] -= 1;
            if before[*next] == 0 && !is_placed[*next] {
                free.push(Reverse(*next));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(markets: &[&[(i32, i64)]], expected: &[usize]) {
        let as_of = |&(partition, next_offset): &(i32, i64)| AsOf { partition, next_offset };
        let markets: Vec<Vec<AsOf>> =
            markets.iter().map(|market| market.iter().map(as_of).collect()).collect();
        assert_eq!(by_market(markets.iter().map(Vec::as_slice)), expected);
    }

    #[test]
    fn no_market_goes_back() {
        check(&[&[(0, 5)], &[(0, 7)], &[(1, 1)]], &[0, 1, 2]);
        // The preparation of the last one took long.
        check(&[&[(0, 5)], &[(0, 7), (1, 3)], &[(1, 9)], &[(0, 4)]], &[3, 0, 1, 2]);
        check(&[&[(0, 5), (1, 9)], &[(0, 5), (1, 8)]], &[1, 0]);
        check(&[&[], &[(0, 2)], &[(0, 1)], &[]], &[0, 2, 1, 3]);
    }

    #[test]
    fn what_is_behind_markets_without_an_order_has_one() {
        check(&[&[(2, 1)], &[(0, 1), (1, 2)], &[(0, 2), (1, 1)]], &[0, 1, 2]);
        check(&[&[(0, 9)], &[(0, 8)], &[(0, 1), (1, 3)], &[(0, 2), (1, 1)], &[(0, 7)]], &[3, 2, 4, 1, 0]);
    }
}
