//! Positions of rules, computed side by side, and their profits.

#![expect(clippy::needless_range_loop, reason = "a lane is a position in several arrays at once")]

use super::SymbolSums;

/// The profits of rules on a symbol so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account<const L: usize> {
    pub position: [f64; L],
    profit: [f64; L],
    squares: [f64; L],
    /// The highest profit so far.
    peak: [f64; L],
    drawdown: [f64; L],
    trades: [f64; L],
}

impl<const L: usize> Account<L> {
    pub const EMPTY: Self = Self {
        position: [0.0; L],
        profit: [0.0; L],
        squares: [0.0; L],
        peak: [0.0; L],
        drawdown: [0.0; L],
        trades: [0.0; L],
    };

    /// Adds the profits of the bar's change, and sets the positions to `target`.
    #[inline(always)]
    pub fn step(&mut self, change: f64, target: &[f64; L], cost: f64) {
        for lane in 0..L {
            let traded = (target[lane] - self.position[lane]).abs();
            let profit = self.position[lane] * change - cost * traded;
            let sum = self.profit[lane] + profit;
            let peak = if sum > self.peak[lane] { sum } else { self.peak[lane] };
            let below = peak - sum;
            self.profit[lane] = sum;
            self.squares[lane] += profit * profit;
            self.peak[lane] = peak;
            self.drawdown[lane] = if below > self.drawdown[lane] { below } else { self.drawdown[lane] };
            self.trades[lane] += if (traded > 0.0) & (target[lane] != 0.0) { 1.0 } else { 0.0 };
            self.position[lane] = target[lane];
        }
    }

    pub fn sums(&self, lane: usize) -> SymbolSums {
        SymbolSums {
            profit: self.profit[lane],
            squares: self.squares[lane],
            drawdown: self.drawdown[lane],
            trades: self.trades[lane],
        }
    }
}
