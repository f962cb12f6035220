//! Parses a `--map`, and reports all mistakes in it.

use std::collections::BTreeMap;

use super::column::SideWords;
use super::mapping::{ColumnPlace, ColumnSource, ColumnUnit, CsvMapping, SymbolSource};
use super::mapping_values::{Setting, ZONES, column_unit, quoted, read_setting};
use super::number_format::NumberFormat;
use super::time_rule::{Gives, check_format, tells_offset};
use crate::SourceError;
use crate::time_unit::TimeUnit;
use jiff::civil::Date;

/// Keys whose value is a column.
const COLUMN_KEYS: [&str; 16] = [
    "symbol",
    "time",
    "receive_time",
    "date",
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
    "only",
    "except",
];
/// Keys whose value is not a column.
const SETTING_KEYS: [&str; 10] =
    ["delimiter", "header", "signed", "decimal", "thousands", "round", "zone", "buy", "sell", "empty"];
/// Keys whose column may be a constant.
const CONSTANT_KEYS: [&str; 6] = ["symbol", "date", "size", "bid_size", "ask_size", "side"];
const TRADE_KEYS: [&str; 2] = ["price", "size"];
const QUOTE_KEYS: [&str; 4] = ["bid_price", "bid_size", "ask_price", "ask_size"];
/// Columns that a quote requires.
const QUOTE_KEYS_NEEDED: [&str; 2] = ["bid_price", "ask_price"];

/// Splits at commas outside single quotes.
fn split_entries(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|character| {
        quoted ^= character == '\'';
        character == ',' && !quoted
    })
    .collect()
}

/// Collects entries, and all mistakes in them.
#[derive(Default)]
pub(super) struct MappingReader {
    symbol: Option<SymbolSource>,
    columns: BTreeMap<&'static str, ColumnSource>,
    /// Checked settings by key.
    settings: BTreeMap<&'static str, Setting>,
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
        let seen_before = match SETTING_KEYS.into_iter().find(|known| *known == key) {
            Some(key) => match read_setting(key, value) {
                Ok(setting) => self.settings.insert(key, setting).is_some(),
                Err(allowed) => {
                    self.problems.push(format!("{key} `{value}`: allowed: {allowed}"));
                    false
                }
            },
            None => self.read_column(key, value),
        };
        if seen_before {
            self.problems.push(format!("`{key}` is given twice"));
        }
    }

    /// Reads the entry of a column. Returns true if the key occurred before.
    fn read_column(&mut self, key: &str, value: &str) -> bool {
        let Some(key) = COLUMN_KEYS.into_iter().find(|known| *known == key) else {
            let allowed = [&COLUMN_KEYS[..], &SETTING_KEYS].concat().join(", ");
            self.problems.push(format!("unknown key `{key}`: allowed: {allowed}"));
            return false;
        };
        let source = match quoted(value) {
            Some(constant) => self.constant(key, constant),
            None => self.column_source(key, value),
        };
        let Some(source) = source else { return false };
        match (key, source) {
            ("symbol", ColumnSource { place: ColumnPlace::Constant(constant), .. }) => {
                self.symbol.replace(SymbolSource::Constant(constant)).is_some()
            }
            ("symbol", source) => self.symbol.replace(SymbolSource::Column(source)).is_some(),
            (_, source) => self.columns.insert(key, source).is_some(),
        }
    }

    fn constant(&mut self, key: &str, constant: &str) -> Option<ColumnSource> {
        if !CONSTANT_KEYS.contains(&key) || constant.is_empty() {
            let allowed = CONSTANT_KEYS.join(", ");
            self.problems.push(format!(
                "{key}='{constant}': only {allowed} may be constants, and no constant may be empty"
            ));
            return None;
        }
        if key == "date" && constant.parse::<Date>().is_err() {
            self.problems.push(format!("date='{constant}': write a date as '2024-08-08'"));
            return None;
        }
        Some(ColumnSource { place: ColumnPlace::Constant(constant.to_owned()), unit: None })
    }

    fn column_source(&mut self, key: &str, value: &str) -> Option<ColumnSource> {
        let (name, unit) = match value.split_once(':') {
            Some((name, unit)) => (name, Some(unit)),
            None => (value, None),
        };
        let unit = match column_unit(key, name, unit) {
            Ok(unit) => unit,
            Err(problem) => {
                self.problems.push(format!("{key}={value}: {problem}"));
                return None;
            }
        };
        let place = match name.parse::<usize>() {
            Ok(number) if number > 0 => ColumnPlace::Index(number - 1),
            Err(_) if !name.is_empty() => ColumnPlace::Name(name.to_owned()),
            _ => {
                self.problems.push(format!(
                    "{key}={value}: give a column by its name in the header, or by its number from 1"
                ));
                return None;
            }
        };
        Some(ColumnSource { place, unit })
    }

    /// Reports which of these keys are missing.
    fn require(&mut self, keys: &[&str], why: &str) {
        let missing: Vec<&str> =
            keys.iter().filter(|key| !self.columns.contains_key(*key)).copied().collect();
        if !missing.is_empty() {
            self.problems.push(format!("{why} needs {}", missing.join(", ")));
        }
    }

    fn is_yes(&self, key: &str) -> Option<bool> {
        if let Some(Setting::YesNo(answer)) = self.settings.get(key) { Some(*answer) } else { None }
    }

    fn mark(&self, key: &str) -> Option<char> {
        if let Some(Setting::Mark(mark)) = self.settings.get(key) { Some(*mark) } else { None }
    }

    fn words(&self, key: &str) -> Vec<String> {
        if let Some(Setting::Words(words)) = self.settings.get(key) { words.clone() } else { Vec::new() }
    }

    /// Reports missing and superfluous columns of a mapping.
    fn check_columns(&mut self) {
        let has = |key: &&str| self.columns.contains_key(*key);
        let (trades, quotes) = (TRADE_KEYS.iter().any(has), QUOTE_KEYS.iter().any(has));
        let (kind, two_sides) = (has(&"kind"), has(&"side") && has(&"buyer_is_maker"));
        let names_sides = self.settings.contains_key("buy") || self.settings.contains_key("sell");
        let no_side = names_sides && !has(&"side");
        if self.symbol.is_none() {
            self.problems.push("a tick needs symbol".to_owned());
        }
        self.require(&["time"], "a tick");
        if trades {
            self.require(&TRADE_KEYS, "a trade");
        }
        if quotes {
            self.require(&QUOTE_KEYS_NEEDED, "a quote");
        }
        if trades && quotes {
            self.require(&["kind"], "a mapping of both trades and quotes");
        } else if kind {
            self.problems.push("kind is for mappings of both trades and quotes".to_owned());
        }
        if !trades && !quotes {
            self.problems.push("a tick needs price and size, or bid_price and ask_price".to_owned());
        }
        if two_sides {
            self.problems.push("side and buyer_is_maker have the same meaning: give only one".to_owned());
        }
        if no_side {
            self.problems.push("buy and sell are values of side: name the column of side".to_owned());
        }
        self.check_times();
        let (decimal, thousands) = (self.mark("decimal").unwrap_or('.'), self.mark("thousands"));
        if thousands == Some(decimal) {
            self.problems.push("decimal and thousands are the same mark".to_owned());
        }
    }

    /// Reports formats that yield no time, and civil times without a zone.
    fn check_times(&mut self) {
        let has_zone = self.settings.contains_key("zone");
        let has_date = self.columns.contains_key("date");
        let mut problems = Vec::new();
        for (key, source) in &self.columns {
            let (gives, is_zoned) = match *key {
                "date" => (Gives::Date, true),
                "time" if has_date => (Gives::TimeOfDay, true),
                "time" | "receive_time" => (Gives::Both, false),
                _ => continue,
            };
            if let Some(ColumnUnit::Format(format)) = &source.unit {
                if let Err(problem) = check_format(format, gives) {
                    problems.push(format!("{key}: the format '{format}': {problem}"));
                } else if !has_zone && !is_zoned && !tells_offset(format) {
                    problems.push(format!("{key}: give its time zone, {ZONES}"));
                }
            }
            if *key == "time" && has_date && source.unit == Some(ColumnUnit::Time(TimeUnit::Rfc3339)) {
                problems.push(
                    "time: rfc3339 includes the date; leave out `date`, or give a format for the \
                               time"
                        .to_owned(),
                );
            }
        }
        if has_date && !has_zone {
            problems.push(format!("date: give its time zone, {ZONES}"));
        }
        self.problems.append(&mut problems);
    }

    fn finish(mut self) -> Result<CsvMapping, SourceError> {
        self.check_columns();
        let names_columns = self
            .columns
            .values()
            .chain(match &self.symbol {
                Some(SymbolSource::Column(source)) => Some(source),
                _ => None,
            })
            .any(|source| matches!(source.place, ColumnPlace::Name(_)));
        if names_columns && self.is_yes("header") == Some(false) {
            self.problems.push("header=no, but the mapping names columns: give their numbers".to_owned());
        }
        // One-byte marks were already checked to be ASCII.
        let byte = |mark: Option<char>, default: u8| mark.map_or(default, |mark| mark as u8);
        let round =
            if let Some(Setting::Round(round)) = self.settings.get("round") { Some(*round) } else { None };
        let zone = match self.settings.get("zone") {
            Some(Setting::Zone(zone)) => Some(zone.clone()),
            _ => None,
        };
        let numbers = NumberFormat {
            decimal: byte(self.mark("decimal"), b'.'),
            thousands: self.mark("thousands"),
            round,
        };
        let side_words = SideWords { buy: self.words("buy"), sell: self.words("sell") };
        let delimiter = byte(self.mark("delimiter"), b',');
        let header = self.is_yes("header").unwrap_or(names_columns);
        let (signed, empty_is_last) = (self.is_yes("signed"), self.is_yes("empty"));
        match (self.symbol, self.problems.is_empty()) {
            (Some(symbol), true) => Ok(CsvMapping {
                symbol,
                columns: self.columns,
                delimiter,
                header,
                signed: signed.unwrap_or(false),
                numbers,
                zone,
                side_words,
                empty_is_last: empty_is_last.unwrap_or(false),
            }),
            _ => Err(SourceError::BadMapping { problems: self.problems }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that exactly these mistakes are reported.
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
            &["the unit of a number", "a trade needs price"],
        );
        check_refused("symbol=s,time=t:ms,price=p", &["a trade needs size"]);
        check_refused("symbol=s,time=t:ms,bid_price=b", &["a quote needs ask_price"]);
        check_refused("symbol=s,time=0:ms,price=p,size=q", &["its number from 1", "needs time"]);
        check_refused(
            "symbol='',time=t:ms,price='5',size=q",
            &["no constant may be empty", "may be constants", "needs symbol", "needs price"],
        );
        check_refused("symbol=s,time=t:ms,price=p,size=q,kind=k", &["kind is for"]);
        check_refused(
            "symbol=s,time=t:ms,price=p,size=q,bid_price=1,bid_size=2,ask_price=3,ask_size=4",
            &["both trades and quotes needs kind"],
        );
        check_refused("symbol=s,time=t:ms,price=p,size=q,side=a,buyer_is_maker=b", &["give only one"]);
        check_refused("symbol=s,time=t:ms,price=p,size=q,prize=7", &["unknown key `prize`"]);
        check_refused(
            "symbol=s,symbol=t,time=t:ms,price=p,size=q,size=r",
            &["`symbol` is given twice", "`size` is given twice"],
        );
        check_refused("symbol=s,time=t:ms,price=p,size=q,header=no", &["names columns"]);
        check_refused(
            "symbol=s,time=t:ms,price=p,size=q,header=x,delimiter=x",
            &["header `x`", "delimiter `x`"],
        );
    }
}
