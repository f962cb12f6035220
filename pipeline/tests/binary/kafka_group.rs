//! Several processes in one group on a real broker: one joins and one leaves under load, and the outputs are those of
//! one process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use warptape_eventlog::{EventLog, Fetched, KafkaLog, KafkaOptions, Record, TopicPartition};
use warptape_schemas::journal::{Decision, Input};
use warptape_schemas::{decode_journal_entry, decode_lifecycle};

use super::broker::{Broker, shared};
use super::processes::{Running, folder, texts, warptape};
use super::proxy::{Fault, Proxy};

const PARTITIONS: i32 = 6;
const TICKS: &str = "300000";
const TICKS_FEW: &str = "120000";
const TICKS_PER_SECOND: &str = "30000";
/// Wait between two looks whether the end of a partition is reached.
const READ_WAIT: Duration = Duration::from_millis(50);
const CONFIGURATION: &str = r#"
engine.devices = ["cpu:2"]
engine.commit_interval_ms = 20
engine.snapshot_interval_records = 50
engine.poll_records_max = 16
stages.bars = ["1s", "tick:5"]
stages.allowed_lateness_ms = 1000
stages.groups_per_partition = 4
"#;

/// A broker's log with topics of one test.
struct Cluster {
    log: KafkaLog,
    url: String,
    prefix: String,
}

impl Cluster {
    /// Writes a configuration into the folder and creates its topics.
    fn new(folder: &Path, name: &str, settings: &str) -> Cluster {
        Self::on(&shared().brokers, folder, name, &format!("{CONFIGURATION}{settings}"))
    }

    /// Likewise on the broker at this address.
    fn on(address: &str, folder: &Path, name: &str, configuration: &str) -> Cluster {
        let since_epoch = SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970");
        let prefix = format!("{name}-{}.", since_epoch.as_nanos());
        let topics = format!(
            "topics.prefix = \"{prefix}\"\ntopics.partitions = {PARTITIONS}\ntopics.journal_partitions = 3\n\
             engine.group = \"{prefix}\"\n"
        );
        std::fs::write(folder.join("w.toml"), topics + configuration).expect("a file");
        let log = KafkaLog::open(KafkaOptions::new(address)).expect("a broker");
        let cluster = Cluster { log, url: format!("kafka:{address}"), prefix };
        texts(&warptape(folder, &["topics", "create", "-c", "w.toml", "--log", &cluster.url]), 0);
        cluster
    }

    fn start(&self, folder: &Path, command: &[&str]) -> Running {
        Running::start(folder, &[command, &["-c", "w.toml", "--log", &self.url]].concat())
    }

    /// A process of the group. What is its own comes from the environment in production, here from a file.
    fn start_run(&self, folder: &Path, ordinal: i32) -> Running {
        self.start_run_by(&self.url, folder, ordinal)
    }

    /// Likewise, that reaches the log by another address.
    fn start_run_by(&self, url: &str, folder: &Path, ordinal: i32) -> Running {
        let common = std::fs::read_to_string(folder.join("w.toml")).expect("the common file");
        let file = format!("w{ordinal}.toml");
        std::fs::write(folder.join(&file), format!("{common}\nengine.ordinal = {ordinal}\n"))
            .expect("a file");
        Running::start(folder, &["run", "-c", &file, "--log", url])
    }

    fn records(&self, topic: &str, partition: i32) -> Vec<Record> {
        let source = TopicPartition { topic: format!("{}{topic}", self.prefix), partition };
        let mut reader = self.log.reader(std::slice::from_ref(&source)).expect("a partition of the log");
        let end = reader.offsets(&source).expect("the log can be read").next;
        let mut all = Vec::new();
        while reader.position(&source).expect("the log can be read") < end {
            let fetched = reader.poll(READ_WAIT, 4096, 16 << 20).expect("the log can be read");
            if let Fetched::Records { records, .. } = fetched {
                all.extend(records);
            }
        }
        all
    }

    /// Waits until everything that the feed publishes is processed.
    #[track_caller]
    fn drain(&self, feed: Running, run: &mut Running) {
        let (status, _, error) = feed.finish();
        assert_eq!(status.code(), Some(0), "{error}");
        self.run_to_end(run);
    }

    /// Waits until everything that is there is processed.
    #[track_caller]
    fn run_to_end(&self, run: &mut Running) {
        let end = |partition| self.records("ticks", partition).last().map_or(0, |record| record.offset + 1);
        let ends: Vec<i64> = (0..PARTITIONS).map(end).collect();
        let done =
            || (0..).zip(&ends).all(|(partition, &end)| self.committed(partition) >= end).then_some(());
        run.run_until("all ticks are processed", done);
    }

    /// Asserts that all processes together decided and put out what one would have.
    #[track_caller]
    fn verify(&self, folder: &Path) {
        let verify = ["replay", "verify", "--outputs", "-c", "w.toml", "--log", &self.url];
        let (said, _) = texts(&warptape(folder, &verify), 0);
        assert!(said.ends_with(" signals: identical\n") && !said.contains(", 0 signals"), "{said}");
    }

    /// Committed offset of a partition of the ticks.
    fn committed(&self, partition: i32) -> i64 {
        let source = TopicPartition { topic: format!("{}ticks", self.prefix), partition };
        self.log.committed(&self.prefix, &source).expect("the log can be read").unwrap_or(0)
    }
}

/// What the journal of a process says: which partitions it was given, and which of their groups it placed.
#[derive(Debug, Default)]
struct History {
    partitions: BTreeSet<i32>,
    placed: BTreeSet<(i32, i32)>,
}

fn histories(cluster: &Cluster) -> BTreeMap<i32, History> {
    let mut histories: BTreeMap<i32, History> = BTreeMap::new();
    for ordinal in 0..3 {
        for record in cluster.records("journal", ordinal) {
            let entry = decode_journal_entry(&record.value).expect("a journal entry");
            let history = histories.entry(ordinal).or_default();
            if let Input::PartitionAssigned(assigned) = &entry.input {
                history.partitions.insert(assigned.partition);
            }
            for decision in &entry.decisions {
                if let Decision::Place(place) = decision {
                    history.placed.insert((place.partition, place.group));
                }
            }
        }
    }
    histories
}

#[test]
fn processes_join_and_leave_under_load() {
    let folder = folder();
    let folder = folder.path();
    let cluster = Cluster::new(folder, "group", "kafka.session_timeout_ms = 6000\n");
    let mut first = cluster.start_run(folder, 0);
    let synth = ["feed", "synth", "--symbols", "60", "--ticks", TICKS, "--batch", "8"];
    let mut feed = cluster.start(folder, &[&synth[..], &["--rate", TICKS_PER_SECOND]].concat());
    first.run_until("the first process commits", || {
        (0..PARTITIONS).all(|p| cluster.committed(p) > 0).then_some(())
    });

    let gives = |ordinal: i32| (!cluster.records("journal", ordinal).is_empty()).then_some(());
    let mut second = cluster.start_run(folder, 1);
    second.run_until("the second process has partitions", || gives(1));
    let mut third = cluster.start_run(folder, 2);
    third.run_until("the third process has partitions", || gives(2));
    assert!(feed.is_running() && first.is_running(), "there is no load any more");
    second.stop("TERM");

    cluster.drain(feed, &mut third);
    third.stop("TERM");
    first.stop("TERM");
    cluster.verify(folder);

    // Which symbol lived where is in the journals: each process had partitions, and some moved.
    let histories = histories(&cluster);
    assert_eq!(histories.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    let owned: usize = histories.values().map(|history| history.partitions.len()).sum();
    assert!(owned > PARTITIONS as usize, "no partition moved: {histories:?}");
    for history in histories.values() {
        let placed: BTreeSet<i32> = history.placed.iter().map(|(partition, _)| *partition).collect();
        assert_eq!(placed, history.partitions, "every group of an owned partition is placed");
    }
}

#[test]
fn processes_share_partitions_by_the_brokers_protocol() {
    let folder = folder();
    let folder = folder.path();
    let cluster = Cluster::new(folder, "kip848", "kafka.group_protocol = \"consumer\"\n");
    let synth = ["feed", "synth", "--symbols", "60", "--ticks", TICKS_FEW, "--batch", "8"];
    let mut first = cluster.start_run(folder, 0);
    let feed = cluster.start(folder, &[&synth[..], &["--rate", TICKS_PER_SECOND]].concat());
    first.run_until("the first process commits", || {
        (0..PARTITIONS).all(|p| cluster.committed(p) > 0).then_some(())
    });
    let mut second = cluster.start_run(folder, 1);
    let owned = |ordinal: i32| histories(&cluster).remove(&ordinal).unwrap_or_default().partitions;
    second.run_until("the second process has partitions", || (!owned(1).is_empty()).then_some(()));
    first.stop("TERM");
    // The broker keeps the place of a static member for the session timeout.
    second.run_until("the second process has all partitions", || (owned(1) == owned(0)).then_some(()));
    cluster.drain(feed, &mut second);
    second.stop("TERM");
    cluster.verify(folder);
    assert_eq!(owned(1), (0..PARTITIONS).collect());
}

#[test]
fn a_commit_that_outlasts_a_revocation_commits_nothing_of_it() {
    let folder = folder();
    let folder = folder.path();
    let proxy = Proxy::start();
    let broker = Broker::start_behind("revoked", &proxy.address);
    proxy.lead_to(&broker.address);
    // Much is in a transaction, so that something of every partition is in the one that is held up.
    let settings = "kafka.session_timeout_ms = 30000\n";
    let configuration = CONFIGURATION.replace("commit_interval_ms = 20", "commit_interval_ms = 1000");
    let cluster = Cluster::on(&broker.direct, folder, "revoked", &(configuration + settings));

    let mut first = cluster.start_run_by(&format!("kafka:{}", proxy.address), folder, 0);
    let synth = ["feed", "synth", "--symbols", "60", "--ticks", "1000000000", "--batch", "8"];
    let mut feed = cluster.start(folder, &[&synth[..], &["--rate", "3000"]].concat());
    first.run_until("the first process commits", || {
        (0..PARTITIONS).all(|p| cluster.committed(p) > 0).then_some(())
    });
    proxy.impose(Fault::HeldRecords);
    let mut second = cluster.start_run(folder, 1);
    let owned = |ordinal: i32| histories(&cluster).remove(&ordinal).unwrap_or_default().partitions;
    second.run_until("the second process has partitions", || (!owned(1).is_empty()).then_some(()));
    proxy.impose(Fault::None);

    feed.run_for(Duration::from_secs(1));
    feed.stop("TERM");
    cluster.run_to_end(&mut second);
    second.stop("TERM");
    first.stop("TERM");
    let not_in_time = cluster.records("lifecycle", 0).iter().any(|record| {
        decode_lifecycle(&record.value)
            .is_ok_and(|lifecycle| lifecycle.detail.contains("not committed in time"))
    });
    assert!(not_in_time, "the commit was not held up for long enough");
    cluster.verify(folder);
}
