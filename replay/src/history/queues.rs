//! Tracks the rows of a partition: waiting rows of each group, arrivals and batches that are not sealed yet, and the
//! lanes of groups.
//!
//! The order is that of the engine's queues, which equals the scheduler's order except for rows that a lost lane
//! returns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use warptape_schemas::journal::{GroupIndex, LaneId, PartitionId, SealedPartition};

use super::items::{Arrival, Batch, Part, Paused, Piece, SealedPart, Stay, StayEnd};
use crate::moment::Moment;

/// Greatest number of unsealed arrivals, and of unsealed batches, kept per partition. Engines stop reading long before.
const UNSEALED_MAX: usize = 1 << 18;

/// The known state of a partition.
#[derive(Default)]
pub(super) struct Partition {
    /// Offset after the last arrival.
    position: Option<i64>,
    /// Offset from which all arrivals and batches of records are known.
    known_from: Option<i64>,
    /// Offset after the last sealed record.
    sealed: i64,
    groups: BTreeMap<GroupIndex, Group>,
    /// Waiting rows of all groups.
    waiting_rows: i64,
    /// Arrivals with unsealed records, in order.
    arrivals: VecDeque<Arc<Arrival>>,
    /// Batches that came back with rows of unsealed records, in order.
    batches: VecDeque<Arc<Batch>>,
    pub(super) pause: Option<Paused>,
}

/// The known state of a group.
#[derive(Default)]
struct Group {
    waiting: VecDeque<Piece>,
    stay: Option<Stay>,
    /// Number of rows that a lost lane returned, which the next arrival repeats.
    returned: i64,
}

impl Partition {
    /// Begins a state from a snapshot. The caller must have cleared the earlier state.
    pub(super) fn assign(&mut self, committed_offset: i64, snapshot_offset: i64) {
        self.position = Some(snapshot_offset);
        self.known_from = Some(snapshot_offset);
        self.sealed = committed_offset;
    }

    /// Drops all waiting rows, and returns the stays and the pause that end with them.
    pub(super) fn clear(&mut self, at: Option<Moment>, end: StayEnd) -> (Vec<Stay>, Option<Paused>) {
        let ended = |stay: Stay| Stay { left: at, end, ..stay };
        let stays = self.groups.values_mut().filter_map(|group| group.stay.take()).map(ended).collect();
        let pause = self.pause.take();
        *self = Self::default();
        (stays, pause)
    }

    /// Sets the state at a checkpoint.
    pub(super) fn seed(&mut self, position: i64, stays: impl Iterator<Item = Stay>) {
        (self.position, self.known_from) = (Some(position), Some(position));
        for stay in stays {
            let group = stay.group;
            self.group(group).stay = Some(stay);
        }
    }

    /// Adds rows that were waiting at a checkpoint.
    pub(super) fn seed_rows(&mut self, partition: PartitionId, group: GroupIndex, at_ns: i64, rows: i64) {
        let piece = of_unknown_records(partition, group, at_ns, rows);
        self.group(group).waiting.push_back(piece);
        self.count(rows);
    }

    /// Returns the number of rows that wait for batches.
    pub(super) fn waiting_rows(&self) -> i64 {
        self.waiting_rows
    }

    /// Adds to the number of waiting rows; `rows` may be negative.
    fn count(&mut self, rows: i64) {
        self.waiting_rows = self.waiting_rows.saturating_add(rows).max(0);
    }

    fn group(&mut self, group: GroupIndex) -> &mut Group {
        self.groups.entry(group).or_default()
    }

    /// True if the last arrival ended at an offset.
    pub(super) fn is_at(&self, offset: i64) -> bool {
        self.position == Some(offset)
    }

    /// Handles rows that a lost lane returned and that arrive again. Records in between had no rows and no arrival.
    pub(super) fn return_rows(&mut self, again: &Arrival, next_offset: i64) {
        for &(group, rows) in &again.groups {
            let missing = rows - std::mem::take(&mut self.group(group).returned);
            if missing > 0 {
                let piece = of_unknown_records(again.partition, group, again.at_ns, missing);
                self.group(group).waiting.push_front(piece);
                self.count(missing);
            }
        }
        self.position = Some(next_offset);
    }

    /// Adds an arrival.
    pub(super) fn arrive(&mut self, new: Arrival, next_offset: i64) {
        let first = self.position.filter(|first| *first <= next_offset);
        let arrival = Arc::new(Arrival { offsets: first.map(|first| (first, next_offset)), ..new });
        self.position = Some(next_offset);
        self.known_from.get_or_insert(next_offset);
        for &(group, rows) in &arrival.groups {
            let piece = Piece { arrival: arrival.clone(), from: 0, rows };
            self.group(group).waiting.push_back(piece);
            self.count(rows);
        }
        if next_offset > self.sealed {
            self.arrivals.push_back(arrival);
        }
        if self.arrivals.len() > UNSEALED_MAX
            && let Some((_, next)) = self.arrivals.pop_front().and_then(|oldest| oldest.offsets)
        {
            self.known_from = Some(next);
        }
    }

    /// Takes rows from the head of a group's queue.
    pub(super) fn take(&mut self, group: GroupIndex, rows: i64) -> Vec<Piece> {
        let waiting = &mut self.group(group).waiting;
        let (mut pieces, mut left) = (Vec::new(), rows);
        while left > 0
            && let Some(head) = waiting.front_mut()
        {
            let taken = head.rows.min(left);
            left -= taken;
            if taken == head.rows {
                pieces.extend(waiting.pop_front());
            } else {
                pieces.push(Piece { rows: taken, ..head.clone() });
                head.from += taken;
                head.rows -= taken;
            }
        }
        self.count(left.saturating_sub(rows));
        pieces
    }

    /// Puts rows of a lost lane back at the head of the queue, if the group was still on the lane in that epoch.
    /// Returns true if so. Batches of a lane are put back from the newest to the oldest.
    pub(super) fn put_back(&mut self, lane: LaneId, part: &Part) -> bool {
        let group = self.group(part.group);
        let is_its = |stay: &Stay| (stay.lane, stay.epoch) == (lane, part.epoch);
        if !group.stay.as_ref().is_some_and(is_its) {
            return false;
        }
        group.returned += part.rows;
        for piece in part.pieces.iter().rev() {
            group.waiting.push_front(piece.clone());
        }
        self.count(part.pieces.iter().map(|piece| piece.rows).fold(0, i64::saturating_add));
        true
    }

    /// Records that no more rows arrive again.
    pub(super) fn forget_returned(&mut self) {
        self.groups.values_mut().for_each(|group| group.returned = 0);
    }

    /// Adds a batch with rows of this partition that came back.
    pub(super) fn complete(&mut self, partition: PartitionId, batch: &Arc<Batch>) {
        if behind(batch, partition).is_none_or(|next| next <= self.sealed) {
            return;
        }
        self.batches.push_back(batch.clone());
        if self.batches.len() > UNSEALED_MAX {
            self.batches.pop_front();
            self.known_from = self.position;
        }
    }

    /// Removes and returns the partition's part of a transaction.
    pub(super) fn seal(&mut self, account: SealedPartition) -> SealedPart {
        let next = account.next_offset;
        let is_whole = self.known_from.is_some_and(|known_from| known_from <= account.first_offset);
        let first_of = |arrival: &Arrival| arrival.offsets.map_or(i64::MIN, |(first, _)| first);
        let arrivals: Vec<_> =
            self.arrivals.iter().filter(|arrival| first_of(arrival) < next).cloned().collect();
        let is_in = |batch: &&Arc<Batch>| {
            let mut pieces = pieces_of(batch, account.partition);
            pieces.any(|piece| first_of(&piece.arrival) < next)
        };
        let batches: Vec<_> = self.batches.iter().filter(is_in).cloned().collect();
        self.sealed = next;
        self.arrivals.retain(|arrival| arrival.offsets.is_some_and(|(_, end)| end > next));
        self.batches.retain(|batch| behind(batch, account.partition).is_some_and(|end| end > next));
        SealedPart { account, arrivals, batches, is_whole, may_be_void: false }
    }

    /// Places a group. Returns its previous stay, which should not exist.
    pub(super) fn place(&mut self, stay: Stay) -> Option<Stay> {
        let group = stay.group;
        self.group(group).stay.replace(stay)
    }

    /// Returns the stay of a group; `None` if there is none.
    pub(super) fn stay_mut(&mut self, group: GroupIndex) -> Option<&mut Stay> {
        self.group(group).stay.as_mut()
    }

    /// Removes a group from its lane.
    pub(super) fn leave(&mut self, group: GroupIndex) -> Option<Stay> {
        self.group(group).stay.take()
    }

    /// Removes the groups of a lost lane from it.
    pub(super) fn leave_lane(&mut self, lane: LaneId) -> impl Iterator<Item = Stay> {
        self.groups.values_mut().filter_map(move |group| group.stay.take_if(|stay| stay.lane == lane))
    }
}

/// Returns the rows of a partition in a batch, as pieces.
fn pieces_of(batch: &Batch, partition: PartitionId) -> impl Iterator<Item = &Piece> {
    batch.parts.iter().filter(move |part| part.partition == partition).flat_map(|part| &part.pieces)
}

/// Returns the offset after the last record of a partition in a batch; `None` if it is unknown.
fn behind(batch: &Batch, partition: PartitionId) -> Option<i64> {
    pieces_of(batch, partition).filter_map(|piece| piece.arrival.offsets).map(|(_, next)| next).max()
}

fn of_unknown_records(partition: PartitionId, group: GroupIndex, at_ns: i64, rows: i64) -> Piece {
    let groups = vec![(group, rows)];
    let arrival = Arrival { partition, at_ns, sequence: None, offsets: None, groups };
    Piece { arrival: Arc::new(arrival), from: 0, rows }
}
