//! A thread in the background for jobs that take so long that ticks should not wait for them. It does them one after the other.

use crossbeam_channel::{Receiver, Sender, unbounded};
use warptape_background::{BackgroundThread, run_at_once};

use super::EngineError;
use super::worker::{Worker, report};

/// Handle of the thread.
pub(super) struct BackgroundJobs<Job, Done> {
    thread: &'static str,
    jobs: Sender<(Job, Haste)>,
    done: Receiver<Done>,
    worker: Worker,
}

/// Whether a job yields the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Haste {
    /// To all others.
    Yields,
    /// To nobody: it is of a critical task.
    AtOnce,
}

impl<Job: Send + 'static, Done: Send + 'static> BackgroundJobs<Job, Done> {
    /// Starts the thread. Whoever gives it jobs bounds how many wait.
    pub(super) fn start(thread: &'static str, run: impl Fn(Job) -> Done + Clone + Send + 'static) -> Self {
        let (jobs, received) = unbounded();
        let (sent, done) = unbounded();
        let background = BackgroundThread::start(thread, run.clone());
        let worker = Worker::start(thread, move || {
            let background = match background {
                Ok(background) => background,
                Err(error) => return report(thread, &error),
            };
            for (job, haste) in received {
                let (done, _) = match haste {
                    Haste::Yields => background.run(job),
                    Haste::AtOnce => run_at_once(|| run(job)),
                };
                // An engine that has ended reads no more.
                if sent.send(done).is_err() {
                    return;
                }
            }
        });
        Self { thread, jobs, done, worker }
    }

    /// Gives the thread a job.
    pub(super) fn run(&self, job: Job, haste: Haste) -> Result<(), EngineError> {
        self.jobs.send((job, haste)).map_err(|_| self.gone())
    }

    /// The jobs that are done, with what came of them.
    pub(super) fn done(&self) -> &Receiver<Done> {
        &self.done
    }

    /// The error that the thread has ended, which it never does by itself.
    pub(super) fn gone(&self) -> EngineError {
        EngineError::ThreadGone { thread: self.thread }
    }

    /// Ends the thread after the job that it is at, and waits for that.
    pub(super) fn stop(self) {
        drop(self.jobs);
        drop(self.done);
        self.worker.join();
    }
}
