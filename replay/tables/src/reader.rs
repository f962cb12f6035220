//! Topics as record batches, for programs that link this crate. Rows are read when the caller takes them.

mod filter;

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_replay::{PartitionReader, ReplayError};
use warptape_schemas::SchemaSource;

pub use self::filter::RowFilter;

use crate::TablesError;
use crate::declared::{DEAD_LETTERS, LATE, SIGNALS, TICKS};
use crate::rows::Rows;
use crate::table::Table;
use crate::ticks::{TickRecords, push_dead_letter, push_late};
use crate::{entries, results, signals};

/// A topic whose records are rows of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowTopic {
    /// Signals.
    Signals,
    /// Ticks.
    Ticks,
    /// Late ticks.
    Late,
    /// Dead letters.
    DeadLetters,
    /// Entries of journals.
    Journal,
    /// Answers to risk requests.
    RiskResults,
}

impl RowTopic {
    /// All topics of rows.
    pub const ALL: [Self; 6] =
        [Self::Signals, Self::Ticks, Self::Late, Self::DeadLetters, Self::Journal, Self::RiskResults];

    /// Returns the table of the topic.
    pub fn table(self) -> &'static Table {
        match self {
            Self::Signals => &SIGNALS,
            Self::Ticks => &TICKS,
            Self::Late => &LATE,
            Self::DeadLetters => &DEAD_LETTERS,
            Self::Journal => &entries::JOURNAL,
            Self::RiskResults => &results::RISK_RESULTS,
        }
    }
}

/// Record batches of a topic, partition after partition, up to the ends that it had when the reader was opened. Memory
/// is bounded by one batch. After an error the reader returns nothing more.
pub struct TopicReader {
    log: Arc<dyn EventLog>,
    rows_of: RowTopic,
    filter: RowFilter,
    schemas: Option<Arc<dyn SchemaSource>>,
    rows: Rows,
    unread: VecDeque<(TopicPartition, OffsetRange)>,
    reading: Option<Reading>,
}

/// A partition that is being read.
struct Reading {
    records: PartitionReader,
    source: TopicPartition,
    ticks: TickRecords,
}

impl TopicReader {
    /// Opens the topic with this name. `schemas` has the schemas of ticks in a registry.
    ///
    /// # Errors
    /// If the log cannot be read or does not have the topic.
    pub fn open(
        log: Arc<dyn EventLog>,
        topic: &str,
        (rows_of, filter): (RowTopic, RowFilter),
        schemas: Option<Arc<dyn SchemaSource>>,
    ) -> Result<Self, TablesError> {
        let Some(found) = log.topic(topic)? else {
            let (url, known) = (log.url(), log.topic_names()?.join(", "));
            return Err(LogError::UnknownTopic { url, topic: topic.to_owned(), known }.into());
        };
        let place = |(partition, range)| (TopicPartition { topic: topic.to_owned(), partition }, range);
        let unread = (0..).zip(found.offsets).map(place).collect();
        let rows = Rows::new(&[rows_of.table()]);
        Ok(Self { log, rows_of, filter, schemas, rows, unread, reading: None })
    }

    /// Returns the schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        self.rows_of.table().schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, TablesError> {
        loop {
            if let Some(ready) = self.rows.take_ready() {
                // Even an empty batch is returned, so that callers regain control during a long search.
                return Ok(Some(self.filter.of(ready.batch)));
            }
            if self.reading.is_none() {
                let Some((source, range)) = self.unread.pop_front() else {
                    self.rows.finish();
                    let last = self.rows.take_ready().map(|ready| self.filter.of(ready.batch));
                    return Ok(last.filter(|batch| batch.num_rows() > 0));
                };
                let records = PartitionReader::open(&*self.log, source.clone(), range)?;
                let ticks = TickRecords::new(self.schemas.clone());
                self.reading = Some(Reading { records, source, ticks });
            }
            self.read()?;
        }
    }

    /// Adds the rows of the next record.
    fn read(&mut self) -> Result<(), TablesError> {
        let Some(reading) = &mut self.reading else { return Ok(()) };
        let Some(record) = reading.records.next()? else {
            self.reading = None;
            return Ok(());
        };
        let pushed = push(self.rows_of, reading, &record, &mut self.rows)?;
        pushed.map_err(|error| {
            let TopicPartition { topic, partition } = reading.source.clone();
            let (url, offset) = (self.log.url(), record.offset);
            ReplayError::RecordUnreadable { url, topic, partition, offset, error }.into()
        })
    }
}

/// Adds the rows of a record. The inner error says why the record cannot be read.
fn push(
    rows_of: RowTopic,
    reading: &mut Reading,
    record: &Record,
    rows: &mut Rows,
) -> Result<Result<(), String>, TablesError> {
    let partition = reading.source.partition;
    Ok(match rows_of {
        RowTopic::Signals => signals::push(partition, record, rows),
        RowTopic::Ticks => reading.ticks.push(partition, record, rows),
        RowTopic::Late => push_late(partition, record, rows),
        RowTopic::DeadLetters => push_dead_letter(partition, record, rows),
        RowTopic::Journal => {
            if let Some(entry) = reading.records.entry_of(record)? {
                entries::push(partition, record, &entry, rows);
            }
            Ok(())
        }
        RowTopic::RiskResults => results::push(partition, record, rows),
    })
}

impl Iterator for TopicReader {
    type Item = Result<RecordBatch, TablesError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch().transpose();
        if let Some(Err(_)) = next {
            self.unread.clear();
            self.reading = None;
        }
        next
    }
}
