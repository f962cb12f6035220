//! Price and Greeks of European options, after Black, Scholes and Merton (1973).
//!
//! With `w = +1` for a call and `−1` for a put, `d₁ = (ln(S/K) + (r − q + σ²/2)·T) / (σ√T)` and `d₂ = d₁ − σ√T`:
//!
//! | column | formula | unit |
//! | --- | --- | --- |
//! | price | `w·(S·e^{−qT}·Φ(w·d₁) − K·e^{−rT}·Φ(w·d₂))` | price |
//! | delta | `w·e^{−qT}·Φ(w·d₁)` | price per price |
//! | gamma | `e^{−qT}·φ(d₁) / (S·σ√T)` | delta per price |
//! | vega | `S·e^{−qT}·φ(d₁)·√T` | price per 1.0 of volatility |
//! | theta | `−S·e^{−qT}·φ(d₁)·σ/(2√T) + w·(q·S·e^{−qT}·Φ(w·d₁) − r·K·e^{−rT}·Φ(w·d₂))` | price per year that passes |
//! | rho | `w·K·T·e^{−rT}·Φ(w·d₂)` | price per 1.0 of the rate |
//! | vanna | `−e^{−qT}·φ(d₁)·d₂/σ` | delta per 1.0 of volatility |
//! | volga | `vega·d₁·d₂/σ` | vega per 1.0 of volatility |

use std::ops::Range;

use super::options::{OPTION_COLUMNS, Options};
use crate::isa::{HotLoop, Isa, prefetch_behind};
use crate::math::{Exp, INVERSE_SQRT_TWO_PI, MILLS_MIN, Mills, Quotient, exp};

/// Number of columns that are computed for an option.
pub(crate) const GREEK_COLUMNS: usize = 8;

/// Number of options that a hot loop computes side by side.
pub(crate) const LANES: usize = 64;

/// Price and Greeks, a column each; the module's table has the units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Greeks {
    pub(crate) columns: [Vec<f64>; GREEK_COLUMNS],
}

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        impl Greeks {
            $($(#[$doc])* pub fn $name(&self) -> &[f64] {
                &self.columns[$number]
            })*
        }
    };
}

columns! {
    /// Price.
    price = 0;
    /// Derivative of the price by the spot.
    delta = 1;
    /// Second derivative by the spot.
    gamma = 2;
    /// Derivative by the volatility.
    vega = 3;
    /// Derivative by passing time, per year.
    theta = 4;
    /// Derivative by the rate.
    rho = 5;
    /// Second derivative by spot and volatility.
    vanna = 6;
    /// Second derivative by the volatility.
    volga = 7;
}

impl Greeks {
    /// Adds price and Greeks of some options, in order.
    pub fn add(&mut self, isa: Isa, options: &Options, range: Range<usize>) {
        self.columns.iter_mut().for_each(|column| column.reserve(range.len()));
        isa.run(OptionsLoop { options, range, greeks: self });
    }

    /// Appends the columns of others.
    pub fn append(&mut self, others: &Greeks) {
        for (column, other) in self.columns.iter_mut().zip(&others.columns) {
            column.extend_from_slice(other);
        }
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
    }
}

/// The hot loop over some options.
struct OptionsLoop<'a> {
    options: &'a Options,
    range: Range<usize>,
    greeks: &'a mut Greeks,
}

impl HotLoop for OptionsLoop<'_> {
    #[inline(always)]
    fn run(self) {
        let OptionsLoop { options, range, greeks } = self;
        let (mut steps, mut rest) = (Intermediates::ZERO, Rest::NONE);
        for first in range.clone().step_by(LANES) {
            let count = LANES.min(range.end - first);
            for column in &greeks.columns {
                prefetch_behind(column, LANES);
            }
            of_options(&load(options, first, count, &mut rest), &mut steps);
            for (column, found) in greeks.columns.iter_mut().zip(&steps.found) {
                column.extend_from_slice(&found[..count]);
            }
        }
    }
}

/// A column of options side by side; lanes without an option have harmless numbers.
type Column = [f64; LANES];

/// The columns of options side by side.
pub(crate) struct Given<'a>([&'a Column; OPTION_COLUMNS]);

impl Given<'_> {
    #[inline(always)]
    pub(crate) fn lane(&self, lane: usize) -> [f64; OPTION_COLUMNS] {
        let Given([sign, spot, strike, rate, carry, volatility, years]) = self;
        [sign[lane], spot[lane], strike[lane], rate[lane], carry[lane], volatility[lane], years[lane]]
    }
}

/// Copies of the last options, if they are too few to fill the columns.
pub(crate) struct Rest([Column; OPTION_COLUMNS]);

impl Rest {
    pub(crate) const NONE: Rest = Rest([[1.0; LANES]; OPTION_COLUMNS]);
}

/// The columns of options from `first` on: in place, or copied to `rest` if too few remain.
#[inline(always)]
pub(crate) fn load<'a>(options: &'a Options, first: usize, count: usize, rest: &'a mut Rest) -> Given<'a> {
    if count < LANES {
        for (lanes, column) in rest.0.iter_mut().zip(&options.columns) {
            lanes[..count].copy_from_slice(&column[first..first + count]);
        }
        return Given(rest.0.each_ref());
    }
    Given(options.columns.each_ref().map(|column| column[first..].first_chunk().expect("as many are there")))
}

/// Bound on `d₁` and `d₂`: if both are farther from 0 and on different sides, `σ√T` exceeds 4.
const DEEP: f64 = -2.0;

/// Intermediate results of options side by side. They are allocated once, because writing zeros would cost as much as a
/// step. They are aligned, because a vector that crosses a cache line would be written twice.
#[repr(align(64))]
struct Intermediates {
    d1: Column,
    d2: Column,
    root: Column,
    deviation: Column,
    inverse: Column,
    asset_whole: Column,
    cash_whole: Column,
    forward: Column,
    near: Column,
    whole: Column,
    dense: Column,
    price: Column,
    asset: Column,
    cash: Column,
    found: [Column; GREEK_COLUMNS],
}

impl Intermediates {
    const ZERO: Intermediates = {
        let zero = [0.0; LANES];
        Intermediates {
            d1: zero,
            d2: zero,
            root: zero,
            deviation: zero,
            inverse: zero,
            asset_whole: zero,
            cash_whole: zero,
            forward: zero,
            near: zero,
            whole: zero,
            dense: zero,
            price: zero,
            asset: zero,
            cash: zero,
            found: [zero; GREEK_COLUMNS],
        }
    };
}

/// Values that do not depend on volatility: those of the asset, of the cash paid for it, and their difference. The
/// difference keeps its digits near expiry, because it is computed from `S − K` and the discounts.
pub(crate) struct Discounted {
    pub asset: f64,
    pub cash: f64,
    pub difference: f64,
}

impl Discounted {
    #[inline(always)]
    pub fn new(spot: f64, strike: f64, rate: f64, carry: f64, years: f64) -> Self {
        let of_asset = Exp::new(-(carry * years));
        let of_cash = Exp::new(-(rate * years));
        let (asset, cash) = (spot * of_asset.power, strike * of_cash.power);
        let (asset_rest, cash_rest) = (asset * of_asset.less_1, cash * of_cash.less_1);
        Self {
            asset: asset + asset_rest,
            cash: cash + cash_rest,
            difference: (asset - cash) + (asset_rest - cash_rest),
        }
    }
}

/// Price and Greeks of options side by side. Because `S·e^{−qT}·φ(d₁) = K·e^{−rT}·φ(d₂)`, both legs need only one
/// exponential function: that of `d₁` or `d₂`, whichever is nearer to 0. `1/σ` is `√T / (σ√T)`. Each costly function
/// has a loop of its own, so that the next lanes need not wait for all of its steps.
///
/// Near expiry the legs are nearly equal, and their difference would lose most of its digits. So the price of the
/// option out of the money is computed from the decrease of Mills's ratio between the legs. The option out of the money
/// is the call if the strike is above the forward, else the put. The other option has the same value plus its value
/// without volatility.
#[inline(always)]
fn of_options(given: &Given, steps: &mut Intermediates) {
    let Given([sign, spot, strike, rate, carry, volatility, years]) = given;
    let Intermediates { d1, d2, root, deviation, inverse, .. } = steps;
    for lane in 0..LANES {
        let variance = volatility[lane] * volatility[lane];
        let drift = (rate[lane] - carry[lane] + 0.5 * variance) * years[lane];
        root[lane] = years[lane].sqrt();
        deviation[lane] = volatility[lane] * root[lane];
        let quotient = Quotient::new(spot[lane], strike[lane]);
        let below = spot[lane] * deviation[lane];
        let inverse_of_both = 1.0 / (below * quotient.sum);
        inverse[lane] = quotient.sum * inverse_of_both;
        d1[lane] = (quotient.ln(below * inverse_of_both) + drift) * (spot[lane] * inverse[lane]);
        d2[lane] = d1[lane] - deviation[lane];
    }
    let Intermediates { d1, d2, asset_whole, cash_whole, forward, near, whole, .. } = steps;
    for lane in 0..LANES {
        let given = Discounted::new(spot[lane], strike[lane], rate[lane], carry[lane], years[lane]);
        let is_call = d1[lane] + d2[lane] < 0.0;
        near[lane] = if is_call { -d1[lane] } else { d2[lane] };
        whole[lane] = if is_call { given.asset } else { given.cash };
        (asset_whole[lane], cash_whole[lane], forward[lane]) = (given.asset, given.cash, given.difference);
    }
    let Intermediates { near, whole, dense, .. } = steps;
    for lane in 0..LANES {
        dense[lane] = exp(-0.5 * (near[lane] * near[lane])) * whole[lane];
    }
    let Intermediates { d1, d2, deviation, asset_whole, cash_whole, forward, .. } = steps;
    let (near, whole, dense) = (&steps.near, &steps.whole, &steps.dense);
    let (price, asset, cash) = (&mut steps.price, &mut steps.asset, &mut steps.cash);
    for lane in 0..LANES {
        let (d1, d2, near, deviation) = (d1[lane], d2[lane], near[lane], deviation[lane]);
        // The option out of the money, its legs (the larger one first), and its price. They are right even if d₁ and d₂
        // are rounded to one number.
        let is_call = d1 + d2 < 0.0;
        let far = if is_call { -d2 } else { d1 };
        let is_beyond = near < MILLS_MIN;
        let distance = if is_beyond { far + near } else { deviation };
        let from = if is_beyond { -near } else { near };
        let mills = Mills::scaled(from, far, distance, dense[lane]);
        let larger = if is_beyond { whole[lane] - mills.near } else { mills.near };
        let smaller = mills.far;
        let outer = if is_beyond { larger - smaller } else { mills.fall };
        // Price and legs of the requested option.
        let is_outer = (sign[lane] > 0.0) == is_call;
        let (outer_asset, outer_cash) = if is_call { (larger, smaller) } else { (smaller, larger) };
        let inner = sign[lane] * forward[lane] + outer;
        price[lane] = if is_outer { outer } else { inner };
        // A leg of the other option is the whole minus this option's leg. If that is small, it is computed from Mills's
        // ratio directly.
        let rest = if near < DEEP { mills.near } else { whole[lane] - larger };
        let lesser = if is_call { cash_whole[lane] - smaller } else { asset_whole[lane] - smaller };
        let (inner_asset, inner_cash) = if is_call { (rest, lesser) } else { (lesser, rest) };
        asset[lane] = if is_outer { outer_asset } else { inner_asset };
        cash[lane] = if is_outer { outer_cash } else { inner_cash };
    }
    let Intermediates { d1, d2, root, deviation, inverse, dense, price, asset, cash, found, .. } = steps;
    for lane in 0..LANES {
        let (sign, volatility, root) = (sign[lane], volatility[lane], root[lane]);
        let (d1, d2, asset, cash, inverse) = (d1[lane], d2[lane], asset[lane], cash[lane], inverse[lane]);
        let (by_deviation, by_spot) = (spot[lane] * inverse, deviation[lane] * inverse);
        let dense = INVERSE_SQRT_TWO_PI * dense[lane];
        let vega = dense * root;
        found[0][lane] = price[lane];
        found[1][lane] = sign * (asset * by_spot);
        found[2][lane] = dense * by_spot * inverse;
        found[3][lane] = vega;
        found[4][lane] = sign * (carry[lane] * asset - rate[lane] * cash)
            - 0.5 * (dense * volatility) * (volatility * by_deviation);
        found[5][lane] = sign * (years[lane] * cash);
        found[6][lane] = -(dense * by_spot * d2) * (root * by_deviation);
        found[7][lane] = vega * (d1 * d2) * (root * by_deviation);
    }
}
