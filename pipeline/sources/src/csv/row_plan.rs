//! The meaning of one file's columns: converts the fields of a line to a tick.

use std::borrow::Cow;
use std::collections::HashMap;

use warptape_events::tick::{Scales, Side, Tick, TickKind};
use xxhash_rust::xxh3::xxh3_64;

use super::column::{Column, NumberColumn, SideWords};
use super::fields::FieldSplitter;
use super::number_format::NumberFormat;
use super::time_rule::TimeRule;
use crate::symbol::{check_symbol, join_symbol};
use crate::time_unit::parse_integer;
use crate::{FieldProblem, Scaled, parse_prices, parse_sizes};

/// Greatest number of symbols per file whose last books are kept for `empty=last`.
const LAST_BOOKS_MAX: usize = 1 << 20;
/// Greatest number of decimals of a size.
const SIZE_DECIMALS_MAX: u8 = Scales::E9.size;
/// Number of digits from which a whole number is far above any price, but usual for prices in units of 1e-9.
const FIXED_POINT_DIGITS_MIN: usize = 10;

/// The conversion of a line to a tick.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowPlan {
    pub(super) filters: Vec<Filter>,
    pub(super) symbol: SymbolRule,
    pub(super) event_time: TimeRule,
    pub(super) receive_time: Option<TimeRule>,
    pub(super) kind: KindRule,
    pub(super) numbers: NumberFormat,
    /// True if prices may be 0 or below.
    pub(super) signed: bool,
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowContent {
    Tick(Tick),
    /// A trade of price or size 0, which does not count as a trade.
    ZeroTrade,
    /// A line that the mapping excludes.
    LeftOut,
}

/// State kept while a file's lines are read.
#[derive(Debug, Default)]
pub(super) struct RowMemory {
    /// The last book of each symbol, which replaces empty fields with `empty=last`.
    last_books: HashMap<String, LastBook>,
    /// True if a trade id was not an integer.
    pub(super) has_hashed_ids: bool,
}

/// Texts of the last price and size on both sides.
#[derive(Clone, Debug)]
struct LastBook([Vec<u8>; 4]);

impl Default for LastBook {
    fn default() -> LastBook {
        LastBook(std::array::from_fn(|_| b"0".to_vec()))
    }
}

/// A filter of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) column: Column,
    pub(super) values: Vec<String>,
    /// True if only lines with these values are read; false if only all other lines are.
    pub(super) keeps: bool,
}

/// Source of a row's symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SymbolRule {
    /// The same symbol for all lines, including its venue.
    Constant(String),
    /// A column of symbols; the venue is added to values without one.
    Column { column: Column, venue: Option<String> },
}

/// How trades are distinguished from quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KindRule {
    Trades(TradeColumns),
    Quotes(QuoteColumns),
    /// A column gives the kind.
    Column(Box<MixedColumns>),
}

/// The columns of a file of both trades and quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MixedColumns {
    pub(super) column: Column,
    pub(super) trades: TradeColumns,
    pub(super) quotes: QuoteColumns,
}

/// The columns of a trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TradeColumns {
    pub(super) trade_id: Option<Column>,
    /// True if an id may be any text; only a hash of it is kept.
    pub(super) hashes_ids: bool,
    pub(super) price: NumberColumn,
    pub(super) size: NumberColumn,
    pub(super) side: SideRule,
}

/// Source of a row's aggressor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SideRule {
    Unknown,
    /// The aggressor's side.
    Aggressor {
        column: Column,
        words: SideWords,
    },
    /// True if the buyer was the maker, so that the seller was the aggressor.
    BuyerIsMaker(Column),
}

/// The columns of a quote. An empty price means an absent side of the book; with `empty_is_last`, the previous one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QuoteColumns {
    /// Price and size of the bid, and price and size of the ask. A side without a size column has size 1.
    pub(super) bid_price: NumberColumn,
    pub(super) bid_size: Option<NumberColumn>,
    pub(super) ask_price: NumberColumn,
    pub(super) ask_size: Option<NumberColumn>,
    /// True if an empty side of a quote repeats the side of the previous quote.
    pub(super) empty_is_last: bool,
}

impl LastBook {
    /// Returns price and size of bid and ask.
    fn sides(&self) -> [SideTexts<'_>; 2] {
        let [bid_price, bid_size, ask_price, ask_size] = &self.0;
        [(bid_price, bid_size), (ask_price, ask_size)]
    }
}

impl RowPlan {
    /// Reads the tick of a line.
    pub(super) fn read(
        &self,
        fields: &FieldSplitter,
        memory: &mut RowMemory,
    ) -> Result<RowContent, FieldProblem> {
        for filter in &self.filters {
            let found = filter.column.field(fields)?;
            if filter.values.iter().any(|value| value.as_bytes() == found) != filter.keeps {
                return Ok(RowContent::LeftOut);
            }
        }
        let mut tick = Tick {
            symbol: self.symbol.read(fields)?,
            kind: TickKind::Trade,
            event_time_ns: self.event_time.time_ns(fields, &self.numbers)?,
            receive_time_ns: match &self.receive_time {
                Some(rule) => rule.time_ns(fields, &self.numbers)?,
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
        let (trades, quotes) = match &self.kind {
            KindRule::Trades(columns) => (Some(columns), None),
            KindRule::Quotes(columns) => (None, Some(columns)),
            KindRule::Column(mixed) => match mixed.column.kind(fields)? {
                TickKind::Trade => (Some(&mixed.trades), None),
                TickKind::Quote => (None, Some(&mixed.quotes)),
            },
        };
        if let Some(columns) = trades
            && !self.fill_trade(columns, fields, memory, &mut tick)?
        {
            return Ok(RowContent::ZeroTrade);
        }
        if let Some(columns) = quotes {
            self.fill_quote(columns, fields, memory, &mut tick)?;
        }
        Ok(RowContent::Tick(tick))
    }

    /// Fills in a trade. Returns `false` if its price or size is 0.
    fn fill_trade(
        &self,
        columns: &TradeColumns,
        fields: &FieldSplitter,
        memory: &mut RowMemory,
        tick: &mut Tick,
    ) -> Result<bool, FieldProblem> {
        let TradeColumns { trade_id, hashes_ids, price, size, side } = columns;
        tick.kind = TickKind::Trade;
        let found = price.column.field(fields)?;
        ([tick.price_e9], tick.scales.price) = self.prices([price], [found])?;
        let found = size.column.field(fields)?;
        ([tick.size_e9], tick.scales.size) = self.sizes([Some(size)], [found])?;
        if tick.size_e9 == 0 || tick.price_e9 == 0 && !self.signed {
            return Ok(false);
        }
        if let Some(column) = trade_id {
            let found = column.field(fields)?;
            tick.trade_id = match parse_integer(found) {
                Some(id) => id,
                None if *hashes_ids => {
                    memory.has_hashed_ids |= !found.is_empty();
                    hashed_id(found)
                }
                None => return Err(column.problem(found, "an integer")),
            };
        }
        tick.side = match side {
            SideRule::Unknown => Side::None,
            SideRule::Aggressor { column, words } => column.side(fields, words)?,
            SideRule::BuyerIsMaker(column) if column.boolean(fields)? => Side::Sell,
            SideRule::BuyerIsMaker(_) => Side::Buy,
        };
        Ok(true)
    }

    fn fill_quote(
        &self,
        columns: &QuoteColumns,
        fields: &FieldSplitter,
        memory: &mut RowMemory,
        tick: &mut Tick,
    ) -> Result<(), FieldProblem> {
        tick.kind = TickKind::Quote;
        let QuoteColumns { bid_price, bid_size, ask_price, ask_size, empty_is_last } = columns;
        // With `signed` a price of 0 may be valid, so the size shows whether the side is present.
        let size_untold: &[u8] =
            if self.signed || bid_size.is_some() != ask_size.is_some() { b"1" } else { b"0" };
        let bid = side_texts(bid_price, bid_size.as_ref(), size_untold, fields)?;
        let ask = side_texts(ask_price, ask_size.as_ref(), size_untold, fields)?;
        const ABSENT: SideTexts = (b"0", b"0");
        let before =
            if *empty_is_last { Some(memory.last_book(&tick.symbol, bid_price)?.clone()) } else { None };
        let [before_bid, before_ask] = before.as_ref().map_or([ABSENT; 2], LastBook::sides);
        let (bid, ask) = (bid.unwrap_or(before_bid), ask.unwrap_or(before_ask));
        ([tick.bid_price_e9, tick.ask_price_e9], tick.scales.price) =
            self.prices([bid_price, ask_price], [bid.0, ask.0])?;
        ([tick.bid_size_e9, tick.ask_size_e9], tick.scales.size) =
            self.sizes([bid_size.as_ref(), ask_size.as_ref()], [bid.1, ask.1].map(or_zero))?;
        for (price, size, own, other) in [
            (tick.bid_price_e9, bid_size, bid.1, tick.ask_size_e9),
            (tick.ask_price_e9, ask_size, ask.1, tick.bid_size_e9),
        ] {
            if let Some(size) = size.as_ref().filter(|_| own.is_empty() && price != 0 && other != 0) {
                return Err(size
                    .column
                    .problem("nothing", "a size, because the other side has one, or no price"));
            }
        }
        // If prices must be above 0, a side with price 0 is absent, whatever its size.
        if tick.bid_price_e9 == 0 && !self.signed {
            tick.bid_size_e9 = 0;
        }
        if tick.ask_price_e9 == 0 && !self.signed {
            tick.ask_size_e9 = 0;
        }
        if *empty_is_last {
            let book = LastBook([bid.0, bid.1, ask.0, ask.1].map(<[u8]>::to_vec));
            memory.last_books.insert(tick.symbol.clone(), book);
        }
        Ok(())
    }

    fn prices<const N: usize>(
        &self,
        columns: [&NumberColumn; N],
        texts: [&[u8]; N],
    ) -> Result<Scaled<N>, FieldProblem> {
        let problem = |number: usize, error| columns[number].column.number_problem(texts[number], error);
        let mut plain = [const { Cow::Borrowed(&[] as &[u8]) }; N];
        for number in 0..N {
            let unit = columns[number].unit.into();
            let read = self.numbers.plain(texts[number], unit, self.numbers.round);
            plain[number] = read.map_err(|error| problem(number, error))?;
        }
        parse_prices(plain.each_ref().map(AsRef::as_ref), self.signed)
            .map_err(|(number, error)| problem(number, error))
    }

    fn sizes<const N: usize>(
        &self,
        columns: [Option<&NumberColumn>; N],
        texts: [&[u8]; N],
    ) -> Result<Scaled<N>, FieldProblem> {
        let problem = |number: usize, error| match columns[number] {
            Some(size) => size.column.number_problem(texts[number], error),
            None => FieldProblem::of_number("size", texts[number], error),
        };
        let round = self.numbers.round.map(|round| round.min(SIZE_DECIMALS_MAX));
        let mut plain = [const { Cow::Borrowed(&[] as &[u8]) }; N];
        for number in 0..N {
            // A size without a column is written as 0 or 1.
            let Some(size) = columns[number] else {
                plain[number] = Cow::Borrowed(texts[number]);
                continue;
            };
            let read = self.numbers.plain(texts[number], size.unit.into(), round);
            plain[number] = read.map_err(|error| problem(number, error))?;
        }
        parse_sizes(plain.each_ref().map(AsRef::as_ref)).map_err(|(number, error)| problem(number, error))
    }

    /// Returns true if a time of the tick is before the earliest plausible one.
    ///
    /// # Errors
    /// If a time is ahead of the clock, or is plausible only in another unit.
    pub(super) fn check_times(
        &self,
        tick: &Tick,
        fields: &FieldSplitter,
        now_ns: Option<i64>,
    ) -> Result<bool, FieldProblem> {
        let times = [
            (Some(&self.event_time), tick.event_time_ns),
            (self.receive_time.as_ref(), tick.receive_time_ns),
        ];
        let mut is_early = false;
        for (rule, time_ns) in times {
            let Some(rule) = rule else { continue };
            if !super::time_rule::is_plausible(time_ns, now_ns) {
                rule.check_plausible(fields, &self.numbers, time_ns, now_ns)?;
                is_early = true;
            }
        }
        Ok(is_early)
    }

    /// Returns a price of the line that looks like a number in units of 1e-9, with its column; `None` if there is none.
    pub(super) fn fixed_point_price<'a>(&'a self, fields: &'a FieldSplitter) -> Option<(&'a [u8], &'a str)> {
        let prices = match &self.kind {
            KindRule::Trades(trades) => [Some(&trades.price), None],
            KindRule::Column(mixed) => [Some(&mixed.trades.price), Some(&mixed.quotes.bid_price)],
            KindRule::Quotes(quotes) => [Some(&quotes.bid_price), Some(&quotes.ask_price)],
        };
        prices.into_iter().flatten().find_map(|NumberColumn { column, unit }| {
            let found = column.field(fields).ok()?;
            let is_long = found.len() >= FIXED_POINT_DIGITS_MIN && found.iter().all(u8::is_ascii_digit);
            (*unit == 0 && is_long).then_some((found, &*column.name))
        })
    }
}

/// Price and size of a side of the book.
type SideTexts<'a> = (&'a [u8], &'a [u8]);

/// Returns price and size of a side of the book; empty texts if the price is empty. `size_untold` is the size of a side
/// without a size column.
fn side_texts<'a>(
    price: &'a NumberColumn,
    size: Option<&'a NumberColumn>,
    size_untold: &'a [u8],
    fields: &'a FieldSplitter,
) -> Result<Option<SideTexts<'a>>, FieldProblem> {
    let price = price.column.field(fields)?;
    let size = match size {
        Some(size) => size.column.field(fields)?,
        None => size_untold,
    };
    Ok((!price.is_empty()).then_some((price, size)))
}

fn or_zero(text: &[u8]) -> &[u8] {
    if text.is_empty() { b"0" } else { text }
}

/// Hashes a trade id that is not an integer: the lower 63 bits of XXH3-64.
fn hashed_id(text: &[u8]) -> i64 {
    if text.is_empty() { 0 } else { (xxh3_64(text) & i64::MAX.unsigned_abs()) as i64 }
}

impl RowMemory {
    /// Forgets all books, because the file is read again.
    pub(super) fn forget_books(&mut self) {
        self.last_books.clear();
    }

    fn last_book(&mut self, symbol: &str, column: &NumberColumn) -> Result<&LastBook, FieldProblem> {
        if !self.last_books.contains_key(symbol) {
            if self.last_books.len() >= LAST_BOOKS_MAX {
                let expected = format!("at most {LAST_BOOKS_MAX} symbols in a file with `empty=last`");
                return Err(column.column.problem(symbol, &expected));
            }
            self.last_books.insert(symbol.to_owned(), LastBook::default());
        }
        Ok(&self.last_books[symbol])
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
