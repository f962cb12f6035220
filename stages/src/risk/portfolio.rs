//! Risk of portfolios by full revaluation, in three rounds. The first computes profits of all books by scenario; a unit
//! is 64 scenarios. The second sorts these profits to find the tails; it is one unit, on the processor. The third
//! computes the loss of each position in the tails of the whole; a unit is some positions in 64 scenarios. Stress has
//! only the first round. Parametric risk is one unit, on the processor. Before all of them, boundaries of American
//! options are found, a unit each.
//!
//! A position that cannot be valued is one bad row of the result, and part of no sum.

mod measures;
mod settling;
mod simulated;
mod single_round;

use std::collections::BTreeMap;
use std::sync::Arc;

use warptape_events::risk::{
    self, Asset, BadPosition, BookRisk, Matrix, PortfolioProblem, PortfolioResult, PositionRisk, RiskError,
    RiskMeasure, RiskOutcome,
};
use warptape_kernels::portfolio::{
    Instrument, Portfolio, PortfolioError, Position, Profits, QUANTITY_RANGE, Scenarios, TAIL_BLOCK,
};
use warptape_kernels::pricing::{AmericanError, AmericanOption, AssetMarket};

use super::assets::{ANY_MARKET, Resolved};
use super::bad_rows::BadRows;
use super::rounds::{Next, Partial, Plan, ProblemKind, Round};
use super::{bad as bad_parameter, check_count, check_length, cost};
use measures::{Measure, tail_of};
use settling::SettlingRound;
pub use simulated::Tails;
use simulated::{ProfitRound, Simulated};
use single_round::{ParametricRound, StressRound};

/// Most positions of a request: their risk has to fit into a record.
const POSITIONS_MAX: usize = 65_536;
/// Most American options of a request: a unit revalues all of them, and other requests wait meanwhile.
const AMERICANS_MAX: usize = 2_000;
/// Bytes of a position as journals record them, whatever its size has become since.
const POSITION_BYTES: usize = 48;
/// Number of positions in closed form that cost as much as an American option.
const AMERICAN_COST: usize = 500;
/// Most books of a request.
const BOOKS_MAX: usize = 1_000;
/// Greatest product of books and scenarios: the profits are kept until the end.
const CELLS_MAX: u64 = 1 << 24;
/// Most stress scenarios of a request.
const STRESSES_MAX: usize = 1_000;
/// Greatest product of stress scenarios and books, or assets. Profits have to fit into a record, and shocks are made
/// before lanes have work on them.
const STRESS_CELLS_MAX: usize = 100_000;
/// Greatest size of a name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Scenarios of a unit.
const UNIT_SCENARIOS: u64 = 64;

impl ProblemKind for PortfolioProblem {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn has_rows(&self) -> bool {
        true
    }

    fn matrix(&self) -> Option<&Matrix> {
        match &self.measure {
            RiskMeasure::Historical(measure) => Some(&measure.returns),
            RiskMeasure::MonteCarlo(measure) => Some(&measure.covariance),
            RiskMeasure::Parametric(measure) => Some(&measure.covariance),
            RiskMeasure::Stress(_) => None,
        }
    }

    fn plan(&self, assets: &Resolved, seed: i64) -> Result<Plan, RiskError> {
        check_names(self, assets)?;
        let (portfolio, bad) = portfolio_of(self, assets)?;
        let measure = Measure::new(&self.measure, seed as u64, assets)?;
        let americans = portfolio.americans().len();
        if americans > AMERICANS_MAX {
            let message = format!(
                "{americans} American options; a book may have {AMERICANS_MAX}, which a slice of work revalues one by one: divide the book"
            );
            return Err(bad_parameter("problem.positions", message));
        }
        // Tails are revalued with the moves of every asset.
        let (books, count) = (self.books.len() as u64, assets.markets.len() as u64);
        if measure.scenarios().is_some_and(|scenarios| scenarios.len() * books.max(count) > CELLS_MAX) {
            let message = format!(
                "scenarios times books, or times assets, is more than {CELLS_MAX}: fewer are allowed"
            );
            return Err(bad_parameter("problem.measure.scenarios", message));
        }
        measure.check_parts(self)?;
        let held = Held {
            portfolio: Arc::new(portfolio),
            books: self.books.iter().map(|book| book.name.clone()).collect(),
            positions: self.positions.iter().map(|position| position.name.clone()).collect(),
            bad,
        };
        let held = without_refused(&held, &measure)?;
        let (bytes, cost_ns) = (bytes_of(&held.portfolio, &measure), cost_of(&held.portfolio, &measure));
        let first = if !held.portfolio.americans().is_empty() {
            Box::new(SettlingRound { held, measure }) as Box<dyn Round>
        } else {
            first_round(held, measure)
        };
        Ok(Plan { first, bytes, cost_ns })
    }
}

/// The book without American options that a stress refuses, because it gives them two boundaries.
fn without_refused(held: &Held, measure: &Measure) -> Result<Held, RiskError> {
    let Measure::Stress { scenarios, names } = measure else { return Ok(held.clone()) };
    let refused = held.portfolio.refused_in(scenarios).into_iter();
    let said = |(position, scenario, error): (usize, u64, AmericanError)| {
        (position, format!("{}: {error}", stress_named(names, scenario)))
    };
    held.without(refused.map(said).collect())
}

/// A stress scenario, named by its place in the request and its name.
fn stress_named(names: &[String], scenario: u64) -> String {
    format!("problem.measure.scenarios[{scenario}] ({:?})", names[scenario as usize])
}

/// The first round of a portfolio whose boundaries are known.
fn first_round(held: Held, measure: Measure) -> Box<dyn Round> {
    match measure {
        Measure::Parametric { covariance, confidence, horizon_years } => {
            Box::new(ParametricRound { held, covariance, confidence, horizon_years })
        }
        Measure::Stress { scenarios, names } => {
            Box::new(StressRound { held, scenarios, names, follower: None })
        }
        Measure::Simulated { scenarios, confidence, horizon_years, are_drawn } => {
            let simulated = Simulated { held, scenarios, confidence, horizon_years, are_drawn };
            Box::new(ProfitRound { simulated: Arc::new(simulated), follower: None })
        }
    }
}

/// Cost of a unit of scenarios, in positions in closed form.
fn positions_cost(portfolio: &Portfolio) -> usize {
    portfolio.positions().len() + AMERICAN_COST * portfolio.americans().len()
}

/// Checks the numbers of books and positions, and the sizes of names.
fn check_names(problem: &PortfolioProblem, assets: &Resolved) -> Result<(), RiskError> {
    check_count("problem.books", problem.books.len(), 1..=BOOKS_MAX)?;
    check_count("problem.positions", problem.positions.len(), 1..=POSITIONS_MAX)?;
    for (number, book) in problem.books.iter().enumerate() {
        check_length(&format!("problem.books[{number}].name"), &book.name, 0..=NAME_BYTES_MAX)?;
    }
    for (number, position) in problem.positions.iter().enumerate() {
        check_length(&format!("problem.positions[{number}].name"), &position.name, 0..=NAME_BYTES_MAX)?;
    }
    if let RiskMeasure::Stress(stress) = &problem.measure {
        let wide = problem.books.len().max(assets.markets.len());
        check_count("problem.measure.scenarios", stress.scenarios.len(), 1..=STRESSES_MAX)?;
        check_count("problem.measure.scenarios", stress.scenarios.len() * wide, 1..=STRESS_CELLS_MAX)?;
        for (number, scenario) in stress.scenarios.iter().enumerate() {
            let field = format!("problem.measure.scenarios[{number}].name");
            check_length(&field, &scenario.name, 0..=NAME_BYTES_MAX)?;
        }
    }
    Ok(())
}

fn bytes_of(portfolio: &Portfolio, measure: &Measure) -> usize {
    let (books, positions) = (portfolio.parents().len(), portfolio.positions().len());
    let numbers = match measure {
        Measure::Parametric { covariance, .. } => covariance.assets() * covariance.assets(),
        Measure::Stress { scenarios, .. } => scenarios.len() as usize * books,
        Measure::Simulated { scenarios, confidence, .. } => {
            scenarios.len() as usize * books + tail_of(scenarios, *confidence) / TAIL_BLOCK * positions
        }
    };
    let scenarios = measure.scenarios().map_or(0, Scenarios::bytes);
    scenarios + numbers * size_of::<f64>() + positions * POSITION_BYTES
}

fn cost_of(portfolio: &Portfolio, measure: &Measure) -> u64 {
    let (books, positions) = (portfolio.parents().len(), portfolio.positions().len());
    let americans = portfolio.americans().len();
    let of_scenarios = |scenarios: &Scenarios, count: u64| {
        let of_americans = match americans {
            0 => 0,
            _ => cost::early_exercise(americans, count, scenarios.moves_more_than_spots()),
        };
        cost::revaluation(positions, count).saturating_add(of_americans)
    };
    match measure {
        Measure::Parametric { covariance, .. } => {
            let of_americans = if americans == 0 { 0 } else { cost::early_exercise(americans, 1, false) };
            cost::parametric(books, positions, covariance.assets()).saturating_add(of_americans)
        }
        Measure::Stress { scenarios, .. } => of_scenarios(scenarios, scenarios.len()),
        Measure::Simulated { scenarios, confidence, .. } => {
            let tail = tail_of(scenarios, *confidence) as u64;
            of_scenarios(scenarios, scenarios.len() + tail)
                .saturating_add(cost::ordering(books, scenarios.len()))
        }
    }
}

/// The held positions, with the names of books and positions.
#[derive(Clone, Debug)]
struct Held {
    /// Portfolio of the good positions.
    portfolio: Arc<Portfolio>,
    books: Vec<String>,
    /// Names in the order of the request, those of bad positions included.
    positions: Vec<String>,
    bad: BadRows,
}

/// Value at risk and expected shortfall of the whole, with their errors and inputs.
struct WholeRisk {
    measures: [f64; 2],
    errors: Option<[f64; 2]>,
    /// Number of scenarios; 0 for parametric risk.
    scenarios: i64,
    horizon_years: Option<f64>,
}

impl Held {
    /// A copy without some positions of the portfolio, which come in ascending order with their errors. If none is
    /// left, the first error is returned.
    fn without(&self, bad: Vec<(usize, String)>) -> Result<Self, RiskError> {
        if let Some((_, why)) = bad.first()
            && bad.len() == self.portfolio.positions().len()
        {
            return Err(bad_parameter("problem.positions", why.as_str()));
        }
        let mut held = self.clone();
        if !bad.is_empty() {
            let places: Vec<usize> = bad.iter().map(|(position, _)| *position).collect();
            held.portfolio = Arc::new((*self.portfolio).clone().without(&places));
            held.bad.add_good(held.positions.len(), bad);
        }
        Ok(held)
    }

    /// The first round again, without the positions that have no value in a scenario; `None` if there are none. `named`
    /// gives the name of a scenario.
    fn again_without_unvalued(
        &self,
        profits: &[Arc<Profits>],
        named: impl Fn(u64) -> String,
        measure: impl FnOnce() -> Measure,
    ) -> Option<Next> {
        let unvalued: BTreeMap<usize, u64> =
            profits.iter().rev().flat_map(|profits| profits.unvalued()).collect();
        if unvalued.is_empty() {
            return None;
        }
        let said =
            |(position, scenario)| (position, format!("{}: {}", named(scenario), AmericanError::Unsettled));
        Some(match self.without(unvalued.into_iter().map(said).collect()) {
            Ok(held) => Next::Round(first_round(held, measure())),
            Err(error) => Next::Outcome(RiskOutcome::Error(error)),
        })
    }

    /// The positions that are part of no sum.
    fn bad_positions(&self) -> Vec<BadPosition> {
        let bad = |(place, why): (usize, &str)| BadPosition {
            position: place as i32,
            name: self.positions[place].clone(),
            error: why.to_owned(),
        };
        self.bad.iter().map(bad).collect()
    }

    /// The result, where `own` are the measures of each book alone, and `components` the shares of positions in the
    /// measures of the whole.
    fn result(&self, whole: &WholeRisk, own: &[[f64; 2]], components: [Vec<f64>; 2]) -> RiskOutcome {
        let of_books = components.each_ref().map(|column| self.portfolio.book_sums(column));
        let values = self.portfolio.book_values();
        let book = |(number, name): (usize, &String)| BookRisk {
            name: name.clone(),
            value: values[number],
            value_at_risk: own[number][0],
            expected_shortfall: own[number][1],
            component_value_at_risk: of_books[0][number],
            component_expected_shortfall: of_books[1][number],
        };
        let of_positions = self.portfolio.values();
        let position = |(number, place): (usize, usize)| {
            let quantity = self.portfolio.positions()[number].quantity;
            let component = components[0][number];
            PositionRisk {
                name: self.positions[place].clone(),
                value: of_positions[number],
                component_value_at_risk: component,
                component_expected_shortfall: components[1][number],
                marginal_value_at_risk: if quantity == 0.0 { 0.0 } else { component / quantity },
                error: String::new(),
            }
        };
        let without = |place: usize, error: String| PositionRisk {
            name: self.positions[place].clone(),
            value: f64::NAN,
            component_value_at_risk: f64::NAN,
            component_expected_shortfall: f64::NAN,
            marginal_value_at_risk: f64::NAN,
            error,
        };
        let good = self.bad.good_places(self.positions.len()).into_iter().enumerate().map(position).collect();
        RiskOutcome::Portfolio(PortfolioResult {
            value: values[0],
            value_at_risk: whole.measures[0],
            expected_shortfall: whole.measures[1],
            scenarios: whole.scenarios,
            books: self.books.iter().enumerate().map(book).collect(),
            positions: self.bad.between(good, without),
            value_at_risk_error: whole.errors.map(|errors| errors[0]),
            expected_shortfall_error: whole.errors.map(|errors| errors[1]),
            horizon_years: whole.horizon_years,
        })
    }
}

/// Profits of the slices, in order.
fn profits_of(partials: &[&Partial]) -> Vec<Arc<Profits>> {
    let profits = partials.iter().filter_map(|partial| match partial {
        Partial::Profits(profits) => Some(profits.clone()),
        _ => None,
    });
    profits.collect()
}

const CHECKED: &str = "the confidence was checked with the request";

/// The kernels' form of an instrument, and its asset.
pub(super) fn instrument_of(instrument: &risk::Instrument) -> (i32, Instrument) {
    match instrument {
        risk::Instrument::Spot(spot) => (spot.asset, Instrument::Spot),
        risk::Instrument::Forward(forward) => {
            let (strike, expiry_years) = (forward.strike, forward.expiry_years);
            (forward.asset, Instrument::Forward { strike, expiry_years })
        }
        risk::Instrument::Option(option) => {
            let (strike, expiry_years) = (option.strike, option.expiry_years);
            (option.asset, Instrument::Option { kind: option.kind, strike, expiry_years })
        }
        risk::Instrument::American(option) => {
            let (strike, expiry_years) = (option.strike, option.expiry_years);
            (option.asset, Instrument::American { kind: option.kind, strike, expiry_years })
        }
        risk::Instrument::Digital(option) => {
            let risk::DigitalOption { asset, kind, strike, expiry_years, pays, amount } = *option;
            (asset, Instrument::Digital { kind, strike, expiry_years, pays, amount })
        }
    }
}

/// An index from a number; a negative one becomes an index that does not exist.
fn index(number: i32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn position_of(position: &risk::Position) -> Position {
    let (asset, instrument) = instrument_of(&position.instrument);
    Position { asset: index(asset), book: index(position.book), quantity: position.quantity, instrument }
}

/// Checks that an instrument can be valued. `field` names its fields; those of its asset are named as fields of the
/// problem's asset.
pub(super) fn judged(
    instrument: &Instrument,
    (market, is_future): (&AssetMarket, bool),
    asset: i32,
    field: &dyn Fn(&str) -> String,
) -> Result<(), RiskError> {
    let of_market = |name: &str| format!("problem.assets[{asset}].{name}");
    let position = Position { asset: 0, book: 0, quantity: 1.0, instrument: *instrument };
    let made = Portfolio::with_futures(vec![*market], &[is_future], vec![None], vec![position]);
    made.map_err(|error| match error {
        PortfolioError::Asset { error, .. } => bad_parameter(of_market(error.field), error.to_string()),
        PortfolioError::Position { error, .. } => bad_parameter(field(error.field), error.to_string()),
        other => bad_parameter("problem", other.to_string()),
    })?;
    if let Instrument::American { kind, strike, expiry_years } = *instrument
        && expiry_years > 0.0
    {
        let option = AmericanOption { market: *market, kind, strike, expiry_years };
        option.check().map_err(|error: AmericanError| bad_parameter(of_market("rate"), error.to_string()))?;
    }
    Ok(())
}

/// The portfolio of the positions that can be valued, and the errors of the others.
fn portfolio_of(problem: &PortfolioProblem, assets: &Resolved) -> Result<(Portfolio, BadRows), RiskError> {
    let (books, count) = (problem.books.len(), assets.markets.len());
    let read = |(number, position): (usize, &risk::Position)| {
        let field = |name: &str| format!("problem.positions[{number}].{name}");
        let unknown = |name: &str, value: i32, count: usize| {
            let name_of = name.rsplit('.').next().unwrap_or(name);
            let message = format!("{name_of} is {value}, but there are {count} of them, numbered from 0");
            bad_parameter(field(name), message)
        };
        let given = position_of(position);
        let (asset, _) = instrument_of(&position.instrument);
        if given.asset >= count {
            return Err(unknown("instrument.asset", asset, count));
        }
        if given.book >= books {
            return Err(unknown("book", position.book, books));
        }
        if !QUANTITY_RANGE.contains(&given.quantity) {
            let (least, most) = (QUANTITY_RANGE.start(), QUANTITY_RANGE.end());
            let message = format!("{}; it must be from {least:e} to {most:e}", given.quantity);
            return Err(bad_parameter(field("quantity"), message));
        }
        assets.check_known(given.asset)?;
        let market = (&assets.markets[given.asset], assets.futures[given.asset]);
        judged(&given.instrument, market, asset, &|name| field(&format!("instrument.{name}")))?;
        Ok(given)
    };
    let (positions, bad) = BadRows::divide(problem.positions.iter().enumerate().map(read))?;
    // No good position is on a bad asset, so its market may be a placeholder.
    let mut markets = assets.markets.clone();
    let mut is_held = vec![false; count];
    positions.iter().for_each(|position| is_held[position.asset] = true);
    for (market, _) in markets.iter_mut().zip(&is_held).filter(|(_, is_held)| !**is_held) {
        *market = ANY_MARKET;
    }
    let parents = problem.books.iter().map(|book| book.parent.map(index)).collect();
    let portfolio = Portfolio::with_futures(markets, &assets.futures, parents, positions);
    Ok((portfolio.map_err(|error| of_portfolio(&error))?, bad))
}

fn of_portfolio(error: &PortfolioError) -> RiskError {
    let field = match error {
        PortfolioError::Asset { asset, error } => format!("problem.assets[{asset}].{}", error.field),
        PortfolioError::Position { position, error } => {
            let place = if error.field == "quantity" { "" } else { "instrument." };
            format!("problem.positions[{position}].{place}{}", error.field)
        }
        PortfolioError::Unknown { position, field: "asset", .. } => {
            format!("problem.positions[{position}].instrument.asset")
        }
        PortfolioError::Unknown { position, field, .. } => {
            format!("problem.positions[{position}].{field}")
        }
        PortfolioError::Parent { book, .. } => format!("problem.books[{book}].parent"),
        PortfolioError::TooMany { field, .. } => format!("problem.{field}"),
    };
    bad_parameter(field, error.to_string())
}
