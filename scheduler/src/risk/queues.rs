//! Work that waits for one lane only: the tasks, or shares of tasks, assigned to it, and their cost.
//!
//! The module owns the sums, and the view of lanes that push policies have; it must not choose.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Risk;
use super::rates::Rates;
use super::task::Task;
use crate::config::DURATION_NS_MAX;
use crate::lanes::Lane;
use crate::name::Name;
use crate::policy::task::LaneView;
use crate::state_hash::{Component, StateHash, hash_component};

/// Length of the window over which utilisation is measured, in nanoseconds.
const WINDOW_NS: i64 = 1_000_000_000;
const PPM: i128 = 1_000_000;
/// Femtoseconds in a second. A lane's speed is the number of units of cost that it does in a second.
const SECOND_FS: i64 = 1_000_000_000_000_000;

/// Work that waits for one lane only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneQueue {
    tasks: i64,
    /// Cost by rate key.
    costs: BTreeMap<Name, i64>,
}

impl LaneQueue {
    /// Adds a task's share to the lane, which has this width.
    pub(crate) fn add(&mut self, width: i64, task: &Task, units: i64) {
        self.tasks += 1;
        *self.costs.entry(task.spec.rate_key.clone()).or_default() += task.cost_on(width, units);
    }

    /// Removes a task's share from the lane, which has this width.
    pub(crate) fn remove(&mut self, width: i64, task: &Task, units: i64) {
        self.tasks -= 1;
        let cost = self.costs.get_mut(&task.spec.rate_key).expect("what leaves has come");
        *cost -= task.cost_on(width, units);
        if *cost == 0 {
            self.costs.remove(&task.spec.rate_key);
        }
    }

    /// Predicted time of the lane for this work, in nanoseconds.
    pub(super) fn backlog_ns(&self, lane: &Lane, rates: &Rates) -> i64 {
        let of_kind =
            |(key, cost): (&Name, &i64)| rates.expected_ns(lane.class, lane.weight.current, key, |_| *cost);
        self.costs.iter().map(of_kind).fold(0, i64::saturating_add).min(DURATION_NS_MAX)
    }

    /// The lane with this queue, as a push policy sees it for a task.
    pub(crate) fn view(&self, lane: &Lane, task: &Task, risk: &Risk, at_ns: i64) -> LaneView {
        let (rates, busy, key) = (&risk.rates, &risk.lanes.busy[lane.id as usize], &task.spec.rate_key);
        let fs_per_cost = rates.fs_per_cost(lane.class, key);
        let running_ns = (lane.free_ns - at_ns).max(0);
        let cost_on = |class| task.cost_on(risk.widths.of_class(class), task.units_left);
        let task_ns = rates.expected_ns(lane.class, lane.weight.current, key, cost_on);
        LaneView {
            lane: lane.id,
            tasks: self.tasks + i64::from(lane.slice().is_some()),
            backlog_ns: self.backlog_ns(lane, rates).saturating_add(running_ns),
            task_ns,
            is_known: task_ns > 0 && rates.predict(lane.class, key, cost_on(lane.class)).is_some(),
            speed: match fs_per_cost {
                0 => i64::from(lane.weight.current.max(1)),
                fs_per_cost => (SECOND_FS / fs_per_cost).max(1),
            },
            utilization_ppm: busy.utilization_ppm(at_ns),
            forgone: None,
        }
    }
}

/// Time that a lane has worked on slices in the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Busy {
    /// Start of the present window; windows follow each other without a gap.
    begin_ns: i64,
    in_window_ns: i64,
    in_last_ns: i64,
    contribution: u64,
}

impl Busy {
    /// Counts a finished slice with this duration.
    pub(crate) fn add(&mut self, lane: &Lane, at_ns: i64, service_ns: i64, hash: &mut StateHash) {
        let (begin_ns, in_last_ns) = self.window(at_ns);
        let in_window_ns = if begin_ns == self.begin_ns { self.in_window_ns } else { 0 };
        let in_window_ns = in_window_ns.saturating_add(service_ns);
        (self.begin_ns, self.in_window_ns, self.in_last_ns) = (begin_ns, in_window_ns, in_last_ns);
        let now = self.hash(lane);
        hash.replace(&mut self.contribution, now);
    }

    /// Forgets the busy time.
    pub(crate) fn clear(&mut self, hash: &mut StateHash) {
        hash.remove(std::mem::take(self).contribution);
    }

    /// Hash of the busy time; 0 before the first slice.
    pub(crate) fn hash(&self, lane: &Lane) -> u64 {
        match (self.begin_ns, self.in_window_ns, self.in_last_ns) {
            (0, 0, 0) => 0,
            (begin_ns, in_window_ns, in_last_ns) => {
                hash_component(Component::Busy, [i64::from(lane.id), begin_ns, in_window_ns, in_last_ns])
            }
        }
    }

    /// Start of the window that contains a time, and the busy time of the window before it.
    fn window(&self, at_ns: i64) -> (i64, i64) {
        let begin_ns = at_ns - at_ns % WINDOW_NS;
        let in_last_ns = match begin_ns - self.begin_ns {
            0 => self.in_last_ns,
            WINDOW_NS => self.in_window_ns,
            _ => 0,
        };
        (begin_ns, in_last_ns)
    }

    /// Utilisation in the window before the present one, in parts per million.
    pub(super) fn last_window_ppm(&self, at_ns: i64) -> i64 {
        let (_, in_last_ns) = self.window(at_ns);
        (i128::from(in_last_ns) * PPM / i128::from(WINDOW_NS)).clamp(0, PPM) as i64
    }

    /// Utilisation in the last second, in parts per million. The previous window counts with the part of it that lies
    /// in that second.
    fn utilization_ppm(&self, at_ns: i64) -> i64 {
        let (begin_ns, in_last_ns) = self.window(at_ns);
        let in_window_ns = if begin_ns == self.begin_ns { self.in_window_ns } else { 0 };
        let passed_ns = i128::from(at_ns - begin_ns);
        let window_ns = i128::from(WINDOW_NS);
        let of_last = i128::from(in_last_ns) * (window_ns - passed_ns) / window_ns;
        ((i128::from(in_window_ns) + of_last) * PPM / window_ns).clamp(0, PPM) as i64
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::{LaneKind, LaneSpec};

    use super::*;
    use crate::classes::ClassId;

    #[test]
    fn utilisation_is_that_of_the_last_second() {
        let lane = Lane::new(&LaneSpec::new(0, "cpu:0", 1), ClassId::of_kind(LaneKind::Host));
        let (mut busy, mut hash) = (Busy::default(), StateHash::default());
        busy.add(&lane, 10_500_000_000, 400_000_000, &mut hash);
        let at = |at_ns: i64| busy.utilization_ppm(at_ns);
        assert_eq!([at(10_500_000_000), at(11_000_000_000)], [400_000, 400_000]);
        assert_eq!([at(11_250_000_000), at(12_000_000_000), at(99_000_000_000)], [300_000, 0, 0]);
        assert_eq!(hash.value(), busy.hash(&lane));
        busy.add(&lane, 11_500_000_000, i64::MAX, &mut hash);
        assert_eq!(busy.utilization_ppm(11_500_000_000), 1_000_000);
        assert_eq!(hash.value(), busy.hash(&lane));
    }
}
