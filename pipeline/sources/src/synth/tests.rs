//! Checks required properties of the synthetic market on whole streams.

use std::collections::BTreeMap;

use warptape_events::tick::{Side, Tick, TickKind};

use super::*;

fn ticks(config: SynthConfig) -> Vec<Tick> {
    SynthSource::new(config).expect("a valid configuration").collect()
}

fn config(symbols: u32, ticks: u64, seed: u64) -> SynthConfig {
    SynthConfig { symbols, ticks: Some(ticks), seed, ..SynthConfig::default() }
}

/// Returns the FNV-1a digest over all fields.
fn digest(ticks: &[Tick]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for tick in ticks {
        eat(tick.symbol.as_bytes());
        eat(&[tick.kind as u8, tick.side as u8]);
        let numbers = [
            tick.event_time_ns,
            tick.receive_time_ns,
            tick.trade_id,
            tick.price_e9,
            tick.size_e9,
            tick.bid_price_e9,
            tick.bid_size_e9,
            tick.ask_price_e9,
            tick.ask_size_e9,
        ];
        numbers.iter().for_each(|number| eat(&number.to_le_bytes()));
    }
    hash
}

/// The ticks are the same on every platform. A change here changes the meaning of every recorded demo and every seed.
#[test]
fn a_seed_gives_these_ticks() {
    let all = ticks(config(200, 100_000, 42));
    assert_eq!(all.len(), 100_000);
    assert_eq!(digest(&all), 0xab2e_85ea_e9d9_3537, "{:#x}", digest(&all));
    assert_ne!(digest(&all), digest(&ticks(config(200, 100_000, 43))));
}

/// The beginning does not depend on the number of ticks that follow, except for ticks that are held back.
#[test]
fn an_endless_market_begins_the_same() {
    let limited = ticks(config(20, 10_000, 9));
    let endless = SynthSource::new(SynthConfig { ticks: None, ..config(20, 0, 9) }).expect("valid");
    assert_eq!(endless.progress().total, None);
    let begun: Vec<Tick> = endless.take(9_000).collect();
    assert_eq!(begun, limited[..9_000]);
}

#[test]
fn ticks_are_well_formed() {
    let mut books: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let mut trades: BTreeMap<String, i64> = BTreeMap::new();
    // There are no delays, so that a trade can be compared with the book before it.
    let in_order = SynthConfig { out_of_order_percent: 0.0, late_percent: 0.0, ..config(300, 200_000, 4) };
    for tick in ticks(in_order) {
        let book = books.get(&tick.symbol).copied();
        match tick.kind {
            TickKind::Quote => {
                assert!(0 < tick.bid_price_e9 && tick.bid_price_e9 < tick.ask_price_e9, "{tick:?}");
                assert!(tick.bid_size_e9 > 0 && tick.ask_size_e9 > 0, "{tick:?}");
                assert_eq!((tick.price_e9, tick.size_e9, tick.trade_id, tick.side), (0, 0, 0, Side::None));
                let mid_e9 = (tick.bid_price_e9 + tick.ask_price_e9) / 2;
                assert!(
                    (tick.ask_price_e9 - tick.bid_price_e9) * 1_000 < mid_e9,
                    "a narrow spread: {tick:?}"
                );
                books.insert(tick.symbol, (tick.bid_price_e9, tick.ask_price_e9));
            }
            TickKind::Trade => {
                let (bid_e9, ask_e9) = book.expect("the first tick of a symbol is a quote");
                let expected_e9 = if tick.side == Side::Buy { ask_e9 } else { bid_e9 };
                assert_eq!(tick.price_e9, expected_e9, "{tick:?}");
                assert!(tick.size_e9 > 0 && tick.side != Side::None, "{tick:?}");
                let last = trades.insert(tick.symbol.clone(), tick.trade_id).unwrap_or(0);
                assert_eq!(tick.trade_id, last + 1, "{tick:?}");
            }
        }
    }
    assert!(books.len() > 250, "most symbols tick: {}", books.len());
}

#[test]
fn one_tick_in_four_is_a_trade() {
    let all = ticks(config(100, 200_000, 1));
    let trades = all.iter().filter(|tick| tick.kind == TickKind::Trade).count();
    assert!((49_000..51_000).contains(&trades), "{trades}");
}

#[test]
fn two_million_ticks_span_the_time_that_bars_need() {
    let config = config(50, 200_000, 8);
    let start_ns = config.start_time_ns;
    let last_ns = ticks(config).iter().map(|tick| tick.event_time_ns).max().expect("ticks");
    let minutes = (last_ns - start_ns) as f64 * 1e-9 / 60.0 * 10.0;
    assert!((20.0..30.0).contains(&minutes), "2 million ticks take {minutes} minutes");
}

#[test]
fn a_few_ticks_are_out_of_order_and_fewer_late() {
    let all = ticks(config(100, 400_000, 6));
    let (mut received_ns, mut event_ns_max) = (0, 0);
    let (mut disordered, mut late) = (0, 0);
    // Once the market has closed, held ticks are returned although no later tick passes them.
    let closed_ns = all.iter().map(|tick| tick.event_time_ns).max().expect("ticks");
    for tick in all.iter().filter(|tick| tick.receive_time_ns <= closed_ns) {
        assert!(received_ns <= tick.receive_time_ns, "ticks arrive by receive time");
        received_ns = tick.receive_time_ns;
        let behind_ns = event_ns_max - tick.event_time_ns;
        event_ns_max = event_ns_max.max(tick.event_time_ns);
        match behind_ns {
            ..=0 => {}
            1..=500_000_000 => disordered += 1,
            5_000_000_001.. => late += 1,
            _ => panic!("neither within 500 ms nor beyond 5 s: {behind_ns} ns behind"),
        }
    }
    assert!((1_800..2_200).contains(&disordered), "0.5 % of 400,000 are out of order: {disordered}");
    assert!((140..260).contains(&late), "0.05 % of 400,000 are late: {late}");
}

#[test]
fn activity_follows_the_day() {
    // One day of some 86,400 ticks.
    let day = SynthConfig { events_per_second: 1.0, ..config(10, 86_400, 2) };
    let start_ns = day.start_time_ns;
    let mut hours = [0_u32; 24];
    for tick in ticks(day) {
        let hour = (tick.event_time_ns - start_ns) / 3_600_000_000_000;
        hours[(hour as usize).min(23)] += 1;
    }
    let (open, noon) = (hours[0], hours[12]);
    assert!((2.5..3.2).contains(&(f64::from(open) / f64::from(noon))), "{hours:?}");
}

/// Computes the returns of two symbols over seconds, from the mids of their quotes.
fn returns(seed: u64) -> (Vec<f64>, Vec<f64>) {
    let dense = SynthConfig { zipf_exponent: 0.0, events_per_second: 100.0, ..config(2, 400_000, seed) };
    let start_ns = dense.start_time_ns;
    let mut mids: [BTreeMap<i64, f64>; 2] = Default::default();
    for tick in ticks(dense) {
        if tick.kind == TickKind::Quote {
            let second = (tick.event_time_ns - start_ns) / 1_000_000_000;
            let symbol = usize::from(tick.symbol == "SYNTH:AAAB");
            mids[symbol].insert(second, (tick.bid_price_e9 + tick.ask_price_e9) as f64);
        }
    }
    let of = |mids: &BTreeMap<i64, f64>| {
        let mids: Vec<f64> = mids.values().copied().collect();
        mids.windows(2).map(|pair| pair[1] / pair[0] - 1.0).collect::<Vec<f64>>()
    };
    (of(&mids[0]), of(&mids[1]))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[test]
fn prices_are_correlated_jump_diffusions() {
    let (first, second) = returns(21);
    assert_eq!(first.len(), second.len(), "both tick every second");
    let variance = |returns: &[f64]| mean(returns.iter().map(|change| change * change));
    let covariance = mean(first.iter().zip(&second).map(|(a, b)| a * b));
    let correlation = covariance / (variance(&first) * variance(&second)).sqrt();
    assert!((0.05..0.95).contains(&correlation), "one market factor, and own noise: {correlation}");
    for returns in [&first, &second] {
        let variance = variance(returns);
        let yearly = variance.sqrt() * 5_615.7;
        assert!((0.2..3.0).contains(&yearly), "a volatility of markets: {yearly}");
        let fourth_moment = mean(returns.iter().map(|change| change * change * change * change));
        let kurtosis = fourth_moment / (variance * variance);
        assert!(kurtosis > 6.0, "a diffusion without jumps has 3: {kurtosis}");
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    let check = |config: SynthConfig, key: &str| {
        let message = SynthSource::new(config).err().expect("out of range").to_string();
        assert!(message.contains(key) && message.contains("allowed"), "{message}");
    };
    let good = || config(10, 10, 1);
    check(SynthConfig { symbols: 0, ..good() }, "symbols is 0");
    check(SynthConfig { symbols: 500_000, ..good() }, "1 to 456976");
    check(SynthConfig { start_time_ns: 0, ..good() }, "start_time_ns");
    check(SynthConfig { events_per_second: f64::NAN, ..good() }, "events_per_second is NaN");
    check(SynthConfig { trade_percent: 101.0, ..good() }, "trade_percent");
    check(
        SynthConfig { late_percent: 60.0, out_of_order_percent: 50.0, ..good() },
        "late_percent is 60; allowed: 0 to 50",
    );
    check(SynthConfig { zipf_exponent: -1.0, ..good() }, "zipf_exponent");
}

#[test]
fn the_market_closes_at_the_end_of_time() {
    let near_end = SynthConfig { start_time_ns: i64::MAX - 60_000_000_000, ticks: None, ..config(5, 0, 1) };
    let all = ticks(near_end);
    assert!(!all.is_empty());
    assert!(all.iter().all(|tick| tick.receive_time_ns > 0));
}
