//! Autoscaling in the journal: its configuration, and the number of lanes wanted.

use serde::{Deserialize, Serialize};

use crate::wire::Wire;

/// Load for which lanes are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AutoscalePolicy {
    /// The load of the last window.
    #[default]
    Reactive,
    /// The forecast load.
    Predictive,
}

/// Configuration of autoscaling, which judges how many lanes a load needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct AutoscaleConfig {
    /// Load for which lanes are wanted.
    pub policy: AutoscalePolicy,
    /// Minimum number of lanes, at least 1.
    pub lanes_min: i32,
    /// Maximum number of lanes.
    pub lanes_max: i32,
    /// Length of a window, in nanoseconds. The load is judged once per window.
    pub window_ns: i64,
    /// Target share of lane time in which lanes work, in percent.
    pub utilization_percent: i32,
    /// Margin below the target utilization, in percentage points. Fewer lanes are wanted only if they would work that
    /// much less than the target.
    pub hysteresis_percent: i32,
    /// Number of windows in which fewer lanes must have been enough before fewer are wanted; 0: none.
    pub hold_windows: i32,
    /// Time in which waiting work is to be done, in nanoseconds.
    pub clear_ns: i64,
    /// Time from the request for a lane until the lane works, in nanoseconds. Forecasts look ahead by this time.
    pub start_ns: i64,
    /// Number of windows in a season of arrivals, such as a day; 0: the scheduler finds the season.
    pub season_windows: i32,
    /// Maximum mean error of forecasts, in percent of the mean load. Forecasts with a greater error are not used.
    pub error_percent_max: i32,
    /// Distance from the forecast beyond which arrivals are an anomaly, in robust standard deviations; 0: nothing is an
    /// anomaly.
    pub anomaly_deviations: i32,
}

impl Default for AutoscaleConfig {
    /// Windows of a minute, starts of lanes within two minutes, and a season found from the data.
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

/// The number of lanes wanted has changed, with the figures behind it. A load is a number of lanes that work without
/// pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Scale {
    /// Number of lanes wanted.
    pub lanes: i32,
    /// Number of lanes wanted before.
    pub lanes_before: i32,
    /// Number of this process's lanes that are ready and in full service.
    pub lanes_in_service: i32,
    /// Reason for the number of lanes.
    pub reason: ScaleReason,
    /// Share of the window in which the lanes in service worked, in percent. It can exceed 100 if work ended that began
    /// before the window.
    pub utilization_percent: i64,
    /// Waiting work, in nanoseconds of lane time.
    pub waiting_ns: i64,
    /// Load that arrived in the window, in millionths of a lane.
    pub arrived_e6: i64,
    /// Load for which lanes are wanted, without waiting work, in millionths of a lane.
    pub load_e6: i64,
    /// Greatest load that is forecast until a lane that is started now works, in millionths of a lane; null if there is
    /// no forecast.
    pub forecast_e6: Option<i64>,
    /// Mean error of forecasts for that time ahead, in millionths of the mean load; null if too few could be compared.
    pub error_ppm: Option<i64>,
    /// Distance of the arrived load from its forecast, in thousandths of a robust standard deviation; null if too
    /// little is known.
    pub deviations_e3: Option<i64>,
    /// Number of windows in the season that forecasts use; 0: none.
    pub season_windows: i32,
}

/// Reason for the number of lanes wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ScaleReason {
    /// The load of the last window needs this number.
    Utilization,
    /// Waiting work needs one or more of the lanes.
    Waiting,
    /// The forecast load needs this number.
    Forecast,
    /// Arrivals are an anomaly, so the greater of the forecast and the last window's load counts.
    Anomaly,
    /// Fewer lanes would be enough, but not by the hysteresis, or not for long enough.
    Hold,
    /// The number is the configured minimum or maximum.
    Limit,
}
