//! The engine's core under a simulated shell. The simulation has processes of a group, slow, hanging and failing lanes,
//! and crashes. Commits are in flight, aborted or of unknown outcome, and partitions change owners.
//!
//! One seed determines everything: the market, the configuration, and the order of events. After a number of turbulent
//! events, the first process is asked to stop at the end of the log, and the others to end. Faults continue for a
//! while. Then a healing phase without faults drains the log. Finally, the committed topics are compared byte for byte
//! with the plain sequential run, and every journal entry is stepped again.

mod check;
mod commits;
mod committing;
mod control;
mod group;
mod holding;
mod lane;
mod modelled;
mod process;
mod risk;
mod snapshots;
mod source;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use warptape_emulator::Emulator;
use warptape_engine::{AcceptedLoss, Config, CoreError, LaneCommand, Limits, RecordError, Times};
use warptape_eventlog::TopicPartition;
use warptape_kernels::Isa;
use warptape_kernels::device::NoDevices;
use warptape_network::Network;
use warptape_pipeline::runtime::{ConfiguredLanes, EngineConfig, Topics};
use warptape_scheduler::{PLACEMENT_POLICIES, TASK_POLICIES, current_task_policy, dqn, in_steps};
use warptape_schemas::journal::{
    AutoscaleConfig, AutoscalePolicy, BreakerConfig, LaneSpec, QueueConfig, RiskConfig, SchedulerConfig,
    ShadowConfig, SplitPolicy, StateBytes, Trained,
};

use crate::coverage::Coverage;
use crate::devices::SimulatedDevices;
use crate::market::{self, SourceLog};
use crate::random::Random;
use crate::sequential::{self, Outputs};
use control::Controls;
use group::Group;
use holding::Journals;
use process::Process;
use risk::Requests;
use snapshots::SnapshotTopic;

/// Number of turbulent events before the stop.
const TURBULENT_EVENTS: usize = 3_000;
/// Number of events with faults after the stop.
const STOPPING_EVENTS: usize = 150;
/// Interval between seeds that are checked in full: their journals are modelled, and their histories are built and
/// drawn. The full check takes almost as long as the run itself.
const FULL_CHECK_EVERY: u64 = 10;
/// Greatest number of events of a healing phase.
const HEALING_EVENTS_MAX: usize = 200_000;
/// Greatest number of processes of a group.
const PROCESSES_MAX: i32 = 3;
/// Time without scheduling after which a process has missed all deadlines, in nanoseconds.
const HELD_UP_NS: i64 = 11_000_000_000;

/// A fault planted in the shell, to show that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// No fault.
    Nothing,
    /// Source offsets are committed in an earlier transaction than the outputs, and are trusted.
    OffsetsFirst,
    /// A process that takes a partition trusts the group's committed offset.
    OffsetsBelieved,
    /// A lane swaps two trades of a group.
    RowsSwapped,
    /// A restored partition is read from its committed offset instead of its snapshot.
    TailSkipped,
    /// A starting process does not look up which risk requests were answered.
    AnswersForgotten,
    /// The core gets a partition's old position although its ticks have not been read again.
    MarketBehind,
    /// A process still commits for a partition that already has another owner.
    DoubleOwner,
    /// A transaction of unknown outcome is sent again although it was committed.
    DoubleCommit,
    /// A snapshot written in several transactions overwrites the keys of the previous one.
    OnePlace,
}

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Outputs or offsets differ from the sequential run.
    Outputs(String),
    /// The journal cannot be replayed.
    Journal(String),
    /// The engine gave up or did not finish.
    Engine(String),
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::Engine(error.to_string())
    }
}

impl From<CoreError> for Failure {
    fn from(error: CoreError) -> Self {
        Self::Engine(error.to_string())
    }
}

/// A network that works with any number of lanes.
const NETWORK: &[u8] = include_bytes!("../fixtures/networks/improved.network");

/// Runs the simulation of a seed, and checks it.
pub fn simulate(seed: u64, plant: Plant) -> Result<Coverage, Failure> {
    let mut random = Random::new(seed);
    let mut config = engine_config(&mut random);
    draw_beside(&mut random, &mut config.core);
    let partitions = random.between(1, 3) as usize;
    let records = random.between(5, 120) as usize;
    let source = market::source_log(&mut random, partitions, records);
    config.core.topics = Topics::new("");
    let expected: Vec<Outputs> = source.iter().map(|log| sequential::run(&config.core.stages, log)).collect();
    let mut simulation = Simulation::new(random, config, source, plant)?;
    simulation.world.tells_histories = seed.is_multiple_of(FULL_CHECK_EVERY);
    simulation.run()?;
    let mut world = simulation.world;
    world.check(&expected)?;
    world.check_risk()?;
    world.check_controls()?;
    if seed.is_multiple_of(FULL_CHECK_EVERY) {
        world.check_models(seed)?;
    }
    for outputs in &expected {
        world.coverage.signals += outputs.signals.len();
        world.coverage.late += outputs.late.len();
        world.coverage.dead += outputs.dead.len();
    }
    Ok(world.coverage)
}

/// Draws a configuration whose limits are reached all the time.
fn engine_config(random: &mut Random) -> EngineConfig {
    let high_water_rows = random.between(1, 200);
    let lane_credit_rows = random.between(1, 300);
    let mut config = EngineConfig {
        core: Config {
            node: "node-0".to_owned(),
            group: "simulation".to_owned(),
            topics: Topics::new(""),
            stages: market::stage_config(random),
            scheduler: SchedulerConfig {
                placement_policy: {
                    let name = PLACEMENT_POLICIES[random.index(PLACEMENT_POLICIES.len())];
                    match random.one_in(2) {
                        true => name.to_owned(),
                        false => in_steps(name, random.between(1, 10_000)),
                    }
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
                balance_interval_ns: random.between(0, 2) * random.between(1, 20_000_000),
                risk: RiskConfig {
                    slice_ns: random.between(1, 1_000_000),
                    split: [SplitPolicy::Dynamic, SplitPolicy::Equal, SplitPolicy::Score][random.index(3)],
                    quantum_ns: random.between(0, 1) * random.between(1, 5_000_000),
                    policy: match random.one_in(2) {
                        true => String::new(),
                        false => current_task_policy(TASK_POLICIES[random.index(TASK_POLICIES.len())]),
                    },
                    price_interval_ns: random.between(0, 1) * random.between(1, 5_000_000),
                    critical_percent: random.between(0, 1) as i32 * random.between(1, 100) as i32,
                    ageing_ns: random.between(0, 1) * random.between(1, 5_000_000),
                    predictor: random.between(0, 1) as i32,
                    explore_ppm: random.between(0, 20_000) as i32,
                    queues: QueueConfig {
                        delay_target_ns: random.between(0, 1) * random.between(1, 50_000_000),
                        delay_interval_ns: random.between(1, 50_000_000),
                        ..QueueConfig::default()
                    },
                    steals: random.one_in(2),
                    ..RiskConfig::default()
                },
                breakers: random.one_in(2).then(|| breakers(random)),
            },
            autoscale: None,
            shadow: None,
            networks: Vec::new(),
            lanes: lanes(random),
            limits: Limits {
                kept_bytes_max: if random.one_in(3) { usize::MAX } else { random.between(0, 1_000) as usize },
                commit_bytes_max: if random.one_in(2) {
                    usize::MAX
                } else {
                    random.between(1, 20_000) as usize
                },
                risk_result_bytes_max: i64::MAX,
                risk_cost_max_ns: i64::MAX,
                snapshot_interval_records: random.between(1, 40),
            },
            times: Times {
                commit_interval_ns: random.between(0, 30_000_000),
                // The interval is from 64 milliseconds, which gives some dozens of checkpoints, to about eight seconds.
                checkpoint_interval_ns: 64_000_000 << random.between(0, 7),
                risk_commit_interval_ns: 0,
                device_deadline_ns: 30_000_000,
                device_open_deadline_ns: 60_000_000,
                evict_idle_ns: None,
                idle_close_ns: None,
            },
            new_segment: false,
            accepted_loss: AcceptedLoss::None,
            closes_bars: false,
        },
        ordinal: 0,
        isa: if random.one_in(2) { Isa::detect() } else { Isa::Baseline },
        poll_records_max: random.between(1, 30) as usize,
        poll_bytes_max: usize::MAX,
        schemas: None,
        devices: Arc::new(NoDevices),
        device_sample_interval: Duration::MAX,
        lanes: Arc::new(ConfiguredLanes),
        anchoring: None,
        traces: None,
    };
    // In half of the worlds, symbols are evicted as soon as they can have no open bar.
    let times = &mut config.core.times;
    times.evict_idle_ns = (times.commit_interval_ns % 2 == 0).then_some(0);
    config
}

/// Draws further settings of a starting process: networks, shadow policies, and the wanted number of lanes.
fn draw_beside(random: &mut Random, core: &mut Config) {
    let network = Network::from_bytes(NETWORK).expect("a network");
    let policy = dqn::name(&network.hash());
    if random.one_in(3) {
        core.networks.push(Trained { hash: network.hash(), network: StateBytes(NETWORK.to_vec()) });
    }
    // A policy may name the network even if the process does not have it.
    if random.one_in(6) {
        core.scheduler.risk.policy.clone_from(&policy);
    }
    if random.one_in(3) {
        let policies = vec!["earliest-deadline".to_owned(), "two-choices".to_owned(), policy];
        core.shadow = Some(ShadowConfig { policies, every: random.between(1, 4) as i32 });
    }
    if random.one_in(3) {
        core.autoscale = Some(AutoscaleConfig {
            policy: [AutoscalePolicy::Reactive, AutoscalePolicy::Predictive][random.index(2)],
            window_ns: 1_000_000_000,
            utilization_percent: random.between(1, 100) as i32,
            hysteresis_percent: 0,
            hold_windows: random.between(0, 2) as i32,
            clear_ns: 1_000_000_000,
            ..AutoscaleConfig::default()
        });
    }
}

/// Draws lanes on the processor and on devices; some devices have several lanes.
fn lanes(random: &mut Random) -> Vec<LaneSpec> {
    let count = random.between(1, 8) as i32;
    let has_devices = random.one_in(2);
    let (mut devices, mut lanes_of_last) = (0, 0);
    let mut lane = |lane: i32| {
        let device = if has_devices && random.one_in(2) {
            if devices == 0 || random.one_in(3) {
                (devices, lanes_of_last) = (devices + 1, 0);
            }
            lanes_of_last += 1;
            format!("cuda:{}#{}", devices - 1, lanes_of_last - 1)
        } else {
            format!("cpu:{lane}")
        };
        let width = if device.starts_with("cuda") { Emulator::WIDTH } else { 1 };
        LaneSpec { width, ..LaneSpec::new(lane, device, random.between(0, 4) as i32) }
    };
    (0..count).map(&mut lane).collect()
}

/// Committed topics and offsets, except snapshots.
#[derive(Default)]
struct Committed {
    records: BTreeMap<String, BTreeMap<i32, Vec<Vec<u8>>>>,
    offsets: BTreeMap<i32, i64>,
}

/// The phase of the run.
#[derive(Default)]
struct Phase {
    /// Number of turbulent events so far; the topics grow with this number.
    turbulent_events: usize,
    /// True if the first process was asked to stop at the end of the log.
    stopping: bool,
    /// True if there are no more faults and slow lanes.
    healing: bool,
}

/// State shared by all processes: the log, the group, and the seed's random numbers.
struct World {
    random: Random,
    config: EngineConfig,
    source: SourceLog,
    /// Offset of the oldest record still in the log, by partition.
    first: Vec<i64>,
    requests: Requests,
    plant: Plant,
    now_ns: i64,
    group: Group,
    controls: Controls,
    journals: Journals,
    /// The first impossible state met, if any: a lost state, or a journal and outputs that were committed together but
    /// disagree.
    impossible: Option<String>,
    devices: Arc<SimulatedDevices>,
    committed: Committed,
    snapshots: SnapshotTopic,
    phase: Phase,
    /// True if the histories of journals are also built and drawn.
    tells_histories: bool,
    coverage: Coverage,
}

impl World {
    fn topic(&self, topic: &str, partition: i32) -> &[Vec<u8>] {
        self.committed.records.get(topic).and_then(|topic| topic.get(&partition)).map_or(&[], Vec::as_slice)
    }

    /// Returns how many of a partition's `records` are published so far.
    fn published(&self, records: usize) -> usize {
        (records * self.phase.turbulent_events).div_ceil(TURBULENT_EVENTS).min(records)
    }

    fn committed_offset(&self, partition: i32) -> Option<i64> {
        self.committed.offsets.get(&partition).copied()
    }

    fn commit_offset(&mut self, partition: &TopicPartition, offset: i64) {
        let offsets = match partition.topic == self.config.core.topics.risk_requests {
            true => &mut self.requests.offsets,
            false => &mut self.committed.offsets,
        };
        offsets.insert(partition.partition, offset);
    }
}

struct Simulation {
    world: World,
    /// Processes by ordinal; `None` for a process that has ended permanently.
    processes: Vec<Option<Process>>,
}

impl Simulation {
    fn new(
        mut random: Random,
        config: EngineConfig,
        source: SourceLog,
        plant: Plant,
    ) -> Result<Self, Failure> {
        let count = random.between(1, i64::from(PROCESSES_MAX));
        let devices = Arc::new(SimulatedDevices::new(random.clone()));
        let mut world = World {
            requests: Requests::new(&mut random, source.len()),
            random,
            config,
            group: Group::new(source.len()),
            controls: Controls::default(),
            journals: Journals::default(),
            impossible: None,
            devices,
            first: vec![0; source.len()],
            source,
            plant,
            now_ns: 1,
            committed: Committed::default(),
            snapshots: SnapshotTopic::default(),
            phase: Phase::default(),
            tells_histories: true,
            coverage: Coverage::default(),
        };
        let processes = (0..count as i32).map(|ordinal| Process::start(ordinal, &mut world).map(Some));
        Ok(Self { processes: processes.collect::<Result<_, _>>()?, world })
    }

    /// Runs the turbulence, with a stop in it, and a healing phase until everything is committed.
    fn run(&mut self) -> Result<(), Failure> {
        for _ in 0..TURBULENT_EVENTS {
            self.world.phase.turbulent_events += 1;
            self.turbulent_event()?;
        }
        self.stop()?;
        for _ in 0..STOPPING_EVENTS {
            self.turbulent_event()?;
        }
        self.world.devices.heal();
        self.world.phase.healing = true;
        for _ in 0..HEALING_EVENTS_MAX {
            if self.is_done() {
                return Ok(());
            }
            self.event()?;
        }
        let processes: Vec<String> = self.processes.iter().flatten().map(Process::describe).collect();
        Err(Failure::Engine(format!(
            "not drained after {HEALING_EVENTS_MAX} events without faults: {processes:?}, {:?}",
            self.world.group
        )))
    }

    fn is_done(&self) -> bool {
        let mut processes = self.processes.iter().flatten();
        processes.next().is_some_and(|first| first.core.wants().is_none()) && processes.next().is_none()
    }

    /// Asks the first process to stop at the end of the log, and all others to end.
    fn stop(&mut self) -> Result<(), Failure> {
        self.world.phase.stopping = true;
        for process in self.processes[1..].iter_mut().flatten() {
            process.stop_now(&mut self.world, true)?;
        }
        // A process that is about to hand partitions over would stop without them. So a new life is started, which
        // stops at the end of all partitions.
        let first = self.processes[0].as_mut().expect("it stays");
        if first.around.source.stands_still || first.is_ending() {
            first.crash(&mut self.world);
            return self.restart(0);
        }
        first.stop_at_end(&mut self.world)
    }

    fn any_process(&mut self) -> usize {
        let there: Vec<usize> =
            (0..self.processes.len()).filter(|&index| self.processes[index].is_some()).collect();
        there[self.world.random.index(there.len())]
    }

    fn turbulent_event(&mut self) -> Result<(), Failure> {
        let index = self.any_process();
        let Self { world, processes } = self;
        let process = processes[index].as_mut().expect("it is there");
        world.coverage.faults_while_stopping += usize::from(world.phase.stopping);
        if world.random.one_in(250) {
            let lane = world.random.index(world.config.core.lanes.len());
            let lost = process.lose_lane(lane, world);
            self.survive(index, lost)
        } else if world.random.one_in(600) {
            process.crash(world);
            self.restart(index)
        } else if world.random.one_in(2_000) && !world.phase.stopping {
            self.rest()
        } else if world.random.one_in(200) {
            process.hang(world);
            Ok(())
        } else if world.random.one_in(400) {
            world.now_ns += HELD_UP_NS;
            Ok(())
        } else if world.random.one_in(600) && !world.phase.stopping {
            process.stop_now(world, false)
        } else if world.random.one_in(120) && !world.phase.stopping {
            let may_lose = world.random.one_in(2);
            self.rebalance(may_lose);
            Ok(())
        } else {
            world.coverage.faults_while_stopping -= usize::from(world.phase.stopping);
            self.event()
        }
    }

    /// Runs an event of a live process.
    fn event(&mut self) -> Result<(), Failure> {
        self.world.now_ns += self.world.random.between(0, 2_000_000);
        let index = self.any_process();
        self.assign();
        let process = self.processes[index].as_mut().expect("it is there");
        let result = process.event(&mut self.world);
        self.survive(index, result)?;
        let process = self.processes[index].as_mut().expect("it is there");
        if !process.has_ended(&mut self.world) {
            return Ok(());
        }
        let leaves = process.leaves;
        self.world.group.leave(index);
        match leaves {
            true => self.processes[index] = None,
            false => self.restart(index)?,
        }
        Ok(())
    }

    /// Restarts a process that gave up, as an operator would do.
    fn survive(&mut self, index: usize, result: Result<(), Failure>) -> Result<(), Failure> {
        let process = self.processes[index].as_mut().expect("it is there");
        if !std::mem::take(&mut process.gave_up) {
            return result;
        }
        self.world.coverage.gave_up += 1;
        process.crash(&mut self.world);
        self.restart(index)
    }

    /// Starts a process from the end of the committed state.
    fn restart(&mut self, index: usize) -> Result<(), Failure> {
        let leaves = self.processes[index].as_ref().is_some_and(|process| process.leaves);
        self.world.group.leave(index);
        let mut process = Process::start(index as i32, &mut self.world)?;
        if self.world.phase.stopping {
            match index {
                0 => process.stop_at_end(&mut self.world)?,
                _ => process.stop_now(&mut self.world, leaves)?,
            }
        }
        self.processes[index] = Some(process);
        Ok(())
    }
}

/// Swaps the prices of the first two trades of each group in the next batch, as if the trades had arrived in the other
/// order.
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

fn breakers(random: &mut Random) -> BreakerConfig {
    let probe_ns = random.between(1, 20_000_000);
    BreakerConfig {
        losses_max: random.between(0, 3) as i32,
        window_ns: random.between(1, 60_000_000_000),
        slow_percent: random.between(0, 400) as i32,
        slow_ns: random.between(0, 5_000_000),
        probe_ns,
        probe_ns_max: probe_ns * random.between(1, 8),
        probes: random.between(1, 4) as i32,
        headroom_c: random.between(0, 20) as i32,
        memory_free_percent: random.between(0, 50) as i32,
    }
}
