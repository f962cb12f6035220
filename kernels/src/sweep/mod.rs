//! Backtest sweeps: the results of many trading rules on recorded bars, in one pass over the bars.
//!
//! ```text
//! closes of a symbol, 4,096 at a time ──▶ each block of eight rules ──▶ position ──▶ profit, drawdown, trades
//! ```
//!
//! # What is computed
//!
//! A rule takes a position at the close of each bar: long (+1), short (−1) or flat (0). Positions are in units of one
//! notional, whatever the price. A position earns the next bar's change, and pays a cost on each notional traded:
//!
//! ```text
//! change_t = (close_t − close_{t−1}) / close_{t−1}
//! profit_t = position_{t−1} · change_t − cost · |position_t − position_{t−1}|
//! ```
//!
//! A position is flat until its indicators are full; the last position is not closed. Averages begin with the mean of
//! their first values, like those of `indicators`. Deviations are population deviations of the window (divided by n),
//! of prices relative to the symbol's first close. They are updated bar by bar and recomputed at every 4,096th bar. A
//! window counts as constant if its variance is below 1e-12 of its mean square. The side of the mean on which a close
//! lies is determined exactly. The numbers are decimal if the symbol's closes are whole multiples of a power of ten
//! down to 1e-9, and doubles otherwise.
//!
//! A cell's figures are sums over its symbols, in their order; each symbol is computed separately. A result does not
//! depend on which cells are computed together, so a grid may be divided anywhere.

mod account;
mod device;
mod rules;
mod window_sum;

use std::sync::Arc;

use thiserror::Error;

use bytemuck::{Pod, Zeroable};

use crate::isa::{HotLoop, Isa};
use account::Account;
use rules::{LANES, RuleBlock};

pub use device::sweep_on_device;
pub use rules::blocks;

/// Number of bars that all rules process before the next ones, so that these bars stay in the cache. `sweep.cu` has the
/// same number.
const CHUNK: usize = 4_096;
/// Range of closes; the range of scaled prices is within it.
const CLOSES: std::ops::RangeInclusive<f64> = 1e-9..=1e12;
/// Longest window of a rule, in bars.
pub const SWEEP_WINDOW_MAX: u32 = 1 << 20;

/// A rule for long, short and flat positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TradingRule {
    /// Long while the fast exponential average is above the slow one, short while it is below.
    EmaCross {
        /// Bars of the fast average.
        fast: u32,
        /// Bars of the slow average.
        slow: u32,
    },
    /// Long once Wilder's relative strength index falls below `low`, short once it rises above `high`. A position is
    /// kept until the opposite one is taken.
    RsiReversion {
        /// Bars of the averages of gains and losses.
        length: u32,
        /// From 0 to 100.
        low: f64,
        /// From 0 to 100.
        high: f64,
    },
    /// Long if the close is more than `entry` deviations below the mean, short if more above it, flat again within
    /// `exit` deviations.
    ZScoreReversion {
        /// Bars of mean and deviation.
        window: u32,
        /// Deviations from the mean.
        entry: f64,
        /// Deviations from the mean.
        exit: f64,
    },
    /// Long if the close is more than `width` deviations above the mean, short if more below it. Flat again on the
    /// other side of the mean.
    BandBreakout {
        /// Bars of mean and deviation.
        window: u32,
        /// Deviations from the mean.
        width: f64,
    },
}

impl TradingRule {
    /// Checks that the rule can be computed.
    pub fn check(&self) -> Result<(), SweepError> {
        let windows: &[(&'static str, u32)] = match self {
            Self::EmaCross { fast, slow } => &[("fast", *fast), ("slow", *slow)],
            Self::RsiReversion { length, .. } => &[("length", *length)],
            Self::ZScoreReversion { window, .. } | Self::BandBreakout { window, .. } => {
                &[("window", *window)]
            }
        };
        let thresholds: &[(&'static str, f64)] = match self {
            Self::EmaCross { .. } => &[],
            Self::RsiReversion { low, high, .. } => &[("low", *low), ("high", *high)],
            Self::ZScoreReversion { entry, exit, .. } => &[("entry", *entry), ("exit", *exit)],
            Self::BandBreakout { width, .. } => &[("width", *width)],
        };
        for &(field, bars) in windows {
            if !(1..=SWEEP_WINDOW_MAX).contains(&bars) {
                return Err(SweepError::Window { field, bars });
            }
        }
        let greatest = if matches!(self, Self::RsiReversion { .. }) { 100.0 } else { THRESHOLD_MAX };
        for &(field, value) in thresholds {
            if !(0.0..=greatest).contains(&value) {
                return Err(SweepError::Threshold { field, value, greatest });
            }
        }
        Ok(())
    }
}

/// The greatest threshold, in deviations.
const THRESHOLD_MAX: f64 = 1e6;

/// Checks the cost of each notional traded, and all rules.
fn check(rules: &[TradingRule], cost: f64) -> Result<(), SweepError> {
    if !(0.0..=1.0).contains(&cost) {
        return Err(SweepError::Threshold { field: "cost", value: cost, greatest: 1.0 });
    }
    rules.iter().try_for_each(TradingRule::check)
}

/// The reason why a sweep cannot be computed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SweepError {
    /// A window is too short or too long.
    #[error("{field} is {bars} bars; it must be from 1 to {SWEEP_WINDOW_MAX}")]
    Window {
        /// Field of the rule.
        field: &'static str,
        /// The given number of bars.
        bars: u32,
    },
    /// A threshold, or the cost, is out of its range.
    #[error("{field} is {value}; it must be from 0 to {greatest}")]
    Threshold {
        /// Field of the rule, or `cost`.
        field: &'static str,
        /// The given value.
        value: f64,
        /// The greatest allowed value.
        greatest: f64,
    },
    /// A close is out of range, so that the change to the next one cannot be computed.
    #[error("close {bar} of symbol {symbol} is {close}; it must be from 1e-9 to 1e12")]
    Close {
        /// Number of the symbol.
        symbol: usize,
        /// Number of the bar among those of the symbol.
        bar: usize,
        /// The given close.
        close: f64,
    },
}

/// Closes of bars, by symbol.
#[derive(Clone, Debug, Default)]
pub struct SweepBars {
    close: Arc<Vec<f64>>,
    /// Change since the previous bar; 0 at a symbol's first bar.
    change: Arc<Vec<f64>>,
    /// End of the bars of each symbol.
    ends: Vec<usize>,
    /// Power of ten that makes all closes of a symbol whole numbers, by symbol; 0 if there is none.
    scales: Vec<f64>,
}

impl SweepBars {
    /// Adds a symbol with the closes of its bars in order.
    pub fn push_symbol(&mut self, closes: &[f64]) -> Result<(), SweepError> {
        if let Some(bar) = closes.iter().position(|close| !CLOSES.contains(close)) {
            return Err(SweepError::Close { symbol: self.ends.len(), bar, close: closes[bar] });
        }
        let changes = closes.windows(2).map(|pair| (pair[1] - pair[0]) / pair[0]);
        Arc::make_mut(&mut self.change).extend(closes.first().map(|_| 0.0).into_iter().chain(changes));
        Arc::make_mut(&mut self.close).extend_from_slice(closes);
        self.ends.push(self.close.len());
        self.scales.push(window_sum::scale_of(closes));
        Ok(())
    }

    /// Number of bars of all symbols.
    pub fn len(&self) -> usize {
        self.close.len()
    }

    /// Number of symbols.
    pub fn symbol_count(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no bars.
    pub fn is_empty(&self) -> bool {
        self.close.is_empty()
    }

    /// Closes and changes of each symbol.
    fn symbols(&self) -> impl Iterator<Item = (&[f64], &[f64])> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| (&self.close[begin..end], &self.change[begin..end]))
    }
}

/// Results of a rule on a symbol's bars: `SymbolSums` of `sweep.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub(crate) struct SymbolSums {
    pub profit: f64,
    pub squares: f64,
    pub drawdown: f64,
    pub trades: f64,
}

/// Results of a rule on all bars.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellResult {
    /// Sum of the profits, in notionals.
    pub profit: f64,
    /// Greatest drawdown of any symbol: the distance of its summed profits below their earlier maximum, in notionals.
    pub drawdown: f64,
    /// Sharpe ratio: mean of the profits of a bar divided by their standard deviation, not annualised; 0 if the
    /// deviation is 0.
    pub sharpe: f64,
    /// Number of positions taken; a reversal counts as one.
    pub trades: u64,
}

impl CellResult {
    /// Combines the results of all symbols, in their order.
    pub(crate) fn of_symbols(symbols: &[SymbolSums], bars: usize) -> Self {
        let (mut sums, mut drawdown) = (SymbolSums::default(), 0.0);
        for symbol in symbols {
            sums.profit += symbol.profit;
            sums.squares += symbol.squares;
            sums.trades += symbol.trades;
            drawdown = if symbol.drawdown > drawdown { symbol.drawdown } else { drawdown };
        }
        let count = bars as f64;
        let mean = sums.profit / count;
        let variance = sums.squares / count - mean * mean;
        let sharpe = if variance > 0.0 { mean / variance.sqrt() } else { 0.0 };
        Self { profit: sums.profit, drawdown, sharpe, trades: sums.trades as u64 }
    }
}

/// Results of each rule on the bars; `cost` is paid for each notional traded.
pub fn sweep(
    isa: Isa,
    bars: &SweepBars,
    rules: &[TradingRule],
    cost: f64,
) -> Result<Vec<CellResult>, SweepError> {
    check(rules, cost)?;
    Ok(run(isa, bars, RuleBlock::all(rules), (rules.len(), cost)))
}

fn run(
    isa: Isa,
    bars: &SweepBars,
    mut blocks: Vec<RuleBlock>,
    (rules, cost): (usize, f64),
) -> Vec<CellResult> {
    let mut cells = vec![Vec::with_capacity(bars.ends.len()); rules];
    for ((closes, changes), &scale) in bars.symbols().zip(&bars.scales) {
        for block in &mut blocks {
            block.begin(closes.first().copied().unwrap_or_default(), scale);
        }
        let mut from = 0;
        while from < closes.len() {
            let to = (from + CHUNK).min(closes.len());
            for block in &mut blocks {
                let isa = block.isa(isa);
                isa.run(Chunk { block, closes, changes, from, to, cost });
            }
            from = to;
        }
        for block in &blocks {
            for lane in 0..LANES {
                if let Some(cell) = block.cells[lane] {
                    cells[cell].push(block.account.sums(lane));
                }
            }
        }
    }
    cells.iter().map(|symbols| CellResult::of_symbols(symbols, bars.len())).collect()
}

/// The hot loop of one block of rules over some bars of a symbol.
struct Chunk<'a> {
    block: &'a mut RuleBlock,
    closes: &'a [f64],
    changes: &'a [f64],
    from: usize,
    to: usize,
    cost: f64,
}

impl HotLoop for Chunk<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { block, closes, changes, from, to, cost } = self;
        block.run(closes, changes, from, to, cost);
    }
}
