//! Training from its start, or from a checkpoint, to its end.

use std::path::PathBuf;

use candle_core::{Device, Tensor};
use warptape_network::Network;
use warptape_simulator::Options;
use xxhash_rust::xxh3::xxh3_64;

use crate::adam::Adam;
use crate::buffer::{Buffer, Transition};
use crate::checkpoint::{self, Checkpoint};
use crate::episode::{Explorer, Greedy, options as options_of_runs, run};
use crate::error::TrainError;
use crate::model::{Batch, Layers, Method, Model, State, greatest};
use crate::numbers::Numbers;
use crate::quantise::quantise;
use crate::scenes::{self, Scene};

/// Capacity of the replay buffer, in transitions. The next constant is the number of newest ones from which the
/// published variant learns.
const BUFFER: usize = 50_000;
const NEWEST: usize = 512;
/// Number of transitions required before learning begins.
const BEGIN: usize = 2_000;
/// Number of updates after which the target network becomes a copy of the current one.
const TARGET_UPDATES: u64 = 500;
/// First seed of validations. Seeds of episodes are lower, and seeds of comparisons are higher.
const VALIDATION_SEED: u64 = 1 << 32;
const VALIDATION_TASKS: usize = 1_000;
const EXPLORING: u64 = 3;
const SAMPLING: u64 = 4;
/// Number of tasks in the comparison of the float network with the integer network.
const COMPARED: usize = 2_000;

/// Options of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainOptions {
    /// The fleet and its workload.
    pub given: Scene,
    /// Kind of network and training.
    pub kind: Method,
    /// Seed. On one machine it determines the network, unless training was resumed.
    pub seed: u64,
    /// Number of episodes, including the episodes of a checkpoint.
    pub episodes: u64,
    /// Number of tasks of an episode.
    pub tasks: usize,
    /// Weight λ of idle time in the reward, in (0, 1).
    pub lambda: f64,
    /// Discount factor of the next task's value, in [0, 1).
    pub gamma: f64,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// Number of transitions of an update.
    pub batch: usize,
    /// Number of tasks per update.
    pub tasks_by_update: usize,
    /// Probability of a random lane: the first value at the start, the second from half of the episodes on, linear in
    /// between.
    pub epsilon: [f64; 2],
    /// Number of episodes between validations, each of which writes a checkpoint.
    pub validate_every: u64,
    /// Path of the checkpoint; `None`: no checkpoint is written.
    pub checkpoint: Option<PathBuf>,
    /// True if training resumes from the checkpoint, which must exist. If false, it must not exist.
    pub resume: bool,
}

impl TrainOptions {
    /// Returns the options that gave the figures in docs/scheduling-results.md.
    pub fn new(given: Scene, kind: Method) -> Self {
        Self {
            given,
            kind,
            seed: 1,
            episodes: 400,
            tasks: 600,
            lambda: 0.1,
            gamma: 0.95,
            learning_rate: 1e-3,
            batch: 64,
            tasks_by_update: 4,
            epsilon: [1.0, 0.05],
            validate_every: 20,
            checkpoint: None,
            resume: false,
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        let open = |value: f64| value > 0.0 && value < 1.0;
        let wrong = |name, found: String, expected| Err(TrainError::Option { name, found, expected });
        match self {
            _ if !open(self.lambda) => wrong("lambda", self.lambda.to_string(), "between 0 and 1"),
            _ if !(0.0..1.0).contains(&self.gamma) => {
                wrong("gamma", self.gamma.to_string(), "from 0 to below 1")
            }
            _ if !(self.learning_rate > 0.0 && self.learning_rate <= 1.0) => {
                wrong("learning_rate", self.learning_rate.to_string(), "above 0 and at most 1")
            }
            _ if self.epsilon.iter().any(|epsilon| !(0.0..=1.0).contains(epsilon)) => {
                wrong("epsilon", format!("{:?}", self.epsilon), "two probabilities")
            }
            _ if self.tasks < 2 || self.batch == 0 || self.tasks_by_update == 0 => {
                wrong("tasks, batch and tasks_by_update", "too small".to_owned(), "at least 2, 1 and 1")
            }
            _ if self.validate_every == 0 || self.episodes == 0 => {
                wrong("episodes and validate_every", "0".to_owned(), "at least 1")
            }
            _ => Ok(()),
        }
    }

    /// Returns a hash of all options that a resumed training must share, except its kind and seed. The number of
    /// episodes may grow.
    fn trained_on(&self) -> u64 {
        let Self { given, tasks, lambda, gamma, learning_rate, batch, tasks_by_update, epsilon, .. } = self;
        let Self { validate_every, .. } = self;
        let all =
            (given, tasks, lambda, gamma, learning_rate, batch, tasks_by_update, epsilon, validate_every);
        xxh3_64(format!("{all:?}").as_bytes())
    }

    fn epsilon_at(&self, episode: u64) -> f64 {
        let [from, to] = self.epsilon;
        from + (to - from) * (2.0 * episode as f64 / self.episodes as f64).min(1.0)
    }
}

/// A network's result on the validation scenes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Validation {
    /// Number of episodes done so far.
    pub episode: u64,
    /// Ratio of the network's mean completion time to that of earliest completion, averaged over scenes.
    pub ratio: f64,
}

/// Progress of a training, which is reported after each episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingProgress {
    /// Number of episodes done so far.
    pub episode: u64,
    /// Total number of episodes.
    pub episodes: u64,
    /// Number of updates so far.
    pub updates: u64,
    /// Mean loss of the episode's updates; 0 before the first update.
    pub loss: f64,
    /// Probability of a random lane.
    pub epsilon: f64,
    /// The validation after this episode; `None` if it had none.
    pub validation: Option<Validation>,
}

/// The result of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The network with the best validation.
    pub network: Network,
    /// All validations.
    pub validations: Vec<Validation>,
    /// Share of states in which the last float network and its integer network choose different lanes.
    pub disagreement: f64,
    /// Mean loss of value by the integer network's choices, measured with the float network's values. It is divided by
    /// the mean spread of values between lanes.
    pub regret: f64,
}

struct Training<'a> {
    options: &'a TrainOptions,
    model: Model,
    adam: Adam,
    target: Layers,
    buffer: Buffer,
    rules_s: Vec<f64>,
    validation: Vec<Scene>,
    validations: Vec<Validation>,
    best: Network,
}

/// Trains a network. `told` is called after each episode, and returns true to continue. If it returns false, the result
/// so far is returned.
///
/// # Errors
/// If options are out of range, or the checkpoint belongs to another training or cannot be read or written. Also if
/// this crate has a defect.
pub fn train(
    options: &TrainOptions,
    told: &mut dyn FnMut(&TrainingProgress) -> bool,
) -> Result<Trained, TrainError> {
    options.check()?;
    let (mut training, begin) = Training::new(options)?;
    for episode in begin..options.episodes {
        let loss = training.learn_from(episode)?;
        let done = episode + 1;
        let is_due = done % options.validate_every == 0 || done == options.episodes;
        let validation = if is_due { Some(training.validate(done)?) } else { None };
        let progress = TrainingProgress {
            episode: done,
            episodes: options.episodes,
            updates: training.adam.updates,
            loss,
            epsilon: options.epsilon_at(episode),
            validation,
        };
        if !told(&progress) {
            if validation.is_none() {
                training.validate(done)?;
            }
            break;
        }
    }
    training.finish()
}

/// Runs the arithmetic of a training on one thread. More threads would slow such small matrices, especially on a busy
/// machine.
pub fn on_one_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(work),
        // Without this pool the arithmetic uses more threads, with the same result.
        Err(_) => work(),
    }
}

impl<'a> Training<'a> {
    fn new(options: &'a TrainOptions) -> Result<(Self, u64), TrainError> {
        let mut model = Model::new(options.kind, options.given.fleet.lanes(), options.seed)?;
        let mut adam = Adam::new(&model.vars, options.learning_rate)?;
        let of = (options.seed, options.trained_on());
        let read = match &options.checkpoint {
            Some(path) if options.resume => Some(checkpoint::read(path, of, &mut model, &mut adam)?),
            Some(path) if path.exists() => return Err(TrainError::Begun { path: path.clone() }),
            _ => None,
        };
        let (begin, target, validations, best) = match read {
            Some(read) => (read.episodes, read.target, read.validations, read.best),
            None => (0, model.frozen()?, Vec::new(), quantise(options.kind, &model.layers())?),
        };
        let validation = scenes::validation(&options.given, VALIDATION_TASKS);
        let rule = Options { policy: "earliest-completion".to_owned(), ..options_of_runs() };
        let rule_s = |(number, scene): (usize, &Scene)| {
            let seed = VALIDATION_SEED + number as u64;
            warptape_simulator::run(&scene.fleet, &scene.workload, &rule, seed).mean_s()
        };
        let rules_s = validation.iter().enumerate().map(rule_s).collect();
        let buffer = Buffer::new(BUFFER);
        Ok((Self { options, model, adam, target, buffer, rules_s, validation, validations, best }, begin))
    }

    /// Runs an episode, learns from it and from earlier ones, and returns the mean loss.
    fn learn_from(&mut self, episode: u64) -> Result<f64, TrainError> {
        let TrainOptions { kind, seed, tasks, lambda, .. } = *self.options;
        let given = &self.options.given;
        let network = quantise(kind, &self.model.layers())?;
        let scene = scenes::drawn(given, seed, episode, tasks);
        let numbers = Numbers::new(seed, EXPLORING, episode);
        let mut explorer = Explorer::new(kind, &network, self.options.epsilon_at(episode), numbers);
        run(&scene, Numbers::new(seed, EXPLORING, !episode).next() % VALIDATION_SEED, &mut explorer);
        let transitions = explorer.transitions(lambda, given.mean_s());
        transitions.into_iter().for_each(|transition| self.buffer.push(transition));
        let mut numbers = Numbers::new(seed, SAMPLING, episode);
        let updates = tasks / self.options.tasks_by_update;
        let mut losses = 0.0;
        if self.buffer.len() < BEGIN.min(4 * tasks) {
            return Ok(0.0);
        }
        for _ in 0..updates {
            losses += f64::from(self.update(&mut numbers)?);
        }
        Ok(losses / updates.max(1) as f64)
    }

    fn update(&mut self, numbers: &mut Numbers) -> Result<f32, TrainError> {
        let TrainOptions { kind, batch, gamma, .. } = *self.options;
        let sample = self.buffer.sample(kind, batch, NEWEST, numbers);
        let states = Batch::new(self.model.lanes, sample.iter().map(|one| &one.state))?;
        let next = Batch::new(self.model.lanes, sample.iter().map(|one| &one.next))?;
        let of = |word: fn(&Transition) -> f32| {
            Tensor::from_vec(sample.iter().map(|one| word(one)).collect(), (batch, 1), &Device::Cpu)
        };
        let layers = self.model.layers();
        let online = next.values(kind, &layers)?.detach();
        let after = match kind {
            // The published variant takes the greatest value of the network itself.
            Method::Paper => online.max_keepdim(1)?,
            // Double DQN takes the lane from one network, and its value from the other.
            Method::Improved => {
                let lane = greatest(&next.masked(&online)?)?;
                next.values(kind, &self.target)?.detach().gather(&lane, 1)?
            }
        };
        let wanted = (of(|one| one.reward)? + (after * gamma)?)?.detach();
        let lanes: Vec<u32> = sample.iter().map(|one| one.lane as u32).collect();
        let lanes = Tensor::from_vec(lanes, (batch, 1), &Device::Cpu)?;
        let missed = (states.values(kind, &layers)?.gather(&lanes, 1)? - wanted)?;
        let loss = match kind {
            Method::Paper => missed.sqr()?.mean_all()?,
            // Huber's loss limits the effect of one long completion on a batch.
            Method::Improved => {
                let size = missed.abs()?;
                let inner = size.minimum(1f32)?;
                ((inner.sqr()? * 0.5)? + (size - inner)?)?.mean_all()?
            }
        };
        let gradients = loss.backward()?;
        self.adam.step(&self.model.vars, &gradients)?;
        if kind == Method::Improved && self.adam.updates.is_multiple_of(TARGET_UPDATES) {
            self.target = self.model.frozen()?;
        }
        Ok(loss.to_scalar::<f32>()?)
    }

    /// Runs the validation scenes, keeps the network if it is the best so far, and writes the checkpoint.
    fn validate(&mut self, episode: u64) -> Result<Validation, TrainError> {
        let network = quantise(self.options.kind, &self.model.layers())?;
        let ratio = |(number, (scene, rule_s)): (usize, (&Scene, &f64))| {
            run(scene, VALIDATION_SEED + number as u64, &mut Greedy { network: &network }).mean_s() / rule_s
        };
        let ratios = self.validation.iter().zip(&self.rules_s).enumerate().map(ratio);
        let validation = Validation { episode, ratio: ratios.sum::<f64>() / self.rules_s.len() as f64 };
        if self.validations.iter().all(|before| validation.ratio < before.ratio) {
            self.best = network;
        }
        self.validations.push(validation);
        if let Some(path) = &self.options.checkpoint {
            let of = (self.options.seed, self.options.trained_on());
            let checkpoint = Checkpoint {
                episodes: episode,
                target: self.target.clone(),
                validations: self.validations.clone(),
                best: self.best.clone(),
            };
            checkpoint::write(path, of, &self.model, &self.adam, &checkpoint)?;
        }
        Ok(validation)
    }

    fn finish(self) -> Result<Trained, TrainError> {
        let (disagreement, regret) = self.quantisation()?;
        Ok(Trained { network: self.best, validations: self.validations, disagreement, regret })
    }

    /// Returns how often the integer network deviates from the float network, and what that costs, as in [`Trained`].
    fn quantisation(&self) -> Result<(f64, f64), TrainError> {
        let kind = self.options.kind;
        let network = quantise(kind, &self.model.layers())?;
        let scene = scenes::drawn(&self.options.given, self.options.seed, u64::MAX, COMPARED);
        let mut seen = Seen { kind, network: &network, states: Vec::new(), lanes: Vec::new() };
        run(&scene, VALIDATION_SEED - 1, &mut seen);
        let batch = Batch::new(self.model.lanes, seen.states.iter())?;
        let values = batch.masked(&batch.values(kind, &self.model.layers())?)?.to_vec2::<f32>()?;
        let (mut other, mut below, mut spread) = (0, 0.0, 0.0);
        for ((values, lane), state) in values.iter().zip(&seen.lanes).zip(&seen.states) {
            let able = || (0..values.len()).filter(|lane| state.may_choose(*lane)).map(|lane| values[lane]);
            let most = able().fold(f32::NEG_INFINITY, f32::max);
            other += usize::from(values[*lane] < most);
            below += f64::from(most - values[*lane]);
            spread += f64::from(most - able().fold(f32::INFINITY, f32::min));
        }
        let regret = if spread > 0.0 { below / spread } else { 0.0 };
        Ok((other as f64 / seen.lanes.len().max(1) as f64, regret))
    }
}

/// Records the states that the integer network saw, and its choices.
struct Seen<'a> {
    kind: Method,
    network: &'a Network,
    states: Vec<State>,
    lanes: Vec<usize>,
}

impl warptape_simulator::Pilot for Seen<'_> {
    fn choose(
        &mut self,
        _: i64,
        _: i64,
        task: &warptape_network::TaskState,
        lanes: &[warptape_network::LaneState],
    ) -> Option<usize> {
        let lane = self.network.choose(task, lanes)?;
        self.states.push(State::new(self.kind, task, lanes));
        self.lanes.push(lane);
        Some(lane)
    }
}
