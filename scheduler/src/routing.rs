//! Routing: whether a group is better off on host lanes or on device lanes, by the learnt batch times of each class.
//!
//! ```text
//!   Measured, Completed ──► time of a batch on a class, by its rows ────────┐
//!   Dispatch ─────────────► rows that go to lanes together with a group's ──┴──► Route ──► Release, Place
//! ```
//!
//! A device takes long for any batch, but hardly longer for a large one. The number of rows dispatched together depends
//! on arrivals, and on whether lanes keep up. If they do not, rows gather and batches grow, until a device is faster.
//! The module owns the estimate and the rule; it must not know which lane of a kind is chosen.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{
    Decision, Dispatch, GroupIndex, LaneId, LaneKind, ReleaseCause, Route, ServicePoint,
};

use crate::classes::ClassId;
use crate::lanes::{Lane, Lanes};
use crate::life::{Clock, Life};
use crate::partitions::{Group, GroupKey, Partition};
use crate::service::{Serving, let_go};
use crate::service_curve::ServiceCurve;
use crate::state_hash::{Component, StateHash, hash_component};

/// Share of the present kind's time below which the other kind's predicted time must be for a move: 4/5.
const GAIN: (i64, i64) = (4, 5);
/// Most groups that a lane releases at one check: the rows of a group wait while it moves.
const RELEASES_MAX: usize = 4;
/// Number of sizes between a power of two and the next at which the kinds are compared, for a figure that only people
/// read.
const STEPS: i64 = 4;
/// Number of powers of two that are compared: up to 2^20 rows.
const OCTAVES: u32 = 20;

/// Estimates for all classes of lanes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Routing {
    /// True if groups move between kinds of lanes.
    pub(crate) is_on: bool,
    /// Service curve of each class.
    curves: Vec<ServiceCurve>,
    /// Time of the next check of groups.
    next_ns: i64,
    contribution: u64,
}

/// Both kinds of lanes in their present state.
pub(crate) struct Kinds<'a> {
    routing: &'a Routing,
    host: LanesOfKind,
    device: LanesOfKind,
    break_even_rows: Option<i64>,
}

/// The lanes of one kind that get groups.
struct LanesOfKind {
    lanes: i64,
    /// Sum of their weights; a lane of weight 0 counts with 1.
    weight: i64,
    /// Their classes, each with the weight of its heaviest lane.
    classes: Vec<(ClassId, i64)>,
}

impl LanesOfKind {
    fn new(lanes: &[Lane], serving: Serving, kind: LaneKind) -> Self {
        let mut new = Self { lanes: 0, weight: 0, classes: Vec::new() };
        for lane in lanes.iter().filter(|lane| serving.has(lane) && lane.kind == kind) {
            let weight = i64::from(lane.weight.current.max(1));
            new.lanes += 1;
            new.weight += weight;
            match new.classes.iter_mut().find(|(class, _)| *class == lane.class) {
                Some((_, heaviest)) => *heaviest = weight.max(*heaviest),
                None => new.classes.push((lane.class, weight)),
            }
        }
        new
    }

    /// Greatest number of `rows` rows that one lane of a class gets. If all lanes are of one class, they get equal
    /// shares; otherwise shares are by weight.
    fn share(&self, rows: i64, weight: i64) -> i64 {
        let (part, whole) = if self.classes.len() == 1 { (1, self.lanes) } else { (weight, self.weight) };
        let share = (i128::from(rows) * i128::from(part) + i128::from(whole - 1)) / i128::from(whole);
        share as i64
    }
}

impl Routing {
    pub(crate) fn new(is_on: bool, classes: usize) -> Self {
        let curves = (0..classes).map(|_| ServiceCurve::default()).collect();
        Self { is_on, curves, next_ns: 0, contribution: 0 }
    }

    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.curves.len()
    }

    /// Predicted time of a batch of `rows` rows; `None` if it is unknown.
    pub(crate) fn batch_ns(&self, class: ClassId, rows: i64) -> Option<i64> {
        self.curves[class.index()].predict(rows)
    }

    /// True if the curve was learnt from batches of about `rows` rows.
    pub(crate) fn knows(&self, class: ClassId, rows: i64) -> bool {
        self.curves[class.index()].knows(rows)
    }

    /// Learns from the time of a batch.
    pub(crate) fn learn(&mut self, class: ClassId, sample: ServicePoint, hash: &mut StateHash) {
        self.curves[class.index()].learn(class.index() as i64, sample, hash);
    }

    /// Sets the time of the next check of groups.
    fn set_next(&mut self, next_ns: i64, hash: &mut StateHash) {
        self.next_ns = next_ns;
        let now = hash_component(Component::Routing, [next_ns]);
        hash.replace(&mut self.contribution, now);
    }

    /// Hash of all curves, computed by walking over them.
    pub(crate) fn walked_hash(&self) -> u64 {
        let next = if self.next_ns == 0 { 0 } else { hash_component(Component::Routing, [self.next_ns]) };
        (0..).zip(&self.curves).fold(next, |sum, (class, curve)| sum.wrapping_add(curve.walked_hash(class)))
    }

    /// Compares the kinds; `None` unless both have lanes that get groups and are measured.
    pub(crate) fn kinds(&self, lanes: &Lanes) -> Option<Kinds<'_>> {
        let serving = Serving::of(lanes);
        let [host, device] =
            [LaneKind::Host, LaneKind::Device].map(|kind| LanesOfKind::new(lanes, serving, kind));
        let is_measured = |(class, _): &(ClassId, i64)| self.curves[class.index()].predict(1).is_some();
        let is_known = |kind: &LanesOfKind| kind.lanes > 0 && kind.classes.iter().all(is_measured);
        if !is_known(&host) || !is_known(&device) {
            return None;
        }
        let mut kinds = Kinds { routing: self, host, device, break_even_rows: None };
        kinds.break_even_rows = kinds.break_even();
        Some(kinds)
    }
}

impl Kinds<'_> {
    /// Predicted time of the lanes of a kind together for `rows` rows, until the last one has done its share. A group's
    /// own rows are not divided among lanes.
    fn predict(&self, kind: LaneKind, rows: i64, own_rows: i64) -> i64 {
        let lanes = match kind {
            LaneKind::Host => &self.host,
            LaneKind::Device => &self.device,
        };
        let of_class = |&(class, weight): &(ClassId, i64)| {
            let share = lanes.share(rows, weight).max(own_rows);
            self.routing.curves[class.index()].predict(share).expect("all classes are measured")
        };
        lanes.classes.iter().map(of_class).max().expect("both kinds have lanes")
    }

    /// Least number of rows dispatched together for which devices are faster; `None` if they are slower for all
    /// compared numbers.
    fn break_even(&self) -> Option<i64> {
        let mut sizes =
            (0..OCTAVES).flat_map(|octave| (0..STEPS).map(move |step| ((STEPS + step) << octave) / STEPS));
        let is_faster =
            |&rows: &i64| self.predict(LaneKind::Device, rows, 0) < self.predict(LaneKind::Host, rows, 0);
        sizes.find(is_faster)
    }

    /// Route of a group to lanes of a kind.
    fn route_to(&self, kind: LaneKind, group: &Group) -> Route {
        let predict = |kind| self.predict(kind, group.together_rows, group.own_rows);
        Route {
            kind,
            rows: group.together_rows,
            break_even_rows: self.break_even_rows,
            host_ns: predict(LaneKind::Host),
            device_ns: predict(LaneKind::Device),
        }
    }

    /// Route of a group without a lane: to the kind for which it was released, or else to the faster kind. `None` if
    /// none of its rows were dispatched yet.
    pub(crate) fn route(&self, group: &Group) -> Option<Route> {
        if let Some(kind) = group.bound_for {
            return Some(self.route_to(kind, group));
        }
        if group.together_rows == 0 {
            return None;
        }
        let of_host = self.route_to(LaneKind::Host, group);
        let kind = if of_host.device_ns < of_host.host_ns { LaneKind::Device } else { LaneKind::Host };
        Some(Route { kind, ..of_host })
    }

    /// Route of a group on a lane of this kind to the other kind; `None` if it should stay.
    fn reroute(&self, kind: LaneKind, group: &Group) -> Option<Route> {
        if group.together_rows == 0 {
            return None;
        }
        let other = match kind {
            LaneKind::Host => LaneKind::Device,
            LaneKind::Device => LaneKind::Host,
        };
        let route = self.route_to(other, group);
        let (own_ns, other_ns) = match kind {
            LaneKind::Host => (route.host_ns, route.device_ns),
            LaneKind::Device => (route.device_ns, route.host_ns),
        };
        (other_ns * GAIN.1 < own_ns * GAIN.0).then_some(route)
    }
}

/// Learns from the measured service times of a lane.
pub(crate) fn measured(life: &mut Life, lane: LaneId, points: &[ServicePoint]) {
    if !life.routes() {
        return;
    }
    let Life { lanes, routing, hash, .. } = life;
    let class = lanes[lane as usize].class.index();
    points.iter().for_each(|&point| routing.curves[class].measure(class as i64, point, hash));
}

/// Learns how many rows are dispatched together with those of each group.
pub(crate) fn learn_batch(life: &mut Life, dispatch: &Dispatch) {
    if !life.routes() {
        return;
    }
    let Life { lanes, partitions, hash, .. } = life;
    let kind = lanes[dispatch.lane as usize].kind;
    let together_rows = dispatch.rows * (Serving::of(lanes).count(lanes, kind) as i64).max(1);
    let mut last: Option<&mut Partition> = None;
    for take in &dispatch.takes {
        if last.as_ref().is_none_or(|partition| partition.id != take.partition) {
            last = partitions.get_mut(&take.partition);
        }
        let partition = last.as_mut().expect("rows are of known partitions");
        let key = GroupKey { partition: take.partition, group: take.group };
        partition.group_mut(take.group).learn_batch(key, together_rows, take.rows, hash);
    }
}

/// Makes lanes release groups that are better placed on the other kind of lanes, once per interval.
pub(crate) fn release(life: &mut Life, decisions: &mut Vec<Decision>) {
    if !life.routes() || life.clock.draining || life.clock.at_ns < life.routing.next_ns {
        return;
    }
    for (key, route) in moves(life) {
        decisions.push(Decision::Release(let_go(life, key, ReleaseCause::Route, Some(route))));
    }
    let Life { routing, hash, config, clock: Clock { at_ns, .. }, .. } = life;
    routing.set_next(*at_ns + config.route_interval_ns, hash);
    for (class, curve) in (0..).zip(&mut routing.curves) {
        curve.age(class, hash);
    }
}

/// The groups to move now, by partition and group.
fn moves(life: &Life) -> Vec<(GroupKey, Route)> {
    let Some(kinds) = life.routing.kinds(&life.lanes) else { return Vec::new() };
    let mut left = vec![RELEASES_MAX; life.lanes.len()];
    let mut moves = Vec::new();
    for partition in life.partitions.values() {
        for (index, group) in partition.active().iter().enumerate() {
            let Some(lane) = group.lane else { continue };
            let left = &mut left[lane as usize];
            if *left == 0 {
                continue;
            }
            if let Some(route) = kinds.reroute(life.lanes[lane as usize].kind, group) {
                *left -= 1;
                moves.push((GroupKey { partition: partition.id, group: index as GroupIndex }, route));
            }
        }
    }
    moves
}
