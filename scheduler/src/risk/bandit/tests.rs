//! Tests of the learner as a whole.

use warptape_events::journal::{
    Decision, Input, LaneSpec, PartitionAssigned, PartitionRevoked, SliceDone, Started, TaskArrived,
    TaskDropped, Woke,
};

use super::*;
use crate::Scheduler;
use crate::config::RULES;
use crate::config::tests::good;
use crate::policy::task::current_task_policy;

fn view(lane: LaneId, backlog_ns: i64) -> LaneView {
    LaneView {
        lane,
        tasks: 1,
        backlog_ns,
        task_ns: 1_000_000,
        is_known: true,
        speed: 1,
        utilization_ppm: 0,
        forgone: None,
    }
}

/// Runs tasks one after the other: lane 0 takes four times as long as predicted, lane 1 exactly as long.
fn learnt(tasks: i64) -> (Bandit, StateHash) {
    let mut hash = StateHash::default();
    let mut bandit = Bandit::new(2, &mut hash);
    for task in 0..tasks {
        let (lane, at_ns) = ((task % 2) as LaneId, 1_000_000_000 * task);
        let takes_ns = if lane == 0 { 4_000_000 } else { 1_000_000 };
        bandit.joined(task, TaskClass::Interactive, &view(lane, 0), at_ns, &mut hash);
        bandit.slice_done(lane, 1_000_000, takes_ns, &mut hash);
        assert_eq!(bandit.task_done(task, at_ns + takes_ns, &mut hash), None);
        assert_eq!(hash.value(), bandit.walked_hash());
    }
    (bandit, hash)
}

#[test]
fn a_lane_that_is_slower_than_its_class_is_passed_by() {
    let both = |bandit: &Bandit, backlog_ns| {
        bandit.choose(&[view(0, 0), view(1, backlog_ns)], TaskClass::Interactive)
    };
    let (bandit, _) = learnt(400);
    // Lane 1 is still chosen with a backlog of 2 ms, but not with one of 5 ms.
    assert_eq!([0, 2_000_000, 5_000_000].map(|backlog_ns| both(&bandit, backlog_ns)), [1, 1, 0]);
    let (fresh, _) = learnt(0);
    assert_eq!([0, 2_000_000].map(|backlog_ns| both(&fresh, backlog_ns)), [0, 0], "the rule");
}

/// Lanes swap roles every 400 tasks: one takes as long as predicted, the other sixteen times as long. Slices do not
/// show the difference.
#[test]
fn it_falls_back_when_errors_drift_and_returns_when_it_is_no_worse_than_the_rule() {
    let (mut bandit, mut hash) = learnt(400);
    let mut said: Vec<FellBack> = Vec::new();
    for task in 400..1_600 {
        let (lane, at_ns) = ((task % 2) as LaneId, 1_000_000_000 * task);
        let slow = if (task / 400) % 2 == 1 { 1 } else { 0 };
        let takes_ns = if lane == slow { 16_000_000 } else { 1_000_000 };
        bandit.joined(task, TaskClass::Interactive, &view(lane, 0), at_ns, &mut hash);
        said.extend(bandit.task_done(task, at_ns + takes_ns, &mut hash));
        let slower = bandit.choose(&[view(0, 0), view(1, 0)], TaskClass::Interactive);
        let is_trusted = said.last().is_none_or(|last| last.has_returned);
        assert!(is_trusted || slower == 0, "of equals the rule takes the first");
        assert_eq!(hash.value(), bandit.walked_hash());
    }
    let turns: Vec<_> = said.iter().map(|said| said.has_returned).collect();
    assert_eq!(turns, [false, true, false, true, false, true], "{said:?}");
    let mut fell_at = 0;
    for said in &said {
        assert_eq!(said.policy, "linucb");
        // The fall resets the learner, which then counts the task that showed the drift and all later ones.
        assert_eq!(said.completions, said.task - fell_at, "{said:?}");
        match said.has_returned {
            false => {
                fell_at = said.task;
                assert!((0..20).contains(&(said.task % 400)), "{said:?}");
                assert!(said.expected_milli < said.error_milli, "{said:?}");
            }
            true => assert!(said.error_milli <= said.expected_milli + 125, "{said:?}"),
        }
    }
    assert!(
        said.iter().any(|said| !said.has_returned && said.error_milli > 2_000),
        "they are not cut: {said:?}"
    );
    assert_eq!(said[1].completions, 96, "three good windows of 32: {said:?}");
    bandit.lane_opened(1, &mut hash);
    bandit.forget(&mut hash);
    assert_eq!(hash.value(), 0);
}

#[test]
fn what_a_lost_lane_had_teaches_nothing_and_tasks_that_are_waited_for_are_bounded() {
    let (mut bandit, mut hash) = learnt(10);
    for task in 10..10 + 2 * PENDING_MAX as i64 {
        bandit.joined(task, TaskClass::Batch, &view((task % 2) as LaneId, 0), task, &mut hash);
    }
    assert_eq!(bandit.pending.len(), PENDING_MAX);
    bandit.lane_opened(0, &mut hash);
    assert!(bandit.pending.len() == PENDING_MAX / 2 && bandit.pending.values().all(|one| one.lane == 1));
    let before = bandit.model.clone();
    assert_eq!(bandit.task_done(2 * PENDING_MAX as i64, 9_000_000, &mut hash), None);
    assert_eq!((&bandit.model, hash.value()), (&before, bandit.walked_hash()));
}

#[test]
fn a_lane_that_does_nothing_is_tried_again() {
    let (mut bandit, mut hash) = learnt(100);
    let before = bandit.slowness(0);
    assert!((ONE..=2 * ONE).contains(&before), "{before}");
    (0..4 * HALVES_AFTER).for_each(|_| bandit.slice_done(1, 1, 1, &mut hash));
    assert!(bandit.slowness(0) <= before / 8 && bandit.slowness(1) == 0);
}

/// More tasks wait than are tracked, and the earliest end first: the learner still learns from them and detects a
/// drift.
#[test]
fn under_overload_it_goes_on_learning_and_falls_back() {
    let (mut bandit, mut hash) = learnt(400);
    let (first, waiting, at_ns) = (400, 2 * PENDING_MAX as i64, 1_000_000_000_000);
    let join = |bandit: &mut Bandit, task: TaskId, hash: &mut StateHash| {
        bandit.joined(task, TaskClass::Interactive, &view((task % 2) as LaneId, 0), at_ns, hash);
    };
    (first..first + waiting).for_each(|task| join(&mut bandit, task, &mut hash));
    let mut said = Vec::new();
    for task in first..first + PENDING_MAX as i64 {
        // Lane 0 is suddenly as fast as predicted, and lane 1 takes sixteen times as long.
        let takes_ns = if task % 2 == 0 { 1_000_000 } else { 16_000_000 };
        said.extend(bandit.task_done(task, at_ns + takes_ns, &mut hash));
        join(&mut bandit, task + waiting, &mut hash);
    }
    assert_eq!((bandit.pending.len(), hash.value()), (PENDING_MAX, bandit.walked_hash()));
    let fell = said.first().expect("that is a drift");
    assert!(!fell.has_returned && (first..first + 20).contains(&fell.task), "{said:?}");
}

#[test]
fn a_lane_whose_tasks_all_expire_becomes_known_as_slow() {
    let mut hash = StateHash::default();
    let mut bandit = Bandit::new(2, &mut hash);
    let lanes = [view(0, 0), view(1, 0)];
    let mut chosen = [0, 0];
    for task in 0..200 {
        let at_ns = 1_000_000_000 * task;
        let lane = bandit.choose(&lanes, TaskClass::Interactive);
        chosen[lane as usize] += 1;
        bandit.joined(task, TaskClass::Interactive, &lanes[lane as usize], at_ns, &mut hash);
        if lane == 0 {
            bandit.task_expired(task, at_ns + 8_000_000, &mut hash);
        } else {
            bandit.slice_done(1, 1_000_000, 1_000_000, &mut hash);
            assert_eq!(bandit.task_done(task, at_ns + 1_000_000, &mut hash), None);
        }
        assert_eq!((bandit.pending.len(), hash.value()), (0, bandit.walked_hash()));
    }
    assert!((1..20).contains(&chosen[0]), "{chosen:?}");
}

/// Tasks are not learnt from if they expire before their expected end, or end without completing.
#[test]
fn what_expires_early_or_is_given_up_teaches_nothing() {
    let (mut bandit, mut hash) = learnt(400);
    let before = (bandit.model.clone(), bandit.lanes.clone(), bandit.watch.clone(), hash.value());
    for (task, ends) in [(400, true), (401, false)] {
        bandit.joined(task, TaskClass::Interactive, &view(0, 0), 0, &mut hash);
        match ends {
            // Lane 0 takes four times as long as predicted.
            true => bandit.task_expired(task, 3_000_000, &mut hash),
            false => drop(bandit.left(task, &mut hash)),
        }
        let after = (bandit.model.clone(), bandit.lanes.clone(), bandit.watch.clone(), hash.value());
        assert_eq!((&after, bandit.pending.len()), (&before, 0));
    }
    bandit.joined(402, TaskClass::Interactive, &view(0, 0), 0, &mut hash);
    bandit.task_expired(402, 9_000_000, &mut hash);
    assert_ne!(bandit.model, before.0, "longer than expected");
    assert_eq!(hash.value(), bandit.walked_hash());
}

/// A scheduler under the policy, with one lane that works on task 1 for a long time.
struct World(Scheduler);

impl World {
    fn begin() -> Self {
        let mut scheduler = good();
        scheduler.risk.policy = current_task_policy("linucb");
        (scheduler.risk.queues.delay_target_ns, scheduler.risk.queues.delay_interval_ns) = (1_000, 1_000);
        let text = str::to_owned;
        let (node, software, stage_config) = (text("node"), text("test"), text("{}"));
        let lanes = vec![LaneSpec::new(0, "cpu:0", 1)];
        let mut world = Self(Scheduler::new());
        let (autoscale, shadow) = (None, None);
        let started =
            Started { node, software, stage_config, scheduler, lanes, autoscale, shadow, rules: RULES };
        world.step(0, &Input::Started(Box::new(started)));
        for partition in [0, 1] {
            let (groups, committed_offset, snapshot_offset) = (1, 0, 0);
            let assigned = PartitionAssigned {
                partition,
                groups,
                committed_offset,
                snapshot_offset,
                ..PartitionAssigned::default()
            };
            world.step(0, &Input::PartitionAssigned(assigned));
        }
        world.arrive(0, 0, 0, None);
        assert_eq!(world.waited_for(), 0, "of the first task nothing is predicted");
        world.step(100, &Input::SliceDone(SliceDone { lane: 0, slice: 0, service_ns: 100 }));
        world.arrive(100, 1, 0, None);
        assert_eq!(world.waited_for(), 1);
        world
    }

    fn step(&mut self, at_ns: i64, input: &Input) -> Vec<Decision> {
        let mut decisions = Vec::new();
        self.0.step(at_ns, input, &mut decisions).expect("good input");
        self.0.audit();
        decisions
    }

    fn arrive(&mut self, at_ns: i64, task: TaskId, partition: i32, deadline_ns: Option<i64>) {
        let arrived = TaskArrived {
            task,
            partition,
            offset: task,
            request_id: task.to_string(),
            tenant: "a".to_owned(),
            class: TaskClass::Interactive,
            deadline_ns,
            rate_key: "key".to_owned(),
            first_unit: 0,
            units: 1,
            unit_cost: 1,
            slice_units_max: 1,
            gang: false,
            as_of: Vec::new(),
            bytes: 0,
            unit_width: 0,
        };
        let decisions = self.step(at_ns, &Input::TaskArrived(arrived));
        assert!(decisions.iter().any(|decision| matches!(decision, Decision::Assign(_))), "{decisions:?}");
    }

    fn waited_for(&self) -> usize {
        let life = self.0.life.as_ref().expect("it has begun");
        life.learnt.bandit.as_ref().expect("the policy learns").pending.len()
    }
}

#[test]
fn tasks_that_expire_are_shed_dropped_or_revoked_are_not_waited_for() {
    let mut world = World::begin();
    let is_gone = |world: &World, task: TaskId| {
        assert_eq!(world.waited_for(), 1, "task {task}");
    };
    world.arrive(200, 2, 0, Some(300));
    assert_eq!(world.waited_for(), 2);
    world.step(300, &Input::Woke(Woke {}));
    is_gone(&world, 2);
    world.arrive(300, 3, 0, None);
    world.step(300, &Input::TaskDropped(TaskDropped { task: 3 }));
    is_gone(&world, 3);
    world.arrive(300, 4, 1, None);
    world.step(300, &Input::PartitionRevoked(PartitionRevoked { partition: 1 }));
    is_gone(&world, 4);
    world.arrive(300, 5, 0, None);
    let waits = (1..9).flat_map(|time| world.step(1_000 * time, &Input::Woke(Woke {})));
    let shed = waits.filter(|decision| matches!(decision, Decision::Shed(shed) if shed.task == 5)).count();
    assert_eq!(shed, 1);
    is_gone(&world, 5);
    world.step(9_000, &Input::SliceDone(SliceDone { lane: 0, slice: 1, service_ns: 100 }));
    assert_eq!(world.waited_for(), 0, "and what is done");
}
