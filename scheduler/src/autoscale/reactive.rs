//! The number of lanes for a load: it rises at once, falls after a hold, and stays within limits.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use warptape_events::journal::{AutoscaleConfig, ScaleReason};

use super::LANE_E6;

/// The wanted number of lanes, and the numbers that would have been enough in the last windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stabilizer {
    lanes: i32,
    /// Lanes that would have been enough in each window of the hold, with the hysteresis, the oldest first.
    recent: VecDeque<i32>,
}

/// Lanes for a load at this utilisation, at least one; waiting work adds to the load.
fn lanes_for(load_e6: i64, waiting_e6: i64, utilization_percent: i32) -> i32 {
    let by_load_e6 = load_e6 * 100 / i64::from(utilization_percent.max(1));
    let lanes = (by_load_e6 + waiting_e6 + LANE_E6 - 1) / LANE_E6;
    lanes.clamp(1, i64::from(i32::MAX)) as i32
}

impl Stabilizer {
    pub(super) fn new(lanes: i32) -> Self {
        Self { lanes, recent: VecDeque::new() }
    }

    pub(super) fn lanes(&self) -> i32 {
        self.lanes
    }

    /// Lanes that are enough for a load and waiting work. Second, the most lanes that any window of the hold needed
    /// with the hysteresis, including this one.
    pub(super) fn lanes_for(&self, config: &AutoscaleConfig, load_e6: i64, waiting_e6: i64) -> (i32, i32) {
        let &AutoscaleConfig { utilization_percent, hysteresis_percent, hold_windows, .. } = config;
        let least = lanes_for(load_e6, waiting_e6, utilization_percent);
        let enough = lanes_for(load_e6, waiting_e6, utilization_percent - hysteresis_percent);
        let before = self.recent.iter().rev().take(hold_windows.max(0) as usize);
        (least, before.copied().fold(enough, i32::max))
    }

    /// The number of lanes wanted for a load and waiting work, and the reason; `cause` says what the load is.
    pub(super) fn settle(
        &mut self,
        config: &AutoscaleConfig,
        load_e6: i64,
        waiting_e6: i64,
        cause: ScaleReason,
    ) -> (i32, ScaleReason) {
        let &AutoscaleConfig { utilization_percent, hysteresis_percent, lanes_min, lanes_max, .. } = config;
        let (least, held) = self.lanes_for(config, load_e6, waiting_e6);
        self.recent.push_back(lanes_for(load_e6, waiting_e6, utilization_percent - hysteresis_percent));
        while self.recent.len() > config.hold_windows.max(0) as usize + 1 {
            self.recent.pop_front();
        }
        // Without a hysteresis both numbers are equal.
        let wanted = if least > self.lanes { least } else { self.lanes.min(held) };
        let lanes = wanted.clamp(lanes_min, lanes_max);
        let reason = if lanes != wanted {
            ScaleReason::Limit
        } else if wanted > least {
            ScaleReason::Hold
        } else if wanted > lanes_for(load_e6, 0, utilization_percent) {
            ScaleReason::Waiting
        } else {
            cause
        };
        self.lanes = lanes;
        (lanes, reason)
    }
}
