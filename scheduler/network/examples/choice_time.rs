//! Time of a choice, in one run and as the least of several runs of the same choices. The least excludes the time of
//! interrupts and other programs. The figures are in docs/scheduling-results.md.
//!
//! ```text
//! cargo run --release -p warptape-network --example choice_time [LANES [CHOICES]]
//! ```
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement is made with a clock"
)]

use std::time::Instant;

use warptape_network::*;

/// Runs of the same choices; the least time of each choice counts.
const RUNS: usize = 5;

/// A pseudorandom number for a counter.
fn number(counter: usize) -> u64 {
    let mixed = (counter as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

fn layer(inputs: usize, outputs: usize) -> Layer {
    let row = |output: usize| WeightsRow {
        bias: 0,
        shift: 7,
        weights: (0..inputs).map(|input| number(output * inputs + input) as u8 as i8 / 2).collect(),
    };
    Layer::new(inputs, &(0..outputs).map(row).collect::<Vec<_>>()).expect("the layer is small")
}

fn main() {
    let given: Vec<usize> =
        std::env::args().skip(1).map(|text| text.parse().expect("LANES and CHOICES are numbers")).collect();
    let (lanes, choices) = (given.first().copied().unwrap_or(16), given.get(1).copied().unwrap_or(1_000_000));
    let inputs = LANE_FEATURES + TASK_FEATURES;
    let improved = [(inputs, 32), (64, 32), (32, 1), (32, 16), (16, 1)];
    let beside = lanes * 9 + PRIORITIES + KIND_BUCKETS;
    let paper = [(CONVOLUTION_LANES * WINDOWS, 8), (beside, 64), (64, lanes)];
    let improved = Improved::new(improved.map(|(inputs, outputs)| layer(inputs, outputs)));
    let paper = Paper::new(paper.map(|(inputs, outputs)| layer(inputs, outputs)));
    println!("| architecture | lanes | bytes | | p50 | p99 | p99.9 |\n|---|---|---|---|---|---|---|");
    for (name, architecture) in
        [("improved", improved.map(Architecture::Improved)), ("paper", paper.map(Architecture::Paper))]
    {
        let network = architecture.and_then(Network::new).expect("the layers fit");
        let mut states = vec![LaneState::default(); lanes];
        let mut chosen = 0;
        let mut time = |choice: usize| {
            for (index, lane) in states.iter_mut().enumerate() {
                let drawn = number(choice * lanes + index) as i64;
                lane.tasks = drawn & 7;
                lane.backlog_ns = drawn & 0xff_ffff;
                lane.task_ns = 1 + (drawn >> 8 & 0xff_ffff);
                lane.weight = 1 + (drawn >> 16 & 0xff);
                lane.utilization_ppm = [drawn & 0xf_ffff; WINDOWS];
            }
            let task = TaskState { priority: 1, kind: choice & 7, waiting: 20, laxity_ns: None };
            let begin = Instant::now();
            chosen += network.choose(&task, &states).unwrap_or_default();
            begin.elapsed().as_nanos()
        };
        let one: Vec<u128> = (0..choices).map(&mut time).collect();
        let mut least = one.clone();
        for _ in 1..RUNS {
            least
                .iter_mut()
                .enumerate()
                .for_each(|(choice, least_ns)| *least_ns = time(choice).min(*least_ns));
        }
        for (words, mut times_ns) in [("one run", one), ("least", least)] {
            times_ns.sort_unstable();
            let quantile = |per_mille: usize| {
                let ns = times_ns[(choices * per_mille / 1_000).min(choices - 1)];
                format!("{}.{:02} µs", ns / 1_000, ns % 1_000 / 10)
            };
            let [p50, p99, p999] = [500, 990, 999].map(quantile);
            println!(
                "| {name} | {lanes} | {} | {words} | {p50} | {p99} | {p999} |",
                network.to_bytes().len()
            );
        }
        assert!(chosen > 0 || lanes == 1, "some lane but the first is chosen some time");
    }
}
