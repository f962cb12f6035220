//! Indicators on closed bars. This module knows slots and bars, but not how bars are made.
//!
//! [`table`] declares each indicator: its columns, its parameters and its formula in words. `docs/indicators.md` has
//! the notation of the formulas and their differences from TA-Lib's definitions.
//!
//! **Windows** are rolling sums: entering values are added, and leaving values are subtracted. Mean and deviation come
//! from `d = c − a`, the distance from an anchor a, which is a recent close: `m = a + Σd/n`, `s² = Σd²/n − (Σd/n)²`. At
//! fixed numbers of bars, and whenever cancellation could matter (`rolling`), sums are recomputed and the anchor moves
//! to the newest close. Equal closes give a deviation of exactly 0. VWAP's weights are exact integers per bar, but its
//! sums are floating-point, like all others.
//!
//! **State** is one column per quantity and one ring per kind of value. A slot's place in its rings, the shape of its
//! sums and the time of their renewal depend only on its own bars. Other slots and the cuts of batches have no effect.

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
