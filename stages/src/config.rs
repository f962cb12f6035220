//! The configuration on which outputs depend. The journal records it, so that a replay runs under the same.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use warptape_kernels::{BarSpec, IndicatorParams, ParameterMistake, SignalParams};
use xxhash_rust::xxh3::xxh3_64;

use crate::formulas::Program;
use crate::{Lateness, MarketConfig};

/// Choice of the quote of a bar, and of the newest price of the market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuoteOrder {
    /// The quote or price with the greatest event time, and among equals the last arrival. For a bar, only quotes
    /// before its end count.
    EventTime,
}

/// Range of prices and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Numbers {
    /// Prices of either sign and of any scale, and exact volumes.
    Exact,
}

/// Unit of the times of foreign schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnits {
    /// The unit of the schema, which must be nanoseconds: another one is refused.
    Nanoseconds,
}

/// The cost of a bad tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejects {
    /// The tick itself; symbols vote on jumps.
    Rows,
}

/// The rules of bars, indicators and alerts, by number. A number keeps its meaning, so that logs are rerun to the bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Rules {
    /// Closes on a line are found by whole numbers ([`warptape_kernels::Indicator`]). Logarithms of returns have the
    /// exact difference of two prices. Bars have the sides of trades and the sizes of quotes; a side without a size is
    /// absent.
    Second = 2,
}

impl Rules {
    /// The newest rules.
    pub const NEWEST: Self = Self::Second;
}

impl TryFrom<u8> for Rules {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            2 => Ok(Self::Second),
            _ => Err(format!("rules {number} are not known: this software has rules {}", Self::NEWEST as u8)),
        }
    }
}

impl From<Rules> for u8 {
    fn from(rules: Rules) -> u8 {
        rules as u8
    }
}

/// All inputs of the outputs besides the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Bars to fold ticks into.
    pub bars: Vec<BarSpec>,
    /// Time by which a tick may be behind the greatest event time of its partition, in nanoseconds.
    pub allowed_lateness_ns: i64,
    /// Venues with a lateness of their own, in nanoseconds. The venue is the part of a symbol before the colon.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lateness_by_venue_ns: BTreeMap<String, i64>,
    /// Symbol groups per partition: the units of placement.
    pub groups_per_partition: u32,
    /// Windows of the indicators, in closed bars.
    pub indicators: IndicatorParams,
    /// Thresholds of the signals.
    pub signals: SignalParams,
    /// The market data of risk requests.
    #[serde(default, skip_serializing_if = "MarketConfig::is_default")]
    pub market: MarketConfig,
    /// Choice of the newest quotes and prices.
    pub quotes: QuoteOrder,
    /// Range of prices and sizes.
    pub numbers: Numbers,
    /// Unit of times.
    pub times: TimeUnits,
    /// Lead over its partition's greatest event time that a tick may have, in nanoseconds.
    pub future_max_ns: i64,
    /// Lead over both its partition's greatest event time and the writing time of its record that a tick may have, in
    /// nanoseconds.
    pub clock_skew_max_ns: i64,
    /// The cost of a bad tick.
    pub rejects: Rejects,
    /// Greatest number of symbols of a partition.
    pub symbols_max: u32,
    /// The rules of bars, indicators and alerts.
    pub rules: Rules,
    /// Indicators by expressions, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub formulas: BTreeMap<String, String>,
    /// Conditions of alerts by expressions, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub alerts: BTreeMap<String, String>,
    /// Versions of the functions in them that the program itself registered, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, u32>,
}

impl StageConfig {
    /// A configuration with the default windows and thresholds, and without limits on event times and symbols.
    pub fn unlimited(bars: Vec<BarSpec>, allowed_lateness_ns: i64, groups_per_partition: u32) -> Self {
        Self {
            bars,
            allowed_lateness_ns,
            lateness_by_venue_ns: BTreeMap::new(),
            groups_per_partition,
            indicators: IndicatorParams::default(),
            signals: SignalParams::default(),
            market: MarketConfig::default(),
            quotes: QuoteOrder::EventTime,
            numbers: Numbers::Exact,
            times: TimeUnits::Nanoseconds,
            future_max_ns: i64::MAX,
            clock_skew_max_ns: i64::MAX,
            rejects: Rejects::Rows,
            symbols_max: u32::MAX,
            rules: Rules::NEWEST,
            formulas: BTreeMap::new(),
            alerts: BTreeMap::new(),
            functions: BTreeMap::new(),
        }
    }

    /// Mistakes of formulas and alerts that recorded configurations may have: names that mean something else, and
    /// indicators that are off.
    pub fn check_names(&self) -> Vec<ParameterMistake> {
        Program::check_names(self).into_iter().chain(Program::check_inputs(self)).collect()
    }

    /// All mistakes, each with its field and the allowed values.
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
        let limits = [("future_max_ns", self.future_max_ns), ("clock_skew_max_ns", self.clock_skew_max_ns)];
        for (field, limit_ns) in limits {
            if limit_ns < 1 {
                wrong(field, &limit_ns, "must be positive");
            }
        }
        if self.symbols_max < 1 {
            wrong("symbols_max", &self.symbols_max, "must be positive");
        }
        if !(1..=4096).contains(&self.groups_per_partition) {
            wrong("groups_per_partition", &self.groups_per_partition, "1 to 4096 are allowed");
        }
        let within = |field: &'static str| move |mistake: ParameterMistake| mistake.within(field);
        mistakes.extend(self.indicators.check().into_iter().map(within("indicators")));
        mistakes.extend(self.signals.check().into_iter().map(within("signals")));
        mistakes.extend(self.market.check().into_iter().map(within("market")));
        mistakes.extend(Program::check(self));
        mistakes
    }

    /// The configuration as JSON, as recorded in the journal.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a struct of numbers and strings has a JSON form")
    }

    /// Reads the JSON of [`StageConfig::to_json`].
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// A hash that identifies the configuration in snapshots.
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn config() -> StageConfig {
        StageConfig::unlimited(vec!["1s".parse().expect("a specification of bars")], 0, 2)
    }

    /// A configuration in a journal is read as it was written. Other rules are refused by the name of the rule.
    #[test]
    fn a_configuration_by_other_rules_is_refused_by_name() {
        let json = config().to_json();
        assert_eq!(StageConfig::from_json(&json).expect("what was written"), config());
        let error = |rule: &str, other: &str| {
            assert!(json.contains(rule), "{json}");
            StageConfig::from_json(&json.replace(rule, other)).expect_err("it is refused").to_string()
        };
        for (rule, field) in [
            (r#""quotes":"event_time","#, "quotes"),
            (r#""numbers":"exact","#, "numbers"),
            (r#""times":"nanoseconds","#, "times"),
            (r#""rejects":"rows","#, "rejects"),
        ] {
            let error = error(rule, "");
            assert!(error.contains(&format!("missing field `{field}`")), "{error}");
        }
        let unknown = error(r#""rejects":"rows""#, r#""rejects":"records""#);
        assert!(unknown.contains("unknown variant `records`, expected `rows`"), "{unknown}");
        let newer = error(r#""rules":2"#, r#""rules":3"#);
        assert!(newer.contains("rules 3 are not known: this software has rules 2"), "{newer}");
    }
}
