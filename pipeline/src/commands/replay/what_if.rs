//! `warptape replay what-if`: models a recorded run under another configuration of the scheduler. The model is in
//! `warptape_what_if`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use indicatif::{HumanCount, ProgressBar};
use serde_json::json;
use warptape_eventlog::{EventLog, TopicPartition};
use warptape_replay::{ReplayError, ReplayProgress};
use warptape_scheduler::dqn;
use warptape_what_if::{Changes, FigureRow, Mean, Modelled, OrderOf, Recording, Report, WhatIfError};

use super::chain::{push_line, push_paragraph};
use crate::cli::{ListFormat, WhatIfArgs};
use crate::clock::wall_clock_ns;
use crate::commands::columns::counted;
use crate::commands::csv_rows;
use crate::commands::fit::{Head, Room, cut, table};
use crate::commands::seeds::over_seeds;
use crate::network_file;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::{printable_line, stdout, to_stderr};
use crate::settings::Settings;

/// Greatest width of a value.
const VALUE_MAX: usize = 60;

/// Models and prints.
pub fn execute(args: &WhatIfArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let bar = super::progress_bar();
    let report = answer(args, settings, &bar, &mut |progress| super::show(&bar, progress));
    bar.finish_and_clear();
    let report = report?;
    let mut stdout = stdout();
    match args.output {
        ListFormat::Table => write!(stdout, "{}", text(&report, Room::of_stdout(args.wide)))?,
        ListFormat::Json => {
            serde_json::to_writer(&mut stdout, &report)?;
            writeln!(stdout)?;
        }
        ListFormat::Csv => {
            write!(stdout, "{}", csv_rows::row(CSV_NAMES)?)?;
            for row in &report.figures {
                write!(stdout, "{}", csv_rows::row(csv_row(row))?)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Models the recorded run and the changed one.
pub fn answer(
    args: &WhatIfArgs,
    settings: &Settings,
    bar: &ProgressBar,
    progress: &mut dyn FnMut(ReplayProgress),
) -> anyhow::Result<Report> {
    let OpenLog { log, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let (log, journal) = (&*log, settings.topics.names.journal.as_str());
    let window = args.window()?;
    let recording = Recording::read(log, (journal, args.partition), window, progress)?;
    let changes = changes(args, &recording)?;
    if let Some(to) = &args.to {
        write(&recording, &changes, (log, journal, args.partition), to)?;
    }
    bar.set_message("models");
    bar.set_position(0);
    bar.set_length(2 * args.seeds);
    let none = Changes::default();
    let both = over_seeds(args.seeds, bar, |seed| {
        let recorded = recording.model(&none, seed)?;
        bar.inc(1);
        Ok((recorded, recording.model(&changes, seed)?))
    });
    let both = both.into_iter().collect::<Result<Vec<(Modelled, Modelled)>, WhatIfError>>()?;
    let (recorded, changed): (Vec<Modelled>, Vec<Modelled>) = both.into_iter().unzip();
    Ok(recording.report(&changes, &recorded, &changed)?)
}

/// Writes the modelled run of the first seed to a log.
fn write(
    recording: &Recording,
    changes: &Changes,
    (log, journal, partition): (&dyn EventLog, &str, i32),
    to: &Path,
) -> anyhow::Result<()> {
    let journal = TopicPartition { topic: journal.to_owned(), partition };
    let by = json!({"software": env!("CARGO_PKG_VERSION"), "at_ns": wall_clock_ns()});
    let url = log.url();
    let entries = recording.write(changes, 0, to, &journal, (log, by))?;
    let (entries, to) = (HumanCount(entries), to.display());
    to_stderr(format_args!(
        "the modelled run of the first seed is in {to}, {entries} entries; compare it with: warptape replay diff {url} sqlite:{to}"
    ));
    Ok(())
}

/// Returns the changes to the recorded run. A policy `dqn:FILE` brings its network.
fn changes(args: &WhatIfArgs, recording: &Recording) -> anyhow::Result<Changes> {
    let changes = args.changes();
    let Some(policy) = args.policy.as_deref().filter(|policy| !is_of(policy, recording)) else {
        return Ok(changes);
    };
    let lanes = if args.devices.is_empty() { Some(recording.started().lanes.len()) } else { None };
    match network_file::of_policy(policy, lanes) {
        Some(trained) => {
            let trained = trained?;
            Ok(Changes { policy: Some(dqn::name(&trained.hash)), network: Some(trained), ..changes })
        }
        None => Ok(changes),
    }
}

/// True if a policy names a recorded network by its hash, or can be nothing but a hash.
fn is_of(policy: &str, recording: &Recording) -> bool {
    let is_recorded =
        |prefix: &str| recording.networks().iter().any(|trained| trained.hash.starts_with(prefix));
    network_file::is_only_a_hash(policy) || dqn::prefix_of(policy).is_some_and(is_recorded)
}

fn text(report: &Report, room: Room) -> String {
    let mut text = String::new();
    let lives = counted(report.lives as u64, "process life", "process lives");
    push_line(
        &mut text,
        &format!(
            "recorded: {lives}, {:.3} s; modelled: {} seeds of each configuration",
            report.window_s, report.seeds
        ),
    );
    let faults = report.faults.iter().cloned();
    let changed: Vec<String> = report
        .changed
        .iter()
        .map(|one| format!("{}: {} instead of {}", one.field, shown(&one.modelled), shown(&one.recorded)))
        .chain(faults)
        .collect();
    match changed.is_empty() {
        true => push_paragraph(&mut text, "changed: nothing, so the result shows only the noise floor"),
        false => {
            push_paragraph(&mut text, "changed:");
            changed.iter().for_each(|line| push_line(&mut text, &format!("  {line}")));
        }
    }
    push_paragraph(
        &mut text,
        "The column `measured` comes from the journal; all others are modelled. The noise floor is the error \
         of the model of the recorded configuration: the quality of the fit within this run, not its \
         repeatability. The variation between parts of the run is shown beside it; no claim is smaller than \
         either.",
    );
    text.push_str(&figures(&report.figures, room));
    push_paragraph(
        &mut text,
        "does each row pass through its group once and in order (outputs depend only on that order):",
    );
    report.order.iter().for_each(|order| push_line(&mut text, &format!("  {}", order_words(order))));
    if !report.notes.is_empty() {
        push_paragraph(&mut text, "notes:");
        report.notes.iter().for_each(|note| push_line(&mut text, &format!("  {note}")));
    }
    text
}

fn shown(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    cut(&printable_line(&text), VALUE_MAX)
}

fn figures(figures: &[FigureRow], room: Room) -> String {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| rounded(value, value));
    let mean = |mean: Option<Mean>| {
        mean.map_or_else(String::new, |Mean { mean, half_95 }| {
            format!("{} ± {}", rounded(mean, mean), rounded(half_95, mean))
        })
    };
    let difference = |difference: Option<Mean>| {
        let sign = difference.map_or("", |difference| if difference.mean > 0.0 { "+" } else { "" });
        format!("{sign}{}", mean(difference))
    };
    let row = |row: &FigureRow| {
        vec![
            row.name.clone(),
            number(row.measured),
            mean(row.recorded),
            mean(row.changed),
            difference(row.difference),
            number(row.noise_floor),
            number(row.varies_by),
            row.claim.words().to_owned(),
        ]
    };
    let heads = [
        Head::text("", 12),
        Head::number("measured"),
        Head::number("modelled, as recorded"),
        Head::number("modelled, changed"),
        Head::number("difference (95 %)"),
        Head::number("noise floor"),
        Head::number("varies by"),
        Head::sentence("effect of the change", 20),
    ];
    let first =
        ["", "difference (95 %)", "effect of the change", "measured", "noise floor", "modelled, changed"];
    table(&heads, &first, &figures.iter().map(row).collect::<Vec<_>>(), room)
}

const CSV_NAMES: [&str; 11] = [
    "figure",
    "measured",
    "recorded",
    "recorded_half_95",
    "changed",
    "changed_half_95",
    "difference",
    "difference_half_95",
    "noise_floor",
    "varies_by",
    "effect",
];

/// Returns the exact cells of a figure; an unknown value is empty.
fn csv_row(of: &FigureRow) -> [String; 11] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let mean = |mean: Option<Mean>| [number(mean.map(|of| of.mean)), number(mean.map(|of| of.half_95))];
    let ([recorded, recorded_half], [changed, changed_half]) = (mean(of.recorded), mean(of.changed));
    let [difference, difference_half] = mean(of.difference);
    [
        of.name.clone(),
        number(of.measured),
        recorded,
        recorded_half,
        changed,
        changed_half,
        difference,
        difference_half,
        number(of.noise_floor),
        number(of.varies_by),
        of.claim.words().to_owned(),
    ]
}

/// Rounds a number to the decimals that give `of` about four digits.
fn rounded(value: f64, of: f64) -> String {
    let digits = match of.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

fn order_words(of: &OrderOf) -> String {
    let count = |rows: i64| HumanCount(rows.unsigned_abs());
    let order = &of.order;
    let (arrived, done, left) = (count(order.arrived), count(order.done), count(order.left));
    let account =
        format!("{arrived} rows arrived in {} groups, {done} were done, {left} were left", order.groups);
    match of.is_kept {
        true => format!("{}: yes; {account}", of.run),
        false => format!("{}: NO; {account}; {}", of.run, order.violations.join("; ")),
    }
}
