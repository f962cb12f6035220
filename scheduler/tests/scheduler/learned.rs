//! The policy of a network: the chosen lane, the fallback without the network, refusals, and reproducibility.

use warptape_events::journal::*;
use warptape_network::*;
use warptape_scheduler::{NETWORKS_MAX, Scheduler, StepError, Subject};

use crate::draws::Draws;
use crate::script::{FIRST_RULES, assigned, config, started, started_by, task};

fn layer(draws: &mut Draws, inputs: usize, outputs: usize) -> Layer {
    let row = |_| WeightsRow {
        bias: draws.range(-1 << 17, 1 << 17) as i32,
        shift: draws.range(6, 8) as u8,
        weights: (0..inputs).map(|_| draws.range(-128, 127) as i8).collect(),
    };
    let rows: Vec<_> = (0..outputs).map(row).collect();
    Layer::new(inputs, &rows).expect("such weights are good")
}

/// A network with random weights for any number of lanes.
pub fn network(seed: u64) -> Network {
    let mut draws = Draws::new(seed);
    let shapes = [(LANE_FEATURES + TASK_FEATURES, 8), (16, 8), (8, 1), (8, 4), (4, 1)];
    let layers = shapes.map(|(inputs, outputs)| layer(&mut draws, inputs, outputs));
    Network::new(Architecture::Improved(Improved::new(layers).expect("they fit"))).expect("it is small")
}

fn paper(lanes: usize) -> Network {
    let mut draws = Draws::new(1);
    let inputs = lanes * 5 + PRIORITIES + KIND_BUCKETS;
    let shapes = [(CONVOLUTION_LANES * WINDOWS, 4), (inputs, 8), (8, lanes)];
    let layers = shapes.map(|(inputs, outputs)| layer(&mut draws, inputs, outputs));
    Network::new(Architecture::Paper(Paper::new(layers).expect("they fit"))).expect("it is small")
}

pub fn trained(network: &Network) -> Input {
    Input::Trained(Trained { hash: network.hash(), network: StateBytes(network.to_bytes()) })
}

struct World {
    scheduler: Scheduler,
    at_ns: i64,
}

impl World {
    fn begin(policy: &str) -> Self {
        let mut config = config();
        policy.clone_into(&mut config.risk.policy);
        let mut world = Self { scheduler: Scheduler::new(), at_ns: 0 };
        world.step(&started_by(FIRST_RULES, config, &[1, 2, 1]));
        world.step(&assigned(0, 1));
        world
    }

    fn step(&mut self, input: &Input) -> Vec<Decision> {
        self.at_ns += 100;
        let mut decisions = Vec::new();
        self.scheduler.step(self.at_ns, input, &mut decisions).expect("good input");
        self.scheduler.audit();
        decisions
    }

    /// Adds a task; returns its assignment, with the explanation.
    fn arrive(&mut self, number: TaskId) -> (Assign, warptape_scheduler::Explanation) {
        let rate_key = ["one", "other"][number as usize % 2].into();
        let input = Input::TaskArrived(TaskArrived { units: 7 + number, rate_key, ..task(number) });
        let before = self.scheduler.clone();
        let decisions = self.step(&input);
        let is_assign = |decision: &Decision| matches!(decision, Decision::Assign(_));
        let index = decisions.iter().position(is_assign).expect("it joins a queue");
        let Decision::Assign(assign) = decisions[index] else { unreachable!("just found") };
        for decision in &decisions {
            if let Decision::RunSlice(run) = decision {
                let (lane, slice, service_ns) = (run.lane, run.slice, 50 + 40 * i64::from(run.lane));
                self.step(&Input::SliceDone(SliceDone { lane, slice, service_ns }));
            }
        }
        (assign, before.explain(self.at_ns, &input, index).expect("it was decided"))
    }

    fn choose(&mut self, name: &str) -> (ControlOutcome, String) {
        let (of, name) = ("tasks".to_owned(), name.to_owned());
        let command = ControlCommand::ChoosePolicy(ChoosePolicy { of, name });
        let (id, by, deadline_ns) = ("c".to_owned(), "someone".to_owned(), i64::MAX);
        let decisions = self.step(&Input::Control(Control { offset: 0, id, by, deadline_ns, command }));
        match decisions.into_iter().next() {
            Some(Decision::Controlled(controlled)) => (controlled.outcome, controlled.detail),
            other => panic!("a command is answered, not {other:?}"),
        }
    }

    fn refused(&mut self, input: &Input) -> StepError {
        self.scheduler.step(self.at_ns, input, &mut Vec::new()).expect_err("bad input")
    }
}

#[test]
fn the_lane_with_the_highest_score_takes_the_task_once_its_network_is_there() {
    let network = network(7);
    let mut world = World::begin(&format!("dqn:{}", network.hash()));
    let (assign, explanation) = world.arrive(0);
    assert_eq!(assign.reason, SliceReason::StoodIn);
    assert!(explanation.choices.iter().all(|choice| choice.score.is_none()));
    world.step(&trained(&network));
    let mut lanes = Vec::new();
    for number in 1..20 {
        let (assign, explanation) = world.arrive(number);
        assert_eq!((assign.reason, explanation.choices.len()), (SliceReason::Order, 3));
        // Ties go to the first lane.
        let best =
            explanation.choices.iter().rev().max_by_key(|choice| choice.score).expect("there are lanes");
        assert_eq!((best.subject, best.is_chosen), (Subject::Lane(assign.lane), true), "{explanation:?}");
        assert!(best.score.is_some());
        lanes.push(assign.lane);
    }
    lanes.sort_unstable();
    lanes.dedup();
    assert!(lanes.len() > 1, "a network that always says the same shows nothing");
}

#[test]
fn a_state_with_networks_goes_on_as_it_was() {
    let network = network(7);
    let mut world = World::begin(&format!("dqn:{}", network.hash()));
    world.step(&trained(&network));
    (0..5).for_each(|number| drop(world.arrive(number)));
    let bytes = world.scheduler.checkpoint();
    assert_eq!(bytes[0], 4);
    let read = Scheduler::from_checkpoint(&bytes).expect("it was just written");
    let mut again = World { scheduler: read, at_ns: world.at_ns };
    for number in 5..15 {
        assert_eq!(world.arrive(number), again.arrive(number));
        assert_eq!(world.scheduler.state_hash(), again.scheduler.state_hash());
    }
}

/// Features and networks are integers, so that all processors compute this state.
#[test]
fn decisions_of_a_network_have_the_same_hashes_everywhere() {
    let network = network(11);
    let mut world = World::begin(&format!("dqn:{}", network.hash()));
    world.step(&trained(&network));
    let lanes: String = (0..24).map(|number| world.arrive(number).0.lane.to_string()).collect();
    assert_eq!(
        (lanes.as_str(), world.scheduler.state_hash()),
        ("110201020100212021221011", 1_841_852_497_529_739_263)
    );
}

#[test]
fn operators_choose_among_the_networks_that_are_there() {
    let (one, other) = (network(1), network(2));
    let mut world = World::begin("");
    let (outcome, why) = world.choose(&format!("dqn:{}", one.hash()));
    assert_eq!(outcome, ControlOutcome::Refused);
    assert!(why.ends_with("none was told of in this process life"), "{why}");
    world.step(&trained(&one));
    let (outcome, why) = world.choose(&format!("dqn:{}", other.hash()));
    assert_eq!(outcome, ControlOutcome::Refused);
    assert!(why.ends_with(&format!("there are: dqn:{}", one.hash())), "{why}");
    world.step(&trained(&other));
    assert_eq!(world.choose("dqn:0f").0, ControlOutcome::Refused);
    let (outcome, done) = world.choose(&format!("dqn:{}", &other.hash()[..8]));
    assert_eq!(outcome, ControlOutcome::Done);
    assert!(done.contains(&format!("is dqn:{}, and was fair", other.hash())), "{done}");
    let with_other = world.scheduler.state_hash();
    assert_eq!(world.arrive(0).0.reason, SliceReason::Order);
    // The deciding network is part of the state.
    let mut world = World::begin("");
    world.step(&Input::Woke(Woke {}));
    world.step(&trained(&one));
    world.step(&Input::Woke(Woke {}));
    world.step(&trained(&other));
    world.step(&Input::Woke(Woke {}));
    assert_eq!(world.choose(&format!("dqn:{}", one.hash())).0, ControlOutcome::Done);
    assert_ne!(world.scheduler.state_hash(), with_other);
}

#[test]
fn what_is_no_network_of_this_process_is_refused() {
    let network = network(1);
    let mut world = World::begin("");
    let damaged = Trained { hash: network.hash(), network: StateBytes(network.to_bytes()[1..].to_vec()) };
    assert_eq!(world.refused(&Input::Trained(damaged)), StepError::BadNetwork(NetworkError::NotANetwork));
    let other = Trained { hash: "0f".repeat(100), network: StateBytes(network.to_bytes()) };
    let expected = StepError::OtherNetworkHash { named: "0f".repeat(32), hash: network.hash() };
    assert_eq!(world.refused(&Input::Trained(other)), expected);
    let wide = paper(4);
    let expected = StepError::NetworkLanes { hash: wide.hash(), for_lanes: 4, lanes: 3 };
    assert_eq!(world.refused(&trained(&wide)), expected);
    world.step(&trained(&paper(3)));
    world.step(&trained(&network));
    let expected = StepError::NetworkThere { hash: network.hash() };
    assert_eq!(world.refused(&trained(&network)), expected);
    for seed in 2..NETWORKS_MAX as u64 {
        world.step(&trained(&self::network(seed)));
    }
    assert_eq!(world.refused(&trained(&self::network(100))), StepError::TooManyNetworks);
    // A journal may contain any name.
    let start = |policy: &str| {
        let mut config = config();
        policy.clone_into(&mut config.risk.policy);
        Scheduler::new().step(0, &started(config, &[1]), &mut Vec::new())
    };
    assert!(matches!(start("dqn:0f0f0f0f"), Err(StepError::BadConfig(_))));
}
