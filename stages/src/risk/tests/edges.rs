//! Edge cases: matrices that are no covariances, or only by rounding; futures; missing standard errors; bad positions.

use warptape_events::risk::{PortfolioResult, SimulationResult, StressResult};

use super::*;

fn outcome(problem: Value) -> RiskOutcome {
    task(problem).expect("a good request").outcome(Isa::detect())
}

fn risk(problem: Value) -> PortfolioResult {
    match outcome(problem) {
        RiskOutcome::Portfolio(found) => found,
        other => panic!("{other:?}"),
    }
}

fn stress(problem: Value) -> StressResult {
    match outcome(problem) {
        RiskOutcome::Stress(found) => found,
        other => panic!("{other:?}"),
    }
}

fn simulated(problem: Value) -> SimulationResult {
    match outcome(problem) {
        RiskOutcome::Simulation(found) => found,
        other => panic!("{other:?}"),
    }
}

fn book(assets: &[Value], instruments: &[Value], measure: Value) -> Value {
    let position = |(number, instrument): (usize, &Value)| json!({"name": format!("p{number}"), "book": 0, "quantity": 1.0, "instrument": instrument});
    json!({"type": "portfolio", "assets": assets, "books": [{"name": "all"}], "measure": measure,
           "positions": instruments.iter().enumerate().map(position).collect::<Vec<_>>()})
}

fn spots(count: i32) -> Vec<Value> {
    (0..count).map(|asset| json!({"type": "spot", "asset": asset})).collect()
}

fn option(kind: &str, strike: f64, years: f64) -> Value {
    json!({"type": kind, "asset": 0, "kind": "put", "strike": strike, "expiry_years": years})
}

fn history() -> Value {
    json!({"type": "historical", "confidence": 0.95, "returns": [-0.02, 0.01, -0.01, 0.03]})
}

/// Every measure that takes the matrix, with the matrix's field in the request.
fn with_matrix(matrix: &[f64]) -> Vec<(Value, &'static str)> {
    let count = matrix.len().isqrt();
    let assets = vec![asset(); count];
    let measured = |measure: Value| book(&assets, &spots(count as i32), measure);
    let weights = vec![1.0 / count as f64; count];
    vec![
        (
            measured(
                json!({"type": "parametric", "confidence": 0.99, "covariance": matrix, "horizon_years": 1.0}),
            ),
            "problem.measure.covariance",
        ),
        (
            measured(
                json!({"type": "monte-carlo", "confidence": 0.99, "covariance": matrix, "horizon_years": 0.04,
                            "scenarios": 2_000}),
            ),
            "problem.measure.covariance",
        ),
        (
            json!({"type": "optimisation", "assets": assets, "expected_returns": vec![0.05; count], "covariance": matrix,
                   "risk_aversion": 3.0, "budget": 1.0, "lower": vec![0.0; count], "upper": vec![1.0; count]}),
            "problem.covariance",
        ),
        (
            simulation(json!({"assets": assets, "correlations": correlations_of(matrix), "steps": 1,
                              "contract": {"type": "basket", "kind": "call", "strike": 100.0, "weights": weights}})),
            "problem.correlations",
        ),
    ]
}

fn correlations_of(matrix: &[f64]) -> Vec<f64> {
    let count = matrix.len().isqrt();
    let variance = |asset: usize| matrix[asset * (count + 1)];
    let of = |number: usize| {
        if number.is_multiple_of(count + 1) {
            return 1.0;
        }
        (matrix[number] / (variance(number / count) * variance(number % count)).sqrt()).clamp(-1.0, 1.0)
    };
    (0..matrix.len()).map(of).collect()
}

#[test]
fn no_measure_takes_what_cannot_be_a_covariance() {
    let matrix = [0.04, 0.054, -0.027, 0.054, 0.09, 0.0405, -0.027, 0.0405, 0.0225];
    for (problem, field) in with_matrix(&matrix) {
        let error = task(problem).expect_err(field);
        assert_eq!((error.code, error.field.as_str()), (RiskErrorCode::BadParameter, field));
        assert!(error.message.contains("its least eigenvalue is -"), "{}", error.message);
    }
    let (parametric, _) = with_matrix(&matrix).remove(0);
    let message = task(parametric).expect_err("refused").message;
    assert!(message.contains("-3.2376"), "{message}");
}

/// Sample covariances of fewer observations than assets have eigenvalues of 0, which rounding makes negative.
#[test]
fn every_measure_takes_what_is_a_covariance_but_for_rounding() {
    let (count, times) = (10, 4);
    let mut state = 7_u64;
    let mut next = |_: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let returns: Vec<f64> = (0..count * times).map(&mut next).collect();
    let of = |one: usize, other: usize| -> f64 {
        (0..times).map(|time| returns[time * count + one] * returns[time * count + other]).sum()
    };
    let matrix: Vec<f64> = (0..count * count).map(|number| of(number / count, number % count)).collect();
    let raised = |number: usize| {
        let is_diagonal = number.is_multiple_of(count + 1);
        matrix[number] * if is_diagonal { 1.0 + 1e-12 } else { 1.0 }
    };
    let raised: Vec<f64> = (0..matrix.len()).map(raised).collect();
    let [found, expected] = [&matrix, &raised].map(|matrix| {
        let simulated = with_matrix(matrix).remove(1).0;
        risk(simulated).value_at_risk
    });
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} {expected}");
    for (problem, field) in with_matrix(&matrix) {
        assert!(!matches!(outcome(problem), RiskOutcome::Error(_)), "{field}");
    }
}

/// A call on a future (Black 1976 in 40 digits): rates only discount it.
#[test]
fn rates_do_not_move_futures() {
    let future = json!({"symbol": "V:F", "spot": 60.0, "volatility": 0.35, "rate": 0.04, "kind": "future"});
    let call = json!({"type": "option", "asset": 0, "kind": "call", "strike": 63.0, "expiry_years": 0.3});
    let scenarios = json!({"type": "stress", "scenarios": [{"name": "rates", "rate_shift": 0.01}, {"name": "yields", "yield_shift": 0.5}]});
    let found = stress(book(std::slice::from_ref(&future), std::slice::from_ref(&call), scenarios));
    assert!((found.scenarios[0].profit + 0.009_906_396_613_590_645).abs() < 1e-12, "{found:?}");
    assert_eq!(found.scenarios[1].profit, 0.0, "it has no yield");
    let mut wrong = future.clone();
    wrong["dividend_yield"] = json!(0.02);
    let error = task(book(std::slice::from_ref(&wrong), std::slice::from_ref(&call), history()));
    assert_eq!(error.expect_err("a future has no yield").field, "problem.assets[0].dividend_yield");
    // It is one bad row beside others.
    let on_wrong = json!({"type": "option", "asset": 1, "kind": "call", "strike": 63.0, "expiry_years": 0.3});
    let found = risk(book(&[future, wrong], &[call, on_wrong], history()));
    let errors: Vec<&str> = found.positions.iter().map(|position| &*position.error).collect();
    assert!(
        errors[0].is_empty() && errors[1].starts_with("problem.assets[1].dividend_yield: 0.02;"),
        "{errors:?}"
    );
}

#[test]
fn a_price_cannot_fall_by_more_than_all_of_it() {
    for (scenario, field) in [
        (json!({"name": "all", "spot_shift": -1.0}), "scenarios[0].spot_shift"),
        (json!({"name": "own", "shocks": [{"asset": 0, "spot": -1.5}]}), "scenarios[0].shocks[0].spot"),
    ] {
        let problem = book(&[asset()], &spots(1), json!({"type": "stress", "scenarios": [scenario]}));
        let error = task(problem).expect_err("no price is left");
        assert_eq!(error.field, format!("problem.measure.{field}"));
        assert!(error.message.contains("-1 is all of the price"), "{}", error.message);
    }
}

/// A foreign rate is a yield: both rates move in a stress.
#[test]
fn foreign_rates_move_currencies() {
    let asset =
        json!({"symbol": "FX:EURUSD", "spot": 1.09, "volatility": 0.08, "rate": 0.04, "foreign_rate": 0.02});
    let forward = json!({"type": "forward", "asset": 0, "strike": 1.1, "expiry_years": 2.0});
    let scenarios = json!({"type": "stress", "scenarios": [
        {"name": "all", "foreign_rate_shift": 0.01}, {"name": "one", "shocks": [{"asset": 0, "foreign_rate": 0.01}]}]});
    let found = stress(book(&[asset], &[forward], scenarios));
    let expected = 1.09 * ((-0.06_f64).exp() - (-0.04_f64).exp());
    for scenario in &found.scenarios {
        assert!((scenario.profit - expected).abs() < 1e-14, "{scenario:?}");
    }
}

/// A simulation in which no sample pays meets no standard error; some samples pay once there are far more.
#[test]
fn samples_that_pay_nothing_have_no_standard_error() {
    let far = |paths: i64| {
        simulation(json!({"contract": {"type": "european", "kind": "call", "strike": 250.0}, "steps": 1,
                          "standard_error": 1e-5, "paths_max": paths}))
    };
    let found = simulated(far(65_536));
    assert_eq!((found.price, found.paths, found.standard_error_met), (0.0, 65_536, Some(false)));
    assert!(
        found.standard_error.is_infinite() && found.warning.starts_with("none of 65536 samples"),
        "{found:?}"
    );
    // A result from few paying samples has a warning.
    let found = simulated(far(1 << 22));
    assert!(
        (found.price - 2.345_045e-5).abs() < 5.0 * found.standard_error && found.price > 0.0,
        "{found:?}"
    );
    assert_eq!(found.paths, 1 << 22);
    assert!(found.warning.contains("of 4194304 samples"), "{found:?}");
    // An option that is already knocked out certainly pays nothing.
    let over = simulation(
        json!({"steps": 1, "standard_error": 1e-5, "contract": {"type": "barrier", "kind": "call",
        "strike": 100.0, "barrier_kind": "up-out", "barrier": 90.0}}),
    );
    let found = simulated(over);
    assert_eq!((found.price, found.standard_error, found.standard_error_met), (0.0, 0.0, Some(true)));
    assert_eq!(found.warning, "");
}

#[test]
fn a_call_with_a_great_deviation_is_exact() {
    let asset = json!({"symbol": "A", "spot": 100.0, "volatility": 3.0, "rate": 0.03});
    let found = simulated(simulation(
        json!({"assets": [asset], "expiry_years": 3.0, "steps": 1, "paths_max": 262_144,
        "greeks": true, "contract": {"type": "european", "kind": "call", "strike": 100.0}}),
    ));
    assert!((found.price - 99.103_884).abs() < 4.0 * found.standard_error, "{found:?}");
    assert!(found.standard_error < 0.1 && found.warning.is_empty(), "{found:?}");
    let greek = |name: &str| found.greeks.iter().find(|greek| greek.name == name).expect(name).value;
    assert!((greek("delta") - 0.995).abs() < 0.01, "{found:?}");
    assert!((greek("theta_per_day") * 365.0 / greek("theta") - 1.0).abs() < 1e-12);
    assert!((greek("rho_foreign") + greek("rho") + 3.0 * found.price).abs() < 1e-9);
}

/// The put that is simulated in place of a deep call hardly ever pays, and is worth less than the strike, which bounds
/// the error.
#[test]
fn a_deep_call_with_a_great_deviation_is_met() {
    let asset = json!({"symbol": "A", "spot": 100.0, "volatility": 3.0});
    let basket =
        |strike: f64| json!({"type": "basket", "kind": "call", "strike": strike, "weights": [0.5, 0.5]});
    for strike in [1e-6, 1e-4] {
        let asked = |contract: Value, assets: usize, greeks: bool| {
            simulated(simulation(json!({
                "assets": vec![asset.clone(); assets], "expiry_years": 1.0, "steps": 1, "paths_max": 1 << 24,
                "greeks": greeks, "standard_error": 1e-6, "contract": contract,
                "correlations": if assets > 1 { json!([1.0, 0.0, 0.0, 1.0]) } else { json!([]) }})))
        };
        let call = json!({"type": "european", "kind": "call", "strike": strike});
        for (contract, assets) in [(call, 1), (basket(strike), 2)] {
            let found = asked(contract.clone(), assets, false);
            assert_eq!((found.standard_error_met, found.warning.as_str()), (Some(true), ""), "{found:?}");
            assert!((found.price - (100.0 - strike)).abs() <= strike * 1e-3, "{found:?}");
            assert!(found.standard_error > 0.0 && found.standard_error < strike * 1e-3, "{found:?}");
            assert!(found.paths <= 65_536, "{found:?}");
            // Greeks have no such bound.
            let found = asked(contract, assets, true);
            assert_eq!(found.standard_error_met, Some(true), "{found:?}");
            assert!(found.warning.starts_with("standard errors of Greeks rest on some "), "{found:?}");
        }
    }
}

/// Closed forms in 40 digits.
#[test]
fn what_expires_now_is_worth_what_it_pays() {
    let found =
        risk(book(&[asset()], &[option("option", 100.0, 0.5), option("option", 110.0, 0.0)], history()));
    assert!((found.value - 15.100_073_264_748_62).abs() < 1e-12, "{found:?}");
    assert!((found.value_at_risk - 3.839_922_084_806_59).abs() < 1e-9, "{found:?}");
    assert!(found.positions.iter().all(|position| position.error.is_empty()));
}

/// Numbers of QuantLib 1.44 (`QdFpAmericanEngine`).
#[test]
fn americans_are_positions() {
    let put = option("american", 100.0, 0.5);
    let found = risk(book(&[asset()], std::slice::from_ref(&put), history()));
    assert!((found.value - 5.185_322_869_8).abs() < 1e-8, "{found:?}");
    assert!((found.value_at_risk - 1.124_762_240_8).abs() < 1e-7, "{found:?}");
    let parametric =
        json!({"type": "parametric", "confidence": 0.99, "covariance": [0.04], "horizon_years": 0.04});
    assert!(risk(book(&[asset()], std::slice::from_ref(&put), parametric)).value_at_risk > 0.0);
    // The boundary moves with volatilities and rates.
    let scenarios = json!({"type": "stress", "scenarios": [
        {"name": "nothing"}, {"name": "down", "spot_shift": -0.1}, {"name": "all", "volatility_shift": 0.1, "rate_shift": 0.01}]});
    let found = stress(book(&[asset()], &[put], scenarios));
    assert_eq!(found.scenarios[0].profit, 0.0);
    let value = |spot: f64, volatility: f64, rate: f64| {
        let asset = json!({"symbol": "A", "spot": spot, "volatility": volatility, "rate": rate, "dividend_yield": 0.01});
        let contract = json!({"type": "american", "kind": "put", "strike": 100.0});
        simulated(american(json!({"assets": [asset], "contract": contract, "expiry_years": 0.5}))).price
    };
    let now = value(100.0, 0.2, 0.03);
    for (scenario, then) in found.scenarios[1..].iter().zip([value(90.0, 0.2, 0.03), value(100.0, 0.3, 0.04)])
    {
        assert!((scenario.profit - (then - now)).abs() < 1e-12, "{scenario:?} {}", then - now);
    }
}

/// Rates may move so that exercise is best between two prices, or never.
#[test]
fn an_american_has_no_number_in_a_scenario_of_two_boundaries() {
    let asset = |rate: f64, dividend_yield: f64| json!({"symbol": "A", "spot": 80.0, "volatility": 0.15, "rate": rate, "dividend_yield": dividend_yield});
    let scenarios = json!({"type": "stress", "scenarios": [{"name": "nothing"}, {"name": "rates down", "rate_shift": -0.015}]});
    let of = |kind: &str, asset: &Value| {
        let mut american = option("american", 100.0, 5.0);
        american["kind"] = json!(kind);
        let held = [american, option("option", 100.0, 5.0)];
        let alone = task(book(std::slice::from_ref(asset), &held[..1], scenarios.clone()));
        (stress(book(std::slice::from_ref(asset), &held, scenarios.clone())), alone)
    };
    let (found, alone) = of("put", &asset(0.005, -0.03));
    let european = stress(book(&[asset(0.005, -0.03)], &[option("option", 100.0, 5.0)], scenarios.clone()));
    assert_eq!((found.value, &found.scenarios), (european.value, &european.scenarios));
    let [bad] = &found.bad_positions[..] else { panic!("{found:?}") };
    let why = "problem.measure.scenarios[1] (\"rates down\"): rate -0.00999";
    assert!(bad.position == 0 && bad.error.starts_with(why), "{bad:?}");
    assert_eq!(alone.expect_err("no position is left").field, "problem.positions");
    // A call by the other number.
    assert_eq!(of("call", &asset(0.005, -0.005)).0.bad_positions.len(), 1);
    // Never exercised, and the European option: r ≤ 0 and q ≥ r.
    let (found, _) = of("put", &asset(0.005, 0.0));
    assert!(found.bad_positions.is_empty(), "{found:?}");
    let value =
        |kind: &str, rate: f64| risk(book(&[asset(rate, 0.0)], &[option(kind, 100.0, 5.0)], history())).value;
    let of_european = value("option", -0.01) - value("option", 0.005);
    let of_american = value("option", -0.01) - value("american", 0.005);
    assert!((found.scenarios[1].profit - of_european - of_american).abs() < 1e-12, "{found:?}");
}

#[test]
fn a_bad_position_is_one_row() {
    let instruments = [
        option("american", 100.0, -1.0),
        option("option", 100.0, 0.5),
        json!({"type": "spot", "asset": 9}),
        option("american", 100.0, 0.5),
        json!({"type": "option", "asset": 1, "kind": "put", "strike": 1.0, "expiry_years": 1.0}),
    ];
    let mut bad_asset = asset();
    bad_asset["spot"] = json!(-1.0);
    let found = risk(book(
        &[asset(), bad_asset.clone()],
        &instruments,
        json!({"type": "historical", "confidence": 0.95,
        "returns": [-0.02, 0.0, 0.01, 0.0, -0.01, 0.0, 0.03, 0.0]}),
    ));
    assert!((found.value - 5.100_073_264_748_62 - 5.185_322_869_8).abs() < 1e-8, "{found:?}");
    let errors: Vec<&str> = found.positions.iter().map(|position| position.error.as_str()).collect();
    assert!(errors[0].starts_with("problem.positions[0].instrument.expiry_years: "), "{errors:?}");
    assert!(errors[1].is_empty() && errors[3].is_empty(), "{errors:?}");
    assert!(
        errors[2].starts_with("problem.positions[2].instrument.asset: asset is 9, but there are 2"),
        "{errors:?}"
    );
    assert!(errors[4].starts_with("problem.assets[1].spot: spot is -1"), "{errors:?}");
    assert!(found.positions[0].value.is_nan() && found.positions[2].component_value_at_risk.is_nan());
    let scenarios = json!({"type": "stress", "scenarios": [{"name": "down", "spot_shift": -0.1}]});
    let found = stress(book(&[asset(), bad_asset], &instruments, scenarios));
    let places: Vec<i32> = found.bad_positions.iter().map(|bad| bad.position).collect();
    assert_eq!(places, [0, 2, 4]);
    // A book without any good position has no answer.
    let error = task(book(&[asset()], &instruments[..1], history())).expect_err("none is good");
    assert_eq!(error.field, "problem.positions[0].instrument.expiry_years");
}

#[test]
fn books_of_all_kinds_are_the_same_on_devices_and_however_cut() {
    let mut digital = option("digital", 100.0, 0.5);
    digital["pays"] = json!("cash");
    let mut instruments = vec![option("option", 110.0, 0.0), digital, option("option", 95.0, 1.0)];
    let stress = json!({"type": "stress", "scenarios": [
        {"name": "a", "spot_shift": -0.1, "yield_twist": 0.01}, {"name": "b", "volatility_shift": 0.1, "rate_shift": 0.01}]});
    let returns: Vec<f64> = (0..200).map(|number| f64::from(number % 17 - 8) * 0.004).collect();
    let history = json!({"type": "historical", "confidence": 0.95, "returns": returns});
    let emulator = Emulator::default();
    for measure in [&stress, &history] {
        check_cuts(&emulator, &book(&[asset()], &instruments, measure.clone()));
    }
    instruments.push(option("american", 100.0, 0.5));
    for measure in [&stress, &history] {
        check_cuts(&emulator, &book(&[asset()], &instruments, measure.clone()));
    }
}

/// An asset without a market makes only its own rows bad; it fails the request if there are no others.
#[test]
fn an_asset_without_a_market_is_some_bad_rows() {
    let of =
        |symbol: &str| json!({"symbol": symbol, "spot": {"from": "market"}, "volatility": 0.2, "rate": 0.01});
    let assets = [of("A:X"), of("A:NONE"), of("A:Y"), of("A:SILENT")];
    let from_market = json!({"from": "market"});
    let scenarios = json!([{"name": "down", "spot_shift": -0.1}]);
    let measures = [
        json!({"type": "historical", "confidence": 0.9, "returns": from_market}),
        json!({"type": "monte-carlo", "confidence": 0.9, "covariance": from_market, "horizon_years": 0.01, "scenarios": 512}),
        json!({"type": "parametric", "confidence": 0.9, "covariance": from_market, "horizon_years": 0.01}),
    ];
    for measure in measures {
        let found = risk(book(&assets, &spots(4), measure.clone()));
        let alone = risk(book(&[of("A:X"), of("A:Y")], &spots(2), measure));
        assert!(found.value_at_risk > 0.0 && (found.value_at_risk / alone.value_at_risk - 1.0).abs() < 0.3);
        assert_eq!((found.value, found.positions[2].value), (alone.value, 50.0));
        let errors: Vec<&str> = found.positions.iter().map(|position| &*position.error).collect();
        assert!(errors[0].is_empty() && errors[2].is_empty(), "{errors:?}");
        assert!(errors[1].starts_with("problem.assets[1].symbol: no tick of A:NONE"), "{errors:?}");
        assert!(errors[3].starts_with("problem.assets[3].spot: A:SILENT had neither"), "{errors:?}");
    }
    let found = stress(book(&assets, &spots(4), json!({"type": "stress", "scenarios": scenarios})));
    assert_eq!(found.bad_positions.iter().map(|bad| bad.position).collect::<Vec<_>>(), [1, 3]);
    let few = json!({"symbol": "A:NEW", "spot": 1.0, "volatility": 0.2});
    let measure = json!({"type": "historical", "confidence": 0.9, "returns": {"from": "market"}});
    let found = risk(book(&[of("A:X"), few], &spots(2), measure));
    assert_eq!(
        found.positions[1].error,
        "problem.assets[1].symbol: 1 returns of A:NEW were sampled, a matrix needs 30: wait, or give a number"
    );

    let error = task(book(&assets[1..2], &spots(1), history())).expect_err("nothing else");
    assert_eq!((error.code, &*error.field), (RiskErrorCode::UnknownSymbol, "problem.assets[0].symbol"));
}

/// A knock-in whose right price is 3.8e-44 of the spot 100.
#[test]
fn a_price_below_32_bit_numbers_is_warned_of() {
    let asset = json!({"symbol": "A", "spot": 100.0, "volatility": 0.1});
    let barrier = json!({"type": "barrier", "kind": "call", "strike": 100.0, "barrier": 50.0, "barrier_kind": "down-in"});
    let simulated = |precision: &str| {
        let problem = json!({"type": "simulation", "assets": [asset], "contract": barrier, "expiry_years": 1.0, "steps": 1,
                             "precision": precision, "paths_max": 65_536});
        match task(problem).expect("a good one").outcome(Isa::detect()) {
            RiskOutcome::Simulation(found) => found,
            other => panic!("{other:?}"),
        }
    };
    assert!(simulated("mixed").warning.contains("ask for f64"), "{:?}", simulated("mixed"));
    let exact = simulated("f64");
    assert!(exact.warning.is_empty() && exact.price < 1e-40 && exact.price > 0.0, "{exact:?}");
}
