//! Alternatives of a shadow policy: all lanes for an arriving task, or all tasks for a free lane.

use warptape_events::journal::{Decision, Input, Shadow, TaskArrived};

use super::{lane_choice, term};
use crate::account::{Account, Choice, Otherwise, Subject};
use crate::error::StepError;
use crate::life::Life;
use crate::machine::Scheduler;
use crate::risk;

/// Account of a shadow decision, given the earlier decisions of the same step.
pub(super) fn account(
    scheduler: &Scheduler,
    before: &Life,
    (at_ns, input): (i64, &Input),
    earlier: &[Decision],
    told: &Shadow,
) -> Result<Account, StepError> {
    if let (Input::TaskArrived(arrived), Some(_)) = (input, told.lane_instead) {
        return Ok(of_arrival(before, at_ns, arrived, told));
    }
    // The slice with which the decision was recorded.
    let is_it = |other: &Decision| matches!(other, Decision::RunSlice(run) if Some(run.lane) == told.lane && run.task == told.task);
    match earlier.iter().rposition(is_it) {
        Some(run) => Ok(of_slice(&scheduler.before(at_ns, input, run)?, told)),
        None => Ok(Account::default()),
    }
}

/// The policy's choice of a lane for a task, in the state before the step.
fn of_arrival(life: &Life, at_ns: i64, arrived: &TaskArrived, told: &Shadow) -> Account {
    let (Some(lane), Some(joins)) = (told.lane_instead, risk::joins(life, at_ns, arrived, told.policy))
    else {
        return Account::default();
    };
    let choices = joins.lanes.iter().map(|one| lane_choice(one, lane)).collect();
    let next = joins.next_without(lane).map(|next| Otherwise::Next(Subject::Lane(next), None));
    let mut account = Account { choices, otherwise: next.into_iter().collect(), ..Account::default() };
    account.held("number_of_arrival", joins.number, joins.every);
    account
}

/// The policy's choice of a task for a lane, in the state before the lane's slice began.
fn of_slice(life: &Life, told: &Shadow) -> Account {
    let (Some(lane), Some(instead)) = (told.lane, told.task_instead) else { return Account::default() };
    let Some(begins) = risk::would_begin(life, lane, told.task, told.policy) else {
        return Account::default();
    };
    let choice = |seen: &risk::Waiting| Choice {
        subject: Subject::Task(seen.task),
        is_chosen: seen.task == instead,
        score: None,
        excluded: None,
        terms: vec![
            term("service_of_tenant_ns", seen.service_ns),
            term("turns", seen.quanta),
            term("ordered_by_ns", seen.due_ns),
            term("rest_ns", seen.rest_ns),
        ],
    };
    let choices = begins.tasks.iter().map(choice).collect();
    let next = begins.next_without(instead).map(|next| Otherwise::Next(Subject::Task(next), None));
    let mut account = Account { choices, otherwise: next.into_iter().collect(), ..Account::default() };
    account.held("number_of_slice", begins.number, begins.every);
    account
}
