//! Requests about an option that is simulated.

use serde::{Deserialize, Serialize};

use super::{Asset, BarrierKind, Matrix, OptionKind, Precision};
use crate::wire::{Wire, wire_enum};

/// Price of an option by Monte Carlo: assets follow geometric Brownian motions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SimulationProblem {
    /// The asset of the option; for a basket, 1 to 64 assets.
    pub assets: Vec<Asset>,
    /// Correlation matrix by rows, for a basket; empty for one asset.
    #[serde(default)]
    pub correlations: Matrix,
    /// Payoff of the option.
    pub contract: Contract,
    /// Years until expiry, from 3e-9 to 60.
    pub expiry_years: f64,
    /// Number of steps of equal length: the fixings of an Asian, the exercise dates of an American. It is 1 to 65,536;
    /// up to 1,024 for an American, and for an Asian in `MIXED`. Other contracts need one step only. 0 for an American
    /// that is not simulated.
    #[serde(default)]
    pub steps: i32,
    /// Precision of the paths.
    #[serde(default)]
    pub precision: Precision,
    /// Source of random numbers.
    #[serde(default)]
    pub sampling: Sampling,
    /// True if each sample is a pair of paths that mirror each other; not allowed with `SOBOL`.
    #[serde(default)]
    pub antithetic: bool,
    /// True if delta, gamma, vega, theta and rho are computed too. A basket has delta, gamma and vega of each asset.
    #[serde(default)]
    pub greeks: bool,
    /// Maximum number of samples, up to 268,435,456; with Greeks fewer are allowed. It is rounded up to whole blocks of
    /// 512 samples, for `SOBOL` to 32 blocks. A wanted standard error may need fewer. 0 for an American that is not
    /// simulated: it may be exercised at any time.
    #[serde(default)]
    pub paths_max: i64,
    /// Wanted standard error of the price, above 0; null: all samples are taken. Sampling stops at the first check that
    /// meets it; samples double from check to check.
    #[serde(default)]
    pub standard_error: Option<f64>,
}

/// Payoff on the price at expiry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct European {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike, from 1e-12 to 1e15.
    pub strike: f64,
}

/// Payoff on the arithmetic mean of the prices at the ends of all steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Asian {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike, from 1e-12 to 1e15.
    pub strike: f64,
}

/// Payoff on the price at expiry, provided that a barrier was touched, or that it was not. The barrier is watched all
/// the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike, from 1e-12 to 1e15.
    pub strike: f64,
    /// Direction and effect of the barrier.
    pub barrier_kind: BarrierKind,
    /// Price of the barrier, from 1e-12 to 1e15.
    pub barrier: f64,
}

/// Payoff on the greatest or the least price, watched all the time. Fixed calls and floating puts use the greatest
/// price, fixed puts and floating calls the least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lookback {
    /// Call or put.
    pub kind: OptionKind,
    /// Fixed strike, from 1e-12 to 1e15; null: the price at expiry is the strike (floating).
    #[serde(default)]
    pub strike: Option<f64>,
}

/// Payoff on the weighted sum of the prices of all assets at expiry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Basket {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike, from 1e-12 to 1e15.
    pub strike: f64,
    /// Weight of each asset, from -1e6 to 1e6.
    pub weights: Vec<f64>,
}

/// Payoff on the price at exercise. In a simulation, the holder may exercise at each step, by least squares (Longstaff
/// and Schwartz). Without one, the holder may exercise at any time, by the boundary of exercise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct American {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike, from 1e-12 to 1e15.
    pub strike: f64,
}

/// The payoff of an option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Contract {
    /// Payoff on the price at expiry.
    European(European),
    /// Payoff on the arithmetic mean of the prices at the ends of all steps.
    Asian(Asian),
    /// Payoff on the price at expiry, provided that a barrier was touched, or that it was not. The barrier is watched
    /// all the time.
    Barrier(Barrier),
    /// Payoff on the greatest or the least price, watched all the time. Fixed calls and floating puts use the greatest
    /// price, fixed puts and floating calls the least.
    Lookback(Lookback),
    /// Payoff on the weighted sum of the prices of all assets at expiry.
    Basket(Basket),
    /// Payoff on the price at exercise. In a simulation, the holder may exercise at each step, by least squares
    /// (Longstaff and Schwartz). Without one, the holder may exercise at any time, by the boundary of exercise.
    American(American),
}

/// Source of random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Sampling {
    /// Pseudo-random numbers of Philox.
    #[serde(alias = "philox")]
    #[default]
    Philox,
    /// Randomised points of low discrepancy (Joe and Kuo), in up to 256 dimensions; paths follow a Brownian bridge.
    #[serde(alias = "sobol")]
    Sobol,
}

wire_enum!(
    "Direction and effect of a barrier. The price rises (UP) or falls (DOWN) to it, which ends (OUT) or begins (IN) the option.",
    BarrierKind { 0 => UpOut, 1 => UpIn, 2 => DownOut, 3 => DownIn });
wire_enum!(
    "Precision of paths: F64, or MIXED (paths in 32 bits, sums in 64 bits), which is faster.",
    Precision { 0 => F64, 1 => Mixed });
