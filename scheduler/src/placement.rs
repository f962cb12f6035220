//! Placement: which lane owns a group.
//!
//! ```text
//!   lanes ──► lost, or as many groups as bounded load allows? ──► excluded, with the reason
//!     │              or slower than the other kind by the group's route?
//!     │
//!     └─────► candidates, scored by the policy ──► the highest score, then the lowest index ──► Place
//! ```
//!
//! It owns the choice and its record; it must not know rows or credits. Groups stay where they are until their
//! partition is restored, assigned again or revoked, or until routing has their lane let go of them: a lane that comes back
//! gets only groups nobody owns.

mod log2;
mod rendezvous;

use warptape_events::journal::{
    Candidate, Decision, Exclusion, ExclusionReason, LaneKind, PartitionId, Place, PolicyRef, Route,
    SchedulerConfig,
};

use crate::lanes::{Lane, QueueHead};
use crate::life::Life;
use crate::partitions::GroupKey;

/// A deterministic policy chooses its lane for certain.
const PROPENSITY_CERTAIN_PPM: i32 = 1_000_000;

/// The rule that scores lanes for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacementPolicy {
    /// Weighted rendezvous hashing.
    Rendezvous,
}

impl PlacementPolicy {
    pub(crate) const ALL: [Self; 1] = [Self::Rendezvous];

    /// The policy of `NAME`, or of `NAME/BYTES`, and the bytes of decisions in a step; 0 is no limit, as it was before there was one.
    pub(crate) fn parse(text: &str) -> Option<(Self, i64)> {
        let (name, step_bytes_max) = match text.split_once('/') {
            None => (text, 0),
            Some((name, bytes)) => (name, bytes.parse().ok().filter(|bytes| *bytes > 0)?),
        };
        let policy = Self::ALL.into_iter().find(|policy| policy.name() == name)?;
        Some((policy, step_bytes_max))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rendezvous => "rendezvous",
        }
    }

    /// Rises whenever the same inputs could give another decision.
    fn version(self) -> i32 {
        match self {
            Self::Rendezvous => rendezvous::VERSION,
        }
    }

    /// The random stream of the policy under a seed.
    fn stream(self, config: &SchedulerConfig) -> i64 {
        match self {
            Self::Rendezvous => rendezvous::stream(config.placement_seed),
        }
    }

    /// Score of a lane for the group at a counter; the highest wins.
    fn score(self, stream: i64, counter: i64, lane: &Lane) -> i64 {
        match self {
            // Lanes that stand by are equals among themselves.
            Self::Rendezvous => rendezvous::score(stream, counter, lane.id, lane.weight.max(1)),
        }
    }
}

/// The counter of a group: where its draws are in every stream.
fn counter_of(key: GroupKey) -> i64 {
    (i64::from(key.partition) << 32) | i64::from(key.group)
}

/// Places every group of the partition that no lane owns, as far as the step has room. Without a ready lane they stay as they are.
pub(crate) fn place_partition(life: &mut Life, partition: PartitionId, decisions: &mut Vec<Decision>) {
    if life.groups_unplaced == 0 || !life.lanes.iter().any(|lane| lane.ready) {
        return;
    }
    let stream = life.policy.stream(&life.config);
    let kinds = if life.routes() { life.routing.kinds(&life.lanes) } else { None };
    let groups_max = GroupsMax {
        any: groups_max_per_lane(life, None),
        host: kinds.as_ref().map(|_| groups_max_per_lane(life, Some(LaneKind::Host))),
        device: kinds.as_ref().map(|_| groups_max_per_lane(life, Some(LaneKind::Device))),
    };
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
        let place = choose(*policy, stream, key, group.epoch + 1, lanes, groups_max.of(route), route);
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

fn choose(
    policy: PlacementPolicy,
    stream: i64,
    key: GroupKey,
    epoch: i64,
    lanes: &[Lane],
    groups_max: &[i32],
    route: Option<Route>,
) -> Place {
    let counter = counter_of(key);
    let mut candidates = Vec::with_capacity(lanes.len());
    let mut excluded = Vec::new();
    let mut best: Option<(i64, i32)> = None;
    for (lane, &groups_max) in lanes.iter().zip(groups_max) {
        if !lane.ready {
            excluded.push(Exclusion { lane: lane.id, reason: ExclusionReason::Lost });
        } else if route.is_some_and(|route| route.kind != lane.kind) {
            excluded.push(Exclusion { lane: lane.id, reason: ExclusionReason::Slower });
        } else if lane.groups_placed >= groups_max {
            excluded.push(Exclusion { lane: lane.id, reason: ExclusionReason::Full });
        } else {
            let score = policy.score(stream, counter, lane);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, lane.id));
            }
            candidates.push(Candidate {
                lane: lane.id,
                score,
                groups_placed: lane.groups_placed,
                groups_max,
            });
        }
    }
    // The limits of the ready lanes add up to at least all groups, and one of them is not placed: not all are full.
    let (_, lane) = best.expect("bounded load leaves room while a lane is ready");
    Place {
        partition: key.partition,
        group: key.group,
        lane,
        epoch,
        policy: PolicyRef { id: policy.name().to_owned(), version: policy.version() },
        candidates,
        excluded,
        random_stream: stream,
        random_counter: counter,
        propensity_ppm: PROPENSITY_CERTAIN_PPM,
        route,
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
    fn of(&self, route: Option<Route>) -> &[i32] {
        let of_kind = match route.map(|route| route.kind) {
            None => return &self.any,
            Some(LaneKind::Host) => &self.host,
            Some(LaneKind::Device) => &self.device,
        };
        of_kind.as_deref().expect("groups are routed where the kinds are known")
    }
}

/// The most groups each lane may have: `ceil(load factor × all groups × weight / weight of all ready lanes)`, among lanes
/// of a kind if one is given. Lanes of weight 0 stand by: they may have none while another is ready, and have a weight of 1
/// otherwise.
fn groups_max_per_lane(life: &Life, kind: Option<LaneKind>) -> Vec<i32> {
    let counts = |lane: &&Lane| lane.ready && kind.is_none_or(|kind| lane.kind == kind);
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
    life.lanes.iter().map(|lane| if counts(&lane) { bound(lane) } else { 0 }).collect()
}
