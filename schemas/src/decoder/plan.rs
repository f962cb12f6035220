//! The plan for reading records of one writer schema, compiled once when the schema is registered.

use apache_avro::Schema;
use apache_avro::schema::RecordSchema;

#[cfg(feature = "foreign-schemas")]
use super::arrow_plan::ArrowPlan;
use super::batch_plan::BatchPlan;
use super::dictionary::Dictionary;
use super::enum_table::EnumTable;
use super::packed_plan::PackedPlan;
use super::tick_plan::TickPlan;
use crate::cursor::Cursor;
use crate::error::{DecodeError, SchemaError};
use crate::known;
use crate::symbol_table::SymbolTable;
use crate::tick::TickColumns;

/// The method that turns a datum into rows.
#[derive(Debug)]
pub(super) enum Plan {
    Tick(TickPlan),
    Batch(BatchPlan),
    Packed(Box<PackedPlan>),
    #[cfg(feature = "foreign-schemas")]
    Arrow(Box<ArrowPlan>),
}

/// The result of compiling a writer schema that resolves to the published one.
pub(super) enum Shape<P> {
    /// The schema has a plan.
    Simple(P),
    /// The schema has parts that only a full Avro reader can read.
    Other,
}

impl Plan {
    pub(super) fn compile(text: &str, schema: &Schema, fingerprint: u64) -> Result<Self, SchemaError> {
        let Schema::Record(record) = schema else {
            return Err(SchemaError::NotTicks {
                found: format!("{:?}", apache_avro::schema::SchemaKind::from(schema)),
            });
        };
        let name = record.name.name();
        if name == known::TICK.name {
            match TickPlan::compile(record, fingerprint)? {
                Shape::Simple(plan) => Ok(Self::Tick(plan)),
                Shape::Other => Self::other(text, schema, fingerprint, false),
            }
        } else if name == known::TICK_BATCH.name {
            match BatchPlan::compile(record, false)? {
                Shape::Simple(plan) => Ok(Self::Batch(plan)),
                Shape::Other => Self::other(text, schema, fingerprint, true),
            }
        } else if name == known::SCALED_TICK_BATCH.name {
            match BatchPlan::compile(record, true)? {
                Shape::Simple(plan) => Ok(Self::Batch(plan)),
                Shape::Other => Err(SchemaError::Unresolvable {
                    name: known::SCALED_TICK_BATCH.name,
                    detail: "it has nullable or nested fields; write it with the schema in schemas/avro"
                        .to_owned(),
                }),
            }
        } else if name == known::PACKED_TICK_BATCH.name {
            PackedPlan::compile(record).map(|plan| Self::Packed(Box::new(plan)))
        } else {
            Err(SchemaError::NotTicks { found: name.to_string() })
        }
    }

    /// Compiles a plan that uses arrow-avro, even if a faster one exists.
    #[cfg(feature = "foreign-schemas")]
    pub(super) fn other(
        text: &str,
        schema: &Schema,
        fingerprint: u64,
        is_batch: bool,
    ) -> Result<Self, SchemaError> {
        ArrowPlan::compile(text, schema, fingerprint, is_batch).map(|plan| Self::Arrow(Box::new(plan)))
    }

    /// Refuses schemas that only arrow-avro can read, because this build does not include it.
    #[cfg(not(feature = "foreign-schemas"))]
    fn other(_: &str, _: &Schema, _: u64, is_batch: bool) -> Result<Self, SchemaError> {
        Err(SchemaError::Unresolvable {
            name: if is_batch { known::TICK_BATCH.name } else { known::TICK.name },
            detail:
                "it has nullable or nested fields, which a build with the feature `foreign-schemas` reads; \
                     or write it with the schema in schemas/avro"
                    .to_owned(),
        })
    }

    /// Reads a datum. If `by_rows` is true, an invalid row of a batch is rejected alone.
    #[inline]
    pub(super) fn decode(
        &mut self,
        datum: &[u8],
        by_rows: bool,
        dictionary: &mut Dictionary,
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        match self {
            Self::Tick(plan) => plan.decode(datum, symbols, out),
            Self::Batch(plan) => plan.decode(datum, by_rows, dictionary, symbols, out),
            Self::Packed(plan) => plan.decode(datum, by_rows, dictionary, symbols, out),
            #[cfg(feature = "foreign-schemas")]
            Self::Arrow(plan) => plan.decode(datum, by_rows, dictionary, symbols, out),
        }
    }
}

/// How to skip a writer's field that the published schema does not have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skip {
    /// Number of bytes.
    Fixed(usize),
    /// An int, long or enum.
    Varint,
    /// Bytes or a string.
    Bytes,
}

impl Skip {
    /// Returns how to skip a field of this schema; `None` if it has parts.
    pub(super) fn of(schema: &Schema) -> Option<Self> {
        match schema {
            Schema::Null => Some(Self::Fixed(0)),
            Schema::Boolean => Some(Self::Fixed(1)),
            Schema::Float => Some(Self::Fixed(4)),
            Schema::Double => Some(Self::Fixed(8)),
            Schema::Fixed(fixed) => Some(Self::Fixed(fixed.size)),
            Schema::Int
            | Schema::Long
            | Schema::Enum(_)
            | Schema::Date
            | Schema::TimeMillis
            | Schema::TimeMicros
            | Schema::TimestampMillis
            | Schema::TimestampMicros
            | Schema::TimestampNanos
            | Schema::LocalTimestampMillis
            | Schema::LocalTimestampMicros
            | Schema::LocalTimestampNanos => Some(Self::Varint),
            Schema::Bytes | Schema::String => Some(Self::Bytes),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn pass(self, cursor: &mut Cursor<'_>) -> Result<(), DecodeError> {
        match self {
            Self::Fixed(size) => cursor.take(size).map(drop),
            Self::Varint => cursor.long().map(drop),
            Self::Bytes => cursor.bytes().map(drop),
        }
    }
}

/// The writer's type for one of the published scalar fields, or for the items of one of the columns.
pub(super) enum Scalar {
    /// A number.
    Long,
    /// A text.
    Text,
    /// An enum with these symbols.
    Enum(Vec<String>),
}

/// Returns the writer's scalar type; `Ok(None)` for a union, which only a full Avro reader can resolve.
pub(super) fn scalar(
    reader: &'static str,
    field: &str,
    schema: &Schema,
) -> Result<Option<Scalar>, SchemaError> {
    match schema {
        Schema::Long | Schema::Int => Ok(Some(Scalar::Long)),
        Schema::TimestampNanos if field.ends_with("_time_ns") => Ok(Some(Scalar::Long)),
        Schema::String | Schema::Bytes => Ok(Some(Scalar::Text)),
        Schema::Enum(symbols) => Ok(Some(Scalar::Enum(symbols.symbols.clone()))),
        Schema::Union(_) => Ok(None),
        _ => Err(mismatch(reader, field)),
    }
}

/// Returns the error for a field whose type Avro cannot resolve to the published one.
pub(super) fn mismatch(reader: &'static str, field: &str) -> SchemaError {
    let detail = format!("the type of {field} is not that of schemas/avro; write the same type");
    SchemaError::Unresolvable { name: reader, detail }
}

/// Checks that the writer has all fields without a default of the reader.
pub(super) fn require(
    reader: &'static str,
    record: &RecordSchema,
    fields: &[&str],
) -> Result<(), SchemaError> {
    for required in fields {
        if !record.fields.iter().any(|field| field.name == *required) {
            let detail = format!("the field {required} is missing; write it");
            return Err(SchemaError::Unresolvable { name: reader, detail });
        }
    }
    Ok(())
}

/// Returns the table of an enum field of the writer.
pub(super) fn enum_table<T: Copy>(symbols: &[String], known: &[(&str, T)]) -> EnumTable<T> {
    EnumTable::new(
        symbols.iter().map(|symbol| known.iter().find(|(name, _)| name == symbol).map(|(_, value)| *value)),
    )
}
