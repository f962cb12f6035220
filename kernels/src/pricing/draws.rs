//! Random numbers of paths, which are a function of key, path, step and stream only.
//!
//! Paths are taken in groups of [`LANES`]: path `p` is lane `p mod 64` of group `g = p div 64`. A number takes two
//! words of Philox in `f64`, one in `f32`. A call gives four, so a group needs `C = 32` or `16` calls. Lane `l` uses
//! the words number `l div C` of the call with the counter `(g·C + l mod C, step, stream)`, which has 64, 32 and 32
//! bits.

use std::ops::Range;

use super::bridge::Bridge;
use super::sampling::NumberSource;
use super::simulation::SimulationSpec;
use crate::math::{Keys, OUTER, Real, quantile_central, quantile_tail};

/// Number of paths side by side.
pub(crate) const LANES: usize = 64;
/// Number of tail values that are computed side by side.
const TAIL_LANES: usize = 16;
/// Number of words of a call of Philox.
const WORDS: usize = 4;
/// Most calls of Philox for a group.
const CALLS_MAX: usize = 32;

/// The purpose of a stream of numbers: the last part of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(u64);

impl Stream {
    /// Steps of the path.
    pub const STEPS: Stream = Stream(0);
    /// Extremes within a step.
    pub const EXTREMES: Stream = Stream(1);
    /// Steps of pilot paths.
    pub const PILOT: Stream = Stream(2);
    /// Shifts of Sobol's points, which do not belong to a path.
    pub const SHIFT: Stream = Stream(3);
    const ASSETS: Stream = Stream(16);

    /// Steps of one asset of a basket.
    pub fn of_asset(asset: usize) -> Stream {
        Stream(Self::ASSETS.0 + asset as u64)
    }

    #[inline(always)]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The dimension of Sobol's points for a step of this stream. Steps come first (with a bridge, its points), then
    /// the extremes in the order of steps. For a basket, dimensions are the assets.
    #[inline(always)]
    pub fn dimension(self, step: u64, steps: u64) -> u64 {
        match self {
            Stream::STEPS => step,
            Stream::EXTREMES => steps + step,
            Stream(number) => number - Self::ASSETS.0,
        }
    }
}

/// A number for each path of a group.
pub(crate) type Lanes<T> = [T; LANES];

/// Distances from the nearer end of `(0, 1)`, negative below ½, group by group.
pub(crate) struct Draws<T> {
    outer: Lanes<T>,
    words: [[u64; CALLS_MAX]; WORDS],
}

impl<T: Real> Draws<T> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { outer: [T::of(0.25); LANES], words: [[0; CALLS_MAX]; WORDS] }
    }

    #[inline(always)]
    fn draw(&mut self, source: &NumberSource, group: u64, step: u64, stream: Stream) {
        let NumberSource { keys, points } = source;
        let Some(points) = points else {
            return self.draw_random(keys, group, step, stream);
        };
        let (digits, [high, low]) = points.of_group(keys, group, step, stream);
        for (outer, digits) in self.outer.iter_mut().zip(&digits) {
            *outer = T::outer([digits ^ high, low]);
        }
    }

    #[inline(always)]
    fn draw_random(&mut self, keys: &Keys, group: u64, step: u64, stream: Stream) {
        let calls = LANES * T::WORDS / WORDS;
        let words = &mut self.words;
        #[expect(clippy::needless_range_loop, reason = "four rows at once")]
        for call in 0..calls {
            let number = group * calls as u64 + call as u64;
            let [a, b, c, d] = keys.words([number, number >> 32, step, stream.0]);
            (words[0][call], words[1][call], words[2][call], words[3][call]) = (a, b, c, d);
        }
        for part in 0..WORDS / T::WORDS {
            let (high, low) = (&words[part * T::WORDS], &words[part * T::WORDS + T::WORDS - 1]);
            let outer = &mut self.outer[part * calls..(part + 1) * calls];
            for (outer, (high, low)) in outer.iter_mut().zip(high.iter().zip(low)) {
                *outer = T::outer([*high, *low]);
            }
        }
    }

    /// Numbers evenly distributed between 0 and 1; rounding may make them 0 or 1.
    #[inline(always)]
    pub(crate) fn uniforms(
        &mut self,
        source: &NumberSource,
        group: u64,
        step: u64,
        stream: Stream,
        numbers: &mut Lanes<T>,
    ) {
        self.draw(source, group, step, stream);
        for (number, outer) in numbers.iter_mut().zip(&self.outer) {
            *number = if *outer > T::of(0.0) { T::of(1.0) - *outer } else { -*outer };
        }
    }

    /// Normal numbers, by the inverse of the distribution function.
    #[inline(always)]
    pub(crate) fn normals(
        &mut self,
        source: &NumberSource,
        group: u64,
        step: u64,
        stream: Stream,
        numbers: &mut Lanes<T>,
    ) {
        self.draw(source, group, step, stream);
        for (number, outer) in numbers.iter_mut().zip(&self.outer) {
            *number = quantile_central(outer.abs()).with_sign_of(*outer);
        }
        // Every seventh number is in the tail; these are computed separately, side by side.
        let mut lanes = self.in_tail();
        while lanes != 0 {
            let mut tail = [T::of(OUTER); TAIL_LANES];
            let first = lanes;
            for outer in &mut tail {
                if lanes == 0 {
                    break;
                }
                *outer = self.outer[lanes.trailing_zeros() as usize];
                lanes &= lanes - 1;
            }
            for outer in &mut tail {
                *outer = quantile_tail(outer.abs()).with_sign_of(*outer);
            }
            let mut done = first;
            for tail in &tail {
                if done == lanes {
                    break;
                }
                numbers[done.trailing_zeros() as usize] = *tail;
                done &= done - 1;
            }
        }
    }

    /// A bit for each lane that is in the tail.
    #[inline(always)]
    fn in_tail(&self) -> u64 {
        /// Factor that gathers the last bits of eight bytes in one byte.
        const GATHER: u64 = 0x0102_0408_1020_4080;
        let mut flags = [0_u8; LANES];
        for (flag, outer) in flags.iter_mut().zip(&self.outer) {
            *flag = u8::from(outer.abs() < T::of(OUTER));
        }
        let mut lanes = 0;
        for (byte, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
            lanes |= (u64::from_le_bytes(*flags).wrapping_mul(GATHER) >> 56) << (8 * byte);
        }
        lanes
    }
}

/// Normal numbers for the steps of a group of paths and, if needed, evenly distributed ones for the extremes within
/// steps.
pub(crate) struct Numbers<T> {
    draws: Draws<T>,
    source: NumberSource,
    /// The bridge of Sobol's points; `None` if each step has a number of its own.
    bridge: Option<Box<Bridge<T>>>,
    steps: u64,
    has_extremes: bool,
    z: Lanes<T>,
    u: Lanes<T>,
}

impl<T: Real> Numbers<T> {
    #[inline(always)]
    pub(crate) fn new(spec: &SimulationSpec, has_extremes: bool) -> Self {
        let zeros = [T::of(0.0); LANES];
        Self {
            draws: Draws::new(),
            source: NumberSource::new(spec.sampling, spec.key, spec.steps, 1 + u32::from(has_extremes)),
            bridge: spec.sampling.is_sobol().then(|| Box::new(Bridge::new(spec.steps))),
            steps: u64::from(spec.steps),
            has_extremes,
            z: zeros,
            u: zeros,
        }
    }

    #[inline(always)]
    pub(crate) fn steps(&self) -> Range<u64> {
        0..self.steps
    }

    /// The numbers of a step. All steps of a group must be requested, in the order of time.
    #[inline(always)]
    pub(crate) fn of_step(&mut self, group: u64, step: u64) -> (&Lanes<T>, &Lanes<T>) {
        self.draw_step(group, step);
        if self.has_extremes {
            self.draws.uniforms(&self.source, group, step, Stream::EXTREMES, &mut self.u);
        }
        (&self.z, &self.u)
    }

    /// Draws the numbers of a step, directly or for a bridge, in one loop, so that the drawing code is compiled once.
    #[inline(always)]
    fn draw_step(&mut self, group: u64, step: u64) {
        if let Some(bridge) = self.bridge.as_mut().filter(|_| step == 0) {
            bridge.start();
        }
        loop {
            let drawn = match &mut self.bridge {
                None => step,
                Some(bridge) => match bridge.dimension(step) {
                    Some(dimension) => dimension,
                    None => return bridge.advance(&mut self.z),
                },
            };
            self.draws.normals(&self.source, group, drawn, Stream::STEPS, &mut self.z);
            match &mut self.bridge {
                None => return,
                Some(bridge) => bridge.put(&self.z),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::inverse_normal_cdf;
    use crate::pricing::sampling::Sampling;

    #[test]
    fn numbers_are_those_of_their_counters() {
        let (source, keys) = (NumberSource::new(Sampling::Random, 7, 1, 1), Keys::new(7));
        for (group, step) in [(0, 0), (3, 5), (1 << 40, 9)] {
            let mut found = [0.0; LANES];
            Draws::new().normals(&source, group, step, Stream::EXTREMES, &mut found);
            let mut evenly = [0.0; LANES];
            Draws::new().uniforms(&source, group, step, Stream::EXTREMES, &mut evenly);
            for lane in 0..LANES as u64 {
                let call = group * 32 + lane % 32;
                let words = keys.words([call & 0xffff_ffff, call >> 32, step, 1]);
                let first = 2 * (lane / 32) as usize;
                let bits = (words[first] << 32 | words[first + 1]) >> 11;
                let u = (bits as f64 + 0.5) / 9_007_199_254_740_992.0;
                assert!((evenly[lane as usize] - u).abs() <= f64::EPSILON / 2.0);
                let error = found[lane as usize] - inverse_normal_cdf(u);
                assert!(error.abs() < 1e-14, "{error:e}");
            }
        }
    }

    fn moments<T: Real>() -> [f64; 4] {
        let source = NumberSource::new(Sampling::Random, 1, 1, 1);
        let (mut draws, mut numbers, mut sums) = (Draws::<T>::new(), [T::of(0.0); LANES], [0.0; 4]);
        for group in 0..20_000 {
            draws.normals(&source, group, 3, Stream::STEPS, &mut numbers);
            for number in &numbers {
                let z = number.double();
                for (power, sum) in sums.iter_mut().enumerate() {
                    *sum += (0..=power).fold(1.0, |product, _| product * z);
                }
            }
        }
        sums.map(|sum| sum / (20_000.0 * LANES as f64))
    }

    #[test]
    fn normal_numbers_have_normal_moments() {
        for [mean, variance, third, fourth] in [moments::<f64>(), moments::<f32>()] {
            // The tolerance is four standard errors of 1.28 million numbers.
            assert!(mean.abs() < 0.0036, "{mean}");
            assert!((variance - 1.0).abs() < 0.005, "{variance}");
            assert!(third.abs() < 0.0137, "{third}");
            assert!((fourth - 3.0).abs() < 0.035, "{fourth}");
        }
    }
}
