//! Random draws for tests, from a seed: SplitMix64.

pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `bound`, which must be positive.
    pub fn below(&mut self, bound: i64) -> i64 {
        (self.next() % bound as u64) as i64
    }

    pub fn range(&mut self, min: i64, max: i64) -> i64 {
        min + self.below(max - min + 1)
    }

    pub fn percent(&mut self, chance: i64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        if choices.is_empty() { None } else { Some(choices[self.below(choices.len() as i64) as usize]) }
    }
}
