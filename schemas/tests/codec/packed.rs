//! Records with packed columns: they hold the ticks of the other records exactly, and hostile ones are refused by name.

use apache_avro::Schema;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use proptest::prelude::*;
use serde_json::json;
use warptape_schemas::tick::{Scales, Side, Tick, TickColumns, TickKind};
use warptape_schemas::*;

use crate::avro::Published;
use crate::rejected::{decode, framed, long, longs, text, texts};
use crate::samples;
use DeadLetterReason as Reason;

type Encode = fn(&[Tick], &mut Vec<u8>) -> Result<(), EncodeError>;

fn written(encode: Encode, ticks: &[Tick]) -> Vec<u8> {
    let mut payload = Vec::new();
    encode(ticks, &mut payload).expect("good ticks");
    payload
}

fn columns(decoder: &mut TickDecoder, payloads: &[Vec<u8>]) -> (SymbolTable, TickColumns) {
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    for payload in payloads {
        decoder.decode(payload, &mut symbols, &mut columns).expect("a good record");
    }
    (symbols, columns)
}

/// Ticks with other scales, negative prices and prices of 0, besides those without.
pub fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let scales = prop_oneof![
        Just(Scales::E9),
        (0..=18_u8, 0..=18_u8).prop_map(|(price, size)| Scales { price, size })
    ];
    let change = (scales, prop_oneof![Just(1_i64), Just(-1), Just(0)], 0..4_u32);
    let changed = |(tick, (scales, sign, zeros)): (Tick, (Scales, i64, u32))| {
        let price = |value: i64| value / 10_i64.pow(zeros) * 10_i64.pow(zeros) * sign;
        Tick {
            price_e9: price(tick.price_e9),
            bid_price_e9: price(tick.bid_price_e9),
            ask_price_e9: price(tick.ask_price_e9),
            scales,
            ..tick
        }
    };
    (samples::ticks(), prop::collection::vec(change, 1..40)).prop_map(move |(ticks, changes)| {
        ticks.into_iter().zip(changes.into_iter().cycle()).map(changed).collect()
    })
}

proptest! {
    #[test]
    fn every_record_gives_the_same_columns(ticks in samples::ticks(), cut in 0_usize..40) {
        let records: [Encode; 3] = [encode_tick_batch, encode_scaled_tick_batch, encode_packed_tick_batch];
        let [plain, scaled, packed] = records.map(|encode| {
            let payloads: Vec<_> = ticks.chunks(cut + 1).map(|ticks| written(encode, ticks)).collect();
            columns(&mut TickDecoder::new(), &payloads)
        });
        prop_assert!(plain == scaled && scaled == packed);
    }

    #[test]
    fn every_scaled_tick_reads_back(ticks in ticks()) {
        let payload = written(encode_packed_tick_batch, &ticks);
        prop_assert_eq!(decode(&payload), Ok(ticks.clone()));
        let scaled = written(encode_scaled_tick_batch, &ticks);
        let [one, other] = [payload, scaled].map(|payload| {
            columns(&mut TickDecoder::new().by_rows(true), &[payload])
        });
        prop_assert!(one == other);
    }
}

#[test]
fn the_ends_of_all_ranges_read_back() {
    let (low, high) = (i64::MIN + 1, i64::MAX - 1);
    let trade = |event, id, price, size| Tick {
        event_time_ns: event,
        receive_time_ns: event - 1,
        trade_id: id,
        price_e9: price,
        size_e9: size,
        ..samples::trade()
    };
    let quote = |bid, ask| Tick {
        symbol: "BINANCE:BTCUSDT".into(),
        bid_price_e9: bid,
        ask_price_e9: ask,
        bid_size_e9: high,
        ..samples::quote()
    };
    let ticks =
        [trade(1, i64::MIN, low, 0), trade(high, i64::MAX, high, high), quote(low, high), quote(0, 0)];
    for ticks in [&ticks[..], &ticks[..1], &ticks[1..2], &ticks[2..], &ticks[2..3]] {
        assert_eq!(decode(&written(encode_packed_tick_batch, ticks)).as_deref(), Ok(ticks));
    }
}

#[test]
fn columns_have_the_narrowest_width() {
    let ticks: Vec<Tick> = (0..200)
        .map(|number| Tick {
            event_time_ns: 1_722_470_400_000_000_000 + number * 1_000_000,
            receive_time_ns: 0,
            trade_id: 3_711_234_567 + number * 2,
            price_e9: 61_234_500_000_000 + (number % 7) * 100_000_000,
            size_e9: (number % 3) * 10_000_000,
            ..samples::trade()
        })
        .collect();
    let payload = written(encode_packed_tick_batch, &ticks);
    let record = Published::new(known::PACKED_TICK_BATCH).read(&payload);
    let length = |field| record.bytes(field).len();
    assert_eq!(["event_time_ns", "trade_id", "price", "size", "side"].map(length), [200, 400, 200, 200, 50]);
    assert_eq!(["quotes", "symbol", "receive_time_ns", "bid_price", "ask_size"].map(length), [0; 5]);
    assert_eq!((record.long("rows"), record.long("event_time_unit_ns")), (200, 1_000_000));
    let first = |field: &str| record.items(field).first().cloned();
    assert_eq!(first("price_base"), Some(Value::Long(612_345)));
    assert_eq!((first("price_zeros"), first("size_zeros")), (Some(Value::Int(8)), Some(Value::Int(7))));
    assert_eq!((first("price_scale"), first("trade_id_base")), (None, Some(Value::Long(3_711_234_567))));
    assert_eq!(decode(&payload), Ok(ticks));
}

/// Another Avro library reads the fields, and the documented layout gives the ticks.
#[test]
fn the_layout_is_as_documented() {
    let [_, ticks, ..] = samples::packed_ticks();
    let record = Published::new(known::PACKED_TICK_BATCH).read(&written(encode_packed_tick_batch, &ticks));
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_i64, |number, byte| number << 8 | i64::from(*byte));
    let offset = |field: &str, item: usize, items: usize| {
        let bytes = record.bytes(field);
        let width = bytes.len() / items;
        number(&bytes[item * width..][..width])
    };
    let of_entry = |field: &str, entry: usize| match record.items(field).get(entry) {
        Some(Value::Long(number)) => *number,
        Some(Value::Int(number)) => i64::from(*number),
        _ => 0,
    };
    let rows = ticks.len();
    let quotes = ticks.iter().filter(|tick| tick.kind == TickKind::Quote).count();
    let (mut trade, mut quote) = (0, 0);
    for (row, tick) in ticks.iter().enumerate() {
        let entry = offset("symbol", row, rows) as usize;
        let time = record.long("event_time_base_ns")
            + record.long("event_time_unit_ns") * offset("event_time_ns", row, rows);
        assert_eq!(time, tick.event_time_ns);
        let price = |offset: i64| {
            (of_entry("price_base", entry) + offset) * 10_i64.pow(of_entry("price_zeros", entry) as u32)
        };
        let size = |number: i64| number * 10_i64.pow(of_entry("size_zeros", entry) as u32);
        let is_quote = record.bytes("quotes")[row / 8] >> (row % 8) & 1 == 1;
        assert_eq!(is_quote, tick.kind == TickKind::Quote);
        if is_quote {
            assert_eq!(price(offset("bid_price", quote, quotes)), tick.bid_price_e9);
            assert_eq!(size(offset("ask_size", quote, quotes)), tick.ask_size_e9);
            quote += 1;
        } else {
            let trades = rows - quotes;
            assert_eq!(price(offset("price", trade, trades)), tick.price_e9);
            assert_eq!(size(offset("size", trade, trades)), tick.size_e9);
            let id = of_entry("trade_id_base", entry) + offset("trade_id", trade, trades);
            assert_eq!(id, tick.trade_id);
            assert_eq!(record.bytes("side")[trade / 4] >> (trade % 4 * 2) & 3, tick.side as u8);
            trade += 1;
        }
    }
}

/// Returns the fields of a record of two trades and a quote with two symbols.
fn fields() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("symbols", texts(&[b"A:X", b"B:X"])),
        ("price_scale", longs(&[])),
        ("size_scale", longs(&[])),
        ("price_zeros", longs(&[1, 0])),
        ("size_zeros", longs(&[])),
        ("price_base", longs(&[100, 7])),
        ("trade_id_base", longs(&[])),
        ("rows", long(3)),
        ("quotes", text(&[0b010])),
        ("symbol", text(&[1, 0, 0])),
        ("event_time_base_ns", long(5)),
        ("event_time_unit_ns", long(10)),
        ("event_time_ns", text(&[0, 1, 2])),
        ("receive_time_base_ns", long(0)),
        ("receive_time_unit_ns", long(0)),
        ("receive_time_ns", text(&[])),
        ("trade_id", text(&[8, 9])),
        ("side", text(&[0b1001])),
        ("price", text(&[0, 1])),
        ("size", text(&[3, 0, 4, 0])),
        ("bid_price", text(&[2])),
        ("bid_size", text(&[5])),
        ("ask_price", text(&[3, 0, 0])),
        ("ask_size", text(&[])),
    ]
}

/// A field and its new bytes.
type Change<'a> = (&'a str, Vec<u8>);

fn record_with(changes: &[Change<'_>]) -> Vec<u8> {
    let mut fields = fields();
    for (changed, bytes) in changes {
        fields.iter_mut().find(|(field, _)| field == changed).expect("a field").1 = bytes.clone();
    }
    framed(known::PACKED_TICK_BATCH, &fields.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>())
}

/// Checks the reason, and the names in the message. Readers that judge rows alone refuse the record, too.
fn check(changes: &[Change<'_>], reason: Reason, message: &[&str]) {
    let payload = record_with(changes);
    let error = decode(&payload).expect_err("a bad record");
    assert_eq!(error.reason(), reason, "{error}");
    for part in message {
        assert!(error.to_string().contains(part), "{error:?} does not name {part}: {error}");
    }
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let by_rows = TickDecoder::new().by_rows(true).decode(&payload, &mut symbols, &mut columns);
    assert_eq!(by_rows, Err(error));
    assert!(symbols.is_empty() && columns == TickColumns::default());
}

#[test]
fn a_record_written_by_hand() {
    let rows = decode(&record_with(&[])).expect("a good record");
    assert_eq!(rows.iter().map(|tick| &*tick.symbol).collect::<Vec<_>>(), ["B:X", "A:X", "A:X"]);
    assert_eq!(rows.iter().map(|tick| tick.event_time_ns).collect::<Vec<_>>(), [5, 15, 25]);
    assert_eq!(rows.iter().map(|tick| tick.price_e9).collect::<Vec<_>>(), [7, 0, 1_010]);
    assert_eq!(rows.iter().map(|tick| tick.trade_id).collect::<Vec<_>>(), [8, 0, 9]);
    assert_eq!(rows.iter().map(|tick| tick.size_e9).collect::<Vec<_>>(), [3, 0, 4]);
    assert_eq!(rows.iter().map(|tick| tick.side).collect::<Vec<_>>(), [Side::Buy, Side::None, Side::Sell]);
    let quote = &rows[1];
    let numbers = [quote.bid_price_e9, quote.bid_size_e9, quote.ask_price_e9, quote.ask_size_e9];
    assert_eq!(numbers, [1_020, 5, 1_030, 0]);
}

#[test]
fn columns_that_do_not_fit_are_named() {
    for (field, bytes) in [
        ("symbol", text(&[0, 1])),
        ("event_time_ns", text(&[1, 2, 3, 4])),
        ("receive_time_ns", text(&[1])),
        ("trade_id", text(&[1, 2, 3])),
        ("price", text(&[0; 18])),
        ("size", text(&[1])),
        ("bid_price", text(&[0; 9])),
        ("ask_size", text(&[0; 16])),
        ("quotes", text(&[2, 0])),
        ("side", text(&[1, 0])),
    ] {
        check(&[(field, bytes)], Reason::LengthsDiffer, &[field, "bytes for", "items"]);
    }
    let no_trades = [("quotes", text(&[0b111]))];
    check(&no_trades, Reason::LengthsDiffer, &["trade_id", "2 bytes for 0 items"]);
    check(&[("event_time_ns", text(&[]))], Reason::LengthsDiffer, &["event_time_ns", "at least one byte"]);
    check(&[("quotes", text(&[0b1010]))], Reason::Malformed, &["quotes", "after its 3 items"]);
    check(&[("side", text(&[0b1_1001]))], Reason::Malformed, &["side", "after its 2 items"]);
    for field in ["price_zeros", "price_base", "trade_id_base", "size_zeros", "price_scale", "size_scale"] {
        check(&[(field, longs(&[1]))], Reason::LengthsDiffer, &[field, "1 items"]);
    }
    for zeros in [-1, 19, i64::MAX] {
        for field in ["price_zeros", "size_zeros"] {
            check(&[(field, longs(&[0, zeros]))], Reason::Malformed, &[field, &zeros.to_string(), "0 to 18"]);
        }
    }
    for field in ["event_time_unit_ns", "receive_time_unit_ns"] {
        let column = field.replace("_unit", "");
        check(&[(field, long(-1))], Reason::Malformed, &[&column, "unit -1"]);
    }
}

#[test]
fn numbers_of_more_than_64_bits_are_named() {
    let max = i64::MAX;
    let cases: [(&[Change<'_>], &str, &str); 6] = [
        (&[("event_time_base_ns", long(max - 19))], "event_time_ns", "item 2"),
        (&[("event_time_unit_ns", long(max / 2))], "event_time_ns", "item 2"),
        (
            &[
                ("receive_time_base_ns", long(max)),
                ("receive_time_unit_ns", long(1)),
                ("receive_time_ns", text(&[0, 1, 0])),
            ],
            "receive_time_ns",
            "item 1",
        ),
        (&[("price_base", longs(&[max / 10, 0]))], "price", "item 1"),
        (&[("trade_id_base", longs(&[0, max - 7]))], "trade_id", "item 0"),
        (&[("size", text(&[[0xff; 8], [0; 8]].concat()))], "size", "item 0"),
    ];
    for (changes, field, item) in cases {
        check(changes, Reason::Malformed, &[field, item, "64 bits"]);
    }
    // Sums and products of any size are exact up to the limit.
    let fits = record_with(&[("trade_id_base", longs(&[0, max - 8]))]);
    assert_eq!(decode(&fits).expect("a good record")[0].trade_id, max);
    let negative = record_with(&[("price_base", longs(&[i64::MIN / 10, i64::MIN + 1]))]);
    assert_eq!(decode(&negative).expect("a good record")[0].price_e9, i64::MIN + 1);
}

#[test]
fn row_counts() {
    check(&[("rows", long(0))], Reason::TooManyRows, &["no rows"]);
    for rows in [-1, i64::MIN, i64::MAX, ROWS_MAX as i64 + 1] {
        check(&[("rows", long(rows))], Reason::TooManyRows, &["65536"]);
    }
    check(&[("rows", long(60_000))], Reason::LengthsDiffer, &["quotes"]);
    let many = |rows: usize| {
        let mut changes: Vec<_> = fields().into_iter().map(|(field, _)| (field, text(&[]))).collect();
        changes
            .retain(|(field, _)| !field.contains("_base") && !field.contains("_unit") && *field != "symbols");
        changes.extend([("rows", long(rows as i64)), ("event_time_ns", text(&vec![0; rows]))]);
        record_with(&changes)
    };
    assert_eq!(decode(&many(ROWS_MAX)).map(|rows| rows.len()), Ok(ROWS_MAX));
    assert!(matches!(decode(&many(ROWS_MAX + 1)), Err(DecodeError::TooManyRows { .. })));
}

/// Every cut of a record is refused, and so is a byte behind it.
#[test]
fn cut_records() {
    let whole = record_with(&[]);
    for end in HEADER_SIZE..whole.len() {
        let error = decode(&whole[..end]).expect_err("a cut record");
        assert_eq!(error.reason(), Reason::Truncated, "{error}");
    }
    let error = decode(&[&whole[..], &[0]].concat());
    assert_eq!(error, Err(DecodeError::TrailingBytes { count: 1 }));
}

#[test]
fn bad_rows_cost_themselves_and_stay_as_bad_alone() {
    let payload = record_with(&[
        ("rows", long(8)),
        ("quotes", text(&[0b0100_0000])),
        ("symbol", text(&[0, 2, 0, 1, 0, 0, 0, 0])),
        ("event_time_base_ns", long(0)),
        ("event_time_ns", text(&[1, 1, 0, 1, 1, 1, 1, 1])),
        ("trade_id", text(&[1, 2, 3, 4, 5, 6, 7])),
        ("side", text(&[0b0000_0001, 0b0000_0011])),
        ("price_scale", longs(&[9, 77])),
        ("price_base", longs(&[0, 0])),
        ("price_zeros", longs(&[0, 0])),
        ("price", text(&[vec![5; 40], i64::MAX.to_le_bytes().to_vec(), vec![5; 8]].concat())),
        ("size", text(&[])),
    ]);
    let bad = [
        (1, "symbol", Reason::BadSymbol),
        (2, "event_time_ns", Reason::BadTime),
        (3, "price_scale", Reason::BadPrice),
        (4, "side", Reason::BadSide),
        (5, "price", Reason::BadPrice),
    ];
    let problems = |rows: &TickColumns| {
        let problem = |invalid: &InvalidTick| (invalid.row, invalid.field, invalid.reason());
        rows.rejected.iter().map(problem).collect::<Vec<_>>()
    };
    let mut decoder = TickDecoder::new().by_rows(true);
    let (symbols, rows) = columns(&mut decoder, std::slice::from_ref(&payload));
    assert_eq!(problems(&rows), bad);
    assert!(symbols.iter().eq(["A:X"]), "no good row has the other symbol");
    let numbers: Vec<u32> = (0..8).collect();
    let alone = decoder.rows_alone(&payload, &numbers.chunks(1).collect::<Vec<_>>());
    for (row, payload) in alone.iter().enumerate() {
        let expected =
            bad.iter().filter(|(of, ..)| *of == row).map(|(_, field, reason)| (0, *field, *reason));
        let rows = columns(&mut decoder, std::slice::from_ref(payload)).1;
        assert_eq!(problems(&rows), expected.collect::<Vec<_>>(), "row {row}");
    }
    let good = decoder.rows_alone(&payload, &[&[0, 6, 7]]);
    let (symbols, rows) = columns(&mut decoder, &good);
    assert_eq!((rows.tick(0, &symbols).side, rows.trade_id), (Side::Buy, vec![1, 0, 7]));
}

/// Rows alone are in a record without scales, unless a trade is at a price of 0.
#[test]
fn rows_alone_have_scales_only_if_they_need_them() {
    let payload = record_with(&[("event_time_base_ns", long(0)), ("price_base", longs(&[0, 0]))]);
    let alone = TickDecoder::new().by_rows(true).rows_alone(&payload, &[&[0], &[1], &[2], &[1, 2]]);
    let schema = |payload: &Vec<u8>| fingerprint_of(payload).and_then(known::by_fingerprint);
    let [scaled, plain] = [known::SCALED_TICK_BATCH, known::TICK_BATCH].map(Some);
    assert_eq!(alone.iter().map(schema).collect::<Vec<_>>(), [scaled, plain, plain, plain]);
    let rows = columns(&mut TickDecoder::new().by_rows(true), &alone[..1]).1;
    assert_eq!(rows.rejected.first().map(InvalidTick::reason), Some(Reason::BadTime), "the price is good");
}

/// A writer may order the fields otherwise, add some, and leave out those with defaults.
#[test]
fn other_writers_are_read() {
    let mut schema: serde_json::Value = serde_json::from_str(known::PACKED_TICK_BATCH.text).expect("JSON");
    let fields = schema["fields"].as_array_mut().expect("fields");
    fields.reverse();
    fields.retain(|field| !field["name"].as_str().is_some_and(|name| name.starts_with("receive_time")));
    fields.insert(3, json!({"name": "extra", "type": {"type": "array", "items": "string"}}));
    fields.insert(9, json!({"name": "more", "type": "long"}));
    let other = schema.to_string();
    let mut decoder = TickDecoder::new();
    let fingerprint = decoder.register_writer_schema(&other).expect("a schema of ticks");

    let payload = record_with(&[]);
    let published = Published::new(known::PACKED_TICK_BATCH).read(&payload);
    let parsed = Schema::parse_str(&other).expect("a schema");
    let Schema::Record(record) = &parsed else { panic!("no record") };
    let values = record.fields.iter().map(|field| {
        let value = match &*field.name {
            "extra" => Value::Array(vec![Value::String("x".into())]),
            "more" => Value::Long(-5),
            name => published.get(name).clone(),
        };
        (field.name.clone(), value)
    });
    let value = Value::Record(values.collect());
    let datum = GenericDatumWriter::builder(&parsed).build().and_then(|avro| avro.write_value_to_vec(value));
    let header = [&[0xc3, 0x01][..], &fingerprint.to_le_bytes()].concat();
    let framed = [header, datum.expect("a value of the schema")].concat();
    assert!(columns(&mut decoder, &[framed]) == columns(&mut TickDecoder::new(), &[payload]));

    for (field, kind) in [("rows", json!("string")), ("price", json!({"type": "array", "items": "long"}))] {
        let mut wrong = schema.clone();
        let fields = wrong["fields"].as_array_mut().expect("fields");
        fields.iter_mut().find(|found| found["name"] == field).expect("a field")["type"] = kind;
        let error = decoder.register_writer_schema(&wrong.to_string()).expect_err("another type");
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[test]
fn descriptions_have_the_fields_of_the_other_batches() {
    for ticks in samples::packed_ticks() {
        let (name, packed) = describe(&written(encode_packed_tick_batch, &ticks)).expect("a good record");
        assert_eq!(name, "PackedTickBatch");
        let is_e9 = ticks.iter().all(|tick| tick.scales == Scales::E9);
        let encode: Encode = if is_e9 { encode_tick_batch } else { encode_scaled_tick_batch };
        let (_, expected) = describe(&written(encode, &ticks)).expect("a good record");
        for (field, values) in expected.as_object().expect("an object") {
            let is_left_out = values.as_array().is_some_and(Vec::is_empty);
            assert!(is_left_out || packed[field] == *values, "{field}: {} {values}", packed[field]);
        }
        let fields = |value: &serde_json::Value| {
            value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(fields(&packed), fields(&expected));
    }
}
