//! Sums over paths, in one fixed shape: over groups of a block lane by lane, over lanes by halves, over blocks by a
//! numbered tree.

use bytemuck::{Pod, Zeroable};

use super::draws::{LANES, Lanes};
use super::sampling::{SOBOL_REPLICATES, Sampling};

/// Number of groups of paths in a block.
pub(crate) const GROUPS: usize = 8;
/// Number of samples in a block: paths, or pairs of paths that mirror each other.
pub const BLOCK_SAMPLES: u64 = (GROUPS * LANES) as u64;

/// Number of sums: of payoffs, of their squares, of controls, of their squares, and of products of payoff and control.
pub(crate) const SUMS: usize = 5;

/// Sums over the samples of a block: of the payoff at expiry, its square, the control, its square, and the product of
/// payoff and control.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct BlockSums(pub [f64; SUMS]);

/// Sums by lane.
pub(crate) struct LaneSums([Lanes<f64>; SUMS]);

impl LaneSums {
    pub const ZERO: LaneSums = LaneSums([[0.0; LANES]; SUMS]);

    #[inline(always)]
    pub fn add_payoffs(&mut self, payoffs: &Lanes<f64>) {
        let [sums, squares, ..] = &mut self.0;
        for ((sum, square), payoff) in sums.iter_mut().zip(squares).zip(payoffs) {
            *sum += payoff;
            *square += payoff * payoff;
        }
    }

    #[inline(always)]
    pub fn add_controls(&mut self, payoffs: &Lanes<f64>, controls: &Lanes<f64>) {
        for lane in 0..LANES {
            let (payoff, control) = (payoffs[lane], controls[lane]);
            self.0[2][lane] += control;
            self.0[3][lane] += control * control;
            self.0[4][lane] += payoff * control;
        }
    }

    /// Returns the sums over lanes, and sets all sums to zero.
    #[inline(always)]
    pub fn take(&mut self) -> BlockSums {
        let mut of_block = [0.0; SUMS];
        for (sum, lanes) in of_block.iter_mut().zip(&mut self.0) {
            *sum = sum_halves(lanes);
            *lanes = [0.0; LANES];
        }
        BlockSums(of_block)
    }
}

/// The sum over lanes: the second half is added to the first, until one number remains.
#[inline(always)]
pub(crate) fn sum_halves(lanes: &mut Lanes<f64>) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Sums over blocks from the first on.
pub(crate) fn sum_blocks(blocks: &[BlockSums]) -> BlockSums {
    BlockSums(sum_tree(bytemuck::cast_slice(blocks)))
}

/// The sum over blocks as a tree: blocks up to the greatest power of two below their number, plus the rest. Both parts
/// are summed in the same way.
pub(crate) fn sum_tree<const N: usize>(blocks: &[[f64; N]]) -> [f64; N] {
    match blocks {
        [] => [0.0; N],
        [block] => *block,
        _ => {
            let (first, rest) = blocks.split_at(blocks.len().next_power_of_two() / 2);
            let (first, rest) = (sum_tree(first), sum_tree(rest));
            std::array::from_fn(|sum| first[sum] + rest[sum])
        }
    }
}

/// Kish's effective number of samples, `(Σx)²/Σx²`, over the first `samples` payoffs.
pub(crate) fn effective_samples(blocks: &[BlockSums], samples: u64) -> f64 {
    let BlockSums([sum, squares, ..]) = sum_blocks(&blocks[..(samples / BLOCK_SAMPLES) as usize]);
    if squares > 0.0 { sum / squares * sum } else { 0.0 }
}

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub value: f64,
    pub standard_error: f64,
}

impl Mean {
    /// The mean without samples, which is unknown.
    const UNKNOWN: Mean = Mean { value: 0.0, standard_error: f64::INFINITY };

    /// The mean over blocks, beginning with block 0, and the number of samples in it.
    pub fn of_blocks(sampling: Sampling, blocks: &[BlockSums], control: Option<f64>) -> (Mean, u64) {
        let rounds = blocks.len() / SOBOL_REPLICATES as usize;
        let whole = if sampling.is_sobol() { rounds * SOBOL_REPLICATES as usize } else { blocks.len() };
        let blocks = &blocks[..whole];
        let samples = blocks.len() as u64 * BLOCK_SAMPLES;
        if samples == 0 {
            return (Mean::UNKNOWN, 0);
        }
        let moments = ControlledMoments::new(&sum_blocks(blocks), samples, control);
        let standard_error = if sampling.is_sobol() {
            error_of_replicates(&moments, blocks)
        } else {
            (moments.variance.max(0.0) / (samples as f64 - 1.0)).sqrt()
        };
        // If payoffs overflowed, the mean is unknown: its standard error is infinite.
        let is_known = moments.variance.is_finite() && moments.value.is_finite();
        let standard_error = if is_known { standard_error } else { f64::INFINITY };
        (Mean { value: moments.value, standard_error }, samples)
    }
}

/// Moments of samples with a control variate. The deviation of the control's mean from its expectation, times the slope
/// of regression, is subtracted from the mean of the payoff.
struct ControlledMoments {
    value: f64,
    /// Variance of one sample.
    variance: f64,
    slope: f64,
}

impl ControlledMoments {
    fn new(sums: &BlockSums, samples: u64, control_expected: Option<f64>) -> Self {
        let count = samples as f64;
        let BlockSums([payoff, payoff_squared, control, control_squared, product]) = *sums;
        let mean = payoff / count;
        let mut moments =
            ControlledMoments { value: mean, variance: payoff_squared / count - mean * mean, slope: 0.0 };
        let Some(expected) = control_expected else {
            return moments;
        };
        let control_mean = control / count;
        let control_variance = control_squared / count - control_mean * control_mean;
        let covariance = product / count - mean * control_mean;
        if control_variance > 0.0 {
            moments.slope = covariance / control_variance;
            moments.value -= moments.slope * (control_mean - expected);
            moments.variance -= moments.slope * covariance;
        }
        moments
    }
}

/// Standard error from the differences between the means of replicates; blocks belong to the replicates in turn.
fn error_of_replicates(moments: &ControlledMoments, blocks: &[BlockSums]) -> f64 {
    let replicates = SOBOL_REPLICATES as usize;
    let samples = (blocks.len() / replicates) as f64 * BLOCK_SAMPLES as f64;
    let means: Vec<f64> = (0..replicates)
        .map(|replicate| {
            let blocks: Vec<BlockSums> = blocks.iter().skip(replicate).step_by(replicates).copied().collect();
            let BlockSums([payoff, _, control, ..]) = sum_blocks(&blocks);
            (payoff - moments.slope * control) / samples
        })
        .collect();
    let mean = means.iter().sum::<f64>() / replicates as f64;
    let squares: f64 = means.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / (replicates * (replicates - 1)) as f64).sqrt()
}
