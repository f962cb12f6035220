//! Greeks of American options by simulation, compared with differences of convolutions, and with themselves.

use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AmericanGreekSimulation, AmericanSimulation, AmericanSpec, AssetMarket, GreekEstimate, GreekSums, Greeks,
    Measured, OptionKind, Options, Precision,
};

use super::american::{Row, rows, some_americans};

const NAMES: [&str; 6] = ["price", "delta", "gamma", "vega", "theta", "rho"];
/// Greatest errors due to a rule from 64 blocks. Those of delta and gamma are small. Those of pathwise Greeks are
/// proportional to the error of the boundary, and largest if the spot is near it.
const MISSED_MAX: [f64; 6] = [0.005, 0.005, 0.03, 0.05, 0.07, 0.04];
/// Greatest mean errors over all rows, in which errors of the boundary nearly cancel.
const MISSED_MEAN_MAX: [f64; 6] = [0.002, 0.004, 0.005, 0.005, 0.005, 0.01];

fn simulation(spec: AmericanSpec) -> AmericanGreekSimulation {
    AmericanGreekSimulation::new(AmericanSimulation::new(spec).expect("all in range"))
}

fn sums(simulation: &AmericanGreekSimulation, isa: Isa, blocks: u64) -> Vec<GreekSums> {
    let mut sums = Vec::new();
    simulation.run(isa, 0..blocks, &mut sums);
    sums
}

fn estimate(spec: AmericanSpec, blocks: u64) -> GreekEstimate {
    let simulation = simulation(spec);
    simulation.estimate(&sums(&simulation, Isa::detect(), blocks))
}

fn measured(found: &GreekEstimate) -> [Measured; 6] {
    [found.price, found.delta, found.gamma, found.vega, found.theta, found.rho]
}

#[test]
#[ignore = "long: see tests/run --all"]
fn greeks_are_within_three_standard_errors_and_what_the_rule_misses() {
    let mut off = [0.0; 6];
    let rows = rows();
    for (number, Row { spec, exact, .. }) in rows.iter().enumerate() {
        let precision = if number % 4 < 2 { Precision::F64 } else { Precision::Mixed };
        let found = estimate(AmericanSpec { antithetic: number % 2 == 1, precision, ..*spec }, 256);
        for (greek, (Measured { value, standard_error }, exact)) in
            measured(&found).into_iter().zip(exact).enumerate()
        {
            off[greek] += (value / exact - 1.0) / rows.len() as f64;
            let allowed = 3.0 * standard_error + MISSED_MAX[greek] * exact.abs();
            let name = NAMES[greek];
            assert!(
                (value - exact).abs() < allowed,
                "{name} of row {number}, {spec:?}: {value} ± {standard_error} instead of {exact}"
            );
        }
    }
    println!("off on average: {off:?}");
    for ((name, off), allowed) in NAMES.iter().zip(off).zip(MISSED_MEAN_MAX) {
        assert!(off.abs() < allowed, "{name} is off by {off} on average");
    }
}

/// If exercise is possible only at expiry, each Greek is its own control.
#[test]
fn an_option_with_one_date_has_the_greeks_of_the_european_one() {
    for Row { spec, .. } in rows().into_iter().step_by(4) {
        // Without dividends, the option is not exercised now.
        let market = AssetMarket { dividend_yield: 0.0, ..spec.market };
        let spec = AmericanSpec { exercises: 1, kind: OptionKind::Call, market, ..spec };
        let AmericanSpec { kind, strike, market, expiry_years, .. } = spec;
        let mut options = Options::default();
        options.push(kind, &market, strike, expiry_years).expect("all in range");
        let mut exact = Greeks::default();
        exact.add(Isa::Baseline, &options, 0..1);
        let found = measured(&estimate(spec, 8));
        let columns = [exact.price(), exact.delta(), exact.gamma(), exact.vega(), exact.theta(), exact.rho()];
        for (greek, (found, exact)) in found.iter().zip(columns).enumerate() {
            // These Greeks are difference quotients of spots that are two per cent apart.
            let tolerance = if greek == 1 || greek == 2 { 0.005 } else { 1e-9 };
            let is_near = (found.value / exact[0] - 1.0).abs() < tolerance;
            let is_certain = found.standard_error < 1e-7 * exact[0].abs();
            assert!(is_near && is_certain, "{} of {spec:?}: {found:?}, {exact:?}", NAMES[greek]);
        }
    }
}

#[test]
fn standard_errors_fall_with_the_root_of_samples_and_prices_are_those_of_the_price_alone() {
    for Row { spec, .. } in rows().into_iter().step_by(9) {
        let spec = AmericanSpec { exercises: 10, ..spec };
        let simulation = simulation(spec);
        let sums = sums(&simulation, Isa::detect(), 512);
        let [few, many] = [32, 512].map(|blocks| measured(&simulation.estimate(&sums[..blocks])));
        for (name, (few, many)) in NAMES.iter().zip(few.iter().zip(&many)) {
            let ratio = few.standard_error / many.standard_error;
            assert!((3.4..4.7).contains(&ratio), "{name} of {spec:?}: {ratio}");
        }
        let mut alone = Vec::new();
        simulation.simulation().run(Isa::detect(), 0..512, &mut alone);
        let alone = simulation.simulation().estimate(&alone);
        assert_eq!((alone.price, alone.standard_error), (many[0].value, many[0].standard_error));
    }
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    for spec in some_americans() {
        let one = simulation(spec);
        let whole = sums(&one, Isa::Baseline, 5);
        assert_eq!(whole, sums(&one, Isa::detect(), 5), "{spec:?}");
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        one.run(Isa::detect(), 2..5, &mut rest);
        one.run(Isa::detect(), 0..2, &mut first);
        assert_eq!(whole, [first, rest].concat(), "{spec:?}");
    }
}

/// An option that is exercised now has the Greeks of its payoff.
#[test]
fn it_has_no_greeks_but_delta_when_it_is_exercised_now() {
    let Row { spec, .. } = rows().remove(0);
    let put = simulation(AmericanSpec { market: AssetMarket { spot: 20.0, ..spec.market }, ..spec });
    assert!(put.simulation().is_exercised_now());
    let found = measured(&put.estimate(&sums(&put, Isa::detect(), 1)));
    assert_eq!(found.map(|found| found.value), [20.0, -1.0, 0.0, 0.0, 0.0, 0.0]);
    assert!(found.iter().all(|found| found.standard_error == 0.0));
}
