//! The forecast of arrivals: a smoothed level, and a smoothed season about it. This is Holt-Winters without a trend,
//! additive, in the form of error correction. Its error is measured for the forecast horizon: the time that a lane
//! takes to start.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use warptape_events::journal::AutoscaleConfig;

use super::anomaly::Residuals;
use super::{LANES_E6_MAX, season};

/// Inverse weight of a residual in the level: 1/8. Below: inverse weight of the rest in the window's season, 1/4.
const LEVEL_SMOOTHING: i64 = 8;
const SEASON_SMOOTHING: i64 = 4;
/// Inverse weight of a new window in the smoothed error and the smoothed load.
const ERROR_SMOOTHING: i64 = 64;
/// Least number of forecasts compared with arrivals before the mean error is used.
const COMPARED_MIN: i64 = 16;
/// Windows between two searches for a season.
const SEARCH_WINDOWS: i64 = 32;
/// Most consecutive windows without figures; a longer gap resets the state.
const MISSING_MAX: i64 = 64;

/// State of the forecast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forecast {
    /// Number of the last window; `None` before the first.
    number: Option<i64>,
    /// Arrivals of the last windows, the oldest first.
    history: VecDeque<i64>,
    level_e6: i64,
    /// Difference of each window of the season from the level, by the window's number modulo the season; empty if no
    /// season is known.
    season_e6: Vec<i64>,
    /// Forecasts of windows to come, the next one first.
    issued_e6: VecDeque<i64>,
    /// Smoothed absolute error of forecasts. Below: smoothed arrivals.
    error_e6: i64,
    mean_e6: i64,
    /// Number of forecasts compared with arrivals since the season became known, or since the beginning.
    compared: i64,
    residuals: Residuals,
}

/// Results of observing a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) forecast_e6: Option<i64>,
    pub(super) error_ppm: Option<i64>,
    pub(super) deviations_e3: Option<i64>,
    pub(super) is_anomaly: bool,
}

impl Forecast {
    /// Windows of the season; 0 if none is known.
    pub(super) fn season_windows(&self) -> i32 {
        self.season_e6.len() as i32
    }

    /// Learns from a window, and from the missing windows before it.
    pub(super) fn observe(
        &mut self,
        config: &AutoscaleConfig,
        horizon: usize,
        number: i64,
        arrived_e6: i64,
    ) -> Seen {
        if let Some(last) = self.number {
            let missing = number.saturating_sub(last).saturating_sub(1);
            if !(0..=MISSING_MAX).contains(&missing) {
                *self = Self::default();
            }
            for number in last + 1..=last + missing.clamp(0, MISSING_MAX) {
                if self.number.is_some() {
                    self.learn(config, horizon, number, 0);
                }
            }
        }
        self.learn(config, horizon, number, arrived_e6)
    }

    fn learn(&mut self, config: &AutoscaleConfig, horizon: usize, number: i64, arrived_e6: i64) -> Seen {
        let mut seen = Seen::default();
        if self.number.is_some() {
            self.compare(horizon, arrived_e6);
            let residual_e6 = arrived_e6 - self.at(number);
            let mut learnt_e6 = residual_e6;
            if let Some(judged) = self.residuals.judge(residual_e6) {
                let most = i64::from(config.anomaly_deviations);
                seen.deviations_e3 = Some(judged.deviations_e3);
                seen.is_anomaly = most > 0 && judged.deviations_e3 > most * 1_000;
                if seen.is_anomaly {
                    // An anomaly is learnt as if it were the largest residual that is no anomaly. So a lasting change
                    // of the level is followed.
                    let farthest_e6 = judged.deviation_e6.saturating_mul(most);
                    learnt_e6 =
                        residual_e6.clamp(judged.median_e6 - farthest_e6, judged.median_e6 + farthest_e6);
                }
            }
            self.residuals.push(residual_e6);
            self.correct(number, learnt_e6);
        } else {
            self.level_e6 = arrived_e6;
        }
        self.number = Some(number);
        self.remember(config, arrived_e6);
        self.look_for_season(config, number);
        self.issued_e6.push_back(self.at(number + horizon as i64));
        let ahead = (1..=horizon as i64 + 1).map(|windows| self.at(number + windows));
        seen.forecast_e6 = ahead.max();
        seen.error_ppm = (self.compared >= COMPARED_MIN)
            .then(|| (i128::from(self.error_e6) * 1_000_000 / i128::from(self.mean_e6.max(1))) as i64);
        seen
    }

    /// Forecast of a window.
    fn at(&self, number: i64) -> i64 {
        let above_e6 = match self.season_e6.len() {
            0 => 0,
            season => self.season_e6[number.rem_euclid(season as i64) as usize],
        };
        (self.level_e6 + above_e6).clamp(0, LANES_E6_MAX)
    }

    /// Compares arrivals with their forecast.
    fn compare(&mut self, horizon: usize, arrived_e6: i64) {
        if self.issued_e6.len() < horizon {
            return;
        }
        let Some(forecast_e6) = self.issued_e6.pop_front() else { return };
        let error_e6 = (arrived_e6 - forecast_e6).abs();
        self.compared += 1;
        // Until enough forecasts are compared, the error is their plain mean.
        let by = self.compared.min(ERROR_SMOOTHING);
        self.error_e6 += (error_e6 - self.error_e6) / by;
        self.mean_e6 += (arrived_e6 - self.mean_e6) / by;
    }

    fn correct(&mut self, number: i64, residual_e6: i64) {
        let of_level_e6 = residual_e6 / LEVEL_SMOOTHING;
        self.level_e6 = (self.level_e6 + of_level_e6).clamp(0, LANES_E6_MAX);
        if !self.season_e6.is_empty() {
            let index = number.rem_euclid(self.season_e6.len() as i64) as usize;
            self.season_e6[index] += (residual_e6 - of_level_e6) / SEASON_SMOOTHING;
        }
    }

    fn remember(&mut self, config: &AutoscaleConfig, arrived_e6: i64) {
        let most = match config.season_windows {
            0 => season::HISTORY_WINDOWS,
            // A known season is corrected by each window.
            windows => windows as usize,
        };
        while self.history.len() >= most {
            self.history.pop_front();
        }
        self.history.push_back(arrived_e6);
    }

    /// Adopts the configured season once one season has passed. Otherwise searches for a season at intervals, while
    /// none is known or forecasts are wrong.
    fn look_for_season(&mut self, config: &AutoscaleConfig, number: i64) {
        let given = config.season_windows as usize;
        let found = match given {
            0 => {
                let limit_e6 = i128::from(self.mean_e6) * i128::from(config.error_percent_max) / 100;
                let is_wrong = self.compared >= ERROR_SMOOTHING && i128::from(self.error_e6) > limit_e6;
                let is_due = number.rem_euclid(SEARCH_WINDOWS) == 0;
                if !is_due || !(self.season_e6.is_empty() || is_wrong) {
                    return;
                }
                season::find(self.history.make_contiguous())
            }
            _ => Some(given).filter(|given| self.season_e6.is_empty() && self.history.len() == *given),
        };
        let Some(found) = found else { return };
        (self.level_e6, self.season_e6) = season::profile(self.history.make_contiguous(), number, found);
        // Earlier errors are about another forecast.
        self.issued_e6.clear();
        (self.error_e6, self.mean_e6, self.compared) = (0, 0, 0);
        self.residuals.clear();
    }
}
