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

use std::ffi::OsStr;
use std::io::{IsTerminal, stdin};
use std::process::ExitCode;

use crate::cli::{Interrupt, TopArgs};
use crate::endpoint::url_of;
use crate::printable::is_terminal;
use crate::settings::EndpointSettings;
use client::Client;

/// Shows the pipeline until a key or a signal ends it.
pub fn execute(args: &TopArgs, settings: &EndpointSettings) -> anyhow::Result<ExitCode> {
    let url = args.endpoint.clone().unwrap_or_else(|| url_of(settings));
    let client = Client::new(&url, settings.token.clone());
    let interrupt = Interrupt::install()?;
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_dumb = variable("TERM").as_deref() == Some(OsStr::new("dumb"));
    if is_terminal() && stdin().is_terminal() && !is_dumb {
        session::run(&client, &interrupt, variable("NO_COLOR").is_none())?;
    } else {
        plain::run(&client, &interrupt)?;
    }
    Ok(ExitCode::SUCCESS)
}
