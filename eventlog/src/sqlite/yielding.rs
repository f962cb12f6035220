//! A value shared by a background thread and commits, one user at a time. A commit interrupts only a user that yields.
//!
//! It does not know the value's meaning. The crate `tests/loom` runs it in all orders of the threads' steps with up to
//! three preemptions.

#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};
use std::sync::{PoisonError, TryLockError};

#[cfg(loom)]
use crate::sync::{Mutex, MutexGuard};

/// The value, and the means to interrupt its use.
pub(super) struct Breakable<Value, Breaker> {
    value: Mutex<Option<Value>>,
    /// The means to interrupt, set while the value's user yields. It is called under the lock, so that it never
    /// interrupts the user's next step.
    yields: Mutex<Option<Breaker>>,
}

impl<Value, Breaker> Default for Breakable<Value, Breaker> {
    fn default() -> Self {
        Self { value: Mutex::default(), yields: Mutex::default() }
    }
}

impl<Value, Breaker> Breakable<Value, Breaker> {
    /// Takes the value once no other user has it. A yielding user is interrupted, again after each pause, because it
    /// may not have begun yet.
    pub(super) fn take(
        &self,
        break_off: impl Fn(&Breaker),
        pause: impl Fn(),
    ) -> MutexGuard<'_, Option<Value>> {
        loop {
            match self.value.try_lock() {
                Ok(value) => return value,
                Err(TryLockError::Poisoned(value)) => return value.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            if let Some(breaker) = &*self.yields.lock().unwrap_or_else(PoisonError::into_inner) {
                break_off(breaker);
            }
            pause();
        }
    }

    /// Runs `run` at low priority, so that waiting threads may interrupt it. Only the current user of the value calls
    /// this.
    pub(super) fn run_yielding<Done>(&self, breaker: Breaker, run: impl FnOnce() -> Done) -> Done {
        let set = |breaker| *self.yields.lock().unwrap_or_else(PoisonError::into_inner) = breaker;
        set(Some(breaker));
        let done = run();
        set(None);
        done
    }
}
