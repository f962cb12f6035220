//! Values in scenarios, computed for [`LANES`] of them side by side.

use std::collections::BTreeMap;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::positions::{Instrument, Portfolio, Position};
use super::scenarios::{MOVES, Moves, Scenarios, Scratch};
use super::tree::Tree;
use crate::isa::{HotLoop, Isa};
use crate::math::{density_and_cdf, exp, ln_of_positive};
use crate::pricing::draws::{LANES, Lanes};
use crate::pricing::{
    AmericanError, AmericanOption, AssetMarket, DigitalPayout, ExerciseBoundary, PRICE_RANGE, RATE_RANGE,
    VOLATILITY_RANGE,
};

/// Kinds of instruments, as numbers that kernels know.
pub(super) const SPOT: u64 = 0;
pub(super) const FORWARD: u64 = 1;
pub(super) const OPTION: u64 = 2;
pub(super) const DIGITAL_CASH: u64 = 3;
pub(super) const DIGITAL_ASSET: u64 = 4;
/// An American option, valued by its boundary, which only the host has.
pub(super) const AMERICAN: u64 = 5;

/// A position with its asset's market: `HeldTerms` of `portfolio.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct HeldTerms {
    pub(super) instrument: u64,
    pub(super) asset: u64,
    pub(super) quantity: f64,
    /// Value of one unit now.
    pub(super) unit: f64,
    /// 1 for a call, −1 for a put.
    pub(super) sign: f64,
    pub(super) strike: f64,
    /// Years until expiry; 0 for the asset itself.
    pub(super) years: f64,
    pub(super) spot: f64,
    pub(super) rate: f64,
    pub(super) dividend_yield: f64,
    pub(super) volatility: f64,
    /// The payoff of a digital option.
    pub(super) amount: f64,
    /// 1 if the price is that of a future, whose yield is the rate; else 0.
    pub(super) is_future: u64,
}

/// A position with its exercise boundary; `None` if it has none.
#[derive(Clone, Copy)]
pub(super) struct Held<'a> {
    pub(super) terms: HeldTerms,
    pub(super) boundary: Option<&'a ExerciseBoundary>,
}

impl HeldTerms {
    pub(super) fn new(position: &Position, market: &AssetMarket, is_future: bool, unit: f64) -> Self {
        let mut paid = 1.0;
        let (instrument, sign, strike, years) = match position.instrument {
            Instrument::Spot => (SPOT, 1.0, 1.0, 0.0),
            Instrument::Forward { strike, expiry_years } => (FORWARD, 1.0, strike, expiry_years),
            Instrument::Option { kind, strike, expiry_years } => (OPTION, kind.sign(), strike, expiry_years),
            // An American option that expires now has the same value as a European one.
            Instrument::American { kind, strike, expiry_years } => {
                let instrument = if expiry_years > 0.0 { AMERICAN } else { OPTION };
                (instrument, kind.sign(), strike, expiry_years)
            }
            Instrument::Digital { kind, strike, expiry_years, pays, amount } => {
                paid = amount;
                let instrument = match pays {
                    DigitalPayout::Cash => DIGITAL_CASH,
                    DigitalPayout::Asset => DIGITAL_ASSET,
                };
                (instrument, kind.sign(), strike, expiry_years)
            }
        };
        let AssetMarket { spot, rate, dividend_yield, volatility } = *market;
        let (asset, quantity) = (position.asset as u64, position.quantity);
        Self {
            instrument,
            asset,
            quantity,
            unit,
            sign,
            strike,
            years,
            spot,
            rate,
            dividend_yield,
            volatility,
            amount: paid,
            is_future: u64::from(is_future),
        }
    }
}

/// An asset's market in some scenarios, for one expiry.
struct Moved<const N: usize> {
    spot: [f64; N],
    volatility: [f64; N],
    rate: [f64; N],
    dividend_yield: [f64; N],
}

/// A number clamped to a range.
#[inline(always)]
fn within(x: f64, least: f64, greatest: f64) -> f64 {
    let x = if x > least { x } else { least };
    if x < greatest { x } else { greatest }
}

#[inline(always)]
fn moved<const N: usize>(terms: &HeldTerms, [factor, turn, moves @ ..]: &[[f64; N]; MOVES]) -> Moved<N> {
    let [volatility, volatility_slope, rate, rate_slope, of_yield, yield_slope] = moves;
    let mut found = Moved { spot: [0.0; N], volatility: [0.0; N], rate: [0.0; N], dividend_yield: [0.0; N] };
    for lane in 0..N {
        let spot = terms.spot * (factor[lane] + turn[lane] * terms.years);
        found.spot[lane] = within(spot, *PRICE_RANGE.start(), *PRICE_RANGE.end());
        let volatility = terms.volatility + (volatility[lane] + volatility_slope[lane] * terms.years);
        found.volatility[lane] = within(volatility, *VOLATILITY_RANGE.start(), *VOLATILITY_RANGE.end());
        let rate = terms.rate + (rate[lane] + rate_slope[lane] * terms.years);
        found.rate[lane] = within(rate, *RATE_RANGE.start(), *RATE_RANGE.end());
        let dividend_yield = terms.dividend_yield + (of_yield[lane] + yield_slope[lane] * terms.years);
        let dividend_yield = within(dividend_yield, *RATE_RANGE.start(), *RATE_RANGE.end());
        found.dividend_yield[lane] = if terms.is_future != 0 { found.rate[lane] } else { dividend_yield };
    }
    found
}

/// The payoff of an option that expires now.
#[inline(always)]
fn paid_now(terms: &HeldTerms, spot: f64) -> f64 {
    let pays = terms.sign * (spot - terms.strike);
    let is_paid = pays > 0.0;
    match terms.instrument {
        DIGITAL_CASH => {
            if is_paid {
                terms.amount
            } else {
                0.0
            }
        }
        DIGITAL_ASSET => {
            if is_paid {
                terms.amount * spot
            } else {
                0.0
            }
        }
        _ => {
            if is_paid {
                pays
            } else {
                0.0
            }
        }
    }
}

/// The value of one unit in some scenarios. There is one loop for each costly function, as in pricing.
#[inline(always)]
fn unit_values<const N: usize>(terms: &HeldTerms, moves: &[[f64; N]; MOVES]) -> [f64; N] {
    let market = moved(terms, moves);
    if terms.instrument == SPOT {
        return market.spot;
    }
    if terms.instrument != FORWARD && terms.years == 0.0 {
        return market.spot.map(|spot| paid_now(terms, spot));
    }
    let mut carried = [0.0; N];
    if market.dividend_yield == [terms.dividend_yield; N] {
        carried = [exp(-(terms.dividend_yield * terms.years)); N];
    } else {
        for (carried, dividend_yield) in carried.iter_mut().zip(&market.dividend_yield) {
            *carried = exp(-(dividend_yield * terms.years));
        }
    }
    let (mut cash, mut found) = ([0.0; N], [0.0; N]);
    for (cash, rate) in cash.iter_mut().zip(&market.rate) {
        *cash = terms.strike * exp(-(rate * terms.years));
    }
    if terms.instrument == FORWARD {
        for lane in 0..N {
            found[lane] = market.spot[lane] * carried[lane] - cash[lane];
        }
        return found;
    }
    let root = terms.years.sqrt();
    let (mut d1, mut d2) = ([0.0; N], [0.0; N]);
    for lane in 0..N {
        let volatility = market.volatility[lane];
        let carry = market.rate[lane] - market.dividend_yield[lane];
        let drift = (carry + 0.5 * (volatility * volatility)) * terms.years;
        let deviation = volatility * root;
        d1[lane] = (ln_of_positive(market.spot[lane] / terms.strike) + drift) * (1.0 / deviation);
        d2[lane] = d1[lane] - deviation;
    }
    let (mut cdf1, mut cdf2) = ([0.0; N], [0.0; N]);
    for lane in 0..N {
        (_, cdf1[lane]) = density_and_cdf(terms.sign * d1[lane]);
    }
    for lane in 0..N {
        (_, cdf2[lane]) = density_and_cdf(terms.sign * d2[lane]);
    }
    for lane in 0..N {
        let asset = market.spot[lane] * carried[lane] * cdf1[lane];
        found[lane] = match terms.instrument {
            // The cash leg is the present value of the strike.
            DIGITAL_CASH => terms.amount * (cash[lane] / terms.strike * cdf2[lane]),
            DIGITAL_ASSET => terms.amount * asset,
            _ => terms.sign * (asset - cash[lane] * cdf2[lane]),
        };
    }
    found
}

/// The values of one unit of an American option. If only the spot moves, its boundary is reused; otherwise it is
/// recomputed. A value is NaN if no boundary is found.
fn american_values(isa: Isa, held: &Held<'_>, moves: &Moves, lanes: &Range<usize>) -> Lanes<f64> {
    let (terms, boundary) = (&held.terms, held.boundary.expect("boundaries are found before"));
    let market = moved(terms, moves);
    let now = [terms.volatility, terms.rate, terms.dividend_yield];
    let of = |lane: usize| [market.volatility[lane], market.rate[lane], market.dividend_yield[lane]];
    let mut values = [terms.unit; LANES];
    if lanes.clone().all(|lane| of(lane) == now) {
        values[lanes.clone()].copy_from_slice(&boundary.values(isa, &market.spot[lanes.clone()]));
        return values;
    }
    let mut known: Option<([f64; 3], Option<ExerciseBoundary>)> = None;
    for lane in lanes.clone() {
        let [volatility, rate, dividend_yield] = of(lane);
        let (_, found) = match known.take().filter(|(of_known, _)| *of_known == of(lane)) {
            Some(same) => known.insert(same),
            None => {
                let market = AssetMarket { volatility, rate, dividend_yield, ..boundary.option().market };
                let option = AmericanOption { market, ..*boundary.option() };
                known.insert((of(lane), option.boundary(isa).ok()))
            }
        };
        values[lane] = found.as_ref().map_or(f64::NAN, |found| found.values(isa, &[market.spot[lane]])[0]);
    }
    values
}

/// Value of one unit now.
pub(super) fn unit_value(terms: &HeldTerms) -> f64 {
    let [value] = unit_values(terms, &[[1.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0]]);
    value
}

#[inline(always)]
fn profits(isa: Isa, held: &Held<'_>, moves: &Moves, lanes: &Range<usize>) -> Lanes<f64> {
    let terms = &held.terms;
    let mut found = match terms.instrument {
        AMERICAN => american_values(isa, held, moves, lanes),
        _ => unit_values(terms, moves),
    };
    for value in &mut found {
        *value = terms.quantity * (*value - terms.unit);
    }
    found
}

/// Profits of each book in scenarios, in order, in the currency of the assets' prices; losses are negative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profits {
    /// Profits of each book, by scenario.
    pub(super) columns: Vec<Vec<f64>>,
    /// Positions without a value in some scenario, each with the first such scenario.
    pub(super) unvalued: BTreeMap<usize, u64>,
}

impl Profits {
    /// Profits of a book, including those of the books in it.
    pub fn of_book(&self, book: usize) -> &[f64] {
        &self.columns[book]
    }

    /// Number of books.
    pub fn books(&self) -> usize {
        self.columns.len()
    }

    /// Number of scenarios.
    pub fn scenarios(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// American options without a boundary in a scenario, ascending, each with the first such scenario. The profits of
    /// their books are NaN there.
    pub fn unvalued(&self) -> impl Iterator<Item = (usize, u64)> {
        self.unvalued.iter().map(|(&position, &scenario)| (position, scenario))
    }

    /// Adds the profits in further scenarios, which another lane has computed.
    pub fn append(&mut self, next: &Profits) {
        for (position, scenario) in next.unvalued() {
            self.unvalued.entry(position).or_insert(scenario);
        }
        self.columns.resize(self.columns.len().max(next.columns.len()), Vec::new());
        for (column, next) in self.columns.iter_mut().zip(&next.columns) {
            column.extend_from_slice(next);
        }
    }
}

impl Portfolio {
    /// Adds the profits of each book in some scenarios, in order. The scenarios must have as many assets as the
    /// portfolio.
    pub fn run(&self, isa: Isa, scenarios: &Scenarios, range: Range<u64>, profits: &mut Profits) {
        assert_eq!(scenarios.assets(), self.assets().len(), "moves for each asset");
        assert!(range.end <= scenarios.len(), "scenarios that there are");
        profits.columns.resize(self.parents().len(), Vec::new());
        let held: Vec<Held<'_>> = (0..self.positions().len()).map(|number| self.held(number)).collect();
        isa.run(RunBooks { isa, portfolio: self, held: &held, scenarios, range, profits });
    }

    /// American options for which a scenario gives a market with two boundaries, which [`AmericanOption::check`]
    /// refuses. Each has the first such scenario, in the order of positions.
    pub fn refused_in(&self, scenarios: &Scenarios) -> Vec<(usize, u64, AmericanError)> {
        assert_eq!(scenarios.assets(), self.assets().len(), "moves for each asset");
        if !scenarios.moves_more_than_spots() {
            return Vec::new();
        }
        let scratch = Scratch::default();
        let refused_in = |(number, option): (usize, AmericanOption)| {
            let terms = self.terms(number);
            groups(0..scenarios.len()).find_map(|(group, lanes)| {
                let market = moved(&terms, &scenarios.moves(group, terms.asset as usize, &scratch));
                lanes.into_iter().find_map(|lane| {
                    let (rate, dividend_yield) = (market.rate[lane], market.dividend_yield[lane]);
                    let market = AssetMarket { rate, dividend_yield, ..option.market };
                    let refused = AmericanOption { market, ..option }.check_boundaries().err();
                    refused.map(|error| (number, group * LANES as u64 + lane as u64, error))
                })
            })
        };
        self.americans().into_iter().filter_map(refused_in).collect()
    }

    /// Adds the profits of one position in some scenarios, in order, with the same bits as in its book's sum. For drawn
    /// scenarios this draws the moves of all assets; for many positions, call [`Scenarios::selected`] first.
    pub fn run_position(
        &self,
        isa: Isa,
        scenarios: &Scenarios,
        range: Range<u64>,
        position: usize,
        profits: &mut Vec<f64>,
    ) {
        assert_eq!(scenarios.assets(), self.assets().len(), "moves for each asset");
        assert!(range.end <= scenarios.len(), "scenarios that there are");
        isa.run(RunPosition { isa, held: &self.held(position), scenarios, range, profits });
    }
}

/// The groups of scenarios of a range, each with the range's lanes in it.
pub(super) fn groups(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let lanes = LANES as u64;
    (range.start / lanes..range.end.div_ceil(lanes)).filter_map(move |group| {
        let first = group * lanes;
        let (from, to) = (range.start.max(first), range.end.min(first + lanes));
        (from < to).then(|| (group, (from - first) as usize..(to - first) as usize))
    })
}

struct RunBooks<'a> {
    isa: Isa,
    portfolio: &'a Portfolio,
    held: &'a [Held<'a>],
    scenarios: &'a Scenarios,
    range: Range<u64>,
    profits: &'a mut Profits,
}

impl HotLoop for RunBooks<'_> {
    #[inline(always)]
    fn run(self) {
        let members = self.portfolio.members();
        let mut sums = vec![[0.0; LANES]; members.len()];
        let (mut scratch, mut tree) = (Scratch::default(), Tree::default());
        for (group, lanes) in groups(self.range) {
            self.scenarios.draw(group, &mut scratch);
            for (book, members) in members.iter().enumerate().rev() {
                for &position in &members.positions {
                    let held = &self.held[position];
                    let moves = self.scenarios.moves(group, held.terms.asset as usize, &scratch);
                    let found = profits(self.isa, held, &moves, &lanes);
                    if held.terms.instrument == AMERICAN
                        && let Some(lane) = lanes.clone().find(|&lane| found[lane].is_nan())
                    {
                        let scenario = group * LANES as u64 + lane as u64;
                        self.profits.unvalued.entry(position).or_insert(scenario);
                    }
                    tree.add(found);
                }
                members.books.iter().for_each(|book| tree.add(sums[*book]));
                sums[book] = tree.take();
            }
            for (column, sum) in self.profits.columns.iter_mut().zip(&sums) {
                column.extend_from_slice(&sum[lanes.clone()]);
            }
        }
    }
}

struct RunPosition<'a> {
    isa: Isa,
    held: &'a Held<'a>,
    scenarios: &'a Scenarios,
    range: Range<u64>,
    profits: &'a mut Vec<f64>,
}

impl HotLoop for RunPosition<'_> {
    #[inline(always)]
    fn run(self) {
        let mut scratch = Scratch::default();
        for (group, lanes) in groups(self.range) {
            self.scenarios.draw(group, &mut scratch);
            let moves = self.scenarios.moves(group, self.held.terms.asset as usize, &scratch);
            self.profits.extend_from_slice(&profits(self.isa, self.held, &moves, &lanes)[lanes]);
        }
    }
}
