//! Waits between connections.

use std::time::Duration;

/// Wait after the first failure.
const FIRST: Duration = Duration::from_millis(250);
/// Longest wait.
const LONGEST: Duration = Duration::from_secs(30);
/// Age from which a connection counts as steady: its end is again a first failure.
const STEADY: Duration = Duration::from_secs(30);

/// Waits that double from 250 ms to 30 s.
#[derive(Debug, Default)]
pub struct Backoff {
    /// Number of failures since the last steady connection.
    failures: u32,
}

impl Backoff {
    /// Returns the wait after a connection that lasted this long; zero means that it was not established.
    pub fn wait_after(&mut self, lasted: Duration) -> Duration {
        if lasted >= STEADY {
            self.failures = 0;
        }
        let wait = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_until_a_connection_is_steady() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..9).map(|_| backoff.wait_after(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(backoff.wait_after(STEADY - Duration::from_millis(1)), LONGEST);
        assert_eq!(backoff.wait_after(STEADY), FIRST);
        assert_eq!(backoff.wait_after(Duration::ZERO), 2 * FIRST);
        (0..100).for_each(|_| _ = backoff.wait_after(Duration::ZERO));
        assert_eq!(backoff.wait_after(Duration::ZERO), LONGEST);
    }
}
