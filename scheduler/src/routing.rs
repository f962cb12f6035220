//! Routing: whether a group is better off on lanes of the processor or on lanes of devices.
//!
//! ```text
//!   Measured, Completed ──► what each kind takes for a batch, by its rows ──► rows from which on devices are faster
//!   Arrived ──────────────► rows that come with a group's rows                  │
//!                                        └──────────────────────────────────────┴──► Route ──► Release, Place
//! ```
//!
//! A device takes long for any batch, but hardly longer for a large one. What comes together is one batch for each ready
//! lane of the kind, so the rows of an arrival decide, and these depend on no placement. It owns the estimate and the rule;
//! it must not know which lane of a kind is chosen.

use warptape_schemas::journal::{Decision, GroupIndex, LaneId, LaneKind, Release, Route, ServicePoint};

use crate::lanes::{Lane, QueueHead};
use crate::life::Life;
use crate::partitions::GroupKey;
use crate::service_curve::ServiceCurve;
use crate::state_hash::{Component, StateHash, hash_component};

/// A group changes only where it is beyond the break-even by this share of it: 1/4 above, 1/5 below.
const MARGIN: (i64, i64) = (5, 4);
/// Groups that are released at once: while one moves, its rows wait.
const RELEASES_MAX: usize = 64;
/// Sizes of arrivals between a power of two and the next at which the kinds are compared.
const STEPS: i64 = 4;
/// Arrivals up to 2^20 rows are compared.
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

impl Routing {
    fn curve(&mut self, kind: LaneKind) -> &mut ServiceCurve {
        match kind {
            LaneKind::Host => &mut self.host,
            LaneKind::Device => &mut self.device,
        }
    }

    pub(crate) fn learn(&mut self, kind: LaneKind, sample: ServicePoint, hash: &mut StateHash) {
        self.curve(kind).learn(sample);
        self.refresh(hash);
    }

    /// Hash of everything here.
    pub(crate) fn hash(&self) -> u64 {
        let mut sum = hash_component(Component::Routing, [self.next_ns]);
        for (kind, curve) in [(0, &self.host), (1, &self.device)] {
            for (size, (rows, service_ns)) in (0..).zip(curve.points()) {
                sum = sum.wrapping_add(hash_component(Component::Routing, [kind, size, rows, service_ns]));
            }
        }
        sum
    }

    pub(crate) fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }

    /// Compares the kinds; `None` unless both are ready and measured.
    pub(crate) fn kinds(&self, lanes: &[Lane]) -> Option<Kinds<'_>> {
        let ready = |kind| lanes.iter().filter(|lane| lane.ready && lane.kind == kind).count() as i64;
        let (host_lanes, device_lanes) = (ready(LaneKind::Host), ready(LaneKind::Device));
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
    /// What the lanes of each kind take for an arrival of so many rows, each for its share.
    fn predict(&self, rows: i64) -> [i64; 2] {
        let of = |curve: &ServiceCurve, lanes: i64| {
            let share = (rows + lanes - 1) / lanes;
            curve.predict(share).expect("both kinds are measured")
        };
        [of(&self.routing.host, self.host_lanes), of(&self.routing.device, self.device_lanes)]
    }

    /// The fewest rows from which on devices are faster at every size that is compared.
    fn break_even(&self) -> Option<i64> {
        let sizes = (0..OCTAVES)
            .rev()
            .flat_map(|octave| (0..STEPS).rev().map(move |step| ((STEPS + step) << octave) / STEPS));
        let faster = |rows: &i64| {
            let [host_ns, device_ns] = self.predict(*rows);
            device_ns < host_ns
        };
        sizes.take_while(faster).last()
    }

    /// Where a group belongs whose arrivals have so many rows; `None` where nothing has arrived yet.
    pub(crate) fn route(&self, rows: i64) -> Option<Route> {
        if rows == 0 {
            return None;
        }
        let is_device = self.break_even_rows.is_some_and(|break_even| rows >= break_even);
        let kind = if is_device { LaneKind::Device } else { LaneKind::Host };
        let [host_ns, device_ns] = self.predict(rows);
        Some(Route { kind, rows, break_even_rows: self.break_even_rows, host_ns, device_ns })
    }

    /// Where a group belongs that is on a lane of a kind, if it should go there at once.
    fn reroute(&self, kind: LaneKind, rows: i64) -> Option<Route> {
        let route = self.route(rows).filter(|route| route.kind != kind)?;
        let far = match (kind, self.break_even_rows) {
            (LaneKind::Host, Some(break_even)) => rows >= break_even * MARGIN.0 / MARGIN.1,
            (LaneKind::Device, Some(break_even)) => rows <= break_even * MARGIN.1 / MARGIN.0,
            (_, None) => true,
        };
        far.then_some(route)
    }
}

/// Learns the service times that a lane was measured with.
pub(crate) fn measured(life: &mut Life, lane: LaneId, points: &[ServicePoint]) {
    if !life.routes() {
        return;
    }
    let kind = life.lanes[lane as usize].kind;
    points.iter().for_each(|&point| life.routing.learn(kind, point, &mut life.hash));
}

/// Has lanes let go of groups that belong on lanes of the other kind, oldest partition first, once in an interval.
pub(crate) fn release(life: &mut Life, decisions: &mut Vec<Decision>) {
    if !life.routes() || life.draining || life.at_ns < life.routing.next_ns {
        return;
    }
    life.routing.next_ns = life.at_ns + life.config.route_interval_ns;
    life.routing.refresh(&mut life.hash);
    for (key, route) in moves(life) {
        decisions.push(Decision::Release(let_go(life, key, route)));
    }
}

/// The groups that are to move now.
fn moves(life: &Life) -> Vec<(GroupKey, Route)> {
    let Some(kinds) = life.routing.kinds(&life.lanes) else { return Vec::new() };
    let groups = life.partitions.values().flat_map(|partition| {
        (0..)
            .zip(partition.active())
            .map(|(group, state)| (GroupKey { partition: partition.id, group: group as GroupIndex }, state))
    });
    groups
        .filter_map(|(key, group)| {
            let kind = life.lanes[group.lane? as usize].kind;
            Some((key, kinds.reroute(kind, group.arrival_rows)?))
        })
        .take(RELEASES_MAX)
        .collect()
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
    group.leaving = Some(lane_id);
    group.refresh(key, hash);
    group.refresh_route(key, hash);
    *groups_unplaced += 1;
    Release { partition: key.partition, group: key.group, lane: lane_id, epoch: group.epoch, route }
}
