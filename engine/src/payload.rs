//! The bytes of a record, or the error if it has none: one rule for the run and for its replay.

use warptape_events::DecodeError;
use warptape_record::{Record, UnreadableBatch};

/// Returns the bytes to decode of a record from any producer.
///
/// # Errors
/// The record is a placeholder for a batch of records that cannot be read.
pub fn payload_of(record: &Record) -> Result<&[u8], DecodeError> {
    match UnreadableBatch::of(record) {
        None => Ok(&record.value),
        Some(batch) => {
            Err(DecodeError::UnreadableBatch { first_offset: batch.first_offset, detail: batch.to_string() })
        }
    }
}
