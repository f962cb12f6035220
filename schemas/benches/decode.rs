//! Decoding ticks from Avro into columns, compared with arrow-avro and apache-avro on the same bytes; then signals, and
//! the encoders.
//!
//! The input is 65,536 ticks of a synthetic market, too many for the branch predictor to learn. It has 64 symbols, a
//! few of which have most of the ticks, and 3 quotes for every 2 trades. Ticks are one record each (`tick`), or in
//! batch records of 256 (`batch`). `packed` compares the records of many ticks with each other, and prints their bytes
//! per tick. The other libraries are set up once, as their documentation recommends for a stream
//! of single-object records. Our columns are emptied, and arrow-avro's `Decoder` is flushed, after every 1,024 rows;
//! apache-avro's `GenericDatumReader` only produces values. Before any timing, all of them must have read the same
//! prices. Our decoder also checks every value and numbers the symbols, which the others do not.

use std::hint::black_box;
use std::sync::Arc;

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_avro::reader::{Decoder, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, SchemaStore};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warptape_schemas::journal::{
    Arrived, Decision, Dispatch, GroupArrival, Input, LaneTelemetry, ReleaseReason, Take,
};
use warptape_schemas::known::{self, KnownSchema};
use warptape_schemas::signal::{Bar, Signal, SignalKind};
use warptape_schemas::tick::{Scales, Side, Tick, TickColumns, TickKind};
use warptape_schemas::*;

/// The id of the only schema in the registry.
const REGISTERED_ID: u32 = 7;

#[derive(Debug)]
struct Registered(&'static str);

impl SchemaSource for Registered {
    fn schema(&self, id: u32) -> Option<Arc<str>> {
        (id == REGISTERED_ID).then(|| Arc::from(self.0))
    }
}

const TICKS: usize = 65_536;
const BATCH_ROWS: usize = 256;
/// Number of rows after which the columns are emptied.
const ROWS: usize = 1_024;

/// A small generator with a fixed seed, so that every run has the same ticks.
struct Market {
    state: u64,
}

impl Market {
    fn next(&mut self, limit: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % limit
    }

    fn ticks(mut self) -> Vec<Tick> {
        (0..TICKS as i64).map(|index| self.tick(index)).collect()
    }

    fn tick(&mut self, index: i64) -> Tick {
        let symbol = self.next(64).min(self.next(64)).min(self.next(64));
        let event_time_ns = 1_722_470_400_000_000_000 + index * 731_000 + self.next(500_000) as i64;
        let price_e9 = (1 + symbol as i64 * 37) * 1_250_000_000 + self.next(100_000) as i64 * 10_000;
        let size_e9 = (1 + self.next(5_000)) as i64 * 10_000_000;
        let trade = self.next(5) < 2;
        let if_trade = |value: i64| if trade { value } else { 0 };
        let if_quote = |value: i64| if trade { 0 } else { value };
        Tick {
            symbol: format!("BINANCE:SYM{symbol}USDT"),
            kind: if trade { TickKind::Trade } else { TickKind::Quote },
            event_time_ns,
            receive_time_ns: event_time_ns + 1_500_000,
            trade_id: if_trade(3_700_000_000 + index),
            side: if trade { [Side::Buy, Side::Sell][(index & 1) as usize] } else { Side::None },
            price_e9: if_trade(price_e9),
            size_e9: if_trade(size_e9),
            bid_price_e9: if_quote(price_e9 - 10_000),
            bid_size_e9: if_quote(size_e9),
            ask_price_e9: if_quote(price_e9 + 10_000),
            ask_size_e9: if_quote(size_e9 * 2),
            scales: Scales::E9,
        }
    }
}

fn ours(
    decoder: &mut TickDecoder,
    payloads: &[Vec<u8>],
    symbols: &mut SymbolTable,
    columns: &mut TickColumns,
) {
    for payload in payloads {
        if columns.len() >= ROWS {
            black_box(&mut *columns).clear();
        }
        decoder.decode(payload, symbols, columns).expect("a good record");
    }
}

fn arrow_decoder(schema: KnownSchema, rows: usize) -> Decoder {
    let mut store = SchemaStore::new();
    store.register(AvroSchema::new(schema.text.to_owned())).expect("a schema");
    ReaderBuilder::new()
        .with_batch_size(rows)
        .with_writer_schema_store(store)
        .build_decoder()
        .expect("a decoder")
}

fn arrow(decoder: &mut Decoder, payloads: &[Vec<u8>]) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for payload in payloads {
        assert_eq!(decoder.decode(payload).expect("a good record"), payload.len());
        if decoder.batch_is_full() {
            batches.extend(decoder.flush().expect("rows"));
        }
    }
    batches.extend(decoder.flush().expect("rows"));
    batches
}

fn apache(reader: &GenericDatumReader<'_>, payloads: &[Vec<u8>]) -> Vec<Value> {
    payloads
        .iter()
        .map(|payload| reader.read_value(&mut &payload[HEADER_SIZE..]).expect("a good record"))
        .collect()
}

fn arrow_prices(batches: &[RecordBatch], is_batch: bool) -> Vec<i64> {
    let prices = |batch: &RecordBatch| {
        let column = batch.column_by_name("bid_price_e9").expect("a column");
        let values = if is_batch { column.as_list::<i32>().values() } else { column };
        values.as_primitive::<Int64Type>().values().to_vec()
    };
    batches.iter().flat_map(prices).collect()
}

fn apache_prices(values: &[Value]) -> Vec<i64> {
    let long = |value: &Value| match value {
        Value::Long(long) => *long,
        other => panic!("no long: {other:?}"),
    };
    let prices = |value: &Value| {
        let Value::Record(fields) = value else { panic!("no record") };
        match &fields.iter().find(|(name, _)| name == "bid_price_e9").expect("a field").1 {
            Value::Array(items) => items.iter().map(long).collect(),
            item => vec![long(item)],
        }
    };
    values.iter().flat_map(prices).collect()
}

fn decode(criterion: &mut Criterion, name: &str, schema: KnownSchema, payloads: &[Vec<u8>], ticks: &[Tick]) {
    let is_batch = schema == known::TICK_BATCH;
    let (mut decoder, mut symbols, mut columns) =
        (TickDecoder::new(), SymbolTable::default(), TickColumns::default());
    let mut arrow_decoder = arrow_decoder(schema, ROWS);
    let apache_schema = Schema::parse_str(schema.text).expect("a schema");
    let apache_reader = GenericDatumReader::builder(&apache_schema).build().expect("a reader");

    let expected: Vec<i64> = ticks.iter().map(|tick| tick.bid_price_e9).collect();
    for payload in payloads {
        decoder.decode(payload, &mut symbols, &mut columns).expect("a good record");
    }
    assert_eq!(columns.bid_price_e9, expected);
    assert!(ticks.iter().enumerate().all(|(row, tick)| columns.tick(row, &symbols) == *tick));
    assert_eq!(arrow_prices(&arrow(&mut arrow_decoder, payloads), is_batch), expected);
    assert_eq!(apache_prices(&apache(&apache_reader, payloads)), expected);

    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(ticks.len() as u64));
    group.bench_function("warptape", |bencher| {
        bencher.iter(|| {
            ours(&mut decoder, black_box(payloads), &mut symbols, &mut columns);
            black_box(&columns);
        });
    });
    let framed = |payload: &Vec<u8>| {
        let mut framed = Vec::new();
        to_registry_frame(payload, REGISTERED_ID, &mut framed);
        framed
    };
    let framed: Vec<_> = payloads.iter().map(framed).collect();
    let mut framed_decoder = TickDecoder::with_source(Some(Arc::new(Registered(schema.text))));
    group.bench_function("warptape, registry frame", |bencher| {
        bencher.iter(|| {
            ours(&mut framed_decoder, black_box(&framed), &mut symbols, &mut columns);
            black_box(&columns);
        });
    });
    group.bench_function("arrow-avro", |bencher| {
        bencher.iter(|| black_box(arrow(&mut arrow_decoder, black_box(payloads))));
    });
    group.bench_function("apache-avro", |bencher| {
        bencher.iter(|| black_box(apache(&apache_reader, black_box(payloads))));
    });
    group.finish();
}

fn decoders(criterion: &mut Criterion) {
    let ticks = Market { state: 42 }.ticks();
    let single = |tick: &Tick| {
        let mut payload = Vec::new();
        encode_tick(tick, &mut payload).expect("a good tick");
        payload
    };
    let batch = |ticks: &[Tick]| {
        let mut payload = Vec::new();
        encode_tick_batch(ticks, &mut payload).expect("good ticks");
        payload
    };
    let singles: Vec<_> = ticks.iter().map(single).collect();
    decode(criterion, "tick", known::TICK, &singles, &ticks);
    let batches: Vec<_> = ticks.chunks(BATCH_ROWS).map(batch).collect();
    decode(criterion, "batch", known::TICK_BATCH, &batches, &ticks);

    // Trades of one symbol, as in recorded files.
    let mut trades: Vec<Tick> = ticks.into_iter().filter(|tick| tick.kind == TickKind::Trade).collect();
    trades.iter_mut().for_each(|tick| tick.symbol = "BINANCE:BTCUSDT".into());
    let batches: Vec<_> = trades.chunks(BATCH_ROWS).map(batch).collect();
    let (mut decoder, mut symbols, mut columns) =
        (TickDecoder::new(), SymbolTable::default(), TickColumns::default());
    let mut group = criterion.benchmark_group("batch of one symbol's trades");
    group.throughput(Throughput::Elements(trades.len() as u64));
    group.bench_function("warptape", |bencher| {
        bencher.iter(|| {
            ours(&mut decoder, black_box(&batches), &mut symbols, &mut columns);
            black_box(&columns);
        });
    });
    group.finish();
}

/// A function that encodes a batch.
type Encode = fn(&[Tick], &mut Vec<u8>) -> Result<(), EncodeError>;

/// Compares records of many ticks: those of many symbols, and trades and quotes of a single one. The bytes are printed.
fn records(criterion: &mut Criterion) {
    let ticks = Market { state: 42 }.ticks();
    let of_one = |tick: &Tick| Tick { symbol: "BINANCE:BTCUSDT".into(), ..tick.clone() };
    let of_one: Vec<Tick> =
        ticks.iter().filter(|tick| tick.symbol.ends_with("SYM0USDT")).map(of_one).collect();
    let ways: [(&str, Encode); 3] = [
        ("TickBatch", encode_tick_batch),
        ("ScaledTickBatch", encode_scaled_tick_batch),
        ("PackedTickBatch", encode_packed_tick_batch),
    ];
    for (name, ticks) in [("packed, 64 symbols", ticks), ("packed, one symbol", of_one)] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(ticks.len() as u64));
        for (record, encode) in ways {
            let batch = |ticks: &[Tick]| {
                let mut payload = Vec::new();
                encode(ticks, &mut payload).expect("good ticks");
                payload
            };
            let payloads: Vec<_> = ticks.chunks(BATCH_ROWS).map(batch).collect();
            let bytes: usize = payloads.iter().map(Vec::len).sum();
            println!("{name}: {record} takes {:.2} bytes per tick", bytes as f64 / ticks.len() as f64);
            let (mut decoder, mut symbols, mut columns) =
                (TickDecoder::new(), SymbolTable::default(), TickColumns::default());
            for payload in &payloads {
                decoder.decode(payload, &mut symbols, &mut columns).expect("a good record");
            }
            assert!(ticks.iter().enumerate().all(|(row, tick)| columns.tick(row, &symbols) == *tick));
            group.bench_function(record, |bencher| {
                bencher.iter(|| {
                    ours(&mut decoder, black_box(&payloads), &mut symbols, &mut columns);
                    black_box(&columns);
                });
            });
        }
        group.finish();
    }
}

fn bar_signal() -> Signal<'static> {
    Signal {
        symbol: "BINANCE:BTCUSDT".into(),
        kind: SignalKind::Bar,
        bar_spec: "5m".into(),
        bar_start_ns: 1_722_470_400_000_000_000,
        bar_end_ns: 1_722_470_700_000_000_000,
        source_offset: 81_234,
        source_index: 255,
        value: 61_234.5,
        threshold: 0.0,
        bar: Some(Bar {
            open_e9: Some(61_000_000_000_000),
            high_e9: Some(61_500_000_000_000),
            low_e9: Some(60_999_000_000_000),
            close_e9: Some(61_234_500_000_000),
            volume_e9: 12_345_678_900_000,
            trades: 812,
            bid_price_e9: Some(61_234_400_000_000),
            ask_price_e9: Some(61_234_600_000_000),
            exact: None,
            indicators: [Some(61_000.25); 16],
            further_indicators: Default::default(),
            partial: Some(false),
            buy_volume_e9: Some(6_345_678_900_000),
            sell_volume_e9: Some(6_000_000_000_000),
            buy_trades: Some(412),
            sell_trades: Some(400),
            bid_size_e9: Some(1_500_000_000),
            ask_size_e9: Some(250_000_000),
            quote_forgotten: Some(false),
            exact_flow: None,
        }),
        name: None,
    }
}

fn dispatch() -> (Input, Vec<Decision>) {
    let groups = (0..16).map(|group| GroupArrival { group, rows: 30, bytes: 2_400 }).collect();
    let takes = (0..16).map(|group| Take { partition: 0, group, epoch: 1, rows: 30 }).collect();
    let decision = Dispatch {
        batch: 9_000,
        lane: 2,
        takes,
        rows: 480,
        bytes: 38_400,
        reason: ReleaseReason::Idle,
        telemetry: LaneTelemetry {
            in_flight_rows: 1_000,
            in_flight_bytes: 80_000,
            in_flight_batches: 1,
            service_ps_per_row: 23_000,
        },
        oldest_arrival_ns: 1_722_470_400_000_000_000,
        predicted_finish_ns: 1_722_470_400_001_000_000,
    };
    (Input::Arrived(Arrived { partition: 0, next_offset: 101, groups }), vec![Decision::Dispatch(decision)])
}

fn signals(criterion: &mut Criterion) {
    let mut payload = Vec::new();
    encode_signal(&bar_signal(), &mut payload);
    criterion.bench_function("signal with bar", |bencher| {
        bencher.iter(|| decode_signal(black_box(&payload)).map(|signal| black_box(signal).bar.is_some()));
    });
}

fn encoders(criterion: &mut Criterion) {
    let mut out = Vec::with_capacity(1 << 20);
    let mut group = criterion.benchmark_group("encode");
    let bar = bar_signal();
    let cross = Signal { kind: SignalKind::EmaCrossUp, bar: None, ..bar_signal() };
    for (name, signal) in [("signal with bar", &bar), ("signal without bar", &cross)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_signal(black_box(signal), &mut out);
            });
        });
    }
    let (input, decisions) = dispatch();
    let mut writer = JournalWriter::new();
    group.bench_function("journal entry of 16 groups", |bencher| {
        bencher.iter(|| {
            out.clear();
            writer.append(5, black_box(&input), black_box(&decisions), 7, &mut out)
        });
    });
    let ticks = Market { state: 42 }.ticks();
    group.throughput(Throughput::Elements(BATCH_ROWS as u64));
    let ways: [(&str, Encode); 2] = [("", encode_tick_batch), (", packed", encode_packed_tick_batch)];
    for (name, encode) in ways {
        group.bench_function(format!("batch of 256 ticks{name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                encode(black_box(&ticks[..BATCH_ROWS]), &mut out).expect("good ticks");
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(40).without_plots();
    targets = decoders, records, signals, encoders
}
criterion_main!(benches);
