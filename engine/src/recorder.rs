//! The recorder steps the scheduler, and keeps the journal entry of every step until it is committed.

use std::sync::Arc;

use warptape_events::journal::{Checkpoint, Decision, Input, JournalEntry, Started, StateBytes};
use warptape_events::{ChainError, JournalWriter};
use warptape_scheduler::{Scheduler, StepError};

use crate::positions::JournalPositions;
use crate::tally::Tally;

/// Entries after which a checkpoint of the scheduler's state is due, so that a replay may begin there.
const CHECKPOINT_ENTRIES: i64 = 100_000;
/// Entries after which the journal records its positions; it bounds how far a start reads back.
const POSITIONS_ENTRIES: i64 = 1_024;
/// Bytes of a checkpoint's state in one entry.
const PART_BYTES: usize = 128 << 10;

/// The scheduler with its journal: every decision has an entry.
pub(crate) struct Recorder {
    scheduler: Scheduler,
    writer: JournalWriter,
    /// The newest step, until its entry is encoded.
    unwritten: Option<Step>,
    /// Encoded entries that are in no commit yet, with the times of their steps.
    entries: Vec<(i64, Vec<u8>)>,
    entries_bytes: usize,
    tally: Tally,
    decisions_total: u64,
    /// The first input of this process; `None` before it.
    started: Option<Box<Started>>,
    /// Time, and sequence after the entry, of the newest start or checkpoint.
    checked: (i64, i64),
    /// Positions of the journal. Below: the sequence after the newest entry that records them.
    positions: JournalPositions,
    positions_end: i64,
    /// Sequence after the newest entry that is a reason for a commit. Outcomes of commits and entries of positions are
    /// none: an idle process would commit the outcome of each commit for ever.
    news_end: i64,
}

/// A step whose entry is not encoded yet.
struct Step {
    now_ns: i64,
    input: Input,
    decisions: Arc<Vec<Decision>>,
    /// Hash of the scheduler's state before the step.
    state_hash: u64,
}

/// The error of a step: always a defect of the program, because the engine makes the inputs.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The scheduler refused the input.
    #[error("the scheduler refused an input: {0}; this is a fault of the program, please report it")]
    Step(#[from] StepError),
    /// The journal's chain cannot be continued.
    #[error(
        "the journal cannot be continued after its last entry: {0}; check the log with `warptape replay verify`"
    )]
    Journal(#[from] ChainError),
}

impl Recorder {
    /// Continues the journal after `last`, which has reached `positions`; begins a journal if `last` is `None`.
    pub(crate) fn new(last: Option<&JournalEntry>, positions: JournalPositions) -> Result<Self, ChainError> {
        let writer = match last {
            Some(entry) => JournalWriter::resume(entry)?,
            None => JournalWriter::new(),
        };
        Ok(Self {
            scheduler: Scheduler::new(),
            writer,
            unwritten: None,
            entries: Vec::new(),
            entries_bytes: 0,
            tally: Tally::default(),
            decisions_total: 0,
            started: None,
            checked: (0, 0),
            positions,
            positions_end: 0,
            news_end: 0,
        })
    }

    /// Steps the scheduler and returns the decisions to execute. [`Self::write`], the next step or
    /// [`Self::take_entries`] encodes the entry, so that no lane waits for the encoding.
    pub(crate) fn step(&mut self, now_ns: i64, input: Input) -> Result<Arc<Vec<Decision>>, RecordError> {
        self.write();
        let state_hash = self.scheduler.state_hash();
        let mut decisions = Vec::new();
        self.scheduler.step(now_ns, &input, &mut decisions)?;
        if let Input::Started(started) = &input {
            self.started = Some(started.clone());
            self.checked = (now_ns, self.next_sequence());
        }
        if !matches!(input, Input::CommitEnded(_) | Input::Positions(_)) || !decisions.is_empty() {
            self.news_end = self.next_sequence() + 1;
        }
        self.positions.add(&input);
        if matches!(input, Input::Positions(_)) {
            self.positions_end = self.next_sequence() + 1;
        }
        self.decisions_total += decisions.len() as u64;
        let decisions = Arc::new(decisions);
        self.unwritten = Some(Step { now_ns, input, decisions: decisions.clone(), state_hash });
        Ok(decisions)
    }

    /// Counts the newest step and encodes its entry.
    pub(crate) fn write(&mut self) {
        let Some(Step { now_ns, input, decisions, state_hash }) = self.unwritten.take() else { return };
        self.tally.add(now_ns, &input, &decisions);
        let mut bytes = Vec::new();
        self.writer.append(now_ns, &input, &decisions, state_hash, &mut bytes);
        self.entries_bytes += bytes.len();
        self.entries.push((now_ns, bytes));
    }

    /// The input that records the positions of the journal.
    pub(crate) fn positions(&self, group: &str) -> Input {
        Input::Positions(self.positions.entry(group))
    }

    /// True if it is time to record the positions again.
    pub(crate) fn are_positions_due(&self) -> bool {
        self.next_sequence() - self.positions_end >= POSITIONS_ENTRIES
    }

    /// True if it is time for a checkpoint.
    pub(crate) fn is_checkpoint_due(&self, now_ns: i64, interval_ns: i64) -> bool {
        let (checked_ns, checked_sequence) = self.checked;
        let entries = self.news_end - checked_sequence;
        entries >= CHECKPOINT_ENTRIES || (entries > 0 && now_ns - checked_ns >= interval_ns)
    }

    /// The inputs that make up a checkpoint, to be stepped now in this order; empty before the process began.
    pub(crate) fn checkpoint(&mut self, now_ns: i64) -> Vec<Input> {
        let Some(started) = &self.started else { return Vec::new() };
        let state = self.scheduler.checkpoint();
        // The first part holds only the start of the process: with many lanes, tenants and quotas it fills an entry by
        // itself.
        let chunks = std::iter::once(&[][..]).chain(state.chunks(PART_BYTES));
        let parts = 1 + state.len().div_ceil(PART_BYTES) as i32;
        self.checked = (now_ns, self.next_sequence() + i64::from(parts));
        let input = |(part, state): (i32, &[u8])| {
            let started = (part == 0).then(|| started.clone());
            Input::Checkpoint(Checkpoint { started, part, parts, state: StateBytes(state.to_vec()) })
        };
        (0..).zip(chunks).map(input).collect()
    }

    /// Sequence of the next step's entry.
    pub(crate) fn next_sequence(&self) -> i64 {
        self.writer.next_sequence() + i64::from(self.unwritten.is_some())
    }

    /// Takes the entries recorded since the last call.
    pub(crate) fn take_entries(&mut self) -> Vec<(i64, Vec<u8>)> {
        self.write();
        self.entries_bytes = 0;
        std::mem::take(&mut self.entries)
    }

    /// Bytes of the encoded entries that wait for a commit.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.entries_bytes
    }

    /// True if entries wait for a commit.
    pub(crate) fn has_entries(&self) -> bool {
        self.unwritten.is_some() || !self.entries.is_empty()
    }

    /// True if one of the waiting entries is a reason for a commit.
    pub(crate) fn has_news(&self) -> bool {
        let handed_over = self.writer.next_sequence() - self.entries.len() as i64;
        self.news_end > handed_over
    }

    /// Number of decisions since the process began.
    pub(crate) fn decisions_total(&self) -> u64 {
        self.decisions_total
    }

    /// Totals over all recorded steps.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = self.tally.clone();
        if let Some(Step { now_ns, input, decisions, .. }) = &self.unwritten {
            tally.add(*now_ns, input, decisions);
        }
        tally
    }

    /// The scheduler, read-only.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }
}
