//! Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: *Parallel random numbers: as easy as 1, 2, 3*, 2011). Its random words
//! are a function of a key and a counter, so that any device can compute the words of any path.

const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const KEY_STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;
const WORD: u64 = 0xffff_ffff;

/// The keys of all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys([[u64; 2]; ROUNDS]);

impl Keys {
    pub(crate) fn new(key: u64) -> Keys {
        let mut words = [key as u32, (key >> 32) as u32];
        Keys(std::array::from_fn(|_| {
            let now = words.map(u64::from);
            words = [words[0].wrapping_add(KEY_STEPS[0]), words[1].wrapping_add(KEY_STEPS[1])];
            now
        }))
    }

    /// Four random words for a counter of four words.
    #[inline(always)]
    pub(crate) fn words(&self, mut counter: [u64; 4]) -> [u64; 4] {
        for [first, second] in self.0 {
            let products = [MULTIPLIERS[0] * (counter[0] & WORD), MULTIPLIERS[1] * (counter[2] & WORD)];
            counter = [
                products[1] >> 32 ^ counter[1] ^ first,
                products[1],
                products[0] >> 32 ^ counter[3] ^ second,
                products[0],
            ];
        }
        counter.map(|word| word & WORD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the authors' library Random123 (`kat_vectors`).
    #[test]
    fn known_answers() {
        let all = WORD;
        for (counter, key, words) in [
            ([0; 4], 0, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([all; 4], u64::MAX, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                0x299f_31d0_a409_3822,
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(Keys::new(key).words(counter), words);
        }
    }
}
