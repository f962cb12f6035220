//! The types in which paths are computed: `f64`, or `f32` if that is precise enough.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::dual::{Number, Term};
use super::exp::{exp, exp_less_1};
use super::normal::{CENTRAL, TAIL, ratio};
use super::{ln_of_positive, single};

/// A floating-point type with the functions of this module, which have no branches.
pub(crate) trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Number of random words of 32 bits from which one number is made.
    const WORDS: usize;

    fn of(x: f64) -> Self;
    fn double(self) -> f64;
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    /// `e^x − 1`.
    fn exp_less_1(self) -> Self;
    /// Natural logarithm of a positive, normal number.
    fn ln(self) -> Self;
    fn abs(self) -> Self;
    fn with_sign_of(self, other: Self) -> Self;
    /// `min(u, 1 − u)` for a number u evenly distributed between 0 and 1, made from random words, the first one
    /// highest. The magnitude is never 0 or above ½; the sign is negative if u is below ½.
    fn outer(words: [u64; 2]) -> Self;
    /// `A(r)/B(r)` of the inverse normal distribution function's central region.
    fn central(r: Self) -> Self;
    /// `−Φ⁻¹(exp(−t²/2))` in the tail, for all t that [`Real::outer`] can give.
    fn tail(t: Self) -> Self;
}

impl Real for f64 {
    const WORDS: usize = 2;

    #[inline(always)]
    fn of(x: f64) -> f64 {
        x
    }

    #[inline(always)]
    fn double(self) -> f64 {
        self
    }

    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }

    #[inline(always)]
    fn exp(self) -> f64 {
        exp(self)
    }

    #[inline(always)]
    fn exp_less_1(self) -> f64 {
        exp_less_1(self)
    }

    #[inline(always)]
    fn ln(self) -> f64 {
        ln_of_positive(self)
    }

    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }

    #[inline(always)]
    fn with_sign_of(self, other: f64) -> f64 {
        self.copysign(other)
    }

    #[inline(always)]
    fn outer([high, low]: [u64; 2]) -> f64 {
        const HALF_BITS: u64 = 0x3fe0_0000_0000_0000;
        /// `½ − 2^-54`.
        const HALF_BELOW: f64 = f64::from_bits(0x3fdf_ffff_ffff_ffff);
        const SIGN: u64 = 1 << 63;
        let word = high << 32 | low;
        let mirrored = (word << 1) ^ (word >> 63).wrapping_neg();
        let outer = f64::from_bits(HALF_BITS | mirrored >> 12) - HALF_BELOW;
        f64::from_bits(outer.to_bits() | (!word & SIGN))
    }

    #[inline(always)]
    fn central(r: f64) -> f64 {
        ratio(&CENTRAL[0], &CENTRAL[1], r)
    }

    #[inline(always)]
    fn tail(t: f64) -> f64 {
        ratio(&TAIL.0, &TAIL.1, t)
    }
}

impl Real for f32 {
    const WORDS: usize = 1;

    #[inline(always)]
    fn of(x: f64) -> f32 {
        x as f32
    }

    #[inline(always)]
    fn double(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }

    #[inline(always)]
    fn exp(self) -> f32 {
        single::exp(self)
    }

    #[inline(always)]
    fn exp_less_1(self) -> f32 {
        single::exp_less_1(self)
    }

    #[inline(always)]
    fn ln(self) -> f32 {
        single::ln_of_positive(self)
    }

    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }

    #[inline(always)]
    fn with_sign_of(self, other: f32) -> f32 {
        self.copysign(other)
    }

    #[inline(always)]
    fn outer([word, _]: [u64; 2]) -> f32 {
        const TWO_TO_MINUS_32: f32 = 1.0 / 4_294_967_296.0;
        const SIGN: u32 = 1 << 31;
        let word = word as u32;
        let mirrored = (word ^ (word >> 31).wrapping_neg()) & 0x7fff_ffff;
        let outer = (mirrored as i32 as f32 + 0.5) * TWO_TO_MINUS_32;
        f32::from_bits(outer.to_bits() | (!word & SIGN))
    }

    #[inline(always)]
    fn central(r: f32) -> f32 {
        ratio(&single::CENTRAL[0], &single::CENTRAL[1], r)
    }

    #[inline(always)]
    fn tail(t: f32) -> f32 {
        ratio(&single::TAIL.0, &single::TAIL.1, t)
    }
}

macro_rules! number {
    ($real:ty) => {
        impl Number for $real {
            type Part = $real;

            #[inline(always)]
            fn constant(value: $real) -> $real {
                value
            }

            #[inline(always)]
            fn of_term(term: &Term) -> $real {
                Real::of(term.value)
            }

            #[inline(always)]
            fn scaled(self, by: $real) -> $real {
                self * by
            }

            #[inline(always)]
            fn value(self) -> $real {
                self
            }

            #[inline(always)]
            fn sqrt(self) -> $real {
                Real::sqrt(self)
            }

            #[inline(always)]
            fn exp(self) -> $real {
                Real::exp(self)
            }

            #[inline(always)]
            fn exp_less_1(self) -> $real {
                Real::exp_less_1(self)
            }

            #[inline(always)]
            fn ln(self) -> $real {
                Real::ln(self)
            }
        }
    };
}

number!(f64);
number!(f32);

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::math::normal::{OUTER, quantile_central, quantile_tail};

    /// `−Φ⁻¹(p)`.
    pub fn quantile_of<T: Real>(p: T) -> T {
        if p >= T::of(OUTER) { quantile_central(p) } else { quantile_tail(p) }
    }

    #[test]
    fn words_become_numbers_between_0_and_a_half() {
        let all = 0xffff_ffff;
        let smallest = 0.5_f64 / 9_007_199_254_740_992.0;
        assert_eq!(f64::outer([0, 0]), -smallest);
        assert_eq!(f64::outer([all, all]), smallest);
        assert_eq!(f64::outer([0x7fff_ffff, all]), -(0.5 - smallest));
        assert_eq!(f64::outer([0x8000_0000, 0]), 0.5 - smallest);
        assert_eq!(f64::outer([0x4000_0000, 0]), -(0.25 + smallest));
        let smallest = 0.5_f32 / 4_294_967_296.0;
        assert_eq!(f32::outer([0, 0]), -smallest);
        assert_eq!(f32::outer([all, 0]), smallest);
        assert_eq!(f32::outer([0x7fff_ffff, 0]), -0.5);
        assert_eq!(f32::outer([0x8000_0000, 0]), 0.5);
    }
}
