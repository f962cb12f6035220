//! Signals on closed bars and their indicators. This module knows slots, and no symbols.
//!
//! Each of four *relations* puts a bar into a zone – below, between or above – relative to two lines:
//!
//! | relation | above | below | value and threshold of the signal |
//! | --- | --- | --- | --- |
//! | EMA | fast > slow | fast < slow | fast, slow |
//! | RSI | RSI > upper | RSI < lower | RSI, the line |
//! | bands | close > upper band | close < lower band | close, the band |
//! | z-score | z > +t | z < −t | z, the line |
//!
//! A signal is detected at the bar that enters *above* or *below* from another zone. A bar with an unavailable number
//! is in no zone, and the bar after it enters none: a first value causes no signal.
//!
//! Every bar is a signal as well, before the others, with the close as its value.

mod detected;
pub(crate) mod device;
mod params;
mod slab;

pub use detected::{Detected, SignalKind};
pub use params::SignalParams;
pub use slab::SignalSlab;
