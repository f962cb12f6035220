//! Exports a log, or a window of it, to one portable file. The file has everything needed to verify and explain the
//! journal; on request it also has the ticks and their outputs. Records keep their offsets, times, keys and headers.
//!
//! ```text
//!  window ──► Plan: which offsets of which topic, what the group has committed as of the window's end
//!                │
//!  log ──────────┴──► PortableFile ──► FILE
//! ```
//!
//! A window begins at the last start or checkpoint of each journal before it, and ends after a transaction. Outputs
//! begin with the last output before those that the window's own ticks caused, which proves that none is missing after
//! it. The state before these ticks is a snapshot, computed from all earlier ticks. This module does not know settings
//! or the command line.

mod copying;
mod plan;
mod state;
mod window;

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use warptape_eventlog::sqlite::PortableFile;
use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition, TopicSpec};
use warptape_schemas::{SchemaSource, known};

pub use self::window::{Bound, Window, first_signal_from, last_start_before};

use self::copying::Copying;
use self::plan::Plan;
use self::window::partition_point;
use crate::{OutputOptions, ReplayError};

/// Topic with the description of an exported file and the schemas of its records, as JSON.
pub const ABOUT_TOPIC: &str = "warptape.export";
/// Key of the record that describes the file.
pub const ABOUT_KEY: &str = "about";
/// Prefix of the key of a schema, before its fingerprint as 16 hex digits.
pub const SCHEMA_KEY: &str = "schema/";
/// Prefix of the key of a tick schema in a schema registry, before the schema's id.
pub const SCHEMA_ID_KEY: &str = "schema-id/";

/// Options of an export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// Topic of the journal.
    pub journal: String,
    /// The topics needed to compare outputs, and the group of the run.
    pub sources: OutputOptions,
    /// Topics that are copied whole if the log has them.
    pub others: Vec<String>,
    /// The part of the log to export.
    pub window: Window,
    /// True to copy ticks, signals, late ticks, dead letters and snapshots as well.
    pub with_ticks: bool,
    /// Further facts for the file's description, under the key `by`: the author and the settings.
    pub by: Value,
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Exported {
    /// The exported topics, by name.
    pub topics: Vec<ExportedTopic>,
    /// Remarks for users.
    pub notes: Vec<String>,
}

/// The copied part of a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExportedTopic {
    /// Name of the topic.
    pub name: String,
    /// Number of records.
    pub records: u64,
    /// Bytes of the records' values.
    pub bytes: u64,
}

impl Exported {
    /// Returns the total number of records.
    pub fn records(&self) -> u64 {
        self.topics.iter().map(|topic| topic.records).sum()
    }
}

/// Progress of an export, in offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportProgress {
    /// Number of offsets copied.
    pub done: u64,
    /// Number of offsets to copy.
    pub total: u64,
}

/// Writes the file, which must not exist yet or must be empty. The log may be written meanwhile: the copy shows one
/// moment between two transactions.
///
/// Memory is bounded by a few fetches, one state of one partition, and the places of up to 65,536 other states. If the
/// window ends before the log does, each of its transactions takes about 60 bytes; beyond 65,536 transactions of a
/// partition, neighbours are merged.
///
/// # Errors
/// If the log cannot be read, with the place in the error, or the file cannot be written. An incomplete file is
/// removed.
pub fn export(
    log: &dyn EventLog,
    to: &Path,
    options: &ExportOptions,
    progress: &mut dyn FnMut(ExportProgress),
) -> Result<Exported, ReplayError> {
    let mut file = PortableFile::create(to)?;
    let plan = Plan::make(log, options)?;
    let mut copying = Copying::new(log, &mut file, plan.offsets(), progress);
    let mut exported = Exported { notes: plan.notes.clone(), ..Exported::default() };
    for topic in &plan.topics {
        let mut copied = copying.copy_topic(topic, &options.sources.ticks)?;
        if topic.spec.name == options.sources.snapshots {
            copied.records += copying.write_states(&plan.folds, &options.sources)?;
        }
        exported.topics.push(copied);
    }
    let ids = copying.finish();
    for (place, next) in &plan.committed {
        file.commit(&options.sources.group, place, *next)?;
    }
    let about = about(log, options, &plan, &exported);
    write_about(&mut file, &about, &ids, options.sources.schemas.as_deref())?;
    file.finish()?;
    Ok(exported)
}

/// The offsets of a window of a log, by topic.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    topics: Vec<(String, Vec<OffsetRange>)>,
    /// Remarks on the window for users.
    pub notes: Vec<String>,
}

impl Planned {
    /// Returns the offsets of a topic by partition; empty if the log has no such topic.
    pub fn of(&self, topic: &str) -> &[OffsetRange] {
        self.topics.iter().find(|(name, _)| name == topic).map_or(&[], |(_, ranges)| ranges)
    }
}

/// Returns the offsets that [`export`] would copy.
///
/// # Errors
/// If the log cannot be read, or has nothing to export.
pub fn planned(log: &dyn EventLog, options: &ExportOptions) -> Result<Planned, ReplayError> {
    let plan = Plan::make(log, options)?;
    let topics = plan.topics.into_iter().map(|topic| (topic.spec.name, topic.copied)).collect();
    Ok(Planned { topics, notes: plan.notes })
}

/// Returns the description of the file.
fn about(log: &dyn EventLog, options: &ExportOptions, plan: &Plan, exported: &Exported) -> Value {
    let offsets = |topic: &plan::TopicPlan| {
        let ranges = topic.copied.iter().map(|range| json!({"first": range.first, "next": range.next}));
        (topic.spec.name.clone(), ranges.collect::<Value>())
    };
    json!({
        "log": log.url(),
        "window": options.window,
        "with_ticks": options.with_ticks,
        "group": options.sources.group,
        "journal": options.journal,
        "offsets": plan.topics.iter().map(offsets).collect::<serde_json::Map<_, _>>(),
        "notes": exported.notes,
        "by": options.by,
    })
}

/// Writes the description of the file, and the schemas of its records.
fn write_about(
    file: &mut PortableFile,
    about: &Value,
    ids: &[u32],
    schemas: Option<&dyn SchemaSource>,
) -> Result<(), ReplayError> {
    let spec = TopicSpec { name: ABOUT_TOPIC.to_owned(), partitions: 1, ..TopicSpec::default() };
    file.add_topic(&spec)?;
    let own = known::CURRENT.iter().chain(&known::OLD);
    let own = own.map(|schema| (format!("{SCHEMA_KEY}{:016x}", schema.fingerprint), schema.text.to_owned()));
    let text_of = |id: &u32| Some((format!("{SCHEMA_ID_KEY}{id}"), schemas?.schema(*id)?.to_string()));
    let all = std::iter::once((ABOUT_KEY.to_owned(), about.to_string())).chain(own);
    let records: Vec<Record> = (0..)
        .zip(all.chain(ids.iter().filter_map(text_of)))
        .map(|(offset, (key, text))| Record {
            offset,
            key: Some(key.into_bytes()),
            headers: Vec::new(),
            timestamp_ns: 0,
            value: text.into_bytes(),
        })
        .collect();
    Ok(file.append(&TopicPartition { topic: spec.name, partition: 0 }, &records)?)
}
