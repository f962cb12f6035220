//! The brokers for tests: the shared one, and separate ones that a test may stop and kill.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use warptape_eventlog::{KafkaLog, KafkaOptions};

/// Returns a variable exported by `tests/services`.
pub fn service(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run the tests by tests/run, or by `tests/services run cargo test …`")
    })
}

/// Returns default options for the broker shared by all tests.
pub fn shared() -> KafkaOptions {
    KafkaOptions::new(service("WARPTAPE_TEST_KAFKA"))
}

/// Returns a log on the shared broker.
pub fn shared_log() -> KafkaLog {
    KafkaLog::open(shared()).unwrap()
}

/// Returns a name that is unique on the shared broker, across test runs too.
pub fn unique(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "names of topics that no earlier test has used")]
    let since_epoch = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    format!("{name}-{}-{}", std::process::id(), since_epoch.as_nanos())
}

/// A broker for one test only; killed when dropped.
pub struct Broker {
    folder: PathBuf,
    pub address: String,
    /// Its real address, whatever address it advertises.
    pub direct: String,
}

impl Broker {
    pub fn start(name: &str) -> Self {
        Self::start_with(name, &[])
    }

    /// Starts a broker that sends its clients to a proxy.
    pub fn start_behind(name: &str, proxy: &str) -> Self {
        Self::start_with(name, &[("WARPTAPE_TEST_KAFKA_ADVERTISED", proxy)])
    }

    fn start_with(name: &str, environment: &[(&str, &str)]) -> Self {
        let folder = Path::new(&service("WARPTAPE_TEST_SERVICES")).join(unique(name));
        let mut broker = Self { folder, address: String::new(), direct: String::new() };
        let exports = broker.services("start", &["kafka"], environment);
        let exported = |name: &str| {
            let name = format!("export {name}=");
            let value = exports.lines().find_map(|line| line.strip_prefix(&name));
            value.expect("tests/services names the address").to_owned()
        };
        broker.address = exported("WARPTAPE_TEST_KAFKA");
        broker.direct = exported("WARPTAPE_TEST_KAFKA_DIRECT");
        broker
    }

    /// Starts again, on the same port and data.
    pub fn start_again(&self) {
        self.services("start", &["kafka"], &[]);
    }

    /// Ends the broker as in a crash.
    pub fn kill(&self) {
        self.services("kill", &["kafka"], &[]);
    }

    /// Makes the broker stop answering with open connections.
    pub fn pause(&self) {
        self.signal("-STOP");
        // The signal takes effect a moment later.
        while !self.is_stopped() {
            std::thread::yield_now();
        }
    }

    /// Resumes after a pause.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    /// Sets a topic's configuration: `KEY=VALUE`.
    pub fn alter(&self, topic: &str, setting: &str) {
        self.services("alter", &[topic, setting], &[]);
    }

    fn services(&self, command: &str, arguments: &[&str], environment: &[(&str, &str)]) -> String {
        let services = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/services");
        let mut process = Command::new(services);
        process.arg(command).arg(&self.folder).args(arguments).envs(environment.iter().copied());
        let output = process.output().unwrap();
        assert!(
            output.status.success(),
            "tests/services {command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.process()]).status().unwrap().success());
    }

    /// Returns true if all threads of the process are stopped.
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.process())).unwrap();
        let state = |path: std::path::PathBuf| std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        // The state is the letter behind the name, which is in parentheses.
        threads.flatten().map(|thread| state(thread.path())).all(|stat| match stat.rsplit_once(") ") {
            Some((_, rest)) => rest.starts_with(['T', 't']),
            None => true,
        })
    }

    fn process(&self) -> String {
        std::fs::read_to_string(self.folder.join("kafka.pid")).unwrap().trim().to_owned()
    }
}

/// Number of lines of a broker's log shown by a failed test.
const LINES_SHOWN: usize = 40;

impl Drop for Broker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.join("kafka.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let end = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
            println!("the end of the log of {}:\n{}", self.direct, end.join("\n"));
        }
        self.kill();
    }
}

/// Waits, in tests that depend on elapsed time.
pub fn let_pass(time: Duration) {
    let (_sender, never): (_, Receiver<()>) = channel();
    assert_eq!(never.recv_timeout(time), Err(RecvTimeoutError::Timeout));
}
