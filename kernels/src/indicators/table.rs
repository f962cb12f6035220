//! All indicators, each declared once. A row has
//!
//! - its columns: variant, name in signals, unit, description;
//! - its parameters: key, type (`u32` for a window of closed bars), default, allowed values, letter in formulas,
//!   purpose. An indicator whose first parameter may be 0 is off at 0. Then its columns have no values, and states and
//!   recorded configurations do not contain it;
//! - the quantities of each slot's last bars that only this indicator keeps, each with the window that gives their
//!   number;
//! - the text of its row in `docs/indicators.md`, which has the notation: first bar, formula, seeds and conventions.
//!
//! New rows come last: columns and parameters are numbered in this order in memory, on devices and in states.
//! `declaration` derives everything else. The values are computed in `averages` and `windows`, and in `indicators.cu`.

use serde::Deserialize;

use super::declaration::{IndicatorRow, Parameter, Unit, columns_always, indicators};

/// Longest window, in bars. The rings of a slot take 8 bytes per bar of a window, and 16 for VWAP.
pub const WINDOW_MAX: u32 = 1024;

// Signals have a field for each of these columns, and get no more fields: new indicators must be off by default.
const _: () = assert!(ALWAYS == 16);

indicators! {
    {
        columns: [Sma: sma, Price, "Simple moving average of the closes."],
        parameters: [sma: u32 = 20 in 2..=WINDOW_MAX, "n", "Simple moving average."],
        keeps: [],
        from_bar: "n",
        formula: "mean of the last n closes",
        convention: "",
    }
    {
        columns: [
            EmaFast: ema_fast, Price, "Exponential moving average of the closes, short window.";
            EmaSlow: ema_slow, Price, "Exponential moving average of the closes, long window.";
        ],
        parameters: [
            ema_fast: u32 = 38 in 2..=WINDOW_MAX, "", "Fast exponential moving average; shorter than the slow one.";
            ema_slow: u32 = 100 in 2..=WINDOW_MAX, "n", "Slow exponential moving average.";
        ],
        keeps: [],
        from_bar: "n",
        formula: "`e ← e + (c − e) · 2/(n+1)`",
        convention: "`e` at bar n is the mean of the first n closes",
    }
    {
        columns: [BollingerMiddle: bollinger_middle, Price, "Middle Bollinger band: moving average of the closes."],
        parameters: [bollinger: u32 = 20 in 2..=WINDOW_MAX, "n", "Bollinger bands."],
        keeps: [],
        from_bar: "n",
        formula: "m, the mean of the last n closes",
        convention: "",
    }
    {
        columns: [
            BollingerUpper: bollinger_upper, Price, "Upper Bollinger band: middle plus a multiple of the standard deviation.";
            BollingerLower: bollinger_lower, Price, "Lower Bollinger band: middle minus a multiple of the standard deviation.";
        ],
        parameters: [bollinger_width: f64 = 2.0 in 0.01..=100.0, "w", "Half width of the bands, in standard deviations."],
        keeps: [],
        from_bar: "n",
        formula: "`m + w·s`, `m − w·s`",
        convention: "s is the population standard deviation of the same closes: the sum is divided by n, not by n − 1",
    }
    {
        columns: [Rsi: rsi, Number, "Relative strength index after Wilder, 0 to 100."],
        parameters: [rsi: u32 = 14 in 2..=WINDOW_MAX, "n", "Relative strength index (Wilder)."],
        keeps: [],
        from_bar: "n + 1",
        formula: "`100 · G / (G + L)`; Wilder: `G ← (G·(n−1) + gain) / n`, L likewise",
        convention: "G and L at bar n + 1 are the means of the first n gains and losses. The value is 0, not 50, if the price never moved",
    }
    {
        columns: [Macd: macd, Price, "Moving average convergence/divergence: fast minus slow EMA."],
        parameters: [
            macd_fast: u32 = 12 in 2..=WINDOW_MAX, "f", "Fast average of MACD; shorter than the slow one.";
            macd_slow: u32 = 26 in 2..=WINDOW_MAX, "s", "Slow average of MACD.";
        ],
        keeps: [],
        from_bar: "s + g − 1",
        formula: "EMA(f) − EMA(s)",
        convention: "both are seeded at bar s, with the means of the last f and s closes up to this bar",
    }
    {
        columns: [MacdSignal: macd_signal, Price, "EMA of macd."],
        parameters: [macd_signal: u32 = 9 in 2..=WINDOW_MAX, "g", "Signal line of MACD."],
        keeps: [],
        from_bar: "s + g − 1",
        formula: "EMA(g) of `macd`",
        convention: "seeded with the mean of the first g values of `macd`; `macd` is published from the same bar on",
    }
    {
        columns: [MacdHistogram: macd_histogram, Price, "macd minus macd_signal."],
        parameters: [],
        keeps: [],
        from_bar: "s + g − 1",
        formula: "`macd − macd_signal`",
        convention: "",
    }
    {
        columns: [Atr: atr, Price, "Average true range after Wilder."],
        parameters: [atr: u32 = 14 in 2..=WINDOW_MAX, "n", "Average true range (Wilder)."],
        keeps: [],
        from_bar: "n + 1",
        formula: "true range `max(h − l, |h − c'|, |l − c'|)`; Wilder's average",
        convention: "seeded with the mean of the first n true ranges; the first bar has no true range",
    }
    {
        columns: [Vwap: vwap, Price, "Volume-weighted average price."],
        parameters: [vwap: u32 = 20 in 2..=WINDOW_MAX, "n", "Volume-weighted average price."],
        keeps: [],
        from_bar: "n",
        formula: "Σ price·size / Σ size over all trades of the last n bars",
        convention: "rolling, not since midnight; null if the sizes sum to 0, or if price times volume could exceed 128 bits (1.7e20 at nine digits)",
    }
    {
        columns: [Momentum: momentum, Price, "Close minus the close some bars before."],
        parameters: [momentum: u32 = 10 in 1..=WINDOW_MAX, "n", "Momentum: close minus the close this many bars before."],
        keeps: [],
        from_bar: "n + 1",
        formula: "`c` − close n bars before",
        convention: "in units of price",
    }
    {
        columns: [Roc: roc, Number, "Rate of change: momentum in percent of the earlier close."],
        parameters: [roc: u32 = 10 in 1..=WINDOW_MAX, "n", "Rate of change, in percent of the close this many bars before."],
        keeps: [],
        from_bar: "n + 1",
        formula: "`(c / close n bars before − 1) · 100`",
        convention: "in percent; null if the earlier close is 0 or less, where a percentage has no meaning; TA-Lib gives a number there",
    }
    {
        columns: [Zscore: zscore, Number, "Distance of the close from its mean, in standard deviations."],
        parameters: [zscore: u32 = 20 in 2..=WINDOW_MAX, "n", "Mean-reversion z-score."],
        keeps: [],
        from_bar: "n",
        formula: "`(c − m) / s`",
        convention: "m and s as in the Bollinger bands, over the last n closes including this one; the value is 0 if all are equal",
    }
    {
        columns: [
            RealisedVolatility: realised_volatility, Number,
            "Realised volatility of the window: root of the sum of its squared log returns, not annualised.";
        ],
        parameters: [
            realised_volatility: u32 = 20 in 2..=WINDOW_MAX, "n",
            "Realised volatility: root of the summed squared log returns.";
        ],
        keeps: [],
        from_bar: "n + 1",
        formula: "`√Σ r²` of the last n returns `r = ln(c / c')`",
        convention: "not a mean, not annualised, without subtracting the mean return. Returns use the exact difference of two prices, so small returns are accurate. Null while the window has a close of 0 or less",
    }
    {
        columns: [
            StochasticK: stochastic_k, Number, "Stochastic oscillator: where the close lies between lowest low and highest high, 0 to 100.";
            StochasticD: stochastic_d, Number, "Moving average of stochastic_k.";
        ],
        parameters: [
            stochastic: u32 = 0 in 0..=WINDOW_MAX, "n", "Stochastic oscillator, such as 14; 0 for none.";
            stochastic_average: u32 = 3 in 1..=WINDOW_MAX, "m", "Moving average of the stochastic oscillator.";
        ],
        keeps: [StochasticHighs: stochastic, StochasticLows: stochastic, StochasticPercents: stochastic_average],
        from_bar: "n; n + m − 1",
        formula: "K: `100 · (c − L) / (H − L)`, with H the highest high and L the lowest low of the last n bars. D: mean of the last m values of K",
        convention: "the fast stochastic. K is 0, not 50, if H = L, as in TA-Lib. K is published before D, unlike in TA-Lib",
    }
}
