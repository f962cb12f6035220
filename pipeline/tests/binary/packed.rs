//! Ticks give the same outputs in each kind of record.

use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{EncodeError, encode_packed_tick_batch, encode_scaled_tick_batch, encode_tick_batch};

use super::bad_input::{PARTITIONS, Source, run_over};
use super::outputs::records;
use super::processes::{folder, texts, warptape};

type Encode = fn(&[Tick], &mut Vec<u8>) -> Result<(), EncodeError>;

const TICKS: i64 = 3_000;
const RECORD_TICKS: usize = 50;
const START_NS: i64 = 1_723_075_200_000_000_000;
/// Delay of one tick in a hundred, which is then too late.
const LATE_NS: i64 = 60_000_000_000;

/// Returns a tick of one of five symbols: a trade or, twice as often, a quote, now and then without a side.
fn tick(number: i64) -> Tick {
    let late_ns = if number % 100 == 99 { LATE_NS } else { 0 };
    let is_trade = number % 3 == 0;
    let price_e9 = 1_000_000_000 * (1 + number % 5) + number * 37 % 101 * 10_000;
    let if_trade = |value: i64| if is_trade { value } else { 0 };
    let if_quote = |value: i64| if is_trade { 0 } else { value };
    let if_offered = |value: i64| if number % 7 == 0 { 0 } else { if_quote(value) };
    Tick {
        symbol: format!("T:S{}", number % 5),
        kind: if is_trade { TickKind::Trade } else { TickKind::Quote },
        event_time_ns: START_NS + number * 10_000_000 - late_ns,
        receive_time_ns: START_NS + number * 10_000_001,
        trade_id: if_trade(number),
        side: if is_trade {
            [Side::Buy, Side::Sell, Side::None][number as usize % 4 % 3]
        } else {
            Side::None
        },
        price_e9: if_trade(price_e9),
        size_e9: if_trade(1_000_000 + number * 1_000),
        bid_price_e9: if_quote(price_e9 - 10_000),
        bid_size_e9: if_quote(5_000_000),
        ask_price_e9: if_offered(price_e9 + 10_000),
        ask_size_e9: if_offered(number * 1_000),
        scales: Scales::E9,
    }
}

fn source(encode: Encode) -> Source {
    let partition = |partition: i32| {
        let numbers = (0..TICKS).filter(|number| number % 5 % i64::from(PARTITIONS) == i64::from(partition));
        let ticks: Vec<Tick> = numbers.map(tick).collect();
        let record = |ticks: &[Tick]| {
            let mut value = Vec::new();
            encode(ticks, &mut value).expect("good ticks");
            (value, None)
        };
        ticks.chunks(RECORD_TICKS).map(record).collect()
    };
    (0..PARTITIONS).map(partition).collect()
}

#[test]
fn the_kind_of_record_changes_no_output() {
    let folder = folder();
    let folder = folder.path();
    let kinds: [(&str, Encode); 3] = [
        ("plain.db", encode_tick_batch),
        ("scaled.db", encode_scaled_tick_batch),
        ("packed.db", encode_packed_tick_batch),
    ];
    let [plain, scaled, packed] = kinds.map(|(name, encode)| {
        let (log, _) = run_over(folder, name, &source(encode));
        let verify = ["replay", "verify", "--outputs", "--log", &format!("sqlite:{name}")];
        let verified = texts(&warptape(folder, &verify), 0).0;
        assert!(verified.contains("identical"), "{verified}");
        ["signals", "late", "dead-letter"].map(|topic| {
            let values = |partition| records(&log, topic, partition).into_iter().map(|record| record.value);
            (0..PARTITIONS).map(|partition| values(partition).collect::<Vec<_>>()).collect::<Vec<_>>()
        })
    });
    let [signals, late, dead] = &plain;
    assert!(signals.iter().all(|signals| signals.len() > 100), "there are signals to compare");
    assert!(late.iter().any(|late| !late.is_empty()) && dead.iter().all(Vec::is_empty));
    assert!(plain == scaled && scaled == packed);
}
