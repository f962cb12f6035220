//! Signals: closed bars and alerts of symbols.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::cursor::Cursor;
use crate::decimal::Decimal;
use crate::error::DecodeError;
use crate::known::{self, KnownSchema};
use crate::shape::{Content, FieldShape, Member, Named, Shape, Shaped};
use crate::varint::put_long;
use crate::wire::{Flat, Wire};
pub use warptape_terms::SignalKind;

impl Shaped for SignalKind {
    const SHAPE: Shape = Shape::Named(&Named {
        name: "SignalKind",
        doc: "Kind of a signal. The signals of one bar are written in the order of these kinds.",
        content: Content::Enum { variants: Self::DECLARED, default: None },
    });
}

impl<'datum> Wire<'datum> for SignalKind {
    fn put(&self, out: &mut Vec<u8>) {
        put_long(i64::from(*self as u8), out);
    }

    fn get(cursor: &mut Cursor<'datum>) -> Result<Self, DecodeError> {
        let kind = usize::try_from(cursor.long()?).ok().and_then(|number| Self::ALL.get(number));
        kind.copied().ok_or_else(|| cursor.malformed("no such symbol of SignalKind"))
    }
}

/// A closed bar with the indicators after it. Either all of its price fields are set, or `exact` has the prices; a
/// record with some of them is refused.
#[derive(Clone, Debug, PartialEq, Flat)]
#[wire(check = Bar::check)]
pub struct Bar {
    /// Price of the bar's first trade, in units of 1e-9; null if only `exact` has it. Time bars: first by event time,
    /// ties by arrival. Other bars: first by arrival.
    pub open_e9: Option<i64>,
    /// Highest trade price of the bar, in units of 1e-9; null if only `exact` has it.
    pub high_e9: Option<i64>,
    /// Lowest trade price of the bar, in units of 1e-9; null if only `exact` has it.
    pub low_e9: Option<i64>,
    /// Price of the bar's last trade, in units of 1e-9; null if only `exact` has it. Time bars: last by event time,
    /// ties by arrival. Other bars: last by arrival.
    pub close_e9: Option<i64>,
    /// Sum of the trade sizes, in units of 1e-9. 9223372036854775807 means at least that much; `exact` has the sum
    /// then.
    pub volume_e9: i64,
    /// Number of trades in the bar.
    pub trades: i64,
    /// Best bid of the last quote before the bar's end in event time, in units of 1e-9; 0 if there is none. For count
    /// and volume bars, that quote is not later than the trade that ends the bar. Null if only `exact` has the price.
    pub bid_price_e9: Option<i64>,
    /// Best offer of the same quote, in units of 1e-9; 0 if there is none. Null if only `exact` has the price.
    pub ask_price_e9: Option<i64>,
    /// Indicator values in the order of [`INDICATORS`]; `None` until enough bars closed.
    #[wire(fields = INDICATOR_FIELDS)]
    pub indicators: [Option<f64>; INDICATOR_COUNT],
    /// Exact prices and volume of the bar if the `_e9` fields cannot hold them; null otherwise. If the scale of the
    /// symbol's prices is not nine digits, the `_e9` prices are null. Or the volume exceeds `volume_e9`.
    #[wire(since = 4, default = "null")]
    pub exact: Option<ExactBar>,
    /// Values of further indicators by name: those that are off by default and configured, and formulas. A value is missing
    /// while it is null.
    #[wire(since = 4, default = "{}")]
    pub further_indicators: BTreeMap<Cow<'static, str>, f64>,
    /// True if the bar lacks a part of its interval. It begins before the first tick that its partition could see, or
    /// was closed before its end.
    #[wire(since = 4, default = "null")]
    pub partial: Option<bool>,
    /// Sum of the sizes of trades with an aggressive buyer, in units of 1e-9; 9223372036854775807 means at least that
    /// much. Trades with an unknown aggressor count in `volume_e9` alone.
    #[wire(since = 4, default = "null")]
    pub buy_volume_e9: Option<i64>,
    /// Sum of the sizes of trades with an aggressive seller, in units of 1e-9; 9223372036854775807 means at least that
    /// much.
    #[wire(since = 4, default = "null")]
    pub sell_volume_e9: Option<i64>,
    /// Number of trades with an aggressive buyer.
    #[wire(since = 4, default = "null")]
    pub buy_trades: Option<i64>,
    /// Number of trades with an aggressive seller.
    #[wire(since = 4, default = "null")]
    pub sell_trades: Option<i64>,
    /// Size at `bid_price_e9`, in units of 1e-9; 9223372036854775807 means at least that much. 0 if the quote has no
    /// sizes; null if there is no bid.
    #[wire(since = 4, default = "null")]
    pub bid_size_e9: Option<i64>,
    /// Size at `ask_price_e9`, in units of 1e-9; 9223372036854775807 means at least that much. 0 if the quote has no
    /// sizes; null if there is no offer.
    #[wire(since = 4, default = "null")]
    pub ask_size_e9: Option<i64>,
    /// True if the bar's quote was dropped, because more later quotes arrived than are kept. The bar has no bid and no
    /// offer then.
    #[wire(since = 4, default = "null")]
    pub quote_forgotten: Option<bool>,
    /// Exact buy volume, sell volume, bid size and ask size if one of them exceeds its `_e9` field; null otherwise.
    #[wire(since = 4, default = "null")]
    pub exact_flow: Option<ExactFlow>,
}

/// Exact volumes and quote sizes of a bar, as decimal text such as 12.5; 0 if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub struct ExactFlow {
    /// Exact `buy_volume_e9`, in units of 1.
    pub buy_volume: Decimal<9>,
    /// Exact `sell_volume_e9`, in units of 1.
    pub sell_volume: Decimal<9>,
    /// Exact `bid_size_e9`, in units of 1.
    pub bid_size: Decimal<9>,
    /// Exact `ask_size_e9`, in units of 1.
    pub ask_size: Decimal<9>,
}

/// Exact prices and volume of a bar, as decimal text such as 0.00000812. A text is an optional minus sign, digits, and
/// up to 18 digits after a decimal point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub struct ExactBar {
    /// Exact `open_e9`, in units of 1.
    pub open: Decimal<18>,
    /// Exact `high_e9`, in units of 1.
    pub high: Decimal<18>,
    /// Exact `low_e9`, in units of 1.
    pub low: Decimal<18>,
    /// Exact `close_e9`, in units of 1.
    pub close: Decimal<18>,
    /// Exact `volume_e9`, in units of 1.
    pub volume: Decimal<9>,
    /// Exact `bid_price_e9`, in units of 1; 0 if there is none.
    pub bid_price: Decimal<18>,
    /// Exact `ask_price_e9`, in units of 1; 0 if there is none.
    pub ask_price: Decimal<18>,
}

impl Bar {
    /// Returns the last price.
    pub fn close(&self) -> f64 {
        match (self.close_e9, &self.exact) {
            (Some(close_e9), _) => close_e9 as f64 / 1e9,
            (None, Some(exact)) => exact.close.0 as f64 / 1e18,
            (None, None) => f64::NAN,
        }
    }

    /// Checks that a decoded bar has all of its prices.
    fn check(&self) -> Result<(), &'static str> {
        let Self { open_e9, high_e9, low_e9, close_e9, bid_price_e9, ask_price_e9, exact, .. } = self;
        let are_null = [open_e9, high_e9, low_e9, close_e9, bid_price_e9, ask_price_e9].map(Option::is_none);
        match (are_null, exact) {
            ([false, false, false, false, false, false], _)
            | ([true, true, true, true, true, true], Some(_)) => Ok(()),
            _ => Err("a bar without some of its prices"),
        }
    }
}

/// Number of indicators that have fields of their own in a bar.
pub const INDICATOR_COUNT: usize = 16;

/// Declares fields and their names. `warptape-kernels` declares the same names, so that producers of records do not
/// need kernels; a test of `warptape-stages` compares them.
macro_rules! indicators {
    ($($name:ident: $about:literal,)+) => {
        /// Names of these fields. The list is closed: later indicators are in [`Bar::further_indicators`].
        pub const INDICATORS: [&str; INDICATOR_COUNT] = [$(stringify!($name)),+];

        const INDICATOR_FIELDS: [Member; INDICATOR_COUNT] = [$(Member::Field(FieldShape {
            name: stringify!($name),
            doc: concat!($about, " Null until enough bars closed."),
            shape: <Option<f64>>::SHAPE,
            default: Some("null"),
        })),+];
    };
}

indicators! {
    sma: "Simple moving average of the closes.",
    ema_fast: "Exponential moving average of the closes, short window.",
    ema_slow: "Exponential moving average of the closes, long window.",
    bollinger_middle: "Middle Bollinger band: moving average of the closes.",
    bollinger_upper: "Upper Bollinger band: middle plus a multiple of the standard deviation.",
    bollinger_lower: "Lower Bollinger band: middle minus a multiple of the standard deviation.",
    rsi: "Relative strength index after Wilder, 0 to 100.",
    macd: "Moving average convergence/divergence: fast minus slow EMA.",
    macd_signal: "EMA of macd.",
    macd_histogram: "macd minus macd_signal.",
    atr: "Average true range after Wilder.",
    vwap: "Volume-weighted average price.",
    momentum: "Close minus the close some bars before.",
    roc: "Rate of change: momentum in percent of the earlier close.",
    zscore: "Distance of the close from its mean, in standard deviations.",
    realised_volatility: "Realised volatility of the window: root of the sum of its squared log returns, not annualised.",
}

/// A closed bar of a symbol with its indicators, or an alert that the indicators caused. Most fields are flat, so that
/// a signal is a row of a table.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct Signal<'a> {
    /// Symbol, `VENUE:TICKER`.
    pub symbol: Cow<'a, str>,
    /// Kind of signal. For `BAR`, the fields from `open_e9` on hold the bar. For other kinds, they are null and
    /// `further_indicators` is empty.
    pub kind: SignalKind,
    /// Specification of the bar as configured, such as `1s`, `5m`, `tick:100` or `volume:10`.
    pub bar_spec: Cow<'a, str>,
    /// Start of the bar, in nanoseconds since the Unix epoch. Time bars: start of the interval. Other bars: event time
    /// of the trade that arrived first.
    pub bar_start_ns: i64,
    /// End of the bar, in nanoseconds since the Unix epoch. Time bars: end of the interval, exclusive. Other bars:
    /// event time of the trade that arrived last and filled the bar. It can be before the start if trades are out of
    /// order.
    pub bar_end_ns: i64,
    /// Offset of the record that caused the signal, in the tick topic and the partition of the same number. It has the
    /// trade that filled the bar, or moved the watermark past the bar's end.
    pub source_offset: i64,
    /// Row of the causing tick within that record, from 0.
    pub source_index: i32,
    /// Value that crossed the threshold: fast EMA, RSI, close or z-score. For `BAR`: the close. For `ALERT`: the left side of
    /// the comparison, or the condition. For `FAULT`: 0. Prices are not scaled: 100.5 is 100.5.
    pub value: f64,
    /// Threshold that was crossed: slow EMA, RSI threshold, Bollinger band or z-score threshold. For `ALERT`: the right side
    /// of the comparison, or 0. For `BAR` and `FAULT`: 0.
    pub threshold: f64,
    /// Bar of a signal of kind `BAR`; `None` for other kinds.
    #[wire(flatten_nullable)]
    pub bar: Option<Bar>,
    /// Name of the alert, or of the formula or alert that failed. Null for kinds other than `ALERT` and `FAULT`.
    #[wire(since = 5, default = "null")]
    pub name: Option<Cow<'a, str>>,
}

impl Signal<'_> {
    /// Returns the first version of the schema that can represent the signal.
    pub(crate) fn schema(&self) -> KnownSchema {
        match (&self.name, &self.bar) {
            (Some(_), _) => known::SIGNAL,
            (None, Some(_)) => known::SIGNAL_4,
            (None, None) => known::SIGNAL_1,
        }
    }

    /// Returns the signal with owned texts.
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
            name,
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
            name: name.map(|name| Cow::Owned(name.into_owned())),
        }
    }
}
