//! What a policy in the shadow chose among: all lanes for a task that arrived, or tasks for a lane that was free.

use warptape_events::journal::{Shadow, TaskArrived};

use super::{Account, Choice, Otherwise, Subject, lane_choice, term};
use crate::life::Life;
use crate::risk;

/// What it would have done with a task; the state is that before the step.
pub(super) fn of_arrival(life: &Life, at_ns: i64, arrived: &TaskArrived, told: &Shadow) -> Account {
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

/// What it would have given to a lane; the state is that before the slice which the lane got.
pub(super) fn of_slice(life: &Life, told: &Shadow) -> Account {
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
