//! Compares snapshots with the states of a rerun, and answers to commands with the journal: unchanged, wrong, and in
//! logs that have lost their beginning.

use warptape_eventlog::{EventLog, Record};
use warptape_replay::{Divergence, OutputDivergence, OutputProblem, Report};
use warptape_schemas::control::ControlResult;
use warptape_schemas::journal::Input;
use warptape_schemas::{decode_control_result, decode_snapshot, encode_control_result, encode_snapshot};

use crate::recording::{Plan, Recording, options, record};
use crate::tampered::Tampered;
use crate::{positions, records, verified};

/// Number of records in a snapshot: one for the intake, and one for each group.
const PARTS: usize = 4;

fn rich(seed: u64) -> Recording {
    let plan = Plan { records: 8, outcomes: true, snapshot: Some(3), commands: 4, ..Plan::small(seed) };
    record(Plan { keeps_snapshots: true, ..plan })
}

#[track_caller]
fn identical(log: &dyn EventLog) -> Report {
    let report = verified(log, &options()).unwrap();
    assert!(report.is_identical(), "{report}");
    report
}

#[track_caller]
fn differing(log: &dyn EventLog) -> OutputDivergence {
    let report = verified(log, &options()).unwrap();
    match report.divergence {
        Some(Divergence::Output(found)) => found,
        other => panic!("an output that differs expected, found {other:?}"),
    }
}

fn counts(report: &Report) -> (u64, u64) {
    let outputs = report.outputs.unwrap();
    (outputs.snapshots, outputs.control_results)
}

/// Changes a state, and makes a valid record of it.
fn with_other_state(record: &mut Record) {
    let mut part = decode_snapshot(&record.value).unwrap();
    *part.state.last_mut().unwrap() ^= 1;
    record.value.clear();
    encode_snapshot(&part, &mut record.value);
}

fn with_other_detail(record: &mut Record) {
    let result = decode_control_result(&record.value).unwrap();
    let other = ControlResult { detail: format!("{} or so", result.detail), ..result };
    record.value.clear();
    encode_control_result(&other, &mut record.value);
}

#[test]
fn snapshots_and_answers_are_compared() {
    let recording = rich(80);
    // Two partitions have two lives each, with a snapshot and four commands in each life.
    assert_eq!(counts(&identical(&recording.log)), ((4 * PARTS) as u64, 8));
    // If older snapshots are compacted away, the last ones remain.
    let plan = Plan { records: 8, outcomes: true, snapshot: Some(3), lives: 3, ..Plan::small(81) };
    assert_eq!(counts(&identical(&record(plan).log)), ((2 * PARTS) as u64, 0));
    // The same holds for several configurations, and beside a configuration that processed nothing.
    let plan = Plan { lateness_ms: &[500, 100, 500], idle: Some((1, 700)), keeps_snapshots: true, ..plan };
    assert_eq!(counts(&identical(&record(plan).log)).0, (6 * PARTS) as u64);
}

#[test]
fn a_state_that_is_not_that_of_the_ticks_is_named() {
    let recording = rich(82);
    for at in [0, PARTS - 1, PARTS, 2 * PARTS - 1] {
        let mut snapshots = records(&recording.log, "snapshots", 1);
        with_other_state(&mut snapshots[at]);
        let found = differing(&Tampered::new(&recording.log, "snapshots", 1, snapshots));
        assert_eq!((found.topic.as_str(), found.partition, found.offset), ("snapshots", 1, at as i64));
        let OutputProblem::Changed { differences } = &found.problem else { panic!("{found}") };
        assert_eq!(differences.iter().map(|one| one.field.as_str()).collect::<Vec<_>>(), ["state"]);
    }
}

/// A command that left no trace in the journal is only checked by its answer.
#[test]
fn a_command_that_would_have_been_obeyed_is_no_refused_one() {
    let recording = record(Plan { records: 8, commands: 8, ..Plan::small(83) });
    let commands = records(&recording.log, "control", 0);
    let mut changed = commands.clone();
    changed[6].value = commands[8].value.clone();
    let found = differing(&Tampered::new(&recording.log, "control", 0, changed));
    assert_eq!((found.topic.as_str(), found.offset), ("control", 6));
    assert!(found.to_string().contains("one that is refused: it cannot be read"), "{found}");
    let mut gone = commands;
    gone.remove(6);
    let found = differing(&Tampered::new(&recording.log, "control", 0, gone));
    assert_eq!((found.topic.as_str(), found.offset), ("control", 6));
    assert!(matches!(found.problem, OutputProblem::Missing { .. }), "{found}");
}

/// Only snapshots after the beginning of the comparison of outputs are compared.
#[test]
fn snapshots_are_compared_where_the_first_ticks_were_removed() {
    let recording = rich(84);
    let ticks = records(&recording.log, "ticks", 0);
    let snapshots = records(&recording.log, "snapshots", 0);
    let with_other = |at: usize| {
        let mut snapshots = snapshots.clone();
        with_other_state(&mut snapshots[at]);
        Tampered::new(&recording.log, "snapshots", 0, snapshots)
    };
    // Snapshots are at offsets 4 and 12.
    for (first, from, compared) in [(2, 4, 2), (6, 12, 1)] {
        let later = ticks[first..].to_vec();
        let report = identical(&Tampered::trimmed(&recording.log, "ticks", 0, later.clone()));
        assert_eq!(counts(&report).0 as usize, (2 + compared) * PARTS, "{report}");
        let note = format!("ticks/0: outputs were compared from the snapshot at offset {from} on");
        assert!(report.notes.contains(&note), "{report}");
        // No comparison begins at this snapshot.
        let offset = if compared == 2 { PARTS + 1 } else { 1 };
        let other = with_other(offset);
        let trimmed = Tampered::trimmed(&other, "ticks", 0, later);
        if compared == 2 {
            let found = differing(&trimmed);
            assert_eq!((found.topic.as_str(), found.offset), ("snapshots", offset as i64));
        } else {
            assert_eq!(counts(&identical(&trimmed)), counts(&report));
        }
    }
}

/// Answers are compared from the first compared entry of the journal on.
#[test]
fn answers_are_compared_where_the_first_entries_were_removed() {
    let plan = Plan { records: 8, commands: 4, lives: 3, checkpoint: Some(2), ..Plan::small(85) };
    let recording = record(plan);
    let journal = records(&recording.log, "journal", 0);
    let starts = positions(&journal, |input| matches!(input, Input::Started(_)));
    let answers = records(&recording.log, "control.results", 0);
    // The journal begins at a start, or before the first checkpoint.
    for (first, passed) in [(starts[1], 4), (1, 2)] {
        let later = &journal[first..];
        let report = identical(&Tampered::trimmed(&recording.log, "journal", 0, later.to_vec()));
        assert_eq!(counts(&report).1, 12 - passed);
        let note = format!("control.results/0: {passed} answers were not compared, ");
        assert!(report.notes.iter().any(|said| said.starts_with(&note)), "{report}");
        assert!(report.to_string().contains("older entries were removed"), "{report}");
        for at in 0..answers.len() {
            let mut changed = answers.clone();
            with_other_detail(&mut changed[at]);
            let changed = Tampered::new(&recording.log, "control.results", 0, changed);
            let trimmed = Tampered::trimmed(&changed, "journal", 0, later.to_vec());
            if (at as u64) < passed {
                identical(&trimmed);
            } else if decode_control_result(&answers[at].value).unwrap().sequence.is_some() {
                assert_eq!(differing(&trimmed).offset, at as i64);
            }
        }
    }
}

#[test]
fn answers_are_compared_where_the_first_commands_or_answers_were_removed() {
    let recording = record(Plan { records: 8, commands: 8, ..Plan::small(86) });
    let commands = records(&recording.log, "control", 0);
    let answers = records(&recording.log, "control.results", 0);
    for first in 1..answers.len() {
        let without = Tampered::trimmed(&recording.log, "control.results", 0, answers[first..].to_vec());
        assert_eq!(counts(&identical(&without)).1 as usize, answers.len() - first);
        let without = Tampered::trimmed(&recording.log, "control", 0, commands[first..].to_vec());
        let report = identical(&without);
        // Without its command, an answer without a decision has no source.
        let is_gone = |answer: &&Record| decode_control_result(&answer.value).unwrap().sequence.is_none();
        let gone = answers[..first].iter().filter(is_gone).count();
        assert_eq!(counts(&report).1 as usize, answers.len() - gone, "{report}");
        assert_eq!(report.notes.is_empty(), gone == 0, "{report}");
    }
}
