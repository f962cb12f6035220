//! The architecture as published. A small convolution takes the utilisation of all lanes. Two dense layers take its
//! output, the queue lengths, the priority and the kind, and give one score for each lane.
//!
//! ```text
//!   utilisation: lanes × windows ──► convolution over 3 lanes ──┐
//!   queue lengths, priority, kind ──────────────────────────────┴──► hidden ──► output: a score for each lane
//! ```
//!
//! A network of this architecture accepts one number of lanes only. The paper has no masks: excluded lanes are only
//! skipped when a lane is chosen.

use crate::error::NetworkError;
use crate::features::{one_hot, utilisation};
use crate::improved::check_shapes;
use crate::layer::Layer;
use crate::log2::log2;
use crate::state::{KIND_BUCKETS, LANES_MAX, LaneState, PRIORITIES, TaskState, WINDOWS};

/// Number of lanes that the convolution sees: the one before, the lane itself and the one after. A missing lane counts
/// as zeros.
pub const CONVOLUTION_LANES: usize = 3;

/// The layers of the published architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paper {
    convolution: Layer,
    hidden: Layer,
    output: Layer,
}

/// Inputs of a network: utilisation by lane and window. Second, for each lane the logarithm of one plus its tasks, then
/// the task's priority and kind.
pub fn paper_inputs(task: &TaskState, lanes: &[LaneState]) -> (Vec<[i16; WINDOWS]>, Vec<i16>) {
    let mut beside = vec![0; lanes.len() + PRIORITIES + KIND_BUCKETS];
    for (length, lane) in beside.iter_mut().zip(lanes) {
        // Logarithms up to 31 fit an activation.
        *length = (log2(1 + lane.tasks.clamp(0, 1 << 30))) as i16;
    }
    one_hot(task, &mut beside[lanes.len()..]);
    (lanes.iter().map(utilisation).collect(), beside)
}

impl Paper {
    /// A network of these layers for L lanes, with free sizes C and H:
    ///
    /// - `convolution`: 3 lanes' windows to C
    /// - `hidden`: L × C (by lane, then channel), L queue lengths, priority and kind to H
    /// - `output`: H to L
    ///
    /// # Errors
    /// The layers do not fit each other, or there are too many lanes.
    pub fn new(layers: [Layer; 3]) -> Result<Self, NetworkError> {
        let (lanes, channels) = (layers[2].outputs(), layers[0].outputs());
        if lanes > LANES_MAX {
            return Err(NetworkError::Lanes { lanes });
        }
        let inputs = lanes * (channels + 1) + PRIORITIES + KIND_BUCKETS;
        let hidden = layers[1].outputs();
        check_shapes(&layers, &[(CONVOLUTION_LANES * WINDOWS, channels), (inputs, hidden), (hidden, lanes)])?;
        let [convolution, hidden, output] = layers;
        Ok(Self { convolution, hidden, output })
    }

    pub(crate) fn layers(&self) -> [&Layer; 3] {
        [&self.convolution, &self.hidden, &self.output]
    }

    pub(crate) fn lanes(&self) -> usize {
        self.output.outputs()
    }

    /// Scores of the lanes; all `None` if the network accepts another number of lanes.
    pub(crate) fn scores(&self, task: &TaskState, lanes: &[LaneState]) -> Vec<Option<i64>> {
        if lanes.len() != self.lanes() {
            return vec![None; lanes.len()];
        }
        let (matrix, beside) = paper_inputs(task, lanes);
        let mut padded = vec![0; WINDOWS];
        padded.extend(matrix.iter().flatten());
        padded.extend([0; WINDOWS]);
        let (mut sums, mut channels, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for lane in 0..lanes.len() {
            let seen = &padded[lane * WINDOWS..][..CONVOLUTION_LANES * WINDOWS];
            self.convolution.activations(seen, &mut sums, &mut channels);
            inputs.extend_from_slice(&channels);
        }
        inputs.extend_from_slice(&beside);
        let mut hidden = Vec::new();
        self.hidden.activations(&inputs, &mut sums, &mut hidden);
        let score = |(index, lane): (usize, &LaneState)| {
            (!lane.is_excluded).then(|| self.output.score(index, &hidden))
        };
        lanes.iter().enumerate().map(score).collect()
    }
}
