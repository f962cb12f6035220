//! Monte Carlo: American options, by the rule of Longstaff and Schwartz (2001).
//!
//! When to exercise is decided by pilot paths, once, when the simulation is made. The price is what this rule is worth on other
//! paths, in blocks as those of [`Simulation`](super::Simulation). No rule is worth more than the best one, so prices are low
//! on average: by what the rule misses, which the standard error does not contain.

use std::ops::Range;

use super::draws::{Draws, LANES, Stream};
use super::exercise::{Continuation, continuations, is_exercised};
use super::options::{AssetMarket, EXPIRY_YEARS_RANGE, OptionKind, PRICE_RANGE, ParameterError, check};
use super::simulation::{Contract, Estimate, Precision, SimulationSpec};
use super::sums::{BLOCK_SAMPLES, BlockSums, GROUPS, LaneSums, Mean, sum_blocks};
use super::terms::{Terms, lognormal_payoff};
use crate::isa::{Isa, Work};
use crate::math::{Keys, Number, exp};

/// Dates on which an option may be exercised, at most.
pub const EXERCISES_MAX: u32 = 1_024;
/// Blocks of pilot paths at most.
pub const PILOT_BLOCKS_MAX: u32 = 1_024;
/// Pilot paths × dates at most: so many numbers are kept while the rule is found, 128 MiB.
pub const PILOT_NUMBERS_MAX: u64 = 1 << 24;

/// What is to be simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmericanSpec {
    /// The asset.
    pub market: AssetMarket,
    /// Call or put.
    pub kind: OptionKind,
    /// Strike.
    pub strike: f64,
    /// Years until expiry.
    pub expiry_years: f64,
    /// Dates of exercise, equally far apart, the last of them expiry: 1 to [`EXERCISES_MAX`]. The option may also be exercised now.
    pub exercises: u32,
    /// Blocks of paths that the rule is found by: 1 to [`PILOT_BLOCKS_MAX`], with no more than [`PILOT_NUMBERS_MAX`] numbers. 64 are
    /// enough for most.
    pub pilot_blocks: u32,
    /// Whether a sample is a pair of paths that mirror each other.
    pub antithetic: bool,
    /// Key of the random numbers.
    pub key: u64,
}

/// An American option with its rule.
#[derive(Clone, Debug, PartialEq)]
pub struct AmericanSimulation {
    spec: AmericanSpec,
    terms: AmericanTerms,
    rule: Rule,
}

/// Constants; amounts are in strikes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AmericanTerms {
    pub sign: f64,
    /// Spot / strike.
    pub moneyness: f64,
    /// Of ln S, from date to date.
    pub drift: f64,
    /// Standard deviation of ln S, from date to date.
    pub diffusion: f64,
    /// Rate × years from date to date.
    pub step_rate: f64,
    /// What the European option is worth.
    pub european: f64,
}

/// When to exercise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// By date.
    pub continuations: Vec<Continuation>,
    /// By date.
    pub discounts: Vec<f64>,
    pub is_now: bool,
}

impl AmericanSpec {
    /// Checks all numbers.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.market.check()?;
        check("strike", self.strike, PRICE_RANGE)?;
        check("expiry_years", self.expiry_years, EXPIRY_YEARS_RANGE)?;
        check("exercises", f64::from(self.exercises), 1.0..=f64::from(EXERCISES_MAX))?;
        let blocks_max = PILOT_NUMBERS_MAX / BLOCK_SAMPLES / u64::from(self.exercises);
        let blocks_max = f64::from(PILOT_BLOCKS_MAX).min(blocks_max as f64);
        check("pilot_blocks", f64::from(self.pilot_blocks), 1.0..=blocks_max)
    }
}

impl AmericanTerms {
    fn new(spec: &AmericanSpec) -> Self {
        // As one that is simulated in as many steps.
        let terms = Terms::new(&SimulationSpec {
            market: spec.market,
            contract: Contract::European { kind: spec.kind, strike: spec.strike },
            expiry_years: spec.expiry_years,
            steps: spec.exercises,
            antithetic: spec.antithetic,
            precision: Precision::F64,
            key: spec.key,
        });
        let root = terms.steps.sqrt();
        let european =
            lognormal_payoff(&terms, terms.drift.scaled(terms.steps), terms.diffusion.scaled(root));
        Self {
            sign: terms.sign,
            moneyness: spec.market.spot / spec.strike,
            drift: terms.drift.value,
            diffusion: terms.diffusion.value,
            step_rate: spec.market.rate * (spec.expiry_years / terms.steps),
            european: european.value * terms.discount.value / spec.strike,
        }
    }

    /// By exercise, where `ln S/S₀` is x; less than nothing out of the money.
    #[inline(always)]
    pub fn pays(&self, x: f64) -> f64 {
        self.sign * (self.moneyness * exp(x) - 1.0)
    }
}

impl AmericanSimulation {
    /// Checks all numbers and finds the rule.
    pub fn new(spec: AmericanSpec) -> Result<Self, ParameterError> {
        spec.check()?;
        let terms = AmericanTerms::new(&spec);
        let (continuations, later) = continuations(&spec, &terms);
        let now = terms.pays(0.0);
        let discounts = (1..=spec.exercises).map(|date| exp(-(terms.step_rate * f64::from(date)))).collect();
        let rule = Rule { continuations, discounts, is_now: now > 0.0 && now >= later };
        Ok(Self { spec, terms, rule })
    }

    /// What is simulated.
    pub fn spec(&self) -> &AmericanSpec {
        &self.spec
    }

    /// Whether it is best, by the pilot paths, to exercise now: the price is what that pays.
    pub fn is_exercised_now(&self) -> bool {
        self.rule.is_now
    }

    pub(crate) fn terms(&self) -> &AmericanTerms {
        &self.terms
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Adds the sums of some blocks, in order: amounts in strikes, discounted; the control is the European option.
    pub fn run(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<BlockSums>) {
        isa.run(Blocks { of: self, blocks, out });
    }

    /// The price by the sums of the first blocks, all from block 0 on.
    pub fn estimate(&self, blocks: &[BlockSums]) -> Estimate {
        let samples = blocks.len() as u64 * BLOCK_SAMPLES;
        let strike = self.spec.strike;
        if self.rule.is_now {
            return Estimate { price: strike * self.terms.pays(0.0), standard_error: 0.0, samples };
        }
        let Mean { value, standard_error } =
            Mean::of(&sum_blocks(blocks), samples, Some(self.terms.european));
        Estimate { price: strike * value, standard_error: strike * standard_error, samples }
    }
}

/// Some blocks of an option.
struct Blocks<'a> {
    of: &'a AmericanSimulation,
    blocks: Range<u64>,
    out: &'a mut Vec<BlockSums>,
}

/// Paths of a group, until they are exercised.
struct Held {
    x: [f64; LANES],
    is_held: [bool; LANES],
    paid: [f64; LANES],
    /// What exercise pays at the last date so far.
    pays: [f64; LANES],
}

impl Held {
    const NOW: Held =
        Held { x: [0.0; LANES], is_held: [true; LANES], paid: [0.0; LANES], pays: [0.0; LANES] };

    #[inline(always)]
    fn step(&mut self, terms: &AmericanTerms, continuation: &Continuation, discount: f64, z: &[f64; LANES]) {
        for ((x, pays), z) in self.x.iter_mut().zip(&mut self.pays).zip(z) {
            *x += terms.drift + terms.diffusion * z;
            *pays = terms.pays(*x);
        }
        for lane in 0..LANES {
            let y = self.pays[lane];
            let takes = self.is_held[lane] & is_exercised(y, continuation);
            self.paid[lane] = if takes { discount * y } else { self.paid[lane] };
            self.is_held[lane] &= !takes;
        }
    }

    /// What the European option pays.
    #[inline(always)]
    fn european(&self, lane: usize, discount: f64) -> f64 {
        let y = self.pays[lane];
        if y > 0.0 { discount * y } else { 0.0 }
    }
}

impl Work for Blocks<'_> {
    #[inline(always)]
    fn run(self) {
        let AmericanSimulation { spec, terms, rule } = self.of;
        let keys = Keys::new(spec.key);
        let mut draws = Draws::new();
        let mut z = [0.0; LANES];
        let (mut payoffs, mut controls) = ([0.0; LANES], [0.0; LANES]);
        let mut sums = LaneSums::ZERO;
        let last = rule.discounts[rule.discounts.len() - 1];
        for block in self.blocks {
            for group in block * GROUPS as u64..(block + 1) * GROUPS as u64 {
                let (mut ahead, mut mirrored) = (Held::NOW, Held::NOW);
                let dates = rule.continuations.iter().zip(&rule.discounts);
                for (date, (continuation, discount)) in dates.enumerate() {
                    draws.normals(&keys, group, date as u64, Stream::STEPS, &mut z);
                    ahead.step(terms, continuation, *discount, &z);
                    if spec.antithetic {
                        z.iter_mut().for_each(|z| *z = -*z);
                        mirrored.step(terms, continuation, *discount, &z);
                    }
                }
                for lane in 0..LANES {
                    (payoffs[lane], controls[lane]) = (ahead.paid[lane], ahead.european(lane, last));
                    if spec.antithetic {
                        payoffs[lane] = 0.5 * (payoffs[lane] + mirrored.paid[lane]);
                        controls[lane] = 0.5 * (controls[lane] + mirrored.european(lane, last));
                    }
                }
                sums.add_payoffs(&payoffs);
                sums.add_controls(&payoffs, &controls);
            }
            self.out.push(sums.take());
        }
    }
}
