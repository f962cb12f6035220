//! Number of wanted lanes.

use warptape_scheduler::autoscale::{LANES_WANTED_MAX, SEASON_WINDOWS_MAX};
use warptape_schemas::journal::{AutoscaleConfig, AutoscalePolicy};

use super::super::declaration::{choice, integer, section, whole};

const NS_PER_S: i64 = 1_000_000_000;

section! {
    "autoscale": "Autoscaling: how many lanes this process wants, as a metric and as a decision in the journal. Whatever starts and stops processes can follow it.";
    /// Number of wanted lanes.
    pub struct AutoscaleSettings {
        /// Load that lanes are wanted for: that of the last window (`reactive`), or the forecast of the next windows
        /// (`predictive`). With `off` no number is computed. docs/operations.md says how to use the number.
        policy: Option<AutoscalePolicy> = choice(&["off", "reactive", "predictive"], |word| match word {
            "reactive" => Some(AutoscalePolicy::Reactive),
            "predictive" => Some(AutoscalePolicy::Predictive),
            _ => None,
        });
        /// Fewest lanes that this process wants.
        lanes_min: i32 = integer(1, 1..=LANES_WANTED_MAX as i64, whole);
        /// Most lanes that this process wants, including those of further processes that would take some of its
        /// partitions.
        lanes_max: i32 = integer(64, 1..=LANES_WANTED_MAX as i64, whole);
        /// Length of a window in which lanes' work is measured, in seconds.
        window_ns as window_s: i64 = integer(60, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Wanted utilisation: share of lanes' time in which they work, in percent.
        utilization_percent: i32 = integer(70, 1..=100, whole);
        /// Fewer lanes are wanted only if their utilisation would be this many percentage points below
        /// `utilization_percent`.
        hysteresis_percent: i32 = integer(10, 0..=99, whole);
        /// Windows in a row in which fewer lanes must have been enough before fewer are wanted.
        hold_windows: i32 = integer(5, 0..=SEASON_WINDOWS_MAX as i64, whole);
        /// Time in which lanes must clear the waiting work, in seconds.
        clear_ns as clear_s: i64 = integer(60, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Time from the wish for a lane until it works, in seconds. `predictive` looks this far ahead, but at most
        /// 1440 windows.
        start_ns as start_s: i64 = integer(120, 0..=86_400, |seconds| seconds * NS_PER_S);
        /// Windows in a season of arrivals, such as 1440 windows of a minute for a day; 0: the season is detected, up
        /// to 240 windows.
        season_windows: i32 = integer(0, 0..=SEASON_WINDOWS_MAX as i64, whole);
        /// Mean error of forecasts, in percent of the mean load, above which `predictive` works as `reactive`.
        error_percent_max: i32 = integer(30, 0..=1_000, whole);
        /// Distance of arrivals from their forecast, in robust standard deviations, beyond which they are an anomaly;
        /// 0: never. Lanes are wanted for an anomaly at once.
        anomaly_deviations: i32 = integer(6, 0..=1_000, whole);
    }
}

impl AutoscaleSettings {
    /// Returns the scheduler's configuration of autoscaling; `None` if it is off.
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
