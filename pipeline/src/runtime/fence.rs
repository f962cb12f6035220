//! The partitions for which transactions may commit. The engine's thread opens and closes the fence when the core
//! commands it, and the source's thread closes all of it when it ends. The commit thread asks the fence after it has
//! fixed the group membership with which it commits offsets.
//!
//! The fence closes before the consumer tells the group that it gives up a partition. Then there are two cases. If the
//! fence is asked later, it refuses, and the transaction aborts. If it was asked earlier, the group rejects the old
//! membership once it has moved on. tests/loom tries every order of the threads' steps.

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
    /// True once the source has ended: the fence then never opens again.
    has_ended: bool,
}

impl Fence {
    fn lock(&self) -> MutexGuard<'_, Assignments> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows commits for a partition under this assignment.
    pub(super) fn open(&self, partition: i32, assignment: u64) {
        let mut assignments = self.lock();
        if !assignments.has_ended {
            assignments.current.insert(partition, assignment);
        }
    }

    /// Closes the fence for a partition, whose work can no longer be committed.
    pub(super) fn close(&self, partition: i32) {
        self.lock().current.remove(&partition);
    }

    /// Closes the fence permanently: nothing can be committed any more.
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
