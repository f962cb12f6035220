//! Service times by size: mean times per size, interpolated linearly, and the measured residuals.
//!
//! A drawn time is the mean for its size times the residual of a sample of similar size. An address selects the sample.
//! The same address and seed give the same time, regardless of other draws.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Least number of samples from which a residual is drawn, if so many exist.
const RESIDUALS_MIN: usize = 16;
/// Number of bins; a size's bin is its binary logarithm.
const BINS: usize = 64;
/// Longest time drawn, in nanoseconds: a day.
const TIME_NS_MAX: i64 = 86_400_000_000_000;

/// One measured piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Rows of a batch, or cost of a slice; at least 1.
    pub(crate) size: i64,
    /// Time from when the lane could begin until its end was known, in nanoseconds.
    pub(crate) occupied_ns: i64,
    /// Service time that the lane reported, in nanoseconds.
    pub(crate) service_ns: i64,
}

/// The two times of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) occupied_ns: i64,
    pub(crate) service_ns: i64,
}

/// Times by size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    /// Samples, grouped by the bin of their size; within a bin in the order of the journal.
    samples: Vec<Sample>,
    /// Index of the first sample of each bin; the last element is the number of samples.
    begins: Vec<usize>,
    /// Mean size and times of each bin with samples.
    means: Vec<Sample>,
}

impl Curve {
    /// Returns the curve of the samples; `None` if there are none.
    pub(crate) fn fit(mut samples: Vec<Sample>) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        for sample in &mut samples {
            sample.size = sample.size.max(1);
            sample.occupied_ns = sample.occupied_ns.clamp(0, TIME_NS_MAX);
            sample.service_ns = sample.service_ns.clamp(0, TIME_NS_MAX);
        }
        // The sort is stable: samples of a bin keep the journal's order.
        samples.sort_by_key(|sample| bin(sample.size));
        let begins = (0..=BINS).map(|one| samples.partition_point(|sample| bin(sample.size) < one)).collect();
        let means = samples.chunk_by(|a, b| bin(a.size) == bin(b.size)).map(mean).collect();
        Some(Self { samples, begins, means })
    }

    /// Draws the times for work of a size. `address` identifies the work.
    pub(crate) fn draw(&self, size: i64, seed: u64, address: &[u8]) -> Times {
        let residuals = self.residuals(size);
        let chosen = u128::from(xxh3_64_with_seed(address, seed)) * residuals.len() as u128;
        let sample = residuals[(chosen >> 64) as usize];
        let (mean, of_sample) = (self.predict(size), self.predict(sample.size));
        let scaled = |measured_ns: i64, mean_ns: i64, of_sample_ns: i64| {
            let time_ns = i128::from(measured_ns) * i128::from(mean_ns) / i128::from(of_sample_ns.max(1));
            time_ns.clamp(0, i128::from(TIME_NS_MAX)) as i64
        };
        Times {
            occupied_ns: scaled(sample.occupied_ns, mean.occupied_ns, of_sample.occupied_ns),
            service_ns: scaled(sample.service_ns, mean.service_ns, of_sample.service_ns),
        }
    }

    /// Returns samples of similar size: the samples of its bin, extended by neighbouring bins while there are too few.
    fn residuals(&self, size: i64) -> &[Sample] {
        let (mut low, mut high) = (bin(size), bin(size) + 1);
        while self.begins[high] - self.begins[low] < RESIDUALS_MIN && (low > 0 || high < BINS) {
            low = low.saturating_sub(1);
            high = (high + 1).min(BINS);
        }
        &self.samples[self.begins[low]..self.begins[high]]
    }

    /// Returns the mean times for a size, interpolated between the neighbouring means. A size below the smallest takes
    /// the smallest one's time. A size above the largest is scaled up from it, as in the scheduler's own predictions.
    fn predict(&self, size: i64) -> Times {
        let above = self.means.partition_point(|mean| mean.size <= size);
        let times = |mean: &Sample| Times { occupied_ns: mean.occupied_ns, service_ns: mean.service_ns };
        let (Some(below), above) =
            (above.checked_sub(1).map(|index| &self.means[index]), self.means.get(above))
        else {
            return times(&self.means[0]);
        };
        let Some(above) = above else {
            let larger = |ns: i64| (i128::from(ns) * i128::from(size) / i128::from(below.size)) as i64;
            return Times { occupied_ns: larger(below.occupied_ns), service_ns: larger(below.service_ns) };
        };
        let between = |low: i64, high: i64| {
            let part = i128::from(high - low) * i128::from(size - below.size);
            low + (part / i128::from(above.size - below.size)) as i64
        };
        Times {
            occupied_ns: between(below.occupied_ns, above.occupied_ns),
            service_ns: between(below.service_ns, above.service_ns),
        }
    }
}

fn bin(size: i64) -> usize {
    size.max(1).ilog2() as usize
}

fn mean(samples: &[Sample]) -> Sample {
    let of = |field: fn(&Sample) -> i64| {
        let sum: i128 = samples.iter().map(|sample| i128::from(field(sample))).sum();
        (sum / samples.len() as i128) as i64
    };
    Sample {
        size: of(|sample| sample.size),
        occupied_ns: of(|sample| sample.occupied_ns),
        service_ns: of(|sample| sample.service_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(samples: &[(i64, i64)]) -> Curve {
        let sample = |&(size, ns): &(i64, i64)| Sample { size, occupied_ns: ns, service_ns: ns / 2 };
        Curve::fit(samples.iter().map(sample).collect()).unwrap()
    }

    #[test]
    fn what_is_in_proportion_to_size_is_drawn_so_at_every_size() {
        let curve = curve(&(1..200).map(|size| (size, 1_000 + 10 * size)).collect::<Vec<_>>());
        for size in [1i64, 3, 50, 99, 127, 150] {
            let (found, expected) = (curve.draw(size, 7, b"x").occupied_ns, 1_000 + 10 * size);
            assert!((found - expected).abs() <= expected / 10, "size {size}: {found}, expected {expected}");
        }
        // Beyond the largest bin, the time is proportional to that bin's mean: 2,630 ns for a size of 163.
        let (found, expected) = (curve.draw(2_000, 7, b"x").occupied_ns, 2_000 * 2_630 / 163);
        assert!((found - expected).abs() <= expected / 10, "{found}, expected {expected}");
    }

    #[test]
    fn draws_have_the_distribution_that_was_measured_and_depend_on_address_and_seed_alone() {
        let samples: Vec<(i64, i64)> =
            (0..100).map(|n| (64, if n % 10 == 0 { 5_000 } else { 1_000 })).collect();
        let curve = curve(&samples);
        let draws = |seed: u64| -> Vec<i64> {
            (0..1_000u64).map(|n| curve.draw(64, seed, &n.to_le_bytes()).occupied_ns).collect()
        };
        let slow = draws(3).iter().filter(|ns| **ns > 3_000).count();
        assert!((60..140).contains(&slow), "{slow} of 1,000 are slow, a tenth of the samples were");
        assert_eq!(draws(3), draws(3));
        assert_ne!(draws(3), draws(4));
    }

    #[test]
    fn both_times_are_of_the_same_sample() {
        let curve = curve(&[(8, 100), (8, 900)]);
        for n in 0..20u64 {
            let Times { occupied_ns, service_ns } = curve.draw(8, 1, &n.to_le_bytes());
            assert!((occupied_ns - 2 * service_ns).abs() <= 2, "{occupied_ns}, {service_ns}");
        }
    }

    #[test]
    fn no_size_and_no_sample_leaves_the_range() {
        let curve = curve(&[(1, i64::MAX), (1 << 40, i64::MAX)]);
        for size in [0, 1, i64::MAX] {
            assert!((0..=TIME_NS_MAX).contains(&curve.draw(size, 1, b"").occupied_ns));
        }
        assert!(Curve::fit(Vec::new()).is_none());
    }
}
