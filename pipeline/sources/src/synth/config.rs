//! Settings of the synthetic market and their ranges.

use std::ops::RangeInclusive;

use super::instrument::SYMBOLS_MAX;
use crate::SourceError;

/// 2024-08-08T00:00:00Z, the start of the day of the recordings.
const START_TIME_NS: i64 = 1_723_075_200_000_000_000;

/// Settings of the synthetic market.
#[derive(Clone, Debug, PartialEq)]
pub struct SynthConfig {
    /// Number of symbols, `SYNTH:AAAA`, `SYNTH:AAAB`, …; the first is the most active. 1 to 456,976.
    pub symbols: u32,
    /// Number of ticks; `None` for a market that never closes.
    pub ticks: Option<u64>,
    /// Seed of the market. The same seed and settings make the same ticks.
    pub seed: u64,
    /// Event time at which the market starts; positive.
    pub start_time_ns: i64,
    /// Mean number of ticks of all symbols per second of event time, averaged over the day. The U-shape multiplies it
    /// by 1.8 at midnight UTC and by 0.6 at noon. With the default, 2 million ticks from midnight on take about 23
    /// minutes of event time.
    pub events_per_second: f64,
    /// Percentage of trades among ticks; the rest are quotes. 0 to 100.
    pub trade_percent: f64,
    /// Percentage of ticks that arrive up to 500 ms after their turn. 0 to 100.
    pub out_of_order_percent: f64,
    /// Percentage of ticks that arrive 6 to 20 s after their turn; together with those out of order 0 to 100.
    pub late_percent: f64,
    /// Inequality of symbols: the activity of the n-th symbol is proportional to 1/nˣ. 0 (equal) to 4.
    pub zipf_exponent: f64,
}

impl Default for SynthConfig {
    fn default() -> SynthConfig {
        SynthConfig {
            symbols: 1_000,
            ticks: None,
            seed: 1,
            start_time_ns: START_TIME_NS,
            events_per_second: 800.0,
            trade_percent: 25.0,
            out_of_order_percent: 0.5,
            late_percent: 0.05,
            zipf_exponent: 1.0,
        }
    }
}

impl SynthConfig {
    /// Checks that every setting is in its range.
    pub(super) fn check(&self) -> Result<(), SourceError> {
        let refused =
            |key, found: String, allowed: String| Err(SourceError::SynthConfig { key, found, allowed });
        if !(1..=SYMBOLS_MAX).contains(&self.symbols) {
            return refused("symbols", self.symbols.to_string(), format!("1 to {SYMBOLS_MAX}"));
        }
        if self.start_time_ns <= 0 {
            return refused("start_time_ns", self.start_time_ns.to_string(), "a time after 1970".to_owned());
        }
        let ranges: [(&str, f64, RangeInclusive<f64>); 5] = [
            ("events_per_second", self.events_per_second, 1e-3..=1e8),
            ("trade_percent", self.trade_percent, 0.0..=100.0),
            ("out_of_order_percent", self.out_of_order_percent, 0.0..=100.0),
            ("late_percent", self.late_percent, 0.0..=100.0 - self.out_of_order_percent),
            ("zipf_exponent", self.zipf_exponent, 0.0..=4.0),
        ];
        for (key, found, allowed) in ranges {
            if !allowed.contains(&found) {
                return refused(key, found.to_string(), format!("{} to {}", allowed.start(), allowed.end()));
            }
        }
        Ok(())
    }
}
