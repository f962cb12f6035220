//! What happened in a slot of time. All of it are sums but latencies, of which there is a histogram.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use warptape_schemas::journal::{GroupIndex, LaneId, PartitionId};

use crate::slots::Merge;

/// A lane of a process: partition of the journal, and index of the lane.
pub type LaneKey = (i32, LaneId);
/// A group: its partition, and its number there.
pub type GroupKey = (PartitionId, GroupIndex);

/// Digits of a latency that a slot's histogram keeps.
const DIGITS: u8 = 2;

/// What happened in a slot.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// Rows that came.
    pub rows: u64,
    /// Signals that were committed.
    pub signals: u64,
    /// Times from the publication of ticks to the commit of their signals, in nanoseconds.
    pub latency: Latency,
    /// Rows that waited on the host, each by how long it did in this slot, in nanoseconds.
    pub waiting_row_ns: u128,
    /// What each lane did.
    pub lanes: BTreeMap<LaneKey, LaneSlot>,
    /// How long each group was on each lane, in nanoseconds; of no group where there are too many.
    pub groups: BTreeMap<GroupKey, BTreeMap<LaneKey, u64>>,
    /// Rows that came of each group; of no group where there are too many.
    pub group_rows: BTreeMap<GroupKey, u64>,
    /// How long each partition was paused, in nanoseconds.
    pub paused: BTreeMap<PartitionId, u64>,
    /// Lanes that were wanted, each by how long it was in this slot, in nanoseconds.
    pub wanted_lane_ns: u128,
    /// Numbers of events, by [`EventKind`].
    pub events: [u32; EventKind::ALL.len()],
}

/// What a lane did in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneSlot {
    /// Time that it worked on batches and slices, in nanoseconds.
    pub busy_ns: u64,
    /// Groups on it, each by how long it was there in this slot, in nanoseconds.
    pub group_ns: u128,
    /// What batches took that were done in this slot.
    pub batches: BatchWork,
}

/// What batches took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchWork {
    /// Their rows.
    pub rows: u64,
    /// Time that their lane worked on them, in nanoseconds.
    pub ns: u64,
}

impl BatchWork {
    /// Adds others.
    pub(super) fn add(&mut self, other: Self) {
        add(&mut self.rows, other.rows);
        add(&mut self.ns, other.ns);
    }

    /// What a row took, in nanoseconds; `None` where there were none.
    pub fn ns_per_row(&self) -> Option<u64> {
        self.ns.checked_div(self.rows)
    }
}

/// Something that charts have a mark for.
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
    /// A process was told to end.
    Draining,
    /// Another number of lanes was wanted.
    Wanted,
    /// An attempt to commit was aborted.
    Aborted,
    /// A process recorded nothing for a while, though something was due.
    Hole,
}

impl EventKind {
    /// All of them, in the order of their numbers.
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

/// Adds what a journal says, which may be anything.
pub(super) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Latencies, of which there may be none.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    histogram: Option<Box<Histogram<u64>>>,
    max_ns: u64,
}

impl Latency {
    /// Adds one. What clocks make negative counts as 0.
    pub fn add(&mut self, latency_ns: i64, digits: u8) {
        let ns = u64::try_from(latency_ns).unwrap_or(0);
        self.max_ns = self.max_ns.max(ns);
        let histogram = self.histogram.get_or_insert_with(|| Box::new(empty(digits)));
        histogram.record(ns).expect("the histogram makes room for any value");
    }

    /// Adds one with the digits that slots have.
    pub(super) fn add_to_slot(&mut self, latency_ns: i64) {
        self.add(latency_ns, DIGITS);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, |histogram| histogram.len())
    }

    /// The greatest, in nanoseconds; `None` of none.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// What so many of a thousand are within, in nanoseconds; `None` of none.
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
