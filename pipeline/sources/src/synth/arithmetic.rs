//! Logarithm, exponential and normal quantile from `+ − × ÷ √` alone, so that their bits are the same everywhere.
//!
//! They serve the synthetic market, which needs at most a dozen digits; the numeric contract of the stages does not
//! apply. The kernels' functions are more accurate, but differ in the last bits. They would change one tick in 300,000,
//! whereas the ticks of a seed must never change.

use std::f64::consts::{LN_2, SQRT_2};

/// Returns the natural logarithm of a positive normal number, accurate to 1e-14.
///
/// `x = m · 2ᵏ` with `m` in [√½, √2]; `ln m = 2 artanh s`, `s = (m − 1) / (m + 1)`, |s| ≤ 0.172, by its series.
pub(super) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0, "ln({x})");
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1_023;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if mantissa > SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series =
        [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0].iter().fold(0.0, |sum, odd| (sum + 1.0 / odd) * square);
    exponent as f64 * LN_2 + 2.0 * s * (1.0 + series)
}

/// Returns the exponential for |x| ≤ 700, accurate to 1e-13 of its value.
///
/// `eˣ = 2ᵏ · eʳ` with |r| ≤ ½ ln 2, by Taylor's series.
pub(super) fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() <= 700.0, "exp({x})");
    let nearest = x / LN_2 + if x < 0.0 { -0.5 } else { 0.5 };
    let k = nearest as i64;
    let r = x - k as f64 * LN_2;
    let series = (1..=13).rev().fold(1.0, |sum, n| 1.0 + sum * r / f64::from(n));
    series * f64::from_bits(((1_023 + k) as u64) << 52)
}

/// Returns the quantile of the standard normal distribution for a probability `p` in (0, 1), accurate to 1.2e-9 of its
/// value. Uses P. J. Acklam's rational approximations, "An algorithm for computing the inverse normal cumulative
/// distribution function", 2003.
pub(super) fn normal_quantile(p: f64) -> f64 {
    const CENTRE_NUMERATOR: [f64; 6] = [
        -3.969683028665376e+01,
        2.209460984245205e+02,
        -2.759285104469687e+02,
        1.38357751867269e+02,
        -3.066479806614716e+01,
        2.506628277459239e+00,
    ];
    const CENTRE_DENOMINATOR: [f64; 6] = [
        -5.447609879822406e+01,
        1.615858368580409e+02,
        -1.556989798598866e+02,
        6.680131188771972e+01,
        -1.328068155288572e+01,
        1.0,
    ];
    const TAIL_NUMERATOR: [f64; 6] = [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e+00,
        -2.549732539343734e+00,
        4.374664141464968e+00,
        2.938163982698783e+00,
    ];
    const TAIL_DENOMINATOR: [f64; 5] =
        [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00, 1.0];
    const TAIL: f64 = 0.02425;
    let tail = |p: f64| {
        let q = (-2.0 * ln(p)).sqrt();
        polynomial(&TAIL_NUMERATOR, q) / polynomial(&TAIL_DENOMINATOR, q)
    };
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let square = q * q;
        q * polynomial(&CENTRE_NUMERATOR, square) / polynomial(&CENTRE_DENOMINATOR, square)
    }
}

/// Evaluates a polynomial by Horner's rule, highest power first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the relative error against the platform's own function, which is accurate to some 1e-16.
    fn check(found: f64, expected: f64, tolerance: f64, what: &str) {
        let error = (found - expected).abs() / expected.abs().max(1.0);
        assert!(error <= tolerance, "{what}: {found} against {expected}, off by {error:e}");
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the platform's functions are the reference, to more than their last bits"
    )]
    fn ln_and_exp_are_close_to_the_platform_s() {
        for step in 1..100_000 {
            let x = f64::from(step) / 100_000.0;
            check(ln(x), x.ln(), 1e-14, "ln");
            check(ln(x * 1e9), (x * 1e9).ln(), 1e-14, "ln");
            let y = (x - 0.5) * 60.0;
            check(exp(y) / y.exp(), 1.0, 1e-13, "exp");
        }
        check(ln(f64::MIN_POSITIVE), f64::MIN_POSITIVE.ln(), 1e-14, "ln");
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
    }

    /// Compares with values from tables of the normal distribution (R, `qnorm`).
    #[test]
    fn normal_quantiles() {
        for (p, expected) in [
            (0.5, 0.0),
            (0.975, 1.959963984540054),
            (0.84, 0.994457883209753),
            (0.99, 2.326347874040841),
            (0.999, 3.090232306167814),
            (0.0001, -3.719016485455709),
            (1e-9, -5.997807015007686),
        ] {
            check(normal_quantile(p), expected, 2e-9, "quantile");
            check(normal_quantile(1.0 - p), -expected, 3e-8, "the other tail");
        }
    }
}
