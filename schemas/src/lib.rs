//! The Avro schemas of Warptape. This crate and `events` are the only code that knows Avro bytes.
//!
//! The files `avro/*.avsc` are for readers and writers elsewhere; they are generated from the types ([`shape`]). Every
//! record is in Avro's single-object encoding: `C3 01`, the CRC-64 fingerprint of its schema, and the datum. So a
//! reader knows the version that wrote it; [`known`] lists the versions. With a schema registry, the registry's header
//! replaces this one ([`to_registry_frame`], [`SchemaSource`]).
//!
//! * The types and their encoders are in `warptape-events`, which this crate re-exports.
//! * [`TickDecoder`] reads ticks directly into [`TickColumns`] and checks them once: all rows in the columns are valid.
//! * Each other record has one function, such as [`decode_signal`]. Records of older versions are resolved to the
//!   current one by Avro's rules.
//! * [`Describer`] turns any known record into JSON for people.
//!
//! This crate knows no topics, no offsets except as fields of records, no clock and no files.

mod decoder;
mod describe;
mod fingerprint;
mod record;
mod resolve;

pub use decoder::TickDecoder;
pub use describe::{Describer, describe};
pub use fingerprint::avro_fingerprint;
pub use record::{
    SignalHead, decode_control, decode_control_result, decode_dead_letter, decode_feed, decode_journal_entry,
    decode_late_tick, decode_lifecycle, decode_risk_request, decode_risk_result, decode_signal,
    decode_signal_head, decode_snapshot,
};
pub use warptape_events::*;
