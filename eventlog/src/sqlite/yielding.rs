//! A value that a thread in the background and commits use in turn: a commit breaks off what yields to it, and nothing else.
//!
//! It must not know what the value is. tests/loom tries it in the orders of the threads' steps with up to three preemptions.

#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};
use std::sync::{PoisonError, TryLockError};

#[cfg(loom)]
use crate::sync::{Mutex, MutexGuard};

/// The value, and what breaks off a use of it.
pub(super) struct Breakable<Value, Breaker> {
    value: Mutex<Option<Value>>,
    /// Set while the value's user yields. It is called under the lock, so that it never meets what the user does next.
    yields: Mutex<Option<Breaker>>,
}

impl<Value, Breaker> Default for Breakable<Value, Breaker> {
    fn default() -> Self {
        Self { value: Mutex::default(), yields: Mutex::default() }
    }
}

impl<Value, Breaker> Breakable<Value, Breaker> {
    /// The value, once nobody else uses it. A user that yields is broken off, again after each pause: it may not have begun yet.
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

    /// Runs what yields to those who wait; who has taken the value calls it.
    pub(super) fn run_yielding<Done>(&self, breaker: Breaker, run: impl FnOnce() -> Done) -> Done {
        let set = |breaker| *self.yields.lock().unwrap_or_else(PoisonError::into_inner) = breaker;
        set(Some(breaker));
        let done = run();
        set(None);
        done
    }
}
