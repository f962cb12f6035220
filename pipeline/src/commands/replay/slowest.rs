//! `warptape replay slowest`: lists the signals with the greatest latency, each with the main cause.

use std::io::Write as _;
use std::process::ExitCode;

use indicatif::HumanCount;
use warptape_replay::chain::{Slow, Slowest, SlowestOptions, slowest};
use warptape_replay::{ReplayError, ReplayProgress};

use super::chain::{holder, lane_meanwhile, parts};
use crate::cli::{ListFormat, SlowestArgs};
use crate::commands::columns::{counted, utc};
use crate::commands::csv_rows;
use crate::commands::fit::{self, Head, Room};
use crate::commands::json::{Integers, iso, write_line_with_times};
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// Lists the slowest signals.
pub fn execute(args: &SlowestArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let integers = Integers::of(args.raw, args.output == ListFormat::Json)?;
    let bar = super::progress_bar();
    let found = answer(args, settings, &mut |progress| super::show(&bar, progress));
    bar.finish_and_clear();
    let found = found?;
    let mut stdout = stdout();
    match args.output {
        ListFormat::Table => write!(stdout, "{}", table(&found, Room::of_stdout(args.wide)))?,
        ListFormat::Json => write_line_with_times(&mut stdout, &found, integers)?,
        ListFormat::Csv => {
            write!(stdout, "{}", csv_rows::row(CSV_NAMES)?)?;
            for slow in &found.signals {
                write!(stdout, "{}", csv_rows::row(csv_row(slow))?)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the slowest signals.
pub fn answer(
    args: &SlowestArgs,
    settings: &Settings,
    progress: &mut dyn FnMut(ReplayProgress),
) -> anyhow::Result<Slowest> {
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    let OpenLog { log, schemas, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let options = super::sources(settings, schemas);
    let wanted = SlowestOptions { count, window: args.window.window()?, partition: args.partition };
    Ok(slowest(&*log, &options, wanted, progress)?)
}

fn table(found: &Slowest, room: Room) -> String {
    let heads = [
        Head::number("latency_ms"),
        Head::fixed("committed"),
        Head::fixed("signal"),
        Head::text("symbol", 12),
        Head::text("kind", 6),
        Head::number("batch"),
        Head::text("lane", 6),
        Head::text("longest wait for", 12),
        Head::number("for_ms"),
        Head::text("parts of that wait", 16),
    ];
    let first = ["latency_ms", "signal", "symbol", "longest wait for", "for_ms", "committed", "lane"];
    let rows: Vec<Vec<String>> = found.signals.iter().map(row).collect();
    let mut text = match rows.is_empty() {
        true => "the window has no signal with a known latency\n".to_owned(),
        false => fit::table(&heads, &first, &rows, room),
    };
    text += &format!("{} checked", counted(found.seen, "signal", "signals"));
    text += if rows.is_empty() { "\n" } else { "; explain a signal of the list with `replay why`\n" };
    let first = found.signals.first();
    if let Some((lane, command)) = first.and_then(|slow| lane_meanwhile(&slow.chain, &slow.held_by)) {
        text += &format!("`{command}` shows the state of {lane} while the first one waited\n");
    }
    for reason in found.left_out(|count| HumanCount(count).to_string()) {
        text += &format!("{reason}\n");
    }
    text
}

fn row(slow: &Slow) -> Vec<String> {
    let chain = &slow.chain;
    let milliseconds = |ns: i64| format!("{:.3}", ns as f64 / 1e6);
    let unknown = || "unknown".to_owned();
    vec![
        milliseconds(chain.total_ns),
        chain.transaction.committed_ns.map_or_else(unknown, utc),
        format!("signal:{}:{}", chain.signal.partition, chain.signal.offset),
        chain.signal.symbol.clone(),
        chain.signal.kind.to_owned(),
        chain.batch.as_ref().map_or_else(unknown, |batch| batch.batch.to_string()),
        chain.batch.as_ref().map_or_else(unknown, |batch| batch.device.clone()),
        slow.held_by.first().map_or_else(unknown, holder),
        slow.held_by.first().map_or_else(unknown, |held| milliseconds(held.ns)),
        slow.held_by.first().map_or_else(unknown, parts),
    ]
}

const CSV_NAMES: [&str; 12] = [
    "latency_ns",
    "committed",
    "partition",
    "offset",
    "symbol",
    "bar",
    "bar_end",
    "kind",
    "batch",
    "lane",
    "longest_wait_for",
    "longest_wait_ns",
];

/// Returns a signal's cells with exact values; an unknown value is empty.
fn csv_row(slow: &Slow) -> [String; 12] {
    let chain = &slow.chain;
    let held = slow.held_by.first();
    [
        chain.total_ns.to_string(),
        chain.transaction.committed_ns.map_or_else(String::new, iso),
        chain.signal.partition.to_string(),
        chain.signal.offset.to_string(),
        chain.signal.symbol.clone(),
        chain.signal.bar_spec.clone(),
        iso(chain.signal.bar_end_ns),
        chain.signal.kind.to_owned(),
        chain.batch.as_ref().map_or_else(String::new, |batch| batch.batch.to_string()),
        chain.batch.as_ref().map_or_else(String::new, |batch| batch.device.clone()),
        held.map_or_else(String::new, holder),
        held.map_or_else(String::new, |held| held.ns.to_string()),
    ]
}
