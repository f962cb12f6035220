//! A span in which no write succeeds, and how long it is tolerated.

/// Longest time for which a call to an unresponsive log, or an aborted transaction, is repeated.
const OUTAGE_NS_MAX: i64 = 300_000_000_000;
/// The same limit, once the process was asked to end.
const OUTAGE_STOPPING_NS_MAX: i64 = 10_000_000_000;
/// First pause, and below longest pause, before an aborted transaction is sent again. A group in the middle of a
/// rebalance needs a moment; a broker that refuses a record needs a change of its settings.
const ABORT_PAUSE_NS: i64 = 100_000_000;
const ABORT_PAUSE_NS_MAX: i64 = 2_000_000_000;

/// A span in which no write succeeds. All times are nanoseconds of one clock.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    began_ns: i64,
    pause_ns: i64,
}

impl Outage {
    /// Begins an outage now.
    pub fn begin(now_ns: i64) -> Self {
        Self { began_ns: now_ns, pause_ns: ABORT_PAUSE_NS }
    }

    /// Begin of the outage, in nanoseconds of the same clock.
    pub fn began_ns(&self) -> i64 {
        self.began_ns
    }

    /// True if the outage has lasted too long. The limit is lower once the process was asked to end, at
    /// `stopping_since_ns`.
    pub fn is_given_up(&self, now_ns: i64, stopping_since_ns: Option<i64>) -> bool {
        now_ns - self.began_ns >= OUTAGE_NS_MAX
            || stopping_since_ns
                .is_some_and(|since_ns| now_ns - since_ns.max(self.began_ns) >= OUTAGE_STOPPING_NS_MAX)
    }

    /// Pause before the next attempt; it grows with each one.
    pub fn next_pause_ns(&mut self) -> i64 {
        let next_ns = (self.pause_ns * 2).min(ABORT_PAUSE_NS_MAX);
        std::mem::replace(&mut self.pause_ns, next_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_shall_end_waits_from_when_it_was_told() {
        let outage = Outage::begin(1_000);
        let later_ns = 1_000 + 2 * OUTAGE_STOPPING_NS_MAX;
        assert!(!outage.is_given_up(later_ns, None));
        assert!(!outage.is_given_up(later_ns, Some(later_ns - OUTAGE_STOPPING_NS_MAX / 2)));
        assert!(outage.is_given_up(later_ns, Some(later_ns - OUTAGE_STOPPING_NS_MAX)));
        let soon_ns = 1_000 + OUTAGE_STOPPING_NS_MAX / 2;
        assert!(
            !outage.is_given_up(soon_ns, Some(-OUTAGE_STOPPING_NS_MAX)),
            "there was nothing to wait for yet"
        );
    }

    #[test]
    fn no_outage_is_waited_for_without_end() {
        assert!(Outage::begin(0).is_given_up(OUTAGE_NS_MAX, None));
    }

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let mut outage = Outage::begin(0);
        let pauses: Vec<i64> = (0..7).map(|_| outage.next_pause_ns() / 1_000_000).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 2_000, 2_000]);
    }
}
