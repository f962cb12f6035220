//! Background threads for jobs that are too long to let ticks wait. Each thread does its jobs one after the other.

use crossbeam_channel::{Receiver, Sender, unbounded};
use warptape_engine::Haste;
use warptape_eventlog::background::BackgroundThread;

use super::EngineError;
use super::worker::{Worker, report};

/// Handle of three threads. One yields to ticks, and the system may delay it while other threads need the core. The
/// other two do not yield: one runs short jobs, and one runs critical jobs. So a delayed job holds up no others, and
/// critical jobs wait only for each other.
pub(super) struct BackgroundJobs<Job, Done> {
    name: &'static str,
    /// Jobs by urgency.
    jobs: [Sender<Job>; 3],
    done: Receiver<Done>,
    workers: Vec<Worker>,
}

impl<Job: Send + 'static, Done: Send + 'static> BackgroundJobs<Job, Done> {
    /// Starts the threads. The caller must limit the number of waiting jobs.
    pub(super) fn start(name: &'static str, run: impl Fn(Job) -> Done + Clone + Send + 'static) -> Self {
        let (sent, done) = unbounded();
        let [(at_once, to_run), (soon, to_run_soon), (yielding, to_yield)] = [(); 3].map(|()| unbounded());
        let background = BackgroundThread::start(name, run.clone());
        let [of_yielding, of_soon] = [sent.clone(), sent.clone()];
        let run_soon = run.clone();
        let workers = vec![
            Worker::start(name, move || match background {
                Ok(background) => work(&to_yield, &of_yielding, |job| background.run(job).0),
                Err(error) => report(name, &error),
            }),
            Worker::start(format!("{name}/soon"), move || work(&to_run_soon, &of_soon, run_soon)),
            Worker::start(format!("{name}/now"), move || work(&to_run, &sent, run)),
        ];
        Self { name, jobs: [at_once, soon, yielding], done, workers }
    }

    /// Gives a job to the thread for its urgency.
    pub(super) fn run(&self, job: Job, haste: Haste) -> Result<(), EngineError> {
        self.jobs[haste as usize].send(job).map_err(|_| self.gone())
    }

    /// Returns the finished jobs with their results.
    pub(super) fn done(&self) -> &Receiver<Done> {
        &self.done
    }

    /// Returns the error for an ended thread; threads never end by themselves.
    pub(super) fn gone(&self) -> EngineError {
        EngineError::ThreadGone { thread: self.name }
    }

    /// Ends the threads after their current jobs, and waits for them.
    pub(super) fn stop(self) {
        drop(self.jobs);
        drop(self.done);
        Worker::join_all(self.workers);
    }
}

/// Does jobs one after the other. Results for an ended engine are dropped.
fn work<Job, Done>(jobs: &Receiver<Job>, done: &Sender<Done>, mut run: impl FnMut(Job) -> Done) {
    for job in jobs {
        if done.send(run(job)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;

    /// A job that waits for others simulates one that the system has delayed.
    #[test]
    fn what_is_put_off_stands_before_nothing_that_does_not_yield() {
        let (go, wait) = bounded::<()>(0);
        let jobs = BackgroundJobs::start("jobs", move |job: Haste| {
            if job == Haste::Yields {
                _ = wait.recv();
            }
            job
        });
        for haste in [Haste::Yields, Haste::Yields, Haste::AtOnce, Haste::AtOnce] {
            jobs.run(haste, haste).expect("the threads run");
        }
        let done = || jobs.done().recv().expect("it is done");
        assert_eq!([done(), done()], [Haste::AtOnce; 2]);
        drop(go);
        assert_eq!([done(), done()], [Haste::Yields; 2]);
        jobs.stop();
    }
}
