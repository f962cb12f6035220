//! Prints the table of docs/scheduling-results.md that compares `linucb` with rules, on arrivals and fleets for which
//! nothing was tuned.
//!
//! ```text
//! cargo run --release --features lab --example learned [SEEDS [TASKS]]
//! ```
//!
//! Each cell is the mean completion time under `linucb` divided by that under the other policy, paired by seed, with
//! its 95 % interval. A cell is a win if the interval is below 1, a loss if it is above 1, and a tie otherwise.

use warptape_pipeline::commands::simulate::production;
use warptape_simulator::{
    Burst, Failure, Fleet, Interval, Options, Outage, Outcome, Process, Throttling, Workload, interval, run,
};

const LEARNED: &str = "linucb";
const RIVALS: [&str; 3] = ["lp-price", "fair", "earliest-completion"];
/// First seed; no other table uses these seeds.
const FIRST_SEED: u64 = 10_000;
const BURSTY: Process = Process::Bursty(Burst { probability: 0.8, spacing: 0.1 });
const BURSTIER: Process = Process::Bursty(Burst { probability: 0.9, spacing: 0.05 });

struct Case {
    name: &'static str,
    fleet: Fleet,
    process: Process,
    load: f64,
}

fn cases() -> Vec<Case> {
    let fleet = Fleet::volta_turing_radeon;
    let lost = Failure { lanes: 0..1, outage: Outage::At { at_s: 2.0, back_after_s: None } };
    let slow = |lanes, factor| Throttling { lanes, from_s: 2.0, until_s: 1e6, factor };
    let mut other = fleet();
    for (class, speeds) in other.classes.iter_mut().zip([[1.0, 0.3, 0.6], [0.4, 1.0, 0.5], [0.5, 0.6, 1.0]]) {
        class.speeds = speeds.to_vec();
    }
    let case = |name, fleet, process, load| Case { name, fleet, process, load };
    vec![
        case("Poisson, load 0.7", fleet(), Process::Poisson, 0.7),
        case("Poisson, load 0.85", fleet(), Process::Poisson, 0.85),
        case("Bursty, load 0.7", fleet(), BURSTY, 0.7),
        case("Burstier, load 0.7", fleet(), BURSTIER, 0.7),
        case("Other speeds, load 0.7", other, Process::Poisson, 0.7),
        case("One Volta lost, load 0.7", Fleet { failures: vec![lost], ..fleet() }, Process::Poisson, 0.7),
        case(
            "One Volta at a quarter, load 0.7",
            Fleet { throttling: vec![slow(0..1, 0.25)], ..fleet() },
            Process::Poisson,
            0.7,
        ),
        case(
            "Four Volta at a half, load 0.7",
            Fleet { throttling: vec![slow(0..4, 0.5)], ..fleet() },
            Process::Poisson,
            0.7,
        ),
    ]
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        given.get(index).map_or(default, |text| text.parse().expect("SEEDS and TASKS are numbers"))
    };
    let (seeds, tasks) = (number(0, 20), number(1, 1_000) as usize);
    println!("{seeds} seeds of {tasks} tasks.");
    for divisible in [false, true] {
        let words = if divisible { "are cut into slices" } else { "cannot be cut" };
        println!("\n### Tasks that {words}\n");
        println!("| arrivals and fleet | mean | by `lp-price` | by `fair` | by `earliest-completion` |");
        println!("|---|---|---|---|---|");
        for case in cases() {
            let mut workload =
                Workload { process: case.process.clone(), ..Workload::three_kinds(case.load, tasks) };
            workload.kinds.iter_mut().for_each(|kind| kind.divisible = divisible);
            let of = |policy| over_seeds(&case.fleet, &workload, policy, seeds);
            let learned = of(LEARNED);
            let cells = RIVALS.map(|rival| cell(&learned, &of(rival)));
            let Interval { mean, half } =
                interval(&learned.iter().map(|outcome| outcome.mean_s() * 1e3).collect::<Vec<_>>());
            println!("| {} | {mean:.0} ± {half:.0} ms | {} |", case.name, cells.join(" | "));
        }
    }
}

/// Returns the ratio of the mean completion times, with its interval and its verdict.
fn cell(learned: &[Outcome], rivals: &[Outcome]) -> String {
    let ratios: Vec<_> =
        learned.iter().zip(rivals).map(|(one, rival)| one.mean_s() / rival.mean_s()).collect();
    let ratio = interval(&ratios);
    format!("{:.2} ± {:.2} {}", ratio.mean, ratio.half, ratio.verdict())
}

/// Runs all seeds, on as many threads as there are cores, and returns the outcomes.
fn over_seeds(fleet: &Fleet, workload: &Workload, policy: &str, seeds: u64) -> Vec<Outcome> {
    let options = Options::of_production(policy, &production());
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let mut outcomes: Vec<(u64, Outcome)> = std::thread::scope(|scope| {
        let of_thread = |thread: u64| {
            let options = &options;
            let seeds = (FIRST_SEED + thread..FIRST_SEED + seeds).step_by(threads as usize);
            scope.spawn(move || {
                seeds.map(|seed| (seed, run(fleet, workload, options, seed))).collect::<Vec<_>>()
            })
        };
        let handles: Vec<_> = (0..threads).map(of_thread).collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("a run ends")).collect()
    });
    outcomes.sort_by_key(|(seed, _)| *seed);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}
