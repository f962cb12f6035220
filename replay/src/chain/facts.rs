//! A chain of causes as data.

use serde::Serialize;
use warptape_scheduler::{Choice, Explanation};
use warptape_schemas::journal::{LaneId, ReleaseReason};
use warptape_schemas::signal::Signal;

use super::waits::Wait;
use crate::history::{Attempt, Moment, Trigger};

/// What led to a signal.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    /// The signal.
    pub signal: SignalFacts,
    /// The tick that caused it.
    pub tick: TickFacts,
    /// The process that worked on it.
    pub process: ProcessFacts,
    /// The rows that came with it; `None` where the journal does not have that any more.
    pub arrival: Option<ArrivalFacts>,
    /// The batch that it was in; `None` where it is not known.
    pub batch: Option<BatchFacts>,
    /// The batch that was done last of those with rows of its record or an earlier one, where that is another one: a transaction has complete
    /// records alone, so that the signal waited for it as well.
    pub last_batch: Option<BatchFacts>,
    /// Why the batch was dispatched then; `None` where the state that this was decided on is not known.
    pub explanation: Option<Explanation>,
    /// What placement would have seen of each lane at the time of the dispatch, if the group had had none. The one that has the group
    /// is the chosen one.
    pub lanes: Vec<Choice>,
    /// The transaction.
    pub transaction: TransactionFacts,
    /// What it waited for, in order of time.
    pub waits: Vec<Wait>,
    /// The sum of the waits, in nanoseconds.
    pub total_ns: i64,
    /// What the waits lead to: the commit, or, where that is not known, the seal.
    pub is_to_commit: bool,
    /// What is not known, in words.
    pub unknown: Vec<String>,
}

/// A signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignalFacts {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Its symbol.
    pub symbol: String,
    /// What it says, as its schema has it.
    pub kind: &'static str,
    /// Of which bars.
    pub bar_spec: String,
    /// Start of the bar, ns since the epoch.
    pub bar_start_ns: i64,
    /// End of the bar.
    pub bar_end_ns: i64,
}

impl SignalFacts {
    pub(crate) fn new(partition: i32, offset: i64, signal: &Signal<'_>) -> Self {
        Self {
            partition,
            offset,
            symbol: signal.symbol.to_string(),
            kind: signal.kind.name(),
            bar_spec: signal.bar_spec.to_string(),
            bar_start_ns: signal.bar_start_ns,
            bar_end_ns: signal.bar_end_ns,
        }
    }
}

/// A tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TickFacts {
    /// Its partition.
    pub partition: i32,
    /// Offset of its record.
    pub offset: i64,
    /// Its number within the record.
    pub index: i32,
    /// When the record was published, as its create time says, ns since the epoch.
    pub created_ns: i64,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessFacts {
    /// Partition of the journal that it writes; `None` where the journal does not tell of the process any more.
    pub journal: Option<i32>,
    /// Its name.
    pub node: String,
    /// When it began; `None` where the journal was read from a later entry on.
    pub began: Option<Moment>,
    /// When the partition came to it, with its state; `None` likewise.
    pub assigned_ns: Option<i64>,
}

/// Rows that came together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ArrivalFacts {
    /// Sequence of the entry.
    pub sequence: Option<i64>,
    /// When, ns since the epoch.
    pub at_ns: i64,
    /// First offset of the records.
    pub first_offset: i64,
    /// Offset behind the last.
    pub next_offset: i64,
    /// Group of the symbol.
    pub group: i32,
    /// Rows of the group.
    pub group_rows: i64,
    /// Rows of all groups.
    pub rows: i64,
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BatchFacts {
    /// Its number within the process life.
    pub batch: i64,
    /// When it was dispatched.
    pub at: Moment,
    /// Why then.
    pub reason: ReleaseReason,
    /// What the scheduler was told in that step.
    pub trigger: Trigger,
    /// Its lane.
    pub lane: LaneId,
    /// The lane's device.
    pub device: String,
    /// Its rows.
    pub rows: i64,
    /// Groups that they are of.
    pub groups: usize,
    /// When its oldest row had come, ns since the epoch.
    pub oldest_arrival_ns: i64,
    /// Batches of the lane in flight before it.
    pub in_flight_batches: i32,
    /// Epoch of the group on the lane.
    pub epoch: i64,
    /// When the group was placed there; `None` where the journal was read from a later entry on.
    pub placed: Option<Moment>,
    /// When it was predicted to be done, ns since the epoch; `None` where its lane had not been measured yet, so that nothing was.
    pub predicted_finish_ns: Option<i64>,
    /// When it was done.
    pub completed: Option<Moment>,
    /// Time that the lane worked on it, in nanoseconds.
    pub service_ns: Option<i64>,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TransactionFacts {
    /// Sequence of its last entry.
    pub sealed_sequence: i64,
    /// When it was sealed, ns since the epoch.
    pub sealed_ns: Option<i64>,
    /// Its first tick record of the partition.
    pub first_offset: i64,
    /// The record behind its last.
    pub next_offset: i64,
    /// Its signals of the partition.
    pub signals: i64,
    /// Attempts to commit it.
    pub attempts: Vec<Attempt>,
    /// When it was committed, ns since the epoch; `None` where the journal does not say.
    pub committed_ns: Option<i64>,
}
