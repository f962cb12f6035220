//! Reads one partition up to a fixed end, in pieces of limited size.

use std::collections::VecDeque;
use std::time::Duration;

use warptape_eventlog::{
    Consumer, EventLog, Fetched, LogError, OffsetRange, Record, Selection, TopicPartition,
};
use warptape_schemas::journal::JournalEntry;
use warptape_schemas::{DecodeError, decode_journal_entry};

use crate::ReplayError;

/// Greatest number of records in one fetch.
const FETCH_RECORDS_MAX: usize = 256;
/// Approximate greatest number of bytes in one fetch.
const FETCH_BYTES_MAX: usize = 2 << 20;
/// Wait between two checks for the end.
const FETCH_WAIT_MAX: Duration = Duration::from_millis(100);

/// Reads the records of a partition in order.
pub struct PartitionReader {
    pub(crate) source: TopicPartition,
    /// URL of the log.
    url: String,
    consumer: Box<dyn Consumer>,
    fetched: VecDeque<Record>,
    end: i64,
}

impl PartitionReader {
    /// Reads the records of `range`.
    pub fn open(log: &dyn EventLog, source: TopicPartition, range: OffsetRange) -> Result<Self, LogError> {
        let mut consumer = log.reader(std::slice::from_ref(&source))?;
        consumer.seek(&source, range.first)?;
        Ok(Self { source, url: log.url(), consumer, fetched: VecDeque::new(), end: range.next })
    }

    /// Lets the log leave out records that are not selected. The caller still filters.
    pub(crate) fn select(&mut self, selection: &Selection) {
        self.consumer.select(selection);
    }

    /// Extends the reader to another end, which must not be before the current one.
    pub fn extend(&mut self, end: i64) {
        self.end = end.max(self.end);
    }

    /// Continues with the first record at or after an offset.
    pub fn seek(&mut self, offset: i64) -> Result<(), LogError> {
        self.fetched.clear();
        self.consumer.seek(&self.source, offset)
    }

    /// Returns the next record; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<Record>, LogError> {
        if self.fetched.is_empty() {
            self.fetched = self.fetch()?.into();
        }
        Ok(self.fetched.pop_front())
    }

    /// Decodes the journal entry in a record of this reader; `None` if the record is not an entry.
    ///
    /// # Errors
    /// If this software cannot read the entry's version.
    pub fn entry_of(&self, record: &Record) -> Result<Option<JournalEntry>, ReplayError> {
        match decode_journal_entry(&record.value) {
            Ok(entry) => Ok(Some(entry)),
            Err(error @ DecodeError::UnknownVersion { .. }) => Err(ReplayError::RecordUnreadable {
                url: self.url.clone(),
                topic: self.source.topic.clone(),
                partition: self.source.partition,
                offset: record.offset,
                error: error.to_string(),
            }),
            Err(_) => Ok(None),
        }
    }

    /// Returns the next entry of a journal with its offset. Skips records that are not entries.
    ///
    /// # Errors
    /// If the log cannot be read, or this software cannot read the entry's version.
    pub(crate) fn next_entry(&mut self) -> Result<Option<(i64, JournalEntry)>, ReplayError> {
        while let Some(record) = self.next()? {
            if let Some(entry) = self.entry_of(&record)? {
                return Ok(Some((record.offset, entry)));
            }
        }
        Ok(None)
    }

    /// True if the next fetched record has this offset. Does not read the log.
    pub(crate) fn is_next(&self, offset: i64) -> bool {
        self.fetched.front().is_some_and(|record| record.offset == offset)
    }

    /// Returns the next record without consuming it.
    pub fn peek(&mut self) -> Result<Option<&Record>, LogError> {
        if self.fetched.is_empty() {
            self.fetched = self.fetch()?.into();
        }
        Ok(self.fetched.front())
    }

    /// Returns the next record if it is before an offset.
    pub(crate) fn next_before(&mut self, offset: i64) -> Result<Option<Record>, LogError> {
        if self.fetched.is_empty() {
            self.fetched = self.fetch()?.into();
        }
        Ok(self.fetched.pop_front_if(|record| record.offset < offset))
    }

    /// Returns the next records; empty at the end.
    pub(crate) fn next_fetch(&mut self) -> Result<Vec<Record>, LogError> {
        if self.fetched.is_empty() { self.fetch() } else { Ok(std::mem::take(&mut self.fetched).into()) }
    }

    fn fetch(&mut self) -> Result<Vec<Record>, LogError> {
        // There may be no records at the last offsets.
        while self.consumer.position(&self.source)? < self.end {
            let fetched = self.consumer.poll(FETCH_WAIT_MAX, FETCH_RECORDS_MAX, FETCH_BYTES_MAX)?;
            if let Fetched::Records { mut records, .. } = fetched {
                records.truncate(records.partition_point(|record| record.offset < self.end));
                return Ok(records);
            }
        }
        Ok(Vec::new())
    }
}

/// Random access to records of a partition by offset, which is fast if the offsets are nearly in order.
pub(crate) struct RecordWindow {
    reader: PartitionReader,
    /// Records of the last fetch.
    records: Vec<Record>,
}

impl RecordWindow {
    /// Returns a window on the records of `range`.
    pub(crate) fn open(
        log: &dyn EventLog,
        source: TopicPartition,
        range: OffsetRange,
    ) -> Result<Self, LogError> {
        Ok(Self { reader: PartitionReader::open(log, source, range)?, records: Vec::new() })
    }

    /// Returns the record at an offset; it must have been read before.
    pub(crate) fn at(&mut self, offset: i64) -> Result<&Record, ReplayError> {
        let ends = self.records.first().zip(self.records.last());
        if ends.is_none_or(|(first, last)| offset < first.offset || last.offset < offset) {
            let PartitionReader { consumer, source, .. } = &mut self.reader;
            if consumer.position(source)? != offset {
                consumer.seek(source, offset)?;
            }
            self.records = self.reader.fetch()?;
        }
        let found = self.records.binary_search_by_key(&offset, |record| record.offset);
        found.map(|index| &self.records[index]).map_err(|_| {
            let TopicPartition { topic, partition } = self.reader.source.clone();
            ReplayError::RecordGone { topic, partition, offset }
        })
    }
}
