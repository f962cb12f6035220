//! Computations of the stages. The parameters of indicators are declared in the table of indicators.

use std::collections::BTreeMap;

use warptape_kernels::{BarSpec, IndicatorParams, PARAMETERS, Parameter, SignalParams};
use warptape_stages::formulas::{functions_of, is_name};
use warptape_stages::{MarketConfig, Numbers, QuoteOrder, Rejects, Rules, StageConfig, TimeUnits};

use super::super::declaration::{Section, Values, integer, list, number, section, texts, whole};
use super::super::keys::{Key, ValueKind};
use super::super::syntax;
use super::super::value::Setting;

const NS_PER_MS: i64 = 1_000_000;

section! {
    "stages": "The computation. Outputs depend only on this section and the log.";
    into StageConfig {
        /// Bars that ticks are folded into: by event time (`250ms`, `1s`, `5m`, `1h`), by trades (`tick:100`), by
        /// volume (`volume:10`).
        bars: Vec<BarSpec> = list(
            &["1s", "1m", "5m"],
            16,
            "an interval (`250ms`, `1s`, `5m`, `1h`), `tick:N` trades or `volume:V`",
            syntax::is_bar,
            |items| items.iter().map(bar).collect(),
        );
        /// Greatest distance of a tick's event time behind the greatest one seen in its partition, in milliseconds.
        allowed_lateness_ns as allowed_lateness_ms: i64 = integer(2_000, 0..=3_600_000, |ms| ms * NS_PER_MS);
        /// Allowed lateness of venues that differ from the others. `BYBIT=5s` allows ticks of symbols that begin with
        /// `BYBIT:` to lie 5 s behind the greatest event time of all venues. Their bars close later accordingly.
        lateness_by_venue_ns as lateness_by_venue: BTreeMap<String, i64> = list(
            &[],
            64,
            "a venue and its allowed lateness, up to an hour, such as `BYBIT=5s` or `FX=250ms`; each venue only once",
            syntax::is_venue_lateness,
            |items| items.iter().filter_map(|item| syntax::venue_lateness(item)).collect(),
        );
        /// Greatest distance of a tick's event time ahead of the greatest one seen in its partition, in milliseconds. A
        /// tick further ahead is a dead letter. A longer gap is followed if 8 ticks in a row lie after it, of more
        /// symbols than are otherwise heard. The default of four days is longer than a market closes over a weekend and
        /// a holiday. Less is safer for markets that do not close.
        future_max_ns as future_max_ms: i64 = integer(345_600_000, 1..=9_000_000_000_000, |ms| ms * NS_PER_MS);
        /// Greatest distance of a tick's event time ahead of the time at which its record was written, in milliseconds.
        /// A tick further ahead is a dead letter, whatever the number of symbols. The time is the record's create time:
        /// the producer's clock, or the broker's with `message.timestamp.type=LogAppendTime`. Data dated in the future
        /// need a greater limit.
        clock_skew_max_ns as clock_skew_max_ms: i64 = integer(60_000, 1..=9_000_000_000_000, |ms| ms * NS_PER_MS);
        /// Greatest number of symbols of a partition; a tick of a further one is a dead letter.
        symbols_max: u32 = integer(65_536, 1..=16_777_216, |symbols| symbols as u32);
        /// Number of symbol groups of a partition. Groups are the unit of placement on lanes.
        groups_per_partition: u32 = integer(16, 1..=4_096, whole);
        /// Own indicators by name, each an expression over the closed bar:
        /// `spread_z = "zscore((ask - bid) / mid, 50)"`. Names and functions are in docs/formulas.md. Values come in
        /// further_indicators of signals.
        formulas: BTreeMap<String, String> = texts(
            "expressions by name; a name has lower case letters, digits and _",
            is_name,
        );
        /// Own alerts by name, each a condition over the closed bar and the formulas: `wide = "spread_z > 3"`. A signal
        /// of kind ALERT comes at the bar that begins to fulfil it.
        alerts: BTreeMap<String, String> = texts(
            "conditions by name; a name has lower case letters, digits and _",
            is_name,
        );
    }
    and {
        functions: BTreeMap<String, u32> = functions;
        indicators: IndicatorParams = |values| IndicatorParams::from_values(|of| parameter(values, of));
        signals: SignalParams = |values| SignalParams::read(values);
        market: MarketConfig = |values| MarketConfig::read(values);
        quotes: QuoteOrder = |_| QuoteOrder::EventTime;
        numbers: Numbers = |_| Numbers::Exact;
        times: TimeUnits = |_| TimeUnits::Nanoseconds;
        rejects: Rejects = |_| Rejects::Rows;
        rules: Rules = |_| Rules::NEWEST;
    }
}

/// The registered functions in formulas and alerts.
fn functions(values: &Values<'_>) -> BTreeMap<String, u32> {
    let texts = ["stages.formulas", "stages.alerts"].into_iter().flat_map(|path| match values.get(path) {
        Setting::Table(names) => names.values(),
        other => unreachable!("{path} is a table, not {other:?}"),
    });
    functions_of(texts.map(|entry| entry.text.reveal()))
}

fn bar(text: &String) -> BarSpec {
    text.parse().unwrap_or_else(|_| unreachable!("{text} was checked when it was read"))
}

fn parameter(values: &Values<'_>, parameter: &Parameter) -> f64 {
    match values.get(parameter.path) {
        Setting::Integer(window) => *window as f64,
        Setting::Number(number) => *number,
        other => unreachable!("a parameter of an indicator is a number, not {other:?}"),
    }
}

/// The section of the indicators' parameters.
pub const INDICATORS: Section = Section {
    path: "stages.indicators",
    about: "Windows of the indicators, in bars.",
    keys: &{
        let mut keys = [key(&PARAMETERS[0]); PARAMETERS.len()];
        let mut position = 1;
        while position < keys.len() {
            keys[position] = key(&PARAMETERS[position]);
            position += 1;
        }
        keys
    },
};

/// Returns the key of an indicator's parameter.
const fn key(parameter: &Parameter) -> Key {
    let Parameter { key, path, default, min, max, is_window, about, .. } = *parameter;
    let kind = if is_window {
        ValueKind::Integer { default: default as i64, min: min as i64, max: max as i64 }
    } else {
        ValueKind::Number { default, min, max }
    };
    Key { path, field: key, kind, about }
}

section! {
    "stages.signals": "Thresholds of alerts.";
    into SignalParams {
        /// RSI above which a symbol is overbought.
        rsi_upper: f64 = number(70.0, 0.0..=100.0);
        /// RSI below which a symbol is oversold; less than `rsi_upper`.
        rsi_lower: f64 = number(30.0, 0.0..=100.0);
        /// Distance from the mean, in standard deviations, that signals a reversion. With the width of the Bollinger
        /// bands here, and their window for `zscore`, each break of a band is a z-score as well (docs/indicators.md).
        zscore_threshold: f64 = number(3.0, 0.01..=100.0);
    }
}

section! {
    "stages.market": "Market data for risk requests.";
    into MarketConfig {
        /// Event time between samples of all prices, in milliseconds. Volatilities and correlations of risk requests
        /// are computed from them.
        sample_interval_ns as sample_interval_ms: i64 = integer(1_000, 1..=86_400_000, |ms| ms * NS_PER_MS);
        /// Returns that are kept of each symbol, in samples. Volatilities and matrices need at least 30.
        window: u32 = integer(256, 30..=4_096, whole);
        /// Weight of a return in a covariance relative to the next one.
        decay: f64 = number(0.94, 0.01..=1.0);
        /// Trading hours in a year, by which volatilities and covariances of the market are annualised. A market that
        /// never closes has 8760, one with 252 days of 6.5 hours 1638.
        trading_hours_a_year: f64 = number(8_760.0, 1.0..=8_760.0);
    }
}
