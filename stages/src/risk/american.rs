//! The exercise rule of an American option. Each round finds it for some of the dates, in one unit. Once it is
//! complete, blocks of paths are simulated by it.

use std::ops::Range;
use std::sync::Arc;

use warptape_kernels::Isa;
use warptape_kernels::pricing::{AmericanGreekSimulation, AmericanSimulation, AmericanSpec, RuleSearch};

use super::blocks::{BlockLimits, BlockRound, Paths, Told};
use super::cost;
use super::rounds::{Next, Partial, Round};

/// Blocks of paths from which a rule is found. Greeks are more sensitive to errors of the rule than the price is.
const PILOT_BLOCKS: u32 = 16;
const PILOT_BLOCKS_OF_GREEKS: u32 = 64;
/// Pilot blocks × dates of a unit: about a millisecond of work.
const UNIT_BLOCKS: u32 = 128;

/// Number of pilot blocks of a request.
pub(super) fn pilot_blocks(has_greeks: bool) -> u32 {
    if has_greeks { PILOT_BLOCKS_OF_GREEKS } else { PILOT_BLOCKS }
}

/// Steps of a sample of a block while the rule is searched.
pub(super) fn block_steps(spec: &AmericanSpec) -> i64 {
    i64::from(spec.exercises) * if spec.antithetic { 2 } else { 1 }
}

/// Estimated time of finding the rule, in nanoseconds.
pub(super) fn rule_cost_ns(spec: &AmericanSpec) -> u64 {
    cost::exercise(u64::from(spec.exercises), u64::from(spec.pilot_blocks))
}

/// A round that finds the rule for some more dates. It runs on the processor, because each date needs the one after it.
#[derive(Debug)]
pub(super) struct RuleRound {
    /// The specification of the option, which was checked before.
    spec: AmericanSpec,
    has_greeks: bool,
    limits: BlockLimits,
    told: Arc<Told>,
    /// The result of the round before; `None` in the first.
    begun: Option<Arc<FoundRule>>,
}

/// The state of the search for a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundRule {
    /// The rule is found for some of the dates.
    Search(RuleSearch),
    /// The rule is found for all dates: these are the paths that are simulated by it.
    Price(AmericanSimulation),
    /// The same for paths with Greeks.
    Greeks(Box<AmericanGreekSimulation>),
}

impl RuleRound {
    /// The first round.
    pub fn first(spec: AmericanSpec, has_greeks: bool, limits: BlockLimits, told: Arc<Told>) -> Self {
        Self { spec, has_greeks, limits, told, begun: None }
    }

    /// Dates of a unit.
    fn dates(&self) -> u32 {
        UNIT_BLOCKS / self.spec.pilot_blocks
    }
}

impl Round for RuleRound {
    fn units(&self) -> i64 {
        1
    }

    fn rate_key(&self) -> String {
        "american/rule".to_owned()
    }

    fn unit_cost(&self) -> i64 {
        i64::from(self.spec.exercises.min(self.dates()) * self.spec.pilot_blocks)
    }

    fn run(&self, isa: Isa, _: Range<i64>) -> Partial {
        let mut search = match self.begun.as_deref() {
            Some(FoundRule::Search(search)) => search.clone(),
            _ => RuleSearch::new(self.spec).expect("checked with the request"),
        };
        search.advance(isa, self.dates());
        Partial::Rule(Arc::new(match (search.is_done(), self.has_greeks) {
            (false, _) => FoundRule::Search(search),
            (true, false) => FoundRule::Price(AmericanSimulation::of_search(search)),
            (true, true) => {
                let simulation = AmericanSimulation::of_search(search);
                FoundRule::Greeks(Box::new(AmericanGreekSimulation::new(simulation)))
            }
        }))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let Some(Partial::Rule(found)) = partials.last() else { unreachable!("its unit gives a rule") };
        let paths = match &**found {
            FoundRule::Search(_) => {
                let begun = Some(found.clone());
                return Next::Round(Box::new(Self { begun, told: self.told.clone(), ..*self }));
            }
            FoundRule::Price(simulation) => Paths::American(Box::new(simulation.clone())),
            FoundRule::Greeks(greeks) => Paths::AmericanGreeks(greeks.clone()),
        };
        Next::Round(Box::new(BlockRound::first(Arc::new(paths), self.limits, self.told.clone())))
    }
}
