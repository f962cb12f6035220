//! The real engine on an embedded log, in the corners that recordings do not reach.

use std::sync::Arc;

use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_pipeline::engine::LaneFault;
use warptape_pipeline::sources::synth::{SynthConfig, SynthSource};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end};

use super::recordings::stage_config;

const PARTITIONS: i32 = 2;

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
    config.scheduler.batch_rows_max = 1_000;
    config.snapshot_interval_records = 50;
    config.lane_faults = vec![LaneFault { lane: 1, after_batches: 3 }];
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
