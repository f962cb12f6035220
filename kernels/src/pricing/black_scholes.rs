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
use crate::isa::{Isa, Work};
use crate::math::{INVERSE_SQRT_TWO_PI, Quotient, exp, exp_within, mills_of_both};

/// Columns of what is computed of an option.
pub(crate) const GREEK_COLUMNS: usize = 8;

/// Options side by side in a hot loop.
pub(crate) const LANES: usize = 64;

/// Price and Greeks, a column each; units are those of the module's table.
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
    /// Prices.
    price = 0;
    /// By spot.
    delta = 1;
    /// By spot, twice.
    gamma = 2;
    /// By volatility.
    vega = 3;
    /// By time that passes, per year.
    theta = 4;
    /// By the rate.
    rho = 5;
    /// By spot and volatility.
    vanna = 6;
    /// By volatility, twice.
    volga = 7;
}

impl Greeks {
    /// Adds those of some options, in order.
    pub fn add(&mut self, isa: Isa, options: &Options, range: Range<usize>) {
        self.columns.iter_mut().for_each(|column| column.reserve(range.len()));
        isa.run(Batch { options, range, greeks: self });
    }

    /// Adds those of others behind these.
    pub fn append(&mut self, others: &Greeks) {
        for (column, other) in self.columns.iter_mut().zip(&others.columns) {
            column.extend_from_slice(other);
        }
    }

    /// Forgets them all.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
    }
}

struct Batch<'a> {
    options: &'a Options,
    range: Range<usize>,
    greeks: &'a mut Greeks,
}

impl Work for Batch<'_> {
    #[inline(always)]
    fn run(self) {
        let Batch { options, range, greeks } = self;
        let (mut found, mut rest) = ([[0.0; LANES]; GREEK_COLUMNS], Rest::NONE);
        for first in range.clone().step_by(LANES) {
            let count = LANES.min(range.end - first);
            of_options(&load(options, first, count, &mut rest), &mut found);
            for (column, found) in greeks.columns.iter_mut().zip(&found) {
                column.extend_from_slice(&found[..count]);
            }
        }
    }
}

/// A column of some options; lanes without one have harmless numbers.
type Column = [f64; LANES];

/// Some options.
pub(crate) struct Given<'a>([&'a Column; OPTION_COLUMNS]);

impl Given<'_> {
    #[inline(always)]
    pub(crate) fn lane(&self, lane: usize) -> [f64; OPTION_COLUMNS] {
        let Given([sign, spot, strike, rate, carry, volatility, years]) = self;
        [sign[lane], spot[lane], strike[lane], rate[lane], carry[lane], volatility[lane], years[lane]]
    }
}

/// Columns that are not full.
pub(crate) struct Rest([Column; OPTION_COLUMNS]);

impl Rest {
    pub(crate) const NONE: Rest = Rest([[1.0; LANES]; OPTION_COLUMNS]);
}

/// Options from the first on, where they are, or the last of them as a copy.
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

/// Price and Greeks of options side by side. By `S·e^{−qT}·φ(d₁) = K·e^{−rT}·φ(d₂)` both legs take one exponential function:
/// that of whichever of `d₁` and `d₂` is nearer to 0. `1/σ` is `√T / (σ√T)`. One loop for each costly function, so that the next
/// lanes need not wait for all of the steps of these.
#[inline(always)]
fn of_options(given: &Given, found: &mut [[f64; LANES]; GREEK_COLUMNS]) {
    let Given([sign, spot, strike, rate, carry, volatility, years]) = given;
    let (mut d1, mut d2) = ([0.0; LANES], [0.0; LANES]);
    let (mut root, mut deviation, mut inverse) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
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
    let (mut asset_whole, mut cash_whole, mut dense) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        asset_whole[lane] = spot[lane] * exp_within(-(carry[lane] * years[lane]));
    }
    for lane in 0..LANES {
        cash_whole[lane] = strike[lane] * exp_within(-(rate[lane] * years[lane]));
    }
    for lane in 0..LANES {
        let is_asset = d1[lane].abs() < d2[lane].abs();
        let near = if is_asset { d1[lane] } else { d2[lane] };
        dense[lane] = exp(-0.5 * (near * near)) * if is_asset { asset_whole[lane] } else { cash_whole[lane] };
    }
    let (mut asset, mut cash) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let [mills1, mills2] = mills_of_both(d1[lane].abs(), d2[lane].abs());
        let (below1, below2) = (dense[lane] * mills1, dense[lane] * mills2);
        let is_in1 = sign[lane] * d1[lane] > 0.0;
        let is_in2 = sign[lane] * d2[lane] > 0.0;
        asset[lane] = if is_in1 { asset_whole[lane] - below1 } else { below1 };
        cash[lane] = if is_in2 { cash_whole[lane] - below2 } else { below2 };
    }
    for lane in 0..LANES {
        let (sign, volatility, root) = (sign[lane], volatility[lane], root[lane]);
        let (d1, d2, asset, cash, inverse) = (d1[lane], d2[lane], asset[lane], cash[lane], inverse[lane]);
        let (by_deviation, by_spot) = (spot[lane] * inverse, deviation[lane] * inverse);
        let dense = INVERSE_SQRT_TWO_PI * dense[lane];
        let vega = dense * root;
        found[0][lane] = sign * (asset - cash);
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
