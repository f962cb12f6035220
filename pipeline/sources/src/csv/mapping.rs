//! `--map`: what the columns of a CSV file mean.
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
//! | `symbol` | column, or a constant in single quotes; `VENUE:TICKER`, or a ticker that gets `--venue` |
//! | `time`, `receive_time` | column and unit: `:s`, `:ms`, `:us`, `:ns` or `:rfc3339` |
//! | `price`, `size` | columns of a trade |
//! | `trade_id` | column, digits (optional) |
//! | `side` | column of the aggressor: buy, sell, … (optional) |
//! | `buyer_is_maker` | column: true where the seller was the aggressor (instead of `side`) |
//! | `bid_price`, `bid_size`, `ask_price`, `ask_size` | columns of a quote; an empty field is an absent side |
//! | `kind` | column: trade or quote; needed where columns of both are mapped |
//! | `delimiter` | `comma` (the default), `semicolon`, `tab` or `pipe` |
//! | `signed` | `yes` or `no` (the default): whether prices may be 0 or below, as those of spreads and energy are |
//! | `header` | `yes` or `no`; by default yes where a column is named and no where all are numbered |
//!
//! A column whose name holds a comma or a colon, or is a number, is given by its number.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use super::mapping_reader::MappingReader;
use super::row_plan::{Column, KindRule, QuoteColumns, RowPlan, SideRule, SymbolRule, TradeColumns};
use crate::SourceError;
use crate::symbol::{check_symbol, join_symbol};
use crate::time_unit::TimeUnit;

/// A parsed `--map`; see the module's page for what can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvMapping {
    pub(super) symbol: SymbolSource,
    /// Columns by their key, other than the symbol's.
    pub(super) columns: BTreeMap<&'static str, ColumnSource>,
    pub(super) delimiter: u8,
    /// Whether the first line is a header.
    pub(super) header: bool,
    /// Whether prices may be 0 or below.
    pub(super) signed: bool,
}

/// Where the symbol comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SymbolSource {
    Constant(String),
    Column(ColumnSource),
}

/// A column as the mapping names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnSource {
    pub(super) place: Place,
    /// Of times only.
    pub(super) unit: Option<TimeUnit>,
}

/// Which column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Name(String),
    /// Counted from 0.
    Index(usize),
}

impl FromStr for CsvMapping {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<CsvMapping, SourceError> {
        MappingReader::read(text)
    }
}

/// What is known of a file when its columns are looked up.
pub(super) struct FileHead<'a> {
    pub(super) path: &'a Path,
    /// Names of its columns; none where it has no header.
    pub(super) header: &'a [String],
    pub(super) venue: Option<&'a str>,
}

impl CsvMapping {
    /// The mapping as one text, whatever the order in which it was given: two mappings that read alike have one.
    pub fn canonical(&self) -> String {
        let Self { symbol, columns, delimiter, header, signed } = self;
        let yes = |is: bool| if is { "yes" } else { "no" };
        let symbol = match symbol {
            SymbolSource::Constant(constant) => format!("'{constant}'"),
            SymbolSource::Column(column) => column.canonical(),
        };
        let columns: String =
            columns.iter().map(|(key, column)| format!(",{key}={}", column.canonical())).collect();
        let (delimiter, header, signed) = (char::from(*delimiter), yes(*header), yes(*signed));
        format!("symbol={symbol}{columns},delimiter={delimiter:?},header={header},signed={signed}")
    }

    /// The plan for a file.
    ///
    /// # Errors
    /// Names the first column that the header lacks, or says that the venue is missing.
    pub(super) fn plan(&self, file: &FileHead) -> Result<RowPlan, SourceError> {
        let find = |key| self.columns.get(key).map(|source| source.find(file)).transpose();
        let find_time = |key| {
            let source: Option<&ColumnSource> = self.columns.get(key);
            let timed = source.and_then(|source| Some((source, source.unit?)));
            timed.map(|(source, unit)| Ok::<_, SourceError>((source.find(file)?, unit))).transpose()
        };
        // What must be there was checked when the mapping was parsed.
        const CHECKED: &str = "the mapping was checked to have it when it was parsed";
        let trades = match (find("price")?, find("size")?) {
            (Some(price), Some(size)) => {
                let side = match (find("side")?, find("buyer_is_maker")?) {
                    (Some(column), _) => SideRule::Aggressor(column),
                    (None, Some(column)) => SideRule::BuyerIsMaker(column),
                    (None, None) => SideRule::Unknown,
                };
                Some(TradeColumns { trade_id: find("trade_id")?, price, size, side, signed: self.signed })
            }
            _ => None,
        };
        let quotes = match (find("bid_price")?, find("bid_size")?, find("ask_price")?, find("ask_size")?) {
            (Some(bid_price), Some(bid_size), Some(ask_price), Some(ask_size)) => {
                Some(QuoteColumns { bid_price, bid_size, ask_price, ask_size, signed: self.signed })
            }
            _ => None,
        };
        let kind = match (trades, quotes, find("kind")?) {
            (Some(trades), Some(quotes), column) => {
                KindRule::Column { column: column.expect(CHECKED), trades, quotes }
            }
            (Some(trades), None, _) => KindRule::Trades(trades),
            (None, quotes, _) => KindRule::Quotes(quotes.expect(CHECKED)),
        };
        let event_time = find_time("time")?.expect(CHECKED);
        let symbol = self.symbol.rule(file)?;
        Ok(RowPlan { symbol, event_time, receive_time: find_time("receive_time")?, kind })
    }
}

impl ColumnSource {
    fn canonical(&self) -> String {
        let place = match &self.place {
            Place::Name(name) => format!("{name:?}"),
            Place::Index(index) => (index + 1).to_string(),
        };
        let unit = self.unit.map_or(String::new(), |unit| format!(":{unit:?}"));
        place + &unit
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

impl ColumnSource {
    fn find(&self, file: &FileHead) -> Result<Column, SourceError> {
        match &self.place {
            Place::Index(index) => {
                let number = (index + 1).to_string();
                Ok(Column::new(*index, file.header.get(*index).cloned().unwrap_or(number)))
            }
            Place::Name(name) => match file.header.iter().position(|column| column == name) {
                Some(index) => Ok(Column::new(index, name)),
                None => {
                    let (path, header) = (file.path.to_owned(), file.header.to_vec());
                    Err(SourceError::MissingColumn { path, column: name.clone(), header })
                }
            },
        }
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
        assert_eq!(found.event_time, (Column::new(2, "ts"), TimeUnit::Milliseconds));
        assert_eq!(
            found.symbol,
            SymbolRule::Column { column: Column::new(1, "sym"), venue: Some("V".to_owned()) }
        );
        assert!(matches!(found.kind, KindRule::Trades(TradeColumns { price: Column { index: 3, .. }, .. })));
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
    fn a_header_is_there_where_a_column_is_named() {
        let header = |map: &str| map.parse::<CsvMapping>().expect("a good mapping").header;
        assert!(header("symbol=s,time=1:ns,price=2,size=3"));
        assert!(!header("symbol=4,time=1:ns,price=2,size=3"));
        assert!(header("symbol=4,time=1:ns,price=2,size=3,header=yes"));
    }
}
