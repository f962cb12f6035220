//! Arithmetic on slot columns: rows to bars, bars to indicators, indicators to signals. Also prices of options
//! ([`pricing`]), risk of portfolios ([`portfolio`]), and the results of trading rules on bars ([`sweep`]).
//!
//! A *slot* is the number of a symbol within its group. Kernels know no symbols, no log, no configuration files and no
//! clock. State sits in slabs (one entry per slot) and is written as device-neutral little-endian bytes.
//!
//! ```text
//! Rows ──▶ BarSlab::fold ──▶ ClosedBars ──▶ IndicatorSlab::update ──▶ IndicatorColumns ──▶ SignalSlab::detect
//!                                                                                               └──▶ Vec<Detected>
//! ```
//!
//! # Numeric contract
//!
//! - Prices, sizes and their sums are integers: exact, whatever the order of folding.
//! - Everything else is `f64` with `+ − × ÷ √` in a stated order; nothing is contracted or reassociated. No function of
//!   the platform's mathematics library is called: [`math`] has its own. Only simulations in mixed precision have
//!   `f32`.
//! - Random numbers are a function of key, path, step and stream (Philox 4x32-10), as are Sobol's points with their
//!   shifts. Sums over paths have one shape, which depends on the paths' numbers alone.
//! - A reduction over a window has a fixed shape: four accumulators over the positions of the ring. It depends only on
//!   the number of bars that the slot has had.
//! - Hot loops are compiled three times, for baseline x86-64, for AVX2 with FMA and for AVX-512. One is chosen at run
//!   time ([`Isa`]); the bits are the same, the speed is not.

mod bars;
mod compaction;
pub mod device;
mod indicators;
mod isa;
pub mod math;
mod mistake;
pub mod portfolio;
pub mod pricing;
mod rows;
mod signals;
mod state;
pub mod sweep;

pub use bars::{
    BarSlab, BarSpec, BarSpecError, BySide, ClosedBars, FORGOTTEN, OPEN_BARS_MAX, RECENT_QUOTES_MAX,
};
pub use indicators::{
    INDICATORS, Indicator, IndicatorColumns, IndicatorParams, IndicatorSlab, PARAMETERS, Parameter,
    WINDOW_MAX, documented_indicators,
};
pub use isa::{Isa, Present};
pub use mistake::ParameterMistake;
pub use rows::{ABSENT, Aggressor, RowKind, Rows, SIZE_EXPONENT_MAX};
pub use signals::{Detected, SignalKind, SignalParams, SignalSlab};
pub use state::StateError;
