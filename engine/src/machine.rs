//! The state machine: it takes events with their time, and returns commands.
//!
//! It owns the partitions and executes the scheduler's decisions on them. Effects on lanes, source and restores become
//! a [`Command`] for the shell. It must not decide anything that the scheduler could.

mod closing;
mod commits;
mod control;
mod gates;
mod handle;
mod lanes;
mod membership;
mod pages;
mod risk;
mod status;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use warptape_events::journal::{
    Arrived, Decision, Dispatch, Draining, Input, JournalEntry, LaneId, Place, Started, Woke,
};
use warptape_events::{DecodeTicks, LifecycleEvent};
use warptape_record::{Record, TopicPartition};
use warptape_scheduler::RULES;

use crate::command::Command;
use crate::config::Config;
use crate::control::ControlDesk;
use crate::error::CoreError;
use crate::event::{Position, Stop};
use crate::lanes::{BatchPart, GroupId, LaneBatch, LaneCommand};
use crate::partition::Partition;
use crate::positions::JournalPositions;
use crate::read_ticks::ReadTicks;
use crate::recorder::{RecordError, Recorder};
use crate::risk::{Concluded, RiskDesk};
use crate::split_symbols::SplitSymbols;

use commits::Commits;
pub use handle::Wants;
pub use lanes::Doing;
use lanes::Lanes;
use membership::Membership;
pub use status::{LaneStatus, PartitionStatus, Status};

/// Progress of a requested stop.
#[derive(Default)]
struct Stopping {
    at: Option<StopAt>,
    /// Time at which the process was asked to end as soon as possible; `None` if it was not.
    since_ns: Option<i64>,
    draining: bool,
    /// Event times written to close all bars, by partition; `None` until they are written.
    closing: Option<BTreeMap<i32, i64>>,
}

/// Offsets at which reading stops, by partition. A partition without an offset is read no further.
struct StopAt {
    ticks: BTreeMap<i32, i64>,
    requests: BTreeMap<i32, i64>,
}

impl StopAt {
    /// Forgets a partition that this process no longer owns.
    fn remove(&mut self, partition: i32) {
        self.ticks.remove(&partition);
        self.requests.remove(&partition);
    }
}

/// The engine's state.
pub struct Core {
    config: Arc<Config>,
    recorder: Recorder,
    decoder: Box<dyn DecodeTicks>,
    partitions: BTreeMap<i32, Partition>,
    membership: Membership,
    lanes: Lanes,
    commits: Commits,
    risk: RiskDesk,
    control: ControlDesk,
    stopping: Stopping,
    /// Number of the last generation; rises with every restore of any partition.
    generation: u64,
    /// Rounds that were finished and concluded in this step.
    concluded: Vec<Concluded>,
    commands: VecDeque<Command>,
    wake_at_ns: Option<i64>,
    lengths: Vec<usize>,
    split_symbols: SplitSymbols,
}

/// Most symbols of a partition that one step compares with those of other partitions.
const SYMBOLS_COMPARED_MAX: usize = 4096;

impl Core {
    /// Continues the journal after `last`, which has reached `positions`; begins a journal if `last` is `None`.
    pub fn new(
        config: Config,
        decoder: Box<dyn DecodeTicks>,
        last: Option<&JournalEntry>,
        positions: JournalPositions,
    ) -> Result<Self, RecordError> {
        Ok(Self {
            lanes: Lanes::new(config.lanes.len()),
            config: Arc::new(config),
            recorder: Recorder::new(last, positions)?,
            decoder,
            partitions: BTreeMap::new(),
            membership: Membership::default(),
            commits: Commits::default(),
            risk: RiskDesk::default(),
            control: ControlDesk::default(),
            stopping: Stopping::default(),
            generation: 0,
            concluded: Vec::new(),
            commands: VecDeque::new(),
            wake_at_ns: None,
            lengths: Vec::new(),
            split_symbols: SplitSymbols::default(),
        })
    }

    /// Makes the next commit move the group's offset of operators' commands to `next`, without an answer.
    pub fn with_next_control(mut self, commands: TopicPartition, next: i64) -> Self {
        self.control.move_to(commands, next);
        self
    }

    /// Handles the begin of the process.
    fn begin(&mut self, now_ns: i64) -> Result<(), RecordError> {
        self.start_lanes(now_ns);
        self.commits.begin(now_ns);
        let started = Started {
            node: self.config.node.clone(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            stage_config: self.config.stages.to_json(),
            scheduler: self.config.scheduler.clone(),
            lanes: self.config.lanes.clone(),
            autoscale: self.config.autoscale,
            shadow: self.config.shadow.clone(),
            rules: RULES,
        };
        let detail = format!("{} lanes, group {}", started.lanes.len(), self.config.group);
        self.commands.push_back(Command::Lifecycle(LifecycleEvent::Started, detail));
        self.step(now_ns, Input::Started(Box::new(started)))?;
        // Networks are recorded once in each life, so that the journal of the life is self-contained.
        for trained in self.config.networks.clone() {
            self.step(now_ns, Input::Trained(trained))?;
        }
        self.write_positions(now_ns)
    }

    /// Records the offsets that the journal has reached so far.
    fn write_positions(&mut self, now_ns: i64) -> Result<(), RecordError> {
        let positions = self.recorder.positions(&self.config.group);
        self.step(now_ns, positions)
    }

    /// Notes that a partition was read up to an offset, behind which the log may have no more records.
    fn on_position(&mut self, now_ns: i64, position: Position) -> Result<(), RecordError> {
        let Position { partition, generation, offset } = position;
        // Records behind a requested stop are left to other processes.
        let end = self.stop_offset(partition);
        match self.partitions.get_mut(&partition) {
            Some(owned) if owned.generation == generation => owned.read_to = offset.min(end),
            _ => return Ok(()),
        }
        self.drain_if_read(now_ns)
    }

    /// Handles records of a partition that were read.
    fn on_records(
        &mut self,
        now_ns: i64,
        partition: i32,
        generation: u64,
        (records, ticks): (&[Record], Option<ReadTicks>),
        read_at_ns: i64,
    ) -> Result<(), CoreError> {
        let end = self.stop_offset(partition);
        let records = &records[..records.partition_point(|record| record.offset < end)];
        let Some(owned) = self.partitions.get_mut(&partition) else { return Ok(()) };
        if owned.generation != generation || records.is_empty() {
            return Ok(());
        }
        owned.queue_lengths(&mut self.lengths);
        let accepted = owned.accept(records, ticks, read_at_ns, self.decoder.as_mut());
        let read_to = owned.next_offset.max(owned.read_to);
        self.commands.push_back(Command::Accepted { partition, read_to, read_at_ns, accepted });
        let idle_ns = self.config.times.evict_idle_ns;
        owned.begin_snapshot(self.config.limits.snapshot_interval_records, idle_ns);
        if owned.waits_for_pages() {
            // Records after this one are read again once the pages are there.
            self.generation += 1;
            owned.generation = self.generation;
            self.commands.push_back(Command::Pause(partition));
        }
        self.compare_symbols(partition);
        self.arrived(now_ns, partition)?;
        self.drain_if_read(now_ns)?;
        self.see_to_pages(partition)
    }

    /// Searches other partitions for the symbols of a partition. One call compares a bounded number, so that a step
    /// stays short even if many symbols arrive at once.
    fn compare_symbols(&mut self, partition: i32) {
        let Some(owned) = self.partitions.get_mut(&partition) else { return };
        let numbers = owned.begin_to_compare(SYMBOLS_COMPARED_MAX);
        let owned = &self.partitions[&partition];
        for number in numbers {
            let symbol = owned.symbol_name(number);
            for (&other, found) in self.partitions.iter().filter(|(other, _)| **other != partition) {
                if found.has_compared(symbol) {
                    self.split_symbols.add(symbol, partition, other);
                }
            }
        }
    }

    /// Begins the requested stop.
    fn on_stop(&mut self, now_ns: i64, stop: Stop) -> Result<(), RecordError> {
        let stop = match stop {
            Stop::Now => {
                self.stopping.since_ns.get_or_insert(now_ns);
                self.commands.push_back(Command::Hurry);
                self.withdraw_tasks(now_ns, None)?;
                let ticks = self.partitions.iter().map(|(&id, owned)| (id, owned.next_offset));
                StopAt { ticks: ticks.collect(), requests: BTreeMap::new() }
            }
            Stop::At { ticks, requests } => {
                StopAt { ticks: ticks.into_iter().collect(), requests: requests.into_iter().collect() }
            }
        };
        self.stopping.at = Some(stop);
        let is_closed = self.stopping.since_ns.is_some() || !self.config.closes_bars;
        self.stopping.closing = is_closed.then(BTreeMap::new);
        self.drain_if_read(now_ns)
    }

    /// Does the work that is due by time. Call it after all other events too: much of the work that they make possible
    /// begins here.
    pub(crate) fn on_time(&mut self, now_ns: i64) -> Result<(), CoreError> {
        self.on_wake(now_ns)?;
        self.write_entries();
        self.give_up_overdue(now_ns)?;
        self.prepare_requests();
        self.release_if_settled(now_ns)?;
        if self.stopping.draining {
            // The snapshot under way when draining began may have been for an earlier offset.
            self.begin_last_snapshots(now_ns)?;
        }
        self.write_checkpoint(now_ns)?;
        self.close_quiet_bars(now_ns);
        self.commit_if_due(now_ns)?;
        self.check_commit(now_ns)
    }

    /// Lets the scheduler make the decisions that it planned for this time.
    pub(crate) fn on_wake(&mut self, now_ns: i64) -> Result<(), CoreError> {
        if self.wake_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.wake_at_ns = None;
            self.step(now_ns, Input::Woke(Woke {}))?;
        }
        Ok(())
    }

    /// Encodes the recorded entries. Call it after commands are executed, because lanes wait for those; otherwise the
    /// next step encodes them.
    pub(crate) fn write_entries(&mut self) {
        self.recorder.write();
    }

    /// Writes the scheduler's state into the journal at intervals.
    fn write_checkpoint(&mut self, now_ns: i64) -> Result<(), RecordError> {
        let interval_ns = self.config.times.checkpoint_interval_ns;
        // A process that has processed everything commits, and records nothing more.
        if !self.recorder.is_checkpoint_due(now_ns, interval_ns) || self.is_drained() {
            return Ok(());
        }
        for part in self.recorder.checkpoint(now_ns) {
            self.step(now_ns, part)?;
        }
        // The positions are unknown while a transaction is under way, because it may or may not be committed.
        if self.is_committing() { Ok(()) } else { self.write_positions(now_ns) }
    }

    /// True if everything before the stop is processed and committed.
    pub(crate) fn is_done(&self) -> bool {
        self.is_drained() && !self.is_committing() && !self.has_uncommitted()
    }

    /// True if everything before the stop is processed.
    fn is_drained(&self) -> bool {
        let is_read = |owned: &Partition| owned.is_read_to(self.stop_offset(owned.source.partition));
        let drained = |owned: &Partition| owned.is_drained() && is_read(owned);
        let ticks =
            self.stopping.draining && self.membership.is_settled() && self.partitions.values().all(drained);
        ticks && self.are_requests_drained()
    }

    /// The offset at which reading of a partition ends; `i64::MAX` unless a stop was requested.
    fn stop_offset(&self, partition: i32) -> i64 {
        self.stopping.at.as_ref().map_or(i64::MAX, |stop| stop.ticks.get(&partition).copied().unwrap_or(0))
    }

    fn step(&mut self, now_ns: i64, input: Input) -> Result<(), RecordError> {
        for decision in self.recorder.step(now_ns, input)?.iter() {
            self.execute(now_ns, decision);
        }
        self.go_on(now_ns)
    }

    /// Executes a decision.
    fn execute(&mut self, now_ns: i64, decision: &Decision) {
        match decision {
            Decision::Place(place) => self.place(place),
            Decision::Dispatch(dispatch) => self.dispatch(dispatch),
            Decision::Pause(pause) => self.commands.push_back(Command::Pause(pause.partition)),
            Decision::Resume(resume) => {
                let waits = self.partitions.get(&resume.partition).is_some_and(Partition::waits_for_pages);
                // While a record waits for pages, reading resumes only once the pages are there.
                if !waits {
                    self.commands.push_back(Command::Resume(resume.partition));
                }
            }
            Decision::Fence(fence) => {
                let detail = format!("lane {}, {} groups: {}", fence.lane, fence.groups, fence.reason);
                self.commands.push_back(Command::Lifecycle(LifecycleEvent::LaneLost, detail));
            }
            Decision::Restore(restore) => {
                let partition = restore.partition;
                let owned = self.partitions.remove(&partition).expect("only owned partitions are restored");
                self.drop_groups(partition);
                self.restore_lost(partition, owned.reached(), owned.sealed_offset);
            }
            Decision::WakeAt(wake) => self.wake_at_ns = Some(wake.at_ns),
            Decision::Release(release) => {
                let group = GroupId { partition: release.partition, group: release.group };
                let command = LaneCommand::Release { group, epoch: release.epoch };
                self.commands.push_back(Command::Lane(release.lane, command));
            }
            // Effects of these decisions, if any, are decisions of their own.
            Decision::Drift(_) | Decision::FellBack(_) | Decision::Scale(_) | Decision::Shadow(_) => {}
            Decision::Admit(_) | Decision::Split(_) | Decision::Reserve(_) | Decision::Assign(_) => {}
            Decision::AskPrices(question) => self.commands.push_back(Command::AskPrices(question.clone())),
            Decision::Reject(reject) => self.reject(now_ns, reject),
            Decision::RunSlice(run) => self.run_slice(now_ns, run),
            Decision::Expire(expire) => self.expire(now_ns, expire),
            Decision::Shed(shed) => self.shed(now_ns, shed),
            Decision::Finish(finish) => self.finish_round(now_ns, finish),
            Decision::Controlled(controlled) => self.controlled(now_ns, controlled.clone()),
            Decision::Breaker(breaker) => self.commands.push_back(Command::Breaker(*breaker)),
            // Effects of this decision are decisions of their own.
            Decision::Headroom(_) => {}
        }
    }

    fn place(&mut self, place: &Place) {
        let partition =
            self.partitions.get_mut(&place.partition).expect("placed groups are of owned partitions");
        let state = partition.place(place, self.config.is_on_device(place.lane));
        let group = GroupId { partition: place.partition, group: place.group };
        self.commands
            .push_back(Command::Lane(place.lane, LaneCommand::Install { group, epoch: place.epoch, state }));
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
        let batch = LaneBatch { batch: dispatch.batch, parts };
        self.commands.push_back(Command::Lane(dispatch.lane, LaneCommand::Run(batch)));
    }

    fn drop_groups(&mut self, partition: i32) {
        for lane in 0..self.config.lanes.len() as LaneId {
            self.commands.push_back(Command::Lane(lane, LaneCommand::Drop { partition }));
        }
    }

    /// Tells the scheduler of the rows added to the queues of a partition since `lengths` were read.
    fn arrived(&mut self, now_ns: i64, partition: i32) -> Result<(), RecordError> {
        let owned = &self.partitions[&partition];
        let groups = owned.arrivals(&self.lengths);
        if groups.is_empty() {
            return Ok(());
        }
        let next_offset = owned.next_offset;
        self.step(now_ns, Input::Arrived(Arrived { partition, next_offset, groups }))
    }

    /// Begins to drain once everything before the stop is accepted. A last snapshot saves the next start from
    /// processing records again.
    fn drain_if_read(&mut self, now_ns: i64) -> Result<(), RecordError> {
        let Some(stop) = &self.stopping.at else { return Ok(()) };
        let closing = self.stopping.closing.as_ref();
        let is_read = |(partition, &end): (&i32, &i64)| {
            let closed_by_ns = closing.and_then(|closing| closing.get(partition));
            self.partitions.get(partition).is_some_and(|owned| match closed_by_ns {
                Some(&time_ns) => owned.has_come_to(time_ns),
                None => owned.is_read_to(end),
            })
        };
        if self.stopping.draining || !stop.ticks.iter().all(is_read) || self.close_bars() {
            return Ok(());
        }
        self.end_closing();
        self.stopping.draining = true;
        self.step(now_ns, Input::Draining(Draining {}))?;
        self.begin_last_snapshots(now_ns)
    }

    /// Begins a snapshot of each partition that is read to its end and has no snapshot at that offset.
    fn begin_last_snapshots(&mut self, now_ns: i64) -> Result<(), RecordError> {
        let is_read = |(partition, owned): (&i32, &Partition)| {
            owned.is_read_to(self.stop_offset(*partition)).then_some(*partition)
        };
        let partitions: Vec<i32> = self.partitions.iter().filter_map(is_read).collect();
        for partition in partitions {
            if let Some(owned) = self.partitions.get_mut(&partition) {
                owned.skip_to_read();
            }
            self.begin_snapshot(now_ns, partition, 1)?;
        }
        Ok(())
    }

    /// Begins a snapshot of a partition, at least `records_min` records after the last one.
    fn begin_snapshot(&mut self, now_ns: i64, partition: i32, records_min: i64) -> Result<(), RecordError> {
        let Some(owned) = self.partitions.get_mut(&partition) else { return Ok(()) };
        owned.queue_lengths(&mut self.lengths);
        owned.begin_snapshot(records_min, self.config.times.evict_idle_ns);
        self.arrived(now_ns, partition)
    }
}
