//! Differences between the local clock at receipt and the venue's event times.

/// Width of a bucket, in ns.
const BUCKET_NS: i64 = 1_000_000;
/// Greatest difference with a bucket of its own, in ms, ahead or behind; greater differences count in the outermost
/// buckets.
const RANGE_MS: i64 = 10_000;

/// Receive time minus event time of trades. It is the time of transmission plus the difference between the clocks. The
/// memory does not depend on the number of trades.
#[derive(Clone, Debug)]
pub struct ClockDifferences {
    /// Number of trades by difference in whole milliseconds, from -`RANGE_MS` to `RANGE_MS`.
    buckets: Vec<u64>,
    count: u64,
    min_ns: i64,
    max_ns: i64,
}

/// Summary of differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSummary {
    /// Median in milliseconds, rounded down; a difference beyond 10 s counts as 10 s.
    pub median_ms: i64,
    /// Least difference in nanoseconds; negative if the local clock is behind the venue's.
    pub min_ns: i64,
    /// Greatest difference in nanoseconds.
    pub max_ns: i64,
}

impl Default for ClockDifferences {
    fn default() -> Self {
        let buckets = vec![0; 2 * RANGE_MS as usize + 1];
        Self { buckets, count: 0, min_ns: i64::MAX, max_ns: i64::MIN }
    }
}

impl ClockDifferences {
    /// Adds a trade.
    pub fn add(&mut self, receive_time_ns: i64, event_time_ns: i64) {
        let difference_ns = receive_time_ns.saturating_sub(event_time_ns);
        let bucket = difference_ns.div_euclid(BUCKET_NS).clamp(-RANGE_MS, RANGE_MS) + RANGE_MS;
        self.buckets[bucket as usize] += 1;
        self.count += 1;
        self.min_ns = self.min_ns.min(difference_ns);
        self.max_ns = self.max_ns.max(difference_ns);
    }

    /// Returns the summary; `None` if there were no trades.
    pub fn summary(&self) -> Option<ClockSummary> {
        let middle = self.count.checked_sub(1)? / 2;
        let mut before = 0;
        let bucket = self.buckets.iter().position(|count| {
            before += count;
            before > middle
        })?;
        let median_ms = bucket as i64 - RANGE_MS;
        Some(ClockSummary { median_ms, min_ns: self.min_ns, max_ns: self.max_ns })
    }

    /// Returns the summary and starts over; `None` if there were no trades.
    pub fn take(&mut self) -> Option<ClockSummary> {
        let summary = self.summary()?;
        self.buckets.fill(0);
        (self.count, self.min_ns, self.max_ns) = (0, i64::MAX, i64::MIN);
        Some(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_whole_milliseconds_and_the_ends_are_exact() {
        let mut differences = ClockDifferences::default();
        assert_eq!(differences.summary(), None);
        for difference_ns in [-1, 42_900_000, 43_000_001, 43_999_999, 60_000_000_000] {
            differences.add(1_000_000_000_000 + difference_ns, 1_000_000_000_000);
        }
        let summary = ClockSummary { median_ms: 43, min_ns: -1, max_ns: 60_000_000_000 };
        assert_eq!(differences.take(), Some(summary));
        assert_eq!(differences.take(), None);
        differences.add(1, i64::MAX);
        assert_eq!(differences.summary().expect("a trade").median_ms, -10_000);
        differences.add(i64::MAX, 1);
        differences.add(i64::MAX, 1);
        assert_eq!(differences.summary().expect("trades").median_ms, 10_000);
    }
}
