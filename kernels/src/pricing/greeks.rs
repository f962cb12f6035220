//! Greeks by simulation, from the paths of the price itself.
//!
//! Delta, vega, theta and rho are derivatives path by path (Glasserman, *Monte Carlo Methods in Financial Engineering*,
//! 2004, chapter 7.2). All payoffs are continuous in their parameters, also that of a barrier, because it is weighted
//! with a probability. Gamma of a European option is a derivative by likelihood ratio (7.3.5 there). Gamma of all
//! others is the difference of two deltas from the same random numbers. The relative distance of their spots is the
//! least of three: [`GREEK_BUMP_MAX`], a twentieth of the deviation of `ln S`, half the distance to a barrier. The
//! error is proportional to the square of the distance.
//!
//! Each of the six figures is summed like a price, with its own control and its own standard error.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::draws::{LANES, Numbers};
use super::options::{AssetMarket, ParameterError};
use super::paths::Paths;
use super::payoffs::{Asian, Barrier, European, KnockIn, Lookback, Payoff};
use super::sampling::Sampling;
use super::simulation::{Contract, Precision, Simulation, SimulationSpec};
use super::sums::{BlockSums, GROUPS, LaneSums, Mean, effective_samples};
use super::terms::Terms;
use crate::isa::{HotLoop, Isa};
use crate::math::{Dual, PARAMETERS, RATE, Real, SPOT, Term, VOLATILITY, YEARS};

/// The greatest share by which a spot is moved for gamma.
pub const GREEK_BUMP_MAX: f64 = 0.01;
/// The least share, which ensures that the two deltas differ.
pub(super) const GREEK_BUMP_MIN: f64 = 1e-6;
/// The share by which a spot is moved for gamma, relative to the deviation of `ln S` at expiry.
pub(super) const BUMP_OF_DEVIATION: f64 = 0.05;

/// Number of figures: price, delta, gamma, vega, theta, rho.
pub(crate) const GREEKS: usize = 6;

/// Sums of the samples of a block: the sums of a price, for each of price, delta, gamma, vega, theta and rho,
/// discounted.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct GreekSums(pub [BlockSums; GREEKS]);

/// A simulation of Greeks.
#[derive(Clone, Debug, PartialEq)]
pub struct GreekSimulation {
    simulation: Simulation,
    bumped: Bumped,
}

/// The same contract with a greater and a lesser spot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bumped {
    pub terms: [Terms; 2],
    /// 1 / difference of the spots.
    pub inverse_width: f64,
}

/// A number and its standard error, which is infinite if the number is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The number.
    pub value: f64,
    /// Standard error of the number.
    pub standard_error: f64,
}

/// Price and Greeks, with the number of samples behind them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GreekEstimate {
    /// Discounted mean of the payoff.
    pub price: Measured,
    /// Derivative of the price by spot.
    pub delta: Measured,
    /// Second derivative by spot. A lookback option whose strike is the spot has none there; then this is the mean of
    /// both sides.
    pub gamma: Measured,
    /// Derivative by volatility, per 1.0.
    pub vega: Measured,
    /// Derivative by passing time, per year. Steps stay equal, so all fixings of an Asian option come nearer in
    /// proportion.
    pub theta: Measured,
    /// Derivative by the rate, per 1.0.
    pub rho: Measured,
    /// Number of samples: paths, or pairs of paths.
    pub samples: u64,
    /// The effective number of samples, as in [`Estimate`](super::Estimate).
    pub effective: f64,
}

impl Bumped {
    pub fn new(spec: &SimulationSpec, terms: &Terms) -> Self {
        let mut bump = GREEK_BUMP_MAX.min(BUMP_OF_DEVIATION * terms.deviation());
        if terms.untouched > 0.0 {
            bump = bump.min(0.5 * terms.barrier.value.abs());
        }
        let bump = bump.max(GREEK_BUMP_MIN);
        let spots = [1.0 + bump, 1.0 - bump].map(|factor| spec.market.spot * factor);
        let of_spot = |spot| {
            let spec = SimulationSpec { market: AssetMarket { spot, ..spec.market }, ..*spec };
            // The given spot, not the bumped one, determines whether the barrier is touched now.
            Terms { untouched: terms.untouched, ..Terms::new(&spec) }
        };
        Self { terms: spots.map(of_spot), inverse_width: 1.0 / (spots[0] - spots[1]) }
    }

    /// Derivative of a number of the terms by the spot, as a difference quotient. For delta, this is gamma.
    pub fn by_spot(&self, of: impl Fn(&Terms) -> f64) -> f64 {
        (of(&self.terms[0]) - of(&self.terms[1])) * self.inverse_width
    }
}

impl GreekSimulation {
    /// Checks all numbers.
    pub fn new(spec: SimulationSpec) -> Result<Self, ParameterError> {
        let simulation = Simulation::new(spec)?;
        let bumped = Bumped::new(simulation.spec(), simulation.terms());
        Ok(Self { simulation, bumped })
    }

    /// The simulation of only the price, with the same paths.
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    pub(crate) fn bumped(&self) -> &Bumped {
        &self.bumped
    }

    /// Adds the sums of some blocks, in order.
    pub fn run(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<GreekSums>) {
        match self.simulation.spec().precision {
            Precision::F64 => self.run_in::<f64>(isa, blocks, out),
            Precision::Mixed => self.run_in::<f32>(isa, blocks, out),
        }
    }

    fn run_in<T: Real>(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<GreekSums>) {
        macro_rules! run {
            ($payoff:ident) => {{
                let payoff = $payoff::<Dual<T, PARAMETERS>>::new(self.simulation.terms());
                let bumped = [0, 1].map(|side: usize| $payoff::<Dual<T, 1>>::new(&self.bumped.terms[side]));
                isa.run(GreeksLoop { of: self, payoff, bumped, blocks, out, number: PhantomData });
            }};
        }
        match self.simulation.spec().contract {
            Contract::European { .. } => run!(European),
            Contract::Asian { .. } => run!(Asian),
            Contract::Barrier { .. } if self.simulation.knocks_in() => run!(KnockIn),
            Contract::Barrier { .. } => run!(Barrier),
            Contract::Lookback { .. } => run!(Lookback),
        }
    }

    /// Price and Greeks from the sums of the first blocks, beginning with block 0.
    pub fn estimate(&self, blocks: &[GreekSums]) -> GreekEstimate {
        let expected = self.simulation.has_control().then(|| self.controls());
        let mut found = estimate_of(self.simulation.spec().sampling, blocks, expected, 1.0);
        if let Some(more) = self.simulation.more() {
            let GreekEstimate { price, delta, gamma, vega, theta, rho, .. } = &mut found;
            let measured = [price, delta, gamma, vega, theta, rho];
            measured
                .into_iter()
                .zip(greeks_of(more, 0.0))
                .for_each(|(measured, more)| measured.value += more);
        }
        found
    }

    /// Expectations of the controls.
    fn controls(&self) -> [f64; GREEKS] {
        let Terms { control, discount, .. } = *self.simulation.terms();
        let gamma = self.bumped.by_spot(|terms| terms.control.by[SPOT]);
        greeks_of(control * discount, discount.value * gamma)
    }
}

/// Price and Greeks from the sums of the first blocks and the expectations of their controls, in units of an amount.
pub(super) fn estimate_of(
    sampling: Sampling,
    blocks: &[GreekSums],
    expected: Option<[f64; GREEKS]>,
    unit: f64,
) -> GreekEstimate {
    let mut samples = 0;
    let measured: [Measured; GREEKS] = std::array::from_fn(|greek| {
        let blocks: Vec<BlockSums> = blocks.iter().map(|block| block.0[greek]).collect();
        let expected = expected.map(|expected| expected[greek]);
        let (Mean { value, standard_error }, counted) = Mean::of_blocks(sampling, &blocks, expected);
        samples = counted;
        Measured { value: unit * value, standard_error: unit * standard_error }
    });
    let [price, delta, gamma, vega, theta, rho] = measured;
    let prices: Vec<BlockSums> = blocks.iter().map(|block| block.0[0]).collect();
    let effective = effective_samples(&prices, samples);
    GreekEstimate { price, delta, gamma, vega, theta, rho, samples, effective }
}

/// Price and Greeks in the order of columns; theta is the derivative by passing time.
#[inline(always)]
pub(super) fn greeks_of(price: Term, gamma: f64) -> [f64; GREEKS] {
    [price.value, price.by[SPOT], gamma, price.by[VOLATILITY], -price.by[YEARS], price.by[RATE]]
}

/// The hot loop over some blocks of a payoff.
struct GreeksLoop<'a, T, P, B> {
    of: &'a GreekSimulation,
    payoff: P,
    bumped: [B; 2],
    blocks: Range<u64>,
    out: &'a mut Vec<GreekSums>,
    number: PhantomData<T>,
}

impl<T, P, B> HotLoop for GreeksLoop<'_, T, P, B>
where
    T: Real,
    P: Payoff<Dual<T, PARAMETERS>>,
    B: Payoff<Dual<T, 1>>,
{
    #[inline(always)]
    fn run(self) {
        let spec = self.of.simulation.spec();
        let discount = self.of.simulation.terms().discount;
        let mut numbers = Numbers::<T>::new(spec, P::HAS_EXTREMES);
        let mut paths = Paths::new(self.payoff, spec.antithetic);
        let [mut up, mut down] = self.bumped.map(|payoff| Paths::new(payoff, spec.antithetic));
        let (mut greeks, mut controls) = ([[0.0; LANES]; GREEKS], [[0.0; LANES]; GREEKS]);
        let (mut of_up, mut of_down) = ([[0.0; LANES]; 2], [[0.0; LANES]; 2]);
        let mut sums = [const { LaneSums::ZERO }; GREEKS];
        for block in self.blocks {
            for group in block * GROUPS as u64..(block + 1) * GROUPS as u64 {
                paths.start();
                up.start();
                down.start();
                for step in numbers.steps() {
                    let (z, u) = numbers.of_step(group, step);
                    paths.step(z, u);
                    if !P::HAS_GAMMA {
                        up.step(z, u);
                        down.step(z, u);
                    }
                }
                paths.samples(
                    &mut greeks,
                    #[inline(always)]
                    |payoff, state| {
                        let [paid, _] = payoff.finish(state);
                        greeks_of(paid.double() * discount, discount.value * payoff.gamma(state).double())
                    },
                );
                if P::HAS_CONTROL {
                    paths.samples(
                        &mut controls,
                        #[inline(always)]
                        |payoff, state| {
                            let [_, control] = payoff.finish(state);
                            greeks_of(control.double() * discount, 0.0)
                        },
                    );
                }
                if !P::HAS_GAMMA {
                    for (bumped, deltas) in [(&up, &mut of_up), (&down, &mut of_down)] {
                        bumped.samples(
                            deltas,
                            #[inline(always)]
                            |payoff, state| {
                                payoff.finish(state).map(|paid| discount.value * paid.by[SPOT].double())
                            },
                        );
                    }
                    for lane in 0..LANES {
                        let width = self.of.bumped.inverse_width;
                        greeks[GAMMA][lane] = (of_up[0][lane] - of_down[0][lane]) * width;
                        controls[GAMMA][lane] = (of_up[1][lane] - of_down[1][lane]) * width;
                    }
                }
                for greek in 0..GREEKS {
                    sums[greek].add_payoffs(&greeks[greek]);
                    if P::HAS_CONTROL {
                        sums[greek].add_controls(&greeks[greek], &controls[greek]);
                    }
                }
            }
            self.out.push(GreekSums(std::array::from_fn(|greek| sums[greek].take())));
        }
    }
}

/// Column of gamma in the sums of a block.
const GAMMA: usize = 2;
