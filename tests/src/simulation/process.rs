//! One process: the core, and around it what the shell's threads do, one after the other, when the seed has it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warptape_engine::{
    AfterAbort, Assigned, Command, CommitAttempt, CommitRequest, Conclusion, Core, CoreError, Doing,
    LaneNews, Preparation, SnapshotPlace, Stop, restore_from,
};
use warptape_eventlog::Record;
use warptape_kernels::device::Sample;
use warptape_pipeline::engine::{EngineConfig, LaneResult, records_of};
use warptape_schemas::journal::{AskPrices, LaneId, ServicePoint};
use warptape_schemas::{LifecycleEvent, TickDecoder, decode_journal_entry, decode_snapshot};

use super::lane::{SimulatedLane, SimulatedResult};
use super::risk::{POSITIONS, RequestReader};
use super::{Failure, Plant, World, swap_prices};
use crate::market;
use crate::random::Random;

/// Where a partition is read.
pub(super) struct Reading {
    next: usize,
    pub(super) generation: u64,
    paused: bool,
}

/// What the source's thread has put into its channel.
pub(super) enum SourceEvent {
    Assigned(Vec<Assigned>),
    Revoked(Vec<i32>),
    Lost(Vec<i32>),
    Records { partition: i32, generation: u64, records: Vec<Record> },
}

pub(super) struct Process {
    pub(super) ordinal: i32,
    /// Next command to read; the committed one before the first.
    pub(super) control_next: Option<i64>,
    pub(super) config: EngineConfig,
    pub(super) core: Core,
    lanes: Vec<Option<SimulatedLane>>,
    pub(super) reading: BTreeMap<i32, Reading>,
    source_events: VecDeque<SourceEvent>,
    /// The source polls nothing until the core has let go of partitions.
    pub(super) stands_still: bool,
    /// Restores that the shell has not come to yet.
    restores: VecDeque<(i32, i64)>,
    pub(super) requests: RequestReader,
    /// Requests that are being made tasks, and rounds that are being concluded, beside the core.
    pub(super) preparing: VecDeque<Preparation>,
    pub(super) abandoned: BTreeSet<u64>,
    pub(super) concluding: VecDeque<Conclusion>,
    /// Questions for prices that are not answered.
    pub(super) pricing: VecDeque<AskPrices>,
    /// By partition, the offset before which the ticks were delivered, to this process or to those before it.
    pub(super) delivered: Vec<i64>,
    /// By partition for which transactions may commit: the assignment.
    fence: BTreeMap<i32, u64>,
    /// What is being committed, and since when.
    in_flight: Option<(i64, Box<CommitRequest>)>,
    /// Rows waited when it was asked to end, if it was.
    ending: Option<bool>,
    /// It will not be started again.
    pub(super) leaves: bool,
    /// The core has ended with an error that a restart mends.
    pub(super) gave_up: bool,
}

impl Process {
    /// A process begins where the committed state ends.
    pub(super) fn start(ordinal: i32, world: &mut World) -> Result<Self, Failure> {
        let last = world.topic("journal", ordinal).last();
        let last = last.map(|record| decode_journal_entry(record).expect("entries are written whole"));
        let mut config = EngineConfig { ordinal, ..world.config.clone() };
        config.core.node = format!("node-{ordinal}");
        let decoder = TickDecoder::new().with_prices(config.core.stages.numbers.prices());
        let core = Core::new(config.core.clone(), Box::new(decoder), last.as_ref())?;
        let mut process = Self {
            ordinal,
            control_next: None,
            core,
            lanes: config.core.lanes.iter().map(|_| None).collect(),
            config,
            reading: BTreeMap::new(),
            source_events: VecDeque::new(),
            stands_still: false,
            restores: VecDeque::new(),
            requests: RequestReader::default(),
            preparing: VecDeque::new(),
            abandoned: BTreeSet::new(),
            concluding: VecDeque::new(),
            pricing: VecDeque::new(),
            delivered: vec![0; world.source.len()],
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
            "process {}: {} rows wait, has to commit {}, commits {}, stands still {}, ends {:?}, restores {:?}, {} source events, \
             lanes {:?}, reads {:?}, {} tasks",
            self.ordinal,
            self.core.waiting_rows(),
            self.core.has_uncommitted(),
            self.in_flight.is_some(),
            self.stands_still,
            self.ending,
            self.restores,
            self.source_events.len(),
            self.lanes.iter().map(Option::is_some).collect::<Vec<_>>(),
            self.reading.iter().map(|(partition, reading)| (partition, reading.next)).collect::<Vec<_>>(),
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

    pub(super) fn hear(&mut self, event: SourceEvent) {
        self.source_events.push_back(event);
    }

    /// What the core gave up for is mended by a restart, if an operator would see it so.
    fn told(&mut self, result: Result<(), CoreError>) -> Result<(), Failure> {
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
                world.coverage.lanes_hung += usize::from(hangs && ended.hangs_since_ns.is_some());
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
                self.reading.remove(&partition);
                self.restores.retain(|&(restored, _)| restored != partition);
            }
            Command::ReleaseSource => {
                self.stands_still = false;
                let process = self.ordinal as usize;
                let is_kept = |&&partition: &&i32| world.group.is_kept(process, partition);
                let open = self.fence.keys().find(|partition| !is_kept(partition));
                assert_eq!(
                    open, None,
                    "the fence is closed before the group hears that a partition is let go"
                );
                world.group.release(process);
            }
            Command::Pause(partition) => self.set_paused(partition, true, world),
            Command::Resume(partition) => self.set_paused(partition, false, world),
            Command::Seek { partition, offset, generation } => {
                let committed = world.committed_offset(partition).unwrap_or(0);
                let next = if world.plant == Plant::TailSkipped { committed.max(offset) } else { offset };
                self.reading.insert(partition, Reading { next: next as usize, generation, paused: false });
            }
            Command::Restore { partition, sealed_offset, .. } => {
                self.reading.remove(&partition);
                self.restores.push_back((partition, sealed_offset));
            }
            Command::OpenRequests { partition, assignment } => self.requests.open(partition, assignment),
            Command::ReadRequests { partition, offset, generation } => {
                self.requests.seek(partition, offset, generation);
            }
            Command::ForgetRequests { partition } => self.requests.forget(partition),
            Command::Prepare(preparation) => self.begin_to_prepare(preparation, world),
            Command::Abandon { number } => {
                self.abandoned.insert(number);
            }
            Command::Conclude(conclusion) => self.concluding.push_back(conclusion),
            Command::AskPrices(question) => self.pricing.push_back(question),
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
            Command::Hurry | Command::NewSegment { .. } | Command::Breaker(_) | Command::Lifecycle(..) => {}
        }
    }

    fn set_paused(&mut self, partition: i32, paused: bool, world: &mut World) {
        if let Some(reading) = self.reading.get_mut(&partition) {
            reading.paused = paused;
            world.coverage.pauses += usize::from(paused);
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
            9 => self.restore(world)?,
            0 => self.read(world),
            1 | 8 => self.deliver(world)?,
            2 | 3 => self.work(world)?,
            4 | 5 => self.report(world)?,
            _ => self.finish_commit(world)?,
        }
        if self.gave_up {
            return Ok(());
        }
        self.watch(world)?;
        if self.gave_up {
            return Ok(());
        }
        let timed = self.core.on_time(world.now_ns);
        self.told(timed)?;
        self.obey(world)
    }

    fn restore(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some((partition, sealed_offset)) = self.restores.pop_front() else { return Ok(()) };
        let parts = world.topic("snapshots", partition).iter();
        let parts = parts.map(|record| decode_snapshot(record).expect("snapshots are written whole"));
        let parts = parts.map(|part| (SnapshotPlace::default(), part));
        let restored =
            restore_from(parts.collect(), sealed_offset, &self.config.core.stages, self.config.isa);
        world.coverage.snapshots_used += usize::from(restored.offset > 0);
        world.coverage.tails_replayed += usize::from(restored.offset < sealed_offset);
        Ok(self.core.on_restored(world.now_ns, partition, restored, sealed_offset)?)
    }

    /// Some records of a partition are read.
    fn read(&mut self, world: &mut World) {
        let left = |partition: i32, reading: &Reading| {
            world.published(world.source[partition as usize].len()).saturating_sub(reading.next)
        };
        let is_readable =
            |(partition, reading): &(&i32, &Reading)| !reading.paused && left(**partition, reading) > 0;
        let readable = self.reading.iter().filter(is_readable).map(|(&partition, _)| partition as usize);
        let readable: Vec<usize> = readable.collect();
        let Some(partition) = any_of(readable, &mut world.random).filter(|_| !self.stands_still) else {
            return;
        };
        let reading = self.reading.get_mut(&(partition as i32)).expect("it is read");
        let left = world.published(world.source[partition].len()) - reading.next;
        let count = left.min(1 + world.random.index(self.config.poll_records_max));
        let range = reading.next..reading.next + count;
        reading.next += count;
        let record = |offset: usize| Record {
            offset: offset as i64,
            key: None,
            headers: Vec::new(),
            timestamp_ns: market::written_ns(&world.source[partition][offset]),
            value: world.source[partition][offset].clone(),
        };
        let (generation, records) = (reading.generation, range.map(record).collect());
        self.hear(SourceEvent::Records { partition: partition as i32, generation, records });
    }

    /// What the source told first reaches the core.
    fn deliver(&mut self, world: &mut World) -> Result<(), Failure> {
        let now_ns = world.now_ns;
        match self.source_events.pop_front() {
            None => {}
            Some(SourceEvent::Assigned(partitions)) => {
                for assigned in &partitions {
                    self.delivered[assigned.partition as usize] = assigned.committed.unwrap_or(0);
                }
                self.core.on_assigned(now_ns, partitions)?;
            }
            Some(SourceEvent::Revoked(partitions)) => self.core.on_revoking(now_ns, partitions)?,
            Some(SourceEvent::Lost(partitions)) => self.core.on_lost(now_ns, &partitions)?,
            Some(SourceEvent::Records { partition, generation, records }) => {
                let current = self.reading.get(&partition).map(|reading| reading.generation);
                if current != Some(generation) {
                    world.coverage.stale_fetches += 1;
                } else if let Some(last) = records.last() {
                    let delivered = &mut self.delivered[partition as usize];
                    *delivered = (*delivered).max(last.offset + 1);
                }
                self.core.on_records(now_ns, partition, generation, &records, now_ns)?;
            }
        }
        Ok(())
    }

    /// A lane of those that have something.
    fn any_lane(&self, world: &mut World, has: impl Fn(&SimulatedLane) -> bool) -> Option<usize> {
        let lanes = self.lanes.iter().enumerate();
        let have = lanes.filter(|(_, lane)| lane.as_ref().is_some_and(&has)).map(|(index, _)| index);
        any_of(have.collect(), &mut world.random)
    }

    /// A lane obeys a command, or fails.
    fn work(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some(index) = self.any_lane(world, SimulatedLane::has_work) else { return Ok(()) };
        let lane = self.lanes[index].as_mut().expect("it was found");
        if !world.healing && !world.random.one_in(lane.pace) {
            return Ok(());
        }
        if !lane.slices.is_empty() && (lane.commands.is_empty() || world.random.one_in(2)) {
            let revalued = self.core.positions_revalued();
            if lane.open(&self.config, index).is_err() {
                world.coverage.device_faults += 1;
                return self.lose_lane(index, world);
            }
            match lane.run_slice(self.config.isa) {
                Ok(by_device) => world.coverage.device_slices += usize::from(by_device),
                Err(_) => {
                    world.coverage.background_faults += 1;
                    return self.lose_lane(index, world);
                }
            }
            let revalued = self.core.positions_revalued() - revalued;
            world.coverage.portfolios_followed += usize::from((1..POSITIONS as u64).contains(&revalued));
            return Ok(());
        }
        let Some(mut command) = lane.commands.pop_front() else { return Ok(()) };
        if world.plant == Plant::RowsSwapped {
            swap_prices(&mut command);
        }
        world.coverage.device_commands += usize::from(self.config.core.is_on_device(index as LaneId));
        match lane.obey(command, &self.config, index) {
            Ok(met) => {
                world.coverage.batches_overlapped += usize::from(met.batch);
                world.coverage.slices_passed += usize::from(met.slice);
                Ok(())
            }
            Err(_) => {
                world.coverage.device_faults += 1;
                self.lose_lane(index, world)
            }
        }
    }

    /// The core learns of a finished batch.
    fn report(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some(index) = self.any_lane(world, |lane| !lane.results.is_empty()) else { return Ok(()) };
        let lane = self.lanes[index].as_mut().expect("it was found");
        let result = lane.results.pop_front().expect("it has one");
        let (life, service_ns) = (lane.life, world.random.between(1, 1_000_000));
        let news = match result {
            SimulatedResult::Lane(LaneResult::Batch { batch, parts }) => {
                LaneNews::Completed { batch, service_ns, parts, memory_bytes: lane.memory_bytes() }
            }
            SimulatedResult::Lane(LaneResult::Released { group, epoch, stage }) => {
                LaneNews::Released { group, epoch, stage }
            }
            SimulatedResult::Slice { slice, partial } => LaneNews::SliceDone { slice, service_ns, partial },
        };
        let told = self.core.on_lane(world.now_ns, index as LaneId, life, news);
        self.told(told)
    }

    /// A lane is measured: slow to begin with, or slow for each row.
    fn measure(&mut self, world: &mut World) -> Result<(), Failure> {
        let index = world.random.index(self.lanes.len());
        let Some(lane) = self.lanes[index].as_ref().filter(|_| self.config.routes()) else { return Ok(()) };
        let (base_ns, row_ns) = (world.random.between(1, 100_000), world.random.between(1, 10_000));
        let points = [1, 16, 256].map(|rows| ServicePoint { rows, service_ns: base_ns + rows * row_ns });
        let news = LaneNews::Measured { points: points.into() };
        let told = self.core.on_lane(world.now_ns, index as LaneId, lane.life, news);
        self.told(told)
    }

    /// A lane fails, with all that it has.
    pub(super) fn lose_lane(&mut self, index: usize, world: &mut World) -> Result<(), Failure> {
        let Some(lane) = &self.lanes[index] else { return Ok(()) };
        let news = LaneNews::Lost { reason: "simulated".to_owned() };
        let told = self.core.on_lane(world.now_ns, index as LaneId, lane.life, news);
        self.told(told)?;
        self.obey(world)
    }

    /// A lane on a device hangs.
    pub(super) fn hang(&mut self, world: &mut World) {
        let index = world.random.index(self.lanes.len());
        if let Some(lane) =
            self.lanes[index].as_mut().filter(|_| self.config.core.is_on_device(index as LaneId))
        {
            lane.hangs_since_ns.get_or_insert(world.now_ns);
        }
    }

    /// The core looks how long lanes are at what they do.
    fn watch(&mut self, world: &mut World) -> Result<(), Failure> {
        let of_lane = |(index, lane): (LaneId, &Option<SimulatedLane>)| {
            Some((index, Doing::Batch { since_ns: lane.as_ref()?.hangs_since_ns? }))
        };
        let doing: Vec<(LaneId, Doing)> = (0..).zip(&self.lanes).filter_map(of_lane).collect();
        let lost_before = world.coverage.lanes_lost;
        let told = self.core.on_watch(world.now_ns, &doing);
        self.told(told)?;
        self.obey(world)?;
        let deadline_ns = self.config.core.times.device_deadline_ns;
        let is_overdue = |(_, doing): &(LaneId, Doing)| matches!(doing, Doing::Batch { since_ns } if world.now_ns - since_ns > deadline_ns);
        let was_held_up = doing.iter().any(is_overdue) && world.coverage.lanes_lost == lost_before;
        world.coverage.held_up += usize::from(was_held_up && !self.gave_up);
        Ok(())
    }

    /// How a device fares.
    fn sample(&mut self, world: &mut World) -> Result<(), Failure> {
        let index = world.random.index(self.lanes.len()) as LaneId;
        if !self.config.core.is_on_device(index) {
            return Ok(());
        }
        let xid = (!world.healing && world.random.one_in(20)).then_some(79);
        world.coverage.xid_errors += usize::from(xid.is_some() && self.lanes[index as usize].is_some());
        let (temperature_c, slowdown_c) = (Some(world.random.between(60, 95) as u32), Some(90));
        let ecc_errors_uncorrected = Some(u64::from(world.random.one_in(20)));
        let memory_free_bytes = Some(world.random.between(0, 100) as u64);
        let memory_used_bytes = memory_free_bytes.map(|free| 100 - free);
        let sample = Sample {
            xid,
            temperature_c,
            slowdown_c,
            ecc_errors_uncorrected,
            memory_used_bytes,
            memory_free_bytes,
            ..Sample::default()
        };
        let device = self.config.core.device_of(index).to_owned();
        let told = self.core.on_sample(world.now_ns, &device, &sample);
        self.told(told)?;
        self.obey(world)
    }

    /// Whether the fence and the group let a request commit.
    fn is_allowed(&self, request: &CommitRequest, world: &World) -> bool {
        world.plant == Plant::DoubleOwner
            || request.sealed.iter().all(|sealed| {
                self.fence.get(&sealed.partition) == Some(&sealed.assignment)
                    && world.group.is_member(self.ordinal as usize, sealed.partition)
            })
    }

    /// The commit thread comes to an end with what it has.
    fn finish_commit(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some((sent_ns, request)) = self.in_flight.take() else { return Ok(()) };
        let mut attempt = CommitAttempt { sent_ns, ended_ns: world.now_ns, looked_up: false };
        if !self.is_allowed(&request, world) {
            world.coverage.commits_refused += 1;
            return self.abort(attempt, request, world);
        }
        if world.random.one_in(12) && !world.healing {
            world.coverage.commits_aborted += 1;
            return self.abort(attempt, request, world);
        }
        attempt.looked_up = world.random.one_in(12);
        world.coverage.commits_unknown += usize::from(attempt.looked_up);
        if attempt.looked_up && world.random.one_in(2) {
            return self.abort(attempt, request, world);
        }
        if attempt.looked_up && world.plant == Plant::DoubleCommit {
            let again = request.clone();
            self.write(*request, world);
            return self.abort(attempt, again, world);
        }
        self.write(*request, world);
        self.core.on_committed(world.now_ns, attempt)?;
        Ok(())
    }

    fn abort(
        &mut self,
        attempt: CommitAttempt,
        request: Box<CommitRequest>,
        world: &mut World,
    ) -> Result<(), Failure> {
        let after = self.core.on_aborted(world.now_ns, attempt, request, "simulated")?;
        let gives_up = after == AfterAbort::GiveUp;
        world.coverage.outages_given_up += usize::from(gives_up);
        self.gave_up |= gives_up;
        Ok(())
    }

    fn write(&self, request: CommitRequest, world: &mut World) {
        for record in records_of(&request, &self.config.core.topics, &self.config.core.node, self.ordinal) {
            let topic = world.committed.records.entry(record.topic.into_owned()).or_default();
            topic.entry(record.partition).or_default().push(record.value.into_owned());
        }
        if let Some((partition, next)) = request.control.next {
            world.controls.offsets.insert(partition.partition, next);
        }
        for (partition, offset) in request.offsets {
            world.commit_offset(&partition, offset);
        }
    }
}

/// One of several, if there are any.
fn any_of(several: Vec<usize>, random: &mut Random) -> Option<usize> {
    (!several.is_empty()).then(|| several[random.index(several.len())])
}
