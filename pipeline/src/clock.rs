//! The only clock of the pipeline.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall-clock time that never falls: the epoch is read once, progress is monotonic.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: i64,
    started: Instant,
}

impl Clock {
    /// Reads the wall clock for the first and last time.
    pub fn start() -> Self {
        Self { epoch_ns: wall_clock_ns(), started: Instant::now() }
    }

    /// Returns nanoseconds since the epoch.
    pub fn now_ns(&self) -> i64 {
        self.epoch_ns + self.started.elapsed().as_nanos() as i64
    }
}

/// Returns the wall clock, which may be set back at any time: nanoseconds since the epoch, 0 before it.
#[expect(clippy::disallowed_methods, reason = "all others read the wall clock here")]
pub fn wall_clock_ns() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
        .saturating_add(ahead_ns())
}

/// Returns the time by which a test sets this process's clock ahead (WARPTAPE_CLOCK_AHEAD_MS). Builds without debug
/// assertions ignore it.
#[cfg(debug_assertions)]
fn ahead_ns() -> i64 {
    use std::sync::OnceLock;
    static AHEAD_NS: OnceLock<i64> = OnceLock::new();
    *AHEAD_NS.get_or_init(|| {
        let ahead_ms = std::env::var("WARPTAPE_CLOCK_AHEAD_MS").ok();
        ahead_ms.map_or(0, |text| {
            text.parse::<i64>().expect("WARPTAPE_CLOCK_AHEAD_MS is a whole number") * 1_000_000
        })
    })
}

#[cfg(not(debug_assertions))]
fn ahead_ns() -> i64 {
    0
}
