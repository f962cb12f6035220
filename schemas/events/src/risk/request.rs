//! What is asked about risk: `schemas/avro/risk_request.avsc`, and as JSON.

use serde::{Deserialize, Serialize};

use super::TaskClass;

/// A question about risk. It is answered by exactly one RiskResult in the partition of the same number, an
/// error if need be. Its key on the topic is the symbol where the market matters, so that it comes to the
/// partition of the symbol's ticks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RiskRequest {
    /// Chosen by whoever asks, 1 to 128 bytes: a second request with the same id gets an error of code
    /// DUPLICATE, and no other answer.
    pub request_id: String,
    /// Who asks, up to 64 bytes: tenants share the lanes of a class by their weights. May be empty.
    #[serde(default)]
    pub tenant: String,
    /// How urgent it is.
    #[serde(default)]
    pub class: TaskClass,
    /// When the answer is of no use any more, in nanoseconds since 1970-01-01T00:00:00Z; null: never.
    #[serde(default)]
    pub deadline_ns: Option<i64>,
    /// Seed of random numbers: the same request with the same seed and market has the same answer, to the bit.
    #[serde(default)]
    pub seed: i64,
    /// Whether all lanes begin a round of units at once, each with its share by score: free ones wait for the
    /// others, for a bounded time. False: lanes take units as they are free.
    #[serde(default)]
    pub gang: bool,
    /// What is asked.
    pub problem: RiskProblem,
    /// Id of a request before this one in the same partition that nobody needs an answer to any more; its result
    /// is then an error of code EXPIRED that names this request. What is asked besides does not matter: no
    /// options, for instance. Null: nothing is cancelled.
    #[serde(default)]
    pub cancels: Option<String>,
}

/// Price and Greeks of European options by Black, Scholes and Merton.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionValues {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// 1 to 10,000 options.
    pub options: Vec<VanillaOption>,
}

/// An asset that a problem is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asset {
    /// VENUE:TICKER as on the ticks topic where anything is taken from the market; else any name, for the
    /// reader.
    pub symbol: String,
    /// Price now, from 1e-12 to 1e15.
    pub spot: Quantity,
    /// Per square root of a year, from 1e-6 to 100: 0.2 is 20 %.
    #[serde(default)]
    pub volatility: Quantity,
    /// Interest rate per year, continuously compounded, from -10 to 10.
    #[serde(default)]
    pub rate: f64,
    /// Dividend yield per year (or foreign rate), continuously compounded, from -10 to 10.
    #[serde(default)]
    pub dividend_yield: f64,
}

/// Take it from live state as of the decision: of a spot the last mid (last trade where there are no quotes),
/// of a volatility the realised one of the sampled window, of a matrix the exponentially weighted one of that
/// window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FromMarket {
    /// MARKET.
    pub from: MarketSource,
}

/// Where a number comes from that is not given: MARKET, the live state of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MarketSource {
    /// The live state of the pipeline.
    #[serde(alias = "market")]
    Market,
}

/// A number that is given, or taken from the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number, or {\"from\": \"market\"}")]
pub enum Quantity {
    /// Given.
    Given(f64),
    /// Taken from live state.
    Market(FromMarket),
}

/// A European option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VanillaOption {
    /// Index of its asset among the problem's.
    pub asset: i32,
    /// Call or put.
    pub kind: OptionKind,
    /// From 1e-12 to 1e15.
    pub strike: f64,
    /// Years until expiry, from 3e-9 to 60.
    pub expiry_years: f64,
}

/// Right to buy (CALL) or to sell (PUT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OptionKind {
    /// To buy.
    #[serde(alias = "call")]
    Call,
    /// To sell.
    #[serde(alias = "put")]
    Put,
}

/// Volatilities at which European options have given prices. The assets' own volatility does not matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImpliedVolatilities {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// 1 to 10,000 options.
    pub options: Vec<VanillaOption>,
    /// A price for each option.
    pub prices: Vec<f64>,
}

/// Price of an option by Monte Carlo: assets follow geometric Brownian motions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// A matrix by rows that is given, or taken from the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "an array of numbers, or {\"from\": \"market\"}")]
pub enum Matrix {
    /// Given.
    Given(Vec<f64>),
    /// Taken from live state.
    Market(FromMarket),
}

/// Paid on the price at expiry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct European {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
}

/// Paid on the arithmetic mean of the prices at the ends of all steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asian {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
}

/// Paid on the price at expiry, if a barrier, watched all the time, is touched or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// Which touch does what: the price rises (UP) or falls (DOWN) to the barrier, and the option ends (OUT) or
/// begins (IN) by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BarrierKind {
    /// Paid if the price never rises to the barrier.
    #[serde(alias = "up-out")]
    UpOut,
    /// Paid if it does.
    #[serde(alias = "up-in")]
    UpIn,
    /// Paid if the price never falls to the barrier.
    #[serde(alias = "down-out")]
    DownOut,
    /// Paid if it does.
    #[serde(alias = "down-in")]
    DownIn,
}

/// Paid on the greatest (fixed call, floating put) or least price (fixed put, floating call), watched all the
/// time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lookback {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike; null: the price at expiry takes its place, a floating strike.
    #[serde(default)]
    pub strike: Option<f64>,
}

/// Paid on the weighted sum of the prices of all assets at expiry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct American {
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
}

/// What an option pays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// What paths are computed in: F64, or MIXED (paths in f32, sums in f64), which is faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Precision {
    /// `f64` throughout.
    #[serde(alias = "f64")]
    #[default]
    F64,
    /// Paths in `f32`, sums in `f64`.
    #[serde(alias = "mixed")]
    Mixed,
}

/// Where random numbers come from: PHILOX (pseudo-random) or SOBOL (low discrepancy, by Joe and Kuo,
/// randomised, paths by a Brownian bridge).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Risk of positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortfolioProblem {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// Books, parents first: desk, book, portfolio.
    pub books: Vec<Book>,
    /// 1 to 8,000 positions.
    pub positions: Vec<Position>,
    /// What is asked.
    pub measure: RiskMeasure,
}

/// A book of positions, or of books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Book {
    /// Its name.
    pub name: String,
    /// Index of the book it belongs to, which stands before it; null: the top.
    #[serde(default)]
    pub parent: Option<i32>,
}

/// Something held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpotPosition {
    /// Index of the asset.
    pub asset: i32,
}

/// A forward on an asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForwardPosition {
    /// Index of the asset.
    pub asset: i32,
    /// Price agreed.
    pub strike: f64,
    /// Years until delivery.
    pub expiry_years: f64,
}

/// What is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Instrument {
    /// Units of an asset.
    Spot(SpotPosition),
    /// A forward on an asset.
    Forward(ForwardPosition),
    /// A European option.
    Option(VanillaOption),
}

/// Value at risk and expected shortfall by historical simulation: each scenario is a row of returns, fully
/// revalued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    pub horizon_years: Option<f64>,
}

/// Value at risk and expected shortfall by simulated normal returns, fully revalued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stress {
    /// 1 to 1,000 scenarios; times books, and times assets, 100,000 at most.
    pub scenarios: Vec<StressScenario>,
}

/// A scenario by name: shifts of all assets, twists along expiry, and shocks of some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// What happens to one asset in a scenario, besides what happens to all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// What is asked of a portfolio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimisationProblem {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// Per year, of each asset.
    pub expected_returns: Vec<f64>,
    /// Covariance of yearly returns by rows.
    pub covariance: Matrix,
    /// Minimise `aversion/2 · variance` - return; null where a return is wanted.
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

/// What trading rules would have made of recorded bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepProblem {
    /// Bars by symbol.
    pub symbols: Vec<SymbolBars>,
    /// 1 to 20,000 rules.
    pub rules: Vec<TradingRule>,
    /// Paid for each notional traded: 0.0001 is a basis point.
    #[serde(default)]
    pub cost: f64,
}

/// Bars of a symbol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SymbolBars {
    /// Its name.
    pub symbol: String,
    /// Closes in order, from 1e-9 to 1e12.
    pub closes: Vec<f64>,
}

/// Long while the fast exponential average is above the slow one, short while below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmaCross {
    /// Bars.
    pub fast: i32,
    /// Bars.
    pub slow: i32,
}

/// Long once the relative strength index falls below low, short once it rises above high.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RsiReversion {
    /// Bars.
    pub length: i32,
    /// 0 to 100.
    pub low: f64,
    /// 0 to 100.
    pub high: f64,
}

/// Long below the mean by more than entry deviations, short above; flat within exit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZScoreReversion {
    /// Bars.
    pub window: i32,
    /// Deviations.
    pub entry: f64,
    /// Deviations.
    pub exit: f64,
}

/// Long above the mean by more than width deviations, short below; flat on the other side of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandBreakout {
    /// Bars.
    pub window: i32,
    /// Deviations.
    pub width: f64,
}

/// When to be long, short or flat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum TradingRule {
    /// Long while the fast exponential average is above the slow one, short while below.
    EmaCross(EmaCross),
    /// Long once the relative strength index falls below low, short once it rises above high.
    RsiReversion(RsiReversion),
    /// Long below the mean by more than entry deviations, short above; flat within exit.
    ZScoreReversion(ZScoreReversion),
    /// Long above the mean by more than width deviations, short below; flat on the other side of the mean.
    BandBreakout(BandBreakout),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum RiskProblem {
    /// Price and Greeks of European options by Black, Scholes and Merton.
    Options(OptionValues),
    /// Volatilities at which European options have given prices. The assets' own volatility does not matter.
    ImpliedVolatilities(ImpliedVolatilities),
    /// Price of an option by Monte Carlo: assets follow geometric Brownian motions.
    Simulation(SimulationProblem),
    /// Risk of positions.
    Portfolio(PortfolioProblem),
    /// Weights of least variance for what they are expected to earn, within bounds and a budget.
    Optimisation(OptimisationProblem),
    /// What trading rules would have made of recorded bars.
    Sweep(SweepProblem),
}
