//! Windows of the indicators, in closed bars.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Longest window, in bars: the rings of a slot take 8 bytes per bar of a window, 16 for VWAP.
pub const WINDOW_MAX: u32 = 1024;

/// Widest Bollinger bands, in standard deviations.
const BOLLINGER_WIDTH_MAX: f64 = 100.0;

/// Windows of the indicators, in closed bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IndicatorParams {
    /// Simple moving average.
    pub sma: u32,
    /// The faster of the two exponential moving averages.
    pub ema_fast: u32,
    /// The slower one.
    pub ema_slow: u32,
    /// Bollinger bands.
    pub bollinger: u32,
    /// Their distance from the middle, in standard deviations.
    pub bollinger_width: f64,
    /// Relative strength index.
    pub rsi: u32,
    /// MACD's faster average.
    pub macd_fast: u32,
    /// MACD's slower average.
    pub macd_slow: u32,
    /// MACD's signal line.
    pub macd_signal: u32,
    /// Average true range.
    pub atr: u32,
    /// Volume-weighted average price.
    pub vwap: u32,
    /// Momentum.
    pub momentum: u32,
    /// Rate of change.
    pub roc: u32,
    /// Z-score.
    pub zscore: u32,
    /// Realised volatility.
    pub realised_volatility: u32,
}

impl Default for IndicatorParams {
    fn default() -> Self {
        Self {
            sma: 20,
            ema_fast: 38,
            ema_slow: 100,
            bollinger: 20,
            bollinger_width: 2.0,
            rsi: 14,
            macd_fast: 12,
            macd_slow: 26,
            macd_signal: 9,
            atr: 14,
            vwap: 20,
            momentum: 10,
            roc: 10,
            zscore: 20,
            realised_volatility: 20,
        }
    }
}

impl IndicatorParams {
    /// All mistakes, each naming its field and what is allowed.
    pub fn check(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let windows = self.windows();
        for (name, window, allowed) in &windows {
            if !allowed.contains(window) {
                mistakes.push(format!(
                    "{name}: {window}, {} to {} are allowed",
                    allowed.start(),
                    allowed.end()
                ));
            }
        }
        for (fast, slow, [fast_name, slow_name]) in [
            (self.ema_fast, self.ema_slow, ["ema_fast", "ema_slow"]),
            (self.macd_fast, self.macd_slow, ["macd_fast", "macd_slow"]),
        ] {
            if fast >= slow {
                mistakes.push(format!("{fast_name}: {fast}, must be below {slow_name}, which is {slow}"));
            }
        }
        let width = self.bollinger_width;
        if !(width > 0.0 && width <= BOLLINGER_WIDTH_MAX) {
            mistakes
                .push(format!("bollinger_width: {width}, must be above 0 and at most {BOLLINGER_WIDTH_MAX}"));
        }
        mistakes
    }

    /// Each window with its name and what is allowed.
    pub(crate) fn windows(&self) -> [(&'static str, u32, RangeInclusive<u32>); 14] {
        let several = 2..=WINDOW_MAX;
        let any = 1..=WINDOW_MAX;
        [
            ("sma", self.sma, several.clone()),
            ("ema_fast", self.ema_fast, several.clone()),
            ("ema_slow", self.ema_slow, several.clone()),
            ("bollinger", self.bollinger, several.clone()),
            ("rsi", self.rsi, several.clone()),
            ("macd_fast", self.macd_fast, several.clone()),
            ("macd_slow", self.macd_slow, several.clone()),
            ("macd_signal", self.macd_signal, several.clone()),
            ("atr", self.atr, several.clone()),
            ("vwap", self.vwap, several.clone()),
            ("momentum", self.momentum, any.clone()),
            ("roc", self.roc, any),
            ("zscore", self.zscore, several.clone()),
            ("realised_volatility", self.realised_volatility, several),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_have_no_mistakes() {
        assert_eq!(IndicatorParams::default().check(), Vec::<String>::new());
        let shortest =
            IndicatorParams { momentum: 1, roc: 1, sma: 2, ema_slow: WINDOW_MAX, ..Default::default() };
        assert_eq!(shortest.check(), Vec::<String>::new());
    }

    #[test]
    fn all_mistakes_are_named_at_once() {
        let params = IndicatorParams {
            sma: 1,
            ema_fast: 100,
            bollinger_width: f64::NAN,
            macd_slow: 1025,
            momentum: 0,
            ..Default::default()
        };
        let expected = [
            "sma: 1, 2 to 1024 are allowed",
            "macd_slow: 1025, 2 to 1024 are allowed",
            "momentum: 0, 1 to 1024 are allowed",
            "ema_fast: 100, must be below ema_slow, which is 100",
            "bollinger_width: NaN, must be above 0 and at most 100",
        ];
        assert_eq!(params.check(), expected);
    }
}
