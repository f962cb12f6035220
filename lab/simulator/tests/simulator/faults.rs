//! Lanes that are lost, return, or are slower, under the production scheduler.

use warptape_events::journal::Decision;
use warptape_scheduler::TASK_POLICIES;
use warptape_simulator::{
    Class, Failure, Fleet, Options, Outage, Outcome, Sizes, TaskKind, Throttling, Workload, run, run_observed,
};

/// Returns two lanes with a few tasks of ten seconds each.
fn two_lanes(tasks: usize, divisible: bool) -> (Fleet, Workload) {
    let mut workload = Workload::three_kinds(0.5, tasks);
    let kind =
        TaskKind { share: 1.0, mean_s: 10.0, sizes: Sizes::Fixed, divisible, ..workload.kinds[0].clone() };
    workload.kinds = vec![kind];
    (Fleet { classes: vec![Class::new("all", 2, &[1.0])], ..Fleet::default() }, workload)
}

fn failure(lanes: std::ops::Range<usize>, at_s: f64, back_after_s: Option<f64>) -> Failure {
    Failure { lanes, outage: Outage::At { at_s, back_after_s } }
}

fn simulated(fleet: &Fleet, workload: &Workload, policy: &str) -> Outcome {
    let options = Options { policy: policy.to_owned(), warmup: 0.0, records: true, ..Options::default() };
    run(fleet, workload, &options, 1)
}

/// An indivisible task restarts on the other lane, from its beginning.
#[test]
fn what_a_lost_lane_had_is_done_again() {
    let (mut fleet, workload) = two_lanes(1, false);
    let whole = simulated(&fleet, &workload, "first-come");
    let begin_s = whole.arrivals_s;
    assert!((whole.mean_s() - 10.0).abs() < 1e-6, "{}", whole.mean_s());
    let lane = whole.ran[0].lane;
    fleet.failures = vec![failure(lane..lane + 1, begin_s + 4.0, None)];
    let lost = simulated(&fleet, &workload, "first-come");
    assert!((lost.mean_s() - 14.0).abs() < 1e-6, "{}", lost.mean_s());
    assert_eq!((lost.counts.redone, lost.counts.slices), (1, 2));
    let ran: Vec<_> = lost.ran.iter().map(|ran| (ran.lane, ran.is_lost)).collect();
    assert_eq!(ran, [(lane, true), (1 - lane, false)]);
}

#[test]
fn a_lane_that_is_lost_does_nothing_and_works_again_when_it_is_back() {
    let (mut fleet, workload) = two_lanes(40, true);
    fleet.failures = vec![failure(0..1, 50.0, Some(30.0))];
    for policy in TASK_POLICIES {
        let outcome = simulated(&fleet, &workload, policy);
        assert_eq!(outcome.tasks.completions_s.len(), 40, "{policy}");
        let of_lane: Vec<_> = outcome.ran.iter().filter(|ran| ran.lane == 0).collect();
        let (from_ns, to_ns) = (50_000_000_000, 80_000_000_000);
        assert!(of_lane.iter().all(|ran| ran.to_ns <= from_ns || ran.from_ns >= to_ns), "{policy}");
        assert!(of_lane.iter().any(|ran| ran.from_ns >= to_ns), "{policy}");
        assert!((outcome.lost_s[0] - 30.0).abs() < 1e-6, "{policy}: {:?}", outcome.lost_s);
        let idle_s = 2.0 * outcome.arrivals_s - outcome.busy_s[0] - outcome.lost_s[0];
        assert!(idle_s > 0.0, "{policy}: {idle_s}");
    }
}

/// Tasks wait while all lanes are lost, and the outcome counts the tasks that are never done.
#[test]
fn tasks_wait_for_lanes_that_come_back_and_are_given_up_where_none_does() {
    let (mut fleet, workload) = two_lanes(20, true);
    fleet.failures = vec![failure(0..2, 20.0, Some(100.0))];
    let outcome = simulated(&fleet, &workload, "lp-price");
    assert_eq!((outcome.tasks.completions_s.len(), outcome.tasks.unfinished), (20, 0));
    assert!(outcome.quantile_s(1.0) > 90.0);
    fleet.failures = vec![failure(0..2, 20.0, None)];
    let outcome = simulated(&fleet, &workload, "lp-price");
    assert!(outcome.tasks.unfinished > 0, "{outcome:?}");
    assert_eq!(outcome.tasks.completions_s.len() + outcome.tasks.unfinished, 20);
}

#[test]
fn a_throttled_lane_takes_longer() {
    let (mut fleet, workload) = two_lanes(1, false);
    let whole = simulated(&fleet, &workload, "first-come");
    let (begin_s, lane) = (whole.arrivals_s, whole.ran[0].lane);
    let throttling = |lanes| Throttling { lanes, from_s: begin_s + 2.0, until_s: begin_s + 6.0, factor: 0.5 };
    fleet.throttling = vec![throttling(lane..lane + 1)];
    // Two seconds at full speed, four at half speed, six at full speed.
    assert!((simulated(&fleet, &workload, "first-come").mean_s() - 12.0).abs() < 1e-6);
    fleet.throttling = vec![throttling(1 - lane..2 - lane)];
    assert!((simulated(&fleet, &workload, "first-come").mean_s() - 10.0).abs() < 1e-6);
}

/// A seed gives the same losses under every policy.
#[test]
fn drawn_losses_are_those_of_the_seed() {
    let (mut fleet, workload) = two_lanes(60, true);
    let outage = Outage::Drawn { mtbf_s: 60.0, mttr_s: 10.0 };
    fleet.failures = vec![Failure { lanes: 0..2, outage }];
    let [fair, same, other] = [("fair", 1), ("fair", 1), ("lp-price", 1)].map(|(policy, seed)| {
        let options = Options { policy: policy.to_owned(), warmup: 0.0, ..Options::default() };
        run(&fleet, &workload, &options, seed)
    });
    assert_eq!(fair, same);
    assert_eq!(fair.lost_s, other.lost_s);
    assert!(fair.counts.redone > 0 && fair.lost_s[0] > 20.0, "{} {:?}", fair.counts.redone, fair.lost_s);
    assert_eq!(fair.tasks.completions_s.len(), 60);
}

/// The learned speeds are wrong once all lanes become five times slower for a while. The policy announces its fallback
/// and its return, and announces nothing if nothing happens.
#[test]
fn a_learned_policy_falls_back_when_lanes_are_throttled_and_returns() {
    let mut fleet = Fleet::volta_turing_radeon();
    let mut workload = Workload::three_kinds(0.4, 6_000);
    workload.kinds.iter_mut().for_each(|kind| kind.divisible = false);
    let options = Options { policy: "linucb".to_owned(), ..Options::default() };
    let said = |fleet: &Fleet| {
        let mut said = Vec::new();
        run_observed(fleet, &workload, &options, 1, &mut |at_ns, _, decisions| {
            for decision in decisions {
                if let Decision::FellBack(fell) = decision {
                    said.push((at_ns / 1_000_000, fell.has_returned));
                }
            }
        });
        said
    };
    assert_eq!(said(&fleet), [], "nothing happens");
    fleet.throttling = vec![Throttling { lanes: 0..16, from_s: 40.0, until_s: 60.0, factor: 0.2 }];
    let said = said(&fleet);
    println!("falls back and returns, in ms: {said:?}");
    let first_two: Vec<_> = said.iter().take(2).map(|(_, has_returned)| *has_returned).collect();
    assert_eq!(first_two, [false, true], "{said:?}");
    assert!((40_000..60_000).contains(&said[0].0), "{said:?}");
    assert!(said.last().is_some_and(|(_, has_returned)| *has_returned), "{said:?}");
}
