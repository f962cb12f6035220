//! The same bits with other instructions, in other parts, and position by position.

use warptape_kernels::Isa;
use warptape_kernels::portfolio::{Covariance, Drawn, Profits, Scenarios};

use super::{Numbers, random_portfolio, random_scenarios};

pub fn drawn(numbers: &mut Numbers, assets: usize, scenarios: u64) -> Scenarios {
    let returns: Vec<f64> = (0..assets * 40).map(|_| numbers.within(-0.03, 0.03)).collect();
    let covariance = Covariance::sample(Isa::detect(), assets, &returns).expect("finite").scaled(252.0);
    let means: Vec<f64> = (0..assets).map(|_| numbers.within(-0.1, 0.1)).collect();
    let spec = Drawn { key: 7 << 40, scenarios, covariance: &covariance, horizon_years: 0.04, means: &means };
    Scenarios::drawn(&spec).expect("in range")
}

#[test]
fn bits_are_the_same_for_all_instructions_and_cuts() {
    let numbers = &mut Numbers(1);
    let portfolio = random_portfolio(numbers, 5, 7, 61);
    for scenarios in [random_scenarios(numbers, 5, 333), drawn(numbers, 5, 333)] {
        let mut whole = Profits::default();
        portfolio.run(Isa::Baseline, &scenarios, 0..333, &mut whole);
        assert!(whole.of_book(0).iter().all(|profit| profit.is_finite()));
        for isa in Isa::supported() {
            let mut profits = Profits::default();
            portfolio.run(isa, &scenarios, 0..333, &mut profits);
            assert_eq!(whole, profits, "{isa:?}");
        }
        for part in [1, 7, 63, 64, 65, 200, 333] {
            let mut profits = Profits::default();
            for first in (0..333).step_by(part) {
                let mut more = Profits::default();
                portfolio.run(Isa::detect(), &scenarios, first..333.min(first + part as u64), &mut more);
                profits.append(&more);
            }
            assert_eq!(whole, profits, "in parts of {part}");
        }
    }
}

#[test]
fn books_are_the_sums_of_their_positions() {
    let numbers = &mut Numbers(2);
    let portfolio = random_portfolio(numbers, 3, 9, 50);
    for scenarios in [random_scenarios(numbers, 3, 130), drawn(numbers, 3, 130)] {
        let mut books = Profits::default();
        portfolio.run(Isa::detect(), &scenarios, 0..130, &mut books);
        // The selection is backwards, with one scenario twice.
        let selection: Vec<u64> = (0..130).rev().chain([77]).collect();
        let selected = scenarios.selected(Isa::Baseline, &selection).expect("fits");
        let profits: Vec<Vec<f64>> = (0..50)
            .map(|position| {
                let (mut direct, mut found) = (Vec::new(), Vec::new());
                portfolio.run_position(Isa::detect(), &scenarios, 60..70, position, &mut direct);
                portfolio.run_position(Isa::Baseline, &selected, 0..131, position, &mut found);
                let same: Vec<f64> = (60..70).map(|scenario| found[129 - scenario]).collect();
                assert_eq!(direct, same);
                found
            })
            .collect();
        for (at, &scenario) in selection.iter().enumerate() {
            let of_positions: Vec<f64> = profits.iter().map(|profits| profits[at]).collect();
            for (book, sum) in portfolio.book_sums(&of_positions).into_iter().enumerate() {
                assert_eq!(sum.to_bits(), books.of_book(book)[scenario as usize].to_bits());
            }
        }
    }
}

#[test]
fn covariances_have_the_same_bits_for_all_instructions() {
    let numbers = &mut Numbers(3);
    for assets in [1, 3, 4, 5, 16, 17, 33] {
        let returns: Vec<f64> = (0..assets * 25).map(|_| numbers.within(-0.03, 0.03)).collect();
        let sample = |isa| Covariance::sample(isa, assets, &returns).expect("finite");
        let exponential = |isa| Covariance::exponential(isa, assets, &returns, 0.94).expect("finite");
        for isa in Isa::supported() {
            assert_eq!(sample(Isa::Baseline), sample(isa), "{isa:?}");
            assert_eq!(exponential(Isa::Baseline), exponential(isa), "{isa:?}");
        }
        // The result does not depend on the tiles.
        let one = exponential(Isa::Baseline);
        for (row, column) in [(0, 0), (assets - 1, 0), (assets - 1, assets / 2)] {
            let (mut sum, mut weight) = (0.0, 0.0);
            for row_of in returns.chunks(assets) {
                sum = 0.94 * sum + row_of[row] * row_of[column];
                weight = 0.94 * weight + 1.0;
            }
            assert_eq!(one.of(row, column), sum / weight);
            assert_eq!(one.of(column, row), sum / weight);
        }
    }
}
