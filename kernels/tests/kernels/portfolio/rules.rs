//! Drawn scenarios, and refused inputs.

use warptape_kernels::Isa;
use warptape_kernels::math::ln;
use warptape_kernels::portfolio::{
    Covariance, CovarianceError, Drawn, Instrument, Portfolio, Position, Profits, Ranked, Returns, Scenarios,
    Shock, Stress,
};
use warptape_kernels::pricing::{AssetMarket, OptionKind};

const MARKET: AssetMarket = AssetMarket { spot: 100.0, rate: 0.02, dividend_yield: 0.01, volatility: 0.2 };

fn holding(asset: usize, book: usize, quantity: f64) -> Position {
    Position { asset, book, quantity, instrument: Instrument::Spot }
}

/// One book for each asset, with one unit of it.
fn one_of_each(assets: usize) -> Portfolio {
    let parents = std::iter::once(None).chain(std::iter::repeat_n(Some(0), assets)).collect();
    let positions = (0..assets).map(|asset| holding(asset, asset + 1, 1.0)).collect();
    Portfolio::new(vec![MARKET; assets], parents, positions).expect("in range")
}

#[test]
fn drawn_returns_have_the_covariance() {
    const SCENARIOS: u64 = 40_000;
    let volatilities = [0.2, 0.4, 0.1, 0.3];
    // The last asset's return is three quarters of the second's.
    let correlations = [1.0, 0.5, -0.3, 0.5, 0.5, 1.0, 0.1, 1.0, -0.3, 0.1, 1.0, 0.1, 0.5, 1.0, 0.1, 1.0];
    let covariance = Covariance::from_correlations(&volatilities, &correlations).expect("correlations");
    let (horizon_years, means) = (0.25, [0.1, 0.0, -0.2, 0.0]);
    let spec = Drawn { key: 11, scenarios: SCENARIOS, covariance: &covariance, horizon_years, means: &means };
    let scenarios = Scenarios::drawn(&spec).expect("in range");
    let mut profits = Profits::default();
    one_of_each(4).run(Isa::detect(), &scenarios, 0..SCENARIOS, &mut profits);
    let of_scenario = |scenario: usize| (1..5).map(move |book| (book, scenario));
    let returns: Vec<f64> = (0..SCENARIOS as usize)
        .flat_map(of_scenario)
        .map(|(book, scenario)| ln(1.0 + profits.of_book(book)[scenario] / MARKET.spot))
        .collect();
    let found = Covariance::sample(Isa::detect(), 4, &returns).expect("finite");
    for first in 0..4 {
        let mean: f64 = returns.iter().skip(first).step_by(4).sum::<f64>() / SCENARIOS as f64;
        let deviation = volatilities[first] * 0.5;
        // The tolerance is four standard errors.
        assert!((mean - means[first] * 0.25).abs() < 4.0 * deviation / 200.0, "{first}: {mean}");
        for second in 0..4 {
            let most = volatilities[first] * volatilities[second] * horizon_years;
            let error = found.of(first, second) - covariance.of(first, second) * horizon_years;
            assert!(error.abs() < 4.0 * most * 2.0_f64.sqrt() / 200.0, "{first} {second}: {error}");
        }
    }
    let last = returns.chunks(4).map(|row| (row[3] - 0.75 * row[1]).abs()).fold(0.0, f64::max);
    assert!(last < 1e-12, "{last:e}");
    // The book is nearly linear in the returns, so the value at risk is about the parametric one.
    let spot = &covariance.scaled(horizon_years);
    let expected = one_of_each(4).parametric(Isa::detect(), spot, 3, 0.99).expect("in range").total;
    let profits = profits.of_book(3);
    let ranked = Ranked::new(profits).expect("finite");
    let found = ranked.value_at_risk(0.99).expect("in range").loss(profits);
    // The mean is −5 %. A logarithmic return of −16 % is a fall of 15 %.
    let exact = 100.0 * (1.0 - warptape_kernels::math::exp(-0.05 - expected.value_at_risk / 100.0));
    assert!((found / exact - 1.0).abs() < 0.02, "{found} for {exact}");
}

#[test]
fn stress_moves_what_it_names() {
    let option = Instrument::Option { kind: OptionKind::Put, strike: 90.0, expiry_years: 2.0 };
    let positions = vec![
        holding(0, 0, 3.0),
        Position { asset: 1, book: 1, quantity: -2.0, instrument: option },
        Position {
            asset: 1,
            book: 2,
            quantity: 1.0,
            instrument: Instrument::Forward { strike: 100.0, expiry_years: 1.0 },
        },
    ];
    let portfolio =
        Portfolio::new(vec![MARKET; 2], vec![None, Some(0), Some(1)], positions).expect("in range");
    let stresses = [
        Stress::All(Shock::NONE),
        Stress::All(Shock::shift(-0.2, 0.1, 0.0)),
        Stress::Assets(vec![(1, Shock::shift(0.1, 0.0, 0.01))]),
        // The pivot of this twist is the expiry of the forward, which thus does not change.
        Stress::Assets(vec![(1, Shock::twist(1.0, 0.05, 0.02, 0.01))]),
    ];
    let scenarios = Scenarios::stress(2, &stresses).expect("in range");
    let mut profits = Profits::default();
    portfolio.run(Isa::detect(), &scenarios, 0..4, &mut profits);
    assert!((0..3).all(|book| profits.of_book(book)[0] == 0.0), "{profits:?}");
    let moved = |position: usize, market: AssetMarket| {
        let mut assets = portfolio.assets().to_vec();
        assets[portfolio.positions()[position].asset] = market;
        let (parents, positions) = (portfolio.parents().to_vec(), portfolio.positions().to_vec());
        let changed = Portfolio::new(assets, parents, positions).expect("in range");
        changed.values()[position] - portfolio.values()[position]
    };
    let shifted = AssetMarket { spot: 80.0, volatility: 0.2 + 0.1, ..MARKET };
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
    near(profits.of_book(2)[1], moved(2, shifted));
    near(profits.of_book(1)[1], moved(1, shifted) + moved(2, shifted));
    near(profits.of_book(0)[1], -60.0 + moved(1, shifted) + moved(2, shifted));
    let named = AssetMarket { spot: 110.0, rate: 0.03, ..MARKET };
    near(profits.of_book(0)[2], moved(1, named) + moved(2, named));
    near(profits.of_book(2)[3], 0.0);
    let turned = AssetMarket { spot: 105.0, rate: 0.03, volatility: 0.22, ..MARKET };
    near(profits.of_book(0)[3], moved(1, turned));
}

#[test]
fn what_is_wrong_with_a_portfolio_is_named() {
    let error = |assets: &[AssetMarket], parents: &[Option<usize>], position: Position| {
        let made = Portfolio::new(assets.to_vec(), parents.to_vec(), vec![holding(0, 0, 1.0), position]);
        made.unwrap_err().to_string()
    };
    let (assets, parents) = ([MARKET; 2], [None, Some(0)]);
    let put = |strike, expiry_years| Instrument::Option { kind: OptionKind::Put, strike, expiry_years };
    for (found, expected) in [
        (
            error(&[MARKET, AssetMarket { spot: -1.0, ..MARKET }], &parents, holding(0, 0, 1.0)),
            "asset 1: spot is -1: give a number from 1e-12 to 1e15",
        ),
        (
            error(&[AssetMarket { volatility: 0.0, ..MARKET }], &parents, holding(0, 0, 1.0)),
            "asset 0: volatility is 0: give a number from 1e-6 to 1e2",
        ),
        (
            error(&assets, &parents, holding(2, 0, 1.0)),
            "position 1: asset is 2, but there are 2 of them, numbered from 0",
        ),
        (
            error(&assets, &parents, holding(0, 5, 1.0)),
            "position 1: book is 5, but there are 2 of them, numbered from 0",
        ),
        (
            error(&assets, &parents, holding(0, 0, f64::NAN)),
            "position 1: quantity is NaN: give a number from -1e15 to 1e15",
        ),
        (
            error(&assets, &parents, Position { instrument: put(0.0, 1.0), ..holding(0, 0, 1.0) }),
            "position 1: strike is 0: give a number from 1e-12 to 1e15",
        ),
        (
            error(&assets, &parents, Position { instrument: put(1.0, -1.0), ..holding(0, 0, 1.0) }),
            "position 1: expiry_years is -1: give a number from 3e-9 to 6e1",
        ),
    ] {
        assert_eq!(found, expected);
    }
    for parents in [[None, None], [Some(0), Some(0)], [None, Some(1)]] {
        let found = error(&assets, &parents, holding(0, 0, 1.0));
        assert!(found.contains("its parent is"), "{found}");
    }
}

#[test]
fn what_is_wrong_with_scenarios_is_named() {
    let error = Scenarios::historical(2, Returns::Simple, &[0.0, 0.1, 0.2]).unwrap_err().to_string();
    assert_eq!(error, "shocks has 3 numbers: give 2");
    let error = Scenarios::historical(2, Returns::Simple, &[0.0, 0.1, 0.2, -1.0]).unwrap_err().to_string();
    assert_eq!(error, "scenario 1, asset 1: spot_factor is 0: give a number from 1e-9 to 1e9");
    let error = Scenarios::historical(1, Returns::Logarithmic, &[f64::NAN]).unwrap_err().to_string();
    assert_eq!(error, "scenario 0, asset 0: spot_factor is NaN: give a number from 1e-9 to 1e9");
    let error = Scenarios::stress(1, &[Stress::Assets(vec![(1, Shock::NONE)])]).unwrap_err().to_string();
    assert_eq!(error, "scenario 0 names asset 1, but there are 1 of them, numbered from 0");
    let covariance = Covariance::new(1, vec![0.04]).expect("positive");
    let spec = Drawn { key: 0, scenarios: 1, covariance: &covariance, horizon_years: 0.0, means: &[] };
    let error = Scenarios::drawn(&spec).unwrap_err().to_string();
    assert_eq!(error, "horizon_years is 0: give a number from 1e-9 to 6e1");
    let spec = Drawn { horizon_years: 1.0, means: &[0.0, 0.0], ..spec };
    assert_eq!(Scenarios::drawn(&spec).unwrap_err().to_string(), "means has 2 numbers: give 1");
    let many = Drawn { scenarios: u64::MAX, means: &[], ..spec };
    let drawn = Scenarios::drawn(&many).expect("any number may be drawn");
    assert!(drawn.part(Isa::detect(), 0..u64::MAX).unwrap_err().to_string().contains("too many numbers"));
}

#[test]
fn what_no_returns_have_is_no_covariance() {
    let refused = |assets, values: &[f64]| match Covariance::new(assets, values.to_vec()) {
        Err(error) => error,
        Ok(covariance) => covariance.factor().unwrap_err(),
    };
    let not_positive = |error| {
        matches!(
            error,
            CovarianceError::NegativeVariance { .. } | CovarianceError::Indefinite { least: ..0.0, .. }
        )
    };
    assert!(not_positive(refused(2, &[1.0, 1.1, 1.1, 1.0])));
    assert!(not_positive(refused(2, &[0.0, 0.1, 0.1, 1.0])));
    assert!(not_positive(refused(1, &[-1e-9])));
    // Each pair of correlations is possible, but not all three together.
    assert!(not_positive(refused(3, &[1.0, 0.9, -0.9, 0.9, 1.0, 0.9, -0.9, 0.9, 1.0])));
    assert!(matches!(refused(2, &[1.0, 0.2, 0.1, 1.0]), CovarianceError::Asymmetric { .. }));
    assert!(matches!(
        refused(2, &[1.0, f64::NAN, 0.1, 1.0]),
        CovarianceError::NotFinite { row: 0, asset: 1, .. }
    ));
    assert!(matches!(refused(2, &[1.0]), CovarianceError::Shape { expected: 4, .. }));
    // With only as many days as assets, one direction has no variance.
    let returns = [0.01, 0.02, -0.01, -0.02, 0.005, 0.01, 0.03, -0.01, 0.02];
    let covariance = Covariance::sample(Isa::detect(), 3, &returns).expect("finite");
    let factor = covariance.factor().expect("rounding is forgiven");
    assert!(factor[8] < 1e-9);
    for row in 0..3 {
        for column in 0..3 {
            let product: f64 = (0..3).map(|at| factor[row * 3 + at] * factor[column * 3 + at]).sum();
            assert!((product - covariance.of(row, column)).abs() < 1e-17);
        }
    }
    let huge = Covariance::sample(Isa::detect(), 1, &[1e200, -1e200]).unwrap_err();
    assert!(matches!(huge, CovarianceError::NotFinite { field: "covariance", .. }));
    assert!(Covariance::from_correlations(&[0.1], &[0.9]).is_err());
    let few = Covariance::sample(Isa::detect(), 2, &[0.1, 0.2]).unwrap_err().to_string();
    assert_eq!(few, "there are returns of 1 times: give 2 at least");
}
