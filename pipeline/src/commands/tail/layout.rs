//! Fields of a record that the table shows, and their form.

use serde_json::Value;
use warptape_schemas::{decimal_e9, decimal_text};

use super::rows::TickRow;
use crate::commands::columns::{Align, line, utc};

/// The columns of one schema, after the position that every line has.
pub struct Layout {
    /// Schema name; empty for records of schemas without a layout.
    pub schema: &'static str,
    columns: &'static [Column],
}

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

struct Column {
    title: &'static str,
    width: usize,
    show: Show,
}

/// Forms of columns.
enum Show {
    /// A field as it is.
    Word(&'static str),
    /// A whole number.
    Count(&'static str),
    /// A number scaled by 1e-9; empty for 0, which means "none" in ticks.
    Decimal(&'static str),
    /// A floating-point number.
    Float(&'static str),
    /// The value of a signal: the close itself for a bar's close.
    Value,
    /// The record's time in the log.
    Written,
    /// A time, ns since the epoch.
    Time(&'static str),
    /// A duration in ns, as milliseconds.
    Milliseconds(&'static str),
    /// Number of bytes of a field of bytes, which comes as hex digits.
    Size(&'static str),
    /// `topic:partition:offset` of the record that this record is about.
    Source,
    /// The name of a union's branch.
    Branch(&'static str),
    /// The name of a union's branch, with its most telling number or the error.
    Answer(&'static str),
    /// The whole record as JSON.
    Json,
}

/// Width of `partition:offset:index`.
const POSITION_WIDTH: usize = 16;
/// Width of a time with microseconds.
const TIME_WIDTH: usize = 27;
/// Significant digits of floating-point numbers.
const FLOAT_DIGITS: usize = 9;

const fn column(title: &'static str, width: usize, show: Show) -> Column {
    Column { title, width, show }
}

/// Column of a record's time, for schemas that have no such field.
const WRITTEN: Column = column("WRITTEN", TIME_WIDTH, Show::Written);

const LAYOUTS: &[Layout] = &[
    Layout {
        schema: "Tick",
        columns: &[
            WRITTEN,
            column("EVENT TIME", TIME_WIDTH, Show::Time("event_time_ns")),
            column("SYMBOL", 20, Show::Word("symbol")),
            column("KIND", 5, Show::Word("kind")),
            column("SIDE", 4, Show::Word("side")),
            column("PRICE", 14, Show::Decimal("price_e9")),
            column("SIZE", 14, Show::Decimal("size_e9")),
            column("BID", 14, Show::Decimal("bid_price_e9")),
            column("BID SIZE", 14, Show::Decimal("bid_size_e9")),
            column("ASK", 14, Show::Decimal("ask_price_e9")),
            column("ASK SIZE", 14, Show::Decimal("ask_size_e9")),
        ],
    },
    Layout {
        schema: "Signal",
        columns: &[
            WRITTEN,
            column("BAR END", TIME_WIDTH, Show::Time("bar_end_ns")),
            column("SYMBOL", 20, Show::Word("symbol")),
            column("BAR", 8, Show::Word("bar_spec")),
            column("KIND", 14, Show::Word("kind")),
            column("VALUE", 14, Show::Value),
            column("THRESHOLD", 14, Show::Float("threshold")),
            column("OPEN", 14, Show::Decimal("open_e9")),
            column("HIGH", 14, Show::Decimal("high_e9")),
            column("LOW", 14, Show::Decimal("low_e9")),
            column("CLOSE", 14, Show::Decimal("close_e9")),
            column("VOLUME", 14, Show::Decimal("volume_e9")),
            column("TRADES", 7, Show::Count("trades")),
            column("BOUGHT", 14, Show::Decimal("buy_volume_e9")),
            column("SOLD", 14, Show::Decimal("sell_volume_e9")),
            column("PARTIAL", 7, Show::Word("partial")),
        ],
    },
    Layout {
        schema: "JournalEntry",
        columns: &[
            column("SEQUENCE", 10, Show::Count("sequence")),
            column("AT", TIME_WIDTH, Show::Time("at_ns")),
            column("INPUT", 40, Show::Word("input")),
        ],
    },
    Layout {
        schema: "Snapshot",
        columns: &[
            WRITTEN,
            column("PARTITION", 9, Show::Count("partition")),
            column("GROUP", 5, Show::Count("group")),
            column("AT OFFSET", 12, Show::Count("offset")),
            column("PART", 4, Show::Count("part")),
            column("PARTS", 5, Show::Count("parts")),
            column("BYTES", 10, Show::Size("state")),
            column("CHECKSUM", 64, Show::Word("checksum")),
        ],
    },
    Layout {
        schema: "LateTick",
        columns: &[
            WRITTEN,
            column("EVENT TIME", TIME_WIDTH, Show::Time("event_time_ns")),
            column("SYMBOL", 20, Show::Word("symbol")),
            column("KIND", 5, Show::Word("kind")),
            column("LATE BY MS", 12, Show::Milliseconds("lateness_ns")),
            column("SOURCE", 24, Show::Source),
        ],
    },
    Layout {
        schema: "DeadLetter",
        columns: &[
            WRITTEN,
            column("SOURCE", 24, Show::Source),
            column("REASON", 16, Show::Word("reason")),
            column("DETAIL", 40, Show::Word("detail")),
        ],
    },
    Layout {
        schema: "Lifecycle",
        columns: &[
            column("AT", TIME_WIDTH, Show::Time("at_ns")),
            column("NODE", 12, Show::Word("node")),
            column("EVENT", 18, Show::Word("event")),
            column("DETAIL", 40, Show::Word("detail")),
        ],
    },
    Layout {
        schema: "Feed",
        columns: &[
            WRITTEN,
            column("SOURCE", 32, Show::Word("source")),
            column("NAME", 24, Show::Word("name")),
            column("TICKS", 14, Show::Count("ticks")),
            column("FINISHED", 8, Show::Word("is_finished")),
            column("DIGEST", 64, Show::Word("digest")),
        ],
    },
    Layout {
        schema: "Control",
        columns: &[
            column("AT", TIME_WIDTH, Show::Time("at_ns")),
            column("ID", 40, Show::Word("id")),
            column("BY", 12, Show::Word("by")),
            column("DEADLINE", TIME_WIDTH, Show::Time("deadline_ns")),
            column("COMMAND", 14, Show::Branch("command")),
        ],
    },
    Layout {
        schema: "ControlResult",
        columns: &[
            column("AT", TIME_WIDTH, Show::Time("at_ns")),
            column("ID", 40, Show::Word("id")),
            column("NODE", 12, Show::Word("node")),
            column("OUTCOME", 8, Show::Word("outcome")),
            column("SEQUENCE", 10, Show::Count("sequence")),
            column("DETAIL", 40, Show::Word("detail")),
        ],
    },
    Layout {
        schema: "RiskRequest",
        columns: &[
            WRITTEN,
            column("REQUEST", 32, Show::Word("request_id")),
            column("TENANT", 12, Show::Word("tenant")),
            column("CLASS", 11, Show::Word("class")),
            column("DEADLINE", TIME_WIDTH, Show::Time("deadline_ns")),
            column("SEED", 12, Show::Count("seed")),
            column("PROBLEM", 20, Show::Branch("problem")),
        ],
    },
    Layout {
        schema: "RiskResult",
        columns: &[
            WRITTEN,
            column("FINISHED", TIME_WIDTH, Show::Time("finished_ns")),
            column("REQUEST", 32, Show::Word("request_id")),
            column("CLASS", 11, Show::Word("class")),
            column("COMPUTE MS", 12, Show::Milliseconds("compute_ns")),
            column("NODE", 12, Show::Word("node")),
            column("SEQUENCE", 10, Show::Count("decision_sequence")),
            column("ANSWER", 40, Show::Answer("outcome")),
        ],
    },
];

const ANY: Layout = Layout { schema: "", columns: &[WRITTEN, column("RECORD", 40, Show::Json)] };

/// Returns the layout of a schema, named with or without its namespace.
pub fn of(schema: &str) -> &'static Layout {
    let name = match schema.rsplit('.').next().unwrap_or(schema) {
        "ScaledTickBatch" => "Tick",
        name => name,
    };
    LAYOUTS.iter().find(|layout| layout.schema == name).unwrap_or(&ANY)
}

impl Layout {
    /// Returns the line of titles.
    pub fn header(&self) -> String {
        self.text("POSITION".to_owned(), |column| column.title.to_owned())
    }

    /// Returns the line of one row.
    pub fn line(&self, at: Position, row: &TickRow) -> String {
        let Position { partition, offset, timestamp_ns } = at;
        let index = row.index.map_or_else(String::new, |index| format!(":{index}"));
        self.text(format!("{partition}:{offset}{index}"), |column| match column.show {
            Show::Written => utc(timestamp_ns),
            _ => column.show.text(&row.fields),
        })
    }

    fn text(&self, position: String, cell: impl Fn(&Column) -> String) -> String {
        let cells: Vec<String> = self.columns.iter().map(cell).collect();
        let shapes = self.columns.iter().map(|column| (column.width, column.show.align()));
        let columns = cells.iter().zip(shapes).map(|(cell, (width, align))| (cell, width, align));
        line(std::iter::once((&position, POSITION_WIDTH, Align::Left)).chain(columns))
    }
}

impl Show {
    fn align(&self) -> Align {
        match self {
            Show::Count(_)
            | Show::Decimal(_)
            | Show::Float(_)
            | Show::Value
            | Show::Milliseconds(_)
            | Show::Size(_) => Align::Right,
            _ => Align::Left,
        }
    }

    fn text(&self, fields: &Value) -> String {
        let get = |name: &str| fields.get(name).unwrap_or(&Value::Null);
        match self {
            Show::Word(name) | Show::Count(name) => word(get(name)),
            Show::Decimal(name) => number(fields, name),
            Show::Float(name) => get(name).as_f64().map_or_else(|| word(get(name)), float),
            Show::Value => {
                let close = number(fields, "close_e9");
                let is_close = get("value").as_f64().is_some_and(|value| close.parse() == Ok(value));
                if is_close { close } else { Show::Float("value").text(fields) }
            }
            Show::Time(name) => get(name).as_i64().map_or_else(|| word(get(name)), utc),
            Show::Milliseconds(name) => {
                let milliseconds = |ns: i64| format!("{:.3}", ns as f64 / 1e6);
                get(name).as_i64().map_or_else(|| word(get(name)), milliseconds)
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
            // The time of the record is no field; the caller has it.
            Show::Written => String::new(),
            Show::Json => fields.to_string(),
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

/// Formats a price or size: in 1e-9 by this name, or exactly by the name without its unit.
fn number(fields: &Value, name: &str) -> String {
    let exact_name = name.strip_suffix("_e9").unwrap_or(name);
    let exact = ["exact", "exact_flow"].into_iter().find_map(|record| fields.get(record)?.get(exact_name));
    if let Some(exact) = exact {
        return word(exact);
    }
    // A quote has no price, and a trade no book; prices of 0 in a bar are real.
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

/// Formats a number with few significant digits, and without an exponent if it is short.
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

/// Returns the name of a union's branch, with or without a namespace: the name of an object's only member.
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

    fn at(partition: i32, offset: i64) -> Position {
        Position { partition, offset, timestamp_ns: 1_723_075_200_123_456_789 }
    }

    #[test]
    fn numbers_and_times() {
        let check = |show: Show, value: Value, expected: &str| {
            assert_eq!(show.text(&json!({ "x": value })), expected, "{value}");
        };
        check(Show::Decimal("x"), json!(60_123_450_000_000_i64), "60123.45");
        check(Show::Decimal("x"), json!(-1), "-0.000000001");
        check(Show::Decimal("x"), json!(5_000_000_000_i64), "5");
        check(Show::Decimal("x"), json!(0), "");
        check(Show::Decimal("x"), json!("1.5"), "1.5");
        check(Show::Decimal("x"), json!(null), "");
        let row = |fields: Value, name| Show::Decimal(name).text(&fields);
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
        let check = |fields: Value, expected: &str| assert_eq!(Show::Value.text(&fields), expected);
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
    fn branches_have_their_names() {
        assert_eq!(Show::Branch("x").text(&json!({ "x": {"warptape.Woke": {}} })), "Woke");
    }

    #[test]
    fn cells_stand_below_their_titles() {
        let fields = json!({
            "topic": "ticks", "partition": 2, "offset": 7, "reason": "TRUNCATED", "detail": "ends in field 3",
        });
        let layout = of("warptape.DeadLetter");
        let row = TickRow { schema: "DeadLetter", index: None, fields };
        let (header, line) = (layout.header(), layout.line(at(1, 40), &row));
        assert!(line.starts_with("1:40 "), "{line}");
        for (title, cell) in [
            ("WRITTEN", "2024-08-08T00:00:00.123456Z"),
            ("SOURCE", "ticks:2:7"),
            ("REASON", "TRUNCATED"),
            ("DETAIL", "ends in field 3"),
        ] {
            assert_eq!(header.find(title).unwrap(), line.find(cell).unwrap(), "{header}\n{line}");
        }
    }

    #[test]
    fn answers_are_told_in_short() {
        let check = |outcome: Value, expected: &str| {
            assert_eq!(Show::Answer("x").text(&json!({ "x": outcome })), expected);
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

    #[test]
    fn a_schema_without_layout_is_shown_as_json() {
        let row = TickRow { schema: "Other", index: None, fields: json!({"a": 1}) };
        let written = "2024-08-08T00:00:00.123456Z";
        assert_eq!(of("Other").line(at(0, 1), &row), format!("0:1               {written}  {{\"a\":1}}"));
    }
}
