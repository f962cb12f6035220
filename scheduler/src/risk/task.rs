//! One risk task: its units that have not begun, the lanes that may begin them, and its running slices.
//!
//! Units move from `open` (any lane may take them) or from a lane's share to a slice in flight, and are done when it
//! ends. A lost lane's units, in flight or in its share, return to `open`. Lanes take the lowest open units first, so
//! repeated units run before new ones.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, PartitionId, Share, TaskArrived, TaskClass, TaskId};
use xxhash_rust::xxh3::xxh3_64;

use super::queue::Due;
use crate::name::Name;
use crate::policy::task::{self as policy, Order};
use crate::state_hash::{Component, StateHash, hash_component};

/// Units `from..to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Units {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

impl Units {
    pub(crate) fn count(self) -> i64 {
        self.to - self.from
    }

    fn hash(self, task: TaskId, lane: LaneId) -> u64 {
        hash_component(Component::TaskUnits, [task, i64::from(lane), self.from, self.to])
    }
}

/// State of a task with regard to its split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// The task must be split before a lane takes units.
    Whole,
    /// The task must be split, and free lanes wait for the other lanes until this time.
    Reserved(i64),
    /// The task must be split, but other tasks go first until this time.
    Aside(i64),
    /// Lanes may take open units and units of their shares.
    Shared,
}

/// Lane number of open units in the state hash.
const ANY_LANE: LaneId = -1;

/// One task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) spec: TaskSpec,
    pub(crate) stage: Stage,
    /// Units that any lane may take, as ascending ranges with gaps between them; all units while the task is whole.
    pub(crate) open: Vec<Units>,
    /// The remaining units of each lane's share, by lane.
    pub(crate) shares: Vec<(LaneId, Units)>,
    /// Units that are not done.
    pub(crate) units_left: i64,
    pub(crate) slices_running: i32,
    pub(crate) slices_done: i64,
    pub(crate) service_ns: i64,
    /// Predicted time of its finished slices, in nanoseconds; 0 if slices are not predicted by size.
    pub(crate) predicted_ns: i64,
    /// Service quanta consumed so far, plus the fewest quanta among its tenant's tasks when it arrived.
    pub(crate) quanta: i64,
    /// Last predicted time of its rest on the fastest class of lanes, in nanoseconds; 0 unless the policy uses it.
    pub(crate) rest_ns: i64,
    /// Start of its last slice, or its arrival; 0 if tasks do not age.
    pub(crate) since_ns: i64,
    /// True if one of its slices has begun, or if it is a later round; always false if delay is not watched.
    pub(crate) has_begun: bool,
    contribution: u64,
}

/// Properties of a task that are known from its arrival on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskSpec {
    pub(crate) id: TaskId,
    pub(crate) arrived_ns: i64,
    pub(crate) partition: PartitionId,
    pub(crate) class: TaskClass,
    pub(crate) tenant: Name,
    pub(crate) deadline_ns: Option<i64>,
    pub(crate) rate_key: Name,
    pub(crate) unit_cost: i64,
    pub(crate) slice_units_max: i64,
    pub(crate) gang: bool,
    /// Bytes of its request.
    pub(crate) bytes: i64,
    /// Width of a unit on a device; 0 if units run one after the other there. Checkpoints store it after the other
    /// fields of the state.
    #[serde(skip)]
    pub(crate) unit_width: u16,
}

impl Task {
    pub(crate) fn new(
        arrived_ns: i64,
        arrived: &TaskArrived,
        tenant: Name,
        stage: Stage,
        quanta: i64,
        hash: &mut StateHash,
    ) -> Self {
        let all = Units { from: arrived.first_unit, to: arrived.first_unit + arrived.units };
        let spec = TaskSpec {
            id: arrived.task,
            arrived_ns,
            partition: arrived.partition,
            class: arrived.class,
            tenant,
            deadline_ns: arrived.deadline_ns,
            rate_key: arrived.rate_key.as_str().into(),
            unit_cost: arrived.unit_cost,
            slice_units_max: arrived.slice_units_max,
            gang: arrived.gang,
            bytes: arrived.bytes,
            unit_width: arrived.unit_width,
        };
        let mut task = Self {
            spec,
            stage,
            open: vec![all],
            shares: Vec::new(),
            units_left: arrived.units,
            slices_running: 0,
            slices_done: 0,
            service_ns: 0,
            predicted_ns: 0,
            quanta,
            rest_ns: 0,
            since_ns: 0,
            has_begun: false,
            contribution: 0,
        };
        hash.add(all.hash(task.spec.id, ANY_LANE));
        task.refresh(hash);
        task
    }

    pub(crate) fn hash(&self) -> u64 {
        let (stage, until_ns) = match self.stage {
            Stage::Whole => (0, 0),
            Stage::Reserved(until_ns) => (1, until_ns),
            Stage::Aside(until_ns) => (2, until_ns),
            Stage::Shared => (3, 0),
        };
        let fields = [
            self.spec.id,
            i64::from(self.spec.partition),
            self.spec.class as i64,
            xxh3_64(self.spec.tenant.as_bytes()) as i64,
            self.spec.deadline_ns.unwrap_or(-1),
            xxh3_64(self.spec.rate_key.as_bytes()) as i64,
            self.spec.unit_cost,
            self.spec.slice_units_max,
            i64::from(self.spec.gang),
            stage,
            until_ns,
            self.units_left,
            i64::from(self.slices_running),
            self.slices_done,
            self.service_ns,
        ];
        hash_component(Component::Task, fields)
            .wrapping_add(self.bytes_hash())
            .wrapping_add(self.quanta_hash())
            .wrapping_add(self.rest_hash())
            .wrapping_add(self.since_hash())
            .wrapping_add(self.prediction_hash())
            .wrapping_add(self.begun_hash())
            .wrapping_add(self.width_hash())
    }

    /// Hash of the width of a unit; 0 if units run one after the other.
    fn width_hash(&self) -> u64 {
        match self.spec.unit_width {
            0 => 0,
            width => hash_component(Component::TaskWidth, [self.spec.id, i64::from(width)]),
        }
    }

    /// Hash of `has_begun`; 0 if it is false.
    fn begun_hash(&self) -> u64 {
        match self.has_begun {
            false => 0,
            true => hash_component(Component::TaskBegun, [self.spec.id]),
        }
    }

    /// Hash of the predicted time; 0 if there is none.
    fn prediction_hash(&self) -> u64 {
        match self.predicted_ns {
            0 => 0,
            predicted_ns => hash_component(Component::TaskPrediction, [self.spec.id, predicted_ns]),
        }
    }

    /// Hash of `since_ns`; 0 if tasks do not age.
    fn since_hash(&self) -> u64 {
        match self.since_ns {
            0 => 0,
            since_ns => hash_component(Component::TaskSince, [self.spec.id, since_ns]),
        }
    }

    /// Hash of the predicted rest; 0 if the policy does not use it.
    fn rest_hash(&self) -> u64 {
        match self.rest_ns {
            0 => 0,
            rest_ns => hash_component(Component::TaskRest, [self.spec.id, self.spec.arrived_ns, rest_ns]),
        }
    }

    /// Hash of the quanta; 0 if there are none.
    fn quanta_hash(&self) -> u64 {
        match self.quanta {
            0 => 0,
            quanta => hash_component(Component::TaskQuanta, [self.spec.id, quanta]),
        }
    }

    /// Hash of the request's bytes; 0 if there are none, so that states from before bytes were recorded keep their
    /// hashes.
    fn bytes_hash(&self) -> u64 {
        match self.spec.bytes {
            0 => 0,
            bytes => hash_component(Component::TaskBytes, [self.spec.id, bytes]),
        }
    }

    pub(crate) fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    /// Hash of the units that have not begun, computed by walking over them.
    pub(crate) fn units_hash(&self) -> u64 {
        let open = self.open.iter().map(|units| units.hash(self.spec.id, ANY_LANE));
        let shares = self.shares.iter().map(|(lane, units)| units.hash(self.spec.id, *lane));
        open.chain(shares).fold(0, u64::wrapping_add)
    }

    /// Removes the task's components from the state hash.
    pub(crate) fn forget(&self, hash: &mut StateHash) {
        hash.remove(self.contribution);
        hash.remove(self.units_hash());
    }

    /// The task's place in an order.
    pub(crate) fn due(&self, order: Order) -> Due {
        self.due_with(order, self.rest_ns)
    }

    /// The task's place in an order, given the predicted time of its rest.
    pub(crate) fn due_with(&self, order: Order, rest_ns: i64) -> Due {
        let TaskSpec { id, deadline_ns, arrived_ns, .. } = self.spec;
        let due = policy::Due { quanta: self.quanta, arrived_ns, deadline_ns, rest_ns };
        let (quanta, due_ns) = order.key(due);
        Due { quanta, due_ns, task: id }
    }

    /// Cost of `units` of its units.
    pub(crate) fn cost(&self, units: i64) -> i64 {
        units * self.spec.unit_cost
    }

    /// True if some of its units have not begun.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.open.is_empty() || !self.shares.is_empty()
    }

    /// Gives each lane its share; the task is no longer whole.
    pub(crate) fn split(&mut self, shares: &[Share], hash: &mut StateHash) {
        hash.remove(self.units_hash());
        self.open.clear();
        let share = |share: &Share| (share.lane, Units { from: share.from, to: share.to });
        self.shares = shares.iter().map(share).collect();
        self.stage = Stage::Shared;
        hash.add(self.units_hash());
        self.refresh(hash);
    }

    /// Takes up to `units_max` of the lowest open units.
    pub(crate) fn take_open(&mut self, units_max: i64, hash: &mut StateHash) -> Units {
        let first = &mut self.open[0];
        hash.remove(first.hash(self.spec.id, ANY_LANE));
        let taken = Units { from: first.from, to: first.to.min(first.from + units_max) };
        first.from = taken.to;
        if first.count() == 0 {
            self.open.remove(0);
        } else {
            hash.add(first.hash(self.spec.id, ANY_LANE));
        }
        taken
    }

    /// Takes up to `units_max` of the lowest units of a lane's share.
    pub(crate) fn take_share(&mut self, lane: LaneId, units_max: i64, hash: &mut StateHash) -> Units {
        let index = self.share_of(lane).expect("the lane's queue says that it has a share");
        let (_, share) = &mut self.shares[index];
        hash.remove(share.hash(self.spec.id, lane));
        let taken = Units { from: share.from, to: share.to.min(share.from + units_max) };
        share.from = taken.to;
        if share.count() == 0 {
            self.shares.remove(index);
        } else {
            hash.add(share.hash(self.spec.id, lane));
        }
        taken
    }

    /// Takes up to `units_max` of the highest units of a lane's share.
    pub(crate) fn take_end_of_share(&mut self, lane: LaneId, units_max: i64, hash: &mut StateHash) -> Units {
        let index = self.share_of(lane).expect("the lane's queue says that it has a share");
        let (_, share) = &mut self.shares[index];
        hash.remove(share.hash(self.spec.id, lane));
        let taken = Units { from: share.from.max(share.to - units_max), to: share.to };
        share.to = taken.from;
        if share.count() == 0 {
            self.shares.remove(index);
        } else {
            hash.add(share.hash(self.spec.id, lane));
        }
        taken
    }

    pub(crate) fn share_of(&self, lane: LaneId) -> Option<usize> {
        self.shares.binary_search_by_key(&lane, |(owner, _)| *owner).ok()
    }

    /// Opens the remaining units of a lane's share to all lanes.
    pub(crate) fn open_share(&mut self, lane: LaneId, hash: &mut StateHash) {
        let index = self.share_of(lane).expect("the lane's queue says that it has a share");
        let (_, units) = self.shares.remove(index);
        hash.remove(units.hash(self.spec.id, lane));
        self.reopen(units, hash);
    }

    /// Returns units to the open ones, and merges them with adjacent ones.
    pub(crate) fn reopen(&mut self, mut units: Units, hash: &mut StateHash) {
        let at = self.open.partition_point(|other| other.from < units.from);
        if let Some(after) = self.open.get(at).copied().filter(|after| after.from == units.to) {
            hash.remove(after.hash(self.spec.id, ANY_LANE));
            self.open.remove(at);
            units.to = after.to;
        }
        if let Some(before) = at.checked_sub(1).map(|index| self.open[index])
            && before.to == units.from
        {
            hash.remove(before.hash(self.spec.id, ANY_LANE));
            units.from = before.from;
            self.open[at - 1] = units;
        } else {
            self.open.insert(at, units);
        }
        hash.add(units.hash(self.spec.id, ANY_LANE));
    }
}
