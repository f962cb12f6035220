//! American options by their exercise boundary: one unit, without random numbers.

use std::ops::Range;

use warptape_events::risk::{
    Contract, Precision, RiskError, RiskOutcome, Sampling, SimulatedGreek, SimulationProblem,
    SimulationResult,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{AmericanError, AmericanOption, AmericanValue};

use super::assets::Resolved;
use super::options::{POINTS, YEAR_DAYS};
use super::rounds::{DeviceRisk, Next, Partial, Plan, Round};
use super::simulation::{single, to_risk_error};
use super::{bad, cost};

/// Most bytes that it may take: tables and boundaries.
const BYTES: usize = 64 << 10;

/// True if a problem is an American option without parameters of a simulation.
pub(super) fn is_asked(problem: &SimulationProblem) -> bool {
    let is_american = matches!(problem.contract, Contract::American(_));
    let is_simulated = problem.paths_max != 0 || problem.steps != 0 || problem.standard_error.is_some();
    let is_sampled = problem.antithetic
        || problem.sampling != Sampling::default()
        || problem.precision != Precision::default();
    is_american && !is_simulated && !is_sampled
}

/// The plan of a problem that [`is_asked`].
pub(super) fn plan(problem: &SimulationProblem, assets: &Resolved) -> Result<Plan, RiskError> {
    let Contract::American(american) = &problem.contract else { unreachable!("the contract was looked at") };
    let (kind, strike, expiry_years) = (american.kind, american.strike, problem.expiry_years);
    let option = AmericanOption { market: single(assets)?, kind, strike, expiry_years };
    option.check().map_err(|error| refused(&error))?;
    let is_future = assets.futures[0];
    let first = Box::new(BoundaryRound { option, has_greeks: problem.greeks, is_future });
    Ok(Plan { first, bytes: BYTES, cost_ns: cost::boundary() })
}

#[derive(Debug)]
struct BoundaryRound {
    option: AmericanOption,
    has_greeks: bool,
    is_future: bool,
}

impl Round for BoundaryRound {
    fn units(&self) -> i64 {
        1
    }

    fn rate_key(&self) -> String {
        let key = if self.has_greeks { "american/boundary/greeks" } else { "american/boundary" };
        key.to_owned()
    }

    fn run(&self, isa: Isa, _: Range<i64>) -> Partial {
        self.partial(self.option.value(isa, self.has_greeks))
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        _: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        Ok(self.partial(self.option.value_on_device(device, &mut memory.work, self.has_greeks)?))
    }

    /// Returns the result of the unit, however often it was run.
    fn finish(&self, partials: &[&Partial]) -> Next {
        Partial::outcome(partials)
    }
}

impl BoundaryRound {
    fn partial(&self, found: Result<AmericanValue, AmericanError>) -> Partial {
        Partial::Outcome(Box::new(match found {
            Ok(value) => RiskOutcome::Simulation(self.result(value)),
            Err(error) => RiskOutcome::Error(refused(&error)),
        }))
    }

    /// The result as that of a simulation without samples or errors.
    fn result(&self, AmericanValue { price, greeks }: AmericanValue) -> SimulationResult {
        let greeks = greeks.filter(|_| self.has_greeks).map(|greeks| {
            let named = [
                ("delta", greeks.delta),
                ("gamma", greeks.gamma),
                ("vega", greeks.vega),
                ("theta", greeks.theta),
                // The rate of a future is its yield, so both move together.
                ("rho", if self.is_future { greeks.rho + greeks.rho_foreign } else { greeks.rho }),
                ("theta_per_day", greeks.theta / YEAR_DAYS),
                ("vega_per_point", greeks.vega / POINTS),
            ];
            let of_yield = (!self.is_future).then_some(("rho_foreign", greeks.rho_foreign));
            let greek = |(name, value): (&str, f64)| SimulatedGreek {
                name: name.to_owned(),
                value,
                standard_error: 0.0,
            };
            named.into_iter().chain(of_yield).map(greek).collect()
        });
        SimulationResult {
            price,
            standard_error: 0.0,
            paths: 0,
            greeks: greeks.unwrap_or_default(),
            standard_error_met: None,
            warning: String::new(),
        }
    }
}

fn refused(error: &AmericanError) -> RiskError {
    match error {
        AmericanError::Parameter(error) => to_risk_error(error, 0),
        AmericanError::TwoBoundaries { .. } => bad("problem.assets[0].rate", error.to_string()),
        AmericanError::Unsettled => bad("problem", error.to_string()),
    }
}
