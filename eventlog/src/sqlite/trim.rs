//! Removes the oldest records of a topic, row by row: its retention.
//!
//! ```text
//!  partition   0 ........ first ──────────────── keep_from ────────── next
//!              given up   rows that may be removed   rows that stay
//! ```
//!
//! Rows are removed in the order of their records' times, whatever the partition. The offsets before the first remaining
//! row are given up in the same transaction, so a missing row is still noticed. A transaction is short, so that commits
//! do not wait for it. SQLite uses the space of removed rows again; the file does not shrink. A segment is removed once no
//! row refers to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{OptionalExtension, params};

use super::bounded::Bounded;
use super::catalogue::{self, Catalogue};
use super::ends::{self, End};
use super::failure::Fault;
use super::file::{LogFile, Writing};
use super::reference::{REFERENCE_BYTES, Reference};
use super::segment_files;
use super::segment_rows::{self, SegmentRow};
use super::statistics::{Content, REFERENCE_BYTES_MAX};
use super::table::Table;
use crate::LogError;

const COUNTING: &str = "counting the bytes of a topic";
const DOING: &str = "removing old records";
/// Greatest number of rows counted in one step.
const COUNT_ROWS_MAX: i64 = 4_096;
/// Bytes after which a step ends. A removal reads all of a row's pages, and commits of others wait meanwhile.
const STEP_BYTES: u64 = 2 << 20;

/// Limits of what a topic keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Time before which records may be removed, ns since the epoch; `None` if no record is too old. A record's time is
    /// that of its writing.
    pub since_ns: Option<i64>,
    /// Greatest size of all records of the topic, in bytes; `None` without a limit.
    pub bytes_max: Option<u64>,
}

/// Removed records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Number of records.
    pub records: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// Removes the oldest records of one topic.
pub struct Trimmer {
    file: Arc<LogFile>,
    connection: Bounded,
    topic: String,
    partitions: Vec<Part>,
}

/// A partition of the topic.
#[derive(Clone)]
struct Part {
    table: Table,
    /// Offset after the last counted row.
    counted_to: i64,
    /// Size of the counted rows, in bytes.
    bytes: u64,
    /// The first row; `None` if it is not known.
    oldest: Option<Oldest>,
}

/// The first row of a partition.
#[derive(Clone, Copy)]
struct Oldest {
    offset: i64,
    /// Offset after its last record.
    next: i64,
    bytes: u64,
    /// Time of its newest record.
    newest_ns: i64,
    /// Number of the segment that has its block.
    segment: Option<u32>,
}

impl Trimmer {
    pub(super) fn new(file: Arc<LogFile>, topic: &str) -> Result<Self, LogError> {
        let connection = file.connect()?;
        let catalogue = Catalogue::load(&file, &connection)?;
        let found = catalogue.topic(&file, topic)?;
        if found.spec.compacted {
            return Err(LogError::Argument {
                url: file.url.clone(),
                argument: "topic",
                value: topic.to_owned(),
                allowed: "name one that is not compacted".to_owned(),
            });
        }
        let part = |partition| Part { table: found.table(partition), counted_to: 0, bytes: 0, oldest: None };
        let partitions = (0..found.spec.partitions).map(part).collect();
        Ok(Self { connection, topic: topic.to_owned(), partitions, file })
    }

    /// Returns the size of the rows that were counted and not removed, in bytes.
    pub fn bytes(&self) -> u64 {
        self.partitions.iter().map(|part| part.bytes).sum()
    }

    /// Counts rows that were appended since the last call. Returns false if there may be more.
    pub fn count(&mut self) -> Result<bool, LogError> {
        self.file.begin(&self.connection)?;
        let mut are_all = true;
        for part in &mut self.partitions {
            let sql = format!(
                "SELECT offset, count, length(block),
                 CASE WHEN length(block) <= iif(count < 0, {REFERENCE_BYTES_MAX}, {REFERENCE_BYTES}) THEN block END
                 FROM {} WHERE offset >= ?1 ORDER BY offset LIMIT ?2",
                part.table.name()
            );
            let query = || {
                let mut statement = self.connection.prepare_cached(&sql)?;
                let rows = statement.query_map(params![part.counted_to, COUNT_ROWS_MAX], |row| {
                    let count: i64 = row.get(1)?;
                    let content = row.get_ref(3)?.as_blob_or_null()?.map(|stored| Content::of(count, stored));
                    let reference = content.and_then(|content| Reference::decode(content.ok()?.block));
                    let bytes = reference.map_or(row.get(2)?, |reference| reference.length.into());
                    Ok((row.get(0)?, count.saturating_abs(), bytes))
                })?;
                rows.collect::<rusqlite::Result<Vec<(i64, i64, i64)>>>()
            };
            let rows = query().map_err(|error| self.file.failure(COUNTING, error))?;
            are_all &= (rows.len() as i64) < COUNT_ROWS_MAX;
            for (offset, count, bytes) in rows {
                if offset < part.counted_to || count <= 0 {
                    let place = format!("{}/{}", self.topic, part.table.partition);
                    return Err(self.file.damaged(format!("{place} has {count} records at offset {offset}")));
                }
                part.counted_to = offset.saturating_add(count);
                part.bytes += bytes.unsigned_abs();
            }
        }
        Ok(are_all)
    }

    /// Returns true if there are records that `keep` does not cover.
    pub fn is_due(&mut self, keep: &Keep) -> Result<bool, LogError> {
        let Self { file, connection, topic, partitions } = self;
        file.begin(connection)?;
        let all = vec![i64::MAX; partitions.len()];
        Ok(next_of(file, connection, topic, partitions, keep, &all)?.is_some())
    }

    /// Returns the number of partitions.
    pub fn partitions(&self) -> i32 {
        self.partitions.len() as i32
    }

    /// Removes the oldest rows that `keep` does not cover, in one short transaction. Returns the removed records: none
    /// if there is nothing to remove.
    ///
    /// Records from the offsets `keep_from` on stay, one for each partition. The last row of a partition stays too.
    pub fn trim(&mut self, keep: &Keep, keep_from: &[i64]) -> Result<Trimmed, LogError> {
        assert_eq!(keep_from.len(), self.partitions.len(), "one offset for each partition");
        let Self { file, connection, topic, partitions } = self;
        // Most calls find nothing to remove, and should not take the write lock.
        file.begin(connection)?;
        if next_of(file, connection, topic, partitions, keep, keep_from)?.is_none() {
            return Ok(Trimmed::default());
        }
        let before = partitions.clone();
        let trimmed = file.write(connection, DOING, |writing| {
            let mut segments: BTreeMap<u32, i64> = BTreeMap::new();
            let mut trimmed = Trimmed::default();
            let mut rows_removed = vec![0; partitions.len()];
            while trimmed.bytes < STEP_BYTES
                && let Some((index, oldest)) =
                    next_of(file, &writing.transaction, topic, partitions, keep, keep_from)?
            {
                let part = &mut partitions[index];
                let removed = writing
                    .transaction
                    .prepare_cached(&format!("DELETE FROM {} WHERE offset = ?1", part.table.name()))
                    .and_then(|mut statement| statement.execute([oldest.offset]))
                    .map_err(|error| file.failure(DOING, error))?;
                part.oldest = None;
                part.bytes = part.bytes.saturating_sub(oldest.bytes);
                rows_removed[index] += removed as i64;
                if let Some(segment) = oldest.segment.filter(|_| removed > 0) {
                    *segments.entry(segment).or_default() += removed as i64;
                }
                trimmed.records += (oldest.next - oldest.offset).unsigned_abs();
                trimmed.bytes += oldest.bytes;
            }
            for (part, rows) in partitions.iter_mut().zip(rows_removed).filter(|(_, rows)| *rows > 0) {
                let oldest = find_oldest(file, &writing.transaction, topic, part)?;
                let first = oldest.map(|oldest| oldest.offset).expect("the last row stays");
                give_up_before(file, writing, &part.table, first, rows)?;
            }
            let mut is_free = false;
            for (segment, removed) in segments {
                is_free |= count_down(file, writing, segment, removed)? == 0;
            }
            Ok((trimmed, is_free))
        });
        match trimmed {
            Ok((trimmed, is_free)) => {
                if is_free {
                    segment_files::sweep(file, connection);
                }
                Ok(trimmed)
            }
            Err(error) => {
                *partitions = before;
                Err(error)
            }
        }
    }
}

/// Returns the next row to remove, and its partition's index.
fn next_of(
    file: &LogFile,
    connection: &rusqlite::Connection,
    topic: &str,
    partitions: &mut [Part],
    keep: &Keep,
    keep_from: &[i64],
) -> Result<Option<(usize, Oldest)>, LogError> {
    let bytes: u64 = partitions.iter().map(|part| part.bytes).sum();
    let is_too_large = keep.bytes_max.is_some_and(|bytes_max| bytes > bytes_max);
    if !is_too_large && keep.since_ns.is_none() {
        return Ok(None);
    }
    let mut next: Option<(usize, Oldest)> = None;
    for (index, (part, keep_from)) in partitions.iter_mut().zip(keep_from).enumerate() {
        let Some(oldest) = find_oldest(file, connection, topic, part)? else { continue };
        // A row that is not counted yet belongs to the newest ones.
        let may_go = oldest.next <= *keep_from && oldest.next < part.counted_to;
        if may_go && next.is_none_or(|(_, other)| oldest.newest_ns < other.newest_ns) {
            next = Some((index, oldest));
        }
    }
    let is_due =
        |oldest: &Oldest| is_too_large || keep.since_ns.is_some_and(|since_ns| oldest.newest_ns < since_ns);
    Ok(next.filter(|(_, oldest)| is_due(oldest)))
}

/// Returns the first row of a partition; `None` if it has none.
fn find_oldest(
    file: &LogFile,
    connection: &rusqlite::Connection,
    topic: &str,
    part: &mut Part,
) -> Result<Option<Oldest>, LogError> {
    if part.oldest.is_some() {
        return Ok(part.oldest);
    }
    let Part { table, .. } = *part;
    let failed = |error| file.failure(DOING, error);
    let sql = format!("{} LIMIT 1", table.select_from());
    let mut statement = connection.prepare_cached(&sql).map_err(failed)?;
    let mut buffer = Vec::new();
    let row = |row: &rusqlite::Row<'_>| {
        let (offset, stored_bytes): (i64, u64) = (row.get(0)?, row.get_ref(3)?.as_blob()?.len() as u64);
        let reference = table.reference(row);
        let bytes = reference.map_or(stored_bytes, |reference| reference.length.into());
        let segment = reference.map(|reference| reference.segment);
        let mut read = || -> Result<Oldest, Fault> {
            let mut oldest = Oldest { offset, next: offset, bytes, newest_ns: i64::MIN, segment };
            for stored in table.records(&file.segments, row, &mut buffer)? {
                let stored = stored?;
                oldest.next = stored.offset + 1;
                oldest.newest_ns = oldest.newest_ns.max(stored.timestamp_ns);
            }
            Ok(oldest)
        };
        Ok((offset, read()))
    };
    let Some((offset, read)) = statement.query_row([0], row).optional().map_err(failed)? else {
        return Ok(None);
    };
    let damaged =
        |found: String| file.damaged(format!("{topic}/{} at offset {offset}: {found}", table.partition));
    part.oldest = Some(read.map_err(|fault| fault.explain(damaged))?);
    Ok(part.oldest)
}

/// Subtracts removed rows of a segment; returns the number of the remaining ones.
fn count_down(file: &LogFile, writing: &Writing<'_>, segment: u32, removed: i64) -> Result<i64, LogError> {
    let row = segment_rows::read(file, &writing.transaction, segment)?;
    let rows = row.rows - removed;
    if rows < 0 {
        return Err(
            file.damaged(format!("segment {segment} has {} rows, and {removed} refer to it", row.rows))
        );
    }
    segment_rows::write(file, &writing.transaction, &SegmentRow { rows, ..row })?;
    Ok(rows)
}

/// Gives up all offsets of a partition before its first remaining row, after `rows` of its rows were removed.
fn give_up_before(
    file: &LogFile,
    writing: &mut Writing<'_>,
    table: &Table,
    first: i64,
    rows: i64,
) -> Result<(), LogError> {
    let &Table { topic_id, partition, .. } = table;
    let End { next, rows: before } = ends::read(file, &writing.transaction, topic_id, partition)?;
    ends::write(file, &writing.transaction, topic_id, partition, End { next, rows: before - rows })?;
    let sql = "DELETE FROM given_up WHERE topic_id = ?1 AND partition = ?2 AND first_offset < ?3";
    writing
        .transaction
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(params![topic_id, partition, first]))
        .and_then(|_| catalogue::give_up(&writing.transaction, topic_id, partition, 0, first))
        .map_err(|error| file.failure(DOING, error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        Consumer, Durability, EventLog, Fetched, NewRecord, OffsetRange, SqliteLog, TopicPartition, TopicSpec,
    };

    const PARTITIONS: i32 = 2;

    fn new_log(folder: &std::path::Path) -> SqliteLog {
        let log = SqliteLog::open(folder.join("log.db"), Durability::Process).unwrap();
        let topic = |name: &str, compacted| TopicSpec {
            name: name.to_owned(),
            partitions: PARTITIONS,
            compacted,
            ..TopicSpec::default()
        };
        log.create_topics(&[topic("t", false), topic("c", true)]).unwrap();
        log
    }

    /// Appends a row with two records of 1,000 bytes, written at this time.
    fn append(log: &SqliteLog, partition: i32, timestamp_ns: i64) {
        let mut producer = log.producer("p").unwrap();
        producer.begin().unwrap();
        for _ in 0..2 {
            let (topic, value) = ("t".into(), vec![7; 1_000].into());
            producer
                .send(NewRecord { topic, partition, timestamp_ns, value, ..NewRecord::default() })
                .unwrap();
        }
        producer.commit().unwrap();
    }

    fn place(partition: i32) -> TopicPartition {
        TopicPartition { topic: "t".to_owned(), partition }
    }

    fn firsts(log: &SqliteLog) -> Vec<i64> {
        (0..PARTITIONS).map(|partition| log.offsets(&place(partition)).unwrap().first).collect()
    }

    fn trim(trimmer: &mut Trimmer, keep: Keep, keep_from: [i64; 2]) -> u64 {
        while !trimmer.count().unwrap() {}
        let mut records = 0;
        loop {
            match trimmer.trim(&keep, &keep_from).unwrap() {
                Trimmed { records: 0, .. } => return records,
                trimmed => records += trimmed.records,
            }
        }
    }

    const ALL: [i64; 2] = [i64::MAX; 2];

    #[test]
    fn the_oldest_records_go_whatever_their_partition() {
        let folder = tempfile::tempdir().unwrap();
        let log = new_log(folder.path());
        // Times 0, 1, … 19: the even ones in partition 0.
        (0..20).for_each(|time| append(&log, (time % 2) as i32, time));
        let mut trimmer = log.trimmer("t").unwrap();
        let nothing = Keep::default();
        assert_eq!((trim(&mut trimmer, nothing, ALL), firsts(&log)), (0, vec![0, 0]));
        let bytes = trimmer.bytes();
        assert!((40_000..42_000).contains(&bytes), "{bytes}");
        let by_age = |since_ns| Keep { since_ns: Some(since_ns), bytes_max: None };
        assert_eq!((trim(&mut trimmer, by_age(5), ALL), firsts(&log)), (10, vec![6, 4]));
        let by_size = |bytes_max| Keep { since_ns: None, bytes_max: Some(bytes_max) };
        assert_eq!((trim(&mut trimmer, by_size(bytes / 2), ALL), firsts(&log)), (10, vec![10, 10]));
        assert_eq!(trimmer.bytes(), bytes / 2);
        // Partition 0 is needed from its record 11 on, which is in the row of record 10.
        assert_eq!((trim(&mut trimmer, by_age(100), [11, 14]), firsts(&log)), (4, vec![10, 14]));
        // The last row of each partition stays.
        assert_eq!((trim(&mut trimmer, by_size(0), ALL), firsts(&log)), (12, vec![18, 18]));
        log.check().unwrap();
        // A new trimmer, and new records, continue from there.
        append(&log, 0, 20);
        let mut trimmer = log.trimmer("t").unwrap();
        assert_eq!((trim(&mut trimmer, by_age(100), ALL), firsts(&log)), (2, vec![20, 18]));
        append(&log, 0, 21);
        assert_eq!((trim(&mut trimmer, by_age(100), ALL), firsts(&log)), (2, vec![22, 18]));
        assert_eq!(log.offsets(&place(0)).unwrap(), OffsetRange { first: 22, next: 24 });
        let checked = log.check_all(&mut |_| {}).unwrap();
        assert_eq!(checked.given_up, ["t/0 offsets 0 to 21", "t/1 offsets 0 to 17"]);
        assert!(log.trimmer("c").is_err() && log.trimmer("none").is_err());
    }

    fn offsets(reader: &mut dyn Consumer) -> Result<Vec<i64>, LogError> {
        match reader.poll(Duration::ZERO, 1, 1)? {
            Fetched::Records { records, .. } => Ok(records.iter().map(|record| record.offset).collect()),
            _ => Ok(Vec::new()),
        }
    }

    #[test]
    fn a_reader_learns_that_its_next_records_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let log = new_log(folder.path());
        (0..10).for_each(|time| append(&log, 0, time));
        let readers = || log.reader(&[place(0)]).unwrap();
        let (mut fresh, mut overtaken, mut ahead) = (readers(), readers(), readers());
        assert_eq!(offsets(overtaken.as_mut()).unwrap(), [0]);
        ahead.seek(&place(0), 16).unwrap();
        assert_eq!(offsets(ahead.as_mut()).unwrap(), [16]);
        let mut trimmer = log.trimmer("t").unwrap();
        assert_eq!(trim(&mut trimmer, Keep { since_ns: Some(5), bytes_max: None }, ALL), 10);
        // The rest of a row is in the reader's memory.
        assert_eq!(offsets(overtaken.as_mut()).unwrap(), [1]);
        let error = offsets(overtaken.as_mut()).unwrap_err();
        assert!(matches!(error, LogError::OffsetOutOfRange { offset: 2, .. }), "{error}");
        assert!(error.to_string().contains("t/0 has no offset 2, but offsets 10 to 19"), "{error}");
        assert_eq!(offsets(ahead.as_mut()).unwrap(), [17]);
        // A reader that has read nothing yet begins where the records begin, and so does one that is told to.
        assert_eq!(offsets(fresh.as_mut()).unwrap(), [10]);
        overtaken.seek(&place(0), 2).unwrap();
        assert_eq!(offsets(overtaken.as_mut()).unwrap(), [10]);
        // Copies begin there as well.
        let copy = folder.path().join("copy.db");
        log.backup(&copy, &mut |_| {}).unwrap();
        let copy = SqliteLog::open_existing(&copy).unwrap();
        copy.check().unwrap();
        assert_eq!(firsts(&copy), [10, 0]);
    }
}
