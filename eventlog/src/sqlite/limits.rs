//! What a log's file may hold and take, and how it may be used.

use std::time::Duration;

use super::Durability;

/// Longest wait for other writers before a commit fails with [`crate::LogError::Busy`].
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);
/// Most steps of SQLite's virtual machine that an operation takes: some seconds. A commit of 100,000 records that have rows of their own
/// takes some 10 million.
pub(super) const STEPS_MAX: u64 = 256 << 20;
/// Most bytes that a transaction may hold, all of them in memory until it commits: more than one record may cause where a million
/// symbols close their bars at it, which cannot be cut.
pub const TRANSACTION_BYTES_MAX: usize = 16 << 30;
/// Most bytes of a record: key, value and headers.
pub const RECORD_BYTES_MAX: usize = 64 << 20;
/// Three records of 5 KB fill a page of this size, and a transaction of a few small records rewrites few of them.
pub(super) const PAGE_BYTES: i64 = 16 * 1024;
/// What waits in the write-ahead log before it is folded back while commits go on, bytes. Each time costs the disk
/// some waiting that commits may notice, so it is not small.
pub const WAL_BYTES_DUE: i64 = 64 << 20;
/// Length of the write-ahead log from which a commit does not return before it is folded back and begun again, or a
/// reader was found to prevent it, bytes.
pub const WAL_BYTES_MAX: i64 = 128 << 20;
/// Files beside the log are not opened where a link stands in their place: it may lead anywhere.
pub(super) const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// How a log may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Read and write.
    Write(Durability),
    /// Read while other processes may write.
    Read,
    /// Read a file that nobody can write, in a directory that takes no index of the write-ahead log.
    ReadFrozen,
}
