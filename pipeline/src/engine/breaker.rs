//! What people are told of breakers.

use tracing::{info, warn};
use warptape_schemas::journal::{Breaker, BreakerReason, BreakerState};

/// Tells people that the breaker of a lane on a device changed its state.
pub(super) fn tell(breaker: &Breaker, device: &str) {
    let &Breaker { lane, state, reason, measured, limit } = breaker;
    let why = match reason {
        BreakerReason::Losses => format!("it was lost {measured} times lately"),
        BreakerReason::Slow => format!(
            "beside the other lanes its batches take {measured} % of what they should, and {limit} % is the limit"
        ),
        BreakerReason::Memory => format!("{measured} errors of its device's memory could not be corrected"),
        BreakerReason::Probe => "it is tried with a little work".to_owned(),
        BreakerReason::ProbeFailed => "it failed when it was tried, and is tried again later".to_owned(),
        BreakerReason::Recovered => format!("{measured} tries went well"),
    };
    match state {
        BreakerState::Open => warn!("lane {lane} ({device}) gets no work: {why}"),
        BreakerState::HalfOpen => info!("lane {lane} ({device}): {why}"),
        BreakerState::Closed => info!("lane {lane} ({device}) gets work again: {why}"),
    }
}
