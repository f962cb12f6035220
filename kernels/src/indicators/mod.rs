//! Indicators on closed bars. Knows slots and bars, not how bars came about.
//!
//! With c the closes of a slot's bars (as `f64`: price / 1e9), h and l the highs and lows, and the newest bar last:
//!
//! | indicator | from bar | formula |
//! | --- | --- | --- |
//! | SMA(n) | n | mean of the last n closes |
//! | EMA(n) | n | seed: mean of the first n closes; then `e += (c − e) · 2/(n+1)` |
//! | Bollinger(n, w) | n | mean m of the last n closes, `m ± w · s`, s their population standard deviation |
//! | RSI(n) | n+1 | `100 · G / (G + L)`, 0 without movement; G, L: mean gain and loss of the first n changes, then Wilder: `G = (G·(n−1) + gain) / n` |
//! | MACD(f, s, g) | s+g−1 | EMA(f) − EMA(s), both seeded at bar s with the last f and s closes; signal: EMA(g) of that; histogram: their difference |
//! | ATR(n) | n+1 | true range `max(h − l, |h − c'|, |l − c'|)` with c' the close before; mean of the first n, then Wilder |
//! | VWAP(n) | n | Σ notional / Σ volume of the last n bars; not available while the volume is 0 |
//! | momentum(n) | n+1 | close − close n bars before |
//! | ROC(n) | n+1 | `(close / close n bars before − 1) · 100`, 0 where that was 0 |
//! | z-score(n) | n | `(c − m) / s` of the last n closes, 0 where s is 0 |
//! | realised volatility(n) | n+1 | `√Σ r²` of the last n returns `r = ln(c / c')`, not annualised; not available with a price of 0 or less |
//!
//! These are TA-Lib's definitions (unstable period 0) where it has them, so numbers can be compared.
//!
//! **Windows** are rolling sums: what enters is added, what leaves is taken away. Mean and deviation come from
//! `d = c − a`, the distance from an anchor a, which is a recent close: `m = a + Σd/n`, `s² = Σd²/n − (Σd/n)²`. Sums are
//! made anew, and the anchor is moved to the newest close, at fixed numbers of bars and whenever cancellation could show
//! (`rolling`); equal closes give a deviation of exactly 0. VWAP's weights are exact integers per bar and numbers in its
//! sums, like all else.
//!
//! **State** is one column per quantity and one ring per kind of value. A slot's place in its rings, the shape of its sums
//! and when they are made anew depend on its own bars alone: neither on the slots beside it nor on cuts.

mod averages;
mod columns;
pub(crate) mod device;
mod formulas;
mod lanes;
mod params;
mod ring;
mod rolling;
mod slab;
mod state;
mod step;
mod windows;

pub use columns::{INDICATORS, Indicator, IndicatorColumns};
pub(crate) use formulas::{Period, scaled};
pub use params::{IndicatorParams, WINDOW_MAX};
pub use slab::IndicatorSlab;
