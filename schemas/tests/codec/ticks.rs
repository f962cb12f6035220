//! Ticks, one by one and in batches, from encoder to columns.

use proptest::prelude::*;
use warptape_schemas::tick::{Side, Tick, TickColumns, TickKind};
use warptape_schemas::{SymbolTable, TickDecoder, encode_tick, encode_tick_batch, known};

use crate::avro::{Published, Record, long_of, text_of};
use crate::samples;

/// Returns the expected columns: symbols numbered by first appearance, values unchanged.
fn expected(ticks: &[Tick]) -> (SymbolTable, TickColumns) {
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    ticks.iter().for_each(|tick| columns.push(tick, &mut symbols));
    (symbols, columns)
}

fn single(tick: &Tick) -> Vec<u8> {
    let mut payload = Vec::new();
    encode_tick(tick, &mut payload).expect("a good tick");
    payload
}

fn batch(ticks: &[Tick]) -> Vec<u8> {
    let mut payload = Vec::new();
    encode_tick_batch(ticks, &mut payload).expect("good ticks");
    payload
}

fn decode(payloads: &[Vec<u8>]) -> (SymbolTable, TickColumns) {
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let mut decoder = TickDecoder::new();
    for payload in payloads {
        let before = columns.len();
        let rows = decoder.decode(payload, &mut symbols, &mut columns).expect("a good record");
        assert_eq!(columns.len(), before + rows);
    }
    (symbols, columns)
}

fn kind_name(kind: TickKind) -> &'static str {
    ["TRADE", "QUOTE"][kind as usize]
}

fn side_name(side: Side) -> &'static str {
    ["NONE", "BUY", "SELL"][side as usize]
}

/// A numeric field: its name and its getter.
type LongField = (&'static str, fn(&Tick) -> i64);

const LONGS: [LongField; 9] = [
    ("event_time_ns", |tick| tick.event_time_ns),
    ("receive_time_ns", |tick| tick.receive_time_ns),
    ("trade_id", |tick| tick.trade_id),
    ("price_e9", |tick| tick.price_e9),
    ("size_e9", |tick| tick.size_e9),
    ("bid_price_e9", |tick| tick.bid_price_e9),
    ("bid_size_e9", |tick| tick.bid_size_e9),
    ("ask_price_e9", |tick| tick.ask_price_e9),
    ("ask_size_e9", |tick| tick.ask_size_e9),
];

pub fn assert_tick(record: &Record, tick: &Tick) {
    assert_eq!(record.text("symbol"), tick.symbol);
    assert_eq!(record.text("kind"), kind_name(tick.kind));
    assert_eq!(record.text("side"), side_name(tick.side));
    for (field, value) in LONGS {
        assert_eq!(record.long(field), value(tick), "{field}");
    }
}

fn assert_batch(record: &Record, ticks: &[Tick]) {
    let symbols: Vec<&str> = record.items("symbols").iter().map(text_of).collect();
    let column = |field| record.items(field);
    assert!(
        column("symbol")
            .iter()
            .map(|item| symbols[long_of(item) as usize])
            .eq(ticks.iter().map(|t| &t.symbol))
    );
    assert!(column("kind").iter().map(text_of).eq(ticks.iter().map(|tick| kind_name(tick.kind))));
    let sides = column("side");
    assert!(sides.is_empty() || sides.len() == ticks.len());
    assert!(
        ticks
            .iter()
            .enumerate()
            .all(|(row, tick)| sides.get(row).map_or("NONE", text_of) == side_name(tick.side))
    );
    for (field, value) in LONGS {
        let items = column(field);
        assert!(items.is_empty() || items.len() == ticks.len(), "{field}");
        assert!(ticks.iter().enumerate().all(|(row, tick)| items.get(row).map_or(0, long_of) == value(tick)));
    }
}

#[test]
fn a_trade_and_a_quote() {
    let ticks = [samples::trade(), samples::quote(), samples::trade()];
    let payloads: Vec<_> = ticks.iter().map(single).collect();
    let (symbols, columns) = decode(&payloads);
    assert_eq!(columns.symbol, [0, 1, 0]);
    assert_eq!(symbols.iter().collect::<Vec<_>>(), ["BINANCE:BTCUSDT", "XETRA:MÜV2"]);
    assert_eq!(columns.price_e9, [61_234_500_000_000, 0, 61_234_500_000_000]);
    assert_eq!(columns.bid_price_e9, [0, 450_100_000_000, 0]);
    assert_eq!(columns.side, [Side::Sell, Side::None, Side::Sell]);
    for (row, tick) in ticks.iter().enumerate() {
        assert_eq!(columns.tick(row, &symbols), *tick);
    }
}

proptest! {
    #[test]
    fn singles_and_batches_give_the_same_columns(ticks in samples::ticks(), cut in 0_usize..40) {
        let expected = expected(&ticks);
        let singles: Vec<_> = ticks.iter().map(single).collect();
        prop_assert!(decode(&singles) == expected);
        let batches: Vec<_> = ticks.chunks(cut + 1).map(batch).collect();
        prop_assert!(decode(&batches) == expected);
    }

    #[test]
    fn apache_avro_reads_the_same(ticks in samples::ticks()) {
        assert_batch(&Published::new(known::TICK_BATCH).read(&batch(&ticks)), &ticks);
        let published = Published::new(known::TICK);
        for tick in &ticks {
            assert_tick(&published.read(&single(tick)), tick);
        }
    }
}
