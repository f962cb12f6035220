//! Why a lane had no more to do at a time.

use serde::Serialize;
use warptape_eventlog::EventLog;
use warptape_scheduler::LaneExplanation;

use crate::ReplayError;
use crate::entries::Entries;
use crate::history::{Bound, Moment};

/// How a lane stood.
#[derive(Clone, Debug, Serialize)]
pub struct LaneWhy {
    /// Partition of the journal.
    pub journal: i32,
    /// The last entry before the time that was asked for: the lane is as this left it.
    pub at: Moment,
    /// The lane.
    pub lane: LaneExplanation,
}

/// Says how a lane stood at a bound: behind the last entry before it.
///
/// # Errors
/// If the log cannot be read, there is no entry before the bound, or no such lane.
pub fn why_lane(
    log: &dyn EventLog,
    journal: &str,
    partition: i32,
    lane: i32,
    at: Bound,
) -> Result<LaneWhy, ReplayError> {
    let entries = Entries::open(log, journal, partition)?;
    let next = entries.bound(Some(at))?.unwrap_or(entries.range.next);
    let no_entry = || ReplayError::NothingBefore { url: log.url(), topic: journal.to_owned(), partition };
    let (scheduler, last) = entries.scheduler_behind(next)?.ok_or_else(no_entry)?;
    let lanes = scheduler.lane_loads().count();
    let explained = scheduler.explain_lane(lane).ok_or(ReplayError::NoLane { lane, lanes })?;
    Ok(LaneWhy { journal: partition, at: last, lane: explained })
}
