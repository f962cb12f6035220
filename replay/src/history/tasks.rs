//! Open risk tasks and their slices.

use std::collections::BTreeMap;

use warptape_schemas::journal::{LaneId, PartitionId, Reject, RunSlice, SliceDone, TaskArrived, TaskId};

use super::items::{Item, Round, RoundEnd, Slice};
use crate::moment::Moment;

/// Greatest number of open rounds; schedulers admit fewer tasks.
const OPEN_ROUNDS_MAX: usize = 1 << 20;

/// Greatest number of open slices on a lane.
const SLICES_MAX: usize = 2;

/// Open rounds and slices.
#[derive(Default)]
pub(super) struct Tasks {
    rounds: BTreeMap<TaskId, Round>,
    /// Open slices by lane. A lane works on one slice; it may have overtaken another open one.
    slices: BTreeMap<LaneId, Vec<Slice>>,
}

impl Tasks {
    /// Begins a round of a task.
    pub(super) fn arrive(&mut self, at: Moment, arrived: &TaskArrived, items: &mut Vec<Item>) {
        let round = Round {
            at,
            arrived: arrived.clone(),
            first_slice: None,
            slices: 0,
            service_ns: 0,
            end: None,
            refused: None,
        };
        items.extend(self.rounds.insert(arrived.task, round).map(Item::Round));
        if self.rounds.len() > OPEN_ROUNDS_MAX {
            items.extend(self.rounds.pop_first().map(|(_, round)| Item::Round(round)));
        }
    }

    /// Ends the round of a task.
    pub(super) fn end(&mut self, at: Moment, task: TaskId, end: RoundEnd, items: &mut Vec<Item>) {
        let round = self.rounds.remove(&task);
        items.extend(round.map(|round| Item::Round(Round { end: Some((at, end)), ..round })));
    }

    /// Ends the round of a task that is refused.
    pub(super) fn reject(&mut self, at: Moment, reject: &Reject, items: &mut Vec<Item>) {
        if let Some(round) = self.rounds.get_mut(&reject.task) {
            round.refused = Some(reject.reason);
        }
        self.end(at, reject.task, RoundEnd::Rejected, items);
    }

    /// Drops the tasks of a partition.
    pub(super) fn revoke(&mut self, at: Moment, partition: PartitionId, items: &mut Vec<Item>) {
        let is_of = |round: &Round| round.arrived.partition == partition;
        let tasks = self.rounds.iter().filter(|(_, round)| is_of(round)).map(|(task, _)| *task);
        for task in tasks.collect::<Vec<_>>() {
            self.end(at, task, RoundEnd::Dropped, items);
        }
    }

    /// True if a lane is working on a slice.
    pub(super) fn has_open_slices(&self) -> bool {
        !self.slices.is_empty()
    }

    /// Begins a slice on a lane.
    pub(super) fn run_slice(&mut self, at: Moment, run: &RunSlice, items: &mut Vec<Item>) {
        if let Some(round) = self.rounds.get_mut(&run.task) {
            round.first_slice.get_or_insert(at);
            round.slices += 1;
        }
        let of_lane = self.slices.entry(run.lane).or_default();
        // A trimmed journal may lack the end of earlier slices.
        let lost = of_lane.len().saturating_sub(SLICES_MAX - 1);
        items.extend(of_lane.drain(..lost).map(Item::Slice));
        of_lane.push(Slice { at, run: run.clone(), done: None });
    }

    /// Ends a slice on a lane.
    pub(super) fn slice_done(&mut self, at: Moment, done: &SliceDone, items: &mut Vec<Item>) {
        let Some(of_lane) = self.slices.get_mut(&done.lane) else { return };
        if let Some(index) = of_lane.iter().position(|slice| slice.run.slice == done.slice) {
            let slice = Slice { done: Some((at, done.service_ns)), ..of_lane.remove(index) };
            if let Some(round) = self.rounds.get_mut(&slice.run.task) {
                round.service_ns = round.service_ns.saturating_add(done.service_ns);
            }
            items.push(Item::Slice(slice));
        }
    }

    /// Ends the slices of a lost lane, without results.
    pub(super) fn lose_lane(&mut self, lane: LaneId, items: &mut Vec<Item>) {
        items.extend(self.slices.remove(&lane).into_iter().flatten().map(Item::Slice));
    }

    /// Ends all open items at the end of the life or the history.
    pub(super) fn finish(&mut self, items: &mut Vec<Item>) {
        items.extend(std::mem::take(&mut self.rounds).into_values().map(Item::Round));
        items.extend(std::mem::take(&mut self.slices).into_values().flatten().map(Item::Slice));
    }
}
