//! The text of a `--map`, and every mistake in it.

use std::collections::BTreeMap;

use super::mapping::{ColumnSource, CsvMapping, Place, SymbolSource};
use crate::SourceError;
use crate::time_unit::TimeUnit;

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
pub(super) struct MappingReader {
    symbol: Option<SymbolSource>,
    columns: BTreeMap<&'static str, ColumnSource>,
    delimiter: Option<u8>,
    header: Option<bool>,
    signed: Option<bool>,
    problems: Vec<String>,
}

impl MappingReader {
    /// Reads a whole mapping.
    pub(super) fn read(text: &str) -> Result<CsvMapping, SourceError> {
        let mut reader = MappingReader::default();
        for entry in split_entries(text) {
            reader.read_entry(entry.trim());
        }
        reader.finish()
    }

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
            "header" | "signed" => {
                let answer = match value {
                    "yes" => Some(true),
                    "no" => Some(false),
                    _ => None,
                };
                if answer.is_none() {
                    self.problems.push(format!("{key} `{value}`: allowed are yes, no"));
                }
                let of_key = if key == "header" { &mut self.header } else { &mut self.signed };
                std::mem::replace(of_key, answer).is_some()
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
            self.problems
                .push(format!("unknown key `{key}`: allowed are {allowed}, delimiter, header, signed"));
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
                signed: self.signed.unwrap_or(false),
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
}
