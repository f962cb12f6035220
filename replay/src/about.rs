//! The statement in a log's file: the log from which it was exported, or the settings with which it was modelled.

use serde_json::Value;
use warptape_eventlog::{EventLog, TopicPartition};

use crate::partition_reader::PartitionReader;
use crate::{ABOUT_KEY, ABOUT_TOPIC, ReplayError};

/// Field of the statement that only modelled runs have: their differences from the recorded run.
pub const MODELLED: &str = "modelled";

/// Reads the statement in a log's file; `None` for a log that pipelines use.
///
/// # Errors
/// If the log cannot be read, or its statement is not JSON.
pub(crate) fn about(log: &dyn EventLog) -> Result<Option<Value>, ReplayError> {
    let Some(topic) = log.topic(ABOUT_TOPIC)? else { return Ok(None) };
    let source = TopicPartition { topic: ABOUT_TOPIC.to_owned(), partition: 0 };
    let unreadable = |offset: i64, error: String| ReplayError::RecordUnreadable {
        url: log.url(),
        topic: ABOUT_TOPIC.to_owned(),
        partition: 0,
        offset,
        error,
    };
    let mut reader = PartitionReader::open(log, source, topic.offsets[0])?;
    while let Some(record) = reader.next()? {
        if record.key.as_deref() == Some(ABOUT_KEY.as_bytes()) {
            let said = serde_json::from_slice(&record.value);
            return said.map(Some).map_err(|error| unreadable(record.offset, error.to_string()));
        }
    }
    Err(unreadable(0, format!("there is no record with the key {ABOUT_KEY}")))
}

/// Returns the log from which a modelled run was made; `None` if the run was not modelled.
pub(crate) fn modelled_from(log: &dyn EventLog) -> Result<Option<String>, ReplayError> {
    let said = about(log)?.filter(|about| about.get(MODELLED).is_some());
    Ok(said.map(|about| about["log"].as_str().unwrap_or_default().to_owned()))
}
