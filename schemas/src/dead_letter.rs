//! Records that could not be used.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::wire::{Wire, put_bytes, wire_enum};

/// Why a record was rejected, in classes that a dashboard can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeadLetterReason {
    /// It starts with neither of the headers.
    NotFramed,
    /// No schema with its fingerprint or id is known.
    UnknownSchema,
    /// A known record that does not belong on the topic.
    WrongSchema,
    /// The bytes end too early.
    Truncated,
    /// Bytes follow the record.
    TrailingBytes,
    /// Not valid Avro for its schema.
    Malformed,
    /// More rows or symbols than a batch may have, or no row.
    TooManyRows,
    /// The columns of a batch differ in length.
    LengthsDiffer,
    /// Symbol empty, too long, not printable or not in the dictionary.
    BadSymbol,
    /// Unknown kind of tick.
    BadKind,
    /// Unknown side.
    BadSide,
    /// A time that is 0, negative, not a number, or far ahead of all before.
    BadTime,
    /// A price that is negative or not a number, or a trade without one.
    BadPrice,
    /// A size that is negative or not a number.
    BadSize,
    /// A trade with quote fields or a quote with trade fields.
    WrongFields,
    /// The checksum does not fit.
    Checksum,
    /// See the detail.
    Other,
}

impl DeadLetterReason {
    /// Every reason, in the order of the schema.
    pub const ALL: [Self; 17] = [
        Self::NotFramed,
        Self::UnknownSchema,
        Self::WrongSchema,
        Self::Truncated,
        Self::TrailingBytes,
        Self::Malformed,
        Self::TooManyRows,
        Self::LengthsDiffer,
        Self::BadSymbol,
        Self::BadKind,
        Self::BadSide,
        Self::BadTime,
        Self::BadPrice,
        Self::BadSize,
        Self::WrongFields,
        Self::Checksum,
        Self::Other,
    ];

    /// Its name in the schema.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFramed => "NOT_FRAMED",
            Self::UnknownSchema => "UNKNOWN_SCHEMA",
            Self::WrongSchema => "WRONG_SCHEMA",
            Self::Truncated => "TRUNCATED",
            Self::TrailingBytes => "TRAILING_BYTES",
            Self::Malformed => "MALFORMED",
            Self::TooManyRows => "TOO_MANY_ROWS",
            Self::LengthsDiffer => "LENGTHS_DIFFER",
            Self::BadSymbol => "BAD_SYMBOL",
            Self::BadKind => "BAD_KIND",
            Self::BadSide => "BAD_SIDE",
            Self::BadTime => "BAD_TIME",
            Self::BadPrice => "BAD_PRICE",
            Self::BadSize => "BAD_SIZE",
            Self::WrongFields => "WRONG_FIELDS",
            Self::Checksum => "CHECKSUM",
            Self::Other => "OTHER",
        }
    }
}

/// A rejected record with the reason and its original bytes: a function of the source record alone, so that a rerun
/// writes the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Source topic.
    pub topic: String,
    /// Partition of the source topic.
    pub partition: i32,
    /// Offset of the record.
    pub offset: i64,
    /// Why it was rejected: [`DecodeError::reason`].
    pub reason: DeadLetterReason,
    /// The same in words: the error's message.
    pub detail: String,
    /// Key of the record, if it had one.
    pub key: Option<Vec<u8>>,
    /// Value of the record, unchanged.
    pub value: Vec<u8>,
}

wire_enum!(DeadLetterReason {
    0 => NotFramed,
    1 => UnknownSchema,
    2 => WrongSchema,
    3 => Truncated,
    4 => TrailingBytes,
    5 => Malformed,
    6 => TooManyRows,
    7 => LengthsDiffer,
    8 => BadSymbol,
    9 => BadKind,
    10 => BadSide,
    11 => BadTime,
    12 => BadPrice,
    13 => BadSize,
    14 => WrongFields,
    15 => Checksum,
    16 => Other,
});

impl Wire for DeadLetter {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { topic, partition, offset, reason, detail, key, value } = self;
        topic.put(out);
        partition.put(out);
        offset.put(out);
        reason.put(out);
        detail.put(out);
        match key {
            None => out.push(0),
            Some(key) => {
                out.push(2);
                put_bytes(key, out);
            }
        }
        put_bytes(value, out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            topic: Wire::get(cursor)?,
            partition: Wire::get(cursor)?,
            offset: Wire::get(cursor)?,
            reason: Wire::get(cursor)?,
            detail: Wire::get(cursor)?,
            key: match cursor.long()? {
                0 => None,
                1 => Some(cursor.bytes()?.to_vec()),
                _ => return Err(cursor.malformed("no such branch of a nullable field")),
            },
            value: cursor.bytes()?.to_vec(),
        })
    }
}
