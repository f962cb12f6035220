//! The partitions that transactions may commit for. The engine's thread opens and closes the fence at the core's
//! command, and the source's thread closes all of it at its end. The commit thread asks it when the group membership of
//! the offsets' commit is fixed.
//!
//! The fence closes before the consumer tells the group that a partition is let go. Then either the fence says no, and
//! the transaction aborts. Or the group no longer accepts the membership once it moves on. tests/loom tries every order
//! of the threads' steps.

use std::collections::BTreeMap;
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::sync::{Arc, Mutex, MutexGuard};

#[cfg(loom)]
use crate::sync::{Arc, Mutex, MutexGuard};

/// Assignments by partition. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Fence(Arc<Mutex<Assignments>>);

#[derive(Default)]
struct Assignments {
    current: BTreeMap<i32, u64>,
    /// True once the source has ended: nothing is opened any more.
    has_ended: bool,
}

impl Fence {
    fn lock(&self) -> MutexGuard<'_, Assignments> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows commits for a partition under this assignment from now on.
    pub(super) fn open(&self, partition: i32, assignment: u64) {
        let mut assignments = self.lock();
        if !assignments.has_ended {
            assignments.current.insert(partition, assignment);
        }
    }

    /// Closes the fence for a partition: nothing of it may be committed from now on.
    pub(super) fn close(&self, partition: i32) {
        self.lock().current.remove(&partition);
    }

    /// Closes the fence for good: nothing at all may be committed from now on.
    pub(super) fn close_all(&self) {
        let mut assignments = self.lock();
        assignments.current.clear();
        assignments.has_ended = true;
    }

    /// True if sealed work of a partition under this assignment may be committed.
    pub(super) fn is_open(&self, partition: i32, assignment: u64) -> bool {
        self.lock().current.get(&partition) == Some(&assignment)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_ends_and_another_one_is_not_the_same() {
        let fence = Fence::default();
        fence.open(3, 1);
        assert!(fence.is_open(3, 1));
        fence.close(3);
        assert!(!fence.is_open(3, 1));
        fence.open(3, 2);
        assert!(fence.is_open(3, 2) && !fence.is_open(3, 1));
    }

    #[test]
    fn nothing_opens_after_the_end_of_all() {
        let fence = Fence::default();
        fence.open(3, 1);
        fence.close_all();
        fence.open(3, 1);
        fence.open(4, 2);
        assert!(!fence.is_open(3, 1) && !fence.is_open(4, 2));
    }
}
