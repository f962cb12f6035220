//! Records other than ticks: they read back, and apache-avro reads the same values.

use apache_avro::types::Value;
use warptape_schemas::control::{ChoosePolicy, Control, ControlCommand, WeighTenant};
use warptape_schemas::hex::{self, Digits};
use warptape_schemas::journal::{Decision, Input, JournalEntry};
use warptape_schemas::known;
use warptape_schemas::signal::{Bar, INDICATORS, Signal};
use warptape_schemas::*;

use crate::avro::{Published, Record, long_of};
use crate::{samples, ticks};

fn encoded<T>(value: &T, encode: impl Fn(&T, &mut Vec<u8>)) -> Vec<u8> {
    let mut payload = vec![7];
    encode(value, &mut payload);
    assert_eq!(payload.remove(0), 7, "appended");
    payload
}

#[test]
fn signals() {
    for signal in samples::signals() {
        let payload = encoded(&signal, encode_signal);
        assert_eq!(decode_signal(&payload), Ok(signal.clone()));
        let head = SignalHead {
            symbol: &signal.symbol,
            kind: signal.kind,
            bar_spec: &signal.bar_spec,
            bar_end_ns: signal.bar_end_ns,
        };
        assert_eq!(decode_signal_head(&payload), Ok(head));
        assert!((0..20).all(|length| decode_signal_head(&payload[..length]).is_err()));
        let schema = match (&signal.name, &signal.bar) {
            (Some(_), _) => known::SIGNAL,
            (None, Some(_)) => known::SIGNAL_4,
            (None, None) => known::SIGNAL_1,
        };
        assert_signal(&Published::new(schema).read(&payload), &signal);
    }
    let published = Published::new(known::SIGNAL_4);
    for signal in samples::exact_signals() {
        let payload = encoded(&signal, encode_signal);
        assert_eq!(decode_signal(&payload), Ok(signal.clone()));
        let (bar, record) = (signal.bar.expect("a bar"), published.read(&payload));
        let is_null = |field| record.optional(field).is_none();
        assert_eq!([is_null("open_e9"), is_null("ask_price_e9")], [bar.open_e9.is_none(); 2]);
        assert_eq!(record.optional("volume_e9").map(long_of), Some(bar.volume_e9));
        let Value::Union(1, members) = record.get("exact") else { panic!("an exact bar") };
        let Value::Record(members) = &**members else { panic!("a record") };
        let text = |name: &str| {
            let (_, value) = members.iter().find(|(found, _)| found == name).expect("a field");
            let Value::String(text) = value else { panic!("{name} is a text") };
            text.clone()
        };
        let found = ["open", "high", "low", "close", "volume", "bid_price", "ask_price"].map(text);
        let expected = [
            "0.000000812345678901",
            "9223372036854775807",
            "-37.63",
            "0",
            "18999999999.000000001",
            "-0.000000000000000001",
            "0.000000000000000128",
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn signals_with_further_indicators() {
    let published = Published::new(known::SIGNAL_4);
    for signal in samples::further_signals() {
        let payload = encoded(&signal, encode_signal);
        assert_eq!(decode_signal(&payload), Ok(signal.clone()));
        let record = published.read(&payload);
        assert_eq!(record.optional("exact").is_some(), signal.bar.expect("a bar").exact.is_some());
        let Value::Map(found) = record.get("further_indicators") else { panic!("a map") };
        let expected = [("a", 61_000.25), ("b", -0.5)];
        assert_eq!(found, &expected.map(|(name, value)| (name.to_owned(), Value::Double(value))).into());
        let (_, described) = describe(&payload).expect("a record of ours");
        assert_eq!(described["further_indicators"], serde_json::json!({"a": 61_000.25, "b": -0.5}));
    }
}

#[test]
fn signals_with_sides_of_trades_and_sizes_of_quotes() {
    let published = Published::new(known::SIGNAL_4);
    for signal in samples::flow_signals() {
        let payload = encoded(&signal, encode_signal);
        assert_eq!(decode_signal(&payload), Ok(signal.clone()));
        let (bar, record) = (signal.bar.expect("a bar"), published.read(&payload));
        let numbers =
            ["buy_volume_e9", "sell_volume_e9", "buy_trades", "sell_trades", "bid_size_e9", "ask_size_e9"];
        let expected = [
            bar.buy_volume_e9,
            bar.sell_volume_e9,
            bar.buy_trades,
            bar.sell_trades,
            bar.bid_size_e9,
            bar.ask_size_e9,
        ];
        assert_eq!(numbers.map(|name| record.optional(name).map(long_of)), expected);
        assert_eq!(record.optional("partial"), Some(&Value::Boolean(bar.partial == Some(true))));
        let (_, described) = describe(&payload).expect("a record of ours");
        let exact = bar.exact_flow.map(|_| "18999999999.000000001");
        assert_eq!(described["exact_flow"]["buy_volume"].as_str(), exact);
    }
}

#[test]
fn an_indicator_that_is_given_twice_is_refused() {
    let mut payload = encoded(&samples::further_signals()[0], encode_signal);
    let name = payload.iter().rposition(|byte| *byte == b'b').expect("the second name");
    payload[name] = b'a';
    let Err(DecodeError::Malformed { what, .. }) = decode_signal(&payload) else { panic!("it is refused") };
    assert_eq!(what, "a key of a map that is given twice");
}

#[test]
fn a_bar_of_which_a_part_is_null_is_refused() {
    let whole = samples::signals().into_iter().find(|signal| signal.bar.is_some()).expect("a bar");
    let read = |signal: &Signal<'_>| {
        let payload = encoded(signal, encode_signal);
        match decode_signal(&payload) {
            Err(DecodeError::Malformed { what, .. }) => Some(what),
            read => {
                assert_eq!(read.as_ref(), Ok(signal));
                None
            }
        }
    };
    let with = |change: fn(&mut Bar)| {
        let mut signal = whole.clone();
        change(signal.bar.as_mut().expect("a bar"));
        read(&signal)
    };
    let without_price = Some("a bar without some of its prices");
    assert_eq!(with(|_| ()), None);
    assert_eq!(with(|bar| bar.low_e9 = None), without_price);
    assert_eq!(with(|bar| bar.ask_price_e9 = None), without_price);
    // Only `exact` has the prices.
    let no_prices = |bar: &mut Bar| {
        for price in [&mut bar.open_e9, &mut bar.high_e9, &mut bar.low_e9, &mut bar.close_e9] {
            *price = None;
        }
        (bar.bid_price_e9, bar.ask_price_e9) = (None, None);
    };
    assert_eq!(with(no_prices), without_price);
    // The bar is inconsistent: `exact` has all prices, and the bar itself has one of them, or all but one.
    let [mut other_prices, mut large_volume] =
        <[_; 2]>::try_from(samples::exact_signals()).expect("two signals");
    assert_eq!([read(&other_prices), read(&large_volume)], [None; 2]);
    other_prices.bar.as_mut().expect("a bar").high_e9 = Some(1);
    large_volume.bar.as_mut().expect("a bar").high_e9 = None;
    assert_eq!([read(&other_prices), read(&large_volume)], [without_price; 2]);

    // A signal without a bar ends with nulls; a value replaces the null of an indicator.
    let mut payload = encoded(&Signal { bar: None, ..whole.clone() }, encode_signal);
    *payload.last_mut().expect("bytes") = 2;
    payload.extend_from_slice(&1.5_f64.to_le_bytes());
    let Err(DecodeError::Malformed { what, .. }) = decode_signal(&payload) else { panic!("it is refused") };
    assert_eq!(what, "a part of Bar is null, and another is not");
}

fn assert_signal(record: &Record, signal: &Signal<'_>) {
    let kind = format!("{:?}", signal.kind).to_uppercase();
    assert_eq!(record.text("kind").replace('_', ""), kind);
    assert_eq!((record.text("symbol"), record.text("bar_spec")), (&*signal.symbol, &*signal.bar_spec));
    let longs =
        ["bar_start_ns", "bar_end_ns", "source_offset", "source_index"].map(|field| record.long(field));
    let index = i64::from(signal.source_index);
    assert_eq!(longs, [signal.bar_start_ns, signal.bar_end_ns, signal.source_offset, index]);
    assert_eq!(record.get("value"), &Value::Double(signal.value));
    assert_eq!(record.get("threshold"), &Value::Double(signal.threshold));
    let bar = |field| record.optional(field).map(long_of);
    let expected = signal.bar.as_ref();
    assert_eq!(bar("open_e9"), expected.and_then(|bar| bar.open_e9));
    assert_eq!(bar("high_e9"), expected.and_then(|bar| bar.high_e9));
    assert_eq!(bar("low_e9"), expected.and_then(|bar| bar.low_e9));
    assert_eq!(bar("close_e9"), expected.and_then(|bar| bar.close_e9));
    assert_eq!(bar("volume_e9"), expected.map(|bar| bar.volume_e9));
    assert_eq!(bar("trades"), expected.map(|bar| bar.trades));
    assert_eq!(bar("bid_price_e9"), expected.and_then(|bar| bar.bid_price_e9));
    assert_eq!(bar("ask_price_e9"), expected.and_then(|bar| bar.ask_price_e9));
    for (index, name) in INDICATORS.into_iter().enumerate() {
        let value = expected.and_then(|bar| bar.indicators[index]).map(Value::Double);
        assert_eq!(record.optional(name), value.as_ref(), "{name}");
    }
}

fn entries() -> Vec<JournalEntry> {
    let mut entries = Vec::new();
    for (sequence, (input, decisions)) in (0..).zip(samples::journal()) {
        let (state_hash, hash) =
            (Digits::of(&0x0123_4567_89ab_cdef_u64.to_be_bytes()), Digits::of(&[0xff; 32]));
        entries.push(JournalEntry {
            sequence,
            at_ns: 1_722_470_400_000_000_000,
            input,
            decisions,
            state_hash,
            hash,
        });
    }
    entries
}

/// Compares an entry's datum, read with apache-avro's own value model, with the value that serde makes from the entry.
#[test]
fn journal_entries() {
    let published = Published::new(known::JOURNAL_ENTRY);
    for entry in entries() {
        let payload = encoded(&entry, encode_journal_entry);
        assert_eq!(decode_journal_entry(&payload), Ok(entry.clone()));
        let record = published.read(&payload);
        assert_eq!(record.long("sequence"), entry.sequence);
        assert_eq!(record.long("at_ns"), entry.at_ns);
        for (name, digits) in [("state_hash", &*entry.state_hash), ("hash", &*entry.hash)] {
            let Value::Fixed(_, bytes) = record.get(name) else { panic!("{name} is not fixed") };
            assert_eq!(hex::text(bytes), digits, "{name}");
        }
        let input = serde_json::to_value(&entry.input).expect("JSON");
        assert_eq!(record.branch("input"), input_branch(&entry.input));
        assert_same(record.get("input"), &input);
        let decisions = record.items("decisions");
        assert_eq!(decisions.len(), entry.decisions.len());
        for (found, decision) in decisions.iter().zip(&entry.decisions) {
            let Value::Union(branch, _) = found else { panic!("no union: {found:?}") };
            assert_eq!(*branch, decision_branch(decision));
            assert_same(found, &serde_json::to_value(decision).expect("JSON"));
        }
    }
}

/// Returns the index of the variant's branch in the schema's union.
fn input_branch(input: &Input) -> u32 {
    match input {
        Input::Started(_) => 0,
        Input::PartitionAssigned(_) => 1,
        Input::PartitionRevoked(_) => 2,
        Input::Arrived(_) => 3,
        Input::Completed(_) => 4,
        Input::LaneLost(_) => 5,
        Input::LaneReady(_) => 6,
        Input::Woke(_) => 7,
        Input::Draining(_) => 8,
        Input::Measured(_) => 9,
        Input::Released(_) => 10,
        Input::TaskArrived(_) => 11,
        Input::SliceDone(_) => 12,
        Input::TaskDropped(_) => 13,
        Input::Sealed(_) => 14,
        Input::Priced(_) => 15,
        Input::Sampled(_) => 16,
        Input::Control(_) => 17,
        Input::Checkpoint(_) => 18,
        Input::CommitEnded(_) => 19,
        Input::Trained(_) => 20,
        Input::Positions(_) => 21,
    }
}

fn decision_branch(decision: &Decision) -> u32 {
    match decision {
        Decision::Place(_) => 0,
        Decision::Dispatch(_) => 1,
        Decision::Pause(_) => 2,
        Decision::Resume(_) => 3,
        Decision::Fence(_) => 4,
        Decision::Restore(_) => 5,
        Decision::WakeAt(_) => 6,
        Decision::Release(_) => 7,
        Decision::Admit(_) => 8,
        Decision::Reject(_) => 9,
        Decision::Split(_) => 10,
        Decision::Reserve(_) => 11,
        Decision::RunSlice(_) => 12,
        Decision::Expire(_) => 13,
        Decision::Finish(_) => 14,
        Decision::Assign(_) => 15,
        Decision::AskPrices(_) => 16,
        Decision::Controlled(_) => 17,
        Decision::Breaker(_) => 18,
        Decision::Headroom(_) => 19,
        Decision::Drift(_) => 20,
        Decision::Shed(_) => 21,
        Decision::FellBack(_) => 22,
        Decision::Scale(_) => 23,
        Decision::Shadow(_) => 24,
    }
}

/// Compares an Avro value with the JSON that serde makes of the same Rust value: field names, numbers and enum symbols.
/// A variant is `{"Name": …}` in JSON and a branch in Avro.
fn assert_same(avro: &Value, json: &serde_json::Value) {
    match (avro, json) {
        (Value::Union(0, inner), serde_json::Value::Null) => assert_eq!(**inner, Value::Null),
        (Value::Union(_, inner), serde_json::Value::Object(variant)) if variant.len() == 1 => {
            assert_same(inner, variant.values().next().expect("a variant"));
        }
        // JSON has no wrapper for a nullable value.
        (Value::Union(1, inner), json) => assert_same(inner, json),
        (Value::Record(fields), serde_json::Value::Object(members)) => {
            assert!(
                fields
                    .iter()
                    .map(|(name, _)| name)
                    .collect::<std::collections::BTreeSet<_>>()
                    .into_iter()
                    .eq(members.keys())
            );
            fields.iter().for_each(|(name, value)| assert_same(value, &members[name]));
        }
        (Value::Array(items), serde_json::Value::Array(expected)) => {
            assert_eq!(items.len(), expected.len());
            items.iter().zip(expected).for_each(|(item, expected)| assert_same(item, expected));
        }
        (Value::Boolean(value), expected) => assert_eq!(expected.as_bool(), Some(*value)),
        (Value::Long(number), expected) => assert_eq!(expected.as_i64(), Some(*number)),
        (Value::Int(number), expected) => assert_eq!(expected.as_i64(), Some(i64::from(*number))),
        (Value::String(text) | Value::Enum(_, text), expected) => {
            assert_eq!(expected.as_str(), Some(text.as_str()))
        }
        (Value::Bytes(bytes), expected) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(expected.as_str(), Some(digits.as_str()));
        }
        (avro, json) => panic!("{avro:?} is not {json}"),
    }
}

#[test]
fn snapshots() {
    let snapshot = samples::snapshot();
    let payload = encoded(&snapshot, encode_snapshot);
    assert_eq!(decode_snapshot(&payload), Ok(snapshot.clone()));
    let record = Published::new(known::SNAPSHOT).read(&payload);
    let longs =
        ["partition", "group", "offset", "part", "parts", "state_version"].map(|field| record.long(field));
    assert_eq!(longs, [2, -1, 1_000_000, 1, 3, 1]);
    assert_eq!(record.bytes("state"), snapshot.state);
    let hashed = &payload[HEADER_SIZE..payload.len() - 32];
    assert_eq!(record.bytes("checksum"), blake3::hash(hashed).as_bytes());
    // The checksum covers every bit of the datum.
    for bit in 0..8 * (payload.len() - HEADER_SIZE) {
        let mut damaged = payload.clone();
        damaged[HEADER_SIZE + bit / 8] ^= 1 << (bit % 8);
        assert!(decode_snapshot(&damaged).is_err(), "bit {bit}");
    }
}

#[test]
fn late_ticks() {
    for tick in [samples::trade(), samples::quote()] {
        let late = samples::late_tick(tick);
        let payload = encoded(&late, encode_late_tick);
        assert_eq!(decode_late_tick(&payload), Ok(late.clone()));
        let record = Published::new(known::LATE_TICK_1).read(&payload);
        ticks::assert_tick(&record, &late.tick());
        assert_eq!(record.text("topic"), "ticks");
        let longs =
            ["partition", "offset", "index", "watermark_ns", "lateness_ns"].map(|field| record.long(field));
        assert_eq!(longs, [1, 77, 12, late.watermark_ns, 1500]);
    }
    let scaled = samples::scaled_ticks().remove(0);
    let payload = encoded(&samples::late_tick(scaled.clone()), encode_late_tick);
    assert_eq!(decode_late_tick(&payload).map(|late| late.tick()), Ok(scaled.clone()));
    let record = Published::new(known::LATE_TICK).read(&payload);
    assert_eq!(
        [record.long("price_e9"), record.long("size_e9")],
        [0, 0],
        "nobody takes them for numbers in 1e-9"
    );
    let Value::Union(1, numbers) = record.get("scaled") else { panic!("numbers with scales") };
    let Value::Record(numbers) = &**numbers else { panic!("a record") };
    let number = |name: &str| long_of(&numbers.iter().find(|(found, _)| found == name).expect("a field").1);
    let found = ["price_scale", "size_scale", "price", "size"].map(number);
    assert_eq!(found, [14, 0, scaled.price_e9, scaled.size_e9]);
}

#[test]
fn dead_letters() {
    for reason in DeadLetterReason::ALL {
        for key in [None, Some(&b""[..]), Some(&b"BINANCE:BTCUSDT"[..])] {
            let letter = samples::dead_letter(reason, key);
            let payload = encoded(&letter, encode_dead_letter);
            assert_eq!(decode_dead_letter(&payload), Ok(letter.clone()));
            let record = Published::of(&payload).read(&payload);
            assert_eq!((record.text("reason"), record.text("detail")), (reason.name(), &*letter.detail));
            assert_eq!(record.optional("key"), key.map(|key| Value::Bytes(key.to_vec())).as_ref());
            assert_eq!(record.bytes("value"), letter.value);
            assert_eq!(
                (record.text("topic"), record.long("partition"), record.long("offset")),
                ("ticks", 1, 78)
            );
        }
    }
}

#[test]
fn dead_letters_of_rows_name_them() {
    let letter = samples::dead_letter_of_rows(&[3, 9]);
    let payload = encoded(&letter, encode_dead_letter);
    assert_eq!(decode_dead_letter(&payload), Ok(letter));
    let record = Published::new(known::DEAD_LETTER).read(&payload);
    assert_eq!((record.text("reason"), record.bytes("value")), ("BAD_PRICE", &[0xc3, 0x01, 0xff][..]));
    assert_eq!(record.items("rows"), [Value::Int(3), Value::Int(9)]);
}

#[test]
fn dead_letters_are_bounded_and_know_their_originals() {
    let letter = |key: Option<usize>, value: usize| DeadLetter {
        key: key.map(|bytes| vec![b'k'; bytes]),
        value: vec![b'v'; value],
        ..samples::dead_letter(DeadLetterReason::Other, None)
    };
    let (key_max, value_max) = (DeadLetter::KEY_BYTES_MAX, DeadLetter::VALUE_BYTES_MAX);
    for (key, value) in [(None, 0), (None, value_max), (Some(0), 7), (Some(key_max), value_max)] {
        assert_eq!(letter(key, value).bounded(), letter(key, value), "it is whole");
        assert!(letter(key, value).is_of(letter(key, value).key.as_deref(), &letter(key, value).value));
    }
    for (key, value) in [(None, value_max + 1), (Some(key_max + 1), 0), (Some(2 << 20), 20 << 20)] {
        let whole = letter(key, value);
        let cut = whole.clone().bounded();
        let payload = encoded(&cut, encode_dead_letter);
        assert!(payload.len() < key_max + value_max + 2_000, "{} bytes", payload.len());
        assert_eq!(decode_dead_letter(&payload), Ok(cut.clone()));
        assert_eq!(cut.value_bytes(), value as u64);
        assert!(cut.is_of(whole.key.as_deref(), &whole.value));
        let mut other = whole.value.clone();
        other.push(0);
        assert!(!cut.is_of(whole.key.as_deref(), &other) && !cut.is_of(Some(b"other"), &whole.value));
        let record = Published::of(&payload).read(&payload);
        assert!(record.optional("cut").is_some());
    }
    let long = DeadLetter { detail: "\u{20ac}".repeat(1_000), ..letter(None, 1) }.bounded();
    assert_eq!(long.detail, "\u{20ac}".repeat(DeadLetter::DETAIL_BYTES_MAX / 3));
    assert_eq!(long.cut, None);
}

#[test]
fn lifecycles() {
    for event in samples::LIFECYCLE_EVENTS {
        let lifecycle = samples::lifecycle(event);
        let payload = encoded(&lifecycle, encode_lifecycle);
        assert_eq!(decode_lifecycle(&payload), Ok(lifecycle.clone()));
        let record = Published::new(known::LIFECYCLE).read(&payload);
        assert_eq!(record.text("event").replace('_', ""), format!("{event:?}").to_uppercase());
        assert_eq!((record.long("at_ns"), record.text("node")), (lifecycle.at_ns, "demo"));
        assert_eq!(record.text("detail"), lifecycle.detail);
    }
}

#[test]
fn controls() {
    for (branch, control) in samples::controls().into_iter().enumerate() {
        let payload = encoded(&control, encode_control);
        assert_eq!(decode_control(&payload), Ok(control.clone()));
        let record = Published::new(known::CONTROL).read(&payload);
        let found = ["id", "by"].map(|field| record.text(field));
        assert_eq!(found, [&*control.id, &*control.by]);
        assert_eq!((record.long("at_ns"), record.long("deadline_ns")), (control.at_ns, control.deadline_ns));
        // The three modes of a breaker belong to one branch.
        let expected = [0, 1, 2, 3, 4, 5, 5, 5, 6, 7][branch];
        assert_eq!(record.branch("command"), expected);
        assert_same(record.get("command"), &serde_json::to_value(&control.command).expect("JSON"));
    }
    for result in samples::control_results() {
        let payload = encoded(&result, encode_control_result);
        assert_eq!(decode_control_result(&payload), Ok(result.clone()));
        let record = Published::new(known::CONTROL_RESULT).read(&payload);
        assert_eq!((record.text("id"), record.text("node")), (&*result.id, &*result.node));
        assert_eq!(record.text("outcome"), format!("{:?}", result.outcome).to_uppercase());
        assert_eq!((record.text("detail"), record.long("offset")), (&*result.detail, result.offset));
        assert_eq!(record.optional("sequence"), result.sequence.map(Value::Long).as_ref());
    }
}

#[test]
fn long_texts_of_commands_are_found() {
    let long = "x".repeat(257);
    let control = samples::controls().remove(4);
    assert_eq!(control.long_text(), None);
    assert_eq!(Control { id: long.clone(), ..control.clone() }.long_text(), Some(("the id", 257)));
    assert_eq!(Control { by: long.clone(), ..control.clone() }.long_text(), Some(("the sender", 257)));
    let command = ControlCommand::WeighTenant(WeighTenant { tenant: long.clone(), weight: 1 });
    assert_eq!(Control { command, ..control.clone() }.long_text(), Some(("the tenant", 257)));
    let command = ControlCommand::ChoosePolicy(ChoosePolicy { of: "tasks".into(), name: long });
    assert_eq!(Control { command, ..control }.long_text(), Some(("the policy", 257)));
}

#[test]
fn feeds() {
    for feed in samples::feeds() {
        let payload = encoded(&feed, encode_feed);
        assert_eq!(decode_feed(&payload), Ok(feed.clone()));
        let record = Published::new(known::FEED).read(&payload);
        assert_eq!((record.text("source"), record.text("name")), (&*feed.source, &*feed.name));
        assert_eq!((record.text("digest"), record.long("size_bytes")), (&*feed.digest, feed.size_bytes));
        assert_eq!(
            (record.long("ticks"), record.get("is_finished")),
            (feed.ticks, &Value::Boolean(feed.is_finished))
        );
    }
}

#[test]
fn a_record_of_another_kind_is_named() {
    let payload = encoded(&samples::snapshot(), encode_snapshot);
    let expected = DecodeError::WrongSchema { found: "Snapshot", expected: "Signal" };
    assert_eq!(decode_signal(&payload), Err(expected));
    let expected = "Tick, TickBatch, ScaledTickBatch or PackedTickBatch";
    let expected = DecodeError::WrongSchema { found: "Snapshot", expected };
    let result =
        TickDecoder::new().decode(&payload, &mut SymbolTable::default(), &mut TickColumns::default());
    assert_eq!(result, Err(expected));
    assert_eq!(decode_snapshot(&[0xc3, 1, 0, 0, 0, 0, 0, 0, 0, 9]), Err(known::SNAPSHOT.unknown(9 << 56)));
}
