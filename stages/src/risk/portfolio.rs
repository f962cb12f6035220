//! Risk of portfolios by full revaluation. Three rounds: profits of all books by scenario (a unit is 64 scenarios); the order of
//! these profits, by which the tails are found (one unit, on the processor alone); and what each position loses in the tails of the whole (a unit is
//! some positions in 64 scenarios). Stress has the first round alone. Parametric risk is one unit, on the processor alone.

mod measures;
mod simulated;
mod single_round;

use std::sync::Arc;

use warptape_events::risk::{
    self, Asset, BookRisk, Matrix, PortfolioProblem, PortfolioResult, PositionRisk, RiskError, RiskMeasure,
    RiskOutcome,
};
use warptape_kernels::portfolio::{
    Instrument, Portfolio, PortfolioError, Position, Profits, Scenarios, TAIL_BLOCK,
};

use super::assets::Resolved;
use super::rounds::{Kind, Partial, Plan, Round};
use super::rules::Rules;
use super::{bad, check_count, check_length, cost};
use measures::{Measure, tail_of};
pub use simulated::Tails;
use simulated::{ProfitRound, Simulated};
use single_round::{ParametricRound, StressRound};

/// Positions of a request at most: their risk has to fit into a record.
const POSITIONS_MAX: usize = 8_000;
/// Books of a request at most.
const BOOKS_MAX: usize = 1_000;
/// Books × scenarios at most: the profits are kept until the end.
const CELLS_MAX: u64 = 1 << 24;
/// Stress scenarios of a request at most.
const STRESSES_MAX: usize = 1_000;
/// Stress scenarios × books, and × assets, at most: profits have to fit into a record, and shocks are made before lanes have
/// anything to do with them.
const STRESS_CELLS_MAX: usize = 100_000;
/// Bytes of a name at most.
const NAME_BYTES_MAX: usize = 64;
/// Scenarios of a unit.
const UNIT_SCENARIOS: u64 = 64;

impl Kind for PortfolioProblem {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn matrix(&self) -> Option<&Matrix> {
        match &self.measure {
            RiskMeasure::Historical(measure) => Some(&measure.returns),
            RiskMeasure::MonteCarlo(measure) => Some(&measure.covariance),
            RiskMeasure::Parametric(measure) => Some(&measure.covariance),
            RiskMeasure::Stress(_) => None,
        }
    }

    fn plan(&self, assets: &Resolved, seed: i64, _: Rules) -> Result<Plan, RiskError> {
        check_names(self, assets)?;
        let portfolio = Arc::new(portfolio_of(self, assets)?);
        let measure = Measure::new(&self.measure, seed as u64, assets)?;
        // Tails are revalued with the moves of every asset.
        let (books, count) = (self.books.len() as u64, assets.markets.len() as u64);
        if measure.scenarios().is_some_and(|scenarios| scenarios.len() * books.max(count) > CELLS_MAX) {
            let message = format!(
                "scenarios times books, or times assets, is more than {CELLS_MAX}: fewer are allowed"
            );
            return Err(bad("problem.measure.scenarios", message));
        }
        measure.check_parts(self)?;
        let (bytes, cost_ns) = (bytes_of(&portfolio, &measure), cost_of(&portfolio, &measure));
        let held = Held {
            portfolio,
            books: self.books.iter().map(|book| book.name.clone()).collect(),
            positions: self.positions.iter().map(|position| position.name.clone()).collect(),
        };
        let first: Box<dyn Round> = match measure {
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
        };
        Ok(Plan { first, bytes, cost_ns })
    }
}

/// How many books, positions and stress scenarios there are, and how long their names.
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
    scenarios + numbers * size_of::<f64>() + positions * size_of::<Position>()
}

fn cost_of(portfolio: &Portfolio, measure: &Measure) -> u64 {
    let (books, positions) = (portfolio.parents().len(), portfolio.positions().len());
    match measure {
        Measure::Parametric { covariance, .. } => cost::parametric(books, positions, covariance.assets()),
        Measure::Stress { scenarios, .. } => cost::revaluation(positions, scenarios.len()),
        Measure::Simulated { scenarios, confidence, .. } => {
            let tail = tail_of(scenarios, *confidence) as u64;
            cost::revaluation(positions, scenarios.len() + tail)
                .saturating_add(cost::ordering(books, scenarios.len()))
        }
    }
}

/// What is held, with the names of its books and positions.
#[derive(Debug)]
struct Held {
    portfolio: Arc<Portfolio>,
    books: Vec<String>,
    positions: Vec<String>,
}

/// Value at risk and expected shortfall of the whole, and what is known of them.
struct WholeRisk {
    measures: [f64; 2],
    errors: Option<[f64; 2]>,
    /// 0 for parametric risk.
    scenarios: i64,
    horizon_years: Option<f64>,
}

impl Held {
    /// `own` are the measures of each book alone, `components` those of positions in the whole.
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
        let position = |(number, name): (usize, &String)| {
            let quantity = self.portfolio.positions()[number].quantity;
            let component = components[0][number];
            PositionRisk {
                name: name.clone(),
                value: of_positions[number],
                component_value_at_risk: component,
                component_expected_shortfall: components[1][number],
                marginal_value_at_risk: if quantity == 0.0 { 0.0 } else { component / quantity },
            }
        };
        RiskOutcome::Portfolio(PortfolioResult {
            value: values[0],
            value_at_risk: whole.measures[0],
            expected_shortfall: whole.measures[1],
            scenarios: whole.scenarios,
            books: self.books.iter().enumerate().map(book).collect(),
            positions: self.positions.iter().enumerate().map(position).collect(),
            value_at_risk_error: whole.errors.map(|errors| errors[0]),
            expected_shortfall_error: whole.errors.map(|errors| errors[1]),
            horizon_years: whole.horizon_years,
        })
    }
}

/// Of slices, in order.
fn profits_of(partials: &[&Partial]) -> Vec<Arc<Profits>> {
    let profits = partials.iter().filter_map(|partial| match partial {
        Partial::Profits(profits) => Some(profits.clone()),
        _ => None,
    });
    profits.collect()
}

const CHECKED: &str = "the confidence was checked with the request";

fn portfolio_of(problem: &PortfolioProblem, assets: &Resolved) -> Result<Portfolio, RiskError> {
    // An index that is none is one that is not there.
    let index = |number: i32| usize::try_from(number).unwrap_or(usize::MAX);
    let parents = problem.books.iter().map(|book| book.parent.map(index)).collect();
    let position = |position: &risk::Position| {
        let (asset, instrument) = match &position.instrument {
            risk::Instrument::Spot(spot) => (spot.asset, Instrument::Spot),
            risk::Instrument::Forward(forward) => {
                let (strike, expiry_years) = (forward.strike, forward.expiry_years);
                (forward.asset, Instrument::Forward { strike, expiry_years })
            }
            risk::Instrument::Option(option) => {
                let (strike, expiry_years) = (option.strike, option.expiry_years);
                (option.asset, Instrument::Option { kind: option.kind, strike, expiry_years })
            }
        };
        Position { asset: index(asset), book: index(position.book), quantity: position.quantity, instrument }
    };
    let positions = problem.positions.iter().map(position).collect();
    Portfolio::new(assets.markets.clone(), parents, positions).map_err(|error| {
        let field = match &error {
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
        bad(field, error.to_string())
    })
}
