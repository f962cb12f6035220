//! Requests about trading rules.

use serde::{Deserialize, Serialize};

use crate::wire::Wire;

/// Results of trading rules on recorded bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SweepProblem {
    /// Bars of each symbol: 1 to 10,000 symbols with 1 to 2,000,000 bars in all.
    pub symbols: Vec<SymbolBars>,
    /// Trading rules, 1 to 20,000.
    pub rules: Vec<TradingRule>,
    /// Cost of each notional traded, from 0 to 1: 0.0001 is a basis point.
    #[serde(default)]
    pub cost: f64,
}

/// Bars of a symbol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SymbolBars {
    /// Name of the symbol.
    pub symbol: String,
    /// Closing prices in order of time, from 1e-9 to 1e12.
    pub closes: Vec<f64>,
}

/// Long while the fast exponential average is above the slow one, short while it is below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EmaCross {
    /// Length of the fast average, 1 to 1,048,576 bars.
    pub fast: i32,
    /// Length of the slow average, 1 to 1,048,576 bars.
    pub slow: i32,
}

/// Long once the relative strength index falls below `low`, short once it rises above `high`. A position is kept until
/// the other one is taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RsiReversion {
    /// Length of the index, 1 to 1,048,576 bars.
    pub length: i32,
    /// Index below which the rule goes long, 0 to 100.
    pub low: f64,
    /// Index above which the rule goes short, 0 to 100.
    pub high: f64,
}

/// Long if the close is below its mean by more than `entry` deviations, short if it is above by more; flat again within
/// `exit` deviations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ZScoreReversion {
    /// Length of the window of mean and deviation, 1 to 1,048,576 bars.
    pub window: i32,
    /// Distance from the mean to enter, in standard deviations, 0 to 1,000,000.
    pub entry: f64,
    /// Distance from the mean to exit, in standard deviations, 0 to 1,000,000.
    pub exit: f64,
}

/// Long if the close is above its mean by more than `width` deviations, short if below by more; flat on the mean's
/// other side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BandBreakout {
    /// Length of the window of mean and deviation, 1 to 1,048,576 bars.
    pub window: i32,
    /// Distance from the mean to enter, in standard deviations, 0 to 1,000,000.
    pub width: f64,
}

/// A rule for being long, short or flat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum TradingRule {
    /// Long while the fast exponential average is above the slow one, short while it is below.
    EmaCross(EmaCross),
    /// Long once the relative strength index falls below `low`, short once it rises above `high`. A position is kept
    /// until the other one is taken.
    RsiReversion(RsiReversion),
    /// Long if the close is below its mean by more than `entry` deviations, short if it is above by more; flat again
    /// within `exit` deviations.
    ZScoreReversion(ZScoreReversion),
    /// Long if the close is above its mean by more than `width` deviations, short if below by more; flat on the mean's
    /// other side.
    BandBreakout(BandBreakout),
}
