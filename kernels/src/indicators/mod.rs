//! Indicators on closed bars. This module knows slots and bars, and not how bars are made.
//!
//! [`table`] declares each indicator: its columns, its parameters and its formula in words. The notation of the formulas, and what
//! they make of TA-Lib's definitions, is in `docs/indicators.md`.
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
mod declaration;
pub(crate) mod device;
mod formulas;
mod lanes;
mod params;
mod ring;
mod rolling;
mod slab;
mod state;
mod step;
mod table;
pub(crate) mod ties;
mod windows;

pub use columns::IndicatorColumns;
pub use declaration::{Parameter, documented_indicators};
pub(crate) use formulas::{Period, scaled};
pub use slab::IndicatorSlab;
pub(crate) use table::HEADER;
pub use table::{INDICATORS, Indicator, IndicatorParams, PARAMETERS, WINDOW_MAX};
