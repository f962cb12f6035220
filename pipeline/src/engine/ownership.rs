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
    /// The source has ended: nothing becomes this process's any more.
    has_ended: bool,
}

impl Ownership {
    fn lock(&self) -> MutexGuard<'_, Assignments> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition is this process's, from now on if it was not before.
    pub(super) fn begin(&self, partition: i32) {
        let Assignments { current, total, has_ended } = &mut *self.lock();
        if *has_ended {
            return;
        }
        current.entry(partition).or_insert_with(|| {
            *total += 1;
            *total
        });
    }

    /// It is no longer.
    pub(super) fn end(&self, partition: i32) {
        self.lock().current.remove(&partition);
    }

    /// No partition is, nor will be.
    pub(super) fn end_all(&self) {
        let mut assignments = self.lock();
        assignments.current.clear();
        assignments.has_ended = true;
    }

    /// Whether the source has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().has_ended
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_ends_and_another_one_is_not_the_same() {
        let ownership = Ownership::default();
        ownership.begin(3);
        let first = ownership.of(3).expect("it is this process's");
        ownership.begin(3);
        assert!(ownership.holds(3, first), "a restore begins no other assignment");
        ownership.end(3);
        assert!(!ownership.holds(3, first));
        ownership.begin(3);
        assert!(ownership.of(3).is_some() && !ownership.holds(3, first));
    }

    #[test]
    fn nothing_begins_after_the_end_of_all() {
        let ownership = Ownership::default();
        ownership.begin(3);
        ownership.end_all();
        ownership.begin(3);
        ownership.begin(4);
        assert_eq!([ownership.of(3), ownership.of(4)], [None, None]);
    }
}
