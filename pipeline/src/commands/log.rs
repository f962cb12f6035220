//! `warptape log`: checks, recovers and copies an embedded log.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use warptape_eventlog::SqliteLog;
use warptape_eventlog::sqlite::LogProgress;

use crate::cli::{BackupArgs, DIVERGED, LogArgs, LogCommand};
use crate::printable::stdout;
use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Runs the command that was asked for.
pub fn execute(args: &LogArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let url = &settings.log.url;
    let path = url.strip_prefix("sqlite:").ok_or_else(|| {
        UsageError(format!("{url} is not an embedded log; check and copy a Kafka cluster with its own tools"))
    })?;
    match &args.command {
        LogCommand::Check => check(path.as_ref()),
        LogCommand::Recover => recover(path.as_ref(), url),
        LogCommand::Backup(args) => backup(path.as_ref(), args),
    }
}

/// Offsets between two updates of the progress bar.
const LOOK_OFFSETS: u64 = 4_096;

/// Progress bar of a command that reads all of a log.
struct Bar {
    bar: ProgressBar,
    shown: u64,
}

impl Bar {
    fn new(what: &str) -> Bar {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {eta}");
        let bar = ProgressBar::new(0).with_style(style.expect("the template is valid"));
        bar.set_message(what.to_owned());
        Bar { bar, shown: 0 }
    }

    fn show(&mut self, progress: LogProgress) {
        if progress.done < self.shown + LOOK_OFFSETS && progress.done >= self.shown && self.shown > 0 {
            return;
        }
        self.shown = progress.done;
        self.bar.set_length(progress.total);
        self.bar.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn check(path: &Path) -> anyhow::Result<ExitCode> {
    let mut bar = Bar::new("checking");
    let log = SqliteLog::open_existing(path)?;
    let checked = log.check_all(&mut |progress| bar.show(progress))?;
    drop(bar);
    let mut out = stdout();
    for given_up in &checked.given_up {
        writeln!(
            out,
            "given up   {given_up}: retention removed them, an earlier recovery found them damaged or lost, or the \
             source of an export lacked them"
        )?;
    }
    for found in &checked.damage {
        writeln!(out, "damaged    {found}")?;
    }
    writeln!(
        out,
        "{} records in {} partitions, {}: {}",
        HumanCount(checked.records),
        HumanCount(checked.partitions),
        HumanBytes(checked.bytes),
        if checked.damage.is_empty() {
            "whole"
        } else {
            "damaged; build a usable log from its intact contents with `warptape log recover`"
        },
    )?;
    Ok(if checked.damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIVERGED) })
}

fn recover(path: &Path, url: &str) -> anyhow::Result<ExitCode> {
    let mut bar = Bar::new("recovering");
    let recovered = SqliteLog::recover(path, &mut |progress| bar.show(progress))?;
    drop(bar);
    let mut out = stdout();
    for loss in &recovered.losses {
        writeln!(out, "{loss}")?;
    }
    match &recovered.kept {
        None => writeln!(out, "nothing in {url} is damaged or lost; the file is unchanged")?,
        Some(kept) => {
            if recovered.losses.is_empty() {
                writeln!(out, "no known losses")?;
            }
            writeln!(
                out,
                "{url} now holds all intact contents; the damaged file is kept as {}",
                kept.display()
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn backup(path: &Path, args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let mut bar = Bar::new("copying");
    let log = SqliteLog::open_existing(path)?;
    log.backup(&args.file, &mut |progress| bar.show(progress))?;
    drop(bar);
    let bytes = std::fs::metadata(&args.file)?.len();
    writeln!(stdout(), "copied to {}, {}", args.file.display(), HumanBytes(bytes))?;
    Ok(ExitCode::SUCCESS)
}
