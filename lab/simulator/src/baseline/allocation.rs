//! Allocations: how classes of lanes divide their time among kinds of tasks, and which kind is furthest behind its
//! share.
//!
//! A linear program gives the share of its time that each class spends on each kind, as in Gavel (Narayanan et al.,
//! OSDI 2020). A free lane takes the kind with the greatest share divided by the time that it has received. Unlike
//! Gavel, this module uses true speeds, jobs do not share a lane, and a lane takes one slice at a time.

use super::tasks::Tasks;
use crate::fleet::Fleet;
use crate::workload::Workload;

/// The shortest round, in nanoseconds.
const ROUND_NS_MIN: f64 = 1e9;

/// The division of each class's time among kinds, and the time given so far.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    /// Target number of lanes that each class gives to each kind, by class and kind.
    time: Vec<Vec<f64>>,
    /// Time that each class gave to each kind, in nanoseconds; halved at the start of each round.
    received_ns: Vec<Vec<f64>>,
    round_ns: i64,
    next_ns: i64,
}

impl Allocation {
    /// Returns the fixed allocation that solves the capacity problem of a mix.
    pub(super) fn of_mix(fleet: &Fleet, mix: &[f64]) -> Self {
        let time = fleet.allocation(mix);
        let received_ns = time.iter().map(|times| vec![0.0; times.len()]).collect();
        Self { time, received_ns, round_ns: i64::MAX, next_ns: i64::MAX }
    }

    /// Returns an allocation that is solved again in every round. A round lasts as long as a task of mean size, but at
    /// least one second.
    pub(super) fn in_rounds(fleet: &Fleet, workload: &Workload) -> Self {
        let mean_s = 1.0 / workload.tasks_by_work();
        let round_ns = (mean_s * 1e9).max(ROUND_NS_MIN) as i64;
        Self { round_ns, next_ns: 0, ..Self::of_mix(fleet, &workload.mix()) }
    }

    /// Begins a round if it is due, and solves for max-min fairness. The speed of a task is relative to its speed if
    /// all lanes are divided equally. This is the capacity problem of a mix. A kind's weight in the mix is its number
    /// of tasks × its speed on all lanes.
    pub(super) fn begin_round(&mut self, at_ns: i64, fleet: &Fleet, workload: &Workload, tasks: &Tasks) {
        if at_ns < self.next_ns || tasks.number() == 0 {
            return;
        }
        self.next_ns = at_ns.saturating_add(self.round_ns);
        let number = tasks.by_kind(workload.kinds.len());
        let speed = |kind: usize| -> f64 {
            fleet.classes.iter().map(|class| class.lanes as f64 * class.speeds[kind]).sum()
        };
        let weights: Vec<f64> =
            number.iter().enumerate().map(|(kind, number)| number * speed(kind)).collect();
        let all: f64 = weights.iter().sum();
        let mix: Vec<f64> = weights.iter().map(|weight| weight / all).collect();
        self.time = fleet.allocation(&mix);
        self.received_ns.iter_mut().flatten().for_each(|received_ns| *received_ns /= 2.0);
    }

    /// Records that a class spent time on a kind.
    pub(super) fn received(&mut self, class: usize, kind: usize, service_ns: i64) {
        self.received_ns[class][kind] += service_ns as f64;
    }

    /// Returns the open kind that is furthest behind its share of a class; the first one if several are. Kinds without
    /// a share come last. `None` if no kind is open.
    pub(super) fn next_kind(&self, class: usize, is_open: impl Fn(usize) -> bool) -> Option<usize> {
        let (time, received_ns) = (&self.time[class], &self.received_ns[class]);
        // The interior-point solver does not quite reach the bounds, so a share below a thousandth of a lane counts as
        // 0.
        let owed = |kind: &usize| match time[*kind] > 1e-3 {
            true => time[*kind] / (received_ns[*kind] + 1.0),
            false => 0.0,
        };
        let open = (0..time.len()).rev().filter(|kind| is_open(*kind));
        open.max_by(|one, other| owed(one).total_cmp(&owed(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_gives_its_time_as_the_problem_has_it() {
        let fleet = Fleet::volta_turing_radeon();
        let mut allocation = Allocation::of_mix(&fleet, &[1.0 / 3.0; 3]);
        // Turing works on machine learning alone, unless none is open; Volta divides its time.
        assert_eq!(allocation.next_kind(1, |_| true), Some(2));
        assert_eq!(allocation.next_kind(1, |kind| kind != 2), Some(0));
        assert_eq!(allocation.next_kind(1, |_| false), None);
        let mut turns = [0.0; 3];
        for _ in 0..10_000 {
            let kind = allocation.next_kind(0, |_| true).unwrap();
            allocation.received(0, kind, 1_000_000);
            turns[kind] += 1.0 / 10_000.0;
        }
        for (kind, turns) in turns.iter().enumerate() {
            let share = allocation.time[0][kind] / 8.0;
            assert!((turns - share).abs() < 1e-3, "kind {kind}: {turns}, {share}");
        }
    }
}
