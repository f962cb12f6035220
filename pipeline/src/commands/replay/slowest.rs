//! `warptape replay slowest`: lists the signals with the greatest latency, each with the main cause.

use std::io::Write as _;
use std::process::ExitCode;

use indicatif::HumanCount;
use warptape_replay::chain::{Slow, Slowest, SlowestOptions, slowest};
use warptape_replay::{ReplayError, ReplayProgress};

use super::chain::{holder, lane_meanwhile, parts};
use crate::cli::{ChainFormat, SlowestArgs};
use crate::commands::columns::{Align, aligned, counted, utc};
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// Lists the slowest signals.
pub fn execute(args: &SlowestArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let bar = super::progress_bar();
    let found = answer(args, settings, &mut |progress| super::show(&bar, progress));
    bar.finish_and_clear();
    let found = found?;
    let mut stdout = stdout();
    match args.output {
        ChainFormat::Table => write!(stdout, "{}", table(&found))?,
        ChainFormat::Json => {
            serde_json::to_writer(&mut stdout, &found)?;
            writeln!(stdout)?;
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

fn table(found: &Slowest) -> String {
    let header = [
        ("latency_ms", Align::Right),
        ("committed", Align::Left),
        ("signal", Align::Left),
        ("symbol", Align::Left),
        ("kind", Align::Left),
        ("batch", Align::Right),
        ("lane", Align::Left),
        ("longest wait for", Align::Left),
        ("for_ms", Align::Right),
        ("parts of that wait", Align::Left),
    ];
    let rows: Vec<Vec<String>> = found.signals.iter().map(row).collect();
    let mut text = match rows.is_empty() {
        true => "the window has no signal with a known latency\n".to_owned(),
        false => aligned(&header, &rows),
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
