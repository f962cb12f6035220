//! A thread of the engine. A process that ends waits for it, but not for ever, because the thread may wait for an
//! answer that never comes.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Longest wait of an ending process for a thread.
const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

/// A thread that ends by itself once it is told.
pub(super) struct Worker {
    name: String,
    /// Disconnected when the thread ends.
    running: Receiver<()>,
    /// Handle; `None` if the system could start no thread.
    thread: Option<JoinHandle<()>>,
}

/// Starts a thread, or logs why it cannot. Then its work is dropped, which closes all of its channels.
pub(super) fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.inspect_err(|error| report(name, error)).ok()
}

/// Logs why there is no thread.
pub(super) fn report(name: &str, error: &io::Error) {
    tracing::error!(
        thread = name, %error,
        "the system can start no further thread: raise the limits of memory (ulimit -v) and of processes (ulimit -u)"
    );
}

impl Worker {
    /// Starts the thread. If the system cannot, all users see it gone at once.
    pub(super) fn start(name: impl Into<String>, work: impl FnOnce() + Send + 'static) -> Self {
        let name = name.into();
        let (alive, running) = bounded(0);
        let thread = start_thread(&name, move || {
            let _alive: Sender<()> = alive;
            work();
        });
        Self { name, running, thread }
    }

    /// True if there is a thread, or was.
    pub(super) fn has_started(&self) -> bool {
        self.thread.is_some()
    }

    /// Waits for the thread's end. A late thread is left alone, because the process is about to end.
    pub(super) fn join(self) {
        Self::join_all(vec![self]);
    }

    /// Waits for the ends of several threads, no longer than for one.
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
