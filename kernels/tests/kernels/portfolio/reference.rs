//! Comparisons with QuantLib, NumPy and SciPy.

use warptape_kernels::Isa;
use warptape_kernels::portfolio::{
    Covariance, Portfolio, Profits, Ranked, Scenarios, loss_of_blocks, realised_volatilities,
};
use warptape_kernels::pricing::{Greeks, Options};

use super::{Fixture, Instrument};

fn profits_of(portfolio: &Portfolio, scenarios: &Scenarios) -> Profits {
    let mut profits = Profits::default();
    portfolio.run(Isa::detect(), scenarios, 0..scenarios.len(), &mut profits);
    profits
}

/// Prints the worst error, and checks that it is at most `most`.
#[track_caller]
fn expect_near(what: &str, pairs: impl IntoIterator<Item = (f64, f64, f64)>, most: f64) {
    let errors = pairs.into_iter().map(|(found, expected, scale)| {
        let error = (found - expected).abs() / scale;
        assert!(!error.is_nan(), "{what}: {found} for {expected}");
        error
    });
    let (count, worst) = errors.fold((0, 0.0), |(count, worst), error| (count + 1, error.max(worst)));
    println!("{what}: {worst:e} at worst of {count}");
    assert!(count > 0 && worst < most, "{what}: {worst:e} of {count}");
}

fn relative(found: f64, expected: f64) -> (f64, f64, f64) {
    (found, expected, expected.abs())
}

#[test]
fn values_are_those_of_pricing() {
    let portfolio = Fixture::read().portfolio();
    let (mut options, mut greeks, mut numbers) = (Options::default(), Greeks::default(), Vec::new());
    for (number, position) in portfolio.positions().iter().enumerate() {
        if let Instrument::Option { kind, strike, expiry_years } = position.instrument {
            options.push(kind, &portfolio.assets()[position.asset], strike, expiry_years).expect("in range");
            numbers.push(number);
        }
    }
    greeks.add(Isa::detect(), &options, 0..options.len());
    let values = portfolio.values();
    let pairs = numbers
        .iter()
        .zip(greeks.price())
        .map(|(&number, price)| relative(values[number], portfolio.positions()[number].quantity * price));
    expect_near("values", pairs, 1e-14);
    expect_near("sum", [relative(portfolio.book_values()[0], values.iter().sum())], 1e-12);
}

#[test]
fn profits_are_quantlibs() {
    let fixture = Fixture::read();
    let portfolio = fixture.portfolio();
    // Gross value; profits are differences of parts of it.
    let gross: f64 = portfolio.values().iter().map(|value| value.abs()).sum();
    for (name, scenarios) in [("profits", fixture.history()), ("stress_profits", fixture.stresses())] {
        let profits = profits_of(&portfolio, &scenarios);
        let rows = fixture.rows(name);
        assert_eq!(rows.len() as u64, scenarios.len());
        let pairs = rows.iter().enumerate().flat_map(|(scenario, row)| {
            let of_book =
                |(book, expected): (usize, &f64)| (profits.of_book(book)[scenario], *expected, gross);
            row.iter().enumerate().map(of_book).collect::<Vec<_>>()
        });
        expect_near(name, pairs, 1e-14);
    }
}

#[test]
fn measures_are_numpys() {
    let fixture = Fixture::read();
    let (portfolio, scenarios) = (fixture.portfolio(), fixture.history());
    let profits = profits_of(&portfolio, &scenarios);
    let pairs = fixture.rows("measure").iter().flat_map(|row| {
        let [book, confidence, value_at_risk, expected_shortfall] = row[..] else { panic!("{row:?}") };
        let profits = profits.of_book(book as usize);
        let ranked = Ranked::new(profits).expect("finite");
        let found = ranked.value_at_risk(confidence).expect("in range").loss(profits);
        let shortfall = ranked.expected_shortfall(confidence).expect("in range").loss(profits);
        assert!(shortfall >= found, "{row:?}");
        [relative(found, value_at_risk), relative(shortfall, expected_shortfall)]
    });
    expect_near("measures", pairs, 1e-9);
}

#[test]
fn components_are_tail_means_and_add_up() {
    let fixture = Fixture::read();
    let (portfolio, scenarios) = (fixture.portfolio(), fixture.history());
    let profits = profits_of(&portfolio, &scenarios);
    let ranked = Ranked::new(profits.of_book(0)).expect("finite");
    let positions = 0..portfolio.positions().len();
    for row in fixture.rows("components") {
        let (confidence, expected) = (row[0], &row[1..]);
        let tail = ranked.expected_shortfall(confidence).expect("in range");
        let found =
            portfolio.component_losses(Isa::detect(), &scenarios, &tail, positions.clone()).expect("fits");
        let total = tail.loss(profits.of_book(0));
        expect_near("components", found.iter().zip(expected).map(|(found, row)| (*found, *row, total)), 1e-9);
        for tail in [tail, ranked.value_at_risk(confidence).expect("in range")] {
            let found = portfolio
                .component_losses(Isa::detect(), &scenarios, &tail, positions.clone())
                .expect("fits");
            let of_blocks: Vec<Vec<f64>> = (0..tail.blocks())
                .map(|block| {
                    let block = tail.block(block);
                    let losses =
                        portfolio.component_losses(Isa::detect(), &scenarios, &block, positions.clone());
                    losses.expect("fits")
                })
                .collect();
            for (position, whole) in found.iter().enumerate() {
                let blocks: Vec<f64> = of_blocks.iter().map(|losses| losses[position]).collect();
                assert_eq!(loss_of_blocks(&blocks).to_bits(), whole.to_bits(), "cut at {confidence}");
            }
            let books = portfolio.book_sums(&found).into_iter().enumerate();
            let pairs = books.map(|(book, sum)| (sum, tail.loss(profits.of_book(book)), total));
            expect_near("books", pairs, 1e-12);
        }
    }
}

#[test]
fn covariances_are_numpys() {
    let fixture = Fixture::read();
    let (assets, returns) = (fixture.rows("asset").len(), fixture.returns());
    let sample = Covariance::sample(Isa::detect(), assets, &returns).expect("finite");
    let all = |found: &[f64], expected: &[f64]| -> Vec<(f64, f64, f64)> {
        assert_eq!(found.len(), expected.len());
        found.iter().zip(expected).map(|(found, expected)| relative(*found, *expected)).collect()
    };
    expect_near("sample", all(sample.values(), &fixture.rows("covariance")[0]), 1e-9);
    expect_near("correlations", all(&sample.correlations(), &fixture.rows("correlations")[0]), 1e-9);
    for row in fixture.rows("exponential") {
        // The reference has deviations from the weighted means; ours has deviations from 0.
        let (around_means, means) = row[1..].split_at(assets * assets);
        let expected: Vec<f64> = (0..assets * assets)
            .map(|number| around_means[number] + means[number / assets] * means[number % assets])
            .collect();
        let found = Covariance::exponential(Isa::detect(), assets, &returns, row[0]).expect("finite");
        expect_near("exponential", all(found.values(), &expected), 1e-9);
    }
    let realised = realised_volatilities(assets, &returns, 252.0).expect("finite");
    expect_near("realised", all(&realised, &fixture.rows("realised")[0]), 1e-9);
}

#[test]
fn parametric_risk_is_scipys() {
    let fixture = Fixture::read();
    let portfolio = fixture.portfolio();
    let assets = portfolio.assets().len();
    let covariance = Covariance::sample(Isa::detect(), assets, &fixture.returns()).expect("finite");
    for row in fixture.rows("parametric") {
        let [book, confidence, value_at_risk, expected_shortfall] = row[..] else { panic!("{row:?}") };
        let risk =
            portfolio.parametric(Isa::detect(), &covariance, book as usize, confidence).expect("in range");
        if confidence > 0.5 {
            expect_near("value at risk", [relative(risk.total.value_at_risk, value_at_risk)], 1e-9);
        } else {
            assert_eq!(risk.total.value_at_risk, 0.0);
        }
        expect_near("shortfall", [relative(risk.total.expected_shortfall, expected_shortfall)], 1e-9);
        let sum: f64 = risk.positions.iter().map(|part| part.expected_shortfall).sum();
        expect_near("sum", [relative(sum, risk.total.expected_shortfall)], 1e-12);
    }
    let risk = portfolio.parametric(Isa::detect(), &covariance, 0, 0.99).expect("in range");
    let pairs = risk.positions.iter().zip(fixture.rows("parametric_component"));
    let pairs = pairs.map(|(part, row)| (part.value_at_risk, row[0], risk.total.value_at_risk));
    expect_near("derivatives", pairs, 1e-3);
}
