//! Verifies a run as it grows.

use warptape_eventlog::{EventLog, Record};
use warptape_replay::{Divergence, Followed, Follower, OutputProblem, VerifyOptions};
use warptape_schemas::journal::Input;
use warptape_schemas::{decode_journal_entry, decode_signal, encode_signal};

use crate::recording::{PARTITIONS, Plan, Recording, empty, feed, options, record, records, run};
use crate::tampered::Tampered;
use crate::{journal_only, verified};

/// A plan with everything at which a verification may begin: lives with two configurations, checkpoints and snapshots.
const LONG: Plan = Plan {
    seed: 31,
    records: 20,
    lives: 3,
    lateness_ms: &[500, 500, 100],
    idle: None,
    checkpoint: Some(9),
    outcomes: true,
    snapshot: Some(8),
    placement_seed: 7,
    loss: None,
    commands: 0,
    keeps_snapshots: false,
    late_outcomes: false,
    pauses: false,
};

/// Follows until everything is verified, or a difference is found.
#[track_caller]
fn followed(log: &dyn EventLog, options: VerifyOptions, from_beginning: bool) -> Followed {
    let mut follower = Follower::new(log, options, from_beginning);
    finish(log, &mut follower);
    follower.followed().clone()
}

#[track_caller]
fn finish(log: &dyn EventLog, follower: &mut Follower<'_>) {
    let end =
        log.topics().unwrap().iter().find(|topic| topic.spec.name == "journal").unwrap().offsets[0].next;
    for _ in 0..10 {
        follower.round().unwrap();
        let followed = follower.followed();
        if followed.report.divergence.is_some() || followed.places.get(&0) == Some(&end) {
            return;
        }
    }
    panic!("{:?} of {end} in ten rounds", follower.followed().places);
}

/// Returns the number of records in all partitions of a topic.
fn count(recording: &Recording, topic: &str) -> u64 {
    (0..PARTITIONS).map(|partition| records(&recording.log, topic, partition).len() as u64).sum()
}

#[test]
fn what_a_run_commits_is_verified_as_it_does() {
    let recording = empty();
    feed(&recording.log, LONG);
    let mut follower = Follower::new(&recording.log, options(), true);
    let mut rounds_with_news = 0;
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&recording.log, LONG));
        while !running.is_finished() {
            let before = follower.followed().report.entries;
            follower.round().unwrap();
            rounds_with_news += u64::from(follower.followed().report.entries > before);
            assert_eq!(follower.followed().report.divergence, None);
        }
    });
    finish(&recording.log, &mut follower);
    println!("{rounds_with_news} rounds with news");
    let report = &follower.followed().report;
    let whole = verified(&recording.log, &options()).unwrap();
    assert_eq!(report.divergence, None, "{report}");
    assert_eq!(
        (report.entries, report.decisions, report.processes),
        (whole.entries, whole.decisions, whole.processes)
    );
    let (outputs, expected) = (report.outputs.unwrap(), whole.outputs.unwrap());
    assert_eq!(outputs.tick_records, expected.tick_records);
    assert_eq!(
        (outputs.signals, outputs.late, outputs.dead_letters),
        (expected.signals, expected.late, expected.dead_letters)
    );
    assert!(outputs.signals > 100 && outputs.late > 0 && outputs.dead_letters > 0);
}

#[test]
fn a_verifier_begins_at_the_last_checkpoint_with_the_newest_snapshots() {
    let recording = record(LONG);
    let report = followed(&recording.log, options(), false).report;
    let journal = records(&recording.log, "journal", 0);
    let is_checkpoint = |record: &Record| matches!(decode_journal_entry(&record.value).unwrap().input, Input::Checkpoint(part) if part.part == 0);
    let begin = journal.iter().rposition(is_checkpoint).unwrap();
    assert_eq!(report.entries, (journal.len() - begin) as u64, "{report}");
    // Only the records of the last life, from the tenth on, are verified.
    let (outputs, records) = (report.outputs.unwrap(), 11 * PARTITIONS as u64);
    assert_eq!((report.divergence, outputs.tick_records), (None, records));
    assert!(outputs.signals > 10 && outputs.signals < count(&recording, "signals") / 2);
    let alone = followed(&recording.log, journal_only(), false).report;
    assert_eq!((alone.entries, alone.outputs, alone.divergence), (report.entries, None, None));
}

#[test]
fn a_signal_that_is_not_what_it_should_be_is_named_with_its_entry() {
    let recording = record(LONG);
    for (partition, from_end, from_beginning) in [(0, 3, false), (1, 1, false), (1, 400, true)] {
        let mut signals = records(&recording.log, "signals", partition);
        let index = signals.len() - from_end.min(signals.len());
        let mut signal = decode_signal(&signals[index].value).unwrap().into_owned();
        let source_offset = signal.source_offset;
        signal.value += 1.0;
        signals[index].value.clear();
        encode_signal(&signal, &mut signals[index].value);
        let tampered = Tampered::new(&recording.log, "signals", partition, signals);
        let Followed { report, sequence, .. } = followed(&tampered, options(), from_beginning);
        let Some(Divergence::Output(found)) = report.divergence else { panic!("{report}") };
        assert!(matches!(found.problem, OutputProblem::Changed { .. }), "{found}");
        assert_eq!(
            (found.topic.as_str(), found.partition, found.offset),
            ("signals", partition, index as i64)
        );
        let sealed = |record: &Record| {
            let entry = decode_journal_entry(&record.value).unwrap();
            let Input::Sealed(sealed) = &entry.input else { return None };
            let has = |of: &warptape_schemas::journal::SealedPartition| {
                of.partition == partition && (of.first_offset..of.next_offset).contains(&source_offset)
            };
            sealed.partitions.iter().any(has).then_some(entry.sequence)
        };
        let expected = records(&recording.log, "journal", 0).iter().find_map(sealed);
        assert_eq!(sequence, expected, "{found}");
    }
}

#[test]
fn records_that_are_missing_or_too_many_are_found() {
    let recording = record(LONG);
    let signals = records(&recording.log, "signals", 0);
    let found = |changed: Vec<Record>| {
        let tampered = Tampered::new(&recording.log, "signals", 0, changed);
        let report = followed(&tampered, options(), false).report;
        let Some(Divergence::Output(found)) = report.divergence else { panic!("{report}") };
        found.problem
    };
    let missing = found(signals[..signals.len() - 2].to_vec());
    assert!(matches!(missing, OutputProblem::Missing { count: 2, .. }), "{missing:?}");
    let last = signals.last().unwrap();
    let surplus = Record { offset: last.offset + 1, ..last.clone() };
    let surplus = found([signals.as_slice(), &[surplus]].concat());
    assert!(matches!(surplus, OutputProblem::Surplus { count: 1, .. }), "{surplus:?}");
}

#[test]
fn a_journal_or_ticks_that_were_changed_are_found() {
    let recording = record(LONG);
    let mut journal = records(&recording.log, "journal", 0);
    let index = journal.len() - 4;
    *journal[index].value.last_mut().unwrap() ^= 1;
    let sequence = journal[index].offset;
    let Followed { report, sequence: found, .. } =
        followed(&Tampered::new(&recording.log, "journal", 0, journal), options(), false);
    assert!(matches!(report.divergence, Some(Divergence::Journal(_))), "{report}");
    assert_eq!(found, Some(sequence));

    let mut ticks = records(&recording.log, "ticks", 1);
    let last = ticks.len() - 2;
    let middle = ticks[last].value.len() / 2;
    ticks[last].value[middle] ^= 1;
    let report = followed(&Tampered::new(&recording.log, "ticks", 1, ticks), options(), false).report;
    let Some(Divergence::Ticks(found)) = report.divergence else { panic!("{report}") };
    assert_eq!((found.partition, found.first_offset), (1, last as i64));
}

#[test]
fn a_log_without_a_journal_is_waited_for() {
    let recording = empty();
    let mut follower = Follower::new(&recording.log, options(), false);
    assert!(follower.round().unwrap());
    feed(&recording.log, Plan::small(3));
    run(&recording.log, Plan::small(3));
    finish(&recording.log, &mut follower);
    let report = &follower.followed().report;
    assert_eq!(
        (report.divergence.as_ref(), report.outputs.unwrap().signals),
        (None, count(&recording, "signals"))
    );
}

#[test]
fn a_log_that_does_not_answer_at_times_loses_nothing_of_a_verification() {
    let recording = record(LONG);
    let mut journal = records(&recording.log, "journal", 0);
    let end = journal.last().unwrap().offset + 1;
    // The journal ends with a transaction, so only the group's offset shows whether it was committed.
    let seals = |record: &Record| matches!(decode_journal_entry(&record.value).unwrap().input, Input::Sealed(sealed) if !sealed.partitions.is_empty());
    journal.truncate(journal.iter().rposition(seals).unwrap() + 1);
    let failing = Tampered::new(&recording.log, "journal", 0, journal).failing();
    let mut follower = Follower::new(&failing, options(), true);
    let mut failures = 0;
    for _ in 0..20 {
        failures += u64::from(follower.round().is_err());
    }
    let Followed { report, places, .. } = follower.followed();
    assert_eq!((report.divergence.as_ref(), places.get(&0)), (None, Some(&end)));
    assert!(failures > 0 && report.outputs.unwrap().signals > 100, "{failures} rounds failed: {report}");
}

#[test]
fn a_journal_of_which_much_waits_is_read_on_once_that_is_compared() {
    let recording = record(LONG);
    let whole = followed(&recording.log, options(), true).report;
    let mut follower = Follower::new(&recording.log, options(), true).with_waiting_max(3);
    for _ in 0..1_000 {
        follower.round().unwrap();
    }
    let report = &follower.followed().report;
    assert_eq!((report.divergence.as_ref(), report.entries), (None, whole.entries));
    assert_eq!(report.outputs, whole.outputs);
}

#[test]
fn transactions_of_one_process_are_compared_alone() {
    let recording = record(LONG);
    let whole = followed(&recording.log, options(), true).report;
    let mut signals = records(&recording.log, "signals", 0);
    signals.pop();
    let tampered = Tampered::new(&recording.log, "signals", 0, signals);
    let of = |log: &dyn EventLog, journal: i32| {
        let mut follower = Follower::new(log, options(), true).comparing_only(journal);
        finish(log, &mut follower);
        follower.followed().report.clone()
    };
    assert_eq!(of(&recording.log, 0).outputs, whole.outputs);
    assert!(of(&tampered, 0).divergence.is_some());
    // No transaction is of the other process; entries are stepped all the same.
    let other = of(&tampered, 1);
    assert_eq!((other.divergence, other.entries), (None, whole.entries));
    assert_eq!(other.outputs.map(|outputs| (outputs.tick_records, outputs.signals)), Some((0, 0)));
}

#[test]
fn rounds_that_compare_one_transaction_find_the_same() {
    let recording = record(LONG);
    let whole = followed(&recording.log, options(), true).report;
    let mut follower = Follower::new(&recording.log, options(), true).with_chain_max(1);
    let (mut rounds, mut ends) = (0, 0);
    while ends < 3 {
        ends = if follower.round().unwrap() { ends + 1 } else { 0 };
        rounds += 1;
    }
    let report = &follower.followed().report;
    assert_eq!((report.divergence.as_ref(), report.entries), (None, whole.entries));
    assert_eq!(report.outputs, whole.outputs);
    assert!(rounds > 5, "{rounds} rounds");
}
