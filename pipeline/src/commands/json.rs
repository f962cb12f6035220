//! JSON output of commands. Times are also given as text, beside raw integers. Integers can be text, for programs such
//! as jq that read numbers as floating-point.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Serializer, Value};

use crate::usage_error::UsageError;
pub(super) use warptape_replay::iso;

/// Names, without their unit, of fields in ns that hold a time of day. Other fields that end in `_ns` are durations.
const TIMES: [&str; 24] = [
    "assigned",
    "at",
    "bar_end",
    "bar_start",
    "came",
    "committed",
    "created",
    "deadline",
    "ended",
    "event_time",
    "event_time_max",
    "finished",
    "from",
    "known",
    "oldest_arrival",
    "predicted_finish",
    "receive_time",
    "received",
    "sealed",
    "sent",
    "started",
    "time",
    "until",
    "watermark",
];

/// Form of integers in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integers {
    /// Numbers. Readers that use 64-bit floating-point numbers change those beyond 2^53.
    Numbers,
    /// Strings of digits, which every reader keeps.
    Text,
}

impl Integers {
    /// Returns the form for `--raw`; an error if the output is not JSON.
    pub fn of(is_raw: bool, is_json: bool) -> Result<Self, UsageError> {
        match (is_raw, is_json) {
            (true, false) => {
                Err(UsageError("--raw is a form of JSON; give -o json as well, or leave it out".to_owned()))
            }
            (true, true) => Ok(Self::Text),
            (false, _) => Ok(Self::Numbers),
        }
    }
}

/// Writes a value as one line.
pub fn write_line(out: &mut impl Write, value: &impl Serialize, integers: Integers) -> io::Result<()> {
    match integers {
        Integers::Numbers => serde_json::to_writer(&mut *out, value)?,
        Integers::Text => value.serialize(&mut Serializer::with_formatter(&mut *out, AsText))?,
    }
    out.write_all(b"\n")
}

/// Writes a value as one line, with times as text added at all depths.
pub fn write_line_with_times(
    out: &mut impl Write,
    value: &impl Serialize,
    integers: Integers,
) -> io::Result<()> {
    let mut value = serde_json::to_value(value)?;
    add_times(&mut value);
    write_line(out, &value, integers)
}

/// Adds times as text beside those in ns, at all depths: `at` beside `at_ns`.
pub fn add_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(add_times);
            let names: Vec<String> =
                fields.keys().filter_map(|name| time_name(name)).map(str::to_owned).collect();
            for name in names {
                let text = time(fields, &name);
                fields.entry(name).or_insert(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add_times),
        _ => {}
    }
}

/// Returns the name of the text beside a time in ns; `None` for other fields.
pub fn time_name(field: &str) -> Option<&str> {
    field.strip_suffix("_ns").filter(|name| TIMES.contains(name))
}

/// Returns the field `NAME_ns` as text; null for 0, which means "unknown".
pub fn time(fields: &Map<String, Value>, name: &str) -> Value {
    let ns = fields.get(&format!("{name}_ns")).and_then(Value::as_i64);
    ns.filter(|ns| *ns != 0).map_or(Value::Null, |ns| iso(ns).into())
}

/// Writes compact JSON with integers in quotes. Names of members must not be integers.
struct AsText;

macro_rules! as_text {
    ($($name:ident: $integer:ty),*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, writer: &mut W, value: $integer) -> io::Result<()> {
            write!(writer, "\"{value}\"")
        })*
    };
}

impl Formatter for AsText {
    as_text!(
        write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64, write_i128: i128,
        write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_are_text_where_asked_for() {
        let value = json!({"ns": 9_007_199_254_740_993_i64, "big": u64::MAX, "price": 0.5, "list": [-1], "none": null});
        let written = |integers| {
            let mut out = Vec::new();
            write_line(&mut out, &value, integers).expect("memory takes all");
            String::from_utf8(out).expect("text")
        };
        let numbers = "{\"big\":18446744073709551615,\"list\":[-1],\"none\":null,\"ns\":9007199254740993,\"price\":0.5}\n";
        assert_eq!(written(Integers::Numbers), numbers);
        let text = "{\"big\":\"18446744073709551615\",\"list\":[\"-1\"],\"none\":null,\"ns\":\"9007199254740993\",\"price\":0.5}\n";
        assert_eq!(written(Integers::Text), text);
        assert!(Integers::of(true, false).is_err());
    }

    #[test]
    fn times_are_added_at_all_depths_and_durations_are_not() {
        let mut value = json!({
            "at_ns": 1_723_075_200_123_456_789_i64, "service_ns": 5, "deadline_ns": null,
            "attempts": [{"sent_ns": 0, "from_ns": 1, "from": "kept"}],
        });
        let raw = value.clone();
        add_times(&mut value);
        assert_eq!(
            (&value["at"], &value["deadline"]),
            (&json!("2024-08-08T00:00:00.123456789Z"), &Value::Null)
        );
        assert!(value.get("service").is_none());
        assert_eq!(value["attempts"][0], json!({"sent_ns": 0, "sent": null, "from_ns": 1, "from": "kept"}));
        for name in ["at_ns", "service_ns", "deadline_ns"] {
            assert_eq!(value[name], raw[name], "raw integers stay");
        }
    }
}
