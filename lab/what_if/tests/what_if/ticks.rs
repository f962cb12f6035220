//! Rows on lanes with known service times: the model's figures, the effect of lost or slow lanes, and refused changes.

use warptape_scheduler::{RULES, Scheduler};
use warptape_schemas::journal::*;
use warptape_simulator::{Agenda, Next};
use warptape_what_if::{Changes, Claim, LossTime, Modelled, Recording, Report};

use super::signs::row;

const MS: i64 = 1_000_000;
const ARRIVALS: i64 = 400;
const PARTITIONS: i32 = 2;
const GROUPS: i32 = 8;

fn started() -> Started {
    Started {
        node: "node".to_owned(),
        software: "test".to_owned(),
        stage_config: "{}".to_owned(),
        scheduler: SchedulerConfig {
            placement_policy: "rendezvous".to_owned(),
            placement_seed: 1,
            load_factor_percent: 125,
            lane_credit_rows: 4_096,
            lane_credit_bytes: 1 << 20,
            lane_batches_max: 2,
            batch_rows_max: 512,
            row_deadline_ns: 2 * MS,
            high_water_rows: 32_768,
            low_water_rows: 8_192,
            route_interval_ns: 0,
            balance_interval_ns: 0,
            risk: RiskConfig::default(),
            breakers: None,
        },
        lanes: (0..3).map(|lane| LaneSpec::new(lane, format!("cpu:{lane}"), 1)).collect(),
        autoscale: None,
        shadow: None,
        rules: RULES,
    }
}

/// Returns the service time of a batch, which depends on its rows and varies by batch.
fn service_ns(batch: i64, rows: i64) -> i64 {
    200_000 + 10_000 * rows + 50_000 * (batch * 7 % 11)
}

/// Returns the steps of a run on such lanes.
fn steps() -> Vec<(i64, Input, Vec<Decision>)> {
    steps_with(None)
}

/// Returns the steps of such a run, with an operator's command at its beginning.
fn steps_with(command: Option<ControlCommand>) -> Vec<(i64, Input, Vec<Decision>)> {
    let mut scheduler = Scheduler::new();
    let mut inputs: Agenda<Input> = Agenda::default();
    inputs.push(MS, Input::Started(Box::new(started())));
    for partition in 0..PARTITIONS {
        let assigned = PartitionAssigned {
            partition,
            groups: GROUPS,
            committed_offset: 0,
            snapshot_offset: 0,
            ..PartitionAssigned::default()
        };
        inputs.push(MS, Input::PartitionAssigned(assigned));
    }
    if let Some(command) = command {
        let control = Control {
            offset: 0,
            id: "c".to_owned(),
            by: "operator".to_owned(),
            deadline_ns: i64::MAX,
            command,
        };
        inputs.push(MS, Input::Control(control));
    }
    for number in 0..ARRIVALS {
        let partition = (number % i64::from(PARTITIONS)) as i32;
        let group = |group: i32| GroupArrival { group, rows: 1 + (number + i64::from(group)) % 9, bytes: 64 };
        let groups = (0..GROUPS).filter(|group| (number + i64::from(*group)) % 3 > 0).map(group).collect();
        let arrived = Arrived { partition, next_offset: number + 1, groups };
        inputs.push((2 + number) * MS, Input::Arrived(arrived));
    }
    let (mut steps, mut free_ns) = (Vec::new(), [0; 3]);
    while let Some((at_ns, next)) = inputs.next(None, scheduler.wake_at_ns(), i64::MAX) {
        let input = match next {
            Next::Event(input) => input,
            Next::Wake => Input::Woke(Woke {}),
            Next::Input => unreachable!("all inputs are events"),
        };
        let mut decisions = Vec::new();
        scheduler.step(at_ns, &input, &mut decisions).expect("a sound input");
        for decision in &decisions {
            if let Decision::Dispatch(Dispatch { batch, lane, rows, .. }) = decision {
                let (free_ns, service_ns) = (&mut free_ns[*lane as usize], service_ns(*batch, *rows));
                *free_ns = at_ns.max(*free_ns) + service_ns;
                let done = Completed { lane: *lane, batch: *batch, service_ns, sample: None };
                inputs.push(*free_ns, Input::Completed(done));
            }
        }
        steps.push((at_ns, input, decisions));
    }
    steps
}

fn recorded() -> Recording {
    Recording::of_steps(steps()).expect("rows arrived")
}

fn what_if(recording: &Recording, changes: &Changes, seeds: u64) -> Report {
    let run = |changes: &Changes| -> Vec<Modelled> {
        (0..seeds).map(|seed| recording.model(changes, seed).expect("it is modelled")).collect()
    };
    recording.report(changes, &run(&Changes::default()), &run(changes)).expect("the changes fit")
}

#[test]
fn the_recorded_configuration_is_modelled_as_it_was_measured() {
    let recording = recorded();
    let report = what_if(&recording, &Changes::default(), 5);
    for (name, percent) in [("row_latency_mean_ms", 5.0), ("row_latency_p99_ms", 20.0), ("rows", 0.0)] {
        let found = row(&report.figures, name);
        let (measured, modelled) = (found.measured.unwrap(), found.recorded.unwrap().mean);
        let missed = 100.0 * (modelled - measured).abs() / measured;
        assert!(missed <= percent, "{name}: {modelled} modelled, {measured} measured");
        assert_eq!(found.claim, Claim::Same, "{name}");
    }
    assert!(report.order.iter().all(|order| order.is_kept), "{:?}", report.order);
}

#[test]
fn a_lane_that_is_slow_or_lost_makes_rows_later_and_none_is_missing() {
    let recording = recorded();
    let slow = Changes { slow: vec![("cpu:1".to_owned(), 4_000)], ..Changes::default() };
    let lost = Changes { lose: vec![("2".to_owned(), LossTime::After(100 * MS))], ..Changes::default() };
    let fewer = Changes { devices: vec!["cpu:1".to_owned()], ..Changes::default() };
    for changes in [slow, lost, fewer] {
        let report = what_if(&recording, &changes, 3);
        let latency = row(&report.figures, "row_latency_mean_ms");
        assert_eq!(latency.claim, Claim::Higher, "{changes:?}: {latency:?}");
        let rows = row(&report.figures, "rows");
        assert_eq!(rows.changed.unwrap().mean, rows.measured.unwrap(), "{changes:?}");
        assert!(report.order.iter().all(|order| order.is_kept), "{changes:?}: {:?}", report.order);
    }
}

#[test]
fn rows_wait_at_the_source_while_their_partition_is_paused() {
    let recording = recorded();
    let set = [("high_water_rows", "40"), ("low_water_rows", "5"), ("batch_rows_max", "4")];
    let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let changes = Changes { set, devices: vec!["cpu:1".to_owned()], ..Changes::default() };
    let report = what_if(&recording, &changes, 2);
    let rows = row(&report.figures, "rows");
    assert_eq!(rows.changed.unwrap().mean, rows.measured.unwrap());
    assert_eq!(row(&report.figures, "row_latency_mean_ms").claim, Claim::Higher);
    assert!(report.order.iter().all(|order| order.is_kept), "{:?}", report.order);
}

/// The account finds a contradiction: rows were dispatched that never arrived.
#[test]
fn rows_that_never_came_are_missing_in_the_account() {
    let mut steps = steps();
    assert!(Recording::of_steps(steps.clone()).unwrap().measured.order.is_kept());
    let arrived = steps.iter_mut().find_map(|(_, input, _)| match input {
        Input::Arrived(arrived) => Some(arrived),
        _ => None,
    });
    arrived.unwrap().groups.pop();
    let order = Recording::of_steps(steps).unwrap().measured.order;
    assert!(order.violations[0].contains("has fewer rows than were taken"), "{order:?}");
}

#[test]
fn the_same_seeds_give_the_same_bytes() {
    let recording = recorded();
    let changes = Changes { policy: Some("balanced".to_owned()), ..Changes::default() };
    let bytes = |seeds: u64| serde_json::to_string(&what_if(&recording, &changes, seeds)).unwrap();
    assert_eq!(bytes(3), bytes(3));
    assert_ne!(bytes(3), bytes(4));
}

#[test]
fn a_policy_that_would_move_nothing_and_weights_that_are_kept_are_told() {
    let recording = recorded();
    let notes = |changes: &Changes| what_if(&recording, changes, 2).notes.join("\n");
    let mut changes = Changes { policy: Some("balanced".to_owned()), ..Changes::default() };
    let told = "balanced moves no group, because the recorded scheduler.balance_interval_ns is 0";
    assert!(notes(&changes).contains(told), "{}", notes(&changes));
    changes.set = vec![("scheduler.balance_interval_ms".to_owned(), "250".to_owned())];
    assert!(!notes(&changes).contains(told), "{}", notes(&changes));

    // All recorded lanes have the same weight.
    let devices = Changes { devices: vec!["cpu:2".to_owned()], ..Changes::default() };
    assert!(!notes(&devices).contains("weights"), "{}", notes(&devices));
}

#[test]
fn a_lane_that_weighs_more_has_more_groups_to_do() {
    let recording = recorded();
    let weights = vec![("cpu:1".to_owned(), 50)];
    let report = what_if(&recording, &Changes { weights, ..Changes::default() }, 2);
    let changed: Vec<_> =
        report.changed.iter().map(|one| (one.field.as_str(), one.modelled.clone())).collect();
    assert_eq!(changed, [("lanes[1].weight", 50.into())]);
    assert_eq!(row(&report.figures, "row_latency_mean_ms").claim, Claim::Higher, "{:?}", report.figures);
}

#[test]
fn a_weight_that_is_asked_for_stands_against_recorded_commands() {
    let heavy = ControlCommand::WeighLane(WeighLane { lane: 1, weight: 50 });
    let recording = Recording::of_steps(steps_with(Some(heavy))).expect("rows arrived");
    let report =
        what_if(&recording, &Changes { weights: vec![("1".to_owned(), 2)], ..Changes::default() }, 2);
    let told = "recorded commands that change the weight of a lane are left out";
    assert!(report.notes.iter().any(|note| note.contains(told)), "{:?}", report.notes);
}

#[test]
fn what_is_not_there_is_an_error_that_says_what_is() {
    let recording = recorded();
    let check = |changes: Changes, expected: &str| {
        let error = recording.model(&changes, 0).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let named = |name: &str| name.to_owned();
    let none = Changes::default;
    check(
        Changes { policy: Some(named("dice")), ..none() },
        "--policy \"dice\" is unknown; policies of tasks: fair",
    );
    check(Changes { policy: Some(named("fair@7")), ..none() }, "risk.policy is fair@7");
    let set = |key: &str, value: &str| Changes { set: vec![(named(key), named(value))], ..none() };
    check(set("risk.nothing", "1"), "no such field in this journal; it has: balance_interval_ns");
    check(set("risk", "1"), "no such field");
    check(set("scheduler.balance_interval_ms", "soon"), "balance_interval_ms=soon: give a number");
    check(set("balance_interval_ms", "1e300"), "balance_interval_ms=1e300: give a number");
    check(set("scheduler.row_deadline_us", "-1"), "row_deadline");
    check(set("risk.slice_ns", "soon"), "--set risk.slice_ns=soon: ");
    check(set("risk.split", "by-mood"), "--set risk.split=by-mood: ");
    check(set("scheduler.batch_rows_max", "0"), "batch_rows_max is 0; it must be from 1");
    check(
        Changes { slow: vec![(named("cpu:7"), 2_000)], ..none() },
        "--slow cpu:7: there is no such lane; the lanes are: 0 (cpu:0)",
    );
    let lose = |lane: &str, time| Changes { lose: vec![(named(lane), time)], ..none() };
    check(lose("gpu", LossTime::After(0)), "--lose gpu: there is no such lane");
    check(
        lose("1", LossTime::After(60_000 * MS)),
        "60.000 s after the beginning of the recorded window, which lasts 0.4",
    );
    check(lose("1", LossTime::At(0)), "-0.001 s after");
    check(Changes { devices: vec![named("cuda:0")], ..none() }, "the speed of such devices is unknown");
    check(Changes { devices: vec![named("tpu")], ..none() }, "`cpu:N` (N lanes on the CPU)");
    assert!(recording.model(&set("risk.split", "equal"), 0).is_ok());
    let nothing = Recording::of_steps([(MS, Input::Started(Box::new(started())), Vec::new())]).unwrap_err();
    assert!(nothing.to_string().contains("no arrivals of rows and no risk tasks"), "{nothing}");
}
