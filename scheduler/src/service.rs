//! Service: which lanes get work, and how groups leave the other lanes.
//!
//! ```text
//!   in service: not drained by an operator, breaker closed ──► groups and slices
//!   half in service: breaker half open ──► half of its groups, and slices, as a test of the lane
//!   out of service ──► its groups: Release ──► Released ──► Place elsewhere; its shares of tasks: open to all lanes
//!   no ready lane is in service ──► all ready lanes get work: late is better than never
//! ```
//!
//! It owns each lane's service state and the releases that follow from it; it must not know where groups are placed.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{
    BreakerMode, BreakerState, Decision, ExclusionReason, GroupIndex, LaneId, LaneKind, Release,
    ReleaseCause, Route,
};

use crate::lanes::{Lane, Lanes, QueueHead};
use crate::life::{Counts, Life};
use crate::partitions::GroupKey;
use crate::risk;
use crate::state_hash::{Component, hash_component};

/// Conditions that keep a lane from service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Service {
    drained: bool,
    mode: BreakerMode,
    /// State of the lane's breaker.
    breaker: BreakerState,
    /// True if the lane's device has little memory left; other lanes are then preferred for further groups.
    is_short_of_memory: bool,
    contribution: u64,
}

impl Service {
    /// Hash of the service; 0 if no condition applies to the lane, as in journals from before such conditions existed.
    pub(crate) fn hash(&self, lane: LaneId) -> u64 {
        let memory = match self.is_short_of_memory {
            false => 0,
            true => hash_component(Component::Service, [i64::from(lane)]),
        };
        let work = match (self.drained, self.mode, self.breaker) {
            (false, BreakerMode::Auto, BreakerState::Closed) => 0,
            (drained, mode, breaker) => hash_component(
                Component::Service,
                [i64::from(lane), i64::from(drained), mode as i64, breaker as i64],
            ),
        };
        work.wrapping_add(memory)
    }

    /// True if the lane may get groups and slices.
    pub(crate) fn is_on(&self) -> bool {
        self.exclusion().is_none()
    }

    /// Reason for which the lane gets no work; `None` if it may get some.
    pub(crate) fn exclusion(&self) -> Option<ExclusionReason> {
        let is_open = match self.mode {
            BreakerMode::Open => true,
            BreakerMode::Closed => false,
            BreakerMode::Auto => self.breaker == BreakerState::Open,
        };
        match (self.drained, is_open) {
            (true, _) => Some(ExclusionReason::Drained),
            (false, true) => Some(ExclusionReason::Broken),
            (false, false) => None,
        }
    }

    /// True if the lane may get as much work as any other.
    pub(crate) fn is_full(&self) -> bool {
        self.is_on() && (self.mode == BreakerMode::Closed || self.breaker == BreakerState::Closed)
    }

    /// State of the lane's breaker.
    pub(crate) fn breaker(&self) -> BreakerState {
        self.breaker
    }

    /// True if the lane's device has little memory left.
    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.is_short_of_memory
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    pub(crate) fn mode(&self) -> BreakerMode {
        self.mode
    }
}

/// The rule that decides which lanes get work, in the present state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Serving {
    /// True if some ready lane is in full service; the other lanes then get less work or none.
    any_in_service: bool,
}

impl Serving {
    pub(crate) fn of(lanes: &Lanes) -> Self {
        Self { any_in_service: lanes.any_in_service() }
    }

    /// True if a lane gets work without restriction.
    pub(crate) fn has(self, lane: &Lane) -> bool {
        if self.any_in_service { lane.is_in_service() } else { lane.ready }
    }

    /// True if a lane gets some work as a probe.
    pub(crate) fn probes(self, lane: &Lane) -> bool {
        lane.ready && self.any_in_service && lane.service.is_on() && !lane.service.is_full()
    }

    /// True if a lane gets any work.
    pub(crate) fn serves(self, lane: &Lane) -> bool {
        self.has(lane) || self.probes(lane)
    }

    /// Number of lanes of a kind that get work without restriction.
    pub(crate) fn count(self, lanes: &Lanes, kind: LaneKind) -> usize {
        match self.any_in_service {
            true => lanes.count_in_service(kind),
            false => lanes.iter().filter(|lane| lane.ready && lane.kind == kind).count(),
        }
    }

    /// Reason for which a ready lane gets no work; `None` if it gets some.
    pub(crate) fn exclusion(self, lane: &Lane) -> Option<ExclusionReason> {
        lane.service.exclusion().filter(|_| self.any_in_service)
    }
}

/// A change of a lane's service.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Change {
    Drained(bool),
    Mode(BreakerMode),
    Breaker(BreakerState),
    /// True if the device has little memory left.
    Memory(bool),
}

/// Changes a condition that keeps a lane from service, or from further groups.
pub(crate) fn change(life: &mut Life, lane: LaneId, change: Change) {
    let was_on = life.lanes[lane as usize].service.is_on();
    let service = &mut life.lanes[lane as usize].service;
    match change {
        Change::Drained(drained) => service.drained = drained,
        Change::Mode(mode) => service.mode = mode,
        Change::Breaker(breaker) => service.breaker = breaker,
        Change::Memory(is_short) => service.is_short_of_memory = is_short,
    }
    let (now, is_on) = (service.hash(lane), service.is_on());
    life.hash.replace(&mut service.contribution, now);
    if was_on && !is_on {
        life.counts.lanes_out += 1;
    } else if !was_on && is_on {
        life.counts.lanes_out -= 1;
    }
}

/// Weight after a percentage is withheld; at least 1 if the weight is not 0.
pub(crate) fn weight_of(weight: i32, withheld_percent: i32) -> i32 {
    let left = i64::from(weight) * i64::from(100 - withheld_percent) / 100;
    left.max(i64::from(weight.min(1))) as i32
}

/// Withholds a percentage of a lane's weight.
pub(crate) fn withhold(life: &mut Life, lane: LaneId, withheld_percent: i32) {
    let lane = &mut life.lanes[lane as usize];
    lane.weight.withheld_percent = withheld_percent;
    lane.weight.current = weight_of(lane.weight.full, withheld_percent);
    lane.refresh(&mut life.hash);
}

/// Removes the work of lanes that are out of service, if another lane can do it. Their shares of tasks are opened to
/// all lanes, and they release their groups, as far as the step has room.
pub(crate) fn evacuate(life: &mut Life, decisions: &mut Vec<Decision>) {
    if life.counts.lanes_out == 0 {
        return;
    }
    let serving = Serving::of(&life.lanes);
    let is_out = |lane: &&Lane| serving.exclusion(lane).is_some();
    let out: Vec<LaneId> = life.lanes.iter().filter(is_out).map(|lane| lane.id).collect();
    for &lane in &out {
        risk::reopen_shares(life, lane);
    }
    let has_groups = |lane: &LaneId| !life.clock.draining && life.lanes[*lane as usize].groups_placed > 0;
    let left: Vec<LaneId> = out.into_iter().filter(has_groups).collect();
    for lane in left {
        let cause = match life.lanes[lane as usize].service.is_drained() {
            true => ReleaseCause::Drained,
            false => ReleaseCause::Breaker,
        };
        for key in groups_of(life, lane) {
            if !life.step.room.is_there() {
                return;
            }
            let decision = Decision::Release(let_go(life, key, cause, None));
            life.step.room.take(&decision);
            decisions.push(decision);
        }
    }
}

/// The groups of a lane, by partition and group.
fn groups_of(life: &Life, lane: LaneId) -> Vec<GroupKey> {
    let mut keys = Vec::new();
    for partition in life.partitions.values() {
        for (index, group) in partition.active().iter().enumerate() {
            if group.lane == Some(lane) {
                keys.push(GroupKey { partition: partition.id, group: index as GroupIndex });
            }
        }
    }
    keys
}

/// Makes a lane release a group. After the lane has given back the group's state, the group is placed again; a route
/// restricts the kind of lanes.
pub(crate) fn let_go(life: &mut Life, key: GroupKey, cause: ReleaseCause, route: Option<Route>) -> Release {
    let Life { lanes, partitions, balance, hash, counts: Counts { groups_unplaced, .. }, .. } = life;
    let partition = partitions.get_mut(&key.partition).expect("the group was found in it");
    let group = partition.group_mut(key.group);
    if let Some(sums) = &mut balance.sums {
        sums.remove(key, group);
    }
    let lane_id = group.lane.take().expect("only groups on a lane move");
    let lane = &mut lanes[lane_id as usize];
    lane.groups_placed -= 1;
    lane.waiting.rows -= group.waiting_rows;
    if let Some(oldest_ns) = group.oldest_ns() {
        lane.dequeue(QueueHead { oldest_ns, key });
    }
    lane.refresh(hash);
    (group.leaving, group.bound_for) = (Some(lane_id), route.map(|route| route.kind));
    group.refresh(key, hash);
    group.refresh_route(key, hash);
    *groups_unplaced += 1;
    Release {
        partition: key.partition,
        group: key.group,
        lane: lane_id,
        epoch: group.epoch,
        route,
        cause,
        imbalance: None,
    }
}

/// Hash of the service of all lanes, computed by walking over them.
pub(crate) fn walked_hash(lanes: &[Lane]) -> u64 {
    lanes.iter().fold(0, |sum, lane| sum.wrapping_add(lane.service.hash(lane.id)))
}
