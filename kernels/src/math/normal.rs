//! The normal distribution: density, distribution function and its inverse.
//!
//! *Distribution.* `Φ(−x) = exp(−x²/2) · P(x)/Q(x)` for `x ≥ −⅓`, of degrees 10 and 11 with positive coefficients,
//! nearly minimax for the relative error at all x: 4.1e-17. The square is exact in two parts, so the tail is as
//! accurate as the middle.
//!
//! *Inverse*, in the regions of Wichura's algorithm AS 241, with `q = p − ½`. For `|q| ≤ 0.425` it is `q · A(r)/B(r)`
//! with `r = 0.425² − q²`, of degrees 7 and 7: 7.5e-17. Otherwise it is a rational function of
//! `t = √(−2 ln min(p, 1 − p))`: of degrees 8 and 7 for `t ≤ 8.6`, 7.5e-18; of degrees 7 and 6 beyond, 1.3e-16. All
//! coefficients: `tests/scripts/fit_math.py`. Largest errors measured: below [`CDF_ULP_ERROR_MAX`] and
//! [`INVERSE_ULP_ERROR_MAX`].

use super::exp::exp_of_sum;
use super::{Real, estrin, ln, value_and_slope};

/// Bounds on the errors in units in the last place, for results that are normal numbers.
#[cfg(test)]
pub(super) const CDF_ULP_ERROR_MAX: f64 = 4.0;
#[cfg(test)]
pub(super) const INVERSE_ULP_ERROR_MAX: f64 = 5.5;

/// `1/√(2π)`.
pub(crate) const INVERSE_SQRT_TWO_PI: f64 = 0.398_942_280_401_432_7;
/// The least x for which Φ(−x) is rounded to 0.
const X_MAX: f64 = 39.0;
/// Mask that clears the last 27 bits of a mantissa, so that the square of the number is exact.
const HIGH_BITS: u64 = !((1 << 27) - 1);
/// Probability below which the formulas for the tail of the inverse are used.
pub(crate) const OUTER: f64 = 0.075;
const EDGE_SQUARED: f64 = 0.180_625;
/// The t from which on the formula for the far tail of the inverse is used.
const FAR: f64 = 8.6;

const MILLS: ([f64; 11], [f64; 12]) = (
    [
        790_974.276_372_959,
        1_329_563.336_990_419_5,
        1_105_489.474_342_187_4,
        588_323.269_582_355_7,
        219_958.643_886_914_42,
        60_106.305_458_246_4,
        12_142.318_165_264_094,
        1_792.798_012_406_264_7,
        185.845_478_919_598_07,
        12.296_765_682_221_34,
        0.398_942_280_401_432_7,
    ],
    [
        1_581_948.552_745_917_8,
        3_921_339.000_201_244_4,
        4_548_780.518_246_139,
        3_266_116.227_127_01,
        1_616_692.452_947_955_8,
        580_869.140_512_883_2,
        155_096.396_156_379_28,
        30_900.123_563_699_242,
        4_524.701_609_156_654,
        466.845_532_172_143_5,
        30.823_420_545_568_3,
        1.0,
    ],
);

pub(super) const CENTRAL: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_5,
        133.142_540_575_074_26,
        1_971.618_490_276_255_4,
        13_731.998_999_524_581,
        45_923.385_350_581_46,
        67_268.488_069_398_39,
        33_432.221_037_276_235,
        2_509.223_383_500_464_5,
    ],
    [
        1.0,
        42.313_588_348_207_25,
        687.195_912_547_920_7,
        5_394.307_215_991_498,
        21_214.408_313_211_097,
        39_309.375_857_768_89,
        28_730.413_330_704_927,
        5_226.776_917_424_197,
    ],
];

pub(super) const TAIL: ([f64; 9], [f64; 8]) = (
    [
        -3.540_710_743_441_281_2,
        -25.006_611_141_180_81,
        -25.846_832_637_917_984,
        9.124_918_968_842_23,
        17.639_243_773_902_237,
        7.236_769_350_110_078_5,
        1.266_541_650_023_459_2,
        0.085_014_694_427_968_11,
        0.001_530_132_320_751_126_2,
    ],
    [
        1.0,
        11.687_086_852_069_566,
        27.165_918_255_251_96,
        21.635_643_877_015_81,
        7.593_198_530_382_482,
        1.275_495_944_146_337_6,
        0.085_028_068_279_847_84,
        0.001_530_088_460_566_363_5,
    ],
);

const FAR_TAIL: ([f64; 8], [f64; 7]) = (
    [
        -2.959_814_296_159_936_3,
        -5.438_256_285_983_559,
        2.052_418_320_310_865_7,
        3.124_000_997_905_107,
        0.684_982_023_696_252_6,
        0.045_879_001_315_408_376,
        0.000_976_633_567_556_366_5,
        5.146_679_697_795_633e-6,
    ],
    [
        1.0,
        4.183_352_259_710_53,
        3.316_206_195_980_601_7,
        0.690_246_278_071_762_3,
        0.045_915_550_413_948_084,
        0.000_976_646_314_547_948_3,
        5.146_668_039_483_208e-6,
    ],
);

/// The distribution function Φ of the standard normal distribution, accurate in its lower tail too.
#[inline(always)]
pub fn normal_cdf(x: f64) -> f64 {
    density_and_cdf(x).1
}

/// The density φ of the standard normal distribution.
#[inline(always)]
pub fn normal_density(x: f64) -> f64 {
    density_and_cdf(x).0
}

/// φ(x) and Φ(x), which share most of the work.
#[inline(always)]
pub(crate) fn density_and_cdf(x: f64) -> (f64, f64) {
    let distance = x.abs();
    let distance = if distance > X_MAX { X_MAX } else { distance };
    let high = f64::from_bits(distance.to_bits() & HIGH_BITS);
    let rest = (distance - high) * (distance + high);
    let e = exp_of_sum(-0.5 * (high * high), -0.5 * rest);
    let below = e * mills(distance);
    (INVERSE_SQRT_TWO_PI * e, if x > 0.0 { 1.0 - below } else { below })
}

/// `Φ(−x) · exp(x²/2)` for x from [`MILLS_MIN`] on.
#[inline(always)]
pub(crate) fn mills(x: f64) -> f64 {
    ratio(&MILLS.0, &MILLS.1, x)
}

/// The least argument of [`mills`] and of [`Mills`], slightly above the least one for which the coefficients are
/// fitted.
pub(crate) const MILLS_MIN: f64 = -0.33;

/// [`mills`] at two numbers, and the difference of both values. The difference has nearly full precision even for close
/// numbers, because quotients `(P(y) − P(x)) / (y − x)` are computed as polynomials, not as differences.
pub(crate) struct Mills {
    pub near: f64,
    pub far: f64,
    pub fall: f64,
}

impl Mills {
    /// The values at `near` and `far = near + distance`, both from [`MILLS_MIN`] to 1e13, times a factor.
    #[inline(always)]
    pub fn scaled(near: f64, far: f64, distance: f64, factor: f64) -> Self {
        let [above, above_slope] = value_and_slope(&MILLS.0, near, far);
        let [below, below_slope] = value_and_slope(&MILLS.1, near, far);
        let above_far = above + distance * above_slope;
        let below_far = below + distance * below_slope;
        let scale = factor / (below * below_far);
        let far = above_far * below * scale;
        let fall = distance * (above * below_slope - below * above_slope) * scale;
        Self { near: far + fall, far, fall }
    }
}

/// The x with Φ(x) = p: −∞ for 0, ∞ for 1, NaN outside.
pub fn inverse_normal_cdf(p: f64) -> f64 {
    let outer = if p < 0.5 { p } else { 1.0 - p };
    let x = if outer >= OUTER {
        quantile_central(outer)
    } else {
        let t = (-2.0 * ln(outer)).sqrt();
        if t <= FAR {
            f64::tail(t)
        } else if t < f64::INFINITY {
            ratio(&FAR_TAIL.0, &FAR_TAIL.1, t)
        } else {
            t
        }
    };
    if p < 0.5 {
        -x
    } else if p <= 1.0 {
        x
    } else {
        f64::NAN
    }
}

/// `−Φ⁻¹(p)` for `OUTER ≤ p ≤ ½`.
#[inline(always)]
pub(crate) fn quantile_central<T: Real>(p: T) -> T {
    let q = T::of(0.5) - p;
    q * T::central(T::of(EDGE_SQUARED) - q * q)
}

/// `−Φ⁻¹(p)` for p from [`Real::outer`] below `OUTER`.
#[inline(always)]
pub(crate) fn quantile_tail<T: Real>(p: T) -> T {
    T::tail((T::of(-2.0) * p.ln()).sqrt())
}

#[inline(always)]
pub(super) fn ratio<T: Real, const N: usize, const D: usize>(above: &[T; N], below: &[T; D], x: T) -> T {
    estrin(above, x) / estrin(below, x)
}
