//! A lane that runs batches of ticks and slices of tasks side by side.
//!
//! ```text
//!   batches, in order:  ▓▓▓▓▓▓▓▓░░░▓▓▓▓░░░░░░▓▓▓▓▓▓      beside a batch a slice has a part of the lane: half of it if its task is critical,
//!   one slice:          ▁▁▁▁▁▁▁▁███▁▁▁▁██████▁▁▁▁▁▁      1/11 otherwise. Whoever is alone has all of it.
//! ```
//!
//! The shares equal those of two threads that compete for one core. Critical tasks have the priority of ticks. Other
//! tasks have a nice value greater by ten, which gives them about a tenth of the weight on Linux. The model assumes the
//! same shares for slices on GPUs, which run in a stream of lower priority.

use std::collections::VecDeque;

use warptape_events::journal::{LaneId, Released};

use crate::faults::Slowness;

/// Number of parts into which the time of a lane is divided.
const PARTS: i64 = 22;
/// Parts that a critical slice gets beside a batch; any other slice gets the next constant.
const CRITICAL_PARTS: i64 = 11;
const OTHER_PARTS: i64 = 2;

/// An order for a lane. The lane executes its orders one after the other, beside its slice.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// A batch, with its remaining time on the whole lane in nanoseconds.
    Batch { batch: i64, left_ns: i64 },
    /// A group to give back once earlier orders are done.
    GiveBack(Released),
}

/// The work that ends: a batch or a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ends {
    /// The first batch.
    Batch,
    /// The slice.
    Slice,
}

/// The state of a slice.
#[derive(Clone, Copy, Debug)]
struct Slice {
    left_ns: i64,
    parts: i64,
    /// Lane time received so far, in nanoseconds.
    had_ns: i64,
}

/// Time that a lane has worked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Time in which the lane had a batch or a slice, in nanoseconds.
    pub(crate) busy_ns: i64,
    /// The slice's part of the busy time, in nanoseconds.
    pub(crate) slice_ns: i64,
}

/// The state of one lane.
#[derive(Clone, Debug)]
pub(crate) struct SharedLane {
    lane: LaneId,
    orders: VecDeque<Order>,
    slice: Option<Slice>,
    /// A slice that yields to `slice`; `None` if no slice yields.
    passed: Option<Slice>,
    /// Time up to which the lane has worked, in nanoseconds from the start of the run.
    at_ns: i64,
    /// Time at which the first batch began.
    began_ns: i64,
    /// Incremented with each change; ends scheduled under an older value are void.
    pub(crate) turn: u64,
    /// Incremented with each loss.
    pub(crate) life: u64,
}

impl SharedLane {
    pub(crate) fn new(lane: LaneId) -> Self {
        Self {
            lane,
            orders: VecDeque::new(),
            slice: None,
            passed: None,
            at_ns: 0,
            began_ns: 0,
            turn: 0,
            life: 0,
        }
    }

    /// Returns the number of parts of the lane that the slice has.
    fn slice_parts(&self) -> i64 {
        match (&self.slice, self.orders.is_empty()) {
            (None, _) => 0,
            (Some(_), true) => PARTS,
            (Some(slice), false) => slice.parts,
        }
    }

    /// Advances the lane to a time, and returns how long it worked.
    pub(crate) fn work(&mut self, at_ns: i64, slowness: &Slowness) -> Passed {
        let from_ns = std::mem::replace(&mut self.at_ns, at_ns);
        let parts = self.slice_parts();
        if parts == 0 && self.orders.is_empty() {
            return Passed::default();
        }
        let (busy_ns, full_ns) = (at_ns - from_ns, slowness.done_ns(self.lane, from_ns, at_ns));
        if let Some(slice) = &mut self.slice {
            slice.left_ns -= full_ns * parts / PARTS;
            slice.had_ns += busy_ns * parts / PARTS;
        }
        if let Some(Order::Batch { left_ns, .. }) = self.orders.front_mut() {
            *left_ns -= full_ns * (PARTS - parts) / PARTS;
        }
        Passed { busy_ns, slice_ns: busy_ns * parts / PARTS }
    }

    /// Returns the time and kind of the next end, if no other order or slice comes before; `None` on an idle lane.
    pub(crate) fn next_end(&self, slowness: &Slowness) -> Option<(i64, Ends)> {
        let parts = self.slice_parts();
        let after = |left_ns: i64, parts: i64| {
            let full_ns = (left_ns.max(0) * PARTS + parts - 1) / parts;
            self.at_ns + slowness.takes_ns(self.lane, self.at_ns, full_ns)
        };
        let batch = match self.orders.front() {
            Some(Order::Batch { left_ns, .. }) => Some((after(*left_ns, PARTS - parts), Ends::Batch)),
            _ => None,
        };
        let slice = self.slice.map(|slice| (after(slice.left_ns, parts), Ends::Slice));
        batch.into_iter().chain(slice).min()
    }

    /// Appends an order. The lane must first be advanced to the current time.
    pub(crate) fn follow(&mut self, order: Order) {
        if self.orders.is_empty() {
            self.began_ns = self.at_ns;
        }
        self.orders.push_back(order);
    }

    /// Begins a slice. The lane must first be advanced to the current time.
    pub(crate) fn begin_slice(&mut self, left_ns: i64, is_critical: bool) {
        let parts = if is_critical { CRITICAL_PARTS } else { OTHER_PARTS };
        self.passed = self.slice.replace(Slice { left_ns, parts, had_ns: 0 });
    }

    /// Ends the slice, and returns its lane time in nanoseconds.
    pub(crate) fn end_slice(&mut self) -> i64 {
        let passed = self.passed.take();
        std::mem::replace(&mut self.slice, passed).map_or(0, |slice| slice.had_ns)
    }

    /// Ends the first batch, and returns its number and the time since it began.
    pub(crate) fn end_batch(&mut self) -> Option<(i64, i64)> {
        let Some(Order::Batch { batch, .. }) = self.orders.pop_front() else { return None };
        let began_ns = std::mem::replace(&mut self.began_ns, self.at_ns);
        Some((batch, self.at_ns - began_ns))
    }

    /// Removes and returns the groups to give back that come before the first batch.
    pub(crate) fn given_back(&mut self) -> Vec<Released> {
        let mut groups = Vec::new();
        while let Some(Order::GiveBack(_)) = self.orders.front() {
            if let Some(Order::GiveBack(released)) = self.orders.pop_front() {
                groups.push(released);
            }
        }
        groups
    }

    /// Loses the lane with all its orders and slices.
    pub(crate) fn lose(&mut self) {
        self.orders.clear();
        (self.slice, self.passed) = (None, None);
        self.life += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fleet;

    const MS: i64 = 1_000_000;

    /// Advances a lane to its next end, and returns its time, its kind, and the time taken.
    fn go_on(lane: &mut SharedLane, slowness: &Slowness) -> (i64, Ends, i64) {
        let (at_ns, ends) = lane.next_end(slowness).expect("something is under way");
        lane.work(at_ns, slowness);
        let took_ns = match ends {
            Ends::Batch => lane.end_batch().expect("a batch").1,
            Ends::Slice => lane.end_slice(),
        };
        (at_ns, ends, took_ns)
    }

    #[test]
    fn a_slice_has_a_part_of_the_lane_beside_batches_and_all_of_it_alone() {
        let slowness = Slowness::new(&Fleet::volta_turing_radeon());
        // A batch of 11 ms runs beside a slice of 6 ms. A critical slice has half of the lane, any other slice an
        // eleventh.
        for (is_critical, ends) in [
            (true, [(12 * MS, Ends::Slice, 6 * MS), (17 * MS, Ends::Batch, 17 * MS)]),
            (false, [(12_100_000, Ends::Batch, 12_100_000), (17 * MS, Ends::Slice, 6 * MS)]),
        ] {
            let mut lane = SharedLane::new(0);
            lane.begin_slice(6 * MS, is_critical);
            lane.follow(Order::Batch { batch: 7, left_ns: 11 * MS });
            assert_eq!([(); 2].map(|()| go_on(&mut lane, &slowness)), ends, "critical: {is_critical}");
            assert_eq!(lane.next_end(&slowness), None);
        }
    }

    #[test]
    fn a_slice_that_is_passed_goes_on_once_the_other_is_done() {
        let slowness = Slowness::new(&Fleet::volta_turing_radeon());
        let mut lane = SharedLane::new(0);
        lane.begin_slice(6 * MS, false);
        lane.work(2 * MS, &slowness);
        lane.begin_slice(3 * MS, true);
        assert_eq!(go_on(&mut lane, &slowness), (5 * MS, Ends::Slice, 3 * MS));
        assert_eq!(go_on(&mut lane, &slowness), (9 * MS, Ends::Slice, 6 * MS));
        assert_eq!(lane.next_end(&slowness), None);
    }

    #[test]
    fn batches_come_in_order_and_groups_are_given_back_behind_them() {
        let slowness = Slowness::new(&Fleet::volta_turing_radeon());
        let mut lane = SharedLane::new(0);
        let released = Released { partition: 0, group: 3, lane: 0, epoch: 1 };
        lane.follow(Order::Batch { batch: 0, left_ns: 5 * MS });
        lane.work(2 * MS, &slowness);
        lane.follow(Order::GiveBack(released));
        lane.follow(Order::Batch { batch: 1, left_ns: 4 * MS });
        assert_eq!((lane.given_back().len(), go_on(&mut lane, &slowness).0), (0, 5 * MS));
        assert_eq!(lane.given_back(), [released]);
        assert_eq!(go_on(&mut lane, &slowness), (9 * MS, Ends::Batch, 4 * MS));
    }
}
