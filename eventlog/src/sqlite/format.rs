//! Checks that a file is a complete log of the current format, and creates new logs.
//!
//! Layout of the format, one file in WAL mode; every row except those of producers carries a [`super::checksum`]:
//!
//! ```text
//! topics(topic_id, name, partitions, compacted)         every topic
//! partitions(topic_id, partition, next_offset, rows)    ends of partitions; topic 0: counts of the log itself;
//!                                                       partition -1: a topic's record clock, if not the writers'
//! records_T_P(offset, count, block)                     one table per partition: appends touch one right edge;
//!                                                       with statistics of the block, count is negative
//! records_T_P(offset, timestamp_ns, key, headers, value)  the same for a compacted topic
//! committed_offsets(group_name, topic_id, partition, next_offset)
//! given_up(topic_id, partition, first_offset, next_offset)  offsets whose records were removed, damaged or lost
//! producers(transactional_id, epoch)                    the newest epoch may write
//! segments(segment, topic_id, rows, bytes)              the files of large blocks; only in versions 4 and 6
//! ```
//!
//! Version 4 is version 3 with segments. Versions 5 and 6 are versions 3 and 4 with [`super::statistics`] of blocks.
//! A log's first segment adds 1 to its version, and its first block with statistics adds 2.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use super::beside::{self, beside};
use super::bounded::Bounded;
use super::failure::{DAMAGED_ACTION, no_log_action};
use super::file::LogFile;
use super::head::Found;
use super::limits::{Access, PAGE_BYTES};
use super::{ends, head, opening, schema, segment_files, segment_rows};
use crate::LogError;

/// Marks a file as a Warptape log: "WTLG".
pub(super) const APPLICATION_ID: i32 = 0x5754_4C47;
/// Version of the format of a log without segments and without statistics. Files of other versions than this and the
/// following ones are rejected.
const VERSION: i32 = 3;
/// Added to the version of a log with segments. Below: of one with statistics.
const SEGMENTS: i32 = 1;
const STATISTICS: i32 = 2;
const VERSION_MAX: i32 = VERSION + SEGMENTS + STATISTICS;

const DOING: &str = "opening the log";
/// Size of a file that SQLite treats as empty although it is not, in bytes.
const REMNANT_BYTES: u64 = 1;

/// Returns the canonical path of an existing log, or of a new one in an existing directory.
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
        Ok(metadata) if !metadata.is_file() => {
            Err(unreadable("a pipe, a socket or a device is not a log".to_owned(), "name a file"))
        }
        Ok(metadata) if must_exist && metadata.len() == 0 && !has_wal(path) => {
            Err(unreadable("the file is empty".to_owned(), "name a log that warptape created"))
        }
        Ok(_) => std::fs::canonicalize(path).map_err(other),
        Err(cause) if cause.kind() == ErrorKind::NotFound && must_exist => Err(unreadable(
            "no such file".to_owned(),
            "check the path, or create a log first with feed, run or demo",
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

/// Returns true if commits wait in a write-ahead log next to the file.
pub(super) fn has_wal(path: &Path) -> bool {
    std::fs::metadata(wal_path(path)).is_ok_and(|metadata| metadata.len() > 0)
}

/// Returns the path of a file's write-ahead log.
pub(super) fn wal_path(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// Opens a first connection, after checking that the file is a complete log of this format. A missing or empty file
/// becomes a new log if writing is allowed.
pub(super) fn open(file: &LogFile) -> Result<Bounded, LogError> {
    refuse_neighbours(file)?;
    // SQLite would remove a write-ahead log whose file is missing.
    opening::refuse_in_place_of_a_log(file, || {
        Ok(std::fs::metadata(&file.path).map_or(true, |metadata| metadata.len() <= REMNANT_BYTES))
    })?;
    refuse_remnant(file)?;
    if let Some(found) = truncation(file) {
        return Err(LogError::Unreadable { url: file.url.clone(), found, action: DAMAGED_ACTION.to_owned() });
    }
    if matches!(file.access, Access::Write(_)) {
        opening::make_file(file)?;
    }
    let mut connection = file.connect()?;
    if let Err(error) = make_sure(file, &mut connection) {
        // A rejected log must stay unchanged. SQLite would fold the readable part of the write-ahead log, and remove
        // the rest.
        connection.leave_as_it_is();
        return Err(error);
    }
    // A frozen log has no writer, so no file beside it is open.
    if !matches!(file.access, Access::ReadFrozen) {
        file.beside.note();
    }
    Ok(connection)
}

/// Rejects files beside the log that do not belong to a log, or that would end this process.
pub(super) fn refuse_neighbours(file: &LogFile) -> Result<(), LogError> {
    let odd = beside::odd(&file.path).map_err(|cause| LogError::Denied {
        url: file.url.clone(),
        doing: "checking the files beside it".to_owned(),
        cause: cause.to_string(),
    })?;
    if let Some(found) = odd {
        let action = "a log never has such a file: remove it if nobody needs it".to_owned();
        return Err(LogError::Unreadable { url: file.url.clone(), found, action });
    }
    if beside::is_index_cut(&file.path) && head::is_held(&file.path) {
        let found = format!(
            "the index of its write-ahead log, {}, was truncated while another process writes the log",
            beside(&file.path, "-shm").display()
        );
        let action = "stop every process that uses the log, and start again".to_owned();
        return Err(LogError::Unreadable { url: file.url.clone(), found, action });
    }
    Ok(())
}

/// Rejects a file of one byte, which SQLite would treat as empty and replace by a new log.
pub(super) fn refuse_remnant(file: &LogFile) -> Result<(), LogError> {
    if std::fs::metadata(&file.path).is_ok_and(|metadata| metadata.len() == REMNANT_BYTES) {
        let found = "the log is truncated: one byte is left of it".to_owned();
        return Err(LogError::Unreadable { url: file.url.clone(), found, action: DAMAGED_ACTION.to_owned() });
    }
    Ok(())
}

fn make_sure(file: &LogFile, connection: &mut Bounded) -> Result<(), LogError> {
    if matches!(file.access, Access::Write(_)) {
        if connection.is_readonly("main").map_err(|error| file.failure(DOING, error))? {
            return Err(LogError::ReadOnly { url: file.url.clone(), doing: DOING.to_owned() });
        }
        // A log under construction is blank and has a write-ahead log; its head is created later.
        let head = opening::read_head(file)?;
        let is_blank = is_blank(connection).map_err(|error| file.failure(DOING, error))?;
        if let (Found::Head(_), true) = (head, is_blank) {
            opening::refuse_in_place_of_a_log(file, || Ok(true))?;
        }
        file.retry_while_busy(|| begin(connection)).map_err(|error| file.failure(DOING, error))?;
    }
    identify(file, connection)?;
    schema::check(file, connection)?;
    opening::compare(file, connection)?;
    segment_files::check_present(file, connection)?;
    if matches!(file.access, Access::Write(_)) {
        segment_files::refuse_strangers(file, connection)?;
        segment_files::sweep(file, connection);
    }
    Ok(())
}

/// Rejects a file that is not marked as a log of this format. Reads none of its tables.
pub(super) fn identify(file: &LogFile, connection: &Connection) -> Result<(), LogError> {
    let (application_id, version) = identity(connection).map_err(|error| file.failure(DOING, error))?;
    if application_id != APPLICATION_ID {
        return Err(LogError::Unreadable {
            url: file.url.clone(),
            found: format!(
                "the file is an SQLite database of another program (application id {application_id:#x})"
            ),
            action: no_log_action(file.access).to_owned(),
        });
    }
    let action = match version {
        VERSION..=VERSION_MAX => return Ok(()),
        ..VERSION => "use the version of warptape that wrote it",
        _ => "use the version of warptape that wrote it, or a newer one",
    };
    Err(LogError::Unreadable {
        url: file.url.clone(),
        found: format!(
            "the log has format version {version}, this program reads versions {VERSION} to {VERSION_MAX}"
        ),
        action: action.to_owned(),
    })
}

/// Turns an empty database into a log, and sets the WAL mode of a log. Any other database is left unchanged.
fn begin(connection: &mut Bounded) -> rusqlite::Result<()> {
    if identity(connection)?.0 == 0 && is_blank(connection)? {
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    } else if identity(connection)?.0 != APPLICATION_ID {
        return Ok(());
    }
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    // Another process may have created the log first.
    if identity(&transaction)?.0 == 0 && is_blank(&transaction)? {
        make_tables(&transaction)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Creates the tables of a new log.
pub(super) fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(schema::TABLES)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    ends::make(connection)
}

/// Makes a log one with segments, in a transaction.
pub(super) fn begin_segments(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(segment_rows::TABLE)?;
    connection.pragma_update(None, "user_version", identity(connection)?.1 + SEGMENTS)
}

/// Makes a log one with statistics, in a transaction, if it is none yet.
pub(super) fn begin_statistics(connection: &Connection) -> rusqlite::Result<()> {
    let (_, version) = identity(connection)?;
    match version - VERSION >= STATISTICS {
        true => Ok(()),
        false => connection.pragma_update(None, "user_version", version + STATISTICS),
    }
}

/// Returns true if a log of this version has the table of segments.
pub(super) fn has_segments(connection: &Connection) -> rusqlite::Result<bool> {
    Ok((identity(connection)?.1 - VERSION) & SEGMENTS != 0)
}

/// Returns the application's id and the version of the format.
pub(super) fn identity(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    Ok((
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?,
        connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
    ))
}

fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

/// Describes the part missing from the end of the file; `None` if the file is complete or no SQLite file.
fn truncation(file: &LogFile) -> Option<String> {
    if !file.path.exists() {
        return None;
    }
    let connection = file.connect_bare().ok()?;
    connection.leave_as_it_is();
    let (page_bytes, page_count) = match page_counts(&connection) {
        Ok(counts) => counts,
        // SQLite rejects a file without its last pages, and does not tell how many are missing.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => header(&file.path)?,
        Err(_) => return None,
    };
    // The order matters: pages arrive in the file before they leave the write-ahead log. So another process's
    // checkpoint in between cannot make a complete file look short.
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

/// Returns the size of a page and the number of pages, as of the last commit.
fn page_counts(connection: &Connection) -> rusqlite::Result<(u32, u32)> {
    Ok((
        connection.pragma_query_value(None, "page_size", |row| row.get(0))?,
        connection.pragma_query_value(None, "page_count", |row| row.get(0))?,
    ))
}

/// Returns the size of a page and the number of pages from the header of a damaged file.
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
