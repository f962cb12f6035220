//! Risk requests and results: every branch of every union reads back, from JSON and from bytes, and apache-avro reads
//! the same values.

use std::path::PathBuf;

use apache_avro::types::Value;
use serde_json::json;
use warptape_schemas::journal::AsOf;
use warptape_schemas::known::KnownSchema;
use warptape_schemas::risk::{
    ImpliedVolatility, RULES, RiskOutcome, RiskRequest, RiskResult, SimulatedGreek, SimulationResult,
};
use warptape_schemas::shape::{Content, Member, Named, Shape, Shaped};
use warptape_schemas::wire::Wire;
use warptape_schemas::*;

use crate::avro::Published;

/// Requests of every kind: the examples, and one for each branch of each union.
pub fn requests() -> Vec<RiskRequest> {
    examples().into_iter().chain(branches()).collect()
}

/// The requests in `examples/risk`, in the order of their file names.
fn examples() -> Vec<RiskRequest> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/risk");
    let files = std::fs::read_dir(folder).expect("examples").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
    files.sort();
    let request = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a file of text");
        let mut request: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        request["request_id"] = json!(path.file_stem().and_then(|name| name.to_str()));
        serde_json::from_value(request).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.into_iter().map(request).collect()
}

fn branches() -> Vec<RiskRequest> {
    let given =
        json!({"symbol": "A:X", "spot": 100.0, "volatility": 0.2, "rate": 0.01, "dividend_yield": 0.005});
    let market = json!({"symbol": "A:Y", "spot": {"from": "market"}, "volatility": {"from": "MARKET"}});
    let future = json!({"symbol": "A:F", "spot": 60.0, "volatility": 0.35, "rate": 0.04, "kind": "future"});
    let option = json!({"asset": 1, "kind": "call", "strike": 95.5, "expiry_years": 0.25});
    let simulation = |contract: serde_json::Value| {
        json!({"type": "simulation", "assets": [given], "contract": contract, "expiry_years": 1.5, "steps": 12,
               "paths_max": 65_536})
    };
    let portfolio = |measure: serde_json::Value| {
        json!({"type": "portfolio", "assets": [given, market], "measure": measure,
               "books": [{"name": "all"}, {"name": "desk", "parent": 0}],
               "positions": [
                   {"name": "a", "book": 1, "quantity": -3.5, "instrument": {"type": "spot", "asset": 0}},
                   {"name": "b", "book": 1, "quantity": 2.0,
                    "instrument": {"type": "forward", "asset": 1, "strike": 99.0, "expiry_years": 2.0}},
                   {"name": "c", "book": 0, "quantity": 1.0,
                    "instrument": {"type": "option", "asset": 1, "kind": "PUT", "strike": 90.0, "expiry_years": 0.5}}]})
    };
    let problems = [
        json!({"type": "options", "assets": [given, market], "options": [option, option]}),
        json!({"type": "implied-volatilities", "assets": [given, market], "options": [option], "prices": [7.25]}),
        simulation(json!({"type": "european", "kind": "call", "strike": 100.0})),
        simulation(json!({"type": "asian", "kind": "put", "strike": 100.0})),
        simulation(
            json!({"type": "barrier", "kind": "call", "strike": 100.0, "barrier_kind": "up-out", "barrier": 130.0}),
        ),
        simulation(json!({"type": "lookback", "kind": "call"})),
        simulation(json!({"type": "lookback", "kind": "put", "strike": 101.0})),
        simulation(json!({"type": "american", "kind": "put", "strike": 100.0})),
        json!({"type": "simulation", "assets": [given, market], "correlations": {"from": "market"},
               "contract": {"type": "basket", "kind": "call", "strike": 100.0, "weights": [0.5, 0.5]},
               "expiry_years": 1.0, "steps": 1, "precision": "mixed", "sampling": "sobol", "antithetic": true,
               "greeks": true, "paths_max": 1_000_000, "standard_error": 0.01}),
        portfolio(json!({"type": "historical", "confidence": 0.99, "returns": [0.01, -0.02, 0.03, 0.0]})),
        portfolio(json!({"type": "historical", "confidence": 0.99, "returns": {"from": "market"},
                         "horizon_years": 0.001})),
        portfolio(json!({"type": "monte-carlo", "confidence": 0.975, "covariance": [0.04, 0.0, 0.0, 0.09],
                         "horizon_years": 0.04, "scenarios": 10_000})),
        portfolio(json!({"type": "parametric", "confidence": 0.95, "covariance": {"from": "market"},
                         "horizon_years": 0.004})),
        portfolio(json!({"type": "stress", "scenarios": [
            {"name": "crash", "spot_shift": -0.3, "volatility_shift": 0.2, "volatility_twist": -0.01,
             "rate_shift": -0.01, "rate_twist": 0.001,
             "shocks": [{"asset": 1, "spot": -0.5, "volatility": 0.3, "rate": 0.0}]},
            {"name": "nothing"}]})),
        json!({"type": "portfolio", "assets": [given, future], "books": [{"name": "all"}],
               "measure": {"type": "historical", "confidence": 0.99, "returns": [0.01, -0.02]},
               "positions": [
                   {"name": "a", "book": 0, "quantity": 1.0,
                    "instrument": {"type": "american", "asset": 1, "kind": "put", "strike": 99.0, "expiry_years": 2.0}},
                   {"name": "b", "book": 0, "quantity": -2.0,
                    "instrument": {"type": "digital", "asset": 0, "kind": "call", "strike": 90.0, "expiry_years": 0.0,
                                   "pays": "asset", "amount": 3.0}}]}),
        portfolio(json!({"type": "stress", "scenarios": [
            {"name": "foreign", "foreign_rate_shift": 0.01, "yield_twist": -0.001,
             "shocks": [{"asset": 0, "dividend_yield": 0.002}]}]})),
        json!({"type": "contracts", "assets": [given, future], "greeks": true, "contracts": [
            {"id": "one", "contract": {"type": "option", "asset": 1, "kind": "call", "strike": 95.5, "expiry_years": 0.25}},
            {"contract": {"type": "spot", "asset": 0}}]}),
        json!({"type": "optimisation", "assets": [given, market], "expected_returns": [0.05, 0.08],
               "covariance": [0.04, 0.01, 0.01, 0.09], "risk_aversion": 3.0, "budget": 1.0,
               "lower": [0.0, 0.0], "upper": [1.0, 1.0]}),
        json!({"type": "sweep", "symbols": [{"symbol": "A:X", "closes": [1.0, 1.5, 1.25]}], "cost": 0.0001, "rules": [
            {"type": "ema-cross", "fast": 5, "slow": 20},
            {"type": "rsi-reversion", "length": 14, "low": 30.0, "high": 70.0},
            {"type": "z-score-reversion", "window": 20, "entry": 2.0, "exit": 0.5},
            {"type": "band-breakout", "window": 20, "width": 2.0}]}),
    ];
    let classes = ["critical", "INTERACTIVE", "batch"].into_iter().cycle();
    let request = |(number, (problem, class)): (usize, (serde_json::Value, &str))| {
        let request = json!({"request_id": format!("r-{number}"), "tenant": "desk", "class": class, "seed": -7, "gang": number % 2 == 1,
                             "deadline_ns": (number % 2 == 0).then_some(1_722_470_400_000_000_000_i64),
                             "cancels": (number % 3 == 2).then(|| format!("r-{}", number - 1)),
                             "problem": problem});
        serde_json::from_value(request).expect("a request")
    };
    problems.into_iter().zip(classes).enumerate().map(request).collect()
}

/// Results of every kind.
pub fn results() -> Vec<RiskResult> {
    let value = json!({"price": 7.5, "delta": 0.5, "gamma": 0.02, "vega": 30.0, "theta": -4.0, "rho": 20.0,
                       "vanna": 0.1, "volga": -0.5, "error": "none", "id": "mine", "theta_per_day": -0.01,
                       "vega_per_point": 0.3, "rho_foreign": -19.0});
    let outcomes = [
        json!({"type": "options", "values": [value, value]}),
        json!({"type": "implied-volatilities",
               "volatilities": [{"volatility": 0.25, "error": ""}, {"volatility": null, "error": "too low"}]}),
        json!({"type": "simulation", "price": 5.0, "standard_error": 0.01, "paths": 4096,
               "greeks": [{"name": "delta", "value": 0.5, "standard_error": 0.001}], "standard_error_met": true}),
        json!({"type": "portfolio", "value": 1000.0, "value_at_risk": 50.0, "expected_shortfall": 60.0,
               "scenarios": 250,
               "books": [{"name": "all", "value": 1000.0, "value_at_risk": 50.0, "expected_shortfall": 60.0,
                          "component_value_at_risk": 50.0, "component_expected_shortfall": 60.0}],
               "positions": [{"name": "a", "value": 1000.0, "component_value_at_risk": 50.0,
                              "component_expected_shortfall": 60.0, "marginal_value_at_risk": 5.0}],
               "value_at_risk_error": 1.5, "expected_shortfall_error": 2.5, "horizon_years": 0.04}),
        json!({"type": "stress", "value": 1000.0, "books": ["all"],
               "scenarios": [{"name": "crash", "profit": -300.0, "books": [-300.0]}]}),
        json!({"type": "optimisation", "weights": [0.25, 0.75], "expected_return": 0.07, "volatility": 0.2}),
        json!({"type": "sweep", "cells": [{"profit": 0.1, "drawdown": 0.05, "sharpe": 0.02, "trades": 17}]}),
        json!({"type": "error", "code": "missing-market-data", "field": "problem.assets[0].spot",
               "message": "no quote and no trade of A:X yet: wait, or give a number"}),
    ];
    let result = |(number, outcome): (usize, serde_json::Value)| {
        let result = json!({
            "request_id": format!("r-{number}"), "tenant": "desk", "class": "INTERACTIVE", "topic": "risk.requests",
            "partition": 1, "offset": 77, "outcome": outcome, "seed": 42, "node": "node-0",
            "as_of": [{"symbol": "A:X", "partition": 1, "next_offset": 1234, "spot": 100.5, "volatility": null,
                       "returns": 256, "window_ns": 256_000_000_000_i64,
                       "time_ns": 1_722_470_400_000_000_000_i64}],
            "cost_ns": 250, "cost_max_ns": 3_600_000_000_000_i64, "cancels": (number == 0).then_some("r-7"),
            "received_ns": 1, "started_ns": 2, "finished_ns": 3, "compute_ns": 4, "devices": ["cpu:0", "cuda:0"],
            "decision_sequence": 99, "rules": RULES});
        serde_json::from_value(result).expect("a result")
    };
    let mut results: Vec<RiskResult> = outcomes.into_iter().enumerate().map(result).collect();
    let mut refused = results.last().expect("the error").clone();
    refused.judged_on =
        vec![AsOf { partition: 0, next_offset: 1_234 }, AsOf { partition: 3, next_offset: 0 }];
    refused.as_of.clear();
    results.push(refused);
    results.extend(made_up_results());
    results
}

/// A result for each branch of the outcome's union, with meaningless numbers and texts. It covers answers that are
/// added later, too.
fn made_up_results() -> impl Iterator<Item = RiskResult> {
    let Shape::Named(Named { content: Content::Record(fields), .. }) = RiskResult::SHAPE else {
        unreachable!("a result is a record")
    };
    let Shape::Union(branches) = RiskOutcome::SHAPE else { unreachable!("an outcome is a union") };
    (0..branches.len()).map(|branch| {
        let mut payload = frame_of(&known::RISK_RESULT);
        for field in *fields {
            let Member::Field(field) = field else { unreachable!("a result has no flat records") };
            match field.shape {
                Shape::Union(_) => {
                    payload.push(2 * branch as u8);
                    make_up(*branches[branch], &mut payload);
                }
                shape => make_up(shape, &mut payload),
            }
        }
        decode_risk_result(&payload).expect("a result")
    })
}

/// Appends the bytes of a made-up value of a type. Counts and whole numbers are zigzag-encoded, which doubles them.
fn make_up(shape: Shape, out: &mut Vec<u8>) {
    match shape {
        Shape::Boolean => out.push(1),
        Shape::Int | Shape::Long => out.push(2 * 7),
        Shape::Double => out.extend(0.25_f64.to_le_bytes()),
        Shape::String | Shape::Bytes => out.extend([2, b'a']),
        Shape::Array(items) => {
            out.push(2 * 2);
            (0..2).for_each(|_| make_up(*items, out));
            out.push(0);
        }
        Shape::Map(values) => {
            out.extend([2, 2, b'a']);
            make_up(*values, out);
            out.push(0);
        }
        Shape::Nullable(value) => {
            out.push(2);
            make_up(*value, out);
        }
        Shape::Union(branches) => {
            out.push(0);
            make_up(*branches[0], out);
        }
        Shape::Named(Named { content, .. }) => match content {
            Content::Record(members) => members.iter().for_each(|member| match member {
                Member::Field(field) => make_up(field.shape, out),
                other => unreachable!("no record of a result is flat: {other:?}"),
            }),
            Content::Enum { .. } => out.push(0),
            Content::Fixed(bytes) => out.extend(std::iter::repeat_n(0, *bytes)),
        },
    }
}

/// Requests are written with the oldest version that can represent them. With an older version's header, the bytes are
/// refused or give another request.
#[test]
fn requests_are_written_with_the_oldest_version_that_has_them() {
    for request in requests() {
        let holds = |schema: &KnownSchema| {
            let mut payload = frame_of(schema);
            request.put_version(schema.version, &mut payload);
            decode_risk_request(&payload).is_ok_and(|read| read == request)
        };
        let oldest = known::written(known::RISK_REQUEST).find(holds);
        assert_eq!(oldest, Some(request.schema()), "{request:?}");
    }
}

/// Results are written with the oldest version that can represent them.
#[test]
fn results_are_written_with_the_oldest_version_that_has_them() {
    for result in results() {
        let holds = |schema: &KnownSchema| {
            let mut payload = frame_of(schema);
            result.put_version(schema.version, &mut payload);
            decode_risk_result(&payload).is_ok_and(|read| read == result)
        };
        let oldest = known::written(known::RISK_RESULT).find(holds);
        assert_eq!(oldest, Some(result.schema()), "{result:?}");
    }
}

/// Returns the header of records of a schema.
fn frame_of(schema: &KnownSchema) -> Vec<u8> {
    [&[0xc3, 0x01][..], &schema.fingerprint.to_le_bytes()].concat()
}

#[test]
fn requests_read_back() {
    for request in requests() {
        let mut payload = Vec::new();
        encode_risk_request(&request, &mut payload);
        let published = Published::of(&payload);
        assert_eq!(decode_risk_request(&payload), Ok(request.clone()));
        let record = published.read(&payload);
        let json = serde_json::to_value(&request).expect("JSON");
        for (field, value) in json.as_object().expect("an object") {
            assert_same(record.get(field), value);
        }
    }
}

#[test]
fn results_read_back() {
    for result in results() {
        let mut payload = Vec::new();
        encode_risk_result(&result, &mut payload);
        let published = Published::of(&payload);
        assert_eq!(decode_risk_result(&payload), Ok(result.clone()));
        let record = published.read(&payload);
        let json = serde_json::to_value(&result).expect("JSON");
        for (field, value) in json.as_object().expect("an object") {
            assert_same(record.get(field), value);
        }
    }
}

/// The bytes can represent numbers that JSON cannot.
#[test]
fn numbers_of_all_kinds_read_back() {
    let mut result = results().remove(2);
    for number in [f64::INFINITY, -0.0, f64::MIN_POSITIVE, f64::MAX] {
        let greeks = vec![SimulatedGreek { name: "delta".into(), value: number, standard_error: number }];
        let simulation = SimulationResult {
            price: number,
            standard_error: number,
            paths: i64::MAX,
            greeks,
            standard_error_met: Some(number < 1.0),
            warning: "few".to_owned(),
        };
        result.outcome = RiskOutcome::Simulation(simulation);
        let mut payload = Vec::new();
        encode_risk_result(&result, &mut payload);
        assert_eq!(decode_risk_result(&payload), Ok(result.clone()));
    }
}

#[test]
fn mistakes_in_json_are_named() {
    let check = |json: serde_json::Value, expected: &str| {
        let error = serde_json::from_value::<RiskRequest>(json).expect_err("a mistake").to_string();
        assert!(error.contains(expected), "{error}");
    };
    let request = |problem: serde_json::Value| json!({"request_id": "a", "problem": problem});
    check(request(json!({"type": "opptions"})), "unknown variant `opptions`");
    let asset = json!({"symbol": "A:X", "spot": "100"});
    check(
        request(json!({"type": "options", "assets": [asset], "options": []})),
        r#"a number, or {"from": "market"}"#,
    );
    check(json!({"request_id": "a", "problem": {"type": "sweep"}, "clas": "batch"}), "unknown field `clas`");
    let volatility: Result<ImpliedVolatility, _> = serde_json::from_value(json!({"volatility": 0.5}));
    assert!(volatility.expect_err("a mistake").to_string().contains("missing field `error`"));
}

/// Compares a datum in apache-avro's own value model with the value that serde makes. A union is its branch, named by
/// JSON's `type`.
fn assert_same(avro: &Value, json: &serde_json::Value) {
    match (avro, json) {
        (Value::Union(_, branch), json) => assert_same(branch, json),
        (Value::Record(fields), serde_json::Value::Object(object)) => {
            // Fields of later versions are left out of JSON if they have their defaults.
            let known = fields.iter().filter(|(name, _)| object.contains_key(name));
            let tag = usize::from(object.contains_key("type"));
            assert_eq!(known.clone().count() + tag, object.len(), "{fields:?}");
            known.for_each(|(name, value)| assert_same(value, &object[name]));
        }
        (Value::Array(items), serde_json::Value::Array(values)) => {
            assert_eq!(items.len(), values.len());
            items.iter().zip(values).for_each(|(item, value)| assert_same(item, value));
        }
        (Value::Null, serde_json::Value::Null) => {}
        (Value::Boolean(found), json) => assert_eq!(Some(*found), json.as_bool()),
        (Value::Int(found), json) => assert_eq!(Some(i64::from(*found)), json.as_i64()),
        (Value::Long(found), json) => assert_eq!(Some(*found), json.as_i64()),
        (Value::Double(found), json) => assert_eq!(Some(*found), json.as_f64()),
        (Value::String(found) | Value::Enum(_, found), json) => {
            assert_eq!(Some(found.as_str()), json.as_str())
        }
        (avro, json) => panic!("{avro:?} is not {json}"),
    }
}

fn written(problem: &str) -> Vec<u8> {
    let text =
        format!(r#"{{"request_id": "a", "problem": {{"assets": [], "options": [], "type": "{problem}"}}}}"#);
    let mut payload = Vec::new();
    encode_risk_request(&serde_json::from_str(&text).expect("a request"), &mut payload);
    payload
}

#[test]
fn a_kind_is_written_with_the_first_version_that_has_it() {
    let [usual, digital] = ["options", "digital-options"].map(written);
    assert_eq!(fingerprint_of(&usual), Some(known::RISK_REQUEST_3.fingerprint));
    assert_eq!(fingerprint_of(&digital), Some(known::RISK_REQUEST_4.fingerprint));
    // Older versions do not have the later kinds.
    let mut wrong = usual[..HEADER_SIZE].to_vec();
    wrong.extend_from_slice(&digital[HEADER_SIZE..]);
    assert!(matches!(decode_risk_request(&wrong), Err(DecodeError::Malformed { .. })));
}
