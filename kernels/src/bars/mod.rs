//! Ticks to bars, in exact integers, with their quotes. This module knows slots and rows, but not symbols.
//!
//! A trade with price p and size q at event time t belongs to
//!
//! - *time bars*: bar `k = ⌊t / interval⌋` of its slot. Several bars of one slot can be open, as trades arrive out of
//!   order. A watermark row W closes every open bar with `(k + 1) · interval ≤ W`, oldest bar first and slots ascending
//!   within a bar. Open and close are the prices of the smallest and greatest (event time, arrival).
//! - *tick and volume bars*: the only open bar of its slot, which closes at the trade that reaches the count or volume.
//!   A trade is never split. Open and close are the first and last price by arrival.
//!
//! A bar's bid and ask are those of one quote of its slot. Quotes are ordered by event time, and by arrival if times
//! are equal:
//!
//! - *time bars*: the last quote before the bar's end. A quote that arrives after the bar was closed has an event time
//!   at or after the bar's end, or is late. So the choice does not depend on when the watermark closes the bar.
//! - *tick and volume bars*: the last quote up to the event time of the trade that ends the bar, if it arrived before
//!   that trade. If [`RECENT_QUOTES_MAX`] quotes with later event times arrived before it, that quote is forgotten.
//!
//! A bar without such a quote has 0 for both prices, and special sizes ([`crate::ABSENT`], [`FORGOTTEN`]).
//!
//! `high = max p`, `low = min p`, `volume = Σ q`, `notional = Σ p·q`, with sizes that are not negative and prices of
//! either sign. Sums have 128 bits, and do not depend on the order of trades. Volume saturates, but only after 10^10
//! trades of the greatest size. Notional is the exact sum, or unknown if the bar's prices and volume could exceed 128
//! bits.
//!
//! An open bar is one record, not one entry in each of ten columns. So folding a trade accesses two cache lines; with
//! columns it would be ten.

mod closed;
pub(crate) mod device;
mod filled;
mod open;
mod quotes;
mod slab;
mod spec;
mod time;

pub use closed::{BySide, ClosedBars};
pub(crate) use open::NOTIONAL_TOO_LARGE;
pub(crate) use quotes::Quote;
pub use quotes::{FORGOTTEN, RECENT_QUOTES_MAX};
pub use slab::BarSlab;
pub use spec::{BarSpec, BarSpecError, OPEN_BARS_MAX};
