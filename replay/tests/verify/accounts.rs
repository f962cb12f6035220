//! The journal's accounts: committed offsets, outputs, and the ticks themselves.

use warptape_eventlog::Record;
use warptape_replay::{
    Divergence, JournalEnd, OutputOptions, ReplayError, TicksDivergence, Unaccounted, VerifyOptions,
};
use warptape_schemas::journal::Input;
use warptape_schemas::tick::Tick;
use warptape_schemas::{SymbolTable, TickColumns, TickDecoder, encode_tick_batch};

use crate::recording::{Plan, Recording, options, record};
use crate::tampered::Tampered;
use crate::{inputs, journal_only, positions, records, verified};

#[test]
fn entries_that_are_missing_at_the_end_are_noticed() {
    let recording = record(Plan::small(20));
    let journal = records(&recording.log, "journal", 0);
    let sealed = positions(&journal, |input| matches!(input, Input::Sealed(_)));
    let last = *sealed.last().unwrap();
    for length in (1..=last).rev().step_by(7) {
        let log = Tampered::new(&recording.log, "journal", 0, journal[..length].to_vec());
        for options in [options(), journal_only()] {
            let report = verified(&log, &options).unwrap();
            let Some(Divergence::Unaccounted(Unaccounted { accounted_offset, committed_offset, .. })) =
                report.divergence
            else {
                panic!("{length} of {} entries: {report}", journal.len());
            };
            assert!(accounted_offset < committed_offset, "{length} entries: {report}");
        }
    }
}

#[test]
fn entries_that_are_missing_behind_the_last_account_are_noticed() {
    let recording = record(Plan::small(26));
    let journal = records(&recording.log, "journal", 0);
    let last = *positions(&journal, |input| matches!(input, Input::Sealed(_))).last().unwrap();
    assert!(last + 1 < journal.len(), "something comes behind it");
    for length in last + 1..journal.len() {
        let log = Tampered::new(&recording.log, "journal", 0, journal[..length].to_vec());
        for options in [options(), journal_only()] {
            let report = verified(&log, &options).unwrap();
            let Some(Divergence::JournalEnd(found)) = &report.divergence else { panic!("{report}") };
            let (next_sequence, committed_sequence) = (length as i64, journal.len() as i64);
            let (topic, group) = ("journal".to_owned(), "group".to_owned());
            let expected = JournalEnd { topic, partition: 0, group, next_sequence, committed_sequence };
            assert_eq!(*found, expected);
            let missing =
                format!(" {} entries are missing at the end of the journal", journal.len() - length);
            assert!(report.to_string().contains(&missing), "{report}");
        }
    }
    // If the group is unknown, or has committed nothing of the journal, nothing counts as missing.
    let other = VerifyOptions {
        sources: OutputOptions { group: "other".to_owned(), ..options().sources },
        ..journal_only()
    };
    let log = Tampered::new(&recording.log, "journal", 0, journal[..=last].to_vec());
    assert!(verified(&log, &other).unwrap().is_identical());
}

#[test]
fn signals_without_a_decision_are_named() {
    let recording = record(Plan::small(21));
    let journal = records(&recording.log, "journal", 0);
    let sealed = positions(&journal, |input| matches!(input, Input::Sealed(_)));
    let cut = sealed[sealed.len() / 2];
    let mut accounted = 0;
    for input in inputs(&journal[..cut]) {
        let Input::Sealed(sealed) = input else { continue };
        let of_first = sealed.partitions.iter().filter(|account| account.partition == 0);
        accounted += of_first.map(|account| account.signals).sum::<i64>();
    }
    let log = Tampered::new(&recording.log, "journal", 0, journal[..cut].to_vec());
    let report = verified(&log, &options()).unwrap();
    let Some(Divergence::Unaccounted(found)) = &report.divergence else { panic!("{report}") };
    assert_eq!((found.topic.as_str(), found.partition, found.group.as_str()), ("ticks", 0, "group"));
    let signals = records(&recording.log, "signals", 0).len() as i64;
    let orphans = &found.orphans[0];
    assert_eq!((orphans.topic.as_str(), orphans.offset), ("signals", accounted));
    assert_eq!(orphans.count as i64, signals - accounted);
    let text = report.to_string();
    assert!(text.contains("entries are missing at the end of the journal"), "{text}");
    assert!(text.contains("without a decision") && text.contains("TEST:P0S"), "{text}");
}

/// Changes a field of a record's first tick on which no signal depends.
fn with_other_receive_time(record: &Record) -> Vec<u8> {
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let rows = TickDecoder::new().decode(&record.value, &mut symbols, &mut columns).unwrap();
    let mut ticks: Vec<Tick> = (0..rows).map(|row| columns.tick(row, &symbols)).collect();
    ticks[0].receive_time_ns = ticks[0].event_time_ns + 5;
    let mut value = Vec::new();
    encode_tick_batch(&ticks, &mut value).unwrap();
    value
}

fn other_ticks(recording: &Recording, partition: i32, ticks: Vec<Record>) -> TicksDivergence {
    let report = verified(&Tampered::new(&recording.log, "ticks", partition, ticks), &options()).unwrap();
    match report.divergence {
        Some(Divergence::Ticks(divergence)) => divergence,
        other => panic!("a divergence of the ticks expected, found {other:?}"),
    }
}

#[test]
fn a_changed_tick_that_changes_no_signal_is_found() {
    let recording = record(Plan::small(22));
    let mut ticks = records(&recording.log, "ticks", 1);
    ticks[7].value = with_other_receive_time(&ticks[7]);
    let found = other_ticks(&recording, 1, ticks);
    assert_eq!((found.topic.as_str(), found.partition), ("ticks", 1));
    assert_eq!((found.first_offset, found.next_offset), (7, 8), "{found}");
    assert_ne!(found.expected, found.found);
    assert!(
        found.to_string().starts_with("ticks partition 1 offsets 7 to 7: these are not the ticks that were"),
        "{found}"
    );
}

#[test]
fn ticks_that_are_gone_or_moved_are_named_before_what_came_of_them() {
    let recording = record(Plan::small(10));
    let ticks = records(&recording.log, "ticks", 0);
    let mut gone = ticks.clone();
    gone.remove(1);
    assert_eq!(other_ticks(&recording, 0, gone).first_offset, 1);
    let mut keyed = ticks.clone();
    keyed[2].key = Some(b"TEST:P0S0".to_vec());
    assert_eq!(other_ticks(&recording, 0, keyed).first_offset, 2);
    let mut last = ticks;
    last.pop();
    let next = last.len() as i64;
    assert_eq!(other_ticks(&recording, 0, last).first_offset, next);
}

#[test]
fn ticks_that_end_before_what_was_committed_are_an_error() {
    let recording = record(Plan::small(23));
    let mut ticks = records(&recording.log, "ticks", 1);
    let committed = ticks.len();
    ticks.truncate(committed - 3);
    let error = verified(&Tampered::trimmed(&recording.log, "ticks", 1, ticks), &options()).unwrap_err();
    assert!(matches!(error, ReplayError::TicksEnd { .. }), "{error}");
    let expected = format!(
        "topic \"ticks\" partition 1 ends at offset {}, but group \"group\" has committed offset {committed}",
        committed - 3
    );
    assert!(error.to_string().contains(&expected), "{error}");
}

#[test]
fn a_trimmed_journal_is_verified_from_the_first_start_that_is_left() {
    let recording = record(Plan { lives: 3, ..Plan::small(24) });
    let journal = records(&recording.log, "journal", 0);
    let starts = positions(&journal, |input| matches!(input, Input::Started(_)));
    for first in [starts[1] - 4, starts[1], starts[2] - 1] {
        let log = Tampered::trimmed(&recording.log, "journal", 0, journal[first..].to_vec());
        let begin = starts.iter().copied().find(|start| *start >= first).unwrap();
        for options in [options(), journal_only()] {
            let report = verified(&log, &options).unwrap();
            assert!(report.is_identical(), "from {first}: {report}");
            assert_eq!(report.entries as usize, journal.len() - begin);
            let note =
                format!("older entries were removed: decisions were compared from sequence {begin} on");
            assert!(report.to_string().contains(&note), "{report}");
        }
        // The remaining entries are still a chain, even before the start.
        let mut changed = journal[first..].to_vec();
        changed.remove(2);
        let report = verified(&Tampered::trimmed(&recording.log, "journal", 0, changed), &options()).unwrap();
        assert!(matches!(report.divergence, Some(Divergence::Journal(_))), "{report}");
    }
    let log = Tampered::trimmed(&recording.log, "journal", 0, journal[starts[2] + 1..].to_vec());
    let error = verified(&log, &options()).unwrap_err();
    assert!(matches!(error, ReplayError::JournalTrimmed { .. }), "{error}");
}
