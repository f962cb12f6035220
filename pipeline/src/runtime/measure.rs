//! Measures a lane's time for batches of several sizes when it starts. Routing starts from these times.

use std::collections::BTreeMap;

use warptape_engine::{BatchPart, GroupId, GroupState, LaneBatch, LaneCommand};
use warptape_kernels::device::DeviceError;
use warptape_schemas::journal::ServicePoint;
use warptape_schemas::tick::{Scales, Side, Tick, TickColumns, TickKind};
use warptape_stages::{GroupInput, GroupQueue, GroupStage, PartitionIntake, StageConfig};

use super::lanes::LaneWork;
use super::{Clock, EngineConfig};

/// Row counts of the measured batches.
const SIZES: [i64; 8] = [2, 8, 32, 128, 512, 2_048, 8_192, 32_768];
/// Runs of each size; the fastest counts, because slower runs were disturbed.
const REPETITIONS: usize = 3;
/// Number of symbols, among which the rows alternate.
const SYMBOLS: i64 = 64;
/// Time between two rows; each symbol has a bar in each second.
const ROW_INTERVAL_NS: i64 = 1_000_000;
/// The measured group; its partition number never occurs in a log.
const GROUP: GroupId = GroupId { partition: -1, group: 0 };

/// Runs batches of made-up trades, up to the largest batch, on a lane that has no groups yet. The batches have the
/// number -1.
pub(super) fn measure(
    stages: &mut dyn LaneWork,
    config: &EngineConfig,
    clock: Clock,
) -> Result<Vec<ServicePoint>, DeviceError> {
    let stage = Box::new(GroupStage::new(&config.core.stages, config.isa));
    stages.obey(LaneCommand::Install { group: GROUP, epoch: 0, state: GroupState::Stage(stage) })?;
    let mut trades = Trades::new(&config.core.stages);
    let mut points = Vec::new();
    for rows in SIZES.into_iter().filter(|&rows| rows <= config.core.scheduler.batch_rows_max) {
        let mut service_ns = i64::MAX;
        for _ in 0..REPETITIONS {
            let part = BatchPart { group: GROUP, epoch: 0, input: trades.next(rows) };
            let batch = LaneBatch { batch: -1, parts: vec![part] };
            let started_ns = clock.now_ns();
            stages.obey(LaneCommand::Run(batch))?;
            stages.finish()?;
            service_ns = service_ns.min(clock.now_ns() - started_ns);
        }
        points.push(ServicePoint { rows, service_ns });
    }
    stages.obey(LaneCommand::Drop { partition: GROUP.partition })?;
    Ok(points)
}

/// An endless series of trades of a partition with one group.
struct Trades {
    intake: PartitionIntake,
    rows: i64,
}

impl Trades {
    fn new(config: &StageConfig) -> Self {
        let config =
            StageConfig { groups_per_partition: 1, lateness_by_venue_ns: BTreeMap::new(), ..config.clone() };
        Self { intake: PartitionIntake::new(&config), rows: 0 }
    }

    /// Returns the next `count` trades; the first ones introduce the symbols.
    fn next(&mut self, count: i64) -> GroupInput {
        let mut columns = TickColumns::default();
        for row in self.rows..self.rows + count {
            let trade = Tick {
                symbol: format!("S{}", row % SYMBOLS),
                kind: TickKind::Trade,
                event_time_ns: (row + 1) * ROW_INTERVAL_NS,
                receive_time_ns: 0,
                trade_id: row,
                side: Side::Buy,
                price_e9: 100_000_000_000 + (row % 97) * 10_000_000,
                size_e9: 1_000_000_000,
                bid_price_e9: 0,
                bid_size_e9: 0,
                ask_price_e9: 0,
                ask_size_e9: 0,
                scales: Scales::E9,
            };
            columns.push(&trade, self.intake.symbols_mut());
        }
        let (mut queue, mut late) = ([GroupQueue::default()], Vec::new());
        self.intake.accept(self.rows, 0, &mut columns, 0, &mut queue, &mut late);
        debug_assert!(columns.rejected.is_empty(), "made-up trades follow each other closely");
        self.rows += count;
        queue[0].take(usize::MAX)
    }
}
