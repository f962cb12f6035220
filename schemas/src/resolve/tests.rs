use apache_avro::reader::datum::GenericDatumReader;

use super::*;
use crate::frame;
use crate::signal::{Signal, SignalKind};

/// The same rules, applied to values of apache-avro.
mod by_values {
    use super::*;

    pub fn rewrite(writer: &Schema, reader: &Schema, datum: &[u8]) -> Vec<u8> {
        let avro = GenericDatumReader::builder(writer).build().expect("a schema");
        let value = avro.read_value(&mut &datum[..]).expect("a datum");
        let value = ByValues { writer, reader }.resolved(value, writer, reader);
        encode(reader, value)
    }

    pub fn encode(schema: &Schema, value: Value) -> Vec<u8> {
        let avro = GenericDatumWriter::builder(schema).build().expect("a schema");
        avro.write_value_to_vec(value).expect("a value of the schema")
    }

    struct ByValues<'a> {
        writer: &'a Schema,
        reader: &'a Schema,
    }

    impl ByValues<'_> {
        /// Branches of a union are matched by name here; apache-avro itself takes the first record whose fields exist.
        fn resolved(&self, value: Value, writer: &Schema, reader: &Schema) -> Value {
            let writer = describe::definition(self.writer, writer);
            let reader = describe::definition(self.reader, reader);
            match (value, writer, reader) {
                (Value::Union(branch, inner), Schema::Union(writers), Schema::Union(readers)) => {
                    let writer = &writers.variants()[branch as usize];
                    self.branch(*inner, writer, readers.variants())
                }
                (value, writer, Schema::Union(readers)) => self.branch(value, writer, readers.variants()),
                (Value::Record(members), Schema::Record(writer), Schema::Record(reader)) => {
                    let mut members: BTreeMap<String, Value> = members.into_iter().collect();
                    let field = |field: &RecordField| {
                        let value = match members.remove(&field.name) {
                            Some(value) => {
                                let written = writer.fields.iter().find(|other| other.name == field.name);
                                self.resolved(value, &written.expect("it was read").schema, &field.schema)
                            }
                            None => {
                                let default = field.default.clone().expect("a new field has a default");
                                let default = Value::try_from(default).expect("a default");
                                default.resolve(&field.schema).expect("a default of the schema")
                            }
                        };
                        (field.name.clone(), value)
                    };
                    Value::Record(reader.fields.iter().map(field).collect())
                }
                (Value::Array(items), Schema::Array(writer), Schema::Array(reader)) => {
                    let items = items.into_iter();
                    Value::Array(
                        items.map(|item| self.resolved(item, &writer.items, &reader.items)).collect(),
                    )
                }
                (Value::Map(values), Schema::Map(writer), Schema::Map(reader)) => {
                    let value = |(key, value)| (key, self.resolved(value, &writer.types, &reader.types));
                    Value::Map(values.into_iter().map(value).collect())
                }
                (Value::String(digits), _, Schema::Fixed(fixed)) => {
                    let bytes = hex::bytes(digits.as_bytes()).expect("hex digits");
                    assert_eq!(bytes.len(), fixed.size);
                    Value::Fixed(fixed.size, bytes)
                }
                (value, _, reader) => value.resolve(reader).expect("a value of both schemas"),
            }
        }

        fn branch(&self, value: Value, writer: &Schema, readers: &[Schema]) -> Value {
            let same = |reader: &&Schema| match (writer.name(), reader.name()) {
                (Some(writer), Some(reader)) => writer == reader,
                _ => writer == *reader,
            };
            let (index, reader) =
                (0..).zip(readers).find(|(_, reader)| same(reader)).expect("a branch of this name");
            Value::Union(index, Box::new(self.resolved(value, writer, reader)))
        }
    }
}

/// Generator of random data of a schema, from a seed.
struct Draw<'a> {
    whole: &'a Schema,
    state: u64,
}

impl Draw<'_> {
    fn below(&mut self, limit: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % limit
    }

    fn value(&mut self, schema: &Schema) -> Value {
        match describe::definition(self.whole, schema) {
            Schema::Null => Value::Null,
            Schema::Boolean => Value::Boolean(self.below(2) == 1),
            Schema::Int => Value::Int(self.below(1 << 20) as i32 - (1 << 19)),
            Schema::Long => Value::Long((self.below(1 << 30) as i64 - (1 << 29)) << self.below(30)),
            Schema::Double => Value::Double(self.below(1 << 20) as f64 / 7.0),
            Schema::String => Value::String("ä".repeat(self.below(50))),
            Schema::Bytes => Value::Bytes(vec![7; self.below(200)]),
            Schema::Fixed(fixed) => Value::Fixed(fixed.size, vec![self.below(256) as u8; fixed.size]),
            Schema::Enum(enumeration) => {
                let index = self.below(enumeration.symbols.len());
                Value::Enum(index as u32, enumeration.symbols[index].clone())
            }
            Schema::Array(array) => {
                let count = self.below(4);
                Value::Array((0..count).map(|_| self.value(&array.items)).collect())
            }
            Schema::Map(map) => {
                // Two or more keys would be in no fixed order.
                let keys = (0..self.below(2)).map(|number| format!("key {number}"));
                Value::Map(keys.map(|key| (key, self.value(&map.types))).collect())
            }
            Schema::Union(union) => {
                let index = self.below(union.variants().len());
                Value::Union(index as u32, Box::new(self.value(&union.variants()[index])))
            }
            Schema::Record(record) => {
                let mut value = |field: &RecordField| match (&field.schema, field.name.as_str()) {
                    // Digits that became bytes.
                    (Schema::String, "state_hash") => Value::String("0f".repeat(8)),
                    (Schema::String, "hash") if record.name.name() == "JournalEntry" => {
                        Value::String("a1".repeat(32))
                    }
                    (schema, _) => self.value(schema),
                };
                let fields = record.fields.iter();
                Value::Record(fields.map(|field| (field.name.clone(), value(field))).collect())
            }
            other => panic!("no published schema has {other:?}"),
        }
    }
}

/// Random data of each older version, with all branches of all unions, give the same results as values do.
#[test]
fn every_older_version_is_resolved_as_by_values() {
    for known in known::OLD {
        let writer = parsed(known);
        let reader =
            parsed(*known::CURRENT.iter().find(|reader| reader.name == known.name).expect("current"));
        let mut draw = Draw { whole: &writer, state: known.fingerprint };
        for _ in 0..400 {
            let value = draw.value(&writer);
            let datum = by_values::encode(&writer, value);
            let (found, expected) = (resolve(known, &datum), by_values::rewrite(&writer, &reader, &datum));
            assert_eq!(found.as_deref(), Ok(&expected[..]), "{} version {}", known.name, known.version);
        }
    }
}

/// Data with changed, missing or added bytes give an error, or the same result as values do.
#[test]
fn damaged_data_of_older_versions_are_resolved_as_by_values_or_refused() {
    let (mut accepted, mut refused) = (0, 0);
    for known in known::OLD {
        let writer = parsed(known);
        let reader =
            parsed(*known::CURRENT.iter().find(|reader| reader.name == known.name).expect("current"));
        let mut draw = Draw { whole: &writer, state: known.fingerprint };
        for _ in 0..300 {
            let value = draw.value(&writer);
            let mut datum = by_values::encode(&writer, value);
            let at = draw.below(datum.len());
            match draw.below(3) {
                0 => datum[at] ^= 1 << draw.below(8),
                1 => _ = datum.remove(at),
                _ => datum.insert(at, [0, 1, 2, 0x7f, 0x80, 0xff][draw.below(6)]),
            }
            // `resolve` does not read equal parts, but the decoder does.
            let Ok(found) = resolve(known, &datum) else {
                refused += 1;
                continue;
            };
            if describe::value(&writer, &datum).is_ok() {
                // The bytes may differ, because a number may have redundant bytes.
                let [found, expected] = [found, by_values::rewrite(&writer, &reader, &datum).into()].map(
                    |datum: Cow<'_, [u8]>| {
                        describe::value(&reader, &datum).expect("a datum of the current version")
                    },
                );
                assert_eq!(found, expected, "{} version {}", known.name, known.version);
                accepted += 1;
            }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
}

/// Returns the journal's schema as if the next version had added a field to one input.
fn journal_before() -> Schema {
    let mut json: serde_json::Value = serde_json::from_str(known::JOURNAL_ENTRY.text).expect("JSON");
    let inputs = json["fields"].as_array_mut().expect("fields").iter_mut();
    let inputs =
        inputs.filter(|field| field["name"] == "input").flat_map(|field| field["type"].as_array_mut());
    let mut started = inputs.flatten().filter(|input| input["name"] == "Started");
    let fields = started.next().expect("an input")["fields"].as_array_mut().expect("fields");
    assert_eq!(fields.pop().expect("the last field")["name"], "rules");
    Schema::parse_str(&json.to_string()).expect("a schema")
}

/// Entries of the previous version are not copied, except for the input that gained a field.
#[test]
fn what_is_alike_is_not_copied() {
    let (writer, current) = (journal_before(), parsed(known::JOURNAL_ENTRY));
    let part = Part::new(&writer, &current).expect("versions");
    let mut draw = Draw { whole: &writer, state: 1 };
    let mut copied = 0;
    for _ in 0..400 {
        let value = draw.value(&writer);
        let datum = by_values::encode(&writer, value);
        let is_started = by_values::rewrite(&writer, &current, &datum) != datum;
        let found = part.rewrite(&datum).expect("a datum");
        assert_eq!(matches!(found, Cow::Owned(_)), is_started);
        copied += usize::from(is_started);
    }
    assert!((1..100).contains(&copied), "{copied} of 400 were changed");
}

fn signal() -> Signal<'static> {
    Signal {
        symbol: "A:B".into(),
        kind: SignalKind::RsiOversold,
        bar_spec: "1s".into(),
        bar_start_ns: 1,
        bar_end_ns: 2,
        source_offset: 3,
        source_index: 4,
        value: 0.5,
        threshold: -1.5,
        bar: None,
        name: None,
    }
}

/// Resolves a datum of a signal schema without its last indicator and its last kind.
fn from_older(datum: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut json: serde_json::Value = serde_json::from_str(known::SIGNAL_1.text).expect("JSON");
    json["fields"].as_array_mut().expect("fields").pop();
    json["fields"][1]["type"]["symbols"].as_array_mut().expect("symbols").pop();
    let older = Schema::parse_str(&json.to_string()).expect("a schema");
    let part = Part::new(&older, &parsed(known::SIGNAL_1)).expect("versions");
    part.rewrite(datum).map(Cow::into_owned)
}

/// A record is defined once, as a field, and a union refers to it; later the record gains a field.
#[test]
fn definitions_are_found_by_their_names() {
    let schema = |more: &str| {
        let text = r#"{"type": "record", "name": "Pair", "fields": [
            {"name": "first", "type": {"type": "record", "name": "One", "fields": [
                {"name": "number", "type": "long"}MORE]}},
            {"name": "second", "type": ["null", "One"]}]}"#;
        Schema::parse_str(&text.replace("MORE", more)).expect("a schema")
    };
    let part = Part::new(&schema(""), &schema(r#", {"name": "other", "type": "long", "default": 7}"#));
    // The values are 1, then branch 1 with 2; numbers are zigzag-encoded.
    assert_eq!(part.expect("versions").rewrite(&[2, 2, 4]).as_deref(), Ok(&[2, 14, 2, 4, 14][..]));
}

/// Blocks may state their size in bytes, which readers ignore.
#[test]
fn items_of_sized_blocks_get_what_came_later() {
    let schema = |more: &str| {
        let text = r#"{"type": "array", "items": {"type": "record", "name": "One", "fields": [{"name": "number", "type": "long"}MORE]}}"#;
        Schema::parse_str(&text.replace("MORE", more)).expect("a schema")
    };
    let part = Part::new(&schema(""), &schema(r#", {"name": "other", "type": "long", "default": 7}"#));
    // The array has a block of two items and two bytes, then a block of one item: 1, 2 and 3.
    let found = part.expect("versions").rewrite(&[3, 4, 2, 4, 2, 6, 0]).map(Cow::into_owned);
    assert_eq!(found, Ok(vec![3, 4, 2, 14, 4, 14, 2, 6, 14, 0]));
}

#[test]
fn hex_digits_become_bytes() {
    let schema = |hash: &str| {
        let text = r#"{"type": "record", "name": "One", "fields": [
            {"name": "hash", "type": HASH}, {"name": "number", "type": "long"}]}"#;
        Schema::parse_str(&text.replace("HASH", hash)).expect("a schema")
    };
    let part = Part::new(&schema(r#""string""#), &schema(r#"{"type": "fixed", "name": "Two", "size": 2}"#));
    let part = part.expect("versions");
    let rewritten = |text: &[u8]| part.rewrite(&[text, &[14]].concat()).map(Cow::into_owned);
    assert_eq!(rewritten(b"\x080fa1"), Ok(vec![0x0f, 0xa1, 14]));
    for refused in [&b"\x080fA1"[..], b"\x060fa", b"\x0a0fa12", b"\x0c0fa123", b"\x00"] {
        assert!(matches!(rewritten(refused), Err(DecodeError::Malformed { .. })), "{refused:?}");
    }
}

#[test]
fn a_schema_that_takes_something_away_is_no_later_version() {
    let schema = |fields: &str| {
        let text = r#"{"type": "record", "name": "One", "fields": [FIELDS]}"#;
        Schema::parse_str(&text.replace("FIELDS", fields)).expect("a schema")
    };
    let number = r#"{"name": "number", "type": "long"}"#;
    let mismatch = |reader| Part::new(&schema(number), &schema(reader)).err();
    assert_eq!(mismatch(""), Some("the field number went or moved".to_owned()));
    assert_eq!(
        mismatch(r#"{"name": "number", "type": "string"}"#),
        Some("Long cannot become String".to_owned())
    );
    let without_default = format!(r#"{number}, {{"name": "other", "type": "long"}}"#);
    assert_eq!(mismatch(&without_default), Some("other has no default".to_owned()));
}

#[test]
fn fields_that_came_later_get_their_defaults() {
    let mut payload = Vec::new();
    crate::encode_signal(&signal(), &mut payload);
    let datum = &payload[frame::HEADER_SIZE..];
    // The last field is null and takes one byte; the older writer does not have it.
    let older_datum = &datum[..datum.len() - 1];
    assert_eq!(from_older(older_datum), Ok(datum.to_vec()));
}

#[test]
fn damage_is_an_error_value() {
    let mut payload = Vec::new();
    crate::encode_signal(&signal(), &mut payload);
    let datum = &payload[frame::HEADER_SIZE..];
    assert_eq!(from_older(datum), Err(DecodeError::TrailingBytes { count: 1 }));
    for cut in 0..datum.len() - 1 {
        let error = from_older(&datum[..cut]);
        assert_eq!(error, Err(DecodeError::Truncated { length: cut }));
    }
}
