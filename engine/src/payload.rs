//! The bytes of a record or the reason why it has none: one rule, for the run and for its replay.

use warptape_events::DecodeError;
use warptape_record::{Record, UnreadableBatch};

/// The bytes to decode of a record that a stranger may have written.
///
/// # Errors
/// If it stands for a batch of records that nobody can read.
pub fn payload_of(record: &Record) -> Result<&[u8], DecodeError> {
    match UnreadableBatch::of(record) {
        None => Ok(&record.value),
        Some(batch) => {
            Err(DecodeError::UnreadableBatch { first_offset: batch.first_offset, detail: batch.to_string() })
        }
    }
}
