//! `warptape replay`: compares a recorded run with its replay, and explains its decisions.

mod batch;
mod chain;
mod debug;
mod diff;
mod export;
mod follow;
mod input_table;
mod report;
mod request;
mod slowest;
mod timeline;
#[cfg(feature = "lab")]
mod what_if;
pub(super) mod why;
mod why_not;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use warptape_replay::{Phase, ReplayError, ReplayProgress, Report, VerifyOptions, verify};
use warptape_schemas::SchemaSource;

use super::journal as anchors;
use crate::cli::{DIVERGED, ReplayArgs, ReplayCommand, VerifyArgs, VerifyFormat};
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;
use crate::terminal::Terminal;
use crate::usage_error::UsageError;

/// Runs the requested analysis.
pub fn execute(args: &ReplayArgs, settings: &Settings, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    match &args.command {
        ReplayCommand::Verify(args) => execute_verify(args, settings),
        ReplayCommand::Why(args) => why::execute(args, settings),
        ReplayCommand::Slowest(args) => slowest::execute(args, settings),
        ReplayCommand::WhyNot(args) => why_not::execute(args, settings),
        ReplayCommand::Diff(args) => diff::execute(args, settings),
        ReplayCommand::Debug(args) => debug::execute(args, settings, terminal),
        ReplayCommand::Export(args) => export::execute(args, settings),
        ReplayCommand::Timeline(args) => timeline::execute(args, settings),
        ReplayCommand::Report(args) => report::execute(args, settings),
        #[cfg(feature = "lab")]
        ReplayCommand::WhatIf(args) => what_if::execute(args, settings),
        #[cfg(not(feature = "lab"))]
        ReplayCommand::WhatIf(_) => Err(UsageError::not_built("replay what-if", "lab").into()),
    }
}

fn execute_verify(args: &VerifyArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    if args.follow {
        return follow::execute(args, settings);
    }
    let bar = progress_bar();
    let report = verified(args, settings, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    let report = report?;
    print(&report, args.output)?;
    Ok(if report.is_identical() { ExitCode::SUCCESS } else { ExitCode::from(DIVERGED) })
}

fn verified(
    args: &VerifyArgs,
    settings: &Settings,
    progress: &mut dyn FnMut(ReplayProgress),
) -> anyhow::Result<Report> {
    let OpenLog { log, schemas, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let mut options = options(args, settings, schemas);
    (options.public_keys, options.anchored) = anchors::given(args, settings)?;
    Ok(verify(&*log, &options, progress)?)
}

/// Returns the answer of `verify`, `slowest` or `what-if` as JSON, for callers without a terminal. The answer of `why`
/// has the format of its arguments.
pub fn answer(
    args: &ReplayArgs,
    settings: &Settings,
    progress: &mut dyn FnMut(ReplayProgress),
) -> anyhow::Result<String> {
    match &args.command {
        ReplayCommand::Verify(args) if !args.follow => {
            Ok(serde_json::to_string(&verified(args, settings, progress)?)?)
        }
        ReplayCommand::Why(args) => why::answer(args, settings, progress),
        ReplayCommand::Slowest(args) => {
            Ok(serde_json::to_string(&slowest::answer(args, settings, progress)?)?)
        }
        #[cfg(feature = "lab")]
        ReplayCommand::WhatIf(args) => {
            let report = what_if::answer(args, settings, &ProgressBar::hidden(), progress)?;
            Ok(serde_json::to_string(&report)?)
        }
        _ => {
            Err(UsageError("only verify, why, slowest and what-if have answers as objects".to_owned()).into())
        }
    }
}

fn options(args: &VerifyArgs, settings: &Settings, schemas: Option<Arc<dyn SchemaSource>>) -> VerifyOptions {
    let mut options = sources(settings, schemas);
    options.outputs = args.outputs;
    if let Some(group) = &args.group {
        options.sources.group.clone_from(group);
    }
    options
}

/// Returns the options that name the journal and the other topics of the settings.
pub(super) fn sources(settings: &Settings, schemas: Option<Arc<dyn SchemaSource>>) -> VerifyOptions {
    let mut options = VerifyOptions::new(&settings.topics.names, &settings.engine.group);
    options.sources.schemas = schemas;
    options
}

fn print(report: &Report, format: VerifyFormat) -> io::Result<()> {
    let mut stdout = stdout();
    match format {
        VerifyFormat::Text => writeln!(stdout, "{report}"),
        VerifyFormat::Json => {
            serde_json::to_writer(&mut stdout, report)?;
            writeln!(stdout)
        }
    }
}

/// Returns a bar on standard error; a hidden one if standard error is not a terminal.
fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    ProgressBar::new(0).with_style(style())
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg:8} {bar:40} {human_pos}/{human_len} records  {eta}")
        .expect("the template is a constant that a test parses")
}

fn show(bar: &ProgressBar, progress: ReplayProgress) {
    let phase = match progress.phase {
        Phase::Journal => "journal",
        Phase::Outputs => "outputs",
        Phase::Risk => "risk",
    };
    bar.set_length(progress.total);
    bar.set_position(progress.done);
    if bar.message() != phase {
        bar.reset_eta();
        bar.set_message(phase);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_can_be_drawn() {
        let bar = ProgressBar::hidden().with_style(style());
        show(&bar, ReplayProgress { phase: Phase::Outputs, done: 3, total: 7 });
        assert_eq!((bar.position(), bar.length(), bar.message().as_str()), (3, Some(7), "outputs"));
    }
}
