//! Tables as record batches, without files.

use std::collections::VecDeque;

use warptape_eventlog::{EventLog, OffsetRange};
use warptape_replay::{ExportOptions, ExportProgress, Planned, planned};

use crate::TablesError;
use crate::reading::{Reading, Topic};
use crate::rows::{Rows, TableBatch};
use crate::table::Table;

/// Record batches of the tables of a log, or of a window of it. Batches of one table are in the order of its rows;
/// batches of several tables come as they fill. Memory is bounded by [`ROWS_MAX`](crate::ROWS_MAX) rows or about
/// [`TEXT_BYTES_DUE`](crate::TEXT_BYTES_DUE) of each table, by the scheduler's state, and by one transaction.
pub struct Batches<'a> {
    log: &'a dyn EventLog,
    options: ExportOptions,
    plan: Planned,
    waiting: VecDeque<(Topic, i32, OffsetRange)>,
    reading: Option<Reading<'a>>,
    rows: Rows,
    progress: ExportProgress,
    is_over: bool,
}

impl<'a> Batches<'a> {
    /// Reads some tables of a log, or of the window in `options`. The log may be written meanwhile: the tables show one
    /// moment between two transactions.
    ///
    /// # Errors
    /// If the log cannot be read, or has nothing to export.
    pub fn open(
        log: &'a dyn EventLog,
        options: &ExportOptions,
        tables: &[&'static Table],
    ) -> Result<Self, TablesError> {
        let options = ExportOptions { with_ticks: true, ..options.clone() };
        let plan = planned(log, &options)?;
        let ranges = |topic: Topic| {
            let ranges = plan.of(topic.name(&options)).iter().copied();
            (0..).zip(ranges).map(move |(partition, range)| (topic, partition, range))
        };
        let waiting: VecDeque<_> = Topic::of(tables).into_iter().flat_map(ranges).collect();
        let total = waiting.iter().map(|(_, _, range)| (range.next - range.first).unsigned_abs()).sum();
        let (rows, progress) = (Rows::new(tables), ExportProgress { done: 0, total });
        Ok(Self { log, options, plan, waiting, reading: None, rows, progress, is_over: false })
    }

    /// Returns the number of offsets read, and the number to read.
    pub fn progress(&self) -> ExportProgress {
        self.progress
    }

    /// Returns remarks for users, which are complete after the last batch.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.plan.notes.clone();
        if self.rows.left_out > 0 {
            let count = self.rows.left_out;
            notes.push(format!(
                "{count} ticks or whole records of ticks are not valid, and are left out of the table `ticks`; see `dead_letters`"
            ));
        }
        notes
    }

    /// Reads the next record. Returns false after the last one.
    pub(crate) fn advance(&mut self) -> Result<bool, TablesError> {
        let Some(reading) = &mut self.reading else { return self.open_next() };
        let before = reading.next;
        let has_more = reading.step(&mut self.rows)?;
        self.progress.done += (reading.next - before).unsigned_abs();
        if !has_more {
            reading.finish(&mut self.rows)?;
            self.reading = None;
        }
        Ok(true)
    }

    /// Returns the next full batch of the rows read so far.
    pub(crate) fn take_ready(&mut self) -> Option<TableBatch> {
        self.rows.take_ready()
    }

    fn open_next(&mut self) -> Result<bool, TablesError> {
        if let Some(next) = self.waiting.pop_front() {
            self.reading = Some(Reading::new(self.log, &self.options, &self.plan, next));
            return Ok(true);
        }
        self.rows.finish();
        Ok(!std::mem::replace(&mut self.is_over, true))
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<TableBatch, TablesError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.take_ready() {
                return Some(Ok(batch));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.advance() {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }
}
