//! Profits that are kept up equal a full run to the bit, and only what changed is computed.

use warptape_kernels::Isa;
use warptape_kernels::portfolio::{LiveProfits, Portfolio, Profits, Scenarios};

use super::invariance::drawn;
use super::{Numbers, random_market, random_portfolio, random_position, random_scenarios};

fn full(portfolio: &Portfolio, scenarios: &Scenarios, range: std::ops::Range<u64>) -> Vec<Vec<u64>> {
    let mut profits = Profits::default();
    portfolio.run(Isa::Baseline, scenarios, range, &mut profits);
    bits(&profits)
}

fn bits(profits: &Profits) -> Vec<Vec<u64>> {
    let of_book = |book| profits.of_book(book).iter().map(|profit| profit.to_bits()).collect();
    (0..profits.books()).map(of_book).collect()
}

/// Sums that stand above leaves of a tree of so many: each pair of a level, of which one changed.
fn sums_above(leaves: usize, mut changed: Vec<usize>) -> usize {
    let (mut columns, mut sums) = (leaves, 0);
    while columns > 1 {
        changed.iter_mut().for_each(|leaf| *leaf /= 2);
        changed.sort_unstable();
        changed.dedup();
        sums += changed.iter().filter(|column| 2 * **column + 1 < columns).count();
        columns = columns.div_ceil(2);
    }
    sums
}

/// Sums that stand above some positions in all books.
fn sums_of(portfolio: &Portfolio, positions: &[usize]) -> usize {
    let mut changed: Vec<Vec<usize>> = vec![Vec::new(); portfolio.parents().len()];
    let members = |book: usize| -> (Vec<usize>, Vec<usize>) {
        let of_book = |number: &usize| portfolio.positions()[*number].book == book;
        let above = |number: &usize| portfolio.parents()[*number] == Some(book);
        (
            (0..portfolio.positions().len()).filter(of_book).collect(),
            (0..portfolio.parents().len()).filter(above).collect(),
        )
    };
    let place =
        |list: &[usize], number: usize| list.iter().position(|found| *found == number).expect("it is there");
    for &position in positions {
        let book = portfolio.positions()[position].book;
        changed[book].push(place(&members(book).0, position));
    }
    let mut sums = 0;
    for book in (0..changed.len()).rev() {
        let (own, books) = members(book);
        if changed[book].is_empty() {
            continue;
        }
        sums += sums_above(own.len() + books.len(), changed[book].clone());
        if let Some(parent) = portfolio.parents()[book] {
            let (own, books) = members(parent);
            changed[parent].push(own.len() + place(&books, book));
        }
    }
    sums
}

#[test]
fn edits_equal_a_full_run() {
    for seed in 0..12 {
        println!("seed {seed}");
        let numbers = &mut Numbers(100 + seed);
        let (assets, books, positions) = (1 + numbers.below(6), 1 + numbers.below(8), 1 + numbers.below(60));
        let portfolio = random_portfolio(numbers, assets, books, positions);
        let scenarios =
            if seed % 2 == 0 { random_scenarios(numbers, assets, 150) } else { drawn(numbers, assets, 150) };
        let range = 10..10 + 1 + numbers.below(140) as u64;
        let mut live =
            LiveProfits::new(Isa::detect(), portfolio, &scenarios, range.clone()).expect("it fits");
        assert_eq!(bits(&live.profits()), full(live.portfolio(), &scenarios, range.clone()));
        for _ in 0..25 {
            let before = live.portfolio().clone();
            let (changed, recomputed) = if numbers.below(3) == 0 {
                let asset = numbers.below(assets);
                let market = random_market(numbers);
                let of_asset = |number: &usize| before.positions()[*number].asset == asset;
                let changed: Vec<usize> = (0..positions).filter(of_asset).collect();
                (changed, live.set_market(Isa::detect(), asset, market).expect("in range"))
            } else {
                let number = numbers.below(positions);
                let position = random_position(numbers, assets, before.positions()[number].book);
                (vec![number], live.replace(Isa::detect(), number, position).expect("in range"))
            };
            assert_eq!(recomputed.positions, changed.len(), "what changed, and no more");
            assert_eq!(recomputed.sums, sums_of(&before, &changed), "what stands above, and no more");
            assert_eq!(bits(&live.profits()), full(live.portfolio(), &scenarios, range.clone()));
        }
    }
}

#[test]
fn one_position_of_many_is_little_work() {
    let numbers = &mut Numbers(200);
    let portfolio = random_portfolio(numbers, 10, 1, 1_000);
    let scenarios = random_scenarios(numbers, 10, 3);
    let mut live = LiveProfits::new(Isa::detect(), portfolio, &scenarios, 0..3).expect("it fits");
    let position = random_position(numbers, 10, 0);
    let recomputed = live.replace(Isa::detect(), 3, position).expect("in range");
    assert_eq!((recomputed.positions, recomputed.sums), (1, 10));
    // What is refused changes nothing.
    let (before, wrong) = (live.profits(), super::Position { quantity: f64::NAN, ..position });
    live.replace(Isa::detect(), 3, wrong).expect_err("no quantity");
    assert_eq!(live.profits(), before);
    let drawn = drawn(numbers, 10, u64::MAX);
    let error = LiveProfits::new(Isa::detect(), live.portfolio().clone(), &drawn, 0..1 << 20).unwrap_err();
    assert!(error.to_string().starts_with("the profits of 1000 positions in 1048576 scenarios"), "{error}");
}
