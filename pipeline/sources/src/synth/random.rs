//! Random numbers of the synthetic market: SplitMix64, whose n-th number is a mix of `seed + n · γ`.
//!
//! Source: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; constants
//! of S. Vigna's reference `splitmix64.c`.

use super::arithmetic::normal_quantile;

/// Stream of arrivals, symbols and quotes.
pub(super) const STREAM_TICKS: u64 = 1;
/// Stream of the market factor.
pub(super) const STREAM_MARKET: u64 = 2;
/// Stream of delays.
pub(super) const STREAM_DELAYS: u64 = 3;
/// Stream of the first symbol's properties; the other symbols follow.
pub(super) const STREAM_INSTRUMENTS: u64 = 1 << 32;

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
/// 2⁻⁵³, the unit of uniform numbers.
const UNIFORM_UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

/// One stream of numbers.
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// Creates the generator as published.
    pub(super) fn seeded(seed: u64) -> Random {
        Random { state: seed }
    }

    /// Creates one of the streams of a seed, far from the others.
    pub(super) fn stream(seed: u64, stream: u64) -> Random {
        let mut streams = Random::seeded(seed ^ stream.wrapping_mul(GAMMA).rotate_left(31));
        Random::seeded(streams.next_u64())
    }

    pub(super) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws uniformly from (0, 1), never 0 or 1: one of 2⁵² midpoints.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 * 2.0 + 1.0) * UNIFORM_UNIT
    }

    /// Draws uniformly from `low..high`.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Draws uniformly from `0..count`. The bias of 2⁻⁶⁴ · count does not matter here.
    pub(super) fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(count)) >> 64) as u64
    }

    /// Draws from the normal distribution with mean 0 and variance 1.
    pub(super) fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }

    /// Returns the bound below which `next_u64` falls with this probability.
    pub(super) fn below_percent(percent: f64) -> u64 {
        // 2⁶⁴ saturates to the greatest number, which one draw in 2⁶⁴ is not below.
        (percent / 100.0 * 18_446_744_073_709_551_616.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the output of the reference implementation for these seeds.
    #[test]
    fn published_vectors() {
        let numbers = |seed| {
            let mut random = Random::seeded(seed);
            [(); 5].map(|()| random.next_u64())
        };
        assert_eq!(
            numbers(1_234_567),
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
        assert_eq!(
            numbers(0),
            [
                0xe220_a839_7b1d_cdaf,
                0x6e78_9e6a_a1b9_65f4,
                0x06c4_5d18_8009_454f,
                0xf88b_b8a8_724c_81ec,
                0x1b39_896a_51a8_749b
            ]
        );
    }

    #[test]
    fn draws_have_their_moments() {
        let mut random = Random::stream(7, STREAM_TICKS);
        let count = 200_000;
        let (mut sum, mut squares, mut fourths, mut uniforms, mut small) = (0.0, 0.0, 0.0, 0.0, 0);
        for _ in 0..count {
            let normal = random.normal();
            sum += normal;
            squares += normal * normal;
            fourths += normal * normal * normal * normal;
            let uniform = random.uniform();
            assert!(0.0 < uniform && uniform < 1.0);
            uniforms += uniform;
            small += u64::from(random.below(10) < 3);
        }
        let mean = |sum: f64| sum / f64::from(count);
        assert!(mean(sum).abs() < 0.01, "mean {}", mean(sum));
        assert!((mean(squares) - 1.0).abs() < 0.02, "variance {}", mean(squares));
        assert!((mean(fourths) - 3.0).abs() < 0.15, "fourth moment {}", mean(fourths));
        assert!((mean(uniforms) - 0.5).abs() < 0.005);
        assert!((mean(small as f64) - 0.3).abs() < 0.005);
    }

    #[test]
    fn streams_differ() {
        let first = |seed, stream| Random::stream(seed, stream).next_u64();
        let mut seen: Vec<u64> =
            (0..1_000).flat_map(|seed| (0..8).map(move |stream| first(seed, stream))).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 8_000);
    }
}
