//! Ageing: the order of tasks by the time that they have waited for a slice.
//!
//! It owns the order of waiting; it must not know which lane may take which task.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use warptape_events::journal::TaskId;

use super::CLASS_SLICES;

/// Index of the slice for aged tasks among [`CLASS_SLICES`] slices: it is for the task that has waited longest, if that
/// is aged. The last slice goes to a less urgent class.
const AGED_SLICE: i64 = 7;

const _: () = assert!(AGED_SLICE < CLASS_SLICES - 1);

/// Tasks with units to begin, by the start of their last slice, or by their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ageing {
    waiting: BTreeSet<(i64, TaskId)>,
    /// Time without a slice after which a task is aged; 0: tasks never age.
    ageing_ns: i64,
}

impl Ageing {
    pub(crate) fn new(ageing_ns: i64) -> Self {
        Self { waiting: BTreeSet::new(), ageing_ns }
    }

    /// True if tasks age at all.
    pub(crate) fn is_on(&self) -> bool {
        self.ageing_ns > 0
    }

    /// True if this slice is the one for aged tasks.
    pub(crate) fn is_turn(&self, slice: i64) -> bool {
        self.is_on() && slice % CLASS_SLICES == AGED_SLICE
    }

    /// Adds a task with units to begin, whose last slice or arrival was at `since_ns`.
    pub(crate) fn insert(&mut self, since_ns: i64, task: TaskId) {
        if self.is_on() {
            self.waiting.insert((since_ns, task));
        }
    }

    /// Removes a task before it changes.
    pub(crate) fn remove(&mut self, since_ns: i64, task: TaskId) {
        self.waiting.remove(&(since_ns, task));
    }

    /// The aged tasks, the one that has waited longest first.
    pub(crate) fn aged(&self, at_ns: i64) -> impl Iterator<Item = TaskId> {
        let is_aged =
            move |(since_ns, _): &&(i64, TaskId)| self.is_on() && since_ns + self.ageing_ns <= at_ns;
        self.waiting.iter().take_while(is_aged).map(|(_, task)| *task)
    }

    /// Time at which the next task becomes aged; `i64::MAX` if there is none.
    pub(crate) fn next_ns(&self, at_ns: i64) -> i64 {
        if !self.is_on() {
            return i64::MAX;
        }
        let next = self.waiting.range((at_ns - self.ageing_ns + 1, TaskId::MIN)..).next();
        next.map_or(i64::MAX, |(since_ns, _)| since_ns + self.ageing_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_age_in_the_order_in_which_they_wait() {
        let mut ageing = Ageing::new(100);
        [(30, 1), (10, 2), (10, 3), (90, 0)]
            .into_iter()
            .for_each(|(since_ns, task)| ageing.insert(since_ns, task));
        let aged = |ageing: &Ageing, at_ns| ageing.aged(at_ns).collect::<Vec<_>>();
        assert_eq!((aged(&ageing, 109), ageing.next_ns(109)), (vec![], 110));
        assert_eq!((aged(&ageing, 110), ageing.next_ns(110)), (vec![2, 3], 130));
        ageing.remove(10, 2);
        assert_eq!((aged(&ageing, 190), ageing.next_ns(190)), (vec![3, 1, 0], i64::MAX));
        let mut off = Ageing::new(0);
        off.insert(1, 1);
        assert_eq!((aged(&off, 1 << 60), off.next_ns(5), off.is_turn(7)), (vec![], i64::MAX, false));
        assert!(ageing.is_turn(23) && !ageing.is_turn(15));
    }
}
