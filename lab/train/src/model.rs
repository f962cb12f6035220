//! The float networks, which have the shapes of the integer networks.

use candle_core::{D, Device, Result, Tensor, Var};
use warptape_network::{
    CONVOLUTION_LANES, Features, KIND_BUCKETS, LANE_FEATURES, LaneState, ONE, PRIORITIES, TASK_FEATURES,
    TaskState, WINDOWS, paper_inputs,
};

use crate::numbers::Numbers;

const EMBEDDED: usize = 32;
const JOINED: usize = 32;
const CONTEXT: usize = 16;
const CHANNELS: usize = 8;
const HIDDEN: usize = 64;
const WEIGHTS: u64 = 2;
/// Term added to the value of an excluded lane, so that it is never the greatest.
const EXCLUDED: f64 = -1e9;

/// Kind of network, and of its training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The published variant: one output per lane, trained on the newest transitions, without masked lanes or a target
    /// network.
    Paper,
    /// A dueling network on features per lane, with masked lanes. Training is double DQN with a target network and a
    /// replay buffer.
    Improved,
}

/// The integer input of a network; the float network divides it by [`ONE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Inputs of the first layer, by lane.
    lanes: Vec<i16>,
    /// Further inputs, which enter after the first layer.
    beside: Vec<i16>,
    /// Bit mask of the lanes that may be chosen.
    able: u64,
}

impl State {
    pub(crate) fn new(kind: Method, task: &TaskState, states: &[LaneState]) -> Self {
        let bit = |(lane, state): (usize, &LaneState)| u64::from(!state.is_excluded) << lane;
        let able = states.iter().enumerate().map(bit).sum();
        let (mut lanes, mut beside) = (Vec::new(), Vec::new());
        match kind {
            Method::Improved => {
                let features = Features::new(task, states);
                for lane in &features.lanes {
                    lanes.extend(lane.iter().chain(&features.task));
                }
            }
            Method::Paper => {
                let (matrix, rest) = paper_inputs(task, states);
                for lane in 0..states.len() {
                    for seen in lane..lane + CONVOLUTION_LANES {
                        let windows = seen.checked_sub(1).and_then(|seen| matrix.get(seen));
                        lanes.extend(windows.copied().unwrap_or_default());
                    }
                }
                beside = rest;
            }
        }
        Self { lanes, beside, able }
    }

    pub(crate) fn may_choose(&self, lane: usize) -> bool {
        self.able >> lane & 1 == 1
    }
}

/// Weights (outputs × inputs) and biases of each layer, in the order of the integer network.
pub(crate) type Layers = Vec<(Tensor, Tensor)>;

/// The trained variables.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) kind: Method,
    /// Number of lanes of the fleet.
    pub(crate) lanes: usize,
    pub(crate) vars: Vec<Var>,
}

impl Model {
    /// Returns a model with biases of 0 and random weights. The weights are uniform, with a variance of 2 ÷ the number
    /// of inputs.
    pub(crate) fn new(kind: Method, lanes: usize, seed: u64) -> Result<Self> {
        let mut numbers = Numbers::new(seed, WEIGHTS, 0);
        let mut vars = Vec::new();
        for (inputs, outputs) in shapes(kind, lanes) {
            let bound = (6.0 / inputs as f64).sqrt();
            let weights = (0..inputs * outputs).map(|_| numbers.between(-bound, bound) as f32);
            let weights = Tensor::from_vec(weights.collect::<Vec<_>>(), (outputs, inputs), &Device::Cpu)?;
            vars.push(Var::from_tensor(&weights)?);
            let biases = Tensor::from_vec(vec![0f32; outputs], outputs, &Device::Cpu)?;
            vars.push(Var::from_tensor(&biases)?);
        }
        Ok(Self { kind, lanes, vars })
    }

    pub(crate) fn layers(&self) -> Layers {
        let pair = |pair: &[Var]| (pair[0].as_tensor().clone(), pair[1].as_tensor().clone());
        self.vars.chunks_exact(2).map(pair).collect()
    }

    /// Returns a copy that does not change with the variables.
    pub(crate) fn frozen(&self) -> Result<Layers> {
        let pair =
            |pair: &[Var]| Ok((pair[0].as_tensor().copy()?.detach(), pair[1].as_tensor().copy()?.detach()));
        self.vars.chunks_exact(2).map(pair).collect()
    }
}

pub(crate) fn shapes(kind: Method, lanes: usize) -> Vec<(usize, usize)> {
    match kind {
        Method::Improved => vec![
            (LANE_FEATURES + TASK_FEATURES, EMBEDDED),
            (2 * EMBEDDED, JOINED),
            (JOINED, 1),
            (EMBEDDED, CONTEXT),
            (CONTEXT, 1),
        ],
        Method::Paper => vec![
            (CONVOLUTION_LANES * WINDOWS, CHANNELS),
            (lanes * (CHANNELS + 1) + PRIORITIES + KIND_BUCKETS, HIDDEN),
            (HIDDEN, lanes),
        ],
    }
}

/// A batch of states as tensors.
pub(crate) struct Batch {
    /// Number of states, and number of lanes of each state.
    size: (usize, usize),
    lanes: Tensor,
    beside: Tensor,
    /// Mask: 1 for each lane that may be chosen, 0 for others.
    mask: Tensor,
}

impl Batch {
    /// Returns a batch of states, each with `of` lanes.
    pub(crate) fn new<'a>(of: usize, states: impl Iterator<Item = &'a State> + Clone) -> Result<Self> {
        let floats = |values: &[i16]| -> Vec<f32> {
            values.iter().map(|value| f32::from(*value) / ONE as f32).collect()
        };
        let number = states.clone().count();
        let tensor = |values: Vec<f32>, rows: usize| {
            let width = values.len() / rows;
            Tensor::from_vec(values, (rows, width), &Device::Cpu)
        };
        let lanes = states.clone().flat_map(|state| floats(&state.lanes)).collect();
        let beside = states.clone().flat_map(|state| floats(&state.beside)).collect();
        let mask = |state: &'a State| (0..of).map(|lane| f32::from(u8::from(state.may_choose(lane))));
        Ok(Self {
            size: (number, of),
            lanes: tensor(lanes, number * of)?,
            beside: tensor(beside, number)?,
            mask: tensor(states.flat_map(mask).collect(), number)?,
        })
    }

    /// Returns the values of all lanes, by state and lane.
    pub(crate) fn values(&self, kind: Method, layers: &Layers) -> Result<Tensor> {
        let dense = |layer: usize, inputs: &Tensor| {
            let (weights, biases) = &layers[layer];
            inputs.matmul(&weights.t()?)?.broadcast_add(biases)
        };
        let (states, of) = self.size;
        let first = dense(0, &self.lanes)?.relu()?;
        if kind == Method::Paper {
            let inputs = Tensor::cat(&[&first.reshape((states, of * CHANNELS))?, &self.beside], 1)?;
            return dense(2, &dense(1, &inputs)?.relu()?);
        }
        let number = self.mask.sum_keepdim(1)?.maximum(1f32)?;
        let by_lane = first.reshape((states, of, EMBEDDED))?;
        let seen = by_lane.broadcast_mul(&self.mask.unsqueeze(2)?)?;
        let mean = seen.sum(1)?.broadcast_div(&number)?;
        let shared = mean.unsqueeze(1)?.broadcast_as((states, of, EMBEDDED))?.contiguous()?;
        let joined = Tensor::cat(&[&by_lane, &shared], 2)?.reshape((states * of, 2 * EMBEDDED))?;
        let advantages = dense(2, &dense(1, &joined)?.relu()?)?.reshape((states, of))?;
        let common = (&advantages * &self.mask)?.sum_keepdim(1)?.broadcast_div(&number)?;
        let value = dense(4, &dense(3, &mean)?.relu()?)?;
        advantages.broadcast_add(&(value - common)?)
    }

    /// Returns the values, with the values of excluded lanes lowered so that they are never the greatest.
    pub(crate) fn masked(&self, values: &Tensor) -> Result<Tensor> {
        values + self.mask.affine(-EXCLUDED, EXCLUDED)?
    }
}

/// Returns the index of the greatest value of each row.
pub(crate) fn greatest(values: &Tensor) -> Result<Tensor> {
    values.argmax_keepdim(D::Minus1)
}
