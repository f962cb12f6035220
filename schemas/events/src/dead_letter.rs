//! Records that could not be processed.

use std::fmt;

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::hex;
use crate::known::{self, KnownSchema};
use crate::shape::{Content, Named, Shape, Shaped};
use crate::wire::Wire;

/// Reason why a record was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Wire)]
#[wire(default = "Other")]
pub enum DeadLetterReason {
    /// The record begins with neither an Avro single-object header nor a schema registry header.
    NotFramed,
    /// No schema with the record's fingerprint or id is known.
    UnknownSchema,
    /// The record's schema is known, but does not fit the topic.
    WrongSchema,
    /// The bytes end in the middle of a value.
    Truncated,
    /// Bytes follow the record.
    TrailingBytes,
    /// The bytes are not valid Avro of the record's schema.
    Malformed,
    /// The batch has more than 65,536 rows or symbols, or no row.
    TooManyRows,
    /// The columns of the batch differ in length.
    LengthsDiffer,
    /// The symbol is empty, too long, not printable UTF-8, not in the dictionary, or one too many for its partition.
    BadSymbol,
    /// The kind of tick is unknown.
    BadKind,
    /// The side is unknown.
    BadSide,
    /// A time is 0, negative, the greatest 64-bit integer, or too far ahead of other times.
    BadTime,
    /// A trade has no price, or a price has a wrong scale or is the least or greatest 64-bit integer.
    BadPrice,
    /// A size is negative, the greatest 64-bit integer, finer than 1e-9, or of a wrong scale.
    BadSize,
    /// A trade has values in quote fields, or a quote in trade fields.
    WrongFields,
    /// The checksum does not fit the bytes.
    Checksum,
    /// Another reason, which `detail` describes.
    Other,
    /// A batch of records cannot be unpacked, or needs too much memory when unpacked.
    UnreadableBatch,
}

impl DeadLetterReason {
    /// Every reason, in the order of the schema.
    pub const ALL: [Self; 18] = [
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
        Self::UnreadableBatch,
    ];

    /// Returns the reason's name in the schema.
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
            Self::UnreadableBatch => "UNREADABLE_BATCH",
        }
    }
}

/// A record that could not be processed, with the reason and as many of its bytes as a letter holds. The letter is a
/// function of the record and the log before it, so a rerun writes the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct DeadLetter {
    /// Topic of the record.
    pub topic: String,
    /// Partition of the record.
    pub partition: i32,
    /// Offset of the record. If the letter is about a batch of records, it is the offset of the first one.
    pub offset: i64,
    /// Reason of the rejection.
    pub reason: DeadLetterReason,
    /// Reason in words, with row and field if there are any; up to 1,024 bytes.
    pub detail: String,
    /// Key of the record, up to its first 4,096 bytes; null if the record had none.
    pub key: Option<Vec<u8>>,
    /// Value of the record, up to its first 524,288 bytes. If `rows` is not empty: a record of these rows alone.
    pub value: Vec<u8>,
    /// Lengths and hash of the whole key and value if one of them was cut; null otherwise.
    #[wire(default = "null")]
    pub cut: Option<DeadLetterCut>,
    /// Offset of the last record of a batch that cannot be read; key and value are empty then. Null if the letter is
    /// about one record.
    #[wire(since = 3, default = "null")]
    pub last_offset: Option<i64>,
    /// Rejected rows of the record, from 0; its other rows were accepted. Empty: the whole record was rejected.
    #[wire(since = 3, default = "[]")]
    pub rows: Vec<i32>,
}

/// Lengths and hash of a key and value that are not whole in a letter.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct DeadLetterCut {
    /// Length of the whole key, in bytes; 0 if there was none.
    pub key_bytes: i64,
    /// Length of the whole value, in bytes.
    pub value_bytes: i64,
    /// BLAKE3 hash of the whole key followed by the whole value.
    pub digest: DeadLetterDigest,
}

impl DeadLetterCut {
    fn of(key: Option<&[u8]>, value: &[u8]) -> Self {
        let key = key.unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        hasher.update(key).update(value);
        let digest = DeadLetterDigest(*hasher.finalize().as_bytes());
        Self { key_bytes: key.len() as i64, value_bytes: value.len() as i64, digest }
    }
}

impl DeadLetter {
    /// Greatest number of bytes of a key in a letter.
    pub const KEY_BYTES_MAX: usize = 4 << 10;
    /// Greatest number of bytes of a value in a letter.
    pub const VALUE_BYTES_MAX: usize = 512 << 10;
    /// Greatest number of bytes of the detail in a letter.
    pub const DETAIL_BYTES_MAX: usize = 1 << 10;

    /// Returns the first version of the schema that can represent the letter.
    pub fn schema(&self) -> KnownSchema {
        let is_of_whole_record = self.rows.is_empty() && self.last_offset.is_none();
        if is_of_whole_record { known::DEAD_LETTER_2 } else { known::DEAD_LETTER }
    }

    /// Returns the letter as it is written: it fits the default limits of topics and clients, however large the record
    /// was. The original stays in its topic as long as the topic keeps it.
    pub fn bounded(mut self) -> Self {
        self.detail.truncate(self.detail.floor_char_boundary(Self::DETAIL_BYTES_MAX));
        let key_bytes = self.key.as_ref().map_or(0, Vec::len);
        if key_bytes > Self::KEY_BYTES_MAX || self.value.len() > Self::VALUE_BYTES_MAX {
            self.cut = Some(DeadLetterCut::of(self.key.as_deref(), &self.value));
            self.value.truncate(Self::VALUE_BYTES_MAX);
            if let Some(key) = &mut self.key {
                key.truncate(Self::KEY_BYTES_MAX);
            }
        }
        self
    }

    /// True if this key and value are those of the letter's record, as far as the letter shows.
    pub fn is_of(&self, key: Option<&[u8]>, value: &[u8]) -> bool {
        match &self.cut {
            None => self.key.as_deref() == key && self.value == value,
            Some(cut) => self.key.is_some() == key.is_some() && *cut == DeadLetterCut::of(key, value),
        }
    }

    /// Returns the length of the whole value, in bytes.
    pub fn value_bytes(&self) -> u64 {
        self.cut.as_ref().map_or(self.value.len() as u64, |cut| cut.value_bytes.max(0) as u64)
    }
}

/// A BLAKE3 hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterDigest(pub [u8; blake3::OUT_LEN]);

/// The hash as lower-case hex digits.
impl fmt::Display for DeadLetterDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex::text(&self.0))
    }
}

impl Shaped for DeadLetterDigest {
    const SHAPE: Shape = Shape::Named(&Named {
        name: "DeadLetterDigest",
        doc: "A BLAKE3 hash.",
        content: Content::Fixed(blake3::OUT_LEN),
    });
}

impl Wire<'_> for DeadLetterDigest {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self(*cursor.take(blake3::OUT_LEN)?.as_array().expect("so many were taken")))
    }
}
