//! Reads one partition of a topic into rows.

use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};
use warptape_replay::{ExportOptions, PartitionReader, Planned, ReplayError};

use crate::TablesError;
use crate::declared::{BATCHES, COMMITS, DEAD_LETTERS, DECISIONS, LATE, LATENCIES, SIGNALS, TASKS, TICKS};
use crate::journal::JournalTables;
use crate::latency::Latencies;
use crate::rows::Rows;
use crate::signals;
use crate::table::Table;
use crate::ticks::{self, TickRecords};

/// A topic from which tables are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Signals,
    Ticks,
    Late,
    DeadLetters,
    Journal,
}

impl Topic {
    const ALL: [Self; 5] = [Self::Signals, Self::Ticks, Self::Late, Self::DeadLetters, Self::Journal];

    /// Returns the topics of these tables.
    pub(crate) fn of(tables: &[&'static Table]) -> Vec<Self> {
        let mut topics = Self::ALL.to_vec();
        topics.retain(|topic| topic.tables().iter().any(|table| tables.contains(table)));
        topics
    }

    /// Returns the tables whose rows the topic's records cause.
    pub(crate) fn tables(self) -> &'static [&'static Table] {
        match self {
            Self::Signals => &[&SIGNALS],
            Self::Ticks => &[&TICKS],
            Self::Late => &[&LATE],
            Self::DeadLetters => &[&DEAD_LETTERS],
            Self::Journal => &[&DECISIONS, &BATCHES, &TASKS, &COMMITS, &LATENCIES],
        }
    }

    /// Returns the topic's name in the log.
    pub(crate) fn name(self, options: &ExportOptions) -> &str {
        let sources = &options.sources;
        match self {
            Self::Signals => &sources.signals,
            Self::Ticks => &sources.ticks,
            Self::Late => &sources.late,
            Self::DeadLetters => &sources.dead_letter,
            Self::Journal => &options.journal,
        }
    }
}

/// A partition that is being read.
pub(crate) struct Reading<'a> {
    log: &'a dyn EventLog,
    pub(crate) source: TopicPartition,
    /// Reader; `None` at the end, because a waiting reader would occupy a connection.
    reader: Option<PartitionReader>,
    records: Records<'a>,
    /// Offset before which everything was read, and the end offset.
    pub(crate) next: i64,
    end: i64,
}

enum Records<'a> {
    Signals,
    Ticks(Box<TickRecords>),
    Late,
    DeadLetters,
    Journal(Box<JournalTables<'a>>),
}

impl<'a> Reading<'a> {
    /// Creates the reading of a partition from the beginning of `range`. `plan` has the offsets of the other topics.
    pub(crate) fn new(
        log: &'a dyn EventLog,
        options: &ExportOptions,
        plan: &Planned,
        (topic, partition, range): (Topic, i32, OffsetRange),
    ) -> Self {
        let source = TopicPartition { topic: topic.name(options).to_owned(), partition };
        let sources = &options.sources;
        let records = match topic {
            Topic::Signals => Records::Signals,
            Topic::Ticks => Records::Ticks(Box::new(TickRecords::new(sources.schemas.clone()))),
            Topic::Late => Records::Late,
            Topic::DeadLetters => Records::DeadLetters,
            Topic::Journal => {
                let [signals, ticks] =
                    [&sources.signals, &sources.ticks].map(|name| (&**name, plan.of(name)));
                let tables = JournalTables::new(partition, Latencies::new(log, signals, ticks));
                Records::Journal(Box::new(tables))
            }
        };
        Self { log, source, reader: None, records, next: range.first, end: range.next }
    }

    /// Extends the reading to the end of `range`.
    pub(crate) fn extend(&mut self, range: OffsetRange, options: &ExportOptions, plan: &Planned) {
        self.end = range.next.max(self.end);
        if let Some(reader) = &mut self.reader {
            reader.extend(self.end);
        }
        if let Records::Journal(tables) = &mut self.records {
            let sources = &options.sources;
            tables.latencies.extend(plan.of(&sources.signals), plan.of(&sources.ticks));
        }
    }

    /// Returns the time of the next record, ns since the epoch; `None` at the end.
    pub(crate) fn peek_ns(&mut self) -> Result<Option<i64>, TablesError> {
        if self.next >= self.end {
            return Ok(None);
        }
        Ok(self.reader()?.peek()?.map(|record| record.timestamp_ns))
    }

    fn reader(&mut self) -> Result<&mut PartitionReader, LogError> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => {
                let range = OffsetRange { first: self.next, next: self.end };
                PartitionReader::open(self.log, self.source.clone(), range)?
            }
        };
        Ok(self.reader.insert(reader))
    }

    /// Adds the rows that the next record causes. Returns false at the end.
    pub(crate) fn step(&mut self, rows: &mut Rows) -> Result<bool, TablesError> {
        let record = if self.next < self.end { self.reader()?.next()? } else { None };
        let (Some(record), Some(reader)) = (record, &self.reader) else {
            self.end();
            return Ok(false);
        };
        rows.at(record.offset);
        let partition = self.source.partition;
        let pushed = match &mut self.records {
            Records::Signals => signals::push(partition, &record, rows),
            Records::Ticks(ticks) => ticks.push(partition, &record, rows),
            Records::Late => ticks::push_late(partition, &record, rows),
            Records::DeadLetters => ticks::push_dead_letter(partition, &record, rows),
            Records::Journal(tables) => {
                if let Some(entry) = reader.entry_of(&record)? {
                    tables.add(&record, &entry, rows)?;
                }
                Ok(())
            }
        };
        pushed.map_err(|error| ReplayError::RecordUnreadable {
            url: self.log.url(),
            topic: self.source.topic.clone(),
            partition,
            offset: record.offset,
            error,
        })?;
        self.next = record.offset + 1;
        Ok(true)
    }

    /// Passes over offsets without records, to the end.
    pub(crate) fn end(&mut self) {
        (self.next, self.reader) = (self.end, None);
    }

    /// Adds the rows of what is still open at the end.
    pub(crate) fn finish(&mut self, rows: &mut Rows) -> Result<(), TablesError> {
        match &mut self.records {
            Records::Journal(tables) => tables.end(rows),
            _ => Ok(()),
        }
    }
}
