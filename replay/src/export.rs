//! One portable file of a log, or of a window of it: the journal with all that verifying and explaining it takes, and the ticks with what
//! came of them where that is asked for. Records keep their offsets, times, keys and headers.
//!
//! ```text
//!  window ──► Plan: which offsets of which topic, what the group has committed as of the window's end
//!                │
//!  log ──────────┴──► PortableFile ──► FILE
//! ```
//!
//! A window begins at the last start or checkpoint of each journal before it, and ends behind a transaction. Outputs begin with the
//! first that the window's own ticks caused, and the one before it, which tells who reads the file that none is missing in between.
//! The state before these ticks is a snapshot, made of all ticks before.
//! It must not know settings or the command line.

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

pub use self::window::{Bound, Window};

use self::copying::Copying;
use self::plan::Plan;
use self::window::partition_point;
use crate::{OutputOptions, ReplayError};

/// The topic of an exported file that says what it is and has the schemas of its records. Its records are JSON.
pub const ABOUT_TOPIC: &str = "warptape.export";
/// Key of the record that says what the file is.
pub const ABOUT_KEY: &str = "about";
/// Before the fingerprint in the key of a schema, as 16 hex digits.
pub const SCHEMA_KEY: &str = "schema/";
/// Before the id in the key of a schema of ticks that are in the frame of a schema registry.
pub const SCHEMA_ID_KEY: &str = "schema-id/";

/// What to export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// Topic of the journal.
    pub journal: String,
    /// The topics that outputs are compared over, and the group of the run.
    pub sources: OutputOptions,
    /// Topics that are copied whole where the log has them.
    pub others: Vec<String>,
    /// Which part of the log.
    pub window: Window,
    /// Copy ticks, signals, late ticks, dead letters and snapshots as well.
    pub with_ticks: bool,
    /// What else the file is to say of itself, under the key `by`: who made it, under which settings.
    pub by: Value,
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Exported {
    /// Records of each topic, by name.
    pub topics: Vec<ExportedTopic>,
    /// What is to be known of the file besides.
    pub notes: Vec<String>,
}

/// What was copied of a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExportedTopic {
    /// Its name.
    pub name: String,
    /// Records.
    pub records: u64,
    /// Bytes of their values.
    pub bytes: u64,
}

impl Exported {
    /// Records in all.
    pub fn records(&self) -> u64 {
        self.topics.iter().map(|topic| topic.records).sum()
    }
}

/// How far an export is, in offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportProgress {
    /// Offsets copied.
    pub done: u64,
    /// Offsets to copy.
    pub total: u64,
}

/// Writes the file, which must not exist or be empty. The log may be written meanwhile: what is copied is of one moment between two
/// transactions. Memory is bounded by a few fetches, one state of one partition, the places of up to 65,536 others, and some 60 bytes for each transaction of a window
/// that ends before the log does, of which no more than 65,536 of a partition are told apart.
///
/// # Errors
/// If the log cannot be read, which names the place, or the file cannot be written. Then there is no file.
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

/// Which offsets of which topics a window of a log is.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    topics: Vec<(String, Vec<OffsetRange>)>,
    /// What is to be known of the window besides.
    pub notes: Vec<String>,
}

impl Planned {
    /// The offsets of a topic by partition; none where the log has no such topic.
    pub fn of(&self, topic: &str) -> &[OffsetRange] {
        self.topics.iter().find(|(name, _)| name == topic).map_or(&[], |(_, ranges)| ranges)
    }
}

/// Says what [`export`] would copy.
///
/// # Errors
/// If the log cannot be read, or has nothing to be exported.
pub fn planned(log: &dyn EventLog, options: &ExportOptions) -> Result<Planned, ReplayError> {
    let plan = Plan::make(log, options)?;
    let topics = plan.topics.into_iter().map(|topic| (topic.spec.name, topic.copied)).collect();
    Ok(Planned { topics, notes: plan.notes })
}

/// What the file says of itself.
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

/// Writes what the file says of itself, and the schemas that its records were written with.
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
