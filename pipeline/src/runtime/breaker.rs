//! Sentences about breakers, for the log of a process and for `warptape tail`.

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

/// Returns a sentence about the change and its reason, with the lane as its subject.
pub(crate) fn words(breaker: &Breaker) -> String {
    let &Breaker { state, reason, measured, limit, .. } = breaker;
    let state = match state {
        BreakerState::Open => "gets no work",
        BreakerState::HalfOpen => "is tried with half of its groups and with slices",
        BreakerState::Closed => "gets work again",
    };
    let why = match reason {
        BreakerReason::Losses => format!("it was lost {measured} times recently, and the limit is {limit}"),
        BreakerReason::Slow => format!(
            "relative to the other lanes, its batches take {measured} % of the predicted time, and the limit \
             is {limit} %"
        ),
        BreakerReason::Memory => format!("its device has {measured} uncorrectable memory errors"),
        BreakerReason::Probe => format!("it has been out of service for {} ms", measured / 1_000_000),
        // Measurements exist only for a slow lane.
        BreakerReason::ProbeFailed if limit == 0 => {
            "it was lost during its trial; the next trial comes later".to_owned()
        }
        BreakerReason::ProbeFailed => format!(
            "during its trial its work took {measured} % of the predicted time, and the limit is {limit} %; the next trial comes later"
        ),
        BreakerReason::Recovered => format!("{measured} trials succeeded"),
    };
    format!("{state}: {why}")
}
