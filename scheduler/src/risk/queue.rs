//! Tasks in the order in which lanes take them: by class, by the tenant with the least service, by turns, by deadline, by arrival.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use warptape_events::journal::{TaskClass, TaskId};

/// Where a tenant stands in a class: it orders as lanes choose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    pub(crate) class: TaskClass,
    /// Service that it has had by its weight.
    pub(crate) service_ns: i64,
    pub(crate) tenant: Arc<str>,
}

/// Where a task stands among those of its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    /// Quanta of service that it has had, and those of the others when it came.
    pub(crate) quanta: i64,
    /// The deadline; the greatest number where there is none.
    pub(crate) deadline_ns: i64,
    /// Numbers rise with arrival.
    pub(crate) task: TaskId,
}

/// Tasks that may be taken from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Tenants that have tasks here.
    turns: BTreeSet<Turn>,
    tasks: BTreeMap<(TaskClass, Arc<str>), BTreeSet<Due>>,
}

impl Queue {
    /// Puts in a task of a tenant whose turn is this.
    pub(crate) fn insert(&mut self, turn: &Turn, due: Due) {
        let tasks = self.tasks.entry((turn.class, turn.tenant.clone())).or_default();
        if tasks.is_empty() {
            self.turns.insert(turn.clone());
        }
        tasks.insert(due);
    }

    /// Takes out a task that may be here.
    pub(crate) fn remove(&mut self, turn: &Turn, due: Due) {
        let account = (turn.class, turn.tenant.clone());
        let Some(tasks) = self.tasks.get_mut(&account) else { return };
        tasks.remove(&due);
        if tasks.is_empty() {
            self.tasks.remove(&account);
            self.turns.remove(turn);
        }
    }

    /// The service of a tenant that may be here has changed.
    pub(crate) fn replace(&mut self, old: &Turn, new: &Turn) {
        if self.turns.remove(old) {
            self.turns.insert(new.clone());
        }
    }

    /// What is taken next.
    pub(crate) fn first(&self) -> Option<(&Turn, Due)> {
        self.first_of(self.turns.first()?.class)
    }

    /// What is taken next of a class.
    pub(crate) fn first_of(&self, class: TaskClass) -> Option<(&Turn, Due)> {
        let least = Turn { class, service_ns: i64::MIN, tenant: Arc::default() };
        let turn = self.turns.range(least..).next().filter(|turn| turn.class == class)?;
        let tasks = &self.tasks[&(turn.class, turn.tenant.clone())];
        Some((turn, *tasks.first().expect("a tenant here has tasks here")))
    }

    /// The least quanta that a task of a tenant here has had.
    pub(crate) fn quanta(&self, class: TaskClass, tenant: &Arc<str>) -> Option<i64> {
        let tasks = self.tasks.get(&(class, tenant.clone()))?;
        tasks.first().map(|due| due.quanta)
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.values().flatten().map(|due| due.task)
    }
}
