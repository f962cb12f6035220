//! Random markets, batch cuts, lanes, placements, pauses, lane losses and crashes: the same outputs as a plain run.

use warptape_tests::simulation::{Plant, simulate};

/// Seeds of a full run, and of a quick one.
const SEEDS: u64 = 2_500;
const SEEDS_QUICK: u64 = 150;
/// Seeds within which a planted fault has to be found.
const SEEDS_PLANTED: u64 = 60;

/// Names the seed when the run itself panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed at seed {}", self.0);
        }
    }
}

fn check(seed: u64) {
    let _seed = Seed(seed);
    if let Err(failure) = simulate(seed, Plant::Nothing) {
        panic!("seed {seed}: {failure}");
    }
}

#[test]
fn outputs_equal_the_sequential_run_whatever_happens() {
    let quick = std::env::var_os("WARPTAPE_TEST_QUICK").is_some();
    (0..if quick { SEEDS_QUICK } else { SEEDS }).for_each(check);
}

fn check_found(plant: Plant) {
    // A stage that meets rows out of order may panic: that is found as well.
    let fails = |seed: u64| !matches!(std::panic::catch_unwind(|| simulate(seed, plant)), Ok(Ok(())));
    assert!((0..SEEDS_PLANTED).any(fails), "{plant:?} was not found in {SEEDS_PLANTED} seeds");
}

#[test]
fn offsets_committed_before_outputs_are_found() {
    check_found(Plant::OffsetsFirst);
}

#[test]
fn swapped_batches_are_found() {
    check_found(Plant::BatchesSwapped);
}

#[test]
fn a_skipped_tail_is_found() {
    check_found(Plant::TailSkipped);
}
