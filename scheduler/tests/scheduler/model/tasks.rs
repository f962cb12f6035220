//! Risk tasks in the model: every unit is tracked separately.

use std::collections::{BTreeMap, BTreeSet};

use warptape_events::journal::*;

use super::{Model, ModelLane, kind_of};
use crate::script::DEVICE_WIDTH;
use crate::starvation::Starvation;

/// State of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Not begun; only for this lane if the unit is part of the lane's share.
    Open(Option<LaneId>),
    Running,
    Done,
}

pub struct ModelTask {
    pub arrived: TaskArrived,
    units: Vec<Unit>,
    /// True if lanes may take units only after a split.
    is_whole: bool,
    slices_done: i64,
    service_ns: i64,
    /// Predicted time of its slices; 0 unless slices are predicted by size.
    predicted_ns: i64,
    /// Time since which no slice of it has begun.
    since_ns: i64,
    has_begun: bool,
}

/// All tasks of a process life in the model.
#[derive(Default)]
pub struct ModelTasks {
    /// Rate keys of tasks that wide lanes (true) or other lanes have done.
    measured: BTreeSet<(bool, String)>,
    pub known: BTreeMap<TaskId, ModelTask>,
    pub task_next: TaskId,
    slice_next: i64,
    /// Tasks with a finished round, each with the number after its last unit.
    pub finished: Vec<(TaskId, i64)>,
    /// Number of tasks finished since the task policy was chosen, or since its learner was last reset.
    pub finished_since: i64,
    /// True while the policy has fallen back to its rule.
    pub has_fallen: bool,
    /// The last question for prices.
    pub asked: Option<AskPrices>,
    /// Detector of starving tasks.
    starvation: Starvation,
    /// Start of each lane's last slice in addition to ticks, and the slice's time once it is done.
    beside: BTreeMap<LaneId, (i64, Option<i64>)>,
}

impl ModelTask {
    fn slots(&self, from: i64, to: i64) -> std::ops::Range<usize> {
        let first = self.arrived.first_unit;
        assert!(first <= from && from < to && to <= first + self.arrived.units, "units that do not exist");
        (from - first) as usize..(to - first) as usize
    }

    fn is_for(&self, lane: LaneId) -> bool {
        let is_for = |unit: &Unit| match unit {
            Unit::Open(owner) => owner.is_none_or(|owner| owner == lane),
            Unit::Running | Unit::Done => false,
        };
        !self.is_whole && self.units.iter().any(is_for)
    }

    fn is_waiting(&self) -> bool {
        self.units.iter().any(|unit| matches!(unit, Unit::Open(_)))
    }

    fn due(&self) -> (i64, TaskId) {
        (self.arrived.deadline_ns.unwrap_or(i64::MAX), self.arrived.task)
    }
}

impl Model {
    pub(super) fn apply_to_tasks(&mut self, input: &Input) {
        match input {
            Input::PartitionRevoked(revoked) => {
                let of_partition = |task: &ModelTask| task.arrived.partition == revoked.partition;
                let gone = self.tasks.known.extract_if(.., |_, task| of_partition(task));
                let gone: Vec<_> = gone.map(|(task, _)| task).collect();
                gone.into_iter().for_each(|task| self.forget_slices(task));
            }
            Input::LaneLost(lost) => self.lose_slices(lost.lane),
            Input::TaskArrived(arrived) => {
                self.tasks.task_next = self.tasks.task_next.max(arrived.task + 1);
                self.tasks.finished.retain(|(task, _)| *task != arrived.task);
            }
            Input::TaskDropped(dropped) => {
                self.tasks.known.remove(&dropped.task).unwrap();
                self.forget_slices(dropped.task);
            }
            Input::SliceDone(done) => self.finish_slice(done),
            _ => (),
        }
    }

    /// Opens the units of a lane's shares that have not begun to all lanes.
    pub(super) fn reopen_shares(&mut self, lane: LaneId) {
        for task in self.tasks.known.values_mut() {
            let of_lane = |unit: &&mut Unit| **unit == Unit::Open(Some(lane));
            task.units.iter_mut().filter(of_lane).for_each(|unit| *unit = Unit::Open(None));
        }
    }

    fn lose_slices(&mut self, lane: LaneId) {
        self.reopen_shares(lane);
        self.tasks.beside.remove(&lane);
        let lost = &mut self.lanes[lane as usize];
        let passed = lost.passed.take().map(|(passed, _)| passed);
        for slice in lost.slice.take().into_iter().chain(passed) {
            lost.slices_voided.push(slice.slice);
            if let Some(task) = self.tasks.known.get_mut(&slice.task) {
                let slots = task.slots(slice.from, slice.to);
                task.units[slots].fill(Unit::Open(None));
            }
        }
    }

    /// True if a lane works on several units at the same time.
    fn is_wide(&self, lane: LaneId) -> bool {
        self.config.route_interval_ns > 0 && kind_of(lane) == LaneKind::Device
    }

    fn finish_slice(&mut self, done: &SliceDone) {
        let is_wide = self.is_wide(done.lane);
        let lane = &mut self.lanes[done.lane as usize];
        if let Some(late) = lane.slices_voided.iter().position(|&slice| slice == done.slice) {
            lane.slices_voided.remove(late);
            return;
        }
        let was_passed = lane.passed.take_if(|(passed, _)| passed.slice == done.slice);
        let (slice, begun_ns) = match was_passed.clone() {
            Some(passed) => passed,
            None => {
                let done = (lane.slice.take().unwrap(), lane.slice_begun_ns);
                if let Some((passed, begun_ns)) = lane.passed.take() {
                    (lane.slice, lane.slice_begun_ns) = (Some(passed), begun_ns);
                }
                done
            }
        };
        assert_eq!(slice.slice, done.slice);
        if let (None, Some((_, took_ns @ None))) = (was_passed, self.tasks.beside.get_mut(&done.lane)) {
            *took_ns = Some(done.service_ns);
        }
        if let Some(task) = self.tasks.known.get_mut(&slice.task) {
            let slots = task.slots(slice.from, slice.to);
            assert!(task.units[slots.clone()].iter().all(|unit| *unit == Unit::Running));
            task.units[slots].fill(Unit::Done);
            task.slices_done += 1;
            task.service_ns += done.service_ns;
            self.tasks.measured.insert((is_wide, task.arrived.rate_key.clone()));
            if self.config.risk.predictor > 0 {
                task.predicted_ns += slice.predicted_finish_ns - begun_ns;
            }
        }
    }

    /// Executes a decision about a task. Returns the name under which the decision is counted.
    pub(super) fn execute_of_task(&mut self, decision: &Decision) -> String {
        match decision {
            Decision::Admit(admit) => {
                assert_eq!(admit.tasks as usize, self.tasks.known.len() + 1);
                "admit".to_owned()
            }
            Decision::Reject(reject) => {
                let is_of_quota = matches!(reject.reason, RejectReason::Quota | RejectReason::Rate);
                assert!(is_of_quota || reject.tasks as usize == self.tasks.known.len(), "{reject:?}");
                match reject.reason {
                    RejectReason::Quota => assert!(reject.tasks >= reject.tasks_max, "{reject:?}"),
                    RejectReason::Rate => assert!(self.quota(&reject.quota).rate_per_s > 0, "{reject:?}"),
                    RejectReason::Congested => {
                        assert!(self.config.risk.queues.in_flight_min > 0, "{reject:?}");
                        assert!(reject.tasks_max < self.config.risk.tasks_max, "{reject:?}");
                    }
                    RejectReason::Expired => assert!(reject.deadline_ns.unwrap() <= self.at_ns),
                    RejectReason::Overloaded => {
                        let is_too_much = reject.tasks > 0 && reject.bytes > self.config.risk.bytes_max;
                        assert!(reject.tasks >= self.config.risk.tasks_max || is_too_much, "{reject:?}");
                        let known: i64 = self.tasks.known.values().map(|task| task.arrived.bytes).sum();
                        assert!(reject.bytes >= known, "{reject:?}");
                    }
                }
                format!("reject {:?}", reject.reason)
            }
            Decision::Split(split) => {
                self.execute_split(split);
                format!("split {:?}{}", split.policy, if split.gang { ", gang" } else { "" })
            }
            Decision::Reserve(reserve) => {
                assert!(self.tasks.known[&reserve.task].arrived.gang, "{reserve:?}");
                assert!(reserve.until_ns > self.at_ns);
                let busy: Vec<_> =
                    reserve.lanes.iter().copied().filter(|lane| !self.is_free(*lane)).collect();
                assert_eq!(reserve.busy, busy);
                assert!(!busy.is_empty(), "a gang waits for nobody");
                "reserve".to_owned()
            }
            Decision::RunSlice(slice) => {
                let passes = self.lanes[slice.lane as usize].slice.is_some();
                self.execute_slice(slice);
                let how = if passes { ", passes" } else { "" };
                format!("slice {:?}, {:?}{how}", slice.class, slice.reason)
            }
            Decision::Expire(expire) => {
                let task = self.tasks.known.remove(&expire.task).expect("an unknown task expires");
                assert_eq!(task.arrived.deadline_ns, Some(expire.deadline_ns));
                assert!(expire.deadline_ns <= self.at_ns, "a task expires early");
                let running = self.running(expire.task);
                assert_eq!(expire.slices_running, running);
                self.forget_slices(expire.task);
                "expire".to_owned()
            }
            Decision::Finish(finish) => {
                let task = self.tasks.known.remove(&finish.task).expect("an unknown task is finished");
                assert!(
                    task.units.iter().all(|unit| *unit == Unit::Done),
                    "a task with units left is finished"
                );
                assert_eq!((finish.slices, finish.service_ns), (task.slices_done, task.service_ns));
                assert_eq!(finish.predicted_ns, task.predicted_ns);
                let next = task.arrived.first_unit + task.arrived.units;
                self.tasks.finished.push((finish.task, next));
                self.tasks.finished_since += 1;
                "finish".to_owned()
            }
            Decision::Shed(shed) => {
                let task = self.tasks.known.remove(&shed.task).expect("an unknown task is shed");
                assert!(self.config.risk.queues.delay_target_ns > 0 && shed.number > 0, "{shed:?}");
                assert!(
                    task.arrived.first_unit == 0 && task.slices_done == 0,
                    "a task that has begun is shed"
                );
                assert_eq!((self.running(shed.task), task.arrived.class), (0, shed.class));
                let is_less_urgent = |other: &ModelTask| other.arrived.class > shed.class && !other.has_begun;
                assert!(!self.tasks.known.values().any(is_less_urgent), "a less urgent task stays");
                format!("shed {:?}", shed.class)
            }
            Decision::Drift(drift) => {
                assert!(
                    self.config.risk.predictor > 0 && drift.slices > 0 && drift.predicted_ns >= 0,
                    "{drift:?}"
                );
                "drift".to_owned()
            }
            Decision::FellBack(fell) => {
                self.check_trust(fell);
                if fell.has_returned { "decides again" } else { "fell back" }.to_owned()
            }
            Decision::Shadow(shadow) => self.check_shadow(shadow),
            Decision::Assign(assign) => {
                self.execute_assign(assign);
                self.check_propensity(assign.reason, assign.propensity_ppm);
                match assign.reason {
                    SliceReason::Explored => "assign, explored".to_owned(),
                    SliceReason::StoodIn => {
                        assert!(self.named_network().is_some_and(|hash| !self.life.networks.contains(hash)));
                        "assign, stood in".to_owned()
                    }
                    _ => match self.named_network() {
                        Some(hash) => {
                            assert!(self.life.networks.contains(hash), "a network decides that is not there");
                            "assign, dqn".to_owned()
                        }
                        None => format!(
                            "assign, {}",
                            self.config.risk.policy.split('@').next().unwrap_or_default()
                        ),
                    },
                }
            }
            Decision::AskPrices(ask) => {
                let question = self.tasks.asked.as_ref().map_or(0, |asked| asked.question + 1);
                assert_eq!(ask.question, question, "questions are numbered in order");
                assert!(!ask.kinds.is_empty() && ask.lanes.iter().all(|lanes| *lanes > 0), "{ask:?}");
                let is_whole = |kind: &KindDemand| kind.fs_per_cost.len() == ask.lanes.len();
                assert!(ask.kinds.iter().all(is_whole), "{ask:?}");
                self.tasks.asked = Some(ask.clone());
                "ask for prices".to_owned()
            }
            _ => unreachable!("the other decisions are executed before"),
        }
    }

    /// Checks that falls and returns of a policy alternate, with the right reasons, and that it has learnt from known
    /// tasks.
    fn check_trust(&mut self, fell: &FellBack) {
        assert_eq!((fell.policy.as_str(), fell.has_returned), ("linucb", self.tasks.has_fallen), "{fell:?}");
        assert!(self.tasks.known.contains_key(&fell.task), "{fell:?}");
        assert!((1..=self.tasks.finished_since).contains(&fell.completions), "{fell:?}");
        match fell.has_returned {
            true => assert!(fell.error_milli <= fell.expected_milli + 125, "{fell:?}"),
            false => {
                // The errors are in thousandths, rounded down.
                assert!(fell.error_milli >= fell.expected_milli, "{fell:?}");
                self.tasks.finished_since = 0;
            }
        }
        self.tasks.has_fallen = !fell.has_returned;
    }

    fn quota(&self, name: &str) -> &Quota {
        let mut quotas = self.config.risk.queues.quotas.iter();
        quotas.find(|quota| quota.name == name).expect("the quota is configured")
    }

    /// Tasks of a quota and of the quotas below it.
    fn tasks_of(&self, quota: &Quota) -> i32 {
        let is_below = |tenant: &str| {
            let own = self.config.risk.queues.quotas.iter().find(|known| known.name == tenant);
            own.is_some_and(|own| own.name == quota.name || own.parent == quota.name)
        };
        self.tasks.known.values().filter(|task| is_below(&task.arrived.tenant)).count() as i32
    }

    /// Checks quotas. Limits hold after an admission. A tenant that is refused because of others' guarantees has at
    /// least its own guarantee, less the part that it lends.
    pub(super) fn check_quotas(&self, arrived: &TaskArrived, decision: &Decision) {
        let quotas = &self.config.risk.queues.quotas;
        match decision {
            Decision::Admit(_) if arrived.first_unit == 0 => {
                let own = quotas.iter().find(|quota| quota.name == arrived.tenant);
                let above = own.and_then(|own| quotas.iter().find(|quota| quota.name == own.parent));
                for quota in own.into_iter().chain(above).filter(|quota| quota.limit > 0) {
                    assert!(
                        self.tasks_of(quota) <= quota.limit,
                        "{quota:?} has {} tasks",
                        self.tasks_of(quota)
                    );
                }
            }
            Decision::Reject(Reject {
                reason: RejectReason::Quota | RejectReason::Congested, quota, ..
            }) => {
                let own = quotas.iter().find(|known| known.name == arrived.tenant);
                let has = |own: &Quota| self.tasks_of(own) >= own.guaranteed - own.lendable;
                let is_limit = own.is_some_and(|own| !quota.is_empty() && *quota != own.name);
                assert!(is_limit || own.is_none_or(has), "{own:?} does not get what is guaranteed");
            }
            _ => {}
        }
    }

    fn running(&self, task: TaskId) -> i32 {
        let slices = self.lanes.iter().flat_map(ModelLane::slices);
        slices.filter(|slice| slice.task == task).count() as i32
    }

    /// Marks the slices of a task that is no longer known.
    fn forget_slices(&mut self, task: TaskId) {
        let slices = self.lanes.iter_mut().flat_map(ModelLane::slices_mut);
        slices.filter(|slice| slice.task == task).for_each(|slice| slice.task = -1);
    }

    fn is_free(&self, lane: LaneId) -> bool {
        let known = &self.lanes[lane as usize];
        let rows_wait = self.lane_heads(lane).next().is_some();
        known.ready && known.in_flight.is_empty() && known.slice.is_none() && !rows_wait
    }

    fn execute_split(&mut self, split: &Split) {
        let serve = split.shares.iter().all(|share| self.serves(share.lane));
        assert!(serve, "a lane gets a share that is lost or out of service");
        let task = self.tasks.known.get_mut(&split.task).unwrap();
        assert!(task.is_whole && split.gang == task.arrived.gang);
        let total: i64 = split.shares.iter().map(|share| share.score).sum();
        let mut next = task.arrived.first_unit;
        for share in &split.shares {
            assert_eq!(share.from, next, "shares are consecutive");
            // The sum leaves out scores of lanes that get no units, so quotas computed with it are at least the true
            // ones.
            assert!((share.to - share.from - 1) * total <= task.arrived.units * share.score, "{split:?}");
            next = share.to;
            let slots = task.slots(share.from, share.to);
            task.units[slots].fill(Unit::Open(Some(share.lane)));
        }
        assert_eq!(next, task.arrived.first_unit + task.arrived.units, "shares add up");
        assert!(split.shares.is_sorted_by_key(|share| share.lane));
        task.is_whole = false;
    }

    fn execute_assign(&mut self, assign: &Assign) {
        let of_lane = |task: &ModelTask| task.units.contains(&Unit::Open(Some(assign.lane)));
        let waiting = self.tasks.known.values().filter(|task| of_lane(task)).count() as i64;
        let lane = &self.lanes[assign.lane as usize];
        assert_eq!(assign.tasks, waiting + i64::from(lane.slice.is_some()), "tasks of the lane");
        assert!(self.serves(assign.lane), "a task goes to a lane that is lost or out of service");
        assert!(assign.backlog_ns >= 0 && assign.task_ns >= 0, "{assign:?}");
        let task = self.tasks.known.get_mut(&assign.task).unwrap();
        assert!(!task.is_whole && task.units.iter().all(|unit| *unit == Unit::Open(None)), "assigned late");
        task.units.fill(Unit::Open(Some(assign.lane)));
    }

    fn execute_slice(&mut self, slice: &RunSlice) {
        let lane = slice.lane;
        let passes = self.lanes[lane as usize].slice.is_some();
        if passes {
            self.execute_past(slice);
        } else if !self.is_free(lane) {
            self.execute_beside(slice);
        }
        assert!(self.serves(lane), "a slice goes to a lane that is out of service");
        assert_eq!(slice.slice, self.tasks.slice_next, "slices are numbered in order");
        self.tasks.slice_next += 1;
        let waiting = self.tasks.known.values().filter(|task| task.is_waiting()).count();
        assert_eq!(slice.tasks_waiting as usize, waiting);
        assert!(slice.predicted_finish_ns >= self.at_ns);
        let chosen = &self.tasks.known[&slice.task];
        let arrived = &chosen.arrived;
        assert_eq!((slice.class, &slice.tenant), (arrived.class, &arrived.tenant));
        // With a quantum, a tenant's tasks take turns, and every sixteenth slice may go to a less urgent class.
        let takes_turns = self.config.risk.quantum_ns > 0;
        let is_aged = slice.reason == SliceReason::Aged;
        let is_turn = (takes_turns && slice.slice % 16 == 15) || is_aged;
        let age_ns = self.config.risk.ageing_ns;
        assert!(!is_aged || (age_ns > 0 && chosen.since_ns + age_ns <= self.at_ns), "a young task is aged");
        let is_drawn = slice.reason == SliceReason::Explored;
        self.check_propensity(slice.reason, slice.propensity_ppm);
        let reserved = slice.reason == SliceReason::Reserved;
        assert!(!reserved || slice.class == TaskClass::Critical, "{slice:?}");
        let open = |task: &&ModelTask| !task.is_whole && task.units.contains(&Unit::Open(None));
        let aged = self.tasks.known.values().filter(open);
        let aged = aged.filter(|task| age_ns > 0 && task.since_ns + age_ns <= self.at_ns);
        let longest = aged.map(|task| (task.since_ns, task.arrived.task)).min();
        if !passes {
            self.tasks.starvation.observe(longest.map(|(_, task)| task), slice.task).unwrap();
        }
        let chosen = &self.tasks.known[&slice.task];
        for other in self.tasks.known.values().filter(|other| other.is_for(lane)) {
            // A gang begins on all its lanes, even if one of them has another task to begin.
            let gang = arrived.gang && !chosen.is_whole;
            assert!(other.arrived.class >= slice.class || gang || is_turn, "a higher class waits");
            let same_class = other.arrived.class == slice.class && !gang && !is_turn && !is_drawn;
            let same = same_class && other.arrived.tenant == slice.tenant;
            let (due, other_due) = (chosen.due(), other.due());
            match self.config.risk.policy.as_str() {
                "earliest-deadline" => assert!(!same_class || due <= other_due, "an earlier deadline waits"),
                "first-come" => assert!(!same_class || due.1 <= other_due.1, "an earlier task waits"),
                // The order of these policies depends on predictions.
                "least-laxity" | "lp-price" => {}
                _ => assert!(!same || due <= other_due || takes_turns, "an earlier deadline waits"),
            }
        }
        assert_eq!(slice.stolen_from.is_some(), slice.reason == SliceReason::Stolen);
        if let Some(owner) = slice.stolen_from {
            assert!(
                self.config.risk.steals && owner != lane && self.is_free(lane) && !arrived.gang,
                "{slice:?}"
            );
            assert!(
                !self.tasks.known.values().any(|task| task.is_for(lane)),
                "a lane that has its own work steals"
            );
        }
        let is_wide = self.is_wide(lane);
        let task = self.tasks.known.get_mut(&slice.task).unwrap();
        let slots = task.slots(slice.from, slice.to);
        assert!(slice.to - slice.from <= task.arrived.slice_units_max, "a slice is too large");
        let at_once = if is_wide { DEVICE_WIDTH.checked_div(task.arrived.unit_width.into()) } else { None };
        if slice.to - slice.from > i64::from(at_once.unwrap_or(1).max(1)) {
            let kind = (is_wide, task.arrived.rate_key.clone());
            assert!(self.tasks.measured.contains(&kind), "the first slice has several waves: {slice:?}");
            // By size, a slice may be predicted to take longer than by its rate.
            let (has_predictor, takes_ns) =
                (self.config.risk.predictor > 0, slice.predicted_finish_ns - self.at_ns);
            assert!(
                has_predictor || takes_ns <= self.config.risk.slice_ns,
                "several waves are too long: {slice:?}"
            );
        }
        assert!(!task.is_whole, "a task is begun before it is split");
        let lost = task.units.iter().position(|unit| *unit == Unit::Open(None));
        let owner = slice.stolen_from.unwrap_or(lane);
        for unit in &task.units[slots.clone()] {
            assert!(matches!(unit, Unit::Open(of) if of.is_none_or(|of| of == owner)), "{unit:?}");
            assert!(slice.stolen_from.is_none() || *unit == Unit::Open(Some(owner)), "{unit:?} is stolen");
        }
        let is_first = lost.is_none_or(|lost| lost == slots.start);
        assert!(is_first || task.arrived.gang, "what came back goes first");
        task.units[slots].fill(Unit::Running);
        (task.since_ns, task.has_begun) = (self.at_ns, true);
        assert!(slice.upper_ns == 0 || slice.upper_ns >= slice.predicted_finish_ns - self.at_ns, "{slice:?}");
        let worker = &mut self.lanes[lane as usize];
        let begun_ns = worker.slice_begun_ns;
        worker.passed = worker.slice.replace(slice.clone()).map(|passed| (passed, begun_ns));
        worker.slice_begun_ns = self.at_ns;
    }

    /// A lane begins a critical slice in addition to another slice, which must not be critical. If the lane has ticks
    /// too, the critical slice uses its reserve.
    fn execute_past(&mut self, slice: &RunSlice) {
        let lane = &self.lanes[slice.lane as usize];
        assert!(lane.ready && self.may_be_passed(lane), "a slice goes to a lane that has one");
        assert_eq!((slice.class, slice.reason), (TaskClass::Critical, SliceReason::Reserved), "{slice:?}");
        if self.has_ticks(slice.lane) {
            assert!(self.reserve_ns(slice.lane) <= self.at_ns, "a lane takes more than its reserve");
            self.tasks.beside.insert(slice.lane, (self.at_ns, None));
        }
    }

    /// True if a lane has a slice that a critical one may pass.
    fn may_be_passed(&self, lane: &ModelLane) -> bool {
        let is_urgent = |slice: &RunSlice| slice.task >= 0 && slice.class == TaskClass::Critical;
        lane.passed.is_none() && lane.slice.as_ref().is_some_and(|slice| !is_urgent(slice))
    }

    fn has_ticks(&self, lane: LaneId) -> bool {
        !self.lanes[lane as usize].in_flight.is_empty() || self.lane_heads(lane).next().is_some()
    }

    /// Checks that a shadow policy makes the same choice as the same policy in force.
    fn check_shadow(&self, shadow: &Shadow) -> String {
        let Shadow { policy, task, lane, lane_instead, task_instead } = shadow;
        let name = &self.shadow.as_ref().expect("nobody asked for a shadow").policies[*policy as usize];
        assert!(self.tasks.known.contains_key(task), "{shadow:?} of an unknown task");
        let plain = |name: &str| name.trim_end_matches("@1").to_owned();
        let in_force = match plain(&self.config.risk.policy) {
            name if name.is_empty() => "fair".to_owned(),
            name => name,
        };
        // Turns advance with each choice, but a shadow policy is not asked at each.
        let is_same = plain(name) == in_force && !name.contains("robin") && self.config.risk.explore_ppm == 0;
        // A shadow policy considers only the first tasks of a queue.
        let sees_all = self.tasks.known.len() <= 32;
        match (lane_instead, task_instead) {
            (Some(instead), None) => {
                assert!((*instead as usize) < self.lanes.len(), "{shadow:?}");
                assert!(!is_same || *lane == Some(*instead), "{shadow:?} under {in_force}");
                if is_same { "shadow pushes likewise" } else { "shadow pushes" }.to_owned()
            }
            (None, Some(instead)) => {
                let class = |task: &TaskId| self.tasks.known[task].arrived.class;
                assert_eq!((class(instead), lane.is_some()), (class(task), true), "{shadow:?}");
                assert!(!is_same || !sees_all || instead == task, "{shadow:?} under {in_force}");
                if is_same { "shadow pulls likewise" } else { "shadow pulls" }.to_owned()
            }
            _ => panic!("{shadow:?} says nothing, or too much"),
        }
    }

    /// The network that the policy names.
    fn named_network(&self) -> Option<&str> {
        self.config.risk.policy.strip_prefix("dqn:")
    }

    /// Checks that a drawn choice has a low probability, and any other choice a high one.
    fn check_propensity(&self, reason: SliceReason, propensity_ppm: i32) {
        let explore_ppm = self.config.risk.explore_ppm;
        let expected = match reason {
            SliceReason::Order | SliceReason::StoodIn => 1_000_000 - explore_ppm..=1_000_000,
            SliceReason::Explored => 1..=1_000_000,
            SliceReason::Reserved | SliceReason::Aged | SliceReason::Stolen => 1_000_000..=1_000_000,
        };
        assert!(expected.contains(&propensity_ppm), "{reason:?} with {propensity_ppm} ppm");
        assert!(explore_ppm > 0 || propensity_ppm == 1_000_000);
    }

    /// Begins a slice on a lane with ticks. The lane must have no other slice and an available reserve, and the task
    /// must be allowed to use it.
    fn execute_beside(&mut self, slice: &RunSlice) {
        let lane = &self.lanes[slice.lane as usize];
        assert!(lane.ready && lane.slice.is_none(), "a slice goes to a lane that has one");
        let may = matches!(slice.reason, SliceReason::Reserved | SliceReason::Aged);
        assert!(may, "a slice goes to a lane that has something to do");
        assert!(self.reserve_ns(slice.lane) <= self.at_ns, "a lane takes more than its reserve");
        self.tasks.beside.insert(slice.lane, (self.at_ns, None));
    }

    /// Time at which a lane may begin a slice in addition to ticks.
    fn reserve_ns(&self, lane: LaneId) -> i64 {
        let percent = i128::from(self.config.risk.critical_percent);
        match self.tasks.beside.get(&lane) {
            _ if percent == 0 => i64::MAX,
            Some((begun_ns, Some(took_ns))) => begun_ns + (i128::from(*took_ns) * 100 / percent) as i64,
            _ => 0,
        }
    }

    /// Checks the decisions that some inputs require, whatever else they cause.
    pub(super) fn check_tasks_owed(&mut self, input: &Input, decisions: &[Decision]) {
        for decision in decisions {
            let Decision::Split(Split { task, gang: true, shares, .. }) = decision else { continue };
            let starts = decisions.iter().filter(|decision| match decision {
                Decision::RunSlice(slice) => slice.task == *task,
                _ => false,
            });
            assert_eq!(starts.count(), shares.len(), "a gang begins on all of its lanes");
        }
        let answers =
            decisions.iter().filter(|decision| matches!(decision, Decision::Admit(_) | Decision::Reject(_)));
        assert_eq!(
            answers.count(),
            usize::from(matches!(input, Input::TaskArrived(_))),
            "a task is answered"
        );
    }

    /// Checks after every step that no lane is idle while there is work for it.
    pub(super) fn check_tasks_rest(&self) {
        let known = &self.tasks.known;
        assert_eq!(self.scheduler.tasks_known(), known.len());
        assert_eq!(
            self.scheduler.tasks_waiting() as usize,
            known.values().filter(|task| task.is_waiting()).count()
        );
        let gang_waits = known.values().any(|task| task.arrived.gang && task.is_whole);
        for task in known.values() {
            let due_ns = task.due().0;
            assert!(due_ns > self.at_ns || self.may_be_short(), "a task is known after its deadline");
            let wakes = self.may_be_short() || self.life.timer_ns.is_some_and(|timer_ns| timer_ns <= due_ns);
            assert!(due_ns == i64::MAX || wakes, "nobody wakes for a deadline");
            assert!(task.units.iter().any(|unit| *unit != Unit::Done), "a task is done and known");
        }
        let serving = (0..self.lanes.len() as LaneId).filter(|lane| self.serves(*lane));
        for lane in serving.filter(|_| !self.may_be_short()) {
            let wants = known.values().any(|task| task.is_for(lane));
            let age_ns = self.config.risk.ageing_ns;
            let is_aged = |task: &ModelTask| age_ns > 0 && task.since_ns + age_ns <= self.at_ns;
            let is_urgent = |task: &ModelTask| task.arrived.class == TaskClass::Critical || is_aged(task);
            let urgent = known.values().any(|task| task.is_for(lane) && is_urgent(task));
            let state = &self.lanes[lane as usize];
            if urgent && state.slice.is_none() && !self.is_free(lane) && self.config.risk.critical_percent > 0
            {
                let reserve_ns = self.reserve_ns(lane);
                assert!(reserve_ns > self.at_ns, "lane {lane} keeps its reserve from a task that may use it");
                assert!(
                    self.life.timer_ns.is_some_and(|timer_ns| timer_ns <= reserve_ns),
                    "nobody wakes for it"
                );
            }
            let is_critical =
                |task: &ModelTask| task.arrived.class == TaskClass::Critical && task.is_for(lane);
            if self.may_be_passed(state) && known.values().any(is_critical) {
                let (has_ticks, reserve_ns) = (self.has_ticks(lane), self.reserve_ns(lane));
                let keeps = has_ticks && reserve_ns > self.at_ns;
                assert!(keeps, "lane {lane}: a critical task waits for a slice of another");
                let is_off = reserve_ns == i64::MAX;
                let wakes = self.life.timer_ns.is_some_and(|timer_ns| timer_ns <= reserve_ns);
                assert!(is_off || wakes, "nobody wakes for it");
            }
            assert!(gang_waits || !wants || !self.is_free(lane), "lane {lane} rests and a task waits");
            if gang_waits && self.is_free(lane) {
                assert!(!wants || self.life.timer_ns.is_some(), "lane {lane} waits for a gang for ever");
            }
        }
    }

    /// Adds an arriving task after its admission, before the step's other decisions.
    pub(super) fn know_task(&mut self, arrived: &TaskArrived) {
        let is_whole = arrived.gang || self.config.risk.split != SplitPolicy::Dynamic;
        let units = vec![Unit::Open(None); arrived.units as usize];
        let (arrived, since_ns, has_begun) = (arrived.clone(), self.at_ns, arrived.first_unit > 0);
        let task = ModelTask {
            arrived,
            units,
            is_whole,
            slices_done: 0,
            service_ns: 0,
            predicted_ns: 0,
            since_ns,
            has_begun,
        };
        self.tasks.known.insert(task.arrived.task, task);
    }
}
