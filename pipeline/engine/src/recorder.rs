//! Steps the scheduler and keeps the record of every step until it is committed.

use warptape_events::journal::{Decision, Input, JournalEntry};
use warptape_events::{ChainError, JournalWriter};
use warptape_scheduler::{Scheduler, StepError};

/// The scheduler with its journal: nothing is decided without an entry.
pub(crate) struct Recorder {
    scheduler: Scheduler,
    writer: JournalWriter,
    /// Encoded entries not handed to a commit yet, with the times of their steps.
    entries: Vec<(i64, Vec<u8>)>,
    entries_bytes: usize,
    decisions_total: u64,
}

/// Why a step failed: always a fault of the program, since the engine makes the inputs.
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
    /// Continues the journal after `last`, or begins it.
    pub(crate) fn new(last: Option<&JournalEntry>) -> Result<Self, ChainError> {
        let writer = match last {
            Some(entry) => JournalWriter::resume(entry)?,
            None => JournalWriter::new(),
        };
        Ok(Self {
            scheduler: Scheduler::new(),
            writer,
            entries: Vec::new(),
            entries_bytes: 0,
            decisions_total: 0,
        })
    }

    /// One step: decides, records, and gives the decisions to be executed.
    pub(crate) fn step(&mut self, now_ns: i64, input: &Input) -> Result<Vec<Decision>, RecordError> {
        let state_hash = self.scheduler.state_hash();
        let mut decisions = Vec::new();
        self.scheduler.step(now_ns, input, &mut decisions)?;
        let mut bytes = Vec::new();
        self.writer.append(now_ns, input, &decisions, state_hash, &mut bytes);
        self.entries_bytes += bytes.len();
        self.entries.push((now_ns, bytes));
        self.decisions_total += decisions.len() as u64;
        Ok(decisions)
    }

    /// Sequence of the entry that the next step writes.
    pub(crate) fn next_sequence(&self) -> i64 {
        self.writer.next_sequence()
    }

    /// Takes the entries recorded since the last call.
    pub(crate) fn take_entries(&mut self) -> Vec<(i64, Vec<u8>)> {
        self.entries_bytes = 0;
        std::mem::take(&mut self.entries)
    }

    /// Bytes of the entries that wait for a commit.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.entries_bytes
    }

    /// Number of entries that wait for a commit.
    pub(crate) fn entries_waiting(&self) -> usize {
        self.entries.len()
    }

    /// Decisions since the process began.
    pub(crate) fn decisions_total(&self) -> u64 {
        self.decisions_total
    }
}
