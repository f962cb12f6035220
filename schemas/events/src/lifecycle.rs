//! Events in the lives of the pipeline's processes.

use crate::wire::Wire;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
#[wire(default = "Unknown")]
pub enum LifecycleEvent {
    /// An event of a later version.
    Unknown,
    /// Configuration is read and the log is open.
    Started,
    /// State is restored; the process goes live.
    Restored,
    /// Everything read is processed and committed.
    Drained,
    /// Orderly end.
    Stopped,
    /// Ended by an error.
    Failed,
    /// A transaction did not commit.
    CommitFailed,
    /// Whether a transaction committed is not known yet.
    CommitUnknown,
    /// A partition came.
    PartitionAssigned,
    /// A partition went.
    PartitionRevoked,
    /// A lane stopped working.
    LaneLost,
    /// A lane works (again).
    LaneReady,
}

/// Something that happened to a process of the pipeline. Not part of any transaction: an abort must not erase its own evidence.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Lifecycle {
    /// When, in nanoseconds since the epoch.
    pub at_ns: i64,
    /// Name of the process in its group.
    pub node: String,
    /// What.
    pub event: LifecycleEvent,
    /// More, in words; may be empty.
    pub detail: String,
}
