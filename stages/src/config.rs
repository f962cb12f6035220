//! The configuration that outputs depend on: recorded in the journal, so that a replay runs with the same.

use serde::{Deserialize, Serialize};
use warptape_events::Prices;
use warptape_kernels::{BarSpec, IndicatorParams, SignalParams};
use xxhash_rust::xxh3::xxh3_64;

use crate::MarketConfig;

/// Which of a symbol's quotes a bar has, and which of its prices the market takes for the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuoteOrder {
    /// The last to arrive: the rule of journals that record none, and only for running them again.
    #[default]
    Arrival,
    /// The last by event time, and by arrival among equals; of a bar, of those before its end.
    EventTime,
}

impl QuoteOrder {
    fn is_arrival(&self) -> bool {
        *self == Self::Arrival
    }
}

/// Which prices and sizes there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Numbers {
    /// Positive ones that have 64 bits at 1e-9, and volumes that saturate there: the rule of journals that record none, and only for
    /// running them again.
    #[default]
    Positive,
    /// Prices of either sign, and any scale; volumes that are exact.
    Exact,
}

impl Numbers {
    fn are_positive(&self) -> bool {
        *self == Self::Positive
    }

    /// Which prices a decoder of ticks is to take.
    pub fn prices(self) -> Prices {
        match self {
            Self::Positive => Prices::Positive,
            Self::Exact => Prices::default(),
        }
    }
}

/// Everything besides the log that the outputs are a function of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Bars to fold ticks into.
    pub bars: Vec<BarSpec>,
    /// How far behind the greatest event time of its partition a tick may be, in nanoseconds.
    pub allowed_lateness_ns: i64,
    /// Symbol groups per partition: the units of placement.
    pub groups_per_partition: u32,
    /// Windows of the indicators, in closed bars.
    pub indicators: IndicatorParams,
    /// Thresholds of the signals.
    pub signals: SignalParams,
    /// What risk requests find of the market.
    #[serde(default, skip_serializing_if = "MarketConfig::is_default")]
    pub market: MarketConfig,
    /// Which quotes and prices count as the newest.
    #[serde(default, skip_serializing_if = "QuoteOrder::is_arrival")]
    pub quotes: QuoteOrder,
    /// Which prices and sizes there are.
    #[serde(default, skip_serializing_if = "Numbers::are_positive")]
    pub numbers: Numbers,
    /// How far ahead of its partition's greatest event time a tick may be, in nanoseconds; journals that record none allow anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub future_max_ns: Option<i64>,
    /// How far ahead of both its partition's greatest event time and the time at which its record was written a tick may be, in
    /// nanoseconds; where journals record none, it does not matter when a record was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_skew_max_ns: Option<i64>,
}

impl StageConfig {
    /// All mistakes, each naming its field and what is allowed.
    pub fn check(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if self.bars.is_empty() || self.bars.len() > 16 {
            mistakes.push(format!("bars: {} specifications given, 1 to 16 are allowed", self.bars.len()));
        }
        for (index, spec) in self.bars.iter().enumerate() {
            if self.bars[..index].contains(spec) {
                mistakes.push(format!("bars: {spec} is given twice"));
            }
            if let Err(error) = spec.check(self.allowed_lateness_ns) {
                mistakes.push(format!("bars: {error}"));
            }
        }
        if self.allowed_lateness_ns < 0 {
            mistakes.push(format!("allowed_lateness: {} ns, must not be negative", self.allowed_lateness_ns));
        }
        if self.future_max_ns.is_some_and(|future_max_ns| future_max_ns < 1) {
            mistakes.push("future_max: must be positive".to_owned());
        }
        if self.clock_skew_max_ns.is_some_and(|clock_skew_max_ns| clock_skew_max_ns < 1) {
            mistakes.push("clock_skew_max: must be positive".to_owned());
        }
        if self.clock_skew_max_ns.is_some() && self.future_max_ns.is_none() {
            mistakes.push("clock_skew_max: needs future_max".to_owned());
        }
        if !(1..=4096).contains(&self.groups_per_partition) {
            mistakes
                .push(format!("groups_per_partition: {}, 1 to 4096 are allowed", self.groups_per_partition));
        }
        mistakes.extend(self.indicators.check().into_iter().map(|mistake| format!("indicators.{mistake}")));
        mistakes.extend(self.signals.check().into_iter().map(|mistake| format!("signals.{mistake}")));
        mistakes.extend(self.market.check().into_iter().map(|mistake| format!("market.{mistake}")));
        mistakes
    }

    /// The configuration as JSON, as recorded in the journal.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a struct of numbers and strings has a JSON form")
    }

    /// Reads what [`StageConfig::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Identifies the configuration in snapshots.
    pub fn fingerprint(&self) -> u64 {
        xxh3_64(self.to_json().as_bytes())
    }

    /// Intervals of the time bars, in nanoseconds.
    pub(crate) fn intervals_ns(&self) -> impl Iterator<Item = i64> + '_ {
        self.bars.iter().filter_map(|spec| match spec {
            BarSpec::Time { interval_ns } => Some(*interval_ns),
            BarSpec::Ticks { .. } | BarSpec::Volume { .. } => None,
        })
    }
}
