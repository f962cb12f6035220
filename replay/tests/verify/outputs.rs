//! Verifies changed outputs.

use warptape_eventlog::Record;
use warptape_replay::{Divergence, OutputDivergence, OutputProblem};
use warptape_schemas::{decode_signal, encode_signal};

use crate::recording::{Plan, Random, Recording, options, record};
use crate::tampered::Tampered;
use crate::{records, verified};

/// Returns the divergence of an output partition after a change.
fn diverged_output(
    recording: &Recording,
    topic: &str,
    partition: i32,
    change: impl FnOnce(&mut Vec<Record>),
) -> OutputDivergence {
    let mut outputs = records(&recording.log, topic, partition);
    change(&mut outputs);
    let report = verified(&Tampered::new(&recording.log, topic, partition, outputs), &options()).unwrap();
    match report.divergence {
        Some(Divergence::Output(divergence)) => {
            assert_eq!((divergence.topic.as_str(), divergence.partition), (topic, partition));
            divergence
        }
        other => panic!("a divergence of {topic} expected, found {other:?}"),
    }
}

#[test]
fn a_changed_signal_is_named_by_symbol_and_field() {
    let recording = record(Plan::small(6));
    let divergence = diverged_output(&recording, "signals", 1, |signals| {
        let mut signal = decode_signal(&signals[10].value).unwrap().into_owned();
        signal.value += 1.0;
        signals[10].value.clear();
        encode_signal(&signal, &mut signals[10].value);
    });
    let text = divergence.to_string();
    let OutputProblem::Changed { differences } = &divergence.problem else { panic!("{text}") };
    assert_eq!((divergence.offset, differences.len(), differences[0].field.as_str()), (10, 1, "value"));
    let symbol = divergence.symbol.clone().unwrap();
    assert!(symbol.starts_with("TEST:P1S"), "{symbol}");
    assert!(
        text.starts_with(&format!("signals partition 1 offset 10, symbol {symbol}: different\n  value\n")),
        "{text}"
    );
}

#[test]
fn every_flipped_byte_of_a_signal_is_found() {
    let recording = record(Plan { records: 3, ..Plan::small(7) });
    let signals = records(&recording.log, "signals", 0);
    let index = signals.len() / 2;
    let mut random = Random(7);
    for position in 0..signals[index].value.len() {
        let flip = random.below(255) as u8 + 1;
        let divergence =
            diverged_output(&recording, "signals", 0, |signals| signals[index].value[position] ^= flip);
        assert_eq!(divergence.offset, index as i64, "byte {position}, {flip:#04x}: {divergence}");
        let named =
            matches!(divergence.problem, OutputProblem::Changed { .. } | OutputProblem::Unreadable { .. });
        assert!(named, "byte {position}, {flip:#04x}: {divergence}");
    }
}

#[test]
fn a_changed_key_is_a_difference() {
    let recording = record(Plan::small(6));
    let divergence = diverged_output(&recording, "signals", 0, |signals| signals[3].key = None);
    let OutputProblem::Changed { differences } = &divergence.problem else { panic!("{divergence}") };
    assert_eq!((divergence.offset, differences[0].field.as_str()), (3, "key"));
}

#[test]
fn missing_and_surplus_records_are_counted() {
    let recording = record(Plan::small(8));
    let missing = |divergence: &OutputDivergence| match divergence.problem {
        OutputProblem::Missing { count, .. } => Some((divergence.offset, count)),
        _ => None,
    };
    let surplus = |divergence: &OutputDivergence| match divergence.problem {
        OutputProblem::Surplus { count, .. } => Some((divergence.offset, count)),
        _ => None,
    };
    let renumber = |signals: &mut Vec<Record>| {
        signals.iter_mut().zip(0..).for_each(|(signal, offset)| signal.offset = offset);
    };
    let length = records(&recording.log, "signals", 0).len();
    let found = diverged_output(&recording, "signals", 0, |signals| drop(signals.drain(20..23)));
    assert_eq!(missing(&found), Some((23, 3)), "{found}");
    let found = diverged_output(&recording, "signals", 0, |signals| signals.truncate(length - 7));
    assert_eq!(missing(&found), Some((length as i64, 7)), "{found}");
    let found = diverged_output(&recording, "signals", 0, Vec::clear);
    assert_eq!(missing(&found), Some((length as i64, length as u64)), "{found}");
    let found = diverged_output(&recording, "signals", 0, |signals| {
        signals.insert(20, signals[19].clone());
        signals.insert(20, signals[19].clone());
        renumber(signals);
    });
    assert_eq!(surplus(&found), Some((20, 2)), "{found}");
    let found = diverged_output(&recording, "signals", 0, |signals| {
        signals.push(Record { value: b"junk".to_vec(), ..signals[0].clone() });
        renumber(signals);
    });
    assert_eq!(surplus(&found), Some((length as i64, 1)), "{found}");
    assert!(found.to_string().contains("1 too many") && found.to_string().contains("4 bytes"), "{found}");
    // Both records exist in another order: neither is missing or surplus.
    let found = diverged_output(&recording, "signals", 0, |signals| {
        signals.swap(20, 21);
        renumber(signals);
    });
    assert!(matches!(found.problem, OutputProblem::Changed { .. }) && found.offset == 20, "{found}");
}

#[test]
fn late_ticks_and_dead_letters_are_compared() {
    let recording = record(Plan::small(9));
    for topic in ["late", "dead-letter"] {
        let last = records(&recording.log, topic, 0).len() - 1;
        let divergence = diverged_output(&recording, topic, 0, |records| {
            let end = records[last].value.len() - 1;
            records[last].value[end] ^= 2;
        });
        assert_eq!(divergence.offset, last as i64, "{divergence}");
        assert_eq!(divergence.symbol.is_some(), topic == "late", "{divergence}");
        let divergence = diverged_output(&recording, topic, 0, |records| drop(records.pop()));
        assert!(matches!(divergence.problem, OutputProblem::Missing { count: 1, .. }), "{divergence}");
    }
}

/// Many late ticks follow the change, so the rerun ends before it reaches the last signals.
#[test]
fn a_changed_late_tick_is_not_blamed_on_signals() {
    let recording = record(Plan { records: 260, ..Plan::small(14) });
    assert!(records(&recording.log, "late", 0).len() > 300);
    let divergence = diverged_output(&recording, "late", 0, |records| {
        let end = records[3].value.len() - 1;
        records[3].value[end] ^= 2;
    });
    assert_eq!((divergence.topic.as_str(), divergence.offset), ("late", 3), "{divergence}");
    assert!(matches!(divergence.problem, OutputProblem::Changed { .. }), "{divergence}");
}
