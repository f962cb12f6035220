//! Verifies a log as it grows: compares what a pipeline commits shortly afterwards, while the pipeline runs.
//!
//! ```text
//!   journal ──► JournalFollower, one a process ──► entries stepped again
//!                    │ what each transaction was made of
//!                    ▼
//!   ticks ─────► PartitionFollower, one a partition ──► ticks and outputs compared
//! ```
//!
//! The follower begins at the last start or checkpoint of each process, and with the newest earlier snapshot of each
//! partition. [`verify`](crate::verify) covers older parts. The journal leads: a `Sealed` entry lists the ticks of its
//! transaction. So the follower reads only the log. It keeps in memory one state of the stages, and everything that was
//! read but not compared.

mod journal;
mod partition;

use std::collections::BTreeMap;

use warptape_eventlog::{EventLog, OffsetRange};

use self::journal::JournalFollower;
use self::partition::{Account, PartitionFollower};
use crate::cut::decided;
use crate::{Divergence, OutputCounts, ReplayError, Report, VerifyOptions};

/// The result so far: the verified part and the first difference.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Counts of identical parts, and the first difference.
    pub report: Report,
    /// Sequence of the entry that differs, or that sealed the differing transaction; `None` if nothing differs.
    pub sequence: Option<i64>,
    /// Offset before which everything was verified, by partition of the journal.
    pub places: BTreeMap<i32, i64>,
    /// Sequence before which everything was verified, by partition of the journal; missing before the first entry.
    pub sequences: BTreeMap<i32, i64>,
    /// Journals without a readable start or checkpoint so far. Their entries are read, but not verified until one
    /// appears.
    pub headless: Vec<i32>,
}

/// Greatest number of a journal's transactions that are read but not compared; at this number, another journal is read
/// first.
const WAITING_MAX: usize = 65_536;
/// Greatest number of notes kept, because many parts may be skipped.
const NOTES_MAX: usize = 16;

/// Verifies a log as it grows.
pub struct Follower<'a> {
    log: &'a dyn EventLog,
    options: VerifyOptions,
    from_beginning: bool,
    waiting_max: usize,
    chain_max: usize,
    /// Partition of the journal whose transactions alone are compared; `None` for all.
    only_of: Option<i32>,
    /// True after the first look at the log: journals that appear later are followed from their first entries on.
    has_looked: bool,
    /// True once each of the first journals was read to its end.
    has_caught_up: bool,
    journals: BTreeMap<i32, JournalFollower>,
    partitions: BTreeMap<i32, PartitionFollower>,
    followed: Followed,
}

impl<'a> Follower<'a> {
    /// Creates a follower that has read nothing yet. It begins at the last start or checkpoint of each process, or at
    /// the log's beginning if `from_beginning` is true.
    pub fn new(log: &'a dyn EventLog, options: VerifyOptions, from_beginning: bool) -> Self {
        let outputs = options.outputs.then(OutputCounts::default);
        let report = Report { outputs, ..Report::default() };
        Self {
            log,
            options,
            from_beginning,
            waiting_max: WAITING_MAX,
            chain_max: usize::MAX,
            only_of: None,
            has_looked: false,
            has_caught_up: false,
            journals: BTreeMap::new(),
            partitions: BTreeMap::new(),
            followed: Followed { report, ..Followed::default() },
        }
    }

    /// Limits the number of a journal's transactions that wait for comparison to `waiting_max`, at least one, instead
    /// of 65,536.
    pub fn with_waiting_max(mut self, waiting_max: usize) -> Self {
        self.waiting_max = waiting_max.max(1);
        self
    }

    /// Limits the number of a partition's transactions that one round compares to `chain_max`, at least one, instead of
    /// all.
    pub fn with_chain_max(mut self, chain_max: usize) -> Self {
        self.chain_max = chain_max.max(1);
        self
    }

    /// Compares the transactions of one process alone, by its partition of the journal. The entries of all processes are
    /// still stepped: they say which ticks are whose.
    pub fn comparing_only(mut self, journal: i32) -> Self {
        self.only_of = Some(journal);
        self
    }

    /// The result so far.
    pub fn followed(&self) -> &Followed {
        &self.followed
    }

    /// Verifies a bounded part of the records committed since the last round. Returns true if nothing is left. Does
    /// nothing after the first difference. After an error the next round continues where this one stopped.
    ///
    /// # Errors
    /// If the log cannot be read, or its end cannot be determined because a transaction stays open.
    pub fn round(&mut self) -> Result<bool, ReplayError> {
        if self.followed.report.divergence.is_some() {
            return Ok(true);
        }
        let Reached { is_at_end, is_full } = self.read_journals()?;
        self.has_looked = true;
        match self.options.outputs {
            true if self.followed.report.divergence.is_none() => self.compare(is_at_end || is_full)?,
            true => {}
            // Outputs are not compared, so the accounts are not needed.
            false => self.partitions.clear(),
        }
        self.note_places();
        self.has_caught_up |= is_at_end && !self.journals.is_empty();
        Ok(is_at_end && !self.partitions.values().any(PartitionFollower::is_cut))
    }

    /// Reads new entries of all journals.
    fn read_journals(&mut self) -> Result<Reached, ReplayError> {
        let journal = [self.options.journal.as_str()];
        let shelf = decided(self.log, &journal, &journal)?;
        let ranges = shelf.get(&self.options.journal).map(Vec::as_slice).unwrap_or_default();
        let mut reached = Reached { is_at_end: true, is_full: true };
        for (partition, &range) in (0..).zip(ranges) {
            if range.first >= range.next && !self.journals.contains_key(&partition) {
                continue;
            }
            // Until the journal is read, none of it counts as verified.
            self.followed.places.entry(partition).or_insert(range.first);
            self.begin_journal(partition, range)?;
            let journal = self.journals.get_mut(&partition).expect("it was just begun");
            if let Some(divergence) = journal.read(self.log, range, &mut self.partitions, self.waiting_max)? {
                self.followed.sequence = Some(divergence.sequence);
                self.followed.report.divergence = Some(Divergence::Journal(divergence));
                break;
            }
            let is_at_end = journal.next() >= range.next;
            reached.is_at_end &= is_at_end;
            reached.is_full &= is_at_end || journal.is_full(&self.partitions, self.waiting_max);
        }
        let headless = self.journals.iter().filter(|(_, journal)| journal.check.is_headless());
        self.followed.headless = headless.map(|(partition, _)| *partition).collect();
        let sum = |count: fn(&JournalFollower) -> u64| self.journals.values().map(count).sum();
        let report = &mut self.followed.report;
        report.entries = sum(|journal| journal.check.identical.entries);
        report.decisions = sum(|journal| journal.check.identical.decisions);
        report.processes = sum(|journal| journal.check.identical.processes);
        Ok(reached)
    }

    /// Logs a note about a skipped part, and adds it to the report if there is room.
    fn note(&mut self, words: String) {
        tracing::warn!("{words}");
        if self.followed.report.notes.len() < NOTES_MAX {
            self.followed.report.notes.push(words);
        }
    }

    /// Begins to follow a journal that is new, or whose entries were removed before they were read.
    fn begin_journal(&mut self, partition: i32, range: OffsetRange) -> Result<(), ReplayError> {
        let topic = &self.options.journal.clone();
        match self.journals.get(&partition) {
            Some(journal) if range.first <= journal.next() => return Ok(()),
            Some(journal) => {
                let (next, first) = (journal.next(), range.first);
                let words = format!(
                    "{topic}/{partition}: entries from offset {next} to {first} were removed before they were verified"
                );
                self.note(words);
                // The transactions that processes sealed meanwhile are unknown.
                self.partitions.clear();
            }
            None => {}
        }
        // A process that appears later is followed from its first entry, so that none of its transactions is skipped.
        let from_beginning = self.from_beginning || self.has_looked;
        let journal = JournalFollower::begin(self.log, topic, partition, range, from_beginning)?;
        tracing::info!(topic, partition, "entries are verified from offset {} on", journal.next());
        self.journals.insert(partition, journal);
        Ok(())
    }

    /// Compares the ticks and outputs of known transactions. `is_read` is true if the journals were read to their ends,
    /// or as far as possible before transactions are compared.
    fn compare(&mut self, is_read: bool) -> Result<(), ReplayError> {
        let (log, sources) = (self.log, &self.options.sources);
        if !is_read && !self.has_caught_up {
            return Ok(());
        }
        // Settles first: if the log fails here, no transactions were removed from their lists yet.
        for (&partition, follower) in &mut self.partitions {
            follower.settle(log, sources, partition)?;
        }
        let is_headless = self.journals.values().any(JournalFollower::is_headless);
        let mut chains = Vec::new();
        for (&partition, follower) in &mut self.partitions {
            match follower.take_chain(is_read, is_headless, self.chain_max) {
                Ok(chain) if chain.is_empty() => {}
                Ok(chain) => chains.push((partition, chain)),
                Err(gap) => {
                    let unaccounted = match gap.describe(log, sources, partition) {
                        Ok(unaccounted) => unaccounted,
                        Err(error) => {
                            self.give_back(chains);
                            return Err(error.into());
                        }
                    };
                    self.followed.sequence = Some(gap.sequence);
                    self.followed.report.divergence = Some(Divergence::Unaccounted(unaccounted));
                    return Ok(());
                }
            }
        }
        if chains.is_empty() {
            return Ok(());
        }
        let topics = [&sources.signals, &sources.late, &sources.dead_letter].map(String::as_str);
        let shelf = decided(log, &sources.topics(), &topics);
        let shelf = match shelf {
            Ok(shelf) => shelf,
            Err(error) => {
                self.give_back(chains);
                return Err(error);
            }
        };
        let mut counts = self.followed.report.outputs.unwrap_or_default();
        while let Some((partition, chain)) = chains.pop() {
            let follower = self.partitions.get_mut(&partition).expect("a chain is of a partition");
            let wanted = (chain.as_slice(), self.only_of);
            let compared = follower.compare(log, sources, partition, wanted, &shelf, &mut counts);
            let left = NOTES_MAX.saturating_sub(self.followed.report.notes.len());
            self.followed.report.notes.extend(follower.take_notes().into_iter().take(left));
            match compared {
                Ok(None) => self.followed.report.outputs = Some(counts),
                Ok(Some((sequence, divergence))) => {
                    self.followed.report.outputs = Some(counts);
                    self.followed.sequence = Some(sequence);
                    self.followed.report.divergence = Some(divergence);
                    return Ok(());
                }
                Err(error) => {
                    chains.push((partition, chain));
                    self.give_back(chains);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Puts back the transactions that were taken but not compared, for the next round.
    fn give_back(&mut self, chains: Vec<(i32, Vec<Account>)>) {
        for (partition, chain) in chains {
            if let Some(follower) = self.partitions.get_mut(&partition) {
                chain.into_iter().for_each(|account| follower.add(account));
            }
        }
    }

    fn note_places(&mut self) {
        for (&partition, journal) in &self.journals {
            let waiting = self.partitions.values().filter_map(|follower| follower.waits_for(partition));
            let waiting = waiting.min().filter(|(offset, _)| *offset < journal.next());
            let place = waiting.map_or(journal.next(), |(offset, _)| offset);
            self.followed.places.insert(partition, place);
            if let Some(sequence) = waiting.map(|(_, sequence)| sequence).or(journal.check.next_sequence()) {
                self.followed.sequences.insert(partition, sequence);
            }
        }
    }
}

/// How far the journals were read.
#[derive(Clone, Copy)]
struct Reached {
    /// True if each journal was read to its end.
    is_at_end: bool,
    /// True if each journal was read to its end, or until transactions must be compared first.
    is_full: bool,
}
