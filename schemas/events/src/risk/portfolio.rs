//! Requests about a portfolio: its risk, or optimal weights.

use serde::{Deserialize, Serialize};

use super::{AmericanOption, Asset, DigitalOption, Matrix, VanillaOption};
use crate::wire::Wire;

/// Risk of a portfolio of positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PortfolioProblem {
    /// Assets, up to 4,096; up to 256 with a covariance, or a matrix from the market. Other fields name them by index,
    /// from 0.
    pub assets: Vec<Asset>,
    /// Books of the portfolio as a tree, parents first, 1 to 1,000. The first book is the whole portfolio.
    pub books: Vec<Book>,
    /// Positions, 1 to 65,536, of which 2,000 may be American options.
    pub positions: Vec<Position>,
    /// Measure of the risk.
    pub measure: RiskMeasure,
}

/// A book of positions and of further books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Book {
    /// Name of the book, up to 64 bytes.
    pub name: String,
    /// Index of the book that contains it, which stands before it; null for the first book only.
    #[serde(default)]
    pub parent: Option<i32>,
}

/// Units of an instrument in a book.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Name of the position, up to 64 bytes.
    pub name: String,
    /// Index of its book, from 0.
    pub book: i32,
    /// Units held, from -1e15 to 1e15; negative if short.
    pub quantity: f64,
    /// Instrument of the position.
    pub instrument: Instrument,
}

/// Units of an asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SpotPosition {
    /// Index of the asset in the problem, from 0.
    pub asset: i32,
}

/// A forward on an asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ForwardPosition {
    /// Index of the asset in the problem, from 0.
    pub asset: i32,
    /// Agreed price, from 1e-12 to 1e15.
    pub strike: f64,
    /// Years until delivery, from 3e-9 to 60; 0: today.
    pub expiry_years: f64,
}

/// An instrument of which units are held or priced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Instrument {
    /// Units of an asset.
    Spot(SpotPosition),
    /// A forward on an asset.
    Forward(ForwardPosition),
    /// A European option.
    Option(VanillaOption),
    /// An American option, which may be exercised at any time until expiry. It is valued by its boundary of exercise.
    American(AmericanOption),
    /// A European digital option, which pays a fixed amount or nothing.
    Digital(DigitalOption),
}

/// Value at risk and expected shortfall by historical simulation. Each scenario is a row of returns, for which all
/// positions are revalued in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HistoricalRisk {
    /// Confidence, from 0.5 to 0.999999: 0.99 leaves the worst 1 %.
    pub confidence: f64,
    /// Log returns by scenario: a number for each asset. From the market: overlapping returns of the sampled window,
    /// each over the horizon.
    pub returns: Matrix,
    /// Horizon in years for returns from the market, above 0 and up to 60, rounded to whole samples; null: one sample.
    /// It is null if returns are given, because their rows have the horizon.
    #[serde(default)]
    #[wire(default = "null")]
    pub horizon_years: Option<f64>,
}

/// Value at risk and expected shortfall by simulated normal returns, for which all positions are revalued in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MonteCarloRisk {
    /// Confidence, from 0.5 to 0.999999: 0.99 leaves the worst 1 %.
    pub confidence: f64,
    /// Covariance matrix of yearly log returns, by rows.
    pub covariance: Matrix,
    /// Horizon in years, from 1e-9 to 60.
    pub horizon_years: f64,
    /// Number of scenarios, 1 to 16,777,216. The limit also holds for scenarios × books, and scenarios × assets.
    pub scenarios: i64,
}

/// Value at risk and expected shortfall of normal returns, by the portfolio's deltas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ParametricRisk {
    /// Confidence, from 0.5 to 0.999999: 0.99 leaves the worst 1 %.
    pub confidence: f64,
    /// Covariance matrix of yearly log returns, by rows.
    pub covariance: Matrix,
    /// Horizon in years, above 0 and up to 60.
    pub horizon_years: f64,
}

/// Profit of all books in named scenarios, for which all positions are revalued in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stress {
    /// Scenarios, 1 to 1,000. Scenarios × books, and scenarios × assets, are 100,000 at most.
    pub scenarios: Vec<StressScenario>,
}

/// A named scenario: shifts of all assets, twists by expiry, and shocks of single assets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StressScenario {
    /// Name of the scenario, up to 64 bytes.
    pub name: String,
    /// Relative move of all spots, above -1: -0.1 is a fall by 10 %.
    #[serde(default)]
    pub spot_shift: f64,
    /// Addition to all volatilities: 0.05 adds 5 percentage points.
    #[serde(default)]
    pub volatility_shift: f64,
    /// Addition to all volatilities for each year of expiry.
    #[serde(default)]
    pub volatility_twist: f64,
    /// Addition to all rates: 0.01 adds 1 percentage point.
    #[serde(default)]
    pub rate_shift: f64,
    /// Addition to all rates for each year of expiry.
    #[serde(default)]
    pub rate_twist: f64,
    /// Shocks of single assets, on top of the shifts of all.
    #[serde(default)]
    pub shocks: Vec<Shock>,
    /// Addition to all dividend yields, which are the foreign rates of currencies. Futures have none.
    #[serde(default, alias = "foreign_rate_shift", skip_serializing_if = "is_zero")]
    #[wire(since = 5, default = "0.0")]
    pub yield_shift: f64,
    /// Addition to all dividend yields for each year of expiry.
    #[serde(default, alias = "foreign_rate_twist", skip_serializing_if = "is_zero")]
    #[wire(since = 5, default = "0.0")]
    pub yield_twist: f64,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// Shock of one asset in a scenario, on top of the shifts of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Shock {
    /// Index of the asset in the problem, from 0.
    pub asset: i32,
    /// Relative move of the spot, above -1: -0.1 is a fall by 10 %.
    #[serde(default)]
    pub spot: f64,
    /// Addition to the volatility: 0.05 adds 5 percentage points.
    #[serde(default)]
    pub volatility: f64,
    /// Addition to the rate: 0.01 adds 1 percentage point.
    #[serde(default)]
    pub rate: f64,
    /// Addition to the dividend yield, which is the foreign rate of a currency.
    #[serde(default, alias = "foreign_rate", skip_serializing_if = "is_zero")]
    #[wire(since = 5, default = "0.0")]
    pub dividend_yield: f64,
}

/// A measure of a portfolio's risk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum RiskMeasure {
    /// Value at risk and expected shortfall by historical simulation. Each scenario is a row of returns, for which all
    /// positions are revalued in full.
    Historical(HistoricalRisk),
    /// Value at risk and expected shortfall by simulated normal returns, for which all positions are revalued in full.
    MonteCarlo(MonteCarloRisk),
    /// Value at risk and expected shortfall of normal returns, by the portfolio's deltas.
    Parametric(ParametricRisk),
    /// Profit of all books in named scenarios, for which all positions are revalued in full.
    Stress(Stress),
}

/// Weights of assets with the least variance for their expected return, within bounds and a budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OptimisationProblem {
    /// Assets, 1 to 256. Other fields have one number for each of them.
    pub assets: Vec<Asset>,
    /// Expected return of each asset per year, from -1e9 to 1e9.
    pub expected_returns: Vec<f64>,
    /// Covariance matrix of yearly returns, by rows.
    pub covariance: Matrix,
    /// Risk aversion, from 1e-6 to 1e9, to minimise aversion/2 * variance - return; null if `target_return` is given.
    #[serde(default)]
    pub risk_aversion: Option<f64>,
    /// Expected return per year, from -1e9 to 1e9, at which the variance is minimised; null if `risk_aversion` is
    /// given.
    #[serde(default)]
    pub target_return: Option<f64>,
    /// Sum of the weights, from -1e9 to 1e9.
    pub budget: f64,
    /// Least weight of each asset, from -1e9 to 1e9.
    pub lower: Vec<f64>,
    /// Greatest weight of each asset, from its least weight to 1e9.
    pub upper: Vec<f64>,
}
