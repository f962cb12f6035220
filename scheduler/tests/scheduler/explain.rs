//! Explanations of single decisions, as an engineer reads them.

use warptape_events::journal::*;
use warptape_scheduler::{Explanation, NextBatch, Otherwise, Scheduler, Subject};

use crate::script::{assigned, config, started, task};

struct Steps {
    scheduler: Scheduler,
    at_ns: i64,
}

impl Steps {
    fn start(config: SchedulerConfig, weights: &[i32]) -> Self {
        let mut steps = Self { scheduler: Scheduler::new(), at_ns: 0 };
        steps.step(&started(config, weights));
        steps
    }

    fn step(&mut self, input: &Input) -> Vec<Decision> {
        let mut decisions = Vec::new();
        self.at_ns += 10;
        self.scheduler.step(self.at_ns, input, &mut decisions).expect("good input");
        decisions
    }

    /// Explains the first decision of the next step of which `is` holds, and takes the step.
    fn explain(&mut self, input: &Input, is: impl Fn(&Decision) -> bool) -> Explanation {
        let before = self.scheduler.clone();
        let decisions = self.step(input);
        let index = decisions.iter().position(is).expect("the step decides it");
        before.explain(self.at_ns, input, index).expect("the step was taken")
    }
}

#[test]
fn a_lane_that_is_drained_would_have_been_chosen() {
    let mut steps = Steps::start(config(), &[1, 1, 1]);
    let place = |decision: &Decision| matches!(decision, Decision::Place(_));
    let free = steps.explain(&assigned(0, 1), place);
    let Decision::Place(Place { lane, .. }) = free.decision else { panic!("{free:?}") };
    // The runner-up, and by how much it lost.
    let [Otherwise::Next(Subject::Lane(next), Some(less))] = free.otherwise[..] else { panic!("{free:?}") };
    let score = |lane: LaneId| free.choices[lane as usize].score.unwrap();
    assert_eq!(score(lane) - score(next), less);

    let drain = Control {
        offset: 0,
        id: "one".into(),
        by: "someone".into(),
        deadline_ns: i64::MAX,
        command: ControlCommand::DrainLane(DrainLane { lane }),
    };
    steps.step(&Input::Control(drain));
    let released = Released { partition: 0, group: 0, lane, epoch: 1 };
    let moved = steps.explain(&Input::Released(released), place);
    assert!(moved.otherwise.contains(&Otherwise::Unless(lane, ExclusionReason::Drained)), "{moved:?}");
    assert!(moved.choices[next as usize].is_chosen);
    assert_eq!(moved.choices[lane as usize].score, Some(score(lane)), "what it would have had");
}

#[test]
fn a_batch_says_what_would_have_had_it_leave_otherwise() {
    let mut steps = Steps::start(SchedulerConfig { batch_rows_max: 10, ..config() }, &[1]);
    steps.step(&assigned(0, 1));
    let groups = vec![GroupArrival { group: 0, rows: 4, bytes: 40 }];
    let arrived = Input::Arrived(Arrived { partition: 0, next_offset: 1, groups });
    let batch = steps.explain(&arrived, |decision| matches!(decision, Decision::Dispatch(_)));
    let by_ns = steps.at_ns + config().row_deadline_ns;
    assert_eq!(batch.otherwise, [Otherwise::AtLatest(by_ns), Otherwise::FullWith(6)]);
    let term = |name: &str| batch.choices[0].terms.iter().find(|term| term.name == name).unwrap().value;
    assert_eq!((term("waiting_rows"), term("rows_in_flight"), term("oldest_row_waits_ns")), (4, 0, 0));
}

#[test]
fn a_slice_says_which_task_would_have_been_next() {
    let mut steps = Steps::start(config(), &[1]);
    steps.step(&assigned(0, 1));
    steps.step(&Input::TaskArrived(task(0)));
    for (id, class) in [(1, TaskClass::Batch), (2, TaskClass::Critical), (3, TaskClass::Interactive)] {
        steps.step(&Input::TaskArrived(TaskArrived { class, ..task(id) }));
    }
    let done = Input::SliceDone(SliceDone { lane: 0, slice: 0, service_ns: 5 });
    let run = steps.explain(&done, |decision| matches!(decision, Decision::RunSlice(_)));
    let chosen: Vec<_> = run.choices.iter().filter(|choice| choice.is_chosen).collect();
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0].subject, Subject::Task(2), "the most urgent one");
    assert_eq!(run.choices.len(), 3, "the first of each class: {run:?}");
    assert_eq!(run.otherwise, [Otherwise::Next(Subject::Task(3), None)]);
}

#[test]
fn a_lane_says_what_keeps_it_from_batches_and_groups() {
    let limits = SchedulerConfig { lane_batches_max: 2, batch_rows_max: 10, ..config() };
    let mut steps = Steps::start(limits, &[1, 1]);
    steps.step(&assigned(0, 4));
    let lane_of = |steps: &Steps, group: GroupIndex| {
        let mut placements = steps.scheduler.placements();
        placements.find(|one| one.group == group).and_then(|one| one.lane).expect("it is placed")
    };
    let lane = lane_of(&steps, 0);
    let explained = |steps: &Steps| steps.scheduler.explain_lane(lane).expect("there is such a lane");
    assert_eq!(explained(&steps).next_batch, NextBatch::NothingWaits);

    let arrive = |steps: &mut Steps, next_offset: i64, rows: i64| {
        let groups = vec![GroupArrival { group: 0, rows, bytes: 10 * rows }];
        steps.step(&Input::Arrived(Arrived { partition: 0, next_offset, groups }))
    };
    arrive(&mut steps, 1, 3);
    let wakes = arrive(&mut steps, 2, 3);
    let wake_ns =
        wakes.iter().find_map(|one| if let Decision::WakeAt(wake) = one { Some(wake.at_ns) } else { None });
    assert_eq!(explained(&steps).next_batch, NextBatch::AtLatest(wake_ns.expect("it is to be woken")));
    // Two batches are in flight once as many rows wait as one may have.
    arrive(&mut steps, 3, 10);
    assert_eq!(explained(&steps).next_batch, NextBatch::BatchesInFlight);
    assert_eq!(explained(&steps).rows_left, 0);

    let others = explained(&steps).elsewhere;
    assert_eq!(others.len(), 4 - explained(&steps).load.groups_placed as usize);
    for other in &others {
        assert_eq!((other.choice.subject, other.lane), (Subject::Lane(lane), Some(1 - lane)));
        let lanes = steps.scheduler.lanes_for(0, other.group);
        assert_eq!(lanes.iter().filter(|one| one.is_chosen).count(), 1);
        assert_eq!(lanes[lane as usize], other.choice);
    }
    steps.step(&Input::LaneLost(LaneLost { lane, reason: "it broke".into(), kept: true }));
    assert_eq!(explained(&steps).excluded, Some(ExclusionReason::Lost));
    assert_eq!(explained(&steps).elsewhere.len(), 4);
    assert!(steps.scheduler.explain_lane(2).is_none());
}

/// The lanes of a group that has one are as placement saw them when it was placed, if nothing has changed since.
#[test]
fn lanes_of_a_placed_group_are_those_of_its_placement() {
    let mut steps = Steps::start(config(), &[1, 1, 1]);
    let placed = steps.explain(&assigned(0, 1), |decision| matches!(decision, Decision::Place(_)));
    assert_eq!(steps.scheduler.lanes_for(0, 0), placed.choices);
    assert!(steps.scheduler.lanes_for(0, 1).is_empty() && steps.scheduler.lanes_for(1, 0).is_empty());
}
