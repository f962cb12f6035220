//! `warptape control`: sends a command through the log, and prints the processes' answers.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use warptape_eventlog::{EventLog, TopicInfo};
use warptape_scheduler::current_task_policy;
use warptape_schemas::control::{
    BreakerMode, ChoosePolicy, ControlCommand, ControlOutcome, ControlResult, DrainLane, Rebalance,
    SetBreaker, SetWatermark, UndrainLane, WeighLane, WeighTenant,
};

use crate::cli::{BreakerWord, ControlArgs, ControlFormat, ControlWord, DIVERGED, Interrupt};
use crate::logging::NOTICE;
use crate::open::{Purpose, open_log};
use crate::order::Order;
use crate::printable::{printable_line, stdout, to_stderr};
use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Sends the command, waits for answers and prints them.
pub fn execute(args: &ControlArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let names = &settings.topics.names;
    // The command creates no log.
    let told = processes(&*open_log(settings, Purpose::Show)?.log, args, settings)?;
    let log = open_log(settings, Purpose::Control)?.log;
    if !log.has_member(&settings.engine.group)? {
        let url = log.url();
        to_stderr(format_args!(
            "no pipeline runs on {url}; waiting for one: start it with `warptape run --log {url}`"
        ));
    }
    let interrupt = Interrupt::install()?;
    let stopping = interrupt.clone();
    let timeout = Duration::from_secs(args.timeout_s);
    let order = Order::new(command(&args.command), sender(), timeout);
    let mut all_done = true;
    let waiting = order.give(&log, names, &told, Arc::new(move || stopping.since()), |result| {
        all_done &= result.outcome == ControlOutcome::Done;
        print(&result, args.output)
    })?;
    for process in &waiting {
        tracing::error!(
            target: NOTICE,
            "process {process} has not answered {} within {} s and seems not to run; it refuses the command \
             if it reads it later",
            order.id(), args.timeout_s
        );
    }
    Ok(if all_done && waiting.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIVERGED) })
}

/// Returns the ordinals of the processes that the command is for.
fn processes(log: &dyn EventLog, args: &ControlArgs, settings: &Settings) -> anyhow::Result<Vec<i32>> {
    let names = &settings.topics.names;
    let topics = log.topics_named(&[&names.journal, &names.control, &names.control_results])?;
    let url = log.url();
    let found = |name: &str| -> Result<&TopicInfo, UsageError> {
        topics.iter().find(|topic| topic.spec.name == name).ok_or_else(|| {
            UsageError(format!(
                "{url} has no topic {name}: create missing topics with `warptape topics create --log {url}`"
            ))
        })
    };
    let journal = found(&names.journal)?;
    let (commands, answers) = (found(&names.control)?, found(&names.control_results)?);
    let partitions = commands.spec.partitions.min(answers.spec.partitions);
    let has_run = |process: &i32| journal.offsets.get(*process as usize).is_some_and(|range| range.next > 0);
    let told: Vec<i32> = match (args.all, args.process) {
        (true, _) => (0..partitions).filter(has_run).collect(),
        (false, process) => vec![process.unwrap_or(settings.engine.ordinal)],
    };
    if told.is_empty() {
        return Err(UsageError(format!(
            "no process has written a journal in {url}, so no process can be commanded: start one with \
             `warptape run`"
        ))
        .into());
    }
    if let Some(process) = told.iter().find(|process| !(0..partitions).contains(*process)) {
        return Err(UsageError(format!(
            "there is no process {process}: {} has {partitions} partitions, one for each process of a group",
            names.control
        ))
        .into());
    }
    Ok(told)
}

fn command(word: &ControlWord) -> ControlCommand {
    match word {
        ControlWord::Drain { lane } => ControlCommand::DrainLane(DrainLane { lane: *lane }),
        ControlWord::Undrain { lane } => ControlCommand::UndrainLane(UndrainLane { lane: *lane }),
        ControlWord::Weight { lane, weight } => {
            ControlCommand::WeighLane(WeighLane { lane: *lane, weight: *weight })
        }
        ControlWord::Rebalance => ControlCommand::Rebalance(Rebalance {}),
        ControlWord::TenantWeight { tenant, weight } => {
            ControlCommand::WeighTenant(WeighTenant { tenant: tenant.clone(), weight: *weight })
        }
        ControlWord::Watermark { partition, to } => {
            ControlCommand::SetWatermark(SetWatermark { partition: *partition, event_time_max_ns: to.0 })
        }
        ControlWord::Breaker { lane, to } => {
            let to = match to {
                BreakerWord::Open => BreakerMode::Open,
                BreakerWord::Close => BreakerMode::Closed,
                BreakerWord::Auto => BreakerMode::Auto,
            };
            ControlCommand::SetBreaker(SetBreaker { lane: *lane, to })
        }
        ControlWord::Policy { of, name } => {
            // Journals name a task policy with its version, so the command does too.
            let name = match of.as_str() {
                "tasks" => current_task_policy(name),
                _ => name.clone(),
            };
            ControlCommand::ChoosePolicy(ChoosePolicy { of: of.clone(), name })
        }
    }
}

/// Returns the user's name, as far as the system knows it.
fn sender() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let name = named.unwrap_or_else(|| "unknown".to_owned());
    warptape_engine::cut(name, warptape_schemas::control::TEXT_BYTES_MAX)
}

fn print(result: &ControlResult, format: ControlFormat) -> anyhow::Result<()> {
    let mut out = stdout();
    match format {
        ControlFormat::Json => {
            serde_json::to_writer(&mut out, result)?;
            out.write_all(b"\n")?;
        }
        ControlFormat::Table => {
            let word = match result.outcome {
                ControlOutcome::Done => "done",
                ControlOutcome::Refused => "refused",
            };
            let ControlResult { ordinal, node, detail, .. } = result;
            writeln!(
                out,
                "process {ordinal} ({}): {word}: {}",
                printable_line(node),
                printable_line(detail)
            )?;
        }
    }
    out.flush()?;
    Ok(())
}
