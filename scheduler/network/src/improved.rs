//! The improved architecture: one small network is applied to each lane, and to the mean of all lanes.
//!
//! ```text
//!   lane's features ─┐
//!                    ├─► embed ──► h ──┬────────────► join ──► advantage A
//!   task's features ─┘                 │ mean over    ▲
//!                                      └► all lanes ──┴─────► context ──► value V          score = V + A − mean of A
//! ```
//!
//! So the network serves any number of lanes. Excluded lanes do not count in the mean and have no score.

use crate::error::NetworkError;
use crate::features::{Features, LANE_FEATURES, TASK_FEATURES};
use crate::layer::Layer;
use crate::state::{LaneState, TaskState};

/// The layers of the improved architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Improved {
    embed: Layer,
    join: Layer,
    advantage: Layer,
    context: Layer,
    value: Layer,
}

impl Improved {
    /// A network of these layers, with free sizes E, J and C:
    ///
    /// - `embed`: a lane's and then the task's features to E
    /// - `join`: a lane's E and then the mean's E to J
    /// - `advantage`: J to 1
    /// - `context`: the mean's E to C
    /// - `value`: C to 1
    ///
    /// # Errors
    /// The layers do not fit each other.
    pub fn new(layers: [Layer; 5]) -> Result<Self, NetworkError> {
        let embedded = layers[0].outputs();
        let expected = [
            (LANE_FEATURES + TASK_FEATURES, embedded),
            (2 * embedded, layers[1].outputs()),
            (layers[1].outputs(), 1),
            (embedded, layers[3].outputs()),
            (layers[3].outputs(), 1),
        ];
        check_shapes(&layers, &expected)?;
        let [embed, join, advantage, context, value] = layers;
        Ok(Self { embed, join, advantage, context, value })
    }

    pub(crate) fn layers(&self) -> [&Layer; 5] {
        [&self.embed, &self.join, &self.advantage, &self.context, &self.value]
    }

    pub(crate) fn scores(&self, task: &TaskState, lanes: &[LaneState]) -> Vec<Option<i64>> {
        let features = Features::new(task, lanes);
        let eligible: Vec<usize> = (0..lanes.len()).filter(|lane| !lanes[*lane].is_excluded).collect();
        if eligible.is_empty() {
            return vec![None; lanes.len()];
        }
        let (mut sums, mut lane) = (Vec::new(), Vec::new());
        let embedded = self.embed.outputs();
        let mut embeddings = Vec::with_capacity(eligible.len() * embedded);
        let mut totals = vec![0i32; embedded];
        // The sums of the task's features are the same for all lanes.
        self.embed.begin(LANE_FEATURES, &features.task, &mut sums);
        for index in &eligible {
            self.embed.activate(&sums, &features.lanes[*index], &mut lane);
            totals.iter_mut().zip(&lane).for_each(|(total, one)| *total += i32::from(*one));
            embeddings.extend_from_slice(&lane);
        }
        // Activations of this layer are not negative, so the mean is rounded down; 256 of them fit 32 bits.
        let number = eligible.len() as i32;
        let mean: Vec<i16> = totals.iter().map(|total| (total / number) as i16).collect();
        self.context.activations(&mean, &mut sums, &mut lane);
        let value = self.value.score(0, &lane);
        self.join.begin(embedded, &mean, &mut sums);
        let advantage = |embedding: &[i16]| {
            self.join.activate(&sums, embedding, &mut lane);
            self.advantage.score(0, &lane)
        };
        let advantages: Vec<i64> = embeddings.chunks_exact(embedded).map(advantage).collect();
        let common = value - advantages.iter().sum::<i64>().div_euclid(i64::from(number));
        let mut scores = vec![None; lanes.len()];
        for (index, advantage) in eligible.iter().zip(advantages) {
            scores[*index] = Some(common + advantage);
        }
        scores
    }
}

pub(crate) fn check_shapes(layers: &[Layer], expected: &[(usize, usize)]) -> Result<(), NetworkError> {
    for (layer, (one, expected)) in layers.iter().zip(expected).enumerate() {
        let (inputs, outputs) = (one.inputs(), one.outputs());
        if (inputs, outputs) != *expected {
            return Err(NetworkError::Shape { layer, inputs, outputs });
        }
    }
    Ok(())
}
