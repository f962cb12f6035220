//! The account of rows and tasks, step by step, from the entries of a journal or the steps of a model.
//!
//! The module owns the figures and the evidence about the order of rows. It must not know whether a step was recorded
//! or modelled.

use std::collections::{BTreeMap, VecDeque};

use warptape_schemas::journal::{
    Arrived, Decision, Dispatch, GroupArrival, GroupIndex, Input, LaneId, LaneSpec, PartitionId, TaskArrived,
    TaskId,
};

use crate::blocks::Blocks;
use crate::figures::Figures;

/// Greatest number of contradictions kept.
const VIOLATIONS_MAX: usize = 8;

/// A group of a partition.
type Key = (PartitionId, GroupIndex);

/// The account of one run.
pub(crate) struct Ledger {
    pub(crate) figures: Figures,
    /// Latencies by blocks of time; `None` if they are not needed.
    pub(crate) blocks: Option<Blocks>,
    /// Rows and tasks that arrived before this time do not count.
    from_ns: i64,
    /// True if the account includes every arrival from the start; false if the journal begins in the middle.
    is_whole: bool,
    life: Life,
}

/// The open rows and tasks of a process life.
#[derive(Default)]
struct Life {
    began_ns: i64,
    last_ns: i64,
    devices: Vec<String>,
    groups: BTreeMap<Key, Group>,
    flights: BTreeMap<i64, Flight>,
    slices: BTreeMap<i64, LaneId>,
    tasks: BTreeMap<TaskId, Task>,
}

/// Rows that arrived together.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    since_ns: i64,
    rows: i64,
    bytes: i64,
}

#[derive(Default)]
struct Group {
    waiting: VecDeque<Chunk>,
    /// Rows that were lost with a lane or partition and will arrive again.
    lost: VecDeque<Chunk>,
    /// The group's lane and epoch; `None` before it is placed.
    place: Option<(LaneId, i64)>,
    /// The group's batches in flight, oldest first.
    flights: VecDeque<i64>,
}

/// A batch in flight.
struct Flight {
    lane: LaneId,
    parts: Vec<(Key, Vec<Chunk>)>,
}

struct Task {
    arrived_ns: i64,
    partition: PartitionId,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Finished(i64),
    Missed,
    Withdrawn,
}

impl Ledger {
    /// Returns an account of rows and tasks that arrive at or after a time.
    pub(crate) fn new(from_ns: i64, is_whole: bool) -> Self {
        Self { figures: Figures::default(), blocks: None, from_ns, is_whole, life: Life::default() }
    }

    /// Begins the window: earlier arrivals do not count.
    pub(crate) fn count_from(&mut self, from_ns: i64) {
        self.from_ns = from_ns;
        self.life.began_ns = self.life.began_ns.max(from_ns);
        self.life.last_ns = self.life.last_ns.max(from_ns);
    }

    /// Begins a life with its lanes.
    pub(crate) fn begin(&mut self, at_ns: i64, lanes: &[LaneSpec]) {
        self.end_life();
        let devices: Vec<String> = lanes.iter().map(|lane| lane.device.clone()).collect();
        for device in &devices {
            self.figures.busy_ns.entry(device.clone()).or_default();
        }
        // The start of the window is unknown until it is reached.
        let began_ns = if self.from_ns == i64::MAX { at_ns } else { at_ns.max(self.from_ns) };
        self.life = Life { began_ns, last_ns: began_ns, devices, ..Life::default() };
    }

    /// Records the arrival of rows. `since_ns` is the time at which they would have arrived without a pause. `is_again`
    /// marks rows that were lost before.
    pub(crate) fn arrive(&mut self, arrived: &Arrived, since_ns: i64, is_again: bool) {
        self.life.last_ns = self.life.last_ns.max(since_ns);
        for &GroupArrival { group, rows, bytes } in &arrived.groups {
            let of = self.life.groups.entry((arrived.partition, group)).or_insert_with(|| {
                self.figures.order.groups += 1;
                Group::default()
            });
            let mut rest = Chunk { since_ns, rows, bytes };
            while is_again && rest.rows > 0 {
                let Some(chunk) = take_front(&mut of.lost, rest.rows) else { break };
                rest.rows -= chunk.rows;
                rest.bytes = (rest.bytes - chunk.bytes).max(0);
                of.waiting.push_back(chunk);
            }
            if rest.rows > 0 {
                self.figures.order.arrived += rest.rows;
                of.waiting.push_back(rest);
            }
        }
    }

    /// Records an input; arrivals of rows and starts of process lives have methods of their own.
    pub(crate) fn see(&mut self, at_ns: i64, input: &Input) {
        match input {
            Input::Completed(done) => self.complete(at_ns, done.lane, done.batch, done.service_ns),
            Input::SliceDone(done) => self.slice_done(at_ns, done.lane, done.slice, done.service_ns),
            Input::PartitionRevoked(revoked) => self.revoke(revoked.partition),
            Input::LaneLost(lost) => {
                self.life.slices.retain(|_, lane| *lane != lost.lane);
                if lost.kept {
                    self.lose_lane(lost.lane);
                }
            }
            Input::Released(_) if at_ns >= self.from_ns => self.figures.moves += 1,
            Input::TaskArrived(arrived) => self.task_arrived(at_ns, arrived),
            Input::TaskDropped(dropped) => self.end_task(dropped.task, Fate::Withdrawn),
            _ => {}
        }
    }

    /// Records the decisions of a step.
    pub(crate) fn decided(&mut self, at_ns: i64, decisions: &[Decision]) {
        for decision in decisions {
            match decision {
                Decision::Place(place) => {
                    let group = self.life.groups.entry((place.partition, place.group)).or_insert_with(|| {
                        self.figures.order.groups += 1;
                        Group::default()
                    });
                    group.place = Some((place.lane, place.epoch));
                }
                Decision::Dispatch(dispatch) => self.dispatch(dispatch),
                Decision::Restore(restore) => self.lose_partition(restore.partition),
                Decision::RunSlice(run) => {
                    self.life.slices.insert(run.slice, run.lane);
                }
                Decision::Reject(reject) => self.end_task(reject.task, Fate::Missed),
                Decision::Expire(expire) => self.end_task(expire.task, Fate::Missed),
                Decision::Shed(shed) => self.end_task(shed.task, Fate::Missed),
                Decision::Finish(finish) => self.end_task(finish.task, Fate::Finished(at_ns)),
                _ => {}
            }
        }
    }

    /// Returns the lost rows of a partition that will arrive again, by group.
    pub(crate) fn lost_of(&self, partition: PartitionId) -> Vec<GroupArrival> {
        let of_partition =
            self.life.groups.range((partition, GroupIndex::MIN)..=(partition, GroupIndex::MAX));
        let lost = of_partition.map(|(&(_, group), of)| GroupArrival {
            group,
            rows: of.lost.iter().map(|chunk| chunk.rows).sum(),
            bytes: of.lost.iter().map(|chunk| chunk.bytes).sum(),
        });
        lost.filter(|lost| lost.rows > 0).collect()
    }

    /// True if a task is known and has not ended its round.
    pub(crate) fn is_open(&self, task: TaskId) -> bool {
        self.life.tasks.get(&task).is_some_and(|task| task.fate == Fate::Open)
    }

    /// Ends the run, and returns its figures.
    pub(crate) fn finish(mut self) -> Figures {
        self.end_life();
        self.figures.completions_ns.sort_unstable();
        self.figures
    }

    fn end_life(&mut self) {
        let Life { began_ns, last_ns, groups, flights, tasks, .. } = std::mem::take(&mut self.life);
        self.figures.elapsed_ns += (last_ns - began_ns).max(0);
        let waiting = groups.values().flat_map(|group| group.waiting.iter().chain(&group.lost));
        let flying = flights.values().flat_map(|flight| flight.parts.iter().flat_map(|(_, chunks)| chunks));
        self.figures.order.left += waiting.chain(flying).map(|chunk| chunk.rows).sum::<i64>();
        for task in tasks.into_values().filter(|task| task.arrived_ns >= self.from_ns) {
            match task.fate {
                Fate::Finished(at_ns) => self.figures.completions_ns.push(at_ns - task.arrived_ns),
                Fate::Missed => self.figures.missed += 1,
                Fate::Open | Fate::Withdrawn => self.figures.withdrawn += 1,
            }
        }
    }

    fn dispatch(&mut self, dispatch: &Dispatch) {
        let mut parts = Vec::with_capacity(dispatch.takes.len());
        for take in &dispatch.takes {
            let key = (take.partition, take.group);
            let of = self.life.groups.entry(key).or_default();
            let (mut chunks, mut rows) = (Vec::new(), take.rows);
            while let Some(chunk) = take_front(&mut of.waiting, rows) {
                rows -= chunk.rows;
                chunks.push(chunk);
            }
            let before = of.flights.back().and_then(|batch| self.life.flights.get(batch));
            let elsewhere = before.is_some_and(|flight| flight.lane != dispatch.lane);
            let is_placed = of.place == Some((dispatch.lane, take.epoch));
            of.flights.push_back(dispatch.batch);
            parts.push((key, chunks));
            if self.is_whole && (elsewhere || !is_placed || rows > 0) {
                let what = match (elsewhere, is_placed) {
                    (true, _) => "is on another lane as well",
                    (_, false) => "is not placed on its lane",
                    _ => "has fewer rows than were taken",
                };
                self.violate(format!("batch {}: group {key:?} {what}", dispatch.batch));
            }
        }
        self.life.flights.insert(dispatch.batch, Flight { lane: dispatch.lane, parts });
    }

    fn complete(&mut self, at_ns: i64, lane: LaneId, batch: i64, service_ns: i64) {
        if self.life.flights.get(&batch).is_none_or(|flight| flight.lane != lane) {
            return;
        }
        let Some(Flight { parts, .. }) = self.life.flights.remove(&batch) else { return };
        self.work(at_ns, lane, service_ns);
        self.figures.batches += u64::from(at_ns >= self.from_ns);
        for (key, chunks) in parts {
            let of = self.life.groups.entry(key).or_default();
            let is_next = of.flights.front() == Some(&batch);
            of.flights.retain(|flight| *flight != batch);
            for chunk in chunks {
                self.figures.order.done += chunk.rows;
                if chunk.since_ns >= self.from_ns {
                    let latency_ns = at_ns - chunk.since_ns;
                    self.figures.rows_done(chunk.rows, latency_ns);
                    if let Some(blocks) = &mut self.blocks {
                        blocks.rows_done(chunk.since_ns, chunk.rows, latency_ns);
                    }
                }
            }
            if self.is_whole && !is_next {
                self.violate(format!("batch {batch}: group {key:?} is done before an older batch of it"));
            }
        }
    }

    fn slice_done(&mut self, at_ns: i64, lane: LaneId, slice: i64, service_ns: i64) {
        if self.life.slices.remove(&slice) == Some(lane) {
            self.work(at_ns, lane, service_ns);
        }
    }

    fn work(&mut self, at_ns: i64, lane: LaneId, service_ns: i64) {
        self.life.last_ns = self.life.last_ns.max(at_ns);
        if at_ns < self.from_ns {
            return;
        }
        let device = self.life.devices.get(lane as usize);
        if let Some(busy_ns) = device.and_then(|device| self.figures.busy_ns.get_mut(device)) {
            *busy_ns += service_ns;
        }
    }

    /// Marks a lane's rows in flight as lost; they will arrive again.
    fn lose_lane(&mut self, lane: LaneId) {
        let of_lane = |(batch, flight): (&i64, &Flight)| (flight.lane == lane).then_some(*batch);
        let batches: Vec<i64> = self.life.flights.iter().filter_map(of_lane).collect();
        for batch in batches {
            let Some(flight) = self.life.flights.remove(&batch) else { continue };
            for (key, chunks) in flight.parts {
                let of = self.life.groups.entry(key).or_default();
                of.flights.retain(|flight| *flight != batch);
                of.lost.extend(chunks);
            }
        }
    }

    /// Marks all rows of a partition that are not done as lost; they will be read again.
    fn lose_partition(&mut self, partition: PartitionId) {
        let mut back: BTreeMap<Key, Vec<Chunk>> = BTreeMap::new();
        for flight in self.life.flights.values_mut() {
            let (lost, kept): (Vec<_>, Vec<_>) =
                std::mem::take(&mut flight.parts).into_iter().partition(|(key, _)| key.0 == partition);
            flight.parts = kept;
            lost.into_iter().for_each(|(key, chunks)| back.entry(key).or_default().extend(chunks));
        }
        for (key, of) in self.life.groups.iter_mut().filter(|(key, _)| key.0 == partition) {
            of.lost.extend(back.remove(key).into_iter().flatten());
            let waiting = std::mem::take(&mut of.waiting);
            of.lost.extend(waiting);
            of.flights.clear();
            of.place = None;
        }
    }

    fn revoke(&mut self, partition: PartitionId) {
        self.lose_partition(partition);
        for (_, of) in self.life.groups.iter_mut().filter(|(key, _)| key.0 == partition) {
            self.figures.order.left += of.lost.drain(..).map(|chunk| chunk.rows).sum::<i64>();
        }
        let tasks = self.life.tasks.values_mut();
        for task in tasks.filter(|task| task.partition == partition && task.fate == Fate::Open) {
            task.fate = Fate::Withdrawn;
        }
    }

    fn task_arrived(&mut self, at_ns: i64, arrived: &TaskArrived) {
        self.life.last_ns = self.life.last_ns.max(at_ns);
        let (arrived_ns, partition) = (at_ns, arrived.partition);
        match arrived.first_unit {
            0 => {
                self.life.tasks.insert(arrived.task, Task { arrived_ns, partition, fate: Fate::Open });
            }
            _ => self.end_task(arrived.task, Fate::Open),
        }
    }

    fn end_task(&mut self, task: TaskId, fate: Fate) {
        if let Some(task) = self.life.tasks.get_mut(&task) {
            task.fate = fate;
        }
    }

    fn violate(&mut self, what: String) {
        if self.figures.order.violations.len() < VIOLATIONS_MAX {
            self.figures.order.violations.push(what);
        }
    }
}

/// Takes at most `rows` rows from the first chunk of a queue; `None` if there are none.
fn take_front(queue: &mut VecDeque<Chunk>, rows: i64) -> Option<Chunk> {
    if rows <= 0 {
        return None;
    }
    let front = queue.front_mut()?;
    if front.rows <= rows {
        return queue.pop_front();
    }
    let bytes = (i128::from(front.bytes) * i128::from(rows) / i128::from(front.rows)) as i64;
    front.rows -= rows;
    front.bytes -= bytes;
    Some(Chunk { since_ns: front.since_ns, rows, bytes })
}
