//! The volatility at which an option has a given price.
//!
//! By symmetry every option can be treated as an out-of-the-money call with forward 1. Let `x = −|ln(F/K)|`, let `b` be
//! the price in units of `e^{−rT}·√(FK)`, without the intrinsic value of an option in the money, and let `s = σ√T`:
//!
//! ```text
//! b(s) = e^{x/2}·Φ(d₁) − e^{−x/2}·Φ(d₂),   d₁ = x/s + s/2,   d₂ = x/s − s/2.
//! ```
//!
//! Up to its inflection at `s² = 2|x|`, where `d₁ = 0`, `ln b` is nearly linear in `1/s²`; beyond it, `ln(e^{x/2} − b)`
//! is concave and falls. With `m(y) = Φ(−y)·exp(y²/2)` both are `ln(m(|d₁|) ∓ m(−d₂)) − (d₁² + d₂²)/4`, where nothing
//! underflows. Newton's method on them from the inflection converges, and a bracket guarantees that.

use std::ops::Range;

use thiserror::Error;

use super::black_scholes::{Discounted, Given, LANES, Rest, load};
use super::options::{OPTION_COLUMNS, Options};
use crate::isa::{HotLoop, Isa};
use crate::math::{Quotient, exp, ln_of_positive, mills};

/// Reasons for which no volatility gives the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoVolatility {
    /// The price is not above the value of the option at a volatility of 0.
    #[error(
        "the price is not above what the option is worth without volatility: check price, rate and expiry"
    )]
    TooLow,
    /// The price is not below the discounted asset, or for a put the discounted strike.
    #[error("the price is not below the discounted asset (of a put: strike): check price, rate and expiry")]
    TooHigh,
    /// The price is not a finite number.
    #[error("the price is not a finite number: give one")]
    NotFinite,
}

/// Placeholders in a column of volatilities for a price that is too low, too high, or not finite.
const TOO_LOW: f64 = -1.0;
const TOO_HIGH: f64 = -2.0;
const NOT_FINITE: f64 = -3.0;

/// Most steps of Newton's method and of bisection together.
const STEPS_MAX: usize = 100;
/// Relative size of a step from which on no further one is needed, because its size would be the square of this.
const LAST_STEP: f64 = 1e-8;
/// The greatest `|d₁|`: beyond it, the difference of a price from its limit is not a normal number.
const D_MAX: f64 = 38.5;
/// Least `s` at which a search begins.
const S_MIN: f64 = 1e-12;
/// Least normalised price that can be distinguished from 0.
const B_MIN: f64 = 1e-290;
const SQRT_TWO_PI: f64 = 2.506_628_274_631_000_7;

/// Adds the volatilities at which some options have the given prices, in order; the options' own volatility does not
/// matter.
pub fn implied_volatility(
    isa: Isa,
    options: &Options,
    range: Range<usize>,
    prices: &[f64],
    out: &mut Vec<Result<f64, NoVolatility>>,
) {
    assert_eq!(prices.len(), range.len(), "a price for each option");
    let mut volatilities = vec![0.0; range.len()];
    isa.run(ImpliedLoop { options, range, prices, volatilities: &mut volatilities });
    out.extend(volatilities.into_iter().map(volatility_of));
}

/// Converts a number in a column of volatilities to the volatility, or the reason why there is none.
pub(crate) fn volatility_of(number: f64) -> Result<f64, NoVolatility> {
    if number > 0.0 {
        Ok(number)
    } else if number == TOO_LOW {
        Err(NoVolatility::TooLow)
    } else if number == TOO_HIGH {
        Err(NoVolatility::TooHigh)
    } else {
        Err(NoVolatility::NotFinite)
    }
}

struct ImpliedLoop<'a> {
    options: &'a Options,
    range: Range<usize>,
    prices: &'a [f64],
    volatilities: &'a mut [f64],
}

impl HotLoop for ImpliedLoop<'_> {
    #[inline(always)]
    fn run(self) {
        let ImpliedLoop { options, range, prices, volatilities } = self;
        let mut rest = Rest::NONE;
        for first in range.clone().step_by(LANES) {
            let count = LANES.min(range.end - first);
            let given = load(options, first, count, &mut rest);
            let at = first - range.start;
            let mut wanted = [f64::NAN; LANES];
            wanted[..count].copy_from_slice(&prices[at..at + count]);
            volatilities[at..at + count].copy_from_slice(&solve(&given, &wanted)[..count]);
        }
    }
}

/// Takes steps for options side by side until all are solved; each stops by itself.
#[inline(always)]
fn solve(given: &Given, prices: &[f64; LANES]) -> [f64; LANES] {
    let (mut x, mut side, mut target) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let (mut s, mut least, mut greatest) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let mut moves = [0_u64; LANES];
    let mut failure = [0.0; LANES];
    for lane in 0..LANES {
        let search = Search::new(given.lane(lane), prices[lane]);
        (x[lane], side[lane], target[lane]) = (search.x, search.side, search.target);
        (s[lane], least[lane], greatest[lane]) = (search.s, search.least, search.greatest);
        failure[lane] = search.failure;
        moves[lane] = u64::from(search.failure == 0.0);
    }
    for _ in 0..STEPS_MAX {
        let mut moving = 0;
        for lane in 0..LANES {
            let search = Search {
                x: x[lane],
                side: side[lane],
                target: target[lane],
                s: s[lane],
                least: least[lane],
                greatest: greatest[lane],
                failure: 0.0,
            };
            let next = search.step();
            let is_moving = moves[lane] == 1;
            moves[lane] &= u64::from((next.s - s[lane]).abs() > LAST_STEP * s[lane]);
            s[lane] = if is_moving { next.s } else { s[lane] };
            least[lane] = next.least;
            greatest[lane] = next.greatest;
            moving |= moves[lane];
        }
        if moving == 0 {
            break;
        }
    }
    let mut volatilities = [0.0; LANES];
    for lane in 0..LANES {
        let [.., years] = given.lane(lane);
        volatilities[lane] = if failure[lane] == 0.0 { s[lane] / years.sqrt() } else { failure[lane] };
    }
    volatilities
}

/// The search for the `s` of one option.
#[derive(Clone, Copy)]
struct Search {
    x: f64,
    /// −1 below the inflection, 1 above it.
    side: f64,
    /// `ln b` below the inflection, `ln(e^{x/2} − b)` above it.
    target: f64,
    s: f64,
    least: f64,
    greatest: f64,
    /// The placeholder for the reason why there is no volatility; 0 if there is one.
    failure: f64,
}

impl Search {
    #[inline(always)]
    fn new([sign, spot, strike, rate, carry, _, years]: [f64; OPTION_COLUMNS], price: f64) -> Search {
        let Discounted { asset, cash, difference } = Discounted::new(spot, strike, rate, carry, years);
        let intrinsic = sign * difference;
        let intrinsic = if intrinsic > 0.0 { intrinsic } else { 0.0 };
        // The product of forward and strike may overflow although neither leg does.
        let b = (price - intrinsic) / (asset.sqrt() * cash.sqrt());
        let quotient = Quotient::new(spot, strike);
        let x = -(quotient.ln(1.0 / quotient.sum) + (rate - carry) * years).abs();
        let most = exp(0.5 * x);
        let inflection = (-2.0 * x).sqrt();
        let is_low = b < most * (0.5 - mills(inflection));
        let room = (D_MAX * D_MAX - 2.0 * x).sqrt();
        let start = if inflection > S_MIN { inflection } else { S_MIN };
        let failure = if b >= most { TOO_HIGH } else { 0.0 };
        let failure = if b < B_MIN { TOO_LOW } else { failure };
        let failure = if price.abs() < f64::INFINITY { failure } else { NOT_FINITE };
        Search {
            x,
            side: if is_low { -1.0 } else { 1.0 },
            target: ln_of_positive(if is_low { b } else { most - b }),
            s: start,
            least: if is_low { -x / D_MAX } else { 0.0 },
            greatest: if is_low { start } else { D_MAX + room },
            failure,
        }
    }

    /// Takes one step within the bracket, which becomes narrower.
    #[inline(always)]
    fn step(self) -> Search {
        let Search { x, side, target, s, least, greatest, .. } = self;
        let (h, t) = (x / s, 0.5 * s);
        let both = mills((h + t).abs()) + side * mills(t - h);
        let excess = ln_of_positive(both) - 0.5 * (h * h + t * t) - target;
        let is_beyond = side * excess < 0.0;
        let least = if is_beyond { least } else { s };
        let greatest = if is_beyond { s } else { greatest };
        let newton = excess * (SQRT_TWO_PI * both);
        let next = if side < 0.0 { s / (1.0 + 2.0 * newton / s).sqrt() } else { s + newton };
        let is_within = next >= least && next <= greatest;
        Search { s: if is_within { next } else { 0.5 * (least + greatest) }, least, greatest, ..self }
    }
}
