//! Compares two recorded runs.

use std::collections::{BTreeMap, BTreeSet};

use warptape_eventlog::EventLog;
use warptape_replay::diff::{Diff, DiffSide, LaneRows, diff};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::Decision;

use crate::recording::records;
use crate::recording::{Plan, Recording, options, record};

fn compared(a: &Recording, b: &Recording) -> Diff {
    let options = &options();
    diff([a, b].map(|recording| DiffSide { log: &recording.log, options }), &mut |_| {}).unwrap()
}

fn plan(seed: u64) -> Plan {
    Plan { outcomes: true, ..Plan::small(seed) }
}

/// Returns the lanes on which groups with rows were placed, in order, read without the code under test.
fn lanes(log: &dyn EventLog) -> BTreeMap<(i32, i32), Vec<i32>> {
    let mut lanes: BTreeMap<(i32, i32), Vec<i32>> = BTreeMap::new();
    let mut with_rows = BTreeSet::new();
    for record in records(log, "journal", 0) {
        for decision in decode_journal_entry(&record.value).unwrap().decisions {
            match decision {
                Decision::Place(place) => {
                    lanes.entry((place.partition, place.group)).or_default().push(place.lane);
                }
                Decision::Dispatch(dispatch) => {
                    with_rows.extend(dispatch.takes.iter().map(|take| (take.partition, take.group)));
                }
                _ => {}
            }
        }
    }
    lanes.retain(|group, _| with_rows.contains(group));
    lanes
}

#[test]
fn a_run_is_the_same_as_its_like() {
    let (a, b) = (record(plan(61)), record(plan(61)));
    let found = compared(&a, &b);
    assert!(found.is_same(), "{found:?}");
    assert_eq!((found.moves.groups, found.moves.elsewhere), (lanes(&a.log).len(), 0));
    let signals: usize = (0..2).map(|partition| records(&a.log, "signals", partition).len()).sum();
    assert_eq!((found.outputs.same, found.outputs.at_other_offsets), (signals as u64, 0));
    let [one, other] = &found.sides;
    assert_eq!((one.lives, one.software.as_slice()), (2, &[env!("CARGO_PKG_VERSION").to_owned()][..]));
    assert_eq!((&one.latency, &one.waits, &one.lanes), (&other.latency, &other.waits, &other.lanes));
    assert!(one.totals.signals > 30 && one.latency.p50_ns > 0 && one.latency.max_ns >= one.latency.p999_ns);
    assert_eq!(one.latency.max_ns, one.slowest[0].chain.total_ns.unsigned_abs(), "it is exact");
    let entries = records(&a.log, "journal", 0).len() as u64;
    assert_eq!((found.parted[0].alike, found.parted[0].starts_unlike), (entries, 0));
    assert!(one.waits.iter().map(|wait| wait.ns).sum::<i64>() > 0, "{:?}", one.waits);
}

#[test]
fn other_placements_part_the_journals_and_leave_the_signals() {
    let (a, b) = (record(plan(62)), record(Plan { placement_seed: 8, ..plan(62) }));
    let found = compared(&a, &b);
    assert!(!found.is_same() && found.outputs.is_same());
    let configured: Vec<&str> = found.configuration.iter().map(|one| one.field.as_str()).collect();
    assert_eq!(configured, ["scheduler.placement_seed"]);
    let at = found.parted[0].at.as_ref().expect("they part");
    assert!(at.by_decision && at.inputs[0] == "partition_assigned", "{at:?}");
    // The starts have different configurations, and do not count as equal entries.
    assert_eq!(found.parted[0].starts_unlike, 1);
    assert_eq!(found.parted[0].alike + 1, at.sequences[0].unsigned_abs());
    assert!(at.fields.iter().any(|field| field.field.contains(".place.lane")), "{at:?}");

    let (lanes_a, lanes_b) = (lanes(&a.log), lanes(&b.log));
    let elsewhere: Vec<(i32, i32)> =
        lanes_a.keys().filter(|group| lanes_a[*group] != lanes_b[*group]).copied().collect();
    assert!(!elsewhere.is_empty() && elsewhere.len() < lanes_a.len());
    assert_eq!(found.moves.elsewhere, elsewhere.len());
    for group in &found.moves.listed {
        let [one, other] = [&lanes_a, &lanes_b].map(|lanes| lanes[&(group.partition, group.group)][0]);
        let [first, second] = &group.lanes;
        assert!(first[0].lane.starts_with(&format!("{one} ")), "{group:?}");
        assert!(second[0].lane.starts_with(&format!("{other} ")), "{group:?}");
        let rows = |lanes: &[LaneRows]| lanes.iter().map(|lane| lane.rows).sum::<i64>();
        assert_eq!(rows(first), rows(second));
    }
}

#[test]
fn other_ticks_give_other_signals() {
    let (a, b) = (record(plan(63)), record(plan(64)));
    let found = compared(&a, &b);
    assert!(found.configuration.is_empty() && !found.outputs.is_same());
    let first = found.outputs.first.first().expect("one differs");
    assert!(!first.fields.is_empty(), "{first:?}");
    let count = |recording: &Recording| -> u64 {
        (0..2).map(|partition| records(&recording.log, "signals", partition).len() as u64).sum()
    };
    let [rest_a, rest_b] = found.outputs.rest;
    assert_eq!(found.outputs.same + rest_a, count(&a));
    assert_eq!(found.outputs.same + rest_b, count(&b));
}
