//! The exponential function.
//!
//! `x = k·ln 2 + r` with `|r| ≤ ½ ln 2`, and `exp r = 1 + (r + r²·Q(r))` with Q of degree 9, minimax for the relative
//! error of the whole: 3.7e-18 (`tests/scripts/fit_math.py`). `ln2_high` has 21 zero bits at its end, so `k·ln2_high`
//! is exact. `2^k` is multiplied in two factors, so that results down to the smallest number are rounded once. Largest
//! error measured: below [`ULP_ERROR_MAX`].

use super::estrin;
use super::ln::{LN2_HIGH, LN2_LOW};

/// Bound on the error in units in the last place, for results that are normal numbers.
#[cfg(test)]
pub(super) const ULP_ERROR_MAX: f64 = 0.9;

const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// Adding this to a number below 2^51 rounds it to an integer, which is then in the last bits.
const SHIFT: f64 = 6_755_399_441_055_744.0;
/// Beyond this argument, of either sign, the result is rounded to infinity or to 0.
const X_MAX: f64 = 710.0;
const X_MIN: f64 = -746.0;

const Q: [f64; 10] = [
    0.500_000_000_000_001_1,
    0.166_666_666_666_664_1,
    0.041_666_666_666_529_17,
    0.008_333_333_333_495_202,
    0.001_388_888_894_392_804_4,
    0.000_198_412_695_056_930_93,
    2.480_149_275_707_748e-5,
    2.755_758_652_073_998e-6,
    2.763_038_071_786_555e-7,
    2.500_022_050_516_907_3e-8,
];

/// `e^x`.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    exp_of_sum(x, 0.0)
}

/// `e^(x + rest)` for a rest of at most 1e-4, accurate even if the sum of both would be rounded.
#[inline(always)]
pub(crate) fn exp_of_sum(x: f64, rest: f64) -> f64 {
    let x = if x > X_MAX { X_MAX } else { x };
    let x = if x < X_MIN { X_MIN } else { x };
    let (less_1, shifted) = reduced(x, rest);
    let [first, second] = powers(shifted);
    (1.0 + less_1) * first * second
}

/// `e^x − 1`, as accurate near 0 as elsewhere.
#[inline(always)]
pub(crate) fn exp_less_1(x: f64) -> f64 {
    let x = if x > X_MAX { X_MAX } else { x };
    let x = if x < X_MIN { X_MIN } else { x };
    let (less_1, shifted) = reduced(x, 0.0);
    let [first, second] = powers(shifted);
    less_1 * first * second + (first * second - 1.0)
}

/// Decomposition `e^x = (1 + less_1) · power` for `|x| ≤ 700`, with a power of two that is 1 for `|x| ≤ 0.34`. For
/// other arguments the numbers are meaningless.
pub(crate) struct Exp {
    pub less_1: f64,
    pub power: f64,
}

impl Exp {
    #[inline(always)]
    pub fn new(x: f64) -> Self {
        let (less_1, shifted) = reduced(x, 0.0);
        Self { less_1, power: f64::from_bits(shifted.wrapping_add(1023) << 52) }
    }
}

/// Two powers of two whose product is `2^k`.
#[inline(always)]
fn powers(shifted: u64) -> [f64; 2] {
    // Both exponents, with their bias.
    let both = shifted.wrapping_add(2046) & 0x1fff;
    let half = both >> 1;
    [f64::from_bits(half << 52), f64::from_bits((both - half) << 52)]
}

/// `e^r − 1`, and k in the last bits.
#[inline(always)]
fn reduced(x: f64, rest: f64) -> (f64, u64) {
    let shifted = x * LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let r = ((x - k * LN2_HIGH) - k * LN2_LOW) + rest;
    (r + (r * r) * estrin(&Q, r), shifted.to_bits())
}
