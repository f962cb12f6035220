//! Mean-variance optimisation: a unit for the covariance, on the lane's device, if it is of the market; and one for the weights,
//! aside.

use std::sync::OnceLock;

use warptape_events::risk::{Matrix, OptimisationProblem, OptimisationResult, RiskError, RiskOutcome};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError, WorkMemory};
use warptape_kernels::portfolio::{Covariance, exponential_on_device};

use super::assets::Resolved;
use super::matrices::{MarketReturns, of_matrix, symmetric};
use super::optimisation::{ASSETS_MAX, MeanVariance, Objective, OptimisationError};
use super::{Finished, Partial, Round, bad, check_count, cost};

/// Assets of a request at most: its weights are one unit, and the solver takes time as the cube of them.
const UNIT_ASSETS_MAX: usize = 256;
const _: () = assert!(UNIT_ASSETS_MAX <= ASSETS_MAX);

const COVARIANCE: &str = "problem.covariance";

#[derive(Debug)]
pub(super) struct OptimisationTask {
    covariance: Source,
    means: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    budget: f64,
    objective: Objective,
}

/// Where the covariance comes from.
#[derive(Debug)]
enum Source {
    Given(Covariance),
    Returns { returns: MarketReturns, found: OnceLock<Covariance> },
}

impl OptimisationTask {
    pub(super) fn new(problem: &OptimisationProblem, assets: &Resolved) -> Result<Self, RiskError> {
        let count = assets.markets.len();
        check_count("problem.assets", count, 1..=UNIT_ASSETS_MAX)?;
        check_count("problem.expected_returns", problem.expected_returns.len(), count..=count)?;
        check_count("problem.lower", problem.lower.len(), count..=count)?;
        check_count("problem.upper", problem.upper.len(), count..=count)?;
        let covariance = match &problem.covariance {
            Matrix::Given(numbers) => {
                let covariance = Covariance::new(count, symmetric(count, numbers));
                Source::Given(covariance.map_err(|error| of_matrix(&error, COVARIANCE))?)
            }
            Matrix::Market(_) => {
                Source::Returns { returns: MarketReturns::of(assets, COVARIANCE)?, found: OnceLock::new() }
            }
        };
        let objective = match (problem.risk_aversion, problem.target_return) {
            (Some(aversion), None) => Objective::RiskAversion(aversion),
            (None, Some(target)) => Objective::TargetReturn(target),
            _ => {
                let message = "give either risk_aversion or target_return, and null for the other";
                return Err(bad("problem.risk_aversion", message));
            }
        };
        Ok(Self {
            covariance,
            means: problem.expected_returns.clone(),
            lower: problem.lower.clone(),
            upper: problem.upper.clone(),
            budget: problem.budget,
            objective,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        let returns = match &self.covariance {
            Source::Given(_) => 0,
            Source::Returns { returns, .. } => returns.returns.len(),
        };
        (returns + self.means.len() * (self.means.len() + 3)) * size_of::<f64>()
    }

    pub(super) fn cost_ns(&self) -> u64 {
        let returns = match &self.covariance {
            Source::Given(_) => 0,
            Source::Returns { returns, .. } => returns.returns.len(),
        };
        cost::optimisation(self.means.len(), returns)
    }

    /// Whether the weights are next.
    pub(super) fn is_aside(&self) -> bool {
        match &self.covariance {
            Source::Given(_) => true,
            Source::Returns { found, .. } => found.get().is_some(),
        }
    }

    pub(super) fn rate_key(&self) -> &'static str {
        if self.is_aside() { "optimisation" } else { "optimisation/covariance" }
    }

    pub(super) fn run(&self, isa: Isa) -> Partial {
        match self.next() {
            Ok(covariance) => self.solve(covariance),
            Err(returns) => Partial::Covariance(Box::new(returns.covariance(isa, self.means.len()))),
        }
    }

    pub(super) fn run_on_device(
        &self,
        device: &mut dyn Device,
        memory: &mut WorkMemory,
    ) -> Result<Partial, DeviceError> {
        match self.next() {
            Ok(covariance) => Ok(self.solve(covariance)),
            Err(MarketReturns { returns, periods_per_year, decay, .. }) => {
                let found = exponential_on_device(device, memory, self.means.len(), returns, *decay)?;
                let found = found.map(|covariance| covariance.scaled(*periods_per_year));
                Ok(Partial::Covariance(Box::new(found)))
            }
        }
    }

    /// What the weights are of, or what that is of.
    fn next(&self) -> Result<&Covariance, &MarketReturns> {
        match &self.covariance {
            Source::Given(covariance) => Ok(covariance),
            Source::Returns { returns, found } => found.get().ok_or(returns),
        }
    }

    pub(super) fn finish(&self, partials: &[&Partial]) -> Finished {
        match (partials, &self.covariance) {
            ([.., Partial::Outcome(outcome)], _) => Finished::Outcome((**outcome).clone()),
            ([Partial::Covariance(covariance)], Source::Returns { found, .. }) => match &**covariance {
                Ok(covariance) => {
                    found.get_or_init(|| covariance.clone());
                    Finished::More(Round { first_unit: 1, units: 1 })
                }
                Err(error) => Finished::Outcome(RiskOutcome::Error(of_matrix(error, COVARIANCE))),
            },
            _ => unreachable!("a unit gives either"),
        }
    }

    fn solve(&self, covariance: &Covariance) -> Partial {
        let problem = MeanVariance {
            covariance,
            means: &self.means,
            lower: &self.lower,
            upper: &self.upper,
            budget: self.budget,
            objective: self.objective,
        };
        Partial::Outcome(Box::new(match problem.solve() {
            Ok(optimum) => RiskOutcome::Optimisation(OptimisationResult {
                weights: optimum.weights,
                expected_return: optimum.mean,
                volatility: optimum.variance.max(0.0).sqrt(),
            }),
            Err(error) => RiskOutcome::Error(of_problem(&error)),
        }))
    }
}

/// Names the field where it stands in the request.
fn of_problem(error: &OptimisationError) -> RiskError {
    let name = |field: &str| match field {
        "means" => "expected_returns".to_owned(),
        other => other.to_owned(),
    };
    let field = match error {
        OptimisationError::Parameter { field, asset: Some(asset), .. } => format!("{}[{asset}]", name(field)),
        OptimisationError::Shape { field, .. }
        | OptimisationError::Parameter { field, .. }
        | OptimisationError::Infeasible { field, .. } => name(field),
        OptimisationError::Assets { .. } => "assets".to_owned(),
        OptimisationError::Covariance(_) | OptimisationError::Unsolved { .. } => "covariance".to_owned(),
    };
    bad(format!("problem.{field}"), error.to_string())
}
