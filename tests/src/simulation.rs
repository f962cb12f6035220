//! The engine's core under a simulated shell: lanes that finish late, commits in flight, lost lanes, crashes.
//!
//! One seed decides everything: the market, the configuration, and the order of events. After a number of turbulent
//! events comes a stop, at first with faults, then a healing phase without, which drains; then the committed topics are compared, byte for byte,
//! with the plain sequential run, and every journal entry is stepped again.

mod check;
mod lane;
mod risk;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use warptape_eventlog::{Record, TopicPartition};
use warptape_kernels::Isa;
use warptape_kernels::device::NoDevices;
use warptape_pipeline::engine::core::{Command, Core};
use warptape_pipeline::engine::{
    CommitRequest, Conclusion, EngineConfig, LaneCommand, LaneResult, Preparation, RecordError,
    SnapshotPlace, Stop, Topics, restore_from,
};
use warptape_scheduler::in_steps;
use warptape_schemas::journal::{LaneId, LaneSpec, RiskConfig, SchedulerConfig, ServicePoint, SplitPolicy};
use warptape_schemas::{decode_journal_entry, decode_snapshot};

use crate::coverage::Coverage;
use crate::devices::SimulatedDevices;
use crate::market::{self, SourceLog};
use crate::random::Random;
use crate::sequential::{self, Outputs};
use lane::{SimulatedLane, SimulatedResult};
use risk::{POSITIONS, Requests};

/// Events before the healing phase.
const TURBULENT_EVENTS: usize = 400;
/// Events with faults after the stop.
const STOPPING_EVENTS: usize = 150;
/// Events within which a healing phase must end.
const HEALING_EVENTS_MAX: usize = 200_000;

/// A fault planted in the shell, to show that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// None: the shell does its work.
    Nothing,
    /// Source offsets are committed in a transaction before that of the outputs.
    OffsetsFirst,
    /// A lane takes two trades of a group the wrong way round.
    RowsSwapped,
    /// A restored partition is read from its committed offset instead of its snapshot.
    TailSkipped,
    /// A process that begins does not look which risk requests have been answered.
    AnswersForgotten,
    /// The core is told that a partition was read to where it was, while its ticks are still to be read again.
    MarketBehind,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Outputs or offsets are not those of the sequential run.
    Outputs(String),
    /// The journal does not replay.
    Journal(String),
    /// The engine gave up, or did not finish.
    Engine(String),
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::Engine(error.to_string())
    }
}

/// Runs one seed.
pub fn simulate(seed: u64, plant: Plant) -> Result<Coverage, Failure> {
    let mut random = Random::new(seed);
    let mut config = engine_config(&mut random);
    let partitions = random.between(1, 3) as usize;
    let records = random.between(5, 120) as usize;
    let source = market::source_log(&mut random, partitions, records);
    config.topics = Topics::new("");
    let expected: Vec<Outputs> = source.iter().map(|log| sequential::run(&config.stages, log)).collect();
    let devices = Arc::new(SimulatedDevices::new(random.clone()));
    config.devices = devices.clone();
    let mut world = World::new(random, config, source, plant);
    world.start_process()?;
    for _ in 0..TURBULENT_EVENTS {
        world.turbulent_event()?;
    }
    world.heal(&devices)?;
    world.check(&expected)?;
    world.check_risk()?;
    world.count_from_journal();
    for outputs in &expected {
        world.coverage.signals += outputs.signals.len();
        world.coverage.late += outputs.late.len();
        world.coverage.dead += outputs.dead.len();
    }
    Ok(world.coverage)
}

/// A configuration whose limits are met all the time.
fn engine_config(random: &mut Random) -> EngineConfig {
    let lanes = random.between(1, 8) as i32;
    let has_devices = random.one_in(2);
    let high_water_rows = random.between(1, 200);
    let lane_credit_rows = random.between(1, 300);
    EngineConfig {
        node: "node-0".to_owned(),
        ordinal: 0,
        group: "simulation".to_owned(),
        topics: Topics::new(""),
        stages: market::stage_config(random),
        scheduler: SchedulerConfig {
            placement_policy: match random.one_in(2) {
                true => "rendezvous".to_owned(),
                false => in_steps("rendezvous", random.between(1, 10_000)),
            },
            placement_seed: random.between(0, i64::from(i32::MAX)),
            load_factor_percent: random.between(100, 300) as i32,
            lane_credit_rows,
            lane_credit_bytes: random.between(64, 10_000),
            lane_batches_max: random.between(1, 4) as i32,
            batch_rows_max: random.between(1, lane_credit_rows.min(60)),
            row_deadline_ns: random.between(1, 5_000_000),
            high_water_rows,
            low_water_rows: random.between(0, high_water_rows - 1),
            route_interval_ns: random.between(0, 2) * random.between(1, 20_000_000),
            risk: RiskConfig {
                slice_ns: random.between(1, 1_000_000),
                split: [SplitPolicy::Dynamic, SplitPolicy::Equal, SplitPolicy::Score][random.index(3)],
                quantum_ns: random.between(0, 1) * random.between(1, 5_000_000),
                ..RiskConfig::default()
            },
        },
        lanes: (0..lanes)
            .map(|lane| {
                let kind = if has_devices && random.one_in(2) { "cuda" } else { "cpu" };
                let device = format!("{kind}:{lane}");
                LaneSpec { lane, device, weight: random.between(0, 4) as i32 }
            })
            .collect(),
        isa: if random.one_in(2) { Isa::detect() } else { Isa::Baseline },
        commit_interval: std::time::Duration::ZERO,
        risk_commit_interval: std::time::Duration::ZERO,
        risk_cost_max_ns: i64::MAX,
        risk_result_bytes_max: i64::MAX,
        commit_bytes_max: if random.one_in(2) { usize::MAX } else { random.between(1, 20_000) as usize },
        snapshot_interval_records: random.between(1, 40),
        poll_records_max: random.between(1, 30) as usize,
        poll_bytes_max: usize::MAX,
        schemas: None,
        devices: Arc::new(NoDevices),
        device_deadline: std::time::Duration::MAX,
        kept_bytes_max: if random.one_in(3) { usize::MAX } else { random.between(0, 1_000) as usize },
        device_open_deadline: std::time::Duration::MAX,
        device_sample_interval: std::time::Duration::MAX,
        new_segment: false,
        lane_faults: Vec::new(),
    }
}

/// Where a partition is read.
#[derive(Default)]
struct Reading {
    next: usize,
    generation: u64,
    paused: bool,
}

/// Records on their way to the core.
struct Fetched {
    partition: i32,
    generation: u64,
    records: Vec<Record>,
}

/// What is committed.
#[derive(Default)]
struct Committed {
    records: BTreeMap<String, BTreeMap<i32, Vec<Vec<u8>>>>,
    offsets: BTreeMap<i32, i64>,
}

struct World {
    random: Random,
    config: EngineConfig,
    source: SourceLog,
    requests: Requests,
    plant: Plant,
    now_ns: i64,
    core: Core,
    lanes: Vec<Option<SimulatedLane>>,
    reading: Vec<Option<Reading>>,
    /// Records that were read and are not delivered yet, as in the source thread's channel.
    fetched: VecDeque<Fetched>,
    /// Restores that the shell has not come to yet.
    restores: VecDeque<(i32, i64)>,
    /// Requests that are being made tasks, and rounds that are being concluded, beside the core.
    preparing: VecDeque<Preparation>,
    concluding: VecDeque<Conclusion>,
    /// By partition, the offset before which the ticks were delivered, to this process or to those before it.
    delivered: Vec<i64>,
    in_flight: Option<CommitRequest>,
    stopping: bool,
    committed: Committed,
    coverage: Coverage,
}

impl World {
    fn new(mut random: Random, config: EngineConfig, source: SourceLog, plant: Plant) -> Self {
        let core = Core::new(config.clone(), None).expect("a new journal can be begun");
        Self {
            lanes: config.lanes.iter().map(|_| Some(SimulatedLane::default())).collect(),
            reading: source.iter().map(|_| None).collect(),
            requests: Requests::new(&mut random, source.len()),
            random,
            config,
            source,
            plant,
            now_ns: 1,
            core,
            fetched: VecDeque::new(),
            restores: VecDeque::new(),
            preparing: VecDeque::new(),
            concluding: VecDeque::new(),
            delivered: Vec::new(),
            in_flight: None,
            stopping: false,
            committed: Committed::default(),
            coverage: Coverage::default(),
        }
    }

    /// A process begins where the committed state ends.
    fn start_process(&mut self) -> Result<(), Failure> {
        let last = self.topic("journal", 0).last();
        let last = last.map(|record| decode_journal_entry(record).expect("entries are written whole"));
        self.core = Core::new(self.config.clone(), last.as_ref())?;
        self.lanes = self.config.lanes.iter().map(|_| Some(SimulatedLane::default())).collect();
        self.reading = self.source.iter().map(|_| None).collect();
        self.in_flight = None;
        self.fetched.clear();
        self.restores.clear();
        self.preparing.clear();
        self.concluding.clear();
        self.requests.restart();
        let committed = |partition: i32| self.committed.offsets.get(&partition).copied().unwrap_or(0);
        self.delivered = (0..self.source.len() as i32).map(committed).collect();
        self.core.begin(self.now_ns)?;
        if self.stopping {
            self.stop()?;
        }
        for partition in 0..self.source.len() as i32 {
            let committed = self.committed.offsets.get(&partition).copied().unwrap_or(0);
            self.restore(partition, committed)?;
            match self.random.one_in(2) {
                true => self.open_requests(partition),
                false => self.requests.await_ticks(partition),
            }
        }
        self.obey()
    }

    fn restore(&mut self, partition: i32, sealed_offset: i64) -> Result<(), Failure> {
        let parts = self.topic("snapshots", partition).iter();
        let parts = parts.map(|record| decode_snapshot(record).expect("snapshots are written whole"));
        let parts = parts.map(|part| (SnapshotPlace::default(), part));
        let restored = restore_from(parts.collect(), sealed_offset, &self.config.stages, self.config.isa);
        self.coverage.snapshots_used += usize::from(restored.offset > 0);
        self.coverage.tails_replayed += usize::from(restored.offset < sealed_offset);
        self.core.on_restored(self.now_ns, partition, restored, sealed_offset).map_err(Failure::from)
    }

    /// Carries out what the core commanded.
    fn obey(&mut self) -> Result<(), Failure> {
        loop {
            let commands = self.core.take_commands();
            if commands.is_empty() {
                return Ok(());
            }
            for command in commands {
                match command {
                    Command::Lane(lane, command) => {
                        if let Some(lane) = &mut self.lanes[lane as usize] {
                            lane.commands.push_back(command);
                        }
                    }
                    Command::Slice(lane, slice) => {
                        if let Some(lane) = &mut self.lanes[lane as usize] {
                            lane.slices.push_back(slice);
                        }
                    }
                    Command::Pause(partition) => self.set_paused(partition, true),
                    Command::Resume(partition) => self.set_paused(partition, false),
                    Command::Seek { partition, offset, generation } => {
                        let committed = self.committed.offsets.get(&partition).copied().unwrap_or(0);
                        let next =
                            if self.plant == Plant::TailSkipped { committed.max(offset) } else { offset };
                        let next = next as usize;
                        self.reading[partition as usize] = Some(Reading { next, generation, paused: false });
                    }
                    Command::Restore { partition, sealed_offset } => {
                        self.reading[partition as usize] = None;
                        self.restores.push_back((partition, sealed_offset));
                    }
                    Command::ReadRequests { partition, offset, generation } => {
                        self.requests.seek(partition, offset, generation);
                    }
                    Command::ForgetRequests { partition } => self.requests.forget(partition),
                    Command::Prepare(preparation) => self.begin_to_prepare(preparation),
                    Command::Conclude(conclusion) => self.concluding.push_back(conclusion),
                    Command::Lifecycle(..) => {}
                }
            }
        }
    }

    fn set_paused(&mut self, partition: i32, paused: bool) {
        if let Some(reading) = &mut self.reading[partition as usize] {
            reading.paused = paused;
            self.coverage.pauses += usize::from(paused);
        }
    }

    fn turbulent_event(&mut self) -> Result<(), Failure> {
        if self.random.one_in(60) {
            let lane = self.random.index(self.lanes.len());
            self.coverage.faults_while_stopping += usize::from(self.stopping);
            self.lose_lane(lane)?;
        } else if self.random.one_in(120) {
            // A crash; what was being committed may have come through or not.
            self.coverage.crashes += 1;
            self.coverage.faults_while_stopping += usize::from(self.stopping);
            self.coverage.commits_cut += usize::from(self.in_flight.is_some());
            if self.random.one_in(2) {
                self.finish_commit();
            }
            self.start_process()?;
        } else {
            self.event()?;
        }
        self.obey()
    }

    /// An event of a process that works.
    fn event(&mut self) -> Result<(), Failure> {
        self.now_ns += self.random.between(0, 2_000_000);
        match self.random.index(15) {
            14 => self.conclude()?,
            13 => self.prepare()?,
            12 => self.requests.read(&mut self.random),
            11 => self.deliver_requests()?,
            10 => self.measure()?,
            8 => self.deliver()?,
            9 => {
                if let Some((partition, sealed_offset)) = self.restores.pop_front() {
                    self.restore(partition, sealed_offset)?;
                }
            }
            0 => self.read(),
            1 => self.deliver()?,
            2 | 3 => self.work()?,
            4 | 5 => self.report()?,
            6 => self.begin_commit()?,
            _ => self.finish_commit(),
        }
        self.core.on_time(self.now_ns)?;
        self.obey()
    }

    /// Some records of a partition are read.
    fn read(&mut self) {
        let partition = self.random.index(self.source.len());
        let Some(reading) = &mut self.reading[partition] else { return };
        let left = self.source[partition].len() - reading.next;
        if reading.paused || left == 0 {
            return;
        }
        let count = left.min(1 + self.random.index(self.config.poll_records_max));
        let range = reading.next..reading.next + count;
        reading.next += count;
        let record = |offset: usize| Record {
            offset: offset as i64,
            key: None,
            headers: Vec::new(),
            timestamp_ns: market::written_ns(&self.source[partition][offset]),
            value: self.source[partition][offset].clone(),
        };
        let (generation, records) = (reading.generation, range.map(record).collect());
        self.fetched.push_back(Fetched { partition: partition as i32, generation, records });
    }

    /// What was read first reaches the core.
    fn deliver(&mut self) -> Result<(), Failure> {
        let Some(Fetched { partition, generation, records }) = self.fetched.pop_front() else {
            return Ok(());
        };
        let current = self.reading[partition as usize].as_ref().map(|reading| reading.generation);
        if current != Some(generation) {
            self.coverage.stale_fetches += 1;
        } else if let Some(last) = records.last() {
            let delivered = &mut self.delivered[partition as usize];
            *delivered = (*delivered).max(last.offset + 1);
        }
        self.core.on_records(self.now_ns, partition, generation, &records, self.now_ns)?;
        Ok(())
    }

    /// A lane obeys a command, or fails.
    fn work(&mut self) -> Result<(), Failure> {
        let index = self.random.index(self.lanes.len());
        let Some(lane) = &mut self.lanes[index] else { return Ok(()) };
        if !lane.slices.is_empty() && (lane.commands.is_empty() || self.random.one_in(2)) {
            let revalued = self.core.positions_revalued();
            if lane.open(&self.config, index).is_err() {
                self.coverage.device_faults += 1;
                return self.lose_lane(index);
            }
            match lane.run_slice(self.config.isa) {
                Ok(by_device) => self.coverage.device_slices += usize::from(by_device),
                Err(_) => {
                    self.coverage.background_faults += 1;
                    return self.lose_lane(index);
                }
            }
            let revalued = self.core.positions_revalued() - revalued;
            self.coverage.portfolios_followed += usize::from((1..POSITIONS as u64).contains(&revalued));
            return Ok(());
        }
        let Some(mut command) = lane.commands.pop_front() else { return Ok(()) };
        if self.plant == Plant::RowsSwapped {
            swap_prices(&mut command);
        }
        self.coverage.device_commands += usize::from(self.config.is_on_device(index as LaneId));
        match lane.obey(command, &self.config, index) {
            Ok(met) => {
                self.coverage.batches_beside += usize::from(met.batch);
                self.coverage.slices_passed += usize::from(met.slice);
                Ok(())
            }
            Err(_) => {
                self.coverage.device_faults += 1;
                self.lose_lane(index)
            }
        }
    }

    /// The core learns of a finished batch.
    fn report(&mut self) -> Result<(), Failure> {
        let index = self.random.index(self.lanes.len());
        let Some(lane_state) = &mut self.lanes[index] else { return Ok(()) };
        let (now_ns, lane) = (self.now_ns, index as LaneId);
        match lane_state.results.pop_front() {
            None => Ok(()),
            Some(SimulatedResult::Lane(LaneResult::Batch { batch, parts })) => {
                let service_ns = self.random.between(1, 1_000_000);
                self.core.on_completed(now_ns, lane, batch, service_ns, parts, None)
            }
            Some(SimulatedResult::Lane(LaneResult::Released { group, epoch, stage })) => {
                self.core.on_released(now_ns, lane, group, epoch, stage)
            }
            Some(SimulatedResult::Slice { slice, partial }) => {
                let service_ns = self.random.between(1, 1_000_000);
                self.core.on_slice_done(now_ns, lane, slice, service_ns, partial)
            }
        }
        .map_err(Failure::from)
    }

    /// A lane is measured: slow to begin with, or slow for each row.
    fn measure(&mut self) -> Result<(), Failure> {
        let lane = self.random.index(self.lanes.len());
        if self.lanes[lane].is_none() || !self.config.routes() {
            return Ok(());
        }
        let (base_ns, row_ns) = (self.random.between(1, 100_000), self.random.between(1, 10_000));
        let points = [1, 16, 256].map(|rows| ServicePoint { rows, service_ns: base_ns + rows * row_ns });
        self.core.on_measured(self.now_ns, lane as LaneId, points.into()).map_err(Failure::from)
    }

    /// A lane fails, with all that it has; mostly a new worker takes its place.
    fn lose_lane(&mut self, index: usize) -> Result<(), Failure> {
        let others = self.lanes.iter().enumerate().any(|(other, lane)| other != index && lane.is_some());
        let restarted = !others || !self.random.one_in(4);
        let was_there = self.lanes[index].is_some();
        self.lanes[index] = restarted.then(SimulatedLane::default);
        if !was_there {
            self.lanes[index] = None;
            return Ok(());
        }
        self.coverage.lanes_lost += 1;
        self.core
            .on_lane_lost(self.now_ns, index as i32, "simulated".to_owned(), restarted)
            .map_err(Failure::from)
    }

    fn begin_commit(&mut self) -> Result<(), Failure> {
        if self.in_flight.is_none() && self.core.has_uncommitted() {
            let mut request = self.core.seal(self.now_ns).map_err(Failure::from)?;
            self.coverage.results_left += usize::from(self.core.has_risk_results());
            if self.plant == Plant::OffsetsFirst {
                for (partition, offset) in request.offsets.drain(..) {
                    self.commit_offset(&partition, offset);
                }
            }
            self.in_flight = Some(request);
        }
        Ok(())
    }

    fn finish_commit(&mut self) {
        let Some(request) = self.in_flight.take() else { return };
        for record in request.records(&self.config.topics, &self.config.node, self.config.ordinal) {
            let topic = self.committed.records.entry(record.topic.into_owned()).or_default();
            topic.entry(record.partition).or_default().push(record.value.into_owned());
        }
        for (partition, offset) in request.offsets {
            self.commit_offset(&partition, offset);
        }
    }

    fn commit_offset(&mut self, partition: &TopicPartition, offset: i64) {
        let offsets = match partition.topic == self.config.topics.risk_requests {
            true => &mut self.requests.offsets,
            false => &mut self.committed.offsets,
        };
        offsets.insert(partition.partition, offset);
    }

    fn stop(&mut self) -> Result<(), Failure> {
        let ends = (0_i32..).zip(&self.source).map(|(partition, log)| (partition, log.len() as i64));
        let stop = Stop::At { ticks: ends.collect(), requests: self.requests.ends() };
        self.core.on_stop(self.now_ns, stop)?;
        Ok(())
    }

    /// Everything is read, drained and committed; the last faults come while that begins.
    fn heal(&mut self, devices: &SimulatedDevices) -> Result<(), Failure> {
        self.stopping = true;
        self.stop()?;
        self.obey()?;
        for _ in 0..STOPPING_EVENTS {
            self.turbulent_event()?;
        }
        devices.heal();
        for _ in 0..HEALING_EVENTS_MAX {
            if self.core.is_drained() && self.in_flight.is_none() && !self.core.has_uncommitted() {
                return Ok(());
            }
            self.event()?;
        }
        Err(Failure::Engine(format!("not drained after {HEALING_EVENTS_MAX} events without faults")))
    }

    fn topic(&self, topic: &str, partition: i32) -> &[Vec<u8>] {
        self.committed.records.get(topic).and_then(|topic| topic.get(&partition)).map_or(&[], Vec::as_slice)
    }
}

/// Swaps the prices of the first two trades of each group in the next batch: as if they had come the other way round.
fn swap_prices(command: &mut LaneCommand) {
    let LaneCommand::Run(batch) = command else { return };
    for part in &mut batch.parts {
        let rows = Arc::make_mut(&mut part.input.rows);
        let trades: Vec<usize> = (0..rows.len()).filter(|&row| rows.kind[row].is_trade()).take(2).collect();
        if let [first, second] = trades[..] {
            rows.price_e9.swap(first, second);
        }
    }
}
