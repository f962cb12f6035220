//! The event types of Warptape and how their current versions lie in bytes.
//!
//! Who makes records needs this crate alone: the structs, the encoders, the check of what makes a tick good, and the
//! journal's chain of hashes. Reading records, which may have been written with an older or a foreign schema, needs
//! libraries that know Avro; that is `warptape-schemas`, which has everything of this crate as well.
//!
//! * [`journal`], [`signal`], [`tick`] and [`risk`] are the types, [`known`] lists the schemas of all versions.
//! * [`encode_signal`], [`encode_tick_batch`] and so on append a record in Avro's single-object encoding.
//! * [`DecodeTicks`] is what the engine reads ticks with; it is given one.
//! * [`JournalWriter`] chains journal entries by hash, [`check_chain`] shows that nothing was changed.
//!
//! This crate knows no topics, no offsets but those that are fields, no clock, no files and no Avro schema.

pub mod journal;
pub mod known;
pub mod risk;
pub mod signal;
pub mod tick;

// How bytes are read and checked: for `warptape-schemas`, which decodes.
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
/// What an `.avsc` says of a record.
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
pub use encode::{encode_scaled_tick_batch, encode_tick, encode_tick_batch};
pub use error::{ChainError, DecodeError, EncodeError, SchemaError};
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

/// Rows, and symbols, that one tick record may have at most.
pub const ROWS_MAX: usize = 65_536;
/// Bytes of UTF-8 that a symbol may have at most.
pub const SYMBOL_BYTES_MAX: usize = 64;
