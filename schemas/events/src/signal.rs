//! Signals: what the pipeline says about symbols.

use crate::wire::Wire;

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Kinds of signal, in the order in which one bar's signals are emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Wire)]
#[repr(u8)]
pub enum SignalKind {
    /// A bar closed; carries the bar and its indicators.
    Bar = 0,
    /// The fast EMA rose above the slow one (the bullish breakout of the DEBS 2022 Grand Challenge).
    EmaCrossUp = 1,
    /// The fast EMA fell below the slow one.
    EmaCrossDown = 2,
    /// RSI rose above its upper threshold.
    RsiOverbought = 3,
    /// RSI fell below its lower threshold.
    RsiOversold = 4,
    /// The close rose above the upper Bollinger band.
    BandBreakUp = 5,
    /// The close fell below the lower Bollinger band.
    BandBreakDown = 6,
    /// The z-score rose above the threshold: a fall back to the mean is expected.
    ZScoreHigh = 7,
    /// The z-score fell below minus the threshold: a rise back to the mean is expected.
    ZScoreLow = 8,
}

/// A closed bar with the indicators after it. Indicators are `None` until enough bars closed.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// First, highest, lowest and last trade price by event time (ties: by arrival), scaled by 1e-9.
    pub open_e9: i64,
    /// Highest price.
    pub high_e9: i64,
    /// Lowest price.
    pub low_e9: i64,
    /// Last price.
    pub close_e9: i64,
    /// Sum of the sizes; 9,223,372,036,854,775,807 means at least that much.
    pub volume_e9: i64,
    /// Number of trades.
    pub trades: i64,
    /// Best bid by the last quote before the bar's end in event time; 0 if there is none.
    pub bid_price_e9: i64,
    /// Best offer by the same quote; 0 if there is none.
    pub ask_price_e9: i64,
    /// The bar where the fields that end in `_e9` cannot hold it.
    pub exact: Option<ExactBar>,
    /// Indicator values, in the order of [`INDICATORS`].
    pub indicators: [Option<f64>; INDICATOR_COUNT],
    /// Values of indicators that have no field of their own, by name. They need a version of the schema of their own, so that a
    /// signal without any is written as it was before there were such.
    pub further_indicators: BTreeMap<Cow<'static, str>, f64>,
}

/// A bar whose prices are not scaled by 1e-9, or whose volume has no 64 bits at 1e-9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactBar {
    /// Whether the prices of [`Bar`] that end in `_e9` are null in the record, and 0 here.
    pub has_other_prices: bool,
    /// First price, scaled by 1e-18, as are the other prices.
    pub open_e18: i128,
    /// Highest price.
    pub high_e18: i128,
    /// Lowest price.
    pub low_e18: i128,
    /// Last price.
    pub close_e18: i128,
    /// Sum of the sizes, scaled by 1e-9.
    pub volume_e9: i128,
    /// Bid; 0 if there is none.
    pub bid_price_e18: i128,
    /// Offer; 0 if there is none.
    pub ask_price_e18: i128,
}

impl Bar {
    /// The last price.
    pub fn close(&self) -> f64 {
        match &self.exact {
            Some(exact) if exact.has_other_prices => exact.close_e18 as f64 / 1e18,
            _ => self.close_e9 as f64 / 1e9,
        }
    }
}

/// Number of indicator values of a bar that have a field of their own.
pub const INDICATOR_COUNT: usize = 16;

/// Names of their fields. No more are added: an indicator that comes later is one of [`Bar::further_indicators`].
pub const INDICATORS: [&str; INDICATOR_COUNT] = [
    "sma",
    "ema_fast",
    "ema_slow",
    "bollinger_middle",
    "bollinger_upper",
    "bollinger_lower",
    "rsi",
    "macd",
    "macd_signal",
    "macd_histogram",
    "atr",
    "vwap",
    "momentum",
    "roc",
    "zscore",
    "realised_volatility",
];

/// One signal record.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal<'a> {
    /// `VENUE:TICKER`.
    pub symbol: Cow<'a, str>,
    /// What happened.
    pub kind: SignalKind,
    /// Bar specification as configured: `1s`, `5m`, `tick:100`, `volume:10`.
    pub bar_spec: Cow<'a, str>,
    /// Start of the bar: of its interval for time bars, event time of its first trade for others, ns since the epoch.
    pub bar_start_ns: i64,
    /// End of the bar: end (exclusive) of its interval for time bars, event time of its last trade for others.
    pub bar_end_ns: i64,
    /// Offset of the tick record that caused the signal: the trade that filled the bar, or the tick that moved the
    /// watermark past its end.
    pub source_offset: i64,
    /// Row of that tick within its record.
    pub source_index: i32,
    /// The value that crossed (fast EMA, RSI, close, z-score); the close for `Bar`.
    pub value: f64,
    /// What it crossed (slow EMA, threshold, band); 0 for `Bar`.
    pub threshold: f64,
    /// The bar, for `Bar`.
    pub bar: Option<Bar>,
}

impl Signal<'_> {
    /// The same with its own texts.
    pub fn into_owned(self) -> Signal<'static> {
        let Self {
            symbol,
            kind,
            bar_spec,
            bar_start_ns,
            bar_end_ns,
            source_offset,
            source_index,
            value,
            threshold,
            bar,
        } = self;
        Signal {
            symbol: Cow::Owned(symbol.into_owned()),
            kind,
            bar_spec: Cow::Owned(bar_spec.into_owned()),
            bar_start_ns,
            bar_end_ns,
            source_offset,
            source_index,
            value,
            threshold,
            bar,
        }
    }
}
