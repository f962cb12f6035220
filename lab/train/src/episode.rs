//! An episode: one run of the simulator in which a network chooses lanes.

use warptape_network::{LaneState, Network, TaskState};
use warptape_simulator::{Options, Outcome, Pilot, run_piloted};

use crate::buffer::Transition;
use crate::model::{Method, State};
use crate::numbers::Numbers;
use crate::scenes::Scene;

const NS_PER_S: f64 = 1e9;
/// Unit of rewards, in mean sizes of tasks.
const REWARD_SIZES: f64 = 10.0;

/// Returns the options of a run with a pilot. The scheduler measures how busy lanes are only under this pushing policy
/// and under learned policies.
pub(crate) fn options() -> Options {
    Options { policy: "score-utilization".to_owned(), slice_ns: 4_000_000, ..Options::default() }
}

/// A network that always chooses its best lane, as in production.
#[derive(Clone, Debug)]
pub struct Greedy<'a> {
    /// The network.
    pub network: &'a Network,
}

impl Pilot for Greedy<'_> {
    fn choose(&mut self, _: i64, _: i64, task: &TaskState, lanes: &[LaneState]) -> Option<usize> {
        self.network.choose(task, lanes)
    }
}

/// A choice of a lane, and the time at which its task was done.
struct Choice {
    at_ns: i64,
    state: State,
    lane: usize,
    /// Share of the available lanes that were still idle after the task got its lane.
    idle: f64,
    done_ns: Option<i64>,
}

/// A pilot that chooses the network's lane, or a random one with probability `epsilon`. It records states and choices.
pub(crate) struct Explorer<'a> {
    pub(crate) kind: Method,
    pub(crate) network: &'a Network,
    pub(crate) epsilon: f64,
    pub(crate) numbers: Numbers,
    choices: Vec<Option<Choice>>,
}

impl Pilot for Explorer<'_> {
    fn choose(&mut self, at_ns: i64, id: i64, task: &TaskState, lanes: &[LaneState]) -> Option<usize> {
        let state = State::new(self.kind, task, lanes);
        let able: Vec<usize> = (0..lanes.len()).filter(|lane| !lanes[*lane].is_excluded).collect();
        let drawn = self.numbers.uniform() < self.epsilon;
        let lane = match drawn {
            true if !able.is_empty() => able[self.numbers.below(able.len())],
            _ => self.network.choose(task, lanes)?,
        };
        let idle = able.iter().filter(|other| lanes[**other].tasks == 0 && **other != lane).count();
        let idle = idle as f64 / able.len() as f64;
        self.choices.resize_with(id as usize + 1, || None);
        self.choices[id as usize] = Some(Choice { at_ns, state, lane, idle, done_ns: None });
        Some(lane)
    }

    fn finished(&mut self, at_ns: i64, id: i64) {
        if let Some(Some(choice)) = self.choices.get_mut(id as usize) {
            choice.done_ns = Some(at_ns);
        }
    }
}

impl<'a> Explorer<'a> {
    pub(crate) fn new(kind: Method, network: &'a Network, epsilon: f64, numbers: Numbers) -> Self {
        Self { kind, network, epsilon, numbers, choices: Vec::new() }
    }

    /// Returns the transitions from each arrival to the next. The reward is −(completion time + λ × idle share of lanes
    /// × time to the next arrival), scaled by the mean size of tasks.
    pub(crate) fn transitions(self, lambda: f64, mean_s: f64) -> Vec<Transition> {
        let mut choices = self.choices.into_iter().flatten().peekable();
        let mut transitions = Vec::new();
        while let Some(choice) = choices.next() {
            let (Some(next), Some(done_ns)) = (choices.peek(), choice.done_ns) else { continue };
            let completion_s = (done_ns - choice.at_ns) as f64 / NS_PER_S;
            let idle_s = choice.idle * (next.at_ns - choice.at_ns) as f64 / NS_PER_S;
            let reward = (-(completion_s + lambda * idle_s) / (REWARD_SIZES * mean_s)) as f32;
            let next = next.state.clone();
            transitions.push(Transition { state: choice.state, lane: choice.lane, reward, next });
        }
        transitions
    }
}

pub(crate) fn run(scene: &Scene, seed: u64, pilot: &mut dyn Pilot) -> Outcome {
    run_piloted(&scene.fleet, &scene.workload, &options(), seed, pilot)
}
