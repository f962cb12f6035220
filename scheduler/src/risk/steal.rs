//! Stealing: an idle lane takes units from another lane's share if it would finish them sooner.
//!
//! ```text
//!   share of lane 1    ├── done ──┤ in its slice ├──────── waits ────────┤◄─ lane 0 takes a slice from the end
//! ```
//!
//! The lane with the latest predicted end of its shares gives units away if the idle lane would finish a slice sooner.
//! Shares of gangs, and tasks assigned by a push policy, stay where they are. The module owns the choice; it must not
//! know why a lane has no work.

use warptape_events::journal::{Decision, LaneId, SliceReason, TaskId};

use super::slices::{Next, Source, splits, start};
use crate::lanes::Lane;
use crate::life::{Clock, Life};
use crate::policy::task::TaskPolicy;
use crate::service::Serving;

/// A lane that can give units away.
#[derive(Clone, Copy, Debug)]
struct Victim {
    lane: LaneId,
    /// The task that this lane would begin next.
    task: TaskId,
    /// Predicted end of all of its shares.
    finish_ns: i64,
}

/// Makes free lanes take units from lanes with later predicted ends.
pub(super) fn run(life: &mut Life, serving: Serving, decisions: &mut Vec<Decision>) {
    // While a task is to be split, free lanes may be waiting for a gang.
    if !life.config.risk.steals
        || life.lanes.next_free(0).is_none()
        || !life.risk.queues.whole.is_empty()
        || life.risk.queues.shares.are_empty()
        || matches!(life.risk.policy, TaskPolicy::Push(_))
    {
        return;
    }
    let mut known = victim(life);
    let mut from = 0;
    while let Some((victim, index)) = known.zip(life.lanes.next_free(from)) {
        from = index + 1;
        let lane = index as LaneId;
        let may = serving.has(&life.lanes[index]) && splits(life, serving, lane) && life.step.room.is_there();
        if may && is_sooner(life, lane, victim) {
            let first = decisions.len();
            start(
                life,
                lane,
                Next::certain((Source::Other(victim.lane), victim.task), SliceReason::Stolen),
                decisions,
            );
            decisions[first..].iter().for_each(|decision| life.step.room.take(decision));
            known = self::victim(life);
        }
    }
}

/// The lane with the latest predicted end of its shares; the lowest one in a tie.
fn victim(life: &Life) -> Option<Victim> {
    let Life { risk, lanes, clock: Clock { at_ns, .. }, .. } = life;
    let of_lane = |lane: &Lane| {
        let index = lane.id as usize;
        let task = risk.queues.shares.of(lane.id).first()?.due.task;
        let finish_ns = lane.free_ns.max(*at_ns) + risk.lanes.queues[index].backlog_ns(lane, &risk.rates);
        (!risk.tasks[&task].spec.gang).then_some(Victim { lane: lane.id, task, finish_ns })
    };
    lanes.iter().rev().filter_map(of_lane).max_by_key(|victim| victim.finish_ns)
}

/// True if `lane` is predicted to finish a slice of the task before the other lane finishes all of its shares.
fn is_sooner(life: &Life, lane: LaneId, victim: Victim) -> bool {
    let Life { risk, lanes, config, clock: Clock { at_ns, .. }, .. } = life;
    let (class, task) = (lanes[lane as usize].class, &risk.tasks[&victim.task]);
    let key = &task.spec.rate_key;
    let width = risk.widths.of_class(class);
    let wanted = task.spec.slice_units(&risk.rates, class, width, config.risk.slice_ns);
    let share = task.share_of(victim.lane).map_or(0, |index| task.shares[index].1.count());
    let units = wanted.min(share);
    let expected_ns = match risk.rates.predict(class, key, task.cost_on(width, units)) {
        Some(predicted) => predicted.mean_ns,
        None => {
            let cost_on = |class| task.cost_on(risk.widths.of_class(class), units);
            risk.rates.expected_ns(class, lanes[lane as usize].weight.current, key, cost_on)
        }
    };
    at_ns + expected_ns < victim.finish_ns
}
