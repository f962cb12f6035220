//! How requests and results lie in their datum.

use super::*;
use crate::wire::{wire_enum, wire_record, wire_union};

wire_enum!(MarketSource { 0 => Market });
wire_record!(FromMarket { from });
wire_union!(Quantity { 0 => Given, 1 => Market });
wire_record!(Asset { symbol, spot, volatility, rate, dividend_yield });
wire_enum!(OptionKind { 0 => Call, 1 => Put });
wire_record!(VanillaOption { asset, kind, strike, expiry_years });
wire_record!(OptionValues { assets, options });
wire_record!(ImpliedVolatilities { assets, options, prices });
wire_union!(Matrix { 0 => Given, 1 => Market });
wire_record!(European { kind, strike });
wire_record!(Asian { kind, strike });
wire_enum!(BarrierKind { 0 => UpOut, 1 => UpIn, 2 => DownOut, 3 => DownIn });
wire_record!(Barrier { kind, strike, barrier_kind, barrier });
wire_record!(Lookback { kind, strike });
wire_record!(Basket { kind, strike, weights });
wire_record!(American { kind, strike });
wire_union!(Contract { 0 => European, 1 => Asian, 2 => Barrier, 3 => Lookback, 4 => Basket, 5 => American });
wire_enum!(Precision { 0 => F64, 1 => Mixed });
wire_enum!(Sampling { 0 => Philox, 1 => Sobol });
wire_record!(SimulationProblem {
    assets,
    correlations,
    contract,
    expiry_years,
    steps,
    precision,
    sampling,
    antithetic,
    greeks,
    paths_max,
    standard_error
});
wire_record!(Book { name, parent });
wire_record!(SpotPosition { asset });
wire_record!(ForwardPosition { asset, strike, expiry_years });
wire_union!(Instrument { 0 => Spot, 1 => Forward, 2 => Option });
wire_record!(Position { name, book, quantity, instrument });
wire_record!(HistoricalRisk { confidence, returns, horizon_years });
wire_record!(MonteCarloRisk { confidence, covariance, horizon_years, scenarios });
wire_record!(ParametricRisk { confidence, covariance, horizon_years });
wire_record!(Shock { asset, spot, volatility, rate });
wire_record!(StressScenario {
    name,
    spot_shift,
    volatility_shift,
    volatility_twist,
    rate_shift,
    rate_twist,
    shocks
});
wire_record!(Stress { scenarios });
wire_union!(RiskMeasure { 0 => Historical, 1 => MonteCarlo, 2 => Parametric, 3 => Stress });
wire_record!(PortfolioProblem { assets, books, positions, measure });
wire_record!(OptimisationProblem {
    assets,
    expected_returns,
    covariance,
    risk_aversion,
    target_return,
    budget,
    lower,
    upper
});
wire_record!(SymbolBars { symbol, closes });
wire_record!(EmaCross { fast, slow });
wire_record!(RsiReversion { length, low, high });
wire_record!(ZScoreReversion { window, entry, exit });
wire_record!(BandBreakout { window, width });
wire_union!(TradingRule { 0 => EmaCross, 1 => RsiReversion, 2 => ZScoreReversion, 3 => BandBreakout });
wire_record!(SweepProblem { symbols, rules, cost });
wire_union!(RiskProblem { 0 => Options, 1 => ImpliedVolatilities, 2 => Simulation, 3 => Portfolio, 4 => Optimisation, 5 => Sweep });
wire_record!(RiskRequest { request_id, tenant, class, deadline_ns, seed, gang, problem, cancels });
wire_record!(OptionValue { price, delta, gamma, vega, theta, rho, vanna, volga, error });
wire_record!(OptionResult { values });
wire_record!(ImpliedVolatility { volatility, error });
wire_record!(ImpliedVolatilityResult { volatilities });
wire_record!(SimulatedGreek { name, value, standard_error });
wire_record!(SimulationResult { price, standard_error, paths, greeks, standard_error_met });
wire_record!(BookRisk {
    name,
    value,
    value_at_risk,
    expected_shortfall,
    component_value_at_risk,
    component_expected_shortfall
});
wire_record!(PositionRisk {
    name,
    value,
    component_value_at_risk,
    component_expected_shortfall,
    marginal_value_at_risk
});
wire_record!(PortfolioResult {
    value,
    value_at_risk,
    expected_shortfall,
    scenarios,
    books,
    positions,
    value_at_risk_error,
    expected_shortfall_error,
    horizon_years
});
wire_record!(StressOutcome { name, profit, books });
wire_record!(StressResult { value, books, scenarios });
wire_record!(OptimisationResult { weights, expected_return, volatility });
wire_record!(SweepCell { profit, drawdown, sharpe, trades });
wire_record!(SweepResult { cells });
wire_enum!(RiskErrorCode { 0 => UnknownSymbol, 1 => MissingMarketData, 2 => BadParameter, 3 => Expired, 4 => Duplicate, 5 => Overloaded });
wire_record!(RiskError { code, field, message });
wire_union!(RiskOutcome { 0 => Options, 1 => ImpliedVolatilities, 2 => Simulation, 3 => Portfolio, 4 => Stress, 5 => Optimisation, 6 => Sweep, 7 => Error });
wire_record!(MarketAsOf { symbol, partition, next_offset, spot, volatility, returns, window_ns });
wire_record!(RiskResult {
    request_id,
    tenant,
    class,
    topic,
    partition,
    offset,
    outcome,
    as_of,
    seed,
    received_ns,
    started_ns,
    finished_ns,
    compute_ns,
    devices,
    node,
    decision_sequence,
    cost_ns,
    cost_max_ns,
    cancels
});
