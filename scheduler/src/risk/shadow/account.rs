//! Alternatives of a shadow policy, computed again for explanations in the state that the policy saw.

use std::collections::BTreeMap;

use warptape_events::journal::{LaneId, SchedulerConfig, TaskArrived, TaskClass, TaskId};

use super::super::sight::{Sighted, sighted};
use super::super::slices::{Source, splits};
use super::policies::{Shadows, WAITING_MAX, candidates, first_under};
use crate::life::Life;
use crate::policy::task::{LaneView, Push, TaskPolicy, Turns};
use crate::service::Serving;

/// The lanes that a task could have joined.
pub(crate) struct Joins<'a> {
    /// All lanes, including excluded ones.
    pub(crate) lanes: Vec<Sighted>,
    /// Number of the task in order of arrival, from 1.
    pub(crate) number: i64,
    /// Number of tasks between two that policies are asked about.
    pub(crate) every: i64,
    push: Push,
    task: TaskId,
    turns: Turns,
    config: &'a SchedulerConfig,
}

/// A task that a lane could have begun.
pub(crate) struct Waiting {
    pub(crate) task: TaskId,
    /// Service of its tenant divided by the weight, in nanoseconds; 0 if the policy does not use it.
    pub(crate) service_ns: i64,
    /// Its place among its tenant's tasks under the policy: quanta of service, then a time.
    pub(crate) quanta: i64,
    pub(crate) due_ns: i64,
    /// Predicted time of its rest, in nanoseconds; 0 if the policy does not use it.
    pub(crate) rest_ns: i64,
}

/// The tasks that a lane could have begun.
pub(crate) struct Begins<'a> {
    /// Tasks of the chosen class, by number.
    pub(crate) tasks: Vec<Waiting>,
    /// Number of the slice among those in the policy's order, from 1. Below: number of slices between two that policies
    /// are asked about.
    pub(crate) number: i64,
    pub(crate) every: i64,
    life: &'a Life,
    lane: LaneId,
    class: TaskClass,
    policy: TaskPolicy,
    waiting: BTreeMap<TaskId, Source>,
}

fn shadow_of(life: &Life, index: i32) -> Option<(&Shadows, usize, TaskPolicy)> {
    let shadows = life.learnt.later.shadows.as_ref()?;
    let index = usize::try_from(index).ok()?;
    Some((shadows, index, *shadows.policies.get(index)?))
}

/// The alternatives of a push policy if a task arrives now; `None` if the index names no push policy.
pub(crate) fn joins<'a>(life: &'a Life, at_ns: i64, arrived: &TaskArrived, index: i32) -> Option<Joins<'a>> {
    let (shadows, index, policy) = shadow_of(life, index)?;
    let TaskPolicy::Push(push) = policy else { return None };
    Some(Joins {
        lanes: sighted(life, at_ns, arrived, &shadows.config.policies[index]),
        number: shadows.arrived + 1,
        every: shadows.config.every.into(),
        push,
        task: arrived.task,
        turns: shadows.turns[index].clone(),
        config: &life.config,
    })
}

impl Joins<'_> {
    /// The lane that the policy would choose if `lane` did not exist; `None` if there is no other lane.
    pub(crate) fn next_without(&self, lane: LaneId) -> Option<LaneId> {
        let others = self.lanes.iter().filter(|one| one.excluded.is_none() && one.view.lane != lane);
        if self.push == Push::Dqn {
            return others.max_by_key(|one| (one.score, -one.view.lane)).map(|one| one.view.lane);
        }
        let views: Vec<LaneView> = others.map(|one| one.view).collect();
        let choose = || self.push.choose(&views, self.task, &mut self.turns.clone(), self.config);
        (!views.is_empty()).then(choose)
    }
}

/// The alternatives of a pull policy if a lane is about to begin a task. `None` if the index names no policy, or if the
/// task is unknown.
pub(crate) fn would_begin(life: &Life, lane: LaneId, task: TaskId, index: i32) -> Option<Begins<'_>> {
    let (shadows, _, policy) = shadow_of(life, index)?;
    let class = life.risk.tasks.get(&task)?.spec.class;
    let splits = splits(life, Serving::of(&life.lanes), lane);
    let waiting = candidates(life, lane, splits, class, WAITING_MAX);
    let (risk, order) = (&life.risk, policy.order());
    let seen = |id: &TaskId| {
        let task = &risk.tasks[id];
        let rest_ns = risk.rest_ns_under(order, task, &life.lanes);
        let due = task.due_with(order, rest_ns);
        let service_ns = risk.turn_under(order, task).service_ns;
        Waiting { task: *id, service_ns, quanta: due.quanta, due_ns: due.due_ns, rest_ns }
    };
    Some(Begins {
        tasks: waiting.keys().map(seen).collect(),
        number: shadows.begun + 1,
        every: shadows.config.every.into(),
        life,
        lane,
        class,
        policy,
        waiting,
    })
}

impl Begins<'_> {
    /// The task that the policy would choose if this one did not exist; `None` if there is no other.
    pub(crate) fn next_without(&self, task: TaskId) -> Option<TaskId> {
        let mut waiting = self.waiting.clone();
        waiting.remove(&task);
        first_under(self.life, self.lane, self.class, &waiting, self.policy)
    }
}
