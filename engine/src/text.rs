//! Texts that become part of records, which have a largest size.

/// Longest reason of a lost lane, which its journal entry has twice.
pub const LOST_REASON_BYTES_MAX: usize = 4 << 10;

/// As much of a text as fits into so many bytes.
pub fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
