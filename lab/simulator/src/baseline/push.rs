//! Baselines that push tasks: each task joins the queue of one lane.

use warptape_events::journal::TaskId;

use super::{Baseline, Rule};
use crate::fleet::Fleet;

impl Baseline<'_> {
    /// Returns the ready lane for a task; `None` if there is none, or if the rule lets lanes pull tasks.
    pub(super) fn choose_lane(&self, task: TaskId, ready: &[usize]) -> Option<usize> {
        let kind = self.tasks.kind(task);
        match &self.rule {
            Rule::BlindQueues(draws) => {
                // If a task's lane is lost, a new one is drawn among the ready lanes.
                let drawn = (draws.uniform(task as u64) * ready.len() as f64) as usize;
                ready.get(drawn).copied()
            }
            Rule::StaticAffinity(table) => {
                let is_own = |lane: &&usize| self.lanes[**lane].class == table[kind];
                // A task has no lane while all lanes of its class are lost.
                ready.iter().filter(is_own).min_by_key(|lane| self.lanes[**lane].queue.len()).copied()
            }
            Rule::CompletionByMeans | Rule::CompletionBySizes => {
                let done_s = |lane: usize| self.backlog_s(lane) + self.takes_s(lane, task);
                ready.iter().copied().min_by(|one, other| done_s(*one).total_cmp(&done_s(*other)))
            }
            Rule::Bidding(agents) => self.lowest_bidder(agents, kind, self.tasks.rest(task), ready),
            Rule::MaxMin(_) | Rule::LpAllocation(_) | Rule::ShortestRest(_) => None,
        }
    }

    /// Returns the time that a lane needs for its queue, in seconds.
    fn backlog_s(&self, lane: usize) -> f64 {
        self.lanes[lane].queue.iter().map(|task| self.takes_s(lane, *task)).sum()
    }

    /// Returns the time that a lane needs for the rest of a task, in seconds. The task's size is its true one under
    /// `CompletionBySizes`, and the mean of its kind otherwise.
    fn takes_s(&self, lane: usize, task: TaskId) -> f64 {
        let kind = self.tasks.kind(task);
        let work_s = match self.rule {
            Rule::CompletionBySizes => self.tasks.rest(task) as f64 / self.workload.units_per_s,
            _ => self.workload.kinds[kind].mean_s,
        };
        work_s / self.fleet.classes[self.lanes[lane].class].speeds[kind]
    }
}

/// Greatest number of tables tried.
const TABLES_MAX: usize = 1 << 16;

/// Returns a class for each kind, from the table with the greatest throughput for the mix. If there are more than
/// `TABLES_MAX` tables, each kind gets the class that is fastest at it.
pub(super) fn best_table(fleet: &Fleet, mix: &[f64]) -> Vec<usize> {
    let classes = fleet.classes.len();
    let fastest = |kind: usize| {
        let speed = |class: &usize| fleet.classes[*class].speeds[kind];
        (0..classes).rev().max_by(|one, other| speed(one).total_cmp(&speed(other))).unwrap_or(0)
    };
    let tables = (0..mix.len()).try_fold(1usize, |tables, _| tables.checked_mul(classes));
    let Some(tables) = tables.filter(|tables| *tables <= TABLES_MAX) else {
        return (0..mix.len()).map(fastest).collect();
    };
    let table = |number: usize| -> Vec<usize> {
        let mut rest = number;
        let digit = |_: usize| {
            let class = rest % classes;
            rest /= classes;
            class
        };
        (0..mix.len()).map(digit).collect()
    };
    let keeps_up = |table: &[usize]| {
        let of_class = |class: usize| {
            let kinds = (0..mix.len()).filter(|kind| table[*kind] == class);
            let needs: f64 = kinds.map(|kind| mix[kind] / fleet.classes[class].speeds[kind]).sum();
            // A class without a kind does not limit the throughput.
            if needs > 0.0 { fleet.classes[class].lanes as f64 / needs } else { f64::INFINITY }
        };
        (0..classes).map(of_class).fold(f64::INFINITY, f64::min)
    };
    let all = (0..tables).rev().map(table);
    all.max_by(|one, other| keeps_up(one).total_cmp(&keeps_up(other))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_table_keeps_up_with_most() {
        // Data processing on Radeon and the rest on Volta: 4 × 0.97 for a third of the work is less than 8 for two
        // thirds.
        assert_eq!(best_table(&Fleet::volta_turing_radeon(), &[1.0 / 3.0; 3]), [0, 2, 0]);
    }
}
