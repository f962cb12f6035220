//! Where groups live follows what real lanes have to do, and no output tells.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{bounded, never};
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_pipeline::clock::wall_clock_ns;
use warptape_pipeline::engine::{EngineConfig, LaneHandicap, Progress, Stop, run};
use warptape_scheduler::{STEP_BYTES_MAX, in_steps};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Decision, Input, JournalEntry, LaneId, Release, ReleaseCause};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_tests::engine_run::{engine_config, feed, publisher, read_partition, run_to_end, topic_ends};

use super::live_feed::assert_identical;
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

fn run_by(policy: &str, folder: &tempfile::TempDir) -> (Arc<dyn EventLog>, Duration) {
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
    let (fixed, fixed_took) = run_by("rendezvous", &folder);
    let (balanced, balanced_took) = run_by("balanced", &folder);
    assert_eq!(signals(&balanced), signals(&fixed));
    assert_identical(&balanced, "warptape");
    let journal = journal(&balanced);
    let moves = journal.iter().flat_map(|entry| &entry.decisions).filter(
        |decision| matches!(decision, Decision::Release(release) if release.cause == ReleaseCause::Balance),
    );
    let gain = fixed_took.as_secs_f64() / balanced_took.as_secs_f64();
    println!(
        "{fixed_took:?} by hashing, {balanced_took:?} balanced with {} moves: {gain:.2} times",
        moves.count()
    );
    let fewest = fewest_beside_the_hot_one(&journal);
    assert!(fewest <= 2, "{fewest} groups are on the lane of the hot one, itself included");
    assert!(gain > 1.1, "{fixed_took:?} by hashing, {balanced_took:?} balanced");
}

/// Ticks in a second, and time between two pieces of them.
const TICKS_PER_S: usize = 25_000;
const PIECE: Duration = Duration::from_millis(10);

/// Time of the engine's journal at which a lane began to be slow and was as before, and its end.
struct Phases {
    slow_ns: i64,
    over_ns: i64,
}

/// Feeds a market as it happens, while lane 1 is tenfold slower for some seconds.
fn run_with_a_slow_lane(log: &Arc<dyn EventLog>) -> Phases {
    let config = EngineConfig { poll_records_max: 256, ..config("balanced") };
    let mut config = config;
    config.core.scheduler.balance_interval_ns = 250_000_000;
    config.core.scheduler.high_water_rows = 1 << 20;
    let slow_lane = config.lane_handicaps[1].row_ns.clone();
    let (topics, lanes) = (config.core.topics.clone(), config.core.lanes.len());
    let symbols = SynthConfig { symbols: 400, ..SynthConfig::default() };
    let mut market = SynthSource::new(symbols).expect("the configuration is valid");
    let mut publisher = publisher(log, PARTITIONS, 16);
    let (stop, stopped) = bounded(1);
    let engine = {
        let log = log.clone();
        std::thread::spawn(move || run(log, config, Arc::new(Progress::new(lanes)), stopped))
    };
    let begun = Instant::now();
    let mut pieces = 0;
    let mut feed_until = |until: Duration| {
        while begun.elapsed() < until {
            for tick in market.by_ref().take(TICKS_PER_S * PIECE.as_millis() as usize / 1_000) {
                publisher.push(tick).expect("the tick is valid");
            }
            publisher.flush().expect("the log takes the ticks");
            pieces += 1;
            let rest = (PIECE * pieces).saturating_sub(begun.elapsed());
            never::<()>().recv_timeout(rest).expect_err("nothing comes");
        }
    };
    feed_until(Duration::from_secs(3));
    let slow_ns = wall_clock_ns();
    slow_lane.store(10 * ROW_NS, Ordering::Relaxed);
    feed_until(Duration::from_secs(8));
    let over_ns = wall_clock_ns();
    slow_lane.store(ROW_NS, Ordering::Relaxed);
    feed_until(Duration::from_secs(14));
    let ticks = topic_ends(log.as_ref(), &topics.ticks);
    let requests = topic_ends(log.as_ref(), &topics.risk_requests);
    stop.send(Stop::At { ticks, requests }).expect("the engine listens");
    engine.join().expect("no panic").expect("the engine works");
    Phases { slow_ns, over_ns }
}

/// How long after its arrival the oldest row of a batch was done, of all batches done within a time, by the 99th of 100 rows.
fn p99(journal: &[JournalEntry], from_ns: i64, to_ns: i64) -> Duration {
    let mut dispatched = BTreeMap::new();
    let mut ages = Vec::new();
    for entry in journal {
        if let Input::Completed(completed) = &entry.input
            && let Some((oldest_ns, rows)) = dispatched.remove(&completed.batch)
            && (from_ns..to_ns).contains(&entry.at_ns)
        {
            ages.push((entry.at_ns - oldest_ns, rows));
        }
        for decision in &entry.decisions {
            if let Decision::Dispatch(dispatch) = decision {
                dispatched.insert(dispatch.batch, (dispatch.oldest_arrival_ns, dispatch.rows));
            }
        }
    }
    ages.sort_unstable();
    let all: i64 = ages.iter().map(|(_, rows)| rows).sum();
    let mut before = 0;
    let passed = |(_, rows): &&(i64, i64)| {
        before += rows;
        before * 100 >= all * 99
    };
    Duration::from_nanos(ages.iter().find(passed).expect("rows were done").0 as u64)
}

/// Share of all rows that go to lane 1 within a time, in percent.
fn share(journal: &[JournalEntry], from_ns: i64, to_ns: i64) -> i64 {
    let within = journal.iter().filter(|entry| (from_ns..to_ns).contains(&entry.at_ns));
    let (mut own, mut all) = (0, 0);
    for decision in within.flat_map(|entry| &entry.decisions) {
        if let Decision::Dispatch(dispatch) = decision {
            all += dispatch.rows;
            own += if dispatch.lane == 1 { dispatch.rows } else { 0 };
        }
    }
    100 * own / all
}

#[test]
fn a_lane_that_is_slow_for_a_while_loses_groups_and_gets_them_back() {
    const S: i64 = 1_000_000_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    let Phases { slow_ns, over_ns } = run_with_a_slow_lane(&log);
    assert_identical(&log, "warptape");
    let journal = journal(&log);
    let p99 = |from_ns, to_ns| p99(&journal, from_ns, to_ns);
    let (before, during) = (p99(slow_ns - S, slow_ns), p99(slow_ns + 2 * S, over_ns));
    let share = |from_ns, to_ns| share(&journal, from_ns, to_ns);
    let shares = [
        share(slow_ns - S, slow_ns),
        share(slow_ns + 2 * S, over_ns),
        share(over_ns + 3 * S, over_ns + 6 * S),
    ];
    let mut moves = BTreeMap::<_, i32>::new();
    for decision in journal.iter().flat_map(|entry| &entry.decisions) {
        if let Decision::Release(Release { partition, group, cause: ReleaseCause::Balance, .. }) = decision {
            *moves.entry((*partition, *group)).or_default() += 1;
        }
    }
    let all: i32 = moves.values().sum();
    println!(
        "p99 {before:?}, slow {:?}, slow for 2 s {during:?}; shares of lane 1 {shares:?} %; {all} moves",
        p99(slow_ns, slow_ns + 2 * S)
    );
    assert!(shares[1] * 2 < shares[0], "it keeps what it had: {shares:?}");
    assert!(shares[2] > shares[1] * 2, "it gets nothing back: {shares:?}");
    assert!(during < Duration::from_millis(500), "rows still wait for it: {before:?} before, {during:?}");
    assert!(moves.values().all(|moves| *moves <= 5), "groups go to and fro: {moves:?}");
}
