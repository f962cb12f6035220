//! What indicators come out as.

/// Number of indicator columns.
pub const INDICATORS: usize = 16;

/// The columns, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the field's own; the module `indicators` gives the formulas")]
pub enum Indicator {
    Sma = 0,
    EmaFast,
    EmaSlow,
    BollingerMiddle,
    BollingerUpper,
    BollingerLower,
    Rsi,
    Macd,
    MacdSignal,
    MacdHistogram,
    Atr,
    Vwap,
    Momentum,
    Roc,
    Zscore,
    RealisedVolatility,
}

impl Indicator {
    /// All, in the order of the columns.
    pub const ALL: [Self; INDICATORS] = [
        Self::Sma,
        Self::EmaFast,
        Self::EmaSlow,
        Self::BollingerMiddle,
        Self::BollingerUpper,
        Self::BollingerLower,
        Self::Rsi,
        Self::Macd,
        Self::MacdSignal,
        Self::MacdHistogram,
        Self::Atr,
        Self::Vwap,
        Self::Momentum,
        Self::Roc,
        Self::Zscore,
        Self::RealisedVolatility,
    ];
}

/// One value per indicator and closed bar; NaN where there is none yet.
#[derive(Clone, Debug, Default)]
pub struct IndicatorColumns {
    /// By [`Indicator`], then by position of the bar in the closed bars it was computed from.
    pub values: [Vec<f64>; INDICATORS],
}

impl IndicatorColumns {
    /// Number of bars.
    pub fn len(&self) -> usize {
        self.values[0].len()
    }

    /// Whether there are no bars.
    pub fn is_empty(&self) -> bool {
        self.values[0].is_empty()
    }

    /// Value of one indicator at one bar.
    pub fn at(&self, indicator: Indicator, row: usize) -> f64 {
        self.values[indicator as usize][row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indicators_are_listed_in_column_order() {
        for (column, indicator) in Indicator::ALL.into_iter().enumerate() {
            assert_eq!(indicator as usize, column);
        }
    }
}
