//! Questions about trading rules.

use serde::{Deserialize, Serialize};

use crate::wire::Wire;

/// What trading rules would have made of recorded bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SweepProblem {
    /// Bars by symbol.
    pub symbols: Vec<SymbolBars>,
    /// 1 to 20,000 rules.
    pub rules: Vec<TradingRule>,
    /// Paid for each notional traded: 0.0001 is a basis point.
    #[serde(default)]
    pub cost: f64,
}

/// Bars of a symbol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct SymbolBars {
    /// Its name.
    pub symbol: String,
    /// Closes in order, from 1e-9 to 1e12.
    pub closes: Vec<f64>,
}

/// Long while the fast exponential average is above the slow one, short while below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct EmaCross {
    /// Bars.
    pub fast: i32,
    /// Bars.
    pub slow: i32,
}

/// Long once the relative strength index falls below low, short once it rises above high.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct RsiReversion {
    /// Bars.
    pub length: i32,
    /// 0 to 100.
    pub low: f64,
    /// 0 to 100.
    pub high: f64,
}

/// Long below the mean by more than entry deviations, short above; flat within exit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct ZScoreReversion {
    /// Bars.
    pub window: i32,
    /// Deviations.
    pub entry: f64,
    /// Deviations.
    pub exit: f64,
}

/// Long above the mean by more than width deviations, short below; flat on the other side of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct BandBreakout {
    /// Bars.
    pub window: i32,
    /// Deviations.
    pub width: f64,
}

/// The rule for being long, short or flat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum TradingRule {
    /// Long while the fast exponential average is above the slow one, short while below.
    EmaCross(EmaCross),
    /// Long once the relative strength index falls below low, short once it rises above high.
    RsiReversion(RsiReversion),
    /// Long below the mean by more than entry deviations, short above; flat within exit.
    ZScoreReversion(ZScoreReversion),
    /// Long above the mean by more than width deviations, short below; flat on the other side of the mean.
    BandBreakout(BandBreakout),
}
