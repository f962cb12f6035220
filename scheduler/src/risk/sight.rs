//! The state that a learned policy sees: an arriving task and all lanes. Features are computed from it, in production
//! and in training.

use std::collections::BTreeMap;

use warptape_events::journal::{ExclusionReason, LaneId, TaskArrived};
use warptape_network::{LaneState, Network, TaskState, kind_bucket};

use super::Risk;
use super::task::{Stage, Task};
use crate::lanes::Lane;
use crate::life::Life;
use crate::machine::Scheduler;
use crate::policy::task::{LaneView, Push, TaskPolicy, dqn};
use crate::service::Serving;
use crate::state_hash::StateHash;

/// For each lane, true if it may take a pushed task.
pub(super) fn may_take(life: &Life) -> Vec<bool> {
    let serving = Serving::of(&life.lanes);
    let stand_in = !life.lanes.iter().any(|lane| serving.has(lane) && lane.weight.current > 0);
    // A probed lane gets one task at a time.
    let tries = |lane: &Lane| serving.probes(lane) && life.risk.queues.shares.of(lane.id).is_empty();
    let may = |lane: &Lane| (serving.has(lane) && (stand_in || lane.weight.current > 0)) || tries(lane);
    life.lanes.iter().map(may).collect()
}

/// A lane as push policies see it for a task, without prices.
pub(super) fn view(life: &Life, at_ns: i64, task: &Task, lane: &Lane) -> LaneView {
    life.risk.lanes.queues[lane.id as usize].view(lane, task, &life.risk, at_ns)
}

/// Sets `forgone` of each lane, if the policy uses prices.
fn see_prices(life: &Life, task: &Task, policy: TaskPolicy, lanes: &mut [LaneView]) {
    if policy.sees_prices() {
        let Risk { prices, rates, .. } = &life.risk;
        let mut of_classes = BTreeMap::new();
        for lane in lanes {
            let class = life.lanes[lane.lane as usize].class;
            let forgone = || prices.forgone(rates, class, &task.spec.rate_key);
            lane.forgone = Some(*of_classes.entry(class).or_insert_with(forgone));
        }
    }
}

/// The lanes that may take a pushed task, as push policies see them.
pub(super) fn able(life: &Life, task: &Task) -> Vec<LaneView> {
    let may_take = may_take(life);
    let able = life.lanes.iter().filter(|lane| may_take[lane.id as usize]);
    let mut views: Vec<_> = able.map(|lane| view(life, life.clock.at_ns, task, lane)).collect();
    see_prices(life, task, life.risk.policy, &mut views);
    views
}

/// State of a task and of all lanes at a time, by number; lanes that may not take the task are excluded. `waiting` is
/// the number of other known tasks.
pub(crate) fn sight(life: &Life, at_ns: i64, task: &Task, waiting: usize) -> (TaskState, Vec<LaneState>) {
    let may_take = may_take(life);
    let state = |lane: &Lane| {
        let LaneView { tasks, backlog_ns, task_ns, utilization_ppm, .. } = view(life, at_ns, task, lane);
        let index = lane.id as usize;
        let older_ppm = life.risk.lanes.busy[index].last_window_ppm(at_ns);
        LaneState {
            tasks,
            backlog_ns,
            task_ns,
            weight: i64::from(lane.weight.current),
            utilization_ppm: [utilization_ppm, older_ppm],
            is_excluded: !may_take[index],
        }
    };
    let of_task = TaskState {
        priority: task.spec.class as usize,
        kind: kind_bucket(&task.spec.rate_key),
        waiting: waiting as i64,
        laxity_ns: task.spec.deadline_ns.map(|deadline_ns| deadline_ns.saturating_sub(at_ns)),
    };
    (of_task, life.lanes.iter().map(state).collect())
}

impl Scheduler {
    /// State that a learned policy would see if this task arrived now: the task, and all lanes by number. `None` before
    /// the first `Started`.
    pub fn sight(&self, at_ns: i64, arrived: &TaskArrived) -> Option<(TaskState, Vec<LaneState>)> {
        let life = self.life.as_ref()?;
        let task = arriving(at_ns, arrived);
        Some(sight(life, at_ns, &task, life.risk.tasks.len()))
    }

    /// Makes the next pushed task join the queue of this lane, if the lane may take it. It is for training only,
    /// without a journal and without replays.
    #[cfg(feature = "lab")]
    pub fn steer(&mut self, lane: LaneId) {
        if let Some(life) = &mut self.life {
            life.step.steered = Some(lane);
        }
    }
}

/// Takes the lane that training has chosen for the next task; `None` if there is none.
pub(super) fn steered(life: &mut Life) -> Option<LaneId> {
    life.step.steered.take()
}

/// The lane that the policy's network chooses; `None` if the policy names no network, or one that is missing.
pub(super) fn learned(life: &Life, task: &Task) -> Option<LaneId> {
    learned_by(life, &life.config.risk.policy, task)
}

/// The lane that the network of this policy chooses.
pub(super) fn learned_by(life: &Life, policy: &str, task: &Task) -> Option<LaneId> {
    let network = network(life, policy)?;
    // The count of known tasks includes this one.
    let (task, lanes) = sight(life, life.clock.at_ns, task, life.risk.tasks.len() - 1);
    Some(network.choose(&task, &lanes)? as LaneId)
}

fn network<'a>(life: &'a Life, policy: &str) -> Option<&'a Network> {
    life.learnt.networks.get(dqn::hash_of(policy)?)
}

/// A lane as a policy saw it when it chose one for a task.
pub(crate) struct Sighted {
    pub(crate) view: LaneView,
    /// Utilisation in the previous window, which networks use as well.
    pub(crate) older_ppm: i64,
    /// Score of the network; `None` unless a network chose.
    pub(crate) score: Option<i64>,
    /// Correction by `linucb` of the logarithm of its rule's time, with 16 bits after the point. `None` under other
    /// policies, and while the learner is not trusted.
    pub(crate) correction: Option<i64>,
    pub(crate) excluded: Option<ExclusionReason>,
}

/// All lanes as a policy would see them if this task arrived now, in the state before the step.
pub(crate) fn sighted(life: &Life, at_ns: i64, arrived: &TaskArrived, policy: &str) -> Vec<Sighted> {
    let task = arriving(at_ns, arrived);
    let (of_task, states) = sight(life, at_ns, &task, life.risk.tasks.len());
    let scores = network(life, policy).map(|network| network.scores(&of_task, &states));
    let mut views: Vec<_> = life.lanes.iter().map(|lane| view(life, at_ns, &task, lane)).collect();
    let policy = TaskPolicy::parse(policy);
    if let Some(policy) = policy {
        see_prices(life, &task, policy, &mut views);
    }
    let learns = policy == Some(TaskPolicy::Push(Push::LinUcb));
    let bandit = life.learnt.bandit.as_ref().filter(|_| learns);
    let of_lane = |((lane, state), view): ((&Lane, &LaneState), LaneView)| Sighted {
        view,
        correction: bandit.and_then(|bandit| bandit.correction(&view, task.spec.class)),
        older_ppm: state.utilization_ppm[1],
        score: scores.as_ref().and_then(|scores| scores[lane.id as usize]),
        excluded: state.is_excluded.then(|| exclusion(lane)),
    };
    life.lanes.iter().zip(&states).zip(views).map(of_lane).collect()
}

/// Reason that excludes a lane. It is `Full` for a lane of weight 0, and for a probed lane that already has a task.
fn exclusion(lane: &Lane) -> ExclusionReason {
    match lane.ready {
        false => ExclusionReason::Lost,
        true => lane.service.exclusion().unwrap_or(ExclusionReason::Full),
    }
}

/// The state of an arriving task, while nothing is known of its tenant.
fn arriving(at_ns: i64, arrived: &TaskArrived) -> Task {
    Task::new(at_ns, arrived, arrived.tenant.as_str().into(), Stage::Shared, 0, &mut StateHash::default())
}
