//! `warptape control`: a command into the log, and what the processes answer out of it.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{self, ExitCode};
use std::time::{Duration, Instant};

use warptape_eventlog::{Consumer, EventLog, Fetched, TopicInfo, TopicPartition};
use warptape_schemas::control::{
    BreakerMode, ChoosePolicy, Control, ControlCommand, ControlOutcome, ControlResult, DrainLane, Rebalance,
    SetBreaker, UndrainLane, WeighLane, WeighTenant,
};
use warptape_schemas::{decode_control_result, encode_control};

use super::publishing::{NewPlaced, Placed};
use crate::cli::{BreakerWord, ControlArgs, ControlFormat, ControlWord, DIVERGED, Interrupt, UsageError};
use crate::clock::wall_clock_ns;
use crate::logging::NOTICE;
use crate::open::{Purpose, open_log};
use crate::printable::{printable_line, stdout, to_stderr};
use crate::settings::Settings;
use crate::transaction::TransactionWriter;

/// How long a poll waits before Ctrl-C is looked at again.
const POLL: Duration = Duration::from_millis(100);
const POLL_RECORDS_MAX: usize = 256;
const POLL_BYTES_MAX: usize = 4 << 20;

/// Tells processes, waits for their answers and prints them.
pub fn execute(args: &ControlArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let names = &settings.topics.names;
    // A log that does not exist is not made for this.
    let told = processes(&*open_log(settings, Purpose::Show)?.log, args, settings)?;
    let log = open_log(settings, Purpose::Control)?.log;
    if !log.has_member(&settings.engine.group)? {
        let url = log.url();
        to_stderr(format_args!(
            "no pipeline runs on {url}: `warptape run --log {url}` starts one; waiting for it"
        ));
    }
    let now_ns = wall_clock_ns();
    let timeout = Duration::from_secs(args.timeout_s);
    let control = Control {
        id: format!("control-{}-{now_ns}", process::id()),
        at_ns: now_ns,
        by: sender(),
        deadline_ns: now_ns.saturating_add(i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX)),
        command: command(&args.command),
    };
    let place = |topic: &str, partition: i32| TopicPartition { topic: topic.to_owned(), partition };
    // Where the answers end now: those that are waited for come behind.
    let answers: Vec<_> = told.iter().map(|&process| place(&names.control_results, process)).collect();
    let mut reader = reader_at_end(&*log, &answers)?;
    let interrupt = Interrupt::install()?;
    let mut value = Vec::new();
    encode_control(&control, &mut value);
    let records = told.iter().map(|&process| NewPlaced {
        place: place(&names.control, process),
        key: control.id.clone().into_bytes(),
        value: value.clone(),
    });
    let transaction = Placed::new(&*log, records.collect())?;
    let stopping = interrupt.clone();
    let stopping_since = Box::new(move || stopping.since());
    TransactionWriter::new(log.clone(), control.id.clone(), stopping_since)?.write_surely(&transaction)?;

    let mut waiting: BTreeSet<i32> = told.into_iter().collect();
    let mut all_done = true;
    let until = Instant::now() + timeout;
    while !waiting.is_empty() && !interrupt.is_set() && Instant::now() < until {
        let Fetched::Records { records, .. } = reader.poll(POLL, POLL_RECORDS_MAX, POLL_BYTES_MAX)? else {
            continue;
        };
        for record in records {
            // What others wrote and nobody can read is no answer.
            let Ok(result) = decode_control_result(&record.value) else { continue };
            if result.id == control.id && waiting.remove(&result.ordinal) {
                all_done &= result.outcome == ControlOutcome::Done;
                print(&result, args.output)?;
            }
        }
    }
    for process in &waiting {
        tracing::error!(
            target: NOTICE,
            "process {process} has not answered {} within {} s: it seems not to run; it refuses what it reads later",
            control.id, args.timeout_s
        );
    }
    Ok(if all_done && waiting.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIVERGED) })
}

/// The processes that are told, by their numbers.
fn processes(log: &dyn EventLog, args: &ControlArgs, settings: &Settings) -> anyhow::Result<Vec<i32>> {
    let names = &settings.topics.names;
    let topics = log.topics()?;
    let url = log.url();
    let found = |name: &str| -> Result<&TopicInfo, UsageError> {
        topics.iter().find(|topic| topic.spec.name == name).ok_or_else(|| {
            UsageError(format!(
                "{url} has no topic {name}: make what is missing with `warptape topics create --log {url}`"
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
        return Err(UsageError(format!("no process has a journal in {url}: nobody can be told")).into());
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
        ControlWord::Breaker { lane, to } => {
            let to = match to {
                BreakerWord::Open => BreakerMode::Open,
                BreakerWord::Close => BreakerMode::Closed,
                BreakerWord::Auto => BreakerMode::Auto,
            };
            ControlCommand::SetBreaker(SetBreaker { lane: *lane, to })
        }
        ControlWord::Policy { of, name } => {
            ControlCommand::ChoosePolicy(ChoosePolicy { of: of.clone(), name: name.clone() })
        }
    }
}

/// The name of the user, as far as the system says it.
fn sender() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let name = named.unwrap_or_else(|| "unknown".to_owned());
    warptape_engine::cut(name, warptape_schemas::control::TEXT_BYTES_MAX)
}

fn reader_at_end(log: &dyn EventLog, places: &[TopicPartition]) -> anyhow::Result<Box<dyn Consumer>> {
    let mut reader = log.reader(places)?;
    for place in places {
        let end = reader.offsets(place)?.next;
        reader.seek(place, end)?;
    }
    Ok(reader)
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
