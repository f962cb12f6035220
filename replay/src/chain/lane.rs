//! Explains why a lane had no more work at a given time.

use std::fmt;

use serde::Serialize;
use warptape_eventlog::EventLog;
use warptape_scheduler::LaneExplanation;
use warptape_schemas::journal::{BreakerState, LaneId, LaneSpec};

use crate::ReplayError;
use crate::entries::Entries;
use crate::history::{Bound, Moment};
use crate::why::{Before, last_of_lane};

/// A lane, in the form that users give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneName {
    /// Index of the lane.
    Index(LaneId),
    /// Device of the lane; letter case is ignored.
    Device(String),
}

impl LaneName {
    /// Parses a lane: a number is an index.
    pub fn named(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Device(text.to_owned()), Self::Index)
    }

    /// Returns the index of the lane among a process's lanes; `None` if there is no such lane.
    pub fn of(&self, lanes: &[LaneSpec]) -> Option<LaneId> {
        let found = lanes.iter().find(|spec| match self {
            Self::Index(index) => spec.lane == *index,
            Self::Device(device) => spec.device.eq_ignore_ascii_case(device),
        });
        found.map(|spec| spec.lane)
    }
}

impl fmt::Display for LaneName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => index.fmt(formatter),
            Self::Device(device) => write!(formatter, "{device:?}"),
        }
    }
}

/// Explanation of a lane's state.
#[derive(Clone, Debug, Serialize)]
pub struct LaneWhy {
    /// Partition of the journal.
    pub journal: i32,
    /// The last entry before the requested time; the state is the one after this entry.
    pub at: Moment,
    /// The lane.
    pub lane: LaneExplanation,
    /// Device of the lane.
    pub device: String,
    /// The last decisions about the lane's weight and service, if heat or the breaker reduces them.
    pub decided: Vec<Before>,
    /// Service time of a row on each lane of the process, including this one.
    pub row_times: Vec<RowTime>,
}

/// Service time of a row on a lane.
#[derive(Clone, Debug, Serialize)]
pub struct RowTime {
    /// The lane.
    pub lane: LaneId,
    /// Smoothed service time of a row in picoseconds; 0 if unknown.
    pub service_ps_per_row: i64,
}

/// Explains the state of a lane after the last entry before a bound.
///
/// # Errors
/// If the log cannot be read, the journal has no entry before the bound or ends before it, or the lane does not exist.
pub fn why_lane(
    log: &dyn EventLog,
    journal: &str,
    partition: i32,
    lane: &LaneName,
    at: Bound,
) -> Result<LaneWhy, ReplayError> {
    let entries = Entries::open(log, journal, partition)?;
    entries.refuse_behind_end(at)?;
    let next = entries.bound(Some(at))?.unwrap_or(entries.range.next);
    let no_entry = || ReplayError::NothingBefore { url: log.url(), topic: journal.to_owned(), partition };
    let (scheduler, last) = entries.scheduler_behind(next)?.ok_or_else(no_entry)?;
    let lanes = entries.started_before(next)?.map(|started| started.lanes).unwrap_or_default();
    let explained = lane.of(&lanes).and_then(|lane| Some((scheduler.explain_lane(lane)?, lane)));
    let (explained, index) = explained.ok_or_else(|| ReplayError::NoLane {
        lane: lane.to_string(),
        lanes: lanes.iter().map(|spec| format!("{} ({})", spec.lane, spec.device)).collect(),
    })?;
    let withheld = [explained.weight_withheld_percent > 0, explained.breaker != BreakerState::Closed];
    let decided = last_of_lane(&entries, next, index, withheld)?;
    let row_times = scheduler
        .lane_loads()
        .map(|load| RowTime { lane: load.lane, service_ps_per_row: load.service_ps_per_row })
        .collect();
    let device = lanes.into_iter().find(|spec| spec.lane == index).map(|spec| spec.device);
    Ok(LaneWhy {
        journal: partition,
        at: last,
        lane: explained,
        device: device.unwrap_or_default(),
        decided,
        row_times,
    })
}
