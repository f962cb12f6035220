//! `warptape replay export`: writes a log, or a window of it, to one file or to tables.

#[cfg(feature = "tables")]
mod follow;
#[cfg(feature = "tables")]
mod tables;

use std::io::Write;
use std::process::ExitCode;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use serde_json::json;
use warptape_replay::{ExportOptions, ExportProgress, Exported, ReplayError, Window, export};

use super::sources;
use crate::cli::{BACKWARDS, ExportArgs, ExportFormat, VerifyFormat};
use crate::clock::wall_clock_ns;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Message for options of tables without a format of tables.
const NO_TABLES: &str = "--follow and --tables are for tables: add --format parquet or --format arrow";

/// Writes the file or the tables.
pub fn execute(args: &ExportArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let window = Window { since: args.since, until: args.until, partition: args.partition };
    if window.is_backwards() {
        return Err(UsageError(BACKWARDS.to_owned()).into());
    }
    if args.format == ExportFormat::Log && (args.follow || !args.tables.is_empty()) {
        return Err(UsageError(NO_TABLES.to_owned()).into());
    }
    #[cfg(not(feature = "tables"))]
    match args.format {
        ExportFormat::Log => {}
        ExportFormat::Parquet => return Err(UsageError::not_built("--format parquet", "tables").into()),
        ExportFormat::Arrow => return Err(UsageError::not_built("--format arrow", "tables").into()),
    }
    let OpenLog { log, schemas, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let topics = &settings.topics.names;
    let others = [&topics.lifecycle, &topics.feeds].map(String::clone);
    let options = ExportOptions {
        journal: topics.journal.clone(),
        sources: sources(settings, schemas).sources,
        others: others.into(),
        window,
        with_ticks: args.with_ticks,
        by: json!({"software": env!("CARGO_PKG_VERSION"), "at_ns": wall_clock_ns()}),
    };
    #[cfg(feature = "tables")]
    if let Some(format) = tables::format_of(args.format) {
        tables::execute(args, &*log, &options, format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let bar = progress_bar();
    let exported = export(&*log, &args.to, &options, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    print(&exported?, args)?;
    Ok(ExitCode::SUCCESS)
}

fn print(exported: &Exported, args: &ExportArgs) -> anyhow::Result<()> {
    let mut out = stdout();
    if args.output == VerifyFormat::Json {
        serde_json::to_writer(&mut out, exported)?;
        return Ok(writeln!(out)?);
    }
    for topic in exported.topics.iter().filter(|topic| topic.records > 0) {
        writeln!(out, "{:<18} {:>12} records", topic.name, HumanCount(topic.records).to_string())?;
    }
    let (path, bytes) = (args.to.display(), std::fs::metadata(&args.to)?.len());
    writeln!(out, "exported to {path}: {} records, {}", HumanCount(exported.records()), HumanBytes(bytes))?;
    for note in &exported.notes {
        writeln!(out, "note: {note}")?;
    }
    if !args.with_ticks {
        writeln!(
            out,
            "note: the export has no ticks and no signals; `verify --outputs`, `slowest`, `why` of a signal, `diff` of signals and the symbols of a batch need an export with --with-ticks"
        )?;
    }
    let outputs = if args.with_ticks { " --outputs" } else { "" };
    Ok(writeln!(out, "verify it with: warptape replay verify{outputs} --log sqlite:{path}")?)
}

/// Returns a bar on standard error; a hidden one if standard error is not a terminal.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("exporting {wide_bar} {percent}% {eta}");
    ProgressBar::new(0).with_style(style.expect("the template is valid"))
}

fn show(bar: &ProgressBar, progress: ExportProgress) {
    bar.set_length(progress.total);
    bar.set_position(progress.done);
}
