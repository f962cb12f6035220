//! Earliest completion: the lane that is predicted to finish the task first, after its waiting work.

use warptape_events::journal::LaneId;

use super::LaneView;

pub(super) fn choose(lanes: &[LaneView]) -> LaneId {
    // Ties go to the lane with fewer tasks, then to the one with the lower number: tasks spread while nothing is known.
    let done = |view: &&LaneView| (view.backlog_ns.saturating_add(view.task_ns), view.tasks);
    lanes.iter().min_by_key(done).expect("the caller has a lane").lane
}

#[cfg(test)]
mod tests {
    use super::super::tests::views;
    use super::*;

    #[test]
    fn the_first_to_be_done_wins() {
        assert_eq!(choose(&views(&[(1, 50, 10, 1, 0), (3, 20, 45, 1, 0), (1, 55, 5, 1, 0)])), 0);
        assert_eq!(choose(&views(&[(1, 0, 0, 1, 0), (0, 0, 0, 1, 0)])), 1);
    }
}
