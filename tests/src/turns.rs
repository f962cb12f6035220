//! Benchmarks of several sides on a machine that others share, and beside a broker that gets faster while it runs: all
//! take turns, and medians are compared.

use std::fmt;
use std::time::Duration;

/// The times of one side.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Half of them are less.
    pub median: Duration,
    /// A quarter of them are less, and a quarter more.
    pub quartiles: [Duration; 2],
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let [low, median, high] = [1, 2, 3].map(|quarter| times[times.len() * quarter / 4]);
        Self { median, quartiles: [low, high] }
    }

    /// How many times as fast as another side, both with the same work.
    pub fn speed_of(&self, other: &Self) -> f64 {
        other.median.as_secs_f64() / self.median.as_secs_f64()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2?} {:.2?}", self.median, self.quartiles)
    }
}

/// Has the sides take `times` turns each, at least one, and one before that is not counted.
pub fn in_turn<const SIDES: usize>(
    times: usize,
    mut sides: [&mut dyn FnMut() -> Duration; SIDES],
) -> [Times; SIDES] {
    let mut taken = [const { Vec::new() }; SIDES];
    for turn in 0..=times {
        for (side, taken) in sides.iter_mut().zip(&mut taken) {
            let time = side();
            if turn > 0 {
                taken.push(time);
            }
        }
    }
    taken.map(Times::of)
}
