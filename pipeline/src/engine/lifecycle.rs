//! The lifecycle topic: what happened to the process, outside the transactions that a failure would take along.

use std::borrow::Cow;

use warptape_eventlog::{LogError, NewRecord, Producer};
use warptape_schemas::{Lifecycle, LifecycleEvent, encode_lifecycle};

/// Writes lifecycle records, each at once.
pub(super) struct LifecycleLog {
    pub(super) producer: Box<dyn Producer>,
    pub(super) topic: String,
    pub(super) node: String,
}

impl LifecycleLog {
    /// Writes a record. A log that does not take it is a line among the diagnostics, not the end of the process.
    pub(super) fn write(&mut self, at_ns: i64, event: LifecycleEvent, detail: &str) {
        if let Err(error) = self.try_write(at_ns, event, detail) {
            tracing::error!(?event, detail, %error, "lifecycle record not written");
            // Nothing to abort is as good as aborted.
            drop(self.producer.abort());
        }
    }

    fn try_write(&mut self, at_ns: i64, event: LifecycleEvent, detail: &str) -> Result<(), LogError> {
        let lifecycle = Lifecycle { at_ns, node: self.node.clone(), event, detail: detail.to_owned() };
        let mut value = Vec::new();
        encode_lifecycle(&lifecycle, &mut value);
        self.producer.begin()?;
        self.producer.send(NewRecord {
            topic: self.topic.as_str().into(),
            partition: 0,
            key: Some(self.node.as_bytes().into()),
            headers: Cow::default(),
            timestamp_ns: at_ns,
            value: value.into(),
        })?;
        self.producer.commit()
    }
}
