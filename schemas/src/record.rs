//! Records other than ticks: one function each way.

use crate::cursor::Cursor;
use crate::dead_letter::DeadLetter;
use crate::error::DecodeError;
use crate::feed::Feed;
use crate::journal::JournalEntry;
use crate::known::{self, KnownSchema};
use crate::late_tick::LateTick;
use crate::lifecycle::Lifecycle;
use crate::risk::{RiskRequest, RiskResult};
use crate::signal::Signal;
use crate::snapshot::{self, Snapshot};
use crate::wire::Wire;
use crate::{frame, resolve, signal_wire};

/// Appends a signal, with the first version of its schema that can hold it.
pub fn encode_signal(signal: &Signal<'_>, out: &mut Vec<u8>) {
    let exact = signal.bar.as_ref().and_then(|bar| bar.exact.as_ref());
    let further =
        signal.bar.as_ref().map(|bar| &bar.further_indicators).filter(|further| !further.is_empty());
    let schema = match (exact, further) {
        (None, None) => known::SIGNAL_1,
        (Some(_), None) => known::SIGNAL_2,
        (_, Some(_)) => known::SIGNAL,
    };
    out.extend_from_slice(&frame::header(schema.fingerprint));
    signal_wire::put(signal, out);
    if schema.version >= 2 {
        signal_wire::put_exact(exact, out);
    }
    if let Some(further) = further {
        signal_wire::put_further(further, out);
    }
}

/// Reads a signal; its texts are borrowed from `payload`.
pub fn decode_signal(payload: &[u8]) -> Result<Signal<'_>, DecodeError> {
    for schema in [known::SIGNAL_1, known::SIGNAL_2] {
        if let Some(datum) = datum_of(schema, payload) {
            return whole(datum, |cursor| signal_wire::get(cursor, schema.version));
        }
    }
    let get =
        |cursor: &mut Cursor<'_>| signal_wire::get(cursor, known::SIGNAL.version).map(Signal::into_owned);
    match current_datum(known::SIGNAL, payload)? {
        Datum::Current(datum) => whole(datum, |cursor| signal_wire::get(cursor, known::SIGNAL.version)),
        Datum::Resolved(datum) => whole(&datum, get),
    }
}

/// Appends a journal entry as it is; [`crate::JournalWriter`] makes entries that follow each other.
pub fn encode_journal_entry(entry: &JournalEntry, out: &mut Vec<u8>) {
    encode(known::JOURNAL_ENTRY, entry, out);
}

/// Reads a journal entry; [`crate::check_chain`] tells whether it is the successor of another.
pub fn decode_journal_entry(payload: &[u8]) -> Result<JournalEntry, DecodeError> {
    decode(known::JOURNAL_ENTRY, payload)
}

/// Appends a snapshot with its checksum.
pub fn encode_snapshot(snapshot: &Snapshot, out: &mut Vec<u8>) {
    encode(known::SNAPSHOT, snapshot, out);
}

/// Reads a snapshot and checks its checksum.
pub fn decode_snapshot(payload: &[u8]) -> Result<Snapshot, DecodeError> {
    let snapshot = decode(known::SNAPSHOT, payload)?;
    snapshot::check_checksum(&payload[frame::HEADER_SIZE..])?;
    Ok(snapshot)
}

/// Appends a late tick.
pub fn encode_late_tick(late_tick: &LateTick, out: &mut Vec<u8>) {
    let scaled = late_tick.scaled_numbers();
    let schema = if scaled.is_some() { known::LATE_TICK } else { known::LATE_TICK_1 };
    out.extend_from_slice(&frame::header(schema.fingerprint));
    late_tick.put(out);
    if scaled.is_some() {
        scaled.put(out);
    }
}

/// Reads a late tick.
pub fn decode_late_tick(payload: &[u8]) -> Result<LateTick, DecodeError> {
    if let Some(datum) = datum_of(known::LATE_TICK_1, payload) {
        return whole(datum, |cursor| LateTick::get(cursor, false));
    }
    match current_datum(known::LATE_TICK, payload)? {
        Datum::Current(datum) => whole(datum, |cursor| LateTick::get(cursor, true)),
        Datum::Resolved(datum) => whole(&datum, |cursor| LateTick::get(cursor, true)),
    }
}

/// Appends a dead letter.
pub fn encode_dead_letter(dead_letter: &DeadLetter, out: &mut Vec<u8>) {
    encode(known::DEAD_LETTER, dead_letter, out);
}

/// Reads a dead letter.
pub fn decode_dead_letter(payload: &[u8]) -> Result<DeadLetter, DecodeError> {
    decode(known::DEAD_LETTER, payload)
}

/// Appends a lifecycle event.
pub fn encode_lifecycle(lifecycle: &Lifecycle, out: &mut Vec<u8>) {
    encode(known::LIFECYCLE, lifecycle, out);
}

/// Reads a lifecycle event.
pub fn decode_lifecycle(payload: &[u8]) -> Result<Lifecycle, DecodeError> {
    decode(known::LIFECYCLE, payload)
}

/// Appends how far a source of ticks is.
pub fn encode_feed(feed: &Feed, out: &mut Vec<u8>) {
    encode(known::FEED, feed, out);
}

/// Reads how far a source of ticks is.
pub fn decode_feed(payload: &[u8]) -> Result<Feed, DecodeError> {
    decode(known::FEED, payload)
}

/// Appends a risk request.
pub fn encode_risk_request(request: &RiskRequest, out: &mut Vec<u8>) {
    encode(known::RISK_REQUEST, request, out);
}

/// Reads a risk request. What it asks is not checked.
pub fn decode_risk_request(payload: &[u8]) -> Result<RiskRequest, DecodeError> {
    decode(known::RISK_REQUEST, payload)
}

/// Appends a risk result.
pub fn encode_risk_result(result: &RiskResult, out: &mut Vec<u8>) {
    encode(known::RISK_RESULT, result, out);
}

/// Reads a risk result.
pub fn decode_risk_result(payload: &[u8]) -> Result<RiskResult, DecodeError> {
    decode(known::RISK_RESULT, payload)
}

fn encode(schema: KnownSchema, record: &impl Wire, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame::header(schema.fingerprint));
    record.put(out);
}

fn decode<T: Wire>(schema: KnownSchema, payload: &[u8]) -> Result<T, DecodeError> {
    match current_datum(schema, payload)? {
        Datum::Current(datum) => whole(datum, T::get),
        Datum::Resolved(datum) => whole(&datum, T::get),
    }
}

/// Reads one value that takes up all of the datum.
fn whole<'a, T>(
    datum: &'a [u8],
    get: impl FnOnce(&mut Cursor<'a>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut cursor = Cursor::new(datum);
    let value = get(&mut cursor)?;
    cursor.finish()?;
    Ok(value)
}

/// A datum of a schema's current version.
enum Datum<'a> {
    /// Written so.
    Current(&'a [u8]),
    /// Written with an older version.
    Resolved(Vec<u8>),
}

/// The datum of a record that was written with this very version.
fn datum_of(schema: KnownSchema, payload: &[u8]) -> Option<&[u8]> {
    let (fingerprint, datum) = frame::split(payload).ok()?;
    (fingerprint == schema.fingerprint).then_some(datum)
}

fn current_datum(schema: KnownSchema, payload: &[u8]) -> Result<Datum<'_>, DecodeError> {
    let (fingerprint, datum) = frame::split(payload)?;
    if fingerprint == schema.fingerprint {
        return Ok(Datum::Current(datum));
    }
    let Some(writer) = known::by_fingerprint(fingerprint) else {
        return Err(DecodeError::UnknownSchema { fingerprint });
    };
    if writer.name != schema.name {
        return Err(DecodeError::WrongSchema { found: writer.name, expected: schema.name });
    }
    resolve::resolve(writer, schema, datum).map(Datum::Resolved)
}
