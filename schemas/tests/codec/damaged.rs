//! Valid records of every kind, damaged: they give error values or other valid records, and never panic.

use proptest::prelude::*;
use warptape_schemas::*;

use crate::rejected::{decode, long};
use crate::{packed, risk, samples};

/// A change of a valid record.
#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<prop::sample::Index>;
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..12),
        Just(vec![0xff; 9]),
        any::<i64>().prop_map(long)
    ];
    prop_oneof![
        (place(), any::<u8>()).prop_map(|(place, byte)| Damage::Set(place, byte)),
        (place(), 0..8_u8).prop_map(|(place, bit)| Damage::Flip(place, bit)),
        (place(), bytes).prop_map(|(place, bytes)| Damage::Insert(place, bytes)),
        (place(), 1..9_usize).prop_map(|(place, count)| Damage::Remove(place, count)),
    ]
}

fn apply(damage: &Damage, payload: &mut Vec<u8>) {
    if payload.is_empty() {
        return;
    }
    let length = payload.len();
    match damage {
        Damage::Set(place, byte) => payload[place.index(length)] = *byte,
        Damage::Flip(place, bit) => payload[place.index(length)] ^= 1 << bit,
        Damage::Insert(place, bytes) => {
            let at = place.index(length);
            payload.splice(at..at, bytes.iter().copied());
        }
        Damage::Remove(place, count) => {
            let at = place.index(length);
            payload.drain(at..(at + count).min(length));
        }
    }
}

/// A valid record of any kind.
fn record() -> impl Strategy<Value = Vec<u8>> {
    fn bytes<T>(value: T, encode: impl Fn(&T, &mut Vec<u8>)) -> Vec<u8> {
        let mut payload = Vec::new();
        encode(&value, &mut payload);
        payload
    }
    let journal = prop::sample::select(samples::journal()).prop_map(|(input, decisions)| {
        let mut payload = Vec::new();
        JournalWriter::new().append(5, &input, &decisions, 7, &mut payload);
        payload
    });
    prop_oneof![
        samples::tick().prop_map(|tick| bytes(tick, |tick, out| encode_tick(tick, out).expect("good"))),
        samples::ticks()
            .prop_map(|ticks| bytes(ticks, |ticks, out| encode_tick_batch(ticks, out).expect("good"))),
        packed::ticks()
            .prop_map(|ticks| bytes(ticks, |ticks, out| encode_packed_tick_batch(ticks, out).expect("good"))),
        prop::sample::select(
            [samples::signals(), samples::exact_signals(), samples::further_signals()].concat()
        )
        .prop_map(|signal| bytes(signal, encode_signal)),
        journal,
        Just(bytes(samples::snapshot(), encode_snapshot)),
        samples::tick().prop_map(|tick| bytes(samples::late_tick(tick), encode_late_tick)),
        Just(bytes(samples::dead_letter(DeadLetterReason::Other, Some(b"key")), encode_dead_letter)),
        Just(bytes(samples::lifecycle(LifecycleEvent::LaneLost), encode_lifecycle)),
        prop::sample::select(risk::requests()).prop_map(|request| bytes(request, encode_risk_request)),
        prop::sample::select(risk::results()).prop_map(|result| bytes(result, encode_risk_result)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// No input panics, and accepted records are valid: they can be written again.
    #[test]
    fn damaged_records_are_error_values(
        mut payload in record(),
        damages in prop::collection::vec(damage(), 1..4),
        in_datum_only in any::<bool>(),
    ) {
        let header = payload[..HEADER_SIZE].to_vec();
        damages.iter().for_each(|damage| apply(damage, &mut payload));
        if in_datum_only {
            let length = payload.len().min(HEADER_SIZE);
            payload.splice(..length, header);
        }
        if let Ok(ticks) = decode(&payload) {
            for encode in [encode_scaled_tick_batch, encode_packed_tick_batch] {
                let mut again = Vec::new();
                encode(&ticks, &mut again).expect("an accepted record has good ticks");
                let again = decode(&again);
                prop_assert_eq!(again.as_ref(), Ok(&ticks));
            }
        }
        let _ = decode_signal(&payload);
        let _ = decode_journal_entry(&payload);
        let _ = check_chain(GENESIS_HASH, &payload);
        let _ = decode_snapshot(&payload);
        let _ = decode_late_tick(&payload);
        let _ = decode_dead_letter(&payload);
        let _ = decode_lifecycle(&payload);
        let _ = decode_risk_request(&payload);
        let _ = decode_risk_result(&payload);
    }
}

/// The same for `describe`, which parses schemas and is slower.
#[test]
fn damaged_records_are_described_or_refused() {
    let describer = Describer::new();
    for encode in [encode_tick_batch, encode_packed_tick_batch] {
        let mut payload = Vec::new();
        encode(&[samples::trade(), samples::quote()], &mut payload).expect("good");
        assert!(describer.describe(&payload).is_ok());
        let mut refused = 0;
        for place in 0..payload.len() {
            for byte in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                let mut damaged = payload.clone();
                damaged[place] = byte;
                refused += usize::from(describer.describe(&damaged).is_err());
            }
        }
        assert!(refused > payload.len());
    }
}
