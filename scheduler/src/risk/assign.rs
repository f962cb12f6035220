//! Push policies: the assignment of an arriving task, as a whole, to a lane's queue, and what the policy learns from
//! it.

use warptape_events::journal::{Assign, Share, SliceReason, TaskId};
use xxhash_rust::xxh3::xxh3_64;

use super::sight;
use super::task::Stage;
use crate::life::{Clock, Life};
use crate::policy::task::{Choice, LaneView, Push, TaskPolicy, Turns, choose};
use crate::state_hash::{Component, hash_component};

/// Assigns a task to the queue of one lane; `None` unless the policy is a push policy and some lane may take the task.
pub(super) fn assign(life: &mut Life, id: TaskId) -> Option<Assign> {
    let TaskPolicy::Push(push) = life.risk.policy else { return None };
    let task = &life.risk.tasks[&id];
    if task.stage != Stage::Shared {
        return None;
    }
    let views = sight::able(life, task);
    if views.is_empty() {
        return None;
    }
    let class = task.spec.class;
    let steered = sight::steered(life).filter(|steered| views.iter().any(|view| view.lane == *steered));
    let learned = sight::learned(life, &life.risk.tasks[&id]);
    let is_stood_in_for = push == Push::Dqn && learned.is_none();
    let Life { risk, hash, config, learnt, clock: Clock { at_ns, .. }, .. } = life;
    let preferred = match (steered.or(learned), push, &learnt.bandit) {
        (Some(lane), ..) => lane,
        (None, Push::LinUcb, Some(bandit)) => bandit.choose(&views, class),
        _ => push.choose(&views, id, &mut risk.turns, config),
    };
    let now = turns_hash(&risk.turns);
    hash.replace(&mut risk.turns.contribution, now);
    let preferred = views.iter().position(|view| view.lane == preferred).expect("one of them was chosen");
    let address = ("lane/explore", config.placement_seed, id);
    let Choice { index, is_explored, propensity_ppm } =
        choose(address, config.risk.explore_ppm, views.len(), preferred);
    if let Some(bandit) = &mut learnt.bandit {
        bandit.joined(id, class, &views[index], *at_ns, hash);
    }
    let LaneView { lane, tasks, backlog_ns, task_ns, .. } = views[index];
    let reason = match (is_explored, is_stood_in_for) {
        (true, _) => SliceReason::Explored,
        (false, true) => SliceReason::StoodIn,
        (false, false) => SliceReason::Order,
    };
    risk.dequeue(id);
    let task = risk.task_mut(id);
    let units = task.open[0];
    task.split(&[Share { lane, from: units.from, to: units.to, score: 1 }], hash);
    risk.enqueue(id);
    Some(Assign { task: id, lane, tasks, backlog_ns, task_ns, reason, propensity_ppm })
}

/// Hash of the state of push policies; 0 before the first turn.
pub(super) fn turns_hash(turns: &Turns) -> u64 {
    if *turns == Turns::default() {
        return 0;
    }
    let behind: Vec<u8> = turns.behind.iter().flat_map(|behind| behind.to_le_bytes()).collect();
    hash_component(Component::TaskTurns, [i64::from(turns.last), xxh3_64(&behind) as i64])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_that_push_policies_remember_is_in_the_hash() {
        let hash =
            |last, behind: &[i64]| turns_hash(&Turns { last, behind: behind.to_vec(), contribution: 0 });
        let turns = [hash(0, &[]), hash(1, &[]), hash(1, &[1, -1]), hash(1, &[-1, 1]), hash(2, &[1, -1])];
        assert_eq!(turns[0], 0);
        assert_eq!(BTreeSet::from(turns).len(), turns.len());
    }
}
