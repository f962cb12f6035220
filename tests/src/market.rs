//! Small random markets: source records of every kind, good and bad, and configurations with which to run them.

use warptape_kernels::{BarSpec, IndicatorParams, SignalParams};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    SetEventTime, encode_packed_tick_batch, encode_scaled_tick_batch, encode_set_event_time, encode_tick,
    encode_tick_batch,
};
use warptape_stages::{MarketConfig, StageConfig};

use crate::random::Random;

const START_NS: i64 = 1_700_000_000_000_000_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// Source records by partition.
pub type SourceLog = Vec<Vec<Vec<u8>>>;

/// Returns a stage configuration with short windows, so that small markets reach every indicator.
pub fn stage_config(random: &mut Random) -> StageConfig {
    let all = ["100ms", "1s", "5s", "tick:1", "tick:7", "volume:3"];
    let mut bars: Vec<BarSpec> = Vec::new();
    for _ in 0..random.between(1, 3) {
        let spec = all[random.index(all.len())].parse().expect("the texts are valid");
        if !bars.contains(&spec) {
            bars.push(spec);
        }
    }
    let has_limits = random.index(2) == 1;
    let allowed_lateness_ns = [0, 50, 2_000][random.index(3)] * MILLISECOND_NS;
    let groups_per_partition = random.between(1, 5) as u32;
    // In some markets with several groups, the venue FAR has its own allowed lateness.
    let far = (groups_per_partition > 1 && random.index(2) == 1)
        .then(|| ("FAR".to_owned(), 2_500 * MILLISECOND_NS - allowed_lateness_ns));
    StageConfig {
        lateness_by_venue_ns: far.into_iter().collect(),
        indicators: IndicatorParams::from_values(|parameter| match parameter.key {
            "bollinger_width" => 1.0,
            "ema_fast" | "macd_fast" | "macd_signal" | "momentum" | "roc" => 2.0,
            "ema_slow" | "macd_slow" => 4.0,
            // In some of the markets, optional indicators are off.
            _ if parameter.min == 0.0 && !has_limits => 0.0,
            _ => 3.0,
        }),
        signals: SignalParams { rsi_upper: 60.0, rsi_lower: 40.0, zscore_threshold: 1.0 },
        market: MarketConfig { sample_interval_ns: MILLISECOND_NS, window: 40, ..Default::default() },
        future_max_ns: if has_limits { 8_000 * MILLISECOND_NS } else { i64::MAX },
        clock_skew_max_ns: if has_limits { 500 * MILLISECOND_NS } else { i64::MAX },
        symbols_max: random.between(4, 12) as u32,
        ..StageConfig::unlimited(bars, allowed_lateness_ns, groups_per_partition)
    }
}

/// Returns a record's time of writing, which is near the times of its ticks. Equal bytes give an equal time.
pub fn written_ns(record: &[u8]) -> i64 {
    let sum = record.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    START_NS + i64::from(sum) * 100 * MILLISECOND_NS
}

/// Returns records for `partitions` partitions: single ticks and batches. In about half of the partitions, one record
/// in forty is poisoned.
pub fn source_log(random: &mut Random, partitions: usize, records: usize) -> SourceLog {
    (0..partitions).map(|partition| partition_log(random, partition, records)).collect()
}

fn partition_log(random: &mut Random, partition: usize, records: usize) -> Vec<Vec<u8>> {
    let symbols = random.between(1, 9);
    let mut time_ns = START_NS;
    // A flipped bit in an event time makes all later ticks late, so only about half of the partitions are poisoned.
    let poisoned = random.one_in(2);
    let mut log = Vec::with_capacity(records);
    for _ in 0..records {
        let count = if random.one_in(3) { 1 } else { random.between(1, 12) };
        let ticks: Vec<Tick> = (0..count).map(|_| tick(random, partition, symbols, &mut time_ns)).collect();
        let mut bytes = Vec::new();
        match ticks.as_slice() {
            ticks if ticks.iter().any(|tick| tick.scales != Scales::E9) => {
                encode_scaled_tick_batch(ticks, &mut bytes)
            }
            [tick] => encode_tick(tick, &mut bytes),
            ticks if ticks.len().is_multiple_of(2) => encode_packed_tick_batch(ticks, &mut bytes),
            ticks => encode_tick_batch(ticks, &mut bytes),
        }
        .expect("the ticks are valid");
        if poisoned && random.one_in(40) {
            poison(random, &mut bytes);
        }
        log.push(bytes);
        if random.one_in(100) {
            log.push(set_event_time(time_ns + random.between(-3_000, 3_000) * MILLISECOND_NS));
        }
    }
    log
}

/// Encodes an operator's record that may move event time back.
fn set_event_time(event_time_max_ns: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let set = SetEventTime {
        id: "one".to_owned(),
        by: "someone".to_owned(),
        event_time_max_ns,
        cuts_bars: false,
        only_forward: false,
    };
    encode_set_event_time(&set, &mut bytes);
    bytes
}

fn tick(random: &mut Random, partition: usize, symbols: i64, time_ns: &mut i64) -> Tick {
    *time_ns += random.between(0, 60) * MILLISECOND_NS;
    if random.one_in(200) {
        *time_ns += random.between(0, 30_000) * MILLISECOND_NS;
    }
    let back_ns = if random.one_in(10) { random.between(0, 3_000) * MILLISECOND_NS } else { 0 };
    let price_e9 = 100_000_000_000 + random.between(-500, 500) * 10_000_000;
    let trade = !random.one_in(4);
    let size_e9 = random.between(1, 2_000) * MILLISECOND_NS;
    let number = random.between(0, symbols - 1);
    let tick = Tick {
        symbol: format!("{}:P{partition}S{number}", if number < 5 { "SIM" } else { "FAR" }),
        kind: if trade { TickKind::Trade } else { TickKind::Quote },
        event_time_ns: *time_ns - back_ns,
        receive_time_ns: 0,
        trade_id: 0,
        side: Side::None,
        price_e9: if trade { price_e9 } else { 0 },
        size_e9: if trade { size_e9 } else { 0 },
        bid_price_e9: if trade { 0 } else { price_e9 - 10_000_000 },
        bid_size_e9: if trade { 0 } else { size_e9 },
        ask_price_e9: if trade { 0 } else { price_e9 + 10_000_000 },
        ask_size_e9: if trade { 0 } else { size_e9 },
        scales: Scales::E9,
    };
    match number {
        3 => as_spread(tick),
        4 => as_coin(tick),
        _ => tick,
    }
}

/// Shifts prices to about 0, as in a spread.
fn as_spread(tick: Tick) -> Tick {
    const MIDDLE_E9: i64 = 100_000_000_000;
    let of_kind = |kind, price_e9| if tick.kind == kind { price_e9 - MIDDLE_E9 } else { 0 };
    Tick {
        // In records without scales, a price of 0 means that there is no price.
        price_e9: of_kind(TickKind::Trade, tick.price_e9) | i64::from(tick.kind == TickKind::Trade),
        bid_price_e9: of_kind(TickKind::Quote, tick.bid_price_e9),
        ask_price_e9: of_kind(TickKind::Quote, tick.ask_price_e9),
        ..tick
    }
}

/// Gives prices 14 decimals, and makes sizes whole coins. A few sizes exceed 64 bits in units of 1e-9.
fn as_coin(tick: Tick) -> Tick {
    Tick { scales: Scales { price: 14, size: if tick.event_time_ns % 3 == 0 { 0 } else { 4 } }, ..tick }
}

/// Damages a record. By chance it may stay valid, which is allowed.
fn poison(random: &mut Random, bytes: &mut Vec<u8>) {
    match random.index(3) {
        0 => bytes.truncate(random.index(bytes.len())),
        1 => bytes[2] ^= 0xFF,
        _ => {
            let at = random.index(bytes.len());
            bytes[at] ^= 1 << random.index(8);
        }
    }
}
