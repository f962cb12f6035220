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
pub(crate) const LANES: usize = 32;

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
        let added = self.columns[0].len();
        self.columns.iter_mut().for_each(|column| column.resize(added + range.len(), 0.0));
        isa.run(Batch { options, range, added, greeks: self });
    }

    /// Forgets them all.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
    }
}

struct Batch<'a> {
    options: &'a Options,
    range: Range<usize>,
    added: usize,
    greeks: &'a mut Greeks,
}

impl Work for Batch<'_> {
    #[inline(always)]
    fn run(self) {
        let Batch { options, range, added, greeks } = self;
        for first in range.clone().step_by(LANES) {
            let count = LANES.min(range.end - first);
            let given = load(options, first, count);
            let mut found = [[0.0; LANES]; GREEK_COLUMNS];
            for lane in 0..LANES {
                let numbers = of_option(given.lane(lane));
                for (column, number) in found.iter_mut().zip(numbers) {
                    column[lane] = number;
                }
            }
            let to = added + first - range.start;
            for (column, found) in greeks.columns.iter_mut().zip(&found) {
                column[to..to + count].copy_from_slice(&found[..count]);
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

/// Price and Greeks of one option.
#[inline(always)]
fn of_option(
    [sign, spot, strike, rate, carry, volatility, years]: [f64; OPTION_COLUMNS],
) -> [f64; GREEK_COLUMNS] {
    let root = years.sqrt();
    let deviation = volatility * root;
    let drift = (rate - carry + 0.5 * (volatility * volatility)) * years;
    let d1 = (ln_of_positive(spot / strike) + drift) / deviation;
    let d2 = d1 - deviation;
    let spot_factor = exp(-(carry * years));
    let (density, cdf1) = density_and_cdf(sign * d1);
    let (_, cdf2) = density_and_cdf(sign * d2);
    let asset = spot * spot_factor * cdf1;
    let cash = strike * exp(-(rate * years)) * cdf2;
    let dense = spot_factor * density;
    let vega = spot * dense * root;
    [
        sign * (asset - cash),
        sign * (spot_factor * cdf1),
        dense / (spot * deviation),
        vega,
        sign * (carry * asset - rate * cash) - 0.5 * (spot * dense * volatility) / root,
        sign * (years * cash),
        -(dense * d2 / volatility),
        vega * (d1 * d2) / volatility,
    ]
}
