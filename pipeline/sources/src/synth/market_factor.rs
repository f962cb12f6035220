//! The part that all returns have in common.

use super::random::{Random, STREAM_MARKET};

/// Distance between the factor's moves: symbols that tick between two of them see the same level.
const GRID_NS: i64 = 50_000_000;
/// Volatility of 40 % a year, per √second. A year of continuous trading has 31,536,000 s.
const VOLATILITY: f64 = 0.4 / YEAR_SECONDS_SQRT;
/// √31,536,000, the square root of the seconds in a year.
pub(super) const YEAR_SECONDS_SQRT: f64 = 5_615.692_298_844;
const JUMPS_PER_SECOND: f64 = 1.0 / 3_600.0;
/// Mean jump: markets jump down more than up.
const JUMP_MEAN: f64 = -0.000_5;
const JUMP_DEVIATION: f64 = 0.003;

/// The market factor, a jump-diffusion. Its level is the sum of returns so far.
pub(super) struct MarketFactor {
    random: Random,
    level: f64,
    /// Last point of the grid that was reached.
    time_ns: i64,
}

impl MarketFactor {
    pub(super) fn new(seed: u64, start_time_ns: i64) -> MarketFactor {
        MarketFactor { random: Random::stream(seed, STREAM_MARKET), level: 0.0, time_ns: start_time_ns }
    }

    /// Moves to the last point of the grid at or before `time_ns`, in one step for any distance.
    pub(super) fn advance(&mut self, time_ns: i64) {
        let steps = (time_ns - self.time_ns) / GRID_NS;
        if steps <= 0 {
            return;
        }
        self.time_ns += steps * GRID_NS;
        let seconds = (steps * GRID_NS) as f64 * 1e-9;
        self.level += VOLATILITY * seconds.sqrt() * self.random.normal();
        self.level += jump(&mut self.random, seconds, JUMPS_PER_SECOND, JUMP_MEAN, JUMP_DEVIATION);
    }

    pub(super) fn level(&self) -> f64 {
        self.level
    }
}

/// Returns the jump within some seconds, usually 0. At most one jump is drawn, which is accurate if jumps are rarer
/// than ticks.
pub(super) fn jump(random: &mut Random, seconds: f64, per_second: f64, mean: f64, deviation: f64) -> f64 {
    if random.uniform() < seconds * per_second { mean + deviation * random.normal() } else { 0.0 }
}
