//! Anomalies: residuals that are farther from the others than their robust deviation allows.
//!
//! The deviation is the median distance from the median, times 1.4826. This is the standard deviation if residuals are
//! normally distributed (Hampel, 1974). Up to half of the residuals may have any value without moving it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::LANE_E6;

/// Most residuals that are kept.
const RESIDUALS: usize = 128;
/// Least number of earlier residuals for a judgement.
const RESIDUALS_MIN: usize = 32;
/// Least deviation: a hundredth of a lane. Without it, any small residual would be an anomaly after equal ones.
const DEVIATION_E6_MIN: i64 = LANE_E6 / 100;

/// The last residuals, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Residuals {
    recent: VecDeque<i64>,
}

/// Verdict on a residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    /// Distance from the median, in deviations times a thousand.
    pub(super) deviations_e3: i64,
    /// The deviation.
    pub(super) deviation_e6: i64,
    /// The median.
    pub(super) median_e6: i64,
}

/// The lower median of a list that is not empty.
fn median(values: &mut [i64]) -> i64 {
    let middle = (values.len() - 1) / 2;
    *values.select_nth_unstable(middle).1
}

impl Residuals {
    /// Judges a residual by those before it; `None` if there are too few.
    pub(super) fn judge(&self, residual_e6: i64) -> Option<Judged> {
        if self.recent.len() < RESIDUALS_MIN {
            return None;
        }
        let mut values: Vec<i64> = self.recent.iter().copied().collect();
        let median_e6 = median(&mut values);
        values.iter_mut().for_each(|value| *value = (*value - median_e6).abs());
        let deviation_e6 = (median(&mut values) * 14_826 / 10_000).max(DEVIATION_E6_MIN);
        let deviations_e3 = (residual_e6 - median_e6).abs() * 1_000 / deviation_e6;
        Some(Judged { deviations_e3, deviation_e6, median_e6 })
    }

    pub(super) fn push(&mut self, residual_e6: i64) {
        if self.recent.len() == RESIDUALS {
            self.recent.pop_front();
        }
        self.recent.push_back(residual_e6);
    }

    pub(super) fn clear(&mut self) {
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_residual_is_judged_by_the_median_of_those_before() {
        let mut residuals = Residuals::default();
        for number in 0..31 {
            residuals.push((number % 11 - 5) * 100_000);
            assert_eq!(residuals.judge(0), None, "too few");
        }
        // One earlier residual is far off.
        residuals.push(50 * LANE_E6);
        let judged = residuals.judge(2_000_000).unwrap();
        assert_eq!((judged.median_e6, judged.deviation_e6), (0, 444_780));
        assert_eq!(judged.deviations_e3, 2_000_000 * 1_000 / 444_780);
    }

    #[test]
    fn what_never_changes_has_a_least_deviation() {
        let mut residuals = Residuals::default();
        (0..300).for_each(|_| residuals.push(7));
        assert_eq!(residuals.recent.len(), RESIDUALS);
        assert_eq!(residuals.judge(7 + LANE_E6 / 100).unwrap().deviations_e3, 1_000);
    }
}
