//! The integrals of one put: the twin of `early_exercise.cu`. Eight points are computed side by side, and summed by
//! lane, then by halves.

use bytemuck::{Pod, Zeroable};

use super::SMOOTH_MAX;
use super::nodes::{
    LEVEL_COSINES, LEVEL_POINTS, LEVEL_SINES, LEVEL_WEIGHTS, NODES, PREMIUM_COSINES, PREMIUM_POINTS,
    PREMIUM_SINES, PREMIUM_WEIGHTS,
};
use crate::math::{density_and_cdf, exp, ln_of_positive};

/// Number of points side by side.
const LANES: usize = 8;
const _: () = assert!(LEVEL_POINTS.is_multiple_of(LANES) && PREMIUM_POINTS.is_multiple_of(LANES));
/// Range of a boundary, in strikes; a result outside is not a boundary.
const RATIOS: [f64; 2] = [1e-300, 1e300];
/// Placeholder for a missing level. Levels are never positive.
pub const NO_LEVEL: f64 = 1.0;
/// Least logarithm of a boundary that is inverted: `exp` of its negative stays finite.
const LN_MIN: f64 = -690.0;

/// Number of deviations beyond which probabilities are rounded to 0.
const DEVIATIONS_MAX: f64 = 40.0;
/// Value of `pace·τ` from which the boundary equals that of an option without expiry: the difference of the two falls
/// as `exp(−pace·τ)`.
const SETTLED_AFTER: f64 = 40.0;
/// Multiple of the settling time up to which integrals over all years have enough points. At ten times it, they are
/// wrong by up to 1e-8, at thirty times by up to 1e-6.
const ENDLESS_MIN: f64 = 6.0;
/// Greatest `−carry·years` for [`BY_VALUES`] with a negative yield. The terms exceed their sum by a factor of up to `e`
/// to that power. At this limit, ten digits of the sum are right.
const CANCELLED_MAX: f64 = 10.0;

/// A Chebyshev polynomial: `ln²(B/X)` as a function of `2√(τ/T) − 1`.
pub type Curve = [f64; NODES + 1];
/// `ln(B/X)` at the nodes, beginning at T. No level is positive.
pub type Levels = [f64; NODES];

/// A put of strike 1: `Put` of `early_exercise.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Put {
    pub spot: f64,
    pub ln_spot: f64,
    /// `ln X`.
    pub ln_limit: f64,
    /// The rate, which exercise earns on the strike.
    pub rate: f64,
    /// The yield, which exercise gives up on the asset.
    pub carry: f64,
    pub volatility: f64,
    /// Last years before expiry, in which the boundary is a curve.
    pub years: f64,
    /// Years from now until then, in which it is that of an option without expiry.
    pub endless_years: f64,
    /// The equation that improves the boundary: one of the constants below.
    pub way: u64,
}

/// Equation B of the paper: value equals payoff, with probabilities that the price is above the boundary later.
pub const BY_VALUES: u64 = 0;
/// Equation A of the paper: the slopes of value and payoff are equal.
pub const BY_SLOPES: u64 = 1;
/// Equation B, with probabilities that the price is below the boundary later in its denominator. Its terms do not
/// cancel if the yield is negative.
pub const BY_VALUES_BELOW: u64 = 2;

/// The value of early exercise, in strikes, and its derivatives by the spot: `Premium` of `early_exercise.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Premium {
    pub amount: f64,
    pub delta: f64,
    pub gamma: f64,
}

impl Put {
    /// A put whose boundary is a curve in all years.
    pub fn new(spot: f64, rate: f64, carry: f64, volatility: f64, years: f64) -> Self {
        // At expiry, exercise is best up to the strike, or up to the price at which its gain equals its loss.
        let limit = if carry > rate && rate > 0.0 { rate / carry } else { 1.0 };
        let put = Self {
            spot,
            ln_spot: ln_of_positive(spot),
            ln_limit: ln_of_positive(limit),
            rate,
            carry,
            volatility,
            years,
            endless_years: 0.0,
            way: BY_VALUES,
        };
        Self { way: put.first_way(), ..put }
    }

    /// The equation by slopes if it converges faster, else by values.
    fn first_way(&self) -> u64 {
        let slowness = (self.rate - self.carry) * self.years.sqrt() / self.volatility;
        if slowness < SMOOTH_MAX { BY_SLOPES } else { BY_VALUES }
    }

    /// The same put, with the times and the equation that suit its parameters.
    ///
    /// Its boundary is a curve only in the last years if the price drifts down and the years far exceed the settling
    /// time. Without that, all integrals would have steps between their points. With a negative yield and many years,
    /// the equation without cancellation is used.
    pub fn prepared(&self) -> Self {
        let drift = self.drift();
        let pace = self.rate + 0.5 * (drift / self.volatility) * (drift / self.volatility);
        let years = SETTLED_AFTER / pace;
        let put = match drift < 0.0 && self.years > ENDLESS_MIN * years {
            true => Self { years, endless_years: self.years - years, ..*self },
            false => *self,
        };
        let cancels = put.carry * put.years < -CANCELLED_MAX;
        Self { way: if cancels { BY_VALUES_BELOW } else { put.first_way() }, ..put }
    }

    /// Drift of the price's logarithm, per year.
    pub fn drift(&self) -> f64 {
        self.rate - self.carry - 0.5 * (self.volatility * self.volatility)
    }
}

impl Premium {
    /// The sum of this premium and another one.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            amount: self.amount + other.amount,
            delta: self.delta + other.delta,
            gamma: self.gamma + other.gamma,
        }
    }
}

impl Put {
    /// True if the price cannot fall to the range in which exercise may be best, wherever the boundary is. Then early
    /// exercise is worth nothing.
    pub fn is_out_of_reach(&self) -> bool {
        let years = self.years + self.endless_years;
        let fall = f64::min(self.drift(), 0.0) * years;
        self.ln_spot - self.ln_limit + fall > DEVIATIONS_MAX * self.volatility * years.sqrt()
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

/// An improved level at the node with `√(τ/T) = share`, from the curve through all levels.
#[inline(always)]
pub fn improved(put: &Put, curve: &Curve, share: f64, level: f64) -> f64 {
    match put.way {
        BY_SLOPES => improve::<BY_SLOPES>(put, curve, share, level),
        BY_VALUES_BELOW => improve::<BY_VALUES_BELOW>(put, curve, share, level),
        _ => improve::<BY_VALUES>(put, curve, share, level),
    }
}

#[inline(always)]
fn improve<const WAY: u64>(put: &Put, curve: &Curve, share: f64, level: f64) -> f64 {
    let Put { ln_limit, rate, carry, volatility, .. } = *put;
    let years = put.years * (share * share);
    let spread = volatility * years.sqrt();
    let drift = put.drift();
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
            let of_cash = of_cash::<WAY>(minus, deviation);
            let of_asset = of_asset::<WAY>(plus, deviation);
            cash_sums[lane] += weight * exp(-(rate * left)) * of_cash;
            asset_sums[lane] += weight * exp(-(carry * left)) * of_asset;
        }
    }
    let minus = (ln_limit + level + drift * years) / spread;
    let (of_cash, of_asset) = (of_cash::<WAY>(minus, spread), of_asset::<WAY>(minus + spread, spread));
    let above = exp(-(rate * years)) * of_cash + rate * sum_halves(cash_sums);
    let below = exp(-(carry * years)) * of_asset + carry * sum_halves(asset_sums);
    let below = if WAY == BY_VALUES_BELOW { 1.0 - below } else { below };
    let ratio = above / below;
    let is_known = ratio > RATIOS[0] && ratio < RATIOS[1];
    let found = ln_of_positive(if is_known { ratio } else { 1.0 }) - ln_limit;
    let found = if found > 0.0 { 0.0 } else { found };
    if is_known { found } else { NO_LEVEL }
}

#[inline(always)]
fn of_cash<const WAY: u64>(minus: f64, deviation: f64) -> f64 {
    let (density, cdf) = density_and_cdf(minus);
    if WAY == BY_SLOPES { density / deviation } else { cdf }
}

#[inline(always)]
fn of_asset<const WAY: u64>(plus: f64, deviation: f64) -> f64 {
    let (density, cdf) = density_and_cdf(if WAY == BY_VALUES_BELOW { -plus } else { plus });
    if WAY == BY_SLOPES { cdf + density / deviation } else { cdf }
}

/// The premium: the value of exercise beyond the curve of the boundary, without the endless years.
#[inline(always)]
pub fn premium(put: &Put, curve: &Curve) -> Premium {
    if put.endless_years > 0.0 { weigh::<true>(put, curve) } else { weigh::<false>(put, curve) }
}

#[inline(always)]
fn weigh<const LATER: bool>(put: &Put, curve: &Curve) -> Premium {
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
            let left = if LATER { put.endless_years + left } else { left };
            let deviation = if LATER { volatility * left.sqrt() } else { spread * sine };
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
