//! JSON of any known record, for `warptape tail` and error reports.

use apache_avro::Schema;
use apache_avro::schema::Name;
use serde_json::{Map, Value, json};

use crate::check::{PRICE_SCALE, SIZE_SCALE};
use crate::cursor::Cursor;
use crate::decoder::{SIDES, TICK_KINDS, Unpacked};
use crate::error::DecodeError;
use crate::known::{self, KnownSchema};
use crate::long_field::LongField;
use crate::tick::Scales;
use crate::wire::Wire;
use crate::{frame, hex};

/// Scales of prices and sizes in records that leave them out.
const E9_SCALES: [i64; 2] = [Scales::E9.price as i64, Scales::E9.size as i64];

/// Converts records of every published schema version to JSON, as they were written. Fields have their names in the
/// schema, numbers stay scaled (`price_e9`; [`crate::decimal_e9`] converts it), and enums are symbols. Bytes are hex
/// digits, a branch of a union is `{"Name": …}`, and a nullable field is null or its value. Records with packed columns
/// have the fields of a `TickBatch`, or of a `ScaledTickBatch` if they have other scales than nine digits.
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
        let value = match *known {
            known::PACKED_TICK_BATCH => unpacked(schema, datum)?,
            _ => value(schema, datum)?,
        };
        Ok((known.name, value))
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

/// Returns the JSON of a record with packed columns.
fn unpacked(schema: &Schema, datum: &[u8]) -> Result<Value, DecodeError> {
    let record = Unpacked::read(schema, datum)?;
    let is_e9 = record.scales.iter().all(|scales| *scales == E9_SCALES);
    let scales = |of: usize| record.scales.iter().map(|scales| scales[of]).collect::<Vec<_>>();
    let mut members = Map::from_iter([("symbols".to_owned(), json!(record.symbols))]);
    if !is_e9 {
        members.insert(PRICE_SCALE.to_owned(), json!(scales(0)));
        members.insert(SIZE_SCALE.to_owned(), json!(scales(1)));
    }
    let columns = &record.columns;
    members.insert("symbol".to_owned(), json!(columns.symbol));
    members.insert("kind".to_owned(), columns.kind.iter().map(|kind| TICK_KINDS[*kind as usize].0).collect());
    members.insert("side".to_owned(), columns.side.iter().map(|side| SIDES[*side as usize].0).collect());
    for field in LongField::ALL {
        let name = if is_e9 { field.name() } else { field.scaled_name() };
        members.insert(name.to_owned(), json!(field.column(columns)));
    }
    Ok(Value::Object(members))
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
