//! Reasons of decisions, found from any earlier start or checkpoint.

use warptape_eventlog::{EventLog, Record};
use warptape_replay::debugger::{Found, Stepper};
use warptape_replay::history::{Bound, Moment};
use warptape_replay::{Before, ReplayError, WhyOptions, why};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{AutoscaleConfig, BreakerConfig, Decision, Input, LaneLost, LaneReady, Woke};

use crate::recording::{Plan, record};
use crate::scheduled::Scheduled;
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
        let decisions: Vec<_> =
            found.explanations.iter().map(|one| one.explanation.decision.clone()).collect();
        assert_eq!(decisions, entry.decisions);
        explained += found.explanations.iter().filter(|one| !one.explanation.choices.is_empty()).count();
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

/// Returns the answer about the previous decision, for the decision of a kind in an entry.
#[track_caller]
fn before(log: &dyn EventLog, sequence: i64, is: impl Fn(&Decision) -> bool) -> Before {
    let found = why(log, &of(sequence)).unwrap();
    let explained = found.explanations.iter().find(|one| is(&one.explanation.decision));
    explained.expect("it is decided there").before.clone().expect("it is of a series")
}

const S: i64 = 1_000_000_000;

/// Changes of the wanted number of lanes in two lives, thousands of entries apart, with checkpoints between them.
#[test]
fn the_wish_before_is_named_within_the_life() {
    let autoscale =
        AutoscaleConfig { window_ns: S, clear_ns: S, hold_windows: 0, ..AutoscaleConfig::default() };
    let mut journal = Scheduled::new(|started| started.autoscale = Some(autoscale));
    for life in 0..2 {
        if life > 0 {
            journal.start();
        }
        for service_ns in [5 * S / 2, S / 100, 3 * S] {
            journal.at_ns = (journal.at_ns / S + 1) * S;
            journal.step(Input::Woke(Woke {}));
            journal.work(service_ns);
            (0..2_500).for_each(|_| _ = journal.work(0));
            journal.checkpoint();
        }
    }
    let log = journal.log();
    let is_scale = |decision: &Decision| matches!(decision, Decision::Scale(_));
    let (mut begins, mut wishes) = (Vec::new(), Vec::new());
    for record in records(log, "journal", 0) {
        let entry = decode_journal_entry(&record.value).unwrap();
        let at = Moment { sequence: entry.sequence, at_ns: entry.at_ns };
        if matches!(entry.input, Input::Started(_)) {
            begins.push(at);
        }
        let scale = entry.decisions.into_iter().find(is_scale);
        wishes.extend(scale.map(|scale| (begins.len() - 1, at, scale)));
    }
    let of_life = |life| wishes.iter().filter(|(other, ..)| *other == life).count();
    assert!(of_life(0) >= 2 && of_life(1) >= 2, "{wishes:?}");
    for (number, (life, at, _)) in wishes.iter().enumerate() {
        let earlier = wishes[..number].iter().rfind(|(other, ..)| other == life);
        let expected = match earlier {
            Some((_, at, scale)) => Before::Decided { at: *at, decision: scale.clone() },
            None => Before::NoneSinceStart(begins[*life]),
        };
        assert_eq!(before(log, at.sequence, is_scale), expected);
    }
    // If the beginning was removed, the answer names the entry after which nothing was found.
    let mut kept = records(log, "journal", 0);
    let is_checkpoint =
        |record: &Record| matches!(decode_journal_entry(&record.value).unwrap().input, Input::Checkpoint(_));
    let kept = kept.split_off(kept.iter().position(is_checkpoint).expect("a checkpoint"));
    let first = decode_journal_entry(&kept[0].value).unwrap();
    let since = Moment { sequence: first.sequence, at_ns: first.at_ns };
    let (_, at, _) = wishes.iter().find(|(_, at, _)| at.sequence > first.sequence).unwrap();
    let log = Tampered::trimmed(log, "journal", 0, kept);
    assert_eq!(before(&log, at.sequence, is_scale), Before::NoneSince(Some(since)));
}

#[test]
fn breakers_of_other_lanes_are_of_other_series() {
    let breakers = BreakerConfig {
        losses_max: 1,
        window_ns: S,
        slow_percent: 0,
        slow_ns: S,
        probe_ns: 5_000,
        probe_ns_max: S,
        probes: 1,
        headroom_c: 0,
        memory_free_percent: 0,
    };
    let mut journal = Scheduled::new(|started| {
        started.scheduler.breakers = Some(breakers);
        let third = started.lanes[0].clone();
        started.lanes.push(warptape_schemas::journal::LaneSpec { lane: 2, ..third });
    });
    let mut lose = |lane| {
        let lost = LaneLost { lane, reason: "gone".to_owned(), kept: true };
        let (sequence, decisions) = journal.step(Input::LaneLost(lost));
        let opened = decisions.into_iter().find(|decision| matches!(decision, Decision::Breaker(_)));
        let at = Moment { sequence, at_ns: journal.at_ns };
        journal.step(Input::LaneReady(LaneReady { lane }));
        (at, opened.expect("one loss is enough"))
    };
    let (first_at, first) = lose(0);
    let (second_at, _) = lose(1);
    journal.at_ns += 10_000;
    let (probed, decisions) = journal.step(Input::Woke(Woke {}));
    let log = journal.log();
    let of_lane = |lane: i32| move |one: &Decision| matches!(one, Decision::Breaker(one) if one.lane == lane);
    assert_eq!(decisions.iter().filter(|one| matches!(one, Decision::Breaker(_))).count(), 2);
    assert!(matches!(before(log, second_at.sequence, of_lane(1)), Before::NoneSinceStart(_)));
    assert_eq!(before(log, probed, of_lane(0)), Before::Decided { at: first_at, decision: first });
    // In JSON, the explanation and the previous decision are beside each other.
    let found = serde_json::to_value(why(log, &of(probed)).unwrap()).unwrap();
    let told = &found["explanations"][0];
    assert_eq!(told["measures"][0]["name"], "out_of_service_ns");
    assert_eq!(told["measures"][0]["threshold"], 5_000);
    assert_eq!(told["otherwise"][0]["With"]["is"], "Below");
    assert_eq!(told["before"]["decided"]["at"]["sequence"], first_at.sequence);
    assert_eq!(told["before"]["decided"]["decision"]["Breaker"]["reason"], "LOSSES");
    // The debugger gives the same explanation.
    let mut stepper = Stepper::open(log, "journal", 0).unwrap();
    assert_eq!(stepper.go_to(Bound::Sequence(probed), &mut |_| true).unwrap(), Found::Here);
    let stepped = stepper.explain(0).unwrap().expect("it is decided there");
    assert_eq!(stepped, why(log, &of(probed)).unwrap().explanations[0]);
}
