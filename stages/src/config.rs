//! The configuration that outputs depend on: recorded in the journal, so that a replay runs with the same.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use warptape_events::Prices;
use warptape_kernels::{BarSpec, IndicatorParams, ParameterMistake, Rules, SignalParams};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Lateness, MarketConfig};

/// Which of a symbol's quotes a bar has, and which of its prices the market takes for the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuoteOrder {
    /// The one that arrived last. Journals that record no rule were written under this one, which is used only to run them again.
    #[default]
    Arrival,
    /// The one with the greatest event time, and among equals the one that arrived last; for a bar, only quotes before its end count.
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
    /// Positive numbers that have 64 bits at 1e-9, and volumes that saturate there. Journals that record no rule were written under this
    /// one, which is used only to run them again.
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

/// In which unit the times of foreign schemas are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnits {
    /// As nanoseconds, whatever the schema says of them: a nullable `timestamp-millis` came out in 1970. Journals that record no rule were
    /// written under this one, which is used only to run them again.
    #[default]
    AsWritten,
    /// As what the schema says: one of another unit is refused.
    Nanoseconds,
}

impl TimeUnits {
    fn are_as_written(&self) -> bool {
        *self == Self::AsWritten
    }

    /// Whether a decoder of ticks is to look at units.
    pub fn have_units(self) -> bool {
        self == Self::Nanoseconds
    }
}

/// The cost of a bad tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejects {
    /// The record that it is in, and records that are too far ahead are counted until they are followed. Journals that record no rule were
    /// written under this one, which is used only to run them again.
    #[default]
    Records,
    /// Itself, and symbols vote on jumps.
    Rows,
}

impl Rejects {
    fn are_records(&self) -> bool {
        *self == Self::Records
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
    /// The same of venues that have another, in nanoseconds. A venue is what symbols have before the colon.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lateness_by_venue_ns: BTreeMap<String, i64>,
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
    /// In which unit times are taken.
    #[serde(default, skip_serializing_if = "TimeUnits::are_as_written")]
    pub times: TimeUnits,
    /// How far ahead of its partition's greatest event time a tick may be, in nanoseconds; journals that record none allow anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub future_max_ns: Option<i64>,
    /// How far ahead of both its partition's greatest event time and the time at which its record was written a tick may be, in
    /// nanoseconds; where journals record none, it does not matter when a record was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_skew_max_ns: Option<i64>,
    /// The cost of a bad tick.
    #[serde(default, skip_serializing_if = "Rejects::are_records")]
    pub rejects: Rejects,
    /// The most symbols that a partition may have; journals that record none allow any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols_max: Option<u32>,
    /// The rules of bars, indicators and alerts.
    #[serde(default, skip_serializing_if = "Rules::are_first")]
    pub rules: Rules,
}

impl StageConfig {
    /// All mistakes, each naming its field and what is allowed.
    pub fn check(&self) -> Vec<ParameterMistake> {
        let mut mistakes = Vec::new();
        let mut wrong = |field: &str, found: &dyn fmt::Display, allowed: &str| {
            mistakes.push(ParameterMistake::new(field, found, allowed));
        };
        let lateness = Lateness::of(self);
        if self.bars.is_empty() || self.bars.len() > 16 {
            wrong("bars", &format!("{} specifications", self.bars.len()), "1 to 16 are allowed");
        }
        for (index, spec) in self.bars.iter().enumerate() {
            if self.bars[..index].contains(spec) {
                wrong("bars", spec, &format!("{spec} is given twice, and allowed once"));
            }
            if let Err(error) = spec.check(lateness.max_ns()) {
                wrong("bars", spec, &error.to_string());
            }
        }
        if self.allowed_lateness_ns < 0 {
            wrong("allowed_lateness_ns", &self.allowed_lateness_ns, "must not be negative");
        }
        for (venue, lateness_ns) in
            self.lateness_by_venue_ns.iter().filter(|(_, lateness_ns)| **lateness_ns < 0)
        {
            wrong("lateness_by_venue_ns", &format!("{lateness_ns} of {venue}"), "must not be negative");
        }
        if lateness.classes() > self.groups_per_partition {
            let found = format!("{} latenesses", lateness.classes());
            wrong(
                "lateness_by_venue_ns",
                &found,
                "each needs a group of its own: raise groups_per_partition",
            );
        }
        if !self.lateness_by_venue_ns.is_empty() && self.rejects.are_records() {
            wrong("lateness_by_venue_ns", &"venues", "needs rejects to be rows");
        }
        let limits = [("future_max_ns", self.future_max_ns), ("clock_skew_max_ns", self.clock_skew_max_ns)];
        for (field, limit_ns) in limits {
            if let Some(limit_ns) = limit_ns.filter(|&limit_ns| limit_ns < 1) {
                wrong(field, &limit_ns, "must be positive");
            }
        }
        if let (Some(clock_skew_max_ns), None) = (self.clock_skew_max_ns, self.future_max_ns) {
            wrong("clock_skew_max_ns", &clock_skew_max_ns, "needs future_max_ns");
        }
        if let Some(symbols_max) = self.symbols_max {
            if symbols_max < 1 {
                wrong("symbols_max", &symbols_max, "must be positive");
            }
            if self.rejects.are_records() {
                wrong("symbols_max", &symbols_max, "needs rejects to be rows");
            }
        }
        if !(1..=4096).contains(&self.groups_per_partition) {
            wrong("groups_per_partition", &self.groups_per_partition, "1 to 4096 are allowed");
        }
        let within = |field: &'static str| move |mistake: ParameterMistake| mistake.within(field);
        mistakes.extend(self.indicators.check().into_iter().map(within("indicators")));
        mistakes.extend(self.signals.check().into_iter().map(within("signals")));
        mistakes.extend(self.market.check().into_iter().map(within("market")));
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

    /// Whether a bad tick costs itself alone.
    pub fn rejects_rows(&self) -> bool {
        self.rejects == Rejects::Rows
    }

    /// Intervals of the time bars, in nanoseconds.
    pub(crate) fn intervals_ns(&self) -> impl Iterator<Item = i64> + '_ {
        self.bars.iter().filter_map(|spec| match spec {
            BarSpec::Time { interval_ns } => Some(*interval_ns),
            BarSpec::Ticks { .. } | BarSpec::Volume { .. } => None,
        })
    }
}
