//! Shortest queue: the lane with the fewest tasks; in a tie, the one with the lower number.

use warptape_events::journal::LaneId;

use super::LaneView;

pub(super) fn choose(lanes: &[LaneView]) -> LaneId {
    lanes.iter().min_by_key(|view| view.tasks).expect("the caller has a lane").lane
}

#[cfg(test)]
mod tests {
    use super::super::tests::views;
    use super::*;

    #[test]
    fn the_fewest_tasks_win() {
        assert_eq!(choose(&views(&[(2, 0, 0, 9, 0), (1, 99, 0, 1, 0), (1, 0, 0, 1, 0)])), 1);
    }
}
