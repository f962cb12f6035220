//! Monte Carlo: European options on a weighted sum of correlated assets.
//!
//! Asset i ends at `Sᵢ·exp((r − qᵢ − σᵢ²/2)·T + σᵢ√T·Σⱼ Lᵢⱼ·zⱼ)`, where `L·Lᵀ` are the correlations. Blocks of samples
//! are like those of [`Simulation`](super::Simulation). Each asset has its own stream of numbers.

use std::marker::PhantomData;
use std::ops::Range;

use thiserror::Error;

use super::correlations::{self, CorrelationError};
use super::draws::{Draws, LANES, Lanes, Stream};
use super::options::{
    AssetMarket, EXPIRY_YEARS_RANGE, OptionKind, PRICE_RANGE, ParameterError, RATE_RANGE, check,
};
use super::parity;
use super::sampling::{NumberSource, Sampling};
use super::simulation::{Estimate, Precision};
use super::sums::{BlockSums, GROUPS, LaneSums, Mean, effective_samples};
use crate::isa::{HotLoop, Isa};
use crate::math::{Real, exp};

/// Greatest number of assets in a basket.
pub const BASKET_ASSETS_MAX: usize = 64;
/// Range of the units of an asset in a basket; negative units are short.
pub const WEIGHT_RANGE: std::ops::RangeInclusive<f64> = -1e6..=1e6;

/// An asset of a basket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BasketAsset {
    /// Price of the asset now.
    pub spot: f64,
    /// Dividend yield, per year, continuously compounded.
    pub dividend_yield: f64,
    /// Volatility, per square root of a year.
    pub volatility: f64,
    /// Units of the asset in the basket.
    pub weight: f64,
}

/// Specification of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct BasketSpec {
    /// The assets: 1 to [`BASKET_ASSETS_MAX`].
    pub assets: Vec<BasketAsset>,
    /// Correlations of the assets' returns, row by row: a symmetric, positive semi-definite matrix with ones on its
    /// diagonal.
    pub correlations: Vec<f64>,
    /// Interest rate, per year, continuously compounded.
    pub rate: f64,
    /// Call or put.
    pub kind: OptionKind,
    /// Strike on the weighted sum.
    pub strike: f64,
    /// Years until expiry.
    pub expiry_years: f64,
    /// True if a sample is a pair of paths that mirror each other.
    pub antithetic: bool,
    /// Source of the numbers of paths.
    pub sampling: Sampling,
    /// Precision in which paths are computed.
    pub precision: Precision,
    /// Key of the random numbers.
    pub key: u64,
}

/// The reason for refusing a basket.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BasketError {
    /// A number of the option is out of range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A number of an asset is out of range.
    #[error("asset {asset}: {error}")]
    Asset {
        /// Number of the asset, from 0 on.
        asset: usize,
        /// The error.
        error: ParameterError,
    },
    /// There are too few or too many assets.
    #[error("assets has {count}: give 1 to {BASKET_ASSETS_MAX}")]
    Assets {
        /// Given number of assets.
        count: usize,
    },
    /// The correlations are refused.
    #[error(transparent)]
    Correlations(#[from] CorrelationError),
}

/// A simulation of a basket whose numbers are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct BasketSimulation {
    spec: BasketSpec,
    terms: BasketTerms,
    /// True if a put is simulated in place of the call (`parity.rs`).
    is_put_of_call: bool,
}

/// The excess of a call's value over the put's, with derivatives.
pub(super) struct More {
    pub price: f64,
    /// Derivative by the spot of each asset.
    pub deltas: Vec<f64>,
    pub theta: f64,
    pub rho: f64,
}

/// Constants of a basket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BasketTerms {
    /// Drift of ln S until expiry, by asset.
    pub drifts: Vec<f64>,
    /// Spot × weight, by asset.
    pub values: Vec<f64>,
    /// Deviation of ln S × row of L, asset by asset: one number for the first, two for the second, and so on.
    pub factors: Vec<f64>,
    pub discount: f64,
}

impl BasketSimulation {
    /// Checks all numbers.
    pub fn new(mut spec: BasketSpec) -> Result<Self, BasketError> {
        let root = spec.expiry_years.sqrt();
        let is_put_of_call = spec.kind == OptionKind::Call
            && spec.assets.iter().all(|asset| asset.weight >= 0.0)
            && spec.assets.iter().any(|asset| asset.volatility * root >= parity::DEVIATION_MIN);
        if is_put_of_call {
            spec.kind = OptionKind::Put;
        }
        check("rate", spec.rate, RATE_RANGE)?;
        check("strike", spec.strike, PRICE_RANGE)?;
        check("expiry_years", spec.expiry_years, EXPIRY_YEARS_RANGE)?;
        let count = spec.assets.len();
        if !(1..=BASKET_ASSETS_MAX).contains(&count) {
            return Err(BasketError::Assets { count });
        }
        for (number, asset) in spec.assets.iter().enumerate() {
            asset.check(spec.rate).map_err(|error| BasketError::Asset { asset: number, error })?;
        }
        let rows = correlations::factor(&spec.correlations, count)?;
        let terms = BasketTerms::new(&spec, &rows);
        Ok(Self { spec, terms, is_put_of_call })
    }

    /// The specification of the simulated option.
    pub fn spec(&self) -> &BasketSpec {
        &self.spec
    }

    /// The excess of the option's value over that of the simulated one: the present value of all deliveries less that
    /// of the strike. `None` unless a put is simulated in place of a call.
    pub(super) fn more(&self) -> Option<More> {
        self.is_put_of_call.then(|| {
            let BasketSpec { rate, strike, expiry_years, .. } = self.spec;
            let cash = strike * self.terms.discount;
            let of_asset = |asset: &BasketAsset| {
                let carried = asset.weight * exp(-(asset.dividend_yield * expiry_years));
                (carried, carried * asset.spot, asset.dividend_yield)
            };
            let assets: Vec<_> = self.spec.assets.iter().map(of_asset).collect();
            let sum = |of: fn(&(f64, f64, f64)) -> f64| assets.iter().fold(0.0, |sum, asset| sum + of(asset));
            More {
                price: sum(|(_, worth, _)| *worth) - cash,
                deltas: assets.iter().map(|(carried, ..)| *carried).collect(),
                theta: sum(|(_, worth, dividend_yield)| worth * dividend_yield) - rate * cash,
                rho: expiry_years * cash,
            }
        })
    }

    /// The greatest discounted payoff of a sample if a put is simulated in place of a call: the present value of the
    /// strike. `None` otherwise.
    pub fn most_of_put(&self) -> Option<f64> {
        self.is_put_of_call.then_some(self.spec.strike * self.terms.discount)
    }

    pub(crate) fn terms(&self) -> &BasketTerms {
        &self.terms
    }

    /// Adds the sums of some blocks, in order.
    pub fn run(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<BlockSums>) {
        match self.spec.precision {
            Precision::F64 => isa.run(BasketLoop::<f64> { of: self, blocks, out, number: PhantomData }),
            Precision::Mixed => isa.run(BasketLoop::<f32> { of: self, blocks, out, number: PhantomData }),
        }
    }

    /// The price from the sums of the first blocks, beginning with block 0.
    pub fn estimate(&self, blocks: &[BlockSums]) -> Estimate {
        let (Mean { value, standard_error }, samples) = Mean::of_blocks(self.spec.sampling, blocks, None);
        let discount = self.terms.discount;
        Estimate {
            price: discount * value + self.more().map_or(0.0, |more| more.price),
            standard_error: discount * standard_error,
            samples,
            effective: effective_samples(blocks, samples),
        }
    }
}

impl BasketAsset {
    fn check(&self, rate: f64) -> Result<(), ParameterError> {
        let BasketAsset { spot, dividend_yield, volatility, weight } = *self;
        AssetMarket { spot, rate, dividend_yield, volatility }.check()?;
        check("weight", weight, WEIGHT_RANGE)
    }
}

impl BasketTerms {
    fn new(spec: &BasketSpec, rows: &[Vec<f64>]) -> Self {
        let years = spec.expiry_years;
        let root = years.sqrt();
        let drift = |asset: &BasketAsset| {
            (spec.rate - asset.dividend_yield - 0.5 * (asset.volatility * asset.volatility)) * years
        };
        let scaled = |(asset, row): (&BasketAsset, &Vec<f64>)| {
            let deviation = asset.volatility * root;
            row.iter().map(|factor| deviation * factor).collect::<Vec<f64>>()
        };
        Self {
            drifts: spec.assets.iter().map(drift).collect(),
            values: spec.assets.iter().map(|asset| asset.spot * asset.weight).collect(),
            factors: spec.assets.iter().zip(rows).flat_map(scaled).collect(),
            discount: exp(-(spec.rate * years)),
        }
    }

    /// Standard deviation of the basket's value, approximated as if the value were linear in the logarithms of the
    /// assets' prices.
    pub fn deviation(&self) -> f64 {
        let mut by_number = vec![0.0; self.values.len()];
        let mut factors = self.factors.iter();
        for (asset, value) in self.values.iter().enumerate() {
            for (sum, factor) in by_number.iter_mut().zip(factors.by_ref().take(asset + 1)) {
                *sum += value * factor;
            }
        }
        by_number.iter().fold(0.0, |sum, number| sum + number * number).sqrt()
    }
}

/// Values of the baskets of a group of paths at expiry.
pub(super) struct Worths<'a, T, const BY_ASSET: bool> {
    spec: &'a BasketSpec,
    strike: T,
    sign: T,
    drifts: Vec<T>,
    values: Vec<T>,
    factors: Vec<T>,
    source: NumberSource,
    draws: Draws<T>,
    z: Vec<Lanes<T>>,
    /// Values of the basket on some paths, and on their mirror images.
    pub baskets: [Lanes<T>; 2],
    /// Prices of each asset on both sides, if they are needed.
    pub assets: [Vec<Lanes<T>>; 2],
    /// Deviation of ln S from its drift, by asset, if prices of assets are needed; mirrored paths have the opposite.
    pub moved: Vec<Lanes<T>>,
}

impl<'a, T: Real, const BY_ASSET: bool> Worths<'a, T, BY_ASSET> {
    pub fn new(simulation: &'a BasketSimulation) -> Self {
        let BasketSimulation { spec, terms, .. } = simulation;
        let of = |numbers: &[f64]| numbers.iter().map(|number| T::of(*number)).collect();
        let zeros = |count: usize| vec![[T::of(0.0); LANES]; count];
        let count = spec.assets.len();
        let kept = if BY_ASSET { count } else { 0 };
        Self {
            spec,
            strike: T::of(spec.strike),
            sign: T::of(spec.kind.sign()),
            drifts: of(&terms.drifts),
            values: of(&terms.values),
            factors: of(&terms.factors),
            source: NumberSource::new(spec.sampling, spec.key, count as u32, 1),
            draws: Draws::new(),
            z: zeros(count),
            baskets: [[T::of(0.0); LANES]; 2],
            assets: [zeros(kept), zeros(kept)],
            moved: zeros(kept),
        }
    }

    /// Number of paths of a sample: one, or one and its mirror image.
    #[inline(always)]
    pub fn sides(&self) -> usize {
        1 + usize::from(self.spec.antithetic)
    }

    /// Draws the numbers of a group.
    #[inline(always)]
    pub fn draw(&mut self, group: u64) {
        for (asset, z) in self.z.iter_mut().enumerate() {
            self.draws.normals(&self.source, group, 0, Stream::of_asset(asset), z);
        }
        self.baskets = [[T::of(0.0); LANES]; 2];
        let sides = self.sides();
        let mut factors = &self.factors[..];
        for (asset, (drift, value)) in self.drifts.iter().zip(&self.values).enumerate() {
            let (row, rest) = factors.split_at(asset + 1);
            factors = rest;
            let mut moved = [T::of(0.0); LANES];
            for (factor, z) in row.iter().zip(&self.z) {
                for lane in 0..LANES {
                    moved[lane] = moved[lane] + *factor * z[lane];
                }
            }
            for (side, basket) in self.baskets.iter_mut().enumerate().take(sides) {
                let mut worth = [T::of(0.0); LANES];
                for lane in 0..LANES {
                    let moved = if side == 0 { moved[lane] } else { -moved[lane] };
                    worth[lane] = *value * (*drift + moved).exp();
                    basket[lane] = basket[lane] + worth[lane];
                }
                if BY_ASSET {
                    self.assets[side][asset] = worth;
                }
            }
            if BY_ASSET {
                self.moved[asset] = moved;
            }
        }
    }

    /// The payoff of a basket; negative out of the money.
    #[inline(always)]
    pub fn pays(&self, basket: T) -> f64 {
        (self.sign * (basket - self.strike)).double()
    }
}

/// The hot loop over some blocks of a basket.
struct BasketLoop<'a, T> {
    of: &'a BasketSimulation,
    blocks: Range<u64>,
    out: &'a mut Vec<BlockSums>,
    number: PhantomData<T>,
}

impl<T: Real> HotLoop for BasketLoop<'_, T> {
    #[inline(always)]
    fn run(self) {
        let mut worths = Worths::<T, false>::new(self.of);
        let mut payoffs = [0.0; LANES];
        let mut sums = LaneSums::ZERO;
        for block in self.blocks {
            for group in block * GROUPS as u64..(block + 1) * GROUPS as u64 {
                worths.draw(group);
                for side in 0..worths.sides() {
                    for (payoff, basket) in payoffs.iter_mut().zip(&worths.baskets[side]) {
                        let pays = worths.pays(*basket);
                        let paid = if pays > 0.0 { pays } else { 0.0 };
                        *payoff = if side == 0 { paid } else { 0.5 * (*payoff + paid) };
                    }
                }
                sums.add_payoffs(&payoffs);
            }
            self.out.push(sums.take());
        }
    }
}
