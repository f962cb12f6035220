//! The state machine: events in with the time, commands out.
//!
//! It owns the partitions and executes the scheduler's decisions on them. What reaches outside – lanes, source, restores
//! – becomes a [`Command`] for the shell. It must not decide anything that the scheduler could.

mod closing;
mod commits;
mod control;
mod gates;
mod lanes;
mod membership;
mod pages;
mod risk;
mod status;

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use warptape_events::journal::{
    Arrived, AskPrices, Breaker, Decision, Dispatch, Draining, Input, JournalEntry, LaneId, Place, Started,
    Woke,
};
use warptape_events::{DecodeTicks, LifecycleEvent};
use warptape_record::Record;
use warptape_scheduler::RULES;

use crate::commit::CommitRequest;
use crate::config::Config;
use crate::control::ControlDesk;
use crate::error::CoreError;
use crate::lanes::{BatchPart, GroupId, LaneBatch, LaneCommand, Slice};
use crate::partition::{Accepted, PageId, Partition};
use crate::positions::JournalPositions;
use crate::recorder::{RecordError, Recorder};
use crate::risk::{Concluded, Conclusion, Preparation, RiskDesk};
use crate::split_symbols::SplitSymbols;

use commits::Commits;
pub use commits::{AfterAbort, CommitAttempt};
pub use lanes::Doing;
use lanes::Lanes;
pub use membership::Assigned;
use membership::Membership;
pub use risk::{Committed, ReadRequest};
pub use status::{LaneStatus, PartitionStatus, Status};

/// What the shell has to do, in order.
pub enum Command {
    /// Start a lane's threads. What they tell carries the number of this life.
    StartLane {
        /// The lane.
        lane: LaneId,
        /// How often it was started before.
        life: u32,
    },
    /// End a lane's threads.
    EndLane {
        /// The lane.
        lane: LaneId,
        /// Whether they do not answer any more, so that nobody should wait for them.
        hangs: bool,
    },
    /// Tell a lane.
    Lane(LaneId, LaneCommand),
    /// Have a lane do units of a risk task, beside all else.
    Slice(LaneId, Slice),
    /// A partition is this process's under a new assignment: transactions may commit what was sealed under it.
    Own {
        /// The partition.
        partition: i32,
        /// The number of the assignment.
        assignment: u64,
    },
    /// A partition is no longer this process's: from now on no transaction may commit what was sealed of it.
    LetGo {
        /// The partition.
        partition: i32,
    },
    /// All partitions that were revoked or lost are let go: the source may tell the group so.
    ReleaseSource,
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
    /// Restore a partition from its snapshot beside the engine, and hand it to [`Core::on_restored`].
    Restore {
        /// Its number, counted over all restores.
        number: u64,
        /// The partition.
        partition: i32,
        /// Outputs of records before this offset exist, or are in the commit in flight.
        sealed_offset: i64,
        /// Whether this process has not owned it so far.
        is_new: bool,
    },
    /// Read pages of symbols that left memory from the snapshots of a partition, and hand them to [`Core::on_pages_read`].
    ReadPages {
        /// Its number, counted with restores.
        number: u64,
        /// The partition.
        partition: i32,
        /// The pages.
        pages: Vec<PageId>,
    },
    /// Find out whether pages can be read from the snapshots of a partition, which are committed, and tell [`Core::on_pages_found`].
    FindPages {
        /// The partition.
        partition: i32,
        /// The pages.
        pages: Vec<PageId>,
    },
    /// Find out which risk requests of a partition are answered, and tell [`Core::on_requests_opened`].
    OpenRequests {
        /// The partition.
        partition: i32,
        /// The assignment that this is for.
        assignment: u64,
        /// How far they are answered.
        committed: Committed,
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
    /// Nobody waits for a preparation any more: it may be left.
    Abandon {
        /// Its number.
        number: u64,
    },
    /// Conclude a round beside the engine, which takes long, and hand it to [`Core::on_concluded`].
    Conclude(Conclusion),
    /// Solve the capacity problem beside the engine, and hand its prices to [`Core::on_priced`].
    AskPrices(AskPrices),
    /// Write this as one transaction, and tell [`Core::on_committed`] or [`Core::on_aborted`].
    Commit(Box<CommitRequest>),
    /// The process is to end: what is under way is waited for with less patience from now on.
    Hurry,
    /// Partitions begin a new segment of the log, as was asked for: tell people.
    NewSegment {
        /// The stage configuration before, as JSON.
        before: String,
        /// Partitions that it concerns.
        partitions: usize,
        /// Tick records before the new segments, which are folded again.
        records: i64,
    },
    /// The log has removed records that the state of a partition lacks, or that nobody has processed: tell people.
    TicksRemoved {
        /// The partition.
        partition: i32,
        /// The first record that is left.
        first: i64,
        /// Offset of the newest state there is.
        snapshot_offset: i64,
        /// Whether the partition goes on without that state.
        is_emptied: bool,
        /// First of the records that nobody has processed; `None` where all were.
        lost_from: Option<i64>,
    },
    /// A lane's breaker changed its state: tell people.
    Breaker(Breaker),
    /// Write a lifecycle record.
    Lifecycle(LifecycleEvent, String),
}

/// How an engine is asked to end. Either way it processes and commits what it has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Accept nothing more.
    Now,
    /// Accept what lies before these offsets of the partitions (of those not named: nothing more).
    At {
        /// Of ticks.
        ticks: Vec<(i32, i64)>,
        /// Of risk requests.
        requests: Vec<(i32, i64)>,
    },
}

/// How far the end has come that was asked for.
#[derive(Default)]
struct Stopping {
    at: Option<StopAt>,
    /// Since when the process is to end as soon as possible.
    since_ns: Option<i64>,
    draining: bool,
    /// Event times that were said so that all bars close, by partition; `None` before that.
    closing: Option<BTreeMap<i32, i64>>,
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
    /// Rises with every restore of any partition.
    generation: u64,
    /// Rounds that were finished and concluded in this step.
    concluded: Vec<Concluded>,
    commands: Vec<Command>,
    wake_at_ns: Option<i64>,
    lengths: Vec<usize>,
    split_symbols: SplitSymbols,
}

/// Symbols that one step compares with those of other partitions.
const SYMBOLS_COMPARED_MAX: usize = 4096;

impl Core {
    /// Continues the journal after `last`, which has come as far as `positions`, or begins it.
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
            commands: Vec::new(),
            wake_at_ns: None,
            lengths: Vec::new(),
            split_symbols: SplitSymbols::default(),
        })
    }

    /// The commands since the last call.
    pub fn take_commands(&mut self) -> Vec<Command> {
        let abandoned = self.risk.arrivals.take_abandoned();
        self.commands.extend(abandoned.into_iter().map(|number| Command::Abandon { number }));
        take(&mut self.commands)
    }

    /// When [`Core::on_time`] is wanted.
    pub fn wake_at_ns(&self) -> Option<i64> {
        let wakes =
            [self.wake_at_ns, self.risk.arrivals.deadline_ns(), self.commit_at_ns(), self.release_at_ns()];
        wakes.into_iter().flatten().min()
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

    /// The process begins.
    pub fn begin(&mut self, now_ns: i64) -> Result<(), RecordError> {
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
        self.commands.push(Command::Lifecycle(LifecycleEvent::Started, detail));
        self.step(now_ns, Input::Started(Box::new(started)))?;
        // They are said once in each life, so that its journal explains itself.
        for trained in self.config.networks.clone() {
            self.step(now_ns, Input::Trained(trained))?;
        }
        self.write_positions(now_ns)
    }

    /// Has the journal say how far it has come.
    fn write_positions(&mut self, now_ns: i64) -> Result<(), RecordError> {
        let positions = self.recorder.positions(&self.config.group);
        self.step(now_ns, positions)
    }

    /// A partition was read up to an offset, after which the log may have no more records.
    pub fn on_position(
        &mut self,
        now_ns: i64,
        partition: i32,
        generation: u64,
        position: i64,
    ) -> Result<(), RecordError> {
        // What lies behind a stop is left to others.
        let end = self.stop_offset(partition);
        match self.partitions.get_mut(&partition) {
            Some(owned) if owned.generation == generation => owned.read_to = position.min(end),
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
    ) -> Result<Accepted, CoreError> {
        let end = self.stop_offset(partition);
        let records = &records[..records.partition_point(|record| record.offset < end)];
        let Some(owned) = self.partitions.get_mut(&partition) else { return Ok(Accepted::default()) };
        if owned.generation != generation || records.is_empty() {
            return Ok(Accepted::default());
        }
        owned.queue_lengths(&mut self.lengths);
        let accepted = owned.accept(records, read_at_ns, self.decoder.as_mut());
        let idle_ns = self.config.times.evict_idle_ns;
        owned.begin_snapshot(self.config.limits.snapshot_interval_records, idle_ns);
        if owned.waits_for_pages() {
            // Records behind this one are read again once the pages are there.
            self.generation += 1;
            owned.generation = self.generation;
            self.commands.push(Command::Pause(partition));
        }
        self.compare_symbols(partition);
        self.arrived(now_ns, partition)?;
        self.drain_if_read(now_ns)?;
        self.see_to_pages(partition)?;
        Ok(accepted)
    }

    /// Looks which symbols of a partition others have as well: of the next ones, so that a step stays short where many come at once.
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

    /// A stop was asked for.
    pub fn on_stop(&mut self, now_ns: i64, stop: Stop) -> Result<(), RecordError> {
        let stop = match stop {
            Stop::Now => {
                self.stopping.since_ns.get_or_insert(now_ns);
                self.commands.push(Command::Hurry);
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

    /// Time went by. Wanted after all other events as well: much of what they make possible is begun here.
    pub fn on_time(&mut self, now_ns: i64) -> Result<(), CoreError> {
        self.on_wake(now_ns)?;
        self.write_entries();
        self.give_up_overdue(now_ns)?;
        self.prepare_requests();
        self.release_if_settled(now_ns)?;
        if self.stopping.draining {
            // One that was under way when the draining began may have been an earlier one.
            self.begin_last_snapshots(now_ns)?;
        }
        self.write_checkpoint(now_ns)?;
        self.close_quiet_bars(now_ns);
        self.commit_if_due(now_ns)?;
        self.check_commit(now_ns)
    }

    /// The scheduler decides what it wanted to decide at this time.
    pub fn on_wake(&mut self, now_ns: i64) -> Result<(), CoreError> {
        if self.wake_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.wake_at_ns = None;
            self.step(now_ns, Input::Woke(Woke {}))?;
        }
        Ok(())
    }

    /// Encodes what was recorded. To be called when commands are carried out, because lanes wait for those; otherwise the next step does it.
    pub fn write_entries(&mut self) {
        self.recorder.write();
    }

    /// Writes the scheduler's state into the journal, from time to time.
    fn write_checkpoint(&mut self, now_ns: i64) -> Result<(), RecordError> {
        let interval_ns = self.config.times.checkpoint_interval_ns;
        // A process that has done everything commits, and records nothing more.
        if !self.recorder.is_checkpoint_due(now_ns, interval_ns) || self.is_drained() {
            return Ok(());
        }
        for part in self.recorder.checkpoint(now_ns) {
            self.step(now_ns, part)?;
        }
        // The positions are open while a transaction is under way: it may be committed or not.
        if self.is_committing() { Ok(()) } else { self.write_positions(now_ns) }
    }

    /// True if a stop was asked for.
    pub fn is_stopping(&self) -> bool {
        self.stopping.at.is_some()
    }

    /// Whether everything before the stop is processed and committed.
    pub fn is_done(&self) -> bool {
        self.is_drained() && !self.is_committing() && !self.has_uncommitted()
    }

    /// Whether everything before the stop is processed.
    fn is_drained(&self) -> bool {
        let is_read = |owned: &Partition| owned.is_read_to(self.stop_offset(owned.source.partition));
        let drained = |owned: &Partition| owned.is_drained() && is_read(owned);
        let ticks =
            self.stopping.draining && self.membership.is_settled() && self.partitions.values().all(drained);
        ticks && self.are_requests_drained()
    }

    /// Where reading of a partition ends: never, unless a stop was asked for.
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
            Decision::Pause(pause) => self.commands.push(Command::Pause(pause.partition)),
            Decision::Resume(resume) => {
                let waits = self.partitions.get(&resume.partition).is_some_and(Partition::waits_for_pages);
                // Where a record waits for pages, reading goes on once these are there.
                if !waits {
                    self.commands.push(Command::Resume(resume.partition));
                }
            }
            Decision::Fence(fence) => {
                let detail = format!("lane {}, {} groups: {}", fence.lane, fence.groups, fence.reason);
                self.commands.push(Command::Lifecycle(LifecycleEvent::LaneLost, detail));
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
                self.commands.push(Command::Lane(release.lane, command));
            }
            // What follows from these, if anything, are decisions of their own.
            Decision::Drift(_) | Decision::FellBack(_) | Decision::Scale(_) | Decision::Shadow(_) => {}
            Decision::Admit(_) | Decision::Split(_) | Decision::Reserve(_) | Decision::Assign(_) => {}
            Decision::AskPrices(question) => self.commands.push(Command::AskPrices(question.clone())),
            Decision::Reject(reject) => self.reject(now_ns, reject),
            Decision::RunSlice(run) => self.run_slice(now_ns, run),
            Decision::Expire(expire) => self.expire(now_ns, expire),
            Decision::Shed(shed) => self.shed(now_ns, shed),
            Decision::Finish(finish) => self.finish_round(now_ns, finish),
            Decision::Controlled(controlled) => self.controlled(now_ns, controlled.clone()),
            Decision::Breaker(breaker) => self.commands.push(Command::Breaker(*breaker)),
            // What follows from it are decisions of their own.
            Decision::Headroom(_) => {}
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
        self.lanes.begin_batch(dispatch.batch, dispatch.lane, dispatch.rows);
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
        self.step(now_ns, Input::Arrived(Arrived { partition, next_offset, groups }))
    }

    /// Begins to drain once everything before the stop is accepted: with a last snapshot, so that the next start has
    /// nothing to repeat.
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

    /// Takes a snapshot of each partition that is read to its end and has none of there.
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

    /// Takes a snapshot of a partition, so many records at least behind the one before.
    fn begin_snapshot(&mut self, now_ns: i64, partition: i32, records_min: i64) -> Result<(), RecordError> {
        let Some(owned) = self.partitions.get_mut(&partition) else { return Ok(()) };
        owned.queue_lengths(&mut self.lengths);
        owned.begin_snapshot(records_min, self.config.times.evict_idle_ns);
        self.arrived(now_ns, partition)
    }
}
