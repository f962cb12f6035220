//! The table of segments: a row for each one, from its creation to its removal.

use rusqlite::{Connection, OptionalExtension, params};

use super::catalogue::{self, ascended, ascending};
use super::ends::Own;
use super::file::LogFile;
use super::{checksum, format};
use crate::LogError;

const READING: &str = "reading the table of segments";
const WRITING: &str = "writing the table of segments";

/// The statement that creates the table, once a log has a segment.
pub(super) const TABLE: &str = "
    CREATE TABLE segments(
        segment INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    ) STRICT";

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentRow {
    pub(super) number: u32,
    pub(super) topic_id: i64,
    /// Number of rows of partitions that refer to it.
    pub(super) rows: i64,
    /// Position after the last block of these rows.
    pub(super) bytes: i64,
}

impl SegmentRow {
    fn checksum(&self) -> i64 {
        checksum::of_segment(self.number, self.topic_id, self.rows, self.bytes)
    }

    /// Reads a row with its checksum.
    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Self, i64)> {
        let (number, topic_id) = (row.get(0)?, row.get(1)?);
        Ok((Self { number, topic_id, rows: row.get(2)?, bytes: row.get(3)? }, row.get(4)?))
    }

    fn checked(file: &LogFile, (row, sum): (Self, i64)) -> Result<Self, LogError> {
        if row.checksum() == sum && row.rows >= 0 && row.bytes >= 0 {
            return Ok(row);
        }
        Err(file.damaged(format!("the row of segment {} does not match its checksum", row.number)))
    }
}

/// Returns all rows by number, which must be as many as the log counts.
pub(super) fn read_all(file: &LogFile, connection: &Connection) -> Result<Vec<SegmentRow>, LogError> {
    let _snapshot = catalogue::snapshot(file, connection)?;
    if !format::has_segments(connection).map_err(|error| file.failure(READING, error))? {
        return Ok(Vec::new());
    }
    let query = || {
        let sql = "SELECT segment, topic_id, rows, bytes, checksum FROM segments ORDER BY segment";
        let mut statement = connection.prepare_cached(sql)?;
        ascending(statement.query_map([], SegmentRow::of)?, |one, other| one.0.number < other.0.number)
    };
    let rows = ascended(file, "segments", query().map_err(|error| file.failure(READING, error))?)?;
    let expected = Own::read(file, connection)?.segment_rows;
    if i64::try_from(rows.len()) != Ok(expected) {
        return Err(file.damaged(format!("there are {} segments instead of {expected}", rows.len())));
    }
    rows.into_iter().map(|row| SegmentRow::checked(file, row)).collect()
}

/// Returns the row of an existing segment.
pub(super) fn read(file: &LogFile, connection: &Connection, number: u32) -> Result<SegmentRow, LogError> {
    let sql = "SELECT segment, topic_id, rows, bytes, checksum FROM segments WHERE segment = ?1";
    let found = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([number], SegmentRow::of).optional())
        .map_err(|error| file.failure(READING, error))?;
    let found = found.ok_or_else(|| file.damaged(format!("the row of segment {number} is missing")))?;
    SegmentRow::checked(file, found)
}

/// Stores the row of a new or an existing segment.
pub(super) fn write(file: &LogFile, connection: &Connection, row: &SegmentRow) -> Result<(), LogError> {
    let &SegmentRow { number, topic_id, rows, bytes } = row;
    connection
        .prepare_cached("INSERT OR REPLACE INTO segments VALUES (?1, ?2, ?3, ?4, ?5)")
        .and_then(|mut statement| {
            statement.execute(params![number, topic_id, rows, bytes, row.checksum()]).map(drop)
        })
        .map_err(|error| file.failure(WRITING, error))
}

/// Removes the row of a segment.
pub(super) fn delete(file: &LogFile, connection: &Connection, number: u32) -> Result<(), LogError> {
    connection
        .prepare_cached("DELETE FROM segments WHERE segment = ?1")
        .and_then(|mut statement| statement.execute([number]).map(drop))
        .map_err(|error| file.failure(WRITING, error))
}
