//! Steps through recorded journals: an entry has the same state and decisions, however it is reached.

use warptape_eventlog::EventLog;
use warptape_replay::ReplayError;
use warptape_replay::debugger::{Found, Predicate, Stepper};
use warptape_replay::history::Bound;
use warptape_scheduler::Scheduler;
use warptape_schemas::encode_journal_entry;
use warptape_schemas::journal::{Decision, Input, JournalEntry};

use crate::recording::{Plan, Random, Recording, empty, record};
use crate::tampered::Tampered;
use crate::{positions, records};

/// Returns a run with several lives, checkpoints of several parts, and a lost lane in each life.
fn recorded(seed: u64) -> Recording {
    record(Plan {
        records: 60,
        lives: 3,
        checkpoint: Some(20),
        outcomes: true,
        loss: Some(7),
        ..Plan::small(seed)
    })
}

fn open(log: &dyn EventLog) -> Stepper<'_> {
    Stepper::open(log, "journal", 0).unwrap()
}

fn predicate(text: &str) -> Predicate {
    Predicate::parse(text, &|_| None).unwrap()
}

/// Returns the compared parts of a step: the entry, the state after it, and this software's decisions.
fn seen(stepper: &Stepper<'_>) -> (JournalEntry, u64, Vec<Decision>) {
    let step = stepper.step();
    (step.entry.clone(), step.state.state_hash(), step.decisions.to_vec())
}

/// Returns all steps from the first entry to the last.
fn forward(log: &dyn EventLog) -> Vec<(JournalEntry, u64, Vec<Decision>)> {
    let mut stepper = open(log);
    let mut all = vec![seen(&stepper)];
    while stepper.forward().unwrap() == Found::Here {
        assert_eq!(stepper.step().differences(), Vec::new());
        assert!(!stepper.step().differs());
        all.push(seen(&stepper));
    }
    all
}

#[test]
fn every_way_to_an_entry_leads_to_the_same_state() {
    let recording = recorded(61);
    let all = forward(&recording.log);
    assert_eq!(all.len(), records(&recording.log, "journal", 0).len());
    let count = |is: fn(&Input) -> bool| all.iter().filter(|(entry, ..)| is(&entry.input)).count();
    assert_eq!(count(|input| matches!(input, Input::Started(_))), 3);
    assert_eq!(count(|input| matches!(input, Input::LaneLost(_))), 3);
    assert!(count(|input| matches!(input, Input::Checkpoint(_))) > 6);
    assert!(all.len() > 1_000, "several marks: {} entries", all.len());
    // The state after an entry is the state before the next one, as in the journal.
    for pair in all.windows(2) {
        let starts = matches!(pair[1].0.input, Input::Started(_));
        let behind = if starts { 0 } else { pair[0].1 };
        assert_eq!(format!("{behind:016x}"), *pair[1].0.state_hash);
    }

    let mut stepper = open(&recording.log);
    assert_eq!(stepper.go_to(Bound::Sequence(i64::MAX), &mut |_| true).unwrap(), Found::Nothing);
    for expected in all.iter().rev() {
        assert_eq!(&seen(&stepper), expected, "going back");
        let is_first = expected.0.sequence == 0;
        let found = stepper.back().unwrap();
        assert_eq!(found, if is_first { Found::Nothing } else { Found::Here });
    }
    let mut random = Random(61);
    for _ in 0..300 {
        let index = random.below(all.len() as u64) as usize;
        let expected = &all[index];
        let bound = match random.below(3) {
            0 => Bound::Sequence(expected.0.sequence),
            1 => Bound::Offset(index as i64),
            _ => Bound::Time(expected.0.at_ns),
        };
        assert_eq!(stepper.go_to(bound, &mut |_| true).unwrap(), Found::Here);
        assert_eq!(&seen(&stepper), expected, "{bound:?}");
    }
}

/// Near a distant entry there is a checkpoint or a start, so nothing before it is stepped.
#[test]
fn a_long_way_begins_at_the_nearest_checkpoint() {
    let recording = recorded(62);
    let mut stepper = open(&recording.log);
    let last = stepper.range().next - 1;
    stepper.go_to(Bound::Offset(last), &mut |_| true).unwrap();
    assert!(stepper.stepped() < last as u64 / 2, "{} of {last} entries were stepped", stepper.stepped());
}

#[test]
fn explanations_are_of_the_state_before_the_entry() {
    let recording = recorded(63);
    let mut stepper = open(&recording.log);
    let mut places = 0;
    loop {
        let before = seen(&stepper);
        for (index, decision) in before.2.iter().enumerate() {
            let explained = stepper.explain(index).unwrap().expect("there is such a decision").explanation;
            assert_eq!(&explained.decision, decision);
            if matches!(decision, Decision::Place(_)) {
                places += 1;
                assert!(explained.choices.iter().any(|choice| choice.is_chosen));
            }
        }
        assert_eq!(stepper.explain(before.2.len()).unwrap(), None);
        assert_eq!(seen(&stepper), before, "explaining moves nothing");
        if stepper.forward().unwrap() == Found::Nothing {
            break;
        }
    }
    assert!(places > 12, "{places} placements");
}

#[test]
fn conditions_are_found_in_both_directions() {
    let recording = recorded(64);
    let all = forward(&recording.log);
    let check = |text: &str, is: &dyn Fn(&JournalEntry) -> bool| {
        let expected: Vec<i64> = all
            .iter()
            .map(|(entry, ..)| entry)
            .filter(|entry| is(entry))
            .map(|entry| entry.sequence)
            .collect();
        let predicate = predicate(text);
        let mut stepper = open(&recording.log);
        let mut found = Vec::new();
        found.extend(predicate.holds(&stepper.step()).then_some(0));
        while stepper.find_next(&predicate, &mut |_| true).unwrap() == Found::Here {
            found.push(stepper.step().entry.sequence);
        }
        assert_eq!(found, expected, "{text}");
        let mut back = Vec::new();
        stepper.go_to(Bound::Sequence(i64::MAX), &mut |_| true).unwrap();
        back.extend(predicate.holds(&stepper.step()).then_some(stepper.step().entry.sequence));
        while stepper.find_back(&predicate, &mut |_| true).unwrap() == Found::Here {
            back.push(stepper.step().entry.sequence);
        }
        back.reverse();
        assert_eq!(back, expected, "{text} backwards");
        expected.len()
    };
    let dispatches = |entry: &JournalEntry, lane: i32| {
        entry.decisions.iter().any(|one| matches!(one, Decision::Dispatch(batch) if batch.lane == lane))
    };
    // The lost lane gets groups again only in the next life.
    assert!(check("decision=dispatch && lane=cpu:1", &|entry| dispatches(entry, 1)) > 5);
    assert!(check("decision=dispatch && lane=cpu:0", &|entry| dispatches(entry, 0)) > 100);
    check("decision=Dispatch && lane=1 && reason=IDLE", &|entry| dispatches(entry, 1));
    assert_eq!(check("decision=Dispatch && lane=2", &|_| false), 0);
    let lost = |entry: &JournalEntry| matches!(entry.input, Input::LaneLost(_));
    assert_eq!(check("reason=\"it broke\" && !(decision=Fence)", &|_| false), 0);
    assert_eq!(check("input=LaneLost && reason=\"it broke\" && lane=cpu:1", &lost), 3);
    assert_eq!(check("ready=false", &lost), 3);
    assert_eq!(check("ready=false && lane=0", &|_| false), 0);
    check(
        "input=Completed && batch<=3",
        &|entry| matches!(&entry.input, Input::Completed(done) if done.batch <= 3),
    );
    let mut scheduler = Scheduler::new();
    let mut step = |entry: &JournalEntry| {
        scheduler.step(entry.at_ns, &entry.input, &mut Vec::new()).unwrap();
        scheduler.lane_loads().map(|lane| lane.in_flight_rows).sum::<i64>()
    };
    let in_flight: Vec<i64> = all.iter().map(|(entry, ..)| step(entry)).collect();
    let many = |entry: &JournalEntry| entry.sequence >= 100 && in_flight[entry.sequence as usize] > 7;
    assert!(check("in_flight>7 && sequence>=100", &many) > 30);
    check("input=Arrived && partition=1 && group=2", &|entry| match &entry.input {
        Input::Arrived(arrived) => arrived.partition == 1 && arrived.groups.iter().any(|one| one.group == 2),
        _ => false,
    });
    assert_eq!(check("differs=true || paused=true || breaker!=CLOSED || queue>1000000", &|_| false), 0);
}

#[test]
fn a_way_can_be_stopped() {
    let recording = recorded(65);
    let mut stepper = open(&recording.log);
    let never = predicate("lane=7");
    let mut calls = 0;
    let mut stop = |_| {
        calls += 1;
        false
    };
    assert_eq!(stepper.find_next(&never, &mut stop).unwrap(), Found::Stopped);
    assert!(calls == 1 && stepper.step().offset > 0);
    assert_eq!(stepper.find_next(&never, &mut |_| true).unwrap(), Found::Nothing);
}

#[test]
fn an_entry_that_was_changed_is_shown_as_different() {
    let recording = recorded(66);
    let all = forward(&recording.log);
    let changed = all.iter().position(|(entry, ..)| {
        entry.sequence > 300 && entry.decisions.iter().any(|one| matches!(one, Decision::Dispatch(_)))
    });
    let changed = changed.expect("a batch");
    let mut journal = records(&recording.log, "journal", 0);
    let mut entry = all[changed].0.clone();
    let batch = entry.decisions.iter_mut().find_map(|decision| match decision {
        Decision::Dispatch(batch) => Some(batch),
        _ => None,
    });
    batch.expect("a batch").rows += 1;
    journal[changed].value.clear();
    encode_journal_entry(&entry, &mut journal[changed].value);
    let log = Tampered::new(&recording.log, "journal", 0, journal);
    let mut stepper = open(&log);
    assert_eq!(stepper.find_next(&predicate("differs=true"), &mut |_| true).unwrap(), Found::Here);
    let fields: Vec<String> = stepper.step().differences().into_iter().map(|one| one.field).collect();
    assert_eq!(stepper.step().offset, changed as i64);
    assert!(fields.len() == 1 && fields[0].ends_with(".dispatch.rows"), "{fields:?}");
}

/// If older entries were removed, the journal begins at the first complete checkpoint.
#[test]
fn a_trimmed_journal_begins_at_its_first_checkpoint() {
    let recording = recorded(67);
    let all = forward(&recording.log);
    let journal = records(&recording.log, "journal", 0);
    let is_begin = |input: &Input| match input {
        Input::Checkpoint(checkpoint) => checkpoint.part == 0,
        input => matches!(input, Input::Started(_)),
    };
    let begins = positions(&journal, is_begin);
    let log = Tampered::trimmed(&recording.log, "journal", 0, journal[begins[0] + 1..].to_vec());
    let mut stepper = open(&log);
    assert_eq!(seen(&stepper), all[begins[1]]);
    assert_eq!(stepper.back().unwrap(), Found::Nothing);
    stepper.go_to(Bound::Sequence(0), &mut |_| true).unwrap();
    assert_eq!(seen(&stepper), all[begins[1]]);
    for expected in &all[begins[1] + 1..] {
        assert_eq!(stepper.forward().unwrap(), Found::Here);
        assert_eq!(&seen(&stepper), expected);
        assert!(!stepper.step().differs());
    }
}

#[test]
fn a_journal_without_a_beginning_is_refused() {
    let error = Stepper::open(&empty().log, "journal", 0).err().unwrap();
    assert!(matches!(error, ReplayError::EmptyJournal { .. }), "{error}");
    let recording = recorded(68);
    let error = Stepper::open(&recording.log, "other", 0).err().unwrap();
    assert!(matches!(error, ReplayError::NoTopic { .. }), "{error}");
    let error = Stepper::open(&recording.log, "journal", 5).err().unwrap().to_string();
    assert!(
        error.contains("no entries of a process with the ordinal 5; ordinals with entries: 0"),
        "{error}"
    );
}
