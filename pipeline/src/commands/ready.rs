//! `warptape ready`: asks whether a running pipeline is ready, for health checks of containers and for scripts.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use crate::cli::{DIVERGED, ReadyArgs};
use crate::endpoint::url_of;
use crate::http_agent::http_agent;
use crate::printable::{printable_line, stdout};
use crate::settings::EndpointSettings;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Asks the pipeline, and prints the answer.
pub fn execute(args: &ReadyArgs, settings: &EndpointSettings) -> anyhow::Result<ExitCode> {
    let url = args.url.clone().unwrap_or_else(|| format!("{}/readyz", url_of(settings)));
    let asked = http_agent(ANSWER_MAX, ANSWER_MAX).get(&url).call();
    let mut answer = asked.with_context(|| {
        format!("{url} does not answer: check that `warptape run` listens there (--listen)")
    })?;
    let text = answer
        .body_mut()
        .read_to_string()
        .with_context(|| format!("{url} answered with something other than text"))?;
    let is_ready = answer.status().is_success();
    let mut out = stdout();
    writeln!(out, "{}", printable_line(text.trim_end()))?;
    out.flush()?;
    Ok(if is_ready { ExitCode::SUCCESS } else { ExitCode::from(DIVERGED) })
}
