//! The binary logarithm in fixed point.

/// Bits after the binary point.
pub const FRACTION_BITS: u32 = 32;

/// `⌊log₂(value) · 2³²⌋` of a positive value, up to an error of a few units below; it never falls as `value` rises.
///
/// # Panics
/// If the value is 0.
///
/// The exponent is the position of the highest bit. The fraction comes bit by bit: squaring the mantissa doubles its
/// logarithm, and the bit is whether the square is 2 or more (Knuth, TAOCP 1.2.2, exercise 25 and its kin).
pub fn log2(value: u64) -> u64 {
    assert!(value > 0, "the logarithm of zero does not exist; callers draw at least 1");
    let exponent = 63 - u64::from(value.leading_zeros());
    // The mantissa in [1, 2), with 63 bits after the point.
    let mut mantissa = value << value.leading_zeros();
    let mut result = exponent;
    for _ in 0..FRACTION_BITS {
        let square = u128::from(mantissa) * u128::from(mantissa);
        let bit = (square >> 127) as u64;
        mantissa = (square >> (63 + bit)) as u64;
        result = (result << 1) | bit;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: u64, whole: u64, fraction: u64) {
        let expected = (whole << FRACTION_BITS) + fraction;
        let found = log2(value);
        assert!(
            found <= expected && expected - found <= 2,
            "log2({value}): {found:#x}, expected {expected:#x}"
        );
    }

    #[test]
    fn known_logarithms() {
        for exponent in 0..64 {
            check(1 << exponent, exponent, 0);
        }
        // Fractions of log2(3), log2(10) and log2(1_000_003), to 32 bits.
        check(3, 1, 0x95c0_1a39);
        check(10, 3, 0x5269_e12f);
        check(u64::MAX, 63, 0xffff_ffff);
    }

    #[test]
    fn it_never_falls() {
        let mut last = 0;
        for step in 0..200_000u64 {
            let value = 1 + step * step * step * 2_305;
            let now = log2(value);
            assert!(now >= last, "log2({value})");
            last = now;
        }
    }
}
