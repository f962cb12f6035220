//! Hashes chain journal entries, and any change breaks the chain.

use warptape_schemas::hex::Digits;
use warptape_schemas::journal::{Decision, Input, JournalEntry, LaneReady, WakeAt, Woke};
use warptape_schemas::{
    ChainError, GENESIS_HASH, HEADER_SIZE, JournalWriter, check_chain, decode_journal_entry,
    encode_journal_entry, recorded_hash,
};

/// Header of entries of version 11.
const HEADER_11: [u8; HEADER_SIZE] = [0xc3, 0x01, 0x6e, 0x3d, 0x33, 0x9c, 0x82, 0x4f, 0x32, 0x02];

fn entries(count: i64) -> Vec<Vec<u8>> {
    let mut writer = JournalWriter::new();
    (0..count)
        .map(|step| {
            let input =
                if step % 2 == 0 { Input::Woke(Woke {}) } else { Input::LaneReady(LaneReady { lane: 3 }) };
            let decisions = vec![Decision::WakeAt(WakeAt { at_ns: step }); (step % 3) as usize];
            let mut payload = Vec::new();
            assert_eq!(writer.append(1000 + step, &input, &decisions, 0xabc << step, &mut payload), step);
            payload
        })
        .collect()
}

fn check(entries: &[Vec<u8>]) -> Result<(), ChainError> {
    let mut previous = GENESIS_HASH;
    for payload in entries {
        check_chain(previous, payload)?;
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
    // The rule of the chain, written out.
    let datum = &payloads[5][HEADER_SIZE..];
    let before = decode_journal_entry(&payloads[4]).expect("an entry").hash;
    let hashed = [before.as_bytes(), &datum[..datum.len() - 32]].concat();
    assert_eq!(*entry.hash, *blake3::hash(&hashed).to_hex());
}

#[test]
fn a_writer_goes_on_behind_the_last_entry() {
    let payloads = entries(4);
    let last = decode_journal_entry(&payloads[2]).expect("an entry");
    let mut writer = JournalWriter::resume(&last).expect("a written entry");
    assert_eq!((writer.next_sequence(), writer.previous_hash()), (3, last.hash));
    let fourth = decode_journal_entry(&payloads[3]).expect("an entry");
    let mut payload = Vec::new();
    writer.append(fourth.at_ns, &fourth.input, &fourth.decisions, 0xabc << 3, &mut payload);
    assert_eq!(payload, payloads[3]);
    for hash in ["G".repeat(64), "A".repeat(64)] {
        let damaged =
            JournalEntry { hash: Digits::try_from(hash.clone()).expect("64 digits"), ..last.clone() };
        assert_eq!(JournalWriter::resume(&damaged), Err(ChainError::NoHash { found: hash }));
    }
    for sequence in [i64::MAX, -1] {
        let damaged = JournalEntry { sequence, ..last.clone() };
        assert_eq!(JournalWriter::resume(&damaged), Err(ChainError::NoSequence { found: sequence }));
    }
}

/// Returns an entry as version 11 wrote it: hashes are texts of hex digits.
fn as_version_11(previous: Digits<64>, payload: &[u8]) -> Vec<u8> {
    let datum = &payload[HEADER_SIZE..];
    let (rest, hashes) = datum.split_at(datum.len() - 40);
    let mut payload = HEADER_11.to_vec();
    payload.extend_from_slice(rest);
    payload.push(2 * 16);
    payload.extend_from_slice(Digits::<16>::of(&hashes[..8]).as_bytes());
    let hash = blake3::hash(&[previous.as_bytes(), &payload[HEADER_SIZE..]].concat()).to_hex();
    payload.extend_from_slice(&[0x80, 0x01]);
    payload.extend_from_slice(hash.as_bytes());
    payload
}

#[test]
fn a_journal_of_version_11_is_continued_in_one_chain() {
    let newer = entries(4);
    let mut payloads = Vec::new();
    let mut previous = GENESIS_HASH;
    for payload in &newer[..3] {
        payloads.push(as_version_11(previous, payload));
        let entry = decode_journal_entry(&payloads[payloads.len() - 1]).expect("an entry of version 11");
        previous = entry.hash;
        assert_eq!(
            JournalEntry { hash: previous, ..decode_journal_entry(payload).expect("an entry") },
            entry
        );
        assert_eq!(recorded_hash(&payloads[payloads.len() - 1]), Some(previous));
    }
    let last = decode_journal_entry(&payloads[2]).expect("an entry of version 11");
    let mut payload = Vec::new();
    JournalWriter::resume(&last).expect("a hash").append(7, &Input::Woke(Woke {}), &[], 1, &mut payload);
    payloads.push(payload);
    check(&payloads).expect("a chain");
    for index in 0..payloads.len() {
        for bit in 0..8 * payloads[index].len() {
            let mut changed = payloads.clone();
            changed[index][bit / 8] ^= 1 << (bit % 8);
            assert!(check(&changed).is_err(), "bit {bit} of entry {index}");
        }
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
        // A truncated chain is still valid; the reader of the journal knows where it must end.
        assert_eq!(check(&removed).is_err(), index + 1 < payloads.len(), "entry {index} removed");
    }
}
