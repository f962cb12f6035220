//! Random markets, batch cuts, lanes, placements, pauses, lane losses and crashes must give the same outputs as a plain
//! run.

use warptape_tests::coverage::Coverage;
use warptape_tests::random::rotating;
use warptape_tests::simulation::{Failure, Plant, simulate};
use warptape_tests::vocabulary::COMMANDS_UNMET;

/// Number of seeds of `tests/run --all`. The next constant is the number for `tests/run`.
const SEEDS_ALL: u64 = 2_500;
const SEEDS: u64 = 400;
/// Number of seeds within which a planted fault must be found.
const SEEDS_PLANTED: u64 = 1_200;

/// Prints the seed if the run itself panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed at seed {}", self.0);
        }
    }
}

fn check(seed: u64) -> Coverage {
    let _seed = Seed(seed);
    simulate(seed, Plant::Nothing).unwrap_or_else(|failure| panic!("seed {seed}: {failure:?}"))
}

#[test]
fn outputs_equal_the_sequential_run_whatever_happens() {
    let all = std::env::var_os("WARPTAPE_TEST_ALL").is_some();
    let seeds = if all { SEEDS_ALL } else { SEEDS };
    let coverage = rotating(seeds).map(check).fold(Coverage::default(), Coverage::plus);
    println!("{seeds} seeds met {coverage:?}");
    let (count, least) = coverage.least();
    // With few seeds, rare situations occur only by chance.
    let expected = seeds / if all { 10 } else { 20 };
    assert!(least as u64 >= expected, "the seeds meet too little of {count}: {coverage:?}");
    // The simulation covers production. Both execute every command, and neither answers a command within the call.
    assert_eq!(coverage.commands.missing(), COMMANDS_UNMET);
    assert_eq!(coverage.events.missing(), [""; 0]);
}

/// Runs seeds until one fails in its outputs. The first seed is one that is known to fail.
fn check_found(plant: Plant, first: u64) {
    let fails = |seed: &u64| matches!(simulate(*seed, plant), Err(Failure::Outputs(_)));
    match std::iter::once(first).chain(0..SEEDS_PLANTED).find(fails) {
        Some(seed) => println!("{plant:?} is found by seed {seed}"),
        None => panic!("{plant:?} was not found in the outputs of {SEEDS_PLANTED} seeds"),
    }
}

#[test]
fn offsets_committed_before_outputs_are_found() {
    check_found(Plant::OffsetsFirst, 0);
}

#[test]
fn offsets_that_are_believed_are_found() {
    check_found(Plant::OffsetsBelieved, 0);
}

#[test]
fn forgotten_answers_are_found() {
    check_found(Plant::AnswersForgotten, 0);
}

#[test]
fn a_market_that_is_behind_is_found() {
    check_found(Plant::MarketBehind, 14);
}

#[test]
fn swapped_rows_are_found() {
    check_found(Plant::RowsSwapped, 1);
}

#[test]
fn a_skipped_tail_is_found() {
    check_found(Plant::TailSkipped, 0);
}

#[test]
fn a_double_owner_is_found() {
    check_found(Plant::DoubleOwner, 76);
}

#[test]
fn snapshots_under_the_keys_of_the_one_before_are_found() {
    check_found(Plant::OnePlace, 1_034);
}

#[test]
fn a_double_commit_is_found() {
    check_found(Plant::DoubleCommit, 0);
}
