//! Questions about a portfolio: its risk, or optimal weights.

use serde::{Deserialize, Serialize};

use super::{AmericanOption, Asset, DigitalOption, Matrix, VanillaOption};
use crate::wire::Wire;

/// Risk of positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct PortfolioProblem {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// Books, parents first: desk, book, portfolio.
    pub books: Vec<Book>,
    /// 1 to 65,536 positions.
    pub positions: Vec<Position>,
    /// What is asked.
    pub measure: RiskMeasure,
}

/// A book of positions, or of books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Book {
    /// Its name.
    pub name: String,
    /// Index of the book it belongs to, which stands before it; null: the top.
    #[serde(default)]
    pub parent: Option<i32>,
}

/// Something held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Its name.
    pub name: String,
    /// Index of its book.
    pub book: i32,
    /// Units held; negative when short.
    pub quantity: f64,
    /// What is held.
    pub instrument: Instrument,
}

/// Units of an asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SpotPosition {
    /// Index of the asset.
    pub asset: i32,
}

/// A forward on an asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct ForwardPosition {
    /// Index of the asset.
    pub asset: i32,
    /// Price agreed.
    pub strike: f64,
    /// Years until delivery, 0 where it is today.
    pub expiry_years: f64,
}

/// What is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Instrument {
    /// Units of an asset.
    Spot(SpotPosition),
    /// A forward on an asset.
    Forward(ForwardPosition),
    /// A European option.
    Option(VanillaOption),
    /// An option that may be exercised at any time until it expires, valued by its boundary of exercise.
    American(AmericanOption),
    /// An option that pays an amount, or nothing.
    Digital(DigitalOption),
}

/// Value at risk and expected shortfall by historical simulation: each scenario is a row of returns, fully
/// revalued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct HistoricalRisk {
    /// From 0.5 to 0.9999: 0.99 leaves the worst 1 %.
    pub confidence: f64,
    /// Log returns by scenario, a number for each asset; from the market: those of the sampled window, each over the
    /// horizon.
    pub returns: Matrix,
    /// How far ahead, in years, where returns are taken from the market: a whole number of samples; null: one
    /// sample. Null where returns are given, whose horizon is that of their rows.
    #[serde(default)]
    #[wire(default = "null")]
    pub horizon_years: Option<f64>,
}

/// Value at risk and expected shortfall by simulated normal returns, fully revalued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct MonteCarloRisk {
    /// From 0.5 to 0.9999.
    pub confidence: f64,
    /// Covariance of yearly log returns by rows.
    pub covariance: Matrix,
    /// How far ahead, in years.
    pub horizon_years: f64,
    /// Number of scenarios.
    pub scenarios: i64,
}

/// Value at risk and expected shortfall of normal returns by the portfolio's deltas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct ParametricRisk {
    /// From 0.5 to 0.9999.
    pub confidence: f64,
    /// Covariance of yearly log returns by rows.
    pub covariance: Matrix,
    /// How far ahead, in years.
    pub horizon_years: f64,
}

/// Profit of all books in named scenarios, fully revalued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Stress {
    /// 1 to 1,000 scenarios; times books, and times assets, 100,000 at most.
    pub scenarios: Vec<StressScenario>,
}

/// A scenario by name: shifts of all assets, twists along expiry, and shocks of some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct StressScenario {
    /// Its name.
    pub name: String,
    /// Relative move of all spots: -0.1 is a fall by 10 %.
    #[serde(default)]
    pub spot_shift: f64,
    /// Added to all volatilities.
    #[serde(default)]
    pub volatility_shift: f64,
    /// Added to volatilities for each year of expiry.
    #[serde(default)]
    pub volatility_twist: f64,
    /// Added to all rates.
    #[serde(default)]
    pub rate_shift: f64,
    /// Added to rates for each year of expiry.
    #[serde(default)]
    pub rate_twist: f64,
    /// Of some assets.
    #[serde(default)]
    pub shocks: Vec<Shock>,
    /// Added to all dividend yields, which are foreign rates of currencies; those of futures stay as they are.
    #[serde(default, alias = "foreign_rate_shift", skip_serializing_if = "is_zero")]
    #[wire(since = 5, default = "0.0")]
    pub yield_shift: f64,
    /// Added to dividend yields for each year of expiry.
    #[serde(default, alias = "foreign_rate_twist", skip_serializing_if = "is_zero")]
    #[wire(since = 5, default = "0.0")]
    pub yield_twist: f64,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// What happens to one asset in a scenario, besides what happens to all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Shock {
    /// Index of the asset.
    pub asset: i32,
    /// Relative move of the spot: -0.1 is a fall by 10 %.
    #[serde(default)]
    pub spot: f64,
    /// Added to the volatility.
    #[serde(default)]
    pub volatility: f64,
    /// Added to the rate.
    #[serde(default)]
    pub rate: f64,
    /// Added to the dividend yield, which is the foreign rate of a currency.
    #[serde(default, alias = "foreign_rate", skip_serializing_if = "is_zero")]
    #[wire(since = 5, default = "0.0")]
    pub dividend_yield: f64,
}

/// A question about a portfolio's risk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum RiskMeasure {
    /// Value at risk and expected shortfall by historical simulation: each scenario is a row of returns, fully
    /// revalued.
    Historical(HistoricalRisk),
    /// Value at risk and expected shortfall by simulated normal returns, fully revalued.
    MonteCarlo(MonteCarloRisk),
    /// Value at risk and expected shortfall of normal returns by the portfolio's deltas.
    Parametric(ParametricRisk),
    /// Profit of all books in named scenarios, fully revalued.
    Stress(Stress),
}

/// Weights of least variance for what they are expected to earn, within bounds and a budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct OptimisationProblem {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// Per year, of each asset.
    pub expected_returns: Vec<f64>,
    /// Covariance of yearly returns by rows.
    pub covariance: Matrix,
    /// Minimise aversion/2 * variance - return; null where a return is wanted.
    #[serde(default)]
    pub risk_aversion: Option<f64>,
    /// Minimise the variance at this return; null where an aversion is given.
    #[serde(default)]
    pub target_return: Option<f64>,
    /// Sum of the weights.
    pub budget: f64,
    /// Least weight of each asset.
    pub lower: Vec<f64>,
    /// Greatest weight of each asset.
    pub upper: Vec<f64>,
}
