//! Events for a core.

use tracing::Span;
use warptape_events::DecodeError;
use warptape_events::journal::{LaneId, Priced};
use warptape_events::risk::RiskRequest;
use warptape_kernels::device::Sample;
use warptape_record::Record;

use crate::answered::Answered;
use crate::commit::CommitRequest;
use crate::control::ReadControl;
use crate::lanes::LaneNews;
use crate::partition::{PageId, ReadPage};
use crate::read_ticks::ReadTicks;
use crate::restore::Restored;
use crate::risk::{Concluded, Prepared};

/// The extent of a requested stop. In each case the engine processes and commits what it has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Accept nothing more.
    Now,
    /// Accept records before these offsets, and nothing more of partitions that are not named.
    At {
        /// Offsets of ticks, by partition.
        ticks: Vec<(i32, i64)>,
        /// Offsets of risk requests, by partition.
        requests: Vec<(i32, i64)>,
    },
}

/// An event for a core. Events are passed in the order in which they happen.
pub enum Event {
    /// The process begins; always the first event.
    Begun,
    /// The process is asked to stop.
    Stop(Stop),
    /// Partitions are assigned to this process. The core requests their states, and takes all of them over once all
    /// states have arrived.
    Assigned(Vec<Assigned>),
    /// Partitions are about to be handed over. Their source blocks until
    /// [`Command::ReleaseSource`](crate::Command::ReleaseSource).
    Revoked(Vec<i32>),
    /// Partitions already belong to other processes. Their source blocks in the same way.
    Lost(Vec<i32>),
    /// Partitions were read up to offsets, behind which the log may have no more records.
    Positions(Vec<Position>),
    /// Records of a partition were read.
    Records {
        /// The partition.
        partition: i32,
        /// Generation of the [`Command::Seek`](crate::Command::Seek) that caused the reading.
        generation: u64,
        /// The records.
        records: Vec<Record>,
        /// The ticks of the records, if they were decoded where they were read.
        ticks: Option<ReadTicks>,
        /// Time at which the records were read.
        read_at_ns: i64,
    },
    /// A lane reports something.
    Lane {
        /// The lane.
        lane: LaneId,
        /// Life of the lane that sent it; events of an earlier life are ignored.
        life: u32,
        /// The lane's message.
        news: LaneNews,
    },
    /// A device was measured.
    Sample {
        /// Name of the device.
        device: String,
        /// The measured values.
        sample: Sample,
    },
    /// The [`CommitRequest`] of the last [`Command::Commit`](crate::Command::Commit) is durable and visible.
    Committed(CommitAttempt),
    /// Nothing of the [`CommitRequest`] of the last [`Command::Commit`](crate::Command::Commit) was written.
    Aborted {
        /// The attempt.
        attempt: CommitAttempt,
        /// The request.
        request: Box<CommitRequest>,
        /// Reason of the abort.
        reason: String,
    },
    /// A restore has ended.
    Restored {
        /// Number of the restore.
        number: u64,
        /// The restored state.
        restored: Box<Restored>,
    },
    /// A read of pages has ended; a page missing from the log has no bytes.
    PagesRead {
        /// Number of the read.
        number: u64,
        /// The pages.
        pages: Vec<ReadPage>,
    },
    /// A search for pages in the log has ended.
    PagesFound {
        /// The partition.
        partition: i32,
        /// All pages of the search.
        sought: Vec<PageId>,
        /// The pages that the log has.
        found: Vec<PageId>,
    },
    /// The answered requests of a partition are known; the unanswered ones can be read, from the committed offset on.
    RequestsOpened {
        /// The partition.
        partition: i32,
        /// The assignment for which the requests were opened.
        assignment: u64,
        /// Committed offset: all requests before it are answered.
        committed: Committed,
        /// End of the topic's partition when it was assigned: requests before this offset existed then.
        found_before: i64,
        /// Requests that are answered at or after the committed offset.
        answered: Answered,
    },
    /// Risk requests of a partition were read.
    Requests {
        /// The partition.
        partition: i32,
        /// Generation of the [`Command::ReadRequests`](crate::Command::ReadRequests) that caused the reading.
        generation: u64,
        /// The requests.
        requests: Vec<ReadRequest>,
    },
    /// Requests of a partition were read up to an offset, behind which the log may have no more records.
    RequestsPosition {
        /// The partition.
        partition: i32,
        /// Generation of the [`Command::ReadRequests`](crate::Command::ReadRequests) that caused the reading.
        generation: u64,
        /// The offset.
        position: i64,
    },
    /// A request is prepared. Prepared requests of one process come in the order of their commands.
    Prepared(Prepared),
    /// A round was concluded in the background.
    Concluded(Concluded),
    /// The prices of kinds of tasks were computed.
    Priced(Priced),
    /// Commands were read from the partition with the number of this process's ordinal.
    Controls {
        /// The ordinal.
        ordinal: i32,
        /// The commands.
        controls: Vec<ReadControl>,
    },
}

/// The offset up to which a partition was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition.
    pub partition: i32,
    /// Generation of the [`Command::Seek`](crate::Command::Seek) that caused the reading.
    pub generation: u64,
    /// The offset.
    pub offset: i64,
}

impl Event {
    /// The tracing span of the core's work on the event.
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Records { partition, records, .. } => {
                let first = records.first().map(|record| record.offset);
                tracing::debug_span!("read", partition, first, records = records.len())
            }
            Self::Assigned(_) => tracing::debug_span!("rebalance", change = "assigned"),
            Self::Revoked(partitions) => tracing::debug_span!("rebalance", change = "revoked", ?partitions),
            Self::Lost(partitions) => tracing::debug_span!("rebalance", change = "lost", ?partitions),
            _ => Span::none(),
        }
    }
}

/// A partition that is assigned to this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// The partition.
    pub partition: i32,
    /// Offset of the next record to read: outputs of all earlier records exist. `None` if nothing was processed yet.
    pub committed: Option<i64>,
    /// Offset of the next record to be published.
    pub end: i64,
    /// True if the group has committed another offset, so that `committed` must be committed again.
    pub is_uncommitted: bool,
    /// First of the records before `committed` that are given up, so that no transaction accounts for them; `None` if
    /// there are none.
    pub lost_from: Option<i64>,
    /// Offset up to which the partition's risk requests are answered.
    pub requests: Committed,
}

/// One attempt to write a [`Command::Commit`](crate::Command::Commit), as its writer reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitAttempt {
    /// Time at which the attempt began.
    pub sent_ns: i64,
    /// Time at which its outcome became known.
    pub ended_ns: i64,
    /// True if the log did not report the outcome, so that the writer looked it up in the log.
    pub looked_up: bool,
}

/// A request as it was read.
#[derive(Debug)]
pub struct ReadRequest {
    /// Its offset.
    pub offset: i64,
    /// Bytes of its record.
    pub bytes: usize,
    /// True if the request waits until all ticks that existed when partitions were assigned are accepted.
    pub waits: bool,
    /// The request, or the reason why it cannot be read.
    pub request: Result<Box<RiskRequest>, DecodeError>,
}

/// The offset up to which the requests of a partition are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The first request that may have no answer.
    pub offset: i64,
    /// True if the group has committed another offset, so that `offset` must be committed again.
    pub is_uncommitted: bool,
}
