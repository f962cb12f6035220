//! Standing delay: tasks wait too long during a whole interval, which excludes passing bursts.
//!
//! ```text
//!   the oldest task of the most urgent class that waits to begin is older than the target
//!     │  for an interval
//!     ├──► a waiting task is shed, the oldest of the least urgent class, and the next one sooner each time     (CoDel, RFC 8289)
//!     └──► fewer tasks may be known: 7/8 of them with each interval; more, when there is no delay and they are in use   (AIMD)
//! ```
//!
//! Critical tasks are never shed, and never refused because of delay. The module owns the verdict; it must not know
//! lanes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{QueueConfig, TaskClass, TaskId};

use crate::state_hash::{Component, StateHash, hash_component};

/// Inverse share by which the limit shrinks: 1/8. Below: by which it grows, 1/16.
const SHRINKING: i64 = 8;
const GROWING: i64 = 16;
/// Most tasks that one step sheds.
const SHED_STEP_MAX: i64 = 16;

/// State of the watch on delay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Congestion {
    /// Tasks that have not begun, by class and arrival.
    waiting: [BTreeSet<(i64, TaskId)>; 3],
    state: State,
    contribution: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// Time at which the delay becomes a standing one, if it remains above the target until then; 0 while it is below.
    standing_ns: i64,
    /// Time at which the next task is shed; 0 if none is scheduled.
    shed_ns: i64,
    /// Tasks shed since the delay became a standing one.
    shed: i64,
    /// Most tasks that may be known; 0 until it is first set.
    limit: i64,
    /// Time at which the limit is adapted next.
    adapt_ns: i64,
}

/// A task to shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Victim {
    pub(crate) task: TaskId,
    pub(crate) class: TaskClass,
    pub(crate) waited_ns: i64,
    /// Number of the task among those shed since the delay became a standing one.
    pub(crate) number: i64,
}

impl Congestion {
    /// True if the watch on delay is configured.
    pub(crate) fn is_on(config: &QueueConfig) -> bool {
        config.delay_target_ns > 0
    }

    /// Adds a task that waits to begin, with its arrival time.
    pub(crate) fn insert(&mut self, class: TaskClass, arrived_ns: i64, task: TaskId) {
        self.waiting[class as usize].insert((arrived_ns, task));
    }

    /// Removes a task that begins, or that is no longer known.
    pub(crate) fn remove(&mut self, class: TaskClass, arrived_ns: i64, task: TaskId) {
        self.waiting[class as usize].remove(&(arrived_ns, task));
    }

    /// Most tasks that may be known, given the configured limit.
    pub(crate) fn limit(&self, tasks_max: i64) -> i64 {
        match self.state.limit {
            0 => tasks_max,
            limit => limit.min(tasks_max),
        }
    }

    /// Time that the oldest waiting task of the most urgent class has waited; `None` if no task waits to begin.
    fn delay_ns(&self, at_ns: i64) -> Option<i64> {
        self.waiting.iter().find_map(|class| class.first()).map(|(arrived_ns, _)| at_ns - arrived_ns)
    }

    /// Judges the delay, given that `tasks` of `tasks_max` tasks are known. Returns the tasks to shed, which the caller
    /// removes.
    pub(crate) fn look(
        &mut self,
        config: &QueueConfig,
        at_ns: i64,
        (tasks, tasks_max): (i64, i64),
        hash: &mut StateHash,
    ) -> Vec<Victim> {
        let interval_ns = config.delay_interval_ns;
        let is_above = self.delay_ns(at_ns).is_some_and(|delay_ns| delay_ns >= config.delay_target_ns);
        let mut state = self.state;
        if !is_above {
            (state.standing_ns, state.shed_ns, state.shed) = (0, 0, 0);
        } else if state.standing_ns == 0 {
            state.standing_ns = at_ns + interval_ns;
        } else if state.standing_ns <= at_ns && state.shed_ns == 0 {
            state.shed_ns = at_ns;
        }
        let is_standing = state.standing_ns > 0 && state.standing_ns <= at_ns;
        if config.in_flight_min > 0 && at_ns >= state.adapt_ns {
            let limit = self.limit(tasks_max);
            state.limit = if is_standing {
                let shrunk = limit.min(tasks);
                (shrunk - (shrunk / SHRINKING).max(1)).max(i64::from(config.in_flight_min)).min(limit)
            } else if 2 * tasks >= limit {
                (limit + (limit / GROWING).max(1)).min(tasks_max)
            } else {
                limit
            };
            state.adapt_ns = at_ns + interval_ns;
        }
        self.state = state;
        let mut victims = Vec::new();
        while self.state.shed_ns > 0
            && self.state.shed_ns <= at_ns
            && (victims.len() as i64) < SHED_STEP_MAX
            && let Some(victim) = self.shed(at_ns, interval_ns)
        {
            victims.push(victim);
        }
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
        victims
    }

    /// Sheds the oldest task of the least urgent class, if there is one, and sets the time of the next.
    fn shed(&mut self, at_ns: i64, interval_ns: i64) -> Option<Victim> {
        let least_urgent = [TaskClass::Batch, TaskClass::Interactive];
        let class = least_urgent.into_iter().find(|class| !self.waiting[*class as usize].is_empty())?;
        let (arrived_ns, task) = self.waiting[class as usize].pop_first()?;
        self.state.shed += 1;
        let number = self.state.shed;
        self.state.shed_ns += (interval_ns / number.isqrt()).max(1);
        Some(Victim { task, class, waited_ns: at_ns - arrived_ns, number })
    }

    /// Time of the next judgement, even without further input.
    pub(crate) fn next_ns(&self, config: &QueueConfig, at_ns: i64) -> i64 {
        let Some(delay_ns) = self.delay_ns(at_ns) else { return i64::MAX };
        let can_shed = self.waiting[1..].iter().any(|class| !class.is_empty());
        match self.state {
            State { standing_ns: 0, .. } => at_ns + (config.delay_target_ns - delay_ns).max(1),
            _ if !can_shed => i64::MAX,
            State { shed_ns: 0, standing_ns, .. } => standing_ns.max(at_ns + 1),
            State { shed_ns, .. } => shed_ns.max(at_ns + 1),
        }
    }

    /// Hash of the state; 0 while it is empty.
    pub(crate) fn hash(&self) -> u64 {
        if self.state == State::default() {
            return 0;
        }
        let State { standing_ns, shed_ns, shed, limit, adapt_ns } = self.state;
        hash_component(Component::Congestion, [standing_ns, shed_ns, shed, limit, adapt_ns])
    }

    /// Checks the set of tasks that wait to begin.
    pub(crate) fn audit(&self, fresh: &Self) {
        assert_eq!(self.waiting, fresh.waiting, "tasks that wait to begin");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: QueueConfig =
        QueueConfig { quotas: Vec::new(), delay_target_ns: 50, delay_interval_ns: 100, in_flight_min: 4 };

    fn waiting(tasks: &[(TaskClass, i64)]) -> Congestion {
        let mut congestion = Congestion::default();
        (0..).zip(tasks).for_each(|(task, (class, arrived_ns))| congestion.insert(*class, *arrived_ns, task));
        congestion
    }

    #[test]
    fn what_stands_is_shed_the_least_urgent_first_and_never_what_is_critical() {
        let classes = [TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch, TaskClass::Batch];
        let mut congestion = waiting(&classes.map(|class| (class, 0)));
        let mut hash = StateHash::default();
        let mut shed = Vec::new();
        for at_ns in 1..1_000 {
            let victims = congestion.look(&CONFIG, at_ns, (4, 100), &mut hash);
            shed.extend(victims.into_iter().map(|victim| (at_ns, victim.task)));
            assert_eq!(hash.value(), congestion.hash());
        }
        // The delay is a standing one from 150 on. Each further task is shed after the interval divided by the
        // rounded-down square root of its number.
        assert_eq!(shed, [(150, 2), (250, 3), (350, 1)]);
    }

    #[test]
    fn a_burst_that_passes_sheds_nothing() {
        let mut congestion = waiting(&[(TaskClass::Batch, 0), (TaskClass::Interactive, 100)]);
        let mut hash = StateHash::default();
        let mut look =
            |congestion: &mut Congestion, at_ns| congestion.look(&CONFIG, at_ns, (2, 100), &mut hash);
        assert!((100..200).all(|at_ns| look(&mut congestion, at_ns).is_empty()));
        // The interactive task begins before the delay is a standing one; a new task replaces it, which has not waited
        // yet.
        congestion.remove(TaskClass::Interactive, 100, 1);
        congestion.insert(TaskClass::Interactive, 200, 2);
        assert!((200..349).all(|at_ns| look(&mut congestion, at_ns).is_empty()));
        assert_eq!(look(&mut congestion, 350)[0].task, 0, "the batch task has waited longer all the time");
    }

    #[test]
    fn the_limit_shrinks_while_delay_stands_and_grows_where_it_is_used() {
        let mut congestion = waiting(&[(TaskClass::Critical, 0)]);
        let mut hash = StateHash::default();
        let mut limits = Vec::new();
        for at_ns in (10..=1_000).step_by(10) {
            congestion.look(&CONFIG, at_ns, (16, 100), &mut hash);
            limits.push(congestion.limit(100));
        }
        limits.dedup();
        assert_eq!(limits, [100, 14, 13, 12, 11, 10, 9, 8, 7]);
        congestion.remove(TaskClass::Critical, 0, 0);
        for at_ns in (1_010..=1_400).step_by(100) {
            congestion.look(&CONFIG, at_ns, (8, 100), &mut hash);
        }
        assert_eq!(congestion.limit(100), 11);
        congestion.look(&CONFIG, 2_000, (2, 100), &mut hash);
        assert_eq!(congestion.limit(100), 11, "a limit that is not in use stays");
    }
}
