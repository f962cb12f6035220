//! A hundred corruptions of each kind of record, drawn from a seed: each is found, at its place, and blamed on no other record.

use std::collections::BTreeMap;

use warptape_eventlog::Record;
use warptape_replay::{Divergence, ReplayError, Report};

use crate::recording::{Plan, Random, options, record};
use crate::tampered::Tampered;
use crate::{records, verified};

const CORRUPTIONS: usize = 100;

/// What is done to a record of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Corruption {
    Flipped,
    TailCut,
    HeadCut,
    Emptied,
    Removed,
    Duplicated,
    Swapped,
}

use Corruption::*;

const ALL: [Corruption; 7] = [Flipped, TailCut, HeadCut, Emptied, Removed, Duplicated, Swapped];

/// Corrupts a record; false where that changes nothing.
fn corrupt(records: &mut Vec<Record>, at: usize, corruption: Corruption, random: &mut Random) -> bool {
    let length = records[at].value.len();
    match corruption {
        Flipped => records[at].value[random.below(length as u64) as usize] ^= random.below(255) as u8 + 1,
        TailCut => records[at].value.truncate(random.below(length as u64) as usize),
        HeadCut => drop(records[at].value.drain(..=random.below(length as u64 - 1) as usize)),
        Emptied => records[at].value.clear(),
        Removed => drop(records.remove(at)),
        Duplicated => {
            let copy = records[at].clone();
            records.insert(at + 1, copy);
            records[at + 1..].iter_mut().for_each(|record| record.offset += 1);
        }
        Swapped => {
            let Some([one, other]) = records.get_mut(at..at + 2) else { return false };
            if (&one.key, &one.value) == (&other.key, &other.value) {
                return false;
            }
            std::mem::swap(&mut one.value, &mut other.value);
            std::mem::swap(&mut one.key, &mut other.key);
        }
    }
    true
}

/// Whether the one that is blamed is the corrupted record, or the one that stands in its place or behind its copy.
fn is_blamed(
    found: &Result<Report, ReplayError>,
    (topic, partition, at): (&str, i32, i64),
    corruption: Corruption,
) -> bool {
    let near = |offset: i64| match corruption {
        // Where several records are alike, which of them is gone, or which one is the copy, nobody can say.
        Removed | Duplicated => offset >= at,
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
            Some(Divergence::Output(one)) => {
                (one.topic.as_str(), one.partition) == (topic, partition) && near(one.offset)
            }
            None => false,
        },
        // The last ticks are gone: what was committed is not there.
        Err(error) => topic == "ticks" && corruption == Removed && error.to_string().contains("ticks"),
    }
}

#[track_caller]
fn check(topic: &str, seed: u64) {
    let recording = record(Plan { records: 8, outcomes: true, snapshot: Some(3), ..Plan::small(seed) });
    let mut random = Random(seed);
    let mut counts: BTreeMap<Corruption, usize> = BTreeMap::new();
    let mut done = 0;
    while done < CORRUPTIONS {
        let partition = if topic == "journal" { 0 } else { random.below(2) as i32 };
        let mut all = records(&recording.log, topic, partition);
        if all.is_empty() {
            continue;
        }
        let at = random.below(all.len() as u64) as usize;
        let corruption = ALL[random.below(ALL.len() as u64) as usize];
        // Behind the last tick a copy is one more, which has not been processed yet.
        let is_further = topic == "ticks" && corruption == Duplicated && at + 1 == all.len();
        if is_further || !corrupt(&mut all, at, corruption, &mut random) {
            continue;
        }
        let log = Tampered::new(&recording.log, topic, partition, all);
        let found = verified(&log, &options());
        let place = (topic, partition, at as i64);
        assert!(
            is_blamed(&found, place, corruption),
            "{corruption:?} of {place:?} (seed {seed}, number {done}): {}",
            found.map_or_else(|error| error.to_string(), |report| report.to_string())
        );
        *counts.entry(corruption).or_default() += 1;
        done += 1;
    }
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
