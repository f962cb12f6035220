//! Autoscaling in the journal: its configuration, and the number of lanes wanted.

use serde::{Deserialize, Serialize};

use crate::wire::Wire;

/// Which load lanes are wanted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AutoscalePolicy {
    /// What lanes did in the last window.
    #[default]
    Reactive,
    /// What is forecast.
    Predictive,
}

/// How lanes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct AutoscaleConfig {
    /// Which load lanes are wanted for.
    pub policy: AutoscalePolicy,
    /// Fewest lanes that are wanted, at least 1.
    pub lanes_min: i32,
    /// Most lanes that are wanted.
    pub lanes_max: i32,
    /// Length of a window, in nanoseconds.
    pub window_ns: i64,
    /// Wanted share of lane time in which lanes work, in percent.
    pub utilization_percent: i32,
    /// Fewer lanes are wanted only if they would work so many percent of their time less than the target.
    pub hysteresis_percent: i32,
    /// Windows for which fewer lanes must have done before fewer are wanted; 0: none.
    pub hold_windows: i32,
    /// Time in which waiting work is to be worked off, in nanoseconds.
    pub clear_ns: i64,
    /// Time from the wish for a lane until it works, in nanoseconds: how far the forecast looks ahead.
    pub start_ns: i64,
    /// Windows of a season of what arrives; 0: it is found.
    pub season_windows: i32,
    /// Forecasts whose mean error is above so many percent of the mean load are not gone by.
    pub error_percent_max: i32,
    /// What arrives is an anomaly if it is further from its forecast than so many robust standard deviations; 0: nothing is.
    pub anomaly_deviations: i32,
}

impl Default for AutoscaleConfig {
    /// Windows of a minute, starts within two minutes, and a season found from the data.
    fn default() -> Self {
        Self {
            policy: AutoscalePolicy::Reactive,
            lanes_min: 1,
            lanes_max: 64,
            window_ns: 60_000_000_000,
            utilization_percent: 70,
            hysteresis_percent: 10,
            hold_windows: 5,
            clear_ns: 60_000_000_000,
            start_ns: 120_000_000_000,
            season_windows: 0,
            error_percent_max: 30,
            anomaly_deviations: 6,
        }
    }
}

/// Another number of lanes is wanted than before, and what that was judged on. A load is a number of lanes that work without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Scale {
    /// Lanes that are wanted.
    pub lanes: i32,
    /// Lanes that were wanted before.
    pub lanes_before: i32,
    /// Lanes of this process that are ready and in full service.
    pub lanes_in_service: i32,
    /// Why so many.
    pub reason: ScaleReason,
    /// Share of the window in which the lanes in service worked, in percent; above 100 where work ended that had begun before.
    pub utilization_percent: i64,
    /// What waits, as lane time in nanoseconds.
    pub waiting_ns: i64,
    /// The load that arrived in the window, in millionths of a lane.
    pub arrived_e6: i64,
    /// The load that lanes are wanted for, without what waits, in millionths of a lane.
    pub load_e6: i64,
    /// The greatest load that is forecast until a lane that is started now works, likewise; null: nothing is known.
    pub forecast_e6: Option<i64>,
    /// Mean error of forecasts as far ahead, in millionths of the mean load; null: too few could be compared.
    pub error_ppm: Option<i64>,
    /// How far what arrived was from its forecast, in thousandths of a robust standard deviation; null: too little is known.
    pub deviations_e3: Option<i64>,
    /// Windows of the season that forecasts go by; 0: none.
    pub season_windows: i32,
}

/// Why so many lanes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ScaleReason {
    /// What lanes did in the last window asks for so many.
    Utilization,
    /// Waiting work asks for one or more of them.
    Waiting,
    /// What is forecast asks for so many.
    Forecast,
    /// What arrived is an anomaly, so that what lanes did counts beside the forecast.
    Anomaly,
    /// Fewer would do, but not by the hysteresis, or not for long enough.
    Hold,
    /// The fewest or the most that may be wanted.
    Limit,
}
