//! Simulations with Sobol's points, compared with closed forms, with random numbers, and with themselves.

use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    BLOCK_SAMPLES, BasketSimulation, BasketSpec, BlockSums, Contract, Estimate, GreekSimulation, Precision,
    SOBOL_REPLICATES, STOP_BLOCKS_FIRST, Sampling, Simulation, SimulationSpec, StopDecision, StopRule,
};

use super::basket;
use super::simulation::rows_of_prices as rows;

fn simulation(spec: SimulationSpec) -> Simulation {
    Simulation::new(SimulationSpec { sampling: Sampling::Sobol, ..spec }).expect("all in range")
}

fn sums(simulation: &Simulation, isa: Isa, blocks: u64) -> Vec<BlockSums> {
    let mut sums = Vec::new();
    simulation.run(isa, 0..blocks, &mut sums);
    sums
}

fn estimate(spec: SimulationSpec, blocks: u64) -> Estimate {
    let simulation = simulation(spec);
    simulation.estimate(&sums(&simulation, Isa::detect(), blocks))
}

/// Greatest deviation in standard errors. Because errors are estimated from 32 replicates, deviations follow Student's
/// distribution, for which 3.4 is as rare as three for a normal one.
const ERRORS_MAX: f64 = 3.4;

#[test]
fn prices_are_near_closed_forms_as_their_standard_errors_say() {
    let rows = rows();
    let mut squares = 0.0;
    for (number, (spec, price)) in rows.iter().enumerate() {
        let mixed = number % 3 == 2;
        let precision = if mixed { Precision::Mixed } else { Precision::F64 };
        let spec = SimulationSpec { precision, key: 70 + number as u64, ..*spec };
        let found = estimate(spec, 4 * SOBOL_REPLICATES);
        assert_eq!(found.samples, 4 * SOBOL_REPLICATES * BLOCK_SAMPLES);
        // Paths in `f32` are rounded, which is visible with Sobol's points.
        let rounding = if mixed { 1e-6 * price } else { 0.0 };
        let deviation = (found.price - price) / (found.standard_error + rounding);
        squares += deviation * deviation / rows.len() as f64;
        assert!(deviation.abs() < ERRORS_MAX, "row {number}, {spec:?}: {found:?} instead of {price}");
    }
    println!("mean square {squares}");
    assert!((0.6..1.6).contains(&squares), "standard errors are wrong: {squares}");
}

#[test]
#[ignore = "long: see tests/run --all"]
fn errors_are_smaller_and_fall_faster_than_those_of_random_numbers() {
    for (spec, _) in rows().into_iter().step_by(9) {
        let simulation_random = Simulation::new(spec).expect("all in range");
        let mut random = Vec::new();
        simulation_random.run(Isa::detect(), 0..512, &mut random);
        let random = simulation_random.estimate(&random).standard_error;
        let [few, many] = [SOBOL_REPLICATES, 512].map(|blocks| estimate(spec, blocks).standard_error);
        // The numbers of samples are equal; the Asian option has its control in both.
        let gain = random / many;
        let is_one_step = spec.steps == 1;
        assert!(gain > if is_one_step { 10.0 } else { 1.5 }, "{spec:?}: {gain}");
        // Sixteen times as many random samples would be four times as accurate.
        assert!(few / many > if is_one_step { 8.0 } else { 4.0 }, "{spec:?}: {}", few / many);
    }
}

/// Compares contracts of several steps with a bridge and with random numbers. The figures are root mean squares, over
/// independent shifts, of the errors of prices and of their standard errors.
#[test]
#[ignore = "long: see tests/run --all"]
fn a_bridge_makes_errors_of_several_steps_smaller() {
    const KEYS: u64 = 16;
    let rows = rows();
    // Rows at the money (European, Asian, up-and-out, floating lookback), steps, and the least factor by which errors
    // decrease.
    for (row, steps, gain_min) in [(7, 16, 10.0), (8, 24, 3.4), (9, 32, 2.0), (21, 24, 7.5)] {
        let (spec, price) = rows[row];
        let root_mean_squares = |sampling| {
            let (mut errors, mut standard_errors) = (0.0, 0.0);
            for key in 0..KEYS {
                let simulation =
                    Simulation::new(SimulationSpec { sampling, steps, key, ..spec }).expect("all in range");
                let found = simulation.estimate(&sums(&simulation, Isa::detect(), 4 * SOBOL_REPLICATES));
                errors += (found.price - price) * (found.price - price) / KEYS as f64;
                standard_errors += found.standard_error * found.standard_error / KEYS as f64;
            }
            [errors.sqrt(), standard_errors.sqrt()]
        };
        let [random, bridged] = [Sampling::Random, Sampling::Sobol].map(root_mean_squares);
        println!("{:?}, {steps} steps: {random:?} by random numbers, {bridged:?} by a bridge", spec.contract);
        for (random, bridged) in random.iter().zip(bridged) {
            assert!(random / bridged > gain_min, "{spec:?}: {random} and {bridged}");
        }
        // The spread of 16 errors is known to about a sixth.
        let [error, standard_error] = bridged;
        assert!((0.6..1.5).contains(&(error / standard_error)), "{spec:?}: {error}, not {standard_error}");
    }
}

#[test]
fn baskets_have_smaller_errors_too() {
    for (number, (spec, price)) in basket::rows_of_prices().into_iter().enumerate() {
        let blocks = 8 * SOBOL_REPLICATES;
        let [random, sobol] = [Sampling::Random, Sampling::Sobol].map(|sampling| {
            let simulation =
                BasketSimulation::new(BasketSpec { sampling, ..spec.clone() }).expect("in range");
            let mut sums = Vec::new();
            simulation.run(Isa::detect(), 0..blocks, &mut sums);
            simulation.estimate(&sums)
        });
        assert!(sobol.standard_error < 0.2 * random.standard_error, "row {number}: {sobol:?}, {random:?}");
        let deviation = (sobol.price - price) / sobol.standard_error;
        assert!(deviation.abs() < ERRORS_MAX, "row {number}: {sobol:?} instead of {price}");
    }
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    for (number, (spec, _)) in rows().into_iter().enumerate().take(8) {
        for precision in [Precision::F64, Precision::Mixed] {
            let (sampling, antithetic) = (Sampling::Sobol, number % 2 == 0);
            let spec = SimulationSpec { precision, sampling, antithetic, ..spec };
            let simulation = Simulation::new(spec).expect("all in range");
            let whole = sums(&simulation, Isa::Baseline, 35);
            for isa in Isa::supported() {
                assert_eq!(whole, sums(&simulation, isa, 35), "{isa:?}, {spec:?}");
            }
            let (mut first, mut rest) = (Vec::new(), Vec::new());
            simulation.run(Isa::detect(), 31..35, &mut rest);
            simulation.run(Isa::detect(), 0..31, &mut first);
            assert_eq!(whole, [first, rest].concat(), "{spec:?}");
        }
    }
}

#[test]
fn only_full_rounds_count() {
    let (spec, _) = rows().remove(0);
    let simulation = simulation(spec);
    let sums = sums(&simulation, Isa::detect(), 70);
    assert_eq!(simulation.estimate(&sums), simulation.estimate(&sums[..64]));
    assert_eq!(simulation.estimate(&sums[..31]).standard_error, f64::INFINITY);
    assert_eq!(Sampling::Sobol.blocks_of(1), 32);
    assert_eq!(Sampling::Sobol.blocks_of(32 * 512 + 1), 64);
    assert_eq!(Sampling::Random.blocks_of(513), 2);
}

#[test]
fn steps_have_their_dimensions() {
    let rows = rows();
    let field = |number: usize, steps| {
        let spec = SimulationSpec { sampling: Sampling::Sobol, steps, ..rows[number].0 };
        Simulation::new(spec).err().map(|error| (error.field, error.greatest))
    };
    let asian = rows.iter().position(|(spec, _)| matches!(spec.contract, Contract::Asian { .. }));
    let lookback = rows.iter().position(|(spec, _)| matches!(spec.contract, Contract::Lookback { .. }));
    let (asian, lookback) = (asian.expect("there is one"), lookback.expect("there is one"));
    assert_eq!([field(asian, 256), field(asian, 257)], [None, Some(("steps", 256.0))]);
    assert_eq!([field(lookback, 128), field(lookback, 129)], [None, Some(("steps", 128.0))]);
}

/// The stop depends only on the first blocks, with all kinds of numbers.
#[test]
fn a_simulation_stops_when_it_is_exact_enough() {
    let (spec, _) = rows().remove(0);
    for sampling in [Sampling::Random, Sampling::Sobol] {
        let simulation = GreekSimulation::new(SimulationSpec { sampling, ..spec }).expect("all in range");
        let mut sums = Vec::new();
        let delta = |sums: &[_], blocks: u64| simulation.estimate(&sums[..blocks as usize]).delta;
        simulation.run(Isa::detect(), 0..STOP_BLOCKS_FIRST, &mut sums);
        let first = delta(&sums, STOP_BLOCKS_FIRST).standard_error;
        let rule = StopRule { standard_error: 0.4 * first, blocks_max: 4_096 };
        let enough = loop {
            let blocks = sums.len() as u64;
            match rule.progress(blocks, |blocks| delta(&sums, blocks).standard_error) {
                StopDecision::Enough(blocks) => break blocks,
                StopDecision::Until(more) => simulation.run(Isa::detect(), blocks..more, &mut sums),
            }
        };
        assert!(delta(&sums, enough).standard_error <= rule.standard_error);
        assert!(enough.is_power_of_two() && enough > STOP_BLOCKS_FIRST && enough <= 512, "{enough}");
        let before = sums.len() as u64;
        simulation.run(Isa::detect(), before..before + 100, &mut sums);
        let again = rule.progress(before + 100, |blocks| delta(&sums, blocks).standard_error);
        assert_eq!(again, StopDecision::Enough(enough));
    }
}
