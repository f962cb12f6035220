//! The sign of a difference: two policies are really run on a simulated fleet. What-if predicts the second run from the
//! recording of the first.

use warptape_network::Network;
use warptape_schemas::journal::{Decision, Input, StateBytes, Trained};
use warptape_simulator::{Burst, Class, Fleet, Options, Process, Workload, run_observed};
use warptape_what_if::{Changes, Claim, FigureRow, Modelled, Recording};

/// Pairs of policies; the first one is recorded.
const PAIRS: [[&str; 2]; 8] = [
    ["fair", "lp-price"],
    ["lp-price", "fair"],
    ["fair", "round-robin"],
    ["round-robin", "fair"],
    ["shortest-queue", "earliest-completion"],
    ["earliest-completion", "two-choices"],
    ["first-come", "lp-price"],
    ["lp-price", "weighted-round-robin"],
];
const LOADS: [f64; 2] = [0.5, 0.85];
const TASKS: usize = 150;
const SEEDS: u64 = 3;

type Steps = Vec<(i64, Input, Vec<Decision>)>;

pub fn options(policy: &str) -> Options {
    Options { policy: policy.to_owned(), slice_ns: 20_000_000, ..Options::default() }
}

/// Really runs a policy, and returns the recording.
pub fn recorded(fleet: &Fleet, workload: &Workload, policy: &str, seed: u64) -> Recording {
    recorded_under(fleet, workload, &options(policy), seed)
}

fn recorded_under(fleet: &Fleet, workload: &Workload, options: &Options, seed: u64) -> Recording {
    let mut steps: Steps = Vec::new();
    run_observed(fleet, workload, options, seed, &mut |at_ns, input, decisions| {
        steps.push((at_ns, input.clone(), decisions.to_vec()));
    });
    Recording::of_steps(steps).expect("tasks arrived")
}

pub fn row<'a>(rows: &'a [FigureRow], name: &str) -> &'a FigureRow {
    rows.iter().find(|row| row.name == name).expect("the figure is there")
}

fn unequal() -> Fleet {
    Fleet {
        classes: vec![Class::new("fast", 2, &[1.0, 1.0, 1.0]), Class::new("slow", 2, &[0.2, 0.5, 0.3])],
        slice_overhead_ns: 50_000,
        ..Fleet::default()
    }
}

#[test]
fn the_sign_of_a_difference_is_right_in_95_of_100_cases_outside_the_noise_floor() {
    let bursty = Process::Bursty(Burst { probability: 0.8, spacing: 0.1 });
    let (mut claimed, mut right, mut cases, mut wrong) = (0, 0, 0, Vec::new());
    for fleet in [Fleet::volta_turing_radeon(), unequal()] {
        for (number, load) in LOADS.into_iter().enumerate() {
            let process = if number == 0 { bursty.clone() } else { Process::Poisson };
            let workload = Workload { process, ..Workload::three_kinds(load, TASKS) };
            for (pair, seed) in PAIRS.iter().zip(0u64..) {
                let [from, to] = pair.map(|policy| recorded(&fleet, &workload, policy, seed));
                let truth =
                    to.measured.completion_mean_ms().unwrap() - from.measured.completion_mean_ms().unwrap();
                let changes = Changes { policy: Some(pair[1].to_owned()), ..Changes::default() };
                let run = |changes: &Changes| -> Vec<Modelled> {
                    (0..SEEDS).map(|seed| from.model(changes, seed).expect("it is modelled")).collect()
                };
                let report = from.report(&changes, &run(&Changes::default()), &run(&changes)).unwrap();
                let mean = row(&report.figures, "task_completion_mean_ms");
                cases += 1;
                let sign = match mean.claim {
                    Claim::Lower => -1.0,
                    Claim::Higher => 1.0,
                    _ => continue,
                };
                claimed += 1;
                match sign * truth > 0.0 {
                    true => right += 1,
                    false => wrong
                        .push(format!("{pair:?} at load {load}, seed {seed}: truth {truth} ms, {mean:?}")),
                }
            }
        }
    }
    println!(
        "{cases} cases, {claimed} claims outside of the noise floor, {right} of them with the right sign"
    );
    assert!(claimed * 2 >= cases, "{claimed} claims in {cases} cases: hardly anything is claimed");
    assert!(right * 100 >= 95 * claimed, "{right} of {claimed} are right; wrong are: {wrong:#?}");
}

fn trained(file: &str) -> Trained {
    let bytes = std::fs::read(format!("../../tests/fixtures/networks/{file}")).expect("a fixture");
    let network = Network::from_bytes(&bytes).expect("a network");
    Trained { hash: network.hash(), network: StateBytes(bytes) }
}

/// A network from a file replaces the recorded policy. A network of the recording can be named by its hash, or by the
/// first eight digits.
#[test]
fn networks_decide_as_they_would_have() {
    let (fleet, mut workload) = (unequal(), Workload::three_kinds(0.6, TASKS));
    workload.kinds.iter_mut().for_each(|kind| kind.divisible = false);
    let network = trained("improved.network");
    let policy = format!("dqn:{}", network.hash);
    let under = |options: &Options| recorded_under(&fleet, &workload, options, 3);
    let [from, to] = [
        under(&options("round-robin")),
        under(&Options { network: Some(network.clone()), ..options(&policy) }),
    ];
    let mean_ms = |recording: &Recording| recording.measured.completion_mean_ms().unwrap();
    let truth = mean_ms(&to) - mean_ms(&from);
    let asked = |from: &Recording, changes: &Changes| {
        let run = |changes: &Changes| -> Vec<Modelled> {
            (0..SEEDS).map(|seed| from.model(changes, seed).expect("it is modelled")).collect()
        };
        let report = from.report(changes, &run(&Changes::default()), &run(changes)).unwrap();
        row(&report.figures, "task_completion_mean_ms").clone()
    };
    let of = |policy: &str, network: Option<Trained>| Changes {
        policy: Some(policy.to_owned()),
        network,
        ..Changes::default()
    };
    let mean = asked(&from, &of(&policy, Some(network.clone())));
    let (claim, other) =
        if truth < 0.0 { (Claim::Lower, Claim::Higher) } else { (Claim::Higher, Claim::Lower) };
    assert_eq!(mean.claim, claim, "truth {truth} ms, {mean:?}");
    assert_eq!(asked(&to, &of("round-robin", None)).claim, other);
    // The recorded network replaces itself, so nothing changes.
    assert_eq!(asked(&to, &of(&policy[..12], None)).claim, Claim::Same);
    assert_eq!(to.networks(), std::slice::from_ref(&network));

    let error = |from: &Recording, changes: Changes| from.model(&changes, 0).unwrap_err().to_string();
    let unknown = error(&from, of(&policy[..12], None));
    assert!(unknown.contains("names no network of the recorded run, which has: none; give"), "{unknown}");
    let unknown = error(&to, of("dqn:00000000", None));
    assert!(unknown.contains(&format!("which has: {policy}; give")), "{unknown}");
    let paper = trained("paper-16-lanes.network");
    let other = error(&from, of(&format!("dqn:{}", paper.hash), Some(paper)));
    assert!(other.contains("is for 16 lanes, but there are 4"), "{other}");
}
