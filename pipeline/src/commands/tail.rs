//! `warptape tail`: prints the records of a topic, decoded, as they come.
//!
//! A record that cannot be decoded is printed with the reason; the command continues.

mod defaults;
mod filter;
pub mod inputs;
pub(super) mod json_line;
pub(super) mod layouts;
mod lines;
mod names;
mod printer;
pub(super) mod readable;
pub mod reasons;
pub(super) mod rows;
pub(super) mod show;
pub(super) mod view;

use std::collections::BTreeMap;
use std::io::BufWriter;
use std::process::ExitCode;
use std::time::Duration;

use warptape_eventlog::{Consumer, EventLog, Fetched, TopicInfo, TopicPartition};

pub use self::lines::{Lines, Polled};

use self::names::Names;
use self::printer::Printer;
use crate::cli::{Interrupt, TailArgs};
use crate::open::{Purpose, open_log};
use crate::printable::{stdout, to_stderr};
use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Longest poll before Ctrl-C is checked again.
const POLL: Duration = Duration::from_millis(100);
/// Greatest number of records printed between two checks of Ctrl-C.
const RECORDS_MAX: usize = 256;
/// Approximate bytes printed between two checks.
const BYTES_MAX: usize = 4 << 20;
/// Greatest number of topics that a message lists.
const KNOWN_MAX: usize = 50;

/// Prints records until Ctrl-C, or until the end if requested.
pub fn execute(args: &TailArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let log = open_log(settings, Purpose::Show)?.log;
    let topic = find_topic(&*log, &args.topic, &settings.topics.prefix)?;
    let partitions: Vec<TopicPartition> = (0..topic.spec.partitions)
        .map(|partition| TopicPartition { topic: topic.spec.name.clone(), partition })
        .collect();
    let names = Names::of(&topic.spec.name, &settings.topics.names);
    let mut printer = Printer::new(args, &topic.spec.name, &names, BufWriter::new(stdout()))?;
    let mut reader = log.reader(&partitions)?;
    let mut open = seek(&mut *reader, &partitions, args.reads_old_records())?;
    let interrupt = Interrupt::install()?;
    let mut waits = false;
    while !interrupt.is_set() && (!args.exit_at_end || !open.is_empty()) {
        if open.is_empty() && !waits {
            waits = true;
            printer.tell_missing(&log.url());
            to_stderr(format_args!("waiting for new records of {}; Ctrl-C to end", topic.spec.name));
        }
        if let Fetched::Records { source, records } = reader.poll(POLL, RECORDS_MAX, BYTES_MAX)? {
            for record in &records {
                // With `--exit-at-end`, records written after the start are not printed.
                if !args.exit_at_end || open.get(&source).is_some_and(|end| record.offset < *end) {
                    printer.print(source.partition, record)?;
                }
            }
            printer.flush()?;
        }
        drop_finished(&mut *reader, &mut open)?;
    }
    printer.flush()?;
    if !waits && !interrupt.is_set() {
        printer.tell_missing(&log.url());
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds a topic by its name, with or without the configured prefix. Topics without the prefix are never found.
fn find_topic(log: &dyn EventLog, name: &str, prefix: &str) -> anyhow::Result<TopicInfo> {
    let prefixed = format!("{prefix}{name}");
    let full = if name.starts_with(prefix) { name } else { &prefixed };
    for wanted in [prefixed.as_str(), full] {
        if let Some(topic) = log.topic(wanted)? {
            return Ok(topic);
        }
    }
    let known = match log.topic_names()?.as_slice() {
        [] => "no topics yet: publish ticks with `warptape feed` first".to_owned(),
        // A shared cluster may have thousands of topics.
        names => names[..names.len().min(KNOWN_MAX)].join(", "),
    };
    let url = log.url();
    Err(UsageError(format!("{url} has no topic {full:?} (topics.prefix = {prefix:?}); it has {known}"))
        .into())
}

/// Moves the reader to its first record. Returns the end offset of each partition that still has records to print.
fn seek(
    reader: &mut dyn Consumer,
    partitions: &[TopicPartition],
    from_beginning: bool,
) -> anyhow::Result<BTreeMap<TopicPartition, i64>> {
    let mut open = BTreeMap::new();
    for partition in partitions {
        let range = reader.offsets(partition)?;
        reader.seek(partition, if from_beginning { range.first } else { range.next })?;
        if from_beginning && range.first < range.next {
            open.insert(partition.clone(), range.next);
        }
    }
    Ok(open)
}

/// Drops the partitions that are read to their end. The last offset may have no record, so positions are compared.
fn drop_finished(reader: &mut dyn Consumer, open: &mut BTreeMap<TopicPartition, i64>) -> anyhow::Result<()> {
    let mut finished = Vec::new();
    for (partition, end) in &*open {
        if reader.position(partition)? >= *end {
            finished.push(partition.clone());
        }
    }
    for partition in finished {
        open.remove(&partition);
    }
    Ok(())
}
