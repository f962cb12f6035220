//! `warptape replay debug`: steps through the inputs of a journal, in the terminal or, with a format, for scripts.

#[cfg(feature = "debugger")]
mod app;
mod matches;
#[cfg(feature = "debugger")]
mod screen;
#[cfg(feature = "debugger")]
mod session;
#[cfg(all(test, feature = "debugger"))]
mod tests;
#[cfg(feature = "debugger")]
mod view;

use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use warptape_replay::ReplayError;
use warptape_replay::debugger::Stepper;

use crate::cli::DebugArgs;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::is_terminal;
use crate::settings::Settings;
use crate::terminal::Terminal;
use crate::usage_error::UsageError;

/// Steps in the terminal, or prints the requested entries.
pub fn execute(args: &DebugArgs, settings: &Settings, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let OpenLog { log, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let journal = &settings.topics.names.journal;
    let mut stepper = Stepper::open(&*log, journal, args.partition)?;
    // A bad log is reported before a missing terminal, because a terminal would not help.
    if args.output.is_none() && !(stdin().is_terminal() && is_terminal()) {
        return Err(UsageError(
            "replay debug needs a terminal as its standard input and output. Give `-o table` or `-o json` to \
             print entries instead; --break selects them, and --count limits their number"
                .to_owned(),
        )
        .into());
    }
    match args.output {
        Some(format) => matches::print(&mut stepper, args, format)?,
        #[cfg(not(feature = "debugger"))]
        None => {
            let _ = terminal;
            return Err(UsageError::not_built("replay debug in a terminal", "debugger").into());
        }
        #[cfg(feature = "debugger")]
        None => session::run(&mut stepper, args, &format!("{journal}/{}", args.partition), terminal)?,
    }
    Ok(ExitCode::SUCCESS)
}
