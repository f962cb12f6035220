//! Exported files: a copy of everything that a replay of a log or of a window needs, which can be verified alone.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use warptape_eventlog::{EventLog, LogError, NewRecord, RecordClock, SqliteLog, TopicPartition, TopicSpec};
use warptape_replay::chain::why_signal;
use warptape_replay::{
    ABOUT_KEY, ABOUT_TOPIC, Bound, ExportOptions, Exported, ReplayError, SCHEMA_KEY, VerifyOptions,
    WhyOptions, Window, export, why,
};
use warptape_schemas::journal::{Checkpoint, Input};
use warptape_schemas::{decode_journal_entry, decode_signal, known};

use crate::recording::{PARTITIONS, Plan, Recording, options, record};
use crate::tampered::Tampered;
use crate::{inputs, journal_only, records, verified};

const OUTPUTS: [&str; 3] = ["signals", "late", "dead-letter"];

fn asked(window: Window, with_ticks: bool) -> ExportOptions {
    let VerifyOptions { journal, sources, .. } = options();
    let by = serde_json::json!({"software": "test"});
    ExportOptions { journal, sources, others: vec!["lifecycle".to_owned()], window, with_ticks, by }
}

/// An exported file.
struct File {
    log: SqliteLog,
    exported: Exported,
    path: PathBuf,
    _folder: TempDir,
}

fn file_of(log: &dyn EventLog, window: Window, with_ticks: bool) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.db");
    let mut seen = Vec::new();
    let exported =
        export(log, &path, &asked(window, with_ticks), &mut |progress| seen.push(progress)).unwrap();
    let last = seen.last().unwrap();
    assert!(last.done <= last.total && seen.is_sorted_by_key(|progress| progress.done), "{last:?}");
    let log = SqliteLog::open_existing(&path).unwrap();
    assert_eq!(log.check_all(&mut |_| {}).unwrap().damage, [] as [String; 0]);
    File { log, exported, path, _folder: folder }
}

/// Returns a run with checkpoints and snapshots in each of its lives.
fn rich(seed: u64) -> Recording {
    record(Plan { checkpoint: Some(4), snapshot: Some(7), ..Plan::small(seed) })
}

#[test]
fn an_export_has_topics_that_replay_does_not_read() {
    let recording = rich(47);
    let name = "lifecycle".to_owned();
    recording.log.create_topics(&[TopicSpec { name, partitions: 1, ..TopicSpec::default() }]).unwrap();
    let mut producer = recording.log.producer("lifecycle").unwrap();
    producer.begin().unwrap();
    let (topic, value) = ("lifecycle".into(), vec![1, 2, 3].into());
    producer.send(NewRecord { topic, value, ..NewRecord::default() }).unwrap();
    producer.commit().unwrap();
    let window = Window { since: Some(Bound::Sequence(20)), ..Window::default() };
    for window in [Window::default(), window] {
        let file = file_of(&recording.log, window, true);
        let found = records(&file.log, "lifecycle", 0);
        assert_eq!(found, records(&recording.log, "lifecycle", 0));
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn a_whole_export_is_the_log_again() {
    let recording = rich(40);
    let file = file_of(&recording.log, Window::default(), true);
    for (topic, partitions) in
        [("journal", 1), ("ticks", 2), ("signals", 2), ("late", 2), ("dead-letter", 2), ("snapshots", 2)]
    {
        for partition in 0..partitions {
            let found = records(&file.log, topic, partition);
            assert!(!found.is_empty(), "{topic}/{partition}");
            assert_eq!(found, records(&recording.log, topic, partition), "{topic}/{partition}");
            let place = TopicPartition { topic: topic.to_owned(), partition };
            assert_eq!(
                file.log.committed("group", &place).unwrap(),
                recording.log.committed("group", &place).unwrap()
            );
        }
    }
    let report = verified(&file.log, &options()).unwrap();
    assert_eq!(report, verified(&recording.log, &options()).unwrap());
    assert!(report.is_identical() && report.notes.is_empty(), "{report}");
    let count = |topic: &str| file.exported.topics.iter().find(|one| one.name == topic).unwrap().records;
    assert_eq!(count("journal"), report.entries);
    // Exporting the file again yields the same file.
    let again = file_of(&file.log, Window::default(), true);
    assert_eq!(verified(&again.log, &options()).unwrap(), report);
}

/// The times of a topic's records come from the same clock as in the log, wherever the records are copied.
#[test]
fn it_says_whose_clock_times_are_of() {
    let recording = rich(47);
    for clock in [Some(RecordClock::Writer), Some(RecordClock::Log), None] {
        let signals = records(&recording.log, "signals", 0);
        let log = Tampered::new(&recording.log, "signals", 0, signals).with_clock(clock);
        let file = file_of(&log, Window::default(), true);
        let again = file_of(&file.log, Window::default(), true);
        for log in [&file.log, &again.log] {
            assert_eq!(log.record_clock("signals").unwrap(), clock);
            assert_eq!(log.record_clock("ticks").unwrap(), Some(RecordClock::Writer));
            assert_eq!(log.record_clock("nothing").unwrap(), None);
        }
    }
}

#[test]
fn without_ticks_it_is_the_journal_and_says_what_it_lacks() {
    let recording = rich(41);
    let file = file_of(&recording.log, Window::default(), false);
    assert_eq!(
        verified(&file.log, &journal_only()).unwrap(),
        verified(&recording.log, &journal_only()).unwrap()
    );
    assert!(records(&file.log, "ticks", 0).is_empty() && records(&file.log, "signals", 1).is_empty());
    let error = verified(&file.log, &options()).unwrap_err();
    assert!(matches!(error, ReplayError::RecordsGone { .. }), "{error}");
    assert!(error.to_string().contains("--with-ticks"), "{error}");
    let error = why_signal(&file.log, &options(), 1, 0, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("--with-ticks"), "{error}");
}

#[test]
fn it_says_what_it_is_and_has_the_schemas() {
    let recording = rich(42);
    let file = file_of(&recording.log, Window::default(), false);
    let about = records(&file.log, ABOUT_TOPIC, 0);
    assert_eq!(about[0].key.as_deref(), Some(ABOUT_KEY.as_bytes()));
    let told: serde_json::Value = serde_json::from_slice(&about[0].value).unwrap();
    assert_eq!((&told["by"]["software"], &told["with_ticks"]), (&"test".into(), &false.into()));
    assert_eq!(told["offsets"]["journal"][0]["next"], records(&recording.log, "journal", 0).len());
    for schema in [known::SIGNAL, known::JOURNAL_ENTRY, known::TICK_BATCH, known::SIGNAL_1] {
        let key = format!("{SCHEMA_KEY}{:016x}", schema.fingerprint);
        let found = about.iter().find(|record| record.key.as_deref() == Some(key.as_bytes())).unwrap();
        assert_eq!(found.value, schema.text.as_bytes());
    }
}

/// Every window of a run can be verified alone, with and without outputs, and contains the requested part.
#[test]
fn every_window_verifies() {
    let recording = rich(43);
    let journal = records(&recording.log, "journal", 0);
    let length = journal.len() as i64;
    let whole = verified(&recording.log, &options()).unwrap();
    let (mut later, mut with_signals, mut earlier) = (0, 0, 0);
    for since in (0..length).step_by(9) {
        for until in [Some(since + 1), Some(since + 25), None] {
            let window =
                Window { since: Some(Bound::Offset(since)), until: until.map(Bound::Sequence), partition: 0 };
            println!("{since} to {until:?}");
            let file = file_of(&recording.log, window, true);
            let copied = records(&file.log, "journal", 0);
            let (first, last) = (copied[0].offset, copied.last().unwrap().offset);
            assert_eq!(copied, journal[first as usize..=last as usize]);
            assert!(first <= since && last >= since, "{since} is not in {first} to {last}");
            let first_input = inputs(&copied[..1]).remove(0);
            assert!(
                matches!(first_input, Input::Started(_) | Input::Checkpoint(Checkpoint { part: 0, .. })),
                "{first_input:?}"
            );
            let is_sealed = matches!(inputs(&journal[last as usize..=last as usize])[0], Input::Sealed(_));
            assert!(is_sealed || last + 1 == length, "it ends at {last}");
            for options in [options(), journal_only()] {
                let report = verified(&file.log, &options).unwrap();
                assert!(report.is_identical(), "{report}");
                assert_eq!(report.entries as usize, copied.len());
                let is_told =
                    report.notes.iter().any(|note| note.contains("decisions were compared from sequence"));
                assert_eq!(is_told, first > 0, "{report}");
            }
            let report = verified(&file.log, &options()).unwrap();
            let outputs = report.outputs.unwrap();
            if first > 0 && outputs.signals > 0 {
                assert!(
                    report.to_string().contains("outputs were compared from the snapshot at offset"),
                    "{report}"
                );
                assert!(outputs.signals < whole.outputs.unwrap().signals);
                later += 1;
            }
            // The compared outputs are those of the transactions in the window.
            let sealed: i64 = inputs(&copied)
                .iter()
                .filter_map(|input| match input {
                    Input::Sealed(sealed) => {
                        Some(sealed.partitions.iter().map(|one| one.signals).sum::<i64>())
                    }
                    _ => None,
                })
                .sum();
            assert_eq!(outputs.signals as i64, sealed);
            with_signals += i32::from(sealed > 0);
            earlier += i32::from(last + 1 < length);
            let sequence = decode_journal_entry(&copied[copied.len() - 1].value).unwrap().sequence;
            let asked = WhyOptions { journal: "journal".to_owned(), partition: 0, sequence };
            why(&file.log, &asked).unwrap();
        }
    }
    assert!(later > 10 && with_signals > 10 && earlier > 10, "{later}, {with_signals}, {earlier}");
}

#[test]
fn bounds_are_times_offsets_or_sequences() {
    let recording = rich(44);
    let journal = records(&recording.log, "journal", 0);
    let entry = decode_journal_entry(&journal[100].value).unwrap();
    let copied = |bound: Bound| {
        let since = file_of(&recording.log, Window { since: Some(bound), ..Window::default() }, false);
        let until = file_of(&recording.log, Window { until: Some(bound), ..Window::default() }, false);
        (records(&since.log, "journal", 0), records(&until.log, "journal", 0))
    };
    let by_offset = copied(Bound::Offset(100));
    assert_eq!(copied(Bound::TimeNs(entry.at_ns)), by_offset);
    assert_eq!(copied(Bound::Sequence(entry.sequence)), by_offset);
    assert!(by_offset.0.len() < journal.len() && by_offset.1.len() < journal.len());
    // A window without entries contains the entries that its moment needs.
    let window = Window {
        since: Some(Bound::TimeNs(entry.at_ns + 1)),
        until: Some(Bound::TimeNs(entry.at_ns + 2)),
        ..Window::default()
    };
    assert!(!records(&file_of(&recording.log, window, false).log, "journal", 0).is_empty());
    let (first, last) = (journal.first().unwrap(), journal.last().unwrap());
    let [first, last] = [first, last].map(|record| decode_journal_entry(&record.value).unwrap());
    let outside = [
        (Some(Bound::TimeNs(last.at_ns + 1)), None),
        (Some(Bound::Sequence(last.sequence + 1)), None),
        (Some(Bound::Offset(last.sequence + 1)), Some(Bound::Offset(last.sequence + 9))),
        (None, Some(Bound::TimeNs(first.at_ns))),
        (None, Some(Bound::Sequence(0))),
        (None, Some(Bound::Offset(0))),
    ];
    for (since, until) in outside {
        let window = Window { since, until, ..Window::default() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.db");
        let error = export(&recording.log, &path, &asked(window, false), &mut |_| {}).unwrap_err();
        assert!(matches!(error, ReplayError::OutsideJournal { .. }), "{window:?}: {error}");
        assert!(!path.exists(), "{window:?}");
    }
}

/// A change inside a window is found in its file, as in the source log; a change outside of the window is not.
#[test]
fn what_is_changed_in_a_window_is_found() {
    let recording = rich(45);
    let length = records(&recording.log, "journal", 0).len() as i64;
    let window = Window { since: Some(Bound::Offset(length / 2)), ..Window::default() };
    let file = file_of(&recording.log, window, true);
    assert!(verified(&file.log, &options()).unwrap().is_identical());
    for topic in OUTPUTS {
        let found = records(&file.log, topic, 0);
        let kept = |change: &dyn Fn(&mut Vec<warptape_eventlog::Record>)| {
            let mut changed = found.clone();
            change(&mut changed);
            verified(&Tampered::trimmed(&file.log, topic, 0, changed), &options()).unwrap()
        };
        assert!(kept(&|_| {}).is_identical());
        let last = found.len() - 1;
        assert!(!kept(&|changed| *changed[last].value.last_mut().unwrap() ^= 2).is_identical(), "{topic}");
        assert!(!kept(&|changed| drop(changed.remove(last / 2 + 1))).is_identical(), "{topic}");
    }
    let ticks = records(&file.log, "ticks", 0);
    let mut changed = ticks.clone();
    let middle = ticks.len() / 2;
    *changed[middle].value.last_mut().unwrap() ^= 1;
    let report = verified(&Tampered::trimmed(&file.log, "ticks", 0, changed), &options()).unwrap();
    assert!(!report.is_identical());
}

/// If the first records of outputs were removed, for example by retention, outputs are compared from the first complete
/// place on, with a note.
#[test]
fn removed_beginnings_are_no_difference() {
    let recording = rich(46);
    let whole = verified(&recording.log, &options()).unwrap().outputs.unwrap();
    for topic in OUTPUTS {
        let found = records(&recording.log, topic, 0);
        for removed in [1, found.len() / 2, found.len() - 1] {
            let left = found[removed..].to_vec();
            let report = verified(&Tampered::trimmed(&recording.log, topic, 0, left), &options()).unwrap();
            assert!(report.is_identical(), "{topic} without {removed}: {report}");
            assert!(
                report.to_string().contains(&format!("{topic}/0 has lost its first records")),
                "{report}"
            );
            let outputs = report.outputs.unwrap();
            let counts = [
                (outputs.signals, whole.signals),
                (outputs.late, whole.late),
                (outputs.dead_letters, whole.dead_letters),
            ];
            assert_eq!(counts.iter().filter(|(found, all)| found < all).count(), 1);
        }
    }
    // Ticks after a snapshot are enough; without them after the last snapshot, the partition cannot be compared.
    let ticks = records(&recording.log, "ticks", 0);
    for (removed, is_compared) in [(1, true), (20, true), (21, false)] {
        let log = Tampered::trimmed(&recording.log, "ticks", 0, ticks[removed..].to_vec());
        let report = verified(&log, &options()).unwrap();
        assert!(report.is_identical(), "{report}");
        let expected = if is_compared {
            "ticks/0: outputs were compared from the snapshot at offset 20 on"
        } else {
            "its outputs were not compared"
        };
        assert!(report.to_string().contains(expected), "without {removed}: {report}");
    }
}

#[test]
fn segments_are_exported_with_the_ticks_that_they_take() {
    let recording = record(Plan {
        lives: 3,
        lateness_ms: &[500, 100],
        checkpoint: Some(4),
        snapshot: Some(7),
        ..Plan::small(47)
    });
    let length = records(&recording.log, "journal", 0).len() as i64;
    let export = |since: i64, until: Option<i64>| {
        let window =
            Window { since: Some(Bound::Offset(since)), until: until.map(Bound::Offset), partition: 0 };
        let file = file_of(&recording.log, window, true);
        let report = verified(&file.log, &options()).unwrap();
        assert!(
            report.is_identical() && report.outputs.unwrap().signals > 0,
            "{since} to {until:?}: {report}"
        );
        (file.exported.notes.join("; "), records(&file.log, "ticks", 0)[0].offset, report.to_string())
    };
    let (notes, first, report) = export(length / 6, Some(length / 2));
    assert!(notes.contains("the stage configuration changes within the window") && first == 0, "{notes}");
    assert!(report.contains("another stage configuration"), "{report}");
    let (notes, first, _) = export(length * 5 / 6, None);
    assert!(!notes.contains("configuration") && first > 0, "{notes}");
    let last = length - 1;
    assert!(notes.contains(" has the sequences ") && notes.contains(&format!(" to {last}, ")), "{notes}");
}

#[test]
fn a_damaged_log_is_an_error_and_leaves_no_file() {
    let recording = rich(48);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("damaged.db");
    recording.log.backup(&source, &mut |_| {}).unwrap();
    let signal = records(&recording.log, "signals", 1).swap_remove(5);
    let symbol = decode_signal(&signal.value).unwrap().symbol.into_owned();
    let mut bytes = fs::read(&source).unwrap();
    let place = bytes.windows(signal.value.len()).position(|window| window == signal.value).unwrap();
    bytes[place + signal.value.len() - 1] ^= 1;
    fs::write(&source, bytes).unwrap();
    let log = SqliteLog::open_existing(&source).unwrap();
    let to = folder.path().join("export.db");
    let error = export(&log, &to, &asked(Window::default(), true), &mut |_| {}).unwrap_err();
    assert!(matches!(error, ReplayError::Log(LogError::Unreadable { .. })), "{symbol}: {error}");
    assert!(error.to_string().contains("signals/1"), "{error}");
    assert_eq!(
        fs::read_dir(folder.path())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("export") })
            .count(),
        0
    );
    // A record that is not a signal is copied with the whole log, for inspection. If its cause is needed, an error
    // names it.
    let mut signals = records(&recording.log, "signals", 1);
    signals.iter_mut().for_each(|signal| signal.value.truncate(3));
    let log = Tampered::new(&recording.log, "signals", 1, signals);
    drop(file_of(&log, Window::default(), true));
    let window = Window { since: Some(Bound::Offset(100)), ..Window::default() };
    let error = export(&log, &to, &asked(window, true), &mut |_| {}).unwrap_err();
    assert!(matches!(error, ReplayError::OutputUnreadable { .. }), "{error}");
    // An existing file is not overwritten.
    fs::write(&to, "something").unwrap();
    let error = export(&recording.log, &to, &asked(Window::default(), true), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("exists, and existing files"), "{error}");
    assert!(!File::is_left(&to));
}

impl File {
    /// True if an unfinished file remains beside a file.
    fn is_left(to: &std::path::Path) -> bool {
        fs::metadata(format!("{}-unfinished", to.display())).is_ok()
    }
}

#[test]
fn a_file_may_be_moved() {
    let recording = rich(49);
    let file = file_of(&recording.log, Window::default(), true);
    let folder = tempfile::tempdir().unwrap();
    let moved = folder.path().join("moved.db");
    fs::copy(&file.path, &moved).unwrap();
    let report = verified(&SqliteLog::open_existing(&moved).unwrap(), &options()).unwrap();
    assert!(
        report.is_identical() && report.outputs.unwrap().tick_records as usize == PARTITIONS as usize * 24,
        "{report}"
    );
}

/// A journal that has lost its beginning does not have the configuration before its first checkpoint.
#[test]
fn outputs_before_the_first_checkpoint_of_a_trimmed_journal_are_refused() {
    let recording = rich(43);
    let journal = records(&recording.log, "journal", 0);
    let is_checkpoint = |value: &[u8]| {
        matches!(decode_journal_entry(value).unwrap().input, Input::Checkpoint(Checkpoint { part: 0, .. }))
    };
    let first = journal.iter().position(|record| is_checkpoint(&record.value)).unwrap();
    let until = Some(Bound::Offset(journal[first].offset));
    let log = Tampered::trimmed(&recording.log, "journal", 0, journal[1..].to_vec());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.db");
    let window = Window { until, ..Window::default() };
    let error = export(&log, &path, &asked(window, true), &mut |_| {}).unwrap_err();
    assert!(matches!(error, ReplayError::NoConfig { .. }), "{error}");
    assert!(!path.exists());
}
