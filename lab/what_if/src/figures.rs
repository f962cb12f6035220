//! What a run came to: the same figures of a journal and of a model.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Latencies beyond a day count as one.
const LATENCY_NS_MAX: u64 = 86_400_000_000_000;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Rows that were done.
    pub rows: i64,
    /// From a row's arrival to the end of its batch, in nanoseconds.
    pub(crate) row_latency: Histogram<u64>,
    /// Batches that were done.
    pub batches: u64,
    /// From a task's arrival to the end of its last round, in nanoseconds, ascending once the run is over.
    pub(crate) completions_ns: Vec<i64>,
    /// Tasks whose deadline passed, that were refused, or that were shed.
    pub missed: u64,
    /// Tasks that were withdrawn, or went with their partition.
    pub withdrawn: u64,
    /// Groups that a lane gave back, to go to another one.
    pub moves: u64,
    /// Time that lanes worked on batches and slices, by device, in nanoseconds.
    pub busy_ns: BTreeMap<String, i64>,
    /// From the beginning of each life, or of the window, to what was done last in it, in nanoseconds.
    pub elapsed_ns: i64,
    /// Evidence about the order of rows.
    pub order: Order,
}

/// Whether each row went through once and in the order of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Order {
    /// Groups that had rows.
    pub groups: u64,
    /// Rows that came.
    pub arrived: i64,
    /// Rows that were done.
    pub done: i64,
    /// Rows that were not done when their partition was revoked, or their life ended.
    pub left: i64,
    /// What contradicts the order, the first few.
    pub violations: Vec<String>,
}

impl Order {
    /// Whether nothing contradicts the order, and every row that came was done or is accounted for.
    pub fn is_kept(&self) -> bool {
        self.violations.is_empty() && self.arrived == self.done + self.left
    }
}

/// No latencies yet: from a microsecond to a day with three digits.
pub(crate) fn latencies() -> Histogram<u64> {
    // The bounds are constants.
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
    /// Counts rows that took so long.
    pub(crate) fn rows_done(&mut self, rows: i64, latency_ns: i64) {
        self.rows += rows;
        Self::record(&mut self.row_latency, rows, latency_ns);
    }

    /// Records rows that took so long.
    pub(crate) fn record(latencies: &mut Histogram<u64>, rows: i64, latency_ns: i64) {
        latencies.saturating_record(latency_ns.max(0).unsigned_abs());
        if rows > 1 {
            let more = rows.unsigned_abs() - 1;
            let latency_ns = latency_ns.max(0).unsigned_abs().min(LATENCY_NS_MAX);
            latencies.record_n(latency_ns, more).expect("it is within the bounds");
        }
    }

    /// A quantile of the latencies of rows, in milliseconds; `None` without rows.
    pub fn row_latency_ms(&self, quantile: f64) -> Option<f64> {
        (!self.row_latency.is_empty()).then(|| self.row_latency.value_at_quantile(quantile) as f64 / 1e6)
    }

    /// Mean latency of rows, in milliseconds; `None` without rows.
    pub fn row_latency_mean_ms(&self) -> Option<f64> {
        (!self.row_latency.is_empty()).then(|| self.row_latency.mean() / 1e6)
    }

    /// Mean completion time of tasks, in milliseconds; `None` where none was done.
    pub fn completion_mean_ms(&self) -> Option<f64> {
        let sum: i128 = self.completions_ns.iter().map(|ns| i128::from(*ns)).sum();
        (!self.completions_ns.is_empty()).then(|| sum as f64 / self.completions_ns.len() as f64 / 1e6)
    }

    /// A quantile of completion times, in milliseconds; `None` where none was done.
    pub fn completion_ms(&self, quantile: f64) -> Option<f64> {
        let last = self.completions_ns.len().checked_sub(1)?;
        let index = ((quantile * last as f64).round() as usize).min(last);
        Some(self.completions_ns[index] as f64 / 1e6)
    }

    /// Share of the time in which a device's lane worked, in percent.
    pub fn utilization_percent(&self, device: &str) -> Option<f64> {
        let busy_ns = self.busy_ns.get(device)?;
        Some(100.0 * *busy_ns as f64 / self.elapsed_ns.max(1) as f64)
    }
}
