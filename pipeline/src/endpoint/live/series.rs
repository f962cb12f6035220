//! Closed bars and signals by symbol, for candles. Old ones are dropped to bound the memory.

use std::collections::{BTreeMap, HashMap, VecDeque};

use warptape_replay::iso;
use warptape_schemas::signal::{Bar, INDICATORS, Signal, SignalKind};
use warptape_schemas::{SignalHead, decimal_e9, decimal_text, decode_signal};

use super::snapshot::{Candle, Candles, Signal as Shown, Symbol};

/// Greatest number of symbols kept.
const SYMBOLS_MAX: usize = 5_000;
/// Greatest number of series: bars of one specification of one symbol.
const SERIES_MAX: usize = 10_000;
/// Greatest number of bars, and of other signals, kept of one series.
const RECORDS_MAX: usize = 200;
/// Greatest size of all that is kept, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// Greatest size of a record; a longer one is left out.
const RECORD_BYTES_MAX: usize = 16 << 10;
/// Size of a record besides its bytes, and of a symbol or a series besides its name: their places in lists.
const RECORD_BYTES: usize = 96;
const NAME_BYTES: usize = 512;
/// Greatest number of symbols in a snapshot.
const SHOWN_MAX: usize = 100;

/// Bars and signals of all symbols seen.
pub(super) struct Series {
    symbols: HashMap<String, OfSymbol>,
    /// Number of series of all symbols.
    count: usize,
    /// Greatest number of bars kept of each series for now. It is halved if the memory does not suffice.
    records_max: usize,
    /// Size of all that is kept.
    bytes: usize,
    bytes_max: usize,
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
    bars: VecDeque<Kept>,
    signals: VecDeque<Kept>,
}

/// A record with its partition and offset.
struct Kept {
    place: (i32, i64),
    encoded: Box<[u8]>,
}

impl Default for Series {
    fn default() -> Self {
        Self { symbols: HashMap::new(), count: 0, records_max: RECORDS_MAX, bytes: 0, bytes_max: BYTES_MAX }
    }
}

impl Series {
    /// Keeps a signal, given with its encoded form. One without room is counted for its symbol, if that is kept.
    pub(super) fn see(&mut self, place: (i32, i64), signal: &SignalHead<'_>, encoded: &[u8]) {
        let (name, spec, has_bar) = (signal.symbol, signal.bar_spec, signal.kind == SignalKind::Bar);
        if encoded.len() > RECORD_BYTES_MAX || !self.has_symbol(name, place.0) {
            return;
        }
        let Some(symbol) = self.symbols.get_mut(name) else { return };
        symbol.signals += 1;
        let is_new = !symbol.bars.contains_key(spec);
        let of_series = if is_new { spec.len() + NAME_BYTES } else { 0 };
        let bytes = encoded.len() + RECORD_BYTES + of_series;
        // The newest of a series replaces its oldest where there is no room for more.
        if self.bytes + bytes > self.bytes_max
            && self.records_max == 1
            && let Some(of) = symbol.bars.get_mut(spec)
        {
            let kept = if has_bar { &mut of.bars } else { &mut of.signals };
            self.bytes -= cut(kept, 0);
        }
        if (is_new && self.count >= SERIES_MAX) || !self.has_room(bytes) {
            return;
        }
        let Some(symbol) = self.symbols.get_mut(name) else { return };
        if is_new {
            symbol.bars.insert(spec.to_owned(), OfBar::default());
            self.count += 1;
        }
        let Some(of) = symbol.bars.get_mut(spec) else { return };
        let kept = if has_bar { &mut of.bars } else { &mut of.signals };
        kept.push_back(Kept { place, encoded: encoded.into() });
        self.bytes += bytes;
        self.bytes -= cut(kept, self.records_max);
    }

    /// Returns true if a symbol is kept; adds it if there is room.
    fn has_symbol(&mut self, name: &str, partition: i32) -> bool {
        if self.symbols.contains_key(name) {
            return true;
        }
        let bytes = name.len() + NAME_BYTES;
        if self.symbols.len() >= SYMBOLS_MAX || !self.has_room(bytes) {
            return false;
        }
        self.bytes += bytes;
        self.symbols.insert(name.to_owned(), OfSymbol { partition, ..OfSymbol::default() });
        true
    }

    /// Returns true if there is room for so many bytes; halves the length of all series as long as there is none.
    fn has_room(&mut self, bytes: usize) -> bool {
        while self.bytes + bytes > self.bytes_max && self.records_max > 1 {
            self.records_max /= 2;
            for of in self.symbols.values_mut().flat_map(|symbol| symbol.bars.values_mut()) {
                for kept in [&mut of.bars, &mut of.signals] {
                    self.bytes -= cut(kept, self.records_max);
                    kept.shrink_to_fit();
                }
            }
        }
        self.bytes + bytes <= self.bytes_max
    }

    /// Returns the symbols with the most signals, at most [`SHOWN_MAX`].
    pub(super) fn symbols(&self) -> Vec<Symbol> {
        let mut most: Vec<_> = self.symbols.iter().collect();
        most.sort_by_key(|(name, of)| (std::cmp::Reverse(of.signals), *name));
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
        let candles: Vec<Candle> = of.bars.iter().filter_map(|kept| candle(&kept.encoded)).collect();
        let first = candles.first().map(|candle| candle.start.clone()).unwrap_or_default();
        let signals = of.signals.iter().filter_map(|Kept { place: (partition, offset), encoded }| {
            let signal = decode_signal(encoded).ok()?;
            Some(shown(format!("{partition}:{offset}"), &signal)).filter(|shown| shown.end >= first)
        });
        let signals = signals.collect();
        Some(Candles { symbol: symbol.to_owned(), bar: bar.to_owned(), candles, signals })
    }
}

/// Drops the oldest records beyond a number; returns their size.
fn cut(kept: &mut VecDeque<Kept>, most: usize) -> usize {
    let gone = kept.drain(..kept.len().saturating_sub(most));
    gone.map(|kept| kept.encoded.len() + RECORD_BYTES).sum()
}

/// Returns a signal as it is shown.
pub(super) fn shown(place: String, signal: &Signal<'_>) -> Shown {
    Shown {
        place,
        symbol: signal.symbol.to_string(),
        kind: match &signal.name {
            Some(name) => format!("{} {name}", signal.kind.name()),
            None => signal.kind.name().to_owned(),
        },
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

#[cfg(test)]
mod tests {
    use warptape_schemas::{decode_signal_head, encode_signal};

    use super::*;

    fn see(series: &mut Series, symbol: &str, bar: &str, offset: i64) {
        let signal = Signal {
            symbol: symbol.into(),
            kind: SignalKind::EmaCrossUp,
            bar_spec: bar.into(),
            bar_start_ns: 0,
            bar_end_ns: 1,
            source_offset: offset,
            source_index: 0,
            value: 1.5,
            threshold: 0.0,
            bar: None,
            name: None,
        };
        let mut encoded = Vec::new();
        encode_signal(&signal, &mut encoded);
        series.see((0, offset), &decode_signal_head(&encoded).expect("a signal"), &encoded);
    }

    /// Returns the size of what is kept, counted anew.
    fn size(series: &Series) -> usize {
        let of_bar = |(spec, of): (&String, &OfBar)| {
            let kept = of.bars.iter().chain(&of.signals);
            spec.len() + NAME_BYTES + kept.map(|kept| kept.encoded.len() + RECORD_BYTES).sum::<usize>()
        };
        let of_symbol = |(name, of): (&String, &OfSymbol)| {
            name.len() + NAME_BYTES + of.bars.iter().map(of_bar).sum::<usize>()
        };
        series.symbols.iter().map(of_symbol).sum()
    }

    #[test]
    fn the_newest_records_of_a_series_are_kept() {
        let mut series = Series::default();
        (0..1_000).for_each(|offset| see(&mut series, "V:A", "1s", offset));
        let signals = series.candles("V:A", "1s").expect("signals").signals;
        assert_eq!((signals.len(), &*signals[0].place), (RECORDS_MAX, "0:800"));
        assert_eq!((series.bytes, series.symbols()[0].signals), (size(&series), 1_000));
    }

    #[test]
    fn all_series_are_shortened_if_the_memory_does_not_suffice() {
        let mut series = Series { bytes_max: 200_000, ..Series::default() };
        for offset in 0..200 {
            for symbol in 0..20 {
                for bar in ["1s", "1m"] {
                    see(&mut series, &format!("V:{symbol}"), bar, offset);
                    assert!(series.bytes <= series.bytes_max);
                }
            }
        }
        assert_eq!(series.bytes, size(&series));
        assert!((12..100).contains(&series.records_max), "{}", series.records_max);
        for symbol in 0..20 {
            let signals = series.candles(&format!("V:{symbol}"), "1m").expect("signals").signals;
            assert_eq!((signals.len(), &*signals[signals.len() - 1].place), (series.records_max, "0:199"));
        }
    }

    #[test]
    fn names_without_end_and_long_records_are_bounded() {
        let mut series = Series { bytes_max: 20_000, ..Series::default() };
        for offset in 0..1_000 {
            see(&mut series, &format!("V:{offset}"), "1s", offset);
            see(&mut series, "V:A", &format!("{offset}s"), offset);
        }
        assert!(series.bytes <= series.bytes_max && series.bytes == size(&series), "{}", series.bytes);
        assert!((3..40).contains(&series.symbols.len()), "{} symbols", series.symbols.len());
        let of = series.symbols().into_iter().find(|of| of.symbol == "V:A").expect("the symbol");
        assert_eq!(of.signals, 1_000, "signals without room are counted");

        let mut series = Series::default();
        see(&mut series, "V:A", &"x".repeat(RECORD_BYTES_MAX), 0);
        assert!(series.symbols.is_empty());
        (0..SERIES_MAX + 9).for_each(|number| see(&mut series, "V:A", &format!("{number}s"), 0));
        assert_eq!(series.count, SERIES_MAX);
    }
}
