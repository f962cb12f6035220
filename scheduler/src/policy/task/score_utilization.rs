//! Best score × (1 − utilisation): the fastest lane for the task's kind, discounted by its recent utilisation.

use warptape_events::journal::LaneId;

use super::LaneView;

const PPM: i128 = 1_000_000;

pub(super) fn choose(lanes: &[LaneView]) -> LaneId {
    // One part per million is added, so that the fastest of fully used lanes is chosen.
    let score = |view: &&LaneView| i128::from(view.speed) * (PPM + 1 - i128::from(view.utilization_ppm));
    // Ties go to the lane with fewer tasks, then to the one with the lower number.
    let best = lanes.iter().rev().max_by_key(|view| (score(view), -view.tasks));
    best.expect("the caller has a lane").lane
}

#[cfg(test)]
mod tests {
    use super::super::tests::views;
    use super::*;

    #[test]
    fn a_fast_lane_that_worked_a_lot_is_worth_less() {
        assert_eq!(choose(&views(&[(0, 0, 0, 10, 0), (0, 0, 0, 8, 0)])), 0);
        assert_eq!(choose(&views(&[(0, 0, 0, 10, 300_000), (0, 0, 0, 8, 0)])), 1);
        assert_eq!(choose(&views(&[(0, 0, 0, 8, 1_000_000), (0, 0, 0, 10, 1_000_000)])), 1);
        assert_eq!(choose(&views(&[(2, 0, 0, 8, 0), (1, 0, 0, 8, 0)])), 1);
    }
}
