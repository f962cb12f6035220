//! Where partitions end, and what the log says of itself: the rows of the table `partitions`.
//!
//! The log itself stands there like a topic with the number 0, so that a commit, which writes where partitions end anyway, counts
//! itself in the same page. Beside the partitions of a topic stands whose clock the times of its records are of, where that is not who wrote
//! them.

use rusqlite::{Connection, OptionalExtension, params};

use super::checksum;
use super::file::LogFile;
use crate::{LogError, RecordClock};

const DOING: &str = "reading where partitions end";
/// In place of a topic's number: the log itself.
const LOG: i64 = 0;
/// In place of a partition of the log itself: transactions so far, and rows of `committed_offsets`.
const TRANSACTIONS: i32 = 0;
/// In place of a partition of the log itself: whether somebody writes it, and rows of `topics`.
const WRITING: i32 = 1;

/// In place of a partition of a topic: whose clock the times of its records are of.
const CLOCK: i32 = -1;
/// In place of an offset: the log's clock that the records were copied from, and a clock that nobody told.
const LOGS_CLOCK: i64 = 1;
const UNTOLD_CLOCK: i64 = 2;

/// A row of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// Offset of the next record; of the log itself, the number of its transactions.
    pub(super) next: i64,
    /// Rows of the partition's table.
    pub(super) rows: i64,
}

/// What the log says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Transactions since it was made.
    pub(super) transactions: i64,
    /// Rows of `committed_offsets`.
    pub(super) committed_rows: i64,
    /// Rows of `topics`.
    pub(super) topic_rows: i64,
    /// Whether some process writes it or has ended without a word: what is not in the file then is in the write-ahead log.
    pub(super) is_open: bool,
}

impl Own {
    /// Reads it as of the transaction that the connection is in, or as of now where it is in none.
    pub(super) fn read(file: &LogFile, connection: &Connection) -> Result<Self, LogError> {
        let row = |partition| -> Result<End, LogError> {
            find(file, connection, LOG, partition)?
                .ok_or_else(|| file.damaged("what it says of itself is not there".to_owned()))
        };
        let (transactions, writing) = (row(TRANSACTIONS)?, row(WRITING)?);
        Ok(Self {
            transactions: transactions.next,
            committed_rows: transactions.rows,
            topic_rows: writing.rows,
            is_open: writing.next != 0,
        })
    }

    /// Stores it, where it differs from what was there.
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
        if writing(self) != writing(before) {
            write(file, connection, LOG, WRITING, writing(self))?;
        }
        Ok(())
    }
}

/// Writes the rows by which a new log begins to count itself.
pub(super) fn make(connection: &Connection) -> rusqlite::Result<()> {
    for partition in [TRANSACTIONS, WRITING] {
        let sum = checksum::of_end(LOG, partition, 0, 0);
        connection
            .execute("INSERT INTO partitions VALUES (?1, ?2, 0, 0, ?3)", params![LOG, partition, sum])?;
    }
    Ok(())
}

/// Where a partition ends that exists.
pub(super) fn read(
    file: &LogFile,
    connection: &Connection,
    topic_id: i64,
    partition: i32,
) -> Result<End, LogError> {
    find(file, connection, topic_id, partition)?.ok_or_else(|| {
        file.damaged(format!("the end of partition {partition} of topic number {topic_id} is not there"))
    })
}

/// Whose clock the times of a topic's records are of; `None` where that was not told.
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

/// Stores whose clock the times of a topic's records are of.
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
            CLOCK => format!("whose clock the times of topic number {topic_id} are of"),
            partition => format!("where partition {partition} of topic number {topic_id} ends"),
        };
        return Err(file.damaged(format!("{what} does not fit its checksum")));
    }
    Ok(Some(end))
}

/// Stores where a partition ends.
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
    stored.map(drop).map_err(|error| file.failure("writing where partitions end", error))
}
