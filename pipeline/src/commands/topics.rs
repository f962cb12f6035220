//! `warptape topics`: lists the topics of a log with their offsets; `topics create` creates the missing ones,
//! and `topics schema` describes them.

use std::io::Write;
use std::process::ExitCode;

use anyhow::ensure;
use serde::Serialize;
use warptape_eventlog::{EventLog, LogError, TopicInfo};

use super::csv_rows;
use super::fit::{Head, Room, table};
use super::json::{Integers, write_line};
use crate::cli::{ListFormat, TopicsArgs, TopicsCommand};
use crate::open::{Purpose, open_log};
use crate::printable::{stdout, to_stderr};
use crate::publisher::{MissingTopics, create_missing_topics};
use crate::registry::asyncapi;
use crate::settings::Settings;

/// Lists or creates topics.
pub fn execute(args: &TopicsArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(args, settings),
        Some(TopicsCommand::Create) => create(settings),
        Some(TopicsCommand::Schema) => {
            writeln!(stdout(), "{:#}", asyncapi(&settings.topics.names))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Creates the missing topics and names them.
fn create(settings: &Settings) -> anyhow::Result<ExitCode> {
    let log = open_log(settings, Purpose::Run)?.log;
    let missing = MissingTopics::find(&*log, &settings.topics.names, &settings.topic_plan())?;
    log.create_topics(&missing.specs)?;
    warn_of_compaction(&missing);
    let mut out = stdout();
    if missing.specs.is_empty() {
        writeln!(out, "all topics exist")?;
    }
    for spec in &missing.specs {
        let s = if spec.partitions == 1 { "" } else { "s" };
        writeln!(out, "created {} with {} partition{s}", spec.name, spec.partitions)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Mentions that the log is new and empty, because its path may be mistyped.
fn say_if_new(log: &dyn EventLog) -> Result<(), LogError> {
    if log.topics()?.is_empty() {
        to_stderr(format_args!("{} is a new, empty log", log.url()));
    }
    Ok(())
}

/// Ensures that the topics exist: missing ones are created on the embedded log; on a cluster they are an error, because
/// its operator decides. Returns the number of partitions of the ticks. Only a feed needs the topic of feeds.
pub fn ready_topics(log: &dyn EventLog, settings: &Settings, purpose: Purpose) -> anyhow::Result<i32> {
    if !settings.is_on_kafka() {
        say_if_new(log)?;
        return Ok(create_missing_topics(log, &settings.topics.names, &settings.topic_plan())?);
    }
    let missing = MissingTopics::find(log, &settings.topics.names, &settings.topic_plan())?;
    warn_of_compaction(&missing);
    let mut names: Vec<&str> = missing.specs.iter().map(|spec| spec.name.as_str()).collect();
    // Only a feed needs the topic of feeds.
    names.retain(|name| purpose == Purpose::Feed || *name != settings.topics.names.feeds);
    ensure!(
        names.is_empty(),
        "{}: no topic {}; create missing topics with `warptape topics create --log {}`",
        log.url(),
        names.join(", "),
        log.url(),
    );
    Ok(missing.partitions)
}

/// Warns of compaction on the topics of ticks and the journal. Compaction keeps only the newest record of each key, so
/// ticks and entries would be lost. Their results could then no longer be computed or verified.
fn warn_of_compaction(missing: &MissingTopics) {
    for topic in &missing.compacted {
        tracing::warn!(
            topic,
            "the topic has cleanup.policy=compact, so the broker removes records that have a newer one of \
             the same key, and their contents are lost; set cleanup.policy=delete"
        );
    }
}

/// A partition of a topic.
#[derive(Serialize)]
struct Partition<'a> {
    topic: &'a str,
    partition: usize,
    first: i64,
    next: i64,
    offsets: i64,
    compacted: bool,
}

/// Prints a line for each partition of each topic.
fn list(args: &TopicsArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let integers = Integers::of(args.raw, args.output == ListFormat::Json)?;
    let log = open_log(settings, Purpose::Show)?.bare;
    let topics = log.topics()?;
    let partitions: Vec<Partition<'_>> = topics.iter().flat_map(partitions).collect();
    let mut out = stdout();
    match args.output {
        ListFormat::Table => out.write_all(shown(&partitions, Room::of_stdout(args.wide)).as_bytes())?,
        ListFormat::Json => {
            partitions.iter().try_for_each(|partition| write_line(&mut out, partition, integers))?;
        }
        ListFormat::Csv => {
            let names = ["topic", "partition", "first", "next", "offsets", "compacted"].map(str::to_owned);
            let rows = partitions.iter().map(cells);
            for row in std::iter::once(names).chain(rows) {
                out.write_all(csv_rows::row(row)?.as_bytes())?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn partitions(topic: &TopicInfo) -> impl Iterator<Item = Partition<'_>> {
    topic.offsets.iter().enumerate().map(|(partition, range)| Partition {
        topic: &topic.spec.name,
        partition,
        first: range.first,
        next: range.next,
        offsets: range.next - range.first,
        compacted: topic.spec.compacted,
    })
}

fn cells(of: &Partition<'_>) -> [String; 6] {
    let Partition { topic, partition, first, next, offsets, compacted } = of;
    let compacted = compacted.to_string();
    let numbers = [first, next, offsets].map(i64::to_string);
    let [first, next, offsets] = numbers;
    [(*topic).to_owned(), partition.to_string(), first, next, offsets, compacted]
}

/// Formats the table; a topic is named only in its first row.
fn shown(partitions: &[Partition<'_>], room: Room) -> String {
    let row = |of: &Partition<'_>| {
        let mut row = cells(of).to_vec();
        let is_first = of.partition == 0;
        row[5] = if is_first && of.compacted { "compacted".to_owned() } else { String::new() };
        if !is_first {
            row[0].clear();
        }
        row
    };
    let heads = [
        Head::text("TOPIC", 16),
        Head::number("PARTITION"),
        Head::number("FIRST"),
        Head::number("NEXT"),
        Head::number("OFFSETS"),
        Head::fixed(""),
    ];
    table(&heads, &["TOPIC", "PARTITION", "NEXT"], &partitions.iter().map(row).collect::<Vec<_>>(), room)
}
