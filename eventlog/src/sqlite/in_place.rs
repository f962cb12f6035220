//! Checks, before each operation, that an open log's files still have their names and are not truncated.
//!
//! Damage remains an error until every process that uses the log has ended. Until then this crate saves as much as
//! possible. It folds an open write-ahead log that lost its name into the file, but never a truncated one.

use std::path::Path;

use rusqlite::Connection;

use super::beside::{Harm, beside};
use super::bounded::Bounded;
use super::file::LogFile;
use super::head::head_path;
use super::limits::STEPS_MAX;
use crate::LogError;

const BECAME: &str = "was deleted, moved or replaced while it was open";
const START_AGAIN: &str = "stop every process that uses the log, and start again";
/// Sizes of a write-ahead log's header and of each page's header in SQLite's format, in bytes.
const WAL_HEADER_BYTES: u64 = 32;
const WAL_FRAME_BYTES: u64 = 24;

impl LogFile {
    /// Begins an operation: checks the log's files, and limits the operation's steps.
    pub(super) fn begin(&self, connection: &Bounded) -> Result<(), LogError> {
        self.check_in_place(connection)?;
        connection.allow(STEPS_MAX);
        Ok(())
    }

    /// Begins an operation that reads the whole log.
    pub(super) fn begin_reading_all(&self, connection: &Bounded) -> Result<(), LogError> {
        self.check_in_place(connection)?;
        let bytes = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        connection.allow_reading(bytes + self.beside.wal_bytes());
        Ok(())
    }

    /// Rejects a new connection if the files were replaced or the index was truncated, because the connection would
    /// open other files than the current ones.
    pub(super) fn check_before_connecting(&self) -> Result<(), LogError> {
        match self.beside.harm() {
            None | Some(Harm::WalShorter) => Ok(()),
            Some(harm) => Err(self.harmed(harm, false)),
        }
    }

    /// Rejects missing files: SQLite would keep using them, but other processes could not see them.
    fn check_in_place(&self, connection: &Bounded) -> Result<(), LogError> {
        let mut moved = 0;
        connection
            .file_control(Some("main"), rusqlite::FileControl::HasMoved(&mut moved))
            .map_err(|error| self.failure("checking that the file of the log is in place", error))?;
        if moved != 0 {
            return Err(LogError::Unreadable {
                url: self.url.clone(),
                found: "the file was deleted, moved or replaced while it was open".to_owned(),
                action: "put it back with its -wal file if possible, and start this process again".to_owned(),
            });
        }
        match self.beside.harm() {
            None => Ok(()),
            Some(Harm::WalShorter) if self.is_wal_whole(connection) => {
                self.beside.accept_wal();
                Ok(())
            }
            // A file without a name is lost when the last process that has it open ends.
            Some(Harm::WalGone) => Err(self.harmed(Harm::WalGone, self.fold(connection).unwrap_or(false))),
            Some(harm) => Err(self.harmed(harm, false)),
        }
    }

    /// Returns true if the write-ahead log contains all pages known to its index. It also becomes shorter when it
    /// begins again.
    fn is_wal_whole(&self, connection: &Connection) -> bool {
        let query = || -> rusqlite::Result<u64> {
            let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            let pages: u32 = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))?;
            let frame = WAL_FRAME_BYTES + u64::from(page);
            Ok(if pages == 0 { 0 } else { WAL_HEADER_BYTES + u64::from(pages) * frame })
        };
        query().is_ok_and(|bytes| bytes <= self.beside.wal_bytes())
    }

    /// Returns the error for damage to a file beside the log, with the remedy.
    fn harmed(&self, harm: Harm, is_folded: bool) -> LogError {
        let [wal, index] = ["-wal", "-shm"].map(|ending| beside(&self.path, ending));
        let (wal, index) = (wal.display(), index.display());
        let whole = "all that was committed is in the write-ahead log";
        let (found, action) = match harm {
            Harm::WalGone if is_folded => (
                format!("its write-ahead log {wal} {BECAME}; all of its contents are in the file now"),
                START_AGAIN.to_owned(),
            ),
            Harm::WalGone => (
                format!("its write-ahead log {wal} {BECAME} and was not written back to the file"),
                format!(
                    "{START_AGAIN}: the start lists what is lost, and `warptape log recover` continues \
                         without it"
                ),
            ),
            Harm::WalShorter => (
                format!("its write-ahead log {wal} was truncated while it was open"),
                "stop every process that uses the log, and build a usable log from its intact contents with \
                 `warptape log recover`"
                    .to_owned(),
            ),
            Harm::IndexGone => (
                format!("the index of its write-ahead log, {index}, {BECAME}; {whole}"),
                START_AGAIN.to_owned(),
            ),
            Harm::IndexCut => (
                format!(
                    "the index of its write-ahead log, {index}, was truncated while it was open; {whole}"
                ),
                START_AGAIN.to_owned(),
            ),
        };
        LogError::Unreadable { url: self.url.clone(), found, action }
    }

    /// Returns the error for a segment that has lost its name, or whose name another file has.
    pub(super) fn segment_gone(&self, segment: &Path) -> LogError {
        LogError::Unreadable {
            url: self.url.clone(),
            found: format!("its segment {} {BECAME}", segment.display()),
            action: format!(
                "put it back if possible and {START_AGAIN}; without it, `warptape log recover` continues with the \
                 other records"
            ),
        }
    }

    /// Returns the error for a head that has lost its name, or whose name another file has.
    pub(super) fn head_gone(&self) -> LogError {
        LogError::Unreadable {
            url: self.url.clone(),
            found: format!("its head {} {BECAME}", head_path(&self.path).display()),
            action: format!("{START_AGAIN}: the last of them closes the log, and a closed log needs no head"),
        }
    }
}
