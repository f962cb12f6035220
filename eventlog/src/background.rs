//! Background threads, which yield the processor to the threads that process ticks.
//!
//! They are defined here because the log is the lowest layer that needs them, for checkpoints; the engine's shell uses
//! them too.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Niceness added to the thread, on Linux's scale from -20 to 19. With ten, it gets about a tenth of a contended core.
#[cfg(target_os = "linux")]
const LESS: i32 = 10;

const GONE: &str = "the background thread has panicked";

/// A thread that yields the processor to all other threads and runs one job after another for a thread of normal
/// priority.
///
/// Jobs and results pass only between it and the caller of [`Self::run`], never directly between it and the engine. The
/// reason: it may be preempted while it holds a channel's lock, and then all users of that channel wait.
pub struct BackgroundThread<Job, Done> {
    jobs: SyncSender<Job>,
    done: Receiver<(Done, Duration)>,
}

impl<Job: Send + 'static, Done: Send + 'static> BackgroundThread<Job, Done> {
    /// Starts the thread; fails if the system cannot start one. It ends by itself when this value is dropped.
    pub fn start(name: &str, mut run: impl FnMut(Job) -> Done + Send + 'static) -> io::Result<Self> {
        let (jobs, received) = sync_channel(1);
        let (sent, done) = sync_channel(1);
        let work = move || {
            yield_to_others();
            for job in received {
                if sent.send(run_at_once(|| run(job))).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name(format!("{name}/nice")).spawn(work)?;
        Ok(Self { jobs, done })
    }

    /// Runs a job on the thread and waits for it; returns its result and the processor time that it took.
    pub fn run(&self, job: Job) -> (Done, Duration) {
        self.jobs.send(job).expect(GONE);
        self.done.recv().expect(GONE)
    }
}

/// Lowers the priority of the calling thread, if the system supports that for a single thread.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(LESS) {
        tracing::debug!(%error, "a background thread runs at normal priority, because its priority could not \
                                 be lowered");
    }
}

/// Runs a job on the calling thread at normal priority; returns its result and the processor time that it took.
pub fn run_at_once<Done>(run: impl FnOnce() -> Done) -> (Done, Duration) {
    let since = processor_time();
    let done = run();
    (done, processor_time().saturating_sub(since))
}

/// Returns the processor time that the calling thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    fn priority() -> i32 {
        getpriority_process(None).expect("it has one")
    }

    #[test]
    fn one_thread_yields_and_no_other() {
        let before = priority();
        let background = BackgroundThread::start("yields", |()| priority()).unwrap();
        assert_eq!(background.run(()).0, (before + LESS).min(19));
        assert_eq!(priority(), before);
    }

    #[test]
    fn what_is_waited_for_takes_no_time() {
        let (go, wait) = sync_channel(1);
        let background = BackgroundThread::start("yields", move |is_idle| match is_idle {
            true => wait.recv_timeout(Duration::from_millis(200)).is_ok(),
            false => {
                let since = processor_time();
                while processor_time() - since < Duration::from_millis(20) {}
                true
            }
        })
        .unwrap();
        let (_, busy) = background.run(false);
        let (has_come, idle) = background.run(true);
        drop::<SyncSender<()>>(go);
        assert!(!has_come && idle < busy && busy >= Duration::from_millis(20), "{idle:?}, {busy:?}");
    }
}
