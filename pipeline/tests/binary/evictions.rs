//! Idle symbols leave memory, and return as if they had stayed. Tested with the command, on the embedded log and on
//! Kafka.

use std::fmt::Write as _;
use std::path::Path;

use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_schemas::{Snapshot, decode_signal, decode_snapshot};

use super::endpoint::{scrape, url_of};
use super::kafka_clients::Setup;
use super::outputs::records;
use super::processes::{Running, folder, run_until_drained, texts, warptape};

const MAP: &str = "symbol=sym,time=ts:ms,price=px,size=qty";
/// 2024-08-08T00:00:00Z, in milliseconds.
const START_MS: i64 = 1_723_075_200_000;
const SYMBOLS: i64 = 60;
/// Numbers of ticks of [`before`] and of [`after`].
const TICKS: [u64; 2] = [780, 780];
/// Settings: snapshots after a few records, and eviction of symbols after half a minute.
const EVICTING: [(&str, &str); 3] = [
    ("WARPTAPE__ENGINE__EVICT_IDLE_S", "30"),
    ("WARPTAPE__ENGINE__SNAPSHOT_INTERVAL_RECORDS", "4"),
    ("WARPTAPE__ENGINE__POLL_RECORDS_MAX", "3"),
];
const KEEPING: [(&str, &str); 1] = [("WARPTAPE__ENGINE__EVICT_IDLE_S", "0")];

fn configuration(partitions: i32) -> String {
    format!("topics.partitions = {partitions}\nstages.bars = [\"tick:5\", \"1s\"]\n")
}

/// Returns three ticks of each symbol, then five minutes of ticks of two symbols.
fn market(begin_s: i64) -> String {
    let all = (0..3).flat_map(|round| (0..SYMBOLS).map(move |symbol| (begin_s + round, symbol)));
    let two = (0..300).flat_map(|second| [(begin_s + 3 + second, 0), (begin_s + 3 + second, 1)]);
    let mut text = "sym,ts,px,qty\n".to_owned();
    for (number, (second, symbol)) in all.chain(two).enumerate() {
        let time_ms = START_MS + second * 1_000;
        writeln!(text, "V:{symbol:02},{time_ms},{}.5,{}", 100 + number % 17, 1 + number % 3)
            .expect("a text grows");
    }
    text
}

fn feed(folder: &Path, name: &str, begin_s: i64, log: &[&str]) {
    std::fs::write(folder.join(name), market(begin_s)).expect("a file");
    let feed = ["feed", "csv", name, "--map", MAP, "--batch", "10", "-c", "w.toml"];
    texts(&warptape(folder, &[&feed[..], log].concat()), 0);
}

/// Returns the symbol, bar and values of each signal. Offsets are omitted, because they differ between logs.
fn signals(log: &dyn EventLog, topic: &str, partitions: i32) -> Vec<String> {
    let all = (0..partitions).flat_map(|partition| records(log, topic, partition));
    let shown = all.map(|record| {
        let mut signal = decode_signal(&record.value).expect("a signal");
        (signal.source_offset, signal.source_index) = (0, 0);
        format!("{signal:?}")
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown
}

/// Returns the number of snapshot records that are pages.
fn pages(log: &dyn EventLog, topic: &str, partitions: i32) -> usize {
    let all = (0..partitions).flat_map(|partition| records(log, topic, partition));
    all.filter(|record| decode_snapshot(&record.value).is_ok_and(|part| part.group >= Snapshot::PAGES))
        .count()
}

/// Returns the signals of a run that keeps all symbols in memory.
fn kept(partitions: i32) -> Vec<String> {
    let folder = folder();
    let (folder, log_of) = (folder.path(), ["--log", "sqlite:w.db"]);
    std::fs::write(folder.join("w.toml"), configuration(partitions)).expect("a file");
    feed(folder, "before.csv", 0, &log_of);
    feed(folder, "after.csv", 400, &log_of);
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let mut run = Running::start_with(folder, &[&["run", "-c", "w.toml"][..], &log_of].concat(), &KEEPING);
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    assert_eq!(pages(&log, "snapshots", partitions), 0);
    signals(&log, "signals", partitions)
}

#[test]
fn symbols_that_rest_leave_memory_and_do_not_show() {
    let expected = kept(2);
    let folder = folder();
    let (folder, log_of) = (folder.path(), ["--log", "sqlite:w.db"]);
    std::fs::write(folder.join("w.toml"), configuration(2)).expect("a file");
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let run = [&["run", "-c", "w.toml", "--listen", "127.0.0.1:0"][..], &log_of].concat();
    feed(folder, "before.csv", 0, &log_of);
    let mut first = Running::start_with(folder, &run, &EVICTING);
    run_until_drained(&mut first, &log, "warptape");
    // All symbols except two leave memory with the last snapshot at the latest.
    first.stop("TERM");
    assert!(pages(&log, "snapshots", 2) >= 2);

    // Another process reads the pages of these symbols, and writes new ones.
    let mut second = Running::start_with(folder, &run, &EVICTING);
    let url = url_of(&mut second);
    second.run_until("the state is restored", || {
        (scrape(&url)["warptape_symbols_evicted"] == 58.0).then_some(())
    });
    feed(folder, "after.csv", 400, &log_of);
    run_until_drained(&mut second, &log, "warptape");
    assert_eq!(scrape(&url)["warptape_symbols"], 60.0);
    second.stop("TERM");
    assert_eq!(signals(&log, "signals", 2), expected);
    let verify = [&["replay", "verify", "--outputs"][..], &log_of].concat();
    let (verified, _) = texts(&warptape(folder, &verify), 0);
    assert!(verified.contains("identical"), "{verified}");
}

#[test]
fn symbols_that_rest_leave_memory_on_kafka_too() {
    let setup = Setup::new("evictions");
    let start = || Running::start_with(setup.path(), &["run", "-c", "w.toml"], &EVICTING);
    feed(setup.path(), "before.csv", 0, &[]);
    setup.drain(start(), TICKS[0], 0);
    assert!(pages(&setup.log, &setup.topic("snapshots"), 4) >= 2);
    feed(setup.path(), "after.csv", 400, &[]);
    setup.drain(start(), TICKS[0] + TICKS[1], 0);
    let found = signals(&setup.log, &setup.topic("signals"), 4);
    assert!(found == kept(4), "{} signals are others", found.len());
    let (verified, _) = texts(&warptape(setup.path(), &["replay", "verify", "--outputs", "-c", "w.toml"]), 0);
    assert!(verified.contains("identical"), "{verified}");
}
