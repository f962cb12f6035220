//! The known risk tasks, their units that have not begun, and the order in which lanes take these.
//!
//! ```text
//!   TaskArrived ──► Reject, or Admit ──► whole ──► Split ──► a lane's shares ──┐
//!                                  └───────────────────────► open ─────────────┴──► RunSlice ──► SliceDone ──► Finish
//!                                                             ▲   (slices)                        │
//!                                                             └────────────── LaneLost ◄──────────┘
//! ```
//!
//! Ticks go first: a lane gets a slice only when it has no other work (`slices`). A slice takes about `risk.slice_ns`,
//! because ticks that arrive meanwhile share the processor with it. A lane with ticks reserves a share of its time for
//! critical and aged tasks (`reserve`, `ageing`). The module owns tasks and their order; it must not know what a unit
//! is. Only a revoked partition and a change of policy walk over all tasks.
//!
//! If `risk.quantum_ns` is set, a tenant's tasks take turns of that much service. So its other tasks need not wait
//! until a large one is done. One slice in [`CLASS_SLICES`] goes to a less urgent class.

mod accounts;
mod ageing;
mod assign;
mod audit;
pub(crate) mod bandit;
mod config_hash;
mod congestion;
mod predictor;
mod prices;
mod queue;
mod queues;
mod quotas;
mod rates;
mod reserve;
mod shadow;
mod shares;
mod sight;
mod slices;
mod steal;
mod task;
mod waves;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use task::{Stage, Task, TaskSpec};
use warptape_events::journal::{
    Admit, Decision, Drift, Expire, Finish, LaneId, PartitionId, Priced, Reject, RejectReason, RiskConfig,
    Shed, ShedReason, SliceDone, SplitPolicy, TaskArrived, TaskClass, TaskId,
};

use crate::lanes::Lanes;
use crate::learnt::Learnt;
use crate::life::{Clock, Life, Step};
use crate::name::Name;
use crate::policy::task::{Order, TaskPolicy, Turns};
use crate::state_hash::{Component, StateHash, hash_component};
use crate::views::QuotaLoad;
use accounts::Accounts;
use ageing::Ageing;
use assign::assign;
pub(crate) use audit::{audit, walked_hash};
pub(crate) use config_hash::config_hash;
use congestion::Congestion;
use prices::Prices;
use queue::{Queue, Shares, Turn};
use queues::{Busy, LaneQueue};
pub(crate) use quotas::Quotas;
use quotas::Refusal;
use rates::Rates;
use reserve::Reserve;
pub(crate) use shadow::Shadows;
pub use shadow::{SHADOW_EVERY_MAX, SHADOWS_MAX, check_shadow};
#[cfg(feature = "lab")]
pub(crate) use shadow::{Waiting, joins, would_begin};
pub(crate) use sight::{Sighted, sighted};
pub(crate) use slices::{TaskAccount, account, next_without, run};
pub(crate) use task::Units;
pub(crate) use waves::{Widths, widths_of};

/// Period of slices for less urgent classes: one slice in this many. They alternate between the least urgent class with
/// tasks and the second most urgent.
const CLASS_SLICES: i64 = 16;

/// State of all tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Risk {
    policy: TaskPolicy,
    tasks: BTreeMap<TaskId, Task>,
    /// Bytes of the requests of all known tasks.
    bytes: i64,
    /// Tasks with a deadline, by deadline.
    deadlines: BTreeSet<(i64, TaskId)>,
    tenants: Tenants,
    /// Watch on standing delay; `None` if it is off.
    congestion: Option<Congestion>,
    rates: Rates,
    queues: Queues,
    lanes: LaneTasks,
    /// Waiting tasks, by the time that they have waited.
    ageing: Ageing,
    /// State of push policies.
    turns: Turns,
    /// Prices of kinds of tasks, for policies that use them.
    prices: Prices,
    numbers: Numbers,
    /// The task whose last unit was done in this step; `None` between steps.
    complete: Option<TaskId>,
    contribution: u64,
    /// Widths of lanes. Checkpoints store them after the other fields of the state.
    #[serde(skip)]
    widths: Widths,
}

/// Service of tenants so far, and their quotas.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Tenants {
    accounts: Accounts,
    quotas: Quotas,
}

/// Tasks with units that have not begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Queues {
    /// Tasks that are still to be split.
    whole: Queue,
    /// Gangs that currently let other tasks go first, by the end of that time.
    aside: BTreeSet<(i64, TaskId)>,
    /// Tasks with units that any lane may take.
    open: Queue,
    /// Tasks with units in a lane's own share, by lane.
    shares: Shares,
}

/// Risk work of lanes; each list is by lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LaneTasks {
    /// Totals of the units that only this lane may take.
    queues: Vec<LaneQueue>,
    /// Recent busy time of each lane, counted only if the policy uses it.
    busy: Vec<Busy>,
    /// The reserve of each lane: time for tasks while it has ticks.
    reserves: Vec<Reserve>,
}

/// Number of waiting tasks, and the next numbers of tasks and slices.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Numbers {
    /// Tasks with units that have not begun.
    waiting: i32,
    /// Lowest allowed number for the next request.
    task_next: TaskId,
    /// Number of the next slice.
    slice_next: i64,
}

impl Risk {
    pub(crate) fn new(
        config: &RiskConfig,
        policy: TaskPolicy,
        lanes: usize,
        classes: usize,
        widths: Widths,
    ) -> Self {
        Self {
            policy,
            tasks: BTreeMap::new(),
            bytes: 0,
            deadlines: BTreeSet::new(),
            tenants: Tenants {
                accounts: Accounts::new(&config.tenant_weights),
                quotas: Quotas::new(&config.queues.quotas),
            },
            congestion: Congestion::is_on(&config.queues).then(Congestion::default),
            rates: Rates::new(classes, config.predictor > 0),
            queues: Queues {
                whole: Queue::default(),
                aside: BTreeSet::new(),
                open: Queue::default(),
                shares: Shares::new(lanes),
            },
            lanes: LaneTasks {
                queues: vec![LaneQueue::default(); lanes],
                busy: vec![Busy::default(); lanes],
                reserves: vec![Reserve::default(); lanes],
            },
            ageing: Ageing::new(config.ageing_ns),
            turns: Turns::default(),
            prices: Prices::default(),
            numbers: Numbers::default(),
            complete: None,
            contribution: 0,
            widths,
        }
    }

    /// Computes the totals that a checkpoint leaves out.
    pub(crate) fn restore_totals(&mut self) {
        self.rates.restore_totals();
    }

    /// Widths of lanes.
    pub(crate) fn widths(&self) -> &Widths {
        &self.widths
    }

    /// Adds the widths of lanes and of units of tasks, which a checkpoint stores separately. Returns false if a task is
    /// unknown.
    pub(crate) fn restore_widths(&mut self, widths: Widths, of_units: Vec<(TaskId, u16)>) -> bool {
        self.widths = widths;
        of_units.into_iter().all(|(task, width)| match self.tasks.get_mut(&task) {
            Some(task) => {
                task.spec.unit_width = width;
                true
            }
            None => false,
        })
    }

    /// Tasks with their units' widths, unless these are 0.
    pub(crate) fn unit_widths(&self) -> impl Iterator<Item = (TaskId, u16)> {
        let of_task =
            |task: &Task| (task.spec.unit_width > 0).then_some((task.spec.id, task.spec.unit_width));
        self.tasks.values().filter_map(of_task)
    }

    /// Number of known tasks.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Number of tasks with units that have not begun.
    pub(crate) fn tasks_waiting(&self) -> i32 {
        self.numbers.waiting
    }

    pub(crate) fn knows(&self, task: TaskId) -> bool {
        self.tasks.contains_key(&task)
    }

    /// Load of each quota.
    pub(crate) fn quota_loads(&self) -> impl Iterator<Item = QuotaLoad<'_>> {
        self.tenants.quotas.loads()
    }

    /// Lowest allowed number for the next request.
    pub(crate) fn task_next(&self) -> TaskId {
        self.numbers.task_next
    }

    /// Number of the next slice.
    pub(crate) fn slice_next(&self) -> i64 {
        self.numbers.slice_next
    }

    /// Number of the next question for prices.
    pub(crate) fn question_next(&self) -> i64 {
        self.prices.question_next()
    }

    /// Number of kinds of tasks in a question; `None` unless it is the last question.
    pub(crate) fn kinds_asked(&self, question: i64) -> Option<usize> {
        self.prices.question(question).map(|asked| asked.kinds.len())
    }

    /// Hash of the counters; 0 before the first task.
    fn hash(&self) -> u64 {
        match (self.numbers.task_next, self.numbers.slice_next) {
            (0, 0) => 0,
            (task_next, slice_next) => hash_component(Component::Risk, [task_next, slice_next]),
        }
    }

    fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    fn task_mut(&mut self, task: TaskId) -> &mut Task {
        self.tasks.get_mut(&task).expect("only known tasks are in queues and on lanes")
    }

    /// Initial quanta of a task: the fewest among its tenant's queued tasks of the class. So the new task neither
    /// passes the others for long nor waits until they are done.
    fn first_quanta(&self, class: TaskClass, tenant: &Name) -> i64 {
        let queues = [&self.queues.whole, &self.queues.open].into_iter().chain(self.queues.shares.iter());
        queues.filter_map(|queue| queue.quanta(class, tenant)).min().unwrap_or(0)
    }

    /// Sets a tenant's weight.
    pub(crate) fn weigh(&mut self, tenant: &str, weight: i32) {
        self.tenants.accounts.weigh(tenant, weight);
    }

    /// Turn of a task's tenant; all tenants share one turn if the order is not fair.
    fn turn(&self, task: &Task) -> Turn {
        self.turn_under(self.policy.order(), task)
    }

    fn turn_under(&self, order: Order, task: &Task) -> Turn {
        match order.is_fair() {
            true => self.tenants.accounts.turn(task.spec.class, &task.spec.tenant),
            false => Turn { class: task.spec.class, service_ns: 0, tenant: Name::default() },
        }
    }

    /// Kind under which a task is queued; empty if the policy does not distinguish kinds.
    fn kind_of(&self, task: &Task) -> Name {
        self.kind_under(self.policy, task)
    }

    fn kind_under(&self, policy: TaskPolicy, task: &Task) -> Name {
        match policy {
            TaskPolicy::LpPrice => task.spec.rate_key.clone(),
            TaskPolicy::First(_) | TaskPolicy::Push(_) => Name::default(),
        }
    }

    /// Predicted time of a task's rest on the fastest class of ready lanes, in nanoseconds; 0 if it is unknown or not
    /// used.
    fn rest_ns(&self, task: &Task, lanes: &Lanes) -> i64 {
        self.rest_ns_under(self.policy.order(), task, lanes)
    }

    fn rest_ns_under(&self, order: Order, task: &Task, lanes: &Lanes) -> i64 {
        if !order.predicts() {
            return 0;
        }
        let on = |class| {
            let cost = task.cost_on(self.widths.of_class(class), task.units_left);
            let predicted = self.rates.predict_work(class, &task.spec.rate_key, cost)?;
            Some(if order.is_cautious() { predicted.upper_ns } else { predicted.mean_ns })
        };
        lanes.ready_classes().filter_map(on).min().unwrap_or(0)
    }

    /// Removes a task from all queues before it changes. Returns its tenant's turn in them.
    fn dequeue(&mut self, task: TaskId) -> Turn {
        let task = &self.tasks[&task];
        let (kind, turn, due) = (self.kind_of(task), self.turn(task), task.due(self.policy.order()));
        match task.stage {
            Stage::Whole | Stage::Reserved(_) => _ = self.queues.whole.remove(&kind, &turn, due),
            Stage::Aside(until_ns) => drop(self.queues.aside.remove(&(until_ns, due.task))),
            Stage::Shared => {
                self.queues.open.remove(&kind, &turn, due);
                for (lane, units) in &task.shares {
                    self.queues.shares.remove(*lane, &kind, &turn, due);
                    let width = self.widths.of_lane(*lane);
                    self.lanes.queues[*lane as usize].remove(width, task, units.count());
                }
            }
        }
        self.numbers.waiting -= i32::from(task.is_waiting());
        self.ageing.remove(task.since_ns, due.task);
        if let Some(congestion) = &mut self.congestion {
            congestion.remove(task.spec.class, task.spec.arrived_ns, due.task);
        }
        turn
    }

    /// Adds a task to the queues that match its current state.
    fn enqueue(&mut self, task: TaskId) {
        self.enqueue_at(task, &self.turn(&self.tasks[&task]));
    }

    /// Adds a task as `enqueue` does, given its tenant's turn.
    fn enqueue_at(&mut self, task: TaskId, turn: &Turn) {
        let task = &self.tasks[&task];
        let (kind, due) = (self.kind_of(task), task.due(self.policy.order()));
        match task.stage {
            Stage::Whole | Stage::Reserved(_) => _ = self.queues.whole.insert(&kind, turn, due),
            Stage::Aside(until_ns) => drop(self.queues.aside.insert((until_ns, due.task))),
            Stage::Shared => {
                if !task.open.is_empty() {
                    self.queues.open.insert(&kind, turn, due);
                }
                for (lane, units) in &task.shares {
                    self.queues.shares.insert(*lane, &kind, turn, due);
                    let width = self.widths.of_lane(*lane);
                    self.lanes.queues[*lane as usize].add(width, task, units.count());
                }
            }
        }
        self.numbers.waiting += i32::from(task.is_waiting());
        if task.is_waiting() {
            self.ageing.insert(task.since_ns, due.task);
        }
        if let Some(congestion) = self.congestion.as_mut().filter(|_| !task.has_begun) {
            congestion.insert(task.spec.class, task.spec.arrived_ns, due.task);
        }
    }

    /// Adds to the service of a task's tenant, and moves the tenant to its new turn in every queue. Returns that turn;
    /// it is the old one if the order is not fair. The task itself must be in no queue.
    fn charge(&mut self, task: TaskId, old: Turn, weighted_ns: i64, hash: &mut StateHash) -> Turn {
        let accounts = &mut self.tenants.accounts;
        if !self.policy.order().is_fair() {
            let TaskSpec { class, tenant, .. } = &self.tasks[&task].spec;
            let account = accounts.turn(*class, tenant);
            accounts.charge(&account, weighted_ns, hash);
            return old;
        }
        let new = accounts.charge(&old, weighted_ns, hash);
        let Queues { whole, open, shares, .. } = &mut self.queues;
        [whole, open].into_iter().chain(shares.iter_mut()).for_each(|queue| queue.replace(&old, &new));
        new
    }

    /// Forgets a task. The results of its running slices do not count.
    fn forget(&mut self, task: TaskId, lanes: &mut Lanes, learnt: &mut Learnt, hash: &mut StateHash) -> Task {
        if let Some(bandit) = &mut learnt.bandit {
            bandit.left(task, hash);
        }
        self.dequeue(task);
        let task = self.tasks.remove(&task).expect("the caller knows the task");
        let spec = &task.spec;
        self.bytes -= spec.bytes;
        task.forget(hash);
        if let Some(deadline_ns) = spec.deadline_ns {
            self.deadlines.remove(&(deadline_ns, spec.id));
        }
        self.tenants.accounts.leave(spec.class, &spec.tenant, hash);
        self.tenants.quotas.leave(&spec.tenant, hash);
        if task.slices_running > 0 {
            let is_of_task = |index: &usize| lanes[*index].slices().any(|slice| slice.task == Some(spec.id));
            let of_task: Vec<_> = (0..lanes.len()).filter(is_of_task).collect();
            of_task.into_iter().for_each(|index| lanes[index].void_slice(spec.id, hash));
        }
        task
    }
}

/// Accepts a task or refuses it.
pub(crate) fn arrive(life: &mut Life, arrived: &TaskArrived, decisions: &mut Vec<Decision>) {
    let Life { risk, lanes, config, hash, clock: Clock { at_ns, .. }, .. } = &mut *life;
    let (task, deadline_ns) = (arrived.task, arrived.deadline_ns);
    risk.numbers.task_next = risk.numbers.task_next.max(task + 1);
    risk.refresh(hash);
    if let Some(reject) = refuse(risk, &config.risk, arrived, *at_ns) {
        decisions.push(Decision::Reject(reject));
        return;
    }
    let tasks = risk.tasks.len() as i32;
    let bytes = risk.bytes + arrived.bytes;
    let stage = match config.risk.split {
        SplitPolicy::Dynamic if !arrived.gang => Stage::Shared,
        _ => Stage::Whole,
    };
    let tenant = risk.tenants.accounts.join(arrived.class, &arrived.tenant, hash);
    risk.tenants.quotas.join(&tenant, arrived.first_unit == 0, *at_ns, hash);
    let quanta = match config.risk.quantum_ns {
        0 => 0,
        _ => risk.first_quanta(arrived.class, &tenant),
    };
    let mut new = Task::new(*at_ns, arrived, tenant, stage, quanta, hash);
    new.since_ns = if risk.ageing.is_on() { *at_ns } else { 0 };
    new.has_begun = risk.congestion.is_some() && arrived.first_unit > 0;
    new.rest_ns = risk.rest_ns(&new, lanes);
    new.refresh(hash);
    risk.tasks.insert(task, new);
    risk.bytes = bytes;
    risk.deadlines.extend(deadline_ns.map(|deadline_ns| (deadline_ns, task)));
    risk.enqueue(task);
    let (class, tenant, tasks) = (arrived.class, arrived.tenant.clone(), tasks + 1);
    decisions.push(Decision::Admit(Admit { task, class, tenant, tasks }));
    if wants_prices(life) {
        let Life { risk, hash, .. } = &mut *life;
        let Risk { tasks, prices, .. } = risk;
        let arrived = &tasks[&task];
        prices.count(&arrived.spec.rate_key, arrived.cost(arrived.units_left), hash);
    }
    let instead = shadow::arrived(life, task);
    let assigned = assign(life, task);
    let lane = assigned.as_ref().map(|assign| assign.lane);
    decisions.extend(assigned.map(Decision::Assign));
    shadow::beside_arrival(task, lane, &instead, decisions);
}

/// True if the policy or a shadow policy uses prices.
fn wants_prices(life: &Life) -> bool {
    life.risk.policy.sees_prices()
        || life.learnt.later.shadows.as_ref().is_some_and(|shadows| shadows.any(TaskPolicy::sees_prices))
}

/// Reason for refusing a task; `None` if it is accepted. A later round is refused only if its deadline has passed.
fn refuse(risk: &Risk, config: &RiskConfig, arrived: &TaskArrived, at_ns: i64) -> Option<Reject> {
    let TaskArrived { task, deadline_ns, .. } = *arrived;
    let (tasks, tasks_max) = (risk.tasks.len() as i32, config.tasks_max);
    let (bytes, bytes_max) = (risk.bytes + arrived.bytes, config.bytes_max);
    let (reason, quota) = (RejectReason::Overloaded, String::new());
    let reject = Reject { task, reason, tasks, tasks_max, deadline_ns, bytes, bytes_max, quota };
    if deadline_ns.is_some_and(|deadline_ns| deadline_ns <= at_ns) {
        return Some(Reject { reason: RejectReason::Expired, ..reject });
    }
    if arrived.first_unit > 0 {
        return None;
    }
    if tasks >= tasks_max || (tasks > 0 && bytes > bytes_max) {
        return Some(reject);
    }
    // Critical tasks are admitted however long other tasks wait.
    let limit = match &risk.congestion {
        Some(congestion) if arrived.class != TaskClass::Critical => congestion.limit(tasks_max.into()),
        _ => tasks_max.into(),
    };
    let number = |count: i64| i32::try_from(count).unwrap_or(i32::MAX);
    let refused = |reason, quota: &str, tasks: i64, tasks_max: i64| Reject {
        reason,
        quota: quota.to_owned(),
        tasks: number(tasks),
        tasks_max: number(tasks_max),
        ..reject
    };
    match risk.tenants.quotas.check(&arrived.tenant, limit, at_ns) {
        Ok(()) => None,
        Err(Refusal::Limit { quota, tasks, limit }) => {
            Some(refused(RejectReason::Quota, &quota, tasks, limit))
        }
        Err(Refusal::Rate { quota, rate_per_s }) => Some(refused(RejectReason::Rate, &quota, 0, rate_per_s)),
        Err(Refusal::Guaranteed { quota, claimed, tasks_max }) => {
            Some(match limit < i64::from(config.tasks_max) {
                true => refused(RejectReason::Congested, "", tasks.into(), limit),
                false => refused(RejectReason::Quota, &quota, claimed, tasks_max),
            })
        }
    }
}

/// Time of the next check for standing delay, even without further input; `i64::MAX` if the watch is off.
pub(crate) fn shed_at_ns(life: &Life) -> i64 {
    let next_ns = |congestion: &Congestion| congestion.next_ns(&life.config.risk.queues, life.clock.at_ns);
    life.risk.congestion.as_ref().map_or(i64::MAX, next_ns)
}

/// Sheds tasks that have not begun, if there is a standing delay.
pub(crate) fn shed(life: &mut Life, decisions: &mut Vec<Decision>) {
    let Life { risk, lanes, config, hash, learnt, clock, step: Step { room, .. }, .. } = life;
    let at_ns = clock.at_ns;
    let (queues, tasks) = (&config.risk.queues, (risk.tasks.len() as i64, i64::from(config.risk.tasks_max)));
    let Some(congestion) = &mut risk.congestion else { return };
    for victim in congestion.look(queues, at_ns, tasks, hash) {
        let decision = Decision::Shed(Shed {
            task: victim.task,
            reason: ShedReason::StandingDelay,
            class: victim.class,
            waited_ns: victim.waited_ns,
            target_ns: queues.delay_target_ns,
            number: victim.number,
        });
        risk.forget(victim.task, lanes, learnt, hash);
        room.take(&decision);
        decisions.push(decision);
    }
}

/// Switches to another policy: tasks are queued in its order, and the previous policy's state is dropped.
pub(crate) fn choose_policy(life: &mut Life, policy: TaskPolicy) {
    let Life { risk, lanes, hash, learnt, .. } = life;
    let tasks: Vec<_> = risk.tasks.keys().copied().collect();
    learnt.choose_policy(policy, lanes.len(), hash);
    for task in &tasks {
        risk.dequeue(*task);
    }
    risk.policy = policy;
    hash.replace(&mut risk.turns.contribution, 0);
    risk.turns = Turns::default();
    risk.lanes.busy.iter_mut().for_each(|busy| busy.clear(hash));
    risk.prices.clear(hash);
    for id in tasks {
        let rest_ns = risk.rest_ns(&risk.tasks[&id], lanes);
        let task = risk.task_mut(id);
        task.rest_ns = rest_ns;
        task.refresh(hash);
        risk.enqueue(id);
    }
}

/// Asks for prices if the policy uses them and something has changed since the last question.
pub(crate) fn ask_prices(life: &mut Life, decisions: &mut Vec<Decision>) {
    if wants_prices(life) {
        let Life { risk, lanes, config, hash, clock: Clock { at_ns, .. }, .. } = life;
        let asks = risk.prices.look(*at_ns, config.risk.price_interval_ns, lanes, &risk.rates, hash);
        decisions.extend(asks.map(Decision::AskPrices));
    }
}

/// Stores the prices that answer the last question.
pub(crate) fn priced(life: &mut Life, priced: &Priced) {
    life.risk.prices.answer(priced, &mut life.hash);
}

/// Books a slice as done: charges its service, updates its task, and learns from its duration.
pub(crate) fn slice_done(life: &mut Life, done: &SliceDone, decisions: &mut Vec<Decision>) {
    let Life { risk, lanes, config, hash, learnt: known, clock: Clock { at_ns, .. }, .. } = &mut *life;
    if let Some(live) = &mut known.later.autoscale {
        live.worked(done.service_ns, hash);
    }
    let lane = &mut lanes[done.lane as usize];
    if lane.is_void_slice(done.slice) {
        return;
    }
    // The reserve counts only a slice that passed another one, not the passed slice.
    let was_passed = lane.passed().is_some_and(|passed| passed.slice == done.slice);
    let slice = lane.end_slice(*at_ns, done.slice, hash);
    if !was_passed {
        let percent = config.risk.critical_percent;
        risk.lanes.reserves[done.lane as usize].end(lane, done.service_ns, percent, hash);
    }
    let shadows = known.later.shadows.as_ref();
    if risk.policy.sees_utilization() || shadows.is_some_and(|all| all.any(TaskPolicy::sees_utilization)) {
        risk.lanes.busy[done.lane as usize].add(lane, *at_ns, done.service_ns, hash);
    }
    let Some(id) = slice.task else { return };
    // The task's place among its tenant's tasks may change.
    let turn = risk.dequeue(id);
    let task = risk.tasks.get_mut(&id).expect("slices of forgotten tasks are for nothing");
    let cost = task.cost_on(risk.widths.of_class(lane.class), slice.units.count());
    task.predicted_ns = task.predicted_ns.saturating_add(slice.predicted_ns);
    task.slices_running -= 1;
    task.slices_done += 1;
    task.units_left -= slice.units.count();
    let quanta = |service_ns: i64| service_ns.checked_div(config.risk.quantum_ns).unwrap_or(0);
    let before = quanta(task.service_ns);
    task.service_ns = task.service_ns.saturating_add(done.service_ns);
    task.quanta = task.quanta.saturating_add(quanta(task.service_ns) - before);
    if task.units_left == 0 {
        risk.complete = Some(id);
    }
    let rate_key = &task.spec.rate_key;
    if let Some(bandit) = &mut known.bandit {
        let predicted = risk.rates.predict(lane.class, rate_key, cost);
        if let Some(predicted) = predicted {
            bandit.slice_done(done.lane, predicted.mean_ns, done.service_ns, hash);
        }
        if task.units_left == 0 {
            decisions.extend(bandit.task_done(id, *at_ns, hash).map(Decision::FellBack));
        }
    }
    let learnt = rates::Done { slice: slice.slice, cost, service_ns: done.service_ns };
    if let Some(drifted) = risk.rates.learn(lane.class, rate_key, learnt, hash) {
        decisions.push(Decision::Drift(Drift {
            slice: slice.slice,
            lane: done.lane,
            rate_key: str::to_owned(rate_key),
            predicted_ns: drifted.predicted_ns,
            service_ns: done.service_ns,
            slices: drifted.slices,
        }));
    }
    // The predicted service was charged when the slice began; only the difference is charged now.
    let weighted_ns = risk.tenants.accounts.weighted_ns(&task.spec.tenant, done.service_ns);
    let rest_ns = risk.rest_ns(&risk.tasks[&id], lanes);
    let task = risk.task_mut(id);
    task.rest_ns = rest_ns;
    task.refresh(hash);
    let turn = risk.charge(id, turn, weighted_ns - slice.charged_ns, hash);
    risk.enqueue_at(id, &turn);
}

/// Removes a task that the shell has withdrawn.
pub(crate) fn drop_task(life: &mut Life, task: TaskId) {
    let Life { risk, lanes, hash, learnt, .. } = life;
    risk.forget(task, lanes, learnt, hash);
}

/// Forgets the tasks of a partition that this process no longer owns.
pub(crate) fn drop_partition(life: &mut Life, partition: PartitionId) {
    let Life { risk, lanes, hash, learnt, .. } = life;
    let of_partition = |task: &&Task| task.spec.partition == partition;
    let tasks: Vec<_> = risk.tasks.values().filter(of_partition).map(|task| task.spec.id).collect();
    for task in tasks {
        risk.forget(task, lanes, learnt, hash);
    }
}

/// Opens a lane's shares of tasks to all lanes. The lane finishes its running slice.
pub(crate) fn reopen_shares(life: &mut Life, lane: LaneId) {
    let Life { risk, hash, learnt, .. } = life;
    if let Some(bandit) = &mut learnt.bandit {
        bandit.lane_opened(lane, hash);
    }
    let shared: Vec<TaskId> = risk.queues.shares.of(lane).tasks().collect();
    for id in shared {
        risk.dequeue(id);
        let task = risk.task_mut(id);
        task.open_share(lane, hash);
        task.refresh(hash);
        risk.enqueue(id);
    }
}

/// Opens a lost lane's units, in flight or in its shares, to all lanes.
pub(crate) fn lane_lost(life: &mut Life, lane: LaneId) {
    let Life { risk, lanes, hash, learnt, .. } = life;
    if let Some(bandit) = &mut learnt.bandit {
        bandit.lane_opened(lane, hash);
    }
    risk.lanes.reserves[lane as usize].clear(hash);
    let mut hit: BTreeSet<_> = risk.queues.shares.of(lane).tasks().collect();
    let slices: Vec<_> = lanes[lane as usize].slices().filter(|slice| slice.task.is_some()).collect();
    hit.extend(slices.iter().filter_map(|slice| slice.task));
    for id in hit {
        let mut turn = risk.dequeue(id);
        let task = risk.task_mut(id);
        if task.share_of(lane).is_some() {
            task.open_share(lane, hash);
        }
        for slice in slices.iter().filter(|slice| slice.task == Some(id)) {
            let task = risk.task_mut(id);
            task.reopen(slice.units, hash);
            task.slices_running -= 1;
            turn = risk.charge(id, turn, -slice.charged_ns, hash);
        }
        risk.task_mut(id).refresh(hash);
        risk.enqueue_at(id, &turn);
    }
}

/// Expires tasks whose deadlines have passed, as far as the step has room. Then finishes a complete task.
pub(crate) fn settle(life: &mut Life, decisions: &mut Vec<Decision>) {
    let Life { risk, lanes, hash, learnt, clock, step: Step { room, .. }, .. } = life;
    let at_ns = clock.at_ns;
    while let Some(&(deadline_ns, task)) = risk.deadlines.first()
        && deadline_ns <= at_ns
        && room.is_there()
    {
        if let Some(bandit) = &mut learnt.bandit {
            bandit.task_expired(task, at_ns, hash);
        }
        let slices_running = risk.forget(task, lanes, learnt, hash).slices_running;
        let decision = Decision::Expire(Expire { task, deadline_ns, slices_running });
        room.take(&decision);
        decisions.push(decision);
    }
    if let Some(id) = risk.complete.take()
        && risk.knows(id)
    {
        let Task { slices_done: slices, service_ns, predicted_ns, .. } = risk.forget(id, lanes, learnt, hash);
        if let Some(live) = &mut learnt.later.autoscale {
            live.task_done(service_ns, hash);
        }
        decisions.push(Decision::Finish(Finish { task: id, slices, service_ns, predicted_ns }));
    }
}
