//! Folds the write-ahead log back into the file before it grows long.
//!
//! Owns a connection for that alone, with a short patience for readers: SQLite's automatic checkpoint never waits for
//! them, so that under steady reading the write-ahead log would grow without bound. Readers here finish within a poll.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::file::LogFile;

/// Size of the write-ahead log from which the next commit folds it back, bytes.
pub const WAL_BYTES_MAX: u64 = 64 << 20;
/// Longest wait for readers to leave the write-ahead log. One that stays longer is tried again after as much growth.
const READER_WAIT_MAX: Duration = Duration::from_millis(50);

pub(super) struct Checkpointer {
    wal_path: PathBuf,
    connection: Option<Connection>,
    /// Size of the write-ahead log at which to try next.
    due_bytes: u64,
}

impl Checkpointer {
    pub(super) fn new(log: &Path) -> Self {
        let mut wal_path = log.as_os_str().to_owned();
        wal_path.push("-wal");
        Self { wal_path: wal_path.into(), connection: None, due_bytes: WAL_BYTES_MAX }
    }

    /// Folds the write-ahead log back if it is long. Failures are not those of the commit before: they are logged, and
    /// a disk that stays broken shows in the next commit.
    pub(super) fn run_if_due(&mut self, file: &LogFile) {
        let wal_bytes = std::fs::metadata(&self.wal_path).map_or(0, |metadata| metadata.len());
        if wal_bytes < self.due_bytes {
            if wal_bytes < WAL_BYTES_MAX {
                self.due_bytes = WAL_BYTES_MAX;
            }
            return;
        }
        self.due_bytes = match self.run(file) {
            Ok(true) => WAL_BYTES_MAX,
            Ok(false) => {
                tracing::warn!(log = %file.url, wal_bytes, "a reader keeps the write-ahead log from shrinking");
                wal_bytes + WAL_BYTES_MAX
            }
            Err(error) => {
                tracing::warn!(log = %file.url, wal_bytes, %error, "the write-ahead log cannot be folded back");
                wal_bytes + WAL_BYTES_MAX
            }
        };
    }

    /// Whether the write-ahead log was emptied.
    fn run(&mut self, file: &LogFile) -> rusqlite::Result<bool> {
        if self.connection.is_none() {
            self.connection = Some(file.connect_waiting(READER_WAIT_MAX)?);
        }
        let connection = self.connection.as_ref().expect("it was just opened");
        // The long part first, while other writers go on; then the short part that needs them to wait.
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            .map(|busy| busy == 0)
    }
}
