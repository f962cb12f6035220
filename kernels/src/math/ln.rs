//! Natural logarithm.
//!
//! `x = 2^k · m` with `√½ ≤ m < √2`; with `f = m − 1` and `s = f / (2 + f)`,
//!
//! ```text
//! ln m = 2 atanh s = 2s + s·R(s²) = f − (f²/2 − s·(f²/2 + R(s²)))
//! ln x = k·ln2_high + (f − (f²/2 − (s·(f²/2 + R(s²)) + k·ln2_low)))
//! ```
//!
//! (the reduction of FreeBSD's `e_log.c`). `R(z) = z·P(z)` with P of degree 6, minimax for the relative error of the
//! whole on `0 ≤ z ≤ ((√2−1)/(√2+1))²`: 1.24e-18, computed with Remez's algorithm in 60 digits. `ln2_high` has 21 zero
//! bits at its end, so `k·ln2_high` is exact. Largest error measured against a reference in double-double arithmetic:
//! below [`ULP_ERROR_MAX`].

/// Bound on the error in units in the last place, measured by the test below.
#[cfg(test)]
const ULP_ERROR_MAX: f64 = 0.9;
/// Bound on the error of the logarithm of a [`Quotient`], measured by the test below.
#[cfg(test)]
const QUOTIENT_ULP_ERROR_MAX: f64 = 2.5;

pub(super) const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
pub(super) const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// `P`, lowest degree first.
const P: [f64; 7] = [
    0.666_666_666_666_673_4,
    0.399_999_999_994_146_76,
    0.285_714_287_423_876_2,
    0.222_221_985_731_845_23,
    0.181_835_643_261_196_71,
    0.153_140_505_521_127_12,
    0.147_959_497_005_828_58,
];

/// The same for quotients, whose `m` is between 2^-0.5861 and 2^0.5861: 1.6e-17 (`tests/scripts/fit_math.py`).
const RATIO_P: [f64; 7] = [
    0.666_666_666_666_728_7,
    0.399_999_999_960_767_4,
    0.285_714_294_106_324_04,
    0.222_221_372_432_328_28,
    0.181_864_077_685_445_6,
    0.152_491_514_674_599_84,
    0.153_762_747_032_309_27,
];

/// Bits of √½: mantissas are reduced to the range from here to √2.
const SQRT_HALF_BITS: u64 = 0x3fe6_a09e_667f_3bcd;
const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;
const MANTISSA_MASK: u64 = 0x000f_ffff_ffff_ffff;

/// 2^52 as bits: an integer below 2^52 or-ed into it is 2^52 plus that integer.
const TWO_TO_52_BITS: u64 = 0x4330_0000_0000_0000;

/// Natural logarithm: NaN for a negative number or NaN, −∞ for zero.
pub fn ln(x: f64) -> f64 {
    const TWO_TO_54: f64 = 18_014_398_509_481_984.0;
    if x.is_nan() || x < 0.0 {
        f64::NAN
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else if x == f64::INFINITY {
        x
    } else if x < f64::MIN_POSITIVE {
        ln_scaled(x * TWO_TO_54, -54.0)
    } else {
        ln_scaled(x, 0.0)
    }
}

/// Natural logarithm of a positive, finite, normal number; meaningless for anything else. It has no branch.
#[inline(always)]
pub(crate) fn ln_of_positive(x: f64) -> f64 {
    ln_scaled(x, 0.0)
}

/// `ln(x · 2^exponent)`.
#[inline(always)]
fn ln_scaled(x: f64, exponent: f64) -> f64 {
    let shifted = x.to_bits().wrapping_add(ONE_BITS - SQRT_HALF_BITS);
    let k = f64::from_bits((shifted >> 52) | TWO_TO_52_BITS) - (4_503_599_627_370_496.0 + 1023.0) + exponent;
    let f = f64::from_bits((shifted & MANTISSA_MASK) + SQRT_HALF_BITS) - 1.0;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let r = rest(&P, s * s);
    k * LN2_HIGH + (f - (half_square - (s * (half_square + r) + k * LN2_LOW)))
}

/// Two positive, normal numbers, for the logarithm of their quotient. The quotient itself is not rounded, so the
/// logarithm is as accurate near 1 as elsewhere.
pub(crate) struct Quotient {
    k: f64,
    difference: f64,
    /// Sum of the two, not 0; the caller passes its inverse to [`Quotient::ln`].
    pub sum: f64,
}

impl Quotient {
    /// `a = 2^k · a'`, with `a'` between 1/1.502 and 1.502 times `b`, so that `a' − b` is exact.
    #[inline(always)]
    pub fn new(a: f64, b: f64) -> Self {
        /// Half of the exponent's lowest bit.
        const HALF_BITS: u64 = 1 << 51;
        // The bits of a number approximate its binary logarithm, within 0.0861.
        let shifted = a.to_bits().wrapping_sub(b.to_bits()).wrapping_add(ONE_BITS + HALF_BITS);
        let k = f64::from_bits((shifted >> 52) | TWO_TO_52_BITS) - (4_503_599_627_370_496.0 + 1023.0);
        let exponent = (shifted & !MANTISSA_MASK).wrapping_sub(ONE_BITS);
        let b = f64::from_bits(b.to_bits().wrapping_add(exponent));
        Self { k, difference: a - b, sum: a + b }
    }

    #[inline(always)]
    pub fn ln(&self, inverse_sum: f64) -> f64 {
        let s = self.difference * inverse_sum;
        self.k * LN2_HIGH + (2.0 * s + (s * rest(&RATIO_P, s * s) + self.k * LN2_LOW))
    }
}

/// `z·P(z)`.
#[inline(always)]
fn rest(p: &[f64; 7], z: f64) -> f64 {
    let w = z * z;
    let even = z * (p[0] + w * (p[2] + w * (p[4] + w * p[6])));
    let odd = w * (p[1] + w * (p[3] + w * p[5]));
    even + odd
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unevaluated sum of two numbers, 106 bits (Dekker, Knuth).
    #[derive(Clone, Copy)]
    struct Double {
        high: f64,
        low: f64,
    }

    impl Double {
        fn sum(a: f64, b: f64) -> Self {
            let high = a + b;
            let part = high - a;
            Self { high, low: (a - (high - part)) + (b - part) }
        }

        fn product(a: f64, b: f64) -> Self {
            let high = a * b;
            Self { high, low: a.mul_add(b, -high) }
        }

        fn add(self, other: Self) -> Self {
            let sum = Self::sum(self.high, other.high);
            Self::sum(sum.high, sum.low + self.low + other.low)
        }

        fn multiply(self, other: Self) -> Self {
            let product = Self::product(self.high, other.high);
            Self::sum(product.high, product.low + self.high * other.low + self.low * other.high)
        }

        fn divide(self, other: Self) -> Self {
            let first = self.high / other.high;
            let rest = self.add(other.multiply(Self { high: -first, low: 0.0 }));
            let second = rest.high / other.high;
            let rest = rest.add(other.multiply(Self { high: -second, low: 0.0 }));
            Self::sum(first, second).add(Self { high: rest.high / other.high, low: 0.0 })
        }
    }

    /// `k·ln 2 + 2 atanh((m−1)/(m+1))`, accurate to about 100 bits.
    fn reference(x: f64) -> Double {
        let mut mantissa = f64::from_bits((x.to_bits() & MANTISSA_MASK) | ONE_BITS);
        let mut k = ((x.to_bits() >> 52) as i32 - 1023) as f64;
        if mantissa > std::f64::consts::SQRT_2 {
            mantissa *= 0.5;
            k += 1.0;
        }
        reference_of(mantissa, 1.0, k)
    }

    /// `ln(2^k · a / b)` for a and b near each other, by the series of the inverse tangent.
    fn reference_of(a: f64, b: f64, k: f64) -> Double {
        let s = Double::sum(a, -b).divide(Double::sum(a, b));
        let z = s.multiply(s);
        let mut series = Double { high: 0.0, low: 0.0 };
        for term in (0..30).rev() {
            let coefficient =
                Double { high: 2.0, low: 0.0 }.divide(Double { high: f64::from(2 * term + 1), low: 0.0 });
            series = series.multiply(z).add(coefficient);
        }
        // ln 2 in three parts; the product with the first is exact.
        let ln2 = [LN2_HIGH, f64::from_bits(0x3dea_39ef_3579_3c76), f64::from_bits(0x3a8c_c01f_97b5_7a08)];
        let whole = Double { high: k * ln2[0], low: 0.0 };
        let fraction = Double::product(k, ln2[1]).add(Double { high: k * ln2[2], low: 0.0 });
        whole.add(fraction.add(s.multiply(series)))
    }

    fn error_ulp(found: f64, exact: Double) -> f64 {
        let unit = f64::from_bits(exact.high.abs().to_bits() + 1) - exact.high.abs();
        let distance = Double { high: found, low: 0.0 }.add(Double { high: -exact.high, low: -exact.low });
        (distance.high / unit).abs()
    }

    #[test]
    fn error_stays_below_its_bound() {
        let mut worst = (0.0, 0.0);
        let mut check = |x: f64| {
            let error = error_ulp(ln(x), reference(x));
            if error > worst.0 {
                worst = (error, x);
            }
        };
        // A low-discrepancy walk over mantissas, with the exponents of price ratios and with all others.
        let golden = 0x9e37_79b9_7f4a_7c15_u64;
        for step in 1..300_000_u64 {
            let mantissa = step.wrapping_mul(golden) & MANTISSA_MASK;
            check(f64::from_bits(mantissa | ONE_BITS));
            check(f64::from_bits(mantissa | (ONE_BITS - (1 << 52))));
            check(f64::from_bits(mantissa | ((1 + step % 2045) << 52)));
            check(1.0 + mantissa as f64 * 1e-19);
            check(1.0 - mantissa as f64 * 1e-19);
        }
        println!("largest error {} ulp at {:e}", worst.0, worst.1);
        assert!(worst.0 < ULP_ERROR_MAX, "{} ulp at {:e}", worst.0, worst.1);
        assert!(worst.0 > 0.5, "a double can hardly be always correctly rounded: is the reference wrong?");
    }

    #[test]
    fn error_of_a_quotient_stays_below_its_bound() {
        let mut worst = (0.0, [0.0; 2]);
        let mut check = |a: f64, b: f64, k: i32| {
            let scaled = a * f64::from_bits(((1023 + k) as u64) << 52);
            let quotient = Quotient::new(scaled, b);
            let found = quotient.ln(1.0 / quotient.sum);
            let error = error_ulp(found, reference_of(a, b, f64::from(k)));
            if a != b && error > worst.0 {
                worst = (error, [scaled, b]);
            }
        };
        let golden = 0x9e37_79b9_7f4a_7c15_u64;
        for step in 1..300_000_u64 {
            let [one, other] = [step, step << 20]
                .map(|step| f64::from_bits(step.wrapping_mul(golden) & MANTISSA_MASK | ONE_BITS));
            check(one, other, 0);
            check(one, other, (step % 101) as i32 - 50);
            check(one, one * (1.0 + (other - 1.5) * 1e-3), 0);
            check(one, f64::from_bits(one.to_bits() + step % 5), 0);
        }
        println!("largest error {} ulp at {:?}", worst.0, worst.1);
        assert!(worst.0 < QUOTIENT_ULP_ERROR_MAX, "{} ulp at {:?}", worst.0, worst.1);
        assert!(worst.0 > 0.5 * QUOTIENT_ULP_ERROR_MAX, "the bound is no measurement: {}", worst.0);
        let quotient = Quotient::new(3.7, 3.7);
        assert_eq!(quotient.ln(1.0 / quotient.sum).to_bits(), 0);
    }

    #[test]
    fn reference_agrees_with_known_values() {
        // ln 10 and ln 3 in 106 bits.
        for (x, high, low) in [
            (10.0, std::f64::consts::LN_10, -2.170_756_223_382_249_4e-16),
            (3.0, 1.098_612_288_668_109_8, -9.071_297_235_001_53e-17),
        ] {
            let found = reference(x);
            assert_eq!(found.high, high);
            assert!((found.low - low).abs() < 1e-30, "{x}: {:e} {:e}", found.low, low);
        }
    }

    #[test]
    fn special_values() {
        assert_eq!(ln(1.0).to_bits(), 0.0_f64.to_bits());
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
        assert_eq!(ln(-0.0), f64::NEG_INFINITY);
        assert_eq!(ln(f64::INFINITY), f64::INFINITY);
        assert!(ln(-1.0).is_nan());
        assert!(ln(f64::NAN).is_nan());
        // The smallest number: ln(2^-1074).
        assert_eq!(ln(f64::from_bits(1)), -744.440_071_921_381_2);
    }
}
