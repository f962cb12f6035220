//! Risk of portfolios by full revaluation. Three rounds: profits of all books by scenario (a unit is 64 scenarios); the order of
//! these profits, by which the tails are found (one unit, aside); and what each position loses in the tails of the whole (a unit is
//! some positions in 64 scenarios). Stress has the first round alone. Parametric risk is one unit, aside.

mod measures;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use warptape_events::risk::{
    self, BookRisk, Matrix, PortfolioProblem, PortfolioResult, PositionRisk, RiskError, RiskMeasure,
    RiskOutcome, StressOutcome, StressResult,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError, WorkMemory};
use warptape_kernels::portfolio::{
    Covariance, Instrument, Parametric, Portfolio, PortfolioError, Position, Profits, Ranked, Scenarios,
    TAIL_BLOCK, Tail, loss_of_blocks, run_on_device,
};

use super::assets::Resolved;
use super::kept::{Follower, KeptProfits};
use super::options::kind_of;
use super::{Finished, Partial, Round, bad, check_count, check_length, cost};
use measures::{Work, tail_of};

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
/// Positions of a unit of the last round.
const UNIT_POSITIONS: usize = 512;

#[derive(Debug)]
pub(super) struct PortfolioTask {
    portfolio: Arc<Portfolio>,
    names: Names,
    work: Work,
    /// Profits of portfolios before it, if they are kept.
    follower: Option<Follower>,
}

#[derive(Debug)]
struct Names {
    books: Vec<String>,
    positions: Vec<String>,
}

/// What the rounds have found so far.
#[derive(Debug)]
struct Found {
    /// Of slices, in order.
    profits: Vec<Arc<Profits>>,
    tails: OnceLock<Tails>,
}

/// The scenarios that the measures of the whole are made of, and the measures of all books.
#[derive(Clone, Debug, PartialEq)]
pub struct Tails {
    value_at_risk: Tail,
    expected_shortfall: Tail,
    /// By book: its own value at risk and expected shortfall.
    books: Vec<[f64; 2]>,
    /// Standard errors of both of the whole, where scenarios are drawn.
    errors: Option<[f64; 2]>,
}

/// Value at risk and expected shortfall of the whole, and what is known of them.
struct Whole {
    measures: [f64; 2],
    errors: Option<[f64; 2]>,
    /// 0 for parametric risk.
    scenarios: i64,
    horizon_years: Option<f64>,
}

impl Tails {
    pub(super) fn numbers(&self) -> usize {
        2 * self.books.len() + self.expected_shortfall.blocks() * TAIL_BLOCK
    }
}

impl PortfolioTask {
    /// The matrix that a measure wants of the assets' returns.
    pub(super) fn matrix_of(measure: &RiskMeasure) -> Option<&Matrix> {
        match measure {
            RiskMeasure::Historical(measure) => Some(&measure.returns),
            RiskMeasure::MonteCarlo(measure) => Some(&measure.covariance),
            RiskMeasure::Parametric(measure) => Some(&measure.covariance),
            RiskMeasure::Stress(_) => None,
        }
    }

    pub(super) fn new(problem: &PortfolioProblem, seed: i64, assets: &Resolved) -> Result<Self, RiskError> {
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
        let portfolio = portfolio_of(problem, assets)?;
        let work = Work::new(&problem.measure, seed as u64, assets)?;
        // Tails are revalued with the moves of every asset.
        let (books, count) = (problem.books.len() as u64, assets.markets.len() as u64);
        if work.scenarios().is_some_and(|scenarios| scenarios.len() * books.max(count) > CELLS_MAX) {
            let message = format!(
                "scenarios times books, or times assets, is more than {CELLS_MAX}: fewer are allowed"
            );
            return Err(bad("problem.measure.scenarios", message));
        }
        work.check_parts(problem)?;
        let names = Names {
            books: problem.books.iter().map(|book| book.name.clone()).collect(),
            positions: problem.positions.iter().map(|position| position.name.clone()).collect(),
        };
        Ok(Self { portfolio: Arc::new(portfolio), names, work, follower: None })
    }

    /// Takes profits of portfolios like it from those that are kept, and keeps its own.
    pub(super) fn follow(&mut self, kept: &KeptProfits) {
        if let Some(scenarios) = self.work.scenarios() {
            self.follower = kept.follower(&self.portfolio, scenarios, self.scenario_units() as usize);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let (books, positions) = (self.portfolio.parents().len(), self.portfolio.positions().len());
        let numbers = match &self.work {
            Work::Parametric { covariance, .. } => covariance.assets() * covariance.assets(),
            Work::Stress { scenarios, .. } => scenarios.len() as usize * books,
            Work::Simulated { scenarios, confidence, .. } => {
                scenarios.len() as usize * books + tail_of(scenarios, *confidence) / TAIL_BLOCK * positions
            }
        };
        let scenarios = self.work.scenarios().map_or(0, Scenarios::bytes);
        scenarios + numbers * size_of::<f64>() + positions * size_of::<Position>()
    }

    pub(super) fn cost_ns(&self) -> u64 {
        let (books, positions) = (self.portfolio.parents().len(), self.portfolio.positions().len());
        match &self.work {
            Work::Parametric { covariance, .. } => cost::parametric(books, positions, covariance.assets()),
            Work::Stress { scenarios, .. } => cost::revaluation(positions, scenarios.len()),
            Work::Simulated { scenarios, confidence, .. } => {
                let tail = tail_of(scenarios, *confidence) as u64;
                cost::revaluation(positions, scenarios.len() + tail)
                    .saturating_add(cost::ordering(books, scenarios.len()))
            }
        }
    }

    /// Whether the next unit is one that cannot be cut.
    pub(super) fn is_aside(&self) -> bool {
        match &self.work {
            Work::Parametric { .. } => true,
            Work::Stress { .. } => false,
            Work::Simulated { found, .. } => found.get().is_some_and(|found| found.tails.get().is_none()),
        }
    }

    /// What the units of the round to come are known by: those of rounds are unlike each other.
    pub(super) fn rate_key(&self) -> &'static str {
        match &self.work {
            Work::Parametric { .. } => "portfolio/parametric",
            Work::Stress { .. } if self.follower.is_some() => "portfolio/stress, kept",
            Work::Stress { .. } => "portfolio/stress",
            Work::Simulated { found, .. } => match found.get().map(|found| found.tails.get()) {
                None if self.follower.is_some() => "portfolio/profits, kept",
                None => "portfolio/profits",
                Some(None) => "portfolio/tails",
                Some(Some(_)) => "portfolio/parts",
            },
        }
    }

    pub(super) fn unit_cost(&self) -> i64 {
        let positions = self.portfolio.positions().len();
        match (&self.work, &self.follower) {
            (Work::Simulated { found, .. }, _) if found.get().is_some() => {
                positions.min(UNIT_POSITIONS) as i64
            }
            (_, Some(follower)) => follower.cost as i64,
            (_, None) => positions as i64,
        }
    }

    fn scenario_units(&self) -> i64 {
        self.work.scenarios().map_or(1, |scenarios| scenarios.len().div_ceil(UNIT_SCENARIOS) as i64)
    }

    /// Units of a block of a tail.
    fn position_units(&self) -> usize {
        self.portfolio.positions().len().div_ceil(UNIT_POSITIONS)
    }

    pub(super) fn first_round(&self) -> Round {
        Round { first_unit: 0, units: self.scenario_units() }
    }

    pub(super) fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        match &self.work {
            Work::Parametric { covariance, confidence, horizon_years } => {
                self.parametric(isa, covariance, *confidence, *horizon_years)
            }
            Work::Stress { scenarios, .. } => self.revalue(isa, scenarios, units),
            Work::Simulated { scenarios, confidence, are_drawn, found, .. } => match found.get() {
                None => self.revalue(isa, scenarios, units),
                Some(found) => match found.tails.get() {
                    None => Partial::Tails(Box::new(self.tails(&found.profits, *confidence, *are_drawn))),
                    Some(tails) => self.parts(isa, scenarios, tails, units),
                },
            },
        }
    }

    pub(super) fn run_on_device(
        &self,
        device: &mut dyn Device,
        memory: &mut WorkMemory,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let scenarios = match &self.work {
            Work::Simulated { scenarios, found, .. } if found.get().is_none() => scenarios,
            Work::Stress { scenarios, .. } => scenarios,
            // What is left is too little for a device.
            Work::Simulated { .. } | Work::Parametric { .. } => return Ok(self.run(Isa::detect(), units)),
        };
        let mut profits = Profits::default();
        let range = range_of(scenarios, &units);
        run_on_device(device, memory, &self.portfolio, scenarios, range, &mut profits)?;
        Ok(Partial::Profits(Arc::new(profits)))
    }

    fn revalue(&self, isa: Isa, scenarios: &Scenarios, units: Range<i64>) -> Partial {
        let mut profits = Profits::default();
        match &self.follower {
            None => self.portfolio.run(isa, scenarios, range_of(scenarios, &units), &mut profits),
            Some(follower) => {
                for unit in units {
                    let range = range_of(scenarios, &(unit..unit + 1));
                    follower.run(isa, &self.portfolio, range, &mut profits);
                }
            }
        }
        Partial::Profits(Arc::new(profits))
    }

    fn tails(&self, profits: &[Arc<Profits>], confidence: f64, are_drawn: bool) -> Tails {
        let of_book = |book: usize| -> Tails {
            let profits: Vec<f64> = profits.iter().flat_map(|part| part.of_book(book)).copied().collect();
            tails_of(&profits, confidence, are_drawn && book == 0)
        };
        let mut whole = of_book(0);
        whole.books.extend((1..self.names.books.len()).map(|book| of_book(book).books[0]));
        whole
    }

    /// What positions lose: first in the scenarios of the value at risk, then in each block of those of the expected shortfall.
    fn parts(&self, isa: Isa, scenarios: &Scenarios, tails: &Tails, units: Range<i64>) -> Partial {
        let (first, groups) = (self.scenario_units() + 1, self.position_units() as i64);
        let mut losses = Vec::new();
        for unit in units.start - first..units.end - first {
            let (block, group) = ((unit / groups) as usize, (unit % groups) as usize);
            let from = group * UNIT_POSITIONS;
            let positions = from..(from + UNIT_POSITIONS).min(self.portfolio.positions().len());
            let tail = match block.checked_sub(1) {
                None => tails.value_at_risk.clone(),
                Some(block) => tails.expected_shortfall.block(block),
            };
            let found = self.portfolio.component_losses(isa, scenarios, &tail, positions);
            losses.extend(found.expect("a tail has fewer scenarios than there are"));
        }
        Partial::Losses(losses)
    }

    pub(super) fn finish(&self, partials: &[&Partial]) -> Finished {
        match &self.work {
            Work::Parametric { .. } => match partials {
                [Partial::Outcome(outcome)] => Finished::Outcome((**outcome).clone()),
                _ => unreachable!("one unit gives the outcome"),
            },
            Work::Stress { names, .. } => {
                let mut all = Profits::default();
                profits_of(partials).iter().for_each(|profits| all.append(profits));
                Finished::Outcome(self.stress(names, &all))
            }
            Work::Simulated { scenarios, horizon_years, found, .. } => {
                let Some(found) = found.get() else {
                    found.get_or_init(|| Found { profits: profits_of(partials), tails: OnceLock::new() });
                    return Finished::More(Round { first_unit: self.scenario_units(), units: 1 });
                };
                let Some(tails) = found.tails.get() else {
                    let Some(Partial::Tails(tails)) = partials.last() else {
                        unreachable!("the unit before gives the tails")
                    };
                    let tails = found.tails.get_or_init(|| (**tails).clone());
                    let units = self.position_units() * (1 + tails.expected_shortfall.blocks());
                    return Finished::More(Round {
                        first_unit: self.scenario_units() + 1,
                        units: units as i64,
                    });
                };
                let whole = Whole {
                    measures: tails.books[0],
                    errors: tails.errors,
                    scenarios: scenarios.len() as i64,
                    horizon_years: *horizon_years,
                };
                Finished::Outcome(self.simulated(&whole, tails, partials))
            }
        }
    }

    fn simulated(&self, whole: &Whole, tails: &Tails, partials: &[&Partial]) -> RiskOutcome {
        let mut losses = Vec::new();
        for partial in partials {
            if let Partial::Losses(more) = partial {
                losses.extend_from_slice(more);
            }
        }
        // A row for the value at risk, then one for each block.
        let positions = self.portfolio.positions().len();
        let (value_at_risk, blocks) = losses.split_at(positions);
        let shortfall = |position: usize| -> f64 {
            let losses: Vec<f64> = blocks[position..].iter().step_by(positions).copied().collect();
            loss_of_blocks(&losses)
        };
        let components = [value_at_risk.to_vec(), (0..positions).map(shortfall).collect()];
        self.result(whole, &tails.books, components)
    }

    fn parametric(&self, isa: Isa, covariance: &Covariance, confidence: f64, horizon_years: f64) -> Partial {
        let of_book = |book: usize| -> Parametric {
            let risk = self.portfolio.parametric(isa, covariance, book, confidence);
            risk.expect(CHECKED)
        };
        let all = of_book(0);
        let books = 0..self.names.books.len();
        let own: Vec<[f64; 2]> = books
            .map(|book| of_book(book).total)
            .map(|own| [own.value_at_risk, own.expected_shortfall])
            .collect();
        let positions = &all.positions;
        let columns = [
            positions.iter().map(|part| part.value_at_risk).collect(),
            positions.iter().map(|part| part.expected_shortfall).collect(),
        ];
        let measures = [all.total.value_at_risk, all.total.expected_shortfall];
        let whole = Whole { measures, errors: None, scenarios: 0, horizon_years: Some(horizon_years) };
        Partial::Outcome(Box::new(self.result(&whole, &own, columns)))
    }

    /// `own` are the measures of each book alone, `components` those of positions in the whole.
    fn result(&self, whole: &Whole, own: &[[f64; 2]], components: [Vec<f64>; 2]) -> RiskOutcome {
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
            books: self.names.books.iter().enumerate().map(book).collect(),
            positions: self.names.positions.iter().enumerate().map(position).collect(),
            value_at_risk_error: whole.errors.map(|errors| errors[0]),
            expected_shortfall_error: whole.errors.map(|errors| errors[1]),
            horizon_years: whole.horizon_years,
        })
    }

    fn stress(&self, names: &[String], profits: &Profits) -> RiskOutcome {
        let scenario = |(number, name): (usize, &String)| StressOutcome {
            name: name.clone(),
            profit: profits.of_book(0)[number],
            books: (0..profits.books()).map(|book| profits.of_book(book)[number]).collect(),
        };
        RiskOutcome::Stress(StressResult {
            value: self.portfolio.book_values()[0],
            books: self.names.books.clone(),
            scenarios: names.iter().enumerate().map(scenario).collect(),
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

fn range_of(scenarios: &Scenarios, units: &Range<i64>) -> Range<u64> {
    units.start as u64 * UNIT_SCENARIOS..(units.end as u64 * UNIT_SCENARIOS).min(scenarios.len())
}

/// Value at risk and expected shortfall. Of profits that are finite, which those of checked numbers are unless they overflow: then
/// all is lost in every scenario.
fn tails_of(profits: &[f64], confidence: f64, has_errors: bool) -> Tails {
    let finite: Vec<f64> =
        profits.iter().map(|profit| if profit.is_finite() { *profit } else { f64::MIN }).collect();
    let ranked = Ranked::new(&finite).expect("there are scenarios, and they are finite");
    let value_at_risk = ranked.value_at_risk(confidence).expect(CHECKED);
    let expected_shortfall = ranked.expected_shortfall(confidence).expect(CHECKED);
    Tails {
        books: vec![[value_at_risk.loss(profits), expected_shortfall.loss(profits)]],
        errors: has_errors.then(|| ranked.standard_errors(&finite, confidence).expect(CHECKED)),
        value_at_risk,
        expected_shortfall,
    }
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
                (option.asset, Instrument::Option { kind: kind_of(option.kind), strike, expiry_years })
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
