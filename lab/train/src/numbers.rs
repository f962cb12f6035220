//! Pseudorandom numbers from a seed, by SplitMix64. They are the only randomness of this crate.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) state: u64,
}

impl Numbers {
    /// Returns a stream for a purpose and a counter. All streams are independent.
    pub(crate) fn new(seed: u64, purpose: u64, counter: u64) -> Self {
        let mut numbers = Self { state: seed };
        for word in [purpose, counter] {
            numbers.state = numbers.next() ^ word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        numbers
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a uniform number in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.uniform()
    }

    pub(crate) fn below(&mut self, below: usize) -> usize {
        ((u128::from(self.next()) * below as u128) >> 64) as usize
    }
}
