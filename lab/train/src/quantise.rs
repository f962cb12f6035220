//! Conversion of a trained float network to an integer network.

use candle_core::{Result as TensorResult, Tensor};
use warptape_network::{Architecture, Improved, Layer, Network, ONE, Paper, SHIFT_MAX, WeightsRow};

use crate::error::TrainError;
use crate::model::{Layers, Method};

/// Greatest bias; it leaves room for the sum of the weights.
const BIAS_MAX: f64 = (1u32 << 29) as f64;

/// Returns a row with the largest shift with which its weights fit into 8 bits, and its bias into 30 bits.
fn row(weights: &[f32], bias: f32) -> WeightsRow {
    let most = weights.iter().fold(0f32, |most, weight| most.max(weight.abs()));
    let scaled = |value: f32, shift: u8| f64::from(value) * f64::from(1u32 << shift);
    let fits =
        |shift: &u8| scaled(most, *shift) <= 127.0 && scaled(bias.abs(), *shift) * f64::from(ONE) <= BIAS_MAX;
    let shift = (0..=SHIFT_MAX).rev().find(fits).unwrap_or(0);
    // Values too large for any shift are clamped to the bounds.
    let weights = weights.iter().map(|weight| scaled(*weight, shift).round().clamp(-127.0, 127.0) as i8);
    let bias = (scaled(bias, shift) * f64::from(ONE)).round().clamp(-BIAS_MAX, BIAS_MAX) as i32;
    WeightsRow { bias, shift, weights: weights.collect() }
}

fn rows((weights, biases): &(Tensor, Tensor)) -> TensorResult<Vec<WeightsRow>> {
    let (weights, biases) = (weights.to_vec2::<f32>()?, biases.to_vec1::<f32>()?);
    Ok(weights.iter().zip(biases).map(|(weights, bias)| row(weights, bias)).collect())
}

pub(crate) fn quantise(kind: Method, layers: &Layers) -> Result<Network, TrainError> {
    let layer = |layer: &(Tensor, Tensor)| -> Result<Layer, TrainError> {
        Ok(Layer::new(layer.0.dim(1)?, &rows(layer)?)?)
    };
    let layers = layers.iter().map(layer).collect::<Result<Vec<_>, _>>()?;
    let unfit = || TrainError::Tensor(candle_core::Error::Msg("another number of layers".to_owned()));
    let architecture = match kind {
        Method::Improved => Architecture::Improved(Improved::new(layers.try_into().map_err(|_| unfit())?)?),
        Method::Paper => Architecture::Paper(Paper::new(layers.try_into().map_err(|_| unfit())?)?),
    };
    Ok(Network::new(architecture)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_use_their_eight_bits() {
        let check = |weights: &[f32], bias, expected: (i32, u8, &[i8])| {
            let WeightsRow { bias, shift, weights } = row(weights, bias);
            assert_eq!((bias, shift, weights.as_slice()), expected);
        };
        check(&[0.5, -0.25], 1.0, (128 << 10, 7, &[64, -32]));
        check(&[1.5, 0.011], -2.0, (-(128 << 10), 6, &[96, 1]));
        check(&[0.0], 0.0, (0, 24, &[0]));
        check(&[500.0, 1.0], 0.0, (0, 0, &[127, 1]));
        check(&[0.001], 1_000.0, ((1_000 << 10) << 9, 9, &[1]));
    }
}
