//! Paths of a group, side by side, advanced step by step.

use super::draws::{LANES, Lanes};
use super::payoffs::{Payoff, STATE};
use crate::math::Number;

/// The paths of a group under one payoff's constants and, in an antithetic simulation, their mirror images.
pub(crate) struct Paths<T, P> {
    payoff: P,
    is_antithetic: bool,
    ahead: [Lanes<T>; STATE],
    mirrored: [Lanes<T>; STATE],
}

impl<T: Number, P: Payoff<T>> Paths<T, P> {
    #[inline(always)]
    pub fn new(payoff: P, is_antithetic: bool) -> Self {
        let zeros = [[T::of(0.0); LANES]; STATE];
        Self { payoff, is_antithetic, ahead: zeros, mirrored: zeros }
    }

    /// Begins new paths.
    #[inline(always)]
    pub fn start(&mut self) {
        for (number, start) in self.payoff.start().into_iter().enumerate().take(P::KEPT) {
            self.ahead[number].fill(start);
            if self.is_antithetic {
                self.mirrored[number].fill(start);
            }
        }
    }

    #[inline(always)]
    pub fn step(&mut self, z: &Lanes<T::Part>, u: &Lanes<T::Part>) {
        for lane in 0..LANES {
            let state = self.payoff.step(state_of(&self.ahead, lane), z[lane], u[lane]);
            for (lanes, number) in self.ahead.iter_mut().zip(state).take(P::KEPT) {
                lanes[lane] = number;
            }
        }
        if !self.is_antithetic {
            return;
        }
        for lane in 0..LANES {
            let state = self.payoff.step(state_of(&self.mirrored, lane), -z[lane], u[lane]);
            for (lanes, number) in self.mirrored.iter_mut().zip(state).take(P::KEPT) {
                lanes[lane] = number;
            }
        }
    }

    /// The numbers of each sample: those of its path, or the means over its two paths.
    #[inline(always)]
    pub fn samples<const N: usize>(
        &self,
        samples: &mut [Lanes<f64>; N],
        of_path: impl Fn(&P, [T; STATE]) -> [f64; N],
    ) {
        for lane in 0..LANES {
            let found = of_path(&self.payoff, state_of(&self.ahead, lane));
            for (lanes, found) in samples.iter_mut().zip(found) {
                lanes[lane] = found;
            }
        }
        if !self.is_antithetic {
            return;
        }
        for lane in 0..LANES {
            let found = of_path(&self.payoff, state_of(&self.mirrored, lane));
            for (lanes, found) in samples.iter_mut().zip(found) {
                lanes[lane] = 0.5 * (lanes[lane] + found);
            }
        }
    }
}

#[inline(always)]
fn state_of<T: Copy>(paths: &[Lanes<T>; STATE], lane: usize) -> [T; STATE] {
    [paths[0][lane], paths[1][lane], paths[2][lane]]
}
