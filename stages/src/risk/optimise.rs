//! Mean-variance optimisation. One unit computes a covariance of the market on the lane's device. Another finds the
//! weights, beside the lane's device.

use std::ops::Range;
use std::sync::Arc;

use warptape_events::risk::{Asset, Matrix, OptimisationProblem, OptimisationResult, RiskError, RiskOutcome};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::portfolio::{Covariance, exponential_on_device};

use super::assets::Resolved;
use super::matrices::{MarketReturns, of_matrix, symmetric};
use super::optimisation::{ASSETS_MAX, MeanVariance, Objective, OptimisationError};
use super::rounds::{DeviceRisk, Next, Partial, Plan, ProblemKind, Round};
use super::{bad, check_count, cost};

/// Most assets of a request: its weights are one unit, and the time of the solver grows as their cube.
const UNIT_ASSETS_MAX: usize = 256;
const _: () = assert!(UNIT_ASSETS_MAX <= ASSETS_MAX);

const COVARIANCE: &str = "problem.covariance";

impl ProblemKind for OptimisationProblem {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn matrix(&self) -> Option<&Matrix> {
        Some(&self.covariance)
    }

    fn plan(&self, assets: &Resolved, _: i64) -> Result<Plan, RiskError> {
        let count = assets.markets.len();
        check_count("problem.assets", count, 1..=UNIT_ASSETS_MAX)?;
        check_count("problem.expected_returns", self.expected_returns.len(), count..=count)?;
        check_count("problem.lower", self.lower.len(), count..=count)?;
        check_count("problem.upper", self.upper.len(), count..=count)?;
        let source = match &self.covariance {
            Matrix::Given(numbers) => {
                let covariance = Covariance::new(count, symmetric(count, numbers));
                let covariance = covariance.map_err(|error| of_matrix(&error, COVARIANCE))?;
                covariance.factor().map_err(|error| of_matrix(&error, COVARIANCE))?;
                CovarianceSource::Given(covariance)
            }
            Matrix::Market(_) => CovarianceSource::Returns(MarketReturns::of(assets, COVARIANCE)?),
        };
        let objective = match (self.risk_aversion, self.target_return) {
            (Some(aversion), None) => Objective::RiskAversion(aversion),
            (None, Some(target)) => Objective::TargetReturn(target),
            _ => {
                let message = "give either risk_aversion or target_return, and null for the other";
                return Err(bad("problem.risk_aversion", message));
            }
        };
        let wanted = Arc::new(Wanted {
            means: self.expected_returns.clone(),
            lower: self.lower.clone(),
            upper: self.upper.clone(),
            budget: self.budget,
            objective,
        });
        let returns = match &source {
            CovarianceSource::Given(_) => 0,
            CovarianceSource::Returns(returns) => returns.returns.len(),
        };
        Ok(Plan {
            first: match source {
                CovarianceSource::Given(covariance) => Box::new(WeightRound { wanted, covariance }),
                CovarianceSource::Returns(returns) => Box::new(CovarianceRound { wanted, returns }),
            },
            bytes: (returns + count * (count + 3)) * size_of::<f64>(),
            cost_ns: cost::optimisation(count, returns),
        })
    }
}

/// The source of the covariance.
enum CovarianceSource {
    Given(Covariance),
    Returns(MarketReturns),
}

/// Inputs of the search for weights.
#[derive(Debug)]
struct Wanted {
    means: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    budget: f64,
    objective: Objective,
}

/// Computes the covariance of returns.
#[derive(Debug)]
struct CovarianceRound {
    wanted: Arc<Wanted>,
    returns: MarketReturns,
}

impl Round for CovarianceRound {
    fn units(&self) -> i64 {
        1
    }

    fn rate_key(&self) -> String {
        "optimisation/covariance".to_owned()
    }

    fn run(&self, isa: Isa, _: Range<i64>) -> Partial {
        Partial::Covariance(Box::new(self.returns.covariance(isa, self.wanted.means.len())))
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        _: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let MarketReturns { returns, periods_per_year, decay, .. } = &self.returns;
        let assets = self.wanted.means.len();
        let found = exponential_on_device(device, &mut memory.work, assets, returns, *decay)?;
        let found = found.map(|covariance| covariance.scaled(*periods_per_year));
        Ok(Partial::Covariance(Box::new(found)))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let Some(Partial::Covariance(found)) = partials.last() else {
            unreachable!("the unit gives the covariance")
        };
        match &**found {
            Ok(covariance) => {
                let (wanted, covariance) = (self.wanted.clone(), covariance.clone());
                Next::Round(Box::new(WeightRound { wanted, covariance }))
            }
            Err(error) => Next::Outcome(RiskOutcome::Error(of_matrix(error, COVARIANCE))),
        }
    }
}

/// Finds the weights.
#[derive(Debug)]
struct WeightRound {
    wanted: Arc<Wanted>,
    covariance: Covariance,
}

impl Round for WeightRound {
    fn units(&self) -> i64 {
        1
    }

    fn rate_key(&self) -> String {
        "optimisation".to_owned()
    }

    fn is_host_only(&self) -> bool {
        true
    }

    fn run(&self, _: Isa, _: Range<i64>) -> Partial {
        let problem = MeanVariance {
            covariance: &self.covariance,
            means: &self.wanted.means,
            lower: &self.wanted.lower,
            upper: &self.wanted.upper,
            budget: self.wanted.budget,
            objective: self.wanted.objective,
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

    fn finish(&self, partials: &[&Partial]) -> Next {
        Partial::outcome(partials)
    }
}

/// Renames the field of an error as in the request.
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
