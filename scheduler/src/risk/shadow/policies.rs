//! The shadow policies and their choices.
//!
//! They are asked at every n-th choice. So their cost is a bounded share of a step, and a replay asks at the same
//! choices. Each has its own turns. A pull policy chooses among the tasks of the chosen class that the lane may begin
//! under the policy in force. It sees the first [`WAITING_MAX`] tasks of each queue. A policy whose network is missing
//! makes no choice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, ShadowConfig, TaskClass, TaskId};
use xxhash_rust::xxh3::xxh3_64;

use super::super::assign::turns_hash;
use super::super::queue::{Head, Queue};
use super::super::sight;
use super::super::slices::{Source, first_of, tasks_of_sources};
use super::super::task::Stage;
use crate::life::Life;
use crate::policy::task::{Push, TaskPolicy, Turns};
use crate::state_hash::{Component, StateHash, hash_component};

/// Most tasks of each queue that a policy considers.
pub(super) const WAITING_MAX: usize = 32;

/// The shadow policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shadows {
    pub(super) config: ShadowConfig,
    pub(super) policies: Vec<TaskPolicy>,
    /// State of the push policies, by policy.
    pub(super) turns: Vec<Turns>,
    /// Number of arrived tasks. Below: number of slices begun in the policy's order.
    pub(super) arrived: i64,
    pub(super) begun: i64,
    /// Hash of the names. Below: hash of all turns.
    names_hash: u64,
    turns_hash: u64,
    contribution: u64,
}

impl Shadows {
    /// Names of the policies, with their versions.
    pub(crate) fn names(&self) -> &[String] {
        &self.config.policies
    }

    pub(crate) fn new(config: &ShadowConfig, hash: &mut StateHash) -> Self {
        let policy = |text: &String| TaskPolicy::parse(text).expect("admission has read it");
        let policies: Vec<_> = config.policies.iter().map(policy).collect();
        let turns = vec![Turns::default(); policies.len()];
        let mut shadows = Self {
            config: config.clone(),
            policies,
            turns,
            arrived: 0,
            begun: 0,
            names_hash: 0,
            turns_hash: 0,
            contribution: 0,
        };
        (shadows.names_hash, shadows.turns_hash) = shadows.hashes();
        shadows.refresh(hash);
        shadows
    }

    /// Renames the first policy, as if other software had another version of it.
    #[cfg(test)]
    pub(crate) fn rename(&mut self, name: &str, hash: &mut StateHash) {
        name.clone_into(&mut self.config.policies[0]);
        (self.names_hash, self.turns_hash) = self.hashes();
        self.refresh(hash);
    }

    /// True if the predicate holds for one of the policies.
    pub(crate) fn any(&self, is_such: impl Fn(TaskPolicy) -> bool) -> bool {
        self.policies.iter().any(|policy| is_such(*policy))
    }

    /// Hash of the names, and hash of all turns.
    fn hashes(&self) -> (u64, u64) {
        let digest = |hashes: Vec<u64>| {
            xxh3_64(&hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect::<Vec<_>>())
        };
        let names = self.config.policies.iter().map(|name| xxh3_64(name.as_bytes())).collect();
        (digest(names), digest(self.turns.iter().map(turns_hash).collect()))
    }

    fn hash(&self) -> u64 {
        let Self { arrived, begun, names_hash, turns_hash, config: ShadowConfig { every, .. }, .. } = self;
        let fields = [i64::from(*every), *names_hash as i64, *arrived, *begun, *turns_hash as i64];
        hash_component(Component::Shadow, fields)
    }

    /// Hash of names and turns, computed by walking over them.
    pub(crate) fn walked_hash(&self) -> u64 {
        let (names_hash, turns_hash) = self.hashes();
        Self { names_hash, turns_hash, ..self.clone() }.hash()
    }

    fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    /// True if policies are asked at the next choice of this kind, after `count` earlier ones.
    fn is_turn(&self, count: i64) -> bool {
        (count + 1) % i64::from(self.config.every) == 0
    }
}

/// Asks push policies which lane an arrived task would join; the task is open to all lanes.
pub(crate) fn arrived(life: &mut Life, id: TaskId) -> Vec<(i32, LaneId)> {
    // The policies are moved out of the state while they read the rest of it.
    let Some(mut shadows) = life.learnt.later.shadows.take() else { return Vec::new() };
    let mut choices = Vec::new();
    if shadows.is_turn(shadows.arrived) {
        choices = joined(life, id, &mut shadows);
        (_, shadows.turns_hash) = shadows.hashes();
    }
    shadows.arrived += 1;
    shadows.refresh(&mut life.hash);
    life.learnt.later.shadows = Some(shadows);
    choices
}

fn joined(life: &Life, id: TaskId, shadows: &mut Shadows) -> Vec<(i32, LaneId)> {
    let task = &life.risk.tasks[&id];
    if task.stage != Stage::Shared {
        return Vec::new();
    }
    if !shadows.any(|policy| matches!(policy, TaskPolicy::Push(_))) {
        return Vec::new();
    }
    let views = sight::able(life, task);
    let mut choices = Vec::new();
    for (index, policy) in shadows.policies.iter().enumerate().filter(|_| !views.is_empty()) {
        let lane = match policy {
            TaskPolicy::First(_) | TaskPolicy::LpPrice => None,
            TaskPolicy::Push(Push::Dqn) => sight::learned_by(life, &shadows.config.policies[index], task),
            TaskPolicy::Push(push) => Some(push.choose(&views, id, &mut shadows.turns[index], &life.config)),
        };
        choices.extend(lane.map(|lane| (index as i32, lane)));
    }
    choices
}

/// Asks pull policies which task they would give to a free lane that is about to begin one in the policy's order.
pub(crate) fn begins(life: &mut Life, lane: LaneId, splits: bool, class: TaskClass) -> Vec<(i32, TaskId)> {
    let Life { learnt, hash, .. } = &mut *life;
    let Some(shadows) = &mut learnt.later.shadows else { return Vec::new() };
    let is_turn = shadows.is_turn(shadows.begun);
    shadows.begun += 1;
    shadows.refresh(hash);
    if !is_turn || !shadows.any(|policy| !matches!(policy, TaskPolicy::Push(_))) {
        return Vec::new();
    }
    let Some(shadows) = &life.learnt.later.shadows else { return Vec::new() };
    let waiting = candidates(life, lane, splits, class, WAITING_MAX);
    let pulls = |(_, policy): &(i32, TaskPolicy)| !matches!(policy, TaskPolicy::Push(_));
    let policies = (0..).zip(shadows.policies.iter().copied()).filter(pulls);
    let choice = |(index, policy)| Some((index, first_under(life, lane, class, &waiting, policy)?));
    policies.filter_map(choice).collect()
}

/// Tasks of a class that a free lane may begin: at most `most` of each source, in the order of kind, tenant and due
/// time.
pub(super) fn candidates(
    life: &Life,
    lane: LaneId,
    splits: bool,
    class: TaskClass,
    most: usize,
) -> BTreeMap<TaskId, Source> {
    // A task may have open units and a share of this lane; open units go first.
    let mut found: BTreeMap<TaskId, Source> = BTreeMap::new();
    for (task, source) in tasks_of_sources(life, lane, splits, class, most) {
        found.entry(task).or_insert(source);
    }
    found
}

/// The task that a pull policy would give to a lane, among some tasks of a class.
pub(super) fn first_under(
    life: &Life,
    lane: LaneId,
    class: TaskClass,
    waiting: &BTreeMap<TaskId, Source>,
    policy: TaskPolicy,
) -> Option<TaskId> {
    let mut queues: BTreeMap<Source, Queue> = BTreeMap::new();
    for (id, source) in waiting {
        let task = &life.risk.tasks[id];
        let rest_ns = life.risk.rest_ns_under(policy.order(), task, &life.lanes);
        let due = task.due_with(policy.order(), rest_ns);
        let turn = life.risk.turn_under(policy.order(), task);
        let queue = queues.entry(*source).or_default();
        queue.insert(&life.risk.kind_under(policy, task), &turn, due);
    }
    let heads = queues.values().filter_map(|queue| first_of(life, lane, queue, Some(class), policy));
    heads.min_by(Head::order).map(|head| head.due.task)
}
