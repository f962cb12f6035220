//! Monte Carlo: a problem is made into paths, which [`BlockRound`]s simulate. [`RuleRound`]s before them find the
//! exercise rule of an American option.

use std::sync::Arc;

use warptape_events::risk::{self, Asset, Matrix, RiskError, SimulationProblem};
use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AmericanSpec, AssetMarket, BasketAsset, BasketError, BasketGreekSimulation, BasketSimulation, BasketSpec,
    Contract, GreekSimulation, ParameterError, Sampling, Simulation, SimulationSpec, StopRule,
};

use super::american::{self, RuleRound};
use super::assets::Resolved;
use super::blocks::{BlockLimits, BlockRound, GREEK_NUMBERS, Paths, Told};
use super::matrices::{self, MarketReturns, of_matrix};
use super::rounds::{Plan, ProblemKind, Round};
use super::{bad, check_count, early_exercise};

/// Greatest product of a request's samples and the sums of each. Sums of blocks are kept until the end, and a waiting
/// thread adds them up.
const NUMBERS_MAX: i64 = 1 << 28;

impl ProblemKind for SimulationProblem {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn matrix(&self) -> Option<&Matrix> {
        Some(&self.correlations)
    }

    fn plan(&self, assets: &Resolved, seed: i64) -> Result<Plan, RiskError> {
        if early_exercise::is_asked(self) {
            return early_exercise::plan(self, assets);
        }
        if self.steps < 1 {
            return Err(bad("problem.steps", format!("{}; it must be from 1 on", self.steps)));
        }
        check_paths(self)?;
        if self.standard_error.is_some_and(|wanted| wanted.is_nan() || wanted <= 0.0) {
            return Err(bad("problem.standard_error", "it must be more than 0, or null to take all samples"));
        }
        let blocks_max = sampling_of(self).blocks_of(self.paths_max as u64);
        let stop = self.standard_error.map(|standard_error| StopRule { standard_error, blocks_max });
        let simulated = SimulatedContract::new(self, seed as u64, assets)?;
        let told = Arc::new(Told::new(self, assets));
        if self.antithetic && sampling_of(self) == Sampling::Sobol {
            let message = "true; it must be false where problem.sampling is SOBOL, whose points are even on both sides by themselves: \
                           ask for one of them";
            return Err(bad("problem.antithetic", message));
        }
        Ok(simulated.plan(BlockLimits { blocks_max, stop }, told))
    }
}

/// The paths to simulate, or the option whose rule comes first.
enum SimulatedContract {
    Paths(Arc<Paths>),
    /// An American option, with Greeks if true; its exercise rule is to be found first.
    American(AmericanSpec, bool),
}

impl SimulatedContract {
    fn of(paths: Paths) -> Self {
        Self::Paths(Arc::new(paths))
    }

    fn plan(self, limits: BlockLimits, told: Arc<Told>) -> Plan {
        let bytes = |numbers: usize| limits.bytes(numbers);
        match self {
            Self::Paths(paths) => Plan {
                bytes: bytes(paths.numbers()),
                cost_ns: limits.cost_ns(paths.block_steps(), paths.has_greeks()),
                first: Box::new(BlockRound::first(paths, limits, told)),
            },
            Self::American(spec, has_greeks) => {
                let blocks_ns = limits.cost_ns(american::block_steps(&spec), has_greeks);
                let first: Box<dyn Round> = Box::new(RuleRound::first(spec, has_greeks, limits, told));
                Plan {
                    first,
                    bytes: bytes(if has_greeks { GREEK_NUMBERS } else { 1 }),
                    cost_ns: american::rule_cost_ns(&spec).saturating_add(blocks_ns),
                }
            }
        }
    }
}

/// Checks the greatest number of samples.
pub(super) fn check_paths(problem: &SimulationProblem) -> Result<(), RiskError> {
    let (given, paths_max) = (problem.paths_max, NUMBERS_MAX / numbers_of(problem));
    if (1..=paths_max).contains(&given) {
        return Ok(());
    }
    Err(bad("problem.paths_max", format!("{given}; it must be from 1 to {paths_max}")))
}

impl SimulatedContract {
    fn new(problem: &SimulationProblem, key: u64, assets: &Resolved) -> Result<Self, RiskError> {
        let contract = match &problem.contract {
            risk::Contract::Basket(basket) => {
                return Self::basket(problem, basket, key, assets);
            }
            risk::Contract::American(american) => {
                return Self::american(problem, american, key, single(assets)?);
            }
            risk::Contract::European(european) => {
                Contract::European { kind: european.kind, strike: european.strike }
            }
            risk::Contract::Asian(asian) => Contract::Asian { kind: asian.kind, strike: asian.strike },
            risk::Contract::Barrier(barrier) => Contract::Barrier {
                kind: barrier.kind,
                strike: barrier.strike,
                barrier_kind: barrier.barrier_kind,
                barrier: barrier.barrier,
            },
            risk::Contract::Lookback(lookback) => {
                Contract::Lookback { kind: lookback.kind, strike: lookback.strike }
            }
        };
        let spec = SimulationSpec {
            market: single(assets)?,
            contract,
            expiry_years: problem.expiry_years,
            steps: steps_of(problem),
            antithetic: problem.antithetic,
            sampling: sampling_of(problem),
            precision: problem.precision,
            key,
        };
        let simulation = match problem.greeks {
            true => GreekSimulation::new(spec).map(Box::new).map(Paths::Greeks),
            false => Simulation::new(spec).map(|simulation| Paths::Price(Box::new(simulation))),
        };
        simulation.map(Self::of).map_err(|error| to_risk_error(&error, 0))
    }

    fn basket(
        problem: &SimulationProblem,
        basket: &risk::Basket,
        key: u64,
        assets: &Resolved,
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
            kind: basket.kind,
            strike: basket.strike,
            expiry_years: problem.expiry_years,
            antithetic: problem.antithetic,
            sampling: sampling_of(problem),
            precision: problem.precision,
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
        Ok(Self::of(match problem.greeks {
            true => Paths::BasketGreeks(BasketGreekSimulation::new(simulation)),
            false => Paths::Basket(simulation),
        }))
    }

    fn american(
        problem: &SimulationProblem,
        american: &risk::American,
        key: u64,
        market: AssetMarket,
    ) -> Result<Self, RiskError> {
        let spec = AmericanSpec {
            market,
            kind: american.kind,
            strike: american.strike,
            expiry_years: problem.expiry_years,
            exercises: steps_of(problem),
            pilot_blocks: american::pilot_blocks(problem.greeks),
            antithetic: problem.antithetic,
            sampling: sampling_of(problem),
            precision: problem.precision,
            key,
        };
        spec.check().map_err(|error| to_risk_error(&error, 0))?;
        Ok(Self::American(spec, problem.greeks))
    }
}

/// Number of sums of each sample.
fn numbers_of(problem: &SimulationProblem) -> i64 {
    match &problem.contract {
        _ if !problem.greeks => 1,
        risk::Contract::Basket(_) => BasketGreekSimulation::columns_of(problem.assets.len()) as i64,
        _ => GREEK_NUMBERS as i64,
    }
}

/// The only asset.
pub(super) fn single(assets: &Resolved) -> Result<AssetMarket, RiskError> {
    check_count("problem.assets", assets.markets.len(), 1..=1)?;
    Ok(assets.markets[0])
}

fn sampling_of(problem: &SimulationProblem) -> Sampling {
    match problem.sampling {
        risk::Sampling::Philox => Sampling::Random,
        risk::Sampling::Sobol => Sampling::Sobol,
    }
}

/// The number of steps, which was checked not to be negative.
fn steps_of(problem: &SimulationProblem) -> u32 {
    problem.steps as u32
}

/// Renames the field of an error as in the request.
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
