//! The thread that reads and decodes operators' commands from the partition with the process's ordinal. It starts with
//! the first unanswered command. If the log does not answer, it retries without limit.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warptape_engine::{ReadControl, payload_of};
use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, Record, TopicPartition};
use warptape_schemas::decode_control;

use super::worker::Worker;

/// Least time between two checks for commands while others commit.
const GATHER: Duration = Duration::from_millis(20);
/// Longest wait of one poll, which limits how late the thread ends.
const POLL_TIMEOUT: Duration = Duration::from_millis(100);
/// Wait before a log that does not answer is asked again.
const RETRY_WAIT: Duration = Duration::from_millis(200);
/// Greatest number of commands in one fetch.
const RECORDS_MAX: usize = 16;
/// Approximate greatest number of bytes in one fetch.
const BYTES_MAX: usize = 64 << 10;

/// Commands, or the error after which none follow.
pub(super) type ControlEvent = Result<Vec<ReadControl>, LogError>;

/// Handle of the thread.
pub(super) struct ControlSource {
    pub(super) events: Receiver<ControlEvent>,
    stop: Sender<()>,
    worker: Worker,
}

impl ControlSource {
    /// Starts to read a partition at an offset.
    pub(super) fn start(log: Arc<dyn EventLog>, source: TopicPartition, next: i64) -> Self {
        let (stop, stopped) = bounded(0);
        // One fetch may wait while the engine executes another.
        let (sent, events) = bounded(1);
        let reader = ControlReader { log, source, next, stopped, events: sent };
        let worker = Worker::start("control", move || reader.run());
        Self { events, stop, worker }
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(self) {
        drop(self.stop);
        drop(self.events);
        self.worker.join();
    }
}

struct ControlReader {
    log: Arc<dyn EventLog>,
    source: TopicPartition,
    /// Offset of the next command to pass on.
    next: i64,
    stopped: Receiver<()>,
    events: Sender<ControlEvent>,
}

impl ControlReader {
    /// Runs until the engine has ended.
    fn run(mut self) {
        let mut consumer = None;
        let mut wait = Duration::ZERO;
        while self.stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = Duration::ZERO;
            match self.turn(&mut consumer) {
                Ok(controls) if controls.is_empty() => {}
                // A dropped receiver means that the thread has been stopped too.
                Ok(controls) => drop(self.events.send(Ok(controls))),
                Err(LogError::Unreachable { .. } | LogError::Stalled { .. }) => {
                    consumer = None;
                    wait = RETRY_WAIT;
                }
                Err(error) => {
                    drop(self.events.send(Err(error)));
                    return;
                }
            }
        }
    }

    /// Polls once; opens the reader first if it is not open.
    fn turn(&mut self, consumer: &mut Option<Box<dyn Consumer>>) -> Result<Vec<ReadControl>, LogError> {
        let reader = match consumer {
            Some(reader) => reader,
            none => none.insert(self.open()?),
        };
        let Fetched::Records { records, .. } = reader.poll(POLL_TIMEOUT, RECORDS_MAX, BYTES_MAX)? else {
            return Ok(Vec::new());
        };
        self.next = records.last().map_or(self.next, |record| record.offset + 1);
        let read = |record: &Record| {
            let control = payload_of(record).and_then(decode_control);
            ReadControl { offset: record.offset, control }
        };
        Ok(records.iter().map(read).collect())
    }

    fn open(&self) -> Result<Box<dyn Consumer>, LogError> {
        let mut reader = self.log.reader(std::slice::from_ref(&self.source))?;
        reader.gather(GATHER);
        reader.seek(&self.source, self.next)?;
        Ok(reader)
    }
}
