//! Processes of the binary. They run to their end, or beside the test, which ends them when it ends at the latest.

use std::fmt::Debug;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warptape_eventlog::{EventLog, SqliteLog, TopicPartition};

/// Time limit of any step of a test; it far exceeds the time that a busy machine needs.
pub const DEADLINE: Duration = Duration::from_secs(120);
/// Wait of a test between two checks of a state that has no notifications.
const LOOK: Duration = Duration::from_millis(10);

/// The binary under test.
pub const WARPTAPE: &str = env!("CARGO_BIN_EXE_warptape");

/// Creates a folder that is removed with the test.
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Runs the binary in a folder with exactly these arguments and variables.
pub fn warptape_with(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(WARPTAPE)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts")
}

/// Runs the binary in a folder with exactly these arguments.
pub fn warptape(folder: &Path, arguments: &[&str]) -> Output {
    warptape_with(folder, arguments, &[])
}

/// True under `tests/run --all`, which installs a browser, Prometheus and QEMU for the tests that need them.
pub fn is_long() -> bool {
    std::env::var_os("WARPTAPE_TEST_ALL").is_some()
}

/// Runs the binary in a folder on an emulated processor with only the instructions of every x86-64.
#[cfg(target_arch = "x86_64")]
pub fn on_baseline(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("qemu-x86_64")
        .args(["-cpu", "qemu64", WARPTAPE])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .expect("qemu-x86_64 is there: tests/run --all installs the package qemu-user")
}

/// Asserts the exit code, and returns standard output and standard error.
#[track_caller]
pub fn texts(output: &Output, code: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "stdout:\n{out}\nstderr:\n{error}");
    (out, error)
}

/// A process that runs beside the test; it is killed when dropped.
pub struct Running {
    child: Child,
    name: String,
    /// Lines of standard output, sent by a thread. The channel disconnects when the process closes its output.
    lines: Receiver<String>,
    /// Standard error so far.
    said: Arc<Mutex<String>>,
    /// Thread that reads standard error to its end.
    error: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the binary in a folder with exactly these arguments.
    pub fn start(folder: &Path, arguments: &[&str]) -> Running {
        Running::start_with(folder, arguments, &[])
    }

    /// Starts the binary in a folder with exactly these arguments and variables.
    pub fn start_with(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let mut child = Command::new(WARPTAPE)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // A test that needs no more lines drops the receiver.
            stdout.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        let said = Arc::new(Mutex::new(String::new()));
        let of_reader = said.clone();
        let error = std::thread::spawn(move || {
            for line in stderr.lines() {
                let line = line.unwrap_or_else(|error| error.to_string());
                of_reader.lock().expect("nobody panics while holding it").extend([&line, "\n"]);
            }
        });
        Running { child, name: arguments.join(" "), lines, said, error: Some(error) }
    }

    /// Returns the process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the standard error so far, in whole lines.
    pub fn said(&self) -> String {
        self.said.lock().expect("nobody panics while holding it").clone()
    }

    /// True if the process has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }

    /// Returns the next line on standard output.
    #[track_caller]
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => line,
            Err(_) => self.fail("no further line"),
        }
    }

    /// Lets the process run for this time; fails if it ends before.
    #[track_caller]
    pub fn run_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => self.fail("ended by itself"),
            }
        }
    }

    /// Waits until `reached` returns a value; fails if the process ends before.
    #[track_caller]
    pub fn run_until<T>(&mut self, what: &str, mut reached: impl FnMut() -> Option<T>) -> T {
        self.run_while_moving(what, || reached().ok_or(()))
    }

    /// Waits until the process has written this text to standard error; fails if the process ends before.
    #[track_caller]
    pub fn await_saying(&mut self, what: &str) {
        let said = self.said.clone();
        let has_said = || said.lock().expect("nobody panics while holding it").contains(what);
        self.run_until(&format!("it says {what:?}"), || has_said().then_some(()));
    }

    /// Waits until `look` returns `Ok`, with no limit on the total time. An `Err` contains the current state. The wait
    /// fails if the state does not change for too long, or the process ends before.
    #[track_caller]
    pub fn run_while_moving<T, E: PartialEq + Debug>(
        &mut self,
        what: &str,
        mut look: impl FnMut() -> Result<T, E>,
    ) -> T {
        let (mut stands, mut since) = (None, Instant::now());
        loop {
            let now = match look() {
                Ok(found) => return found,
                Err(now) => Some(now),
            };
            if now != stands {
                (stands, since) = (now, Instant::now());
            } else if since.elapsed() >= DEADLINE {
                self.fail(&format!("nothing moves for {DEADLINE:?} at {stands:?}, before {what}"));
            }
            self.run_for(LOOK);
        }
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status();
        assert!(status.expect("kill runs").success(), "{}", self.name);
    }

    /// Sends SIGKILL to a process that must be running.
    #[track_caller]
    pub fn kill(mut self) {
        self.child.kill().expect("a child can be killed");
        let status = self.child.wait().expect("a child can be waited for");
        assert_eq!(status.signal(), Some(9), "{} had ended by itself with {status}", self.name);
    }

    /// Waits until the process ends. Returns the exit status, the rest of standard output, and standard error.
    #[track_caller]
    pub fn finish(mut self) -> (ExitStatus, String, String) {
        let until = Instant::now() + DEADLINE;
        let mut out = String::new();
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => out.extend([&line, "\n"]),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => self.fail("does not end"),
            }
        }
        let status = self.child.wait().expect("a child can be waited for");
        (status, out, self.kill_and_read())
    }

    /// Sends a signal and waits for the end, which must have exit code 0. Returns the rest of standard output.
    #[track_caller]
    pub fn stop(mut self, signal: &str) -> String {
        let name = self.name.clone();
        // Until the process handles the signal, the signal would kill it.
        let process = self.id();
        self.run_until("it handles signals", || handles_termination(process).then_some(()));
        self.signal(signal);
        let (status, out, error) = self.finish();
        assert_eq!(status.code(), Some(0), "{name}\nstdout:\n{out}\nstderr:\n{error}");
        out
    }

    /// Fails, and shows the process's standard error.
    #[track_caller]
    pub fn fail(&mut self, what: &str) -> ! {
        let error = self.kill_and_read();
        panic!("{}: {what}; stderr:\n{error}", self.name)
    }

    fn kill_and_read(&mut self) -> String {
        // The process may already have ended.
        drop(self.child.kill());
        drop(self.child.wait());
        if let Some(reader) = self.error.take() {
            reader.join().expect("the reader does not panic");
        }
        self.said()
    }
}

/// True if a process catches SIGTERM, according to Linux.
fn handles_termination(process: u32) -> bool {
    const SIGTERM: u32 = 15;
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught >> (SIGTERM - 1) & 1 == 1
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the end of each partition of a topic; empty if the log has no such topic yet.
pub fn ends(log: &dyn EventLog, topic: &str) -> Vec<i64> {
    let topics = log.topics().expect("the log can be read");
    let found = topics.into_iter().find(|info| info.spec.name == topic);
    found.map_or(Vec::new(), |info| info.offsets.iter().map(|range| range.next).collect())
}

/// Returns the committed offset of a group in each partition of the ticks, with the end of the partition.
pub fn committed(log: &dyn EventLog, group: &str) -> Vec<(i64, i64)> {
    let one = |(partition, end): (i32, i64)| {
        let source = TopicPartition { topic: "ticks".to_owned(), partition };
        (log.committed(group, &source).expect("the log can be read").unwrap_or(0), end)
    };
    (0..).zip(ends(log, "ticks")).map(one).collect()
}

/// Runs until all ticks are processed and committed.
#[track_caller]
pub fn run_until_drained(run: &mut Running, log: &dyn EventLog, group: &str) {
    run.run_while_moving("all ticks are processed", || {
        let committed = committed(log, group);
        if committed.iter().all(|(done, end)| done == end) { Ok(()) } else { Err(committed) }
    });
}

/// Returns a folder with a configuration `warptape.toml`, and a log `market.db` of two process lives with it.
#[track_caller]
pub fn recorded(configuration: &str) -> TempDir {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("warptape.toml"), configuration).expect("a file");
    let common = ["-c", "warptape.toml", "--log", "sqlite:market.db"];
    for seed in ["1", "2"] {
        let feed = ["feed", "synth", "--ticks", "30000", "--symbols", "30", "--seed", seed];
        texts(&warptape(path, &[&feed[..], &common].concat()), 0);
        let mut run = Running::start(path, &[&["run"][..], &common].concat());
        let log = SqliteLog::open_existing(path.join("market.db")).expect("the log of the feed");
        run_until_drained(&mut run, &log, "warptape");
        run.stop("TERM");
    }
    folder
}
