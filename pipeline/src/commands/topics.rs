//! `warptape topics`: lists the topics of a log with their offsets; `topics create` creates the missing ones,
//! and `topics schema` describes them.

use std::io::Write;
use std::process::ExitCode;

use anyhow::ensure;
use warptape_eventlog::{EventLog, LogError, TopicInfo};

use super::columns::{Align, aligned};
use crate::cli::{TopicsArgs, TopicsCommand};
use crate::open::{Purpose, open_log};
use crate::printable::{stdout, to_stderr};
use crate::publisher::{MissingTopics, create_missing_topics};
use crate::registry::asyncapi;
use crate::settings::Settings;

/// Lists or creates topics.
pub fn execute(args: &TopicsArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(settings),
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
        writeln!(out, "all topics are there")?;
    }
    for spec in &missing.specs {
        let s = if spec.partitions == 1 { "" } else { "s" };
        writeln!(out, "created {} with {} partition{s}", spec.name, spec.partitions)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Points out an unused log, because its path may be mistyped.
fn say_if_new(log: &dyn EventLog) -> Result<(), LogError> {
    if log.topics()?.is_empty() {
        to_stderr(format_args!("{} is a new log: nothing was in it", log.url()));
    }
    Ok(())
}

/// Ensures that the topics exist: missing ones are created on the embedded log, while on a cluster the operator
/// decides. Returns the number of partitions of the ticks. Only a feed needs the topic of feeds.
pub fn ready_topics(log: &dyn EventLog, settings: &Settings, purpose: Purpose) -> anyhow::Result<i32> {
    if !settings.is_on_kafka() {
        say_if_new(log)?;
        return Ok(create_missing_topics(log, &settings.topics.names, &settings.topic_plan())?);
    }
    let missing = MissingTopics::find(log, &settings.topics.names, &settings.topic_plan())?;
    warn_of_compaction(&missing);
    let mut names: Vec<&str> = missing.specs.iter().map(|spec| spec.name.as_str()).collect();
    // A run needs no topic of feeds.
    names.retain(|name| purpose == Purpose::Feed || *name != settings.topics.names.feeds);
    ensure!(
        names.is_empty(),
        "{}: no topic {}; make what is missing with `warptape topics create --log {}`",
        log.url(),
        names.join(", "),
        log.url(),
    );
    Ok(missing.partitions)
}

/// Warns of compaction on topics of ticks and the journal. It keeps only the newest record of a key, so ticks and
/// entries are lost. Their results can no longer be computed or verified.
fn warn_of_compaction(missing: &MissingTopics) {
    for topic in &missing.compacted {
        tracing::warn!(
            topic,
            "the topic has cleanup.policy=compact: the broker removes each record once a newer one has its key, which loses data; \
             set cleanup.policy=delete"
        );
    }
}

/// Prints a line for each partition of each topic.
fn list(settings: &Settings) -> anyhow::Result<ExitCode> {
    let log = open_log(settings, Purpose::Show)?.bare;
    let text = table(&log.topics()?);
    stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn table(topics: &[TopicInfo]) -> String {
    let mut rows = Vec::new();
    for topic in topics {
        for (partition, range) in topic.offsets.iter().enumerate() {
            rows.push(vec![
                if partition == 0 { topic.spec.name.clone() } else { String::new() },
                partition.to_string(),
                range.first.to_string(),
                range.next.to_string(),
                (range.next - range.first).to_string(),
                if partition == 0 && topic.spec.compacted { "compacted".to_owned() } else { String::new() },
            ]);
        }
    }
    let header = [
        ("TOPIC", Align::Left),
        ("PARTITION", Align::Right),
        ("FIRST", Align::Right),
        ("NEXT", Align::Right),
        ("OFFSETS", Align::Right),
        ("", Align::Left),
    ];
    aligned(&header, &rows)
}
