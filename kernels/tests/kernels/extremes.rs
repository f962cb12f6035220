//! The greatest possible numbers: no panic, no overflow, and the right result if there is one.

use warptape_kernels::{
    Aggressor, BarSlab, BarSpec, ClosedBars, Indicator, IndicatorColumns, IndicatorSlab, Isa, Rows,
    SignalParams, SignalSlab,
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
    let mut indicators = IndicatorSlab::new(short_params(), &SignalParams::default());
    indicators.resize(1);
    let mut columns = IndicatorColumns::default();
    indicators.update(Isa::detect(), &closed, &mut columns);
    let mut signals = SignalSlab::new(signal_params());
    signals.resize(1);
    signals.detect(&closed, &columns, &mut Vec::new());
    (closed, columns)
}

#[test]
fn a_notional_beyond_128_bits_is_not_known() {
    let mut rows = Rows::default();
    for index in 0..5 {
        rows.push_trade(0, i64::MAX - 5, LARGEST, LARGEST, 0, index);
        rows.push_trade(0, i64::MIN, LARGEST, LARGEST, 0, index);
    }
    rows.push_watermark(i64::MAX, 0, 9);
    // Both ends of time fit into the open bars, because the lateness covers all of time.
    for interval_ns in [i64::MAX, i64::MAX / 1000] {
        let spec = BarSpec::Time { interval_ns };
        let mut bars = BarSlab::new(spec, i64::MAX);
        bars.resize(1);
        let mut closed = ClosedBars::default();
        bars.fold(&rows, 0..rows.len(), &mut closed);
        assert_eq!(closed.trades, [5, 5]);
        assert_eq!(closed.volume_e9, [5 * i128::from(LARGEST); 2]);
        assert_eq!(closed.notional_e18, [i128::MIN; 2]);
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
fn sizes_beyond_64_bits_are_added_exactly() {
    let (price_e9, whole) = (8_120, 18_999_999_999);
    let mut rows = Rows::default();
    rows.push_trade(0, 0, price_e9, 500_000_000, 0, 0);
    rows.push_trade_of(0, 0, price_e9, (whole, 9, Aggressor::Unknown), 1, 0);
    rows.push_trade_of(0, 0, price_e9, (whole * 10 + 5, 8, Aggressor::Unknown), 2, 0);
    let mut bars = BarSlab::new(BarSpec::Ticks { count: 3 }, 0);
    bars.resize(1);
    let mut closed = ClosedBars::default();
    bars.fold(&rows, 0..rows.len(), &mut closed);
    let volume_e9 = (2 * i128::from(whole) + 1) * 1_000_000_000;
    assert_eq!(closed.volume_e9, [volume_e9]);
    assert_eq!(closed.notional_e18, [volume_e9 * i128::from(price_e9)]);
    // A bar of such a volume is full at the trade that reaches it; the trade counts in full.
    let mut bars = BarSlab::new(BarSpec::Volume { volume_e9: i64::MAX }, 0);
    bars.resize(1);
    closed.clear();
    bars.fold(&rows, 0..rows.len(), &mut closed);
    assert_eq!((closed.row, closed.trades), (vec![1, 2], vec![2, 1]));
}

#[test]
fn prices_of_either_sign_have_exact_sums_in_any_order() {
    // The products are close to 2^127, and cancel.
    let trades = [(LARGEST / 4, LARGEST), (-LARGEST / 4, LARGEST), (LARGEST / 4, 1), (-7_000_000_000, 3)];
    let of_order = |order: [usize; 4]| {
        let mut rows = Rows::default();
        for (index, trade) in order.into_iter().enumerate() {
            let (price_e9, size_e9) = trades[trade];
            rows.push_trade(0, 0, price_e9, size_e9, 0, index as u32);
        }
        rows
    };
    let fold = |rows: &Rows| {
        let mut bars = BarSlab::new(BarSpec::Ticks { count: 4 }, 0);
        bars.resize(1);
        let mut closed = ClosedBars::default();
        bars.fold(rows, 0..rows.len(), &mut closed);
        (closed.notional_e18[0], closed.high_e9[0], closed.low_e9[0])
    };
    let product = |(price, size): (i64, i64)| i128::from(price) * i128::from(size);
    let expected = product(trades[2]) + product(trades[3]);
    for order in [[0, 1, 2, 3], [0, 2, 3, 1], [3, 1, 2, 0], [1, 3, 0, 2]] {
        let (notional_e18, high_e9, low_e9) = fold(&of_order(order));
        assert_eq!((notional_e18, high_e9, low_e9), (expected, LARGEST / 4, -LARGEST / 4), "{order:?}");
    }
}

#[test]
fn indicators_of_negative_prices() {
    let params = short_params();
    let closes: Vec<i64> = (0..40).map(|bar| -37_630_000_000 + 1_000_000_000 * (bar % 7)).collect();
    let trades: Vec<(i64, i64)> = closes.iter().map(|&close| (close, 2_000_000_000)).collect();
    let (closed, columns) = run(&trades);
    let last = closed.len() - 1;
    for indicator in Indicator::ALL {
        let value = columns.at(indicator, last);
        // The change in percent from a negative price, and its logarithm, are not available; everything else is.
        let is_available = ![Indicator::Roc, Indicator::RealisedVolatility].contains(&indicator);
        assert_eq!(value.is_finite(), is_available, "{indicator:?}: {value}");
    }
    let window = &closes[closes.len() - params.vwap as usize..];
    let mean = window.iter().sum::<i64>() as f64 / 1e9 / window.len() as f64;
    let vwap = columns.at(Indicator::Vwap, last);
    assert!((vwap - mean).abs() < 1e-9, "{vwap} {mean}");
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
            let is_of_shares = [Indicator::RealisedVolatility, Indicator::Roc].contains(&indicator);
            assert!(value.is_finite() || is_of_shares, "{indicator:?} at {bar}: {value}");
        }
    }
    for bar in 9..20 {
        let value = columns.at(Indicator::Roc, bar);
        assert_eq!(
            value.is_nan(),
            bar == 10 + params.roc as usize,
            "nothing to divide by; bar {bar}: {value}"
        );
    }
}

#[test]
fn vwap_without_volume_is_not_available() {
    let (_, columns) = run(&[(5, 0), (5, 0), (5, 0), (5, 1)]);
    assert!(columns.at(Indicator::Vwap, 2).is_nan());
    assert_eq!(columns.at(Indicator::Vwap, 3), 5e-9);
}
