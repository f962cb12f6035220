//! The rows that arrived according to the journal, compared with the rows that the tick records yield.
//!
//! Rows are compared as sums over records. Each row is weighted by its group, so that consecutive arrivals can be
//! merged. A snapshot that began with an arrival added a row to every group, but the journal does not show at which
//! arrivals this happened.

use std::collections::BTreeMap;

use warptape_schemas::journal::{Arrived, Input, JournalEntry, LaneLost, PartitionAssigned};
use xxhash_rust::xxh3::xxh3_64;

use crate::segments::ConfigId;
use crate::{Difference, JournalDivergence};

/// Greatest number of arrivals kept per partition; beyond it, neighbours are merged.
const RANGES_MAX: usize = 65_536;

/// All arrivals of a log.
#[derive(Default)]
pub(crate) struct Arrivals {
    partitions: BTreeMap<i32, Vec<Arrival>>,
    /// For each partition in the life being read: start of the next arrival, and the fold to which its records belong.
    positions: BTreeMap<i32, (i64, i64)>,
    /// First record of the newest state of a partition under a configuration.
    folds: BTreeMap<(i32, ConfigId), i64>,
    /// Rows and bytes of the life's first arrival, for comparison: all rows of a life have the same size.
    row: Option<(i64, i64)>,
    /// True if a lane was lost, after which rows that were in flight arrive again.
    again: bool,
}

/// Rows of the tick records `first..next`.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    fold: FoldId,
    first: i64,
    next: i64,
    /// Weighted sum of the rows.
    rows: u64,
    /// Number of arrivals that were merged.
    count: u64,
    /// True if the number of bytes agrees with the number of rows.
    has_bytes: bool,
    entry: ArrivalPlace,
}

/// A configuration, and the first record of a state under it.
pub(crate) type FoldId = (ConfigId, i64);

/// The journal entry of the first arrival.
#[derive(Clone, Copy, Debug)]
struct ArrivalPlace {
    journal: i32,
    offset: i64,
    sequence: i64,
    at_ns: i64,
}

/// Returns the weight of a group's row in a sum.
pub(crate) fn weight(group: i32) -> u64 {
    xxh3_64(&group.to_le_bytes()) | 1
}

impl Arrivals {
    /// Begins another partition of the journal.
    pub(crate) fn begin(&mut self) {
        self.positions.clear();
        (self.again, self.row) = (false, None);
    }

    /// Adds the next entry, at an offset of the journal's partition. `config` is the stage configuration of its
    /// process.
    pub(crate) fn add(&mut self, journal: i32, offset: i64, entry: &JournalEntry, config: ConfigId) {
        let is_again = std::mem::take(&mut self.again);
        match &entry.input {
            Input::Started(_) => {
                self.positions.clear();
                self.row = None;
            }
            Input::PartitionAssigned(assigned) => {
                let &PartitionAssigned { partition, snapshot_offset, is_emptied, .. } = assigned;
                let fold = self.folds.entry((partition, config)).or_default();
                if is_emptied {
                    *fold = snapshot_offset;
                }
                self.positions.insert(partition, (snapshot_offset, *fold));
            }
            Input::PartitionRevoked(revoked) => drop(self.positions.remove(&revoked.partition)),
            Input::LaneLost(LaneLost { kept, .. }) => self.again = *kept,
            Input::Arrived(arrived) => {
                let Some(position) = self.positions.get_mut(&arrived.partition) else { return };
                let (first, fold) = *position;
                position.0 = arrived.next_offset;
                // After the loss of a lane, its earlier rows arrive again, one partition at a time.
                self.again = is_again && first == arrived.next_offset;
                if !self.again {
                    let &JournalEntry { sequence, at_ns, .. } = entry;
                    self.push(
                        first,
                        arrived,
                        ArrivalPlace { journal, offset, sequence, at_ns },
                        (config, fold),
                    );
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, first: i64, arrived: &Arrived, entry: ArrivalPlace, fold: FoldId) {
        let weighed = arrived.groups.iter().map(|group| weight(group.group).wrapping_mul(group.rows as u64));
        let rows = weighed.fold(0, u64::wrapping_add);
        let has_bytes = arrived.groups.iter().all(|arrival| {
            let (rows, bytes) = *self.row.get_or_insert((arrival.rows, arrival.bytes));
            i128::from(arrival.bytes) * i128::from(rows) == i128::from(bytes) * i128::from(arrival.rows)
        });
        let arrivals = self.partitions.entry(arrived.partition).or_default();
        if arrivals.len() >= RANGES_MAX {
            thin(arrivals);
        }
        arrivals.push(Arrival { fold, first, next: arrived.next_offset, rows, count: 1, has_bytes, entry });
    }

    /// Drops all arrivals, for callers that do not compare them.
    pub(crate) fn forget(&mut self) {
        self.partitions.clear();
    }

    /// Returns the offsets, from `from` on, at which arrivals of a fold begin or end, in ascending order.
    pub(crate) fn bounds(&self, partition: i32, fold: FoldId, from: i64) -> Vec<i64> {
        let of_partition = self.partitions.get(&partition).into_iter().flatten();
        let of_fold = of_partition.filter(|arrival| arrival.fold == fold);
        let mut bounds: Vec<i64> = of_fold.flat_map(|arrival| [arrival.first, arrival.next]).collect();
        bounds.retain(|bound| *bound >= from);
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }

    /// Returns the first arrival of a fold whose rows differ from those of its records. `sums` has the sum of all
    /// records before each bound, in ascending order.
    pub(crate) fn divergence(
        &self,
        topic: &str,
        partition: i32,
        fold: FoldId,
        groups: usize,
        sums: &[(i64, u64)],
    ) -> Option<JournalDivergence> {
        let barrier = (0..groups as i32).map(weight).fold(0, u64::wrapping_add);
        let sum = |bound: i64| {
            let index = sums.binary_search_by_key(&bound, |(bound, _)| *bound).ok()?;
            Some(sums[index].1)
        };
        let is_other = |arrival: &&Arrival| {
            let (Some(before), Some(to)) = (sum(arrival.first), sum(arrival.next)) else { return false };
            let mut rest = arrival.rows.wrapping_sub(to.wrapping_sub(before));
            let is_right = (0..=arrival.count).any(|_| {
                let is_all = rest == 0;
                rest = rest.wrapping_sub(barrier);
                is_all
            });
            arrival.fold == fold && !(is_right && arrival.has_bytes)
        };
        let arrival = self.partitions.get(&partition)?.iter().find(is_other)?;
        let ArrivalPlace { journal, offset, sequence, at_ns } = arrival.entry;
        let expected =
            format!("the rows of the records of offsets {} to {}", arrival.first, arrival.next - 1);
        Some(JournalDivergence {
            topic: topic.to_owned(),
            partition: journal,
            offset,
            sequence,
            software: None,
            at_ns: Some(at_ns),
            input: None,
            differences: vec![Difference::new("input.Arrived.groups", expected, "others")],
        })
    }
}

/// Merges neighbours in pairs.
fn thin(arrivals: &mut Vec<Arrival>) {
    let mut thinned: Vec<Arrival> = Vec::with_capacity(arrivals.len());
    for (index, arrival) in arrivals.drain(..).enumerate() {
        match thinned.last_mut() {
            Some(last) if index % 2 == 1 && (last.next, last.fold) == (arrival.first, arrival.fold) => {
                last.next = arrival.next;
                last.rows = last.rows.wrapping_add(arrival.rows);
                last.count += arrival.count;
                last.has_bytes &= arrival.has_bytes;
            }
            _ => thinned.push(arrival),
        }
    }
    *arrivals = thinned;
}

#[cfg(test)]
mod tests {
    use warptape_schemas::hex::Digits;
    use warptape_schemas::journal::GroupArrival;

    use super::*;

    fn add(arrivals: &mut Arrivals, input: Input) {
        let (state_hash, hash, decisions) = (Digits::zeros(), Digits::zeros(), Vec::new());
        let entry = JournalEntry { sequence: 0, at_ns: 0, input, decisions, state_hash, hash };
        arrivals.add(0, 0, &entry, 0);
    }

    fn arrive(arrivals: &mut Arrivals, next_offset: i64, rows: [i64; 2]) {
        let group = |(group, &rows): (i32, &i64)| GroupArrival { group, rows, bytes: 40 * rows };
        let groups = (0..).zip(&rows).map(group).filter(|group| group.rows > 0).collect();
        add(arrivals, Input::Arrived(Arrived { partition: 0, next_offset, groups }));
    }

    /// True if the arrivals agree with records that have these rows at offsets 0, 1 and so on.
    fn fits(arrivals: &Arrivals, records: &[[u64; 2]]) -> bool {
        let mut sums = vec![(0, 0_u64)];
        for (bound, rows) in (1..).zip(records) {
            let weighed = weight(0).wrapping_mul(rows[0]).wrapping_add(weight(1).wrapping_mul(rows[1]));
            sums.push((bound, sums[sums.len() - 1].1.wrapping_add(weighed)));
        }
        arrivals.divergence("journal", 0, (0, 0), 2, &sums).is_none()
    }

    #[test]
    fn rows_are_those_of_the_records_and_of_a_barrier() {
        let mut arrivals = Arrivals::default();
        let assigned = PartitionAssigned {
            partition: 0,
            groups: 2,
            committed_offset: 1,
            snapshot_offset: 1,
            ..PartitionAssigned::default()
        };
        add(&mut arrivals, Input::PartitionAssigned(assigned));
        arrive(&mut arrivals, 3, [2, 5]);
        arrive(&mut arrivals, 4, [1, 2]);
        assert_eq!(arrivals.bounds(0, (0, 0), 0), [1, 3, 4]);
        assert!(fits(&arrivals, &[[9, 9], [1, 5], [1, 0], [1, 2]]));
        // The second arrival included a barrier.
        assert!(fits(&arrivals, &[[9, 9], [1, 5], [1, 0], [0, 1]]));
        assert!(!fits(&arrivals, &[[9, 9], [1, 5], [1, 0], [1, 1]]));
        assert!(!fits(&arrivals, &[[9, 9], [1, 4], [1, 1], [1, 3]]));
        thin(arrivals.partitions.get_mut(&0).expect("it was assigned"));
        assert_eq!(arrivals.bounds(0, (0, 0), 0), [1, 4]);
        assert!(fits(&arrivals, &[[9, 9], [1, 5], [1, 0], [0, 1]]));
        assert!(!fits(&arrivals, &[[9, 9], [1, 5], [1, 0], [1, 1]]));
    }

    #[test]
    fn rows_of_a_lost_lane_arrive_again() {
        let mut arrivals = Arrivals::default();
        let assigned = PartitionAssigned {
            partition: 0,
            groups: 2,
            committed_offset: 0,
            snapshot_offset: 0,
            ..PartitionAssigned::default()
        };
        add(&mut arrivals, Input::PartitionAssigned(assigned));
        arrive(&mut arrivals, 1, [2, 5]);
        let lost = LaneLost { lane: 0, reason: String::new(), kept: true };
        add(&mut arrivals, Input::LaneLost(lost));
        arrive(&mut arrivals, 1, [1, 0]);
        arrive(&mut arrivals, 2, [1, 0]);
        assert!(fits(&arrivals, &[[2, 5], [1, 0]]));
    }
}
