//! Partitions, their groups, and the rows that wait in each group's queue on the host.
//!
//! It owns queues and their sums; it must not know which lane is chosen or when rows are released.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize, Serializer};
use warptape_events::journal::{GroupIndex, LaneId, LaneKind, PartitionId};

use crate::balance::GroupWork;
use crate::state_hash::{Component, StateHash, hash_component};

/// Phase of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionPhase {
    /// Not owned.
    Revoked = 0,
    /// Waits until the shell has restored it after a lane was lost.
    Restoring = 1,
    /// Owned; its groups are placed as soon as a lane is ready.
    Assigned = 2,
}

/// One partition; it is kept for the whole process life, because epochs must not fall.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Partition {
    pub(crate) id: PartitionId,
    pub(crate) phase: PartitionPhase,
    pub(crate) paused: bool,
    /// Next offset after the last arrival.
    pub(crate) position: i64,
    pub(crate) waiting_rows: i64,
    pub(crate) waiting_bytes: i64,
    /// All groups ever seen; the first `groups_active` exist now.
    pub(crate) groups: Vec<Group>,
    pub(crate) groups_active: usize,
    pub(crate) contribution: u64,
}

impl Partition {
    pub(crate) fn new(id: PartitionId) -> Self {
        Self {
            id,
            phase: PartitionPhase::Revoked,
            paused: false,
            position: 0,
            waiting_rows: 0,
            waiting_bytes: 0,
            groups: Vec::new(),
            groups_active: 0,
            contribution: 0,
        }
    }

    /// The groups that exist now.
    pub(crate) fn active(&self) -> &[Group] {
        &self.groups[..self.groups_active]
    }

    pub(crate) fn group_mut(&mut self, group: GroupIndex) -> &mut Group {
        &mut self.groups[group as usize]
    }

    pub(crate) fn hash(&self) -> u64 {
        hash_component(
            Component::Partition,
            [
                i64::from(self.id),
                self.phase as i64,
                i64::from(self.paused),
                self.position,
                self.groups_active as i64,
            ],
        )
    }

    pub(crate) fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }
}

/// One symbol group: its owner, and its waiting rows, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Group {
    /// The lane that owns it; `None` until it is placed.
    pub(crate) lane: Option<LaneId>,
    /// Epoch of the latest placement; 0 before the first.
    pub(crate) epoch: i64,
    pub(crate) waiting_rows: i64,
    pub(crate) chunks: Chunks,
    /// The lane that must give back the group's state before the group is placed again; `None` if there is none.
    pub(crate) leaving: Option<LaneId>,
    /// The kind of lanes on which the group is to be placed after that, if one is ready.
    pub(crate) bound_for: Option<LaneKind>,
    /// Smoothed number of rows that all lanes of its kind get together, sampled at its own batches; 0 before the first,
    /// and without routing.
    pub(crate) together_rows: i64,
    /// Smoothed number of its own rows in a batch; 0 before the first, and without routing.
    pub(crate) own_rows: i64,
    /// Measurements of the group, if the placement policy uses them.
    pub(crate) work: GroupWork,
    pub(crate) contribution: u64,
    pub(crate) route_contribution: u64,
}

/// Share by which a batch moves `together_rows` and `own_rows`: 1/8.
const BATCH_SMOOTHING: i64 = 8;

/// Rows of one group that arrived at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) arrived_ns: i64,
    pub(crate) rows: i64,
    pub(crate) bytes: i64,
}

/// Waiting rows of a group, oldest first. Most groups have at most one chunk, which is faster to access in place than
/// on the heap.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "VecDeque<Chunk>")]
pub(crate) struct Chunks {
    first: Option<Chunk>,
    /// Further chunks; empty while there is no first one.
    rest: VecDeque<Chunk>,
}

/// Identity of a group, a part of every hash about the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct GroupKey {
    pub(crate) partition: PartitionId,
    pub(crate) group: GroupIndex,
}

impl Group {
    pub(crate) fn hash(&self, key: GroupKey) -> u64 {
        let lane = self.lane.map_or(-1, i64::from);
        hash_component(Component::Group, [i64::from(key.partition), i64::from(key.group), lane, self.epoch])
    }

    pub(crate) fn refresh(&mut self, key: GroupKey, hash: &mut StateHash) {
        let now = self.hash(key);
        hash.replace(&mut self.contribution, now);
    }

    /// True if the group's state is on this lane.
    pub(crate) fn is_with(&self, lane: LaneId) -> bool {
        self.lane.or(self.leaving) == Some(lane)
    }

    /// Hash of the fields that routing uses; 0 without routing.
    pub(crate) fn route_hash(&self, key: GroupKey) -> u64 {
        if self.together_rows == 0 && self.leaving.is_none() && self.bound_for.is_none() {
            return 0;
        }
        let bound_for = match self.bound_for {
            None => -1,
            Some(LaneKind::Host) => 0,
            Some(LaneKind::Device) => 1,
        };
        let fields = [
            i64::from(key.partition),
            i64::from(key.group),
            self.leaving.map_or(-1, i64::from),
            bound_for,
            self.together_rows,
            self.own_rows,
        ];
        hash_component(Component::GroupRoute, fields)
    }

    pub(crate) fn refresh_route(&mut self, key: GroupKey, hash: &mut StateHash) {
        let now = self.route_hash(key);
        hash.replace(&mut self.route_contribution, now);
    }

    /// Learns from a batch with `own_rows` of the group. `together_rows` are the rows that all lanes together would get
    /// in batches of that size.
    pub(crate) fn learn_batch(
        &mut self,
        key: GroupKey,
        together_rows: i64,
        own_rows: i64,
        hash: &mut StateHash,
    ) {
        let first = self.together_rows == 0;
        let smoothed =
            |known: i64, rows: i64| if first { rows } else { known + (rows - known) / BATCH_SMOOTHING };
        self.own_rows = smoothed(self.own_rows, own_rows);
        self.together_rows = smoothed(self.together_rows, together_rows);
        self.refresh_route(key, hash);
    }

    /// Arrival of the oldest waiting row; `None` if no row waits.
    pub(crate) fn oldest_ns(&self) -> Option<i64> {
        self.chunks.front().map(|chunk| chunk.arrived_ns)
    }

    /// Appends rows to the queue. Rows with the same arrival time form one chunk, so that the time identifies it.
    pub(crate) fn push(&mut self, key: GroupKey, new: Chunk, hash: &mut StateHash) {
        self.waiting_rows += new.rows;
        if let Some(last) = self.chunks.back_mut()
            && last.arrived_ns == new.arrived_ns
        {
            hash.remove(last.hash(key));
            last.rows += new.rows;
            last.bytes += new.bytes;
            hash.add(last.hash(key));
            return;
        }
        hash.add(new.hash(key));
        self.chunks.push_back(new);
    }

    /// Takes at most `rows_max` rows with at most `bytes_max` bytes from the head of the queue; returns the numbers of
    /// rows and bytes.
    pub(crate) fn take(
        &mut self,
        key: GroupKey,
        rows_max: i64,
        bytes_max: i64,
        hash: &mut StateHash,
    ) -> (i64, i64) {
        let (mut rows, mut bytes) = (0, 0);
        while let Some(head) = &mut self.chunks.first {
            let taken = head.rows_within(bytes_max - bytes).min(rows_max - rows);
            if taken == 0 {
                break;
            }
            hash.remove(head.hash(key));
            let weight = head.weight_of(taken);
            rows += taken;
            bytes += weight;
            if taken == head.rows {
                self.chunks.pop_front();
            } else {
                head.rows -= taken;
                head.bytes -= weight;
                hash.add(head.hash(key));
                break;
            }
        }
        self.waiting_rows -= rows;
        (rows, bytes)
    }

    /// Drops all waiting rows, and the estimates of the group's batches.
    pub(crate) fn clear(&mut self, key: GroupKey, hash: &mut StateHash) {
        for chunk in std::mem::take(&mut self.chunks).iter() {
            hash.remove(chunk.hash(key));
        }
        self.waiting_rows = 0;
        (self.leaving, self.bound_for) = (None, None);
        (self.together_rows, self.own_rows) = (0, 0);
        self.work.forget(key, hash);
        self.refresh_route(key, hash);
    }
}

impl Chunks {
    pub(crate) fn front(&self) -> Option<&Chunk> {
        self.first.as_ref()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Chunk> {
        self.first.iter().chain(&self.rest)
    }

    fn back_mut(&mut self) -> Option<&mut Chunk> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    fn push_back(&mut self, new: Chunk) {
        match self.first {
            None => self.first = Some(new),
            Some(_) => self.rest.push_back(new),
        }
    }

    fn pop_front(&mut self) {
        self.first = self.rest.pop_front();
    }
}

impl From<VecDeque<Chunk>> for Chunks {
    fn from(mut rest: VecDeque<Chunk>) -> Self {
        Self { first: rest.pop_front(), rest }
    }
}

impl Serialize for Chunks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl Chunk {
    pub(crate) fn hash(&self, key: GroupKey) -> u64 {
        hash_component(
            Component::Chunk,
            [i64::from(key.partition), i64::from(key.group), self.arrived_ns, self.rows, self.bytes],
        )
    }

    /// Bytes of the first `rows` rows: a proportional share, rounded down. The last rows carry the remainder.
    pub(crate) fn weight_of(&self, rows: i64) -> i64 {
        if rows == self.rows {
            return self.bytes;
        }
        (i128::from(self.bytes) * i128::from(rows) / i128::from(self.rows)) as i64
    }

    /// Most rows whose share of the bytes is at most `bytes`.
    pub(crate) fn rows_within(&self, bytes: i64) -> i64 {
        debug_assert!(bytes >= 0, "limits are what is left, at least nothing");
        if self.bytes <= bytes {
            return self.rows;
        }
        // floor(b·r / n) ≤ m  ⇔  b·r < (m + 1)·n. Here b > m ≥ 0, so b is positive and r below n.
        (((i128::from(bytes) + 1) * i128::from(self.rows) - 1) / i128::from(self.bytes)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_within(rows: i64, bytes: i64, limit: i64) {
        let chunk = Chunk { arrived_ns: 0, rows, bytes };
        let fits = (0..=rows).rev().find(|&r| chunk.weight_of(r) <= limit).unwrap_or(0);
        assert_eq!(chunk.rows_within(limit), fits, "{rows} rows, {bytes} bytes, limit {limit}");
    }

    #[test]
    fn rows_within_is_the_inverse_of_weight() {
        for rows in 1..=12 {
            for bytes in 0..=40 {
                for limit in 0..=44 {
                    check_within(rows, bytes, limit);
                }
            }
        }
    }

    #[test]
    fn takes_add_up_to_what_arrived() {
        let key = GroupKey { partition: 3, group: 1 };
        for step in 1..=9 {
            let mut hash = StateHash::default();
            let mut group = Group::default();
            group.push(key, Chunk { arrived_ns: 5, rows: 7, bytes: 100 }, &mut hash);
            group.push(key, Chunk { arrived_ns: 5, rows: 4, bytes: 9 }, &mut hash);
            group.push(key, Chunk { arrived_ns: 6, rows: 2, bytes: 3 }, &mut hash);
            assert_eq!(group.chunks.iter().count(), 2, "rows of one time are one chunk");
            let (mut rows, mut bytes) = (0, 0);
            while group.waiting_rows > 0 {
                let taken = group.take(key, step, i64::MAX, &mut hash);
                assert!(taken.0 >= 1 && taken.0 <= step);
                rows += taken.0;
                bytes += taken.1;
            }
            assert_eq!((rows, bytes), (13, 112));
            assert_eq!(hash, StateHash::default(), "nothing waits, nothing is hashed");
        }
    }
}
