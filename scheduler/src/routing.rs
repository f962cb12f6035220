//! Routing: whether a group is better off on lanes of the processor or on lanes of devices.
//!
//! ```text
//!   Measured, Completed ──► what each kind takes for a batch, by its rows ──┐
//!   Dispatch ─────────────► rows that go to lanes together with a group's ──┴──► Route ──► Release, Place
//! ```
//!
//! A device takes long for any batch, but hardly longer for a large one. How many rows go together depends on what arrives
//! and on whether lanes keep up: where they do not, rows gather and batches grow, until a device pays. It owns the estimate
//! and the rule; it must not know which lane of a kind is chosen.

use warptape_events::journal::{
    Decision, Dispatch, GroupIndex, LaneId, LaneKind, Release, Route, ServicePoint,
};

use crate::lanes::{Lane, QueueHead};
use crate::life::Life;
use crate::partitions::{Group, GroupKey};
use crate::service_curve::ServiceCurve;
use crate::state_hash::{Component, StateHash, hash_component};

/// A group moves only where the other kind is predicted to take less than this share of the time: 4/5.
const GAIN: (i64, i64) = (4, 5);
/// Groups that a lane is told to let go of at one look: while one moves, its rows wait.
const RELEASES_MAX: usize = 4;
/// Sizes between a power of two and the next at which the kinds are compared for people.
const STEPS: i64 = 4;
/// Up to 2^20 rows are compared.
const OCTAVES: u32 = 20;

/// What is known of both kinds of lanes.
#[derive(Debug, Default)]
pub(crate) struct Routing {
    host: ServiceCurve,
    device: ServiceCurve,
    /// When groups are looked at next.
    next_ns: i64,
    contribution: u64,
}

/// Both kinds of lanes as they are now.
pub(crate) struct Kinds<'a> {
    routing: &'a Routing,
    host_lanes: i64,
    device_lanes: i64,
    break_even_rows: Option<i64>,
}

/// Ready lanes of a kind.
fn ready_lanes(lanes: &[Lane], kind: LaneKind) -> i64 {
    lanes.iter().filter(|lane| lane.ready && lane.kind == kind).count() as i64
}

/// The number of a kind's curve in the state hash.
fn number(kind: LaneKind) -> i64 {
    match kind {
        LaneKind::Host => 0,
        LaneKind::Device => 1,
    }
}

impl Routing {
    fn curve(&mut self, kind: LaneKind) -> &mut ServiceCurve {
        match kind {
            LaneKind::Host => &mut self.host,
            LaneKind::Device => &mut self.device,
        }
    }

    /// Learns what a batch took.
    pub(crate) fn learn(&mut self, kind: LaneKind, sample: ServicePoint, hash: &mut StateHash) {
        self.curve(kind).learn(number(kind), sample, hash);
    }

    /// Sets when groups are looked at next.
    fn set_next(&mut self, next_ns: i64, hash: &mut StateHash) {
        self.next_ns = next_ns;
        let now = hash_component(Component::Routing, [next_ns]);
        hash.replace(&mut self.contribution, now);
    }

    /// Hash of everything here, by walking.
    pub(crate) fn walked_hash(&self) -> u64 {
        let next = if self.next_ns == 0 { 0 } else { hash_component(Component::Routing, [self.next_ns]) };
        let curves = [(LaneKind::Host, &self.host), (LaneKind::Device, &self.device)];
        curves.into_iter().fold(next, |sum, (kind, curve)| sum.wrapping_add(curve.walked_hash(number(kind))))
    }

    /// Compares the kinds; `None` unless both are ready and measured.
    pub(crate) fn kinds(&self, lanes: &[Lane]) -> Option<Kinds<'_>> {
        let host_lanes = ready_lanes(lanes, LaneKind::Host);
        let device_lanes = ready_lanes(lanes, LaneKind::Device);
        let measured = self.host.predict(1).is_some() && self.device.predict(1).is_some();
        if host_lanes == 0 || device_lanes == 0 || !measured {
            return None;
        }
        let mut kinds = Kinds { routing: self, host_lanes, device_lanes, break_even_rows: None };
        kinds.break_even_rows = kinds.break_even();
        Some(kinds)
    }
}

impl Kinds<'_> {
    /// What the lanes of a kind take for so many rows together, each for its share; a group's own rows are not shared.
    fn predict(&self, kind: LaneKind, rows: i64, own_rows: i64) -> i64 {
        let (curve, lanes) = match kind {
            LaneKind::Host => (&self.routing.host, self.host_lanes),
            LaneKind::Device => (&self.routing.device, self.device_lanes),
        };
        let share = rows / lanes + i64::from(rows % lanes > 0);
        curve.predict(share.max(own_rows)).expect("both kinds are measured")
    }

    /// The fewest rows together at which devices are faster.
    fn break_even(&self) -> Option<i64> {
        let mut sizes =
            (0..OCTAVES).flat_map(|octave| (0..STEPS).map(move |step| ((STEPS + step) << octave) / STEPS));
        let is_faster =
            |&rows: &i64| self.predict(LaneKind::Device, rows, 0) < self.predict(LaneKind::Host, rows, 0);
        sizes.find(is_faster)
    }

    /// A group on lanes of a kind.
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

    /// Where a group without a lane belongs: where it was released to, or else to the kind that is faster; `None` where
    /// nothing of it went to a lane yet.
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

    /// Where a group belongs that is on a lane of a kind, if it should go there.
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

/// Learns the service times that a lane was measured with.
pub(crate) fn measured(life: &mut Life, lane: LaneId, points: &[ServicePoint]) {
    if !life.routes() {
        return;
    }
    let Life { lanes, routing, hash, .. } = life;
    let kind = lanes[lane as usize].kind;
    points.iter().for_each(|&point| routing.curve(kind).measure(number(kind), point, hash));
}

/// Learns how many rows go to lanes together with those of each group.
pub(crate) fn learn_batch(life: &mut Life, dispatch: &Dispatch) {
    if !life.routes() {
        return;
    }
    let Life { lanes, partitions, hash, .. } = life;
    let kind = lanes[dispatch.lane as usize].kind;
    let together_rows = dispatch.rows * ready_lanes(lanes, kind);
    for take in &dispatch.takes {
        let partition = partitions.get_mut(&take.partition).expect("rows are of known partitions");
        let key = GroupKey { partition: take.partition, group: take.group };
        partition.group_mut(take.group).learn_batch(key, together_rows, take.rows, hash);
    }
}

/// Has lanes let go of groups that belong on lanes of the other kind, once in an interval.
pub(crate) fn release(life: &mut Life, decisions: &mut Vec<Decision>) {
    if !life.routes() || life.draining || life.at_ns < life.routing.next_ns {
        return;
    }
    for (key, route) in moves(life) {
        decisions.push(Decision::Release(let_go(life, key, route)));
    }
    let Life { routing, hash, config, at_ns, .. } = life;
    routing.set_next(*at_ns + config.route_interval_ns, hash);
    for kind in [LaneKind::Host, LaneKind::Device] {
        routing.curve(kind).age(number(kind), hash);
    }
}

/// The groups that are to move now, by partition and group.
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

/// Takes a group from its lane; it is placed again when the lane has given back its state.
fn let_go(life: &mut Life, key: GroupKey, route: Route) -> Release {
    let Life { lanes, partitions, hash, groups_unplaced, .. } = life;
    let partition = partitions.get_mut(&key.partition).expect("the group was found in it");
    let group = partition.group_mut(key.group);
    let lane_id = group.lane.take().expect("only groups on a lane move");
    let lane = &mut lanes[lane_id as usize];
    lane.groups_placed -= 1;
    lane.waiting_rows -= group.waiting_rows;
    if let Some(oldest_ns) = group.oldest_ns() {
        lane.dequeue(QueueHead { oldest_ns, key });
    }
    lane.refresh(hash);
    (group.leaving, group.bound_for) = (Some(lane_id), Some(route.kind));
    group.refresh(key, hash);
    group.refresh_route(key, hash);
    *groups_unplaced += 1;
    Release { partition: key.partition, group: key.group, lane: lane_id, epoch: group.epoch, route }
}
