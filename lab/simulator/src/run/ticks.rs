//! Ticks in a run: rows arrive, wait for their groups' lanes, leave in batches, and share lanes with slices.
//!
//! ```text
//!   Source ──► Arrived ──► groups' queues ──► Dispatch ──► SharedLane ──► Completed: from when a row came to now
//!                 ▲             │ Pause: what comes waits at the source
//!                 └── Resume ◄──┘
//! ```

use std::collections::VecDeque;

use warptape_events::journal::*;

use super::{BEGIN_NS, Event, Run, seconds};
use crate::fleet::Fleet;
use crate::outcome::Ticked;
use crate::rows::{ROW_BYTES, Rows};
use crate::shared::{Ends, Order, SharedLane};
use crate::ticks::{Source, Ticks};

/// Time from a lane's release of a group until the scheduler learns of it, in nanoseconds.
const GIVE_BACK_NS: i64 = 1_000_000;
/// Row counts of the batches that measure a lane at its start, as in production.
const MEASURED_ROWS: [i64; 8] = [2, 8, 32, 128, 512, 2_048, 8_192, 32_768];

/// The state of the ticks of a run.
#[derive(Debug)]
pub(super) struct TickRun<'a> {
    ticks: &'a Ticks,
    source: Source<'a>,
    rows: Rows,
    lanes: Vec<SharedLane>,
    /// Time that the current slice of each lane has taken so far, in seconds.
    slices_s: Vec<f64>,
    partitions: Vec<Partition>,
    done: Ticked,
}

#[derive(Clone, Debug, Default)]
struct Partition {
    next_offset: i64,
    /// Time at which the partition was paused; `None` while it is read.
    paused_ns: Option<i64>,
    /// Rows that arrived at the source during the pause.
    held: VecDeque<(i64, Vec<GroupArrival>)>,
}

impl<'a> TickRun<'a> {
    pub(super) fn new(ticks: &'a Ticks, fleet: &Fleet, seed: u64) -> Self {
        Self {
            ticks,
            source: Source::new(ticks, seed),
            rows: Rows::new(ticks.partitions, ticks.groups),
            lanes: (0..fleet.lanes() as LaneId).map(SharedLane::new).collect(),
            slices_s: vec![0.0; fleet.lanes()],
            partitions: vec![Partition::default(); ticks.partitions],
            done: Ticked { busy_s: vec![0.0; fleet.classes.len()], ..Ticked::default() },
        }
    }

    /// True if rows have arrived that are not done.
    pub(super) fn is_open(&self) -> bool {
        self.rows.are_open()
    }

    /// Starts measuring ticks that arrive at or after a time.
    pub(super) fn measure_from(&mut self, at_ns: i64) {
        self.rows.measure_from(at_ns);
    }

    /// Returns the time that a lane's slice took, in seconds, and resets it.
    pub(super) fn slice_s(&mut self, lane: LaneId) -> f64 {
        std::mem::take(&mut self.slices_s[lane as usize])
    }
}

impl Run<'_> {
    /// Assigns the partitions, sends the scheduler measurements of lanes, and schedules the first ticks.
    pub(super) fn begin_ticks(&mut self) {
        let Some(TickRun { ticks, .. }) = self.ticks else { return };
        for partition in 0..ticks.partitions as PartitionId {
            let groups = ticks.groups as i32;
            let assigned = PartitionAssigned {
                partition,
                groups,
                committed_offset: 0,
                snapshot_offset: 0,
                ..PartitionAssigned::default()
            };
            self.step(BEGIN_NS, &Input::PartitionAssigned(assigned));
        }
        let fleet = self.model.fleet;
        let has = |kind| fleet.classes.iter().any(|class| class.device == kind);
        if has(LaneKind::Host) && has(LaneKind::Device) {
            for lane in 0..fleet.lanes() {
                let speed = fleet.tick_speed(fleet.class_of(lane));
                let point = |rows| ServicePoint { rows, service_ns: speed.batch_ns(rows) };
                let points = MEASURED_ROWS.map(point).to_vec();
                self.step(BEGIN_NS, &Input::Measured(Measured { lane: lane as LaneId, points }));
            }
        }
        self.events.push(BEGIN_NS + ticks.interval_ns, Event::TicksCome);
    }

    /// Reads the ticks that arrived since the last poll of the source. Ticks end when the last task has arrived.
    pub(super) fn ticks_come(&mut self, at_ns: i64) {
        let Some(TickRun { ticks, source, rows, partitions, .. }) = &mut self.ticks else { return };
        if self.tasks.arrived == self.model.arrivals.len() {
            return;
        }
        let interval_ns = ticks.interval_ns;
        // On average, the ticks arrived in the middle of the interval.
        let since_ns = at_ns - interval_ns / 2;
        let come = source.next(at_ns - BEGIN_NS - interval_ns);
        let mut arrived = Vec::new();
        for (partition, come) in come.chunks(ticks.groups).enumerate() {
            let group =
                |(group, rows): (i32, &i64)| GroupArrival { group, rows: *rows, bytes: rows * ROW_BYTES };
            let groups: Vec<_> = (0..).zip(come).filter(|(_, rows)| **rows > 0).map(group).collect();
            rows.come(come.iter().sum());
            match &mut partitions[partition] {
                _ if groups.is_empty() => {}
                Partition { paused_ns: Some(_), held, .. } => held.push_back((since_ns, groups)),
                Partition { .. } => arrived.push((partition as PartitionId, groups)),
            }
        }
        self.events.push(at_ns + interval_ns, Event::TicksCome);
        for (partition, groups) in arrived {
            self.arrive_rows(at_ns, since_ns, partition, groups);
        }
    }

    /// Passes rows that arrived at the source at `since_ns` to the scheduler.
    fn arrive_rows(&mut self, at_ns: i64, since_ns: i64, partition: PartitionId, groups: Vec<GroupArrival>) {
        let Some(TickRun { rows, partitions, .. }) = &mut self.ticks else { return };
        let next_offset = &mut partitions[partition as usize].next_offset;
        *next_offset += groups.iter().map(|group| group.rows).sum::<i64>();
        let arrived = Arrived { partition, next_offset: *next_offset, groups };
        rows.arrive(&arrived, since_ns);
        self.step(at_ns, &Input::Arrived(arrived));
    }

    /// Pauses a partition.
    pub(super) fn pause(&mut self, at_ns: i64, partition: PartitionId) {
        if let Some(ticks) = &mut self.ticks {
            ticks.partitions[partition as usize].paused_ns = Some(at_ns);
        }
    }

    /// Resumes a partition, and passes on the held rows until they cause the next pause.
    pub(super) fn resume(&mut self, at_ns: i64, partition: PartitionId) {
        let Some(ticks) = &mut self.ticks else { return };
        let paused_ns = ticks.partitions[partition as usize].paused_ns.take();
        ticks.done.paused_s += seconds(at_ns - paused_ns.unwrap_or(at_ns));
        loop {
            let Some(TickRun { partitions, .. }) = &mut self.ticks else { return };
            let Partition { paused_ns: None, held, .. } = &mut partitions[partition as usize] else { return };
            let Some((since_ns, groups)) = held.pop_front() else { return };
            self.arrive_rows(at_ns, since_ns, partition, groups);
        }
    }

    /// Gives a batch to a lane.
    pub(super) fn dispatch(&mut self, at_ns: i64, dispatch: &Dispatch) {
        let speed = self.model.fleet.tick_speed(self.lanes.class(dispatch.lane));
        let Some(ticks) = &mut self.ticks else { return };
        ticks.rows.dispatch(dispatch);
        ticks.done.batches += 1;
        let order = Order::Batch { batch: dispatch.batch, left_ns: speed.batch_ns(dispatch.rows) };
        self.change(at_ns, dispatch.lane, |lane| lane.follow(order));
    }

    /// Makes a lane release a group after the batches that it already has.
    pub(super) fn release(&mut self, at_ns: i64, release: &Release) {
        let &Release { partition, group, lane, epoch, .. } = release;
        let order = Order::GiveBack(Released { partition, group, lane, epoch });
        self.change(at_ns, lane, |lane| lane.follow(order));
    }

    /// Begins a slice that takes `full_ns` if the lane does nothing else.
    pub(super) fn begin_slice(&mut self, at_ns: i64, lane: LaneId, full_ns: i64, is_critical: bool) {
        self.change(at_ns, lane, |lane| lane.begin_slice(full_ns, is_critical));
    }

    /// Advances a lane to the current time, changes it, and schedules its next end.
    fn change<T>(
        &mut self,
        at_ns: i64,
        number: LaneId,
        change: impl FnOnce(&mut SharedLane) -> T,
    ) -> Option<T> {
        self.work(at_ns, number);
        let lane = &mut self.ticks.as_mut()?.lanes[number as usize];
        let changed = change(lane);
        let given_back = lane.given_back();
        lane.turn += 1;
        let (turn, life) = (lane.turn, lane.life);
        if let Some((end_ns, ends)) = lane.next_end(&self.slowness) {
            self.events.push(BEGIN_NS + end_ns, Event::Ends { lane: number, turn, ends });
        }
        for Released { partition, group, lane, epoch } in given_back {
            self.events.push(at_ns + GIVE_BACK_NS, Event::GivenBack { partition, group, lane, epoch, life });
        }
        Some(changed)
    }

    /// Advances a lane to the current time, and counts its busy time.
    pub(super) fn work(&mut self, at_ns: i64, number: LaneId) {
        let Some(ticks) = &mut self.ticks else { return };
        let passed = ticks.lanes[number as usize].work(at_ns - BEGIN_NS, &self.slowness);
        if passed.busy_ns == 0 {
            return;
        }
        let busy_s = self.counted_s(at_ns - passed.busy_ns, at_ns);
        let slice_s = busy_s * passed.slice_ns as f64 / passed.busy_ns as f64;
        let class = self.lanes.class(number);
        self.outcome.busy_s[class] += busy_s;
        self.outcome.drain_busy_s[class] += (seconds(passed.busy_ns) - busy_s).max(0.0);
        if let Some(ticks) = &mut self.ticks {
            ticks.done.busy_s[class] += (busy_s - slice_s).max(0.0);
            ticks.slices_s[number as usize] += slice_s;
        }
    }

    /// Ends a batch or slice, unless the lane has changed since the end was scheduled.
    pub(super) fn end(&mut self, at_ns: i64, number: LaneId, turn: u64, ends: Ends) {
        if self.ticks.as_ref().is_none_or(|ticks| ticks.lanes[number as usize].turn != turn) {
            return;
        }
        match ends {
            Ends::Slice => {
                let service_ns = self.change(at_ns, number, SharedLane::end_slice).unwrap_or(0);
                let Some(running) = self.lanes.take(at_ns, number) else { return };
                let slice = running.slice;
                self.account(number, running, at_ns, false);
                self.step(at_ns, &Input::SliceDone(SliceDone { lane: number, slice, service_ns }));
            }
            Ends::Batch => {
                let Some((batch, service_ns)) = self.change(at_ns, number, SharedLane::end_batch).flatten()
                else {
                    return;
                };
                if let Some(ticks) = &mut self.ticks {
                    ticks.rows.complete(at_ns, batch);
                }
                self.step(
                    at_ns,
                    &Input::Completed(Completed { lane: number, batch, service_ns, sample: None }),
                );
            }
        }
    }

    /// Gives a group back to the scheduler, unless its lane was lost since.
    pub(super) fn give_back(&mut self, at_ns: i64, released: Released, life: u64) {
        let Some(ticks) = &mut self.ticks else { return };
        if ticks.lanes[released.lane as usize].life == life {
            ticks.done.moves += 1;
            self.step(at_ns, &Input::Released(released));
        }
    }

    /// Removes the rows in flight on a lost lane, and returns them by partition.
    pub(super) fn lose_rows(&mut self, at_ns: i64, lane: LaneId) -> Vec<(PartitionId, Vec<GroupArrival>)> {
        self.change(at_ns, lane, SharedLane::lose);
        let Some(TickRun { rows, .. }) = &mut self.ticks else { return Vec::new() };
        rows.lose(lane).into_iter().collect()
    }

    /// Makes the rows of a lost lane arrive again. The partition's offset is read now, because the loss or earlier such
    /// rows may have resumed reading.
    pub(super) fn rows_again(&mut self, at_ns: i64, partition: PartitionId, groups: Vec<GroupArrival>) {
        let Some(TickRun { partitions, .. }) = &self.ticks else { return };
        let next_offset = partitions[partition as usize].next_offset;
        self.step(at_ns, &Input::Arrived(Arrived { partition, next_offset, groups }));
    }

    /// Collects the results of ticks at the end of the run.
    pub(super) fn close_ticks(&mut self, at_ns: i64) {
        let Some(ticks) = &mut self.ticks else { return };
        let paused = ticks.partitions.iter().filter_map(|partition| partition.paused_ns);
        ticks.done.paused_s += paused.map(|since_ns| seconds(at_ns - since_ns)).sum::<f64>();
        ticks.done.rows = ticks.rows.done();
        let (mean_ms, [p50_ms, p99_ms]) = ticks.rows.latencies_ms([0.5, 0.99]);
        (ticks.done.mean_ms, ticks.done.p50_ms, ticks.done.p99_ms) = (mean_ms, p50_ms, p99_ms);
        self.outcome.ticks = Some(std::mem::take(&mut ticks.done));
    }
}
