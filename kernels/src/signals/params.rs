//! Thresholds of the signals.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::ParameterMistake;

/// Thresholds of the signals: `SignalParams` of `signals.cu`. A later threshold must be 0 by default, which means off,
/// and is then left out of JSON. Journals contain this struct, and replays use it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SignalParams {
    /// RSI above this is overbought.
    pub rsi_upper: f64,
    /// RSI below this is oversold.
    pub rsi_lower: f64,
    /// Z-scores above this are high; z-scores below its negative are low.
    pub zscore_threshold: f64,
}

impl Default for SignalParams {
    fn default() -> Self {
        // The threshold differs from the width of the Bollinger bands, whose window equals the z-score's. Otherwise
        // each break of a band would be a z-score signal as well.
        Self { rsi_upper: 70.0, rsi_lower: 30.0, zscore_threshold: 3.0 }
    }
}

impl SignalParams {
    /// Number of relations in states: the first four, and further ones up to the last one that is on.
    pub(super) fn relations(&self) -> usize {
        4
    }

    /// All mistakes, each with its field and the allowed values.
    pub fn check(&self) -> Vec<ParameterMistake> {
        let Self { rsi_upper, rsi_lower, zscore_threshold } = *self;
        let mut mistakes = Vec::new();
        for (name, level) in [("rsi_upper", rsi_upper), ("rsi_lower", rsi_lower)] {
            if !(0.0..=100.0).contains(&level) {
                mistakes.push(ParameterMistake::new(name, level, "0 to 100 are allowed"));
            }
        }
        if rsi_lower >= rsi_upper {
            mistakes.push(ParameterMistake::not_below("rsi_lower", rsi_lower, "rsi_upper", rsi_upper));
        }
        if !(zscore_threshold > 0.0 && zscore_threshold.is_finite()) {
            mistakes.push(ParameterMistake::new("zscore_threshold", zscore_threshold, "must be above 0"));
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndicatorParams;

    #[test]
    fn no_default_alert_says_what_another_says() {
        let (signals, indicators) = (SignalParams::default(), IndicatorParams::default());
        let z_score = (indicators.zscore, signals.zscore_threshold);
        assert_ne!(z_score, (indicators.bollinger, indicators.bollinger_width));
    }

    #[test]
    fn all_mistakes_are_named_at_once() {
        assert_eq!(SignalParams::default().check(), []);
        let params = SignalParams { rsi_upper: 30.0, rsi_lower: 70.0, zscore_threshold: 0.0 };
        let expected =
            ["rsi_lower: 70, must be below rsi_upper, which is 30", "zscore_threshold: 0, must be above 0"];
        let found: Vec<String> = params.check().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
        let params = SignalParams { rsi_upper: f64::NAN, rsi_lower: -1.0, zscore_threshold: f64::INFINITY };
        assert_eq!(params.check().len(), 3);
    }
}
