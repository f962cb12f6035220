//! Baselines, which only the simulator has. They replace the scheduler and express their choices as its decisions.
//!
//! Baselines cannot run in production. Most know things that production does not, such as true speeds or the mix to
//! come. All of them ignore classes, tenants and turns. The simulator compares production policies with them.
//!
//! ```text
//!   push    a task arrives ──► whose queue does it join, as a whole?    blind-queues, static-affinity, completion-by-means, completion-by-sizes, bidding
//!   pull    a lane is free ──► which of the waiting tasks?              max-min, lp-allocation, shortest-rest
//! ```

mod allocation;
mod bidding;
mod push;
mod tasks;

use warptape_events::journal::*;

use crate::draws::Draws;
use crate::fleet::Fleet;
use crate::workload::Workload;
use allocation::Allocation;
use bidding::Agent;
use tasks::Tasks;

/// Names of all baselines.
pub const BASELINES: [&str; 8] = [
    "blind-queues",
    "static-affinity",
    "completion-by-means",
    "completion-by-sizes",
    "max-min",
    "lp-allocation",
    "shortest-rest",
    "bidding",
];

/// The rule of a baseline.
#[derive(Clone, Debug)]
enum Rule {
    /// A task joins the queue of a random lane, whatever its kind.
    BlindQueues(Draws),
    /// Each kind belongs to one class of lanes; the chosen table of classes has the greatest throughput. A task joins
    /// the shortest queue of its class.
    StaticAffinity(Vec<usize>),
    /// A task joins the lane that would finish it first if every task had the mean size of its kind.
    CompletionByMeans,
    /// A task joins the lane that would finish it first, computed from true sizes.
    CompletionBySizes,
    /// Lanes divide their time so that the worst-off task is as well off as possible (Gavel's max-min fairness), solved
    /// again in rounds.
    MaxMin(Allocation),
    /// Lanes divide their time as the solution of the capacity problem for the true mix requires.
    LpAllocation(Allocation),
    /// A lane takes the task with the greatest price × speed ÷ true remaining work.
    ShortestRest(Vec<f64>),
    /// An agent of each class bids for a task from its measurements of its own lanes; the lowest bidder gets the task.
    Bidding(Vec<Agent>),
}

/// The state of a lane.
#[derive(Clone, Debug)]
struct Lane {
    class: usize,
    is_ready: bool,
    /// The running slice, its task, its units, and its start time.
    running: Option<(i64, TaskId, (i64, i64), i64)>,
    /// Tasks assigned to the lane, in order.
    queue: Vec<TaskId>,
}

/// The state of a running baseline.
#[derive(Clone, Debug)]
pub(crate) struct Baseline<'a> {
    fleet: &'a Fleet,
    workload: &'a Workload,
    slice_ns: i64,
    rule: Rule,
    lanes: Vec<Lane>,
    tasks: Tasks,
    slices: i64,
}

impl<'a> Baseline<'a> {
    /// Creates the baseline with a name; `None` if no baseline has this name.
    pub(crate) fn new(
        name: &str,
        fleet: &'a Fleet,
        workload: &'a Workload,
        slice_ns: i64,
        seed: u64,
    ) -> Option<Self> {
        let rule = match name {
            "blind-queues" => Rule::BlindQueues(Draws::new(seed, "blind queues")),
            "static-affinity" => Rule::StaticAffinity(push::best_table(fleet, &workload.mix())),
            "completion-by-means" => Rule::CompletionByMeans,
            "completion-by-sizes" => Rule::CompletionBySizes,
            "max-min" => Rule::MaxMin(Allocation::in_rounds(fleet, workload)),
            "lp-allocation" => Rule::LpAllocation(Allocation::of_mix(fleet, &workload.mix())),
            "shortest-rest" => Rule::ShortestRest(fleet.prices(&workload.mix())),
            "bidding" => Rule::Bidding(vec![Agent::new(workload.kinds.len()); fleet.classes.len()]),
            _ => return None,
        };
        let lane =
            |lane| Lane { class: fleet.class_of(lane), is_ready: true, running: None, queue: Vec::new() };
        let lanes = (0..fleet.lanes()).map(lane).collect();
        Some(Self { fleet, workload, slice_ns, rule, lanes, tasks: Tasks::default(), slices: 0 })
    }

    /// Applies an input like the scheduler.
    pub(crate) fn step(&mut self, at_ns: i64, input: &Input, decisions: &mut Vec<Decision>) {
        match input {
            Input::TaskArrived(arrived) => self.arrive(at_ns, arrived, decisions),
            Input::SliceDone(done) => {
                let lane = &mut self.lanes[done.lane as usize];
                let (_, task, units, began_ns) = lane.running.take().expect("the lane worked on a slice");
                let class = lane.class;
                if let Some((kind, cost)) = self.tasks.done(task, units, at_ns - began_ns) {
                    self.received(class, kind, at_ns - began_ns);
                    self.learn(class, kind, cost, at_ns - began_ns);
                }
                if self.tasks.is_done(task) {
                    self.forget(task);
                    let (slices, service_ns, predicted_ns) = (0, 0, 0);
                    decisions.push(Decision::Finish(Finish { task, slices, service_ns, predicted_ns }));
                }
            }
            Input::LaneLost(lost) => self.lose(lost.lane as usize),
            Input::LaneReady(ready) => {
                self.lanes[ready.lane as usize].is_ready = true;
                let waiting = self.tasks.without_lane();
                waiting.into_iter().for_each(|task| self.push(task));
            }
            // Other inputs concern ticks, prices and operators.
            _ => {}
        }
        while let Some((task, deadline_ns, slices_running)) = self.tasks.overdue(at_ns) {
            self.forget(task);
            decisions.push(Decision::Expire(Expire { task, deadline_ns, slices_running }));
        }
        self.fill(at_ns, decisions);
    }

    fn arrive(&mut self, at_ns: i64, arrived: &TaskArrived, decisions: &mut Vec<Decision>) {
        let kind = self.workload.kinds.iter().position(|kind| kind.name == arrived.rate_key);
        self.tasks.insert(arrived, kind.expect("tasks are of the workload's kinds"));
        decisions.push(Decision::Admit(Admit {
            task: arrived.task,
            class: arrived.class,
            tenant: arrived.tenant.clone(),
            tasks: self.tasks.number() as i32,
        }));
        if let Some(deadline_ns) = arrived.deadline_ns.filter(|deadline_ns| *deadline_ns > at_ns) {
            decisions.push(Decision::WakeAt(WakeAt { at_ns: deadline_ns }));
        }
        self.push(arrived.task);
    }

    /// Appends a task to a queue, if the rule pushes tasks and a lane is ready.
    fn push(&mut self, task: TaskId) {
        let lanes: Vec<usize> = (0..self.lanes.len()).filter(|lane| self.lanes[*lane].is_ready).collect();
        if let Some(lane) = self.choose_lane(task, &lanes) {
            self.lanes[lane].queue.push(task);
            self.tasks.give(task, lane);
        }
    }

    fn forget(&mut self, task: TaskId) {
        if let Some(lane) = self.tasks.forget(task) {
            self.lanes[lane].queue.retain(|queued| *queued != task);
        }
    }

    /// Gives the tasks of a lost lane to other lanes.
    fn lose(&mut self, lane: usize) {
        let lost = &mut self.lanes[lane];
        lost.is_ready = false;
        if let Some((_, task, units, _)) = lost.running.take() {
            self.tasks.reopen(task, units);
        }
        for task in std::mem::take(&mut self.lanes[lane].queue) {
            self.tasks.take_back(task);
            self.push(task);
        }
    }

    fn received(&mut self, class: usize, kind: usize, service_ns: i64) {
        if let Rule::MaxMin(allocation) | Rule::LpAllocation(allocation) = &mut self.rule {
            allocation.received(class, kind, service_ns);
        }
    }

    /// Gives each free lane a slice, if a task has one for it.
    fn fill(&mut self, at_ns: i64, decisions: &mut Vec<Decision>) {
        if let Rule::MaxMin(allocation) = &mut self.rule {
            allocation.begin_round(at_ns, self.fleet, self.workload, &self.tasks);
        }
        for lane in 0..self.lanes.len() {
            if !self.lanes[lane].is_ready || self.lanes[lane].running.is_some() {
                continue;
            }
            let Some(task) = self.choose_task(lane) else { continue };
            let class = &self.fleet.classes[self.lanes[lane].class];
            let per_s = class.speeds[self.tasks.kind(task)] * self.workload.units_per_s;
            let most = ((self.slice_ns as f64 / 1e9 * per_s) as i64).max(1);
            let (from, to) = self.tasks.begin(task, most);
            let slice = self.slices;
            self.slices += 1;
            self.lanes[lane].running = Some((slice, task, (from, to), at_ns));
            decisions.push(Decision::RunSlice(run_slice(slice, task, lane as LaneId, (from, to))));
        }
    }

    /// Returns the task that a free lane takes; `None` if there is none.
    fn choose_task(&self, lane: usize) -> Option<TaskId> {
        let (class, speeds) = {
            let class = self.lanes[lane].class;
            (class, &self.fleet.classes[class].speeds)
        };
        match &self.rule {
            Rule::MaxMin(allocation) => {
                let kind = allocation.next_kind(class, |kind| self.tasks.has_open(kind))?;
                self.tasks.least_served(kind)
            }
            Rule::LpAllocation(allocation) => {
                let kind = allocation.next_kind(class, |kind| self.tasks.has_open(kind))?;
                self.tasks.oldest(kind)
            }
            Rule::ShortestRest(prices) => {
                let worth = |kind: usize| prices[kind] * speeds[kind];
                self.tasks.greatest(|kind, rest| worth(kind) / rest)
            }
            // The lane runs its own tasks, one after the other.
            _ => self.lanes[lane].queue.first().copied(),
        }
    }
}

fn run_slice(slice: i64, task: TaskId, lane: LaneId, (from, to): (i64, i64)) -> RunSlice {
    RunSlice {
        slice,
        task,
        lane,
        from,
        to,
        class: TaskClass::Interactive,
        tenant: String::new(),
        tasks_waiting: 0,
        tenant_service_ns: 0,
        service_fs_per_cost: 0,
        predicted_finish_ns: 0,
        reason: SliceReason::Order,
        upper_ns: 0,
        propensity_ppm: 1_000_000,
        stolen_from: None,
    }
}
