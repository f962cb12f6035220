//! Ends of partitions and counts of the log as a whole: the rows of the table `partitions`.
//!
//! The log itself has rows, like a topic with the number 0. A commit writes ends of partitions anyway, so the count of
//! transactions is stored in the same page. A topic's record clock, if it is not the writers', is stored with the
//! topic's partitions.

use rusqlite::{Connection, OptionalExtension, params};

use super::checksum;
use super::file::LogFile;
use crate::{LogError, RecordClock};

const DOING: &str = "reading the ends of partitions";
/// Topic number of the log's own rows.
const LOG: i64 = 0;
/// Partition number of the log's own row with the number of transactions, and the number of rows in
/// `committed_offsets`.
const TRANSACTIONS: i32 = 0;
/// Partition number of the log's own row with the mark of an open log, and the number of rows in `topics`.
const WRITING: i32 = 1;
/// Partition number of the log's own row with the number of the next segment, and the number of rows in `segments`. A
/// log without segments does not have it.
const SEGMENTS: i32 = 2;

/// Partition number of a topic's row with its record clock.
const CLOCK: i32 = -1;
/// Value stored as the offset in that row if the records were copied from a log that stamps them. Below: if their clock
/// is unknown.
const LOGS_CLOCK: i64 = 1;
const UNTOLD_CLOCK: i64 = 2;

/// A row of the table `partitions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// Offset of the next record; in the log's own row, the number of its transactions.
    pub(super) next: i64,
    /// Number of rows in the partition's table.
    pub(super) rows: i64,
}

/// Counts and state of the log as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Transactions since the log was created.
    pub(super) transactions: i64,
    /// Rows of `committed_offsets`.
    pub(super) committed_rows: i64,
    /// Rows of `topics`.
    pub(super) topic_rows: i64,
    /// Number of the next segment; 0 before the first one.
    pub(super) segment_next: i64,
    /// Rows of `segments`.
    pub(super) segment_rows: i64,
    /// True if some process is writing the log, or was killed while writing it. The newest part may then be only in the
    /// write-ahead log.
    pub(super) is_open: bool,
}

impl Own {
    /// Reads the counts as of the connection's transaction; without one, as of now.
    pub(super) fn read(file: &LogFile, connection: &Connection) -> Result<Self, LogError> {
        let row = |partition| -> Result<End, LogError> {
            find(file, connection, LOG, partition)?
                .ok_or_else(|| file.damaged("the log's own counts are missing".to_owned()))
        };
        let (transactions, writing) = (row(TRANSACTIONS)?, row(WRITING)?);
        let segments = find(file, connection, LOG, SEGMENTS)?.unwrap_or_default();
        Ok(Self {
            segment_next: segments.next,
            segment_rows: segments.rows,
            transactions: transactions.next,
            committed_rows: transactions.rows,
            topic_rows: writing.rows,
            is_open: writing.next != 0,
        })
    }

    /// Stores the rows that changed.
    pub(super) fn write(
        &self,
        file: &LogFile,
        connection: &Connection,
        before: &Self,
    ) -> Result<(), LogError> {
        let transactions = |own: &Self| End { next: own.transactions, rows: own.committed_rows };
        let writing = |own: &Self| End { next: own.is_open.into(), rows: own.topic_rows };
        if transactions(self) != transactions(before) {
            write(file, connection, LOG, TRANSACTIONS, transactions(self))?;
        }
        let segments = |own: &Self| End { next: own.segment_next, rows: own.segment_rows };
        if segments(self) != segments(before) {
            write(file, connection, LOG, SEGMENTS, segments(self))?;
        }
        if writing(self) != writing(before) {
            write(file, connection, LOG, WRITING, writing(self))?;
        }
        Ok(())
    }
}

/// Writes the first counts of a new log.
pub(super) fn make(connection: &Connection) -> rusqlite::Result<()> {
    for partition in [TRANSACTIONS, WRITING] {
        let sum = checksum::of_end(LOG, partition, 0, 0);
        connection
            .execute("INSERT INTO partitions VALUES (?1, ?2, 0, 0, ?3)", params![LOG, partition, sum])?;
    }
    Ok(())
}

/// Returns the end of an existing partition.
pub(super) fn read(
    file: &LogFile,
    connection: &Connection,
    topic_id: i64,
    partition: i32,
) -> Result<End, LogError> {
    find(file, connection, topic_id, partition)?.ok_or_else(|| {
        file.damaged(format!("the end of partition {partition} of topic number {topic_id} is missing"))
    })
}

/// Returns the clock that a topic's record times come from; `None` if it is unknown.
pub(super) fn clock(
    file: &LogFile,
    connection: &Connection,
    topic_id: i64,
) -> Result<Option<RecordClock>, LogError> {
    match find(file, connection, topic_id, CLOCK)?.map(|end| end.next) {
        None => Ok(Some(RecordClock::Writer)),
        Some(LOGS_CLOCK) => Ok(Some(RecordClock::Log)),
        Some(UNTOLD_CLOCK) => Ok(None),
        Some(other) => Err(file.damaged(format!("topic number {topic_id} has records of a clock {other}"))),
    }
}

/// Stores the clock that a topic's record times come from.
pub(super) fn write_clock(
    file: &LogFile,
    connection: &Connection,
    topic_id: i64,
    clock: Option<RecordClock>,
) -> Result<(), LogError> {
    let next = match clock {
        Some(RecordClock::Writer) => return Ok(()),
        Some(RecordClock::Log) => LOGS_CLOCK,
        None => UNTOLD_CLOCK,
    };
    write(file, connection, topic_id, CLOCK, End { next, rows: 0 })
}

fn find(
    file: &LogFile,
    connection: &Connection,
    topic_id: i64,
    partition: i32,
) -> Result<Option<End>, LogError> {
    let sql = "SELECT next_offset, rows, checksum FROM partitions WHERE topic_id = ?1 AND partition = ?2";
    let found = connection
        .prepare_cached(sql)
        .and_then(|mut statement| {
            let row = |row: &rusqlite::Row<'_>| {
                Ok((End { next: row.get(0)?, rows: row.get(1)? }, row.get::<_, i64>(2)?))
            };
            statement.query_row(params![topic_id, partition], row).optional()
        })
        .map_err(|error| file.failure(DOING, error))?;
    let Some((end, sum)) = found else { return Ok(None) };
    if sum != checksum::of_end(topic_id, partition, end.next, end.rows) {
        let what = match partition {
            CLOCK => format!("the clock of topic number {topic_id}"),
            partition => format!("the end of partition {partition} of topic number {topic_id}"),
        };
        return Err(file.damaged(format!("{what} does not match its checksum")));
    }
    Ok(Some(end))
}

/// Stores the end of a partition.
pub(super) fn write(
    file: &LogFile,
    connection: &Connection,
    topic_id: i64,
    partition: i32,
    end: End,
) -> Result<(), LogError> {
    let End { next, rows } = end;
    let sum = checksum::of_end(topic_id, partition, next, rows);
    let sql = "INSERT INTO partitions VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (topic_id, partition)
         DO UPDATE SET next_offset = excluded.next_offset, rows = excluded.rows, checksum = excluded.checksum";
    let stored = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![topic_id, partition, next, rows, sum]));
    stored.map(drop).map_err(|error| file.failure("writing the ends of partitions", error))
}
