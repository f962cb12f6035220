//! Risk tasks: which are known, which units of them are to be begun, and who is to be next.
//!
//! ```text
//!   TaskArrived ──► Reject, or Admit ──► whole ──► Split ──► a lane's shares ──┐
//!                                  └───────────────────────► open ─────────────┴──► RunSlice ──► SliceDone ──► Finish
//!                                                             ▲   (slices)                        │
//!                                                             └────────────── LaneLost ◄──────────┘
//! ```
//!
//! Ticks go first: a lane gets a slice only when it has nothing else to do (`slices`), and a slice is as short as
//! `risk.slice_ns`: what comes meanwhile shares the processor with it so long. It owns tasks and their order; it must not know what a unit
//! is. No step walks over all tasks, but that in which a partition is revoked.
//!
//! With `risk.quantum_ns` a large task does not keep others waiting until it is done: a tenant's tasks take turns of that much service,
//! and of [`CLASS_SLICES`] slices one goes to a less urgent class.

mod accounts;
mod queue;
mod rates;
mod shares;
mod slices;
mod task;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use warptape_events::journal::{
    Admit, Decision, Expire, Finish, LaneId, PartitionId, Reject, RejectReason, RiskConfig, SliceDone,
    SplitPolicy, TaskArrived, TaskClass, TaskId, TenantWeight,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::lanes::Lane;
use crate::life::Life;
use crate::state_hash::{Component, StateHash, hash_component};
use accounts::Accounts;
use queue::{Queue, Turn};
use rates::Rates;
pub(crate) use slices::run;
pub(crate) use task::Units;
use task::{Stage, Task};

/// Of so many slices, one goes to a less urgent class, the next one in turn with the least urgent one.
const CLASS_SLICES: i64 = 16;

/// Everything known of tasks.
#[derive(Debug)]
pub(crate) struct Risk {
    tasks: BTreeMap<TaskId, Task>,
    /// Of the requests of all tasks.
    bytes: i64,
    /// Tasks that have a deadline, by it.
    deadlines: BTreeSet<(i64, TaskId)>,
    accounts: Accounts,
    rates: Rates,
    /// Tasks that are to be split.
    whole: Queue,
    /// Tasks that others go before, by the time until which.
    aside: BTreeSet<(i64, TaskId)>,
    /// Tasks with units that any lane may take.
    open: Queue,
    /// Tasks with units that the lane alone may take, by lane.
    shares: Vec<Queue>,
    /// Tasks with units that are still to be begun.
    waiting: i32,
    /// Lowest number that the next request may have.
    task_next: TaskId,
    /// Number of the next slice.
    slice_next: i64,
    /// The task whose last unit was done in this step; none between steps.
    complete: Option<TaskId>,
    contribution: u64,
}

impl Risk {
    pub(crate) fn new(config: &RiskConfig, lanes: usize) -> Self {
        Self {
            tasks: BTreeMap::new(),
            bytes: 0,
            deadlines: BTreeSet::new(),
            accounts: Accounts::new(&config.tenant_weights),
            rates: Rates::default(),
            whole: Queue::default(),
            aside: BTreeSet::new(),
            open: Queue::default(),
            shares: (0..lanes).map(|_| Queue::default()).collect(),
            waiting: 0,
            task_next: 0,
            slice_next: 0,
            complete: None,
            contribution: 0,
        }
    }

    /// Tasks known.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Tasks with units that are still to be begun.
    pub(crate) fn tasks_waiting(&self) -> i32 {
        self.waiting
    }

    pub(crate) fn knows(&self, task: TaskId) -> bool {
        self.tasks.contains_key(&task)
    }

    /// Lowest number that the next request may have.
    pub(crate) fn task_next(&self) -> TaskId {
        self.task_next
    }

    /// Number of the next slice.
    pub(crate) fn slice_next(&self) -> i64 {
        self.slice_next
    }

    /// Hash of the counters: nothing before there was a task.
    fn hash(&self) -> u64 {
        match (self.task_next, self.slice_next) {
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

    /// The quanta that a task begins with: as many as that of its tenant's has had which has had the least, so that it neither waits for
    /// all others nor they for it.
    fn first_quanta(&self, class: TaskClass, tenant: &Arc<str>) -> i64 {
        let queues = [&self.whole, &self.open].into_iter().chain(&self.shares);
        queues.filter_map(|queue| queue.quanta(class, tenant)).min().unwrap_or(0)
    }

    fn turn(&self, task: &Task) -> Turn {
        self.accounts.turn(task.class, &task.tenant)
    }

    /// Takes a task out of all queues, before it changes.
    fn dequeue(&mut self, task: TaskId) {
        let task = &self.tasks[&task];
        let (turn, due) = (self.turn(task), task.due());
        match task.stage {
            Stage::Whole | Stage::Reserved(_) => self.whole.remove(&turn, due),
            Stage::Aside(until_ns) => drop(self.aside.remove(&(until_ns, task.id))),
            Stage::Shared => {
                self.open.remove(&turn, due);
                for (lane, _) in &task.shares {
                    self.shares[*lane as usize].remove(&turn, due);
                }
            }
        }
        self.waiting -= i32::from(task.is_waiting());
    }

    /// Puts a task into the queues that it belongs to now.
    fn enqueue(&mut self, task: TaskId) {
        let task = &self.tasks[&task];
        let (turn, due) = (self.turn(task), task.due());
        match task.stage {
            Stage::Whole | Stage::Reserved(_) => self.whole.insert(&turn, due),
            Stage::Aside(until_ns) => drop(self.aside.insert((until_ns, task.id))),
            Stage::Shared => {
                if !task.open.is_empty() {
                    self.open.insert(&turn, due);
                }
                for (lane, _) in &task.shares {
                    self.shares[*lane as usize].insert(&turn, due);
                }
            }
        }
        self.waiting += i32::from(task.is_waiting());
    }

    /// Adds to the service of a task's tenant, and moves the tenant in every queue.
    fn charge(&mut self, task: TaskId, weighted_ns: i64, hash: &mut StateHash) {
        let old = self.turn(&self.tasks[&task]);
        let new = self.accounts.charge(&old, weighted_ns, hash);
        for queue in [&mut self.whole, &mut self.open].into_iter().chain(&mut self.shares) {
            queue.replace(&old, &new);
        }
    }

    /// Forgets a task; slices of it that run are for nothing.
    fn forget(&mut self, task: TaskId, lanes: &mut [Lane], hash: &mut StateHash) -> Task {
        self.dequeue(task);
        let task = self.tasks.remove(&task).expect("the caller knows the task");
        self.bytes -= task.bytes;
        task.forget(hash);
        if let Some(deadline_ns) = task.deadline_ns {
            self.deadlines.remove(&(deadline_ns, task.id));
        }
        self.accounts.leave(task.class, &task.tenant, hash);
        if task.slices_running > 0 {
            lanes.iter_mut().for_each(|lane| lane.void_slice(task.id, hash));
        }
        task
    }
}

/// Accepts a task or refuses it.
pub(crate) fn arrive(life: &mut Life, arrived: &TaskArrived, decisions: &mut Vec<Decision>) {
    let Life { risk, config, hash, at_ns, .. } = life;
    let (task, deadline_ns) = (arrived.task, arrived.deadline_ns);
    risk.task_next = risk.task_next.max(task + 1);
    risk.refresh(hash);
    let (tasks, tasks_max) = (risk.tasks.len() as i32, config.risk.tasks_max);
    let (bytes, bytes_max) = (risk.bytes + arrived.bytes, config.risk.bytes_max);
    let is_overloaded = tasks >= tasks_max || (tasks > 0 && bytes > bytes_max);
    let reason = if deadline_ns.is_some_and(|deadline_ns| deadline_ns <= *at_ns) {
        Some(RejectReason::Expired)
    } else if arrived.first_unit == 0 && is_overloaded {
        Some(RejectReason::Overloaded)
    } else {
        None
    };
    if let Some(reason) = reason {
        let reject = Reject { task, reason, tasks, tasks_max, deadline_ns, bytes, bytes_max };
        decisions.push(Decision::Reject(reject));
        return;
    }
    let stage = match config.risk.split {
        SplitPolicy::Dynamic if !arrived.gang => Stage::Shared,
        _ => Stage::Whole,
    };
    let tenant = risk.accounts.join(arrived.class, &arrived.tenant, hash);
    let quanta = match config.risk.quantum_ns {
        0 => 0,
        _ => risk.first_quanta(arrived.class, &tenant),
    };
    risk.tasks.insert(task, Task::new(arrived, tenant, stage, quanta, hash));
    risk.bytes = bytes;
    risk.deadlines.extend(deadline_ns.map(|deadline_ns| (deadline_ns, task)));
    risk.enqueue(task);
    let (class, tenant, tasks) = (arrived.class, arrived.tenant.clone(), tasks + 1);
    decisions.push(Decision::Admit(Admit { task, class, tenant, tasks }));
}

/// A lane is done with its slice.
pub(crate) fn slice_done(life: &mut Life, done: &SliceDone) {
    let Life { risk, lanes, config, hash, at_ns, .. } = life;
    let lane = &mut lanes[done.lane as usize];
    if lane.is_void_slice(done.slice) {
        return;
    }
    let slice = lane.end_slice(*at_ns, hash);
    let Some(id) = slice.task else { return };
    // It may have to let others of its tenant go first.
    risk.dequeue(id);
    let task = risk.tasks.get_mut(&id).expect("slices of forgotten tasks are for nothing");
    let cost = slice.units.count() * task.unit_cost;
    task.slices_running -= 1;
    task.slices_done += 1;
    task.units_left -= slice.units.count();
    let quanta = |service_ns: i64| service_ns.checked_div(config.risk.quantum_ns).unwrap_or(0);
    let before = quanta(task.service_ns);
    task.service_ns = task.service_ns.saturating_add(done.service_ns);
    task.quanta = task.quanta.saturating_add(quanta(task.service_ns) - before);
    task.refresh(hash);
    if task.units_left == 0 {
        risk.complete = Some(id);
    }
    risk.rates.learn(lane.kind, &task.rate_key, slice.slice, cost, done.service_ns, hash);
    // What it was predicted to take was charged when it began.
    let weighted_ns = risk.accounts.weighted_ns(&task.tenant, done.service_ns);
    risk.enqueue(id);
    risk.charge(id, weighted_ns - slice.charged_ns, hash);
}

/// The shell withdraws a task.
pub(crate) fn drop_task(life: &mut Life, task: TaskId) {
    let Life { risk, lanes, hash, .. } = life;
    risk.forget(task, lanes, hash);
}

/// Forgets the tasks of a partition that is not owned any more.
pub(crate) fn drop_partition(life: &mut Life, partition: PartitionId) {
    let Life { risk, lanes, hash, .. } = life;
    let of_partition = |task: &&Task| task.partition == partition;
    let tasks: Vec<_> = risk.tasks.values().filter(of_partition).map(|task| task.id).collect();
    for task in tasks {
        risk.forget(task, lanes, hash);
    }
}

/// What a lane had of tasks, in flight or as its share, goes back to be done by others.
pub(crate) fn lane_lost(life: &mut Life, lane: LaneId) {
    let Life { risk, lanes, hash, .. } = life;
    let mut hit: BTreeSet<_> = risk.shares[lane as usize].tasks().collect();
    let slice = lanes[lane as usize].slice().filter(|slice| slice.task.is_some());
    hit.extend(slice.and_then(|slice| slice.task));
    for id in hit {
        risk.dequeue(id);
        let task = risk.task_mut(id);
        if task.share_of(lane).is_some() {
            task.open_share(lane, hash);
        }
        if let Some(slice) = slice.filter(|slice| slice.task == Some(id)) {
            task.reopen(slice.units, hash);
            task.slices_running -= 1;
        }
        task.refresh(hash);
        risk.enqueue(id);
    }
    if let Some(slice) = slice {
        risk.charge(slice.task.expect("filtered above"), -slice.charged_ns, hash);
    }
}

/// Ends what has met its deadline, as far as the step has room, and then what is done.
pub(crate) fn settle(life: &mut Life, decisions: &mut Vec<Decision>) {
    let Life { risk, lanes, hash, at_ns, room, .. } = life;
    while let Some(&(deadline_ns, task)) = risk.deadlines.first()
        && deadline_ns <= *at_ns
        && room.is_there()
    {
        let slices_running = risk.forget(task, lanes, hash).slices_running;
        let decision = Decision::Expire(Expire { task, deadline_ns, slices_running });
        room.take(&decision);
        decisions.push(decision);
    }
    if let Some(id) = risk.complete.take()
        && risk.knows(id)
    {
        let Task { id: task, slices_done: slices, service_ns, .. } = risk.forget(id, lanes, hash);
        decisions.push(Decision::Finish(Finish { task, slices, service_ns }));
    }
}

/// Hash of the configuration: nothing of the default, so that states without tasks have the hash that they had before there
/// were any.
pub(crate) fn config_hash(config: &RiskConfig) -> u64 {
    if *config == RiskConfig::default() {
        return 0;
    }
    let tenants = config.tenant_weights.iter().map(|TenantWeight { tenant, weight }| {
        let fields = [xxh3_64(tenant.as_bytes()) as i64, i64::from(*weight)];
        hash_component(Component::RiskConfig, fields)
    });
    let rest = [config.slice_ns, i64::from(config.tasks_max), config.split as i64];
    // Nothing of the default, again.
    let bytes = match config.bytes_max == RiskConfig::default().bytes_max {
        true => 0,
        false => hash_component(Component::RiskBytes, [config.bytes_max]),
    };
    let quantum = match config.quantum_ns {
        0 => 0,
        quantum_ns => hash_component(Component::RiskQuantum, [quantum_ns]),
    };
    let tenants = tenants.fold(hash_component(Component::RiskConfig, rest), u64::wrapping_add);
    tenants.wrapping_add(bytes).wrapping_add(quantum)
}

/// Hash of everything here, by walking.
pub(crate) fn walked_hash(risk: &Risk) -> u64 {
    let tasks = risk.tasks.values().map(|task| task.hash().wrapping_add(task.units_hash()));
    let rest = [risk.hash(), risk.accounts.walked_hash(), risk.rates.walked_hash()];
    tasks.chain(rest).fold(0, u64::wrapping_add)
}

/// Computes again, by walking, what is kept.
///
/// # Panics
/// If something differs.
pub(crate) fn audit(life: &Life) {
    let risk = &life.risk;
    assert!(risk.complete.is_none(), "a task that is complete was not settled");
    let mut fresh = Risk::new(&life.config.risk, life.lanes.len());
    let mut by_tenant: BTreeMap<(TaskClass, Arc<str>), i32> = BTreeMap::new();
    for task in risk.tasks.values() {
        audit_task(life, task);
        *by_tenant.entry((task.class, task.tenant.clone())).or_default() += 1;
        fresh.deadlines.extend(task.deadline_ns.map(|deadline_ns| (deadline_ns, task.id)));
        let (turn, due) = (risk.turn(task), task.due());
        match task.stage {
            Stage::Whole | Stage::Reserved(_) => fresh.whole.insert(&turn, due),
            Stage::Aside(until_ns) => drop(fresh.aside.insert((until_ns, task.id))),
            Stage::Shared if task.open.is_empty() => {}
            Stage::Shared => fresh.open.insert(&turn, due),
        }
        task.shares.iter().for_each(|(lane, _)| fresh.shares[*lane as usize].insert(&turn, due));
        fresh.waiting += i32::from(task.is_waiting());
        fresh.bytes += task.bytes;
    }
    risk.accounts.audit(&by_tenant);
    assert_eq!(
        (&risk.deadlines, risk.waiting, risk.bytes),
        (&fresh.deadlines, fresh.waiting, fresh.bytes),
        "deadlines, waiting tasks, bytes"
    );
    assert_eq!((&risk.whole, &risk.aside), (&fresh.whole, &fresh.aside), "tasks to be split");
    assert_eq!((&risk.open, &risk.shares), (&fresh.open, &fresh.shares), "tasks to be taken from");
}

fn audit_task(life: &Life, task: &Task) {
    let running = life.lanes.iter().filter_map(Lane::slice).filter(|slice| slice.task == Some(task.id));
    let mut units: Vec<_> = running.map(|slice| slice.units).collect();
    assert_eq!(units.len() as i32, task.slices_running, "task {}: slices", task.id);
    units.extend(&task.open);
    units.extend(task.shares.iter().map(|(_, units)| *units));
    units.sort_unstable();
    assert!(units.iter().all(|units| units.count() > 0), "task {}: no units", task.id);
    assert!(units.is_sorted_by(|one, next| one.to <= next.from), "task {}: units twice", task.id);
    assert!(task.open.is_sorted_by(|one, next| one.to < next.from), "task {}: units apart", task.id);
    assert!(task.open.len() <= 2 * life.lanes.len() + 1, "task {}: in too many pieces", task.id);
    let left: i64 = units.iter().map(|units| units.count()).sum();
    assert_eq!(left, task.units_left, "task {}: units left", task.id);
    let owners = || task.shares.iter().map(|(lane, _)| *lane);
    assert!(owners().is_sorted_by(|one, next| one < next), "task {}: shares by lane", task.id);
    assert!(owners().all(|lane| life.lanes[lane as usize].ready), "task {}: a lost lane's share", task.id);
}
