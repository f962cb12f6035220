//! Placement: which lane owns a group.
//!
//! ```text
//!   lanes ──► lost, out of service, or as many groups as bounded load allows? ──► excluded, with the reason
//!     │              or slower than the other kind by the group's route?
//!     │              or with little memory left, where another candidate has enough?
//!     │
//!     └─────► candidates, scored by the policy ──► the highest score, then the lowest index ──► Place
//! ```
//!
//! The module owns the choice and its record; it must not know rows or credits. Groups stay until their partition is
//! restored, assigned again or revoked, or until their lane must release them (`routing`, `balance`, `service`,
//! `rebalance`). A lane that is ready again after a loss gets groups that no lane owns; `rebalance` moves groups that
//! are best placed on it.

use warptape_events::journal::{
    Candidate, Decision, Exclusion, ExclusionReason, LaneId, LaneKind, PartitionId, Place, PolicyRef, Route,
};

use crate::balance::Loads;
use crate::lanes::{Lane, QueueHead};
use crate::life::{Counts, Life, Step};
use crate::partitions::{Group, GroupKey};
use crate::policy::placement::{GroupView, LaneView, PlacementPolicy};
use crate::service::Serving;
use crate::topology::Topology;

/// Probability of a deterministic policy's choice, in parts per million.
const PROPENSITY_CERTAIN_PPM: i32 = 1_000_000;

/// Counter of a group: the address of its draws in every random stream.
fn counter_of(key: GroupKey) -> i64 {
    (i64::from(key.partition) << 32) | i64::from(key.group)
}

/// Places every group of the partition that no lane owns, as far as the step has room. Without a ready lane the groups
/// stay unplaced.
pub(crate) fn place_partition(life: &mut Life, partition: PartitionId, decisions: &mut Vec<Decision>) {
    if life.counts.groups_unplaced == 0 || !life.lanes.iter().any(|lane| lane.ready) {
        return;
    }
    let serving = Serving::of(&life.lanes);
    let stream = life.policy.stream(&life.config);
    let kinds = if life.routes() { life.routing.kinds(&life.lanes) } else { None };
    let groups_max = GroupsMax::new(life, serving, kinds.is_some());
    let mut loads = loads(life);
    let Life {
        lanes,
        partitions,
        hash,
        policy,
        topology,
        balance,
        counts: Counts { groups_unplaced, .. },
        step: Step { room, is_placing, .. },
        ..
    } = life;
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
        let groups_max = groups_max.of(route);
        let rule =
            Rule { policy: *policy, stream, serving, groups_max, route, topology, loads: loads.as_ref() };
        let place = choose(&rule, key, group, lanes);
        if let Some(sums) = &mut balance.sums {
            sums.remove(key, group);
        }
        if let Some(loads) = &mut loads {
            loads.place(place.lane, group);
            group.work.place(key, place.lane, hash);
        }
        let lane = &mut lanes[place.lane as usize];
        lane.groups_placed += 1;
        lane.waiting.rows += group.waiting_rows;
        if let Some(oldest_ns) = group.oldest_ns() {
            lane.enqueue(QueueHead { oldest_ns, key });
        }
        lane.refresh(hash);
        group.lane = Some(place.lane);
        if let Some(sums) = &mut balance.sums {
            sums.add(key, group);
        }
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
    life.step.is_placing = false;
    if life.counts.groups_unplaced == 0 {
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

/// Everything on which the choice of a lane for a group depends.
struct Rule<'a> {
    policy: PlacementPolicy,
    stream: i64,
    serving: Serving,
    /// Most groups that each lane may have, by lane.
    groups_max: &'a [i32],
    route: Option<Route>,
    topology: &'a Topology,
    /// Loads, if the policy uses them.
    loads: Option<&'a Loads>,
}

impl Rule<'_> {
    /// For each lane the reason that excludes it; `None` for candidates. `groups_placed` is the number of other groups
    /// on a lane.
    fn exclusions(
        &self,
        lanes: &[Lane],
        groups_placed: impl Fn(&Lane) -> i32,
    ) -> Vec<Option<ExclusionReason>> {
        let exclusion = |lane: &Lane| self.exclusion(lane, groups_placed(lane));
        let mut exclusions: Vec<_> = lanes.iter().map(exclusion).collect();
        let has_memory = |lane: &Lane| !lane.service.is_short_of_memory();
        let is_spared = lanes.iter().zip(&exclusions).any(|(lane, why)| why.is_none() && has_memory(lane));
        for (lane, exclusion) in lanes.iter().zip(&mut exclusions) {
            if is_spared && exclusion.is_none() && !has_memory(lane) {
                *exclusion = Some(ExclusionReason::Memory);
            }
        }
        exclusions
    }

    /// Reason that excludes a lane with `groups_placed` other groups, without regard to other lanes; `None` if it is a
    /// candidate.
    fn exclusion(&self, lane: &Lane, groups_placed: i32) -> Option<ExclusionReason> {
        if !lane.ready {
            return Some(ExclusionReason::Lost);
        }
        if let Some(reason) = self.serving.exclusion(lane) {
            return Some(reason);
        }
        if self.route.is_some_and(|route| route.kind != lane.kind) {
            return Some(ExclusionReason::Slower);
        }
        (groups_placed >= self.groups_max[lane.id as usize]).then_some(ExclusionReason::Full)
    }

    /// A lane as the policy sees it.
    fn view(&self, lane: &Lane, group: &Group) -> LaneView {
        let is_there = group.lane.or(group.work.bound()) == Some(lane.id);
        let (others_ns, own_ns) = self.loads.map_or((0, 0), |loads| loads.of(lane.id, group, is_there));
        LaneView {
            lane: lane.id,
            // Lanes of weight 0, which are used only if there are no others, count with weight 1.
            weight: lane.weight.current.max(1),
            withheld_percent: lane.weight.withheld_percent,
            is_short_of_memory: lane.service.is_short_of_memory(),
            others_ns,
            own_ns,
            closeness: group.work.home().map(|home| self.topology.between(home, lane.id)),
            is_bound: group.work.bound() == Some(lane.id),
        }
    }

    /// Candidates for a group with their scores, and excluded lanes with their reasons. `groups_placed` is the number
    /// of other groups on a lane.
    fn judge(
        &self,
        key: GroupKey,
        group: &Group,
        lanes: &[Lane],
        groups_placed: impl Fn(&Lane) -> i32,
    ) -> (Vec<Candidate>, Vec<Exclusion>) {
        let (mut candidates, mut excluded) = (Vec::with_capacity(lanes.len()), Vec::new());
        let mut views = Vec::with_capacity(lanes.len());
        for (lane, exclusion) in lanes.iter().zip(self.exclusions(lanes, &groups_placed)) {
            match exclusion {
                Some(reason) => excluded.push(Exclusion { lane: lane.id, reason }),
                None => {
                    let groups_placed = groups_placed(lane);
                    let groups_max = self.groups_max[lane.id as usize];
                    views.push(self.view(lane, group));
                    candidates.push(Candidate { lane: lane.id, score: 0, groups_placed, groups_max });
                }
            }
        }
        let view = GroupView { stream: self.stream, counter: counter_of(key) };
        for (candidate, score) in candidates.iter_mut().zip(self.policy.scores(&view, &views)) {
            candidate.score = score;
        }
        (candidates, excluded)
    }
}

/// The better of two candidates in the order of lanes: the first one if their scores are equal.
fn better<'a>(best: Option<&'a Candidate>, other: &'a Candidate) -> Option<&'a Candidate> {
    best.filter(|best| best.score >= other.score).or(Some(other))
}

fn choose(rule: &Rule<'_>, key: GroupKey, group: &Group, lanes: &[Lane]) -> Place {
    let (candidates, excluded) = rule.judge(key, group, lanes, |lane| lane.groups_placed);
    // The limits of the lanes that get groups add up to at least all groups. One group is unplaced, so some lane is not
    // full.
    let best = candidates.iter().fold(None, better);
    let lane = best.expect("bounded load leaves room while a lane is ready").lane;
    Place {
        partition: key.partition,
        group: key.group,
        lane,
        epoch: group.epoch + 1,
        policy: PolicyRef { id: rule.policy.name().to_owned(), version: rule.policy.version() },
        candidates,
        excluded,
        random_stream: rule.stream,
        random_counter: counter_of(key),
        propensity_ppm: PROPENSITY_CERTAIN_PPM,
        route: rule.route,
    }
}

/// A lane as an alternative for a group.
pub(crate) struct LaneAccount {
    /// The lane as the policy sees it.
    pub(crate) view: LaneView,
    pub(crate) groups_placed: i32,
    pub(crate) groups_max: i32,
    /// Reason that excludes it; `None` if it is a candidate.
    pub(crate) excluded: Option<ExclusionReason>,
    /// Score of the lane; for an excluded lane, the score that it would have as a candidate.
    pub(crate) score: i64,
}

/// All lanes in order, as alternatives for a group, as if the group had no lane; `None` if there is no such group.
pub(crate) fn account(life: &Life, key: GroupKey) -> Option<Vec<LaneAccount>> {
    let group = life.partitions.get(&key.partition)?.active().get(usize::try_from(key.group).ok()?)?;
    let chooser = Chooser::new(life);
    let kinds = if life.routes() { life.routing.kinds(&life.lanes) } else { None };
    let rule = chooser.rule(life, kinds.and_then(|kinds| kinds.route(group)));
    let groups_placed = |lane: &Lane| lane.groups_placed - i32::from(group.lane == Some(lane.id));
    let exclusions = rule.exclusions(&life.lanes, groups_placed);
    let may_have = life.lanes.iter().zip(&exclusions).filter(|(_, exclusion)| exclusion.is_none());
    let candidates: Vec<LaneView> = may_have.map(|(lane, _)| rule.view(lane, group)).collect();
    let group_view = GroupView { stream: rule.stream, counter: counter_of(key) };
    let account = |(lane, excluded): (&Lane, &Option<ExclusionReason>)| {
        let view = rule.view(lane, group);
        let mut views = candidates.clone();
        let index = candidates.iter().position(|other| other.lane == lane.id).unwrap_or_else(|| {
            views.push(view);
            views.len() - 1
        });
        LaneAccount {
            view,
            groups_placed: groups_placed(lane),
            groups_max: rule.groups_max[lane.id as usize],
            excluded: *excluded,
            score: rule.policy.scores(&group_view, &views)[index],
        }
    };
    Some(life.lanes.iter().zip(&exclusions).map(account).collect())
}

/// Loads of all lanes, if the policy uses them.
fn loads(life: &Life) -> Option<Loads> {
    life.policy.is_measured().then(|| Loads::new(life))
}

/// Chooser of the best lanes for groups that have a lane already.
pub(crate) struct Chooser {
    stream: i64,
    serving: Serving,
    groups_max: GroupsMax,
    loads: Option<Loads>,
    /// Number of groups that will still arrive, by lane.
    expected: Vec<i32>,
}

impl Chooser {
    /// A chooser for the present state of the lanes.
    pub(crate) fn new(life: &Life) -> Self {
        let serving = Serving::of(&life.lanes);
        let kinds = if life.routes() { life.routing.kinds(&life.lanes) } else { None };
        Self {
            stream: life.policy.stream(&life.config),
            serving,
            groups_max: GroupsMax::new(life, serving, kinds.is_some()),
            loads: loads(life),
            expected: vec![0; life.lanes.len()],
        }
    }

    fn rule<'a>(&'a self, life: &'a Life, route: Option<Route>) -> Rule<'a> {
        Rule {
            policy: life.policy,
            stream: self.stream,
            serving: self.serving,
            groups_max: self.groups_max.of(route),
            route,
            topology: &life.topology,
            loads: self.loads.as_ref(),
        }
    }

    /// The lane on which a group of `lane` would be placed if it had none.
    pub(crate) fn best(&self, life: &Life, key: GroupKey, group: &Group, lane: LaneId) -> LaneId {
        let kinds = if life.routes() { life.routing.kinds(&life.lanes) } else { None };
        let rule = self.rule(life, kinds.and_then(|kinds| kinds.route(group)));
        let others = |other: &Lane| {
            other.groups_placed + self.expected[other.id as usize] - i32::from(other.id == lane)
        };
        let (candidates, _) = rule.judge(key, group, &life.lanes, others);
        candidates.iter().fold(None, better).map_or(lane, |best| best.lane)
    }

    /// Notes that a group is to move from one lane to another.
    pub(crate) fn expect(&mut self, group: &Group, from: LaneId, to: LaneId) {
        self.expected[to as usize] += 1;
        if let Some(loads) = &mut self.loads {
            loads.shift(from, to, group);
        }
    }
}

/// The most groups that each lane may have.
struct GroupsMax {
    /// Limits if lanes of both kinds are candidates.
    any: Vec<i32>,
    /// Limits if the route restricts the group to one kind of lanes.
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

/// Most groups that each lane may have: `ceil(load factor × all groups × weight / weight of all lanes that get
/// groups)`, among lanes of a kind if one is given. Under a policy that uses measured loads, the limit is the number of
/// all groups. Lanes of weight 0 get no groups while another lane gets some, and count with weight 1 otherwise.
fn groups_max_per_lane(life: &Life, serving: Serving, kind: Option<LaneKind>) -> Vec<i32> {
    let counts = |lane: &&Lane| serving.has(lane) && kind.is_none_or(|kind| lane.kind == kind);
    let ready = || life.lanes.iter().filter(counts);
    let stand_in = !ready().any(|lane| lane.weight.current > 0);
    let weight = |lane: &Lane| i64::from(if stand_in { 1 } else { lane.weight.current });
    let weight_total: i64 = ready().map(weight).sum();
    let scaled_groups = i64::from(life.config.load_factor_percent) * life.counts.groups_assigned;
    // The division rounds up; no term is negative, and `whole` includes the lane's own weight.
    let share = |lane: &Lane, scaled_groups: i64, whole: i64| {
        let share = (scaled_groups * weight(lane) + 100 * whole - 1) / (100 * whole);
        i32::try_from(share).expect("load factor and group count are bounded, so is their product")
    };
    let bound = |lane: &Lane| match life.policy.is_measured() {
        true if weight(lane) > 0 => life.counts.groups_assigned as i32,
        true => 0,
        false => share(lane, scaled_groups, weight_total),
    };
    // A probed lane gets half of its fair number of groups, so that its batches are comparable to those by which its
    // class is judged.
    let probed = |lane: &Lane| match lane.weight.current {
        0 => 0,
        _ => (share(lane, 100 * life.counts.groups_assigned, weight_total + weight(lane)) / 2).max(1),
    };
    let most = |lane: &Lane| match serving.probes(lane) {
        true => probed(lane),
        false if counts(&lane) => bound(lane),
        false => 0,
    };
    life.lanes.iter().map(most).collect()
}
