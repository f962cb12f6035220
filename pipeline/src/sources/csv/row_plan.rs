//! What the columns of one file mean: a line's fields to a tick.

use warptape_schemas::tick::{Scales, Side, Tick, TickKind};

use super::fields::FieldSplitter;
use crate::sources::symbol::{check_symbol, join_symbol};
use crate::sources::time_unit::{TimeUnit, parse_integer};
use crate::sources::{FieldProblem, parse_e9};

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Counted from 0.
    pub(super) index: usize,
    /// Its name in the header, or its number from 1: for messages.
    pub(super) name: String,
}

/// How a line becomes a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowPlan {
    pub(super) symbol: SymbolRule,
    pub(super) event_time: (Column, TimeUnit),
    pub(super) receive_time: Option<(Column, TimeUnit)>,
    pub(super) kind: KindRule,
}

/// Where the symbol comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SymbolRule {
    /// The same for all lines, complete with its venue.
    Constant(String),
    /// A column; a value without a venue gets this one.
    Column { column: Column, venue: Option<String> },
}

/// Whether a line is a trade or a quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KindRule {
    Trades(TradeColumns),
    Quotes(QuoteColumns),
    /// A column says so.
    Column {
        column: Column,
        trades: TradeColumns,
        quotes: QuoteColumns,
    },
}

/// The columns of a trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TradeColumns {
    pub(super) trade_id: Option<Column>,
    pub(super) price: Column,
    pub(super) size: Column,
    pub(super) side: SideRule,
}

/// Where the aggressor comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SideRule {
    Unknown,
    /// The aggressor's side.
    Aggressor(Column),
    /// True where the buyer waited, so that the seller was the aggressor.
    BuyerIsMaker(Column),
}

/// The columns of a quote; an empty field is an absent side of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QuoteColumns {
    pub(super) bid_price: Column,
    pub(super) bid_size: Column,
    pub(super) ask_price: Column,
    pub(super) ask_size: Column,
}

impl RowPlan {
    /// The tick of a line.
    pub(super) fn tick(&self, fields: &FieldSplitter) -> Result<Tick, FieldProblem> {
        let (event_column, event_unit) = &self.event_time;
        let mut tick = Tick {
            symbol: self.symbol.read(fields)?,
            kind: TickKind::Trade,
            event_time_ns: event_column.time_ns(fields, *event_unit)?,
            receive_time_ns: match &self.receive_time {
                Some((column, unit)) => column.time_ns(fields, *unit)?,
                None => 0,
            },
            trade_id: 0,
            side: Side::None,
            price_e9: 0,
            size_e9: 0,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        };
        match &self.kind {
            KindRule::Trades(columns) => columns.fill(fields, &mut tick)?,
            KindRule::Quotes(columns) => columns.fill(fields, &mut tick)?,
            KindRule::Column { column, trades, quotes } => match column.kind(fields)? {
                TickKind::Trade => trades.fill(fields, &mut tick)?,
                TickKind::Quote => quotes.fill(fields, &mut tick)?,
            },
        }
        Ok(tick)
    }
}

impl SymbolRule {
    fn read(&self, fields: &FieldSplitter) -> Result<String, FieldProblem> {
        let (column, venue) = match self {
            SymbolRule::Constant(symbol) => return Ok(symbol.clone()),
            SymbolRule::Column { column, venue } => (column, venue),
        };
        let found = column.field(fields)?;
        let ticker = std::str::from_utf8(found).map_err(|_| column.problem(found, "a ticker in UTF-8"))?;
        let symbol = match venue {
            _ if ticker.contains(':') => check_symbol(ticker).map(|()| ticker.to_owned()),
            Some(venue) => join_symbol(venue, ticker),
            None => Err("VENUE:TICKER, or name the venue with --venue".to_owned()),
        };
        symbol.map_err(|expected| column.problem(found, &expected))
    }
}

impl TradeColumns {
    fn fill(&self, fields: &FieldSplitter, tick: &mut Tick) -> Result<(), FieldProblem> {
        tick.kind = TickKind::Trade;
        tick.price_e9 = self.price.positive_e9(fields)?;
        tick.size_e9 = self.size.positive_e9(fields)?;
        if let Some(column) = &self.trade_id {
            let found = column.field(fields)?;
            tick.trade_id = parse_integer(found).ok_or_else(|| column.problem(found, "an integer"))?;
        }
        tick.side = match &self.side {
            SideRule::Unknown => Side::None,
            SideRule::Aggressor(column) => column.side(fields)?,
            SideRule::BuyerIsMaker(column) if column.boolean(fields)? => Side::Sell,
            SideRule::BuyerIsMaker(_) => Side::Buy,
        };
        Ok(())
    }
}

impl QuoteColumns {
    fn fill(&self, fields: &FieldSplitter, tick: &mut Tick) -> Result<(), FieldProblem> {
        tick.kind = TickKind::Quote;
        tick.bid_price_e9 = self.bid_price.optional_e9(fields)?;
        tick.bid_size_e9 = self.bid_size.optional_e9(fields)?;
        tick.ask_price_e9 = self.ask_price.optional_e9(fields)?;
        tick.ask_size_e9 = self.ask_size.optional_e9(fields)?;
        Ok(())
    }
}

impl Column {
    /// A column by its place from 0.
    pub(super) fn new(index: usize, name: impl Into<String>) -> Column {
        Column { index, name: name.into() }
    }

    fn field<'a>(&self, fields: &'a FieldSplitter) -> Result<&'a [u8], FieldProblem> {
        let missing = || self.problem("nothing", &format!("a line of at least {} columns", self.index + 1));
        fields.get(self.index).map(<[u8]>::trim_ascii).ok_or_else(missing)
    }

    fn problem(&self, found: impl AsRef<[u8]>, expected: &str) -> FieldProblem {
        FieldProblem::new(&self.name, found, expected)
    }

    fn time_ns(&self, fields: &FieldSplitter, unit: TimeUnit) -> Result<i64, FieldProblem> {
        let found = self.field(fields)?;
        unit.parse_ns(found).ok_or_else(|| self.problem(found, unit.expected()))
    }

    fn positive_e9(&self, fields: &FieldSplitter) -> Result<i64, FieldProblem> {
        let found = self.field(fields)?;
        match parse_e9(found) {
            Ok(0) => Err(self.problem(found, "a trade's price and size to be greater than 0")),
            Ok(value_e9) => Ok(value_e9),
            Err(error) => Err(self.problem(found, &error.to_string())),
        }
    }

    fn optional_e9(&self, fields: &FieldSplitter) -> Result<i64, FieldProblem> {
        let found = self.field(fields)?;
        if found.is_empty() {
            return Ok(0);
        }
        parse_e9(found).map_err(|error| self.problem(found, &error.to_string()))
    }

    fn boolean(&self, fields: &FieldSplitter) -> Result<bool, FieldProblem> {
        let found = self.field(fields)?;
        match found.to_ascii_lowercase().as_slice() {
            b"true" | b"t" | b"1" => Ok(true),
            b"false" | b"f" | b"0" => Ok(false),
            _ => Err(self.problem(found, "true or false")),
        }
    }

    fn side(&self, fields: &FieldSplitter) -> Result<Side, FieldProblem> {
        let found = self.field(fields)?;
        match found.to_ascii_lowercase().as_slice() {
            b"buy" | b"b" | b"bid" => Ok(Side::Buy),
            b"sell" | b"s" | b"ask" | b"a" => Ok(Side::Sell),
            b"" | b"none" | b"n" | b"unknown" => Ok(Side::None),
            _ => Err(self.problem(
                found,
                "the aggressor: buy, b or bid; sell, s, ask or a; none, n, unknown or nothing",
            )),
        }
    }

    fn kind(&self, fields: &FieldSplitter) -> Result<TickKind, FieldProblem> {
        let found = self.field(fields)?;
        match found.to_ascii_lowercase().as_slice() {
            b"trade" | b"t" => Ok(TickKind::Trade),
            b"quote" | b"q" | b"bookticker" | b"bbo" => Ok(TickKind::Quote),
            _ => Err(self.problem(found, "trade or t; quote, q, bbo or bookTicker")),
        }
    }
}
