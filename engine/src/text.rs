//! Size limits of texts in records.

/// Longest reason of a lost lane, in bytes; the journal entry contains it twice.
pub const LOST_REASON_BYTES_MAX: usize = 4 << 10;

/// The longest prefix of a text that fits into `bytes_max` bytes, cut between characters.
pub fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
