//! Moves of groups from lane to lane. A move is the end of one stay and the beginning of the next.

use std::collections::BTreeMap;

use warptape_replay::history::{Stay, StayEnd};
use warptape_schemas::journal::{GroupIndex, LaneId, PartitionId, ReleaseCause};

/// Greatest number of moves kept; the last ones stay.
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
    /// The lane that the group left.
    pub from: LaneId,
    /// The lane that the group came to.
    pub to: LaneId,
    /// The cause.
    pub cause: MoveCause,
    /// Predicted gain and cost of the move, ns; `None` if they were not predicted.
    pub worth: Option<(i64, i64)>,
    /// Time at which the lane was asked to release the group, or was lost, ns since the epoch. The group's rows waited
    /// from then on.
    pub since_ns: i64,
    /// Time at which the group was placed on the other lane, ns since the epoch.
    pub placed_ns: i64,
    /// Sequence of the entry that placed the group.
    pub sequence: i64,
}

/// The cause of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveCause {
    /// The lane was asked to release the group.
    Told(ReleaseCause),
    /// The lane was lost.
    LaneLost,
    /// The group's partition was restored, and placement chose another lane.
    Restored,
}

/// The moves in a history.
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
    /// Returns the number of moves.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the last moves, in order of time.
    pub fn last(&self) -> impl DoubleEndedIterator<Item = &Move> {
        self.last.values()
    }

    /// Begins a process life, in which all groups are placed again.
    pub(super) fn begin_life(&mut self) {
        self.left.clear();
    }

    /// Adds the next stay that ended. Returns the move that began the stay, if there was one. Stays of a group end in
    /// the order in which they began.
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
