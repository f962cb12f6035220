//! What every kind of risk problem has: a plan of rounds, which never change once they are made.
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
/// Numbers from which on putting results together takes long.
pub(super) const LONG_NUMBERS: usize = 4_096;

/// A kind of risk problem.
pub(super) trait ProblemKind {
    /// Its assets, by which the market is asked.
    fn assets(&self) -> &[Asset];

    /// The matrix of the assets' returns, if it wants one.
    fn matrix(&self) -> Option<&Matrix> {
        None
    }

    /// Whether the assets' volatilities matter.
    fn wants_volatilities(&self) -> bool {
        true
    }

    /// True if it has rows, of which those are answered that can be: an asset without a market is the end of its rows alone.
    fn has_rows(&self) -> bool {
        false
    }

    /// Checks the problem and makes work of it; `assets` are those of the problem, with the market's numbers.
    fn plan(&self, assets: &Resolved, seed: i64) -> Result<Plan, RiskError>;
}

/// The work that a problem is.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) first: Box<dyn Round>,
    /// Bytes of memory that all rounds may come to take, about, besides the request.
    pub(super) bytes: usize,
    /// Time of one core that all rounds may come to take, estimated, in nanoseconds: by the rates of [`super::cost`].
    pub(super) cost_ns: u64,
}

/// Units that can be done in any order and by anybody, before it is decided how to go on. A round never changes: what its units
/// give makes the next round, or the answer.
pub(super) trait Round: Debug + Send + Sync {
    /// Number of units, at least 1.
    fn units(&self) -> i64;

    /// The key under which the scheduler learns how long such units take.
    fn rate_key(&self) -> String;

    /// What a unit costs, relative to other rounds of the same key.
    fn unit_cost(&self) -> i64 {
        1
    }

    /// Whether it is work of the processor that cannot be cut and may take long, on whatever lane: a device would do nothing for it.
    fn is_host_only(&self) -> bool {
        false
    }

    /// Lets the round reuse results of earlier requests about the same, and keep its own for later ones. The answer does not depend on it.
    fn follow(&mut self, _: &KeptProfits) {}

    /// Does some units, which are numbered from 0.
    fn run(&self, isa: Isa, units: Range<i64>) -> Partial;

    /// Does some units on a device; by default on the processor, where they are too little for a device.
    fn run_on_device(
        &self,
        _: &mut DeviceRisk,
        _: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        Ok(self.run(Isa::detect(), units))
    }

    /// Goes on with what all units of this round gave, in their order.
    fn finish(&self, partials: &[&Partial]) -> Next;
}

/// What comes after a round.
#[derive(Debug)]
pub(super) enum Next {
    /// The answer.
    Outcome(RiskOutcome),
    /// More is to be done first.
    Round(Box<dyn Round>),
}

/// Memory of a lane on a device for risk, which is kept for the next slice.
#[derive(Debug, Default)]
pub struct DeviceRisk {
    pub(super) pricing: DevicePricing,
    pub(super) work: WorkMemory,
}

impl DeviceRisk {
    /// Bytes that are allocated.
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
    /// Boundaries of exercise.
    Boundaries(Vec<Result<Arc<ExerciseBoundary>, AmericanError>>),
    /// Volatilities that prices imply.
    Volatilities(Vec<Result<f64, NoVolatility>>),
    /// Sums of blocks of paths; for a basket with Greeks, the sums of all columns for each block.
    Blocks(Vec<BlockSums>),
    /// Sums of blocks of paths with Greeks.
    GreekBlocks(Vec<GreekSums>),
    /// The rule of exercise as far as pilot paths have given it.
    Rule(Arc<FoundRule>),
    /// Profits by scenario.
    Profits(Arc<Profits>),
    /// The worst scenarios.
    Tails(Arc<Tails>),
    /// What positions lose in blocks of the worst scenarios.
    Losses(Vec<f64>),
    /// The covariance of returns.
    Covariance(Box<Result<Covariance, CovarianceError>>),
    /// The whole answer, of a round that is one unit.
    Outcome(Box<RiskOutcome>),
    /// Cells of trading rules.
    Cells(Vec<CellResult>),
}

impl Partial {
    /// About how many numbers it has, at least 1: the time to put it together with others is in proportion to that.
    pub fn numbers(&self) -> usize {
        let numbers = match self {
            Self::Greeks(greeks) => greeks.price().len() * OPTION_NUMBERS,
            Self::Volatilities(volatilities) => volatilities.len(),
            Self::Values(values) => values.len() * OPTION_NUMBERS,
            // Portfolios are made whole with them.
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

    /// Why there is no answer, if that is known already.
    pub(super) fn error(&self) -> Option<&RiskError> {
        let Self::Outcome(outcome) = self else { return None };
        match &**outcome {
            RiskOutcome::Error(error) => Some(error),
            _ => None,
        }
    }

    /// The answer, where a unit gives all of it.
    pub(super) fn outcome(partials: &[&Partial]) -> Next {
        let Some(Partial::Outcome(outcome)) = partials.last() else {
            unreachable!("a unit of such a round gives the outcome")
        };
        Next::Outcome(RiskOutcome::clone(outcome))
    }
}

/// Numbers of units as places.
pub(super) fn places(units: Range<i64>) -> Range<usize> {
    units.start as usize..units.end as usize
}
