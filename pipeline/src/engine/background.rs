//! A thread in the background that does one thing after the other, as they come: what would take so long that ticks should not wait
//! for it.

use crossbeam_channel::{Receiver, Sender, unbounded};
use warptape_background::BackgroundThread;

use super::EngineError;
use super::worker::{Worker, report};

/// Handle of the thread.
pub(super) struct BackgroundJobs<Job, Done> {
    thread: &'static str,
    jobs: Sender<Job>,
    done: Receiver<Done>,
    worker: Worker,
}

impl<Job: Send + 'static, Done: Send + 'static> BackgroundJobs<Job, Done> {
    /// Starts it. What waits is bounded by who has it done.
    pub(super) fn start(thread: &'static str, run: impl Fn(Job) -> Done + Send + 'static) -> Self {
        let (jobs, received) = unbounded();
        let (sent, done) = unbounded();
        let background = BackgroundThread::start(thread, run);
        let worker = Worker::start(thread, move || {
            let background = match background {
                Ok(background) => background,
                Err(error) => return report(thread, &error),
            };
            for job in received {
                // An engine that has ended reads no more.
                if sent.send(background.run(job).0).is_err() {
                    return;
                }
            }
        });
        Self { thread, jobs, done, worker }
    }

    /// Has something done.
    pub(super) fn run(&self, job: Job) -> Result<(), EngineError> {
        self.jobs.send(job).map_err(|_| self.gone())
    }

    /// What is done.
    pub(super) fn done(&self) -> &Receiver<Done> {
        &self.done
    }

    /// The thread has ended, which it does for nobody.
    pub(super) fn gone(&self) -> EngineError {
        EngineError::ThreadGone { thread: self.thread }
    }

    /// Ends it after what it is at, and waits for that.
    pub(super) fn stop(self) {
        drop(self.jobs);
        drop(self.done);
        self.worker.join();
    }
}
