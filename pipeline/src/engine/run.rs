//! The engine's loop: threads, clock and log around the [`Core`].

mod lanes;
mod requests;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use hdrhistogram::Histogram;
use warptape_eventlog::{EventLog, TopicPartition};
use warptape_schemas::LifecycleEvent;
use warptape_stages::RepeatedTrades;

use super::beside::Beside;
use super::commit::{CommitEvent, CommitRequest, Committer};
use super::core::{Command, Core};
use super::failpoint::{self, Failpoint};
use super::journal_tail::last_entry;
use super::lanes::{Lane, LaneEvent};
use super::lifecycle::LifecycleLog;
use super::requests::{RequestCommand, RequestNames, RequestSource};
use super::restore::{Restored, restore};
use super::segment::{OtherSegments, config_in_journal, is_other};
use super::source::{Assigned, Source, SourceCommand, SourceEvent};
use super::summary::{LATENCY_NS_MAX, latency_histogram};
use super::telemetry::Telemetry;
use super::worker::Worker;
use super::{
    Clock, Concluded, Conclusion, EngineConfig, EngineError, Preparation, Prepared, Progress, Summary,
    record_limits,
};
use crate::transaction::{Outage, TransactionWriter};

/// How long a turn of the loop may take, in which lanes are judged.
const TURN_MAX: Duration = Duration::from_secs(1);
/// Longest sleep of the loop when nothing happens.
const IDLE_WAIT_MAX: Duration = Duration::from_millis(50);

/// How long a process that shall end waits for a commit and what it takes to learn its outcome.
const COMMIT_STOPPING_MAX: Duration = Duration::from_secs(60);

/// How long revoked partitions may take to commit what they caused before they are let go without.
const REVOKE_MAX: Duration = Duration::from_secs(10);

/// A request whose transaction was aborted.
struct AbortedCommit {
    request: CommitRequest,
    again_at_ns: i64,
}

/// Partitions that the source wants to hand over.
struct Revoking {
    partitions: Vec<i32>,
    until_ns: i64,
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

/// Runs an engine until it is told to stop, or fails. Topics must exist.
pub fn run(
    log: Arc<dyn EventLog>,
    config: EngineConfig,
    progress: Arc<Progress>,
    stop: Receiver<Stop>,
) -> Result<Summary, EngineError> {
    let mut engine = Engine::start(log, config, progress)?;
    let result = engine.begin().and_then(|()| engine.turn_until_done(&stop));
    engine.finish(result)
}

struct Engine {
    log: Arc<dyn EventLog>,
    config: EngineConfig,
    progress: Arc<Progress>,
    clock: Clock,
    core: Core,
    lifecycle: LifecycleLog,
    source: Source,
    requests: RequestSource,
    /// Partitions whose risk requests wait until the ticks before these offsets are accepted: what was published when the
    /// partition came is in the market then.
    requests_wait: BTreeMap<i32, i64>,
    preparing: Beside<Preparation, Prepared>,
    concluding: Beside<Conclusion, Concluded>,
    committer: Committer,
    telemetry: Telemetry,
    lanes: Vec<Option<Lane>>,
    /// Threads of lanes that have said that they failed.
    leaving: Vec<Worker>,
    lane_events: Receiver<LaneEvent>,
    lane_events_sender: Sender<LaneEvent>,
    /// Held, never looked at.
    _journal_owner: Box<dyn Send>,
    /// When the request was sealed that is with the commit thread, or waits to be sent again.
    commit_sent: Option<Instant>,
    aborted: Option<AbortedCommit>,
    /// Since when nothing was committed for aborts.
    aborting: Option<Outage>,
    revoking: Option<Revoking>,
    /// The stage configuration that the journal says was in force before this life, once it was asked.
    older_segment: Option<Option<String>>,
    /// Trades whose id their symbol had before.
    repeated: RepeatedTrades,
    last_commit_ns: i64,
    first_read_ns: Option<i64>,
    last_advance_ns: i64,
    latency_ns: Histogram<u64>,
    /// When it began to end. Read by the commit thread, which is less patient from then on.
    stopping_since: Arc<OnceLock<Instant>>,
}

impl Engine {
    fn start(
        log: Arc<dyn EventLog>,
        mut config: EngineConfig,
        progress: Arc<Progress>,
    ) -> Result<Self, EngineError> {
        let clock = Clock::start();
        // Subscribing takes the group's place: a second process is refused here, before it fences the first.
        let mut consumer = log.subscribe(&config.group, &[&config.topics.ticks])?;
        consumer.leave_headers();
        // A journal is one chain: whoever writes it owns it, whatever his group.
        let journal_owner = log.claim(&format!("{}.writer", config.topics.journal))?;
        // Before there is a producer, which keeps to these limits.
        let result_bytes_max = record_limits::learn(log.as_ref(), &config.topics)?;
        config.risk_result_bytes_max = config.risk_result_bytes_max.min(result_bytes_max);
        let stopping_since = Arc::new(OnceLock::new());
        let of_writer = stopping_since.clone();
        let of_writer = Box::new(move || of_writer.get().copied());
        let writer = TransactionWriter::new(log.clone(), config.transactional_id(), of_writer)?;
        let lifecycle = LifecycleLog::new(log.clone(), &config)?;
        let last = last_entry(log.as_ref(), &config.topics.journal, config.ordinal)?;
        let core = Core::new(config.clone(), last.as_ref())?;
        let fetch_max = [config.poll_records_max, config.poll_bytes_max];
        let batches_max = config.scheduler.lane_batches_max as usize;
        // Lanes wait where there is no room, and the engine never waits for a lane.
        let (lane_events_sender, lane_events) = bounded(config.lanes.len() * (batches_max + 3));
        Ok(Self {
            source: Source::start(
                log.clone(),
                consumer,
                &config.topics,
                core.ownership().clone(),
                clock,
                fetch_max,
            ),
            requests: RequestSource::start(
                log.clone(),
                RequestNames {
                    group: config.group.clone(),
                    requests: config.topics.risk_requests.clone(),
                    results: config.topics.risk_results.clone(),
                },
            ),
            requests_wait: BTreeMap::new(),
            preparing: Beside::start("prepare", Preparation::run),
            concluding: Beside::start("conclude", move |conclusion: Conclusion| {
                conclusion.run(|| clock.now_ns())
            }),
            committer: Committer::start(writer, config.clone(), core.ownership().clone(), clock),
            telemetry: Telemetry::start(
                config.devices.clone(),
                config.device_names(),
                config.device_sample_interval,
            ),
            lanes: Vec::new(),
            leaving: Vec::new(),
            log,
            config,
            progress,
            clock,
            core,
            lifecycle,
            lane_events,
            lane_events_sender,
            _journal_owner: journal_owner,
            commit_sent: None,
            aborted: None,
            aborting: None,
            revoking: None,
            older_segment: None,
            repeated: RepeatedTrades::default(),
            last_commit_ns: clock.now_ns(),
            first_read_ns: None,
            last_advance_ns: clock.now_ns(),
            latency_ns: latency_histogram(),
            stopping_since,
        })
    }

    fn begin(&mut self) -> Result<(), EngineError> {
        for index in 0..self.config.lanes.len() {
            let fault = self.config.lane_faults.iter().find(|fault| fault.lane as usize == index);
            let lane = self.start_lane(index, 0, fault.map(|fault| fault.after_batches));
            self.lanes.push(Some(lane));
        }
        self.core.begin(self.clock.now_ns())?;
        self.obey()
    }

    fn turn_until_done(&mut self, stop: &Receiver<Stop>) -> Result<(), EngineError> {
        let nothing = never();
        let mut stop_asked = false;
        let mut turned_at = Instant::now();
        while !(self.core.is_drained() && self.commit_sent.is_none() && !self.core.has_uncommitted()) {
            while let Ok(event) = self.lane_events.try_recv() {
                self.on_lane(event)?;
            }
            self.commit_if_due()?;
            if let (Some(since), Some(sent)) = (self.stopping_since.get(), self.commit_sent) {
                let waited = sent.max(*since).elapsed();
                if waited >= COMMIT_STOPPING_MAX {
                    return Err(EngineError::CommitUnanswered { waited_s: waited.as_secs() });
                }
            }
            let source = if self.core.takes_records() { self.source.events.clone() } else { never() };
            let requests = if self.core.takes_requests() { self.requests.events.clone() } else { never() };
            select! {
                recv(self.lane_events) -> event => {
                    self.on_lane(event.expect("the engine holds a sender"))?;
                }
                recv(self.telemetry.samples) -> sample => match sample {
                    Ok((device, sample)) => self.on_sample(device, sample)?,
                    // It goes on without figures.
                    Err(_) => self.telemetry.samples = never(),
                },
                recv(self.committer.events) -> event => {
                    self.on_commit(event.map_err(|_| EngineError::ThreadGone { thread: "commit" })?)?;
                }
                recv(source) -> event => {
                    self.on_source(event.map_err(|_| EngineError::ThreadGone { thread: "source" })?)?;
                }
                recv(requests) -> event => {
                    self.on_requests(event.map_err(|_| EngineError::ThreadGone { thread: "requests" })?)?;
                }
                recv(self.preparing.done()) -> prepared => self.on_prepared(prepared.ok())?,
                recv(self.concluding.done()) -> concluded => self.on_concluded(concluded.ok())?,
                recv(if stop_asked { &nothing } else { stop }) -> stop => {
                    stop_asked = true;
                    // A sender that is gone wants nothing any more: the engine stops.
                    let stop = stop.unwrap_or(Stop::Now);
                    if stop == Stop::Now {
                        self.begin_to_end();
                    }
                    self.core.on_stop(self.clock.now_ns(), stop)?;
                }
                default(self.wait()) => {}
            }
            // Who was stopped himself cannot tell who else is slow.
            if turned_at.elapsed() < TURN_MAX {
                self.fence_overdue_lanes()?;
            }
            turned_at = Instant::now();
            self.core.on_time(self.clock.now_ns())?;
            self.open_requests()?;
            self.obey()?;
            self.release_if_settled()?;
            self.progress.decisions.store(self.core.decisions_total(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn begin_to_end(&self) {
        self.stopping_since.get_or_init(Instant::now);
    }

    /// How long the loop may sleep.
    fn wait(&self) -> Duration {
        let now_ns = self.clock.now_ns();
        let until = |at_ns: i64| Duration::from_nanos(at_ns.saturating_sub(now_ns).max(0) as u64);
        let mut wait = IDLE_WAIT_MAX;
        if let Some(at_ns) = self.core.wake_at_ns() {
            wait = wait.min(until(at_ns));
        }
        if self.commit_sent.is_none() && self.core.has_uncommitted() {
            wait = wait.min(until(self.commit_due_ns()));
        }
        if let Some(aborted) = &self.aborted {
            wait = wait.min(until(aborted.again_at_ns));
        }
        wait
    }

    /// Carries out what the core commanded.
    fn obey(&mut self) -> Result<(), EngineError> {
        loop {
            let commands = self.core.take_commands();
            if commands.is_empty() {
                return Ok(());
            }
            for command in commands {
                match command {
                    Command::Lane(lane, command) => self.command_lane(lane, command),
                    Command::Slice(lane, slice) => {
                        // One that is lost does no more, which is on its way to the core.
                        if let Some(lane) = &self.lanes[lane as usize] {
                            lane.run_slice(slice);
                        }
                    }
                    Command::Pause(partition) => self.command_source(SourceCommand::Pause(partition))?,
                    Command::Resume(partition) => self.command_source(SourceCommand::Resume(partition))?,
                    Command::Seek { partition, offset, generation } => {
                        self.command_source(SourceCommand::Seek { partition, offset, generation })?;
                    }
                    Command::Restore { partition, sealed_offset } => {
                        self.restore(partition, sealed_offset)?
                    }
                    Command::ReadRequests { partition, offset, generation } => {
                        self.command_requests(RequestCommand::Read { partition, offset, generation })?;
                    }
                    Command::ForgetRequests { partition } => {
                        self.command_requests(RequestCommand::Forget { partition })?;
                    }
                    Command::Prepare(preparation) => self.preparing.run(preparation)?,
                    Command::Conclude(conclusion) => self.concluding.run(conclusion)?,
                    Command::Lifecycle(event, detail) => {
                        self.lifecycle.write(self.clock.now_ns(), event, &detail);
                    }
                }
            }
        }
    }

    fn command_source(&self, command: SourceCommand) -> Result<(), EngineError> {
        self.source.commands.send(command).map_err(|_| {
            // The thread has ended; what it said last is the reason.
            let failed = |event| match event {
                SourceEvent::Failed(error) => Some(EngineError::Log(error)),
                SourceEvent::Assigned(_)
                | SourceEvent::Revoked(_)
                | SourceEvent::Lost(_)
                | SourceEvent::Positions(_)
                | SourceEvent::Records { .. } => None,
            };
            self.source.events.iter().find_map(failed).unwrap_or(EngineError::ThreadGone { thread: "source" })
        })
    }

    /// Takes partitions over, unless that would begin segments of the log that nobody asked for.
    fn on_assigned(&mut self, partitions: &[Assigned]) -> Result<(), EngineError> {
        let mut others = OtherSegments::default();
        let mut all = Vec::with_capacity(partitions.len());
        for &Assigned { partition, committed, .. } in partitions {
            let committed = committed.unwrap_or(0);
            let restored = self.read_state(partition, committed)?;
            let segment = match &restored.segment {
                None if committed > 0 => self.segment_in_journal()?,
                segment => segment.clone(),
            };
            if let Some(segment) = segment.filter(|segment| is_other(segment, &self.config.stages))
                && committed > 0
            {
                others.add(&segment, committed);
            }
            all.push(restored);
        }
        others.allow(&self.config.stages, self.config.new_segment)?;
        for (&Assigned { partition, committed, end }, restored) in partitions.iter().zip(all) {
            failpoint::reach(Failpoint::DuringRestore);
            let now_ns = self.clock.now_ns();
            self.core.on_restored(now_ns, partition, restored, committed.unwrap_or(0))?;
            self.requests_wait.insert(partition, end);
        }
        Ok(())
    }

    /// The stage configuration of before there were records of segments.
    fn segment_in_journal(&mut self) -> Result<Option<String>, EngineError> {
        if let Some(known) = &self.older_segment {
            return Ok(known.clone());
        }
        let found = config_in_journal(self.log.as_ref(), &self.config.topics.journal, self.config.ordinal)?;
        Ok(self.older_segment.insert(found).clone())
    }

    fn read_state(&self, partition: i32, sealed_offset: i64) -> Result<Restored, EngineError> {
        let snapshots = TopicPartition { topic: self.config.topics.snapshots.clone(), partition };
        let (stages, isa) = (&self.config.stages, self.config.isa);
        Ok(restore(self.log.as_ref(), &snapshots, sealed_offset, stages, isa)?)
    }

    fn restore(&mut self, partition: i32, sealed_offset: i64) -> Result<(), EngineError> {
        let restored = self.read_state(partition, sealed_offset)?;
        failpoint::reach(Failpoint::DuringRestore);
        Ok(self.core.on_restored(self.clock.now_ns(), partition, restored, sealed_offset)?)
    }

    fn on_source(&mut self, event: SourceEvent) -> Result<(), EngineError> {
        match event {
            SourceEvent::Assigned(partitions) => self.on_assigned(&partitions)?,
            SourceEvent::Revoked(partitions) => {
                let now_ns = self.clock.now_ns();
                self.core.on_revoking(now_ns, &partitions)?;
                self.revoking =
                    Some(Revoking { partitions, until_ns: now_ns + REVOKE_MAX.as_nanos() as i64 });
            }
            SourceEvent::Lost(partitions) => {
                self.give_up(&partitions, "lost")?;
                self.command_source(SourceCommand::Release)?;
            }
            SourceEvent::Positions(positions) => {
                for (partition, generation, position) in positions {
                    self.core.on_position(self.clock.now_ns(), partition, generation, position)?;
                }
            }
            SourceEvent::Records { partition, generation, records, read_at_ns } => {
                self.first_read_ns.get_or_insert(read_at_ns);
                let now_ns = self.clock.now_ns();
                let accepted = self.core.on_records(now_ns, partition, generation, &records, read_at_ns)?;
                Progress::add(&self.progress.ticks, accepted.ticks);
                Progress::add(&self.progress.late, accepted.late);
                Progress::add(&self.progress.dead_letters, accepted.dead);
                self.count_repeated(accepted.repeated);
            }
            SourceEvent::Failed(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Counts trades whose id their symbol had before, and warns of the first.
    fn count_repeated(&mut self, repeated: RepeatedTrades) {
        if self.repeated.first.is_none() && repeated.first.is_some() {
            tracing::warn!("{repeated}");
        }
        Progress::add(&self.progress.repeated_trades, repeated.repeated);
        self.repeated.add(repeated);
    }

    /// Lets go of revoked partitions once what they caused is committed, or when that takes too long.
    fn release_if_settled(&mut self) -> Result<(), EngineError> {
        let Some(revoking) = &self.revoking else { return Ok(()) };
        let is_settled = |&partition: &i32| self.core.is_settled(partition);
        let settled = self.commit_sent.is_none() && revoking.partitions.iter().all(is_settled);
        if !settled && self.clock.now_ns() < revoking.until_ns {
            return Ok(());
        }
        let partitions = self.revoking.take().expect("it was there a line ago").partitions;
        self.give_up(&partitions, if settled { "committed" } else { "not committed in time" })?;
        self.command_source(SourceCommand::Release)
    }

    /// Partitions are no longer this process's. What they caused and is not committed, their next owner does again.
    fn give_up(&mut self, partitions: &[i32], how: &str) -> Result<(), EngineError> {
        for &partition in partitions {
            let now_ns = self.clock.now_ns();
            self.requests_wait.remove(&partition);
            self.core.on_revoked(now_ns, partition)?;
            let detail = format!("partition {partition}, {how}");
            self.lifecycle.write(now_ns, LifecycleEvent::PartitionRevoked, &detail);
        }
        self.obey()
    }

    fn commit_due_ns(&self) -> i64 {
        let interval = match self.core.has_risk_results() {
            true => self.config.risk_commit_interval.min(self.config.commit_interval),
            false => self.config.commit_interval,
        };
        self.last_commit_ns + interval.as_nanos() as i64
    }

    fn commit_if_due(&mut self) -> Result<(), EngineError> {
        let now_ns = self.clock.now_ns();
        // Behind a source that has ended nothing is this process's, which the journal has not been told.
        let is_due = |aborted: &mut AbortedCommit| aborted.again_at_ns <= now_ns;
        if !self.core.ownership().has_ended()
            && let Some(aborted) = self.aborted.take_if(is_due)
        {
            return self.commit_again(aborted);
        }
        let hurry = self.core.is_full() || self.core.is_drained() || self.revoking.is_some();
        let due = hurry || now_ns >= self.commit_due_ns();
        if self.commit_sent.is_some() || !due || !self.core.has_uncommitted() {
            return Ok(());
        }
        let request = self.core.seal(now_ns)?;
        self.progress.keep_latest(request.newest_signals());
        self.progress.waiting_rows.store(self.core.waiting_rows() as i64, Ordering::Relaxed);
        self.last_commit_ns = now_ns;
        self.commit_sent = Some(Instant::now());
        self.committer.requests.send(request).map_err(|_| EngineError::ThreadGone { thread: "commit" })
    }

    fn on_commit(&mut self, event: CommitEvent) -> Result<(), EngineError> {
        match event {
            CommitEvent::Done { receipt, committed_at_ns } => {
                self.commit_sent = None;
                self.aborting = None;
                if receipt.advances {
                    self.last_advance_ns = committed_at_ns;
                }
                Progress::add(&self.progress.signals, receipt.signals());
                for (read_at_ns, count) in receipt.signals_by_read {
                    let latency_ns = (committed_at_ns - read_at_ns).clamp(0, LATENCY_NS_MAX as i64) as u64;
                    self.latency_ns.record_n(latency_ns, count).expect("the value was clamped to the bounds");
                }
                Progress::add(&self.progress.commits, 1);
                Ok(())
            }
            CommitEvent::Aborted { request, error } => {
                let now_ns = self.clock.now_ns();
                if self.aborting.is_none() {
                    self.lifecycle.write(now_ns, LifecycleEvent::CommitFailed, &error.to_string());
                }
                let outage = self.aborting.get_or_insert_with(Outage::begin);
                if outage.is_given_up(self.stopping_since.get().copied()) {
                    return Err(error.into());
                }
                let again_at_ns = now_ns + outage.next_pause().as_nanos() as i64;
                self.aborted = Some(AbortedCommit { request, again_at_ns });
                Ok(())
            }
            CommitEvent::Failed(error) => Err(error.into()),
        }
    }

    /// Sends a request again whose transaction was aborted, without what others own by now.
    fn commit_again(&mut self, aborted: AbortedCommit) -> Result<(), EngineError> {
        let mut request = aborted.request;
        self.core.amend(&mut request);
        self.committer.requests.send(request).map_err(|_| EngineError::ThreadGone { thread: "commit" })
    }

    /// Ends all threads, and sums up.
    fn finish(self, result: Result<(), EngineError>) -> Result<Summary, EngineError> {
        self.begin_to_end();
        if result.is_err() {
            // What is still on its way to the log is not waited for as long as others wait for these partitions.
            self.core.ownership().end_all();
        }
        let now_ns = self.clock.now_ns();
        match &result {
            Ok(()) => self.lifecycle.write(now_ns, LifecycleEvent::Stopped, "drained"),
            Err(error) => self.lifecycle.write(now_ns, LifecycleEvent::Failed, &error.to_string()),
        }
        self.source.stop();
        self.requests.stop();
        self.preparing.stop();
        self.concluding.stop();
        self.committer.stop();
        self.lifecycle.stop();
        self.telemetry.stop();
        // A lane that has something to say finds nobody, and ends.
        drop(self.lane_events);
        let lanes = self.lanes.into_iter().flatten().map(Lane::end);
        Worker::join_all(lanes.chain(self.leaving).collect());
        result?;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Ok(Summary {
            ticks: read(&self.progress.ticks),
            late: read(&self.progress.late),
            dead_letters: read(&self.progress.dead_letters),
            repeated: self.repeated,
            signals: read(&self.progress.signals),
            decisions: read(&self.progress.decisions),
            commits: read(&self.progress.commits),
            symbols: self.core.symbol_count() as u64,
            active_ns: self.first_read_ns.map_or(0, |first| (self.last_advance_ns - first).max(0)),
            latency_ns: self.latency_ns,
        })
    }
}
