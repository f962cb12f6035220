//! Aborted transactions, and transactions of unknown outcome: no record may be lost or repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, LogError, NewRecord, Producer, SqliteLog, TopicPartition};
use warptape_pipeline::runtime::{EngineConfig, Topics};
use warptape_replay::{VerifyOptions, verify};
use warptape_schemas::tick::Tick;
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_stages::StageConfig;
use warptape_tests::engine_run::{engine_config, feed, publisher, read_partition, run_to_end};
use warptape_tests::wrapped_log::WrappedLog;

const PARTITIONS: i32 = 2;
const TICKS: usize = 60_000;
/// Number of parts of the ticks; each part is fed and processed to its end.
const RUNS: usize = PLAN.len() + 2;
/// Number of ticks per transaction of a publisher.
const FLUSH_TICKS: usize = 1_000;

/// The fate of a commit, and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The transaction commits, and the answer arrives.
    None,
    /// The transaction commits, but no answer arrives.
    Committed,
    /// The transaction does not commit, and no answer arrives.
    Lost,
    /// The transaction is aborted, and the answer arrives.
    Aborted,
    /// Sending the offsets fails, as for a group member that was replaced.
    Offsets,
}

/// Faults of consecutive commits; they repeat from the start.
const PLAN: [Fault; 8] = [
    Fault::None,
    Fault::Committed,
    Fault::Committed,
    Fault::Lost,
    Fault::None,
    Fault::Aborted,
    Fault::Lost,
    Fault::Offsets,
];

/// A producer whose transactions fail according to the plan, if it is the victim.
struct FaultyProducer {
    producer: Box<dyn Producer>,
    transactional_id: String,
    is_victim: bool,
    commits: Arc<AtomicU64>,
    /// Number of times that each entry of the plan was used.
    met: Arc<[AtomicU64; PLAN.len()]>,
}

impl FaultyProducer {
    /// Returns the fault of the current attempt.
    fn fault(&self) -> Fault {
        let place = self.commits.load(Ordering::Relaxed) as usize % PLAN.len();
        if self.is_victim { PLAN[place] } else { Fault::None }
    }

    fn count(&self) {
        if !self.is_victim {
            return;
        }
        let place = self.commits.fetch_add(1, Ordering::Relaxed) as usize % PLAN.len();
        self.met[place].fetch_add(1, Ordering::Relaxed);
    }

    fn unknown(&self) -> LogError {
        LogError::OutcomeUnknown {
            url: "faulty".to_owned(),
            transactional_id: self.transactional_id.clone(),
            doing: "committing".to_owned(),
            cause: "the test wants it".to_owned(),
        }
    }

    fn aborted(&self) -> LogError {
        LogError::Aborted {
            url: "faulty".to_owned(),
            transactional_id: self.transactional_id.clone(),
            cause: "the test wants it".to_owned(),
        }
    }
}

impl Producer for FaultyProducer {
    fn begin(&mut self) -> Result<(), LogError> {
        self.producer.begin()
    }

    fn send(&mut self, record: NewRecord<'_>) -> Result<(), LogError> {
        self.producer.send(record)
    }

    fn send_offsets(&mut self, group: &str, offsets: &[(TopicPartition, i64)]) -> Result<(), LogError> {
        if self.fault() == Fault::Offsets {
            self.count();
            return Err(self.aborted());
        }
        self.producer.send_offsets(group, offsets)
    }

    fn send_position(&mut self, group: &str, partition: &TopicPartition, next: i64) -> Result<(), LogError> {
        self.producer.send_position(group, partition, next)
    }

    fn commit_as_owner(&mut self, is_owner: &dyn Fn() -> bool) -> Result<(), LogError> {
        let fault = self.fault();
        self.count();
        match fault {
            Fault::None | Fault::Offsets => self.producer.commit_as_owner(is_owner),
            Fault::Committed => self.producer.commit().and(Err(self.unknown())),
            Fault::Lost => self.producer.abort().and(Err(self.unknown())),
            Fault::Aborted => Err(self.aborted()),
        }
    }

    fn abort(&mut self) -> Result<(), LogError> {
        self.producer.abort()
    }
}

fn stage_config() -> StageConfig {
    let bars = ["1s", "tick:10"].map(|spec| spec.parse().expect("valid")).to_vec();
    StageConfig::unlimited(bars, 1_000_000_000, 4)
}

/// Returns a configuration with small steps, so that the plan is used often.
fn config() -> EngineConfig {
    {
        let mut config = engine_config(stage_config(), 2);
        config.core.times.commit_interval_ns = std::time::Duration::from_millis(1).as_nanos() as i64;
        config.core.limits.snapshot_interval_records = 20;
        config.poll_records_max = 4;
        config
    }
}

fn values(log: &Arc<dyn EventLog>, topic: &str) -> Vec<Vec<Vec<u8>>> {
    let read = |partition| {
        read_partition(log.as_ref(), topic, partition).into_iter().map(|record| record.value).collect()
    };
    (0..PARTITIONS).map(read).collect()
}

fn market() -> impl Iterator<Item = Tick> {
    SynthSource::new(SynthConfig { symbols: 40, ..SynthConfig::default() }).expect("valid").take(TICKS)
}

fn sound(folder: &TempDir) -> Arc<dyn EventLog> {
    Arc::new(SqliteLog::open(folder.path().join("sound.db"), Durability::Process).expect("a new log"))
}

/// Returns an embedded log in which the transactions of the producer `victim` fail according to the plan. Also returns
/// how often each entry of the plan was used.
fn faulty(folder: &TempDir, victim: &'static str) -> (Arc<dyn EventLog>, Arc<[AtomicU64; PLAN.len()]>) {
    let log = SqliteLog::open(folder.path().join("faulty.db"), Durability::Process).expect("a new log");
    let met: Arc<[AtomicU64; PLAN.len()]> = Arc::default();
    let (commits, met_there) = (Arc::<AtomicU64>::default(), met.clone());
    let wrap = move |transactional_id: &str, producer| -> Box<dyn Producer> {
        Box::new(FaultyProducer {
            producer,
            transactional_id: transactional_id.to_owned(),
            is_victim: transactional_id == victim,
            commits: commits.clone(),
            met: met_there.clone(),
        })
    };
    (Arc::new(WrappedLog::new(log).with_producers(Box::new(wrap))), met)
}

#[track_caller]
fn expect_all_met(met: &[AtomicU64; PLAN.len()]) {
    for (fault, met) in PLAN.iter().zip(met) {
        assert!(met.load(Ordering::Relaxed) > 0, "{fault:?} was not met");
    }
}

#[test]
fn faults_of_commits_lose_nothing_and_double_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sound = sound(&folder);
    let (faulty, met) = faulty(&folder, "warptape-0");
    // Each run commits at least once, even on a slow machine, so the whole plan is used.
    let (mut ticks, mut signals) = (0, 0);
    for run in 0..RUNS {
        for log in [&sound, &faulty] {
            feed(log, PARTITIONS, 64, market().skip(run * TICKS / RUNS).take(TICKS / RUNS));
        }
        let found = run_to_end(&faulty, config());
        ticks += found.ticks;
        signals += found.signals;
    }
    let expected = run_to_end(&sound, config());

    assert_eq!((ticks, signals), (expected.ticks, expected.signals));
    assert!(values(&faulty, "signals") == values(&sound, "signals"), "the signals differ");
    let mut options = VerifyOptions::new(&Topics::new(""), &config().core.group);
    options.outputs = true;
    let report = verify(faulty.as_ref(), &options, &mut |_| {}).expect("the log can be read");
    assert!(report.is_identical(), "{report}");
    expect_all_met(&met);
}

#[test]
fn faults_of_a_publisher_lose_nothing_and_double_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sound = sound(&folder);
    let (faulty, met) = faulty(&folder, "feed");
    for log in [&sound, &faulty] {
        // A publisher that follows another one with the same name continues its count.
        for publisher_of in 0..2 {
            let mut publisher = publisher(log, PARTITIONS, 8);
            for (number, tick) in (1..).zip(market().skip(publisher_of * TICKS / 2).take(TICKS / 2)) {
                publisher.push(tick).expect("the tick is valid");
                if number % FLUSH_TICKS == 0 {
                    publisher.flush().expect("the log takes the ticks in the end");
                }
            }
            publisher.flush().expect("the log takes the ticks in the end");
            assert_eq!(publisher.published().ticks, TICKS as u64 / 2);
        }
    }
    assert!(values(&faulty, "ticks") == values(&sound, "ticks"), "the ticks differ");
    expect_all_met(&met);
}
