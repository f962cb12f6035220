//! Terms of contracts and kinds of signals, which records (`schemas`) and arithmetic (`kernels`) have in common: each is declared once, and both
//! crates show it as their own. Names in JSON are those of the schemas; how a term lies in a record, and what comes of it, is said above.
//!
//! Contracts, instruments, trading rules and results are not here, and exist in both crates: those of requests hold whatever was
//! written, as records of a schema, and those of kernels are checked and lie as devices read them.

use serde::{Deserialize, Serialize};

/// Right to buy (CALL) or to sell (PUT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OptionKind {
    /// To buy.
    #[serde(alias = "call")]
    Call,
    /// To sell.
    #[serde(alias = "put")]
    Put,
}

impl OptionKind {
    /// 1 for a call, −1 for a put.
    pub fn sign(self) -> f64 {
        match self {
            Self::Call => 1.0,
            Self::Put => -1.0,
        }
    }
}

/// Which touch does what: the price rises (UP) or falls (DOWN) to the barrier, and the option ends (OUT) or
/// begins (IN) by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BarrierKind {
    /// Paid if the price never rises to the barrier.
    #[serde(alias = "up-out")]
    UpOut,
    /// Paid if it does.
    #[serde(alias = "up-in")]
    UpIn,
    /// Paid if the price never falls to the barrier.
    #[serde(alias = "down-out")]
    DownOut,
    /// Paid if it does.
    #[serde(alias = "down-in")]
    DownIn,
}

/// What a digital option pays: CASH, or units of the ASSET.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DigitalPayout {
    /// Cash.
    #[serde(alias = "cash")]
    Cash,
    /// Units of the asset.
    #[serde(alias = "asset")]
    Asset,
}

/// What paths are computed in: F64, or MIXED (paths in f32, sums in f64), which is faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Precision {
    /// `f64` throughout.
    #[serde(alias = "f64")]
    #[default]
    F64,
    /// Paths in `f32`, whose numbers are rounded to 24 bits, sums in `f64`.
    #[serde(alias = "mixed")]
    Mixed,
}

/// What is said of a symbol. One bar's signals are emitted in the order of these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SignalKind {
    /// A bar closed.
    Bar = 0,
    /// The fast EMA rose above the slow one.
    EmaCrossUp = 1,
    /// The fast EMA fell below the slow one.
    EmaCrossDown = 2,
    /// The RSI rose above its upper threshold.
    RsiOverbought = 3,
    /// The RSI fell below its lower threshold.
    RsiOversold = 4,
    /// The close rose above the upper Bollinger band.
    BandBreakUp = 5,
    /// The close fell below the lower Bollinger band.
    BandBreakDown = 6,
    /// The z-score rose above its threshold.
    ZScoreHigh = 7,
    /// The z-score fell below minus its threshold.
    ZScoreLow = 8,
}

impl SignalKind {
    /// Its name in records and in what is exported.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bar => "BAR",
            Self::EmaCrossUp => "EMA_CROSS_UP",
            Self::EmaCrossDown => "EMA_CROSS_DOWN",
            Self::RsiOverbought => "RSI_OVERBOUGHT",
            Self::RsiOversold => "RSI_OVERSOLD",
            Self::BandBreakUp => "BAND_BREAK_UP",
            Self::BandBreakDown => "BAND_BREAK_DOWN",
            Self::ZScoreHigh => "Z_SCORE_HIGH",
            Self::ZScoreLow => "Z_SCORE_LOW",
        }
    }
}
