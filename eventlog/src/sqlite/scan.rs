//! Reads a whole partition and skips its damaged parts.

use rusqlite::{Connection, ErrorCode, OptionalExtension, ffi};

use super::catalogue::GivenUp;
use super::failure::Fault;
use super::file::LogFile;
use super::headers;
use super::reference::Reference;
use super::segments::{BLOCK_BYTES_MAX, Segments};
use super::statistics::Statistics;
use super::table::{Stored, Table};
use crate::LogError;

const DOING: &str = "reading all of the log";
/// Bytes that any scan may read from segments. A longer one may read twice the bytes that there are.
const ALLOWED_BYTES: u64 = 1 << 30;
const TOO_MANY_BYTES: &str =
    "its rows refer to the same bytes of its segments again and again, which keeps readers busy";

/// The next part of a partition, in the order of its offsets.
pub(super) enum Part<'a> {
    /// Undamaged, consecutive records of a row.
    Records {
        stored: Stored<'a>,
        /// Number of the segment that has them.
        segment: Option<u32>,
        statistics: Option<Statistics<'a>>,
    },
    /// Offsets whose records exist but could not be read.
    Damage {
        /// The first offset.
        first: i64,
        /// The offset after the last one.
        next: i64,
        /// The finding instead of the records.
        found: String,
    },
}

/// Passes all parts of a partition to `visit` by ascending offset. Returns the offset after the last record.
///
/// `end` is the partition's end, if it is known: missing records before it are damage.
pub(super) fn scan(
    file: &LogFile,
    connection: &Connection,
    table: &Table,
    end: Option<i64>,
    given_up: &GivenUp,
    visit: &mut dyn FnMut(Part<'_>) -> Result<(), LogError>,
) -> Result<i64, LogError> {
    let failed = |error| file.failure(DOING, error);
    // The offset of the next expected record, the finding instead of it, and the start of the current pass.
    let (mut expected, mut found, mut from) = (0, None, 0);
    let (mut allowance, mut buffer) = (Allowance { read_bytes: 0, bytes_max: ALLOWED_BYTES }, Vec::new());
    let gap = |expected: i64, next: i64, found: Option<String>, visit: &mut dyn FnMut(Part<'_>) -> _| {
        let may_be = table.compacted || given_up.covers(expected, next);
        let found = match found {
            Some(found) => found,
            None if expected >= next || may_be => return Ok(()),
            None => "nothing is there".to_owned(),
        };
        visit(Part::Damage { first: expected, next: next.max(expected + 1), found })
    };
    loop {
        let mut statement = connection.prepare_cached(&table.select_from()).map_err(failed)?;
        let mut rows = statement.query([from]).map_err(failed)?;
        let mut last = from - 1;
        let broken = loop {
            match rows.next() {
                Ok(None) => break None,
                Ok(Some(row)) => {
                    let offset: i64 = row.get(0).map_err(failed)?;
                    if offset <= last {
                        break Some("its B-tree has a cycle".to_owned());
                    }
                    last = offset;
                    let reference = table.reference(row);
                    if let Some(reference) = reference
                        && !allowance.spend(reference, &file.segments)
                    {
                        return Err(file.damaged(TOO_MANY_BYTES.to_owned()));
                    }
                    let read = table.records(&file.segments, row, &mut buffer);
                    match read.and_then(|stored| Ok((last_of(stored.clone())?, stored))) {
                        Ok((next, stored)) if offset >= expected && end.is_none_or(|end| next <= end) => {
                            gap(expected, offset, found.take(), visit)?;
                            let segment = reference.map(|reference| reference.segment);
                            visit(Part::Records { stored, segment, statistics: table.statistics(row) })?;
                            expected = next;
                        }
                        Ok(_) => {
                            found.get_or_insert(format!("records at offset {offset} that belong elsewhere"));
                        }
                        Err(Fault::Damage(wrong)) => {
                            found.get_or_insert(wrong);
                        }
                        Err(Fault::Failed(error)) => return Err(error),
                    }
                }
                Err(error) if is_damage(&error) => break Some(error.to_string()),
                Err(error) => return Err(failed(error)),
            }
        };
        drop(rows);
        let Some(broken) = broken else { break };
        found.get_or_insert(broken);
        match hop(connection, table, expected.max(last + 1).max(from), end.unwrap_or(i64::MAX)) {
            Some(offset) => from = offset,
            None => break,
        }
    }
    let end = end.unwrap_or(expected);
    if found.is_some() || expected < end {
        gap(expected, end, found, visit)?;
    }
    Ok(expected.max(end))
}

/// The bytes that a scan reads from segments. Rows of a hostile log may refer to the same ones without end.
struct Allowance {
    read_bytes: u64,
    bytes_max: u64,
}

impl Allowance {
    /// Counts a block; returns false if the rows refer to far more bytes than there are.
    fn spend(&mut self, reference: Reference, segments: &Segments) -> bool {
        let bytes = u64::from(reference.length).min(BLOCK_BYTES_MAX as u64);
        self.read_bytes = self.read_bytes.saturating_add(bytes);
        if self.read_bytes > self.bytes_max {
            self.bytes_max = self.bytes_max.max(segments.bytes().saturating_mul(2));
        }
        self.read_bytes <= self.bytes_max
    }
}

/// Returns the offset after the last of these records, all of which must be undamaged.
fn last_of(stored: Stored<'_>) -> Result<i64, String> {
    let mut next = 0;
    for record in stored {
        let record = record?;
        headers::decode(record.headers)?;
        next = record.offset + 1;
    }
    Ok(next)
}

/// Returns true if an error is caused by the file's content.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    let short_read =
        error.sqlite_error().map(|error| error.extended_code) == Some(ffi::SQLITE_IOERR_SHORT_READ);
    short_read || error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Returns the first readable row after an offset, in a damaged tree.
fn hop(connection: &Connection, table: &Table, behind: i64, end: i64) -> Option<i64> {
    let sql = format!("SELECT offset FROM {} WHERE offset <= ?1 ORDER BY offset DESC LIMIT 1", table.name());
    let look = |offset: i64| -> Option<i64> {
        let mut statement = connection.prepare_cached(&sql).ok()?;
        let row: Option<i64> = statement.query_row([offset], |row| row.get(0)).optional().ok()?;
        row.filter(|row| *row > behind && *row <= offset)
    };
    let (mut low, mut step) = (behind, 1_i64);
    let (mut high, mut found) = loop {
        let offset = behind.saturating_add(step).min(end);
        match look(offset) {
            Some(row) => break (offset, row),
            None if offset >= end => return None,
            None => (low, step) = (offset, step.saturating_mul(2)),
        }
    };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match look(middle) {
            Some(row) => (high, found) = (middle, row),
            None => low = middle,
        }
    }
    Some(found)
}
