//! Monte Carlo: contracts on one asset that follows a geometric Brownian motion.
//!
//! Paths are computed in blocks of [`BLOCK_SAMPLES`], any range of them at a time; [`Simulation::estimate`] makes a price of the
//! sums of the blocks 0, 1, 2 … in order. So work may be cut anywhere, and grow until the standard error is small enough.

use std::marker::PhantomData;
use std::ops::Range;

use super::draws::{Draws, LANES, Lanes, Stream};
use super::options::{AssetMarket, EXPIRY_YEARS_RANGE, OptionKind, PRICE_RANGE, ParameterError, check};
use super::payoffs::{Asian, Barrier, European, Lookback, Payoff, STATE};
use super::sums::{BLOCK_SAMPLES, BlockSums, GROUPS, LaneSums, sum_blocks};
use crate::isa::{Isa, Work};
use crate::math::{Keys, Real, exp, ln, normal_cdf};

/// Steps of a path at most.
pub const STEPS_MAX: u32 = 65_536;
/// Most fixings of an Asian option in mixed precision: sums of more prices lose what an `f32` cannot hold.
pub const MIXED_FIXINGS_MAX: u32 = 1_024;

/// What numbers of paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `f64` throughout.
    F64,
    /// Paths in `f32`, whose numbers are rounded to 24 bits, sums in `f64`: faster.
    Mixed,
}

/// Which touch of a barrier does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierKind {
    /// Paid if the price never rises to the barrier.
    UpOut,
    /// Paid if it does.
    UpIn,
    /// Paid if the price never falls to the barrier.
    DownOut,
    /// Paid if it does.
    DownIn,
}

/// What is paid at expiry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contract {
    /// On the price at expiry.
    European {
        /// Call or put.
        kind: OptionKind,
        /// Strike.
        strike: f64,
    },
    /// On the arithmetic mean of the prices at the ends of all steps.
    Asian {
        /// Call or put.
        kind: OptionKind,
        /// Strike.
        strike: f64,
    },
    /// On the price at expiry, if a barrier, watched all the time, is touched or not. Nothing is paid else.
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
    /// On the greatest (fixed call, floating put) or least price (fixed put, floating call), watched all the time.
    Lookback {
        /// Call or put.
        kind: OptionKind,
        /// Strike; without one, the price at expiry takes its place: a floating strike.
        strike: Option<f64>,
    },
}

/// What is to be simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationSpec {
    /// The asset.
    pub market: AssetMarket,
    /// The contract.
    pub contract: Contract,
    /// Years until expiry.
    pub expiry_years: f64,
    /// Steps of equal length, 1 to [`STEPS_MAX`]: the fixings of an Asian option. Other contracts need one only, whatever is
    /// watched all the time.
    pub steps: u32,
    /// Whether a sample is a pair of paths that mirror each other.
    pub antithetic: bool,
    /// What paths are computed in.
    pub precision: Precision,
    /// Key of the random numbers: equal keys give equal paths.
    pub key: u64,
}

/// A simulation whose numbers are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    spec: SimulationSpec,
    terms: Terms,
}

/// A price, of so many samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Discounted mean of the payoff, with the control's help where there is one.
    pub price: f64,
    /// Standard error of the price.
    pub standard_error: f64,
    /// Samples: paths, or pairs of paths.
    pub samples: u64,
}

/// Constants of a simulation, as all kinds of contract take them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Terms {
    pub spot: f64,
    pub strike: f64,
    /// 1 for a call, −1 for a put.
    pub sign: f64,
    /// Of ln S in a step.
    pub drift: f64,
    /// Standard deviation of ln S in a step.
    pub diffusion: f64,
    pub steps: f64,
    /// `ln(barrier / spot)`.
    pub barrier: f64,
    /// Whether the barrier is not touched before the first step, as 1 or 0.
    pub untouched: f64,
    /// What is paid always, and by the probability of no touch.
    pub weights: [f64; 2],
    /// 1 for the greatest price, −1 for the least.
    pub side: f64,
    pub is_floating: bool,
    pub discount: f64,
    /// What the control is expected to be.
    pub control: f64,
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
        let terms = match spec.contract {
            Contract::European { kind, strike } => spec.terms(kind, strike),
            Contract::Asian { kind, strike } => spec.asian_terms(kind, strike),
            Contract::Barrier { kind, strike, barrier_kind, barrier } => {
                check("barrier", barrier, PRICE_RANGE)?;
                spec.barrier_terms(kind, strike, barrier_kind, barrier)
            }
            Contract::Lookback { kind, strike } => spec.lookback_terms(kind, strike),
        };
        check("strike", terms.strike, PRICE_RANGE)?;
        Ok(Self { spec, terms })
    }

    /// What is simulated.
    pub fn spec(&self) -> &SimulationSpec {
        &self.spec
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

    fn run_in<T: Real>(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<BlockSums>) {
        match self.spec.contract {
            Contract::European { .. } => self.run_with(European::<T>::new(&self.terms), isa, blocks, out),
            Contract::Asian { .. } => self.run_with(Asian::<T>::new(&self.terms), isa, blocks, out),
            Contract::Barrier { .. } => self.run_with(Barrier::<T>::new(&self.terms), isa, blocks, out),
            Contract::Lookback { .. } => self.run_with(Lookback::<T>::new(&self.terms), isa, blocks, out),
        }
    }

    fn run_with<T: Real, P: Payoff<T>>(
        &self,
        payoff: P,
        isa: Isa,
        blocks: Range<u64>,
        out: &mut Vec<BlockSums>,
    ) {
        isa.run(Blocks { payoff, spec: &self.spec, blocks, out, number: PhantomData });
    }

    /// The price by the sums of the first blocks, all from block 0 on.
    pub fn estimate(&self, blocks: &[BlockSums]) -> Estimate {
        let samples = blocks.len() as u64 * BLOCK_SAMPLES;
        if samples == 0 {
            return Estimate { standard_error: f64::INFINITY, ..Estimate::default() };
        }
        let count = samples as f64;
        let BlockSums([payoff, payoff_squared, control, control_squared, product]) = sum_blocks(blocks);
        let mean = payoff / count;
        let mut variance = payoff_squared / count - mean * mean;
        let mut price = mean;
        if matches!(self.spec.contract, Contract::Asian { .. }) {
            let control_mean = control / count;
            let control_variance = control_squared / count - control_mean * control_mean;
            let covariance = product / count - mean * control_mean;
            if control_variance > 0.0 {
                let slope = covariance / control_variance;
                price -= slope * (control_mean - self.terms.control);
                variance -= slope * covariance;
            }
        }
        // Payoffs that were too large for their numbers tell nothing: such a price is as wrong as can be.
        let is_known = variance.is_finite() && price.is_finite();
        let standard_error =
            if is_known { (variance.max(0.0) / (count - 1.0)).sqrt() } else { f64::INFINITY };
        Estimate {
            price: self.terms.discount * price,
            standard_error: self.terms.discount * standard_error,
            samples,
        }
    }

    /// So many blocks have at least so many samples.
    pub fn blocks_of(samples: u64) -> u64 {
        samples.div_ceil(BLOCK_SAMPLES)
    }
}

impl SimulationSpec {
    fn terms(&self, kind: OptionKind, strike: f64) -> Terms {
        let AssetMarket { spot, rate, dividend_yield, volatility } = self.market;
        let steps = f64::from(self.steps);
        let step_years = self.expiry_years / steps;
        Terms {
            spot,
            strike,
            sign: kind.sign(),
            drift: (rate - dividend_yield - 0.5 * (volatility * volatility)) * step_years,
            diffusion: volatility * step_years.sqrt(),
            steps,
            discount: exp(-(rate * self.expiry_years)),
            ..Terms::default()
        }
    }

    /// The mean of ln S over the steps is normal: by Kemna and Vorst (1990), for the geometric mean of discrete prices.
    fn asian_terms(&self, kind: OptionKind, strike: f64) -> Terms {
        let terms = self.terms(kind, strike);
        let Terms { spot, sign, drift, diffusion, steps, .. } = terms;
        let mean = drift * (steps + 1.0) / 2.0;
        let deviation = diffusion * ((steps + 1.0) * (2.0 * steps + 1.0) / (6.0 * steps)).sqrt();
        let d2 = (ln(spot / strike) + mean) / deviation;
        let asset = spot * exp(mean + 0.5 * (deviation * deviation)) * normal_cdf(sign * (d2 + deviation));
        Terms { control: sign * (asset - strike * normal_cdf(sign * d2)), ..terms }
    }

    fn barrier_terms(&self, kind: OptionKind, strike: f64, barrier_kind: BarrierKind, barrier: f64) -> Terms {
        let (is_up, is_out) = match barrier_kind {
            BarrierKind::UpOut => (true, true),
            BarrierKind::UpIn => (true, false),
            BarrierKind::DownOut => (false, true),
            BarrierKind::DownIn => (false, false),
        };
        let spot = self.market.spot;
        let is_touched = if is_up { spot >= barrier } else { spot <= barrier };
        Terms {
            barrier: ln(barrier / spot),
            untouched: if is_touched { 0.0 } else { 1.0 },
            weights: if is_out { [0.0, 1.0] } else { [1.0, -1.0] },
            ..self.terms(kind, strike)
        }
    }

    fn lookback_terms(&self, kind: OptionKind, strike: Option<f64>) -> Terms {
        let is_floating = strike.is_none();
        let side = if is_floating { -kind.sign() } else { kind.sign() };
        Terms { side, is_floating, ..self.terms(kind, strike.unwrap_or(self.market.spot)) }
    }
}

/// Some blocks of a payoff.
struct Blocks<'a, T, P> {
    payoff: P,
    spec: &'a SimulationSpec,
    blocks: Range<u64>,
    out: &'a mut Vec<BlockSums>,
    number: PhantomData<T>,
}

impl<T: Real, P: Payoff<T>> Work for Blocks<'_, T, P> {
    #[inline(always)]
    fn run(self) {
        let keys = Keys::new(self.spec.key);
        let mut groups = Groups::new();
        let mut sums = LaneSums::ZERO;
        for block in self.blocks {
            for group in block * GROUPS as u64..(block + 1) * GROUPS as u64 {
                groups.run(&self.payoff, &keys, self.spec, group);
                sums.add_payoffs(&groups.payoffs);
                if P::HAS_CONTROL {
                    sums.add_controls(&groups.payoffs, &groups.controls);
                }
            }
            self.out.push(sums.take());
        }
    }
}

/// Paths side by side.
struct Paths<T>([Lanes<T>; STATE]);

impl<T: Real> Paths<T> {
    #[inline(always)]
    fn start<P: Payoff<T>>(&mut self, payoff: &P) {
        for (lanes, number) in self.0.iter_mut().zip(payoff.start()) {
            lanes.fill(number);
        }
    }

    #[inline(always)]
    fn of_lane(&self, lane: usize) -> [T; STATE] {
        [self.0[0][lane], self.0[1][lane], self.0[2][lane]]
    }

    #[inline(always)]
    fn step<P: Payoff<T>>(&mut self, payoff: &P, z: &Lanes<T>, u: &Lanes<T>) {
        for lane in 0..LANES {
            let state = payoff.step(self.of_lane(lane), z[lane], u[lane]);
            (self.0[0][lane], self.0[1][lane], self.0[2][lane]) = (state[0], state[1], state[2]);
        }
    }
}

/// Room for a group of paths, used for one after the other.
struct Groups<T> {
    draws: Draws<T>,
    z: Lanes<T>,
    u: Lanes<T>,
    paths: Paths<T>,
    mirrored: Paths<T>,
    payoffs: Lanes<f64>,
    controls: Lanes<f64>,
}

impl<T: Real> Groups<T> {
    #[inline(always)]
    fn new() -> Self {
        let zero = T::of(0.0);
        Self {
            draws: Draws::new(),
            z: [zero; LANES],
            u: [zero; LANES],
            paths: Paths([[zero; LANES]; STATE]),
            mirrored: Paths([[zero; LANES]; STATE]),
            payoffs: [0.0; LANES],
            controls: [0.0; LANES],
        }
    }

    /// Payoffs and controls of the paths of a group.
    #[inline(always)]
    fn run<P: Payoff<T>>(&mut self, payoff: &P, keys: &Keys, spec: &SimulationSpec, group: u64) {
        self.paths.start(payoff);
        if spec.antithetic {
            self.mirrored.start(payoff);
        }
        for step in 0..u64::from(spec.steps) {
            self.draws.normals(keys, group, step, Stream::Steps, &mut self.z);
            if P::HAS_EXTREMES {
                self.draws.uniforms(keys, group, step, Stream::Extremes, &mut self.u);
            }
            self.paths.step(payoff, &self.z, &self.u);
            if spec.antithetic {
                for number in &mut self.z {
                    *number = -*number;
                }
                self.mirrored.step(payoff, &self.z, &self.u);
            }
        }
        for lane in 0..LANES {
            let [paid, control] = payoff.finish(self.paths.of_lane(lane));
            (self.payoffs[lane], self.controls[lane]) = (paid.double(), control.double());
        }
        if spec.antithetic {
            for lane in 0..LANES {
                let [paid, control] = payoff.finish(self.mirrored.of_lane(lane));
                self.payoffs[lane] = 0.5 * (self.payoffs[lane] + paid.double());
                self.controls[lane] = 0.5 * (self.controls[lane] + control.double());
            }
        }
    }
}
