//! Predictor of a slice's time on lanes of a class, by the slice's size: the mean, and a bound for 19 of 20 slices.
//!
//! ```text
//!   a size that was seen often enough      its own mean and upper quantile, in proportion to cost within a power of two
//!   another size, once two were seen       a line through logarithms of cost and time, by recursive least squares
//!   otherwise                              nothing: the caller uses time in proportion to cost
//! ```
//!
//! A least-squares line needs five sums. They lose a share with each slice, so that old slices count ever less. This is
//! recursive least squares with a forgetting factor; the sums are its information matrix. All numbers are integers;
//! logarithms have 16 bits after the point. If slices repeatedly take longer than predicted, or shorter, that is a
//! drift: the estimate is forgotten, and the caller reports it. The test is a two-sided cumulative sum of the errors'
//! logarithms (Page 1954). The module owns the estimate; it must not know who works or for whom.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::DURATION_NS_MAX;
use crate::log2::{FRACTION_BITS, exp2, log2_16};
use crate::ratio::mul_div;

/// Bits after the point of logarithms in this module.
const POINT: u32 = 16;
const ONE: i64 = 1 << POINT;
/// Share by which a slice moves the mean for its size: 1/8.
const SMOOTHING: i64 = 8;
/// Slices of a size after which the size's own mean is used.
const SAMPLES_MIN: i64 = 4;
/// Part of the spread by which the upper bound rises if a slice exceeds it. Otherwise it falls by a nineteenth of that,
/// so that one slice in twenty exceeds it.
const UPPER_STEP: i64 = 2;
const UPPER_ODDS: i64 = 19;
/// Weight of a sample in the sums. Below: inverse of the share that the sums lose with each sample, 1/32.
const WEIGHT: i64 = 1 << 10;
const FORGETTING: i64 = 32;
/// Least variance of the logarithms of cost for a usable line, in squares of a power of two: 1/16.
const VARIANCE_MIN: i128 = (1 << (2 * POINT)) / 16;
/// Errors within a quarter of a power of two do not count; one error counts for at most two powers above that. A sum
/// above two powers is a drift.
const DRIFT_FREE: i64 = ONE / 4;
const DRIFT_ONE_MAX: i64 = 2 * ONE;
const DRIFT_MAX: i64 = 2 * ONE;
/// Greatest slope of a line: time in proportion to the square of the cost.
const SLOPE_MAX: i128 = 2 * ONE as i128;
/// Number of mean deviations above the mean that bound about 19 of 20 values of a normal distribution.
const UPPER_DEVIATIONS: i64 = 2;

/// Predicted time of a slice, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prediction {
    pub(crate) mean_ns: i64,
    /// Bound that 19 of 20 slices do not exceed.
    pub(crate) upper_ns: i64,
}

/// Estimate for a kind of tasks on a class of lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Predictor {
    /// Slices by size: the binary logarithm of the cost, rounded down.
    sizes: Vec<Size>,
    line: Line,
    /// Sums of the errors above and below the predictions.
    above: i64,
    below: i64,
    samples: i64,
}

/// Slices of about the same cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Size {
    log2: u32,
    samples: i64,
    mean_cost: i64,
    mean_ns: i64,
    /// Mean absolute deviation from the mean.
    spread_ns: i64,
    upper_ns: i64,
}

/// Sums over slices, where x is the logarithm of cost and y that of time. Also the mean absolute deviation from the
/// line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    weight: i64,
    x: i64,
    y: i64,
    xx: i64,
    xy: i64,
    deviation: i64,
}

fn log(value: i64) -> i64 {
    log2_16(value)
}

fn power(log: i64) -> i64 {
    let value = exp2((log.max(0) as u64) << (FRACTION_BITS - POINT));
    value.min(DURATION_NS_MAX as u64) as i64
}

impl Predictor {
    /// Predicted time of a slice of this cost; `None` if too little is known.
    pub(crate) fn predict(&self, cost: i64) -> Option<Prediction> {
        match self.size(cost).filter(|size| size.samples >= SAMPLES_MIN) {
            Some(size) => Some(size.predict(cost)),
            None => self.line.predict(cost),
        }
    }

    fn size(&self, cost: i64) -> Option<&Size> {
        let log2 = cost.max(1).ilog2();
        self.sizes.binary_search_by_key(&log2, |size| size.log2).ok().map(|index| &self.sizes[index])
    }

    /// Learns from the time of a slice. Returns the old estimate if it had drifted and is forgotten, otherwise `None`.
    pub(crate) fn learn(&mut self, cost: i64, service_ns: i64) -> Option<Drifted> {
        let service_ns = service_ns.clamp(1, DURATION_NS_MAX);
        let service_log = log(service_ns);
        let drifted = self.predict(cost).and_then(|predicted| {
            let error = service_log - log(predicted.mean_ns);
            let error = error.clamp(-DRIFT_ONE_MAX, DRIFT_ONE_MAX);
            self.above = (self.above + error - DRIFT_FREE).max(0);
            self.below = (self.below - error - DRIFT_FREE).max(0);
            let is_drift = self.above > DRIFT_MAX || self.below > DRIFT_MAX;
            is_drift.then_some(Drifted { predicted_ns: predicted.mean_ns, slices: self.samples })
        });
        if drifted.is_some() {
            *self = Self::default();
        }
        self.samples += 1;
        let log2 = cost.max(1).ilog2();
        match self.sizes.binary_search_by_key(&log2, |size| size.log2) {
            Ok(index) => self.sizes[index].learn(cost, service_ns),
            Err(index) => self.sizes.insert(index, Size::first(log2, cost, service_ns)),
        }
        self.line.learn(log(cost), service_log);
        drifted
    }

    /// Hash of the estimate.
    pub(crate) fn hash(&self) -> u64 {
        let Self { sizes, line, above, below, samples } = self;
        let sizes = sizes.iter().flat_map(|size| {
            let Size { log2, samples, mean_cost, mean_ns, spread_ns, upper_ns } = *size;
            [i64::from(log2), samples, mean_cost, mean_ns, spread_ns, upper_ns]
        });
        let Line { weight, x, y, xx, xy, deviation } = *line;
        let rest = [weight, x, y, xx, xy, deviation, *above, *below, *samples];
        let mut bytes = Vec::with_capacity(8 * (rest.len() + 6 * self.sizes.len()));
        rest.into_iter().chain(sizes).for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        xxh3_64(&bytes)
    }
}

/// An estimate that was forgotten because it had drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Drifted {
    pub(crate) predicted_ns: i64,
    /// Number of slices that it was learnt from.
    pub(crate) slices: i64,
}

impl Size {
    fn first(log2: u32, cost: i64, service_ns: i64) -> Self {
        let spread_ns = service_ns / SMOOTHING;
        let upper_ns = service_ns + spread_ns;
        Self { log2, samples: 1, mean_cost: cost, mean_ns: service_ns, spread_ns, upper_ns }
    }

    fn learn(&mut self, cost: i64, service_ns: i64) {
        self.samples = (self.samples + 1).min(SAMPLES_MIN);
        // Measured time, scaled to the mean cost of the size.
        let scaled_ns = proportion(service_ns, self.mean_cost, cost);
        let step_ns = (self.spread_ns / UPPER_STEP).max(1);
        self.upper_ns = match scaled_ns > self.upper_ns {
            true => self.upper_ns.saturating_add(step_ns),
            false => self.upper_ns - (step_ns / UPPER_ODDS).max(1).min(self.upper_ns),
        };
        self.spread_ns += ((scaled_ns - self.mean_ns).abs() - self.spread_ns) / SMOOTHING;
        self.mean_ns = (self.mean_ns + (scaled_ns - self.mean_ns) / SMOOTHING).max(1);
        let mean_cost = self.mean_cost + (cost - self.mean_cost) / SMOOTHING;
        // Times are scaled to the new mean cost.
        for time_ns in [&mut self.mean_ns, &mut self.spread_ns, &mut self.upper_ns] {
            *time_ns = proportion(*time_ns, mean_cost, self.mean_cost);
        }
        self.mean_cost = mean_cost;
    }

    fn predict(&self, cost: i64) -> Prediction {
        let mean_ns = proportion(self.mean_ns, cost, self.mean_cost);
        let upper_ns = proportion(self.upper_ns, cost, self.mean_cost).max(mean_ns);
        Prediction { mean_ns, upper_ns }
    }
}

/// `time_ns × cost / of`, at most [`DURATION_NS_MAX`].
fn proportion(time_ns: i64, cost: i64, of: i64) -> i64 {
    mul_div(time_ns, cost, of.max(1)).min(i128::from(DURATION_NS_MAX)) as i64
}

impl Line {
    fn learn(&mut self, x: i64, y: i64) {
        if let Some(at_x) = self.at(x) {
            self.deviation += ((y - at_x).abs() - self.deviation) / SMOOTHING;
        }
        let terms = [
            (&mut self.weight, 1),
            (&mut self.x, x),
            (&mut self.y, y),
            (&mut self.xx, x * x),
            (&mut self.xy, x * y),
        ];
        for (sum, term) in terms {
            *sum += WEIGHT * term - *sum / FORGETTING;
        }
    }

    /// The line's y at x; `None` if the costs differ too little for a line.
    fn at(&self, x: i64) -> Option<i64> {
        let [weight, sum_x, sum_y, xx, xy] = [self.weight, self.x, self.y, self.xx, self.xy].map(i128::from);
        let determinant = weight * xx - sum_x * sum_x;
        if weight == 0 || determinant / (weight * weight) < VARIANCE_MIN {
            return None;
        }
        let slope = ((weight * xy - sum_x * sum_y) * i128::from(ONE) / determinant).clamp(0, SLOPE_MAX);
        let mean_x = sum_x / weight;
        Some((sum_y / weight + (i128::from(x) - mean_x) * slope / i128::from(ONE)) as i64)
    }

    fn predict(&self, cost: i64) -> Option<Prediction> {
        let y = self.at(log(cost))?;
        Some(Prediction { mean_ns: power(y), upper_ns: power(y + UPPER_DEVIATIONS * self.deviation) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{COST_MAX, UNITS_MAX};

    const LARGEST: i64 = UNITS_MAX * COST_MAX;

    fn learnt(slices: impl IntoIterator<Item = (i64, i64)>) -> Predictor {
        let mut predictor = Predictor::default();
        for (cost, service_ns) in slices {
            assert_eq!(predictor.learn(cost, service_ns), None, "nothing drifts");
        }
        predictor
    }

    /// Slices of cost 1,000 whose times are evenly spread from 0.875 to 1.125 ms.
    fn noisy(number: i64) -> (i64, i64) {
        (1_000, 875_000 + xxh3_64(&number.to_le_bytes()).cast_signed().rem_euclid(250_000))
    }

    #[test]
    fn a_size_that_was_seen_has_a_mean_and_an_upper_bound() {
        let mut predictor = learnt((0..400).map(noisy));
        let Prediction { mean_ns, .. } = predictor.predict(1_000).unwrap();
        assert!((950_000..1_050_000).contains(&mean_ns), "{mean_ns}");
        let mut above = 0;
        for number in 400..2_400 {
            let (cost, service_ns) = noisy(number);
            above += i64::from(service_ns > predictor.predict(cost).unwrap().upper_ns);
            predictor.learn(cost, service_ns);
        }
        assert!((60..160).contains(&above), "{above} of 2,000 are above what one in twenty should be");
    }

    #[test]
    fn a_size_that_was_never_seen_is_on_the_line() {
        // A launch takes 20 µs, and a unit of cost 1 µs.
        let sizes = [1_000, 4_000, 16_000].into_iter().cycle().take(60);
        let predictor = learnt(sizes.map(|cost| (cost, 20_000 + 1_000 * cost)));
        let error = |cost: i64| {
            let found = predictor.predict(cost).unwrap().mean_ns;
            (found - 20_000 - 1_000 * cost).abs() * 100 / (20_000 + 1_000 * cost)
        };
        assert!([2_000, 8_100, 64_000].into_iter().all(|cost| error(cost) < 5));
        assert_eq!(learnt([(1_000, 5_000); 9]).predict(4_000), None, "one size is no line");
        assert_eq!(learnt([(1_000, 5_000); 3]).predict(1_000), None, "three slices are too few");
    }

    #[test]
    fn a_line_takes_any_shape_between_flat_and_the_square() {
        let flat = learnt([1, 1_000].into_iter().cycle().take(40).map(|cost| (cost, 7_000)));
        assert!((6_900..7_100).contains(&flat.predict(30).unwrap().mean_ns));
        let square = learnt([100, 1_000].into_iter().cycle().take(40).map(|cost| (cost, cost * cost)));
        assert!((88_000..92_000).contains(&square.predict(300).unwrap().mean_ns));
    }

    #[test]
    fn what_has_drifted_is_forgotten_and_noise_is_not() {
        let mut predictor = learnt((0..2_000).map(noisy));
        let slower = |predictor: &mut Predictor| {
            (0..100).find_map(|number| {
                let (cost, service_ns) = noisy(number);
                predictor.learn(cost, 3 * service_ns).map(|drifted| (number, drifted))
            })
        };
        let (after, drifted) = slower(&mut predictor).expect("three times as long is a drift");
        assert!(after < 4 && (2_000..2_004).contains(&drifted.slices), "{after} {drifted:?}");
        let found = (100..104).map(noisy).map(|(cost, service_ns)| (cost, 3 * service_ns));
        found.for_each(|(cost, service_ns)| assert_eq!(predictor.learn(cost, service_ns), None));
        let Prediction { mean_ns, .. } = predictor.predict(1_000).unwrap();
        assert!((2_700_000..3_300_000).contains(&mean_ns), "{mean_ns}");
    }

    #[test]
    fn nothing_leaves_the_range() {
        let mut predictor = Predictor::default();
        for cost in [1, LARGEST, 1 << 30, LARGEST, 1].into_iter().cycle().take(500) {
            for service_ns in [0, i64::MAX] {
                predictor.learn(cost, service_ns);
            }
            for asked in [1, 1 << 20, LARGEST] {
                let found = predictor.predict(asked);
                let is_good = |found: Prediction| {
                    (0..=DURATION_NS_MAX).contains(&found.mean_ns)
                        && (0..=DURATION_NS_MAX).contains(&found.upper_ns)
                };
                assert!(found.is_none_or(is_good), "{found:?}");
            }
        }
    }
}
