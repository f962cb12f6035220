//! Wakes readers when a producer of the same process commits to their topics.
//!
//! It owns only counters of commits. `watch` counts the commits of other processes. The crate `tests/loom` runs it in
//! every order of the threads' steps.

use std::sync::{Arc, PoisonError, Weak};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

#[cfg(loom)]
use crate::sync::{Condvar, Mutex, MutexGuard};

/// A counter of commits to wait on. Producers advance it, which wakes the waiting readers.
#[derive(Default)]
pub(super) struct Wake {
    commits: Mutex<u64>,
    advanced: Condvar,
}

impl Wake {
    /// Returns the number of commits so far. Read it *before* checking for data: a commit in between then ends the wait
    /// at once.
    pub(super) fn commits(&self) -> u64 {
        *lock(&self.commits)
    }

    /// Counts a commit and wakes all waiting threads.
    pub(super) fn notify(&self) {
        *lock(&self.commits) += 1;
        self.advanced.notify_all();
    }

    /// Waits for a commit after `seen`, at most `timeout`; returns true if there was one.
    pub(super) fn wait(&self, seen: u64, timeout: Duration) -> bool {
        let commits = lock(&self.commits);
        let waited = self.advanced.wait_timeout_while(commits, timeout, |commits| *commits == seen);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Locks a mutex even if it is poisoned, because its value is always complete.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The counters of one log.
#[derive(Default)]
pub(super) struct Wakes {
    /// Counts all commits.
    pub(super) any: Wake,
    /// Counters of commits to sets of topics, with the topics' numbers. Each exists while a reader holds it.
    of_topics: Mutex<Vec<(Vec<i64>, Weak<Wake>)>>,
}

impl Wakes {
    /// Returns a counter of commits to these topics.
    pub(super) fn of_topics(&self, topics: Vec<i64>) -> Arc<Wake> {
        let wake = Arc::new(Wake::default());
        let mut all = lock(&self.of_topics);
        all.retain(|(_, wake)| wake.strong_count() > 0);
        all.push((topics, Arc::downgrade(&wake)));
        wake
    }

    /// Wakes all waiting threads, after commits to unknown topics.
    pub(super) fn notify_all(&self) {
        self.any.notify();
        lock(&self.of_topics).iter().filter_map(|(_, wake)| wake.upgrade()).for_each(|wake| wake.notify());
    }

    /// Wakes the threads that wait for one of these topics. `topics` is in ascending order.
    pub(super) fn notify(&self, topics: &[i64]) {
        lock(&self.of_topics).retain(|(of, wake)| {
            let Some(wake) = wake.upgrade() else { return false };
            if of.iter().any(|topic| topics.binary_search(topic).is_ok()) {
                wake.notify();
            }
            true
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Longer than any test waits.
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_commit_between_look_and_wait_is_not_missed() {
        let wake = Wake::default();
        let seen = wake.commits();
        assert!(!wake.wait(seen, Duration::ZERO));
        wake.notify();
        assert!(wake.wait(seen, LONG));
        assert_eq!(wake.commits(), seen + 1);
    }

    #[test]
    fn who_reads_other_topics_sleeps_on() {
        let wakes = Wakes::default();
        let (one, two) = (wakes.of_topics(vec![3]), wakes.of_topics(vec![1, 4]));
        let gone = wakes.of_topics(vec![3]);
        drop(gone);
        let counts = |topics: &[i64]| {
            wakes.notify(topics);
            [one.commits(), two.commits()]
        };
        assert_eq!(counts(&[2, 5]), [0, 0]);
        assert_eq!(counts(&[2, 3]), [1, 0]);
        assert_eq!(counts(&[1, 3, 4]), [2, 1]);
        assert_eq!(lock(&wakes.of_topics).len(), 2, "nobody waits for what is gone");
        assert_eq!(wakes.any.commits(), 0);
    }
}
