//! The log of a process: `-v` shows its events, `-vv` its actions, `-vvv` each batch and fetch.
//!
//! It observes the shell's events and commands, and decides nothing. At `-v` no message repeats for each record or
//! transaction.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use tracing::{Level, debug, info, trace};
use warptape_engine::{
    Assigned, Command, CommitAttempt, CommitRequest, Config, Event, LaneCommand, LaneNews, Observer, Receipt,
    Restored, Stop,
};
use warptape_eventlog::TopicPartition;
use warptape_schemas::Snapshot;
use warptape_schemas::journal::LaneId;

use super::{EngineConfig, EngineError, Summary};

/// Logs the configuration of a starting process.
pub(super) fn starting(config: &EngineConfig, log_url: &str) {
    let core = &config.core;
    let lanes: Vec<&str> = core.lanes.iter().map(|lane| lane.device.as_str()).collect();
    info!(
        log = log_url,
        group = core.group,
        node = core.node,
        ordinal = config.ordinal,
        software = env!("CARGO_PKG_VERSION"),
        lanes = %lanes.join(","),
        commit_interval_ms = core.times.commit_interval_ns / 1_000_000,
        snapshot_interval_records = core.limits.snapshot_interval_records,
        stages = %core.stages.to_json(),
        "the engine starts with this configuration"
    );
}

/// Logs the core's events and commands.
pub(super) struct ProcessLog<'a>(pub(super) &'a Config);

impl Observer for ProcessLog<'_> {
    fn on_event(&mut self, _: i64, event: &Event) {
        log_event(event);
    }

    fn on_command(&mut self, _: i64, command: &Command) {
        log_command(command, self.0);
    }
}

fn log_command(command: &Command, config: &Config) {
    match command {
        &Command::StartLane { lane, life } => {
            let device = config.device_of(lane);
            match life {
                0 => info!(lane, device, "a lane starts"),
                _ => info!(lane, device, life, "a lane starts again"),
            }
        }
        &Command::EndLane { lane, hangs } => info!(lane, hangs, "a lane is ended"),
        Command::Lane(lane, command) => lane_command(*lane, command),
        Command::Slice { lane, slice, .. } => {
            let (from, to) = (slice.units.start, slice.units.end);
            trace!(lane, slice = slice.slice, from, to, critical = slice.critical, "a slice is handed out");
        }
        &Command::Own { partition, assignment } => {
            info!(partition, assignment, "a partition is this process's")
        }
        &Command::LetGo { partition } => info!(partition, "a partition is let go"),
        Command::ReleaseSource => debug!("the group is told that partitions were let go"),
        &Command::Pause(partition) => debug!(partition, "reading is paused"),
        &Command::Resume(partition) => debug!(partition, "reading goes on"),
        &Command::Seek { partition, offset, generation } => {
            debug!(partition, offset, generation, "a partition is read from here");
        }
        &Command::Restore { partition, sealed_offset, .. } => {
            debug!(partition, sealed_offset, "the state of a partition is to be restored");
        }
        Command::ReadPages { partition, pages, .. } => {
            debug!(
                partition,
                pages = pages.len(),
                "symbols that left memory have ticks: their pages are read"
            );
        }
        Command::FindPages { partition, pages } => {
            debug!(
                partition,
                pages = pages.len(),
                "symbols have left memory: their pages are looked for in the log"
            );
        }
        &Command::OpenRequests { partition, .. } => {
            debug!(partition, "looking which risk requests are answered");
        }
        &Command::ReadRequests { partition, offset, .. } => {
            debug!(partition, offset, "risk requests are read from here");
        }
        &Command::ForgetRequests { partition } => debug!(partition, "risk requests are read no more"),
        Command::Prepare(preparation) => {
            let (partition, offset) = (preparation.partition, preparation.offset);
            debug!(partition, offset, number = preparation.number(), "a risk request is prepared");
        }
        &Command::Abandon { number } => trace!(number, "nobody waits for a preparation any more"),
        Command::Conclude(_) => trace!("a round of a risk request is concluded"),
        Command::AskPrices(question) => {
            debug!(question = question.question, "prices of kinds of tasks are asked for")
        }
        Command::Commit(request) => sealed(request),
        Command::PagesMissing { partition, missing } => {
            debug!(
                partition,
                missing, "pages of a committed snapshot are not in the log yet: they stay in memory"
            );
        }
        // The end of the process shows this command.
        Command::GiveUp => {}
        Command::Accepted { .. } => {}
        Command::Hurry => debug!("what is under way is waited for with less patience"),
        // These commands are reported at every level.
        Command::NewSegment { .. } | Command::TicksRemoved { .. } | Command::Breaker(_) => {}
        Command::Lifecycle(event, detail) => debug!(?event, detail, "a record of lifecycle"),
    }
}

fn lane_command(lane: LaneId, command: &LaneCommand) {
    match command {
        LaneCommand::Install { group, epoch, .. } => {
            debug!(lane, partition = group.partition, group = group.group, epoch, "a group is placed");
        }
        LaneCommand::Release { group, epoch } => {
            debug!(lane, partition = group.partition, group = group.group, epoch, "a group is to move");
        }
        LaneCommand::Drop { partition } => trace!(lane, partition, "a lane forgets a partition"),
        LaneCommand::Run(batch) => {
            let rows = || batch.parts.iter().map(|part| part.input.rows.len()).sum::<usize>();
            trace!(
                lane,
                batch = batch.batch,
                groups = batch.parts.len(),
                rows = rows(),
                "a batch is handed out"
            );
        }
    }
}

/// Logs a transaction that is handed to the log, for the first time or again.
fn sealed(request: &CommitRequest) {
    debug!(
        offsets = %Offsets(&request.offsets),
        signals = request.receipt.signals(),
        entries = request.entries.len(),
        sealed_at_ns = request.sealed_at_ns,
        "a transaction is handed over"
    );
    if !tracing::enabled!(Level::INFO) {
        return;
    }
    for sealed in &request.sealed {
        // The intake is sent first; the groups' states follow, in further transactions if they are large.
        let intake = format!("{}/{}/", sealed.partition, Snapshot::INTAKE);
        if sealed.snapshots.iter().any(|(key, _)| key.starts_with(&intake)) {
            let bytes: usize = sealed.snapshots.iter().map(|(_, bytes)| bytes.len()).sum();
            let records = sealed.snapshots.len();
            info!(partition = sealed.partition, records, bytes, "a snapshot goes out");
        }
    }
}

/// Logs a durable and visible transaction.
pub(super) fn committed(receipt: &Receipt, attempt: CommitAttempt) {
    debug!(
        signals = receipt.signals(),
        advances = receipt.advances,
        took_us = (attempt.ended_ns - attempt.sent_ns) / 1_000,
        looked_up = attempt.looked_up,
        "a transaction is committed"
    );
}

/// Logs a transaction that wrote nothing.
fn aborted(request: &CommitRequest) {
    info!(offsets = %Offsets(&request.offsets), "a transaction was aborted, and is sent again");
}

/// Logs a lane's news.
pub(super) fn lane_news(lane: LaneId, life: u32, news: &LaneNews) {
    match news {
        LaneNews::Completed { batch, service_ns, .. } => {
            trace!(lane, batch, service_us = service_ns / 1_000, "a batch is done");
        }
        LaneNews::Released { group, epoch, .. } => {
            debug!(lane, partition = group.partition, group = group.group, epoch, "a group was given back");
        }
        LaneNews::SliceDone { slice, service_ns, .. } => {
            trace!(lane, slice, service_us = service_ns / 1_000, "a slice is done");
        }
        LaneNews::Measured { points } => debug!(lane, ?points, "a lane was measured"),
        LaneNews::Lost { reason } => info!(lane, life, reason, "a lane has failed"),
    }
}

fn log_event(event: &Event) {
    match event {
        Event::Stop(stop) => stopping(stop),
        Event::Assigned(partitions) => {
            info!(partitions = %Assignment(partitions), "partitions are assigned")
        }
        Event::Revoked(partitions) => info!(?partitions, "partitions are revoked"),
        Event::Lost(partitions) => info!(?partitions, "partitions are lost: others own them already"),
        Event::Positions(positions) => trace!(?positions, "partitions were read up to here"),
        Event::Records { partition, records, .. } => {
            let [first, last] =
                [records.first(), records.last()].map(|record| record.map(|record| record.offset));
            trace!(partition, first, last, records = records.len(), "records were read");
        }
        Event::Lane { lane, life, news } => lane_news(*lane, *life, news),
        Event::RequestsOpened { partition, committed, found_before, .. } => {
            debug!(
                partition,
                committed = committed.offset,
                found_before,
                "it is known which risk requests are answered"
            );
        }
        Event::Requests { partition, requests, .. } => {
            debug!(partition, requests = requests.len(), "risk requests were read");
        }
        Event::RequestsPosition { partition, position, .. } => {
            trace!(partition, position, "risk requests were read up to here");
        }
        Event::Aborted { request, .. } => aborted(request),
        _ => {}
    }
}

/// Logs a partition's restored state.
pub(super) fn restored(partition: i32, sealed_offset: i64, restored: &Restored, took: Duration) {
    info!(
        partition,
        offset = restored.offset,
        sealed_offset,
        took_ms = took.as_millis() as u64,
        "a partition is restored: its state is that before this offset, and what it causes from the sealed one on is new"
    );
}

/// Logs a request to stop.
fn stopping(stop: &Stop) {
    match stop {
        Stop::Now => {
            info!("draining: what was accepted is processed and committed, and nothing more is read")
        }
        Stop::At { ticks, .. } => {
            info!(?ticks, "draining: what lies before these offsets is processed and committed")
        }
    }
}

/// Logs the result of an ended engine.
pub(super) fn ended(result: &Result<Summary, EngineError>) {
    match result {
        Ok(summary) => info!(
            ticks = summary.ticks,
            signals = summary.signals,
            decisions = summary.decisions,
            commits = summary.commits,
            late = summary.late,
            dead_letters = summary.dead_letters,
            "the engine has stopped: everything is committed"
        ),
        Err(error) => info!(%error, "the engine has ended by an error"),
    }
}

/// Offsets as `TOPIC/PARTITION:OFFSET`.
struct Offsets<'a>(&'a [(TopicPartition, i64)]);

impl Display for Offsets<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (number, (source, offset)) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "," };
            write!(f, "{separator}{}/{}:{offset}", source.topic, source.partition)?;
        }
        Ok(())
    }
}

/// Partitions as `PARTITION:COMMITTED..END`.
struct Assignment<'a>(&'a [Assigned]);

impl Display for Assignment<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (number, assigned) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "," };
            let committed = assigned.committed.unwrap_or(0);
            write!(f, "{separator}{}:{committed}..{}", assigned.partition, assigned.end)?;
        }
        Ok(())
    }
}
