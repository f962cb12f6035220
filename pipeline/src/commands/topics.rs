//! `warptape topics`: the topics of a log with their offsets.

use std::io::{self, Write};
use std::process::ExitCode;

use warptape_eventlog::TopicInfo;

use super::columns::{Align, aligned};
use crate::open::{Purpose, open_log};
use crate::settings::Settings;

/// Prints a line for each partition of each topic.
pub fn execute(settings: &Settings) -> anyhow::Result<ExitCode> {
    let log = open_log(settings, Purpose::Show)?.bare;
    let text = table(&log.topics()?);
    io::stdout().lock().write_all(text.as_bytes())?;
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
