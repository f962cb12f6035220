//! A chain of causes, as data.

use serde::Serialize;
use warptape_scheduler::{Choice, Explanation};
use warptape_schemas::journal::{LaneId, ReleaseReason};
use warptape_schemas::signal::Signal;

use super::waits::Wait;
use crate::history::{Attempt, Moment, Trigger};

/// The causes of a signal.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    /// The signal.
    pub signal: SignalFacts,
    /// The tick that caused the signal.
    pub tick: TickFacts,
    /// The process that handled the tick.
    pub process: ProcessFacts,
    /// The rows that arrived with the tick; `None` if the arrival is no longer in the journal.
    pub arrival: Option<ArrivalFacts>,
    /// The batch with the tick; `None` if it is unknown.
    pub batch: Option<BatchFacts>,
    /// The last batch to finish with rows of the tick's record or of earlier records; `None` if that is `batch`. The
    /// signal waited for it as well, because a transaction contains only complete records.
    pub last_batch: Option<BatchFacts>,
    /// Reason for the time of the dispatch; `None` if the scheduler's state at the decision is unknown.
    pub explanation: Option<Explanation>,
    /// Each lane as placement would have judged it at the time of the dispatch if the group had had no lane. The
    /// group's own lane is marked as chosen.
    pub lanes: Vec<Choice>,
    /// The transaction.
    pub transaction: TransactionFacts,
    /// The waits of the signal, in order of time.
    pub waits: Vec<Wait>,
    /// The sum of the waits, in nanoseconds.
    pub total_ns: i64,
    /// True if the waits end at the commit; false if the commit time is unknown, and the waits end at the seal.
    pub is_to_commit: bool,
    /// Descriptions of facts that are unknown.
    pub unknown: Vec<String>,
}

/// A signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignalFacts {
    /// Partition of the signal.
    pub partition: i32,
    /// Offset of the signal.
    pub offset: i64,
    /// Symbol of the signal.
    pub symbol: String,
    /// Kind of the signal, as named in its schema.
    pub kind: &'static str,
    /// Name of an alert or fault of formulas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Specification of the signal's bars.
    pub bar_spec: String,
    /// Start of the bar, ns since the epoch.
    pub bar_start_ns: i64,
    /// End of the bar, ns since the epoch.
    pub bar_end_ns: i64,
}

impl SignalFacts {
    pub(crate) fn new(partition: i32, offset: i64, signal: &Signal<'_>) -> Self {
        Self {
            partition,
            offset,
            symbol: signal.symbol.to_string(),
            kind: signal.kind.name(),
            name: signal.name.as_deref().map(str::to_owned),
            bar_spec: signal.bar_spec.to_string(),
            bar_start_ns: signal.bar_start_ns,
            bar_end_ns: signal.bar_end_ns,
        }
    }
}

/// A tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TickFacts {
    /// Partition of the tick.
    pub partition: i32,
    /// Offset of the tick's record.
    pub offset: i64,
    /// Index of the tick within the record.
    pub index: i32,
    /// Time of the record's publication, according to its create time, ns since the epoch.
    pub created_ns: i64,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessFacts {
    /// Partition of the journal that the process writes; `None` if the journal no longer mentions the process.
    pub journal: Option<i32>,
    /// Name of the process.
    pub node: String,
    /// Start of the process; `None` if the journal was read from a later entry.
    pub began: Option<Moment>,
    /// Time at which the process had the partition and its state; `None` if the journal was read from a later entry.
    pub assigned_ns: Option<i64>,
}

/// Rows that arrived together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ArrivalFacts {
    /// Sequence of the journal entry.
    pub sequence: Option<i64>,
    /// Time of the arrival, ns since the epoch.
    pub at_ns: i64,
    /// Offset of the first record.
    pub first_offset: i64,
    /// Offset after the last record.
    pub next_offset: i64,
    /// Group of the tick's symbol.
    pub group: i32,
    /// Number of the group's rows.
    pub group_rows: i64,
    /// Number of rows of all groups.
    pub rows: i64,
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BatchFacts {
    /// Number of the batch within the process life.
    pub batch: i64,
    /// Dispatch of the batch.
    pub at: Moment,
    /// Reason for the time of the dispatch.
    pub reason: ReleaseReason,
    /// Input of the scheduler in that step.
    pub trigger: Trigger,
    /// Lane of the batch.
    pub lane: LaneId,
    /// Device of the lane.
    pub device: String,
    /// Number of rows in the batch.
    pub rows: i64,
    /// Number of groups in the batch.
    pub groups: usize,
    /// Arrival of the batch's oldest row, ns since the epoch.
    pub oldest_arrival_ns: i64,
    /// Number of batches in flight on the lane before this one.
    pub in_flight_batches: i32,
    /// Epoch of the group on the lane.
    pub epoch: i64,
    /// Time of the group's placement on the lane; `None` if the journal was read from a later entry.
    pub placed: Option<Moment>,
    /// Predicted completion, ns since the epoch; `None` if the lane had not been measured yet.
    pub predicted_finish_ns: Option<i64>,
    /// Completion of the batch; `None` if it did not come back.
    pub completed: Option<Moment>,
    /// Time for which the lane worked on the batch, ns.
    pub service_ns: Option<i64>,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TransactionFacts {
    /// Sequence of the transaction's last entry.
    pub sealed_sequence: i64,
    /// Time of the transaction's seal, ns since the epoch; `None` if it is not in the journal.
    pub sealed_ns: Option<i64>,
    /// Offset of the partition's first tick record in the transaction.
    pub first_offset: i64,
    /// Offset after the partition's last tick record in the transaction.
    pub next_offset: i64,
    /// Number of the partition's signals in the transaction.
    pub signals: i64,
    /// Attempts to commit the transaction.
    pub attempts: Vec<Attempt>,
    /// Time of the commit, ns since the epoch; `None` if it is not in the journal.
    pub committed_ns: Option<i64>,
}
