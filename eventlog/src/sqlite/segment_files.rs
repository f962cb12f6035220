//! Checks that the files of segments are those of the log, and removes those to which no row refers.
//!
//! Retention removes the last row that refers to a segment. Then the file goes, and last its row in the table of
//! segments. A later opening continues after an interruption.

use std::fs;
use std::io::{self, ErrorKind};

use rusqlite::Connection;

use super::beside::{self, kind_of};
use super::bounded::Bounded;
use super::ends::Own;
use super::file::LogFile;
use super::segment::{self, HEADER_BYTES};
use super::segment_rows::{self, SegmentRow};
use super::{failure, format};
use crate::LogError;

const CHECKING: &str = "checking its segments";
const DOING: &str = "removing segments without records";
/// Most segments named in a message.
const NAMED_MAX: usize = 4;

/// Rejects a log whose segments are missing or too short.
pub(super) fn check_present(file: &LogFile, connection: &Connection) -> Result<(), LogError> {
    if faults(file, connection)?.is_empty() {
        return Ok(());
    }
    // Retention may have removed them since their rows were read.
    let faults = faults(file, connection)?;
    if faults.is_empty() {
        return Ok(());
    }
    let named = faults.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match faults.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let folder = segment::folder_path(&file.path);
    Err(LogError::Unreadable {
        url: file.url.clone(),
        found: format!("records of the log are missing: {named}{more}"),
        action: format!(
            "put the folder {} of the same moment back (copy a log together with it, or with `warptape log backup`), \
             or build a usable log from its intact contents with `warptape log recover --log {}`",
            folder.display(),
            file.url
        ),
    })
}

/// Describes the segments with rows that are missing or too short.
fn faults(file: &LogFile, connection: &Connection) -> Result<Vec<String>, LogError> {
    let mut faults = Vec::new();
    for row in segment_rows::read_all(file, connection)?.iter().filter(|row| row.rows > 0) {
        let path = segment::path(&file.path, row.number);
        let fault = match fs::symlink_metadata(&path) {
            Ok(found) => match kind_of(&found) {
                Some(kind) => Some(format!("{} is {kind}, not a file", path.display())),
                None if found.len() < row.bytes.unsigned_abs() => Some(format!(
                    "the segment {} has {} bytes instead of {} at least",
                    path.display(),
                    found.len(),
                    row.bytes
                )),
                None => None,
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Some(format!("the segment {} does not exist", path.display()))
            }
            Err(error) => return Err(failure::explain_io(&file.url, CHECKING, &error)),
        };
        faults.extend(fault);
    }
    Ok(faults)
}

/// Rejects a folder with segments that the log does not know yet. Their log may still be wanted, so they are not
/// overwritten.
pub(super) fn refuse_strangers(file: &LogFile, connection: &Connection) -> Result<(), LogError> {
    let mut numbers =
        segment::numbers(&file.path).map_err(|error| failure::explain_io(&file.url, CHECKING, &error))?;
    let has_blocks = |number: &u32| {
        fs::symlink_metadata(segment::path(&file.path, *number)).is_ok_and(|found| found.len() > HEADER_BYTES)
    };
    numbers.retain(has_blocks);
    // The order matters: a producer appends to a segment only after the commit that counts it.
    let next = Own::read(file, connection)?.segment_next;
    let stranger = numbers.into_iter().find(|number| i64::from(*number) >= next.max(1));
    let Some(number) = stranger else { return Ok(()) };
    let path = segment::path(&file.path, number);
    let folder = segment::folder_path(&file.path);
    let what = match next {
        0 => format!("the folder {}", folder.display()),
        next => format!("all segments in {} from number {next} on", folder.display()),
    };
    Err(LogError::Unreadable {
        url: file.url.clone(),
        found: format!(
            "{} belongs to another log, or to a newer state of this one: this one has no segment {number} yet",
            path.display()
        ),
        action: format!("put the file back that belongs to it, or move {what} away"),
    })
}

/// Removes the segments to which no row refers, unless their producer is alive or somebody reads the whole log. A
/// failure is logged alone: the next opening tries again.
pub(super) fn sweep(file: &LogFile, connection: &Bounded) {
    if let Err(error) = try_sweep(file, connection) {
        tracing::warn!(log = file.url, %error, "segments without records stay");
    }
}

fn try_sweep(file: &LogFile, connection: &Bounded) -> Result<(), LogError> {
    let failed = |cause: io::Error| failure::explain_io(&file.url, DOING, &cause);
    if removable(file, connection)?.is_empty() {
        return Ok(());
    }
    let Some(_hold) = file.segments.hold_alone().map_err(failed)? else { return Ok(()) };
    // After a power loss, no row may come back whose file is gone.
    sync_wal(file).map_err(failed)?;
    file.write(connection, DOING, |writing| {
        for row in removable(file, &writing.transaction)? {
            segment::remove(&file.path, row.number).map_err(failed)?;
            file.segments.forget(row.number);
            segment_rows::delete(file, &writing.transaction, row.number)?;
            writing.own.segment_rows -= 1;
        }
        Ok(())
    })
}

/// Waits until all commits so far are on the disk.
fn sync_wal(file: &LogFile) -> io::Result<()> {
    match beside::open_file(&format::wal_path(&file.path)) {
        Ok(wal) => wal.sync_data(),
        // Then the file has all commits.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the segments to which no row refers, and no producer will append.
fn removable(file: &LogFile, connection: &Connection) -> Result<Vec<SegmentRow>, LogError> {
    let mut removable = segment_rows::read_all(file, connection)?;
    removable.retain(|row| row.rows == 0);
    let mut free = Vec::with_capacity(removable.len());
    for row in removable {
        if segment::is_free(&file.path, row.number)
            .map_err(|cause| failure::explain_io(&file.url, DOING, &cause))?
        {
            free.push(row);
        }
    }
    Ok(free)
}
