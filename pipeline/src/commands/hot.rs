//! `warptape hot get`: the current state of a symbol. `warptape hot result`: the answer to a risk request.

mod result;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::HumanDuration;
use serde::Serialize;
use serde_json::{Map, Value};
use warptape_schemas::Describer;
use warptape_schemas::signal::INDICATORS;

use super::columns::facts;
use super::csv_rows;
use super::fit::{self, Head, Room, left_out};
use super::tail::layouts;
use super::tail::readable::readable;
use super::tail::rows::TickRow;
use super::tail::show::{Position, Row, float};
use super::tail::view::View;
use crate::cli::{HotArgs, HotCommand, HotFormat, HotGetArgs, HotResultArgs, ListFormat};
use crate::clock::Clock;
use crate::open::{Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;
use warptape_hot::{
    HotUrl, Keys, LaneState, SignalValue, SymbolState, from_log, from_redis, result_from_log,
    result_from_redis, signal_field,
};

/// Field of a signal with the indicators that have no field of their own.
const FURTHER: &str = "further_indicators";
/// Silence after which a process counts as dead. A living process reports its lanes to Redis every second; the rest of
/// the limit allows for load and clock skew.
const SILENCE_NS_MAX: i64 = 10_000_000_000;

/// Answers the query of the arguments.
pub fn execute(args: &HotArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    match &args.command {
        HotCommand::Get(args) => get(args, settings),
        HotCommand::Result(args) => result(args, settings),
    }
}

fn get(args: &HotGetArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let config = settings.hot_config();
    let found = match &settings.hot_state.url {
        HotUrl::Memory => {
            let log = open_log(settings, Purpose::Show)?.log;
            from_log(&*log, &config, &args.symbol)?
        }
        HotUrl::Redis(url) => from_redis(url, Keys::new(config.prefix), &args.symbol)?,
    };
    let now_ns = Clock::start().now_ns();
    let mut state = with_silence(found?, now_ns);
    let describer = Describer::new();
    match args.output {
        ListFormat::Table => write!(stdout(), "{}", table(&state, now_ns, Room::of_stdout(args.wide)))?,
        ListFormat::Json => {
            for signal in state.signals.values_mut().chain([&mut state.latest]) {
                signal.record = readable("Signal", &signal.record, &describer);
            }
            print_json(&state)?;
        }
        ListFormat::Csv => write!(stdout(), "{}", csv(&state, &describer)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Marks a ready lane as silent if its process has stopped reporting it. The log does not show such silence.
fn with_silence(mut state: SymbolState, now_ns: i64) -> SymbolState {
    if let (Some(lane), Some(_)) = (&mut state.lane, &state.position)
        && lane.state == LaneState::Ready
        && now_ns.saturating_sub(lane.written_ns) > SILENCE_NS_MAX
    {
        lane.state = LaneState::Silent;
    }
    state
}

fn result(args: &HotResultArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let config = settings.hot_config();
    let found = match &settings.hot_state.url {
        HotUrl::Memory => {
            let log = open_log(settings, Purpose::Show)?.log;
            result_from_log(&*log, &config, &args.request_id)?
        }
        HotUrl::Redis(url) => result_from_redis(url, Keys::new(config.prefix), &args.request_id)?,
    };
    let (state, room) = (found?, Room::of_stdout(args.wide));
    match args.output {
        HotFormat::Table => write!(stdout(), "{}", result::table(&state, Clock::start().now_ns(), room))?,
        HotFormat::Json => print_json(&state)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_json(state: &impl Serialize) -> anyhow::Result<()> {
    let mut stdout = stdout();
    serde_json::to_writer(&mut stdout, state)?;
    stdout.write_all(b"\n")?;
    Ok(())
}

/// Formats the time since an instant.
fn ago(now_ns: i64, ns: i64) -> String {
    let age = Duration::from_nanos(now_ns.saturating_sub(ns).max(0) as u64);
    if age < Duration::from_secs(10) {
        format!("{:.1} s ago", age.as_secs_f64())
    } else {
        format!("{} ago", HumanDuration(age))
    }
}

fn table(state: &SymbolState, now_ns: i64, room: Room) -> String {
    let mut text = head(state, now_ns);
    let view = View::of(layouts::of("Signal"), room);
    text.push('\n');
    writeln!(text, "{}", view.header()).expect("a string takes any text");
    for value in state.signals.values() {
        let (at, row) = row(value);
        let row = Row { at, row: &row, readable: &Value::Null };
        writeln!(text, "{}", view.text(row)).expect("a string takes any text");
    }
    if let (Some(note), Room::Columns(width)) = (left_out(&view.missing), room) {
        writeln!(text, "{}", fit::cut(&note, width)).expect("a string takes any text");
    }
    let indicators = indicators(state, room);
    if !indicators.is_empty() {
        text.push('\n');
        text.push_str(&indicators);
    }
    text
}

/// Returns the newest signals as CSV, with the columns of `tail signals`.
fn csv(state: &SymbolState, describer: &Describer) -> std::io::Result<String> {
    let view = View::csv(layouts::of("Signal"));
    let mut text = csv_rows::row(view.names())?;
    for value in state.signals.values() {
        let (at, row) = row(value);
        let readable = readable(row.schema, &row.fields, describer);
        text += &csv_rows::row(view.record(Row { at, row: &row, readable: &readable }))?;
    }
    Ok(text)
}

/// Returns the place of a signal's record, and the signal as the only row of it.
fn row(value: &SignalValue) -> (Position, TickRow) {
    let (partition, offset, timestamp_ns) = (value.partition, value.offset, value.committed_ns);
    let row = TickRow { schema: "Signal", index: None, fields: value.record.clone() };
    (Position { partition, offset, timestamp_ns }, row)
}

/// Describes the symbol, its place and its age.
fn head(state: &SymbolState, now_ns: i64) -> String {
    let ago = |ns: i64| ago(now_ns, ns);
    let SymbolState { symbol, source, partition, group, latest, placement, lane, position, .. } = state;
    let mut place = format!("partition {partition}, group {group}");
    match placement {
        Some(at) => {
            write!(place, ": {}, lane {}, epoch {}", at.node, at.lane, at.epoch)
                .expect("a string takes any text");
        }
        None => place.push_str(": placement unknown"),
    }
    let lane = match lane {
        Some(lane) => {
            let state = match lane.state {
                LaneState::Ready if position.is_none() => {
                    "was ready at the last entry of its journal".to_owned()
                }
                LaneState::Silent => "silent (its process has ended or is cut off); was ready".to_owned(),
                LaneState::Ready => "ready".to_owned(),
                LaneState::Stopped => "stopped with its process".to_owned(),
                LaneState::Lost => format!("lost: {}", lane.reason),
            };
            format!("{} {state}, as of {}", lane.device, ago(lane.written_ns))
        }
        None => "not known".to_owned(),
    };
    let behind = match position {
        None => "the log itself: up to date".to_owned(),
        Some(position) => {
            let behind = match position.behind {
                0 => "up to date".to_owned(),
                behind => format!("{behind} signals behind"),
            };
            let (written, node) = (ago(position.written_ns), &position.node);
            format!("{behind} when {node} wrote it {written}")
        }
    };
    let (offset, committed) = (latest.offset, ago(latest.committed_ns));
    facts(&[
        ("symbol", symbol.clone()),
        ("source", source.clone()),
        ("freshness", behind),
        ("latest", format!("signal {partition}:{offset}, committed {committed}")),
        ("placement", place),
        ("lane", lane),
    ])
}

/// Formats the indicators of the latest bar of each specification, side by side; empty without a bar.
fn indicators(state: &SymbolState, room: Room) -> String {
    let specs: Vec<&str> =
        state.signals.values().filter_map(|value| value.record["bar_spec"].as_str()).collect();
    let mut bars = Vec::new();
    for spec in specs {
        if let Some(bar) = state.signals.get(&signal_field(spec, "BAR", None))
            && !bars.iter().any(|(known, _)| *known == spec)
        {
            bars.push((spec, &bar.record));
        }
    }
    if bars.is_empty() {
        return String::new();
    }
    let heads: Vec<Head<'_>> = std::iter::once(Head::text("INDICATOR", 12))
        .chain(bars.iter().map(|(spec, _)| Head::number(spec)))
        .collect();
    let further = bars.iter().filter_map(|(_, record)| record[FURTHER].as_object());
    let further: BTreeSet<&str> = further.flat_map(Map::keys).map(String::as_str).collect();
    let rows: Vec<Vec<String>> = INDICATORS
        .into_iter()
        .chain(further)
        .map(|name| {
            let cell = |(_, record): &(&str, &Value)| {
                let value = record[name].as_f64().or_else(|| record[FURTHER][name].as_f64());
                value.map_or_else(String::new, float)
            };
            std::iter::once(name.to_owned()).chain(bars.iter().map(cell)).collect()
        })
        .collect();
    fit::table(&heads, &["INDICATOR"], &rows, room)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use warptape_hot::{LaneValue, PlacementValue, PositionValue};

    #[test]
    fn a_table_says_what_where_and_how_old() {
        let record = json!({
            "symbol": "A:X", "kind": "BAR", "bar_spec": "1s", "bar_end_ns": 1_723_075_200_000_000_000_i64, "value": 2.5,
            "threshold": 0.0, "close_e9": 2_500_000_000_i64, "trades": 3, "sma": 2.25, "rsi": null,
            "further_indicators": {"percentile": 98.5},
        });
        let value = SignalValue { offset: 41, partition: 2, group: 5, committed_ns: 8_500_000_000, record };
        let state = SymbolState {
            symbol: "A:X".to_owned(),
            source: "redis://h".to_owned(),
            partition: 2,
            group: 5,
            latest: value.clone(),
            signals: BTreeMap::from([("1s/BAR".to_owned(), value)]),
            placement: Some(PlacementValue {
                assigned_offset: 0,
                at_ns: 1,
                epoch: 3,
                node: "node-0".to_owned(),
                lane: 1,
            }),
            lane: Some(LaneValue {
                written_ns: 9_000_000_000,
                since_ns: 1,
                state: LaneState::Lost,
                reason: "fire".to_owned(),
                device: "cpu:1".to_owned(),
                groups: 0,
                completed_ns: 0,
            }),
            position: Some(PositionValue {
                next_offset: 42,
                written_ns: 9_000_000_000,
                behind: 7,
                node: "node-0".to_owned(),
                record_hash: String::new(),
            }),
        };
        let text = table(&state, 9_500_000_000, Room::Whole);
        for part in [
            "symbol     A:X\n",
            "source     redis://h\n",
            "freshness  7 signals behind when node-0 wrote it 0.5 s ago\n",
            "latest     signal 2:41, committed 1.0 s ago\n",
            "placement  partition 2, group 5: node-0, lane 1, epoch 3\n",
            "lane       cpu:1 lost: fire, as of 0.5 s ago\n",
            "\n2:41 ",
            "2024-08-08T00:00:00",
            "\nINDICATOR              1s\nsma                  2.25\n",
            "\nrsi\n",
            "\npercentile           98.5\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in:\n{text}");
        }
        let ready = state.lane.clone().map(|lane| LaneValue { state: LaneState::Ready, ..lane });
        let ready = SymbolState { lane: ready, ..state.clone() };
        let silent = "lane       cpu:1 silent (its process has ended or is cut off); was ready, as of ";
        for (ready, now_ns, said) in [
            (ready.clone(), 9_500_000_000, "lane       cpu:1 ready, as of 0.5 s ago\n"),
            (ready.clone(), 19_000_000_000, "lane       cpu:1 ready, as of "),
            (ready.clone(), 19_000_000_001, silent),
            (
                SymbolState { position: None, ..ready },
                9_500_000_000,
                "lane       cpu:1 was ready at the last entry of its journal, as of 0.5 s ago\n",
            ),
        ] {
            assert!(table(&with_silence(ready, now_ns), now_ns, Room::Whole).contains(said), "{said}");
        }
        let of_killed = with_silence(
            SymbolState {
                lane: state.lane.clone().map(|lane| LaneValue { state: LaneState::Ready, ..lane }),
                ..state.clone()
            },
            19_000_000_001,
        );
        let json = serde_json::to_value(&of_killed).expect("JSON");
        assert_eq!(json["lane"]["state"], "SILENT");
        let unknown = SymbolState { placement: None, lane: None, position: None, ..state };
        let text = table(&unknown, 9_500_000_000, Room::Whole);
        assert!(text.contains("group 5: placement unknown\nlane       not known\n"), "{text}");
        assert!(text.contains("freshness  the log itself: up to date\n"), "{text}");
    }
}
