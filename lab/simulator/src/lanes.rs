//! The running slice of each lane, its service time, and the losses of lanes.

use warptape_events::journal::{LaneId, TaskId};

use crate::fleet::Fleet;

/// A slice that runs on a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) slice: i64,
    pub(crate) task: TaskId,
    /// Units of work in the slice.
    pub(crate) units: i64,
    /// Start time of the slice, moved forward by each period in which it yielded to another slice.
    pub(crate) from_ns: i64,
    /// Service time of the slice if the lane does nothing else, in nanoseconds.
    pub(crate) service_ns: i64,
    /// True if the slice's time counts for its tenant, because all tenants had tasks when the slice began.
    pub(crate) is_shared: bool,
}

/// The state of one lane.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    class: usize,
    running: Option<Running>,
    /// A slice that yields to `running`, which belongs to a critical task; `None` if no slice yields.
    passed: Option<Running>,
    /// Time at which the lane was lost; `None` unless the lane is lost.
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

    /// Begins a slice on a lane. A slice that runs there yields to it.
    pub(crate) fn begin(&mut self, lane: LaneId, running: Running) {
        let of = &mut self.lanes[lane as usize];
        assert!(of.passed.is_none(), "a slice of lane {lane} passes one other");
        of.passed = of.running.replace(running);
    }

    /// Ends a slice at its planned end and returns it, if the lane has no batches. `None` if the lane was lost since,
    /// or the slice yielded to another one.
    pub(crate) fn end(&mut self, at_ns: i64, lane: LaneId, slice: i64) -> Option<Running> {
        let running = self.lanes[lane as usize].running?;
        let is_it = running.slice == slice && running.from_ns + running.service_ns == at_ns;
        if is_it { self.take(at_ns, lane) } else { None }
    }

    /// Removes the running slice from a lane and returns it. The slice that yielded to it continues.
    pub(crate) fn take(&mut self, at_ns: i64, lane: LaneId) -> Option<Running> {
        let of = &mut self.lanes[lane as usize];
        let passed = of.passed.take();
        let running = std::mem::replace(&mut of.running, passed)?;
        if let Some(again) = &mut of.running {
            again.from_ns += at_ns - running.from_ns;
        }
        Some(running)
    }

    /// Returns the running slice of a lane; `None` if the lane is idle.
    pub(crate) fn running(&self, lane: LaneId) -> Option<Running> {
        self.lanes[lane as usize].running
    }

    /// True if a lane runs a slice.
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

    /// Ends the loss of a lane, and returns the time of the loss; `None` if the lane was not lost.
    pub(crate) fn come_back(&mut self, lane: LaneId) -> Option<i64> {
        self.lanes[lane as usize].lost_ns.take()
    }
}
