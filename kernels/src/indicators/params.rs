//! Mistakes in the parameters of indicators.

use super::declaration::Parameter;
use super::table::{IndicatorParams, PARAMETERS};
use crate::ParameterMistake;

impl IndicatorParams {
    /// All mistakes, each with its field and the allowed values.
    pub fn check(&self) -> Vec<ParameterMistake> {
        let mut mistakes = Vec::new();
        for (Parameter { key, min, max, .. }, value) in PARAMETERS.iter().zip(self.values()) {
            if !(*min..=*max).contains(&value) {
                mistakes.push(ParameterMistake::new(*key, value, format!("{min} to {max} are allowed")));
            }
        }
        for (fast, slow, [fast_name, slow_name]) in [
            (self.ema_fast, self.ema_slow, ["ema_fast", "ema_slow"]),
            (self.macd_fast, self.macd_slow, ["macd_fast", "macd_slow"]),
        ] {
            if fast >= slow {
                mistakes.push(ParameterMistake::not_below(fast_name, fast, slow_name, slow));
            }
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::WINDOW_MAX;
    use super::*;

    #[test]
    fn defaults_have_no_mistakes() {
        assert_eq!(IndicatorParams::default().check(), []);
        let shortest =
            IndicatorParams { momentum: 1, roc: 1, sma: 2, ema_slow: WINDOW_MAX, ..Default::default() };
        assert_eq!(shortest.check(), []);
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
            "bollinger_width: NaN, 0.01 to 100 are allowed",
            "macd_slow: 1025, 2 to 1024 are allowed",
            "momentum: 0, 1 to 1024 are allowed",
            "ema_fast: 100, must be below ema_slow, which is 100",
        ];
        let found: Vec<String> = params.check().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }
}
