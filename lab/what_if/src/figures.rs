//! The figures of a run, computed in the same way for a journal and a model.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Greatest recorded latency, in nanoseconds: a day. Longer latencies count as a day.
const LATENCY_NS_MAX: u64 = 86_400_000_000_000;

/// The figures of a run.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Number of rows done.
    pub rows: i64,
    /// Latencies from a row's arrival to the end of its batch, in nanoseconds.
    pub(crate) row_latency: Histogram<u64>,
    /// Number of batches done.
    pub batches: u64,
    /// Times from a task's arrival to the end of its last round, in nanoseconds; ascending once the run is over.
    pub(crate) completions_ns: Vec<i64>,
    /// Number of tasks that expired, were refused, or were shed.
    pub missed: u64,
    /// Number of tasks that were withdrawn, lost their partition, or never ended.
    pub withdrawn: u64,
    /// Number of groups that lanes released so that they could move to another lane.
    pub moves: u64,
    /// Time for which lanes worked on batches and slices, by device, in nanoseconds.
    pub busy_ns: BTreeMap<String, i64>,
    /// Total time of all process lives, in nanoseconds. Each counts from its start, or the start of the window, to its
    /// last event.
    pub elapsed_ns: i64,
    /// Evidence about the order of rows.
    pub order: Order,
}

/// Evidence that each row was processed once and in the order of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Order {
    /// Number of groups with rows.
    pub groups: u64,
    /// Number of rows that arrived.
    pub arrived: i64,
    /// Number of rows done.
    pub done: i64,
    /// Number of rows that were not done when their partition was revoked or their process life ended.
    pub left: i64,
    /// The first contradictions of the order; their number is limited.
    pub violations: Vec<String>,
}

impl Order {
    /// True if nothing contradicts the order, and every row that arrived was done or counts as left.
    pub fn is_kept(&self) -> bool {
        self.violations.is_empty() && self.arrived == self.done + self.left
    }
}

/// Returns an empty histogram of latencies, from a microsecond to a day with three digits.
pub(crate) fn latencies() -> Histogram<u64> {
    // The constant bounds cannot fail.
    Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, 3).expect("bounds of a histogram")
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            rows: 0,
            row_latency: latencies(),
            batches: 0,
            completions_ns: Vec::new(),
            missed: 0,
            withdrawn: 0,
            moves: 0,
            busy_ns: BTreeMap::new(),
            elapsed_ns: 0,
            order: Order::default(),
        }
    }
}

impl Figures {
    /// Counts completed rows, and records their latency.
    pub(crate) fn rows_done(&mut self, rows: i64, latency_ns: i64) {
        self.rows += rows;
        Self::record(&mut self.row_latency, rows, latency_ns);
    }

    /// Adds the latency of a number of rows to a histogram.
    pub(crate) fn record(latencies: &mut Histogram<u64>, rows: i64, latency_ns: i64) {
        latencies.saturating_record(latency_ns.max(0).unsigned_abs());
        if rows > 1 {
            let more = rows.unsigned_abs() - 1;
            let latency_ns = latency_ns.max(0).unsigned_abs().min(LATENCY_NS_MAX);
            latencies.record_n(latency_ns, more).expect("it is within the bounds");
        }
    }

    /// Returns a quantile of row latencies, in milliseconds; `None` without rows.
    pub fn row_latency_ms(&self, quantile: f64) -> Option<f64> {
        (!self.row_latency.is_empty()).then(|| self.row_latency.value_at_quantile(quantile) as f64 / 1e6)
    }

    /// Returns the mean latency of rows, in milliseconds; `None` without rows.
    pub fn row_latency_mean_ms(&self) -> Option<f64> {
        (!self.row_latency.is_empty()).then(|| self.row_latency.mean() / 1e6)
    }

    /// Returns the mean completion time of tasks, in milliseconds; `None` if none was done.
    pub fn completion_mean_ms(&self) -> Option<f64> {
        let sum: i128 = self.completions_ns.iter().map(|ns| i128::from(*ns)).sum();
        (!self.completions_ns.is_empty()).then(|| sum as f64 / self.completions_ns.len() as f64 / 1e6)
    }

    /// Returns a quantile of completion times, in milliseconds; `None` if none was done.
    pub fn completion_ms(&self, quantile: f64) -> Option<f64> {
        let last = self.completions_ns.len().checked_sub(1)?;
        let index = ((quantile * last as f64).round() as usize).min(last);
        Some(self.completions_ns[index] as f64 / 1e6)
    }

    /// Returns the busy share of a device's lane, in percent of the elapsed time; `None` for an unknown device.
    pub fn utilization_percent(&self, device: &str) -> Option<f64> {
        let busy_ns = self.busy_ns.get(device)?;
        Some(100.0 * *busy_ns as f64 / self.elapsed_ns.max(1) as f64)
    }
}
