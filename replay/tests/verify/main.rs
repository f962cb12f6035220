//! Verification of recorded runs: identical ones are, and whatever is changed in one is found and named.

mod recording;
mod tampered;

use std::time::Duration;

use warptape_eventlog::{EventLog, Fetched, Record, SqliteLog, TopicPartition};
use warptape_replay::{
    Divergence, JournalDivergence, OutputDivergence, OutputProblem, Phase, Progress, ReplayError, Report,
    VerifyOptions, verify,
};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Decision, Input, JournalEntry};
use warptape_schemas::{JournalWriter, decode_signal, encode_journal_entry, encode_signal};

use recording::{PARTITIONS, Plan, Random, Recording, empty, feed, options, record, run};
use tampered::Tampered;

/// All records of a partition.
pub fn records(log: &dyn EventLog, topic: &str, partition: i32) -> Vec<Record> {
    let source = TopicPartition { topic: topic.to_owned(), partition };
    let mut reader = log.reader(std::slice::from_ref(&source)).unwrap();
    let mut all = Vec::new();
    while let Fetched::Records { records, .. } = reader.poll(Duration::ZERO, usize::MAX, usize::MAX).unwrap()
    {
        all.extend(records);
    }
    all
}

fn verified(log: &dyn EventLog, options: &VerifyOptions) -> Result<Report, ReplayError> {
    verify(log, options, &mut |_| {})
}

fn journal_only() -> VerifyOptions {
    VerifyOptions { outputs: None, ..options() }
}

/// The divergence of a journal that is changed so.
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

/// The divergence of an output partition that is changed so.
fn diverged_output(
    recording: &Recording,
    topic: &str,
    partition: i32,
    change: impl FnOnce(&mut Vec<Record>),
) -> OutputDivergence {
    let mut outputs = records(&recording.log, topic, partition);
    change(&mut outputs);
    let report = verified(&Tampered::new(&recording.log, topic, partition, outputs), &options()).unwrap();
    match report.divergence {
        Some(Divergence::Output(divergence)) => {
            assert_eq!((divergence.topic.as_str(), divergence.partition), (topic, partition));
            divergence
        }
        other => panic!("a divergence of {topic} expected, found {other:?}"),
    }
}

fn fields(divergence: &JournalDivergence) -> Vec<&str> {
    divergence.differences.iter().map(|difference| difference.field.as_str()).collect()
}

/// Changes an entry, and gives it and all after it new hashes: what a forger would do, or another version of the
/// scheduler.
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

/// The first entry of which `find` makes something.
fn find<T>(log: &SqliteLog, find: impl Fn(&JournalEntry) -> Option<T>) -> (usize, T) {
    let journal = records(log, "journal", 0);
    let entries = journal.iter().map(|record| decode_journal_entry(&record.value).unwrap());
    entries
        .enumerate()
        .find_map(|(index, entry)| Some((index, find(&entry)?)))
        .expect("the run has such an entry")
}

#[test]
fn an_unchanged_run_is_identical() {
    for seed in 0..3 {
        println!("seed {seed}");
        let recording = record(Plan::small(seed));
        let mut seen = Vec::new();
        let report = verify(&recording.log, &options(), &mut |progress| seen.push(progress)).unwrap();
        let outputs = report.outputs.unwrap();
        assert_eq!(report.divergence, None, "{report}");
        let journal = records(&recording.log, "journal", 0);
        let count = |topic: &str| {
            let records =
                (0..PARTITIONS).map(|partition| records(&recording.log, topic, partition).len() as u64);
            records.sum::<u64>()
        };
        assert_eq!((report.entries, report.processes), (journal.len() as u64, 2));
        assert_eq!(outputs.tick_records, count("ticks"));
        assert_eq!(
            (outputs.signals, outputs.late, outputs.dead_letters),
            (count("signals"), count("late"), count("dead-letter"))
        );
        assert!(
            outputs.signals > 100 && outputs.late > 0 && outputs.dead_letters > 0 && report.decisions > 20
        );
        assert_eq!(
            report.to_string(),
            format!("{} decisions, {} signals: identical", report.decisions, outputs.signals)
        );
        let last = |phase| seen.iter().rfind(|progress| progress.phase == phase).copied();
        let done = |phase, total| Some(Progress { phase, done: total, total });
        assert_eq!(last(Phase::Journal), done(Phase::Journal, report.entries));
        assert_eq!(last(Phase::Outputs), done(Phase::Outputs, outputs.tick_records));
        let alone = verified(&recording.log, &journal_only()).unwrap();
        assert_eq!(alone.to_string(), format!("{} decisions: identical", report.decisions));
    }
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
    assert!(text.starts_with(&format!("journal offset {at}, sequence {at}: different")), "{text}");
    assert!(
        text.contains("PartitionAssigned") && text.contains("the entry was written so by warptape test;"),
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
    assert!(divergence.to_string().contains("its hash does not fit: the entry was changed"));
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
    check(completed, &|entry| entry.state_hash = "0000000000000001".to_owned(), at, "state_hash");
    let unknown = |entry: &mut JournalEntry| {
        let Input::Completed(completed) = &mut entry.input else { unreachable!("just found") };
        completed.batch += 77;
    };
    check(completed, &unknown, at, "input");
    check(completed, &|entry| entry.at_ns = 1, at, "input");
    // A time that changes no decision changes the state that the next step finds.
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
    let divergence = diverged_journal(&recording, |journal| journal.truncate(length - 3));
    assert_eq!(divergence.sequence, length as i64 - 3);
    assert_eq!(divergence.differences[0].field, "entries");
    assert_eq!(divergence.differences[0].expected, Some(length.into()));
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

/// The strongest statement: no byte of a journal can change without being noticed, in its own entry.
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

#[test]
fn a_changed_signal_is_named_by_symbol_and_field() {
    let recording = record(Plan::small(6));
    let divergence = diverged_output(&recording, "signals", 1, |signals| {
        let mut signal = decode_signal(&signals[10].value).unwrap().into_owned();
        signal.value += 1.0;
        signals[10].value.clear();
        encode_signal(&signal, &mut signals[10].value);
    });
    let text = divergence.to_string();
    let OutputProblem::Changed { differences } = &divergence.problem else { panic!("{text}") };
    assert_eq!((divergence.offset, differences.len(), differences[0].field.as_str()), (10, 1, "value"));
    let symbol = divergence.symbol.clone().unwrap();
    assert!(symbol.starts_with("TEST:P1S"), "{symbol}");
    assert!(
        text.starts_with(&format!("signals partition 1 offset 10, symbol {symbol}: different\n  value\n")),
        "{text}"
    );
}

#[test]
fn every_flipped_byte_of_a_signal_is_found() {
    let recording = record(Plan { records: 3, ..Plan::small(7) });
    let signals = records(&recording.log, "signals", 0);
    let index = signals.len() / 2;
    let mut random = Random(7);
    for position in 0..signals[index].value.len() {
        let flip = random.below(255) as u8 + 1;
        let divergence =
            diverged_output(&recording, "signals", 0, |signals| signals[index].value[position] ^= flip);
        assert_eq!(divergence.offset, index as i64, "byte {position}, {flip:#04x}: {divergence}");
        let named =
            matches!(divergence.problem, OutputProblem::Changed { .. } | OutputProblem::Unreadable { .. });
        assert!(named, "byte {position}, {flip:#04x}: {divergence}");
    }
}

#[test]
fn a_changed_key_is_a_difference() {
    let recording = record(Plan::small(6));
    let divergence = diverged_output(&recording, "signals", 0, |signals| signals[3].key = None);
    let OutputProblem::Changed { differences } = &divergence.problem else { panic!("{divergence}") };
    assert_eq!((divergence.offset, differences[0].field.as_str()), (3, "key"));
}

#[test]
fn missing_and_surplus_records_are_counted() {
    let recording = record(Plan::small(8));
    let missing = |divergence: &OutputDivergence| match divergence.problem {
        OutputProblem::Missing { count, .. } => Some((divergence.offset, count)),
        _ => None,
    };
    let surplus = |divergence: &OutputDivergence| match divergence.problem {
        OutputProblem::Surplus { count, .. } => Some((divergence.offset, count)),
        _ => None,
    };
    let renumber = |signals: &mut Vec<Record>| {
        signals.iter_mut().zip(0..).for_each(|(signal, offset)| signal.offset = offset);
    };
    let length = records(&recording.log, "signals", 0).len();
    let found = diverged_output(&recording, "signals", 0, |signals| drop(signals.drain(20..23)));
    assert_eq!(missing(&found), Some((23, 3)), "{found}");
    let found = diverged_output(&recording, "signals", 0, |signals| signals.truncate(length - 7));
    assert_eq!(missing(&found), Some((length as i64, 7)), "{found}");
    let found = diverged_output(&recording, "signals", 0, Vec::clear);
    assert_eq!(missing(&found), Some((length as i64, length as u64)), "{found}");
    let found = diverged_output(&recording, "signals", 0, |signals| {
        signals.insert(20, signals[19].clone());
        signals.insert(20, signals[19].clone());
        renumber(signals);
    });
    assert_eq!(surplus(&found), Some((20, 2)), "{found}");
    let found = diverged_output(&recording, "signals", 0, |signals| {
        signals.push(Record { value: b"junk".to_vec(), ..signals[0].clone() });
        renumber(signals);
    });
    assert_eq!(surplus(&found), Some((length as i64, 1)), "{found}");
    assert!(found.to_string().contains("1 too many") && found.to_string().contains("4 bytes"), "{found}");
    // Both are there, in another order: neither missing nor surplus.
    let found = diverged_output(&recording, "signals", 0, |signals| {
        signals.swap(20, 21);
        renumber(signals);
    });
    assert!(matches!(found.problem, OutputProblem::Changed { .. }) && found.offset == 20, "{found}");
}

#[test]
fn late_ticks_and_dead_letters_are_compared() {
    let recording = record(Plan::small(9));
    for topic in ["late", "dead-letter"] {
        let last = records(&recording.log, topic, 0).len() - 1;
        let divergence = diverged_output(&recording, topic, 0, |records| {
            let end = records[last].value.len() - 1;
            records[last].value[end] ^= 2;
        });
        assert_eq!(divergence.offset, last as i64, "{divergence}");
        assert_eq!(divergence.symbol.is_some(), topic == "late", "{divergence}");
        let divergence = diverged_output(&recording, topic, 0, |records| drop(records.pop()));
        assert!(matches!(divergence.problem, OutputProblem::Missing { count: 1, .. }), "{divergence}");
    }
}

#[test]
fn changed_ticks_show_in_the_outputs() {
    let recording = record(Plan::small(10));
    let mut ticks = records(&recording.log, "ticks", 0);
    ticks.remove(1);
    let report = verified(&Tampered::new(&recording.log, "ticks", 0, ticks), &options()).unwrap();
    assert!(matches!(report.divergence, Some(Divergence::Output(_))), "{report}");
}

/// However the looks at the log fall between its transactions, a run that goes on is identical so far.
#[test]
fn a_run_may_go_on_meanwhile() {
    let (recording, plan) = (empty(), Plan { records: 60, ..Plan::small(13) });
    feed(&recording.log, plan);
    let (mut entries, mut looks) = (0, 0);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&recording.log, plan));
        loop {
            let is_last = running.is_finished();
            match verified(&recording.log, &options()) {
                Ok(report) => {
                    assert!(report.is_identical(), "{report}");
                    assert!(report.entries >= entries, "a journal only grows");
                    entries = report.entries;
                    looks += 1;
                }
                Err(ReplayError::EmptyJournal { .. }) if !is_last => {}
                Err(error) => panic!("{error}"),
            }
            if is_last {
                break;
            }
        }
    });
    println!("{looks} looks, {entries} entries");
    assert_eq!(entries, records(&recording.log, "journal", 0).len() as u64);
}

#[test]
fn logs_that_cannot_be_verified_say_why() {
    let check = |log: &dyn EventLog, options: &VerifyOptions, expected: &str| {
        let message = verified(log, options).unwrap_err().to_string();
        assert!(message.contains(expected), "{expected:?} expected in {message:?}");
    };
    check(&empty().log, &options(), "the journal \"journal\" has no entries");
    let recording = record(Plan { records: 2, ..Plan::small(11) });
    let other = VerifyOptions { journal: "other".to_owned(), outputs: None };
    check(&recording.log, &other, "no topic \"other\"; the log has dead-letter, journal,");
    let with = |change: fn(&mut warptape_replay::OutputOptions)| {
        let mut options = options();
        change(options.outputs.as_mut().unwrap());
        options
    };
    check(
        &recording.log,
        &with(|outputs| outputs.group = "x".to_owned()),
        "group \"x\" has committed nothing",
    );
    check(&recording.log, &with(|outputs| outputs.late = "x".to_owned()), "no topic \"x\"");
    check(
        &recording.log,
        &with(|outputs| outputs.late = "journal".to_owned()),
        "has 1 partitions and the ticks have 2",
    );
    let configs = record(Plan { records: 3, lateness_ms: &[500, 400], ..Plan::small(12) });
    check(&configs.log, &options(), "(allowed_lateness_ns: 400000000)");
    assert!(verified(&configs.log, &journal_only()).unwrap().is_identical());
}
