//! Which tick record an output was caused by: outputs of a partition are in the order of their causes.

use warptape_schemas::{decode_dead_letter, decode_late_tick, decode_signal};

/// Offset of the tick record that caused an output; `None` for what cannot be read.
pub(crate) type CauseOf = fn(&[u8]) -> Option<i64>;

/// Of a signal.
pub(crate) fn of_signal(value: &[u8]) -> Option<i64> {
    decode_signal(value).ok().map(|signal| signal.source_offset)
}

/// Of a late tick.
pub(crate) fn of_late_tick(value: &[u8]) -> Option<i64> {
    decode_late_tick(value).ok().map(|late| late.offset)
}

/// Of a dead letter.
pub(crate) fn of_dead_letter(value: &[u8]) -> Option<i64> {
    decode_dead_letter(value).ok().map(|letter| letter.offset)
}
