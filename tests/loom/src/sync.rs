//! Replaces `std::sync` in the compiled files.

use std::sync::LockResult;
use std::time::Duration;

pub use loom::sync::{Arc, Mutex, MutexGuard};

/// Loom's condition variable, with a wait method of std that loom lacks. Time never runs out here: if nobody wakes a
/// thread, loom reports a deadlock.
#[derive(Default)]
pub struct Condvar(loom::sync::Condvar);

/// Result of a wait, which never times out.
pub struct Woken;

impl Condvar {
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        _: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, Woken)> {
        while condition(&mut guard) {
            guard = self.0.wait(guard).expect("a model ends with the first panic");
        }
        Ok((guard, Woken))
    }
}

impl Woken {
    pub fn timed_out(&self) -> bool {
        false
    }
}
