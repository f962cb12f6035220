//! Sentences on breakers, for the log of a process and for `warptape tail`.

use tracing::{info, warn};
use warptape_schemas::journal::{Breaker, BreakerReason, BreakerState};

/// Reports that the breaker of a lane on a device changed its state.
pub(super) fn tell(breaker: &Breaker, device: &str) {
    let (lane, words) = (breaker.lane, words(breaker));
    match breaker.state {
        BreakerState::Open => warn!("lane {lane} ({device}) {words}"),
        BreakerState::HalfOpen | BreakerState::Closed => info!("lane {lane} ({device}) {words}"),
    }
}

/// Returns a sentence on the change and its reason; the lane is its subject.
pub(crate) fn words(breaker: &Breaker) -> String {
    let &Breaker { state, reason, measured, limit, .. } = breaker;
    let state = match state {
        BreakerState::Open => "gets no work",
        BreakerState::HalfOpen => "is tried with half of its groups and with slices",
        BreakerState::Closed => "gets work again",
    };
    let why = match reason {
        BreakerReason::Losses => format!("it was lost {measured} times lately, and {limit} are too many"),
        BreakerReason::Slow => format!(
            "beside the other lanes its batches take {measured} % of what they should, and {limit} % is the limit"
        ),
        BreakerReason::Memory => format!("{measured} errors of its device's memory could not be corrected"),
        BreakerReason::Probe => format!("it has been out of service for {} ms", measured / 1_000_000),
        // Only a slow lane was measured.
        BreakerReason::ProbeFailed if limit == 0 => {
            "it was lost while it was tried, and is tried again later".to_owned()
        }
        BreakerReason::ProbeFailed => format!(
            "while it was tried its work took {measured} % of what it should, where {limit} % is the limit, and it is tried again later"
        ),
        BreakerReason::Recovered => format!("{measured} tries went well"),
    };
    format!("{state}: {why}")
}
