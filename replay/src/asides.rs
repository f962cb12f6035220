//! Dead letters as they were written before they were bounded.

use warptape_engine::dead_letter_of;
use warptape_eventlog::{Record, TopicPartition};
use warptape_schemas::{DecodeError, decode_dead_letter, fingerprint_of, known};

/// Whether a record is the dead letter of `of` as it was written before letters were bounded: the same, but whole.
pub(crate) fn is_older_dead_letter(
    found: &Record,
    source: &TopicPartition,
    of: &Record,
    error: &DecodeError,
) -> bool {
    let written = known::written(known::DEAD_LETTER).map(|schema| schema.fingerprint);
    let is_current = written.map(Some).any(|fingerprint| fingerprint == fingerprint_of(&found.value));
    !is_current
        && found.key.is_none()
        && decode_dead_letter(&found.value).is_ok_and(|letter| letter == dead_letter_of(source, of, error))
}
