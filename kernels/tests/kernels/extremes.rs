//! The greatest numbers that there are: no panic, no overflow, and the right answer where there is one.

use warptape_kernels::{
    BarSlab, BarSpec, ClosedBars, Indicator, IndicatorColumns, IndicatorSlab, Isa, Rows, SignalSlab,
};

use crate::chain::{short_params, signal_params};

const LARGEST: i64 = i64::MAX - 1;

/// Bars of one trade each at these prices and sizes.
fn run(trades: &[(i64, i64)]) -> (ClosedBars, IndicatorColumns) {
    let mut rows = Rows::default();
    for (index, &(price_e9, size_e9)) in trades.iter().enumerate() {
        rows.push_trade(0, 0, price_e9, size_e9, 0, index as u32);
    }
    let mut bars = BarSlab::new(BarSpec::Ticks { count: 1 }, 0);
    bars.resize(1);
    let mut closed = ClosedBars::default();
    bars.fold(&rows, 0..rows.len(), &mut closed);
    let mut indicators = IndicatorSlab::new(short_params());
    indicators.resize(1);
    let mut columns = IndicatorColumns::default();
    indicators.update(Isa::detect(), &closed, &mut columns);
    let mut signals = SignalSlab::new(signal_params());
    signals.resize(1);
    signals.detect(&closed, &columns, &mut Vec::new());
    (closed, columns)
}

#[test]
fn sums_of_the_greatest_trades_saturate() {
    let mut rows = Rows::default();
    for index in 0..5 {
        rows.push_trade(0, i64::MAX - 5, LARGEST, LARGEST, 0, index);
        rows.push_trade(0, i64::MIN, LARGEST, LARGEST, 0, index);
    }
    rows.push_watermark(i64::MAX, 0, 9);
    // Both ends of time within one bar's reach: the lateness is all of time.
    for interval_ns in [i64::MAX, i64::MAX / 1000] {
        let spec = BarSpec::Time { interval_ns };
        let mut bars = BarSlab::new(spec, i64::MAX);
        bars.resize(1);
        let mut closed = ClosedBars::default();
        bars.fold(&rows, 0..rows.len(), &mut closed);
        assert_eq!(closed.trades, [5, 5]);
        assert_eq!(closed.volume_e9, [5 * i128::from(LARGEST); 2]);
        assert_eq!(closed.notional_e18, [i128::MAX; 2]);
        assert_eq!(closed.start_ns[0], i64::MIN);
        assert_eq!(closed.end_ns[1], i64::MAX);
    }
}

#[test]
fn indicators_of_the_greatest_prices_are_numbers() {
    let trades: Vec<(i64, i64)> =
        (0..40).map(|bar| (if bar % 2 == 0 { LARGEST } else { 1 }, LARGEST)).collect();
    let (closed, columns) = run(&trades);
    for indicator in Indicator::ALL {
        let value = columns.at(indicator, closed.len() - 1);
        assert!(value.is_finite(), "{indicator:?}: {value}");
    }
}

#[test]
fn a_price_of_zero_takes_only_what_has_no_value() {
    let mut trades = vec![(5_000_000_000, 1); 20];
    trades[10] = (0, 1);
    let (_, columns) = run(&trades);
    let params = short_params();
    for bar in 9..20 {
        let value = columns.at(Indicator::RealisedVolatility, bar);
        let affected = (10..=10 + params.realised_volatility as usize).contains(&bar);
        assert_eq!(value.is_nan(), affected, "bar {bar}: {value}");
        for indicator in Indicator::ALL {
            let value = columns.at(indicator, bar);
            assert!(
                value.is_finite() || indicator == Indicator::RealisedVolatility,
                "{indicator:?} at {bar}: {value}"
            );
        }
    }
    // TA-Lib's answer where there is nothing to divide by.
    assert_eq!(columns.at(Indicator::Roc, 10 + params.roc as usize), 0.0);
}

#[test]
fn vwap_without_volume_is_not_available() {
    let (_, columns) = run(&[(5, 0), (5, 0), (5, 0), (5, 1)]);
    assert!(columns.at(Indicator::Vwap, 2).is_nan());
    assert_eq!(columns.at(Indicator::Vwap, 3), 5e-9);
}
