//! One symbol with a third of all ticks: where groups live follows what lanes have to do, and no output tells.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_pipeline::engine::{EngineConfig, LaneHandicap};
use warptape_scheduler::{STEP_BYTES_MAX, in_steps};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Decision, Input, JournalEntry, LaneId, ReleaseCause};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end};

use super::recordings::stage_config;

const PARTITIONS: i32 = 2;
const LANES: i32 = 4;
const TICKS: usize = 150_000;
/// What a lane takes for a row at least: so lanes are the bottleneck, however many cores there are.
const ROW_NS: u64 = 40_000;

fn new_log(folder: &tempfile::TempDir, name: &str) -> Arc<dyn EventLog> {
    let log = SqliteLog::open(folder.path().join(name), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    let config = SynthConfig { symbols: 200, ticks: Some(TICKS as u64), ..SynthConfig::default() };
    let source = SynthSource::new(config).expect("the configuration is valid");
    // Three ticks of ten are of one symbol.
    let hot = |(number, mut tick): (usize, warptape_schemas::tick::Tick)| {
        if number % 10 < 3 {
            tick.symbol = "SYNTH:HOT".to_owned();
        }
        tick
    };
    feed(&log, PARTITIONS, 64, source.take(TICKS).enumerate().map(hot));
    log
}

fn config(policy: &str) -> EngineConfig {
    let mut config = engine_config(stage_config(), LANES);
    config.core.scheduler.placement_policy = in_steps(policy, STEP_BYTES_MAX);
    config.core.scheduler.balance_interval_ns = 50_000_000;
    config.core.scheduler.batch_rows_max = 500;
    // Lanes set the pace of reading: what has been read to the end stays where it is.
    (config.core.scheduler.high_water_rows, config.core.scheduler.low_water_rows) = (8_000, 4_000);
    config.poll_records_max = 16;
    let handicap = |lane| LaneHandicap { lane, row_ns: Arc::new(AtomicU64::new(ROW_NS)) };
    config.lane_handicaps = (0..LANES).map(handicap).collect();
    config
}

fn run(policy: &str, folder: &tempfile::TempDir) -> (Arc<dyn EventLog>, Duration) {
    let log = new_log(folder, policy);
    let begun = Instant::now();
    assert_eq!(run_to_end(&log, config(policy)).ticks, TICKS as u64);
    let took = begun.elapsed();
    (log, took)
}

fn signals(log: &Arc<dyn EventLog>) -> Vec<Vec<u8>> {
    let values =
        |partition| read_partition(log.as_ref(), "signals", partition).into_iter().map(|record| record.value);
    (0..PARTITIONS).flat_map(values).collect()
}

fn journal(log: &Arc<dyn EventLog>) -> Vec<JournalEntry> {
    let records = read_partition(log.as_ref(), "journal", 0);
    records.iter().map(|record| decode_journal_entry(&record.value).expect("an entry")).collect()
}

/// The fewest groups, itself included, that the lane of the group with most rows had at any time.
fn fewest_beside_the_hot_one(journal: &[JournalEntry]) -> usize {
    let mut rows = BTreeMap::<(i32, i32), i64>::new();
    for entry in journal {
        if let Input::Arrived(arrived) = &entry.input {
            for arrival in &arrived.groups {
                *rows.entry((arrived.partition, arrival.group)).or_default() += arrival.rows;
            }
        }
    }
    let (hot, _) = rows.into_iter().max_by_key(|(_, rows)| *rows).expect("there are groups");
    let mut lanes = BTreeMap::<(i32, i32), LaneId>::new();
    let mut fewest = usize::MAX;
    for decision in journal.iter().flat_map(|entry| &entry.decisions) {
        match decision {
            Decision::Place(place) => _ = lanes.insert((place.partition, place.group), place.lane),
            Decision::Release(release) => _ = lanes.remove(&(release.partition, release.group)),
            _ => continue,
        }
        if let Some(lane) = lanes.get(&hot).filter(|_| lanes.len() > 8) {
            fewest = fewest.min(lanes.values().filter(|other| *other == lane).count());
        }
    }
    fewest
}

#[test]
fn the_lane_of_a_hot_symbol_is_left_to_it_and_no_output_tells() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (fixed, fixed_took) = run("rendezvous", &folder);
    let (balanced, balanced_took) = run("balanced", &folder);
    assert_eq!(signals(&balanced), signals(&fixed));
    let journal = journal(&balanced);
    let moves = journal.iter().flat_map(|entry| &entry.decisions).filter(
        |decision| matches!(decision, Decision::Release(release) if release.cause == ReleaseCause::Balance),
    );
    let gain = fixed_took.as_secs_f64() / balanced_took.as_secs_f64();
    println!(
        "{fixed_took:?} by hashing, {balanced_took:?} balanced with {} moves: {gain:.2} times",
        moves.count()
    );
    assert_eq!(fewest_beside_the_hot_one(&journal), 1, "other groups stay on the lane of the hot one");
    assert!(gain > 1.2, "{fixed_took:?} by hashing, {balanced_took:?} balanced");
}
