//! Weighted round robin with observed weights: lanes get tasks in turn, in proportion to their speed for the task's
//! kind.
//!
//! Turns are smooth. With every task, each lane's credit grows by its speed. The lane with the most credit gets the
//! task, and loses the sum of all speeds.

use warptape_events::journal::LaneId;

use super::{LaneView, Turns};

/// Sum of all lanes' growth per task, whatever the units of their speeds, so that kinds of tasks may alternate.
const TOTAL: i128 = 1 << 40;

pub(super) fn choose(lanes: &[LaneView], turns: &mut Turns) -> LaneId {
    let lane_last = lanes.last().expect("the caller has a lane").lane as usize;
    if turns.behind.len() <= lane_last {
        turns.behind.resize(lane_last + 1, 0);
    }
    let speeds: i128 = lanes.iter().map(|view| i128::from(view.speed)).sum();
    let mut given = 0;
    for view in lanes {
        let gain = (TOTAL * i128::from(view.speed) / speeds.max(1)) as i64;
        turns.behind[view.lane as usize] += gain;
        given += gain;
    }
    // Ties go to the lane with the lower number.
    let furthest = lanes.iter().rev().max_by_key(|view| turns.behind[view.lane as usize]);
    let lane = furthest.expect("the caller has a lane").lane;
    turns.behind[lane as usize] -= given;
    lane
}

#[cfg(test)]
mod tests {
    use super::super::tests::views;
    use super::*;

    #[test]
    fn lanes_have_turns_in_proportion_to_their_speed() {
        let lanes = views(&[(0, 0, 0, 3, 0), (0, 0, 0, 1, 0), (0, 0, 0, 2, 0)]);
        let mut turns = Turns::default();
        let chosen: Vec<_> = (0..12).map(|_| choose(&lanes, &mut turns)).collect();
        assert_eq!(chosen, [0, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn sums_stay_bounded() {
        let lanes = views(&[(0, 0, 0, i64::MAX, 0), (0, 0, 0, 1, 0)]);
        let mut turns = Turns::default();
        (0..10_000).for_each(|_| _ = choose(&lanes, &mut turns));
        assert!(turns.behind.iter().all(|behind| behind.unsigned_abs() <= 1 << 41), "{turns:?}");
    }
}
