//! Results of risk requests in a real Redis. It keeps the first result of each id for its retention time, whatever
//! happens to Redis.
//!
//! The tests themselves write the results to the log; the pipeline only owns partitions.

use std::path::Path;
use std::time::Duration;

use redis::Commands;
use serde_json::{Value, json};
use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog};
use warptape_hot::{HotUrl, Keys, PositionValue, RedisStore, ResultWrite};
use warptape_schemas::risk::RiskResult;
use warptape_schemas::{Describer, encode_risk_result};

use super::files_of_logs::remove_log;
use super::outputs::records;
use super::processes::{Running, folder, run_until_drained, texts, warptape};
use super::redis_server::{RedisServer, connect, shared};

const RESULTS: &str = "risk.results";
const PARTITIONS: i32 = 4;
/// Retention time of results in these tests, in seconds.
const TTL_S: i64 = 3_000;
const CONFIGURATION: &str =
    "[stages]\nbars = [\"1s\"]\ngroups_per_partition = 4\n[hot_state]\nresult_ttl_s = 3000\n";

/// Creates a log with a market.
fn new_log(folder: &Path) -> SqliteLog {
    std::fs::write(folder.join("w.toml"), CONFIGURATION).expect("a file");
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    texts(
        &warptape(folder, &["feed", "synth", "--symbols", "50", "--ticks", "20000", "--log", "sqlite:w.db"]),
        0,
    );
    log
}

fn start_run(folder: &Path, url: &str) -> Running {
    Running::start(folder, &["run", "-c", "w.toml", "--log", "sqlite:w.db", "--hot-state", url])
}

fn priced(price: f64) -> Value {
    json!({"type": "simulation", "price": price, "standard_error": 0.01, "paths": 4096, "greeks": []})
}

fn refused(code: &str) -> Value {
    json!({"type": "error", "code": code, "field": "request_id", "message": "choose another id"})
}

/// Returns an encoded result.
fn encoded(request_id: &str, partition: i32, outcome: Value) -> Vec<u8> {
    let result = json!({
        "request_id": request_id, "tenant": "desk", "class": "INTERACTIVE", "topic": "risk.requests",
        "partition": partition, "offset": 77, "outcome": outcome, "seed": 42, "node": "node-0", "as_of": [],
        "received_ns": 1_000_000, "started_ns": 2_000_000, "finished_ns": 3_000_000, "compute_ns": 500_000,
        "devices": ["cpu:0"], "decision_sequence": 99,
    });
    let result: RiskResult = serde_json::from_value(result).expect("a result");
    let mut value = Vec::new();
    encode_risk_result(&result, &mut value);
    value
}

/// Returns the time `seconds` seconds ago, in the form of a record's create time.
fn ago(seconds: u64) -> i64 {
    warptape_pipeline::clock::wall_clock_ns() - seconds as i64 * 1_000_000_000
}

/// Writes records, given as request id, create time and value, in one transaction.
fn write(log: &SqliteLog, partition: i32, results: &[(&str, i64, Vec<u8>)]) {
    let mut producer = log.producer("test-results").expect("a producer");
    producer.begin().expect("a transaction");
    for (request_id, timestamp_ns, value) in results {
        let record = NewRecord {
            topic: RESULTS.into(),
            partition,
            key: Some(request_id.as_bytes().into()),
            headers: Default::default(),
            timestamp_ns: *timestamp_ns,
            value: value.into(),
            ..NewRecord::default()
        };
        producer.send(record).expect("the log takes it");
    }
    producer.commit().expect("the log takes it");
}

/// Writes a price to each partition, and returns the request ids.
fn write_prices(log: &SqliteLog, name: &str) -> Vec<String> {
    let ids: Vec<String> = (0..PARTITIONS).map(|partition| format!("{name}:{partition}")).collect();
    for (partition, id) in (0..).zip(&ids) {
        write(log, partition, &[(id.as_str(), ago(0), encoded(id, partition, priced(5.0)))]);
    }
    ids
}

fn stored(connection: &mut redis::Connection, request_id: &str) -> Option<Value> {
    let text: Option<String> =
        connection.get(format!("warptape:result:{request_id}")).expect("a string of Redis");
    text.map(|text| serde_json::from_str(&text).expect("a value is JSON"))
}

/// Runs until all of these results are in Redis.
#[track_caller]
fn keep_up(run: &mut Running, url: &str, ids: &[String]) {
    run.run_until("results are there", || {
        let mut connection = connect(url);
        ids.iter().all(|id| stored(&mut connection, id).is_some()).then_some(())
    });
}

/// Asserts that a request's value in Redis equals a record of the log.
#[track_caller]
fn expect_record(
    log: &SqliteLog,
    connection: &mut redis::Connection,
    id: &str,
    partition: i32,
    offset: usize,
) {
    let record = &records(log, RESULTS, partition)[offset];
    let (_, fields) = Describer::new().describe(&record.value).expect("a result");
    let expected = json!({
        "offset": record.offset, "partition": partition, "committed_ns": record.timestamp_ns, "record": fields,
    });
    assert_eq!(stored(connection, id), Some(expected), "{id}");
}

#[test]
fn the_first_answer_of_an_id_is_kept_until_it_expires() {
    let folder = folder();
    let folder = folder.path();
    let log = new_log(folder);
    let server = RedisServer::start(&[]);
    let duplicate = || refused("DUPLICATE");
    write(
        &log,
        2,
        &[
            ("answered", ago(0), encoded("answered", 2, priced(1.0))),
            ("answered", ago(0), encoded("answered", 2, duplicate())),
            ("asked twice at once", ago(0), encoded("asked twice at once", 2, duplicate())),
            ("asked twice at once", ago(0), encoded("asked twice at once", 2, priced(2.0))),
            ("answered again", ago(0), encoded("answered again", 2, priced(3.0))),
            ("answered again", ago(0), encoded("answered again", 2, priced(4.0))),
            ("refused", ago(0), encoded("refused", 2, refused("EXPIRED"))),
            ("only a duplicate", ago(0), encoded("only a duplicate", 2, duplicate())),
            ("no result", ago(0), vec![1, 2, 3]),
            ("", ago(0), encoded("", 2, refused("BAD_PARAMETER"))),
            ("old", ago(3_001), encoded("old", 2, priced(5.0))),
            ("half expired", ago(1_500), encoded("half expired", 2, priced(6.0))),
        ],
    );
    let mut run = start_run(folder, &server.url());
    let late = write_prices(&log, "late");
    keep_up(&mut run, &server.url(), &late);
    // Results that arrive while the process runs are distinguished from earlier ones.
    write(&log, 2, &[("half expired", ago(0), encoded("half expired", 2, priced(7.0)))]);
    let later = write_prices(&log, "later");
    keep_up(&mut run, &server.url(), &later);
    run_until_drained(&mut run, &log, "warptape");
    let summary = run.stop("TERM");
    assert!(summary.contains("up to date") && summary.contains(" records not readable\n"), "{summary}");

    let mut connection = server.connect();
    for (id, offset) in [
        ("answered", 0),
        ("asked twice at once", 3),
        ("answered again", 4),
        ("refused", 6),
        ("half expired", 11),
    ] {
        expect_record(&log, &mut connection, id, 2, offset);
    }
    for id in ["only a duplicate", "no result", "", "old"] {
        assert_eq!(stored(&mut connection, id), None, "{id:?}");
    }
    let mut left = |id: &str| -> i64 { connection.ttl(format!("warptape:result:{id}")).expect("an answer") };
    assert!((TTL_S - 600..=TTL_S).contains(&left("answered")), "{} s", left("answered"));
    assert!((TTL_S / 2 - 600..=TTL_S / 2).contains(&left("half expired")), "{} s", left("half expired"));
    let indexed: Vec<String> = connection.zrange("warptape:results:2", 0, -1).expect("a sorted set");
    assert_eq!(indexed.len(), 7, "{indexed:?}");

    hot_result_says_the_same_from_redis_and_from_the_log(folder, &server.url());
}

/// Runs after the test above, on the same log and server.
fn hot_result_says_the_same_from_redis_and_from_the_log(folder: &Path, url: &str) {
    let get = |id: &str, place: &str, more: &[&str]| {
        let arguments = ["hot", "result", id, "-c", "w.toml", "--log", "sqlite:w.db", "--hot-state", place];
        warptape(folder, &[&arguments, more].concat())
    };
    for id in ["answered", "asked twice at once", "answered again", "refused", "half expired", "late:3"] {
        let json = |place: &str| {
            let (out, _) = texts(&get(id, place, &["-o", "json"]), 0);
            serde_json::from_str::<Value>(&out).expect("one JSON value")
        };
        let (from_redis, from_log) = (json(url), json("memory"));
        assert_eq!(from_redis["result"], from_log["result"], "{id}");
        assert_eq!((&from_redis["request_id"], &from_log["request_id"]), (&json!(id), &json!(id)));
        assert_eq!((&from_redis["source"], &from_log["source"]), (&json!(url), &json!("sqlite:w.db")));
    }
    let (table, _) = texts(&get("late:3", url, &[]), 0);
    for part in [
        "request    late:3\n",
        "outcome    SimulationResult\n",
        "\nprice               5\n",
        "work on cpu:0\n",
    ] {
        assert!(table.contains(part), "{part:?} is missing in:\n{table}");
    }
    let (table, _) = texts(&get("refused", "memory", &[]), 0);
    assert!(table.contains("\ncode     EXPIRED\n"), "{table}");

    // Expired results are in the log only, and missing ones nowhere; each message says what to do.
    let (out, error) = texts(&get("old", url, &[]), 1);
    assert!(out.is_empty() && error.contains("no result of request \"old\""), "{error}");
    assert!(error.contains("hot_state.result_ttl_s") && error.contains("--hot-state memory"), "{error}");
    texts(&get("old", "memory", &[]), 0);
    let (out, error) = texts(&get("only a duplicate", "memory", &[]), 1);
    assert!(out.is_empty() && error.contains("no result of request \"only a duplicate\""), "{error}");
    assert!(error.contains("risk.results") && error.contains("risk.requests"), "{error}");
}

#[test]
fn results_are_written_again_after_redis_was_emptied_or_away() {
    let folder = folder();
    let folder = folder.path();
    let log = new_log(folder);
    let mut server = RedisServer::start(&[]);
    let mut run = start_run(folder, &server.url());
    let mut ids = write_prices(&log, "before");
    keep_up(&mut run, &server.url(), &ids);

    let _: () = redis::cmd("FLUSHALL").query(&mut server.connect()).expect("Redis can be emptied");
    ids.extend(write_prices(&log, "emptied"));
    keep_up(&mut run, &server.url(), &ids);

    server.kill();
    ids.extend(write_prices(&log, "killed"));
    server.restart();
    keep_up(&mut run, &server.url(), &ids);

    server.signal("STOP");
    ids.extend(write_prices(&log, "hanging"));
    // The pause exceeds the timeout of an answer.
    run.run_for(Duration::from_secs(3));
    server.signal("CONT");
    keep_up(&mut run, &server.url(), &ids);

    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let mut connection = server.connect();
    let all = |name: &str| ids.iter().position(|id| id == name).expect("an id") / PARTITIONS as usize;
    for id in &ids {
        let (_, partition) = id.split_once(':').expect("a partition");
        expect_record(&log, &mut connection, id, partition.parse().expect("a number"), all(id));
    }
}

#[test]
fn results_of_another_log_are_cleared() {
    let folder = folder();
    let folder = folder.path();
    let log = new_log(folder);
    let server = RedisServer::start(&[]);
    let run_once = |log: &SqliteLog, ids: &[String]| {
        let mut run = start_run(folder, &server.url());
        run_until_drained(&mut run, log, "warptape");
        keep_up(&mut run, &server.url(), ids);
        run.stop("TERM");
    };
    let old = write_prices(&log, "old");
    write(&log, 1, &[("same", ago(0), encoded("same", 1, priced(1.0)))]);
    run_once(&log, &[&old[..], &["same".to_owned()]].concat());

    drop(log);
    remove_log(&folder.join("w.db"));
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    let feed =
        ["feed", "synth", "--symbols", "50", "--ticks", "20000", "--seed", "9", "--log", "sqlite:w.db"];
    texts(&warptape(folder, &feed), 0);
    write(&log, 1, &[("same", ago(0), encoded("same", 1, priced(2.0)))]);
    let new = write_prices(&log, "new");
    run_once(&log, &new);
    let mut connection = server.connect();
    expect_record(&log, &mut connection, "same", 1, 0);
    for id in old {
        assert_eq!(stored(&mut connection, &id), None, "{id}");
    }
}

/// Returns the position of a partition that has no writes.
fn nothing() -> PositionValue {
    let (node, record_hash) = (String::new(), String::new());
    PositionValue { next_offset: 0, written_ns: 0, behind: 0, node, record_hash }
}

#[test]
fn whoever_writes_first_wins_and_a_clearing_finds_all() {
    let prefix = "test-results:";
    let mut connection = connect(&shared());
    let keys = Keys::new(prefix);
    let HotUrl::Redis(url) = HotUrl::parse(&shared()).expect("a URL of a Redis") else { panic!("no Redis") };
    let mut stores = [(); 2].map(|()| RedisStore::connect(&url, keys.clone()).expect("a connection"));
    stores[0].renew(3, "now", &nothing()).expect("a partition");
    let result = |id: usize, by: &str, expires_in_ms| {
        let value = format!("{{\"offset\":{id},\"partition\":3,\"committed_ns\":0,\"record\":\"{by}\"}}");
        ResultWrite { request_id: format!("r-{id}"), value, expires_in_ms }
    };
    // The results exceed what a pipeline writes at once. They are in a set, which is scanned in pieces.
    let ids = 0..1_000;
    let firsts: Vec<_> = ids.clone().step_by(2).map(|id| result(id, "first", 600_000)).collect();
    let seconds: Vec<_> = ids.clone().map(|id| result(id, "second", 900_000)).collect();
    assert_eq!(stores[0].write_results(3, 5_000, &firsts).expect("a write"), 500);
    assert_eq!(stores[1].write_results(3, 5_000, &seconds).expect("a write"), 500);
    assert_eq!(stores[1].write_results(3, 5_000, &seconds).expect("a write"), 0);
    for id in ids.clone() {
        let found = stores[0].result(&format!("r-{id}")).expect("an answer").expect("a result");
        assert_eq!((found.offset, found.record), (id as i64, json!(["first", "second"][id % 2])));
    }

    // The index drops results that have expired, and its contents are cleared with the partition.
    let count =
        |connection: &mut redis::Connection| -> usize { connection.zcard(keys.results(3)).expect("a set") };
    assert_eq!(count(&mut connection), 1_000);
    stores[0].renew(3, "anew", &nothing()).expect("a partition");
    let left: Vec<String> = connection.keys(format!("{prefix}result*")).expect("keys of Redis");
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(stores[0].write_results(3, 5_000, &[result(1, "third", 600_000)]).expect("a write"), 1);
    assert_eq!(stores[0].write_results(3, 605_000, &[result(2, "third", 600_000)]).expect("a write"), 1);
    let indexed: Vec<String> = connection.zrange(keys.results(3), 0, -1).expect("a sorted set");
    assert_eq!(indexed, ["r-2"]);

    // If another version wrote a value, the error names it.
    let _: () = connection.set(keys.result("r-1"), "{").expect("a key");
    let error = stores[0].result("r-1").expect_err("no result").to_string();
    assert!(error.contains("test-results:result:r-1 cannot be read"), "{error}");
    let keys: Vec<String> = connection.keys(format!("{prefix}*")).expect("keys of Redis");
    let _: i64 = connection.del(keys).expect("keys can be deleted");
}
