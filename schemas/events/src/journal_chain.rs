//! The hash chain of journal entries: each entry holds a hash of itself and the previous entry's hash.
//!
//! ```text
//!  hash(n) = blake3( hash(n-1) as 64 hex digits ++ datum(n) without its last field, which is hash(n) )
//! ```
//!
//! The hash covers the datum without the header, so the chain is valid in any frame.

use crate::cursor::Cursor;
use crate::error::{ChainError, DecodeError};
use crate::frame;
use crate::hex::Digits;
use crate::journal::{Decision, Input, JournalEntry};
use crate::known;
use crate::varint::put_long;
use crate::wire::Wire;

/// The hash before the first entry.
pub const GENESIS_HASH: Digits<HASH_DIGITS> = Digits::zeros();

/// Number of hex digits of a hash.
const HASH_DIGITS: usize = 64;
/// Number of bytes of a hash: the last field.
const HASH_BYTES: usize = HASH_DIGITS / 2;
/// The length before the digits of a hash in Avro's encoding, in entries up to version 11.
const DIGITS_LENGTH: [u8; 2] = [0x80, 0x01];

/// Writes consecutive journal entries. A copy restores the state if a transaction is aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalWriter {
    next_sequence: i64,
    previous_hash: Digits<HASH_DIGITS>,
}

impl Default for JournalWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl JournalWriter {
    /// Returns a writer for the start of a journal.
    pub fn new() -> Self {
        Self { next_sequence: 0, previous_hash: GENESIS_HASH }
    }

    /// Returns a writer that continues after an existing entry.
    ///
    /// # Errors
    /// The entry was not written by a `JournalWriter`: its hash is not 64 lower-case hex digits, or its sequence number
    /// has no successor.
    pub fn resume(last: &JournalEntry) -> Result<Self, ChainError> {
        let previous_hash = last.hash;
        if !previous_hash.are_hex() {
            return Err(ChainError::NoHash { found: previous_hash.into() });
        }
        match last.sequence.checked_add(1) {
            Some(next_sequence) if next_sequence > 0 => Ok(Self { next_sequence, previous_hash }),
            _ => Err(ChainError::NoSequence { found: last.sequence }),
        }
    }

    /// Returns the sequence number of the next entry.
    pub fn next_sequence(&self) -> i64 {
        self.next_sequence
    }

    /// Returns the hash of the last entry; [`GENESIS_HASH`] before the first.
    pub fn previous_hash(&self) -> Digits<HASH_DIGITS> {
        self.previous_hash
    }

    /// Appends the next entry to `out` as one record, and returns its sequence number.
    pub fn append(
        &mut self,
        at_ns: i64,
        input: &Input,
        decisions: &[Decision],
        state_hash: u64,
        out: &mut Vec<u8>,
    ) -> i64 {
        let sequence = self.next_sequence;
        out.extend_from_slice(&const { frame::header(known::JOURNAL_ENTRY.fingerprint) });
        let start = out.len();
        put_long(sequence, out);
        put_long(at_ns, out);
        input.put(out);
        put_decisions(decisions, out);
        Digits::<16>::of(&state_hash.to_be_bytes()).put(out);
        self.previous_hash = hash(self.previous_hash, &out[start..]);
        self.previous_hash.put(out);
        self.next_sequence += 1;
        sequence
    }
}

/// Checks that an entry follows the one with `previous_hash` ([`GENESIS_HASH`] for the first). It does not decode the
/// entry, which may be of any version.
///
/// # Errors
/// [`ChainError::Broken`] if it does not follow, [`ChainError::Unreadable`] if it is not a journal entry.
pub fn check_chain(previous_hash: Digits<HASH_DIGITS>, payload: &[u8]) -> Result<(), ChainError> {
    let (hashed, found) = split(payload)?;
    let expected = hash(previous_hash, hashed);
    if found == expected {
        return Ok(());
    }
    Err(ChainError::Broken { expected: expected.into(), found: found.into() })
}

/// Returns the hash at the end of a journal entry, which the next entry's hash includes. It does not decode the entry;
/// `None` if the entry does not end with a hash.
pub fn recorded_hash(payload: &[u8]) -> Option<Digits<HASH_DIGITS>> {
    split(payload).ok().map(|(_, hash)| hash)
}

/// Returns the hashed part of an entry of any version, and its recorded hash.
fn split(payload: &[u8]) -> Result<(&[u8], Digits<HASH_DIGITS>), DecodeError> {
    let (fingerprint, datum) = frame::split(payload)?;
    let version = match known::by_fingerprint(fingerprint) {
        None => return Err(known::JOURNAL_ENTRY.unknown(fingerprint)),
        Some(schema) if schema.name != known::JOURNAL_ENTRY.name => {
            return Err(DecodeError::WrongSchema { found: schema.name, expected: known::JOURNAL_ENTRY.name });
        }
        Some(schema) => schema.version,
    };
    let truncated = DecodeError::Truncated { length: datum.len() };
    if version > known::JOURNAL_ENTRY_11.version {
        let (hashed, hash) = datum.split_last_chunk::<HASH_BYTES>().ok_or(truncated)?;
        return Ok((hashed, Digits::of(hash)));
    }
    let (rest, digits) = datum.split_last_chunk::<HASH_DIGITS>().ok_or(truncated)?;
    let hash = Digits::try_from(&digits[..]).ok().filter(Digits::are_hex);
    match (rest.strip_suffix(&DIGITS_LENGTH), hash) {
        (Some(hashed), Some(hash)) => Ok((hashed, hash)),
        _ => Err(Cursor::new(digits).malformed("no hash at the end of a journal entry")),
    }
}

/// Appends the same bytes as [`Wire`] does for a `Vec` of decisions.
fn put_decisions(decisions: &[Decision], out: &mut Vec<u8>) {
    if !decisions.is_empty() {
        put_long(decisions.len() as i64, out);
        for decision in decisions {
            decision.put(out);
        }
    }
    out.push(0);
}

fn hash(previous_hash: Digits<HASH_DIGITS>, datum_before_hash: &[u8]) -> Digits<HASH_DIGITS> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(previous_hash.as_bytes());
    hasher.update(datum_before_hash);
    Digits::of(hasher.finalize().as_bytes())
}
