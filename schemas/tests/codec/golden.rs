//! Old records stay readable. `golden/NAME_VERSION.txt` has records of every published version, one per line, as hex
//! digits and as JSON.
//!
//! For a new version, `WRITE_GOLDEN=1 cargo test -p warptape-schemas` writes its file. An existing file is never
//! written again.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;
use warptape_schemas::known::{self, KnownSchema};
use warptape_schemas::tick::{Scales, TickColumns};
use warptape_schemas::*;

use crate::{risk, samples};

/// Records of the current version, written by the current code.
fn records(schema: KnownSchema) -> Vec<Vec<u8>> {
    let mut records = samples_of(schema);
    records.retain(|payload| fingerprint_of(payload) == Some(schema.fingerprint));
    records
}

fn samples_of(schema: KnownSchema) -> Vec<Vec<u8>> {
    fn each<T>(values: impl IntoIterator<Item = T>, encode: impl Fn(&T, &mut Vec<u8>)) -> Vec<Vec<u8>> {
        let payload = |value: T| {
            let mut payload = Vec::new();
            encode(&value, &mut payload);
            payload
        };
        values.into_iter().map(payload).collect()
    }
    let (trade, quote) = (samples::trade(), samples::quote());
    match schema.name {
        "Tick" => each([trade, quote], |tick, out| encode_tick(tick, out).expect("a good tick")),
        "TickBatch" => {
            let batches =
                [vec![trade.clone(), quote.clone(), trade.clone()], vec![trade.clone(), trade], vec![quote]];
            each(batches, |ticks, out| encode_tick_batch(ticks, out).expect("good ticks"))
        }
        "ScaledTickBatch" => each([samples::scaled_ticks()], |ticks, out| {
            encode_scaled_tick_batch(ticks, out).expect("good ticks");
        }),
        "PackedTickBatch" => each(samples::packed_ticks(), |ticks, out| {
            encode_packed_tick_batch(ticks, out).expect("good ticks");
        }),
        "Signal" => each(samples::flow_signals().into_iter().chain(samples::signals()), encode_signal),
        "JournalEntry" => {
            let mut writer = JournalWriter::new();
            let append = |(input, decisions): (_, Vec<_>)| {
                let mut payload = Vec::new();
                writer.append(
                    1_722_470_400_000_000_000,
                    &input,
                    &decisions,
                    0x0123_4567_89ab_cdef,
                    &mut payload,
                );
                payload
            };
            samples::journal().into_iter().map(append).collect()
        }
        "Snapshot" => each([samples::snapshot()], encode_snapshot),
        "LateTick" => {
            let scaled = samples::scaled_ticks().into_iter().filter(|tick| tick.scales != Scales::E9);
            each(scaled.map(samples::late_tick), encode_late_tick)
        }
        "DeadLetter" => {
            let letters = DeadLetterReason::ALL.map(|reason| samples::dead_letter(reason, Some(b"key")));
            let others = [samples::dead_letter(DeadLetterReason::Other, None), samples::cut_dead_letter()];
            // Dead letters of single records are written with version 2.
            let of_batch = |letter| DeadLetter { last_offset: Some(90), ..letter };
            let of_rows = [&[3][..], &[0, 7, 65_535]].map(samples::dead_letter_of_rows);
            let batches = others.into_iter().chain(letters).map(of_batch);
            each(batches.chain(of_rows), encode_dead_letter)
        }
        "Lifecycle" => each(samples::LIFECYCLE_EVENTS.map(samples::lifecycle), encode_lifecycle),
        "Feed" => each(samples::feeds(), encode_feed),
        "Control" => each(samples::controls(), encode_control),
        "ControlResult" => each(samples::control_results(), encode_control_result),
        "SetEventTime" => each([samples::set_event_time()], encode_set_event_time),
        "RiskRequest" => each(risk::requests(), encode_risk_request),
        "RiskResult" => each(risk::results(), encode_risk_result),
        other => panic!("{other} has no golden records"),
    }
}

/// Returns the record as the current code reads and writes it.
fn rewritten(schema: KnownSchema, payload: &[u8]) -> Vec<u8> {
    fn again<T>(value: Result<T, DecodeError>, encode: impl Fn(&T, &mut Vec<u8>)) -> Vec<u8> {
        let mut payload = Vec::new();
        encode(&value.expect("a golden record"), &mut payload);
        payload
    }
    match schema.name {
        "Tick" | "TickBatch" | "ScaledTickBatch" | "PackedTickBatch" => {
            let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
            let rows =
                TickDecoder::new().decode(payload, &mut symbols, &mut columns).expect("a golden record");
            let ticks: Vec<_> = (0..rows).map(|row| columns.tick(row, &symbols)).collect();
            let mut payload = Vec::new();
            match schema.name {
                "Tick" => encode_tick(&ticks[0], &mut payload),
                "TickBatch" => encode_tick_batch(&ticks, &mut payload),
                "ScaledTickBatch" => encode_scaled_tick_batch(&ticks, &mut payload),
                _ => encode_packed_tick_batch(&ticks, &mut payload),
            }
            .expect("good ticks");
            payload
        }
        "Signal" => again(decode_signal(payload), encode_signal),
        "JournalEntry" => again(decode_journal_entry(payload), encode_journal_entry),
        "Snapshot" => again(decode_snapshot(payload), encode_snapshot),
        "LateTick" => again(decode_late_tick(payload), encode_late_tick),
        "DeadLetter" => again(decode_dead_letter(payload), encode_dead_letter),
        "Lifecycle" => again(decode_lifecycle(payload), encode_lifecycle),
        "Feed" => again(decode_feed(payload), encode_feed),
        "Control" => again(decode_control(payload), encode_control),
        "ControlResult" => again(decode_control_result(payload), encode_control_result),
        "SetEventTime" => again(SetEventTime::of(payload).expect("its schema"), encode_set_event_time),
        "RiskRequest" => again(decode_risk_request(payload), encode_risk_request),
        "RiskResult" => again(decode_risk_result(payload), encode_risk_result),
        other => panic!("{other} has no golden records"),
    }
}

fn path(schema: KnownSchema) -> PathBuf {
    let name = format!("{}_{}.txt", schema.file, schema.version);
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    let byte =
        |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hex digits");
    text.as_bytes().chunks(2).map(byte).collect()
}

#[test]
fn every_version_reads_for_ever() {
    for schema in known::all() {
        let path = path(schema);
        if !path.exists() && std::env::var_os("WRITE_GOLDEN").is_some() {
            assert!(known::CURRENT.contains(&schema), "{} can no longer be written", path.display());
            let fingerprint = avro_fingerprint(schema.text);
            assert_eq!(
                fingerprint,
                Some(schema.fingerprint),
                "{}: known.rs has another fingerprint",
                schema.file
            );
            let line = |payload: Vec<u8>| {
                format!("{}\t{}\n", to_hex(&payload), describe(&payload).expect("a record of ours").1)
            };
            let lines: String = records(schema).into_iter().map(line).collect();
            std::fs::write(&path, lines).expect("a writable folder");
        }
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("{}: {error}; WRITE_GOLDEN=1 writes it for a new version", path.display())
        });
        assert!(!text.is_empty());
        for line in text.lines() {
            let (digits, json) = line.split_once('\t').expect("a tab between bytes and JSON");
            let (payload, json) = (from_hex(digits), serde_json::from_str::<Value>(json).expect("JSON"));
            assert_eq!(describe(&payload), Ok((schema.name, json.clone())));
            let again = rewritten(schema, &payload);
            let (_, now) = describe(&again).expect("a record of ours");
            assert_contains(&now, &json);
            // If an encoder chose another version, journals and checks would break.
            let is_written_so = fingerprint_of(&again) == Some(schema.fingerprint);
            assert!(
                !is_written_so || again == payload,
                "{} is written with other bytes than before",
                path.display()
            );
            assert!(
                is_written_so || !known::CURRENT.contains(&schema),
                "{} is written by nobody",
                path.display()
            );
        }
    }
}

/// Fields may have been added since then, but no other change is allowed. Journal hashes and snapshot checksums cover
/// the bytes, so they may differ.
fn assert_contains(now: &Value, golden: &Value) {
    match (now, golden) {
        (Value::Object(now), Value::Object(golden)) => {
            for (field, value) in golden {
                if field != "checksum" {
                    assert_contains(now.get(field).unwrap_or_else(|| panic!("{field} is gone")), value);
                }
            }
        }
        (Value::Array(now), Value::Array(golden)) => {
            assert_eq!(now.len(), golden.len());
            now.iter().zip(golden).for_each(|(now, golden)| assert_contains(now, golden));
        }
        _ => assert_eq!(now, golden),
    }
}
