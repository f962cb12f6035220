//! Balanced load: a group goes to the lane that would then have the least load.
//!
//! The work of lanes is measured (`balance`). Lanes within a sixteenth of the best count as equally good. Among them
//! the group's target lane wins, then the lane closest to the group's present or last lane. A draw decides between the
//! rest.

use warptape_events::journal::SchedulerConfig;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::{GroupView, LaneView};
use crate::topology::Closeness;

/// Version of the rule.
pub(super) const VERSION: i32 = 1;

/// Bits of a score below those of the load: for closeness and the draw. Below: bits for the draw alone.
const TIE_BITS: u32 = 20;
const DRAW_BITS: u32 = 16;
/// Rank of a group's target lane, above any closeness: a group that moves must not return to its old lane.
const BOUND: i64 = Closeness::COUNT as i64;
/// Share by which a lane's load may exceed the least and still count as equally good: 1/16.
const GOOD: i64 = 16;
/// Greatest load that scores distinguish, so that it fits beside the bits for ties: the load of about 4,000 lanes.
const LOAD_NS_MAX: i64 = 1 << 42;

/// The policy's random stream for a seed.
pub(super) fn stream(config: &SchedulerConfig) -> i64 {
    xxh3_64_with_seed(b"placement/balanced", config.placement_seed as u64) as i64
}

/// Score of each lane: the negative load that it would have. The bits below the load decide between equally good lanes.
pub(super) fn scores(group: &GroupView, lanes: &[LaneView]) -> Vec<i64> {
    let load_ns = |lane: &LaneView| lane.others_ns.saturating_add(lane.own_ns).min(LOAD_NS_MAX);
    let best_ns = lanes.iter().map(load_ns).min().unwrap_or(0);
    let score = |lane: &LaneView| {
        let load_ns = load_ns(lane);
        if load_ns > best_ns + best_ns / GOOD {
            return -(load_ns << TIE_BITS);
        }
        let closeness = match lane.closeness {
            _ if lane.is_bound => BOUND,
            Some(closeness) => closeness as i64,
            None => 0,
        };
        -(best_ns << TIE_BITS) + (closeness << DRAW_BITS) + draw(group, lane)
    };
    lanes.iter().map(score).collect()
}

fn draw(group: &GroupView, lane: &LaneView) -> i64 {
    let mut address = [0u8; 20];
    address[..8].copy_from_slice(&group.stream.to_le_bytes());
    address[8..16].copy_from_slice(&group.counter.to_le_bytes());
    address[16..].copy_from_slice(&lane.lane.to_le_bytes());
    (xxh3_64(&address) >> (64 - DRAW_BITS)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Index of the winning lane, given (load of its other groups, time of the group, closeness) for each.
    fn winner(lanes: &[(i64, i64, Closeness)]) -> usize {
        let view = |(lane, &(others_ns, own_ns, closeness))| LaneView {
            lane,
            weight: 1,
            withheld_percent: 0,
            is_short_of_memory: false,
            others_ns,
            own_ns,
            closeness: Some(closeness),
            is_bound: false,
        };
        let views: Vec<_> = (0..).zip(lanes).map(view).collect();
        let scores = scores(&GroupView { stream: 1, counter: 2 }, &views);
        (0..lanes.len()).max_by_key(|&lane| (scores[lane], -(lane as i64))).expect("there are lanes")
    }

    #[test]
    fn the_least_load_wins_and_closeness_decides_between_equals() {
        use Closeness::{Far, Nvlink, SameNode};
        assert_eq!(winner(&[(500, 10, Nvlink), (300, 40, Far), (320, 100, Nvlink)]), 1);
        assert_eq!(
            winner(&[(340, 0, SameNode), (320, 0, Far), (335, 0, Nvlink)]),
            2,
            "all are about as good"
        );
        assert_eq!(winner(&[(341, 0, Nvlink), (320, 0, Far)]), 1, "a sixteenth more is more");
        assert_eq!(winner(&[(i64::MAX, i64::MAX, Far), (i64::MAX, 1, Nvlink)]), 1);
    }

    #[test]
    fn a_draw_decides_the_rest() {
        let stream = 7;
        let mut wins = [0; 4];
        for counter in 0..4_000 {
            let view = |lane| LaneView {
                lane,
                weight: 1,
                withheld_percent: 0,
                is_short_of_memory: false,
                others_ns: 0,
                own_ns: 5,
                closeness: None,
                is_bound: false,
            };
            let views = [0, 1, 2, 3].map(view);
            let scores = scores(&GroupView { stream, counter }, &views);
            wins[(0..4).max_by_key(|&lane| scores[lane]).expect("there are four")] += 1;
        }
        assert!(wins.iter().all(|won| (850..1_150).contains(won)), "{wins:?}");
    }
}
