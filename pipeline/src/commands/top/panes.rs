//! Contents of the panes, as lines.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::candles;
use super::model::{Model, Pane};
use super::palette::Palette;
use super::table::{Cell, Room, table, window};
use super::words::{
    UNKNOWN, bar, bytes, count, milliseconds, rate, seconds, shown, sparkline, time_of_day, whole,
};
use crate::commands::columns::Align::{Left, Right};
use crate::commands::fit::{cut, wrap};
use crate::endpoint::live::snapshot::{Entry, Lag, Snapshot, Stores, Verified};

/// Width of a name before its value, in columns.
const NAME: usize = 10;
/// Width of a value before its sparkline, in columns.
const VALUE: usize = 10;
/// Width of a bar, in columns.
const BAR: usize = 10;
/// Number of lines reserved for the newest signals below the table of kinds.
const NEWEST_MIN: usize = 6;
/// Greatest number of lines of the selected decision.
const CHOSEN_LINES_MAX: usize = 8;

/// Returns the title of a pane.
pub fn title(pane: Pane, model: &Model, palette: Palette) -> Vec<Span<'static>> {
    match pane {
        Pane::Candles => candles::title(model, palette),
        Pane::Rates => vec![Span::raw("rates of two minutes")],
        _ => vec![Span::raw(pane.name())],
    }
}

/// Returns the contents of a pane.
pub fn lines(pane: Pane, model: &Model, room: Room, palette: Palette) -> Vec<Line<'static>> {
    let Some(state) = &model.snapshot else {
        return vec![Line::styled(cut(UNKNOWN, room.width), palette.faint())];
    };
    let selected = (model.selected(pane), model.focus == pane);
    match pane {
        Pane::Rates => rates(state, room, palette),
        Pane::Candles => candles::lines(model, room, palette),
        Pane::Lanes => lanes(state, room, selected, palette),
        Pane::Signals => signals(state, room, selected, palette),
        Pane::Decisions => decisions(state, room, selected, palette),
        Pane::Partitions => partitions(state, room, selected, palette),
        Pane::Risk => risk(state, room, selected, palette),
        Pane::Stores => stores(state, room, selected, palette),
    }
}

fn rates(state: &Snapshot, room: Room, palette: Palette) -> Vec<Line<'static>> {
    let known = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    let history = &state.history;
    let waiting: Vec<Option<f64>> = history.waiting_rows.iter().map(|rows| Some(*rows as f64)).collect();
    let per_second = |values: &[f64]| values.last().copied().map(rate);
    let lag = state.lag.as_ref().map(|lag| seconds(lag.seconds));
    let behind = state.lag.as_ref().map(|lag| whole(lag.records));
    let latency = state.latency.as_ref().map(|latency| {
        let quantiles = [("p50", latency.p50_ms), ("p99", latency.p99_ms), ("p99.9", latency.p999_ms)];
        quantiles.map(|(name, ms)| format!("{name} {}", milliseconds(ms))).join("  ")
    });
    let measured = |name, value: Option<String>, series: &[Option<f64>]| {
        measured(name, value.as_deref(), series, room.width, palette)
    };
    let mut lines = vec![
        measured("ticks/s", per_second(&history.ticks_per_s), &known(&history.ticks_per_s)),
        measured("lag", lag, &history.lag_s),
        named("latency", latency.as_deref().unwrap_or(UNKNOWN), Style::new(), room.width, palette),
        measured("signals/s", per_second(&history.signals_per_s), &known(&history.signals_per_s)),
        measured("waiting", Some(count(state.totals.waiting_rows)), &waiting),
        measured("commits/s", per_second(&history.commits_per_s), &known(&history.commits_per_s)),
        named("behind", &behind.map_or(UNKNOWN.to_owned(), records), Style::new(), room.width, palette),
    ];
    lines.truncate(room.height);
    lines
}

fn records(count: String) -> String {
    if count == "1" { "1 record".to_owned() } else { format!("{count} records") }
}

/// Returns a name, its current value, and its sparkline over time.
fn measured(
    name: &str,
    value: Option<&str>,
    series: &[Option<f64>],
    width: usize,
    palette: Palette,
) -> Line<'static> {
    let value = value.unwrap_or(UNKNOWN);
    let left = width.saturating_sub(NAME + VALUE + 1);
    Line::from(vec![
        Span::styled(format!("{name:<NAME$}"), palette.faint()),
        Span::raw(format!("{value:>VALUE$} ")),
        Span::styled(sparkline(series, left), palette.accent()),
    ])
}

/// Returns a name and a fact, cut to the width.
fn named(name: &str, fact: &str, style: Style, width: usize, palette: Palette) -> Line<'static> {
    Line::from(vec![
        Span::styled(format!("{name:<NAME$}"), palette.faint()),
        Span::styled(cut(&shown(fact), width.saturating_sub(NAME)), style),
    ])
}

fn lanes(state: &Snapshot, room: Room, selected: (usize, bool), palette: Palette) -> Vec<Line<'static>> {
    let header = [
        ("lane", Left),
        ("state", Left),
        ("busy", Left),
        ("rows/s", Right),
        ("waiting", Right),
        ("in flight", Right),
        ("groups", Right),
        ("symbols", Left),
    ];
    let rows: Vec<Vec<Cell>> = state
        .lanes
        .iter()
        .map(|lane| {
            let busy = format!("{} {:>3.0}%", bar(lane.busy_percent, BAR), lane.busy_percent);
            vec![
                Cell::new(&format!("{} {}", lane.lane, lane.device)),
                Cell::new(&lane.state).style(palette.lane(&lane.state)),
                Cell::new(&busy).style(palette.accent()),
                Cell::new(&rate(lane.rows_per_s)),
                Cell::new(&whole(lane.waiting_rows)),
                Cell::new(&whole(lane.in_flight_rows)),
                Cell::new(&lane.groups.len().to_string()),
                Cell::new(&lane.symbols.join(" ")),
            ]
        })
        .collect();
    table(&header, &rows, room, selected, palette)
}

fn signals(state: &Snapshot, room: Room, selected: (usize, bool), palette: Palette) -> Vec<Line<'static>> {
    let mut lines = kinds(state, room, palette);
    let rest = Room { height: room.height.saturating_sub(lines.len()), ..room };
    let header = [("time", Left), ("symbol", Left), ("kind", Left), ("bar", Left), ("value", Right)];
    let rows: Vec<Vec<Cell>> = state
        .signals
        .iter()
        .map(|signal| {
            vec![
                Cell::new(&time_of_day(&signal.end, 0)),
                Cell::new(&signal.symbol),
                Cell::new(&signal.kind),
                Cell::new(&signal.bar),
                Cell::new(&value(signal.value)),
            ]
        })
        .collect();
    lines.extend(table(&header, &rows, rest, selected, palette));
    lines.truncate(room.height);
    lines
}

/// Formats the value of a signal, which may not be a number.
fn value(value: f64) -> String {
    if value.is_finite() { format!("{value:.4}") } else { UNKNOWN.to_owned() }
}

/// Returns the counts by kind: a table with bars in a high pane, otherwise a line.
fn kinds(state: &Snapshot, room: Room, palette: Palette) -> Vec<Line<'static>> {
    let mut kinds: Vec<(&String, u64)> =
        state.signals_by_kind.iter().map(|(kind, count)| (kind, *count)).collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if kinds.is_empty() {
        return vec![Line::styled(cut("no signals yet", room.width), palette.faint())];
    }
    if kinds.len() + 1 + NEWEST_MIN > room.height {
        let words = kinds.iter().map(|(kind, number)| format!("{kind} {}", count(*number)));
        let words = shown(&words.collect::<Vec<_>>().join("  "));
        return vec![Line::from(cut(&words, room.width))];
    }
    let all: u64 = kinds.iter().map(|(_, count)| count).sum();
    let rows: Vec<Vec<Cell>> = kinds
        .iter()
        .map(|(kind, number)| {
            let share = *number as f64 / all.max(1) as f64 * 100.0;
            vec![
                Cell::new(kind),
                Cell::new(&count(*number)),
                Cell::new(&bar(share, BAR)).style(palette.accent()),
            ]
        })
        .collect();
    let header = [("kind", Left), ("signals", Right), ("share", Left)];
    let room = Room { height: kinds.len() + 1, ..room };
    table(&header, &rows, room, (0, false), palette)
}

fn decisions(state: &Snapshot, room: Room, selected: (usize, bool), palette: Palette) -> Vec<Line<'static>> {
    let entries = &state.decisions;
    let Some(chosen) = entries.get(selected.0) else {
        return vec![Line::styled(cut("no decisions yet", room.width), palette.faint())];
    };
    // Only the focused pane shows the whole text of the selected decision.
    let chosen = if selected.1 { chosen_lines(chosen, room, palette) } else { vec![] };
    let after = room.height.saturating_sub(chosen.len().saturating_sub(1));
    let visible = window(entries.len(), selected.0, after.max(1));
    let mut lines = Vec::new();
    for index in visible {
        if index == selected.0 && !chosen.is_empty() {
            lines.extend(chosen.iter().cloned());
        } else {
            lines.push(decision_line(&entries[index], room.width, palette));
        }
    }
    lines.truncate(room.height);
    lines
}

/// Returns the time and the text of a decision on one line.
fn decision_line(entry: &Entry, width: usize, palette: Palette) -> Line<'static> {
    let time = time_of_day(&entry.at, 3);
    let words = entry.reasons.first().unwrap_or(&entry.words);
    let more = entry.reasons.len().saturating_sub(1);
    let more = if more == 0 { String::new() } else { format!(" (+{more})") };
    let left = width.saturating_sub(time.width() + 2 + more.len());
    Line::from(vec![
        Span::styled(format!("{time}  "), palette.faint()),
        Span::raw(cut(&shown(words), left)),
        Span::styled(more, palette.faint()),
    ])
}

/// Returns the selected decision's entry with all its reasons.
fn chosen_lines(entry: &Entry, room: Room, palette: Palette) -> Vec<Line<'static>> {
    let head = format!("{}  {}  {}", time_of_day(&entry.at, 3), shown(&entry.place), shown(&entry.words));
    let reasons = entry.reasons.iter().flat_map(|reason| wrap(&shown(reason), room.width, "  "));
    let head = Line::styled(cut(&head, room.width), palette.selected());
    let lines = reasons.map(Line::from);
    std::iter::once(head).chain(lines).take(CHOSEN_LINES_MAX.min(room.height)).collect()
}

fn partitions(state: &Snapshot, room: Room, selected: (usize, bool), palette: Palette) -> Vec<Line<'static>> {
    let header = [
        ("partition", Right),
        ("state", Left),
        ("lag", Right),
        ("records", Right),
        ("waiting", Right),
        ("symbols", Right),
        ("watermark", Left),
    ];
    let rows: Vec<Vec<Cell>> = state
        .partitions
        .iter()
        .map(|partition| {
            let (words, style) = match (partition.is_restoring, partition.is_paused) {
                (true, _) => ("restoring", palette.warning()),
                (_, true) => ("paused", palette.warning()),
                _ => ("reading", palette.good()),
            };
            let lag = |of: fn(&Lag) -> String| partition.lag.as_ref().map_or(UNKNOWN.to_owned(), of);
            vec![
                Cell::new(&partition.partition.to_string()),
                Cell::new(words).style(style),
                Cell::new(&lag(|lag| seconds(lag.seconds))),
                Cell::new(&lag(|lag| whole(lag.records))),
                Cell::new(&whole(partition.waiting_rows)),
                Cell::new(&count(partition.symbols)),
                Cell::new(partition.watermark.as_deref().unwrap_or(UNKNOWN)),
            ]
        })
        .collect();
    table(&header, &rows, room, selected, palette)
}

fn risk(state: &Snapshot, room: Room, selected: (usize, bool), palette: Palette) -> Vec<Line<'static>> {
    if state.risk.is_empty() {
        let words = format!("no requests yet, {} read", count(state.totals.risk_requests));
        return vec![Line::styled(cut(&words, room.width), palette.faint())];
    }
    let header = [("request", Left), ("kind", Left), ("outcome", Left), ("fields", Left)];
    let rows: Vec<Vec<Cell>> = state
        .risk
        .iter()
        .map(|risk| {
            let fields = if risk.fields.is_null() { String::new() } else { risk.fields.to_string() };
            vec![
                Cell::new(&risk.id),
                Cell::new(&risk.kind),
                Cell::new(&risk.outcome),
                Cell::new(&fields).style(palette.faint()),
            ]
        })
        .collect();
    table(&header, &rows, room, selected, palette)
}

/// A fact of the stores: name, words, and its level of health; an empty level is neutral.
type Fact = (&'static str, String, &'static str);

/// Returns the number of facts about the stores.
pub fn store_rows(state: &Snapshot) -> usize {
    facts(state).len()
}

fn stores(state: &Snapshot, room: Room, selected: (usize, bool), palette: Palette) -> Vec<Line<'static>> {
    let facts = facts(state);
    window(facts.len(), selected.0, room.height)
        .map(|row| {
            let (name, words, level) = &facts[row];
            let style = if level.is_empty() { Style::new() } else { palette.level(level).1 };
            named(name, words, style, room.width, palette)
        })
        .collect()
}

fn facts(state: &Snapshot) -> Vec<Fact> {
    let stores = &state.stores;
    let mut facts = vec![
        ("log", stores.log.clone(), ""),
        match &stores.lost {
            Some(lost) => ("", lost.clone(), "down"),
            None => ("", "it answers".to_owned(), "ok"),
        },
        ("disk", disk(stores), ""),
        ("hot state", stores.hot_state.clone().unwrap_or_else(|| "in memory".to_owned()), ""),
        verified(state.verified.as_ref()),
    ];
    facts.extend(state.devices.iter().map(device));
    if state.records_skipped > 0 {
        facts.push((
            "skipped",
            format!("{} records, to spare the processor", count(state.records_skipped)),
            "",
        ));
    }
    facts
}

fn disk(stores: &Stores) -> String {
    match (stores.disk_free_bytes, stores.disk_size_bytes) {
        (Some(free), Some(size)) => {
            let used = 100.0 - free as f64 / size.max(1) as f64 * 100.0;
            format!("{} {} free of {}", bar(used, BAR), bytes(free), bytes(size))
        }
        (Some(free), None) => format!("{} free", bytes(free)),
        (None, _) => UNKNOWN.to_owned(),
    }
}

fn verified(verified: Option<&Verified>) -> Fact {
    let Some(verified) = verified else {
        return ("verified", "by no verifier of this process".to_owned(), "");
    };
    if let Some(difference) = &verified.difference {
        return ("verified", format!("DIFFERS: {difference}"), "down");
    }
    let words = format!(
        "entries before {} of {}, {} outputs equal, at most {} % of a core",
        whole(verified.sequence),
        verified.newest.map_or(UNKNOWN.to_owned(), whole),
        count(verified.outputs),
        verified.share_percent
    );
    ("verified", words, "ok")
}

/// Returns the facts about a GPU that matter to an operator.
fn device(device: &Value) -> Fact {
    let is_healthy = device["healthy"].as_bool();
    let number = |field: &str, unit: &str| {
        device[field].as_f64().map_or(format!("{unit} {UNKNOWN}"), |number| format!("{number:.0} {unit}"))
    };
    let reasons: Vec<&str> =
        device["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let words = format!(
        "{} {}, {}, {}{}{}",
        device["device"].as_str().unwrap_or(UNKNOWN),
        number("utilization_percent", "%"),
        number("temperature_celsius", "°C"),
        number("power_watts", "W"),
        if reasons.is_empty() { "" } else { ": " },
        reasons.join(", ")
    );
    let level = match is_healthy {
        Some(true) => "ok",
        Some(false) => "degraded",
        None => "",
    };
    ("gpu", words, level)
}
