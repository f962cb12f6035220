//! The autoscaling section of a fleet's file.

use std::collections::BTreeMap;

use serde::Deserialize;
use warptape_events::journal::AutoscaleConfig;
use warptape_scheduler::autoscale::SEASON_WINDOWS_MAX;

use super::{FileError, number};
use crate::fleet::{Autoscale, Class};

/// Longest allowed window, start or hold, in seconds: a day.
const TIME_S_MAX: f64 = 86_400.0;

/// The autoscaling section as written in a file; times are in seconds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoscaleFile {
    /// Least number of running lanes; 1 by default.
    pub lanes_min: Option<i32>,
    /// Greatest number of running lanes; all by default.
    pub lanes_max: Option<i32>,
    /// Length of a window; the number of lanes is set at its end.
    pub window_s: Option<f64>,
    /// Time from the decision to start a lane until it works.
    pub start_s: Option<f64>,
    /// Target share of lane time in which lanes work, in percent.
    pub utilization_percent: Option<i32>,
    /// Margin below the target, in percentage points: lanes are stopped only if the utilisation of the rest stays below
    /// the target minus the margin.
    pub hysteresis_percent: Option<i32>,
    /// Time for which fewer lanes must have sufficed before lanes are stopped.
    pub hold_s: Option<f64>,
    /// Time within which waiting work should be cleared.
    pub clear_s: Option<f64>,
    /// Length of a season of arrivals; found from the data by default.
    pub season_s: Option<f64>,
    /// Greatest mean error of a usable forecast, in percent of the mean load.
    pub error_percent_max: Option<i32>,
    /// Distance from the forecast above which arrivals are an anomaly, in robust standard deviations; 0: never.
    pub anomaly_deviations: Option<i32>,
    /// Price of a running lane per hour, by class; 0 for classes that are not named.
    #[serde(default)]
    pub price_per_hour: BTreeMap<String, f64>,
}

impl AutoscaleFile {
    /// Checks the section, and returns it for a fleet with these classes.
    pub(super) fn autoscale(&self, classes: &[Class]) -> Result<Autoscale, FileError> {
        let default = AutoscaleConfig::default();
        let lanes: usize = classes.iter().map(|class| class.lanes).sum();
        let lanes = lanes as i32;
        let whole = |field: &str, value: Option<i32>, default: i32, from: i32, to: i32, allowed| {
            let value = value.unwrap_or(default);
            number(field, f64::from(value), (from..=to).contains(&value), allowed).map(|()| value)
        };
        let time_ns = |field: &str, value: Option<f64>, default_ns: i64, least_s: f64, allowed| {
            let Some(value) = value else { return Ok(default_ns) };
            number(field, value, (least_s..=TIME_S_MAX).contains(&value), allowed)?;
            Ok((value * 1e9).round() as i64)
        };
        let lanes_max = whole("lanes_max", self.lanes_max, lanes, 1, lanes, "from 1 to the number of lanes")?;
        let lanes_min = whole("lanes_min", self.lanes_min, 1, 1, lanes_max, "from 1 to lanes_max")?;
        let target = self.utilization_percent;
        let target =
            whole("utilization_percent", target, default.utilization_percent, 1, 100, "from 1 to 100")?;
        let less = self.hysteresis_percent;
        let hysteresis_default = default.hysteresis_percent.min(target - 1);
        let allowed = "from 0, below utilization_percent";
        let less = whole("hysteresis_percent", less, hysteresis_default, 0, target - 1, allowed)?;
        let window = "from 0.1 to 86,400";
        let window_ns = time_ns("window_s", self.window_s, default.window_ns, 0.1, window)?;
        let hold_ns = i64::from(default.hold_windows) * window_ns;
        let hold_ns = time_ns("hold_s", self.hold_s, hold_ns, 0.0, "from 0 to 86,400")?;
        let season_ns = time_ns("season_s", self.season_s, 0, 0.1, window)?;
        let windows = season_ns / window_ns;
        let is_allowed = season_ns % window_ns == 0
            && (season_ns == 0 || (2..=i64::from(SEASON_WINDOWS_MAX)).contains(&windows));
        let allowed = "a multiple of window_s, from 2 to 1,440 of them";
        number("season_s", season_ns as f64 / 1e9, is_allowed, allowed)?;
        let error = self.error_percent_max;
        let error = whole("error_percent_max", error, default.error_percent_max, 0, 1_000, "from 0 to 1000")?;
        let farthest = self.anomaly_deviations;
        let farthest =
            whole("anomaly_deviations", farthest, default.anomaly_deviations, 0, 1_000, "from 0 to 1000")?;
        Ok(Autoscale {
            config: AutoscaleConfig {
                lanes_min,
                lanes_max,
                window_ns,
                utilization_percent: target,
                hysteresis_percent: less,
                hold_windows: (hold_ns / window_ns) as i32,
                clear_ns: time_ns("clear_s", self.clear_s, default.clear_ns, 0.1, window)?,
                start_ns: time_ns("start_s", self.start_s, default.start_ns, 0.0, "from 0 to 86,400")?,
                season_windows: windows as i32,
                error_percent_max: error,
                anomaly_deviations: farthest,
                ..default
            },
            price_per_hour: self.prices(classes)?,
        })
    }

    fn prices(&self, classes: &[Class]) -> Result<Vec<f64>, FileError> {
        for (name, price) in &self.price_per_hour {
            let field = format!("the price of {name}");
            number(field, *price, (0.0..=1e6).contains(price), "from 0 to 1,000,000")?;
            if !classes.iter().any(|class| class.name == *name) {
                let known = classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(FileError::Class { field: "a price".to_owned(), found: name.clone(), known });
            }
        }
        let price = |class: &Class| self.price_per_hour.get(&class.name).copied().unwrap_or(0.0);
        Ok(classes.iter().map(price).collect())
    }
}
