//! The Avro schemas of Warptape: with `events`, the only code that knows Avro bytes.
//!
//! `avro/*.avsc` are what others read and write by; they are written of the types that declare them ([`shape`]). Every record travels in Avro's single-object encoding (`C3 01`, the CRC-64
//! fingerprint of its schema, the datum), so that a reader knows which version wrote it; [`known`] lists the versions.
//! Where there is a schema registry, the header is the registry's instead ([`to_registry_frame`], [`SchemaSource`]).
//!
//! * The types and their encoders are those of `warptape-events`, all of which this crate has as well.
//! * Ticks come in through [`TickDecoder`], straight into [`TickColumns`], and are checked there once: whatever is in
//!   the columns is good.
//! * Everything else is one function each: [`decode_signal`] and so on. Records of older versions are brought to the
//!   current one by Avro's rules.
//! * [`Describer`] turns any known record into JSON for people.
//!
//! This crate knows no topics, no offsets but those that are fields, no clock and no files.

mod decoder;
mod describe;
mod fingerprint;
mod record;
mod resolve;

pub use decoder::TickDecoder;
pub use describe::{Describer, describe};
pub use fingerprint::avro_fingerprint;
pub use record::{
    decode_control, decode_control_result, decode_dead_letter, decode_feed, decode_journal_entry,
    decode_late_tick, decode_lifecycle, decode_risk_request, decode_risk_result, decode_signal,
    decode_snapshot,
};
pub use warptape_events::*;
