//! Value at risk and expected shortfall by scenarios, in three rounds: the profits, their order, and the losses of
//! positions in the tails.

use std::ops::Range;
use std::sync::Arc;

use warptape_kernels::Isa;
use warptape_kernels::device::{BLOCK_THREADS, Device, DeviceError};
use warptape_kernels::portfolio::{
    Portfolio, Profits, Ranked, Scenarios, TAIL_BLOCK, Tail, loss_of_blocks, run_on_device,
};

use super::super::kept::{Follower, KeptProfits};
use super::super::rounds::{DeviceRisk, Next, Partial, Round};
use super::measures::Measure;
use super::{CHECKED, Held, UNIT_SCENARIOS, WholeRisk, positions_cost, profits_of};

/// Positions of a unit of the last round.
const UNIT_POSITIONS: usize = 512;

/// Inputs that all three rounds share.
#[derive(Debug)]
pub(super) struct Simulated {
    pub held: Held,
    pub scenarios: Arc<Scenarios>,
    pub confidence: f64,
    /// `None` if only the asker knows it.
    pub horizon_years: Option<f64>,
    /// True if measures have a standard error.
    pub are_drawn: bool,
}

impl Simulated {
    /// Estimated cost of a unit of the last round.
    fn unit_cost(&self) -> i64 {
        self.held.portfolio.positions().len().min(UNIT_POSITIONS) as i64
    }
}

/// Revalues all positions: a unit is 64 scenarios.
#[derive(Debug)]
pub(super) struct ProfitRound {
    pub simulated: Arc<Simulated>,
    /// Access to profits of earlier requests; `None` if none are kept.
    pub follower: Option<Follower>,
}

impl Round for ProfitRound {
    fn units(&self) -> i64 {
        scenario_units(&self.simulated.held.portfolio, &self.simulated.scenarios)
    }

    fn rate_key(&self) -> String {
        let key = if self.follower.is_some() { "portfolio/profits, kept" } else { "portfolio/profits" };
        key.to_owned()
    }

    fn unit_cost(&self) -> i64 {
        let positions = positions_cost(&self.simulated.held.portfolio);
        self.follower.as_ref().map_or(positions, |follower| follower.cost) as i64
    }

    fn unit_width(&self) -> usize {
        scenarios_width(&self.simulated.held.portfolio)
    }

    fn follow(&mut self, kept: &KeptProfits) {
        let Simulated { held, scenarios, .. } = &*self.simulated;
        // American options are revalued in full, which takes longer than everything that could be kept.
        if !held.portfolio.has_boundaries() {
            self.follower = kept.follower(&held.portfolio, scenarios, self.units() as usize);
        }
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let Simulated { held, scenarios, .. } = &*self.simulated;
        revalue(isa, &held.portfolio, scenarios, self.follower.as_ref(), units)
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let Simulated { held, scenarios, .. } = &*self.simulated;
        revalue_on_device(device, memory, &held.portfolio, scenarios, &units)
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let profits = profits_of(partials);
        let Simulated { held, scenarios, confidence, horizon_years, are_drawn } = &*self.simulated;
        let measure = || Measure::Simulated {
            scenarios: scenarios.clone(),
            confidence: *confidence,
            horizon_years: *horizon_years,
            are_drawn: *are_drawn,
        };
        let named = |scenario| format!("scenario {scenario}, from 0");
        if let Some(again) = held.again_without_unvalued(&profits, named, measure) {
            return again;
        }
        Next::Round(Box::new(TailRound { simulated: self.simulated.clone(), profits }))
    }
}

/// Sorts the profits of each book, which cannot be cut into units.
#[derive(Debug)]
struct TailRound {
    simulated: Arc<Simulated>,
    /// Profits of the slices, in order.
    profits: Vec<Arc<Profits>>,
}

impl Round for TailRound {
    fn units(&self) -> i64 {
        1
    }

    fn rate_key(&self) -> String {
        "portfolio/tails".to_owned()
    }

    fn unit_cost(&self) -> i64 {
        self.simulated.unit_cost()
    }

    fn is_host_only(&self) -> bool {
        true
    }

    fn run(&self, _: Isa, _: Range<i64>) -> Partial {
        let Simulated { held, confidence, are_drawn, .. } = &*self.simulated;
        let of_book = |book: usize| -> Tails {
            let profits: Vec<f64> =
                self.profits.iter().flat_map(|part| part.of_book(book)).copied().collect();
            tails_of(&profits, *confidence, *are_drawn && book == 0)
        };
        let mut whole = of_book(0);
        whole.books.extend((1..held.books.len()).map(|book| of_book(book).books[0]));
        Partial::Tails(Arc::new(whole))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let Some(Partial::Tails(tails)) = partials.last() else { unreachable!("its unit gives the tails") };
        Next::Round(Box::new(PartRound { simulated: self.simulated.clone(), tails: tails.clone() }))
    }
}

/// The losses of positions, first in the scenarios of the value at risk, then in each block of scenarios of the
/// expected shortfall. A unit is some positions in one of these.
#[derive(Debug)]
struct PartRound {
    simulated: Arc<Simulated>,
    tails: Arc<Tails>,
}

impl PartRound {
    /// Returns the number of units of each block of scenarios.
    fn position_units(&self) -> usize {
        self.simulated.held.portfolio.positions().len().div_ceil(UNIT_POSITIONS)
    }
}

impl Round for PartRound {
    fn units(&self) -> i64 {
        (self.position_units() * (1 + self.tails.expected_shortfall.blocks())) as i64
    }

    fn rate_key(&self) -> String {
        "portfolio/parts".to_owned()
    }

    fn unit_cost(&self) -> i64 {
        self.simulated.unit_cost()
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let Simulated { held, scenarios, .. } = &*self.simulated;
        let groups = self.position_units() as i64;
        let mut losses = Vec::new();
        for unit in units {
            let (block, group) = ((unit / groups) as usize, (unit % groups) as usize);
            let from = group * UNIT_POSITIONS;
            let positions = from..(from + UNIT_POSITIONS).min(held.portfolio.positions().len());
            let tail = match block.checked_sub(1) {
                None => self.tails.value_at_risk.clone(),
                Some(block) => self.tails.expected_shortfall.block(block),
            };
            let found = held.portfolio.component_losses(isa, scenarios, &tail, positions);
            losses.extend(found.expect("a tail has fewer scenarios than there are"));
        }
        Partial::Losses(losses)
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let Simulated { held, scenarios, horizon_years, .. } = &*self.simulated;
        let mut losses = Vec::new();
        for partial in partials {
            if let Partial::Losses(more) = partial {
                losses.extend_from_slice(more);
            }
        }
        // The first row is for the value at risk, and each other row for a block.
        let positions = held.portfolio.positions().len();
        let (value_at_risk, blocks) = losses.split_at(positions);
        let shortfall = |position: usize| -> f64 {
            let losses: Vec<f64> = blocks[position..].iter().step_by(positions).copied().collect();
            loss_of_blocks(&losses)
        };
        let components = [value_at_risk.to_vec(), (0..positions).map(shortfall).collect()];
        let whole = WholeRisk {
            measures: self.tails.books[0],
            errors: self.tails.errors,
            scenarios: scenarios.len() as i64,
            horizon_years: *horizon_years,
        };
        Next::Outcome(held.result(&whole, &self.tails.books, components))
    }
}

/// The scenarios behind the measures of the whole, and the measures of all books.
#[derive(Clone, Debug, PartialEq)]
pub struct Tails {
    value_at_risk: Tail,
    expected_shortfall: Tail,
    /// Value at risk and expected shortfall of each book alone.
    books: Vec<[f64; 2]>,
    /// Standard errors of both measures of the whole; `None` unless scenarios are drawn.
    errors: Option<[f64; 2]>,
}

impl Tails {
    pub(crate) fn numbers(&self) -> usize {
        2 * self.books.len() + self.expected_shortfall.blocks() * TAIL_BLOCK
    }
}

/// Value at risk and expected shortfall of profits. Profits of checked numbers are finite unless they overflow; then
/// the loss is the greatest number.
fn tails_of(profits: &[f64], confidence: f64, has_errors: bool) -> Tails {
    let finite: Vec<f64> =
        profits.iter().map(|profit| if profit.is_finite() { *profit } else { f64::MIN }).collect();
    let ranked = Ranked::new(&finite).expect("there are scenarios, and they are finite");
    let value_at_risk = ranked.value_at_risk(confidence).expect(CHECKED);
    let expected_shortfall = ranked.expected_shortfall(confidence).expect(CHECKED);
    Tails {
        books: vec![[value_at_risk.loss(profits), expected_shortfall.loss(profits)]],
        errors: has_errors.then(|| ranked.standard_errors(&finite, confidence).expect(CHECKED)),
        value_at_risk,
        expected_shortfall,
    }
}

/// Scenarios of a unit; one if boundaries are found anew in each.
fn unit_scenarios(portfolio: &Portfolio, scenarios: &Scenarios) -> u64 {
    let is_anew = scenarios.moves_more_than_spots() && portfolio.has_boundaries();
    if is_anew { 1 } else { UNIT_SCENARIOS }
}

/// Units of scenarios.
pub(super) fn scenario_units(portfolio: &Portfolio, scenarios: &Scenarios) -> i64 {
    scenarios.len().div_ceil(unit_scenarios(portfolio, scenarios)) as i64
}

/// Width of a unit of scenarios: a thread of the kernel values a position in a scenario. Only the host has boundaries.
pub(super) fn scenarios_width(portfolio: &Portfolio) -> usize {
    if portfolio.has_boundaries() {
        return 0;
    }
    (portfolio.positions().len() * UNIT_SCENARIOS as usize).div_ceil(BLOCK_THREADS).max(1)
}

fn range_of(portfolio: &Portfolio, scenarios: &Scenarios, units: &Range<i64>) -> Range<u64> {
    let each = unit_scenarios(portfolio, scenarios);
    units.start as u64 * each..(units.end as u64 * each).min(scenarios.len())
}

/// Profits of all books in units of scenarios.
pub(super) fn revalue(
    isa: Isa,
    portfolio: &Arc<Portfolio>,
    scenarios: &Scenarios,
    follower: Option<&Follower>,
    units: Range<i64>,
) -> Partial {
    let mut profits = Profits::default();
    match follower {
        None => portfolio.run(isa, scenarios, range_of(portfolio, scenarios, &units), &mut profits),
        Some(follower) => {
            for unit in units {
                let range = range_of(portfolio, scenarios, &(unit..unit + 1));
                follower.run(isa, portfolio, range, &mut profits);
            }
        }
    }
    Partial::Profits(Arc::new(profits))
}

/// Likewise, on a device.
pub(super) fn revalue_on_device(
    device: &mut dyn Device,
    memory: &mut DeviceRisk,
    portfolio: &Portfolio,
    scenarios: &Scenarios,
    units: &Range<i64>,
) -> Result<Partial, DeviceError> {
    let mut profits = Profits::default();
    let range = range_of(portfolio, scenarios, units);
    // Only the host has boundaries.
    match portfolio.has_boundaries() {
        true => portfolio.run(Isa::detect(), scenarios, range, &mut profits),
        false => run_on_device(device, &mut memory.work, portfolio, scenarios, range, &mut profits)?,
    }
    Ok(Partial::Profits(Arc::new(profits)))
}
