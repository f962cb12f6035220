//! One run: events in order of their time, the scheduler in between.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use warptape_events::journal::*;
use warptape_scheduler::Scheduler;

use crate::fleet::Fleet;
use crate::outcome::{Outcome, PARTS};
use crate::workload::{Arrival, Workload};

/// How the scheduler is configured in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The task policy.
    pub policy: String,
    /// How tasks are split.
    pub split: SplitPolicy,
    /// Wanted time of a slice, in nanoseconds.
    pub slice_ns: i64,
    /// Service after which tasks of a tenant take turns, in nanoseconds; 0: never.
    pub quantum_ns: i64,
    /// Time between looks at prices, in nanoseconds.
    pub price_interval_ns: i64,
    /// Share of the tasks, from the first on, that are not measured: the fleet is empty when they come.
    pub warmup: f64,
}

impl Default for Options {
    /// Today's dynamic split, tasks of a tenant one after the other.
    fn default() -> Self {
        Self {
            policy: "fair".to_owned(),
            split: SplitPolicy::Dynamic,
            slice_ns: 2_000_000,
            quantum_ns: 0,
            price_interval_ns: 1_000_000_000,
            warmup: 0.1,
        }
    }
}

/// Time at which the run begins.
const BEGIN_NS: i64 = 1;
/// What finding prices takes.
const PRICING_NS: i64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Woke,
    SliceDone { lane: LaneId, slice: i64, service_ns: i64, task: TaskId },
    Priced { question: i64, prices: Vec<i64> },
    Arrives,
}

/// What is run.
struct Model<'a> {
    fleet: &'a Fleet,
    workload: &'a Workload,
    seed: u64,
    /// By number; in a closed loop a task has its time when it arrives.
    arrivals: Vec<Arrival>,
    class_of_lane: Vec<usize>,
    /// Number of the first task that is measured.
    warmup: usize,
}

/// A run under way.
struct Run<'a> {
    model: Model<'a>,
    scheduler: Scheduler,
    /// Events by time, those of one time in the order in which they were known.
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    events_known: u64,
    /// Tasks that were sent, and those that have arrived.
    sent: usize,
    arrived: usize,
    tasks_by_tenant: Vec<i64>,
    known: BTreeSet<TaskId>,
    outcome: Outcome,
    /// Time up to which the tasks that are there are counted.
    counted_ns: i64,
    /// When the last task arrives; in a closed loop the last one so far.
    last_arrival_ns: i64,
    /// Is told each step.
    observer: Observer<'a>,
}

/// Is told each step of a run: its time, its input, and what was decided.
pub type Observer<'a> = &'a mut dyn FnMut(i64, &Input, &[Decision]);

/// Runs a workload on a fleet under a policy.
///
/// # Panics
/// If the scheduler refuses its configuration or an input: the policy is not known, or this crate has a defect.
pub fn run(fleet: &Fleet, workload: &Workload, options: &Options, seed: u64) -> Outcome {
    run_observed(fleet, workload, options, seed, &mut |_, _, _| {})
}

/// Likewise, and tells each step, as a journal would have it.
///
/// # Panics
/// As [`run`].
pub fn run_observed(
    fleet: &Fleet,
    workload: &Workload,
    options: &Options,
    seed: u64,
    observer: Observer<'_>,
) -> Outcome {
    let mut run = Run::new(fleet, workload, options, seed, observer);
    run.step(BEGIN_NS, &Input::Started(started(fleet, workload, options)));
    let assigned = PartitionAssigned { partition: 0, groups: 1, committed_offset: 0, snapshot_offset: 0 };
    run.step(BEGIN_NS, &Input::PartitionAssigned(assigned));
    run.send_first();
    let mut at_ns = BEGIN_NS;
    while let Some(Reverse((event_ns, _, event))) = run.events.pop() {
        at_ns = event_ns;
        run.count_present(event_ns);
        run.happen(event_ns, event);
        if run.known.is_empty() && run.arrived == run.model.arrivals.len() {
            break;
        }
    }
    let Run { model, mut outcome, last_arrival_ns, .. } = run;
    outcome.arrivals_s = seconds(last_arrival_ns - BEGIN_NS);
    let first_measured = model.arrivals.get(model.warmup).map(|first| BEGIN_NS + first.at_ns);
    outcome.measured_s = seconds(last_arrival_ns - first_measured.unwrap_or(last_arrival_ns));
    outcome.drain_s = seconds((at_ns - last_arrival_ns).max(0));
    outcome.completions_s.sort_by(f64::total_cmp);
    outcome
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn started(fleet: &Fleet, workload: &Workload, options: &Options) -> Started {
    let weights = workload.tenants.iter();
    let weights = weights.map(|tenant| TenantWeight { tenant: tenant.name.clone(), weight: tenant.weight });
    Started {
        node: "simulator".to_owned(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        stage_config: "{}".to_owned(),
        scheduler: SchedulerConfig {
            placement_policy: "rendezvous".to_owned(),
            placement_seed: 0,
            load_factor_percent: 125,
            lane_credit_rows: 4_096,
            lane_credit_bytes: 1 << 20,
            lane_batches_max: 2,
            batch_rows_max: 1_024,
            row_deadline_ns: 2_000_000,
            high_water_rows: 32_768,
            low_water_rows: 8_192,
            route_interval_ns: 0,
            balance_interval_ns: 0,
            risk: RiskConfig {
                slice_ns: options.slice_ns,
                tasks_max: 1 << 20,
                split: options.split,
                tenant_weights: weights.collect(),
                bytes_max: 1 << 40,
                quantum_ns: options.quantum_ns,
                policy: options.policy.clone(),
                price_interval_ns: options.price_interval_ns,
                ..RiskConfig::default()
            },
            breakers: None,
        },
        lanes: fleet.specs(),
    }
}

impl<'a> Run<'a> {
    fn new(
        fleet: &'a Fleet,
        workload: &'a Workload,
        options: &Options,
        seed: u64,
        observer: Observer<'a>,
    ) -> Self {
        let arrivals = workload.arrivals(fleet, seed);
        let is_open = workload.senders().is_none();
        let last_ns = arrivals.last().filter(|_| is_open).map_or(0, |arrival| arrival.at_ns);
        let model = Model {
            fleet,
            workload,
            seed,
            class_of_lane: (0..fleet.lanes()).map(|lane| fleet.class_of(lane)).collect(),
            warmup: (options.warmup * arrivals.len() as f64) as usize,
            arrivals,
        };
        Self {
            model,
            scheduler: Scheduler::new(),
            events: BinaryHeap::new(),
            events_known: 0,
            sent: 0,
            arrived: 0,
            tasks_by_tenant: vec![0; workload.tenants.len()],
            known: BTreeSet::new(),
            outcome: Outcome {
                busy_s: vec![0.0; fleet.classes.len()],
                service_by_weight: vec![0.0; workload.tenants.len()],
                present: vec![0.0; if is_open { PARTS } else { 0 }],
                ..Outcome::default()
            },
            counted_ns: BEGIN_NS,
            last_arrival_ns: BEGIN_NS + last_ns,
            observer,
        }
    }

    /// Sends the first task, or in a closed loop the first one of each sender.
    fn send_first(&mut self) {
        for task in 0..self.model.workload.senders().unwrap_or(1) {
            if let Some(arrival) = self.model.arrivals.get(task) {
                self.send(BEGIN_NS + arrival.at_ns);
            }
        }
    }

    /// Has one more task arrive at a time, if there is one.
    fn send(&mut self, at_ns: i64) {
        if self.sent < self.model.arrivals.len() {
            self.sent += 1;
            self.at(at_ns, Event::Arrives);
        }
    }

    /// A task is done or refused: in a closed loop its sender goes on.
    fn send_after(&mut self, at_ns: i64, task: TaskId) {
        if let Some(senders) = self.model.workload.senders() {
            let think_s = self.model.workload.think_s(self.model.seed, senders as u64 + task as u64);
            self.send(at_ns + (think_s * 1e9) as i64);
        }
    }

    fn at(&mut self, at_ns: i64, event: Event) {
        self.events_known += 1;
        self.events.push(Reverse((at_ns, self.events_known, event)));
    }

    /// Counts the tasks that were there until now, as shares of the parts of time.
    fn count_present(&mut self, at_ns: i64) {
        if self.outcome.present.is_empty() {
            return;
        }
        let until_ns = at_ns.min(self.last_arrival_ns);
        let part_ns = (self.last_arrival_ns - BEGIN_NS) as f64 / PARTS as f64;
        while self.counted_ns < until_ns {
            let part = (((self.counted_ns - BEGIN_NS) as f64 / part_ns) as usize).min(PARTS - 1);
            let end_ns = BEGIN_NS + ((part + 1) as f64 * part_ns) as i64;
            // The last part has what rounding leaves.
            let end_ns =
                if part + 1 == PARTS { until_ns } else { end_ns.clamp(self.counted_ns + 1, until_ns) };
            let passed = (end_ns - self.counted_ns) as f64 / part_ns;
            self.outcome.present[part] += passed * self.known.len() as f64;
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
            Event::SliceDone { lane, slice, service_ns, .. } => {
                Input::SliceDone(SliceDone { lane, slice, service_ns })
            }
            Event::Priced { question, prices } => Input::Priced(Priced { question, prices }),
            Event::Arrives => {
                let task = self.arrived;
                self.arrived += 1;
                if self.model.workload.senders().is_some() {
                    self.model.arrivals[task].at_ns = at_ns - BEGIN_NS;
                    self.last_arrival_ns = at_ns;
                } else if let Some(next) = self.model.arrivals.get(task + 1) {
                    self.send(BEGIN_NS + next.at_ns);
                }
                if self.is_measured(task as TaskId) {
                    self.outcome.offered_s += self.work_s(task);
                }
                Input::TaskArrived(self.task_arrived(task))
            }
        };
        self.step(at_ns, &input);
    }

    fn task_arrived(&self, task: usize) -> TaskArrived {
        let Model { workload, arrivals, .. } = &self.model;
        let arrival = &arrivals[task];
        let kind = &workload.kinds[arrival.kind];
        // What lanes may not share is one unit.
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
        }
    }

    fn step(&mut self, at_ns: i64, input: &Input) {
        let mut decisions = Vec::new();
        if let Err(error) = self.scheduler.step(at_ns, input, &mut decisions) {
            panic!("the scheduler refused {input:?}: {error}");
        }
        (self.observer)(at_ns, input, &decisions);
        self.outcome.steps += 1;
        self.outcome.decisions += decisions.len() as u64;
        for decision in decisions {
            self.execute(at_ns, decision);
        }
    }

    fn execute(&mut self, at_ns: i64, decision: Decision) {
        match decision {
            Decision::Admit(admit) => {
                self.known.insert(admit.task);
                self.tasks_by_tenant[self.model.arrivals[admit.task as usize].tenant] += 1;
            }
            Decision::Reject(reject) => {
                self.outcome.rejected += usize::from(self.is_measured(reject.task));
                self.send_after(at_ns, reject.task);
            }
            Decision::Expire(expire) => {
                self.forget(expire.task);
                self.send_after(at_ns, expire.task);
                self.outcome.expired += usize::from(self.is_measured(expire.task));
            }
            Decision::Finish(finish) => {
                let task = self.forget(finish.task);
                self.send_after(at_ns, finish.task);
                if self.is_measured(finish.task) {
                    let arrived_ns = BEGIN_NS + self.model.arrivals[task].at_ns;
                    self.outcome.completions_s.push(seconds(at_ns - arrived_ns));
                    self.outcome.in_time_s += self.work_s(task);
                }
            }
            Decision::RunSlice(slice) => self.run_slice(at_ns, &slice),
            Decision::AskPrices(question) => {
                let prices = warptape_prices::solve(&question);
                self.at(at_ns + PRICING_NS, Event::Priced { question: question.question, prices });
            }
            Decision::WakeAt(wake) => self.at(wake.at_ns, Event::Woke),
            // There are no ticks.
            _ => {}
        }
    }

    fn forget(&mut self, task: TaskId) -> usize {
        assert!(self.known.remove(&task), "task {task} was not admitted");
        self.tasks_by_tenant[self.model.arrivals[task as usize].tenant] -= 1;
        task as usize
    }

    fn run_slice(&mut self, at_ns: i64, slice: &RunSlice) {
        let Model { fleet, workload, arrivals, class_of_lane, .. } = &self.model;
        let class = class_of_lane[slice.lane as usize];
        let arrival = &arrivals[slice.task as usize];
        let kind = &workload.kinds[arrival.kind];
        let unit_cost = if kind.divisible { 1 } else { arrival.units };
        let work_s = ((slice.to - slice.from) * unit_cost) as f64 / workload.units_per_s;
        let service_ns =
            fleet.slice_overhead_ns + (work_s / fleet.classes[class].speeds[arrival.kind] * 1e9) as i64;
        if at_ns <= self.last_arrival_ns {
            self.outcome.busy_s[class] += seconds(service_ns);
            if self.tasks_by_tenant.iter().all(|tasks| *tasks > 0) {
                let weight = f64::from(workload.tenants[arrival.tenant].weight);
                self.outcome.service_by_weight[arrival.tenant] += seconds(service_ns) / weight;
            }
        }
        let done = Event::SliceDone { lane: slice.lane, slice: slice.slice, service_ns, task: slice.task };
        self.at(at_ns + service_ns, done);
    }
}
