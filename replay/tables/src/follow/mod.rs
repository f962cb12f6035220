//! Writes tables as a log grows, as files in a folder per table and day.
//!
//! ```text
//!  FOLDER/_warptape.json                                  log, format, offsets before which everything is in files
//!  FOLDER/signals/date=2026-11-24/0-…120-…980.parquet     rows caused by records 120 to 979 of partition 0
//! ```
//!
//! A file gets its name once it is complete. It has all rows that the records at its offsets cause, so the names show
//! where to continue. Days are those of the records' times in the log. This module reads no clock: its caller decides
//! when to cut.

mod folder;
mod stream;

use std::collections::BTreeMap;
use std::path::Path;

use warptape_eventlog::{EventLog, OffsetRange, TopicPartition};
use warptape_replay::{ExportOptions, Planned, last_start_before, planned};

use self::folder::Folder;
use self::stream::Stream;
use crate::reading::{Reading, Topic};
use crate::table::Table;
use crate::{TableFormat, TablesError, Written, WrittenTable};

/// Greatest number of records in a round.
const RECORDS_MAX: usize = 4_096;

/// Tables of a growing log. Memory is bounded by [`ROWS_MAX`](crate::ROWS_MAX) rows of each table and partition, and by
/// the scheduler's state of each process. After an error it must be opened again, and then continues where its files
/// end.
pub struct Follow<'a> {
    log: &'a dyn EventLog,
    options: ExportOptions,
    tables: Vec<&'static Table>,
    folder: Folder,
    streams: BTreeMap<(Topic, i32), Stream<'a>>,
    notes: Vec<String>,
}

impl<'a> Follow<'a> {
    /// Opens a new or empty folder, or one that an earlier call wrote, and removes unfinished files there. The window
    /// of `options` has no effect.
    ///
    /// # Errors
    /// If the folder has other contents, belongs to another log, or is being written by another process.
    pub fn open(
        log: &'a dyn EventLog,
        to: &Path,
        format: TableFormat,
        options: &ExportOptions,
        tables: &[&'static Table],
    ) -> Result<Self, TablesError> {
        let options = ExportOptions { with_ticks: true, window: Default::default(), ..options.clone() };
        let folder = Folder::open(to, format, &log.url())?;
        let (tables, notes) = (tables.to_vec(), Vec::new());
        Ok(Self { log, options, tables, folder, streams: BTreeMap::new(), notes })
    }

    /// Reads a bounded part of the records written since the last round. Returns true if nothing is left.
    ///
    /// # Errors
    /// If the log cannot be read, or a file cannot be written.
    pub fn round(&mut self) -> Result<bool, TablesError> {
        let mut left = RECORDS_MAX;
        for stream in self.streams.values_mut() {
            while left > 0 && stream.step(&mut self.folder)? {
                left -= 1;
            }
        }
        Ok(left > 0 && !self.look()?)
    }

    /// Completes the open files, with all rows so far.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn cut(&mut self) -> Result<(), TablesError> {
        for stream in self.streams.values_mut() {
            stream.cut(&mut self.folder)?;
        }
        self.folder.save()
    }

    /// Returns the number of rows in files written since the folder was opened, and the remarks so far.
    pub fn written(&self) -> Written {
        let rows =
            |table: &'static Table| self.streams.values().map(|stream| stream.rows_of(table)).sum::<u64>();
        let table = |table: &&'static Table| WrittenTable { name: table.name.to_owned(), rows: rows(table) };
        Written { tables: self.tables.iter().map(table).collect(), notes: self.notes.clone() }
    }

    /// Checks for further records. Returns true if there are some.
    fn look(&mut self) -> Result<bool, TablesError> {
        let plan = planned(self.log, &self.options)?;
        let mut has_more = false;
        for topic in Topic::of(&self.tables) {
            for (partition, range) in (0..).zip(plan.of(topic.name(&self.options))) {
                match self.streams.get_mut(&(topic, partition)) {
                    Some(stream) => has_more |= stream.extend(*range, &self.options, &plan),
                    None if range.first < range.next => {
                        let stream = self.begin(topic, partition, *range, &plan)?;
                        self.streams.insert((topic, partition), stream);
                        has_more = true;
                    }
                    None => {}
                }
            }
        }
        Ok(has_more)
    }

    /// Begins to read a partition where its files end.
    fn begin(
        &mut self,
        topic: Topic,
        partition: i32,
        range: OffsetRange,
        plan: &Planned,
    ) -> Result<Stream<'a>, TablesError> {
        let wanted: Vec<_> =
            topic.tables().iter().copied().filter(|table| self.tables.contains(table)).collect();
        let source = TopicPartition { topic: topic.name(&self.options).to_owned(), partition };
        let place = format!("{}/{partition}", source.topic);
        let mut places = Vec::with_capacity(wanted.len());
        for table in wanted {
            let reached = self.folder.reached(table, partition);
            let from = reached.unwrap_or(range.first);
            if from > range.next {
                return Err(self.folder.unfit(format!(
                    "it has rows of {place} up to offset {from}, but {} ends at offset {}: name another folder",
                    self.log.url(),
                    range.next
                )));
            }
            if from < range.first {
                self.notes.push(format!(
                    "{place}: records {from} to {} were removed from the log before they were in the table `{}`",
                    range.first - 1,
                    table.name
                ));
            }
            places.push((table, from.max(range.first)));
        }
        let mut first = places.iter().map(|(_, from)| *from).min().unwrap_or(range.first);
        if topic == Topic::Journal && first > range.first {
            // Open batches, tasks and transactions began after the start of the process.
            first = last_start_before(self.log, &source, range, first)?;
        }
        let range = OffsetRange { first, next: range.next };
        let reading = Reading::new(self.log, &self.options, plan, (topic, partition, range));
        Ok(Stream::new(reading, &places))
    }
}
