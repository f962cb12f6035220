//! Loads: the work of each lane, and sums of it that are kept from step to step.
//!
//! A load counts all groups of a lane, and groups move one at a time. So the row rates of a lane's groups are summed
//! once in a window. The sums are updated while groups move one by one. A larger change drops them; until the window
//! ends, each caller then walks over all groups. The sums follow from the groups, and are neither hashed nor in
//! checkpoints.

use warptape_events::journal::{Imbalance, LaneId};

use super::{Balance, ROWS_UNKNOWN, are_alike, over_window};
use crate::config::DURATION_NS_MAX;
use crate::life::Life;
use crate::partitions::{Group, GroupKey};

/// Sums of the row rates of all lanes' groups. A group that is moving counts on its target lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Rows per second of all measured groups, on a lane or not. Below: the number of these groups.
    rows_known: i128,
    groups_known: i128,
    lanes: Vec<LaneSum>,
    /// Groups that are on no lane and are moving to one, in order.
    on_their_way: Vec<GroupKey>,
}

/// Sums of the row rates of one lane's groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LaneSum {
    /// Rows per second of measured groups.
    rows: i64,
    groups_unknown: i64,
}

/// The lane on which a group counts.
fn lane_of(group: &Group) -> Option<LaneId> {
    group.lane.or(group.work.bound())
}

impl Sums {
    pub(super) fn new(life: &Life) -> Self {
        let lanes = vec![LaneSum::default(); life.lanes.len()];
        let mut sums = Self { rows_known: 0, groups_known: 0, lanes, on_their_way: Vec::new() };
        for partition in life.partitions.values() {
            for (index, group) in partition.active().iter().enumerate() {
                if let Some(rows) = group.work.rows_per_s {
                    sums.rows_known += i128::from(rows);
                    sums.groups_known += 1;
                }
                sums.add(GroupKey { partition: partition.id, group: index as i32 }, group);
            }
        }
        sums
    }

    /// Adds a group to the sums of its lane.
    pub(crate) fn add(&mut self, key: GroupKey, group: &Group) {
        let Some(lane) = lane_of(group) else { return };
        let sum = &mut self.lanes[lane as usize];
        match group.work.rows_per_s {
            Some(rows) => sum.rows += rows,
            None => sum.groups_unknown += 1,
        }
        if group.lane.is_none() {
            let at = self.on_their_way.partition_point(|other| *other < key);
            self.on_their_way.insert(at, key);
        }
    }

    /// Removes a group from the sums of its lane.
    pub(crate) fn remove(&mut self, key: GroupKey, group: &Group) {
        let Some(lane) = lane_of(group) else { return };
        let sum = &mut self.lanes[lane as usize];
        match group.work.rows_per_s {
            Some(rows) => sum.rows -= rows,
            None => sum.groups_unknown -= 1,
        }
        if group.lane.is_none() {
            self.on_their_way.retain(|other| *other != key);
        }
    }

    /// Rows per second assumed for a group without measurements.
    fn rows_unknown(&self) -> i64 {
        if self.rows_known == 0 { ROWS_UNKNOWN } else { (self.rows_known / self.groups_known).max(1) as i64 }
    }
}

/// Work of all lanes at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    ps_per_row: Vec<i64>,
    /// Rows to be done in a second, by lane. A group that is moving counts on its target lane.
    rows: Vec<i64>,
    /// Time for those rows, in nanoseconds, by lane.
    pub(super) load_ns: Vec<i64>,
    /// Rows per second assumed for a group without measurements.
    rows_unknown: i64,
}

impl Loads {
    pub(crate) fn new(life: &Life) -> Self {
        match &life.balance.sums {
            Some(sums) => Self::of_sums(life, sums),
            None => Self::of_sums(life, &Sums::new(life)),
        }
    }

    fn of_sums(life: &Life, sums: &Sums) -> Self {
        let rows_unknown = sums.rows_unknown();
        let of_lane = |sum: &LaneSum| sum.rows + sum.groups_unknown * rows_unknown;
        let mut rows: Vec<i64> = sums.lanes.iter().map(of_lane).collect();
        rows.iter_mut().zip(life.lanes.iter()).for_each(|(rows, lane)| *rows += lane.waiting.rows);
        for key in &sums.on_their_way {
            let group = &life.partitions[&key.partition].groups[key.group as usize];
            if let Some(lane) = lane_of(group) {
                rows[lane as usize] += group.waiting_rows;
            }
        }
        let ps_per_row = life.balance.ps_per_row(&life.lanes);
        let mut loads = Self { ps_per_row, load_ns: vec![0; rows.len()], rows, rows_unknown };
        (0..life.lanes.len() as LaneId).for_each(|lane| loads.refresh(lane));
        loads
    }

    /// Adds a group to a lane, which may differ from its target lane.
    pub(crate) fn place(&mut self, lane: LaneId, group: &Group) {
        match group.work.bound() {
            Some(bound) => self.shift(bound, lane, group),
            None => self.add(lane, group),
        }
    }

    fn add(&mut self, lane: LaneId, group: &Group) {
        self.rows[lane as usize] += self.rows_of(group);
        self.refresh(lane);
    }

    fn refresh(&mut self, lane: LaneId) {
        self.load_ns[lane as usize] = self.ns(lane, self.rows[lane as usize]);
    }

    /// Moves a group from one lane to another.
    pub(crate) fn shift(&mut self, from: LaneId, to: LaneId, group: &Group) {
        self.rows[from as usize] -= self.rows_of(group);
        self.rows[to as usize] += self.rows_of(group);
        self.refresh(from);
        self.refresh(to);
    }

    /// Rows to be done for a group in a second: those that arrive in one, plus those that wait.
    pub(super) fn rows_of(&self, group: &Group) -> i64 {
        group.work.rows_per_s.unwrap_or(self.rows_unknown) + group.waiting_rows
    }

    /// Time that a lane takes for `rows` rows, in nanoseconds.
    pub(super) fn ns(&self, lane: LaneId, rows: i64) -> i64 {
        // A product that does not fit is more than a day anyway.
        rows.saturating_mul(self.ps_per_row[lane as usize]).min(DURATION_NS_MAX * 1_000) / 1_000
    }

    /// Nanoseconds of work per second of a lane: for its other groups, and for this group. `is_there` is true if the
    /// group is on the lane already.
    pub(crate) fn of(&self, lane: LaneId, group: &Group, is_there: bool) -> (i64, i64) {
        let own = self.rows_of(group);
        let others = self.rows[lane as usize] - if is_there { own } else { 0 };
        (self.ns(lane, others), self.ns(lane, own))
    }

    /// True if another lane's load is so much smaller that the two are not alike.
    pub(super) fn is_busier(&self, lane: LaneId) -> bool {
        let least_ns = self.load_ns.iter().min().copied().unwrap_or(0);
        !are_alike(self.load_ns[lane as usize], least_ns)
    }

    /// Gain and cost of moving a group from its lane.
    pub(super) fn judge(&self, life: &Life, group: &Group, from: LaneId, to: LaneId) -> Imbalance {
        let [from_load_ns, to_load_ns] = [from, to].map(|lane| self.load_ns[lane as usize]);
        let rows = self.rows_of(group);
        let group_load_ns = self.ns(to, rows);
        let rest_ns = from_load_ns - self.ns(from, rows);
        let saved_ns = from_load_ns.max(to_load_ns) - rest_ns.max(to_load_ns + group_load_ns);
        let took_ns = life.balance.moves_ns[life.topology.between(from, to) as usize];
        Imbalance {
            to,
            group_load_ns,
            from_load_ns,
            to_load_ns,
            gain_ns: over_window(saved_ns, life),
            cost_ns: Balance::cost_ns(took_ns, life.config.balance_interval_ns),
            windows: group.work.windows,
        }
    }
}
