//! Readers of all records except ticks, one function each.

use std::borrow::Cow;

use crate::control::{Control, ControlResult};
use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::journal::JournalEntry;
use crate::known::{self, KnownSchema};
use crate::late_tick::LateTick;
use crate::risk::{RiskRequest, RiskResult};
use crate::signal::{Signal, SignalKind};
use crate::snapshot::{self, Snapshot};
use crate::wire::Wire;
use crate::{DeadLetter, DeadLetterReason, Feed, Lifecycle, frame, resolve};

/// Reads a signal; its texts are borrowed from `payload`.
pub fn decode_signal(payload: &[u8]) -> Result<Signal<'_>, DecodeError> {
    for schema in known::written(known::SIGNAL) {
        if let Some(datum) = datum_of(schema, payload) {
            return whole(datum, |cursor| Signal::get_version(cursor, schema.version));
        }
    }
    // The record is of an older version that is no longer written, of an unknown version, or of another kind.
    let datum = current_datum(known::SIGNAL, payload).map_err(|error| named(known::SIGNAL, error))?;
    whole(&datum, |cursor| Signal::get(cursor).map(Signal::into_owned))
}

/// The first fields of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalHead<'a> {
    /// Symbol of the signal.
    pub symbol: &'a str,
    /// Kind of the signal.
    pub kind: SignalKind,
    /// Specification of the bar.
    pub bar_spec: &'a str,
    /// End of the bar, ns since the epoch.
    pub bar_end_ns: i64,
}

/// Reads the first fields of a signal in a version that is still written. The other fields are not checked; reading them
/// takes most of [`decode_signal`]'s time.
pub fn decode_signal_head(payload: &[u8]) -> Result<SignalHead<'_>, DecodeError> {
    let datum = known::written(known::SIGNAL).find_map(|schema| datum_of(schema, payload));
    let datum = datum.ok_or_else(|| match frame::split(payload) {
        Ok((fingerprint, _)) => known::SIGNAL.unknown(fingerprint),
        Err(error) => error,
    })?;
    let mut cursor = Cursor::new(datum);
    let (symbol, kind, bar_spec) = (cursor.string()?, SignalKind::get(&mut cursor)?, cursor.string()?);
    let _bar_start_ns = cursor.long()?;
    Ok(SignalHead { symbol, kind, bar_spec, bar_end_ns: cursor.long()? })
}

/// Reads a journal entry. [`crate::check_chain`] checks that it follows another one.
pub fn decode_journal_entry(payload: &[u8]) -> Result<JournalEntry, DecodeError> {
    decode_own(known::JOURNAL_ENTRY, payload)
}

/// Reads a snapshot and checks its checksum.
pub fn decode_snapshot(payload: &[u8]) -> Result<Snapshot, DecodeError> {
    let snapshot = decode_own(known::SNAPSHOT, payload)?;
    snapshot::check_checksum(&payload[frame::HEADER_SIZE..])?;
    Ok(snapshot)
}

/// Reads a late tick.
pub fn decode_late_tick(payload: &[u8]) -> Result<LateTick, DecodeError> {
    match datum_of(known::LATE_TICK_1, payload) {
        Some(datum) => whole(datum, |cursor| LateTick::get_version(cursor, known::LATE_TICK_1.version)),
        None => decode_own(known::LATE_TICK, payload),
    }
}

/// Reads a dead letter.
pub fn decode_dead_letter(payload: &[u8]) -> Result<DeadLetter, DecodeError> {
    let Some(datum) = datum_of(known::DEAD_LETTER_2, payload) else {
        return decode_own(known::DEAD_LETTER, payload);
    };
    whole(datum, |cursor| {
        let letter = DeadLetter::get_version(cursor, known::DEAD_LETTER_2.version)?;
        match letter.reason {
            DeadLetterReason::UnreadableBatch => {
                Err(cursor.malformed("a reason that this version of the schema does not have"))
            }
            _ => Ok(letter),
        }
    })
}

/// Reads a lifecycle event.
pub fn decode_lifecycle(payload: &[u8]) -> Result<Lifecycle, DecodeError> {
    decode_own(known::LIFECYCLE, payload)
}

/// Reads the progress of a source of ticks.
pub fn decode_feed(payload: &[u8]) -> Result<Feed, DecodeError> {
    decode_own(known::FEED, payload)
}

/// Reads an operator's command. It may still be one that cannot be executed.
pub fn decode_control(payload: &[u8]) -> Result<Control, DecodeError> {
    decode(known::CONTROL, payload)
}

/// Reads the answer to a command.
pub fn decode_control_result(payload: &[u8]) -> Result<ControlResult, DecodeError> {
    decode_own(known::CONTROL_RESULT, payload)
}

/// Reads a risk request. The problem in it is not checked.
pub fn decode_risk_request(payload: &[u8]) -> Result<RiskRequest, DecodeError> {
    for schema in known::written(known::RISK_REQUEST) {
        let Some(datum) = datum_of(schema, payload) else { continue };
        // Unions are encoded equally in all versions, but an earlier version may lack the branch.
        return whole(datum, |cursor| {
            let request = RiskRequest::get_version(cursor, schema.version)?;
            match request.schema().version <= schema.version {
                true => Ok(request),
                false => Err(cursor.malformed("a problem that this version of the schema does not have")),
            }
        });
    }
    decode(known::RISK_REQUEST, payload)
}

/// Reads a risk result.
pub fn decode_risk_result(payload: &[u8]) -> Result<RiskResult, DecodeError> {
    decode_own(known::RISK_RESULT, payload)
}

/// Reads a record written by this or another version of the software. The error for an unknown schema names the known
/// version, and does not explain publishing.
fn decode_own<T: for<'datum> Wire<'datum>>(schema: KnownSchema, payload: &[u8]) -> Result<T, DecodeError> {
    decode(schema, payload).map_err(|error| named(schema, error))
}

fn named(schema: KnownSchema, error: DecodeError) -> DecodeError {
    match error {
        DecodeError::UnknownSchema { fingerprint } => schema.unknown(fingerprint),
        error => error,
    }
}

fn decode<T: for<'datum> Wire<'datum>>(schema: KnownSchema, payload: &[u8]) -> Result<T, DecodeError> {
    whole(&current_datum(schema, payload)?, |cursor| T::get(cursor))
}

/// Reads one value that must take up the whole datum.
fn whole<'a, T>(
    datum: &'a [u8],
    get: impl FnOnce(&mut Cursor<'a>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut cursor = Cursor::new(datum);
    let value = get(&mut cursor)?;
    cursor.finish()?;
    Ok(value)
}

/// Returns the datum of a record of exactly this version; `None` for other records.
fn datum_of(schema: KnownSchema, payload: &[u8]) -> Option<&[u8]> {
    let (fingerprint, datum) = frame::split(payload).ok()?;
    (fingerprint == schema.fingerprint).then_some(datum)
}

/// Returns the datum of a record in the current version of its schema.
fn current_datum(schema: KnownSchema, payload: &[u8]) -> Result<Cow<'_, [u8]>, DecodeError> {
    let (fingerprint, datum) = frame::split(payload)?;
    if fingerprint == schema.fingerprint {
        return Ok(Cow::Borrowed(datum));
    }
    let Some(writer) = known::by_fingerprint(fingerprint) else {
        return Err(DecodeError::UnknownSchema { fingerprint });
    };
    if writer.name != schema.name {
        return Err(DecodeError::WrongSchema { found: writer.name, expected: schema.name });
    }
    resolve::resolve(writer, datum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions that are still written are read directly; the results equal those of Avro's rules.
    #[test]
    fn versions_are_read_alike_as_they_are_and_brought_to_the_current_one() {
        for line in include_str!("../golden/signal_1.txt").lines() {
            let digits = line.split('\t').next().expect("bytes");
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits");
            let payload: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
            let datum = current_datum(known::SIGNAL, &payload).expect("a golden record");
            assert!(matches!(datum, Cow::Owned(_)));
            let brought = whole(&datum, |cursor| Signal::get(cursor).map(Signal::into_owned));
            assert_eq!(brought, decode_signal(&payload).map(Signal::into_owned));
        }
    }

    #[test]
    fn entries_of_an_unknown_version_say_which_is_known() {
        let entry = [&frame::header(0x1234)[..], &[0; 80]].concat();
        let expected = known::JOURNAL_ENTRY.unknown(0x1234);
        assert_eq!(decode_journal_entry(&entry), Err(expected.clone()));
        let words = expected.to_string();
        assert!(words.contains("version of JournalEntry, fingerprint 0000000000001234"), "{words}");
        assert!(words.contains("it reads version 12; use the version of warptape that wrote it"), "{words}");
    }
}
