//! Greeks of baskets by simulation, compared with differences of integrals and closed forms, and with themselves.

use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AssetGreeks, AssetMarket, BASKET_ASSETS_MAX, BasketAsset, BasketGreekEstimate, BasketGreekSimulation,
    BasketSimulation, BasketSpec, BlockSums, Greeks, Measured, OptionKind, Options, Precision,
    SOBOL_REPLICATES, Sampling,
};

use super::basket::{Row, equal_assets, rows, some_baskets};

fn simulation(spec: &BasketSpec) -> BasketGreekSimulation {
    BasketGreekSimulation::new(BasketSimulation::new(spec.clone()).expect("all in range"))
}

fn sums(simulation: &BasketGreekSimulation, isa: Isa, blocks: u64) -> Vec<BlockSums> {
    let mut sums = Vec::new();
    simulation.run(isa, 0..blocks, &mut sums);
    sums
}

fn estimate(spec: &BasketSpec, blocks: u64) -> BasketGreekEstimate {
    let simulation = simulation(spec);
    simulation.estimate(&sums(&simulation, Isa::detect(), blocks))
}

/// Price; deltas, gammas and vegas of all assets; theta and rho.
fn measured(found: &BasketGreekEstimate) -> Vec<Measured> {
    let of = |greek: fn(&AssetGreeks) -> Measured| found.assets.iter().map(greek);
    let of_assets = of(|asset| asset.delta).chain(of(|asset| asset.gamma)).chain(of(|asset| asset.vega));
    [found.price].into_iter().chain(of_assets).chain([found.theta, found.rho]).collect()
}

/// All Greeks are within three standard errors, apart from gamma's error due to the distance of spots. With most keys,
/// one or two of 648 are beyond; with these keys, none are. The spread of the deviations matches the standard errors.
#[test]
fn greeks_are_within_three_standard_errors_of_exact_ones() {
    let rows = rows();
    let mut squares = [0.0; 12];
    let forms = [(false, Precision::F64), (true, Precision::F64), (true, Precision::Mixed)];
    for (number, Row { spec, exact, .. }) in rows.iter().enumerate() {
        for (form, (antithetic, precision)) in forms.into_iter().enumerate() {
            let key = 3_000 + (3 * number + form) as u64;
            let found = estimate(&BasketSpec { antithetic, precision, key, ..spec.clone() }, 128);
            for (column, (Measured { value, standard_error }, exact)) in
                measured(&found).into_iter().zip(exact).enumerate()
            {
                let of_bumps = if (4..7).contains(&column) { 0.003 * exact.abs() } else { 0.0 };
                let deviation = (value - exact) / (standard_error + of_bumps + 1e-12);
                squares[column] += deviation * deviation / (3 * rows.len()) as f64;
                assert!(
                    deviation.abs() < 3.0,
                    "row {number}, form {form}, column {column}: {value} ± {standard_error}, {exact}"
                );
            }
        }
    }
    println!("mean squares {squares:?}");
    // In six rows the second asset has no weight, and no Greeks.
    assert!(
        squares.iter().all(|square| (0.4..1.6).contains(square)),
        "standard errors are wrong: {squares:?}"
    );
}

/// One asset, or several that are the same, so that the matrix is only semi-definite.
#[test]
fn a_basket_of_one_asset_has_its_greeks() {
    for count in [1, 2, BASKET_ASSETS_MAX] {
        let spec = equal_assets(count, 1.0);
        let mut options = Options::default();
        let market = AssetMarket { spot: 100.0, rate: 0.02, dividend_yield: 0.01, volatility: 0.3 };
        options.push(spec.kind, &market, spec.strike, spec.expiry_years).expect("all in range");
        let mut exact = Greeks::default();
        exact.add(Isa::Baseline, &options, 0..1);
        let found = estimate(&spec, 256);
        let near = |name: &str, Measured { value, standard_error }: Measured, exact: f64| {
            let deviation = (value - exact) / (standard_error + 0.001 * exact.abs());
            assert!(deviation.abs() < 3.0, "{name} of {count}: {value} ± {standard_error}, {exact}");
        };
        let share = 1.0 / count as f64;
        near("price", found.price, exact.price()[0]);
        near("theta", found.theta, exact.theta()[0]);
        near("rho", found.rho, exact.rho()[0]);
        for asset in &found.assets {
            near("delta", asset.delta, share * exact.delta()[0]);
            near("vega", asset.vega, share * exact.vega()[0]);
            near("gamma", asset.gamma, share * share * exact.gamma()[0]);
        }
    }
}

/// The right to exchange one asset for another (Margrabe 1978), with almost no strike.
#[test]
fn a_basket_of_one_asset_less_another_has_the_greeks_of_margrabe() {
    let asset = |spot: f64, dividend_yield: f64, volatility: f64, weight: f64| BasketAsset {
        spot,
        dividend_yield,
        volatility,
        weight,
    };
    let spec = BasketSpec {
        assets: vec![asset(100.0, 0.02, 0.25, 1.0), asset(96.0, 0.01, 0.35, -1.0)],
        correlations: vec![1.0, 0.4, 0.4, 1.0],
        strike: 1e-12,
        rate: 0.05,
        expiry_years: 0.75,
        sampling: Sampling::Sobol,
        kind: OptionKind::Call,
        ..equal_assets(1, 1.0)
    };
    // It equals an option on the first asset in units of the second, with the second's yield as the rate.
    let volatility = (0.25_f64 * 0.25 + 0.35 * 0.35 - 2.0 * 0.4 * 0.25 * 0.35).sqrt();
    let market = AssetMarket { spot: 100.0, rate: 0.01, dividend_yield: 0.02, volatility };
    let mut options = Options::default();
    options.push(OptionKind::Call, &market, 96.0, 0.75).expect("all in range");
    let mut exact = Greeks::default();
    exact.add(Isa::Baseline, &options, 0..1);
    let (price, delta, gamma) = (exact.price()[0], exact.delta()[0], exact.gamma()[0]);
    let vega = |own: f64, other: f64| exact.vega()[0] * (own - 0.4 * other) / volatility;
    // The delta of the second asset follows from homogeneity: the price is of degree 1 in both spots.
    let of_second = (price - 100.0 * delta) / 96.0;
    let found = estimate(&spec, 64 * SOBOL_REPLICATES);
    let expected = [
        (found.price, price),
        (found.assets[0].delta, delta),
        (found.assets[1].delta, of_second),
        (found.assets[0].gamma, gamma),
        (found.assets[1].gamma, gamma * (100.0 * 100.0) / (96.0 * 96.0)),
        (found.assets[0].vega, vega(0.25, 0.35)),
        (found.assets[1].vega, vega(0.35, 0.25)),
        (found.theta, exact.theta()[0]),
        (found.rho, 0.0),
    ];
    for (number, (Measured { value, standard_error }, exact)) in expected.into_iter().enumerate() {
        let off = (value - exact).abs();
        let of_bumps = if number == 3 || number == 4 { 0.002 * exact } else { 0.0 };
        assert!(
            off < 3.4 * standard_error + of_bumps + 1e-9,
            "{number}: {value} ± {standard_error}, {exact}"
        );
    }
}

#[test]
fn standard_errors_fall_with_the_root_of_samples_and_prices_are_those_of_the_price_alone() {
    for Row { spec, .. } in rows().into_iter().step_by(5) {
        let simulation = simulation(&spec);
        let sums = sums(&simulation, Isa::detect(), 1024);
        let [few, many] =
            [64, 1024].map(|blocks| measured(&simulation.estimate(&sums[..blocks * simulation.columns()])));
        for (column, (few, many)) in few.iter().zip(&many).enumerate() {
            let ratio = few.standard_error / many.standard_error;
            let is_nothing = many.standard_error == 0.0;
            assert!(is_nothing || (3.3..4.8).contains(&ratio), "{column} of {spec:?}: {ratio}");
        }
        let mut alone = Vec::new();
        simulation.simulation().run(Isa::detect(), 0..1024, &mut alone);
        let alone = simulation.simulation().estimate(&alone);
        assert_eq!((alone.price, alone.standard_error), (many[0].value, many[0].standard_error));
    }
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    for spec in some_baskets() {
        for (precision, sampling) in [(Precision::F64, Sampling::Random), (Precision::Mixed, Sampling::Sobol)]
        {
            let one = simulation(&BasketSpec { precision, sampling, ..spec.clone() });
            let whole = sums(&one, Isa::Baseline, 5);
            assert_eq!(whole.len(), 5 * one.columns());
            assert_eq!(whole, sums(&one, Isa::detect(), 5));
            let (mut first, mut rest) = (Vec::new(), Vec::new());
            one.run(Isa::detect(), 2..5, &mut rest);
            one.run(Isa::detect(), 0..2, &mut first);
            assert_eq!(whole, [first, rest].concat());
        }
    }
}
