//! Events in the lives of the pipeline's processes.

use crate::wire::Wire;

/// Kind of an event in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
#[wire(default = "Unknown")]
pub enum LifecycleEvent {
    /// An event that a later version added.
    Unknown,
    /// The configuration is read and the log is open.
    Started,
    /// State is restored, and processing continues.
    Restored,
    /// Everything read is processed and committed.
    Drained,
    /// The process ended without an error.
    Stopped,
    /// The process ended with an error.
    Failed,
    /// A transaction did not commit.
    CommitFailed,
    /// The outcome of a commit is not known yet.
    CommitUnknown,
    /// The process got a partition.
    PartitionAssigned,
    /// The process lost a partition.
    PartitionRevoked,
    /// A lane stopped working.
    LaneLost,
    /// A lane works, for the first time or again.
    LaneReady,
    /// Retention removed the oldest records of a topic.
    RecordsRemoved,
}

/// An event in the life of a process. It is not part of any transaction, because an abort must not erase its own
/// evidence.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Lifecycle {
    /// Time of the event, in nanoseconds since the Unix epoch.
    pub at_ns: i64,
    /// Name of the process in its group.
    pub node: String,
    /// Kind of event.
    pub event: LifecycleEvent,
    /// Details in words; may be empty.
    pub detail: String,
}
