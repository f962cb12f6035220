//! `warptape top`: shows a running pipeline in the terminal, with data from its endpoint; without a terminal it prints
//! lines.

mod candles;
mod client;
mod keys;
mod layout;
mod model;
mod palette;
mod panes;
mod plain;
mod screen;
mod session;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

pub(super) use self::client::Client;
pub(super) use self::session::Session;

use crate::cli::{Interrupt, TopArgs};
use crate::endpoint::url_of;
use crate::printable::is_terminal;
use crate::settings::EndpointSettings;
use crate::terminal::Terminal;

/// Shows the pipeline until a key or a signal ends it.
pub fn execute(args: &TopArgs, settings: &EndpointSettings, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let url = args.endpoint.clone().unwrap_or_else(|| url_of(settings));
    let client = Client::new(&url, settings.token.clone());
    let interrupt = Interrupt::install()?;
    if has_screen() {
        session::run(client, &interrupt, terminal, has_colours())?;
    } else {
        plain::run(&client, &interrupt)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// True if there is a terminal to draw on and to take keys from.
pub(super) fn has_screen() -> bool {
    let is_dumb = variable("TERM").as_deref() == Some(OsStr::new("dumb"));
    is_terminal() && stdin().is_terminal() && !is_dumb
}

/// True unless the user turned colours off.
pub(super) fn has_colours() -> bool {
    variable("NO_COLOR").is_none()
}

/// Returns a variable of the environment; `None` if it is not set, or empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
