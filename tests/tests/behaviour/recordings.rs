//! Compares the four recorded market streams with independently computed bars and indicators.
//!
//! `tests/fixtures/README.md` describes the fixtures and their rules.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::GzDecoder;
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_schemas::decode_signal;
use warptape_schemas::signal::{Bar, INDICATORS, Signal, SignalKind};
use warptape_schemas::tick::{Tick, TickKind};
use warptape_sources::binance_capture::BinanceCapture;
use warptape_stages::StageConfig;
use warptape_tests::engine_run::{self, engine_config, feed, read_partition, run_to_end};

const PARTITIONS: i32 = 4;
const FILES: [(&str, &str); 4] = [
    ("BINANCE", "spot-btcusdt_20240808.jsonl.gz"),
    ("BINANCE", "spot-ethusdt_20240808.jsonl.gz"),
    ("BINANCE-USDM", "usdm-btcusdt_20240808.jsonl.gz"),
    ("BINANCE-USDM", "usdm-ethusdt_20240808.jsonl.gz"),
];
/// Greatest allowed relative deviation from TA-Lib.
const RELATIVE: f64 = 1e-9;
/// Greatest allowed deviation of nearly cancelling differences, relative to the price. TA-Lib itself is no more
/// precise.
const OF_PRICE: f64 = 1e-14;

/// Returns the ticks of the recordings; `None`, with a printed message, if their folder is missing.
pub fn recorded_ticks() -> Option<Vec<Tick>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/binance-2024-08");
    let folder = std::env::var_os("WARPTAPE_TEST_RECORDINGS").map_or(here, PathBuf::from);
    if !folder.is_dir() {
        eprintln!("recordings are not here ({}): nothing to compare", folder.display());
        return None;
    }
    let files: Vec<(String, PathBuf)> =
        FILES.iter().map(|(venue, file)| ((*venue).to_owned(), folder.join(file))).collect();
    let capture = BinanceCapture::open(&files).expect("the recordings are readable");
    Some(capture.collect::<Result<_, _>>().expect("the recordings are good"))
}

/// Returns the stage configuration of the fixtures.
pub fn stage_config() -> StageConfig {
    engine_run::stage_config(&["1s", "1m"])
}

/// Returns the values of the signals topic, by partition.
fn signals(ticks: &[Tick], batch: usize, lanes: i32) -> Vec<Vec<Vec<u8>>> {
    signals_of(PARTITIONS, ticks, batch, lanes)
}

/// Returns the values of the signals topic of a log with `partitions` partitions.
fn signals_of(partitions: i32, ticks: &[Tick], batch: usize, lanes: i32) -> Vec<Vec<Vec<u8>>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    feed(&log, partitions, batch, ticks.iter().cloned());
    let summary = run_to_end(&log, engine_config(stage_config(), lanes));
    assert_eq!((summary.ticks, summary.late, summary.dead_letters), (ticks.len() as u64, 0, 0));
    assert!(summary.repeated.is_empty(), "{}", summary.repeated);
    let values =
        |partition| read_partition(log.as_ref(), "signals", partition).into_iter().map(|record| record.value);
    (0..partitions).map(|partition| values(partition).collect()).collect()
}

/// Embeds a fixture in the binary, because a machine with a GPU may have only the binary.
macro_rules! fixture {
    ($name:literal) => {
        ($name, rows(include_bytes!(concat!("../../fixtures/", $name))))
    };
}

fn rows(compressed: &[u8]) -> Vec<Vec<String>> {
    let mut text = String::new();
    GzDecoder::new(compressed).read_to_string(&mut text).expect("the fixture is text");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Closed bars by symbol and start time.
type Bars<'a> = BTreeMap<(String, i64), Signal<'a>>;

fn bars<'a>(signals: &'a [Vec<Vec<u8>>], spec: &str) -> Bars<'a> {
    let decoded =
        signals.iter().flatten().map(|value| decode_signal(value).expect("signals are written whole"));
    let mut bars = Bars::new();
    for signal in decoded.filter(|signal| signal.kind == SignalKind::Bar && signal.bar_spec == spec) {
        let twice = bars.insert((signal.symbol.to_string(), signal.bar_start_ns), signal);
        assert!(twice.is_none(), "a bar is closed once");
    }
    bars
}

fn check_bars(found: &Bars<'_>, (fixture_name, rows): (&str, Vec<Vec<String>>)) {
    assert_eq!(found.len(), rows.len(), "{fixture_name}");
    for row in rows {
        let number = |column: usize| row[column].parse::<i64>().expect("the fixture has integers");
        let signal = &found[&(row[0].clone(), number(1))];
        let bar = signal.bar.as_ref().expect("a bar signal has its bar");
        let prices = [bar.open_e9, bar.high_e9, bar.low_e9, bar.close_e9];
        let values: Vec<_> = prices.into_iter().chain([bar.volume_e9, bar.trades].map(Some)).collect();
        let expected: Vec<_> = (2..8).map(|column| Some(number(column))).collect();
        assert_eq!(values, expected, "{fixture_name}: {} at {}", row[0], row[1]);
    }
}

/// Returns how much an indicator changes if the price changes by one, for indicators that are differences and can
/// cancel; 0 for others.
fn units_per_price(name: &str, bar: &Bar) -> f64 {
    match name {
        "macd" | "macd_signal" | "macd_histogram" | "momentum" => 1.0,
        "roc" => 100.0 / bar.close(),
        "zscore" => {
            let value =
                |name| bar.indicators[INDICATORS.iter().position(|other| *other == name).expect("a name")];
            let [upper, middle] =
                ["bollinger_upper", "bollinger_middle"].map(|name| value(name).expect("same window"));
            assert!(upper > middle, "no window of the recordings is flat");
            // A band is two deviations away from the middle.
            2.0 / (upper - middle)
        }
        _ => 0.0,
    }
}

fn check_indicators(found: &Bars<'_>, (fixture_name, rows): (&str, Vec<Vec<String>>)) {
    assert_eq!(found.len(), rows.len(), "{fixture_name}");
    for row in rows {
        let signal = &found[&(row[0].clone(), row[1].parse::<i64>().expect("a time"))];
        let bar = signal.bar.as_ref().expect("a bar signal has its bar");
        let price = bar.close();
        for (column, (name, value)) in INDICATORS.iter().zip(&bar.indicators).enumerate() {
            let expected = row.get(column + 2).map_or("", String::as_str);
            let place = format!("{name} of {} at {}", row[0], row[1]);
            let Some(value) = *value else {
                assert!(expected.is_empty(), "{place}: {expected} expected, none found");
                continue;
            };
            let expected: f64 =
                expected.parse().unwrap_or_else(|_| panic!("{place}: none expected, {value} found"));
            let allowed = RELATIVE * expected.abs() + OF_PRICE * price * units_per_price(name, bar);
            assert!((value - expected).abs() <= allowed, "{place}: {expected:e} expected, {value:e} found");
        }
    }
}

#[test]
fn bars_equal_decimal_arithmetic_and_indicators_equal_ta_lib() {
    let Some(ticks) = recorded_ticks() else { return };
    assert_eq!(ticks.iter().filter(|tick| tick.kind == TickKind::Trade).count(), 51_252);
    let signals = signals(&ticks, 256, 4);
    let seconds = bars(&signals, "1s");
    check_bars(&seconds, fixture!("bars_1s.csv.gz"));
    check_indicators(&seconds, fixture!("indicators_1s.csv.gz"));
    check_bars(&bars(&signals, "1m"), fixture!("bars_1m.csv.gz"));
}

#[test]
fn lanes_do_not_show_on_recordings() {
    let Some(ticks) = recorded_ticks() else { return };
    // The records have the same ticks, so their offsets are equal; only the number of lanes differs.
    let one = signals(&ticks, 64, 1);
    assert_eq!(one, signals(&ticks, 64, 3));
    assert_eq!(one, signals(&ticks, 64, 8));
}

/// Returns the bid and ask of each bar, by symbol and start time.
fn quotes(signals: &[Vec<Vec<u8>>], spec: &str) -> BTreeMap<(String, i64), [i64; 2]> {
    let quote = |signal: Signal<'_>| {
        let bar = signal.bar.expect("a bar signal has its bar");
        [bar.bid_price_e9, bar.ask_price_e9].map(|price| price.expect("a price of nine digits"))
    };
    bars(signals, spec).into_iter().map(|(key, signal)| (key, quote(signal))).collect()
}

#[test]
fn no_bar_of_the_recordings_has_a_quote_from_after_its_end() {
    let Some(ticks) = recorded_ticks() else { return };
    let four = signals(&ticks, 256, 2);
    let one = signals_of(1, &ticks, 64, 1);
    let mut quotes_of: BTreeMap<&str, Vec<&Tick>> = BTreeMap::new();
    for tick in ticks.iter().filter(|tick| tick.kind == TickKind::Quote) {
        quotes_of.entry(&tick.symbol).or_default().push(tick);
    }
    for (spec, interval_ns) in [("1s", 1_000_000_000), ("1m", 60_000_000_000)] {
        let found = quotes(&four, spec);
        for ((symbol, start_ns), found) in &found {
            let before =
                quotes_of[symbol.as_str()].iter().filter(|tick| tick.event_time_ns < start_ns + interval_ns);
            // If several ticks have the same time, the last one in the list arrived last.
            let last = before.max_by_key(|tick| tick.event_time_ns);
            let expected = last.map_or([0; 2], |tick| [tick.bid_price_e9, tick.ask_price_e9]);
            assert_eq!(*found, expected, "{spec} bar of {symbol} at {start_ns}");
        }
        assert!(found.values().filter(|quote| **quote != [0; 2]).count() > 10);
        // With one partition, other symbols close the bars, so they close at other times.
        let of_one = quotes(&one, spec);
        let in_both = found.iter().filter_map(|(key, quote)| Some((key, quote, of_one.get(key)?)));
        let differing = in_both.clone().filter(|(_, quote, other)| quote != other).count();
        assert_eq!((differing, in_both.count() > 10), (0, true), "{spec}");
    }
}
