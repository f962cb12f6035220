//! `warptape hot result`: the answer to a risk request of any kind.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::ago;
use crate::commands::columns::facts;
use crate::commands::fit::{Head, Room, table as fitted};
use crate::commands::tail::show::float;
use warptape_hot::RequestState;

/// Returns the whole text.
pub fn table(state: &RequestState, now_ns: i64, room: Room) -> String {
    let result = &state.result;
    let record = &result.record;
    let word = |name: &str| cell(&record[name]);
    let (partition, offset, committed) = (result.partition, result.offset, ago(now_ns, result.committed_ns));
    let request = format!("{}:{}:{}", word("topic"), word("partition"), word("offset"));
    let mut rows = vec![
        ("request", state.request_id.clone()),
        ("source", state.source.clone()),
        ("result", format!("{partition}:{offset}, committed {committed}")),
        ("asked", format!("by {}, {}, as {request}", word("tenant"), word("class"))),
        ("answered", answered(record)),
    ];
    rows.extend(record["as_of"].as_array().into_iter().flatten().map(|as_of| ("as of", market(as_of))));
    let mut text = facts(&rows);
    if let Some((kind, outcome)) = record["outcome"].as_object().and_then(|outcome| outcome.iter().next()) {
        writeln!(text, "outcome    {kind}\n").expect("a string takes any text");
        text.push_str(&fields(outcome, room));
    }
    text
}

/// Names the process that answered, and the time that it took.
fn answered(record: &Value) -> String {
    let ns = |name: &str| record[name].as_i64().unwrap_or(0);
    let ms = |ns: i64| format!("{:.3} ms", ns as f64 / 1e6);
    let (took, worked) = (ms(ns("finished_ns") - ns("received_ns")), ms(ns("compute_ns")));
    let (node, decision) = (cell(&record["node"]), ns("decision_sequence"));
    match cell(&record["devices"]).as_str() {
        "" => format!("by {node}, decision {decision}, in {took}, by no lane"),
        devices => format!("by {node}, decision {decision}, in {took}, {worked} of work on {devices}"),
    }
}

/// Describes the market data used for one symbol.
fn market(as_of: &Value) -> String {
    let mut text =
        format!("{} before {}:{}", cell(&as_of["symbol"]), as_of["partition"], as_of["next_offset"]);
    for name in ["spot", "volatility"] {
        if !as_of[name].is_null() {
            write!(text, ", {name} {}", cell(&as_of[name])).expect("a string takes any text");
        }
    }
    text
}

/// Formats the fields of an outcome: single ones line by line, then a table for each list of records.
fn fields(outcome: &Value, room: Room) -> String {
    let none = Map::new();
    let fields = outcome.as_object().unwrap_or(&none);
    let is_table = |value: &Value| value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
    let single = fields.iter().filter(|(_, value)| !is_table(value));
    let rows: Vec<_> = single.map(|(name, value)| vec![name.clone(), cell(value)]).collect();
    let mut parts = Vec::new();
    if !rows.is_empty() {
        let heads = [Head::text("FIELD", 12), Head::sentence("VALUE", 12)];
        parts.push(fitted(&heads, &["VALUE", "FIELD"], &rows, room));
    }
    let lists = fields.values().filter(|value| is_table(value)).filter_map(Value::as_array);
    parts.extend(lists.map(|items| records(items, room)));
    parts.join("\n")
}

/// Formats records of the same fields, one a line, with texts first.
fn records(items: &[Value], room: Room) -> String {
    let none = Map::new();
    let first = items.first().and_then(Value::as_object).unwrap_or(&none);
    let (words, numbers): (Vec<_>, Vec<_>) = first.iter().partition(|(_, value)| value.is_string());
    let names: Vec<&String> = words.iter().chain(&numbers).map(|(name, _)| *name).collect();
    let titles: Vec<String> = names.iter().map(|name| name.to_uppercase().replace('_', " ")).collect();
    let (texts, values) = titles.split_at(words.len());
    let heads: Vec<Head<'_>> = texts
        .iter()
        .map(|title| Head::text(title, 12))
        .chain(values.iter().map(|title| Head::number(title)))
        .collect();
    let row = |item: &Value| names.iter().map(|name| cell(&item[name.as_str()])).collect();
    fitted(&heads, &[], &items.iter().map(row).collect::<Vec<_>>(), room)
}

/// Formats a value without quotes.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().map_or_else(String::new, float),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use warptape_hot::ResultValue;

    fn text(outcome: Value, devices: &[&str]) -> String {
        let record = json!({
            "request_id": "r-1", "tenant": "desk", "class": "INTERACTIVE", "topic": "risk.requests", "partition": 1,
            "offset": 77, "outcome": outcome, "seed": 42, "node": "node-0", "devices": devices,
            "as_of": [{"symbol": "A:X", "partition": 1, "next_offset": 1234, "spot": 100.5, "volatility": null}],
            "received_ns": 1_000_000, "started_ns": 2_000_000, "finished_ns": 4_000_000, "compute_ns": 500_000,
            "decision_sequence": 99,
        });
        let result = ResultValue { offset: 41, partition: 1, committed_ns: 8_500_000_000, record };
        let (request_id, source) = ("r-1".to_owned(), "redis://h".to_owned());
        table(&RequestState { request_id, source, result }, 9_500_000_000, Room::Whole)
    }

    #[test]
    fn a_result_says_who_asked_who_answered_and_what() {
        let greek = |name: &str| json!({"name": name, "value": 0.5, "standard_error": 0.001});
        let outcome = json!({"SimulationResult": {
            "price": 5.0, "standard_error": "inf", "paths": 4096, "greeks": [greek("delta"), greek("vega")],
        }});
        assert_eq!(
            text(outcome, &["cpu:0", "cuda:0"]),
            "request    r-1\n\
             source     redis://h\n\
             result     1:41, committed 1.0 s ago\n\
             asked      by desk, INTERACTIVE, as risk.requests:1:77\n\
             answered   by node-0, decision 99, in 3.000 ms, 0.500 ms of work on cpu:0 cuda:0\n\
             as of      A:X before 1:1234, spot 100.5\n\
             outcome    SimulationResult\n\
             \n\
             FIELD           VALUE\n\
             paths           4096\n\
             price           5\n\
             standard_error  inf\n\
             \n\
             NAME   STANDARD ERROR  VALUE\n\
             delta           0.001    0.5\n\
             vega            0.001    0.5\n"
        );
    }

    #[test]
    fn an_error_is_an_outcome() {
        let error = json!({"RiskError": {"code": "EXPIRED", "field": "deadline_ns", "message": "too\nlate"}});
        let text = text(error, &[]);
        for part in [
            "in 3.000 ms, by no lane\n",
            "outcome    RiskError\n",
            "\ncode     EXPIRED\n",
            "\nmessage  too\\u000alate\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in:\n{text}");
        }
    }
}
