//! Refusals of requests, their estimated costs, and the stated quality of numbers in results.

use super::*;
use crate::risk::matrices::MarketReturns;

const NS_PER_S: i64 = 1_000_000_000;

fn outcome(problem: Value) -> RiskOutcome {
    task(problem).expect("a good request").outcome(Isa::Baseline)
}

fn error(problem: Value) -> RiskError {
    task(problem).expect_err("a mistake")
}

#[test]
fn a_request_of_hours_is_estimated_at_hours() {
    let cost_ns = |changes: Value| task(simulation(changes)).expect("a good request").cost_ns();
    let small = cost_ns(json!({"paths_max": 100 * BLOCK}));
    assert_eq!(cost_ns(json!({"paths_max": 200 * BLOCK})), 2 * small);
    assert_eq!(cost_ns(json!({"paths_max": 100 * BLOCK, "steps": 12})), 3 * small);
    let largest = cost_ns(json!({"paths_max": 1 << 28, "steps": 65_536}));
    assert!(largest > 14 * 3_600 * NS_PER_S, "{largest} ns");
    // A million paths of a year of days.
    let usual = cost_ns(json!({"paths_max": 1 << 20, "steps": 252}));
    assert!(usual < 60 * NS_PER_S, "{usual} ns");
    for problem in problems() {
        let task = task(problem).expect("a good request");
        assert!(task.cost_ns() > 0, "{}", task.rate_key());
    }
}

#[test]
fn one_bad_option_of_many_is_one_bad_row() {
    let option = |strike: f64| json!({"asset": 0, "kind": "call", "strike": strike, "expiry_years": 0.5});
    let far = json!({"asset": 7, "kind": "call", "strike": 100.0, "expiry_years": 0.5});
    let options = |options: Vec<Value>| json!({"type": "options", "assets": [asset()], "options": options});
    let RiskOutcome::Options(good) = outcome(options(vec![option(90.0), option(110.0)])) else { panic!() };
    let with_bad = vec![option(-1.0), option(90.0), far.clone(), option(110.0), option(0.0)];
    let RiskOutcome::Options(found) = outcome(options(with_bad.clone())) else { panic!() };
    assert_eq!([&found.values[1], &found.values[3]], [&good.values[0], &good.values[1]]);
    for (place, words) in [
        (0, "problem.options[0].strike: strike is -1"),
        (2, "problem.options[2].asset: 7"),
        (4, "problem.options[4].strike: strike is 0"),
    ] {
        let value = &found.values[place];
        assert!(value.error.starts_with(words) && value.price.is_nan(), "{value:?}");
    }
    // A request without any good row gets the error of its first row.
    assert_eq!(error(options(vec![far, option(-1.0)])).field, "problem.options[0].asset");

    let implied = json!({"type": "implied-volatilities", "assets": [asset()], "options": with_bad,
                         "prices": [1.0, 15.0, 1.0, 5.0, 1.0]});
    let RiskOutcome::ImpliedVolatilities(found) = outcome(implied) else { panic!() };
    let are_known: Vec<bool> = found.volatilities.iter().map(|found| found.volatility.is_some()).collect();
    assert_eq!(are_known, [false, true, false, true, false]);
    assert!(found.volatilities[0].error.contains("strike is -1"), "{found:?}");
}

#[test]
fn history_of_the_market_has_a_horizon() {
    let year_s = 365.0 * 86_400.0;
    let historical = |horizon_years: Value, returns: Value| {
        portfolio(json!({"type": "historical", "confidence": 0.9, "returns": returns,
                         "horizon_years": horizon_years}))
    };
    let market = json!({"from": "market"});
    let result = |horizon_years: Value| match outcome(historical(horizon_years, market.clone())) {
        RiskOutcome::Portfolio(result) => result,
        other => panic!("{other:?}"),
    };
    // The assets have 39 returns in common.
    let one = result(Value::Null);
    assert_eq!((one.scenarios, one.horizon_years), (39, Some(1.0 / year_s)));
    assert_eq!(one, result(json!(1.2 / year_s)), "rounded to whole samples");
    let three = result(json!(3.0 / year_s));
    assert_eq!((three.scenarios, three.horizon_years), (37, Some(3.0 / year_s)));
    assert_ne!(three.value_at_risk, one.value_at_risk);

    let few = error(historical(json!(4.0 / year_s), market.clone()));
    assert_eq!(
        (few.code, few.field.as_str()),
        (RiskErrorCode::MissingMarketData, "problem.measure.horizon_years")
    );
    assert!(few.message.contains("39 sampled returns are known, 40 are needed"), "{}", few.message);
    let given = error(historical(json!(0.1), json!([0.1, 0.2])));
    assert_eq!(given.field, "problem.measure.horizon_years");
    for horizon_years in [0.0, -1.0, 61.0] {
        let error = error(historical(json!(horizon_years), market.clone()));
        assert_eq!(error.field, "problem.measure.horizon_years");
    }
}

#[test]
fn returns_over_a_horizon_add_up() {
    let assets = || Resolved::of_samples(["A:X", "A:Y"].map(market_of).into());
    let single = MarketReturns::of(&assets(), "f").expect("enough").returns;
    let known = MarketReturns::of(&assets(), "f").expect("enough");
    let (over, _) = known.over(3.0 / (365.0 * 86_400.0), "f").expect("enough");
    assert_eq!(over.len(), single.len() - 2 * 2);
    for (place, found) in over.iter().enumerate() {
        let expected = single[place] + single[place + 2] + single[place + 4];
        assert!((found - expected).abs() < 1e-15);
    }
}

#[test]
fn what_was_sampled_is_told_and_a_year_is_as_long_as_it_is_set() {
    let asset = json!({"symbol": "A:X", "spot": 1.0, "volatility": {"from": "market"}});
    let request = request(simulation(json!({"assets": [asset]})));
    let of_hours = |hours: f64| {
        let market_of = |symbol: &str| {
            Some(SymbolMarket { year_ns: hours * 3.6e12, ..market_of(symbol).expect("known") })
        };
        RiskTask::new(&request, &market_of).expect("all is there").as_of()[0].clone()
    };
    let (always, exchange) = (of_hours(8_760.0), of_hours(252.0 * 6.5));
    assert_eq!((always.returns, always.window_ns), (39, 39 * NS_PER_S));
    let ratio = always.volatility.expect("taken") / exchange.volatility.expect("taken");
    assert!((ratio - (8_760.0_f64 / 1_638.0).sqrt()).abs() < 1e-12, "{ratio}");

    // The market of a matrix counts the returns that assets have in common.
    let optimisation = json!({"type": "optimisation", "assets": [market_asset("A:X"), market_asset("A:Y")],
        "expected_returns": [0.1, 0.2], "covariance": {"from": "market"}, "risk_aversion": 1.0, "budget": 1.0,
        "lower": [0.0, 0.0], "upper": [1.0, 1.0]});
    let task = task(optimisation).expect("a good request");
    assert!(task.as_of().iter().all(|taken| taken.returns >= 39), "{:?}", task.as_of());
}

#[test]
fn fewer_than_thirty_returns_are_too_few() {
    let with = |samples: usize| {
        let market = SymbolMarket {
            samples: [1.0, 1.0001].repeat(samples)[..samples].to_vec().into(),
            ..market_of("A:X").expect("known")
        };
        let asset = json!({"symbol": "A:X", "spot": 1.0, "volatility": {"from": "market"}});
        RiskTask::new(&request(simulation(json!({"assets": [asset]}))), &|_| Some(market.clone()))
    };
    assert!(with(31).is_ok());
    let few = with(30).expect_err("29 returns");
    assert_eq!(few.message, "29 returns of A:X were sampled, a volatility needs 30: wait, or give a number");
}

/// A portfolio of a single asset: its profits are normal but for their curvature, which is small over a short time.
#[test]
fn simulated_value_at_risk_has_its_standard_error() {
    let result = |scenarios: i64| {
        let problem = json!({"type": "portfolio", "assets": [asset()], "books": [{"name": "all"}],
            "positions": [{"name": "p", "book": 0, "quantity": 1.0, "instrument": {"type": "spot", "asset": 0}}],
            "measure": {"type": "monte-carlo", "confidence": 0.99, "scenarios": scenarios,
                        "horizon_years": 1e-4, "covariance": [0.04]}});
        match outcome(problem) {
            RiskOutcome::Portfolio(result) => result,
            other => panic!("{other:?}"),
        }
    };
    let scenarios = 100_000;
    let found = result(scenarios);
    // The standard error of a normal quantile is √(p(1−p)/n) divided by the density there; sigma is 100 · 0.2 ·
    // √horizon.
    let (share, sigma): (f64, f64) = (0.01, 0.2);
    let density = (-2.326_348_f64.powi(2) / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let expected = (share * (1.0 - share) / scenarios as f64).sqrt() / density * sigma;
    let error = found.value_at_risk_error.expect("scenarios are drawn");
    assert!((error / expected - 1.0).abs() < 0.25, "{error} is not about {expected}");
    let of_shortfall = found.expected_shortfall_error.expect("scenarios are drawn");
    assert!(of_shortfall > error && of_shortfall < 2.0 * error, "{of_shortfall}");
    let quantile = 2.326_348 * sigma;
    assert!((found.value_at_risk - quantile).abs() < 4.0 * error, "{}", found.value_at_risk);
    let fewer = result(scenarios / 16).value_at_risk_error.expect("scenarios are drawn");
    assert!((2.0..8.0).contains(&(fewer / error)), "{fewer} of a sixteenth");
    let RiskOutcome::Portfolio(given) =
        outcome(portfolio(json!({"type": "historical", "confidence": 0.9, "returns": [0.1, 0.2, 0.0, 0.1]})))
    else {
        panic!()
    };
    assert_eq!((given.value_at_risk_error, given.horizon_years), (None, None));
}

#[test]
fn matrices_may_have_the_roundings_of_others() {
    let basket = |correlations: [f64; 4]| {
        simulation(json!({"assets": [asset(), asset()], "correlations": correlations,
                          "contract": {"type": "basket", "kind": "call", "strike": 100.0, "weights": [0.5, 0.5]}}))
    };
    let exact = outcome(basket([1.0, 0.3, 0.3, 1.0]));
    assert_eq!(outcome(basket([0.999_999_999_999_999_8, 0.3, 0.3, 1.000_000_000_000_000_2])), exact);
    let ulp = f64::from_bits(0.3_f64.to_bits() + 1);
    assert!(task(basket([1.0, 0.3, ulp, 1.0])).is_ok());
    assert!(task(basket([1.0, 1.000_000_000_000_000_2, 1.0, 1.0])).is_ok());
    assert_eq!(error(basket([0.999_999, 0.3, 0.3, 1.0])).field, "problem.correlations");
    assert_eq!(error(basket([1.0, 0.3, 0.300_001, 1.0])).field, "problem.correlations");
    assert_eq!(error(basket([1.0, 0.3, 0.3, 2.0])).field, "problem.correlations");

    let optimisation = |off: f64| {
        json!({"type": "optimisation", "assets": [asset(), asset()], "expected_returns": [0.1, 0.2],
               "covariance": [0.04, 0.01, 0.01 + off, 0.09], "risk_aversion": 1.0, "budget": 1.0,
               "lower": [0.0, 0.0], "upper": [1.0, 1.0]})
    };
    assert!(task(optimisation(1e-11)).is_ok());
    assert_eq!(error(optimisation(1e-6)).field, "problem.covariance");
}

#[test]
fn mistakes_are_told_with_the_number_that_was_given() {
    let steps = error(simulation(json!({"steps": -1})));
    assert_eq!((steps.field.as_str(), steps.message.as_str()), ("problem.steps", "-1; it must be from 1 on"));
    let sweep = error(json!({"type": "sweep", "symbols": [{"symbol": "a", "closes": [1.0]}],
                             "rules": [{"type": "ema-cross", "fast": 3, "slow": -9}]}));
    assert_eq!(
        (sweep.field.as_str(), sweep.message.as_str()),
        ("problem.rules[0].slow", "-9; it must be from 1 on")
    );
    let optimisation = json!({"type": "optimisation", "assets": [asset()], "expected_returns": [1e12],
        "covariance": [0.04], "risk_aversion": 1.0, "budget": 1.0, "lower": [0.0], "upper": [1.0]});
    let RiskOutcome::Error(error) = outcome(optimisation) else { panic!() };
    assert_eq!(error.field, "problem.expected_returns[0]");
    assert!(error.message.starts_with("means of asset 0 is"), "{}", error.message);
}

#[test]
fn a_standard_error_that_is_missed_is_told() {
    let met = |standard_error: Value| match outcome(simulation(json!({"standard_error": standard_error}))) {
        RiskOutcome::Simulation(result) => result.standard_error_met,
        other => panic!("{other:?}"),
    };
    assert_eq!([met(json!(1e-9)), met(json!(1e9)), met(Value::Null)], [Some(false), Some(true), None]);
}
