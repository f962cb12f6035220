//! Time without stalls of the machine. If a machine's disk or processors stand still for seconds, all its processes are
//! late, which shows nothing about the tested code.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two steps of the clock.
const PAUSE: Duration = Duration::from_millis(50);
/// Greatest counted length of a step: the pause, and a write to a working disk. A step takes 51 ms on an idle machine,
/// and 63 ms beside four busy processes on two cores. A longer step means that the machine stood still.
const STEP_MAX: Duration = Duration::from_millis(100);
const WRITE_BYTES: usize = 4096;

/// A clock that stops while a small write does not reach the disk, and while its thread does not run.
pub struct MachineClock {
    /// Time so far, in nanoseconds; written by the thread.
    given_ns: Arc<AtomicU64>,
    /// Ends the thread when it is dropped.
    _stop: Sender<()>,
}

impl MachineClock {
    /// Starts a clock that writes to a file in this folder.
    pub fn start(folder: &Path) -> MachineClock {
        let file = File::create(folder.join("clock")).expect("a file");
        let given_ns = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = channel::<()>();
        let given = given_ns.clone();
        thread::spawn(move || {
            let mut before = Instant::now();
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                file.write_all_at(&[0; WRITE_BYTES], 0).expect("the disk has room");
                file.sync_data().expect("the disk works");
                let step = before.elapsed();
                before += step;
                given.fetch_add(step.min(STEP_MAX).as_nanos() as u64, Ordering::Relaxed);
            }
        });
        MachineClock { given_ns, _stop: stop }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.given_ns.load(Ordering::Relaxed))
    }
}
