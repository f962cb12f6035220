//! Random draws addressed by stream and number: equal on every machine, and independent of other draws.

use warptape_scheduler::log2::{FRACTION_BITS, log2};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A stream of draws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    stream: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Self { stream: xxh3_64_with_seed(name.as_bytes(), seed) }
    }

    fn bits(self, number: u64) -> u64 {
        let mut address = [0u8; 16];
        address[..8].copy_from_slice(&self.stream.to_le_bytes());
        address[8..].copy_from_slice(&number.to_le_bytes());
        xxh3_64(&address)
    }

    /// Returns a uniform draw from (0, 1).
    pub(crate) fn uniform(self, number: u64) -> f64 {
        ((self.bits(number) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Returns an exponential draw with mean 1. It uses the scheduler's fixed-point logarithm, so the bits do not
    /// depend on libm.
    pub(crate) fn exponential(self, number: u64) -> f64 {
        let wait = (64 << FRACTION_BITS) - log2(self.bits(number).max(1));
        wait as f64 / (1u64 << FRACTION_BITS) as f64 * std::f64::consts::LN_2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_draws_have_mean_and_variance_1_and_streams_are_independent() {
        const DRAWS: u64 = 100_000;
        let (one, other) = (Draws::new(3, "one"), Draws::new(3, "other"));
        let mean = |of: &dyn Fn(u64) -> f64| (0..DRAWS).map(of).sum::<f64>() / DRAWS as f64;
        let (first, second) = (mean(&|n| one.exponential(n)), mean(&|n| other.exponential(n)));
        let variance = mean(&|n| (one.exponential(n) - 1.0) * (one.exponential(n) - 1.0));
        let together = mean(&|n| (one.exponential(n) - 1.0) * (other.exponential(n) - 1.0));
        let with_next = mean(&|n| (one.exponential(n) - 1.0) * (one.exponential(n + 1) - 1.0));
        // The bound is five standard deviations.
        let bound = 5.0 / (DRAWS as f64).sqrt();
        assert!((first - 1.0).abs() < bound && (second - 1.0).abs() < bound, "means {first}, {second}");
        assert!((variance - 1.0).abs() < 3.0 * bound, "variance {variance}");
        assert!(together.abs() < bound && with_next.abs() < bound, "correlations {together}, {with_next}");
    }
}
