//! Wakes readers when a producer of the same process commits.
//!
//! Owns a counter of commits and nothing else; it must not know what was committed. Commits of other processes do not
//! pass here: readers look for those whenever a wait times out.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A commit counter to wait on. Producers advance it, waiting readers wake on it.
#[derive(Default)]
pub(super) struct Wake {
    commits: Mutex<u64>,
    advanced: Condvar,
}

impl Wake {
    /// Commits seen so far. Read it *before* looking for data: a commit in between then ends the wait at once.
    pub(super) fn commits(&self) -> u64 {
        *self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes every waiting reader.
    pub(super) fn notify(&self) {
        *self.commits.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.advanced.notify_all();
    }

    /// Waits for a commit after `seen`, at most `timeout`.
    pub(super) fn wait(&self, seen: u64, timeout: Duration) {
        let commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        // Poisoning cannot leave a half-written counter, so a poisoned lock is used as it is.
        let _ = self.advanced.wait_timeout_while(commits, timeout, |commits| *commits == seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_between_look_and_wait_is_not_missed() {
        let wake = Wake::default();
        let seen = wake.commits();
        wake.notify();
        // Would hang for an hour if the commit were missed.
        wake.wait(seen, Duration::from_secs(3600));
        assert_eq!(wake.commits(), seen + 1);
    }
}
