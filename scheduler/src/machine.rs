//! The state machine: one input in, decisions out.
//!
//! It owns the order of the rules: the input, the end of tasks, releases from lanes, dispatch, slices for free lanes,
//! and backpressure. Work without room in a step is left to the next one. The module must not contain rules itself.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{
    Arrived, Completed, Decision, Fence, Input, LaneLost, LaneReady, PartitionAssigned, Released, Restore,
    ServicePoint,
};

use crate::admission::{admit, admit_time, is_void};
use crate::error::StepError;
use crate::lanes::QueueHead;
use crate::life::{Clock, Life, Step};
use crate::partitions::{Chunk, Group, GroupKey, Partition, PartitionPhase};
use crate::room::Room;
use crate::{
    autoscale, backpressure, balance, breaker, control, dispatch, placement, rebalance, risk, routing,
    service,
};

/// The scheduler. See the crate's documentation for the duties of the shell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Scheduler {
    /// The state; `None` before the first `Started`.
    pub(crate) life: Option<Life>,
}

impl Scheduler {
    /// A scheduler without state; the first input must be [`Input::Started`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an input at the time `at_ns`, in ns since the epoch, and appends the resulting decisions.
    ///
    /// # Errors
    ///
    /// Input that contradicts the state or the limits is refused: nothing changes, and nothing is appended.
    pub fn step(
        &mut self,
        at_ns: i64,
        input: &Input,
        decisions: &mut Vec<Decision>,
    ) -> Result<(), StepError> {
        admit_time(at_ns)?;
        if let Input::Started(started) = input {
            self.life = Some(Life::begin(at_ns, started)?);
            return Ok(());
        }
        let life = self.life.as_mut().ok_or(StepError::NotStarted)?;
        admit(life, at_ns, input)?;

        life.step.room = Room::new(life.step.bytes_max);
        take_step(life, at_ns, input, decisions);
        Ok(())
    }

    /// Repeats a step, but leaves out a decision and everything after it: the decision with this number among those
    /// that need room. Returns true if there is such a decision. The scheduler may then only be inspected.
    pub(crate) fn step_until(
        &mut self,
        at_ns: i64,
        input: &Input,
        number: usize,
        decisions: &mut Vec<Decision>,
    ) -> Result<bool, StepError> {
        admit_time(at_ns)?;
        let life = self.life.as_mut().ok_or(StepError::NotStarted)?;
        admit(life, at_ns, input)?;
        life.step.room = Room::until(life.step.bytes_max, number);
        take_step(life, at_ns, input, decisions);
        Ok(life.step.room.is_broken_off())
    }

    /// Hash of the whole state, for the journal's chain: 0 before the first `Started`.
    ///
    /// It is updated as the state changes; this function only reads it.
    pub fn state_hash(&self) -> u64 {
        self.life.as_ref().map_or(0, |life| life.hash.value())
    }
}

fn take_step(life: &mut Life, at_ns: i64, input: &Input, decisions: &mut Vec<Decision>) {
    autoscale::end_window(life, at_ns, decisions);
    life.clock.at_ns = at_ns;
    life.clock.wake_at_ns = life.clock.wake_at_ns.filter(|&wake_ns| wake_ns > at_ns);
    apply(life, input, decisions);
    if life.step.is_placing && !life.step.room.is_broken_off() {
        placement::place_all(life, decisions);
    }
    if life.step.room.is_broken_off() {
        return;
    }
    risk::settle(life, decisions);
    // The end of tasks may free lanes that waited for a gang.
    risk::shed(life, decisions);
    if life.step.room.is_broken_off() {
        return;
    }
    risk::ask_prices(life, decisions);
    let probe_ns = breaker::probe(life, decisions);
    // Work that leaves a lane may make room for work behind it. Tasks get the lanes that ticks leave free.
    service::evacuate(life, decisions);
    routing::release(life, decisions);
    balance::release(life, decisions);
    let move_ns = rebalance::go_on(life, decisions);
    let batch_ns = dispatch::release(life, decisions);
    let slice_ns = risk::run(life, decisions);
    if life.step.room.is_broken_off() {
        return;
    }
    let shed_ns = risk::shed_at_ns(life);
    let rest_ns = if life.step.room.is_short() { at_ns + 1 } else { i64::MAX };
    let scale_ns = autoscale::wake_ns(life);
    let waits_ns = shed_ns.min(move_ns).min(probe_ns).min(rest_ns).min(scale_ns);
    life.wake_by(batch_ns.min(slice_ns).min(waits_ns), decisions);
    backpressure::settle(life, decisions);
    life.refresh_clock();
}

/// Applies the input itself.
fn apply(life: &mut Life, input: &Input, decisions: &mut Vec<Decision>) {
    match input {
        Input::Started(_) => unreachable!("a start makes a new life"),
        Input::PartitionAssigned(assigned) => assign(life, assigned, decisions),
        Input::PartitionRevoked(revoked) => {
            life.clear_partition(revoked.partition, PartitionPhase::Revoked);
            risk::drop_partition(life, revoked.partition);
        }
        Input::Arrived(arrived) => arrive(life, arrived),
        Input::Completed(completed) => complete(life, completed, decisions),
        Input::LaneLost(lost) => lose(life, lost, decisions),
        Input::LaneReady(ready) => return_lane(life, ready, decisions),
        // The timer is spent even if it fired early.
        Input::Woke(_) => life.clock.wake_at_ns = None,
        Input::Draining(_) => life.clock.draining = true,
        Input::Measured(measured) => {
            routing::measured(life, measured.lane, &measured.points);
            balance::measured(life, measured.lane, &measured.points);
        }
        Input::Released(released) => take_back(life, released, decisions),
        Input::TaskArrived(arrived) => risk::arrive(life, arrived, decisions),
        Input::SliceDone(done) => {
            let is_current = !life.lanes[done.lane as usize].is_void_slice(done.slice);
            risk::slice_done(life, done, decisions);
            if is_current {
                breaker::work_done(life, done.lane, decisions);
            }
        }
        Input::TaskDropped(dropped) => risk::drop_task(life, dropped.task),
        // The journal records it for accounts of the log; it decides nothing.
        Input::Sealed(_) => {}
        Input::Priced(priced) => risk::priced(life, priced),
        Input::Sampled(sampled) => breaker::sampled(life, sampled.lane, &sampled.sample, decisions),
        Input::Control(command) => control::obey(life, command, decisions),
        // The journal records it for replays that begin here; it decides nothing.
        Input::Checkpoint(_) => {}
        // The journal records it so that waiting times of outputs can be explained; it decides nothing.
        Input::CommitEnded(_) => {}
        // The journal records it for the next owner of a partition; it decides nothing.
        Input::Positions(_) => {}
        Input::Trained(trained) => life.learnt.networks.add(trained, &mut life.hash),
    }
}

fn assign(life: &mut Life, assigned: &PartitionAssigned, decisions: &mut Vec<Decision>) {
    let id = assigned.partition;
    life.partitions.entry(id).or_insert_with(|| Partition::new(id));
    life.clear_partition(id, PartitionPhase::Assigned);
    let groups = assigned.groups as usize;
    let Life { partitions, hash, counts, .. } = &mut *life;
    let partition = partitions.get_mut(&id).expect("inserted above");
    for group in partition.groups.len()..groups {
        let key = GroupKey { partition: id, group: group as i32 };
        let mut new = Group::default();
        new.refresh(key, hash);
        partition.groups.push(new);
        counts.groups_seen += 1;
    }
    partition.groups_active = groups;
    partition.position = assigned.snapshot_offset;
    partition.refresh(hash);
    life.counts.groups_assigned += i64::from(assigned.groups);
    life.counts.groups_unplaced += i64::from(assigned.groups);
    placement::place_partition(life, id, decisions);
}

fn arrive(life: &mut Life, arrived: &Arrived) {
    let is_measured = life.policy.is_measured();
    let Life { lanes, partitions, hash, clock: Clock { at_ns, .. }, step: Step { touched, .. }, .. } = life;
    let partition = partitions.get_mut(&arrived.partition).expect("admission found the partition");
    partition.position = arrived.next_offset;
    for arrival in &arrived.groups {
        let key = GroupKey { partition: partition.id, group: arrival.group };
        let group = partition.group_mut(arrival.group);
        let was_empty = group.chunks.is_empty();
        group.push(key, Chunk { arrived_ns: *at_ns, rows: arrival.rows, bytes: arrival.bytes }, hash);
        if is_measured {
            group.work.arrive(key, arrival.rows, hash);
        }
        if let Some(lane) = group.lane {
            let lane = &mut lanes[lane as usize];
            lane.waiting.rows += arrival.rows;
            if was_empty {
                lane.enqueue(QueueHead { oldest_ns: *at_ns, key });
            }
            lane.refresh(hash);
        }
        partition.waiting_rows += arrival.rows;
        partition.waiting_bytes += arrival.bytes;
    }
    touched.push(partition.id);
    partition.refresh(hash);
}

fn complete(life: &mut Life, completed: &Completed, decisions: &mut Vec<Decision>) {
    let lane = &mut life.lanes[completed.lane as usize];
    if is_void(lane, completed.batch) {
        return;
    }
    let service_ns = completed.service_ns;
    let (class, rows) = (lane.class, lane.complete(life.clock.at_ns, service_ns, &mut life.hash));
    let predicted_ns = life.routing.batch_ns(class, rows);
    if let Some(live) = &mut life.learnt.later.autoscale {
        live.batch_done(rows, service_ns, &mut life.hash);
    }
    let is_first = !life.routing.knows(class, rows);
    let took = breaker::Took { predicted_ns, service_ns, is_first };
    let teaches = breaker::batch_done(life, completed.lane, took, decisions);
    if teaches && (life.routes() || life.config.breakers.is_some()) {
        life.routing.learn(class, ServicePoint { rows, service_ns }, &mut life.hash);
    }
    balance::learn(life, completed.lane, class, ServicePoint { rows, service_ns });
}

/// Places a group again after a lane has given it back.
fn take_back(life: &mut Life, released: &Released, decisions: &mut Vec<Decision>) {
    let key = GroupKey { partition: released.partition, group: released.group };
    balance::moved(life, key, released.lane);
    let partition = life.partitions.get_mut(&key.partition).expect("admission found the partition");
    let group = partition.group_mut(key.group);
    group.leaving = None;
    group.refresh_route(key, &mut life.hash);
    placement::place_partition(life, key.partition, decisions);
}

fn lose(life: &mut Life, lost: &LaneLost, decisions: &mut Vec<Decision>) {
    let of_partition = |partition: &Partition| {
        partition.active().iter().filter(|group| group.is_with(lost.lane)).count() as i32
    };
    let groups = life.partitions.values().map(of_partition).sum();
    decisions.push(Decision::Fence(Fence { lane: lost.lane, groups, reason: lost.reason.clone() }));
    breaker::lane_lost(life, lost.lane, decisions);
    if lost.kept {
        life.take_groups(lost.lane);
        life.forget_leaving(lost.lane);
        life.lose_lane(lost.lane);
        placement::place_all(life, decisions);
        return;
    }
    let affected: Vec<_> = life
        .partitions
        .values()
        .filter(|partition| partition.active().iter().any(|group| group.is_with(lost.lane)))
        .map(|partition| partition.id)
        .collect();
    for partition in affected {
        life.clear_partition(partition, PartitionPhase::Restoring);
        decisions.push(Decision::Restore(Restore { partition, lost_lane: lost.lane }));
    }
    life.lose_lane(lost.lane);
}

fn return_lane(life: &mut Life, ready: &LaneReady, decisions: &mut Vec<Decision>) {
    let lane = &mut life.lanes[ready.lane as usize];
    lane.ready = true;
    lane.refresh(&mut life.hash);
    breaker::lane_ready(life, ready.lane);
    placement::place_all(life, decisions);
}
