//! Prints the tables of docs/scheduling-results.md that compare task policies on the published experiment's fleet.
//!
//! ```text
//! cargo run --release --features lab --example policies [SEEDS [TASKS]]
//! ```

use warptape_pipeline::commands::simulate::production;
use warptape_scheduler::TASK_POLICIES;
use warptape_simulator::{
    Burst, Fleet, Interval, Options, Outcome, Process, Workload, clairvoyant, interval, run,
};

const ARRIVALS: [(&str, Process); 2] =
    [("Poisson", Process::Poisson), ("Bursty", Process::Bursty(Burst { probability: 0.8, spacing: 0.1 }))];
/// Number of tasks in runs that must show growth, as a multiple of the number in other runs.
const LONG: usize = 20;
/// Time from arrival to deadline, beyond one second, in multiples of the mean size.
const DEADLINE_FACTOR: f64 = 5.0;

/// The fleet, seeds and number of tasks of all tables.
struct Scope {
    fleet: Fleet,
    seeds: u64,
    tasks: usize,
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| {
        given.get(index).map_or(default, |text| text.parse().expect("SEEDS and TASKS are numbers"))
    };
    let scope =
        Scope { fleet: Fleet::volta_turing_radeon(), seeds: number(0, 20) as u64, tasks: number(1, 1_000) };
    println!("{} seeds of {} tasks.", scope.seeds, scope.tasks);
    scope.stability();
    scope.deadlines();
    scope.clairvoyants();
    scope.completions();
    eprintln!();
}

impl Scope {
    /// Prints whether the number of waiting tasks grows without bound.
    fn stability(&self) {
        println!("\n### Growth of what is there, load 0.95\n");
        println!("| arrivals | policy | tasks there in the second tenth | in the last tenth | growth |");
        println!("|---|---|---|---|---|");
        for (name, process) in ARRIVALS {
            let workload = Workload { process, ..Workload::three_kinds(0.95, LONG * self.tasks) };
            for policy in ["fair", "lp-price"] {
                let outcomes = self.over_seeds(&workload, policy);
                let [early, late] = [1, 9].map(|part| plain(of(&outcomes, &|outcome| outcome.present[part])));
                let Interval { mean, half } = of(&outcomes, &Outcome::growth_per_s);
                println!("| {name} | `{policy}` | {early} | {late} | {mean:.2} ± {half:.2} tasks/s |");
            }
        }
    }

    /// Prints how many deadlines are missed, and how much work is done in time.
    fn deadlines(&self) {
        println!("\n### Deadlines, load 0.85\n");
        println!(
            "| arrivals | policy | missed | done in time, by capacity | arrived, by capacity | mean | p99 |"
        );
        println!("|---|---|---|---|---|---|---|");
        for (name, process) in ARRIVALS {
            let deadline_factor = Some(DEADLINE_FACTOR);
            let workload =
                Workload { process, deadline_factor, ..Workload::three_kinds(0.85, 3 * self.tasks) };
            let capacity = self.fleet.capacity(&workload.mix());
            for policy in ["fair", "lp-price", "earliest-deadline", "least-laxity"] {
                let outcomes = self.over_seeds(&workload, policy);
                let by_capacity = |work_s: fn(&Outcome) -> f64| {
                    let share = |outcome: &Outcome| work_s(outcome) / outcome.measured_s / capacity;
                    let Interval { mean, half } = of(&outcomes, &share);
                    format!("{mean:.4} ± {half:.4}")
                };
                let Interval { mean, half } = of(&outcomes, &|outcome| outcome.missed() * 100.0);
                let missed = format!("{mean:.3} ± {half:.3} %");
                let [done, arrived] = [
                    by_capacity(|outcome| outcome.tasks.in_time_s),
                    by_capacity(|outcome| outcome.tasks.offered_s),
                ];
                let [mean, last] =
                    [ms(of(&outcomes, &Outcome::mean_s)), ms(of(&outcomes, &|one| one.quantile_s(0.99)))];
                println!("| {name} | `{policy}` | {missed} | {done} | {arrived} | {mean} | {last} |");
            }
        }
    }

    /// Prints how the policies compare with the best schedules that know all sizes.
    fn clairvoyants(&self) {
        println!("\n### Against schedules that know all sizes\n");
        println!("| mean size | load | bound | best found | `lp-price` | `fair` | best by `lp-price` |");
        println!("|---|---|---|---|---|---|---|");
        for (mean_s, load) in [(0.2, 0.7), (2.0, 0.7), (2.0, 0.85), (2.0, 0.95)] {
            let mut workload = Workload::three_kinds(load, self.tasks);
            workload.kinds.iter_mut().for_each(|kind| kind.mean_s = mean_s);
            let [prices, fair] = ["lp-price", "fair"].map(|policy| self.over_seeds(&workload, policy));
            let warmup = Options::default().warmup;
            let least = |seed| clairvoyant::bound(&self.fleet, &workload, warmup, seed);
            let best = |seed| {
                let found = clairvoyant::schedules(&self.fleet, &workload, warmup, seed);
                found.into_iter().fold(f64::INFINITY, f64::min)
            };
            let both = |seed| (least(seed), best(seed));
            let (least, best): (Vec<_>, Vec<_>) = (0..self.seeds).map(both).unzip();
            let ratios: Vec<_> = best.iter().zip(&prices).map(|(best, one)| best / one.mean_s()).collect();
            let Interval { mean, half } = interval(&ratios);
            let [least, best] = [&least, &best].map(|means| ms(interval(means)));
            let [prices, fair] = [&prices, &fair].map(|outcomes| ms(of(outcomes, &Outcome::mean_s)));
            println!(
                "| {mean_s} s | {load} | {least} | {best} | {prices} | {fair} | {mean:.3} ± {half:.3} |"
            );
        }
    }

    /// Prints completion times under every policy.
    fn completions(&self) {
        for (name, process) in ARRIVALS {
            for load in [0.7, 0.85, 0.95] {
                let process = process.clone();
                let workload = Workload { process, ..Workload::three_kinds(load, self.tasks) };
                let runs = TASK_POLICIES.map(|policy| self.over_seeds(&workload, policy));
                println!("\n### {name} arrivals, load {load}\n");
                println!("| policy | mean | p50 | p99 | mean by that of `fair` |\n|---|---|---|---|---|");
                for (policy, outcomes) in TASK_POLICIES.iter().zip(&runs) {
                    let pairs = outcomes.iter().zip(&runs[0]);
                    let ratios: Vec<_> = pairs.map(|(one, fair)| one.mean_s() / fair.mean_s()).collect();
                    let Interval { mean, half } = interval(&ratios);
                    let [median, last] =
                        [0.5, 0.99].map(|quantile| ms(of(outcomes, &|outcome| outcome.quantile_s(quantile))));
                    let mean_s = ms(of(outcomes, &Outcome::mean_s));
                    println!("| `{policy}` | {mean_s} | {median} | {last} | {mean:.2} ± {half:.2} |");
                }
            }
        }
    }

    /// Runs all seeds, on as many threads as there are cores, and returns the outcomes.
    fn over_seeds(&self, workload: &Workload, policy: &str) -> Vec<Outcome> {
        eprint!("\r{:.2} {policy}                    ", workload.load);
        let options = Options::of_production(policy, &production());
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let mut outcomes: Vec<(u64, Outcome)> = std::thread::scope(|scope| {
            let of_thread = |thread: u64| {
                let options = &options;
                let seeds = (thread..self.seeds).step_by(threads as usize);
                scope.spawn(move || {
                    seeds.map(|seed| (seed, run(&self.fleet, workload, options, seed))).collect::<Vec<_>>()
                })
            };
            let handles: Vec<_> = (0..threads).map(of_thread).collect();
            handles.into_iter().flat_map(|handle| handle.join().expect("a run ends")).collect()
        });
        outcomes.sort_by_key(|(seed, _)| *seed);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

fn of(outcomes: &[Outcome], figure: &dyn Fn(&Outcome) -> f64) -> Interval {
    interval(&outcomes.iter().map(figure).collect::<Vec<_>>())
}

fn ms(Interval { mean, half }: Interval) -> String {
    format!("{:.0} ± {:.0} ms", mean * 1e3, half * 1e3)
}

fn plain(Interval { mean, half }: Interval) -> String {
    format!("{mean:.0} ± {half:.0}")
}
