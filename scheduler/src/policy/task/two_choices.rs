//! The power of two choices: the lane with fewer tasks of two drawn ones.

use warptape_events::journal::{LaneId, TaskId};

use super::LaneView;
use super::draw::draw;

pub(super) fn choose(lanes: &[LaneView], task: TaskId, seed: i64) -> LaneId {
    let [one, other] = [0, 1].map(|number| &lanes[draw("task/two-choices", seed, task, number, lanes.len())]);
    if other.tasks < one.tasks { other.lane } else { one.lane }
}

#[cfg(test)]
mod tests {
    use super::super::tests::views;
    use super::*;

    #[test]
    fn draws_are_addressed_and_even_and_the_shorter_queue_wins() {
        let lanes = views(&[(0, 0, 0, 1, 0), (0, 0, 0, 1, 0), (9, 0, 0, 1, 0), (0, 0, 0, 1, 0)]);
        let chosen: Vec<_> = (0..4_000).map(|task| choose(&lanes, task, 7)).collect();
        let count = |lane| chosen.iter().filter(|chosen| **chosen == lane).count();
        // A task joins the long queue only if both draws are that lane: one in sixteen. The other lanes share the rest,
        // 1,250 each.
        assert!((150..350).contains(&count(2)), "{}", count(2));
        assert!([0, 1, 3].into_iter().all(|lane| (1_100..1_400).contains(&count(lane))));
        assert_eq!(chosen, (0..4_000).map(|task| choose(&lanes, task, 7)).collect::<Vec<_>>());
        assert_ne!(chosen, (0..4_000).map(|task| choose(&lanes, task, 8)).collect::<Vec<_>>());
    }
}
