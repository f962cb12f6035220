use serde_json::json;
use warptape_eventlog::TopicPartition;

use super::*;

const URL: &str = "sqlite:w.db";

fn answer(outcome: Value) -> Answer {
    let result = json!({
        "request_id": "r-1", "tenant": "", "class": "INTERACTIVE", "topic": "risk.requests", "partition": 2, "offset": 5,
        "outcome": outcome, "seed": 42, "received_ns": 1_000_000, "started_ns": 1_500_000, "finished_ns": 4_000_000,
        "compute_ns": 3_250_000, "devices": ["cpu:0", "cpu:1"], "node": "node-0", "decision_sequence": 99,
        "as_of": [{"symbol": "A:X", "partition": 2, "next_offset": 1234, "spot": 100.5, "volatility": 0.25}]});
    let place = TopicPartition { topic: "risk.results".to_owned(), partition: 2 };
    Answer { result: serde_json::from_value(result).unwrap(), place, offset: 7 }
}

fn request(problem: Value) -> RiskRequest {
    serde_json::from_value(json!({"request_id": "r-1", "problem": problem})).unwrap()
}

/// Returns the text above the origin.
fn numbers(problem: Value, outcome: Value, wants_greeks: bool) -> String {
    let text = of(&request(problem), &answer(outcome), wants_greeks, URL);
    let (numbers, _) = text.split_once("\nas of ").unwrap_or_else(|| panic!("{text}"));
    numbers.to_owned()
}

fn options() -> Value {
    let option = |kind: &str| json!({"asset": 0, "kind": kind, "strike": 100.0, "expiry_years": 0.5});
    json!([option("call"), option("put")])
}

#[test]
fn the_origin_says_on_what_when_where_and_why() {
    let outcome = json!({"type": "sweep", "cells": []});
    let text =
        of(&request(json!({"type": "sweep", "symbols": [], "rules": []})), &answer(outcome), false, URL);
    let (_, origin) = text.split_once("\n\n").unwrap();
    assert_eq!(
        origin,
        "as of      A:X, spot 100.5, volatility 0.25, after the ticks before 2:1234\n\
         seed       42\n\
         time       queued 0.500 ms, computed 3.250 ms on all lanes together, answered after 3.000 ms\n\
         devices    cpu:0, cpu:1\n\
         request    r-1, 2:5 of risk.requests\n\
         result     2:7 of risk.results, by node-0\n\
         decision   sequence 99: warptape tail journal --from-beginning --exit-at-end -o json --log sqlite:w.db | grep \
         '\"sequence\":99,'\n"
    );
}

#[test]
fn options_have_greeks_where_they_are_wanted() {
    let problem = json!({"type": "options", "assets": [], "options": options()});
    let value = json!({"price": 7.5, "delta": 0.5, "gamma": 0.02, "vega": 30.0, "theta": -4.0, "rho": 20.0,
                       "vanna": 0.1, "volga": -0.5, "vega_per_point": 0.3, "theta_per_day": -0.01, "rho_foreign": -9.0});
    let outcome = json!({"type": "options", "values": [value, value]});
    assert_eq!(
        numbers(problem.clone(), outcome.clone(), false),
        "KIND  STRIKE  YEARS  PRICE\nCALL     100    0.5    7.5\nPUT      100    0.5    7.5\n"
    );
    let first = numbers(problem, outcome, true);
    let rows: Vec<Vec<&str>> = first.lines().map(|line| line.split_whitespace().collect()).collect();
    let greeks = "DELTA GAMMA VEGA VEGA/POINT THETA THETA/DAY RHO FOREIGN RHO VANNA VOLGA";
    assert_eq!(rows[0][3..].join(" "), format!("PRICE {greeks}"));
    assert_eq!(rows[1][3..], ["7.5", "0.5", "0.02", "30", "0.3", "-4", "-0.01", "20", "-9", "0.1", "-0.5"]);
}

#[test]
fn a_number_that_an_answer_does_not_have_is_a_dash() {
    let problem = json!({"type": "options", "assets": [], "options": options()});
    let of = |price: f64, vanna: f64, error: &str| OptionValue {
        price,
        delta: 0.5,
        gamma: 0.5,
        vega: 0.5,
        theta: 0.5,
        rho: 0.5,
        vanna,
        volga: f64::NAN,
        error: error.to_owned(),
        id: String::new(),
        theta_per_day: 0.0,
        vega_per_point: 0.0,
        rho_foreign: 0.0,
    };
    let mut answer = answer(json!({"type": "sweep", "cells": []}));
    let values = vec![of(7.5, f64::NAN, ""), of(f64::NAN, 0.25, "too far")];
    answer.result.outcome = RiskOutcome::Options(OptionResult { values });
    let text = super::of(&request(problem), &answer, true, URL);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[1][3], &rows[1][12..]), ("7.5", &["–", "–"][..]), "{text}");
    assert_eq!((rows[2][3], &rows[2][12..]), ("–", &["0.25", "–", "too", "far"][..]), "{text}");
    let json = serde_json::to_value(&answer.result).unwrap();
    assert_eq!(json["outcome"]["values"][0]["vanna"], Value::Null);
}

#[test]
fn a_volatility_that_is_not_there_says_why() {
    let problem =
        json!({"type": "implied-volatilities", "assets": [], "options": options(), "prices": [7.25, 900.0]});
    let outcome = json!({"type": "implied-volatilities",
                         "volatilities": [{"volatility": 0.25, "error": ""}, {"volatility": null, "error": "too high"}]});
    assert_eq!(
        numbers(problem, outcome, false),
        "KIND  STRIKE  YEARS  PRICE  VOLATILITY  WHY NOT\n\
         CALL     100    0.5   7.25        0.25\n\
         PUT      100    0.5    900        none  too high\n"
    );
}

#[test]
fn each_kind_has_its_columns() {
    let simulation = json!({"type": "simulation", "assets": [], "contract": {"type": "lookback", "kind": "call"},
                            "expiry_years": 1.0, "steps": 1, "paths_max": 1});
    let outcome = json!({"type": "simulation", "price": 5.0, "standard_error": 0.01, "paths": 4096,
                         "greeks": [{"name": "delta", "value": 0.5, "standard_error": 0.001}]});
    assert_eq!(
        numbers(simulation, outcome, false),
        "NAME   VALUE  STANDARD ERROR\nprice      5            0.01\ndelta    0.5           0.001\n\nsamples    4096\n"
    );

    let portfolio = json!({"type": "portfolio", "assets": [], "books": [], "positions": [],
                           "measure": {"type": "stress", "scenarios": []}});
    let outcome = json!({"type": "portfolio", "value": 1000.0, "value_at_risk": 50.0, "expected_shortfall": 60.0,
        "scenarios": 250,
        "books": [{"name": "desk", "value": 1.0, "value_at_risk": 2.0, "expected_shortfall": 3.0,
                   "component_value_at_risk": 4.0, "component_expected_shortfall": 5.0}],
        "positions": [{"name": "a", "value": 6.0, "component_value_at_risk": 7.0, "component_expected_shortfall": 8.0,
                       "marginal_value_at_risk": 9.0}]});
    let text = numbers(portfolio.clone(), outcome, false);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        &["value", "at", "risk", "50"][..],
        &["expected", "shortfall", "60"],
        &["scenarios", "250"],
        &["desk", "1", "2", "3", "4", "5"],
        &["a", "6", "7", "8", "9"],
    ] {
        assert!(rows.iter().any(|found| found == row), "{row:?} is missing in:\n{text}");
    }

    let outcome = json!({"type": "stress", "value": 1000.0, "books": ["all", "desk"],
                         "scenarios": [{"name": "crash", "profit": -300.0, "books": [-300.0, -200.0]}]});
    assert_eq!(
        numbers(portfolio, outcome, false),
        "SCENARIO  PROFIT   all  desk\ncrash       -300  -300  -200\n\nvalue      1000\n"
    );

    let assets = json!([{"symbol": "A:X", "spot": 1.0}, {"symbol": "A:Y", "spot": 1.0}]);
    let optimisation = json!({"type": "optimisation", "assets": assets, "expected_returns": [], "covariance": [],
                              "budget": 1.0, "lower": [], "upper": []});
    let outcome =
        json!({"type": "optimisation", "weights": [0.25, 0.75], "expected_return": 0.07, "volatility": 0.2});
    let text = numbers(optimisation, outcome, false);
    assert!(
        text.starts_with("ASSET  WEIGHT\nA:X      0.25\nA:Y      0.75\n\nreturn     0.07 a year\n"),
        "{text}"
    );

    let rule = json!({"type": "ema-cross", "fast": 5, "slow": 20});
    let sweep = json!({"type": "sweep", "symbols": [], "rules": [rule]});
    let outcome =
        json!({"type": "sweep", "cells": [{"profit": 0.1, "drawdown": 0.05, "sharpe": 0.02, "trades": 17}]});
    let text = numbers(sweep, outcome, false);
    assert!(text.contains("ema-cross fast=5 slow=20     0.1      0.05    0.02      17\n"), "{text}");
}

#[test]
fn codes_are_those_of_the_schema() {
    assert_eq!(code(RiskErrorCode::MissingMarketData), "MISSING_MARKET_DATA");
}

/// Options of an unknown kind are printed with the fields of their problem.
#[test]
fn options_of_any_kind_have_the_columns_of_their_problem() {
    let problem =
        json!({"type": "implied-volatilities", "assets": [], "options": options(), "prices": [1.0, 2.0]});
    let value = |price: f64| {
        json!({"price": price, "delta": 0.5, "gamma": 0.02, "vega": 30.0, "theta": -4.0, "rho": 20.0,
               "vanna": 0.1, "volga": -0.5})
    };
    let outcome = json!({"type": "options", "values": [value(7.5), value(4.25)]});
    assert_eq!(
        numbers(problem, outcome, false),
        "KIND  EXPIRY YEARS  STRIKE  PRICE\nCALL           0.5     100    7.5\nPUT            0.5     100   4.25\n"
    );
}

/// An answer without a layout of its own; the test gives it to a problem of another kind.
#[test]
fn an_answer_of_any_kind_has_a_table() {
    let asset = |symbol: &str| json!({"symbol": symbol, "spot": 1.0});
    let problem = json!({"type": "options", "assets": [asset("A:X"), asset("A:Y")], "options": []});
    let weights =
        json!({"type": "optimisation", "weights": [0.25, 0.75], "expected_return": 0.07, "volatility": 0.2});
    let expected = "ASSET  WEIGHTS\nA:X       0.25\nA:Y       0.75\nexpected return 0.07\nvolatility 0.2\n";
    assert_eq!(numbers(problem.clone(), weights, false), expected);
    let cell = |profit: f64| json!({"profit": profit, "drawdown": 0.5, "sharpe": 0.25, "trades": 3});
    let cells = json!({"type": "sweep", "cells": [cell(1.0), cell(2.0)]});
    let table = numbers(problem, cells, false);
    let mut titles: Vec<&str> = table.lines().next().unwrap_or_default().split_whitespace().collect();
    titles.sort_unstable();
    assert_eq!(titles, ["ASSET", "DRAWDOWN", "PROFIT", "SHARPE", "TRADES"]);
    assert_eq!(table.lines().count(), 3, "{table}");
}
