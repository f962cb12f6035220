//! Rounds of simulated blocks. A unit is a block of samples. If a standard error is wanted, samples double from round
//! to round, as [`StopRule`] says.

use std::ops::Range;
use std::sync::Arc;

use warptape_events::risk::{RiskOutcome, SimulatedGreek, SimulationResult};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{
    AmericanGreekSimulation, AmericanSimulation, AssetGreeks, BasketGreekEstimate, BasketGreekSimulation,
    BasketSimulation, BasketSpec, BlockSums, Contract, Estimate, GreekEstimate, GreekSimulation, GreekSums,
    Measured, Precision, Simulation, StopDecision, StopRule,
};

use super::american;
use super::cost;
use super::rounds::{DeviceRisk, Next, Partial, Round};
pub(super) use super::told::Told;

/// Numbers that are summed for a simulation with Greeks of one asset.
pub(super) const GREEK_NUMBERS: usize = 6;
/// Numbers of a sample for which all units of a wave fit into one launch. A launch has at most 65,536 sums, and the
/// waves of known GPUs have up to 4,096 blocks.
const LAUNCH_NUMBERS: usize = 16;

/// Limits on the number of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockLimits {
    pub blocks_max: u64,
    /// The rule by which fewer blocks may be enough; `None` to simulate all.
    pub stop: Option<StopRule>,
}

impl BlockLimits {
    /// Bytes of the sums of all blocks, with `numbers` sums for each sample.
    pub fn bytes(&self, numbers: usize) -> usize {
        self.blocks_max as usize * numbers * size_of::<BlockSums>()
    }

    /// Estimated cost of simulating the greatest number of blocks, though fewer may be enough.
    pub fn cost_ns(&self, block_steps: i64, has_greeks: bool) -> u64 {
        cost::blocks(self.blocks_max, block_steps as u64, has_greeks)
    }
}

/// The paths that are simulated.
#[derive(Debug)]
pub(super) enum Paths {
    Price(Box<Simulation>),
    Greeks(Box<GreekSimulation>),
    Basket(BasketSimulation),
    BasketGreeks(BasketGreekSimulation),
    American(Box<AmericanSimulation>),
    AmericanGreeks(Box<AmericanGreekSimulation>),
}

impl Paths {
    /// True if it is known beforehand that nothing is paid.
    pub fn pays_never(&self) -> bool {
        match self {
            Self::Price(simulation) => simulation.pays_never(),
            Self::Greeks(greeks) => greeks.simulation().pays_never(),
            Self::Basket(_) | Self::BasketGreeks(_) | Self::American(_) | Self::AmericanGreeks(_) => false,
        }
    }

    /// The greatest discounted payoff of a sample if a put is simulated in place of a call; otherwise `None`.
    pub fn most_of_put(&self) -> Option<f64> {
        match self {
            Self::Price(simulation) => simulation.most_of_put(),
            Self::Greeks(greeks) => greeks.simulation().most_of_put(),
            Self::Basket(basket) => basket.most_of_put(),
            Self::BasketGreeks(greeks) => greeks.simulation().most_of_put(),
            Self::American(_) | Self::AmericanGreeks(_) => None,
        }
    }

    fn rate_key(&self) -> String {
        let (contract, precision) = match self {
            Self::Price(simulation) => (name_of(simulation), simulation.spec().precision),
            Self::Greeks(greeks) => (name_of(greeks.simulation()), greeks.simulation().spec().precision),
            Self::Basket(basket) => ("basket", basket.spec().precision),
            Self::BasketGreeks(greeks) => ("basket", greeks.simulation().spec().precision),
            Self::American(simulation) => ("american", simulation.spec().precision),
            Self::AmericanGreeks(greeks) => ("american", greeks.simulation().spec().precision),
        };
        let greeks = if self.has_greeks() { "/greeks" } else { "" };
        format!("{contract}{greeks}/{}", precision_of(precision))
    }

    pub fn has_greeks(&self) -> bool {
        match self {
            Self::Price(_) | Self::Basket(_) | Self::American(_) => false,
            Self::Greeks(_) | Self::BasketGreeks(_) | Self::AmericanGreeks(_) => true,
        }
    }

    /// Number of sums of a sample.
    pub fn numbers(&self) -> usize {
        match self {
            Self::BasketGreeks(greeks) => {
                BasketGreekSimulation::columns_of(greeks.simulation().spec().assets.len())
            }
            _ if self.has_greeks() => GREEK_NUMBERS,
            _ => 1,
        }
    }

    /// Steps of a sample of a block.
    pub fn block_steps(&self) -> i64 {
        let of_basket = |spec: &BasketSpec| (spec.assets.len() as u32, spec.antithetic);
        let (steps, antithetic) = match self {
            Self::Price(simulation) => (simulation.spec().steps, simulation.spec().antithetic),
            Self::Greeks(greeks) => (greeks.simulation().spec().steps, greeks.simulation().spec().antithetic),
            Self::Basket(basket) => of_basket(basket.spec()),
            Self::BasketGreeks(greeks) => of_basket(greeks.simulation().spec()),
            Self::American(simulation) => return american::block_steps(simulation.spec()),
            Self::AmericanGreeks(greeks) => return american::block_steps(greeks.simulation().spec()),
        };
        i64::from(steps) * if antithetic { 2 } else { 1 }
    }

    /// The estimate, and the equivalent number of samples.
    fn estimate(&self, Sums { plain, greeks: with_greeks }: &Sums) -> (SimulationResult, f64) {
        match self {
            Self::Price(simulation) => of_price(&simulation.estimate(plain)),
            Self::Greeks(greeks) => of_greeks(&greeks.estimate(with_greeks)),
            Self::Basket(basket) => of_price(&basket.estimate(plain)),
            Self::BasketGreeks(greeks) => of_basket(&greeks.estimate(plain)),
            Self::American(simulation) => of_price(&simulation.estimate(plain)),
            Self::AmericanGreeks(greeks) => of_greeks(&greeks.estimate(with_greeks)),
        }
    }
}

/// A round that simulates some blocks.
#[derive(Debug)]
pub(super) struct BlockRound {
    paths: Arc<Paths>,
    limits: BlockLimits,
    told: Arc<Told>,
    blocks: Range<u64>,
    /// Sums of the blocks of earlier rounds.
    before: Sums,
}

/// Sums of blocks, in order: those of paths with Greeks of one asset, and others.
#[derive(Clone, Debug, Default)]
struct Sums {
    plain: Vec<BlockSums>,
    greeks: Vec<GreekSums>,
}

impl BlockRound {
    /// The first round.
    pub fn first(paths: Arc<Paths>, limits: BlockLimits, told: Arc<Told>) -> Self {
        let blocks = match limits.stop.map(|stop| stop.progress(0, |_| f64::INFINITY)) {
            Some(StopDecision::Until(blocks)) => blocks,
            _ => limits.blocks_max,
        };
        Self { paths, limits, told, blocks: 0..blocks, before: Sums::default() }
    }

    fn blocks_of(&self, units: &Range<i64>) -> Range<u64> {
        self.blocks.start + units.start as u64..self.blocks.start + units.end as u64
    }
}

impl Round for BlockRound {
    fn units(&self) -> i64 {
        (self.blocks.end - self.blocks.start) as i64
    }

    fn rate_key(&self) -> String {
        self.paths.rate_key()
    }

    fn unit_cost(&self) -> i64 {
        self.paths.block_steps()
    }

    fn unit_width(&self) -> usize {
        self.paths.numbers().div_ceil(LAUNCH_NUMBERS)
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let blocks = self.blocks_of(&units);
        let (mut sums, mut greek_sums) = (Vec::new(), Vec::new());
        match &*self.paths {
            Paths::Price(simulation) => simulation.run(isa, blocks, &mut sums),
            Paths::Greeks(greeks) => greeks.run(isa, blocks, &mut greek_sums),
            Paths::Basket(basket) => basket.run(isa, blocks, &mut sums),
            Paths::BasketGreeks(greeks) => greeks.run(isa, blocks, &mut sums),
            Paths::American(simulation) => simulation.run(isa, blocks, &mut sums),
            Paths::AmericanGreeks(greeks) => greeks.run(isa, blocks, &mut greek_sums),
        }
        self.paths.partial(sums, greek_sums)
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let (pricing, blocks) = (&mut memory.pricing, self.blocks_of(&units));
        let (mut sums, mut greek_sums) = (Vec::new(), Vec::new());
        match &*self.paths {
            Paths::Price(simulation) => pricing.simulate(device, simulation, blocks, &mut sums)?,
            Paths::Greeks(greeks) => pricing.simulate_greeks(device, greeks, blocks, &mut greek_sums)?,
            Paths::Basket(basket) => pricing.simulate_basket(device, basket, blocks, &mut sums)?,
            Paths::BasketGreeks(greeks) => {
                pricing.simulate_basket_greeks(device, greeks, blocks, &mut sums)?
            }
            Paths::American(simulation) => {
                pricing.simulate_american(device, simulation, blocks, &mut sums)?
            }
            Paths::AmericanGreeks(greeks) => {
                pricing.simulate_american_greeks(device, greeks, blocks, &mut greek_sums)?
            }
        }
        Ok(self.paths.partial(sums, greek_sums))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let mut sums = self.before.clone();
        for partial in partials {
            match partial {
                Partial::Blocks(more) => sums.plain.extend_from_slice(more),
                Partial::GreekBlocks(more) => sums.greeks.extend_from_slice(more),
                _ => (),
            }
        }
        let BlockLimits { stop, .. } = self.limits;
        let done = self.blocks.end;
        let (mut result, effective) = self.paths.estimate(&sums);
        let is_known = self.told.judge(&mut result, effective, &self.paths);
        result.standard_error_met = stop.map(|stop| is_known && result.standard_error <= stop.standard_error);
        let error = if is_known { result.standard_error } else { f64::INFINITY };
        match stop.map(|stop| stop.progress(done, |_| error)) {
            // With fewer blocks the error was too great in the round before.
            Some(StopDecision::Until(blocks)) if blocks > done => Next::Round(Box::new(Self {
                paths: self.paths.clone(),
                limits: self.limits,
                told: self.told.clone(),
                blocks: done..blocks,
                before: sums,
            })),
            _ => Next::Outcome(RiskOutcome::Simulation(result)),
        }
    }
}

impl Paths {
    fn partial(&self, sums: Vec<BlockSums>, greek_sums: Vec<GreekSums>) -> Partial {
        match self {
            Self::Greeks(_) | Self::AmericanGreeks(_) => Partial::GreekBlocks(greek_sums),
            Self::Price(_) | Self::Basket(_) | Self::BasketGreeks(_) | Self::American(_) => {
                Partial::Blocks(sums)
            }
        }
    }
}

fn of_price(estimate: &Estimate) -> (SimulationResult, f64) {
    let result = SimulationResult {
        price: estimate.price,
        standard_error: estimate.standard_error,
        paths: estimate.samples as i64,
        greeks: Vec::new(),
        standard_error_met: None,
        warning: String::new(),
    };
    (result, estimate.effective)
}

fn of_greeks(estimate: &GreekEstimate) -> (SimulationResult, f64) {
    let GreekEstimate { price, delta, gamma, vega, theta, rho, samples, effective } = *estimate;
    let greeks = [("delta", delta), ("gamma", gamma), ("vega", vega), ("theta", theta), ("rho", rho)];
    let result = SimulationResult {
        price: price.value,
        standard_error: price.standard_error,
        paths: samples as i64,
        greeks: greeks.map(|(name, measured)| greek(name.to_owned(), measured)).into(),
        standard_error_met: None,
        warning: String::new(),
    };
    (result, effective)
}

/// Greeks asset by asset, each named with the asset's place in the request.
fn of_basket(estimate: &BasketGreekEstimate) -> (SimulationResult, f64) {
    let of_asset = |(asset, greeks): (usize, &AssetGreeks)| {
        let AssetGreeks { delta, gamma, vega } = *greeks;
        [("delta", delta), ("gamma", gamma), ("vega", vega)]
            .map(|(name, measured)| greek(format!("{name}[{asset}]"), measured))
    };
    let mut greeks: Vec<SimulatedGreek> = estimate.assets.iter().enumerate().flat_map(of_asset).collect();
    greeks.push(greek("theta".to_owned(), estimate.theta));
    greeks.push(greek("rho".to_owned(), estimate.rho));
    let result = SimulationResult {
        price: estimate.price.value,
        standard_error: estimate.price.standard_error,
        paths: estimate.samples as i64,
        greeks,
        standard_error_met: None,
        warning: String::new(),
    };
    (result, estimate.effective)
}

fn greek(name: String, Measured { value, standard_error }: Measured) -> SimulatedGreek {
    SimulatedGreek { name, value, standard_error }
}

fn name_of(simulation: &Simulation) -> &'static str {
    match simulation.spec().contract {
        Contract::European { .. } => "european",
        Contract::Asian { .. } => "asian",
        Contract::Barrier { .. } => "barrier",
        Contract::Lookback { .. } => "lookback",
    }
}

fn precision_of(precision: Precision) -> &'static str {
    match precision {
        Precision::F64 => "f64",
        Precision::Mixed => "mixed",
    }
}
