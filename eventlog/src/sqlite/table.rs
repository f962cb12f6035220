//! The table of a partition's records.

use std::borrow::Cow;
use std::ops::Range;

use rusqlite::{Connection, Row, Statement, params};

use super::block::{Block, Blocks, Records, StoredRecord};
use super::checksum;
use super::failure::Fault;
use super::reference::Reference;
use super::segments::Segments;
use super::statistics::{self, Content, Statistics};
use crate::Selection;

/// Index of a block's count among the selected columns. Below: of the block.
const COUNT_COLUMN: usize = 2;
const BLOCK_COLUMN: usize = 3;

/// The content of a row in a partition's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One record, which compaction may remove.
    Rows,
    /// A [`super::block`] of records, or the [`Reference`] to it, perhaps after its [`super::statistics`].
    Blocks,
}

/// The table of a partition's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) topic_id: i64,
    pub(super) partition: i32,
    /// True if a record replaces older ones with its key, so that offsets may be missing.
    pub(super) compacted: bool,
}

/// Result of an append.
pub(super) struct Appended {
    /// Offset after the last record.
    pub(super) next: i64,
    /// Rows added, minus rows removed by compaction.
    pub(super) rows: i64,
}

impl Table {
    /// Returns the layout of its rows.
    pub(super) fn layout(&self) -> Layout {
        if self.compacted { Layout::Rows } else { Layout::Blocks }
    }

    /// Returns its name.
    pub(super) fn name(&self) -> String {
        format!("records_{}_{}", self.topic_id, self.partition)
    }

    /// Creates the table, with the index that compaction needs.
    pub(super) fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(&self.sql())?;
        if self.compacted {
            connection.execute_batch(&self.index_sql())?;
        }
        Ok(())
    }

    /// Returns the statement that creates the table.
    pub(super) fn sql(&self) -> String {
        // The offset of a block is that of its first record.
        let columns = match self.layout() {
            Layout::Rows => "timestamp_ns INTEGER NOT NULL, key BLOB, headers BLOB, value BLOB NOT NULL",
            Layout::Blocks => "count INTEGER NOT NULL, block BLOB NOT NULL",
        };
        format!(
            "CREATE TABLE {}(offset INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, {columns}) STRICT",
            self.name()
        )
    }

    /// Returns the name of the index that finds records by key for compaction.
    pub(super) fn index_name(&self) -> String {
        format!("{}_keys", self.name())
    }

    /// Returns the statement that creates the index.
    pub(super) fn index_sql(&self) -> String {
        format!("CREATE INDEX {} ON {}(key) WHERE key IS NOT NULL", self.index_name(), self.name())
    }

    /// Appends records from an offset on.
    pub(super) fn append(
        &self,
        connection: &Connection,
        mut next: i64,
        blocks: &Blocks,
    ) -> rusqlite::Result<Appended> {
        let &Self { topic_id, partition, .. } = self;
        let table = self.name();
        let mut rows = 0;
        let values = match self.layout() {
            Layout::Rows => "?1, ?2, ?3, ?4, ?5, ?6",
            Layout::Blocks => "?1, ?2, ?3, ?4",
        };
        let mut insert = connection.prepare_cached(&format!("INSERT INTO {table} VALUES ({values})"))?;
        for block in blocks.iter() {
            if self.layout() == Layout::Blocks {
                self.insert_block(&mut insert, next, block)?;
                next += block.count;
                rows += 1;
                continue;
            }
            for record in block.records(next) {
                if let Some(key) = record.key {
                    rows -= self.remove(connection, &table, key)?;
                }
                let sum = checksum::of_record(topic_id, partition, &record);
                let StoredRecord { offset, timestamp_ns, key, headers, value } = record;
                let headers = (!headers.is_empty()).then_some(headers);
                insert.execute(params![offset, sum, timestamp_ns, key, headers, value])?;
                next = offset + 1;
                rows += 1;
            }
        }
        Ok(Appended { next, rows })
    }

    /// Adds the row of a block: its bytes, or the reference to them.
    fn insert_block(&self, insert: &mut Statement<'_>, first: i64, block: &Block) -> rusqlite::Result<()> {
        let &Self { topic_id, partition, .. } = self;
        let Block { bytes, placed, .. } = block;
        let (mut count, mut stored) = (block.count, Cow::Borrowed(bytes.as_slice()));
        if let Some(placed) = placed {
            stored = Cow::Owned(placed.reference.encode().to_vec());
        }
        if let Some(found) = block.statistics() {
            let head = statistics::head(topic_id, partition, first, count, &found);
            (count, stored) = (-count, Cow::Owned([head.as_slice(), &stored].concat()));
        }
        let sum = match placed {
            Some(placed) => checksum::of_placed(topic_id, partition, first, count, &stored, placed.content),
            None => checksum::of_block(topic_id, partition, first, count, &stored),
        };
        insert.execute(params![first, sum, count, stored]).map(drop)
    }

    /// Removes all records with this key; they are older than the new one. A damaged index may point to other records,
    /// so a record's own key decides.
    fn remove(&self, connection: &Connection, table: &str, key: &[u8]) -> rusqlite::Result<i64> {
        let sql = format!(
            "DELETE FROM {table} WHERE offset IN (SELECT offset FROM {table} WHERE key = ?1) AND +key = ?1"
        );
        let removed = connection.prepare_cached(&sql)?.execute([key])?;
        Ok(i64::try_from(removed).expect("a table has fewer rows"))
    }

    /// Returns SQL that selects the rows from the one with offset `?1` on, or from the next one after it.
    pub(super) fn select(&self) -> String {
        let table = self.name();
        match self.layout() {
            Layout::Rows => self.select_from(),
            Layout::Blocks => format!(
                "SELECT {} FROM {table} WHERE offset >= coalesce(
                    (SELECT offset FROM {table} WHERE offset <= ?1 ORDER BY offset DESC LIMIT 1), ?1
                ) ORDER BY offset",
                self.selected()
            ),
        }
    }

    /// Returns SQL for the rows that begin at offset `?1` or after it.
    pub(super) fn select_from(&self) -> String {
        format!("SELECT {} FROM {} WHERE offset >= ?1 ORDER BY offset", self.selected(), self.name())
    }

    fn selected(&self) -> &'static str {
        match self.layout() {
            Layout::Rows => "offset, checksum, timestamp_ns, key, headers, value",
            Layout::Blocks => "offset, checksum, count, block",
        }
    }

    /// Returns the reference of a selected row; `None` if it has the bytes itself.
    pub(super) fn reference(&self, row: &Row<'_>) -> Option<Reference> {
        Reference::decode(self.content(row)?.block)
    }

    /// Returns the statistics of a selected row; `None` if it has none, or is damaged.
    pub(super) fn statistics<'a>(&self, row: &'a Row<'_>) -> Option<Statistics<'a>> {
        self.content(row)?.statistics
    }

    /// Returns the parts of a block's row; `None` if it is a record's, or damaged.
    fn content<'a>(&self, row: &'a Row<'_>) -> Option<Content<'a>> {
        match self.layout() {
            Layout::Rows => None,
            Layout::Blocks => {
                Content::of(row.get(COUNT_COLUMN).ok()?, row.get_ref(BLOCK_COLUMN).ok()?.as_blob().ok()?).ok()
            }
        }
    }

    /// Returns the offsets of a row's records if none of them is selected, which its statistics tell. `None` if the row
    /// must be read.
    ///
    /// # Errors
    /// The statistics are damaged.
    pub(super) fn left_out(
        &self,
        row: &Row<'_>,
        selection: &Selection,
    ) -> Result<Option<Range<i64>>, String> {
        let Some(Content { count, statistics: Some(statistics), .. }) = self.content(row) else {
            return Ok(None);
        };
        let &Self { topic_id, partition, .. } = self;
        let first: i64 = row.get(0).map_err(|error| error.to_string())?;
        let next = first.saturating_add(count);
        if !statistics.is_intact(topic_id, partition, first, count) {
            let block = format!("a block of {count} records from offset {first} on");
            return Err(format!("the checksum of the statistics of {block} does not match"));
        }
        Ok((!statistics.may_have(selection)).then_some(first..next))
    }

    /// Returns the records of a selected row, or the row's fault. Iteration ends at the first damaged record. The buffer
    /// gets the bytes of a block in a segment.
    pub(super) fn records<'a>(
        &self,
        segments: &Segments,
        row: &'a Row<'_>,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Stored<'a>, Fault> {
        let wrong = |error: rusqlite::Error| error.to_string();
        let integer = |column: usize| row.get::<_, i64>(column).map_err(wrong);
        let blob = |column: usize| -> Result<Option<&'a [u8]>, String> {
            row.get_ref(column).map_err(wrong)?.as_blob_or_null().map_err(|error| error.to_string())
        };
        let check = |found: i64, what: &dyn Fn() -> String| match integer(1)? == found {
            true => Ok(()),
            false => Err(Fault::Damage(format!("the checksum of {} does not match", what()))),
        };
        let &Self { topic_id, partition, .. } = self;
        let offset = integer(0)?;
        match self.layout() {
            Layout::Rows => {
                let stored = StoredRecord {
                    offset,
                    timestamp_ns: integer(2)?,
                    key: blob(3)?,
                    headers: blob(4)?.unwrap_or_default(),
                    value: blob(5)?.ok_or_else(|| "a record without a value".to_owned())?,
                };
                let sum = checksum::of_record(topic_id, partition, &stored);
                check(sum, &|| format!("the record at offset {offset}"))?;
                Ok(Stored::Record(Some(stored)))
            }
            Layout::Blocks => {
                let column = integer(COUNT_COLUMN)?;
                let stored = blob(BLOCK_COLUMN)?.ok_or_else(|| "a row without a block".to_owned())?;
                let Content { count, statistics, block: bytes } = Content::of(column, stored)?;
                let block = || format!("a block of {count} records from offset {offset} on");
                if statistics.is_some_and(|found| !found.is_intact(topic_id, partition, offset, count)) {
                    return Err(Fault::Damage(format!(
                        "the checksum of the statistics of {} does not match",
                        block()
                    )));
                }
                let Some(reference) = Reference::decode(bytes) else {
                    check(checksum::of_block(topic_id, partition, offset, column, stored), &block)?;
                    return Ok(Stored::Block(Records::new(offset, count, bytes)));
                };
                segments.read(reference, buffer)?;
                let content = checksum::of_bytes(buffer);
                let sum = checksum::of_placed(topic_id, partition, offset, column, stored, content);
                check(sum, &|| format!("{} ({})", block(), segments.place(reference)))?;
                Ok(Stored::Block(Records::new(offset, count, buffer)))
            }
        }
    }
}

/// The records of a row.
#[derive(Clone)]
pub(super) enum Stored<'a> {
    Record(Option<StoredRecord<'a>>),
    Block(Records<'a>),
}

impl<'a> Iterator for Stored<'a> {
    type Item = Result<StoredRecord<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Record(record) => record.take().map(Ok),
            Self::Block(records) => records.next(),
        }
    }
}
