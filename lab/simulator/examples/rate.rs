//! Measures how many tasks are simulated per second of processor time; docs/scheduling-results.md has the figures.
//!
//! ```text
//! cargo run --release -p warptape-simulator --example rate [TASKS [POLICY]]
//! ```

use std::time::Instant;

use warptape_simulator::{Counts, Fleet, Options, Workload, run};

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let tasks = given.first().map_or(1_000_000, |text| text.parse().expect("TASKS is a number"));
    let policy = given.get(1).map_or("fair", String::as_str);
    let fleet = Fleet::volta_turing_radeon();
    println!(
        "| tasks | policy | seconds | tasks/s | steps/s | slices of a task |\n|---|---|---|---|---|---|"
    );
    for (name, divisible, tasks) in [("whole", false, tasks), ("sliced", true, tasks / 20)] {
        let mut workload = Workload::three_kinds(0.85, tasks);
        workload.kinds.iter_mut().for_each(|kind| kind.divisible = divisible);
        let options = Options { policy: policy.to_owned(), slice_ns: 4_000_000, ..Options::default() };
        let begin = Instant::now();
        let Counts { steps, decisions, .. } = run(&fleet, &workload, &options, 1).counts;
        let seconds = begin.elapsed().as_secs_f64();
        let [by_task, by_step] = [tasks as f64, steps as f64].map(|number| number / seconds);
        let slices = decisions as f64 / tasks as f64;
        println!(
            "| {tasks} {name} | `{policy}` | {seconds:.2} | {by_task:.0} | {by_step:.0} | {slices:.1} |"
        );
    }
}
