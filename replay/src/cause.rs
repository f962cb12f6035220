//! The tick record that caused an output. Outputs of a partition are in the order of the tick records that caused them.

use warptape_schemas::{decode_dead_letter, decode_late_tick, decode_signal};

/// Returns the offset of the tick record that caused an output; `None` if the output cannot be read.
pub(crate) type CauseOf = fn(&[u8]) -> Option<i64>;

/// Returns the offset of the tick record that caused a signal.
pub(crate) fn of_signal(value: &[u8]) -> Option<i64> {
    decode_signal(value).ok().map(|signal| signal.source_offset)
}

/// Returns the offset of the tick record that caused a late tick.
pub(crate) fn of_late_tick(value: &[u8]) -> Option<i64> {
    decode_late_tick(value).ok().map(|late| late.offset)
}

/// Returns the offset of the tick record that caused a dead letter.
pub(crate) fn of_dead_letter(value: &[u8]) -> Option<i64> {
    decode_dead_letter(value).ok().map(|letter| letter.offset)
}
