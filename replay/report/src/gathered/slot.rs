//! The events and amounts in a slot of time. All are sums, except for latencies, which are a histogram.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use warptape_schemas::journal::{GroupIndex, LaneId, PartitionId};

use crate::slots::Merge;

/// A lane of a process: partition of the journal, and index of the lane.
pub type LaneKey = (i32, LaneId);
/// A group: its partition, and its index in the partition.
pub type GroupKey = (PartitionId, GroupIndex);

/// Significant digits of the latencies in a slot.
const DIGITS: u8 = 2;

/// The events and amounts in a slot.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// Number of rows that arrived.
    pub rows: u64,
    /// Number of signals that were committed.
    pub signals: u64,
    /// Times from the publication of ticks to the commit of their signals, ns.
    pub latency: Latency,
    /// Time that rows waited on the host within this slot, summed over the rows, ns.
    pub waiting_row_ns: u128,
    /// The work of each lane.
    pub lanes: BTreeMap<LaneKey, LaneSlot>,
    /// Time that each group spent on each lane, ns; empty if there are too many groups.
    pub groups: BTreeMap<GroupKey, BTreeMap<LaneKey, u64>>,
    /// Number of rows that arrived, by group; empty if there are too many groups.
    pub group_rows: BTreeMap<GroupKey, u64>,
    /// Time for which each partition was paused, ns.
    pub paused: BTreeMap<PartitionId, u64>,
    /// Time for which lanes were wanted within this slot, summed over the lanes, ns.
    pub wanted_lane_ns: u128,
    /// Number of events, by [`EventKind`].
    pub events: [u32; EventKind::ALL.len()],
}

/// The work of a lane in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneSlot {
    /// Time for which the lane worked on batches and slices, ns.
    pub busy_ns: u64,
    /// Time that groups spent on the lane within this slot, summed over the groups, ns.
    pub group_ns: u128,
    /// Rows and work time of the batches completed in this slot.
    pub batches: BatchWork,
}

/// Rows and work time of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchWork {
    /// Number of rows.
    pub rows: u64,
    /// Time for which lanes worked on the batches, ns.
    pub ns: u64,
}

impl BatchWork {
    /// Adds the work of other batches.
    pub(super) fn add(&mut self, other: Self) {
        add(&mut self.rows, other.rows);
        add(&mut self.ns, other.ns);
    }

    /// Returns the work time per row, in nanoseconds; `None` if there are no rows.
    pub fn ns_per_row(&self) -> Option<u64> {
        self.ns.checked_div(self.rows)
    }
}

/// A kind of event that is marked in charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// A process life began.
    Life,
    /// A lane was lost.
    LaneLost,
    /// A breaker changed its state.
    Breaker,
    /// The temperature of a device changed the weight of its lanes.
    Headroom,
    /// A process was asked to drain.
    Draining,
    /// The wanted number of lanes changed.
    Wanted,
    /// An attempt to commit was aborted.
    Aborted,
    /// A process recorded nothing for a while although something was due.
    Hole,
}

impl EventKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Life,
        Self::LaneLost,
        Self::Breaker,
        Self::Headroom,
        Self::Draining,
        Self::Wanted,
        Self::Aborted,
        Self::Hole,
    ];
}

impl Merge for Slot {
    fn merge(&mut self, other: Self) {
        add(&mut self.rows, other.rows);
        add(&mut self.signals, other.signals);
        self.latency.merge(other.latency);
        self.waiting_row_ns = self.waiting_row_ns.saturating_add(other.waiting_row_ns);
        self.wanted_lane_ns = self.wanted_lane_ns.saturating_add(other.wanted_lane_ns);
        for (lane, of) in other.lanes {
            let lane = self.lanes.entry(lane).or_default();
            add(&mut lane.busy_ns, of.busy_ns);
            lane.group_ns = lane.group_ns.saturating_add(of.group_ns);
            lane.batches.add(of.batches);
        }
        for (group, lanes) in other.groups {
            let group = self.groups.entry(group).or_default();
            lanes.into_iter().for_each(|(lane, ns)| add(group.entry(lane).or_default(), ns));
        }
        for (group, rows) in other.group_rows {
            add(self.group_rows.entry(group).or_default(), rows);
        }
        other
            .paused
            .into_iter()
            .for_each(|(partition, ns)| add(self.paused.entry(partition).or_default(), ns));
        self.events
            .iter_mut()
            .zip(other.events)
            .for_each(|(count, more)| *count = count.saturating_add(more));
    }
}

/// Adds a number from a journal, which may be of any size, without overflow.
pub(super) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Latencies; possibly none.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    histogram: Option<Box<Histogram<u64>>>,
    max_ns: u64,
}

impl Latency {
    /// Adds a latency. A latency that is negative because of clock skew counts as 0.
    pub fn add(&mut self, latency_ns: i64, digits: u8) {
        let ns = u64::try_from(latency_ns).unwrap_or(0);
        self.max_ns = self.max_ns.max(ns);
        let histogram = self.histogram.get_or_insert_with(|| Box::new(empty(digits)));
        histogram.record(ns).expect("the histogram makes room for any value");
    }

    /// Adds a latency with the precision of slots.
    pub(super) fn add_to_slot(&mut self, latency_ns: i64) {
        self.add(latency_ns, DIGITS);
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, |histogram| histogram.len())
    }

    /// Returns the greatest latency, in nanoseconds; `None` if there is none.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// Returns the latency that `permille` in 1,000 latencies do not exceed, ns; `None` if there is none.
    pub fn permille_ns(&self, permille: u32) -> Option<u64> {
        let histogram = self.histogram.as_ref().filter(|histogram| !histogram.is_empty())?;
        Some(histogram.value_at_quantile(f64::from(permille) / 1e3).min(self.max_ns))
    }

    fn merge(&mut self, other: Self) {
        self.max_ns = self.max_ns.max(other.max_ns);
        match (&mut self.histogram, other.histogram) {
            (Some(own), Some(other)) => own.add(&*other).expect("the histogram makes room for any value"),
            (None, other) => self.histogram = other,
            (_, None) => {}
        }
    }
}

fn empty(digits: u8) -> Histogram<u64> {
    Histogram::new(digits).expect("a histogram has up to five digits")
}
