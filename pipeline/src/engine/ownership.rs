//! Which partitions are this process's: the engine writes it before it lets go of one, and the commit thread reads it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Assignments by partition, counted over all of them. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Ownership(Arc<Mutex<Assignments>>);

#[derive(Default)]
struct Assignments {
    current: BTreeMap<i32, u64>,
    total: u64,
}

impl Ownership {
    fn lock(&self) -> MutexGuard<'_, Assignments> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition is this process's, from now on if it was not before.
    pub(super) fn begin(&self, partition: i32) {
        let Assignments { current, total } = &mut *self.lock();
        current.entry(partition).or_insert_with(|| {
            *total += 1;
            *total
        });
    }

    /// It is no longer.
    pub(super) fn end(&self, partition: i32) {
        self.lock().current.remove(&partition);
    }

    /// No partition is.
    pub(super) fn end_all(&self) {
        self.lock().current.clear();
    }

    /// The current assignment of a partition.
    pub(super) fn of(&self, partition: i32) -> Option<u64> {
        self.lock().current.get(&partition).copied()
    }

    /// Whether a partition has been this process's ever since this assignment.
    pub(super) fn holds(&self, partition: i32, assignment: u64) -> bool {
        self.of(partition) == Some(assignment)
    }
}
