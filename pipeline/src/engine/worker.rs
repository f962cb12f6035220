//! A thread of the engine, which is waited for when the process ends, but not for ever: what it waits for may not answer.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

/// How long a process that ends waits for a thread.
const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

/// A thread that ends by itself once it is told.
pub(super) struct Worker {
    name: String,
    /// Ends with the thread.
    running: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts it.
    pub(super) fn start(name: impl Into<String>, work: impl FnOnce() + Send + 'static) -> Self {
        let name = name.into();
        let (alive, running) = bounded(0);
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let _alive: Sender<()> = alive;
                work();
            })
            .expect("the system can start a thread");
        Self { name, running, thread }
    }

    /// Waits for its end. A thread that does not end in time is left alone: the process is about to end.
    pub(super) fn join(self) {
        Self::join_all(vec![self]);
    }

    /// Waits for the ends of several, no longer than for that of one.
    pub(super) fn join_all(workers: Vec<Self>) {
        let deadline = Instant::now() + STOP_WAIT_MAX;
        for worker in workers {
            if worker.running.recv_deadline(deadline).is_err_and(|error| error.is_timeout()) {
                tracing::error!(thread = worker.name, "does not end in time, and is left alone");
            } else {
                worker.thread.join().expect("threads of the engine do not panic");
            }
        }
    }
}
