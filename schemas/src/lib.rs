//! The Avro schemas of Warptape and the event types that go with them: the only code that knows Avro bytes.
//!
//! `avro/*.avsc` are the source of truth. Every record travels in Avro's single-object encoding (`C3 01`, the CRC-64
//! fingerprint of its schema, the datum), so that a reader knows which version wrote it; [`known`] lists the versions.
//! Where there is a schema registry, the header is the registry's instead ([`to_registry_frame`], [`SchemaSource`]).
//!
//! * Ticks come in through [`TickDecoder`], straight into [`TickColumns`], and are checked there once: whatever is in
//!   the columns is good. Producers write them with [`encode_tick`] and [`encode_tick_batch`].
//! * Everything else is one function each way: [`encode_signal`], [`decode_signal`] and so on.
//! * [`JournalWriter`] chains journal entries by hash, [`check_chain`] shows that nothing was changed.
//! * [`Describer`] turns any known record into JSON for people.
//!
//! This crate knows no topics, no offsets but those that are fields, no clock and no files.

pub mod journal;
pub mod known;
pub mod risk;
pub mod signal;
pub mod tick;

mod check;
mod cursor;
mod dead_letter;
mod decoder;
mod describe;
mod encode;
mod error;
mod feed;
mod frame;
mod hex;
mod journal_chain;
mod journal_wire;
mod late_tick;
mod lifecycle;
mod long_field;
mod record;
mod resolve;
mod signal_wire;
mod snapshot;
mod symbol_table;
mod varint;
mod wire;

pub use check::{InvalidTick, TickProblem};
pub use dead_letter::{DeadLetter, DeadLetterCut, DeadLetterReason};
pub use decoder::{SchemaSource, TickDecoder};
pub use describe::{Describer, decimal_e9, decimal_text, describe};
pub use encode::{encode_scaled_tick_batch, encode_tick, encode_tick_batch};
pub use error::{ChainError, DecodeError, EncodeError, SchemaError};
pub use feed::Feed;
pub use frame::{
    HEADER_SIZE, REGISTRY_HEADER_SIZE, fingerprint_of, registry_id_of, to_registry_frame, to_single_object,
};
pub use journal_chain::{GENESIS_HASH, JournalWriter, check_chain};
pub use late_tick::LateTick;
pub use lifecycle::{Lifecycle, LifecycleEvent};
pub use record::{
    decode_dead_letter, decode_feed, decode_journal_entry, decode_late_tick, decode_lifecycle,
    decode_risk_request, decode_risk_result, decode_signal, decode_snapshot, encode_dead_letter, encode_feed,
    encode_journal_entry, encode_late_tick, encode_lifecycle, encode_risk_request, encode_risk_result,
    encode_signal, encode_snapshot,
};
pub use snapshot::Snapshot;
pub use symbol_table::SymbolTable;
pub use tick::TickColumns;

/// Rows, and symbols, that one tick record may have at most.
pub const ROWS_MAX: usize = 65_536;
/// Bytes of UTF-8 that a symbol may have at most.
pub const SYMBOL_BYTES_MAX: usize = 64;
