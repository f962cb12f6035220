//! The chain of journal entries: each holds a hash of itself and of the entry before it.
//!
//! ```text
//!  hash(n) = blake3( hash(n-1) as 64 hex digits ++ datum(n) without its last field, which is hash(n) )
//! ```
//!
//! The datum is hashed, not the record: the chain holds in whatever frame the datum travels.

use crate::cursor::Cursor;
use crate::error::{ChainError, DecodeError};
use crate::journal::{Decision, Input, JournalEntry};
use crate::known;
use crate::varint::put_long;
use crate::wire::{Wire, put_bytes};
use crate::{frame, hex};

/// The hash before the first entry.
pub const GENESIS_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Hex digits of a hash.
const HASH_DIGITS: usize = 64;
/// Bytes of the last field: two for its length, then the digits.
const HASH_FIELD_SIZE: usize = 2 + HASH_DIGITS;
/// The length 64 as Avro writes it.
const HASH_FIELD_LENGTH: [u8; 2] = [0x80, 0x01];

type HashDigits = [u8; HASH_DIGITS];

/// Writes journal entries that follow each other. A copy of it is the way back when a transaction is aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalWriter {
    next_sequence: i64,
    previous_hash: HashDigits,
}

impl Default for JournalWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl JournalWriter {
    /// At the beginning of a journal.
    pub fn new() -> Self {
        Self { next_sequence: 0, previous_hash: [b'0'; HASH_DIGITS] }
    }

    /// Behind an entry that is in the journal already.
    ///
    /// # Errors
    /// If the entry was not written by a `JournalWriter`: its hash is not 64 lower-case hex digits, or its sequence
    /// number has no successor.
    pub fn resume(last: &JournalEntry) -> Result<Self, ChainError> {
        let previous_hash =
            digits_of(&last.hash).ok_or_else(|| ChainError::NoHash { found: last.hash.clone() })?;
        match last.sequence.checked_add(1) {
            Some(next_sequence) if next_sequence > 0 => Ok(Self { next_sequence, previous_hash }),
            _ => Err(ChainError::NoSequence { found: last.sequence }),
        }
    }

    /// Sequence number of the next entry.
    pub fn next_sequence(&self) -> i64 {
        self.next_sequence
    }

    /// Hash of the last entry, [`GENESIS_HASH`] before the first.
    pub fn previous_hash(&self) -> &str {
        std::str::from_utf8(&self.previous_hash).expect("hex digits are ASCII")
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
        put_bytes(&hex::array::<16>(&state_hash.to_be_bytes()), out);
        self.previous_hash = hash(&self.previous_hash, &out[start..]);
        put_bytes(&self.previous_hash, out);
        self.next_sequence += 1;
        sequence
    }
}

/// Whether an entry is the successor of the one with `previous_hash` ([`GENESIS_HASH`] for the first). It need not be
/// decoded for that, and may be of any version.
///
/// # Errors
/// [`ChainError::Broken`] if it is not, [`ChainError::Unreadable`] if it is no journal entry.
pub fn check_chain(previous_hash: &str, payload: &[u8]) -> Result<(), ChainError> {
    let (fingerprint, datum) = frame::split(payload)?;
    match known::by_fingerprint(fingerprint) {
        None => return Err(DecodeError::UnknownSchema { fingerprint }.into()),
        Some(schema) if schema.name != known::JOURNAL_ENTRY.name => {
            let expected = known::JOURNAL_ENTRY.name;
            return Err(DecodeError::WrongSchema { found: schema.name, expected }.into());
        }
        Some(_) => {}
    }
    let Some((hashed, field)) = datum.split_last_chunk::<HASH_FIELD_SIZE>() else {
        return Err(DecodeError::Truncated { length: datum.len() }.into());
    };
    let mut cursor = Cursor::new(field);
    if !field.starts_with(&HASH_FIELD_LENGTH) {
        return Err(cursor.malformed("no hash at the end of a journal entry").into());
    }
    let found = cursor.string()?;
    let expected = hash(previous_hash.as_bytes(), hashed);
    if found.as_bytes() == expected {
        return Ok(());
    }
    Err(ChainError::Broken {
        expected: String::from_utf8_lossy(&expected).into_owned(),
        found: found.to_owned(),
    })
}

/// The same bytes as [`Wire`] gives for a `Vec` of decisions.
fn put_decisions(decisions: &[Decision], out: &mut Vec<u8>) {
    if !decisions.is_empty() {
        put_long(decisions.len() as i64, out);
        for decision in decisions {
            decision.put(out);
        }
    }
    out.push(0);
}

fn hash(previous_hash: &[u8], datum_before_hash: &[u8]) -> HashDigits {
    let mut hasher = blake3::Hasher::new();
    hasher.update(previous_hash);
    hasher.update(datum_before_hash);
    hex::array(hasher.finalize().as_bytes())
}

fn digits_of(hash: &str) -> Option<HashDigits> {
    let digits = HashDigits::try_from(hash.as_bytes()).ok()?;
    digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{LaneReady, WakeAt, Woke};
    use crate::record::{decode_journal_entry, encode_journal_entry};

    fn entries(count: i64) -> Vec<Vec<u8>> {
        let mut writer = JournalWriter::new();
        (0..count)
            .map(|step| {
                let input = if step % 2 == 0 {
                    Input::Woke(Woke {})
                } else {
                    Input::LaneReady(LaneReady { lane: 3 })
                };
                let decisions = vec![Decision::WakeAt(WakeAt { at_ns: step }); (step % 3) as usize];
                let mut payload = Vec::new();
                assert_eq!(writer.append(1000 + step, &input, &decisions, 0xabc << step, &mut payload), step);
                payload
            })
            .collect()
    }

    fn check(entries: &[Vec<u8>]) -> Result<(), ChainError> {
        let mut previous = GENESIS_HASH.to_owned();
        for payload in entries {
            check_chain(&previous, payload)?;
            previous = decode_journal_entry(payload)?.hash;
        }
        Ok(())
    }

    #[test]
    fn entries_read_back_and_hold_together() {
        let payloads = entries(7);
        check(&payloads).expect("a chain");
        let entry = decode_journal_entry(&payloads[5]).expect("an entry");
        assert_eq!((entry.sequence, entry.at_ns, &*entry.state_hash), (5, 1005, "0000000000015780"));
        assert_eq!(entry.decisions, vec![Decision::WakeAt(WakeAt { at_ns: 5 }); 2]);
        let mut again = Vec::new();
        encode_journal_entry(&entry, &mut again);
        assert_eq!(again, payloads[5]);
        // The rule, written out.
        let datum = &payloads[5][frame::HEADER_SIZE..];
        let before = decode_journal_entry(&payloads[4]).expect("an entry").hash;
        let hashed = [before.as_bytes(), &datum[..datum.len() - 66]].concat();
        assert_eq!(entry.hash, blake3::hash(&hashed).to_hex().as_str());
    }

    #[test]
    fn a_writer_goes_on_behind_the_last_entry() {
        let payloads = entries(4);
        let last = decode_journal_entry(&payloads[2]).expect("an entry");
        let mut writer = JournalWriter::resume(&last).expect("a written entry");
        assert_eq!((writer.next_sequence(), writer.previous_hash()), (3, &*last.hash));
        let fourth = decode_journal_entry(&payloads[3]).expect("an entry");
        let mut payload = Vec::new();
        writer.append(fourth.at_ns, &fourth.input, &fourth.decisions, 0xabc << 3, &mut payload);
        assert_eq!(payload, payloads[3]);
        for hash in ["", "0", &"G".repeat(64), &"A".repeat(64), &"ä".repeat(32)] {
            let damaged = JournalEntry { hash: hash.to_owned(), ..last.clone() };
            assert_eq!(JournalWriter::resume(&damaged), Err(ChainError::NoHash { found: hash.to_owned() }));
        }
        for sequence in [i64::MAX, -1] {
            let damaged = JournalEntry { sequence, ..last.clone() };
            assert_eq!(JournalWriter::resume(&damaged), Err(ChainError::NoSequence { found: sequence }));
        }
    }

    #[test]
    fn every_change_removal_and_addition_breaks_the_chain() {
        let payloads = entries(5);
        for index in 0..payloads.len() {
            for bit in 0..8 * payloads[index].len() {
                let mut changed = payloads.clone();
                changed[index][bit / 8] ^= 1 << (bit % 8);
                assert!(check(&changed).is_err(), "bit {bit} of entry {index}");
            }
            let mut doubled = payloads.clone();
            doubled.insert(index, payloads[index].clone());
            assert!(check(&doubled).is_err(), "entry {index} twice");
            let mut removed = payloads.clone();
            removed.remove(index);
            // Cutting off the end leaves a chain; the consumer of the journal knows its end.
            assert_eq!(check(&removed).is_err(), index + 1 < payloads.len(), "entry {index} removed");
        }
    }
}
