//! Snapshots of a partition on their way into the log: one under way at most, and those that wait for their commits.

use std::collections::VecDeque;

use crate::commit::Sealed;
use crate::snapshots::{PendingSnapshot, ReadySnapshot, SnapshotPlace};

/// The snapshots of one partition.
pub(super) struct States {
    under_way: Option<PendingSnapshot>,
    /// Snapshots that wait for their offset to be complete, and what is left of one that goes out in several transactions.
    ready: VecDeque<ReadySnapshot>,
    /// Offset of the last one that was begun.
    offset: i64,
    /// Under which keys the last one stands that is complete, or will be.
    place: SnapshotPlace,
}

impl States {
    /// None beside the one at an offset, which stands at this place.
    pub(super) fn new(offset: i64, place: SnapshotPlace) -> Self {
        Self { under_way: None, ready: VecDeque::new(), offset, place }
    }

    /// Whether one is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether a snapshot is due at an offset: `records_min` behind the last one, unless one is under way, or waits to be committed.
    pub(super) fn is_due(&self, offset: i64, records_min: i64) -> bool {
        let is_any = self.under_way.is_some() || !self.ready.is_empty();
        !is_any && offset - self.offset >= records_min
    }

    /// Begins one, for which each of the groups is asked for its state.
    pub(super) fn begin(&mut self, offset: i64, intake: Vec<u8>, groups: usize) {
        self.offset = offset;
        self.under_way = Some(PendingSnapshot::new(offset, intake, groups));
    }

    /// Adds the state of a group at a barrier. With that of the last group a snapshot is ready.
    pub(super) fn add(&mut self, partition: i32, barrier: i64, group: i32, bytes: Vec<u8>) {
        if let Some(pending) = &mut self.under_way
            && pending.add(barrier, group, bytes)
        {
            let pending = self.under_way.take().expect("it was there a line ago");
            self.ready.push_back(ReadySnapshot::new(partition, pending));
        }
    }

    /// Whether some of a snapshot may go out with what is complete before an offset.
    pub(super) fn has_unsealed(&self, before: i64) -> bool {
        self.ready.front().is_some_and(|ready| ready.offset <= before)
    }

    /// Takes snapshots, up to about `bytes_max`. One that is larger goes out in several transactions, at least a record in each. Until
    /// all of it is there, the snapshot before stands beside it, under other keys.
    pub(super) fn seal(&mut self, before: i64, bytes_max: usize, sealed: &mut Sealed) {
        let mut bytes_sealed = 0;
        while let Some(ready) = self.ready.front_mut().filter(|ready| ready.offset <= before) {
            let is_whole = ready.place.is_none() && ready.bytes <= bytes_max.saturating_sub(bytes_sealed);
            let place = *ready.place.get_or_insert(match is_whole {
                true => SnapshotPlace::default(),
                false => self.place.other(),
            });
            self.place = place;
            while (is_whole || bytes_sealed == 0 || bytes_sealed < bytes_max)
                && let Some(record) = ready.records.pop_front()
            {
                bytes_sealed += sealed.add_snapshot(place, &record);
            }
            if !ready.records.is_empty() {
                return;
            }
            self.ready.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_snapshot_is_begun_while_one_waits_for_its_commits() {
        let mut states = States::new(0, SnapshotPlace::default());
        assert!(states.is_due(10, 10), "far enough from the last");
        states.begin(10, Vec::new(), 2);
        assert!(!states.is_due(20, 10), "one is under way");
        states.add(0, 10, 0, vec![0; 100]);
        assert!(states.is_under_way(), "a group has not answered");
        states.add(0, 10, 1, vec![0; 100]);
        assert!(!states.is_under_way());
        assert!(!states.is_due(20, 10), "one waits, and each more would take memory");
        // A record of it in each commit.
        let mut commits = 0;
        while states.has_unsealed(20) {
            states.seal(20, 1, &mut Sealed::default());
            commits += 1;
        }
        assert_eq!(commits, 3, "the intake's state and that of two groups");
        assert!(states.is_due(20, 10));
    }
}
