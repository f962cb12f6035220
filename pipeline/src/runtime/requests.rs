//! The thread that reads and decodes risk requests, only from the partitions whose ticks this process owns.
//!
//! Requests are read outside of the consumer group, which would assign them independently of their ticks; their
//! committed offsets are still the group's. If the log does not answer, the thread retries without limit, as members of
//! the group do. Requests of open partitions do not wait for partitions that are still being opened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use warptape_engine::{Committed, Event, ReadRequest, payload_of};
use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, Record, TopicPartition};
use warptape_schemas::decode_risk_request;

use super::opening::Opening;
use super::worker::Worker;

/// Greatest number of fetches that wait for the engine.
const FETCHES_MAX: usize = 2;
/// Longest wait of one poll, which limits the delay of a command.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);
/// Longest wait for a command while there is nothing to read, or the log does not answer.
const COMMAND_TIMEOUT: Duration = Duration::from_millis(200);
/// Greatest number of requests in one fetch. A critical request is seen only after those before it are read.
const RECORDS_MAX: usize = 256;
/// Approximate greatest number of bytes in one fetch.
const BYTES_MAX: usize = 1 << 20;

/// Header of a request that must wait for ticks. It is answered after the ticks that the log had when the process got
/// its partitions. The header's value does not matter. A request without the header is answered with the market at the
/// current offset.
pub const WAIT_HEADER: &str = "warptape-wait-for-ticks";

/// Commands of the engine to the thread.
pub(super) enum RequestCommand {
    /// Find the answered requests of a partition under this assignment.
    Open { partition: i32, assignment: u64, committed: Committed },
    /// Read a partition from this offset on; its events carry `generation`.
    Read { partition: i32, offset: i64, generation: u64 },
    /// Stop reading a partition.
    Forget { partition: i32 },
}

/// An event for the core, or the log's error that ended the thread. An opened partition is read only after
/// [`RequestCommand::Read`].
pub(super) type RequestEvent = Result<Event, LogError>;

/// Decodes a record of the request topic.
pub fn read_request(record: &Record) -> ReadRequest {
    let request = payload_of(record).and_then(decode_risk_request).map(Box::new);
    let waits = record.headers.iter().any(|(name, _)| name == WAIT_HEADER);
    ReadRequest { offset: record.offset, bytes: record.value.len(), waits, request }
}

/// Names of the group and the topics to read.
pub(super) struct RequestNames {
    pub(super) requests: String,
    pub(super) results: String,
}

/// Handle of the thread.
pub(super) struct RequestSource {
    pub(super) commands: Sender<RequestCommand>,
    pub(super) events: Receiver<RequestEvent>,
    worker: Worker,
}

impl RequestSource {
    /// Starts the thread, which does not read yet.
    pub(super) fn start(log: Arc<dyn EventLog>, names: RequestNames, gather: Duration) -> Self {
        // The number of partitions limits the waiting commands.
        let (commands, received) = unbounded();
        let (sent, events) = bounded(FETCHES_MAX);
        let mut reader = RequestReader {
            log: log.clone(),
            topic: names.requests.clone(),
            opening: Opening::new(log, names),
            partitions: BTreeMap::new(),
            gather,
            consumer: None,
            events: sent,
        };
        let worker = Worker::start("requests", move || reader.run(&received));
        Self { commands, events, worker }
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(self) {
        drop(self.commands);
        drop(self.events);
        self.worker.join();
    }
}

struct RequestReader {
    log: Arc<dyn EventLog>,
    /// Topic of the requests.
    topic: String,
    opening: Opening,
    partitions: BTreeMap<i32, RequestsRead>,
    /// Least time between two checks for requests while others commit.
    gather: Duration,
    /// A consumer of exactly these partitions, recreated when they change.
    consumer: Option<Box<dyn Consumer>>,
    events: Sender<RequestEvent>,
}

#[derive(Clone, Copy)]
struct RequestsRead {
    generation: u64,
    /// Offset of the next record to pass on.
    next: i64,
    /// Last position reported to the engine.
    told: i64,
}

impl RequestReader {
    /// Runs until the engine has ended.
    fn run(&mut self, commands: &Receiver<RequestCommand>) {
        let mut wait = Duration::ZERO;
        loop {
            match commands.recv_timeout(wait) {
                Ok(command) => {
                    self.obey(command);
                    wait = Duration::ZERO;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            match self.turn() {
                Ok(is_idle) => wait = if is_idle { COMMAND_TIMEOUT } else { Duration::ZERO },
                Err(LogError::Unreachable { .. } | LogError::Stalled { .. }) => {
                    self.consumer = None;
                    wait = COMMAND_TIMEOUT;
                }
                Err(error) => {
                    // The engine may have ended before it gets the error.
                    drop(self.events.send(Err(error)));
                    return;
                }
            }
        }
    }

    fn obey(&mut self, command: RequestCommand) {
        match command {
            RequestCommand::Open { partition, assignment, committed } => {
                self.opening.insert(partition, assignment, committed)
            }
            RequestCommand::Read { partition, offset, generation } => {
                self.partitions.insert(partition, RequestsRead { generation, next: offset, told: offset });
                self.consumer = None;
            }
            RequestCommand::Forget { partition } => {
                self.opening.remove(partition);
                self.partitions.remove(&partition);
                self.consumer = None;
            }
        }
    }

    /// Continues to open partitions, and polls once. Returns true if there was nothing to do. A dropped receiver is
    /// noticed at the next check for commands.
    fn turn(&mut self) -> Result<bool, LogError> {
        let is_opening = self.open()?;
        if self.partitions.is_empty() {
            return Ok(!is_opening);
        }
        if let Some(event) = self.poll()? {
            drop(self.events.send(Ok(event)));
        }
        Ok(false)
    }

    /// Reads the results of partitions being opened. Returns false if there are none, or the log does not answer.
    fn open(&mut self) -> Result<bool, LogError> {
        // This call waits only if no requests are polled.
        let wait = if self.partitions.is_empty() { POLL_TIMEOUT } else { Duration::ZERO };
        match self.opening.turn(wait) {
            Ok(Some(event)) => drop(self.events.send(Ok(event))),
            Ok(None) if self.opening.is_empty() => return Ok(false),
            Ok(None) => {}
            Err(LogError::Unreachable { .. } | LogError::Stalled { .. }) => {
                self.opening.begin_again();
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn poll(&mut self) -> Result<Option<Event>, LogError> {
        let topic = &self.topic;
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            none => none.insert(open_reader(self.log.as_ref(), topic, &self.partitions, self.gather)?),
        };
        match consumer.poll(POLL_TIMEOUT, RECORDS_MAX, BYTES_MAX)? {
            Fetched::Records { source, records } => {
                let partition = source.partition;
                let Some(reading) = self.partitions.get_mut(&partition) else { return Ok(None) };
                reading.next = records.last().map_or(reading.next, |record| record.offset + 1);
                let (generation, requests) = (reading.generation, records.iter().map(read_request).collect());
                Ok(Some(Event::Requests { partition, generation, requests }))
            }
            Fetched::Idle => {
                for (&partition, reading) in &mut self.partitions {
                    let position = consumer.position(&TopicPartition { topic: topic.clone(), partition })?;
                    if position > reading.told {
                        reading.told = position;
                        let generation = reading.generation;
                        return Ok(Some(Event::RequestsPosition { partition, generation, position }));
                    }
                }
                Ok(None)
            }
            // A reader belongs to no group.
            Fetched::Assigned(_) | Fetched::Revoked(_) | Fetched::Lost(_) => Ok(None),
        }
    }
}

fn open_reader(
    log: &dyn EventLog,
    topic: &str,
    partitions: &BTreeMap<i32, RequestsRead>,
    gather: Duration,
) -> Result<Box<dyn Consumer>, LogError> {
    let name = |partition: &i32| TopicPartition { topic: topic.to_owned(), partition: *partition };
    let names: Vec<TopicPartition> = partitions.keys().map(name).collect();
    let mut consumer = log.reader(&names)?;
    consumer.gather(gather);
    for (name, reading) in names.iter().zip(partitions.values()) {
        consumer.seek(name, reading.next)?;
    }
    Ok(consumer)
}

#[cfg(test)]
mod tests;
