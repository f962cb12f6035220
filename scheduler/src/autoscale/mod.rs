//! Autoscaling: how many lanes are wanted, given their work so far and the forecast of work to come.
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
//! A *load* is a number of lanes that work without a pause, times a million (`_e6`). Both policies divide a load by the
//! target of utilisation, and add lanes that work off the waiting work in time; only the load differs. More lanes are
//! wanted at once. Fewer are wanted only if their utilisation would have been below the target, less the hysteresis, in
//! each window of the hold.
//!
//! The module owns the wish. It must not know lanes, tasks or who starts a lane; only `live`, which makes the windows
//! of a running scheduler, knows lanes and tasks. Windows come in with their figures, and all arithmetic is on
//! integers.

mod account;
mod anomaly;
mod forecast;
mod live;
mod reactive;
pub mod season;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{AutoscaleConfig, AutoscalePolicy, ScaleReason};
use xxhash_rust::xxh3::xxh3_64;

use forecast::{Forecast, Seen};
pub use live::{LANES_WANTED_MAX, check_autoscale};
pub(crate) use live::{Live, account, end_window, wake_ns};
use reactive::Stabilizer;

/// One lane, as a load.
pub const LANE_E6: i64 = 1_000_000;
/// Longest season, in windows: a day of one-minute windows.
pub const SEASON_WINDOWS_MAX: i32 = 1_440;
/// Greatest load, in millionths of a lane.
const LANES_E6_MAX: i64 = 1_000_000 * LANE_E6;

/// Windows until a lane that is started now works: at least 1.
fn horizon(config: &AutoscaleConfig) -> usize {
    let window_ns = config.window_ns.max(1);
    let windows = config.start_ns.max(0) / window_ns + i64::from(config.start_ns % window_ns > 0);
    windows.clamp(1, i64::from(SEASON_WINDOWS_MAX)) as usize
}

/// Figures of a window. Work is lane time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of the window: its begin divided by the length of windows. It rises from window to window.
    pub number: i64,
    /// Time that all lanes together worked.
    pub busy_ns: i64,
    /// Work that arrived.
    pub arrived_ns: i64,
    /// Work that waits at the window's end, without the work in progress.
    pub waiting_ns: i64,
    /// Lanes in service at the window's end.
    pub lanes: i32,
}

/// Number of lanes wanted after a window, and the figures that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Wanted lanes.
    pub lanes: i32,
    /// Reason for this number.
    pub reason: ScaleReason,
    /// Share of the time of lanes in service that was worked, in percent. It may exceed 100, because the work of lanes
    /// that left counts too.
    pub utilization_percent: i64,
    /// Lanes in service at the window's end.
    pub lanes_in_service: i32,
    /// Work that waited at the window's end, as lane time in nanoseconds.
    pub waiting_ns: i64,
    /// Work that arrived in the window, as a load.
    pub arrived_e6: i64,
    /// The load for which lanes are wanted, without waiting work.
    pub load_e6: i64,
    /// True if that load is a forecast, or the greater of a forecast and the present load.
    pub is_by_forecast: bool,
    /// Greatest forecast load until a lane that is started now works, and in the window after that; `None` if nothing
    /// is known.
    pub forecast_e6: Option<i64>,
    /// Mean error of forecasts over that horizon, in millionths of the mean load; `None` if too few were compared.
    pub error_ppm: Option<i64>,
    /// Windows of the forecast's season; 0 if there is none.
    pub season_windows: i32,
    /// Distance of the arrived work from its last forecast, in robust standard deviations times a thousand; `None` if
    /// too little is known.
    pub deviations_e3: Option<i64>,
    /// True if the arrived work is an anomaly.
    pub is_anomaly: bool,
}

/// The state of autoscaling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Autoscaler {
    config: AutoscaleConfig,
    forecast: Forecast,
    stabilizer: Stabilizer,
}

/// Converts lane time within a window to a load.
fn load_e6(work_ns: i64, window_ns: i64) -> i64 {
    let load_e6 = i128::from(work_ns.max(0)) * i128::from(LANE_E6) / i128::from(window_ns.max(1));
    load_e6.min(i128::from(LANES_E6_MAX)) as i64
}

/// The load for which lanes are wanted, and the reason.
fn load_that_counts(config: &AutoscaleConfig, seen: &Seen, busy_e6: i64) -> (i64, ScaleReason) {
    let is_trusted =
        seen.error_ppm.is_some_and(|error_ppm| error_ppm <= i64::from(config.error_percent_max) * 10_000);
    match (config.policy, seen.forecast_e6) {
        (AutoscalePolicy::Predictive, Some(forecast_e6)) if is_trusted => match seen.is_anomaly {
            true => (forecast_e6.max(busy_e6), ScaleReason::Anomaly),
            false => (forecast_e6, ScaleReason::Forecast),
        },
        _ => (busy_e6, ScaleReason::Utilization),
    }
}

impl Autoscaler {
    /// The state before the first window, in which `lanes` lanes are wanted.
    pub fn new(config: AutoscaleConfig, lanes: i32) -> Self {
        let stabilizer = Stabilizer::new(lanes.clamp(config.lanes_min, config.lanes_max));
        Self { config, forecast: Forecast::default(), stabilizer }
    }

    /// The configuration.
    pub fn config(&self) -> &AutoscaleConfig {
        &self.config
    }

    /// Lanes that are wanted now.
    pub fn lanes(&self) -> i32 {
        self.stabilizer.lanes()
    }

    /// Judges a window.
    pub fn window(&mut self, figures: &Figures) -> Wish {
        let config = &self.config;
        let horizon = horizon(config);
        let arrived_e6 = load_e6(figures.arrived_ns, config.window_ns);
        let seen = self.forecast.observe(config, horizon, figures.number, arrived_e6);
        let busy_e6 = load_e6(figures.busy_ns, config.window_ns);
        let waiting_e6 = load_e6(figures.waiting_ns, config.clear_ns);
        let (load_e6, cause) = load_that_counts(config, &seen, busy_e6);
        let (lanes, reason) = self.stabilizer.settle(config, load_e6, waiting_e6, cause);
        let in_service_e6 = i64::from(figures.lanes.max(1)) * LANE_E6;
        Wish {
            lanes,
            reason,
            utilization_percent: busy_e6 * 100 / in_service_e6,
            lanes_in_service: figures.lanes,
            waiting_ns: figures.waiting_ns,
            arrived_e6,
            load_e6,
            is_by_forecast: cause != ScaleReason::Utilization,
            forecast_e6: seen.forecast_e6,
            error_ppm: seen.error_ppm,
            season_windows: self.forecast.season_windows(),
            deviations_e3: seen.deviations_e3,
            is_anomaly: seen.is_anomaly,
        }
    }

    /// Hash of the whole state.
    fn hash(&self) -> u64 {
        xxh3_64(&postcard::to_allocvec(self).expect("the state is made of numbers and lists"))
    }
}

#[cfg(test)]
mod tests;
