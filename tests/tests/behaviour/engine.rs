//! The real engine on an embedded log, in cases that the recordings do not cover.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvError, bounded};
use warptape_engine::{SnapshotPlace, restore_from};
use warptape_eventlog::{Durability, EventLog, Record, SqliteLog, TopicPartition};
use warptape_kernels::Isa;
use warptape_schemas::{LifecycleEvent, decode_lifecycle, decode_snapshot};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_stages::StageConfig;
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, topic_ends};
use warptape_tests::injected::InjectedLanes;
use warptape_tests::wrapped_log::WrappedLog;

use super::recordings::stage_config;

const PARTITIONS: i32 = 2;
/// Time limit that exceeds the time for 60,000 ticks on any machine.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// Lane of the group of partition 0 with the default seed, if each partition has one group and each lane at most one
/// group.
const LANE_OF_PARTITION_0: i32 = 1;

fn new_log(folder: &tempfile::TempDir, name: &str, ticks: u64) -> Arc<dyn EventLog> {
    let log = SqliteLog::open(folder.path().join(name), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    let config = SynthConfig { symbols: 20, ticks: Some(ticks), ..SynthConfig::default() };
    feed(
        &log,
        PARTITIONS,
        64,
        SynthSource::new(config).expect("the configuration is valid").take(ticks as usize),
    );
    log
}

fn signals(log: &Arc<dyn EventLog>) -> Vec<Vec<u8>> {
    let values =
        |partition| read_partition(log.as_ref(), "signals", partition).into_iter().map(|record| record.value);
    (0..PARTITIONS).flat_map(values).collect()
}

#[test]
fn a_finished_log_and_an_empty_one_end_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db", 20_000);
    assert_eq!(run_to_end(&log, engine_config(stage_config(), 2)).ticks, 20_000);
    let before = signals(&log);
    assert_eq!(run_to_end(&log, engine_config(stage_config(), 3)).ticks, 0);
    assert_eq!(signals(&log), before);
    let empty = new_log(&folder, "empty.db", 0);
    assert_eq!(run_to_end(&empty, engine_config(stage_config(), 2)).ticks, 0);
}

#[test]
fn a_lane_that_fails_does_not_show() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plain = new_log(&folder, "plain.db", 60_000);
    run_to_end(&plain, engine_config(stage_config(), 2));
    let faulty = new_log(&folder, "faulty.db", 60_000);
    let mut config = engine_config(stage_config(), 2);
    config.core.scheduler.batch_rows_max = 1_000;
    config.core.limits.snapshot_interval_records = 50;
    config.lanes = InjectedLanes::failing(1, 3);
    let summary = run_to_end(&faulty, config);
    assert_eq!(summary.ticks, 60_000, "what is read again is counted once");
    assert_eq!(signals(&faulty), signals(&plain));
    let lifecycle = read_partition(faulty.as_ref(), "lifecycle", 0);
    let lost = |record: &warptape_eventlog::Record| {
        let event =
            warptape_schemas::decode_lifecycle(&record.value).expect("lifecycle records are written whole");
        event.event == warptape_schemas::LifecycleEvent::LaneLost
    };
    assert_eq!(lifecycle.iter().filter(|record| lost(record)).count(), 1);
}

/// While the state of a partition is read, records of other partitions are processed and committed.
#[test]
fn a_restore_holds_up_no_other_partition() {
    const TICKS: u64 = 60_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = || {
        let mut config = engine_config(StageConfig { groups_per_partition: 1, ..stage_config() }, 2);
        // This setting gives each lane one of the two groups.
        config.core.scheduler.load_factor_percent = 100;
        config.core.scheduler.batch_rows_max = 1_000;
        config.core.times.commit_interval_ns = 1_000_000;
        config
    };
    let plain = new_log(&folder, "plain.db", TICKS);
    run_to_end(&plain, config());

    new_log(&folder, "held.db", TICKS);
    let log = SqliteLog::open(folder.path().join("held.db"), Durability::Process).expect("the log");
    let (release, released) = bounded::<()>(0);
    let reads = AtomicUsize::new(0);
    let log: Arc<dyn EventLog> = Arc::new(WrappedLog::new(log).with_readers(Box::new(move |of, reader| {
        // The first read belongs to the assignment; the second one, for the restore, is held up.
        let is_held = of[0].topic == "snapshots" && of[0].partition == 0;
        if is_held && reads.fetch_add(1, Ordering::Relaxed) == 1 {
            assert_eq!(released.recv(), Err(RecvError), "the test only drops the other end");
        }
        reader
    })));
    let mut faulty = config();
    faulty.lanes = InjectedLanes::failing(LANE_OF_PARTITION_0, 3);
    let running = {
        let log = log.clone();
        thread::spawn(move || run_to_end(&log, faulty))
    };
    let ends = topic_ends(log.as_ref(), "ticks");
    let committed = |partition: i32| {
        let source = TopicPartition { topic: "ticks".to_owned(), partition };
        log.committed("warptape", &source).expect("the log is readable").unwrap_or(0)
    };
    let since = Instant::now();
    while committed(1) < ends[1].1 {
        assert!(!running.is_finished(), "the engine ends before the restore does");
        assert!(since.elapsed() < WAIT_MAX, "partition 1 waits for the restore of partition 0");
        thread::yield_now();
    }
    assert!(committed(0) < ends[0].1, "the state of partition 0 is being read");
    drop(release);
    assert_eq!(running.join().expect("the engine works").ticks, TICKS);
    assert_eq!(signals(&log), signals(&plain));
    let restored = restored_from(log.as_ref());
    assert_eq!(restored.len(), PARTITIONS as usize + 1, "partition 0 alone is restored again: {restored:?}");
}

fn restored_from(log: &dyn EventLog) -> Vec<String> {
    let events = read_partition(log, "lifecycle", 0);
    let events = events.iter().map(|record| decode_lifecycle(&record.value).expect("it is written whole"));
    events.filter(|event| event.event == LifecycleEvent::Restored).map(|event| event.detail).collect()
}

/// Snapshots are larger than a transaction. Each one overwrites the one before the previous.
#[test]
fn large_snapshots_go_out_in_several_transactions() {
    const TICKS: usize = 10_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder, "log.db", TICKS as u64);
    // Each process life writes only one snapshot, at its end.
    let config = || {
        let mut config = engine_config(stage_config(), 2);
        config.core.limits.commit_bytes_max = 3_000;
        config.core.limits.snapshot_interval_records = 1 << 40;
        config.core.times.commit_interval_ns = 0;
        config
    };
    let ends = || topic_ends(log.as_ref(), "ticks");
    assert_eq!(run_to_end(&log, config()).ticks, TICKS as u64);
    let first_ends = ends();
    let more = SynthConfig { symbols: 20, ticks: Some(2 * TICKS as u64), ..SynthConfig::default() };
    feed(&log, PARTITIONS, 64, SynthSource::new(more).expect("a market").skip(TICKS));
    assert_eq!(run_to_end(&log, config()).ticks, TICKS as u64, "it went on from the first snapshot");

    for ((partition, end), (_, first_end)) in ends().into_iter().zip(first_ends) {
        let part = |record: &Record| {
            let place = SnapshotPlace::of_key(record.key.as_deref().expect("a key"));
            (place, decode_snapshot(&record.value).expect("it is written whole"))
        };
        let parts: Vec<_> = read_partition(log.as_ref(), "snapshots", partition).iter().map(part).collect();
        let restored = |parts: Vec<_>| restore_from(parts, end, &stage_config(), Isa::Baseline);
        let newest = restored(parts.clone());
        assert_eq!(newest.offset, end);
        // This is the state after a crash before the last record of the second snapshot.
        let torn = parts.iter().rposition(|(_, part)| part.offset == end).expect("a part of the newest");
        let older = parts.iter().enumerate().filter(|(number, _)| *number != torn);
        let older = restored(older.map(|(_, part)| part.clone()).collect());
        assert_eq!(older.offset, first_end);
        assert_ne!(older.place, newest.place);
    }
    assert_eq!(run_to_end(&log, config()).ticks, 0);
    let again = restored_from(log.as_ref()).split_off(2 * PARTITIONS as usize);
    assert_eq!(again.len(), PARTITIONS as usize);
    assert!(again.iter().all(|detail| !detail.contains("snapshot at 0")), "{again:?}");
}
