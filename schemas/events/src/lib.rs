//! The event types of Warptape, and the bytes of their current versions.
//!
//! Producers of records need only this crate: the structs, the encoders, the check of ticks, and the journal's hash
//! chain. Readers may find older or foreign schemas, which need Avro libraries. The crate `warptape-schemas` has these,
//! and re-exports everything here.
//!
//! * [`journal`], [`signal`], [`tick`] and [`risk`] are the types, [`known`] lists the schemas of all versions.
//! * [`encode_signal`], [`encode_tick_batch`] and so on append a record in Avro's single-object encoding.
//! * [`DecodeTicks`] is the engine's interface to a reader of ticks.
//! * [`JournalWriter`] chains journal entries by hash, and [`check_chain`] detects changed entries.
//!
//! This crate knows no topics, no offsets except as fields of records, no clock, no files and no Avro schema.

pub mod journal;
pub mod known;
pub mod risk;
pub mod signal;
pub mod tick;

// Reading and checking of bytes, for the decoders in `warptape-schemas`.
#[doc(hidden)]
pub mod check;
#[doc(hidden)]
pub mod cursor;
#[doc(hidden)]
pub mod error;
#[doc(hidden)]
pub mod frame;
#[doc(hidden)]
pub mod hex;
#[doc(hidden)]
pub mod late_tick;
#[doc(hidden)]
pub mod long_field;
#[doc(hidden)]
pub mod offsets;
#[doc(hidden)]
pub mod packed_tick_batch;
/// The content of a record's `.avsc` file.
pub mod shape;
#[doc(hidden)]
pub mod snapshot;
#[doc(hidden)]
pub mod symbol_table;
#[doc(hidden)]
pub mod tick_batch;
#[doc(hidden)]
pub mod varint;
#[doc(hidden)]
pub mod wire;

pub mod control;
mod dead_letter;
mod decimal;
mod decode_ticks;
mod encode;
mod feed;
mod journal_chain;
mod lifecycle;
mod record;
mod set_event_time;

pub use check::{InvalidTick, Prices, TickProblem};
pub use dead_letter::{DeadLetter, DeadLetterCut, DeadLetterDigest, DeadLetterReason};
pub use decimal::{Decimal, decimal_e9, decimal_text};
pub use decode_ticks::{DecodeTicks, SchemaSource};
pub use encode::{encode_packed_tick_batch, encode_scaled_tick_batch, encode_tick, encode_tick_batch};
pub use error::{ChainError, ColumnProblem, DecodeError, EncodeError, SchemaError};
pub use feed::Feed;
pub use frame::{
    HEADER_SIZE, REGISTRY_HEADER_SIZE, fingerprint_of, registry_id_of, to_registry_frame, to_single_object,
};
pub use journal_chain::{GENESIS_HASH, JournalWriter, check_chain, recorded_hash};
pub use late_tick::LateTick;
pub use lifecycle::{Lifecycle, LifecycleEvent};
pub use record::{
    encode_control, encode_control_result, encode_dead_letter, encode_feed, encode_journal_entry,
    encode_late_tick, encode_lifecycle, encode_risk_request, encode_risk_result, encode_set_event_time,
    encode_signal, encode_snapshot,
};
pub use set_event_time::SetEventTime;
pub use snapshot::{Checksum, Snapshot};
pub use symbol_table::SymbolTable;
pub use tick::TickColumns;

/// Greatest number of rows, and of symbols, in a tick record.
pub const ROWS_MAX: usize = 65_536;
/// Greatest length of a symbol, in bytes of UTF-8.
pub const SYMBOL_BYTES_MAX: usize = 64;
