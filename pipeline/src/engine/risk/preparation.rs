//! Making a task of a request: checking it, and making it whole with the market as it was when its turn came. Of large ones that takes
//! long, so that it is done beside the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use warptape_schemas::journal::AsOf;
use warptape_schemas::risk::{RiskError, RiskRequest};
use warptape_stages::risk::{KeptProfits, RiskTask, TakenMarket};

/// A request whose turn has come.
#[derive(Debug)]
pub struct Preparation {
    /// Partition of the request.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    pub(in super::super) number: u64,
    pub(in super::super) is_wanted: Arc<AtomicBool>,
    pub(in super::super) request: Box<RiskRequest>,
    pub(in super::super) market: TakenMarket,
    /// Where tasks are to follow earlier ones.
    pub(in super::super) kept: Option<Arc<KeptProfits>>,
}

/// What came of it.
#[derive(Debug)]
pub struct Prepared {
    pub(in super::super) number: u64,
    /// Nothing where nobody wants it any more.
    pub(in super::super) task: Option<Result<Box<RiskTask>, RiskError>>,
    /// The markets in which its symbols were looked up.
    pub(in super::super) judged_on: Vec<AsOf>,
}

impl Preparation {
    /// Makes the task.
    pub fn run(self) -> Prepared {
        let Self { number, is_wanted, request, market, kept, .. } = self;
        let judged_on = market.as_of().to_vec();
        let make = || {
            let task = RiskTask::of_taken(&request, market)?;
            Ok(Box::new(match kept {
                Some(kept) => task.following(&kept),
                None => task,
            }))
        };
        Prepared { number, task: is_wanted.load(Ordering::Relaxed).then(make), judged_on }
    }
}
