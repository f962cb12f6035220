//! Dense layers of 8-bit weights.

use crate::error::NetworkError;

/// The activation for the value 1.
pub const ONE: i32 = 1 << 10;
/// Greatest absolute value of activations.
pub const ACTIVATION_MAX: i32 = i16::MAX as i32;
/// Most inputs of a layer, and most outputs.
pub const WIDTH_MAX: usize = 2_048;
/// Most bits by which sums are shifted right.
pub const SHIFT_MAX: u8 = 24;
/// Bits after the point of a score: those of an activation plus 8, so that close scores differ.
pub const SCORE_FRACTION_BITS: u32 = 18;
const SCORE_BITS_MORE: u32 = SCORE_FRACTION_BITS - ONE.trailing_zeros();

/// The numbers of one output of a layer: `(bias + Σ weight × input) × 2^-shift`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsRow {
    /// Bias, in units of weight × activation.
    pub bias: i32,
    /// Bits by which the sum is shifted right, rounding to the nearest; at most [`SHIFT_MAX`].
    pub shift: u8,
    /// One weight for each input.
    pub weights: Vec<i8>,
}

/// A layer in which each output depends on all inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    inputs: usize,
    biases: Vec<i32>,
    shifts: Vec<u8>,
    /// Weights by output and input; 8-bit values, kept as wide as activations.
    weights: Vec<i16>,
}

impl Layer {
    /// Makes a layer of rows.
    ///
    /// # Errors
    /// A row has a number of weights other than `inputs`, or there are too many rows or none. A shift is too large, or
    /// a sum could leave 32 bits.
    pub fn new(inputs: usize, rows: &[WeightsRow]) -> Result<Self, NetworkError> {
        if !(1..=WIDTH_MAX).contains(&inputs) || !(1..=WIDTH_MAX).contains(&rows.len()) {
            return Err(NetworkError::Width { inputs, outputs: rows.len() });
        }
        for (output, row) in rows.iter().enumerate() {
            if row.weights.len() != inputs {
                return Err(NetworkError::Width { inputs: row.weights.len(), outputs: rows.len() });
            }
            if row.shift > SHIFT_MAX {
                return Err(NetworkError::Shift { output, shift: row.shift });
            }
            // No partial sum leaves this bound, whatever the order of its terms. Rounding adds half of the bits shifted
            // out.
            let weights: i64 = row.weights.iter().map(|weight| i64::from(weight.unsigned_abs())).sum();
            let most = i64::from(row.bias.unsigned_abs()) + weights * i64::from(ACTIVATION_MAX);
            if most + (1 << SHIFT_MAX) > i64::from(i32::MAX) {
                return Err(NetworkError::Overflow { output, most });
            }
        }
        let weights = rows.iter().flat_map(|row| row.weights.iter().map(|weight| i16::from(*weight)));
        Ok(Self {
            inputs,
            biases: rows.iter().map(|row| row.bias).collect(),
            shifts: rows.iter().map(|row| row.shift).collect(),
            weights: weights.collect(),
        })
    }

    /// Its rows.
    pub fn rows(&self) -> Vec<WeightsRow> {
        let row = |output: usize| WeightsRow {
            bias: self.biases[output],
            shift: self.shifts[output],
            weights: self.weights_of(output).iter().map(|weight| *weight as i8).collect(),
        };
        (0..self.outputs()).map(row).collect()
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.biases.len()
    }

    fn weights_of(&self, output: usize) -> &[i16] {
        &self.weights[output * self.inputs..][..self.inputs]
    }

    /// Begins sums with the biases, and adds the products of the inputs from `first` on.
    pub(crate) fn begin(&self, first: usize, inputs: &[i16], sums: &mut Vec<i32>) {
        sums.clear();
        let sum = |output: usize| self.biases[output] + product(&self.weights_of(output)[first..], inputs);
        sums.extend((0..self.outputs()).map(sum));
    }

    /// Finishes sums that were begun, by adding the leading inputs, and converts them to activations; negative ones
    /// become 0.
    pub(crate) fn activate(&self, sums: &[i32], inputs: &[i16], activations: &mut Vec<i16>) {
        activations.clear();
        let activation = |(output, sum): (usize, &i32)| {
            let sum = sum + product(&self.weights_of(output)[..inputs.len()], inputs);
            let shift = self.shifts[output];
            let rounded = sum + if shift > 0 { 1 << (shift - 1) } else { 0 };
            (rounded >> shift).clamp(0, ACTIVATION_MAX) as i16
        };
        activations.extend(sums.iter().enumerate().map(activation));
    }

    /// Activations of all inputs.
    pub(crate) fn activations(&self, inputs: &[i16], sums: &mut Vec<i32>, activations: &mut Vec<i16>) {
        self.begin(inputs.len(), &[], sums);
        self.activate(sums, inputs, activations);
    }

    /// The score of one output.
    pub(crate) fn score(&self, output: usize, inputs: &[i16]) -> i64 {
        let sum = self.biases[output] + product(self.weights_of(output), inputs);
        (i64::from(sum) << SCORE_BITS_MORE) >> self.shifts[output]
    }
}

/// Σ weight × input. Both are 16 bits wide, so that the processor multiplies and adds pairs.
fn product(weights: &[i16], inputs: &[i16]) -> i32 {
    weights.iter().zip(inputs).map(|(weight, input)| i32::from(*weight) * i32::from(*input)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(bias: i32, shift: u8, weights: &[i8]) -> Result<Layer, NetworkError> {
        Layer::new(weights.len(), &[WeightsRow { bias, shift, weights: weights.to_vec() }])
    }

    #[test]
    fn sums_round_to_the_nearest_and_end_at_the_bounds() {
        let check = |bias, shift, weights: &[i8], inputs: &[i16], expected: i16| {
            let (mut sums, mut found) = (Vec::new(), Vec::new());
            layer(bias, shift, weights).unwrap().activations(inputs, &mut sums, &mut found);
            assert_eq!(found, [expected]);
        };
        check(0, 1, &[1, 1], &[2, 1], 2);
        check(0, 2, &[1, 1], &[4, 1], 1);
        check(0, 2, &[1, 1], &[4, 2], 2);
        check(-9, 0, &[1, 1], &[4, 2], 0);
        check(0, 0, &[127, 127], &[i16::MAX, i16::MAX], i16::MAX);
        check(0, 0, &[-128, 127], &[i16::MAX, 0], 0);
    }

    #[test]
    fn what_could_overflow_is_no_layer() {
        // 515 × 127 × 32,767 leaves room for rounding; 516 such products do not.
        assert!(matches!(layer(0, 0, &[127; 516]), Err(NetworkError::Overflow { output: 0, .. })));
        let most = layer(0, SHIFT_MAX, &[127; 511]).unwrap();
        let (mut sums, mut found) = (Vec::new(), Vec::new());
        most.activations(&[i16::MAX; 511], &mut sums, &mut found);
        assert_eq!(found, [127]);
        most.activations(&[-i16::MAX; 511], &mut sums, &mut found);
        assert_eq!(found, [0]);
        assert!(matches!(layer(i32::MIN, 0, &[1]), Err(NetworkError::Overflow { .. })));
        assert!(matches!(layer(0, 25, &[1]), Err(NetworkError::Shift { output: 0, shift: 25 })));
        assert!(matches!(layer(0, 0, &[]), Err(NetworkError::Width { .. })));
        assert!(matches!(Layer::new(1, &[]), Err(NetworkError::Width { .. })));
        let rows = [1, 2].map(|inputs| WeightsRow { bias: 0, shift: 0, weights: vec![1; inputs] });
        assert!(matches!(Layer::new(1, &rows), Err(NetworkError::Width { inputs: 2, outputs: 2 })));
    }
}
