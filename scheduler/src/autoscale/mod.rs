//! Autoscaling: how many lanes are wanted, by what they did and by what is expected to come.
//!
//! ```text
//!   figures of a window ──► forecast ──► residual ──► anomaly?
//!    busy, waiting,            │
//!    arrived, in service       ├─► predictive: the greatest load until a lane that is started now works ──┐
//!                              └─ error above its limit, nothing known, or an anomaly ─► reactive ────────┴─► lanes for this load
//!                                                                                                              │ hysteresis, hold, limits
//!                                                                                                              ▼
//!                                                                                                             Wish
//! ```
//!
//! A *load* is a number of lanes that work without a pause, times a million (`_e6`). Both policies divide a load by the target of utilisation, and add
//! what works off the waiting work in time; they differ in the load alone. More lanes are wanted at once, and fewer only if they would still be
//! below the target by the hysteresis, and for as many windows as the hold has.
//!
//! It owns the wish; it must not know lanes, tasks or who starts what. Windows come in with their figures, and all arithmetic is of integers.

mod anomaly;
mod forecast;
mod reactive;
pub mod season;

use serde::{Deserialize, Serialize};

use forecast::Forecast;
use reactive::Stabilizer;

/// One lane, as a load.
pub const LANE_E6: i64 = 1_000_000;
/// Longest season, in windows: a day of windows of a minute.
pub const SEASON_WINDOWS_MAX: i32 = 1_440;
/// Greatest number of lanes that a load is counted to.
const LANES_E6_MAX: i64 = 1_000_000 * LANE_E6;

/// Which load lanes are wanted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScalingPolicy {
    /// What lanes did in the last window.
    #[default]
    Reactive,
    /// What is forecast.
    Predictive,
}

/// How lanes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingConfig {
    /// Which load lanes are wanted for.
    pub policy: ScalingPolicy,
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
    /// Windows of a season, up to [`SEASON_WINDOWS_MAX`]; 0: it is found, up to [`season::FOUND_WINDOWS_MAX`].
    pub season_windows: i32,
    /// Forecasts whose mean error is above so many percent of the mean load are not gone by.
    pub error_percent_max: i32,
    /// What arrives is an anomaly if it is further from its forecast than so many robust standard deviations; 0: nothing is.
    pub anomaly_deviations: i32,
}

impl Default for ScalingConfig {
    /// Windows of a minute, lanes that start within two, a season that is found.
    fn default() -> Self {
        Self {
            policy: ScalingPolicy::Reactive,
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

impl ScalingConfig {
    /// Windows that pass until a lane that is started now works: at least 1.
    fn horizon(&self) -> usize {
        let window_ns = self.window_ns.max(1);
        let windows = self.start_ns.max(0) / window_ns + i64::from(self.start_ns % window_ns > 0);
        windows.clamp(1, i64::from(SEASON_WINDOWS_MAX)) as usize
    }
}

/// What a window was. Work is lane time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of the window: the time of its begin by the length of windows. It rises from window to window.
    pub number: i64,
    /// Time in which lanes worked, of all lanes together.
    pub busy_ns: i64,
    /// Work that arrived.
    pub arrived_ns: i64,
    /// Work that waits at the window's end, without what lanes work on.
    pub waiting_ns: i64,
    /// Lanes in service at the window's end.
    pub lanes: i32,
}

/// Why so many lanes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScalingReason {
    /// What lanes did in the last windows asks for so many.
    Utilization,
    /// Waiting work asks for one or more of them.
    Waiting,
    /// What is forecast asks for so many.
    Forecast,
    /// What arrived is an anomaly, so that the forecast does not count alone.
    Anomaly,
    /// Fewer would do, but not by the hysteresis, or not for long enough.
    Hold,
    /// The fewest or the most that are allowed.
    Limit,
}

/// How many lanes are wanted after a window, and what that was judged on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Lanes that are wanted.
    pub lanes: i32,
    /// Why so many.
    pub reason: ScalingReason,
    /// Share of their time in which the lanes in service worked, in percent; what worked before it left counts too, so it may be above 100.
    pub utilization_percent: i64,
    /// What arrived in the window, as a load.
    pub arrived_e6: i64,
    /// The load that lanes are wanted for, without waiting work.
    pub load_e6: i64,
    /// Whether that load is a forecast, or at least one.
    pub is_by_forecast: bool,
    /// The greatest load that is forecast until a lane that is started now works, and in the window after; none: nothing is known.
    pub forecast_e6: Option<i64>,
    /// Mean error of forecasts as far ahead, in millionths of the mean load; none: too few have come true or not.
    pub error_ppm: Option<i64>,
    /// Windows of the season that the forecast goes by; 0: none.
    pub season_windows: i32,
    /// How far what arrived was from the forecast of the window before, in robust standard deviations times a thousand; none: too little is known.
    pub deviations_e3: Option<i64>,
    /// Whether what arrived is an anomaly.
    pub is_anomaly: bool,
}

/// The state of autoscaling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autoscaler {
    config: ScalingConfig,
    forecast: Forecast,
    stabilizer: Stabilizer,
}

/// A time by a window, as a load.
fn load_e6(work_ns: i64, window_ns: i64) -> i64 {
    let load_e6 = i128::from(work_ns.max(0)) * i128::from(LANE_E6) / i128::from(window_ns.max(1));
    load_e6.min(i128::from(LANES_E6_MAX)) as i64
}

impl Autoscaler {
    /// One that has seen no window; so many lanes are wanted until then.
    pub fn new(config: ScalingConfig, lanes: i32) -> Self {
        let stabilizer = Stabilizer::new(lanes.clamp(config.lanes_min, config.lanes_max));
        Self { config, forecast: Forecast::default(), stabilizer }
    }

    /// How lanes are wanted.
    pub fn config(&self) -> &ScalingConfig {
        &self.config
    }

    /// Lanes that are wanted now.
    pub fn lanes(&self) -> i32 {
        self.stabilizer.lanes()
    }

    /// Judges a window.
    pub fn window(&mut self, figures: &Figures) -> Wish {
        let config = &self.config;
        let horizon = config.horizon();
        let arrived_e6 = load_e6(figures.arrived_ns, config.window_ns);
        let seen = self.forecast.observe(config, horizon, figures.number, arrived_e6);
        let busy_e6 = load_e6(figures.busy_ns, config.window_ns);
        let waiting_e6 = load_e6(figures.waiting_ns, config.clear_ns);
        let is_trusted =
            seen.error_ppm.is_some_and(|error_ppm| error_ppm <= i64::from(config.error_percent_max) * 10_000);
        let (load_e6, cause) = match (config.policy, seen.forecast_e6) {
            (ScalingPolicy::Predictive, Some(forecast_e6)) if is_trusted => match seen.is_anomaly {
                true => (forecast_e6.max(busy_e6), ScalingReason::Anomaly),
                false => (forecast_e6, ScalingReason::Forecast),
            },
            _ => (busy_e6, ScalingReason::Utilization),
        };
        let (lanes, reason) = self.stabilizer.settle(config, load_e6, waiting_e6, cause);
        let in_service_e6 = i64::from(figures.lanes.max(1)) * LANE_E6;
        Wish {
            lanes,
            reason,
            utilization_percent: busy_e6 * 100 / in_service_e6,
            arrived_e6,
            load_e6,
            is_by_forecast: cause != ScalingReason::Utilization,
            forecast_e6: seen.forecast_e6,
            error_ppm: seen.error_ppm,
            season_windows: self.forecast.season_windows(),
            deviations_e3: seen.deviations_e3,
            is_anomaly: seen.is_anomaly,
        }
    }
}

#[cfg(test)]
mod tests;
