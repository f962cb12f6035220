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

/// Greatest size of a noise record, in bytes: more than a dead letter can hold. The log would accept records too large
/// for a test's disk.
const NOISE_BYTES_MAX: usize = 4 << 20;

/// Two configurations of commits. In the first, commits follow each other closely and each waits for the disk, so most
/// kills hit one. In the second there is work between commits.
const COMMITS: [(&str, &str, u64); 2] = [("committing.toml", "full", 1), ("working.toml", "process", 20)];
/// Configuration with short intervals, so that kills also hit snapshots and restores.
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

/// A log in a folder, and the processes that use it.
struct Embedded {
    folder: TempDir,
    log: SqliteLog,
    /// Number of runs so far; the runs alternate between the configurations.
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
    // A log that creates its own file keeps the file open, with its disk space, until the process ends. A campaign
    // creates hundreds of logs, so the file is created here.
    drop(std::fs::File::create_new(folder.join(name)).expect("a new file"));
    let log = SqliteLog::open(folder.join(name), Durability::Process).expect("a new log");
    let topic =
        |name: &str| TopicSpec { name: name.to_owned(), partitions: PARTITIONS, ..TopicSpec::default() };
    log.create_topics(&["ticks", "risk.requests", "risk.results"].map(topic)).expect("new topics");
    log
}

/// Lets a run process the remaining ticks, and stops it.
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
        // On the embedded log, committed ticks of a feed are readable when the feed ends.
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
