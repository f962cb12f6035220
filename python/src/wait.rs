//! Runs long work beside the interpreter; Ctrl-C ends it.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use warptape_pipeline::cli::Interrupt;

use crate::{Error, exception};

/// Time between two checks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Longest wait for work to end after Ctrl-C. Work that takes longer ends on its own, and its result is dropped.
const END: Duration = Duration::from_secs(5);

/// Ends the current thread's work after Ctrl-C, without a message.
pub fn end_if(interrupt: &Interrupt) {
    if interrupt.is_set() {
        resume_unwind(Box::new("interrupted"));
    }
}

/// Runs work on its own thread, without the interpreter's lock. Ctrl-C sets the interrupt and raises
/// `KeyboardInterrupt`.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    interrupt: &Interrupt,
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    // The receiver may be gone, because nobody waits for interrupted work.
    let work = move || drop(sender.send(work()));
    thread::Builder::new().name("warptape".to_owned()).spawn(work)?;
    let mut wait = |timeout: Duration| {
        let receiver = &mut receiver;
        py.detach(move || receiver.recv_timeout(timeout))
    };
    loop {
        match wait(LOOK) {
            Ok(done) => return done.map_err(|error| exception(&error)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new_err(
                    "the call failed because of a defect; see standard error for its message",
                ));
            }
        }
        if let Err(interrupted) = py.check_signals() {
            interrupt.set();
            drop(wait(END));
            return Err(interrupted);
        }
    }
}
