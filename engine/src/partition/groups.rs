//! The groups of a partition: rows that wait for lanes, rows in flight, and kept states of groups on devices.

use std::collections::VecDeque;

use warptape_events::journal::{GroupArrival, LaneId, Place};
use warptape_kernels::Rows;
use warptape_stages::{GroupInput, GroupQueue, GroupStage};

use crate::lanes::{GroupId, GroupState, Kept};

/// Approximate bytes of a kept batch in addition to its rows.
const KEPT_BATCH_BYTES: usize = 512;

/// All groups of a partition, by number.
pub(super) struct Groups {
    pub(super) queues: Vec<GroupQueue>,
    groups: Vec<Group>,
    /// Bytes of rows that are kept for groups on devices.
    kept_bytes: usize,
}

/// The state and the rows of one group.
struct Group {
    /// State that no lane has received yet; `None` while a lane has it.
    state: Option<GroupState>,
    epoch: i64,
    lane: Option<LaneId>,
    in_flight: VecDeque<InFlight>,
    /// The earlier state and inputs from which the group's state on a device can be computed again. `None` if they
    /// would be too large, or the lane is on the processor.
    kept: Option<Kept>,
}

/// Rows of a group in a batch in flight.
struct InFlight {
    /// Source offset of the first row.
    first: i64,
    /// The rows; `None` if the lane is on the processor, which does not lose them.
    input: Option<GroupInput>,
}

impl Groups {
    /// Makes groups with these states; no lane has them yet.
    pub(super) fn new(stages: Vec<GroupStage>) -> Self {
        let groups = stages.into_iter().map(|stage| Group {
            state: Some(GroupState::Stage(Box::new(stage))),
            epoch: 0,
            lane: None,
            in_flight: VecDeque::new(),
            kept: None,
        });
        let groups: Vec<Group> = groups.collect();
        Self { queues: groups.iter().map(|_| GroupQueue::default()).collect(), groups, kept_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Rows in each group's queue, to be compared with [`Groups::arrivals`].
    pub(super) fn queue_lengths(&self, lengths: &mut Vec<usize>) {
        lengths.clear();
        lengths.extend(self.queues.iter().map(|queue| queue.rows.len()));
    }

    /// Rows that were added to the queues since `lengths` were read.
    pub(super) fn arrivals(&self, lengths: &[usize]) -> Vec<GroupArrival> {
        let grown = self.queues.iter().zip(lengths).enumerate();
        grown.filter_map(|(group, (queue, &before))| arrival(group, queue.rows.len() - before)).collect()
    }

    /// Assigns the group to a lane under a new epoch. Returns the state to install there.
    pub(super) fn place(&mut self, place: &Place, on_device: bool) -> GroupState {
        let group = &mut self.groups[place.group as usize];
        group.epoch = place.epoch;
        group.lane = Some(place.lane);
        let state = group.state.take().expect("the scheduler places a group that no lane has");
        group.kept = on_device.then(|| state.to_kept());
        self.kept_bytes += group.kept_bytes();
        state
    }

    /// Removes rows from the head of a group's queue for a batch.
    pub(super) fn take(&mut self, group: i32, rows: i64, on_device: bool) -> GroupInput {
        let input = self.queues[group as usize].take(rows as usize);
        let first = *input.rows.offset.first().expect("a take has rows");
        let kept = on_device.then(|| input.clone());
        self.groups[group as usize].in_flight.push_back(InFlight { first, input: kept });
        input
    }

    /// Keeps the states at the barriers in a group's oldest batch. Returns true if the batch has the group's epoch.
    pub(super) fn complete(
        &mut self,
        id: GroupId,
        epoch: i64,
        snapshots: &[(i64, Vec<u8>)],
        kept_bytes_max: usize,
    ) -> bool {
        let group = &mut self.groups[id.group as usize];
        if group.epoch != epoch {
            return false;
        }
        let InFlight { input, .. } = group.in_flight.pop_front().expect("a batch in flight comes back once");
        if let Some(input) = input {
            let lane = group.lane;
            self.kept_bytes -= group.kept_bytes();
            group.keep(input, snapshots.last());
            self.kept_bytes += group.kept_bytes();
            if self.kept_bytes > kept_bytes_max {
                // If one group of a lane cannot be computed again, the kept inputs of the others are useless.
                for group in self.groups.iter_mut().filter(|group| group.lane == lane) {
                    self.kept_bytes -= group.kept_bytes();
                    group.kept = None;
                }
            }
        }
        true
    }

    /// Takes a group back from a lane that has run all its batches. Returns true if the lane owned the group in this
    /// epoch.
    pub(super) fn release(&mut self, group: i32, lane: LaneId, epoch: i64, stage: Box<GroupStage>) -> bool {
        let group = &mut self.groups[group as usize];
        if group.lane != Some(lane) || group.epoch != epoch {
            return false;
        }
        debug_assert!(group.in_flight.is_empty(), "a lane gives its batches back in order, and first");
        group.lane = None;
        group.state = Some(GroupState::Stage(stage));
        self.kept_bytes -= group.kept_bytes();
        group.kept = None;
        true
    }

    /// True if the states of all groups of a lane can be computed again.
    pub(super) fn are_kept(&self, lane: LaneId) -> bool {
        self.groups.iter().all(|group| group.lane != Some(lane) || group.kept.is_some())
    }

    /// Takes back the groups of a lost lane, all of which were kept. Rows in flight wait again; returns their number by
    /// group.
    pub(super) fn take_back(&mut self, lane: LaneId) -> Vec<GroupArrival> {
        let mut again = Vec::new();
        for (number, group) in self.groups.iter_mut().enumerate() {
            if group.lane != Some(lane) {
                continue;
            }
            group.lane = None;
            self.kept_bytes -= group.kept_bytes();
            group.state = group.kept.take().map(GroupState::Kept);
            let inputs: Vec<GroupInput> =
                group.in_flight.drain(..).filter_map(|in_flight| in_flight.input).collect();
            let rows = inputs.iter().map(|input| input.rows.len()).sum();
            self.queues[number].put_back(inputs);
            again.extend(arrival(number, rows));
        }
        again
    }

    /// Source offset of the first row that waits or is in flight; `None` if there is no row.
    pub(super) fn first_incomplete(&self) -> Option<i64> {
        let first = |(group, queue): (&Group, &GroupQueue)| {
            let in_flight = group.in_flight.front().map(|in_flight| in_flight.first);
            in_flight.or_else(|| queue.rows.offset.first().copied())
        };
        self.groups.iter().zip(&self.queues).filter_map(first).min()
    }

    /// Rows that wait on the host, not in a batch.
    pub(super) fn waiting_rows(&self) -> usize {
        self.queues.iter().map(|queue| queue.rows.len()).sum()
    }
}

/// The number of rows that arrived for a group; `None` if there are none.
fn arrival(group: usize, rows: usize) -> Option<GroupArrival> {
    let bytes = (rows * Rows::BYTES_PER_ROW) as i64;
    (rows > 0).then_some(GroupArrival { group: group as i32, rows: rows as i64, bytes })
}

impl Group {
    /// Keeps processed rows, with the state at the last barrier among them.
    fn keep(&mut self, input: GroupInput, snapshot: Option<&(i64, Vec<u8>)>) {
        let input = match snapshot {
            Some((barrier, state)) => {
                self.kept = Some(Kept { state: state.clone(), ..Kept::default() });
                input.behind(*barrier)
            }
            None => input,
        };
        if let Some(kept) = &mut self.kept {
            kept.bytes += KEPT_BATCH_BYTES + input.rows.len() * Rows::BYTES_PER_ROW;
            kept.tail.push(input);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.bytes)
    }
}
