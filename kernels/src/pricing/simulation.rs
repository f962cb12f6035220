//! Monte Carlo: contracts on one asset that follows a geometric Brownian motion.
//!
//! Paths are computed in blocks of [`BLOCK_SAMPLES`], any range of blocks at a time. [`Simulation::estimate`] computes
//! a price from the sums of the blocks 0, 1, 2 … in order. So work may be divided anywhere, and continued until the
//! standard error is small enough.

use std::marker::PhantomData;
use std::ops::Range;

use super::draws::{LANES, Numbers};
use super::options::{AssetMarket, EXPIRY_YEARS_RANGE, OptionKind, PRICE_RANGE, ParameterError, check};
use super::parity;
use super::paths::Paths;
use super::payoffs::{Asian, Barrier, European, KnockIn, Lookback, Payoff};
use super::sampling::Sampling;
use super::sums::{BLOCK_SAMPLES, BlockSums, GROUPS, LaneSums, Mean, effective_samples};
use super::terms::Terms;
use crate::isa::{HotLoop, Isa};
use crate::math::{Number, Real, Term};
pub use warptape_terms::{BarrierKind, Precision};

/// Greatest number of steps of a path.
pub const STEPS_MAX: u32 = 65_536;
/// Greatest number of fixings of an Asian option in mixed precision: sums of more prices would lose too many digits in
/// an `f32`.
pub const MIXED_FIXINGS_MAX: u32 = 1_024;

/// The contract, defined by its payment at expiry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contract {
    /// An option on the price at expiry.
    European {
        /// Call or put.
        kind: OptionKind,
        /// Strike.
        strike: f64,
    },
    /// An option on the arithmetic mean of the prices at the ends of all steps.
    Asian {
        /// Call or put.
        kind: OptionKind,
        /// Strike.
        strike: f64,
    },
    /// An option on the price at expiry that depends on a barrier, watched all the time. It pays only if the barrier is
    /// touched, or only if it is not.
    Barrier {
        /// Call or put.
        kind: OptionKind,
        /// Strike.
        strike: f64,
        /// Direction, in or out.
        barrier_kind: BarrierKind,
        /// Barrier.
        barrier: f64,
    },
    /// An option on the greatest (fixed call, floating put) or least price (fixed put, floating call), watched all the
    /// time.
    Lookback {
        /// Call or put.
        kind: OptionKind,
        /// Strike; `None` for a floating strike, which is the price at expiry.
        strike: Option<f64>,
    },
}

/// Specification of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationSpec {
    /// The asset.
    pub market: AssetMarket,
    /// The contract.
    pub contract: Contract,
    /// Years until expiry.
    pub expiry_years: f64,
    /// Steps of equal length, 1 to [`STEPS_MAX`]: the fixings of an Asian option. Other contracts need only one, even
    /// if they are watched all the time.
    pub steps: u32,
    /// True if a sample is a pair of paths that mirror each other.
    pub antithetic: bool,
    /// Source of the numbers of paths.
    pub sampling: Sampling,
    /// Precision in which paths are computed.
    pub precision: Precision,
    /// Key of the random numbers: equal keys give equal paths.
    pub key: u64,
}

/// A simulation whose numbers are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    spec: SimulationSpec,
    terms: Terms,
    /// The excess of the contract's value over that of the simulated one; `None` if the contract itself is simulated.
    more: Option<Term>,
}

/// A price, with the number of samples behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Discounted mean of the payoff, with its variance reduced by the control variate if there is one.
    pub price: f64,
    /// Standard error of the price.
    pub standard_error: f64,
    /// Number of samples: paths, or pairs of paths.
    pub samples: u64,
    /// Number of equal payoffs that would have the same sum and the same sum of squares; 0 if no sample paid. If it is
    /// small, the variance and thus the standard error are unreliable.
    pub effective: f64,
}

impl Simulation {
    /// Checks all numbers.
    pub fn new(spec: SimulationSpec) -> Result<Self, ParameterError> {
        spec.market.check()?;
        check("expiry_years", spec.expiry_years, EXPIRY_YEARS_RANGE)?;
        let sums_prices = matches!(spec.contract, Contract::Asian { .. });
        let steps_max = match spec.precision {
            Precision::Mixed if sums_prices => MIXED_FIXINGS_MAX,
            Precision::Mixed | Precision::F64 => STEPS_MAX,
        };
        check("steps", f64::from(spec.steps), 1.0..=f64::from(steps_max))?;
        spec.sampling.check(spec.steps, spec.numbers_of_step())?;
        let strike = match spec.contract {
            Contract::European { strike, .. } | Contract::Asian { strike, .. } => strike,
            Contract::Barrier { strike, barrier, .. } => {
                check("barrier", barrier, PRICE_RANGE)?;
                strike
            }
            Contract::Lookback { strike, .. } => strike.unwrap_or(spec.market.spot),
        };
        check("strike", strike, PRICE_RANGE)?;
        let (spec, more) = match parity::of_call(&spec) {
            Some((put, more)) => (put, Some(more)),
            None => (spec, None),
        };
        Ok(Self { spec, terms: Terms::new(&spec), more })
    }

    /// The specification of the simulated contract.
    pub fn spec(&self) -> &SimulationSpec {
        &self.spec
    }

    /// The excess of the contract's value over that of the simulated one; `None` if the contract itself is simulated.
    pub(crate) fn more(&self) -> Option<Term> {
        self.more
    }

    /// The greatest discounted payoff of a sample if a put is simulated in place of a call: the present value of the
    /// strike. `None` otherwise.
    pub fn most_of_put(&self) -> Option<f64> {
        self.more.map(|_| self.terms.strike * self.terms.discount.value)
    }

    /// True if the probability of a touch is kept; otherwise that of no touch is.
    pub(crate) fn knocks_in(&self) -> bool {
        let begins = |kind: BarrierKind| matches!(kind, BarrierKind::UpIn | BarrierKind::DownIn);
        matches!(self.spec.contract, Contract::Barrier { barrier_kind, .. } if begins(barrier_kind))
    }

    /// True if every path certainly pays nothing, because the barrier that ends the option is already touched.
    pub fn pays_never(&self) -> bool {
        let ends = |kind: BarrierKind| matches!(kind, BarrierKind::UpOut | BarrierKind::DownOut);
        self.terms.untouched == 0.0
            && matches!(self.spec.contract, Contract::Barrier { barrier_kind, .. } if ends(barrier_kind))
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Adds the sums of some blocks, in order.
    pub fn run(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<BlockSums>) {
        match self.spec.precision {
            Precision::F64 => self.run_in::<f64>(isa, blocks, out),
            Precision::Mixed => self.run_in::<f32>(isa, blocks, out),
        }
    }

    fn run_in<T: Number<Part = T> + Real>(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<BlockSums>) {
        match self.spec.contract {
            Contract::European { .. } => self.run_with(European::<T>::new(&self.terms), isa, blocks, out),
            Contract::Asian { .. } => self.run_with(Asian::<T>::new(&self.terms), isa, blocks, out),
            Contract::Barrier { .. } if self.knocks_in() => {
                self.run_with(KnockIn::<T>::new(&self.terms), isa, blocks, out)
            }
            Contract::Barrier { .. } => self.run_with(Barrier::<T>::new(&self.terms), isa, blocks, out),
            Contract::Lookback { .. } => self.run_with(Lookback::<T>::new(&self.terms), isa, blocks, out),
        }
    }

    fn run_with<T: Number<Part = T> + Real, P: Payoff<T>>(
        &self,
        payoff: P,
        isa: Isa,
        blocks: Range<u64>,
        out: &mut Vec<BlockSums>,
    ) {
        isa.run(SimulationLoop { payoff, spec: &self.spec, blocks, out, number: PhantomData });
    }

    /// The price from the sums of the first blocks, beginning with block 0.
    pub fn estimate(&self, blocks: &[BlockSums]) -> Estimate {
        let control = self.has_control().then_some(self.terms.control.value);
        let (Mean { value, standard_error }, samples) = Mean::of_blocks(self.spec.sampling, blocks, control);
        let discount = self.terms.discount.value;
        let more = self.more.map_or(0.0, |more| more.value);
        Estimate {
            price: discount * value + more,
            standard_error: discount * standard_error,
            samples,
            effective: effective_samples(blocks, samples),
        }
    }

    pub(crate) fn has_control(&self) -> bool {
        matches!(self.spec.contract, Contract::Asian { .. })
    }

    /// Number of blocks with at least `samples` random samples; for Sobol's points, see [`Sampling::blocks_of`].
    pub fn blocks_of(samples: u64) -> u64 {
        samples.div_ceil(BLOCK_SAMPLES)
    }
}

impl SimulationSpec {
    /// Number of random numbers of a path in a step.
    pub(crate) fn numbers_of_step(&self) -> u32 {
        if matches!(self.contract, Contract::Lookback { .. }) { 2 } else { 1 }
    }
}

/// The hot loop over some blocks of a payoff.
struct SimulationLoop<'a, T, P> {
    payoff: P,
    spec: &'a SimulationSpec,
    blocks: Range<u64>,
    out: &'a mut Vec<BlockSums>,
    number: PhantomData<T>,
}

impl<T: Number<Part = T> + Real, P: Payoff<T>> HotLoop for SimulationLoop<'_, T, P> {
    #[inline(always)]
    fn run(self) {
        let mut numbers = Numbers::new(self.spec, P::HAS_EXTREMES);
        let mut paths = Paths::new(self.payoff, self.spec.antithetic);
        let mut samples = [[0.0; LANES]; 2];
        let mut sums = LaneSums::ZERO;
        for block in self.blocks {
            for group in block * GROUPS as u64..(block + 1) * GROUPS as u64 {
                paths.start();
                for step in numbers.steps() {
                    let (z, u) = numbers.of_step(group, step);
                    paths.step(z, u);
                }
                paths.samples(
                    &mut samples,
                    #[inline(always)]
                    |payoff, state| payoff.finish(state).map(Real::double),
                );
                let [payoffs, controls] = &samples;
                sums.add_payoffs(payoffs);
                if P::HAS_CONTROL {
                    sums.add_controls(payoffs, controls);
                }
            }
            self.out.push(sums.take());
        }
    }
}
