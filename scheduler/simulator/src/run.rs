//! One run: events in order of their time, the scheduler in between.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use warptape_events::journal::*;
use warptape_scheduler::Scheduler;

use crate::fleet::Fleet;
use crate::outcome::Outcome;
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
    Arrives { task: usize },
}

/// A run under way.
struct Run<'a> {
    fleet: &'a Fleet,
    workload: &'a Workload,
    arrivals: &'a [Arrival],
    scheduler: Scheduler,
    /// Events by time, those of one time in the order in which they were known.
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    events_known: u64,
    class_of_lane: Vec<usize>,
    tasks_by_tenant: Vec<i64>,
    known: HashMap<TaskId, usize>,
    outcome: Outcome,
    warmup: usize,
    last_arrival_ns: i64,
}

/// Runs a workload on a fleet under a policy.
///
/// # Panics
/// If the scheduler refuses its configuration or an input: the policy is not known, or this crate has a defect.
pub fn run(fleet: &Fleet, workload: &Workload, options: &Options, seed: u64) -> Outcome {
    let arrivals = workload.arrivals(fleet, seed);
    let mut run = Run {
        fleet,
        workload,
        arrivals: &arrivals,
        scheduler: Scheduler::new(),
        events: BinaryHeap::new(),
        events_known: 0,
        class_of_lane: (0..fleet.lanes()).map(|lane| fleet.class_of(lane)).collect(),
        tasks_by_tenant: vec![0; workload.tenants.len()],
        known: HashMap::new(),
        outcome: Outcome {
            busy_s: vec![0.0; fleet.classes.len()],
            service_by_weight: vec![0.0; workload.tenants.len()],
            ..Outcome::default()
        },
        warmup: (options.warmup * arrivals.len() as f64) as usize,
        last_arrival_ns: BEGIN_NS + arrivals.last().map_or(0, |arrival| arrival.at_ns),
    };
    run.step(BEGIN_NS, &Input::Started(started(fleet, workload, options)));
    run.step(
        BEGIN_NS,
        &Input::PartitionAssigned(PartitionAssigned {
            partition: 0,
            groups: 1,
            committed_offset: 0,
            snapshot_offset: 0,
        }),
    );
    if let Some(first) = arrivals.first() {
        run.at(BEGIN_NS + first.at_ns, Event::Arrives { task: 0 });
    }
    let mut at_ns = BEGIN_NS;
    while let Some(Reverse((event_ns, _, event))) = run.events.pop() {
        at_ns = event_ns;
        run.happen(event_ns, event);
        if run.known.is_empty() && run.outcome_is_complete() {
            break;
        }
    }
    run.outcome.arrivals_s = seconds(run.last_arrival_ns - BEGIN_NS);
    run.outcome.drain_s = seconds((at_ns - run.last_arrival_ns).max(0));
    run.outcome.completions_s.sort_by(f64::total_cmp);
    run.outcome
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
            },
        },
        lanes: fleet.specs(),
    }
}

impl Run<'_> {
    fn at(&mut self, at_ns: i64, event: Event) {
        self.events_known += 1;
        self.events.push(Reverse((at_ns, self.events_known, event)));
    }

    fn outcome_is_complete(&self) -> bool {
        let done = self.outcome.completions_s.len() + self.outcome.rejected + self.outcome.expired;
        done + self.warmup.min(self.arrivals.len()) >= self.arrivals.len()
            && self.events.iter().all(|Reverse((_, _, event))| !matches!(event, Event::Arrives { .. }))
    }

    fn happen(&mut self, at_ns: i64, event: Event) {
        let input = match event {
            Event::Woke => Input::Woke(Woke {}),
            Event::SliceDone { lane, slice, service_ns, .. } => {
                Input::SliceDone(SliceDone { lane, slice, service_ns })
            }
            Event::Priced { question, prices } => Input::Priced(Priced { question, prices }),
            Event::Arrives { task } => {
                if let Some(next) = self.arrivals.get(task + 1) {
                    self.at(BEGIN_NS + next.at_ns, Event::Arrives { task: task + 1 });
                }
                Input::TaskArrived(self.arrived(task))
            }
        };
        self.step(at_ns, &input);
    }

    fn arrived(&self, task: usize) -> TaskArrived {
        let arrival = &self.arrivals[task];
        let kind = &self.workload.kinds[arrival.kind];
        TaskArrived {
            task: task as TaskId,
            partition: 0,
            offset: task as i64,
            request_id: String::new(),
            tenant: self.workload.tenants[arrival.tenant].name.clone(),
            class: kind.class,
            deadline_ns: arrival.deadline_ns.map(|deadline_ns| BEGIN_NS + deadline_ns),
            rate_key: kind.name.clone(),
            first_unit: 0,
            units: arrival.units,
            unit_cost: 1,
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
        self.outcome.steps += 1;
        self.outcome.decisions += decisions.len() as u64;
        for decision in decisions {
            self.execute(at_ns, decision);
        }
    }

    fn execute(&mut self, at_ns: i64, decision: Decision) {
        match decision {
            Decision::Admit(admit) => {
                let task = admit.task as usize;
                self.known.insert(admit.task, task);
                self.tasks_by_tenant[self.arrivals[task].tenant] += 1;
            }
            Decision::Reject(_) => self.outcome.rejected += 1,
            Decision::Expire(expire) => {
                self.forget(expire.task);
                self.outcome.expired += 1;
            }
            Decision::Finish(finish) => {
                let task = self.forget(finish.task);
                if task >= self.warmup {
                    let arrived_ns = BEGIN_NS + self.arrivals[task].at_ns;
                    self.outcome.completions_s.push(seconds(at_ns - arrived_ns));
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
        let task = self.known.remove(&task).expect("the task was admitted");
        self.tasks_by_tenant[self.arrivals[task].tenant] -= 1;
        task
    }

    fn run_slice(&mut self, at_ns: i64, slice: &RunSlice) {
        let class = self.class_of_lane[slice.lane as usize];
        let arrival = &self.arrivals[slice.task as usize];
        let speed = self.fleet.classes[class].speeds[arrival.kind];
        let work_s = (slice.to - slice.from) as f64 / self.workload.units_per_s;
        let service_ns = self.fleet.slice_overhead_ns + (work_s / speed * 1e9) as i64;
        if at_ns <= self.last_arrival_ns {
            self.outcome.busy_s[class] += seconds(service_ns);
            if self.tasks_by_tenant.iter().all(|tasks| *tasks > 0) {
                let weight = f64::from(self.workload.tenants[arrival.tenant].weight);
                self.outcome.service_by_weight[arrival.tenant] += seconds(service_ns) / weight;
            }
        }
        let done = Event::SliceDone { lane: slice.lane, slice: slice.slice, service_ns, task: slice.task };
        self.at(at_ns + service_ns, done);
    }
}
