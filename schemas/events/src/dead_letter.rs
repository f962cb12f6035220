//! Records that could not be used.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::wire::{Wire, put_bytes};

/// Why a record was rejected, in classes that a dashboard can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Wire)]
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

/// A rejected record with the reason and its original bytes, or as many as a letter holds: a function of the source record alone, so that a rerun
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
    /// Key of the record, if it had one: its first [`DeadLetter::KEY_BYTES_MAX`].
    pub key: Option<Vec<u8>>,
    /// Value of the record, unchanged: its first [`DeadLetter::VALUE_BYTES_MAX`].
    pub value: Vec<u8>,
    /// What is not whole; `None` where key and value are.
    pub cut: Option<DeadLetterCut>,
}

/// What a letter does not hold whole. The original is in its topic as long as that keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterCut {
    /// Length of the whole key; 0 if there was none.
    pub key_bytes: i64,
    /// Length of the whole value.
    pub value_bytes: i64,
    /// BLAKE3 of the whole key followed by the whole value.
    pub digest: [u8; blake3::OUT_LEN],
}

impl DeadLetterCut {
    fn of(key: Option<&[u8]>, value: &[u8]) -> Self {
        let key = key.unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        hasher.update(key).update(value);
        let digest = *hasher.finalize().as_bytes();
        Self { key_bytes: key.len() as i64, value_bytes: value.len() as i64, digest }
    }
}

impl DeadLetter {
    /// Most bytes of a key that a letter holds.
    pub const KEY_BYTES_MAX: usize = 4 << 10;
    /// Most bytes of a value that a letter holds.
    pub const VALUE_BYTES_MAX: usize = 512 << 10;
    /// Most bytes of the detail.
    pub const DETAIL_BYTES_MAX: usize = 1 << 10;

    /// The letter as it is written: no longer than topics and clients take by their defaults, however large the record was.
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

    /// Whether this is key and value of the record that the letter is of, as far as the letter tells.
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

impl Wire for DeadLetterCut {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { key_bytes, value_bytes, digest } = self;
        key_bytes.put(out);
        value_bytes.put(out);
        out.extend_from_slice(digest);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            key_bytes: Wire::get(cursor)?,
            value_bytes: Wire::get(cursor)?,
            digest: *cursor.take(blake3::OUT_LEN)?.as_array().expect("so many were taken"),
        })
    }
}

impl Wire for DeadLetter {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { topic, partition, offset, reason, detail, key, value, cut } = self;
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
        cut.put(out);
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
            cut: Wire::get(cursor)?,
        })
    }
}
