//! Tasks in the order in which lanes take them: by class, by the tenant with the least service, by turns, by deadline, by arrival;
//! under a policy that is not fair all tenants are one, and the policy's order says what turns and deadlines are.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, TaskClass, TaskId};

use crate::name::Name;

/// Where a tenant stands in a class: it orders as lanes choose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) class: TaskClass,
    /// Service that it has had by its weight.
    pub(crate) service_ns: i64,
    pub(crate) tenant: Name,
}

/// Where a task stands among those of its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Due {
    /// Quanta of service that it has had, and those of the others when it came.
    pub(crate) quanta: i64,
    /// The time that it is ordered by; the greatest number where there is none.
    pub(crate) due_ns: i64,
    /// Numbers rise with arrival.
    pub(crate) task: TaskId,
}

/// Tasks that may be taken from: by kind where the policy chooses among kinds, otherwise all together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queue {
    kinds: BTreeMap<Name, Kind>,
}

/// For each lane a queue of the tasks with units that it alone may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Queue>")]
pub(crate) struct Shares {
    by_lane: Vec<Queue>,
    /// Tasks in all of them, so that nobody looks where there is none.
    #[serde(skip)]
    tasks: usize,
}

/// What is first of a kind of tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    /// The kind, where the policy chooses among kinds.
    pub(crate) kind: &'a Name,
    pub(crate) turn: &'a Turn,
    pub(crate) due: Due,
}

impl Head<'_> {
    /// Orders as lanes choose.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        (self.turn, self.due).cmp(&(other.turn, other.due))
    }
}

/// Tasks of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kind {
    /// Tenants that have tasks here.
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

    /// Whether no lane has any.
    pub(crate) fn are_empty(&self) -> bool {
        self.tasks == 0
    }

    /// Every queue, or none where all are empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queue> {
        self.by_lane.iter().filter(|_| self.tasks > 0)
    }

    /// Likewise.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        let lanes = if self.tasks == 0 { 0 } else { self.by_lane.len() };
        self.by_lane[..lanes].iter_mut()
    }

    /// Puts in a task that is not in the lane's queue.
    pub(crate) fn insert(&mut self, lane: LaneId, kind: &Name, turn: &Turn, due: Due) {
        self.by_lane[lane as usize].insert(kind, turn, due);
        self.tasks += 1;
    }

    /// Takes out a task that is in the lane's queue.
    pub(crate) fn remove(&mut self, lane: LaneId, kind: &Name, turn: &Turn, due: Due) {
        self.by_lane[lane as usize].remove(kind, turn, due);
        self.tasks -= 1;
    }
}

impl From<Vec<Queue>> for Shares {
    fn from(by_lane: Vec<Queue>) -> Self {
        let tasks = by_lane.iter().map(|queue| queue.tasks().count()).sum();
        Self { by_lane, tasks }
    }
}

impl Queue {
    /// Puts in a task of a tenant whose turn is this.
    pub(crate) fn insert(&mut self, kind: &Name, turn: &Turn, due: Due) {
        let kind = match self.kinds.get_mut(kind) {
            Some(known) => known,
            None => self.kinds.entry(kind.clone()).or_default(),
        };
        let tasks = kind.tasks.entry((turn.class, turn.tenant.clone())).or_default();
        if tasks.is_empty() {
            kind.turns.insert(turn.clone());
        }
        tasks.insert(due);
    }

    /// Takes out a task that may be here.
    pub(crate) fn remove(&mut self, kind: &Name, turn: &Turn, due: Due) {
        let Some(known) = self.kinds.get_mut(kind) else { return };
        let account = (turn.class, turn.tenant.clone());
        let Some(tasks) = known.tasks.get_mut(&account) else { return };
        tasks.remove(&due);
        if tasks.is_empty() {
            known.tasks.remove(&account);
            known.turns.remove(turn);
        }
        if known.turns.is_empty() {
            self.kinds.remove(kind);
        }
    }

    /// The service of a tenant that may be here has changed.
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

    /// Whether there are critical tasks.
    pub(crate) fn has_critical(&self) -> bool {
        // They are the most urgent class.
        self.first_class() == Some(TaskClass::Critical)
    }

    /// What is taken next.
    pub(crate) fn first(&self) -> Option<Head<'_>> {
        self.heads().min_by(Head::order)
    }

    /// The most urgent class that there are tasks of.
    pub(crate) fn first_class(&self) -> Option<TaskClass> {
        self.kinds.values().filter_map(|kind| Some(kind.turns.first()?.class)).min()
    }

    /// What is taken next of a class.
    pub(crate) fn first_of(&self, class: TaskClass) -> Option<Head<'_>> {
        self.heads_of(class).min_by(Head::order)
    }

    /// What is first of each kind.
    fn heads(&self) -> impl Iterator<Item = Head<'_>> {
        self.kinds.iter().filter_map(|(name, kind)| kind.head(name, kind.turns.first()?.class))
    }

    /// What is first of each kind in a class.
    pub(crate) fn heads_of(&self, class: TaskClass) -> impl Iterator<Item = Head<'_>> {
        self.kinds.iter().filter_map(move |(name, kind)| kind.head(name, class))
    }

    /// The least quanta that a task of a tenant here has had.
    pub(crate) fn quanta(&self, class: TaskClass, tenant: &Name) -> Option<i64> {
        let account = (class, tenant.clone());
        let of_kind = |kind: &Kind| kind.tasks.get(&account)?.first().map(|due| due.quanta);
        self.kinds.values().filter_map(of_kind).min()
    }

    /// Tasks of a class, by kind, tenant and due.
    pub(crate) fn tasks_of(&self, class: TaskClass) -> impl Iterator<Item = TaskId> {
        let first = (class, Name::default());
        self.kinds.values().flat_map(move |kind| {
            let tenants = kind.tasks.range(first.clone()..).take_while(move |((of, _), _)| *of == class);
            tenants.flat_map(|(_, tasks)| tasks.iter().map(|due| due.task))
        })
    }

    /// How many tasks of the class of one there are, the first ones by kind, tenant and due up to so many; and that one, which is the first of
    /// its tenant's.
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

impl Kind {
    fn head<'a>(&'a self, name: &'a Name, class: TaskClass) -> Option<Head<'a>> {
        let least = Turn { class, service_ns: i64::MIN, tenant: Name::default() };
        let turn = self.turns.range(least..).next().filter(|turn| turn.class == class)?;
        let tasks = &self.tasks[&(turn.class, turn.tenant.clone())];
        Some(Head { kind: name, turn, due: *tasks.first().expect("a tenant here has tasks here") })
    }
}
