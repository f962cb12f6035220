//! The binary logarithm in the fixed point of activations: 10 bits after the point, computed in as many steps. The
//! scheduler, which depends on this crate, has its own with 32 bits.

use crate::layer::ONE;

/// Bits after the point.
const FRACTION_BITS: u32 = ONE.trailing_zeros();

/// `⌊log₂(value) · ONE⌋` of a positive value, and 0 of any other; it never falls as `value` rises.
///
/// The exponent is the position of the highest bit, and the fraction comes bit by bit: squaring the mantissa doubles
/// its logarithm.
pub(crate) fn log2(value: i64) -> i32 {
    let value = value.max(1) as u64;
    let mut result = 63 - value.leading_zeros() as i32;
    // The mantissa in [1, 2), with 31 bits after the point, so that its square has 64 at most.
    let mut mantissa = (value << value.leading_zeros()) >> 32;
    for _ in 0..FRACTION_BITS {
        let square = mantissa * mantissa;
        let bit = square >> 63;
        mantissa = square >> (31 + bit);
        result = (result << 1) | bit as i32;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_logarithms() {
        for exponent in 0..63 {
            assert_eq!(log2(1 << exponent), exponent * ONE);
        }
        // 1.58496, 3.32193 and 19.93157 times 1,024.
        assert_eq!([log2(3), log2(10), log2(1_000_000)], [1_623, 3_401, 20_409]);
        assert_eq!([log2(0), log2(i64::MIN), log2(i64::MAX)], [0, 0, 63 * ONE - 1]);
        assert!((1..100_000).map(|step: i64| log2(step * step * step * 9_001)).is_sorted());
    }
}
