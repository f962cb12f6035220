//! Payoffs of paths at expiry, by kind of contract. Only a few numbers of a path are kept, and updated step by step.
//!
//! A path is `x = ln(S/S₀)`, moved by `drift + diffusion·z` with normal z. Prices and strikes are kept as differences
//! from `S₀`, so that a small payoff keeps its digits in `f32`. The code is generic over any [`Number`], with
//! derivatives and without; `payoffs.cuh` is its twin.

use super::terms::Terms;
use crate::math::{Number, Real, Term};

/// Greatest number of values that are kept of a path.
pub(crate) const STATE: usize = 3;

/// A contract on a path.
pub(crate) trait Payoff<T: Number>: Copy {
    /// Number of values of a path that this contract keeps; the others stay 0.
    const KEPT: usize;
    /// True if [`Payoff::finish`] returns a control; otherwise the control is 0.
    const HAS_CONTROL: bool = false;
    /// True if [`Payoff::step`] uses a number from `(0, 1)` for the extreme within the step.
    const HAS_EXTREMES: bool = false;
    /// True if [`Payoff::gamma`] returns a gamma.
    const HAS_GAMMA: bool = false;

    /// The path before its first step.
    fn start(&self) -> [T; STATE] {
        [T::of(0.0); STATE]
    }
    fn step(&self, state: [T; STATE], z: T::Part, u: T::Part) -> [T; STATE];
    /// Payoff and control.
    fn finish(&self, state: [T; STATE]) -> [T; 2];
    /// A number whose expectation is the second derivative of the expected payoff by the spot, if [`Payoff::HAS_GAMMA`]
    /// is true.
    fn gamma(&self, _: [T; STATE]) -> T::Part {
        T::Part::of(0.0)
    }
}

/// Constants of the steps and of the payoff at the end.
#[derive(Clone, Copy)]
struct Common<T: Number> {
    spot: T,
    /// Strike minus spot.
    beyond: T,
    sign: T::Part,
    drift: T,
    diffusion: T,
}

impl<T: Number> Common<T> {
    fn new(terms: &Terms) -> Self {
        Self {
            spot: T::of_term(&terms.spot),
            beyond: T::of_term(&(Term::of(terms.strike) - terms.spot)),
            sign: T::Part::of(terms.sign),
            drift: T::of_term(&terms.drift),
            diffusion: T::of_term(&terms.diffusion),
        }
    }

    #[inline(always)]
    fn moved(&self, x: T, z: T::Part) -> T {
        x + (self.drift + self.diffusion.scaled(z))
    }

    /// Price minus spot.
    #[inline(always)]
    fn gained(&self, x: T) -> T {
        self.spot * x.exp_less_1()
    }

    #[inline(always)]
    fn paid(&self, gained: T) -> T {
        (gained - self.beyond).scaled(self.sign).greater(T::of(0.0))
    }
}

/// An option on the price at expiry. Gamma multiplies the derivative of the path's payoff by the spot by that of the
/// density's logarithm: `±K·z/(S₀²·σ√T)` in the money. See Glasserman, *Monte Carlo Methods in Financial Engineering*,
/// 2004, example 7.3.5.
#[derive(Clone, Copy)]
pub(crate) struct European<T: Number> {
    common: Common<T>,
    /// Expectation of x at expiry.
    mean: T::Part,
    gamma_slope: T::Part,
}

impl<T: Number> European<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self {
            common: Common::new(terms),
            mean: T::Part::of(terms.mean()),
            gamma_slope: T::Part::of(terms.gamma_slope()),
        }
    }
}

impl<T: Number> Payoff<T> for European<T> {
    const KEPT: usize = 1;
    const HAS_GAMMA: bool = true;

    #[inline(always)]
    fn step(&self, [x, ..]: [T; STATE], z: T::Part, _: T::Part) -> [T; STATE] {
        [self.common.moved(x, z), T::of(0.0), T::of(0.0)]
    }

    #[inline(always)]
    fn finish(&self, [x, ..]: [T; STATE]) -> [T; 2] {
        [self.common.paid(self.common.gained(x)), T::of(0.0)]
    }

    #[inline(always)]
    fn gamma(&self, [x, ..]: [T; STATE]) -> T::Part {
        let paid = self.common.paid(self.common.gained(x)).value();
        let weighted = self.gamma_slope * (x.value() - self.mean);
        if paid > T::Part::of(0.0) { weighted } else { T::Part::of(0.0) }
    }
}

/// An option on the arithmetic mean of the prices after each step; its control is the same contract on their geometric
/// mean. State: x, the sum of `e^x − 1`, the sum of x.
#[derive(Clone, Copy)]
pub(crate) struct Asian<T: Number> {
    common: Common<T>,
    inverse_steps: T::Part,
}

impl<T: Number> Asian<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self { common: Common::new(terms), inverse_steps: T::Part::of(1.0 / terms.steps) }
    }
}

impl<T: Number> Payoff<T> for Asian<T> {
    const KEPT: usize = 3;
    const HAS_CONTROL: bool = true;

    #[inline(always)]
    fn step(&self, [x, gains, logarithms]: [T; STATE], z: T::Part, _: T::Part) -> [T; STATE] {
        let x = self.common.moved(x, z);
        [x, gains + x.exp_less_1(), logarithms + x]
    }

    #[inline(always)]
    fn finish(&self, [_, gains, logarithms]: [T; STATE]) -> [T; 2] {
        let arithmetic = self.common.spot * gains.scaled(self.inverse_steps);
        let geometric = self.common.gained(logarithms.scaled(self.inverse_steps));
        [self.common.paid(arithmetic), self.common.paid(geometric)]
    }
}

/// An option that pays if the barrier was touched at any time, or one that pays if it never was. The payoff is weighted
/// with the probability of that, given the prices at the steps. For a Brownian bridge from x to x' below b, the
/// probability not to touch b is `1 − exp(−2(b − x)(b − x')/(σ²Δt))` (Beaglehole, Dybvig and Zhou 1997). State: x, the
/// probability.
#[derive(Clone, Copy)]
pub(crate) struct Barrier<T: Number> {
    common: Common<T>,
    barrier: T,
    factor: T,
    /// Probability of no touch before the first step.
    untouched: T,
    /// Weight: `a + b · probability`.
    weights: [T::Part; 2],
}

impl<T: Number> Barrier<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self {
            common: Common::new(terms),
            barrier: T::of_term(&terms.barrier),
            factor: T::of_term(&terms.factor()),
            untouched: T::of(terms.untouched),
            weights: terms.weights.map(T::Part::of),
        }
    }
}

impl<T: Number> Payoff<T> for Barrier<T> {
    const KEPT: usize = 2;

    fn start(&self) -> [T; STATE] {
        [T::of(0.0), self.untouched, T::of(0.0)]
    }

    #[inline(always)]
    fn step(&self, [before, untouched, _]: [T; STATE], z: T::Part, _: T::Part) -> [T; STATE] {
        let x = self.common.moved(before, z);
        let exponent = self.factor * ((self.barrier - before) * (self.barrier - x));
        let still_untouched = -exponent.lesser(T::of(0.0)).exp_less_1();
        [x, untouched * still_untouched, T::of(0.0)]
    }

    #[inline(always)]
    fn finish(&self, [x, untouched, _]: [T; STATE]) -> [T; 2] {
        let [always, by_probability] = self.weights;
        let paid = self.common.paid(self.common.gained(x));
        [paid * (T::constant(always) + untouched.scaled(by_probability)), T::of(0.0)]
    }
}

/// An option that pays if the barrier was touched. It keeps the probability of a touch, given the prices, as
/// `t + (1 − t)·e` after a step. If that is small, 1 minus the probability of no touch would have few digits, or none.
#[derive(Clone, Copy)]
pub(crate) struct KnockIn<T: Number> {
    common: Common<T>,
    barrier: T,
    factor: T,
    /// Probability of a touch before the first step.
    touched: T,
}

impl<T: Number> KnockIn<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self {
            common: Common::new(terms),
            barrier: T::of_term(&terms.barrier),
            factor: T::of_term(&terms.factor()),
            touched: T::of(1.0 - terms.untouched),
        }
    }
}

impl<T: Number> Payoff<T> for KnockIn<T> {
    const KEPT: usize = 2;

    fn start(&self) -> [T; STATE] {
        [T::of(0.0), self.touched, T::of(0.0)]
    }

    #[inline(always)]
    fn step(&self, [before, touched, _]: [T; STATE], z: T::Part, _: T::Part) -> [T; STATE] {
        let x = self.common.moved(before, z);
        let exponent = self.factor * ((self.barrier - before) * (self.barrier - x));
        let of_step = exponent.lesser(T::of(0.0)).exp();
        [x, touched + (T::of(1.0) - touched) * of_step, T::of(0.0)]
    }

    #[inline(always)]
    fn finish(&self, [x, touched, _]: [T; STATE]) -> [T; 2] {
        [self.common.paid(self.common.gained(x)) * touched, T::of(0.0)]
    }
}

/// An option on the greatest or least price at any time, against a strike or against the price at expiry. The extreme
/// within a step is drawn: `½(x + x' ± √((x' − x)² − 2σ²Δt·ln u))`. State: x, the extreme.
#[derive(Clone, Copy)]
pub(crate) struct Lookback<T: Number> {
    common: Common<T>,
    /// 1 for the greatest, −1 for the least.
    side: T::Part,
    factor: T,
    is_floating: bool,
}

impl<T: Number> Lookback<T> {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self {
            common: Common::new(terms),
            side: T::Part::of(terms.side),
            factor: T::of_term(&terms.factor()),
            is_floating: terms.is_floating,
        }
    }
}

impl<T: Number> Payoff<T> for Lookback<T> {
    const KEPT: usize = 2;
    const HAS_EXTREMES: bool = true;

    #[inline(always)]
    fn step(&self, [before, extreme, _]: [T; STATE], z: T::Part, u: T::Part) -> [T; STATE] {
        let x = self.common.moved(before, z);
        let moved = x - before;
        let reach = (moved * moved + self.factor.scaled(u.ln())).sqrt();
        let of_step = ((before + x) + reach.scaled(self.side)).scaled(T::Part::of(0.5));
        let further = of_step.scaled(self.side).greater(extreme.scaled(self.side));
        [x, further.scaled(self.side), T::of(0.0)]
    }

    #[inline(always)]
    fn finish(&self, [x, extreme, _]: [T; STATE]) -> [T; 2] {
        let extreme = self.common.gained(extreme);
        let floating = (extreme - self.common.gained(x)).scaled(self.side);
        [if self.is_floating { floating } else { self.common.paid(extreme) }, T::of(0.0)]
    }
}
