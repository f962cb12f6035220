//! Lanes for a load: more at once, fewer after a hold, within limits.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use warptape_events::journal::{AutoscaleConfig, ScaleReason};

use super::LANE_E6;

/// Wanted lanes, and lanes that would have been enough in the last windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stabilizer {
    lanes: i32,
    /// Lanes that would have been enough with the hysteresis in the windows of the hold, the oldest first.
    recent: VecDeque<i32>,
}

/// Lanes for a load at this utilisation, at least one; waiting work gets lanes of its own.
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

    /// Lanes that are enough for a load and waiting work. Second, the most lanes that were enough with the hysteresis
    /// in a window of the hold, including this one.
    pub(super) fn lanes_for(&self, config: &AutoscaleConfig, load_e6: i64, waiting_e6: i64) -> (i32, i32) {
        let &AutoscaleConfig { utilization_percent, hysteresis_percent, hold_windows, .. } = config;
        let least = lanes_for(load_e6, waiting_e6, utilization_percent);
        let enough = lanes_for(load_e6, waiting_e6, utilization_percent - hysteresis_percent);
        let before = self.recent.iter().rev().take(hold_windows.max(0) as usize);
        (least, before.copied().fold(enough, i32::max))
    }

    /// Lanes that are wanted for a load and waiting work, and the reason; the cause says what the load is.
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
        // Without a hysteresis both are the same.
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
