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
        doc: "What happened. One bar's signals are emitted in the order of these kinds.",
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

/// A closed bar with the indicators after it. It has all its prices, or `exact` has them; a record with some of them is
/// refused.
#[derive(Clone, Debug, PartialEq, Flat)]
#[wire(check = Bar::check)]
pub struct Bar {
    /// First trade price of the bar, scaled by 1e-9: by event time (ties: by arrival) in time bars, by arrival in bars of count and volume.
    pub open_e9: Option<i64>,
    /// Highest trade price of the bar, scaled by 1e-9.
    pub high_e9: Option<i64>,
    /// Lowest trade price of the bar, scaled by 1e-9.
    pub low_e9: Option<i64>,
    /// Last trade price of the bar, scaled by 1e-9: by event time (ties: by arrival) in time bars, by arrival in bars of count and volume.
    pub close_e9: Option<i64>,
    /// Sum of the trade sizes, scaled by 1e-9; 9223372036854775807 means at least that much.
    pub volume_e9: i64,
    /// Number of trades in the bar.
    pub trades: i64,
    /// Best bid by the last quote before the bar's end in event time, scaled by 1e-9; 0 if there is none. Of count and volume bars: not after
    /// the trade that ends the bar.
    pub bid_price_e9: Option<i64>,
    /// Best offer by the same quote, scaled by 1e-9; 0 if there is none.
    pub ask_price_e9: Option<i64>,
    /// Indicator values in the order of [`INDICATORS`]; `None` until enough bars closed.
    #[wire(fields = INDICATOR_FIELDS)]
    pub indicators: [Option<f64>; INDICATOR_COUNT],
    /// The bar where the fields that end in `_e9` cannot hold it: its symbol's prices have another scale than nine digits behind the decimal
    /// point, and the prices that end in `_e9` are null; or its volume is more than `volume_e9` says. Null for all others.
    #[wire(since = 4, default = "null")]
    pub exact: Option<ExactBar>,
    /// Values of the indicators that are off by default, by name, where the configuration asks for them and enough bars closed.
    #[wire(since = 4, default = "{}")]
    pub further_indicators: BTreeMap<Cow<'static, str>, f64>,
    /// Whether the bar lacks some of its interval: it begins before the first tick that its partition could see, or it was closed before its
    /// end.
    #[wire(since = 4, default = "null")]
    pub partial: Option<bool>,
    /// Sum of the sizes of trades with an aggressive buyer, scaled by 1e-9; 9223372036854775807 means at least that much. Trades whose aggressor
    /// is not known count in `volume_e9` alone.
    #[wire(since = 4, default = "null")]
    pub buy_volume_e9: Option<i64>,
    /// Sum of the sizes of trades with an aggressive seller, likewise.
    #[wire(since = 4, default = "null")]
    pub sell_volume_e9: Option<i64>,
    /// Number of trades with an aggressive buyer.
    #[wire(since = 4, default = "null")]
    pub buy_trades: Option<i64>,
    /// Number of trades with an aggressive seller.
    #[wire(since = 4, default = "null")]
    pub sell_trades: Option<i64>,
    /// Size at `bid_price_e9`, scaled by 1e-9, as `volume_e9`; 0 if the quote tells no sizes, null if there is no bid.
    #[wire(since = 4, default = "null")]
    pub bid_size_e9: Option<i64>,
    /// Size at `ask_price_e9`, likewise.
    #[wire(since = 4, default = "null")]
    pub ask_size_e9: Option<i64>,
    /// Whether the bar's quote is kept no more, because more quotes came after it than are kept: then there is no bid and no ask.
    #[wire(since = 4, default = "null")]
    pub quote_forgotten: Option<bool>,
    /// Buy volume, sell volume and sizes of bid and ask exactly, where one of these four is more than its field says; null otherwise.
    #[wire(since = 4, default = "null")]
    pub exact_flow: Option<ExactFlow>,
}

/// Volumes and sizes that are no 64-bit numbers of 1e-9, as decimal text; 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub struct ExactFlow {
    /// As buy_volume_e9, exactly.
    pub buy_volume: Decimal<9>,
    /// As sell_volume_e9, exactly.
    pub sell_volume: Decimal<9>,
    /// As bid_size_e9, exactly.
    pub bid_size: Decimal<9>,
    /// As ask_size_e9, exactly.
    pub ask_size: Decimal<9>,
}

/// A bar with numbers that are not 64-bit numbers of 1e-9, as decimal text: an optional minus sign, digits, and behind a point up to 18 more;
/// 0.00000812.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub struct ExactBar {
    /// As open_e9, exactly.
    pub open: Decimal<18>,
    /// As high_e9, exactly.
    pub high: Decimal<18>,
    /// As low_e9, exactly.
    pub low: Decimal<18>,
    /// As close_e9, exactly.
    pub close: Decimal<18>,
    /// As volume_e9, exactly.
    pub volume: Decimal<9>,
    /// As bid_price_e9, exactly.
    pub bid_price: Decimal<18>,
    /// As ask_price_e9, exactly.
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

    /// Checks that a bar that was read has all of its prices.
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

/// Number of indicator values of a bar with a field of their own.
pub const INDICATOR_COUNT: usize = 16;

/// Declares fields and their names. `warptape-kernels` declares the same names, and a test of `warptape-stages`
/// compares them, so that producers of records need no kernels.
macro_rules! indicators {
    ($($name:ident: $about:literal,)+) => {
        /// Names of their fields. The list is closed: later indicators are in [`Bar::further_indicators`].
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

/// What the pipeline says about a symbol: a bar that closed with its indicators, or something the indicators show. Flat, so that a row of it is
/// a row of a table.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct Signal<'a> {
    /// `VENUE:TICKER`.
    pub symbol: Cow<'a, str>,
    /// What happened. The fields from `open_e9` on are set for `BAR` and null for every other kind.
    pub kind: SignalKind,
    /// Bar specification as configured: `1s`, `5m`, `tick:100`, `volume:10`.
    pub bar_spec: Cow<'a, str>,
    /// Start of the bar in nanoseconds since the epoch: start of its interval for time bars, event time of the trade that arrived first for
    /// others.
    pub bar_start_ns: i64,
    /// End of the bar in nanoseconds since the epoch: end (exclusive) of its interval for time bars, event time of the trade that arrived last,
    /// and filled it, for others: where trades are out of order, that may be before its start.
    pub bar_end_ns: i64,
    /// Offset, in the tick topic and the partition of the same number, of the record that caused the signal: the trade that filled the bar, or
    /// the tick that moved the watermark past its end.
    pub source_offset: i64,
    /// Row of that tick within its record, from 0.
    pub source_index: i32,
    /// What crossed: fast EMA, RSI, close or z-score; the close for `BAR`.
    pub value: f64,
    /// What it crossed: slow EMA, threshold or band; 0 for `BAR`.
    pub threshold: f64,
    /// The bar of a signal of kind `BAR`.
    #[wire(flatten_nullable)]
    pub bar: Option<Bar>,
}

impl Signal<'_> {
    /// Returns the first version of the schema that can hold it.
    pub(crate) fn schema(&self) -> KnownSchema {
        if self.bar.is_some() { known::SIGNAL } else { known::SIGNAL_1 }
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
