//! Bars, compared with their definition.

use proptest::prelude::*;
use warptape_kernels::{BarSlab, BarSpec, ClosedBars, RECENT_QUOTES_MAX, Rows};

use crate::market::Market;
use crate::reference;

const SECOND_NS: i64 = 1_000_000_000;

pub fn specs() -> Vec<BarSpec> {
    ["250ms", "1s", "5s", "tick:1", "tick:7", "volume:10"]
        .map(|text| text.parse().expect("these are specifications"))
        .to_vec()
}

fn fold(spec: BarSpec, allowed_lateness_ns: i64, slots: usize, rows: &Rows) -> ClosedBars {
    let mut slab = BarSlab::new(spec, allowed_lateness_ns);
    slab.resize(slots);
    let mut closed = ClosedBars::default();
    slab.fold(rows, 0..rows.len(), &mut closed);
    closed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bars_are_what_their_definition_says(
        seed: u64,
        slots in 1..6_u32,
        ticks in 1..400_usize,
        lateness_ns in 0..4 * SECOND_NS,
    ) {
        check(seed, slots, ticks, lateness_ns);
    }
}

fn check(seed: u64, slots: u32, ticks: usize, lateness_ns: i64) {
    let market = Market { seed, slots, ticks, allowed_lateness_ns: lateness_ns, specs: specs() };
    let rows = market.rows();
    for spec in specs() {
        let closed = fold(spec, lateness_ns, slots as usize, &rows);
        assert_eq!(closed, reference::bars(spec, &rows), "{spec}");
    }
}

/// More quotes than are kept came between a trade and the quote before it.
#[test]
fn a_quote_may_be_forgotten_before_its_trade() {
    check(11_256_669_437_043_881_276, 1, 387, 2_918_919_802);
}

#[test]
fn bars_close_oldest_first_and_slots_ascend() {
    let mut rows = Rows::default();
    rows.push_trade(2, 1_500, 20, 1, 7, 0);
    rows.push_trade(1, 1_600, 10, 1, 7, 1);
    rows.push_trade(2, 999, 21, 1, 7, 2);
    rows.push_trade(0, -1, 5, 1, 7, 3);
    rows.push_watermark(2_000, 8, 4);
    let closed = fold(BarSpec::Time { interval_ns: 1_000 }, 3_000, 3, &rows);
    assert_eq!(closed.slot, [0, 2, 1, 2]);
    assert_eq!(closed.start_ns, [-1_000, 0, 1_000, 1_000]);
    assert_eq!(closed.end_ns, [0, 1_000, 2_000, 2_000]);
    assert_eq!((closed.offset[0], closed.index[0], closed.row[0]), (8, 4, 4));
}

#[test]
fn a_watermark_before_the_end_closes_nothing() {
    let mut rows = Rows::default();
    rows.push_trade(0, 500, 20, 1, 7, 0);
    rows.push_watermark(999, 8, 0);
    assert!(fold(BarSpec::Time { interval_ns: 1_000 }, 1_000, 1, &rows).is_empty());
    rows.push_watermark(1_000, 8, 1);
    assert_eq!(fold(BarSpec::Time { interval_ns: 1_000 }, 1_000, 1, &rows).len(), 1);
}

#[test]
fn open_and_close_go_by_event_time_and_then_by_arrival() {
    let mut rows = Rows::default();
    for (time_ns, price_e9) in [(300, 1), (100, 2), (100, 3), (900, 4), (900, 5), (200, 6)] {
        rows.push_trade(0, time_ns, price_e9, 10, 0, 0);
    }
    rows.push_watermark(1_000, 1, 0);
    let by_time = fold(BarSpec::Time { interval_ns: 1_000 }, 1_000, 1, &rows);
    assert_eq!((by_time.open_e9[0], by_time.close_e9[0]), (2, 5));
    assert_eq!((by_time.high_e9[0], by_time.low_e9[0]), (6, 1));
    assert_eq!((by_time.volume_e9[0], by_time.notional_e18[0], by_time.trades[0]), (60, 210, 6));
    let by_count = fold(BarSpec::Ticks { count: 6 }, 1_000, 1, &rows);
    assert_eq!((by_count.open_e9[0], by_count.close_e9[0]), (1, 6));
    assert_eq!((by_count.start_ns[0], by_count.end_ns[0]), (300, 200));
}

#[test]
fn a_time_bar_has_the_last_quote_by_event_time_before_its_end() {
    let mut rows = Rows::default();
    rows.push_trade(0, 1_500, 5, 1, 0, 0);
    // Quotes out of order, at the bar's end, after it, and of another slot.
    for (slot, time_ns, bid_e9) in [(0, 1_900, 7), (0, 1_200, 6), (0, 2_000, 8), (0, 2_300, 9), (1, 1_950, 1)]
    {
        rows.push_quote(slot, time_ns, bid_e9, bid_e9 + 1, 0, 1);
    }
    // Bars without quotes of their own, one of them after an empty interval.
    rows.push_trade(0, 3_500, 5, 1, 0, 2);
    rows.push_trade(1, 5_500, 5, 1, 0, 3);
    rows.push_trade(2, 5_500, 5, 1, 0, 4);
    // This quote is not late yet.
    rows.push_quote(0, 3_100, 3, 4, 0, 5);
    rows.push_watermark(6_000, 1, 0);
    let closed = fold(BarSpec::Time { interval_ns: 1_000 }, 5_000, 3, &rows);
    assert_eq!(closed.slot, [0, 0, 1, 2]);
    assert_eq!(closed.bid_price_e9, [7, 3, 1, 0]);
    assert_eq!(closed.ask_price_e9, [8, 4, 2, 0]);
}

#[test]
fn a_bar_by_count_has_the_last_quote_that_is_not_after_its_last_trade() {
    let mut rows = Rows::default();
    rows.push_trade(0, 9, 5, 1, 0, 0);
    rows.push_quote(1, 5, 7, 8, 0, 1);
    rows.push_trade(0, 9, 5, 1, 0, 2);
    rows.push_quote(0, 5, 1, 2, 0, 3);
    rows.push_quote(0, 6, 3, 4, 0, 4);
    // The first trade is between the two quotes, the next one at the time of the second. Then another quote of the same
    // time follows.
    rows.push_trade(0, 5, 5, 1, 0, 5);
    rows.push_trade(0, 6, 5, 1, 0, 6);
    rows.push_quote(0, 6, 5, 6, 0, 7);
    let spec = BarSpec::Ticks { count: 1 };
    let closed = fold(spec, 10, 2, &rows);
    assert_eq!(closed.bid_price_e9, [0, 0, 1, 3]);
    assert_eq!(closed.ask_price_e9, [0, 0, 2, 4]);
    for index in 1..RECENT_QUOTES_MAX as u32 {
        rows.push_quote(0, 7, 9, 9, 1, index);
    }
    rows.push_trade(0, 6, 5, 1, 2, 0);
    assert_eq!(fold(spec, 10, 2, &rows).bid_price_e9[4], 5, "as many as can be kept");
    rows.push_quote(0, 8, 9, 9, 3, 0);
    rows.push_trade(0, 6, 5, 1, 3, 1);
    rows.push_trade(0, 7, 5, 1, 3, 2);
    assert_eq!(fold(spec, 10, 2, &rows).bid_price_e9[5..], [0, 9], "one more");
}
