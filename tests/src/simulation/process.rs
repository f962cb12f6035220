//! One process: the core, surrounded by the steps of the shell's threads. The steps happen one after another, when the
//! seed decides.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warptape_engine::{
    Command, CommitRequest, Conclusion, Core, CoreError, Doing, Event, Observer, Outside, Preparation,
    Restored, Stop, settle, tell,
};
use warptape_pipeline::runtime::EngineConfig;
use warptape_schemas::journal::{AskPrices, LaneId};
use warptape_schemas::{LifecycleEvent, TickDecoder, decode_journal_entry};

use super::lane::SimulatedLane;
use super::risk::RequestReader;
use super::snapshots::{PageJob, Restore};
use super::source::{MARKERS, SimulatedSource};
use super::{Failure, Plant, World};
use crate::random::Random;

pub(super) struct Process {
    pub(super) core: Core,
    pub(super) around: Around,
    /// True if rows waited when the process was asked to end; `None` if it was not asked.
    ending: Option<bool>,
    /// True if the process will not be started again.
    pub(super) leaves: bool,
    /// True if the core has ended with an error that a restart cures.
    pub(super) gave_up: bool,
}

/// The environment of a process's core.
pub(super) struct Around {
    pub(super) ordinal: i32,
    /// Offset of the next command to read; `None` before the first, which is at the committed offset.
    pub(super) control_next: Option<i64>,
    pub(super) config: EngineConfig,
    pub(super) lanes: Vec<Option<SimulatedLane>>,
    /// Names of the devices that lanes of this process have broken.
    pub(super) broken_devices: BTreeSet<String>,
    pub(super) source: SimulatedSource,
    /// Restores that their thread has not begun.
    pub(super) restores: VecDeque<Restore>,
    /// States that were read but not yet received by the core, with the partition and the number of the restore.
    pub(super) restored: VecDeque<(i32, u64, Restored)>,
    /// Pages of evicted symbols that must be read or found.
    pub(super) page_jobs: VecDeque<PageJob>,
    /// An owned partition whose pages are missing in the log; `None` if there is none.
    pub(super) pages_missing: Option<i32>,
    pub(super) requests: RequestReader,
    pub(super) background: BackgroundWork,
    /// Assignments for which transactions may commit, by partition.
    pub(super) fence: BTreeMap<i32, u64>,
    /// The running commit with its start time; `None` if no commit runs.
    pub(super) in_flight: Option<(i64, Box<CommitRequest>)>,
}

/// Work of the threads outside the core.
#[derive(Default)]
pub(super) struct BackgroundWork {
    /// Requests that are being turned into tasks.
    pub(super) preparing: VecDeque<Preparation>,
    /// Numbers of the abandoned requests.
    pub(super) abandoned: BTreeSet<u64>,
    /// Rounds that are being concluded.
    pub(super) concluding: VecDeque<Conclusion>,
    /// Requests for prices without an answer.
    pub(super) pricing: VecDeque<AskPrices>,
}

impl Process {
    /// Starts a process from the end of the committed state.
    pub(super) fn start(ordinal: i32, world: &mut World) -> Result<Self, Failure> {
        let last = world.topic("journal", ordinal).last();
        let last = last.map(|record| decode_journal_entry(record).expect("entries are written whole"));
        let devices = world.devices.of_process();
        let mut config = EngineConfig { ordinal, devices, ..world.config.clone() };
        config.core.node = format!("node-{ordinal}");
        let decoder = TickDecoder::new().by_rows(true);
        let positions = world.positions(ordinal);
        let core = Core::new(config.core.clone(), Box::new(decoder), last.as_ref(), positions)?;
        let around = Around {
            ordinal,
            control_next: None,
            lanes: config.core.lanes.iter().map(|_| None).collect(),
            config,
            broken_devices: BTreeSet::new(),
            source: SimulatedSource::new(world.source.len()),
            restores: VecDeque::new(),
            restored: VecDeque::new(),
            page_jobs: VecDeque::new(),
            pages_missing: None,
            requests: RequestReader::default(),
            background: BackgroundWork::default(),
            fence: BTreeMap::new(),
            in_flight: None,
        };
        let mut process = Self { core, around, ending: None, leaves: false, gave_up: false };
        process.tell(Event::Begun, world)?;
        Ok(process)
    }

    /// Crashes the process. A running commit may succeed or not.
    pub(super) fn crash(&mut self, world: &mut World) {
        world.coverage.crashes += 1;
        let Some((_, request)) = self.around.in_flight.take() else { return };
        world.coverage.commits_cut += 1;
        if world.random.one_in(2) && self.around.is_allowed(&request, world) {
            self.around.write(*request, world);
        }
    }

    pub(super) fn stop_at_end(&mut self, world: &mut World) -> Result<(), Failure> {
        let ends =
            (0_i32..).zip(&world.source).map(|(partition, log)| (partition, log.len() as i64 + MARKERS));
        let stop = Stop::At { ticks: ends.collect(), requests: world.requests.ends() };
        self.tell(Event::Stop(stop), world)
    }

    /// Asks the process to finish its accepted work and end.
    pub(super) fn stop_now(&mut self, world: &mut World, leaves: bool) -> Result<(), Failure> {
        self.leaves |= leaves;
        if self.ending.is_some() {
            return Ok(());
        }
        self.ending = Some(self.core.status().waiting_rows > 0);
        self.tell(Event::Stop(Stop::Now), world)
    }

    /// Describes the process's state, for the report of a seed that does not end.
    pub(super) fn describe(&self) -> String {
        let (status, around) = (self.core.status(), &self.around);
        format!(
            "process {}: {} rows wait, has to commit {}, commits {}, stands still {}, ends {:?}, {} restores, {} source events, \
             lanes {:?}, reads {:?}, {} tasks",
            around.ordinal,
            status.waiting_rows,
            status.has_uncommitted,
            around.in_flight.is_some(),
            around.source.stands_still,
            self.ending,
            around.restores.len() + around.restored.len(),
            around.source.events_waiting(),
            around.lanes.iter().map(Option::is_some).collect::<Vec<_>>(),
            around
                .source
                .reading
                .iter()
                .map(|(partition, reading)| (partition, reading.next))
                .collect::<Vec<_>>(),
            status.tasks,
        )
    }

    /// True if the process was asked to finish its accepted work and end.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// True if the process has ended as requested.
    pub(super) fn has_ended(&self, world: &mut World) -> bool {
        let Some(had_backlog) = self.ending else { return false };
        let has_ended = self.core.wants().is_none();
        world.coverage.drains += usize::from(has_ended && had_backlog);
        has_ended
    }

    /// Passes an event to the core, and executes the core's commands.
    pub(super) fn tell(&mut self, event: Event, world: &mut World) -> Result<(), Failure> {
        let told = tell(&mut self.core, &mut Driven { around: &mut self.around, world }, event);
        self.survive(told, world)
    }

    /// Lets the core do the work that is due.
    fn settle(&mut self, world: &mut World) -> Result<(), Failure> {
        let (doing, lost_before) = (self.around.doing(), world.coverage.lanes_lost);
        let settled = settle(&mut self.core, &mut Driven { around: &mut self.around, world });
        self.survive(settled, world)?;
        let was_held_up = self.around.is_any_overdue(&doing, world.now_ns);
        let was_held_up = was_held_up && world.coverage.lanes_lost == lost_before && !self.gave_up;
        world.coverage.held_up += usize::from(was_held_up);
        Ok(())
    }

    /// Handles an end of the core that a restart cures; returns other failures.
    fn survive(&mut self, result: Result<(), Ended>, world: &mut World) -> Result<(), Failure> {
        match result {
            Ok(()) => return Ok(()),
            Err(Ended::GaveUp) => self.gave_up = true,
            Err(Ended::Failed(failure)) => return Err(failure),
        }
        // As in the shell, hanging lanes are not awaited.
        while let Some(command) = self.core.poll() {
            if matches!(command, Command::EndLane { .. }) {
                self.around.execute(command, &self.core, world).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Runs a random event of a live process.
    pub(super) fn event(&mut self, world: &mut World) -> Result<(), Failure> {
        match world.random.index(17) {
            16 if world.random.one_in(4) => self.control(world)?,
            15 => self.sample(world)?,
            14 => self.conclude(world)?,
            13 => self.prepare(world)?,
            12 => self.around.requests.read(world),
            11 => self.deliver_requests(world)?,
            10 => self.measure(world)?,
            9 if !self.around.page_jobs.is_empty() && world.random.one_in(2) => self.do_page_job(world)?,
            9 => self.restore(world)?,
            0 => self.around.source.read(self.around.config.poll_records_max, world),
            1 | 8 => self.deliver(world)?,
            2 | 3 => self.work(world)?,
            4 | 5 => self.report(world)?,
            _ => self.finish_commit(world)?,
        }
        if self.gave_up {
            return Ok(());
        }
        self.settle(world)
    }
}

impl Around {
    fn execute(&mut self, command: Command, core: &Core, world: &mut World) -> Result<(), Ended> {
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
            Command::Slice { lane, slice, .. } => {
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
            Command::Prepare(preparation) => self.begin_to_prepare(preparation, core, world),
            Command::Abandon { number } => {
                self.background.abandoned.insert(number);
            }
            Command::Conclude(conclusion) => self.background.concluding.push_back(conclusion),
            Command::AskPrices(question) => self.background.pricing.push_back(question),
            Command::Commit(mut request) => {
                world.coverage.results_left += usize::from(core.status().has_risk_results);
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
            Command::GiveUp => {
                world.coverage.outages_given_up += 1;
                return Err(Ended::GaveUp);
            }
            Command::Accepted { partition, read_to, .. } => {
                self.source.accept(partition, read_to.min(world.source[partition as usize].len() as i64));
            }
            // If the partition was released since, another process may have processed it again.
            Command::PagesMissing { partition, .. } => {
                self.pages_missing = self.fence.contains_key(&partition).then_some(partition);
            }
            Command::TicksRemoved { partition, first, .. } => {
                let found =
                    format!("partition {partition} has no state for the ticks removed before {first}");
                world.impossible.get_or_insert(found);
            }
            Command::Hurry | Command::NewSegment { .. } | Command::Breaker(_) | Command::Lifecycle(..) => {}
        }
        Ok(())
    }
}

/// The environment of a core during a call.
struct Driven<'a> {
    around: &'a mut Around,
    world: &'a mut World,
}

/// The reason why the core ended.
enum Ended {
    /// The core has given up, and a restart cures that.
    GaveUp,
    Failed(Failure),
}

impl From<CoreError> for Ended {
    fn from(error: CoreError) -> Self {
        match error {
            CoreError::NoLanes { .. } | CoreError::CommitUnanswered { .. } => Self::GaveUp,
            error => Self::Failed(error.into()),
        }
    }
}

impl Outside for Driven<'_> {
    type Error = Ended;

    fn now_ns(&self) -> i64 {
        self.world.now_ns
    }

    fn observer(&mut self) -> impl Observer {
        &mut self.world.coverage
    }

    fn execute(&mut self, command: Command, core: &Core) -> Result<(), Ended> {
        self.around.execute(command, core, self.world)
    }

    /// Returns some finished results of lanes, which the shell also receives within a turn.
    fn lane_news(&mut self) -> Option<Event> {
        let news = if self.world.random.one_in(2) { self.around.lane_news(self.world) } else { None };
        self.world.coverage.news_in_turns += usize::from(news.is_some());
        news
    }

    fn doing(&mut self) -> Vec<(LaneId, Doing)> {
        self.around.doing()
    }

    fn read_requests(&mut self) -> Result<Option<Event>, Ended> {
        let read = if self.world.random.one_in(4) { self.around.requests.fetched() } else { None };
        self.world.coverage.requests_in_turns += usize::from(read.is_some());
        Ok(read)
    }

    fn prepared_request(&mut self) -> Option<Event> {
        let prepared = if self.world.random.one_in(4) { self.around.background.prepare() } else { None };
        self.world.coverage.prepared_in_turns += usize::from(prepared.is_some());
        prepared
    }
}

/// Returns one of several values at random; `None` if there are none.
pub(super) fn any_of(several: Vec<usize>, random: &mut Random) -> Option<usize> {
    (!several.is_empty()).then(|| several[random.index(several.len())])
}
