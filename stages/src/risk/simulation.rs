//! Monte Carlo. A unit is a block of samples; where a standard error is wanted, samples double from round to round.

use std::ops::Range;

use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{
    BLOCK_SAMPLES, BarrierKind, BlockSums, Contract, DevicePricing, ParameterError, Precision, Simulation,
    SimulationSpec,
};
use warptape_schemas::risk::{self, MarketAsOf, RiskError, RiskOutcome, SimulationProblem, SimulationResult};

use super::options::kind_of;
use super::{Finished, MarketOf, Partial, Round, assets, bad, check_count};

/// Samples of a request at most.
const PATHS_MAX: i64 = 1 << 30;
/// Blocks of the first round where a standard error is wanted.
const FIRST_BLOCKS: i64 = 4;

#[derive(Debug)]
pub(super) struct SimulationTask {
    simulation: Simulation,
    blocks_max: i64,
    standard_error: Option<f64>,
}

impl SimulationTask {
    pub(super) fn new(
        problem: &SimulationProblem,
        seed: i64,
        market_of: MarketOf<'_>,
        as_of: &mut Vec<MarketAsOf>,
    ) -> Result<Self, RiskError> {
        if !(1..=PATHS_MAX).contains(&problem.paths_max) {
            let given = problem.paths_max;
            return Err(bad("problem.paths_max", format!("{given}; it must be from 1 to {PATHS_MAX}")));
        }
        if problem.standard_error.is_some_and(|wanted| wanted.is_nan() || wanted <= 0.0) {
            return Err(bad("problem.standard_error", "it must be more than 0, or null to take all samples"));
        }
        check_count("problem.assets", problem.assets.len(), 1..=1)?;
        let assets = assets::resolve(&problem.assets, market_of, as_of)?;
        let spec = SimulationSpec {
            market: assets[0],
            contract: contract_of(&problem.contract)?,
            expiry_years: problem.expiry_years,
            steps: u32::try_from(problem.steps).unwrap_or(0),
            antithetic: problem.antithetic,
            precision: match problem.precision {
                risk::Precision::F64 => Precision::F64,
                risk::Precision::Mixed => Precision::Mixed,
            },
            key: seed as u64,
        };
        let simulation = Simulation::new(spec).map_err(to_risk_error)?;
        let blocks_max = (problem.paths_max as u64).div_ceil(BLOCK_SAMPLES) as i64;
        Ok(Self { simulation, blocks_max, standard_error: problem.standard_error })
    }

    pub(super) fn rate_key(&self) -> String {
        let spec = self.simulation.spec();
        let contract = match spec.contract {
            Contract::European { .. } => "european",
            Contract::Asian { .. } => "asian",
            Contract::Barrier { .. } => "barrier",
            Contract::Lookback { .. } => "lookback",
        };
        let precision = match spec.precision {
            Precision::F64 => "f64",
            Precision::Mixed => "mixed",
        };
        format!("{contract}/{precision}")
    }

    pub(super) fn unit_cost(&self) -> i64 {
        let spec = self.simulation.spec();
        i64::from(spec.steps) * if spec.antithetic { 2 } else { 1 }
    }

    pub(super) fn first_round(&self) -> Round {
        let units = match self.standard_error {
            Some(_) => self.blocks_max.min(FIRST_BLOCKS),
            None => self.blocks_max,
        };
        Round { first_unit: 0, units }
    }

    pub(super) fn run(&self, isa: Isa, blocks: Range<u64>) -> Partial {
        let mut sums = Vec::with_capacity((blocks.end - blocks.start) as usize);
        self.simulation.run(isa, blocks, &mut sums);
        Partial::Blocks(sums)
    }

    pub(super) fn run_on_device(
        &self,
        pricing: &mut DevicePricing,
        device: &mut dyn Device,
        blocks: Range<u64>,
    ) -> Result<Partial, DeviceError> {
        let mut sums = Vec::with_capacity((blocks.end - blocks.start) as usize);
        pricing.simulate(device, &self.simulation, blocks, &mut sums)?;
        Ok(Partial::Blocks(sums))
    }

    pub(super) fn finish(&self, blocks: &[BlockSums]) -> Finished {
        let estimate = self.simulation.estimate(blocks);
        let done = blocks.len() as i64;
        if self.standard_error.is_some_and(|wanted| estimate.standard_error > wanted)
            && done < self.blocks_max
        {
            return Finished::More(Round { first_unit: done, units: done.min(self.blocks_max - done) });
        }
        Finished::Outcome(RiskOutcome::Simulation(SimulationResult {
            price: estimate.price,
            standard_error: estimate.standard_error,
            paths: estimate.samples as i64,
            greeks: Vec::new(),
        }))
    }
}

fn contract_of(contract: &risk::Contract) -> Result<Contract, RiskError> {
    Ok(match contract {
        risk::Contract::European(european) => {
            Contract::European { kind: kind_of(european.kind), strike: european.strike }
        }
        risk::Contract::Asian(asian) => Contract::Asian { kind: kind_of(asian.kind), strike: asian.strike },
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
        risk::Contract::Basket(_) | risk::Contract::American(_) => {
            return Err(bad("problem.contract.type", "not built yet"));
        }
    })
}

/// Names the field where it stands in the request.
fn to_risk_error(error: ParameterError) -> RiskError {
    let field = match error.field {
        "spot" | "rate" | "dividend_yield" | "volatility" => format!("problem.assets[0].{}", error.field),
        "strike" | "barrier" => format!("problem.contract.{}", error.field),
        other => format!("problem.{other}"),
    };
    bad(field, error.to_string())
}
