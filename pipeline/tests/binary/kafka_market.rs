//! A market on a real Kafka, and a pipeline that processes it. In the end, the outputs must equal those of an
//! uninterrupted run over the same ticks on the embedded log, whatever happened.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warptape_eventlog::{
    Consumer, Durability, EventLog, Fetched, KafkaLog, KafkaOptions, Record, SqliteLog, TopicPartition,
    TopicSpec,
};
use warptape_schemas::tick::TickColumns;
use warptape_schemas::{SymbolTable, TickDecoder, decode_signal};
use warptape_sources::synth::{SynthConfig, SynthSource};

use super::broker::unique;
use super::history::{copy_records, lives};
use super::machine_clock::MachineClock;
use super::outputs::{OUTPUT_TOPICS, Outputs, count, first_difference, move_sources, outputs, records};
use super::processes::{DEADLINE, Running, folder, texts, warptape};
use super::removed_ticks::RemovedTicks;

pub const PARTITIONS: i32 = 3;
const TICKS_PER_SECOND: u64 = 4_000;
const SYMBOLS: u32 = 50;
/// Wait of a reader for existing records.
const READ_WAIT: Duration = Duration::from_millis(10);

/// Number of symbol groups of a partition; a snapshot has the state of each.
pub const GROUPS_PER_PARTITION: i32 = 4;
/// Configuration with short intervals, so that kills hit commits, snapshots and restores.
const CONFIGURATION: &str = r#"
engine.devices = ["cpu:2"]
engine.commit_interval_ms = 20
engine.snapshot_interval_records = 100
engine.evict_idle_s = 1
engine.poll_records_max = 16
stages.bars = ["1s", "tick:1"]
stages.allowed_lateness_ms = 1000
risk.slice_us = 200
"#;

/// A log on a broker, with its own topics and group, and its configuration in a folder.
pub struct Market {
    folder: TempDir,
    pub prefix: String,
    pub group: String,
    /// URL at which the processes reach the log.
    pub url: String,
    /// The log through the test's own client.
    pub log: KafkaLog,
    /// Ticks that retention removed from the topic.
    removed: RemovedTicks,
}

impl Market {
    pub fn new(name: &str, options: KafkaOptions) -> Market {
        let url = format!("kafka:{}", options.brokers);
        Self::reached_by(name, options, url, "kafka.session_timeout_ms = 6000")
    }

    /// Creates a market whose processes use another address than the test, with further settings.
    pub fn reached_by(name: &str, options: KafkaOptions, url: String, settings: &str) -> Market {
        let group = unique(name);
        let log = KafkaLog::open(options).expect("a broker");
        let removed = RemovedTicks::default();
        let market = Market { folder: folder(), prefix: format!("{group}."), group, url, log, removed };
        let own = format!(
            "topics.prefix = \"{}\"\ntopics.partitions = {PARTITIONS}\ntopics.journal_partitions = 1\n\
             engine.group = \"{}\"\nstages.groups_per_partition = {GROUPS_PER_PARTITION}",
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

    pub fn arguments<'a>(&self, command: &[&'a str], url: &'a str) -> Vec<&'a str> {
        [command, &["-c", "w.toml", "--log", url]].concat()
    }

    /// Starts the feed of an endless market, in records of up to 16 ticks.
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

    /// Starts a run with further arguments and environment variables.
    pub fn start_run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let command = [&["run"], arguments].concat();
        Running::start_with(self.path(), &self.arguments(&command, &self.url), environment)
    }

    /// Returns the group's committed offset in each partition of the ticks; `None` if the log does not answer.
    pub fn committed(&self, log: &dyn EventLog) -> Option<Vec<i64>> {
        let ticks = self.topic("ticks");
        let source = |partition| TopicPartition { topic: ticks.clone(), partition };
        let one = |partition| Some(log.committed(&self.group, &source(partition)).ok()?.unwrap_or(0));
        (0..PARTITIONS).map(one).collect()
    }

    /// Runs under load until the group has committed more than now in every partition.
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

    /// Runs under load until all current ticks are committed and more are published. Fails if one of the two makes no
    /// progress for longer than the limit, however long the whole takes.
    #[track_caller]
    pub fn run_on_without_stall(
        &self,
        stall_max: Duration,
        clock: &MachineClock,
        run: &mut Running,
        feed: &mut Running,
    ) {
        let there = self.behind_last(&self.log);
        // End offsets would not show the feed's progress, because an aborted transaction also moves them.
        let mut behind = self.reader(&there);
        let mut committed = Movement::new(clock, None);
        let mut published = Movement::new(clock, Some(0));
        let mut is_processed = false;
        let mut longest = Duration::ZERO;
        let goes_on = run.run_while_moving("what was there is processed, and more is published", || {
            feed.run_for(Duration::ZERO);
            let more = match behind.poll(Duration::ZERO, 4096, usize::MAX) {
                Ok(Fetched::Records { records, .. }) => records.len(),
                _ => 0,
            };
            let published_now = published.at.map(|before| before + more);
            let fed_stood = published.look(published_now);
            let run_stood = committed.look(self.committed(&self.log));
            longest = longest.max(fed_stood).max(if is_processed { Duration::ZERO } else { run_stood });
            // A run that has processed all ticks waits for the feed.
            let has_stalled = [fed_stood >= stall_max, run_stood >= stall_max && !is_processed];
            if has_stalled.contains(&true) {
                let stands = (&committed.at, published.at);
                return Ok(Err((has_stalled, format!("for {stall_max:?} at {stands:?} of {there:?}"))));
            }
            let is_all = |done: &Vec<i64>| done.iter().zip(&there).all(|(done, end)| done >= end);
            is_processed = committed.at.as_ref().is_some_and(is_all);
            if is_processed && published.at > Some(0) { Ok(Ok(())) } else { Err(committed.at.clone()) }
        });
        println!("longest stall: {:.1} s of {:.0} s", longest.as_secs_f64(), stall_max.as_secs_f64());
        goes_on.unwrap_or_else(|([is_feed, _], stall)| match is_feed {
            true => feed.fail(&format!("published nothing {stall}")),
            false => run.fail(&format!("committed nothing {stall}")),
        })
    }

    /// Returns a reader of the ticks from these offsets on.
    fn reader(&self, offsets: &[i64]) -> Box<dyn Consumer> {
        let topic = self.topic("ticks");
        let source = |partition| TopicPartition { topic: topic.clone(), partition };
        let sources: Vec<TopicPartition> = (0..PARTITIONS).map(source).collect();
        let mut reader = self.log.reader(&sources).expect("partitions of the log");
        for (source, offset) in sources.iter().zip(offsets) {
            reader.seek(source, *offset).expect("an offset of the partition");
        }
        reader
    }

    /// Returns the offset after the last tick of each partition. On Kafka, the end lies after a marker.
    fn behind_last(&self, log: &dyn EventLog) -> Vec<i64> {
        let ticks = self.topic("ticks");
        (0..PARTITIONS).map(|partition| behind(&records(log, &ticks, partition))).collect()
    }

    /// Returns all ticks that the topic ever had, by partition.
    pub fn ticks(&self) -> Vec<Vec<Record>> {
        let mut ticks = self.removed();
        for (partition, ticks) in (0..).zip(&mut ticks) {
            let from = behind(ticks);
            let there = records(&self.log, &self.topic("ticks"), partition).into_iter();
            ticks.extend(there.filter(|record| record.offset >= from));
        }
        ticks
    }

    /// Returns the removed ticks by partition. A killed broker may contain them again.
    pub fn removed(&self) -> Vec<Vec<Record>> {
        self.removed.kept(PARTITIONS)
    }

    /// Makes the broker remove all ticks that the newest snapshots cover. Returns the number of removed records.
    pub fn remove_processed(&self) -> u64 {
        self.removed.remove_processed(self)
    }

    /// Returns the broker's address for foreign clients.
    pub fn brokers(&self) -> &str {
        self.url.strip_prefix("kafka:").expect("the address of a cluster")
    }

    /// Starts another run after everything is processed, and waits until it works.
    #[track_caller]
    pub fn start_idle_run(&self, arguments: &[&str]) -> Running {
        let journal = self.topic("journal");
        let before = lives(&self.log, &journal).began;
        let mut run = self.start_run_with(arguments, &[]);
        run.run_until("it is at work", || (lives(&self.log, &journal).began > before).then_some(()));
        run
    }

    /// Runs until all current ticks are processed, and stops the run. Returns the summary.
    pub fn drain(&self, run: Running) -> String {
        self.drain_on(run, &self.log)
    }

    fn drain_on(&self, mut run: Running, log: &dyn EventLog) -> String {
        let all = self.behind_last(log);
        // A partition may be read, and committed, beyond the markers after its last tick.
        let is_done = |done: &Vec<i64>| done.iter().zip(&all).all(|(done, end)| done >= end);
        run.run_while_moving("all ticks are processed", || {
            let done = self.committed(log);
            if done.as_ref().is_some_and(is_done) { Ok(()) } else { Err(done) }
        });
        let summary = run.stop("TERM");
        assert!(summary.contains("ticks  ") && summary.contains("signals  "), "{summary}");
        summary
    }

    /// Waits until `ticks` ticks and `others` other records are readable.
    #[track_caller]
    pub fn await_ticks(&self, ticks: u64, others: u64) {
        TickReader::new(&self.log, &self.topic("ticks"), PARTITIONS).await_all(ticks, others);
    }

    /// Asserts that the log has the ticks of this summary, from the feed with this seed. Each tick must be there once,
    /// and the ticks of a symbol in order.
    #[track_caller]
    pub fn check_feed(&self, seed: u64, summary: &str) {
        let fed = fed(summary) as usize;
        let config = SynthConfig { symbols: SYMBOLS, seed, ..SynthConfig::default() };
        let mut expected: BTreeMap<String, Vec<[i64; 3]>> = BTreeMap::new();
        for tick in SynthSource::new(config).expect("a market").take(fed) {
            let facts = [tick.event_time_ns, tick.price_e9, tick.bid_price_e9];
            expected.entry(tick.symbol).or_default().push(facts);
        }
        let mut found: BTreeMap<String, Vec<[i64; 3]>> = BTreeMap::new();
        let mut decoder = TickDecoder::new();
        for ticks in self.ticks() {
            let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
            for record in ticks {
                // Other records do not come from the feed.
                let _ = decoder.decode(&record.value, &mut symbols, &mut columns);
            }
            // Ticks of other publishers do not come from the feed either.
            let is_of_feed = |row: &usize| symbols.name(columns.symbol[*row]).starts_with("SYNTH:");
            for row in (0..columns.len()).filter(is_of_feed) {
                let facts = [columns.event_time_ns[row], columns.price_e9[row], columns.bid_price_e9[row]];
                found.entry(symbols.name(columns.symbol[row]).to_owned()).or_default().push(facts);
            }
        }
        for (symbol, expected) in &expected {
            let found = found.get(symbol).map_or(&[][..], Vec::as_slice);
            let equal = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
            assert_eq!(
                (found.len(), equal),
                (expected.len(), expected.len()),
                "ticks of {symbol} in the log, and how many of them are as they were fed: {:?} where the feed has {:?}",
                found.get(equal),
                expected.get(equal)
            );
        }
        assert_eq!(found.len(), expected.len(), "symbols of the feed in the log");
    }

    /// Compares the outputs with those of an uninterrupted run over the same ticks on the embedded log, and verifies
    /// the log. Returns the numbers of signals, late ticks and dead letters.
    #[track_caller]
    pub fn check(&self) -> [usize; 3] {
        let ticks = self.topic("ticks");
        let embedded =
            SqliteLog::open(self.path().join("uninterrupted.db"), Durability::Process).expect("a new log");
        let spec = TopicSpec { name: ticks.clone(), partitions: PARTITIONS, ..TopicSpec::default() };
        embedded.create_topics(&[spec]).expect("a new topic");
        let all = self.ticks();
        copy_records(&all, &embedded, &ticks);
        let uninterrupted = self.arguments(&["run"], "sqlite:uninterrupted.db");
        self.drain_on(Running::start(self.path(), &uninterrupted), &embedded);

        let mut expected = outputs(&embedded, &self.prefix);
        move_sources(&mut expected, &all);
        let found = self.outputs_like(&expected);
        if let Some(difference) = first_difference(&expected, &found) {
            panic!("the outputs differ from those of an uninterrupted run: {difference}");
        }
        let counts = OUTPUT_TOPICS.map(|topic| count(&found, topic));
        self.verify(&found);
        counts
    }

    /// Verifies the log, which has these outputs. In partitions whose first ticks were removed, it compares only
    /// outputs of ticks after a snapshot, and no risk results.
    #[track_caller]
    fn verify(&self, found: &Outputs) {
        let verify = self.arguments(&["replay", "verify", "--outputs"], &self.url);
        let (said, _) = texts(&warptape(self.path(), &verify), 0);
        let (verdict, notes) = said.split_once('\n').expect("a line");
        let ticks = self.topic("ticks");
        let is_removed = |partition| {
            let ticks = TopicPartition { topic: ticks.clone(), partition };
            self.log.offsets(&ticks).expect("the log can be read").first > 0
        };
        let removed: Vec<i32> = (0..PARTITIONS).filter(|partition| is_removed(*partition)).collect();
        let compared_from = |partition: i32| {
            let begin =
                format!("note: {ticks}/{partition}: outputs were compared from the snapshot at offset ");
            let offset = notes.lines().find_map(|note| note.strip_prefix(&begin)?.strip_suffix(" on"));
            offset.unwrap_or_else(|| panic!("{begin}: {said}")).parse::<i64>().expect("an offset")
        };
        let signals_of = |partition: i32| {
            let from = if removed.contains(&partition) { compared_from(partition) } else { 0 };
            let is_behind =
                |record: &&Record| decode_signal(&record.value).expect("a signal").source_offset >= from;
            found[&("signals".to_owned(), partition)].iter().filter(is_behind).count()
        };
        let signals: usize = (0..PARTITIONS).map(signals_of).sum();
        let results: usize = (0..PARTITIONS)
            .map(|partition| records(&self.log, &self.topic("risk.results"), partition).len())
            .sum();
        let results = match results {
            0 => String::new(),
            _ if !removed.is_empty() => String::new(),
            results => format!(", {results} risk results"),
        };
        assert!(verdict.ends_with(&format!(" decisions, {signals} signals{results}: identical")), "{said}");
        assert_eq!(notes.is_empty(), removed.is_empty(), "{said}");
    }

    /// Returns all outputs once there are as many as expected, because a commit is acknowledged before its records are
    /// readable.
    fn outputs_like(&self, expected: &Outputs) -> Outputs {
        let since = Instant::now();
        loop {
            let found = outputs(&self.log, &self.prefix);
            let is_all = OUTPUT_TOPICS.iter().all(|topic| count(&found, topic) >= count(expected, topic));
            if is_all || since.elapsed() >= DEADLINE {
                return found;
            }
        }
    }
}

/// Returns the offset after the last record.
pub fn behind(records: &[Record]) -> i64 {
    records.last().map_or(0, |last| last.offset + 1)
}

/// Progress of a value, and the time since its last change.
struct Movement<'a, T> {
    clock: &'a MachineClock,
    /// The value; `None` until it is known.
    at: Option<T>,
    since: Duration,
}

impl<'a, T: PartialEq> Movement<'a, T> {
    fn new(clock: &'a MachineClock, at: Option<T>) -> Self {
        Movement { clock, at, since: clock.now() }
    }

    /// Returns the time for which the value had not changed before this check. A change now does not matter, because
    /// the check itself may have taken long.
    fn look(&mut self, now: Option<T>) -> Duration {
        let stood = self.clock.now() - self.since;
        if now.is_some() && now != self.at {
            if self.at.is_some() {
                self.since = self.clock.now();
            }
            self.at = now;
        }
        stood
    }
}

/// Reads a topic of ticks as far as it is readable. A commit is acknowledged before its records are readable.
pub struct TickReader {
    reader: Box<dyn Consumer>,
    decoder: TickDecoder,
    symbols: SymbolTable,
    /// Numbers of ticks found, and of other records.
    found: [u64; 2],
}

impl TickReader {
    pub fn new(log: &dyn EventLog, topic: &str, partitions: i32) -> TickReader {
        let source = |partition| TopicPartition { topic: topic.to_owned(), partition };
        let sources: Vec<TopicPartition> = (0..partitions).map(source).collect();
        let reader = log.reader(&sources).expect("partitions of the log");
        TickReader { reader, decoder: TickDecoder::new(), symbols: SymbolTable::default(), found: [0; 2] }
    }

    /// Returns a reader that counts the removed ticks, given by partition, as found.
    pub fn behind(log: &dyn EventLog, topic: &str, removed: &[Vec<Record>]) -> TickReader {
        let mut all = Self::new(log, topic, removed.len() as i32);
        for (partition, records) in (0..).zip(removed) {
            let source = TopicPartition { topic: topic.to_owned(), partition };
            all.reader.seek(&source, behind(records)).expect("an offset of the partition");
            all.count(records);
        }
        all
    }

    /// Reads new records. Returns the total numbers of ticks and of other records.
    pub fn read_on(&mut self) -> [u64; 2] {
        if let Fetched::Records { records, .. } =
            self.reader.poll(READ_WAIT, 4096, 16 << 20).expect("the log can be read")
        {
            self.count(&records);
        }
        self.found
    }

    fn count(&mut self, records: &[Record]) {
        let mut columns = TickColumns::default();
        for record in records {
            let is_other = self.decoder.decode(&record.value, &mut self.symbols, &mut columns).is_err();
            self.found[1] += u64::from(is_other);
        }
        self.found[0] += columns.len() as u64;
    }

    /// Waits until `ticks` ticks and `others` other records have arrived.
    #[track_caller]
    pub fn await_all(mut self, ticks: u64, others: u64) {
        let (mut found, mut since) = ([0; 2], Instant::now());
        while found[0] < ticks || found[1] < others {
            assert!(since.elapsed() < DEADLINE, "{found:?} of {ticks} ticks and {others} others can be read");
            let before = std::mem::replace(&mut found, self.read_on());
            if found != before {
                since = Instant::now();
            }
        }
    }
}

/// Returns the number of a feed's ticks in the log, according to its summary: published now, and present before.
pub fn fed(summary: &str) -> u64 {
    let before = summary
        .split_once(": the first ")
        .and_then(|(_, rest)| rest.split_once(" ticks were already in the log"));
    let before = before.map_or(0, |(number, _)| number.replace(',', "").parse().expect("a number of ticks"));
    before + published(summary)
}

/// Returns the number of ticks that a feed published, according to its summary.
pub fn published(summary: &str) -> u64 {
    let number = summary.split_once("published ").and_then(|(_, rest)| rest.split_once(" ticks"));
    let (number, _) = number.expect("a summary of a feed");
    number.replace(',', "").parse().expect("a number of ticks")
}
