//! Converts a DBN record to ticks.

use std::collections::{HashMap, VecDeque};

use ::dbn::{Metadata, RecordRef, Schema, TsSymbolMap, UNDEF_TIMESTAMP};
use warptape_events::tick::{Scales, Side, Tick, TickKind};

use super::market_event::{Book, MarketEvent, Quotes};
use super::publisher_venues::PublisherVenues;
use crate::symbol::join_symbol;
use crate::{FieldProblem, PassedOver, ZERO_TRADE};

/// Converts the records of one file to ticks.
pub(super) struct RecordReader {
    symbols: TsSymbolMap,
    venues: PublisherVenues,
    /// True if the file may have books only with trades, so that each book becomes a quote. This applies to tbbo files,
    /// and to live recordings, which name no schema.
    trades_tell_books: bool,
    /// Contents of the last ticks, by publisher and instrument id.
    told: HashMap<(u16, u32), Told>,
}

/// Contents of an instrument's last ticks.
#[derive(Default)]
struct Told {
    book: Option<Book>,
    /// Number of the venue's message with the last trade; 0 before the first trade.
    sequence: u32,
}

/// Reasons why a record yields no tick.
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
            venues: PublisherVenues::new(&metadata.dataset, venue),
            trades_tell_books: matches!(metadata.schema, None | Some(Schema::Tbbo)),
            told: HashMap::new(),
        })
    }

    /// Appends the record's ticks: none, one, or a quote and its trade. Records without ticks are counted by kind.
    pub(super) fn read(
        &mut self,
        record: RecordRef,
        ticks: &mut VecDeque<Tick>,
        passed_over: &mut PassedOver,
    ) -> Result<(), RecordProblem> {
        let kind = record.header().rtype().map_or("record of an unknown type", |kind| kind.as_str());
        let Some(event) = MarketEvent::of(record)? else {
            // In live recordings, the stream itself contains the mappings.
            self.symbols.on_record(record)?;
            passed_over.ignore(kind);
            return Ok(());
        };
        if event.book.is_none() && event.trade.is_none() {
            passed_over.ignore(kind);
            return Ok(());
        }
        let empty = self.empty_tick(&event)?;
        let told = self.told.entry((event.publisher_id, event.instrument_id)).or_default();
        if let Some(book) = event.book {
            let is_every = match event.quotes {
                Quotes::Every => true,
                Quotes::EveryOfTbbo => self.trades_tell_books,
                Quotes::Changed => false,
            };
            if is_every || told.book != Some(book) {
                told.book = Some(book);
                ticks.push_back(Tick {
                    bid_price_e9: book.bid[0],
                    bid_size_e9: book.bid[1],
                    ask_price_e9: book.ask[0],
                    ask_size_e9: book.ask[1],
                    ..empty.clone()
                });
            } else if event.trade.is_none() {
                passed_over.ignore(&format!("{kind} with the first level as before"));
            }
        }
        let Some(trade) = event.trade else { return Ok(()) };
        if trade.size_e9() == 0 {
            passed_over.ignore(ZERO_TRADE);
            return Ok(());
        }
        // All trades in one message share its number, but each trade's id must be unique.
        let trade_id = if trade.sequence == told.sequence { 0 } else { i64::from(trade.sequence) };
        told.sequence = trade.sequence;
        ticks.push_back(Tick {
            kind: TickKind::Trade,
            trade_id,
            side: trade.side(),
            price_e9: trade.price_e9()?,
            size_e9: trade.size_e9(),
            ..empty
        });
        Ok(())
    }

    /// Returns a quote with symbol and times; the caller fills in the book.
    fn empty_tick(&mut self, event: &MarketEvent) -> Result<Tick, RecordProblem> {
        let &MarketEvent { publisher_id, instrument_id, event_time_ns, ts_recv, .. } = event;
        // Mappings depend on the time of receipt, which is also the order of the file.
        let index_time_ns = if ts_recv == UNDEF_TIMESTAMP { event_time_ns } else { ts_recv };
        let event_time_ns = checked_time_ns(event.event_time_column, event_time_ns)?;
        let receive_time_ns =
            if ts_recv == UNDEF_TIMESTAMP { 0 } else { checked_time_ns("ts_recv", ts_recv)? };
        let Some(raw_symbol) = self.symbols.get_for_ts(index_time_ns, instrument_id) else {
            return Err(RecordProblem::UnknownInstrument { instrument_id, event_time_ns: index_time_ns });
        };
        let symbol = join_symbol(self.venues.name(publisher_id), raw_symbol);
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

fn checked_time_ns(column: &str, time: u64) -> Result<i64, FieldProblem> {
    let positive = i64::try_from(time).ok().filter(|&time_ns| 0 < time_ns && time_ns < i64::MAX);
    let expected = "a time in nanoseconds after 1970 and before 2262";
    positive.ok_or_else(|| FieldProblem::new(column, time.to_string(), expected))
}
