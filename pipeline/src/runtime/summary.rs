//! Summary of a run.

use hdrhistogram::Histogram;
use warptape_engine::SplitSymbols;
use warptape_stages::RepeatedTrades;

/// Figures of a finished run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Number of ticks accepted, including late ones.
    pub ticks: u64,
    /// Number of late ticks.
    pub late: u64,
    /// Number of dead letters.
    pub dead_letters: u64,
    /// Trades that repeat an earlier trade id of the same symbol, including late ones.
    pub repeated: RepeatedTrades,
    /// Symbols in more than one partition.
    pub split_symbols: SplitSymbols,
    /// Number of signals committed.
    pub signals: u64,
    /// Number of decisions made.
    pub decisions: u64,
    /// Number of transactions committed.
    pub commits: u64,
    /// Number of symbols seen.
    pub symbols: u64,
    /// Number of time bars that were open at the end.
    pub open_bars: u64,
    /// Time from the first read of a record to the last commit of source offsets, in nanoseconds.
    pub active_ns: i64,
    /// Time from the publication of a record to the commit of each signal that it caused, in nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// Time from the read of a record to that commit, in nanoseconds.
    pub read_latency_ns: Histogram<u64>,
}

/// Greatest latency that the histogram distinguishes, in ns; longer ones count as this.
pub(super) const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// Returns a histogram from a microsecond to ten minutes, with three significant digits.
pub(super) fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, 3).expect("the bounds are valid")
}
