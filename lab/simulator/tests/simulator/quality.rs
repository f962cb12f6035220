//! Tests of the model against formulas, and of policies against each other on the same arrivals.

use warptape_scheduler::TASK_POLICIES;
use warptape_simulator::{
    Burst, Class, Closed, Fleet, Interval, Options, Outcome, Process, Sizes, TaskKind, Tenant, Workload,
    clairvoyant, interval, jain, run,
};

const BURSTY: Process = Process::Bursty(Burst { probability: 0.8, spacing: 0.1 });

fn options(policy: &str) -> Options {
    Options { policy: policy.to_owned(), slice_ns: 4_000_000, ..Options::default() }
}

fn over_seeds(fleet: &Fleet, workload: &Workload, policy: &str, seeds: u64) -> Vec<Outcome> {
    (0..seeds).map(|seed| run(fleet, workload, &options(policy), seed)).collect()
}

/// Returns the mean completion time on one server with the speed of all lanes, served in order of arrival, by Lindley's
/// recursion.
fn by_recursion(fleet: &Fleet, workload: &Workload, seed: u64) -> f64 {
    let speed: f64 = fleet.classes.iter().map(|class| class.lanes as f64 * class.speeds[0]).sum();
    let (mut free_s, mut sum, arrivals) = (0.0f64, 0.0, workload.arrivals(fleet, seed));
    let measured = arrivals.len() / 10;
    for (number, arrival) in arrivals.iter().enumerate() {
        let at_s = arrival.at_ns as f64 / 1e9;
        free_s = free_s.max(at_s) + arrival.units as f64 / workload.units_per_s / speed;
        sum += if number >= measured { free_s - at_s } else { 0.0 };
    }
    sum / (arrivals.len() - measured) as f64
}

fn one_kind(lanes: usize, mean_s: f64, load: f64, tasks: usize) -> (Fleet, Workload) {
    let class = Class::new("all", lanes, &[1.0]);
    let kind = TaskKind { mean_s, share: 1.0, ..Workload::three_kinds(load, tasks).kinds[0].clone() };
    let fleet = Fleet { classes: vec![class], ..Fleet::default() };
    (fleet, Workload { kinds: vec![kind], ..Workload::three_kinds(load, tasks) })
}

/// One lane that runs tasks in order is a queue with one server; its mean over long runs matches the textbook.
#[test]
fn one_lane_is_a_queue_with_one_server() {
    let (fleet, workload) = one_kind(1, 0.2, 0.5, 2_000);
    for seed in 0..3 {
        let (found, expected) = (
            run(&fleet, &workload, &options("first-come"), seed).mean_s(),
            by_recursion(&fleet, &workload, seed),
        );
        assert!(
            (found / expected - 1.0).abs() < 1e-4,
            "seed {seed}: {found} s, {expected} s by the recursion"
        );
    }
    let long = Workload { tasks: 200_000, ..workload };
    let means: Vec<_> = (0..5).map(|seed| by_recursion(&fleet, &long, seed)).collect();
    let (found, expected) = (interval(&means), 0.2 / (1.0 - 0.5));
    assert!((found.mean - expected).abs() < 2.0 * found.half, "{found:?}, expected {expected}");
}

/// Returns a figure with its interval, from runs with one kind of indivisible tasks under first come first served.
fn indivisible(
    lanes: usize,
    load: f64,
    sizes: Sizes,
    process: Process,
    figure: fn(&Outcome) -> f64,
) -> Interval {
    let (fleet, mut workload) = one_kind(lanes, 1.0, load, 20_000);
    workload.kinds[0].sizes = sizes;
    workload.kinds[0].divisible = false;
    workload.process = process;
    let options = Options { policy: "first-come".to_owned(), ..Options::default() };
    interval(&(0..20).map(|seed| figure(&run(&fleet, &workload, &options, seed))).collect::<Vec<_>>())
}

fn check(found: Interval, expected: f64, most: f64) {
    assert!((found.mean - expected).abs() < found.half, "{found:?}, expected {expected}");
    assert!(found.half < most * expected, "{found:?} is too wide an interval for {expected}");
}

#[test]
fn queues_are_those_of_their_formulas() {
    // The formulas are M/M/1 at a load of 0.7, and M/D/1 by Pollaczek and Khinchine.
    let mean = |lanes, load, sizes| indivisible(lanes, load, sizes, Process::Poisson, Outcome::mean_s);
    check(mean(1, 0.7, Sizes::Exponential), 1.0 / (1.0 - 0.7), 0.1);
    check(mean(1, 0.7, Sizes::Fixed), 1.0 + 0.7 / (2.0 * (1.0 - 0.7)), 0.1);
    // The formula is M/M/16 at a load of 0.85, by Erlang's C.
    let (lanes, offered) = (16.0, 16.0 * 0.85);
    let blocked =
        (1..=16).fold(1.0, |blocked, lane| offered * blocked / (f64::from(lane) + offered * blocked));
    let waits = blocked / (1.0 - 0.85 * (1.0 - blocked));
    check(mean(16, 0.85, Sizes::Exponential), 1.0 + waits / (lanes - offered), 0.1);
}

/// Eight senders with a mean think time of two seconds share one lane. This is the machine repair model, a closed
/// network of two stations.
#[test]
fn a_closed_loop_is_the_closed_network_of_its_formula() {
    let (senders, think_s) = (8, 2.0);
    let closed = Process::Closed(Closed { senders, think_s });
    let throughput = |outcome: &Outcome| outcome.tasks.completions_s.len() as f64 / outcome.measured_s;
    let found = indivisible(1, 0.0, Sizes::Exponential, closed.clone(), throughput);
    // The expected values come from mean value analysis.
    let (mut present, mut rate) = (0.0, 0.0);
    for senders in 1..=senders {
        let stays_s = 1.0 + present;
        rate = senders as f64 / (think_s + stays_s);
        present = rate * stays_s;
    }
    check(found, rate, 0.05);
    let stays = indivisible(1, 0.0, Sizes::Exponential, closed, Outcome::mean_s);
    check(stays, present / rate, 0.1);
}

/// Lanes that share every task by the dynamic split equal one fast lane, except near the ends of tasks.
#[test]
fn lanes_that_share_tasks_are_one_fast_lane() {
    let (fleet, workload) = one_kind(8, 1.6, 0.7, 1_000);
    for seed in 0..3 {
        let (found, expected) = (
            run(&fleet, &workload, &options("first-come"), seed).mean_s(),
            by_recursion(&fleet, &workload, seed),
        );
        assert!(
            (found / expected - 1.0).abs() < 0.03,
            "seed {seed}: {found} s, {expected} s by the recursion"
        );
    }
}

#[test]
fn a_seed_gives_the_same_run() {
    let fleet = Fleet::volta_turing_radeon();
    let workload = Workload { deadline_factor: Some(5.0), ..Workload::three_kinds(0.8, 300) };
    for policy in TASK_POLICIES {
        let [one, same, other] = [3, 3, 4].map(|seed| run(&fleet, &workload, &options(policy), seed));
        assert_eq!(one, same, "{policy}");
        assert_ne!(one, other, "{policy}");
        let ended = one.tasks.completions_s.len() + one.tasks.rejected + one.tasks.expired;
        assert_eq!(ended, 270, "{policy}: of 300 tasks 30 are not measured");
    }
}

/// Prices send each kind to the lanes that are comparatively fast at it. On unequal lanes, tasks are done sooner than
/// if every lane took the next task, whose capacity is 6 % lower.
#[test]
fn prices_beat_the_dynamic_split_on_unlike_lanes() {
    let fleet = Fleet::volta_turing_radeon();
    for process in [Process::Poisson, BURSTY] {
        let workload = Workload { process: process.clone(), ..Workload::three_kinds(0.85, 1_000) };
        let [prices, split] = ["lp-price", "fair"].map(|policy| over_seeds(&fleet, &workload, policy, 4));
        let ratios: Vec<_> =
            prices.iter().zip(&split).map(|(one, other)| one.mean_s() / other.mean_s()).collect();
        let ratio = interval(&ratios);
        assert!(ratio.mean < 0.65, "{process:?}: {ratio:?} of the dynamic split's mean completion time");
    }
}

/// The load lies between the capacity of the dynamic split and the capacity of the fleet. Tasks pile up under the
/// dynamic split but not under prices.
#[test]
fn at_a_load_of_095_tasks_gather_under_the_dynamic_split_alone() {
    let fleet = Fleet::volta_turing_radeon();
    let workload = Workload::three_kinds(0.95, 8_000);
    let [split, prices] = ["fair", "lp-price"].map(|policy| run(&fleet, &workload, &options(policy), 0));
    let [early, late] =
        [&split.present[1..4], &split.present[7..]].map(|parts| parts.iter().sum::<f64>() / 3.0);
    assert!(late > early + 20.0, "the dynamic split: {:?}", split.present);
    let latest = prices.present[7..].iter().sum::<f64>() / 3.0;
    assert!(latest < late / 3.0, "prices: {:?}", prices.present);
}

/// At a load of 0.85, also in bursts, tasks with deadlines are done in time, and their work adds up to the work that
/// arrives.
#[test]
fn prices_meet_deadlines() {
    let fleet = Fleet::volta_turing_radeon();
    for process in [Process::Poisson, BURSTY] {
        let workload = Workload {
            process: process.clone(),
            deadline_factor: Some(5.0),
            ..Workload::three_kinds(0.85, 1_500)
        };
        for outcome in over_seeds(&fleet, &workload, "lp-price", 1) {
            assert!(outcome.missed() < 0.001, "{process:?}: {} missed", outcome.missed());
            assert!(outcome.tasks.in_time_s > 0.999 * outcome.tasks.offered_s, "{process:?}");
            let goodput = outcome.tasks.in_time_s / outcome.measured_s / fleet.capacity(&workload.mix());
            assert!(goodput > 0.75, "{process:?}: {goodput} of capacity");
        }
    }
}

/// If slices are short compared with tasks, the mean is near that of the best schedule that knows every size.
#[test]
fn prices_come_near_schedules_that_know_all_sizes() {
    let fleet = Fleet::volta_turing_radeon();
    let mut workload = Workload::three_kinds(0.7, 300);
    workload.kinds.iter_mut().for_each(|kind| kind.mean_s = 2.0);
    let ratio = |seed| {
        let achieved = run(&fleet, &workload, &options("lp-price"), seed).mean_s();
        let found = clairvoyant::schedules(&fleet, &workload, 0.1, seed);
        let (best, bound) = (
            found.into_iter().fold(f64::INFINITY, f64::min),
            clairvoyant::bound(&fleet, &workload, 0.1, seed),
        );
        assert!(bound <= best && bound < achieved, "bound {bound}, best {best}, achieved {achieved}");
        best / achieved
    };
    let found = interval(&(0..2).map(ratio).collect::<Vec<_>>());
    assert!(found.mean >= 0.95, "{found:?} of the best");
}

/// Under overload, tenants get lane time in proportion to their weights.
#[test]
fn tenants_have_lane_time_by_their_weights() {
    let fleet = Fleet::volta_turing_radeon();
    let tenant = |(name, weight): (&str, i32)| Tenant { name: name.to_owned(), weight, share: 1.0 / 3.0 };
    let tenants: Vec<_> = [("a", 1), ("b", 2), ("c", 3)].map(tenant).into();
    for policy in ["fair", "lp-price"] {
        let workload = Workload { tenants: tenants.clone(), ..Workload::three_kinds(2.5, 1_500) };
        let outcome = run(&fleet, &workload, &options(policy), 1);
        let index = jain(&outcome.service_by_weight);
        assert!(index >= 0.98, "{policy}: {index} of {:?}", outcome.service_by_weight);
    }
}
