//! The choice of slices: the units that each lane works on next.
//!
//! ```text
//!   a lane is free: ready, with nothing in flight, and hence with nothing waiting
//!     │
//!     ├─ its own shares ──┐
//!     ├─ open tasks ──────┼──► the first by class, tenant, deadline, arrival ──► RunSlice
//!     └─ whole tasks ─────┘         │
//!                                   └─ whole: Split; a gang: all of its lanes, or Reserve
//!
//!   a lane has ticks and no slice: a critical or aged task, in the same way, if it has time in reserve; never a gang
//!   a lane has a slice of a less urgent task: a critical task, in the same way; its slice passes the other one
//! ```
//!
//! It owns the choice and the size of a slice; it must not change what a task is.

use warptape_events::journal::{
    Decision, LaneId, Reserve, RunSlice, Share, SliceReason, Split, SplitPolicy, TaskClass, TaskId,
};

use super::queue::{Head, Queue};
use super::shadow;
use super::shares::shares;
use super::steal;
use super::task::{Stage, TaskSpec};
use super::{CLASS_SLICES, Queues, Risk};
use crate::config::GANG_WAIT_SLICES;
use crate::lanes::{Lane, Slice};
use crate::life::{Clock, Life};
use crate::policy::task::{CERTAIN_PPM, Choice, Offer, TaskPolicy, choose, is_explored, preferred_ppm};
use crate::service::Serving;

/// The place from which a lane takes units of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// Units that any lane may take.
    Open,
    /// Units of the lane's own share.
    Share,
    /// Units of another lane's share, which this lane takes.
    Other(LaneId),
    /// Units of a task that is not split yet.
    Whole,
}

/// The task for a lane's next slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    source: Source,
    task: TaskId,
    reason: SliceReason,
    /// Probability of this choice, in parts per million.
    propensity_ppm: i32,
}

impl Next {
    /// A choice that is not drawn.
    pub(super) fn certain((source, task): (Source, TaskId), reason: SliceReason) -> Self {
        Self { source, task, reason, propensity_ppm: CERTAIN_PPM }
    }
}

/// Most aged tasks that are examined for a lane: those that have waited longest may all be for other lanes.
const AGED_MAX: usize = 64;
/// Most tasks of each source among which a lane draws.
const EXPLORED_MAX: usize = 64;

/// Gives every free lane a slice, if one is available and the step has room. Returns the time of the next check, even
/// without further input.
pub(crate) fn run(life: &mut Life, decisions: &mut Vec<Decision>) -> i64 {
    // Decisions that had no room in the last step go first; expiries of tasks may be among them.
    if life.step.room.is_short() {
        return i64::MAX;
    }
    let mut wake_ns = life.risk.deadlines.first().map_or(i64::MAX, |(deadline_ns, _)| *deadline_ns);
    if life.risk.numbers.waiting == 0 {
        return wake_ns;
    }
    come_back(life);
    life.lanes.note();
    let serving = Serving::of(&life.lanes);
    let mut plan = None;
    loop {
        let before = decisions.len();
        let mut from = 0;
        while let Some(lane) = life.lanes.next_free(from) {
            from = lane + 1;
            if serving.serves(&life.lanes[lane]) && life.step.room.is_there() {
                let first = decisions.len();
                wake_ns = wake_ns.min(serve(life, lane as LaneId, serving, &mut plan, decisions));
                decisions[first..].iter().for_each(|decision| life.step.room.take(decision));
            }
        }
        if has_reserve(life) {
            wake_ns = wake_ns.min(run_beside(life, serving, decisions));
        }
        wake_ns = wake_ns.min(run_past(life, serving, decisions));
        // A lane that splits a task takes some of it, and may leave some for a lane that found no units before.
        if !decisions[before..].iter().any(|decision| matches!(decision, Decision::Split(_))) {
            break;
        }
    }
    steal::run(life, serving, decisions);
    if has_reserve(life) {
        wake_ns = wake_ns.min(life.risk.ageing.next_ns(life.clock.at_ns));
    }
    wake_ns.min(life.risk.queues.aside.first().map_or(i64::MAX, |(until_ns, _)| *until_ns))
}

/// True if lanes with ticks have a reserve.
fn has_reserve(life: &Life) -> bool {
    life.config.risk.critical_percent > 0
}

/// Urgent tasks for lanes with ticks, as far as one check answers for all lanes.
#[derive(Clone, Copy)]
struct Urgent {
    /// True if there is an aged task, or a critical task that any lane may take.
    for_all: bool,
    /// True if there is a critical task that is not split yet; only lanes with a weight take part in the split.
    to_split: bool,
}

impl Urgent {
    fn of(life: &Life) -> Self {
        let is_aged = life.risk.ageing.aged(life.clock.at_ns).next().is_some();
        let critical = Self::critical(life);
        Self { for_all: is_aged || critical.for_all, ..critical }
    }

    /// Checks for critical tasks only, not for aged ones.
    fn critical(life: &Life) -> Self {
        Self {
            for_all: life.risk.queues.open.has_critical(),
            to_split: life.risk.queues.whole.has_critical(),
        }
    }

    /// True if there may be such a task for a lane. The search for it may still find none.
    fn is_there(self, life: &Life, serving: Serving, lane: LaneId) -> bool {
        let shares = &life.risk.queues.shares;
        self.for_all
            || (self.to_split && splits(life, serving, lane))
            || (!shares.are_empty() && shares.of(lane).has_critical())
    }
}

/// Gives slices of critical or aged tasks to lanes with ticks and an available reserve. Returns the earliest time at
/// which the reserve of another lane with such a task is available again.
fn run_beside(life: &mut Life, serving: Serving, decisions: &mut Vec<Decision>) -> i64 {
    // The returned times are computed for the tasks before any lane took one. Recorded journals contain these times.
    let before = Urgent::of(life);
    // Tasks that remain for the next lane.
    let mut now = before;
    let mut wake_ns = i64::MAX;
    for index in life.lanes.may_have_ticks_alone().iter() {
        let lane = index as LaneId;
        let serves = life.lanes.is_in_service(index) || serving.serves(&life.lanes[index]);
        if !life.lanes.has_ticks_alone(index) || !serves || !before.is_there(life, serving, lane) {
            continue;
        }
        let next_ns = life.risk.lanes.reserves[index].next_ns();
        if next_ns > life.clock.at_ns {
            wake_ns = wake_ns.min(next_ns);
        } else if now.is_there(life, serving, lane) {
            let decided = decisions.len();
            serve_beside(life, lane, serving, decisions);
            if decisions.len() > decided {
                now = Urgent::of(life);
            }
        }
    }
    wake_ns
}

/// Lets critical tasks pass slices of less urgent ones. The thread of such a slice yields the processor, and the system
/// may delay it while any other work wants the core. If the lane has ticks too, the critical slice uses its reserve.
/// Returns the earliest time at which the reserve of a lane with such a task is available again.
fn run_past(life: &mut Life, serving: Serving, decisions: &mut Vec<Decision>) -> i64 {
    let mut wake_ns = i64::MAX;
    let mut now = Urgent::critical(life);
    for index in 0..life.lanes.len() {
        let lane = index as LaneId;
        let is_asked = now.is_there(life, serving, lane) && may_be_passed(life, index);
        if !is_asked || !serving.serves(&life.lanes[index]) {
            continue;
        }
        let next_ns = match life.lanes[index].has_ticks() {
            true if !has_reserve(life) => continue,
            true => life.risk.lanes.reserves[index].next_ns(),
            false => 0,
        };
        if next_ns > life.clock.at_ns {
            wake_ns = wake_ns.min(next_ns);
            continue;
        }
        serve_beside(life, lane, serving, decisions);
        now = Urgent::critical(life);
    }
    wake_ns
}

/// True if a lane works on a slice of a non-critical or forgotten task, and that slice has not passed another.
fn may_be_passed(life: &Life, index: usize) -> bool {
    let lane = &life.lanes[index];
    let is_urgent = |task: TaskId| life.risk.tasks[&task].spec.class == TaskClass::Critical;
    lane.passed().is_none() && lane.slice().is_some_and(|slice| !slice.task.is_some_and(is_urgent))
}

/// Gives a lane a slice in addition to its other work. In addition to ticks, the task is critical or aged; in addition
/// to a slice, it is critical.
fn serve_beside(life: &mut Life, lane: LaneId, serving: Serving, decisions: &mut Vec<Decision>) {
    let mut splits = splits(life, serving, lane);
    // Each iteration ends the search, splits a task, or excludes tasks that need a split.
    loop {
        let passes = life.lanes[lane as usize].slice().is_some();
        let next = if passes { critical_for(life, lane, splits) } else { next_beside(life, lane, splits) };
        let Some(next) = next else { return };
        let Next { source, task, .. } = next;
        if !life.step.room.is_there() {
            return;
        }
        let first = decisions.len();
        if source != Source::Whole {
            let Life { risk, lanes, hash, learnt, clock: Clock { at_ns, .. }, .. } = &mut *life;
            let worker = &lanes[lane as usize];
            if worker.has_ticks() {
                risk.lanes.reserves[lane as usize].begin(worker, *at_ns, hash);
            }
            if passes && risk.ageing.is_turn(risk.numbers.slice_next) {
                learnt.later.owe_aged(true, hash);
            }
            start(life, lane, next, decisions);
        } else {
            let shares = shares_of(life, serving, task);
            match shares.iter().any(|share| share.lane == lane) {
                true => split(life, task, &shares, decisions),
                false => splits = false,
            }
        }
        decisions[first..].iter().for_each(|decision| life.step.room.take(decision));
        if source != Source::Whole {
            return;
        }
    }
}

/// Chooses the task for a lane in addition to its ticks.
fn next_beside(life: &Life, lane: LaneId, splits: bool) -> Option<Next> {
    let aged = || aged_for(life, lane, splits);
    let critical = || critical_for(life, lane, splits);
    match is_turn_of_aged(life) {
        true => aged().or_else(critical),
        false => critical().or_else(aged),
    }
}

/// Chooses the critical task for a lane in addition to its other work.
fn critical_for(life: &Life, lane: LaneId, splits: bool) -> Option<Next> {
    let first = first_to_begin(life, lane, splits, TaskClass::Critical)?;
    Some(Next::certain(first, SliceReason::Reserved))
}

/// True if the next slice that passes no other one is for the longest-waiting aged task.
fn is_turn_of_aged(life: &Life) -> bool {
    life.risk.ageing.is_turn(life.risk.numbers.slice_next) || life.learnt.later.owes_aged
}

/// Finds the longest-waiting aged task that a lane may begin at once.
fn aged_for(life: &Life, lane: LaneId, splits: bool) -> Option<Next> {
    let source = |id: TaskId| {
        let task = &life.risk.tasks[&id];
        match task.stage {
            // Open units of a task that was already split go before those of the lane's own share.
            Stage::Shared if !task.open.is_empty() => Some(Source::Open),
            Stage::Shared if task.share_of(lane).is_some() => Some(Source::Share),
            Stage::Whole if splits && !task.spec.gang => Some(Source::Whole),
            Stage::Shared | Stage::Whole | Stage::Reserved(_) | Stage::Aside(_) => None,
        }
    };
    let mut aged = life.risk.ageing.aged(life.clock.at_ns).take(AGED_MAX);
    aged.find_map(|task| Some(Next::certain((source(task)?, task), SliceReason::Aged)))
}

/// Returns gangs to the queue after the time in which they let others go first.
fn come_back(life: &mut Life) {
    while let Some(&(until_ns, task)) = life.risk.queues.aside.first()
        && until_ns <= life.clock.at_ns
    {
        set_stage(life, task, Stage::Whole);
    }
}

fn set_stage(life: &mut Life, task: TaskId, stage: Stage) {
    let Life { risk, hash, .. } = life;
    risk.dequeue(task);
    let changed = risk.task_mut(task);
    changed.stage = stage;
    changed.refresh(hash);
    risk.enqueue(task);
}

/// A planned split of a whole task in this step.
struct Plan {
    task: TaskId,
    shares: Vec<Share>,
}

/// Gives a free lane a slice, if one is available. Returns the time until which the lane waits for a gang, or
/// `i64::MAX`.
fn serve(
    life: &mut Life,
    lane: LaneId,
    serving: Serving,
    plan: &mut Option<Plan>,
    decisions: &mut Vec<Decision>,
) -> i64 {
    let mut splits = splits(life, serving, lane);
    // Each iteration ends the search, splits a task, sets a gang back, returns one to the queue, or excludes tasks that
    // need a split. A returned gang then waits, begins or has no share for this lane.
    loop {
        let Some(next) = next(life, lane, splits) else {
            // A gang that was set back returns early if no other task is left.
            match life.risk.queues.aside.first().filter(|_| splits) {
                Some(&(_, task)) => set_stage(life, task, Stage::Whole),
                None => return i64::MAX,
            }
            continue;
        };
        let task = next.task;
        if next.source != Source::Whole {
            let class = life.risk.tasks[&task].spec.class;
            let instead = match next.reason {
                SliceReason::Order => shadow::begins(life, lane, splits, class),
                _ => Vec::new(),
            };
            start(life, lane, next, decisions);
            shadow::beside_slice(lane, task, &instead, decisions);
            return i64::MAX;
        }
        let Plan { shares, .. } = match plan.take() {
            Some(known) if known.task == task => plan.insert(known),
            _ => plan.insert(Plan { task, shares: shares_of(life, serving, task) }),
        };
        if shares.iter().all(|share| share.lane != lane) {
            splits = false;
        } else if !life.risk.tasks[&task].spec.gang {
            split(life, task, shares, decisions);
        } else if shares.iter().all(|share| life.lanes[share.lane as usize].is_free()) {
            split(life, task, shares, decisions);
            for share in shares {
                start(life, share.lane, Next::certain((Source::Share, task), SliceReason::Order), decisions);
            }
            return i64::MAX;
        } else if let Some(until_ns) = reserve(life, task, shares, decisions) {
            return until_ns;
        }
    }
}

/// True if the lane may get a share of a task; false if it has weight 0 while another lane has more.
pub(super) fn splits(life: &Life, serving: Serving, lane: LaneId) -> bool {
    let has_weight = |other: &Lane| serving.has(other) && other.weight.current > 0;
    life.lanes[lane as usize].weight.current > 0 || !life.lanes.iter().any(has_weight)
}

/// Chooses the task for a free lane.
fn next(life: &Life, lane: LaneId, splits: bool) -> Option<Next> {
    let risk = &life.risk;
    let slice = risk.numbers.slice_next;
    if is_turn_of_aged(life)
        && let Some(aged) = aged_for(life, lane, splits)
    {
        return Some(aged);
    }
    let of_order = |first| Next::certain(first, SliceReason::Order);
    if life.config.risk.quantum_ns > 0 && slice % CLASS_SLICES == CLASS_SLICES - 1 {
        let first = |class| first_to_begin(life, lane, splits, class);
        let classes = [TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch];
        let mut there = classes.into_iter().filter_map(first).skip(1);
        let is_least = slice / CLASS_SLICES % 2 == 0;
        if let Some(first) = if is_least { there.last() } else { there.next() } {
            return Some(of_order(first));
        }
    }
    // Ties go to the first source: open units go before those of the lane's own share.
    let first = heads(life, lane, splits, None).min_by(|(_, one), (_, other)| one.order(other));
    let (source, head) = first?;
    let preferred = (source, head.due.task);
    Some(match life.config.risk.explore_ppm > 0 && begins(life, source, &head) {
        true => explore(life, lane, splits, (source, head)),
        false => of_order(preferred),
    })
}

/// Draws among the tasks of a class that a free lane may begin, or returns the first one in the policy's order.
fn explore(life: &Life, lane: LaneId, splits: bool, (source, head): (Source, Head<'_>)) -> Next {
    let explore_ppm = life.config.risk.explore_ppm;
    let address = ("task/explore", life.config.placement_seed, life.risk.numbers.slice_next);
    let preferred = (source, head.due.task);
    if !is_explored(address, explore_ppm) {
        let Queues { open, shares, whole, .. } = &life.risk.queues;
        let count = match shares.of(lane).is_empty() && (!splits || whole.is_empty()) {
            true => open.count_with(&head, EXPLORED_MAX),
            false => drawn_from(life, lane, splits, &head, source).len(),
        };
        let propensity_ppm = preferred_ppm(explore_ppm, count);
        return Next { propensity_ppm, ..Next::certain(preferred, SliceReason::Order) };
    }
    let tasks = drawn_from(life, lane, splits, &head, source);
    let position = tasks.iter().position(|(task, _)| *task == preferred.1).expect("it is among them");
    let Choice { index, propensity_ppm, .. } = choose(address, explore_ppm, tasks.len(), position);
    let (task, source) = if index == position { (preferred.1, source) } else { tasks[index] };
    Next { source, task, reason: SliceReason::Explored, propensity_ppm }
}

/// Tasks among which a lane draws, by number: its candidates and the preferred task.
fn drawn_from(
    life: &Life,
    lane: LaneId,
    splits: bool,
    preferred: &Head<'_>,
    source: Source,
) -> Vec<(TaskId, Source)> {
    let mut tasks = Vec::with_capacity(3 * EXPLORED_MAX + 1);
    tasks.extend(tasks_of_sources(life, lane, splits, preferred.turn.class, EXPLORED_MAX));
    tasks.push((preferred.due.task, source));
    tasks.sort_unstable();
    tasks.dedup_by_key(|(task, _)| *task);
    tasks
}

/// Tasks of a class that a free lane may begin: at most `most` of each source, in the order of kind, tenant and due
/// time. A task may have two sources.
pub(super) fn tasks_of_sources(
    life: &Life,
    lane: LaneId,
    splits: bool,
    class: TaskClass,
    most: usize,
) -> impl Iterator<Item = (TaskId, Source)> {
    let Risk { tasks, queues: Queues { open, shares, whole, .. }, .. } = &life.risk;
    let may_split = move |task: &TaskId| splits && !tasks[task].spec.gang;
    let open = open.tasks_of(class).take(most).map(|task| (task, Source::Open));
    let share = shares.of(lane).tasks_of(class).take(most).map(|task| (task, Source::Share));
    let whole = whole.tasks_of(class).filter(may_split).take(most).map(|task| (task, Source::Whole));
    open.chain(share).chain(whole)
}

/// A task that a lane could have begun, with the figures that determine its place.
pub(crate) struct TaskAccount {
    pub(crate) task: TaskId,
    pub(crate) class: TaskClass,
    /// Service of its tenant divided by the weight, in nanoseconds; 0 if the policy does not use it.
    pub(crate) service_ns: i64,
    /// Its place among its tenant's tasks: quanta of service, then a time.
    pub(crate) quanta: i64,
    pub(crate) due_ns: i64,
    pub(crate) offer: Offer,
}

/// The first task of each kind and class that a lane could begin, by source.
pub(crate) fn account(life: &Life, lane: LaneId) -> Vec<TaskAccount> {
    let splits = splits(life, Serving::of(&life.lanes), lane);
    let shares = life.risk.queues.shares.of(lane);
    let queues = [Some(&life.risk.queues.open), Some(shares), splits.then_some(&life.risk.queues.whole)];
    let class_of_lane = life.lanes[lane as usize].class;
    let account = |head: Head<'_>| {
        let key = &life.risk.tasks[&head.due.task].spec.rate_key;
        TaskAccount {
            task: head.due.task,
            class: head.turn.class,
            service_ns: head.turn.service_ns,
            quanta: head.due.quanta,
            due_ns: head.due.due_ns,
            offer: Offer {
                price: life.risk.prices.price(key),
                fs_per_cost: life.risk.rates.fs_per_cost(class_of_lane, key),
                turn_ns: head.due.due_ns.saturating_sub(life.clock.at_ns),
            },
        }
    };
    let classes = [TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch];
    let heads = |queue: &Queue| -> Vec<TaskAccount> {
        classes.into_iter().flat_map(|class| queue.heads_of(class)).map(account).collect()
    };
    queues.into_iter().flatten().flat_map(heads).collect()
}

/// The task that a free lane would begin if this one did not exist.
pub(crate) fn next_without(life: &mut Life, lane: LaneId, task: TaskId) -> Option<TaskId> {
    life.risk.dequeue(task);
    let splits = splits(life, Serving::of(&life.lanes), lane);
    next(life, lane, splits).map(|next| next.task)
}

/// First task of each source: of this class, or of the most urgent class if it is `None`.
fn heads(
    life: &Life,
    lane: LaneId,
    splits: bool,
    class: Option<TaskClass>,
) -> impl Iterator<Item = (Source, Head<'_>)> {
    let queues = [
        (Source::Open, Some(&life.risk.queues.open)),
        (Source::Share, Some(life.risk.queues.shares.of(lane))),
        (Source::Whole, splits.then_some(&life.risk.queues.whole)),
    ];
    let policy = life.risk.policy;
    queues
        .into_iter()
        .filter_map(move |(source, queue)| Some((source, first_of(life, lane, queue?, class, policy)?)))
}

/// The first task of a class that the lane can begin at once.
fn first_to_begin(life: &Life, lane: LaneId, splits: bool, class: TaskClass) -> Option<(Source, TaskId)> {
    let begin = heads(life, lane, splits, Some(class)).filter(|(source, head)| begins(life, *source, head));
    let first = begin.min_by(|(_, one), (_, other)| one.order(other));
    first.map(|(source, head)| (source, head.due.task))
}

/// The lane's next task of a queue: of this class, or of the most urgent class if it is `None`.
pub(super) fn first_of<'a>(
    life: &Life,
    lane: LaneId,
    queue: &'a Queue,
    class: Option<TaskClass>,
    policy: TaskPolicy,
) -> Option<Head<'a>> {
    let class = match (class, policy) {
        (Some(class), TaskPolicy::First(_) | TaskPolicy::Push(_)) => return queue.first_of(class),
        (None, TaskPolicy::First(_) | TaskPolicy::Push(_)) => return queue.first(),
        (Some(class), TaskPolicy::LpPrice) => class,
        (None, TaskPolicy::LpPrice) => queue.first_class()?,
    };
    let class_of_lane = life.lanes[lane as usize].class;
    let offer = |head: &Head<'_>| Offer {
        price: life.risk.prices.price(head.kind),
        fs_per_cost: life.risk.rates.fs_per_cost(class_of_lane, head.kind),
        turn_ns: head.due.due_ns.saturating_sub(life.clock.at_ns),
    };
    let offers: Vec<_> = queue.heads_of(class).map(|head| (head, offer(&head))).collect();
    // Among the kinds that are worth about as much as the best one, the first one's tenant is next. The most urgent of
    // that tenant's kinds is taken.
    let best = offers.iter().map(|(_, offer)| *offer).max_by(|one, other| one.worth(*other))?;
    let about_best = offers.iter().filter(|(_, offer)| offer.is_about(best));
    let (first, _) = about_best.min_by(|(one, _), (other, _)| one.order(other))?;
    let of_tenant = offers.iter().filter(|(head, _)| head.turn == first.turn);
    let most_urgent =
        of_tenant.max_by(|(one, its), (other, others)| its.urgency(*others).then_with(|| other.order(one)));
    most_urgent.map(|(head, _)| *head)
}

/// True if a lane can begin the task at once. A gang that is not split must wait for its other lanes.
fn begins(life: &Life, source: Source, head: &Head<'_>) -> bool {
    source != Source::Whole || !life.risk.tasks[&head.due.task].spec.gang
}

/// Split of a task's units among the lanes that get work now. Lanes of weight 0 get no units while another lane has a
/// weight.
fn shares_of(life: &Life, serving: Serving, task: TaskId) -> Vec<Share> {
    let task = &life.risk.tasks[&task];
    let units = task.open[0];
    let stand_in = !life.lanes.iter().any(|lane| serving.has(lane) && lane.weight.current > 0);
    let score = |lane: &Lane| match policy_of(life) {
        _ if !serving.has(lane) => 0,
        _ if stand_in => 1,
        SplitPolicy::Equal => i64::from(lane.weight.current > 0),
        SplitPolicy::Score | SplitPolicy::Dynamic => i64::from(lane.weight.current),
    };
    let scores: Vec<_> = life.lanes.iter().map(|lane| (lane.id, score(lane))).collect();
    shares(units.from, units.count(), &scores)
}

/// Policy for tasks that must be split; `Dynamic` splits by score.
fn policy_of(life: &Life) -> SplitPolicy {
    match life.config.risk.split {
        SplitPolicy::Equal => SplitPolicy::Equal,
        SplitPolicy::Score | SplitPolicy::Dynamic => SplitPolicy::Score,
    }
}

fn split(life: &mut Life, task: TaskId, shares: &[Share], decisions: &mut Vec<Decision>) {
    let policy = policy_of(life);
    let Life { risk, hash, .. } = life;
    risk.dequeue(task);
    let changed = risk.task_mut(task);
    changed.split(shares, hash);
    let gang = changed.spec.gang;
    risk.enqueue(task);
    decisions.push(Decision::Split(Split { task, policy, gang, shares: shares.to_vec() }));
}

/// Makes a free lane wait for the other lanes of a gang, and returns the end of the wait. If that has passed, the gang
/// lets other tasks go first for the same time, and the result is `None`.
fn reserve(life: &mut Life, task: TaskId, shares: &[Share], decisions: &mut Vec<Decision>) -> Option<i64> {
    let until_ns = life.clock.at_ns + GANG_WAIT_SLICES * life.config.risk.slice_ns;
    match life.risk.tasks[&task].stage {
        Stage::Reserved(until_ns) if until_ns > life.clock.at_ns => Some(until_ns),
        Stage::Reserved(_) => {
            set_stage(life, task, Stage::Aside(until_ns));
            None
        }
        _ => {
            set_stage(life, task, Stage::Reserved(until_ns));
            let lanes: Vec<_> = shares.iter().map(|share| share.lane).collect();
            let is_busy = |lane: &LaneId| !life.lanes[*lane as usize].is_free();
            let busy = lanes.iter().copied().filter(is_busy).collect();
            decisions.push(Decision::Reserve(Reserve { task, lanes, busy, until_ns }));
            Some(until_ns)
        }
    }
}

/// Starts a slice of a task on a lane without a slice, or on one whose slice may be passed.
pub(super) fn start(life: &mut Life, lane: LaneId, next: Next, decisions: &mut Vec<Decision>) {
    let Next { source, task: id, reason, propensity_ppm } = next;
    let Life { risk, lanes, config, hash, learnt, clock: Clock { at_ns, .. }, .. } = life;
    let tasks_waiting = risk.numbers.waiting;
    let worker = &mut lanes[lane as usize];
    let class = worker.class;
    let queued = risk.dequeue(id);
    let (rates, task) = (&risk.rates, risk.tasks.get_mut(&id).expect("queues hold known tasks"));
    let key = &task.spec.rate_key;
    let width = risk.widths.of_class(class);
    let units_max = task.spec.slice_units(rates, class, width, config.risk.slice_ns);
    let service_fs_per_cost = rates.fs_per_cost(class, key);
    let units = match source {
        Source::Share => task.take_share(lane, units_max, hash),
        Source::Other(owner) => task.take_end_of_share(owner, units_max, hash),
        Source::Open | Source::Whole => task.take_open(units_max, hash),
    };
    let predicted = rates.predict(class, &task.spec.rate_key, task.cost_on(width, units.count()));
    let has_predictor = rates.has_predictor();
    task.slices_running += 1;
    task.has_begun = risk.congestion.is_some();
    if risk.ageing.is_on() {
        task.since_ns = *at_ns;
    }
    task.refresh(hash);
    let TaskSpec { class: task_class, tenant, .. } = &task.spec;
    let turn = match risk.policy.order().is_fair() {
        true => queued.clone(),
        false => risk.tenants.accounts.turn(*task_class, tenant),
    };

    // Work of unknown duration is charged almost nothing until it is done. A tenant that arrives meanwhile begins at
    // the least charged service, so it would be disadvantaged by an overcharge.
    let predicted_ns = predicted.map_or(0, |predicted| predicted.mean_ns);
    let upper_ns = predicted.filter(|_| has_predictor).map_or(0, |predicted| predicted.upper_ns);
    let charged_ns = risk.tenants.accounts.weighted_ns(&turn.tenant, predicted_ns);
    let queued = risk.charge(id, queued, charged_ns, hash);
    risk.enqueue_at(id, &queued);
    let slice = risk.numbers.slice_next;
    risk.numbers.slice_next += 1;
    risk.refresh(hash);
    let finish_ns = *at_ns + predicted_ns;
    let by_size_ns = if has_predictor { predicted_ns } else { 0 };
    let running = Slice { slice, task: Some(id), units, charged_ns, finish_ns, predicted_ns: by_size_ns };
    if worker.slice().is_none() && learnt.later.owes_aged {
        learnt.later.owe_aged(false, hash);
    }
    worker.start_slice(running, predicted_ns, hash);
    decisions.push(Decision::RunSlice(RunSlice {
        slice,
        task: id,
        lane,
        from: units.from,
        to: units.to,
        class: turn.class,
        tenant: str::to_owned(&turn.tenant),
        tasks_waiting,
        tenant_service_ns: turn.service_ns,
        service_fs_per_cost,
        predicted_finish_ns: finish_ns,
        reason,
        upper_ns,
        propensity_ppm,
        stolen_from: match source {
            Source::Other(owner) => Some(owner),
            Source::Open | Source::Share | Source::Whole => None,
        },
    }));
}
