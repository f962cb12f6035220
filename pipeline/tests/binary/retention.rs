//! Retention on the embedded log: a live run keeps each topic within its limit, and stays exactly once across a crash.
//! The remaining outputs equal those of a run that keeps everything, and verify.

use std::path::Path;

use warptape_eventlog::{EventLog, OffsetRange, Record, SqliteLog, TopicPartition};
use warptape_schemas::{LifecycleEvent, decode_lifecycle, decode_signal};

use super::outputs::records;
use super::processes::{Running, folder, run_until_drained, texts, warptape};

const PARTITIONS: i32 = 2;
/// Small records, each in an entry of its own, so that the journal exceeds its limit as well.
const CONFIGURATION: &str = "\
topics.partitions = 2
stages.bars = [\"1s\", \"tick:2\"]
engine.poll_records_max = 1
engine.commit_interval_ms = 5
engine.snapshot_interval_records = 50
engine.checkpoint_interval_s = 1
";
const LIMITS: &str = "
[log.retention_mib]
ticks = 1
signals = 1
journal = 1
";
const LOG: [&str; 4] = ["-c", "w.toml", "--log", "sqlite:w.db"];

fn command(folder: &Path, arguments: &[&str]) -> (String, String) {
    texts(&warptape(folder, &[arguments, &LOG].concat()), 0)
}

const FEED: [&str; 6] = ["feed", "synth", "--ticks", "200000", "--batch", "8"];

/// Writes the configuration, and returns a log with its topics.
fn prepared(folder: &Path, limits: &str) -> SqliteLog {
    std::fs::write(folder.join("w.toml"), format!("{CONFIGURATION}{limits}")).expect("a file");
    command(folder, &["topics", "create"]);
    SqliteLog::open_existing(folder.join("w.db")).expect("a log")
}

/// Returns the offsets of each partition of a topic.
fn offsets(log: &dyn EventLog, topic: &str) -> Vec<OffsetRange> {
    let partitions = log.partitions(topic).expect("a topic");
    let of =
        |partition| log.offsets(&TopicPartition { topic: topic.to_owned(), partition }).expect("a partition");
    (0..partitions).map(of).collect()
}

fn is_trimmed(log: &dyn EventLog, topic: &str) -> bool {
    offsets(log, topic).iter().all(|range| range.first > 0)
}

fn all(log: &dyn EventLog, topic: &str) -> Vec<Vec<Record>> {
    (0..PARTITIONS).map(|partition| records(log, topic, partition)).collect()
}

/// Returns the values of each signal. Offsets are omitted, because the pace of a feed decides how ticks are cut into
/// records.
fn signals(log: &dyn EventLog) -> Vec<Vec<String>> {
    let shown = |record: &Record| {
        let mut signal = decode_signal(&record.value).expect("a signal");
        (signal.source_offset, signal.source_index) = (0, 0);
        format!("{signal:?}")
    };
    all(log, "signals").iter().map(|records| records.iter().map(shown).collect()).collect()
}

/// Returns the number of removed records of a topic by the lifecycle topic.
fn removed_records(log: &dyn EventLog, topic: &str) -> i64 {
    let of = |record: &Record| {
        let told = decode_lifecycle(&record.value).expect("a record of ours");
        let detail = told.detail.strip_prefix(&format!("{topic}: "))?;
        let count = detail.split(' ').next().and_then(|count| count.parse::<i64>().ok());
        (told.event == LifecycleEvent::RecordsRemoved).then(|| count.expect("a number of records"))
    };
    records(log, "lifecycle", 0).iter().filter_map(of).sum()
}

#[test]
fn a_stopped_run_has_told_of_all_removals() {
    let folder = folder();
    let log = prepared(folder.path(), LIMITS);
    command(folder.path(), &FEED);
    let mut run = Running::start(folder.path(), &[&["run"][..], &LOG].concat());
    for topic in ["ticks", "signals", "journal"] {
        run.run_until(topic, || is_trimmed(&log, topic).then_some(()));
    }
    run.stop("TERM");
    for topic in ["ticks", "signals", "journal"] {
        let removed: i64 = offsets(&log, topic).iter().map(|range| range.first).sum();
        assert_eq!(removed_records(&log, topic), removed, "{topic}");
    }
}

#[test]
fn a_live_run_keeps_its_log_within_limits_and_loses_nothing_that_it_needs() {
    let (whole, trimmed) = (folder(), folder());
    let kept = prepared(whole.path(), "");
    command(whole.path(), &FEED);
    command(whole.path(), &["run", "--until-caught-up"]);
    for topic in ["ticks", "signals", "journal"] {
        assert!(offsets(&kept, topic).iter().all(|range| range.first == 0), "{topic}");
    }
    let log = prepared(trimmed.path(), LIMITS);
    // The feed takes some seconds, so that there is work before the crash and after it.
    let feed = Running::start(trimmed.path(), &[&FEED[..], &["--rate", "40000"], &LOG].concat());
    let start = || Running::start(trimmed.path(), &[&["run"][..], &LOG].concat());
    let mut run = start();
    run.await_saying("ticks: the oldest records are removed from now on");
    run.kill();
    let mut run = start();
    assert!(feed.finish().0.success());
    run_until_drained(&mut run, &log, "warptape");
    for topic in ["ticks", "signals", "journal"] {
        run.run_until(topic, || is_trimmed(&log, topic).then_some(()));
    }
    // A signal has more than 200 bytes.
    let signals_left = || offsets(&log, "signals").iter().map(|range| range.next - range.first).sum::<i64>();
    run.run_until("few signals", || (signals_left() < (2 << 20) / 200).then_some(()));
    run.stop("TERM");
    for (expected, found) in signals(&kept).iter().zip(signals(&log)) {
        assert!(!found.is_empty() && found.len() < expected.len(), "{} of {}", found.len(), expected.len());
        assert!(expected.ends_with(&found), "{:?}", found[0]);
    }
    for topic in ["ticks", "signals", "journal"] {
        let told = removed_records(&log, topic);
        let removed: i64 = offsets(&log, topic).iter().map(|range| range.first).sum();
        // The killed run may have removed some within its last seconds.
        assert!(0 < told && told <= removed, "{topic}: {told} of {removed}");
    }
    let (verified, _) = command(trimmed.path(), &["replay", "verify", "--outputs"]);
    assert!(verified.contains("identical"), "{verified}");
    let (checked, _) = command(trimmed.path(), &["log", "check"]);
    assert!(checked.contains("ticks/0 offsets 0 to ") && checked.contains("whole"), "{checked}");
    // The newest signal can still be explained.
    let signals = all(&log, "signals");
    let last = decode_signal(&signals[0].last().expect("the last row stays").value).expect("a signal");
    let (why, _) = command(trimmed.path(), &["replay", "why", &last.symbol]);
    assert!(why.contains("from publication to its commit"), "{why}");
}
