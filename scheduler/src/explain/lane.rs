//! Why a lane has what it has: what keeps it from groups and from batches.

use serde::Serialize;
use warptape_events::journal::{BreakerState, ExclusionReason, GroupIndex, LaneId, PartitionId};

use super::lane_choices;
use crate::account::Choice;
use crate::dispatch::{self, NextBatch};
use crate::machine::Scheduler;
use crate::partitions::GroupKey;
use crate::placement;
use crate::views::LaneLoad;

/// How a lane stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneExplanation {
    /// What it has to do.
    pub load: LaneLoad,
    /// Why it is to get nothing at all, if it is.
    pub excluded: Option<ExclusionReason>,
    /// What its breaker found.
    pub breaker: BreakerState,
    /// Percent of its weight that its device's heat takes from it.
    pub weight_withheld_percent: i32,
    /// Whether groups move by what lanes have to do. Otherwise they stay where they were placed until something happens to their lane.
    pub groups_move_by_load: bool,
    /// Groups that it may have, of the kind of which it may have most; `None` where it has all there are, and where it is to get nothing.
    pub groups_max: Option<i32>,
    /// Batches that it may have in flight.
    pub batches_max: i32,
    /// Rows that it may be given beside those in flight.
    pub rows_left: i64,
    /// Bytes that it may be given beside those in flight.
    pub bytes_left: i64,
    /// When it is predicted to have done what is in flight, ns since the epoch; in the past where nothing is, or it is late.
    pub free_ns: i64,
    /// When it gets its next batch.
    pub next_batch: NextBatch,
    /// Each group that it does not have, with what placement would say of it now, if the group had no lane.
    pub elsewhere: Vec<GroupElsewhere>,
}

/// A group that a lane does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupElsewhere {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane that has it; none while it moves, or is not placed.
    pub lane: Option<LaneId>,
    /// Rows that wait for it on the host.
    pub waiting_rows: i64,
    /// The lane that is asked about, for this group.
    pub choice: Choice,
    /// The best score of a lane that may have the group.
    pub best_score: Option<i64>,
}

impl Scheduler {
    /// How a lane stands; `None` where there is no such lane.
    pub fn explain_lane(&self, lane: LaneId) -> Option<LaneExplanation> {
        let life = self.life.as_ref()?;
        let index = usize::try_from(lane).ok()?;
        let of = life.lanes.get(index)?;
        let load = self.lane_loads().nth(index)?;
        let excluded = if of.ready { of.service.exclusion() } else { Some(ExclusionReason::Lost) };
        let elsewhere = self.placements().filter(|placement| placement.lane != Some(lane));
        let mut groups_max = None;
        let elsewhere = elsewhere.filter_map(|placement| {
            let (partition, group) = (placement.partition, placement.group);
            let accounts = placement::account(life, GroupKey { partition, group })?;
            groups_max = groups_max.max(Some(accounts.get(index)?.groups_max));
            let may = accounts.iter().filter(|account| account.excluded.is_none());
            let best_score = may.map(|account| account.score).max();
            let choice = lane_choices(life, &accounts, placement.lane).into_iter().nth(index)?;
            let (lane, waiting_rows) = (placement.lane, placement.waiting_rows);
            Some(GroupElsewhere { partition, group, lane, waiting_rows, choice, best_score })
        });
        let elsewhere: Vec<GroupElsewhere> = elsewhere.collect();
        Some(LaneExplanation {
            load,
            groups_max: groups_max.filter(|_| excluded.is_none()),
            excluded,
            breaker: of.service.breaker(),
            weight_withheld_percent: of.weight.withheld_percent,
            groups_move_by_load: life.policy.is_measured() && life.config.balance_interval_ns > 0,
            batches_max: life.config.lane_batches_max,
            rows_left: of.rows_left(&life.config),
            bytes_left: of.bytes_left(&life.config),
            free_ns: of.free_ns,
            next_batch: dispatch::next_batch(life, of),
            elsewhere,
        })
    }
}
