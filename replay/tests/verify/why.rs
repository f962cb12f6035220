//! Why decisions were made: found from any start or checkpoint before them.

use warptape_replay::{ReplayError, WhyOptions, why};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Decision, Input};

use crate::recording::{Plan, record};
use crate::tampered::Tampered;
use crate::{positions, records};

fn of(sequence: i64) -> WhyOptions {
    WhyOptions { journal: "journal".to_owned(), partition: 0, sequence }
}

#[test]
fn every_decision_of_a_recorded_run_is_explained() {
    let recording = record(Plan { checkpoint: Some(4), ..Plan::small(31) });
    let journal = records(&recording.log, "journal", 0);
    let (mut explained, mut placed) = (0, 0);
    for record in &journal {
        let entry = decode_journal_entry(&record.value).unwrap();
        let found = why(&recording.log, &of(entry.sequence)).unwrap();
        assert_eq!((found.offset, &found.entry), (record.offset, &entry));
        let decisions: Vec<_> = found.explanations.iter().map(|one| one.decision.clone()).collect();
        assert_eq!(decisions, entry.decisions);
        explained += found.explanations.iter().filter(|one| !one.choices.is_empty()).count();
        placed += decisions.iter().filter(|one| matches!(one, Decision::Place(_))).count();
    }
    assert!(placed > 5 && explained > placed, "{explained} explanations, {placed} of placements");
}

#[test]
fn a_checkpoint_is_enough_and_without_one_nothing_can_be_said() {
    let recording = record(Plan { lives: 1, checkpoint: Some(4), ..Plan::small(32) });
    let journal = records(&recording.log, "journal", 0);
    let parts = positions(&journal, |input| matches!(input, Input::Checkpoint(_)));
    let last = journal.len() as i64 - 1;
    let log = Tampered::trimmed(&recording.log, "journal", 0, journal[parts[0]..].to_vec());
    let found = why(&log, &of(last)).unwrap();
    assert_eq!(found.explanations.len(), found.entry.decisions.len());

    let log = Tampered::trimmed(&recording.log, "journal", 0, journal[parts[1]..].to_vec());
    assert!(matches!(why(&log, &of(last)), Err(ReplayError::JournalTrimmed { .. })));
}

#[test]
fn what_is_not_there_is_named() {
    let recording = record(Plan { lives: 1, ..Plan::small(33) });
    let error = why(&recording.log, &of(1_000_000)).unwrap_err();
    assert!(error.to_string().contains("no entry with sequence 1000000"), "{error}");
    let error = why(&recording.log, &WhyOptions { partition: 7, ..of(0) }).unwrap_err();
    assert!(error.to_string().contains("a process with the ordinal 7"), "{error}");
    let error = why(&recording.log, &WhyOptions { journal: "x".to_owned(), ..of(0) }).unwrap_err();
    assert!(matches!(error, ReplayError::NoTopic { .. }), "{error}");
}
