//! Commands of a core to its outside.

use warptape_events::LifecycleEvent;
use warptape_events::journal::{AskPrices, Breaker, LaneId};

use crate::commit::CommitRequest;
use crate::event::Committed;
use crate::lanes::{LaneCommand, Slice};
use crate::partition::{Accepted, PageId};
use crate::risk::{Conclusion, Preparation};

/// What the shell has to do, in order.
pub enum Command {
    /// Start a lane's threads. What they tell carries the number of this life.
    StartLane {
        /// The lane.
        lane: LaneId,
        /// How often it was started before.
        life: u32,
    },
    /// End a lane's threads.
    EndLane {
        /// The lane.
        lane: LaneId,
        /// Whether they do not answer any more, so that nobody should wait for them.
        hangs: bool,
    },
    /// Tell a lane.
    Lane(LaneId, LaneCommand),
    /// Have a lane do units of a risk task, beside all else.
    Slice {
        /// The lane.
        lane: LaneId,
        /// The units.
        slice: Slice,
        /// Partition and offset of the request that they are of.
        request: (i32, i64),
        /// When the scheduler was given the round, if this is the round's first slice and began in the same step.
        begun_at_once_ns: Option<i64>,
    },
    /// A partition is this process's under a new assignment: transactions may commit what was sealed under it.
    Own {
        /// The partition.
        partition: i32,
        /// The number of the assignment.
        assignment: u64,
    },
    /// A partition is no longer this process's: from now on no transaction may commit what was sealed of it.
    LetGo {
        /// The partition.
        partition: i32,
    },
    /// All partitions that were revoked or lost are let go: the source may tell the group so.
    ReleaseSource,
    /// Read no more of a partition.
    Pause(i32),
    /// Read a partition again.
    Resume(i32),
    /// Read a partition from this offset on, with this generation.
    Seek {
        /// The partition.
        partition: i32,
        /// The first record to read.
        offset: i64,
        /// What [`Event::Records`](crate::Event::Records) has with the records.
        generation: u64,
    },
    /// Restore a partition from its snapshot beside the engine, and tell [`Event::Restored`](crate::Event::Restored).
    Restore {
        /// Its number, counted over all restores.
        number: u64,
        /// The partition.
        partition: i32,
        /// Outputs of records before this offset exist, or are in the commit in flight.
        sealed_offset: i64,
    },
    /// Read pages of symbols that left memory from the snapshots of a partition, and tell
    /// [`Event::PagesRead`](crate::Event::PagesRead).
    ReadPages {
        /// Its number, counted with restores.
        number: u64,
        /// The partition.
        partition: i32,
        /// The pages.
        pages: Vec<PageId>,
    },
    /// Find out whether pages can be read from the snapshots of a partition, which are committed, and tell
    /// [`Event::PagesFound`](crate::Event::PagesFound).
    FindPages {
        /// The partition.
        partition: i32,
        /// The pages.
        pages: Vec<PageId>,
    },
    /// Find out which risk requests of a partition are answered, and tell [`Event::RequestsOpened`](crate::Event::RequestsOpened).
    OpenRequests {
        /// The partition.
        partition: i32,
        /// The assignment that this is for.
        assignment: u64,
        /// How far they are answered.
        committed: Committed,
    },
    /// Read the risk requests of a partition from this offset on, with this generation.
    ReadRequests {
        /// The partition.
        partition: i32,
        /// The first request to read.
        offset: i64,
        /// What [`Event::Requests`](crate::Event::Requests) has with the requests.
        generation: u64,
    },
    /// Read no more risk requests of a partition.
    ForgetRequests {
        /// The partition.
        partition: i32,
    },
    /// Make a task of a request beside the engine, one after the other, and tell [`Event::Prepared`](crate::Event::Prepared).
    Prepare(Preparation),
    /// Nobody waits for a preparation any more: it may be left.
    Abandon {
        /// Its number.
        number: u64,
    },
    /// Conclude a round beside the engine, which takes long, and tell [`Event::Concluded`](crate::Event::Concluded).
    Conclude(Conclusion),
    /// Solve the capacity problem beside the engine, and tell [`Event::Priced`](crate::Event::Priced).
    AskPrices(AskPrices),
    /// Write this as one transaction, and tell [`Event::Committed`](crate::Event::Committed) or
    /// [`Event::Aborted`](crate::Event::Aborted).
    Commit(Box<CommitRequest>),
    /// The log has not taken what was to be committed for too long: end with the reason of the last [`Event::Aborted`](crate::Event::Aborted).
    GiveUp,
    /// The process is to end: what is under way is waited for with less patience from now on.
    Hurry,
    /// Partitions begin a new segment of the log, as was asked for: tell people.
    NewSegment {
        /// The stage configuration before, as JSON.
        before: String,
        /// Partitions that it concerns.
        partitions: usize,
        /// Tick records before the new segments, which are folded again.
        records: i64,
    },
    /// The log has removed records that the state of a partition lacks, or that nobody has processed: tell people.
    TicksRemoved {
        /// The partition.
        partition: i32,
        /// The first record that is left.
        first: i64,
        /// Offset of the newest state there is.
        snapshot_offset: i64,
        /// True if the partition goes on without that state.
        is_emptied: bool,
        /// First of the records that nobody has processed; `None` where all were.
        lost_from: Option<i64>,
    },
    /// Records were accepted: count them.
    Accepted {
        /// The partition.
        partition: i32,
        /// Records before this offset are accepted, or there are none.
        read_to: i64,
        /// When they were read.
        read_at_ns: i64,
        /// What they hold.
        accepted: Accepted,
    },
    /// Pages of a committed snapshot are not in the log yet, so that they stay in memory: tell people.
    PagesMissing {
        /// The partition.
        partition: i32,
        /// Pages that still have symbols.
        missing: usize,
    },
    /// A lane's breaker changed its state: tell people.
    Breaker(Breaker),
    /// Write a lifecycle record.
    Lifecycle(LifecycleEvent, String),
}
