//! Invalid tick records are refused as a whole, with reason, row and field, and leave the state unchanged.

use warptape_schemas::tick::{Side, Tick, TickColumns, TickKind};
use warptape_schemas::*;

use crate::samples;
use DeadLetterReason as Reason;

/// Decodes into columns and symbols that have rows already; on an error, these must be unchanged.
pub fn decode(payload: &[u8]) -> Result<Vec<Tick>, DecodeError> {
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    columns.push(&samples::trade(), &mut symbols);
    let before = (symbols.clone(), columns.clone());
    let result = TickDecoder::new().decode(payload, &mut symbols, &mut columns);
    if result.is_err() {
        assert!((symbols.clone(), columns.clone()) == before, "an error left something behind");
    }
    result.map(|rows| (1..=rows).map(|row| columns.tick(row, &symbols)).collect())
}

/// Encodes a long in Avro's standard way.
pub fn long(value: i64) -> Vec<u8> {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    let mut bytes = Vec::new();
    while raw >= 0x80 {
        bytes.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    bytes.push(raw as u8);
    bytes
}

pub fn text(value: &[u8]) -> Vec<u8> {
    [long(value.len() as i64), value.to_vec()].concat()
}

pub fn longs(values: &[i64]) -> Vec<u8> {
    match values {
        [] => long(0),
        _ => [long(values.len() as i64), values.iter().flat_map(|value| long(*value)).collect(), long(0)]
            .concat(),
    }
}

pub fn texts(values: &[&[u8]]) -> Vec<u8> {
    [long(values.len() as i64), values.iter().flat_map(|value| text(value)).collect(), long(0)].concat()
}

pub fn framed(schema: known::KnownSchema, fields: &[Vec<u8>]) -> Vec<u8> {
    [&[0xc3, 0x01][..], &schema.fingerprint.to_le_bytes(), &fields.concat()].concat()
}

/// Returns the encoded fields of a trade: symbol, kind, three longs, side, six longs.
fn trade_fields() -> Vec<Vec<u8>> {
    let numbers = |values: &[i64]| values.iter().map(|value| long(*value)).collect::<Vec<_>>();
    let tick = samples::trade();
    let mut fields = vec![text(tick.symbol.as_bytes()), long(0)];
    fields.extend(numbers(&[tick.event_time_ns, tick.receive_time_ns, tick.trade_id, 2]));
    fields.extend(numbers(&[tick.price_e9, tick.size_e9, 0, 0, 0, 0]));
    fields
}

const FIELDS: [&str; 12] = [
    "symbol",
    "kind",
    "event_time_ns",
    "receive_time_ns",
    "trade_id",
    "side",
    "price_e9",
    "size_e9",
    "bid_price_e9",
    "bid_size_e9",
    "ask_price_e9",
    "ask_size_e9",
];

/// Returns a trade with one field replaced.
fn trade_with(field: &str, bytes: Vec<u8>) -> Vec<u8> {
    let mut fields = trade_fields();
    fields[FIELDS.iter().position(|known| *known == field).expect("a field")] = bytes;
    framed(known::TICK, &fields)
}

/// Returns a quote with one field replaced; its own fields are valid.
fn quote_with(field: &str, bytes: Vec<u8>) -> Vec<u8> {
    let mut fields = trade_fields();
    let quote = [(1, 1), (4, 0), (5, 0), (6, 0), (7, 0), (8, 10), (9, 20), (10, 11), (11, 21)];
    quote.into_iter().for_each(|(place, value)| fields[place] = long(value));
    fields[FIELDS.iter().position(|known| *known == field).expect("a field")] = bytes;
    framed(known::TICK, &fields)
}

/// Returns the columns of a batch of three trades with two symbols, by field.
fn batch_fields() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("symbols", texts(&[b"A:X", b"B:X"])),
        ("symbol", longs(&[1, 0, 1])),
        ("kind", longs(&[0, 0, 0])),
        ("event_time_ns", longs(&[5, 6, 7])),
        ("receive_time_ns", longs(&[])),
        ("trade_id", longs(&[1, 2, 3])),
        ("side", longs(&[1, 2, 0])),
        ("price_e9", longs(&[10, 20, 30])),
        ("size_e9", longs(&[1, 1, 0])),
        ("bid_price_e9", longs(&[])),
        ("bid_size_e9", longs(&[])),
        ("ask_price_e9", longs(&[])),
        ("ask_size_e9", longs(&[])),
    ]
}

fn batch_with(changes: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut fields = batch_fields();
    for (changed, bytes) in changes {
        fields.iter_mut().find(|(field, _)| field == changed).expect("a field").1 = bytes.clone();
    }
    framed(known::TICK_BATCH, &fields.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>())
}

/// Checks the reason, and the names in the message.
fn check(payload: &[u8], reason: Reason, message: &[&str]) {
    let error = decode(payload).expect_err("a bad record");
    assert_eq!(error.reason(), reason, "{error}");
    for part in message {
        assert!(error.to_string().contains(part), "{error:?} does not name {part}: {error}");
    }
}

#[test]
fn the_good_ones_are_good() {
    let trade = decode(&framed(known::TICK, &trade_fields())).expect("a good trade");
    assert_eq!(trade, [samples::trade()]);
    assert_eq!(decode(&quote_with("side", long(0))).expect("a good quote")[0].bid_price_e9, 10);
    let rows = decode(&batch_with(&[])).expect("a good batch");
    assert_eq!(rows.iter().map(|tick| &*tick.symbol).collect::<Vec<_>>(), ["B:X", "A:X", "B:X"]);
    assert_eq!(rows.iter().map(|tick| tick.side).collect::<Vec<_>>(), [Side::Buy, Side::Sell, Side::None]);
    assert_eq!(rows.iter().map(|tick| tick.price_e9).collect::<Vec<_>>(), [10, 20, 30]);
}

#[test]
fn frames() {
    let good = framed(known::TICK, &trade_fields());
    check(b"", Reason::NotFramed, &["C3 01"]);
    check(&good[..9], Reason::NotFramed, &["C3 01"]);
    check(&good[1..], Reason::NotFramed, &["C3 01"]);
    check(b"{\"symbol\":\"BINANCE:BTCUSDT\"}", Reason::NotFramed, &["header"]);
    check(&[0xc3, 0x01, 8, 7, 6, 5, 4, 3, 2, 1], Reason::UnknownSchema, &["0102030405060708", "register"]);
    check(&framed(known::SIGNAL, &[]), Reason::WrongSchema, &["Signal", "Tick"]);
    for payload in [good, batch_with(&[])] {
        for cut in HEADER_SIZE..payload.len() {
            check(&payload[..cut], Reason::Truncated, &["bytes"]);
        }
        check(&[&payload[..], &[0]].concat(), Reason::TrailingBytes, &["1 bytes"]);
    }
}

#[test]
fn values_of_single_ticks() {
    for (field, reason) in [
        ("event_time_ns", Reason::BadTime),
        ("receive_time_ns", Reason::BadTime),
        ("price_e9", Reason::BadPrice),
        ("size_e9", Reason::BadSize),
        ("bid_price_e9", Reason::BadPrice),
        ("bid_size_e9", Reason::BadSize),
        ("ask_price_e9", Reason::BadPrice),
        ("ask_size_e9", Reason::BadSize),
    ] {
        if !field.contains("price") {
            for payload in [trade_with(field, long(-5)), quote_with(field, long(-5))] {
                check(&payload, reason, &[field, "row 0", "-5", "negative"]);
            }
        }
        for none in [i64::MIN, i64::MAX] {
            check(&trade_with(field, long(none)), reason, &[field, "not a number"]);
            check(&quote_with(field, long(none)), reason, &[field, "not a number"]);
        }
    }
    check(&trade_with("event_time_ns", long(0)), Reason::BadTime, &["event_time_ns", "no time"]);
    check(&trade_with("price_e9", long(0)), Reason::BadPrice, &["price_e9", "ScaledTickBatch"]);
    assert_eq!(decode(&trade_with("price_e9", long(-5))).expect("a spread")[0].price_e9, -5);
    for field in ["bid_price_e9", "ask_price_e9"] {
        decode(&quote_with(field, long(-5))).expect("a spread");
        check(&trade_with(field, long(-5)), Reason::WrongFields, &[field, "trade"]);
    }
    check(&trade_with("kind", long(2)), Reason::BadKind, &["kind", "TRADE or QUOTE"]);
    check(&trade_with("kind", long(-1)), Reason::BadKind, &["-1"]);
    check(&trade_with("kind", long(1 << 40)), Reason::BadKind, &["kind"]);
    check(&trade_with("side", long(3)), Reason::BadSide, &["side", "NONE, BUY or SELL"]);
    for field in ["bid_price_e9", "bid_size_e9", "ask_price_e9", "ask_size_e9"] {
        check(&trade_with(field, long(1)), Reason::WrongFields, &[field, "trade"]);
    }
    for field in ["trade_id", "price_e9", "size_e9", "side"] {
        check(&quote_with(field, long(1)), Reason::WrongFields, &[field, "quote"]);
    }
    check(&quote_with("trade_id", long(-7)), Reason::WrongFields, &["trade_id", "-7"]);
    assert_eq!(decode(&trade_with("trade_id", long(i64::MIN))).expect("any id")[0].trade_id, i64::MIN);
    check(&trade_with("event_time_ns", vec![0xff; 10]), Reason::Malformed, &["64 bits", "byte"]);
}

/// Returns a record of three trades with scales, with some columns replaced.
fn scaled_with(changes: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut fields = batch_fields();
    fields.insert(1, ("price_scale", longs(&[2, 18])));
    fields.insert(2, ("size_scale", longs(&[0, 9])));
    for (changed, bytes) in changes {
        fields.iter_mut().find(|(field, _)| field.trim_end_matches("_e9") == *changed).expect("a field").1 =
            bytes.clone();
    }
    framed(known::SCALED_TICK_BATCH, &fields.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>())
}

#[test]
fn values_of_scaled_batches() {
    let ticks = decode(&scaled_with(&[])).expect("a good batch");
    let scales: Vec<_> = ticks.iter().map(|tick| (tick.scales.price, tick.scales.size)).collect();
    assert_eq!(scales, [(18, 9), (2, 0), (18, 9)]);
    let at_zero = decode(&scaled_with(&[("price", longs(&[0, -3, 0]))])).expect("prices of 0 and below");
    assert_eq!(at_zero.iter().map(|tick| tick.price_e9).collect::<Vec<_>>(), [0, -3, 0]);
    check(&scaled_with(&[("price", longs(&[]))]), Reason::BadPrice, &["row 0", "price", "needs a price"]);
    check(&scaled_with(&[("price", longs(&[1, i64::MAX, 1]))]), Reason::BadPrice, &["row 1", "field price:"]);
    check(&scaled_with(&[("size", longs(&[1, 1, -4]))]), Reason::BadSize, &["row 2", "field size:", "-4"]);
    check(&scaled_with(&[("bid_size", longs(&[0, 1, 0]))]), Reason::WrongFields, &["row 1", "bid_size:"]);
    check(
        &scaled_with(&[("price_scale", longs(&[2, 19]))]),
        Reason::BadPrice,
        &["row 1", "price_scale", "19"],
    );
    check(&scaled_with(&[("size_scale", longs(&[-1, 9]))]), Reason::BadSize, &["row 0", "size_scale", "-1"]);
    for scales in [&[2][..], &[2, 2, 2], &[]] {
        let lengths = ["price_scale", "2"];
        check(&scaled_with(&[("price_scale", longs(scales))]), Reason::LengthsDiffer, &lengths);
    }
    check(&scaled_with(&[("ask_price", longs(&[0]))]), Reason::LengthsDiffer, &["ask_price has"]);
    check(&scaled_with(&[("symbol", longs(&[0, 2, 1]))]), Reason::BadSymbol, &["row 1", "symbol"]);
}

#[test]
fn symbols() {
    let check_both = |symbol: &[u8], message| {
        check(&trade_with("symbol", text(symbol)), Reason::BadSymbol, &["symbol", message]);
        check(
            &batch_with(&[("symbols", texts(&[b"A:X", symbol]))]),
            Reason::BadSymbol,
            &["symbols", "row 1", message],
        );
    };
    check_both(b"", "empty");
    check_both(&[b'A'; 65], "65 bytes");
    check_both(b"A\tB", "control");
    check_both("A\u{9f}B".as_bytes(), "control");
    check_both(b"A\xff", "UTF-8");
    assert_eq!(decode(&trade_with("symbol", text(&[b'A'; 64]))).expect("64 bytes")[0].symbol.len(), 64);
    check(&trade_with("symbol", long(-3)), Reason::Malformed, &["negative length"]);
    check(&trade_with("symbol", long(i64::MAX)), Reason::Truncated, &[]);
    for index in [2, 70, i64::from(u32::MAX), -1, i64::MAX] {
        let message = format!("index {index} into a dictionary of 2");
        check(&batch_with(&[("symbol", longs(&[0, index, 1]))]), Reason::BadSymbol, &["row 1", &message]);
    }
    // The invalid index follows indexes that are read together.
    for index in [-1, -9_000, i64::MAX] {
        let message = format!("index {index} into a dictionary of 2");
        let indexes = longs(&[0, 1, 0, 1, 0, 1, index, 0, 1, 0, 1]);
        check(&batch_with(&[("symbol", indexes)]), Reason::BadSymbol, &["row 6", &message]);
    }
}

#[test]
fn values_in_batches_name_their_row() {
    let cases: [(&str, &[i64], Reason); 12] = [
        ("event_time_ns", &[5, 0, 7], Reason::BadTime),
        ("event_time_ns", &[5, i64::MAX, 7], Reason::BadTime),
        ("receive_time_ns", &[5, -1, 7], Reason::BadTime),
        ("price_e9", &[5, 0, 7], Reason::BadPrice),
        ("price_e9", &[5, i64::MIN, 0], Reason::BadPrice),
        ("size_e9", &[5, -1, -1], Reason::BadSize),
        ("bid_price_e9", &[0, 1, 0], Reason::WrongFields),
        ("ask_size_e9", &[0, i64::MAX, 0], Reason::BadSize),
        ("kind", &[0, 2, 0], Reason::BadKind),
        ("kind", &[0, -1, 0], Reason::BadKind),
        ("kind", &[0, 1 << 33, 0], Reason::BadKind),
        ("side", &[0, 3, 9], Reason::BadSide),
    ];
    for (field, values, reason) in cases {
        check(&batch_with(&[(field, longs(values))]), reason, &["row 1", field]);
    }
    // One row is a quote with a trade's fields, among trades.
    check(&batch_with(&[("kind", longs(&[0, 0, 1]))]), Reason::WrongFields, &["row 2", "trade_id"]);
}

#[test]
fn lengths() {
    for (field, bytes) in [
        ("symbol", longs(&[0, 1])),
        ("symbol", longs(&[])),
        ("kind", longs(&[0, 0, 0, 0])),
        ("kind", longs(&[])),
        ("side", longs(&[0])),
        ("price_e9", longs(&[1, 2])),
        ("receive_time_ns", longs(&[1, 2, 3, 4])),
        ("ask_size_e9", longs(&[0, 0])),
    ] {
        check(
            &batch_with(&[(field, bytes)]),
            Reason::LengthsDiffer,
            &[field, "items where event_time_ns has 3"],
        );
    }
    let empty: Vec<_> = batch_fields().into_iter().map(|(field, _)| (field, longs(&[]))).collect();
    check(&batch_with(&empty), Reason::TooManyRows, &["no rows"]);
}

/// Arrays in several blocks, blocks with their size, and indexes with redundant bytes are valid Avro.
#[test]
fn every_way_to_write_an_array_is_read() {
    let expected = decode(&batch_with(&[])).expect("a good batch");
    let blocks = [long(1), long(10), long(-2), long(2), long(20), long(30), long(0)].concat();
    assert_eq!(decode(&batch_with(&[("price_e9", blocks)])), Ok(expected.clone()));
    let kinds = [long(-3), long(5), vec![0x80, 0x00, 0x80, 0x80, 0x00, 0x00], long(0)].concat();
    assert_eq!(decode(&batch_with(&[("kind", kinds)])), Ok(expected.clone()));
    let symbols = [long(1), text(b"A:X"), long(1), text(b"B:X"), long(0)].concat();
    assert_eq!(decode(&batch_with(&[("symbols", symbols)])), Ok(expected));
}

/// Counts that exceed the bytes, and more rows than a record may have, are refused before memory is allocated.
#[test]
fn huge_arrays() {
    for field in batch_fields().into_iter().map(|(field, _)| field) {
        for count in [1 << 40, i64::MAX, i64::MIN, -(1 << 40)] {
            let bytes = [long(count), if count < 0 { long(3) } else { vec![] }, vec![0; 50]].concat();
            check(&batch_with(&[(field, bytes)]), Reason::Truncated, &[]);
        }
    }
    let column = |value: i64, rows: usize| longs(&vec![value; rows]);
    let batch = |rows: usize| {
        batch_with(&[
            ("symbol", column(0, rows)),
            ("kind", column(0, rows)),
            ("event_time_ns", column(9, rows)),
            ("trade_id", longs(&[])),
            ("side", longs(&[])),
            ("price_e9", column(1, rows)),
            ("size_e9", longs(&[])),
        ])
    };
    assert_eq!(decode(&batch(ROWS_MAX)).map(|rows| rows.len()), Ok(ROWS_MAX));
    check(&batch(ROWS_MAX + 1), Reason::TooManyRows, &["symbol", "65536", "split"]);
    let symbols = texts(&vec![&b"A:X"[..]; ROWS_MAX + 1]);
    check(&batch_with(&[("symbols", symbols)]), Reason::TooManyRows, &["symbols"]);
}

#[test]
fn producers_are_told_before_the_decoder_would_tell() {
    let tick = samples::trade();
    let bad = [
        Tick { symbol: String::new(), ..tick.clone() },
        Tick { symbol: "A".repeat(65), ..tick.clone() },
        Tick { event_time_ns: 0, ..tick.clone() },
        Tick { price_e9: i64::MAX, ..tick.clone() },
        Tick { bid_size_e9: 1, ..tick.clone() },
        Tick { kind: TickKind::Quote, ..tick.clone() },
    ];
    for bad in bad {
        let mut out = vec![1];
        let Err(EncodeError::Invalid(single)) = encode_tick(&bad, &mut out) else {
            panic!("{bad:?} is written")
        };
        let Err(EncodeError::Invalid(row)) = encode_tick_batch(&[tick.clone(), bad], &mut out) else {
            panic!("written in a batch")
        };
        assert_eq!((single.row, row.row), (0, 1));
        assert_eq!((single.field, single.problem), (row.field, row.problem));
        assert_eq!(out, [1]);
    }
    let mut out = Vec::new();
    assert_eq!(encode_tick_batch(&[], &mut out), Err(EncodeError::NoRows));
    let many = vec![tick; ROWS_MAX + 1];
    assert_eq!(encode_tick_batch(&many, &mut out), Err(EncodeError::TooManyRows { rows: ROWS_MAX + 1 }));
    assert!(out.is_empty());
    encode_tick_batch(&many[1..], &mut out).expect("as many as allowed");
}
