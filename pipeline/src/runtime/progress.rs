//! State of a running engine: counters and states that any thread may read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prometheus_client::metrics::histogram::{Histogram, NativeHistogramConfig, exponential_buckets};
use warptape_engine::Status;
use warptape_kernels::device::Sample;

/// Greatest number of signals kept for display.
const LATEST_MAX: usize = 8;
/// Greatest factor between the widths of neighbouring buckets of native histograms, and their greatest number of
/// buckets.
const BUCKET_FACTOR: f64 = 1.1;
const BUCKETS_MAX: usize = 160;

/// Figures of a running engine. The engine writes them; displays and the HTTP endpoint read them.
#[derive(Debug, Default)]
pub struct Progress {
    /// Records of ticks read, including repeated reads.
    pub records_read: AtomicU64,
    /// Bytes of these records.
    pub bytes_read: AtomicU64,
    /// Ticks accepted from the source, late ones included.
    pub ticks: AtomicU64,
    /// Ticks that were late.
    pub late: AtomicU64,
    /// Dead letters.
    pub dead_letters: AtomicU64,
    /// Ticks of the dead letters; a record rejected as a whole counts as one.
    pub dead_ticks: AtomicU64,
    /// Trades that repeat an earlier trade id of their symbol.
    pub repeated_trades: AtomicU64,
    /// Risk requests read.
    pub risk_requests: AtomicU64,
    /// Signals committed.
    pub signals: AtomicU64,
    /// Decisions made.
    pub decisions: AtomicU64,
    /// Transactions committed.
    pub commits: AtomicU64,
    /// Rows waiting on the host.
    pub waiting_rows: AtomicI64,
    /// Figures of each lane.
    pub lanes: Vec<LaneProgress>,
    /// Latencies of signals and commits.
    pub latencies: Latencies,
    latest: Mutex<VecDeque<Vec<u8>>>,
    engine: Mutex<EngineView>,
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

/// Latencies of signals and commits, in seconds.
#[derive(Debug)]
pub struct Latencies {
    /// From the read of a signal's record to the commit of the signal; one observation for each signal.
    pub tick_to_signal: Histogram,
    /// From that read until the signal is sealed: queues, lanes, and the wait for the next commit.
    pub read_to_seal: Histogram,
    /// From sealing a transaction to its commit; one observation for each transaction.
    pub commit: Histogram,
    /// From the submission of a risk task's round to the scheduler until the round's first slice is in its lane's
    /// queue. One observation for each round whose first slice begins in the same step.
    pub risk_enqueue: Histogram,
}

impl Default for Latencies {
    fn default() -> Self {
        // Classic buckets are for scrapers without native ones. The first reaches to `first_s`, and each further one is
        // twice as wide.
        let histogram = |first_s: f64, count: u16| {
            let native = NativeHistogramConfig::new(BUCKET_FACTOR).max_buckets(BUCKETS_MAX);
            Histogram::new_classic_and_native(exponential_buckets(first_s, 2.0, count), native)
        };
        // From 100 µs to 3.3 min.
        let long = || histogram(1e-4, 22);
        Self {
            tick_to_signal: long(),
            read_to_seal: long(),
            commit: long(),
            // From 3 µs to 0.1 s.
            risk_enqueue: histogram(3.125e-6, 16),
        }
    }
}

/// Last report of the engine's thread.
#[derive(Clone, Debug, Default)]
pub struct EngineView {
    /// Time of the report, in nanoseconds of the engine's clock since the epoch; 0 before the first one.
    pub at_ns: i64,
    /// Present state of the core.
    pub status: Status,
    /// Results of transactions.
    pub committed: Committed,
    /// Times in milliseconds within which 50 %, 99 % and 99.9 % of all signals were committed after their tick's read;
    /// `None` before the first signal.
    pub latency_ms: Option<[f64; 3]>,
    /// True if the engine has ended.
    pub has_ended: bool,
    /// The last sample of each device.
    pub samples: BTreeMap<String, Sample>,
    /// Time of the last sample of each device.
    pub sampled_at: BTreeMap<String, Instant>,
    /// Xid errors of each device.
    pub xids: BTreeMap<String, u64>,
}

/// Contents and outcomes of transactions.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// Aborted attempts, each sent again or given up.
    pub aborts: u64,
    /// Transactions whose outcome the log did not tell, so that it was looked up.
    pub looked_up: u64,
    /// Reason of the last aborted attempt; `None` once one is committed.
    pub failing: Option<String>,
    /// Time of the last commit, ns since the epoch; `None` before the first.
    pub last_ns: Option<i64>,
    /// Late ticks written.
    pub late: u64,
    /// Dead letters written.
    pub dead_letters: u64,
    /// Snapshot records written.
    pub snapshots: u64,
    /// Journal entries written.
    pub journal_entries: u64,
    /// Risk results written, by class and outcome.
    pub risk_results: BTreeMap<(&'static str, &'static str), u64>,
    /// Offset of the next tick record to read, by partition.
    pub offsets: BTreeMap<i32, i64>,
}

impl Progress {
    /// Creates figures that are all zero.
    pub fn new(lanes: usize) -> Self {
        Self { lanes: (0..lanes).map(|_| LaneProgress::default()).collect(), ..Self::default() }
    }

    /// Returns the latest signals handed to a commit, encoded, newest last.
    pub fn latest_signals(&self) -> Vec<Vec<u8>> {
        lock(&self.latest).iter().cloned().collect()
    }

    /// Returns the last report of the engine's thread.
    pub fn engine(&self) -> EngineView {
        lock(&self.engine).clone()
    }

    pub(crate) fn change_engine(&self, change: impl FnOnce(&mut EngineView)) {
        change(&mut lock(&self.engine));
    }

    pub(super) fn keep_latest<'a>(&self, newest_first: impl Iterator<Item = &'a [u8]>) {
        let newest: Vec<Vec<u8>> = newest_first.take(LATEST_MAX).map(<[u8]>::to_vec).collect();
        let mut latest = lock(&self.latest);
        latest.extend(newest.into_iter().rev());
        while latest.len() > LATEST_MAX {
            latest.pop_front();
        }
    }

    pub(super) fn add(counter: &AtomicU64, value: u64) {
        counter.fetch_add(value, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A holder leaves whole values behind, even if it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
