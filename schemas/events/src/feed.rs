//! Progress of sources of ticks.

use crate::wire::Wire;

/// Progress of `warptape feed` with a source of ticks. It is written in the transaction of the ticks, so that each tick
/// is published once. The key is the source and the digest; the newest record of a key counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
pub struct Feed {
    /// Kind of the source, with all settings that its ticks depend on, such as: csv venue=BINANCE.
    pub source: String,
    /// Name of the file, for people; empty if there is no file.
    pub name: String,
    /// BLAKE3 of the first `size_bytes` bytes of the file as stored, as 64 lower-case hex digits; empty if there is no
    /// file.
    pub digest: String,
    /// Size of the file when it was fed, in bytes.
    pub size_bytes: i64,
    /// Number of the source's ticks that are in the log: its first ones, in its order.
    pub ticks: i64,
    /// True if the source had no more ticks.
    pub is_finished: bool,
}

impl Feed {
    /// Returns the key of the record.
    pub fn key(&self) -> String {
        format!("{} {}", self.source, self.digest)
    }
}
