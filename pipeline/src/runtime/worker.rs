//! A thread of the engine. The process waits for it at its end, but only for a limited time, because the thread may
//! wait for an answer that never comes.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Longest time for which an ending process waits for a thread.
const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

/// A thread that ends by itself once it is asked to.
pub(super) struct Worker {
    name: String,
    /// Disconnected when the thread ends.
    running: Receiver<()>,
    /// Handle; `None` if the system could not start the thread.
    thread: Option<JoinHandle<()>>,
}

/// Starts a thread, or logs the reason if it cannot. In that case its work is dropped, which closes all of the work's
/// channels.
pub(super) fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.inspect_err(|error| report(name, error)).ok()
}

/// Logs why there is no thread.
pub(super) fn report(name: &str, error: &io::Error) {
    tracing::error!(
        thread = name, %error,
        "the system cannot start another thread: raise the limits on memory (ulimit -v) and on processes (ulimit -u)"
    );
}

impl Worker {
    /// Starts the thread. If the system cannot, all users see closed channels at once.
    pub(super) fn start(name: impl Into<String>, work: impl FnOnce() + Send + 'static) -> Self {
        let name = name.into();
        let (alive, running) = bounded(0);
        let thread = start_thread(&name, move || {
            let _alive: Sender<()> = alive;
            work();
        });
        Self { name, running, thread }
    }

    /// True if the thread was started.
    pub(super) fn has_started(&self) -> bool {
        self.thread.is_some()
    }

    /// Waits for the thread's end. A thread that takes too long is abandoned, because the process is about to end.
    pub(super) fn join(self) {
        Self::join_all(vec![self]);
    }

    /// Waits for the ends of several threads, for no longer than for a single one.
    pub(super) fn join_all(workers: Vec<Self>) {
        let deadline = Instant::now() + STOP_WAIT_MAX;
        for worker in workers {
            if worker.running.recv_deadline(deadline).is_err_and(|error| error.is_timeout()) {
                tracing::error!(thread = worker.name, "the thread does not end in time and is abandoned");
            } else if let Some(thread) = worker.thread {
                thread.join().expect("threads of the engine do not panic");
            }
        }
    }
}
