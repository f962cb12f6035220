//! Formulas and alerts of users. Batch cuts, snapshots, evictions and devices are tested with them in the other files.

use std::collections::BTreeMap;
use std::sync::Once;

use warptape_kernels::ParameterMistake;
use warptape_stages::formulas::{
    BUILTIN, Constant, Function, INPUTS, Window, functions_of, register, signature,
};

use super::*;

/// The greatest distance of the values from their mean. It panics at a value of exactly 13.37.
struct Reach;

impl Function for Reach {
    fn name(&self) -> &'static str {
        "reach"
    }

    fn version(&self) -> u32 {
        3
    }

    fn series(&self) -> usize {
        1
    }

    fn constants(&self) -> &'static [Constant] {
        &[Constant::BARS]
    }

    fn state_len(&self, constants: &[f64]) -> usize {
        Window::state_len(constants[0] as usize)
    }

    fn next(&self, _: &[f64], state: &mut [f64], series: &[f64]) -> f64 {
        let mut window = Window::of(state);
        window.push(series[0]);
        assert!(series[0] != 13.37, "an unlucky price");
        let mean = window.iter().sum::<f64>() / window.iter().count() as f64;
        if window.is_full() {
            window.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max)
        } else {
            f64::NAN
        }
    }
}

fn register_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register(&[&Reach]).unwrap());
}

/// The configuration with these formulas and alerts.
fn with(config: StageConfig, formulas: &[(&str, &str)], alerts: &[(&str, &str)]) -> StageConfig {
    register_once();
    let map = |texts: &[(&str, &str)]| -> BTreeMap<String, String> {
        texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    };
    let (formulas, alerts) = (map(formulas), map(alerts));
    let functions = functions_of(formulas.values().chain(alerts.values()).map(String::as_str));
    StageConfig { formulas, alerts, functions, ..config }
}

/// The configuration with some of everything that formulas have.
pub(super) fn with_some(config: StageConfig) -> StageConfig {
    let formulas = [
        ("pressure", "mean((buy_volume - sell_volume) / volume, 2)"),
        ("stretch", "zscore(mid, 3) + lag(trades, 1)"),
        ("reach_of_close", "reach(close, 2)"),
        ("fast", "ema(close, 2)"),
    ];
    let alerts = [
        ("cross", "crosses_above(fast, mean(close, 3))"),
        ("pressed", "pressure > 0.2 or reach_of_close > 1"),
    ];
    with(config, &formulas, &alerts)
}

/// Signals of one symbol with a bar at each of these prices.
fn signals_of(config: &StageConfig, prices: &[f64]) -> Vec<warptape_schemas::signal::Signal<'static>> {
    assert_eq!(config.check(), []);
    let mut partition = Partition::new(config);
    for (offset, price) in prices.iter().enumerate() {
        let tick = trade("X:A", (1_000 + offset as i64) * SECOND_NS, (price * 1e9).round() as i64);
        partition.accept(offset as i64, &tick);
    }
    partition.run(usize::MAX);
    partition.signals().iter().map(|bytes| decode_signal(bytes).unwrap().into_owned()).collect()
}

/// Values of one formula, bar by bar.
fn values_of(text: &str, prices: &[f64]) -> Vec<Option<f64>> {
    let config = with(config(&["tick:1"], SECOND_NS), &[("own", text)], &[]);
    let bars = signals_of(&config, prices).into_iter().filter_map(|signal| signal.bar);
    bars.map(|bar| bar.further_indicators.get("own").copied()).collect()
}

#[test]
fn functions_are_what_the_book_says() {
    let prices = [4.0, 2.0, 6.0, 6.0, 6.0, 1.0];
    let all = |text: &str, expected: [Option<f64>; 6]| {
        let found = values_of(text, &prices);
        let is_near = |(found, expected): (&Option<f64>, &Option<f64>)| match (found, expected) {
            (Some(found), Some(expected)) => (found - expected).abs() < 1e-12,
            (found, expected) => found == expected,
        };
        assert!(found.iter().zip(&expected).all(is_near), "{text}: {found:?}, not {expected:?}");
    };
    let some = |values: [f64; 6]| values.map(|value| (!value.is_nan()).then_some(value));
    const NULL: f64 = f64::NAN;
    all("close", some([4.0, 2.0, 6.0, 6.0, 6.0, 1.0]));
    all("abs(2 - close)", some([2.0, 0.0, 4.0, 4.0, 4.0, 1.0]));
    all("sqrt(close - 2)", some([2_f64.sqrt(), 0.0, 2.0, 2.0, 2.0, NULL]));
    all("ln(close - 1)", some([3_f64.ln(), 0.0, 5_f64.ln(), 5_f64.ln(), 5_f64.ln(), NULL]));
    all("exp(-close)", prices.map(|price| Some((-price).exp())));
    all("min(close, 3)", some([3.0, 2.0, 3.0, 3.0, 3.0, 1.0]));
    all("max(close, 3)", some([4.0, 3.0, 6.0, 6.0, 6.0, 3.0]));
    all("if(close > 3, 1 / (close - 4), 9)", some([NULL, 9.0, 0.5, 0.5, 0.5, 9.0]));
    all("coalesce(1 / (close - 4), 0)", some([0.0, -0.5, 0.5, 0.5, 0.5, -1.0 / 3.0]));
    all("lag(close, 2)", some([NULL, NULL, 4.0, 2.0, 6.0, 6.0]));
    all("change(close, 1)", some([NULL, -2.0, 4.0, 0.0, 0.0, -5.0]));
    all("sum(close, 3)", some([NULL, NULL, 12.0, 14.0, 18.0, 13.0]));
    all("mean(close, 3)", some([NULL, NULL, 4.0, 14.0 / 3.0, 6.0, 13.0 / 3.0]));
    all("std(close, 2)", some([NULL, 1.0, 2.0, 0.0, 0.0, 2.5]));
    all("zscore(close, 2)", some([NULL, -1.0, 1.0, 0.0, 0.0, -1.0]));
    all("highest(close, 2)", some([NULL, 4.0, 6.0, 6.0, 6.0, 6.0]));
    all("lowest(close, 2)", some([NULL, 2.0, 2.0, 6.0, 6.0, 1.0]));
    all("ema(close, 3)", some([NULL, NULL, 4.0, 5.0, 5.5, 3.25]));
    all("correlation(close, 2 - close, 3)", some([NULL, NULL, -1.0, -1.0, NULL, -1.0]));
    all("bars_since(close < 3)", some([NULL, 0.0, 1.0, 2.0, 3.0, 0.0]));
    all("crosses_above(close, 3)", some([NULL, 0.0, 1.0, 0.0, 0.0, 0.0]));
    all("crosses_below(close, 3)", some([NULL, 1.0, 0.0, 0.0, 0.0, 1.0]));
    all("mean(1 / (close - 2), 2)", some([NULL, NULL, NULL, 0.25, 0.25, -0.375]));
    all("not close > 3", some([0.0, 1.0, 0.0, 0.0, 0.0, 1.0]));
    all("close >= 4 and close != 6 or close == 1", some([1.0, 0.0, 0.0, 0.0, 0.0, 1.0]));
    all("bid", [None; 6]);
    all("1 / 0", [None; 6]);
    all("seconds + trades + volume", some([2.0; 6]));
    // Each function is in a line above.
    let source = include_str!("formulas.rs");
    for function in BUILTIN {
        assert!(
            source.contains(&format!("\"{}(", function.name()))
                || source.contains(&format!(" {}(", function.name())),
            "{}",
            function.name()
        );
    }
}

#[test]
fn the_book_lists_all_names_and_functions() {
    let book = include_str!("../../../docs/formulas.md");
    let rows: Vec<&str> = book.lines().filter(|line| line.starts_with("| `")).collect();
    let inputs = INPUTS.iter().map(|input| format!("| `{}` | {} |", input.name, input.about));
    let functions =
        BUILTIN.iter().map(|function| format!("| `{}` | {} |", signature(function), function.about));
    assert_eq!(rows, inputs.chain(functions).collect::<Vec<_>>());
}

/// Processors differ in the greater one of 0 and -0, so there is only one 0.
#[test]
fn zero_has_one_sign() {
    for text in
        ["-(close - close)", "highest(0 * -close, 2)", "lowest(0 * -close, 2)", "min(0, -0)", "max(-0, 0)"]
    {
        let value = values_of(text, &[1.0, 2.0])[1];
        assert_eq!(value.map(f64::to_bits), Some(0), "{text}");
    }
}

#[test]
fn formulas_read_formulas_and_indicators_in_any_order() {
    let mut config = config(&["tick:1"], SECOND_NS);
    config.indicators.stochastic = 2;
    let config = with(config, &[("a", "b * 2"), ("b", "c + stochastic_k"), ("c", "close")], &[]);
    let signals = signals_of(&config, &[1.0, 2.0]);
    let further = &signals[1].bar.as_ref().unwrap().further_indicators;
    let named: Vec<(&str, f64)> = further.iter().map(|(name, value)| (&**name, *value)).collect();
    assert_eq!(named, [("a", 204.0), ("b", 102.0), ("c", 2.0), ("stochastic_k", 100.0)]);
}

#[test]
fn an_alert_comes_at_the_bar_that_enters_its_condition() {
    let alerts = [
        ("above", "close > 3"),
        ("by_formula", "is_low"),
        ("crossing", "crosses_below(close, 3)"),
        ("one_of_two", "close > 5 or close < 2"),
    ];
    let config = with(config(&["tick:1"], SECOND_NS), &[("is_low", "close < 2")], &alerts);
    let found: Vec<_> = signals_of(&config, &[4.0, 2.0, 6.0, 7.0, 3.0, 1.0, 4.0])
        .into_iter()
        .filter(|signal| signal.kind == SignalKind::Alert)
        .map(|signal| {
            (signal.source_offset, signal.name.unwrap().into_owned(), signal.value, signal.threshold)
        })
        .collect();
    let alert = |offset, name: &str, value, threshold| (offset, name.to_owned(), value, threshold);
    // The first bar enters nothing, whatever its condition.
    let expected = [
        // A crossing looks at the bar before by itself.
        alert(1, "crossing", 2.0, 3.0),
        alert(2, "above", 6.0, 3.0),
        alert(2, "one_of_two", 1.0, 0.0),
        alert(5, "by_formula", 1.0, 0.0),
        alert(5, "crossing", 1.0, 3.0),
        alert(5, "one_of_two", 1.0, 0.0),
        alert(6, "above", 4.0, 3.0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_function_that_panics_costs_its_formula_alone() {
    let formulas = [
        ("far", "coalesce(reach(close, 1) + reach(close, 2), 0) + 1"),
        ("plain", "close + 1"),
        ("reader", "far + 1"),
    ];
    let config = with(config(&["tick:1"], SECOND_NS), &formulas, &[("far_away", "reach(close, 2) > 1")]);
    let signals = signals_of(&config, &[4.0, 13.37, 5.0, 9.0]);
    let faults: Vec<_> = signals
        .iter()
        .filter(|signal| signal.kind == SignalKind::Fault)
        .map(|signal| (signal.source_offset, signal.name.as_deref()))
        .collect();
    assert_eq!(faults, [(1, Some("far")), (1, Some("far_away"))], "once each");
    let bars: Vec<_> = signals.iter().filter_map(|signal| signal.bar.as_ref()).collect();
    let values =
        |name: &str| bars.iter().map(|bar| bar.further_indicators.get(name).copied()).collect::<Vec<_>>();
    assert_eq!(values("far"), [Some(1.0), None, None, None]);
    assert_eq!(values("reader"), [Some(2.0), None, None, None]);
    assert_eq!(values("plain"), [Some(5.0), Some(14.37), Some(6.0), Some(10.0)]);
}

#[test]
fn prices_have_their_own_scale() {
    let config = with(config(&["tick:1"], SECOND_NS), &[("double", "2 * close")], &[]);
    let mut partition = Partition::new(&config);
    let scales = Scales { price: 6, size: 9 };
    partition.accept(0, &Tick { scales, price_e9: 1_500_000, ..trade("X:A", 1_000 * SECOND_NS, 0) });
    partition.run(usize::MAX);
    let signals = partition.signals();
    let bar = decode_signal(&signals[0]).unwrap().bar.unwrap();
    assert_eq!(bar.further_indicators.get("double"), Some(&3.0));
}

#[test]
fn mistakes_name_their_formula_and_place() {
    let mistakes = |formulas: &[(&str, &str)], alerts: &[(&str, &str)]| -> Vec<String> {
        let config = with(config(&["1s"], 0), formulas, alerts);
        let found = config.check_names().into_iter().chain(config.check());
        found.map(|ParameterMistake { field, allowed, .. }| format!("{field}: {allowed}")).collect()
    };
    let of = |text: &str| mistakes(&[("own", text)], &[]).join("\n");
    assert!(
        of("midd + 1").starts_with(
            "formulas[own]: column 1: no name midd (did you mean mid?); formulas read other formulas and open, high"
        )
    );
    assert!(
        of("1 + meen(close, 3)")
            .starts_with("formulas[own]: column 5: no function meen (did you mean mean?); docs/formulas.md")
    );
    assert_eq!(
        of("stochastic_k"),
        "formulas[own]: stochastic_k is off: give it a number of bars in stages.indicators"
    );
    assert_eq!(of("mean(close)"), "formulas[own]: column 1: mean(x, bars) is needed");
    assert_eq!(
        of("mean(close, 0)"),
        "formulas[own]: column 1: bars of mean is a whole number from 1 to 1000"
    );
    assert_eq!(
        of("mean(close, trades)"),
        "formulas[own]: column 1: bars of mean is a whole number from 1 to 1000"
    );
    assert_eq!(of("close +"), "formulas[own]: column 8: the end is not a number, a name or a call");
    let many: String = (0..9).map(|_| "mean(close, 1000) + ").collect();
    assert_eq!(
        of(&format!("{many} 1")),
        "formulas: all of them keep 9018 numbers, and 8192 are allowed: use fewer bars"
    );
    assert_eq!(
        mistakes(&[("a", "b"), ("b", "a"), ("c", "a")], &[]),
        ["formulas[a]: it reads itself, perhaps by others: a formula cannot depend on its own value"]
    );
    let choose =
        |name: &str, whose: &str| format!("formulas[{name}]: {whose} has this name: choose another one");
    assert_eq!(mistakes(&[("close", "1")], &[]), [choose("close", "a number of bars or an indicator")]);
    assert_eq!(mistakes(&[("mean", "1")], &[]), [choose("mean", "a function")]);
    for name in ["Own", "", "1st", "not", "a-b"] {
        assert!(
            mistakes(&[(name, "1")], &[])[0].contains("a name has up to 64 lower case letters"),
            "{name}"
        );
    }
    assert_eq!(
        mistakes(&[("own", "1")], &[("own", "1")]),
        ["alerts[own]: a formula has this name: choose another one"]
    );
    // A recorded name means the formula, whatever bars have got since.
    let recorded = with(config(&["tick:1"], SECOND_NS), &[("close", "7"), ("own", "close + 1")], &[]);
    let signals = signals_of(&recorded, &[1.0]);
    assert_eq!(signals[0].bar.as_ref().unwrap().further_indicators["own"], 8.0);
    let names: Vec<String> = (0..33).map(|number| format!("own{number}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "1")).collect();
    assert_eq!(mistakes(&many, &[]), ["formulas: at most 32 are allowed"]);
}

/// The journal records the versions of registered functions; another one is refused by name.
#[test]
fn functions_are_part_of_the_configuration() {
    let config = with(config(&["1s"], 0), &[("own", "reach(close, 2) + mean(close, 2)")], &[]);
    assert!(
        config
            .to_json()
            .ends_with(r#""formulas":{"own":"reach(close, 2) + mean(close, 2)"},"functions":{"reach":3}}"#)
    );
    assert_eq!(StageConfig::from_json(&config.to_json()).unwrap(), config);
    let with_functions = |functions: &[(&str, u32)]| {
        let functions = functions.iter().map(|(name, version)| ((*name).to_owned(), *version)).collect();
        let found = StageConfig { functions, ..config.clone() }.check();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        with_functions(&[("reach", 2)]),
        ["functions: reach version 2, this program has version 3: run the program that has version 2"]
    );
    // A name without a recorded version is a function that every program has, or none.
    assert!(with_functions(&[])[0].contains("column 1: no function reach"), "{:?}", with_functions(&[]));
    assert_eq!(
        with_functions(&[("other", 1)]),
        ["functions: other version 1, this program does not register it: run the program that does"]
    );
}

/// Snapshots and signals of a configuration without formulas are as before; one with formulas has its own snapshots.
#[test]
fn a_snapshot_has_the_state_of_formulas() {
    let config = with_some(config(&["tick:1"], SECOND_NS));
    let mut partition = Partition::new(&config);
    let mut whole = Vec::new();
    for step in 0..40 {
        let tick =
            trade("X:A", (1_000 + step) * SECOND_NS, 5_000_000_000 + (step * 7_919 % 400 - 200) * 1_000_000);
        partition.accept(step, &tick);
        partition.run(usize::MAX);
        whole.extend(partition.signals());
        if step % 7 == 3 {
            partition = partition.restored();
        }
    }
    let mut plain = Partition::new(&config);
    for step in 0..40 {
        let tick =
            trade("X:A", (1_000 + step) * SECOND_NS, 5_000_000_000 + (step * 7_919 % 400 - 200) * 1_000_000);
        plain.accept(step, &tick);
    }
    plain.run(usize::MAX);
    assert_eq!(whole, plain.signals());
    let kinds: Vec<SignalKind> = whole.iter().map(|bytes| decode_signal(bytes).unwrap().kind).collect();
    assert!(kinds.contains(&SignalKind::Alert), "{kinds:?}");
}
