//! Preparation of a task: a request is checked and completed with the market of its turn. Large requests take long, so
//! this runs in the background.

use std::sync::Arc;

use warptape_events::journal::AsOf;
use warptape_events::risk::{RiskError, RiskRequest};
use warptape_stages::risk::{KeptProfits, MarketSnapshot, RiskTask};

use super::arrivals::Haste;

/// A request whose turn has come.
#[derive(Debug)]
pub struct Preparation {
    /// Partition of the request.
    pub partition: i32,
    /// Offset of the request.
    pub offset: i64,
    /// Priority of the preparation on the processor.
    pub haste: Haste,
    pub(crate) number: u64,
    pub(crate) request: Box<RiskRequest>,
    pub(crate) market: MarketSnapshot,
    /// Profits kept from earlier requests; `None` if tasks must not reuse them.
    pub(crate) kept: Option<Arc<KeptProfits>>,
}

/// The result of a preparation.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) number: u64,
    /// The task, or the error of the request; `None` if its result is no longer wanted.
    pub(crate) task: Option<Result<Box<RiskTask>, RiskError>>,
    /// The markets in which the request's symbols were looked up.
    pub(crate) judged_on: Vec<AsOf>,
}

impl Prepared {
    /// The number of the preparation.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Preparation {
    /// The number of the preparation, by which [`crate::Command::Abandon`] names it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Drops the request, because its result is no longer wanted.
    pub fn abandon(self) -> Prepared {
        Prepared { number: self.number, task: None, judged_on: Vec::new() }
    }

    /// Makes the task, or finds the error of the request.
    pub fn run(self) -> Prepared {
        let Self { number, request, market, kept, .. } = self;
        let judged_on = market.as_of().to_vec();
        let make = || {
            let task = RiskTask::of_taken(&request, market)?;
            Ok(Box::new(match kept {
                Some(kept) => task.following(&kept),
                None => task,
            }))
        };
        Prepared { number, task: Some(make()), judged_on }
    }
}
