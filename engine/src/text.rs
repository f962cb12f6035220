//! Texts in records, which have a largest size.

/// Longest reason of a lost lane, in bytes; its journal entry has it twice.
pub const LOST_REASON_BYTES_MAX: usize = 4 << 10;

/// The beginning of a text that fits into `bytes_max` bytes, cut between characters.
pub fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
