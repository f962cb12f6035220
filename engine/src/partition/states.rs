//! Snapshots of a partition on their way into the log: at most one under way, and complete ones that wait for commits.

use std::collections::VecDeque;

use warptape_stages::PageState;

use crate::commit::Sealed;
use crate::snapshots::{PendingSnapshot, ReadySnapshot, SnapshotPlace};

/// The snapshots of one partition.
pub(super) struct States {
    under_way: Option<PendingSnapshot>,
    /// Complete snapshots: each waits until all records before its offset are complete. The first may be the rest of
    /// one that is committed in several transactions.
    ready: VecDeque<ReadySnapshot>,
    /// Offset of the last begun snapshot.
    offset: i64,
    /// Place of the last complete or pending snapshot.
    place: SnapshotPlace,
    /// The last snapshot that went into commits in full.
    gone_out: Option<Placed>,
}

/// A snapshot in the log, or on its way there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) offset: i64,
    pub(crate) place: SnapshotPlace,
}

impl States {
    /// Begins with the snapshot from which the state was restored. Before its state was lost, the partition may have
    /// committed a later one that was not in the log when the state was read. No older snapshot may replace it.
    pub(super) fn new(from: Placed, gone_out: Option<Placed>) -> Self {
        let gone_out = gone_out.filter(|later| later.offset > from.offset);
        let Placed { offset, place } = gone_out.unwrap_or(from);
        Self { under_way: None, ready: VecDeque::new(), offset, place, gone_out }
    }

    /// The last snapshot that went into commits in full; `None` if there is none.
    pub(super) fn gone_out(&self) -> Option<Placed> {
        self.gone_out
    }

    /// True if a snapshot is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// True if a snapshot is due at an offset: `records_min` records after the last one, and none is under way or
    /// waiting for a commit.
    pub(super) fn is_due(&self, offset: i64, records_min: i64) -> bool {
        let is_any = self.under_way.is_some() || !self.ready.is_empty();
        !is_any && offset - self.offset >= records_min
    }

    /// Begins a snapshot, which needs the state of each group.
    pub(super) fn begin(&mut self, offset: i64, intake: Vec<u8>, groups: usize) {
        self.offset = offset;
        self.under_way = Some(PendingSnapshot::new(offset, intake, groups));
    }

    /// True if the snapshot at an offset is under way.
    pub(super) fn is_under_way_at(&self, offset: i64) -> bool {
        self.under_way.as_ref().is_some_and(|pending| pending.offset == offset)
    }

    /// Offset of the last begun snapshot.
    pub(super) fn last_offset(&self) -> i64 {
        self.offset
    }

    /// Adds a page of a group, before the state of the group.
    pub(super) fn add_page(&mut self, page: PageState) {
        if let Some(pending) = &mut self.under_way {
            pending.add_page(page);
        }
    }

    /// Adds the state of a group at a barrier. The last group's state makes the snapshot complete.
    pub(super) fn add(&mut self, partition: i32, barrier: i64, group: i32, bytes: Vec<u8>) {
        if let Some(pending) = &mut self.under_way
            && pending.add(barrier, group, bytes)
        {
            let pending = self.under_way.take().expect("it was there a line ago");
            self.ready.push_back(ReadySnapshot::new(partition, pending));
        }
    }

    /// True if records of a snapshot may be committed with the outputs that are complete before an offset.
    pub(super) fn has_unsealed(&self, before: i64) -> bool {
        self.ready.front().is_some_and(|ready| ready.offset <= before)
    }

    /// Seals snapshots, up to about `bytes_max`. A larger one is committed in several transactions, with at least one
    /// record in each. Until it is complete, the previous snapshot stays under other keys.
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
            self.gone_out = Some(Placed { offset: ready.offset, place });
            self.ready.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINNING: Placed = Placed { offset: 0, place: SnapshotPlace::First };

    #[test]
    fn nothing_older_takes_the_place_of_a_snapshot_that_has_gone_out() {
        let mut states = States::new(BEGINNING, None);
        states.begin(15, Vec::new(), 1);
        states.add(0, 15, 0, vec![0; 100]);
        assert_eq!(states.gone_out(), None);
        states.seal(15, 1, &mut Sealed::default());
        assert_eq!(states.gone_out(), None, "the group's state is missing");
        states.seal(15, 1, &mut Sealed::default());
        let gone_out = states.gone_out();
        assert_eq!(gone_out, Some(Placed { offset: 15, place: SnapshotPlace::Second }));
        // A lane is lost, and the state is restored while the commit of the last snapshot is not yet in the log.
        let mut states = States::new(BEGINNING, gone_out);
        assert!(!states.is_due(5, 5) && !states.is_due(19, 5), "there is a later one");
        assert!(states.is_due(20, 5));
        assert_eq!(states.gone_out(), gone_out, "if it happens again");
        states.begin(20, Vec::new(), 1);
        states.add(0, 20, 0, vec![0; 100]);
        states.seal(20, 1, &mut Sealed::default());
        assert_eq!(states.place, SnapshotPlace::First, "beside the one that is complete");
        // A later snapshot in the log counts more than the committed one.
        assert!(States::new(Placed { offset: 30, ..BEGINNING }, gone_out).is_due(35, 5));
    }

    #[test]
    fn no_snapshot_is_begun_while_one_waits_for_its_commits() {
        let mut states = States::new(BEGINNING, None);
        assert!(states.is_due(10, 10), "far enough from the last");
        states.begin(10, Vec::new(), 2);
        assert!(!states.is_due(20, 10), "one is under way");
        states.add(0, 10, 0, vec![0; 100]);
        assert!(states.is_under_way(), "a group has not answered");
        states.add(0, 10, 1, vec![0; 100]);
        assert!(!states.is_under_way());
        assert!(!states.is_due(20, 10), "one waits, and each more would take memory");
        // Each commit takes one record of the snapshot.
        let mut commits = 0;
        while states.has_unsealed(20) {
            states.seal(20, 1, &mut Sealed::default());
            commits += 1;
        }
        assert_eq!(commits, 3, "the intake's state and that of two groups");
        assert!(states.is_due(20, 10));
    }
}
