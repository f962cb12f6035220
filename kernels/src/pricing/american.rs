//! Monte Carlo: American options, by the rule of Longstaff and Schwartz (2001).
//!
//! A [`RuleSearch`] finds an exercise rule once, from pilot paths. The price is the value of that rule on other paths,
//! in blocks like those of [`Simulation`](super::Simulation). No rule is worth more than the best one, so prices are
//! too low on average. The standard error does not include that bias.
//!
//! Pilot paths are always random and in `f64`, so their errors are independent of those of the price. If both shared
//! Sobol points, a rule would seem better than it is.

use std::marker::PhantomData;
use std::ops::Range;

use super::draws::LANES;
use super::exercise::{Continuation, RuleSearch};
use super::options::{AssetMarket, EXPIRY_YEARS_RANGE, OptionKind, PRICE_RANGE, ParameterError, check};
use super::sampling::Sampling;
use super::simulation::{Contract, Estimate, Precision, SimulationSpec};
use super::sums::{BLOCK_SAMPLES, BlockSums, GROUPS, LaneSums, Mean, effective_samples};
use super::terms::{Terms, lognormal_payoff};
use super::walks::Walks;
use crate::isa::{HotLoop, Isa};
use crate::math::{Number, Real, Term, exp};

/// Greatest number of dates on which an option may be exercised.
pub const EXERCISES_MAX: u32 = 1_024;
/// Greatest number of blocks of pilot paths.
pub const PILOT_BLOCKS_MAX: u32 = 1_024;

/// Specification of a simulation.
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
    /// Number of exercise dates, equally far apart, the last one at expiry: 1 to [`EXERCISES_MAX`]. The option may also
    /// be exercised now.
    pub exercises: u32,
    /// Number of blocks of pilot paths, from which the rule is found: 1 to [`PILOT_BLOCKS_MAX`]. 64 are usually enough.
    pub pilot_blocks: u32,
    /// True if a sample is a pair of paths that mirror each other.
    pub antithetic: bool,
    /// Source of the numbers of paths; those of pilot paths are always random.
    pub sampling: Sampling,
    /// Precision in which paths are computed; pilot paths are in `f64`.
    pub precision: Precision,
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

/// Constants of a simulation; amounts are in units of the strike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AmericanTerms {
    pub sign: f64,
    /// Spot / strike.
    pub moneyness: Term,
    /// Drift of ln S from date to date.
    pub drift: Term,
    /// Standard deviation of ln S, from date to date.
    pub diffusion: Term,
    /// Rate × years from date to date.
    pub step_rate: f64,
    /// Value of the European option.
    pub european: Term,
}

/// The exercise rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// The condition for exercise, by date.
    pub continuations: Vec<Continuation>,
    /// Discount factors for now, and for each date.
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
        self.sampling.check(self.exercises, 1)?;
        check("pilot_blocks", f64::from(self.pilot_blocks), 1.0..=f64::from(PILOT_BLOCKS_MAX))
    }

    /// The European option, with the same number of steps.
    pub(crate) fn european(&self) -> SimulationSpec {
        SimulationSpec {
            market: self.market,
            contract: Contract::European { kind: self.kind, strike: self.strike },
            expiry_years: self.expiry_years,
            steps: self.exercises,
            antithetic: self.antithetic,
            sampling: self.sampling,
            precision: self.precision,
            key: self.key,
        }
    }
}

impl AmericanTerms {
    pub(crate) fn new(spec: &AmericanSpec) -> Self {
        let terms = Terms::new(&spec.european());
        let strike = Term::of(spec.strike);
        Self {
            sign: terms.sign,
            moneyness: terms.spot / strike,
            drift: terms.drift,
            diffusion: terms.diffusion,
            step_rate: spec.market.rate * (spec.expiry_years / terms.steps),
            european: european_of(&terms) * terms.discount / strike,
        }
    }

    /// The payoff of exercise in units of the strike if `ln S/S₀` is x; negative out of the money.
    #[inline(always)]
    pub fn pays(&self, x: f64) -> f64 {
        self.sign * (self.moneyness.value * exp(x) - 1.0)
    }
}

/// Expected payoff of a European option.
pub(crate) fn european_of(terms: &Terms) -> Term {
    let root = terms.steps.sqrt();
    lognormal_payoff(terms, terms.drift.scaled(terms.steps), terms.diffusion.scaled(root))
}

impl AmericanSimulation {
    /// Checks all numbers and finds the rule.
    pub fn new(spec: AmericanSpec) -> Result<Self, ParameterError> {
        let mut search = RuleSearch::new(spec)?;
        search.advance(Isa::detect(), spec.exercises);
        Ok(Self::of_search(search))
    }

    /// The simulation by the rule of a finished search.
    pub fn of_search(search: RuleSearch) -> Self {
        assert!(search.is_done(), "a rule is found for all dates");
        let later = search.later();
        let (spec, terms, continuations) = search.into_parts();
        let now = terms.pays(0.0);
        let discounts = (0..=spec.exercises).map(|date| exp(-(terms.step_rate * f64::from(date)))).collect();
        let least = terms.european.value;
        let rule = Rule { continuations, discounts, is_now: now > 0.0 && now >= later && now >= least };
        Self { spec, terms, rule }
    }

    /// The specification.
    pub fn spec(&self) -> &AmericanSpec {
        &self.spec
    }

    /// True if immediate exercise is best according to the pilot paths: then the price is its payoff.
    pub fn is_exercised_now(&self) -> bool {
        self.rule.is_now
    }

    pub(crate) fn terms(&self) -> &AmericanTerms {
        &self.terms
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Adds the sums of some blocks, in order: discounted amounts in strikes. The control is the European option.
    pub fn run(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<BlockSums>) {
        match self.spec.precision {
            Precision::F64 => isa.run(AmericanLoop::<f64> { of: self, blocks, out, number: PhantomData }),
            Precision::Mixed => isa.run(AmericanLoop::<f32> { of: self, blocks, out, number: PhantomData }),
        }
    }

    /// The present value of a path that stops at x on a date; 0 if it never stops (date 0).
    #[inline(always)]
    fn paid<T: Real>(&self, x: T, date: f64) -> f64 {
        let pays = self.terms.sign * (self.terms.moneyness.value * x.exp().double() - 1.0);
        if (date > 0.0) & (pays > 0.0) { self.rule.discounts[date as usize] * pays } else { 0.0 }
    }

    /// The price from the sums of the first blocks, beginning with block 0.
    pub fn estimate(&self, blocks: &[BlockSums]) -> Estimate {
        let strike = self.spec.strike;
        if self.rule.is_now {
            let samples = blocks.len() as u64 * BLOCK_SAMPLES;
            let effective = samples as f64;
            return Estimate {
                price: strike * self.terms.pays(0.0),
                standard_error: 0.0,
                samples,
                effective,
            };
        }
        let (Mean { value, standard_error }, samples) =
            Mean::of_blocks(self.spec.sampling, blocks, Some(self.terms.european.value));
        let effective = effective_samples(blocks, samples);
        Estimate { price: strike * value, standard_error: strike * standard_error, samples, effective }
    }
}

/// The hot loop over some blocks of an option.
struct AmericanLoop<'a, T> {
    of: &'a AmericanSimulation,
    blocks: Range<u64>,
    out: &'a mut Vec<BlockSums>,
    number: PhantomData<T>,
}

impl<T: Real> HotLoop for AmericanLoop<'_, T> {
    #[inline(always)]
    fn run(self) {
        let of = self.of;
        let mut walks = Walks::<T, 1>::new(of, [of.terms.moneyness.value]);
        let last = f64::from(of.spec.exercises);
        let (mut payoffs, mut controls) = ([0.0; LANES], [0.0; LANES]);
        let mut sums = LaneSums::ZERO;
        for block in self.blocks {
            for group in block * GROUPS as u64..(block + 1) * GROUPS as u64 {
                walks.walk(group);
                for lane in 0..LANES {
                    [payoffs[lane], controls[lane]] = walks.sample(lane, |walk, lane| {
                        let [stops] = &walk.stops;
                        [of.paid(stops.x[lane], stops.date[lane].double()), of.paid(walk.x[lane], last)]
                    });
                }
                sums.add_payoffs(&payoffs);
                sums.add_controls(&payoffs, &controls);
            }
            self.out.push(sums.take());
        }
    }
}
