//! Events that a core is told of.

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
use crate::restore::Restored;
use crate::risk::{Concluded, Prepared};

/// How an engine is asked to end. Either way it processes and commits what it has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Accept nothing more.
    Now,
    /// Accept what lies before these offsets of the partitions (of those not named: nothing more).
    At {
        /// Of ticks.
        ticks: Vec<(i32, i64)>,
        /// Of risk requests.
        requests: Vec<(i32, i64)>,
    },
}

/// An event that a core is told of, in the order in which they happen.
pub enum Event {
    /// The process begins. Nothing comes before this.
    Begun,
    /// A stop is asked for.
    Stop(Stop),
    /// Partitions are to become this process's: their states are asked for, and once all are there, they are taken over together.
    Assigned(Vec<Assigned>),
    /// Partitions are about to be handed over, and their source stands still until [`Command::ReleaseSource`](crate::Command::ReleaseSource).
    Revoked(Vec<i32>),
    /// Partitions are others' already; their source stands still likewise.
    Lost(Vec<i32>),
    /// Partitions were read up to offsets after which the log may have no more records.
    Positions(Vec<Position>),
    /// Records of a partition were read.
    Records {
        /// The partition.
        partition: i32,
        /// The generation of the [`Command::Seek`](crate::Command::Seek) that they follow.
        generation: u64,
        /// The records.
        records: Vec<Record>,
        /// When they were read.
        read_at_ns: i64,
    },
    /// A lane tells something.
    Lane {
        /// The lane.
        lane: LaneId,
        /// The life in which it does: what an earlier one tells is of no use.
        life: u32,
        /// The lane's event.
        news: LaneNews,
    },
    /// How a device fares.
    Sample {
        /// Its name.
        device: String,
        /// What was measured.
        sample: Sample,
    },
    /// The request of the last [`Command::Commit`](crate::Command::Commit) is durable and visible.
    Committed(CommitAttempt),
    /// Nothing of the request of the last [`Command::Commit`](crate::Command::Commit) was written.
    Aborted {
        /// The attempt.
        attempt: CommitAttempt,
        /// The request.
        request: Box<CommitRequest>,
        /// Why.
        reason: String,
    },
    /// The restore of this number has ended.
    Restored {
        /// Its number.
        number: u64,
        /// The state.
        restored: Box<Restored>,
    },
    /// The reading of pages of this number has ended: each with its bytes, where it is in the log.
    PagesRead {
        /// Its number.
        number: u64,
        /// The pages.
        pages: Vec<ReadPage>,
    },
    /// Pages were looked for in the log.
    PagesFound {
        /// The partition.
        partition: i32,
        /// All that were looked for.
        sought: Vec<PageId>,
        /// Those that are there.
        found: Vec<PageId>,
    },
    /// The requests of a partition are to be read, from the committed offset on.
    RequestsOpened {
        /// The partition.
        partition: i32,
        /// The assignment that this is for.
        assignment: u64,
        /// How far they are answered.
        committed: Committed,
        /// Requests before this offset lay there when the partition came.
        found_before: i64,
        /// What is answered behind that.
        answered: Answered,
    },
    /// Risk requests of a partition were read.
    Requests {
        /// The partition.
        partition: i32,
        /// The generation of the [`Command::ReadRequests`](crate::Command::ReadRequests) that they follow.
        generation: u64,
        /// The requests.
        requests: Vec<ReadRequest>,
    },
    /// Requests of a partition were read up to an offset, after which the log may have no more records.
    RequestsPosition {
        /// The partition.
        partition: i32,
        /// The generation likewise.
        generation: u64,
        /// The offset.
        position: i64,
    },
    /// A request is prepared. Those of one process come in the order in which they were to be prepared.
    Prepared(Prepared),
    /// A round is concluded beside the engine.
    Concluded(Concluded),
    /// Prices of kinds of tasks have been found.
    Priced(Priced),
    /// Commands were read from the partition of this process's number.
    Controls {
        /// The number.
        ordinal: i32,
        /// The commands.
        controls: Vec<ReadControl>,
    },
}

/// How far a partition was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition.
    pub partition: i32,
    /// The generation of the [`Command::Seek`](crate::Command::Seek) that this follows.
    pub generation: u64,
    /// The offset.
    pub offset: i64,
}

impl Event {
    /// The span of what the core does about it.
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

/// A partition to own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// The partition.
    pub partition: i32,
    /// Next offset to read: outputs of the records before exist; `None` where nothing was processed yet.
    pub committed: Option<i64>,
    /// Offset of the next record that is published.
    pub end: i64,
    /// True if the group has committed another offset, so that this one has to be committed again.
    pub is_uncommitted: bool,
    /// First of the records before `committed` that are given up: no transaction accounts for them.
    pub lost_from: Option<i64>,
    /// How far its risk requests are answered.
    pub requests: Committed,
}

/// How an attempt to write a [`Command::Commit`](crate::Command::Commit) went, as who wrote it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitAttempt {
    /// When it began.
    pub sent_ns: i64,
    /// When its outcome was known.
    pub ended_ns: i64,
    /// Whether the log did not tell the outcome, so that it was looked up there.
    pub looked_up: bool,
}

/// A request as it was read.
#[derive(Debug)]
pub struct ReadRequest {
    /// Its offset.
    pub offset: i64,
    /// Bytes of its record.
    pub bytes: usize,
    /// True if it waits until the ticks are accepted that were there when their partitions came.
    pub waits: bool,
    /// What it asks, or why it cannot be read.
    pub request: Result<Box<RiskRequest>, DecodeError>,
}

/// How far the requests of a partition are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The first request that may have no answer.
    pub offset: i64,
    /// True if the group has committed another offset, so that this one has to be committed again.
    pub is_uncommitted: bool,
}
