//! Policies in the shadow: what they would have done is said beside what was done, and nothing follows from it.
//!
//! ```text
//!   a task arrives      ──► policies that push: whose queue would it join?           beside Assign, or before lanes take it
//!   a free lane begins  ──► policies that pull: which task would it have been given?    beside RunSlice
//! ```
//!
//! They are asked at one choice of so many, by a count, so that they cost a bounded share of a step and a replay asks them where they were asked
//! then. Each has turns of its own. A policy that pulls chooses among what the lane may begin with, under the policy in force, of the class that was chosen,
//! and sees the first [`WAITING_MAX`] tasks of each queue. A network that is not there says nothing.

mod account;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{Decision, LaneId, Shadow, ShadowConfig, TaskClass, TaskId};
use xxhash_rust::xxh3::xxh3_64;

use super::assign::turns_hash;
use super::queue::{Head, Queue};
use super::sight;
use super::slices::{Source, candidates, first_of};
use super::task::Stage;
use crate::config::{ConfigMistake, mistake};
use crate::life::Life;
use crate::policy::task::{Push, TaskPolicy, Turns};
use crate::state_hash::{Component, StateHash, hash_component};

pub(crate) use account::{Waiting, joins, would_begin};

/// Most policies in the shadow.
pub const SHADOWS_MAX: usize = 4;
/// Most choices of which they are asked at one.
pub const SHADOW_EVERY_MAX: i32 = 1_000_000;
/// Tasks of each queue among which a policy chooses.
const WAITING_MAX: usize = 32;

/// The policies in the shadow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shadows {
    config: ShadowConfig,
    policies: Vec<TaskPolicy>,
    /// What those that push remember, by policy.
    turns: Vec<Turns>,
    /// Tasks that arrived, and slices that were begun in the policy's order.
    arrived: i64,
    begun: i64,
    /// Hash of the names, and of all turns.
    names_hash: u64,
    turns_hash: u64,
    contribution: u64,
}

/// All mistakes of a configuration; empty when it is good.
pub fn check_shadow(config: &ShadowConfig) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    let policies = &config.policies;
    for (index, text) in policies.iter().enumerate() {
        let mut refuse = |allowed: &str| mistakes.push(mistake("shadow.policies", text, allowed.to_owned()));
        match TaskPolicy::parse(text) {
            None => refuse("each must be a policy of tasks, as risk.policy has them"),
            Some(TaskPolicy::Push(Push::LinUcb)) => {
                refuse("linucb cannot be in the shadow: it learns from what it decides itself");
            }
            Some(_) if policies[..index].contains(text) => refuse("each policy is asked once"),
            Some(_) => {}
        }
    }
    if policies.is_empty() || policies.len() > SHADOWS_MAX {
        let allowed = format!("there must be 1 to {SHADOWS_MAX} of them");
        mistakes.push(mistake("shadow.policies", format!("{policies:?}"), allowed));
    }
    if !(1..=SHADOW_EVERY_MAX).contains(&config.every) {
        let allowed = format!("it must be from 1 to {SHADOW_EVERY_MAX}");
        mistakes.push(mistake("shadow.every", config.every, allowed));
    }
    mistakes
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

    /// Calls the first policy by another name, as software does that has another version of it.
    #[cfg(test)]
    pub(crate) fn rename(&mut self, name: &str, hash: &mut StateHash) {
        name.clone_into(&mut self.config.policies[0]);
        (self.names_hash, self.turns_hash) = self.hashes();
        self.refresh(hash);
    }

    /// Whether one of the policies is such.
    pub(crate) fn any(&self, is_such: impl Fn(TaskPolicy) -> bool) -> bool {
        self.policies.iter().any(|policy| is_such(*policy))
    }

    /// Hash of the names, and of all turns.
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

    /// Hash of it, by walking.
    pub(crate) fn walked_hash(&self) -> u64 {
        let (names_hash, turns_hash) = self.hashes();
        Self { names_hash, turns_hash, ..self.clone() }.hash()
    }

    fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    /// Whether this choice, the next of its kind, is one at which policies are asked.
    fn is_turn(&self, count: i64) -> bool {
        (count + 1) % i64::from(self.config.every) == 0
    }
}

/// A task has arrived and waits for all lanes: whose queues it would join.
pub(super) fn arrived(life: &mut Life, id: TaskId) -> Vec<(i32, LaneId)> {
    // They are taken out while they look at the rest.
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

/// What policies that push would have done with a task, beside the lane whose queue it joined, if it did.
pub(super) fn beside_arrival(
    task: TaskId,
    lane: Option<LaneId>,
    choices: &[(i32, LaneId)],
    decisions: &mut Vec<Decision>,
) {
    for &(policy, instead) in choices {
        let lane_instead = Some(instead);
        decisions.push(Decision::Shadow(Shadow { policy, task, lane, lane_instead, task_instead: None }));
    }
}

/// A free lane is about to begin with a task in the order of the policy in force: which tasks it would have been given.
pub(super) fn begins(life: &mut Life, lane: LaneId, splits: bool, class: TaskClass) -> Vec<(i32, TaskId)> {
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

/// The task that a lane would be given under a policy that pulls, of some of a class.
fn first_under(
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

/// What policies that pull would have given to a lane, beside the task that it was given.
pub(super) fn beside_slice(
    lane: LaneId,
    task: TaskId,
    choices: &[(i32, TaskId)],
    decisions: &mut Vec<Decision>,
) {
    for &(policy, instead) in choices {
        let (lane, task_instead) = (Some(lane), Some(instead));
        decisions.push(Decision::Shadow(Shadow { policy, task, lane, lane_instead: None, task_instead }));
    }
}
