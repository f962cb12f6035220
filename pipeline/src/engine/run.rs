//! The shell around the core: it brings events, executes commands, and decides nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, never, select};
use warptape_engine::{AfterAbort, Command, Config, Core, JournalPositions, Prepared, Stop};
use warptape_eventlog::{EventLog, LogError, TopicPartition};
use warptape_schemas::TickDecoder;

use super::anchoring::Anchors;
use super::breaker;
use super::commit::{CommitEvent, Committer};
use super::controls::{ControlEvent, ControlSource};
use super::fence::Fence;
use super::figures::Figures;
use super::holding::{Holder, next_control};
use super::journal_tail::{last_entry, warn_of_missing};
use super::journals::Journals;
use super::lane_threads::LaneThreads;
use super::lanes::LaneEvent;
use super::lifecycle::LifecycleLog;
use super::preparing::{Concluding, Preparing, Pricing};
use super::requests::{RequestCommand, RequestEvent, RequestNames, RequestSource};
use super::restore::{Done, Restore, RestoreEvent, Restoring, tell_removed};
use super::segment::new_segment;
use super::source::{SourceCommand, SourceEvent, SourceThread};
use super::telemetry::Telemetry;
use super::tracer::Tracer;
use super::{Clock, EngineConfig, EngineError, Progress, Summary, process_log, record_limits};
use crate::transaction::TransactionWriter;

/// Longest sleep of the loop when nothing happens.
const IDLE_WAIT_MAX: Duration = Duration::from_millis(50);

/// Requests, or fetches of them, that are taken before others are looked at.
const URGENT_MAX: usize = 16;

/// Runs an engine until it is told to stop, or fails. Topics must exist.
pub fn run(
    log: Arc<dyn EventLog>,
    config: EngineConfig,
    progress: Arc<Progress>,
    stop: Receiver<Stop>,
) -> Result<Summary, EngineError> {
    process_log::starting(&config, &log.url());
    let mut shell = Shell::start(log, config, progress)?;
    let result = shell.begin().and_then(|()| shell.turn_until_done(&stop));
    let result = shell.finish(result);
    process_log::ended(&result);
    result
}

/// Where operators' commands go on: behind the newest that has an answer, whatever the group has committed.
fn hold_control(
    log: &dyn EventLog,
    config: &EngineConfig,
    commands: &TopicPartition,
    core: &mut Core,
) -> Result<i64, LogError> {
    let Config { group, topics, .. } = &config.core;
    let committed = log.committed(group, commands)?;
    let next = next_control(log, topics, config.ordinal, committed)?;
    if next != committed.unwrap_or(0) {
        let TopicPartition { topic, partition } = commands;
        tracing::warn!(
            "{topic}/{partition}: the answers say that offset {next} is the next command, and not what group {group} has committed"
        );
        core.commit_control(commands.clone(), next);
    }
    Ok(next)
}

struct Shell {
    core: Core,
    config: EngineConfig,
    clock: Clock,
    fence: Fence,
    figures: Figures,
    tracer: Tracer,
    lanes: LaneThreads,
    threads: Threads,
    /// Where the journal is anchored.
    anchors: Option<Arc<Anchors>>,
    /// When it began to end. Read by the commit thread, which is less patient from then on.
    stopping_since: Arc<OnceLock<Instant>>,
    /// The lock of the journal, held until this is dropped.
    _journal_owner: Box<dyn Send>,
}

/// The threads beside the engine's, but for those of lanes.
struct Threads {
    source: SourceThread,
    requests: RequestSource,
    controls: ControlSource,
    restoring: Restoring,
    preparing: Preparing,
    concluding: Concluding,
    pricing: Pricing,
    committer: Committer,
    telemetry: Telemetry,
    lifecycle: LifecycleLog,
}

impl Shell {
    fn start(
        log: Arc<dyn EventLog>,
        mut config: EngineConfig,
        progress: Arc<Progress>,
    ) -> Result<Self, EngineError> {
        let clock = Clock::start();
        let mut journals = Journals::new(log.clone(), &config.core.topics.journal)?;
        journals.look()?;
        journals.check_group(&config.core.group)?;
        // Subscribing takes the group's place: a second process is refused here, before it fences the first.
        let mut consumer = log.subscribe(&config.core.group, &[&config.core.topics.ticks])?;
        consumer.leave_headers();
        // A journal is one chain: whoever writes it owns it, whatever his group.
        let journal_owner = log.claim(&format!("{}.writer", config.core.topics.journal))?;
        // Before there is a producer, which keeps to these limits.
        let result_bytes_max = record_limits::learn(log.as_ref(), &config.core.topics)?;
        config.core.limits.risk_result_bytes_max =
            config.core.limits.risk_result_bytes_max.min(result_bytes_max);
        let stopping_since = Arc::new(OnceLock::new());
        let of_writer = stopping_since.clone();
        let of_writer = Box::new(move || of_writer.get().copied());
        let writer = TransactionWriter::new(log.clone(), config.transactional_id(), of_writer)?;
        let last = last_entry(log.as_ref(), &config.core.topics.journal, config.ordinal)?;
        let anchors = Anchors::start(log.as_ref(), &config, last.as_ref(), clock.now_ns())?;
        let told = anchors.as_ref().map(|anchors| anchors.told());
        let lifecycle = LifecycleLog::new(log.clone(), &config, told)?;
        if let Some(last) = &last {
            let Config { group, topics, .. } = &config.core;
            warn_of_missing(log.as_ref(), group, &topics.journal, config.ordinal, last)?;
        }
        let decoder = TickDecoder::with_source(config.schemas.clone())
            .with_prices(config.core.stages.numbers.prices())
            .with_units(config.core.stages.times.have_units())
            .by_rows(config.core.stages.rejects_rows());
        // Behind the last entry, which may have become visible since.
        let positions = journals.look()?.get(config.ordinal as usize).cloned();
        let positions = positions.unwrap_or_else(JournalPositions::beginning);
        let mut core = Core::new(config.core.clone(), Box::new(decoder), last.as_ref(), positions)?;
        let commands =
            TopicPartition { topic: config.core.topics.control.clone(), partition: config.ordinal };
        let next_command = hold_control(log.as_ref(), &config, &commands, &mut core)?;
        let fence = Fence::default();
        let fetch_max = [config.poll_records_max, config.poll_bytes_max];
        let names = RequestNames {
            requests: config.core.topics.risk_requests.clone(),
            results: config.core.topics.risk_results.clone(),
        };
        let holder = Holder {
            log: log.clone(),
            topics: config.core.topics.clone(),
            group: config.core.group.clone(),
            accepted_loss: config.core.accepted_loss.clone(),
            journals,
            written: Vec::new(),
            waiting: BTreeMap::new(),
        };
        let threads = Threads {
            source: SourceThread::start(holder, consumer, fence.clone(), clock, fetch_max),
            requests: RequestSource::start(log.clone(), names),
            controls: ControlSource::start(log.clone(), commands, next_command),
            restoring: Restoring::start(log.clone(), config.clone()),
            preparing: Preparing::start(),
            concluding: Concluding::start(clock),
            pricing: Pricing::start(),
            committer: Committer::start(writer, config.clone(), fence.clone(), anchors.clone(), clock),
            telemetry: Telemetry::start(
                config.devices.clone(),
                config.device_names(),
                config.device_sample_interval,
            ),
            lifecycle,
        };
        Ok(Self {
            core,
            lanes: LaneThreads::new(&config),
            tracer: Tracer::new(&config),
            config,
            clock,
            fence,
            figures: Figures::new(progress, clock.now_ns()),
            threads,
            anchors,
            stopping_since,
            _journal_owner: journal_owner,
        })
    }

    fn begin(&mut self) -> Result<(), EngineError> {
        self.core.begin(self.clock.now_ns())?;
        self.obey()
    }

    fn turn_until_done(&mut self, stop: &Receiver<Stop>) -> Result<(), EngineError> {
        let nothing = never();
        let mut stop_asked = false;
        while !self.core.is_done() {
            // What critical tasks wait for goes before ticks, whatever of these waits; each turn takes some of both.
            let was_urgent = self.take_requests()?;
            let wait = if was_urgent { Duration::ZERO } else { self.wait() };
            let Threads {
                source,
                requests,
                controls,
                committer,
                telemetry,
                restoring,
                preparing,
                concluding,
                pricing,
                ..
            } = &self.threads;
            let records = if self.core.takes_records() { &source.events } else { &never() };
            let asked = if self.core.takes_requests() { &requests.events } else { &never() };
            let told = if self.core.takes_controls() { &controls.events } else { &never() };
            select! {
                recv(self.lanes.events) -> event => {
                    self.on_lane(event.expect("the shell holds a sender"))?;
                }
                recv(telemetry.samples) -> sample => match sample {
                    Ok((device, sample)) => {
                        self.figures.count_sample(&device, &sample);
                        self.core.on_sample(self.clock.now_ns(), &device, &sample)?;
                    }
                    // It goes on without figures.
                    Err(_) => self.threads.telemetry.samples = never(),
                },
                recv(committer.events) -> event => {
                    self.on_commit(event.map_err(|_| EngineError::ThreadGone { thread: "commit" })?)?;
                }
                recv(source.failed) -> error => {
                    return Err(error.unwrap_or(EngineError::ThreadGone { thread: "source" }));
                }
                recv(records) -> event => {
                    self.on_source(event.map_err(|_| self.source_gone())?)?;
                }
                recv(asked) -> event => {
                    self.on_requests(event.map_err(|_| EngineError::ThreadGone { thread: "requests" })?)?;
                }
                recv(told) -> event => {
                    self.on_controls(event.map_err(|_| EngineError::ThreadGone { thread: "control" })?)?;
                }
                recv(restoring.done()) -> restored => {
                    self.on_restored(restored.map_err(|_| restoring.gone())?)?;
                }
                recv(preparing.done()) -> prepared => {
                    self.on_prepared(prepared.map_err(|_| preparing.gone())?)?;
                }
                recv(concluding.done()) -> concluded => {
                    let concluded = concluded.map_err(|_| concluding.gone())?;
                    if let Some(following) = self.tracer.following() {
                        following.on_concluded(self.clock.now_ns(), concluded.number());
                    }
                    self.core.on_concluded(self.clock.now_ns(), concluded)?;
                }
                recv(pricing.done()) -> priced => {
                    let priced = priced.map_err(|_| pricing.gone())?;
                    self.core.on_priced(self.clock.now_ns(), priced)?;
                }
                recv(if stop_asked { &nothing } else { stop }) -> stop => {
                    // Whoever waits for an end may lose patience. A sender that is gone wants nothing any more: the engine stops, as it was
                    // told or now.
                    let stop = stop.ok().or_else(|| (!self.core.is_stopping()).then_some(Stop::Now));
                    stop_asked = !matches!(stop, Some(Stop::At { .. }));
                    if let Some(stop) = stop {
                        process_log::stopping(&stop);
                        self.core.on_stop(self.clock.now_ns(), stop)?;
                    }
                }
                default(wait) => {}
            }
            // What was decided goes to the lanes now: not after its entry is encoded, or a commit that is due is sealed.
            self.core.on_wake(self.clock.now_ns())?;
            self.obey()?;
            // Whatever lanes have done meanwhile goes into the next commit.
            while let Ok(event) = self.lanes.events.try_recv() {
                self.on_lane(event)?;
            }
            self.core.on_watch(self.clock.now_ns(), &self.lanes.doing())?;
            self.obey()?;
            self.take_requests()?;
            self.core.on_time(self.clock.now_ns())?;
            self.obey()?;
            self.core.write_entries();
            self.figures.count_decisions(&self.core);
            self.figures.show(self.clock.now_ns(), &self.core);
        }
        Ok(())
    }

    /// Takes requests that were read or prepared, up to so many of each as may wait. Whether there were any.
    fn take_requests(&mut self) -> Result<bool, EngineError> {
        let mut were_there = false;
        for _ in 0..URGENT_MAX {
            // What is read goes first: among it may be what is more urgent than all that is prepared.
            let takes = self.core.takes_requests();
            let read = if takes { self.threads.requests.events.try_recv().ok() } else { None };
            let prepared = self.threads.preparing.done().try_recv().ok();
            if read.is_none() && prepared.is_none() {
                break;
            }
            read.map_or(Ok(()), |event| self.on_requests(event))?;
            prepared.map_or(Ok(()), |prepared| self.on_prepared(prepared))?;
            self.core.prepare_requests();
            self.obey()?;
            were_there = true;
        }
        Ok(were_there)
    }

    fn on_prepared(&mut self, prepared: Prepared) -> Result<(), EngineError> {
        if let Some(following) = self.tracer.following() {
            following.on_prepared(self.clock.now_ns(), prepared.number());
        }
        self.core.on_prepared(self.clock.now_ns(), prepared)?;
        self.obey()
    }

    /// How long the loop may sleep.
    fn wait(&self) -> Duration {
        let now_ns = self.clock.now_ns();
        let until = |at_ns: i64| Duration::from_nanos(at_ns.saturating_sub(now_ns).max(0) as u64);
        self.core.wake_at_ns().map_or(IDLE_WAIT_MAX, |at_ns| until(at_ns).min(IDLE_WAIT_MAX))
    }

    /// Carries out what the core commanded.
    fn obey(&mut self) -> Result<(), EngineError> {
        loop {
            let commands = self.core.take_commands();
            if commands.is_empty() {
                return Ok(());
            }
            for command in commands {
                self.obey_one(command)?;
            }
        }
    }

    fn obey_one(&mut self, command: Command) -> Result<(), EngineError> {
        process_log::command(&command, &self.config.core);
        if let Some(following) = self.tracer.following() {
            following.on_command(self.clock.now_ns(), &command, &self.core);
        }
        match command {
            Command::StartLane { lane, life } => self.lanes.start(lane, life, &self.config, self.clock),
            Command::EndLane { lane, hangs } => {
                self.figures.end_lane(lane);
                self.lanes.end(lane, hangs);
            }
            Command::Lane(lane, command) => {
                self.figures.command_lane(lane, &command, &self.core);
                self.lanes.command(lane, command);
            }
            Command::Slice(lane, slice) => {
                let submitted_ns = self.core.begun_at_once_ns(slice.slice);
                self.lanes.run_slice(lane, slice);
                if let Some(submitted_ns) = submitted_ns {
                    self.figures.count_enqueued(submitted_ns, self.clock.now_ns());
                }
            }
            Command::Own { partition, assignment } => self.fence.open(partition, assignment),
            Command::LetGo { partition } => {
                self.figures.forget(partition);
                self.fence.close(partition);
                self.threads.restoring.abandon(partition);
            }
            Command::ReleaseSource => self.command_source(SourceCommand::Release)?,
            Command::Pause(partition) => self.command_source(SourceCommand::Pause(partition))?,
            Command::Resume(partition) => self.command_source(SourceCommand::Resume(partition))?,
            Command::Seek { partition, offset, generation } => {
                self.command_source(SourceCommand::Seek { partition, offset, generation })?;
            }
            Command::Restore { number, partition, sealed_offset, is_new } => {
                self.threads.restoring.run(Restore { number, partition, sealed_offset, is_new })?;
            }
            Command::ReadPages { number, partition, pages } => {
                self.threads.restoring.read_pages(number, partition, pages)?;
            }
            Command::FindPages { partition, pages } => {
                self.threads.restoring.find_pages(partition, pages)?;
            }
            Command::OpenRequests { partition, assignment, committed } => {
                self.command_requests(RequestCommand::Open { partition, assignment, committed })?;
            }
            Command::ReadRequests { partition, offset, generation } => {
                self.command_requests(RequestCommand::Read { partition, offset, generation })?;
            }
            Command::ForgetRequests { partition } => {
                self.command_requests(RequestCommand::Forget { partition })?;
            }
            Command::Prepare(preparation) => self.threads.preparing.run(preparation)?,
            Command::Abandon { number } => self.threads.preparing.abandon(number),
            Command::Conclude(conclusion) => self.threads.concluding.run(conclusion)?,
            Command::AskPrices(question) => self.threads.pricing.run(question)?,
            Command::Commit(request) => {
                self.figures.begin_commit(&request, &self.core);
                let sent = self.threads.committer.requests.send(request);
                sent.map_err(|_| EngineError::ThreadGone { thread: "commit" })?;
            }
            Command::Hurry => drop(self.stopping_since.set(Instant::now())),
            Command::NewSegment { before, partitions, records } => {
                new_segment(&before, &self.config.core.stages, partitions, records);
            }
            removed @ Command::TicksRemoved { .. } => tell_removed(&removed, &self.config.core.topics.ticks),
            Command::Breaker(breaker) => breaker::tell(&breaker, self.config.core.device_of(breaker.lane)),
            Command::Lifecycle(event, detail) => {
                self.threads.lifecycle.write(self.clock.now_ns(), event, &detail);
            }
        }
        Ok(())
    }

    fn command_source(&self, command: SourceCommand) -> Result<(), EngineError> {
        self.threads.source.commands.send(command).map_err(|_| self.source_gone())
    }

    /// The source's thread has ended; what it said last is the reason.
    fn source_gone(&self) -> EngineError {
        let error = self.threads.source.failed.try_recv();
        error.unwrap_or(EngineError::ThreadGone { thread: "source" })
    }

    fn command_requests(&self, command: RequestCommand) -> Result<(), EngineError> {
        self.threads.requests.commands.send(command).map_err(|_| {
            let failed = |event| match event {
                RequestEvent::Failed(error) => Some(EngineError::Log(error)),
                RequestEvent::Opened { .. }
                | RequestEvent::Requests { .. }
                | RequestEvent::Position { .. } => None,
            };
            let failed = self.threads.requests.events.iter().find_map(failed);
            failed.unwrap_or(EngineError::ThreadGone { thread: "requests" })
        })
    }

    fn on_lane(&mut self, event: LaneEvent) -> Result<(), EngineError> {
        process_log::lane_event(&event);
        let LaneEvent { lane, life, news } = event;
        if self.core.is_alive(lane, life) {
            self.figures.count_lane(lane, &news, &self.core);
            if let Some(following) = self.tracer.following() {
                following.on_lane(self.clock.now_ns(), &news);
            }
        }
        self.core.on_lane(self.clock.now_ns(), lane, life, news)?;
        self.obey()
    }

    fn on_source(&mut self, event: SourceEvent) -> Result<(), EngineError> {
        let now_ns = self.clock.now_ns();
        process_log::source_event(&event);
        let _span = event.span().entered();
        match event {
            SourceEvent::Assigned(partitions) => self.core.on_assigned(now_ns, partitions)?,
            SourceEvent::Revoked(partitions) => self.core.on_revoking(now_ns, partitions)?,
            SourceEvent::Lost(partitions) => self.core.on_lost(now_ns, &partitions)?,
            SourceEvent::Positions(positions) => {
                for (partition, generation, position) in positions {
                    self.core.on_position(now_ns, partition, generation, position)?;
                }
            }
            SourceEvent::Records { partition, generation, records, read_at_ns } => {
                self.figures.count_read(&records);
                let accepted = self.core.on_records(now_ns, partition, generation, &records, read_at_ns)?;
                self.figures.count_accepted(accepted, read_at_ns);
                if let Some(following) = self.tracer.following() {
                    let now_ns = self.clock.now_ns();
                    following.on_records(now_ns, &self.core, partition, &records, read_at_ns);
                }
            }
        }
        Ok(())
    }

    fn on_restored(&mut self, event: RestoreEvent) -> Result<(), EngineError> {
        match event? {
            Done::Restored(number, restored) => {
                self.core.on_restored(self.clock.now_ns(), number, *restored)?;
            }
            Done::Pages(number, pages) => self.core.on_pages_read(number, pages)?,
            Done::Found { partition, sought, found } => {
                self.core.on_pages_found(partition, &sought, &found);
            }
        }
        self.obey()
    }

    fn on_requests(&mut self, event: RequestEvent) -> Result<(), EngineError> {
        process_log::request_event(&event);
        match event {
            RequestEvent::Opened { partition, assignment, committed, found_before, answered } => {
                self.core.on_requests_opened(partition, assignment, committed, found_before, answered);
            }
            RequestEvent::Requests { partition, generation, requests } => {
                self.figures.count_requests(requests.len());
                if let Some(following) = self.tracer.following() {
                    following.on_requests(self.clock.now_ns(), partition, &requests);
                }
                self.core.on_requests(self.clock.now_ns(), partition, generation, requests)?;
            }
            RequestEvent::Position { partition, generation, position } => {
                self.core.on_requests_position(partition, generation, position);
            }
            RequestEvent::Failed(error) => return Err(error.into()),
        }
        self.obey()
    }

    fn on_controls(&mut self, event: ControlEvent) -> Result<(), EngineError> {
        self.core.on_controls(self.clock.now_ns(), self.config.ordinal, event?)?;
        self.obey()
    }

    fn on_commit(&mut self, event: CommitEvent) -> Result<(), EngineError> {
        match event {
            CommitEvent::Done { receipt, written, attempt, sealed_ns } => {
                process_log::committed(&receipt, attempt);
                if let Some(following) = self.tracer.following() {
                    following.on_committed(attempt);
                }
                self.core.on_committed(self.clock.now_ns(), attempt)?;
                self.figures.count_commit(receipt, written, attempt, sealed_ns);
                Ok(())
            }
            CommitEvent::Aborted { request, attempt, error } => {
                self.figures.count_abort(attempt, error.to_string());
                process_log::aborted(&request);
                if let Some(following) = self.tracer.following() {
                    following.on_aborted(attempt);
                }
                match self.core.on_aborted(self.clock.now_ns(), attempt, request, &error.to_string())? {
                    AfterAbort::Again => Ok(()),
                    AfterAbort::GiveUp => Err(error.into()),
                }
            }
            CommitEvent::Failed(error) => Err(error.into()),
        }
    }

    /// Obeys those of the core's last commands that still matter after it gave up: which threads nobody should wait for, and what is to be
    /// told.
    fn obey_last(&mut self) {
        for command in self.core.take_commands() {
            match command {
                Command::EndLane { lane, hangs } => self.lanes.end(lane, hangs),
                Command::Breaker(breaker) => {
                    breaker::tell(&breaker, self.config.core.device_of(breaker.lane))
                }
                Command::Lifecycle(event, detail) => {
                    self.threads.lifecycle.write(self.clock.now_ns(), event, &detail);
                }
                _ => {}
            }
        }
    }

    /// Ends all threads, and sums up.
    fn finish(mut self, result: Result<(), EngineError>) -> Result<Summary, EngineError> {
        self.stopping_since.get_or_init(Instant::now);
        let result = result.map_err(|error| error.with_changes(&self.config.core.stages));
        if result.is_err() {
            // What is still on its way to the log is not waited for as long as others wait for these partitions.
            self.fence.close_all();
            self.obey_last();
        }
        let lifecycle = &self.threads.lifecycle;
        lifecycle.write_end(self.clock.now_ns(), result.as_ref().err());
        let Threads {
            source,
            requests,
            controls,
            restoring,
            preparing,
            concluding,
            pricing,
            committer,
            telemetry,
            lifecycle,
        } = self.threads;
        source.stop();
        requests.stop();
        controls.stop();
        restoring.stop();
        preparing.stop();
        concluding.stop();
        pricing.stop();
        committer.stop();
        lifecycle.stop();
        if let Some(anchors) = &self.anchors {
            anchors.stop(self.clock.now_ns());
        }
        telemetry.stop();
        self.lanes.stop();
        self.figures.end(self.clock.now_ns(), &self.core);
        result?;
        Ok(self.figures.summary(&self.core))
    }
}
