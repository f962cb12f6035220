//! Mean-variance optimisation, which is one unit: the covariance on the lane's device, the weights on the host.

use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::portfolio::{Covariance, CovarianceError, exponential_on_device};
use warptape_schemas::risk::{Matrix, OptimisationProblem, OptimisationResult, RiskError, RiskOutcome};

use super::assets::Resolved;
use super::matrices::{MarketReturns, of_matrix};
use super::optimisation::{ASSETS_MAX, MeanVariance, Objective, OptimisationError};
use super::{Partial, bad, check_count};

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
    Returns(MarketReturns),
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
                let covariance = Covariance::new(count, numbers.clone());
                Source::Given(covariance.map_err(|error| of_matrix(&error, COVARIANCE))?)
            }
            Matrix::Market(_) => Source::Returns(MarketReturns::of(assets, COVARIANCE)?),
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

    pub(super) fn run(&self, isa: Isa) -> Partial {
        let assets = self.means.len();
        self.solve(match &self.covariance {
            Source::Given(covariance) => Ok(covariance.clone()),
            Source::Returns(returns) => returns.covariance(isa, assets),
        })
    }

    pub(super) fn run_on_device(&self, device: &mut dyn Device) -> Result<Partial, DeviceError> {
        let assets = self.means.len();
        Ok(self.solve(match &self.covariance {
            Source::Given(covariance) => Ok(covariance.clone()),
            Source::Returns(MarketReturns { returns, periods_per_year, decay }) => {
                let found = exponential_on_device(device, assets, returns, *decay)?;
                found.map(|covariance| covariance.scaled(*periods_per_year))
            }
        }))
    }

    fn solve(&self, covariance: Result<Covariance, CovarianceError>) -> Partial {
        let solved = covariance.map_err(|error| of_matrix(&error, COVARIANCE)).and_then(|covariance| {
            let problem = MeanVariance {
                covariance: &covariance,
                means: &self.means,
                lower: &self.lower,
                upper: &self.upper,
                budget: self.budget,
                objective: self.objective,
            };
            problem.solve().map_err(|error| of_problem(&error))
        });
        Partial::Outcome(Box::new(match solved {
            Ok(optimum) => RiskOutcome::Optimisation(OptimisationResult {
                weights: optimum.weights,
                expected_return: optimum.mean,
                volatility: optimum.variance.max(0.0).sqrt(),
            }),
            Err(error) => RiskOutcome::Error(error),
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
