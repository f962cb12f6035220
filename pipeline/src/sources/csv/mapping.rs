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
//! | `header` | `yes` or `no`; by default yes where a column is named and no where all are numbered |
//!
//! A column whose name holds a comma or a colon, or is a number, is given by its number.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::row_plan::{Column, KindRule, QuoteColumns, RowPlan, SideRule, SymbolRule, TradeColumns};
use crate::sources::SourceError;
use crate::sources::time_unit::TimeUnit;

/// Keys whose value is a column.
const COLUMN_KEYS: [&str; 13] = [
    "symbol",
    "time",
    "receive_time",
    "price",
    "size",
    "trade_id",
    "side",
    "buyer_is_maker",
    "bid_price",
    "bid_size",
    "ask_price",
    "ask_size",
    "kind",
];
const TRADE_KEYS: [&str; 2] = ["price", "size"];
const QUOTE_KEYS: [&str; 4] = ["bid_price", "bid_size", "ask_price", "ask_size"];

/// A parsed `--map`; see the module's page for what can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvMapping {
    symbol: SymbolSource,
    /// Columns by their key, other than the symbol's.
    columns: BTreeMap<&'static str, ColumnSource>,
    delimiter: u8,
    header: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SymbolSource {
    Constant(String),
    Column(ColumnSource),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ColumnSource {
    place: Place,
    /// Of times only.
    unit: Option<TimeUnit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Name(String),
    /// Counted from 0.
    Index(usize),
}

impl FromStr for CsvMapping {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<CsvMapping, SourceError> {
        let mut reader = MappingReader::default();
        for entry in split_entries(text) {
            reader.read_entry(entry.trim());
        }
        reader.finish()
    }
}

impl CsvMapping {
    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    pub(super) fn has_header(&self) -> bool {
        self.header
    }

    /// The plan for a file with this header (empty where it has none), or the first column it lacks.
    pub(super) fn plan(&self, header: &[String], venue: Option<&str>) -> Result<RowPlan, String> {
        let with_venue = |symbol: &str| match venue {
            Some(venue) if !symbol.contains(':') => format!("{venue}:{symbol}"),
            _ => symbol.to_owned(),
        };
        let symbol = match &self.symbol {
            SymbolSource::Constant(symbol) => SymbolRule::Constant(with_venue(symbol)),
            SymbolSource::Column(source) => {
                SymbolRule::Column { column: source.find(header)?, venue: venue.map(str::to_owned) }
            }
        };
        let find = |key| self.columns.get(key).map(|source| source.find(header)).transpose();
        let find_time = |key| {
            let source: Option<&ColumnSource> = self.columns.get(key);
            let timed = source.and_then(|source| Some((source, source.unit?)));
            timed.map(|(source, unit)| Ok::<_, String>((source.find(header)?, unit))).transpose()
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
                Some(TradeColumns { trade_id: find("trade_id")?, price, size, side })
            }
            _ => None,
        };
        let quotes = match (find("bid_price")?, find("bid_size")?, find("ask_price")?, find("ask_size")?) {
            (Some(bid_price), Some(bid_size), Some(ask_price), Some(ask_size)) => {
                Some(QuoteColumns { bid_price, bid_size, ask_price, ask_size })
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
        Ok(RowPlan { symbol, event_time, receive_time: find_time("receive_time")?, kind })
    }
}

impl ColumnSource {
    fn find(&self, header: &[String]) -> Result<Column, String> {
        match &self.place {
            Place::Index(index) => {
                let number = (index + 1).to_string();
                Ok(Column::new(*index, header.get(*index).cloned().unwrap_or(number)))
            }
            Place::Name(name) => match header.iter().position(|column| column == name) {
                Some(index) => Ok(Column::new(index, name)),
                None => Err(name.clone()),
            },
        }
    }
}

/// Entries between commas outside single quotes.
fn split_entries(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|character| {
        quoted ^= character == '\'';
        character == ',' && !quoted
    })
    .collect()
}

/// Gathers entries and every mistake in them.
#[derive(Default)]
struct MappingReader {
    symbol: Option<SymbolSource>,
    columns: BTreeMap<&'static str, ColumnSource>,
    delimiter: Option<u8>,
    header: Option<bool>,
    problems: Vec<String>,
}

impl MappingReader {
    fn read_entry(&mut self, entry: &str) {
        let Some((key, value)) = entry.split_once('=') else {
            return self.problems.push(format!("`{entry}` is not key=column"));
        };
        let seen_before = match key {
            "delimiter" => {
                let delimiter = match value {
                    "comma" => Some(b','),
                    "semicolon" => Some(b';'),
                    "tab" => Some(b'\t'),
                    "pipe" => Some(b'|'),
                    _ => None,
                };
                if delimiter.is_none() {
                    self.problems
                        .push(format!("delimiter `{value}`: allowed are comma, semicolon, tab, pipe"));
                }
                std::mem::replace(&mut self.delimiter, delimiter).is_some()
            }
            "header" => {
                let header = match value {
                    "yes" => Some(true),
                    "no" => Some(false),
                    _ => None,
                };
                if header.is_none() {
                    self.problems.push(format!("header `{value}`: allowed are yes, no"));
                }
                std::mem::replace(&mut self.header, header).is_some()
            }
            _ => self.read_column(key, value),
        };
        if seen_before {
            self.problems.push(format!("`{key}` is given twice"));
        }
    }

    /// Whether the key was seen before.
    fn read_column(&mut self, key: &str, value: &str) -> bool {
        let Some(key) = COLUMN_KEYS.into_iter().find(|known| *known == key) else {
            let allowed = COLUMN_KEYS.join(", ");
            self.problems.push(format!("unknown key `{key}`: allowed are {allowed}, delimiter, header"));
            return false;
        };
        if let Some(constant) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            if key != "symbol" || constant.is_empty() {
                self.problems
                    .push(format!("{key}={value}: only the symbol can be a constant, and not an empty one"));
                return false;
            }
            return self.symbol.replace(SymbolSource::Constant(constant.to_owned())).is_some();
        }
        let Some(source) = self.column_source(key, value) else { return false };
        match key {
            "symbol" => self.symbol.replace(SymbolSource::Column(source)).is_some(),
            _ => self.columns.insert(key, source).is_some(),
        }
    }

    fn column_source(&mut self, key: &str, value: &str) -> Option<ColumnSource> {
        let (name, unit) = match value.split_once(':') {
            Some((name, unit)) => (name, Some(unit)),
            None => (value, None),
        };
        let is_time = matches!(key, "time" | "receive_time");
        let unit = match (is_time, unit.map(TimeUnit::by_name)) {
            (true, Some(Some(unit))) => Some(unit),
            (false, None) => None,
            (true, _) => {
                self.problems.push(format!("{key}={value}: a time needs its unit, as in {name}:ms; allowed are s, ms, us, ns, rfc3339"));
                return None;
            }
            (false, Some(_)) => {
                self.problems.push(format!("{key}={value}: only times have a unit; give a column whose name holds a colon by its number"));
                return None;
            }
        };
        let place = match name.parse::<usize>() {
            Ok(number) if number > 0 => Place::Index(number - 1),
            Err(_) if !name.is_empty() => Place::Name(name.to_owned()),
            _ => {
                self.problems
                    .push(format!("{key}={value}: a column is its name in the header or its number from 1"));
                return None;
            }
        };
        Some(ColumnSource { place, unit })
    }

    /// Notes which of the keys are missing.
    fn require(&mut self, keys: &[&str], why: &str) {
        let missing: Vec<&str> =
            keys.iter().filter(|key| !self.columns.contains_key(*key)).copied().collect();
        if !missing.is_empty() {
            self.problems.push(format!("{why} needs {}", missing.join(", ")));
        }
    }

    fn finish(mut self) -> Result<CsvMapping, SourceError> {
        let has = |key: &&str| self.columns.contains_key(*key);
        let (trades, quotes) = (TRADE_KEYS.iter().any(has), QUOTE_KEYS.iter().any(has));
        let (kind, two_sides) = (has(&"kind"), has(&"side") && has(&"buyer_is_maker"));
        if self.symbol.is_none() {
            self.problems.push("a tick needs symbol".to_owned());
        }
        self.require(&["time"], "a tick");
        if trades {
            self.require(&TRADE_KEYS, "a trade");
        }
        if quotes {
            self.require(&QUOTE_KEYS, "a quote");
        }
        if trades && quotes {
            self.require(&["kind"], "a mapping of both trades and quotes");
        } else if kind {
            self.problems.push("kind is for mappings of both trades and quotes".to_owned());
        }
        if !trades && !quotes {
            self.problems.push(
                "a tick needs price and size, or bid_price, bid_size, ask_price and ask_size".to_owned(),
            );
        }
        if two_sides {
            self.problems.push("side and buyer_is_maker say the same: give one".to_owned());
        }
        let names_columns = self
            .columns
            .values()
            .chain(match &self.symbol {
                Some(SymbolSource::Column(source)) => Some(source),
                _ => None,
            })
            .any(|source| matches!(source.place, Place::Name(_)));
        if names_columns && self.header == Some(false) {
            self.problems.push("header=no, but columns are named: give their numbers".to_owned());
        }
        let header = self.header.unwrap_or(names_columns);
        match (self.symbol, self.problems.is_empty()) {
            (Some(symbol), true) => Ok(CsvMapping {
                symbol,
                columns: self.columns,
                delimiter: self.delimiter.unwrap_or(b','),
                header,
            }),
            _ => Err(SourceError::BadMapping { problems: self.problems }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every mistake must be told, and nothing else.
    fn check_refused(text: &str, expected: &[&str]) {
        match text.parse::<CsvMapping>() {
            Err(SourceError::BadMapping { problems }) => {
                assert_eq!(problems.len(), expected.len(), "{text}: {problems:?}");
                for (problem, expected) in problems.iter().zip(expected) {
                    assert!(problem.contains(expected), "{text}: {problem:?} should say {expected:?}");
                }
            }
            other => panic!("{text}: expected mistakes, got {other:?}"),
        }
    }

    #[test]
    fn mistakes_are_told_all_at_once() {
        check_refused("", &["is not key=column", "needs symbol", "needs time", "needs price and size"]);
        check_refused("symbol=s,time=t,price=p,size=q", &["time=t: a time needs its unit", "needs time"]);
        check_refused("symbol=s,time=t:hours,price=p,size=q", &["allowed are s, ms", "needs time"]);
        check_refused(
            "symbol=s,time=t:ms,price=p:ms,size=q",
            &["only times have a unit", "a trade needs price"],
        );
        check_refused("symbol=s,time=t:ms,price=p", &["a trade needs size"]);
        check_refused("symbol=s,time=t:ms,bid_price=b", &["a quote needs bid_size, ask_price, ask_size"]);
        check_refused("symbol=s,time=0:ms,price=p,size=q", &["its number from 1", "needs time"]);
        check_refused(
            "symbol='',time=t:ms,price='5',size=q",
            &["not an empty one", "only the symbol", "needs symbol", "needs price"],
        );
        check_refused("symbol=s,time=t:ms,price=p,size=q,kind=k", &["kind is for"]);
        check_refused(
            "symbol=s,time=t:ms,price=p,size=q,bid_price=1,bid_size=2,ask_price=3,ask_size=4",
            &["both trades and quotes needs kind"],
        );
        check_refused("symbol=s,time=t:ms,price=p,size=q,side=a,buyer_is_maker=b", &["give one"]);
        check_refused("symbol=s,time=t:ms,price=p,size=q,prize=7", &["unknown key `prize`"]);
        check_refused(
            "symbol=s,symbol=t,time=t:ms,price=p,size=q,size=r",
            &["`symbol` is given twice", "`size` is given twice"],
        );
        check_refused("symbol=s,time=t:ms,price=p,size=q,header=no", &["columns are named"]);
        check_refused(
            "symbol=s,time=t:ms,price=p,size=q,header=x,delimiter=x",
            &["header `x`", "delimiter `x`"],
        );
    }

    #[test]
    fn columns_are_found_in_the_header() {
        let mapping: CsvMapping = "symbol=sym,time=ts:ms,price=4,size=qty".parse().expect("good");
        let header = ["qty", "sym", "ts", "px"].map(str::to_owned);
        let plan = mapping.plan(&header, Some("V")).expect("all there");
        assert_eq!(plan.event_time, (Column::new(2, "ts"), TimeUnit::Milliseconds));
        assert_eq!(
            plan.symbol,
            SymbolRule::Column { column: Column::new(1, "sym"), venue: Some("V".to_owned()) }
        );
        assert!(matches!(plan.kind, KindRule::Trades(TradeColumns { price: Column { index: 3, .. }, .. })));
        assert_eq!(mapping.plan(&header[1..], None), Err("qty".to_owned()));
    }

    #[test]
    fn constants_may_hold_what_separates_entries() {
        let mapping: CsvMapping = "symbol='A,B=C:D',time=1:ns,price=2,size=3".parse().expect("good");
        assert!(!mapping.has_header());
        let plan = mapping.plan(&[], Some("V")).expect("numbers need no header");
        assert_eq!(plan.symbol, SymbolRule::Constant("A,B=C:D".to_owned()));
        let mapping: CsvMapping = "symbol='IBM',time=1:ns,price=2,size=3,header=yes".parse().expect("good");
        assert!(mapping.has_header());
        assert_eq!(
            mapping.plan(&[], Some("V")).map(|plan| plan.symbol),
            Ok(SymbolRule::Constant("V:IBM".to_owned()))
        );
    }
}
