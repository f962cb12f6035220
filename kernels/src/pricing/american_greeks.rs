//! Greeks of American options by simulation, from the paths of the price itself.
//!
//! Vega, theta and rho are derivatives path by path, with the stops held fixed. At the best boundary exercise pays as
//! much as waiting, so that a move of the boundary has no effect to first order. The argument is Piterbarg's (*A
//! Practitioner's Guide to Pricing and Hedging Callable Libor Exotics in Forward Libor Models*, 2003). See also
//! Glasserman (*Monte Carlo Methods in Financial Engineering*, 2004, chapter 7.2). An imperfect rule makes them wrong
//! in proportion; their standard errors do not include this.
//!
//! Delta is the difference of two prices from the same random numbers. Gamma is the difference of two deltas path by
//! path, with the bumped spots that other contracts use for gamma. The rule depends on prices and dates and does not
//! change with the spot, so paths from either side stop by the same rule. The rule's error is nearly the same on both
//! sides, and delta is wrong by less than its standard error. (Path by path, delta would have an eighth of the standard
//! error, and a typical bias of one or two per cent.)
//!
//! Each Greek has the European option's Greek as its control. An option that is exercised now has the Greeks of its
//! payoff.

use std::marker::PhantomData;
use std::ops::Range;

use super::american::{AmericanSimulation, AmericanTerms, european_of};
use super::draws::LANES;
use super::greeks::{Bumped, GREEKS, GreekEstimate, GreekSums, Measured, estimate_of, greeks_of};
use super::simulation::Precision;
use super::sums::{BLOCK_SAMPLES, GROUPS, LaneSums};
use super::terms::Terms;
use super::walks::{Walk, Walks};
use crate::isa::{HotLoop, Isa};
use crate::math::{Dual, Number, PARAMETERS, RATE, Real, SPOT, Term, YEARS};

/// Column of delta in the sums of a block.
const DELTA: usize = 1;
/// Number of spots: the given one, and one on each side of it.
const SPOTS: usize = 3;

/// A simulation of Greeks of an American option.
#[derive(Clone, Debug, PartialEq)]
pub struct AmericanGreekSimulation {
    simulation: AmericanSimulation,
    bumped: Bumped,
}

impl AmericanGreekSimulation {
    /// Makes a simulation of Greeks from that of the price.
    pub fn new(simulation: AmericanSimulation) -> Self {
        let european = simulation.spec().european();
        let bumped = Bumped::new(&european, &Terms::new(&european));
        Self { simulation, bumped }
    }

    /// The simulation of only the price, with the same paths.
    pub fn simulation(&self) -> &AmericanSimulation {
        &self.simulation
    }

    /// Spot / strike for the two bumped spots.
    pub(crate) fn bumped_moneyness(&self) -> [f64; 2] {
        [0, 1].map(|side: usize| self.bumped.terms[side].spot.value / self.simulation.spec().strike)
    }

    pub(crate) fn inverse_width(&self) -> f64 {
        self.bumped.inverse_width
    }

    /// The rate and the years, each divided by the number of dates.
    pub(crate) fn steps(&self) -> [f64; 2] {
        let spec = self.simulation.spec();
        [spec.market.rate, spec.expiry_years].map(|number| number / f64::from(spec.exercises))
    }

    /// Adds the sums of some blocks, in order: amounts in strikes.
    pub fn run(&self, isa: Isa, blocks: Range<u64>, out: &mut Vec<GreekSums>) {
        match self.simulation.spec().precision {
            Precision::F64 => {
                isa.run(AmericanGreeksLoop::<f64> { of: self, blocks, out, number: PhantomData })
            }
            Precision::Mixed => {
                isa.run(AmericanGreeksLoop::<f32> { of: self, blocks, out, number: PhantomData })
            }
        }
    }

    /// Price and Greeks from the sums of the first blocks, beginning with block 0.
    pub fn estimate(&self, blocks: &[GreekSums]) -> GreekEstimate {
        let (spec, terms) = (self.simulation.spec(), self.simulation.terms());
        if self.simulation.is_exercised_now() {
            let certain = |value: f64| Measured { value, standard_error: 0.0 };
            let [gamma, vega, theta, rho] = [certain(0.0); 4];
            let price = certain(spec.strike * terms.pays(0.0));
            let samples = blocks.len() as u64 * BLOCK_SAMPLES;
            let (delta, effective) = (certain(terms.sign), samples as f64);
            return GreekEstimate { price, delta, gamma, vega, theta, rho, samples, effective };
        }
        estimate_of(spec.sampling, blocks, Some(self.controls()), spec.strike)
    }

    /// Expectations of the controls.
    fn controls(&self) -> [f64; GREEKS] {
        let strike = self.simulation.spec().strike;
        let european = |terms: &Terms| european_of(terms) * terms.discount;
        let gamma = self.bumped.by_spot(|terms| european(terms).by[SPOT]) / strike;
        let mut controls = greeks_of(self.simulation.terms().european, gamma);
        controls[DELTA] = self.bumped.by_spot(|terms| european(terms).value) / strike;
        controls
    }
}

/// The hot loop over some blocks of an option.
struct AmericanGreeksLoop<'a, T> {
    of: &'a AmericanGreekSimulation,
    blocks: Range<u64>,
    out: &'a mut Vec<GreekSums>,
    number: PhantomData<T>,
}

/// Constants from which the values of paths follow.
struct Outcomes<'a> {
    simulation: &'a AmericanSimulation,
    bumped: [f64; 2],
    inverse_width: f64,
    /// The rate per date, and the years per date.
    rate: f64,
    years: f64,
}

impl Outcomes<'_> {
    fn new(of: &AmericanGreekSimulation) -> Outcomes<'_> {
        let ([rate, years], inverse_width) = (of.steps(), of.inverse_width());
        Outcomes { simulation: &of.simulation, bumped: of.bumped_moneyness(), inverse_width, rate, years }
    }

    /// The present value of a path that stops at x on a date, with derivatives.
    #[inline(always)]
    fn outcome<T: Real>(&self, x: T, date: f64) -> Term {
        let terms = self.simulation.terms();
        let growth = x.exp().double();
        let moved = (x.double() - date * terms.drift.value) / terms.diffusion.value;
        let by =
            |number: usize| growth * (date * terms.drift.by[number] + moved * terms.diffusion.by[number]);
        let grown: Term = Dual { value: growth, by: std::array::from_fn::<f64, PARAMETERS, _>(by) };
        let pays = (terms.moneyness * grown - Term::of(1.0)).scaled(terms.sign);
        if !((date > 0.0) & (pays.value > 0.0)) {
            return Term::of(0.0);
        }
        let mut discount = Term::of(self.simulation.rule().discounts[date as usize]);
        discount.by[YEARS] = -(self.rate * date * discount.value);
        discount.by[RATE] = -(self.years * date * discount.value);
        pays * discount
    }

    /// The present value of such a path for a bumped spot, and its derivative by only that spot.
    #[inline(always)]
    fn bumped<T: Real>(&self, moneyness: f64, x: T, date: f64) -> [f64; 2] {
        let AmericanTerms { sign, moneyness: given, .. } = self.simulation.terms();
        let growth = x.exp().double();
        let pays = sign * (moneyness * growth - 1.0);
        let discount = self.simulation.rule().discounts[date as usize];
        let is_paid = (date > 0.0) & (pays > 0.0);
        if is_paid { [discount * pays, discount * (sign * (growth * given.by[SPOT]))] } else { [0.0; 2] }
    }

    /// Greeks from the points and dates at which paths stop, for the given spot and for the spots on both sides.
    #[inline(always)]
    fn greeks<T: Real>(&self, [held, up, down]: [(T, f64); SPOTS]) -> [f64; GREEKS] {
        let up = self.bumped(self.bumped[0], up.0, up.1);
        let down = self.bumped(self.bumped[1], down.0, down.1);
        let gamma = (up[1] - down[1]) * self.inverse_width;
        let mut greeks = greeks_of(self.outcome(held.0, held.1), gamma);
        greeks[DELTA] = (up[0] - down[0]) * self.inverse_width;
        greeks
    }

    /// Greeks of the option and of its control, one after the other.
    #[inline(always)]
    fn of_walk<T: Real>(&self, walk: &Walk<T, SPOTS>, lane: usize) -> [f64; 2 * GREEKS] {
        let stop_of = |spot: usize| (walk.stops[spot].x[lane], walk.stops[spot].date[lane].double());
        let option = self.greeks([0, 1, 2].map(stop_of));
        let last = (walk.x[lane], f64::from(self.simulation.spec().exercises));
        let control = self.greeks([last; SPOTS]);
        std::array::from_fn(|number| if number < GREEKS { option[number] } else { control[number - GREEKS] })
    }
}

impl<T: Real> HotLoop for AmericanGreeksLoop<'_, T> {
    #[inline(always)]
    fn run(self) {
        let outcomes = Outcomes::new(self.of);
        let [up, down] = outcomes.bumped;
        let simulation = outcomes.simulation;
        let mut walks = Walks::<T, SPOTS>::new(simulation, [simulation.terms().moneyness.value, up, down]);
        let mut greeks = [[0.0; LANES]; 2 * GREEKS];
        let mut sums = [const { LaneSums::ZERO }; GREEKS];
        for block in self.blocks {
            for group in block * GROUPS as u64..(block + 1) * GROUPS as u64 {
                walks.walk(group);
                for lane in 0..LANES {
                    let sample = walks.sample(lane, |walk, lane| outcomes.of_walk(walk, lane));
                    greeks.iter_mut().zip(sample).for_each(|(lanes, number)| lanes[lane] = number);
                }
                let (options, controls) = greeks.split_at(GREEKS);
                for ((sums, option), control) in sums.iter_mut().zip(options).zip(controls) {
                    sums.add_payoffs(option);
                    sums.add_controls(option, control);
                }
            }
            self.out.push(GreekSums(std::array::from_fn(|greek| sums[greek].take())));
        }
    }
}
