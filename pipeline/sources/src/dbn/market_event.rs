//! The common contents of book and trade records of all schemas.

use std::ffi::c_char;

use ::dbn::{
    BboMsg, BidAskPair, CbboMsg, Cmbp1Msg, ConsolidatedBidAskPair, FIXED_PRICE_SCALE, Mbp1Msg, Mbp10Msg,
    RType, RecordHeader, RecordRef, TradeMsg, UNDEF_ORDER_SIZE, UNDEF_PRICE,
};
use warptape_events::tick::Side;

use crate::FieldProblem;

const ACTION_TRADE: c_char = b'T' as c_char;
const SIDE_ASK: c_char = b'A' as c_char;
const SIDE_BID: c_char = b'B' as c_char;

/// A change of the book's first level, a trade, or both.
pub(super) struct MarketEvent {
    /// The publisher of the book; 0 for a consolidated book.
    pub(super) publisher_id: u16,
    pub(super) instrument_id: u32,
    pub(super) event_time_ns: u64,
    /// The field from which the event time is taken.
    pub(super) event_time_column: &'static str,
    pub(super) ts_recv: u64,
    /// The first level, before the trade if there is one; `None` for records of trades alone.
    pub(super) book: Option<Book>,
    pub(super) quotes: Quotes,
    pub(super) trade: Option<Trade>,
}

/// Rule that selects the books that become quotes.
#[derive(Clone, Copy)]
pub(super) enum Quotes {
    Every,
    /// Every book, if books come only with trades. Otherwise each book that differs from the last one, because a
    /// trade's book is then already known.
    EveryOfTbbo,
    /// Each book whose first level differs from the last one, because deeper levels may change alone.
    Changed,
}

/// Price and size of each side of the first level; zeros for an absent side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Book {
    pub(super) bid: [i64; 2],
    pub(super) ask: [i64; 2],
}

pub(super) struct Trade {
    price: i64,
    size: u32,
    side: c_char,
    /// Number of the venue's message; 0 if the record has none.
    pub(super) sequence: u32,
}

impl MarketEvent {
    /// Returns the event of a record; `None` for records of other kinds.
    pub(super) fn of(record: RecordRef) -> Result<Option<MarketEvent>, ::dbn::Error> {
        let event = if record.has::<TradeMsg>() {
            let of: &TradeMsg = record.try_get()?;
            let trade = Trade::of(of.action, of.price, of.size, of.side, of.sequence);
            MarketEvent::new(&of.hd, of.ts_recv, None, trade)
        } else if record.has::<Mbp1Msg>() {
            let of: &Mbp1Msg = record.try_get()?;
            let trade = Trade::of(of.action, of.price, of.size, of.side, of.sequence);
            let [level] = &of.levels;
            MarketEvent::new(&of.hd, of.ts_recv, Some(level.into()), trade)
        } else if record.has::<Mbp10Msg>() {
            let of: &Mbp10Msg = record.try_get()?;
            let trade = Trade::of(of.action, of.price, of.size, of.side, of.sequence);
            let [level, ..] = &of.levels;
            let event = MarketEvent::new(&of.hd, of.ts_recv, Some(level.into()), trade);
            MarketEvent { quotes: Quotes::Changed, ..event }
        } else if record.has::<Cmbp1Msg>() {
            let of: &Cmbp1Msg = record.try_get()?;
            let trade = Trade::of(of.action, of.price, of.size, of.side, 0);
            let [level] = &of.levels;
            let event = MarketEvent::new(&of.hd, of.ts_recv, Some(level.into()), trade).consolidated();
            // Records of tcbbo come only with trades, and have their own type.
            let is_tcbbo = of.hd.rtype == RType::Tcbbo as u8;
            MarketEvent { quotes: if is_tcbbo { Quotes::Every } else { event.quotes }, ..event }
        } else if record.has::<BboMsg>() {
            let of: &BboMsg = record.try_get()?;
            let [level] = &of.levels;
            MarketEvent::sample(&of.hd, of.ts_recv, level.into())
        } else if record.has::<CbboMsg>() {
            let of: &CbboMsg = record.try_get()?;
            let [level] = &of.levels;
            MarketEvent::sample(&of.hd, of.ts_recv, level.into()).consolidated()
        } else {
            return Ok(None);
        };
        Ok(Some(event))
    }

    fn new(header: &RecordHeader, ts_recv: u64, book: Option<Book>, trade: Option<Trade>) -> MarketEvent {
        MarketEvent {
            publisher_id: header.publisher_id,
            instrument_id: header.instrument_id,
            event_time_ns: header.ts_event,
            event_time_column: "ts_event",
            ts_recv,
            book,
            quotes: if trade.is_some() { Quotes::EveryOfTbbo } else { Quotes::Every },
            trade,
        }
    }

    /// Returns the event of a book at the end of an interval. Such a record has the event time of the last trade, which
    /// may be old, because each interval repeats that trade.
    fn sample(header: &RecordHeader, ts_recv: u64, book: Book) -> MarketEvent {
        let event = MarketEvent::new(header, ts_recv, Some(book), None);
        MarketEvent { event_time_ns: ts_recv, event_time_column: "ts_recv", ..event }
    }

    fn consolidated(self) -> MarketEvent {
        MarketEvent { publisher_id: 0, ..self }
    }
}

impl Trade {
    fn of(action: c_char, price: i64, size: u32, side: c_char, sequence: u32) -> Option<Trade> {
        (action == ACTION_TRADE).then_some(Trade { price, size, side, sequence })
    }

    /// Returns the aggressor's side.
    pub(super) fn side(&self) -> Side {
        match self.side {
            SIDE_ASK => Side::Sell,
            SIDE_BID => Side::Buy,
            _ => Side::None,
        }
    }

    pub(super) fn price_e9(&self) -> Result<i64, FieldProblem> {
        if is_defined(self.price) {
            return Ok(self.price);
        }
        Err(FieldProblem::new("price", "undefined", "the price of a trade"))
    }

    pub(super) fn size_e9(&self) -> i64 {
        size_e9(self.size)
    }
}

impl From<&BidAskPair> for Book {
    fn from(level: &BidAskPair) -> Book {
        Book::new(level.bid_px, level.bid_sz, level.ask_px, level.ask_sz)
    }
}

impl From<&ConsolidatedBidAskPair> for Book {
    fn from(level: &ConsolidatedBidAskPair) -> Book {
        Book::new(level.bid_px, level.bid_sz, level.ask_px, level.ask_sz)
    }
}

impl Book {
    fn new(bid_price: i64, bid_size: u32, ask_price: i64, ask_size: u32) -> Book {
        let side = |price, size| if is_defined(price) { [price, size_e9(size)] } else { [0, 0] };
        Book { bid: side(bid_price, bid_size), ask: side(ask_price, ask_size) }
    }
}

fn is_defined(price: i64) -> bool {
    price != UNDEF_PRICE && price != i64::MIN
}

/// Returns a size in 1e-9: at most 4.3e18, which fits an `i64`.
fn size_e9(size: u32) -> i64 {
    if size == UNDEF_ORDER_SIZE { 0 } else { i64::from(size) * FIXED_PRICE_SCALE }
}
