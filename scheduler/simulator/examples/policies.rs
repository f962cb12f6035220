//! The table of docs/scheduling.md: task policies against each other on the published experiment's fleet.
//!
//! ```text
//! cargo run --release -p warptape-simulator --example policies [SEEDS [TASKS]]
//! ```
#![expect(clippy::disallowed_methods, reason = "an example prints, and tells how far it is")]

use std::io::Write;

use warptape_scheduler::TASK_POLICIES;
use warptape_simulator::{Burst, Fleet, Interval, Options, Outcome, Workload, interval, run};

const SLICE_NS: i64 = 4_000_000;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| {
        given.get(index).map_or(default, |text| text.parse().expect("SEEDS and TASKS are numbers"))
    };
    let (seeds, tasks) = (number(0, 20), number(1, 1_000));
    let fleet = Fleet::volta_turing_radeon();
    let mut out = std::io::stdout();
    for (name, burst) in [("Poisson", None), ("bursty", Some(Burst { probability: 0.8, spacing: 0.1 }))] {
        for load in [0.7, 0.85, 0.95] {
            let workload = Workload { burst, ..Workload::three_kinds(load, tasks) };
            let runs = TASK_POLICIES.map(|policy| {
                eprint!("\r{name} {load} {policy}                    ");
                let options = Options { policy: policy.to_owned(), slice_ns: SLICE_NS, ..Options::default() };
                over_seeds(&fleet, &workload, &options, seeds as u64)
            });
            writeln!(out, "\n{name} arrivals, load {load}, {seeds} seeds of {tasks} tasks\n")
                .expect("stdout takes lines");
            writeln!(out, "| policy | mean | p50 | p99 | mean by that of `fair` |\n|---|---|---|---|---|")
                .expect("stdout takes lines");
            for (policy, outcomes) in TASK_POLICIES.iter().zip(&runs) {
                let of = |figure: &dyn Fn(&Outcome) -> f64| {
                    interval(&outcomes.iter().map(figure).collect::<Vec<_>>())
                };
                let ratios: Vec<_> =
                    outcomes.iter().zip(&runs[0]).map(|(one, fair)| one.mean_s() / fair.mean_s()).collect();
                let ms = |Interval { mean, half }| format!("{:.0} ± {:.0} ms", mean * 1e3, half * 1e3);
                let Interval { mean, half } = interval(&ratios);
                let [median, last] =
                    [0.5, 0.99].map(|quantile| ms(of(&|outcome| outcome.quantile_s(quantile))));
                let mean_s = ms(of(&Outcome::mean_s));
                writeln!(out, "| `{policy}` | {mean_s} | {median} | {last} | {mean:.2} ± {half:.2} |")
                    .expect("stdout takes lines");
            }
        }
    }
    eprintln!();
}

/// Runs of all seeds, on as many threads as there are cores.
fn over_seeds(fleet: &Fleet, workload: &Workload, options: &Options, seeds: u64) -> Vec<Outcome> {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let mut outcomes: Vec<(u64, Outcome)> = std::thread::scope(|scope| {
        let of_thread = |thread: u64| {
            scope.spawn(move || {
                (thread..seeds)
                    .step_by(threads as usize)
                    .map(|seed| (seed, run(fleet, workload, options, seed)))
                    .collect::<Vec<_>>()
            })
        };
        let handles: Vec<_> = (0..threads).map(of_thread).collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("a run ends")).collect()
    });
    outcomes.sort_by_key(|(seed, _)| *seed);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}
