//! A hundred corruptions of each kind of record, drawn from a seed. Each is found at its place, and no other record is
//! blamed.

use std::collections::BTreeMap;

use warptape_eventlog::Record;
use warptape_replay::{Divergence, ReplayError, Report};
use warptape_schemas::control::{Control, ControlResult};
use warptape_schemas::{decode_control, decode_control_result};

use crate::corruption::{ALL, Corruption, Corruption::*, corrupt};
use crate::recording::{Plan, Random, options, record};
use crate::tampered::Tampered;
use crate::{records, verified};

/// Number of corruptions of each topic, unless `WARPTAPE_TEST_CORRUPTIONS` sets it.
const CORRUPTIONS: usize = 100;

fn corruptions() -> usize {
    std::env::var("WARPTAPE_TEST_CORRUPTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(CORRUPTIONS)
}

/// True if nothing else in the log depends on the change, so that it cannot be noticed.
fn is_unrecorded(topic: &str, before: &[Record], after: &[Record]) -> bool {
    let is_alike = |(before, after): (&Record, &Record)| match topic {
        // The time of a command is not recorded elsewhere. A command without a decision is only recorded in its answer.
        "control" => {
            let [before, after] = [before, after].map(|record| decode_control(&record.value));
            let Ok(Control { id, by, deadline_ns, command, .. }) = before else { return true };
            let same = Control {
                at_ns: after.as_ref().map_or(0, |after| after.at_ns),
                id,
                by,
                deadline_ns,
                command,
            };
            same.long_text().is_some() || after.is_ok_and(|after| after == same)
        }
        // The time of a refusal without a decision is not recorded elsewhere either.
        "control.results" => {
            let [before, after] = [before, after].map(|record| decode_control_result(&record.value));
            let (Ok(before), Ok(after)) = (before, after) else { return false };
            after == ControlResult { at_ns: after.at_ns, ..before } && after.sequence.is_none()
        }
        _ => false,
    };
    before.len() == after.len()
        && before.iter().zip(after).filter(|(before, after)| before != after).all(is_alike)
}

/// True if compaction may have removed a record, because a newer record has its key. Moreover, every older record must
/// be superseded only after that newer record, or not at all.
fn may_be_compacted(records: &[Record], at: usize) -> bool {
    let newer = |one: usize| (one + 1..records.len()).find(|other| records[*other].key == records[one].key);
    newer(at).is_some_and(|newest| (0..at).filter_map(newer).all(|other| other > newest))
}

/// True if the blamed record is the corrupted one, or the one in its place or after its copy.
fn is_blamed(
    found: &Result<Report, ReplayError>,
    (topic, partition, at): (&str, i32, i64),
    corruption: Corruption,
) -> bool {
    let near = |offset: i64| match corruption {
        // Among equal records, the missing one or the copy cannot be identified.
        Removed | Duplicated => offset >= at,
        // If some records may be missing, or one is only known from its answer, the second record is the wrong one.
        Swapped if ["snapshots", "control"].contains(&topic) => (at..=at + 1).contains(&offset),
        _ => offset == at,
    };
    match found {
        Ok(report) => match &report.divergence {
            Some(Divergence::Journal(one)) => {
                (one.topic.as_str(), one.partition) == (topic, partition) && near(one.offset)
            }
            Some(Divergence::JournalEnd(one)) => {
                topic == "journal" && corruption == Removed && one.next_sequence == at
            }
            Some(Divergence::Unaccounted(_)) => topic == "journal" && corruption == Removed,
            Some(Divergence::Ticks(one)) => {
                let has = one.first_offset <= at && at < one.next_offset;
                (one.topic.as_str(), one.partition) == (topic, partition)
                    && (has || (corruption == Duplicated && one.first_offset == at + 1))
            }
            Some(Divergence::Sealed(_) | Divergence::Anchor(_)) => false,
            Some(Divergence::Output(one)) => {
                (one.topic.as_str(), one.partition) == (topic, partition) && near(one.offset)
            }
            None => false,
        },
        // The last ticks are gone, so committed records are missing.
        Err(error) => topic == "ticks" && corruption == Removed && error.to_string().contains("ticks"),
    }
}

#[track_caller]
fn check(topic: &str, seed: u64) {
    check_with(topic, Plan { records: 8, outcomes: true, snapshot: Some(3), ..Plan::small(seed) });
}

#[track_caller]
fn check_with(topic: &str, plan: Plan) {
    let (recording, seed) = (record(plan), plan.seed);
    let whole = verified(&recording.log, &options()).unwrap();
    assert!(whole.is_identical() && whole.notes.is_empty(), "{whole}");
    let mut random = Random(seed);
    let mut counts: BTreeMap<Corruption, usize> = BTreeMap::new();
    let (mut done, mut harmless) = (0, 0);
    let wanted = corruptions();
    while done < wanted {
        let is_of_process = ["journal", "control", "control.results"].contains(&topic);
        let partition = if is_of_process { 0 } else { random.below(2) as i32 };
        let before = records(&recording.log, topic, partition);
        if before.is_empty() {
            continue;
        }
        let mut all = before.clone();
        let at = random.below(all.len() as u64) as usize;
        let corruption = ALL[random.below(ALL.len() as u64) as usize];
        // A copy after the last tick looks like another tick that was not processed yet.
        let is_further =
            ["ticks", "control"].contains(&topic) && corruption == Duplicated && at + 1 == all.len();
        if is_further || !corrupt(&mut all, at, corruption, &mut |end| random.below(end)) {
            continue;
        }
        let is_compacted = topic == "snapshots" && corruption == Removed && may_be_compacted(&before, at);
        if is_compacted || is_unrecorded(topic, &before, &all) {
            harmless += 1;
            continue;
        }
        let log = Tampered::new(&recording.log, topic, partition, all);
        let found = verified(&log, &options());
        let place = (topic, partition, before[at].offset);
        assert!(
            is_blamed(&found, place, corruption),
            "{corruption:?} of {place:?} (seed {seed}, number {done}): {}",
            found.map_or_else(|error| error.to_string(), |report| report.to_string())
        );
        *counts.entry(corruption).or_default() += 1;
        done += 1;
    }
    println!("{topic}: {done} are found, {harmless} are of no consequence");
    assert_eq!(counts.len(), ALL.len(), "{counts:?}");
}

#[test]
fn corrupted_journal_entries_are_found_and_blamed() {
    check("journal", 71);
}

#[test]
fn corrupted_ticks_are_found_and_blamed() {
    check("ticks", 72);
}

#[test]
fn corrupted_signals_are_found_and_blamed() {
    check("signals", 73);
}

#[test]
fn corrupted_late_ticks_are_found_and_blamed() {
    check("late", 74);
}

#[test]
fn corrupted_dead_letters_are_found_and_blamed() {
    check("dead-letter", 75);
}

#[test]
fn corrupted_snapshots_are_found_and_blamed() {
    for keeps_snapshots in [false, true] {
        let plan = Plan { records: 8, outcomes: true, snapshot: Some(3), lives: 3, ..Plan::small(76) };
        check_with("snapshots", Plan { keeps_snapshots, ..plan });
    }
}

#[test]
fn corrupted_commands_are_found_and_blamed() {
    check_with("control", Plan { records: 8, outcomes: true, commands: 8, ..Plan::small(77) });
}

#[test]
fn corrupted_answers_to_commands_are_found_and_blamed() {
    check_with("control.results", Plan { records: 8, outcomes: true, commands: 8, ..Plan::small(78) });
}
