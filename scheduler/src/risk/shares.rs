//! Exact shares: whole units in proportion to scores, which add up to all units.

use warptape_events::journal::{LaneId, Share};

use crate::config::{LANES_MAX, UNITS_MAX, WEIGHT_MAX};

const _: () = assert!(UNITS_MAX.checked_mul(WEIGHT_MAX as i64).is_some(), "quotas are computed in i64");
const _: () = assert!((WEIGHT_MAX as i64).checked_mul(LANES_MAX as i64).is_some());

/// Consecutive shares of the units from `first` on, by lane; lanes without units are left out. Scores are by ascending
/// lane, and at least one is positive.
///
/// The method is the largest remainder (Hamilton's method). Each lane gets its quota rounded down. The remaining units
/// go one by one to the lanes that lost most by rounding, the lower lane first among equals.
pub(crate) fn shares(first: i64, units: i64, scores: &[(LaneId, i64)]) -> Vec<Share> {
    let total: i64 = scores.iter().map(|(_, score)| score).sum();
    let mut counts: Vec<i64> = scores.iter().map(|(_, score)| units * score / total).collect();
    let left = units - counts.iter().sum::<i64>();
    let mut by_loss: Vec<usize> = (0..scores.len()).collect();
    // The sort is stable: lanes with equal losses keep their order.
    by_loss.sort_by_key(|&index| -(units * scores[index].1 % total));
    by_loss[..left as usize].iter().for_each(|&index| counts[index] += 1);

    let mut shares = Vec::with_capacity(scores.len());
    let mut from = first;
    for (&(lane, score), count) in scores.iter().zip(counts) {
        if count > 0 {
            shares.push(Share { lane, from, to: from + count, score });
            from += count;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(units: i64, scores: &[i64], expected: &[(LaneId, i64)]) {
        let scores: Vec<_> = (0..).zip(scores.iter().copied()).collect();
        let shares = shares(7, units, &scores);
        let found: Vec<_> = shares.iter().map(|share| (share.lane, share.to - share.from)).collect();
        assert_eq!(found, expected);
        assert_eq!((shares[0].from, shares.last().unwrap().to), (7, 7 + units));
        assert!(shares.windows(2).all(|pair| pair[0].to == pair[1].from), "shares are consecutive");
    }

    #[test]
    fn shares_add_up() {
        check(10_000, &[95, 80], &[(0, 5_429), (1, 4_571)]);
        check(10, &[1, 1, 1], &[(0, 4), (1, 3), (2, 3)]);
        check(11, &[1, 1, 1], &[(0, 4), (1, 4), (2, 3)]);
        check(2, &[1, 0, 1, 1], &[(0, 1), (2, 1)]);
        check(1, &[1, 3], &[(1, 1)]);
        check(UNITS_MAX, &[1, 1_000_000], &[(0, 68_719), (1, UNITS_MAX - 68_719)]);
    }
}
