//! How many lanes are wanted.

use warptape_scheduler::autoscale::{LANES_WANTED_MAX, SEASON_WINDOWS_MAX};
use warptape_schemas::journal::{AutoscaleConfig, AutoscalePolicy};

use super::super::declaration::{choice, integer, section, whole};

const NS_PER_S: i64 = 1_000_000_000;

section! {
    "autoscale": "How many lanes this process wants, for who starts and stops processes: a metric, and a decision in the journal.";
    /// How many lanes are wanted.
    pub struct AutoscaleSettings {
        /// Which load lanes are wanted for: what they did in the last window (`reactive`), or what is forecast of the next ones (`predictive`);
        /// `off`: nothing is judged. docs/operations.md says what to do with it.
        policy: Option<AutoscalePolicy> = choice(&["off", "reactive", "predictive"], |word| match word {
            "reactive" => Some(AutoscalePolicy::Reactive),
            "predictive" => Some(AutoscalePolicy::Predictive),
            _ => None,
        });
        /// Fewest lanes that this process wants.
        lanes_min: i32 = integer(1, 1..=LANES_WANTED_MAX as i64, whole);
        /// Most lanes that this process wants, those of further processes that would take some of its partitions among them.
        lanes_max: i32 = integer(64, 1..=LANES_WANTED_MAX as i64, whole);
        /// Length of a window in which lanes' work is measured, in seconds.
        window_ns as window_s: i64 = integer(60, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Wanted share of lanes' time in which they work, in percent.
        utilization_percent: i32 = integer(70, 1..=100, whole);
        /// Fewer lanes are wanted only if they would work so many percent of their time less than that.
        hysteresis_percent: i32 = integer(10, 0..=99, whole);
        /// Windows for which fewer lanes must have done before fewer are wanted.
        hold_windows: i32 = integer(5, 0..=SEASON_WINDOWS_MAX as i64, whole);
        /// Time in which waiting work is to be worked off, in seconds.
        clear_ns as clear_s: i64 = integer(60, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Time from the wish for a lane until it works, in seconds: how far `predictive` looks ahead, but not over more than 1440 windows.
        start_ns as start_s: i64 = integer(120, 0..=86_400, |seconds| seconds * NS_PER_S);
        /// Windows of a season of what arrives, such as 1440 windows of a minute for a day; 0: it is found, if it is no longer than 240.
        season_windows: i32 = integer(0, 0..=SEASON_WINDOWS_MAX as i64, whole);
        /// `predictive` does what `reactive` does while the mean error of its forecasts is above so many percent of the mean load.
        error_percent_max: i32 = integer(30, 0..=1_000, whole);
        /// What arrives is an anomaly, which lanes are wanted for at once, if it is further from its forecast than so many robust standard
        /// deviations; 0: nothing is.
        anomaly_deviations: i32 = integer(6, 0..=1_000, whole);
    }
}

impl AutoscaleSettings {
    /// What the scheduler is told of them; nothing where they are off.
    pub(in super::super) fn config(self) -> Option<AutoscaleConfig> {
        let Self {
            policy,
            lanes_min,
            lanes_max,
            window_ns,
            utilization_percent,
            hysteresis_percent,
            hold_windows,
            clear_ns,
            start_ns,
            season_windows,
            error_percent_max,
            anomaly_deviations,
        } = self;
        policy.map(|policy| AutoscaleConfig {
            policy,
            lanes_min,
            lanes_max,
            window_ns,
            utilization_percent,
            hysteresis_percent,
            hold_windows,
            clear_ns,
            start_ns,
            season_windows,
            error_percent_max,
            anomaly_deviations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::declaration::{FromKeys as _, Values};
    use super::*;
    use crate::settings::{Effective, Origin, Setting};

    #[test]
    fn defaults_are_those_of_the_scheduler_and_off() {
        let entry = |key| Effective { key, value: Setting::default_of(&key.kind), origin: Origin::Default };
        let effective: Vec<_> = AutoscaleSettings::SECTION.keys.iter().map(entry).collect();
        let defaults = AutoscaleSettings::read(&Values(&effective));
        assert_eq!(defaults.config(), None);
        let on = AutoscaleSettings {
            policy: Some(AutoscalePolicy::Reactive),
            ..AutoscaleSettings::read(&Values(&effective))
        };
        assert_eq!(on.config(), Some(AutoscaleConfig::default()));
    }
}
