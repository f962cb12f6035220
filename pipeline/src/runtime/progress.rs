//! State of a running engine: counters and states that all threads may read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prometheus_client::metrics::histogram::{Histogram, NativeHistogramConfig, exponential_buckets};
use warptape_engine::{Receipt, RecordTimes, Status};
use warptape_kernels::device::Sample;

/// Greatest number of signals kept for display.
const LATEST_MAX: usize = 8;
/// Greatest ratio of the widths of neighbouring buckets in native histograms, and their greatest number of buckets.
const BUCKET_FACTOR: f64 = 1.1;
const BUCKETS_MAX: usize = 160;

/// Figures of a running engine. The engine writes them; displays and the HTTP endpoint read them.
#[derive(Debug, Default)]
pub struct Progress {
    /// Number of tick records read, including repeated reads.
    pub records_read: AtomicU64,
    /// Bytes of the tick records read.
    pub bytes_read: AtomicU64,
    /// Number of ticks accepted from the source, including late ones.
    pub ticks: AtomicU64,
    /// Number of late ticks.
    pub late: AtomicU64,
    /// Number of dead letters.
    pub dead_letters: AtomicU64,
    /// Number of ticks in dead letters; a record rejected as a whole counts as one.
    pub dead_ticks: AtomicU64,
    /// Number of trades that repeat an earlier trade id of the same symbol.
    pub repeated_trades: AtomicU64,
    /// Number of risk requests read.
    pub risk_requests: AtomicU64,
    /// Number of signals committed.
    pub signals: AtomicU64,
    /// Number of decisions made.
    pub decisions: AtomicU64,
    /// Number of transactions committed.
    pub commits: AtomicU64,
    /// Number of rows that wait on the host.
    pub waiting_rows: AtomicI64,
    /// Figures of each lane.
    pub lanes: Vec<LaneProgress>,
    /// Latencies of signals and commits.
    pub latencies: Latencies,
    latest: Mutex<VecDeque<Vec<u8>>>,
    removals: Mutex<Removals>,
    engine: Mutex<EngineView>,
}

/// Figures of one lane.
#[derive(Debug, Default)]
pub struct LaneProgress {
    /// Number of rows in flight.
    pub in_flight_rows: AtomicI64,
    /// Number of rows done.
    pub rows: AtomicU64,
    /// Time spent working, in nanoseconds.
    pub busy_ns: AtomicU64,
}

/// Latencies of signals and commits, in seconds.
#[derive(Debug)]
pub struct Latencies {
    /// Time from the publication of a signal's record to the commit of the signal; one observation for each signal.
    pub tick_to_signal: Histogram,
    /// Time from the read of that record to the commit.
    pub read_to_signal: Histogram,
    /// Time from that read until the signal is sealed: queues, lanes, and the wait for the next commit.
    pub read_to_seal: Histogram,
    /// Time from the seal of a transaction to its commit; one observation for each transaction.
    pub commit: Histogram,
    /// Time from the submission of a risk task's round to the scheduler until the round's first slice is in its lane's
    /// queue. One observation for each round whose first slice starts in the same step.
    pub risk_enqueue: Histogram,
}

impl Default for Latencies {
    fn default() -> Self {
        // Classic buckets are for scrapers without native histograms. The first ends at `first_s`, and each further one
        // is twice as wide.
        let histogram = |first_s: f64, count: u16| {
            let native = NativeHistogramConfig::new(BUCKET_FACTOR).max_buckets(BUCKETS_MAX);
            Histogram::new_classic_and_native(exponential_buckets(first_s, 2.0, count), native)
        };
        // Buckets from 100 µs to 3.3 min.
        let long = || histogram(1e-4, 22);
        Self {
            tick_to_signal: long(),
            read_to_signal: long(),
            read_to_seal: long(),
            commit: long(),
            // Buckets from 3 µs to 0.1 s.
            risk_enqueue: histogram(3.125e-6, 16),
        }
    }
}

impl Latencies {
    /// Observes a transaction and its signals.
    pub(super) fn observe_commit(&self, receipt: &Receipt, sealed_ns: i64, committed_ns: i64) {
        for &(RecordTimes { written_ns, read_at_ns }, count) in &receipt.signals_by_record {
            for _ in 0..count {
                if written_ns > 0 {
                    self.tick_to_signal.observe(seconds(written_ns, committed_ns));
                }
                self.read_to_signal.observe(seconds(read_at_ns, committed_ns));
                self.read_to_seal.observe(seconds(read_at_ns, sealed_ns));
            }
        }
        self.commit.observe(seconds(sealed_ns, committed_ns));
    }
}

pub(super) fn seconds(from_ns: i64, to_ns: i64) -> f64 {
    (to_ns - from_ns).max(0) as f64 / 1e9
}

/// Last report of the engine's thread.
#[derive(Clone, Debug, Default)]
pub struct EngineView {
    /// Time of the report, ns since the epoch on the engine's clock; 0 before the first one.
    pub at_ns: i64,
    /// Current state of the core.
    pub status: Status,
    /// Results of transactions.
    pub committed: Committed,
    /// Median, 99 % and 99.9 % quantiles of the time in ms from a tick's publication to the commit of its signal; `None`
    /// before the first signal.
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

/// Counts and outcomes of transactions.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// Number of aborted attempts, each of which was repeated or given up.
    pub aborts: u64,
    /// Number of transactions whose outcome had to be looked up, because the log did not report it.
    pub looked_up: u64,
    /// Reason of the last aborted attempt; `None` once an attempt succeeds.
    pub failing: Option<String>,
    /// Time of the last commit, ns since the epoch; `None` before the first.
    pub last_ns: Option<i64>,
    /// Number of late ticks written.
    pub late: u64,
    /// Number of dead letters written.
    pub dead_letters: u64,
    /// Number of snapshot records written.
    pub snapshots: u64,
    /// Number of journal entries written.
    pub journal_entries: u64,
    /// Number of risk results written, by class and outcome.
    pub risk_results: BTreeMap<(&'static str, &'static str), u64>,
    /// Offset of the next tick record to read, by partition.
    pub offsets: BTreeMap<i32, i64>,
}

/// Records that retention removed since the last report.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    have_ended: bool,
    by_topic: BTreeMap<String, Removed>,
}

/// Removed records of a topic.
#[derive(Debug, Default)]
struct Removed {
    records: u64,
    bytes: u64,
    begins: String,
}

impl Removals {
    /// Adds removed records of a topic. `begins` says in words where its partitions now begin.
    pub(crate) fn add(&mut self, topic: &str, records: u64, bytes: u64, begins: String) {
        let removed = self.by_topic.entry(topic.to_owned()).or_default();
        removed.records += records;
        removed.bytes += bytes;
        removed.begins = begins;
    }

    fn take(&mut self) -> Vec<String> {
        let taken = std::mem::take(&mut self.by_topic).into_iter();
        let detail = |(topic, Removed { records, bytes, begins }): (String, Removed)| {
            format!("{topic}: {records} records of {bytes} bytes; it begins in partition {begins}")
        };
        taken.map(detail).collect()
    }
}

impl Progress {
    /// Creates figures that are all zero.
    pub fn new(lanes: usize) -> Self {
        Self { lanes: (0..lanes).map(|_| LaneProgress::default()).collect(), ..Self::default() }
    }

    /// Returns the encoded signals of the latest commits, newest last.
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

    /// Removes records, and notes them for the lifecycle topic. Returns `None` without removing any once the engine
    /// ends, because nobody would write the note.
    pub(crate) fn removing<T>(&self, remove: impl FnOnce(&mut Removals) -> T) -> Option<T> {
        let mut removals = lock(&self.removals);
        (!removals.have_ended).then(|| remove(&mut removals))
    }

    /// Returns details of removals since the last call, one text for each topic; none while records are being removed.
    pub(super) fn take_removals(&self) -> Vec<String> {
        self.removals.try_lock().map_or_else(|_| Vec::new(), |mut removals| removals.take())
    }

    /// Ends all removals, and returns the details of the last ones.
    pub(super) fn end_removals(&self) -> Vec<String> {
        let mut removals = lock(&self.removals);
        removals.have_ended = true;
        removals.take()
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
    // A panic while the lock is held leaves the contents consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
