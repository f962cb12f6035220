//! A flag for Ctrl-C, SIGTERM and SIGHUP, which loops can check and wait for.

use std::io;
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A flag that the first Ctrl-C, SIGTERM or SIGHUP sets. A second signal, [`REPEAT_AFTER`] later or more, ends the
/// process at once. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Time of the first signal, written by the thread that watches signals; `None` before it.
    since: Mutex<Option<Instant>>,
    /// Wakes the threads in [`Interrupt::wait`].
    changed: Condvar,
}

/// Time after the first signal within which a further one counts as the same request. Supervisors signal both the
/// process and its group (`timeout` of coreutils does).
const REPEAT_AFTER: Duration = Duration::from_millis(500);

/// Exit code of a process that a second signal ends: 128 plus SIGINT, as in shells.
const KILLED: i32 = 130;

impl Interrupt {
    /// Watches for the signals of this process from now on.
    pub fn install() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let runtime = runtime()?;
        let (mut ctrl_c, mut terminate, mut hang_up) = {
            let _guard = runtime.enter();
            // A process started with `nohup` outlives its terminal.
            let hang_up = if is_ignored(SIGHUP) { None } else { Some(signal(SignalKind::hangup())?) };
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, hang_up)
        };
        let shared = interrupt.clone();
        let watch = move || {
            runtime.block_on(async {
                loop {
                    any(&mut ctrl_c, &mut terminate, hang_up.as_mut()).await;
                    if shared.receive(Instant::now()) {
                        break;
                    }
                }
            });
            kill();
        };
        thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
        Ok(interrupt)
    }

    /// Sets the flag as a first signal does, for callers that learn of signals by themselves.
    pub fn set(&self) {
        self.lock().get_or_insert(Instant::now());
        self.0.changed.notify_all();
    }

    /// True if a signal was received.
    pub fn is_set(&self) -> bool {
        self.since().is_some()
    }

    /// Returns the time of the first signal; `None` if none was received.
    pub fn since(&self) -> Option<Instant> {
        *self.lock()
    }

    /// Waits for a signal, at most for `timeout`. Returns true if one has come.
    pub fn wait(&self, timeout: Duration) -> bool {
        let waited = self.0.changed.wait_timeout_while(self.lock(), timeout, |since| since.is_none());
        waited.expect("nobody panics while holding it").0.is_some()
    }

    /// Records a signal that came at `now`. Returns true if it is the second one, which ends the process.
    fn receive(&self, now: Instant) -> bool {
        let first = *self.lock().get_or_insert(now);
        self.0.changed.notify_all();
        now.duration_since(first) >= REPEAT_AFTER
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.since.lock().expect("nobody panics while holding it")
    }
}

/// SIGXFSZ, sent for a write beyond the process's file-size limit (`ulimit -f`); the number is that of Linux and macOS.
const SIGXFSZ: i32 = 25;

/// Makes a write beyond the file-size limit fail with a reported error, instead of ending the process.
pub(super) fn outlive_file_limit() -> io::Result<()> {
    let runtime = runtime()?;
    let _guard = runtime.enter();
    // The handler stays installed until the process ends.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// Pairs of descriptors that must be free: tokio (1.54.1) panics if it cannot open those for its watch on signals.
const PAIRS_FREE_MIN: usize = 4;

fn runtime() -> io::Result<Runtime> {
    let pairs = (0..PAIRS_FREE_MIN).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>();
    drop(pairs.map_err(|error| {
        io::Error::new(error.kind(), format!("{error}: raise the limit of this process (ulimit -n)"))
    })?);
    tokio::runtime::Builder::new_current_thread().enable_io().build()
}

async fn any(ctrl_c: &mut Signal, terminate: &mut Signal, hang_up: Option<&mut Signal>) {
    let hung_up = async {
        match hang_up {
            Some(signal) => signal.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = ctrl_c.recv() => {}
        _ = terminate.recv() => {}
        _ = hung_up => {}
    }
}

/// Number of SIGHUP, which a closing terminal sends.
const SIGHUP: u32 = 1;

/// True if this process was started with the signal ignored; reads Linux's `/proc/self/status`.
fn is_ignored(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    ignored.is_some_and(|set| set >> (number - 1) & 1 == 1)
}

#[expect(clippy::disallowed_methods, reason = "a second signal means: now, without the drain that hangs")]
fn kill() -> ! {
    crate::terminal::restore_at_exit();
    process::exit(KILLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_it_is_set() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.wait(Duration::ZERO));
        let setter = interrupt.clone();
        let thread = thread::spawn(move || setter.receive(Instant::now()));
        // Without the wake-up this would take an hour.
        assert!(interrupt.wait(Duration::from_secs(3600)));
        assert!(!thread.join().expect("the setter ends"));
        assert!(interrupt.is_set());
    }

    #[test]
    fn a_signal_to_the_process_and_to_its_group_is_one() {
        let interrupt = Interrupt::default();
        let first = Instant::now();
        assert!(!interrupt.receive(first));
        assert!(!interrupt.receive(first + Duration::from_millis(1)));
        assert!(interrupt.receive(first + REPEAT_AFTER));
        assert_eq!(interrupt.since(), Some(first));
    }
}
