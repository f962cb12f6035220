//! Quality of placement: balance, bounded load, and few moves after the loss of a lane.

use std::collections::BTreeMap;

use warptape_events::journal::*;
use warptape_scheduler::Scheduler;

use crate::script::{assigned, config, started};

const PARTITIONS: i32 = 64;
const GROUPS: i32 = 16;

type Map = BTreeMap<(PartitionId, GroupIndex), LaneId>;

/// Places all groups while these lanes are lost from the beginning.
fn place_all(load_factor_percent: i32, weights: &[i32], lost: &[LaneId]) -> Map {
    let mut scheduler = Scheduler::new();
    let config = SchedulerConfig { load_factor_percent, ..config() };
    let losses =
        lost.iter().map(|&lane| Input::LaneLost(LaneLost { lane, reason: String::new(), kept: false }));
    let assignments = (0..PARTITIONS).map(|partition| assigned(partition, GROUPS));
    let mut placed = Map::new();
    for input in [started(config, weights)].into_iter().chain(losses).chain(assignments) {
        let mut decisions = Vec::new();
        scheduler.step(0, &input, &mut decisions).expect("good input");
        placed.extend(decisions.iter().filter_map(|decision| match decision {
            Decision::Place(place) => Some(((place.partition, place.group), place.lane)),
            _ => None,
        }));
    }
    assert_eq!(placed.len(), (PARTITIONS * GROUPS) as usize);
    placed
}

fn loads(placed: &Map, lanes: usize) -> Vec<i32> {
    let mut loads = vec![0; lanes];
    placed.values().for_each(|&lane| loads[lane as usize] += 1);
    loads
}

/// Checks that the loss of a lane moves its groups, and at most this percentage of the others.
fn check_moves(load_factor_percent: i32, others_moved_percent_max: i32) {
    let weights = [1; 8];
    let before = place_all(load_factor_percent, &weights, &[]);
    for lost in 0..8 {
        let after = place_all(load_factor_percent, &weights, &[lost]);
        let others: Vec<_> = before.iter().filter(|&(_, &lane)| lane != lost).collect();
        let moved = others.iter().filter(|&&(key, lane)| after[key] != *lane).count();
        let percent = 100 * moved as i32 / others.len() as i32;
        assert!(percent <= others_moved_percent_max, "lane {lost}: {percent} % of the others' groups moved");
        assert!(after.values().all(|&lane| lane != lost));
    }
}

#[test]
fn a_lost_lane_moves_only_its_groups_while_no_lane_is_full() {
    check_moves(1_000, 0);
}

#[test]
fn bounded_load_moves_few_groups_more() {
    check_moves(150, 2);
    check_moves(125, 12);
}

#[test]
fn loads_stay_within_their_bounds() {
    for (factor, weights) in [(100, vec![1; 8]), (110, vec![1, 1, 2, 4]), (125, vec![100, 1, 50])] {
        let total = PARTITIONS * GROUPS;
        let weight_total: i32 = weights.iter().sum();
        for (load, weight) in
            loads(&place_all(factor, &weights, &[]), weights.len()).into_iter().zip(&weights)
        {
            let bound = (factor * total * weight + 100 * weight_total - 1) / (100 * weight_total);
            // Groups are added partition by partition, and each bound counts only the groups known by then.
            assert!(load <= bound, "{load} groups, at most {bound} allowed");
        }
    }
    let even = loads(&place_all(100, &[1; 8], &[]), 8);
    assert_eq!(even, [128; 8], "a load factor of 100 leaves no slack");
}

#[test]
fn a_returning_lane_takes_only_groups_nobody_owns() {
    let mut scheduler = Scheduler::new();
    let mut decisions = Vec::new();
    let lost = |lane| Input::LaneLost(LaneLost { lane, reason: String::new(), kept: false });
    for input in [started(config(), &[1, 1]), assigned(0, 4), lost(0), lost(1), assigned(0, 4)] {
        scheduler.step(0, &input, &mut decisions).expect("good input");
    }
    assert!(scheduler.placements().all(|placement| placement.lane.is_none() && placement.epoch == 1));
    for lane in [1, 0] {
        scheduler.step(0, &Input::LaneReady(LaneReady { lane }), &mut decisions).expect("good input");
    }
    assert!(scheduler.placements().all(|placement| placement.lane == Some(1) && placement.epoch == 2));
}

#[test]
fn a_lane_that_stands_by_gets_groups_only_when_no_other_is_ready() {
    let weights = [3, 0, 1, 0];
    let total = (PARTITIONS * GROUPS) as usize;
    let on = |lost: &[LaneId]| loads(&place_all(125, &weights, lost), weights.len());
    for (lost, standing_by) in [(&[][..], [1, 3]), (&[0], [1, 3]), (&[0, 2], [0, 2]), (&[0, 1, 2], [0, 2])] {
        let loads = on(lost);
        assert!(standing_by.iter().all(|&lane| loads[lane] == 0), "{lost:?} lost: {loads:?}");
        assert_eq!(loads.iter().sum::<i32>() as usize, total);
    }
    let [_, left, _, right] = on(&[0, 2])[..] else { panic!("there are four lanes") };
    assert!(left.abs_diff(right) < 300, "lanes that stand by are equals: {left} and {right}");
}
