//! The last entry of a journal, where the chain goes on.

use std::time::Duration;

use warptape_eventlog::{EventLog, Fetched, TopicPartition};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::JournalEntry;

use super::EngineError;

/// Bytes of one read: far above any entry.
const ENTRY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reads the last entry; `None` for an empty journal.
pub(super) fn last_entry(log: &dyn EventLog, journal: &str) -> Result<Option<JournalEntry>, EngineError> {
    let partition = TopicPartition { topic: journal.to_owned(), partition: 0 };
    let mut reader = log.reader(std::slice::from_ref(&partition))?;
    let range = reader.offsets(&partition)?;
    if range.first == range.next {
        return Ok(None);
    }
    reader.seek(&partition, range.next - 1)?;
    match reader.poll(Duration::from_secs(1), 1, ENTRY_BYTES_MAX)? {
        Fetched::Records { records, .. } => {
            let record = records.last().expect("a fetch has records");
            let entry = decode_journal_entry(&record.value).map_err(|error| EngineError::JournalTail {
                topic: journal.to_owned(),
                offset: record.offset,
                error,
            })?;
            Ok(Some(entry))
        }
        Fetched::Idle | Fetched::Assigned(_) | Fetched::Revoked(_) => {
            Err(EngineError::JournalTailMissing { topic: journal.to_owned(), offset: range.next - 1 })
        }
    }
}
