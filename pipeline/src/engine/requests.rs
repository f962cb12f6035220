//! The thread that reads risk requests: of the partitions whose ticks are this process's, and of no others.
//!
//! They are read outside of the consumer group, which would deal them out apart from the ticks they are about; their committed
//! offsets are the group's all the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvError, Sender, TryRecvError, bounded};
use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, Record, TopicPartition};

use super::worker::Worker;

/// Fetches that may wait for the engine.
const FETCHES_MAX: usize = 2;
/// Longest wait of one poll: bounds how late a command is obeyed.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);
/// Commands that may wait for the thread.
const COMMANDS_MAX: usize = 1024;
/// Requests of one fetch: each is made whole by the engine thread, and ticks wait meanwhile.
const RECORDS_MAX: usize = 16;
/// Bytes of one fetch, about.
const BYTES_MAX: usize = 1 << 20;

/// What the engine tells the thread.
pub(super) enum RequestCommand {
    /// Read a partition from this offset on; what comes of it carries the generation.
    Read { partition: i32, offset: i64, generation: u64 },
    /// Read a partition no more.
    Forget { partition: i32 },
}

/// What the thread tells the engine.
pub(super) enum RequestEvent {
    /// Requests of one partition.
    Records { partition: i32, generation: u64, records: Vec<Record> },
    /// Everything before this offset of a partition was given.
    Position { partition: i32, generation: u64, position: i64 },
    /// The log failed; the thread ended.
    Failed(LogError),
}

/// Handle of the thread.
pub(super) struct RequestSource {
    pub(super) commands: Sender<RequestCommand>,
    pub(super) events: Receiver<RequestEvent>,
    worker: Worker,
}

impl RequestSource {
    /// Starts the thread, which reads nothing yet.
    pub(super) fn start(log: Arc<dyn EventLog>, topic: String) -> Self {
        let (commands, received) = bounded(COMMANDS_MAX);
        let (sent, events) = bounded(FETCHES_MAX);
        let worker = Worker::start("requests", move || {
            let mut reader =
                RequestReader { log, topic, partitions: BTreeMap::new(), consumer: None, events: sent };
            if let Err(error) = reader.run(&received) {
                // The engine may have gone before it could be told.
                drop(reader.events.send(RequestEvent::Failed(error)));
            }
        });
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
    topic: String,
    partitions: BTreeMap<i32, Reading>,
    /// Of exactly these partitions; made again when they change.
    consumer: Option<Box<dyn Consumer>>,
    events: Sender<RequestEvent>,
}

#[derive(Clone, Copy)]
struct Reading {
    generation: u64,
    /// Next record to give.
    next: i64,
    /// Position that the engine was told last.
    told: i64,
}

impl RequestReader {
    /// Runs until the engine is gone.
    fn run(&mut self, commands: &Receiver<RequestCommand>) -> Result<(), LogError> {
        loop {
            if self.partitions.is_empty() {
                match commands.recv() {
                    Ok(command) => self.obey(command),
                    Err(RecvError) => return Ok(()),
                }
            }
            loop {
                match commands.try_recv() {
                    Ok(command) => self.obey(command),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(()),
                }
            }
            if !self.partitions.is_empty() && !self.poll()? {
                return Ok(());
            }
        }
    }

    fn obey(&mut self, command: RequestCommand) {
        match command {
            RequestCommand::Read { partition, offset, generation } => {
                self.partitions.insert(partition, Reading { generation, next: offset, told: offset });
            }
            RequestCommand::Forget { partition } => drop(self.partitions.remove(&partition)),
        }
        self.consumer = None;
    }

    /// Polls once; false when the engine is gone.
    fn poll(&mut self) -> Result<bool, LogError> {
        let consumer = match &mut self.consumer {
            Some(consumer) => consumer,
            none => none.insert(open(self.log.as_ref(), &self.topic, &self.partitions)?),
        };
        match consumer.poll(POLL_TIMEOUT, RECORDS_MAX, BYTES_MAX)? {
            Fetched::Records { source, records } => {
                let Some(reading) = self.partitions.get_mut(&source.partition) else { return Ok(true) };
                reading.next = records.last().map_or(reading.next, |record| record.offset + 1);
                let Reading { generation, .. } = *reading;
                let event = RequestEvent::Records { partition: source.partition, generation, records };
                Ok(self.events.send(event).is_ok())
            }
            Fetched::Idle => {
                for (&partition, reading) in &mut self.partitions {
                    let name = TopicPartition { topic: self.topic.clone(), partition };
                    let position = consumer.position(&name)?;
                    if position > reading.told {
                        reading.told = position;
                        let Reading { generation, .. } = *reading;
                        let event = RequestEvent::Position { partition, generation, position };
                        if self.events.send(event).is_err() {
                            return Ok(false);
                        }
                    }
                }
                Ok(true)
            }
            Fetched::Assigned(_) | Fetched::Revoked(_) | Fetched::Lost(_) => Ok(true),
        }
    }
}

fn open(
    log: &dyn EventLog,
    topic: &str,
    partitions: &BTreeMap<i32, Reading>,
) -> Result<Box<dyn Consumer>, LogError> {
    let name = |partition: &i32| TopicPartition { topic: topic.to_owned(), partition: *partition };
    let names: Vec<TopicPartition> = partitions.keys().map(name).collect();
    let mut consumer = log.reader(&names)?;
    for (name, reading) in names.iter().zip(partitions.values()) {
        consumer.seek(name, reading.next)?;
    }
    Ok(consumer)
}
