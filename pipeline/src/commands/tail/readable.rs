//! Records as JSON for people and for programs without a schema. Every tick has the same shape, with times and decimals
//! as text beside the raw integers.
//!
//! Fields of the record are not changed. Fields that an earlier version lacks get their defaults. An added field has
//! the same name without its unit: `event_time` beside `event_time_ns`, and `price` beside `price_e9`. This module must
//! not know how lines are printed.

use serde_json::{Map, Value, json};
use warptape_schemas::{Describer, decimal_text};

use super::defaults;
use super::rows::rows;
use crate::commands::json::{add_times, time};

/// Greatest number of ticks shown of a dead letter. A letter of a bad row has one tick; a letter of the rest of a
/// record may have many.
const TICKS_SHOWN_MAX: usize = 256;
/// Decimals of numbers whose names end in `_e9`.
const E9_SCALE: usize = 9;
const TICK_TIMES: [&str; 2] = ["event_time", "receive_time"];
const TICK_NUMBERS: [&str; 6] = ["price", "size", "bid_price", "bid_size", "ask_price", "ask_size"];
const BAR_TIMES: [&str; 2] = ["bar_start", "bar_end"];
const BAR_NUMBERS: [&str; 5] = ["open", "high", "low", "close", "volume"];
const FLOW_NUMBERS: [&str; 2] = ["buy_volume", "sell_volume"];

/// Returns the fields of a record, with readable fields added.
pub fn readable(schema: &str, fields: &Value, describer: &Describer) -> Value {
    let Value::Object(fields) = fields else { return fields.clone() };
    let (name, mut fields) = (schema.rsplit('.').next().unwrap_or(schema), fields.clone());
    if !matches!(name, "Tick" | "ScaledTickBatch") {
        defaults::add(name, &mut fields);
    }
    Value::Object(match name {
        "Tick" | "ScaledTickBatch" => tick(fields),
        "LateTick" => {
            let watermark = time(&fields, "watermark");
            let mut late = tick(fields);
            late.insert("watermark".to_owned(), watermark);
            late
        }
        "Signal" => signal(fields),
        "DeadLetter" => dead_letter(fields, describer),
        _ => {
            let mut value = Value::Object(fields);
            add_times(&mut value);
            return value;
        }
    })
}

/// Adds the readable fields of a tick. Prices and sizes with other scales than nine decimals are in `scaled`, as in
/// late ticks.
fn tick(mut fields: Map<String, Value>) -> Map<String, Value> {
    if let (Some(price_scale), Some(size_scale)) = (fields.remove("price_scale"), fields.remove("size_scale"))
    {
        let mut scaled = Map::new();
        for name in TICK_NUMBERS {
            let value = fields.remove(name).unwrap_or_default();
            let scale = if name.ends_with("size") { &size_scale } else { &price_scale };
            fields.insert(format!("{name}_e9"), e9(&value, scale));
            scaled.insert(name.to_owned(), value);
        }
        scaled.insert("price_scale".to_owned(), price_scale);
        scaled.insert("size_scale".to_owned(), size_scale);
        fields.insert("scaled".to_owned(), Value::Object(scaled));
    }
    let scaled = fields.entry("scaled").or_insert(Value::Null).clone();
    let exactly = |name: &str| -> Option<(i64, usize)> {
        let scale = if name.ends_with("size") { "size_scale" } else { "price_scale" };
        match scaled.get(scale).and_then(Value::as_u64) {
            Some(scale) => Some((scaled.get(name)?.as_i64()?, usize::try_from(scale).ok()?)),
            None => Some((fields.get(&format!("{name}_e9"))?.as_i64()?, E9_SCALE)),
        }
    };
    let is_trade = fields.get("kind").and_then(Value::as_str) == Some("TRADE");
    let is_not_0 = |name: &str| exactly(name).is_some_and(|(value, _)| value != 0);
    // A trade has no bid and ask, and a quote no price. A side is absent if its size is 0; in a quote without sizes, if
    // its price is 0.
    let told = if is_not_0("bid_size") || is_not_0("ask_size") { "size" } else { "price" };
    let is_there = |name: &str| match name.split_once('_') {
        Some((side, _)) => !is_trade && is_not_0(&format!("{side}_{told}")),
        None => is_trade,
    };
    let texts: Vec<(&str, Value)> = TICK_NUMBERS
        .into_iter()
        .map(|name| {
            let text = exactly(name)
                .filter(|_| is_there(name))
                .map(|(value, scale)| decimal_text(value.into(), scale));
            (name, json!(text))
        })
        .collect();
    for name in TICK_TIMES {
        let text = time(&fields, name);
        fields.insert(name.to_owned(), text);
    }
    fields.extend(texts.into_iter().map(|(name, text)| (name.to_owned(), text)));
    fields
}

/// Formats a number in units of 1e-9; null if 64 bits do not hold it exactly.
fn e9(value: &Value, scale: &Value) -> Value {
    let exact = || {
        let (value, scale) = (i128::from(value.as_i64()?), u32::try_from(scale.as_u64()?).ok()?);
        let moved = match scale <= 9 {
            true => value.checked_mul(10_i128.pow(9 - scale))?,
            false => {
                let unit = 10_i128.checked_pow(scale - 9)?;
                (value % unit == 0).then_some(value / unit)?
            }
        };
        i64::try_from(moved).ok()
    };
    json!(exact())
}

/// Adds the readable fields of a signal. Quotes with prices and sizes of 0 are absent.
fn signal(mut fields: Map<String, Value>) -> Map<String, Value> {
    let exact = fields.get("exact").cloned().unwrap_or_default();
    let exact_flow = fields.get("exact_flow").cloned().unwrap_or_default();
    let e9 =
        |fields: &Map<String, Value>, name: &str| fields.get(&format!("{name}_e9")).and_then(Value::as_i64);
    let text =
        |fields: &Map<String, Value>, name: &str| match exact.get(name).or_else(|| exact_flow.get(name)) {
            Some(exact) => exact.clone(),
            None => json!(e9(fields, name).map(|value| decimal_text(value.into(), E9_SCALE))),
        };
    for name in BAR_TIMES {
        let text = time(&fields, name);
        fields.insert(name.to_owned(), text);
    }
    for name in BAR_NUMBERS.into_iter().chain(FLOW_NUMBERS) {
        let text = text(&fields, name);
        fields.insert(name.to_owned(), text);
    }
    for side in ["bid", "ask"] {
        let (price, size) = (format!("{side}_price"), format!("{side}_size"));
        let is_there =
            text(&fields, &price) != json!("0") || e9(&fields, &size).is_some_and(|size| size != 0);
        for name in [price, size] {
            if fields.contains_key(&format!("{name}_e9")) {
                let text = if is_there { text(&fields, &name) } else { Value::Null };
                fields.insert(name, text);
            }
        }
    }
    fields
}

/// Adds the readable fields of a dead letter, with the ticks of its record.
fn dead_letter(mut fields: Map<String, Value>, describer: &Describer) -> Map<String, Value> {
    let ticks = fields.get("value").and_then(Value::as_str).and_then(bytes).and_then(|value| {
        let (schema, described) = describer.describe(&value).ok()?;
        let rows = rows(schema, described);
        let is_of_ticks = rows.iter().all(|row| matches!(row.schema, "Tick" | "ScaledTickBatch"));
        is_of_ticks.then(|| {
            let shown = rows.iter().take(TICKS_SHOWN_MAX);
            shown.map(|row| readable(row.schema, &row.fields, describer)).collect::<Vec<_>>()
        })
    });
    fields.insert("ticks".to_owned(), json!(ticks));
    fields
}

/// Decodes bytes written as hex digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(byte).collect::<Option<_>>())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(schema: &str, fields: Value) -> Value {
        readable(schema, &fields, &Describer::new())
    }

    fn trade() -> Value {
        json!({
            "symbol": "V:A", "kind": "TRADE", "event_time_ns": 1_723_075_200_123_456_789_i64, "receive_time_ns": 0,
            "trade_id": 7, "side": "BUY", "price_e9": 1_230_000, "size_e9": 5_000_000_000_i64,
            "bid_price_e9": 0, "bid_size_e9": 0, "ask_price_e9": 0, "ask_size_e9": 0,
        })
    }

    #[test]
    fn a_tick_has_one_shape_whatever_its_record() {
        let single = shown("Tick", trade());
        assert_eq!(single["event_time"], "2024-08-08T00:00:00.123456789Z");
        assert_eq!(single["receive_time"], Value::Null);
        assert_eq!(
            (&single["price"], &single["size"], &single["bid_price"]),
            (&json!("0.00123"), &json!("5"), &Value::Null)
        );
        assert_eq!((&single["price_e9"], &single["scaled"]), (&json!(1_230_000), &Value::Null));
        // The same tick in a batch with scales: prices in units of 1e-14, whole sizes.
        let mut of_batch = trade().as_object().expect("an object").clone();
        for (name, value) in [("price", 123_000_000_000_i64), ("size", 5), ("bid_price", 0), ("bid_size", 0)]
        {
            of_batch.remove(&format!("{name}_e9"));
            of_batch.insert(name.to_owned(), value.into());
        }
        for name in ["ask_price", "ask_size"] {
            of_batch.remove(&format!("{name}_e9"));
            of_batch.insert(name.to_owned(), 0.into());
        }
        of_batch.extend([("price_scale".to_owned(), json!(14)), ("size_scale".to_owned(), json!(0))]);
        let mut scaled = shown("warptape.ScaledTickBatch", Value::Object(of_batch));
        assert_eq!(scaled["scaled"]["price"], json!(123_000_000_000_i64), "the raw integers stay");
        assert_eq!(scaled["scaled"]["price_scale"], 14);
        scaled["scaled"] = Value::Null;
        assert_eq!(scaled, single);
        // The same tick as a late tick.
        let mut late = trade();
        late["watermark_ns"] = json!(1_000);
        late["scaled"] = Value::Null;
        let late = shown("LateTick", late);
        assert_eq!(
            (&late["price"], &late["watermark"]),
            (&single["price"], &json!("1970-01-01T00:00:00.000001000Z"))
        );
        assert!(single.as_object().expect("an object").keys().all(|name| late.get(name).is_some()));
    }

    #[test]
    fn absent_sides_are_null_and_a_price_of_0_is_one() {
        let mut quote = trade();
        quote["kind"] = json!("QUOTE");
        quote["ask_size_e9"] = json!(7_000_000_000_i64);
        let quote = shown("Tick", quote);
        let texts = ["price", "size", "bid_price", "bid_size", "ask_price", "ask_size"]
            .map(|name| quote[name].clone());
        assert_eq!(json!(texts), json!([null, null, null, null, "0", "7"]));
        let mut free = trade();
        free["price_e9"] = json!(0);
        assert_eq!(shown("Tick", free)["price"], "0");
    }

    #[test]
    fn numbers_that_1e9_does_not_hold_are_null_there_and_exact_as_text() {
        assert_eq!(e9(&json!(1), &json!(14)), Value::Null);
        assert_eq!(e9(&json!(i64::MAX), &json!(0)), Value::Null);
        assert_eq!(e9(&json!(5), &json!(0)), json!(5_000_000_000_i64));
        assert_eq!(e9(&json!(null), &json!(0)), Value::Null);
        let late = json!({
            "kind": "TRADE", "price_e9": 0, "size_e9": 0,
            "scaled": {"price_scale": 14, "size_scale": 0, "price": 1, "size": 19_000_000_000_i64},
        });
        let late = shown("LateTick", late);
        assert_eq!((&late["price"], &late["size"]), (&json!("0.00000000000001"), &json!("19000000000")));
    }

    #[test]
    fn signals_have_times_and_decimals_as_text() {
        let bar = json!({
            "kind": "BAR", "bar_start_ns": 1_723_075_200_000_000_000_i64, "bar_end_ns": 1_723_075_201_000_000_000_i64,
            "open_e9": 100_500_000_000_i64, "high_e9": 0, "low_e9": -5, "close_e9": null, "volume_e9": 1,
            "bid_price_e9": 0, "ask_price_e9": 101_000_000_000_i64, "exact": null,
        });
        let shown_bar = shown("Signal", bar.clone());
        assert_eq!(shown_bar["bar_end"], "2024-08-08T00:00:01.000000000Z");
        let texts = ["open", "high", "low", "close", "volume", "bid_price", "ask_price"]
            .map(|name| shown_bar[name].clone());
        assert_eq!(json!(texts), json!(["100.5", "0", "-0.000000005", null, "0.000000001", null, "101"]));
        assert!(
            bar.as_object().expect("an object").iter().all(|(name, value)| shown_bar[name] == *value),
            "raw fields stay"
        );
        let mut exact = bar;
        exact["exact"] = json!({"open": "0.00000812", "bid_price": "0.1"});
        exact["exact_flow"] = json!({"buy_volume": "19000000000"});
        exact["sell_volume_e9"] = json!(500_000_000);
        let exact = shown("Signal", exact);
        assert_eq!(
            (&exact["open"], &exact["bid_price"], &exact["high"]),
            (&json!("0.00000812"), &json!("0.1"), &json!("0"))
        );
        assert_eq!((&exact["buy_volume"], &exact["sell_volume"]), (&json!("19000000000"), &json!("0.5")));
    }

    #[test]
    fn what_is_no_tick_stays_as_it_is() {
        let entry = json!({"sequence": 1, "at_ns": 5});
        let expected = json!({"sequence": 1, "at_ns": 5, "at": "1970-01-01T00:00:00.000000005Z"});
        assert_eq!(shown("JournalEntry", entry), expected, "but for times");
        let letter = shown("DeadLetter", json!({"reason": "TRUNCATED", "value": "00ff"}));
        let of_letter = ["reason", "value", "ticks", "rows"].map(|name| letter[name].clone());
        assert_eq!(json!(of_letter), json!(["TRUNCATED", "00ff", null, []]));
        assert_eq!(bytes("0"), None);
        assert_eq!(bytes("0aFF"), Some(vec![10, 255]));
        assert_eq!(bytes("é"), None);
    }
}
