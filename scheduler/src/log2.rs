//! The binary logarithm in fixed point.

/// Bits after the binary point.
pub const FRACTION_BITS: u32 = 32;

/// `⌊log₂(value) · 2³²⌋` of a positive value, or a few units less; it is monotonic.
///
/// # Panics
/// The value is 0.
///
/// The exponent is the position of the highest bit. The fraction is computed bit by bit: squaring the mantissa doubles
/// its logarithm, and the bit is 1 if the square is 2 or more. See Knuth, TAOCP 1.2.2, exercise 25.
pub fn log2(value: u64) -> u64 {
    log2_to(value, FRACTION_BITS)
}

/// The binary logarithm with `fraction_bits` bits after the point.
fn log2_to(value: u64, fraction_bits: u32) -> u64 {
    assert!(value > 0, "the logarithm of zero does not exist; callers draw at least 1");
    let exponent = 63 - u64::from(value.leading_zeros());
    // The mantissa in [1, 2), with 63 bits after the point.
    let mut mantissa = value << value.leading_zeros();
    let mut result = exponent;
    for _ in 0..fraction_bits {
        let square = u128::from(mantissa) * u128::from(mantissa);
        let bit = (square >> 127) as u64;
        mantissa = (square >> (63 + bit)) as u64;
        result = (result << 1) | bit;
    }
    result
}

/// The binary logarithm with 16 bits after the point; values below 1 count as 1.
pub(crate) fn log2_16(value: i64) -> i64 {
    log2_to(value.max(1) as u64, 16) as i64
}

/// Converts a logarithm with 16 bits after the point to thousandths, rounded towards 0.
pub(crate) fn milli(log2: i64) -> i64 {
    log2 * 1_000 / (1 << 16)
}

/// `2^(log / 2³²)`, rounded down, with a relative error of up to 2⁻³⁰; `u64::MAX` if the result does not fit.
///
/// The fraction is a product with a factor for each of its bits: 2 to the power of that bit's value.
pub fn exp2(log: u64) -> u64 {
    let exponent = log >> FRACTION_BITS;
    if exponent >= 64 {
        return u64::MAX;
    }
    // The mantissa in [1, 2), with 63 bits after the point.
    let mut mantissa = 1u64 << 63;
    for (bit, root) in ROOTS.iter().enumerate() {
        if log >> (FRACTION_BITS as usize - 1 - bit) & 1 == 1 {
            mantissa = ((u128::from(mantissa) * u128::from(*root)) >> 63) as u64;
        }
    }
    mantissa >> (63 - exponent)
}

/// 2 to the powers 1/2, 1/4, 1/8 and so on, with 63 bits after the point. Each is the square root of the previous one.
const ROOTS: [u64; FRACTION_BITS as usize] = {
    let mut roots = [0; FRACTION_BITS as usize];
    let mut last = 1u128 << 64;
    let mut bit = 0;
    while bit < roots.len() {
        last = (last << 63).isqrt();
        roots[bit] = last as u64;
        bit += 1;
    }
    roots
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_undo_logarithms() {
        assert_eq!((exp2(0), exp2(10 << FRACTION_BITS), exp2(63 << FRACTION_BITS)), (1, 1_024, 1 << 63));
        assert_eq!((exp2(64 << FRACTION_BITS), exp2(u64::MAX)), (u64::MAX, u64::MAX));
        // The square root of 2^41, and 10^12 by its logarithm.
        assert_eq!(exp2(41 << (FRACTION_BITS - 1)), 1_482_910);
        for value in [3, 10, 1_000_003, 1_000_000_000_000, u64::MAX / 3] {
            let found = exp2(log2(value));
            assert!(value.abs_diff(found) <= 1 + value / (1 << 29), "{value}: {found}");
        }
    }

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
        // Fractions of log2(3), log2(10) and log2(2^64 − 1), to 32 bits.
        check(3, 1, 0x95c0_1a39);
        check(10, 3, 0x5269_e12f);
        check(u64::MAX, 63, 0xffff_ffff);
    }

    #[test]
    fn fewer_bits_are_the_first_ones() {
        for value in [1, 2, 3, 10, 1_000_003, 1_000_000_000_000, i64::MAX] {
            assert_eq!(log2_16(value), (log2(value as u64) >> (FRACTION_BITS - 16)) as i64, "{value}");
        }
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
