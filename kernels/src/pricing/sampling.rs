//! The source of the numbers of paths: Philox or Sobol's points, by group, step and stream.
//!
//! Sobol's points are used in [`SOBOL_REPLICATES`] copies; block b belongs to replicate `b mod 32`. All begin with
//! point 0, and each has a random digital shift of its own. In each dimension a random word of 64 bits is added, bit by
//! bit and without carry, to all points. Sources are Owen, *Randomized QMC and nested uniform sampling*, 1995, and
//! L'Ecuyer and Lemieux 2002. So each replicate is unbiased, and the replicates are independent.
//!
//! Paths of several steps are made by a Brownian bridge (`bridge.rs`), whose points are the first dimensions. The
//! extremes of lookback options, which are independent given the path, have the next dimensions in the order of time. A
//! basket has one step, and dimensions for its assets in the order of the request.

use super::draws::{LANES, Stream};
use super::options::{ParameterError, check};
use super::sums::{BLOCK_SAMPLES, GROUPS};
use crate::math::{Directions, Keys, SOBOL_DIMENSIONS, coordinate, directions};

/// Independent copies of Sobol's points.
pub const SOBOL_REPLICATES: u64 = 32;

/// The kind of numbers that determine paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// Random numbers; the standard error is that of independent samples.
    #[default]
    Random,
    /// Sobol's points in [`SOBOL_REPLICATES`] copies with random shifts, with as many dimensions as steps, or twice as
    /// many for lookback options. A Brownian bridge makes paths of several steps.
    ///
    /// The standard error is that of the mean of this many independent, unbiased copies. For a normal distribution its
    /// own relative error is about one eighth. Only full rounds of blocks count, one for each copy; errors fall fastest
    /// if their number is a power of two. After 2^23 rounds the points repeat. Pairs of paths that mirror each other do
    /// not help, because the points are already even on both sides.
    Sobol,
}

impl Sampling {
    /// True for Sobol's points, which make paths of several steps by a Brownian bridge.
    pub(crate) fn is_sobol(self) -> bool {
        self == Sampling::Sobol
    }

    /// Number of blocks, in full rounds, with at least `samples` samples.
    pub fn blocks_of(self, samples: u64) -> u64 {
        let blocks = samples.div_ceil(BLOCK_SAMPLES);
        if self.is_sobol() { blocks.next_multiple_of(SOBOL_REPLICATES) } else { blocks }
    }

    /// Direction numbers of all dimensions of paths; empty if numbers are random.
    pub(crate) fn directions(self, steps: u32, numbers: u32) -> Vec<Directions> {
        if self.is_sobol() { directions((steps * numbers) as usize) } else { Vec::new() }
    }

    /// Checks that there are enough dimensions for `steps` steps, each of which takes `numbers` numbers.
    pub(crate) fn check(self, steps: u32, numbers: u32) -> Result<(), ParameterError> {
        if !self.is_sobol() {
            return Ok(());
        }
        let steps_max = SOBOL_DIMENSIONS as u32 / numbers;
        check("steps", f64::from(steps), 1.0..=f64::from(steps_max))
    }
}

/// The numbers of a key.
pub(crate) struct NumberSource {
    pub keys: Keys,
    /// Sobol's points; `None` if numbers are random.
    pub points: Option<Points>,
}

/// Sobol's points.
pub(crate) struct Points {
    directions: Vec<Directions>,
    /// Number of steps: the dimensions of extremes come after those of steps.
    steps: u64,
}

impl NumberSource {
    pub fn new(sampling: Sampling, key: u64, steps: u32, numbers: u32) -> Self {
        let directions = sampling.directions(steps, numbers);
        let points = Points { directions, steps: u64::from(steps) };
        Self { keys: Keys::new(key), points: sampling.is_sobol().then_some(points) }
    }
}

impl Points {
    /// The first 32 binary digits of the coordinate of each lane, not shifted, and the words to shift by; the second
    /// word gives further digits.
    ///
    /// It is a function of its own because it would take registers from the loops of random numbers.
    #[inline(never)]
    pub fn of_group(&self, keys: &Keys, group: u64, step: u64, stream: Stream) -> ([u64; LANES], [u64; 2]) {
        let dimension = stream.dimension(step, self.steps);
        let (block, within) = (group / GROUPS as u64, group % GROUPS as u64);
        let (round, replicate) = (block / SOBOL_REPLICATES, block % SOBOL_REPLICATES);
        let first = (round * GROUPS as u64 + within) * LANES as u64;
        let directions = &self.directions[dimension as usize];
        // The lowest six bits of the points' numbers are 0 to 63 in every group, and modify the coordinate of its first
        // point.
        let common = coordinate(directions, first as u32);
        let mut digits = [u64::from(common); LANES];
        for (bit, direction) in directions.iter().enumerate().take(LANES.ilog2() as usize) {
            for (lane, digits) in digits.iter_mut().enumerate() {
                let gray = lane ^ lane >> 1;
                *digits ^= ((gray >> bit & 1) as u64).wrapping_neg() & u64::from(*direction);
            }
        }
        let [high, low, ..] = keys.words([dimension, replicate, 0, Stream::SHIFT.number()]);
        (digits, [high, low])
    }
}
