//! A market on a real Kafka with a pipeline over it, and what the outputs must be in the end, whatever befell them: those
//! of an uninterrupted run over the same ticks on the embedded log.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, KafkaLog, KafkaOptions, SqliteLog, TopicPartition, TopicSpec};
use warptape_pipeline::sources::synth::{SynthConfig, SynthSource};
use warptape_schemas::tick::TickColumns;
use warptape_schemas::{SymbolTable, TickDecoder};

use super::broker::unique;
use super::history::{copy_records, lives};
use super::outputs::{OUTPUT_TOPICS, count, first_difference, move_sources, outputs, records};
use super::processes::{Running, folder, texts, warptape};

pub const PARTITIONS: i32 = 3;
pub const TICKS_PER_SECOND: u64 = 4_000;
const SYMBOLS: u32 = 50;

/// Short intervals, so that kills hit commits, snapshots and restores.
const CONFIGURATION: &str = r#"
engine.devices = ["cpu:2"]
engine.commit_interval_ms = 20
engine.snapshot_interval_records = 100
engine.poll_records_max = 16
stages.bars = ["1s", "tick:1"]
stages.allowed_lateness_ms = 1000
stages.groups_per_partition = 4
"#;

/// A log on a broker, with topics and a group of its own, and the configuration for it in a folder.
pub struct Market {
    folder: TempDir,
    pub prefix: String,
    pub group: String,
    /// How the processes reach the log.
    pub url: String,
    /// How the test does.
    pub log: KafkaLog,
}

impl Market {
    pub fn new(name: &str, options: KafkaOptions) -> Market {
        let url = format!("kafka:{}", options.brokers);
        Self::reached_by(name, options, url, "kafka.session_timeout_ms = 6000")
    }

    /// A market whose processes reach the log by another address than the test, and have more settings.
    pub fn reached_by(name: &str, options: KafkaOptions, url: String, settings: &str) -> Market {
        let group = unique(name);
        let log = KafkaLog::open(options).expect("a broker");
        let market = Market { folder: folder(), prefix: format!("{group}."), group, url, log };
        let own = format!(
            "topics.prefix = \"{}\"\ntopics.partitions = {PARTITIONS}\ntopics.journal_partitions = 1\n\
             engine.group = \"{}\"",
            market.prefix, market.group
        );
        std::fs::write(market.path().join("w.toml"), format!("{own}\n{settings}\n{CONFIGURATION}"))
            .expect("a file");
        texts(&warptape(market.path(), &market.arguments(&["topics", "create"], &market.url)), 0);
        market
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn topic(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn arguments<'a>(&self, command: &[&'a str], url: &'a str) -> Vec<&'a str> {
        [command, &["-c", "w.toml", "--log", url]].concat()
    }

    /// Starts a market that does not end, in records of up to 16 ticks.
    pub fn start_feed(&self, seed: u64) -> Running {
        let [symbols, seed, rate] = [u64::from(SYMBOLS), seed, TICKS_PER_SECOND].map(|n| n.to_string());
        let command = [
            &["feed", "synth", "--ticks", "1000000000", "--batch", "16"],
            &["--symbols", &symbols, "--seed", &seed, "--rate", &rate][..],
        ]
        .concat();
        Running::start(self.path(), &self.arguments(&command, &self.url))
    }

    pub fn start_run(&self) -> Running {
        self.start_run_with(&[], &[])
    }

    /// A run with more arguments and variables.
    pub fn start_run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let command = [&["run"], arguments].concat();
        Running::start_with(self.path(), &self.arguments(&command, &self.url), environment)
    }

    /// Committed offsets of the group in the partitions of the ticks; `None` where the log does not say at present.
    pub fn committed(&self, log: &dyn EventLog) -> Option<Vec<i64>> {
        let ticks = self.topic("ticks");
        let source = |partition| TopicPartition { topic: ticks.clone(), partition };
        let one = |partition| Some(log.committed(&self.group, &source(partition)).ok()?.unwrap_or(0));
        (0..PARTITIONS).map(one).collect()
    }

    /// Runs under load until more is committed in every partition than now.
    #[track_caller]
    pub fn run_on(&self, run: &mut Running, feed: &mut Running) {
        let mut before = None;
        run.run_until("more is committed in every partition", || {
            feed.run_for(Duration::ZERO);
            let now = self.committed(&self.log)?;
            let before = before.get_or_insert_with(|| now.clone());
            now.iter().zip(before).all(|(now, before)| *now > *before).then_some(())
        });
    }

    /// Runs under load until what is there now is committed and more is published; fails if that takes longer. False if
    /// `is_excused` says so meanwhile.
    #[track_caller]
    pub fn run_on_within(
        &self,
        time_max: Duration,
        run: &mut Running,
        feed: &mut Running,
        is_excused: impl Fn() -> bool,
    ) -> bool {
        let there = self.behind_last(&self.log);
        let started = Instant::now();
        run.run_until_within(time_max, "what was there is processed, and more is published", || {
            if is_excused() {
                return Some(false);
            }
            feed.run_for(Duration::ZERO);
            let is_processed = self.committed(&self.log)?.iter().zip(&there).all(|(done, end)| done >= end);
            // Ends would tell nothing: an aborted transaction moves them.
            let is_fed = is_processed && self.behind_last(&self.log) != there;
            if is_processed && !is_fed && started.elapsed() >= time_max {
                feed.fail(&format!("published nothing for {time_max:?}"));
            }
            is_fed.then_some(true)
        })
    }

    /// The offset behind the last tick of each partition: the end of a partition of Kafka is a marker behind it.
    fn behind_last(&self, log: &dyn EventLog) -> Vec<i64> {
        let ticks = self.topic("ticks");
        let one = |partition| records(log, &ticks, partition).last().map_or(0, |last| last.offset + 1);
        (0..PARTITIONS).map(one).collect()
    }

    /// Starts one more run when everything is processed, and waits until it is at work.
    #[track_caller]
    pub fn start_idle_run(&self, arguments: &[&str]) -> Running {
        let journal = self.topic("journal");
        let before = lives(&self.log, &journal).began;
        let mut run = self.start_run_with(arguments, &[]);
        run.run_until("it is at work", || (lives(&self.log, &journal).began > before).then_some(()));
        run
    }

    /// Runs until everything that is there is processed, and stops. Gives the summary.
    pub fn drain(&self, run: Running) -> String {
        self.drain_on(run, &self.log)
    }

    fn drain_on(&self, mut run: Running, log: &dyn EventLog) -> String {
        let all = self.behind_last(log);
        // A partition may be read, and committed, beyond the markers behind its last tick.
        let is_done = |done: Vec<i64>| done.iter().zip(&all).all(|(done, end)| done >= end);
        run.run_until("all ticks are processed", || is_done(self.committed(log)?).then_some(()));
        let summary = run.stop("TERM");
        assert!(summary.contains("ticks  ") && summary.contains("signals  "), "{summary}");
        summary
    }

    /// Asserts that the log has what a feed with this seed published, by its summary: each tick of it, once, those of a
    /// symbol in order.
    #[track_caller]
    pub fn check_feed(&self, seed: u64, summary: &str) {
        let published = published(summary) as usize;
        let config = SynthConfig { symbols: SYMBOLS, seed, ..SynthConfig::default() };
        let mut expected: BTreeMap<String, Vec<[i64; 3]>> = BTreeMap::new();
        for tick in SynthSource::new(config).expect("a market").take(published) {
            let facts = [tick.event_time_ns, tick.price_e9, tick.bid_price_e9];
            expected.entry(tick.symbol).or_default().push(facts);
        }
        let mut found: BTreeMap<String, Vec<[i64; 3]>> = BTreeMap::new();
        let mut decoder = TickDecoder::new();
        for partition in 0..PARTITIONS {
            let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
            for record in records(&self.log, &self.topic("ticks"), partition) {
                decoder.decode(&record.value, &mut symbols, &mut columns).expect("a good record");
            }
            for row in 0..columns.len() {
                let facts = [columns.event_time_ns[row], columns.price_e9[row], columns.bid_price_e9[row]];
                found.entry(symbols.name(columns.symbol[row]).to_owned()).or_default().push(facts);
            }
        }
        assert!(found == expected, "the log has other ticks than the feed's {published}");
    }

    /// Compares the outputs with those of an uninterrupted run over the same ticks on the embedded log, and verifies
    /// the log. Gives the numbers of signals, late ticks and dead letters.
    #[track_caller]
    pub fn check(&self) -> [usize; 3] {
        let ticks = self.topic("ticks");
        let embedded =
            SqliteLog::open(self.path().join("uninterrupted.db"), Durability::Process).expect("a new log");
        let spec = TopicSpec { name: ticks.clone(), partitions: PARTITIONS, ..TopicSpec::default() };
        embedded.create_topics(&[spec]).expect("a new topic");
        let offsets = copy_records(&self.log, &embedded, &ticks, PARTITIONS);
        let uninterrupted = self.arguments(&["run"], "sqlite:uninterrupted.db");
        self.drain_on(Running::start(self.path(), &uninterrupted), &embedded);

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

/// The number of ticks in the summary of a feed.
pub fn published(summary: &str) -> u64 {
    let number = summary.split_once("published ").and_then(|(_, rest)| rest.split_once(" ticks"));
    let (number, _) = number.expect("a summary of a feed");
    number.replace(',', "").parse().expect("a number of ticks")
}
