//! What a path is worth at expiry, by kind of contract. Of the path a few numbers are kept, and moved on step by step.
//!
//! A path is `x = ln(S/S₀)`, moved by `drift + diffusion·z` with normal z. All is written for any [`Real`], once; `simulation.cu`
//! is its twin.

use super::simulation::Terms;
use crate::math::Real;

/// Numbers of a path that are kept.
pub(crate) const STATE: usize = 3;

/// A contract on a path.
pub(crate) trait Payoff<T: Real>: Copy {
    /// Whether [`Payoff::finish`] has a control; else it is 0.
    const HAS_CONTROL: bool = false;
    /// Whether [`Payoff::step`] takes a number from `(0, 1)` for the extreme within the step.
    const HAS_EXTREMES: bool = false;

    /// The path before its first step.
    fn start(&self) -> [T; STATE] {
        [T::of(0.0); STATE]
    }
    fn step(&self, state: [T; STATE], z: T, u: T) -> [T; STATE];
    /// Payoff and control.
    fn finish(&self, state: [T; STATE]) -> [T; 2];
}

/// Constants of steps and of what is paid at the end.
#[derive(Clone, Copy)]
struct Common<T> {
    spot: T,
    strike: T,
    sign: T,
    drift: T,
    diffusion: T,
}

impl<T: Real> Common<T> {
    fn new(terms: &Terms) -> Self {
        Self {
            spot: T::of(terms.spot),
            strike: T::of(terms.strike),
            sign: T::of(terms.sign),
            drift: T::of(terms.drift),
            diffusion: T::of(terms.diffusion),
        }
    }

    #[inline(always)]
    fn moved(&self, x: T, z: T) -> T {
        x + (self.drift + self.diffusion * z)
    }

    #[inline(always)]
    fn price(&self, x: T) -> T {
        self.spot * x.exp()
    }

    #[inline(always)]
    fn paid(&self, price: T) -> T {
        (self.sign * (price - self.strike)).greater(T::of(0.0))
    }
}

/// The price at expiry alone counts.
#[derive(Clone, Copy)]
pub(crate) struct European<T>(Common<T>);

impl<T: Real> European<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self(Common::new(terms))
    }
}

impl<T: Real> Payoff<T> for European<T> {
    #[inline(always)]
    fn step(&self, [x, ..]: [T; STATE], z: T, _: T) -> [T; STATE] {
        [self.0.moved(x, z), T::of(0.0), T::of(0.0)]
    }

    #[inline(always)]
    fn finish(&self, [x, ..]: [T; STATE]) -> [T; 2] {
        [self.0.paid(self.0.price(x)), T::of(0.0)]
    }
}

/// The arithmetic mean of the prices after each step; the control is the same contract on their geometric mean. State: x, the sum
/// of `e^x`, the sum of x.
#[derive(Clone, Copy)]
pub(crate) struct Asian<T> {
    common: Common<T>,
    inverse_steps: T,
}

impl<T: Real> Asian<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self { common: Common::new(terms), inverse_steps: T::of(1.0 / terms.steps) }
    }
}

impl<T: Real> Payoff<T> for Asian<T> {
    const HAS_CONTROL: bool = true;

    #[inline(always)]
    fn step(&self, [x, prices, logarithms]: [T; STATE], z: T, _: T) -> [T; STATE] {
        let x = self.common.moved(x, z);
        [x, prices + x.exp(), logarithms + x]
    }

    #[inline(always)]
    fn finish(&self, [_, prices, logarithms]: [T; STATE]) -> [T; 2] {
        let arithmetic = self.common.spot * (prices * self.inverse_steps);
        let geometric = self.common.price(logarithms * self.inverse_steps);
        [self.common.paid(arithmetic), self.common.paid(geometric)]
    }
}

/// Paid if the barrier was touched at any time, or if it never was. The payoff is weighted with the probability of that given the
/// prices at the steps: of a Brownian bridge from x to x' below b, `1 − exp(−2(b − x)(b − x')/(σ²Δt))` is the probability not to
/// touch b (Beaglehole, Dybvig and Zhou 1997). State: x, the probability.
#[derive(Clone, Copy)]
pub(crate) struct Barrier<T> {
    common: Common<T>,
    barrier: T,
    factor: T,
    /// Probability of no touch before the first step.
    untouched: T,
    /// Weight: `a + b · probability`.
    weights: [T; 2],
}

impl<T: Real> Barrier<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self {
            common: Common::new(terms),
            barrier: T::of(terms.barrier),
            factor: T::of(-2.0 / (terms.diffusion * terms.diffusion)),
            untouched: T::of(terms.untouched),
            weights: terms.weights.map(T::of),
        }
    }
}

impl<T: Real> Payoff<T> for Barrier<T> {
    fn start(&self) -> [T; STATE] {
        [T::of(0.0), self.untouched, T::of(0.0)]
    }

    #[inline(always)]
    fn step(&self, [before, untouched, _]: [T; STATE], z: T, _: T) -> [T; STATE] {
        let x = self.common.moved(before, z);
        let exponent = self.factor * ((self.barrier - before) * (self.barrier - x));
        let touched = exponent.lesser(T::of(0.0)).exp();
        [x, untouched * (T::of(1.0) - touched), T::of(0.0)]
    }

    #[inline(always)]
    fn finish(&self, [x, untouched, _]: [T; STATE]) -> [T; 2] {
        let [always, by_probability] = self.weights;
        let paid = self.common.paid(self.common.price(x));
        [paid * (always + by_probability * untouched), T::of(0.0)]
    }
}

/// The greatest or least price at any time counts, against a strike or against the price at expiry. The extreme within a step
/// is drawn: `½(x + x' ± √((x' − x)² − 2σ²Δt·ln u))`. State: x, the extreme.
#[derive(Clone, Copy)]
pub(crate) struct Lookback<T> {
    common: Common<T>,
    /// 1 for the greatest, −1 for the least.
    side: T,
    factor: T,
    is_floating: bool,
}

impl<T: Real> Lookback<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self {
            common: Common::new(terms),
            side: T::of(terms.side),
            factor: T::of(-2.0 * (terms.diffusion * terms.diffusion)),
            is_floating: terms.is_floating,
        }
    }
}

impl<T: Real> Payoff<T> for Lookback<T> {
    const HAS_EXTREMES: bool = true;

    #[inline(always)]
    fn step(&self, [before, extreme, _]: [T; STATE], z: T, u: T) -> [T; STATE] {
        let x = self.common.moved(before, z);
        let moved = x - before;
        let reach = (moved * moved + self.factor * u.ln()).sqrt();
        let of_step = T::of(0.5) * ((before + x) + self.side * reach);
        let further = (self.side * of_step).greater(self.side * extreme);
        [x, self.side * further, T::of(0.0)]
    }

    #[inline(always)]
    fn finish(&self, [x, extreme, _]: [T; STATE]) -> [T; 2] {
        let extreme = self.common.price(extreme);
        let floating = self.side * (extreme - self.common.price(x));
        [if self.is_floating { floating } else { self.common.paid(extreme) }, T::of(0.0)]
    }
}
