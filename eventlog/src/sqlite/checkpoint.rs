//! Folds the write-ahead log back into the file before it grows long.
//!
//! ```text
//!  commit ── length of the log? ──┬── WAL_BYTES_DUE unfolded: ask the thread, which folds beside commits, then
//!                                 │   blocks them for the small rest, and starts the log over
//!                                 └── WAL_BYTES_MAX long: fold and start over before the commit returns
//! ```
//!
//! It owns two threads, and a connection used only for folding. Folding concurrently with commits yields the processor
//! to them, because it copies tens of MiB at once, which would delay them. Folding that a commit waits for does not
//! yield: a commit at the hard limit interrupts a yielding fold of its process and folds itself. (If another process is
//! folding, it cannot interrupt that, and does not fold.)
//!
//! SQLite's automatic checkpoint would make commits wait for the disk. It never waits for readers, so that under steady
//! reading the write-ahead log would grow without bound. Readers here finish within a poll, so a short wait is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, InterruptHandle};

use super::bounded::Bounded;
use super::disk;
use super::file::LogFile;
use super::limits::{WAL_BYTES_DUE, WAL_BYTES_MAX};
use super::yielding::Breakable;
use crate::LogError;
use crate::background::BackgroundThread;

const _: () = assert!(WAL_BYTES_DUE * 2 <= WAL_BYTES_MAX, "folding back needs time while commits go on");
/// Longest wait for readers to leave the write-ahead log; commits wait meanwhile. If a reader stays longer, the fold is
/// tried again after the log has grown by `WAL_BYTES_DUE`.
const READER_WAIT_MAX: Duration = Duration::from_millis(50);
/// Pause of a commit between two attempts to interrupt a yielding fold.
const BREAK_INTERVAL: Duration = Duration::from_millis(1);
/// Number of folding passes concurrent with commits; each leaves the commits made during it to the next.
const PASSES: usize = 2;

/// Lengths of the write-ahead log that trigger folding, in bytes, and the longest wait for readers.
#[derive(Clone, Copy)]
pub(super) struct WalLimits {
    pub(super) due_bytes: i64,
    pub(super) bytes_max: i64,
    pub(super) reader_wait_max: Duration,
}

impl Default for WalLimits {
    fn default() -> Self {
        Self { due_bytes: WAL_BYTES_DUE, bytes_max: WAL_BYTES_MAX, reader_wait_max: READER_WAIT_MAX }
    }
}

/// Length of the write-ahead log at some moment, in bytes of pages.
struct WalLength {
    /// The whole length.
    bytes: i64,
    /// The length of the part that is already folded into the file.
    folded_bytes: i64,
}

impl WalLength {
    /// Reads the lengths from the result of `PRAGMA wal_checkpoint`.
    fn query(connection: &Connection, mode: &str) -> rusqlite::Result<Self> {
        let page_bytes: i64 =
            connection.prepare_cached("PRAGMA page_size")?.query_row([], |row| row.get(0))?;
        let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
        statement.query_row([], |row| {
            Ok(Self {
                bytes: row.get::<_, i64>(1)? * page_bytes,
                folded_bytes: row.get::<_, i64>(2)? * page_bytes,
            })
        })
    }
}

/// Watches the length of the write-ahead log. Producers report commits to it; dropping the last handle ends its thread.
pub(super) struct Checkpointer {
    fold: Arc<Fold>,
    /// Sender of requests; `None` only while dropping, because the thread ends when its sender is gone.
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Shared state of the thread and of commits at the hard limit.
struct Fold {
    file: Arc<LogFile>,
    limits: WalLimits,
    /// Length from which a commit folds; it exceeds the limit after a reader prevented a fold.
    wait_bytes: AtomicI64,
    connection: Breakable<Bounded, InterruptHandle>,
}

impl Checkpointer {
    pub(super) fn start(file: Arc<LogFile>, limits: WalLimits) -> Result<Self, LogError> {
        let url = file.url.clone();
        let wait_bytes = AtomicI64::new(limits.bytes_max);
        let fold = Arc::new(Fold { file, limits, wait_bytes, connection: Breakable::default() });
        // One waiting request is enough: it covers all commits made before it is served.
        let (requests, receiver) = sync_channel(1);
        let name = "log-checkpoint";
        let thread = BackgroundThread::start(name, fold_beside_commits)
            .and_then(|background| {
                let fold = Arc::clone(&fold);
                let builder = std::thread::Builder::new().name(name.to_owned());
                builder.spawn(move || serve(&fold, &background, &receiver))
            })
            .map_err(|cause| LogError::Storage {
                url,
                doing: "starting the checkpoint thread".to_owned(),
                cause: cause.to_string(),
            })?;
        Ok(Self { fold, requests: Some(requests), thread: Some(thread) })
    }

    /// Reports a commit; to be called on its connection, outside any transaction. Failures here do not affect the
    /// commit: they are logged, and a permanently broken disk fails a later commit.
    pub(super) fn committed(&self, connection: &Connection) {
        let limits = self.fold.limits;
        let length = match WalLength::query(connection, "NOOP") {
            Ok(length) => length,
            Err(error) => return self.fold.warn(&error),
        };
        if length.bytes < limits.bytes_max {
            self.fold.wait_bytes.store(limits.bytes_max, Ordering::Relaxed);
        }
        if length.bytes >= self.fold.wait_bytes.load(Ordering::Relaxed) {
            self.fold.start_over();
        } else if length.bytes - length.folded_bytes >= limits.due_bytes
            && let Some(requests) = &self.requests
        {
            // A full channel means that a request is waiting already.
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

/// A connection returned after folding, with the result.
type Folded = (Bounded, rusqlite::Result<()>);

/// Serves requests: folds once for each.
fn serve(fold: &Fold, background: &BackgroundThread<Bounded, Folded>, requests: &Receiver<()>) {
    while requests.recv().is_ok() {
        if !fold.are_segments_synced() {
            continue;
        }
        fold.with_connection(|connection| {
            let breaker = connection.get_interrupt_handle();
            let run = || background.run(connection).0;
            let (connection, folded) = fold.connection.run_yielding(breaker, run);
            let done = folded.and_then(|()| fold.restart(&connection, 0));
            (connection, done)
        });
    }
}

/// Folds concurrently with commits, so that little remains for the fold that blocks them.
fn fold_beside_commits(connection: Bounded) -> Folded {
    let pass = || {
        WalLength::query(&connection, "PASSIVE")?;
        // The fold that starts the log over waits for the disk; this one syncs in advance.
        disk::sync(&connection)
    };
    let folded = (0..PASSES).try_for_each(|_| pass());
    (connection, folded)
}

impl Fold {
    /// Folds everything while nobody writes, so that the next commit begins the write-ahead log again.
    fn start_over(&self) {
        if !self.are_segments_synced() {
            return;
        }
        self.with_connection(|connection| {
            let done = self.restart(&connection, self.wait_bytes.load(Ordering::Relaxed));
            (connection, done)
        });
    }

    /// Waits until all segments are on the disk, because folded rows refer to them; returns true if they are.
    fn are_segments_synced(&self) -> bool {
        let synced = self.file.segments.sync();
        synced.inspect_err(|error| self.warn(error)).is_ok()
    }

    /// Starts over if the write-ahead log is still at least `bytes_min` long.
    fn restart(&self, connection: &Connection, bytes_min: i64) -> rusqlite::Result<()> {
        let _turn = self.file.take_turn();
        let wal_bytes = WalLength::query(connection, "NOOP")?.bytes;
        if wal_bytes < bytes_min {
            return Ok(());
        }
        // This process commits nothing meanwhile; others may.
        if !self.are_segments_synced() {
            return Ok(());
        }
        let busy: bool = connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0))?;
        if busy && wal_bytes >= self.limits.bytes_max {
            tracing::warn!(
                log = self.file.url,
                wal_bytes,
                "a reader keeps a snapshot open, so the \
                                                            write-ahead log grows"
            );
            self.wait_bytes.store(wal_bytes + self.limits.due_bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    fn with_connection(&self, run: impl FnOnce(Bounded) -> Folded) {
        let wakes = &self.file.wakes.any;
        let pause = || {
            wakes.wait(wakes.commits(), BREAK_INTERVAL);
        };
        let mut connection = self.connection.take(InterruptHandle::interrupt, pause);
        let opened = match connection.take() {
            Some(connection) => self.file.begin(&connection).map(|()| connection),
            None => self.file.connect_waiting(self.limits.reader_wait_max),
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return self.warn(&error),
        };
        let (opened, done) = run(opened);
        *connection = Some(opened);
        match done {
            Ok(()) => {}
            // Another process is folding, or a commit folds itself.
            Err(error)
                if matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy | ErrorCode::OperationInterrupted)
                ) => {}
            Err(error) => self.warn(&error),
        }
    }

    fn warn(&self, error: &dyn std::error::Error) {
        tracing::warn!(log = self.file.url, %error, "the write-ahead log cannot be written back to the file");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::{EventLog, Fetched, NewRecord, Producer, SqliteLog, TopicPartition, TopicSpec};

    const LIMITS: WalLimits =
        WalLimits { due_bytes: 1 << 20, bytes_max: 4 << 20, reader_wait_max: READER_WAIT_MAX };
    const TRANSACTION_BYTES: usize = 256 << 10;

    /// Opens a log with these limits, a producer on it, and a function for the length of its write-ahead log.
    fn open(
        directory: &tempfile::TempDir,
        limits: WalLimits,
    ) -> (SqliteLog, Box<dyn Producer>, impl Fn() -> i64) {
        let path = directory.path().join("log.db");
        let log =
            SqliteLog::open_with(&path, super::super::Access::Write(Default::default()), limits).unwrap();
        // Rows of a compacted topic lengthen the write-ahead log, whatever their size.
        let spec = TopicSpec { name: "t".to_owned(), partitions: 1, compacted: true, ..TopicSpec::default() };
        log.create_topics(&[spec]).unwrap();
        let producer = log.producer("p").unwrap();
        let other = log.file.connect().unwrap();
        (log, producer, move || WalLength::query(&other, "NOOP").unwrap().bytes)
    }

    fn commit(producer: &mut dyn Producer) {
        producer.begin().unwrap();
        let value = vec![7; TRANSACTION_BYTES];
        producer.send(NewRecord { topic: "t".into(), value: value.into(), ..NewRecord::default() }).unwrap();
        producer.commit().unwrap();
    }

    #[test]
    fn the_write_ahead_log_stays_short_under_reading() {
        let directory = tempfile::tempdir().unwrap();
        // The reader leaves after each poll, but may lose the processor for long within one.
        let limits = WalLimits { reader_wait_max: Duration::from_secs(60), ..LIMITS };
        let (log, mut producer, wal_bytes) = open(&directory, limits);
        let mut reader = log.reader(&[TopicPartition { topic: "t".to_owned(), partition: 0 }]).unwrap();
        let count = 100;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut left = count;
                while left > 0 {
                    match reader.poll(Duration::from_secs(120), 1, usize::MAX).unwrap() {
                        Fetched::Records { records, .. } => left -= records.len(),
                        other => panic!("{left} records did not come: {other:?}"),
                    }
                }
            });
            for _ in 0..count {
                commit(&mut *producer);
                let bytes = wal_bytes();
                // Page headers and pages of the catalogue add to the values.
                assert!(bytes < LIMITS.bytes_max + 2 * TRANSACTION_BYTES as i64, "{bytes} bytes");
            }
        });
    }

    #[test]
    fn a_reader_that_stays_holds_up_the_folding_only() {
        let directory = tempfile::tempdir().unwrap();
        let (log, mut producer, wal_bytes) = open(&directory, LIMITS);
        commit(&mut *producer);
        let mut blocker = log.connection().unwrap();
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

    #[test]
    fn a_commit_that_waits_breaks_off_what_yields() {
        let directory = tempfile::tempdir().unwrap();
        let (log, mut producer, wal_bytes) = open(&directory, LIMITS);
        commit(&mut *producer);
        assert!(wal_bytes() > 0);
        let fold = Fold {
            file: Arc::clone(&log.file),
            limits: LIMITS,
            wait_bytes: AtomicI64::new(0),
            connection: Breakable::default(),
        };
        // An endless query, like a fold that gets no processor time.
        let endless =
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        let is_folded = AtomicBool::new(false);
        std::thread::scope(|scope| {
            fold.with_connection(|connection| {
                let breaker = connection.get_interrupt_handle();
                let done = fold.connection.run_yielding(breaker, || {
                    scope.spawn(|| {
                        fold.start_over();
                        is_folded.store(true, Ordering::Relaxed);
                    });
                    connection.query_row(endless, [], |row| row.get::<_, i64>(0))
                });
                assert_eq!(
                    done.as_ref().unwrap_err().sqlite_error_code(),
                    Some(ErrorCode::OperationInterrupted)
                );
                assert!(!is_folded.load(Ordering::Relaxed));
                (connection, done.map(drop))
            });
        });
        assert!(is_folded.load(Ordering::Relaxed));
        // The write-ahead log began again: another commit overwrites the first.
        let before = wal_bytes();
        commit(&mut *producer);
        assert!(wal_bytes() <= before, "{} bytes after {before}", wal_bytes());
    }
}
