//! The integrals of one put: the twin of `early_exercise.cu`. Points are taken eight side by side, and sums by lane, then by halves.

use bytemuck::{Pod, Zeroable};

use super::SMOOTH_MAX;
use super::nodes::{
    LEVEL_COSINES, LEVEL_POINTS, LEVEL_SINES, LEVEL_WEIGHTS, NODES, PREMIUM_COSINES, PREMIUM_POINTS,
    PREMIUM_SINES, PREMIUM_WEIGHTS,
};
use crate::math::{density_and_cdf, exp, ln_of_positive};

/// Points side by side.
const LANES: usize = 8;
const _: () = assert!(LEVEL_POINTS.is_multiple_of(LANES) && PREMIUM_POINTS.is_multiple_of(LANES));
/// A boundary in strikes is between these, or it is none.
const RATIOS: [f64; 2] = [1e-300, 1e300];
/// Stands in the place of a level where there is none. Levels are never positive.
pub const NO_LEVEL: f64 = 1.0;
/// Logarithms of boundaries are taken for so much at least where their inverse is needed.
const LN_MIN: f64 = -690.0;

/// A polynomial of Chebyshev: `ln²(B/X)` by `2√(τ/T) − 1`.
pub type Curve = [f64; NODES + 1];
/// `ln(B/X)` at the nodes, from T on. Not positive.
pub type Levels = [f64; NODES];

/// A put of strike 1: as `Put` of `early_exercise.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Put {
    pub spot: f64,
    pub ln_spot: f64,
    /// `ln X`.
    pub ln_limit: f64,
    /// What exercise earns.
    pub rate: f64,
    /// And what it gives up.
    pub carry: f64,
    pub volatility: f64,
    pub years: f64,
    /// Whether the boundary is improved by slopes, as 1 or 0.
    pub is_smooth: u64,
}

/// What early exercise is worth, in strikes, and its derivatives by the spot: as `Premium` of `early_exercise.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Premium {
    pub amount: f64,
    pub delta: f64,
    pub gamma: f64,
}

impl Put {
    pub fn new(spot: f64, rate: f64, carry: f64, volatility: f64, years: f64) -> Self {
        // At expiry exercise is best up to the strike, if it earns more there than it gives up.
        let limit = if carry > rate && rate > 0.0 { rate / carry } else { 1.0 };
        let slowness = (rate - carry) * years.sqrt() / volatility;
        Self {
            spot,
            ln_spot: ln_of_positive(spot),
            ln_limit: ln_of_positive(limit),
            rate,
            carry,
            volatility,
            years,
            is_smooth: u64::from(slowness < SMOOTH_MAX),
        }
    }
}

/// Deviations beyond which nothing has a probability that is a number.
const DEVIATIONS_MAX: f64 = 40.0;

impl Put {
    /// Whether the price cannot fall to where exercise may be best, wherever the boundary is below that: exercise before expiry is worth
    /// nothing then.
    pub fn is_out_of_reach(&self) -> bool {
        let drift = self.rate - self.carry - 0.5 * (self.volatility * self.volatility);
        let fall = f64::min(drift, 0.0) * self.years;
        self.ln_spot - self.ln_limit + fall > DEVIATIONS_MAX * self.volatility * self.years.sqrt()
    }
}

/// `ln(B/X)` at points of a curve.
#[inline(always)]
fn levels(curve: &Curve, x: &[f64; LANES]) -> [f64; LANES] {
    let (mut last, mut before) = ([0.0; LANES], [0.0; LANES]);
    for &coefficient in curve[1..].iter().rev() {
        for lane in 0..LANES {
            let next = 2.0 * x[lane] * last[lane] - before[lane] + coefficient;
            (before[lane], last[lane]) = (last[lane], next);
        }
    }
    let mut found = [0.0; LANES];
    for lane in 0..LANES {
        let square = x[lane] * last[lane] - before[lane] + curve[0];
        found[lane] = -(if square > 0.0 { square } else { 0.0 }).sqrt();
    }
    found
}

#[inline(always)]
fn sum_halves(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// A better level at the node with `√(τ/T) = share`, by the curve through all of them.
#[inline(always)]
pub fn improved(put: &Put, curve: &Curve, share: f64, level: f64) -> f64 {
    if put.is_smooth == 1 {
        improve::<true>(put, curve, share, level)
    } else {
        improve::<false>(put, curve, share, level)
    }
}

#[inline(always)]
fn improve<const SMOOTH: bool>(put: &Put, curve: &Curve, share: f64, level: f64) -> f64 {
    let Put { ln_limit, rate, carry, volatility, .. } = *put;
    let years = put.years * (share * share);
    let spread = volatility * years.sqrt();
    let drift = rate - carry - 0.5 * (volatility * volatility);
    let (mut cash_sums, mut asset_sums) = ([0.0; LANES], [0.0; LANES]);
    for first in (0..LEVEL_POINTS).step_by(LANES) {
        let mut x = [0.0; LANES];
        for lane in 0..LANES {
            x[lane] = 2.0 * (share * LEVEL_SINES[first + lane]) - 1.0;
        }
        let later = levels(curve, &x);
        for lane in 0..LANES {
            let cosine = LEVEL_COSINES[first + lane];
            let left = years * (cosine * cosine);
            let deviation = spread * cosine;
            let minus = (level - later[lane] + drift * left) / deviation;
            let plus = minus + deviation;
            let weight = years * LEVEL_WEIGHTS[first + lane];
            let (minus_density, minus_cdf) = density_and_cdf(minus);
            let (plus_density, plus_cdf) = density_and_cdf(plus);
            let of_cash = if SMOOTH { minus_density / deviation } else { minus_cdf };
            let of_asset = if SMOOTH { plus_cdf + plus_density / deviation } else { plus_cdf };
            cash_sums[lane] += weight * exp(-(rate * left)) * of_cash;
            asset_sums[lane] += weight * exp(-(carry * left)) * of_asset;
        }
    }
    let minus = (ln_limit + level + drift * years) / spread;
    let (minus_density, minus_cdf) = density_and_cdf(minus);
    let (plus_density, plus_cdf) = density_and_cdf(minus + spread);
    let of_cash = if SMOOTH { minus_density / spread } else { minus_cdf };
    let of_asset = if SMOOTH { plus_cdf + plus_density / spread } else { plus_cdf };
    let above = exp(-(rate * years)) * of_cash + rate * sum_halves(cash_sums);
    let below = exp(-(carry * years)) * of_asset + carry * sum_halves(asset_sums);
    let ratio = above / below;
    let is_known = ratio > RATIOS[0] && ratio < RATIOS[1];
    let found = ln_of_positive(if is_known { ratio } else { 1.0 }) - ln_limit;
    let found = if found > 0.0 { 0.0 } else { found };
    if is_known { found } else { NO_LEVEL }
}

/// The premium, by the curve of the boundary.
#[inline(always)]
pub fn premium(put: &Put, curve: &Curve) -> Premium {
    let Put { spot, ln_spot, ln_limit, rate, carry, volatility, years, .. } = *put;
    let spread = volatility * years.sqrt();
    let drift = rate - carry + 0.5 * (volatility * volatility);
    let distance = ln_spot - ln_limit;
    let (mut amounts, mut deltas, mut gammas) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for first in (0..PREMIUM_POINTS).step_by(LANES) {
        let mut x = [0.0; LANES];
        for lane in 0..LANES {
            x[lane] = 2.0 * PREMIUM_COSINES[first + lane] - 1.0;
        }
        let later = levels(curve, &x);
        for lane in 0..LANES {
            let sine = PREMIUM_SINES[first + lane];
            let left = years * (sine * sine);
            let deviation = spread * sine;
            let d1 = (distance - later[lane] + drift * left) / deviation;
            let (density, asset_cdf) = density_and_cdf(-d1);
            let (_, cash_cdf) = density_and_cdf(deviation - d1);
            let weight = years * PREMIUM_WEIGHTS[first + lane];
            let (cash, asset) = (exp(-(rate * left)), exp(-(carry * left)));
            let ln_level = ln_limit + later[lane];
            let ln_level = if ln_level > LN_MIN { ln_level } else { LN_MIN };
            let lift = rate * exp(-ln_level) - carry;
            let dense = asset * density / deviation;
            amounts[lane] += weight * (rate * cash * cash_cdf - carry * (spot * asset) * asset_cdf);
            deltas[lane] -= weight * (carry * asset * asset_cdf + dense * lift);
            gammas[lane] += weight * (dense / spot * (carry + lift * d1 / deviation));
        }
    }
    Premium { amount: sum_halves(amounts), delta: sum_halves(deltas), gamma: sum_halves(gammas) }
}
