//! Intervals in which a process recorded nothing.
//!
//! A journal has no heartbeat, and a process with nothing to do records nothing. A stuck process is recognised by an
//! event that was due but did not happen. For example, a commit is late after a SIGSTOP, or after the machine was
//! suspended.

use warptape_schemas::journal::{Decision, Input};

use super::items::{Hole, HoleCause};
use crate::moment::Moment;

/// Shortest silence that counts as a hole, in ns. Shorter ones occur while threads wait for the processor.
const HOLE_NS: i64 = 250_000_000;
/// Number of shortest seal intervals by which a commit may be late.
const INTERVALS_LATE: i64 = 2;

/// Actions that are due in a process life.
#[derive(Clone, Default)]
pub(super) struct Due {
    /// Time at which the scheduler asked to be woken, according to the last entry.
    wake_ns: Option<i64>,
    /// True if rows arrived since the last seal.
    has_unsealed: bool,
    /// Time of the last seal, and the shortest interval between two seals. A commit is due within this interval after
    /// rows are done.
    sealed_ns: Option<i64>,
    seal_interval_ns: Option<i64>,
}

impl Due {
    /// Adds the next entry, after any hole that ends with it.
    pub(super) fn step(&mut self, at_ns: i64, input: &Input, decisions: &[Decision]) {
        self.wake_ns = decisions.iter().rev().find_map(|decision| match decision {
            Decision::WakeAt(wake) => Some(wake.at_ns),
            _ => None,
        });
        match input {
            Input::Started(_) => *self = Self::default(),
            Input::Arrived(_) => self.has_unsealed = true,
            Input::Sealed(_) => {
                self.has_unsealed = false;
                let since_ns = self.sealed_ns.map(|sealed_ns| at_ns.saturating_sub(sealed_ns));
                let shortest = self.seal_interval_ns.into_iter().chain(since_ns).min();
                (self.sealed_ns, self.seal_interval_ns) = (Some(at_ns), shortest);
            }
            _ => {}
        }
    }

    /// Returns the hole between two entries; `None` if they are too close. A working lane, or a log that is writing a
    /// transaction, explains a silence.
    pub(super) fn hole(
        &self,
        from: Moment,
        until: Moment,
        has_work: bool,
        is_committing: bool,
    ) -> Option<Hole> {
        let ns = until.at_ns.saturating_sub(from.at_ns);
        if ns < HOLE_NS {
            return None;
        }
        let is_late = |due_ns: i64| due_ns.saturating_add(HOLE_NS) <= until.at_ns;
        let has_overslept = self.wake_ns.is_some_and(is_late);
        let commit_due_ns = self
            .seal_interval_ns
            .filter(|_| self.has_unsealed && !has_work)
            .map(|interval_ns| from.at_ns.saturating_add(interval_ns.saturating_mul(INTERVALS_LATE)));
        let cause = match () {
            () if has_overslept => HoleCause::StoodStill,
            () if is_committing => HoleCause::Log,
            () if commit_due_ns.is_some_and(is_late) => HoleCause::StoodStill,
            () => HoleCause::Silence,
        };
        Some(Hole { from, until, cause })
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::journal::{Arrived, Sealed, WakeAt, Woke};

    use super::*;

    const MS: i64 = 1_000_000;

    type Entry = (i64, Input, Vec<Decision>);

    fn entry(at_ms: i64, input: Input, decisions: Vec<Decision>) -> Entry {
        (at_ms * MS, input, decisions)
    }

    fn arrived() -> Input {
        Input::Arrived(Arrived { partition: 0, next_offset: 1, groups: Vec::new() })
    }

    fn sealed() -> Input {
        Input::Sealed(Sealed { partitions: Vec::new() })
    }

    #[track_caller]
    fn check(entries: Vec<Entry>, until_ms: i64, busy: (bool, bool), expected: Option<HoleCause>) {
        let mut due = Due::default();
        entries.iter().for_each(|(at_ns, input, decisions)| due.step(*at_ns, input, decisions));
        let at = |at_ns| Moment { sequence: 0, at_ns };
        let from = at(entries.last().map_or(0, |(at_ns, ..)| *at_ns));
        let hole = due.hole(from, at(until_ms * MS), busy.0, busy.1);
        assert_eq!(hole.map(|hole| hole.cause), expected);
    }

    #[test]
    fn who_oversleeps_stood_still() {
        let sealed_twice = || vec![entry(0, sealed(), vec![]), entry(100, sealed(), vec![])];
        let with_rows = || [sealed_twice(), vec![entry(110, arrived(), vec![])]].concat();
        // The shortest hole is a quarter of a second. In a quiet market nothing is due.
        check(with_rows(), 350, (false, false), None);
        check(sealed_twice(), 9_000, (false, false), Some(HoleCause::Silence));
        // Finished rows wait for their commit, which was due.
        check(with_rows(), 500, (false, false), Some(HoleCause::Silence));
        check(with_rows(), 2_000, (false, false), Some(HoleCause::StoodStill));
        // Work on a lane may take that long, and so may the log.
        check(with_rows(), 2_000, (true, false), Some(HoleCause::Silence));
        check(with_rows(), 2_000, (false, true), Some(HoleCause::Log));
        // The longest wait for a commit is unknown until there were two commits.
        check(
            vec![entry(0, sealed(), vec![]), entry(1, arrived(), vec![])],
            9_000,
            (false, false),
            Some(HoleCause::Silence),
        );
        let wake = Decision::WakeAt(WakeAt { at_ns: 150 * MS });
        let asked = || vec![entry(100, arrived(), vec![wake.clone()])];
        check(asked(), 390, (true, true), Some(HoleCause::Log));
        check(asked(), 2_000, (true, true), Some(HoleCause::StoodStill));
        let woken = [asked(), vec![entry(150, Input::Woke(Woke {}), vec![])]].concat();
        check(woken, 2_000, (false, false), Some(HoleCause::Silence));
    }
}
