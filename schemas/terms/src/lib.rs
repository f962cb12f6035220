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

/// Declares kinds of signals: number, name in records, comment in the schema, words on a screen, and whether value and threshold are prices.
macro_rules! signal_kinds {
    ($($variant:ident = $number:literal, $name:literal, $comment:literal, $words:literal, $is_price:literal;)+) => {
        /// What is said of a symbol. One bar's signals are emitted in the order of these kinds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum SignalKind {
            $(#[doc = $comment] $variant = $number,)+
        }

        impl SignalKind {
            /// All kinds, each at the place of its number.
            pub const ALL: &[Self] = &[$(Self::$variant),+];
            /// The variants' names, each with its comment in the schema.
            pub const DECLARED: &[(&str, &str)] = &[$((stringify!($variant), $comment)),+];

            /// Its name in records and in what is exported.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Its words on a screen.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$variant => $words,)+
                }
            }

            /// Whether its value and threshold are prices, which have the scale of their symbol.
            pub fn is_price(self) -> bool {
                match self {
                    $(Self::$variant => $is_price,)+
                }
            }
        }
    };
}

// New kinds come last: records and states have the numbers.
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
