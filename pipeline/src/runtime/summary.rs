//! Summary of a run.

use hdrhistogram::Histogram;
use warptape_engine::SplitSymbols;
use warptape_stages::RepeatedTrades;

/// Figures of a finished run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Ticks accepted, late ones included.
    pub ticks: u64,
    /// Late ticks.
    pub late: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Trades that repeat an earlier trade id of their symbol, including late ones.
    pub repeated: RepeatedTrades,
    /// Symbols in more than one partition.
    pub split_symbols: SplitSymbols,
    /// Signals committed.
    pub signals: u64,
    /// Decisions made.
    pub decisions: u64,
    /// Transactions.
    pub commits: u64,
    /// Symbols seen.
    pub symbols: u64,
    /// Time bars open at the end.
    pub open_bars: u64,
    /// Time from the first record read to the last commit of source offsets, in nanoseconds.
    pub active_ns: i64,
    /// Time from a record's read to the commit of a signal it caused, in nanoseconds, per signal.
    pub latency_ns: Histogram<u64>,
}

/// Greatest latency of the histogram, in ns; longer ones count as this.
pub(super) const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// A histogram from a microsecond to ten minutes with three significant digits.
pub(super) fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, 3).expect("the bounds are valid")
}
