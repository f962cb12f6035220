//! Foreign writer schemas: fields moved, added, left out, made nullable. The columns are the same with each way of
//! reading.

mod variants;

use std::collections::HashMap;

use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use proptest::prelude::*;
use serde_json::json;

use self::variants::{batch_text, field_mut, planned, tick_text, unplanned, variant};
use super::*;
use crate::tick::{Scales, Side, Tick, TickKind};

type Json = serde_json::Value;

/// The way of reading a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The way that the decoder chooses.
    Plan,
    /// The steps of the plan, also for the published schema.
    Steps,
    Arrow,
}

/// Returns a decoder with only this schema.
fn decoder(text: &str, way: Way) -> TickDecoder {
    let schema = Schema::parse_str(text).expect("a schema");
    let fingerprint = rabin(&schema);
    let plan = match way {
        Way::Plan => Plan::compile(text, &schema, fingerprint),
        Way::Steps => Plan::compile(text, &schema, fingerprint).map(|plan| match plan {
            Plan::Tick(plan) => Plan::Tick(plan.by_steps_only()),
            other => other,
        }),
        Way::Arrow => {
            let Schema::Record(record) = &schema else { panic!("no record") };
            Plan::other(text, &schema, fingerprint, record.name.name() == known::TICK_BATCH.name)
        }
    };
    let writers = vec![Writer { fingerprint, plan: plan.expect("a schema of ticks") }];
    TickDecoder { writers, ..TickDecoder::new() }
}

/// Writes a record with apache-avro by the writer's schema, field by field.
fn written(text: &str, fields: &HashMap<String, Value>) -> Vec<u8> {
    let schema = Schema::parse_str(text).expect("a schema");
    let Schema::Record(record) = &schema else { panic!("no record") };
    let value_of = |field: &apache_avro::schema::RecordField| {
        let value = fields.get(&field.name).cloned().unwrap_or_else(|| filler(&field.schema));
        (field.name.clone(), fitted(value, &field.schema))
    };
    let value = Value::Record(record.fields.iter().map(value_of).collect());
    let datum = GenericDatumWriter::builder(&schema).build().and_then(|avro| avro.write_value_to_vec(value));
    [&frame::header(rabin(&schema))[..], &datum.expect("a value of the schema")].concat()
}

/// Returns our value in the writer's type, which may be narrower, or a union.
fn fitted(value: Value, schema: &Schema) -> Value {
    match (value, schema) {
        (value, Schema::Union(union)) => {
            let branch =
                union.variants().iter().position(|branch| *branch != Schema::Null).expect("a branch");
            Value::Union(branch as u32, Box::new(fitted(value, &union.variants()[branch])))
        }
        (Value::Array(items), Schema::Array(array)) => {
            Value::Array(items.into_iter().map(|item| fitted(item, &array.items)).collect())
        }
        (Value::Long(value), Schema::Int) => Value::Int(value as i32),
        (Value::Long(value), Schema::TimestampNanos) => Value::TimestampNanos(value),
        (Value::String(text), Schema::Bytes) => Value::Bytes(text.into_bytes()),
        (Value::Enum(_, symbol), Schema::Enum(symbols)) => {
            let index = symbols.symbols.iter().position(|known| *known == symbol).expect("a symbol");
            Value::Enum(index as u32, symbol)
        }
        (value, _) => value,
    }
}

/// Returns some value for a field that the published schema does not have.
fn filler(schema: &Schema) -> Value {
    match schema {
        Schema::Null => Value::Null,
        Schema::Boolean => Value::Boolean(true),
        Schema::Int => Value::Int(-300),
        Schema::Long => Value::Long(i64::MIN),
        Schema::Float => Value::Float(1.5),
        Schema::Double => Value::Double(-2.5),
        Schema::Bytes => Value::Bytes(vec![0xff; 3]),
        Schema::String => Value::String("filler".into()),
        Schema::Fixed(fixed) => Value::Fixed(fixed.size, vec![7; fixed.size]),
        Schema::Enum(symbols) => Value::Enum(1, symbols.symbols[1].clone()),
        Schema::TimestampMillis => Value::TimestampMillis(5),
        Schema::Array(array) => Value::Array(vec![filler(&array.items), filler(&array.items)]),
        Schema::Map(map) => Value::Map(HashMap::from([("key".into(), filler(&map.types))])),
        Schema::Union(union) => filler(union.variants().last().expect("a branch")),
        Schema::Record(record) => Value::Record(
            record.fields.iter().map(|field| (field.name.clone(), filler(&field.schema))).collect(),
        ),
        other => panic!("no filler for {other:?}"),
    }
}

fn longs(tick: &Tick) -> [(&'static str, i64); 9] {
    let values = crate::check::longs_of(tick);
    crate::long_field::LongField::ALL.map(|field| (field.name(), values[field as usize]))
}

fn kind_value(tick: &Tick) -> Value {
    let index = tick.kind as u32;
    Value::Enum(index, ["TRADE", "QUOTE"][index as usize].into())
}

fn side_value(tick: &Tick) -> Value {
    let index = tick.side as u32;
    Value::Enum(index, ["NONE", "BUY", "SELL"][index as usize].into())
}

fn tick_fields(tick: &Tick) -> HashMap<String, Value> {
    let mut fields = HashMap::from([
        ("symbol".into(), Value::String(tick.symbol.clone())),
        ("kind".into(), kind_value(tick)),
        ("side".into(), side_value(tick)),
    ]);
    fields.extend(longs(tick).map(|(name, value)| (name.to_owned(), Value::Long(value))));
    fields
}

/// Returns a batch with a reversed dictionary and an unused symbol, as other producers may write it.
fn batch_fields(ticks: &[Tick]) -> HashMap<String, Value> {
    let mut dictionary: Vec<&str> = ticks.iter().map(|tick| &*tick.symbol).chain(["UNUSED"]).collect();
    dictionary.sort_unstable();
    dictionary.dedup();
    dictionary.reverse();
    let index = |tick: &Tick| dictionary.iter().position(|name| *name == tick.symbol).expect("in it") as i64;
    let column = |value: &dyn Fn(&Tick) -> Value| Value::Array(ticks.iter().map(value).collect());
    let mut fields = HashMap::from([
        (
            "symbols".into(),
            Value::Array(dictionary.iter().map(|name| Value::String((*name).to_owned())).collect()),
        ),
        ("symbol".into(), column(&|tick| Value::Long(index(tick)))),
        ("kind".into(), column(&kind_value)),
        ("side".into(), column(&side_value)),
    ]);
    for (place, (name, _)) in longs(&ticks[0]).into_iter().enumerate() {
        fields.insert(name.to_owned(), column(&|tick| Value::Long(longs(tick)[place].1)));
    }
    fields
}

fn tick() -> impl Strategy<Value = Tick> {
    let symbol = "[A-B]:[A-Cü]";
    let numbers = (1..i64::MAX, 0..i64::MAX, 1..2_000_000_000_i64, 0..1_000_i64);
    (symbol, any::<bool>(), numbers, 0..3_usize).prop_map(
        |(symbol, trade, (time, received, price, size), side)| {
            let or_zero = |used: bool, value: i64| if used { value } else { 0 };
            Tick {
                symbol,
                kind: if trade { TickKind::Trade } else { TickKind::Quote },
                event_time_ns: time,
                receive_time_ns: received,
                trade_id: or_zero(trade, time / 3),
                side: if trade { [Side::None, Side::Buy, Side::Sell][side] } else { Side::None },
                price_e9: or_zero(trade, price),
                size_e9: or_zero(trade, size),
                bid_price_e9: or_zero(!trade, price),
                bid_size_e9: or_zero(!trade, size),
                ask_price_e9: or_zero(!trade, price + 1),
                ask_size_e9: or_zero(!trade, size / 2),
                scales: Scales::E9,
            }
        },
    )
}

/// Returns the tick as read from a writer that left out these fields.
fn without(tick: &Tick, left_out: &[&str]) -> Tick {
    let or_zero = |name, value| if left_out.contains(&name) { 0 } else { value };
    Tick {
        receive_time_ns: or_zero("receive_time_ns", tick.receive_time_ns),
        trade_id: or_zero("trade_id", tick.trade_id),
        side: if left_out.contains(&"side") { Side::None } else { tick.side },
        price_e9: or_zero("price_e9", tick.price_e9),
        size_e9: or_zero("size_e9", tick.size_e9),
        bid_price_e9: or_zero("bid_price_e9", tick.bid_price_e9),
        bid_size_e9: or_zero("bid_size_e9", tick.bid_size_e9),
        ask_price_e9: or_zero("ask_price_e9", tick.ask_price_e9),
        ask_size_e9: or_zero("ask_size_e9", tick.ask_size_e9),
        ..tick.clone()
    }
}

/// Decodes the payloads with a decoder whose columns already contain a row, and compares the result with the ticks or
/// their error.
fn check(text: &str, way: Way, payloads: &[Vec<u8>], ticks: &[Tick], left_out: &[&str]) {
    let mut decoder = decoder(text, way);
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let (mut expected_symbols, mut expected) = (SymbolTable::default(), TickColumns::default());
    let rows_of = ticks.len() / payloads.len();
    for (payload, ticks) in payloads.iter().zip(ticks.chunks(rows_of)) {
        let ticks: Vec<_> = ticks.iter().map(|tick| without(tick, left_out)).collect();
        let is_good = ticks.iter().all(|tick| tick.kind == TickKind::Quote || tick.price_e9 > 0);
        let result = decoder.decode(payload, &mut symbols, &mut columns);
        assert_eq!(result.is_ok(), is_good, "{way:?} {result:?} {text}");
        if is_good {
            ticks.iter().for_each(|tick| expected.push(tick, &mut expected_symbols));
        }
        assert_eq!((&columns, &symbols), (&expected, &expected_symbols), "{way:?} {text}");
    }
}

/// Returns the way that the decoder chooses for a schema.
fn takes(text: &str) -> Way {
    match decoder(text, Way::Plan).writers[0].plan {
        Plan::Arrow(_) => Way::Arrow,
        Plan::Tick(_) | Plan::Batch(_) | Plan::Packed(_) => Way::Plan,
    }
}

/// True if arrow-avro can read the schema. It reads a `timestamp-nanos` as a timestamp and not as a long, so only the
/// plan can read it.
fn arrow_reads(text: &str) -> bool {
    !text.contains("timestamp-nanos")
}

#[test]
fn each_shape_takes_its_way() {
    for (text, array) in [(tick_text(), false), (batch_text(), true)] {
        for (text, _) in planned(text, array) {
            assert_eq!(takes(&text), Way::Plan, "{text}");
        }
        for text in unplanned(text, array) {
            assert_eq!(takes(&text), Way::Arrow, "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn both_ways_give_the_same_columns(ticks in prop::collection::vec(tick(), 1..12)) {
        let singles = |text: &str| ticks.iter().map(|tick| written(text, &tick_fields(tick))).collect::<Vec<_>>();
        let batches = |text: &str| vec![written(text, &batch_fields(&ticks))];
        for (text, array) in [(tick_text(), false), (batch_text(), true)] {
            let payloads = |text: &str| if array { batches(text) } else { singles(text) };
            for (text, left_out) in planned(text, array) {
                let payloads = payloads(&text);
                check(&text, Way::Plan, &payloads, &ticks, left_out);
                check(&text, Way::Steps, &payloads, &ticks, left_out);
                if arrow_reads(&text) {
                    check(&text, Way::Arrow, &payloads, &ticks, left_out);
                }
            }
            for text in unplanned(text, array) {
                check(&text, Way::Arrow, &payloads(&text), &ticks, &[]);
            }
        }
    }

    /// Both ways accept the same damaged records, and never panic; their errors may differ.
    #[test]
    fn both_ways_accept_the_same_damaged_records(
        ticks in prop::collection::vec(tick(), 1..5),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        for (text, fields) in [(tick_text(), tick_fields(&ticks[0])), (batch_text(), batch_fields(&ticks))] {
            let mut payload = written(text, &fields);
            for (place, byte) in &damage {
                let datum = &mut payload[frame::HEADER_SIZE..];
                datum[place.index(datum.len())] = *byte;
            }
            if let Some(cut) = cut {
                payload.truncate(frame::HEADER_SIZE + cut.index(payload.len() - frame::HEADER_SIZE));
            }
            let decoded = |way| {
                let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
                let result = decoder(text, way).decode(&payload, &mut symbols, &mut columns);
                assert!(result.is_ok() || (columns.is_empty() && symbols.is_empty()));
                (result, columns, symbols)
            };
            let (plan, steps, arrow) = (decoded(Way::Plan), decoded(Way::Steps), decoded(Way::Arrow));
            prop_assert_eq!((&plan.1, &plan.2, plan.0.is_ok()), (&arrow.1, &arrow.2, arrow.0.is_ok()));
            prop_assert_eq!(plan, steps);
        }
    }
}

#[test]
fn a_decoder_goes_on_after_a_bad_record() {
    let text = unplanned(tick_text(), false).remove(0);
    let mut decoder = decoder(&text, Way::Arrow);
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let good = Tick {
        symbol: "A:B".into(),
        kind: TickKind::Trade,
        event_time_ns: 5,
        receive_time_ns: 0,
        trade_id: 1,
        side: Side::Buy,
        price_e9: 7,
        size_e9: 8,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    };
    let payload = written(&text, &tick_fields(&good));
    for cut in frame::HEADER_SIZE..payload.len() {
        assert!(decoder.decode(&payload[..cut], &mut symbols, &mut columns).is_err());
    }
    let trailing = [&payload[..], &[0]].concat();
    assert!(decoder.decode(&trailing, &mut symbols, &mut columns).is_err());
    assert!(columns.is_empty() && symbols.is_empty());
    assert_eq!(decoder.decode(&payload, &mut symbols, &mut columns), Ok(1));
    assert_eq!(columns.tick(0, &symbols), good);
}

#[test]
fn nulls_where_ours_has_none_are_refused() {
    let text = variant(tick_text(), |fields| field_mut(fields, "price_e9")["type"] = json!(["null", "long"]));
    let schema = Schema::parse_str(&text).expect("a schema");
    let mut payload = frame::header(rabin(&schema)).to_vec();
    // The values are: symbol A, TRADE, time 1, no receive time, no id, NONE, price null, and zeros.
    payload.extend([2, b'A', 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let error = decoder(&text, Way::Plan).decode(&payload, &mut symbols, &mut columns);
    assert!(matches!(error, Err(DecodeError::Unresolvable { .. } | DecodeError::Invalid(_))), "{error:?}");
    assert!(columns.is_empty() && symbols.is_empty());
}

#[test]
fn schemas_that_hold_no_ticks_are_refused() {
    let refused = |text: &str| TickDecoder::new().register_writer_schema(text).expect_err(text).to_string();
    let changed = |field: &str, to: Json| {
        refused(&variant(tick_text(), |fields| field_mut(fields, field)["type"] = to))
    };
    let cases = [
        (refused("{"), "not an Avro schema"),
        (refused("\"long\""), "the schema is of Long"),
        (refused(known::SIGNAL.text), "the schema is of Signal"),
        (refused(&variant(tick_text(), |fields| drop(fields.remove(0)))), "the field symbol is missing"),
        (refused(&variant(batch_text(), |fields| drop(fields.remove(2)))), "the field kind is missing"),
        (changed("price_e9", json!("double")), "the type of price_e9"),
        (changed("kind", json!("string")), "the type of kind"),
        (changed("symbol", json!("long")), "the type of symbol"),
        (
            changed("event_time_ns", json!({"type": "long", "logicalType": "timestamp-micros"})),
            "event_time_ns is timestamp-micros, and has to be in nanoseconds",
        ),
        (
            changed("receive_time_ns", json!(["null", {"type": "long", "logicalType": "timestamp-millis"}])),
            "receive_time_ns is timestamp-millis",
        ),
        (
            changed("price_e9", json!([{"type": "long", "logicalType": "timestamp-nanos"}, "null"])),
            "price_e9 is",
        ),
        (
            refused(&variant(batch_text(), |fields| {
                let micros = json!({"type": "long", "logicalType": "local-timestamp-micros"});
                field_mut(fields, "event_time_ns")["type"]["items"] = json!(["null", micros])
            })),
            "event_time_ns is local-timestamp-micros",
        ),
        (
            refused(&variant(batch_text(), |fields| {
                field_mut(fields, "event_time_ns")["type"] = json!("long")
            })),
            "the type of event_time_ns",
        ),
        (
            refused(&variant(tick_text(), |fields| {
                fields.push(json!({"name": "bomb", "type": {"type": "array", "items": "null"}}))
            })),
            "items without bytes",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{found:?} does not say {expected:?}");
    }
}

#[test]
fn a_registered_schema_is_known_by_its_fingerprint() {
    let text = variant(tick_text(), |fields| fields.reverse());
    let mut decoder = TickDecoder::new();
    let before = decoder.writers.len();
    let fingerprint = decoder.register_writer_schema(&text).expect("a schema of ticks");
    assert_eq!(decoder.register_writer_schema(&text), Ok(fingerprint));
    assert_eq!(decoder.register_writer_schema(tick_text()), Ok(known::TICK.fingerprint));
    assert_eq!(decoder.writers.len(), before + 1);
    let error = decoder.decode(&frame::header(9), &mut SymbolTable::default(), &mut TickColumns::default());
    assert_eq!(error, Err(DecodeError::UnknownSchema { fingerprint: 9 }));
}

/// The schemas of a registry, by id.
#[derive(Debug)]
struct Registered(HashMap<u32, Arc<str>>);

impl SchemaSource for Registered {
    fn schema(&self, id: u32) -> Option<Arc<str>> {
        self.0.get(&id).cloned()
    }
}

#[test]
fn records_in_the_registrys_frame_are_the_same_ticks() {
    let reversed = variant(tick_text(), |fields| fields.reverse());
    let texts = [tick_text(), batch_text(), &*reversed, known::SIGNAL.text, "{"];
    let registered = (1..).zip(texts).map(|(id, text)| (id, Arc::from(text))).collect();
    let mut decoder = TickDecoder::with_source(Some(Arc::new(Registered(registered))));
    let ticks: Vec<Tick> = (1..4).map(|number| Tick { trade_id: number, ..trade() }).collect();
    let (mut single, mut batch) = (Vec::new(), Vec::new());
    crate::encode_tick(&ticks[0], &mut single).expect("a good tick");
    crate::encode_tick_batch(&ticks, &mut batch).expect("good ticks");
    let framed = |payload: &[u8], id: u32| {
        let mut framed = Vec::new();
        frame::to_registry_frame(payload, id, &mut framed);
        framed
    };
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    // The order mixes ids and fingerprints, because both remember the last record's writer.
    let order = [&single, &framed(&single, 1), &batch, &framed(&batch, 2), &framed(&single, 1), &single];
    let rows: Vec<_> = order.map(|payload| decoder.decode(payload, &mut symbols, &mut columns)).into();
    assert_eq!(rows, [Ok(1), Ok(1), Ok(3), Ok(3), Ok(1), Ok(1)]);
    assert_eq!(columns.trade_id, [1, 1, 1, 2, 3, 1, 2, 3, 1, 1]);
    assert!((0..columns.len()).all(|row| columns.tick(row, &symbols).symbol == trade().symbol));

    let mut refused = |payload: &[u8]| decoder.decode(payload, &mut symbols, &mut columns).unwrap_err();
    assert_eq!(refused(&framed(&single, 9)), DecodeError::UnknownSchemaId { id: 9 });
    assert_eq!(refused(&framed(&single, 9)), DecodeError::UnknownSchemaId { id: 9 });
    for (id, part) in [(4, "of Signal"), (5, "not an Avro schema"), (4, "of Signal")] {
        let error = refused(&framed(&single, id));
        assert!(
            matches!(&error, DecodeError::UnusableSchema { id: found, detail } if *found == id && detail.contains(part))
        );
    }
    assert_eq!(
        TickDecoder::new().decode(&framed(&single, 1), &mut symbols, &mut columns),
        Err(DecodeError::UnknownSchemaId { id: 1 })
    );
    assert_eq!(columns.len(), 10);
}

fn trade() -> Tick {
    Tick {
        symbol: "T:X".to_owned(),
        kind: TickKind::Trade,
        event_time_ns: 7,
        receive_time_ns: 0,
        trade_id: 1,
        side: Side::Buy,
        price_e9: 5,
        size_e9: 3,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}
