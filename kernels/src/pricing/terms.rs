//! Constants of a simulation, in a form common to all kinds of contract, with their derivatives by spot, volatility,
//! years and rate.

use super::options::{AssetMarket, OptionKind};
use super::simulation::{BarrierKind, Contract, SimulationSpec};
use crate::math::{Number, RATE, SPOT, Term, VOLATILITY, YEARS};

/// Constants of a simulation; constants that it does not use are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Terms {
    pub spot: Term,
    pub strike: f64,
    /// 1 for a call, −1 for a put.
    pub sign: f64,
    /// Drift of ln S in a step.
    pub drift: Term,
    /// Standard deviation of ln S in a step.
    pub diffusion: Term,
    pub steps: f64,
    /// `ln(barrier / spot)`.
    pub barrier: Term,
    /// 1 if the barrier is not touched before the first step, else 0.
    pub untouched: f64,
    /// Weights of the payoff: a constant, and a factor for the probability that the barrier is not touched.
    pub weights: [f64; 2],
    /// 1 for the greatest price, −1 for the least.
    pub side: f64,
    pub is_floating: bool,
    pub discount: Term,
    /// Expectation of the control, not discounted.
    pub control: Term,
}

impl Terms {
    /// The constants of a specification whose numbers are in range.
    pub fn new(spec: &SimulationSpec) -> Self {
        match spec.contract {
            Contract::European { kind, strike } => of_steps(spec, kind, strike),
            Contract::Asian { kind, strike } => asian(spec, kind, strike),
            Contract::Barrier { kind, strike, barrier_kind, barrier } => {
                of_barrier(spec, kind, strike, barrier_kind, barrier)
            }
            Contract::Lookback { kind, strike } => lookback(spec, kind, strike),
        }
    }

    /// Standard deviation of ln S at expiry.
    pub fn deviation(&self) -> f64 {
        self.diffusion.value * self.steps.sqrt()
    }

    /// Expectation of ln S/S₀ at expiry.
    pub fn mean(&self) -> f64 {
        self.drift.value * self.steps
    }

    /// Factor of a path's contribution to gamma in the money: `±K / (S₀² · variance of ln S)`. It is multiplied by the
    /// deviation of ln S/S₀ from its expectation.
    pub fn gamma_slope(&self) -> f64 {
        let by_spot = self.spot.value * self.deviation();
        self.sign * self.strike / (by_spot * by_spot)
    }

    /// The factor for the probability of a touch and for the extreme within a step, made from the square of the
    /// diffusion.
    pub fn factor(&self) -> Term {
        let square = self.diffusion * self.diffusion;
        if self.side == 0.0 { Term::of(-2.0) / square } else { square.scaled(-2.0) }
    }
}

fn of_steps(spec: &SimulationSpec, kind: OptionKind, strike: f64) -> Terms {
    let AssetMarket { spot, rate, dividend_yield, volatility } = spec.market;
    let steps = f64::from(spec.steps);
    let volatility = Term::parameter(volatility, VOLATILITY);
    let rate = Term::parameter(rate, RATE);
    let years = Term::parameter(spec.expiry_years, YEARS);
    let step_years = years / Term::of(steps);
    let drift = rate - Term::of(dividend_yield) - (volatility * volatility).scaled(0.5);
    Terms {
        spot: Term::parameter(spot, SPOT),
        strike,
        sign: kind.sign(),
        drift: drift * step_years,
        diffusion: volatility * step_years.sqrt(),
        steps,
        discount: (-(rate * years)).exp(),
        ..Terms::default()
    }
}

/// Terms of an Asian option. Its control is on the geometric mean of the same prices, whose logarithm is normal (Kemna
/// and Vorst 1990).
fn asian(spec: &SimulationSpec, kind: OptionKind, strike: f64) -> Terms {
    let terms = of_steps(spec, kind, strike);
    let Terms { drift, diffusion, steps, .. } = terms;
    let mean = drift.scaled(steps + 1.0).scaled(0.5);
    let deviation = diffusion.scaled(((steps + 1.0) * (2.0 * steps + 1.0) / (6.0 * steps)).sqrt());
    Terms { control: lognormal_payoff(&terms, mean, deviation), ..terms }
}

/// Expected payoff of an option if the logarithm of its underlying over the spot is normal.
pub(crate) fn lognormal_payoff(terms: &Terms, mean: Term, deviation: Term) -> Term {
    let Terms { spot, strike, sign, .. } = *terms;
    let d2 = ((spot / Term::of(strike)).ln() + mean) / deviation;
    let forward = spot * (mean + (deviation * deviation).scaled(0.5)).exp();
    let asset = forward * (d2 + deviation).scaled(sign).normal_cdf();
    (asset - d2.scaled(sign).normal_cdf().scaled(strike)).scaled(sign)
}

fn of_barrier(
    spec: &SimulationSpec,
    kind: OptionKind,
    strike: f64,
    barrier_kind: BarrierKind,
    barrier: f64,
) -> Terms {
    let (is_up, is_out) = match barrier_kind {
        BarrierKind::UpOut => (true, true),
        BarrierKind::UpIn => (true, false),
        BarrierKind::DownOut => (false, true),
        BarrierKind::DownIn => (false, false),
    };
    let spot = spec.market.spot;
    let is_touched = if is_up { spot >= barrier } else { spot <= barrier };
    let terms = of_steps(spec, kind, strike);
    Terms {
        barrier: (Term::of(barrier) / terms.spot).ln(),
        untouched: if is_touched { 0.0 } else { 1.0 },
        weights: if is_out { [0.0, 1.0] } else { [1.0, -1.0] },
        ..terms
    }
}

fn lookback(spec: &SimulationSpec, kind: OptionKind, strike: Option<f64>) -> Terms {
    let is_floating = strike.is_none();
    let side = if is_floating { -kind.sign() } else { kind.sign() };
    Terms { side, is_floating, ..of_steps(spec, kind, strike.unwrap_or(spec.market.spot)) }
}
