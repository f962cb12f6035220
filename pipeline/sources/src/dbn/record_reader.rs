//! One DBN record to its ticks.

use std::collections::VecDeque;
use std::ffi::c_char;

use ::dbn::{
    FIXED_PRICE_SCALE, Mbp1Msg, Metadata, RecordHeader, RecordRef, Schema, TradeMsg, TsSymbolMap,
    UNDEF_ORDER_SIZE, UNDEF_PRICE, UNDEF_TIMESTAMP,
};
use warptape_events::tick::{Scales, Side, Tick, TickKind};

use crate::FieldProblem;
use crate::symbol::join_symbol;

const ACTION_TRADE: c_char = b'T' as c_char;
const SIDE_ASK: c_char = b'A' as c_char;
const SIDE_BID: c_char = b'B' as c_char;

/// Makes ticks of the records of one file.
pub(super) struct RecordReader {
    symbols: TsSymbolMap,
    venue: String,
    /// Whether books come with their trades only, so that they must be told there.
    is_tbbo: bool,
}

/// Why a record makes no tick.
pub(super) enum RecordProblem {
    Field(FieldProblem),
    UnknownInstrument { instrument_id: u32, event_time_ns: u64 },
    Decode(::dbn::Error),
}

impl From<FieldProblem> for RecordProblem {
    fn from(problem: FieldProblem) -> RecordProblem {
        RecordProblem::Field(problem)
    }
}

impl From<::dbn::Error> for RecordProblem {
    fn from(error: ::dbn::Error) -> RecordProblem {
        RecordProblem::Decode(error)
    }
}

impl RecordReader {
    pub(super) fn new(metadata: &Metadata, venue: Option<&str>) -> Result<RecordReader, ::dbn::Error> {
        Ok(RecordReader {
            symbols: metadata.symbol_map()?,
            venue: venue.unwrap_or(&metadata.dataset).to_owned(),
            is_tbbo: metadata.schema == Some(Schema::Tbbo),
        })
    }

    /// Appends the record's ticks: none, one, or a quote and its trade.
    pub(super) fn read(
        &mut self,
        record: RecordRef,
        ticks: &mut VecDeque<Tick>,
    ) -> Result<(), RecordProblem> {
        if record.has::<TradeMsg>() {
            let message: &TradeMsg = record.try_get()?;
            if message.action == ACTION_TRADE {
                let empty = self.empty_tick(&message.hd, message.ts_recv)?;
                ticks.push_back(trade(empty, message.price, message.size, message.side)?);
            }
        } else if record.has::<Mbp1Msg>() {
            self.read_book(record.try_get()?, ticks)?;
        } else {
            // Live recordings carry their mappings in the stream.
            self.symbols.on_record(record)?;
        }
        Ok(())
    }

    fn read_book(&self, message: &Mbp1Msg, ticks: &mut VecDeque<Tick>) -> Result<(), RecordProblem> {
        let [level] = &message.levels;
        let changes_book = self.is_tbbo || message.action != ACTION_TRADE;
        let has_trade = message.action == ACTION_TRADE;
        if !changes_book && !has_trade {
            return Ok(());
        }
        let empty = self.empty_tick(&message.hd, message.ts_recv)?;
        if changes_book {
            let (bid_price_e9, bid_size_e9) = side_of_book(level.bid_px, level.bid_sz);
            let (ask_price_e9, ask_size_e9) = side_of_book(level.ask_px, level.ask_sz);
            let book = Tick { bid_price_e9, bid_size_e9, ask_price_e9, ask_size_e9, ..empty.clone() };
            ticks.push_back(book);
        }
        if has_trade {
            ticks.push_back(trade(empty, message.price, message.size, message.side)?);
        }
        Ok(())
    }

    /// A quote without a book: symbol and times, to be filled.
    fn empty_tick(&self, header: &RecordHeader, ts_recv: u64) -> Result<Tick, RecordProblem> {
        let (instrument_id, event_time_ns) = (header.instrument_id, header.ts_event);
        // Mappings are by the time of receipt, which orders the file.
        let index_time_ns = if ts_recv == UNDEF_TIMESTAMP { event_time_ns } else { ts_recv };
        let event_time_ns = checked_time_ns("ts_event", event_time_ns)?;
        let receive_time_ns =
            if ts_recv == UNDEF_TIMESTAMP { 0 } else { checked_time_ns("ts_recv", ts_recv)? };
        let Some(raw_symbol) = self.symbols.get_for_ts(index_time_ns, instrument_id) else {
            return Err(RecordProblem::UnknownInstrument { instrument_id, event_time_ns: index_time_ns });
        };
        let symbol = join_symbol(&self.venue, raw_symbol);
        Ok(Tick {
            symbol: symbol.map_err(|expected| FieldProblem::new("raw symbol", raw_symbol, expected))?,
            kind: TickKind::Quote,
            event_time_ns,
            receive_time_ns,
            trade_id: 0,
            side: Side::None,
            price_e9: 0,
            size_e9: 0,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        })
    }
}

/// A trade. It has no id: DBN's `sequence` counts messages of the venue, and trades of one message share it.
fn trade(empty: Tick, price: i64, size: u32, side: c_char) -> Result<Tick, FieldProblem> {
    if price == UNDEF_PRICE || price == i64::MIN {
        return Err(FieldProblem::new("price", "undefined", "the price of a trade"));
    }
    let side = match side {
        SIDE_ASK => Side::Sell,
        SIDE_BID => Side::Buy,
        _ => Side::None,
    };
    Ok(Tick { kind: TickKind::Trade, side, price_e9: price, size_e9: size_e9(size), ..empty })
}

/// Price and size of one side of the book; zeros where it is absent.
fn side_of_book(price: i64, size: u32) -> (i64, i64) {
    if price == UNDEF_PRICE || price == i64::MIN { (0, 0) } else { (price, size_e9(size)) }
}

/// At most 4.3e18, which an `i64` holds.
fn size_e9(size: u32) -> i64 {
    if size == UNDEF_ORDER_SIZE { 0 } else { i64::from(size) * FIXED_PRICE_SCALE }
}

fn checked_time_ns(column: &str, time: u64) -> Result<i64, FieldProblem> {
    let positive = i64::try_from(time).ok().filter(|&time_ns| 0 < time_ns && time_ns < i64::MAX);
    let expected = "a time in nanoseconds after 1970 and before 2262";
    positive.ok_or_else(|| FieldProblem::new(column, time.to_string(), expected))
}
