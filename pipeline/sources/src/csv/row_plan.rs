//! What the columns of one file mean: a line's fields to a tick.

use warptape_events::tick::{Scales, Side, Tick, TickKind};

use super::fields::FieldSplitter;
use crate::symbol::{check_symbol, join_symbol};
use crate::time_unit::{TimeUnit, parse_integer};
use crate::{DecimalError, FieldProblem, Scaled, parse_prices, parse_sizes};

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
    /// Whether a price may be 0 or below.
    pub(super) signed: bool,
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
    /// Whether a price may be below 0.
    pub(super) signed: bool,
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
        ([tick.price_e9], tick.scales.price) = prices(fields, [&self.price], self.signed)?;
        ([tick.size_e9], tick.scales.size) = sizes(fields, [&self.size])?;
        if tick.price_e9 == 0 && !self.signed {
            return Err(self
                .price
                .problem("0", "a trade's price above 0; `signed=yes` in the mapping takes any"));
        }
        if tick.size_e9 == 0 {
            return Err(self.size.problem("0", "a trade's size above 0"));
        }
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
        let columns = [&self.bid_price, &self.ask_price];
        ([tick.bid_price_e9, tick.ask_price_e9], tick.scales.price) = prices(fields, columns, self.signed)?;
        let columns = [&self.bid_size, &self.ask_size];
        ([tick.bid_size_e9, tick.ask_size_e9], tick.scales.size) = sizes(fields, columns)?;
        Ok(())
    }
}

fn prices<const N: usize>(
    fields: &FieldSplitter,
    columns: [&Column; N],
    signed: bool,
) -> Result<Scaled<N>, FieldProblem> {
    let texts = texts(fields, columns)?;
    parse_prices(texts, signed)
        .map_err(|(number, error)| columns[number].number_problem(texts[number], error))
}

fn sizes<const N: usize>(fields: &FieldSplitter, columns: [&Column; N]) -> Result<Scaled<N>, FieldProblem> {
    let texts = texts(fields, columns)?;
    parse_sizes(texts).map_err(|(number, error)| columns[number].number_problem(texts[number], error))
}

/// The fields of prices or sizes. One that is empty is an absent side of the book, which a trade does not have.
fn texts<'a, const N: usize>(
    fields: &'a FieldSplitter,
    columns: [&Column; N],
) -> Result<[&'a [u8]; N], FieldProblem> {
    let mut texts = [&b"0"[..]; N];
    for (text, column) in texts.iter_mut().zip(columns) {
        let found = column.field(fields)?;
        if !found.is_empty() || N == 1 {
            *text = found;
        }
    }
    Ok(texts)
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

    fn number_problem(&self, found: &[u8], error: DecimalError) -> FieldProblem {
        FieldProblem::of_number(&self.name, found, error)
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
