//! Event times far ahead of all before: one tick dated wrongly must not make everything after it late.
//!
//! ```text
//!   event time of ticks       ─── reference ──────┬──── future_max ────┐
//!                                                  │ accepted           │ refused: a dead letter, or a vote
//!
//!   of a record that was      ─── reference ── written ──┬─ clock_skew_max ─┐
//!   written after that                                   │ accepted         │ refused: a dead letter
//! ```
//!
//! The *reference* is the greatest event time of the partition's accepted ticks. Before the first tick it is the time
//! at which the record was written to the log, if the log has one. A tick is too far ahead if it is further ahead
//!
//! - than `future_max_ns` of the reference; or
//! - than `clock_skew_max_ns` of the time at which its record was written: an event that a venue dates later has not
//!   happened yet. `future_max_ns` must exceed the time for which a market is closed, because recordings are full of
//!   such gaps. `clock_skew_max_ns` may be short: ticks of a live feed are written when they have happened, after a
//!   closed market too.
//!
//! Ticks may be dated in the future on purpose, such as those of a simulated market. So the writing time says nothing
//! if the reference itself is that far ahead of it: then only `future_max_ns` counts.

use warptape_events::TickProblem;

use crate::StageConfig;

/// Limits on the event time of a tick that is ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AheadLimits {
    /// The time with which ticks are compared.
    reference_ns: i64,
    future_max_ns: i64,
    /// The limit by the writing time of the record; `None` if that does not matter.
    written: Option<Written>,
}

/// The writing time of a record, and the lead that its ticks may have over it.
#[derive(Clone, Copy, Debug)]
struct Written {
    written_ns: i64,
    clock_skew_max_ns: i64,
}

impl Written {
    /// The latest time that is not too far ahead. Earlier ticks do not move it, so that many small steps lead no
    /// further.
    fn latest_ns(&self) -> i64 {
        self.written_ns.saturating_add(self.clock_skew_max_ns)
    }
}

impl AheadLimits {
    /// The limits for a record that was written at `written_ns`, or 0 if that is unknown, after ticks up to
    /// `event_time_max_ns`. `None` if there is nothing to compare with.
    pub(crate) fn of(config: &StageConfig, event_time_max_ns: Option<i64>, written_ns: i64) -> Option<Self> {
        let written_ns = Some(written_ns).filter(|written_ns| *written_ns > 0);
        let reference_ns = event_time_max_ns.or(written_ns)?;
        let StageConfig { clock_skew_max_ns, future_max_ns, .. } = *config;
        let written = written_ns
            .map(|written_ns| Written { written_ns, clock_skew_max_ns })
            .filter(|written| reference_ns <= written.latest_ns());
        Some(Self { reference_ns, future_max_ns, written })
    }

    /// Lead over the reference that a tick may have, in nanoseconds.
    pub(crate) fn future_max_ns(&self) -> i64 {
        self.future_max_ns
    }

    /// True if a tick is too far ahead.
    pub(crate) fn is_ahead(&self, time_ns: i64) -> bool {
        let latest_ns = self.reference_ns.saturating_add(self.future_max_ns);
        time_ns > self.written.map_or(latest_ns, |written| written.latest_ns().min(latest_ns))
    }

    /// True if it is too far ahead of the writing time of its record; false if that does not matter.
    pub(crate) fn is_ahead_of_writing(&self, time_ns: i64) -> bool {
        self.written.is_some_and(|written| time_ns > written.latest_ns())
    }

    /// The problem of a tick that is too far ahead.
    pub(crate) fn problem_of(&self, time_ns: i64) -> TickProblem {
        let &Self { reference_ns, future_max_ns, written } = self;
        match written {
            Some(Written { written_ns, clock_skew_max_ns })
                if time_ns <= reference_ns.saturating_add(future_max_ns) =>
            {
                TickProblem::AheadOfWriting { time_ns, written_ns, clock_skew_max_ns }
            }
            _ => TickProblem::TooFarAhead { time_ns, reference_ns, future_max_ns },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::config;

    const MAX: i64 = 100;
    const SKEW: i64 = 5;

    fn limits(reference_ns: Option<i64>, written_ns: i64) -> Option<AheadLimits> {
        let config = StageConfig { future_max_ns: MAX, clock_skew_max_ns: SKEW, ..config() };
        AheadLimits::of(&config, reference_ns, written_ns)
    }

    #[test]
    fn a_tick_is_not_ahead_of_when_it_was_written() {
        let is_ahead =
            |written_ns, time_ns| limits(Some(1_000), written_ns).expect("limits").is_ahead(time_ns);
        // Live: the clocks of the venue and of the producer may differ, and the market was closed.
        assert!(!is_ahead(1_010, 1_015) && is_ahead(1_010, 1_016));
        assert!(!is_ahead(1_095, 1_100) && is_ahead(1_095, 1_101));
        // A recording is written long after its ticks, so only gaps in it count.
        assert!(!is_ahead(9_999, 1_100) && is_ahead(9_999, 1_101));
        // A market dated in the future.
        assert!(!is_ahead(900, 1_100) && is_ahead(900, 1_101));
        assert!(!is_ahead(0, 1_100) && is_ahead(0, 1_101), "nobody knows when it was written");
        let last = AheadLimits { reference_ns: i64::MAX - 1, ..limits(Some(0), 0).expect("limits") };
        assert!(!last.is_ahead(i64::MAX), "the end of time overflows nothing");
    }

    #[test]
    fn who_is_ahead_is_told_of_which_limit() {
        let problem = |reference_ns, written_ns, time_ns| {
            let limits = limits(reference_ns, written_ns).expect("there are limits");
            assert!(limits.is_ahead(time_ns));
            limits.problem_of(time_ns)
        };
        let of_writing = |time_ns, written_ns| TickProblem::AheadOfWriting {
            time_ns,
            written_ns,
            clock_skew_max_ns: SKEW,
        };
        let of_reference =
            |time_ns, reference_ns| TickProblem::TooFarAhead { time_ns, reference_ns, future_max_ns: MAX };
        assert_eq!(problem(Some(1_000), 1_010, 1_016), of_writing(1_016, 1_010));
        assert_eq!(problem(Some(1_000), 1_010, 1_101), of_reference(1_101, 1_000));
        assert_eq!(problem(None, 1_010, 1_016), of_writing(1_016, 1_010));
        assert_eq!(problem(None, 1_010, 1_111), of_reference(1_111, 1_010));
        assert!(limits(None, 0).is_none(), "nothing to compare with");
    }
}
