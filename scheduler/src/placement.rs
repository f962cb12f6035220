//! Placement: which lane owns a group.
//!
//! ```text
//!   lanes ──► lost, out of service, or as many groups as bounded load allows? ──► excluded, with the reason
//!     │              or slower than the other kind by the group's route?
//!     │
//!     └─────► candidates, scored by the policy ──► the highest score, then the lowest index ──► Place
//! ```
//!
//! It owns the choice and its record; it must not know rows or credits. Groups stay where they are until their
//! partition is restored, assigned again or revoked, or until their lane is to let go of them (`routing`, `service`, `rebalance`): a
//! lane that is ready again after it was lost gets only groups nobody owns.

use warptape_events::journal::{
    Candidate, Decision, Exclusion, ExclusionReason, LaneId, LaneKind, PartitionId, Place, PolicyRef, Route,
};

use crate::lanes::{Lane, QueueHead};
use crate::life::Life;
use crate::partitions::{Group, GroupKey};
use crate::policy::placement::PlacementPolicy;
use crate::service::Serving;

/// A deterministic policy chooses its lane for certain.
const PROPENSITY_CERTAIN_PPM: i32 = 1_000_000;

/// The counter of a group: where its draws are in every stream.
fn counter_of(key: GroupKey) -> i64 {
    (i64::from(key.partition) << 32) | i64::from(key.group)
}

/// Places every group of the partition that no lane owns, as far as the step has room. Without a ready lane they stay as they are.
pub(crate) fn place_partition(life: &mut Life, partition: PartitionId, decisions: &mut Vec<Decision>) {
    if life.groups_unplaced == 0 || !life.lanes.iter().any(|lane| lane.ready) {
        return;
    }
    let serving = Serving::of(&life.lanes);
    let stream = life.policy.stream(&life.config);
    let kinds = if life.routes() { life.routing.kinds(&life.lanes) } else { None };
    let groups_max = GroupsMax::new(life, serving, kinds.is_some());
    let Life { lanes, partitions, hash, policy, groups_unplaced, room, is_placing, .. } = life;
    let partition = partitions.get_mut(&partition).expect("the caller found the partition");
    for (index, group) in partition.groups[..partition.groups_active].iter_mut().enumerate() {
        if group.lane.or(group.leaving).is_some() {
            continue;
        }
        if !room.is_there() {
            *is_placing = true;
            return;
        }
        let key = GroupKey { partition: partition.id, group: index as i32 };
        let route = kinds.as_ref().and_then(|kinds| kinds.route(group));
        let rule = Rule { policy: *policy, stream, serving, groups_max: groups_max.of(route), route };
        let place = choose(&rule, key, group.epoch + 1, lanes);
        let lane = &mut lanes[place.lane as usize];
        lane.groups_placed += 1;
        lane.waiting_rows += group.waiting_rows;
        if let Some(oldest_ns) = group.oldest_ns() {
            lane.enqueue(QueueHead { oldest_ns, key });
        }
        lane.refresh(hash);
        group.lane = Some(place.lane);
        group.epoch = place.epoch;
        group.bound_for = None;
        group.refresh(key, hash);
        group.refresh_route(key, hash);
        *groups_unplaced -= 1;
        let decision = Decision::Place(place);
        room.take(&decision);
        decisions.push(decision);
    }
}

/// Places every group that no lane owns, by partition and group, as far as the step has room.
pub(crate) fn place_all(life: &mut Life, decisions: &mut Vec<Decision>) {
    life.is_placing = false;
    if life.groups_unplaced == 0 {
        return;
    }
    let partitions: Vec<_> = life
        .partitions
        .values()
        .filter(|partition| partition.active().iter().any(|group| group.lane.or(group.leaving).is_none()))
        .map(|partition| partition.id)
        .collect();
    for partition in partitions {
        place_partition(life, partition, decisions);
    }
}

/// What a lane is chosen by for a group.
struct Rule<'a> {
    policy: PlacementPolicy,
    stream: i64,
    serving: Serving,
    /// By lane.
    groups_max: &'a [i32],
    route: Option<Route>,
}

impl Rule<'_> {
    /// The score of a lane that has so many other groups, or why it is no candidate.
    fn judge(&self, key: GroupKey, lane: &Lane, groups_placed: i32) -> Result<Candidate, ExclusionReason> {
        let groups_max = self.groups_max[lane.id as usize];
        if !lane.ready {
            Err(ExclusionReason::Lost)
        } else if let Some(reason) = self.serving.exclusion(lane) {
            Err(reason)
        } else if self.route.is_some_and(|route| route.kind != lane.kind) {
            Err(ExclusionReason::Slower)
        } else if groups_placed >= groups_max {
            Err(ExclusionReason::Full)
        } else {
            let score = self.policy.score(self.stream, counter_of(key), lane);
            Ok(Candidate { lane: lane.id, score, groups_placed, groups_max })
        }
    }
}

/// The best of candidates, in order of their lanes: the first with the highest score.
fn better<'a>(best: Option<&'a Candidate>, other: &'a Candidate) -> Option<&'a Candidate> {
    best.filter(|best| best.score >= other.score).or(Some(other))
}

fn choose(rule: &Rule<'_>, key: GroupKey, epoch: i64, lanes: &[Lane]) -> Place {
    let mut candidates = Vec::with_capacity(lanes.len());
    let mut excluded = Vec::new();
    for lane in lanes {
        match rule.judge(key, lane, lane.groups_placed) {
            Ok(candidate) => candidates.push(candidate),
            Err(reason) => excluded.push(Exclusion { lane: lane.id, reason }),
        }
    }
    // The limits of the lanes that get groups add up to at least all groups, and one of them is not placed: not all are full.
    let best = candidates.iter().fold(None, better);
    let lane = best.expect("bounded load leaves room while a lane is ready").lane;
    Place {
        partition: key.partition,
        group: key.group,
        lane,
        epoch,
        policy: PolicyRef { id: rule.policy.name().to_owned(), version: rule.policy.version() },
        candidates,
        excluded,
        random_stream: rule.stream,
        random_counter: counter_of(key),
        propensity_ppm: PROPENSITY_CERTAIN_PPM,
        route: rule.route,
    }
}

/// Where groups that have a lane would be placed now.
pub(crate) struct Chooser {
    stream: i64,
    serving: Serving,
    groups_max: GroupsMax,
    /// Groups that are to come, by lane.
    expected: Vec<i32>,
}

impl Chooser {
    /// By the lanes as they are now.
    pub(crate) fn new(life: &Life) -> Self {
        let serving = Serving::of(&life.lanes);
        let kinds = if life.routes() { life.routing.kinds(&life.lanes) } else { None };
        Self {
            stream: life.policy.stream(&life.config),
            serving,
            groups_max: GroupsMax::new(life, serving, kinds.is_some()),
            expected: vec![0; life.lanes.len()],
        }
    }

    /// The lane that a group of `lane` would be placed on if it had none.
    pub(crate) fn best(&self, life: &Life, key: GroupKey, group: &Group, lane: LaneId) -> LaneId {
        let kinds = if life.routes() { life.routing.kinds(&life.lanes) } else { None };
        let route = kinds.and_then(|kinds| kinds.route(group));
        let (stream, serving, groups_max) = (self.stream, self.serving, self.groups_max.of(route));
        let rule = Rule { policy: life.policy, stream, serving, groups_max, route };
        let others = |other: &Lane| {
            other.groups_placed + self.expected[other.id as usize] - i32::from(other.id == lane)
        };
        let candidates: Vec<_> =
            life.lanes.iter().filter_map(|other| rule.judge(key, other, others(other)).ok()).collect();
        candidates.iter().fold(None, better).map_or(lane, |best| best.lane)
    }

    /// A group is to come to a lane.
    pub(crate) fn expect(&mut self, lane: LaneId) {
        self.expected[lane as usize] += 1;
    }
}

/// The most groups that each lane may have.
struct GroupsMax {
    /// Where lanes of both kinds are candidates.
    any: Vec<i32>,
    /// Where the route names one kind.
    host: Option<Vec<i32>>,
    device: Option<Vec<i32>>,
}

impl GroupsMax {
    fn new(life: &Life, serving: Serving, is_routed: bool) -> Self {
        let of_kind = |kind| is_routed.then(|| groups_max_per_lane(life, serving, Some(kind)));
        Self {
            any: groups_max_per_lane(life, serving, None),
            host: of_kind(LaneKind::Host),
            device: of_kind(LaneKind::Device),
        }
    }

    fn of(&self, route: Option<Route>) -> &[i32] {
        let of_kind = match route.map(|route| route.kind) {
            None => return &self.any,
            Some(LaneKind::Host) => &self.host,
            Some(LaneKind::Device) => &self.device,
        };
        of_kind.as_deref().expect("groups are routed where the kinds are known")
    }
}

/// The most groups each lane may have: `ceil(load factor × all groups × weight / weight of all lanes that get groups)`, among lanes
/// of a kind if one is given. Lanes of weight 0 stand by: they may have none while another gets groups, and have a weight of 1
/// otherwise.
fn groups_max_per_lane(life: &Life, serving: Serving, kind: Option<LaneKind>) -> Vec<i32> {
    let counts = |lane: &&Lane| serving.has(lane) && kind.is_none_or(|kind| lane.kind == kind);
    let ready = || life.lanes.iter().filter(counts);
    let stand_in = !ready().any(|lane| lane.weight > 0);
    let weight = |lane: &Lane| i64::from(if stand_in { 1 } else { lane.weight });
    let weight_total: i64 = ready().map(weight).sum();
    let scaled_groups = i64::from(life.config.load_factor_percent) * life.groups_assigned;
    let bound = |lane: &Lane| {
        // Rounded up; no term is negative.
        let share = (scaled_groups * weight(lane) + 100 * weight_total - 1) / (100 * weight_total);
        i32::try_from(share).expect("load factor and group count are bounded, so is their product")
    };
    let most = |lane: &Lane| match serving.probes(lane) {
        // Half of what it would get: its batches are to be like those that it is judged by.
        true => (bound(lane) / 2).max(1),
        false if counts(&lane) => bound(lane),
        false => 0,
    };
    life.lanes.iter().map(most).collect()
}
