//! The engine without threads, clock or log: inputs in, commands out.
//!
//! It owns the partitions and executes the scheduler's decisions on them. What reaches outside – lanes, source, restores
//! – becomes a [`Command`] for the shell, which is the [`run`](super::run) loop in production and a simulation in tests.
//! It must not decide anything that the scheduler could.

mod gates;
mod risk;

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use warptape_eventlog::{Record, TopicPartition};
use warptape_schemas::journal::{
    Arrived, Completed, Decision, DeviceSample, Dispatch, Draining, Input, JournalEntry, LaneId, LaneLost,
    LaneReady, Measured, PartitionAssigned, PartitionRevoked, Place, Released, Sealed, ServicePoint, Started,
    Woke,
};
use warptape_schemas::{LifecycleEvent, TickDecoder};
use warptape_stages::GroupStage;

use super::commit::CommitRequest;
use super::lanes::{BatchPart, GroupId, LaneBatch, LaneCommand, PartOutput, Slice};
use super::ownership::Ownership;
use super::partition::{Accepted, Partition};
use super::record_limits::{LOST_REASON_BYTES_MAX, cut};
use super::recorder::Recorder;
use super::restore::Restored;
use super::risk::{Concluded, Conclusion, Preparation, RequestPartition, RiskDesk};
use super::segment::{is_other, segment_record};
use super::snapshots::SnapshotPlace;
use super::{EngineConfig, RecordError, Stop};

/// What the shell has to do, in order.
pub enum Command {
    /// Tell a lane.
    Lane(LaneId, LaneCommand),
    /// Have a lane do units of a risk task, beside all else.
    Slice(LaneId, Slice),
    /// Read no more of a partition.
    Pause(i32),
    /// Read a partition again.
    Resume(i32),
    /// Read a partition from this offset on, with this generation.
    Seek {
        /// The partition.
        partition: i32,
        /// The first record to read.
        offset: i64,
        /// What [`Core::on_records`] is given with the records.
        generation: u64,
    },
    /// Restore a partition from its snapshot, and hand it to [`Core::on_restored`].
    Restore {
        /// The partition.
        partition: i32,
        /// Outputs of records before this offset exist, or are in the commit in flight.
        sealed_offset: i64,
    },
    /// Read the risk requests of a partition from this offset on, with this generation.
    ReadRequests {
        /// The partition.
        partition: i32,
        /// The first request to read.
        offset: i64,
        /// What [`Core::on_requests`] is given with the requests.
        generation: u64,
    },
    /// Read no more risk requests of a partition.
    ForgetRequests {
        /// The partition.
        partition: i32,
    },
    /// Make a task of a request beside the engine, one after the other, and hand it to [`Core::on_prepared`].
    Prepare(Preparation),
    /// Conclude a round beside the engine, which takes long, and hand it to [`Core::on_concluded`].
    Conclude(Conclusion),
    /// Write a lifecycle record.
    Lifecycle(LifecycleEvent, String),
}

/// Where to stop reading, by partition; where none is named, nothing more is read.
struct StopAt {
    ticks: BTreeMap<i32, i64>,
    requests: BTreeMap<i32, i64>,
}

impl StopAt {
    /// No partition is this process's any more.
    fn remove(&mut self, partition: i32) {
        self.ticks.remove(&partition);
        self.requests.remove(&partition);
    }
}

/// The engine's state.
pub struct Core {
    config: Arc<EngineConfig>,
    recorder: Recorder,
    partitions: BTreeMap<i32, Partition>,
    /// Partitions whose state was lost and is not restored yet, with the offsets they had come to.
    restoring: BTreeMap<i32, i64>,
    ownership: Ownership,
    /// Rises with every restore of any partition.
    generation: u64,
    /// Lane and rows of each batch in flight.
    batches: BTreeMap<i64, (LaneId, i64)>,
    risk: RiskDesk,
    /// Rounds that were finished and concluded in this step.
    concluded: Vec<Concluded>,
    commands: Vec<Command>,
    wake_at_ns: Option<i64>,
    stop: Option<StopAt>,
    draining: bool,
    decoder: TickDecoder,
    lengths: Vec<usize>,
}

impl Core {
    /// Continues the journal after `last`, or begins it.
    pub fn new(config: EngineConfig, last: Option<&JournalEntry>) -> Result<Self, RecordError> {
        Ok(Self {
            decoder: config.stages.numbers.decoder(config.schemas.clone()),
            config: Arc::new(config),
            recorder: Recorder::new(last)?,
            partitions: BTreeMap::new(),
            restoring: BTreeMap::new(),
            ownership: Ownership::default(),
            generation: 0,
            batches: BTreeMap::new(),
            risk: RiskDesk::default(),
            concluded: Vec::new(),
            commands: Vec::new(),
            wake_at_ns: None,
            stop: None,
            draining: false,
            lengths: Vec::new(),
        })
    }

    /// The commands since the last call.
    pub fn take_commands(&mut self) -> Vec<Command> {
        take(&mut self.commands)
    }

    /// When [`Core::on_time`] is wanted.
    pub fn wake_at_ns(&self) -> Option<i64> {
        self.wake_at_ns.into_iter().chain(self.risk.arrivals.deadline_ns()).min()
    }

    /// Decisions made so far.
    pub fn decisions_total(&self) -> u64 {
        self.recorder.decisions_total()
    }

    /// Symbols seen in the partitions owned.
    pub fn symbol_count(&self) -> usize {
        self.partitions.values().map(Partition::symbol_count).sum()
    }

    /// Rows that wait on the host.
    pub fn waiting_rows(&self) -> usize {
        self.partitions.values().map(Partition::waiting_rows).sum()
    }

    /// Rows of a batch in flight.
    pub fn batch_rows(&self, batch: i64) -> i64 {
        self.batches.get(&batch).map_or(0, |&(_, rows)| rows)
    }

    /// The process begins.
    pub fn begin(&mut self, now_ns: i64) -> Result<(), RecordError> {
        let started = Started {
            node: self.config.node.clone(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            stage_config: self.config.stages.to_json(),
            scheduler: self.config.scheduler.clone(),
            lanes: self.config.lanes.clone(),
        };
        let detail = format!("{} lanes, group {}", started.lanes.len(), self.config.group);
        self.commands.push(Command::Lifecycle(LifecycleEvent::Started, detail));
        self.step(now_ns, &Input::Started(started))
    }

    /// A partition's state was restored; outputs of records before `sealed_offset` exist already.
    pub fn on_restored(
        &mut self,
        now_ns: i64,
        partition: i32,
        restored: Restored,
        sealed_offset: i64,
    ) -> Result<(), RecordError> {
        let offset = restored.offset;
        let counted_offset = self.restoring.remove(&partition).unwrap_or(0).max(sealed_offset);
        self.ownership.begin(partition);
        self.generation += 1;
        let generation = self.generation;
        let source = TopicPartition { topic: self.config.topics.ticks.clone(), partition };
        let is_other = |segment: &String| is_other(segment, &self.config.stages);
        let segment_due = restored.segment.as_ref().is_none_or(is_other);
        let mut owned = Partition::new(source, generation, restored, sealed_offset, counted_offset);
        owned.segment_due = segment_due;
        self.partitions.insert(partition, owned);
        let detail = format!("partition {partition} from snapshot at {offset}, outputs from {sealed_offset}");
        self.commands.push(Command::Lifecycle(LifecycleEvent::Restored, detail));
        self.step(
            now_ns,
            &Input::PartitionAssigned(PartitionAssigned {
                partition,
                groups: self.config.stages.groups_per_partition as i32,
                committed_offset: sealed_offset,
                snapshot_offset: offset,
            }),
        )?;
        self.commands.push(Command::Seek { partition, offset, generation });
        // A stop may have been asked for before there was anything to stop.
        self.drain_if_read(now_ns)
    }

    /// A partition is no longer owned.
    pub fn on_revoked(&mut self, now_ns: i64, partition: i32) -> Result<(), RecordError> {
        self.close_requests(now_ns, partition)?;
        self.risk.partitions.remove(&partition);
        self.partitions.remove(&partition);
        self.restoring.remove(&partition);
        self.ownership.end(partition);
        if let Some(stop) = &mut self.stop {
            stop.remove(partition);
        }
        self.drop_groups(partition);
        self.step(now_ns, &Input::PartitionRevoked(PartitionRevoked { partition }))
    }

    /// Partitions are about to be revoked and their source stands still: a last snapshot spares the next owner work.
    pub fn on_revoking(&mut self, now_ns: i64, partitions: &[i32]) -> Result<(), RecordError> {
        partitions.iter().try_for_each(|&partition| {
            self.close_requests(now_ns, partition)?;
            self.begin_last_snapshot(now_ns, partition)
        })
    }

    /// Whether everything read of a partition is processed and handed to a commit.
    pub fn is_settled(&self, partition: i32) -> bool {
        let settled = |owned: &Partition| {
            owned.is_drained() && owned.sealed_offset >= owned.next_offset && !owned.has_unsealed()
        };
        !self.restoring.contains_key(&partition)
            && self.partitions.get(&partition).is_none_or(settled)
            && self.risk.partitions.get(&partition).is_none_or(|requests| !requests.has_results())
    }

    /// Which partitions are this process's.
    pub(super) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Whether a partition has been this process's ever since it was sealed under this assignment.
    pub fn is_owned(&self, partition: i32, assignment: u64) -> bool {
        self.ownership.holds(partition, assignment)
    }

    /// Whether the records of an owned partition before an offset were accepted.
    pub fn is_read_to(&self, partition: i32, offset: i64) -> bool {
        self.partitions.get(&partition).is_some_and(|owned| owned.is_read_to(offset))
    }

    /// A partition was read up to an offset, after which the log may have no more records.
    pub fn on_position(
        &mut self,
        now_ns: i64,
        partition: i32,
        generation: u64,
        position: i64,
    ) -> Result<(), RecordError> {
        match self.partitions.get_mut(&partition) {
            Some(owned) if owned.generation == generation => owned.read_to = position,
            _ => return Ok(()),
        }
        self.drain_if_read(now_ns)
    }

    /// Records of a partition were read.
    pub fn on_records(
        &mut self,
        now_ns: i64,
        partition: i32,
        generation: u64,
        records: &[Record],
        read_at_ns: i64,
    ) -> Result<Accepted, RecordError> {
        let end = self.stop_offset(partition);
        let records = &records[..records.partition_point(|record| record.offset < end)];
        let Some(owned) = self.partitions.get_mut(&partition) else { return Ok(Accepted::default()) };
        if owned.generation != generation || records.is_empty() {
            return Ok(Accepted::default());
        }
        owned.queue_lengths(&mut self.lengths);
        let accepted = owned.accept(records, read_at_ns, &mut self.decoder);
        owned.begin_snapshot(self.config.snapshot_interval_records);
        self.arrived(now_ns, partition)?;
        self.drain_if_read(now_ns)?;
        Ok(accepted)
    }

    /// A lane finished a batch.
    pub fn on_completed(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        batch: i64,
        service_ns: i64,
        parts: Vec<PartOutput>,
        sample: Option<DeviceSample>,
    ) -> Result<(), RecordError> {
        self.batches.remove(&batch);
        for part in parts {
            if let Some(partition) = self.partitions.get_mut(&part.group.partition) {
                partition.complete(part.group, part.epoch, part.output, self.config.kept_bytes_max);
            }
        }
        self.step(now_ns, &Input::Completed(Completed { lane, batch, service_ns, sample }))
    }

    /// A lane was measured.
    pub fn on_measured(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        points: Vec<ServicePoint>,
    ) -> Result<(), RecordError> {
        self.step(now_ns, &Input::Measured(Measured { lane, points }))
    }

    /// A lane gave a group back.
    pub fn on_released(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        group: GroupId,
        epoch: i64,
        stage: Box<GroupStage>,
    ) -> Result<(), RecordError> {
        let GroupId { partition, group } = group;
        let owned = self.partitions.get_mut(&partition);
        // The partition may have gone or been restored since the lane was told.
        if !owned.is_some_and(|owned| owned.release(group, lane, epoch, stage)) {
            return Ok(());
        }
        self.step(now_ns, &Input::Released(Released { partition, group, lane, epoch }))
    }

    /// A lane failed; `restarted` says that a new worker has taken its place.
    pub fn on_lane_lost(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        reason: String,
        restarted: bool,
    ) -> Result<(), RecordError> {
        let reason = cut(reason, LOST_REASON_BYTES_MAX);
        self.batches.retain(|_, (owner, _)| *owner != lane);
        self.risk.forget_lane(lane);
        let kept = self.config.is_on_device(lane)
            && self.partitions.values().all(|owned| owned.keeps_groups_of(lane));
        let mut again = Vec::new();
        if kept {
            for (&partition, owned) in &mut self.partitions {
                let groups = owned.take_back(lane);
                again.push(Arrived { partition, next_offset: owned.next_offset, groups });
            }
        }
        self.step(now_ns, &Input::LaneLost(LaneLost { lane, reason, kept }))?;
        for arrived in again.into_iter().filter(|arrived| !arrived.groups.is_empty()) {
            self.step(now_ns, &Input::Arrived(arrived))?;
        }
        if restarted {
            self.step(now_ns, &Input::LaneReady(LaneReady { lane }))?;
        }
        Ok(())
    }

    /// A stop was asked for.
    pub fn on_stop(&mut self, now_ns: i64, stop: Stop) -> Result<(), RecordError> {
        let stop = match stop {
            Stop::Now => {
                self.withdraw_tasks(now_ns, None)?;
                let ticks = self.partitions.iter().map(|(&id, owned)| (id, owned.next_offset));
                StopAt { ticks: ticks.collect(), requests: BTreeMap::new() }
            }
            Stop::At { ticks, requests } => {
                StopAt { ticks: ticks.into_iter().collect(), requests: requests.into_iter().collect() }
            }
        };
        self.stop = Some(stop);
        self.drain_if_read(now_ns)
    }

    /// Time went by. Wanted after all other news as well: requests that wait may have their turn.
    pub fn on_time(&mut self, now_ns: i64) -> Result<(), RecordError> {
        if self.wake_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.wake_at_ns = None;
            self.step(now_ns, &Input::Woke(Woke {}))?;
        }
        self.give_up_overdue(now_ns)?;
        self.prepare_requests();
        Ok(())
    }

    /// Whether a commit would hold anything.
    pub fn has_uncommitted(&self) -> bool {
        self.recorder.entries_waiting() > 0
            || self.partitions.values().any(Partition::has_unsealed)
            || self.risk.partitions.values().any(RequestPartition::has_uncommitted)
    }

    /// Whether risk results wait for a commit.
    pub fn has_risk_results(&self) -> bool {
        self.risk.partitions.values().any(RequestPartition::has_results)
    }

    /// Whether everything before the stop is processed.
    pub fn is_drained(&self) -> bool {
        let is_read = |owned: &Partition| owned.is_read_to(self.stop_offset(owned.source.partition));
        let drained = |owned: &Partition| owned.is_drained() && is_read(owned);
        let ticks = self.draining && self.restoring.is_empty() && self.partitions.values().all(drained);
        ticks && self.are_requests_drained()
    }

    /// Gathers what complete records caused, with the journal entries of everything decided so far, the last of which accounts
    /// for it.
    pub fn seal(&mut self, now_ns: i64) -> Result<CommitRequest, RecordError> {
        let mut accounts = Vec::new();
        let mut request = CommitRequest { sealed_at_ns: now_ns, ..CommitRequest::default() };
        let bytes_max = self.config.commit_bytes_max / self.partitions.len().max(1);
        for owned in self.partitions.values_mut() {
            let before = owned.sealed_offset;
            // The source may have ended, and this not have been told yet: its partitions are others' to commit.
            let Some(assignment) = self.ownership.of(owned.source.partition) else { continue };
            let mut sealed = owned.seal(assignment, bytes_max, &mut request.receipt);
            let requests = self.risk.partitions.get_mut(&sealed.partition);
            let next_request = requests.and_then(|requests| requests.seal(bytes_max, &mut sealed));
            let next = next_request.as_ref().map(|(_, next)| *next);
            accounts.extend(sealed.account(before, owned.sealed_offset, next));
            request.offsets.extend(next_request);
            // A segment that was asked for begins in all partitions, also those without new ticks, so that nobody asks again.
            let begins = owned.sealed_offset > before || self.config.new_segment;
            if begins && std::mem::take(&mut owned.segment_due) {
                let segment = segment_record(sealed.partition, before, &self.config.stages);
                sealed.add_snapshot(SnapshotPlace::default(), &segment);
            }
            request.sealed.push(sealed);
            if owned.sealed_offset > before {
                request.receipt.advances = true;
                request.offsets.push((owned.source.clone(), owned.sealed_offset));
            }
        }
        if !accounts.is_empty() {
            self.step(now_ns, &Input::Sealed(Sealed { partitions: accounts }))?;
        }
        request.entries = self.recorder.take_entries();
        Ok(request)
    }

    /// Makes a request that was aborted ready to be sent again: without what others own by now, of which the journal says so
    /// in the same transaction.
    pub fn amend(&mut self, request: &mut CommitRequest) {
        if request.retain_owned(|partition, assignment| self.ownership.holds(partition, assignment)) {
            request.entries.extend(self.recorder.take_entries());
        }
    }

    /// Where reading of a partition ends: never, unless a stop was asked for.
    fn stop_offset(&self, partition: i32) -> i64 {
        self.stop.as_ref().map_or(i64::MAX, |stop| stop.ticks.get(&partition).copied().unwrap_or(0))
    }

    fn step(&mut self, now_ns: i64, input: &Input) -> Result<(), RecordError> {
        for decision in self.recorder.step(now_ns, input)? {
            self.execute(now_ns, decision);
        }
        self.go_on(now_ns)
    }

    /// Executes a decision.
    fn execute(&mut self, now_ns: i64, decision: Decision) {
        match decision {
            Decision::Place(place) => self.place(&place),
            Decision::Dispatch(dispatch) => self.dispatch(&dispatch),
            Decision::Pause(pause) => self.commands.push(Command::Pause(pause.partition)),
            Decision::Resume(resume) => self.commands.push(Command::Resume(resume.partition)),
            Decision::Fence(fence) => {
                let detail = format!("lane {}, {} groups: {}", fence.lane, fence.groups, fence.reason);
                self.commands.push(Command::Lifecycle(LifecycleEvent::LaneLost, detail));
            }
            Decision::Restore(restore) => {
                let partition = restore.partition;
                let owned = self.partitions.remove(&partition).expect("only owned partitions are restored");
                self.restoring.insert(partition, owned.reached_offset());
                self.drop_groups(partition);
                self.commands.push(Command::Restore { partition, sealed_offset: owned.sealed_offset });
            }
            Decision::WakeAt(wake) => self.wake_at_ns = Some(wake.at_ns),
            Decision::Release(release) => {
                let group = GroupId { partition: release.partition, group: release.group };
                let command = LaneCommand::Release { group, epoch: release.epoch };
                self.commands.push(Command::Lane(release.lane, command));
            }
            // What follows from these are decisions of their own.
            Decision::Admit(_) | Decision::Split(_) | Decision::Reserve(_) => {}
            Decision::Reject(reject) => self.reject(now_ns, &reject),
            Decision::RunSlice(run) => self.run_slice(now_ns, &run),
            Decision::Expire(expire) => self.expire(now_ns, &expire),
            Decision::Finish(finish) => self.finish_round(now_ns, &finish),
        }
    }

    fn place(&mut self, place: &Place) {
        let partition =
            self.partitions.get_mut(&place.partition).expect("placed groups are of owned partitions");
        let state = partition.place(place, self.config.is_on_device(place.lane));
        let group = GroupId { partition: place.partition, group: place.group };
        self.commands
            .push(Command::Lane(place.lane, LaneCommand::Install { group, epoch: place.epoch, state }));
    }

    fn dispatch(&mut self, dispatch: &Dispatch) {
        let mut parts = Vec::with_capacity(dispatch.takes.len());
        let on_device = self.config.is_on_device(dispatch.lane);
        for take in &dispatch.takes {
            let partition = self.partitions.get_mut(&take.partition).expect("rows are of owned partitions");
            let group = GroupId { partition: take.partition, group: take.group };
            let input = partition.take(take.group, take.rows, on_device);
            parts.push(BatchPart { group, epoch: take.epoch, input });
        }
        self.batches.insert(dispatch.batch, (dispatch.lane, dispatch.rows));
        let batch = LaneBatch { batch: dispatch.batch, parts };
        self.commands.push(Command::Lane(dispatch.lane, LaneCommand::Run(batch)));
    }

    fn drop_groups(&mut self, partition: i32) {
        for lane in 0..self.config.lanes.len() as LaneId {
            self.commands.push(Command::Lane(lane, LaneCommand::Drop { partition }));
        }
    }

    /// Tells the scheduler what was added to the queues of a partition since `lengths` were read.
    fn arrived(&mut self, now_ns: i64, partition: i32) -> Result<(), RecordError> {
        let owned = &self.partitions[&partition];
        let groups = owned.arrivals(&self.lengths);
        if groups.is_empty() {
            return Ok(());
        }
        let next_offset = owned.next_offset;
        self.step(now_ns, &Input::Arrived(Arrived { partition, next_offset, groups }))
    }

    /// Begins to drain once everything before the stop is accepted: with a last snapshot, so that the next start has
    /// nothing to repeat.
    fn drain_if_read(&mut self, now_ns: i64) -> Result<(), RecordError> {
        let Some(stop) = &self.stop else { return Ok(()) };
        let is_read = |(partition, &end): (&i32, &i64)| {
            self.partitions.get(partition).is_some_and(|owned| owned.is_read_to(end))
        };
        if self.draining || !stop.ticks.iter().all(is_read) {
            return Ok(());
        }
        self.draining = true;
        self.step(now_ns, &Input::Draining(Draining {}))?;
        let partitions: Vec<i32> = self.partitions.keys().copied().collect();
        partitions.into_iter().try_for_each(|partition| self.begin_last_snapshot(now_ns, partition))
    }

    fn begin_last_snapshot(&mut self, now_ns: i64, partition: i32) -> Result<(), RecordError> {
        let Some(owned) = self.partitions.get_mut(&partition) else { return Ok(()) };
        owned.queue_lengths(&mut self.lengths);
        owned.begin_snapshot(1);
        self.arrived(now_ns, partition)
    }
}
