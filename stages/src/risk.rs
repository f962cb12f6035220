//! Risk requests as work: a request is checked, completed with the present market, cut into units that any lane can
//! run, and put together again.
//!
//! ```text
//!   RiskRequest + market ──► RiskTask ──► units, any range of them anywhere ──► Partial ─┐
//!                                 ▲                                                      ▼ in order
//!                                 └──── the next round, if more is to be done ◄── RiskTask::finish ──► outcome
//! ```
//!
//! An outcome is a function of the request and its market, whatever the cuts into units and whichever the lanes. Each
//! kind of problem is a [`ProblemKind`] in a file of its own, which makes [`Round`]s of it. Only `kind_of` knows all
//! kinds.

mod american;
mod assets;
mod bad_rows;
mod blocks;
mod contracts;
mod cost;
mod digital;
mod early_exercise;
mod kept;
mod market_snapshot;
mod matrices;
pub mod optimisation;
mod optimise;
mod options;
mod portfolio;
pub mod refusals;
mod rounds;
mod simulation;
mod sweep;
mod told;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use warptape_events::risk::{MarketAsOf, RiskError, RiskErrorCode, RiskOutcome, RiskProblem, RiskRequest};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};

use crate::SymbolMarket;
use assets::Resolved;
pub use kept::KeptProfits;
pub use market_snapshot::{MarketSnapshot, symbols_of, takes_matrix};
pub use rounds::{DeviceRisk, Partial};
use rounds::{LONG_NUMBERS, Next, Plan, ProblemKind, Round};

/// Greatest size of a request's id, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// Greatest size of a tenant's name, in bytes.
const TENANT_BYTES_MAX: usize = 64;

/// Latest deadline, in nanoseconds since the epoch: the year 2116.
const DEADLINE_NS_MAX: i64 = i64::MAX / 2;

/// The market of a symbol, by its name; `None` if the symbol is unknown.
pub type MarketOf<'a> = &'a dyn Fn(&str) -> Option<SymbolMarket>;

/// A request in work, between two decisions: its units are those of one round. It never changes: the results of its
/// units make the task of the next round, or the answer.
#[derive(Debug)]
pub struct RiskTask {
    round: Box<dyn Round>,
    /// Its first unit; units before it were those of earlier rounds.
    first_unit: i64,
    /// Count of numbers in the results of earlier rounds.
    numbers_before: usize,
    whole: Arc<Whole>,
}

/// Values that all rounds of a request share.
#[derive(Debug)]
struct Whole {
    bytes: usize,
    cost_ns: i64,
    as_of: Vec<MarketAsOf>,
}

/// The outcome of a round.
#[derive(Debug)]
pub enum Finished {
    /// The answer.
    Outcome(RiskOutcome),
    /// The next round, which is to be done first.
    More(RiskTask),
}

/// The kind of a problem. Only this function knows all kinds.
fn kind_of(problem: &RiskProblem) -> &dyn ProblemKind {
    match problem {
        RiskProblem::Options(problem) => problem,
        RiskProblem::ImpliedVolatilities(problem) => problem,
        RiskProblem::Simulation(problem) => problem,
        RiskProblem::Portfolio(problem) => problem,
        RiskProblem::Optimisation(problem) => problem,
        RiskProblem::Sweep(problem) => problem,
        RiskProblem::DigitalOptions(problem) => problem,
        RiskProblem::Contracts(problem) => problem,
    }
}

impl RiskTask {
    /// Checks a request and takes its inputs from the market.
    ///
    /// A panic becomes the answer, as in all work on requests. It is a function of the request like any other answer.
    /// If it ended the process, the next process would meet the request again and end as well.
    pub fn new(request: &RiskRequest, market_of: MarketOf<'_>) -> Result<Self, RiskError> {
        caught(|| Self::make(request, market_of))?
    }

    fn make(request: &RiskRequest, market_of: MarketOf<'_>) -> Result<Self, RiskError> {
        check_length("request_id", &request.request_id, 1..=REQUEST_ID_BYTES_MAX)?;
        check_length("tenant", &request.tenant, 0..=TENANT_BYTES_MAX)?;
        if let Some(deadline_ns) = request.deadline_ns.filter(|&deadline_ns| !is_deadline(deadline_ns)) {
            return Err(bad(
                "deadline_ns",
                format!("{deadline_ns}; it must be from 0 to {DEADLINE_NS_MAX}, or null"),
            ));
        }
        let kind = kind_of(&request.problem);
        let assets = Resolved::of(kind, market_of)?;
        let Plan { first, bytes, cost_ns } = kind.plan(&assets, request.seed)?;
        let cost_ns = i64::try_from(cost_ns).unwrap_or(i64::MAX);
        let whole = Whole { bytes, cost_ns, as_of: assets.as_of };
        Ok(Self { round: first, first_unit: 0, numbers_before: 0, whole: Arc::new(whole) })
    }

    /// Lets the task reuse results of earlier requests about the same portfolio, and keep its own for later ones. The
    /// answer does not depend on it.
    #[must_use]
    pub fn following(mut self, kept: &KeptProfits) -> Self {
        self.round.follow(kept);
        self
    }

    /// True if its units are work of the processor that cannot be cut and may take long on any lane; a device would not
    /// help.
    pub fn is_host_only(&self) -> bool {
        self.round.is_host_only()
    }

    /// Approximate bytes of memory that all rounds may take, besides the request.
    pub fn bytes(&self) -> usize {
        self.whole.bytes
    }

    /// Data that was taken from the market.
    pub fn as_of(&self) -> &[MarketAsOf] {
        &self.whole.as_of
    }

    /// The key under which the scheduler learns the service times of such units.
    pub fn rate_key(&self) -> String {
        self.round.rate_key()
    }

    /// Cost of a unit, relative to other tasks of the same key.
    pub fn unit_cost(&self) -> i64 {
        self.round.unit_cost()
    }

    /// Number of blocks of a kernel that a unit takes on a device. 0: a device works on one unit after the other.
    pub fn unit_width(&self) -> u16 {
        self.round.unit_width().try_into().unwrap_or(u16::MAX)
    }

    /// Estimated time of one core for all rounds, in nanoseconds, by rates that are the same everywhere (`cost`).
    pub fn cost_ns(&self) -> i64 {
        self.whole.cost_ns
    }

    /// Its units, at least one. Units of a request are numbered through all rounds.
    pub fn units(&self) -> Range<i64> {
        self.first_unit..self.first_unit + self.round.units()
    }

    fn of_round(&self, units: Range<i64>) -> Range<i64> {
        units.start - self.first_unit..units.end - self.first_unit
    }

    /// Runs some units.
    pub fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        self.round.run(isa, self.of_round(units))
    }

    /// Runs some units. A panic becomes the answer.
    pub fn run_caught(&self, isa: Isa, units: Range<i64>) -> Partial {
        caught(|| self.run(isa, units))
            .unwrap_or_else(|error| Partial::Outcome(Box::new(RiskOutcome::Error(error))))
    }

    /// Runs all units of this round and of those that follow, in order.
    pub fn outcome(&self, isa: Isa) -> RiskOutcome {
        let finished = |task: &Self| task.finish([&task.run_caught(isa, task.units())]);
        let mut finished_round = finished(self);
        loop {
            match finished_round {
                Finished::Outcome(outcome) => return outcome,
                Finished::More(next) => finished_round = finished(&next),
            }
        }
    }

    /// Runs some units on a device.
    pub fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        self.round.run_on_device(memory, device, self.of_round(units))
    }

    /// True if putting the results of units together may take longer than about 0.1 ms.
    pub fn is_long_to_finish<'a>(&self, partials: impl IntoIterator<Item = &'a Partial>) -> bool {
        let mut left = LONG_NUMBERS.saturating_sub(self.numbers_before);
        let mut partials = partials.into_iter();
        left == 0
            || partials.any(|partial| {
                left = left.saturating_sub(partial.numbers());
                left == 0
            })
    }

    /// Puts together the results of all its units, in their order. A panic becomes the answer.
    pub fn finish<'a>(&self, partials: impl IntoIterator<Item = &'a Partial>) -> Finished {
        let partials: Vec<&Partial> = partials.into_iter().collect();
        if let Some(error) = partials.iter().find_map(|partial| partial.error()) {
            return Finished::Outcome(RiskOutcome::Error(error.clone()));
        }
        match caught(|| self.round.finish(&partials)) {
            Err(error) => Finished::Outcome(RiskOutcome::Error(error)),
            Ok(Next::Outcome(outcome)) => Finished::Outcome(outcome),
            Ok(Next::Round(round)) => {
                let numbers: usize = partials.iter().map(|partial| partial.numbers()).sum();
                Finished::More(Self {
                    round,
                    first_unit: self.units().end,
                    numbers_before: self.numbers_before.saturating_add(numbers),
                    whole: self.whole.clone(),
                })
            }
        }
    }
}

/// The result of a function, or the error that stands for its panic.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, RiskError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| refusals::panicked())
}

/// True if a request may have this deadline.
pub fn is_deadline(deadline_ns: i64) -> bool {
    (0..=DEADLINE_NS_MAX).contains(&deadline_ns)
}

/// The error of a bad parameter.
fn bad(field: impl Into<String>, message: impl Into<String>) -> RiskError {
    RiskError { code: RiskErrorCode::BadParameter, field: field.into(), message: message.into() }
}

fn check_length(field: &str, text: &str, bytes: std::ops::RangeInclusive<usize>) -> Result<(), RiskError> {
    if bytes.contains(&text.len()) {
        return Ok(());
    }
    Err(bad(field, format!("{} bytes; it must be {} to {}", text.len(), bytes.start(), bytes.end())))
}

/// Refuses a count outside the allowed range.
fn check_count(field: &str, count: usize, allowed: std::ops::RangeInclusive<usize>) -> Result<(), RiskError> {
    if allowed.contains(&count) {
        return Ok(());
    }
    Err(bad(field, format!("{count} of them; it must be {} to {}", allowed.start(), allowed.end())))
}

#[cfg(test)]
mod tests;
