//! Paths of an American option, side by side, and their stops: each path stops on the first date at which the rule
//! exercises.
//!
//! Options that differ only in their spots share paths, which are those of `ln S/S₀`; each option has its own stops.

use super::american::AmericanSimulation;
use super::draws::{LANES, Lanes, Numbers};
use super::exercise::{Continuation, is_exercised};
use crate::math::Real;

/// The points at which paths stop.
pub(super) struct Stops<T> {
    pub x: Lanes<T>,
    /// Date of the stop, counted from 1; 0 if the option is never exercised.
    pub date: Lanes<T>,
}

/// The paths of a group, and their stops by spot.
pub(super) struct Walk<T, const SPOTS: usize> {
    pub x: Lanes<T>,
    pub stops: [Stops<T>; SPOTS],
}

/// Constants of the steps.
struct StepConstants<T, const SPOTS: usize> {
    sign: T,
    /// Spot / strike.
    moneyness: [T; SPOTS],
    drift: T,
    diffusion: T,
}

/// Groups of paths and, in an antithetic simulation, their mirror images.
pub(super) struct Walks<'a, T, const SPOTS: usize> {
    pub of: &'a AmericanSimulation,
    steps: StepConstants<T, SPOTS>,
    /// The exercise rule of each date.
    rule: Vec<Continuation<T>>,
    numbers: Numbers<T>,
    ahead: Walk<T, SPOTS>,
    mirrored: Walk<T, SPOTS>,
}

impl<T: Real, const SPOTS: usize> Walk<T, SPOTS> {
    fn new() -> Self {
        let zeros = || [T::of(0.0); LANES];
        Self { x: zeros(), stops: std::array::from_fn(|_| Stops { x: zeros(), date: zeros() }) }
    }

    #[inline(always)]
    fn start(&mut self) {
        self.x.fill(T::of(0.0));
        for stops in &mut self.stops {
            stops.x.fill(T::of(0.0));
            stops.date.fill(T::of(0.0));
        }
    }

    #[inline(always)]
    fn step(
        &mut self,
        steps: &StepConstants<T, SPOTS>,
        date: T,
        continuation: &Continuation<T>,
        z: &Lanes<T>,
    ) {
        let mut growth = [T::of(0.0); LANES];
        for ((x, growth), z) in self.x.iter_mut().zip(&mut growth).zip(z) {
            *x = *x + (steps.drift + steps.diffusion * *z);
            *growth = x.exp();
        }
        for (stops, moneyness) in self.stops.iter_mut().zip(&steps.moneyness) {
            let of_lanes = stops.x.iter_mut().zip(&mut stops.date).zip(self.x.iter().zip(&growth));
            for ((stop, stop_date), (x, growth)) in of_lanes {
                let pays = steps.sign * (*moneyness * *growth - T::of(1.0));
                let stops_here = (*stop_date == T::of(0.0)) & is_exercised(pays, continuation);
                *stop = if stops_here { *x } else { *stop };
                *stop_date = if stops_here { date } else { *stop_date };
            }
        }
    }
}

impl<'a, T: Real, const SPOTS: usize> Walks<'a, T, SPOTS> {
    /// Walks for options with these values of spot / strike.
    #[inline(always)]
    pub fn new(of: &'a AmericanSimulation, moneyness: [f64; SPOTS]) -> Self {
        let (spec, terms) = (of.spec(), of.terms());
        let steps = StepConstants {
            sign: T::of(terms.sign),
            moneyness: moneyness.map(T::of),
            drift: T::of(terms.drift.value),
            diffusion: T::of(terms.diffusion.value),
        };
        Self {
            of,
            steps,
            rule: of.rule().continuations.iter().map(Continuation::of).collect(),
            numbers: Numbers::new(&spec.european(), false),
            ahead: Walk::new(),
            mirrored: Walk::new(),
        }
    }

    /// Walks the paths of a group to expiry.
    #[inline(always)]
    pub fn walk(&mut self, group: u64) {
        self.ahead.start();
        self.mirrored.start();
        for (date, continuation) in self.rule.iter().enumerate() {
            let (z, _) = self.numbers.of_step(group, date as u64);
            let number = T::of((date + 1) as f64);
            self.ahead.step(&self.steps, number, continuation, z);
            if self.of.spec().antithetic {
                self.mirrored.step(&self.steps, number, continuation, &z.map(|z| -z));
            }
        }
    }

    /// The numbers of a lane's sample: those of its path, or the means over its two paths.
    #[inline(always)]
    pub fn sample<const N: usize>(
        &self,
        lane: usize,
        of_path: impl Fn(&Walk<T, SPOTS>, usize) -> [f64; N],
    ) -> [f64; N] {
        let mut sample = of_path(&self.ahead, lane);
        if self.of.spec().antithetic {
            let other = of_path(&self.mirrored, lane);
            sample.iter_mut().zip(other).for_each(|(one, other)| *one = 0.5 * (*one + other));
        }
        sample
    }
}
