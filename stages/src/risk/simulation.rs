//! Monte Carlo. A unit is a block of samples; where a standard error is wanted, samples double from round to round, as [`StopRule`]
//! says. The rule by which an American option is exercised is found by rounds of one unit before them.

use std::ops::Range;

use warptape_events::risk::{
    self, Matrix, RiskError, RiskOutcome, SimulatedGreek, SimulationProblem, SimulationResult,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{
    AmericanSpec, AssetGreeks, AssetMarket, BarrierKind, BasketAsset, BasketError, BasketGreekEstimate,
    BasketGreekSimulation, BasketSimulation, BasketSpec, BlockSums, Contract, DevicePricing, Estimate,
    GreekEstimate, GreekSimulation, GreekSums, Measured, ParameterError, Precision, Progress, Sampling,
    Simulation, SimulationSpec, StopRule,
};

use super::american::{AmericanTask, Found};
use super::assets::Resolved;
use super::matrices::{self, MarketReturns, of_matrix};
use super::options::kind_of;
use super::rules::Rules;
use super::{Finished, Partial, Round, bad, check_count, cost};

/// Samples of a request at most, times what is summed of each: sums of blocks are kept until the end, and added by who waits for it.
const NUMBERS_MAX: i64 = 1 << 28;
/// What is summed with Greeks of one asset.
const GREEK_NUMBERS: i64 = 6;

#[derive(Debug)]
pub(super) struct SimulationTask {
    paths: Paths,
    blocks_max: u64,
    /// When to stop before; `None`: not.
    stop: Option<StopRule>,
}

/// What is simulated.
#[derive(Debug)]
enum Paths {
    Price(Simulation),
    Greeks(Box<GreekSimulation>),
    Basket(BasketSimulation),
    BasketGreeks(BasketGreekSimulation),
    American(AmericanTask),
}

impl SimulationTask {
    pub(super) fn new(
        problem: &SimulationProblem,
        seed: i64,
        assets: &Resolved,
        rules: Rules,
    ) -> Result<Self, RiskError> {
        if problem.steps < 1 {
            return Err(bad("problem.steps", format!("{}; it must be from 1 on", problem.steps)));
        }
        check_paths(problem)?;
        if problem.standard_error.is_some_and(|wanted| wanted.is_nan() || wanted <= 0.0) {
            return Err(bad("problem.standard_error", "it must be more than 0, or null to take all samples"));
        }
        let blocks_max = sampling_of(problem, rules).blocks_of(problem.paths_max as u64);
        let stop = problem.standard_error.map(|standard_error| StopRule { standard_error, blocks_max });
        let paths = Paths::new(problem, seed as u64, assets, rules)?;
        // After all else that may be wrong, so that what was refused before there was this is refused in the same words.
        if problem.antithetic && sampling_of(problem, rules) == Sampling::Sobol {
            let message = "true; it must be false where problem.sampling is SOBOL, whose points are even on both sides by themselves: \
                           ask for one of them";
            return Err(bad("problem.antithetic", message));
        }
        Ok(Self { paths, blocks_max, stop })
    }

    pub(super) fn rate_key(&self) -> String {
        let (contract, precision) = match &self.paths {
            Paths::Price(simulation) => (name_of(simulation), simulation.spec().precision),
            Paths::Greeks(greeks) => (name_of(greeks.simulation()), greeks.simulation().spec().precision),
            Paths::Basket(basket) => ("basket", basket.spec().precision),
            Paths::BasketGreeks(greeks) => ("basket", greeks.simulation().spec().precision),
            Paths::American(american) if !american.is_found() => return "american/rule".to_owned(),
            Paths::American(american) => ("american", american.spec().precision),
        };
        let greeks = if self.has_greeks() { "/greeks" } else { "" };
        format!("{contract}{greeks}/{}", precision_of(precision))
    }

    fn has_greeks(&self) -> bool {
        match &self.paths {
            Paths::Price(_) | Paths::Basket(_) => false,
            Paths::Greeks(_) | Paths::BasketGreeks(_) => true,
            Paths::American(american) => american.has_greeks(),
        }
    }

    /// Of all samples that there may be, also where fewer do.
    pub(super) fn cost_ns(&self) -> u64 {
        let rule = match &self.paths {
            Paths::American(american) => american.rule_cost_ns(),
            _ => 0,
        };
        rule.saturating_add(cost::blocks(self.blocks_max, self.block_steps() as u64, self.has_greeks()))
    }

    pub(super) fn unit_cost(&self) -> i64 {
        match &self.paths {
            Paths::American(american) if !american.is_found() => american.unit_cost(),
            _ => self.block_steps(),
        }
    }

    /// Steps of a sample of a block.
    fn block_steps(&self) -> i64 {
        let of_basket = |spec: &BasketSpec| (spec.assets.len() as u32, spec.antithetic);
        let (steps, antithetic) = match &self.paths {
            Paths::Price(simulation) => (simulation.spec().steps, simulation.spec().antithetic),
            Paths::Greeks(greeks) => {
                (greeks.simulation().spec().steps, greeks.simulation().spec().antithetic)
            }
            Paths::Basket(basket) => of_basket(basket.spec()),
            Paths::BasketGreeks(greeks) => of_basket(greeks.simulation().spec()),
            Paths::American(american) => (american.spec().exercises, american.spec().antithetic),
        };
        i64::from(steps) * if antithetic { 2 } else { 1 }
    }

    /// Bytes of what its blocks may come to.
    pub(super) fn bytes(&self) -> usize {
        let numbers = match &self.paths {
            Paths::BasketGreeks(greeks) => {
                BasketGreekSimulation::columns_of(greeks.simulation().spec().assets.len())
            }
            _ if self.has_greeks() => GREEK_NUMBERS as usize,
            _ => 1,
        };
        self.blocks_max as usize * numbers * size_of::<BlockSums>()
    }

    /// Units before those of blocks.
    fn pilots(&self) -> i64 {
        match &self.paths {
            Paths::American(american) => american.units(),
            _ => 0,
        }
    }

    pub(super) fn first_round(&self) -> Round {
        match self.pilots() {
            0 => self.first_blocks(),
            _ => Round { first_unit: 0, units: 1 },
        }
    }

    fn first_blocks(&self) -> Round {
        let units = match self.stop.map(|stop| stop.progress(0, |_| f64::INFINITY)) {
            Some(Progress::Until(blocks)) => blocks,
            _ => self.blocks_max,
        };
        Round { first_unit: self.pilots(), units: units as i64 }
    }

    /// The blocks of units; `None` for the unit that finds a rule.
    fn blocks(&self, units: Range<i64>) -> Option<Range<u64>> {
        let first = units.start - self.pilots();
        (first >= 0).then(|| first as u64..(units.end - self.pilots()) as u64)
    }

    pub(super) fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let end = units.end;
        let Some(blocks) = self.blocks(units) else { return self.find_rule(isa, end) };
        let mut sums = Vec::new();
        match &self.paths {
            Paths::Price(simulation) => simulation.run(isa, blocks, &mut sums),
            Paths::Greeks(greeks) => {
                let mut sums = Vec::new();
                greeks.run(isa, blocks, &mut sums);
                return Partial::GreekBlocks(sums);
            }
            Paths::Basket(basket) => basket.run(isa, blocks, &mut sums),
            Paths::BasketGreeks(greeks) => greeks.run(isa, blocks, &mut sums),
            Paths::American(american) => return american.run(isa, blocks),
        }
        Partial::Blocks(sums)
    }

    pub(super) fn run_on_device(
        &self,
        pricing: &mut DevicePricing,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let end = units.end;
        // A rule is found on the host: each date needs the one after it.
        let Some(blocks) = self.blocks(units) else { return Ok(self.find_rule(Isa::detect(), end)) };
        let mut sums = Vec::new();
        match &self.paths {
            Paths::Price(simulation) => pricing.simulate(device, simulation, blocks, &mut sums)?,
            Paths::Greeks(greeks) => {
                let mut sums = Vec::new();
                pricing.simulate_greeks(device, greeks, blocks, &mut sums)?;
                return Ok(Partial::GreekBlocks(sums));
            }
            Paths::Basket(basket) => pricing.simulate_basket(device, basket, blocks, &mut sums)?,
            Paths::BasketGreeks(greeks) => {
                pricing.simulate_basket_greeks(device, greeks, blocks, &mut sums)?
            }
            Paths::American(american) => return american.run_on_device(pricing, device, blocks),
        }
        Ok(Partial::Blocks(sums))
    }

    fn find_rule(&self, isa: Isa, end: i64) -> Partial {
        let Paths::American(american) = &self.paths else { unreachable!("others have blocks alone") };
        american.find_rule(isa, end)
    }

    pub(super) fn finish(&self, partials: &[&Partial]) -> Finished {
        if let Some(Partial::Rule(_)) = partials.last() {
            let done = partials.len() as i64;
            let is_found = done == self.pilots();
            let next = if is_found { self.first_blocks() } else { Round { first_unit: done, units: 1 } };
            return Finished::More(next);
        }
        let done: u64 = partials.iter().map(|partial| self.blocks_of(partial)).sum();
        let mut result = self.estimate(partials);
        result.standard_error_met = self.stop.map(|stop| result.standard_error <= stop.standard_error);
        match self.stop.map(|stop| stop.progress(done, |_| result.standard_error)) {
            // Of fewer blocks the error was too great in the round before.
            Some(Progress::Until(blocks)) if blocks > done => Finished::More(Round {
                first_unit: self.pilots() + done as i64,
                units: (blocks - done) as i64,
            }),
            _ => Finished::Outcome(RiskOutcome::Simulation(result)),
        }
    }

    fn blocks_of(&self, partial: &Partial) -> u64 {
        match (partial, &self.paths) {
            (Partial::Blocks(sums), Paths::BasketGreeks(greeks)) => (sums.len() / greeks.columns()) as u64,
            (Partial::Blocks(sums), _) => sums.len() as u64,
            (Partial::GreekBlocks(sums), _) => sums.len() as u64,
            _ => 0,
        }
    }

    fn estimate(&self, partials: &[&Partial]) -> SimulationResult {
        let (mut sums, mut greek_sums): (Vec<BlockSums>, Vec<GreekSums>) = (Vec::new(), Vec::new());
        for partial in partials {
            match partial {
                Partial::Blocks(more) => sums.extend_from_slice(more),
                Partial::GreekBlocks(more) => greek_sums.extend_from_slice(more),
                _ => (),
            }
        }
        match &self.paths {
            Paths::Price(simulation) => of_price(&simulation.estimate(&sums)),
            Paths::Greeks(greeks) => of_greeks(&greeks.estimate(&greek_sums)),
            Paths::Basket(basket) => of_price(&basket.estimate(&sums)),
            Paths::BasketGreeks(greeks) => of_basket(&greeks.estimate(&sums)),
            Paths::American(american) => match american.found() {
                Found::Price(simulation) => of_price(&simulation.estimate(&sums)),
                Found::Greeks(greeks) => of_greeks(&greeks.estimate(&greek_sums)),
            },
        }
    }
}

/// How many samples there may be.
pub(super) fn check_paths(problem: &SimulationProblem) -> Result<(), RiskError> {
    let (given, paths_max) = (problem.paths_max, NUMBERS_MAX / numbers_of(problem));
    if (1..=paths_max).contains(&given) {
        return Ok(());
    }
    Err(bad("problem.paths_max", format!("{given}; it must be from 1 to {paths_max}")))
}

fn of_price(estimate: &Estimate) -> SimulationResult {
    SimulationResult {
        price: estimate.price,
        standard_error: estimate.standard_error,
        paths: estimate.samples as i64,
        greeks: Vec::new(),
        standard_error_met: None,
    }
}

fn of_greeks(estimate: &GreekEstimate) -> SimulationResult {
    let GreekEstimate { price, delta, gamma, vega, theta, rho, samples } = *estimate;
    let greeks = [("delta", delta), ("gamma", gamma), ("vega", vega), ("theta", theta), ("rho", rho)];
    SimulationResult {
        price: price.value,
        standard_error: price.standard_error,
        paths: samples as i64,
        greeks: greeks.map(|(name, measured)| greek(name.to_owned(), measured)).into(),
        standard_error_met: None,
    }
}

/// Asset after asset, each Greek with the asset's place in the request.
fn of_basket(estimate: &BasketGreekEstimate) -> SimulationResult {
    let of_asset = |(asset, greeks): (usize, &AssetGreeks)| {
        let AssetGreeks { delta, gamma, vega } = *greeks;
        [("delta", delta), ("gamma", gamma), ("vega", vega)]
            .map(|(name, measured)| greek(format!("{name}[{asset}]"), measured))
    };
    let mut greeks: Vec<SimulatedGreek> = estimate.assets.iter().enumerate().flat_map(of_asset).collect();
    greeks.push(greek("theta".to_owned(), estimate.theta));
    greeks.push(greek("rho".to_owned(), estimate.rho));
    SimulationResult {
        price: estimate.price.value,
        standard_error: estimate.price.standard_error,
        paths: estimate.samples as i64,
        greeks,
        standard_error_met: None,
    }
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

impl Paths {
    fn new(
        problem: &SimulationProblem,
        key: u64,
        assets: &Resolved,
        rules: Rules,
    ) -> Result<Self, RiskError> {
        let precision = match problem.precision {
            risk::Precision::F64 => Precision::F64,
            risk::Precision::Mixed => Precision::Mixed,
        };
        let contract = match &problem.contract {
            risk::Contract::Basket(basket) => {
                return Self::basket(problem, basket, precision, key, assets, rules);
            }
            risk::Contract::American(american) => {
                return Self::american(problem, american, precision, key, single(assets)?, rules);
            }
            risk::Contract::European(european) => {
                Contract::European { kind: kind_of(european.kind), strike: european.strike }
            }
            risk::Contract::Asian(asian) => {
                Contract::Asian { kind: kind_of(asian.kind), strike: asian.strike }
            }
            risk::Contract::Barrier(barrier) => Contract::Barrier {
                kind: kind_of(barrier.kind),
                strike: barrier.strike,
                barrier_kind: match barrier.barrier_kind {
                    risk::BarrierKind::UpOut => BarrierKind::UpOut,
                    risk::BarrierKind::UpIn => BarrierKind::UpIn,
                    risk::BarrierKind::DownOut => BarrierKind::DownOut,
                    risk::BarrierKind::DownIn => BarrierKind::DownIn,
                },
                barrier: barrier.barrier,
            },
            risk::Contract::Lookback(lookback) => {
                Contract::Lookback { kind: kind_of(lookback.kind), strike: lookback.strike }
            }
        };
        let spec = SimulationSpec {
            market: single(assets)?,
            contract,
            expiry_years: problem.expiry_years,
            steps: steps_of(problem),
            antithetic: problem.antithetic,
            sampling: sampling_of(problem, rules),
            precision,
            key,
        };
        let simulation = match problem.greeks {
            true => GreekSimulation::new(spec).map(Box::new).map(Paths::Greeks),
            false => Simulation::new(spec).map(Paths::Price),
        };
        simulation.map_err(|error| to_risk_error(&error, 0))
    }

    fn basket(
        problem: &SimulationProblem,
        basket: &risk::Basket,
        precision: Precision,
        key: u64,
        assets: &Resolved,
        rules: Rules,
    ) -> Result<Self, RiskError> {
        let count = assets.markets.len();
        check_count("problem.contract.weights", basket.weights.len(), count..=count)?;
        if let Some(number) = assets.markets.iter().position(|market| market.rate != assets.markets[0].rate) {
            let message = "the assets of a basket have one interest rate: give all the same".to_owned();
            return Err(bad(format!("problem.assets[{number}].rate"), message));
        }
        let field = "problem.correlations";
        let correlations = match &problem.correlations {
            Matrix::Given(numbers) if numbers.is_empty() && count == 1 => vec![1.0],
            Matrix::Given(numbers) => matrices::correlations(count, numbers),
            Matrix::Market(_) => {
                let covariance = MarketReturns::of(assets, field)?.covariance(Isa::Baseline, count);
                covariance.map_err(|error| of_matrix(&error, field))?.correlations()
            }
        };
        let asset = |(market, weight): (&AssetMarket, &f64)| BasketAsset {
            spot: market.spot,
            dividend_yield: market.dividend_yield,
            volatility: market.volatility,
            weight: *weight,
        };
        let spec = BasketSpec {
            assets: assets.markets.iter().zip(&basket.weights).map(asset).collect(),
            correlations,
            rate: assets.markets.first().map_or(0.0, |market| market.rate),
            kind: kind_of(basket.kind),
            strike: basket.strike,
            expiry_years: problem.expiry_years,
            antithetic: problem.antithetic,
            sampling: sampling_of(problem, rules),
            precision,
            key,
        };
        let simulation = BasketSimulation::new(spec).map_err(|error| match &error {
            BasketError::Parameter(error) => to_risk_error(error, 0),
            BasketError::Asset { asset, error } if error.field == "weight" => {
                bad(format!("problem.contract.weights[{asset}]"), error.to_string())
            }
            BasketError::Asset { asset, error } => to_risk_error(error, *asset),
            BasketError::Assets { .. } => bad("problem.assets", error.to_string()),
            BasketError::Correlations(_) => bad(field, error.to_string()),
        })?;
        if !problem.greeks {
            return Ok(Paths::Basket(simulation));
        }
        Ok(Paths::BasketGreeks(BasketGreekSimulation::new(simulation)))
    }

    fn american(
        problem: &SimulationProblem,
        american: &risk::American,
        precision: Precision,
        key: u64,
        market: AssetMarket,
        rules: Rules,
    ) -> Result<Self, RiskError> {
        let spec = AmericanSpec {
            market,
            kind: kind_of(american.kind),
            strike: american.strike,
            expiry_years: problem.expiry_years,
            exercises: steps_of(problem),
            pilot_blocks: AmericanTask::pilot_blocks(problem.greeks),
            antithetic: problem.antithetic,
            sampling: sampling_of(problem, rules),
            precision,
            key,
            is_floored: rules > Rules::First,
        };
        let task = AmericanTask::new(spec, problem.greeks);
        task.map(Paths::American).map_err(|error| to_risk_error(&error, 0))
    }
}

/// What is summed of each sample.
fn numbers_of(problem: &SimulationProblem) -> i64 {
    match &problem.contract {
        _ if !problem.greeks => 1,
        risk::Contract::Basket(_) => BasketGreekSimulation::columns_of(problem.assets.len()) as i64,
        _ => GREEK_NUMBERS,
    }
}

/// The only asset.
pub(super) fn single(assets: &Resolved) -> Result<AssetMarket, RiskError> {
    check_count("problem.assets", assets.markets.len(), 1..=1)?;
    Ok(assets.markets[0])
}

fn sampling_of(problem: &SimulationProblem, rules: Rules) -> Sampling {
    match (problem.sampling, rules) {
        (risk::Sampling::Philox, _) => Sampling::Random,
        (risk::Sampling::Sobol, Rules::Now) => Sampling::Sobol,
        (risk::Sampling::Sobol, Rules::First | Rules::SobolInTimeOrder) => Sampling::SobolInTimeOrder,
    }
}

/// Not negative: that is checked before.
fn steps_of(problem: &SimulationProblem) -> u32 {
    problem.steps as u32
}

/// Names the field where it stands in the request.
pub(super) fn to_risk_error(error: &ParameterError, asset: usize) -> RiskError {
    let field = match error.field {
        "spot" | "rate" | "dividend_yield" | "volatility" => {
            format!("problem.assets[{asset}].{}", error.field)
        }
        "strike" | "barrier" => format!("problem.contract.{}", error.field),
        "exercises" | "pilot_blocks" => "problem.steps".to_owned(),
        other => format!("problem.{other}"),
    };
    bad(field, error.to_string())
}
