//! Repeats the published experiment on a mixed cluster: 16 GPUs, three kinds of jobs, one GPU per job, in a closed and
//! an open loop.
//!
//! The module lists the runs and makes a page of their results. The caller executes the runs, on as many cores as it
//! likes.

use warptape_events::journal::SchedulerConfig;

use crate::figures;
use crate::outcome::{Interval, Outcome, interval};
use crate::workload::{Closed, Process, TaskKind, Workload};
use crate::{BASELINES, Fleet, Options};

/// Jobs in flight in the closed loop.
pub const IN_FLIGHT: usize = 16;
/// Mean time of a job on Volta, in seconds. It is the only fitted number: with it, first come first served takes about
/// the published time.
pub const MEAN_S: f64 = 12.4;
/// Loads of the open loop. The first is about the load of first come first served in the closed loop; the second
/// exceeds its capacity.
pub const LOADS: [f64; 2] = [0.51, 0.85];
/// Number of jobs of a run.
pub const JOBS: usize = 20_000;

/// A way to assign jobs to GPUs.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The policy's name.
    pub policy: &'static str,
    /// The method's name in tables.
    pub name: &'static str,
    /// Published figures: seconds per job, jobs per hour, and percent of utilisation; `None` if none were published.
    pub printed: Option<[f64; 3]>,
}

const fn method(policy: &'static str, name: &'static str) -> Method {
    Method { policy, name, printed: None }
}

/// All methods; the published one comes first.
pub const METHODS: [Method; 16] = [
    Method { policy: "round-robin", name: "FCFS, blind queues by turns", printed: Some([25.8, 6.2, 58.1]) },
    method("blind-queues", "FCFS, blind queues by draws"),
    method("first-come", "FCFS, one queue"),
    method("static-affinity", "static affinity by class"),
    method("weighted-round-robin", "weighted round robin, dynamic weights"),
    method("shortest-queue", "shortest queue"),
    method("two-choices", "two choices"),
    method("score-utilization", "score × (1 − utilisation)"),
    method("completion-by-means", "earliest completion, means of kinds"),
    method("earliest-completion", "earliest completion, speeds learnt"),
    method("completion-by-sizes", "earliest completion, true sizes and speeds"),
    method("max-min", "max-min fairness, as in Gavel"),
    method("lp-allocation", "LP allocation"),
    method("shortest-rest", "shortest rest, by true sizes"),
    method("fair", "`fair` of production"),
    method("lp-price", "`lp-price` of production"),
];

/// A closed or open loop of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Load of the open loop; `None` for the closed loop.
    pub load: Option<f64>,
    /// The jobs that arrive.
    pub workload: Workload,
}

/// Returns the closed loop, and the open loop at each load.
pub fn scenes(jobs: usize) -> Vec<Scene> {
    let scene = |load: Option<f64>| {
        let mut workload = Workload::three_kinds(load.unwrap_or(0.0), jobs);
        let kind = |kind: TaskKind| TaskKind { mean_s: MEAN_S, divisible: false, ..kind };
        workload.kinds = workload.kinds.into_iter().map(kind).collect();
        if load.is_none() {
            workload.process = Process::Closed(Closed { senders: IN_FLIGHT, think_s: 0.0 });
        }
        Scene { load, workload }
    };
    std::iter::once(None).chain(LOADS.map(Some)).map(scene).collect()
}

impl Method {
    /// True if the method runs with the production configuration; other methods run with the simulator's default.
    fn is_of_production(&self) -> bool {
        self.name.ends_with(OF_PRODUCTION)
    }
}

/// Suffix of the names of methods that run with the production configuration.
const OF_PRODUCTION: &str = "of production";

/// Returns the options of a method's runs, given the production configuration.
pub fn options(method: &Method, production: &SchedulerConfig) -> Options {
    match method.is_of_production() {
        true => Options::of_production(method.policy, production),
        false => Options { policy: method.policy.to_owned(), ..Options::default() },
    }
}

/// The results of a method in a scene, one run per seed.
#[derive(Clone, Debug)]
pub struct Found {
    /// Index of the scene.
    pub scene: usize,
    /// Index of the method.
    pub method: usize,
    /// One outcome per seed.
    pub outcomes: Vec<Outcome>,
}

fn of(outcomes: &[Outcome], figure: impl Fn(&Outcome) -> f64) -> Interval {
    interval(&outcomes.iter().map(figure).collect::<Vec<_>>())
}

/// Returns the busy share of all lane time until the last arrival.
fn utilisation(outcome: &Outcome, lanes: usize) -> f64 {
    outcome.busy_s.iter().sum::<f64>() / lanes as f64 / outcome.arrivals_s
}

/// Returns the HyperScore of a value V from 0 to 1, as published: `100 × (1 + σ(β ln V + γ)^κ)` with β = 5, γ = −ln 2
/// and κ = 2.1. It needs no logarithm, because σ(5 ln V − ln 2) is V⁵ ÷ (V⁵ + 2).
pub fn hyper_score(value: f64) -> f64 {
    let fifth = value * value * value * value * value;
    let sigma = fifth / (fifth + 2.0);
    100.0 * (1.0 + sigma * sigma * tenth_root(sigma))
}

/// Returns the tenth root of a number from 0 to 1, by Newton's method for the fifth root of its square root.
fn tenth_root(number: f64) -> f64 {
    let square = number.sqrt();
    let mut root = 1.0;
    if square == 0.0 {
        return 0.0;
    }
    for _ in 0..200 {
        let fourth = root * root * root * root;
        root -= (root * fourth - square) / (5.0 * fourth);
    }
    root
}

fn cell(Interval { mean, half }: Interval, digits: usize) -> String {
    format!("{mean:.digits$} ± {half:.digits$}")
}

/// Returns the page, which shows published figures beside the simulated ones.
pub fn page(
    fleet: &Fleet,
    scenes: &[Scene],
    found: &[Found],
    ideals: &[Vec<(f64, f64)>],
    seeds: u64,
) -> String {
    let mut page = closed_loop(fleet, scenes, found);
    for (index, scene) in scenes.iter().enumerate().filter(|(_, scene)| scene.load.is_some()) {
        page += &open_loop(fleet, index, scene, found, &ideals[index]);
    }
    let jobs = scenes[0].workload.tasks;
    page += &format!(
        "\n{seeds} seeds of {jobs} jobs each, the first tenth not measured. * is of the simulator alone: it knows the lanes' speeds, the mix or sizes, which no \
         scheduler in production does, or is a baseline that nobody should run.\n"
    );
    page
}

fn closed_loop(fleet: &Fleet, scenes: &[Scene], found: &[Found]) -> String {
    let mut page = format!(
        "#### Closed loop, {IN_FLIGHT} jobs in flight\n\n| method | printed: s, jobs/h, utilisation | mean | p99 | jobs in 10 s | utilisation | \
         HyperScore of the utilisation |\n|---|---|---|---|---|---|---|\n"
    );
    for Found { method, outcomes, .. } in found.iter().filter(|found| scenes[found.scene].load.is_none()) {
        let method = METHODS[*method];
        let printed = method
            .printed
            .map_or("–".to_owned(), |[mean_s, per_h, percent]| format!("{mean_s} s, {per_h}, {percent} %"));
        let busy = of(outcomes, |outcome| utilisation(outcome, fleet.lanes()));
        let percent = Interval { mean: busy.mean * 100.0, half: busy.half * 100.0 };
        let done =
            of(outcomes, |outcome| outcome.tasks.completions_s.len() as f64 / outcome.measured_s * 10.0);
        page += &format!(
            "| {} | {printed} | {} s | {} s | {} | {} % | {:.2} |\n",
            named(&method),
            cell(of(outcomes, Outcome::mean_s), 2),
            cell(of(outcomes, |outcome| outcome.quantile_s(0.99)), 1),
            cell(done, 2),
            cell(percent, 1),
            hyper_score(busy.mean)
        );
    }
    page
}

fn open_loop(fleet: &Fleet, index: usize, scene: &Scene, found: &[Found], ideals: &[(f64, f64)]) -> String {
    let load = scene.load.unwrap_or_default();
    let rate = scene.workload.rate(fleet) * 10.0;
    let mut page = format!(
        "\n#### Open loop, load {load}: {rate:.2} jobs in 10 s\n\n| method | mean | p99 | utilisation | growth |\n|---|---|---|---|---|\n"
    );
    for Found { method, outcomes, .. } in found.iter().filter(|found| found.scene == index) {
        let percent = of(outcomes, |outcome| 100.0 * utilisation(outcome, fleet.lanes()));
        page += &format!(
            "| {} | {} s | {} s | {} % | {} |\n",
            named(&METHODS[*method]),
            cell(of(outcomes, Outcome::mean_s), 1),
            cell(of(outcomes, |outcome| outcome.quantile_s(0.99)), 1),
            cell(percent, 1),
            growth(of(outcomes, Outcome::growth_per_s), rate / 10.0)
        );
    }
    let (best, least): (Vec<f64>, Vec<f64>) = ideals.iter().copied().unzip();
    for (name, means) in [("(best that knows all sizes)", best), ("(bound)", least)] {
        page += &format!("| {name} | {} s | | | |\n", cell(interval(&means), 1));
    }
    page
}

/// Returns in words whether jobs pile up. They do if the growth is significant and above a twentieth of the arrival
/// rate.
fn growth(growth: Interval, rate: f64) -> String {
    match growth.mean - growth.half > 0.0 && growth.mean > rate / 20.0 {
        true => format!("without end: {} jobs/s stay", cell(growth, 2)),
        false => "none".to_owned(),
    }
}

fn named(method: &Method) -> String {
    let mark = if BASELINES.contains(&method.policy) { " *" } else { "" };
    format!("{}{mark}", method.name)
}

/// Returns the best mean completion time and the bound of one scene and seed; `None` in a closed loop.
pub fn ideal(fleet: &Fleet, scene: &Scene, seed: u64) -> Option<(f64, f64)> {
    figures::ideal(fleet, &scene.workload, Options::default().warmup, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    /// Returns a production configuration. Any one will do, because the test only reads tables.
    fn production() -> SchedulerConfig {
        crate::options::started(&Fleet::volta_turing_radeon(), &scenes(1)[0].workload, &Options::default())
            .scheduler
    }

    #[test]
    fn hyper_score_lies_between_100_and_110_whatever_happens() {
        assert_eq!(hyper_score(0.0), 100.0);
        // (1/3) to the power of 2.1.
        assert!((hyper_score(1.0) - 109.9557).abs() < 1e-3, "{}", hyper_score(1.0));
        let scores: Vec<f64> = (0..=100).map(|percent| hyper_score(f64::from(percent) / 100.0)).collect();
        assert!(scores.is_sorted() && scores.iter().all(|score| (100.0..110.0).contains(score)));
    }

    /// The published row fits if its figures are read as jobs in 10 s, with 16 in flight and blind queues.
    #[test]
    fn blind_queues_give_the_printed_row_and_a_single_queue_does_not() {
        let fleet = Fleet::volta_turing_radeon();
        let scene = &scenes(JOBS)[0];
        let of = |index: usize| {
            let outcomes: Vec<_> = (0..3)
                .map(|seed| run(&fleet, &scene.workload, &options(&METHODS[index], &production()), seed))
                .collect();
            let mean = |figure: &dyn Fn(&Outcome) -> f64| of(&outcomes, figure).mean;
            let done = mean(&|outcome| outcome.tasks.completions_s.len() as f64 / outcome.measured_s * 10.0);
            (mean(&Outcome::mean_s), done, mean(&|outcome| utilisation(outcome, 16) * 100.0))
        };
        let (mean_s, done, percent) = of(0);
        let [printed_s, printed_done, printed_percent] = METHODS[0].printed.unwrap();
        assert!((mean_s / printed_s - 1.0).abs() < 0.03, "{mean_s} s");
        assert!((done / printed_done - 1.0).abs() < 0.03, "{done} in 10 s");
        assert!((percent - printed_percent).abs() < 1.5, "{percent} %");
        // By Little's law, the number of jobs in flight is throughput × time.
        assert!((mean_s * done / 10.0 / IN_FLIGHT as f64 - 1.0).abs() < 0.01, "{mean_s} {done}");
        // With sixteen jobs and one queue, no lane is ever idle.
        assert!(of(2).2 > 99.0);
    }

    #[test]
    fn every_method_is_a_policy_and_stands_on_the_page() {
        let fleet = Fleet::volta_turing_radeon();
        let scenes = scenes(60);
        let mut found = Vec::new();
        for (scene, at) in scenes.iter().enumerate() {
            for (method, one) in METHODS.iter().enumerate() {
                let outcomes = vec![run(&fleet, &at.workload, &options(one, &production()), 1)];
                assert_eq!(outcomes[0].tasks.completions_s.len(), 54, "{}", one.policy);
                found.push(Found { scene, method, outcomes });
            }
        }
        let ideals: Vec<Vec<_>> =
            scenes.iter().map(|scene| ideal(&fleet, scene, 1).into_iter().collect()).collect();
        let page = page(&fleet, &scenes, &found, &ideals, 1);
        for method in METHODS {
            assert_eq!(page.matches(&format!("| {}", method.name)).count(), 3, "{page}");
        }
        assert!(page.contains("| 25.8 s, 6.2, 58.1 % |"), "{page}");
    }
}
