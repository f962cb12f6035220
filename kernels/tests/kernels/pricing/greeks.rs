//! Greeks by simulation, compared with closed forms, with differences of them and of convolutions, and with themselves.

use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AssetMarket, BarrierKind, Contract, GreekEstimate, GreekSimulation, GreekSums, Measured, OptionKind,
    Precision, Simulation, SimulationSpec,
};

use super::fixture;
use super::simulation::spec_of;

struct Row {
    spec: SimulationSpec,
    /// Price, delta, gamma, vega, theta, rho.
    exact: [f64; 6],
}

const NAMES: [&str; 6] = ["price", "delta", "gamma", "vega", "theta", "rho"];

fn rows() -> Vec<Row> {
    let row = |numbers: [f64; 16]| Row {
        spec: spec_of(std::array::from_fn(|number| numbers[number])),
        exact: std::array::from_fn(|number| numbers[10 + number]),
    };
    fixture(include_bytes!("../../../../tests/fixtures/greeks.csv.gz")).into_iter().map(row).collect()
}

fn sums(spec: SimulationSpec, isa: Isa, blocks: u64) -> Vec<GreekSums> {
    let mut sums = Vec::new();
    GreekSimulation::new(spec).expect("all in range").run(isa, 0..blocks, &mut sums);
    sums
}

fn estimate(spec: SimulationSpec, blocks: u64) -> GreekEstimate {
    GreekSimulation::new(spec).expect("all in range").estimate(&sums(spec, Isa::detect(), blocks))
}

fn measured(found: &GreekEstimate) -> [Measured; 6] {
    [found.price, found.delta, found.gamma, found.vega, found.theta, found.rho]
}

/// Checks that all Greeks are within three standard errors; of 504, one beyond is expected for most keys. Also checks
/// that the spread of the deviations matches the standard errors.
fn check(blocks: u64, key: u64, change: impl Fn(&mut SimulationSpec)) {
    let rows = rows();
    let mut squares = [0.0; 6];
    for (number, Row { spec, exact }) in rows.iter().enumerate() {
        let mut spec = SimulationSpec { key: key + number as u64, ..*spec };
        change(&mut spec);
        let found = estimate(spec, blocks);
        for (greek, (Measured { value, standard_error }, exact)) in
            measured(&found).into_iter().zip(exact).enumerate()
        {
            let rounding = 1e-12 * exact.abs();
            let deviation = (value - exact) / (standard_error + rounding + 1e-9);
            squares[greek] += deviation * deviation / rows.len() as f64;
            let name = NAMES[greek];
            assert!(
                deviation.abs() < 3.0,
                "{name} of row {number}, {spec:?}: {value} ± {standard_error} instead of {exact}"
            );
        }
    }
    println!("mean squares {squares:?}");
    for (name, square) in NAMES.iter().zip(squares) {
        assert!((0.5..1.6).contains(&square), "standard errors of {name} are wrong: {square}");
    }
}

#[test]
fn greeks_are_within_three_standard_errors_of_exact_ones() {
    check(128, 1, |_| ());
}

#[test]
#[ignore = "long: see tests/run --all"]
fn so_are_those_of_mirrored_pairs_and_mixed_precision() {
    check(64, 2_000, |spec| (spec.antithetic, spec.precision) = (true, Precision::Mixed));
}

#[test]
#[ignore = "long: see tests/run --all"]
fn standard_errors_fall_with_the_root_of_samples() {
    for (number, Row { spec, .. }) in rows().into_iter().enumerate().step_by(7) {
        let (few, many) = (measured(&estimate(spec, 64)), measured(&estimate(spec, 1024)));
        for (greek, (few, many)) in few.iter().zip(&many).enumerate() {
            let ratio = few.standard_error / many.standard_error;
            // The gamma of a floating lookback is always 0, up to rounding.
            let is_rounding = many.standard_error < 1e-12;
            assert!(is_rounding || (3.4..4.7).contains(&ratio), "{} of row {number}: {ratio}", NAMES[greek]);
        }
    }
}

#[test]
fn prices_are_those_of_the_price_alone() {
    for Row { spec, .. } in rows().into_iter().step_by(5) {
        let simulation = Simulation::new(spec).expect("all in range");
        let mut sums = Vec::new();
        simulation.run(Isa::detect(), 0..8, &mut sums);
        let (alone, found) = (simulation.estimate(&sums), estimate(spec, 8).price);
        assert!((found.value / alone.price - 1.0).abs() < 1e-12);
        assert!((found.standard_error / alone.standard_error - 1.0).abs() < 1e-7);
    }
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    for (number, Row { spec, .. }) in rows().into_iter().enumerate().take(8) {
        for precision in [Precision::F64, Precision::Mixed] {
            let spec = SimulationSpec { precision, antithetic: number % 2 == 0, ..spec };
            let whole = sums(spec, Isa::Baseline, 5);
            for isa in Isa::supported() {
                assert_eq!(whole, sums(spec, isa, 5), "{isa:?}, {spec:?}");
            }
            let simulation = GreekSimulation::new(spec).expect("all in range");
            let (mut first, mut rest) = (Vec::new(), Vec::new());
            simulation.run(Isa::detect(), 2..5, &mut rest);
            simulation.run(Isa::detect(), 0..2, &mut first);
            assert_eq!(whole, [first, rest].concat(), "{spec:?}");
        }
    }
}

#[test]
fn a_bump_does_not_reach_the_barrier() {
    let Row { spec, .. } = rows().remove(0);
    let of = |kind, barrier_kind, barrier| {
        let contract = Contract::Barrier { kind, strike: 100.0, barrier_kind, barrier };
        estimate(SimulationSpec { contract, ..spec }, 64)
    };
    // A knocked-out option has no Greeks; a knocked-in one has those of the European option.
    let out = of(OptionKind::Call, BarrierKind::UpOut, 100.0);
    assert_eq!(measured(&out).map(|measured| measured.value), [0.0; 6]);
    let of_in = of(OptionKind::Call, BarrierKind::UpIn, 100.0);
    let european = Contract::European { kind: OptionKind::Call, strike: 100.0 };
    let european = estimate(SimulationSpec { contract: european, ..spec }, 64);
    assert_eq!([of_in.delta.value, of_in.vega.value], [european.delta.value, european.vega.value]);
    let gammas = of_in.gamma.value - european.gamma.value;
    assert!(gammas.abs() < 3.0 * of_in.gamma.standard_error, "{gammas}");
    // Near the barrier, the option's value follows from delta, for both kinds.
    let near = of(OptionKind::Call, BarrierKind::DownOut, 99.9);
    let delta = near.price.value / 0.1;
    assert!((near.delta.value - delta).abs() < 0.1 * delta.abs(), "{near:?}");
    assert!(near.gamma.value.is_finite());
}

#[test]
fn what_is_out_of_range_is_named_and_nothing_simulated_is_nothing_known() {
    let Row { spec, .. } = rows().remove(0);
    let market = AssetMarket { volatility: 0.0, ..spec.market };
    let error = GreekSimulation::new(SimulationSpec { market, ..spec }).unwrap_err();
    assert_eq!(error.field, "volatility");
    for measured in measured(&estimate(spec, 0)) {
        assert_eq!((measured.value, measured.standard_error), (0.0, f64::INFINITY));
    }
}
