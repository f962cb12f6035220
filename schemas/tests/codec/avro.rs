//! Our bytes, read by another Avro library with the published schema.

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use warptape_schemas::known::{self, KnownSchema};
use warptape_schemas::{HEADER_SIZE, fingerprint_of};

/// A published schema, parsed by apache-avro.
pub struct Published {
    schema: Schema,
    fingerprint: u64,
}

impl Published {
    pub fn new(known: KnownSchema) -> Self {
        Self { schema: Schema::parse_str(known.text).expect(known.file), fingerprint: known.fingerprint }
    }

    /// Returns the version of the schema with which a record was written.
    pub fn of(payload: &[u8]) -> Self {
        let fingerprint = fingerprint_of(payload).expect("a header");
        Self::new(known::by_fingerprint(fingerprint).expect("a published schema"))
    }

    /// Reads the only record in `payload`, which has a header.
    pub fn read(&self, payload: &[u8]) -> Record {
        let (header, mut datum) = payload.split_at(HEADER_SIZE);
        assert_eq!(header[..2], [0xc3, 0x01]);
        assert_eq!(header[2..], self.fingerprint.to_le_bytes());
        let reader = GenericDatumReader::builder(&self.schema).build().expect("a reader");
        let value = reader.read_value(&mut datum).expect("a datum of the schema");
        assert!(datum.is_empty(), "{} bytes behind the datum", datum.len());
        Record::of(value)
    }
}

/// The fields of a record by name.
pub struct Record(Vec<(String, Value)>);

impl Record {
    pub fn of(value: Value) -> Self {
        match value {
            Value::Record(fields) => Self(fields),
            Value::Union(_, inner) => Self::of(*inner),
            other => panic!("no record: {other:?}"),
        }
    }

    pub fn get(&self, field: &str) -> &Value {
        &self.0.iter().find(|(name, _)| name == field).unwrap_or_else(|| panic!("no field {field}")).1
    }

    pub fn long(&self, field: &str) -> i64 {
        long_of(self.get(field))
    }

    pub fn text(&self, field: &str) -> &str {
        text_of(self.get(field))
    }

    /// Returns a nullable field.
    pub fn optional(&self, field: &str) -> Option<&Value> {
        match self.get(field) {
            Value::Union(0, _) => None,
            Value::Union(_, value) => Some(value),
            other => panic!("{field} is not nullable: {other:?}"),
        }
    }

    pub fn items(&self, field: &str) -> &[Value] {
        match self.get(field) {
            Value::Array(items) => items,
            other => panic!("{field} is no array: {other:?}"),
        }
    }

    pub fn bytes(&self, field: &str) -> &[u8] {
        match self.get(field) {
            Value::Bytes(bytes) | Value::Fixed(_, bytes) => bytes,
            other => panic!("{field} is not bytes: {other:?}"),
        }
    }

    /// Returns the index of a union field's branch.
    pub fn branch(&self, field: &str) -> u32 {
        match self.get(field) {
            Value::Union(branch, _) => *branch,
            other => panic!("{field} is no union: {other:?}"),
        }
    }
}

pub fn long_of(value: &Value) -> i64 {
    match value {
        Value::Long(value) => *value,
        Value::Int(value) => i64::from(*value),
        other => panic!("no number: {other:?}"),
    }
}

pub fn text_of(value: &Value) -> &str {
    match value {
        Value::String(text) | Value::Enum(_, text) => text,
        other => panic!("no text: {other:?}"),
    }
}
