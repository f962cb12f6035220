//! Everything that the scheduler knows in one process life, from one `Started` to the next.
//!
//! The module owns the state, and the steps that several rules share (taking groups from lanes, dropping waiting rows).
//! It must not decide anything: placement, dispatch and backpressure do.
//!
//! It holds the state of each rule, and each rule sees the others' state through it. So the module and the rules depend
//! on each other: they are one state machine, divided by kinds of decisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{
    BreakerConfig, Decision, LaneId, PartitionId, SchedulerConfig, Started, WakeAt,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::autoscale::{self, check_autoscale};
use crate::balance::{self, Balance};
use crate::breaker::Breakers;
use crate::classes::classes_of;
use crate::config::{FIRST_RULES, RULES, check_config, check_lanes, mistake, routes};
use crate::error::StepError;
use crate::lanes::{Lane, Lanes, QueueHead};
use crate::learnt::{Learnt, Rules};
use crate::partitions::{GroupKey, Partition, PartitionPhase};
use crate::policy::placement::PlacementPolicy;
use crate::policy::task::TaskPolicy;
use crate::rebalance::Rebalancing;
use crate::risk::{self, Risk, Shadows, Widths, check_shadow, widths_of};
use crate::room::Room;
use crate::routing::Routing;
use crate::state_hash::{Component, StateHash, hash_component};
use crate::topology::Topology;

/// The state since a `Started` input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Life {
    pub(crate) config: SchedulerConfig,
    pub(crate) policy: PlacementPolicy,
    pub(crate) lanes: Lanes,
    pub(crate) routing: Routing,
    pub(crate) balance: Balance,
    pub(crate) topology: Topology,
    pub(crate) risk: Risk,
    /// Every partition seen in this life, revoked ones included.
    pub(crate) partitions: BTreeMap<PartitionId, Partition>,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    pub(crate) rebalancing: Rebalancing,
    pub(crate) breakers: Breakers,
    /// Checkpoints store it after the other fields.
    #[serde(skip)]
    pub(crate) learnt: Learnt,
    pub(crate) hash: StateHash,
    pub(crate) step: Step,
}

/// Time and counters of the life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// Time of the last step.
    pub(crate) at_ns: i64,
    /// Number of the next batch.
    pub(crate) batch_next: i64,
    /// The time of the pending wake. Dispatch and tasks request wakes; a step at or past the time, or `Woke`, clears
    /// it.
    pub(crate) wake_at_ns: Option<i64>,
    pub(crate) draining: bool,
}

/// Counts of groups and lanes by state, so that steps need not walk over them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Groups of assigned partitions, placed or not.
    pub(crate) groups_assigned: i64,
    /// Groups of assigned partitions that no lane owns.
    pub(crate) groups_unplaced: i64,
    /// Groups seen in this life.
    pub(crate) groups_seen: i64,
    /// Lanes out of service, whether lost or not.
    pub(crate) lanes_out: usize,
}

/// Progress of the step, and the bound on its decisions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Partitions whose waiting rows changed in this step; empty between steps.
    #[serde(skip)]
    pub(crate) touched: Vec<PartitionId>,
    /// Most bytes of decisions in a step, approximately; 0: no limit.
    pub(crate) bytes_max: i64,
    /// Remaining room of the step.
    #[serde(skip)]
    pub(crate) room: Room,
    /// True if groups without a lane wait only for room in a step. It follows from the groups, so it is not part of the
    /// hash.
    pub(crate) is_placing: bool,
    /// The lane that training has chosen for the next pushed task; `None` in production.
    #[serde(skip)]
    pub(crate) steered: Option<LaneId>,
}

impl Life {
    /// A fresh state: all lanes ready, nothing assigned.
    pub(crate) fn begin(at_ns: i64, started: &Started) -> Result<Self, StepError> {
        let mut mistakes = check_config(&started.scheduler);
        mistakes.extend(check_lanes(&started.lanes));
        mistakes.extend(started.autoscale.iter().flat_map(check_autoscale));
        mistakes.extend(started.shadow.iter().flat_map(check_shadow));
        if !(FIRST_RULES..=RULES).contains(&started.rules) {
            let allowed = format!(
                "it must be from {FIRST_RULES} to {RULES}, by which this version decides; replay others by the version of warptape that wrote them"
            );
            mistakes.push(mistake("rules", started.rules, allowed));
        }
        let placement = PlacementPolicy::parse(&started.scheduler.placement_policy);
        let task_policy = TaskPolicy::parse(&started.scheduler.risk.policy);
        let ((policy, step_bytes_max), task_policy) = match placement.zip(task_policy) {
            Some(parsed) if mistakes.is_empty() => parsed,
            _ => return Err(StepError::BadConfig(mistakes)),
        };
        let widths = widths_of(&started.lanes, started.rules);
        let (classes, class_count) = classes_of(&started.lanes, &widths);
        let widths = Widths::new(widths, classes.iter().copied()).expect("lanes of a class have one width");
        let lanes = started.lanes.iter().zip(classes).map(|(spec, class)| Lane::new(spec, class));
        let mut life = Self {
            config: started.scheduler.clone(),
            policy,
            lanes: Lanes::new(lanes.collect()),
            routing: Routing::new(routes(&started.scheduler, &started.lanes), class_count),
            balance: Balance::new(started.lanes.len(), class_count),
            topology: Topology::new(&started.lanes),
            risk: Risk::new(&started.scheduler.risk, task_policy, started.lanes.len(), class_count, widths),
            partitions: BTreeMap::new(),
            clock: Clock { at_ns, batch_next: 0, wake_at_ns: None, draining: false },
            counts: Counts::default(),
            rebalancing: Rebalancing::default(),
            breakers: Breakers::new(started.lanes.len()),
            learnt: Learnt::by_rules(started.rules),
            hash: StateHash::default(),
            step: Step {
                touched: Vec::new(),
                bytes_max: step_bytes_max,
                room: Room::new(step_bytes_max),
                is_placing: false,
                steered: None,
            },
        };
        life.refresh_config();
        life.hash.add(life.risk.widths().hash());
        for index in 0..life.lanes.len() {
            life.lanes[index].refresh(&mut life.hash);
        }
        let live = |config| autoscale::Live::new(config, at_ns, started.lanes.len(), &mut life.hash);
        life.learnt.later.autoscale = started.autoscale.as_ref().map(live);
        let shadows = started.shadow.as_ref();
        life.learnt.later.shadows = shadows.map(|config| Shadows::new(config, &mut life.hash));
        life.refresh_clock();
        life.learnt.choose_policy(task_policy, life.lanes.len(), &mut life.hash);
        Ok(life)
    }

    /// True if groups move between kinds of lanes.
    pub(crate) fn routes(&self) -> bool {
        self.routing.is_on
    }

    pub(crate) fn config_hash(&self) -> u64 {
        let config = &self.config;
        // A field that is not configured adds nothing to the hash, which therefore stays as before the field existed.
        let route = match config.route_interval_ns {
            0 => 0,
            interval_ns => hash_component(Component::Config, [interval_ns]),
        };
        let balance = match config.balance_interval_ns {
            0 => 0,
            interval_ns => hash_component(Component::Balance, [interval_ns]),
        };
        let Rules(rules) = self.learnt.later.rules;
        let rules = hash_component(Component::Rules, [i64::from(rules)]);
        let risk = risk::config_hash(&config.risk);
        let breakers = config.breakers.map_or(0, |breakers| {
            let BreakerConfig { window_ns, slow_ns, probe_ns, probe_ns_max, .. } = breakers;
            let BreakerConfig { losses_max, slow_percent, probes, headroom_c, memory_free_percent, .. } =
                breakers;
            let counts = [losses_max, slow_percent, probes, headroom_c, memory_free_percent];
            let [losses_max, slow_percent, probes, headroom_c, memory_free_percent] = counts.map(i64::from);
            let fields =
                [losses_max, window_ns, slow_percent, slow_ns, probe_ns, probe_ns_max, probes, headroom_c];
            let memory = hash_component(Component::BreakerConfig, [memory_free_percent]);
            hash_component(Component::BreakerConfig, fields).wrapping_add(memory)
        });
        route
            .wrapping_add(balance)
            .wrapping_add(rules)
            .wrapping_add(risk)
            .wrapping_add(breakers)
            .wrapping_add(hash_component(
                Component::Config,
                [
                    xxh3_64(config.placement_policy.as_bytes()) as i64,
                    config.placement_seed,
                    i64::from(config.load_factor_percent),
                    config.lane_credit_rows,
                    config.lane_credit_bytes,
                    i64::from(config.lane_batches_max),
                    config.batch_rows_max,
                    config.row_deadline_ns,
                    config.high_water_rows,
                    config.low_water_rows,
                ],
            ))
    }

    /// Updates the state hash after a change of the configuration.
    pub(crate) fn refresh_config(&mut self) {
        let now = self.config_hash();
        self.hash.replace_config(now);
    }

    pub(crate) fn clock_hash(&self) -> u64 {
        hash_component(
            Component::Clock,
            [
                self.clock.at_ns,
                self.clock.batch_next,
                self.clock.wake_at_ns.unwrap_or(-1),
                i64::from(self.clock.draining),
            ],
        )
    }

    pub(crate) fn refresh_clock(&mut self) {
        let now = self.clock_hash();
        self.hash.replace_clock(now);
    }

    /// Requests a wake at this time, unless an earlier one is pending.
    pub(crate) fn wake_by(&mut self, at_ns: i64, decisions: &mut Vec<Decision>) {
        if at_ns < self.clock.wake_at_ns.unwrap_or(i64::MAX) {
            self.clock.wake_at_ns = Some(at_ns);
            decisions.push(Decision::WakeAt(WakeAt { at_ns }));
        }
    }

    /// Marks a lane lost; the caller has already taken its groups away.
    pub(crate) fn lose_lane(&mut self, lane: LaneId) {
        risk::lane_lost(self, lane);
        balance::forget_lane(self, lane);
        let slice_next = self.risk.slice_next();
        self.lanes[lane as usize].lose(self.clock.batch_next, slice_next, &mut self.hash);
    }

    /// Takes all groups from a lane; their waiting rows keep waiting.
    pub(crate) fn take_groups(&mut self, lane: LaneId) {
        self.balance.sums = None;
        let Self { lanes, partitions, hash, counts, .. } = self;
        let lane = &mut lanes[lane as usize];
        for partition in partitions.values_mut() {
            for (group_index, group) in partition.groups[..partition.groups_active].iter_mut().enumerate() {
                if group.lane != Some(lane.id) {
                    continue;
                }
                let key = GroupKey { partition: partition.id, group: group_index as i32 };
                group.lane = None;
                group.refresh(key, hash);
                counts.groups_unplaced += 1;
                lane.groups_placed -= 1;
                lane.waiting.rows -= group.waiting_rows;
                if let Some(oldest_ns) = group.oldest_ns() {
                    lane.dequeue(QueueHead { oldest_ns, key });
                }
            }
        }
        lane.refresh(hash);
    }

    /// Stops waiting for groups that a lane was to give back.
    pub(crate) fn forget_leaving(&mut self, lane: LaneId) {
        self.balance.sums = None;
        let Self { partitions, hash, .. } = self;
        for partition in partitions.values_mut() {
            for (group_index, group) in partition.groups[..partition.groups_active].iter_mut().enumerate() {
                if group.leaving == Some(lane) {
                    let key = GroupKey { partition: partition.id, group: group_index as i32 };
                    (group.leaving, group.bound_for) = (None, None);
                    group.refresh_route(key, hash);
                    group.work.unbind(key, hash);
                }
            }
        }
    }

    /// Clears a partition: takes its groups from their lanes, drops its waiting rows, and forgets its pause. The
    /// partition is left in the given phase, without groups.
    pub(crate) fn clear_partition(&mut self, partition: PartitionId, phase: PartitionPhase) {
        self.balance.sums = None;
        let Self { lanes, partitions, hash, .. } = self;
        let partition =
            partitions.get_mut(&partition).expect("admission, or the caller's own walk, found the partition");
        for (group_index, group) in partition.groups[..partition.groups_active].iter_mut().enumerate() {
            let key = GroupKey { partition: partition.id, group: group_index as i32 };
            match group.lane.take() {
                Some(lane) => {
                    let lane = &mut lanes[lane as usize];
                    lane.groups_placed -= 1;
                    lane.waiting.rows -= group.waiting_rows;
                    if let Some(oldest_ns) = group.oldest_ns() {
                        lane.dequeue(QueueHead { oldest_ns, key });
                    }
                    lane.refresh(hash);
                    group.refresh(key, hash);
                }
                None => self.counts.groups_unplaced -= 1,
            }
            group.clear(key, hash);
        }
        self.counts.groups_assigned -= partition.groups_active as i64;
        partition.groups_active = 0;
        partition.waiting_rows = 0;
        partition.waiting_bytes = 0;
        partition.paused = false;
        partition.position = 0;
        partition.phase = phase;
        partition.refresh(hash);
    }
}
