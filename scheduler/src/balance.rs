//! Balancing: groups move from busy lanes to idle ones, by measured load.
//!
//! ```text
//!   Arrived ────► rows of each group ───────┐                       three windows in succession
//!   Completed ──► time of a row on a lane ──┴──► each window: gain of a move > 2 × its cost? ──► Release ──► Released ──► Place
//!   Released ───► cost of a move ───────────────────────────────────────────┘
//! ```
//!
//! A lane's *load* is the time that its groups take it in a second: their rows, times the lane's time for a row. The
//! rows are those that arrive in a second, plus those that wait. The time for a row is the class's time in a batch of
//! average size, times the lane's *slowness*. The slowness is the ratio of the lane's time for its batches to its
//! class's time. So batches of unlike sizes do not mislead, and a lane that slows down is seen within a window.
//!
//! The *gain* of a move is the decrease of the greater of the two lanes' loads, over a window. Loads within an eighth
//! of each other are alike. Groups move between host lanes and device lanes by their routes alone, if routes are on.
//!
//! The module owns the measurements and the choice of groups that move. It must not know the next lane of a released
//! group: the policy decides that.

mod loads;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{
    Decision, GroupIndex, Imbalance, LaneId, LaneKind, ReleaseCause, ServicePoint,
};

use crate::classes::ClassId;
use crate::config::{DURATION_NS_MAX, ROWS_MAX, SERVICE_PS_PER_ROW_MAX};
use crate::lanes::Lane;
use crate::life::{Clock, Life};
use crate::partitions::{Group, GroupKey};
use crate::service::{Serving, let_go};
use crate::service_curve::ServiceCurve;
use crate::state_hash::{Component, StateHash, hash_component};
use crate::topology::Closeness;
pub(crate) use loads::{Loads, Sums};

/// Successive windows in which a move must pay before it is made.
const WINDOWS: i64 = 3;
/// A move pays if its gain exceeds this multiple of its cost.
const GAIN_COSTS: i64 = 2;
/// Lanes are alike if the load of the busier one is greater by at most this share: 1/8.
const ALIKE: i64 = 8;
/// Most groups that leave one lane in a window. Below: most that leave all lanes together.
const MOVES_OF_LANE_MAX: usize = 4;
const MOVES_MAX: usize = 16;
/// Most target lanes of each kind for a group: those with the least load.
const TARGETS_MAX: usize = 8;
/// Assumed cost of a move before any was measured, as a share of a window: 1/100.
const MOVE_UNKNOWN: i64 = 100;
/// Windows without a batch after which the speed of a lane or a class counts as unknown.
const WINDOWS_KNOWN: i64 = 16;
/// Share by which a new sample moves a group's row rate and the cost of a move: 1/4.
const ROWS_SMOOTHING: i64 = 4;
/// Share by which a new sample moves a lane's slowness and the size of batches: 1/2.
const LANE_SMOOTHING: i64 = 2;
/// Slowness of a lane that is as fast as its class, in thousandths.
const PAR: i64 = 1_000;
const SLOWNESS_MAX: i64 = PAR << 20;
/// Most that a batch counts for, as a multiple of its expected time on its lane.
const OUTLIER: i64 = 16;
/// Most that a batch may take to count for its class, as a multiple of the expected time on the least slow lane.
const CLASS_OUTLIER: i128 = 2;
/// Rows per second assumed for a group while no group is measured. Below: picoseconds per row assumed for a lane of
/// weight one while no lane is measured.
const ROWS_UNKNOWN: i64 = 1_000;
const PS_PER_ROW_UNKNOWN: i64 = 1_000_000;
const NS_PER_S: i128 = 1_000_000_000;
/// First number of this module's curves in the state hash; lower numbers belong to `routing`.
const CURVES_FROM: i64 = 1_000;

/// Measurements of all lanes; empty under a policy that does not use them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Balance {
    /// Start of the window. Below: its end; 0 before the first.
    begun_ns: i64,
    next_ns: i64,
    /// Rows of a batch, smoothed over windows; 0 before the first.
    batch_rows: i64,
    /// Smoothed duration of a move, by closeness, in nanoseconds; 0 before the first.
    moves_ns: [i64; Closeness::COUNT],
    /// Work of each lane.
    lanes: Vec<LaneWork>,
    /// Work of each class.
    classes: Vec<ClassWork>,
    contribution: u64,
    /// Sums of the row rates of each lane's groups; `None` while they are not kept.
    #[serde(skip)]
    pub(crate) sums: Option<Sums>,
}

/// Work of a lane in the window, and its slowness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LaneWork {
    rows: i64,
    batches: i64,
    service_ns: i64,
    /// Expected time of its class for these batches.
    expected_ns: i64,
    /// Ratio of the lane's time to its class's, in thousandths, smoothed; 0 if unknown.
    slowness: i64,
    /// Successive windows without a batch.
    idle_windows: i64,
    /// End of its last batch; 0 before the first.
    done_ns: i64,
    contribution: u64,
}

/// Time of the class's lanes for a batch, by its rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ClassWork {
    curve: ServiceCurve,
    /// True if there was a batch in the window.
    is_fresh: bool,
    /// Successive windows without a batch.
    idle_windows: i64,
    /// Slowness of its least slow lane; 0 if none is known.
    par: i64,
    contribution: u64,
}

impl LaneWork {
    fn hash(&self, lane: i64) -> u64 {
        let LaneWork { rows, batches, service_ns, expected_ns, slowness, idle_windows, done_ns, .. } = *self;
        match (done_ns, idle_windows) {
            (0, 0) => 0,
            _ => hash_component(
                Component::LaneWork,
                [lane, rows, batches, service_ns, expected_ns, slowness, idle_windows, done_ns],
            ),
        }
    }

    /// Ends a window.
    fn close(&mut self, is_idle: bool) {
        if self.batches > 0 {
            let sample = i128::from(self.service_ns) * i128::from(PAR) / i128::from(self.expected_ns.max(1));
            let sample = sample.clamp(1, i128::from(SLOWNESS_MAX)) as i64;
            self.slowness = match self.slowness {
                0 => sample,
                known => known + (sample - known) / LANE_SMOOTHING,
            };
            self.idle_windows = 0;
        } else if is_idle {
            self.idle_windows = (self.idle_windows + 1).min(WINDOWS_KNOWN);
            if self.idle_windows == WINDOWS_KNOWN {
                self.slowness = 0;
            }
        }
        (self.rows, self.batches, self.service_ns, self.expected_ns) = (0, 0, 0, 0);
    }
}

impl ClassWork {
    fn hash(&self, class: i64) -> u64 {
        match (self.is_fresh, self.idle_windows, self.par) {
            (false, 0, 0) => 0,
            (is_fresh, idle_windows, par) => {
                hash_component(Component::ClassWork, [class, i64::from(is_fresh), idle_windows, par])
            }
        }
    }

    /// Predicted time of a batch; `None` if it is unknown or outdated. For a batch smaller than the smallest known one,
    /// half of that one's time is assumed to scale with the rows.
    fn predict(&self, rows: i64) -> Option<i64> {
        let predicted_ns = self.curve.predict(rows).filter(|_| self.idle_windows < WINDOWS_KNOWN)?;
        let smallest = self.curve.rows_least()?;
        if rows >= smallest {
            return Some(predicted_ns);
        }
        let predicted_ns = i128::from(predicted_ns) * i128::from(rows + smallest) / i128::from(2 * smallest);
        Some(predicted_ns as i64)
    }
}

impl Balance {
    pub(crate) fn new(lanes: usize, classes: usize) -> Self {
        Self {
            lanes: vec![LaneWork::default(); lanes],
            classes: (0..classes).map(|_| ClassWork::default()).collect(),
            ..Self::default()
        }
    }

    fn hash(&self) -> u64 {
        if self.begun_ns == 0 && self.moves_ns == [0; Closeness::COUNT] {
            return 0;
        }
        let [far, node, pcie, nvlink, device, same] = self.moves_ns;
        let fields = [self.begun_ns, self.next_ns, self.batch_rows, far, node, pcie, nvlink, device, same];
        hash_component(Component::Balance, fields)
    }

    fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    fn refresh_lane(&mut self, lane: usize, hash: &mut StateHash) {
        let now = self.lanes[lane].hash(lane as i64);
        hash.replace(&mut self.lanes[lane].contribution, now);
    }

    fn refresh_class(&mut self, class: usize, hash: &mut StateHash) {
        let now = self.classes[class].hash(class as i64);
        hash.replace(&mut self.classes[class].contribution, now);
    }

    /// Hash of everything here, computed by walking over it.
    pub(crate) fn walked_hash(&self) -> u64 {
        let lanes = (0..).zip(&self.lanes).map(|(number, lane)| lane.hash(number));
        let of_class = |(number, class): (i64, &ClassWork)| {
            class.hash(number).wrapping_add(class.curve.walked_hash(CURVES_FROM + number))
        };
        let classes = (0..).zip(&self.classes).map(of_class);
        lanes.chain(classes).fold(self.hash(), u64::wrapping_add)
    }

    /// Picoseconds per row of each lane, in a batch of average size. A lane of an unmeasured class is estimated by its
    /// weight relative to the measured lanes.
    fn ps_per_row(&self, lanes: &[Lane]) -> Vec<i64> {
        let rows = self.batch_rows.max(1);
        let weight = |lane: &Lane| i128::from(lane.weight.current.max(1));
        let measured = |lane: &Lane| {
            let class_ns = i128::from(self.classes[lane.class.index()].predict(rows)?);
            let slowness = match self.lanes[lane.id as usize].slowness {
                0 => PAR,
                known => known,
            };
            let ps = class_ns * i128::from(slowness) / i128::from(rows) * 1_000 / i128::from(PAR);
            Some(ps.clamp(1, i128::from(SERVICE_PS_PER_ROW_MAX)) as i64)
        };
        let known: Vec<Option<i64>> = lanes.iter().map(measured).collect();
        let of_known =
            lanes.iter().zip(&known).filter_map(|(lane, ps)| Some(i128::from((*ps)?) * weight(lane)));
        let (sum, count) = of_known.fold((0, 0), |(sum, count), ps| (sum + ps, count + 1));
        let of_weight_one = if count == 0 { i128::from(PS_PER_ROW_UNKNOWN) } else { sum / count };
        let by_weight =
            |lane: &Lane| (of_weight_one / weight(lane)).clamp(1, i128::from(SERVICE_PS_PER_ROW_MAX)) as i64;
        lanes.iter().zip(known).map(|(lane, ps)| ps.unwrap_or_else(|| by_weight(lane))).collect()
    }

    /// Cost of a move, given its measured duration; a share of the window if none was measured (0).
    fn cost_ns(took_ns: i64, interval_ns: i64) -> i64 {
        match took_ns {
            0 => (interval_ns / MOVE_UNKNOWN).max(1),
            known => known,
        }
    }
}

/// Measurements of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupWork {
    /// Rows that arrived in the window.
    window_rows: i64,
    /// Rows that arrive in a second, smoothed over windows; `None` before the first.
    rows_per_s: Option<i64>,
    /// Successive windows in which a move would have paid.
    windows: i64,
    /// The lane that owns the group, or owned it last.
    home: Option<LaneId>,
    /// The lane that the group is moving to, and the time at which its move began.
    bound: Option<(LaneId, i64)>,
    contribution: u64,
}

impl GroupWork {
    /// Hash of the measurements; 0 if there are none.
    pub(crate) fn hash(&self, key: GroupKey) -> u64 {
        if (Self { contribution: 0, ..*self }) == Self::default() {
            return 0;
        }
        let (bound, since_ns) = self.bound.unwrap_or((-1, 0));
        let fields = [
            i64::from(key.partition),
            i64::from(key.group),
            self.window_rows,
            self.rows_per_s.unwrap_or(-1),
            self.windows,
            self.home.map_or(-1, i64::from),
            i64::from(bound),
            since_ns,
        ];
        hash_component(Component::GroupWork, fields)
    }

    fn refresh(&mut self, key: GroupKey, hash: &mut StateHash) {
        let now = self.hash(key);
        hash.replace(&mut self.contribution, now);
    }

    /// Counts rows that have arrived.
    pub(crate) fn arrive(&mut self, key: GroupKey, rows: i64, hash: &mut StateHash) {
        self.window_rows = self.window_rows.saturating_add(rows).min(ROWS_MAX);
        self.refresh(key, hash);
    }

    /// Notes the group's new lane.
    pub(crate) fn place(&mut self, key: GroupKey, lane: LaneId, hash: &mut StateHash) {
        (self.home, self.bound, self.windows) = (Some(lane), None, 0);
        self.refresh(key, hash);
    }

    /// Clears the lane that the group is moving to.
    pub(crate) fn unbind(&mut self, key: GroupKey, hash: &mut StateHash) {
        self.bound = None;
        self.refresh(key, hash);
    }

    /// Forgets the measurements.
    pub(crate) fn forget(&mut self, key: GroupKey, hash: &mut StateHash) {
        *self = Self { contribution: self.contribution, ..Self::default() };
        self.refresh(key, hash);
    }

    /// The lane that owns the group, or owned it last.
    pub(crate) fn home(&self) -> Option<LaneId> {
        self.home
    }

    /// The lane that the group is moving to.
    pub(crate) fn bound(&self) -> Option<LaneId> {
        self.bound.map(|(lane, _)| lane)
    }

    fn close(&mut self, elapsed_ns: i64) {
        let sample = i128::from(self.window_rows) * NS_PER_S / i128::from(elapsed_ns.max(1));
        let sample = sample.min(i128::from(ROWS_MAX)) as i64;
        self.rows_per_s = Some(match self.rows_per_s {
            None => sample,
            Some(known) => known + (sample - known) / ROWS_SMOOTHING,
        });
        self.window_rows = 0;
    }
}

/// Panics unless the kept sums equal those of the groups.
pub(crate) fn audit(life: &Life) {
    if let Some(sums) = &life.balance.sums {
        assert_eq!(*sums, Sums::new(life), "what arrives for each lane's groups");
    }
}

/// True if the loads of two lanes are nearly equal.
fn are_alike(load_ns: i64, other_ns: i64) -> bool {
    load_ns <= other_ns + other_ns / ALIKE
}

/// True if the two loads differ enough, and the gain is worth the cost.
fn pays(imbalance: &Imbalance) -> bool {
    let &Imbalance { from_load_ns, to_load_ns, gain_ns, cost_ns, .. } = imbalance;
    !are_alike(from_load_ns, to_load_ns) && gain_ns > cost_ns * GAIN_COSTS
}

/// Learns from the time that a lane took for a batch.
pub(crate) fn learn(life: &mut Life, lane: LaneId, class: ClassId, sample: ServicePoint) {
    if !life.policy.is_measured() {
        return;
    }
    let Life { balance, hash, clock: Clock { at_ns, .. }, .. } = life;
    let (lane, class) = (lane as usize, class.index());
    let service_ns = sample.service_ns.min(DURATION_NS_MAX);
    let expected_ns = balance.classes[class].predict(sample.rows).unwrap_or(service_ns).max(1);
    let work = &mut balance.lanes[lane];
    work.rows = work.rows.saturating_add(sample.rows);
    work.batches += 1;
    work.done_ns = *at_ns;
    let most_ns = i128::from(expected_ns) * i128::from(work.slowness.max(PAR)) / i128::from(PAR);
    let most_ns = (most_ns * i128::from(OUTLIER)).min(i128::from(service_ns)) as i64;
    work.service_ns = work.service_ns.saturating_add(most_ns);
    work.expected_ns = work.expected_ns.saturating_add(expected_ns);
    let known = &mut balance.classes[class];
    if known.idle_windows == WINDOWS_KNOWN {
        known.curve.forget(hash);
    }
    // A lane that is slower than its class does not change the class's times: the excess is the lane's own slowness.
    let most = i128::from(known.par.max(PAR)) * CLASS_OUTLIER;
    let is_at_par = i128::from(work.slowness) <= most
        && i128::from(service_ns) * i128::from(PAR) <= i128::from(expected_ns) * most;
    if is_at_par {
        known.curve.learn(CURVES_FROM + class as i64, sample, hash);
    }
    (known.is_fresh, known.idle_windows) = (true, 0);
    balance.refresh_lane(lane, hash);
    balance.refresh_class(class, hash);
}

/// Learns from a lane's measurement at its start.
pub(crate) fn measured(life: &mut Life, lane: LaneId, points: &[ServicePoint]) {
    if !life.policy.is_measured() {
        return;
    }
    let Life { balance, lanes, hash, .. } = life;
    let class = lanes[lane as usize].class.index();
    for &point in points {
        balance.classes[class].curve.learn(CURVES_FROM + class as i64, point, hash);
    }
}

/// Learns the cost of a move when a lane has released a group. The time counts from the end of the lane's last batch,
/// because the group's rows would have waited for earlier batches anyway.
pub(crate) fn moved(life: &mut Life, key: GroupKey, from: LaneId) {
    let Life { balance, partitions, topology, hash, clock: Clock { at_ns, .. }, .. } = life;
    let partition = partitions.get(&key.partition).expect("admission found the partition");
    let Some((to, since_ns)) = partition.groups[key.group as usize].work.bound else { return };
    let since_ns = since_ns.max(balance.lanes[from as usize].done_ns);
    let took_ns = (*at_ns - since_ns).clamp(1, DURATION_NS_MAX);
    let known = &mut balance.moves_ns[topology.between(from, to) as usize];
    *known = match *known {
        0 => took_ns,
        known => known + (took_ns - known) / ROWS_SMOOTHING,
    };
    balance.refresh(hash);
}

/// Forgets the speed of a lost lane, because its speed after the restart is unknown.
pub(crate) fn forget_lane(life: &mut Life, lane: LaneId) {
    let Life { balance, hash, .. } = life;
    let work = &mut balance.lanes[lane as usize];
    *work = LaneWork { contribution: work.contribution, ..LaneWork::default() };
    balance.refresh_lane(lane as usize, hash);
}

/// Forgets all measurements, because the new policy uses different ones.
pub(crate) fn forget(life: &mut Life) {
    let Life { balance, partitions, hash, .. } = life;
    hash.remove(balance.walked_hash());
    *balance = Balance::new(balance.lanes.len(), balance.classes.len());
    for partition in partitions.values_mut() {
        for (index, group) in partition.groups.iter_mut().enumerate() {
            let key = GroupKey { partition: partition.id, group: index as GroupIndex };
            group.work.forget(key, hash);
        }
    }
}

/// Ends the window if its time has come, and makes lanes release groups that are better placed on other lanes.
pub(crate) fn release(life: &mut Life, decisions: &mut Vec<Decision>) {
    let interval_ns = life.config.balance_interval_ns;
    if !life.policy.is_measured()
        || interval_ns == 0
        || life.clock.draining
        || life.clock.at_ns < life.balance.next_ns
    {
        return;
    }
    let elapsed_ns = life.clock.at_ns - life.balance.begun_ns;
    let is_first = life.balance.next_ns == 0;
    (life.balance.begun_ns, life.balance.next_ns) = (life.clock.at_ns, life.clock.at_ns + interval_ns);
    if !is_first {
        close(life, elapsed_ns);
        life.balance.sums = Some(Sums::new(life));
        count_windows(life);
        for (key, imbalance) in moves(life) {
            if !life.step.room.is_there() {
                break;
            }
            let mut release = let_go(life, key, ReleaseCause::Balance, None);
            let Life { balance, partitions, hash, clock: Clock { at_ns, .. }, .. } = life;
            let partition = partitions.get_mut(&key.partition).expect("the group was found in it");
            let group = partition.group_mut(key.group);
            group.work.bound = Some((imbalance.to, *at_ns));
            group.work.refresh(key, hash);
            if let Some(sums) = &mut balance.sums {
                sums.add(key, group);
            }
            release.imbalance = Some(imbalance);
            let decision = Decision::Release(release);
            life.step.room.take(&decision);
            decisions.push(decision);
        }
    }
    let Life { balance, hash, .. } = life;
    balance.refresh(hash);
}

/// Learns from the counts of the window.
fn close(life: &mut Life, elapsed_ns: i64) {
    let Life { balance, lanes, partitions, hash, .. } = life;
    let (rows, batches) =
        balance.lanes.iter().fold((0, 0), |(rows, batches), lane| (rows + lane.rows, batches + lane.batches));
    if batches > 0 {
        let mean = rows / batches;
        let known = balance.batch_rows;
        balance.batch_rows = if known == 0 { mean } else { known + (mean - known) / LANE_SMOOTHING };
    }
    for (index, lane) in lanes.iter().enumerate() {
        balance.lanes[index].close(lane.is_idle());
        balance.refresh_lane(index, hash);
    }
    for index in 0..balance.classes.len() {
        let class = &mut balance.classes[index];
        let idle_windows = if class.is_fresh { 0 } else { class.idle_windows + 1 };
        (class.is_fresh, class.idle_windows) = (false, idle_windows.min(WINDOWS_KNOWN));
        let of_class = lanes.iter().filter(|lane| lane.class.index() == index);
        let known = of_class.map(|lane| balance.lanes[lane.id as usize].slowness).filter(|known| *known > 0);
        class.par = known.min().unwrap_or(0);
        balance.refresh_class(index, hash);
    }
    for partition in partitions.values_mut() {
        for group in &mut partition.groups[..partition.groups_active] {
            group.work.close(elapsed_ns);
        }
    }
}

/// Counts the successive windows in which a move of each group would have paid.
fn count_windows(life: &mut Life) {
    let loads = Loads::new(life);
    let targets = Targets::new(life, &loads);
    let is_busy: Vec<bool> = life.lanes.iter().map(|lane| loads.is_busier(lane.id)).collect();
    let mut paid = Vec::new();
    for partition in life.partitions.values() {
        for group in partition.active() {
            let may_pay = group.lane.is_some_and(|lane| is_busy[lane as usize]);
            paid.push(may_pay && targets.best(life, &loads, group).is_some());
        }
    }
    let Life { partitions, hash, .. } = life;
    let mut paid = paid.into_iter();
    for partition in partitions.values_mut() {
        for (index, group) in partition.groups[..partition.groups_active].iter_mut().enumerate() {
            let has_paid = paid.next().expect("each group was judged");
            group.work.windows = if has_paid { (group.work.windows + 1).min(WINDOWS) } else { 0 };
            group.work.refresh(GroupKey { partition: partition.id, group: index as GroupIndex }, hash);
        }
    }
}

/// The groups to move now, the greatest gain first.
fn moves(life: &Life) -> Vec<(GroupKey, Imbalance)> {
    let mut loads = Loads::new(life);
    let mut targets = Targets::new(life, &loads);
    let mut due = Vec::new();
    for partition in life.partitions.values() {
        for (index, group) in partition.active().iter().enumerate() {
            if group.work.windows >= WINDOWS
                && let Some(imbalance) = targets.best(life, &loads, group)
            {
                let key = GroupKey { partition: partition.id, group: index as GroupIndex };
                due.push((-imbalance.gain_ns, key));
            }
        }
    }
    due.sort_unstable();
    let mut left = vec![MOVES_OF_LANE_MAX; life.lanes.len()];
    let mut moves = Vec::new();
    for (_, key) in due {
        let group = &life.partitions[&key.partition].groups[key.group as usize];
        let Some(from) = group.lane.filter(|lane| left[*lane as usize] > 0) else { continue };
        // Each move lowers the gain of the others.
        let Some(imbalance) = targets.best(life, &loads, group) else { continue };
        left[from as usize] -= 1;
        loads.shift(from, imbalance.to, group);
        targets = Targets::new(life, &loads);
        moves.push((key, imbalance));
        if moves.len() == MOVES_MAX {
            break;
        }
    }
    moves
}

/// The target lanes for moves.
struct Targets {
    serving: Serving,
    /// The lanes of each kind with the least load: host lanes, then device lanes.
    least: [Vec<LaneId>; 2],
    /// Least possible cost of a move, in nanoseconds.
    cost_least_ns: i64,
}

impl Targets {
    fn new(life: &Life, loads: &Loads) -> Self {
        let serving = Serving::of(&life.lanes);
        // Lanes of weight 0 are targets if there are no others.
        let stand_in = !life.lanes.iter().any(|lane| serving.has(lane) && lane.weight.current > 0);
        let least = [LaneKind::Host, LaneKind::Device].map(|kind| {
            let may_come = |lane: &&Lane| {
                let is_wanted = lane.weight.current > 0 || stand_in;
                lane.kind == kind && serving.has(lane) && is_wanted && !lane.service.is_short_of_memory()
            };
            let mut lanes: Vec<LaneId> = life.lanes.iter().filter(may_come).map(|lane| lane.id).collect();
            lanes.sort_unstable_by_key(|lane| (loads.load_ns[*lane as usize], *lane));
            lanes.truncate(TARGETS_MAX);
            lanes
        });
        let interval_ns = life.config.balance_interval_ns;
        let costs = life.balance.moves_ns.iter().map(|cost_ns| Balance::cost_ns(*cost_ns, interval_ns));
        Self { serving, least, cost_least_ns: costs.min().unwrap_or(0) }
    }

    /// The best move of a group; `None` if none pays.
    fn best(&self, life: &Life, loads: &Loads, group: &Group) -> Option<Imbalance> {
        let from = &life.lanes[group.lane? as usize];
        // A move gains at most the time that the group takes its present lane.
        let most_ns = over_window(loads.ns(from.id, loads.rows_of(group)), life);
        if most_ns <= self.cost_least_ns * GAIN_COSTS || !self.serving.has(from) {
            return None;
        }
        let [host, device] = &self.least;
        let (own, other) = match from.kind {
            LaneKind::Host => (host, device),
            LaneKind::Device => (device, host),
        };
        let other: &[LaneId] = if life.routes() { &[] } else { other };
        let lanes = own.iter().chain(other).filter(|lane| **lane != from.id);
        let judged = lanes.map(|lane| loads.judge(life, group, from.id, *lane)).filter(pays);
        // Between equal gains, the lane with the least load wins, then the first one.
        let worth = |imbalance: &Imbalance| {
            let Imbalance { gain_ns, cost_ns, to_load_ns, group_load_ns, .. } = *imbalance;
            (gain_ns - cost_ns, -to_load_ns.saturating_add(group_load_ns))
        };
        judged.reduce(|best, other| if worth(&other) > worth(&best) { other } else { best })
    }
}

/// Converts a saving per second to a saving per window.
fn over_window(saved_ns: i64, life: &Life) -> i64 {
    (i128::from(saved_ns) * i128::from(life.config.balance_interval_ns) / NS_PER_S) as i64
}
