//! One run: applies events in the order of their times, and lets the scheduler decide after each.

mod scaling;
mod ticks;

use std::collections::BTreeSet;

use warptape_events::journal::*;
use warptape_network::{LaneState, TaskState};
use warptape_scheduler::Scheduler;

use crate::agenda::{Agenda, Next};
use crate::baseline::Baseline;
use crate::faults::{self, Loss, Slowness};
use crate::fleet::Fleet;
use crate::lanes::{Lanes, Running};
use crate::options::{Options, started};
use crate::outcome::{Outcome, PARTS, Ran, Scaled};
use crate::shared::Ends;
use crate::workload::{Arrival, Workload};
use scaling::Plant;
pub use scaling::Scaling;
use ticks::TickRun;

/// Time at which the run begins.
const BEGIN_NS: i64 = 1;
/// Time that solving for prices takes, in nanoseconds.
const PRICING_NS: i64 = 1_000_000;

#[derive(Clone, Debug)]
enum Event {
    Woke,
    SliceDone { lane: LaneId, slice: i64, service_ns: i64 },
    Priced { question: i64, prices: Vec<i64> },
    Arrives,
    Lost(Loss),
    Back { lane: LaneId },
    LaneStarted { lane: LaneId, start: u64 },
    WindowEnds,
    TicksCome,
    Ends { lane: LaneId, turn: u64, ends: Ends },
    GivenBack { partition: PartitionId, group: GroupIndex, lane: LaneId, epoch: i64, life: u64 },
}

/// The fleet, workload and configuration of a run.
struct Model<'a> {
    fleet: &'a Fleet,
    workload: &'a Workload,
    seed: u64,
    /// Arrivals by task number. In a closed loop a task's time is set when it arrives.
    arrivals: Vec<Arrival>,
    options: &'a Options,
    /// Number of the first task that is measured.
    warmup: usize,
}

/// The decision maker of a run.
enum Decider<'a> {
    /// The production scheduler.
    Scheduler(Box<Scheduler>),
    /// A baseline of the simulator.
    Baseline(Box<Baseline<'a>>),
}

impl Decider<'_> {
    /// Returns the time of the scheduler's next wake; `None` without one. The timers of a baseline are events.
    fn wake_at_ns(&self) -> Option<i64> {
        match self {
            Self::Scheduler(scheduler) => scheduler.wake_at_ns(),
            Self::Baseline(_) => None,
        }
    }
}

/// The state of a run.
struct Run<'a> {
    model: Model<'a>,
    decider: Decider<'a>,
    lanes: Lanes,
    slowness: Slowness,
    plant: Plant,
    /// Ticks beside tasks; `None` without ticks.
    ticks: Option<TickRun<'a>>,
    /// Number of lanes that are not permanently lost.
    lanes_left: usize,
    events: Agenda<Event>,
    tasks: Tasks,
    outcome: Outcome,
    /// Time up to which current tasks have been counted.
    counted_ns: i64,
    /// Callback for each step.
    observer: Observer<'a>,
    /// Chooses lanes instead of the policy; `None` without a pilot.
    pilot: Option<&'a mut dyn Pilot>,
}

/// The tasks that have arrived so far.
struct Tasks {
    /// Number of tasks sent. The next field counts those that arrived.
    sent: usize,
    arrived: usize,
    /// Time of the last arrival; in a closed loop, of the latest one so far.
    last_arrival_ns: i64,
    /// Tasks that were admitted and have not ended.
    open: BTreeSet<TaskId>,
    /// Number of open tasks by tenant.
    open_by_tenant: Vec<i64>,
}

/// Chooses lanes instead of a pushing policy: a network in training, or one that is compared with policies. A pilot
/// sees the same as learned policies in production, through the same code.
pub trait Pilot {
    /// Returns the number of the lane whose queue a task joins; `None` leaves the choice to the policy. The scheduler
    /// ignores a lane that may not take the task.
    fn choose(&mut self, at_ns: i64, id: TaskId, task: &TaskState, lanes: &[LaneState]) -> Option<usize>;

    /// Called when a task is done.
    fn finished(&mut self, _at_ns: i64, _id: TaskId) {}
}

/// Callback for each step of a run, with its time, its input, and its decisions.
pub type Observer<'a> = &'a mut dyn FnMut(i64, &Input, &[Decision]);

/// Runs a workload on a fleet under a policy.
///
/// # Panics
/// If the scheduler refuses its configuration or an input. Then the policy is unknown, its network does not fit the
/// lanes, or this crate has a defect.
pub fn run(fleet: &Fleet, workload: &Workload, options: &Options, seed: u64) -> Outcome {
    run_observed(fleet, workload, options, seed, &mut |_, _, _| {})
}

/// Runs a workload like [`run`], and passes each step to an observer, in the form of a journal entry.
///
/// # Panics
/// Like [`run`].
pub fn run_observed(
    fleet: &Fleet,
    workload: &Workload,
    options: &Options,
    seed: u64,
    observer: Observer<'_>,
) -> Outcome {
    run_to_the_end(Run::new(fleet, workload, options, seed, observer))
}

/// Runs a workload like [`run`] with a pilot that chooses the lane of each task. The policy of the options must push
/// tasks. Choose `score-utilization` if the pilot needs the lanes' utilisation, because no other policy computes it.
///
/// # Panics
/// Like [`run`].
pub fn run_piloted(
    fleet: &Fleet,
    workload: &Workload,
    options: &Options,
    seed: u64,
    pilot: &mut dyn Pilot,
) -> Outcome {
    let mut observer = |_: i64, _: &Input, _: &[Decision]| {};
    let mut run = Run::new(fleet, workload, options, seed, &mut observer);
    run.pilot = Some(pilot);
    run_to_the_end(run)
}

fn run_to_the_end(mut run: Run<'_>) -> Outcome {
    let Model { fleet, workload, options, seed, .. } = run.model;
    run.step(BEGIN_NS, &Input::Started(Box::new(started(fleet, workload, options))));
    if let Some(trained) = &options.network {
        run.step(BEGIN_NS, &Input::Trained(trained.clone()));
    }
    if run.ticks.is_some() {
        run.begin_ticks();
    } else {
        let assigned = PartitionAssigned {
            partition: 0,
            groups: 1,
            committed_offset: 0,
            snapshot_offset: 0,
            ..PartitionAssigned::default()
        };
        run.step(BEGIN_NS, &Input::PartitionAssigned(assigned));
    }
    run.begin_scaling();
    run.send_first();
    for loss in faults::first(fleet, seed) {
        run.events.push(BEGIN_NS + loss.at_ns, Event::Lost(loss));
    }
    let mut at_ns = BEGIN_NS;
    while let Some((event_ns, next)) = run.events.next(None, run.decider.wake_at_ns(), i64::MAX) {
        at_ns = event_ns;
        run.count_present(event_ns);
        let event = match next {
            Next::Event(event) => event,
            Next::Wake => Event::Woke,
            Next::Input => unreachable!("all inputs are events"),
        };
        run.happen(event_ns, event);
        let is_done = run.tasks.open.is_empty() && run.tasks.arrived == run.model.arrivals.len();
        let is_done = is_done && run.ticks.as_ref().is_none_or(|ticks| !ticks.is_open());
        if is_done || run.lanes_left == 0 {
            break;
        }
    }
    run.close(at_ns);
    let Run { model, mut outcome, tasks: Tasks { last_arrival_ns, .. }, .. } = run;
    outcome.arrivals_s = seconds(last_arrival_ns - BEGIN_NS);
    let first_measured = model.arrivals.get(model.warmup).map(|first| BEGIN_NS + first.at_ns);
    outcome.measured_s = seconds(last_arrival_ns - first_measured.unwrap_or(last_arrival_ns));
    outcome.drain_s = seconds((at_ns - last_arrival_ns).max(0));
    outcome.tasks.completions_s.sort_by(f64::total_cmp);
    outcome
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

impl<'a> Run<'a> {
    fn new(
        fleet: &'a Fleet,
        workload: &'a Workload,
        options: &'a Options,
        seed: u64,
        observer: Observer<'a>,
    ) -> Self {
        let arrivals = workload.arrivals(fleet, seed);
        let baseline = Baseline::new(&options.policy, fleet, workload, options.slice_ns, seed);
        let decider = match baseline {
            Some(baseline) => Decider::Baseline(Box::new(baseline)),
            None => Decider::Scheduler(Box::new(Scheduler::new())),
        };
        let scaling = match decider {
            Decider::Scheduler(_) => options.scaling,
            Decider::Baseline(_) => Scaling::None,
        };
        let ticks = match decider {
            Decider::Scheduler(_) => workload.ticks.as_ref(),
            Decider::Baseline(_) => None,
        };
        let is_open = workload.senders().is_none();
        let last_ns = arrivals.last().filter(|_| is_open).map_or(0, |arrival| arrival.at_ns);
        let model = Model {
            fleet,
            workload,
            seed,
            options,
            warmup: (options.warmup * arrivals.len() as f64) as usize,
            arrivals,
        };
        Self {
            plant: Plant::new(fleet, workload, scaling, model.arrivals.len()),
            ticks: ticks.map(|ticks| TickRun::new(ticks, fleet, seed)),
            model,
            decider,
            lanes: Lanes::new(fleet),
            slowness: Slowness::new(fleet),
            lanes_left: fleet.lanes(),
            events: Agenda::default(),
            tasks: Tasks {
                sent: 0,
                arrived: 0,
                last_arrival_ns: BEGIN_NS + last_ns,
                open: BTreeSet::new(),
                open_by_tenant: vec![0; workload.tenants.len()],
            },
            outcome: Outcome {
                busy_s: vec![0.0; fleet.classes.len()],
                drain_busy_s: vec![0.0; fleet.classes.len()],
                lost_s: vec![0.0; fleet.classes.len()],
                service_by_weight: vec![0.0; workload.tenants.len()],
                present: vec![0.0; if is_open { PARTS } else { 0 }],
                scaled: Scaled { paid_s: vec![0.0; fleet.classes.len()], ..Scaled::default() },
                ..Outcome::default()
            },
            counted_ns: BEGIN_NS,
            observer,
            pilot: None,
        }
    }

    /// Sends the first task; in a closed loop, the first task of each sender.
    fn send_first(&mut self) {
        for task in 0..self.model.workload.senders().unwrap_or(1) {
            if let Some(arrival) = self.model.arrivals.get(task) {
                self.send(BEGIN_NS + arrival.at_ns);
            }
        }
    }

    /// Schedules the arrival of one more task, if there is one.
    fn send(&mut self, at_ns: i64) {
        if self.tasks.sent < self.model.arrivals.len() {
            self.tasks.sent += 1;
            self.events.push(at_ns, Event::Arrives);
        }
    }

    /// In a closed loop, schedules the next task of the sender whose task ended.
    fn send_after(&mut self, at_ns: i64, task: TaskId) {
        if let Some(senders) = self.model.workload.senders() {
            let think_s = self.model.workload.think_s(self.model.seed, senders as u64 + task as u64);
            self.send(at_ns + (think_s * 1e9) as i64);
        }
    }

    /// Adds the number of current tasks, since the last count, to the mean of each part of the time.
    fn count_present(&mut self, at_ns: i64) {
        if self.outcome.present.is_empty() {
            return;
        }
        let until_ns = at_ns.min(self.tasks.last_arrival_ns);
        let part_ns = (self.tasks.last_arrival_ns - BEGIN_NS) as f64 / PARTS as f64;
        while self.counted_ns < until_ns {
            let part = (((self.counted_ns - BEGIN_NS) as f64 / part_ns) as usize).min(PARTS - 1);
            let end_ns = BEGIN_NS + ((part + 1) as f64 * part_ns) as i64;
            // The last part also gets the remainder of rounding.
            let end_ns =
                if part + 1 == PARTS { until_ns } else { end_ns.clamp(self.counted_ns + 1, until_ns) };
            let passed = (end_ns - self.counted_ns) as f64 / part_ns;
            self.outcome.present[part] += passed * self.tasks.open.len() as f64;
            self.counted_ns = end_ns;
        }
    }

    fn is_measured(&self, task: TaskId) -> bool {
        task as usize >= self.model.warmup
    }

    fn work_s(&self, task: usize) -> f64 {
        self.model.arrivals[task].units as f64 / self.model.workload.units_per_s
    }

    fn happen(&mut self, at_ns: i64, event: Event) {
        let input = match event {
            Event::Woke => Input::Woke(Woke {}),
            Event::SliceDone { lane, slice, service_ns } => {
                // A slice that was lost with its lane does not end here.
                let Some(running) = self.lanes.end(at_ns, lane, slice) else { return };
                self.account(lane, running, at_ns, false);
                self.end_later(lane);
                self.plant.worked(service_ns);
                self.step(at_ns, &Input::SliceDone(SliceDone { lane, slice, service_ns }));
                return self.stop_if_idle(at_ns, lane);
            }
            Event::Priced { question, prices } => Input::Priced(Priced { question, prices }),
            Event::Lost(loss) => return self.lose(at_ns, loss),
            Event::WindowEnds => return self.end_window(at_ns),
            Event::LaneStarted { lane, start } => return self.lane_started(at_ns, lane, start),
            Event::TicksCome => return self.ticks_come(at_ns),
            Event::Ends { lane, turn, ends } => return self.end(at_ns, lane, turn, ends),
            Event::GivenBack { partition, group, lane, epoch, life } => {
                return self.give_back(at_ns, Released { partition, group, lane, epoch }, life);
            }
            Event::Back { lane } => {
                self.account_lost(lane, at_ns);
                Input::LaneReady(LaneReady { lane })
            }
            Event::Arrives => {
                let task = self.tasks.arrived;
                self.tasks.arrived += 1;
                if self.model.workload.senders().is_some() {
                    self.model.arrivals[task].at_ns = at_ns - BEGIN_NS;
                    self.tasks.last_arrival_ns = at_ns;
                } else if let Some(next) = self.model.arrivals.get(task + 1) {
                    self.send(BEGIN_NS + next.at_ns);
                }
                if self.is_measured(task as TaskId) {
                    self.outcome.tasks.offered_s += self.work_s(task);
                    if let Some(ticks) = &mut self.ticks {
                        ticks.measure_from(at_ns);
                    }
                }
                let arrived = self.task_arrived(task);
                self.ask_pilot(at_ns, &arrived);
                Input::TaskArrived(arrived)
            }
        };
        self.step(at_ns, &input);
    }

    fn ask_pilot(&mut self, at_ns: i64, arrived: &TaskArrived) {
        if let (Some(pilot), Decider::Scheduler(scheduler)) = (&mut self.pilot, &mut self.decider)
            && let Some((task, lanes)) = scheduler.sight(at_ns, arrived)
            && let Some(lane) = pilot.choose(at_ns, arrived.task, &task, &lanes)
        {
            scheduler.steer(lane as LaneId);
        }
    }

    fn task_arrived(&self, task: usize) -> TaskArrived {
        let Model { workload, arrivals, .. } = &self.model;
        let arrival = &arrivals[task];
        let kind = &workload.kinds[arrival.kind];
        // An indivisible task is one unit.
        let (units, unit_cost) = if kind.divisible { (arrival.units, 1) } else { (1, arrival.units) };
        TaskArrived {
            task: task as TaskId,
            partition: 0,
            offset: task as i64,
            request_id: String::new(),
            tenant: workload.tenants[arrival.tenant].name.clone(),
            class: arrival.class,
            deadline_ns: arrival.deadline_ns.map(|deadline_ns| BEGIN_NS + deadline_ns),
            rate_key: kind.name.clone(),
            first_unit: 0,
            units,
            unit_cost,
            slice_units_max: i64::MAX,
            gang: false,
            as_of: Vec::new(),
            bytes: 0,
            unit_width: 0,
        }
    }

    fn step(&mut self, at_ns: i64, input: &Input) {
        let mut decisions = Vec::new();
        match &mut self.decider {
            Decider::Scheduler(scheduler) => {
                if let Err(error) = scheduler.step(at_ns, input, &mut decisions) {
                    panic!("the scheduler refused {input:?}: {error}");
                }
            }
            Decider::Baseline(baseline) => baseline.step(at_ns, input, &mut decisions),
        }
        (self.observer)(at_ns, input, &decisions);
        self.outcome.counts.steps += 1;
        self.outcome.counts.decisions += decisions.len() as u64;
        let resumed = decisions.iter().filter_map(|decision| match decision {
            Decision::Resume(resume) => Some(resume.partition),
            _ => None,
        });
        let resumed: Vec<PartitionId> = resumed.collect();
        for decision in decisions {
            self.execute(at_ns, decision);
        }
        // The scheduler decides about rows that arrive now after the decisions above.
        resumed.into_iter().for_each(|partition| self.resume(at_ns, partition));
    }

    fn execute(&mut self, at_ns: i64, decision: Decision) {
        match decision {
            Decision::Admit(admit) => {
                self.tasks.open.insert(admit.task);
                let arrival = &self.model.arrivals[admit.task as usize];
                self.tasks.open_by_tenant[arrival.tenant] += 1;
                let (task, kind, units) = (admit.task as usize, arrival.kind, arrival.units);
                self.plant.arrive(self.model.workload, task, kind, units);
            }
            Decision::Reject(reject) => {
                self.outcome.tasks.rejected += usize::from(self.is_measured(reject.task));
                self.ended(reject.task, true);
                self.send_after(at_ns, reject.task);
            }
            Decision::Expire(expire) => {
                self.forget(expire.task);
                self.send_after(at_ns, expire.task);
                self.outcome.tasks.expired += usize::from(self.is_measured(expire.task));
                self.ended(expire.task, true);
            }
            Decision::Finish(finish) => {
                let task = self.forget(finish.task);
                self.send_after(at_ns, finish.task);
                self.ended(finish.task, false);
                if let Some(pilot) = &mut self.pilot {
                    pilot.finished(at_ns, finish.task);
                }
                if self.is_measured(finish.task) {
                    let arrived_ns = BEGIN_NS + self.model.arrivals[task].at_ns;
                    self.outcome.tasks.completions_s.push(seconds(at_ns - arrived_ns));
                    self.outcome.tasks.in_time_s += self.work_s(task);
                }
            }
            Decision::RunSlice(slice) => self.run_slice(at_ns, &slice),
            Decision::Assign(_) => self.outcome.counts.assigned += 1,
            Decision::AskPrices(question) => {
                let prices = warptape_prices::solve(&question);
                self.events.push(at_ns + PRICING_NS, Event::Priced { question: question.question, prices });
            }
            Decision::WakeAt(wake) if matches!(self.decider, Decider::Baseline(_)) => {
                self.events.push(wake.at_ns, Event::Woke);
            }
            Decision::Dispatch(dispatch) => self.dispatch(at_ns, &dispatch),
            Decision::Pause(pause) => self.pause(at_ns, pause.partition),
            Decision::Release(release) if self.ticks.is_some() => self.release(at_ns, &release),
            // Without ticks a group has no rows, so its lane releases it at once.
            Decision::Release(Release { partition, group, lane, epoch, .. }) => {
                self.step(at_ns, &Input::Released(Released { partition, group, lane, epoch }));
            }
            // Other decisions have no effect here.
            _ => {}
        }
    }

    fn forget(&mut self, task: TaskId) -> usize {
        assert!(self.tasks.open.remove(&task), "task {task} was not admitted");
        let arrival = &self.model.arrivals[task as usize];
        self.tasks.open_by_tenant[arrival.tenant] -= 1;
        self.plant.forget(task as usize, arrival.kind);
        task as usize
    }

    /// Loses a lane and gives its tasks to others, unless it is already lost.
    fn lose(&mut self, at_ns: i64, loss: Loss) {
        let Loss { lane, back_ns, .. } = loss;
        if let Some(next) = faults::next(self.model.fleet, loss, self.model.seed) {
            self.events.push(BEGIN_NS + next.at_ns, Event::Lost(next));
        }
        if self.lanes.is_lost(lane) || !self.plant.is_there(lane) {
            return;
        }
        let again = self.lose_rows(at_ns, lane);
        while let Some(running) = self.lanes.take(at_ns, lane) {
            if self.tasks.open.contains(&running.task) {
                self.outcome.counts.redone += 1;
                let task = running.task as usize;
                self.plant.wait(task, self.model.arrivals[task].kind, running.units);
            }
            self.account(lane, running, at_ns, true);
        }
        if !self.lost_while_stopping(at_ns, lane) {
            match back_ns {
                Some(back_ns) => self.events.push(BEGIN_NS + back_ns, Event::Back { lane }),
                None => self.lanes_left -= 1,
            }
            self.lanes.lose(lane, at_ns);
        }
        let lost = LaneLost { lane, reason: "simulated".to_owned(), kept: true };
        self.step(at_ns, &Input::LaneLost(lost));
        for (partition, groups) in again {
            self.rows_again(at_ns, partition, groups);
        }
    }

    /// Adds the time for which a lane was lost, if it was lost.
    fn account_lost(&mut self, lane: LaneId, at_ns: i64) {
        if let Some(lost_ns) = self.lanes.come_back(lane) {
            self.outcome.lost_s[self.lanes.class(lane)] += self.counted_s(lost_ns, at_ns);
        }
    }

    /// Counts the end of a measured task by its class.
    fn ended(&mut self, task: TaskId, is_missed: bool) {
        if self.is_measured(task) {
            let class = self.model.arrivals[task as usize].class as usize;
            self.outcome.tasks.ended_by_class[class] += 1;
            self.outcome.tasks.missed_by_class[class] += usize::from(is_missed);
        }
    }

    fn run_slice(&mut self, at_ns: i64, slice: &RunSlice) {
        let Model { fleet, workload, arrivals, .. } = &self.model;
        let class = self.lanes.class(slice.lane);
        let arrival = &arrivals[slice.task as usize];
        let kind = &workload.kinds[arrival.kind];
        let unit_cost = if kind.divisible { 1 } else { arrival.units };
        let units = (slice.to - slice.from) * unit_cost;
        let work_s = units as f64 / workload.units_per_s;
        let work_ns = (work_s / fleet.classes[class].speeds[arrival.kind] * 1e9) as i64;
        let (full_ns, is_critical) =
            (fleet.slice_overhead_ns + work_ns, arrival.class == TaskClass::Critical);
        let is_shared = self.tasks.open_by_tenant.iter().all(|tasks| *tasks > 0);
        let service_ns = self.slowness.takes_ns(slice.lane, at_ns - BEGIN_NS, full_ns);
        let (number, task) = (slice.slice, slice.task);
        let running = Running { slice: number, task, units, from_ns: at_ns, service_ns, is_shared };
        self.plant.wait(slice.task as usize, arrival.kind, -units);
        self.lanes.begin(slice.lane, running);
        self.outcome.counts.slices += 1;
        self.outcome.counts.stolen += u64::from(slice.reason == SliceReason::Stolen);
        if self.ticks.is_some() {
            return self.begin_slice(at_ns, slice.lane, full_ns, is_critical);
        }
        self.end_later(slice.lane);
    }

    /// Schedules the end of the running slice of a lane. The event becomes stale if the slice yields to another one
    /// before.
    fn end_later(&mut self, lane: LaneId) {
        if let Some(Running { slice, from_ns, service_ns, .. }) = self.lanes.running(lane) {
            self.events.push(from_ns + service_ns, Event::SliceDone { lane, slice, service_ns });
        }
    }

    /// Returns the part of a period before the last arrival, in seconds. In a closed loop the last arrival is unknown
    /// until it comes.
    fn counted_s(&self, from_ns: i64, to_ns: i64) -> f64 {
        let is_known =
            self.model.workload.senders().is_none() || self.tasks.arrived == self.model.arrivals.len();
        let until_ns = if is_known { to_ns.min(self.tasks.last_arrival_ns) } else { to_ns };
        seconds((until_ns - from_ns).max(0))
    }

    /// Adds the time that a lane worked on a slice.
    fn account(&mut self, lane: LaneId, running: Running, at_ns: i64, is_lost: bool) {
        let Running { task, from_ns, is_shared, .. } = running;
        let passed_s = match &mut self.ticks {
            // Beside ticks, the slice's time was counted while the lane worked.
            Some(ticks) => ticks.slice_s(lane),
            None => {
                let passed_s = self.counted_s(from_ns, at_ns);
                let class = self.lanes.class(lane);
                self.outcome.busy_s[class] += passed_s;
                self.outcome.drain_busy_s[class] += (seconds(at_ns - from_ns) - passed_s).max(0.0);
                passed_s
            }
        };
        let arrival = &self.model.arrivals[task as usize];
        if is_shared {
            let weight = f64::from(self.model.workload.tenants[arrival.tenant].weight);
            self.outcome.service_by_weight[arrival.tenant] += passed_s / weight;
        }
        if self.model.options.records {
            let [from_ns, to_ns] = [from_ns, at_ns].map(|ns| ns - BEGIN_NS);
            let (lane, task, kind) = (lane as usize, task as usize, arrival.kind);
            self.outcome.ran.push(Ran { lane, task, kind, from_ns, to_ns, is_lost });
        }
    }

    /// Accounts for the slices that still run at the end, and the tasks that never end.
    fn close(&mut self, at_ns: i64) {
        for lane in 0..self.lanes.number() as LaneId {
            self.work(at_ns, lane);
            while let Some(running) = self.lanes.take(at_ns, lane) {
                self.account(lane, running, at_ns, false);
            }
            self.account_lost(lane, at_ns);
            self.account_paid(lane as usize, at_ns);
        }
        self.close_ticks(at_ns);
        let not_come = self.tasks.arrived as TaskId..self.model.arrivals.len() as TaskId;
        for task in std::mem::take(&mut self.tasks.open).into_iter().chain(not_come) {
            self.outcome.tasks.unfinished += usize::from(self.is_measured(task));
            self.ended(task, true);
        }
    }
}
