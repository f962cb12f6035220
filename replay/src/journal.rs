//! Compares the journal with the scheduler: hash chain, sequence, state hashes and decisions, entry by entry.

use serde::Serialize;
use serde_json::Value;
use warptape_engine::JournalPositions;
use warptape_eventlog::Record;
use warptape_scheduler::{CheckpointError, Scheduler};
use warptape_schemas::hex::Digits;
use warptape_schemas::journal::{Checkpoint, Input, JournalEntry, Positions};
use warptape_schemas::{ChainError, GENESIS_HASH, check_chain, decode_journal_entry};
use xxhash_rust::xxh3::xxh3_64;

use crate::JournalDivergence;
use crate::accounts::Accounts;
use crate::admissions::Admissions;
use crate::arrivals::Arrivals;
use crate::assignments::Assignments;
use crate::controls::Controls;
use crate::difference::{Difference, differences};
use crate::life::LifeCheck;
use crate::ownerships::Ownerships;
use crate::segments::Segments;

/// A journal whose beginning was removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trimmed {
    pub(crate) partition: i32,
    pub(crate) first_offset: i64,
    /// Sequence of the first remaining start or checkpoint; `None` if there is none.
    pub(crate) first_sequence: Option<i64>,
}

/// The checkpoint being read, which may consist of several entries.
#[derive(Default)]
struct CheckpointCheck {
    /// Entries of the checkpoint so far, if the scheduler is restored from it.
    parts: Vec<JournalEntry>,
    /// The remaining part of the expected state, which was not compared yet.
    expected_state: Vec<u8>,
    /// True until the first part of the state was compared.
    is_at_version: bool,
}

/// A journal partition, which is a separate hash chain, as far as it was read.
#[derive(Default)]
struct PartitionChain {
    partition: i32,
    /// Hash of the previous entry; `None` before the first entry of a journal whose beginning was removed.
    previous_hash: Option<Digits<64>>,
    next_sequence: Option<i64>,
    /// True before the first start or checkpoint of a journal whose beginning was removed: the state behind these
    /// decisions is unknown.
    is_headless: bool,
    /// Software version of the process whose entries are being compared.
    software: Option<String>,
    scheduler: Scheduler,
    checkpoint: CheckpointCheck,
    life: LifeCheck,
    /// Offset of the newest entry.
    offset: i64,
    /// Positions of the journal according to its entries, and true if all entries that contain them are known.
    positions: JournalPositions,
    knows_positions: bool,
}

/// Counts of identical parts.
#[derive(Default)]
pub(crate) struct Identical {
    pub(crate) entries: u64,
    pub(crate) decisions: u64,
    pub(crate) processes: u64,
}

/// Steps the recorded inputs, and compares the results with the journal.
pub(crate) struct JournalCheck {
    topic: String,
    chain: PartitionChain,
    pub(crate) identical: Identical,
    pub(crate) segments: Segments,
    pub(crate) accounts: Accounts,
    pub(crate) ownerships: Ownerships,
    /// Rows that arrived according to the journal, before any decision about them.
    pub(crate) arrivals: Arrivals,
    /// Offsets at which partitions were assigned.
    pub(crate) assignments: Assignments,
    /// Operators' commands that the scheduler got.
    pub(crate) controls: Controls,
    /// The journals whose beginning was removed.
    pub(crate) trimmed: Vec<Trimmed>,
    /// The admissions of risk requests; `None` unless results are verified.
    pub(crate) admissions: Option<Admissions>,
}

impl JournalCheck {
    /// Creates a check that has read nothing yet.
    pub(crate) fn new(topic: &str, admissions: Option<Admissions>) -> Self {
        Self {
            topic: topic.to_owned(),
            chain: PartitionChain::default(),
            identical: Identical::default(),
            segments: Segments::default(),
            accounts: Accounts::default(),
            ownerships: Ownerships::default(),
            arrivals: Arrivals::default(),
            assignments: Assignments::default(),
            controls: Controls::default(),
            trimmed: Vec::new(),
            admissions,
        }
    }

    /// Begins a partition. Its entries before `first_offset` may have been removed.
    pub(crate) fn begin(&mut self, partition: i32, first_offset: i64) {
        self.chain = PartitionChain::new(partition, first_offset);
        self.segments.begin();
        self.accounts.begin();
        self.ownerships.begin();
        self.arrivals.begin();
        self.controls.begin(partition, self.chain.is_headless);
        if self.chain.is_headless {
            self.accounts.is_trimmed = true;
            self.trimmed.push(Trimmed { partition, first_offset, first_sequence: None });
        }
        if let Some(admissions) = &mut self.admissions {
            admissions.begin(partition);
        }
    }

    /// Returns the sequence after the last entry of the partition; `None` if all of its entries were removed.
    pub(crate) fn next_sequence(&self) -> Option<i64> {
        self.chain.next_sequence
    }

    /// Compares the next entry. Returns it if it is identical, or if it cannot be compared. `is_chained` is true if the
    /// entry's hash is already known to follow from the previous one.
    pub(crate) fn check_entry(
        &mut self,
        record: &Record,
        is_chained: bool,
    ) -> Result<JournalEntry, Box<JournalDivergence>> {
        let entry = match decode_journal_entry(&record.value) {
            Ok(entry) => entry,
            Err(error) => {
                let mut differences = vec![Difference::new("entry", "a journal entry", error.to_string())];
                // A broken hash means that the entry was changed after it was written.
                let error = self.chain.hash_error(record);
                let error = error.filter(|error| matches!(error, ChainError::Broken { .. }));
                differences.extend(error.map(hash_difference));
                return Err(Box::new(self.divergence(record.offset, None, differences)));
            }
        };
        if let Input::Started(started) = &entry.input {
            self.chain.software = Some(started.software.clone());
            if self.chain.is_headless {
                self.begin_at(entry.sequence);
            }
        }
        let hash_error = if is_chained { None } else { self.chain.hash_error(record) };
        let expected = self.chain.next_sequence.unwrap_or(entry.sequence);
        let mut differences = match entry.sequence == expected {
            true if self.chain.is_headless => self.take_up(record, &entry),
            true => self.chain.step(&entry),
            // Entries are missing or out of order, so stepping this entry would prove nothing.
            false => vec![Difference::new("sequence", expected, entry.sequence)],
        };
        let alone = self.chain.life.check_alone(&entry);
        if differences.is_empty() && !self.chain.is_headless {
            differences.extend(self.chain.life.check(record, &entry));
        }
        differences.extend(hash_error.map(hash_difference));
        if !differences.is_empty() {
            return Err(Box::new(self.divergence(record.offset, Some(&entry), differences)));
        }
        if !self.chain.is_headless {
            let alone =
                alone.map(|difference| self.divergence(record.offset, Some(&entry), vec![difference]));
            self.assignments.add(self.chain.partition, record.offset, &entry, alone);
            self.count(record, &entry);
        }
        self.chain.next_sequence = entry.sequence.checked_add(1);
        self.chain.offset = record.offset;
        self.chain.previous_hash = Some(entry.hash);
        Ok(entry)
    }

    /// Returns the divergence at the end of a partition, after all its entries.
    pub(crate) fn check_end(&self) -> Option<JournalDivergence> {
        let differences = vec![self.chain.life.end()?];
        Some(self.divergence(self.chain.offset, None, differences))
    }

    /// True if entries are not compared, because the state behind their decisions is unknown.
    pub(crate) fn is_headless(&self) -> bool {
        self.chain.is_headless
    }

    /// Begins the comparison at this entry.
    fn begin_at(&mut self, sequence: i64) {
        self.chain.is_headless = false;
        if let Some(trimmed) = self.trimmed.last_mut() {
            trimmed.first_sequence = Some(sequence);
        }
    }

    /// Collects the parts of a checkpoint. Once it is complete, steps them from its state.
    fn take_up(&mut self, record: &Record, entry: &JournalEntry) -> Vec<Difference> {
        let Input::Checkpoint(part) = &entry.input else {
            self.chain.checkpoint.parts.clear();
            return Vec::new();
        };
        if part.part as usize != self.chain.checkpoint.parts.len() {
            // The checkpoint began before the first remaining entry.
            self.chain.checkpoint.parts.clear();
            return Vec::new();
        }
        self.chain.checkpoint.parts.push(entry.clone());
        if part.part.saturating_add(1) < part.parts {
            return Vec::new();
        }
        let parts = std::mem::take(&mut self.chain.checkpoint.parts);
        let state: Vec<u8> =
            parts.iter().filter_map(part_of).flat_map(|part| &part.state.0).copied().collect();
        match Scheduler::from_checkpoint(&state) {
            Ok(scheduler) => self.chain.scheduler = scheduler,
            // A later checkpoint may have this software's version, or a start may follow.
            Err(CheckpointError::Version { .. }) => return Vec::new(),
            Err(error) => return vec![Difference::new("input", "a state", error.to_string())],
        }
        self.begin_at(parts[0].sequence);
        let started = parts.iter().filter_map(part_of).find_map(|part| part.started.as_deref());
        if let Some(field) = started.and_then(|started| self.chain.scheduler.contradiction(started)) {
            let field = format!("input.Checkpoint.started.{field}");
            return vec![Difference::new(field, "what the state has", "something else")];
        }
        self.chain.life.begin_at(record, started);
        self.chain.software = started.map(|started| started.software.clone());
        // The caller counts the last part itself.
        let before = &parts[..parts.len() - 1];
        self.identical.entries += before.len() as u64;
        self.identical.decisions += before.iter().map(|part| part.decisions.len() as u64).sum::<u64>();
        self.identical.processes += 1;
        for part in before {
            self.segments.add(part);
            self.controls.add(part);
        }
        parts.iter().flat_map(|part| self.chain.step(part)).collect()
    }

    /// Counts an identical entry.
    fn count(&mut self, record: &Record, entry: &JournalEntry) {
        self.identical.entries += 1;
        self.identical.decisions += entry.decisions.len() as u64;
        self.identical.processes += u64::from(matches!(entry.input, Input::Started(_)));
        self.segments.add(entry);
        self.accounts.add(entry);
        self.ownerships.add(entry);
        let (journal, config) = (self.chain.partition, self.segments.current());
        self.arrivals.add(journal, record.offset, entry, config);
        self.controls.add(entry);
        if let Some(admissions) = &mut self.admissions {
            admissions.add(record, entry, self.segments.current());
        }
    }

    fn divergence(
        &self,
        offset: i64,
        entry: Option<&JournalEntry>,
        differences: Vec<Difference>,
    ) -> JournalDivergence {
        JournalDivergence {
            topic: self.topic.clone(),
            partition: self.chain.partition,
            offset,
            sequence: self.chain.next_sequence.or(entry.map(|entry| entry.sequence)).unwrap_or(0),
            software: self.chain.software.clone(),
            at_ns: entry.map(|entry| entry.at_ns),
            input: entry.map(|entry| to_value(&entry.input)),
            differences,
        }
    }
}

impl PartitionChain {
    fn new(partition: i32, first_offset: i64) -> Self {
        let is_headless = first_offset > 0;
        Self {
            partition,
            previous_hash: (!is_headless).then_some(GENESIS_HASH),
            next_sequence: (!is_headless).then_some(0),
            is_headless,
            positions: if is_headless { JournalPositions::unknown() } else { JournalPositions::beginning() },
            knows_positions: !is_headless,
            ..Self::default()
        }
    }

    /// Returns the error in a record's hash; `None` if it is right or unknown.
    fn hash_error(&self, record: &Record) -> Option<ChainError> {
        check_chain(self.previous_hash?, &record.value).err()
    }

    fn step(&mut self, entry: &JournalEntry) -> Vec<Difference> {
        if matches!(entry.input, Input::Started(_)) {
            // A new process begins with an empty scheduler.
            self.scheduler = Scheduler::new();
        }
        let mut found = Vec::new();
        let state_hash = Digits::of(&self.scheduler.state_hash().to_be_bytes());
        if state_hash != entry.state_hash {
            found.push(Difference::new("state_hash", &*state_hash, &*entry.state_hash));
        }
        if let Input::Checkpoint(part) = &entry.input {
            found.extend(self.check_state(part));
        }
        if let Input::Positions(positions) = &entry.input {
            found.extend(self.check_positions(positions));
        }
        self.positions.add(&entry.input);
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

    /// Compares the positions in an entry with those of the earlier entries.
    fn check_positions(&mut self, positions: &Positions) -> Vec<Difference> {
        if !std::mem::replace(&mut self.knows_positions, true) {
            return Vec::new();
        }
        let group = self.positions.group().unwrap_or(&positions.group);
        let expected = self.positions.entry(group);
        differences("input.Positions", &to_value(&expected), &to_value(positions))
    }

    /// Compares a part of a checkpoint with the scheduler's state.
    fn check_state(&mut self, part: &Checkpoint) -> Option<Difference> {
        if part.part == 0 {
            self.checkpoint.expected_state = self.scheduler.checkpoint();
            self.checkpoint.is_at_version = true;
        }
        // The state's first byte is its version. The first part of a checkpoint may contain nothing of the state.
        if self.checkpoint.is_at_version
            && let Some(&version) = part.state.0.first()
        {
            self.checkpoint.is_at_version = false;
            if !Scheduler::CHECKPOINT_VERSIONS.contains(&version) {
                // Only the software that wrote the state can reproduce it.
                self.checkpoint.expected_state.clear();
            }
        }
        if self.checkpoint.expected_state.is_empty() {
            return None;
        }
        let length = part.state.0.len().min(self.checkpoint.expected_state.len());
        let expected: Vec<u8> = self.checkpoint.expected_state.drain(..length).collect();
        let is_whole =
            self.checkpoint.expected_state.is_empty() == (part.part.saturating_add(1) == part.parts);
        if expected == part.state.0 && is_whole {
            return None;
        }
        let words = |bytes: &[u8]| format!("{} bytes with the digest {:016x}", bytes.len(), xxh3_64(bytes));
        Some(Difference::new("input.Checkpoint.state", words(&expected), words(&part.state.0)))
    }
}

fn hash_difference(error: ChainError) -> Difference {
    match error {
        ChainError::Broken { expected, found } => Difference::new("hash", expected, found),
        error => Difference::new("hash", "the hash of this entry", error.to_string()),
    }
}

fn part_of(entry: &JournalEntry) -> Option<&Checkpoint> {
    match &entry.input {
        Input::Checkpoint(part) => Some(part),
        _ => None,
    }
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("journal types are structs of numbers and texts")
}
