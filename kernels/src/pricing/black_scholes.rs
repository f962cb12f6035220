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
use crate::math::{density_and_cdf, exp, ln_of_positive};

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
        let mut found = [[0.0; LANES]; GREEK_COLUMNS];
        for first in range.clone().step_by(LANES) {
            let count = LANES.min(range.end - first);
            of_options(&load(options, first, count), &mut found);
            for (column, found) in greeks.columns.iter_mut().zip(&found) {
                column.extend_from_slice(&found[..count]);
            }
        }
    }
}

/// Some options; lanes without one have harmless numbers.
pub(crate) struct Given([[f64; LANES]; OPTION_COLUMNS]);

impl Given {
    #[inline(always)]
    pub(crate) fn lane(&self, lane: usize) -> [f64; OPTION_COLUMNS] {
        [
            self.0[0][lane],
            self.0[1][lane],
            self.0[2][lane],
            self.0[3][lane],
            self.0[4][lane],
            self.0[5][lane],
            self.0[6][lane],
        ]
    }
}

#[inline(always)]
pub(crate) fn load(options: &Options, first: usize, count: usize) -> Given {
    let mut given = Given([[1.0; LANES]; OPTION_COLUMNS]);
    for (lanes, column) in given.0.iter_mut().zip(&options.columns) {
        lanes[..count].copy_from_slice(&column[first..first + count]);
    }
    given
}

/// Price and Greeks of options side by side; `1/σ` is `√T / (σ√T)`, and `1/√T` is `σ / (σ√T)`. One loop for each costly function,
/// so that the next lanes need not wait for all of the steps of these.
#[inline(always)]
fn of_options(given: &Given, found: &mut [[f64; LANES]; GREEK_COLUMNS]) {
    let Given([sign, spot, strike, rate, carry, volatility, years]) = given;
    let mut d1 = [0.0; LANES];
    let (mut deviation, mut inverse) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let variance = volatility[lane] * volatility[lane];
        let drift = (rate[lane] - carry[lane] + 0.5 * variance) * years[lane];
        deviation[lane] = volatility[lane] * years[lane].sqrt();
        inverse[lane] = 1.0 / deviation[lane];
        d1[lane] = (ln_of_positive(spot[lane] / strike[lane]) + drift) * inverse[lane];
    }
    let (mut spot_factor, mut cash_factor) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        spot_factor[lane] = exp(-(carry[lane] * years[lane]));
    }
    for lane in 0..LANES {
        cash_factor[lane] = exp(-(rate[lane] * years[lane]));
    }
    let (mut density, mut cdf1, mut cdf2) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        (density[lane], cdf1[lane]) = density_and_cdf(sign[lane] * d1[lane]);
    }
    for lane in 0..LANES {
        (_, cdf2[lane]) = density_and_cdf(sign[lane] * (d1[lane] - deviation[lane]));
    }
    for lane in 0..LANES {
        let (sign, spot, volatility) = (sign[lane], spot[lane], volatility[lane]);
        let (d1, d2) = (d1[lane], d1[lane] - deviation[lane]);
        let root = years[lane].sqrt();
        let inverse = inverse[lane];
        let asset = spot * spot_factor[lane] * cdf1[lane];
        let cash = strike[lane] * cash_factor[lane] * cdf2[lane];
        let dense = spot_factor[lane] * density[lane];
        let vega = spot * dense * root;
        found[0][lane] = sign * (asset - cash);
        found[1][lane] = sign * (spot_factor[lane] * cdf1[lane]);
        found[2][lane] = dense / spot * inverse;
        found[3][lane] = vega;
        found[4][lane] = sign * (carry[lane] * asset - rate[lane] * cash)
            - 0.5 * (spot * dense * volatility) * (volatility * inverse);
        found[5][lane] = sign * (years[lane] * cash);
        found[6][lane] = -(dense * d2) * (root * inverse);
        found[7][lane] = vega * (d1 * d2) * (root * inverse);
    }
}
