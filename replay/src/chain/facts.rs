//! A chain of causes as data.

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
    /// The tick that caused it.
    pub tick: TickFacts,
    /// The process that worked on the tick.
    pub process: ProcessFacts,
    /// The rows that arrived with the tick; `None` if the journal no longer has the arrival.
    pub arrival: Option<ArrivalFacts>,
    /// The batch with the tick; `None` if it is not known.
    pub batch: Option<BatchFacts>,
    /// The last batch to finish with rows of the tick's record or of earlier records, if that is another batch. The
    /// signal waited for it as well, because a transaction has complete records only.
    pub last_batch: Option<BatchFacts>,
    /// The reason for the dispatch at that time; `None` if the state that it was decided on is not known.
    pub explanation: Option<Explanation>,
    /// Each lane as placement would have seen it at the time of the dispatch if the group had had no lane. The group's
    /// own lane is marked as chosen.
    pub lanes: Vec<Choice>,
    /// The transaction.
    pub transaction: TransactionFacts,
    /// The waits of the signal, in order of time.
    pub waits: Vec<Wait>,
    /// The sum of the waits, in nanoseconds.
    pub total_ns: i64,
    /// True if the waits end at the commit; false if its time is not known, so that they end at the seal.
    pub is_to_commit: bool,
    /// Facts that are not known, in words.
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
    /// The kind of signal, as named in its schema.
    pub kind: &'static str,
    /// Specification of its bars.
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
    /// Index of the tick within the record.
    pub index: i32,
    /// Time of the record's publication, according to its create time, ns since the epoch.
    pub created_ns: i64,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessFacts {
    /// Partition of the journal that it writes; `None` if the journal no longer mentions the process.
    pub journal: Option<i32>,
    /// Its name.
    pub node: String,
    /// Start of the process; `None` if the journal was read from a later entry on.
    pub began: Option<Moment>,
    /// Time at which the process got the partition with its state; `None` as for `began`.
    pub assigned_ns: Option<i64>,
}

/// Rows that arrived together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ArrivalFacts {
    /// Sequence of the entry.
    pub sequence: Option<i64>,
    /// Time of the arrival, ns since the epoch.
    pub at_ns: i64,
    /// First offset of the records.
    pub first_offset: i64,
    /// Offset after the last.
    pub next_offset: i64,
    /// Group of the symbol.
    pub group: i32,
    /// Number of the group's rows.
    pub group_rows: i64,
    /// Number of rows of all groups.
    pub rows: i64,
}

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BatchFacts {
    /// Its number within the process life.
    pub batch: i64,
    /// When it was dispatched.
    pub at: Moment,
    /// The reason for the dispatch at that time.
    pub reason: ReleaseReason,
    /// The scheduler's input in that step.
    pub trigger: Trigger,
    /// Its lane.
    pub lane: LaneId,
    /// The lane's device.
    pub device: String,
    /// Number of its rows.
    pub rows: i64,
    /// Number of its groups.
    pub groups: usize,
    /// Arrival of its oldest row, ns since the epoch.
    pub oldest_arrival_ns: i64,
    /// Batches in flight on the lane before it.
    pub in_flight_batches: i32,
    /// Epoch of the group on the lane.
    pub epoch: i64,
    /// Time of the group's placement on the lane; `None` if the journal was read from a later entry on.
    pub placed: Option<Moment>,
    /// Predicted completion, ns since the epoch; `None` if its lane had not been measured yet.
    pub predicted_finish_ns: Option<i64>,
    /// Completion of the batch.
    pub completed: Option<Moment>,
    /// Time that the lane worked on it, ns.
    pub service_ns: Option<i64>,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TransactionFacts {
    /// Sequence of its last entry.
    pub sealed_sequence: i64,
    /// Time of its seal, ns since the epoch; `None` if the journal does not say.
    pub sealed_ns: Option<i64>,
    /// First tick record of the partition in it.
    pub first_offset: i64,
    /// Tick record after the last one in it.
    pub next_offset: i64,
    /// Number of its signals of the partition.
    pub signals: i64,
    /// Attempts to commit it.
    pub attempts: Vec<Attempt>,
    /// Time of the commit, ns since the epoch; `None` if the journal does not say.
    pub committed_ns: Option<i64>,
}
