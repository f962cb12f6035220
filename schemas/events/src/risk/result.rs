//! Risk results: `schemas/avro/risk_result.avsc`, and as JSON.

use serde::{Deserialize, Serialize};

use super::TaskClass;
use crate::journal::AsOf;
use crate::known::{self, KnownSchema};
use crate::wire::Wire;

/// Answer to a `RiskRequest`. Apart from times, devices, process and sequence number, it is a function of the request
/// and the ticks before the offsets in `as_of`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct RiskResult {
    /// Id of the request.
    pub request_id: String,
    /// Tenant that asked.
    pub tenant: String,
    /// Urgency of the request.
    pub class: TaskClass,
    /// Topic of the request.
    pub topic: String,
    /// Partition of the request.
    pub partition: i32,
    /// Offset of the request.
    pub offset: i64,
    /// Answer, or error.
    pub outcome: RiskOutcome,
    /// Numbers taken from the market, by asset.
    pub as_of: Vec<MarketAsOf>,
    /// Seed of random numbers.
    pub seed: i64,
    /// Time at which the request reached the engine, in nanoseconds since the Unix epoch.
    pub received_ns: i64,
    /// Time at which its first slice went to a lane, in nanoseconds since the Unix epoch; 0 if none did.
    pub started_ns: i64,
    /// Time at which the answer was known, in nanoseconds since the Unix epoch.
    pub finished_ns: i64,
    /// Time that lanes worked on all slices together, in nanoseconds. It is processor time, or elapsed time on a GPU.
    pub compute_ns: i64,
    /// Names of the devices that worked on it.
    pub devices: Vec<String>,
    /// Name of the process that answered, whose journal has the decisions.
    pub node: String,
    /// Sequence number of the journal entry that admitted or refused it; -1 if the scheduler was not asked.
    pub decision_sequence: i64,
    /// Estimated computing time of the request on one core, in nanoseconds: a function of the request. 0 if it was
    /// refused before the estimate.
    #[serde(default)]
    #[wire(default = "0")]
    pub cost_ns: i64,
    /// Greatest estimate that the process admits (`risk.cost_max_s`), in nanoseconds; 0 if the request was refused
    /// before the estimate.
    #[serde(default)]
    #[wire(default = "0")]
    pub cost_max_ns: i64,
    /// Id of the request that this one cancels; null: none. It is cancelled unless the outcome is an error.
    #[serde(default)]
    #[wire(default = "null")]
    pub cancels: Option<String>,
    /// Markets in which the symbols of a refused request were looked up, by partition. Empty if the scheduler was
    /// asked, or if no number comes from the market.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[wire(default = "[]")]
    pub judged_on: Vec<AsOf>,
    /// Number of the rules of the answer. The same rules can compute it again.
    #[serde(default)]
    #[wire(default = "0")]
    pub rules: i32,
}

impl RiskResult {
    /// Returns the oldest version of the schema that is still written and has the result's answer.
    pub fn schema(&self) -> KnownSchema {
        known::RISK_RESULT
    }
}

/// Number of the rules by which requests are answered. If an answer changes, the number rises. A replay then computes
/// results of earlier numbers by their own rules, or refuses them and names the number.
pub const RULES: i32 = 1;

/// Price and Greeks of each option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct OptionResult {
    /// Values in the order of the request.
    pub values: Vec<OptionValue>,
}

/// Price and Greeks of an option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct OptionValue {
    /// Price of the option.
    pub price: f64,
    /// First derivative by the spot.
    pub delta: f64,
    /// Second derivative by the spot.
    pub gamma: f64,
    /// Derivative by the volatility, for a change of 1.00, not of a point.
    pub vega: f64,
    /// Derivative by the passing of time, per year.
    pub theta: f64,
    /// Derivative by the rate, for a change of 1.00.
    pub rho: f64,
    /// Mixed derivative by spot and volatility.
    pub vanna: f64,
    /// Second derivative by the volatility.
    pub volga: f64,
    /// Reason why this option has no numbers, which are NaN then; empty otherwise.
    #[serde(default)]
    #[wire(default = r#""""#)]
    pub error: String,
    /// Id of the contract in the request.
    #[serde(default)]
    #[wire(default = r#""""#)]
    pub id: String,
    /// Theta for one day of 365 in a year.
    #[serde(default)]
    #[wire(default = "0.0")]
    pub theta_per_day: f64,
    /// Vega for one point of volatility, which is 0.01.
    #[serde(default)]
    #[wire(default = "0.0")]
    pub vega_per_point: f64,
    /// Derivative by the dividend yield, which is the foreign rate of a currency, for a change of 1.00. 0 for options
    /// on a future, which have one rate.
    #[serde(default)]
    #[wire(default = "0.0")]
    pub rho_foreign: f64,
}

/// Implied volatility of each option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct ImpliedVolatilityResult {
    /// Volatilities in the order of the request.
    pub volatilities: Vec<ImpliedVolatility>,
}

/// Implied volatility of an option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct ImpliedVolatility {
    /// Implied volatility; null if no volatility gives the price.
    pub volatility: Option<f64>,
    /// Reason why there is no volatility; empty otherwise.
    pub error: String,
}

/// Price of an option by Monte Carlo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SimulationResult {
    /// Discounted mean of the payoffs.
    pub price: f64,
    /// Standard error of the price; infinite if no sample paid, or if payoffs were too large for their numbers.
    pub standard_error: f64,
    /// Number of samples: paths, or pairs of paths; 0 if the price was not simulated.
    pub paths: i64,
    /// Greeks if they were wanted; empty otherwise.
    pub greeks: Vec<SimulatedGreek>,
    /// True if the standard error of the price is no greater than the wanted one; null if none was wanted.
    #[serde(default)]
    #[wire(default = "null")]
    pub standard_error_met: Option<bool>,
    /// Reason why the price or its standard error is less reliable than it seems; empty if none is known.
    #[serde(default)]
    #[wire(default = r#""""#)]
    pub warning: String,
}

/// A Greek by simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SimulatedGreek {
    /// Name of the Greek: delta, gamma, vega, theta or rho. From version 4 on also `theta_per_day`, `vega_per_point`
    /// and `rho_foreign`. A basket has `delta[0]`, `gamma[0]` and `vega[0]` of its first asset, `delta[1]` of its
    /// second, and so on.
    pub name: String,
    /// Value of the Greek.
    pub value: f64,
    /// Standard error of the value.
    pub standard_error: f64,
}

/// Risk of a portfolio; losses are positive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct PortfolioResult {
    /// Value of the portfolio now.
    pub value: f64,
    /// Loss that is not exceeded with the given confidence.
    pub value_at_risk: f64,
    /// Mean loss of the worst cases, a share of 1 - confidence.
    pub expected_shortfall: f64,
    /// Number of scenarios revalued; 0 for parametric risk.
    pub scenarios: i64,
    /// Risk of each book, in the order of the request.
    pub books: Vec<BookRisk>,
    /// Risk of each position, in the order of the request.
    pub positions: Vec<PositionRisk>,
    /// Standard error of the portfolio's value at risk; null if scenarios are not drawn.
    #[serde(default)]
    #[wire(default = "null")]
    pub value_at_risk_error: Option<f64>,
    /// Standard error of the portfolio's expected shortfall; null if scenarios are not drawn.
    #[serde(default)]
    #[wire(default = "null")]
    pub expected_shortfall_error: Option<f64>,
    /// Horizon in years; null if the request gave returns, whose horizon only the sender knows.
    #[serde(default)]
    #[wire(default = "null")]
    pub horizon_years: Option<f64>,
}

/// Risk of a book, with all books in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct BookRisk {
    /// Name of the book.
    pub name: String,
    /// Value of the book now.
    pub value: f64,
    /// Value at risk of the book alone.
    pub value_at_risk: f64,
    /// Expected shortfall of the book alone.
    pub expected_shortfall: f64,
    /// Part of the book in the portfolio's value at risk. Parts of books side by side add up.
    pub component_value_at_risk: f64,
    /// Part of the book in the portfolio's expected shortfall.
    pub component_expected_shortfall: f64,
}

/// Part of a position in the portfolio's risk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct PositionRisk {
    /// Name of the position.
    pub name: String,
    /// Value of the position now.
    pub value: f64,
    /// Part of the position in the portfolio's value at risk; parts add up.
    pub component_value_at_risk: f64,
    /// Part of the position in the portfolio's expected shortfall; parts add up.
    pub component_expected_shortfall: f64,
    /// Change of the portfolio's value at risk by another unit held.
    pub marginal_value_at_risk: f64,
    /// Reason why this position has no numbers, which are NaN then; it is in no sum. Empty otherwise.
    #[serde(default)]
    #[wire(default = r#""""#)]
    pub error: String,
}

/// Profit of a portfolio in named scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct StressResult {
    /// Value of the portfolio now.
    pub value: f64,
    /// Names of the books, in the order of the request.
    pub books: Vec<String>,
    /// Outcome of each scenario, in the order of the request.
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
    /// Index of the position in the request, from 0.
    pub position: i32,
    /// Name of the position.
    pub name: String,
    /// Reason why it has no numbers.
    pub error: String,
}

/// Outcome of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct StressOutcome {
    /// Name of the scenario.
    pub name: String,
    /// Change of the portfolio's value.
    pub profit: f64,
    /// Change of the value of each book, with all books in it.
    pub books: Vec<f64>,
}

/// Optimal weights of assets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct OptimisationResult {
    /// Weight of each asset, in the order of the request.
    pub weights: Vec<f64>,
    /// Expected return of the portfolio per year.
    pub expected_return: f64,
    /// Volatility of the portfolio per square root of a year.
    pub volatility: f64,
}

/// Results of trading rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SweepResult {
    /// Result of each rule, in the order of the request.
    pub cells: Vec<SweepCell>,
}

/// Result of a trading rule on all bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SweepCell {
    /// Sum of the profits of all symbols, in notionals.
    pub profit: f64,
    /// Greatest fall of a symbol's summed profit below its earlier maximum, in notionals.
    pub drawdown: f64,
    /// Mean profit of a bar divided by its standard deviation, not annualised.
    pub sharpe: f64,
    /// Number of positions taken.
    pub trades: i64,
}

/// Error in place of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct RiskError {
    /// Kind of error.
    pub code: RiskErrorCode,
    /// Field of the request that caused the error, as a path such as `problem.assets[0].spot`; empty if there is none.
    pub field: String,
    /// Error and remedy, in words.
    pub message: String,
}

/// Kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RiskErrorCode {
    /// No tick of the symbol was seen in the partitions of the process.
    #[serde(alias = "unknown-symbol")]
    UnknownSymbol,
    /// There are not enough ticks yet.
    #[serde(alias = "missing-market-data")]
    MissingMarketData,
    /// A parameter is out of range, the request cannot be read, or it asks for too much.
    #[serde(alias = "bad-parameter")]
    BadParameter,
    /// The deadline passed, or another request cancelled this one.
    #[serde(alias = "expired")]
    Expired,
    /// A request with this id was answered, or is being worked on.
    #[serde(alias = "duplicate")]
    Duplicate,
    /// Too many requests wait.
    #[serde(alias = "overloaded")]
    Overloaded,
}

/// Answer to a request, or its error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum RiskOutcome {
    /// Price and Greeks of each option.
    Options(OptionResult),
    /// Implied volatility of each option.
    ImpliedVolatilities(ImpliedVolatilityResult),
    /// Price of an option by Monte Carlo.
    Simulation(SimulationResult),
    /// Risk of a portfolio; losses are positive.
    Portfolio(PortfolioResult),
    /// Profit of a portfolio in named scenarios.
    Stress(StressResult),
    /// Optimal weights of assets.
    Optimisation(OptimisationResult),
    /// Results of trading rules.
    Sweep(SweepResult),
    /// Error in place of an answer.
    Error(RiskError),
}

/// Numbers of one asset that were taken from the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct MarketAsOf {
    /// Symbol of the asset.
    pub symbol: String,
    /// Partition of its ticks.
    pub partition: i32,
    /// Next offset of ticks to read: the numbers hold after all records before it.
    pub next_offset: i64,
    /// Spot; null if it was not taken.
    pub spot: Option<f64>,
    /// Volatility; null if it was not taken.
    pub volatility: Option<f64>,
    /// Number of sampled returns behind a volatility or matrix; 0 if neither was taken.
    #[serde(default)]
    #[wire(default = "0")]
    pub returns: i32,
    /// Event time from the first of their samples to the last, in nanoseconds.
    #[serde(default)]
    #[wire(default = "0")]
    pub window_ns: i64,
    /// Event time of the quote or trade that gave the spot, in nanoseconds since the Unix epoch. If no spot was taken:
    /// event time of the last sample.
    #[serde(default)]
    #[wire(default = "null")]
    pub time_ns: Option<i64>,
}
