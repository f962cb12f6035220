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
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
        let epoch_ns = i64::try_from(epoch.as_nanos()).expect("the clock is before 2262");
        Self { epoch_ns, started: Instant::now() }
    }

    /// Nanoseconds since the epoch.
    pub fn now_ns(&self) -> i64 {
        self.epoch_ns + self.started.elapsed().as_nanos() as i64
    }
}
