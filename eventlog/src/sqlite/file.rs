//! The log's file: its path, opening connections to it, and the order of writers.
//!
//! It does not know the tables' meaning. It opens the file only through SQLite. Closing any other descriptor of the
//! file would drop this process's SQLite locks on it (POSIX advisory locks).
//!
//! `opening`, `ends`, `catalogue` and `format` read the file, and this module calls their checks whenever the file is
//! opened or written. So these five modules depend on each other.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use super::beside::Beside;
use super::bounded::Bounded;
use super::ends::Own;
use super::head::{HeadEnd, HeadFile, head_path};
use super::limits::{Access, LOCK_WAIT_MAX, WAL_BYTES_DUE};
use super::segments::Segments;
use super::wake::Wakes;
use super::watch::Watch;
use super::{Durability, failure, opening};
use crate::LogError;

/// Pause between two checks of a lock held by another process. Writers hold it for milliseconds.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Most attempts to fold the write-ahead log concurrently with readers, `LOCK_POLL_INTERVAL` apart.
const FOLD_TRIES_MAX: usize = 50;
/// Prepared statements kept per connection: a few per partition that it touches.
const STATEMENTS_CACHED_MAX: usize = 512;
/// Page cache of a connection, KiB. Sequential reading and appending at right edges need little.
const PAGE_CACHE_KIB: i64 = 1024;

/// The file and the shared state of all handles of one [`super::SqliteLog`].
pub(super) struct LogFile {
    /// Path of the file. It is canonical, so that it survives a change of the working directory, and each lock file has
    /// one name.
    pub(super) path: PathBuf,
    /// The log's name for users.
    pub(super) url: String,
    pub(super) access: Access,
    /// Counters that producers advance after each commit, and that polling consumers wait for.
    pub(super) wakes: Arc<Wakes>,
    /// Wakes for commits of other processes.
    pub(super) watch: Watch,
    /// The write-ahead log and its index while connections have them open.
    pub(super) beside: Arc<Beside>,
    /// The files of large blocks.
    pub(super) segments: Segments,
    /// Lock for the process's turn to write; it holds the head from the first write on. SQLite's own lock is for other
    /// processes, where waiting means polling.
    turn: Mutex<Option<HeadFile>>,
}

/// A write transaction, with its change of the log's own counts.
pub(super) struct Writing<'a> {
    pub(super) transaction: Transaction<'a>,
    pub(super) own: Own,
    /// Ends of the written partitions, for the head.
    pub(super) ends: Vec<HeadEnd>,
}

impl LogFile {
    pub(super) fn new(path: PathBuf, url: String, access: Access) -> Self {
        let (wakes, beside) = (Arc::new(Wakes::default()), Arc::new(Beside::new(path.clone())));
        let watch = Watch::new(path.clone(), Arc::clone(&wakes));
        let segments = Segments::new(&url, &path);
        Self { path, url, access, wakes, watch, beside, segments, turn: Mutex::new(None) }
    }

    /// Pauses before another look at a lock of another process.
    pub(super) fn pause(&self) {
        self.wakes.any.wait(self.wakes.any.commits(), LOCK_POLL_INTERVAL);
    }

    /// Returns true if each commit waits for the disk.
    pub(super) fn is_synced(&self) -> bool {
        self.access == Access::Write(Durability::Full)
    }

    /// Opens a connection for a consumer or producer.
    pub(super) fn connect(&self) -> Result<Bounded, LogError> {
        self.connect_waiting(LOCK_WAIT_MAX)
    }

    /// Opens a connection that waits for locks at most `lock_wait_max`.
    pub(super) fn connect_waiting(&self, lock_wait_max: Duration) -> Result<Bounded, LogError> {
        self.check_before_connecting()?;
        self.connect_unchecked(lock_wait_max).map_err(|error| self.failure("opening the log", error))
    }

    fn connect_unchecked(&self, lock_wait_max: Duration) -> rusqlite::Result<Bounded> {
        let mut connection = self.connect_bare()?;
        let wakes = Arc::clone(&self.wakes);
        let mut started = Instant::now();
        connection.busy_handler(Some(move |attempts| {
            if attempts == 0 {
                started = Instant::now();
            }
            wakes.any.wait(wakes.any.commits(), LOCK_POLL_INTERVAL);
            started.elapsed() < lock_wait_max
        }))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
        // Cells are checked as pages are read.
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "cache_size", -PAGE_CACHE_KIB)?;
        // Memory-mapped pages would turn a truncation by another process into a signal instead of an error.
        connection.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(()))?;
        // The checkpointer folds instead, where a failure does not fail a commit.
        connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
        // A longer write-ahead log shrinks to this size when it begins again.
        connection.pragma_update_and_check(None, "journal_size_limit", 2 * WAL_BYTES_DUE, |_| Ok(()))?;
        if let Access::Write(durability) = self.access {
            connection.pragma_update(None, "synchronous", durability.synchronous())?;
        }
        Ok(connection)
    }

    /// Opens a connection with no settings except the limits for a hostile file.
    pub(super) fn connect_bare(&self) -> rusqlite::Result<Bounded> {
        // Each connection belongs to one thread at a time, so it does without SQLite's own mutexes.
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let files = Arc::clone(&self.beside);
        match self.access {
            Access::Write(_) => Bounded::open(&self.path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE, files),
            Access::Read => Bounded::open(&self.path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY, files),
            Access::ReadFrozen => {
                let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                Bounded::open(frozen_uri(&self.path), flags, files)
            }
        }
    }

    /// Runs `write` in a transaction that holds the write lock from the start. It commits as a whole or not at all;
    /// after an error, the connection is outside any transaction.
    pub(super) fn write<T>(
        &self,
        connection: &Bounded,
        doing: &str,
        write: impl FnOnce(&mut Writing<'_>) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        if !matches!(self.access, Access::Write(_)) {
            return Err(LogError::ReadOnly { url: self.url.clone(), doing: doing.to_owned() });
        }
        let result = {
            let mut turn = self.take_turn();
            self.begin(connection)?;
            let head = match &mut *turn {
                Some(head) if head.is_in_place(&self.path) => head,
                Some(_) => return Err(self.head_gone()),
                none => none.insert(self.begin_writing(connection, doing)?),
            };
            self.transact(connection, head, doing, write)?
        };
        self.wakes.any.notify();
        Ok(result)
    }

    fn transact<T>(
        &self,
        connection: &Connection,
        head: &HeadFile,
        doing: &str,
        write: impl FnOnce(&mut Writing<'_>) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
            .map_err(|error| self.failure(doing, error))?;
        let before = Own::read(self, &transaction)?;
        let mut writing = Writing { transaction, own: before, ends: Vec::new() };
        // Dropping the transaction on an error rolls it back.
        let result = write(&mut writing)?;
        let Writing { transaction, mut own, ends } = writing;
        own.transactions += 1;
        own.write(self, &transaction, &before)?;
        transaction.commit().map_err(|error| {
            // A failed COMMIT may leave the transaction open.
            if !connection.is_autocommit() {
                let _ = connection.execute_batch("ROLLBACK");
            }
            self.failure(doing, error)
        })?;
        self.watch.count_own();
        // The commit is valid; an outdated head only says less about a later loss.
        if let Err(error) = head.write(own.transactions, &ends) {
            tracing::warn!(log = self.url, %error, "the head of the log cannot be written");
        }
        Ok(result)
    }

    /// Prepares the first write of this process: marks the file as open, because from now on the log may need its
    /// write-ahead log.
    fn begin_writing(&self, connection: &Connection, doing: &str) -> Result<HeadFile, LogError> {
        let started = Instant::now();
        let head = loop {
            match self.open_head(doing)? {
                Some(head) => break head,
                None if started.elapsed() < LOCK_WAIT_MAX => {
                    self.pause();
                }
                None => return Err(failure::busy(&self.url, doing)),
            }
        };
        opening::compare(self, connection)?;
        let own = Own::read(self, connection)?;
        if !own.is_open {
            let began = head.write(own.transactions, &[]).and_then(|()| head.sync());
            began.map_err(|error| self.head_failure(doing, &error))?;
            self.transact(connection, &head, doing, |writing| {
                writing.own.is_open = true;
                Ok(())
            })?;
            self.fold_all(connection);
        }
        Ok(head)
    }

    fn open_head(&self, doing: &str) -> Result<Option<HeadFile>, LogError> {
        HeadFile::open(&self.path).map_err(|error| self.head_failure(doing, &error))
    }

    fn head_failure(&self, doing: &str, cause: &std::io::Error) -> LogError {
        if cause.kind() == std::io::ErrorKind::StorageFull {
            return LogError::Full { url: self.url.clone(), doing: doing.to_owned() };
        }
        LogError::Storage {
            url: self.url.clone(),
            doing: format!("{doing}, at its head {},", head_path(&self.path).display()),
            cause: cause.to_string(),
        }
    }

    /// Folds the mark of an open log into the file. If a reader prevents that, a later checkpoint does it.
    fn fold_all(&self, connection: &Connection) {
        if let Err(error) = self.segments.sync() {
            return tracing::debug!(log = self.url, %error, "the log was not folded");
        }
        for _ in 0..FOLD_TRIES_MAX {
            match self.fold(connection) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => return tracing::debug!(log = self.url, %error, "the log was not folded"),
            }
            self.pause();
        }
    }

    /// Folds as much of the write-ahead log into the file as no reader needs. Returns true if that is all of it.
    pub(super) fn fold(&self, connection: &Connection) -> rusqlite::Result<bool> {
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok(row.get::<_, i64>(1)? == row.get::<_, i64>(2)?)
        })
    }

    /// Makes the file the whole log again if no other process writes it, so that the file alone may be copied.
    fn close(&self, head: &HeadFile) -> Result<(), LogError> {
        const DOING: &str = "closing the log";
        if !head.is_alone() || self.beside.is_cut() {
            return Ok(());
        }
        // No connection has the noted files open.
        self.beside.forget();
        let connection = self.connect()?;
        // Another log may have replaced this one by now.
        opening::compare_with(self, &connection, head)?;
        if Own::read(self, &connection)?.is_open {
            self.transact(&connection, head, DOING, |writing| {
                writing.own.is_open = false;
                Ok(())
            })?;
        }
        self.segments.sync().map_err(|cause| failure::explain_io(&self.url, DOING, &cause))?;
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(|error| self.failure(DOING, error))
    }

    /// Takes the write turn of this process.
    pub(super) fn take_turn(&self) -> MutexGuard<'_, Option<HeadFile>> {
        // A panic in another writer leaves a consistent value: the head is either present or absent.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Repeats `attempt` while another process is setting the file up, which SQLite reports without waiting.
    pub(super) fn retry_while_busy<T>(
        &self,
        mut attempt: impl FnMut() -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let started = Instant::now();
        loop {
            match attempt() {
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                        && started.elapsed() < LOCK_WAIT_MAX =>
                {
                    self.pause();
                }
                result => return result,
            }
        }
    }

    /// Converts an SQLite error for the user of this log.
    pub(super) fn failure(&self, doing: &str, error: rusqlite::Error) -> LogError {
        failure::explain(&self.url, self.access, doing, error)
    }

    /// Returns the error for content that this crate never writes.
    pub(super) fn damaged(&self, found: String) -> LogError {
        LogError::Unreadable {
            url: self.url.clone(),
            found: format!("the log is damaged: {found}"),
            action: failure::DAMAGED_ACTION.to_owned(),
        }
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let turn = self.turn.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = turn.take()
            && let Err(error) = self.close(&head)
        {
            tracing::debug!(log = self.url, %error, "the log was not closed");
        }
    }
}

/// Returns `file:PATH?immutable=1` with all special characters of URIs escaped.
fn frozen_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte))
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_waits_too_long_says_so_and_may_try_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        let access = Access::Write(crate::Durability::Process);
        let file = LogFile::new(path.clone(), "sqlite:log.db".to_owned(), access);
        // The files beside the log exist as long as one connection is open.
        let _first = super::super::format::open(&file).unwrap();
        let connection = file.connect_waiting(Duration::from_millis(5)).unwrap();
        let write = || {
            file.write(&connection, "testing", |writing| {
                let inserted = writing.transaction.execute("INSERT INTO producers VALUES ('p', 1)", []);
                inserted.map_err(|error| file.failure("testing", error))
            })
        };
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = write().unwrap_err();
        assert!(matches!(error, LogError::Busy { .. }), "{error}");
        for part in ["sqlite:log.db", "LOCK_WAIT_MAX", "testing"] {
            assert!(error.to_string().contains(part), "{part:?} is missing in: {error}");
        }
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(write().unwrap(), 1);
    }

    #[test]
    fn uris_keep_odd_paths() {
        assert_eq!(frozen_uri(Path::new("/a b/100%?#.db")), "file:/a%20b/100%25%3F%23.db?immutable=1");
    }
}
