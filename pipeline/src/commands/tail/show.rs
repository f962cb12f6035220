//! Cells of tables and CSV: the forms of a record's fields.

use serde_json::Value;
use warptape_schemas::{decimal_e9, decimal_text};

use super::rows::TickRow;
use crate::commands::columns::{Align, utc};
use crate::commands::json::iso;

/// Significant digits of floating-point numbers in tables.
const FLOAT_DIGITS: usize = 9;

/// Place and time of a record.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The record's time, ns since the epoch.
    pub timestamp_ns: i64,
}

/// A row to be written.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// Place and time of its record.
    pub at: Position,
    /// The row.
    pub row: &'a TickRow,
    /// The row in its JSON form; null unless a column shows one of its JSON fields.
    pub readable: &'a Value,
}

/// Precision of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Times in microseconds, and numbers with few digits.
    Table,
    /// All digits that the record has.
    Exact,
}

/// Form of a column's cells.
#[derive(Clone, Copy, Debug)]
pub enum Show {
    /// `partition:offset:index`.
    Position,
    /// The record's partition.
    Partition,
    /// The record's offset.
    Offset,
    /// The row's index within the record; empty for records of one row.
    Index,
    /// The record's time in the log.
    Written,
    /// A field, unchanged.
    Word(&'static str),
    /// A field, unchanged, for long texts.
    Sentence(&'static str),
    /// A whole number.
    Count(&'static str),
    /// A number scaled by 1e-9; empty for 0, which means "none" in ticks.
    Decimal(&'static str),
    /// A floating-point number.
    Float(&'static str),
    /// The kind of a signal, with the name of the alert or fault.
    Kind,
    /// The value of a signal; for a closed bar, its close price.
    Value,
    /// A time, ns since the epoch.
    Time(&'static str),
    /// A duration in ns, as milliseconds.
    Milliseconds(&'static str),
    /// Length in bytes of a bytes field, which is given as hex digits.
    Size(&'static str),
    /// `topic:partition:offset` of the record that a dead letter is about.
    Source,
    /// The name of a union's branch.
    Branch(&'static str),
    /// The name of a union's branch, with its main number or the error.
    Answer(&'static str),
    /// A value of a signal's `further_indicators`.
    Further(&'static str),
    /// A field of the record's JSON, with exact times and decimals.
    Field(&'static str),
    /// The whole record as JSON.
    Json,
}

impl Show {
    /// Returns the alignment of the column.
    pub fn align(self) -> Align {
        match self {
            Show::Count(_)
            | Show::Decimal(_)
            | Show::Float(_)
            | Show::Further(_)
            | Show::Value
            | Show::Milliseconds(_)
            | Show::Size(_)
            | Show::Partition
            | Show::Offset
            | Show::Index => Align::Right,
            _ => Align::Left,
        }
    }

    /// Returns the cell of a row.
    pub fn cell(self, Row { at, row, readable }: Row<'_>, precision: Precision) -> String {
        let index = || row.index.map_or_else(String::new, |index| index.to_string());
        match self {
            Show::Position => {
                let index = row.index.map_or_else(String::new, |index| format!(":{index}"));
                format!("{}:{}{index}", at.partition, at.offset)
            }
            Show::Partition => at.partition.to_string(),
            Show::Offset => at.offset.to_string(),
            Show::Index => index(),
            Show::Written => precision.time(at.timestamp_ns),
            Show::Field(name) => word(readable.get(name).unwrap_or(&Value::Null)),
            _ => self.text(&row.fields, precision),
        }
    }

    /// Returns the cell of a form that depends only on the fields.
    fn text(self, fields: &Value, precision: Precision) -> String {
        let get = |name: &str| fields.get(name).unwrap_or(&Value::Null);
        match self {
            Show::Word(name) | Show::Sentence(name) | Show::Count(name) => word(get(name)),
            Show::Decimal(name) => number(fields, name),
            Show::Further(name) => Show::Float(name).text(get("further_indicators"), precision),
            Show::Float(name) => get(name)
                .as_f64()
                .filter(|_| precision == Precision::Table)
                .map_or_else(|| word(get(name)), float),
            Show::Kind => match get("name").as_str() {
                Some(name) => format!("{} {name}", word(get("kind"))),
                None => word(get("kind")),
            },
            Show::Value => {
                let close = number(fields, "close_e9");
                let is_close = get("value").as_f64().is_some_and(|value| close.parse() == Ok(value));
                if is_close { close } else { Show::Float("value").text(fields, precision) }
            }
            Show::Time(name) => get(name).as_i64().map_or_else(|| word(get(name)), |ns| precision.time(ns)),
            Show::Milliseconds(name) => {
                get(name).as_i64().map_or_else(|| word(get(name)), |ns| precision.milliseconds(ns))
            }
            Show::Size(name) => {
                get(name).as_str().map_or_else(String::new, |hex| (hex.len() / 2).to_string())
            }
            Show::Source => {
                let parts = ["topic", "partition", "offset", "index"].map(|name| word(get(name)));
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":")
            }
            Show::Branch(name) => branch(get(name)).to_owned(),
            Show::Answer(name) => answer(get(name)),
            Show::Json => fields.to_string(),
            // These forms do not show a field of the record.
            Show::Position
            | Show::Partition
            | Show::Offset
            | Show::Index
            | Show::Written
            | Show::Field(_) => String::new(),
        }
    }
}

impl Precision {
    fn time(self, ns: i64) -> String {
        match self {
            Precision::Table => utc(ns),
            Precision::Exact => iso(ns),
        }
    }

    fn milliseconds(self, ns: i64) -> String {
        match self {
            Precision::Table => format!("{:.3}", ns as f64 / 1e6),
            Precision::Exact => decimal_text(ns.into(), 6),
        }
    }
}

/// Formats a value without quotes.
fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats a price or size: the field `name` in 1e-9, or the field with its exact text, named without the unit.
fn number(fields: &Value, name: &str) -> String {
    let exact_name = name.strip_suffix("_e9").unwrap_or(name);
    let exact = ["exact", "exact_flow"].into_iter().find_map(|record| fields.get(record)?.get(exact_name));
    if let Some(exact) = exact {
        return word(exact);
    }
    // A quote has no price, and a trade no bid and ask, so 0 means "none" there; prices of 0 in a bar are real.
    let is_of_bar = ["open", "high", "low", "close"].contains(&exact_name);
    let is_of_trade = exact_name == "price" && fields.get("kind") == Some(&"TRADE".into());
    let is_none = !is_of_bar && !is_of_trade;
    let scale_name = if exact_name.ends_with("size") { "size_scale" } else { "price_scale" };
    let scale = fields.get(scale_name).and_then(Value::as_u64).and_then(|scale| usize::try_from(scale).ok());
    if let (Some(scale), Some(value)) = (scale, fields.get(exact_name).and_then(Value::as_i64)) {
        return if value == 0 && is_none { String::new() } else { decimal_text(value.into(), scale) };
    }
    let value = fields.get(name).unwrap_or(&Value::Null);
    match value.as_i64() {
        Some(0) if is_none => String::new(),
        Some(value) => decimal_e9(value),
        None => word(value),
    }
}

/// Formats a number with few significant digits; a short one has no exponent.
pub fn float(value: f64) -> String {
    let scientific = format!("{value:.*e}", FLOAT_DIGITS - 1);
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match exponent {
        Some(exponent @ -5..=11) => {
            let decimals = (FLOAT_DIGITS as i32 - 1 - exponent).max(0) as usize;
            let text = format!("{value:.decimals$}");
            if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
        }
        _ => scientific,
    }
}

/// Returns the name of a union's branch without its namespace: the name of the object's only member.
pub(super) fn branch(value: &Value) -> &str {
    let name = value.as_object().and_then(|object| object.keys().next()).map(String::as_str);
    name.or(value.as_str()).map_or("", |name| name.rsplit('.').next().unwrap_or(name))
}

/// Summarises the outcome of a risk request.
fn answer(outcome: &Value) -> String {
    let name = branch(outcome);
    let Some(fields) = outcome.as_object().and_then(|object| object.values().next()) else {
        return String::new();
    };
    let count = |list: &str| fields[list].as_array().map_or(0, Vec::len);
    let number = |field: &str| fields[field].as_f64().map_or_else(|| word(&fields[field]), float);
    let short = match name {
        "RiskError" => {
            format!("{} {}: {}", word(&fields["code"]), word(&fields["field"]), word(&fields["message"]))
        }
        "OptionResult" => format!("{} options", count("values")),
        "SimulationResult" => format!("price {} ± {}", number("price"), number("standard_error")),
        "PortfolioResult" => format!("value at risk {}", number("value_at_risk")),
        "StressResult" => format!("{} scenarios", count("scenarios")),
        "SweepResult" => format!("{} rules", count("cells")),
        _ => match fields.as_object().into_iter().flatten().find(|(_, value)| value.is_array()) {
            Some((list, _)) => format!("{} {}", count(list), list.replace('_', " ")),
            None => return name.to_owned(),
        },
    };
    format!("{name}: {short}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_times() {
        let check = |show: Show, value: Value, expected: &str| {
            assert_eq!(show.text(&json!({ "x": value }), Precision::Table), expected, "{value}");
        };
        check(Show::Decimal("x"), json!(60_123_450_000_000_i64), "60123.45");
        check(Show::Decimal("x"), json!(-1), "-0.000000001");
        check(Show::Decimal("x"), json!(5_000_000_000_i64), "5");
        check(Show::Decimal("x"), json!(0), "");
        check(Show::Decimal("x"), json!("1.5"), "1.5");
        check(Show::Decimal("x"), json!(null), "");
        let row = |fields: Value, name| Show::Decimal(name).text(&fields, Precision::Table);
        let coin = json!({"kind": "TRADE", "price": 0, "size": 19_000_000_000_i64, "price_scale": 14, "size_scale": 0, "bid_size": 0});
        assert_eq!(row(coin.clone(), "price_e9"), "0");
        assert_eq!(
            (row(coin.clone(), "size_e9"), row(coin, "bid_size_e9")),
            ("19000000000".to_owned(), String::new())
        );
        let bar = json!({"open_e9": null, "volume_e9": i64::MAX, "exact": {"open": "-0.5", "volume": "18999999999"}});
        assert_eq!(
            (row(bar.clone(), "open_e9"), row(bar, "volume_e9")),
            ("-0.5".to_owned(), "18999999999".to_owned())
        );
        assert_eq!(row(json!({"open_e9": 5, "exact": null}), "open_e9"), "0.000000005");
        check(Show::Float("x"), json!(60_123.456_789_123), "60123.4568");
        check(Show::Float("x"), json!(0.0), "0");
        check(Show::Float("x"), json!(-2.5), "-2.5");
        check(Show::Float("x"), json!(1e-7), "1.00000000e-7");
        check(Show::Float("x"), json!(1e15), "1.00000000e15");
        check(Show::Time("x"), json!(1_723_075_200_123_456_789_i64), "2024-08-08T00:00:00.123456Z");
        check(Show::Time("x"), json!(i64::MIN), "1677-09-21T00:12:43.145224Z");
        check(Show::Milliseconds("x"), json!(1_234_567), "1.235");
        check(Show::Size("x"), json!("00ff7f"), "3");
    }

    #[test]
    fn a_value_that_is_the_close_has_all_of_its_digits() {
        let check =
            |fields: Value, expected: &str| assert_eq!(Show::Value.text(&fields, Precision::Table), expected);
        check(json!({"value": 60_123.456_789_123, "close_e9": 60_123_456_789_123_i64}), "60123.456789123");
        check(json!({"value": 60_123.456_789_123, "close_e9": 60_123_456_789_124_i64}), "60123.4568");
        check(
            json!({"value": 1e-12, "close_e9": null, "exact": {"close": "0.000000000001"}}),
            "0.000000000001",
        );
        check(json!({"value": 0.0, "close_e9": 0}), "0");
        check(json!({"value": null, "close_e9": null}), "");
        check(json!({"value": 71.25}), "71.25");
    }

    #[test]
    fn exact_cells_lose_nothing() {
        let check = |show: Show, value: Value, expected: &str| {
            assert_eq!(show.text(&json!({ "x": value }), Precision::Exact), expected, "{value}");
        };
        check(Show::Float("x"), json!(60_123.456_789_123), "60123.456789123");
        check(Show::Time("x"), json!(1_723_075_200_123_456_789_i64), "2024-08-08T00:00:00.123456789Z");
        check(Show::Milliseconds("x"), json!(1_234_567), "1.234567");
        check(Show::Milliseconds("x"), json!(-2_000_000), "-2");
    }

    #[test]
    fn branches_have_their_names() {
        assert_eq!(Show::Branch("x").text(&json!({ "x": {"warptape.Woke": {}} }), Precision::Table), "Woke");
    }

    #[test]
    fn answers_are_told_in_short() {
        let check = |outcome: Value, expected: &str| {
            assert_eq!(Show::Answer("x").text(&json!({ "x": outcome }), Precision::Table), expected);
        };
        check(
            json!({"SimulationResult": {"price": 5.25, "standard_error": "inf"}}),
            "SimulationResult: price 5.25 ± inf",
        );
        check(json!({"warptape.OptionResult": {"values": [{}, {}]}}), "OptionResult: 2 options");
        check(
            json!({"RiskError": {"code": "EXPIRED", "field": "deadline_ns", "message": "too late"}}),
            "RiskError: EXPIRED deadline_ns: too late",
        );
        check(json!({"Later": {"what": 1}}), "Later");
        check(json!(null), "");
    }
}
