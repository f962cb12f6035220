//! Commands of a core to its shell or its simulation.

use warptape_events::LifecycleEvent;
use warptape_events::journal::{AskPrices, Breaker, LaneId};

use crate::commit::CommitRequest;
use crate::event::Committed;
use crate::lanes::{LaneCommand, Slice};
use crate::partition::{Accepted, PageId};
use crate::risk::{Conclusion, Preparation};

/// Work for the shell, executed in order.
pub enum Command {
    /// Start a lane's threads. Every [`Event::Lane`](crate::Event::Lane) from them carries the number of this life.
    StartLane {
        /// The lane.
        lane: LaneId,
        /// Number of earlier starts.
        life: u32,
    },
    /// End a lane's threads.
    EndLane {
        /// The lane.
        lane: LaneId,
        /// True if the threads no longer answer, so that nobody waits for them to end.
        hangs: bool,
    },
    /// Send a command to a lane.
    Lane(LaneId, LaneCommand),
    /// Have a lane run units of a risk task, concurrently with its batches.
    Slice {
        /// The lane.
        lane: LaneId,
        /// The units.
        slice: Slice,
        /// Partition and offset of the request to which the units belong.
        request: (i32, i64),
        /// Time at which the scheduler received the round. `None` unless this slice is the round's first and began in
        /// the same step.
        begun_at_once_ns: Option<i64>,
    },
    /// The process owns a partition under a new assignment: transactions may commit outputs sealed under this
    /// assignment.
    Own {
        /// The partition.
        partition: i32,
        /// The number of the assignment.
        assignment: u64,
    },
    /// The process no longer owns a partition: from now on no transaction may commit its sealed outputs.
    LetGo {
        /// The partition.
        partition: i32,
    },
    /// All revoked or lost partitions are let go: the source may report that to the consumer group.
    ReleaseSource,
    /// Stop reading a partition.
    Pause(i32),
    /// Resume reading a partition.
    Resume(i32),
    /// Read a partition from this offset on, with this generation.
    Seek {
        /// The partition.
        partition: i32,
        /// The first record to read.
        offset: i64,
        /// Generation that [`Event::Records`](crate::Event::Records) carries with the records.
        generation: u64,
    },
    /// Restore a partition from its snapshot in the background, and send [`Event::Restored`](crate::Event::Restored).
    Restore {
        /// Number of the restore, counted over all restores.
        number: u64,
        /// The partition.
        partition: i32,
        /// Offset before which the outputs of all records exist, or are in the commit in flight.
        sealed_offset: i64,
    },
    /// Read pages of evicted symbols from the snapshots of a partition, and send
    /// [`Event::PagesRead`](crate::Event::PagesRead).
    ReadPages {
        /// Number of the read, from the counter of restores.
        number: u64,
        /// The partition.
        partition: i32,
        /// The pages.
        pages: Vec<PageId>,
    },
    /// Check that pages can be read from the committed snapshots of a partition, and send
    /// [`Event::PagesFound`](crate::Event::PagesFound).
    FindPages {
        /// The partition.
        partition: i32,
        /// The pages.
        pages: Vec<PageId>,
    },
    /// Find the answered risk requests of a partition, and send
    /// [`Event::RequestsOpened`](crate::Event::RequestsOpened).
    OpenRequests {
        /// The partition.
        partition: i32,
        /// The assignment for which the requests are opened.
        assignment: u64,
        /// Committed offset: all requests before it are answered.
        committed: Committed,
    },
    /// Read the risk requests of a partition from this offset on, with this generation.
    ReadRequests {
        /// The partition.
        partition: i32,
        /// The first request to read.
        offset: i64,
        /// Generation that [`Event::Requests`](crate::Event::Requests) carries with the requests.
        generation: u64,
    },
    /// Stop reading risk requests of a partition.
    ForgetRequests {
        /// The partition.
        partition: i32,
    },
    /// Make a task of a request in the background, one at a time, and send [`Event::Prepared`](crate::Event::Prepared).
    Prepare(Preparation),
    /// Drop a preparation whose request was cancelled, refused or withdrawn.
    Abandon {
        /// Number of the preparation.
        number: u64,
    },
    /// Conclude a long round in the background, and send [`Event::Concluded`](crate::Event::Concluded).
    Conclude(Conclusion),
    /// Solve the capacity problem in the background, and send [`Event::Priced`](crate::Event::Priced).
    AskPrices(AskPrices),
    /// Write a request as one transaction, and send [`Event::Committed`](crate::Event::Committed) or
    /// [`Event::Aborted`](crate::Event::Aborted).
    Commit(Box<CommitRequest>),
    /// End the process with the reason of the last [`Event::Aborted`](crate::Event::Aborted): the log has refused the
    /// commit for too long.
    GiveUp,
    /// The process is to end: use the shorter timeouts for work under way.
    Hurry,
    /// Tell people that partitions begin a new segment of the log, as requested.
    NewSegment {
        /// The stage configuration before, as JSON.
        before: String,
        /// Number of partitions concerned.
        partitions: usize,
        /// Tick records before the new segments, which are folded again.
        records: i64,
    },
    /// Tell people that the log has removed records that the partition's state lacks, or that no process has processed.
    TicksRemoved {
        /// The partition.
        partition: i32,
        /// The oldest record that the log still has.
        first: i64,
        /// Offset of the newest available state.
        snapshot_offset: i64,
        /// True if the partition continues without that state.
        is_emptied: bool,
        /// First removed record that no process has processed; `None` if all were processed.
        lost_from: Option<i64>,
    },
    /// Count accepted records.
    Accepted {
        /// The partition.
        partition: i32,
        /// Offset before which all records are accepted, or do not exist.
        read_to: i64,
        /// Time at which the records were read.
        read_at_ns: i64,
        /// Counts of the records' contents.
        accepted: Accepted,
    },
    /// Tell people that pages of a committed snapshot are not visible in the log yet, and therefore stay in memory.
    PagesMissing {
        /// The partition.
        partition: i32,
        /// Number of missing pages that still hold symbols.
        missing: usize,
    },
    /// Tell people that a lane's breaker changed its state.
    Breaker(Breaker),
    /// Write a lifecycle record.
    Lifecycle(LifecycleEvent, String),
}
