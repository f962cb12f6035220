//! How the table of a partition holds its records.

use rusqlite::Row;

use super::block::{self, StoredRecord};

/// What a row of a partition's table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A record.
    Rows,
    /// A [`block`] of records.
    Blocks,
}

impl Layout {
    /// In a file of format 1 every record has a row. Since then only those do that compaction may take away.
    pub(super) fn of(format_version: i32, compacted: bool) -> Self {
        if format_version == 1 || compacted { Self::Rows } else { Self::Blocks }
    }

    /// The columns of the table. The offset of a block is that of its first record.
    pub(super) fn columns(self) -> &'static str {
        match self {
            Self::Rows => {
                "offset INTEGER PRIMARY KEY, timestamp_ns INTEGER NOT NULL, key BLOB, headers BLOB, value BLOB NOT NULL"
            }
            Self::Blocks => "offset INTEGER PRIMARY KEY, count INTEGER NOT NULL, block BLOB NOT NULL",
        }
    }

    /// Adds a row.
    pub(super) fn insert(self, table: &str) -> String {
        match self {
            Self::Rows => format!("INSERT INTO {table} VALUES (?1, ?2, ?3, ?4, ?5)"),
            Self::Blocks => format!("INSERT INTO {table} VALUES (?1, ?2, ?3)"),
        }
    }

    /// The rows from the one on that has the record at offset `?1`, or the next one.
    pub(super) fn select(self, table: &str) -> String {
        match self {
            Self::Rows => format!(
                "SELECT offset, timestamp_ns, key, headers, value FROM {table} WHERE offset >= ?1 ORDER BY offset"
            ),
            Self::Blocks => format!(
                "SELECT offset, count, block FROM {table} WHERE offset >= coalesce(
                    (SELECT offset FROM {table} WHERE offset <= ?1 ORDER BY offset DESC LIMIT 1), ?1
                ) ORDER BY offset"
            ),
        }
    }

    /// The records of a row of [`Self::select`], up to the first that is damaged, or what is wrong with the row.
    pub(super) fn records<'a>(
        self,
        row: &'a Row<'_>,
    ) -> Result<impl Iterator<Item = Result<StoredRecord<'a>, String>>, String> {
        let wrong = |error: rusqlite::Error| error.to_string();
        let integer = |column: usize| row.get::<_, i64>(column).map_err(wrong);
        let blob = |column: usize| -> Result<Option<&'a [u8]>, String> {
            row.get_ref(column).map_err(wrong)?.as_blob_or_null().map_err(|error| error.to_string())
        };
        let offset = integer(0)?;
        let (single, block) = match self {
            Self::Rows => {
                let stored = StoredRecord {
                    offset,
                    timestamp_ns: integer(1)?,
                    key: blob(2)?,
                    headers: blob(3)?.unwrap_or_default(),
                    value: blob(4)?.ok_or("a record without a value")?,
                };
                (Some(Ok(stored)), None)
            }
            Self::Blocks => {
                let bytes = blob(2)?.ok_or("a row without a block")?;
                (None, Some(block::records(offset, integer(1)?, bytes)))
            }
        };
        Ok(single.into_iter().chain(block.into_iter().flatten()))
    }
}
