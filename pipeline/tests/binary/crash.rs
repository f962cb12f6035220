//! `kill -9` of `run` at random moments under load: nothing lost, nothing twice, the outputs those of an uninterrupted
//! run over the same ticks.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::Input;

use super::outputs::{OUTPUT_TOPICS, count, first_difference, outputs, records};
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape};

const KILLS: u64 = 20;
const KILLS_QUICK: u64 = 4;
const PARTITIONS: i32 = 3;
const FEED_TICKS_PER_SECOND: &str = "200000";
/// Longest life of a run, and of one that is to be killed while it begins.
const LIFE_MS_MAX: u64 = 800;
const BEGINNING_MS_MAX: u64 = 40;
/// One run in this many is killed while it begins.
const BEGINNINGS_ONE_IN: u64 = 3;
/// Tick records of one transaction when ticks are copied.
const COPY_RECORDS: usize = 256;

/// Commits that follow each other at once, each waiting for the disk, so that most kills hit one; and commits with
/// work between them.
const COMMITS: [(&str, &str, u64); 2] = [("committing.toml", "full", 1), ("working.toml", "process", 20)];
/// Short intervals, so that kills hit snapshots and restores as well.
const CONFIGURATION: &str = r#"
engine.devices = ["cpu:2"]
engine.snapshot_interval_records = 20
engine.poll_records_max = 16
stages.bars = ["1s", "tick:1"]
stages.allowed_lateness_ms = 1000
stages.groups_per_partition = 4
"#;

fn write_configurations(folder: &Path) {
    for (file, durability, commit_interval_ms) in COMMITS {
        let commits =
            format!("engine.commit_interval_ms = {commit_interval_ms}\nlog.durability = \"{durability}\"");
        std::fs::write(folder.join(file), format!("{commits}\n{CONFIGURATION}")).expect("a file");
    }
}

/// A stream of random numbers: SplitMix64.
struct Random(u64);

impl Random {
    /// Seeded by WARPTAPE_TEST_SEED, else by the time; says which.
    fn from_environment() -> Random {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
        let seed = match std::env::var("WARPTAPE_TEST_SEED") {
            Ok(text) => text.parse().expect("WARPTAPE_TEST_SEED is a whole number"),
            Err(_) => since.as_nanos() as u64,
        };
        println!("seed {seed}: set WARPTAPE_TEST_SEED to it for the same ticks and the same delays");
        Random(seed)
    }

    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % count
    }
}

fn new_log(folder: &Path, name: &str) -> SqliteLog {
    let log = SqliteLog::open(folder.join(name), Durability::Process).expect("a new log");
    let ticks = TopicSpec { name: "ticks".to_owned(), partitions: PARTITIONS, ..TopicSpec::default() };
    log.create_topics(&[ticks]).expect("a new topic");
    log
}

/// Appends a record that is no tick.
fn poison(log: &SqliteLog, random: &mut Random) {
    let mut producer = log.producer("poison").expect("a producer");
    producer.begin().expect("a transaction");
    let value = format!("no tick {}", random.below(1000)).into_bytes();
    let partition = random.below(PARTITIONS as u64) as i32;
    let record = NewRecord { topic: "ticks".into(), partition, value: value.into(), ..NewRecord::default() };
    producer.send(record).expect("a record of the transaction");
    producer.commit().expect("a commit");
}

/// Copies the ticks to the same offsets of another log.
fn copy_ticks(from: &SqliteLog, to: &SqliteLog) {
    let mut producer = to.producer("copy").expect("a producer");
    for partition in 0..PARTITIONS {
        for some in records(from, "ticks", partition).chunks(COPY_RECORDS) {
            producer.begin().expect("a transaction");
            for record in some {
                let copy = NewRecord {
                    topic: "ticks".into(),
                    partition,
                    key: record.key.as_deref().map(Into::into),
                    headers: record.headers.as_slice().into(),
                    timestamp_ns: record.timestamp_ns,
                    value: record.value.as_slice().into(),
                };
                producer.send(copy).expect("a record of the transaction");
            }
            producer.commit().expect("a commit");
        }
    }
}

fn start_run(folder: &Path, url: &str, configuration: &str) -> Running {
    Running::start(folder, &["run", "-c", configuration, "--log", url])
}

/// Lets a last run process what is left, and stop.
fn drain(folder: &Path, url: &str, log: &SqliteLog) {
    let (configuration, ..) = COMMITS[1];
    let mut run = start_run(folder, url, configuration);
    run_until_drained(&mut run, log, "warptape");
    let summary = run.stop("TERM");
    assert!(summary.contains("ticks  ") && summary.contains("signals  "), "{summary}");
}

/// What the journal tells of the lives: how many began, how many partitions were restored from a snapshot, and how
/// many of these had ticks to redo behind it.
#[derive(Debug, Default)]
struct Lives {
    began: u64,
    from_snapshot: u64,
    with_tail: u64,
}

fn lives(log: &SqliteLog) -> Lives {
    let mut lives = Lives::default();
    for record in records(log, "journal", 0) {
        match decode_journal_entry(&record.value).expect("a journal entry").input {
            Input::Started(_) => lives.began += 1,
            Input::PartitionAssigned(assigned) if assigned.snapshot_offset > 0 => {
                lives.from_snapshot += 1;
                lives.with_tail += u64::from(assigned.committed_offset > assigned.snapshot_offset);
            }
            _ => {}
        }
    }
    lives
}

#[test]
fn kills_lose_nothing_and_double_nothing() {
    let mut random = Random::from_environment();
    let kills = if std::env::var_os("WARPTAPE_TEST_QUICK").is_some() { KILLS_QUICK } else { KILLS };
    let folder = folder();
    let folder = folder.path();
    write_configurations(folder);
    let crashed = new_log(folder, "crashed.db");
    let seed = random.below(1 << 32).to_string();
    let mut feed = Running::start(
        folder,
        &[
            &["feed", "synth", "--symbols", "50", "--ticks", "1000000000", "--batch", "16", "--seed", &seed],
            &["--rate", FEED_TICKS_PER_SECOND, "--log", "sqlite:crashed.db"][..],
        ]
        .concat(),
    );
    let in_all_partitions = |topic: &str| {
        ends(&crashed, topic).len() == PARTITIONS as usize && !ends(&crashed, topic).contains(&0)
    };
    feed.run_until("ticks are published", || in_all_partitions("ticks").then_some(()));

    for kill in 0..kills {
        let (configuration, ..) = COMMITS[kill as usize % COMMITS.len()];
        let mut run = start_run(folder, "sqlite:crashed.db", configuration);
        if kill == 0 {
            run.run_until("snapshots are written", || in_all_partitions("snapshots").then_some(()));
        }
        let life_ms_max = if random.below(BEGINNINGS_ONE_IN) == 0 { BEGINNING_MS_MAX } else { LIFE_MS_MAX };
        run.run_for(Duration::from_millis(random.below(life_ms_max)));
        assert!(feed.is_running(), "the load is gone");
        run.kill();
        poison(&crashed, &mut random);
    }
    let fed = feed.stop("TERM");
    drain(folder, "sqlite:crashed.db", &crashed);

    let uninterrupted = new_log(folder, "uninterrupted.db");
    copy_ticks(&crashed, &uninterrupted);
    drain(folder, "sqlite:uninterrupted.db", &uninterrupted);
    let (expected, found) = (outputs(&uninterrupted), outputs(&crashed));
    if let Some(difference) = first_difference(&expected, &found) {
        panic!("the outputs differ from those of an uninterrupted run: {difference}");
    }
    // What was compared is worth it: there is much of it, and the kills hit what they were to hit.
    let counts = OUTPUT_TOPICS.map(|topic| count(&found, topic));
    let lives = lives(&crashed);
    println!("{kills} kills, {fed}signals, late, dead letters: {counts:?}; {lives:?}");
    assert!(counts[0] > 1000 && counts[1] > 0 && counts[2] as u64 == kills, "{counts:?}");
    assert!(lives.began >= 2 && lives.from_snapshot > 0, "{lives:?}");
    // A few lives may all end before their first commit; so many cannot.
    assert!(kills == KILLS_QUICK || (lives.began > 2 && lives.with_tail > 0), "{lives:?}");

    let verify = ["replay", "verify", "--outputs", "--log", "sqlite:crashed.db"];
    let (said, _) = texts(&warptape(folder, &verify), 0);
    assert!(said.ends_with(&format!(" decisions, {} signals: identical\n", counts[0])), "{said}");
}
