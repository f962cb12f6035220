//! The source thread: polls the log ahead of the engine, within a limit, decodes the records of many ticks, and executes
//! pause, resume and seek.
//!
//! The outputs of a partition of ticks go to the same partition of other topics. A topic may lack that partition, for
//! example after partitions were added to the ticks alone. Then the partition waits here, and the engine does not learn
//! of it yet.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use warptape_engine::{Assigned, Event, Position, TickReader};
use warptape_eventlog::{Consumer, Fetched, LogError, TopicPartition};
use warptape_schemas::TickDecoder;

use super::fence::Fence;
use super::holding::{Found, Held, Holder};
use super::worker::Worker;
use super::{Clock, EngineError};

/// Greatest number of fetches that wait for the engine: one that it processes, and the next.
const FETCHES_MAX: usize = 2;
/// Size of the smallest record that is decoded here, in bytes. The engine decodes smaller ones faster than it gets their
/// columns.
const DECODED_BYTES_MIN: usize = 1024;
/// Longest wait of one poll, which limits the delay of a command while the log is idle.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);
/// Time between two reports of positions to the engine while records arrive.
const POSITIONS_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checks whether other topics still lack a partition.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two checks whether journals have new entries about a waiting partition.
const HOLD_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two reports that a partition waits for other topics.
const NEWS_INTERVAL: Duration = Duration::from_secs(60);
/// Greatest number of commands that wait for the thread.
const COMMANDS_MAX: usize = 1024;

/// Commands of the engine to the source.
pub(super) enum SourceCommand {
    /// Stop reading a partition.
    Pause(i32),
    /// Resume reading a partition.
    Resume(i32),
    /// Read a partition from this offset; records fetched from now on carry `generation`.
    Seek { partition: i32, offset: i64, generation: u64 },
    /// The engine has released the partitions that were revoked or lost.
    Release,
}

/// Handle of the source thread.
pub(super) struct SourceThread {
    pub(super) commands: Sender<SourceCommand>,
    /// Events for the core. A new partition is read only after a seek. After partitions were taken away, nothing is
    /// polled before [`SourceCommand::Release`].
    pub(super) events: Receiver<Event>,
    /// Error that ended the thread. It can be read even while the engine accepts no events.
    pub(super) failed: Receiver<EngineError>,
    worker: Worker,
}

impl SourceThread {
    /// Starts the thread on a subscribed consumer.
    pub(super) fn start(
        holder: Holder,
        consumer: Box<dyn Consumer>,
        fence: Fence,
        clock: Clock,
        (decoder, symbols_max): (TickDecoder, usize),
        [records_max, bytes_max]: [usize; 2],
    ) -> Self {
        let (commands, commands_received) = bounded(COMMANDS_MAX);
        let (events_sent, events) = bounded(FETCHES_MAX);
        let (failed_sent, failed) = bounded(1);
        let topics = &holder.topics;
        let reader = SourceReader {
            consumer,
            topic: topics.ticks.clone(),
            requests: topics.risk_requests.clone(),
            others: topics.beside_ticks().map(str::to_owned).to_vec(),
            waiting: BTreeMap::new(),
            next_look: Instant::now(),
            next_positions: Instant::now(),
            fence,
            clock,
            records_max,
            bytes_max,
            partitions: BTreeMap::new(),
            decoder,
            symbols_max,
            events: events_sent,
            holder,
        };
        let worker = Worker::start("source", move || reader.run(&commands_received, &failed_sent));
        Self { commands, events, failed, worker }
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(self) {
        drop(self.commands);
        drop(self.events);
        self.worker.join();
    }
}

struct SourceReader {
    consumer: Box<dyn Consumer>,
    holder: Holder,
    topic: String,
    requests: String,
    /// Topics that need all partitions of the ticks.
    others: Vec<String>,
    /// Partitions that one of `others` lacks, with the time of the next report about each.
    waiting: BTreeMap<i32, Instant>,
    /// Time of the next check whether the partitions in `waiting` now exist.
    next_look: Instant,
    /// Time of the next report of positions, which is due even if records arrive without a pause.
    next_positions: Instant,
    fence: Fence,
    clock: Clock,
    records_max: usize,
    bytes_max: usize,
    partitions: BTreeMap<i32, TicksRead>,
    decoder: TickDecoder,
    /// Number of symbols from which on a partition's reader forgets them.
    symbols_max: usize,
    events: Sender<Event>,
}

/// Progress in a partition, since its first seek.
#[derive(Debug)]
struct TicksRead {
    /// Generation of the last seek.
    generation: u64,
    /// Last position reported to the engine.
    told: i64,
    reader: TickReader,
}

impl SourceReader {
    fn run(mut self, commands: &Receiver<SourceCommand>, failed: &Sender<EngineError>) {
        let error = loop {
            match self.turn(commands) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
        };
        // The consumer is dropped afterwards and leaves the group, so this process owns nothing any more.
        self.fence.close_all();
        if let Some(error) = error {
            // The engine may have ended before it gets the error.
            drop(failed.send(error));
        }
    }

    /// Executes the waiting commands and polls once. Returns false if the engine has ended.
    fn turn(&mut self, commands: &Receiver<SourceCommand>) -> Result<bool, EngineError> {
        loop {
            match commands.try_recv() {
                Ok(command) => self.obey(command)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
        if let Some(event) = self.look_for_waiting()? {
            return Ok(self.events.send(event).is_ok());
        }
        match self.consumer.poll(POLL_TIMEOUT, self.records_max, self.bytes_max)? {
            Fetched::Idle => self.tell_positions(),
            Fetched::Assigned(partitions) => {
                // Nothing is read before the engine has restored the state and has sent the first offset.
                self.consumer.pause(&partitions)?;
                let now = Instant::now();
                self.waiting.extend(partitions.iter().map(|partition| (partition.partition, now)));
                self.next_look = now;
                Ok(true)
            }
            Fetched::Revoked(partitions) => self.hand_over(Event::Revoked, &partitions, commands),
            Fetched::Lost(partitions) => self.hand_over(Event::Lost, &partitions, commands),
            Fetched::Records { source, records } => {
                let read_at_ns = self.clock.now_ns();
                let (partition, decoder) = (source.partition, &mut self.decoder);
                let reading = self.partitions.get_mut(&partition);
                let (generation, ticks) = reading.map_or((0, None), |reading| {
                    (reading.generation, Some(reading.reader.read(&records, decoder)))
                });
                let event = Event::Records { partition, generation, records, ticks, read_at_ns };
                if self.events.send(event).is_err() {
                    return Ok(false);
                }
                // Positions of quiet partitions must reach the engine even while others are busy. A poll returns
                // changes of the group before records, so none is pending here.
                let now = Instant::now();
                if now < self.next_positions {
                    return Ok(true);
                }
                self.next_positions = now + POSITIONS_INTERVAL;
                self.tell_positions()
            }
        }
    }

    /// Reports positions. Returns false if the engine has ended.
    fn tell_positions(&mut self) -> Result<bool, EngineError> {
        let moved = self.positions()?;
        Ok(moved.is_empty() || self.events.send(Event::Positions(moved)).is_ok())
    }

    /// Returns the partitions whose positions changed since the last report.
    fn positions(&mut self) -> Result<Vec<Position>, LogError> {
        let mut moved = Vec::new();
        for (&partition, reading) in &mut self.partitions {
            let name = TopicPartition { topic: self.topic.clone(), partition };
            let offset = self.consumer.position(&name)?;
            if offset > reading.told {
                reading.told = offset;
                moved.push(Position { partition, generation: reading.generation, offset });
            }
        }
        Ok(moved)
    }

    /// Returns the event for waiting partitions that now exist in all topics, with the offsets at which they continue.
    fn look_for_waiting(&mut self) -> Result<Option<Event>, EngineError> {
        let now = Instant::now();
        if self.waiting.is_empty() || now < self.next_look {
            return Ok(None);
        }
        self.next_look = now + LOOK_INTERVAL;
        let mut counts = Vec::with_capacity(self.others.len());
        for topic in &self.others {
            match self.holder.log.partitions(topic) {
                Ok(count) => counts.push((topic, count)),
                // A group member waits for a cluster that does not answer.
                Err(error @ LogError::Unreachable { .. }) => {
                    tracing::warn!(%error, "assigned partitions wait");
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let is_lacked = |partition: &i32| counts.iter().any(|(_, count)| *count <= *partition);
        for (&partition, next_news) in self.waiting.iter_mut().filter(|(partition, _)| is_lacked(partition)) {
            let lacking = counts.iter().filter(|(_, count)| *count <= partition);
            let lacking: Vec<&str> = lacking.map(|(topic, _)| topic.as_str()).collect();
            if now >= *next_news {
                *next_news = now + NEWS_INTERVAL;
                tracing::warn!(
                    "{}/{partition} is not read yet: its outputs go to partition {partition} of other \
                     topics, but these have too few partitions: {}. Give them {} partitions, as many as {} \
                     has; other partitions are read meanwhile",
                    self.topic,
                    lacking.join(", "),
                    partition + 1,
                    self.topic,
                );
            }
        }
        let ready: Vec<i32> =
            self.waiting.keys().copied().filter(|partition| !is_lacked(partition)).collect();
        let assigned = match self.hold(&ready) {
            Ok(assigned) => assigned,
            // Some brokers may not yet know a partition that was just added.
            Err(EngineError::Log(
                error @ (LogError::Unreachable { .. }
                | LogError::UnknownPartition { .. }
                | LogError::UnknownTopic { .. }
                | LogError::Broker { .. }),
            )) => {
                tracing::warn!(%error, "assigned partitions wait");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.waiting.retain(|partition, _| assigned.iter().all(|found| found.partition != *partition));
        Ok((!assigned.is_empty()).then_some(Event::Assigned(assigned)))
    }

    /// Returns the offsets at which partitions continue. Leaves out those whose journals may still get entries, and
    /// checks them again soon.
    fn hold(&mut self, partitions: &[i32]) -> Result<Vec<Assigned>, EngineError> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::with_capacity(partitions.len());
        for &partition in partitions {
            let [ticks, requests] =
                [&self.topic, &self.requests].map(|topic| TopicPartition { topic: topic.clone(), partition });
            found.push(Found {
                partition,
                committed: self.consumer.committed(&ticks)?,
                committed_request: self.consumer.committed(&requests)?,
                ticks: self.consumer.offsets(&ticks)?,
            });
        }
        self.holder.look()?;
        let (mut assigned, mut at_odds) = (Vec::with_capacity(found.len()), Vec::new());
        for found in found {
            match self.holder.hold(found)? {
                Held::At(held) => assigned.push(held),
                Held::Later => self.next_look = Instant::now() + HOLD_INTERVAL,
                Held::AtOdds(odds) => at_odds.push((found.partition, odds)),
            }
        }
        match at_odds.is_empty() {
            true => Ok(assigned),
            false => Err(self.holder.at_odds(at_odds)),
        }
    }

    /// Forgets partitions. Returns those that the engine knows.
    fn forget(&mut self, partitions: &[TopicPartition]) -> Vec<i32> {
        let mut gone: Vec<i32> = partitions.iter().map(|partition| partition.partition).collect();
        gone.iter().for_each(|partition| self.holder.forget(*partition));
        gone.retain(|partition| self.waiting.remove(partition).is_none());
        self.partitions.retain(|partition, _| !gone.contains(partition));
        gone
    }

    /// Executes commands until the engine has released the partitions that the next poll hands over. This process must
    /// not rejoin the group while its engine still considers partitions its own that the group has assigned elsewhere.
    /// Returns false if the engine has ended.
    fn hand_over(
        &mut self,
        event: fn(Vec<i32>) -> Event,
        partitions: &[TopicPartition],
        commands: &Receiver<SourceCommand>,
    ) -> Result<bool, EngineError> {
        let gone = self.forget(partitions);
        if gone.is_empty() {
            return Ok(true);
        }
        if self.events.send(event(gone)).is_err() {
            return Ok(false);
        }
        for command in commands {
            if matches!(command, SourceCommand::Release) {
                return Ok(true);
            }
            self.obey(command)?;
        }
        Ok(false)
    }

    fn obey(&mut self, command: SourceCommand) -> Result<(), LogError> {
        match command {
            SourceCommand::Pause(partition) => self.consumer.pause(&[self.name(partition)]),
            SourceCommand::Resume(partition) => self.consumer.resume(&[self.name(partition)]),
            SourceCommand::Seek { partition, offset, generation } => {
                let reader = TickReader::new(generation, DECODED_BYTES_MIN, self.symbols_max);
                self.partitions.insert(partition, TicksRead { generation, told: offset, reader });
                let name = self.name(partition);
                self.consumer.seek(&name, offset)?;
                self.consumer.resume(&[name])
            }
            // No hand-over waits for this release.
            SourceCommand::Release => Ok(()),
        }
    }

    fn name(&self, partition: i32) -> TopicPartition {
        TopicPartition { topic: self.topic.clone(), partition }
    }
}

#[cfg(test)]
mod tests;
