//! A partition of the log that is being written to files.

use warptape_eventlog::OffsetRange;
use warptape_replay::{ExportOptions, Planned, utc};

use super::folder::{Folder, Unfinished};
use crate::TablesError;
use crate::reading::Reading;
use crate::rows::{Rows, TableBatch};
use crate::table::Table;

/// Number of rows after which a file ends, at the next record.
const FILE_ROWS_DUE: u64 = 1 << 20;

/// A partition of a topic, and the open file of each of its tables.
pub(super) struct Stream<'a> {
    reading: Reading<'a>,
    rows: Rows,
    /// Day of the last record; empty before the first one.
    day: String,
    parts: Vec<Part>,
}

/// A table's part of the partition.
struct Part {
    table: &'static Table,
    /// Offset of the first record whose rows belong in the next file.
    first: i64,
    file: Option<Unfinished>,
    /// Number of rows in complete files.
    written: u64,
}

impl<'a> Stream<'a> {
    /// Creates the stream. Each table gets rows of records from its own offset on.
    pub(super) fn new(reading: Reading<'a>, places: &[(&'static Table, i64)]) -> Self {
        let tables: Vec<_> = places.iter().map(|(table, _)| *table).collect();
        let mut rows = Rows::new(&tables);
        let part = |&(table, first): &(&'static Table, i64)| {
            rows.begin_at(table, first);
            Part { table, first, file: None, written: 0 }
        };
        let parts = places.iter().map(part).collect();
        Self { reading, rows, day: String::new(), parts }
    }

    pub(super) fn partition(&self) -> i32 {
        self.reading.source.partition
    }

    /// Returns the tables, with the offsets before which all rows are in files after a cut.
    pub(super) fn places(&self) -> impl Iterator<Item = (&'static Table, i64)> {
        self.parts.iter().map(|part| (part.table, part.first))
    }

    /// Returns the number of rows of a table in whole files.
    pub(super) fn rows_of(&self, table: &Table) -> u64 {
        self.parts.iter().filter(|part| part.table.name == table.name).map(|part| part.written).sum()
    }

    /// Extends the stream to another end. Returns true if there is more to read.
    pub(super) fn extend(&mut self, range: OffsetRange, options: &ExportOptions, plan: &Planned) -> bool {
        self.reading.extend(range, options, plan);
        self.reading.next < range.next
    }

    /// Reads the rows of the next record. Returns false at the end.
    pub(super) fn step(&mut self, folder: &Folder) -> Result<bool, TablesError> {
        if let Some(at_ns) = self.reading.peek_ns()? {
            let day: String = utc(at_ns).chars().take_while(|letter| *letter != 'T').collect();
            if day != self.day {
                self.cut(folder)?;
                self.day = day;
            }
        }
        let has_more = self.reading.step(&mut self.rows)?;
        self.write(folder)?;
        if self.parts.iter().any(Part::is_due) {
            self.cut(folder)?;
        }
        Ok(has_more)
    }

    /// Ends the open files, which then have the rows of all records so far.
    pub(super) fn cut(&mut self, folder: &Folder) -> Result<(), TablesError> {
        self.rows.finish();
        self.write(folder)?;
        let (partition, next) = (self.partition(), self.reading.next);
        for part in &mut self.parts {
            if let Some(file) = part.file.take() {
                part.written += file.finish(OffsetRange { first: part.first, next }, partition)?;
            }
            part.first = next.max(part.first);
        }
        Ok(())
    }

    /// Writes full batches.
    fn write(&mut self, folder: &Folder) -> Result<(), TablesError> {
        let partition = self.partition();
        while let Some(TableBatch { table, batch }) = self.rows.take_ready() {
            let part = self.parts.iter_mut().find(|part| part.table.name == table.name);
            let part = part.expect("rows are of its own tables");
            let file = match &mut part.file {
                Some(file) => file,
                none => none.insert(folder.begin(table, partition, &self.day)?),
            };
            file.write(&batch)?;
        }
        Ok(())
    }
}

impl Part {
    fn is_due(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.rows() >= FILE_ROWS_DUE)
    }
}
