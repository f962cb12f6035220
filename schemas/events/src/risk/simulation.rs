//! Questions for a simulation.

use serde::{Deserialize, Serialize};

use super::{Asset, BarrierKind, Matrix, OptionKind, Precision};
use crate::wire::{Wire, wire_enum};

/// Price of an option by Monte Carlo: assets follow geometric Brownian motions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SimulationProblem {
    /// One asset; of a basket, up to 64.
    pub assets: Vec<Asset>,
    /// Correlation matrix by rows, for baskets; empty for one asset.
    #[serde(default)]
    pub correlations: Matrix,
    /// What is paid.
    pub contract: Contract,
    /// Years until expiry, from 3e-9 to 60.
    pub expiry_years: f64,
    /// Steps of equal length, from 1 to 65,536: the fixings of an Asian, the exercise dates of an American.
    /// Other contracts need one only. 0 of an American that is not simulated.
    #[serde(default)]
    pub steps: i32,
    /// What paths are computed in.
    #[serde(default)]
    pub precision: Precision,
    /// Where random numbers come from.
    #[serde(default)]
    pub sampling: Sampling,
    /// Whether a sample is a pair of paths that mirror each other; not with SOBOL.
    #[serde(default)]
    pub antithetic: bool,
    /// Whether delta, gamma, vega, theta and rho are wanted as well; of a basket, the first three of each asset.
    #[serde(default)]
    pub greeks: bool,
    /// Most samples, rounded up to whole blocks of 512, of SOBOL to 32 of them; with a wanted standard error
    /// fewer may do. 0 of an American where nothing of a simulation is asked for: then it may be exercised at any
    /// time, and is priced without one.
    #[serde(default)]
    pub paths_max: i64,
    /// Stop at the first check (the samples double from one to the next) at which the standard error of the
    /// price is no greater; null: take all samples.
    #[serde(default)]
    pub standard_error: Option<f64>,
}

/// Paid on the price at expiry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct European {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
}

/// Paid on the arithmetic mean of the prices at the ends of all steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Asian {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
}

/// Paid on the price at expiry, if a barrier, watched all the time, is touched or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
    /// Direction, in or out.
    pub barrier_kind: BarrierKind,
    /// The barrier.
    pub barrier: f64,
}

/// Paid on the greatest (fixed call, floating put) or least price (fixed put, floating call), watched all the
/// time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Lookback {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike; null: the price at expiry takes its place, a floating strike.
    #[serde(default)]
    pub strike: Option<f64>,
}

/// Paid on the weighted sum of the prices of all assets at expiry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Basket {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
    /// A weight for each asset.
    pub weights: Vec<f64>,
}

/// Paid on the price at any step at which the holder exercises, by least squares (Longstaff and Schwartz), or at
/// any time, by the boundary of exercise, where no simulation is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct American {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
}

/// The payoff of an option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Contract {
    /// Paid on the price at expiry.
    European(European),
    /// Paid on the arithmetic mean of the prices at the ends of all steps.
    Asian(Asian),
    /// Paid on the price at expiry, if a barrier, watched all the time, is touched or not.
    Barrier(Barrier),
    /// Paid on the greatest (fixed call, floating put) or least price (fixed put, floating call), watched all
    /// the time.
    Lookback(Lookback),
    /// Paid on the weighted sum of the prices of all assets at expiry.
    Basket(Basket),
    /// Paid on the price at any step at which the holder exercises, by least squares (Longstaff and Schwartz), or at
    /// any time, by the boundary of exercise, where no simulation is asked for.
    American(American),
}

/// Where random numbers come from: PHILOX (pseudo-random) or SOBOL (low discrepancy, by Joe and Kuo,
/// randomised, paths by a Brownian bridge).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Sampling {
    /// Pseudo-random.
    #[serde(alias = "philox")]
    #[default]
    Philox,
    /// Low discrepancy.
    #[serde(alias = "sobol")]
    Sobol,
}

wire_enum!(
    "Which touch does what: the price rises (UP) or falls (DOWN) to the barrier, and the option ends (OUT) or begins (IN) by that.",
    BarrierKind { 0 => UpOut, 1 => UpIn, 2 => DownOut, 3 => DownIn });
wire_enum!(
    "What paths are computed in: F64, or MIXED (paths in f32, sums in f64), which is faster.",
    Precision { 0 => F64, 1 => Mixed });
