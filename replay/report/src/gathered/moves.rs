//! Moves of groups from lane to lane: a stay that ended, and the next one.

use std::collections::BTreeMap;

use warptape_replay::history::{Stay, StayEnd};
use warptape_schemas::journal::{GroupIndex, LaneId, PartitionId, ReleaseCause};

/// Most moves kept: the last ones.
pub const MOVES_KEPT: usize = 50;

/// A move of a group from one lane to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Partition of the journal: the ordinal of the process.
    pub journal: i32,
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane that it left.
    pub from: LaneId,
    /// The lane that it came to.
    pub to: LaneId,
    /// The cause.
    pub cause: MoveCause,
    /// Predicted gain and cost, ns; `None` if they were not predicted.
    pub worth: Option<(i64, i64)>,
    /// Time since which its rows waited, ns since the epoch: when the lane was told to release it, or was lost.
    pub since_ns: i64,
    /// Time of its placement on the other lane, ns since the epoch.
    pub placed_ns: i64,
    /// Sequence of the placement's entry.
    pub sequence: i64,
}

/// The cause of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveCause {
    /// The lane was told to release the group.
    Told(ReleaseCause),
    /// The lane was lost.
    LaneLost,
    /// Its partition was restored, and placement chose another lane.
    Restored,
}

/// The moves of a history.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// Last stay of each group that left a lane, until its next lane is known.
    left: BTreeMap<(PartitionId, GroupIndex), Left>,
    last: BTreeMap<(i64, i32, i64, PartitionId, GroupIndex), Move>,
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Left {
    from: LaneId,
    cause: MoveCause,
    worth: Option<(i64, i64)>,
    since_ns: i64,
}

impl Moves {
    /// Number of moves.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The last moves, in order of time.
    pub fn last(&self) -> impl DoubleEndedIterator<Item = &Move> {
        self.last.values()
    }

    /// Begins a process life, which places its groups anew.
    pub(super) fn begin_life(&mut self) {
        self.left.clear();
    }

    /// Adds the next stay that ended; returns the move that brought the group there. Stays of a group end in the order
    /// in which they began.
    pub(super) fn add(&mut self, journal: i32, stay: &Stay) -> Option<Move> {
        let group = (stay.partition, stay.group);
        let came = self.left.remove(&group).zip(stay.placed).map(|(left, placed)| Move {
            journal,
            partition: stay.partition,
            group: stay.group,
            from: left.from,
            to: stay.lane,
            cause: left.cause,
            worth: left.worth,
            since_ns: left.since_ns,
            placed_ns: placed.at_ns,
            sequence: placed.sequence,
        });
        let came = came.filter(|one| one.cause != MoveCause::Restored || one.from != one.to);
        if let Some(one) = came {
            self.count += 1;
            self.last.insert((one.placed_ns, journal, one.sequence, one.partition, one.group), one);
            if self.last.len() > MOVES_KEPT {
                self.last.pop_first();
            }
        }
        if let Some(left) = Left::of(stay) {
            self.left.insert(group, left);
        }
        came
    }
}

impl Left {
    fn of(stay: &Stay) -> Option<Self> {
        let left = stay.left?;
        let (cause, since) = match (stay.end, stay.release) {
            (StayEnd::Released, Some((told, cause))) => (MoveCause::Told(cause), told),
            (StayEnd::LaneLost, _) => (MoveCause::LaneLost, left),
            (StayEnd::Restored, _) => (MoveCause::Restored, left),
            (StayEnd::Released | StayEnd::Revoked | StayEnd::Open, _) => return None,
        };
        let worth = stay.imbalance.map(|imbalance| (imbalance.gain_ns, imbalance.cost_ns));
        Some(Self { from: stay.lane, cause, worth, since_ns: since.at_ns })
    }
}
