//! Lanes, each with its batches and slices in flight, its waiting rows and its measured speed.
//!
//! It owns credit accounting and service-time prediction; it must not know why a batch is released.

mod all;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, LaneKind, LaneSpec, LaneTelemetry, SchedulerConfig, TaskId};

use crate::classes::ClassId;
use crate::config::{DURATION_NS_MAX, SERVICE_PS_PER_ROW_MAX};
use crate::partitions::GroupKey;
use crate::risk::Units;
use crate::service::Service;
use crate::state_hash::{Component, StateHash, hash_component};
pub(crate) use all::Lanes;

/// Share by which a new sample moves the estimate of service time: 1/8.
const SERVICE_SMOOTHING: i64 = 8;

/// One lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Lane {
    pub(crate) id: LaneId,
    pub(crate) kind: LaneKind,
    pub(crate) class: ClassId,
    pub(crate) weight: Weight,
    pub(crate) ready: bool,
    pub(crate) service: Service,
    pub(crate) groups_placed: i32,
    pub(crate) waiting: Waiting,
    pub(crate) in_flight: BatchesInFlight,
    /// Smoothed service time of a row; 0 before the first completion since the lane became ready.
    pub(crate) service_ps_per_row: i64,
    /// Predicted end of all work in flight. It is in the past if no work is in flight, or if the lane is late.
    pub(crate) free_ns: i64,
    /// Number below which batches are void: they were in flight when the lane was lost, or are done.
    pub(crate) void_below: i64,
    pub(crate) contribution: u64,
    slice: SliceSlot,
    /// A slice that a critical slice has passed. It continues, and returns to the slot once the critical slice is done.
    /// Checkpoints store it after the other fields of the state.
    #[serde(skip)]
    passed: Option<Slice>,
}

/// Weight of a lane: its share of groups relative to other lanes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Weight {
    /// The part of the weight that is in effect.
    pub(crate) current: i32,
    /// The configured weight, or the weight that an operator has set.
    pub(crate) full: i32,
    /// Percentage of the full weight that is withheld.
    pub(crate) withheld_percent: i32,
}

/// Rows that wait on the host for a lane.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) rows: i64,
    /// Groups with waiting rows, sorted by their oldest row.
    pub(crate) queues: VecDeque<QueueHead>,
}

/// Batches that are dispatched to a lane and not completed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct BatchesInFlight {
    /// The batches, in order of dispatch.
    pub(crate) batches: VecDeque<InFlight>,
    pub(crate) rows: i64,
    pub(crate) bytes: i64,
}

/// The slot for the slice that a lane works on; it has only one.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct SliceSlot {
    running: Option<Slice>,
    /// Number below which slices are void: the lane was lost since they began.
    void_below: i64,
    contribution: u64,
}

/// A group with waiting rows, as an entry in its lane's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct QueueHead {
    pub(crate) oldest_ns: i64,
    pub(crate) key: GroupKey,
}

/// One batch in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InFlight {
    pub(crate) batch: i64,
    pub(crate) rows: i64,
    pub(crate) bytes: i64,
}

/// The slice of a risk task that a lane works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slice {
    pub(crate) slice: i64,
    /// Task of the slice; `None` once the task is forgotten, so that the result does not count.
    pub(crate) task: Option<TaskId>,
    pub(crate) units: Units,
    /// Service charged to the tenant in advance, divided by its weight, in nanoseconds.
    pub(crate) charged_ns: i64,
    /// Predicted end.
    pub(crate) finish_ns: i64,
    /// Predicted duration; 0 if slices are not predicted by size.
    pub(crate) predicted_ns: i64,
}

impl InFlight {
    pub(crate) fn hash(&self, lane: LaneId) -> u64 {
        hash_component(Component::InFlight, [i64::from(lane), self.batch, self.rows, self.bytes])
    }
}

impl Lane {
    pub(crate) fn new(spec: &LaneSpec, class: ClassId) -> Self {
        Self {
            id: spec.lane,
            kind: spec.kind(),
            class,
            weight: Weight { current: spec.weight, full: spec.weight, withheld_percent: 0 },
            ready: true,
            service: Service::default(),
            groups_placed: 0,
            waiting: Waiting::default(),
            in_flight: BatchesInFlight::default(),
            service_ps_per_row: 0,
            free_ns: 0,
            void_below: 0,
            contribution: 0,
            slice: SliceSlot::default(),
            passed: None,
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        hash_component(
            Component::Lane,
            [
                i64::from(self.id),
                i64::from(self.weight.current),
                i64::from(self.ready),
                i64::from(self.groups_placed),
                self.waiting.rows,
                self.service_ps_per_row,
                self.free_ns,
                self.void_below,
            ],
        )
        .wrapping_add(self.class.hash(self.id))
        .wrapping_add(match self.weight.withheld_percent {
            0 => 0,
            withheld => hash_component(
                Component::LaneWeight,
                [i64::from(self.id), i64::from(self.weight.full), i64::from(withheld)],
            ),
        })
    }

    /// Updates the state hash after a change of the lane.
    pub(crate) fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    /// Hash of the lane's slices; 0 before its first slice.
    pub(crate) fn slice_hash(&self) -> u64 {
        let (lane, void_below) = (i64::from(self.id), self.slice.void_below);
        let passed =
            self.passed.as_ref().map_or(0, |passed| self.hash_of_slice(Component::PassedSlice, passed));
        let running = match &self.slice.running {
            None if void_below == 0 => 0,
            None => hash_component(Component::Slice, [lane, void_below]),
            Some(running) => self.hash_of_slice(Component::Slice, running),
        };
        running.wrapping_add(passed)
    }

    fn hash_of_slice(&self, component: Component, of: &Slice) -> u64 {
        let &Slice { slice, task, units, charged_ns, finish_ns, predicted_ns } = of;
        let (lane, void_below, task) = (i64::from(self.id), self.slice.void_below, task.unwrap_or(-1));
        let fields = [lane, void_below, slice, task, units.from, units.to, charged_ns, finish_ns];
        let prediction = match predicted_ns {
            0 => 0,
            predicted_ns => hash_component(Component::SlicePrediction, [lane, slice, predicted_ns]),
        };
        hash_component(component, fields).wrapping_add(prediction)
    }

    fn refresh_slice(&mut self, hash: &mut StateHash) {
        let now = self.slice_hash();
        hash.replace(&mut self.slice.contribution, now);
    }

    /// True if no batch is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.batches.is_empty()
    }

    /// True if the lane is ready and has no work. Rows that wait for an idle lane are dispatched before this is called.
    pub(crate) fn is_free(&self) -> bool {
        self.ready && self.is_idle() && self.waiting.queues.is_empty() && self.slice.running.is_none()
    }

    /// The slice that the lane works on.
    pub(crate) fn slice(&self) -> Option<Slice> {
        self.slice.running
    }

    /// The slice that the running one has passed.
    pub(crate) fn passed(&self) -> Option<Slice> {
        self.passed
    }

    /// The running slice and the one that it has passed.
    pub(crate) fn slices(&self) -> impl Iterator<Item = Slice> {
        self.slice.running.into_iter().chain(self.passed)
    }

    /// Restores the passed slice from a checkpoint.
    pub(crate) fn restore_passed(&mut self, passed: Slice) {
        self.passed = Some(passed);
        self.slice.contribution = self.slice_hash();
    }

    /// True if the lane has batches in flight or waiting rows.
    pub(crate) fn has_ticks(&self) -> bool {
        !self.is_idle() || !self.waiting.queues.is_empty()
    }

    /// True if the result of a slice no longer counts, because the lane was lost since it began.
    pub(crate) fn is_void_slice(&self, slice: i64) -> bool {
        (0..self.slice.void_below).contains(&slice)
    }

    /// True if the lane is ready and has batches in flight or waiting rows, but no slice.
    pub(crate) fn has_ticks_alone(&self) -> bool {
        self.ready && self.slice.running.is_none() && !self.is_free()
    }

    /// True if the lane is ready and in full service.
    pub(crate) fn is_in_service(&self) -> bool {
        self.ready && self.service.is_full()
    }

    /// Books a slice with its predicted duration, on a lane that has no slice or one that this slice passes.
    pub(crate) fn start_slice(&mut self, slice: Slice, predicted_ns: i64, hash: &mut StateHash) {
        debug_assert!(self.ready && self.passed.is_none(), "a slice passes one other");
        self.free_ns = match self.is_free() {
            true => slice.finish_ns,
            // The prediction assumes that the slice waits for the batches, although it runs concurrently.
            false => self.free_ns.max(slice.finish_ns - predicted_ns).saturating_add(predicted_ns),
        };
        self.passed = self.slice.running.replace(slice);
        self.refresh_slice(hash);
        self.refresh(hash);
    }

    /// Books a slice as done and returns it.
    pub(crate) fn end_slice(&mut self, at_ns: i64, number: i64, hash: &mut StateHash) -> Slice {
        let passed = self.passed.take();
        let slice = match passed.filter(|passed| passed.slice == number) {
            Some(passed) => passed,
            None => std::mem::replace(&mut self.slice.running, passed).expect("admission found the slice"),
        };
        let begin_ns = self.slice.running.map_or(at_ns, |slice| slice.finish_ns.max(at_ns));
        self.free_ns = begin_ns + self.predicted_ns(self.in_flight.rows);
        self.refresh_slice(hash);
        self.refresh(hash);
        slice
    }

    /// Detaches the slices of a forgotten task from it, so that their results do not count.
    pub(crate) fn void_slice(&mut self, task: TaskId, hash: &mut StateHash) {
        let of_task =
            self.slice.running.iter_mut().chain(&mut self.passed).filter(|slice| slice.task == Some(task));
        of_task.for_each(|slice| slice.task = None);
        self.refresh_slice(hash);
    }

    pub(crate) fn telemetry(&self) -> LaneTelemetry {
        LaneTelemetry {
            in_flight_rows: self.in_flight.rows,
            in_flight_bytes: self.in_flight.bytes,
            in_flight_batches: self.in_flight.batches.len() as i32,
            service_ps_per_row: self.service_ps_per_row,
        }
    }

    /// Rows that the lane may still get; 0 if it may get no batch at all.
    pub(crate) fn rows_left(&self, config: &SchedulerConfig) -> i64 {
        if !self.ready || self.in_flight.batches.len() >= config.lane_batches_max as usize {
            return 0;
        }
        (config.lane_credit_rows - self.in_flight.rows).max(0)
    }

    /// Bytes that the lane may still get.
    pub(crate) fn bytes_left(&self, config: &SchedulerConfig) -> i64 {
        (config.lane_credit_bytes - self.in_flight.bytes).max(0)
    }

    /// Predicted time for `rows` rows; 0 while the lane's speed is unknown.
    pub(crate) fn predicted_ns(&self, rows: i64) -> i64 {
        (rows.saturating_mul(self.service_ps_per_row) / 1_000).min(DURATION_NS_MAX)
    }

    /// Puts a group into the lane's order.
    pub(crate) fn enqueue(&mut self, head: QueueHead) {
        // Rows that have just arrived come last in the order.
        let is_last = self.waiting.queues.back().is_none_or(|last| *last < head);
        let at = match is_last {
            true => self.waiting.queues.len(),
            false => self.waiting.queues.partition_point(|other| *other < head),
        };
        debug_assert!(self.waiting.queues.get(at) != Some(&head), "a group stands once in its lane's order");
        self.waiting.queues.insert(at, head);
    }

    /// Takes a group out of the lane's order.
    pub(crate) fn dequeue(&mut self, head: QueueHead) {
        let at = self.waiting.queues.partition_point(|other| *other < head);
        let removed = self.waiting.queues.remove(at);
        // Every group with waiting rows and a lane is in that lane's order, under its oldest arrival.
        assert_eq!(removed, Some(head), "a group with waiting rows is missing in its lane's order");
    }

    /// Books a batch as in flight; returns its predicted end.
    pub(crate) fn dispatch(&mut self, at_ns: i64, batch: InFlight, hash: &mut StateHash) -> i64 {
        self.free_ns = self.free_ns.max(at_ns) + self.predicted_ns(batch.rows);
        // The bound keeps the sum of predictions within i64, however many batches are queued.
        self.free_ns = self.free_ns.min(at_ns + DURATION_NS_MAX);
        self.in_flight.rows += batch.rows;
        self.in_flight.bytes += batch.bytes;
        hash.add(batch.hash(self.id));
        self.in_flight.batches.push_back(batch);
        self.refresh(hash);
        self.free_ns
    }

    /// Books the oldest batch in flight as done, learns from its service time and returns its rows.
    pub(crate) fn complete(&mut self, at_ns: i64, service_ns: i64, hash: &mut StateHash) -> i64 {
        let done =
            self.in_flight.batches.pop_front().expect("admission found the batch at the front of the queue");
        hash.remove(done.hash(self.id));
        self.in_flight.rows -= done.rows;
        self.in_flight.bytes -= done.bytes;
        let sample = (service_ns.saturating_mul(1_000) / done.rows).clamp(1, SERVICE_PS_PER_ROW_MAX);
        self.service_ps_per_row = match self.service_ps_per_row {
            0 => sample,
            known => known + (sample - known) / SERVICE_SMOOTHING,
        };
        // The prediction assumes that batches wait for a slice; at most they share the processor with it.
        let begin_ns = self.slice.running.map_or(at_ns, |slice| slice.finish_ns.max(at_ns));
        self.free_ns = begin_ns + self.predicted_ns(self.in_flight.rows);
        self.refresh(hash);
        done.rows
    }

    /// Marks the lane lost and its work in flight void. The caller has already taken away its groups and its units of
    /// tasks.
    pub(crate) fn lose(&mut self, batch_next: i64, slice_next: i64, hash: &mut StateHash) {
        debug_assert!(self.groups_placed == 0 && self.waiting.queues.is_empty(), "a lost lane owns nothing");
        for batch in self.in_flight.batches.drain(..) {
            hash.remove(batch.hash(self.id));
        }
        self.in_flight.rows = 0;
        self.in_flight.bytes = 0;
        self.service_ps_per_row = 0;
        self.free_ns = 0;
        self.ready = false;
        self.void_below = batch_next;
        (self.slice.running, self.passed) = (None, None);
        self.slice.void_below = slice_next;
        self.refresh_slice(hash);
        self.refresh(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane() -> Lane {
        Lane::new(&LaneSpec::new(0, "cpu:0", 1), ClassId::of_kind(LaneKind::Host))
    }

    /// Runs batches of (rows, service time) one after the other, and compares the estimate after each.
    fn check_estimate(batches: &[(i64, i64)], estimates_ps: &[i64]) {
        let mut hash = StateHash::default();
        let mut lane = lane();
        let mut found = Vec::new();
        for (number, &(rows, service_ns)) in batches.iter().enumerate() {
            lane.dispatch(0, InFlight { batch: number as i64, rows, bytes: 0 }, &mut hash);
            lane.complete(0, service_ns, &mut hash);
            found.push(lane.service_ps_per_row);
        }
        assert_eq!(found, estimates_ps);
    }

    #[test]
    fn service_time_is_smoothed() {
        check_estimate(&[(10, 1_000)], &[100_000]);
        check_estimate(&[(10, 1_000), (10, 1_800), (10, 1_800)], &[100_000, 110_000, 118_750]);
        check_estimate(&[(10, 1_000), (10, 200)], &[100_000, 90_000]);
        // A service time of zero counts as very short, not as unknown; an excessive one is limited.
        check_estimate(&[(10, 0), (1, i64::MAX)], &[1, 1 + (SERVICE_PS_PER_ROW_MAX - 1) / 8]);
    }

    #[test]
    fn the_end_of_work_is_predicted_from_rows_in_flight() {
        let mut hash = StateHash::default();
        let mut lane = lane();
        lane.dispatch(0, InFlight { batch: 0, rows: 10, bytes: 0 }, &mut hash);
        lane.complete(1_000, 1_000, &mut hash);
        assert_eq!(lane.free_ns, 1_000, "nothing in flight");
        assert_eq!(lane.dispatch(5_000, InFlight { batch: 1, rows: 10, bytes: 0 }, &mut hash), 6_000);
        assert_eq!(lane.dispatch(5_500, InFlight { batch: 2, rows: 5, bytes: 0 }, &mut hash), 6_500);
        lane.complete(6_400, 1_000, &mut hash);
        assert_eq!(lane.free_ns, 6_900, "the second batch starts when the first is done");
    }
}
