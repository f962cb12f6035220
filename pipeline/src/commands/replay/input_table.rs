//! Tables with the details of an input that its sentence leaves out.

use serde_json::Value;
use warptape_schemas::journal::{GroupArrival, Input, LaneSpec, ServicePoint, Started};

use crate::commands::fit::{Head, Room, table};

/// Returns the tables of an input, each after an empty line; empty if the sentence is complete.
pub fn of(input: &Input, room: Room) -> anyhow::Result<String> {
    Ok(match input {
        Input::Started(started) => of_start(started, room)?,
        Input::Arrived(arrived) => {
            let row = |group: &GroupArrival| numbers([group.group.into(), group.rows, group.bytes]);
            numbers_table(&["group", "rows", "bytes"], arrived.groups.iter().map(row).collect(), room)
        }
        Input::Measured(measured) => {
            let row = |point: &ServicePoint| vec![point.rows.to_string(), milliseconds(point.service_ns)];
            numbers_table(&["rows", "took_ms"], measured.points.iter().map(row).collect(), room)
        }
        Input::Sampled(sampled) => settings(&serde_json::to_value(&sampled.sample)?, "figure", room),
        _ => String::new(),
    })
}

/// Returns tables of the lanes and of the whole configuration.
fn of_start(started: &Started, room: Room) -> anyhow::Result<String> {
    let row = |lane: &LaneSpec| {
        let numa = lane.numa_node.map_or_else(String::new, |node| node.to_string());
        let memory =
            if lane.memory_bytes > 0 { (lane.memory_bytes >> 20).to_string() } else { String::new() };
        vec![
            format!("{} {}", lane.lane, lane.device),
            lane.weight.to_string(),
            lane.class.clone(),
            memory,
            numa,
        ]
    };
    let rows: Vec<Vec<String>> = started.lanes.iter().map(row).collect();
    let heads = [
        Head::text("lane", 8),
        Head::number("weight"),
        Head::text("class", 8),
        Head::number("memory_MiB"),
        Head::number("numa_node"),
    ];
    let stages: Value = serde_json::from_str(&started.stage_config)
        .unwrap_or_else(|_| Value::String(started.stage_config.clone()));
    let Started { node: _, software: _, stage_config: _, scheduler, lanes: _, autoscale, shadow, rules } =
        started;
    let all = serde_json::json!({
        "scheduler": scheduler, "stages": stages, "autoscale": autoscale, "shadow": shadow, "rules": rules
    });
    Ok(format!("\n{}{}", table(&heads, &[], &rows, room), settings(&all, "setting", room)))
}

/// Formats a line for each leaf of a value, named by its path. Times are in milliseconds; absent values are left out.
fn settings(value: &Value, title: &str, room: Room) -> String {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    format!("\n{}", table(&[Head::text(title, 20), Head::sentence("value", 20)], &[], &rows, room))
}

fn flatten(path: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, rows);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&format!("{path}[{index}]"), item, rows);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(word).collect();
            rows.push(vec![path.to_owned(), items.join(", ")]);
        }
        // A name ends in the unit, or in the unit and a limit: `probe_ns`, `probe_ns_max`.
        value => rows.push(match (path.rsplit_once("_ns"), value.as_i64()) {
            (Some((stem, limit @ ("" | "_max" | "_min"))), Some(ns)) => {
                vec![format!("{stem}_ms{limit}"), milliseconds(ns)]
            }
            _ => vec![path.to_owned(), word(value)],
        }),
    }
}

/// Formats a value without quotes.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats numbers in columns, after an empty line.
fn numbers_table(titles: &[&str], rows: Vec<Vec<String>>, room: Room) -> String {
    let heads: Vec<Head<'_>> = titles.iter().map(|title| Head::number(title)).collect();
    format!("\n{}", table(&heads, &[], &rows, room))
}

fn numbers<const N: usize>(numbers: [i64; N]) -> Vec<String> {
    numbers.iter().map(i64::to_string).collect()
}

/// Formats ns as milliseconds without a unit, because the column's title names it.
fn milliseconds(ns: i64) -> String {
    (ns as f64 / 1e6).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use warptape_schemas::journal::{Arrived, Measured};

    use super::*;

    #[test]
    fn values_are_lines_and_times_are_milliseconds() {
        let value = json!({
            "scheduler": { "row_deadline_ns": 5_000_000, "probe_ns_max": 1_500_000, "breakers": null, "policy": "fair", "risk": { "quotas": [] } },
            "bars": ["1s", "tick:5"], "peers": [{ "lane": 1 }],
        });
        let expected = "
setting                    value
bars                       1s, tick:5
peers[0].lane              1
scheduler.policy           fair
scheduler.probe_ms_max     1.5
scheduler.risk.quotas
scheduler.row_deadline_ms  5
";
        assert_eq!(settings(&value, "setting", Room::Whole), expected);
    }

    #[test]
    fn what_came_and_what_was_measured_are_tables() {
        let groups = vec![
            GroupArrival { group: 1, rows: 6, bytes: 240 },
            GroupArrival { group: 12, rows: 4, bytes: 160 },
        ];
        let arrived = Input::Arrived(Arrived { partition: 0, next_offset: 7, groups });
        assert_eq!(
            of(&arrived, Room::Whole).expect("tables"),
            "\ngroup  rows  bytes\n    1     6    240\n   12     4    160\n"
        );
        let points = vec![ServicePoint { rows: 64, service_ns: 2_500_000 }];
        let measured = Input::Measured(Measured { lane: 0, points });
        assert_eq!(of(&measured, Room::Whole).expect("tables"), "\nrows  took_ms\n  64      2.5\n");
        assert_eq!(of(&Input::Woke(warptape_schemas::journal::Woke {}), Room::Whole).expect("nothing"), "");
    }
}
