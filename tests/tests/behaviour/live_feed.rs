//! The real engine behind a live feed, whose ticks are written when they have happened.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam_channel::bounded;
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_kernels::Isa;
use warptape_pipeline::engine::{EngineConfig, Progress, Stop, run};
use warptape_replay::{OutputOptions, VerifyOptions, verify};
use warptape_schemas::tick::{Side, Tick, TickKind};
use warptape_schemas::{DeadLetterReason, decode_dead_letter};
use warptape_stages::StageConfig;
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    i64::try_from(since.as_nanos()).expect("a time before 2262")
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
    }
}

/// Publishes trades that happen now, each in a record of its own, the fifth of them dated two days ahead.
fn feed_now(log: &Arc<dyn EventLog>, count: i64) {
    let from_ns = now_ns() - SECOND_NS;
    let dated = |number: i64| from_ns + number * 1_000_000 + if number == 4 { 2 * DAY_NS } else { 0 };
    feed(log, 1, 1, (0..count).map(|number| trade(dated(number))));
}

fn assert_identical(log: &Arc<dyn EventLog>, group: &str) {
    let topic = str::to_owned;
    let sources = OutputOptions {
        ticks: topic("ticks"),
        signals: topic("signals"),
        late: topic("late"),
        dead_letter: topic("dead-letter"),
        risk_requests: topic("risk.requests"),
        risk_results: topic("risk.results"),
        group: topic(group),
        isa: Isa::detect(),
        schemas: None,
    };
    let options = VerifyOptions { journal: topic("journal"), sources, outputs: true };
    let report = verify(log.as_ref(), &options, &mut |_| {}).expect("the log can be read");
    assert!(report.is_identical(), "{report}");
}

#[test]
fn a_tick_dated_days_ahead_makes_nothing_late() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    let config = engine_config(stage_config(&["1s"]), 2);
    // As a release ran it that did not know when records were written.
    let former = EngineConfig {
        stages: StageConfig { clock_skew_max_ns: None, ..config.stages.clone() },
        ..config.clone()
    };
    feed_now(&log, 20);
    let summary = run_to_end(&log, former);
    assert_eq!((summary.ticks, summary.late, summary.dead_letters), (20, 15, 0));
    assert_identical(&log, &config.group);

    let (_stop, stopped) = bounded::<Stop>(1);
    let refused = run(log.clone(), config.clone(), Arc::new(Progress::new(2)), stopped);
    let error = refused.expect_err("another segment is to be asked for").to_string();
    assert!(error.contains("stages.clock_skew_max_ms: nothing to 60000"), "{error}");

    feed_now(&log, 20);
    let summary = run_to_end(&log, EngineConfig { new_segment: true, ..config.clone() });
    assert_eq!((summary.ticks, summary.late, summary.dead_letters), (19, 0, 1));
    let [letter] = &read_partition(log.as_ref(), "dead-letter", 0)[..] else { panic!("one dead letter") };
    let letter = decode_dead_letter(&letter.value).expect("it is written whole");
    assert_eq!((letter.offset, letter.reason), (24, DeadLetterReason::BadTime));
    assert!(letter.detail.contains("stages.clock_skew_max_ms allows 60000 ms"), "{}", letter.detail);
    assert_identical(&log, &config.group);
}

#[test]
fn a_market_dated_in_the_future_is_followed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    let config = engine_config(stage_config(&["1s"]), 2);
    let from_ns = now_ns() + DAY_NS;
    // An hour from tick to tick, and a stop in between.
    let hours = |range: std::ops::Range<i64>| range.map(|hour| trade(from_ns + hour * 3_600 * SECOND_NS));
    feed(&log, 1, 1, hours(0..10));
    let summary = run_to_end(&log, config.clone());
    assert_eq!((summary.ticks, summary.late, summary.dead_letters), (3, 0, 7));
    feed(&log, 1, 1, hours(10..20));
    let summary = run_to_end(&log, config.clone());
    assert_eq!((summary.ticks, summary.late, summary.dead_letters), (10, 0, 0));
    assert_identical(&log, &config.group);
}
