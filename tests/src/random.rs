//! SplitMix64 (Steele, Lea, Flood 2014): a seed gives the same numbers on every machine.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number in `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = (high - low) as u64 + 1;
        low + (self.bits() % span) as i64
    }

    /// Returns an index below `count`.
    pub fn index(&mut self, count: usize) -> usize {
        (self.bits() % count as u64) as usize
    }

    /// Returns true once in `times` calls, on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.bits().is_multiple_of(times)
    }
}

/// Returns `count` seeds for a test. Half of them are always the same. The others are drawn from the rotating number
/// `WARPTAPE_TEST_ROTATION`, which `tests/run` sets to the day of the commit. The number is printed, so that a failure
/// can be repeated.
pub fn rotating(count: u64) -> impl Iterator<Item = u64> {
    let rotation: u64 = std::env::var("WARPTAPE_TEST_ROTATION").map_or(0, |text| {
        text.parse().unwrap_or_else(|_| panic!("WARPTAPE_TEST_ROTATION is a number, not {text:?}"))
    });
    let first = rotation * 1_000_000;
    println!("seeds 0 to {} and, of WARPTAPE_TEST_ROTATION={rotation}, {first} onwards", count / 2);
    (0..count / 2).chain(first.max(count / 2)..).take(count as usize)
}
