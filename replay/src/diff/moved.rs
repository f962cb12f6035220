//! Groups that were on other lanes, according to the tick records that both runs have.

use std::collections::BTreeMap;

use serde::Serialize;
use warptape_schemas::journal::{GroupIndex, PartitionId};

/// Greatest number of groups listed; those with the most rows on other lanes are listed.
const LISTED_MAX: usize = 50;
/// Greatest number of lane changes kept per group; later ones are ignored.
const CHANGES_MAX: usize = 1_024;

/// Groups that were on other lanes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Moves {
    /// Number of groups that had rows in both runs.
    pub groups: usize,
    /// Number of those groups with records that went to another lane.
    pub elsewhere: usize,
    /// The groups with the most rows on other lanes, most first; at most 50.
    pub listed: Vec<MovedGroup>,
}

/// A group that was on another lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedGroup {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// Offset of the first tick record that went to another lane.
    pub first_offset: i64,
    /// Rows by lane in each run, most first.
    pub lanes: [Vec<LaneRows>; 2],
}

/// Rows of a group on a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneRows {
    /// The lane.
    pub lane: String,
    /// Number of rows that the lane worked on.
    pub rows: i64,
}

/// The lanes of a group's rows.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupWay {
    rows: BTreeMap<String, i64>,
    /// Offsets of tick records at which the group came to a lane, in ascending order.
    changes: Vec<(i64, String)>,
}

/// The lanes of all groups in a run.
pub(super) type Groups = BTreeMap<(PartitionId, GroupIndex), GroupWay>;

impl GroupWay {
    /// Adds rows that went to a lane. `offset` is the offset of their first record.
    pub(super) fn push(&mut self, offset: i64, lane: &str, rows: i64) {
        match self.rows.get_mut(lane) {
            Some(known) => *known += rows,
            None => _ = self.rows.insert(lane.to_owned(), rows),
        }
        // If the records of a lost lane come again, only their first lane counts.
        let is_new = self.changes.last().is_none_or(|(last, on)| on != lane && *last < offset);
        if is_new && self.changes.len() < CHANGES_MAX {
            self.changes.push((offset, lane.to_owned()));
        }
    }

    fn lanes(&self) -> Vec<LaneRows> {
        let mut lanes: Vec<LaneRows> =
            self.rows.iter().map(|(lane, rows)| LaneRows { lane: lane.clone(), rows: *rows }).collect();
        lanes.sort_by_key(|lane| -lane.rows);
        lanes
    }

    fn lane_at(&self, offset: i64) -> Option<&str> {
        let index = self.changes.partition_point(|(from, _)| *from <= offset);
        Some(self.changes[index.checked_sub(1)?].1.as_str())
    }
}

/// Returns the first offset at which a group's lanes differ.
fn first_elsewhere(a: &GroupWay, b: &GroupWay) -> Option<i64> {
    let mut offsets: Vec<i64> = a.changes.iter().chain(&b.changes).map(|(offset, _)| *offset).collect();
    offsets.sort_unstable();
    offsets.into_iter().find(|offset| {
        let lanes = (a.lane_at(*offset), b.lane_at(*offset));
        matches!(lanes, (Some(one), Some(other)) if one != other)
    })
}

/// Returns the least number of rows that went to other lanes in the second run.
fn rows_elsewhere(a: &GroupWay, b: &GroupWay) -> i64 {
    let more = |(lane, rows): (&String, &i64)| (rows - a.rows.get(lane).unwrap_or(&0)).max(0);
    b.rows.iter().map(more).sum()
}

/// Returns the groups of two runs that were on other lanes.
pub(super) fn moves([a, b]: [&Groups; 2]) -> Moves {
    let mut moves = Moves::default();
    let mut all = Vec::new();
    for (&(partition, group), one) in a {
        let Some(other) = b.get(&(partition, group)) else { continue };
        moves.groups += 1;
        let Some(first_offset) = first_elsewhere(one, other) else { continue };
        moves.elsewhere += 1;
        let lanes = [one.lanes(), other.lanes()];
        all.push((-rows_elsewhere(one, other), MovedGroup { partition, group, first_offset, lanes }));
    }
    all.sort_by_key(|(rows, _)| *rows);
    all.truncate(LISTED_MAX);
    moves.listed = all.into_iter().map(|(_, group)| group).collect();
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(parts: &[(i64, &str, i64)]) -> GroupWay {
        let mut way = GroupWay::default();
        parts.iter().for_each(|(offset, lane, rows)| way.push(*offset, lane, *rows));
        way
    }

    fn check(a: &[(i64, &str, i64)], b: &[(i64, &str, i64)], first: Option<i64>, rows: i64) {
        let (a, b) = (way(a), way(b));
        assert_eq!((first_elsewhere(&a, &b), rows_elsewhere(&a, &b)), (first, rows), "{a:?} {b:?}");
    }

    #[test]
    fn the_first_record_on_another_lane_is_found() {
        check(&[(0, "x", 5)], &[(0, "x", 5)], None, 0);
        // Different batch boundaries on the same lanes make no difference.
        check(&[(0, "x", 5)], &[(0, "x", 2), (2, "x", 3)], None, 0);
        check(&[(0, "x", 5)], &[(0, "y", 5)], Some(0), 5);
        check(&[(0, "x", 9)], &[(0, "x", 4), (4, "y", 5)], Some(4), 5);
        check(&[(0, "x", 4), (4, "y", 5)], &[(0, "x", 6), (6, "y", 3)], Some(4), 2);
        // One run begins later than the other.
        check(&[(0, "x", 4), (4, "y", 5)], &[(4, "y", 5)], None, 0);
        // Records that come again after a loss keep their first lane.
        check(&[(0, "x", 4)], &[(0, "x", 4), (0, "y", 4)], None, 4);
    }

    #[test]
    fn groups_with_most_rows_elsewhere_come_first() {
        let of = |ways: &[GroupWay]| -> Groups {
            (0..).zip(ways).map(|(group, way)| ((0, group), way.clone())).collect()
        };
        let a = of(&[way(&[(0, "x", 5)]), way(&[(0, "x", 7)]), way(&[(0, "x", 9)])]);
        let b = of(&[way(&[(0, "y", 5)]), way(&[(0, "y", 7)]), way(&[(0, "x", 9)])]);
        let moves = moves([&a, &b]);
        assert_eq!((moves.groups, moves.elsewhere), (3, 2));
        assert_eq!(moves.listed.iter().map(|group| group.group).collect::<Vec<_>>(), [1, 0]);
    }
}
