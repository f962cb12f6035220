mod edges;
mod limits;

use serde_json::{Value, json};
use warptape_emulator::Emulator;
use warptape_events::journal::AsOf;
use warptape_events::risk::RiskErrorCode;
use warptape_kernels::pricing::{BlockSums, GreekSums};

use super::*;

fn request(problem: Value) -> RiskRequest {
    let request = json!({"request_id": "test", "seed": 11, "problem": problem});
    serde_json::from_value(request).expect("a request")
}

/// A market of one symbol, whose returns alternate.
fn market_of(symbol: &str) -> Option<SymbolMarket> {
    let market = |spot, samples: &[f64]| SymbolMarket {
        partition: 3,
        next_offset: 77,
        spot,
        is_not_positive: false,
        time_ns: Some(1_000_000_000_000),
        samples: samples.to_vec().into(),
        last_sample: 1_000,
        sample_interval_ns: 1_000_000_000,
        decay: 0.94,
        year_ns: 8_760.0 * 3.6e12,
    };
    match symbol {
        "A:X" => Some(market(Some(101.0), &[100.0, 101.0].repeat(20))),
        "A:Y" => Some(market(Some(50.0), &[50.0, 49.5, 50.5, 50.0, 50.25].repeat(9))),
        "A:NEW" => Some(market(Some(5.0), &[5.0, 5.0])),
        "A:SILENT" => Some(market(None, &[])),
        _ => None,
    }
}

pub(super) fn task(problem: Value) -> Result<RiskTask, RiskError> {
    RiskTask::new(&request(problem), &market_of)
}

pub(super) fn asset() -> Value {
    json!({"symbol": "any", "spot": 100.0, "volatility": 0.2, "rate": 0.03, "dividend_yield": 0.01})
}

fn simulation(changes: Value) -> Value {
    let mut problem = json!({"type": "simulation", "assets": [asset()], "expiry_years": 1.0, "steps": 4,
                             "contract": {"type": "asian", "kind": "call", "strike": 100.0}, "paths_max": 3 * BLOCK});
    let changes = changes.as_object().expect("an object").clone();
    problem.as_object_mut().expect("an object").extend(changes);
    problem
}

/// An American option without parameters of a simulation.
fn american(changes: Value) -> Value {
    let contract = json!({"type": "american", "kind": "call", "strike": 100.0});
    let mut problem = simulation(json!({"contract": contract, "steps": 0, "paths_max": 0}));
    problem.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    problem
}

/// A problem of each kind.
fn problems() -> Vec<Value> {
    let option = |strike: i32| json!({"asset": 0, "kind": "put", "strike": strike, "expiry_years": 0.5});
    let options: Vec<Value> = (60..150).map(option).collect();
    let prices: Vec<f64> = (60..150).map(|strike| f64::from(strike - 50).max(0.0) * 0.3).collect();
    let closes: Vec<f64> = (0..500_i32).map(|bar| 100.0 + f64::from(bar * 7919 % 101) / 10.0).collect();
    let rule =
        |window: i32| json!({"type": "z-score-reversion", "window": window, "entry": 1.0, "exit": 0.2});
    let rules: Vec<Value> = (2..40).map(rule).collect();
    // Rules of all kinds, in turns.
    let mixed = |number: i32| match number % 4 {
        0 => json!({"type": "ema-cross", "fast": number + 2, "slow": number + 9}),
        1 => json!({"type": "band-breakout", "window": number + 3, "width": 1.0}),
        2 => json!({"type": "rsi-reversion", "length": number, "low": 40.0, "high": 60.0}),
        _ => rule(number),
    };
    let mixed: Vec<Value> = (0..77).map(mixed).collect();
    vec![
        json!({"type": "sweep", "rules": mixed, "cost": 1e-4, "symbols": [{"symbol": "a", "closes": closes}]}),
        json!({"type": "options", "assets": [asset()], "options": options}),
        json!({"type": "implied-volatilities", "assets": [asset()], "options": options, "prices": prices}),
        simulation(json!({})),
        simulation(json!({"precision": "mixed", "antithetic": true})),
        simulation(json!({"sampling": "sobol", "steps": 6})),
        simulation(json!({"standard_error": 0.02, "paths_max": 10_000_000})),
        json!({"type": "sweep", "rules": rules,
               "symbols": [{"symbol": "a", "closes": closes}, {"symbol": "b", "closes": closes}]}),
        simulation(json!({"greeks": true, "contract": {"type": "european", "kind": "put", "strike": 95.0}})),
        simulation(
            json!({"assets": [asset(), asset()], "correlations": [1.0, 0.5, 0.5, 1.0], "sampling": "sobol",
                          "contract": {"type": "basket", "kind": "call", "strike": 100.0, "weights": [0.4, 0.6]}}),
        ),
        simulation(json!({"contract": {"type": "american", "kind": "put", "strike": 100.0}})),
        american(json!({"greeks": true})),
        simulation(json!({"contract": {"type": "american", "kind": "put", "strike": 100.0}, "steps": 21,
                          "greeks": true, "precision": "mixed", "sampling": "sobol"})),
        simulation(
            json!({"assets": [asset(), asset()], "correlations": [1.0, 0.5, 0.5, 1.0], "greeks": true, "antithetic": true,
                          "contract": {"type": "basket", "kind": "put", "strike": 100.0, "weights": [0.4, 0.6]}}),
        ),
        portfolio(json!({"type": "historical", "confidence": 0.9, "returns": {"from": "market"}})),
        portfolio(
            json!({"type": "monte-carlo", "confidence": 0.9, "scenarios": 1_000, "horizon_years": 0.04,
                         "covariance": [0.04, 0.01, 0.01, 0.09]}),
        ),
        portfolio(json!({"type": "parametric", "confidence": 0.99, "horizon_years": 0.04,
                         "covariance": {"from": "market"}})),
        portfolio(json!({"type": "stress", "scenarios": [
            {"name": "crash", "spot_shift": -0.3, "volatility_shift": 0.2, "rate_twist": 0.001,
             "shocks": [{"asset": 1, "spot": -0.5}]},
            {"name": "nothing"}]})),
        json!({"type": "optimisation", "assets": [market_asset("A:X"), market_asset("A:Y")],
               "expected_returns": [0.05, 0.08], "covariance": {"from": "market"}, "risk_aversion": 3.0,
               "budget": 1.0, "lower": [0.0, 0.0], "upper": [1.0, 1.0]}),
    ]
}

fn market_asset(symbol: &str) -> Value {
    json!({"symbol": symbol, "spot": {"from": "market"}, "volatility": {"from": "market"}})
}

fn portfolio(measure: Value) -> Value {
    let position = |number: i32| {
        let instrument = match number % 3 {
            0 => json!({"type": "spot", "asset": number % 2}),
            1 => json!({"type": "forward", "asset": number % 2, "strike": 99.0, "expiry_years": 1.0}),
            _ => {
                json!({"type": "option", "asset": number % 2, "kind": "put", "strike": 90.0 + f64::from(number),
                        "expiry_years": 0.5})
            }
        };
        json!({"name": format!("p{number}"), "book": number % 3, "quantity": f64::from(number - 60),
               "instrument": instrument})
    };
    json!({"type": "portfolio", "assets": [market_asset("A:X"), market_asset("A:Y")], "measure": measure,
           "books": [{"name": "all"}, {"name": "desk", "parent": 0}, {"name": "book", "parent": 1}],
           "positions": (0..130).map(position).collect::<Vec<_>>()})
}

/// Runs a task in slices of a length. Returns the outcome and the units of its rounds.
fn outcome(
    mut task: RiskTask,
    slice: i64,
    mut run: impl FnMut(&RiskTask, Range<i64>) -> Partial,
) -> (RiskOutcome, Vec<Range<i64>>) {
    let mut rounds: Vec<Range<i64>> = Vec::new();
    loop {
        let units = task.units();
        assert_eq!(units.start, rounds.last().map_or(0, |before| before.end), "rounds follow each other");
        assert!(!units.is_empty());
        rounds.push(units.clone());
        let slices = units.clone().step_by(slice as usize);
        let partials: Vec<Partial> =
            slices.map(|from| run(&task, from..(from + slice).min(units.end))).collect();
        match task.finish(&partials) {
            Finished::Outcome(outcome) => return (outcome, rounds),
            Finished::More(next) => task = next,
        }
    }
}

/// Runs a task on the processor.
fn outcome_on(isa: Isa, task: RiskTask, slice: i64) -> (RiskOutcome, Vec<Range<i64>>) {
    outcome(task, slice, |task, units| task.run(isa, units))
}

#[test]
fn neither_cuts_nor_devices_show() {
    let emulator = Emulator::new();
    for problem in problems() {
        check_cuts(&emulator, &problem);
    }
}

/// Checks that the outcome of a problem depends neither on the cuts of its units nor on the processor or device.
pub(super) fn check_cuts(emulator: &Emulator, problem: &Value) {
    // The outcomes are compared as text, so that NaN equals itself.
    let text = |value: &dyn std::fmt::Debug| format!("{value:?}");
    let new = || task(problem.clone()).expect("a good problem");
    let (whole, _) = outcome_on(Isa::Baseline, new(), 1 << 40);
    for slice in [1, 3, 7, 64] {
        let isa = if slice == 3 { Isa::detect() } else { Isa::Baseline };
        let (found, _) = outcome_on(isa, new(), slice);
        assert_eq!(text(&found), text(&whole), "in slices of {slice}");
    }
    let (mut device, mut memory) = (emulator.device(usize::MAX), DeviceRisk::default());
    let mut units_done = 0;
    let (found, _) = outcome(new(), 64, |task, units| {
        units_done += units.end - units.start;
        if units_done > 60 {
            return task.run(Isa::detect(), units);
        }
        // A unit that runs again, as after the loss of a lane, gives the same result.
        let first = units.start..units.end.min(units.start + 3);
        let few = task.run_on_device(&mut memory, &mut device, first.clone());
        let (few, expected) = (few.expect("no faults"), task.run(Isa::Baseline, first));
        assert_eq!(text(&few), text(&expected), "on a device");
        task.run_on_device(&mut memory, &mut device, units).expect("an emulator has no faults")
    });
    assert_eq!(text(&found), text(&whole), "all rounds on a device");
}

/// Checks the parts of rounds that the journal records: a process of another version must take the same decisions.
#[test]
fn rounds_are_what_they_were() {
    let told = problems().into_iter().map(|problem| {
        let task = task(problem).expect("a good problem");
        let mut text = format!("{} bytes, {} ns", task.bytes(), task.cost_ns());
        outcome(task, 1 << 40, |task, units| {
            let aside = if task.is_host_only() { ", aside" } else { "" };
            let width = match task.unit_width() {
                0 => String::new(),
                width => format!(", {width} wide"),
            };
            text += &format!("; {units:?} {} at {}{width}{aside}", task.rate_key(), task.unit_cost());
            task.run(Isa::detect(), units)
        });
        text
    });
    assert_eq!(told.collect::<Vec<_>>(), ROUNDS);
}

const ROUNDS: [&str; 19] = [
    "6464 bytes, 385000 ns; 0..12 sweep at 8, 1 wide",
    "11520 bytes, 22500 ns; 0..90 options at 1, 1 wide",
    "11520 bytes, 225000 ns; 0..90 implied-volatilities at 1, 1 wide",
    "120 bytes, 61440 ns; 0..3 asian/f64 at 4, 1 wide",
    "120 bytes, 122880 ns; 0..3 asian/mixed at 8, 1 wide",
    "1280 bytes, 983040 ns; 0..32 asian/f64 at 6, 1 wide",
    "781280 bytes, 400015360 ns; 0..32 asian/f64 at 4, 1 wide",
    "9216 bytes, 380000 ns; 0..5 sweep at 16, 1 wide",
    "720 bytes, 245760 ns; 0..3 european/greeks/f64 at 4, 1 wide",
    "1280 bytes, 327680 ns; 0..32 basket/f64 at 2, 1 wide",
    "120 bytes, 1372160 ns; 0..1 american/rule at 64; 1..4 american/f64 at 4, 1 wide",
    "65536 bytes, 20000000 ns; 0..1 american/boundary/greeks at 1",
    "7680 bytes, 41287680 ns; 0..1 american/rule at 128; 1..2 american/rule at 128; 2..3 american/rule at 128; 3..4 american/rule at 128; 4..5 american/rule at 128; 5..6 american/rule at 128; 6..7 american/rule at 128; 7..8 american/rule at 128; 8..9 american/rule at 128; 9..10 american/rule at 128; 10..11 american/rule at 128; 11..43 american/greeks/mixed at 21, 1 wide",
    "1080 bytes, 245760 ns; 0..3 basket/greeks/f64 at 4, 1 wide",
    "7800 bytes, 258700 ns; 0..1 portfolio/profits at 130, 65 wide; 1..2 portfolio/tails at 130, aside; 2..4 portfolio/parts at 130",
    "31328 bytes, 6620000 ns; 0..16 portfolio/profits at 130, 65 wide; 16..17 portfolio/tails at 130, aside; 17..20 portfolio/parts at 130",
    "6272 bytes, 8040 ns; 0..1 portfolio/parametric at 130, aside",
    "6384 bytes, 10400 ns; 0..1 portfolio/stress at 130, 65 wide",
    "704 bytes, 1112 ns; 0..1 optimisation/covariance at 1; 1..2 optimisation at 1, aside",
];

/// A unit of a sweep fills the lanes of a vector, whatever the order of the rules. Cells have the order of the request.
#[test]
fn rules_of_a_kind_are_one_unit() {
    let sweep = |rules: &[Value]| {
        let closes: Vec<f64> = (0..300_i32).map(|bar| 100.0 + f64::from(bar * 7919 % 101) / 10.0).collect();
        task(json!({"type": "sweep", "rules": rules, "symbols": [{"symbol": "a", "closes": closes}]}))
            .expect("a good problem")
    };
    let cross = |number: i32| json!({"type": "ema-cross", "fast": 5 + number % 25, "slow": 40 + number / 25});
    let crosses: Vec<Value> = (0..250).map(cross).collect();
    assert_eq!(sweep(&crosses).units(), 0..32);
    let bands = |number: i32| json!({"type": "band-breakout", "window": 3 + number, "width": 1.0});
    let turns: Vec<Value> = (0..20).flat_map(|number| [cross(number), bands(number)]).collect();
    let task = sweep(&turns);
    assert_eq!(task.units(), 0..6, "20 of each kind, in eights");
    let RiskOutcome::Sweep(whole) = task.outcome(Isa::detect()) else { panic!("cells") };
    let alone = turns.iter().map(|rule| {
        let RiskOutcome::Sweep(one) = sweep(std::slice::from_ref(rule)).outcome(Isa::Baseline) else {
            panic!("a cell")
        };
        one.cells[0].clone()
    });
    assert_eq!(whole.cells, alone.collect::<Vec<_>>());
}

/// A portfolio with few changes is not computed again, and the result does not show it.
#[test]
fn what_is_kept_does_not_show() {
    let returns: Vec<f64> = (0..300_i32).map(|day| f64::from(day * 7919 % 101 - 50) / 2e3).collect();
    for measure in [
        json!({"type": "historical", "confidence": 0.9, "returns": returns}),
        json!({"type": "monte-carlo", "confidence": 0.95, "scenarios": 150, "horizon_years": 0.04,
               "covariance": [0.04, 0.01, 0.01, 0.09]}),
        json!({"type": "stress", "scenarios": [{"name": "down", "spot_shift": -0.1}, {"name": "up", "spot_shift": 0.1}]}),
    ] {
        let kept = KeptProfits::default();
        let mut problem = portfolio(measure.clone());
        problem["assets"] = json!([asset(), asset()]);
        let ask = |problem: &Value| {
            let before = kept.revalued();
            let new = || task(problem.clone()).expect("a good problem");
            let (plain, following) = (new(), new().following(&kept));
            let units = following.units().end as u64;
            let (expected, _) = outcome_on(Isa::Baseline, plain, 64);
            let (found, _) = outcome_on(Isa::detect(), following, 2);
            assert_eq!(found, expected);
            ((kept.revalued() - before).div_ceil(units), (kept.revalued() - before) % units)
        };
        assert_eq!(ask(&problem), (0, 0), "nothing is kept of the first");
        problem["positions"][3]["quantity"] = json!(7.5);
        assert_eq!(ask(&problem), (130, 0), "the second is kept");
        problem["positions"][129]["quantity"] = json!(-1.0);
        problem["positions"][8]["instrument"]["strike"] = json!(77.0);
        assert_eq!(ask(&problem), (2, 0));
        assert_eq!(ask(&problem), (0, 0), "nothing has changed");
        problem["assets"][1]["spot"] = json!(101.0);
        assert_eq!(ask(&problem), (65, 0), "positions in the asset");
        problem["assets"][0]["spot"] = json!(99.0);
        problem["assets"][1]["volatility"] = json!(0.3);
        assert_eq!(ask(&problem), (0, 0), "most has changed: computed anew");
        problem["positions"][0]["quantity"] = json!(2.0);
        assert_eq!(ask(&problem), (130, 0), "what was kept is of long ago");
        // Other books are another portfolio.
        problem["books"][2]["parent"] = json!(0);
        assert_eq!(ask(&problem), (0, 0));
    }
}

/// The exercise rule of an American option is found some dates after others, so that no slice is long.
#[test]
fn a_rule_is_found_in_short_rounds() {
    let of = |changes: Value| {
        let mut problem =
            simulation(json!({"contract": {"type": "american", "kind": "put", "strike": 100.0}}));
        problem.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        let task = task(problem).expect("a good problem");
        let mut keys = vec![task.rate_key()];
        let (found, rounds) = outcome(task, 64, |task, units| {
            keys.push(task.rate_key());
            task.run(Isa::detect(), units)
        });
        keys.dedup();
        let RiskOutcome::Simulation(result) = found else { panic!("{found:?}") };
        let units: Vec<i64> = rounds.iter().map(|units| units.end - units.start).collect();
        (result, units, keys)
    };
    let (plain, units, keys) = of(json!({"steps": 50}));
    assert_eq!(units, [1, 1, 1, 1, 1, 1, 1, 3]);
    assert_eq!(keys, ["american/rule", "american/f64"]);
    // With Greeks it is found from four times as many paths, in units of the same length.
    let (with_greeks, units, keys) = of(json!({"steps": 50, "greeks": true}));
    assert_eq!((units.len(), units[24], keys[1].as_str()), (26, 1, "american/greeks/f64"));
    assert!((with_greeks.price / plain.price - 1.0).abs() < 0.02, "{with_greeks:?} and {plain:?}");
    let names: Vec<&str> = with_greeks.greeks.iter().map(|greek| greek.name.as_str()).collect();
    assert_eq!(names, ["delta", "gamma", "vega", "theta", "rho", "theta_per_day", "vega_per_point"]);
}

/// An American option is simulated if a request has any parameter of a simulation, and otherwise priced without one. A
/// call without dividends is the European one.
#[test]
fn an_american_option_is_priced_without_simulation_unless_one_is_asked() {
    let of = |changes: Value| {
        let task = task(american(changes)).expect("a good problem");
        let RiskOutcome::Simulation(result) = task.outcome(Isa::detect()) else { panic!("a price") };
        (task.rate_key(), result)
    };
    let plain = json!({"symbol": "any", "spot": 100.0, "volatility": 0.2, "rate": 0.03});
    let (key, result) = of(json!({"assets": [plain], "greeks": true}));
    assert_eq!((key.as_str(), result.paths, result.standard_error), ("american/boundary/greeks", 0, 0.0));
    assert!((result.price - 9.413_403_383_853_02).abs() < 1e-12, "{}", result.price);
    let names: Vec<&str> = result.greeks.iter().map(|greek| greek.name.as_str()).collect();
    let follow = ["theta_per_day", "vega_per_point", "rho_foreign"];
    assert_eq!(names, [&["delta", "gamma", "vega", "theta", "rho"][..], &follow].concat());
    assert!(result.greeks.iter().all(|greek| greek.standard_error == 0.0));
    let (key, result) = of(json!({}));
    assert_eq!((key.as_str(), result.greeks.len()), ("american/boundary", 0));
    let (key, simulated) = of(json!({"paths_max": 40 * BLOCK, "steps": 50}));
    assert_eq!((key.as_str(), simulated.paths), ("american/rule", 40 * BLOCK));
    assert!((simulated.price - result.price).abs() < 0.02 * result.price, "{simulated:?} and {result:?}");
    // A request with only some of the parameters is an error, as before.
    for (half, field) in [
        (json!({"steps": 50}), "problem.paths_max"),
        (json!({"standard_error": 0.1}), "problem.steps"),
        (json!({"sampling": "sobol"}), "problem.steps"),
    ] {
        assert_eq!(task(american(half)).expect_err("half a simulation").field, field);
    }
    let negative =
        json!({"symbol": "any", "spot": 100.0, "volatility": 0.2, "rate": -0.03, "dividend_yield": -0.01});
    let error = task(american(json!({"assets": [negative]}))).expect_err("two boundaries");
    assert_eq!((error.code, error.field.as_str()), (RiskErrorCode::BadParameter, "problem.assets[0].rate"));
}

/// A call without dividends is the European one, by simulation too.
#[test]
fn a_simulated_american_option_is_not_below_the_european_one() {
    let plain = json!({"symbol": "any", "spot": 100.0, "volatility": 0.2, "rate": 0.03});
    let problem = american(json!({"assets": [plain], "paths_max": 8 * BLOCK, "steps": 12}));
    let found = price(&task(problem).expect("a good problem"));
    assert!((found - 9.413_403_383_853_02).abs() < 1e-9, "{found}");
}

/// Terms above the boundary grow as exp(1.448·53.5), and cancel; a leg of great deviations is nearly 0.
#[test]
fn numbers_that_nearly_cancel_keep_their_digits() {
    let cancelling = json!({"symbol": "any", "spot": 100.0, "volatility": 0.7243, "rate": -1.448, "dividend_yield": 0.7086});
    let cancelling = task(american(json!({"assets": [cancelling], "expiry_years": 53.5})));
    assert!(price(&cancelling.expect("a good problem")) > 0.0);
    let asset = json!({"symbol": "any", "spot": 100.0, "volatility": 20.0});
    let option = json!({"asset": 0, "kind": "call", "strike": 100.0, "expiry_years": 1.0});
    let task = task(json!({"type": "options", "assets": [asset], "options": [option]}));
    let RiskOutcome::Options(result) = task.expect("a good problem").outcome(Isa::detect()) else {
        panic!("numbers")
    };
    assert!(result.values[0].rho > 0.0);
}

fn price(task: &RiskTask) -> f64 {
    match task.outcome(Isa::detect()) {
        RiskOutcome::Simulation(result) => result.price,
        other => panic!("{other:?}"),
    }
}

/// Sobol's points are even on both sides by themselves.
#[test]
fn sobol_has_no_pairs() {
    let sobol = |changes: Value| {
        let mut problem = simulation(json!({"sampling": "sobol", "antithetic": true}));
        problem.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        problem
    };
    let error = task(sobol(json!({"steps": 1}))).expect_err("pairs are refused");
    assert_eq!((error.code, error.field.as_str()), (RiskErrorCode::BadParameter, "problem.antithetic"));
    assert!(error.message.contains("problem.sampling is SOBOL"), "{}", error.message);
    // Another mistake is reported first.
    let error = task(sobol(json!({"expiry_years": -1.0}))).expect_err("two mistakes");
    assert_eq!(error.field, "problem.expiry_years");
}

/// A basket has Greeks by asset, in the order of the request.
#[test]
fn greeks_of_baskets_are_named_by_asset() {
    let basket = |changes: Value| {
        let mut problem = simulation(
            json!({"assets": [asset(), asset()], "correlations": [1.0, 0.5, 0.5, 1.0], "greeks": true,
                   "contract": {"type": "basket", "kind": "call", "strike": 100.0, "weights": [0.25, 0.75]}}),
        );
        problem.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        task(problem)
    };
    let task = basket(json!({})).expect("a good problem");
    assert_eq!(task.rate_key(), "basket/greeks/f64");
    let (found, _) = outcome_on(Isa::detect(), task, 2);
    let RiskOutcome::Simulation(result) = found else { panic!("{found:?}") };
    let names: Vec<&str> = result.greeks.iter().map(|greek| greek.name.as_str()).collect();
    let expected = ["delta[0]", "gamma[0]", "vega[0]", "delta[1]", "gamma[1]", "vega[1]", "theta", "rho"];
    let follow =
        ["theta_per_day", "vega_per_point[0]", "vega_per_point[1]", "rho_foreign[0]", "rho_foreign[1]"];
    assert_eq!((names, result.paths), ([&expected[..], &follow].concat(), 3 * BLOCK));
    let delta = |number: usize| result.greeks[number].value;
    assert!((delta(3) / delta(0) - 3.0).abs() < 0.3, "{result:?}");
    let error = basket(json!({"paths_max": 1 << 30})).expect_err("too many numbers");
    assert_eq!(error.field, "problem.paths_max");
    assert!(error.message.contains("29826161"), "{}", error.message);
}

/// The memory of a request is known before any work on it.
#[test]
fn memory_is_known_before() {
    let bytes = |problem: Value| task(problem).expect("a good problem").bytes();
    let shocks = |scenarios: usize| {
        let scenario =
            |number: usize| json!({"name": format!("s{number}"), "spot_shift": -0.1, "rate_shift": 0.01});
        portfolio(json!({"type": "stress", "scenarios": (0..scenarios).map(scenario).collect::<Vec<_>>()}))
    };
    // Two moves of two assets, and the profits of three books.
    assert_eq!(bytes(shocks(1_000)) - bytes(shocks(1)), 999 * (2 * 2 + 3) * size_of::<f64>());
    let samples = |greeks: bool| simulation(json!({"paths_max": 1 << 20, "greeks": greeks}));
    let blocks = (1 << 20) / BLOCK as usize;
    assert_eq!(bytes(samples(false)), blocks * size_of::<BlockSums>());
    assert_eq!(bytes(samples(true)), blocks * size_of::<GreekSums>());
    for problem in problems() {
        assert!(bytes(problem.clone()) > 0, "{problem}");
    }
}

/// Parts add up, and the result names the market of every asset that was asked about.
#[test]
fn risk_of_portfolios_adds_up() {
    for measure in [
        json!({"type": "historical", "confidence": 0.75, "returns": {"from": "market"}}),
        json!({"type": "parametric", "confidence": 0.99, "horizon_years": 0.04, "covariance": {"from": "market"}}),
    ] {
        let task = task(portfolio(measure)).expect("a good problem");
        assert_eq!(
            task.as_of().iter().map(|taken| taken.symbol.as_str()).collect::<Vec<_>>(),
            ["A:X", "A:Y"]
        );
        let (found, _) = outcome_on(Isa::detect(), task, 9);
        let RiskOutcome::Portfolio(result) = found else { panic!("{found:?}") };
        let of_positions: f64 =
            result.positions.iter().map(|position| position.component_value_at_risk).sum();
        let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        assert!(close(of_positions, result.value_at_risk), "{of_positions} {}", result.value_at_risk);
        let shortfall: f64 =
            result.positions.iter().map(|position| position.component_expected_shortfall).sum();
        assert!(close(shortfall, result.expected_shortfall));
        assert!(close(result.books[0].component_value_at_risk, result.value_at_risk));
        assert_eq!(result.books[0].value_at_risk.to_bits(), result.value_at_risk.to_bits());
        assert!(result.expected_shortfall >= result.value_at_risk);
    }
}

#[test]
fn samples_double_until_the_error_is_small() {
    let of = |standard_error: f64, paths_max: i64| {
        let task = task(simulation(json!({"standard_error": standard_error, "paths_max": paths_max})));
        let task = task.expect("a good problem");
        let (found, rounds) = outcome_on(Isa::detect(), task, 2);
        let RiskOutcome::Simulation(result) = found else { panic!("{found:?}") };
        let blocks: Vec<i64> = rounds.iter().map(|units| units.end - units.start).collect();
        (result, blocks)
    };
    let (result, rounds) = of(0.0005, 1 << 28);
    assert!(result.standard_error <= 0.0005, "{result:?}");
    assert!(rounds.len() > 2 && rounds[..3] == [32, 32, 64], "{rounds:?}");
    let (result, rounds) = of(1e-9, 40 * BLOCK);
    assert_eq!((result.paths, rounds), (40 * BLOCK, vec![32, 8]));
}

const BLOCK: i64 = warptape_kernels::pricing::BLOCK_SAMPLES as i64;

#[test]
fn what_the_market_says_is_taken_and_told() {
    let market = json!({"symbol": "A:X", "spot": {"from": "market"}, "volatility": {"from": "market"}});
    let option = json!({"asset": 0, "kind": "call", "strike": 101.0, "expiry_years": 0.1});
    let task =
        task(json!({"type": "options", "assets": [market], "options": [option]})).expect("all is there");
    let [taken] = task.as_of() else { panic!("{:?}", task.as_of()) };
    assert_eq!((taken.symbol.as_str(), taken.partition, taken.next_offset), ("A:X", 3, 77));
    assert_eq!(taken.spot, Some(101.0));
    // The expected volatility is ln(1.01) per second, annualised over 365 days.
    let expected = 1.01_f64.ln() * (365.0_f64 * 86_400.0).sqrt();
    let volatility = taken.volatility.expect("it was asked for");
    assert!((volatility / expected - 1.0).abs() < 1e-14, "{volatility} is not {expected}");
}

#[test]
fn mistakes_are_named() {
    let check = |problem: Value, code: RiskErrorCode, field: &str, words: &str| {
        let error = task(problem).expect_err(field);
        assert_eq!((error.code, error.field.as_str()), (code, field), "{}", error.message);
        assert!(error.message.contains(words), "{}", error.message);
    };
    let bad = RiskErrorCode::BadParameter;
    let market = |symbol: &str, field: &str| {
        let mut asset = json!({"symbol": symbol, "spot": 1.0, "volatility": 0.1});
        asset[field] = json!({"from": "market"});
        simulation(json!({"assets": [asset]}))
    };
    check(market("A:NONE", "spot"), RiskErrorCode::UnknownSymbol, "problem.assets[0].symbol", "A:NONE");
    let missing = RiskErrorCode::MissingMarketData;
    check(market("A:SILENT", "spot"), missing, "problem.assets[0].spot", "neither a trade");
    check(market("A:NEW", "volatility"), missing, "problem.assets[0].volatility", "1 returns");
    check(simulation(json!({"paths_max": 0})), bad, "problem.paths_max", "from 1");
    check(simulation(json!({"steps": -1})), bad, "problem.steps", "from 1");
    check(simulation(json!({"standard_error": 0.0})), bad, "problem.standard_error", "more than 0");
    check(simulation(json!({"expiry_years": 0.0})), bad, "problem.expiry_years", "from 3e-9");
    let contract = json!({"type": "european", "kind": "call", "strike": -1.0});
    check(simulation(json!({"contract": contract})), bad, "problem.contract.strike", "-1");
    let options = |option: Value| json!({"type": "options", "assets": [asset()], "options": [option]});
    let option = json!({"asset": 1, "kind": "call", "strike": 1.0, "expiry_years": 1.0});
    check(options(option), bad, "problem.options[0].asset", "1 assets");
    let option = json!({"asset": 0, "kind": "call", "strike": 0.0, "expiry_years": 1.0});
    check(options(option), bad, "problem.options[0].strike", "strike is 0");
    let option = json!({"asset": 0, "kind": "call", "strike": 1.0, "expiry_years": 1.0});
    let problem =
        json!({"type": "implied-volatilities", "assets": [asset()], "options": [option], "prices": []});
    check(problem, bad, "problem.prices", "it must be 1");
    let sweep = |window: i32, close: f64| {
        json!({"type": "sweep", "symbols": [{"symbol": "a", "closes": [close]}],
               "rules": [{"type": "band-breakout", "window": window, "width": 2.0}]})
    };
    check(sweep(0, 1.0), bad, "problem.rules[0].window", "from 1");
    check(sweep(2, 0.0), bad, "problem.symbols[0].closes", "close 0");
    let changed = |field: &str, value: Value| {
        let mut problem = portfolio(json!({"type": "stress", "scenarios": [{"name": "a"}]}));
        problem[field] = value;
        problem
    };
    check(
        changed("books", json!([{"name": "a"}, {"name": "b"}, {"name": "c"}])),
        bad,
        "problem.books[1].parent",
        "parent",
    );
    let far = json!([{"name": "a", "book": 7, "quantity": 1.0, "instrument": {"type": "spot", "asset": 0}}]);
    check(changed("positions", far), bad, "problem.positions[0].book", "numbered from 0");
    let measure = json!({"type": "stress", "scenarios": [{"name": "a", "shocks": [{"asset": 9}]}]});
    check(changed("measure", measure), bad, "problem.measure.scenarios[0].shocks[0].asset", "2 assets");
    let measure = json!({"type": "historical", "confidence": 0.9, "returns": [0.1, 0.2, 0.3]});
    check(changed("measure", measure), bad, "problem.measure.returns", "3 numbers");
    let american = json!({"contract": {"type": "american", "kind": "put", "strike": 1.0}, "sampling": "sobol",
                          "steps": 257});
    check(simulation(american), bad, "problem.steps", "2.56e2");
    let basket = json!({"contract": {"type": "basket", "kind": "put", "strike": 1.0, "weights": []}});
    check(simulation(basket), bad, "problem.contract.weights", "it must be 1");
    let mut long = request(simulation(json!({})));
    long.request_id = "x".repeat(129);
    assert_eq!(RiskTask::new(&long, &market_of).expect_err("too long").field, "request_id");
    for deadline_ns in [-1, i64::MIN, i64::MAX] {
        let never = RiskRequest { deadline_ns: Some(deadline_ns), ..request(simulation(json!({}))) };
        assert_eq!(RiskTask::new(&never, &market_of).expect_err("no time").field, "deadline_ns");
    }
}

#[test]
fn a_panic_is_the_answer() {
    let tasks: Vec<RiskTask> =
        problems().into_iter().map(|problem| task(problem).expect("a good request")).collect();
    let implied = tasks.iter().find(|task| task.rate_key() == "implied-volatilities");
    let implied = implied.expect("there is one of each kind");
    // No task has these units.
    let panicked = implied.run_caught(Isa::Baseline, -2..-1);
    let is_expected = |finished: Finished| matches!(finished, Finished::Outcome(RiskOutcome::Error(error)) if error == refusals::panicked());
    for task in tasks {
        let good = task.run(Isa::Baseline, 0..1);
        assert!(is_expected(task.finish([&good, &panicked])), "{}", task.rate_key());
        if task.rate_key().starts_with("optimisation") {
            // These partial results come from no unit of the task.
            assert!(is_expected(task.finish([&Partial::Blocks(Vec::new())])));
        }
    }
}

#[test]
fn what_was_taken_of_the_market_is_all_that_a_task_asks() {
    for problem in problems() {
        let request = request(problem);
        let whole = RiskTask::new(&request, &market_of).expect("a good request");
        let markets = [AsOf { partition: 3, next_offset: 77 }];
        let taken = MarketSnapshot::of(&request, &market_of, markets);
        let asks = symbols_of(&request.problem).next().is_some();
        assert_eq!(taken.as_of(), &markets[..usize::from(asks)]);
        let task = RiskTask::of_taken(&request, taken).expect("nothing is missing");
        assert_eq!(format!("{task:?}"), format!("{whole:?}"));
    }
    let problem = simulation(json!({"assets": [market_asset("A:NONE")]}));
    let error =
        RiskTask::of_taken(&request(problem), MarketSnapshot::default()).expect_err("nobody knows it");
    assert_eq!(error.code, RiskErrorCode::UnknownSymbol);
}

#[test]
fn few_numbers_are_put_together_at_once() {
    let option = json!({"asset": 0, "kind": "put", "strike": 90.0, "expiry_years": 0.5});
    let options =
        |count: usize| json!({"type": "options", "assets": [asset()], "options": vec![&option; count]});
    for (problem, units, is_long) in [
        (options(500), 500, false),
        (options(600), 600, true),
        (simulation(json!({"paths_max": 4_000 * BLOCK, "steps": 1})), 4_000, false),
        (simulation(json!({"paths_max": 4_100 * BLOCK, "steps": 1})), 4_100, true),
    ] {
        let task = task(problem).expect("a good request");
        assert_eq!(task.units(), 0..units);
        let half = units / 2;
        let partials = [0..half, half..units].map(|units| task.run(Isa::detect(), units));
        assert_eq!(task.is_long_to_finish(&partials), is_long, "{units} units");
        assert!(!task.is_long_to_finish(&partials[..1]));
    }
}
