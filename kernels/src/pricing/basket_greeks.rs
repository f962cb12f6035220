//! Greeks of baskets by simulation, from the paths of the price itself: delta, gamma and vega of each asset, theta and
//! rho.
//!
//! Delta, vega, theta and rho are derivatives path by path (Glasserman, *Monte Carlo Methods in Financial Engineering*,
//! 2004, chapter 7.2). Gamma of an asset is the difference of two of its deltas from the same random numbers. Their
//! spots differ from the given one by at most [`GREEK_BUMP_MAX`], and the basket moves by at most a twentieth of its
//! deviation. The error is proportional to the square of the distance. A likelihood ratio would need definite
//! correlations, and be less accurate the closer they are to 1.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::basket::{BasketAsset, BasketSimulation, BasketSpec, Worths};
use super::draws::{LANES, Lanes};
use super::greeks::{BUMP_OF_DEVIATION, GREEK_BUMP_MAX, GREEK_BUMP_MIN, Measured};
use super::simulation::Precision;
use super::sums::{BlockSums, GROUPS, LaneSums, Mean, effective_samples};
use crate::isa::{HotLoop, Isa};
use crate::math::Real;

/// Number of Greeks of an asset: delta, gamma, vega.
const OF_ASSET: usize = 3;
/// Number of figures of the basket: price, theta, rho.
const OF_ALL: usize = 3;

/// A simulation of Greeks of a basket.
#[derive(Clone, Debug, PartialEq)]
pub struct BasketGreekSimulation {
    simulation: BasketSimulation,
    /// Constants of the Greeks of each asset.
    assets: Vec<OfAsset>,
}

/// Constants of an asset's Greeks.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub(crate) struct OfAsset {
    /// Rate − yield − σ²/2.
    drift: f64,
    inverse_spot: f64,
    inverse_volatility: f64,
    /// σ × years.
    volatility_years: f64,
    /// Share by which the spot is moved for gamma.
    share: f64,
    /// 1 / difference of the moved spots.
    inverse_width: f64,
}

/// Delta, gamma and vega of an asset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AssetGreeks {
    /// Derivative of the price by the asset's spot.
    pub delta: Measured,
    /// Second derivative by the asset's spot.
    pub gamma: Measured,
    /// Derivative by the asset's volatility, per 1.0.
    pub vega: Measured,
}

/// Price and Greeks of a basket, with the number of samples behind them.
#[derive(Clone, Debug, PartialEq)]
pub struct BasketGreekEstimate {
    /// Discounted mean of the payoff.
    pub price: Measured,
    /// Greeks of each asset, in the order of assets.
    pub assets: Vec<AssetGreeks>,
    /// Derivative by passing time, per year.
    pub theta: Measured,
    /// Derivative by the rate, per 1.0.
    pub rho: Measured,
    /// Number of samples: paths, or pairs of paths.
    pub samples: u64,
    /// The effective number of samples, as in [`Estimate`](super::Estimate).
    pub effective: f64,
}

impl BasketGreekSimulation {
    /// Makes a simulation of Greeks from that of the price.
    pub fn new(simulation: BasketSimulation) -> Self {
        let deviation = simulation.terms().deviation();
        let BasketSpec { rate, expiry_years, .. } = *simulation.spec();
        let of_asset = |asset: &BasketAsset| {
            let BasketAsset { spot, dividend_yield, volatility, weight } = *asset;
            let share = BUMP_OF_DEVIATION * deviation / (spot * weight).abs();
            let share = GREEK_BUMP_MAX.min(share).max(GREEK_BUMP_MIN);
            OfAsset {
                drift: rate - dividend_yield - 0.5 * (volatility * volatility),
                inverse_spot: 1.0 / spot,
                inverse_volatility: 1.0 / volatility,
                volatility_years: volatility * expiry_years,
                share,
                inverse_width: 1.0 / (2.0 * share * spot),
            }
        };
        let assets = simulation.spec().assets.iter().map(of_asset).collect();
        Self { simulation, assets }
    }

    /// The simulation of only the price, with the same paths.
    pub fn simulation(&self) -> &BasketSimulation {
        &self.simulation
    }

    pub(crate) fn assets(&self) -> &[OfAsset] {
        &self.assets
    }

    /// Number of columns, which are figures of each sample and sums of each block: price, theta, rho, and delta, gamma
    /// and vega of each asset.
    pub fn columns(&self) -> usize {
        Self::columns_of(self.assets.len())
    }

    /// Number of columns for `assets` assets.
    pub fn columns_of(assets: usize) -> usize {
        OF_ALL + OF_ASSET * assets
    }

    /// Adds the sums of some blocks, in order: those of all columns for each block, not discounted.
    pub fn run(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<BlockSums>) {
        match self.simulation.spec().precision {
            Precision::F64 => isa.run(BasketGreeksLoop::<f64> { of: self, blocks, out, number: PhantomData }),
            Precision::Mixed => {
                isa.run(BasketGreeksLoop::<f32> { of: self, blocks, out, number: PhantomData })
            }
        }
    }

    /// Price and Greeks from the sums of the first blocks, beginning with block 0.
    pub fn estimate(&self, blocks: &[BlockSums]) -> BasketGreekEstimate {
        let sampling = self.simulation.spec().sampling;
        let discount = self.simulation.terms().discount;
        let mut samples = 0;
        let mut measured = |column: usize| {
            let of_column: Vec<BlockSums> =
                blocks.iter().skip(column).step_by(self.columns()).copied().collect();
            let (Mean { value, standard_error }, counted) = Mean::of_blocks(sampling, &of_column, None);
            samples = counted;
            Measured { value: discount * value, standard_error: discount * standard_error }
        };
        let [price, theta, rho] = [0, 1, 2].map(&mut measured);
        let of_asset = |asset: usize| {
            let [delta, gamma, vega] = [0, 1, 2].map(|greek| measured(OF_ALL + OF_ASSET * asset + greek));
            AssetGreeks { delta, gamma, vega }
        };
        let assets = (0..self.assets.len()).map(of_asset).collect();
        let prices: Vec<BlockSums> = blocks.iter().step_by(self.columns()).copied().collect();
        let effective = effective_samples(&prices, samples);
        let mut found = BasketGreekEstimate { price, assets, theta, rho, samples, effective };
        if let Some(more) = self.simulation.more() {
            found.price.value += more.price;
            found.theta.value += more.theta;
            found.rho.value += more.rho;
            found.assets.iter_mut().zip(more.deltas).for_each(|(asset, more)| asset.delta.value += more);
        }
        found
    }
}

/// The hot loop over some blocks of a basket.
struct BasketGreeksLoop<'a, T> {
    of: &'a BasketGreekSimulation,
    blocks: Range<u64>,
    out: &'a mut Vec<BlockSums>,
    number: PhantomData<T>,
}

impl<T: Real> BasketGreeksLoop<'_, T> {
    /// Sets the figures of the samples by column: those of the first side's paths. For the second side, sets the means
    /// of both.
    #[inline(always)]
    fn add_side(&self, worths: &Worths<'_, T, true>, side: usize, numbers: &mut [Lanes<f64>]) {
        let BasketSpec { rate, kind, expiry_years, .. } = *self.of.simulation.spec();
        let sign = kind.sign();
        let put = |place: &mut f64, number: f64| {
            *place = if side == 0 { number } else { 0.5 * (*place + number) };
        };
        let signed = |pays: f64| if pays > 0.0 { sign } else { 0.0 };
        let basket = &worths.baskets[side];
        let (of_all, of_assets) = numbers.split_at_mut(OF_ALL);
        let (mut weight, mut theta, mut rho) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let pays = worths.pays(basket[lane]);
            let paid = if pays > 0.0 { pays } else { 0.0 };
            weight[lane] = signed(pays);
            theta[lane] = rate * paid;
            rho[lane] = -paid;
            put(&mut of_all[0][lane], paid);
        }
        let assets = worths.assets[side].iter().zip(&worths.moved).zip(&self.of.assets);
        for (((worth, moved), asset), columns) in assets.zip(of_assets.chunks_mut(OF_ASSET)) {
            let share = T::of(asset.share);
            for lane in 0..LANES {
                let moved = if side == 0 { moved[lane] } else { -moved[lane] }.double();
                let far = share * worth[lane];
                let (up, down) = (worths.pays(basket[lane] + far), worths.pays(basket[lane] - far));
                let worth = worth[lane].double();
                let of_spot = worth * asset.inverse_spot;
                let held = weight[lane] * worth;
                put(&mut columns[0][lane], weight[lane] * of_spot);
                put(&mut columns[1][lane], (signed(up) - signed(down)) * of_spot * asset.inverse_width);
                put(
                    &mut columns[2][lane],
                    held * (moved * asset.inverse_volatility - asset.volatility_years),
                );
                theta[lane] -= held * (asset.drift + moved * (0.5 / expiry_years));
                rho[lane] += held;
            }
        }
        for lane in 0..LANES {
            put(&mut of_all[1][lane], theta[lane]);
            put(&mut of_all[2][lane], expiry_years * rho[lane]);
        }
    }
}

impl<T: Real> HotLoop for BasketGreeksLoop<'_, T> {
    #[inline(always)]
    fn run(self) {
        let mut worths = Worths::<T, true>::new(&self.of.simulation);
        let columns = self.of.columns();
        let mut numbers = vec![[0.0; LANES]; columns];
        let mut sums: Vec<LaneSums> = (0..columns).map(|_| LaneSums::ZERO).collect();
        for block in self.blocks.clone() {
            for group in block * GROUPS as u64..(block + 1) * GROUPS as u64 {
                worths.draw(group);
                for side in 0..worths.sides() {
                    self.add_side(&worths, side, &mut numbers);
                }
                sums.iter_mut().zip(&numbers).for_each(|(sums, numbers)| sums.add_payoffs(numbers));
            }
            self.out.extend(sums.iter_mut().map(LaneSums::take));
        }
    }
}
