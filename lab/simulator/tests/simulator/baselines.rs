//! Compares the simulator's baselines with theory and with production policies.

use warptape_simulator::{
    BASELINES, Burst, Class, Failure, Fleet, Options, Outage, Outcome, Process, Sizes, Throttling, Workload,
    run,
};

fn options(policy: &str) -> Options {
    Options { policy: policy.to_owned(), slice_ns: 4_000_000, ..Options::default() }
}

fn whole_tasks(load: f64, tasks: usize) -> Workload {
    let mut workload = Workload::three_kinds(load, tasks);
    workload.kinds.iter_mut().for_each(|kind| kind.divisible = false);
    workload
}

fn mean_s(fleet: &Fleet, workload: &Workload, policy: &str) -> f64 {
    let means = (0..3).map(|seed| run(fleet, workload, &options(policy), seed).mean_s());
    means.sum::<f64>() / 3.0
}

#[test]
fn all_tasks_are_done_by_every_baseline_and_a_seed_gives_the_same_run() {
    let mut fleet = Fleet::volta_turing_radeon();
    fleet.failures = vec![
        Failure { lanes: 0..12, outage: Outage::Drawn { mtbf_s: 3.0, mttr_s: 0.5 } },
        Failure { lanes: 12..16, outage: Outage::At { at_s: 0.5, back_after_s: Some(1.0) } },
    ];
    let bursty = Process::Bursty(Burst { probability: 0.8, spacing: 0.1 });
    for divisible in [true, false] {
        let mut workload = Workload { process: bursty.clone(), ..whole_tasks(0.5, 400) };
        workload.kinds.iter_mut().for_each(|kind| kind.divisible = divisible);
        for policy in BASELINES {
            let [one, same] = [3, 3].map(|seed| run(&fleet, &workload, &options(policy), seed));
            assert_eq!(one, same, "{policy}");
            assert_eq!(one.tasks.completions_s.len(), 360, "{policy}: of 400 tasks 40 are not measured");
            assert!(one.counts.redone > 0, "{policy}");
        }
    }
}

#[test]
fn what_meets_its_deadline_first_is_given_up() {
    let fleet = Fleet::volta_turing_radeon();
    let mut workload = Workload { deadline_factor: Some(0.1), ..whole_tasks(1.5, 1_500) };
    workload.kinds.iter_mut().for_each(|kind| kind.mean_s = 1.0);
    for policy in BASELINES {
        let outcome = run(&fleet, &workload, &options(policy), 1);
        assert!(outcome.tasks.expired > 0, "{policy}");
        assert_eq!(outcome.tasks.completions_s.len() + outcome.tasks.expired, 1_350, "{policy}");
        let latest_s = 0.1 * 1.0 + 1.0;
        assert!(outcome.quantile_s(1.0) <= latest_s + 1e-9, "{policy}: {}", outcome.quantile_s(1.0));
    }
}

/// Randomly chosen queues are independent M/M/1 queues, so they have the textbook's mean.
#[test]
fn blind_queues_are_queues_of_their_own() {
    let fleet = Fleet { classes: vec![Class::new("all", 4, &[1.0])], ..Fleet::default() };
    let mut workload = whole_tasks(0.5, 40_000);
    workload.kinds.truncate(1);
    workload.kinds[0].share = 1.0;
    let found = mean_s(&fleet, &workload, "blind-queues") / 0.2;
    assert!((found / 2.0 - 1.0).abs() < 0.05, "{found} mean sizes, 1 / (1 − 0.5) expected");
}

#[test]
fn who_knows_more_is_done_sooner() {
    let fleet = Fleet::volta_turing_radeon();
    let workload = whole_tasks(0.6, 3_000);
    let of = |policy| mean_s(&fleet, &workload, policy);
    let [blind, affinity, means, sizes, rest] =
        ["blind-queues", "static-affinity", "completion-by-means", "completion-by-sizes", "shortest-rest"]
            .map(of);
    assert!(affinity < blind, "{affinity} {blind}");
    assert!(means < affinity && sizes < means, "{affinity} {means} {sizes}");
    assert!(rest < blind, "{rest} {blind}");
}

/// Agents that learn the speeds of their own lanes come near a rule that knows all speeds and sizes. They do far better
/// than a blind rule.
#[test]
fn agents_that_bid_come_near_to_one_who_knows_all_lanes() {
    let fleet = Fleet::volta_turing_radeon();
    let workload = whole_tasks(0.6, 3_000);
    let [blind, bidding, sizes] =
        ["blind-queues", "bidding", "completion-by-sizes"].map(|policy| mean_s(&fleet, &workload, policy));
    assert!(bidding < blind / 2.0, "{bidding} {blind}");
    assert!((0.98..1.05).contains(&(bidding / sizes)), "{bidding} {sizes}");
}

/// An agent notices when its class becomes ten times slower, and wins fewer tasks.
#[test]
fn an_agent_whose_lanes_become_slow_gets_fewer_tasks() {
    let mut fleet = Fleet {
        classes: vec![Class::new("steady", 2, &[1.0]), Class::new("throttled", 2, &[1.0])],
        ..Fleet::default()
    };
    let mut workload = whole_tasks(0.3, 3_000);
    workload.kinds.truncate(1);
    workload.kinds[0].share = 1.0;
    let slices_of_throttled = |fleet: &Fleet| {
        let options = Options { records: true, ..options("bidding") };
        let outcome = run(fleet, &workload, &options, 1);
        let slices = outcome.ran.iter().filter(|ran| ran.lane >= 2).count();
        slices as f64 / outcome.ran.len() as f64
    };
    let before = slices_of_throttled(&fleet);
    fleet.throttling = vec![Throttling { lanes: 2..4, from_s: 0.0, until_s: 1e6, factor: 0.1 }];
    let after = slices_of_throttled(&fleet);
    assert!((0.3..0.6).contains(&before) && after < before / 3.0, "{before} {after}");
}

/// The linear program's allocation keeps up with a load under which lanes that take any task fall behind.
#[test]
fn an_allocation_keeps_up_where_the_capacity_problem_says_so() {
    let fleet = Fleet::volta_turing_radeon();
    let workload = whole_tasks(0.96, 20_000);
    let late = |policy| {
        let outcome: Outcome = run(&fleet, &workload, &options(policy), 1);
        outcome.present[7..].iter().sum::<f64>() / 3.0
    };
    let [central, allocation] = ["first-come", "lp-allocation"].map(late);
    assert!(allocation < central / 2.0, "{allocation} tasks there, {central} under first-come");
}

/// A kind with ten times as many tasks gets most of the time, because max-min serves all tasks equally.
#[test]
fn max_min_goes_by_tasks_and_not_by_kinds() {
    let fleet = Fleet { classes: vec![Class::new("all", 2, &[1.0, 1.0])], ..Fleet::default() };
    let mut workload = Workload::three_kinds(3.0, 400);
    workload.kinds.truncate(2);
    workload.kinds[0].share = 10.0 / 11.0;
    workload.kinds[1].share = 1.0 / 11.0;
    workload.kinds.iter_mut().for_each(|kind| (kind.mean_s, kind.sizes) = (2.0, Sizes::Fixed));
    let options = Options { records: true, ..options("max-min") };
    let outcome = run(&fleet, &workload, &options, 1);
    let until_ns = (outcome.arrivals_s * 1e9) as i64;
    let of_kind = |kind: usize| -> i64 {
        let ran = outcome.ran.iter().filter(|ran| ran.kind == kind && ran.to_ns < until_ns);
        ran.map(|ran| ran.to_ns - ran.from_ns).sum()
    };
    let share = of_kind(0) as f64 / (of_kind(0) + of_kind(1)) as f64;
    assert!((0.85..0.96).contains(&share), "{share}");
}
