//! The first hour of a newcomer. `demo` ends by itself or when asked, and the command that it prints proves the run.
//! The proof must fail on a log with one changed byte in a record.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use warptape_eventlog::{Durability, EventLog, NewRecord, Record, SqliteLog, TopicPartition};
use warptape_schemas::journal::{Decision, JournalEntry};
use warptape_schemas::{decode_journal_entry, decode_signal, encode_journal_entry, encode_signal};

use super::files_of_logs::remove_log;
use super::outputs::records;
use super::processes::{Running, committed, ends, folder, texts, warptape};

const PARTITIONS: i32 = 4;
/// Number of bytes of a record that are changed, one at a time.
const BYTES_CHANGED: usize = 12;

/// Asserts that the summary is complete, and returns its `replay verify` command.
#[track_caller]
fn command_in(summary: &str) -> String {
    for part in
        ["ticks  ", "ticks/s  ", "signals  ", "decisions  ", "latency    p50 ", ", p99 ", ", p99.9 ", "log  "]
    {
        assert!(summary.lines().any(|line| line.contains(part)), "{part:?} is missing in:\n{summary}");
    }
    let command = summary.lines().find(|line| line.contains(" replay verify "));
    let command = command.unwrap_or_else(|| panic!("no command in:\n{summary}")).trim();
    assert!(command.ends_with(" --outputs"), "{command}");
    command.to_owned()
}

/// Runs a command line as a newcomer would paste it, and returns standard output.
#[track_caller]
fn shell(folder: &Path, line: &str) -> String {
    let shell = Command::new("sh").args(["-c", line]).current_dir(folder).stdin(Stdio::null()).output();
    texts(&shell.expect("a shell"), 0).0
}

/// Asserts that the output reads `N decisions, M signals: identical`, with both numbers above 0.
#[track_caller]
fn assert_identical(said: &str) {
    let counts =
        said.strip_suffix(" signals: identical\n").and_then(|counts| counts.split_once(" decisions, "));
    let above_0 = |count: &str| count.parse::<u64>().is_ok_and(|count| count > 0);
    assert!(counts.is_some_and(|(decisions, signals)| above_0(decisions) && above_0(signals)), "{said}");
}

/// A finished demo, with its log as bytes.
struct Demo {
    folder: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
    command: String,
}

impl Demo {
    fn run() -> Demo {
        let folder = folder();
        let (summary, _) =
            texts(&warptape(folder.path(), &["demo", "--ticks", "200000", "--data", "demo"]), 0);
        assert!(summary.lines().any(|line| line.starts_with("ticks  ") && line.contains(" 200,000 ")));
        let path = folder.path().join("demo/demo.db");
        // Once its last process has ended, the log needs no write-ahead log.
        assert!(!folder.path().join("demo/demo.db-wal").exists());
        let bytes = std::fs::read(&path).expect("the log of the demo");
        Demo { path, bytes, command: command_in(&summary), folder }
    }

    fn log(&self) -> SqliteLog {
        SqliteLog::open_existing(&self.path).expect("the log of the demo")
    }

    /// Runs the printed command on a log file with these bytes, and checks its exit code.
    #[track_caller]
    fn verify_with(&self, bytes: &[u8], code: i32) -> (String, String) {
        std::fs::write(&self.path, bytes).expect("the file can be written");
        texts(
            &warptape(self.folder.path(), &["replay", "verify", "--outputs", "--log", "sqlite:demo/demo.db"]),
            code,
        )
    }

    /// Returns the difference that the printed command reports for a log in which one record has another value. A
    /// writer can store anything in a log, with valid checksums.
    #[track_caller]
    fn verify_changed(&self, topic: &str, partition: i32, offset: i64, value: &[u8]) -> String {
        let path = self.path.with_file_name("changed.db");
        remove_log(&path);
        let (log, changed) = (self.log(), SqliteLog::open(&path, Durability::Process).expect("a new log"));
        let topics = log.topics().expect("the log can be read");
        let specs: Vec<_> = topics.iter().map(|info| info.spec.clone()).collect();
        changed.create_topics(&specs).expect("new topics");
        let mut producer = changed.producer("copy").expect("a producer");
        for spec in &specs {
            for place in (0..spec.partitions).map(|partition| (spec.name.as_str(), partition)) {
                producer.begin().expect("a transaction");
                for record in records(&log, place.0, place.1) {
                    let is_changed = (place.0, place.1, record.offset) == (topic, partition, offset);
                    let value = if is_changed { value } else { &record.value };
                    let copy = NewRecord {
                        topic: place.0.into(),
                        partition: place.1,
                        key: record.key.as_deref().map(Into::into),
                        headers: record.headers.as_slice().into(),
                        timestamp_ns: record.timestamp_ns,
                        value: value.into(),
                        ..NewRecord::default()
                    };
                    producer.send(copy).expect("a record of the transaction");
                }
                let source = TopicPartition { topic: place.0.to_owned(), partition: place.1 };
                if let Some(next) = log.committed("warptape", &source).expect("the log can be read") {
                    producer.send_offsets("warptape", &[(source, next)]).expect("an offset");
                }
                producer.commit().expect("a commit");
            }
        }
        drop((producer, changed));
        let verify = ["replay", "verify", "--outputs", "--log", "sqlite:demo/changed.db"];
        texts(&warptape(self.folder.path(), &verify), 1).0
    }
}

/// Returns the entry with another lane in its first dispatch, and the difference text that this must give.
fn with_other_lane(mut entry: JournalEntry) -> Option<(String, Vec<u8>)> {
    let is_dispatch = |decision: &Decision| matches!(decision, Decision::Dispatch(_));
    let index = entry.decisions.iter().position(is_dispatch)?;
    let Decision::Dispatch(dispatch) = &mut entry.decisions[index] else { unreachable!("just found") };
    let lane = dispatch.lane;
    dispatch.lane ^= 1;
    let told = format!(
        "  decisions[{index}].dispatch.lane\n    expected  {lane}\n    found     {}\n",
        dispatch.lane
    );
    let mut bytes = Vec::new();
    encode_journal_entry(&entry, &mut bytes);
    Some((told, bytes))
}

/// Returns an entry with a dispatch, from the middle of the journal: its sequence number and its record. Then come the
/// expected difference text for another lane, and the value with that lane.
fn entry_with_other_lane(demo: &Demo) -> (i64, Record, String, Vec<u8>) {
    let all = records(&demo.log(), "journal", 0);
    let found = all[all.len() / 2..].iter().find_map(|record| {
        let entry = decode_journal_entry(&record.value).expect("an entry");
        let sequence = entry.sequence;
        let (told, changed) = with_other_lane(entry)?;
        Some((sequence, record.clone(), told, changed))
    });
    found.expect("an entry with a dispatch")
}

/// Returns a signal from the middle of a partition.
fn some_signal(demo: &Demo) -> (i32, Record) {
    let log = demo.log();
    let found = (0..PARTITIONS).find_map(|partition| {
        let all = records(&log, "signals", partition);
        Some((partition, all.get(all.len() / 2)?.clone()))
    });
    found.expect("a signal")
}

#[test]
fn the_named_command_proves_the_demo_and_names_one_changed_field() {
    let demo = Demo::run();
    assert_identical(&shell(demo.folder.path(), &demo.command));
    let again = warptape(demo.folder.path(), &["demo", "--ticks", "1", "--data", "demo"]);
    assert!(texts(&again, 2).1.contains("demo/demo.db exists"));

    let (sequence, record, told, changed) = entry_with_other_lane(&demo);
    let said = demo.verify_changed("journal", 0, record.offset, &changed);
    let place = format!("journal partition 0 offset {}, sequence {sequence}: different\n", record.offset);
    assert!(said.starts_with(&place) && said.contains(&told), "{said}");

    let (partition, record) = some_signal(&demo);
    let mut signal = decode_signal(&record.value).expect("a signal").into_owned();
    signal.value = f64::from_bits(signal.value.to_bits() ^ 1);
    let mut changed = Vec::new();
    encode_signal(&signal, &mut changed);
    let said = demo.verify_changed("signals", partition, record.offset, &changed);
    let (offset, symbol) = (record.offset, &signal.symbol);
    let place =
        format!("signals partition {partition} offset {offset}, symbol {symbol}: different\n  value\n");
    assert!(said.starts_with(&place), "{said}");

    // The original bytes verify again, so only the change made the difference.
    assert_identical(&demo.verify_with(&demo.bytes, 0).0);
}

#[test]
fn a_decision_of_the_demo_says_what_it_was_chosen_among() {
    let demo = Demo::run();
    let (sequence, ..) = entry_with_other_lane(&demo);
    let ask = |sequence: &str, more: &[&str]| {
        let log = ["replay", "why", sequence, "--log", "sqlite:demo/demo.db"];
        warptape(demo.folder.path(), &[&log, more].concat())
    };
    let (said, _) = texts(&ask(&sequence.to_string(), &[]), 0);
    assert!(said.contains("\nDispatch: batch ") && said.contains("  waiting_rows  "), "{said}");
    let entries = records(&demo.log(), "journal", 0).into_iter();
    let places = |entry: &JournalEntry| entry.decisions.iter().any(|one| matches!(one, Decision::Place(_)));
    let placed = entries.map(|record| decode_journal_entry(&record.value).expect("an entry")).find(places);
    let (said, _) = texts(&ask(&placed.expect("groups are placed").sequence.to_string(), &[]), 0);
    assert!(said.contains("\nPlace: group ") && said.contains("  without it: lane "), "{said}");
    let (json, _) = texts(&ask(&sequence.to_string(), &["-o", "json"]), 0);
    let found: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(found["entry"]["sequence"], sequence);
    assert!(texts(&ask("99999999", &[]), 2).1.contains("no entry with sequence 99999999"));
}

#[test]
fn any_changed_byte_of_a_decision_or_a_signal_is_placed() {
    let demo = Demo::run();
    let (sequence, entry, _, _) = entry_with_other_lane(&demo);
    let (partition, signal) = some_signal(&demo);
    let entry_place = format!("journal partition 0 offset {}, sequence {sequence}: different", entry.offset);
    let signal_place = format!("signals partition {partition} offset {}", signal.offset);
    for (topic, partition, record, place) in
        [("journal", 0, entry, entry_place), ("signals", partition, signal, signal_place)]
    {
        let value = record.value;
        for at in (0..value.len()).step_by(value.len().div_ceil(BYTES_CHANGED)) {
            let mut changed = value.clone();
            changed[at] ^= 1 << (at % 8);
            let said = demo.verify_changed(topic, partition, record.offset, &changed);
            assert!(said.starts_with(&place), "byte {at} of {}: {said}", value.len());
        }
    }
}

#[test]
fn a_log_that_is_cut_or_overwritten_is_exit_2_and_named() {
    let demo = Demo::run();
    let half = demo.bytes.len() / 2;
    let mut overwritten = demo.bytes.clone();
    overwritten[..100].fill(0xaa);
    let mut damaged = demo.bytes.clone();
    damaged[half..].fill(0xaa);
    for (what, bytes, words) in [
        ("cut in half", &demo.bytes[..half], "truncated"),
        ("cut in its header", &demo.bytes[..50], "truncated"),
        ("empty", &[], "empty"),
        ("overwritten at its beginning", &overwritten, "not an event log"),
        ("overwritten behind", &damaged, "damaged"),
    ] {
        let (out, error) = demo.verify_with(bytes, 2);
        assert!(out.is_empty() && error.contains("demo/demo.db") && error.contains(words), "{what}: {error}");
    }
    assert_identical(&demo.verify_with(&demo.bytes, 0).0);
}

#[test]
fn a_demo_of_seconds_ends_by_itself() {
    let folder = folder();
    // Even on a slow machine, the first few thousand ticks arrive, and give signals.
    std::fs::write(folder.path().join("w.toml"), "stages.bars = [\"tick:20\"]\n").expect("a file");
    let demo = ["demo", "--seconds", "2", "--symbols", "10", "--data", ".", "-c", "w.toml"];
    let (summary, _) = texts(&warptape(folder.path(), &demo), 0);
    assert_identical(&shell(folder.path(), &command_in(&summary)));
}

#[test]
fn an_endless_demo_drains_when_interrupted() {
    let folder = folder();
    let mut demo = Running::start(folder.path(), &["demo", "--data", "a folder", "--symbols", "20"]);
    let path = folder.path().join("a folder/demo.db");
    let log = demo.run_until("a log", || SqliteLog::open_existing(&path).ok());
    demo.run_until("signals", || ends(&log, "signals").iter().any(|&end| end > 0).then_some(()));
    let summary = demo.stop("INT");
    drop(log);
    let said = shell(folder.path(), &command_in(&summary));
    assert_identical(&said);
    let log = SqliteLog::open_existing(&path).expect("the log");
    let behind = committed(&log, "warptape").into_iter().find(|(done, end)| done != end);
    assert_eq!(behind, None, "the demo did not drain");
}
