//! The tasks known to a baseline, with their open, running and remaining units.

use std::collections::{BTreeMap, BTreeSet};

use warptape_events::journal::{TaskArrived, TaskId};

#[derive(Clone, Debug)]
struct Task {
    kind: usize,
    unit_cost: i64,
    deadline_ns: Option<i64>,
    /// Ranges of units that no lane has begun; the last range is taken next.
    open: Vec<(i64, i64)>,
    /// Number of units that are not done.
    rest: i64,
    slices_running: i32,
    service_ns: i64,
    /// The task's lane; `None` before one is chosen, or if the rule lets lanes pull tasks.
    lane: Option<usize>,
}

/// All tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    tasks: BTreeMap<TaskId, Task>,
    /// Tasks with open units, by kind.
    open: Vec<BTreeSet<TaskId>>,
    deadlines: BTreeSet<(i64, TaskId)>,
}

impl Tasks {
    pub(super) fn insert(&mut self, arrived: &TaskArrived, kind: usize) {
        let &TaskArrived { task, units, unit_cost, deadline_ns, .. } = arrived;
        self.open.resize(self.open.len().max(kind + 1), BTreeSet::new());
        self.open[kind].insert(task);
        self.deadlines.extend(deadline_ns.map(|deadline_ns| (deadline_ns, task)));
        let (open, rest) = (vec![(0, units)], units);
        let (slices_running, service_ns, lane) = (0, 0, None);
        let known = Task { kind, unit_cost, deadline_ns, open, rest, slices_running, service_ns, lane };
        self.tasks.insert(task, known);
    }

    pub(super) fn number(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn kind(&self, task: TaskId) -> usize {
        self.tasks[&task].kind
    }

    /// Returns the cost of a task's remaining units.
    pub(super) fn rest(&self, task: TaskId) -> i64 {
        let Task { rest, unit_cost, .. } = self.tasks[&task];
        rest * unit_cost
    }

    /// Returns the number of tasks by kind.
    pub(super) fn by_kind(&self, kinds: usize) -> Vec<f64> {
        let mut number = vec![0.0; kinds];
        self.tasks.values().for_each(|task| number[task.kind] += 1.0);
        number
    }

    pub(super) fn give(&mut self, task: TaskId, lane: usize) {
        self.known(task).lane = Some(lane);
    }

    pub(super) fn take_back(&mut self, task: TaskId) {
        self.known(task).lane = None;
    }

    pub(super) fn without_lane(&self) -> Vec<TaskId> {
        self.tasks.iter().filter(|(_, task)| task.lane.is_none()).map(|(id, _)| *id).collect()
    }

    /// Begins at most `most` units of a task with open ones, and returns their range.
    pub(super) fn begin(&mut self, id: TaskId, most: i64) -> (i64, i64) {
        let task = self.known(id);
        let (from, to) = task.open.pop().expect("the task has open units");
        let end = to.min(from + most);
        if end < to {
            task.open.push((end, to));
        }
        task.slices_running += 1;
        let (kind, is_open) = (task.kind, !task.open.is_empty());
        if !is_open {
            self.open[kind].remove(&id);
        }
        (from, end)
    }

    /// Completes a slice. Returns the kind of its task and the slice's cost; `None` if the task is gone.
    pub(super) fn done(
        &mut self,
        task: TaskId,
        (from, to): (i64, i64),
        service_ns: i64,
    ) -> Option<(usize, i64)> {
        let task = self.tasks.get_mut(&task)?;
        task.rest -= to - from;
        task.slices_running -= 1;
        task.service_ns += service_ns;
        Some((task.kind, (to - from) * task.unit_cost))
    }

    /// Reopens the units of a slice that was lost.
    pub(super) fn reopen(&mut self, id: TaskId, units: (i64, i64)) {
        if let Some(task) = self.tasks.get_mut(&id) {
            task.open.push(units);
            task.slices_running -= 1;
            let kind = task.kind;
            self.open[kind].insert(id);
        }
    }

    pub(super) fn is_done(&self, task: TaskId) -> bool {
        self.tasks.get(&task).is_some_and(|task| task.rest == 0)
    }

    /// Forgets a task, and returns its lane.
    pub(super) fn forget(&mut self, id: TaskId) -> Option<usize> {
        let task = self.tasks.remove(&id).expect("the task is known");
        self.open[task.kind].remove(&id);
        if let Some(deadline_ns) = task.deadline_ns {
            self.deadlines.remove(&(deadline_ns, id));
        }
        task.lane
    }

    /// Returns a task whose deadline has passed, with the deadline and the number of its running slices.
    pub(super) fn overdue(&self, at_ns: i64) -> Option<(TaskId, i64, i32)> {
        let &(deadline_ns, task) = self.deadlines.first().filter(|(deadline_ns, _)| *deadline_ns <= at_ns)?;
        Some((task, deadline_ns, self.tasks[&task].slices_running))
    }

    pub(super) fn has_open(&self, kind: usize) -> bool {
        self.open.get(kind).is_some_and(|open| !open.is_empty())
    }

    /// Returns the oldest task of a kind with open units.
    pub(super) fn oldest(&self, kind: usize) -> Option<TaskId> {
        self.open.get(kind)?.first().copied()
    }

    /// Returns the task of a kind with open units that received the least lane time.
    pub(super) fn least_served(&self, kind: usize) -> Option<TaskId> {
        self.open.get(kind)?.iter().min_by_key(|id| self.tasks[id].service_ns).copied()
    }

    /// Returns the task with open units of the greatest value, by its kind and the cost of its rest; the oldest of
    /// equals.
    pub(super) fn greatest(&self, value: impl Fn(usize, f64) -> f64) -> Option<TaskId> {
        let mut best: Option<(f64, TaskId)> = None;
        for (kind, open) in self.open.iter().enumerate() {
            for id in open {
                let found = value(kind, self.rest(*id) as f64);
                if best.is_none_or(|(most, of)| found > most || (found == most && *id < of)) {
                    best = Some((found, *id));
                }
            }
        }
        best.map(|(_, id)| id)
    }

    fn known(&mut self, task: TaskId) -> &mut Task {
        self.tasks.get_mut(&task).expect("the task is known")
    }
}
