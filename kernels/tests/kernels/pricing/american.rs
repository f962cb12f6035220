//! American options by simulation, compared with convolutions and published prices, and with themselves.

use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AmericanSimulation, AmericanSpec, AssetMarket, BlockSums, EXERCISES_MAX, Estimate, OptionKind,
    PILOT_BLOCKS_MAX, Precision, RuleSearch, SOBOL_REPLICATES, Sampling,
};

use super::fixture;

pub struct Row {
    pub spec: AmericanSpec,
    /// Price with the simulated exercise dates.
    price: f64,
    /// Figures of Longstaff and Schwartz: finite differences, simulation, its standard error; 0 if they have none.
    published: [f64; 3],
    /// Price, delta, gamma, vega, theta, rho.
    pub exact: [f64; 6],
}

/// Greatest loss of a rule of four polynomials compared with the best rule, as a share of the price.
const MISSED_MAX: f64 = 0.005;

pub fn rows() -> Vec<Row> {
    let row = |numbers: [f64; 18]| {
        let [sign, spot, strike, rate, dividend_yield, volatility, expiry_years, exercises, price, ..] =
            numbers;
        let spec = AmericanSpec {
            market: AssetMarket { spot, rate, dividend_yield, volatility },
            kind: if sign > 0.0 { OptionKind::Call } else { OptionKind::Put },
            strike,
            expiry_years,
            exercises: exercises as u32,
            pilot_blocks: 64,
            antithetic: false,
            sampling: Sampling::Random,
            precision: Precision::F64,
            key: 11,
        };
        let [published, greeks] =
            [[10, 11, 12], [13, 14, 15]].map(|columns| columns.map(|column: usize| numbers[column]));
        let [delta, gamma, vega] = greeks;
        Row { spec, price, published, exact: [price, delta, gamma, vega, numbers[16], numbers[17]] }
    };
    fixture(include_bytes!("../../../../tests/fixtures/american.csv.gz")).into_iter().map(row).collect()
}

/// Some options with few dates, for devices.
pub fn some_americans() -> Vec<AmericanSpec> {
    let of_row = |number: usize| AmericanSpec { pilot_blocks: 2, ..rows().remove(number).spec };
    let put = AmericanSpec { exercises: 7, antithetic: true, key: u64::MAX / 5, ..of_row(6) };
    let sobol = AmericanSpec { sampling: Sampling::Sobol, ..of_row(22) };
    let mixed = AmericanSpec { precision: Precision::Mixed, antithetic: true, exercises: 9, ..of_row(1) };
    let both = AmericanSpec { sampling: Sampling::Sobol, precision: Precision::Mixed, ..of_row(21) };
    let paired = AmericanSpec { sampling: Sampling::Sobol, antithetic: true, ..of_row(20) };
    vec![put, of_row(20), AmericanSpec { antithetic: true, ..of_row(23) }, sobol, mixed, both, paired]
}

fn simulation(spec: AmericanSpec) -> AmericanSimulation {
    AmericanSimulation::new(spec).expect("all in range")
}

fn sums(simulation: &AmericanSimulation, isa: Isa, blocks: u64) -> Vec<BlockSums> {
    let mut sums = Vec::new();
    simulation.run(isa, 0..blocks, &mut sums);
    sums
}

fn estimate(spec: AmericanSpec, blocks: u64) -> Estimate {
    let simulation = simulation(spec);
    simulation.estimate(&sums(&simulation, Isa::detect(), blocks))
}

#[test]
fn prices_are_low_by_little_and_agree_with_published_ones() {
    let mut missed = 0.0;
    let rows = rows();
    for (number, Row { spec, price, published: [differences, simulated, simulated_error], .. }) in
        rows.iter().enumerate()
    {
        let precision = if number % 4 < 2 { Precision::F64 } else { Precision::Mixed };
        let found = estimate(AmericanSpec { antithetic: number % 2 == 1, precision, ..*spec }, 64);
        missed += (1.0 - found.price / price) / rows.len() as f64;
        let is_low = found.price < price + 3.0 * found.standard_error;
        let is_near = found.price > (1.0 - MISSED_MAX) * price - 3.0 * found.standard_error;
        assert!(is_low && is_near, "row {number}, {spec:?}: {found:?} instead of {price}");
        if *differences > 0.0 {
            let tolerance = MISSED_MAX * differences + 3.0 * found.standard_error;
            assert!((found.price - differences).abs() < tolerance, "row {number}: {found:?}, {differences}");
            let error =
                (found.standard_error * found.standard_error + simulated_error * simulated_error).sqrt();
            assert!(
                (found.price - simulated).abs() < 3.0 * error + 0.01,
                "row {number}: {found:?}, {simulated}"
            );
        }
    }
    println!("missed on average: {missed:.5} of the price");
    assert!(missed < 0.002, "{missed}");
}

#[test]
fn standard_errors_fall_with_the_root_of_samples() {
    for Row { spec, .. } in rows().into_iter().step_by(6) {
        let simulation = simulation(AmericanSpec { exercises: 10, ..spec });
        let [few, many] = [32, 512].map(|blocks| {
            let sums = sums(&simulation, Isa::detect(), blocks);
            simulation.estimate(&sums).standard_error
        });
        assert!((3.6..4.4).contains(&(few / many)), "{spec:?}: {few} and {many}");
    }
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    for spec in some_americans() {
        let one = simulation(spec);
        assert_eq!(one, simulation(spec));
        let whole = sums(&one, Isa::Baseline, 5);
        for isa in Isa::supported() {
            assert_eq!(whole, sums(&one, isa, 5), "{isa:?}");
        }
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        one.run(Isa::detect(), 2..5, &mut rest);
        one.run(Isa::detect(), 0..2, &mut first);
        assert_eq!(whole, [first, rest].concat());
    }
}

/// Prices are not below those of European options, except by chance, however many dates there are. If rates are not
/// negative, a call without dividends equals the European one, because it is never exercised early.
#[test]
fn no_price_is_below_the_european_one() {
    let spec = AmericanSpec {
        market: AssetMarket { spot: 100.0, rate: 0.03, dividend_yield: 0.0, volatility: 0.2 },
        kind: OptionKind::Call,
        strike: 100.0,
        expiry_years: 1.0,
        pilot_blocks: 16,
        ..rows().remove(0).spec
    };
    for exercises in [4, 12, 50] {
        let found = estimate(AmericanSpec { exercises, ..spec }, 16).price;
        assert!((found - 9.413_403_383_853).abs() < 1e-9, "{found} by {exercises} dates");
    }
    let market = AssetMarket { dividend_yield: 0.02, rate: 0.05, ..spec.market };
    let call = AmericanSpec { market, exercises: 50, ..spec };
    let Estimate { price, standard_error, .. } = estimate(call, 64);
    let european = estimate(AmericanSpec { exercises: 1, ..call }, 1).price;
    assert!(price >= european - 3.0 * standard_error, "{price} ± {standard_error} below {european}");
}

/// If rates are not negative, a call without dividends is not exercised early. An option deep in the money that earns
/// interest is exercised at once.
#[test]
fn it_is_exercised_when_that_is_best() {
    let Row { spec, .. } = rows().remove(0);
    let market = AssetMarket { spot: 20.0, ..spec.market };
    let put = simulation(AmericanSpec { market, ..spec });
    assert!(put.is_exercised_now());
    let found = put.estimate(&sums(&put, Isa::detect(), 1));
    assert_eq!((found.price, found.standard_error), (20.0, 0.0));
    let call = AmericanSpec { kind: OptionKind::Call, ..spec };
    let found = estimate(call, 64);
    let once = estimate(AmericanSpec { exercises: 1, ..call }, 64);
    assert!(!simulation(call).is_exercised_now());
    // An option that can only be exercised at expiry is its own control.
    assert!(once.standard_error < 1e-8, "{once:?}");
    assert!((found.price - once.price).abs() < 0.005 * once.price, "{found:?} and {once:?}");
}

#[test]
fn what_is_out_of_range_is_named() {
    let Row { spec, .. } = rows().remove(0);
    let field = |spec| AmericanSimulation::new(spec).err().map(|error| error.field);
    assert_eq!(field(AmericanSpec { exercises: 0, ..spec }), Some("exercises"));
    assert_eq!(field(AmericanSpec { exercises: EXERCISES_MAX + 1, ..spec }), Some("exercises"));
    assert_eq!(field(AmericanSpec { strike: -1.0, ..spec }), Some("strike"));
    assert_eq!(field(AmericanSpec { pilot_blocks: 0, ..spec }), Some("pilot_blocks"));
    assert_eq!(
        field(AmericanSpec { exercises: 1, pilot_blocks: PILOT_BLOCKS_MAX + 1, ..spec }),
        Some("pilot_blocks")
    );
    // Sobol's points have 256 dimensions.
    let of_points = |exercises| field(AmericanSpec { exercises, sampling: Sampling::Sobol, ..spec });
    assert_eq!([of_points(256), of_points(257)], [None, Some("steps")]);
}

/// Mixed precision gives a different but equally good result: with the same rule, paths differ only by rounding.
#[test]
#[ignore = "long: see tests/run --all"]
fn mixed_precision_has_no_bias_of_its_own() {
    for Row { spec, price, .. } in rows().into_iter().step_by(3) {
        let [double, mixed] = [Precision::F64, Precision::Mixed].map(|precision| {
            let sampling = Sampling::Sobol;
            estimate(AmericanSpec { exercises: spec.exercises.min(50), precision, sampling, ..spec }, 256)
        });
        // Both have only the rule's error, and the shifts of points are equal except for the last bits.
        let error = double.standard_error + mixed.standard_error;
        assert!((double.price - mixed.price).abs() < 3.0 * error, "{spec:?}, {price}: {double:?}, {mixed:?}");
    }
}

#[test]
#[ignore = "long: see tests/run --all"]
fn points_of_sobol_have_smaller_errors() {
    for Row { spec, price, .. } in rows().into_iter().step_by(5) {
        let blocks = 8 * SOBOL_REPLICATES;
        let random = estimate(spec, blocks);
        let sobol = estimate(AmericanSpec { sampling: Sampling::Sobol, ..spec }, blocks);
        println!("gain {}", random.standard_error / sobol.standard_error);
        assert!(sobol.standard_error < 0.6 * random.standard_error, "{spec:?}: {sobol:?}, {random:?}");
        let is_low = sobol.price < price + 3.4 * sobol.standard_error;
        let is_near = sobol.price > (1.0 - MISSED_MAX) * price - 3.4 * sobol.standard_error;
        assert!(is_low && is_near, "{spec:?}: {sobol:?} instead of {price}");
    }
}

/// A search may pause after any date, and continue elsewhere.
#[test]
fn a_rule_is_the_same_in_whatever_parts_it_is_found() {
    for spec in some_americans() {
        let whole = simulation(spec);
        for dates in [1, 3, 8, 1_000] {
            let mut search = RuleSearch::new(spec).expect("all in range");
            while !search.is_done() {
                let isa = if dates == 3 { Isa::Baseline } else { Isa::detect() };
                search = search.clone();
                search.advance(isa, dates);
            }
            assert_eq!(AmericanSimulation::of_search(search), whole, "{spec:?} by {dates}");
        }
    }
}
