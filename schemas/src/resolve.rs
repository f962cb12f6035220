//! Data written with an older version of a schema, brought to the current one by Avro's rules.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;

use crate::describe;
use crate::error::DecodeError;
use crate::known::{self, KnownSchema};

/// All published schemas, by fingerprint.
static PUBLISHED: LazyLock<BTreeMap<u64, Schema>> =
    LazyLock::new(|| known::all().map(|schema| (schema.fingerprint, parsed(schema))).collect());

fn parsed(schema: KnownSchema) -> Schema {
    // The texts are compiled in, and a test parses each of them.
    Schema::parse_str(schema.text).expect("a published schema parses")
}

/// Rewrites a datum of `writer` as a datum of `reader`.
pub(crate) fn resolve(
    writer: KnownSchema,
    reader: KnownSchema,
    datum: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    rewrite(&PUBLISHED[&writer.fingerprint], &PUBLISHED[&reader.fingerprint], reader.name, datum)
}

fn rewrite(
    writer: &Schema,
    reader: &Schema,
    name: &'static str,
    datum: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let unresolvable =
        |error: apache_avro::Error| DecodeError::Unresolvable { name, detail: bounded(error.to_string()) };
    // apache-avro takes an end that comes too early for null in places; ours does not.
    describe::value(writer, datum)?;
    GenericDatumReader::builder(writer)
        .build()
        .and_then(|avro| avro.read_value(&mut &datum[..]))
        .and_then(|value| Resolution { writer, reader }.resolved(value, writer, reader))
        .and_then(|value| GenericDatumWriter::builder(reader).build()?.write_value_to_vec(value))
        .map_err(unresolvable)
}

/// A library's words, which may show the whole datum, as far as a record repeats them.
fn bounded(mut words: String) -> String {
    const BYTES_MAX: usize = 1 << 10;
    words.truncate(words.floor_char_boundary(BYTES_MAX));
    words
}

/// Two versions of a schema, whose definitions a part of them may refer to by name.
struct Resolution<'a> {
    writer: &'a Schema,
    reader: &'a Schema,
}

impl Resolution<'_> {
    /// A value by the rules of Avro's resolution. Branches of a union are found by their names: apache-avro alone takes the
    /// first record whose fields are there.
    fn resolved(&self, value: Value, writer: &Schema, reader: &Schema) -> Result<Value, apache_avro::Error> {
        let (writer, reader) =
            (describe::definition(self.writer, writer), describe::definition(self.reader, reader));
        Ok(match (value, writer, reader) {
            (Value::Union(branch, inner), Schema::Union(writers), Schema::Union(readers)) => {
                let writer = &writers.variants()[branch as usize];
                match branch_of(writer, readers.variants()) {
                    Some((branch, reader)) => {
                        Value::Union(branch, Box::new(self.resolved(*inner, writer, reader)?))
                    }
                    None => inner.resolve(reader)?,
                }
            }
            // What was always there may be left out since.
            (value @ Value::Record(_), writer, Schema::Union(readers)) => {
                match branch_of(writer, readers.variants()) {
                    Some((branch, reader)) => {
                        Value::Union(branch, Box::new(self.resolved(value, writer, reader)?))
                    }
                    None => value.resolve(reader)?,
                }
            }
            (Value::Record(members), Schema::Record(writer), Schema::Record(reader)) => {
                let mut members: BTreeMap<String, Value> = members.into_iter().collect();
                let mut fields = Vec::new();
                for field in &reader.fields {
                    let value = match (members.remove(&field.name), &field.default) {
                        (Some(value), _) => {
                            let written = writer.fields.iter().find(|other| other.name == field.name);
                            let written = written.expect("a member that was read has a field");
                            self.resolved(value, &written.schema, &field.schema)?
                        }
                        (None, Some(default)) => Value::try_from(default.clone())?.resolve(&field.schema)?,
                        (None, None) => Value::Null.resolve(&field.schema)?,
                    };
                    fields.push((field.name.clone(), value));
                }
                Value::Record(fields)
            }
            (Value::Array(items), Schema::Array(writer), Schema::Array(reader)) => {
                let items = items.into_iter().map(|item| self.resolved(item, &writer.items, &reader.items));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            (other, _, reader) => other.resolve(reader)?,
        })
    }
}

/// The branch that has what a schema describes, with its number.
fn branch_of<'a>(writer: &Schema, readers: &'a [Schema]) -> Option<(u32, &'a Schema)> {
    let same = |reader: &Schema| match (writer.name(), reader.name()) {
        (Some(writer), Some(reader)) => writer == reader,
        _ => writer == reader,
    };
    (0..).zip(readers).find(|(_, reader)| same(reader))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{Signal, SignalKind};
    use crate::{frame, known};

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
        }
    }

    /// The signal schema as it would have been before its last indicator and its last kind came.
    fn older() -> Schema {
        let mut json: serde_json::Value = serde_json::from_str(known::SIGNAL_1.text).expect("JSON");
        json["fields"].as_array_mut().expect("fields").pop();
        json["fields"][1]["type"]["symbols"].as_array_mut().expect("symbols").pop();
        Schema::parse_str(&json.to_string()).expect("a schema")
    }

    fn from_older(datum: &[u8]) -> Result<Vec<u8>, DecodeError> {
        rewrite(&older(), &parsed(known::SIGNAL_1), "Signal", datum)
    }

    /// A record that is defined once, as a field, and referred to in a union: and one more field of it later.
    #[test]
    fn definitions_are_found_by_their_names() {
        let schema = |more: &str| {
            let text = r#"{"type": "record", "name": "Pair", "fields": [
                {"name": "first", "type": {"type": "record", "name": "One", "fields": [
                    {"name": "number", "type": "long"}MORE]}},
                {"name": "second", "type": ["null", "One"]}]}"#;
            Schema::parse_str(&text.replace("MORE", more)).expect("a schema")
        };
        let older = schema("");
        let newer = schema(r#", {"name": "other", "type": "long", "default": 7}"#);
        // 1, then branch 1 with 2; numbers are zigzag.
        assert_eq!(rewrite(&older, &newer, "Pair", &[2, 2, 4]), Ok(vec![2, 14, 2, 4, 14]));
    }

    #[test]
    fn fields_that_came_later_get_their_defaults() {
        let mut payload = Vec::new();
        crate::encode_signal(&signal(), &mut payload);
        let datum = &payload[frame::HEADER_SIZE..];
        // The last field is null, one byte: the older writer did not have it.
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
}
