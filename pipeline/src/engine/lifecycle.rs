//! The lifecycle topic: what happened to the process, outside the transactions that a failure would take along.

use warptape_eventlog::{LogError, NewRecord, Producer};
use warptape_schemas::{Lifecycle, LifecycleEvent, encode_lifecycle};

/// Writes lifecycle records, each at once.
pub(super) struct LifecycleLog {
    pub(super) producer: Box<dyn Producer>,
    pub(super) topic: String,
    pub(super) node: String,
}

impl LifecycleLog {
    pub(super) fn write(
        &mut self,
        at_ns: i64,
        event: LifecycleEvent,
        detail: String,
    ) -> Result<(), LogError> {
        let mut value = Vec::new();
        encode_lifecycle(&Lifecycle { at_ns, node: self.node.clone(), event, detail }, &mut value);
        self.producer.begin()?;
        self.producer.send(NewRecord {
            topic: self.topic.clone(),
            partition: 0,
            key: Some(self.node.clone().into_bytes()),
            headers: Vec::new(),
            timestamp_ns: at_ns,
            value,
        })?;
        self.producer.commit()
    }
}
