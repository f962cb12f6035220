//! Folds the write-ahead log back into the file before it grows long.
//!
//! Owns a thread and a connection for that alone, so that commits do not wait for the disk. SQLite's automatic
//! checkpoint never waits for readers, so that under steady reading the write-ahead log would grow without bound;
//! readers here finish within a poll, so a short patience is enough.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::file::LogFile;
use super::format;
use crate::LogError;

/// Size of the write-ahead log from which it is folded back while commits go on, bytes. Each time costs the disk some
/// waiting that commits may notice, so it is not small.
pub const WAL_BYTES_DUE: u64 = 64 << 20;
/// Size from which a commit does not return before it is folded back, or a reader was found to prevent it, bytes.
pub const WAL_BYTES_MAX: u64 = 512 << 20;
const _: () = assert!(WAL_BYTES_DUE * 4 <= WAL_BYTES_MAX, "folding back needs time while commits go on");
/// Longest wait for readers to leave the write-ahead log; commits wait too. A reader that stays longer is asked again
/// after `WAL_BYTES_DUE` of growth.
const READER_WAIT_MAX: Duration = Duration::from_millis(50);
/// Most passes beside running commits. Each leaves the next what was committed during it, so that in the end hardly
/// anything, mostly nothing, is left to be done while commits wait.
const PASSES_MAX: usize = 4;

/// Sizes of the write-ahead log at which something is done about it.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) due_bytes: u64,
    pub(super) bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { due_bytes: WAL_BYTES_DUE, bytes_max: WAL_BYTES_MAX }
    }
}

/// Watches the size of the write-ahead log. Producers report commits to it; dropping the last handle ends its thread.
pub(super) struct Checkpointer {
    fold: Arc<Fold>,
    /// `None` only while dropping: the thread ends when its sender is gone.
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and commits at the hard limit share.
struct Fold {
    file: Arc<LogFile>,
    wal_path: PathBuf,
    limits: Limits,
    /// Size of the write-ahead log at which to try next; more than the limit after a reader prevented it.
    due_bytes: AtomicU64,
    connection: Mutex<Option<Connection>>,
}

impl Checkpointer {
    pub(super) fn start(file: Arc<LogFile>, limits: Limits) -> Result<Self, LogError> {
        let wal_path = format::wal_path(&file.path);
        let url = file.url.clone();
        let fold = Arc::new(Fold {
            file,
            wal_path,
            limits,
            due_bytes: AtomicU64::new(limits.due_bytes),
            connection: Mutex::new(None),
        });
        // One request waiting is enough: it looks at the size when its turn comes.
        let (requests, receiver) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("log-checkpoint".to_owned())
            .spawn({
                let fold = Arc::clone(&fold);
                move || serve(&fold, &receiver)
            })
            .map_err(|cause| LogError::Storage {
                url,
                doing: "starting the checkpoint thread".to_owned(),
                cause: cause.to_string(),
            })?;
        Ok(Self { fold, requests: Some(requests), thread: Some(thread) })
    }

    /// To be called after each commit, outside any transaction.
    pub(super) fn committed(&self) {
        let wal_bytes = self.fold.wal_bytes();
        if wal_bytes < self.fold.limits.due_bytes {
            // Another process may have folded it back after a reader prevented it here.
            self.fold.due_bytes.store(self.fold.limits.due_bytes, Ordering::Relaxed);
        } else if wal_bytes < self.fold.due_bytes.load(Ordering::Relaxed) {
            // Too early to try again.
        } else if wal_bytes >= self.fold.limits.bytes_max {
            self.fold.run_if_due();
        } else if let Some(requests) = &self.requests {
            // Full: a request is waiting already.
            let _ = requests.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // It panics only on a defect, which the panic hook has reported.
            let _ = thread.join();
        }
    }
}

fn serve(fold: &Fold, requests: &Receiver<()>) {
    while requests.recv().is_ok() {
        fold.run_if_due();
    }
}

impl Fold {
    fn wal_bytes(&self) -> u64 {
        std::fs::metadata(&self.wal_path).map_or(0, |metadata| metadata.len())
    }

    /// Failures are not those of the commits before: they are logged, and a disk that stays broken fails a later one.
    fn run_if_due(&self) {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let wal_bytes = self.wal_bytes();
        if wal_bytes < self.due_bytes.load(Ordering::Relaxed) {
            return;
        }
        let log = &self.file.url;
        let due_bytes = match self.run(&mut connection) {
            Ok(true) => self.limits.due_bytes,
            Ok(false) => {
                tracing::debug!(log, wal_bytes, "a reader keeps the write-ahead log from shrinking");
                self.wal_bytes() + self.limits.due_bytes
            }
            Err(error) => {
                tracing::warn!(log, wal_bytes, %error, "the write-ahead log cannot be folded back");
                self.wal_bytes() + self.limits.due_bytes
            }
        };
        self.due_bytes.store(due_bytes, Ordering::Relaxed);
    }

    /// Whether the write-ahead log was emptied.
    fn run(&self, connection: &mut Option<Connection>) -> rusqlite::Result<bool> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(self.file.connect_waiting(READER_WAIT_MAX)?),
        };
        for _ in 0..PASSES_MAX {
            let (frames, folded) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })?;
            if frames == folded {
                break;
            }
        }
        let _turn = self.file.take_turn();
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))
            .map(|busy| !busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventLog, Fetched, NewRecord, Producer, SqliteLog, TopicPartition, TopicSpec};

    const LIMITS: Limits = Limits { due_bytes: 1 << 20, bytes_max: 4 << 20 };
    const TRANSACTION_BYTES: usize = 256 << 10;

    /// A log with short limits, a producer on it and the size of its write-ahead log.
    fn open(directory: &tempfile::TempDir) -> (SqliteLog, Box<dyn Producer>, impl Fn() -> u64) {
        let path = directory.path().join("log.db");
        let log =
            SqliteLog::open_with(&path, super::super::Access::Write(Default::default()), LIMITS).unwrap();
        log.create_topics(&[TopicSpec { name: "t".to_owned(), partitions: 1, compacted: false }]).unwrap();
        let producer = log.producer("p").unwrap();
        let wal = directory.path().join("log.db-wal");
        (log, producer, move || std::fs::metadata(&wal).map_or(0, |metadata| metadata.len()))
    }

    fn commit(producer: &mut dyn Producer) {
        producer.begin().unwrap();
        let value = vec![7; TRANSACTION_BYTES];
        producer.send(NewRecord { topic: "t".to_owned(), value, ..NewRecord::default() }).unwrap();
        producer.commit().unwrap();
    }

    #[test]
    fn the_write_ahead_log_stays_short_under_reading() {
        let directory = tempfile::tempdir().unwrap();
        let (log, mut producer, wal_bytes) = open(&directory);
        let mut reader = log.reader(&[TopicPartition { topic: "t".to_owned(), partition: 0 }]).unwrap();
        let count = 100;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut left = count;
                while left > 0 {
                    match reader.poll(Duration::from_secs(10), 1, usize::MAX).unwrap() {
                        Fetched::Records { records, .. } => left -= records.len(),
                        other => panic!("{left} records did not come: {other:?}"),
                    }
                }
            });
            for _ in 0..count {
                commit(&mut *producer);
                let bytes = wal_bytes();
                // Page headers and the pages of the catalogue come on top of the values.
                assert!(bytes < LIMITS.bytes_max + 2 * TRANSACTION_BYTES as u64, "{bytes} bytes");
            }
        });
    }

    #[test]
    fn a_reader_that_stays_holds_up_the_folding_only() {
        let directory = tempfile::tempdir().unwrap();
        let (log, mut producer, wal_bytes) = open(&directory);
        commit(&mut *producer);
        let mut blocker = log.connection();
        let blocking = blocker.transaction().unwrap();
        let topics: i64 = blocking.query_row("SELECT count(*) FROM topics", [], |row| row.get(0)).unwrap();
        assert_eq!(topics, 1);
        while wal_bytes() < 2 * LIMITS.bytes_max {
            commit(&mut *producer);
        }
        drop(blocking);
        for _ in 0..8 {
            commit(&mut *producer);
        }
        let bytes = wal_bytes();
        assert!(bytes < LIMITS.bytes_max, "{bytes} bytes are left after the reader left");
    }
}
