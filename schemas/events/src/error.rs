//! Errors in bytes that are read, in values that are written, and in schemas.

use crate::ROWS_MAX;
use crate::check::InvalidTick;
use crate::dead_letter::DeadLetterReason;
use crate::frame::{HEADER_SIZE, REGISTRY_HEADER_SIZE};
use crate::tick::Scales;

/// The reason why a record cannot be read. The record is rejected as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The record has no header.
    #[error(
        "no Avro single-object header (C3 01 and the fingerprint, {HEADER_SIZE} bytes) and no schema registry's (00 and \
         the id, {REGISTRY_HEADER_SIZE} bytes): publish with one of them"
    )]
    NotFramed,
    /// No known schema has the fingerprint.
    #[error(
        "no schema with fingerprint {fingerprint:016x} is known: publish with one of schemas/avro/*.avsc, or register the writer's schema"
    )]
    UnknownSchema {
        /// The header's fingerprint.
        fingerprint: u64,
    },
    /// No version of the record's schema that this software reads has the fingerprint.
    #[error(
        "the record is of a version of {record}, fingerprint {fingerprint:016x}, that this software does not read: it reads version {known}; \
         use the version of warptape that wrote it"
    )]
    UnknownVersion {
        /// The expected record.
        record: &'static str,
        /// The header's fingerprint.
        fingerprint: u64,
        /// The newest version that this software reads.
        known: u32,
    },
    /// No known schema has the id.
    #[error(
        "no schema with registry id {id} is known: register the writer's schema, or set schema_registry.url to the registry that has it"
    )]
    UnknownSchemaId {
        /// The header's id.
        id: u32,
    },
    /// The registry's schema does not fit records of ticks.
    #[error("the schema with registry id {id} cannot be used: {detail}")]
    UnusableSchema {
        /// The header's id.
        id: u32,
        /// The reason.
        detail: String,
    },
    /// The record is of a known kind, but not of the expected one.
    #[error("a {found} record where {expected} belongs: publish it to its own topic")]
    WrongSchema {
        /// Name of the record found.
        found: &'static str,
        /// Name of the expected records.
        expected: &'static str,
    },
    /// The bytes end too early.
    #[error(
        "the datum ends after {length} bytes in the middle of a value: it was cut, or written with another schema"
    )]
    Truncated {
        /// Length of the datum, in bytes.
        length: usize,
    },
    /// Bytes follow the record.
    #[error(
        "{count} bytes follow the record: one message holds one record, written with the schema it names"
    )]
    TrailingBytes {
        /// Number of bytes.
        count: usize,
    },
    /// The datum is not Avro of this schema.
    #[error("at byte {at} of the datum: {what}; it is damaged, or written with another schema")]
    Malformed {
        /// Byte of the datum at which reading stopped.
        at: usize,
        /// The malformed value.
        what: &'static str,
    },
    /// The datum cannot be resolved from the registered writer schema.
    #[error("the record does not resolve to the {name} schema: {detail}")]
    Unresolvable {
        /// Name of the reader schema.
        name: &'static str,
        /// The Avro library's error.
        detail: String,
    },
    /// A batch has too many rows or symbols.
    #[error("the array {field} has more than {ROWS_MAX} items: split the batch")]
    TooManyRows {
        /// The array.
        field: &'static str,
    },
    /// A column of a record with packed columns does not fit the record.
    #[error("the column {field} {problem}")]
    BadColumn {
        /// The column.
        field: &'static str,
        /// The problem.
        problem: ColumnProblem,
    },
    /// A batch has no rows.
    #[error("the batch has no rows: publish nothing instead")]
    NoRows,
    /// Columns differ in length.
    #[error("the array {field} has {found} items where event_time_ns has {expected}: write one item per row")]
    LengthsDiffer {
        /// The array.
        field: &'static str,
        /// Number of its items.
        found: usize,
        /// Number of rows of the record.
        expected: usize,
    },
    /// A tick has a bad value.
    #[error(transparent)]
    Invalid(#[from] InvalidTick),
    /// A batch of records could not be unpacked; one record replaces it.
    #[error("{detail}")]
    UnreadableBatch {
        /// Offset of its first record.
        first_offset: i64,
        /// Description of the batch, and the reason.
        detail: String,
    },
    /// The checksum of a snapshot is wrong.
    #[error("the checksum of the snapshot does not fit its bytes: use the one before it")]
    Checksum,
}

impl DecodeError {
    /// Returns the reason for the record's dead letter.
    pub fn reason(&self) -> DeadLetterReason {
        match self {
            Self::NotFramed => DeadLetterReason::NotFramed,
            Self::UnknownSchema { .. } | Self::UnknownVersion { .. } | Self::UnknownSchemaId { .. } => {
                DeadLetterReason::UnknownSchema
            }
            Self::WrongSchema { .. } | Self::UnusableSchema { .. } => DeadLetterReason::WrongSchema,
            Self::Truncated { .. } => DeadLetterReason::Truncated,
            Self::TrailingBytes { .. } => DeadLetterReason::TrailingBytes,
            Self::Malformed { .. } | Self::Unresolvable { .. } => DeadLetterReason::Malformed,
            Self::TooManyRows { .. } | Self::NoRows => DeadLetterReason::TooManyRows,
            Self::LengthsDiffer { .. }
            | Self::BadColumn {
                problem: ColumnProblem::Length { .. } | ColumnProblem::Bits { .. } | ColumnProblem::NoBytes,
                ..
            } => DeadLetterReason::LengthsDiffer,
            Self::BadColumn { .. } => DeadLetterReason::Malformed,
            Self::Invalid(invalid) => invalid.reason(),
            Self::UnreadableBatch { .. } => DeadLetterReason::UnreadableBatch,
            Self::Checksum => DeadLetterReason::Checksum,
        }
    }
}

/// A problem of a column of a record with packed columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnProblem {
    /// The items have no width.
    #[error("has {bytes} bytes for {items} items: write the same number of bytes for each, 0 to 8")]
    Length {
        /// Length of the field, in bytes.
        bytes: usize,
        /// Number of items.
        items: usize,
    },
    /// The bits do not fit the rows.
    #[error(
        "has {bytes} bytes for {items} items of {bits} bits: write the fewest bytes that hold them, or none"
    )]
    Bits {
        /// Length of the field, in bytes.
        bytes: usize,
        /// Number of items.
        items: usize,
        /// Number of bits of an item.
        bits: usize,
    },
    /// A bit after the last item is set.
    #[error("has bits after its {items} items: write 0 there")]
    UnusedBits {
        /// Number of items.
        items: usize,
    },
    /// The event times take no bytes.
    #[error("has no bytes: write at least one byte per row, even if all are equal")]
    NoBytes,
    /// A unit below 0.
    #[error("has the unit {0}: write 0 or more")]
    Unit(i64),
    /// A number of zeros out of range.
    #[error("leaves out {0} zeros: write 0 to {max}", max = Scales::MAX)]
    Zeros(i64),
    /// A number that does not fit into 64 bits.
    #[error("has a number of more than 64 bits in item {item}: write a smaller base, unit or offset")]
    TooLarge {
        /// The item, from 0.
        item: usize,
    },
}

/// The reason why ticks cannot be written. No bytes were appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The decoder would reject a tick.
    #[error(transparent)]
    Invalid(#[from] InvalidTick),
    /// A batch has too many ticks.
    #[error("{rows} ticks in a batch; at most {ROWS_MAX} are allowed: split it")]
    TooManyRows {
        /// Number of ticks given.
        rows: usize,
    },
    /// A batch has no ticks.
    #[error("a batch needs at least one tick: write nothing instead")]
    NoRows,
}

/// The reason why a writer schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not an Avro schema.
    #[error("not an Avro schema: {detail}")]
    NotASchema {
        /// The Avro library's error.
        detail: String,
    },
    /// The schema does not describe ticks.
    #[error(
        "the schema is of {found}: only records named Tick, TickBatch, ScaledTickBatch and PackedTickBatch hold ticks"
    )]
    NotTicks {
        /// Its name or type.
        found: String,
    },
    /// The schema does not resolve to the published one.
    #[error("the schema does not resolve to {name}: {detail}")]
    Unresolvable {
        /// Name of the published schema.
        name: &'static str,
        /// The reason.
        detail: String,
    },
}

/// The reason why a journal entry does not succeed the previous one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The record is not a journal entry.
    #[error("not a journal entry: {0}")]
    Unreadable(#[from] DecodeError),
    /// The entry's hash does not match its content.
    #[error(
        "the entry's hash is {found}, but its bytes and the previous entry give {expected}: it was changed, or an earlier entry was removed or added"
    )]
    Broken {
        /// Hash computed from the entry's bytes and the previous entry's hash.
        expected: String,
        /// Hash in the entry.
        found: String,
    },
    /// No entry can follow an entry without a hash.
    #[error(
        "the last entry's hash is {found:?} and not 64 lower-case hex digits: check the journal before going on"
    )]
    NoHash {
        /// The text in place of the hash.
        found: String,
    },
    /// No entry can follow an entry with this number.
    #[error("the last entry's sequence number is {found}: check the journal before going on")]
    NoSequence {
        /// The number.
        found: i64,
    },
}
