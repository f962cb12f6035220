//! Writer schemas derived from the published ones.

use serde_json::{Value as Json, json};

use crate::known;

/// Returns a published schema with changed fields.
pub(super) fn variant(published: &str, change: impl FnOnce(&mut Vec<Json>)) -> String {
    let mut schema: Json = serde_json::from_str(published).expect("JSON");
    change(schema["fields"].as_array_mut().expect("fields"));
    schema.to_string()
}

pub(super) fn field_mut<'a>(fields: &'a mut [Json], name: &str) -> &'a mut Json {
    fields.iter_mut().find(|field| field["name"] == name).expect("a field")
}

/// Fields of simple types that the published schema does not have.
fn more_fields() -> Vec<Json> {
    vec![
        json!({"name": "extra_null", "type": "null"}),
        json!({"name": "extra_boolean", "type": "boolean"}),
        json!({"name": "extra_int", "type": "int"}),
        json!({"name": "extra_long", "type": "long"}),
        json!({"name": "extra_float", "type": "float"}),
        json!({"name": "extra_double", "type": "double"}),
        json!({"name": "extra_bytes", "type": "bytes"}),
        json!({"name": "extra_string", "type": "string"}),
        json!({"name": "extra_fixed", "type": {"type": "fixed", "name": "Five", "size": 5}}),
        json!({"name": "extra_enum", "type": {"type": "enum", "name": "Extra", "symbols": ["A", "B"]}}),
        json!({"name": "extra_time", "type": {"type": "long", "logicalType": "timestamp-millis"}}),
    ]
}

/// Fields with parts.
fn nested_fields() -> Vec<Json> {
    vec![
        json!({"name": "extra_union", "type": ["null", "string"]}),
        json!({"name": "extra_map", "type": {"type": "map", "values": "long"}}),
        json!({"name": "extra_record", "type": {"type": "record", "name": "Inner", "fields": [
            {"name": "a", "type": "int"}, {"name": "b", "type": {"type": "array", "items": "string"}}]}}),
    ]
}

pub(super) fn tick_text() -> &'static str {
    known::TICK.text
}

pub(super) fn batch_text() -> &'static str {
    known::TICK_BATCH.text
}

fn reverse_enums(fields: &mut [Json]) {
    let reversed = json!({"type": "enum", "name": "TickKind", "symbols": ["QUOTE", "AUCTION", "TRADE"]});
    let kind = &mut field_mut(fields, "kind")["type"];
    match kind.get_mut("items") {
        Some(items) => *items = reversed,
        None => *kind = reversed,
    }
}

/// Variants that get a compiled plan, with the names of the fields that the writer leaves out.
pub(super) fn planned(text: &str, array: bool) -> Vec<(String, &'static [&'static str])> {
    let of = |item: Json| if array { json!({"type": "array", "items": item}) } else { item };
    let mut variants: Vec<(String, &[&str])> = vec![
        (text.to_owned(), &[]),
        (variant(text, |fields| fields.reverse()), &[]),
        (variant(text, |fields| fields.splice(1..1, more_fields()).for_each(drop)), &[]),
        (variant(text, |fields| fields.retain(|field| field["name"] != "ask_size_e9")), &["ask_size_e9"]),
        (
            variant(text, |fields| {
                fields.retain(|field| field.get("default").is_none());
                fields.rotate_left(1);
            }),
            &[
                "receive_time_ns",
                "trade_id",
                "side",
                "price_e9",
                "size_e9",
                "bid_price_e9",
                "bid_size_e9",
                "ask_price_e9",
                "ask_size_e9",
            ],
        ),
        (variant(text, |fields| reverse_enums(fields)), &[]),
        (variant(text, |fields| field_mut(fields, "bid_size_e9")["type"] = of(json!("int"))), &[]),
        (
            variant(text, |fields| {
                let time = json!({"type": "long", "logicalType": "timestamp-nanos"});
                field_mut(fields, "event_time_ns")["type"] = of(time);
            }),
            &[],
        ),
    ];
    if array {
        variants.push((
            variant(text, |fields| {
                fields.push(json!({"name": "extra_longs", "type": {"type": "array", "items": "long"}}));
                fields
                    .insert(0, json!({"name": "extra_texts", "type": {"type": "array", "items": "string"}}));
            }),
            &[],
        ));
    }
    variants
}

/// Variants that only a full Avro reader can read.
pub(super) fn unplanned(text: &str, array: bool) -> Vec<String> {
    let of = |item: Json| if array { json!({"type": "array", "items": item}) } else { item };
    vec![
        variant(text, |fields| fields.splice(1..1, nested_fields()).for_each(drop)),
        variant(text, |fields| field_mut(fields, "price_e9")["type"] = of(json!(["null", "long"]))),
        variant(text, |fields| field_mut(fields, "event_time_ns")["type"] = of(json!(["long", "null"]))),
    ]
}
