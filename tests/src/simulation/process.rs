//! One process: the core, and around it what the shell's threads do, one after the other, when the seed has it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warptape_engine::{
    Command, CommitRequest, Conclusion, Core, CoreError, Doing, Preparation, Restored, Stop,
};
use warptape_pipeline::engine::EngineConfig;
use warptape_schemas::journal::AskPrices;
use warptape_schemas::{LifecycleEvent, TickDecoder, decode_journal_entry};

use super::lane::SimulatedLane;
use super::risk::RequestReader;
use super::snapshots::{PageJob, Restore};
use super::source::SimulatedSource;
use super::{Failure, Plant, World};
use crate::random::Random;

pub(super) struct Process {
    pub(super) ordinal: i32,
    /// Next command to read; the committed one before the first.
    pub(super) control_next: Option<i64>,
    pub(super) config: EngineConfig,
    pub(super) core: Core,
    pub(super) lanes: Vec<Option<SimulatedLane>>,
    /// Devices that a lane of this process has broken.
    pub(super) broken_devices: BTreeSet<String>,
    pub(super) source: SimulatedSource,
    /// Restores that their thread has not begun.
    pub(super) restores: VecDeque<Restore>,
    /// States that are read and that the core has not taken, with the partition and the number.
    pub(super) restored: VecDeque<(i32, u64, Restored)>,
    /// Pages of symbols that left memory, to be read or found.
    pub(super) page_jobs: VecDeque<PageJob>,
    pub(super) requests: RequestReader,
    pub(super) background: BackgroundWork,
    /// By partition for which transactions may commit: the assignment.
    pub(super) fence: BTreeMap<i32, u64>,
    /// What is being committed, and since when.
    pub(super) in_flight: Option<(i64, Box<CommitRequest>)>,
    /// Rows waited when it was asked to end, if it was.
    ending: Option<bool>,
    /// It will not be started again.
    pub(super) leaves: bool,
    /// The core has ended with an error that a restart mends.
    pub(super) gave_up: bool,
}

/// What threads beside the core have to do.
#[derive(Default)]
pub(super) struct BackgroundWork {
    /// Requests that are being made tasks.
    pub(super) preparing: VecDeque<Preparation>,
    /// Numbers of those that nobody waits for any more.
    pub(super) abandoned: BTreeSet<u64>,
    /// Rounds that are being concluded.
    pub(super) concluding: VecDeque<Conclusion>,
    /// Questions for prices that are not answered.
    pub(super) pricing: VecDeque<AskPrices>,
}

impl Process {
    /// A process begins where the committed state ends.
    pub(super) fn start(ordinal: i32, world: &mut World) -> Result<Self, Failure> {
        let last = world.topic("journal", ordinal).last();
        let last = last.map(|record| decode_journal_entry(record).expect("entries are written whole"));
        let devices = world.devices.of_process();
        let mut config = EngineConfig { ordinal, devices, ..world.config.clone() };
        config.core.node = format!("node-{ordinal}");
        let decoder = TickDecoder::new()
            .with_prices(config.core.stages.numbers.prices())
            .with_units(config.core.stages.times.have_units())
            .by_rows(config.core.stages.rejects_rows());
        let positions = world.positions(ordinal);
        let core = Core::new(config.core.clone(), Box::new(decoder), last.as_ref(), positions)?;
        let mut process = Self {
            ordinal,
            control_next: None,
            core,
            lanes: config.core.lanes.iter().map(|_| None).collect(),
            config,
            broken_devices: BTreeSet::new(),
            source: SimulatedSource::new(world.source.len()),
            restores: VecDeque::new(),
            restored: VecDeque::new(),
            page_jobs: VecDeque::new(),
            requests: RequestReader::default(),
            background: BackgroundWork::default(),
            fence: BTreeMap::new(),
            in_flight: None,
            ending: None,
            leaves: false,
            gave_up: false,
        };
        process.core.begin(world.now_ns)?;
        process.obey(world)?;
        Ok(process)
    }

    /// What was being committed may have come through or not.
    pub(super) fn crash(&mut self, world: &mut World) {
        world.coverage.crashes += 1;
        let Some((_, request)) = self.in_flight.take() else { return };
        world.coverage.commits_cut += 1;
        if world.random.one_in(2) && self.is_allowed(&request, world) {
            self.write(*request, world);
        }
    }

    pub(super) fn stop_at_end(&mut self, world: &mut World) -> Result<(), Failure> {
        let ends = (0_i32..).zip(&world.source).map(|(partition, log)| (partition, log.len() as i64));
        let stop = Stop::At { ticks: ends.collect(), requests: world.requests.ends() };
        self.core.on_stop(world.now_ns, stop)?;
        self.obey(world)
    }

    /// The process is to end with what it has accepted.
    pub(super) fn stop_now(&mut self, world: &mut World, leaves: bool) -> Result<(), Failure> {
        self.leaves |= leaves;
        if self.ending.is_some() {
            return Ok(());
        }
        self.ending = Some(self.core.waiting_rows() > 0);
        self.core.on_stop(world.now_ns, Stop::Now)?;
        self.obey(world)
    }

    /// Where it stands, for the report of a seed that does not end.
    pub(super) fn describe(&self) -> String {
        format!(
            "process {}: {} rows wait, has to commit {}, commits {}, stands still {}, ends {:?}, {} restores, {} source events, \
             lanes {:?}, reads {:?}, {} tasks",
            self.ordinal,
            self.core.waiting_rows(),
            self.core.has_uncommitted(),
            self.in_flight.is_some(),
            self.source.stands_still,
            self.ending,
            self.restores.len() + self.restored.len(),
            self.source.events_waiting(),
            self.lanes.iter().map(Option::is_some).collect::<Vec<_>>(),
            self.source
                .reading
                .iter()
                .map(|(partition, reading)| (partition, reading.next))
                .collect::<Vec<_>>(),
            self.core.risk_tasks(),
        )
    }

    /// Whether it was asked to end with what it has accepted.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Whether it has ended as it was asked to.
    pub(super) fn has_ended(&self, world: &mut World) -> bool {
        let Some(had_backlog) = self.ending else { return false };
        let has_ended = self.core.is_done();
        world.coverage.drains += usize::from(has_ended && had_backlog);
        has_ended
    }

    /// What the core gave up for is mended by a restart, if an operator would see it so.
    pub(super) fn told(&mut self, result: Result<(), CoreError>) -> Result<(), Failure> {
        match result {
            Ok(()) => Ok(()),
            Err(CoreError::NoLanes { .. } | CoreError::CommitUnanswered { .. }) => {
                self.gave_up = true;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Carries out what the core commanded.
    pub(super) fn obey(&mut self, world: &mut World) -> Result<(), Failure> {
        loop {
            let commands = self.core.take_commands();
            if commands.is_empty() {
                return Ok(());
            }
            commands.into_iter().for_each(|command| self.obey_one(command, world));
        }
    }

    fn obey_one(&mut self, command: Command, world: &mut World) {
        match command {
            Command::StartLane { lane, life } => {
                world.coverage.lanes_restarted += usize::from(life > 0);
                self.lanes[lane as usize] = Some(SimulatedLane::new(life, &mut world.random));
            }
            Command::EndLane { lane, hangs } => {
                let ended = self.lanes[lane as usize].take().expect("a lane is ended once");
                world.coverage.lanes_lost += 1;
                match ended.hangs {
                    Some(Doing::Batch { .. }) => world.coverage.lanes_hung += usize::from(hangs),
                    Some(Doing::Other { .. }) => world.coverage.lanes_hung_opening += usize::from(hangs),
                    None => {}
                }
            }
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
            Command::Own { partition, assignment } => {
                self.fence.insert(partition, assignment);
            }
            Command::LetGo { partition } => {
                self.fence.remove(&partition);
                self.source.reading.remove(&partition);
                self.restores.retain(|restore| restore.partition != partition);
                let outlived = self.restored.iter().filter(|(restored, ..)| *restored == partition);
                world.coverage.restores_outlived += outlived.count();
            }
            Command::ReleaseSource => {
                self.source.stands_still = false;
                let process = self.ordinal as usize;
                let is_kept = |&&partition: &&i32| world.group.is_kept(process, partition);
                let open = self.fence.keys().find(|partition| !is_kept(partition));
                assert_eq!(
                    open, None,
                    "the fence is closed before the group hears that a partition is let go"
                );
                world.group.release(process);
            }
            Command::Pause(partition) => self.source.set_paused(partition, true, world),
            Command::Resume(partition) => self.source.set_paused(partition, false, world),
            Command::Seek { partition, offset, generation } => {
                let committed = world.committed_offset(partition).unwrap_or(0);
                let next = if world.plant == Plant::TailSkipped { committed.max(offset) } else { offset };
                self.source.seek(partition, next, generation);
            }
            Command::Restore { number, partition, sealed_offset, .. } => {
                self.source.reading.remove(&partition);
                self.restores.push_back(Restore { number, partition, sealed_offset });
            }
            Command::ReadPages { number, partition, pages } => {
                self.page_jobs.push_back(PageJob::Read { number, partition, pages });
            }
            Command::FindPages { partition, pages } => {
                self.page_jobs.push_back(PageJob::Find { partition, pages });
            }
            Command::OpenRequests { partition, assignment, committed } => {
                self.requests.open(partition, assignment, committed);
            }
            Command::ReadRequests { partition, offset, generation } => {
                self.requests.seek(partition, offset, generation);
            }
            Command::ForgetRequests { partition } => self.requests.forget(partition),
            Command::Prepare(preparation) => self.begin_to_prepare(preparation, world),
            Command::Abandon { number } => {
                self.background.abandoned.insert(number);
            }
            Command::Conclude(conclusion) => self.background.concluding.push_back(conclusion),
            Command::AskPrices(question) => self.background.pricing.push_back(question),
            Command::Commit(mut request) => {
                world.coverage.results_left += usize::from(self.core.has_risk_results());
                if world.plant == Plant::OffsetsFirst {
                    for (partition, offset) in request.offsets.drain(..) {
                        world.commit_offset(&partition, offset);
                    }
                }
                assert!(self.in_flight.is_none(), "one commit at a time is under way");
                self.in_flight = Some((world.now_ns, request));
            }
            Command::Lifecycle(LifecycleEvent::PartitionRevoked, detail) => {
                world.coverage.handed_over += usize::from(detail.ends_with(", committed"));
                world.coverage.handed_over_late += usize::from(detail.ends_with("not committed in time"));
            }
            Command::TicksRemoved { partition, first, .. } => {
                let found =
                    format!("partition {partition} has no state for the ticks removed before {first}");
                world.impossible.get_or_insert(found);
            }
            Command::Hurry | Command::NewSegment { .. } | Command::Breaker(_) | Command::Lifecycle(..) => {}
        }
    }

    /// An event of a process that works.
    pub(super) fn event(&mut self, world: &mut World) -> Result<(), Failure> {
        match world.random.index(17) {
            16 if world.random.one_in(4) => self.control(world)?,
            15 => self.sample(world)?,
            14 => self.conclude(world)?,
            13 => self.prepare(world)?,
            12 => self.requests.read(world),
            11 => self.deliver_requests(world)?,
            10 => self.measure(world)?,
            9 if !self.page_jobs.is_empty() && world.random.one_in(2) => self.do_page_job(world)?,
            9 => self.restore(world)?,
            0 => self.source.read(self.config.poll_records_max, world),
            1 | 8 => self.deliver(world)?,
            2 | 3 => self.work(world)?,
            4 | 5 => self.report(world)?,
            _ => self.finish_commit(world)?,
        }
        if self.gave_up {
            return Ok(());
        }
        let woken = self.core.on_wake(world.now_ns);
        self.told(woken)?;
        self.obey(world)?;
        if self.gave_up {
            return Ok(());
        }
        self.watch(world)?;
        self.obey(world)?;
        if self.gave_up {
            return Ok(());
        }
        let timed = self.core.on_time(world.now_ns);
        self.told(timed)?;
        self.obey(world)?;
        self.core.write_entries();
        Ok(())
    }
}

/// One of several, if there are any.
pub(super) fn any_of(several: Vec<usize>, random: &mut Random) -> Option<usize> {
    (!several.is_empty()).then(|| several[random.index(several.len())])
}
