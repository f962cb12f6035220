//! Threads in the background: they yield the processor to those that ticks go through.
//!
//! The lowest layer that needs them is the log, for checkpoints, and the highest is the engine's shell.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Of a priority, on Linux' scale from -20 to 19: a thread of ten less has a tenth of the time where two want the same core.
#[cfg(target_os = "linux")]
const LESS: i32 = 10;

const GONE: &str = "the thread in the background has panicked";

/// A thread that yields the processor to all others, whoever's they are, and does one thing after the other for one that does not.
///
/// It takes from nobody else, and tells nobody else: it may be put aside while it holds the lock of a channel, and then all who
/// use that channel wait. So between it and the engine there is always the thread that calls [`Self::run`].
pub struct BackgroundThread<Job, Done> {
    jobs: SyncSender<Job>,
    done: Receiver<(Done, Duration)>,
}

impl<Job: Send + 'static, Done: Send + 'static> BackgroundThread<Job, Done> {
    /// Starts it, if the system can start a thread. It ends by itself when this is dropped.
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

    /// Has something done, and waits for that; with what time it took of a processor.
    pub fn run(&self, job: Job) -> (Done, Duration) {
        self.jobs.send(job).expect(GONE);
        self.done.recv().expect(GONE)
    }
}

/// Has the calling thread yield, where the system can do that for a thread alone.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(LESS) {
        tracing::debug!(%error, "a thread beside the engine's has the priority of all others");
    }
}

/// Does something on the calling thread, which yields to nobody; with what time it took of a processor.
pub fn run_at_once<Done>(run: impl FnOnce() -> Done) -> (Done, Duration) {
    let since = processor_time();
    let done = run();
    (done, processor_time().saturating_sub(since))
}

/// Time that the calling thread has had of a processor.
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
