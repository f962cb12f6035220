//! The shell around the core: it delivers events and executes commands, but decides nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, never, select};
use warptape_engine::{
    Command, Config, Core, Doing, Event, JournalPositions, Observer, Outside, Stop, Waits, Wants, drive,
};
use warptape_eventlog::{EventLog, LogError, TopicPartition};
use warptape_schemas::journal::LaneId;
use warptape_schemas::{LifecycleEvent, TickDecoder};

use super::anchoring::Anchors;
use super::breaker;
use super::commit::{CommitEvent, CommitShell, Committer};
use super::controls::ControlSource;
use super::fence::Fence;
use super::figures::Figures;
use super::holding::{Holder, next_control};
use super::journal_tail::{last_entry, warn_of_missing};
use super::journals::Journals;
use super::lane_threads::LaneThreads;
use super::lifecycle::LifecycleLog;
use super::preparing::{Concluding, Preparing, Pricing};
use super::process_log::ProcessLog;
use super::requests::{RequestCommand, RequestEvent, RequestNames, RequestSource};
use super::restore::{Restore, Restoring, tell_removed};
use super::segment::new_segment;
use super::source::{SourceCommand, SourceThread};
use super::telemetry::Telemetry;
use super::tracer::Tracer;
use super::{Clock, EngineConfig, EngineError, Progress, Summary, process_log, record_limits};
use crate::transaction::TransactionWriter;

/// Longest sleep of the loop if nothing happens.
const IDLE_WAIT_MAX: Duration = Duration::from_millis(50);
/// Divisor that gives the least time between two reads of new ticks, from the time between two commits.
const GATHER_SHARE: u64 = 20;
/// Greatest least time between two reads.
const GATHER_MAX: Duration = Duration::from_millis(5);
/// Time between two reports of removed records, in ns.
const REMOVALS_NS: i64 = 2_000_000_000;

/// Runs an engine until it is asked to stop, or fails. The topics must exist.
pub fn run(
    log: Arc<dyn EventLog>,
    config: EngineConfig,
    progress: Arc<Progress>,
    stop: Receiver<Stop>,
) -> Result<Summary, EngineError> {
    process_log::starting(&config, &log.url());
    let (mut core, mut shell) = Shell::start(log, config, progress, stop)?;
    let result = drive(&mut core, &mut shell);
    let result = shell.finish(core, result);
    process_log::ended(&result);
    result
}

/// Returns the least time between two reads of new ticks: a small share of the time that their outputs wait for a
/// commit anyway.
fn gathering(config: &Config) -> Duration {
    let interval_ns = u64::try_from(config.times.commit_interval_ns).unwrap_or_default();
    Duration::from_nanos(interval_ns / GATHER_SHARE).min(GATHER_MAX)
}

/// Returns the least time between two reads of new risk requests: half of the time that their results wait for a commit.
fn gathering_requests(config: &Config) -> Duration {
    let interval_ns = u64::try_from(config.times.risk_commit_interval_ns).unwrap_or_default();
    Duration::from_nanos(interval_ns / 2).min(GATHER_MAX)
}

/// Finds the offset at which operators' commands continue: after the newest answered one, even if the group has
/// committed another offset.
fn hold_control(
    log: &dyn EventLog,
    config: &EngineConfig,
    commands: &TopicPartition,
    core: Core,
) -> Result<(i64, Core), LogError> {
    let Config { group, topics, .. } = &config.core;
    let committed = log.committed(group, commands)?;
    let next = next_control(log, topics, config.ordinal, committed)?;
    if next == committed.unwrap_or(0) {
        return Ok((next, core));
    }
    let TopicPartition { topic, partition } = commands;
    tracing::warn!(
        "{topic}/{partition}: the next command after the last answer is at offset {next}, which differs from the offset \
         that group {group} has committed"
    );
    Ok((next, core.with_next_control(commands.clone(), next)))
}

struct Shell {
    config: EngineConfig,
    clock: Clock,
    fence: Fence,
    figures: Figures,
    tracer: Tracer,
    lanes: LaneThreads,
    threads: Threads,
    /// Channel of requests to stop.
    stop: Receiver<Stop>,
    /// True once a stop was requested.
    is_stopping: bool,
    /// Reason of the last aborted commit; `None` if there was none.
    aborted: Option<LogError>,
    /// Anchors of the journal; `None` if it is not anchored.
    anchors: Option<Arc<Anchors>>,
    /// Time at which the engine began to end. The commit thread reads it, and then waits less for the log.
    stopping_since: Arc<OnceLock<Instant>>,
    /// Time of the next report of removed records, in ns.
    removals_due_ns: i64,
    /// Lock of the journal, held until this is dropped.
    _journal_owner: Box<dyn Send>,
}

/// The engine's helper threads, except those of lanes.
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
        stop: Receiver<Stop>,
    ) -> Result<(Core, Self), EngineError> {
        let clock = Clock::start();
        let mut journals = Journals::new(log.clone(), &config.core.topics.journal)?;
        journals.look()?;
        journals.check_group(&config.core.group)?;
        // Subscribing takes a place in the group, so a second process is refused here, before it fences the first one.
        let mut consumer = log.subscribe(&config.core.group, &[&config.core.topics.ticks])?;
        consumer.leave_headers();
        consumer.gather(gathering(&config.core));
        // A journal is one chain, so its writer locks it, even against other groups.
        let journal_owner = log.claim(&format!("{}.writer", config.core.topics.journal))?;
        // The producer refuses larger records, so the limits are read before it exists.
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
        let decoder = |config: &EngineConfig| TickDecoder::with_source(config.schemas.clone()).by_rows(true);
        // The positions are those after the last entry, which may have become visible only now.
        let positions = journals.look()?.get(config.ordinal as usize).cloned();
        let positions = positions.unwrap_or_else(JournalPositions::beginning);
        let core = Core::new(config.core.clone(), Box::new(decoder(&config)), last.as_ref(), positions)?;
        let commands =
            TopicPartition { topic: config.core.topics.control.clone(), partition: config.ordinal };
        let (next_command, core) = hold_control(log.as_ref(), &config, &commands, core)?;
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
            source: SourceThread::start(
                holder,
                consumer,
                fence.clone(),
                clock,
                (decoder(&config), config.core.stages.symbols_max as usize),
                fetch_max,
            ),
            requests: RequestSource::start(log.clone(), names, gathering_requests(&config.core)),
            controls: ControlSource::start(log.clone(), commands, next_command),
            restoring: Restoring::start(log.clone(), config.clone()),
            preparing: Preparing::start(),
            concluding: Concluding::start(clock),
            pricing: Pricing::start(),
            committer: Committer::start(
                writer,
                CommitShell {
                    config: config.clone(),
                    fence: fence.clone(),
                    anchors: anchors.clone(),
                    clock,
                    progress: progress.clone(),
                },
            ),
            telemetry: Telemetry::start(
                config.devices.clone(),
                config.device_names(),
                config.device_sample_interval,
            ),
            lifecycle,
        };
        let shell = Self {
            lanes: LaneThreads::new(&config),
            tracer: Tracer::new(&config),
            config,
            clock,
            fence,
            figures: Figures::new(progress, clock.now_ns()),
            threads,
            stop,
            is_stopping: false,
            aborted: None,
            anchors,
            stopping_since,
            removals_due_ns: 0,
            _journal_owner: journal_owner,
        };
        Ok((core, shell))
    }

    /// Returns the time until something has to be done.
    fn wait(&self, wake_at_ns: Option<i64>) -> Duration {
        let until =
            |at_ns: i64| Duration::from_nanos(at_ns.saturating_sub(self.clock.now_ns()).max(0) as u64);
        wake_at_ns.map_or(IDLE_WAIT_MAX, |at_ns| until(at_ns).min(IDLE_WAIT_MAX))
    }

    /// Handles a request to stop, which may later become more urgent. If the sender was dropped, the engine stops as
    /// requested before, or at once.
    fn on_stop(&mut self, stop: Option<Stop>) -> Option<Event> {
        let stop = stop.or_else(|| (!self.is_stopping).then_some(Stop::Now));
        self.is_stopping = true;
        if !matches!(stop, Some(Stop::At { .. })) {
            self.stop = never();
        }
        stop.map(Event::Stop)
    }

    fn on_commit(&mut self, event: CommitEvent) -> Result<Event, EngineError> {
        match event {
            CommitEvent::Done { receipt, written, attempt } => {
                process_log::committed(&receipt, attempt);
                self.figures.count_commit(receipt, written, attempt);
                Ok(Event::Committed(attempt))
            }
            CommitEvent::Aborted { request, attempt, error } => {
                let reason = error.to_string();
                self.aborted = Some(error);
                Ok(Event::Aborted { attempt, request, reason })
            }
            CommitEvent::Failed(error) => Err(error.into()),
        }
    }

    /// Writes that retention removed records.
    fn write_removals(&self, details: &[String]) {
        for detail in details {
            self.threads.lifecycle.write(self.clock.now_ns(), LifecycleEvent::RecordsRemoved, detail);
        }
    }

    fn command_source(&self, command: SourceCommand) -> Result<(), EngineError> {
        self.threads.source.commands.send(command).map_err(|_| self.source_gone())
    }

    /// Returns the reason for the end of the source's thread, which is its last report.
    fn source_gone(&self) -> EngineError {
        let error = self.threads.source.failed.try_recv();
        error.unwrap_or(EngineError::ThreadGone { thread: "source" })
    }

    fn command_requests(&self, command: RequestCommand) -> Result<(), EngineError> {
        self.threads.requests.commands.send(command).map_err(|_| {
            let failed = self.threads.requests.events.iter().find_map(RequestEvent::err);
            failed.map_or(EngineError::ThreadGone { thread: "requests" }, EngineError::Log)
        })
    }

    /// Executes those last commands of the core that still matter after it gave up: ending stuck threads, and reports.
    fn execute_last(&mut self, core: &mut Core) {
        while let Some(command) = core.poll() {
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

    /// Ends all threads, and returns the summary.
    fn finish(mut self, mut core: Core, result: Result<(), EngineError>) -> Result<Summary, EngineError> {
        self.stopping_since.get_or_init(Instant::now);
        let result = result.map_err(|error| error.with_changes(&self.config.core.stages));
        if result.is_err() {
            // Transactions in progress are not awaited, because other processes wait for these partitions.
            self.fence.close_all();
            self.execute_last(&mut core);
        }
        self.write_removals(&self.figures.end_removals());
        self.threads.lifecycle.write_end(self.clock.now_ns(), result.as_ref().err());
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
        self.figures.end(self.clock.now_ns(), &core);
        result?;
        Ok(self.figures.summary(&core))
    }
}

impl Outside for Shell {
    type Error = EngineError;

    fn now_ns(&self) -> i64 {
        self.clock.now_ns()
    }

    fn observer(&mut self) -> impl Observer {
        (ProcessLog(&self.config.core), (&mut self.figures, &mut self.tracer))
    }

    fn execute(&mut self, command: Command, _: &Core) -> Result<(), EngineError> {
        match command {
            Command::StartLane { lane, life } => self.lanes.start(lane, life, &self.config, self.clock),
            Command::EndLane { lane, hangs } => self.lanes.end(lane, hangs),
            Command::Lane(lane, command) => self.lanes.command(lane, command),
            Command::Slice { lane, slice, begun_at_once_ns, .. } => {
                self.lanes.run_slice(lane, slice);
                if let Some(submitted_ns) = begun_at_once_ns {
                    self.figures.count_enqueued(submitted_ns, self.clock.now_ns());
                }
            }
            Command::Own { partition, assignment } => self.fence.open(partition, assignment),
            Command::LetGo { partition } => {
                self.fence.close(partition);
                self.threads.restoring.abandon(partition);
            }
            Command::ReleaseSource => self.command_source(SourceCommand::Release)?,
            Command::Pause(partition) => self.command_source(SourceCommand::Pause(partition))?,
            Command::Resume(partition) => self.command_source(SourceCommand::Resume(partition))?,
            Command::Seek { partition, offset, generation } => {
                self.command_source(SourceCommand::Seek { partition, offset, generation })?;
            }
            Command::Restore { number, partition, sealed_offset } => {
                self.threads.restoring.run(Restore { number, partition, sealed_offset })?;
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
                let sent = self.threads.committer.requests.send(request);
                sent.map_err(|_| EngineError::ThreadGone { thread: "commit" })?;
            }
            Command::GiveUp => return Err(self.aborted.take().expect("an attempt was aborted").into()),
            Command::Hurry => drop(self.stopping_since.set(Instant::now())),
            Command::NewSegment { before, partitions, records } => {
                new_segment(&before, &self.config.core.stages, partitions, records);
            }
            removed @ Command::TicksRemoved { .. } => tell_removed(&removed, &self.config.core.topics.ticks),
            // Observers report these commands.
            Command::Accepted { .. } | Command::PagesMissing { .. } => {}
            Command::Breaker(breaker) => breaker::tell(&breaker, self.config.core.device_of(breaker.lane)),
            Command::Lifecycle(event, detail) => {
                self.threads.lifecycle.write(self.clock.now_ns(), event, &detail);
            }
        }
        Ok(())
    }

    fn lane_news(&mut self) -> Option<Event> {
        self.lanes.events.try_iter().find_map(|event| self.lanes.heard(event))
    }

    fn doing(&mut self) -> Vec<(LaneId, Doing)> {
        self.lanes.doing()
    }

    fn read_requests(&mut self) -> Result<Option<Event>, EngineError> {
        Ok(self.threads.requests.events.try_recv().ok().transpose()?)
    }

    fn prepared_request(&mut self) -> Option<Event> {
        self.threads.preparing.done().try_recv().ok().map(Event::Prepared)
    }
}

impl Waits for Shell {
    fn next(&mut self, _: &Core, wants: Wants) -> Result<Option<Event>, EngineError> {
        let now_ns = self.clock.now_ns();
        if now_ns >= self.removals_due_ns {
            self.removals_due_ns = now_ns + REMOVALS_NS;
            self.write_removals(&self.figures.take_removals());
        }
        let wait = self.wait(wants.wake_at_ns);
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
        let records = if wants.records { &source.events } else { &never() };
        let asked = if wants.requests { &requests.events } else { &never() };
        let told = if wants.controls { &controls.events } else { &never() };
        let event = select! {
            recv(self.lanes.events) -> event => self.lanes.heard(event.expect("the shell holds a sender")),
            recv(telemetry.samples) -> sample => match sample {
                Ok((device, sample)) => Some(Event::Sample { device, sample }),
                // The engine continues without samples.
                Err(_) => {
                    self.threads.telemetry.samples = never();
                    None
                }
            },
            recv(committer.events) -> event => {
                Some(self.on_commit(event.map_err(|_| EngineError::ThreadGone { thread: "commit" })?)?)
            }
            recv(source.failed) -> error => {
                return Err(error.unwrap_or(EngineError::ThreadGone { thread: "source" }));
            }
            recv(records) -> event => Some(event.map_err(|_| self.source_gone())?),
            recv(asked) -> event => {
                Some(event.map_err(|_| EngineError::ThreadGone { thread: "requests" })??)
            }
            recv(told) -> controls => {
                let controls = controls.map_err(|_| EngineError::ThreadGone { thread: "control" })??;
                Some(Event::Controls { ordinal: self.config.ordinal, controls })
            }
            recv(restoring.done()) -> event => Some(event.map_err(|_| restoring.gone())??),
            recv(preparing.done()) -> prepared => {
                Some(Event::Prepared(prepared.map_err(|_| preparing.gone())?))
            }
            recv(concluding.done()) -> concluded => {
                Some(Event::Concluded(concluded.map_err(|_| concluding.gone())?))
            }
            recv(pricing.done()) -> priced => Some(Event::Priced(priced.map_err(|_| pricing.gone())?)),
            recv(self.stop) -> stop => self.on_stop(stop.ok()),
            default(wait) => None,
        };
        Ok(event)
    }
}
