//! Risk requests as work: what is asked is checked and made whole with the market as it is, cut into units that any lane can do,
//! and put together again.
//!
//! ```text
//!   RiskRequest + market ──► RiskTask ──► units, any range of them anywhere ──► Partial ─┐
//!                                 ▲                                                      ▼ in order
//!                                 └───── another round, if more samples are wanted ◄── outcome
//! ```
//!
//! An outcome is a function of the request and the market it was given: not of how units were cut, nor of who did them.

mod american;
mod assets;
mod cost;
mod early_exercise;
mod kept;
mod matrices;
pub mod optimisation;
mod optimise;
mod options;
mod portfolio;
pub mod refusals;
mod rules;
mod simulation;
mod sweep;
mod taken;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use warptape_events::risk::{
    MarketAsOf, Matrix, RiskError, RiskErrorCode, RiskOutcome, RiskProblem, RiskRequest,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError, WorkMemory};
use warptape_kernels::portfolio::{Covariance, CovarianceError, Profits};
use warptape_kernels::pricing::{BlockSums, DevicePricing, GreekSums, Greeks, NoVolatility};
use warptape_kernels::sweep::CellResult;

use crate::SymbolMarket;
use assets::Resolved;
use early_exercise::EarlyExerciseTask;
pub use kept::KeptProfits;
use optimise::OptimisationTask;
use options::{ImpliedTask, OptionTask};
use portfolio::{PortfolioTask, Tails};
use rules::Rules;
use simulation::SimulationTask;
use sweep::SweepTask;
pub use taken::TakenMarket;

/// Bytes of a request's id at most.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// Bytes of a tenant's name at most.
const TENANT_BYTES_MAX: usize = 64;

/// Latest deadline, in nanoseconds since the epoch: the year 2116.
const DEADLINE_NS_MAX: i64 = i64::MAX / 2;

/// So many numbers take long to be put together.
const LONG_NUMBERS: usize = 4_096;

/// Numbers of an option's value.
const OPTION_NUMBERS: usize = 8;

/// What is known of a symbol, by its name; `None` where it was never heard of.
pub type MarketOf<'a> = &'a dyn Fn(&str) -> Option<SymbolMarket>;

/// A request that can be worked on.
#[derive(Debug)]
pub struct RiskTask {
    work: Work,
    as_of: Vec<MarketAsOf>,
}

#[derive(Debug)]
enum Work {
    Options(OptionTask),
    ImpliedVolatilities(ImpliedTask),
    Simulation(Box<SimulationTask>),
    EarlyExercise(EarlyExerciseTask),
    Portfolio(Box<PortfolioTask>),
    Optimisation(OptimisationTask),
    Sweep(SweepTask),
}

/// Units to be done before the next look at what came of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Its first unit: those before were of earlier rounds.
    pub first_unit: i64,
    /// Number of units, at least 1.
    pub units: i64,
}

/// What units gave, in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Partial {
    /// Of options.
    Greeks(Box<Greeks>),
    /// Of prices.
    Volatilities(Vec<Result<f64, NoVolatility>>),
    /// Of blocks of paths; of a basket with Greeks, by block those of all columns.
    Blocks(Vec<BlockSums>),
    /// Of blocks of paths with Greeks.
    GreekBlocks(Vec<GreekSums>),
    /// Of pilot paths: by how many dates it is found when to exercise.
    Rule(u32),
    /// Of scenarios.
    Profits(Arc<Profits>),
    /// Of all scenarios: the worst.
    Tails(Box<Tails>),
    /// Of positions, in blocks of the worst scenarios.
    Losses(Vec<f64>),
    /// Of returns.
    Covariance(Box<Result<Covariance, CovarianceError>>),
    /// Of all there is to do.
    Outcome(Box<RiskOutcome>),
    /// Of rules.
    Cells(Vec<CellResult>),
}

impl Partial {
    /// Numbers in it, about, by which it is known how long it takes to put it together with others; at least 1.
    pub fn numbers(&self) -> usize {
        let numbers = match self {
            Self::Greeks(greeks) => greeks.price().len() * OPTION_NUMBERS,
            Self::Volatilities(volatilities) => volatilities.len(),
            Self::Blocks(sums) => sums.len(),
            Self::GreekBlocks(sums) => sums.len() * size_of::<GreekSums>() / size_of::<BlockSums>(),
            Self::Profits(profits) => (0..profits.books()).map(|book| profits.of_book(book).len()).sum(),
            Self::Losses(losses) => losses.len(),
            Self::Cells(cells) => cells.len() * size_of::<CellResult>() / size_of::<f64>(),
            Self::Tails(tails) => tails.numbers(),
            Self::Covariance(covariance) => {
                covariance.as_ref().as_ref().map_or(0, |found| found.assets().pow(2))
            }
            Self::Outcome(_) => LONG_NUMBERS,
            Self::Rule(_) => 1,
        };
        numbers.max(1)
    }

    /// Why there is no answer, if that is known already.
    fn error(&self) -> Option<&RiskError> {
        let Self::Outcome(outcome) = self else { return None };
        match &**outcome {
            RiskOutcome::Error(error) => Some(error),
            _ => None,
        }
    }
}

/// What comes after a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Finished {
    /// The answer.
    Outcome(RiskOutcome),
    /// More is to be done first.
    More(Round),
}

/// Memory of a lane on a device for risk, which is kept for the next slice.
#[derive(Debug, Default)]
pub struct DeviceRisk {
    pricing: DevicePricing,
    work: WorkMemory,
}

impl DeviceRisk {
    /// Bytes that are allocated.
    pub fn bytes(&self) -> usize {
        self.pricing.bytes() + self.work.bytes()
    }
}

impl RiskTask {
    /// Checks a request and takes what it wants of the market.
    ///
    /// If that panics, it is the answer, as wherever a request is worked on: a function of the request as any other, and a process
    /// that was lost for it would be lost again by whoever tries next.
    pub fn new(request: &RiskRequest, market_of: MarketOf<'_>) -> Result<Self, RiskError> {
        caught(|| Self::make(request, market_of, Rules::Now))?
    }

    /// The same by the rules of earlier versions, the newest first, for results that were made then: only by those by which the answer
    /// was another one, and by which there was one.
    pub fn of_before<'a>(
        request: &'a RiskRequest,
        market_of: MarketOf<'a>,
    ) -> impl Iterator<Item = Self> + use<'a> {
        let made = move |rules| caught(|| Self::make(request, market_of, rules)).and_then(|made| made).ok();
        Rules::of_before(&request.problem).filter_map(made)
    }

    fn make(request: &RiskRequest, market_of: MarketOf<'_>, rules: Rules) -> Result<Self, RiskError> {
        check_length("request_id", &request.request_id, 1..=REQUEST_ID_BYTES_MAX)?;
        check_length("tenant", &request.tenant, 0..=TENANT_BYTES_MAX)?;
        if let Some(deadline_ns) = request.deadline_ns.filter(|&deadline_ns| !is_deadline(deadline_ns)) {
            return Err(bad(
                "deadline_ns",
                format!("{deadline_ns}; it must be from 0 to {DEADLINE_NS_MAX}, or null"),
            ));
        }
        let none = Matrix::Given(Vec::new());
        let (work, assets) = match &request.problem {
            RiskProblem::Options(problem) => {
                let assets = Resolved::new(&problem.assets, market_of)?;
                (Work::Options(OptionTask::new(problem, &assets, rules)?), assets)
            }
            RiskProblem::ImpliedVolatilities(problem) => {
                let assets = Resolved::new(&options::without_volatility(&problem.assets), market_of)?;
                (Work::ImpliedVolatilities(ImpliedTask::new(problem, &assets)?), assets)
            }
            RiskProblem::Simulation(problem) if early_exercise::is_asked(problem) => {
                let assets = Resolved::with_matrix(&problem.assets, &problem.correlations, market_of)?;
                (Work::EarlyExercise(EarlyExerciseTask::new(problem, &assets)?), assets)
            }
            RiskProblem::Simulation(problem) => {
                let assets = Resolved::with_matrix(&problem.assets, &problem.correlations, market_of)?;
                let task = SimulationTask::new(problem, request.seed, &assets, rules)?;
                (Work::Simulation(Box::new(task)), assets)
            }
            RiskProblem::Portfolio(problem) => {
                let matrix = PortfolioTask::matrix_of(&problem.measure).unwrap_or(&none);
                let assets = Resolved::with_matrix(&problem.assets, matrix, market_of)?;
                let task = PortfolioTask::new(problem, request.seed, &assets)?;
                (Work::Portfolio(Box::new(task)), assets)
            }
            RiskProblem::Sweep(problem) => (Work::Sweep(SweepTask::new(problem)?), Resolved::default()),
            RiskProblem::Optimisation(problem) => {
                let assets = Resolved::with_matrix(&problem.assets, &problem.covariance, market_of)?;
                (Work::Optimisation(OptimisationTask::new(problem, &assets)?), assets)
            }
        };
        Ok(Self { work, as_of: assets.as_of })
    }

    /// Takes what earlier requests had computed of the same, and keeps what it computes. Answers do not differ by that.
    #[must_use]
    pub fn following(mut self, kept: &KeptProfits) -> Self {
        if let Work::Portfolio(task) = &mut self.work {
            task.follow(kept);
        }
        self
    }

    /// Whether what comes next is work of the processor that cannot be cut and may take long, on whatever lane: a device would do
    /// nothing for it.
    pub fn is_aside(&self) -> bool {
        match &self.work {
            Work::Portfolio(task) => task.is_aside(),
            Work::Optimisation(task) => task.is_aside(),
            Work::Options(_)
            | Work::ImpliedVolatilities(_)
            | Work::Simulation(_)
            | Work::EarlyExercise(_)
            | Work::Sweep(_) => false,
        }
    }

    /// Bytes of memory that it may come to take, about, besides the request.
    pub fn bytes(&self) -> usize {
        match &self.work {
            Work::Options(task) => task.bytes(),
            Work::ImpliedVolatilities(task) => task.bytes(),
            Work::Simulation(task) => task.bytes(),
            Work::EarlyExercise(task) => task.bytes(),
            Work::Portfolio(task) => task.bytes(),
            Work::Optimisation(task) => task.bytes(),
            Work::Sweep(task) => task.bytes(),
        }
    }

    /// What was taken from the market.
    pub fn as_of(&self) -> &[MarketAsOf] {
        &self.as_of
    }

    /// What its units are known by where it matters how long they take.
    pub fn rate_key(&self) -> String {
        match &self.work {
            Work::Options(_) => "options".to_owned(),
            Work::ImpliedVolatilities(_) => "implied-volatilities".to_owned(),
            Work::Simulation(task) => task.rate_key(),
            Work::EarlyExercise(task) => task.rate_key().to_owned(),
            Work::Portfolio(task) => task.rate_key().to_owned(),
            Work::Optimisation(task) => task.rate_key().to_owned(),
            Work::Sweep(_) => "sweep".to_owned(),
        }
    }

    /// What a unit costs, relative to other tasks of the same key.
    pub fn unit_cost(&self) -> i64 {
        match &self.work {
            Work::Options(_)
            | Work::ImpliedVolatilities(_)
            | Work::EarlyExercise(_)
            | Work::Optimisation(_) => 1,
            Work::Simulation(task) => task.unit_cost(),
            Work::Portfolio(task) => task.unit_cost(),
            Work::Sweep(task) => task.unit_cost(),
        }
    }

    /// Time of one core that all of it may come to take, estimated, in nanoseconds: by rates that are the same everywhere (`cost`).
    pub fn cost_ns(&self) -> i64 {
        let cost_ns = match &self.work {
            Work::Options(task) => cost::options(task.units() as usize),
            Work::ImpliedVolatilities(task) => cost::implied(task.units() as usize),
            Work::Simulation(task) => task.cost_ns(),
            Work::EarlyExercise(_) => cost::boundary(),
            Work::Portfolio(task) => task.cost_ns(),
            Work::Optimisation(task) => task.cost_ns(),
            Work::Sweep(task) => task.cost_ns(),
        };
        i64::try_from(cost_ns).unwrap_or(i64::MAX)
    }

    /// What is to be done first.
    pub fn first_round(&self) -> Round {
        let units = match &self.work {
            Work::Options(task) => task.units(),
            Work::ImpliedVolatilities(task) => task.units(),
            Work::Simulation(task) => return task.first_round(),
            Work::Portfolio(task) => return task.first_round(),
            Work::EarlyExercise(_) | Work::Optimisation(_) => 1,
            Work::Sweep(task) => task.units(),
        };
        Round { first_unit: 0, units }
    }

    /// Does some units.
    pub fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        match &self.work {
            Work::Options(task) => task.run(isa, places(units)),
            Work::ImpliedVolatilities(task) => task.run(isa, places(units)),
            Work::Simulation(task) => task.run(isa, units),
            Work::EarlyExercise(task) => task.run(isa),
            Work::Portfolio(task) => task.run(isa, units),
            Work::Optimisation(task) => task.run(isa),
            Work::Sweep(task) => task.run(isa, places(units)),
        }
    }

    /// Does some units. If that panics, it is the answer.
    pub fn run_caught(&self, isa: Isa, units: Range<i64>) -> Partial {
        caught(|| self.run(isa, units))
            .unwrap_or_else(|error| Partial::Outcome(Box::new(RiskOutcome::Error(error))))
    }

    /// Does all units of all rounds, one after the other.
    pub fn outcome(&self, isa: Isa) -> RiskOutcome {
        let mut round = self.first_round();
        let mut partials = Vec::new();
        loop {
            let units = round.first_unit..round.first_unit + round.units;
            partials.push(self.run_caught(isa, units));
            match self.finish(&partials) {
                Finished::Outcome(outcome) => return outcome,
                Finished::More(next) => round = next,
            }
        }
    }

    /// Does some units on a device.
    pub fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        match &self.work {
            Work::Options(task) => task.run_on_device(&mut memory.pricing, device, places(units)),
            Work::ImpliedVolatilities(task) => task.run_on_device(&mut memory.pricing, device, places(units)),
            Work::Simulation(task) => task.run_on_device(&mut memory.pricing, device, units),
            Work::EarlyExercise(task) => task.run_on_device(device, &mut memory.work),
            Work::Portfolio(task) => task.run_on_device(device, &mut memory.work, units),
            Work::Optimisation(task) => task.run_on_device(device, &mut memory.work),
            Work::Sweep(task) => task.run_on_device(device, &mut memory.work, places(units)),
        }
    }

    /// Whether it may take long to put together what units gave: longer than some 0.1 ms.
    pub fn is_long_to_finish<'a>(partials: impl IntoIterator<Item = &'a Partial>) -> bool {
        let mut left = LONG_NUMBERS;
        partials.into_iter().any(|partial| {
            left = left.saturating_sub(partial.numbers());
            left == 0
        })
    }

    /// Puts together what the units of all rounds so far gave, in their order. Called once after each round. If that panics, it is
    /// the answer.
    pub fn finish<'a>(&self, partials: impl IntoIterator<Item = &'a Partial>) -> Finished {
        let partials: Vec<&Partial> = partials.into_iter().collect();
        caught(|| self.put_together(&partials))
            .unwrap_or_else(|error| Finished::Outcome(RiskOutcome::Error(error)))
    }

    fn put_together(&self, partials: &[&Partial]) -> Finished {
        if let Some(error) = partials.iter().find_map(|partial| partial.error()) {
            return Finished::Outcome(RiskOutcome::Error(error.clone()));
        }
        Finished::Outcome(match &self.work {
            Work::Options(task) => task.outcome(partials),
            Work::ImpliedVolatilities(task) => task.outcome(partials),
            Work::Sweep(task) => task.outcome(partials),
            Work::Simulation(task) => return task.finish(partials),
            Work::EarlyExercise(_) => early_exercise::outcome(partials),
            Work::Portfolio(task) => return task.finish(partials),
            Work::Optimisation(task) => return task.finish(partials),
        })
    }
}

/// What comes of it, or that it panics.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, RiskError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| refusals::panicked())
}

/// Whether a deadline is one that a request may have.
pub fn is_deadline(deadline_ns: i64) -> bool {
    (0..=DEADLINE_NS_MAX).contains(&deadline_ns)
}

fn places(units: Range<i64>) -> Range<usize> {
    units.start as usize..units.end as usize
}

/// A parameter that is to blame.
fn bad(field: impl Into<String>, message: impl Into<String>) -> RiskError {
    RiskError { code: RiskErrorCode::BadParameter, field: field.into(), message: message.into() }
}

fn check_length(field: &str, text: &str, bytes: std::ops::RangeInclusive<usize>) -> Result<(), RiskError> {
    if bytes.contains(&text.len()) {
        return Ok(());
    }
    Err(bad(field, format!("{} bytes; it must be {} to {}", text.len(), bytes.start(), bytes.end())))
}

/// How many of something there may be.
fn check_count(field: &str, count: usize, allowed: std::ops::RangeInclusive<usize>) -> Result<(), RiskError> {
    if allowed.contains(&count) {
        return Ok(());
    }
    Err(bad(field, format!("{count} of them; it must be {} to {}", allowed.start(), allowed.end())))
}

#[cfg(test)]
mod tests;
