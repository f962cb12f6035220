//! Monte Carlo, compared with closed forms, and with itself under other instructions and other cuts.

use warptape_kernels::Isa;
use warptape_kernels::math::exp;
use warptape_kernels::pricing::{
    AssetMarket, BLOCK_SAMPLES, BarrierKind, BlockSums, Contract, Estimate, OptionKind, Precision, Sampling,
    Simulation, SimulationSpec,
};

use super::fixture;

struct Row {
    spec: SimulationSpec,
    price: f64,
}

fn rows() -> Vec<Row> {
    let row = |numbers: [f64; 11]| {
        let given = std::array::from_fn(|number| numbers[number]);
        Row { spec: spec_of(given), price: numbers[10] }
    };
    fixture(include_bytes!("../../../../tests/fixtures/simulation.csv.gz")).into_iter().map(row).collect()
}

/// The specification in the first columns of a fixture's row.
pub fn spec_of(given: [f64; 10]) -> SimulationSpec {
    let [contract, sign, strike, barrier, steps, spot, rate, dividend_yield, volatility, expiry_years] =
        given;
    let kind = if sign > 0.0 { OptionKind::Call } else { OptionKind::Put };
    let barrier_of = |barrier_kind| Contract::Barrier { kind, strike, barrier_kind, barrier };
    let contract = match contract as u32 {
        0 => Contract::European { kind, strike },
        1 => Contract::Asian { kind, strike },
        2 => barrier_of(BarrierKind::UpOut),
        3 => barrier_of(BarrierKind::UpIn),
        4 => barrier_of(BarrierKind::DownOut),
        5 => barrier_of(BarrierKind::DownIn),
        6 => Contract::Lookback { kind, strike: Some(strike) },
        _ => Contract::Lookback { kind, strike: None },
    };
    SimulationSpec {
        market: AssetMarket { spot, rate, dividend_yield, volatility },
        contract,
        expiry_years,
        steps: steps as u32,
        antithetic: false,
        sampling: Sampling::Random,
        precision: Precision::F64,
        key: 4,
    }
}

/// Specifications and prices, for other tests.
pub fn rows_of_prices() -> Vec<(SimulationSpec, f64)> {
    rows().into_iter().map(|Row { spec, price }| (spec, price)).collect()
}

/// Some simulations for devices: of every kind, with few steps.
pub fn some_specs() -> Vec<SimulationSpec> {
    let rows = rows();
    let number_of =
        |number: usize| SimulationSpec { key: u64::MAX / (number as u64 + 2), ..rows[number].spec };
    (0..8).chain([21, 22, 43, 44, 87]).map(number_of).collect()
}

fn sums(spec: SimulationSpec, isa: Isa, blocks: u64) -> Vec<BlockSums> {
    let mut sums = Vec::new();
    Simulation::new(spec).expect("all in range").run(isa, 0..blocks, &mut sums);
    sums
}

fn estimate(spec: SimulationSpec, blocks: u64) -> Estimate {
    Simulation::new(spec).expect("all in range").estimate(&sums(spec, Isa::detect(), blocks))
}

/// Checks that all prices are within three standard errors; of 264, one beyond is expected for most keys, and there is
/// none for these. Also checks that the spread of the deviations matches the standard errors.
fn check(blocks: u64, change: impl Fn(usize, &mut SimulationSpec)) {
    let rows = rows();
    let (mut squares, mut worst) = (0.0, (0.0, 0));
    for (number, Row { spec, price }) in rows.iter().enumerate() {
        let mut spec = SimulationSpec { key: spec.key + number as u64, ..*spec };
        change(number, &mut spec);
        let found = estimate(spec, blocks);
        let deviation = (found.price - price) / found.standard_error;
        squares += deviation * deviation;
        if deviation.abs() > worst.0 {
            worst = (deviation.abs(), number);
        }
        assert!(deviation.abs() < 3.0, "row {number}, {spec:?}: {found:?} instead of {price}");
    }
    let mean_square = squares / rows.len() as f64;
    println!("{} prices: worst {worst:?}, mean square {mean_square}", rows.len());
    assert!((0.6..1.5).contains(&mean_square), "standard errors are wrong: {mean_square}");
}

#[test]
fn prices_are_within_three_standard_errors_of_closed_forms() {
    check(128, |_, _| ());
}

#[test]
fn so_are_those_of_mirrored_pairs() {
    check(64, |_, spec| spec.antithetic = true);
}

#[test]
fn so_are_those_of_mixed_precision() {
    check(128, |_, spec| spec.precision = Precision::Mixed);
}

/// Prices far above the possible gain, for which `f32` has too few digits, with any contract.
#[test]
#[ignore = "long: see tests/run --all"]
fn mixed_precision_is_as_good_where_there_is_little_to_gain() {
    let (kind, spot) = (OptionKind::Call, 100.1);
    let strike = spot;
    let barrier = Contract::Barrier { kind, strike, barrier_kind: BarrierKind::UpOut, barrier: 1.01 * spot };
    for contract in [
        Contract::European { kind, strike },
        Contract::Asian { kind, strike },
        barrier,
        Contract::Lookback { kind, strike: None },
    ] {
        for expiry_years in [1.0, 1.0 / 365.0] {
            let market = AssetMarket { spot, rate: 0.01, dividend_yield: 0.01, volatility: 0.01 };
            let spec = SimulationSpec { market, contract, expiry_years, steps: 12, ..rows().remove(0).spec };
            let exact = estimate(spec, 1_024);
            let mixed = estimate(SimulationSpec { precision: Precision::Mixed, ..spec }, 1_024);
            let error = exact.standard_error + mixed.standard_error;
            assert!((exact.price - mixed.price).abs() < 3.0 * error, "{spec:?}: {exact:?} and {mixed:?}");
        }
    }
}

#[test]
#[ignore = "long: see tests/run --all"]
fn standard_errors_fall_with_the_root_of_samples() {
    for Row { spec, .. } in rows().into_iter().step_by(5) {
        let (few, many) = (estimate(spec, 64), estimate(spec, 1024));
        assert_eq!(many.samples, 1024 * BLOCK_SAMPLES);
        let ratio = few.standard_error / many.standard_error;
        assert!((3.6..4.4).contains(&ratio), "{spec:?}: {ratio}");
    }
}

#[test]
fn control_and_mirrored_paths_make_errors_smaller() {
    for Row { spec, .. } in rows() {
        let plain = estimate(spec, 64);
        let mirrored = estimate(SimulationSpec { antithetic: true, ..spec }, 32);
        if matches!(spec.contract, Contract::European { .. }) {
            assert!(mirrored.standard_error < plain.standard_error, "{spec:?}");
        }
        if let Contract::Asian { kind, strike } = spec.contract {
            let european = SimulationSpec { contract: Contract::European { kind, strike }, ..spec };
            assert!(plain.standard_error < 0.1 * estimate(european, 64).standard_error, "{spec:?}");
        }
    }
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    const BLOCKS: u64 = 13;
    for (number, Row { spec, .. }) in
        rows().into_iter().enumerate().filter(|(number, _)| number % 4 == 1 || *number < 8)
    {
        for precision in [Precision::F64, Precision::Mixed] {
            let spec = SimulationSpec { precision, antithetic: number % 2 == 0, ..spec };
            let whole = sums(spec, Isa::Baseline, BLOCKS);
            for isa in Isa::supported() {
                assert_eq!(whole, sums(spec, isa, BLOCKS), "{isa:?}, {spec:?}");
            }
            let simulation = Simulation::new(spec).expect("all in range");
            for part in [1, 2, 5] {
                // Parts are computed from last to first, and combined in order.
                let cuts: Vec<u64> = (0..BLOCKS).step_by(part).collect();
                let of_part = |first: &u64| {
                    let mut sums = Vec::new();
                    simulation.run(Isa::detect(), *first..BLOCKS.min(first + part as u64), &mut sums);
                    sums
                };
                let mut parts: Vec<Vec<BlockSums>> = cuts.iter().rev().map(of_part).collect();
                parts.reverse();
                assert_eq!(whole, parts.concat(), "{spec:?} in parts of {part}");
            }
        }
    }
}

#[test]
fn keys_make_different_paths() {
    let Row { spec, .. } = rows().remove(0);
    let of_key = |key| sums(SimulationSpec { key, ..spec }, Isa::detect(), 2);
    assert_eq!(of_key(1), of_key(1));
    assert_ne!(of_key(1), of_key(2));
    assert_ne!(of_key(1), of_key(1 << 32));
    assert_ne!(of_key(1)[0], of_key(1)[1]);
}

#[test]
fn a_barrier_behind_the_spot_is_touched() {
    let Row { spec, .. } = rows().remove(0);
    let price = |barrier_kind, barrier| {
        let contract = Contract::Barrier { kind: OptionKind::Call, strike: 100.0, barrier_kind, barrier };
        estimate(SimulationSpec { contract, ..spec }, 8).price
    };
    let contract = Contract::European { kind: OptionKind::Call, strike: 100.0 };
    let european = estimate(SimulationSpec { contract, ..spec }, 8).price;
    assert_eq!(price(BarrierKind::UpOut, 90.0), 0.0);
    assert_eq!(price(BarrierKind::DownOut, 100.0), 0.0);
    assert_eq!(price(BarrierKind::UpIn, 90.0), european);
    assert_eq!(price(BarrierKind::DownIn, 120.0), european);
}

#[test]
fn what_is_out_of_range_is_named() {
    let Row { spec, .. } = rows().remove(0);
    let field = |spec: SimulationSpec| Simulation::new(spec).err().map(|error| error.field);
    assert_eq!(field(spec), None);
    assert_eq!(field(SimulationSpec { steps: 0, ..spec }), Some("steps"));
    assert_eq!(field(SimulationSpec { expiry_years: -1.0, ..spec }), Some("expiry_years"));
    let lookback = Contract::Lookback { kind: OptionKind::Put, strike: Some(f64::NAN) };
    assert_eq!(field(SimulationSpec { contract: lookback, ..spec }), Some("strike"));
    let (kind, barrier_kind) = (OptionKind::Put, BarrierKind::DownIn);
    let contract = Contract::Barrier { kind, strike: 1.0, barrier_kind, barrier: 0.0 };
    assert_eq!(field(SimulationSpec { contract, ..spec }), Some("barrier"));
    let contract = Contract::Asian { kind: OptionKind::Put, strike: 1.0 };
    let asian = |precision, steps| field(SimulationSpec { contract, precision, steps, ..spec });
    assert_eq!(asian(Precision::Mixed, 1_025), Some("steps"));
    assert_eq!([asian(Precision::Mixed, 1_024), asian(Precision::F64, 1_025)], [None, None]);
}

/// Payoffs whose squares overflow.
#[test]
fn what_overflows_is_not_taken_for_certain() {
    let Row { spec, .. } = rows().remove(0);
    let market = AssetMarket { spot: 100.0, rate: 10.0, dividend_yield: 0.0, volatility: 0.2 };
    let contract = Contract::European { kind: OptionKind::Call, strike: 100.0 };
    let spec = SimulationSpec { market, contract, expiry_years: 60.0, precision: Precision::F64, ..spec };
    assert_eq!(estimate(spec, 1).standard_error, f64::INFINITY);
}

#[test]
fn nothing_simulated_is_nothing_known() {
    let Row { spec, .. } = rows().remove(0);
    let found = estimate(spec, 0);
    assert_eq!((found.price, found.standard_error, found.samples), (0.0, f64::INFINITY, 0));
    assert_eq!(
        (Simulation::blocks_of(0), Simulation::blocks_of(1), Simulation::blocks_of(1_000_000)),
        (0, 1, 1954)
    );
}

/// Calls whose mean depends on a few paths out of millions. The asset is the control, whose expectation is known
/// (closed forms with 40 digits). The Asian call's price follows by parity from the put with the same paths.
#[test]
fn calls_with_great_deviations_are_as_exact_as_puts() {
    let market = AssetMarket { spot: 100.0, rate: 0.03, dividend_yield: 0.0, volatility: 3.0 };
    let contract = Contract::European { kind: OptionKind::Call, strike: 100.0 };
    let Row { spec, .. } = rows().remove(0);
    let spec = SimulationSpec { market, contract, expiry_years: 3.0, steps: 1, key: 2, ..spec };
    for (precision, antithetic) in
        [(Precision::F64, false), (Precision::F64, true), (Precision::Mixed, false)]
    {
        let found = estimate(SimulationSpec { precision, antithetic, ..spec }, 512);
        assert!(found.standard_error < 0.1 && found.effective > 1_000.0, "{found:?}");
        assert!((found.price - 99.103_884_236_708_97).abs() < 4.0 * found.standard_error, "{found:?}");
    }

    let of = |kind| {
        let contract = Contract::Asian { kind, strike: 90.0 };
        estimate(SimulationSpec { contract, steps: 12, ..spec }, 64)
    };
    let (call, put) = (of(OptionKind::Call), of(OptionKind::Put));
    let mean = (1..=12).map(|step| 100.0 * exp(0.03 * 0.25 * f64::from(step))).sum::<f64>() / 12.0;
    let more = exp(-0.09) * (mean - 90.0);
    assert!((call.price - put.price - more).abs() < 1e-9, "{call:?} {put:?}");
    assert_eq!(call.standard_error, put.standard_error);
}

/// A distant barrier is touched with a small probability, which keeps its digits in both precisions (closed form of
/// Reiner and Rubinstein).
#[test]
fn small_probabilities_of_a_touch_keep_their_digits() {
    let contract = Contract::Barrier {
        kind: OptionKind::Call,
        strike: 100.0,
        barrier_kind: BarrierKind::DownIn,
        barrier: 60.0,
    };
    let market = AssetMarket { spot: 100.0, rate: 0.03, dividend_yield: 0.01, volatility: 0.2 };
    let Row { spec, .. } = rows().remove(0);
    let spec = SimulationSpec { market, contract, expiry_years: 1.0, steps: 1, key: 0, ..spec };
    let exact = 5.987_764_035_51e-7;
    for precision in [Precision::F64, Precision::Mixed] {
        let found = estimate(SimulationSpec { precision, sampling: Sampling::Sobol, ..spec }, 1_024);
        // Sobol's points of one step are so even that rounding of `f32` is visible.
        assert!((found.price / exact - 1.0).abs() < 2e-6, "{found:?}");
        assert!(found.standard_error < 0.01 * exact, "{found:?}");
    }
}
