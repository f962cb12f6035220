//! What the engine shows of itself while it runs: counters that any thread may read.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Signals kept for display.
const LATEST_MAX: usize = 8;

/// Counters of a running engine. The engine writes them, displays read them.
#[derive(Debug, Default)]
pub struct Progress {
    /// Ticks accepted from the source, late ones included.
    pub ticks: AtomicU64,
    /// Ticks that were late.
    pub late: AtomicU64,
    /// Records that went to the dead letters.
    pub dead_letters: AtomicU64,
    /// Trades whose id their symbol had before.
    pub repeated_trades: AtomicU64,
    /// Risk requests read.
    pub risk_requests: AtomicU64,
    /// Signals committed.
    pub signals: AtomicU64,
    /// Decisions made.
    pub decisions: AtomicU64,
    /// Transactions committed.
    pub commits: AtomicU64,
    /// Rows that wait on the host.
    pub waiting_rows: AtomicI64,
    /// Figures of each lane.
    pub lanes: Vec<LaneProgress>,
    latest: Mutex<VecDeque<Vec<u8>>>,
}

/// Figures of one lane.
#[derive(Debug, Default)]
pub struct LaneProgress {
    /// Rows in flight.
    pub in_flight_rows: AtomicI64,
    /// Rows done.
    pub rows: AtomicU64,
    /// Time spent working, in nanoseconds.
    pub busy_ns: AtomicU64,
}

impl Progress {
    /// All zero.
    pub fn new(lanes: usize) -> Self {
        Self { lanes: (0..lanes).map(|_| LaneProgress::default()).collect(), ..Self::default() }
    }

    /// The latest signals handed to a commit, encoded, newest last.
    pub fn latest_signals(&self) -> Vec<Vec<u8>> {
        self.latest.lock().expect("no thread panics while it holds the lock").iter().cloned().collect()
    }

    pub(super) fn keep_latest<'a>(&self, newest_first: impl Iterator<Item = &'a [u8]>) {
        let newest: Vec<Vec<u8>> = newest_first.take(LATEST_MAX).map(<[u8]>::to_vec).collect();
        let mut latest = self.latest.lock().expect("no thread panics while it holds the lock");
        latest.extend(newest.into_iter().rev());
        while latest.len() > LATEST_MAX {
            latest.pop_front();
        }
    }

    pub(super) fn add(counter: &AtomicU64, value: u64) {
        counter.fetch_add(value, Ordering::Relaxed);
    }
}
