//! The journal against the scheduler: chain, sequence, state hashes and decisions, entry by entry.

use serde::Serialize;
use serde_json::Value;
use warptape_eventlog::Record;
use warptape_scheduler::Scheduler;
use warptape_schemas::journal::{Input, JournalEntry, Started};
use warptape_schemas::{ChainError, GENESIS_HASH, check_chain, decode_journal_entry};
use warptape_stages::StageConfig;

use crate::admissions::Admissions;
use crate::difference::{Difference, differences, shown};
use crate::{JournalDivergence, ReplayError};

/// Steps the recorded inputs and compares.
pub(crate) struct JournalCheck {
    topic: String,
    partition: i32,
    scheduler: Scheduler,
    previous_hash: String,
    next_sequence: i64,
    /// Version of the process whose entries are compared.
    software: Option<String>,
    /// Entries found identical.
    pub(crate) entries: u64,
    pub(crate) decisions: u64,
    pub(crate) processes: u64,
    pub(crate) configs: StageConfigs,
    /// Of risk requests, where they matter.
    pub(crate) admissions: Option<Admissions>,
}

impl JournalCheck {
    /// At the beginning of a journal.
    pub(crate) fn new(topic: &str, admissions: Option<Admissions>) -> Self {
        Self {
            topic: topic.to_owned(),
            partition: 0,
            scheduler: Scheduler::new(),
            previous_hash: GENESIS_HASH.to_owned(),
            next_sequence: 0,
            software: None,
            entries: 0,
            decisions: 0,
            processes: 0,
            configs: StageConfigs::default(),
            admissions,
        }
    }

    /// Goes on with the beginning of a partition, which is a chain of its own.
    pub(crate) fn begin(&mut self, partition: i32) {
        self.partition = partition;
        self.scheduler = Scheduler::new();
        GENESIS_HASH.clone_into(&mut self.previous_hash);
        self.next_sequence = 0;
        self.software = None;
        if let Some(admissions) = &mut self.admissions {
            admissions.begin();
        }
    }

    /// Compares the next entry; the difference, if there is one.
    pub(crate) fn check(&mut self, record: &Record) -> Option<JournalDivergence> {
        let entry = match decode_journal_entry(&record.value) {
            Ok(entry) => entry,
            Err(error) => {
                let difference = Difference::new("entry", "a journal entry", error.to_string());
                return Some(self.divergence(record.offset, None, vec![difference]));
            }
        };
        if let Input::Started(started) = &entry.input {
            self.software = Some(started.software.clone());
        }
        let hash = self.check_hash(record);
        let mut differences = if entry.sequence == self.next_sequence {
            self.step(&entry)
        } else {
            // Entries are missing or out of order: what the scheduler would say to this one means nothing.
            vec![Difference::new("sequence", self.next_sequence, entry.sequence)]
        };
        differences.extend(hash);
        if !differences.is_empty() {
            return Some(self.divergence(record.offset, Some(&entry), differences));
        }
        self.next_sequence += 1;
        self.entries += 1;
        self.decisions += entry.decisions.len() as u64;
        if let Input::Started(started) = &entry.input {
            self.processes += 1;
            self.configs.add(entry.sequence, started);
        }
        if let Some(admissions) = &mut self.admissions {
            admissions.add(&entry);
        }
        self.previous_hash = entry.hash;
        None
    }

    fn check_hash(&self, record: &Record) -> Option<Difference> {
        match check_chain(&self.previous_hash, &record.value) {
            Ok(()) => None,
            Err(ChainError::Broken { expected, found }) => Some(Difference::new("hash", expected, found)),
            Err(error) => Some(Difference::new("hash", "the hash of this entry", error.to_string())),
        }
    }

    fn step(&mut self, entry: &JournalEntry) -> Vec<Difference> {
        if matches!(entry.input, Input::Started(_)) {
            // A new process begins with a scheduler that knows nothing.
            self.scheduler = Scheduler::new();
        }
        let mut found = Vec::new();
        let state_hash = format!("{:016x}", self.scheduler.state_hash());
        if state_hash != entry.state_hash {
            found.push(Difference::new("state_hash", state_hash, entry.state_hash.clone()));
        }
        let mut decisions = Vec::new();
        match self.scheduler.step(entry.at_ns, &entry.input, &mut decisions) {
            Err(error) => {
                let expected = "an input that the scheduler accepts";
                found.push(Difference::new("input", expected, error.to_string()));
            }
            Ok(()) if decisions != entry.decisions => {
                found.extend(differences("decisions", &to_value(&decisions), &to_value(&entry.decisions)));
            }
            Ok(()) => {}
        }
        found
    }

    fn divergence(
        &self,
        offset: i64,
        entry: Option<&JournalEntry>,
        differences: Vec<Difference>,
    ) -> JournalDivergence {
        JournalDivergence {
            topic: self.topic.clone(),
            partition: self.partition,
            offset,
            sequence: self.next_sequence,
            software: self.software.clone(),
            at_ns: entry.map(|entry| entry.at_ns),
            input: entry.map(|entry| to_value(&entry.input)),
            differences,
        }
    }
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("journal types are structs of numbers and texts")
}

/// The stage configurations that processes ran with, as far as one can tell whether they are all the same.
#[derive(Default)]
pub(crate) struct StageConfigs {
    first: Option<(i64, String)>,
    other: Option<(i64, String)>,
}

impl StageConfigs {
    fn add(&mut self, sequence: i64, started: &Started) {
        let config = &started.stage_config;
        match &self.first {
            None => self.first = Some((sequence, config.clone())),
            Some((_, first)) if self.other.is_none() && !is_same(first, config) => {
                self.other = Some((sequence, config.clone()));
            }
            Some(_) => {}
        }
    }

    /// The configuration of all processes of a journal that was found identical.
    ///
    /// # Panics
    /// If the journal had no entries.
    pub(crate) fn only(&self) -> Result<StageConfig, ReplayError> {
        // The scheduler refuses every other input before the first start.
        let (first_sequence, first) =
            self.first.as_ref().expect("an identical journal begins with a process start");
        let unusable = |mistake: String| ReplayError::StageConfig { sequence: *first_sequence, mistake };
        let config = StageConfig::from_json(first).map_err(|error| unusable(error.to_string()))?;
        if let Some((sequence, other)) = &self.other {
            let as_value = |text: &String| serde_json::from_str(text).unwrap_or(Value::String(text.clone()));
            let differences = differences("", &as_value(first), &as_value(other));
            // Texts that do not parse to equal configurations differ in some field.
            let difference = differences.first();
            return Err(ReplayError::StageConfigsDiffer {
                first_sequence: *first_sequence,
                sequence: *sequence,
                field: difference.map_or_else(String::new, |difference| difference.field.clone()),
                expected: shown(difference.and_then(|difference| difference.expected.as_ref())),
                found: shown(difference.and_then(|difference| difference.found.as_ref())),
            });
        }
        match config.check().as_slice() {
            [] => Ok(config),
            mistakes => Err(unusable(mistakes.join("; "))),
        }
    }
}

/// Whether two texts mean the same: a later version may write a configuration in another form.
fn is_same(first: &str, other: &str) -> bool {
    first == other
        || matches!((StageConfig::from_json(first), StageConfig::from_json(other)), (Ok(a), Ok(b)) if a == b)
}
