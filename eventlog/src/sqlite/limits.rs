//! Limits of a log's file, and the modes of its use.

use std::time::Duration;

use super::Durability;

/// Longest wait for other writers before a commit fails with [`crate::LogError::Busy`].
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);
/// Most steps of SQLite's virtual machine per operation: some seconds. A commit of 100,000 records in rows of their own
/// takes about 10 million.
pub(super) const STEPS_MAX: u64 = 256 << 20;
/// Largest size of a transaction in bytes, all of it in memory until it commits. One record may close the bars of a
/// million symbols, and this effect cannot be split; the limit exceeds its size.
pub const TRANSACTION_BYTES_MAX: usize = 16 << 30;
/// Largest size of a record in bytes: key, value and headers.
pub const RECORD_BYTES_MAX: usize = 64 << 20;
/// Page size of new logs in bytes. A small transaction rewrites a page of each of its partitions, so pages are small.
/// Older logs have pages of 16 KiB.
pub(super) const PAGE_BYTES: i64 = 4 * 1024;
/// Bytes of the write-ahead log from which it is folded concurrently with commits. Each fold makes the disk busy, which
/// may delay commits, so the value is not small.
pub const WAL_BYTES_DUE: i64 = 64 << 20;
/// Length of the write-ahead log in bytes from which a commit folds it and starts it over before it returns, unless a
/// reader prevents that.
pub const WAL_BYTES_MAX: i64 = 128 << 20;
/// Length of a segment in bytes from which its producer takes another one.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// Size in bytes from which a block goes to a segment. A commit writes the pages of smaller ones anyway.
pub(super) const LARGE_BLOCK_BYTES: usize = 1 << 10;
/// Bytes of large blocks that a producer stores in rows of a topic before it takes a segment. So a process that writes
/// little leaves no file behind.
pub(super) const ROWS_FIRST_BYTES: usize = 64 << 10;
/// Bytes of a transaction in a topic from which a segment is worth its own wait for the disk, if commits wait for it.
pub(super) const SYNCED_BYTES_MIN: usize = 256 << 10;
/// Most segments that stay open for reading.
pub(super) const SEGMENTS_OPEN_MAX: usize = 32;
/// Flag that keeps files beside the log from being opened through links, which may lead anywhere.
pub(super) const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// Mode of use of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Read and write.
    Write(Durability),
    /// Read while other processes may write.
    Read,
    /// Read a file that nobody can write, in a directory where no index of the write-ahead log can be created.
    ReadFrozen,
}
