//! Ticks, late ticks, dead letters and signals as JSON: a tick always has the same form, and raw integers have text
//! beside them.

use std::path::Path;

use serde_json::{Value, json};
use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{encode_packed_tick_batch, encode_scaled_tick_batch, encode_tick, encode_tick_batch};

use super::processes::{Running, folder, run_until_drained, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const START_NS: i64 = 1_723_075_200_000_000_001;
const SECOND_NS: i64 = 1_000_000_000;
/// A time in 2200, which is too far ahead.
const AHEAD_NS: i64 = 7_258_118_400 * SECOND_NS;

fn trade(event_time_ns: i64, price_e9: i64) -> Tick {
    Tick {
        symbol: "V:A".to_owned(),
        kind: TickKind::Trade,
        event_time_ns,
        receive_time_ns: 0,
        trade_id: 0,
        side: Side::Buy,
        price_e9,
        size_e9: 2 * SECOND_NS,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

/// Publishes the same trades four times: in one record each, and in a single record of each kind.
/// Then it publishes a late trade and one too far ahead.
fn published(folder: &Path) -> SqliteLog {
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    log.create_topics(&[TopicSpec { name: "ticks".to_owned(), partitions: 1, ..TopicSpec::default() }])
        .expect("a new topic");
    let trades = [0, 1, 60].map(|second| trade(START_NS + second * SECOND_NS, 500_000_000 + second));
    let single = |tick: &Tick| {
        let mut value = Vec::new();
        encode_tick(tick, &mut value).expect("a good tick");
        value
    };
    let (mut batch, mut scaled, mut packed) = (Vec::new(), Vec::new(), Vec::new());
    encode_tick_batch(&trades, &mut batch).expect("good ticks");
    encode_packed_tick_batch(&trades, &mut packed).expect("good ticks");
    // Prices are in units of 1e-11, and sizes are whole numbers.
    let of_scales = |tick: &Tick| {
        let scales = Scales { price: 11, size: 0 };
        Tick { price_e9: tick.price_e9 * 100, size_e9: tick.size_e9 / SECOND_NS, scales, ..tick.clone() }
    };
    encode_scaled_tick_batch(&trades.each_ref().map(of_scales), &mut scaled).expect("good ticks");
    let others = [trade(START_NS + SECOND_NS, 250_000_000), trade(AHEAD_NS, 9_500_000_000)];
    let values = trades.iter().map(single).chain([batch, scaled, packed]).chain(others.iter().map(single));
    let mut producer = log.producer("test").expect("a producer");
    producer.begin().expect("a transaction");
    for value in values {
        let record =
            NewRecord { topic: "ticks".into(), value: value.as_slice().into(), ..NewRecord::default() };
        producer.send(record).expect("a record");
    }
    producer.commit().expect("a commit");
    log
}

fn json_lines(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let (out, _) = texts(&warptape(folder, &[arguments, &["-o", "json"], &LOG].concat()), 0);
    out.lines().map(|line| serde_json::from_str(line).expect("a line is one JSON value")).collect()
}

fn topic(folder: &Path, name: &str) -> Vec<Value> {
    json_lines(folder, &["tail", name, "--from-beginning", "--exit-at-end"])
}

#[test]
fn ticks_have_one_shape_wherever_they_are_printed() {
    let folder = folder();
    let folder = folder.path();
    let log = published(folder);
    let ticks = topic(folder, "ticks");
    assert_eq!(ticks.len(), 14);
    for number in 0..3 {
        let [one, other, scaled, packed] = [0, 3, 6, 9].map(|first| &ticks[first + number]);
        assert_eq!((&one["record"], &one["index"]), (&other["record"], &json!(0)));
        assert_eq!((&packed["record"], &packed["index"]), (&other["record"], &json!(number)));
        assert_eq!((&other["index"], &scaled["index"]), (&json!(number), &json!(number)));
        let mut record = scaled["record"].clone();
        let raw = std::mem::take(&mut record["scaled"]);
        assert_eq!((&raw["price_scale"], &raw["size"]), (&json!(11), &json!(2)), "the raw integers stay");
        assert_eq!(record, one["record"]);
    }
    let record = &ticks[0]["record"];
    assert_eq!(record["event_time"], "2024-08-08T00:00:00.000000001Z");
    assert_eq!((&record["price"], &record["price_e9"]), (&json!("0.5"), &json!(500_000_000)));
    assert!(ticks[0]["timestamp"].as_str().is_some_and(|at| at.ends_with('Z')));

    let mut run = Running::start(folder, &[&["run"][..], &LOG].concat());
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let keys = |record: &Value| record.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let late = topic(folder, "late");
    assert!(!late.is_empty());
    let late = &late[0]["record"];
    assert!(keys(record).iter().all(|name| late.get(name).is_some()), "{late}");
    assert_eq!(
        (&late["price"], &late["event_time"]),
        (&json!("0.5"), &json!("2024-08-08T00:00:00.000000001Z"))
    );
    assert_eq!(late["watermark"].as_str().map(|at| at.starts_with("2024-08-08T00:00:")), Some(true));

    let letters = topic(folder, "dead-letter");
    assert_eq!(letters, json_lines(folder, &["dlq", "list"]), "`dlq list` has the same lines");
    let place = format!("{}:{}", letters[0]["partition"], letters[0]["offset"]);
    assert_eq!(json_lines(folder, &["dlq", "show", &place]), letters[..1]);
    let of_letter = &letters[0]["record"]["ticks"][0];
    assert_eq!(keys(of_letter), keys(record));
    assert_eq!(
        (&of_letter["price"], &of_letter["event_time"]),
        (&json!("9.5"), &json!("2200-01-01T00:00:00.000000000Z"))
    );

    let signals = topic(folder, "signals");
    let bar = &signals[0]["record"];
    assert_eq!(bar["bar_end"].as_str().map(|at| at.starts_with("2024-08-08T00:00:")), Some(true), "{bar}");
    assert_eq!(bar["open"], "0.5");
    assert_eq!((&bar["bid_price"], &bar["open_e9"]), (&Value::Null, &json!(500_000_000)));
}
