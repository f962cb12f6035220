//! Why an engine gives up by itself.

use crate::recorder::RecordError;

/// What ends an engine before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// The scheduler or its journal failed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The partitions were processed under another stage configuration, and nobody asked for a new segment.
    #[error(
        "{partitions} partitions were processed under another stage configuration, up to {records} records: {before}"
    )]
    OtherSegment {
        /// The configuration before, as JSON.
        before: String,
        /// Partitions that it concerns.
        partitions: usize,
        /// Tick records that were processed of them.
        records: i64,
    },
    /// No lane is left.
    #[error(
        "all lanes are lost, the last one because: {reason}; nothing committed is lost, restart to go on"
    )]
    NoLanes {
        /// Why the last lane was lost.
        reason: String,
    },
    /// The process shall end, and the log does not answer the last commit.
    #[error(
        "the log did not answer a commit while the process was to end, for {waited_s} s; whether it committed is settled \
         at the next start, and nothing is lost"
    )]
    CommitUnanswered {
        /// How long it was waited for.
        waited_s: i64,
    },
}
