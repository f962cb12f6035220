//! Baskets by simulation, compared with integrals and closed forms, and with themselves.

use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AssetMarket, BASKET_ASSETS_MAX, BasketAsset, BasketError, BasketSimulation, BasketSpec, BlockSums,
    CorrelationError, Estimate, Greeks, OptionKind, Options, Precision, Sampling,
};

use super::fixture;

pub struct Row {
    pub spec: BasketSpec,
    price: f64,
    /// Price; deltas, gammas and vegas of all assets; theta, rho.
    pub exact: [f64; 12],
}

pub fn rows() -> Vec<Row> {
    let row = |numbers: [f64; 31]| {
        let asset = |number: usize| BasketAsset {
            spot: numbers[4 + 4 * number],
            dividend_yield: numbers[5 + 4 * number],
            volatility: numbers[6 + 4 * number],
            weight: numbers[7 + 4 * number],
        };
        let [a, b, c, price] = [16, 17, 18, 19].map(|column: usize| numbers[column]);
        let spec = BasketSpec {
            assets: [0, 1, 2].map(asset).to_vec(),
            correlations: vec![1.0, a, b, a, 1.0, c, b, c, 1.0],
            rate: numbers[2],
            kind: if numbers[0] > 0.0 { OptionKind::Call } else { OptionKind::Put },
            strike: numbers[1],
            expiry_years: numbers[3],
            antithetic: false,
            sampling: Sampling::Random,
            precision: Precision::F64,
            key: 6,
        };
        Row { spec, price, exact: std::array::from_fn(|number| numbers[19 + number]) }
    };
    fixture(include_bytes!("../../../../tests/fixtures/basket.csv.gz")).into_iter().map(row).collect()
}

/// Specifications and prices, for other tests.
pub fn rows_of_prices() -> Vec<(BasketSpec, f64)> {
    rows().into_iter().map(|Row { spec, price, .. }| (spec, price)).collect()
}

/// Some baskets for devices: with few assets, and with the greatest number of assets.
pub fn some_baskets() -> Vec<BasketSpec> {
    let of_row = |number: usize| rows().remove(number).spec;
    let many = BasketSpec { antithetic: true, ..equal_assets(BASKET_ASSETS_MAX, 0.3) };
    vec![of_row(0), BasketSpec { antithetic: true, key: u64::MAX / 3, ..of_row(9) }, many]
}

/// Equal assets with the same correlation between all of them.
pub fn equal_assets(count: usize, correlation: f64) -> BasketSpec {
    let asset =
        BasketAsset { spot: 100.0, dividend_yield: 0.01, volatility: 0.3, weight: 1.0 / count as f64 };
    let correlation = |place: usize| if place.is_multiple_of(count + 1) { 1.0 } else { correlation };
    BasketSpec {
        assets: vec![asset; count],
        correlations: (0..count * count).map(correlation).collect(),
        rate: 0.02,
        kind: OptionKind::Call,
        strike: 105.0,
        expiry_years: 1.5,
        antithetic: false,
        sampling: Sampling::Random,
        precision: Precision::F64,
        key: 3,
    }
}

fn simulation(spec: &BasketSpec) -> BasketSimulation {
    BasketSimulation::new(spec.clone()).expect("all in range")
}

fn sums(spec: &BasketSpec, isa: Isa, blocks: u64) -> Vec<BlockSums> {
    let mut sums = Vec::new();
    simulation(spec).run(isa, 0..blocks, &mut sums);
    sums
}

fn estimate(spec: &BasketSpec, blocks: u64) -> Estimate {
    simulation(spec).estimate(&sums(spec, Isa::detect(), blocks))
}

#[test]
fn prices_are_within_three_standard_errors_of_integrals() {
    let mut squares = 0.0;
    let rows = rows();
    for (number, Row { spec, price, .. }) in rows.iter().enumerate() {
        let forms = [(false, Precision::F64), (true, Precision::F64), (true, Precision::Mixed)];
        for (form, (antithetic, precision)) in forms.into_iter().enumerate() {
            let key = 100 + (3 * number + form) as u64;
            let found = estimate(&BasketSpec { antithetic, precision, key, ..spec.clone() }, 128);
            let deviation = (found.price - price) / found.standard_error;
            squares += deviation * deviation / (3 * rows.len()) as f64;
            assert!(deviation.abs() < 3.0, "row {number}, form {form}: {found:?} instead of {price}");
        }
    }
    println!("mean square {squares}");
    assert!((0.6..1.5).contains(&squares), "standard errors are wrong: {squares}");
}

#[test]
fn standard_errors_fall_with_the_root_of_samples() {
    for Row { spec, .. } in rows().into_iter().step_by(4) {
        let ratio = estimate(&spec, 64).standard_error / estimate(&spec, 1024).standard_error;
        assert!((3.6..4.4).contains(&ratio), "{ratio}");
    }
}

/// All assets are the same, so that the matrix is only semi-definite.
#[test]
fn a_basket_of_one_asset_is_worth_what_the_asset_is() {
    for count in [1, 2, BASKET_ASSETS_MAX] {
        let spec = equal_assets(count, 1.0);
        let mut options = Options::default();
        let market = AssetMarket { spot: 100.0, rate: 0.02, dividend_yield: 0.01, volatility: 0.3 };
        options.push(spec.kind, &market, spec.strike, spec.expiry_years).expect("all in range");
        let mut exact = Greeks::default();
        exact.add(Isa::Baseline, &options, 0..1);
        let found = estimate(&spec, 256);
        let deviation = (found.price - exact.price()[0]) / found.standard_error;
        assert!(deviation.abs() < 3.0, "{count} assets: {found:?} instead of {:?}", exact.price());
    }
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    for spec in some_baskets() {
        for precision in [Precision::F64, Precision::Mixed] {
            let spec = BasketSpec { precision, ..spec.clone() };
            let whole = sums(&spec, Isa::Baseline, 5);
            for isa in Isa::supported() {
                assert_eq!(whole, sums(&spec, isa, 5), "{isa:?}");
            }
            let (mut first, mut rest) = (Vec::new(), Vec::new());
            simulation(&spec).run(Isa::detect(), 2..5, &mut rest);
            simulation(&spec).run(Isa::detect(), 0..2, &mut first);
            assert_eq!(whole, [first, rest].concat());
        }
    }
}

#[test]
fn what_is_out_of_range_is_named() {
    let spec = || rows().remove(0).spec;
    let error = |spec: BasketSpec| BasketSimulation::new(spec).unwrap_err();
    assert_eq!(error(BasketSpec { assets: Vec::new(), ..spec() }), BasketError::Assets { count: 0 });
    assert_eq!(error(equal_assets(65, 0.0)), BasketError::Assets { count: 65 });
    let strike = error(BasketSpec { strike: f64::NAN, ..spec() });
    assert!(strike.to_string().starts_with("strike is NaN"), "{strike}");
    let mut assets = spec().assets;
    assets[1].weight = 1e7;
    let weight = error(BasketSpec { assets, ..spec() }).to_string();
    assert!(weight.starts_with("asset 1: weight is 10000000"), "{weight}");
    let correlations = vec![1.0, 0.9, -0.9, 0.9, 1.0, 0.9, -0.9, 0.9, 1.0];
    let indefinite = error(BasketSpec { correlations, ..spec() });
    assert!(matches!(
        indefinite,
        BasketError::Correlations(CorrelationError::Negative { least, .. }) if (least + 0.8).abs() < 1e-12
    ));
}
