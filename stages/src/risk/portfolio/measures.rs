//! Measures of a portfolio, made from the request: with given, drawn or historical scenarios, or with a covariance.

use std::sync::Arc;

use warptape_events::risk::{Matrix, PortfolioProblem, RiskError, RiskMeasure, StressScenario};
use warptape_kernels::Isa;
use warptape_kernels::portfolio::{
    CONFIDENCE_RANGE, Covariance, Drawn, Returns, ScenarioError, Scenarios, Shock, TAIL_BLOCK,
};

use super::super::assets::Resolved;
use super::super::matrices::{MarketReturns, of_matrix, symmetric};
use super::super::{bad, check_count};
use super::CELLS_MAX;

/// Greatest product of books and positions for parametric risk, which is one unit.
const PARAMETRIC_PARTS_MAX: usize = 1 << 20;
/// Most assets of a covariance: it is factored before lanes have work on it.
const COVARIANCE_ASSETS_MAX: usize = 256;
/// Greatest product of positions and blocks of the tail: the loss of each position in each block is kept until the end.
const PARTS_MAX: usize = 1 << 22;
const HORIZON: &str = "problem.measure.horizon_years";
/// Greatest horizon, in years.
const HORIZON_YEARS_MAX: f64 = 60.0;

/// A measure of a portfolio with its scenarios.
#[derive(Clone, Debug)]
pub(super) enum Measure {
    Simulated {
        scenarios: Arc<Scenarios>,
        confidence: f64,
        /// `None` if only the asker knows it.
        horizon_years: Option<f64>,
        /// True if measures have a standard error.
        are_drawn: bool,
    },
    Parametric {
        covariance: Covariance,
        confidence: f64,
        horizon_years: f64,
    },
    Stress {
        scenarios: Arc<Scenarios>,
        names: Vec<String>,
    },
}

/// Approximate number of scenarios of the tail.
pub(super) fn tail_of(scenarios: &Scenarios, confidence: f64) -> usize {
    (scenarios.len() as f64 * (1.0 - confidence)) as usize + 1
}

impl Measure {
    pub(super) fn new(measure: &RiskMeasure, key: u64, assets: &Resolved) -> Result<Self, RiskError> {
        let count = assets.markets.len();
        let covariance_of = |matrix: &Matrix| {
            let field = "problem.measure.covariance";
            check_count("problem.assets", count, 1..=COVARIANCE_ASSETS_MAX)?;
            let covariance = match matrix {
                Matrix::Given(numbers) => Covariance::new(count, symmetric(count, numbers)),
                Matrix::Market(_) => MarketReturns::of(assets, field)?.covariance(Isa::Baseline, count),
            };
            covariance.map_err(|error| of_matrix(&error, field))
        };
        let confidence_of = |confidence: f64| {
            if CONFIDENCE_RANGE.contains(&confidence) {
                return Ok(confidence);
            }
            let (least, most) = (CONFIDENCE_RANGE.start(), CONFIDENCE_RANGE.end());
            Err(bad("problem.measure.confidence", format!("{confidence}; it must be from {least} to {most}")))
        };
        match measure {
            RiskMeasure::Historical(measure) => {
                let field = "problem.measure.returns";
                let market;
                let (returns, horizon_years) = match (&measure.returns, measure.horizon_years) {
                    (Matrix::Given(numbers), None) => (numbers, None),
                    (Matrix::Given(_), Some(_)) => {
                        let message = "returns that are given have the horizon of their rows: give null";
                        return Err(bad(HORIZON, message));
                    }
                    (Matrix::Market(_), horizon_years) => {
                        let known = MarketReturns::of(assets, field)?;
                        let of_sample = 1.0 / known.periods_per_year;
                        let wanted = check_horizon(horizon_years.unwrap_or(of_sample))?;
                        let (returns, horizon_years) = known.over(wanted, HORIZON)?;
                        market = returns;
                        (&market, Some(horizon_years))
                    }
                };
                if returns.is_empty() || returns.len() % count.max(1) != 0 {
                    let message = format!(
                        "{} numbers; give one for each of {count} assets in each scenario",
                        returns.len()
                    );
                    return Err(bad(field, message));
                }
                let scenarios = Scenarios::historical(count, Returns::Logarithmic, returns);
                let scenarios = scenarios.map_err(|error| bad(field, error.to_string()))?;
                Ok(Self::simulated(scenarios, confidence_of(measure.confidence)?, horizon_years, false))
            }
            RiskMeasure::MonteCarlo(measure) => {
                let scenarios = u64::try_from(measure.scenarios).unwrap_or(0);
                if !(1..=CELLS_MAX).contains(&scenarios) {
                    let message = format!("{}; it must be from 1 to {CELLS_MAX}", measure.scenarios);
                    return Err(bad("problem.measure.scenarios", message));
                }
                let covariance = covariance_of(&measure.covariance)?;
                let horizon_years = measure.horizon_years;
                let drawn = Drawn { key, scenarios, covariance: &covariance, horizon_years, means: &[] };
                let scenarios = Scenarios::drawn(&drawn).map_err(|error| match error {
                    ScenarioError::Covariance(error) => of_matrix(&error, "problem.measure.covariance"),
                    other => bad(HORIZON, other.to_string()),
                })?;
                Ok(Self::simulated(scenarios, confidence_of(measure.confidence)?, Some(horizon_years), true))
            }
            RiskMeasure::Parametric(measure) => {
                let horizon_years = check_horizon(measure.horizon_years)?;
                let covariance = covariance_of(&measure.covariance)?;
                covariance.factor().map_err(|error| of_matrix(&error, "problem.measure.covariance"))?;
                let covariance = covariance.scaled(horizon_years);
                let confidence = confidence_of(measure.confidence)?;
                Ok(Self::Parametric { covariance, confidence, horizon_years })
            }
            RiskMeasure::Stress(stress) => {
                let field = "problem.measure.scenarios";
                let mut shocks = Vec::with_capacity(count * stress.scenarios.len());
                for (number, scenario) in stress.scenarios.iter().enumerate() {
                    shocks.extend(shocks_of(number, scenario, count)?);
                }
                let scenarios =
                    Scenarios::given(count, &shocks).map_err(|error| bad(field, error.to_string()))?;
                let names = stress.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
                Ok(Self::Stress { scenarios: Arc::new(scenarios), names })
            }
        }
    }

    fn simulated(scenarios: Scenarios, confidence: f64, horizon_years: Option<f64>, are_drawn: bool) -> Self {
        Self::Simulated { scenarios: Arc::new(scenarios), confidence, horizon_years, are_drawn }
    }

    /// Checks that the kept numbers of positions and books fit.
    pub(super) fn check_parts(&self, problem: &PortfolioProblem) -> Result<(), RiskError> {
        let (books, positions) = (problem.books.len(), problem.positions.len());
        match self {
            Self::Parametric { .. } if books * positions > PARAMETRIC_PARTS_MAX => {
                let parts = books * positions;
                let message =
                    format!("books x positions is {parts}; it must be {PARAMETRIC_PARTS_MAX} at most");
                Err(bad("problem.books", message))
            }
            Self::Simulated { scenarios, confidence, .. } => {
                let tail = tail_of(scenarios, *confidence);
                let most = PARTS_MAX / positions * TAIL_BLOCK;
                if tail <= most {
                    return Ok(());
                }
                let message = format!(
                    "{confidence} leaves the worst {tail} scenarios; of {positions} positions they must be {most} at most: \
                     give a higher one, or fewer scenarios"
                );
                Err(bad("problem.measure.confidence", message))
            }
            Self::Parametric { .. } | Self::Stress { .. } => Ok(()),
        }
    }

    pub(super) fn scenarios(&self) -> Option<&Scenarios> {
        match self {
            Self::Simulated { scenarios, .. } | Self::Stress { scenarios, .. } => Some(scenarios),
            Self::Parametric { .. } => None,
        }
    }
}

fn check_horizon(years: f64) -> Result<f64, RiskError> {
    if years > 0.0 && years <= HORIZON_YEARS_MAX {
        return Ok(years);
    }
    Err(bad(HORIZON, format!("{years}; it must be more than 0 and at most {HORIZON_YEARS_MAX}")))
}

/// The shock of each asset: the common one plus its own.
fn shocks_of(number: usize, scenario: &StressScenario, assets: usize) -> Result<Vec<Shock>, RiskError> {
    let all = Shock {
        volatility_slope: scenario.volatility_twist,
        rate_slope: scenario.rate_twist,
        dividend_yield: scenario.yield_shift,
        dividend_yield_slope: scenario.yield_twist,
        ..Shock::shift(scenario.spot_shift, scenario.volatility_shift, scenario.rate_shift)
    };
    let check_spot = |field: String, shift: f64| match shift > -1.0 {
        true => Ok(()),
        false => Err(bad(field, format!("{shift}; -1 is all of the price, and a price stays above 0"))),
    };
    check_spot(format!("problem.measure.scenarios[{number}].spot_shift"), scenario.spot_shift)?;
    let mut shocks = vec![all; assets];
    for (place, own) in scenario.shocks.iter().enumerate() {
        let shock = usize::try_from(own.asset).ok().and_then(|asset| shocks.get_mut(asset));
        let shock = shock.ok_or_else(|| {
            let field = format!("problem.measure.scenarios[{number}].shocks[{place}].asset");
            bad(field, format!("{}; there are {assets} assets, from 0 on", own.asset))
        })?;
        check_spot(format!("problem.measure.scenarios[{number}].shocks[{place}].spot"), own.spot)?;
        shock.spot_factor *= 1.0 + own.spot;
        shock.volatility += own.volatility;
        shock.rate += own.rate;
        shock.dividend_yield += own.dividend_yield;
    }
    Ok(shocks)
}
