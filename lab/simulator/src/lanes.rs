//! The slice at work on each lane, its service time, and whether the lane is lost.

use warptape_events::journal::{LaneId, TaskId};

use crate::fleet::Fleet;

/// A slice at work on a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) slice: i64,
    pub(crate) task: TaskId,
    /// Units of work in the slice.
    pub(crate) units: i64,
    /// Time at which it began, moved forward by each time in which it yielded to another slice.
    pub(crate) from_ns: i64,
    /// Service time if the lane does nothing else, in nanoseconds.
    pub(crate) service_ns: i64,
    /// True if its time counts for its tenant, because all tenants had tasks when it began.
    pub(crate) is_shared: bool,
}

/// The state of one lane.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    class: usize,
    running: Option<Running>,
    /// A slice that yields to `running`, which is of a critical task.
    passed: Option<Running>,
    /// Time of the loss; `None` unless the lane is lost.
    lost_ns: Option<i64>,
}

/// All lanes of a fleet.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
}

impl Lanes {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        let lane = |lane| Lane { class: fleet.class_of(lane), ..Lane::default() };
        Self { lanes: (0..fleet.lanes()).map(lane).collect() }
    }

    pub(crate) fn class(&self, lane: LaneId) -> usize {
        self.lanes[lane as usize].class
    }

    pub(crate) fn number(&self) -> usize {
        self.lanes.len()
    }

    /// Begins a slice on a lane; a slice at work there yields to it.
    pub(crate) fn begin(&mut self, lane: LaneId, running: Running) {
        let of = &mut self.lanes[lane as usize];
        assert!(of.passed.is_none(), "a slice of lane {lane} passes one other");
        of.passed = of.running.replace(running);
    }

    /// Ends a slice at its planned end on a lane that does nothing else. `None` if the lane was lost since, or the
    /// slice yielded to another.
    pub(crate) fn end(&mut self, at_ns: i64, lane: LaneId, slice: i64) -> Option<Running> {
        let running = self.lanes[lane as usize].running?;
        let is_it = running.slice == slice && running.from_ns + running.service_ns == at_ns;
        if is_it { self.take(at_ns, lane) } else { None }
    }

    /// Takes the slice at work from a lane; the slice that yielded to it continues.
    pub(crate) fn take(&mut self, at_ns: i64, lane: LaneId) -> Option<Running> {
        let of = &mut self.lanes[lane as usize];
        let passed = of.passed.take();
        let running = std::mem::replace(&mut of.running, passed)?;
        if let Some(again) = &mut of.running {
            again.from_ns += at_ns - running.from_ns;
        }
        Some(running)
    }

    /// Returns the slice at work on a lane.
    pub(crate) fn running(&self, lane: LaneId) -> Option<Running> {
        self.lanes[lane as usize].running
    }

    /// True if a lane works on a slice.
    pub(crate) fn is_busy(&self, lane: LaneId) -> bool {
        self.lanes[lane as usize].running.is_some()
    }

    pub(crate) fn is_lost(&self, lane: LaneId) -> bool {
        self.lanes[lane as usize].lost_ns.is_some()
    }

    /// Marks a lane as lost from a time on.
    pub(crate) fn lose(&mut self, lane: LaneId, at_ns: i64) {
        self.lanes[lane as usize].lost_ns = Some(at_ns);
    }

    /// Ends the loss of a lane, and returns its begin; `None` if it was not lost.
    pub(crate) fn come_back(&mut self, lane: LaneId) -> Option<i64> {
        self.lanes[lane as usize].lost_ns.take()
    }
}
