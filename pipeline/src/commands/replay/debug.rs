//! `warptape replay debug`: steps through the inputs of a journal, in the terminal or, with a format, for scripts.

mod app;
mod input_words;
mod matches;
mod screen;
mod session;
#[cfg(test)]
mod tests;
mod view;

use std::io::{IsTerminal, stderr, stdin};
use std::process::ExitCode;

use warptape_replay::ReplayError;
use warptape_replay::debugger::Stepper;

use crate::cli::{DebugArgs, UsageError};
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::is_terminal;
use crate::settings::Settings;

/// Steps, or prints what was asked for.
pub fn execute(args: &DebugArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    if args.output.is_none() && !(stdin().is_terminal() && is_terminal()) {
        return Err(UsageError(
            "replay debug is used in a terminal, and standard input or output is none here: give `-o table` or `-o json` to print \
             entries, of which --break says which and --count how many"
                .to_owned(),
        )
        .into());
    }
    let OpenLog { log, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let journal = &settings.topics.names.journal;
    let mut stepper = Stepper::open(&*log, journal, args.partition)?;
    match args.output {
        Some(format) => matches::print(&mut stepper, args, format)?,
        None => session::run(&mut stepper, args, &format!("{journal}/{}", args.partition))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Says on standard error what the terminal is not there for any more.
fn note(words: &str) {
    if stderr().is_terminal() {
        crate::printable::to_stderr(format_args!("{words}"));
    }
}
