//! The audit: it computes again, by walking over the state, everything that is otherwise updated incrementally.
//!
//! It is for tests and tools, because it is slow; the machine never calls it.

use crate::balance;
use crate::breaker;
use crate::dispatch;
use crate::lanes::{Lane, QueueHead};
use crate::life::Life;
use crate::machine::Scheduler;
use crate::partitions::{Group, GroupKey, Partition, PartitionPhase};
use crate::risk;
use crate::service;
use crate::state_hash::StateHash;

impl Scheduler {
    /// Checks the whole state by walking over it.
    ///
    /// # Panics
    ///
    /// The state hash or a running sum differs from the result of the walk: a defect of this crate.
    pub fn audit(&self) {
        let Some(life) = &self.life else { return };
        assert_eq!(life.hash.value(), walk_hash(life), "the state hash was not kept");
        assert!(life.step.touched.is_empty(), "partitions touched by the last step were not settled");
        life.lanes.iter().for_each(|lane| audit_lane(life, lane));
        life.partitions.values().for_each(audit_partition);
        let assigned: usize = life.partitions.values().map(|partition| partition.groups_active).sum();
        let seen: usize = life.partitions.values().map(|partition| partition.groups.len()).sum();
        let groups = life.partitions.values().flat_map(Partition::active);
        let unplaced = groups.filter(|group| group.lane.is_none()).count();
        let found = (assigned as i64, unplaced as i64, seen as i64);
        assert_eq!(
            (life.counts.groups_assigned, life.counts.groups_unplaced, life.counts.groups_seen),
            found,
            "groups"
        );
        let waits = |group: &Group| group.lane.or(group.leaving).is_none();
        let may_wait = life.step.is_placing || !life.lanes.iter().any(|lane| lane.ready);
        assert!(may_wait || !life.partitions.values().flat_map(Partition::active).any(waits), "unplaced");
        let lanes_out = life.lanes.iter().filter(|lane| !lane.service.is_on()).count();
        assert_eq!(life.counts.lanes_out, lanes_out, "lanes out of service");
        life.lanes.audit();
        dispatch::audit(life);
        balance::audit(life);
        breaker::audit(life);
        risk::audit(life);
    }
}

/// True if the kept state hash equals the hash computed from the whole state.
pub(crate) fn hash_is_kept(scheduler: &Scheduler) -> bool {
    scheduler.life.as_ref().is_none_or(|life| life.hash.value() == walk_hash(life))
}

fn walk_hash(life: &Life) -> u64 {
    let mut hash = StateHash::default();
    hash.add(life.config_hash());
    hash.add(life.clock_hash());
    hash.add(life.routing.walked_hash());
    hash.add(life.balance.walked_hash());
    hash.add(risk::walked_hash(&life.risk, &life.lanes));
    hash.add(service::walked_hash(&life.lanes));
    hash.add(life.rebalancing.hash());
    hash.add(life.breakers.walked_hash());
    hash.add(life.learnt.walked_hash());
    for lane in life.lanes.iter() {
        hash.add(lane.hash());
        hash.add(lane.slice_hash());
        lane.in_flight.batches.iter().for_each(|batch| hash.add(batch.hash(lane.id)));
    }
    for partition in life.partitions.values() {
        hash.add(partition.hash());
        for (index, group) in partition.groups.iter().enumerate() {
            let key = GroupKey { partition: partition.id, group: index as i32 };
            hash.add(group.hash(key));
            hash.add(group.route_hash(key));
            hash.add(group.work.hash(key));
            group.chunks.iter().for_each(|chunk| hash.add(chunk.hash(key)));
        }
    }
    hash.value()
}

fn audit_lane(life: &Life, lane: &Lane) {
    let mut queues = Vec::new();
    let (mut groups_placed, mut waiting_rows) = (0, 0);
    for partition in life.partitions.values() {
        for (index, group) in partition.active().iter().enumerate() {
            if group.lane == Some(lane.id) {
                groups_placed += 1;
                waiting_rows += group.waiting_rows;
                let key = GroupKey { partition: partition.id, group: index as i32 };
                queues.extend(group.oldest_ns().map(|oldest_ns| QueueHead { oldest_ns, key }));
            }
        }
    }
    queues.sort_unstable();
    assert!(
        lane.waiting.queues.iter().eq(&queues),
        "lane {}: order {:?}, found {queues:?}",
        lane.id,
        lane.waiting.queues
    );
    assert_eq!((lane.groups_placed, lane.waiting.rows), (groups_placed, waiting_rows), "lane {}", lane.id);
    let rows: i64 = lane.in_flight.batches.iter().map(|batch| batch.rows).sum();
    let bytes: i64 = lane.in_flight.batches.iter().map(|batch| batch.bytes).sum();
    assert_eq!((lane.in_flight.rows, lane.in_flight.bytes), (rows, bytes), "lane {}", lane.id);
    let has_work = groups_placed > 0 || rows > 0 || lane.slice().is_some();
    assert!(lane.ready || !has_work, "lost lane {} has work", lane.id);
    assert!(lane.passed().is_none() || lane.slice().is_some(), "lane {}: nothing passed its slice", lane.id);
}

fn audit_partition(partition: &Partition) {
    let (mut rows, mut bytes) = (0, 0);
    for (index, group) in partition.groups.iter().enumerate() {
        let active = index < partition.groups_active;
        assert!(group.leaving.is_none() || (active && group.lane.is_none()), "a group leaves a lane it has");
        assert!(
            active || (group.lane.is_none() && group.chunks.is_empty()),
            "an inactive group has something"
        );
        assert!(group.chunks.iter().all(|chunk| chunk.rows > 0 && chunk.bytes >= 0), "a chunk has no rows");
        let times = group.chunks.iter().map(|chunk| chunk.arrived_ns);
        assert!(times.is_sorted_by(|earlier, later| earlier < later), "chunks are out of order");
        let group_rows: i64 = group.chunks.iter().map(|chunk| chunk.rows).sum();
        assert_eq!(group.waiting_rows, group_rows, "partition {} group {index}", partition.id);
        rows += group_rows;
        bytes += group.chunks.iter().map(|chunk| chunk.bytes).sum::<i64>();
    }
    assert_eq!(
        (partition.waiting_rows, partition.waiting_bytes),
        (rows, bytes),
        "partition {}",
        partition.id
    );
    let assigned = partition.phase == PartitionPhase::Assigned;
    assert_eq!(assigned, partition.groups_active > 0, "only assigned partitions have groups");
    assert!(assigned || !partition.paused, "only assigned partitions are paused");
}
