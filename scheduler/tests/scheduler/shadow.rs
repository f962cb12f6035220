//! Shadow policies: when they are asked, what they choose, and which configurations are refused. The simulation checks
//! that they have no effect, and that each makes the same choice as in force.

use warptape_events::journal::*;
use warptape_scheduler::{Scheduler, StepError};

use crate::learned::{network, trained};
use crate::script::{assigned, config, started, task};

/// A start with a policy in force, and with shadow policies.
pub fn starts(policy: &str, policies: &[&str], every: i32) -> Input {
    let mut config = config();
    policy.clone_into(&mut config.risk.policy);
    config.risk.price_interval_ns = 1_000;
    let Input::Started(plain) = started(config, &[1, 1, 1]) else { panic!("a start") };
    let policies = policies.iter().map(|&policy| policy.to_owned()).collect();
    Input::Started(Box::new(Started { shadow: Some(ShadowConfig { policies, every }), ..*plain }))
}

struct World(Scheduler, i64);

impl World {
    fn new(policy: &str, policies: &[&str], every: i32) -> Self {
        let mut world = Self(Scheduler::new(), 0);
        world.step(&starts(policy, policies, every));
        world.step(&assigned(0, 1));
        world
    }

    /// Shadow decisions on an input.
    fn step(&mut self, input: &Input) -> Vec<Shadow> {
        self.1 += 100;
        let mut decisions = Vec::new();
        self.0.step(self.1, input, &mut decisions).expect("good input");
        self.0.audit();
        let shadow = |decision| if let Decision::Shadow(shadow) = decision { Some(shadow) } else { None };
        decisions.into_iter().filter_map(shadow).collect()
    }

    fn arrive(&mut self, number: TaskId, of: TaskArrived) -> Vec<Shadow> {
        self.step(&Input::TaskArrived(TaskArrived { task: number, offset: number, ..of }))
    }
}

#[test]
fn a_task_that_joins_a_queue_has_other_queues_beside_it() {
    let mut world = World::new("shortest-queue", &["round-robin"], 1);
    let said = |lane: LaneId, instead: LaneId| Shadow {
        policy: 0,
        task: lane.into(),
        lane: Some(lane),
        lane_instead: Some(instead),
        task_instead: None,
    };
    // Turns begin after lane 0.
    for (lane, instead) in [(0, 1), (1, 2), (2, 0)] {
        assert_eq!(world.arrive(lane.into(), task(0)), [said(lane, instead)]);
    }
}

#[test]
fn a_lane_that_is_free_has_other_tasks_beside_its_own() {
    let mut world = World::new("first-come", &["earliest-deadline", "shortest-queue"], 1);
    // Three tasks keep the lanes busy; only push policies choose a lane for further ones.
    for number in 0..3 {
        let said = world.arrive(number, task(0));
        assert_eq!((said[0].policy, said[0].lane, said[0].task_instead), (1, None, None), "{said:?}");
        assert_eq!((said[1].policy, said[1].task_instead), (0, Some(number)), "{said:?}");
    }
    world.arrive(3, task(0));
    world.arrive(4, TaskArrived { deadline_ns: Some(1_000_000), ..task(0) });
    let said = world.step(&Input::SliceDone(SliceDone { lane: 1, slice: 1, service_ns: 100 }));
    let expected = Shadow { policy: 0, task: 3, lane: Some(1), lane_instead: None, task_instead: Some(4) };
    assert_eq!(said, [expected]);
}

#[test]
fn policies_are_asked_at_one_choice_of_so_many() {
    let mut world = World::new("shortest-queue", &["two-choices"], 3);
    let asked: Vec<_> = (0..9).map(|number| world.arrive(number, task(0)).len()).collect();
    assert_eq!(asked, [0, 0, 1, 0, 0, 1, 0, 0, 1]);
}

#[test]
fn a_network_says_something_once_it_is_there() {
    let network = network(7);
    let policy = format!("dqn:{}", network.hash());
    let mut world = World::new("fair", &[&policy], 1);
    assert_eq!(world.arrive(0, task(0)), []);
    world.step(&trained(&network));
    assert!(world.arrive(1, task(0))[0].lane_instead.is_some());
}

#[test]
fn prices_are_asked_for_where_a_policy_in_the_shadow_goes_by_them() {
    let asks = |policies: &[&str]| {
        let mut world = World::new("fair", policies, 1);
        world.arrive(0, task(0));
        world.step(&Input::SliceDone(SliceDone { lane: 0, slice: 0, service_ns: 100 }));
        let (mut decisions, at_ns) = (Vec::new(), 10_000_000_000);
        world.0.step(at_ns, &Input::TaskArrived(task(1)), &mut decisions).expect("good input");
        decisions.iter().any(|decision| matches!(decision, Decision::AskPrices(_)))
    };
    assert!(asks(&["lp-price"]) && !asks(&["earliest-deadline"]));
}

#[test]
fn what_is_wrong_with_a_configuration_is_said() {
    let check = |policies: &[&str], every: i32, expected: &str| {
        let error = Scheduler::new().step(0, &starts("fair", policies, every), &mut Vec::new()).unwrap_err();
        let StepError::BadConfig(mistakes) = &error else { panic!("{error}") };
        assert_eq!(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    };
    let expected =
        "shadow.policies is linucb@3; linucb cannot be in the shadow: it learns from what it decides itself";
    check(&["linucb@3"], 1, expected);
    let expected = "shadow.policies is dice; each must be a policy of tasks, as risk.policy has them";
    check(&["dice"], 1, expected);
    check(&["fair", "fair"], 1, "shadow.policies is fair; each policy is asked once");
    check(&["fair"], 0, "shadow.every is 0; it must be from 1 to 1000000");
    check(&[], 1, "shadow.policies is []; there must be 1 to 4 of them");
}
