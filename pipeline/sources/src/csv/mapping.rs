//! `--map`: the meaning of a CSV file's columns.
//!
//! ```text
//! symbol=sym,time=ts:ms,price=px,size=qty,side=side          a header names the columns
//! symbol='NYSE:IBM',time=1:ns,price=2,size=3                 no header: columns by number, from 1
//! symbol=4,time=1:rfc3339,price=2,size=3,header=yes          numbers, but the first line is a header
//! symbol=s,time=t:us,kind=k,price=p,size=q,bid_price=b,bid_size=bq,ask_price=a,ask_size=aq
//! ```
//!
//! | key | value |
//! | --- | --- |
//! | `symbol` | column, or a constant; `VENUE:TICKER`, or a ticker that gets `--venue` |
//! | `time`, `receive_time` | column and unit: `:s`, `:ms`, `:us`, `:ns`, `:rfc3339`, or a quoted format as in `strptime` |
//! | `date` | column and format (default `%Y-%m-%d`), or a constant `'2024-08-08'`; `time` is then a time of that day |
//! | `zone` | `UTC`, `America/New_York` or `+02:00`: zone of times without an offset |
//! | `price`, `size` | columns of a trade; a unit `:e9` divides by 10^9 |
//! | `trade_id` | column (optional); an id that is no integer is hashed |
//! | `side` | column of the aggressor: buy, sell, … (optional) |
//! | `buy`, `sell` | other words for sides, as in `buy='B\|1'` |
//! | `buyer_is_maker` | column: true if the seller was the aggressor (instead of `side`) |
//! | `bid_price`, `bid_size`, `ask_price`, `ask_size` | columns of a quote; sizes are optional; units as for `price` |
//! | `empty` | meaning of an empty side of a quote: `absent` (the default) or `last` |
//! | `kind` | column: trade or quote; required if columns of both are mapped |
//! | `only`, `except` | column and values, as in `type:'4\|5'`: lines to read, or to leave out |
//! | `delimiter` | `comma` (the default), `semicolon`, `tab`, `pipe`, `space`, or a quoted character |
//! | `decimal`, `thousands` | marks in numbers: `dot`, `comma`, `space`, `apostrophe`, or a quoted character |
//! | `round` | decimals to which prices and sizes are rounded, half to even |
//! | `signed` | `yes` or `no` (the default): `yes` allows prices of 0 and below, as for spreads and energy |
//! | `header` | `yes` or `no`; the default is yes if a column is named, and no if all are numbered |
//!
//! Constants are in single quotes. A column whose name contains a comma or a colon, or is a number, can only be given
//! by its number.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use jiff::civil::Date;

use super::column::{Column, NumberColumn, SideWords};
use super::mapping_reader::MappingReader;
use super::number_format::NumberFormat;
use super::row_plan::{
    Filter, KindRule, MixedColumns, QuoteColumns, RowPlan, SideRule, SymbolRule, TradeColumns,
};
use super::time_rule::{DateRule, TimeOfDay, TimeRule, Written, Zone};
use crate::SourceError;
use crate::symbol::{check_symbol, join_symbol};
use crate::time_unit::TimeUnit;

/// A parsed `--map`; the module's page describes its syntax.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvMapping {
    pub(super) symbol: SymbolSource,
    /// Columns by key, except the symbol's.
    pub(super) columns: BTreeMap<&'static str, ColumnSource>,
    pub(super) delimiter: u8,
    /// True if the first line is a header.
    pub(super) header: bool,
    /// True if prices may be 0 or below.
    pub(super) signed: bool,
    pub(super) numbers: NumberFormat,
    pub(super) zone: Option<Zone>,
    pub(super) side_words: SideWords,
    /// True if an empty side of a quote repeats the side of the previous quote.
    pub(super) empty_is_last: bool,
}

/// Source of a row's symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SymbolSource {
    Constant(String),
    Column(ColumnSource),
}

/// A column as named in the mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnSource {
    pub(super) place: ColumnPlace,
    pub(super) unit: Option<ColumnUnit>,
}

/// The text after the colon of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnUnit {
    Time(TimeUnit),
    /// The format of a time or date.
    Format(String),
    /// Exponent of the power of ten by which numbers are divided.
    Power(u8),
    /// The values of a filter.
    Values(Vec<String>),
}

/// Place of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnPlace {
    Name(String),
    /// Index of the column, from 0.
    Index(usize),
    Constant(String),
}

/// The default format of dates.
const DATE_FORMAT: &str = "%Y-%m-%d";

impl FromStr for CsvMapping {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<CsvMapping, SourceError> {
        MappingReader::read(text)
    }
}

/// Facts about a file that are needed to find its columns.
pub(super) struct FileHead<'a> {
    pub(super) path: &'a Path,
    /// Names of the file's columns; empty without a header.
    pub(super) header: &'a [String],
    pub(super) venue: Option<&'a str>,
}

impl CsvMapping {
    /// Sets the number of decimals for rounding prices and sizes, unless the mapping has one.
    pub fn rounded(mut self, round: Option<u8>) -> CsvMapping {
        self.numbers.round = self.numbers.round.or(round);
        self
    }

    /// Returns the mapping as one text that does not depend on the order of its entries, so that equivalent mappings
    /// have the same text.
    pub fn canonical(&self) -> String {
        let Self { symbol, columns, delimiter, header, signed, numbers, zone, side_words, empty_is_last } =
            self;
        let yes = |is: bool| if is { "yes" } else { "no" };
        let symbol = match symbol {
            SymbolSource::Constant(constant) => format!("'{constant}'"),
            SymbolSource::Column(column) => column.canonical(),
        };
        let columns: String =
            columns.iter().map(|(key, column)| format!(",{key}={}", column.canonical())).collect();
        let (delimiter, header, signed) = (char::from(*delimiter), yes(*header), yes(*signed));
        let mut text =
            format!("symbol={symbol}{columns},delimiter={delimiter:?},header={header},signed={signed}");
        // Values equal to the defaults are left out.
        let NumberFormat { decimal, thousands, round } = numbers;
        if *decimal != b'.' {
            text += &format!(",decimal={:?}", char::from(*decimal));
        }
        if let Some(mark) = thousands {
            text += &format!(",thousands={mark:?}");
        }
        if let Some(round) = round {
            text += &format!(",round={round}");
        }
        if let Some(zone) = zone {
            text += &format!(",zone={}", zone.name);
        }
        if *side_words != SideWords::default() {
            text += &format!(",buy={:?},sell={:?}", side_words.buy, side_words.sell);
        }
        if *empty_is_last {
            text += ",empty=last";
        }
        text
    }

    /// Returns the plan for a file.
    ///
    /// # Errors
    /// If the header lacks a column (the error names the first), or the venue is missing.
    pub(super) fn plan(&self, file: &FileHead) -> Result<RowPlan, SourceError> {
        let find = |key| self.columns.get(key).map(|source| source.find(file)).transpose();
        let number = |key| self.columns.get(key).map(|source| source.number(file)).transpose();
        // The parser has checked that required keys exist.
        const CHECKED: &str = "the mapping was checked to have it when it was parsed";
        let trades = match (number("price")?, number("size")?) {
            (Some(price), Some(size)) => {
                let side = match (find("side")?, find("buyer_is_maker")?) {
                    (Some(column), _) => SideRule::Aggressor { column, words: self.side_words.clone() },
                    (None, Some(column)) => SideRule::BuyerIsMaker(column),
                    (None, None) => SideRule::Unknown,
                };
                Some(TradeColumns { trade_id: find("trade_id")?, hashes_ids: true, price, size, side })
            }
            _ => None,
        };
        let quotes = match (number("bid_price")?, number("ask_price")?) {
            (Some(bid_price), Some(ask_price)) => Some(QuoteColumns {
                bid_price,
                bid_size: number("bid_size")?,
                ask_price,
                ask_size: number("ask_size")?,
                empty_is_last: self.empty_is_last,
            }),
            _ => None,
        };
        let kind = match (trades, quotes, find("kind")?) {
            (Some(trades), Some(quotes), column) => {
                KindRule::Column(Box::new(MixedColumns { column: column.expect(CHECKED), trades, quotes }))
            }
            (Some(trades), None, _) => KindRule::Trades(trades),
            (None, quotes, _) => KindRule::Quotes(quotes.expect(CHECKED)),
        };
        let filter = |key, keeps| {
            let source: Option<&ColumnSource> = self.columns.get(key);
            let filter = |source: &ColumnSource| {
                let Some(ColumnUnit::Values(values)) = &source.unit else { unreachable!("{CHECKED}") };
                Ok::<_, SourceError>(Filter { column: source.find(file)?, values: values.clone(), keeps })
            };
            source.map(filter).transpose()
        };
        let filters = [filter("only", true)?, filter("except", false)?];
        let receive_time = self.columns.get("receive_time");
        Ok(RowPlan {
            filters: filters.into_iter().flatten().collect(),
            symbol: self.symbol.rule(file)?,
            event_time: self.time(self.columns.get("time").expect(CHECKED), true, file)?,
            receive_time: receive_time.map(|source| self.time(source, false, file)).transpose()?,
            kind,
            numbers: self.numbers.clone(),
            signed: self.signed,
        })
    }

    /// Returns the rule for a time. `is_of_date` is true if `date` may give the day.
    fn time(
        &self,
        source: &ColumnSource,
        is_of_date: bool,
        file: &FileHead,
    ) -> Result<TimeRule, SourceError> {
        let column = source.find(file)?;
        let date = self.columns.get("date").filter(|_| is_of_date);
        let written = match (date, source.unit.clone(), self.zone.clone()) {
            (Some(date), unit, Some(zone)) => {
                let time = match unit {
                    Some(ColumnUnit::Format(format)) => TimeOfDay::Format(format),
                    Some(ColumnUnit::Time(unit)) => TimeOfDay::Number(unit),
                    _ => unreachable!("a time was checked to have its unit"),
                };
                Written::OfDay { date: date.date(file)?, time, zone }
            }
            (_, Some(ColumnUnit::Time(TimeUnit::Rfc3339)), zone) => Written::Rfc3339(zone),
            (_, Some(ColumnUnit::Time(unit)), _) => Written::Number(unit),
            (_, Some(ColumnUnit::Format(format)), zone) => Written::Civil { format, zone },
            _ => unreachable!("a time was checked to have its unit, and a date its zone"),
        };
        Ok(TimeRule { column, written })
    }
}

impl ColumnSource {
    fn canonical(&self) -> String {
        let place = match &self.place {
            ColumnPlace::Name(name) => format!("{name:?}"),
            ColumnPlace::Index(index) => (index + 1).to_string(),
            ColumnPlace::Constant(constant) => format!("'{constant}'"),
        };
        let unit = match &self.unit {
            None => String::new(),
            Some(ColumnUnit::Time(unit)) => format!(":{unit:?}"),
            Some(ColumnUnit::Format(format)) => format!(":'{format}'"),
            Some(ColumnUnit::Power(power)) => format!(":e{power}"),
            Some(ColumnUnit::Values(values)) => format!(":{values:?}"),
        };
        place + &unit
    }

    fn number(&self, file: &FileHead) -> Result<NumberColumn, SourceError> {
        let unit = if let Some(ColumnUnit::Power(power)) = self.unit { power } else { 0 };
        Ok(NumberColumn { column: self.find(file)?, unit })
    }

    fn date(&self, file: &FileHead) -> Result<DateRule, SourceError> {
        if let ColumnPlace::Constant(date) = &self.place {
            let date: Result<Date, _> = date.parse();
            return Ok(DateRule::Constant(date.expect("the date was checked when the mapping was parsed")));
        }
        let format = match &self.unit {
            Some(ColumnUnit::Format(format)) => format.clone(),
            _ => DATE_FORMAT.to_owned(),
        };
        Ok(DateRule::Column { column: self.find(file)?, format })
    }

    fn find(&self, file: &FileHead) -> Result<Column, SourceError> {
        match &self.place {
            ColumnPlace::Constant(constant) => {
                let column = Column::new(0, format!("'{constant}'"));
                Ok(Column { constant: Some(constant.clone()), ..column })
            }
            ColumnPlace::Index(index) => {
                let number = (index + 1).to_string();
                Ok(Column::new(*index, file.header.get(*index).cloned().unwrap_or(number)))
            }
            ColumnPlace::Name(name) => match file.header.iter().position(|column| column == name) {
                Some(index) => Ok(Column::new(index, name)),
                None => {
                    let (path, header) = (file.path.to_owned(), file.header.to_vec());
                    Err(SourceError::MissingColumn { path, column: name.clone(), header })
                }
            },
        }
    }
}

impl SymbolSource {
    fn rule(&self, file: &FileHead) -> Result<SymbolRule, SourceError> {
        let constant = match self {
            SymbolSource::Column(source) => {
                let (column, venue) = (source.find(file)?, file.venue.map(str::to_owned));
                return Ok(SymbolRule::Column { column, venue });
            }
            SymbolSource::Constant(constant) => constant,
        };
        let symbol = match file.venue {
            _ if constant.contains(':') => check_symbol(constant).map(|()| constant.clone()),
            Some(venue) => join_symbol(venue, constant),
            None => Err(format!("VENUE:{constant}, or name the venue with --venue")),
        };
        let problem = |expected| format!("symbol='{constant}': expected {expected}");
        symbol
            .map(SymbolRule::Constant)
            .map_err(|expected| SourceError::BadMapping { problems: vec![problem(expected)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(map: &str, header: &[&str], venue: Option<&str>) -> Result<RowPlan, String> {
        let mapping: CsvMapping = map.parse().expect("a good mapping");
        let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
        mapping
            .plan(&FileHead { path: Path::new("a.csv"), header: &header, venue })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_found_in_the_header() {
        let map = "symbol=sym,time=ts:ms,price=4,size=qty";
        let found = plan(map, &["qty", "sym", "ts", "px"], Some("V")).expect("all there");
        let written = Written::Number(TimeUnit::Milliseconds);
        assert_eq!(found.event_time, TimeRule { column: Column::new(2, "ts"), written });
        assert_eq!(
            found.symbol,
            SymbolRule::Column { column: Column::new(1, "sym"), venue: Some("V".to_owned()) }
        );
        let KindRule::Trades(TradeColumns { price, .. }) = found.kind else { panic!("of trades") };
        assert_eq!(price, NumberColumn { column: Column::new(3, "px"), unit: 0 });
        let missing = plan(map, &["sym", "ts", "px"], None).expect_err("no qty");
        assert_eq!(missing, "a.csv: no column `qty` in the header; it has: sym, ts, px");
    }

    #[test]
    fn a_constant_symbol_needs_its_venue() {
        let symbol = |map: &str, venue| plan(map, &[], venue).map(|plan| plan.symbol);
        let rest = "time=1:ns,price=2,size=3";
        let constant = |symbol: &str| Ok(SymbolRule::Constant(symbol.to_owned()));
        assert_eq!(symbol(&format!("symbol='A,B=C:D',{rest}"), Some("V")), constant("A,B=C:D"));
        assert_eq!(symbol(&format!("symbol='IBM',{rest}"), Some("V")), constant("V:IBM"));
        let refused = symbol(&format!("symbol='IBM',{rest}"), None).expect_err("no venue");
        assert_eq!(refused, "--map: symbol='IBM': expected VENUE:IBM, or name the venue with --venue");
    }

    #[test]
    fn the_words_by_which_logs_know_files_stay() {
        let canonical = |map: &str| map.parse::<CsvMapping>().expect("a good mapping").canonical();
        let before =
            "symbol=\"sym\",price=\"px\",size=3,time=\"ts\":Milliseconds,delimiter=',',header=yes,signed=no";
        assert_eq!(canonical("time=ts:ms,symbol=sym,price=px,size=3"), before);
        assert_eq!(canonical("time=ts:ms,symbol=sym,price=px,size=3,decimal=dot,empty=absent"), before);
        let with = |more: &str| canonical(&format!("time=ts:ms,symbol=sym,price=px,size=3,{more}"));
        assert_eq!(with("round=9"), format!("{before},round=9"));
        assert_eq!(with("zone=+02:00,thousands=space"), format!("{before},thousands=' ',zone=+02:00"));
        let words = with("side=s,buy='B|1'");
        assert!(words.ends_with(",buy=[\"B\", \"1\"],sell=[]"), "{words}");
    }

    #[test]
    fn a_header_is_there_where_a_column_is_named() {
        let header = |map: &str| map.parse::<CsvMapping>().expect("a good mapping").header;
        assert!(header("symbol=s,time=1:ns,price=2,size=3"));
        assert!(!header("symbol=4,time=1:ns,price=2,size=3"));
        assert!(header("symbol=4,time=1:ns,price=2,size=3,header=yes"));
    }
}
