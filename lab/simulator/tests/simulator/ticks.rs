//! Ticks beside tasks: groups, batches and slices on shared lanes under the production scheduler.

use warptape_events::journal::{Decision, Input, LaneKind, TaskClass};
use warptape_simulator::{
    Class, Diurnal, Failure, Fleet, Options, Outage, Outcome, Pace, Sizes, Surges, TaskKind, Throttling,
    TickSpeed, Ticked, Ticks, Workload, figures, run, run_observed,
};

/// Returns equal lanes on which a batch takes 100 µs plus 1 µs per row.
fn fleet(lanes: usize) -> Fleet {
    let ticks = Some(TickSpeed { rows_per_s: 1e6, batch_overhead_ns: 100_000 });
    Fleet { classes: vec![Class { ticks, ..Class::new("all", lanes, &[1.0]) }], ..Fleet::default() }
}

fn ticks(rate: f64) -> Ticks {
    Ticks {
        rate,
        pace: Pace::Constant,
        symbols: 100,
        skew: 0.0,
        partitions: 1,
        groups: 16,
        interval_ns: 1_000_000,
    }
}

/// Returns a workload of divisible tasks beside ticks.
fn workload(load: f64, tasks: usize, mean_s: f64, ticks: Ticks) -> Workload {
    let mut workload = Workload::three_kinds(load, tasks);
    let kind = TaskKind { share: 1.0, mean_s, sizes: Sizes::Fixed, ..workload.kinds[0].clone() };
    (workload.kinds, workload.ticks) = (vec![kind], Some(ticks));
    workload
}

fn options() -> Options {
    Options { warmup: 0.0, ..Options::default() }
}

fn ticked(outcome: &Outcome) -> &Ticked {
    outcome.ticks.as_ref().expect("ticks came")
}

/// Returns the expected number of ticks of a run: the rate times the time until the last task has arrived.
fn come(outcome: &Outcome, ticks: &Ticks) -> i64 {
    let intervals = (outcome.arrivals_s * 1e9 / ticks.interval_ns as f64) as i64;
    (intervals as f64 * ticks.interval_ns as f64 * ticks.rate / 1e9).round() as i64
}

/// On one lane with almost no tasks, each interval is one batch on an idle lane, and takes only the time of its rows.
#[test]
fn rows_take_what_their_batch_takes_where_nothing_else_is_to_do() {
    let workload = workload(0.001, 3, 0.000_5, ticks(200_000.0));
    let outcome = run(&fleet(1), &workload, &Options { warmup: 0.34, ..options() }, 1);
    let ticks = ticked(&outcome);
    assert_eq!(ticks.rows, come(&outcome, workload.ticks.as_ref().unwrap()));
    assert_eq!(ticks.rows, ticks.batches as i64 * 200);
    // The latency is half an interval until the source is polled, plus the batch.
    for (found, name) in [(ticks.mean_ms, "mean"), (ticks.p50_ms, "p50"), (ticks.p99_ms, "p99")] {
        assert!((found / (0.5 + 0.3) - 1.0).abs() < 2e-3, "{name}: {found} ms");
    }
    // Batches take 300 of each 1,000 µs.
    assert!((ticks.busy_s[0] / outcome.arrivals_s - 0.3).abs() < 0.01, "{ticks:?}");
    assert_eq!((ticks.moves, ticks.paused_s), (0, 0.0));
}

/// A batch gets half of its lane beside a slice of a critical task, and ten elevenths beside any other slice.
#[test]
fn slices_have_their_part_of_the_lane_beside_batches() {
    for (class, expected_ms) in [(TaskClass::Critical, 0.5 + 0.6), (TaskClass::Batch, 0.5 + 0.33)] {
        let mut workload = workload(3.0, 40, 1.0, ticks(200_000.0));
        workload.kinds[0].class = class;
        let outcome = run(&fleet(1), &workload, &options(), 1);
        let found = ticked(&outcome).p50_ms;
        assert!((found / expected_ms - 1.0).abs() < 0.01, "{class:?}: {found} ms");
        assert_eq!(outcome.tasks.completions_s.len(), 40);
    }
}

/// Busy lane time is the sum of the batches' and the tasks' time, up to one slice.
#[test]
fn lane_time_is_that_of_batches_and_tasks_together() {
    let workload = workload(0.5, 400, 0.05, ticks(600_000.0));
    let outcome = run(&fleet(4), &workload, &options(), 2);
    let ticks = ticked(&outcome);
    let batches_s = ticks.batches as f64 * 1e-4 + ticks.rows as f64 * 1e-6;
    assert!((ticks.busy_s[0] / batches_s - 1.0).abs() < 1e-3, "{} of {batches_s} s", ticks.busy_s[0]);
    let tasks_s = outcome.busy_s[0] - ticks.busy_s[0];
    // All time is counted when the last task arrives.
    let done_s = outcome.tasks.offered_s;
    assert!(tasks_s <= done_s && tasks_s > done_s - 0.3, "{tasks_s} of {done_s} s");
    assert_eq!(outcome.tasks.completions_s.len(), 400);
}

#[test]
fn the_same_seed_gives_the_same_run_and_tasks_come_as_without_ticks() {
    let surges = Surges { share: 0.1, factor: 4.0, mean_s: 0.02 };
    let day = Diurnal { period_s: 1.0, swing: 0.8 };
    let paces = [Pace::Constant, Pace::Bursty(surges), Pace::Diurnal(day)];
    let mut means = Vec::new();
    for pace in paces {
        let workload = workload(0.4, 100, 0.05, Ticks { pace, skew: 1.0, ..ticks(300_000.0) });
        let [one, same, other] = [3, 3, 4].map(|seed| run(&fleet(3), &workload, &options(), seed));
        assert_eq!(one, same, "{pace:?}");
        assert_ne!(ticked(&one), ticked(&other), "{pace:?}");
        let alone = run(&fleet(3), &Workload { ticks: None, ..workload }, &options(), 3);
        assert_eq!(
            (one.tasks.offered_s, one.arrivals_s),
            (alone.tasks.offered_s, alone.arrivals_s),
            "{pace:?}"
        );
        assert!(one.mean_s() > alone.mean_s(), "{pace:?}: {} and {} s", one.mean_s(), alone.mean_s());
        means.push(ticked(&one).mean_ms);
    }
    assert!(means[0] < means[1] && means[0] < means[2], "ticks that come unevenly wait longer: {means:?}");
}

/// Other lanes process a lost lane's batches, each once, and its groups return with the lane.
#[test]
fn no_row_is_missing_where_lanes_are_lost() {
    let mut fleet = fleet(3);
    let outage = Outage::At { at_s: 0.4, back_after_s: Some(0.3) };
    fleet.failures = vec![
        Failure { lanes: 0..1, outage },
        Failure { lanes: 2..3, outage: Outage::Drawn { mtbf_s: 0.2, mttr_s: 0.05 } },
    ];
    let workload = workload(0.3, 100, 0.05, ticks(900_000.0));
    let (mut lost, mut placed) = (0, 0);
    let outcome = run_observed(&fleet, &workload, &options(), 1, &mut |_, input, decisions| {
        lost += u64::from(matches!(input, Input::LaneLost(_)));
        placed += decisions.iter().filter(|decision| matches!(decision, Decision::Place(_))).count();
    });
    assert!(lost > 4 && placed > 16 + 4, "{lost} losses, {placed} placements");
    assert_eq!(ticked(&outcome).rows, come(&outcome, workload.ticks.as_ref().unwrap()));
    assert_eq!(outcome.tasks.completions_s.len(), 100);
    fleet.failures.clear();
    let whole = run(&fleet, &workload, &options(), 1);
    assert!(ticked(&whole).p99_ms < ticked(&outcome).p99_ms);
}

/// The loss of a lane may resume a paused partition before the lane's rows arrive again.
#[test]
fn lanes_are_lost_while_partitions_are_paused() {
    let outage = Outage::Drawn { mtbf_s: 0.3, mttr_s: 0.05 };
    let fleet = Fleet { failures: vec![Failure { lanes: 0..3, outage }], ..fleet(3) };
    let workload = workload(0.3, 20, 0.1, Ticks { partitions: 2, ..ticks(4_000_000.0) });
    let mut resumed_by_losses = 0;
    let outcome = run_observed(&fleet, &workload, &options(), 1, &mut |_, input, decisions| {
        let resumes = decisions.iter().any(|decision| matches!(decision, Decision::Resume(_)));
        resumed_by_losses += u64::from(matches!(input, Input::LaneLost(_)) && resumes);
    });
    assert!(resumed_by_losses > 0);
    assert_eq!(ticked(&outcome).rows, come(&outcome, workload.ticks.as_ref().unwrap()));
}

/// A lane at a quarter of its speed takes four times as long for its batches.
#[test]
fn throttled_lanes_take_longer_for_batches() {
    let mut fleet = fleet(1);
    fleet.throttling = vec![Throttling { lanes: 0..1, from_s: 0.0, until_s: 1e6, factor: 0.25 }];
    let workload = workload(0.001, 3, 0.000_5, ticks(100_000.0));
    let outcome = run(&fleet, &workload, &options(), 1);
    assert!((ticked(&outcome).p50_ms / (0.5 + 0.8) - 1.0).abs() < 2e-3, "{:?}", ticked(&outcome));
}

/// Ticks beyond the lanes' capacity pile up at the source and are all done in the end, while tasks get their reserve.
#[test]
fn too_many_ticks_wait_at_the_source_and_tasks_are_done_all_the_same() {
    let workload = workload(0.05, 12, 0.3, ticks(3_000_000.0));
    let outcome = run(&fleet(2), &workload, &options(), 5);
    let ticks = ticked(&outcome);
    assert!(ticks.paused_s > 0.5, "{ticks:?}");
    assert_eq!(ticks.rows, come(&outcome, workload.ticks.as_ref().unwrap()));
    // A third of the ticks exceeds the capacity and waits until the end.
    assert!(ticks.p99_ms > 300.0 * outcome.arrivals_s, "{ticks:?} in {} s", outcome.arrivals_s);
    assert_eq!(outcome.tasks.completions_s.len(), 12);
}

/// Only `balanced` moves groups to less loaded lanes, which pays off if symbols have unequal shares.
#[test]
fn balanced_moves_groups() {
    let workload = workload(0.05, 60, 0.05, Ticks { skew: 1.2, groups: 12, ..ticks(1_500_000.0) });
    let [still, moving] = ["rendezvous", "balanced"].map(|placement| {
        let options = Options { placement: placement.to_owned(), ..options() };
        run(&fleet(3), &workload, &options, 1)
    });
    assert_eq!(ticked(&still).moves, 0);
    assert!(ticked(&moving).moves > 0, "{:?}", ticked(&moving));
    assert_eq!(ticked(&still).rows, ticked(&moving).rows);
    let [still, moving] = [&still, &moving].map(|outcome| ticked(outcome).mean_ms);
    assert!(moving < still, "{moving} ms under balanced, {still} ms under rendezvous");
}

/// Lanes on processors and GPUs are measured at their start. Each group is placed on the kind of lane that is faster
/// for batches of its size.
#[test]
fn groups_are_on_the_kind_of_lanes_that_is_faster_for_what_comes() {
    let class = |device, rows_per_s, batch_overhead_ns| Class {
        ticks: Some(TickSpeed { rows_per_s, batch_overhead_ns }),
        device,
        ..Class::new("some", 2, &[1.0])
    };
    let classes = vec![class(LaneKind::Host, 1e6, 5_000), class(LaneKind::Device, 1e8, 200_000)];
    let fleet = Fleet { classes, ..Fleet::default() };
    for (rate, kind) in [(20_000.0, 0), (1_500_000.0, 1)] {
        let workload = workload(0.01, 30, 0.05, ticks(rate));
        let mut rows = [0; 2];
        run_observed(&fleet, &workload, &options(), 1, &mut |_, _, decisions| {
            for decision in decisions {
                if let Decision::Dispatch(dispatch) = decision {
                    rows[dispatch.lane as usize / 2] += dispatch.rows;
                }
            }
        });
        assert!(rows[kind] > 4 * rows[1 - kind], "{rate} ticks/s: {rows:?}");
    }
}

/// Ticks leave the rest of the capacity on equal lanes. They leave more if some lanes are comparatively fast at ticks.
#[test]
fn capacity_says_what_ticks_leave() {
    let fleet = fleet(4);
    let workload = workload(0.5, 1, 0.05, ticks(1_000_000.0));
    assert!((figures::left_by_ticks(&fleet, &workload) - 0.75).abs() < 1e-6);
    assert!((fleet.ticks_per_s() - 4e6).abs() < 1e-3);
    let too_many = Workload { ticks: Some(ticks(4e6)), ..workload.clone() };
    assert_eq!(figures::left_by_ticks(&fleet, &too_many), 0.0);
    assert_eq!(figures::left_by_ticks(&fleet, &Workload { ticks: None, ..workload.clone() }), 1.0);
    // Two lanes that are slow at tasks process a million ticks alone, and leave all the work of the other lanes: 2 of
    // 2.2.
    let mut unlike = fleet;
    let slow = Class { speeds: vec![0.1], ..unlike.classes[0].clone() };
    unlike.classes[0].lanes = 2;
    unlike.classes.push(Class { lanes: 1, ..slow.clone() });
    unlike.classes.push(Class { lanes: 1, name: "other".to_owned(), ..slow });
    let left = figures::left_by_ticks(&unlike, &workload);
    assert!((left - 2.1 / 2.2).abs() < 1e-4, "{left}");
}
