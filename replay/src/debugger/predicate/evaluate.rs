//! Evaluates a condition on a step.
//!
//! Fields of the same thing are compared together: in `lane=cuda:1 && queue>1000` both belong to the same lane; in
//! `decision=Dispatch && lane=0` the lane is the decision's. So a condition is evaluated for each *focus* of a step,
//! which combines the input or one decision, a lane and a partition. The condition holds for the step if it holds for
//! at least one focus. A field that a focus lacks compares as false.

use warptape_scheduler::{LaneLoad, PartitionLoad};
use warptape_schemas::journal::{Decision, GroupIndex, Input, LaneId, PartitionId};

use super::{BREAKERS, Comparison, Field, Predicate};
use crate::debugger::Step;

/// The things that an input or a decision is about.
#[derive(Default)]
struct Subject {
    decision: Option<&'static str>,
    reason: Option<String>,
    batch: Option<i64>,
    task: Option<i64>,
    lanes: Vec<LaneId>,
    /// Partitions and their groups, if there are any.
    groups: Vec<(Option<PartitionId>, Option<GroupIndex>)>,
}

/// One focus: things for which a condition is evaluated together.
struct Focus<'a> {
    subject: &'a Subject,
    group: Option<GroupIndex>,
    lane: Option<&'a LaneLoad>,
    partition: Option<&'a PartitionLoad>,
    /// Number of the partition, which the state may no longer contain.
    partition_number: Option<PartitionId>,
}

/// A step, with parts of its state that several comparisons need.
struct Facts<'a> {
    step: &'a Step<'a>,
    lanes: Vec<LaneLoad>,
    partitions: Vec<PartitionLoad>,
}

impl Predicate {
    /// True if the condition holds for the step.
    pub fn holds(&self, step: &Step<'_>) -> bool {
        let facts = Facts {
            step,
            lanes: step.state.lane_loads().collect(),
            partitions: step.state.partition_loads().collect(),
        };
        self.subjects(step).iter().any(|subject| self.holds_of_subject(&facts, subject))
    }

    /// Returns the subjects to evaluate: the decisions if the condition names them, otherwise the input if it names
    /// that. If it names neither but uses a field of either, both are subjects; otherwise the only subject is empty.
    fn subjects(&self, step: &Step<'_>) -> Vec<Subject> {
        let decisions = || step.entry.decisions.iter().map(of_decision);
        let about = [Field::Reason, Field::Batch, Field::Group, Field::Task];
        if self.names(Field::Decision) {
            return match step.entry.decisions.is_empty() {
                // With an empty subject, `decision != Place` and the like are false, and `!(decision = Place)` is true.
                true => vec![Subject::default()],
                false => decisions().collect(),
            };
        }
        let input = of_input(&step.entry.input);
        if self.names(Field::Input) {
            return vec![input];
        }
        match about.iter().any(|field| self.names(*field)) {
            true => std::iter::once(input).chain(decisions()).collect(),
            false => vec![Subject::default()],
        }
    }

    fn holds_of_subject(&self, facts: &Facts<'_>, subject: &Subject) -> bool {
        let is_its = |lane: &&LaneLoad| subject.lanes.is_empty() || subject.lanes.contains(&lane.lane);
        let mut lanes: Vec<Option<&LaneLoad>> = vec![None];
        if self.names(Field::Lane) || self.names(Field::Breaker) || self.names(Field::Ready) {
            lanes = facts.lanes.iter().filter(is_its).map(Some).collect();
        }
        let mut groups = subject.groups.clone();
        let asks_for_partition = self.names(Field::Partition) || self.names(Field::Paused);
        if groups.is_empty() && asks_for_partition {
            groups = facts.partitions.iter().map(|partition| (Some(partition.partition), None)).collect();
        }
        if groups.is_empty() || !(asks_for_partition || self.names(Field::Group)) {
            groups = vec![(None, None)];
        }
        let lanes = if lanes.is_empty() { vec![None] } else { lanes };
        groups.iter().any(|(number, group)| {
            let of_number = |load: &&PartitionLoad| Some(load.partition) == *number;
            let partition = facts.partitions.iter().find(of_number);
            lanes.iter().any(|lane| {
                let (group, partition_number) = (*group, *number);
                let focus = Focus { subject, group, lane: *lane, partition, partition_number };
                let names_lane = self.names(Field::Lane);
                let names_partition = self.names(Field::Partition);
                self.expression
                    .holds(&|comparison| focus.holds(facts, comparison, names_lane, names_partition))
            })
        })
    }
}

impl Focus<'_> {
    fn holds(
        &self,
        facts: &Facts<'_>,
        comparison: &Comparison,
        names_lane: bool,
        names_partition: bool,
    ) -> bool {
        let number = |found: Option<i64>| found.is_some_and(|found| comparison.holds_of_number(found));
        let text = |found: Option<&str>| found.is_some_and(|found| comparison.holds_of_text(found));
        let flag = |found: Option<bool>| found.is_some_and(|found| comparison.holds_of_flag(found));
        let Facts { step, lanes, partitions } = facts;
        let of_lane = |rows: fn(&LaneLoad) -> i64| match names_lane {
            true => self.lane.map(rows),
            false => Some(lanes.iter().map(rows).sum()),
        };
        let all_waiting = || partitions.iter().map(|partition| partition.waiting_rows).sum::<i64>();
        match comparison.field {
            Field::Sequence => number(Some(step.entry.sequence)),
            Field::At => number(Some(step.entry.at_ns)),
            Field::Input => text(Some(step.entry.input.name())),
            Field::Decision => text(self.subject.decision),
            Field::Reason => text(self.subject.reason.as_deref()),
            Field::Batch => number(self.subject.batch),
            Field::Group => number(self.group.map(i64::from)),
            Field::Task => number(self.subject.task),
            Field::Lane => self.lane.is_some_and(|lane| is_lane(comparison, lane.lane, step)),
            // Groups without a lane have waiting rows, too.
            Field::Queue if !names_lane => number(Some(all_waiting())),
            Field::Queue => number(self.lane.map(|lane| lane.waiting_rows)),
            Field::InFlight => number(of_lane(|lane| lane.in_flight_rows)),
            Field::Breaker => text(self.lane.and_then(|lane| {
                let state = step.state.breakers().nth(usize::try_from(lane.lane).ok()?)?;
                Some(BREAKERS[state as usize])
            })),
            Field::Ready => flag(self.lane.map(|lane| lane.ready)),
            Field::Partition => number(self.partition_number.map(i64::from)),
            Field::Waiting if names_partition => {
                number(self.partition.map(|partition| partition.waiting_rows))
            }
            Field::Waiting => number(Some(all_waiting())),
            Field::Paused => flag(self.partition.map(|partition| partition.paused)),
            Field::Tasks => number(Some(step.state.tasks_known() as i64)),
            Field::Differs => flag(Some(step.differs())),
        }
    }
}

/// True if the lane is the named one, by index or by device.
fn is_lane(comparison: &Comparison, lane: LaneId, step: &Step<'_>) -> bool {
    match comparison.value {
        super::Value::Number(_) => comparison.holds_of_number(lane.into()),
        _ => comparison.holds_of_text(step.device(lane)),
    }
}

fn of_input(input: &Input) -> Subject {
    let lane = |lane: LaneId| Subject { lanes: vec![lane], ..Subject::default() };
    let partition =
        |partition: PartitionId| Subject { groups: vec![(Some(partition), None)], ..Subject::default() };
    match input {
        Input::PartitionAssigned(assigned) => partition(assigned.partition),
        Input::PartitionRevoked(revoked) => partition(revoked.partition),
        Input::Arrived(arrived) => {
            let of = |group: GroupIndex| (Some(arrived.partition), Some(group));
            Subject { groups: arrived.groups.iter().map(|one| of(one.group)).collect(), ..Subject::default() }
        }
        Input::Completed(completed) => Subject { batch: Some(completed.batch), ..lane(completed.lane) },
        Input::LaneLost(lost) => Subject { reason: Some(lost.reason.clone()), ..lane(lost.lane) },
        Input::LaneReady(ready) => lane(ready.lane),
        Input::Measured(measured) => lane(measured.lane),
        Input::Released(released) => {
            Subject { groups: vec![(Some(released.partition), Some(released.group))], ..lane(released.lane) }
        }
        Input::TaskArrived(task) => Subject { task: Some(task.task), ..partition(task.partition) },
        Input::SliceDone(done) => lane(done.lane),
        Input::TaskDropped(dropped) => Subject { task: Some(dropped.task), ..Subject::default() },
        Input::Sealed(sealed) => Subject {
            groups: sealed.partitions.iter().map(|part| (Some(part.partition), None)).collect(),
            ..Subject::default()
        },
        Input::Positions(positions) => Subject {
            groups: positions.partitions.iter().map(|one| (Some(one.partition), None)).collect(),
            ..Subject::default()
        },
        Input::Sampled(sampled) => lane(sampled.lane),
        Input::Started(_) | Input::Woke(_) | Input::Draining(_) | Input::Priced(_) => Subject::default(),
        Input::Control(_) | Input::Checkpoint(_) | Input::CommitEnded(_) | Input::Trained(_) => {
            Subject::default()
        }
    }
}

fn of_decision(decision: &Decision) -> Subject {
    let empty = Subject::default;
    let lane = |lane: LaneId| Subject { lanes: vec![lane], ..empty() };
    let task = |task: i64| Subject { task: Some(task), ..empty() };
    let partition = |partition: PartitionId| Subject { groups: vec![(Some(partition), None)], ..empty() };
    let of = |partition: PartitionId, group: GroupIndex| vec![(Some(partition), Some(group))];
    let subject = match decision {
        Decision::Place(place) => Subject { groups: of(place.partition, place.group), ..lane(place.lane) },
        Decision::Dispatch(batch) => {
            let groups = batch.takes.iter().map(|take| (Some(take.partition), Some(take.group))).collect();
            let (number, reason) = (Some(batch.batch), word(&batch.reason));
            Subject { batch: number, reason, groups, ..lane(batch.lane) }
        }
        Decision::Pause(pause) => partition(pause.partition),
        Decision::Resume(resume) => partition(resume.partition),
        Decision::Fence(fence) => Subject { reason: Some(fence.reason.clone()), ..lane(fence.lane) },
        Decision::Restore(restore) => {
            Subject { lanes: vec![restore.lost_lane], ..partition(restore.partition) }
        }
        Decision::WakeAt(_) => empty(),
        Decision::Release(release) => {
            let groups = of(release.partition, release.group);
            Subject { groups, reason: word(&release.cause), ..lane(release.lane) }
        }
        Decision::Admit(admit) => task(admit.task),
        Decision::Reject(reject) => Subject { reason: word(&reject.reason), ..task(reject.task) },
        Decision::Split(split) => {
            Subject { lanes: split.shares.iter().map(|share| share.lane).collect(), ..task(split.task) }
        }
        Decision::Reserve(reserve) => Subject { lanes: reserve.lanes.clone(), ..task(reserve.task) },
        Decision::RunSlice(run) => {
            Subject { lanes: vec![run.lane], reason: word(&run.reason), ..task(run.task) }
        }
        Decision::Expire(expire) => task(expire.task),
        Decision::Finish(finish) => task(finish.task),
        Decision::Assign(assign) => {
            Subject { lanes: vec![assign.lane], reason: word(&assign.reason), ..task(assign.task) }
        }
        Decision::AskPrices(_) => empty(),
        Decision::Controlled(controlled) => Subject { reason: Some(controlled.detail.clone()), ..empty() },
        Decision::Breaker(breaker) => Subject { reason: word(&breaker.reason), ..lane(breaker.lane) },
        Decision::Headroom(headroom) => lane(headroom.lane),
        Decision::Drift(drift) => lane(drift.lane),
        Decision::Shed(shed) => Subject { reason: word(&shed.reason), ..task(shed.task) },
        Decision::FellBack(fell) => task(fell.task),
        Decision::Scale(scale) => Subject { reason: word(&scale.reason), ..empty() },
        Decision::Shadow(shadow) => Subject { lanes: shadow.lane.into_iter().collect(), ..task(shadow.task) },
    };
    Subject { decision: Some(decision.name()), ..subject }
}

/// Returns the name of a reason in JSON; `None` if its JSON is not a text.
fn word(reason: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(reason).ok()?.as_str().map(str::to_owned)
}
