//! Indicators that are off by default.

use warptape_kernels::{IndicatorParams, SignalParams};
use warptape_schemas::{encode_signal, known};
use xxhash_rust::xxh3::xxh3_64;

use super::*;

/// A bar at each tick; the high and low of the last two bars are those of the last two prices.
fn config_with(stochastic: u32) -> StageConfig {
    let values = |stochastic: u32| {
        IndicatorParams::from_values(|parameter| match parameter.key {
            "stochastic" => stochastic.into(),
            "stochastic_average" => 2.0,
            _ => parameter.default,
        })
    };
    let signals = SignalParams { rsi_upper: 55.0, rsi_lower: 45.0, ..Default::default() };
    StageConfig {
        indicators: values(stochastic),
        signals,
        future_max_ns: 345_600 * SECOND_NS,
        clock_skew_max_ns: 60 * SECOND_NS,
        symbols_max: 65_536,
        ..config(&["tick:1"], SECOND_NS)
    }
}

/// Signals and snapshots, the latter by group.
fn run(config: &StageConfig) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut partition = Partition::new(config);
    for step in 0..450 {
        let symbol = ["X:A", "X:B", "X:C"][step as usize % 3];
        let price_e9 = 5_000_000_000 + (step * 7_919 % 400 - 200) * 1_000_000;
        partition.accept(step, &trade(symbol, (1_000 + step) * SECOND_NS, price_e9));
        if step == 200 {
            partition.run(usize::MAX);
            partition = Partition { merge: std::mem::take(&mut partition.merge), ..partition.restored() };
        }
    }
    partition.run(usize::MAX);
    let state = |stage: &GroupStage| {
        let mut bytes = Vec::new();
        stage.write(&mut bytes);
        bytes
    };
    let states = partition.stages.iter().map(state).collect();
    (partition.signals(), states)
}

/// Signals and snapshots without such indicators have these bytes.
#[test]
fn what_is_off_leaves_no_trace() {
    let off = config_with(0);
    assert_eq!(off.indicators, IndicatorParams::default());
    let expected = r#""indicators":{"sma":20,"ema_fast":38,"ema_slow":100,"bollinger":20,"bollinger_width":2.0,"rsi":14,"macd_fast":12,"macd_slow":26,"macd_signal":9,"atr":14,"vwap":20,"momentum":10,"roc":10,"zscore":20,"realised_volatility":20},"signals""#;
    assert!(off.to_json().contains(expected), "{}", off.to_json());
    let (signals, states) = run(&off);
    let hashes = [signals, states].map(|bytes| xxh3_64(&bytes.concat()));
    assert_eq!(hashes, [15_833_807_051_211_622_587, 7_122_968_707_393_323_243], "signals and snapshots");
}

#[test]
fn what_is_on_is_recorded_and_adds_to_signals() {
    let on = config_with(2);
    let json = on.to_json();
    assert!(json.contains(r#""realised_volatility":20,"stochastic":2,"stochastic_average":2}"#), "{json}");
    assert_eq!(StageConfig::from_json(&json).unwrap(), on);
    let ((off, _), (signals, _)) = (run(&config_with(0)), run(&on));
    assert_eq!(off.len(), signals.len());
    let mut versions = [0; 6];
    let mut bars_of = BTreeMap::<String, Vec<i64>>::new();
    for (off, signal) in off.iter().zip(&signals) {
        let schema = known::all().find(|schema| signal[2..10] == schema.fingerprint.to_le_bytes()).unwrap();
        versions[schema.version as usize] += 1;
        let mut signal = decode_signal(signal).unwrap();
        if let Some(bar) = &mut signal.bar {
            let closes = bars_of.entry(signal.symbol.to_string()).or_default();
            closes.push(bar.close_e9.unwrap());
            // The second of two prices is the higher one, the lower one, or the same.
            let percent = |newest: usize| {
                let pair = closes.get(newest.checked_sub(1)?..=newest)?;
                Some(if pair[1] > pair[0] { 100.0 } else { 0.0 })
            };
            let newest = closes.len() - 1;
            let mean = newest.checked_sub(1).and_then(percent).zip(percent(newest));
            let found = std::mem::take(&mut bar.further_indicators);
            assert_eq!(found.get("stochastic_k").copied(), percent(newest));
            assert_eq!(found.get("stochastic_d").copied(), mean.map(|(before, now)| (before + now) / 2.0));
        }
        let mut without = Vec::new();
        encode_signal(&signal, &mut without);
        assert_eq!(without, *off);
    }
    // Alerts have no bar.
    assert_eq!(versions[4], 450);
    assert!(versions[1] > 3 && versions[2] + versions[3] == 0, "{versions:?}");
}
