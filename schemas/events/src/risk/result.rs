//! Answers to questions about risk: `schemas/avro/risk_result.avsc`, and as JSON.

use serde::{Deserialize, Serialize};

use super::TaskClass;
use crate::journal::AsOf;
use crate::known::{self, KnownSchema};
use crate::wire::Wire;

/// The answer to a RiskRequest. What it says, but for times, devices and sequence, is a function of the request
/// and of the ticks before the offsets in as_of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct RiskResult {
    /// Id of the request.
    pub request_id: String,
    /// Who asked.
    pub tenant: String,
    /// How urgent it was.
    pub class: TaskClass,
    /// Topic of the request.
    pub topic: String,
    /// Partition of the request.
    pub partition: i32,
    /// Offset of the request.
    pub offset: i64,
    /// The answer.
    pub outcome: RiskOutcome,
    /// What was taken from the market, by asset.
    pub as_of: Vec<MarketAsOf>,
    /// Seed of random numbers.
    pub seed: i64,
    /// When the request reached the engine, in nanoseconds since the epoch.
    pub received_ns: i64,
    /// When its first slice went to a lane; 0 if none did.
    pub started_ns: i64,
    /// When the answer was known.
    pub finished_ns: i64,
    /// Time that lanes worked on it, all slices together, in nanoseconds: time of the processor, on a GPU time that passed.
    pub compute_ns: i64,
    /// Devices that worked on it.
    pub devices: Vec<String>,
    /// Process that answered: its journal has the decisions.
    pub node: String,
    /// Sequence of the journal entry that admitted or refused it; -1 where the scheduler was not asked.
    pub decision_sequence: i64,
    /// Time of one core that it was estimated to take before it was admitted, in nanoseconds: a function of the
    /// request. 0 where it was refused before.
    #[serde(default)]
    #[wire(default = "0")]
    pub cost_ns: i64,
    /// What the process admitted at most (risk.cost_max_s), in nanoseconds; 0 where it was refused before.
    #[serde(default)]
    #[wire(default = "0")]
    pub cost_max_ns: i64,
    /// Of a request that cancels another: the id of that one. It is cancelled unless this is an error.
    #[serde(default)]
    #[wire(default = "null")]
    pub cancels: Option<String>,
    /// Where a request that asks the market was refused and the scheduler was not asked: the markets in which its
    /// symbols were looked up, by partition. Empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[wire(default = "[]")]
    pub judged_on: Vec<AsOf>,
    /// Number of the rules by which it was answered, so that it can be computed again by the same.
    #[serde(default)]
    #[wire(default = "0")]
    pub rules: i32,
}

impl RiskResult {
    /// Returns the oldest version of the schema that is still written and has its answer.
    pub fn schema(&self) -> KnownSchema {
        known::RISK_RESULT
    }
}

/// Number of the rules by which requests are answered. A change of an answer takes the next number. A rerun then
/// answers results of other numbers by their own rules, or refuses them with the number.
pub const RULES: i32 = 1;

/// Price and Greeks by option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct OptionResult {
    /// In the order of the request.
    pub values: Vec<OptionValue>,
}

/// Price and Greeks of an option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct OptionValue {
    /// Price.
    pub price: f64,
    /// By the spot.
    pub delta: f64,
    /// By the spot, twice.
    pub gamma: f64,
    /// By the volatility: for 1.00, not for a point.
    pub vega: f64,
    /// By time, per year.
    pub theta: f64,
    /// By the rate: for 1.00.
    pub rho: f64,
    /// By spot and volatility.
    pub vanna: f64,
    /// By the volatility, twice.
    pub volga: f64,
    /// Why this option has no numbers, which are not a number (NaN) then; empty otherwise.
    #[serde(default)]
    #[wire(default = r#""""#)]
    pub error: String,
    /// The name that the request has for it.
    #[serde(default)]
    #[wire(default = r#""""#)]
    pub id: String,
    /// Theta for one day that passes, of 365 a year.
    #[serde(default)]
    #[wire(default = "0.0")]
    pub theta_per_day: f64,
    /// Vega for one point of volatility, which is 0.01.
    #[serde(default)]
    #[wire(default = "0.0")]
    pub vega_per_point: f64,
    /// By the dividend yield, which is the foreign rate of a currency: for 1.00. 0 of options on a future, whose rate is one.
    #[serde(default)]
    #[wire(default = "0.0")]
    pub rho_foreign: f64,
}

/// Volatilities by option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct ImpliedVolatilityResult {
    /// In the order of the request.
    pub volatilities: Vec<ImpliedVolatility>,
}

/// Volatility of an option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct ImpliedVolatility {
    /// Null where none gives the price.
    pub volatility: Option<f64>,
    /// Why not; empty otherwise.
    pub error: String,
}

/// A price by Monte Carlo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SimulationResult {
    /// Discounted mean.
    pub price: f64,
    /// Its standard error; infinite where payoffs were too large for their numbers.
    pub standard_error: f64,
    /// Samples that were taken: paths, or pairs of paths.
    pub paths: i64,
    /// Where they were wanted.
    pub greeks: Vec<SimulatedGreek>,
    /// Whether the standard error of the price is no greater than the one wanted; null where none was wanted.
    #[serde(default)]
    #[wire(default = "null")]
    pub standard_error_met: Option<bool>,
    /// Why the standard error says less than it seems to; empty where nothing is known against it.
    #[serde(default)]
    #[wire(default = r#""""#)]
    pub warning: String,
}

/// A Greek by simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SimulatedGreek {
    /// delta, gamma, vega, theta or rho, and from version 4 on theta_per_day, vega_per_point and rho_foreign; of a basket delta[0], gamma[0]
    /// and vega[0] of its first asset, delta[1] of its second, and so on.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// Risk of a portfolio: losses are positive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct PortfolioResult {
    /// Value now.
    pub value: f64,
    /// The loss that is not exceeded with the confidence wanted.
    pub value_at_risk: f64,
    /// Mean loss of the worst cases beyond.
    pub expected_shortfall: f64,
    /// Scenarios revalued; 0 for parametric risk.
    pub scenarios: i64,
    /// In the order of the request.
    pub books: Vec<BookRisk>,
    /// In the order of the request.
    pub positions: Vec<PositionRisk>,
    /// Standard error of the value at risk of all; null where scenarios are not drawn.
    #[serde(default)]
    #[wire(default = "null")]
    pub value_at_risk_error: Option<f64>,
    /// Standard error of the expected shortfall of all; null where scenarios are not drawn.
    #[serde(default)]
    #[wire(default = "null")]
    pub expected_shortfall_error: Option<f64>,
    /// How far ahead, in years; null where returns were given, whose horizon only the asker knows.
    #[serde(default)]
    #[wire(default = "null")]
    pub horizon_years: Option<f64>,
}

/// Risk of a book with all books in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct BookRisk {
    /// Its name.
    pub name: String,
    /// Its value now.
    pub value: f64,
    /// Of the book alone.
    pub value_at_risk: f64,
    /// Of the book alone.
    pub expected_shortfall: f64,
    /// Its part of the value at risk of all: parts of books side by side add up.
    pub component_value_at_risk: f64,
    /// Its part of the expected shortfall of all.
    pub component_expected_shortfall: f64,
}

/// Part of a position in the risk of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct PositionRisk {
    /// Its name.
    pub name: String,
    /// Its value now.
    pub value: f64,
    /// Its part of the value at risk: parts add up.
    pub component_value_at_risk: f64,
    /// Its part of the expected shortfall.
    pub component_expected_shortfall: f64,
    /// Change of the value at risk by another unit held.
    pub marginal_value_at_risk: f64,
    /// Why this position has no numbers, which are not a number (NaN) then: it is in no sum. Empty otherwise.
    #[serde(default)]
    #[wire(default = r#""""#)]
    pub error: String,
}

/// Profit in named scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct StressResult {
    /// Value now.
    pub value: f64,
    /// Names of the books.
    pub books: Vec<String>,
    /// In the order of the request.
    pub scenarios: Vec<StressOutcome>,
    /// Positions without numbers, which are in no sum, in the order of the request.
    #[serde(default)]
    #[wire(default = "[]")]
    pub bad_positions: Vec<BadPosition>,
}

/// A position that has no numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct BadPosition {
    /// Its place in the request, from 0.
    pub position: i32,
    /// Its name.
    pub name: String,
    /// Why.
    pub error: String,
}

/// A scenario's outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct StressOutcome {
    /// Name of the scenario.
    pub name: String,
    /// Change of the value of all.
    pub profit: f64,
    /// Change of the value of each book, with all books in it.
    pub books: Vec<f64>,
}

/// Weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct OptimisationResult {
    /// Of each asset.
    pub weights: Vec<f64>,
    /// Per year.
    pub expected_return: f64,
    /// Per square root of a year.
    pub volatility: f64,
}

/// A cell for each rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SweepResult {
    /// In the order of the request.
    pub cells: Vec<SweepCell>,
}

/// What a rule made of all bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SweepCell {
    /// Sum of the profits, in notionals.
    pub profit: f64,
    /// The most that the sum of profits lay below its highest before, of any symbol.
    pub drawdown: f64,
    /// Mean profit of a bar by its deviation, not annualised.
    pub sharpe: f64,
    /// Positions taken.
    pub trades: i64,
}

/// No answer, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct RiskError {
    /// The kind of error.
    pub code: RiskErrorCode,
    /// Field of the request that is to blame; empty where none is.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// Why there is no answer: UNKNOWN_SYMBOL (no tick of it was seen in the partitions of the process),
/// MISSING_MARKET_DATA (not enough ticks yet), BAD_PARAMETER, EXPIRED (the deadline passed, or it was cancelled),
/// DUPLICATE (the id was answered, or is being), OVERLOADED (too many requests wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RiskErrorCode {
    /// No tick of the symbol was seen.
    #[serde(alias = "unknown-symbol")]
    UnknownSymbol,
    /// Not enough ticks yet.
    #[serde(alias = "missing-market-data")]
    MissingMarketData,
    /// A parameter is out of its range.
    #[serde(alias = "bad-parameter")]
    BadParameter,
    /// The deadline passed, or it was cancelled.
    #[serde(alias = "expired")]
    Expired,
    /// The id was answered, or is being.
    #[serde(alias = "duplicate")]
    Duplicate,
    /// Too many requests wait.
    #[serde(alias = "overloaded")]
    Overloaded,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum RiskOutcome {
    /// Price and Greeks by option.
    Options(OptionResult),
    /// Volatilities by option.
    ImpliedVolatilities(ImpliedVolatilityResult),
    /// A price by Monte Carlo.
    Simulation(SimulationResult),
    /// Risk of a portfolio: losses are positive.
    Portfolio(PortfolioResult),
    /// Profit in named scenarios.
    Stress(StressResult),
    /// Weights.
    Optimisation(OptimisationResult),
    /// A cell for each rule.
    Sweep(SweepResult),
    /// No answer, and why.
    Error(RiskError),
}

/// What was taken from the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct MarketAsOf {
    /// The symbol.
    pub symbol: String,
    /// Partition of its ticks.
    pub partition: i32,
    /// The state after the records before this offset.
    pub next_offset: i64,
    /// Spot, where it was taken.
    pub spot: Option<f64>,
    /// Volatility, where it was taken.
    pub volatility: Option<f64>,
    /// Sampled returns that a volatility or a matrix was made of; 0 where neither was taken.
    #[serde(default)]
    #[wire(default = "0")]
    pub returns: i32,
    /// Event time from the first of their samples to the last, in nanoseconds.
    #[serde(default)]
    #[wire(default = "0")]
    pub window_ns: i64,
    /// Event time of the quote or trade whose price the spot is, or the last sample where no spot was taken, in nanoseconds since the epoch.
    #[serde(default)]
    #[wire(default = "null")]
    pub time_ns: Option<i64>,
}
