//! Hot state in a real Redis. It must equal the newest values in the log, whatever happens to Redis, and the pipeline
//! must not be affected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use redis::Commands;
use serde_json::Value;
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_hot::{HashWrite, HotError, HotUrl, Keys, PositionValue, RedisStore, RedisUrl, encode};
use warptape_schemas::journal::{Decision, Input};
use warptape_schemas::{Describer, decode_journal_entry};

use super::files_of_logs::remove_log;
use super::outputs::records;
use super::processes::{Running, committed, ends, folder, run_until_drained, texts, warptape, warptape_with};
use super::redis_server::{RedisServer, connect, shared};

/// Number of ticks of a limited market.
const TICKS: &str = "40000";
/// Ticks per second of an endless market.
const RATE: &str = "20000";
/// Configuration with bars that close often, and bars that close rarely.
const CONFIGURATION: &str = "[stages]\nbars = [\"1s\", \"tick:5\"]\ngroups_per_partition = 4\n";

/// Greatest number of process lives that may be needed to write the remaining records.
const LIVES_MAX: usize = 5;

/// Offset, partition and record, by symbol and field.
type Contents = BTreeMap<String, BTreeMap<String, (i64, i64, Value)>>;

fn new_log(folder: &Path) -> SqliteLog {
    std::fs::write(folder.join("w.toml"), CONFIGURATION).expect("a file");
    SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log")
}

fn feed(folder: &Path, arguments: &[&str]) {
    let all = [&["feed", "synth", "--symbols", "50", "--log", "sqlite:w.db"], arguments].concat();
    texts(&warptape(folder, &all), 0);
}

fn start_feed(folder: &Path) -> Running {
    Running::start(
        folder,
        &[
            "feed",
            "synth",
            "--symbols",
            "50",
            "--ticks",
            "1000000000",
            "--rate",
            RATE,
            "--log",
            "sqlite:w.db",
        ],
    )
}

fn start_run(folder: &Path, url: &str) -> Running {
    Running::start(folder, &["run", "-c", "w.toml", "--log", "sqlite:w.db", "--hot-state", url])
}

/// Runs until the group has committed more than now.
#[track_caller]
fn run_on(run: &mut Running, log: &SqliteLog) {
    let total = || committed(log, "warptape").iter().map(|(done, _)| done).sum::<i64>();
    let before = total();
    run.run_until("more is committed", || (total() > before).then_some(()));
}

/// Runs until hot state reaches the current end of the log.
#[track_caller]
fn keep_up(run: &mut Running, log: &SqliteLog, url: &str) {
    keep_up_on(run, log, "", url, "warptape:");
}

/// Like [`keep_up`], with a prefix of topics and keys.
#[track_caller]
pub fn keep_up_on(run: &mut Running, log: &dyn EventLog, topics: &str, url: &str, prefix: &str) {
    let ends = record_ends(log, &format!("{topics}signals"));
    let prefix = format!("{prefix}{topics}");
    run.run_while_moving("hot state is where the log was", || {
        let mut connection = connect(url);
        let positions: Vec<i64> =
            (0..ends.len() as i32).map(|partition| position(&mut connection, &prefix, partition)).collect();
        if positions.iter().zip(&ends).all(|(at, end)| at >= end) { Ok(()) } else { Err(positions) }
    });
}

/// Stops a run. If it reports records that a busy Redis has not accepted, another life writes them.
#[track_caller]
fn stop_and_write(
    mut run: Running,
    start: impl Fn() -> Running,
    log: &SqliteLog,
    url: &str,
    prefix: &str,
) -> String {
    let first = run.stop("TERM");
    let mut summary = first.clone();
    for _ in 0..LIVES_MAX {
        if summary.contains(" values written, up to date") {
            return first;
        }
        let is_said =
            [" records behind", ": down for ", ": connecting"].iter().any(|said| summary.contains(said));
        assert!(is_said, "{summary}");
        run = start();
        keep_up_on(&mut run, log, "", url, prefix);
        summary = run.stop("TERM");
    }
    assert!(summary.contains(" values written, up to date"), "{summary}");
    first
}

/// Returns the written position of a partition; -1 if none is written.
fn position(connection: &mut redis::Connection, prefix: &str, partition: i32) -> i64 {
    let text: Option<String> =
        connection.hget(format!("{prefix}partition:{partition}"), "position").expect("a hash of Redis");
    text.map_or(-1, |text| {
        let position: Value = serde_json::from_str(&text).expect("a position is JSON");
        position["next_offset"].as_i64().expect("an offset")
    })
}

/// Returns the offset after the last record of each partition. On Kafka, the end of the partition lies further on.
fn record_ends(log: &dyn EventLog, topic: &str) -> Vec<i64> {
    let end = |partition| records(log, topic, partition).last().map_or(0, |record| record.offset + 1);
    (0..ends(log, topic).len() as i32).map(end).collect()
}

/// Returns the contents that Redis must have according to the log.
fn expected(log: &dyn EventLog, topics: &str) -> Contents {
    let describer = Describer::new();
    let mut contents = Contents::new();
    let topic = format!("{topics}signals");
    for (partition, _) in (0..).zip(ends(log, &topic)) {
        for record in records(log, &topic, partition) {
            let (_, fields) = describer.describe(&record.value).expect("a signal");
            let text = |name: &str| fields[name].as_str().expect("a text").to_owned();
            let field = format!("{}/{}", text("bar_spec"), text("kind"));
            let symbol = contents.entry(text("symbol")).or_default();
            let value = (record.offset, i64::from(partition), fields);
            symbol.insert(field, value.clone());
            symbol.insert("latest".to_owned(), value);
        }
    }
    contents
}

/// Returns the contents that Redis has.
fn found(connection: &mut redis::Connection, prefix: &str) -> Contents {
    let beginning = format!("{prefix}symbol:");
    let keys: Vec<String> = connection.keys(format!("{beginning}*")).expect("keys of Redis");
    let mut contents = Contents::new();
    for key in keys {
        let fields: BTreeMap<String, String> = connection.hgetall(&key).expect("a hash of Redis");
        let value = |(field, text): (String, String)| {
            let value: Value = serde_json::from_str(&text).expect("a value is JSON");
            let number = |name: &str| value[name].as_i64().expect("a number");
            (field, (number("offset"), number("partition"), value["record"].clone()))
        };
        contents.insert(key[beginning.len()..].to_owned(), fields.into_iter().map(value).collect());
    }
    contents
}

/// Asserts that hot state equals the newest values in the log, and contains nothing else.
#[track_caller]
fn expect_equal(log: &SqliteLog, connection: &mut redis::Connection, prefix: &str) {
    expect_equal_on(log, "", connection, prefix);
    for (partition, end) in (0..).zip(ends(log, "signals")) {
        assert_eq!(position(connection, prefix, partition), end, "partition {partition}");
    }
}

/// Like [`expect_equal`], for any log, with a prefix of topics. On Kafka, a position may lie after the last record.
#[track_caller]
pub fn expect_equal_on(log: &dyn EventLog, topics: &str, connection: &mut redis::Connection, prefix: &str) {
    let prefix = &format!("{prefix}{topics}");
    let (expected, found) = (expected(log, topics), found(connection, prefix));
    assert!(expected.len() > 10, "{} symbols are too few to say anything", expected.len());
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (symbol, fields) in &expected {
        assert_eq!(fields.keys().collect::<Vec<_>>(), found[symbol].keys().collect::<Vec<_>>(), "{symbol}");
        for (field, value) in fields {
            assert_eq!(value, &found[symbol][field], "{symbol} {field}");
        }
    }
    let mut indexed = BTreeSet::new();
    for (partition, end) in (0..).zip(record_ends(log, &format!("{topics}signals"))) {
        assert!(position(connection, prefix, partition) >= end, "partition {partition} ends at {end}");
        let symbols: Vec<String> =
            connection.smembers(format!("{prefix}symbols:{partition}")).expect("a set of Redis");
        indexed.extend(symbols);
    }
    assert_eq!(indexed, expected.into_keys().collect());
    expect_placements(log, topics, connection, prefix);
}

/// Asserts that hot state shows each group on the lane of its last placement in the journal.
#[track_caller]
fn expect_placements(log: &dyn EventLog, topics: &str, connection: &mut redis::Connection, prefix: &str) {
    let mut expected: BTreeMap<String, (String, i64, i64)> = BTreeMap::new();
    let mut node = String::new();
    for record in records(log, &format!("{topics}journal"), 0) {
        let entry = decode_journal_entry(&record.value).expect("a journal entry");
        if let Input::Started(started) = entry.input {
            node = started.node;
        }
        for decision in entry.decisions {
            if let Decision::Place(place) = decision {
                let group = format!("{}/{}", place.partition, place.group);
                expected.insert(group, (node.clone(), i64::from(place.lane), place.epoch));
            }
        }
    }
    let found: BTreeMap<String, String> = connection.hgetall(format!("{prefix}placements")).expect("a hash");
    let value = |(group, text): (String, String)| {
        let value: Value = serde_json::from_str(&text).expect("a placement is JSON");
        let number = |name: &str| value[name].as_i64().expect("a number");
        let node = value["node"].as_str().expect("a text").to_owned();
        (group, (node, number("lane"), number("epoch")))
    };
    assert_eq!(found.into_iter().map(value).collect::<BTreeMap<_, _>>(), expected);
}

#[test]
fn values_are_the_last_signals_of_the_log() {
    let folder = folder();
    let folder = folder.path();
    let log = new_log(folder);
    let prefix = "test-values:";
    let url = shared();
    let mut connection = connect(&url);
    clear(&mut connection, prefix);
    let configuration = format!("{CONFIGURATION}\n[hot_state]\nurl = \"{url}\"\nprefix = \"{prefix}\"\n");
    let start = || Running::start(folder, &["run", "-c", "w.toml", "--log", "sqlite:w.db"]);
    std::fs::write(folder.join("w.toml"), configuration).expect("a file");
    // A stop waits for hot state, but not as long as a busy Redis may need.
    let stop = |mut run: Running, log: &SqliteLog| {
        run_until_drained(&mut run, log, "warptape");
        keep_up_on(&mut run, log, "", &url, prefix);
        stop_and_write(run, start, log, &url, prefix)
    };

    feed(folder, &["--ticks", TICKS]);
    let summary = stop(start(), &log);
    assert!(summary.contains("\nhot state  redis://"), "{summary}");
    expect_equal(&log, &mut connection, prefix);
    let lanes: BTreeMap<String, String> = connection.hgetall(format!("{prefix}lanes")).expect("a hash");
    assert_eq!(lanes.keys().collect::<Vec<_>>(), ["node-0/0", "node-0/1"]);
    for lane in lanes.values() {
        assert!(lane.contains("\"state\":\"STOPPED\"") && lane.contains("\"device\":\"cpu:"), "{lane}");
    }

    // The next run continues where this one ended, and writes only new records.
    let rebuild = |connection: &mut redis::Connection| -> Vec<String> {
        (0..4)
            .map(|p| connection.hget(format!("{prefix}partition:{p}"), "rebuild").expect("a name"))
            .collect()
    };
    let before = rebuild(&mut connection);
    feed(folder, &["--ticks", TICKS, "--seed", "8"]);
    stop(start(), &log);
    expect_equal(&log, &mut connection, prefix);
    assert_eq!(rebuild(&mut connection), before);

    // `hot get` prints the same from Redis and from the log.
    let symbol = expected(&log, "").into_keys().next().expect("a symbol");
    let json = |place: &str| {
        let get = [
            "hot",
            "get",
            &symbol,
            "-o",
            "json",
            "-c",
            "w.toml",
            "--log",
            "sqlite:w.db",
            "--hot-state",
            place,
        ];
        let (out, _) = texts(&warptape(folder, &get), 0);
        serde_json::from_str::<Value>(&out).expect("one JSON value")
    };
    let (from_redis, from_log) = (json(&url), json("memory"));
    for field in ["symbol", "partition", "group", "latest", "signals", "placement"] {
        assert_eq!(from_redis[field], from_log[field], "{field}");
        assert!(!from_redis[field].is_null(), "{field}");
    }
    assert_eq!(from_log["source"], "sqlite:w.db");
    assert_eq!(from_redis["position"]["behind"], 0);
    let (table, _) = texts(&warptape(folder, &["hot", "get", &symbol, "-c", "w.toml"]), 0);
    for part in [&format!("symbol     {symbol}\n"), "up to date when ", "tick:5", "INDICATOR", "ema_slow"] {
        assert!(table.contains(part), "{part:?} is missing in:\n{table}");
    }

    // An unknown symbol gives exit code 1, and the error lists similar names.
    for place in [&url, "memory"] {
        let wrong = format!("{symbol}X");
        let get = ["hot", "get", &wrong, "-c", "w.toml", "--log", "sqlite:w.db", "--hot-state", place];
        let (out, error) = texts(&warptape(folder, &get), 1);
        assert!(out.is_empty() && error.contains("knows no symbol"), "{error}");
        assert!(error.contains("did you mean") && error.contains(&symbol), "{error}");
    }

    // Another log with the same topic names replaces the contents.
    drop(log);
    remove_log(&folder.join("w.db"));
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    feed(folder, &["--ticks", "20000", "--seed", "9"]);
    stop(start(), &log);
    expect_equal(&log, &mut connection, prefix);
    assert_ne!(rebuild(&mut connection), before);
    clear(&mut connection, prefix);
}

fn clear(connection: &mut redis::Connection, prefix: &str) {
    let keys: Vec<String> = connection.keys(format!("{prefix}*")).expect("keys of Redis");
    for key in keys {
        let _: i64 = connection.del(key).expect("a key can be deleted");
    }
}

#[test]
fn emptied_killed_and_restarted_it_is_rebuilt() {
    let folder = folder();
    let folder = folder.path();
    let log = new_log(folder);
    let mut server = RedisServer::start(&[]);
    let feed = start_feed(folder);
    let mut run = start_run(folder, &server.url());
    run.run_until("ticks are there", || (!committed(&log, "warptape").is_empty()).then_some(()));
    run_on(&mut run, &log);
    keep_up(&mut run, &log, &server.url());

    for _ in 0..3 {
        let _: () = redis::cmd("FLUSHALL").query(&mut server.connect()).expect("Redis can be emptied");
        run_on(&mut run, &log);
        keep_up(&mut run, &log, &server.url());
    }
    let _: () =
        redis::cmd("SCRIPT").arg("FLUSH").query(&mut server.connect()).expect("scripts can be forgotten");
    keep_up(&mut run, &log, &server.url());

    server.kill();
    run_on(&mut run, &log);
    run_on(&mut run, &log);
    server.restart();
    keep_up(&mut run, &log, &server.url());

    // Another client writes wrong values under the pipeline's keys.
    let mut stranger = server.connect();
    let symbols: Vec<String> = stranger.keys("warptape:symbol:*").expect("keys of Redis");
    let others = [
        "warptape:partition:0",
        "warptape:symbols:0",
        "warptape:placements",
        "warptape:lanes",
        "warptape:partitions",
    ];
    for key in symbols.iter().take(1).map(String::as_str).chain(others) {
        let _: i64 = stranger.del(key).expect("a key can be deleted");
        stranger.lpush::<_, _, ()>(key, "x").expect("a list");
        run.run_until("it is repaired", || {
            let kind: String = redis::cmd("TYPE").arg(key).query(&mut stranger).expect("a type");
            (!["list", "none"].contains(&kind.as_str())).then_some(())
        });
        run_on(&mut run, &log);
        keep_up(&mut run, &log, &server.url());
    }

    // Redis is emptied while no signals come, so only the periodic sign of life can notice it.
    feed.stop("TERM");
    run_until_drained(&mut run, &log, "warptape");
    keep_up(&mut run, &log, &server.url());
    let _: () = redis::cmd("FLUSHALL").query(&mut server.connect()).expect("Redis can be emptied");
    keep_up(&mut run, &log, &server.url());

    let summary = stop_and_write(run, || start_run(folder, &server.url()), &log, &server.url(), "warptape:");
    // The kill loses the connection once; a busy server that answers too late may lose it again.
    assert!(summary.contains(", connection lost ") || summary.contains(": down for "), "{summary}");
    expect_equal(&log, &mut server.connect(), "warptape:");
}

#[test]
fn a_redis_that_hangs_costs_the_pipeline_nothing() {
    let folder = folder();
    let folder = folder.path();
    let log = new_log(folder);
    let server = RedisServer::start(&[]);
    let mut feed = start_feed(folder);
    let mut run = start_run(folder, &server.url());
    run.run_until("ticks are there", || (!committed(&log, "warptape").is_empty()).then_some(()));
    keep_up(&mut run, &log, &server.url());

    server.signal("STOP");
    // The pause exceeds the timeout of an answer, so connecting also fails.
    for _ in 0..4 {
        run.run_for(Duration::from_secs(1));
        run_on(&mut run, &log);
    }
    assert!(feed.is_running());
    server.signal("CONT");
    keep_up(&mut run, &log, &server.url());
    feed.stop("TERM");
    run_until_drained(&mut run, &log, "warptape");
    stop_and_write(run, || start_run(folder, &server.url()), &log, &server.url(), "warptape:");
    expect_equal(&log, &mut server.connect(), "warptape:");
}

#[test]
fn without_redis_the_pipeline_runs_and_says_so() {
    let folder = folder();
    let folder = folder.path();
    let log = new_log(folder);
    feed(folder, &["--ticks", TICKS]);
    let url = RedisServer::nowhere();
    let mut run = start_run(folder, &url);
    run_until_drained(&mut run, &log, "warptape");
    run.signal("TERM");
    let (status, out, error) = run.finish();
    assert_eq!(status.code(), Some(0), "{error}");
    assert!(out.contains(&format!("\nhot state  {url}: down for ")) && out.contains("refused"), "{out}");
    assert!(error.contains("hot state down, the pipeline goes on") && error.contains(&url), "{error}");
    assert_eq!(error.matches("hot state down").count(), 1, "once, not with every attempt: {error}");

    let (_, error) = texts(&warptape(folder, &["hot", "get", "A:X", "--hot-state", &url]), 1);
    assert!(error.contains(&url) && error.contains("refused") && error.contains("hot_state.url"), "{error}");
}

#[test]
fn passwords_are_used_and_never_printed() {
    let folder = folder();
    let folder = folder.path();
    let log = new_log(folder);
    let server = RedisServer::start(&["--requirepass", "right-secret"]);
    let url = |password: &str| format!("redis://:{password}@127.0.0.1:{}", server.port());
    feed(folder, &["--ticks", TICKS]);

    let mut wrong = start_wordy_run(folder, &url("wrong-secret"));
    run_until_drained(&mut wrong, &log, "warptape");
    wrong.signal("TERM");
    let (status, out, error) = wrong.finish();
    assert_eq!(status.code(), Some(0), "{error}");
    assert!(out.contains("redis://:***@127.0.0.1") && out.contains("authentication failed"), "{out}");
    let mut right = start_wordy_run(folder, &url("right-secret"));
    keep_up(&mut right, &log, &url("right-secret"));
    right.signal("TERM");
    let (_, right_out, right_error) = right.finish();
    expect_equal(&log, &mut connect(&url("right-secret")), "warptape:");

    let environment = [("WARPTAPE__HOT_STATE__URL", &*url("right-secret"))];
    let (shown, _) = texts(&warptape_with(folder, &["config", "show"], &environment), 0);
    assert!(shown.contains("url = \"redis://:***@127.0.0.1"), "{shown}");
    let environment = [("WARPTAPE__HOT_STATE__URL", "redis://:right-secret@127.0.0.1:port")];
    let (_, refused) = texts(&warptape_with(folder, &["topics"], &environment), 2);
    assert!(refused.contains("hot_state.url (environment WARPTAPE__HOT_STATE__URL)"), "{refused}");
    let get = ["hot", "get", "A:X", "--hot-state", &url("wrong-secret")];
    let (_, denied) = texts(&warptape(folder, &get), 1);
    for text in [out, error, right_out, right_error, shown, refused, denied] {
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn rediss_is_tls_with_certificates_that_are_checked() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("w.toml"), CONFIGURATION).expect("a file");
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.join("cert.pem"), certified.cert.pem()).expect("a file");
    std::fs::write(folder.join("key.pem"), certified.signing_key.serialize_pem()).expect("a file");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let (cert, key) = (cert.to_str().expect("a path"), key.to_str().expect("a path"));
    let files = ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert];
    let ports = ["--port", "0", "--tls-port", "{port}", "--tls-auth-clients", "no"];
    let server = RedisServer::start(&[&ports[..], &files[..]].concat());
    let url = format!("rediss://localhost:{}", server.port());

    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    feed(folder, &["--ticks", TICKS]);
    let trusted = [("SSL_CERT_FILE", cert)];
    let run = ["run", "-c", "w.toml", "--log", "sqlite:w.db", "--hot-state", &url];
    let mut run = Running::start_with(folder, &run, &trusted);
    run_until_drained(&mut run, &log, "warptape");
    let symbol = expected(&log, "").into_keys().next().expect("a symbol");
    let get = ["hot", "get", &symbol, "--hot-state", &url];
    run.run_until("hot state has the symbol", || {
        let output = warptape_with(folder, &get, &trusted);
        if !output.status.success() {
            return None;
        }
        let (table, _) = texts(&output, 0);
        assert!(table.contains(&symbol), "{table}");
        table.contains("up to date when ").then_some(())
    });
    let summary = run.stop("TERM");
    assert!(summary.contains(&format!("hot state  {url}: ")), "{summary}");

    // The client refuses a certificate without a trusted authority, and a server without TLS.
    let (_, error) = texts(&warptape(folder, &get), 1);
    assert!(error.contains(&url) && error.contains("certificate"), "{error}");
    let plain = RedisServer::start(&[]);
    let get = ["hot", "get", &symbol, "--hot-state", &format!("rediss://localhost:{}", plain.port())];
    texts(&warptape_with(folder, &get, &trusted), 1);
}

fn start_wordy_run(folder: &Path, url: &str) -> Running {
    Running::start(folder, &["run", "-vvv", "-c", "w.toml", "--log", "sqlite:w.db", "--hot-state", url])
}

/// Returns a store with its own prefix in the shared Redis, in which partition 0 is being written as rebuild `now`.
fn store(prefix: &str) -> RedisStore {
    let HotUrl::Redis(url) = HotUrl::parse(&shared()).expect("a URL of a Redis") else { panic!("no Redis") };
    open(&url, prefix)
}

fn open(url: &RedisUrl, prefix: &str) -> RedisStore {
    RedisStore::connect(url, Keys::new(prefix)).expect("the shared Redis takes connections")
}

fn nothing() -> PositionValue {
    PositionValue {
        next_offset: 0,
        written_ns: 0,
        behind: 0,
        node: String::new(),
        record_hash: String::new(),
    }
}

fn write(store: &RedisStore, rebuild: &str, field: &str, value: &str) -> HashWrite {
    HashWrite {
        key: store.keys().symbol("A:X"),
        rebuild: Some((0, rebuild.to_owned())),
        fields: vec![(field.to_owned(), value.to_owned())],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The newest write of each field wins, whatever the writers, their order and repetitions.
    #[test]
    fn an_older_write_never_overwrites_a_newer_one(
        writes in prop::collection::vec((0..2_usize, 0..4_u8, 0..200_i64), 1..60),
        pieces in 1..8_usize,
    ) {
        let prefix = "test-order:";
        clear(&mut connect(&shared()), prefix);
        let mut writers = [store(prefix), store(prefix)];
        writers[0].renew(0, "now", &nothing()).expect("a partition");
        let mut newest: BTreeMap<String, i64> = BTreeMap::new();
        for some in writes.chunks(pieces) {
            for (number, writer) in writers.iter_mut().enumerate() {
                let own = some.iter().filter(|(by, ..)| *by == number);
                let writes: Vec<HashWrite> = own
                    .map(|(_, field, offset)| {
                        let field = format!("f{field}");
                        let there = newest.entry(field.clone()).or_insert(-1);
                        *there = (*there).max(*offset);
                        write(writer, "now", &field, &format!("{{\"offset\":{offset},\"x\":\"y\"}}"))
                    })
                    .collect();
                writer.write(&writes).expect("a write");
            }
        }
        let fields: BTreeMap<String, String> =
            connect(&shared()).hgetall(format!("{prefix}symbol:A:X")).expect("a hash");
        let offset = |(field, text): (String, String)| {
            let value: Value = serde_json::from_str(&text).expect("JSON");
            (field, value["offset"].as_i64().expect("an offset"))
        };
        prop_assert_eq!(fields.into_iter().map(offset).collect::<BTreeMap<_, _>>(), newest);
        clear(&mut connect(&shared()), prefix);
    }
}

#[test]
fn stamps_are_compared_as_numbers_of_any_size() {
    let prefix = "test-stamps:";
    clear(&mut connect(&shared()), prefix);
    let mut store = store(prefix);
    store.renew(0, "now", &nothing()).expect("a partition");
    let mut check = |value: &str, is_written: bool| {
        let writes = [write(&store, "now", "f", value)];
        assert_eq!(store.write(&writes).expect("a write"), u64::from(is_written), "{value}");
    };
    check("{\"offset\":9,\"at\":5,\"text\":\"\"}", true);
    check("{\"offset\":10,\"at\":1,\"text\":\"\"}", true);
    check("{\"offset\":9,\"at\":7,\"text\":\"\"}", false);
    check("{\"offset\":10,\"at\":1,\"text\":\"again\"}", false);
    check("{\"offset\":10,\"at\":2,\"text\":\"\"}", true);
    // Beyond 2^53, Lua cannot distinguish neighbouring numbers.
    check("{\"offset\":9007199254740993}", true);
    check("{\"offset\":9007199254740992}", false);
    check("{\"offset\":9007199254740994}", true);
    clear(&mut connect(&shared()), prefix);
}

#[test]
fn who_writes_for_a_rebuild_that_is_over_is_refused() {
    let prefix = "test-rebuild:";
    clear(&mut connect(&shared()), prefix);
    let (mut old, mut new) = (store(prefix), store(prefix));
    old.renew(0, "first", &nothing()).expect("a partition");
    old.add_symbols(0, &["A:X"]).expect("a symbol");
    let first = [write(&old, "first", "f", "{\"offset\":7}")];
    assert_eq!(old.write(&first).expect("a write"), 1);

    new.renew(0, "second", &nothing()).expect("a partition");
    let is_gone = |connection: &mut redis::Connection| -> bool {
        !connection.exists::<_, bool>(format!("{prefix}symbol:A:X")).expect("an answer")
    };
    let mut connection = connect(&shared());
    assert!(is_gone(&mut connection), "the clearing left a symbol");
    assert!(matches!(old.write(&first), Err(HotError::Emptied { .. })));
    assert!(is_gone(&mut connection));
    // In the new rebuild, an older offset is accepted again.
    let second = [write(&new, "second", "f", "{\"offset\":3}")];
    assert_eq!(new.write(&second).expect("a write"), 1);

    // A killed process cleared the partition only halfway: a name is there, but no position.
    let _: i64 = connection.hdel(format!("{prefix}partition:0"), "position").expect("a hash");
    let stored = new.partition(0).expect("an answer").expect("a partition");
    assert_eq!((stored.rebuild.as_str(), stored.position), ("second", None));
    let _: () =
        connection.hset(format!("{prefix}partition:0"), "position", encode(&nothing())).expect("a hash");
    assert_eq!(new.partition(0).expect("an answer").expect("a partition").position, Some(nothing()));

    // Keys of another layout are not changed.
    let _: () = connection.set(format!("{prefix}layout"), "2").expect("a key");
    let error = new.claim_layout().expect_err("another layout").to_string();
    assert!(error.contains("test-rebuild:layout is \"2\"") && error.contains("hot_state.prefix"), "{error}");
    clear(&mut connection, prefix);
}
