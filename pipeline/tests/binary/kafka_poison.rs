//! One record of each kind of poison among ticks on a real Kafka: each becomes one dead letter, and its partition goes
//! on.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::json;
use warptape_eventlog::{EventLog, KafkaLog, KafkaOptions, NewRecord};
use warptape_schemas::risk::{RiskOutcome, RiskResult};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    DeadLetterReason, HEADER_SIZE, ROWS_MAX, SYMBOL_BYTES_MAX, decode_dead_letter, decode_risk_result,
    encode_risk_request, encode_tick, known,
};

use super::broker::shared;
use super::kafka_clients::given;
use super::kafka_market::{Market, PARTITIONS};
use super::outputs::records;
use super::processes::{texts, warptape};

/// Number of ticks before each record of poison, and after the last one.
const TICKS_BETWEEN: i64 = 5;

/// Encodes an Avro `long`.
fn long(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

fn text(value: &[u8]) -> Vec<u8> {
    [long(value.len() as i64), value.to_vec()].concat()
}

/// Encodes an array from its encoded items.
fn array(items: &[Vec<u8>]) -> Vec<u8> {
    let count = if items.is_empty() { Vec::new() } else { long(items.len() as i64) };
    [count, items.concat(), long(0)].concat()
}

fn longs(values: &[i64]) -> Vec<u8> {
    array(&values.iter().map(|value| long(*value)).collect::<Vec<_>>())
}

fn framed(schema: &known::KnownSchema, fields: &[Vec<u8>]) -> Vec<u8> {
    [&[0xc3, 0x01][..], &schema.fingerprint.to_le_bytes(), &fields.concat()].concat()
}

/// Returns a trade in which one field has other bytes. `place` is the field's index in the schema.
fn trade_with(place: usize, bytes: Vec<u8>) -> Vec<u8> {
    // Order of fields: symbol, kind, event and receive time, trade id, side, price, size, and four fields of quotes.
    let mut fields = vec![text(b"A:POISON")];
    fields.extend([0, 1, 0, 1, 1, 5, 1, 0, 0, 0, 0].map(long));
    fields[place] = bytes;
    framed(&known::TICK, &fields)
}

/// Returns a batch of two trades in which one column has other bytes. `place` is the column's index in the schema.
fn batch_with(place: usize, bytes: Vec<u8>) -> Vec<u8> {
    let mut fields = vec![array(&[text(b"A:POISON")])];
    // Order of columns: symbol, kind, event and receive time, trade id, side, price, size, and four columns of quotes.
    fields.extend([&[0, 0][..], &[0, 0], &[1, 2], &[], &[1, 2], &[1, 2], &[5, 6], &[1, 1]].map(longs));
    fields.extend((0..4).map(|_| longs(&[])));
    fields[place] = bytes;
    framed(&known::TICK_BATCH, &fields)
}

/// Returns a batch of one trade in which one column has other bytes. Since its only row is bad, the whole record is.
fn row_with(place: usize, bytes: Vec<u8>) -> Vec<u8> {
    let mut fields = vec![array(&[text(b"A:POISON")])];
    fields.extend([&[0][..], &[0], &[1], &[], &[1], &[1], &[5], &[1]].map(longs));
    fields.extend((0..4).map(|_| longs(&[])));
    fields[place] = bytes;
    framed(&known::TICK_BATCH, &fields)
}

/// Returns records that are rejected for a reason; empty if no record of ticks can have this reason.
pub fn poison(reason: DeadLetterReason) -> Vec<Vec<u8>> {
    use DeadLetterReason as Reason;
    let good = trade_with(4, long(1));
    match reason {
        Reason::NotFramed => vec![
            Vec::new(),
            b"{\"symbol\":\"A:POISON\",\"price\":1}".to_vec(),
            good[1..].to_vec(),
            good[..HEADER_SIZE - 1].to_vec(),
        ],
        Reason::UnknownSchema => vec![b"\xc3\x01UUUUUUUU".to_vec(), b"\x00\x00\x00\x00\x07datum".to_vec()],
        Reason::WrongSchema => vec![framed(&known::SIGNAL, &[]), framed(&known::JOURNAL_ENTRY, &[])],
        Reason::Truncated => {
            vec![good[..HEADER_SIZE].to_vec(), good[..good.len() - 1].to_vec(), batch_with(1, long(1 << 40))]
        }
        Reason::TrailingBytes => vec![[&good[..], &good].concat(), [&good[..], &[0]].concat()],
        Reason::Malformed => vec![trade_with(2, vec![0xff; 10]), trade_with(0, long(-3))],
        Reason::TooManyRows => vec![
            framed(&known::TICK_BATCH, &vec![longs(&[]); 13]),
            batch_with(0, array(&vec![text(b"A:X"); ROWS_MAX + 1])),
        ],
        Reason::LengthsDiffer => vec![batch_with(1, longs(&[0])), batch_with(7, longs(&[5, 6, 7]))],
        Reason::BadSymbol => vec![
            trade_with(0, text(b"")),
            trade_with(0, text(&[b'A'; SYMBOL_BYTES_MAX + 1])),
            trade_with(0, text(b"A\tB")),
            trade_with(0, text(b"A\xff")),
            row_with(1, longs(&[1])),
        ],
        Reason::BadKind => vec![trade_with(1, long(2)), row_with(2, longs(&[-1]))],
        Reason::BadSide => vec![trade_with(5, long(3))],
        Reason::BadTime => {
            vec![trade_with(2, long(0)), trade_with(2, long(-1)), trade_with(3, long(i64::MAX))]
        }
        Reason::BadPrice => {
            let prices = [0, i64::MIN, i64::MAX];
            prices.iter().map(|price| trade_with(6, long(*price))).chain([row_with(7, longs(&[0]))]).collect()
        }
        Reason::BadSize => vec![trade_with(7, long(-1)), trade_with(7, long(i64::MAX))],
        Reason::WrongFields => vec![trade_with(8, long(1))],
        // No record of ticks has these reasons. Ticks have no checksum, every rejection has a better reason than
        // `Other`, and a single record is not a batch.
        Reason::Checksum | Reason::Other | Reason::UnreadableBatch => Vec::new(),
    }
}

/// Returns the `number`th trade, of one of seven symbols.
pub fn tick(number: i64) -> Vec<u8> {
    let tick = Tick {
        symbol: format!("A:S{}", number % 7),
        kind: TickKind::Trade,
        event_time_ns: 1_000_000_000 + number * 1_000_000,
        receive_time_ns: 0,
        trade_id: number,
        side: Side::Buy,
        price_e9: 1_000_000_000 + number,
        size_e9: 1,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    };
    let mut value = Vec::new();
    encode_tick(&tick, &mut value).expect("a good tick");
    value
}

/// Returns values for one partition, each with the reason of its rejection; `None` for good ones.
fn values() -> Vec<(Option<DeadLetterReason>, Vec<u8>)> {
    let mut numbers = 1..;
    let mut values = Vec::new();
    let mut some_ticks = |values: &mut Vec<_>| {
        values.extend(numbers.by_ref().take(TICKS_BETWEEN as usize).map(|number| (None, tick(number))));
    };
    for reason in DeadLetterReason::ALL {
        for value in poison(reason) {
            some_ticks(&mut values);
            values.push((Some(reason), value));
        }
    }
    some_ticks(&mut values);
    values
}

#[test]
fn a_journal_that_cannot_be_continued_ends_the_process_and_is_named() {
    let market = Market::new("tail", shared());
    let journal = market.topic("journal");
    let values = [&b"garbage"[..], b"", b"\xc3\x01UUUUUUUU"];
    // Each value is tried twice: a member leaving the group used to fail at a place that depended on its progress.
    for (number, value) in values.iter().cycle().take(2 * values.len()).enumerate() {
        let mut producer = market.log.producer(&journal).expect("a producer");
        producer.begin().expect("a transaction");
        let topic = journal.as_str().into();
        let record = NewRecord { topic, value: (*value).into(), ..NewRecord::default() };
        producer.send(record).expect("a record of the transaction");
        producer.commit().expect("a commit");
        let (status, _, error) = market.start_run().finish();
        // The marker of each record's transaction takes the next offset.
        let place = format!("{journal}/0 offset {}: ", 2 * number);
        assert_eq!(status.code(), Some(1), "{error}");
        assert!(error.contains(&place) && error.contains("engine.ordinal"), "{error}");
    }
    // A record without a value, which other programs may publish outside of a transaction, so without a marker.
    publish_null(&shared().brokers, &journal);
    let (status, _, error) = market.start_run().finish();
    let place = format!("{journal}/0 offset {}: ", 4 * values.len());
    assert_eq!(status.code(), Some(1), "{error}");
    assert!(error.contains(&place) && error.contains("engine.ordinal"), "{error}");
}

/// Publishes a record with neither key nor value into the first partition.
fn publish_null(brokers: &str, topic: &str) {
    let script = "import sys, confluent_kafka as kafka\n\
                  producer = kafka.Producer({'bootstrap.servers': sys.argv[1]})\n\
                  producer.produce(sys.argv[2], value=None, partition=0)\n\
                  sys.exit(producer.flush(60))";
    let status = Command::new(given("WARPTAPE_TEST_PYTHON")).args(["-c", script, brokers, topic]).status();
    assert!(status.expect("Python starts").success(), "the record is not published");
}

#[test]
fn poison_of_every_kind_is_one_dead_letter_and_the_partition_goes_on() {
    let market = Market::new("poison", shared());
    let ticks = market.topic("ticks");
    let values = values();
    let mut producer = market.log.producer(&ticks).expect("a producer");
    producer.begin().expect("a transaction");
    for partition in 0..PARTITIONS {
        for (_, value) in &values {
            let value = value.as_slice().into();
            let record = NewRecord { topic: ticks.as_str().into(), partition, value, ..NewRecord::default() };
            producer.send(record).expect("a record of the transaction");
        }
    }
    producer.commit().expect("a commit");
    let bad = values.iter().filter(|(reason, _)| reason.is_some()).count();
    let of_all = |count: usize| count as u64 * PARTITIONS as u64;
    market.await_ticks(of_all(values.len() - bad), of_all(bad));
    market.drain(market.start_run());
    // A second process life finds nothing more to reject.
    market.drain(market.start_idle_run(&[]));

    let rejected: Vec<_> = (0..)
        .zip(&values)
        .filter_map(|(offset, (reason, value))| Some((offset, (*reason)?, value.clone())))
        .collect();
    let mut by_reason: BTreeMap<DeadLetterReason, usize> = BTreeMap::new();
    for partition in 0..PARTITIONS {
        let letters = records(&market.log, &market.topic("dead-letter"), partition);
        let letters = letters.iter().map(|record| decode_dead_letter(&record.value).expect("a dead letter"));
        let found: Vec<_> = letters
            .map(|letter| {
                assert_eq!((&letter.topic, letter.partition), (&ticks, partition));
                (letter.offset, letter.reason, letter.value)
            })
            .collect();
        assert_eq!(found.len(), rejected.len(), "partition {partition}: {found:?}");
        for (found, expected) in found.iter().zip(&rejected) {
            assert_eq!(found, expected, "partition {partition}");
            *by_reason.entry(found.1).or_default() += 1;
        }
        // Each of these ticks closes a bar, even after the last poison.
        let signals = records(&market.log, &market.topic("signals"), partition).len();
        let good = values.len() - rejected.len();
        assert!(signals >= good, "partition {partition}: {signals} signals of {good} ticks");
    }
    println!("{by_reason:?}");
    let counts = market.check();
    assert_eq!(counts[2], rejected.len() * PARTITIONS as usize);
}

/// Returns incompressible bytes.
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// Returns a request for implied volatilities at impossible prices. Each option gets a reason, and 10,000 reasons take
/// about a million bytes.
pub fn hopeless_request(request_id: &str, options: usize) -> Vec<u8> {
    let option = json!({"asset": 0, "kind": "call", "strike": 50.0, "expiry_years": 0.5});
    let problem = json!({
        "type": "implied-volatilities",
        "assets": [{"symbol": "A:S1", "spot": 100.0}],
        "options": vec![option; options],
        "prices": (0..options).map(|place| 1.0 + place as f64 * 1e-6).collect::<Vec<_>>(),
    });
    let request = serde_json::from_value(json!({"request_id": request_id, "problem": problem}));
    let mut value = Vec::new();
    encode_risk_request(&request.expect("a request"), &mut value);
    value
}

fn publish(log: &KafkaLog, topic: &str, values: &[Vec<u8>]) {
    let mut producer = log.producer(topic).expect("a producer");
    producer.begin().expect("a transaction");
    for value in values {
        let record = NewRecord { topic: topic.into(), value: value.into(), ..NewRecord::default() };
        producer.send(record).expect("a record of the transaction");
    }
    producer.commit().expect("a commit");
}

/// Publishes records that their topics accept, but whose results would be too large. Ticks must go on, and each record
/// must get a result or a dead letter.
#[track_caller]
fn check_large_records(name: &str, settings: &str) -> (Market, RiskResult) {
    let options = shared();
    let url = format!("kafka:{}", options.brokers);
    let market = Market::reached_by(
        name,
        options.clone(),
        url,
        &format!("kafka.session_timeout_ms = 6000\n{settings}"),
    );
    let (ticks, requests) = (market.topic("ticks"), market.topic("risk.requests"));
    let extra = [("compression.type", "zstd"), ("message.max.bytes", "25000000")];
    let extra = extra.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let compressing = KafkaLog::open(KafkaOptions { extra, ..options }).expect("a broker");
    publish(&compressing, &ticks, &[tick(1), noise(999_980), tick(2), vec![0; 20_000_000], tick(3)]);
    publish(&market.log, &requests, &[hopeless_request("hopeless", 10_000)]);
    publish(&market.log, &ticks, &[tick(4)]);
    market.await_ticks(4, 2);

    let mut run = market.start_run();
    let results = market.topic("risk.results");
    let result = run.run_until("the request is answered", || records(&market.log, &results, 0).pop());
    let summary = market.drain(run);
    let is_dead = |line: &str| line.split_whitespace().take(2).eq(["dead", "2"]);
    assert!(summary.lines().any(is_dead), "{summary}");
    let letters = records(&market.log, &market.topic("dead-letter"), 0);
    let letters: Vec<_> =
        letters.iter().map(|record| decode_dead_letter(&record.value).expect("a dead letter")).collect();
    assert_eq!(letters.iter().map(|letter| letter.value_bytes()).collect::<Vec<_>>(), [999_980, 20_000_000]);
    assert!(letters[0].is_of(None, &noise(999_980)) && letters[1].is_of(None, &vec![0; 20_000_000]));
    // A second process life begins where this one ended.
    market.drain(market.start_idle_run(&[]));
    assert_eq!(market.check()[2], 2);
    (market, decode_risk_result(&result.value).expect("a risk result"))
}

#[test]
fn records_near_the_limits_stop_nothing_and_go_back_from_where_they_lie() {
    let (market, result) = check_large_records("large", "");
    let RiskOutcome::ImpliedVolatilities(answer) = &result.outcome else { panic!("{:?}", result.outcome) };
    assert!(answer.volatilities.iter().all(|one| one.volatility.is_none() && !one.error.is_empty()));

    // The record that the topic accepts is sent again from its original place. The topic would refuse the other record,
    // so it is kept back.
    let arguments = ["dlq", "-c", "w.toml", "--log", &market.url, "replay"];
    let (out, error) = texts(&warptape(market.path(), &arguments), 0);
    assert!(out.starts_with("replayed          1\n") && out.contains("kept back         1   "), "{out}");
    assert!(error.contains("the record has 20000000 bytes"), "{error}");
    market.await_ticks(4, 3);
    let ticks = records(&market.log, &market.topic("ticks"), 0);
    assert!(ticks.last().is_some_and(|last| last.value == noise(999_980)), "the original is sent as it was");
}

#[test]
fn a_result_beyond_what_the_client_sends_is_an_error_that_says_so() {
    let (_, result) = check_large_records("larger", "kafka.properties.\"message.max.bytes\" = 900000");
    let RiskOutcome::Error(error) = &result.outcome else { panic!("{:?}", result.outcome) };
    assert!(
        error.message.starts_with("the answer has 9") && error.message.contains(" takes 899"),
        "{error:?}"
    );
    assert_eq!(result.request_id, "hopeless");
}
