//! American options by their boundary of exercise: one unit, without any random number.

use warptape_events::risk::{
    Contract, Precision, RiskError, RiskOutcome, Sampling, SimulatedGreek, SimulationProblem,
    SimulationResult,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError, WorkMemory};
use warptape_kernels::pricing::{AmericanError, AmericanOption, AmericanValue};

use super::assets::Resolved;
use super::options::kind_of;
use super::simulation::{single, to_risk_error};
use super::{Partial, bad};

/// What it may come to take: tables and boundaries.
const BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct EarlyExerciseTask {
    option: AmericanOption,
    has_greeks: bool,
}

/// Whether a problem is an American option for which no simulation is named.
pub(super) fn is_asked(problem: &SimulationProblem) -> bool {
    let is_american = matches!(problem.contract, Contract::American(_));
    let is_simulated = problem.paths_max != 0 || problem.steps != 0 || problem.standard_error.is_some();
    let is_sampled = problem.antithetic
        || problem.sampling != Sampling::default()
        || problem.precision != Precision::default();
    is_american && !is_simulated && !is_sampled
}

impl EarlyExerciseTask {
    /// Of a problem that [`is_asked`].
    pub(super) fn new(problem: &SimulationProblem, assets: &Resolved) -> Result<Self, RiskError> {
        let Contract::American(american) = &problem.contract else {
            unreachable!("the contract was looked at")
        };
        let (kind, strike, expiry_years) = (kind_of(american.kind), american.strike, problem.expiry_years);
        let option = AmericanOption { market: single(assets)?, kind, strike, expiry_years };
        option.check().map_err(|error| refused(&error))?;
        Ok(Self { option, has_greeks: problem.greeks })
    }

    pub(super) fn bytes(&self) -> usize {
        BYTES
    }

    pub(super) fn rate_key(&self) -> &'static str {
        if self.has_greeks { "american/boundary/greeks" } else { "american/boundary" }
    }

    pub(super) fn run(&self, isa: Isa) -> Partial {
        self.partial(self.option.value(isa, self.has_greeks))
    }

    pub(super) fn run_on_device(
        &self,
        device: &mut dyn Device,
        memory: &mut WorkMemory,
    ) -> Result<Partial, DeviceError> {
        Ok(self.partial(self.option.value_on_device(device, memory, self.has_greeks)?))
    }

    fn partial(&self, found: Result<AmericanValue, AmericanError>) -> Partial {
        Partial::Outcome(Box::new(match found {
            Ok(value) => RiskOutcome::Simulation(self.result(value)),
            Err(error) => RiskOutcome::Error(refused(&error)),
        }))
    }

    /// As that of a simulation without samples or errors.
    fn result(&self, AmericanValue { price, greeks }: AmericanValue) -> SimulationResult {
        let greeks = greeks.filter(|_| self.has_greeks).map(|greeks| {
            let named = [
                ("delta", greeks.delta),
                ("gamma", greeks.gamma),
                ("vega", greeks.vega),
                ("theta", greeks.theta),
                ("rho", greeks.rho),
            ];
            named.map(|(name, value)| SimulatedGreek { name: name.to_owned(), value, standard_error: 0.0 })
        });
        let greeks = greeks.map_or(Vec::new(), Vec::from);
        SimulationResult { price, standard_error: 0.0, paths: 0, greeks, standard_error_met: None }
    }
}

/// What the unit gave, however often it was done.
pub(super) fn outcome(partials: &[&Partial]) -> RiskOutcome {
    let Some(Partial::Outcome(outcome)) = partials.last() else { unreachable!("its unit gives an outcome") };
    RiskOutcome::clone(outcome)
}

fn refused(error: &AmericanError) -> RiskError {
    match error {
        AmericanError::Parameter(error) => to_risk_error(error, 0),
        AmericanError::TwoBoundaries { .. } => bad("problem.assets[0].rate", error.to_string()),
        AmericanError::Unsettled => bad("problem", error.to_string()),
    }
}
