//! What can be wrong with bytes that come in, with values that go out, and with schemas.

use crate::ROWS_MAX;
use crate::check::InvalidTick;
use crate::dead_letter::DeadLetterReason;
use crate::frame::{HEADER_SIZE, REGISTRY_HEADER_SIZE};

/// Why a record cannot be read. The record is rejected as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No header.
    #[error(
        "no Avro single-object header (C3 01 and the fingerprint, {HEADER_SIZE} bytes) and no schema registry's (00 and \
         the id, {REGISTRY_HEADER_SIZE} bytes): publish with one of them"
    )]
    NotFramed,
    /// The fingerprint is of no known schema.
    #[error(
        "no schema with fingerprint {fingerprint:016x} is known: publish with one of schemas/avro/*.avsc, or register the writer's schema"
    )]
    UnknownSchema {
        /// The fingerprint that the header names.
        fingerprint: u64,
    },
    /// The fingerprint is of no version of the record's schema that this software reads.
    #[error(
        "the record is of a version of {record}, fingerprint {fingerprint:016x}, that this software does not read: it reads version {known}; \
         use the version of warptape that wrote it"
    )]
    UnknownVersion {
        /// The record that is expected.
        record: &'static str,
        /// The fingerprint that the header names.
        fingerprint: u64,
        /// The newest version that is read.
        known: u32,
    },
    /// The id is of no known schema.
    #[error(
        "no schema with registry id {id} is known: register the writer's schema, or set schema_registry.url to the registry that has it"
    )]
    UnknownSchemaId {
        /// The id that the header names.
        id: u32,
    },
    /// The registry's schema is not one whose records could be ticks.
    #[error("the schema with registry id {id} cannot be used: {detail}")]
    UnusableSchema {
        /// The id that the header names.
        id: u32,
        /// Why not.
        detail: String,
    },
    /// A known record, but not one that belongs here.
    #[error("a {found} record where {expected} belongs: publish it to its own topic")]
    WrongSchema {
        /// Name of the record found.
        found: &'static str,
        /// Name of the records expected.
        expected: &'static str,
    },
    /// The bytes end too early.
    #[error(
        "the datum ends after {length} bytes in the middle of a value: it was cut, or written with another schema"
    )]
    Truncated {
        /// Bytes of the datum.
        length: usize,
    },
    /// Bytes follow the record.
    #[error(
        "{count} bytes follow the record: one message holds one record, written with the schema it names"
    )]
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// Not Avro of this schema.
    #[error("at byte {at} of the datum: {what}; it is damaged, or written with another schema")]
    Malformed {
        /// Byte of the datum where reading stopped.
        at: usize,
        /// What was found.
        what: &'static str,
    },
    /// Not readable as the registered writer schema says.
    #[error("the record does not resolve to the {name} schema: {detail}")]
    Unresolvable {
        /// Name of the schema it should resolve to.
        name: &'static str,
        /// What the Avro library found.
        detail: String,
    },
    /// A batch of too many rows or symbols.
    #[error("the array {field} has more than {ROWS_MAX} items: split the batch")]
    TooManyRows {
        /// The array.
        field: &'static str,
    },
    /// A batch without rows.
    #[error("the batch has no rows: publish nothing instead")]
    NoRows,
    /// Columns that do not fit together.
    #[error("the array {field} has {found} items where event_time_ns has {expected}: write one item per row")]
    LengthsDiffer {
        /// The array.
        field: &'static str,
        /// Its items.
        found: usize,
        /// Rows of the record.
        expected: usize,
    },
    /// A value that a tick must not have.
    #[error(transparent)]
    Invalid(#[from] InvalidTick),
    /// A batch of records, in whose place one stands.
    #[error("{detail}")]
    UnreadableBatch {
        /// Offset of its first record.
        first_offset: i64,
        /// What it is, and why it cannot be read.
        detail: String,
    },
    /// A damaged snapshot.
    #[error("the checksum of the snapshot does not fit its bytes: use the one before it")]
    Checksum,
}

impl DecodeError {
    /// The dead letter reason for it.
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
            Self::LengthsDiffer { .. } => DeadLetterReason::LengthsDiffer,
            Self::Invalid(invalid) => invalid.reason(),
            Self::UnreadableBatch { .. } => DeadLetterReason::UnreadableBatch,
            Self::Checksum => DeadLetterReason::Checksum,
        }
    }
}

/// Why ticks cannot be written. Nothing was appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A tick that the decoder would reject.
    #[error(transparent)]
    Invalid(#[from] InvalidTick),
    /// A batch of too many ticks.
    #[error("{rows} ticks in a batch; at most {ROWS_MAX} are allowed: split it")]
    TooManyRows {
        /// Ticks given.
        rows: usize,
    },
    /// A batch without ticks.
    #[error("a batch needs at least one tick: write nothing instead")]
    NoRows,
}

/// Why a writer schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Not an Avro schema.
    #[error("not an Avro schema: {detail}")]
    NotASchema {
        /// What the Avro library found.
        detail: String,
    },
    /// A schema of something else.
    #[error("the schema is of {found}: only records named Tick and TickBatch hold ticks")]
    NotTicks {
        /// Its name or type.
        found: String,
    },
    /// It does not resolve to ours.
    #[error("the schema does not resolve to {name}: {detail}")]
    Unresolvable {
        /// Name of our schema.
        name: &'static str,
        /// Why not.
        detail: String,
    },
}

/// Why a journal entry is not the successor of the one before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// Not a journal entry at all.
    #[error("not a journal entry: {0}")]
    Unreadable(#[from] DecodeError),
    /// The hash does not fit.
    #[error(
        "the entry's hash is {found} where its bytes and the entry before give {expected}: it was changed, or an entry before it was removed or added"
    )]
    Broken {
        /// Hash by the entry's bytes and the hash of the entry before.
        expected: String,
        /// Hash that the entry holds.
        found: String,
    },
    /// Nothing can follow an entry without a hash.
    #[error(
        "the last entry's hash is {found:?} and not 64 lower-case hex digits: check the journal before going on"
    )]
    NoHash {
        /// What it holds.
        found: String,
    },
    /// Nothing can follow an entry with this number.
    #[error("the last entry's sequence number is {found}: check the journal before going on")]
    NoSequence {
        /// The number.
        found: i64,
    },
}
