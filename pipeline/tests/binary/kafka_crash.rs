//! Crashes of `run` on a real Kafka: nothing lost, nothing twice, the outputs those of an uninterrupted run over the same
//! ticks on the embedded log.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, KafkaLog, KafkaOptions, SqliteLog, TopicPartition, TopicSpec};

use super::broker::{shared, unique};
use super::history::{Random, copy_records, lives, poison};
use super::outputs::{OUTPUT_TOPICS, count, first_difference, move_sources, outputs, records};
use super::processes::{Running, ends, folder, texts, warptape};

const KILLS: u64 = 20;
const KILLS_QUICK: u64 = 4;
/// Ticks at least, with the quick kills and with more.
const TICKS: u64 = 100_000;
const TICKS_QUICK: u64 = 10_000;
const TICKS_PER_SECOND: u64 = 4_000;
const PARTITIONS: i32 = 3;
/// Until a feed is at its pace.
const FEED_BEGINNING_MAX: Duration = Duration::from_secs(6);
/// Longest life of a run, and of one that is to be killed while it begins.
const LIFE_MS_MAX: u64 = 1_500;
const BEGINNING_MS_MAX: u64 = 300;
/// One random kill in this many hits a run while it begins.
const BEGINNINGS_ONE_IN: u64 = 3;
/// Places where a run kills itself, and from how many passages the one is drawn.
const FAILPOINTS: [(&str, u64); 5] = [
    ("AfterProduce", 20),
    ("AfterSendOffsets", 20),
    ("DuringCommit", 20),
    ("DuringSnapshot", 20),
    ("DuringRestore", PARTITIONS as u64),
];
const SIGABRT: i32 = 6;

/// Short intervals, so that kills hit commits, snapshots and restores.
const CONFIGURATION: &str = r#"
kafka.session_timeout_ms = 6000
engine.devices = ["cpu:2"]
engine.commit_interval_ms = 20
engine.snapshot_interval_records = 100
engine.poll_records_max = 16
stages.bars = ["1s", "tick:1"]
stages.allowed_lateness_ms = 1000
stages.groups_per_partition = 4
"#;

/// A log on a broker, with topics and a group of its own, and the configuration for it in a folder.
struct Market {
    folder: TempDir,
    prefix: String,
    group: String,
    url: String,
    log: KafkaLog,
}

impl Market {
    fn new(name: &str, options: KafkaOptions) -> Market {
        let group = unique(name);
        let log = KafkaLog::open(options).expect("a broker");
        let market = Market { folder: folder(), prefix: format!("{group}."), group, url: log.url(), log };
        let own = format!(
            "topics.prefix = \"{}\"\ntopics.partitions = {PARTITIONS}\ntopics.journal_partitions = 1\n\
             engine.group = \"{}\"",
            market.prefix, market.group
        );
        std::fs::write(market.path().join("w.toml"), format!("{own}\n{CONFIGURATION}")).expect("a file");
        texts(&warptape(market.path(), &market.arguments(&["topics", "create"], &market.url)), 0);
        market
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn topic(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn arguments<'a>(&self, command: &[&'a str], url: &'a str) -> Vec<&'a str> {
        [command, &["-c", "w.toml", "--log", url]].concat()
    }

    /// Starts a market that does not end, in records of up to 16 ticks.
    fn start_feed(&self, random: &mut Random) -> Running {
        let (seed, rate) = (random.below(1 << 32).to_string(), TICKS_PER_SECOND.to_string());
        let command = [
            &["feed", "synth", "--symbols", "50", "--ticks", "1000000000", "--batch", "16"],
            &["--seed", &seed, "--rate", &rate][..],
        ]
        .concat();
        Running::start(self.path(), &self.arguments(&command, &self.url))
    }

    fn start_run(&self, url: &str, environment: &[(&str, &str)]) -> Running {
        Running::start_with(self.path(), &self.arguments(&["run"], url), environment)
    }

    /// Committed offsets of the group in the partitions of the ticks.
    fn committed(&self, log: &dyn EventLog) -> Vec<i64> {
        let ticks = self.topic("ticks");
        let source = |partition| TopicPartition { topic: ticks.clone(), partition };
        let one = |partition| log.committed(&self.group, &source(partition)).expect("the log can be read");
        (0..PARTITIONS).map(|partition| one(partition).unwrap_or(0)).collect()
    }

    /// Runs under load until more is committed in every partition than now.
    #[track_caller]
    fn run_on(&self, run: &mut Running, feed: &mut Running) {
        let before = self.committed(&self.log);
        run.run_until("more is committed in every partition", || {
            feed.run_for(Duration::ZERO);
            let now = self.committed(&self.log);
            now.iter().zip(&before).all(|(now, before)| now > before).then_some(())
        });
    }

    /// Runs until everything that is there is processed, and stops.
    #[track_caller]
    fn drain(&self, mut run: Running, log: &dyn EventLog) {
        let ticks = self.topic("ticks");
        // The end of a partition of Kafka is a marker behind its last record.
        let behind_last =
            |partition| records(log, &ticks, partition).last().map_or(0, |last| last.offset + 1);
        let all: Vec<i64> = (0..PARTITIONS).map(behind_last).collect();
        run.run_until("all ticks are processed", || (self.committed(log) == all).then_some(()));
        let summary = run.stop("TERM");
        assert!(summary.contains("ticks  ") && summary.contains("signals  "), "{summary}");
    }

    /// Compares the outputs with those of an uninterrupted run over the same ticks on the embedded log, and verifies
    /// the log. Gives the numbers of signals, late ticks and dead letters.
    #[track_caller]
    fn check(&self) -> [usize; 3] {
        let ticks = self.topic("ticks");
        let embedded =
            SqliteLog::open(self.path().join("uninterrupted.db"), Durability::Process).expect("a new log");
        let spec = TopicSpec { name: ticks.clone(), partitions: PARTITIONS, ..TopicSpec::default() };
        embedded.create_topics(&[spec]).expect("a new topic");
        let offsets = copy_records(&self.log, &embedded, &ticks, PARTITIONS);
        self.drain(self.start_run("sqlite:uninterrupted.db", &[]), &embedded);

        let mut expected = outputs(&embedded, &self.prefix);
        move_sources(&mut expected, &offsets);
        let found = outputs(&self.log, &self.prefix);
        if let Some(difference) = first_difference(&expected, &found) {
            panic!("the outputs differ from those of an uninterrupted run: {difference}");
        }
        let counts = OUTPUT_TOPICS.map(|topic| count(&found, topic));
        let verify = self.arguments(&["replay", "verify", "--outputs"], &self.url);
        let (said, _) = texts(&warptape(self.path(), &verify), 0);
        assert!(said.ends_with(&format!(" decisions, {} signals: identical\n", counts[0])), "{said}");
        counts
    }
}

/// How many times to kill `run`: WARPTAPE_TEST_KILLS, else few or many.
fn kills() -> u64 {
    match std::env::var("WARPTAPE_TEST_KILLS") {
        Ok(text) => text.parse().expect("WARPTAPE_TEST_KILLS is a whole number"),
        Err(_) if is_quick() => KILLS_QUICK,
        Err(_) => KILLS,
    }
}

fn is_quick() -> bool {
    std::env::var_os("WARPTAPE_TEST_QUICK").is_some()
}

/// The number of ticks in the summary of a feed.
fn published(summary: &str) -> u64 {
    let number = summary.split_once("published ").and_then(|(_, rest)| rest.split_once(" ticks"));
    let (number, _) = number.expect("a summary of a feed");
    number.replace(',', "").parse().expect("a number of ticks")
}

#[test]
fn kills_on_kafka_lose_nothing_and_double_nothing() {
    let mut random = Random::from_environment();
    let kills = kills();
    let market = Market::new("kills", shared());
    let mut feed = market.start_feed(&mut random);
    let fed_since = Instant::now();
    let mut first = market.start_run(&market.url, &[]);
    market.run_on(&mut first, &mut feed);
    first.run_until("snapshots are written", || {
        let ends = ends(&market.log, &market.topic("snapshots"));
        ends.iter().all(|end| *end > 0).then_some(())
    });
    first.kill();

    let first_failpoint = random.below(FAILPOINTS.len() as u64);
    for kill in 1..kills {
        if kill.is_multiple_of(2) {
            let mut run = market.start_run(&market.url, &[]);
            let is_beginning = random.below(BEGINNINGS_ONE_IN) == 0;
            let life_ms_max = if is_beginning { BEGINNING_MS_MAX } else { LIFE_MS_MAX };
            run.run_for(Duration::from_millis(random.below(life_ms_max)));
            run.kill();
        } else {
            let (name, passages) = FAILPOINTS[(first_failpoint + kill / 2) as usize % FAILPOINTS.len()];
            let failpoint = format!("{name}:{}", 1 + random.below(passages));
            let run = market.start_run(&market.url, &[("WARPTAPE_FAILPOINT", &failpoint)]);
            let (status, _, error) = run.finish();
            assert_eq!(status.signal(), Some(SIGABRT), "{failpoint}: {status}\n{error}");
        }
        assert!(feed.is_running(), "the load is gone");
        poison(&market.log, &market.topic("ticks"), PARTITIONS, &mut random);
    }
    let ticks_min = if is_quick() { TICKS_QUICK } else { TICKS };
    let fed_for = Duration::from_secs(ticks_min / TICKS_PER_SECOND) + FEED_BEGINNING_MAX;
    feed.run_for(fed_for.saturating_sub(fed_since.elapsed()));
    let fed = feed.stop("TERM");
    assert!(published(&fed) >= ticks_min, "{fed}");
    market.drain(market.start_run(&market.url, &[]), &market.log);

    let counts = market.check();
    // What was compared is worth it: there is much of it, and the kills hit what they were to hit.
    let lives = lives(&market.log, &market.topic("journal"));
    println!("{kills} kills, {fed}signals, late, dead letters: {counts:?}; {lives:?}");
    assert!(counts[0] > 1000 && counts[1] > 0 && counts[2] as u64 == kills - 1, "{counts:?}");
    assert!(lives.began >= 2 && lives.from_snapshot > 0, "{lives:?}");
    assert!(kills < KILLS || (lives.began > 2 && lives.with_tail > 0), "{lives:?}");
}
