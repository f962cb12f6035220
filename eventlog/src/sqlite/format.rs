//! Whether a file is a log, of which format version, and all there; and how a new one begins.
//!
//! Layout of format 2, one file in WAL mode:
//!
//! ```text
//! topics(topic_id, name, partitions, compacted)         every topic
//! partitions(topic_id, partition, next_offset)          where each partition ends
//! records_T_P(offset, count, block)                     one table per partition: appends touch one right edge
//! records_T_P(offset, timestamp_ns, key, headers, value)  likewise, of a compacted topic
//! committed_offsets(group_name, topic_id, partition, next_offset)
//! producers(transactional_id, epoch)                    the newest epoch may write
//! ```
//!
//! In format 1 all topics have the tables of compacted ones. Such files are read and written as they are.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use super::failure::DAMAGED_ACTION;
use super::file::{Access, LogFile};
use crate::LogError;

/// Marks a file as a log of ours: "WTLG".
pub(super) const APPLICATION_ID: i32 = 0x5754_4C47;
/// The format of new files.
const FORMAT_VERSION: i32 = 2;
/// The oldest format that is read and written.
const FORMAT_VERSION_MIN: i32 = 1;
/// Three records of 5 KB fill a page of this size, and a transaction of a few small records rewrites few of them.
pub(super) const PAGE_BYTES: i64 = 16 * 1024;

const TABLES: &str = "
    CREATE TABLE topics(
        topic_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partitions INTEGER NOT NULL, compacted INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE partitions(
        topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
        PRIMARY KEY(topic_id, partition)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE committed_offsets(
        group_name TEXT NOT NULL, topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
        PRIMARY KEY(group_name, topic_id, partition)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE producers(
        transactional_id TEXT NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// The canonical path of a log that exists, or of one to be made in a directory that exists.
pub(super) fn locate(url: &str, path: &Path, must_exist: bool) -> Result<PathBuf, LogError> {
    let unreadable = |found: String, action: &str| LogError::Unreadable {
        url: url.to_owned(),
        found,
        action: action.to_owned(),
    };
    let other = |cause: std::io::Error| LogError::Denied {
        url: url.to_owned(),
        doing: "looking for the file".to_owned(),
        cause: cause.to_string(),
    };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            Err(unreadable("a directory is not a log".to_owned(), "name a file in it"))
        }
        Ok(metadata) if must_exist && metadata.len() == 0 && !has_wal(path) => {
            Err(unreadable("the file is empty".to_owned(), "name a file that warptape made"))
        }
        Ok(_) => std::fs::canonicalize(path).map_err(other),
        Err(cause) if cause.kind() == ErrorKind::NotFound && must_exist => Err(unreadable(
            "no such file".to_owned(),
            "check the path, or make a log first: feed, run and demo do",
        )),
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let name = path.file_name().ok_or_else(|| other(cause))?;
            let directory = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let directory = std::fs::canonicalize(directory).map_err(|cause| {
                unreadable(
                    format!("the directory {} cannot be used: {cause}", directory.display()),
                    "create it first",
                )
            })?;
            Ok(directory.join(name))
        }
        Err(cause) => Err(other(cause)),
    }
}

/// Whether commits wait in a write-ahead log next to the file.
pub(super) fn has_wal(path: &Path) -> bool {
    std::fs::metadata(wal_path(path)).is_ok_and(|metadata| metadata.len() > 0)
}

/// Where SQLite keeps the write-ahead log of a file.
pub(super) fn wal_path(path: &Path) -> PathBuf {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    wal.into()
}

/// A first connection, after making sure that the file is a complete log of a known format. A missing or empty file
/// becomes a new log when it may be written.
pub(super) fn open(file: &LogFile) -> Result<Connection, LogError> {
    const DOING: &str = "opening the log";
    if let Some(found) = truncation(file) {
        return Err(LogError::Unreadable { url: file.url.clone(), found, action: DAMAGED_ACTION.to_owned() });
    }
    let mut connection = file.connect()?;
    if matches!(file.access, Access::Write(_)) {
        if connection.is_readonly("main").map_err(|error| file.failure(DOING, error))? {
            return Err(LogError::ReadOnly { url: file.url.clone(), doing: DOING.to_owned() });
        }
        file.retry_while_busy(|| begin(&mut connection)).map_err(|error| file.failure(DOING, error))?;
    }
    let (application_id, version) = identity(&connection).map_err(|error| file.failure(DOING, error))?;
    if application_id != APPLICATION_ID {
        return Err(LogError::Unreadable {
            url: file.url.clone(),
            found: format!(
                "the file is an SQLite database of another program (application id {application_id:#x})"
            ),
            action: "name a file that warptape made, or one that does not exist yet".to_owned(),
        });
    }
    if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&version) {
        return Err(LogError::Unreadable {
            url: file.url.clone(),
            found: format!(
                "the log has format version {version}, this program reads versions {FORMAT_VERSION_MIN} to {FORMAT_VERSION}"
            ),
            action: "use the version of warptape that wrote it, or a newer one".to_owned(),
        });
    }
    Ok(connection)
}

/// Makes a database without any content a log; leaves every other one as it is, but for WAL mode in a log of ours.
fn begin(connection: &mut Connection) -> rusqlite::Result<()> {
    if identity(connection)?.0 == 0 && is_blank(connection)? {
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    } else if identity(connection)?.0 != APPLICATION_ID {
        return Ok(());
    }
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if identity(&transaction)?.0 == 0 && is_blank(&transaction)? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
        transaction.commit()?;
    }
    Ok(())
}

/// The application's id, and the version of the format.
pub(super) fn identity(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    Ok((
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?,
        connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
    ))
}

fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

/// What is missing from the end of the file, if anything. `None` as well for what is not an SQLite file at all.
fn truncation(file: &LogFile) -> Option<String> {
    if !file.path.exists() {
        return None;
    }
    let connection = file.connect_bare().ok()?;
    let (page_bytes, page_count) = match page_counts(&connection) {
        Ok(counts) => counts,
        // SQLite refuses a file that lacks whole pages, without saying how many.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => header(&file.path)?,
        Err(_) => return None,
    };
    // In this order a checkpoint by another process in between cannot make a complete file look short: pages arrive in
    // the file before they leave the write-ahead log.
    let wal_bytes = std::fs::metadata(wal_path(&file.path)).map_or(0, |metadata| metadata.len());
    let file_bytes = std::fs::metadata(&file.path).ok()?.len();
    let expected_bytes = u64::from(page_bytes) * u64::from(page_count);
    (file_bytes + wal_bytes < expected_bytes).then(|| {
        format!(
            "the log is truncated: its header says {page_count} pages of {page_bytes} bytes, {expected_bytes} bytes; \
             found {file_bytes} bytes and {wal_bytes} bytes of write-ahead log"
        )
    })
}

/// Size and number of pages, as of the last commit.
fn page_counts(connection: &Connection) -> rusqlite::Result<(u32, u32)> {
    Ok((
        connection.pragma_query_value(None, "page_size", |row| row.get(0))?,
        connection.pragma_query_value(None, "page_count", |row| row.get(0))?,
    ))
}

/// Size and number of pages as the header of a damaged file says.
fn header(path: &Path) -> Option<(u32, u32)> {
    let mut descriptor = File::open(path).ok()?;
    let mut header = [0; 32];
    let read = descriptor.read_exact(&mut header);
    // Left open on purpose: closing it would drop the locks that other connections of this process have on the file. Only
    // a refused open costs a descriptor.
    std::mem::forget(descriptor);
    read.ok()?;
    let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65536,
        bytes => u32::from(bytes),
    };
    Some((page_bytes, u32::from_be_bytes([header[28], header[29], header[30], header[31]])))
}
