//! How far sources of ticks are in the log.

use crate::wire::Wire;

/// How far a source of ticks is in the log: written in the transaction of its ticks, so that they are published once. The newest record of
/// a key counts; the key is the source and the digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
pub struct Feed {
    /// Kind of the source with all that its ticks depend on besides its bytes, such as: csv venue=BINANCE.
    pub source: String,
    /// Name of the file, for people; empty where there is none.
    pub name: String,
    /// BLAKE3 of the file's first `size_bytes` bytes as they are stored, as 64 lower-case hex digits; empty where there is no
    /// file.
    pub digest: String,
    /// Size of the file when it was fed.
    pub size_bytes: i64,
    /// Ticks of the source that are in the log: its first ones, in its order.
    pub ticks: i64,
    /// Whether the source had no more.
    pub is_finished: bool,
}

impl Feed {
    /// Returns the key of its record.
    pub fn key(&self) -> String {
        format!("{} {}", self.source, self.digest)
    }
}
