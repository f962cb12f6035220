//! `warptape risk`: makes a request, sends it, waits for its result and prints it.

mod bars;
mod exchange;
mod parts;
mod request;
mod row_places;
mod rows;
#[cfg(feature = "manuals")]
mod schema;
mod table;
mod warnings;

use std::io::Write;
use std::process::{self, ExitCode};
use std::time::Duration;

use serde_json::{Map, Value};
use warptape_schemas::risk::{RiskError, RiskOutcome, RiskProblem, RiskResult};

use self::exchange::{Answer, Asked};
use self::request::request_of;
use crate::cli::{
    DIVERGED, INEXACT, Interrupt, RecordedFlags, RiskArgs, RiskCommand, RiskFormat, RiskSubcommand,
};
use crate::clock::wall_clock_ns;
use crate::logging::NOTICE;
use crate::open::{Purpose, open_log};
use crate::printable::{printable_line, stdout, to_stderr};
use crate::settings::Settings;

const NS_PER_S: u64 = 1_000_000_000;

/// Sends a request and prints the answer, or prints the schema of requests.
pub fn execute(args: &RiskArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    match &args.command {
        #[cfg(feature = "manuals")]
        RiskSubcommand::Schema => {
            writeln!(stdout(), "{:#}", schema::request_schema())?;
            Ok(ExitCode::SUCCESS)
        }
        #[cfg(not(feature = "manuals"))]
        RiskSubcommand::Schema => {
            Err(crate::usage_error::UsageError::not_built("risk schema", "manuals").into())
        }
        RiskSubcommand::Ask(command) => send(command, settings),
    }
}

/// Sends the request and prints the answer.
fn send(command: &RiskCommand, settings: &Settings) -> anyhow::Result<ExitCode> {
    let now_ns = wall_clock_ns();
    let name = new_name(now_ns);
    let read_bars = |flags: &RecordedFlags| {
        let log = open_log(settings, Purpose::Show)?.log;
        let bars = bars::recorded(&*log, &settings.topics.names.signals, &flags.symbols, &flags.bars)?;
        Ok(serde_json::to_value(bars)?)
    };
    let (request, rows) = request_of(command, now_ns, &name, &read_bars)?;
    let asking = command.asking();
    let (timeout, waits) = (Duration::from_secs(asking.timeout_s), asking.wait_for_ticks);
    let interrupt = Interrupt::install()?;
    let mut answer = ask(Asked { request: &request, name: &name, timeout, waits }, settings, &interrupt)?;

    let mut stdout = stdout();
    // JSON output keeps the errors as they are in the log.
    if asking.output == RiskFormat::Table {
        rows.name_errors(&mut answer.result);
    }
    let error = match &answer.result.outcome {
        RiskOutcome::Error(error) => Some(error),
        _ => None,
    };
    match (asking.output, error) {
        (RiskFormat::Json, _) => {
            serde_json::to_writer(&mut stdout, &answer.result)?;
            stdout.write_all(b"\n")?;
        }
        (RiskFormat::Table, Some(_)) => {}
        (RiskFormat::Table, None) => {
            let wants_greeks = matches!(command, RiskCommand::Greeks(_) | RiskCommand::Request(_));
            let text = table::of(&request, &answer, wants_greeks, &settings.log.url);
            stdout.write_all(text.as_bytes())?;
        }
    }
    stdout.flush()?;
    let max_age_ns = asking.market_age_s.saturating_mul(NS_PER_S) as i64;
    for warning in warnings::of(&answer.result, wall_clock_ns(), max_age_ns) {
        to_stderr(format_args!("{}", printable_line(&warning)));
    }
    if let Some(error) = error {
        tracing::error!(target: NOTICE, "{}", printable_line(&said(error)));
        return Ok(ExitCode::from(DIVERGED));
    }
    if let (RiskOutcome::Simulation(found), RiskProblem::Simulation(asked)) =
        (&answer.result.outcome, &request.problem)
        && found.standard_error_met == Some(false)
    {
        let wanted = asked.standard_error.unwrap_or_default();
        let reached = match found.standard_error <= wanted {
            // The reached error is small, but may rest on too few samples; a warning says so.
            true => "is not reliable".to_owned(),
            false => format!("is {:e}", found.standard_error),
        };
        to_stderr(format_args!(
            "the standard error {reached} after {} samples, but {wanted:e} was requested: raise paths_max",
            found.paths
        ));
        return Ok(ExitCode::from(INEXACT));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a unique name: it adds the time to the process number, because processes in containers may share a number.
fn new_name(now_ns: i64) -> String {
    format!("risk-{}-{now_ns}", process::id())
}

/// Sends a request in its JSON form, and returns the record of its result. An interrupt cancels it.
pub fn answer(
    request: Map<String, Value>,
    timeout: Duration,
    waits: bool,
    settings: &Settings,
    interrupt: &Interrupt,
) -> anyhow::Result<RiskResult> {
    let name = new_name(wall_clock_ns());
    let request = request::of_object(request, &name)?;
    Ok(ask(Asked { request: &request, name: &name, timeout, waits }, settings, interrupt)?.result)
}

/// Returns the answer to a request. A divided request gets the first part's answer with the sum of all parts. The other
/// parts use the first part's market data.
fn ask(asked: Asked<'_>, settings: &Settings, interrupt: &Interrupt) -> anyhow::Result<Answer> {
    let Asked { request, name, timeout, waits } = asked;
    let parts = parts::of(request.clone())?;
    if let [request] = &parts[..] {
        return Asked { request, name, timeout, waits }.ask(settings, interrupt);
    }
    let mut asks = 0;
    parts::answer(parts, &mut |request| {
        let name = format!("{name}-part-{asks}");
        asks += 1;
        Asked { request, name: &name, timeout, waits }.ask(settings, interrupt)
    })
}

/// Formats `CODE field: message`.
fn said(error: &RiskError) -> String {
    let code = table::code(error.code);
    if error.field.is_empty() {
        format!("{code}: {}", error.message)
    } else {
        format!("{code} {}: {}", error.field, error.message)
    }
}
