//! The guarantee of ageing. Among sixteen successive slices there is one for the longest-waiting aged task that any
//! lane may take. Or it is for a task that only its lane may take, and that has waited longer.

use warptape_events::journal::*;
use warptape_scheduler::Scheduler;

/// Most successive slices that may begin while the same aged task waits longest. One in sixteen is for aged tasks, but
/// tasks that were split may have waited longer.
const PASSED_MAX: i64 = 16 * 16;

/// Counter of slices that begin while another task waits longest.
#[derive(Default)]
pub struct Starvation {
    longest: Option<TaskId>,
    passed: i64,
}

impl Starvation {
    /// Notes that a slice of `begins` starts while the aged task `longest`, if any, waits longest.
    pub fn observe(&mut self, longest: Option<TaskId>, begins: TaskId) -> Result<(), String> {
        let is_same = longest.is_some() && self.longest == longest && longest != Some(begins);
        self.passed = if is_same { self.passed + 1 } else { 0 };
        self.longest = longest;
        match self.passed > PASSED_MAX {
            true => Err(format!("task {longest:?} starves: {} slices passed it", self.passed)),
            false => Ok(()),
        }
    }
}

/// Runs one lane with endless critical tasks and an earlier batch task. Returns the number of slices before the batch
/// task begins, and the result of the check.
fn beside_critical_tasks(ageing_ns: i64) -> (Option<i64>, Result<(), String>) {
    let mut config = crate::script::config();
    config.risk.ageing_ns = ageing_ns;
    let (mut scheduler, mut starvation) = (Scheduler::new(), Starvation::default());
    let mut decisions = Vec::new();
    let mut step = |at_ns, input: &Input| {
        decisions.clear();
        scheduler.step(at_ns, input, &mut decisions).expect("it is good");
        decisions.iter().find_map(|decision| match decision {
            Decision::RunSlice(slice) => Some((slice.slice, slice.task)),
            _ => None,
        })
    };
    step(0, &crate::script::started(config, &[1]));
    step(0, &crate::script::assigned(0, 1));
    let task = |task, class| Input::TaskArrived(TaskArrived { class, ..crate::script::task(task) });
    step(0, &task(0, TaskClass::Critical));
    step(0, &task(1, TaskClass::Batch));
    for slice in 0..1_000 {
        let at_ns = 10 * slice;
        step(at_ns, &task(slice + 2, TaskClass::Critical));
        let (_, begins) =
            step(at_ns, &Input::SliceDone(SliceDone { lane: 0, slice, service_ns: 10 })).expect("tasks wait");
        if begins == 1 {
            return (Some(slice + 1), Ok(()));
        }
        if let Err(found) = starvation.observe(Some(1), begins) {
            return (None, Err(found));
        }
    }
    (None, Ok(()))
}

#[test]
fn a_batch_task_begins_beside_critical_tasks_without_end() {
    assert_eq!(beside_critical_tasks(1), (Some(7), Ok(())));
    // The task is aged after a hundred slices; the next slice for aged tasks is the 103rd.
    assert_eq!(beside_critical_tasks(1_000), (Some(103), Ok(())));
}

#[test]
fn starvation_is_found() {
    let (begins, found) = beside_critical_tasks(0);
    assert_eq!((begins, found), (None, Err("task Some(1) starves: 257 slices passed it".to_owned())));
}
