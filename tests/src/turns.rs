//! Benchmarks of several sides on a shared machine, with a broker that gets faster while it runs. All sides take turns,
//! and their medians are compared.

use std::fmt;
use std::time::Duration;

/// The times of one side.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Median of the times.
    pub median: Duration,
    /// Lower and upper quartile of the times.
    pub quartiles: [Duration; 2],
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let [low, median, high] = [1, 2, 3].map(|quarter| times[times.len() * quarter / 4]);
        Self { median, quartiles: [low, high] }
    }

    /// Returns the factor by which this side is faster than another side with the same work.
    pub fn speed_of(&self, other: &Self) -> f64 {
        other.median.as_secs_f64() / self.median.as_secs_f64()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2?} {:.2?}", self.median, self.quartiles)
    }
}

/// Number of turns that do not count, because a broker compiles most of its code in them.
const WARM_UP: usize = 5;

/// Runs `times` turns of each side, at least one. The order changes between turns, because earlier turns affect later
/// ones through caches, the page cache and the processor's clock.
pub fn in_turn<const SIDES: usize>(
    times: usize,
    sides: [&mut dyn FnMut() -> Duration; SIDES],
) -> [Times; SIDES] {
    let mut taken = [const { Vec::new() }; SIDES];
    for turn in 0..WARM_UP + times {
        for side in order::<SIDES>(turn) {
            let time = sides[side]();
            if turn >= WARM_UP {
                taken[side].push(time);
            }
        }
    }
    taken.map(Times::of)
}

/// Returns the order of the sides in a turn. Each side comes first in turn, and the others follow in ascending order.
/// In the next round, they follow in descending order.
fn order<const SIDES: usize>(turn: usize) -> [usize; SIDES] {
    let is_forward = (turn / SIDES).is_multiple_of(2);
    std::array::from_fn(|place| (turn + if is_forward { place } else { SIDES - place }) % SIDES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn three_sides_come_in_all_their_orders() {
        let orders: BTreeSet<[usize; 3]> = (0..6).map(order).collect();
        assert_eq!(orders.len(), 6);
        assert!(orders.iter().all(|order| BTreeSet::from(*order) == BTreeSet::from([0, 1, 2])));
    }

    #[test]
    fn warm_up_is_not_counted() {
        let mut turns = 0;
        let mut side = || {
            turns += 1;
            Duration::from_secs(turns)
        };
        let [times] = in_turn(3, [&mut side]);
        assert_eq!(times.median, Duration::from_secs(WARM_UP as u64 + 2));
    }
}
