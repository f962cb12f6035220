//! Errors that end an engine.

use crate::recorder::RecordError;

/// An error that ends an engine before it was asked to end.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The scheduler or its journal failed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The partitions were processed under another stage configuration, and the operator did not ask for a new segment.
    #[error(
        "up to {records} records of {partitions} partitions were processed under another stage configuration: {before}"
    )]
    OtherSegment {
        /// The earlier configuration, as JSON.
        before: String,
        /// Number of such partitions.
        partitions: usize,
        /// Number of their processed tick records.
        records: i64,
    },
    /// The log removed tick records before they were processed, and the operator has not accepted their loss.
    #[error("{}", removed_words(topic, removed))]
    TicksRemoved {
        /// Topic of the ticks.
        topic: String,
        /// Removed records, by partition.
        removed: Vec<RemovedTicks>,
    },
    /// A page of evicted symbols cannot be taken back into memory.
    #[error(
        "{topic}/{partition}: page {page} of the snapshot at {offset} cannot be read: {reason}. Restart the \
         process: it finds the damage, and restores the state from an older snapshot or from the ticks"
    )]
    Page {
        /// Topic of the snapshots.
        topic: String,
        /// The partition.
        partition: i32,
        /// The page.
        page: i32,
        /// Offset of the snapshot that holds the page.
        offset: i64,
        /// Text of the error.
        reason: String,
    },
    /// No lane is left.
    #[error(
        "all lanes are lost; the last one failed: {reason}. Nothing committed is lost: restart the process"
    )]
    NoLanes {
        /// Reason for which the last lane was lost.
        reason: String,
    },
    /// The process is to end, and the log does not answer the last commit.
    #[error(
        "the process ends, but the log has not answered its last commit for {waited_s} s. The next start \
         finds out whether the commit succeeded; nothing is lost"
    )]
    CommitUnanswered {
        /// Time waited for the answer, in seconds.
        waited_s: i64,
    },
}

/// Tick records `from..first` of a partition: the log removed them before they were processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovedTicks {
    /// The partition.
    pub partition: i32,
    /// Offset of the next record to be processed.
    pub from: i64,
    /// Offset of the oldest record that the log still has.
    pub first: i64,
}

impl RemovedTicks {
    fn words(&self, topic: &str) -> String {
        let Self { partition, from, first } = self;
        format!("{topic}/{partition} was processed up to offset {from} and begins at {first}")
    }
}

fn removed_words(topic: &str, removed: &[RemovedTicks]) -> String {
    let count: i64 = removed.iter().map(|one| one.first - one.from).sum();
    let places: Vec<String> = removed.iter().map(|one| one.words(topic)).collect();
    let offsets: Vec<String> = removed.iter().map(|one| format!("{}:{}", one.partition, one.first)).collect();
    format!(
        "up to {count} tick records were removed before they were processed: {}. `warptape run --accept-loss \
         {}` continues without them, and the journal says so. Keep records of {topic} for longer than the \
         pipeline may be stopped",
        places.join("; "),
        offsets.join(",")
    )
}
