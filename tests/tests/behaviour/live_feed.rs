//! The real engine behind a live feed, whose ticks are written as they occur.

use std::sync::Arc;

use crossbeam_channel::bounded;
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_pipeline::runtime::{Progress, Stop, Topics, run};
use warptape_replay::{VerifyOptions, verify};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{DeadLetterReason, decode_dead_letter};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_stages::RepeatedTrades;
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config, topic_ends};
use warptape_tests::injected::InjectedLanes;

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;

fn now_ns() -> i64 {
    warptape_pipeline::clock::wall_clock_ns()
}

fn trade(event_time_ns: i64) -> Tick {
    Tick {
        symbol: "A:X".to_owned(),
        kind: TickKind::Trade,
        event_time_ns,
        receive_time_ns: 0,
        trade_id: 0,
        side: Side::None,
        price_e9: 5 * SECOND_NS,
        size_e9: SECOND_NS,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

/// Publishes current trades, each in its own record; the fifth trade is dated two days ahead.
fn feed_now(log: &Arc<dyn EventLog>, count: i64) {
    let from_ns = now_ns() - SECOND_NS;
    let dated = |number: i64| from_ns + number * 1_000_000 + if number == 4 { 2 * DAY_NS } else { 0 };
    feed(log, 1, 1, (0..count).map(|number| trade(dated(number))));
}

/// Asserts that a replay makes the same decisions and outputs.
pub fn assert_identical(log: &Arc<dyn EventLog>, group: &str) {
    let options = VerifyOptions { outputs: true, ..VerifyOptions::new(&Topics::new(""), group) };
    let report = verify(log.as_ref(), &options, &mut |_| {}).expect("the log can be read");
    assert!(report.is_identical(), "{report}");
}

#[test]
fn a_tick_dated_days_ahead_makes_nothing_late() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    let config = engine_config(stage_config(&["1s"]), 2);
    let former = {
        let mut config = config.clone();
        config.core.stages.clock_skew_max_ns = 30 * DAY_NS;
        config
    };
    feed_now(&log, 20);
    let summary = run_to_end(&log, former);
    assert_eq!((summary.ticks, summary.late, summary.dead_letters), (20, 15, 0));
    assert_identical(&log, &config.core.group);

    let (_stop, stopped) = bounded::<Stop>(1);
    let refused = run(log.clone(), config.clone(), Arc::new(Progress::new(2)), stopped);
    let error = refused.expect_err("another segment is to be asked for").to_string();
    assert!(error.contains("stages.clock_skew_max_ms: 2592000000 to 60000"), "{error}");

    feed_now(&log, 20);
    let summary = run_to_end(&log, {
        let mut config = config.clone();
        config.core.new_segment = true;
        config
    });
    assert_eq!((summary.ticks, summary.late, summary.dead_letters), (19, 0, 1));
    let [letter] = &read_partition(log.as_ref(), "dead-letter", 0)[..] else { panic!("one dead letter") };
    let letter = decode_dead_letter(&letter.value).expect("it is written whole");
    assert_eq!((letter.offset, letter.reason), (24, DeadLetterReason::BadTime));
    assert!(letter.detail.contains("stages.clock_skew_max_ms allows 60000 ms"), "{}", letter.detail);
    assert_identical(&log, &config.core.group);
}

#[test]
fn a_market_dated_in_the_future_is_never_followed_by_itself() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    let config = engine_config(stage_config(&["1s"]), 2);
    let from_ns = now_ns() + DAY_NS;
    feed(&log, 1, 1, (0..100).map(|hour| trade(from_ns + hour * 3_600 * SECOND_NS)));
    feed(&log, 1, 1, (0..10).map(|number| trade(now_ns() + number)));
    let summary = run_to_end(&log, config.clone());
    assert_eq!((summary.ticks, summary.late, summary.dead_letters), (10, 0, 100));
    assert_identical(&log, &config.core.group);
}

/// Returns the trades and quotes of a market, with trade ids that count from 1 for each symbol.
fn market() -> impl Iterator<Item = Tick> {
    SynthSource::new(SynthConfig { symbols: 20, ..SynthConfig::default() }).expect("a market").take(6_000)
}

#[test]
fn trades_that_are_published_twice_are_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let new_log = |name: &str| -> Arc<dyn EventLog> {
        Arc::new(SqliteLog::open(folder.path().join(name), Durability::Process).expect("a new log"))
    };
    let trades = market().filter(|tick| tick.kind == TickKind::Trade).count() as u64;
    let config = || {
        let mut config = engine_config(stage_config(&["1s"]), 2);
        config.core.limits.snapshot_interval_records = 5;
        config.poll_records_max = 4;
        config
    };
    let plain = new_log("plain.db");
    feed(&plain, 1, 16, market());
    assert!(run_to_end(&plain, config()).repeated.is_empty());
    let records = topic_ends(plain.as_ref(), "ticks")[0].1;
    // The first log is run in pieces, with a stop after each. The second one is run at once, with a failing lane and a
    // restored state.
    let (pieces, faulty) = (new_log("pieces.db"), new_log("faulty.db"));
    let mut found = RepeatedTrades::default();
    for piece in 0..9 {
        feed(&pieces, 1, 16, market().chain(market()).skip(piece * 1_500).take(1_500));
        found.add(run_to_end(&pieces, config()).repeated);
    }
    (0..2).for_each(|_| feed(&faulty, 1, 16, market()));
    let mut with_fault = config();
    with_fault.core.scheduler.batch_rows_max = 200;
    with_fault.lanes = InjectedLanes::failing(0, 3);
    let at_once = run_to_end(&faulty, with_fault).repeated;
    for found in [&found, &at_once] {
        assert_eq!((found.repeated, found.untold), (trades, 0));
        let first = found.first.as_ref().expect("there are repeats");
        assert!(first.trade_id == 1 && first.offset >= records, "{first:?}");
    }
    assert_identical(&pieces, &config().core.group);
}
