//! The records of one poll: takes them from rows, checks that none is missing, and passes over those that are not
//! selected.

use rusqlite::Row;

use super::catalogue::GivenUp;
use super::file::LogFile;
use super::table::{Layout, Stored, Table};
use crate::{LogError, Record, Selection, TopicPartition};

/// Limits of a poll.
#[derive(Clone, Copy)]
pub(super) struct PollLimits {
    pub(super) records_max: usize,
    pub(super) bytes_max: usize,
}

/// The records of a poll.
pub(super) struct Polled<'a> {
    pub(super) file: &'a LogFile,
    pub(super) source: &'a TopicPartition,
    pub(super) given_up: &'a GivenUp,
    pub(super) table: Table,
    /// Offset of the selection's first row, whose block may begin before the wanted record; `None` after the first row.
    pub(super) begin: Option<i64>,
    /// Offset of the next record.
    pub(super) expected: i64,
    pub(super) records: Vec<Record>,
    pub(super) bytes: usize,
    pub(super) limits: PollLimits,
    pub(super) selection: Option<&'a Selection>,
}

impl Polled<'_> {
    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= self.limits.records_max || self.bytes >= self.limits.bytes_max
    }

    pub(super) fn damaged(&self, offset: i64, found: &str) -> LogError {
        let TopicPartition { topic, partition } = self.source;
        self.file.damaged(format!("{topic}/{partition} at offset {offset}: {found}"))
    }

    /// Checks that no record is missing before this offset.
    fn check_follows(&self, offset: i64) -> Result<(), LogError> {
        // A damaged tree may lose records, or lead to the same pages repeatedly.
        let is_gap =
            offset > self.expected && !self.table.compacted && !self.given_up.covers(self.expected, offset);
        if offset < self.expected || is_gap {
            return Err(self.damaged(self.expected, &format!("found offset {offset} instead")));
        }
        Ok(())
    }

    /// Returns true if the row has no selected record. Then its records are passed over.
    pub(super) fn leaves_out(&mut self, row: &Row<'_>) -> Result<bool, LogError> {
        let Some(selection) = self.selection else { return Ok(false) };
        let left_out = self.table.left_out(row, selection);
        let Some(offsets) = left_out.map_err(|found| self.damaged(self.expected, &found))? else {
            return Ok(false);
        };
        let begin = self.begin.take().unwrap_or(offsets.start).max(offsets.start);
        if begin < offsets.end {
            self.check_follows(begin)?;
            self.expected = offsets.end;
        }
        Ok(true)
    }

    /// Takes records of a row until a limit is reached.
    pub(super) fn take(&mut self, stored: &mut Stored<'_>) -> Result<(), LogError> {
        let begin = self.begin.take().unwrap_or(i64::MIN);
        while !self.is_full()
            && let Some(stored) = stored.next()
        {
            let stored = stored.map_err(|found| self.damaged(self.expected, &found))?;
            if stored.offset < begin && self.table.layout() == Layout::Blocks {
                continue;
            }
            self.check_follows(stored.offset)?;
            if self.selection.is_some_and(|selection| !selection.takes_own_key(stored.key)) {
                self.expected = stored.offset + 1;
                continue;
            }
            let record = stored.to_record().map_err(|found| self.damaged(stored.offset, &found))?;
            self.expected = record.offset + 1;
            self.bytes += record.value.len() + record.key.as_ref().map_or(0, Vec::len);
            self.records.push(record);
        }
        Ok(())
    }
}
