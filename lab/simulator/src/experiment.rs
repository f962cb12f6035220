//! The published experiment on a mixed cluster, redone: 16 GPUs, three kinds of jobs, a job on one GPU, in a closed loop and in an open one.
//!
//! It says which runs there are and what they come to as a page; who runs them, on how many cores, is the caller's.

use warptape_events::journal::SchedulerConfig;

use crate::figures;
use crate::outcome::{Interval, Outcome, interval};
use crate::workload::{Closed, Process, TaskKind, Workload};
use crate::{BASELINES, Fleet, Options};

/// Jobs in flight in the closed loop.
pub const IN_FLIGHT: usize = 16;
/// Mean time of a job on Volta, in seconds: the one number that is fitted, so that first come first served takes about what was printed.
pub const MEAN_S: f64 = 12.4;
/// Loads of the open loop: about what first come first served does in the closed one, and one that it cannot keep up with.
pub const LOADS: [f64; 2] = [0.51, 0.85];
/// Jobs of a run.
pub const JOBS: usize = 20_000;

/// A way to give jobs to GPUs.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The policy that does it.
    pub policy: &'static str,
    /// What it is called in tables.
    pub name: &'static str,
    /// What was printed of it: seconds of a job, jobs in an hour, and per cent of utilisation. None: we have no printed number.
    pub printed: Option<[f64; 3]>,
}

const fn method(policy: &'static str, name: &'static str) -> Method {
    Method { policy, name, printed: None }
}

/// All methods, the one that was printed first.
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

/// A loop of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Load of the open loop; none: the closed loop.
    pub load: Option<f64>,
    /// What comes.
    pub workload: Workload,
}

/// The closed loop, and the open one at each load.
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
    /// True if its rows are of production as it is configured; the others are rules alone.
    fn is_of_production(&self) -> bool {
        self.name.ends_with(OF_PRODUCTION)
    }
}

/// How the names of methods end that are production's.
const OF_PRODUCTION: &str = "of production";

/// How a method is run, where production is configured like this.
pub fn options(method: &Method, production: &SchedulerConfig) -> Options {
    match method.is_of_production() {
        true => Options::of_production(method.policy, production),
        false => Options { policy: method.policy.to_owned(), ..Options::default() },
    }
}

/// What a method came to in a scene, a run a seed.
#[derive(Clone, Debug)]
pub struct Found {
    /// The scene, by its index.
    pub scene: usize,
    /// The method, by its index.
    pub method: usize,
    /// Its runs.
    pub outcomes: Vec<Outcome>,
}

fn of(outcomes: &[Outcome], figure: impl Fn(&Outcome) -> f64) -> Interval {
    interval(&outcomes.iter().map(figure).collect::<Vec<_>>())
}

/// Share of all lane time in which lanes worked.
fn utilisation(outcome: &Outcome, lanes: usize) -> f64 {
    outcome.busy_s.iter().sum::<f64>() / lanes as f64 / outcome.arrivals_s
}

/// HyperScore as printed, 100 × (1 + σ(β ln V + γ)^κ) with β = 5, γ = −ln 2 and κ = 2.1, of a value V from 0 to 1. As σ(5 ln V − ln 2) is
/// V⁵ ÷ (V⁵ + 2), it is taken without a logarithm.
pub fn hyper_score(value: f64) -> f64 {
    let fifth = value * value * value * value * value;
    let sigma = fifth / (fifth + 2.0);
    100.0 * (1.0 + sigma * sigma * tenth_root(sigma))
}

/// The tenth root of a number from 0 to 1, by Newton's method on the fifth root of its square root.
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

/// The page: what was printed beside what is found, and why the printed table cannot be right as it stands.
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

/// Whether jobs gather: more than a twentieth of those that come stay, beyond doubt.
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

/// Of one scene and seed, the best mean completion time found and the bound, where there are such.
pub fn ideal(fleet: &Fleet, scene: &Scene, seed: u64) -> Option<(f64, f64)> {
    figures::ideal(fleet, &scene.workload, Options::default().warmup, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    /// As good as production's: what it is configured with shows in the table alone.
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

    /// The reading under which the printed row fits: jobs in 10 s, 16 in flight, blind queues.
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
        // Little's law: what is in flight is throughput × time.
        assert!((mean_s * done / 10.0 / IN_FLIGHT as f64 - 1.0).abs() < 0.01, "{mean_s} {done}");
        // Sixteen jobs and one queue: no lane is ever idle.
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
