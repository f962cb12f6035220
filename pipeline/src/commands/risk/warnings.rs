//! Warnings about an answer: old market data, rows without numbers, errors without details.

use std::collections::BTreeMap;

use warptape_replay::utc;
use warptape_schemas::risk::{
    Asset, MarketAsOf, OptionValue, PositionRisk, Quantity, RiskOutcome, RiskResult,
};

const NS_PER_S: i64 = 1_000_000_000;

/// Returns all warnings at `now_ns`.
pub fn of(result: &RiskResult, now_ns: i64, max_age_ns: i64) -> Vec<String> {
    let old = result.as_of.iter().filter_map(|taken| {
        let time_ns = taken.time_ns?;
        let age_ns = now_ns.saturating_sub(time_ns);
        (age_ns > max_age_ns).then(|| {
            let (symbol, age, time) = (&taken.symbol, duration(age_ns / NS_PER_S), utc(time_ns));
            format!("market data of {symbol} are {age} old: the price is from {time}")
        })
    });
    let mut warnings: Vec<String> = old.collect();
    let rows = |what: &str, bad: usize, all: usize, first: Option<&str>| {
        let first = first.unwrap_or_default();
        (bad > 0)
            .then(|| format!("{bad} of {all} {what} have no result and count in no sum; the first: {first}"))
    };
    warnings.extend(match &result.outcome {
        RiskOutcome::Simulation(found) => (!found.warning.is_empty()).then(|| found.warning.clone()),
        RiskOutcome::Portfolio(found) => {
            let bad = || found.positions.iter().filter(|position| !position.error.is_empty());
            let first = bad().next().map(|PositionRisk { name, error, .. }| format!("{name}, {error}"));
            rows("positions", bad().count(), found.positions.len(), first.as_deref())
        }
        RiskOutcome::Stress(found) => {
            let first = found.bad_positions.first().map(|bad| format!("{}, {}", bad.name, bad.error));
            let bad = found.bad_positions.len();
            first.map(|first| {
                format!("{bad} positions have no result and count in no sum; the first: {first}")
            })
        }
        RiskOutcome::Options(found) => {
            let bad = || found.values.iter().filter(|value| !value.error.is_empty());
            let first = bad().next().map(|OptionValue { id, error, .. }| format!("{id}, {error}"));
            let count = bad().count();
            first.map(|first| {
                format!("{count} of {} rows have no result; the first: {first}", found.values.len())
            })
        }
        _ => None,
    });
    warnings
}

/// Formats a duration in its two largest units: `3 h 20 min`.
fn duration(seconds: i64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(units.len() - 1);
    let (unit, name) = units[first];
    let mut text = format!("{} {name}", seconds / unit);
    if let Some((less, name)) = units.get(first + 1)
        && seconds % unit / less > 0
    {
        text += &format!(" {} {name}", seconds % unit / less);
    }
    text
}

/// Gives assets the market data that an earlier part used.
pub fn give(assets: &mut [Asset], as_of: &[MarketAsOf]) {
    let taken: BTreeMap<&str, &MarketAsOf> =
        as_of.iter().map(|taken| (taken.symbol.as_str(), taken)).collect();
    for asset in assets {
        let Some(taken) = taken.get(asset.symbol.as_str()) else { continue };
        for (quantity, number) in [(&mut asset.spot, taken.spot), (&mut asset.volatility, taken.volatility)] {
            if let (Quantity::Market(_), Some(number)) = (&*quantity, number) {
                *quantity = Quantity::Given(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(outcome: serde_json::Value) -> RiskResult {
        let result = json!({
            "request_id": "r", "tenant": "", "class": "INTERACTIVE", "topic": "t", "partition": 0, "offset": 0, "outcome": outcome,
            "as_of": [{"symbol": "A:X", "partition": 0, "next_offset": 1, "spot": 1.5, "volatility": null,
                       "time_ns": 1_722_470_400_000_000_000_i64}],
            "seed": 0, "received_ns": 0, "started_ns": 0, "finished_ns": 0, "compute_ns": 0, "devices": [], "node": "n",
            "decision_sequence": 0});
        serde_json::from_value(result).expect("a result")
    }

    #[test]
    fn an_old_market_is_told_with_its_age() {
        let result = result(json!({"type": "sweep", "cells": []}));
        let after = |seconds: i64| of(&result, (1_722_470_400 + seconds) * NS_PER_S, 60 * NS_PER_S);
        assert!(after(60).is_empty());
        let told = after(12_061).remove(0);
        assert!(
            told.starts_with("market data of A:X are 3 h 21 min old: the price is from 2024-08-01"),
            "{told}"
        );
        assert_eq!([59, 61, 90_000].map(duration), ["59 s", "1 min 1 s", "1 d 1 h"]);
    }

    #[test]
    fn bad_rows_and_errors_that_say_little_are_told() {
        let told = |outcome: serde_json::Value| of(&result(outcome), 0, 0).join("|");
        let simulation = json!({"type": "simulation", "price": 0.0, "standard_error": 0.0, "paths": 5, "greeks": [], "warning": "none paid"});
        assert_eq!(told(simulation), "none paid");
        let bad = json!({"name": "x", "value": 0.0, "component_value_at_risk": 0.0, "component_expected_shortfall": 0.0,
                         "marginal_value_at_risk": 0.0, "error": "why"});
        let portfolio = json!({"type": "portfolio", "value": 0.0, "value_at_risk": 0.0, "expected_shortfall": 0.0, "scenarios": 1,
                               "books": [], "positions": [bad]});
        assert_eq!(told(portfolio), "1 of 1 positions have no result and count in no sum; the first: x, why");
    }

    #[test]
    fn what_was_taken_is_given_to_the_next() {
        let asset = json!({"symbol": "A:X", "spot": {"from": "market"}, "volatility": 0.2});
        let mut assets: Vec<Asset> = vec![serde_json::from_value(asset).expect("an asset")];
        give(&mut assets, &result(json!({"type": "sweep", "cells": []})).as_of);
        assert_eq!(assets[0].spot, Quantity::Given(1.5));
    }
}
