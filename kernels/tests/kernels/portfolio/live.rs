//! Updated profits equal a full run, bit for bit, and only changed parts are recomputed.

use std::sync::Arc;

use warptape_kernels::Isa;
use warptape_kernels::portfolio::{LiveProfits, Portfolio, Position, Profits, Scenarios};
use warptape_kernels::pricing::AssetMarket;

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

/// Number of sums above changed leaves of a tree: on each level, one for each pair with a changed member.
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

/// Number of sums above some positions, over all books.
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

/// The portfolio with a changed market of one asset, and one position replaced.
fn edited(
    of: &Portfolio,
    market: Option<(usize, AssetMarket)>,
    position: Option<(usize, Position)>,
) -> Arc<Portfolio> {
    let (mut assets, mut positions) = (of.assets().to_vec(), of.positions().to_vec());
    market.into_iter().for_each(|(asset, market)| assets[asset] = market);
    position.into_iter().for_each(|(number, position)| positions[number] = position);
    let (futures, parents) = (of.futures().to_vec(), of.parents().to_vec());
    Arc::new(Portfolio::with_futures(assets, &futures, parents, positions).expect("in range"))
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
            let (mut changed, mut market, mut position) = (Vec::new(), None, None);
            if numbers.below(3) == 0 {
                let asset = numbers.below(assets);
                market = Some((asset, random_market(numbers)));
                let of_asset = |number: &usize| before.positions()[*number].asset == asset;
                changed.extend((0..positions).filter(of_asset));
            }
            if numbers.below(3) > 0 {
                let number = numbers.below(positions);
                position = Some((number, random_position(numbers, assets, before.positions()[number].book)));
                // A position on that asset is already in the list.
                changed.retain(|known| *known != number);
                changed.push(number);
            }
            let recomputed = live.follow(Isa::detect(), &edited(&before, market, position)).expect("alike");
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
    let after = edited(live.portfolio(), None, Some((3, position)));
    let recomputed = live.follow(Isa::detect(), &after).expect("alike");
    assert_eq!((recomputed.positions, recomputed.sums), (1, 10));
    let drawn = drawn(numbers, 10, u64::MAX);
    let error = LiveProfits::new(Isa::detect(), live.portfolio().clone(), &drawn, 0..1 << 20).unwrap_err();
    assert!(error.to_string().starts_with("the profits of 1000 positions in 1048576 scenarios"), "{error}");
}

#[test]
fn what_is_not_alike_is_not_followed() {
    let numbers = &mut Numbers(300);
    let assets: Vec<AssetMarket> = (0..3).map(|_| random_market(numbers)).collect();
    let positions: Vec<Position> = (0..4).map(|number| random_position(numbers, 2, number % 2)).collect();
    let of = |assets: &[AssetMarket], parents: &[Option<usize>], positions: &[Position]| {
        Arc::new(Portfolio::new(assets.to_vec(), parents.to_vec(), positions.to_vec()).expect("in range"))
    };
    let parents = [None, Some(0), Some(0)];
    let scenarios = random_scenarios(numbers, 2, 5);
    let first = of(&assets[..2], &parents, &positions);
    let mut live = LiveProfits::new(Isa::detect(), first.clone(), &scenarios, 0..5).expect("it fits");
    let before = live.profits();
    let elsewhere: Vec<Position> = positions.iter().map(|held| Position { book: 2, ..*held }).collect();
    for other in [
        of(&assets, &parents, &positions),
        of(&assets[..2], &parents[..2], &positions),
        of(&assets[..2], &[None, Some(0), Some(1)], &positions),
        of(&assets[..2], &parents, &positions[1..]),
        of(&assets[..2], &parents, &elsewhere),
    ] {
        assert_eq!(live.follow(Isa::detect(), &other), None, "{other:?}");
        assert_eq!((live.profits(), live.portfolio()), (before.clone(), &first));
    }
}
