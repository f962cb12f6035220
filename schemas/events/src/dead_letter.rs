//! Records that could not be used.

use std::fmt;

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::hex;
use crate::known::{self, KnownSchema};
use crate::shape::{Content, Named, Shape, Shaped};
use crate::wire::Wire;

/// Why a record was rejected, in classes that a dashboard can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Wire)]
#[wire(default = "Other")]
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
    /// A price that is not a number or has another scale than its symbol's, or a trade without one.
    BadPrice,
    /// A size that is negative, not a number, or finer than 1e-9.
    BadSize,
    /// A trade with quote fields or a quote with trade fields.
    WrongFields,
    /// The checksum does not fit.
    Checksum,
    /// See the detail.
    Other,
    /// A batch of records that cannot be unpacked, or takes too much memory when it is.
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

    /// Returns its name in the schema.
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

/// A record that could not be used, with the reason and its original bytes, or as many of them as a letter holds. A
/// function of the log before the record and of the record: a rerun writes the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct DeadLetter {
    /// Source topic.
    pub topic: String,
    /// Partition of the source topic.
    pub partition: i32,
    /// Offset of the record; of the first one where the letter is of a batch.
    pub offset: i64,
    /// Why it was rejected.
    pub reason: DeadLetterReason,
    /// The same in words, with row and field where there is one.
    pub detail: String,
    /// Key of the record, if it had one: its first 4,096 bytes.
    pub key: Option<Vec<u8>>,
    /// Value of the record, unchanged: its first 524,288 bytes. Where `rows` are named, a record of those alone.
    pub value: Vec<u8>,
    /// What is not whole; `None` where key and value are.
    #[wire(default = "null")]
    pub cut: Option<DeadLetterCut>,
    /// Offset of the last record of a batch that cannot be read; key and value are empty then. Null where the letter is of one record.
    #[wire(since = 3, default = "null")]
    pub last_offset: Option<i64>,
    /// Rows of the record that were rejected, from 0; its other rows were accepted. Empty: the whole record was
    /// rejected.
    #[wire(since = 3, default = "[]")]
    pub rows: Vec<i32>,
}

/// What a letter does not hold whole.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct DeadLetterCut {
    /// Length of the whole key; 0 if there was none.
    pub key_bytes: i64,
    /// Length of the whole value.
    pub value_bytes: i64,
    /// BLAKE3 of the whole key followed by the whole value.
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
    /// Greatest number of bytes of the detail.
    pub const DETAIL_BYTES_MAX: usize = 1 << 10;

    /// Returns the first version of the schema that can hold it.
    pub fn schema(&self) -> KnownSchema {
        let is_of_whole_record = self.rows.is_empty() && self.last_offset.is_none();
        if is_of_whole_record { known::DEAD_LETTER_2 } else { known::DEAD_LETTER }
    }

    /// Returns the letter as it is written, within the default limits of topics and clients, however large the record
    /// was. The original stays in its topic for as long as the topic keeps it.
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

    /// True if this key and value are those of the letter's record, as far as the letter can tell.
    pub fn is_of(&self, key: Option<&[u8]>, value: &[u8]) -> bool {
        match &self.cut {
            None => self.key.as_deref() == key && self.value == value,
            Some(cut) => self.key.is_some() == key.is_some() && *cut == DeadLetterCut::of(key, value),
        }
    }

    /// Length of the whole value.
    pub fn value_bytes(&self) -> u64 {
        self.cut.as_ref().map_or(self.value.len() as u64, |cut| cut.value_bytes.max(0) as u64)
    }
}

/// A BLAKE3 hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterDigest(pub [u8; blake3::OUT_LEN]);

/// As lower-case hex digits.
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
