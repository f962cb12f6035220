//! Explanations: the alternatives of a decision, the figures behind it, and the changes that would have changed it.
//!
//! No explanation is stored. The step is repeated on a copy of the state before it, and stopped just before the
//! decision. The rules then report what they compare in that state.

mod lane;
#[cfg(feature = "lab")]
mod shadow;

use serde::Serialize;
use warptape_events::journal::{
    Assign, Decision, Dispatch, GroupIndex, Input, LaneId, PartitionId, Place, RunSlice, TaskClass,
};

use crate::account::{Account, Choice, Measure, Otherwise, Subject, Term};
use crate::error::StepError;
use crate::life::Life;
use crate::log2::milli;
use crate::machine::Scheduler;
use crate::partitions::GroupKey;
use crate::{autoscale, breaker, dispatch, placement, risk};

pub use lane::{GroupElsewhere, LaneExplanation};

/// Explanation of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// All alternatives, including the chosen one. It is empty if the decision follows from its input alone.
    pub choices: Vec<Choice>,
    /// Figures and their thresholds, for rules that compare more than lanes or tasks.
    pub measures: Vec<Measure>,
    /// Changes that would have changed the decision.
    pub otherwise: Vec<Otherwise>,
}

impl Scheduler {
    /// Explains a decision of a step. `self` is the state before the step, and `index` is the decision's place among
    /// those of the step.
    ///
    /// # Errors
    /// This state refuses the input, because it is not the state before the recorded step.
    ///
    /// # Panics
    /// The step has no decision with this index.
    pub fn explain(&self, at_ns: i64, input: &Input, index: usize) -> Result<Explanation, StepError> {
        let (mut after, mut decisions) = (self.clone(), Vec::new());
        after.step(at_ns, input, &mut decisions)?;
        let told = self.account(at_ns, input, index, (&decisions, &after))?;
        let Account { choices, measures, otherwise } = told;
        Ok(Explanation { decision: decisions.swap_remove(index), choices, measures, otherwise })
    }

    /// Account of a decision, given all decisions of its step and the state after it.
    fn account(
        &self,
        at_ns: i64,
        input: &Input,
        index: usize,
        (decisions, after): (&[Decision], &Self),
    ) -> Result<Account, StepError> {
        // A start decides nothing, and any other step has a state before it.
        let (Some(before), Some(after)) = (&self.life, &after.life) else { return Ok(Account::default()) };
        Ok(match (&decisions[index], input) {
            (Decision::Place(place), _) => of_place(&mut self.before(at_ns, input, index)?, place),
            (Decision::Dispatch(batch), _) => of_dispatch(&mut self.before(at_ns, input, index)?, batch),
            (Decision::Assign(assign), Input::TaskArrived(arrived)) => {
                of_assign(&risk::sighted(before, at_ns, arrived, &before.config.risk.policy), assign)
            }
            (Decision::RunSlice(run), _) => of_slice(&mut self.before(at_ns, input, index)?, run),
            (Decision::Breaker(turned), _) => breaker::account(before, after, at_ns, turned),
            (Decision::Headroom(headroom), _) => breaker::headroom_account(before, headroom),
            (Decision::FellBack(fell), _) => {
                let bandit = before.learnt.bandit.as_ref();
                bandit.map_or_else(Account::default, |bandit| bandit.account(fell.task, at_ns))
            }
            (Decision::Scale(_), _) => autoscale::account(before, at_ns),
            #[cfg(feature = "lab")]
            (Decision::Shadow(told), _) => {
                shadow::account(self, before, (at_ns, input), &decisions[..index], told)?
            }
            _ => Account::default(),
        })
    }

    /// All lanes as placement would see them if the group had none now, with their scores. The group's present lane is
    /// marked as chosen. The list is empty if there is no such group.
    pub fn lanes_for(&self, partition: PartitionId, group: GroupIndex) -> Vec<Choice> {
        let Some(life) = &self.life else { return Vec::new() };
        let owner = life.partitions.get(&partition).and_then(|partition| {
            partition.active().get(usize::try_from(group).ok()?).and_then(|group| group.lane)
        });
        let accounts = placement::account(life, GroupKey { partition, group });
        lane_choices(life, &accounts.unwrap_or_default(), owner)
    }

    /// The state just before the decision with this index.
    fn before(&self, at_ns: i64, input: &Input, index: usize) -> Result<Life, StepError> {
        // The later a step is stopped, the more decisions it has.
        let broken_off = |number: usize| {
            let (mut copy, mut decisions) = (self.clone(), Vec::new());
            let is_there = copy.step_until(at_ns, input, number, &mut decisions)?;
            Ok((copy, is_there && decisions.len() <= index))
        };
        let (mut low, mut high) = (0, index + 1);
        while low < high {
            let middle = (low + high).div_ceil(2);
            let (_, is_before) = broken_off(middle)?;
            (low, high) = if is_before { (middle, high) } else { (low, middle - 1) };
        }
        let (copy, _) = broken_off(low)?;
        Ok(copy.life.expect("a step was taken in it"))
    }
}

fn term(name: &'static str, value: i64) -> Term {
    Term { name, value }
}

fn of_place(life: &mut Life, place: &Place) -> Account {
    let key = GroupKey { partition: place.partition, group: place.group };
    let accounts = placement::account(life, key).unwrap_or_default();
    let choices = lane_choices(life, &accounts, Some(place.lane));
    let Some(chosen) = accounts.iter().find(|account| account.view.lane == place.lane) else {
        return Account { choices, ..Account::default() };
    };
    let rank = |account: &&placement::LaneAccount| (account.score, -account.view.lane);
    let others = || accounts.iter().filter(|account| account.view.lane != place.lane);
    let next = others().filter(|account| account.excluded.is_none()).max_by_key(rank);
    let mut otherwise: Vec<Otherwise> = next
        .map(|next| Otherwise::Next(Subject::Lane(next.view.lane), chosen.score.checked_sub(next.score)))
        .into_iter()
        .collect();
    let better = others().filter(|account| rank(account) > rank(&chosen));
    otherwise.extend(
        better.filter_map(|account| {
            account.excluded.map(|reason| Otherwise::Unless(account.view.lane, reason))
        }),
    );
    Account { choices, otherwise, ..Account::default() }
}

/// Lanes as alternatives for a group.
fn lane_choices(life: &Life, accounts: &[placement::LaneAccount], chosen: Option<LaneId>) -> Vec<Choice> {
    let is_measured = life.policy.is_measured();
    let choice = |account: &placement::LaneAccount| {
        let view = &account.view;
        let mut terms = vec![
            term("weight", view.weight.into()),
            term("weight_withheld_percent", view.withheld_percent.into()),
            term("is_short_of_memory", view.is_short_of_memory.into()),
            term("groups", account.groups_placed.into()),
            term("groups_max", account.groups_max.into()),
        ];
        if is_measured {
            terms.push(term("load_of_others_ns_per_s", view.others_ns));
            terms.push(term("load_of_group_ns_per_s", view.own_ns));
            terms.push(term("is_bound", view.is_bound.into()));
            terms.extend(view.closeness.map(|closeness| term("closeness", closeness as i64)));
        }
        Choice {
            subject: Subject::Lane(view.lane),
            is_chosen: Some(view.lane) == chosen,
            score: Some(account.score),
            excluded: account.excluded,
            terms,
        }
    };
    accounts.iter().map(choice).collect()
}

fn of_dispatch(life: &mut Life, batch: &Dispatch) -> Account {
    let lane = &life.lanes[batch.lane as usize];
    let start_by_ns = dispatch::start_by_ns(life, lane);
    let waiting_rows = lane.waiting.rows;
    let terms = vec![
        term("waiting_rows", waiting_rows),
        term("batch_rows_max", life.config.batch_rows_max),
        term("rows_in_flight", lane.in_flight.rows),
        term("batches_in_flight", lane.in_flight.batches.len() as i64),
        term("oldest_row_waits_ns", life.clock.at_ns - batch.oldest_arrival_ns),
        term("lane_is_free_in_ns", (lane.free_ns - life.clock.at_ns).max(0)),
        term("batch_is_predicted_to_take_ns", lane.predicted_ns(batch.rows)),
    ];
    let choice =
        Choice { subject: Subject::Lane(batch.lane), is_chosen: true, score: None, excluded: None, terms };
    // A row whose deadline was too near at its arrival was due at once.
    let start_by_ns = start_by_ns.filter(|start_by_ns| *start_by_ns > batch.oldest_arrival_ns);
    let mut otherwise: Vec<Otherwise> = start_by_ns.map(Otherwise::AtLatest).into_iter().collect();
    if waiting_rows < life.config.batch_rows_max {
        otherwise.push(Otherwise::FullWith(life.config.batch_rows_max - waiting_rows));
    }
    Account { choices: vec![choice], otherwise, ..Account::default() }
}

/// Lanes as alternatives for a task. Admitting the task does not change what the policy sees, so the state before the
/// step is enough.
fn of_assign(lanes: &[risk::Sighted], assign: &Assign) -> Account {
    let score = |of: LaneId| lanes.iter().find(|lane| lane.view.lane == of).and_then(|lane| lane.score);
    let others = lanes.iter().filter(|lane| lane.view.lane != assign.lane && lane.score.is_some());
    let next = others.max_by_key(|lane| (lane.score, -lane.view.lane)).map(|next| {
        let less = score(assign.lane).zip(next.score).map(|(chosen, next)| chosen - next);
        // A drawn lane may score less than the preferred one.
        Otherwise::Next(Subject::Lane(next.view.lane), less)
    });
    let choices = lanes.iter().map(|lane| lane_choice(lane, assign.lane)).collect();
    Account { choices, otherwise: next.into_iter().collect(), ..Account::default() }
}

/// A lane as an alternative for a task.
fn lane_choice(lane: &risk::Sighted, chosen: LaneId) -> Choice {
    let mut choice = Choice {
        subject: Subject::Lane(lane.view.lane),
        is_chosen: lane.view.lane == chosen,
        score: lane.score,
        excluded: lane.excluded,
        terms: vec![
            term("tasks", lane.view.tasks),
            term("backlog_ns", lane.view.backlog_ns),
            term("task_ns", lane.view.task_ns),
            term("speed", lane.view.speed),
            term("utilization_ppm", lane.view.utilization_ppm),
            term("utilization_of_second_before_ppm", lane.older_ppm),
        ],
    };
    let logarithms = [
        ("correction_milli_log2", lane.correction),
        ("worth_more_on_other_kind_milli_log2", lane.view.forgone),
    ];
    for (name, log2) in logarithms {
        choice.terms.extend(log2.map(|log2| term(name, milli(log2))));
    }
    choice
}

fn of_slice(life: &mut Life, run: &RunSlice) -> Account {
    let urgency = |class: TaskClass| class as i64;
    let choice = |account: &risk::TaskAccount| Choice {
        subject: Subject::Task(account.task),
        is_chosen: account.task == run.task,
        score: None,
        excluded: None,
        terms: vec![
            term("class", urgency(account.class)),
            term("service_of_tenant_ns", account.service_ns),
            term("turns", account.quanta),
            term("ordered_by_ns", account.due_ns),
            term("price", account.offer.price),
            term("fs_per_cost", account.offer.fs_per_cost),
        ],
    };
    let mut choices: Vec<Choice> = risk::account(life, run.lane).iter().map(choice).collect();
    // A task may be in two queues: with open units, and with a share of this lane.
    let mut seen = Vec::new();
    choices.retain(|choice| {
        !seen.contains(&choice.subject) && {
            seen.push(choice.subject);
            true
        }
    });
    if !choices.iter().any(|choice| choice.is_chosen) {
        // The task was not the first of its queue, because it was drawn, aged, stolen or part of a gang.
        choices.push(Choice {
            subject: Subject::Task(run.task),
            is_chosen: true,
            score: None,
            excluded: None,
            terms: vec![term("class", urgency(run.class))],
        });
    }
    let next = risk::next_without(life, run.lane, run.task);
    let otherwise = next.map(|task| Otherwise::Next(Subject::Task(task), None)).into_iter().collect();
    Account { choices, otherwise, ..Account::default() }
}
