//! Additions of the second rules: closes on lines, sides of trades, sizes of quotes, and partial bars.

use warptape_kernels::{IndicatorParams, SignalParams};
use warptape_schemas::signal::Bar;

use super::*;

fn quote(symbol: &str, time_ns: i64, bid: (i64, i64), ask: (i64, i64)) -> Tick {
    Tick {
        kind: TickKind::Quote,
        price_e9: 0,
        size_e9: 0,
        bid_price_e9: bid.0,
        bid_size_e9: bid.1,
        ask_price_e9: ask.0,
        ask_size_e9: ask.1,
        ..trade(symbol, time_ns, 0)
    }
}

fn of_side(tick: Tick, side: Side, size_e9: i64) -> Tick {
    Tick { side, size_e9, ..tick }
}

/// The bars of ticks, in the order of closing.
fn bars(config: &StageConfig, ticks: &[Tick]) -> Vec<(i64, Bar)> {
    let mut partition = Partition::new(config);
    (0..).zip(ticks).for_each(|(offset, tick)| partition.accept(offset, tick));
    bars_of(&mut partition)
}

fn bars_of(partition: &mut Partition) -> Vec<(i64, Bar)> {
    partition.run(usize::MAX);
    let signals = partition.signals();
    let of_signal = |bytes: &Vec<u8>| {
        let signal = decode_signal(bytes).unwrap();
        Some((signal.bar_start_ns / SECOND_NS, signal.bar?))
    };
    signals.iter().filter_map(of_signal).collect()
}

#[test]
fn a_bar_has_what_each_side_traded_and_the_sizes_of_its_quote() {
    let (buy, sell) = (Side::Buy, Side::Sell);
    let ticks = [
        of_side(trade("X:A", 10 * SECOND_NS, 100), buy, 3),
        of_side(trade("X:A", 10 * SECOND_NS, 101), sell, 5),
        of_side(trade("X:A", 10 * SECOND_NS, 102), buy, 4),
        trade("X:A", 10 * SECOND_NS, 103),
        quote("X:A", 10 * SECOND_NS, (99, 7), (104, 8)),
        trade("X:A", 11 * SECOND_NS, 100),
        quote("X:A", 11 * SECOND_NS, (99, 0), (104, 8)),
        trade("X:A", 12 * SECOND_NS, 100),
        quote("X:A", 12 * SECOND_NS, (99, 0), (0, 0)),
        // These sizes are as large as those of a coin of little value.
        Tick {
            scales: Scales { price: 9, size: 0 },
            ..of_side(trade("X:A", 13 * SECOND_NS, 100), sell, 18_999_999_999)
        },
        trade("X:A", 30 * SECOND_NS, 100),
    ];
    let bars = bars(&config(&["1s"], 0), &ticks);
    let flow = |bar: &Bar| {
        [bar.buy_volume_e9, bar.sell_volume_e9, bar.buy_trades, bar.sell_trades].map(Option::unwrap)
    };
    let top = |bar: &Bar| [bar.bid_price_e9, bar.bid_size_e9, bar.ask_price_e9, bar.ask_size_e9];
    assert_eq!(bars.len(), 4);
    assert_eq!((flow(&bars[0].1), bars[0].1.trades), ([7, 5, 2, 1], 4));
    assert_eq!(top(&bars[0].1), [Some(99), Some(7), Some(104), Some(8)]);
    assert_eq!(top(&bars[1].1), [Some(0), None, Some(104), Some(8)], "a side of size 0 has no orders");
    assert_eq!(top(&bars[2].1), [Some(99), Some(0), Some(0), None], "no sizes are told");
    assert_eq!(flow(&bars[3].1), [0, i64::MAX, 0, 1]);
    let exact = bars[3].1.exact_flow.expect("more than 64 bits");
    assert_eq!((exact.sell_volume.0, exact.buy_volume.0), (18_999_999_999_000_000_000, 0));
}

/// Bars begin partial at the start of a partition and after event time is set back; they end early where they are cut.
#[test]
fn a_bar_that_lacks_some_of_its_interval_says_so() {
    let config = config(&["10s"], SECOND_NS);
    let of = |offset: i64, second: i64| (offset, trade("X:A", second * SECOND_NS, 100));
    for restored_at in 0..9 {
        let mut partition = Partition::new(&config);
        let mut found = Vec::new();
        let steps = [of(0, 13), of(1, 21), of(2, 35), of(4, 7), of(5, 15), of(6, 29)];
        for (offset, tick) in steps {
            if offset == 4 {
                // Three bars lie after this time; the one of 30 s is open.
                partition.set_event_time(3, 5 * SECOND_NS);
            }
            partition.accept(offset, &tick);
            if offset == restored_at {
                found.extend(bars_of(&mut partition));
                partition = partition.restored();
            }
        }
        // The bar of 20 s is closed before its end, and none begins at its end.
        partition.say_event_time(7, 40 * SECOND_NS, true);
        found.extend(bars_of(&mut partition));
        let partial: Vec<(i64, Option<bool>)> =
            found.iter().map(|(start, bar)| (*start, bar.partial)).collect();
        let expected = [(10, true), (20, false), (30, true), (0, true), (10, false), (20, true)];
        assert_eq!(
            partial,
            expected.map(|(start, partial)| (start, Some(partial))),
            "restored at {restored_at}"
        );
    }
}

#[test]
fn count_bars_know_quotes_that_many_came_after() {
    let config = config(&["tick:1"], 10 * SECOND_NS);
    let at = |quotes: i64| {
        let mut ticks: Vec<Tick> = (0..quotes)
            .map(|number| quote("X:A", 10 * SECOND_NS + number, (100 + number, 1), (101 + number, 1)))
            .collect();
        ticks.push(trade("X:A", 10 * SECOND_NS + 3, 5));
        let (_, bar) = bars(&config, &ticks).remove(0);
        (bar.bid_price_e9, bar.ask_price_e9, bar.bid_size_e9, bar.quote_forgotten)
    };
    assert_eq!(at(70), (Some(103), Some(104), Some(1), Some(false)));
    assert_eq!(at(0), (Some(0), Some(0), None, Some(false)));
    assert_eq!(at(300), (Some(0), Some(0), None, Some(true)));
}

/// One close of ten that differs from the others is exactly three deviations from the mean, so a band of that width
/// goes through it.
#[test]
fn a_close_on_a_line_is_not_beyond_it() {
    let indicators = IndicatorParams::from_values(|parameter| match parameter.key {
        "zscore" | "bollinger" => 10.0,
        "bollinger_width" => 3.0,
        _ => parameter.default,
    });
    let signals = SignalParams { zscore_threshold: 3.0, ..Default::default() };
    let config = StageConfig { indicators, signals, ..config(&["tick:1"], SECOND_NS) };
    for symbol in 0..400_i64 {
        let (usual_e9, other_e9) = (61_686_299_000_000 + symbol * 137_100_000, [-1, 1][symbol as usize % 2]);
        let prices =
            [[usual_e9; 10].as_slice(), &[usual_e9 + other_e9 * (1 + symbol) * 100_000_000]].concat();
        let mut partition = Partition::new(&config);
        for (offset, price_e9) in (0..).zip(prices) {
            partition.accept(offset, &trade("X:A", (1_000 + offset) * SECOND_NS, price_e9));
        }
        partition.run(usize::MAX);
        let mut kinds = partition.signals().into_iter().map(|bytes| decode_signal(&bytes).unwrap().kind);
        assert!(kinds.all(|kind| kind == SignalKind::Bar), "symbol {symbol}");
    }
}

/// Returns of a hundred-millionth and less are as exact as others.
#[test]
fn volatility_of_small_returns_is_exact() {
    let indicators = IndicatorParams::from_values(|parameter| match parameter.key {
        "realised_volatility" => 2.0,
        _ => parameter.default,
    });
    let config = StageConfig { indicators, ..config(&["tick:1"], SECOND_NS) };
    let prices: [i64; 3] = [61_686_299_123_457, 61_686_299_123_458, 61_686_299_123_455];
    let ticks: Vec<Tick> =
        (0..).zip(prices).map(|(second, price)| trade("X:A", second * SECOND_NS + 1, price)).collect();
    let volatility = bars(&config, &ticks)[2].1.indicators[15].expect("three bars");
    // To this accuracy, a logarithm of 1 + x is x.
    let [a, b, c] = prices.map(|price| price as f64);
    let expected = (((b - a) / a).powi(2) + ((c - b) / b).powi(2)).sqrt();
    let error = (volatility / expected - 1.0).abs();
    assert!(error < 1e-12, "{error}");
}

#[test]
fn risk_has_the_mid_of_sides_that_are_there_and_not_crossed() {
    let mut partition = Partition::new(&config(&["1s"], SECOND_NS));
    let mut spot = |offset, tick: &Tick| {
        partition.accept(offset, tick);
        partition.intake.market_of("X:A", 0, 9).unwrap().spot
    };
    let spots = [
        spot(0, &trade("X:A", 10 * SECOND_NS, 40_000_000)),
        spot(1, &quote("X:A", 11 * SECOND_NS, (0, 3), (50_000_000, 4))),
        spot(2, &quote("X:A", 12 * SECOND_NS, (70_000_000, 3), (60_000_000, 4))),
        spot(3, &quote("X:A", 13 * SECOND_NS, (70_000_000, 0), (90_000_000, 4))),
        spot(4, &quote("X:A", 14 * SECOND_NS, (70_000_000, 0), (80_000_000, 0))),
    ];
    assert_eq!(spots, [0.04, 0.025, 0.025, 0.025, 0.075].map(Some));
}
