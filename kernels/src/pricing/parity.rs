//! Calls that are simulated as puts. If the deviation of ln S is 3 or more, the mean of a call depends on a few paths
//! out of millions. The samples do not show its error. So the price of the asset at expiry is used as a control variate
//! of coefficient 1, whose expectation is known. The remainder is the put, which pays at most the strike:
//!
//! ```text
//!   call = put + e^{−rT}·(E[A] − K)        A: the call's underlying, the price at expiry or a mean of prices
//! ```

use super::options::OptionKind;
use super::simulation::{Contract, SimulationSpec};
use super::terms::Terms;
use crate::math::{Number, Term};

/// Deviation of ln S at expiry from which on the control is used.
pub(super) const DEVIATION_MIN: f64 = 3.0;

/// The put to simulate in place of a call, and the excess of the call's value; `None` if the contract itself is
/// simulated.
pub(super) fn of_call(spec: &SimulationSpec) -> Option<(SimulationSpec, Term)> {
    let deviation = spec.market.volatility * spec.expiry_years.sqrt();
    let put = match spec.contract {
        _ if deviation < DEVIATION_MIN => return None,
        Contract::European { kind: OptionKind::Call, strike } => {
            Contract::European { kind: OptionKind::Put, strike }
        }
        Contract::Asian { kind: OptionKind::Call, strike } => {
            Contract::Asian { kind: OptionKind::Put, strike }
        }
        _ => return None,
    };
    let terms = Terms::new(spec);
    // This is E[S after a step] / S before it.
    let growth = (terms.drift + (terms.diffusion * terms.diffusion).scaled(0.5)).exp();
    let mut expected = terms.spot;
    let mut sum = Term::of(0.0);
    for _ in 0..spec.steps {
        expected = expected * growth;
        sum = sum + expected;
    }
    if matches!(spec.contract, Contract::Asian { .. }) {
        expected = sum.scaled(1.0 / terms.steps);
    }
    let more = (expected - Term::of(terms.strike)) * terms.discount;
    Some((SimulationSpec { contract: put, ..*spec }, more))
}
