//! Starting and stopping of lanes: their states, their paid time, and the policy's view of a window.
//!
//! ```text
//!        wish is higher                  start-up delay              wish is lower               it has finished its slice
//!   Off ───────────────► Starting ─────────────────────► On ─────────────────────► Stopping ─────────────────────────────► Off
//!                        (paid)      LaneReady, Undrain  (paid)    DrainLane       (paid)              LaneLost
//! ```
//!
//! A lane is stopped like by an operator: it is drained, finishes its slice, and leaves. The scheduler learns of it by
//! the inputs of production. Lanes start in ascending order of the price of their work, and stop in the reverse order.
//! A lane is paid from its start on. A lost lane is also paid, but is not in service. A lane that is off does not fail.

use warptape_events::journal::*;
use warptape_scheduler::autoscale::{Autoscaler, Figures, Wish};

use super::{BEGIN_NS, Event, Run};
use crate::fleet::Fleet;
use crate::workload::Workload;

/// The policy that sets the number of running lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scaling {
    /// All lanes always run.
    #[default]
    None,
    /// The scheduler's reactive policy.
    Reactive,
    /// The scheduler's predictive policy.
    Predictive,
}

impl Scaling {
    /// All policies, in the order in which tables show them.
    pub const ALL: [Self; 3] = [Self::None, Self::Reactive, Self::Predictive];

    /// Returns the policy's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reactive => "reactive",
            Self::Predictive => "predictive",
        }
    }

    fn policy(self) -> Option<AutoscalePolicy> {
        match self {
            Self::None => None,
            Self::Reactive => Some(AutoscalePolicy::Reactive),
            Self::Predictive => Some(AutoscalePolicy::Predictive),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    Off,
    /// The lane starts; the field is the number of the start in the run. A cancelled start has no effect when it ends.
    Starting(u64),
    On,
    Stopping,
}

/// The state of each lane, and the work that arrived since the last window.
#[derive(Debug)]
pub(super) struct Plant {
    scaler: Option<Autoscaler>,
    power: Vec<Power>,
    /// Time from which each lane is paid; `None` while it is off.
    paid_ns: Vec<Option<i64>>,
    /// Lanes in the order in which they start.
    order: Vec<usize>,
    /// Work that a lane does per second at each kind of tasks, averaged over the fleet's lanes.
    speeds: Vec<f64>,
    /// Number of units of each task that no lane has begun, by the task's number; empty without a policy.
    open: Vec<i64>,
    /// Total number of open units by kind.
    open_by_kind: Vec<i64>,
    busy_ns: i64,
    arrived_ns: f64,
    starts: u64,
    commands: i64,
}

impl Plant {
    /// Creates a plant with all lanes on.
    pub(super) fn new(fleet: &Fleet, workload: &Workload, scaling: Scaling, tasks: usize) -> Self {
        let lanes = fleet.lanes();
        let scaler = scaling.policy().zip(fleet.autoscale.as_ref()).map(|(policy, autoscale)| {
            Autoscaler::new(AutoscaleConfig { policy, ..autoscale.config }, lanes as i32)
        });
        let of_kind = |kind: usize| {
            let speed = |lane: usize| fleet.classes[fleet.class_of(lane)].speeds[kind];
            (0..lanes).map(speed).sum::<f64>() / lanes as f64
        };
        let mut order: Vec<usize> = (0..lanes).collect();
        order.sort_by(|one, other| fleet.work_price(*one).total_cmp(&fleet.work_price(*other)));
        Self {
            open: vec![0; if scaler.is_some() { tasks } else { 0 }],
            scaler,
            power: vec![Power::On; lanes],
            paid_ns: vec![Some(BEGIN_NS); lanes],
            order,
            speeds: (0..workload.kinds.len()).map(of_kind).collect(),
            open_by_kind: vec![0; workload.kinds.len()],
            busy_ns: 0,
            arrived_ns: 0.0,
            starts: 0,
            commands: 0,
        }
    }

    /// True if a lane is on, or finishes its slice before it stops. Other lanes cannot be lost.
    pub(super) fn is_there(&self, lane: LaneId) -> bool {
        matches!(self.power[lane as usize], Power::On | Power::Stopping)
    }

    /// Returns the lane time that units of a kind need, in nanoseconds.
    fn lane_ns(&self, workload: &Workload, kind: usize, units: i64) -> f64 {
        units as f64 / workload.units_per_s / self.speeds[kind] * 1e9
    }

    /// Adds an arrived task with its waiting units.
    pub(super) fn arrive(&mut self, workload: &Workload, task: usize, kind: usize, units: i64) {
        if self.scaler.is_some() {
            self.arrived_ns += self.lane_ns(workload, kind, units);
            self.wait(task, kind, units);
        }
    }

    /// Adds waiting units of a task; a negative number removes some.
    pub(super) fn wait(&mut self, task: usize, kind: usize, units: i64) {
        if self.scaler.is_some() {
            self.open[task] += units;
            self.open_by_kind[kind] += units;
        }
    }

    /// Removes the waiting units of a task.
    pub(super) fn forget(&mut self, task: usize, kind: usize) {
        if self.scaler.is_some() {
            self.open_by_kind[kind] -= std::mem::take(&mut self.open[task]);
        }
    }

    /// Adds time that a lane worked.
    pub(super) fn worked(&mut self, service_ns: i64) {
        self.busy_ns += service_ns;
    }
}

impl Run<'_> {
    /// Schedules the end of the first window, and stops lanes above the initial number.
    pub(super) fn begin_scaling(&mut self) {
        let Some(scaler) = &self.plant.scaler else { return };
        let (window_ns, lanes) = (scaler.config().window_ns, scaler.lanes());
        self.events.push(BEGIN_NS + window_ns, Event::WindowEnds);
        self.scale_to(BEGIN_NS, lanes as usize);
    }

    /// Ends a window: the policy sets the number of lanes.
    pub(super) fn end_window(&mut self, at_ns: i64) {
        let lanes = self.in_service().len() as i32;
        let plant = &mut self.plant;
        let waiting = (0..plant.open_by_kind.len())
            .map(|kind| plant.lane_ns(self.model.workload, kind, plant.open_by_kind[kind]));
        let waiting_ns = waiting.sum::<f64>() as i64;
        let Some(scaler) = &mut plant.scaler else { return };
        let window_ns = scaler.config().window_ns;
        let figures = Figures {
            number: (at_ns - BEGIN_NS) / window_ns - 1,
            busy_ns: std::mem::take(&mut plant.busy_ns),
            arrived_ns: std::mem::take(&mut plant.arrived_ns) as i64,
            waiting_ns,
            lanes,
        };
        let wish = scaler.window(&figures);
        self.events.push(at_ns + window_ns, Event::WindowEnds);
        self.account_wish(&wish);
        self.scale_to(at_ns, wish.lanes as usize);
    }

    fn account_wish(&mut self, wish: &Wish) {
        let scaled = &mut self.outcome.scaled;
        scaled.windows += 1;
        scaled.anomalies += u64::from(wish.is_anomaly);
        if let Some(error_ppm) = wish.error_ppm {
            scaled.error_windows += 1;
            scaled.error_sum += error_ppm as f64 / 1e6;
        }
        scaled.forecast_windows += u64::from(wish.is_by_forecast);
    }

    /// Returns the lanes that are on and not lost.
    fn in_service(&self) -> Vec<usize> {
        let is_in =
            |lane: &usize| self.plant.power[*lane] == Power::On && !self.lanes.is_lost(*lane as LaneId);
        (0..self.lanes.number()).filter(is_in).collect()
    }

    /// Starts or stops lanes so that `wanted` of them are in service once all have started.
    fn scale_to(&mut self, at_ns: i64, wanted: usize) {
        let is_starting = |power: &&Power| matches!(power, Power::Starting(_));
        let starting = self.plant.power.iter().filter(is_starting).count();
        let mut number = self.in_service().len() + starting;
        let order = self.plant.order.clone();
        // A draining lane can return to service at once.
        for &lane in &order {
            let is_back = self.plant.power[lane] == Power::Stopping && !self.lanes.is_lost(lane as LaneId);
            if number < wanted && is_back {
                self.plant.power[lane] = Power::On;
                self.command(at_ns, ControlCommand::UndrainLane(UndrainLane { lane: lane as LaneId }));
                number += 1;
            }
        }
        for &lane in &order {
            if number < wanted && self.plant.power[lane] == Power::Off {
                self.start(at_ns, lane);
                number += 1;
            }
        }
        for &lane in order.iter().rev() {
            if number > wanted && matches!(self.plant.power[lane], Power::Starting(_)) {
                self.turn_off(at_ns, lane);
                number -= 1;
            }
        }
        for &lane in order.iter().rev() {
            let is_in = self.plant.power[lane] == Power::On && !self.lanes.is_lost(lane as LaneId);
            // The last lane stays on, because the scheduler would refuse to drain it.
            if number > wanted && is_in && self.in_service().len() > 1 {
                self.plant.power[lane] = Power::Stopping;
                self.command(at_ns, ControlCommand::DrainLane(DrainLane { lane: lane as LaneId }));
                self.stop_if_idle(at_ns, lane as LaneId);
                number -= 1;
            }
        }
    }

    fn start(&mut self, at_ns: i64, lane: usize) {
        let Some(scaler) = &self.plant.scaler else { return };
        let start_ns = scaler.config().start_ns;
        self.plant.starts += 1;
        let start = self.plant.starts;
        self.plant.power[lane] = Power::Starting(start);
        self.plant.paid_ns[lane] = Some(at_ns);
        self.events.push(at_ns + start_ns, Event::LaneStarted { lane: lane as LaneId, start });
    }

    /// Puts a lane into service at the end of its start, unless the start was cancelled.
    pub(super) fn lane_started(&mut self, at_ns: i64, lane: LaneId, start: u64) {
        if self.plant.power[lane as usize] != Power::Starting(start) {
            return;
        }
        self.plant.power[lane as usize] = Power::On;
        self.step(at_ns, &Input::LaneReady(LaneReady { lane }));
        self.command(at_ns, ControlCommand::UndrainLane(UndrainLane { lane }));
    }

    /// Turns a stopping lane off once it is idle.
    pub(super) fn stop_if_idle(&mut self, at_ns: i64, lane: LaneId) {
        if self.plant.power[lane as usize] != Power::Stopping || self.lanes.is_busy(lane) {
            return;
        }
        self.turn_off(at_ns, lane as usize);
        let lost = LaneLost { lane, reason: "stopped".to_owned(), kept: true };
        self.step(at_ns, &Input::LaneLost(lost));
    }

    /// Turns a stopping lane off when it is lost, and returns true if it was stopping.
    pub(super) fn lost_while_stopping(&mut self, at_ns: i64, lane: LaneId) -> bool {
        let is_stopping = self.plant.power[lane as usize] == Power::Stopping;
        if is_stopping {
            self.turn_off(at_ns, lane as usize);
        }
        is_stopping
    }

    fn turn_off(&mut self, at_ns: i64, lane: usize) {
        self.plant.power[lane] = Power::Off;
        self.account_paid(lane, at_ns);
    }

    /// Adds the time for which a lane was paid so far, if it was paid.
    pub(super) fn account_paid(&mut self, lane: usize, at_ns: i64) {
        if let Some(from_ns) = self.plant.paid_ns[lane].take() {
            let class = self.lanes.class(lane as LaneId);
            self.outcome.scaled.paid_s[class] += self.counted_s(from_ns, at_ns);
        }
        self.outcome.scaled.starts = self.plant.starts;
    }

    fn command(&mut self, at_ns: i64, command: ControlCommand) {
        self.plant.commands += 1;
        let number = self.plant.commands;
        let control = Control {
            offset: number - 1,
            id: format!("scale-{number}"),
            by: "autoscale".to_owned(),
            deadline_ns: i64::MAX,
            command,
        };
        self.step(at_ns, &Input::Control(control));
    }
}
