//! A modelled run as a log of its own. It has the journal that the scheduler would have written, and a record about the
//! file.
//!
//! The log has no transactions, because no decision depends on them. So it has no signals, and no latencies of signals.

use std::path::Path;

use serde_json::{Value, json};
use warptape_eventlog::sqlite::PortableFile;
use warptape_eventlog::{EventLog, LogError, Record, TopicPartition, TopicSpec};
use warptape_replay::{ABOUT_KEY, ABOUT_TOPIC, MODELLED, ReplayError};
use warptape_schemas::JournalWriter;
use warptape_schemas::journal::{Decision, Input};

use crate::changes::Changes;
use crate::error::WhatIfError;
use crate::recording::Recording;

/// Number of entries written at once.
const ENTRIES: usize = 1_024;

/// Callback for each step of a modelled run: its time, its input, its decisions, and the hash of the state before it.
pub(crate) type Told<'a> = &'a mut dyn FnMut(i64, &Input, &[Decision], u64) -> Result<(), WhatIfError>;

impl Recording {
    /// Models the run with these changes and a seed, writes its journal as a log file, and returns the number of
    /// entries. The file must be new or empty. Entries keep the recorded partition. The other topics of the recorded
    /// log exist without records. `by` names the author.
    ///
    /// # Errors
    /// As [`Recording::model`], or if the file cannot be written. The file is then removed.
    pub fn write(
        &self,
        changes: &Changes,
        seed: u64,
        to: &Path,
        journal: &TopicPartition,
        (log, by): (&dyn EventLog, Value),
    ) -> Result<u64, WhatIfError> {
        let (changed, faults) = self.otherwise(changes)?;
        let mut file = Journal::create(to, journal, log)?;
        let modelled = self.model_told(changes, seed, &mut |at_ns, input, decisions, state_hash| {
            file.add(at_ns, input, decisions, state_hash)
        })?;
        let notes: Vec<&String> = self.notes.iter().chain(&modelled.assumed).collect();
        let about = json!({
            "log": log.url(),
            "journal": journal.topic,
            MODELLED: {"seed": seed, "changed": changed, "faults": faults, "notes": notes},
            "by": by,
        });
        file.finish(&about)
    }
}

/// The log file that is being written.
struct Journal {
    file: PortableFile,
    to: TopicPartition,
    writer: JournalWriter,
    entries: Vec<Record>,
    written: u64,
}

impl Journal {
    fn create(path: &Path, to: &TopicPartition, log: &dyn EventLog) -> Result<Self, WhatIfError> {
        let mut file = PortableFile::create(path).map_err(failed)?;
        let topics = log.topics().map_err(failed)?;
        for topic in topics.iter().filter(|topic| topic.spec.name != ABOUT_TOPIC) {
            file.add_topic(&topic.spec).map_err(failed)?;
        }
        let (writer, entries) = (JournalWriter::new(), Vec::new());
        Ok(Self { file, to: to.clone(), writer, entries, written: 0 })
    }

    fn add(
        &mut self,
        at_ns: i64,
        input: &Input,
        decisions: &[Decision],
        state_hash: u64,
    ) -> Result<(), WhatIfError> {
        let mut value = Vec::new();
        let offset = self.writer.append(at_ns, input, decisions, state_hash, &mut value);
        self.entries.push(Record { offset, timestamp_ns: at_ns, key: None, headers: Vec::new(), value });
        if self.entries.len() >= ENTRIES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), WhatIfError> {
        self.written += self.entries.len() as u64;
        self.file.append(&self.to, &std::mem::take(&mut self.entries)).map_err(failed)
    }

    fn finish(mut self, about: &Value) -> Result<u64, WhatIfError> {
        self.flush()?;
        let spec = TopicSpec { name: ABOUT_TOPIC.to_owned(), partitions: 1, ..TopicSpec::default() };
        self.file.add_topic(&spec).map_err(failed)?;
        let key = Some(ABOUT_KEY.as_bytes().to_vec());
        let value = about.to_string().into_bytes();
        let record = Record { offset: 0, timestamp_ns: 0, key, headers: Vec::new(), value };
        let to = TopicPartition { topic: spec.name, partition: 0 };
        self.file.append(&to, &[record]).map_err(failed)?;
        self.file.finish().map_err(failed)?;
        Ok(self.written)
    }
}

fn failed(error: LogError) -> WhatIfError {
    ReplayError::from(error).into()
}
