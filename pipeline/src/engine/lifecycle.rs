//! The lifecycle topic: what happened to the process, outside the transactions that a failure would take along.

use std::borrow::Cow;
use std::sync::Arc;

use warptape_eventlog::{EventLog, LogError, NewRecord, Producer};
use warptape_schemas::{Lifecycle, LifecycleEvent, encode_lifecycle};

use super::EngineConfig;

/// Writes lifecycle records, each at once.
pub(super) struct LifecycleLog {
    log: Arc<dyn EventLog>,
    transactional_id: String,
    /// `None` where the last write failed: the next one starts another.
    producer: Option<Box<dyn Producer>>,
    topic: String,
    node: String,
}

impl LifecycleLog {
    /// Starts the producer.
    pub(super) fn new(log: Arc<dyn EventLog>, config: &EngineConfig) -> Result<Self, LogError> {
        let transactional_id = format!("{}-lifecycle", config.transactional_id());
        let producer = Some(log.producer(&transactional_id)?);
        let (topic, node) = (config.topics.lifecycle.clone(), config.node.clone());
        Ok(Self { log, transactional_id, producer, topic, node })
    }

    /// Writes a record. A log that does not take it is a line among the diagnostics, not the end of the process.
    pub(super) fn write(&mut self, at_ns: i64, event: LifecycleEvent, detail: &str) {
        if let Err(error) = self.try_write(at_ns, event, detail) {
            tracing::error!(?event, detail, %error, "lifecycle record not written");
            self.producer = None;
        }
    }

    fn try_write(&mut self, at_ns: i64, event: LifecycleEvent, detail: &str) -> Result<(), LogError> {
        let lifecycle = Lifecycle { at_ns, node: self.node.clone(), event, detail: detail.to_owned() };
        let mut value = Vec::new();
        encode_lifecycle(&lifecycle, &mut value);
        let producer = match &mut self.producer {
            Some(producer) => producer,
            none => none.insert(self.log.producer(&self.transactional_id)?),
        };
        producer.begin()?;
        producer.send(NewRecord {
            topic: self.topic.as_str().into(),
            partition: 0,
            key: Some(self.node.as_bytes().into()),
            headers: Cow::default(),
            timestamp_ns: at_ns,
            value: value.into(),
        })?;
        producer.commit()
    }
}
