//! Status of an engine, for metrics and for people. No decision depends on it.

use warptape_events::journal::{BreakerState, LaneId};
use warptape_scheduler::autoscale::Wish;
use warptape_scheduler::{LaneLoad, Placement};

use super::Core;
use crate::partition::Partition;
use crate::split_symbols::SplitSymbols;
use crate::tally::Tally;

/// Status of an engine.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Partitions that this process owns.
    pub partitions: Vec<PartitionStatus>,
    /// Lanes, by index.
    pub lanes: Vec<LaneStatus>,
    /// The lane of every group.
    pub placements: Vec<Placement>,
    /// Totals over the journal of this life.
    pub tally: Tally,
    /// Decisions made.
    pub decisions: u64,
    /// Rows that wait on the host.
    pub waiting_rows: usize,
    /// Symbols seen in the owned partitions.
    pub symbols: usize,
    /// Number of those symbols that are evicted from memory.
    pub evicted: usize,
    /// Time bars that were open at the last snapshots of the partitions.
    pub open_bars: u64,
    /// Symbols that are in more than one of the owned partitions.
    pub split_symbols: SplitSymbols,
    /// Number of risk tasks that the scheduler knows.
    pub tasks: usize,
    /// Risk tasks with units that no lane has begun.
    pub tasks_waiting: i32,
    /// Configured quotas of risk tasks: name, tasks, and greatest number of tasks, where 0 means as many as fit.
    pub quotas: Vec<(String, i64, i64)>,
    /// Number of wanted lanes since the last window of autoscaling, with the figures behind it; `None` if it is
    /// unknown.
    pub wish: Option<Wish>,
    /// Positions that processor lanes revalued, for portfolios whose earlier values were kept.
    pub positions_revalued: u64,
    /// True if something waits for the next commit.
    pub has_uncommitted: bool,
    /// True if risk results wait for the next commit.
    pub has_risk_results: bool,
    /// Time at which the commit under way was sealed; `None` if none is under way.
    pub committing_since_ns: Option<i64>,
    /// Time since which every attempt to commit has been aborted; `None` if the last one succeeded.
    pub aborting_since_ns: Option<i64>,
    /// True if the engine is ending.
    pub is_stopping: bool,
}

/// A partition that this process owns.
#[derive(Clone, Debug)]
pub struct PartitionStatus {
    /// The partition.
    pub partition: i32,
    /// True if its state is in memory; false while it is being restored.
    pub is_restored: bool,
    /// True if the scheduler has paused reading of it.
    pub is_paused: bool,
    /// The next record to accept.
    pub next_offset: i64,
    /// The offset up to which the log was read. It exceeds `next_offset` if offsets without a record follow, such as
    /// Kafka's end marker of a transaction.
    pub read_to: i64,
    /// Offset before which the outputs of all records are committed, or in the commit under way.
    pub sealed_offset: i64,
    /// Offset of the last snapshot that is in commits in full, perhaps in the commit under way. After that commit,
    /// a restore needs no earlier ticks. 0 before the first snapshot of this life.
    pub snapshot_offset: i64,
    /// The event time before which ticks are late, ns since the epoch; `None` before the first tick.
    pub watermark_ns: Option<i64>,
    /// Number of its symbols.
    pub symbols: usize,
    /// Rows that wait on the host.
    pub waiting_rows: i64,
    /// Bytes of the waiting rows.
    pub waiting_bytes: i64,
}

/// A lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneStatus {
    /// Current work of the lane.
    pub load: LaneLoad,
    /// Its breaker.
    pub breaker: BreakerState,
}

impl LaneStatus {
    /// The lane's index.
    pub fn lane(&self) -> LaneId {
        self.load.lane
    }
}

impl Core {
    /// The engine's status now.
    pub fn status(&self) -> Status {
        let scheduler = self.recorder.scheduler();
        let lanes = scheduler.lane_loads().zip(scheduler.breakers());
        let known: Vec<_> = scheduler.partition_loads().collect();
        let partitions = self.membership.owned().map(|partition| {
            let load = known.iter().find(|load| load.partition == partition);
            let owned = self.partitions.get(&partition);
            PartitionStatus {
                partition,
                is_restored: owned.is_some(),
                is_paused: load.is_some_and(|load| load.paused),
                next_offset: owned.map_or(0, |owned| owned.next_offset),
                read_to: owned.map_or(0, |owned| owned.next_offset.max(owned.read_to)),
                sealed_offset: owned.map_or(0, |owned| owned.sealed_offset),
                snapshot_offset: owned.map_or(0, Partition::snapshot_offset),
                watermark_ns: owned.and_then(|owned| owned.watermark_ns()),
                symbols: owned.map_or(0, |owned| owned.symbol_count()),
                waiting_rows: load.map_or(0, |load| load.waiting_rows),
                waiting_bytes: load.map_or(0, |load| load.waiting_bytes),
            }
        });
        Status {
            partitions: partitions.collect(),
            lanes: lanes.map(|(load, breaker)| LaneStatus { load, breaker }).collect(),
            placements: scheduler.placements().collect(),
            tally: self.recorder.tally(),
            decisions: self.recorder.decisions_total(),
            waiting_rows: self.partitions.values().map(Partition::waiting_rows).sum(),
            symbols: self.partitions.values().map(Partition::symbol_count).sum(),
            evicted: self.partitions.values().map(Partition::evicted_count).sum(),
            open_bars: self.partitions.values().map(Partition::open_bars).sum(),
            split_symbols: self.split_symbols.clone(),
            tasks: scheduler.tasks_known(),
            tasks_waiting: scheduler.tasks_waiting(),
            quotas: scheduler.quota_loads().map(|of| (of.name.to_owned(), of.tasks, of.limit)).collect(),
            wish: scheduler.wish().copied(),
            positions_revalued: self.risk.kept.revalued(),
            has_uncommitted: self.has_uncommitted(),
            has_risk_results: self.has_risk_results(),
            committing_since_ns: self.committing_since_ns(),
            aborting_since_ns: self.aborting_since_ns(),
            is_stopping: self.stopping.at.is_some(),
        }
    }
}
