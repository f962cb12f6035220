//! A stopped process, and a log with a held write lock: `replay` explains the time without records.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use warptape_eventlog::{Durability, SqliteLog};

use super::kafka_clients::given;
use super::processes::{Running, folder, run_until_drained, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
/// Length of a hole. Holes count from a quarter of a second on.
const HELD: Duration = Duration::from_secs(2);
/// Script that takes the write lock of the log, reports it, and holds it until its input ends.
const HOLDER: &str = "import sqlite3, sys
lock = sqlite3.connect('w.db', isolation_level=None, timeout=60)
lock.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()
lock.execute('ROLLBACK')";

fn feed(folder: &Path, ticks: &str) {
    let feed = ["feed", "synth", "--symbols", "3", "--ticks", ticks, "--seed", ticks];
    texts(&warptape(folder, &[&feed[..], &LOG].concat()), 0);
}

/// Starts a run, lets it process the feed, stops it with a signal, and publishes more ticks.
fn stopped(folder: &Path) -> (SqliteLog, Running) {
    feed(folder, "2000");
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("the log of the feed");
    let mut run = Running::start(folder, &[&["run"][..], &LOG].concat());
    run_until_drained(&mut run, &log, "warptape");
    run.signal("STOP");
    feed(folder, "9000");
    (log, run)
}

/// Waits for the length of a hole.
fn last(run: &mut Running) {
    let since = Instant::now();
    run.run_until("the hole is there", || (since.elapsed() >= HELD).then_some(()));
}

fn slowest(folder: &Path) -> Value {
    let out = texts(&warptape(folder, &[&["replay", "slowest", "1", "-o", "json"][..], &LOG].concat()), 0).0;
    serde_json::from_str(&out).expect("an object")
}

/// Asserts that this step delayed the slowest signal for most of the time, and that the sum of the waits is right.
#[track_caller]
fn check(folder: &Path, step: &str, words: &str) {
    let found = &slowest(folder)["signals"][0];
    let held = &found["held_by"][0];
    assert_eq!(held["by"]["step"], step, "{found}");
    let total_ns = found["chain"]["total_ns"].as_i64().expect("a number");
    assert!(held["ns"].as_i64().is_some_and(|ns| ns > 250_000_000 && 2 * ns > total_ns), "{found}");
    let waits = found["chain"]["waits"].as_array().expect("waits").iter();
    assert_eq!(waits.map(|wait| wait["ns"].as_i64().expect("a number")).sum::<i64>(), total_ns, "{found}");
    let signal = &found["chain"]["signal"];
    let subject = format!("signal:{}:{}", signal["partition"], signal["offset"]);
    let (why, _) = texts(&warptape(folder, &[&["replay", "why", &subject][..], &LOG].concat()), 0);
    assert!(why.contains(words), "{words:?} is missing in\n{why}");
    let (table, _) = texts(&warptape(folder, &[&["replay", "slowest", "1"][..], &LOG].concat()), 0);
    assert!(table.contains(step), "{table}");
}

#[test]
fn a_stopped_process_is_named_and_the_newest_signal_of_a_symbol_is_found() {
    let folder = folder();
    let folder = folder.path();
    let (log, mut run) = stopped(folder);
    last(&mut run);
    run.signal("CONT");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    check(folder, "stood_still", "it was stopped (by SIGSTOP or a suspended machine)");

    // Without a time, `why` explains the newest signal of a symbol.
    let tail =
        ["tail", "signals", "--from-beginning", "--exit-at-end", "-o", "json", "--symbol", "SYNTH:AAAB"];
    let (lines, _) = texts(&warptape(folder, &[&tail[..], &LOG].concat()), 0);
    let newest: Value = serde_json::from_str(lines.lines().last().expect("signals")).expect("JSON");
    let (why, _) = texts(&warptape(folder, &[&["replay", "why", "SYNTH:AAAB"][..], &LOG].concat()), 0);
    let place = format!("offset {} of partition {}\n", newest["offset"], newest["partition"]);
    assert!(why.lines().next().is_some_and(|line| format!("{line}\n").ends_with(&place)), "{place}: {why}");
    let refused = warptape(folder, &[&["replay", "why", "SYNTH:AAAZ"][..], &LOG].concat());
    let (_, error) = texts(&refused, 2);
    assert!(error.contains("knows no symbol \"SYNTH:AAAZ\"; did you mean SYNTH:AAA"), "{error}");
}

#[test]
fn a_held_write_lock_is_named() {
    let folder = folder();
    let folder = folder.path();
    let (log, mut run) = stopped(folder);
    let mut holder = Command::new(given("WARPTAPE_TEST_PYTHON"))
        .args(["-c", HOLDER])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut line = String::new();
    BufReader::new(holder.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "held\n");
    run.signal("CONT");
    last(&mut run);
    holder.stdin.take().expect("a pipe").flush().expect("it is open");
    assert!(holder.wait().expect("it ends").success());
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    check(folder, "log_held", "its write lock was held");
}
