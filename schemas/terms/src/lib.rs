//! Terms of contracts and kinds of signals, shared by records (`schemas`) and arithmetic (`kernels`). Each is declared
//! once, and both crates re-export it. Names in JSON are those of the schemas. Higher crates define a term's bytes in a
//! record, and its effect.
//!
//! Contracts, instruments, trading rules and results, by contrast, are declared in both crates. Those of records may
//! have any values. Those of kernels are checked, and have the layout that devices read.

use serde::{Deserialize, Serialize};

/// Right to buy (CALL) or to sell (PUT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OptionKind {
    /// The right to buy.
    #[serde(alias = "call")]
    Call,
    /// The right to sell.
    #[serde(alias = "put")]
    Put,
}

impl OptionKind {
    /// Returns 1 for a call, −1 for a put.
    pub fn sign(self) -> f64 {
        match self {
            Self::Call => 1.0,
            Self::Put => -1.0,
        }
    }
}

/// The effect of the barrier. The price rises (UP) or falls (DOWN) to it, which ends (OUT) or begins (IN) the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BarrierKind {
    /// Paid if the price never rises to the barrier.
    #[serde(alias = "up-out")]
    UpOut,
    /// Paid if the price rises to the barrier.
    #[serde(alias = "up-in")]
    UpIn,
    /// Paid if the price never falls to the barrier.
    #[serde(alias = "down-out")]
    DownOut,
    /// Paid if the price falls to the barrier.
    #[serde(alias = "down-in")]
    DownIn,
}

/// Payout of a digital option: CASH, or units of the ASSET.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DigitalPayout {
    /// Cash.
    #[serde(alias = "cash")]
    Cash,
    /// Units of the asset.
    #[serde(alias = "asset")]
    Asset,
}

/// Precision of paths: F64, or MIXED (paths in f32, sums in f64), which is faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Precision {
    /// `f64` throughout.
    #[serde(alias = "f64")]
    #[default]
    F64,
    /// Paths in `f32`, whose numbers are rounded to 24 bits; sums in `f64`.
    #[serde(alias = "mixed")]
    Mixed,
}

/// Declares kinds of signals: number, name in records, comment in the schema, words on a screen, and true if value and
/// threshold are prices.
macro_rules! signal_kinds {
    ($($variant:ident = $number:literal, $name:literal, $comment:literal, $words:literal, $is_price:literal;)+) => {
        /// The kind of a signal. Signals of one bar are emitted in the order of these kinds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum SignalKind {
            $(#[doc = $comment] $variant = $number,)+
        }

        impl SignalKind {
            /// All kinds, each at the index of its number.
            pub const ALL: &[Self] = &[$(Self::$variant),+];
            /// The variants' names, each with its comment in the schema.
            pub const DECLARED: &[(&str, &str)] = &[$((stringify!($variant), $comment)),+];

            /// Returns the kind's name in records and exports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the kind's words on a screen.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$variant => $words,)+
                }
            }

            /// True if value and threshold are prices, which have the scale of their symbol.
            pub fn is_price(self) -> bool {
                match self {
                    $(Self::$variant => $is_price,)+
                }
            }
        }
    };
}

// New kinds come last, because records and states hold the numbers.
signal_kinds! {
    Bar = 0, "BAR", "A bar closed; carries the bar and its indicators.", "bar closed", true;
    EmaCrossUp = 1, "EMA_CROSS_UP", "The fast EMA rose above the slow one (the bullish breakout of the DEBS 2022 Grand Challenge).", "EMA cross up", true;
    EmaCrossDown = 2, "EMA_CROSS_DOWN", "The fast EMA fell below the slow one.", "EMA cross down", true;
    RsiOverbought = 3, "RSI_OVERBOUGHT", "RSI rose above its upper threshold.", "RSI overbought", false;
    RsiOversold = 4, "RSI_OVERSOLD", "RSI fell below its lower threshold.", "RSI oversold", false;
    BandBreakUp = 5, "BAND_BREAK_UP", "The close rose above the upper Bollinger band.", "band break up", true;
    BandBreakDown = 6, "BAND_BREAK_DOWN", "The close fell below the lower Bollinger band.", "band break down", true;
    ZScoreHigh = 7, "Z_SCORE_HIGH", "The z-score rose above the threshold: a fall back to the mean is expected.", "z-score high", false;
    ZScoreLow = 8, "Z_SCORE_LOW", "The z-score fell below minus the threshold: a rise back to the mean is expected.", "z-score low", false;
    Alert = 9, "ALERT", "A condition of stages.alerts began to hold.", "alert", false;
    Fault = 10, "FAULT", "A function that a program registered failed: what was computed with it stays null.", "fault", false;
}

#[cfg(test)]
mod tests {
    use super::SignalKind;

    #[test]
    fn kinds_are_at_the_places_of_their_numbers() {
        for (place, kind) in SignalKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, place);
        }
    }
}
