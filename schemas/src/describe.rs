//! JSON of any known record, for `warptape tail` and error reports.

use apache_avro::Schema;
use apache_avro::schema::Name;
use serde_json::{Map, Value, json};

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::known::{self, KnownSchema};
use crate::wire::Wire;
use crate::{frame, hex};

/// Converts records of every published schema version to JSON, as they were written. Fields have their names in the
/// schema, numbers stay scaled (`price_e9`; [`crate::decimal_e9`] converts it), and enums are symbols. Bytes are hex
/// digits, a branch of a union is `{"Name": …}`, and a nullable field is null or its value.
#[derive(Debug)]
pub struct Describer {
    schemas: Vec<(KnownSchema, Schema)>,
}

impl Default for Describer {
    fn default() -> Self {
        Self::new()
    }
}

impl Describer {
    /// Parses the published schemas. Reuse it for many records.
    pub fn new() -> Self {
        // The texts are part of the program, and a test parses each of them.
        let parse =
            |known: KnownSchema| (known, Schema::parse_str(known.text).expect("a published schema parses"));
        Self { schemas: known::all().map(parse).collect() }
    }

    /// Returns the name of the record's schema, and the record. Values are not checked: a negative price of a tick is
    /// shown as it is.
    pub fn describe(&self, payload: &[u8]) -> Result<(&'static str, Value), DecodeError> {
        let (fingerprint, datum) = frame::split(payload)?;
        let found = self.schemas.iter().find(|(known, _)| known.fingerprint == fingerprint);
        let (known, schema) = found.ok_or(DecodeError::UnknownSchema { fingerprint })?;
        Ok((known.name, value(schema, datum)?))
    }
}

/// [`Describer::describe`] for one record. Each call parses every schema.
pub fn describe(payload: &[u8]) -> Result<(&'static str, Value), DecodeError> {
    Describer::new().describe(payload)
}

/// Returns the JSON of a datum of a published schema, or of another schema with the same types of values.
pub(crate) fn value(schema: &Schema, datum: &[u8]) -> Result<Value, DecodeError> {
    let mut cursor = Cursor::new(datum);
    let value = read(schema, schema, &mut cursor)?;
    cursor.finish()?;
    Ok(value)
}

/// Returns the record or enum of this name that a schema defines.
fn defined<'a>(schema: &'a Schema, name: &Name) -> Option<&'a Schema> {
    if schema.name() == Some(name) && !matches!(schema, Schema::Ref { .. }) {
        return Some(schema);
    }
    match schema {
        Schema::Array(array) => defined(&array.items, name),
        Schema::Map(map) => defined(&map.types, name),
        Schema::Union(union) => union.variants().iter().find_map(|branch| defined(branch, name)),
        Schema::Record(record) => record.fields.iter().find_map(|field| defined(&field.schema, name)),
        _ => None,
    }
}

/// Returns the definition that a part of a schema refers to, or the part itself.
pub(crate) fn definition<'a>(whole: &'a Schema, part: &'a Schema) -> &'a Schema {
    match part {
        Schema::Ref { name } => defined(whole, name).expect("a published schema defines its names"),
        _ => part,
    }
}

/// Reads a value of a schema that is part of `whole`.
fn read(whole: &Schema, schema: &Schema, cursor: &mut Cursor<'_>) -> Result<Value, DecodeError> {
    Ok(match schema {
        Schema::Ref { .. } => read(whole, definition(whole, schema), cursor)?,
        Schema::Null => Value::Null,
        Schema::Boolean => json!(bool::get(cursor)?),
        Schema::Int => json!(cursor.int()?),
        Schema::Long => json!(cursor.long()?),
        Schema::Double => {
            let value = cursor.double()?;
            // JSON has neither infinities nor NaN.
            if value.is_finite() { json!(value) } else { json!(value.to_string()) }
        }
        Schema::String => json!(cursor.string()?),
        Schema::Bytes => json!(hex::text(cursor.bytes()?)),
        Schema::Fixed(fixed) => json!(hex::text(cursor.take(fixed.size)?)),
        Schema::Enum(enumeration) => match index(cursor)?.and_then(|index| enumeration.symbols.get(index)) {
            Some(symbol) => json!(symbol),
            None => return Err(cursor.malformed("no such symbol of an enum")),
        },
        Schema::Array(array) => {
            let mut items = Vec::new();
            loop {
                let count = cursor.block()?;
                if count == 0 {
                    break Value::Array(items);
                }
                for _ in 0..count {
                    items.push(read(whole, &array.items, cursor)?);
                }
            }
        }
        Schema::Map(map) => {
            let mut members = Map::new();
            loop {
                let count = cursor.block()?;
                if count == 0 {
                    break Value::Object(members);
                }
                for _ in 0..count {
                    let name = cursor.string()?.to_owned();
                    members.insert(name, read(whole, &map.types, cursor)?);
                }
            }
        }
        Schema::Union(union) => {
            let branches = union.variants();
            let Some(branch) = index(cursor)?.and_then(|index| branches.get(index)) else {
                return Err(cursor.malformed("no such branch of a union"));
            };
            let value = read(whole, branch, cursor)?;
            match branch {
                Schema::Record(record) if !branches.contains(&Schema::Null) => {
                    Value::Object(Map::from_iter([(record.name.name().to_string(), value)]))
                }
                _ => value,
            }
        }
        Schema::Record(record) => {
            let mut members = Map::new();
            for field in &record.fields {
                members.insert(field.name.clone(), read(whole, &field.schema, cursor)?);
            }
            Value::Object(members)
        }
        _ => return Err(cursor.malformed("a type that no published schema has")),
    })
}

/// Reads the index of an enum or union; `None` if it is negative.
fn index(cursor: &mut Cursor<'_>) -> Result<Option<usize>, DecodeError> {
    cursor.long().map(|index| usize::try_from(index).ok())
}
