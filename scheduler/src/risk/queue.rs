//! Queues of tasks in the order in which lanes take them: by class, tenant with the least service, quanta, deadline and
//! arrival. If the policy is not fair, all tenants share one turn, and the policy's order defines quanta and deadlines.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize, Serializer};
use warptape_events::journal::{LaneId, TaskClass, TaskId};

use crate::name::Name;

/// Place of a tenant in a class. Turns are ordered as lanes choose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) class: TaskClass,
    /// Service of the tenant so far, divided by its weight.
    pub(crate) service_ns: i64,
    pub(crate) tenant: Name,
}

/// Place of a task among those of its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Due {
    /// Service quanta consumed so far, plus the fewest quanta among the tenant's tasks when this one arrived.
    pub(crate) quanta: i64,
    /// Time that orders tasks with equal quanta; `i64::MAX` if there is none.
    pub(crate) due_ns: i64,
    /// Number of the task; numbers rise with arrival.
    pub(crate) task: TaskId,
}

/// Tasks with units to take: by kind if the policy distinguishes kinds, otherwise all together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queue {
    kinds: BTreeMap<Name, KindQueue>,
}

/// For each lane, a queue of the tasks with units that only this lane may take.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Queue>")]
pub(crate) struct Shares {
    by_lane: Vec<Queue>,
    /// Number of tasks in all queues, so that a search can skip empty ones. It is not serialized.
    tasks: usize,
}

/// The first task of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    /// The kind; empty if the policy does not distinguish kinds.
    pub(crate) kind: &'a Name,
    pub(crate) turn: &'a Turn,
    pub(crate) due: Due,
}

impl Head<'_> {
    /// Compares two heads; the lesser one is chosen first.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        (self.turn, self.due).cmp(&(other.turn, other.due))
    }
}

/// Tasks of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct KindQueue {
    /// Tenants that have tasks of this kind.
    turns: BTreeSet<Turn>,
    tasks: BTreeMap<(TaskClass, Name), BTreeSet<Due>>,
}

impl Shares {
    pub(crate) fn new(lanes: usize) -> Self {
        Self { by_lane: vec![Queue::default(); lanes], tasks: 0 }
    }

    pub(crate) fn of(&self, lane: LaneId) -> &Queue {
        &self.by_lane[lane as usize]
    }

    /// True if no lane has such tasks.
    pub(crate) fn are_empty(&self) -> bool {
        self.tasks == 0
    }

    /// The queue of each lane; no item if no lane has such tasks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.by_lane.iter().filter(|_| self.tasks > 0)
    }

    /// The queue of each lane, mutable; no item if no lane has such tasks.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        let lanes = if self.tasks == 0 { 0 } else { self.by_lane.len() };
        self.by_lane[..lanes].iter_mut()
    }

    /// Inserts a task, given its tenant's turn.
    pub(crate) fn insert(&mut self, lane: LaneId, kind: &Name, turn: &Turn, due: Due) {
        self.tasks += usize::from(self.by_lane[lane as usize].insert(kind, turn, due));
    }

    /// Removes a task if it is in the queue.
    pub(crate) fn remove(&mut self, lane: LaneId, kind: &Name, turn: &Turn, due: Due) {
        self.tasks -= usize::from(self.by_lane[lane as usize].remove(kind, turn, due));
    }
}

impl Serialize for Shares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.by_lane.serialize(serializer)
    }
}

impl From<Vec<Queue>> for Shares {
    fn from(by_lane: Vec<Queue>) -> Self {
        let tasks = by_lane.iter().map(|queue| queue.tasks().count()).sum();
        Self { by_lane, tasks }
    }
}

impl Queue {
    /// Inserts a task, given its tenant's turn. Returns true if it was not in the queue yet.
    pub(crate) fn insert(&mut self, kind: &Name, turn: &Turn, due: Due) -> bool {
        let kind = match self.kinds.get_mut(kind) {
            Some(known) => known,
            None => self.kinds.entry(kind.clone()).or_default(),
        };
        let tasks = kind.tasks.entry((turn.class, turn.tenant.clone())).or_default();
        if tasks.is_empty() {
            kind.turns.insert(turn.clone());
        }
        tasks.insert(due)
    }

    /// Removes a task if it is in the queue. Returns true if it was.
    pub(crate) fn remove(&mut self, kind: &Name, turn: &Turn, due: Due) -> bool {
        let Some(known) = self.kinds.get_mut(kind) else { return false };
        let account = (turn.class, turn.tenant.clone());
        let Some(tasks) = known.tasks.get_mut(&account) else { return false };
        let was_there = tasks.remove(&due);
        if tasks.is_empty() {
            known.tasks.remove(&account);
            known.turns.remove(turn);
        }
        if known.turns.is_empty() {
            self.kinds.remove(kind);
        }
        was_there
    }

    /// Moves a tenant to its new turn, if it has tasks in the queue.
    pub(crate) fn replace(&mut self, old: &Turn, new: &Turn) {
        for kind in self.kinds.values_mut() {
            if kind.turns.remove(old) {
                kind.turns.insert(new.clone());
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// True if there are critical tasks.
    pub(crate) fn has_critical(&self) -> bool {
        // The critical class is the most urgent one.
        self.first_class() == Some(TaskClass::Critical)
    }

    /// The next task.
    pub(crate) fn first(&self) -> Option<Head<'_>> {
        self.heads().min_by(Head::order)
    }

    /// The most urgent class with tasks.
    pub(crate) fn first_class(&self) -> Option<TaskClass> {
        self.kinds.values().filter_map(|kind| Some(kind.turns.first()?.class)).min()
    }

    /// The next task of a class.
    pub(crate) fn first_of(&self, class: TaskClass) -> Option<Head<'_>> {
        self.heads_of(class).min_by(Head::order)
    }

    /// The first task of each kind, in the kind's most urgent class.
    fn heads(&self) -> impl Iterator<Item = Head<'_>> {
        self.kinds.iter().filter_map(|(name, kind)| kind.head(name, kind.turns.first()?.class))
    }

    /// The first task of each kind in a class.
    pub(crate) fn heads_of(&self, class: TaskClass) -> impl Iterator<Item = Head<'_>> {
        self.kinds.iter().filter_map(move |(name, kind)| kind.head(name, class))
    }

    /// The fewest quanta of a tenant's tasks in a class.
    pub(crate) fn quanta(&self, class: TaskClass, tenant: &Name) -> Option<i64> {
        let account = (class, tenant.clone());
        let of_kind = |kind: &KindQueue| kind.tasks.get(&account)?.first().map(|due| due.quanta);
        self.kinds.values().filter_map(of_kind).min()
    }

    /// Tasks of a class, by kind, tenant and due time.
    pub(crate) fn tasks_of(&self, class: TaskClass) -> impl Iterator<Item = TaskId> {
        let first = (class, Name::default());
        self.kinds.values().flat_map(move |kind| {
            let tenants = kind.tasks.range(first.clone()..).take_while(move |((of, _), _)| *of == class);
            tenants.flat_map(|(_, tasks)| tasks.iter().map(|due| due.task))
        })
    }

    /// Number of tasks among which a lane draws: the first `most` of the head's class, plus the head if it is not among
    /// them. The head must be in this queue.
    pub(crate) fn count_with(&self, head: &Head<'_>, most: usize) -> usize {
        let class = head.turn.class;
        let mut count = 0;
        let mut has_head = false;
        for (name, kind) in &self.kinds {
            let tenants = kind.tasks.range((class, Name::default())..);
            for ((_, tenant), tasks) in tenants.take_while(|((of, _), _)| *of == class) {
                if count >= most {
                    return most + usize::from(!has_head);
                }
                has_head |= name == head.kind && *tenant == head.turn.tenant;
                count += tasks.len();
            }
        }
        count.min(most) + usize::from(!has_head)
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.kinds.values().flat_map(|kind| kind.tasks.values().flatten()).map(|due| due.task)
    }
}

impl KindQueue {
    fn head<'a>(&'a self, name: &'a Name, class: TaskClass) -> Option<Head<'a>> {
        let least = Turn { class, service_ns: i64::MIN, tenant: Name::default() };
        let turn = self.turns.range(least..).next().filter(|turn| turn.class == class)?;
        let tasks = &self.tasks[&(turn.class, turn.tenant.clone())];
        Some(Head { kind: name, turn, due: *tasks.first().expect("a tenant here has tasks here") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_draws_from_the_first_tasks_and_the_head() {
        let mut queue = Queue::default();
        let mut tasks = 0..;
        assert_eq!(queue.first_class(), None);
        for kind in ["a", "b", "c"] {
            for (class, tenant, count) in [
                (TaskClass::Batch, "x", 3),
                (TaskClass::Batch, "y", 2),
                (TaskClass::Interactive, "z", if kind == "a" { 0 } else { 4 }),
                (TaskClass::Critical, "x", usize::from(kind == "b")),
            ] {
                let turn = Turn { class, service_ns: 7, tenant: tenant.into() };
                for task in tasks.by_ref().take(count) {
                    assert!(queue.insert(&kind.into(), &turn, Due { quanta: 0, due_ns: 5, task }));
                }
            }
        }
        for class in [TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch] {
            for (name, kind) in &queue.kinds {
                for turn in kind.turns.iter().filter(|turn| turn.class == class) {
                    let due = *kind.tasks[&(class, turn.tenant.clone())].first().expect("it has tasks");
                    for most in 0..20 {
                        let first: Vec<_> = queue.tasks_of(class).take(most).collect();
                        let expected = first.len() + usize::from(!first.contains(&due.task));
                        let head = Head { kind: name, turn, due };
                        assert_eq!(queue.count_with(&head, most), expected, "{head:?}, {most}");
                    }
                }
            }
        }
        let critical = queue.first().expect("there are tasks");
        let (kind, turn, due) = (critical.kind.clone(), critical.turn.clone(), critical.due);
        assert_eq!((queue.first_class(), queue.has_critical()), (Some(TaskClass::Critical), true));
        assert!(queue.remove(&kind, &turn, due) && !queue.remove(&kind, &turn, due));
        assert_eq!((queue.first_class(), queue.has_critical()), (Some(TaskClass::Interactive), false));
    }

    #[test]
    fn tasks_of_all_lanes_are_counted() {
        let turn = Turn { class: TaskClass::Batch, service_ns: 0, tenant: "x".into() };
        let due = |task| Due { quanta: 0, due_ns: 5, task };
        let mut shares = Shares::new(3);
        shares.insert(2, &"a".into(), &turn, due(1));
        shares.insert(2, &"a".into(), &turn, due(1));
        shares.insert(0, &"a".into(), &turn, due(1));
        let restored = postcard::from_bytes(&postcard::to_allocvec(&shares).unwrap());
        assert_eq!(restored, Ok(shares.clone()));
        shares.remove(1, &"a".into(), &turn, due(1));
        shares.remove(2, &"a".into(), &turn, due(1));
        assert!(!shares.are_empty() && shares.iter().count() == 3);
        shares.remove(0, &"a".into(), &turn, due(1));
        assert!(shares.are_empty() && shares.iter().count() == 0);
    }
}
