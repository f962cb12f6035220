//! Read-only views of the state, for the shell's metrics and for tests.
//!
//! They own no state, and allocate memory only for networks; the shell must not base decisions on them.

use serde::Serialize;
use warptape_events::journal::{BreakerState, GroupIndex, LaneId, PartitionId, Trained};

use crate::autoscale::Wish;
use crate::machine::Scheduler;
use crate::partitions::PartitionPhase;

/// Load of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LaneLoad {
    /// The lane.
    pub lane: LaneId,
    /// True if it is ready.
    pub ready: bool,
    /// True if it may get work: it is not drained, and its breaker is not open.
    pub in_service: bool,
    /// Its weight.
    pub weight: i32,
    /// Groups it owns.
    pub groups_placed: i32,
    /// Rows that wait for it on the host.
    pub waiting_rows: i64,
    /// Rows it has in flight.
    pub in_flight_rows: i64,
    /// Bytes it has in flight.
    pub in_flight_bytes: i64,
    /// Batches it has in flight.
    pub in_flight_batches: i32,
    /// Smoothed service time of a row in picoseconds; 0 while unknown.
    pub service_ps_per_row: i64,
    /// The slice of a risk task that it works on; `None` if there is none.
    pub slice: Option<i64>,
}

/// Load of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLoad {
    /// The partition.
    pub partition: PartitionId,
    /// Its phase.
    pub phase: PartitionPhase,
    /// True if it is paused at the source.
    pub paused: bool,
    /// Next offset after the last arrival.
    pub position: i64,
    /// Number of its groups; 0 unless it is assigned.
    pub groups: i32,
    /// Rows that wait on the host.
    pub waiting_rows: i64,
    /// Bytes that wait on the host.
    pub waiting_bytes: i64,
}

/// A batch that is dispatched and not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightBatch {
    /// Number of the batch.
    pub batch: i64,
    /// Its rows.
    pub rows: i64,
    /// Its bytes.
    pub bytes: i64,
}

/// Owner of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// The lane that owns it; `None` while it moves, or while no lane is ready.
    pub lane: Option<LaneId>,
    /// Epoch of the latest placement; 0 before the first.
    pub epoch: i64,
    /// Rows that wait for it on the host.
    pub waiting_rows: i64,
}

/// Rows of a group that arrived at one time and wait on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingRows {
    /// Partition of the group.
    pub partition: PartitionId,
    /// The group.
    pub group: GroupIndex,
    /// Arrival, in ns since the epoch.
    pub arrived_ns: i64,
    /// Number of the rows.
    pub rows: i64,
}

/// Tasks of a quota, including those of quotas below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLoad<'a> {
    /// The quota's name.
    pub name: &'a str,
    /// Its tasks.
    pub tasks: i64,
    /// Most tasks that it may have; 0: no limit of its own.
    pub limit: i64,
}

impl Scheduler {
    /// Number of wanted lanes since the last window, with the figures behind it. `None` if autoscaling is off, no whole
    /// window has passed, or the process is ending.
    pub fn wish(&self) -> Option<&Wish> {
        let life = self.life.as_ref().filter(|life| !life.clock.draining)?;
        life.learnt.later.autoscale.as_ref()?.wish()
    }

    /// The networks that policies may name, as inputs that add them.
    pub fn networks(&self) -> impl Iterator<Item = Trained> {
        self.life.iter().flat_map(|life| life.learnt.networks.told())
    }

    /// Load of every configured quota.
    pub fn quota_loads(&self) -> impl Iterator<Item = QuotaLoad<'_>> {
        self.life.iter().flat_map(|life| life.risk.quota_loads())
    }

    /// Load of every lane, by index.
    pub fn lane_loads(&self) -> impl Iterator<Item = LaneLoad> {
        self.life.iter().flat_map(|life| life.lanes.iter()).map(|lane| LaneLoad {
            lane: lane.id,
            ready: lane.ready,
            in_service: lane.service.is_on(),
            weight: lane.weight.current,
            groups_placed: lane.groups_placed,
            waiting_rows: lane.waiting.rows,
            in_flight_rows: lane.in_flight.rows,
            in_flight_bytes: lane.in_flight.bytes,
            in_flight_batches: lane.in_flight.batches.len() as i32,
            service_ps_per_row: lane.service_ps_per_row,
            slice: lane.slice().map(|slice| slice.slice),
        })
    }

    /// State of the breaker of every lane, by index.
    pub fn breakers(&self) -> impl Iterator<Item = BreakerState> {
        self.life.iter().flat_map(|life| life.lanes.iter()).map(|lane| lane.service.breaker())
    }

    /// Percentage of every lane's weight that is withheld because its device is hot, by index.
    pub fn withheld_percent(&self) -> impl Iterator<Item = i32> {
        self.life.iter().flat_map(|life| life.lanes.iter()).map(|lane| lane.weight.withheld_percent)
    }

    /// Predicted end of all work in flight of every lane, in ns since the epoch, by index. It is in the past if no work
    /// is in flight, or if the lane is late.
    pub fn predicted_free_ns(&self) -> impl Iterator<Item = i64> {
        self.life.iter().flat_map(|life| life.lanes.iter()).map(|lane| lane.free_ns)
    }

    /// Every partition of this process life, by number.
    pub fn partition_loads(&self) -> impl Iterator<Item = PartitionLoad> {
        self.life.iter().flat_map(|life| life.partitions.values()).map(|partition| PartitionLoad {
            partition: partition.id,
            phase: partition.phase,
            paused: partition.paused,
            position: partition.position,
            groups: partition.groups_active as i32,
            waiting_rows: partition.waiting_rows,
            waiting_bytes: partition.waiting_bytes,
        })
    }

    /// Rows of a partition that wait on the host; 0 if the partition is unknown.
    pub fn waiting_rows(&self, partition: PartitionId) -> i64 {
        let partition = self.life.as_ref().and_then(|life| life.partitions.get(&partition));
        partition.map_or(0, |partition| partition.waiting_rows)
    }

    /// Batches in flight on a lane, oldest first; empty if the lane is unknown.
    pub fn in_flight(&self, lane: LaneId) -> impl Iterator<Item = InFlightBatch> {
        let lane = self.life.as_ref().and_then(|life| life.lanes.get(usize::try_from(lane).ok()?));
        lane.into_iter().flat_map(|lane| &lane.in_flight.batches).map(|flight| InFlightBatch {
            batch: flight.batch,
            rows: flight.rows,
            bytes: flight.bytes,
        })
    }

    /// Every group of every assigned partition, by partition and group.
    pub fn placements(&self) -> impl Iterator<Item = Placement> {
        self.life.iter().flat_map(|life| life.partitions.values()).flat_map(|partition| {
            partition.active().iter().enumerate().map(|(index, group)| Placement {
                partition: partition.id,
                group: index as GroupIndex,
                lane: group.lane,
                epoch: group.epoch,
                waiting_rows: group.waiting_rows,
            })
        })
    }

    /// The rows that wait on the host, by partition and group, the oldest of each group first.
    pub fn waiting(&self) -> impl Iterator<Item = WaitingRows> {
        let partitions = self.life.iter().flat_map(|life| life.partitions.values());
        let groups = partitions.flat_map(|partition| {
            partition.active().iter().enumerate().map(|(group, of)| (partition.id, group, of))
        });
        groups.flat_map(|(partition, group, of)| {
            of.chunks.iter().map(move |chunk| WaitingRows {
                partition,
                group: group as GroupIndex,
                arrived_ns: chunk.arrived_ns,
                rows: chunk.rows,
            })
        })
    }

    /// Time of the pending wake; `None` if there is none.
    pub fn wake_at_ns(&self) -> Option<i64> {
        self.life.as_ref().and_then(|life| life.clock.wake_at_ns)
    }

    /// True if the pipeline drains.
    pub fn is_draining(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.clock.draining)
    }

    /// Number of known risk tasks.
    pub fn tasks_known(&self) -> usize {
        self.life.as_ref().map_or(0, |life| life.risk.tasks())
    }

    /// Number of risk tasks with units that no lane has begun.
    pub fn tasks_waiting(&self) -> i32 {
        self.life.as_ref().map_or(0, |life| life.risk.tasks_waiting())
    }

    /// True if nothing waits on the host and nothing is in flight, neither ticks nor tasks.
    pub fn is_quiet(&self) -> bool {
        self.life.as_ref().is_none_or(|life| {
            life.risk.tasks() == 0
                && life.lanes.iter().all(|lane| lane.is_idle() && lane.slice().is_none())
                && life.partitions.values().all(|partition| partition.waiting_rows == 0)
        })
    }
}
