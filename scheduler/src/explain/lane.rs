//! The state of a lane, and the conditions that keep it from groups and batches.

use serde::Serialize;
use warptape_events::journal::{BreakerState, ExclusionReason, GroupIndex, LaneId, PartitionId};

use super::lane_choices;
use crate::account::Choice;
use crate::dispatch::{self, NextBatch};
use crate::machine::Scheduler;
use crate::partitions::GroupKey;
use crate::placement;
use crate::views::LaneLoad;

/// State of a lane, with these conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneExplanation {
    /// Current load of the lane.
    pub load: LaneLoad,
    /// Reason for which it gets no work at all; `None` if it may get some.
    pub excluded: Option<ExclusionReason>,
    /// State of its breaker.
    pub breaker: BreakerState,
    /// Percentage of its weight that is withheld because its device is hot.
    pub weight_withheld_percent: i32,
    /// True if groups move by the load of lanes. Otherwise they stay where they were placed while their lane remains in
    /// service.
    pub groups_move_by_load: bool,
    /// Most groups that it may own, without regard to routes. `None` if the number is not bounded, or if it gets no
    /// work.
    pub groups_max: Option<i32>,
    /// Most batches that it may have in flight.
    pub batches_max: i32,
    /// Rows that it may get in addition to those in flight.
    pub rows_left: i64,
    /// Bytes that it may get in addition to those in flight.
    pub bytes_left: i64,
    /// Predicted end of all its work in flight, in ns since the epoch. It is in the past if no work is in flight, or if
    /// the lane is late.
    pub free_ns: i64,
    /// When it gets its next batch.
    pub next_batch: NextBatch,
    /// Each group that it does not own, with its score for the group now, as if the group had no lane.
    pub elsewhere: Vec<GroupElsewhere>,
}

/// A group that a lane does not own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupElsewhere {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane that owns the group; `None` while the group moves, or is not placed.
    pub lane: Option<LaneId>,
    /// Rows that wait for the group on the host.
    pub waiting_rows: i64,
    /// The lane in question, as an alternative for this group.
    pub choice: Choice,
    /// The best score among the candidates for the group.
    pub best_score: Option<i64>,
}

impl Scheduler {
    /// Explains the state of a lane; `None` if there is no such lane.
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
