//! A campaign of faults on the embedded log.

use std::cell::Cell;
use std::path::Path;

use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, Record, SqliteLog, TopicSpec};

use super::broker::Broker;
use super::campaign::{self, FEED_FILE, Fault, Scene};
use super::damaged_copy;
use super::history::{Random, copy_records};
use super::kafka_market::Market;
use super::outputs::{OUTPUT_TOPICS, count, first_difference, outputs, records};
use super::processes::{Running, folder, run_until_drained, texts, warptape};

const PARTITIONS: i32 = 3;
const FEED_TICKS_PER_SECOND: &str = "50000";

/// Larger than a dead letter holds. The log would take records larger than a test's disk should hold.
const NOISE_BYTES_MAX: usize = 4 << 20;

/// Commits in close sequence that each wait for the disk, so that most kills hit one; and commits with work between
/// them.
const COMMITS: [(&str, &str, u64); 2] = [("committing.toml", "full", 1), ("working.toml", "process", 20)];
/// Short intervals, so that kills hit snapshots and restores as well.
const CONFIGURATION: &str = r#"
engine.devices = ["cpu:2"]
engine.snapshot_interval_records = 20
engine.evict_idle_s = 1
engine.poll_records_max = 16
stages.bars = ["1s", "tick:1"]
stages.allowed_lateness_ms = 1000
stages.groups_per_partition = 4
risk.slice_us = 200
"#;

/// A log in a folder, and processes over it.
struct Embedded {
    folder: TempDir,
    log: SqliteLog,
    /// Number of runs so far; they take the configurations in turns.
    runs: Cell<usize>,
}

impl Embedded {
    fn new() -> Self {
        let folder = folder();
        for (file, durability, commit_interval_ms) in COMMITS {
            let commits = format!(
                "engine.commit_interval_ms = {commit_interval_ms}\nlog.durability = \"{durability}\""
            );
            std::fs::write(folder.path().join(file), format!("{commits}\n{CONFIGURATION}")).expect("a file");
        }
        let log = new_log(folder.path(), "crashed.db");
        Self { folder, log, runs: Cell::new(0) }
    }
}

fn new_log(folder: &Path, name: &str) -> SqliteLog {
    // A log that creates its file keeps it open, and its space in use, for the life of the process: a campaign makes
    // hundreds.
    drop(std::fs::File::create_new(folder.join(name)).expect("a new file"));
    let log = SqliteLog::open(folder.join(name), Durability::Process).expect("a new log");
    let topic =
        |name: &str| TopicSpec { name: name.to_owned(), partitions: PARTITIONS, ..TopicSpec::default() };
    log.create_topics(&["ticks", "risk.requests", "risk.results"].map(topic)).expect("new topics");
    log
}

/// Lets a run process the rest, and stop.
fn drain(mut run: Running, log: &SqliteLog) {
    run_until_drained(&mut run, log, "warptape");
    let summary = run.stop("TERM");
    assert!(summary.contains("ticks  ") && summary.contains("signals  "), "{summary}");
}

impl Scene for Embedded {
    fn log(&self) -> &dyn EventLog {
        &self.log
    }

    fn partitions(&self) -> i32 {
        PARTITIONS
    }

    fn prefix(&self) -> &str {
        ""
    }

    fn group(&self) -> &str {
        "warptape"
    }

    fn faults(&self) -> &[Fault] {
        use Fault::{
            Abort, ClockStep, DamageCopy, Failpoint, FeedTwice, Freeze, Kill, KillBeginning, KillFeed,
            RepeatFile, ResetOffsets, Stop,
        };
        &[
            Kill,
            Kill,
            KillBeginning,
            Failpoint,
            Failpoint,
            Freeze,
            KillFeed,
            Stop,
            FeedTwice,
            RepeatFile,
            Abort,
            ResetOffsets,
            ClockStep,
            DamageCopy,
        ]
    }

    fn start_feed(&self, seed: u64) -> Running {
        let seed = seed.to_string();
        let command = [
            &["feed", "synth", "--symbols", "50", "--ticks", "1000000000", "--batch", "16", "--seed", &seed],
            &["--rate", FEED_TICKS_PER_SECOND, "--log", "sqlite:crashed.db"][..],
        ];
        Running::start(self.folder.path(), &command.concat())
    }

    fn start_run(&self, environment: &[(&str, &str)]) -> Running {
        let (configuration, ..) = COMMITS[self.runs.replace(self.runs.get() + 1) % COMMITS.len()];
        let command = ["run", "-c", configuration, "--log", "sqlite:crashed.db"];
        Running::start_with(self.folder.path(), &command, environment)
    }

    fn ticks(&self) -> Vec<Vec<Record>> {
        (0..PARTITIONS).map(|partition| records(&self.log, "ticks", partition)).collect()
    }

    fn broker(&self) -> Option<&Broker> {
        None
    }

    fn market(&self) -> Option<&Market> {
        None
    }

    fn compressing(&self) -> Box<dyn EventLog> {
        Box::new(SqliteLog::open(self.folder().join("crashed.db"), Durability::Process).expect("the log"))
    }

    fn noise_bytes_max(&self) -> usize {
        NOISE_BYTES_MAX
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn feed_file(&self, file: &str, arguments: &[&str]) -> Running {
        Running::start(self.folder(), &[FEED_FILE, &["--log", "sqlite:crashed.db", file], arguments].concat())
    }

    fn check_damaged_copy(&self, random: &mut Random) {
        damaged_copy::check(&self.log, &self.folder().join("crashed.db"), self.group(), random);
    }

    fn await_published(&self, _seed: u64, _summary: &str, _others: [u64; 2]) {
        // Ticks that a feed has committed are readable when it ends.
    }

    fn drain(&self, run: Running) {
        drain(run, &self.log);
    }

    fn check(&self) -> [usize; 3] {
        let folder = self.folder.path();
        let uninterrupted = new_log(folder, "uninterrupted.db");
        copy_records(&self.ticks(), &uninterrupted, "ticks");
        let (configuration, ..) = COMMITS[1];
        let command = ["run", "-c", configuration, "--log", "sqlite:uninterrupted.db"];
        drain(Running::start(folder, &command), &uninterrupted);
        let (expected, found) = (outputs(&uninterrupted, ""), outputs(&self.log, ""));
        if let Some(difference) = first_difference(&expected, &found) {
            panic!("the outputs differ from those of an uninterrupted run: {difference}");
        }
        let counts = OUTPUT_TOPICS.map(|topic| count(&found, topic));
        let results: usize =
            (0..PARTITIONS).map(|partition| records(&self.log, "risk.results", partition).len()).sum();
        let verify = ["replay", "verify", "--outputs", "--log", "sqlite:crashed.db"];
        let (said, _) = texts(&warptape(folder, &verify), 0);
        let identical = format!("{} signals, {results} risk results: identical\n", counts[0]);
        assert!(said.ends_with(&identical), "{said}");
        counts
    }
}

#[test]
fn faults_on_the_embedded_log_lose_nothing_and_double_nothing() {
    let campaign = campaign::run(Embedded::new);
    assert!(campaign.late > 0, "{campaign:?}");
}
