//! Indicators, compared with their definitions and with TA-Lib.

use proptest::prelude::*;
use warptape_kernels::{
    ClosedBars, Indicator, IndicatorColumns, IndicatorParams, IndicatorSlab, Isa, PARAMETERS, SignalParams,
    documented_indicators,
};

use crate::chain::short_params;
use crate::indicator_reference::{self as reference, History, assert_close, indicators, scale};
use crate::market::{closed_bars, push};

/// Runs bars of several times through a slab and compares each value with the definition.
fn check(params: &IndicatorParams, slots: u32, times: &[ClosedBars]) {
    let mut slab = IndicatorSlab::new(params.clone(), &SignalParams::default());
    slab.resize(slots as usize);
    let mut histories = vec![History::default(); slots as usize];
    let mut columns = IndicatorColumns::default();
    for closed in times {
        slab.update(Isa::detect(), closed, &mut columns);
        assert_eq!(columns.len(), closed.len());
        for row in 0..closed.len() {
            let history = &mut histories[closed.slot[row] as usize];
            history.push(closed, row);
            let expected = indicators(params, history);
            for indicator in Indicator::ALL {
                let what =
                    format!("{indicator:?} of slot {} at bar {}", closed.slot[row], history.close.len());
                let close = history.close[history.close.len() - 1];
                let (found, expected) = (columns.at(indicator, row), expected[indicator as usize]);
                assert_close(found, expected, scale(indicator, close), 1e-9, &what);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn indicators_are_what_their_definition_says(
        seed: u64,
        slots in 1..20_u32,
        lengths in prop::collection::vec(0..12_u32, PARAMETERS.len()),
        width in 0.5..3.0,
    ) {
        let mut params = IndicatorParams::from_values(|parameter| {
            let number = PARAMETERS.iter().position(|other| other.key == parameter.key).expect("one of them");
            if parameter.is_window { parameter.min + f64::from(lengths[number]) } else { width }
        });
        params.ema_slow += params.ema_fast;
        params.macd_slow += params.macd_fast;
        prop_assert_eq!(params.check(), vec![]);
        check(&params, slots, &closed_bars(seed, slots, 60));
    }
}

/// `WARPTAPE_UPDATE_DOCS=1 cargo test -p warptape-kernels --test kernels documented` rewrites the table.
#[test]
fn all_indicators_are_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/indicators.md");
    let text = std::fs::read_to_string(&path).expect("the documentation");
    let head = "| --- | --- | --- | --- | --- |\n";
    let begin = text.find(head).expect("a table of five columns") + head.len();
    let end = begin + text[begin..].find("\n\n").expect("a table ends") + 1;
    let table = documented_indicators();
    if std::env::var_os("WARPTAPE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &text[..begin], &text[end..]))
            .expect("a writable folder");
    } else {
        assert_eq!(&text[begin..end], table, "run with WARPTAPE_UPDATE_DOCS=1 to write it anew");
    }
}

#[test]
fn default_windows_give_what_their_definition_says() {
    check(&IndicatorParams::default(), 9, &closed_bars(11, 9, 300));
}

#[test]
fn a_long_window_is_summed_exactly_enough() {
    let params = IndicatorParams { sma: 1024, bollinger: 1023, zscore: 511, vwap: 1024, ..short_params() };
    check(&params, 1, &closed_bars(12, 1, 1100));
}

#[test]
fn a_jump_leaves_no_error_behind() {
    // The price falls from 100,000 to 1 and returns, then hardly changes: the errors of rolling sums must not become
    // visible.
    let mut times = closed_bars(13, 1, 400);
    for (bar, closed) in times.iter_mut().enumerate() {
        let base = if bar % 100 < 50 { 100_000_000_000_000 } else { 1_000_000_000 };
        let close = base + (bar as i64 * 7919) % 1000 * 1_000_000;
        for column in [&mut closed.open_e9, &mut closed.high_e9, &mut closed.low_e9, &mut closed.close_e9] {
            column[0] = close;
        }
        closed.volume_e9[0] = if bar % 70 == 0 { 1 << 70 } else { 1 << 30 };
        closed.notional_e18[0] = closed.volume_e9[0] * i128::from(close);
    }
    check(&IndicatorParams { zscore: 11, vwap: 7, ..IndicatorParams::default() }, 1, &times);
}

#[test]
fn equal_prices_have_no_deviation_and_no_movement() {
    let params = short_params();
    // Sums of this price are not exact in `f64`.
    let price = 123_456_789_123_456_789;
    let mut slab = IndicatorSlab::new(params, &SignalParams::default());
    slab.resize(1);
    let mut columns = IndicatorColumns::default();
    for bar in 0..40 {
        let mut closed = ClosedBars::default();
        push(&mut closed, 0, bar, [price; 4], 1);
        slab.update(Isa::detect(), &closed, &mut columns);
    }
    let close = price as f64 / 1e9;
    for (indicator, expected) in [
        (Indicator::Sma, close),
        (Indicator::BollingerUpper, close),
        (Indicator::BollingerLower, close),
        (Indicator::Rsi, 0.0),
        (Indicator::Macd, 0.0),
        (Indicator::Atr, 0.0),
        (Indicator::Momentum, 0.0),
        (Indicator::Roc, 0.0),
        (Indicator::Zscore, 0.0),
        (Indicator::RealisedVolatility, 0.0),
        (Indicator::StochasticK, 0.0),
        (Indicator::StochasticD, 0.0),
    ] {
        assert_eq!(columns.at(indicator, 0), expected, "{indicator:?}");
    }
}

#[test]
fn indicators_equal_ta_libs() {
    // Indicators that are off by default are turned on here.
    let params = IndicatorParams::from_values(|parameter| match parameter.default {
        0.0 => 14.0,
        default => default,
    });
    for (seed, slots, bars) in [(1, 10, 700), (2, 1, 5000)] {
        let times = closed_bars(seed, slots, bars);
        let mut slab = IndicatorSlab::new(params.clone(), &SignalParams::default());
        slab.resize(slots as usize);
        let mut columns = IndicatorColumns::default();
        let expected: Vec<_> = reference::histories(slots, &times)
            .iter()
            .map(|history| reference::ta_lib(&params, history))
            .collect();
        for (bar, closed) in times.iter().enumerate() {
            slab.update(Isa::detect(), closed, &mut columns);
            for slot in 0..slots as usize {
                for indicator in Indicator::ALL {
                    let what = format!("{indicator:?} of slot {slot} at bar {bar}, seed {seed}");
                    let close = closed.close_e9[slot] as f64 / 1e9;
                    let expected = expected[slot][indicator as usize][bar];
                    assert_close(columns.at(indicator, slot), expected, scale(indicator, close), 1e-9, &what);
                }
            }
        }
    }
}
