//! Closed bars and signals by symbol, for candles. Old ones are dropped to bound the memory.

use std::collections::{BTreeMap, VecDeque};

use warptape_replay::iso;
use warptape_schemas::signal::{Bar, INDICATORS, Signal};
use warptape_schemas::{decimal_e9, decimal_text, decode_signal};

use super::snapshot::{Candle, Candles, Signal as Shown, Symbol};

/// Greatest number of symbols kept. Signals of further symbols are only counted.
const SYMBOLS_MAX: usize = 5_000;
/// Greatest number of bars, and of other signals, kept in one series.
const BARS_MAX: usize = 200;
/// Least number of bars kept in a series, however many series there are.
const BARS_MIN: usize = 20;
/// Total number of bars in all series above which each series keeps fewer.
const BARS_ALL_MAX: usize = 100_000;
/// Greatest number of symbols in a snapshot.
const SHOWN_MAX: usize = 100;

/// Bars and signals of all symbols seen.
#[derive(Default)]
pub(super) struct Series {
    symbols: BTreeMap<String, OfSymbol>,
    /// Number of series of all symbols.
    count: usize,
}

#[derive(Default)]
struct OfSymbol {
    partition: i32,
    signals: u64,
    bars: BTreeMap<String, OfBar>,
}

/// Signals of one bar specification, oldest first, each with its partition and offset.
#[derive(Default)]
struct OfBar {
    bars: VecDeque<Vec<u8>>,
    signals: VecDeque<(String, Vec<u8>)>,
}

impl Series {
    /// Stores a signal and its encoded form.
    pub(super) fn see(&mut self, (partition, offset): (i32, i64), signal: &Signal<'_>, encoded: &[u8]) {
        if !self.symbols.contains_key(&*signal.symbol) {
            if self.symbols.len() >= SYMBOLS_MAX {
                return;
            }
            self.symbols.insert(signal.symbol.to_string(), OfSymbol { partition, ..OfSymbol::default() });
        }
        let Some(symbol) = self.symbols.get_mut(&*signal.symbol) else { return };
        symbol.signals += 1;
        if !symbol.bars.contains_key(&*signal.bar_spec) {
            symbol.bars.insert(signal.bar_spec.to_string(), OfBar::default());
            self.count += 1;
        }
        let Some(of) = symbol.bars.get_mut(&*signal.bar_spec) else { return };
        let most = (BARS_ALL_MAX / self.count.max(1)).clamp(BARS_MIN, BARS_MAX);
        if signal.bar.is_some() {
            of.bars.push_back(encoded.to_vec());
            of.bars.drain(..of.bars.len().saturating_sub(most));
        } else {
            of.signals.push_back((format!("{partition}:{offset}"), encoded.to_vec()));
            of.signals.drain(..of.signals.len().saturating_sub(most));
        }
    }

    /// Returns the symbols with the most signals, at most [`SHOWN_MAX`].
    pub(super) fn symbols(&self) -> Vec<Symbol> {
        let mut most: Vec<_> = self.symbols.iter().collect();
        most.sort_by_key(|(_, of)| std::cmp::Reverse(of.signals));
        let shown = most.into_iter().take(SHOWN_MAX).map(|(name, of)| Symbol {
            symbol: name.clone(),
            bars: of.bars.keys().cloned().collect(),
            signals: of.signals,
        });
        shown.collect()
    }

    /// Returns the partition of a symbol; `None` if it has no signals here.
    pub(super) fn partition_of(&self, symbol: &str) -> Option<i32> {
        self.symbols.get(symbol).map(|of| of.partition)
    }

    /// Returns the candles of a symbol; `None` if it has none.
    pub(super) fn candles(&self, symbol: &str, bar: &str) -> Option<Candles> {
        let of = self.symbols.get(symbol)?.bars.get(bar)?;
        let candles: Vec<Candle> = of.bars.iter().filter_map(|encoded| candle(encoded)).collect();
        let first = candles.first().map(|candle| candle.start.clone()).unwrap_or_default();
        let signals = of.signals.iter().filter_map(|(place, encoded)| {
            let signal = decode_signal(encoded).ok()?;
            Some(shown(place.clone(), &signal)).filter(|shown| shown.end >= first)
        });
        let signals = signals.collect();
        Some(Candles { symbol: symbol.to_owned(), bar: bar.to_owned(), candles, signals })
    }
}

/// Returns a signal in the form that is shown.
pub(super) fn shown(place: String, signal: &Signal<'_>) -> Shown {
    Shown {
        place,
        symbol: signal.symbol.to_string(),
        kind: signal.kind.name().to_owned(),
        bar: signal.bar_spec.to_string(),
        end: iso(signal.bar_end_ns),
        value: signal.value,
    }
}

fn candle(encoded: &[u8]) -> Option<Candle> {
    let signal = decode_signal(encoded).ok()?;
    let bar = signal.bar.as_ref()?;
    let [open, high, low, close] = prices(bar);
    let volume = match &bar.exact {
        Some(exact) => decimal_text(exact.volume.0, 9),
        None => decimal_e9(bar.volume_e9),
    };
    let fixed =
        INDICATORS.iter().zip(bar.indicators).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
    let further = bar.further_indicators.iter().map(|(name, value)| (name.to_string(), *value));
    Some(Candle {
        start: iso(signal.bar_start_ns),
        end: iso(signal.bar_end_ns),
        open,
        high,
        low,
        close,
        volume,
        trades: bar.trades,
        // JSON cannot represent infinities and NaN.
        indicators: fixed.chain(further).filter(|(_, value)| value.is_finite()).collect(),
    })
}

/// Returns open, high, low and close as decimals.
fn prices(bar: &Bar) -> [String; 4] {
    match &bar.exact {
        Some(exact) => {
            [exact.open, exact.high, exact.low, exact.close].map(|price| decimal_text(price.0, 18))
        }
        // A bar without exact prices has all prices in units of 1e-9.
        None => {
            [bar.open_e9, bar.high_e9, bar.low_e9, bar.close_e9].map(|e9| decimal_e9(e9.unwrap_or_default()))
        }
    }
}
