//! The lifecycle topic: events of the process, written outside of transactions, because a failure would undo those.
//!
//! A separate thread writes the events, because they may occur while the log does not answer.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Sender, bounded};
use warptape_engine::cut;
use warptape_eventlog::{EventLog, LogError, NewRecord, Producer};
use warptape_schemas::{Lifecycle, LifecycleEvent, encode_lifecycle};

use super::anchoring::SharedTold;
use super::record_limits::DETAIL_BYTES_MAX;
use super::worker::Worker;
use super::{EngineConfig, EngineError};
use crate::transaction::{RENEW_PAUSE, is_outage};

/// Greatest number of waiting records.
const WAITING_MAX: usize = 256;

/// Accepts lifecycle records, and writes them soon.
pub(super) struct LifecycleLog {
    node: String,
    records: Sender<Lifecycle>,
    /// Set when failed writes are no longer retried.
    ending: Arc<AtomicBool>,
    worker: Worker,
}

impl LifecycleLog {
    /// Starts the producer and the thread.
    pub(super) fn new(
        log: Arc<dyn EventLog>,
        config: &EngineConfig,
        told: Option<SharedTold>,
    ) -> Result<Self, LogError> {
        let transactional_id = format!("{}-lifecycle", config.transactional_id());
        let producer = Some(log.producer(&transactional_id)?);
        let topic = config.core.topics.lifecycle.clone();
        let ending = Arc::new(AtomicBool::new(false));
        let (ordinal, ending_too) = (config.ordinal, ending.clone());
        let mut writer = Writer { log, transactional_id, producer, topic, ordinal, told, ending: ending_too };
        let (records, received) = bounded(WAITING_MAX);
        let worker =
            Worker::start("lifecycle", move || received.iter().for_each(|record| writer.write(&record)));
        Ok(Self { node: config.core.node.clone(), records, ending, worker })
    }

    /// Queues a record. If the queue is full, the record is only logged, and the process goes on.
    pub(super) fn write(&self, at_ns: i64, event: LifecycleEvent, detail: &str) {
        let detail = cut(detail.to_owned(), DETAIL_BYTES_MAX);
        let record = Lifecycle { at_ns, node: self.node.clone(), event, detail };
        if self.records.try_send(record).is_err() {
            tracing::error!(?event, "lifecycle record not written: {WAITING_MAX} are already waiting");
        }
    }

    /// Queues the record of the engine's end.
    pub(super) fn write_end(&self, at_ns: i64, error: Option<&EngineError>) {
        match error {
            None => self.write(at_ns, LifecycleEvent::Stopped, "drained"),
            Some(error) => self.write(at_ns, LifecycleEvent::Failed, &error.to_string()),
        }
    }

    /// Waits until all records are written, if the log accepts them in time.
    pub(super) fn stop(self) {
        self.ending.store(true, Ordering::Relaxed);
        drop(self.records);
        self.worker.join();
    }
}

/// State of the thread.
struct Writer {
    log: Arc<dyn EventLog>,
    transactional_id: String,
    /// Producer; `None` after a failed write, and the next write creates another.
    producer: Option<Box<dyn Producer>>,
    topic: String,
    ordinal: i32,
    /// Counts this life's records if the journal is anchored; `None` if it is not, or once it is unknown whether a
    /// record was written.
    told: Option<SharedTold>,
    ending: Arc<AtomicBool>,
}

impl Writer {
    /// Writes a record. Retries while the log may come back.
    fn write(&mut self, record: &Lifecycle) {
        while let Err(error) = self.try_write(record) {
            self.producer = None;
            if !is_outage(&error) || self.ending.load(Ordering::Relaxed) {
                tracing::error!(event = ?record.event, detail = record.detail, %error, "lifecycle record not written");
                self.told = None;
                return;
            }
            thread::park_timeout(RENEW_PAUSE);
        }
    }

    fn try_write(&mut self, record: &Lifecycle) -> Result<(), LogError> {
        let mut value = Vec::new();
        encode_lifecycle(record, &mut value);
        let producer = match &mut self.producer {
            Some(producer) => producer,
            none => none.insert(self.log.producer(&self.transactional_id)?),
        };
        producer.begin()?;
        producer.send(NewRecord {
            topic: self.topic.as_str().into(),
            partition: 0,
            key: Some(record.node.as_bytes().into()),
            headers: self.told.iter().map(|told| told.header(self.ordinal)).collect::<Vec<_>>().into(),
            timestamp_ns: record.at_ns,
            value: Cow::Borrowed(&value),
            ..NewRecord::default()
        })?;
        producer.commit()?;
        if let Some(told) = &self.told {
            told.add(&value);
        }
        Ok(())
    }
}
