//! Schemas of ticks that `replay export` stores in its file, so that the file can be read without the schema registry.

use std::collections::BTreeMap;
use std::sync::Arc;

use warptape_eventlog::{EventLog, LogError, TopicPartition};
use warptape_replay::{ABOUT_TOPIC, PartitionReader, SCHEMA_ID_KEY};
use warptape_schemas::SchemaSource;

/// Schemas by their ids in a registry.
#[derive(Debug)]
struct Recorded(BTreeMap<u32, Arc<str>>);

impl SchemaSource for Recorded {
    fn schema(&self, id: u32) -> Option<Arc<str>> {
        self.0.get(&id).cloned()
    }
}

/// Returns the schemas stored in a log; `None` if the log is not an exported file, or its ticks need none.
pub fn recorded_schemas(log: &dyn EventLog) -> Result<Option<Arc<dyn SchemaSource>>, LogError> {
    let Some(topic) = log.topic(ABOUT_TOPIC)? else { return Ok(None) };
    let source = TopicPartition { topic: ABOUT_TOPIC.to_owned(), partition: 0 };
    let mut reader = PartitionReader::open(log, source, topic.offsets[0])?;
    let mut schemas = BTreeMap::new();
    while let Some(record) = reader.next()? {
        let key = record.key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
        let id = key.and_then(|key| key.strip_prefix(SCHEMA_ID_KEY)?.parse().ok());
        if let (Some(id), Ok(text)) = (id, String::from_utf8(record.value)) {
            schemas.insert(id, Arc::from(text));
        }
    }
    Ok((!schemas.is_empty()).then(|| Arc::new(Recorded(schemas)) as Arc<dyn SchemaSource>))
}
