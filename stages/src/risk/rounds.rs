//! The common parts of all kinds of risk problems: a plan of rounds, which never change once they are made.
//!
//! ```text
//!   Kind (the problem of a request) ──► Plan ──► Round ──► units, any range of them anywhere ──► Partial ─┐
//!                                                  ▲                                                      ▼ in order
//!                                                  └───────────────── Next::Round ◄────────── Round::finish ──► Next::Outcome
//! ```

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use warptape_events::risk::{Asset, Matrix, OptionValue, RiskError, RiskOutcome};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError, WorkMemory};
use warptape_kernels::portfolio::{Covariance, CovarianceError, Profits};
use warptape_kernels::pricing::{
    AmericanError, BlockSums, DevicePricing, ExerciseBoundary, GreekSums, Greeks, NoVolatility,
};
use warptape_kernels::sweep::CellResult;

use super::american::FoundRule;
use super::assets::Resolved;
use super::kept::KeptProfits;
use super::portfolio::Tails;

/// Numbers of an option's value.
const OPTION_NUMBERS: usize = 8;
/// Count of numbers from which putting results together takes long.
pub(super) const LONG_NUMBERS: usize = 4_096;

/// A kind of risk problem.
pub(super) trait ProblemKind {
    /// Its assets, whose market is looked up.
    fn assets(&self) -> &[Asset];

    /// The matrix of the assets' returns; `None` if it needs none.
    fn matrix(&self) -> Option<&Matrix> {
        None
    }

    /// True if the assets' volatilities matter.
    fn wants_volatilities(&self) -> bool {
        true
    }

    /// True if it has rows that are answered one by one: an asset without a market then fails only its own rows.
    fn has_rows(&self) -> bool {
        false
    }

    /// Checks the problem and makes its plan; `assets` are those of the problem, with the market's numbers.
    fn plan(&self, assets: &Resolved, seed: i64) -> Result<Plan, RiskError>;
}

/// The work of a problem.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) first: Box<dyn Round>,
    /// Approximate bytes of memory that all rounds may take, besides the request.
    pub(super) bytes: usize,
    /// Estimated time of one core for all rounds, in nanoseconds, by the rates of [`super::cost`].
    pub(super) cost_ns: u64,
}

/// Units that may run in any order and on any lane, before the next decision. A round never changes: the results of its
/// units make the next round, or the answer.
pub(super) trait Round: Debug + Send + Sync {
    /// Number of units, at least 1.
    fn units(&self) -> i64;

    /// The key under which the scheduler learns the service times of such units.
    fn rate_key(&self) -> String;

    /// Cost of a unit, relative to other rounds of the same key.
    fn unit_cost(&self) -> i64 {
        1
    }

    /// Number of blocks of a kernel that a unit takes on a device. 0: a device works on one unit after the other.
    fn unit_width(&self) -> usize {
        0
    }

    /// True if it is work of the processor that cannot be cut and may take long on any lane; a device would not help.
    fn is_host_only(&self) -> bool {
        false
    }

    /// Lets the round reuse results of earlier requests about the same portfolio, and keep its own for later ones. The
    /// answer does not depend on it.
    fn follow(&mut self, _: &KeptProfits) {}

    /// Runs some units, which are numbered from 0.
    fn run(&self, isa: Isa, units: Range<i64>) -> Partial;

    /// Runs some units on a device; by default on the processor, for units that are too small for a device.
    fn run_on_device(
        &self,
        _: &mut DeviceRisk,
        _: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        Ok(self.run(Isa::detect(), units))
    }

    /// Goes on with the results of all units of this round, in their order.
    fn finish(&self, partials: &[&Partial]) -> Next;
}

/// The outcome of a round.
#[derive(Debug)]
pub(super) enum Next {
    /// The answer.
    Outcome(RiskOutcome),
    /// The next round, which is to be done first.
    Round(Box<dyn Round>),
}

/// Memory for risk on a lane's device, which is kept for the next slice.
#[derive(Debug, Default)]
pub struct DeviceRisk {
    pub(super) pricing: DevicePricing,
    pub(super) work: WorkMemory,
}

impl DeviceRisk {
    /// Allocated bytes.
    pub fn bytes(&self) -> usize {
        self.pricing.bytes() + self.work.bytes()
    }
}

/// The results of some units, in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Partial {
    /// Values of options.
    Greeks(Box<Greeks>),
    /// Values of contracts.
    Values(Vec<OptionValue>),
    /// Exercise boundaries.
    Boundaries(Vec<Result<Arc<ExerciseBoundary>, AmericanError>>),
    /// Implied volatilities.
    Volatilities(Vec<Result<f64, NoVolatility>>),
    /// Sums of blocks of paths; for a basket with Greeks, the sums of all columns for each block.
    Blocks(Vec<BlockSums>),
    /// Sums of blocks of paths with Greeks.
    GreekBlocks(Vec<GreekSums>),
    /// The exercise rule as far as pilot paths have given it.
    Rule(Arc<FoundRule>),
    /// Profits by scenario.
    Profits(Arc<Profits>),
    /// The worst scenarios.
    Tails(Arc<Tails>),
    /// Losses of positions in blocks of the worst scenarios.
    Losses(Vec<f64>),
    /// The covariance of returns.
    Covariance(Box<Result<Covariance, CovarianceError>>),
    /// The whole answer, if the round is one unit.
    Outcome(Box<RiskOutcome>),
    /// Cells of trading rules.
    Cells(Vec<CellResult>),
}

impl Partial {
    /// Approximate count of its numbers, at least 1; the time to put it together with others is proportional to it.
    pub fn numbers(&self) -> usize {
        let numbers = match self {
            Self::Greeks(greeks) => greeks.price().len() * OPTION_NUMBERS,
            Self::Volatilities(volatilities) => volatilities.len(),
            Self::Values(values) => values.len() * OPTION_NUMBERS,
            // Putting boundaries together completes a portfolio, which takes long.
            Self::Boundaries(_) => LONG_NUMBERS,
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

    /// The error that answers the request; `None` if there is none.
    pub(super) fn error(&self) -> Option<&RiskError> {
        let Self::Outcome(outcome) = self else { return None };
        match &**outcome {
            RiskOutcome::Error(error) => Some(error),
            _ => None,
        }
    }

    /// The answer of a round whose single unit gives all of it.
    pub(super) fn outcome(partials: &[&Partial]) -> Next {
        let Some(Partial::Outcome(outcome)) = partials.last() else {
            unreachable!("a unit of such a round gives the outcome")
        };
        Next::Outcome(RiskOutcome::clone(outcome))
    }
}

/// Numbers of units as indices.
pub(super) fn places(units: Range<i64>) -> Range<usize> {
    units.start as usize..units.end as usize
}
