//! Pilots get the same view as pushing policies, and the scheduler uses the lanes that they choose.

use warptape_events::journal::{StateBytes, Trained};
use warptape_network::{LaneState, Network, TaskState};
use warptape_simulator::{Failure, Fleet, Options, Outage, Pilot, Workload, run, run_piloted};

/// A pilot that chooses the lane with the earliest completion.
#[derive(Default)]
struct First {
    asked: usize,
    finished: usize,
    excluded: usize,
    busy: usize,
}

impl Pilot for First {
    fn choose(&mut self, _: i64, id: i64, task: &TaskState, lanes: &[LaneState]) -> Option<usize> {
        assert_eq!((id as usize, lanes.len()), (self.asked, 16));
        self.asked += 1;
        assert!(task.waiting as usize <= self.asked && task.priority == 1 && task.laxity_ns.is_none());
        assert!(lanes.iter().all(|lane| (0..=1_000_000).contains(&lane.utilization_ppm[1])));
        self.busy += lanes.iter().filter(|lane| lane.utilization_ppm.iter().all(|ppm| *ppm > 0)).count();
        self.excluded += lanes.iter().filter(|lane| lane.is_excluded).count();
        let able = lanes.iter().enumerate().filter(|(_, lane)| !lane.is_excluded);
        able.min_by_key(|(_, lane)| (lane.backlog_ns + lane.task_ns, lane.tasks)).map(|(lane, _)| lane)
    }

    fn finished(&mut self, _: i64, _: i64) {
        self.finished += 1;
    }
}

#[test]
fn a_pilot_that_does_what_a_policy_does_gets_the_same_run() {
    let mut fleet = Fleet::volta_turing_radeon();
    let outage = Outage::At { at_s: 2.0, back_after_s: None };
    fleet.failures = vec![Failure { lanes: 3..4, outage }];
    for divisible in [false, true] {
        let mut workload = Workload::three_kinds(0.8, 400);
        workload.kinds.iter_mut().for_each(|kind| kind.divisible = divisible);
        let options = |policy: &str| Options { policy: policy.to_owned(), ..Options::default() };
        let mut first = First::default();
        let found = run_piloted(&fleet, &workload, &options("score-utilization"), 5, &mut first);
        assert_eq!(found, run(&fleet, &workload, &options("earliest-completion"), 5));
        assert_ne!(found, run(&fleet, &workload, &options("score-utilization"), 5));
        assert_eq!((first.asked, first.finished), (400, 400));
        assert!(first.busy > 400, "lanes are seen to be busy");
        assert!(first.excluded > 0, "the lane that was lost is excluded");
    }
}

/// A network makes the same decisions as a policy, like in production, and as a pilot, like in training.
#[test]
fn a_network_decides_the_same_as_a_policy_and_as_a_pilot() {
    struct Greedy(Network);
    impl Pilot for Greedy {
        fn choose(&mut self, _: i64, _: i64, task: &TaskState, lanes: &[LaneState]) -> Option<usize> {
            self.0.choose(task, lanes)
        }
    }
    let (fleet, mut workload) = (Fleet::volta_turing_radeon(), Workload::three_kinds(0.8, 400));
    workload.kinds.iter_mut().for_each(|kind| kind.divisible = false);
    for file in ["improved.network", "paper-16-lanes.network"] {
        let bytes = std::fs::read(format!("../../tests/fixtures/networks/{file}")).unwrap();
        let network = Network::from_bytes(&bytes).unwrap();
        let hash = network.hash();
        let named = Options {
            policy: format!("dqn:{hash}"),
            network: Some(Trained { hash, network: StateBytes(bytes) }),
            ..Options::default()
        };
        let found = run(&fleet, &workload, &named, 5);
        let missing = run(&fleet, &workload, &Options { network: None, ..named }, 5);
        let piloted = Options { policy: "score-utilization".to_owned(), ..Options::default() };
        let piloted = run_piloted(&fleet, &workload, &piloted, 5, &mut Greedy(network));
        assert_eq!(found.tasks.completions_s, piloted.tasks.completions_s, "{file}");
        assert_ne!(found.tasks.completions_s, missing.tasks.completions_s, "{file}");
    }
}

/// If the pilot chooses a lane that may not take the task or does not exist, the policy chooses instead.
#[test]
fn a_lane_that_cannot_be_is_not_taken() {
    struct Nowhere;
    impl Pilot for Nowhere {
        fn choose(&mut self, _: i64, _: i64, _: &TaskState, _: &[LaneState]) -> Option<usize> {
            Some(99)
        }
    }
    let (fleet, workload) = (Fleet::volta_turing_radeon(), Workload::three_kinds(0.8, 100));
    let options = Options { policy: "two-choices".to_owned(), ..Options::default() };
    let found = run_piloted(&fleet, &workload, &options, 5, &mut Nowhere);
    assert_eq!(found, run(&fleet, &workload, &options, 5));
}
