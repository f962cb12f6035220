//! Ticks to bars, in exact integers, with the quotes that they saw. Knows slots and rows, not what they belong to.
//!
//! A trade with price p and size q at event time t belongs to
//!
//! - *time bars*: bar `k = ⌊t / interval⌋` of its slot. Several bars of one slot can be open, as trades arrive out of
//!   order. A watermark row W closes every open bar with `(k + 1) · interval ≤ W`, oldest bar first and slots ascending
//!   within a bar. Open and close are the prices of the smallest and greatest (event time, arrival).
//! - *tick and volume bars*: the one open bar of its slot, which closes at the trade that reaches the count or volume;
//!   a trade is never split. Open and close are the first and last price by arrival.
//!
//! A bar's bid and ask are those of a quote of its slot, by event time, and by arrival among equals:
//!
//! - *time bars*: the last quote before the bar's end. A quote that comes when the bar is closed is not before its end, or it is
//!   late; so which quote it is does not depend on when the watermark closes the bar.
//! - *tick and volume bars*: the last quote at the event time of the trade that ends the bar or before, of those that arrived
//!   before that trade. Where [`RECENT_QUOTES_MAX`] quotes with later event times arrived before it, that quote is forgotten.
//!
//! A bar that no such quote came before has 0 for both, and sizes that say so ([`crate::ABSENT`], [`FORGOTTEN`]).
//!
//! `high = max p`, `low = min p`, `volume = Σ q`, `notional = Σ p·q`, with sizes that are not negative and prices of either
//! sign. Sums have 128 bits, and do not depend on the order of trades: volume saturates, which takes 10^10 trades of the greatest
//! size that there is; notional is the exact sum, or not known where the bar's prices and volume could come to more.
//!
//! An open bar is one record, not one entry in each of ten columns: folding a trade touches all of one bar and nothing
//! of its neighbours, which is two cache lines here and would be ten there.

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
