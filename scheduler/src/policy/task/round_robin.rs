//! Round robin: lanes get tasks in turn, in the order of their numbers.

use warptape_events::journal::LaneId;

use super::{LaneView, Turns};

pub(super) fn choose(lanes: &[LaneView], turns: &mut Turns) -> LaneId {
    let next = lanes.iter().find(|view| view.lane > turns.last).unwrap_or(&lanes[0]);
    turns.last = next.lane;
    next.lane
}

#[cfg(test)]
mod tests {
    use super::super::tests::views;
    use super::*;

    #[test]
    fn lanes_have_turns() {
        let (lanes, mut turns) = (views(&[(0, 0, 0, 1, 0); 3]), Turns { last: -1, ..Turns::default() });
        let chosen: Vec<_> = (0..5).map(|_| choose(&lanes, &mut turns)).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1]);
        assert_eq!(choose(&lanes[..1], &mut turns), 0, "a lane that is not there has no turn");
    }
}
