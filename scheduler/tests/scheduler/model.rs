//! A model of the scheduler's surroundings: lanes, partitions and a timer.
//!
//! It executes decisions in the simplest way, and asserts the invariants at every step. It does not know how the
//! scheduler decides: its bookkeeping is separate, and computes sums by walking where the scheduler updates them.

mod breaker;
mod control;
mod explain;
mod rest;
mod tasks;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warptape_events::journal::*;
use warptape_scheduler::{Scheduler, StepError};

use crate::planted::Plant;

pub use breaker::ModelBreaker;
pub use tasks::ModelTasks;

/// Period, in steps, of explanations: all decisions of such a step are explained.
const EXPLAINED_STEPS: usize = 7;
/// Steps between checkpoints of a replay, each of which continues from the last checkpoint.
const CHECKPOINT_STEPS: usize = 16;

/// Kind of a lane, as `script::started` assigns it when groups are routed.
fn kind_of(lane: LaneId) -> LaneKind {
    if lane % 2 == 1 { LaneKind::Device } else { LaneKind::Host }
}

/// Predicted times of a route: on the kind that it names, then on the other kind.
fn predictions(route: &Route) -> [i64; 2] {
    assert!(route.rows > 0, "nothing is known of the group");
    match route.kind {
        LaneKind::Host => [route.host_ns, route.device_ns],
        LaneKind::Device => [route.device_ns, route.host_ns],
    }
}

/// One step, as a journal records it.
pub struct Recorded {
    pub at_ns: i64,
    pub input: Input,
    pub decisions: Vec<Decision>,
    pub hash_before: u64,
}

/// A group in the model.
#[derive(Default)]
pub struct ModelGroup {
    pub lane: Option<LaneId>,
    /// The lane that must release it and has not done so yet.
    pub leaving: Option<LaneId>,
    /// The kind of lanes for which it was released.
    pub bound_for: Option<LaneKind>,
    pub epoch: i64,
    /// Waiting rows as (time of arrival, number of the row), in order.
    pub waiting: VecDeque<(i64, i64)>,
    pub rows_arrived: i64,
    /// Number of the next row to be dispatched.
    pub row_next: i64,
    /// Greatest average of bytes per row over an arrival, rounded up.
    pub row_bytes_max: i64,
}

/// A partition in the model.
#[derive(Default)]
pub struct ModelPartition {
    pub assigned: bool,
    pub restoring: bool,
    pub paused: bool,
    pub position: i64,
    pub groups: Vec<ModelGroup>,
}

impl ModelPartition {
    pub fn waiting_rows(&self) -> i64 {
        self.groups.iter().map(|group| group.waiting.len() as i64).sum()
    }
}

/// A lane in the model.
#[derive(Default)]
pub struct ModelLane {
    pub ready: bool,
    pub weight: i32,
    pub drained: bool,
    pub breaker: ModelBreaker,
    /// True if its device has little memory left.
    pub is_short: bool,
    /// Batches dispatched and not completed, in order.
    pub in_flight: VecDeque<Dispatch>,
    /// Batches in flight when the lane was lost; their completions may still come.
    pub voided: Vec<i64>,
    /// The slice that it works on.
    pub slice: Option<RunSlice>,
    /// Start of that slice.
    pub slice_begun_ns: i64,
    /// The slice that the running one has passed, and its start.
    pub passed: Option<(RunSlice, i64)>,
    /// Slices that it worked on when it was lost.
    pub slices_voided: Vec<i64>,
}

impl ModelLane {
    /// The running slice and the passed one.
    pub fn slices(&self) -> impl Iterator<Item = &RunSlice> {
        self.slice.iter().chain(self.passed.iter().map(|(passed, _)| passed))
    }

    pub fn slices_mut(&mut self) -> impl Iterator<Item = &mut RunSlice> {
        self.slice.iter_mut().chain(self.passed.iter_mut().map(|(passed, _)| passed))
    }

    pub fn is_in_service(&self) -> bool {
        !self.drained && !self.breaker.is_open()
    }

    pub fn is_in_full_service(&self) -> bool {
        self.is_in_service() && !self.breaker.is_half_open()
    }
}

/// State of a process life, without its lanes, partitions and tasks.
#[derive(Default)]
pub struct ModelLife {
    /// Latest epoch of every group.
    epochs: BTreeMap<(PartitionId, GroupIndex), i64>,
    pub timer_ns: Option<i64>,
    pub draining: bool,
    batch_next: i64,
    /// Hashes of its networks.
    pub networks: BTreeSet<String>,
    lanes_wanted: i32,
}

/// The model around the scheduler under test.
pub struct Model {
    pub scheduler: Scheduler,
    pub config: SchedulerConfig,
    /// Configuration of autoscaling; `None` if it is off.
    pub autoscale: Option<AutoscaleConfig>,
    /// Configuration of shadow policies; `None` if there are none.
    shadow: Option<ShadowConfig>,
    pub at_ns: i64,
    pub lanes: Vec<ModelLane>,
    pub partitions: BTreeMap<PartitionId, ModelPartition>,
    pub tasks: ModelTasks,
    pub life: ModelLife,
    /// True if the rows of the last lost lane were kept.
    rows_kept: bool,
    pub journal: Vec<Recorded>,
    /// The fault still to be planted in a decision; `None` if there is none.
    pub plant: Option<Plant>,
    /// Number of occurrences of each kind of decision, and of each reason.
    pub seen: BTreeMap<String, i64>,
}

impl Model {
    pub fn start(
        at_ns: i64,
        config: SchedulerConfig,
        weights: &[i32],
        autoscale: Option<AutoscaleConfig>,
        shadow: Option<ShadowConfig>,
    ) -> Self {
        let mut model = Self {
            scheduler: Scheduler::new(),
            config: config.clone(),
            autoscale,
            shadow,
            at_ns,
            lanes: Vec::new(),
            partitions: BTreeMap::new(),
            tasks: ModelTasks::default(),
            life: ModelLife::default(),
            rows_kept: false,
            journal: Vec::new(),
            plant: None,
            seen: BTreeMap::new(),
        };
        model.restart(config, weights);
        model
    }

    /// Restarts the process after a crash: only the journal and the time continue.
    pub fn restart(&mut self, config: SchedulerConfig, weights: &[i32]) {
        self.config = config.clone();
        let lane = |&weight: &i32| ModelLane { ready: true, weight, ..ModelLane::default() };
        self.lanes = weights.iter().map(lane).collect();
        self.partitions.clear();
        self.tasks = ModelTasks::default();
        let Input::Started(started) = crate::script::started(config, weights) else { unreachable!() };
        let wanted = |of: AutoscaleConfig| (weights.len() as i32).clamp(of.lanes_min, of.lanes_max);
        self.life = ModelLife { lanes_wanted: self.autoscale.map_or(0, wanted), ..ModelLife::default() };
        let (autoscale, shadow) = (self.autoscale, self.shadow.clone());
        self.step(Input::Started(Box::new(Started { autoscale, shadow, ..*started })));
    }

    /// Steps the scheduler with an input that it must refuse without a trace.
    pub fn step_refused(&mut self, at_ns: i64, input: &Input) -> StepError {
        let before = self.scheduler.state_hash();
        let mut decisions = Vec::new();
        let error = self.scheduler.step(at_ns, input, &mut decisions).expect_err("bad input was accepted");
        assert!(decisions.is_empty(), "{error}: decided {decisions:?}");
        assert_eq!(self.scheduler.state_hash(), before, "{error}: the state changed");
        self.scheduler.audit();
        error
    }

    /// Takes a step with a valid input: applies it to the model, steps the scheduler, executes the decisions, and
    /// checks all invariants.
    pub fn step(&mut self, input: Input) {
        self.life.timer_ns = self.life.timer_ns.filter(|&timer_ns| timer_ns > self.at_ns);
        self.count_probe(&input);
        self.apply(&input);
        self.apply_to_tasks(&input);
        let bytes_before: BTreeMap<_, _> = self.waiting_bytes().collect();
        let hash_before = self.scheduler.state_hash();
        let mut decisions = Vec::new();
        let before = self.journal.len().is_multiple_of(EXPLAINED_STEPS).then(|| self.scheduler.clone());
        self.scheduler.step(self.at_ns, &input, &mut decisions).expect("good input was refused");
        if let Some(before) = before {
            explain::check(&before, self.at_ns, &input, &decisions);
        }
        if let Some(plant) = self.plant {
            self.plant = plant.spoil(&mut decisions, self.lanes.len()).then_some(plant);
        }
        for decision in &decisions {
            if !matches!(decision, Decision::Controlled(_)) {
                self.settle_shares();
            }
            self.execute(decision);
            if let (Input::Control(control), Decision::Controlled(controlled)) = (&input, decision) {
                self.execute_control(control, controlled);
            }
            if let (Input::TaskArrived(arrived), Decision::Admit(_)) = (&input, decision) {
                self.know_task(arrived);
            }
            if let Input::TaskArrived(arrived) = &input {
                self.check_quotas(arrived, decision);
            }
        }
        self.check_bytes(bytes_before, &input, &decisions);
        self.check_owed(&input, &decisions);
        self.check_tasks_owed(&input, &decisions);
        self.check_rest();
        self.check_breakers();
        self.check_tasks_rest();
        self.check_views();
        self.scheduler.audit();
        self.journal.push(Recorded { at_ns: self.at_ns, input, decisions, hash_before });
    }

    fn apply(&mut self, input: &Input) {
        match input {
            Input::Started(_) => (),
            Input::PartitionAssigned(assigned) => {
                let groups = (0..assigned.groups).map(|group| ModelGroup {
                    epoch: self.life.epochs.get(&(assigned.partition, group)).copied().unwrap_or(0),
                    ..ModelGroup::default()
                });
                let partition = ModelPartition {
                    assigned: true,
                    position: assigned.snapshot_offset,
                    groups: groups.collect(),
                    ..ModelPartition::default()
                };
                self.partitions.insert(assigned.partition, partition);
            }
            Input::PartitionRevoked(revoked) => {
                self.partitions.insert(revoked.partition, ModelPartition::default());
            }
            Input::Arrived(arrived) => {
                let partition = self.partitions.get_mut(&arrived.partition).unwrap();
                partition.position = arrived.next_offset;
                for arrival in &arrived.groups {
                    let group = &mut partition.groups[arrival.group as usize];
                    let rows = group.rows_arrived..group.rows_arrived + arrival.rows;
                    group.waiting.extend(rows.map(|row| (self.at_ns, row)));
                    group.rows_arrived += arrival.rows;
                    group.row_bytes_max = group.row_bytes_max.max(arrival.bytes / arrival.rows + 1);
                }
            }
            Input::Completed(completed) => {
                let lane = &mut self.lanes[completed.lane as usize];
                if let Some(late) = lane.voided.iter().position(|&batch| batch == completed.batch) {
                    lane.voided.remove(late);
                } else {
                    lane.in_flight.pop_front().unwrap();
                }
            }
            Input::LaneLost(lost) => {
                let lane = &mut self.lanes[lost.lane as usize];
                lane.ready = false;
                let voided: Vec<_> = lane.in_flight.drain(..).map(|dispatch| dispatch.batch).collect();
                lane.voided.extend(voided);
                self.rows_kept = lost.kept;
            }
            Input::LaneReady(ready) => self.lanes[ready.lane as usize].ready = true,
            Input::Woke(_) => self.life.timer_ns = None,
            Input::Draining(_) => self.life.draining = true,
            Input::Measured(_) => (),
            Input::Released(released) => {
                let partition = self.partitions.get_mut(&released.partition).unwrap();
                partition.groups[released.group as usize].leaving = None;
            }
            Input::TaskArrived(_) | Input::SliceDone(_) | Input::TaskDropped(_) | Input::Sealed(_) => (),
            Input::Priced(_) => (),
            Input::Sampled(sampled) => self.sampled(sampled),
            Input::Trained(trained) => assert!(self.life.networks.insert(trained.hash.clone()), "told twice"),
            Input::Control(_) | Input::Checkpoint(_) | Input::CommitEnded(_) | Input::Positions(_) => (),
        }
    }

    fn execute(&mut self, decision: &Decision) {
        let name = match decision {
            Decision::Place(place) => {
                self.execute_place(place);
                "place".to_owned()
            }
            Decision::Dispatch(dispatch) => {
                self.execute_dispatch(dispatch);
                format!("dispatch {:?}", dispatch.reason)
            }
            Decision::Pause(pause) => {
                let partition = self.partitions.get_mut(&pause.partition).unwrap();
                assert!(!partition.paused, "paused twice");
                assert_eq!(pause.waiting_rows, partition.waiting_rows());
                assert!(pause.waiting_rows >= pause.high_water_rows, "paused below the mark");
                assert_eq!(pause.high_water_rows, self.config.high_water_rows);
                partition.paused = true;
                "pause".to_owned()
            }
            Decision::Resume(resume) => {
                let partition = self.partitions.get_mut(&resume.partition).unwrap();
                assert!(partition.paused, "resumed without a pause");
                assert_eq!(resume.waiting_rows, partition.waiting_rows());
                assert!(resume.waiting_rows <= resume.low_water_rows, "resumed above the mark");
                assert_eq!(resume.low_water_rows, self.config.low_water_rows);
                partition.paused = false;
                "resume".to_owned()
            }
            Decision::Fence(fence) => {
                let leaving = self.leaving().iter().filter(|released| released.lane == fence.lane).count();
                let groups = self.groups_on(fence.lane) + leaving;
                assert_eq!(fence.groups as usize, groups, "groups that lose their lane");
                if !self.rows_kept {
                    return self.saw("fence");
                }
                let groups = self.partitions.values_mut().flat_map(|partition| &mut partition.groups);
                for group in groups.filter(|group| group.lane.or(group.leaving) == Some(fence.lane)) {
                    (group.lane, group.leaving, group.bound_for) = (None, None, None);
                }
                "fence, rows kept".to_owned()
            }
            Decision::Restore(restore) => {
                let partition = self.partitions.get_mut(&restore.partition).unwrap();
                let lost = Some(restore.lost_lane);
                let hit = partition.groups.iter().any(|group| group.lane.or(group.leaving) == lost);
                assert!(partition.assigned && hit, "a partition the lane had nothing of is restored");
                *partition = ModelPartition { restoring: true, ..ModelPartition::default() };
                "restore".to_owned()
            }
            Decision::WakeAt(wake) => {
                assert!(wake.at_ns > self.at_ns, "asked for a wake in the past");
                assert!(
                    self.life.timer_ns.is_none_or(|timer_ns| wake.at_ns < timer_ns),
                    "asked for a later wake"
                );
                self.life.timer_ns = Some(wake.at_ns);
                "wake".to_owned()
            }
            Decision::Release(release) => {
                assert!(!self.life.draining, "groups move while the pipeline drains");
                let partition = self.partitions.get_mut(&release.partition).unwrap();
                let group = &mut partition.groups[release.group as usize];
                assert_eq!((group.lane, group.epoch), (Some(release.lane), release.epoch));
                (group.lane, group.leaving) = (None, Some(release.lane));
                group.bound_for = release.route.map(|route| route.kind);
                self.check_release(release)
            }
            Decision::Breaker(change) => self.execute_breaker(change),
            Decision::Headroom(headroom) => self.execute_headroom(headroom),
            Decision::Scale(scale) => self.execute_scale(scale),
            Decision::Controlled(controlled) => format!("controlled {:?}", controlled.outcome),
            _ => self.execute_of_task(decision),
        };
        self.saw(&name);
    }

    fn execute_scale(&mut self, scale: &Scale) -> String {
        let config = self.autoscale.expect("nobody asked how many lanes are wanted");
        assert_eq!(scale.lanes_before, self.life.lanes_wanted, "{scale:?}");
        let is_allowed = (config.lanes_min..=config.lanes_max).contains(&scale.lanes);
        assert!(is_allowed && scale.lanes != scale.lanes_before, "{scale:?} under {config:?}");
        self.life.lanes_wanted = scale.lanes;
        if scale.lanes > scale.lanes_before { "scale up" } else { "scale down" }.to_owned()
    }

    fn saw(&mut self, name: &str) {
        *self.seen.entry(name.to_owned()).or_default() += 1;
    }

    fn groups_on(&self, lane: LaneId) -> usize {
        let groups = self.partitions.values().flat_map(|partition| &partition.groups);
        groups.filter(|group| group.lane == Some(lane)).count()
    }

    fn execute_place(&mut self, place: &Place) {
        let listed: BTreeSet<_> = place
            .candidates
            .iter()
            .map(|candidate| candidate.lane)
            .chain(place.excluded.iter().map(|exclusion| exclusion.lane))
            .collect();
        assert_eq!(listed.len(), place.candidates.len() + place.excluded.len(), "a lane is listed twice");
        assert!(listed.into_iter().eq(0..self.lanes.len() as i32), "every lane is a candidate or excluded");
        for candidate in &place.candidates {
            assert!(self.serves(candidate.lane), "a lane is a candidate that is lost or out of service");
            assert_eq!(candidate.groups_placed as usize, self.groups_on(candidate.lane));
            assert!(candidate.groups_placed < candidate.groups_max, "a full lane is a candidate");
        }
        let is_short = |lane: LaneId| self.lanes[lane as usize].is_short;
        let spared = place.candidates.iter().filter(|candidate| !is_short(candidate.lane)).count();
        assert!(spared == 0 || spared == place.candidates.len(), "a lane short of memory is a candidate");
        for exclusion in &place.excluded {
            let lane = &self.lanes[exclusion.lane as usize];
            assert_eq!(lane.ready, exclusion.reason != ExclusionReason::Lost, "{exclusion:?}");
            let is_out = lane.ready && !self.serves(exclusion.lane);
            assert_eq!(is_out && lane.drained, exclusion.reason == ExclusionReason::Drained, "{exclusion:?}");
            assert_eq!(is_out && !lane.drained, exclusion.reason == ExclusionReason::Broken, "{exclusion:?}");
            let serves = self.serves(exclusion.lane);
            let other_kind = place.route.is_some_and(|route| route.kind != kind_of(exclusion.lane));
            assert_eq!(serves && other_kind, exclusion.reason == ExclusionReason::Slower, "{exclusion:?}");
            let for_memory = exclusion.reason == ExclusionReason::Memory;
            assert!(!for_memory || (is_short(exclusion.lane) && spared > 0), "{exclusion:?}");
        }
        let bound_for = self.partitions[&place.partition].groups[place.group as usize].bound_for;
        if let Some(route) = place.route {
            assert_eq!(kind_of(place.lane), route.kind, "a group is placed where it does not belong");
            let [there_ns, other_ns] = predictions(&route);
            assert!(there_ns <= other_ns || bound_for == Some(route.kind), "{route:?}");
        }
        let best = place.candidates.iter().map(|candidate| (candidate.score, -candidate.lane)).max();
        assert_eq!(best.map(|(_, lane)| -lane), Some(place.lane), "the best candidate wins");
        assert_eq!(place.propensity_ppm, 1_000_000);

        let key = (place.partition, place.group);
        let group = &mut self.partitions.get_mut(&key.0).unwrap().groups[key.1 as usize];
        assert_eq!((group.lane, group.leaving), (None, None), "a group with an owner is placed");
        assert_eq!(place.epoch, self.life.epochs.get(&key).copied().unwrap_or(0) + 1, "epochs rise by one");
        self.life.epochs.insert(key, place.epoch);
        (group.lane, group.bound_for) = (Some(place.lane), None);
        group.epoch = place.epoch;
    }

    fn execute_dispatch(&mut self, dispatch: &Dispatch) {
        assert_eq!(dispatch.batch, self.life.batch_next, "batches are numbered in order");
        self.life.batch_next += 1;
        let config = &self.config;
        let lane = &self.lanes[dispatch.lane as usize];
        assert!(lane.ready, "a lost lane gets a batch");
        let rows: i64 = lane.in_flight.iter().map(|other| other.rows).sum();
        let bytes: i64 = lane.in_flight.iter().map(|other| other.bytes).sum();
        let telemetry = &dispatch.telemetry;
        assert_eq!((telemetry.in_flight_rows, telemetry.in_flight_bytes), (rows, bytes));
        assert_eq!(telemetry.in_flight_batches as usize, lane.in_flight.len());
        assert!(lane.in_flight.len() < config.lane_batches_max as usize, "more batches than allowed");
        assert!(rows + dispatch.rows <= config.lane_credit_rows, "more rows than credit");
        let alone = lane.in_flight.is_empty() && dispatch.rows == 1;
        let weightless = dispatch.bytes == 0;
        assert!(
            alone || weightless || bytes + dispatch.bytes <= config.lane_credit_bytes,
            "more bytes than credit"
        );
        assert!((1..=config.batch_rows_max).contains(&dispatch.rows), "an empty batch, or one too large");
        assert_eq!(dispatch.rows, dispatch.takes.iter().map(|take| take.rows).sum::<i64>());
        assert!(dispatch.predicted_finish_ns >= self.at_ns);
        match dispatch.reason {
            ReleaseReason::Idle => assert!(lane.in_flight.is_empty() && !self.life.draining),
            ReleaseReason::Full | ReleaseReason::Deadline => assert!(!self.life.draining),
            ReleaseReason::Drain => assert!(self.life.draining),
        }

        let mut heads = Vec::new();
        for take in &dispatch.takes {
            let partition = self.partitions.get_mut(&take.partition).unwrap();
            let group = &mut partition.groups[take.group as usize];
            assert_eq!(group.lane, Some(dispatch.lane), "rows go to a lane that does not own them");
            assert_eq!(take.epoch, group.epoch);
            assert!(take.rows >= 1 && take.rows <= group.waiting.len() as i64, "rows that are not there");
            heads.push((group.waiting[0].0, take.partition, take.group));
            for _ in 0..take.rows {
                let (_, row) = group.waiting.pop_front().unwrap();
                assert_eq!(row, group.row_next, "each row goes once, in order");
                group.row_next += 1;
            }
        }
        assert!(heads.is_sorted_by(|one, next| one < next), "oldest groups go first: {heads:?}");
        assert_eq!(dispatch.oldest_arrival_ns, heads[0].0);
        let left = self.lane_heads(dispatch.lane).next();
        assert!(left.is_none_or(|left| left.0 >= heads[0].0), "an older row was left behind");
        self.lanes[dispatch.lane as usize].in_flight.push_back(dispatch.clone());
    }

    /// Groups of a lane with waiting rows, as (arrival of the oldest row, partition, group); oldest first.
    fn lane_heads(&self, lane: LaneId) -> impl Iterator<Item = (i64, PartitionId, GroupIndex)> {
        let mut heads = BTreeSet::new();
        for (&id, partition) in &self.partitions {
            for (index, group) in partition.groups.iter().enumerate() {
                if let (Some(owner), Some(&(oldest_ns, _))) = (group.lane, group.waiting.front())
                    && owner == lane
                {
                    heads.insert((oldest_ns, id, index as GroupIndex));
                }
            }
        }
        heads.into_iter()
    }

    fn waiting_bytes(&self) -> impl Iterator<Item = (PartitionId, i64)> {
        self.scheduler.partition_loads().map(|load| (load.partition, load.waiting_bytes))
    }

    /// Checks that no bytes are created or lost: waiting bytes are those before, plus arrivals, less dispatched and
    /// dropped ones.
    fn check_bytes(&self, mut bytes: BTreeMap<PartitionId, i64>, input: &Input, decisions: &[Decision]) {
        match input {
            Input::Started(_) => bytes.clear(),
            Input::PartitionAssigned(assigned) => _ = bytes.insert(assigned.partition, 0),
            Input::PartitionRevoked(revoked) => _ = bytes.insert(revoked.partition, 0),
            Input::Arrived(arrived) => {
                let came: i64 = arrived.groups.iter().map(|arrival| arrival.bytes).sum();
                *bytes.entry(arrived.partition).or_default() += came;
            }
            Input::Completed(_) | Input::LaneLost(_) | Input::LaneReady(_) | Input::Woke(_) => (),
            Input::Draining(_) | Input::Measured(_) | Input::Released(_) => (),
            Input::TaskArrived(_) | Input::SliceDone(_) | Input::TaskDropped(_) | Input::Sealed(_) => (),
            Input::Priced(_) => (),
            Input::Sampled(_) | Input::Control(_) | Input::Checkpoint(_) => (),
            Input::CommitEnded(_) | Input::Trained(_) | Input::Positions(_) => (),
        }
        let mut went = 0;
        for decision in decisions {
            match decision {
                Decision::Restore(restore) => _ = bytes.insert(restore.partition, 0),
                Decision::Dispatch(dispatch) => went += dispatch.bytes,
                _ => (),
            }
        }
        let waited: i64 = bytes.values().sum();
        assert_eq!(self.waiting_bytes().map(|(_, bytes)| bytes).sum::<i64>(), waited - went);
    }

    /// Checks the decisions that some inputs require, whatever else they cause.
    fn check_owed(&self, input: &Input, decisions: &[Decision]) {
        let fences = decisions.iter().filter(|decision| matches!(decision, Decision::Fence(_))).count();
        assert_eq!(fences, usize::from(matches!(input, Input::LaneLost(_))), "a loss is fenced, once");
        let any_ready = self.lanes.iter().any(|lane| lane.ready);
        let commands = decisions.iter().filter(|decision| matches!(decision, Decision::Controlled(_)));
        assert_eq!(
            commands.count(),
            usize::from(matches!(input, Input::Control(_))),
            "a command is answered"
        );
        for lane in (0..self.lanes.len() as LaneId).filter(|_| !self.life.draining && !self.may_be_short()) {
            assert!(
                self.serves(lane) || self.groups_on(lane) == 0,
                "a lane keeps groups that is out of service"
            );
        }
        for partition in self.partitions.values() {
            for group in &partition.groups {
                let has_lane = group.lane.or(group.leaving).is_some();
                // The next step places groups for which this one has no room.
                assert!(
                    has_lane == any_ready || (any_ready && self.may_be_short()),
                    "groups are placed while a lane is ready"
                );
                assert!(
                    group.lane.or(group.leaving).is_none_or(|lane| self.lanes[lane as usize].ready),
                    "a lost lane has a group"
                );
            }
        }
    }

    /// Groups that lanes must release, with their lanes and epochs.
    pub fn leaving(&self) -> Vec<Released> {
        let mut leaving = Vec::new();
        for (&partition, known) in &self.partitions {
            for (index, group) in known.groups.iter().enumerate() {
                let released = |lane| Released { partition, group: index as i32, lane, epoch: group.epoch };
                leaving.extend(group.leaving.map(released));
            }
        }
        leaving
    }

    /// Replays the recorded inputs with a new scheduler, which must make the same decisions and have the same hashes.
    pub fn check_replay(&self) {
        let mut scheduler = Scheduler::new();
        for (number, recorded) in self.journal.iter().enumerate() {
            assert_eq!(scheduler.state_hash(), recorded.hash_before);
            if number % CHECKPOINT_STEPS == 0 {
                scheduler = Scheduler::from_checkpoint(&scheduler.checkpoint()).expect("it was just written");
                scheduler.audit();
            }
            let mut decisions = Vec::new();
            scheduler.step(recorded.at_ns, &recorded.input, &mut decisions).expect("it was accepted before");
            assert_eq!(decisions, recorded.decisions);
        }
        assert_eq!(scheduler.state_hash(), self.scheduler.state_hash());
    }

    /// Checks that the decisions are the same without shadow policies. A shadow policy that uses prices is excluded,
    /// because it causes questions for them.
    pub fn check_without_shadow(&self) {
        let Some(shadow) = &self.shadow else { return };
        if shadow.policies.iter().any(|policy| policy.starts_with("lp-price")) {
            return;
        }
        let mut scheduler = Scheduler::new();
        for recorded in &self.journal {
            let input = match recorded.input.clone() {
                Input::Started(started) => Input::Started(Box::new(Started { shadow: None, ..*started })),
                input => input,
            };
            let mut decisions = Vec::new();
            scheduler.step(recorded.at_ns, &input, &mut decisions).expect("it was accepted before");
            let mut expected = recorded.decisions.clone();
            expected.retain(|decision| !matches!(decision, Decision::Shadow(_)));
            assert_eq!(decisions, expected);
        }
    }
}
