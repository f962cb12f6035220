//! Rebalancing: groups move to the lanes that the placement policy would choose now, each of them at most once.
//!
//! An operator's command starts it, or a lane that returns to service. A step examines a bounded number of groups, in
//! order. The module owns the progress; it must not know how a policy chooses.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{Decision, GroupIndex, LaneId, ReleaseCause};

use crate::life::Life;
use crate::partitions::GroupKey;
use crate::placement::Chooser;
use crate::service::let_go;
use crate::state_hash::{Component, StateHash, hash_component};

/// Most groups that one step examines.
const LOOKS_MAX: usize = 256;

/// Progress of a rebalancing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Course {
    /// The next group to examine; if it is gone, the first one after it.
    next: GroupKey,
    /// The only target lane; `None` if groups may move to any lane.
    to: Option<LaneId>,
}

/// The rebalancing that is under way; empty if there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rebalancing {
    course: Option<Course>,
    contribution: u64,
}

impl Rebalancing {
    /// Hash of the progress; 0 if none is under way.
    pub(crate) fn hash(&self) -> u64 {
        match self.course {
            None => 0,
            Some(Course { next, to }) => hash_component(
                Component::Rebalancing,
                [i64::from(next.partition), i64::from(next.group), to.map_or(-1, i64::from)],
            ),
        }
    }

    fn set(&mut self, course: Option<Course>, hash: &mut StateHash) {
        self.course = course;
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    /// Begins with the first group. If `to` is a lane, groups move whose best lane it is; if it is `None`, all groups
    /// with a better lane. If a rebalancing for another lane is under way, both become one for all lanes.
    pub(crate) fn begin(&mut self, to: Option<LaneId>, hash: &mut StateHash) {
        let to = match self.course {
            Some(course) if course.to != to => None,
            _ => to,
        };
        self.set(Some(Course { next: GroupKey { partition: 0, group: 0 }, to }), hash);
    }
}

/// Examines the next groups, and makes lanes release those that are better placed elsewhere. Returns the time at which
/// to continue.
pub(crate) fn go_on(life: &mut Life, decisions: &mut Vec<Decision>) -> i64 {
    let Some(Course { next, to }) = life.rebalancing.course else { return i64::MAX };
    if life.clock.draining || !life.lanes.iter().any(|lane| lane.ready) {
        life.rebalancing.set(None, &mut life.hash);
        return i64::MAX;
    }
    let keys = groups_from(life, next);
    let mut chooser = Chooser::new(life);
    for &key in &keys[..keys.len().min(LOOKS_MAX)] {
        if !life.step.room.is_there() {
            return wait(life, key, to);
        }
        let group = &life.partitions[&key.partition].groups[key.group as usize];
        let Some(lane) = group.lane else { continue };
        let best = chooser.best(life, key, group, lane);
        if best == lane || to.is_some_and(|to| to != best) {
            continue;
        }
        chooser.expect(group, lane, best);
        let decision = Decision::Release(let_go(life, key, ReleaseCause::Rebalance, None));
        life.step.room.take(&decision);
        decisions.push(decision);
    }
    match keys.get(LOOKS_MAX) {
        Some(&key) => wait(life, key, to),
        None => {
            life.rebalancing.set(None, &mut life.hash);
            i64::MAX
        }
    }
}

/// The groups to examine, in order, and one more if there are more.
fn groups_from(life: &Life, next: GroupKey) -> Vec<GroupKey> {
    let partitions = life.partitions.range(next.partition..).map(|(_, partition)| partition);
    let keys = partitions.flat_map(|partition| {
        let key = |group| GroupKey { partition: partition.id, group: group as GroupIndex };
        (0..partition.active().len()).map(key)
    });
    keys.skip_while(|key| *key < next).take(LOOKS_MAX + 1).collect()
}

fn wait(life: &mut Life, next: GroupKey, to: Option<LaneId>) -> i64 {
    life.rebalancing.set(Some(Course { next, to }), &mut life.hash);
    life.clock.at_ns + 1
}
