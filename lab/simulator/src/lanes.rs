//! What lanes are at: the slice that each works on, how long it takes, and whether the lane is lost.

use warptape_events::journal::{LaneId, TaskId};

use crate::fleet::Fleet;

/// A slice that a lane works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) slice: i64,
    pub(crate) task: TaskId,
    /// Units of the task's work in it.
    pub(crate) units: i64,
    /// When it began, later by the time for which it made way for others.
    pub(crate) from_ns: i64,
    /// What it takes, where the lane does nothing beside it.
    pub(crate) service_ns: i64,
    /// Whether its time counts for its tenant: all tenants had tasks when it began.
    pub(crate) is_shared: bool,
}

/// What one lane is at.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    class: usize,
    running: Option<Running>,
    /// What that makes wait: a slice of a critical task has the lane, and the one that it has passed yields to it.
    passed: Option<Running>,
    /// Since when it is lost.
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

    /// A lane begins a slice.
    pub(crate) fn begin(&mut self, lane: LaneId, running: Running) {
        let of = &mut self.lanes[lane as usize];
        assert!(of.passed.is_none(), "a slice of lane {lane} passes one other");
        of.passed = of.running.replace(running);
    }

    /// A lane ends this slice, having done nothing beside it; nothing where it was lost since, or the slice has made way for another.
    pub(crate) fn end(&mut self, at_ns: i64, lane: LaneId, slice: i64) -> Option<Running> {
        let running = self.lanes[lane as usize].running?;
        let is_it = running.slice == slice && running.from_ns + running.service_ns == at_ns;
        if is_it { self.take(at_ns, lane) } else { None }
    }

    /// Takes what a lane works on. What that had passed goes on.
    pub(crate) fn take(&mut self, at_ns: i64, lane: LaneId) -> Option<Running> {
        let of = &mut self.lanes[lane as usize];
        let passed = of.passed.take();
        let running = std::mem::replace(&mut of.running, passed)?;
        if let Some(again) = &mut of.running {
            again.from_ns += at_ns - running.from_ns;
        }
        Some(running)
    }

    /// What a lane works on.
    pub(crate) fn running(&self, lane: LaneId) -> Option<Running> {
        self.lanes[lane as usize].running
    }

    /// Whether a lane works on a slice.
    pub(crate) fn is_busy(&self, lane: LaneId) -> bool {
        self.lanes[lane as usize].running.is_some()
    }

    pub(crate) fn is_lost(&self, lane: LaneId) -> bool {
        self.lanes[lane as usize].lost_ns.is_some()
    }

    /// A lane is lost from a time on.
    pub(crate) fn lose(&mut self, lane: LaneId, at_ns: i64) {
        self.lanes[lane as usize].lost_ns = Some(at_ns);
    }

    /// A lane is no longer lost: since when it was.
    pub(crate) fn come_back(&mut self, lane: LaneId) -> Option<i64> {
        self.lanes[lane as usize].lost_ns.take()
    }
}
