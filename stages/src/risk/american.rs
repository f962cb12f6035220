//! American options: the rule by which they are exercised is found first, some dates after others, each a round of one unit, and then
//! blocks are simulated by it.

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{
    AmericanGreekSimulation, AmericanSimulation, AmericanSpec, DevicePricing, ParameterError, RuleSearch,
};

use super::{Partial, cost};

/// Blocks of paths that a rule is found by: Greeks tell more of what it misses than the price does.
const PILOT_BLOCKS: u32 = 16;
const PILOT_BLOCKS_OF_GREEKS: u32 = 64;
/// Pilot blocks × dates of a unit: about a millisecond of work.
const UNIT_BLOCKS: u32 = 128;

#[derive(Debug)]
pub(super) struct AmericanTask {
    spec: AmericanSpec,
    has_greeks: bool,
    /// As far as any unit took it: that is the same whoever did, so that a unit that is done again finds it done. `None` before and after.
    search: Mutex<Option<Box<RuleSearch>>>,
    found: OnceLock<Found>,
}

/// What is simulated when the rule is found.
#[derive(Debug)]
pub(super) enum Found {
    Price(Box<AmericanSimulation>),
    Greeks(Box<AmericanGreekSimulation>),
}

impl AmericanTask {
    pub fn new(spec: AmericanSpec, has_greeks: bool) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(Self { spec, has_greeks, search: Mutex::new(None), found: OnceLock::new() })
    }

    /// How many a request has.
    pub fn pilot_blocks(has_greeks: bool) -> u32 {
        if has_greeks { PILOT_BLOCKS_OF_GREEKS } else { PILOT_BLOCKS }
    }

    pub fn spec(&self) -> &AmericanSpec {
        &self.spec
    }

    pub fn has_greeks(&self) -> bool {
        self.has_greeks
    }

    pub fn is_found(&self) -> bool {
        self.found.get().is_some()
    }

    /// What is simulated, when the units of the rule are done.
    pub fn found(&self) -> &Found {
        self.found.get().expect("the rule is found in the rounds before")
    }

    /// Units of the rule.
    pub fn units(&self) -> i64 {
        i64::from(self.spec.exercises.div_ceil(self.unit_dates()))
    }

    /// Estimated time of finding the rule, in nanoseconds.
    pub fn rule_cost_ns(&self) -> u64 {
        cost::exercise(u64::from(self.spec.exercises), u64::from(self.spec.pilot_blocks))
    }

    /// Of a unit of the rule.
    pub fn unit_cost(&self) -> i64 {
        i64::from(self.spec.exercises.min(self.unit_dates()) * self.spec.pilot_blocks)
    }

    fn unit_dates(&self) -> u32 {
        UNIT_BLOCKS / self.spec.pilot_blocks
    }

    /// Does the units before one, as far as they are not done, and says how many dates that makes.
    pub fn find_rule(&self, isa: Isa, end: i64) -> Partial {
        let dates = self.spec.exercises.min(end as u32 * self.unit_dates());
        if self.is_found() {
            return Partial::Rule(dates);
        }
        // Nobody waits for a lane that hangs: the work is done on a copy.
        let begun = self.search.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut search =
            begun.unwrap_or_else(|| Box::new(RuleSearch::new(self.spec).expect("checked with the request")));
        search.advance(isa, dates.saturating_sub(search.dates()));
        let mut kept = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        if search.is_done() {
            *kept = None;
            self.found.get_or_init(|| self.of_search(*search));
        } else if !self.is_found() && kept.as_ref().is_none_or(|kept| kept.dates() < search.dates()) {
            *kept = Some(search);
        }
        Partial::Rule(dates)
    }

    fn of_search(&self, search: RuleSearch) -> Found {
        let simulation = AmericanSimulation::of_search(search);
        match self.has_greeks {
            true => Found::Greeks(Box::new(AmericanGreekSimulation::new(simulation))),
            false => Found::Price(Box::new(simulation)),
        }
    }

    /// Simulates blocks.
    pub fn run(&self, isa: Isa, blocks: Range<u64>) -> Partial {
        match self.found() {
            Found::Price(simulation) => {
                let mut sums = Vec::new();
                simulation.run(isa, blocks, &mut sums);
                Partial::Blocks(sums)
            }
            Found::Greeks(greeks) => {
                let mut sums = Vec::new();
                greeks.run(isa, blocks, &mut sums);
                Partial::GreekBlocks(sums)
            }
        }
    }

    pub fn run_on_device(
        &self,
        pricing: &mut DevicePricing,
        device: &mut dyn Device,
        blocks: Range<u64>,
    ) -> Result<Partial, DeviceError> {
        match self.found() {
            Found::Price(simulation) => {
                let mut sums = Vec::new();
                pricing.simulate_american(device, simulation, blocks, &mut sums)?;
                Ok(Partial::Blocks(sums))
            }
            Found::Greeks(greeks) => {
                let mut sums = Vec::new();
                pricing.simulate_american_greeks(device, greeks, blocks, &mut sums)?;
                Ok(Partial::GreekBlocks(sums))
            }
        }
    }
}
