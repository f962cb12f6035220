//! Signals, compared with their definition: the relation at a bar and at the slot's previous bar, both looked up in the
//! history.

use std::collections::BTreeMap;

use warptape_kernels::{Indicator, Isa, SignalKind};

use crate::bars::specs;
use crate::chain::{Chain, Outputs, short_params, signal_params};
use crate::market::Market;

/// Value and threshold of a kind at a bar.
fn numbers(kind: SignalKind, out: &Outputs, bar: usize) -> (f64, f64) {
    let at = |indicator: Indicator| f64::from_bits(out.indicators[bar][indicator as usize]);
    let close = out.closed[0].close_e9[bar] as f64 / 1e9;
    let params = signal_params();
    match kind {
        SignalKind::Bar => (close, 0.0),
        SignalKind::EmaCrossUp | SignalKind::EmaCrossDown => (at(Indicator::EmaFast), at(Indicator::EmaSlow)),
        SignalKind::RsiOverbought => (at(Indicator::Rsi), params.rsi_upper),
        SignalKind::RsiOversold => (at(Indicator::Rsi), params.rsi_lower),
        SignalKind::BandBreakUp => (close, at(Indicator::BollingerUpper)),
        SignalKind::BandBreakDown => (close, at(Indicator::BollingerLower)),
        SignalKind::ZScoreHigh => (at(Indicator::Zscore), params.zscore_threshold),
        SignalKind::ZScoreLow => (at(Indicator::Zscore), -params.zscore_threshold),
        SignalKind::Alert | SignalKind::Fault => unreachable!("kernels know no formulas"),
    }
}

/// True if a kind's value is beyond its threshold; `None` if one of them is not available.
fn beyond(kind: SignalKind, (value, threshold): (f64, f64)) -> Option<bool> {
    let up = matches!(
        kind,
        SignalKind::EmaCrossUp | SignalKind::RsiOverbought | SignalKind::BandBreakUp | SignalKind::ZScoreHigh
    );
    (!value.is_nan() && !threshold.is_nan()).then_some(if up { value > threshold } else { value < threshold })
}

#[test]
fn signals_are_what_their_definition_says() {
    let market =
        Market { seed: 21, slots: 5, ticks: 6000, allowed_lateness_ns: 1_000_000_000, specs: specs() };
    let rows = market.rows();
    let mut chain = Chain::new(&market, &short_params(), Isa::detect());
    chain.run(&rows, 0..rows.len());
    let kinds = || SignalKind::ALL.iter().copied().filter(|kind| *kind < SignalKind::Alert);
    let mut counts = BTreeMap::new();
    for out in &chain.out {
        let mut expected = Vec::new();
        let mut bars_before: BTreeMap<u32, usize> = BTreeMap::new();
        for bar in 0..out.indicators.len() {
            let before = bars_before.insert(out.closed[0].slot[bar], bar);
            for kind in kinds() {
                let (value, threshold) = numbers(kind, out, bar);
                let entered = before
                    .is_some_and(|before| beyond(kind, numbers(kind, out, before)) == Some(false))
                    && beyond(kind, (value, threshold)) == Some(true);
                if kind == SignalKind::Bar || entered {
                    expected.push((bar, kind as u8, value.to_bits(), threshold.to_bits()));
                    *counts.entry(kind as u8).or_insert(0) += 1;
                }
            }
        }
        assert_eq!(out.detected, expected);
    }
    assert!(kinds().all(|kind| counts[&(kind as u8)] > 10), "too few of some kind: {counts:?}");
}
