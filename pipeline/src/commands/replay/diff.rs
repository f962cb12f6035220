//! `warptape replay diff`: compares two runs: their first difference, the groups on other lanes, and the cost.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;

use indicatif::HumanCount;
use warptape_replay::ReplayError;
use warptape_replay::chain::Step;
use warptape_replay::diff::{Diff, DiffSide, LaneRows, Parted, PartedAt, Side, Unlike, diff};

use super::chain::{holder, milliseconds, name, push_line, push_paragraph};
use crate::cli::{ChainFormat, DIVERGED, DiffArgs};
use crate::commands::columns::{counted, utc};
use crate::commands::fit::{Head, Room, cut, table};
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::{printable_line, stdout};
use crate::settings::Settings;

/// Greatest width of a value.
const VALUE_MAX: usize = 48;
/// Least width of a value or of a list of lanes.
const WORDS_MIN: usize = 12;
/// Greatest number of groups shown.
const GROUPS_SHOWN: usize = 10;

/// Compares two logs.
pub fn execute(args: &DiffArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let open = |url: &String| {
        let mut settings = settings.clone();
        settings.log.url.clone_from(url);
        let OpenLog { log, schemas, .. } = open_log(&settings, Purpose::Replay).map_err(ReplayError::from)?;
        anyhow::Ok((log, super::sources(&settings, schemas)))
    };
    let (a, b) = (open(&args.a)?, open(&args.b)?);
    let bar = super::progress_bar();
    let sides = [&a, &b].map(|(log, options)| DiffSide { log: &**log, options });
    let found = diff(sides, &mut |progress| super::show(&bar, progress));
    bar.finish_and_clear();
    let found = found?;
    let mut stdout = stdout();
    match args.output {
        ChainFormat::Table => write!(stdout, "{}", text(&found, Room::of_stdout(args.wide)))?,
        ChainFormat::Json => {
            serde_json::to_writer(&mut stdout, &found)?;
            writeln!(stdout)?;
        }
    }
    Ok(if found.is_same() { ExitCode::SUCCESS } else { ExitCode::from(DIVERGED) })
}

fn text(found: &Diff, room: Room) -> String {
    let mut text = String::new();
    for (letter, side) in ["A", "B"].iter().zip(&found.sides) {
        push_line(&mut text, &format!("{letter}  {}", headline(side)));
    }
    match found.configuration.is_empty() {
        true => push_paragraph(&mut text, "configuration: the same"),
        false => {
            push_paragraph(&mut text, "configuration:");
            text.push_str(&fields(&found.configuration, room));
        }
    }
    found.parted.iter().for_each(|parted| push_parted(&mut text, parted, found, room));
    push_outputs(&mut text, found, room);
    push_moves(&mut text, found, room);
    push_paragraph(&mut text, "cost:");
    text.push_str(&costs(&found.sides, room));
    push_cut_pauses(&mut text, &found.sides);
    push_waits(&mut text, &found.sides, room);
    push_lanes(&mut text, &found.sides, room);
    push_slowest(&mut text, &found.sides, room);
    text
}

fn headline(side: &Side) -> String {
    let modelled = side.modelled_from.as_ref().map(|from| format!(" (modelled from {from})"));
    format!(
        "{}{}: {} of {}, {} in {}, {}, {:.1} s",
        side.url,
        modelled.unwrap_or_default(),
        counted(side.lives, "life", "lives"),
        if side.software.is_empty() { "unknown software".to_owned() } else { side.software.join(", ") },
        counted(side.totals.rows.unsigned_abs(), "row", "rows"),
        counted(side.totals.batches, "batch", "batches"),
        counted(side.totals.signals, "signal", "signals"),
        side.elapsed_ns as f64 / 1e9
    )
}

fn fields(unlike: &[Unlike], room: Room) -> String {
    let shown = |value: &Option<serde_json::Value>| {
        let text = match value {
            None => "nothing".to_owned(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        cut(&printable_line(&text), VALUE_MAX)
    };
    let row = |one: &Unlike| vec![format!("  {}", one.field), shown(&one.a), shown(&one.b)];
    let rows: Vec<Vec<String>> = unlike.iter().map(row).collect();
    let heads = [Head::text("  field", 16), Head::text("A", WORDS_MIN), Head::text("B", WORDS_MIN)];
    table(&heads, &["A", "B"], &rows, room)
}

fn push_parted(text: &mut String, parted: &Parted, found: &Diff, room: Room) {
    let journal = format!("journal of process {}", parted.journal);
    let alike = HumanCount(parted.alike);
    let starts = match parted.starts_unlike {
        0 => String::new(),
        count => {
            format!(", plus {} of another configuration", counted(count, "start", "starts"))
        }
    };
    let Some(at) = &parted.at else {
        let end = match parted.more {
            [0, 0] => String::new(),
            [0, more] => format!("; then B has {} more", HumanCount(more)),
            [more, _] => format!("; then A has {} more", HumanCount(more)),
        };
        push_paragraph(
            text,
            &format!("{journal}: {alike} entries are the same apart from times{starts}{end}"),
        );
        return;
    };
    let PartedAt { by_decision, sequences: [a, b], at_ns, inputs, fields: unlike } = at;
    let what = match by_decision {
        true => format!("decided differently on the same input ({})", inputs[0]),
        false => "got different inputs, so later decisions cannot be compared one by one".to_owned(),
    };
    let when = format!("A at {} (entry {a}), B at {} (entry {b})", utc(at_ns[0]), utc(at_ns[1]));
    push_paragraph(
        text,
        &format!(
            "{journal}: {alike} entries are the same apart from times{starts}; then they {what}: {when}"
        ),
    );
    text.push_str(&fields(unlike, room));
    if *by_decision {
        for (side, sequence) in found.sides.iter().zip([a, b]) {
            let partition = parted.journal;
            push_line(
                text,
                &format!("  why: warptape replay why {sequence} --partition {partition} --log {}", side.url),
            );
        }
    }
}

fn push_outputs(text: &mut String, found: &Diff, room: Room) {
    if found.sides.iter().any(|side| side.modelled_from.is_some()) {
        push_paragraph(
            text,
            "signals: not compared, because a modelled run has no signals and no transactions",
        );
        return;
    }
    let outputs = &found.outputs;
    let elsewhere = match outputs.at_other_offsets {
        0 => String::new(),
        count => format!(" ({} of them from tick records at other offsets)", HumanCount(count)),
    };
    let same = HumanCount(outputs.same);
    if outputs.is_same() {
        push_paragraph(text, &format!("signals: all {same} are identical, bit for bit{elsewhere}"));
        return;
    }
    let [a, b] = outputs.rest.map(HumanCount);
    push_paragraph(text, &format!("signals: {same} are identical{elsewhere}; {a} of A and {b} of B are not"));
    if outputs.same == 0 && outputs.rest.contains(&0) {
        push_line(
            text,
            "  one of the logs has no signals; an export has them only if it was written with --with-ticks",
        );
    }
    if let Some(first) = outputs.first.first() {
        let [a, b] = first.offsets;
        push_line(
            text,
            &format!(
                "the first difference, in partition {} at offset {a} of A and {b} of B:",
                first.partition
            ),
        );
        text.push_str(&fields(&first.fields, room));
    }
}

fn push_moves(text: &mut String, found: &Diff, room: Room) {
    let moves = &found.moves;
    if moves.elsewhere == 0 {
        push_paragraph(text, &format!("placement: all {} groups were on the same lanes", moves.groups));
        return;
    }
    push_paragraph(
        text,
        &format!(
            "placement: {} of {} groups were on another lane for some of their records; those with the most rows:",
            moves.elsewhere, moves.groups
        ),
    );
    let lanes = |lanes: &[LaneRows]| {
        let one = |lane: &LaneRows| format!("{}: {}", lane.lane, HumanCount(lane.rows.unsigned_abs()));
        lanes.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let rows: Vec<Vec<String>> = moves
        .listed
        .iter()
        .take(GROUPS_SHOWN)
        .map(|group| {
            let [a, b] = &group.lanes;
            let numbers = [i64::from(group.partition), i64::from(group.group), group.first_offset];
            numbers.iter().map(i64::to_string).chain([lanes(a), lanes(b)]).collect()
        })
        .collect();
    let heads = [
        Head::number("partition"),
        Head::number("group"),
        Head::number("from_offset"),
        Head::text("rows by lane in A", WORDS_MIN),
        Head::text("rows by lane in B", WORDS_MIN),
    ];
    let first = ["group", "rows by lane in A", "rows by lane in B", "partition"];
    text.push_str(&table(&heads, &first, &rows, room));
}

fn costs(sides: &[Side; 2], room: Room) -> String {
    type Figure = fn(&Side) -> f64;
    // Quantiles have three exact digits; all other figures are exact.
    let figures: [(&str, usize, Figure); 12] = [
        ("tick to signal, p50, ms", QUANTILE, |side| side.latency.p50_ns as f64 / 1e6),
        ("tick to signal, p99, ms", QUANTILE, |side| side.latency.p99_ns as f64 / 1e6),
        ("tick to signal, p99.9, ms", QUANTILE, |side| side.latency.p999_ns as f64 / 1e6),
        ("tick to signal, slowest, ms", 3, |side| side.latency.max_ns as f64 / 1e6),
        ("rows in a batch, mean", 1, |side| side.totals.rows as f64 / (side.totals.batches.max(1)) as f64),
        ("moves of groups", 0, |side| side.totals.moves as f64),
        ("pauses", 0, |side| side.totals.pauses as f64),
        ("paused, ms", 3, |side| side.totals.paused_ns as f64 / 1e6),
        ("transactions", 0, |side| side.totals.transactions as f64),
        ("commits aborted", 0, |side| side.totals.aborted as f64),
        ("lanes lost", 0, |side| side.totals.lanes_lost as f64),
        ("elapsed, s", 3, |side| side.elapsed_ns as f64 / 1e9),
    ];
    let row = |(name, digits, figure): &(&str, usize, Figure)| {
        let is_known = |side: &Side| side.modelled_from.is_none() || !OF_TRANSACTIONS.contains(name);
        let [a, b] = [&sides[0], &sides[1]].map(|side| is_known(side).then(|| figure(side)));
        let number = |value: f64| match *digits {
            QUANTILE => significant(value),
            digits => format!("{value:.digits$}"),
        };
        let shown = |value: Option<f64>| value.map_or_else(String::new, number);
        let difference = a.zip(b).map_or_else(String::new, |(a, b)| {
            let sign = if b >= a { "+" } else { "" };
            format!("{sign}{}", number(b - a))
        });
        vec![format!("  {name}"), shown(a), shown(b), difference]
    };
    let rows: Vec<Vec<String>> = figures.iter().map(row).collect();
    table(&COSTS, &COSTS_FIRST, &rows, room)
}

/// Marks a quantile in the place of a figure's number of decimals.
const QUANTILE: usize = usize::MAX;

/// Formats a number with three significant digits, or with all digits before the point if these are more.
fn significant(value: f64) -> String {
    let (mut decimals, mut scaled) = (0, value.abs());
    while scaled > 0.0 && scaled < 100.0 && decimals < 9 {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{value:.decimals$}")
}

/// Figures that a modelled run lacks, because it has no transactions.
const OF_TRANSACTIONS: [&str; 6] = [
    "tick to signal, p50, ms",
    "tick to signal, p99, ms",
    "tick to signal, p99.9, ms",
    "tick to signal, slowest, ms",
    "transactions",
    "commits aborted",
];

/// Adds a note on pauses that began before the journal was read: only their later part is counted.
fn push_cut_pauses(text: &mut String, sides: &[Side; 2]) {
    for (letter, side) in ["A", "B"].iter().zip(sides).filter(|(_, side)| side.totals.pauses_begun_before > 0)
    {
        let count = counted(side.totals.pauses_begun_before, "pause", "pauses");
        push_line(
            text,
            &format!(
                "{letter}: {count} began before the part of the journal that was read, and count from \
                      its beginning"
            ),
        );
    }
}

/// Columns of figures of both sides.
const COSTS: [Head<'static>; 4] =
    [Head::text("", 16), Head::number("A"), Head::number("B"), Head::number("B - A")];
/// The most important ones.
const COSTS_FIRST: [&str; 2] = ["", "B - A"];

fn push_waits(text: &mut String, sides: &[Side; 2], room: Room) {
    let steps: BTreeSet<Step> = sides.iter().flat_map(|side| &side.waits).map(|wait| wait.step).collect();
    // These figures end at a commit, and a modelled run has no commits.
    if steps.is_empty() || sides.iter().any(|side| side.modelled_from.is_some()) {
        return;
    }
    push_paragraph(text, "waits of a row from its arrival to its commit, mean over all rows, in ms:");
    let of =
        |side: &Side, step: Step| side.waits.iter().find(|wait| wait.step == step).map_or(0, |wait| wait.ns);
    let row = |first: String, [a, b]: [i64; 2]| {
        let shown = |ns: i64| format!("{:.3}", ns as f64 / 1e6);
        vec![format!("  {first}"), shown(a), shown(b), format!("{:+.3}", (b - a) as f64 / 1e6)]
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut sums = [0, 0];
    for step in steps {
        let both = [of(&sides[0], step), of(&sides[1], step)];
        sums = [sums[0] + both[0], sums[1] + both[1]];
        rows.push(row(name(step), both));
    }
    rows.push(row("in all".to_owned(), sums));
    text.push_str(&table(&COSTS, &COSTS_FIRST, &rows, room));
}

fn push_lanes(text: &mut String, sides: &[Side; 2], room: Room) {
    push_paragraph(text, "work of lanes:");
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (letter, side) in ["A", "B"].iter().zip(sides) {
        for lane in &side.lanes {
            let busy = lane.service_ns as f64 / side.elapsed_ns.max(1) as f64;
            rows.push(vec![
                format!("  {letter}"),
                lane.journal.to_string(),
                lane.lane.to_string(),
                lane.device.clone(),
                HumanCount(lane.batches).to_string(),
                HumanCount(lane.rows.unsigned_abs()).to_string(),
                format!("{:.1}", 100.0 * busy),
                significant(lane.service_ns as f64 / 1e6 / (lane.rows.max(1)) as f64),
            ]);
        }
    }
    let heads = [
        Head::fixed(""),
        Head::number("process"),
        Head::number("lane"),
        Head::text("device", 8),
        Head::number("batches"),
        Head::number("rows"),
        Head::number("busy_%"),
        Head::number("ms_per_row"),
    ];
    let first = ["", "lane", "busy_%", "rows", "device", "ms_per_row", "batches"];
    text.push_str(&table(&heads, &first, &rows, room));
}

fn push_slowest(text: &mut String, sides: &[Side; 2], room: Room) {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (letter, side) in ["A", "B"].iter().zip(sides) {
        for slow in &side.slowest {
            let (chain, held) = (&slow.chain, slow.held_by.first());
            rows.push(vec![
                format!("  {letter}"),
                milliseconds(chain.total_ns),
                format!("signal:{}:{}", chain.signal.partition, chain.signal.offset),
                held.map_or_else(String::new, |held| format!("{} {}", holder(held), milliseconds(held.ns))),
            ]);
        }
    }
    if rows.is_empty() {
        return;
    }
    push_paragraph(text, "the slowest signals (explain one with `replay why`):");
    let heads = [
        Head::fixed(""),
        Head::number("latency"),
        Head::fixed("signal"),
        Head::text("longest wait for", WORDS_MIN),
    ];
    text.push_str(&table(&heads, &[], &rows, room));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (value, expected) in [
            (6_111.101, "6111"),
            (461.111, "461"),
            (56.84, "56.8"),
            (4.006, "4.01"),
            (0.000_512_3, "0.000512"),
            (0.0, "0"),
            (-2_263.4, "-2263"),
        ] {
            assert_eq!(significant(value), expected);
        }
    }
}
