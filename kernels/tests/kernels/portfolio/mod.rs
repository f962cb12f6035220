//! Risk of portfolios, compared with QuantLib, NumPy and SciPy (written by `tests/scripts/make_portfolio_fixtures.py`).
//! Also compared with itself under other instructions, cuts and ways to the same numbers.

mod device;
mod invariance;
mod live;
mod reference;
mod rules;

use std::collections::BTreeMap;

use warptape_kernels::portfolio::{Instrument, Portfolio, Position, Returns, Scenarios, Shock, Stress};
use warptape_kernels::pricing::{AssetMarket, DigitalPayout, OptionKind};

/// Rows of a fixture, by their first word.
struct Fixture(BTreeMap<String, Vec<Vec<f64>>>);

impl Fixture {
    fn read() -> Self {
        let text = crate::text_of(include_bytes!("../../../../tests/fixtures/portfolio.csv.gz"));
        let mut rows: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
        for line in text.lines() {
            let (name, numbers) = line.split_once(',').expect("a name and numbers");
            let numbers = numbers.split(',').map(|number| number.parse().expect("a number")).collect();
            rows.entry(name.to_owned()).or_default().push(numbers);
        }
        Self(rows)
    }

    fn rows(&self, name: &str) -> &[Vec<f64>] {
        &self.0[name]
    }

    fn returns(&self) -> Vec<f64> {
        self.rows("returns").concat()
    }

    fn portfolio(&self) -> Portfolio {
        let market = |row: &Vec<f64>| AssetMarket {
            spot: row[0],
            rate: row[1],
            dividend_yield: row[2],
            volatility: row[3],
        };
        let position = |row: &Vec<f64>| {
            let [asset, book, quantity, instrument, strike, expiry_years] = row[..] else {
                panic!("{row:?}")
            };
            let option = |kind| Instrument::Option { kind, strike, expiry_years };
            let instrument = match instrument as u8 {
                0 => Instrument::Spot,
                1 => Instrument::Forward { strike, expiry_years },
                2 => option(OptionKind::Call),
                _ => option(OptionKind::Put),
            };
            Position { asset: asset as usize, book: book as usize, quantity, instrument }
        };
        let parent = |row: &Vec<f64>| (row[0] >= 0.0).then_some(row[0] as usize);
        Portfolio::new(
            self.rows("asset").iter().map(market).collect(),
            self.rows("book").iter().map(parent).collect(),
            self.rows("position").iter().map(position).collect(),
        )
        .expect("all in range")
    }

    fn history(&self) -> Scenarios {
        Scenarios::historical(self.rows("asset").len(), Returns::Logarithmic, &self.returns())
            .expect("in range")
    }

    fn stresses(&self) -> Scenarios {
        let shock = |row: &[f64]| Shock {
            spot_factor: row[0],
            spot_slope: row[1],
            volatility: row[2],
            volatility_slope: row[3],
            rate: row[4],
            rate_slope: row[5],
            ..Shock::NONE
        };
        let stress = |row: &Vec<f64>| Stress::Assets(row.chunks(6).map(shock).enumerate().collect());
        let stresses: Vec<Stress> = self.rows("stress").iter().map(stress).collect();
        Scenarios::stress(self.rows("asset").len(), &stresses).expect("in range")
    }
}

/// Pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, count: usize) -> usize {
        self.next() as usize % count
    }

    fn within(&mut self, least: f64, greatest: f64) -> f64 {
        least + (greatest - least) * (self.next() as f64 / 2_147_483_648.0)
    }
}

fn random_market(numbers: &mut Numbers) -> AssetMarket {
    AssetMarket {
        spot: numbers.within(10.0, 500.0),
        rate: numbers.within(-0.02, 0.08),
        dividend_yield: numbers.within(0.0, 0.05),
        volatility: numbers.within(0.05, 0.9),
    }
}

fn random_position(numbers: &mut Numbers, assets: usize, book: usize) -> Position {
    let (strike, expiry_years) = (numbers.within(10.0, 500.0), numbers.within(0.01, 5.0));
    // Some options expire now.
    let expiry_years = if numbers.below(9) == 0 { 0.0 } else { expiry_years };
    let kind = if numbers.below(2) == 0 { OptionKind::Call } else { OptionKind::Put };
    let instrument = match numbers.below(6) {
        0 => Instrument::Spot,
        1 => Instrument::Forward { strike, expiry_years },
        2 => Instrument::Digital { kind, strike, expiry_years, pays: DigitalPayout::Cash, amount: 10.0 },
        3 => Instrument::Digital { kind, strike, expiry_years, pays: DigitalPayout::Asset, amount: 0.5 },
        _ => Instrument::Option { kind, strike, expiry_years },
    };
    Position { asset: numbers.below(assets), book, quantity: numbers.within(-50.0, 100.0), instrument }
}

fn random_portfolio(numbers: &mut Numbers, assets: usize, books: usize, positions: usize) -> Portfolio {
    let markets = (0..assets).map(|_| random_market(numbers)).collect();
    let parents = (0..books).map(|book| (book > 0).then(|| numbers.below(book))).collect();
    let book = |numbers: &mut Numbers| numbers.below(books);
    let positions = (0..positions).map(|_| {
        let book = book(numbers);
        random_position(numbers, assets, book)
    });
    let positions = positions.collect();
    let futures: Vec<bool> = (0..assets).map(|asset| asset % 3 == 2).collect();
    Portfolio::with_futures(markets, &futures, parents, positions).expect("all in range")
}

/// Shocks of all columns, some of them beyond the priceable range.
fn random_scenarios(numbers: &mut Numbers, assets: usize, scenarios: usize) -> Scenarios {
    let mut shock = || {
        let extreme = numbers.below(60);
        Shock {
            spot_factor: if extreme == 0 { 1e9 } else { numbers.within(0.5, 1.5) },
            spot_slope: numbers.within(-0.05, 0.05),
            volatility: if extreme == 1 { -5.0 } else { numbers.within(-0.1, 0.3) },
            volatility_slope: numbers.within(-0.02, 0.02),
            rate: if extreme == 2 { 50.0 } else { numbers.within(-0.02, 0.02) },
            rate_slope: numbers.within(-0.002, 0.002),
            dividend_yield: if extreme == 3 { -50.0 } else { numbers.within(-0.02, 0.02) },
            dividend_yield_slope: numbers.within(-0.002, 0.002),
        }
    };
    let shocks: Vec<Shock> = (0..assets * scenarios).map(|_| shock()).collect();
    Scenarios::given(assets, &shocks).expect("in range")
}
