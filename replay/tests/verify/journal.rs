//! Verifies changed journals.

use warptape_eventlog::{Record, SqliteLog};
use warptape_replay::{Divergence, JournalDivergence, ReplayError};
use warptape_schemas::hex::Digits;
use warptape_schemas::journal::{Decision, Input, JournalEntry};
use warptape_schemas::{JournalWriter, decode_journal_entry, encode_journal_entry};

use crate::recording::{Plan, Random, Recording, empty, options, record};
use crate::tampered::Tampered;
use crate::{journal_only, positions, records, verified};

/// Returns the divergence of a journal after a change.
fn diverged_journal(recording: &Recording, change: impl FnOnce(&mut Vec<Record>)) -> JournalDivergence {
    let mut journal = records(&recording.log, "journal", 0);
    change(&mut journal);
    let report = verified(&Tampered::new(&recording.log, "journal", 0, journal), &options()).unwrap();
    match report.divergence {
        Some(Divergence::Journal(divergence)) => {
            assert_eq!(report.entries as i64, divergence.sequence, "all entries before it are identical");
            assert_eq!(report.outputs, None);
            divergence
        }
        other => panic!("a divergence of the journal expected, found {other:?}"),
    }
}

fn fields(divergence: &JournalDivergence) -> Vec<&str> {
    divergence.differences.iter().map(|difference| difference.field.as_str()).collect()
}

/// Changes an entry, and recomputes its hash and all later ones, like a forger or another version of the scheduler.
fn forge(journal: &mut [Record], offset: usize, change: impl FnOnce(&mut JournalEntry)) {
    let mut entries: Vec<JournalEntry> =
        journal.iter().map(|record| decode_journal_entry(&record.value).unwrap()).collect();
    change(&mut entries[offset]);
    let mut writer = JournalWriter::new();
    for (record, entry) in journal.iter_mut().zip(&entries) {
        record.value.clear();
        let state_hash = u64::from_str_radix(&entry.state_hash, 16).unwrap();
        writer.append(entry.at_ns, &entry.input, &entry.decisions, state_hash, &mut record.value);
    }
}

/// Returns the first entry for which `find` returns a value, and that value.
fn find<T>(log: &SqliteLog, find: impl Fn(&JournalEntry) -> Option<T>) -> (usize, T) {
    let journal = records(log, "journal", 0);
    let entries = journal.iter().map(|record| decode_journal_entry(&record.value).unwrap());
    entries
        .enumerate()
        .find_map(|(index, entry)| Some((index, find(&entry)?)))
        .expect("the run has such an entry")
}

#[test]
fn a_forged_decision_is_named_by_its_field() {
    let recording = record(Plan::small(1));
    let (at, lane) = find(&recording.log, |entry| match entry.decisions.first() {
        Some(Decision::Place(place)) => Some(place.lane),
        _ => None,
    });
    let divergence = diverged_journal(&recording, |journal| {
        forge(journal, at, |entry| {
            let Some(Decision::Place(place)) = entry.decisions.first_mut() else {
                unreachable!("just found")
            };
            place.lane = 1 - lane;
        });
    });
    assert_eq!((divergence.offset, divergence.sequence), (at as i64, at as i64));
    assert_eq!(fields(&divergence), ["decisions[0].place.lane"]);
    let difference = &divergence.differences[0];
    assert_eq!((&difference.expected, &difference.found), (&Some(lane.into()), &Some((1 - lane).into())));
    let text = divergence.to_string();
    assert!(
        text.starts_with(&format!("journal partition 0 offset {at}, sequence {at}: different")),
        "{text}"
    );
    assert!(
        text.contains("PartitionAssigned")
            && text.contains(concat!("written by warptape ", env!("CARGO_PKG_VERSION"), " like this;")),
        "{text}"
    );
}

#[test]
fn a_changed_entry_breaks_the_chain_as_well() {
    let recording = record(Plan::small(2));
    let (at, _) = find(&recording.log, |entry| (entry.decisions.len() > 2).then_some(()));
    let divergence = diverged_journal(&recording, |journal| {
        let mut entry = decode_journal_entry(&journal[at].value).unwrap();
        entry.decisions.pop();
        journal[at].value.clear();
        encode_journal_entry(&entry, &mut journal[at].value);
    });
    assert_eq!(divergence.sequence, at as i64);
    let fields = fields(&divergence);
    assert_eq!(fields[0], "decisions.length");
    assert_eq!(fields.last(), Some(&"hash"));
    assert!(divergence.to_string().contains("its hash does not match: the entry was changed"));
}

#[test]
fn other_fields_of_an_entry_are_compared() {
    let recording = record(Plan::small(3));
    let (completed, ()) =
        find(&recording.log, |entry| matches!(entry.input, Input::Completed(_)).then_some(()));
    let check = |at: usize, change: &dyn Fn(&mut JournalEntry), named: i64, expected: &str| {
        let divergence = diverged_journal(&recording, |journal| forge(journal, at, |entry| change(entry)));
        assert_eq!((divergence.sequence, fields(&divergence)[0]), (named, expected), "{divergence}");
    };
    let at = completed as i64;
    check(completed, &|entry| entry.state_hash = Digits::of(&1_u64.to_be_bytes()), at, "state_hash");
    let unknown = |entry: &mut JournalEntry| {
        let Input::Completed(completed) = &mut entry.input else { unreachable!("just found") };
        completed.batch += 77;
    };
    check(completed, &unknown, at, "input");
    check(completed, &|entry| entry.at_ns = 1, at, "input");
    // A changed time that changes no decision still changes the state at the next step.
    check(completed, &|entry| entry.at_ns += 1, at + 1, "state_hash");
}

#[test]
fn missing_and_swapped_entries_are_named() {
    let recording = record(Plan::small(4));
    let length = records(&recording.log, "journal", 0).len();
    for gone in [0, 5, length - 2] {
        let divergence = diverged_journal(&recording, |journal| drop(journal.remove(gone)));
        assert_eq!((divergence.offset, divergence.sequence), (gone as i64 + 1, gone as i64));
        assert_eq!(fields(&divergence), ["sequence", "hash"]);
        assert_eq!(divergence.differences[0].found, Some((gone + 1).into()));
    }
    let divergence = diverged_journal(&recording, |journal| {
        let (one, other) = journal.split_at_mut(8);
        std::mem::swap(&mut one[7].value, &mut other[0].value);
    });
    assert_eq!((divergence.sequence, fields(&divergence)), (7, vec!["sequence", "hash"]));
}

#[test]
fn a_journal_of_something_else_diverges_at_its_first_entry() {
    let recording = record(Plan::small(4));
    let signal = records(&recording.log, "signals", 0).remove(0).value;
    let divergence = diverged_journal(&recording, |journal| journal[0].value = signal);
    assert_eq!((divergence.offset, fields(&divergence)), (0, vec!["entry"]));
    assert!(divergence.to_string().contains("Signal"), "{divergence}");
}

#[test]
fn an_entry_without_a_byte_of_a_hash_was_changed_after_it_was_written() {
    let recording = record(Plan::small(4));
    let divergence = diverged_journal(&recording, |journal| {
        let value = &mut journal[5].value;
        // The hash of the state precedes the entry's own hash.
        value.remove(value.len() - 32 - 8);
    });
    assert_eq!((divergence.sequence, fields(&divergence)), (5, vec!["entry", "hash"]));
    let text = divergence.to_string();
    assert!(text.contains("its hash does not match"), "{text}");
}

#[test]
fn every_flipped_byte_of_a_journal_is_found() {
    let recording = record(Plan { records: 3, ..Plan::small(5) });
    let journal = records(&recording.log, "journal", 0);
    let mut random = Random(5);
    let mut bytes = 0;
    for index in 0..journal.len() {
        for position in 0..journal[index].value.len() {
            let flip = random.below(255) as u8 + 1;
            let mut journal = journal.clone();
            journal[index].value[position] ^= flip;
            let log = Tampered::new(&recording.log, "journal", 0, journal);
            let report = verified(&log, &journal_only()).unwrap();
            let Some(Divergence::Journal(divergence)) = report.divergence else {
                panic!("byte {position} of entry {index} was flipped by {flip:#04x} unnoticed");
            };
            assert_eq!(divergence.sequence, index as i64, "byte {position}, {flip:#04x}: {divergence}");
            bytes += 1;
        }
    }
    assert!(bytes > 1_000, "a journal of {bytes} bytes says little");
}

/// Verifies a stored older journal: this software must make the same decisions, with the same state hashes.
fn check_stored(lines: &str) {
    let bytes = |line: &str| {
        let digits = line.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    };
    let entry = |(offset, line)| Record {
        offset,
        key: None,
        headers: Vec::new(),
        timestamp_ns: 0,
        value: bytes(line),
    };
    let journal: Vec<Record> = (0..).zip(lines.lines()).map(entry).collect();
    let dispatches = |record: &Record| {
        let entry = decode_journal_entry(&record.value).unwrap();
        entry.decisions.iter().filter(|decision| matches!(decision, Decision::Dispatch(_))).count()
    };
    assert!(journal.iter().map(dispatches).sum::<usize>() > 3, "there is something to decide");
    let (count, recording) = (journal.len(), empty());
    let log = Tampered::new(&recording.log, "journal", 0, journal.clone());
    let report = verified(&log, &journal_only()).unwrap();
    assert_eq!((report.entries as usize, report.divergence), (count, None));
    // Stored states are read, too: the decisions after the last checkpoint follow from its state.
    let is_first_part = |input: &Input| matches!(input, Input::Checkpoint(part) if part.part == 0);
    let Some(&last) = positions(&journal, is_first_part).last() else { return };
    let log = Tampered::trimmed(&recording.log, "journal", 0, journal[last..].to_vec());
    let report = verified(&log, &journal_only()).unwrap();
    assert!(report.divergence.is_none() && report.entries as usize == count - last, "{report}");
}

/// The journal has two process lives with two configurations, a lost lane, operators' commands, and checkpoints in the
/// middle of each life. All software that can read the version must make the decisions that were made when it was new.
#[test]
fn a_journal_of_the_first_version_that_was_released_is_verified() {
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        let recording = record(Plan {
            lateness_ms: &[500, 100],
            checkpoint: Some(4),
            loss: Some(6),
            commands: 6,
            ..Plan::small(27)
        });
        let digits = |record: &Record| {
            record.value.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n"
        };
        let lines: String = records(&recording.log, "journal", 0).iter().map(digits).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/journal_11.txt");
        if !std::fs::exists(path).unwrap() {
            std::fs::write(path, lines).unwrap();
        }
    }
    check_stored(include_str!("../fixtures/journal_11.txt"));
}

fn checkpointed() -> (Recording, Vec<Record>, Vec<usize>) {
    let recording = record(Plan { lives: 1, checkpoint: Some(4), ..Plan::small(26) });
    let journal = records(&recording.log, "journal", 0);
    let parts = positions(&journal, |input| matches!(input, Input::Checkpoint(_)));
    (recording, journal, parts)
}

#[test]
fn a_journal_is_verified_from_the_first_checkpoint_that_is_left() {
    let (recording, journal, parts) = checkpointed();
    for first in [1, parts[0] - 1, parts[0]] {
        let log = Tampered::trimmed(&recording.log, "journal", 0, journal[first..].to_vec());
        for options in [options(), journal_only()] {
            let report = verified(&log, &options).unwrap();
            assert!(report.is_identical(), "from {first}: {report}");
            assert_eq!((report.entries as usize, report.processes), (journal.len() - parts[0], 1));
            let note =
                format!("were compared from sequence {} on, where a process started or wrote", parts[0]);
            assert!(report.to_string().contains(&note), "{report}");
        }
    }
    // The remaining parts of a checkpoint are not enough.
    let log = Tampered::trimmed(&recording.log, "journal", 0, journal[parts[1]..].to_vec());
    let error = verified(&log, &options()).unwrap_err();
    assert!(matches!(error, ReplayError::JournalTrimmed { .. }), "{error}");
}

#[test]
fn a_state_that_is_another_one_is_found_from_the_beginning_and_from_itself() {
    let (recording, journal, parts) = checkpointed();
    let mut found_from_itself = 0;
    // The first part has the start of the process, and nothing of the state.
    for (part, &at) in parts.iter().enumerate().skip(1) {
        let change = |entry: &mut JournalEntry| match &mut entry.input {
            Input::Checkpoint(part) => *part.state.0.last_mut().unwrap() ^= 1,
            other => panic!("{other:?}"),
        };
        let mut forged = journal.clone();
        forge(&mut forged, at, change);
        let log = Tampered::new(&recording.log, "journal", 0, forged.clone());
        let Some(Divergence::Journal(divergence)) = verified(&log, &options()).unwrap().divergence else {
            panic!("part {part} was found identical");
        };
        assert_eq!((divergence.offset, fields(&divergence)[0]), (at as i64, "input.Checkpoint.state"));
        let log = Tampered::trimmed(&recording.log, "journal", 0, forged[parts[0]..].to_vec());
        let report = verified(&log, &options());
        found_from_itself += usize::from(!report.is_ok_and(|report| report.is_identical()));
    }
    // A state whose version this software knows is compared; a state of an unknown version only its own software can
    // compare.
    let Input::Checkpoint(state) = decode_journal_entry(&journal[parts[1]].value).unwrap().input else {
        panic!("it is a checkpoint")
    };
    let other_known = if state.state.0[0] == 4 { 5 } else { 4 };
    for (version, is_identical) in [(200, true), (2, true), (other_known, false)] {
        let change = |entry: &mut JournalEntry| match &mut entry.input {
            Input::Checkpoint(part) => part.state.0[0] = version,
            other => panic!("{other:?}"),
        };
        let mut forged = journal.clone();
        forge(&mut forged, parts[1], change);
        let log = Tampered::new(&recording.log, "journal", 0, forged);
        assert_eq!(verified(&log, &options()).unwrap().is_identical(), is_identical, "version {version}");
    }
    // The byte may belong to a cached sum, and then change nothing that follows.
    assert!(found_from_itself > 0);
}
